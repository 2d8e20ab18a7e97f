/* main.c -- the runner of a room: `RUNNER NAME_test [ARGUMENT...]` runs the
 * tests of one file, whose arguments begin with its name as those of main
 * would, and `RUNNER` alone says which files it has.  With KOFN_TEST_FILTER
 * only tests of that name are run, which may have asterisks, and with
 * KOFN_TEST_SKIP those are not.  The list of files is made by CMake. */
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

/* What is set to nothing is not set. */
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
