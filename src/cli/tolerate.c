/* tolerate.c -- --tolerate N: puts the parameter into the scheme with which any
 * N workers may be lost (kofn_scheme_tolerate).
 *
 * Owns nothing. The caller has room for the new text of the scheme. */
#include "schemes.h"

#include <stdio.h>
#include <string.h>

int cli_tolerate(const cli_args *a, const char **scheme, char room[CLI_SPEC])
{
    char name[CLI_SPEC];
    /* the parameters of a scheme that was not given are the library's choice */
    size_t n = strcspn(*scheme, a->scheme_given ? "" : ":");

    if (!a->tolerate_given)
        return 0;
    if (n >= sizeof name)
        return cli_say(EXIT_USAGE, "--scheme %.40s...: more than %d characters",
                       *scheme, CLI_SPEC - 1);
    snprintf(name, sizeof name, "%.*s", (int)n, *scheme);
    if (kofn_scheme_tolerate(name, a->workers, a->tolerate, room, CLI_SPEC))
        return cli_say(EXIT_USAGE, "--tolerate %zu: %s", a->tolerate,
                       kofn_errmsg());
    *scheme = room;
    return 0;
}
