/* screen_test.c -- the fast test of kofn_check_product: right products pass it,
 * and no wrong product above the error floor does. */
#include "freivalds_rig.h"
#include "rig.h"

#include "data/freivalds.h"

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

/* By rows if they are as short as columns, else by columns; sizes that are no
 * multiples of a tile, and less than eight numbers in a line. */
static const size_t screened[][3] = {{61, 40, 33}, {33, 40, 61}, {3, 70, 200},
                                     {200, 70, 3}, {1, 1, 1},    {7, 1100, 5}};
#define SCREENED (sizeof screened / sizeof *screened)

static void make_screened(trial *t, size_t k, kf_rng *rng)
{
    const size_t *s = screened[k / 2];

    make_trial(t, s[0], s[1], s[2], k % 2 ? KOFN_F32 : KOFN_F64, NORMAL, rng);
    multiply_by(t, BY_BLAS);
}

static void right_products_pass_the_screen(void **state)
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

/* Twice the floor: docs/math/errors.md 7.4, 7.6. */
static void no_entry_above_the_floor_passes_the_screen(void **state)
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

/* No norm shows an entry that has to be 0, however small it is. */
static void nothing_but_0_passes_where_a_factor_is_0(void **state)
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

static void numbers_that_are_not_finite_pass_no_screen(void **state)
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
        cmocka_unit_test(right_products_pass_the_screen),
        cmocka_unit_test(no_entry_above_the_floor_passes_the_screen),
        cmocka_unit_test(nothing_but_0_passes_where_a_factor_is_0),
        cmocka_unit_test(numbers_that_are_not_finite_pass_no_screen),
    };

    (void)argc, (void)argv;
    kf_blas_single(); /* BLAS threads look like races to ThreadSanitizer */
    return cmocka_run_group_tests_name("screen", tests, NULL, NULL);
}
