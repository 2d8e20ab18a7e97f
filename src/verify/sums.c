/* sums.c -- random sums of vectors, and the differences that rounding
 * explains.
 *
 * Machines that compute the same bits have the same sums.  On other machines,
 * sums agree within the rounding of decoding (math/training.md 12).
 *
 * Pure functions of vectors. */
#include "sums.h"

#include "base/vectors.h"

#include <assert.h>
#include <math.h>

/* With fewer components gcc 12 shuffles them across its vectors, which takes
 * three times the time. */
#define LANES 32

/* Returns the largest of `most` and the magnitudes of n numbers. */
KF_VECTORS(optimize("O3"))
double kf_sums_greatest(const double *x, size_t n, double most)
{
    double top[LANES] = {0};
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            double magnitude = fabs(x[i + k]);

            top[k] = magnitude > top[k] ? magnitude : top[k];
        }
    for (; i < n; i++)
        most = fmax(most, fabs(x[i]));
    for (size_t k = 0; k < LANES; k++)
        most = fmax(most, top[k]);
    return most;
}

bool kf_sums_alike(const double *x, const double *y, size_t n, double room)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= room))
            return false;
    return true;
}

/* ---- sums with secret weights -------------------------------------------- */

#define SPAN 512 /* numbers that share a weight */

/* A fingerprint before its components are added up. */
typedef struct components {
    double sum[LANES], size[LANES];
} components;

/* Adds a span of at most SPAN numbers, with the weights of their places and
 * `own`, the weight of the span. */
KF_VECTORS(optimize("O3"))
static void add(components *to, const double weight[SPAN], double own,
                const double *x, size_t n)
{
    double sum[LANES] = {0}, size[LANES] = {0};
    size_t i = 0;

    assert(n <= SPAN);
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            double y = weight[i + k] * x[i + k];

            sum[k] += y;
            size[k] += fabs(y);
        }
    for (size_t k = 0; i + k < n; k++) {
        double y = weight[i + k] * x[i + k];

        sum[k] += y;
        size[k] += fabs(y);
    }
    for (size_t k = 0; k < LANES; k++) {
        to->sum[k] += own * sum[k];
        to->size[k] += fabs(own) * size[k];
    }
}

static double weight_of(uint64_t key, size_t number)
{
    return kf_weight64(kf_mix64(kf_state64(key, number)));
}

kf_weighed kf_sums_print(uint64_t key, const double *scalar, size_t scalars,
                         const double *v, size_t rows)
{
    double weight[SPAN];
    size_t drawn = 0;
    components all = {0};
    kf_weighed p = {0};

    for (size_t k = 0; k < SPAN; k++)
        weight[k] = weight_of(key, drawn++);
    add(&all, weight, weight_of(key, drawn++), scalar, scalars);
    for (size_t at = 0; at < rows; at += SPAN)
        add(&all, weight, weight_of(key, drawn++), v + at,
            kf_min(SPAN, rows - at));
    for (size_t k = 0; k < LANES; k++) {
        p.sum += all.sum[k];
        p.most += all.size[k];
    }
    return p;
}

/* ---- sums with known weights --------------------------------------------- */

/* Returns a weight from 1/2 to 1 of either sign: 15 bits of a significand, and
 * the sign. */
static inline double weight_of_bits(uint64_t bits)
{
    uint64_t number =
        UINT64_C(0x3fe) << 52 | (bits & 0x7fff) << 37 | (bits & 0x8000) << 48;
    double x;

    memcpy(&x, &number, sizeof x);
    return x;
}

/* Adds numbers with their weights, in components.  One random number gives the
 * weights of four numbers in a column, so that the columns are added in
 * components. */
KF_VECTORS(optimize("O3"))
static size_t add_all(uint64_t key, const double *x, size_t n,
                      double sum[LANES], double top[LANES])
{
    size_t i = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        uint64_t bits[LANES];

        for (size_t k = 0; k < LANES; k++)
            bits[k] = kf_mix64(kf_state64(key, i + k));
        for (size_t r = 0; r < 4; r++)
            for (size_t k = 0; k < LANES; k++) {
                double y = x[i + r * LANES + k], size = fabs(y);

                sum[k] += weight_of_bits(bits[k] >> 16 * r) * y;
                top[k] = size > top[k] ? size : top[k];
            }
    }
    return i;
}

double kf_sums_vote(uint64_t key, const double *x, size_t n, double *most)
{
    double sum[LANES] = {0}, top[LANES] = {0}, all = 0;
    size_t i = add_all(key, x, n, sum, top);

    assert(i <= n);
    assert(n - i < 4 * LANES);
    for (; i < n; i++) {
        all += weight_of_bits(kf_mix64(kf_state64(key, i))) * x[i];
        *most = fmax(*most, fabs(x[i]));
    }
    for (size_t k = 0; k < LANES; k++) {
        all += sum[k];
        *most = fmax(*most, top[k]);
    }
    return all;
}

/* ---- differences ----------------------------------------------------------
 */

/* Smallest noise that is assumed, also of a node that has decoded nothing. */
#define NOISE 1e-13
#define NOISE_F32 (NOISE * 0x1p29) /* the same number of units of rounding */
/* bound of a sum of rounding errors, in standard deviations */
#define DEVIATIONS 20

double kf_sums_room(double noise, bool single, size_t numbers, double most)
{
    assert(most >= 0);
    noise = fmax(noise, single ? NOISE_F32 : NOISE);
    return DEVIATIONS * sqrt((double)numbers) * 2 * noise * most;
}
