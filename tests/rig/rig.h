/* rig.h -- has what tests of the coordinator share: numbers, plain products,
 * and a job with both. */
#ifndef KF_TEST_RIG_H
#define KF_TEST_RIG_H

#include "support.h"

#include "base/base.h"
#include "base/rng.h"
#include "mat/mat.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns n in a plain build, less under a sanitizer, and more if
 * KOFN_TEST_SCALE says so. */
static inline size_t often(size_t n)
{
    double x = (double)n * test_scale() / SLOWED;

    return x < 1 ? 1 : (size_t)x;
}

/* Sets BLAS to one thread; a file of tests calls it first. The thread
 * sanitizer does not see how OpenBLAS synchronizes its own threads. */
static inline void rig_begin(void)
{
    kf_blas_single();
}

static inline void *numbers(size_t n, size_t size)
{
    void *p = kf_zero(n, size);

    assert_non_null(p);
    return p;
}

static inline kofn_matrix random_matrix(size_t m, size_t n, kofn_dtype dtype,
                                        uint64_t seed)
{
    kofn_matrix a = {numbers(m * n, 8), m, n, n, dtype};
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 0, 0);

    for (size_t i = 0; i < m * n; i++) {
        double x = kf_rng_normal(&r);

        if (dtype == KOFN_F64)
            ((double *)a.data)[i] = x;
        else
            ((float *)a.data)[i] = (float)x;
    }
    return a;
}

/* Returns the same numbers as doubles, contiguous. */
static inline double *as_doubles(const kofn_matrix *a)
{
    double *x = numbers(a->rows * a->cols, sizeof *x);

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            x[i * a->cols + j] =
                a->dtype == KOFN_F64
                    ? ((const double *)a->data)[i * a->ld + j]
                    : (double)((const float *)a->data)[i * a->ld + j];
    return x;
}

/* Returns the product by one BLAS call in double precision, whatever the types
 * of the operands are. */
static inline double *plain_product(const kofn_matrix *a, const kofn_matrix *b)
{
    double *x = as_doubles(a), *y = as_doubles(b);
    double *c = numbers(a->rows * b->cols, sizeof *c);

    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)a->rows,
                (int)b->cols, (int)a->cols, 1, x, (int)a->cols, y, (int)b->cols,
                0, c, (int)b->cols);
    kf_free(x);
    kf_free(y);
    return c;
}

/* Makes a random sparse matrix with about `each` entries a row; some rows are
 * empty. */
static inline kofn_sparse random_sparse(size_t m, size_t n, size_t each,
                                        uint64_t seed)
{
    size_t *ptr = numbers(m + 1, sizeof *ptr), count = 0;
    uint32_t *col = numbers(m * n, sizeof *col);
    double *val = numbers(m * n, sizeof *val);
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 1, 0);

    for (size_t i = 0; i < m; i++) {
        bool empty = kf_rng_below(&r, 5) == 0;

        for (uint32_t j = 0; j < n; j++)
            if (!empty && kf_rng_below(&r, n) < each) {
                col[count] = j;
                val[count++] = kf_rng_normal(&r);
            }
        ptr[i + 1] = count;
    }
    return (kofn_sparse){m, n, ptr, col, val};
}

static inline void sparse_free(kofn_sparse *s)
{
    kf_free((void *)(uintptr_t)s->ptr);
    kf_free((void *)(uintptr_t)s->col);
    kf_free((void *)(uintptr_t)s->val);
}

static inline kofn_matrix sparse_as_dense(const kofn_sparse *s)
{
    kofn_matrix a = {numbers(s->rows * s->cols, 8), s->rows, s->cols, s->cols,
                     KOFN_F64};

    for (size_t i = 0; i < s->rows; i++)
        for (size_t e = s->ptr[i]; e < s->ptr[i + 1]; e++)
            ((double *)a.data)[i * s->cols + s->col[e]] += s->val[e];
    return a;
}

/* ---- a job with its inputs and the answer -------------------------------- */

typedef struct rig {
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix A, x, y;
    kofn_sparse sparse;
    double *want; /* A x, x A or A' A x */
    kofn_op op;
} rig;

