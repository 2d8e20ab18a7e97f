/* freivalds_test.c -- tests kofn_check_product: it decides whether C = A B,
 * however C was computed. */
#include "freivalds_rig.h"
#include "rig.h"

#include "mat/mat.h"

#include <float.h>
#include <string.h>

static const char *const kind_name[KINDS] = {
    "normal", "positive", "equal", "powers", "wide", "holes", "inner"};

/* ---- right products ------------------------------------------------------ */

static void expect_clean(const trial *t, const char *what)
{
    kofn_findings *f = NULL;
    kofn_status st = kofn_check_product(KOFN_DENSE(&t->A), &t->B, &t->C, 0, &f);

    if (st)
        fail_msg("%s, %zu x %zu x %zu, float%d: %s", what, t->m, t->n, t->p,
                 t->dtype == KOFN_F64 ? 64 : 32, kofn_errmsg());
    assert_true(f->entries == 0 && f->rows == 0 && f->cols == 0);
    assert_true(f->complete && f->floor > 0 && f->size == sizeof *f);
    kofn_findings_free(f);
}

/* KOFN_TEST_SCALE=100 tries 10^5 products. */
static void right_products_pass(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 1, 0);
    size_t trials = often(1000);

    (void)state;
    for (size_t k = 0; k < trials; k++) {
        kofn_dtype dtype = k % 2 ? KOFN_F32 : KOFN_F64;
        kind data = (kind)(k / 2 % KINDS);
        way w = (way)(k / 14 % WAYS);
        size_t most = k % 50 == 0 ? 300 : 40;
        trial t;

        make_trial(&t, 1 + kf_rng_below(&rng, most),
                   1 + kf_rng_below(&rng, k % 20 == 0 ? 2000 : most),
                   1 + kf_rng_below(&rng, most), dtype, data, &rng);
        multiply_by(&t, w);
        expect_clean(&t, kind_name[data]);
        drop_trial(&t);
    }
}

/* Sums of equal numbers have rounding that grows with their number. There are
 * too many entries to compute each again. */
static void one_sided_rounding_passes(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 2, 0);

    (void)state;
    for (int k = 0; k < 4; k++) {
        trial t;

        make_trial(&t, 200, 3000, 220, k % 2 ? KOFN_F64 : KOFN_F32, EQUAL,
                   &rng);
        multiply_by(&t, k < 2 ? FORWARD : BY_BLAS);
        expect_clean(&t, "equal numbers");
        drop_trial(&t);
    }
}

/* The scales reach both ends of the range. */
static void products_of_any_magnitude(void **state)
{
    static const double scale[][2] = {
        {1e154, 1e154},  {1e-154, 1e-154}, {1e-160, 1e-160}, {1e307, 1e-307},
        {1e-300, 1e-20}, {1e-310, 1},      {1e200, 1e-310},  {1e-320, 1e300},
        {1e18, 1e19},    {1e-22, 1e-22},   {1e-30, 1e-10},   {1e37, 1e-37},
        {1e-44, 1e30},   {1e306, 1e-320},
    };
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 3, 0);

    (void)state;
    for (size_t k = 0; k < 2 * sizeof scale / sizeof *scale; k++) {
        trial t;

        make_trial(&t, 20, 30, 25, k % 2 ? KOFN_F32 : KOFN_F64, POSITIVE, &rng);
        for (size_t i = 0; i < t.n; i++) {
            for (size_t j = 0; j < t.m; j++)
                put(&t.A, j, i, get(&t.A, j, i) * scale[k / 2][0]);
            for (size_t j = 0; j < t.p; j++)
                put(&t.B, i, j, get(&t.B, i, j) * scale[k / 2][1]);
        }
        if (isfinite(get(&t.A, 1, 1)) && isfinite(get(&t.B, 1, 1))) {
            multiply_by(&t, FORWARD);
            expect_clean(&t, "magnitudes");
        }
        drop_trial(&t);
    }
}

/* ---- wrong entries ------------------------------------------------------- */

static double flip(double x, kofn_dtype dtype, unsigned bit)
{
    if (dtype == KOFN_F64) {
        uint64_t u;

        memcpy(&u, &x, 8);
        u ^= UINT64_C(1) << bit;
        memcpy(&x, &u, 8);
        return x;
    } else {
        float y = (float)x;
        uint32_t u;

        memcpy(&u, &y, 4);
        u ^= UINT32_C(1) << bit;
        memcpy(&y, &u, 4);
        return (double)y;
    }
}

