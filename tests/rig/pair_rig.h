/* pair_rig.h -- a product of a stream and its right answer. */
#ifndef KF_TEST_PAIR_RIG_H
#define KF_TEST_PAIR_RIG_H

#include "rig.h"

#include <math.h>

typedef struct pair {
    kofn_matrix X, Y, out;
    double *want, size; /* size: a typical entry */
    uint32_t number;
} pair;

static inline pair make_pair(size_t m, size_t n, size_t p, kofn_dtype dtype,
                             uint64_t seed)
{
    pair a = {.X = random_matrix(m, n, dtype, seed),
              .Y = random_matrix(n, p, dtype, seed + 1),
              .out = random_matrix(m, p, dtype, seed + 2)};

    a.want = plain_product(&a.X, &a.Y);
    a.size = rig_norm(&a.X) * rig_norm(&a.Y) / sqrt((double)n);
    for (size_t i = 0; i < m * p; i++)
        if (dtype == KOFN_F64)
            ((double *)a.out.data)[i] = NAN;
        else
            ((float *)a.out.data)[i] = NAN;
    return a;
}

static inline double error_of(const pair *a)
{
    double *y = as_doubles(&a->out), sum = 0, all = 0;

    for (size_t i = 0; i < a->out.rows * a->out.cols; i++) {
        sum += (y[i] - a->want[i]) * (y[i] - a->want[i]);
        all += a->want[i] * a->want[i];
    }
    kf_free(y);
    return sqrt(sum) / fmax(sqrt(all), a->size);
}

static inline void free_pair(pair *a)
{
    kf_free(a->X.data);
    kf_free(a->Y.data);
    kf_free(a->out.data);
    kf_free(a->want);
}

#endif
