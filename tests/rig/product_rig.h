/* product_rig.h -- coded products of two matrices without the rest of the
 * library. Parts are mixed by the rows of the seats, multiplied by BLAS in the
 * data's type, and combined by D. The reference is computed from the parts in
 * long double, independently of W and G. */
#ifndef KF_TEST_PRODUCT_RIG_H
#define KF_TEST_PRODUCT_RIG_H

#include "sets.h"
#include "support.h"

#include "base/rng.h"
#include "code/code.h"
#include "mat/mat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Sanitizers cost a factor of twenty or more, so they see a sample. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY 50
#else
#define EVERY 1
#endif

/* Sizes of the parts: rows x len times len x cols. */
typedef struct sides {
    size_t rows, len, cols;
} sides;

typedef struct product_case {
    kofn_plan *plan;
    const kofn_layout *L;
    kf_code *code;
    kofn_dtype dtype;
    sides s;
    size_t seats;
    bool left;
    double **part[2]; /* of A and of the input */
    double *result;   /* (seat, component), rows x cols, rounded */
    long double *want;
} product_case;

static inline void *room(size_t n, size_t size)
{
    void *p = kf_zero(n, size);

    assert_non_null(p);
    return p;
}

static inline double rounded(double x, kofn_dtype dtype)
{
    return dtype == KOFN_F64 ? x : (double)(float)x;
}

/* Returns the sides of a part of operand w; in B A, A is the right one. */
static inline void part_sides(const product_case *f, int w, size_t *r,
                              size_t *c)
{
    bool first = (w == 0) != f->left;

    *r = first ? f->s.rows : f->s.len;
    *c = first ? f->s.len : f->s.cols;
}

static inline void make_parts(product_case *f)
{
    for (int w = 0; w < 2; w++) {
        size_t n = f->L->cut[w].rows * f->L->cut[w].cols, r, c;
        kf_rng g = kf_rng_stream(77, KF_FOR_DATA, (uint32_t)w, 0);

        part_sides(f, w, &r, &c);
        f->part[w] = room(n, sizeof(double *));
        for (size_t j = 0; j < n; j++) {
            f->part[w][j] = room(r * c, sizeof(double));
            for (size_t i = 0; i < r * c; i++)
                f->part[w][j][i] = rounded(kf_rng_normal(&g), f->dtype);
        }
    }
}

/* Mixes the parts of a row, in double, rounded once. */
static inline double *mixed(const product_case *f, int w, const kf_row *row)
{
    size_t r, c;
    double *x;

    part_sides(f, w, &r, &c);
    x = room(r * c, sizeof *x);
    for (size_t e = 0; e < row->n; e++)
        for (size_t i = 0; i < r * c; i++)
            x[i] += row->val[e] * f->part[w][row->col[e]][i];
    for (size_t i = 0; i < r * c; i++)
        x[i] = rounded(x[i], f->dtype);
    return x;
}

/* Converts numbers to the type of the data, or back to double. */
static inline kofn_matrix typed(const product_case *f, const double *x,
                                size_t rows, size_t cols)
{
    kofn_matrix a = {room(rows * cols, sizeof *x), rows, cols, cols, f->dtype};

    for (size_t i = 0; i < rows * cols; i++)
        if (f->dtype == KOFN_F64)
            ((double *)a.data)[i] = x[i];
        else
            ((float *)a.data)[i] = (float)x[i];
    return a;
}

/* Computes out += X Y in the type of the data, as workers do. */
static inline void multiply(const product_case *f, const double *X,
                            const double *Y, double *out)
{
    kofn_matrix x = typed(f, X, f->s.rows, f->s.len);
    kofn_matrix y = typed(f, Y, f->s.len, f->s.cols);
    kofn_matrix z = typed(f, out, f->s.rows, f->s.cols);

    kf_mat_multiply(&x, &y, true, z.data);
    for (size_t i = 0; i < z.rows * z.cols; i++)
        out[i] = f->dtype == KOFN_F64 ? ((double *)z.data)[i]
                                      : (double)((float *)z.data)[i];
    kf_free(x.data);
    kf_free(y.data);
    kf_free(z.data);
}

static inline void compute(product_case *f, size_t seat)
{
    const kofn_layout *L = f->L;
    const kf_row whole = {1, (uint32_t[]){0}, (double[]){1}};
    size_t size = f->s.rows * f->s.cols;
    const kf_seat *s;

    assert_ok(kf_code_seat(f->code, seat, &s));
    for (size_t l = 0; l < L->components; l++)
        for (size_t t = 0; t < L->inner; t++) {
            double *a = mixed(f, 0, &s->E0[l * L->inner + t]);
            double *b = mixed(f, 1, s->E1 ? &s->E1[t] : &whole);

            multiply(f, f->left ? b : a, f->left ? a : b,
                     f->result + (seat * L->components + l) * size);
            kf_free(a);
            kf_free(b);
        }
}

