/* screen_test.c -- tests the fast test of kofn_check_product. Right products
 * pass it. No product with an error above the floor passes it. */
#include "freivalds_rig.h"
#include "rig.h"

#include "verify/freivalds.h"

static bool passes_the_screen(const trial *t)
{
    kf_factors f = {.A = &t->A,
                    .B = &t->B,
                    .C = &t->C,
                    .m = t->m,
                    .n = t->n,
                    .p = t->p,
                    .terms = t->n,
                    .unit = t->dtype == KOFN_F64 ? 0x1p-53 : 0x1p-24,
                    .least = t->dtype == KOFN_F64 ? -1022 : -126,
                    .top = t->dtype == KOFN_F64 ? 1022 : 126,
                    .secret = 5};
    bool clean;

    assert_ok(kf_screen(&f, &clean));
    return clean;
}

/* The screen works by rows if columns are not shorter, else by columns. Sizes
 * are no multiples of a tile, and some lines have fewer than eight numbers. */
static const size_t screened[][3] = {{61, 40, 33}, {33, 40, 61}, {3, 70, 200},
                                     {200, 70, 3}, {1, 1, 1},    {7, 1100, 5}};
#define SCREENED (sizeof screened / sizeof *screened)

static void make_screened(trial *t, size_t k, kf_rng *rng)
{
    const size_t *s = screened[k / 2];

    make_trial(t, s[0], s[1], s[2], k % 2 ? KOFN_F32 : KOFN_F64, NORMAL, rng);
    multiply_by(t, BY_BLAS);
}

static void right_products_pass(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 13, 0);

    (void)state;
    for (size_t k = 0; k < 2 * SCREENED; k++) {
        trial t;

        make_screened(&t, k, &rng);
        assert_true(passes_the_screen(&t));
        drop_trial(&t);
    }
}

/* See docs/math/errors.md 7.4 and 7.6. */
static void errors_above_floor_fail(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 14, 0);

    (void)state;
    for (size_t k = 0; k < 2 * SCREENED; k++) {
        kofn_findings *f = NULL;
        size_t i, j;
        trial t;

        make_screened(&t, k, &rng);
        know_exactly(&t);
        assert_ok(kofn_check_product(KOFN_DENSE(&t.A), &t.B, &t.C, 0, &f));
        i = kf_rng_below(&rng, t.m);
        j = kf_rng_below(&rng, t.p);
        put(&t.C, i, j, get(&t.C, i, j) + 2 * f->floor * t.row[i] * t.col[j]);
        assert_false(passes_the_screen(&t));
        kofn_findings_free(f);
        drop_trial(&t);
    }
}

/* No norm shows such an entry, however small it is. */
static void zero_factors(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 15, 0);

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        trial t;

        make_trial(&t, k / 2 ? 20 : 30, 9, k / 2 ? 30 : 20, KOFN_F64, NORMAL,
                   &rng);
        for (size_t i = 0; i < t.n; i++)
            put(k % 2 ? &t.A : &t.B, k % 2 ? 4 : i, k % 2 ? i : 4, 0);
        multiply_by(&t, BY_BLAS);
        assert_true(passes_the_screen(&t));
        put(&t.C, k % 2 ? 4 : 7, k % 2 ? 7 : 4, 1e-300);
        assert_false(passes_the_screen(&t));
        drop_trial(&t);
    }
}

static void nonfinite_fails(void **state)
{
    static const double odd[] = {(double)NAN, HUGE_VAL};
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 16, 0);

    (void)state;
    for (size_t k = 0; k < 12; k++) {
        trial t;

        make_trial(&t, k % 2 ? 20 : 30, 9, k % 2 ? 30 : 20, KOFN_F64, NORMAL,
                   &rng);
        multiply_by(&t, BY_BLAS);
        put((kofn_matrix *[]){&t.A, &t.B, &t.C}[k / 2 % 3], 8, 6, odd[k / 6]);
        assert_false(passes_the_screen(&t));
        drop_trial(&t);
    }
}

TEST_FILE(screen_test)
{
    const struct CMUnitTest tests[] = {
        TEST(right_products_pass, "screen: right products pass"),
        TEST(errors_above_floor_fail,
             "screen: no entry passes that is off by two floors"),
        TEST(zero_factors, "screen: only 0 passes if a factor is 0"),
        TEST(nonfinite_fails, "screen: no product with NaN or infinity passes"),
    };

    (void)argc, (void)argv;
    kf_blas_single(); /* BLAS threads look like races to ThreadSanitizer */
    return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
