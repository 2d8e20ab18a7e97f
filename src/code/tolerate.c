/* tolerate.c -- the parameter of a scheme with which any N workers may be lost.
 *
 * Owns nothing. */
#include "code.h"

#include "base/number.h"

#include <string.h>

typedef struct rule {
    const char *scheme, *parameter, *without; /* `without`: not with that one */
    /* Returns the value of the parameter for n workers and `lost` losses. */
    size_t (*value)(size_t n, size_t lost);
} rule;

/* Returns k: any k answers are enough. */
static size_t threshold(size_t n, size_t lost)
{
    return n - lost;
}

/* Returns d: any d - 1 answers may be missing. */
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

/* Returns the parameter with its value in the text of a scheme, or NULL. */
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

kofn_status kofn_scheme_tolerate(const char *spec, size_t workers, size_t lost,
                                 char *out, size_t room)
{
    size_t n, length = 0, value;
    const rule *r = rules;
    const char *given;
    int wrote;

    if (!spec || !out || !room)
        return kf_fail(KOFN_INVAL, "the scheme or its room is missing");
    n = strcspn(spec, ":");
    while (r->scheme &&
           (strlen(r->scheme) != n || memcmp(r->scheme, spec, n) != 0))
        r++;
    if (!r->scheme || find(spec, r->without, &length))
        return kf_fail(KOFN_UNSUITED,
                       "scheme %s has no parameter for the number of workers "
                       "that may be lost alone; give its parameters (kofn "
                       "schemes %.*s), or take elastic, mds, pcr, gc or agc",
                       spec, (int)n, spec);
    if (lost >= workers)
        return kf_fail(KOFN_INVAL,
                       "%zu of %zu workers cannot be lost: at most %zu may be",
                       lost, workers, workers ? workers - 1 : 0);
    value = r->value(workers, lost);
    given = find(spec, r->parameter, &length);
    if (given)
        return kf_fail(KOFN_INVAL,
                       "the loss of %zu of %zu workers needs %s=%zu, and the "
                       "scheme has %.*s; give one of the two",
                       lost, workers, r->parameter, value, (int)length, given);
    wrote = kf_format(out, room, "%s:%s=%zu%s%s", r->scheme, r->parameter,
                      value, spec[n] ? "," : "", spec[n] ? spec + n + 1 : "");
    return wrote < 0 || (size_t)wrote >= room
               ? kf_fail(KOFN_INVAL,
                         "scheme %.40s...: more than %zu characters", spec,
                         room - 1)
               : KOFN_OK;
}