/* Checks that the findings are this one entry, with its right value. */
static void expect_entry(const trial *t, const kofn_findings *f, size_t i,
                         size_t j, double was)
{
    long double unit = t->dtype == KOFN_F64 ? 0x1p-53L : 0x1p-24L;
    long double exact = t->exact[i * t->p + j], size = t->size[i * t->p + j];

    assert_true(f->complete);
    assert_int_equal(f->entries, 1);
    assert_int_equal(f->rows, 1);
    assert_int_equal(f->cols, 1);
    assert_int_equal(f->entry[0].row, i);
    assert_int_equal(f->entry[0].col, j);
    assert_int_equal(f->row[0], i);
    assert_int_equal(f->col[0], j);
    assert_memory_equal(&f->entry[0].was, &was, sizeof was);
    assert_at_most((double)fabsl((long double)f->entry[0].is - exact),
                   (double)(1.001L * unit * fabsl(exact) +
                            0x1p-64L * (long double)t->n * size));
}

static size_t flip_at(trial *t, size_t i, size_t j, unsigned bit)
{
    double right = get(&t->C, i, j), was = flip(right, t->dtype, bit), off;
    kofn_findings *f = NULL;
    kofn_status st;
    size_t seen;

    put(&t->C, i, j, was);
    st = kofn_check_product(KOFN_DENSE(&t->A), &t->B, &t->C, 0, &f);
    assert_true(st == KOFN_OK || st == KOFN_CORRUPT);
    off = fabs((double)((long double)was - t->exact[i * t->p + j]));
    if (st)
        expect_entry(t, f, i, j, get(&t->C, i, j));
    else if (!(off <= f->floor * t->row[i] * t->col[j]))
        fail_msg("bit %u of %g: off by %g, and the floor is %g", bit, right,
                 off, f->floor * t->row[i] * t->col[j]);
    seen = f->entries;
    kofn_findings_free(f);
    put(&t->C, i, j, right);
    return seen;
}

static void every_flipped_bit_above_the_floor(void **state)
{
    static const size_t size[][3] = {{30, 40, 50}, {1, 60, 80}, {70, 50, 1},
                                     {5, 3, 6},    {64, 1, 64}, {3, 700, 90}};
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 4, 0);
    size_t places = (size_t)(2 * test_scale() / SLOWED + 1), seen[2] = {0, 0};

    (void)state;
    for (size_t k = 0; k < 2 * KINDS * 6; k++) {
        const size_t *s = size[k / 2 % 6];
        kofn_dtype dtype = k % 2 ? KOFN_F32 : KOFN_F64;
        trial t;

        make_trial(&t, s[0], s[1], s[2], dtype, (kind)(k / 12), &rng);
        multiply_by(&t, BY_BLAS);
        know_exactly(&t);
        for (size_t at = 0; at < places; at++)
            for (unsigned bit = 0; bit < (dtype == KOFN_F64 ? 64 : 32); bit++)
                seen[k % 2] += flip_at(&t, kf_rng_below(&rng, t.m),
                                       kf_rng_below(&rng, t.p), bit);
        drop_trial(&t);
    }
    /* Enough flips are above the floor, so that the test means something. */
    assert_true(seen[0] > 20 * places * KINDS * 6);
    assert_true(seen[1] > 9 * places * KINDS * 6);
}

/* ---- many wrong entries -------------------------------------------------- */

typedef void (*spoil)(trial *t, kf_rng *rng);

static void a_row(trial *t, kf_rng *rng)
{
    size_t i = kf_rng_below(rng, t->m);

    for (size_t j = 0; j < t->p; j++)
        put(&t->C, i, j, get(&t->C, i, j) + 1 + kf_rng_uniform(rng));
}

static void a_column(trial *t, kf_rng *rng)
{
    size_t j = kf_rng_below(rng, t->p);

    for (size_t i = 0; i < t->m; i++)
        put(&t->C, i, j, 2 * get(&t->C, i, j) + 1);
}

static void a_block(trial *t, kf_rng *rng)
{
    size_t i = kf_rng_below(rng, t->m - 8), j = kf_rng_below(rng, t->p - 8);

    for (size_t k = 0; k < 64; k++)
        put(&t->C, i + k / 8, j + k % 8, 0);
}

static void a_constant(trial *t, kf_rng *rng)
{
    (void)rng;
    for (size_t i = 0; i < t->m; i++)
        for (size_t j = 0; j < t->p; j++)
            put(&t->C, i, j, get(&t->C, i, j) + 3);
}

