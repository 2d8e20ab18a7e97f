/* base.h -- floor 0: failure messages, memory, sizes that cannot overflow.
 *
 * The caller owns memory of kf_new and kf_zero, and frees it with kf_free.
 * These functions own nothing else.  None of them prints, waits or ends the
 * process. */
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

/* KOFN_API marks functions that other libraries call as well: plugins, and the
 * command. */

/* ---- failure ------------------------------------------------------------- */

/* Bytes of a message, with its terminating zero. */
#define KF_WORDS 4096
/* Keeps the message for kofn_errmsg and returns the status: `return
 * kf_fail(...)`. */
#define kf_fail kofn_say
/* Puts "prefix: " in front of the message that is kept, and returns st. */
KOFN_API kofn_status kf_fail_in(kofn_status st, const char *fmt, ...)
    KF_PRINTF(2, 3);
/* Says that this number of bytes could not be had.  Returns KOFN_NOMEM. */
KOFN_API kofn_status kf_nomem(size_t bytes);

/* ---- sizes --------------------------------------------------------------- */

/* Writes the product, or the sum, to *out.  False if it overflows. */
static inline bool kf_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool kf_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Number of float32 products that a BLAS adds up at a time, in a row times a
 * vector. */
#define KF_PANEL 4096

static inline size_t kf_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t kf_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the larger number, and NaN if either is NaN, which fmax does not. */
static inline double kf_larger(double a, double b)
{
    return a > b || a != a ? a : b;
}

static inline size_t kf_ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* ---- structs that begin with their size -----------------------------------
 */

/* Copies the caller's struct over the defaults in *all, which has `bytes`
 * bytes.  The caller may be older, and its struct shorter.  Copies nothing if
 * `given` is NULL. Fails with KOFN_INVAL if the struct does not begin with
 * `init`. */
KOFN_API kofn_status kf_given(void *all, size_t bytes, const void *given,
                              const char *init);
/* Returns `given` if it has `bytes` bytes, or else *room with a copy of it and
 * zeros. `has` is the size that the caller has stated elsewhere; 0 means
 * `bytes`. */
const void *kf_whole(void *room, size_t bytes, const void *given, size_t has);
/* Fails with KOFN_INVAL if the caller's struct for an answer does not begin
 * with `init`.  `to` may be NULL. */
kofn_status kf_begun(const void *to, const char *init);
/* Fails with KOFN_INVAL if *given is shorter than `bytes`: it is of an older
 * version. */
kofn_status kf_complete(const void *given, size_t bytes, const char *name);
/* Copies *all, which has `bytes` bytes, to the caller's struct, up to the size
 * that this has. */
void kf_give(void *to, const void *all, size_t bytes);

/* ---- memory -------------------------------------------------------------- */

/* Return memory that is aligned to 64 bytes.  NULL, with a message, if there is
 * none or n * size overflows.  If n * size is 0 the pointer is valid.  kf_zero
 * clears the memory. */
KOFN_API void *kf_new(size_t n, size_t size);
KOFN_API void *kf_zero(size_t n, size_t size);
KOFN_API void kf_free(void *p);
KOFN_API char *kf_strdup(const char *s);

/* Sets p to memory for n of the elements that it points to.  Returns KOFN_NOMEM
 * from the calling function if there is none. */
#define TRY_NEW(p, n) TRY_MADE(p, kf_new(n, sizeof *(p)))
#define TRY_ZERO(p, n) TRY_MADE(p, kf_zero(n, sizeof *(p)))
#define TRY_MADE(p, made)                                                      \
    do {                                                                       \
        (p) = (made);                                                          \
        if (!(p))                                                              \
            return KOFN_NOMEM;                                                 \
    } while (0)

/* Makes room for n elements in the array *p, which has *cap elements.  New
 * elements are all zero bits.  The array grows by doubling. */
KOFN_API kofn_status kf_reach(void *p, size_t *cap, size_t n, size_t size);
/* Makes room for one element more than the `used` elements that are in use. */
static inline kofn_status kf_grow(void *p, size_t *cap, size_t used,
                                  size_t size)
{
    assert(used <= *cap);
    return used < *cap ? KOFN_OK : kf_reach(p, cap, used + 1, size);
}

/* Returns t + more, or KOFN_NEVER if that overflows. */
static inline kofn_time kf_later(kofn_time t, kofn_time more)
{
    return t < 0 || more < KOFN_NEVER - t ? t + more : KOFN_NEVER;
}

#endif
