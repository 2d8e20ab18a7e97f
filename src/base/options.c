/* options.c -- the table of <kofn/options.h>, and the checks by it.
 *
 * Owns nothing.  Only this file looks at ranges and defaults.  Files that know
 * a plan or a port check what depends on these. */
#include "options.h"

#include "base.h"

#include <assert.h>

/* Written by place, so that a field of kofn_options without a row does not
 * compile. */
static const kofn_options first = KOFN_OPTIONS_INIT;

static const kofn_option table[] = {
#define X(type, name, kind, first, ...)                                        \
    {#name, KOFN_OPTION_##kind, offsetof(kofn_options, name), __VA_ARGS__},
    KOFN_OPTIONS_MAP(X)
#undef X
};

const kofn_option *kofn_option_at(size_t i)
{
    return i < KF_OPTIONS ? &table[i] : NULL;
}

void kofn_options_begin(kofn_options *o)
{
    *o = first;
}

/* ---- a value as a number --------------------------------------------------
 */

_Static_assert(sizeof(kofn_below) == sizeof(unsigned) &&
                   sizeof(kofn_errors) == sizeof(unsigned) &&
                   sizeof(kofn_in_flight) == sizeof(unsigned),
               "choices are read and written as unsigned");

static double get(const kofn_option *w, const void *at)
{
    switch (w->kind) {
    case KOFN_OPTION_FLAG:
        return *(const bool *)at;
    case KOFN_OPTION_CHOICE:
    case KOFN_OPTION_UNSIGNED:
        return *(const unsigned *)at;
    case KOFN_OPTION_SIZE:
        return (double)*(const size_t *)at;
    case KOFN_OPTION_REAL:
    case KOFN_OPTION_FACTOR:
        return *(const double *)at;
    case KOFN_OPTION_SECONDS:
    case KOFN_OPTION_TERM:
        return (double)*(const kofn_time *)at / 1e9;
    case KOFN_OPTION_FILE:
        break;
    }
    return 0;
}

/* `x` is in its range, or below 0 where that is never. */
static void put(const kofn_option *w, void *at, double x)
{
    switch (w->kind) {
    case KOFN_OPTION_FLAG:
        *(bool *)at = x > 0;
        break;
    case KOFN_OPTION_CHOICE:
    case KOFN_OPTION_UNSIGNED:
        *(unsigned *)at = (unsigned)x;
        break;
    case KOFN_OPTION_SIZE:
        *(size_t *)at = (size_t)x;
        break;
    case KOFN_OPTION_REAL:
    case KOFN_OPTION_FACTOR:
        *(double *)at = x;
        break;
    case KOFN_OPTION_SECONDS:
    case KOFN_OPTION_TERM:
        *(kofn_time *)at = (kofn_time)(x * 1e9);
        break;
    case KOFN_OPTION_FILE:
        break;
    }
}

/* ---- checks ---------------------------------------------------------------
 */

static bool is_time(const kofn_option *w)
{
    return w->kind == KOFN_OPTION_SECONDS || w->kind == KOFN_OPTION_TERM;
}

static bool may_be_never(const kofn_option *w)
{
    return w->kind == KOFN_OPTION_FACTOR || w->kind == KOFN_OPTION_TERM;
}

static bool is_whole(const kofn_option *w)
{
    return w->kind <= KOFN_OPTION_SIZE;
}

static bool in_range(const kofn_option *w, double x)
{
    return x >= w->least && x <= w->most &&
           (!is_whole(w) || x == (double)(uint64_t)x);
}

/* Fails with the range.  `beside` names other allowed values, as "neither 0,
 * never, nor". */
static kofn_status refuse(const kofn_option *w, double x, const char *beside)
{
    if (w->kind == KOFN_OPTION_CHOICE)
        return kf_fail(KOFN_INVAL,
                       "%s = %g is none of %s, from 0 to %g; give one of them",
                       w->name, x, w->value, w->most);
    return kf_fail(KOFN_INVAL,
                   "%s = %g is %s a %s from %g to %g; give such a number",
                   w->name, x, beside, is_whole(w) ? "whole number" : "number",
                   w->least, w->most);
}

kofn_status kofn_option_set(void *o, const kofn_option *which, double given)
{
    bool never = may_be_never(which) && given <= 0;

    if (!never && !in_range(which, given))
        return refuse(which, given,
                      may_be_never(which) ? "neither 0, never, nor" : "not");
    put(which, (char *)o + which->at, never ? -1 : given);
    return KOFN_OK;
}

kofn_status kf_option_check(size_t i, const void *at)
{
    assert(i < KF_OPTIONS);
    return kf_option_check_by(&table[i], at);
}

kofn_status kf_option_check_by(const kofn_option *w, const void *at)
{
    double x = get(w, at);

    if (x == 0 || (may_be_never(w) && x < 0) || in_range(w, x) ||
        (is_time(w) && *(const kofn_time *)at == KOFN_NEVER))
        return KOFN_OK;
    return refuse(w, x,
                  may_be_never(w)
                      ? "neither 0, for the default, nor below 0, for "
                        "never, nor"
                      : "neither 0, for the default, nor");
}

kofn_status kf_options_check(const kofn_options *o)
{
    for (size_t i = 0; i < KF_OPTIONS; i++)
        TRY(kf_option_check(i, (const char *)o + table[i].at));
    return KOFN_OK;
}

void kf_options_settle(kofn_options *o)
{
    for (size_t i = 0; i < KF_OPTIONS; i++)
        kf_option_settle_by(&table[i], (char *)o + table[i].at);
}

void kf_option_settle_by(const kofn_option *w, void *at)
{
    double x = get(w, at);

    if (w->zero > 0 && x == 0)
        put(w, at, w->zero);
    else if (may_be_never(w) && x < 0)
        put(w, at, 0);
}
