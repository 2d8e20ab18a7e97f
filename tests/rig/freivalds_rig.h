/* freivalds_rig.h -- makes products of all kinds without the library, and the
 * same products in long double. */
#ifndef FREIVALDS_RIG_H
#define FREIVALDS_RIG_H

#include "support.h"

#include "base/rng.h"

#include <cblas.h>
#include <kofn/check.h>
#include <math.h>
#include <stdlib.h>

/* Kinds of numbers in a row. */
typedef enum kind {
    NORMAL,
    POSITIVE, /* the sums grow */
    EQUAL,    /* one number: the rounding goes one way */
    POWERS,   /* of 10, from -9 to 9, by row and by column */
    WIDE,     /* the same, by entry */
    HOLES,    /* mostly zeros, in whole rows */
    INNER,    /* large columns of A, small rows of B */
    KINDS
} kind;

/* The way of computing: BLAS, or sums in some order. */
typedef enum way { BY_BLAS, FORWARD, BACKWARD, PAIRWISE, FUSED, WAYS } way;

typedef struct trial {
    size_t m, n, p;
    kofn_dtype dtype;
    kofn_matrix A, B, C;
    long double *exact, *size; /* and sums of magnitudes: m x p */
    double *row, *col;         /* norms */
} trial;

static inline double get(const kofn_matrix *a, size_t i, size_t j)
{
    return a->dtype == KOFN_F64
               ? ((const double *)a->data)[i * a->ld + j]
               : (double)((const float *)a->data)[i * a->ld + j];
}

static inline void put(kofn_matrix *a, size_t i, size_t j, double x)
{
    if (a->dtype == KOFN_F64)
        ((double *)a->data)[i * a->ld + j] = x;
    else
        ((float *)a->data)[i * a->ld + j] = (float)x;
}

/* Allocates a matrix with a gap behind each row. */
static inline kofn_matrix room(size_t rows, size_t cols, kofn_dtype dtype)
{
    return (kofn_matrix){calloc(rows * (cols + 3), 8), rows, cols, cols + 3,
                         dtype};
}

static inline void fill(kofn_matrix *a, kind k, bool right, kf_rng *rng)
{
    double one = kf_rng_uniform(rng) + 0.3;

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            size_t line = right ? j : i, inner = right ? i : j;
            double x = kf_rng_normal(rng);

            if (k == POSITIVE)
                x = kf_rng_uniform(rng);
            if (k == EQUAL)
                x = one;
            if (k == POWERS)
                x *= pow(10, (double)(line * 7 % 19) - 9);
            if (k == WIDE)
                x *= pow(10, (double)kf_rng_below(rng, 19) - 9);
            if (k == HOLES && (line % 5 == 0 || kf_rng_below(rng, 4)))
                x = 0;
            if (k == INNER)
                x *= pow(10, (right ? -1 : 1) * ((double)(inner % 13) - 6));
            put(a, i, j, x);
        }
}

static inline float pairwise_f32(const float *x, size_t n)
{
    return n == 1 ? *x
                  : pairwise_f32(x, n / 2) + pairwise_f32(x + n / 2, n - n / 2);
}

static inline double pairwise_f64(const double *x, size_t n)
{
    return n == 1 ? *x
                  : pairwise_f64(x, n / 2) + pairwise_f64(x + n / 2, n - n / 2);
}

/* Returns one entry in the precision of the trial. */
static inline double entry_by(const trial *t, way w, size_t i, size_t j)
{
    double sum = 0, terms[4096];
    float sum32 = 0, terms32[4096];

    for (size_t k = 0; k < t->n; k++) {
        size_t at = w == BACKWARD ? t->n - 1 - k : k;
        double a = get(&t->A, i, at), b = get(&t->B, at, j);

        if (t->dtype == KOFN_F64) {
            terms[k] = a * b;
            sum = w == FUSED ? fma(a, b, sum) : sum + a * b;
        } else {
            terms32[k] = (float)a * (float)b;
            sum32 = w == FUSED ? fmaf((float)a, (float)b, sum32)
                               : sum32 + terms32[k];
        }
    }
    if (w == PAIRWISE)
        return t->dtype == KOFN_F64 ? pairwise_f64(terms, t->n)
                                    : (double)pairwise_f32(terms32, t->n);
    return t->dtype == KOFN_F64 ? sum : (double)sum32;
}

static inline void multiply_by(trial *t, way w)
{
    int m = (int)t->m, n = (int)t->n, p = (int)t->p;

    if (w == BY_BLAS && t->dtype == KOFN_F64)
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, p, n, 1,
                    t->A.data, (int)t->A.ld, t->B.data, (int)t->B.ld, 0,
                    t->C.data, (int)t->C.ld);
    else if (w == BY_BLAS)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, p, n, 1,
                    t->A.data, (int)t->A.ld, t->B.data, (int)t->B.ld, 0,
                    t->C.data, (int)t->C.ld);
    else
        for (size_t i = 0; i < t->m; i++)
            for (size_t j = 0; j < t->p; j++)
                put(&t->C, i, j, entry_by(t, w, i, j));
}

static inline void make_trial(trial *t, size_t m, size_t n, size_t p,
                              kofn_dtype dtype, kind k, kf_rng *rng)
{
    *t = (trial){m,
                 n,
                 p,
                 dtype,
                 room(m, n, dtype),
                 room(n, p, dtype),
                 room(m, p, dtype),
                 NULL,
                 NULL,
                 NULL,
                 NULL};
    fill(&t->A, k, false, rng);
    fill(&t->B, k, true, rng);
}

/* Computes the product in another way than the library: sums in long double. */
static inline void know_exactly(trial *t)
{
    t->exact = calloc(t->m * t->p, sizeof *t->exact);
    t->size = calloc(t->m * t->p, sizeof *t->size);
    t->row = calloc(t->m, sizeof *t->row);
    t->col = calloc(t->p, sizeof *t->col);
    for (size_t i = 0; i < t->m; i++)
        for (size_t k = 0; k < t->n; k++)
            t->row[i] = hypot(t->row[i], get(&t->A, i, k));
    for (size_t k = 0; k < t->n; k++)
        for (size_t j = 0; j < t->p; j++)
            t->col[j] = hypot(t->col[j], get(&t->B, k, j));
    for (size_t i = 0; i < t->m; i++)
        for (size_t j = 0; j < t->p; j++)
            for (size_t k = 0; k < t->n; k++) {
                long double x = (long double)get(&t->A, i, k) *
                                (long double)get(&t->B, k, j);

                t->exact[i * t->p + j] += x;
                t->size[i * t->p + j] += fabsl(x);
            }
}

static inline void drop_trial(trial *t)
{
    free(t->A.data);
    free(t->B.data);
    free(t->C.data);
    free(t->exact);
    free(t->size);
    free(t->row);
    free(t->col);
}

#endif
