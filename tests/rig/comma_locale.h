/* comma_locale.h -- makes a locale with a decimal comma, because few machines
 * have one installed. */
#ifndef KF_TEST_COMMA_LOCALE_H
#define KF_TEST_COMMA_LOCALE_H

#include "support.h"

#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

/* Makes the locale in this folder and gives it to the process. Returns false
 * if localedef, a part of glibc, is missing. */
static inline bool comma_begin(const char *folder)
{
    char name[512], command[2048];
    FILE *f;

    snprintf(name, sizeof name, "%s/comma", folder);
    f = fopen(name, "w");
    assert_non_null(f);
    fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\n"
          "END LC_NUMERIC\n",
          f);
    assert_int_equal(fclose(f), 0);
    snprintf(command, sizeof command,
             "localedef -c -i %s -f ANSI_X3.4-1968 %s/xx_XX >/dev/null 2>&1",
             name, folder);
    if (system(command) < 0)
        return false;
    setenv("LOCPATH", folder, 1);
    if (!setlocale(LC_NUMERIC, "xx_XX")) {
        unsetenv("LOCPATH");
        print_message("no locale with a comma: localedef is missing\n");
        return false;
    }
    assert_true(strtod("1,5", NULL) == 1.5);
    return true;
}

static inline void comma_end(void)
{
    unsetenv("LOCPATH");
    setlocale(LC_NUMERIC, "C");
}

#endif
