/* numerics_rig.h -- codes to measure the accuracy of coded products.
 *
 * A case encodes and computes once; survivor sets then differ only in
 * decoding. Every set goes the way of real data: blocks by kf_data_encode, dot
 * products by kf_data_compute in the data's type, then kf_decode. The error is
 * measured against long double and must never exceed the prediction. */
#ifndef KF_TEST_NUMERICS_RIG_H
#define KF_TEST_NUMERICS_RIG_H

#include "sets.h"
#include "support.h"

#include "mat/mat.h"
#include "run/run.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Sanitizers cost a factor of twenty or more, so they see a sample. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY 50
#else
#define EVERY 1
#endif

#define SPAN 3  /* rows of a sub-block */
#define WIDTH 3 /* columns of the input */

static size_t length = 64; /* of dot products, hence columns of A */

/* Returns n: one of n sets is tried. */
static inline size_t every(void)
{
    return (size_t)ceil(EVERY / fmin(test_scale(), 1));
}

/* Returns the number of searches, samples or trials; a fraction under
 * sanitizers. */
static inline size_t effort(double n)
{
    return (size_t)ceil(n * test_scale() / EVERY);
}

/* ---- a case -------------------------------------------------------------- */

typedef struct code_case {
    kofn_plan *plan;
    kf_code *code;
    size_t seats, k;
    kofn_matrix A, x, out, *result;
    long double *want;
    kf_scratch scratch;
    size_t *ptr; /* sparse: A again */
    uint32_t *col;
} code_case;

static inline double get(const kofn_matrix *a, size_t i, size_t j)
{
    return a->dtype == KOFN_F64 ? *(double *)kf_at(a, i, j)
                                : (double)*(float *)kf_at(a, i, j);
}

static inline kofn_matrix matrix(size_t rows, size_t cols, kofn_dtype dtype)
{
    kofn_matrix a = {kf_zero(rows * cols, 8), rows, cols, cols, dtype};

    assert_non_null(a.data);
    return a;
}

/* Returns a matrix of normal numbers; `fill` is the share of nonzero entries.
 */
static inline kofn_matrix random_matrix(size_t rows, size_t cols,
                                        kofn_dtype dtype, uint32_t tag,
                                        double fill)
{
    kofn_matrix a = matrix(rows, cols, dtype);
    kf_rng r = kf_rng_stream(21, KF_FOR_DATA, tag, 0);

    for (size_t i = 0; i < rows * cols; i++) {
        double x = kf_rng_normal(&r);

        if (fill < 1 && kf_rng_uniform(&r) >= fill)
            continue;
        if (dtype == KOFN_F64)
            ((double *)a.data)[i] = x;
        else
            ((float *)a.data)[i] = (float)x;
    }
    return a;
}

static inline void reference(code_case *f)
{
    f->want = kf_new(f->A.rows * WIDTH, sizeof *f->want);
    assert_non_null(f->want);
    for (size_t i = 0; i < f->A.rows; i++)
        for (size_t c = 0; c < WIDTH; c++) {
            long double sum = 0;

            for (size_t j = 0; j < length; j++)
                sum += (long double)get(&f->A, i, j) * get(&f->x, j, c);
            f->want[i * WIDTH + c] = sum;
        }
}

static inline kofn_sparse compressed(code_case *f)
{
    size_t count = 0;
    double *val = f->A.data; /* packed in place: entries only move forward */

    f->ptr = kf_new(f->A.rows + 1, sizeof *f->ptr);
    f->col = kf_new(f->A.rows * length, sizeof *f->col);
    assert_true(f->ptr && f->col);
    for (size_t i = 0; i < f->A.rows; i++) {
        f->ptr[i] = count;
        for (size_t j = 0; j < length; j++)
            if (val[i * length + j] != 0) {
                f->col[count] = (uint32_t)j;
                val[count++] = val[i * length + j];
            }
    }
    f->ptr[f->A.rows] = count;
    return (kofn_sparse){f->A.rows, length, f->ptr, f->col, val};
}

