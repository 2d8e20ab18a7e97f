/* activation_test.c -- activation functions, compared with long double. */
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

/* The exponential has an error below 2 units in the last place. With a sum and
 * a quotient it is below 3. Subnormal results have one more of their units. */
static void assert_sigmoid(double x, double is)
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
            assert_sigmoid(x[j], y[j]);
    }
}

/* Covers places at which the power of 2 changes, and the ends. */
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
            assert_sigmoid(x[j], y[j]);
    }
}

static void special_values(void **state)
{
    double x[] = {0, -0.0, INFINITY, -INFINITY, NAN, -NAN, DBL_MAX, -DBL_MAX};

    (void)state;
    kf_activation_apply(KOFN_SIGMOID, x, 8);
    assert_true(x[0] == 0.5 && x[1] == 0.5);
    assert_true(x[2] == 1 && x[3] == 0);
    assert_true(isnan(x[4]) && isnan(x[5]));
    assert_true(x[6] == 1 && x[7] == 0);
}

/* Differences of f give the expected slope. Their error is from a third
 * derivative of at most 2 and from rounding. */
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
        TEST(sigmoids_are_exact,
             "activation: sigmoids are exact to 3 units in the last place"),
        TEST(sigmoids_have_no_seams,
             "activation: sigmoids are exact where the power of 2 changes"),
        TEST(special_values,
             "activation: sigmoids of zeros, infinities and NaN are right"),
        TEST(slopes_are_derivatives, "activation: slopes are the derivatives"),
    };

    return cmocka_run_group_tests_name("activation", tests, NULL, NULL);
}