/* Sums over rows and over columns stay those of the right product. */
static void a_checkerboard(trial *t, kf_rng *rng)
{
    size_t i = kf_rng_below(rng, t->m - 1), j = kf_rng_below(rng, t->p - 1);

    for (size_t k = 0; k < 4; k++)
        put(&t->C, i + k / 2, j + k % 2,
            get(&t->C, i + k / 2, j + k % 2) + (k == 0 || k == 3 ? 2 : -2));
}

static void two_swapped(trial *t, kf_rng *rng)
{
    size_t i = kf_rng_below(rng, t->m), j = kf_rng_below(rng, t->p - 1);
    double x = get(&t->C, i, j);

    put(&t->C, i, j, get(&t->C, i, j + 1));
    put(&t->C, i, j + 1, x);
}

static void of_all_sizes(trial *t, kf_rng *rng)
{
    for (int k = 0; k < 12; k++) {
        size_t i = kf_rng_below(rng, t->m), j = kf_rng_below(rng, t->p);

        put(&t->C, i, j, pow(10, 3 * k) * (t->dtype == KOFN_F64 ? 1e9 : 1));
    }
}

static void not_numbers(trial *t, kf_rng *rng)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, DBL_MAX, 7};

    for (size_t k = 0; k < 10; k++)
        put(&t->C, kf_rng_below(rng, t->m), kf_rng_below(rng, t->p),
            odd[k % 5]);
}

static void nothing_right(trial *t, kf_rng *rng)
{
    for (size_t i = 0; i < t->m; i++)
        for (size_t j = 0; j < t->p; j++)
            put(&t->C, i, j, kf_rng_normal(rng));
}

/* Checks that all entries with errors above the floor are named. A named entry
 * must have a larger error than any order of summation causes. */
static void expect_all(trial *t, const kofn_findings *f, const char *what)
{
    double unit = t->dtype == KOFN_F64 ? 0x1p-53 : 0x1p-24;
    size_t e = 0;

    for (size_t i = 0; i < t->m; i++)
        for (size_t j = 0; j < t->p; j++) {
            double off = fabs((double)((long double)get(&t->C, i, j) -
                                       t->exact[i * t->p + j]));
            bool named =
                e < f->entries && f->entry[e].row == i && f->entry[e].col == j;
            double any = unit * (double)t->n * (double)t->size[i * t->p + j];

            if (!named && !(off <= f->floor * t->row[i] * t->col[j]))
                fail_msg("%s: entry %zu, %zu is off by %g", what, i, j, off);
            if (named && off < 0.99 * any)
                fail_msg("%s: entry %zu, %zu is right", what, i, j);
            e += named;
        }
    assert_int_equal(e, f->entries);
}

static void many_wrong_entries(void **state)
{
    static const struct {
        const char *what;
        spoil by;
    } ways[] = {{"row", a_row},
                {"column", a_column},
                {"block", a_block},
                {"constant", a_constant},
                {"board", a_checkerboard},
                {"swapped", two_swapped},
                {"sizes", of_all_sizes},
                {"odd", not_numbers},
                {"noise", nothing_right}};
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 5, 0);

    (void)state;
    for (size_t k = 0; k < 18 * often(4); k++) {
        kofn_findings *f = NULL;
        trial t;

        make_trial(&t, 40, 33, 50, k / 9 % 2 ? KOFN_F32 : KOFN_F64, NORMAL,
                   &rng);
        multiply_by(&t, BY_BLAS);
        know_exactly(&t);
        ways[k % 9].by(&t, &rng);
        assert_status(KOFN_CORRUPT,
                      kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
        assert_true(f->complete);
        expect_all(&t, f, ways[k % 9].what);
        assert_ok(kofn_correct(f, &t.C));
        kofn_findings_free(f);
        expect_clean(&t, ways[k % 9].what);
        drop_trial(&t);
    }
}

/* If too many entries are wrong to compute them again, rows are named and
 * entries are not. A few wrong rows are corrected entry by entry. */
