/* freivalds_limits_test.c -- products that are just as wrong as any order of
 * summation may leave them, or just not. */
#include "freivalds_rig.h"

#include "mat/mat.h"

#include <float.h>

static void check(const trial *t, kofn_status st, kofn_findings **f)
{
    assert_status(st,
                  kofn_check_product(KOFN_DENSE(&t->A), &t->B, &t->C, 0, f));
}

/* Every entry is further off than rounding usually leaves it, all the same way,
 * and right: they are too many to be computed again. */
static void as_far_off_as_a_sum_may_be(void **state)
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

/* Products that are mostly lost below the least number: the same. */
static void too_small_to_be_exact(void **state)
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

/* A number between 2^-14 and 2^16 with 11 binary digits. */
static double half_of(double x)
{
    int exponent;
    volatile double much;

    frexp(x, &exponent);
    much = ldexp(0x1.8p52, exponent - 11);
    much += x;
    return much - ldexp(0x1.8p52, exponent - 11);
}

/* The best product that float16 has is right, and only for float16.  One entry
 * that is off is found, and rounded to float16. */
static void of_half_precision(void **state)
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

/* 16 sqrt(lines) roundings of an entry, as usual ones are taken to be, and of
 * the sums in double precision (math/errors.md 7.3 and 7.4). */
static void the_floor_is_that_of_the_statement(void **state)
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

/* One entry is off by so much of the floor: found, for certain if that is more
 * than half of it and rounding is far less than may usually be. */
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

/* Of more columns than rows, which are seen by their columns sooner, and of
 * fewer. */
static void what_is_above_the_floor_is_found(void **state)
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

/* Where a row of A or a column of B is zero so is the product, however small
 * what stands there instead. */
static void nothing_times_anything(void **state)
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
        cmocka_unit_test(as_far_off_as_a_sum_may_be),
        cmocka_unit_test(too_small_to_be_exact),
        cmocka_unit_test(of_half_precision),
        cmocka_unit_test(the_floor_is_that_of_the_statement),
        cmocka_unit_test(what_is_above_the_floor_is_found),
        cmocka_unit_test(nothing_times_anything),
    };

    kf_blas_single();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
