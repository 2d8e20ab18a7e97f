/* freivalds_limits_test.c -- tests products with errors just below and just
 * above what some order of summation may cause. */
#include "freivalds_rig.h"

#include "mat/mat.h"

#include <float.h>

static void check(const trial *t, kofn_status st, kofn_findings **f)
{
    assert_status(st,
                  kofn_check_product(KOFN_DENSE(&t->A), &t->B, &t->C, 0, f));
}

/* Every entry is right, but has a larger error than usual, always in the same
 * direction. There are too many entries to compute them again. */
static void largest_rounding_passes(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 71, 0);

    (void)state;
    for (int k = 0; k < 2; k++) {
        kofn_findings *f;
        double u = k ? 0x1p-24 : 0x1p-53;
        trial t;

        make_trial(&t, 160, 1000, 160, k ? KOFN_F32 : KOFN_F64, POSITIVE, &rng);
        know_exactly(&t);
        for (size_t e = 0; e < t.m * t.p; e++)
            put(&t.C, e / t.p, e % t.p,
                (double)t.exact[e] + 0.9 * u * (double)t.n * (double)t.size[e]);
        check(&t, KOFN_OK, &f);
        assert_true(f->complete && f->entries == 0 && f->rows == 0);
        kofn_findings_free(f);
        drop_trial(&t);
    }
}

/* Most terms are below the smallest number, so sums lose them. */
static void underflow_passes(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 72, 0);
    kofn_findings *f;
    trial t;

    (void)state;
    make_trial(&t, 210, 200, 210, KOFN_F64, POSITIVE, &rng);
    for (size_t i = 0; i < t.m; i++)
        for (size_t k = 0; k < t.n; k++) {
            put(&t.A, i, k, get(&t.A, i, k) * 1e-163);
            put(&t.B, k, i, get(&t.B, k, i) * 1e-163);
        }
    multiply_by(&t, FORWARD);
    check(&t, KOFN_OK, &f);
    kofn_findings_free(f);
    drop_trial(&t);
}

/* Returns x rounded to 11 binary digits, for x between 2^-14 and 2^16. */
static double half_of(double x)
{
    int exponent;
    volatile double much;

    frexp(x, &exponent);
    much = ldexp(0x1.8p52, exponent - 11);
    much += x;
    return much - ldexp(0x1.8p52, exponent - 11);
}

/* The nearest float16 product passes, and only in the check for float16. The
 * wrong entry is found, and its right value is rounded to float16. */
