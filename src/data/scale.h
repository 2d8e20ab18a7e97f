/* scale.h -- rows and columns of matrices divided by their norms.
 *
 * A norm has a mantissa and an exponent.  Squares, norms and products of two
 * norms leave the range of a double before the numbers do.
 *
 * A kf_scale is a value.  kf_scales owns one for each row or column until
 * kf_scales_free. */
#ifndef KF_SCALE_H
#define KF_SCALE_H

#include "mat/mat.h"

/* A norm: x / norm is ldexp(x * over, -exponent).  If the norm is 0, this is x.
 */
typedef struct kf_scale {
    double over;
    int exponent;
    bool zero;
} kf_scale;

/* Two factors with exponents below this, and a number between 2^-100 and 2^100,
 * can be multiplied as doubles. */
#define KF_SCALE_PLAIN 400

/* The scales of `count` rows or columns. */
typedef struct kf_scales {
    size_t count;
    kf_scale *of;
    double *by;   /* over 2^-exponent */
    bool plain;   /* all of `by` can be used as plain factors */
    int smallest; /* least exponent of nonzero norms, or INT_MAX */
} kf_scales;

/* Return the sum of squares; true if it has lost nothing to the range of a
 * double. */
double kf_scale_squares(const void *x, size_t n, kofn_dtype dtype);
static inline bool kf_scale_fits(double squares)
{
    return squares > 1e-280 && squares < 1e280;
}

/* Adds the squares of each column. */
void kf_scale_add_squares(const kofn_matrix *a, double *sum);
/* Returns the scale of n numbers, `step` apart. */
kf_scale kf_scale_of(const void *x, size_t n, size_t step, kofn_dtype dtype);
/* Computes the scales of all columns of a matrix. */
kofn_status kf_scales_of_columns(const kofn_matrix *a, kf_scales *out);
/* Sets all scales to this one. */
void kf_scales_scaling(kf_scales *s, kf_scale one);
void kf_scales_free(kf_scales *s);

/* Returns the scale of the larger norm. */
kf_scale kf_scale_larger(kf_scale a, kf_scale b);

/* Converts n numbers to doubles, divided by `row` and, unless it is NULL, by
 * their own scale in `col`. */
void kf_scale_row(const void *x, size_t n, kofn_dtype dtype, kf_scale row,
                  const kf_scales *col, double *to);

#endif