/* Computes the answers of all seats. */
static inline void compute_all(code_case *f, bool sparse)
{
    size_t components = f->plan->layout.components;
    size_t *seat = kf_new(f->seats, sizeof *seat);
    kf_block **block = kf_new(f->seats, sizeof *block);
    kf_resident resident;
    kofn_sparse A;

    f->result = kf_new(f->seats, sizeof *f->result);
    assert_true(seat && block && f->result);
    for (size_t i = 0; i < f->seats; i++)
        seat[i] = i;
    if (sparse) {
        A = compressed(f);
        assert_ok(kf_resident_sparse(&resident, f->plan, &A));
    } else {
        assert_ok(kf_resident_dense(&resident, f->plan, &f->A));
    }
    assert_ok(kf_data_encode(&resident, f->code, seat, f->seats, block));
    for (size_t i = 0; i < f->seats; i++) {
        f->result[i] = matrix(components * SPAN, WIDTH, f->A.dtype);
        assert_ok(kf_data_compute(block[i], &f->x, 0, SPAN, &f->result[i]));
        kf_block_drop(block[i]);
    }
    kf_resident_free(&resident);
    kf_free(seat);
    kf_free(block);
}

/* Encodes. `seats` may exceed the n workers of the plan: fresh rows for
 * joining workers. */
static inline void case_up(code_case *f, const char *spec, size_t n,
                           size_t seats, kofn_dtype dtype, bool sparse,
                           uint64_t seed)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 1, length, WIDTH, dtype, sparse);
    kofn_plan *probe;

    *f = (code_case){.seats = seats};
    assert_ok(kofn_plan_new(&probe, &pb, spec, n, seed));
    pb.m = probe->parts * SPAN;
    kofn_plan_free(probe);
    assert_ok(kofn_plan_new(&f->plan, &pb, spec, n, seed));
    assert_ok(kf_code_new(&f->code, f->plan));
    f->k = f->plan->layout.enough;
    f->A = random_matrix(pb.m, length, dtype, 1, sparse ? 0.25 : 1);
    f->x = random_matrix(length, WIDTH, dtype, 2, 1);
    f->out = matrix(pb.m, WIDTH, dtype);
    reference(f);
    compute_all(f, sparse);
}

static inline void case_down(code_case *f)
{
    for (size_t i = 0; i < f->seats; i++)
        kf_free(f->result[i].data);
    kf_free(f->result);
    kf_free(f->A.data);
    kf_free(f->x.data);
    kf_free(f->out.data);
    kf_free(f->want);
    kf_free(f->ptr);
    kf_free(f->col);
    kf_scratch_free(&f->scratch);
    kf_code_free(f->code);
    kofn_plan_free(f->plan);
}

typedef struct error {
    double whole, block; /* of everything, of the worst of the k blocks */
    double mean;         /* of that block, relative to the mean size */
} error;

static inline error decode(code_case *f, const kofn_decoder *d)
{
    kf_source *source = kf_new(d->seats, sizeof *source);
    size_t entries = f->out.rows / f->k * WIDTH;
    long double off = 0, all = 0;
    error e = {0};

    assert_non_null(source);
    for (size_t i = 0; i < d->seats; i++)
        source[i] = (kf_source){&f->result[d->seat[i]], 0, SPAN};
    assert_ok(kf_decode(f->plan, d, source, (kf_band){0, 0, SPAN}, &f->out,
                        &f->scratch));
    for (size_t b = 0; b < f->k; b++) {
        long double top = 0, bottom = 0;

        for (size_t i = b * entries; i < (b + 1) * entries; i++) {
            long double diff = get(&f->out, i / WIDTH, i % WIDTH) - f->want[i];

            top += diff * diff;
            bottom += f->want[i] * f->want[i];
        }
        e.block = fmax(e.block, sqrt((double)(top / bottom)));
        e.mean = fmax(e.mean, (double)top);
        off += top;
        all += bottom;
    }
    e.whole = sqrt((double)(off / all));
    e.mean = sqrt(e.mean / (double)all * (double)f->k);
    kf_free(source);
    return e;
}

/* ---- the same code over both types --------------------------------------- */

typedef struct pair {
    code_case f64, f32;
} pair;

typedef struct tally {
    size_t sets, refused, above; /* the float32 guard would refuse; > 5e-5 */
    error f64, f32;              /* worst */
    double noise, block;         /* worst, over all and for a single block */
    error most64, most32;        /* the largest predictions */
    double ratio64, ratio32;     /* worst error / predicted */
} tally;

static inline void pair_up(pair *p, const char *spec, size_t n, size_t seats,
                           uint64_t seed)
{
    case_up(&p->f64, spec, n, seats, KOFN_F64, false, seed);
    case_up(&p->f32, spec, n, seats, KOFN_F32, false, seed);
}

static inline void pair_down(pair *p)
{
    case_down(&p->f64);
    case_down(&p->f32);
}

/* A larger prediction says only that nothing is left of the answer. */
#define HOPELESS 1e-2

