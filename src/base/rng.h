/* rng.h -- named random streams over Random123's Philox4x32-10.
 *
 * A stream is named by (seed, purpose, i, j).  Its numbers do not depend on
 * other streams, on the order of use or on the machine.  So a seed repeats a
 * simulated run byte for byte, and encoder and decoder agree on coefficients
 * without exchanging them.
 *
 * Philox: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011.
 *
 * A stream is a plain struct and owns no memory.  Code must not draw from the
 * stream of another purpose: a change in one place would change results in the
 * other.
 */
#ifndef KF_RNG_H
#define KF_RNG_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef enum kf_purpose {
    KF_FOR_CODE = 1, /* coefficients               i = seat, j = part     */
    KF_FOR_SPEED,    /* a worker's speed           i = worker             */
    KF_FOR_STRAGGLE, /* does it straggle           i = worker, j = round  */
    KF_FOR_LEAVE,    /* when it leaves             i = worker             */
    KF_FOR_JOIN,     /* when joiner i arrives      i = joiner             */
    KF_FOR_CORRUPT,  /* is a result wrong          i = worker, j = task   */
    KF_FOR_SAMPLE,   /* survivor sets to measure   i = trial              */
    KF_FOR_DATA,     /* generated inputs           i, j as the maker says */
    KF_FOR_SKETCH,   /* weights of blocks          i = operand            */
    KF_FOR_PATTERN,  /* is it slow in a pattern    i = worker, j = round  */
    KF_FOR_WEIGHTS,  /* first weights of a network i = layer, j = row     */
    KF_FOR_FLIP,     /* does a bit flip, and which i = worker, j = update */
    KF_FOR_MISS      /* is an update missed        i = worker, j = update */
} kf_purpose;

typedef struct kf_rng {
    uint32_t key[2], counter[4], out[4];
    unsigned left; /* words of `out` that are unused */
} kf_rng;

/* Draws the next four words into `out`. */
void kf_rng_refill(kf_rng *r);
/* Writes the numbers that the next n calls of kf_rng_u64 would give, faster. */
void kf_rng_fill(kf_rng *r, uint64_t *to, size_t n);

static inline kf_rng kf_rng_stream(uint64_t seed, kf_purpose purpose,
                                   uint32_t i, uint32_t j)
{
    kf_rng r = {{(uint32_t)seed, (uint32_t)(seed >> 32)},
                {0, (uint32_t)purpose, i, j},
                {0, 0, 0, 0},
                0};

    return r;
}

static inline uint32_t kf_rng_u32(kf_rng *r)
{
    if (r->left == 0)
        kf_rng_refill(r);
    return r->out[4 - r->left--];
}

static inline uint64_t kf_rng_u64(kf_rng *r)
{
    uint64_t high = kf_rng_u32(r);

    return high << 32 | kf_rng_u32(r);
}

/* Returns a number of [0, 1) with 53 bits. */
static inline double kf_rng_uniform(kf_rng *r)
{
    return (double)(kf_rng_u64(r) >> 11) * 0x1p-53;
}

__extension__ typedef unsigned __int128 kf_u128;

/* Maps 64 random bits to 0 .. n-1, n >= 1, with a bias of at most n 2^-64. */
static inline uint64_t kf_rng_scale(uint64_t x, uint64_t n)
{
    return (uint64_t)((kf_u128)x * n >> 64);
}

static inline uint64_t kf_rng_below(kf_rng *r, uint64_t n)
{
    return kf_rng_scale(kf_rng_u64(r), n);
}

/* Returns a standard normal number, from two uniform ones (Box and Muller). */
static inline double kf_rng_normal(kf_rng *r)
{
    double u = kf_rng_uniform(r), v = kf_rng_uniform(r);

    return sqrt(-2 * log1p(-u)) * cos(6.283185307179586477 * v);
}

/* Returns an exponential number of mean 1. */
static inline double kf_rng_exponential(kf_rng *r)
{
    return -log1p(-kf_rng_uniform(r));
}

#endif