static void half_precision(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 73, 0);
    kofn_findings *f;
    double is;
    trial t;

    (void)state;
    make_trial(&t, 30, 40, 50, KOFN_F64, POSITIVE, &rng);
    know_exactly(&t);
    for (size_t e = 0; e < t.m * t.p; e++)
        put(&t.C, e / t.p, e % t.p, half_of((double)t.exact[e]));
    check(&t, KOFN_CORRUPT, &f);
    assert_true(f->entries > t.m * t.p * 9 / 10);
    kofn_findings_free(f);
    assert_ok(kofn_check_product_half(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
    assert_true(f->complete && f->entries == 0 && f->floor > 0x1p-11);
    kofn_findings_free(f);
    is = get(&t.C, 7, 9);
    put(&t.C, 7, 9, 2 * is);
    assert_status(KOFN_CORRUPT,
                  kofn_check_product_half(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
    assert_true(f->entries == 1 && f->entry[0].row == 7 &&
                f->entry[0].col == 9 && f->entry[0].is == is);
    kofn_findings_free(f);
    drop_trial(&t);
}

/* The floor is 16 sqrt(lines) usual roundings of an entry and of the sums in
 * double precision (math/errors.md 7.3 and 7.4). */
static void floor_as_stated(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 73, 0);

    (void)state;
    for (int k = 0; k < 2; k++) {
        kofn_findings *f;
        double u = k ? 0x1p-24 : 0x1p-53, e, n = 90, lines = 30;
        trial t;

        make_trial(&t, 40, 90, 30, k ? KOFN_F32 : KOFN_F64, NORMAL, &rng);
        multiply_by(&t, BY_BLAS);
        check(&t, KOFN_OK, &f);
        e = 2 * u * (0.5 + 0.1 * sqrt(n)) +
            DBL_EPSILON * (0.5 + 0.1 * sqrt(n + lines));
        assert_at_most(fabs(f->floor / (16 * sqrt(lines) * e) - 1), 1e-9);
        kofn_findings_free(f);
        drop_trial(&t);
    }
}

static double norm(const kofn_matrix *a, size_t at, bool column)
{
    double squares = 0;

    for (size_t k = 0; k < (column ? a->rows : a->cols); k++) {
        double x = column ? get(a, k, at) : get(a, at, k);

        squares += x * x;
    }
    return sqrt(squares);
}

/* Makes one entry wrong by a share of the floor. It must be found if the share
 * is above one half and the rounding is far below its limit. */
static void off_by(trial *t, double share, kf_rng *rng)
{
    size_t i = kf_rng_below(rng, t->m), j = kf_rng_below(rng, t->p);
    double was = get(&t->C, i, j);
    kofn_findings *f;

    check(t, KOFN_OK, &f);
    put(&t->C, i, j,
        was + share * f->floor * norm(&t->A, i, false) * norm(&t->B, j, true));
    kofn_findings_free(f);
    check(t, KOFN_CORRUPT, &f);
    assert_true(f->complete && f->entries == 1);
    assert_true(f->entry[0].row == i && f->entry[0].col == j);
    kofn_findings_free(f);
    put(&t->C, i, j, was);
}

/* With more columns than rows an error shows in its column first, with fewer in
 * its row. */
static void errors_above_half_floor(void **state)
{
    static const size_t sizes[][2] = {{40, 200}, {200, 40}};
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 75, 0);

    (void)state;
    for (size_t z = 0; z < 2; z++)
        for (int k = 0; k < 2; k++) {
            trial t;

            make_trial(&t, sizes[z][0], 90, sizes[z][1],
                       k ? KOFN_F32 : KOFN_F64, NORMAL, &rng);
            multiply_by(&t, BY_BLAS);
            for (int i = 0; i < 5; i++)
                off_by(&t, 0.7, &rng);
            drop_trial(&t);
        }
}

/* However small the wrong entry is, a zero row of A or a zero column of B
 * shows it. */
static void zero_rows_and_columns(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 74, 0);

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        kofn_findings *f;
        trial t;

        make_trial(&t, 30, 20, 40, KOFN_F64, NORMAL, &rng);
        for (size_t i = 0; i < t.n; i++) {
            put(&t.A, 7, i, k == 1 ? get(&t.A, 7, i) : 0);
            put(&t.B, i, 9, k == 0 ? get(&t.B, i, 9) : 0);
        }
        multiply_by(&t, FORWARD);
        put(&t.C, 7, 9, 1e-200);
        check(&t, KOFN_CORRUPT, &f);
        assert_true(f->complete && f->entries == 1);
        assert_true(f->entry[0].row == 7 && f->entry[0].col == 9);
        assert_true(f->entry[0].is == 0);
        kofn_findings_free(f);
        drop_trial(&t);
    }
}

TEST_FILE(freivalds_limits_test)
{
    const struct CMUnitTest tests[] = {
        TEST(largest_rounding_passes,
             "freivalds: the largest possible rounding passes"),
        TEST(underflow_passes, "freivalds: a product that underflows passes"),
        TEST(half_precision,
             "freivalds: a float16 product passes, but for a wrong entry"),
        TEST(floor_as_stated,
             "freivalds: the floor is that of the documentation"),
        TEST(errors_above_half_floor,
             "freivalds: an error of 0.7 floors is found"),
        TEST(zero_rows_and_columns,
             "freivalds: an entry of a zero row or column must be 0"),
    };

    kf_blas_single();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
