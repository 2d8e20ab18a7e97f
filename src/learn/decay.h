/* decay.h -- exp(x) for x <= 0 and log(1 + y) for 0 <= y <= 1, in arithmetic
 * that compilers vectorise.
 *
 * Both are polynomials. So the bits of a result do not depend on the
 * processor, its vector units or its mathematical library. A file that calls
 * them in a loop is compiled with -fno-trapping-math. */
#ifndef KF_LEARN_DECAY_H
#define KF_LEARN_DECAY_H

#include <stdint.h>
#include <string.h>

/* 1.5 * 2^52. Adding it rounds a number of magnitude below 2^51 to an integer,
 * which the lowest bits then hold. */
#define ROUNDER 0x1.8p52
#define LOG2E 0x1.71547652b82fep+0
/* ln 2 in two parts. Multiples of the first part up to 2^11 are exact. */
#define LN2_HIGH 0x1.62e42fefap-1
#define LN2_LOW 0x1.cf79abc9e3b3ap-40
#define LEAST (-746.0) /* exp of anything below is 0 as well */
#define UP                                                                     \
    64 /* binary digits of scaling: a subnormal result is rounded once         \
        */

/* Returns exp(x) for x <= 0, within 2 units in the last place; NaN for NaN.
 * Computes 2^k times exp of the rest. The rest has magnitude at most ln 2 / 2,
 * and its exp is a Taylor polynomial. */
static inline double kf_decay(double x)
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

/* Returns log(1 + e) for 0 <= e <= 1, within a few units in the last place;
 * NaN for NaN. Sums the series of 2 artanh(e / (2 + e)). */
static inline double kf_log_above(double e)
{
    static const double over[] = {1.0 / 33, 1.0 / 31, 1.0 / 29, 1.0 / 27,
                                  1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19,
                                  1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                  1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
    double s = e / (2 + e), x = s * s, sum = 1.0 / 35;

    for (int i = 0; i < 16; i++) /* the compiler does not unroll more than 16 */
        sum = sum * x + over[i];
    return 2 * s * (sum * x + 1);
}

#endif
