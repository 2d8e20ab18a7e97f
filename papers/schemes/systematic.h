/* systematic.h -- real codes for schemes that code one side of a product.
 *
 * Rows go into the caller's memory; no state is kept. */
#ifndef KF_SYSTEMATIC_H
#define KF_SYSTEMATIC_H

#include "code/author.h"

/* An any-k-of-n code [I; P] with real coefficients, for one side of a product.
 * The code of the other side must commute with it, so it is real.  *state
 * serves its rows and is freed with kofn_free; it may be NULL. */
kofn_status kf_schemes_systematic(size_t n, size_t k, uint64_t seed,
                                  void **state);
void kf_schemes_systematic_row(size_t n, size_t k, const void *state, size_t i,
                               double *row);

/* Returns the largest d with d d <= n that divides n. */
size_t kf_schemes_divisor(size_t n);

#endif
