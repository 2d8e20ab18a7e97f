/* scale.c -- norms of rows or columns of any range, and division by them.
 *
 * Owns the mantissas and exponents, which kf_scales_free frees.  No square is
 * formed that could leave the range. */
#include "scale.h"

#include "base/vectors.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* ---- norms --------------------------------------------------------------- */

/* Returns the norm: the root of `squares` times 2^exponent. */
static kf_scale from_squares(double squares, int exponent)
{
    kf_scale s = {1, 0, squares == 0};
    int more;

    if (s.zero)
        return s;
    s.over = 1 / frexp(sqrt(squares), &more);
    s.exponent = exponent + more;
    return s;
}

/* Computes the norm of numbers divided by the power of two above the largest.
 */
static kf_scale careful(const void *x, size_t n, size_t step, kofn_dtype dtype)
{
    double most = 0, squares = 0;
    int exponent;

    for (size_t i = 0; i < n; i++)
        most = kf_larger(most, fabs(kf_mat_number(x, i * step, dtype)));
    frexp(most, &exponent);
    for (size_t i = 0; i < n; i++) {
        double y = ldexp(kf_mat_number(x, i * step, dtype), -exponent);

        squares += y * y;
    }
    return from_squares(squares, exponent);
}

/* Blocks of a fixed size, for vector instructions. */
#define SQUARES(name, type)                                                    \
    KF_VECTORS()                                                               \
    static double name(const type *x, size_t n)                                \
    {                                                                          \
        double sum[16] = {0}, all = 0;                                         \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + 16 <= n; i += 16)                                           \
            for (size_t k = 0; k < 16; k++)                                    \
                sum[k] += (double)x[i + k] * (double)x[i + k];                 \
        for (; i < n; i++)                                                     \
            all += (double)x[i] * (double)x[i];                                \
        for (size_t k = 0; k < 16; k++)                                        \
            all += sum[k];                                                     \
        return all;                                                            \
    }
SQUARES(squares_f64, double)
SQUARES(squares_f32, float)

double kf_scale_squares(const void *x, size_t n, kofn_dtype dtype)
{
    return dtype == KOFN_F64 ? squares_f64(x, n) : squares_f32(x, n);
}

kf_scale kf_scale_of(const void *x, size_t n, size_t step, kofn_dtype dtype)
{
    double squares;

    if (step != 1)
        return careful(x, n, step, dtype);
    squares = kf_scale_squares(x, n, dtype);
    return kf_scale_fits(squares) ? from_squares(squares, 0)
                                  : careful(x, n, 1, dtype);
}

#define ADD_SQUARES(name, type)                                                \
    KF_VECTORS()                                                               \
    static void name(double *restrict sum, const type *restrict x, size_t n)   \
    {                                                                          \
        for (size_t c = 0; c < n; c++)                                         \
            sum[c] += (double)x[c] * (double)x[c];                             \
    }
ADD_SQUARES(add_squares_f64, double)
ADD_SQUARES(add_squares_f32, float)

void kf_scale_add_squares(const kofn_matrix *a, double *sum)
{
    for (size_t i = 0; i < a->rows; i++) {
        if (a->dtype == KOFN_F64)
            add_squares_f64(sum, kf_at(a, i, 0), a->cols);
        else
            add_squares_f32(sum, kf_at(a, i, 0), a->cols);
    }
}

static void finish(kf_scales *s)
{
    s->plain = true;
    s->smallest = INT_MAX;
    for (size_t j = 0; j < s->count; j++) {
        int e = s->of[j].exponent;

        s->by[j] = ldexp(s->of[j].over, -e);
        s->plain &= abs(e) <= KF_SCALE_PLAIN;
        if (!s->of[j].zero && e < s->smallest)
            s->smallest = e;
    }
}

kofn_status kf_scales_of_columns(const kofn_matrix *a, kf_scales *out)
{
    kf_scales s = {.count = a->cols,
                   .of = kf_new(a->cols, sizeof *s.of),
                   .by = kf_zero(a->cols, sizeof *s.by)};

    *out = s;
    if (!s.of || !s.by) {
        kf_scales_free(out);
        return KOFN_NOMEM;
    }
    kf_scale_add_squares(a, s.by);
    for (size_t j = 0; j < a->cols; j++)
        s.of[j] = kf_scale_fits(s.by[j])
                      ? from_squares(s.by[j], 0)
                      : careful(kf_at(a, 0, j), a->rows, a->ld, a->dtype);
    finish(&s);
    *out = s;
    return KOFN_OK;
}

void kf_scales_scaling(kf_scales *s, kf_scale one)
{
    for (size_t j = 0; j < s->count; j++)
        s->of[j] = one;
    finish(s);
}

kf_scale kf_scale_larger(kf_scale a, kf_scale b)
{
    if (a.zero || b.zero)
        return a.zero ? b : a;
    if (a.exponent != b.exponent)
        return a.exponent > b.exponent ? a : b;
    return a.over < b.over ? a : b;
}

void kf_scales_free(kf_scales *s)
{
    kf_free(s->of);
    kf_free(s->by);
    *s = (kf_scales){0};
}

/* ---- lines --------------------------------------------------------------- */

#define MULTIPLY(name, type)                                                   \
    KF_VECTORS()                                                               \
    static void name(const type *restrict x, size_t n, double by,              \
                     double *restrict to)                                      \
    {                                                                          \
        for (size_t k = 0; k < n; k++)                                         \
            to[k] = (double)x[k] * by;                                         \
    }                                                                          \
    KF_VECTORS()                                                               \
    static void name##_each(const type *restrict x, size_t n, double by,       \
                            const double *restrict each, double *restrict to)  \
    {                                                                          \
        for (size_t k = 0; k < n; k++)                                         \
            to[k] = (double)x[k] * (by * each[k]);                             \
    }
MULTIPLY(multiply_f64, double)
MULTIPLY(multiply_f32, float)

static void multiply_plain(const void *x, size_t n, kofn_dtype dtype, double by,
                           const double *each, double *to)
{
    if (dtype == KOFN_F64 && each)
        multiply_f64_each(x, n, by, each, to);
    else if (dtype == KOFN_F64)
        multiply_f64(x, n, by, to);
    else if (each)
        multiply_f32_each(x, n, by, each, to);
    else
        multiply_f32(x, n, by, to);
}

void kf_scale_row(const void *x, size_t n, kofn_dtype dtype, kf_scale row,
                  const kf_scales *col, double *to)
{
    assert(!col || n <= col->count);
    if (abs(row.exponent) <= KF_SCALE_PLAIN && (!col || col->plain)) {
        multiply_plain(x, n, dtype, ldexp(row.over, -row.exponent),
                       col ? col->by : NULL, to);
        return;
    }
    for (size_t k = 0; k < n; k++) {
        double over = row.over * (col ? col->of[k].over : 1);
        int exponent = row.exponent + (col ? col->of[k].exponent : 0);

        to[k] = ldexp(kf_mat_number(x, k, dtype), -exponent) * over;
    }
}
