/* mix.h -- numbers mixed until nothing can be seen of them: hashes, and random
 * numbers good enough to choose sets and places.
 *
 * Pure functions without state.  They are no cryptography: what an enemy may
 * not guess is drawn from the system. */
#ifndef KF_MIX_H
#define KF_MIX_H

#include <stdint.h>
#include <string.h>

/* Hashes and generators compute modulo 2^64; elsewhere unsigned numbers that
 * wrap round are faults, which the fuzz build looks for. */
#if defined(__clang__)
#define KF_WRAPS __attribute__((no_sanitize("unsigned-integer-overflow")))
#else
#define KF_WRAPS
#endif

/* splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014): the step of its state, and what it makes of a state. */
#define KF_STEP64 UINT64_C(0x9e3779b97f4a7c15)

KF_WRAPS static inline uint64_t kf_mix64(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns the state after k steps from `seed`; kf_mix64 makes number k from it.
 * For k = 0 it is the seed. */
KF_WRAPS static inline uint64_t kf_state64(uint64_t seed, uint64_t k)
{
    return seed + KF_STEP64 * k;
}

KF_WRAPS static inline uint64_t kf_next64(uint64_t *state)
{
    return kf_mix64(*state += KF_STEP64);
}

/* A weight of a random number: from 1/2 to 1 by 52 of its bits, of either
 * sign. */
static inline double kf_weight64(uint64_t bits)
{
    uint64_t number = UINT64_C(0x3fe) << 52 |
                      (bits & ((UINT64_C(1) << 52) - 1)) |
                      (bits & UINT64_C(1) << 63);
    double x;

    memcpy(&x, &number, sizeof x);
    return x;
}

/* FNV-1a, of words or of bytes. */
#define KF_FNV UINT64_C(14695981039346656037)

KF_WRAPS static inline uint64_t kf_fnv(uint64_t h, uint64_t x)
{
    return (h ^ x) * UINT64_C(1099511628211);
}

#endif