static void too_many_to_recompute(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 6, 0);
    kofn_findings *f = NULL;
    trial t;

    (void)state;
    make_trial(&t, 700, 600, 800, KOFN_F64, NORMAL, &rng);
    multiply_by(&t, BY_BLAS);
    nothing_right(&t, &rng);
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
    assert_false(f->complete);
    assert_int_equal(f->rows, 700);
    assert_int_equal(f->cols, 800);
    assert_status(KOFN_CORRUPT, kofn_correct(f, &t.C));
    kofn_findings_free(f);
    multiply_by(&t, BY_BLAS);
    for (int k = 0; k < 5; k++)
        a_row(&t, &rng);
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
    assert_true(f->complete);
    assert_int_equal(f->entries, f->rows * 800);
    assert_ok(kofn_correct(f, &t.C));
    kofn_findings_free(f);
    expect_clean(&t, "rows");
    drop_trial(&t);
}

/* ---- results that cannot be represented ---------------------------------- */

static void overflows(void **state)
{
    double a[] = {1e308, 1e308, 1, 1}, b[] = {1, 10, 1, 10};
    double c[] = {INFINITY, INFINITY, 2, 20};
    kofn_matrix A = {a, 2, 2, 2, KOFN_F64}, B = {b, 2, 2, 2, KOFN_F64};
    kofn_matrix C = {c, 2, 2, 2, KOFN_F64};
    kofn_findings *f = NULL;

    (void)state;
    assert_ok(kofn_check_product(KOFN_DENSE(&A), &B, &C, 0, &f));
    kofn_findings_free(f);
    c[1] = -INFINITY;
    c[2] = NAN;
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&A), &B, &C, 0, &f));
    assert_int_equal(f->entries, 2);
    assert_true(f->entry[0].is == INFINITY && f->entry[1].is == 2);
    kofn_findings_free(f);
    b[2] = -1; /* 1e308 - 1e308 = 0, whatever happened in between */
    c[0] = NAN;
    c[1] = INFINITY;
    c[2] = 0;
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&A), &B, &C, 0, &f));
    assert_int_equal(f->entries, 1);
    assert_true(f->entry[0].is == 0 && isnan(f->entry[0].was));
    kofn_findings_free(f);
}

/* All entries of a large product overflow. Nothing is wrong, though many
 * entries have to be computed again. */
static void everything_overflows(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 7, 0);
    kofn_findings *f = NULL;
    trial t;

    (void)state;
    make_trial(&t, 150, 200, 160, KOFN_F32, POSITIVE, &rng);
    for (size_t i = 0; i < 150; i++)
        for (size_t k = 0; k < 200; k++)
            put(&t.A, i, k, 1e38 * (get(&t.A, i, k) + 0.5));
    multiply_by(&t, FORWARD);
    assert_true(isinf(get(&t.C, 3, 3)));
    expect_clean(&t, "overflow");
    put(&t.C, 77, 88, 5);
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
    assert_true(f->entries == 1 && f->entry[0].row == 77);
    kofn_findings_free(f);
    drop_trial(&t);
}

/* ---- the call ------------------------------------------------------------ */

static void invalid_calls(void **state)
{
    double x[12] = {0};
    kofn_matrix A = {x, 2, 3, 3, KOFN_F64}, B = {x, 3, 2, 2, KOFN_F64};
    kofn_matrix C = {x, 2, 2, 2, KOFN_F64}, none = {x, 0, 2, 2, KOFN_F64};
    kofn_findings *f = NULL;

    (void)state;
    assert_status(KOFN_SHAPE,
                  kofn_check_product(KOFN_DENSE(&A), &A, &C, 0, &f));
    assert_non_null(strstr(kofn_errmsg(), "A is 2 x 3 and B 2 x 3"));
    assert_status(KOFN_SHAPE,
                  kofn_check_product(KOFN_DENSE(&A), &B, &A, 0, &f));
    assert_non_null(strstr(kofn_errmsg(), "C is 2 x 3 and A B is 2 x 2"));
    assert_status(KOFN_SHAPE,
                  kofn_check_product(KOFN_DENSE(&A), &B, &none, 0, &f));
    assert_status(KOFN_INVAL,
                  kofn_check_product(KOFN_DENSE(NULL), &B, &C, 0, &f));
    assert_status(KOFN_INVAL,
                  kofn_check_product(KOFN_DENSE(&A), &B, &C, 0, NULL));
    assert_status(KOFN_INVAL,
                  kofn_check_product(KOFN_DENSE(&A), &B, &C, -1, &f));
    assert_status(KOFN_INVAL,
                  kofn_check_product(KOFN_DENSE(&A), &B, &C, NAN, &f));
    x[4] = NAN;
    assert_status(KOFN_NONFINITE,
                  kofn_check_product(KOFN_DENSE(&A), &B, &C, 0, &f));
    assert_null(f);
    assert_status(KOFN_INVAL, kofn_correct(NULL, &C));
    kofn_findings_free(NULL);
}

