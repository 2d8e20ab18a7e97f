/* combine.h -- the dot-product engine: many sources, many destinations.
 *
 *     dst[i][t] = sum_j D[i*ldd + j] * src[j][t]      i < m, j < k, t < len
 *
 * over vectors that lie anywhere in memory.  All encoding, re-encoding and
 * decoding in kofn is a call of this.
 */
#ifndef KOFN_COMBINE_H
#define KOFN_COMBINE_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* src and dst point to doubles or floats, as `dtype` says, of any alignment;
 * float32 is accumulated in double and rounded once.  len == 0 or m == 0 does
 * nothing; k == 0 writes zeros.  A source whose coefficients are all zero is
 * not read (so that what it holds, NaN included, does not matter).
 *
 * Error: |dst - exact| <= (k+1) u sum_j |D_ij src_j| with u = 2^-53, plus for
 * float32 half a unit in the last place of the result.
 *
 * KOFN_INVAL when a destination overlaps a source or another destination. */
KOFN_API kofn_status kofn_combine(size_t m, size_t k, const double *D,
                                  size_t ldd, const void *const *src,
                                  void *const *dst, size_t len,
                                  kofn_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
