/* pcr_rig.h -- polynomially coded regression without rounds: seats that have
 * answered with their parts of A' A x. */
#ifndef KF_TEST_PCR_RIG_H
#define KF_TEST_PCR_RIG_H

#include "rig.h"
#include "sets.h"

#include "run/run.h"

#include <stdio.h>

/* ---- answers of all seats -------------------------------------------------
 */

typedef struct herd {
    kofn_plan *plan;
    const kofn_layout *L;
    kf_code *code;
    size_t n, d;
    kofn_matrix A, x;
    double *f;    /* n x d: the answer of each seat */
    double *want; /* A' A x, rounded from long double */
} herd;

/* Returns A' A x; terms are long double, so it is practically exact. */
static inline double *exact(const kofn_matrix *A, const kofn_matrix *x)
{
    double *a = as_doubles(A), *v = as_doubles(x);
    long double *y = numbers(A->cols, sizeof *y);
    double *out = numbers(A->cols, sizeof *out);

    for (size_t i = 0; i < A->rows; i++) {
        const double *row = a + i * A->cols;
        long double t = 0;

        for (size_t j = 0; j < A->cols; j++)
            t += (long double)row[j] * v[j];
        for (size_t j = 0; j < A->cols; j++)
            y[j] += t * row[j];
    }
    for (size_t j = 0; j < A->cols; j++)
        out[j] = (double)y[j];
    kf_free(a);
    kf_free(v);
    kf_free(y);
    return out;
}

/* Computes the answers as workers do. */
static inline void ask_all(herd *h)
{
    kf_resident res;
    size_t *seat = numbers(h->n, sizeof *seat);
    kf_block **block = numbers(h->n, sizeof(kf_block *));

    for (size_t i = 0; i < h->n; i++)
        seat[i] = i;
    assert_ok(kf_resident_dense(&res, h->plan, &h->A));
    assert_ok(kf_data_encode(&res, h->code, seat, h->n, block));
    for (size_t i = 0; i < h->n; i++) {
        kf_msg m = {.how = KF_HOW_GRAM, .hi = h->d};
        double *f;

        assert_ok(kf_buffer_new(&m.in, h->d, 1, h->A.dtype));
        assert_ok(kf_buffer_new(&m.result, h->d, 1, h->A.dtype));
        memcpy(m.in->m.data, h->x.data, h->d * kf_dtype_size(h->A.dtype));
        assert_ok(kf_work_do(block[i], &m, NULL, NULL));
        f = as_doubles(&m.result->m);
        memcpy(h->f + i * h->d, f, h->d * sizeof *f);
        kf_free(f);
        kf_buffer_drop(m.in);
        kf_buffer_drop(m.result);
        kofn_free(m.why);
        kf_block_drop(block[i]);
    }
    kf_resident_free(&res);
    kf_free(block);
    kf_free(seat);
}

/* Sets up the seats for these inputs, and owns them. */
static inline void herd_with(herd *h, const kofn_scheme *own, const char *spec,
                             size_t n, kofn_matrix A, kofn_matrix x)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_GRAM, A.rows, A.cols, 1, A.dtype, false);

    *h = (herd){.n = n, .d = A.cols, .A = A, .x = x};
    assert_ok(own ? kofn_plan_new_for(&h->plan, &pb, own, spec, n, 1)
                  : kofn_plan_new(&h->plan, &pb, spec, n, 1));
    h->L = &h->plan->layout;
    assert_ok(kf_code_new(&h->code, h->plan));
    h->f = numbers(n * h->d, sizeof *h->f);
    h->want = exact(&A, &x);
    ask_all(h);
}

static inline void herd_up(herd *h, const char *spec, size_t n, size_t m,
                           size_t d, kofn_dtype dtype)
{
    herd_with(h, NULL, spec, n, random_matrix(m, d, dtype, 1),
              random_matrix(d, 1, dtype, 2));
}

static inline void herd_down(herd *h)
{
    kf_code_free(h->code);
    kofn_plan_free(h->plan);
    kf_free(h->A.data);
    kf_free(h->x.data);
    kf_free(h->f);
    kf_free(h->want);
}

/* Returns ||sum a_j f_j - A' A x|| / ||A' A x||. */
static inline double error_of(const herd *h, const kofn_decoder *d)
{
    double *y = numbers(h->d, sizeof *y), e;

    assert_true(d->wants == 1 && (d->mixed == 1 || d->copy[0] >= 0));
    for (size_t k = 0; k < d->results; k++) {
        double a = d->mixed ? d->D[k] : d->copy[0] == (int32_t)k;

        for (size_t j = 0; j < h->d; j++)
            y[j] += a * h->f[d->seat[k] * h->d + j];
    }
    if (h->A.dtype == KOFN_F32)
        for (size_t j = 0; j < h->d; j++)
            y[j] = (double)(float)y[j];
    e = relative_error(y, h->want, h->d);
    kf_free(y);
    return e;
}

static inline size_t blocks_of(size_t n, size_t r)
{
    return (n + r - 1) / r;
}

static const kofn_problem gram =
    KOFN_PROBLEM_INIT(KOFN_GRAM, 100, 10, 1, KOFN_F64, false);

#endif