/* Computes block (i, k) of the product from the plain parts. */
static inline void reference(product_case *f, size_t i, size_t k,
                             long double *out)
{
    const kofn_cut *cut = f->L->cut;
    size_t sum = f->left ? cut[0].rows : cut[0].cols;

    for (size_t j = 0; j < sum; j++) {
        const double *X = f->left ? f->part[1][i + cut[1].rows * j]
                                  : f->part[0][i + cut[0].rows * j];
        const double *Y = f->left ? f->part[0][j + cut[0].rows * k]
                                  : f->part[1][j + cut[1].rows * k];

        for (size_t r = 0; r < f->s.rows; r++)
            for (size_t c = 0; c < f->s.cols; c++)
                for (size_t t = 0; t < f->s.len; t++)
                    out[r * f->s.cols + c] +=
                        (long double)X[r * f->s.len + t] * Y[t * f->s.cols + c];
    }
}

static inline kofn_status plan_of(kofn_plan **out, kofn_op op, const char *spec,
                                  size_t n, kofn_dtype dtype, uint64_t seed)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(
        op, 100, 100, op == KOFN_MATVEC ? 1 : 100, dtype, false);

    return kofn_plan_new(out, &pb, spec, n, seed);
}

/* Makes the same code for operands with parts of these sides. */
static inline void fit(product_case *f, kofn_op op, const char *spec, size_t n,
                       uint64_t seed)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(op, 1, 1, 1, f->dtype, false);
    kofn_plan *probe;
    const kofn_cut *cut;

    assert_ok(plan_of(&probe, op, spec, n, f->dtype, seed));
    cut = probe->layout.cut;
    if (f->left) {
        pb.p = cut[1].rows * f->s.rows;
        pb.m = cut[0].rows * f->s.len;
        pb.n = cut[0].cols * f->s.cols;
    } else {
        pb.m = cut[0].rows * f->s.rows;
        pb.n = cut[0].cols * f->s.len;
        pb.p = cut[1].cols * f->s.cols;
    }
    assert_ok(kofn_plan_new(&f->plan, &pb, spec, n, seed));
    kofn_plan_free(probe);
}

static inline void case_up(product_case *f, kofn_op op, const char *spec,
                           size_t n, size_t seats, sides s, kofn_dtype dtype,
                           uint64_t seed)
{
    size_t size;

    *f = (product_case){.dtype = dtype, .s = s, .seats = seats};
    f->left = op == KOFN_LEFT;
    if (op == KOFN_MATVEC)
        f->s.cols = 1;
    size = f->s.rows * f->s.cols;
    fit(f, op, spec, n, seed);
    f->L = &f->plan->layout;
    assert_int_equal(f->L->grid_rows,
                     f->left ? f->L->cut[1].rows : f->L->cut[0].rows);
    assert_ok(kf_code_new(&f->code, f->plan));
    make_parts(f);
    f->result = room(seats * f->L->components * size, sizeof *f->result);
    for (size_t i = 0; i < seats; i++)
        compute(f, i);
    f->want = room(f->L->wants * size, sizeof *f->want);
    for (size_t w = 0; w < f->L->wants; w++)
        reference(f, w % f->L->grid_rows, w / f->L->grid_rows,
                  f->want + w * size);
}

static inline void case_down(product_case *f)
{
    for (int w = 0; w < 2; w++) {
        for (size_t j = 0; j < f->L->cut[w].rows * f->L->cut[w].cols; j++)
            kf_free(f->part[w][j]);
        kf_free(f->part[w]);
    }
    kf_free(f->result);
    kf_free(f->want);
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
}

/* Decodes want w. */
static inline void decoded(const product_case *f, const kofn_decoder *d,
                           size_t w, size_t row, double *out)
{
    size_t size = f->s.rows * f->s.cols, components = f->L->components;

    memset(out, 0, size * sizeof *out);
    for (size_t r = 0; r < d->results; r++) {
        double c = d->copy[w] == KF_MIXED ? d->D[row * d->results + r]
                                          : d->copy[w] == (int32_t)r;
        const double *y =
            f->result +
            (d->seat[r / components] * components + r % components) * size;

        for (size_t i = 0; c != 0 && i < size; i++)
            out[i] += c * y[i];
    }
    for (size_t i = 0; i < size; i++)
        out[i] = rounded(out[i], f->dtype);
}

/* Returns ||got - exact||_F / ||exact||_F over all wants. */
static inline double error_of(const product_case *f, const kofn_decoder *d)
{
    size_t size = f->s.rows * f->s.cols, row = 0;
    double *got = room(size, sizeof *got);
    long double off = 0, all = 0;

    for (size_t w = 0; w < d->wants; w++) {
        decoded(f, d, w, row, got);
        row += d->copy[w] == KF_MIXED;
        for (size_t i = 0; i < size; i++) {
            long double want = f->want[w * size + i];

            off += (got[i] - want) * (got[i] - want);
            all += want * want;
        }
    }
    assert_int_equal(row, d->mixed);
    kf_free(got);
    return sqrt((double)(off / all));
}

#endif
