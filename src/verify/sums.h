/* sums.h -- whether vectors of several machines are the same, and random sums
 * that show it.
 *
 * Pure functions; nothing is owned. */
#ifndef KF_SUMS_H
#define KF_SUMS_H

#include "base/base.h"

/* A sum with random weights, and the bound of its magnitude for any weights. */
typedef struct kf_weighed {
    double sum, most;
} kf_weighed;

/* Returns the sum of a vector and its scalars, with weights that
 * follow from a key which the source of the vector does not know.  The weights
 * are products of two numbers from 1/2 to 1, of a span and of a place in it.
 * So an error e of one number is seen if e > 4 t.  Errors of several numbers
 * come within t of zero with a chance of at most 4 t / e, with e the
 * largest. */
kf_weighed kf_sums_print(uint64_t key, const double *scalar, size_t scalars,
                         const double *v, size_t rows);
/* Returns a sum with weights that everyone knows; one random number gives those
 * of four numbers.  Updates *most, the largest magnitude of the numbers. */
double kf_sums_vote(uint64_t key, const double *x, size_t n, double *most);
/* Returns the difference of such sums that rounding explains.  `noise` is the
 * relative error of the numbers, with a least value for their type. */
double kf_sums_room(double noise, bool single, size_t numbers, double most);
/* True if n numbers differ by at most `room` each.  A NaN differs from
 * everything. */
bool kf_sums_alike(const double *x, const double *y, size_t n, double room);
/* Returns the largest of `most` and the magnitudes of n numbers. */
double kf_sums_greatest(const double *x, size_t n, double most);

#endif
