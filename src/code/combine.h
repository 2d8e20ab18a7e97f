/* combine.h -- the dot-product engine: many sources, many destinations.
 *
 *     dst[i][t] = sum_j D[i*ldd + j] * src[j][t]      i < m, j < k, t < len
 *
 * The vectors may be anywhere in memory.  All encoding, re-encoding and
 * decoding in kofn are calls of it.
 *
 * The file combine.c cuts a problem into blocks, and a kernel computes one
 * block.  The source of the kernel is combine_kernel.h.  The files
 * combine_avx512.c, combine_avx2.c and combine_plain.c define the vectors of
 * their processor for it.
 *
 * The engine owns nothing: sources, destinations and coefficients belong to the
 * caller.  It allocates nothing and is safe to call from many threads. */
#ifndef KF_COMBINE_H
#define KF_COMBINE_H

#include "base/base.h"

/* One combination.  src and dst point to doubles or floats, according to
 * `dtype`, with any alignment.  float32 is accumulated in double and rounded
 * once.  If len == 0 or m == 0 nothing is done; if k == 0 zeros are written.  A
 * source with only zero coefficients is not read, so its contents (even NaN)
 * have no effect.  No destination overlaps a source or another destination.
 *
 * Error: |dst - exact| <= (k+1) u sum_j |D_ij src_j| with u = 2^-53, plus for
 * float32 half a unit in the last place of the result.
 *
 * Nothing is checked and nothing is allocated (up to 72 KiB of stack).  The
 * value of an element does not depend on its position in `len`, so tiling
 * changes no bit. */
typedef struct kf_combination {
    size_t m, k;
    const double *D;
    size_t ldd;
    const void *const *src;
    void *const *dst;
} kf_combination;
void kf_combine(const kf_combination *x, size_t len, kofn_dtype dtype);

/* A combination that is made tile by tile.  Set `far` if the tiles together are
 * larger than the caches (kf_combine_is_far); kf_combine_done must be the last
 * call. */
typedef struct kf_combine_tile {
    size_t m, k, ldd;
    const double *D;
    size_t len;
    kofn_dtype dtype;
    bool far;
} kf_combine_tile;
bool kf_combine_is_far(size_t bytes);
/* Does the same as kf_combine for a short tile of a longer call. */
void kf_combine_part(const kf_combine_tile *t, const void *const *src,
                     void *const *dst);
/* The two halves of a product V Z.  The first makes sums in double, row i at
 * sums + i ld.  The second makes the outputs from such sums. */
void kf_combine_sums(const kf_combine_tile *t, const void *const *src,
                     double *sums, size_t ld);
void kf_combine_rounded(const kf_combine_tile *t, const void *const *sums,
                        void *const *dst);
void kf_combine_done(void);

/* Returns the SIMD level in use: "avx512", "avx2" or "plain".  It is the best
 * that the processor has, or KOFN_SIMD if that is lower. */
const char *kf_combine_level(void);
/* Sets the level for all threads.  False, and no change, if it is unknown or
 * the processor lacks it. */
bool kf_combine_use(const char *level);

/* ---- between combine.c and the kernels ----------------------------------- */

#define KF_COMBINE_ROWS 6  /* most outputs of any kernel */
#define KF_COMBINE_LINE 64 /* bytes in a cache line */

/* Returns the bytes from p to the next line boundary; 0 if p is at one. */
static inline size_t kf_to_line(const void *p)
{
    return (KF_COMBINE_LINE - (uintptr_t)p % KF_COMBINE_LINE) % KF_COMBINE_LINE;
}
#define KF_ROUNDED 2 /* kernel[]: from doubles to floats */

/* Makes some outputs from some sources.  With w_i[t] = acc[i*ldacc + t -
 * begin],
 *
 *     sum_i[t] = (first ? 0 : w_i[t]) + sum_j D[i*ldd + col[j]] src[j][t]
 *
 * goes to dst[i] if `last`, else back to w_i. */
typedef struct kf_combine_block {
    size_t k;
    const char *const *src;
    const size_t *col;
    const double *D;
    size_t ldd;
    void *const *dst;
    double *acc;
    size_t ldacc, begin;
    bool first, last;
    bool stream;  /* use non-temporal stores at line boundaries; the caller
                   * fences */
    size_t ahead; /* prefetch distance of sources in bytes, or 0 */
} kf_combine_block;

/* Computes columns from .. to-1 of a block. */
typedef void kf_combine_kernel(const kf_combine_block *b, size_t from,
                               size_t to);

typedef struct kf_combine_simd {
    const char *name;
    size_t rows;         /* outputs of the largest kernel */
    void (*fence)(void); /* to call after streaming */
    kf_combine_kernel *kernel[3][KF_COMBINE_ROWS]; /* [dtype, or KF_ROUNDED]
                                                      [outputs - 1] */
} kf_combine_simd;

/* Return the kernels, or NULL if the processor cannot run them. */
const kf_combine_simd *kf_combine_plain(void);
#if defined(__x86_64__) && defined(__GNUC__)
#define KF_COMBINE_X86 1
const kf_combine_simd *kf_combine_avx512(void);
const kf_combine_simd *kf_combine_avx2(void);
#else
#define KF_COMBINE_X86 0
#endif

#endif