/* The parameters of a rig. Zero means dense, float64, no faults, defaults. */
typedef struct rig_kind {
    const char *spec;
    size_t workers, m, n, p;
    kofn_op op; /* 0: MATVEC or MATMUL, by p */
    bool sim, sparse;
    kofn_dtype dtype;
    const kofn_faults *faults;
    const kofn_options *opt;
} rig_kind;

/* Returns the defaults with these fault events. */
static inline kofn_options with_events(const kofn_fault_event *events,
                                       size_t count)
{
    kofn_options o = KOFN_OPTIONS_INIT;

    o.events = events;
    o.event_count = count;
    return o;
}

static inline double *rig_product(const rig *r)
{
    kofn_matrix t = {NULL, 1, r->A.rows, r->A.rows, KOFN_F64};
    double *y;

    if (r->op == KOFN_LEFT)
        return plain_product(&r->x, &r->A);
    t.data = plain_product(&r->A, &r->x);
    if (!(r->op & (KOFN_GRAM | KOFN_SUM)))
        return t.data;
    y = plain_product(&t, &r->A); /* one column: its transpose is the same */
    kf_free(t.data);
    return y;
}

/* Computes A' A x as a user function: the sum of the rows of one part. */
static inline kofn_status rig_part(void *ctx, size_t part, size_t parts,
                                   const kofn_matrix *in, kofn_matrix *out)
{
    const rig *r = ctx;
    double *a = as_doubles(&r->A), *x = as_doubles(in);
    size_t n = r->A.cols;
    double *y = numbers(n, sizeof *y);

    for (size_t i = part; i < r->A.rows; i += parts) {
        double margin = cblas_ddot((int)n, a + i * n, 1, x, 1);

        cblas_daxpy((int)n, margin, a + i * n, 1, y, 1);
    }
    for (size_t i = 0; i < n; i++) {
        if (out->dtype == KOFN_F64)
            ((double *)out->data)[i] = y[i];
        else
            ((float *)out->data)[i] = (float)y[i];
    }
    kf_free(a);
    kf_free(x);
    kf_free(y);
    return KOFN_OK;
}

static inline kofn_status rig_place(rig *r)
{
    if (r->op == KOFN_SUM)
        return kofn_place_parts(r->job, rig_part, r);
    if (r->op == KOFN_STREAM) /* A comes with x */
        return KOFN_OK;
    return r->sparse.ptr ? kofn_place_at(r->job, 0, KOFN_SPARSE(&r->sparse))
                         : kofn_place(r->job, &r->A);
}

/* Makes the inputs and the plan, without a job. */
static inline void rig_inputs(rig *r, const rig_kind *k)
{
    kofn_op op = k->op ? k->op : k->p == 1 ? KOFN_MATVEC : KOFN_MATMUL;
    bool left = op == KOFN_LEFT, gram = op & (KOFN_GRAM | KOFN_SUM);
    kofn_problem pb = KOFN_PROBLEM_INIT(op, op == KOFN_SUM ? k->n : k->m, k->n,
                                        k->p, k->dtype, k->sparse);

    *r = (rig){.op = op};
    if (k->sparse) {
        r->sparse = random_sparse(k->m, k->n, 4, 1);
        r->A = sparse_as_dense(&r->sparse);
    } else {
        r->A = random_matrix(k->m, k->n, k->dtype, 1);
    }
    r->x = left ? random_matrix(k->p, k->m, k->dtype, 2)
                : random_matrix(k->n, k->p, k->dtype, 2);
    r->y = left   ? random_matrix(k->p, k->n, k->dtype, 3)
           : gram ? random_matrix(k->n, 1, k->dtype, 3)
                  : random_matrix(k->m, k->p, k->dtype, 3);
    r->want = rig_product(r);
    if (k->spec)
        assert_ok(kofn_plan_new(&r->plan, &pb, k->spec, k->workers, 7));
}

