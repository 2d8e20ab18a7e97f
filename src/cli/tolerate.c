/* tolerate.c -- --tolerate N: the parameter of a scheme with which any N
 * workers may be lost.
 *
 * Owns nothing. The caller has room for the new text of the scheme. */
#include "schemes.h"

#include <stdio.h>
#include <string.h>

typedef struct rule {
    const char *scheme, *parameter, *without; /* `without`: not with that one */
    /* Returns the value for n workers of which `lost` may be lost. */
    size_t (*value)(size_t n, size_t lost);
} rule;

/* Any k answers are enough. */
static size_t threshold(size_t n, size_t lost)
{
    return n - lost;
}

/* Any d - 1 answers may be missing. */
static size_t parts(size_t n, size_t lost)
{
    (void)n;
    return lost + 1;
}

/* Returns the least r with 2 ceil(n/r) - 1 <= n - lost. */
static size_t batches(size_t n, size_t lost)
{
    size_t blocks = (n - lost + 1) / 2;

    return (n + blocks - 1) / blocks;
}

static const rule rules[] = {
    {"elastic", "k", "groups", threshold},
    {"mds", "k", NULL, threshold},
    {"gc", "d", NULL, parts},
    {"agc", "d", NULL, parts},
    {"pcr", "r", NULL, batches},
    {NULL, NULL, NULL, NULL},
};

/* Returns the parameter's value in the text of a scheme, or NULL. */
static const char *find(const char *spec, const char *name, size_t *length)
{
    size_t n = name ? strlen(name) : 0;
    const char *at = strchr(spec, ':');

    while (n && at) {
        at++;
        *length = strcspn(at, ",");
        if (*length > n && memcmp(at, name, n) == 0 && at[n] == '=')
            return at;
        at = strchr(at, ',');
    }
    return NULL;
}

/* Refuses a scheme without such a parameter. */
static int refuse(const cli_args *a, const char *spec)
{
    return cli_say(EXIT_USAGE,
                   "--tolerate %zu: scheme %s has no parameter for it alone; "
                   "give its parameters in --scheme (kofn schemes %.*s), or "
                   "take elastic, mds, pcr, gc or agc",
                   a->tolerate, spec, (int)strcspn(spec, ":"), spec);
}

int cli_tolerate(const cli_args *a, const char **scheme, char room[CLI_SPEC])
{
    const char *spec = *scheme, *given;
    size_t n = strcspn(spec, ":"), length = 0, value;
    const rule *r = rules;

    if (!a->tolerate_given)
        return 0;
    while (r->scheme &&
           (strlen(r->scheme) != n || memcmp(r->scheme, spec, n) != 0))
        r++;
    if (!r->scheme || find(spec, r->without, &length))
        return refuse(a, spec);
    if (a->tolerate >= a->workers)
        return cli_say(EXIT_USAGE,
                       "--tolerate %zu with %zu workers: at most %zu of them "
                       "may be lost",
                       a->tolerate, a->workers, a->workers - 1);
    value = r->value(a->workers, a->tolerate);
    given = a->scheme_given ? find(spec, r->parameter, &length) : NULL;
    if (given)
        return cli_say(EXIT_USAGE,
                       "--tolerate %zu with %zu workers is %s=%zu, and "
                       "--scheme has %.*s; give one of the two",
                       a->tolerate, a->workers, r->parameter, value,
                       (int)length, given);
    if (!a->scheme_given) /* its parameters are a choice of the library */
        spec = r->scheme;
    if (strlen(spec) > CLI_SPEC / 2)
        return cli_say(EXIT_USAGE, "--scheme %.*s...: more than %d characters",
                       (int)n, spec, CLI_SPEC / 2);
    snprintf(room, CLI_SPEC, "%s:%s=%zu%s%s", r->scheme, r->parameter, value,
             spec[n] ? "," : "", spec[n] ? spec + n + 1 : "");
    *scheme = room;
    return 0;
}
