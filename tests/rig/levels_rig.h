/* levels_rig.h -- matrices with rows and columns of very different size, and
 * the error of a product, element by element, compared with long double. */
#ifndef KF_TEST_LEVELS_RIG_H
#define KF_TEST_LEVELS_RIG_H

#include "rig.h"

#include <float.h>

/* Returns a random size. The largest and the smallest differ by a factor of
 * 10^digits. */
static inline double line(kf_rng *r, double digits)
{
    return pow(10, digits * (kf_rng_uniform(r) - 0.5));
}

static inline void set(kofn_matrix *a, size_t i, size_t j, double by, double of)
{
    if (a->dtype == KOFN_F64)
        ((double *)a->data)[i * a->ld + j] = by * of;
    else
        ((float *)a->data)[i * a->ld + j] = (float)(by * of);
}

static inline double as_double(const kofn_matrix *a, size_t e)
{
    return a->dtype == KOFN_F64 ? ((double *)a->data)[e]
                                : (double)((float *)a->data)[e];
}

/* Fills A with numbers from 1 to 2 of either sign, times a factor of the row
 * and one of the column. NULL means ones. */
static inline void fill(kofn_matrix *a, const double *row, const double *col,
                        kf_rng *r)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            double x = 1 + kf_rng_uniform(r);

            set(a, i, j, (row ? row[i] : 1) * (col ? col[j] : 1),
                kf_rng_below(r, 2) ? x : -x);
        }
}

/* Computes an element of the product, and of the product of absolute values. */
static inline void element(const double *a, const double *b, size_t n,
                           size_t step, long double *sum, long double *size)
{
    *sum = *size = 0;
    for (size_t k = 0; k < n; k++) {
        long double x = (long double)a[k] * b[k * step];

        *sum += x;
        *size += fabsl(x);
    }
}

/* Returns the largest |y - exact| / (|A| |x|). */
static inline double worst(const double *a, const double *b, const double *y,
                           size_t m, size_t n, size_t p)
{
    double most = 0;

    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < p; j++) {
            long double sum, size;

            element(a + i * n, b + j, n, p, &sum, &size);
            if (!isfinite(y[i * p + j]))
                return INFINITY;
            if (size > 0)
                most = fmax(most, (double)(fabsl(y[i * p + j] - sum) / size));
            else
                assert_true(y[i * p + j] == 0);
        }
    return most;
}

#endif
