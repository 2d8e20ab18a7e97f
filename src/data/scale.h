/* scale.h -- lines of matrices divided by their norms.
 *
 * A norm is kept as a mantissa and an exponent: squares, norms and products of
 * two of them are beyond the range of a double before the numbers are.
 *
 * A kf_scale is a value; kf_scales owns one for each line until
 * kf_scales_free. */
#ifndef KF_SCALE_H
#define KF_SCALE_H

#include "mat/mat.h"

/* x / norm is ldexp(x * over, -exponent).  Of a norm of 0, x itself. */
typedef struct kf_scale {
    double over;
    int exponent;
    bool zero;
} kf_scale;

/* Two factors with exponents below this, and a number between 2^-100 and 2^100,
 * can be multiplied as doubles. */
#define KF_SCALE_PLAIN 400

/* Of rows, or of columns, so many of them. */
typedef struct kf_scales {
    size_t count;
    kf_scale *of;
    double *by;   /* over 2^-exponent, where ... */
    bool plain;   /* ... all of them can be multiplied with as they are */
    int smallest; /* exponent of those that are not zero; INT_MAX: all are */
} kf_scales;

/* Sum of squares; and has it lost nothing to the range of a double? */
double kf_scale_squares(const void *x, size_t n, kofn_dtype dtype);
static inline bool kf_scale_fits(double squares)
{
    return squares > 1e-280 && squares < 1e280;
}

/* Adds those of each column. */
void kf_scale_add_squares(const kofn_matrix *a, double *sum);
/* Of numbers `step` apart. */
kf_scale kf_scale_of(const void *x, size_t n, size_t step, kofn_dtype dtype);
/* Of all columns of a matrix. */
kofn_status kf_scales_of_columns(const kofn_matrix *a, kf_scales *out);
/* All of them are this one. */
void kf_scales_level(kf_scales *s, kf_scale one);
void kf_scales_free(kf_scales *s);

/* The scale of the larger norm. */
kf_scale kf_scale_larger(kf_scale a, kf_scale b);

/* n numbers as doubles, over `row` and, unless it is NULL, each over its own of
 * `col`. */
void kf_scale_row(const void *x, size_t n, kofn_dtype dtype, kf_scale row,
                  const kf_scales *col, double *to);

#endif