/* A projection is its own square, so A, B and C may be the same. */
static void operands_may_be_one_matrix(void **state)
{
    double p[] = {0.5, 0.5, 0.5, 0.5};
    kofn_matrix P = {p, 2, 2, 2, KOFN_F64};
    kofn_findings *f = NULL;

    (void)state;
    assert_ok(kofn_check_product(KOFN_DENSE(&P), &P, &P, 0, &f));
    kofn_findings_free(f);
    p[3] = 0.25;
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&P), &P, &P, 0, &f));
    assert_true(p[3] == 0.25);
    kofn_findings_free(f);
}

static void tolerance(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 8, 0);
    kofn_findings *f = NULL;
    trial t;

    (void)state;
    make_trial(&t, 60, 50, 70, KOFN_F64, NORMAL, &rng);
    multiply_by(&t, BY_BLAS);
    for (size_t i = 0; i < 60; i++)
        for (size_t j = 0; j < 70; j++) /* as if it came from float32 */
            put(&t.C, i, j, (double)(float)get(&t.C, i, j));
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
    kofn_findings_free(f);
    assert_ok(kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 1e-7, &f));
    assert_true(f->floor >= 1e-7);
    kofn_findings_free(f);
    put(&t.C, 9, 9, get(&t.C, 9, 9) + 1);
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 1e-7, &f));
    assert_int_equal(f->entries, 1);
    kofn_findings_free(f);
    drop_trial(&t);
}

/* Operands of a float64 product may be float32, and the other way round. */
static void types_may_differ(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 9, 0);

    (void)state;
    for (int k = 1; k < 7; k++) {
        kofn_findings *f = NULL;
        trial t, u;

        make_trial(&t, 30, 20, 40, KOFN_F32, NORMAL, &rng);
        multiply_by(&t, BY_BLAS);
        make_trial(&u, 30, 20, 40, KOFN_F64, NORMAL, &rng);
        u.A.dtype = k & 1 ? KOFN_F64 : KOFN_F32;
        u.B.dtype = k & 2 ? KOFN_F64 : KOFN_F32;
        u.C.dtype = k & 4 ? KOFN_F64 : KOFN_F32;
        for (size_t i = 0; i < 30 * 40; i++) {
            put(&u.A, i % 30, i / 30 % 20, get(&t.A, i % 30, i / 30 % 20));
            put(&u.B, i / 40 % 20, i % 40, get(&t.B, i / 40 % 20, i % 40));
            put(&u.C, i / 40, i % 40, get(&t.C, i / 40, i % 40));
        }
        assert_ok(kofn_check_product(KOFN_DENSE(&u.A), &u.B, &u.C, 0, &f));
        kofn_findings_free(f);
        put(&u.C, 17, 3, get(&u.C, 17, 3) + 0.1);
        assert_status(KOFN_CORRUPT,
                      kofn_check_product(KOFN_DENSE(&u.A), &u.B, &u.C, 0, &f));
        assert_true(f->entries == 1 && f->entry[0].row == 17);
        kofn_findings_free(f);
        drop_trial(&t);
        drop_trial(&u);
    }
}

/* ---- a sparse A ---------------------------------------------------------- */

static void sparse_operand(void **state)
{
    enum { M = 60, N = 80, P = 30 };
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 10, 0);
    size_t ptr[M + 1] = {0};
    uint32_t col[M * N];
    double val[M * N];
    kofn_sparse S = {M, N, ptr, col, val};
    trial t;

    (void)state;
    make_trial(&t, M, N, P, KOFN_F64, HOLES, &rng);
    for (size_t i = 0; i < M; i++) {
        ptr[i + 1] = ptr[i];
        for (size_t k = 0; k < N; k++)
            if (get(&t.A, i, k) != 0) {
                col[ptr[i + 1]] = (uint32_t)k;
                val[ptr[i + 1]++] = get(&t.A, i, k);
            }
    }
    multiply_by(&t, BY_BLAS);
    know_exactly(&t);
    for (size_t k = 0; k < 40; k++) {
        size_t i = kf_rng_below(&rng, M), j = kf_rng_below(&rng, P);
        double right = get(&t.C, i, j);
        kofn_findings *f = NULL;

        assert_ok(kofn_check_product(KOFN_SPARSE(&S), &t.B, &t.C, 0, &f));
        kofn_findings_free(f);
        put(&t.C, i, j, right + (k % 2 ? 1e-6 : 1e6));
        /* a zero column of B has the scale 0 */
        assert_status(KOFN_CORRUPT,
                      kofn_check_product(KOFN_SPARSE(&S), &t.B, &t.C, 0, &f));
        expect_entry(&t, f, i, j, get(&t.C, i, j));
        kofn_findings_free(f);
        put(&t.C, i, j, right);
    }
    S.cols = N - 1;
    assert_true(kofn_check_product(KOFN_SPARSE(&S), &t.B, &t.C, 0, NULL) < 0);
    drop_trial(&t);
}

