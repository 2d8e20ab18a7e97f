/* base.h -- floor 0: failure messages, memory, sizes that cannot overflow.
 *
 * The functions here own nothing but what they return: memory of kf_new and
 * kf_zero is the caller's and is given back by kf_free.  Nothing here may
 * print, wait or end the process. */
#ifndef KF_BASE_H
#define KF_BASE_H

#include <kofn.h>

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/mix.h"
#include "base/try.h"

#if defined(__GNUC__)
#define KF_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define KF_PRINTF(a, b)
#endif

/* KOFN_API marks what the libraries beside libkofn use too. */

/* ---- failure ------------------------------------------------------------- */

/* Bytes of a message, with its end. */
#define KF_WORDS 4096
/* Keep the message for kofn_errmsg and return st: `return kf_fail(...)`. */
#define kf_fail kofn_say
/* Put "prefix: " before the message that is already there. */
KOFN_API kofn_status kf_fail_in(kofn_status st, const char *fmt, ...)
    KF_PRINTF(2, 3);
KOFN_API kofn_status kf_nomem(size_t bytes);

/* ---- sizes --------------------------------------------------------------- */

static inline bool kf_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool kf_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Numbers of float32 that a BLAS adds up at a time in a row times a vector. */
#define KF_PANEL 4096

static inline size_t kf_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t kf_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The larger, and NaN if either is: fmax passes over it. */
static inline double kf_larger(double a, double b)
{
    return a > b || a != a ? a : b;
}

static inline size_t kf_ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* ---- structs that begin with their size ----------------------------------- */

/* Over the defaults in *all, `bytes` long, what the caller has of the same struct,
 * or had when it was compiled; NULL: nothing.  KOFN_INVAL: it was not begun with
 * `init`. */
kofn_status kf_given(void *all, size_t bytes, const void *given,
                     const char *init);
/* The same of a struct whose size `has` was told elsewhere; 0: it is `bytes` long.
 * It is *given itself, or *room filled with it. */
const void *kf_whole(void *room, size_t bytes, const void *given, size_t has);
/* What the caller has for an answer, NULL: nothing, was begun with `init`. */
kofn_status kf_begun(const void *to, const char *init);
/* *given, which others call as well, is of this size or of a later version of it. */
kofn_status kf_complete(const void *given, size_t bytes, const char *name);
/* *all, `bytes` long, into such a struct, as far as it reaches. */
void kf_give(void *to, const void *all, size_t bytes);

/* ---- memory -------------------------------------------------------------- */

/* All return NULL on failure or overflow, after keeping the message;
 * n * size == 0 gives a valid pointer.  Aligned to 64 bytes. */
KOFN_API void *kf_new(size_t n, size_t size);
KOFN_API void *kf_zero(size_t n, size_t size);
KOFN_API void kf_free(void *p);
KOFN_API char *kf_strdup(const char *s);

/* Memory for n of what p points to, likewise, or the end of the function. */
#define TRY_NEW(p, n) TRY_MADE(p, kf_new(n, sizeof *(p)))
#define TRY_ZERO(p, n) TRY_MADE(p, kf_zero(n, sizeof *(p)))
#define TRY_MADE(p, made)                                                      \
    do {                                                                       \
        (p) = (made);                                                          \
        if (!(p))                                                              \
            return KOFN_NOMEM;                                                 \
    } while (0)

/* Make room for n elements behind `*p`, of which `*cap` exist; new ones are all zero
 * bits.  Grows by doubling. */
KOFN_API kofn_status kf_reach(void *p, size_t *cap, size_t n, size_t size);
/* ... for one more than the `used` that are in use. */
static inline kofn_status kf_grow(void *p, size_t *cap, size_t used,
                                  size_t size)
{
    assert(used <= *cap);
    return used < *cap ? KOFN_OK : kf_reach(p, cap, used + 1, size);
}

/* The time `more` after t, if that is not beyond all times. */
static inline kofn_time kf_later(kofn_time t, kofn_time more)
{
    return t < 0 || more < KOFN_NEVER - t ? t + more : KOFN_NEVER;
}

#endif
