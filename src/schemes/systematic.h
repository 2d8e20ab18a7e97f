/* systematic.h -- between schemes that code a side of a product with reals.
 *
 * Rows go into the caller's memory, and nothing is kept. */
#ifndef KF_SYSTEMATIC_H
#define KF_SYSTEMATIC_H

#include "code/author.h"

/* A code of any k of n, [I; P] with real coefficients: those that stand on one
 * side of a product while the other has a code of its own have to commute with
 * that.  *state is for its rows and freed with kofn_free; it may be NULL. */
kofn_status kf_schemes_systematic(size_t n, size_t k, uint64_t seed,
                                  void **state);
void kf_schemes_systematic_row(size_t n, size_t k, const void *state, size_t i,
                               double *row);

/* The largest d with d d <= n that divides n. */
size_t kf_schemes_divisor(size_t n);

#endif
