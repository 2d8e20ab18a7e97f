/* activation.c -- what units make of what they are given, and its slopes: a row at a
 * time, many units at once.
 *
 * The exponential of a sigmoid is a polynomial, so that the same bits come out on every
 * processor, whatever its vectors and its mathematical library are.
 *
 * Owns nothing, and allocates nothing. */
#include "net.h"

#include "base/vectors.h"

#include <math.h>

/* 1.5 * 2^52: a number of a magnitude below 2^51 is rounded to an integer when this is
 * added, which the lowest bits hold then. */
#define ROUNDER 0x1.8p52
#define LOG2E 0x1.71547652b82fep+0
/* ln 2 in two parts, of which multiples of the first up to 2^11 are exact. */
#define LN2_HIGH 0x1.62e42fefap-1
#define LN2_LOW 0x1.cf79abc9e3b3ap-40
#define LEAST (-746.0) /* exp of less than that is 0, too */
#define UP 64 /* binary digits, so that what is subnormal is rounded once */

/* exp(x), x <= 0, to less than 2 units in the last place; NaN stays NaN.  2^k times exp
 * of the rest, of magnitude ln 2 / 2 at most, which is Taylor's polynomial. */
static inline double decay(double x)
{
    static const double over[] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800,
        1.0 / 362880,     1.0 / 40320,     1.0 / 5040,     1.0 / 720,
        1.0 / 120,        1.0 / 24,        1.0 / 6,        0.5};
    double t, k, r, e;
    uint64_t bits;

    x = x < LEAST ? LEAST : x;
    t = x * LOG2E + ROUNDER;
    k = t - ROUNDER;
    r = (x - k * LN2_HIGH) - k * LN2_LOW;
    e = over[0];
    for (int i = 1; i < 12; i++)
        e = e * r + over[i];
    e = 1 + (r + r * r * e);
    memcpy(&bits, &t, sizeof bits);
    bits = ((bits & 0xfff) + 1023 + UP) << 52; /* k mod 2^12 */
    memcpy(&k, &bits, sizeof k);
    return e * k * 0x1p-64;
}

KF_VECTORS(optimize("O3"))
static void sigmoid(double *x, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        double e = decay(-fabs(x[j])); /* never overflows */

        x[j] = (x[j] > 0 ? 1 : e) / (1 + e);
    }
}

void kf_activation_apply(kofn_activation f, double *x, size_t n)
{
    switch (f) {
    case KOFN_SIGMOID:
        sigmoid(x, n);
        return;
    case KOFN_TANH:
        for (size_t j = 0; j < n; j++)
            x[j] = tanh(x[j]);
        return;
    case KOFN_RELU:
        for (size_t j = 0; j < n; j++)
            x[j] = x[j] < 0 ? 0 : x[j];
        return;
    case KOFN_LINEAR:
        return;
    }
}

KF_VECTORS(optimize("O3"))
void kf_activation_slope(kofn_activation f, const double *x, double *d,
                         size_t n)
{
    switch (f) {
    case KOFN_SIGMOID:
        for (size_t j = 0; j < n; j++)
            d[j] *= x[j] * (1 - x[j]);
        return;
    case KOFN_TANH:
        for (size_t j = 0; j < n; j++)
            d[j] *= 1 - x[j] * x[j];
        return;
    case KOFN_RELU:
        for (size_t j = 0; j < n; j++)
            d[j] *= x[j] > 0;
        return;
    case KOFN_LINEAR:
        return;
    }
}