static inline double count_error(error *worst, double *ratio, error e,
                                 error predicted)
{
    worst->whole = fmax(worst->whole, e.whole);
    worst->block = fmax(worst->block, e.block);
    if (predicted.whole <= HOPELESS) {
        *ratio = fmax(*ratio, e.whole / predicted.whole);
        assert_at_most(e.whole, predicted.whole);
        assert_at_most(e.mean, predicted.block);
    }
    return e.whole;
}

/* Returns a float32 decoder's prediction for a product with a matrix
 * (code_test). */
static inline double predicted32(double noise)
{
    return 0x1p-24 * noise * sqrt(6.5 + 0.8 * (double)length);
}

/* Returns the noise of the worst single block: the norms of its rows of D,
 * with each result's rounding proportional to its row of E0. */
static inline double block_noise(const code_case *f, const kofn_decoder *d)
{
    size_t components = f->plan->layout.components, row = 0;
    double *weight = kf_new(d->results, sizeof *weight), worst = 1;

    assert_non_null(weight);
    for (size_t r = 0; r < d->results; r++) {
        const kf_seat *s;
        double sum = 0;

        assert_ok(kf_code_seat(f->code, d->seat[r / components], &s));
        for (size_t e = 0; e < s->E0[r % components].n; e++)
            sum += pow(s->E0[r % components].val[e], 2);
        weight[r] = sqrt(sum);
    }
    for (size_t w = 0; w < d->wants;) {
        double sum = 0;

        do {
            if (d->copy[w] >= 0) {
                sum += pow(weight[d->copy[w]], 2);
                continue;
            }
            for (size_t r = 0; r < d->results; r++)
                sum += pow(d->D[row * d->results + r] * weight[r], 2);
            row++;
        } while (++w % components);
        worst = fmax(worst, sqrt(sum / (double)components));
    }
    kf_free(weight);
    return worst;
}

/* Decodes from this set in both types; the type affects only the prediction. */
static inline void try_set(pair *p, const uint32_t *set, size_t n, tally *t)
{
    kofn_decoder *d;
    error p64, p32;
    double block;

    assert_ok(kf_decoder_new(&d, p->f64.code, set, n, false));
    block = block_noise(&p->f64, d);
    p64 = (error){d->predicted, d->predicted / fmax(d->noise, 1) * block, 0};
    p32 = (error){predicted32(fmax(d->noise, 1)), predicted32(block), 0};
    t->sets++;
    t->noise = fmax(t->noise, d->noise);
    t->block = fmax(t->block, block);
    t->most64 = (error){fmax(t->most64.whole, p64.whole),
                        fmax(t->most64.block, p64.block), 0};
    t->most32 = (error){fmax(t->most32.whole, p32.whole),
                        fmax(t->most32.block, p32.block), 0};
    count_error(&t->f64, &t->ratio64, decode(&p->f64, d), p64);
    t->above +=
        count_error(&t->f32, &t->ratio32, decode(&p->f32, d), p32) > 5e-5;
    t->refused += predicted32(d->noise) > 1e-4;
    kf_decoder_free(d);
}

static inline void say(const char *what, const tally *t)
{
    print_message("    %-24s %6zu sets: noise %6.1f block %6.1f  f64 %.1e "
                  "block %.1e  f32 %.1e block %.1e  of predicted %.2f %.2f",
                  what, t->sets, t->noise, t->block, t->f64.whole, t->f64.block,
                  t->f32.whole, t->f32.block, t->ratio64, t->ratio32);
    if (t->refused)
        print_message("  (f32 guard: no to %zu)", t->refused);
    print_message("\n");
}

/* ---- survivor sets ------------------------------------------------------- */

static inline void try_windows(pair *p, size_t n, size_t seats, tally *t)
{
    uint32_t set[1000];

    for (size_t at = 0; at < seats; at += kf_max(1, seats * EVERY / 250)) {
        without_window(set, n, seats, at);
        try_set(p, set, n, t);
    }
}

static inline void try_random(pair *p, size_t n, size_t seats, size_t count,
                              tally *t)
{
    kf_rng r = kf_rng_stream(5, KF_FOR_SAMPLE, (uint32_t)seats, 0);
    uint32_t set[1000];

    for (size_t i = 0; i < count; i++) {
        random_set(&r, set, n, seats);
        try_set(p, set, n, t);
    }
}

static inline int setup(void **state)
{
    (void)state;
    kf_blas_single();
    return 0;
}

#endif
