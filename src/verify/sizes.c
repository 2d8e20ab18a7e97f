/* sizes.c -- bounds the size of answers where the answers themselves are needed
 * for it: sums of functions, and A' A x.
 *
 * Nothing is known of a function but its answers (math/errors.md 8).
 *
 * Entry e of an answer A' A x is the product of column e of a block E with E x
 * (math/errors.md 9).  The norm of that column is at most the norm of A's
 * column times the weight of the seat.  The norm of E x follows from the
 * answer: its product with x is |E x|^2.  A wrong answer can enlarge it only up
 * to the weight times the sum of all |column| |x|.
 *
 * Owns nothing beyond a call.  The bound may be too large but never too small,
 * or honest answers would be accused. */
#include "compare.h"

#include <assert.h>
#include <float.h>
#include <math.h>

/* ---- sums ---------------------------------------------------------------- */

/* Measures a strip by the largest answer to it, because nothing else is known
 * of a function.  Workers round their answers once (math/errors.md 8).  Answers
 * that are not finite are ignored. */
#define MEASURE(name, type)                                                    \
    static void name(const type *restrict y, size_t n, double *restrict scale) \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            double x = fabs((double)y[i]);                                     \
                                                                               \
            scale[i] = x > scale[i] && x <= DBL_MAX ? x : scale[i];            \
        }                                                                      \
    }
MEASURE(measure_f64, double)
MEASURE(measure_f32, float)

void kf_sizes_of_sums(const kf_compare *c, double *scale)
{
    size_t components = c->plan->layout.components, n = c->decoder->seats;

    for (size_t k = 0; k < n * components; k++) {
        const kf_source *from = &c->source[k / components];
        size_t at = k % components * (from->hi - from->lo) + c->lo - from->lo;
        const void *y = kf_at(from->result, at, 0);

        if (from->result->dtype == KOFN_F64)
            measure_f64(y, c->hi - c->lo, scale + c->lo);
        else
            measure_f32(y, c->hi - c->lo, scale + c->lo);
    }
}

/* ---- A' A x -------------------------------------------------------------- */

/* The scale is at least the sum of all magnitudes divided by this, because
 * partial sums of E x may cancel.  They are at most that sum, and their
 * rounding errors act like random ones. */
#define CANCELS 8

/* Returns the size below which numbers may have lost digits. */
static double least_of(kofn_dtype dtype)
{
    return dtype == KOFN_F64 ? 0x1p-1022 / 0x1p-52 : 0x1p-126 / 0x1p-23;
}

/* Returns entry e of the input times the norm of that column, divided by `top`.
 */
static double share(const double *col, const kofn_matrix *x, size_t e,
                    double least, double top)
{
    return fmax(col[e], least) / top * kf_mat_entry(x, e, 0);
}

/* Returns the largest |column| |x| within the range of a double. */
static double largest(const double *col, const kofn_matrix *x, double least)
{
    double top = least;

    for (size_t e = 0; e < x->rows; e++)
        top = fmax(top, fabs(share(col, x, e, least, 1)));
    return fmin(top, DBL_MAX);
}

/* Returns |E x|^2 of the block of this answer, divided by the squares of its
 * weight and of `top`. */
static double squares_of_margins(const kf_source *from, const double *col,
                                 const kofn_matrix *x, double top,
                                 double weight)
{
    double least = least_of(x->dtype), sum = 0;

    assert(weight > 0);
    if (from->lo || from->hi != x->rows) /* only some strips: no information */
        return NAN;
    for (size_t e = 0; e < x->rows; e++)
        sum +=
            share(col, x, e, least, top) * (kf_mat_entry(from->result, e, 0) /
                                            fmax(col[e], least) / top / weight);
    return sum;
}

/* Computes the largest honest |E x|, divided by its weight and `top`.  Results
 * that are not finite may have any size. */
static kofn_status largest_margins(const kf_compare *c, const double *col,
                                   const kofn_matrix *x, double top,
                                   double most, double *out)
{
    *out = 0;
    for (size_t i = 0; i < c->decoder->seats; i++) {
        const kf_seat *seat;
        double squares;

        TRY(kf_code_seat(c->code, c->decoder->seat[i], &seat));
        squares = squares_of_margins(&c->source[i], col, x, top,
                                     seat->weight > 0 ? seat->weight : 1);
        if (squares > 0)
            *out = fmax(*out, sqrt(squares));
        else if (isnan(squares))
            *out = most;
    }
    *out = fmin(*out, most);
    return KOFN_OK;
}

kofn_status kf_sizes_of_gram(const kf_compare *c, const double *col,
                             const kofn_matrix *x, double *row)
{
    double least = least_of(x->dtype), top = largest(col, x, least);
    double all = 0, squares = 0, scale;

    assert(x->cols == 1);
    for (size_t e = 0; e < x->rows; e++) {
        double z = share(col, x, e, least, top);

        all += fabs(z);
        squares += z * z;
    }
    TRY(largest_margins(c, col, x, top, all, &scale));
    scale = fmax(scale, fmax(sqrt(squares), all / CANCELS));
    scale = fmax(fmin(top * scale, DBL_MAX), least);
    for (size_t e = c->lo; e < c->hi; e++)
        row[e] = fmin(fmax(col[e], least) * scale, DBL_MAX);
    return KOFN_OK;
}
