/* vector.h -- vector operations of the iterations.
 *
 * All are pure functions of the caller's vectors. */
#ifndef KF_LEARN_VECTOR_H
#define KF_LEARN_VECTOR_H

#include "base/base.h"
#include "mat/mat.h"

#include <math.h>

/* Checks that a has this shape, is float64 and has room for results. */
static inline kofn_status kf_vector_check(const kofn_matrix *a, size_t rows,
                                          size_t cols, const char *name)
{
    if (!a || !a->data || a->rows != rows || a->cols != cols || a->ld != cols ||
        a->dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "%s must be %zu x %zu, contiguous, float64",
                       name, rows, cols);
    return kf_mat_check_matrix(a, name);
}

/* Returns the Euclidean length of x, even if squares overflow or underflow;
 * NaN if an entry is NaN. */
static inline double kf_norm(const double *x, size_t n)
{
    double top = 0, sum = 0;

    for (size_t i = 0; i < n; i++)
        top = kf_larger(top, fabs(x[i]));
    if (!(top > 0 &&
          top < HUGE_VAL)) /* top is 0, infinite or NaN, and so is the norm */
        return top;
    for (size_t i = 0; i < n; i++)
        sum += x[i] / top * (x[i] / top);
    return top * sqrt(sum);
}

#endif
