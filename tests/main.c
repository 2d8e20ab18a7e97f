/* main.c -- the runner of a room's tests. `RUNNER NAME_test [ARGUMENT...]`
 * runs the tests of one file; its arguments begin with the file's name.
 * `RUNNER` alone lists the files. KOFN_TEST_FILTER runs only tests with a
 * matching sentence, KOFN_TEST_SKIP leaves matching ones out; both may contain
 * asterisks. CMake makes the list of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEST_FILE(name) int name(int argc, char **argv);
#include "files.h"
#undef TEST_FILE

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} files[] = {
#define TEST_FILE(name) {#name, name},
#include "files.h"
};

/* Returns the value of a variable; NULL if it is unset or empty. */
static const char *given(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

int main(int argc, char **argv)
{
    const size_t count = sizeof files / sizeof *files;

    cmocka_set_test_filter(given("KOFN_TEST_FILTER"));
    cmocka_set_skip_filter(given("KOFN_TEST_SKIP"));
    for (size_t i = 0; argc > 1 && i < count; i++)
        if (strcmp(argv[1], files[i].name) == 0)
            return files[i].run(argc - 1, argv + 1);
    if (argc > 1)
        fprintf(stderr, "%s: there is no file of tests %s; there are\n",
                argv[0], argv[1]);
    for (size_t i = 0; i < count; i++)
        printf("%s\n", files[i].name);
    return argc > 1 ? 2 : 0;
}