static inline void rig_open(rig *r, const rig_kind *k)
{
    kofn_port *port;

    assert_ok(k->sim ? kofn_port_sim(&port, k->workers, k->faults)
                     : kofn_port_threads(&port, k->workers, k->faults));
    assert_ok(kofn_open(&r->job, r->plan, port, k->opt));
    assert_ok(rig_place(r));
}

static inline void rig_up(rig *r, const rig_kind *k)
{
    rig_inputs(r, k);
    rig_open(r, k);
}

static inline void rig_down(rig *r)
{
    kofn_close(r->job);
    kofn_plan_free(r->plan);
    sparse_free(&r->sparse);
    kf_free(r->A.data);
    kf_free(r->x.data);
    kf_free(r->y.data);
    kf_free(r->want);
}

/* Fills y with NaN, so that numbers that are not written show. */
static inline void rig_spoil(rig *r)
{
    for (size_t i = 0; i < r->y.rows * r->y.cols; i++) {
        if (r->y.dtype == KOFN_F64)
            ((double *)r->y.data)[i] = NAN;
        else
            ((float *)r->y.data)[i] = NAN;
    }
}

/* Makes another input for the next round. */
static inline void rig_next(rig *r, uint64_t seed)
{
    kofn_matrix x = random_matrix(r->x.rows, r->x.cols, r->x.dtype, seed);

    memcpy(r->x.data, x.data, x.rows * x.cols * (x.dtype == KOFN_F64 ? 8 : 4));
    kf_free(x.data);
    kf_free(r->want);
    r->want = rig_product(r);
}

/* Makes another input for a product of the same job, with its own output. */
static inline rig rig_beside(const rig *r, uint64_t seed)
{
    rig one = *r;

    one.x = random_matrix(r->x.rows, r->x.cols, r->x.dtype, seed);
    one.y = random_matrix(r->y.rows, r->y.cols, r->y.dtype, 3);
    one.want = rig_product(&one);
    rig_spoil(&one);
    return one;
}

static inline void rig_put_away(rig *one)
{
    kf_free(one->x.data);
    kf_free(one->y.data);
    kf_free(one->want);
}

static inline double rig_norm(const kofn_matrix *a)
{
    double *x = as_doubles(a), sum = 0;

    for (size_t i = 0; i < a->rows * a->cols; i++)
        sum += x[i] * x[i];
    kf_free(x);
    return sqrt(sum);
}

/* Returns the typical norm of the output for independent random operands. */
static inline double rig_typical(const rig *r)
{
    double typical = rig_norm(&r->A) * rig_norm(&r->x) /
                     sqrt((double)(r->op == KOFN_LEFT ? r->A.rows : r->A.cols));

    if (r->op & (KOFN_GRAM | KOFN_SUM))
        typical *= rig_norm(&r->A) / sqrt((double)r->A.cols);
    return typical;
}

/* Returns ||y - A x||_F divided by ||A x||_F, or by the typical norm for
 * random x if that is larger. A single number may be small by chance, and then
 * its relative error means nothing. */
static inline double rig_error(const rig *r)
{
    double *y = as_doubles(&r->y), top = 0, bottom = 0;

    for (size_t i = 0; i < r->y.rows * r->y.cols; i++) {
        top += (y[i] - r->want[i]) * (y[i] - r->want[i]);
        bottom += r->want[i] * r->want[i];
    }
    kf_free(y);
    if (top == 0)
        return 0;
    return sqrt(top) / fmax(sqrt(bottom), rig_typical(r));
}

static inline kofn_status rig_put(rig *r, uint32_t *number)
{
    return r->op == KOFN_STREAM
               ? kofn_put_pair(r->job, &r->A, &r->x, &r->y, number)
               : kofn_put(r->job, &r->x, &r->y, number);
}

static inline kofn_status rig_round(rig *r, kofn_report *rep)
{
    uint32_t number;
    kofn_status st;

    rig_spoil(r);
    if (r->op != KOFN_STREAM)
        return kofn_round(r->job, &r->x, &r->y, rep);
    st = rig_put(r, &number);
    if (st)
        return st;
    return kofn_take(r->job, number, KOFN_NEVER, rep);
}

#endif
