/* portable.h -- the portable random numbers of math/README.md. The companion
 * table of the specification is made with them. */
#ifndef KF_TEST_PORTABLE_H
#define KF_TEST_PORTABLE_H

#include <math.h>
#include <stdint.h>

static inline uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline double uniform(uint64_t *state)
{
    return (double)(splitmix64(state) >> 11) * 0x1p-53;
}

static inline double normal(uint64_t *state)
{
    double u = uniform(state), v = uniform(state);

    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

#endif
