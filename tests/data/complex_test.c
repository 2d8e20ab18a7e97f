/* complex_test.c -- tests inputs of complex products against C's own complex
 * numbers. */
#include "support.h"

#include <kofn.h>

#include <complex.h>

#define M 4
#define N 3
#define P 2

/* Returns small whole numbers, so that products are exact. */
static double complex number(int seed)
{
    return (double)(seed * 7 % 11 - 5) + I * (double)(seed * 5 % 13 - 6);
}

/* Multiplies the real matrices with three loops. */
static void multiply(const double *a, const double *x, double *y)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < 2 * P; j++) {
            y[i * 2 * P + j] = 0;
            for (int k = 0; k < 2 * N; k++)
                y[i * 2 * P + j] += a[i * 2 * N + k] * x[k * 2 * P + j];
        }
}

static void is_product(bool is_complex)
{
    double complex A[M * N], X[N * P], Y[M * P], got[M * P];
    double real[N * P], expanded[2 * N * 2 * P];
    kofn_matrix in = {X, N, 2 * P, 2 * P, KOFN_F64};
    kofn_matrix out = {expanded, 2 * N, 2 * P, 2 * P, KOFN_F64};

    for (int k = 0; k < M * N; k++)
        A[k] = number(k);
    for (int k = 0; k < N * P; k++) {
        X[k] = is_complex ? number(50 + k) : creal(number(50 + k));
        real[k] = creal(X[k]);
    }
    for (int i = 0; i < M * P; i++) {
        Y[i] = 0;
        for (int k = 0; k < N; k++)
            Y[i] += A[i / P * N + k] * X[k * P + i % P];
    }
    if (!is_complex)
        in = (kofn_matrix){real, N, P, P, KOFN_F64};
    assert_ok(kofn_complex_input(&in, is_complex, &out));
    multiply((double *)A, expanded, (double *)got);
    for (int i = 0; i < M * P; i++)
        assert_true(got[i] == Y[i]);
}

static void products(void **state)
{
    (void)state;
    is_product(true);
    is_product(false);
}

/* Rows may lie apart, and nothing between them is written. */
static void rows_apart(void **state)
{
    float x[] = {1, 2, 9, 3, 4, 9}, out[4 * 3];
    kofn_matrix in = {x, 2, 2, 3, KOFN_F32}, to = {out, 4, 2, 3, KOFN_F32};
    static const float want[] = {1, 2, 7, -2, 1, 7, 3, 4, 7, -4, 3, 7};

    (void)state;
    for (int k = 0; k < 12; k++)
        out[k] = 7;
    assert_ok(kofn_complex_input(&in, true, &to));
    for (int k = 0; k < 12; k++)
        assert_true(out[k] == want[k]);
}

static void refusals(void **state)
{
    double x[12] = {0}, out[36];
    kofn_matrix odd = {x, 2, 3, 3, KOFN_F64}, even = {x, 2, 4, 4, KOFN_F64};
    kofn_matrix to = {out, 4, 4, 4, KOFN_F64}, low = {out, 2, 4, 4, KOFN_F64};
    kofn_matrix wide = {out, 4, 6, 6, KOFN_F64}, f32 = {out, 4, 4, 4, KOFN_F32};

    (void)state;
    assert_ok(kofn_complex_input(&even, true, &to));
    assert_ok(kofn_complex_input(&odd, false, &wide));
    assert_status(KOFN_INVAL, kofn_complex_input(NULL, true, &to));
    assert_status(KOFN_INVAL, kofn_complex_input(&even, true, NULL));
    assert_status(KOFN_INVAL, kofn_complex_input(&even, true, &f32));
    assert_status(KOFN_SHAPE, kofn_complex_input(&odd, true, &wide));
    assert_status(KOFN_SHAPE, kofn_complex_input(&even, true, &wide));
    assert_status(KOFN_SHAPE, kofn_complex_input(&even, true, &low));
    assert_status(KOFN_SHAPE, kofn_complex_input(&even, false, &to));
}

TEST_FILE(complex_test)
{
    const struct CMUnitTest tests[] = {
        TEST(products, "complex: the real product of the expanded input is the "
                       "complex product"),
        TEST(rows_apart, "complex: rows of the input and its expansion may lie "
                         "apart"),
        TEST(refusals, "complex: wrong shapes and types are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
