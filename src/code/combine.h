/* combine.h -- the dot-product engine: many sources, many destinations.
 *
 *     dst[i][t] = sum_j D[i*ldd + j] * src[j][t]      i < m, j < k, t < len
 *
 * over vectors that lie anywhere in memory.  All encoding, re-encoding and
 * decoding in kofn is a call of this.
 *
 * combine.c cuts a problem into blocks, a kernel computes one block.  There is
 * one kernel text, combine_kernel.h; combine_avx512.c, combine_avx2.c and
 * combine_plain.c give it vectors of their processor.
 *
 * The engine owns nothing: sources, destinations and coefficients are the
 * caller's, and no destination may overlap a source.  It allocates nothing and
 * may be called by many threads at a time.
 */
#ifndef KF_COMBINE_H
#define KF_COMBINE_H

#include "base/base.h"

/* src and dst point to doubles or floats, as `dtype` says, of any alignment;
 * float32 is accumulated in double and rounded once.  len == 0 or m == 0 does
 * nothing; k == 0 writes zeros.  A source whose coefficients are all zero is
 * not read (so that what it holds, NaN included, does not matter).  No
 * destination overlaps a source or another destination.
 *
 * Error: |dst - exact| <= (k+1) u sum_j |D_ij src_j| with u = 2^-53, plus for
 * float32 half a unit in the last place of the result.
 *
 * Nothing is checked and nothing is allocated (up to 72 KiB of stack).  What an
 * element comes to does not depend on where in `len` it lies, so that tiling
 * changes no bit. */
typedef struct kf_combination {
    size_t m, k;
    const double *D;
    size_t ldd;
    const void *const *src;
    void *const *dst;
} kf_combination;
void kf_combine(const kf_combination *x, size_t len, kofn_dtype dtype);

/* A combination that is made tile by tile.  `far`: the tiles together are
 * larger than the caches (kf_combine_is_far); kf_combine_done comes last. */
typedef struct kf_combine_tile {
    size_t m, k, ldd;
    const double *D;
    size_t len;
    kofn_dtype dtype;
    bool far;
} kf_combine_tile;
bool kf_combine_is_far(size_t bytes);
/* kf_combine, of pieces too short to be told how far they are. */
void kf_combine_piece(const kf_combine_tile *t, const void *const *src,
                      void *const *dst);
/* The two halves of a product V Z: sums that stay in double, row i from
 * sums + i ld on, and from such the outputs. */
void kf_combine_sums(const kf_combine_tile *t, const void *const *src,
                     double *sums, size_t ld);
void kf_combine_rounded(const kf_combine_tile *t, const void *const *sums,
                        void *const *dst);
void kf_combine_done(void);

/* The level of SIMD in force: "avx512", "avx2" or "plain".  It is the best
 * that there is, or what KOFN_SIMD says where that is lower. */
const char *kf_combine_level(void);
/* Force a level from now on, in all threads.  False, and no change, when it is
 * unknown or the processor lacks it. */
bool kf_combine_use(const char *level);

/* ---- between combine.c and the kernels ----------------------------------- */

#define KF_COMBINE_ROWS 6  /* outputs of any kernel, at most */
#define KF_COMBINE_LINE 64 /* bytes in a line of the cache */

/* Bytes from p to where the next line begins, 0 where p begins one. */
static inline size_t kf_to_line(const void *p)
{
    return (KF_COMBINE_LINE - (uintptr_t)p % KF_COMBINE_LINE) % KF_COMBINE_LINE;
}
#define KF_ROUNDED 2 /* kernel[]: from doubles to floats */

/* Some outputs from some sources.  With w_i[t] = acc[i*ldacc + t - begin],
 *
 *     sum_i[t] = (first ? 0 : w_i[t]) + sum_j D[i*ldd + col[j]] src[j][t]
 *
 * goes to dst[i] when `last`, and back to w_i when not. */
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
    bool stream;  /* write around the cache where dst[i] + t begins a line;
                     the caller fences */
    size_t ahead; /* bytes by which sources are prefetched, or 0 */
} kf_combine_block;

/* Columns from .. to-1 of it. */
typedef void kf_combine_kernel(const kf_combine_block *b, size_t from,
                               size_t to);

typedef struct kf_combine_simd {
    const char *name;
    size_t rows;         /* outputs of the largest kernel */
    void (*fence)(void); /* after streaming */
    kf_combine_kernel *kernel[3][KF_COMBINE_ROWS]; /* [dtype, or KF_ROUNDED]
                                                      [outputs - 1] */
} kf_combine_simd;

/* NULL where the processor cannot. */
const kf_combine_simd *kf_combine_plain(void);
#if defined(__x86_64__) && defined(__GNUC__)
#define KF_COMBINE_X86 1
const kf_combine_simd *kf_combine_avx512(void);
const kf_combine_simd *kf_combine_avx2(void);
#else
#define KF_COMBINE_X86 0
#endif

#endif
