/* rounding.h -- how large rounding errors of right results are.
 *
 * Constants were measured on data of all kinds and with several BLAS
 * (docs/errors.md). */
#ifndef KF_ROUNDING_H
#define KF_ROUNDING_H

#include <math.h>

/* A sum of independent terms exceeds KF_ROUNDING_FAR times the root of the sum
 * of their squares with probability 2 exp(-KF_ROUNDING_FAR^2 / 2). */
#define KF_ROUNDING_FAR 8

/* Returns the usual rounding of a sum of products, in units of both norms.  It
 * grows with the square root of the number of terms. */
static inline double kf_rounding_usual(double terms)
{
    return 0.5 + 0.1 * sqrt(terms);
}

#endif
