/* activation_test.c -- what units make of what they are given, against long
 * double. */
#include "support.h"

#include "learn/net.h"

#include "base/rng.h"

#include <float.h>
#include <math.h>

static long double sigmoid_of(long double x)
{
    long double e = expl(-fabsl(x));

    return (x > 0 ? 1 : e) / (1 + e);
}

/* The exponential to less than 2 units in the last place, a sum and a quotient:
 * less than 3; what is subnormal to one of its units more. */
static void is_near(double x, double is)
{
    long double want = sigmoid_of(x);

    if (!(fabsl(is - want) <= 3 * DBL_EPSILON * want + 0x1p-1074L))
        fail_msg("the sigmoid of %a is %a for %La", x, is, want);
}

static void sigmoids_are_exact(void **state)
{
    enum { ROW = 101 };
    kf_rng r = kf_rng_stream(1, KF_FOR_SAMPLE, 0, 0);

    (void)state;
    for (int i = 0; i < 4000; i++) {
        double x[ROW], y[ROW], most = ldexp(1, i % 24 - 14) * 1.5;

        for (size_t j = 0; j < ROW; j++)
            x[j] = y[j] = most * (2 * kf_rng_uniform(&r) - 1);
        kf_activation_apply(KOFN_SIGMOID, y, ROW - (size_t)i % 8);
        for (size_t j = 0; j < ROW - (size_t)i % 8; j++)
            is_near(x[j], y[j]);
    }
}

/* Where powers of 2 change, and at the ends. */
static void sigmoids_have_no_seams(void **state)
{
    (void)state;
    for (int k = -1080; k <= 1080; k++) {
        double at = (k + 0.5) * 0.69314718055994530942;
        double x[] = {nextafter(at, -INFINITY), at, nextafter(at, INFINITY),
                      k * 0.69314718055994530942, ldexp(1, k < -1074 ? 0 : k)};
        double y[5];

        memcpy(y, x, sizeof y);
        kf_activation_apply(KOFN_SIGMOID, y, 5);
        for (size_t j = 0; j < 5; j++)
            is_near(x[j], y[j]);
    }
}

static void ends_are_kept(void **state)
{
    double x[] = {0, -0.0, INFINITY, -INFINITY, NAN, -NAN, DBL_MAX, -DBL_MAX};

    (void)state;
    kf_activation_apply(KOFN_SIGMOID, x, 8);
    assert_true(x[0] == 0.5 && x[1] == 0.5);
    assert_true(x[2] == 1 && x[3] == 0);
    assert_true(isnan(x[4]) && isnan(x[5]));
    assert_true(x[6] == 1 && x[7] == 0);
}

/* By differences of f: their error is that of a third derivative, of magnitude
 * 2 at most, and that of rounding. */
static void slopes_are_derivatives(void **state)
{
    static const kofn_activation f[] = {KOFN_SIGMOID, KOFN_TANH, KOFN_RELU,
                                        KOFN_LINEAR};
    const double h = 1e-5;

    (void)state;
    for (size_t k = 0; k < sizeof f / sizeof *f; k++)
        for (int i = -40; i < 40; i++) {
            double x = 0.1 * i + 0.05, up = x + h, down = x - h, at = x, d = 3;

            kf_activation_apply(f[k], &up, 1);
            kf_activation_apply(f[k], &down, 1);
            kf_activation_apply(f[k], &at, 1);
            kf_activation_slope(f[k], &at, &d, 1);
            assert_true(fabs(d / 3 - (up - down) / (2 * h)) <=
                        2 * h * h + 4 * DBL_EPSILON / h);
        }
}

TEST_FILE(activation_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigmoids_are_exact),
        cmocka_unit_test(sigmoids_have_no_seams),
        cmocka_unit_test(ends_are_kept),
        cmocka_unit_test(slopes_are_derivatives),
    };

    return cmocka_run_group_tests_name("activation", tests, NULL, NULL);
}