/* ---- memory -------------------------------------------------------------- */

static void every_allocation_may_fail(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 11, 0);
    kofn_findings *f = NULL;
    kofn_status st = KOFN_NOMEM;
    long n = 1;
    trial t;

    (void)state;
    make_trial(&t, 20, 10, 30, KOFN_F64, NORMAL, &rng);
    multiply_by(&t, BY_BLAS);
    a_row(&t, &rng);
    a_column(&t, &rng);
    count_allocations();
    for (; st == KOFN_NOMEM; n++) {
        fail_allocation(n);
        st = kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f);
        fail_allocation(0);
        assert_true(st == KOFN_CORRUPT || !f);
    }
    assert_status(KOFN_CORRUPT, st);
    assert_true(n > 15);
    kofn_findings_free(f);
    assert_int_equal(allocated(), 0);
    kofn_set_alloc(NULL, NULL);
    drop_trial(&t);
}

static size_t held, most_held;

/* An allocator that counts bytes. The size is stored before the block. */
static void *weigh(void *ud, void *p, size_t want)
{
    char *block = p ? (char *)p - 64 : NULL;

    (void)ud;
    if (block)
        held -= *(size_t *)(void *)block;
    if (!want) {
        free(block);
        return NULL;
    }
    assert_null(block);
    block = aligned_alloc(64, 64 + (want + 63) / 64 * 64);
    *(size_t *)(void *)block = want;
    held += want;
    most_held = held > most_held ? held : most_held;
    return block + 64;
}

/* Mapped operands may be larger than memory, so only a strip is held. */
static void strip_in_memory(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 12, 0);
    kofn_findings *f = NULL;
    trial t;

    (void)state;
    make_trial(&t, 100000, 20, 20, KOFN_F64, NORMAL, &rng);
    multiply_by(&t, BY_BLAS);
    put(&t.C, 99999, 19, 3);
    kofn_set_alloc(weigh, NULL);
    assert_status(KOFN_CORRUPT,
                  kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
    assert_int_equal(f->entries, 1);
    kofn_findings_free(f);
    kofn_set_alloc(NULL, NULL);
    assert_int_equal(held, 0);
    assert_true(most_held < 100000 * 20 * 8 / 3);
    drop_trial(&t);
}

TEST_FILE(freivalds_test)
{
    const struct CMUnitTest tests[] = {
        TEST(right_products_pass,
             "freivalds: right products pass (sizes, types, data, summation)"),
        TEST(one_sided_rounding_passes,
             "freivalds: rounding that goes one way is no error"),
        TEST(products_of_any_magnitude,
             "freivalds: right products pass at all magnitudes"),
        TEST(every_flipped_bit_above_the_floor,
             "freivalds: every flipped bit above the floor is found"),
        TEST(
            many_wrong_entries,
            "freivalds: all wrong entries are named and corrected (9 patterns)"),
        TEST(too_many_to_recompute,
             "freivalds: rows are named if too many entries are wrong"),
        TEST(
            overflows,
            "freivalds: an infinite entry is right only if the product overflows"),
        TEST(everything_overflows,
             "freivalds: a finite entry of an overflowed product is found"),
        TEST(invalid_calls,
             "freivalds: wrong shapes, arguments and inputs are refused"),
        TEST(operands_may_be_one_matrix,
             "freivalds: A, B and C may be one matrix"),
        TEST(tolerance,
             "freivalds: a less precise product passes with a tolerance"),
        TEST(types_may_differ, "freivalds: types of A, B and C may differ"),
        TEST(sparse_operand,
             "freivalds: wrong entries are found if A is sparse"),
        TEST(every_allocation_may_fail,
             "freivalds: each failed allocation is reported and leaks nothing"),
        TEST(strip_in_memory,
             "freivalds: memory holds a strip of a large A only"),
    };

    kf_blas_single(); /* its threads look like races to ThreadSanitizer */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
