/* gcd.h -- the greatest common divisor, a pure function. */
#ifndef KF_GCD_H
#define KF_GCD_H

#include <stddef.h>

static inline size_t kf_gcd(size_t a, size_t b)
{
    while (b) {
        size_t t = a % b;

        a = b;
        b = t;
    }
    return a;
}

#endif
