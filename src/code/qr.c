/* qr.c -- Householder's QR, with or without pivoting.
 *
 * Sums have the same order on every machine, so it uses no BLAS and no fused
 * multiply-add.  Works in the caller's arrays. */
#include "qr.h"

#include <assert.h>
#include <math.h>

void kf_qr_new(kf_qr *f, kf_arrays *a, size_t m, size_t n, size_t wide)
{
    *f = (kf_qr){.m = m, .n = n};
    f->A = kf_arrays_table(a, m, n);
    f->tau = kf_arrays_table(a, n, 1);
    f->v = kf_arrays_new(a, m, sizeof *f->v);
    f->w = kf_arrays_new(a, kf_max(n, wide), sizeof *f->w);
}

void kf_qr_reflect(const kf_qr *f, size_t j, size_t cols, double *B, size_t ldb)
{
    size_t rows = f->m - j;

    assert(j < f->m);
    assert(j < f->n);
    f->v[0] = -f->tau[j];
    for (size_t i = 1; i < rows; i++)
        f->v[i] = -f->tau[j] * f->A[(j + i) * f->n + j];
    memset(f->w, 0, cols * sizeof *f->w);
    kf_code_subtract_product(
        &(kf_difference){1, rows, cols, f->v, rows, B, ldb, f->w, cols});
    f->v[0] = 1;
    for (size_t i = 1; i < rows; i++)
        f->v[i] = f->A[(j + i) * f->n + j];
    kf_code_subtract_product(
        &(kf_difference){rows, 1, cols, f->v, 1, f->w, cols, B, ldb});
}

/* Reflects column j to its norm and zeros; false if it is 0. */
static bool reflector(kf_qr *f, size_t j)
{
    double top = 0, sum = 0, *a = f->A + j * f->n + j, norm, head;

    for (size_t i = 0; i < f->m - j; i++)
        top = fmax(top, fabs(a[i * f->n]));
    if (!(top > 0) || isinf(top))
        return false;
    if (f->even)
        top = 1;
    for (size_t i = 0; i < f->m - j; i++)
        sum += a[i * f->n] / top * (a[i * f->n] / top);
    norm = a[0] > 0 ? -top * sqrt(sum) : top * sqrt(sum);
    head = a[0] - norm;
    f->tau[j] = -head / norm;
    for (size_t i = 1; i < f->m - j; i++)
        a[i * f->n] /= head;
    kf_qr_reflect(f, j, f->n - j - 1, a + 1, f->n);
    a[0] = norm;
    return true;
}

/* Moves the largest remaining column to j and returns its norm. */
static double pivot(kf_qr *f, size_t j)
{
    size_t best = j, was = f->pick[j];

    assert(f->pick);
    assert(j < f->n);
    memset(f->w, 0, f->n * sizeof *f->w);
    for (size_t i = j; i < f->m; i++)
        for (size_t c = j; c < f->n; c++)
            f->w[c] += f->A[i * f->n + c] * f->A[i * f->n + c];
    for (size_t c = j + 1; c < f->n; c++)
        if (f->w[c] > f->w[best])
            best = c;
    for (size_t i = 0; i < f->m && best != j; i++) {
        double t = f->A[i * f->n + j];

        f->A[i * f->n + j] = f->A[i * f->n + best];
        f->A[i * f->n + best] = t;
    }
    f->pick[j] = f->pick[best];
    f->pick[best] = was;
    return sqrt(f->w[best]);
}

static bool exhausted(const kf_qr *f, size_t j, double left)
{
    return j > 0 && left <= fabs(f->A[0]) * f->nothing &&
           left <= f->cliff * fabs(f->A[(j - 1) * f->n + j - 1]);
}

void kf_qr_factor(kf_qr *f)
{
    assert(f->rank == 0);
    for (size_t j = 0; f->pick && j < f->n; j++)
        f->pick[j] = j;
    for (size_t j = 0; j < kf_min(f->m, f->n); j++, f->rank++)
        if ((f->pick && exhausted(f, j, pivot(f, j))) || !reflector(f, j))
            return;
}
