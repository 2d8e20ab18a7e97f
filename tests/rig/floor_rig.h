/* floor_rig.h -- computes by LAPACK what errors that parities do not see do to
 * an output, over all sets of possibly faulty nodes (math/errors.md 5.1). */
#ifndef KF_TEST_FLOOR_RIG_H
#define KF_TEST_FLOOR_RIG_H

#include "support.h"

#include "base/base.h"
#include "code/code.h"

#include <lapacke.h>
#include <math.h>

/* Parities and wants, in terms of results. Each node has `components` results.
 */
typedef struct unseen {
    const double *H, *D;
    size_t q, wants, nodes, components;
} unseen;

/* Returns the length of the longest row of D_U H_U^+. Its transpose solves
 * H_U' z = D_U' and is no longer than any other solution. Returns HUGE_VAL if
 * the rank of the parities is below the number of results of U. */
static inline double gain_of(const unseen *s, const uint32_t *U, size_t few)
{
    size_t m = few * s->components, ld = kf_max(m, s->q);
    double *A = kf_new(m * s->q, sizeof *A), *sv = kf_new(ld, sizeof *sv);
    double *B = kf_zero(ld * s->wants, sizeof *B), worst = 0;
    lapack_int rank;

    assert_true(A && B && sv);
    for (size_t i = 0; i < m; i++) {
        size_t at = U[i / s->components] * s->components + i % s->components;
        size_t results = s->nodes * s->components;

        for (size_t k = 0; k < s->q; k++)
            A[k * m + i] = s->H[k * results + at];
        for (size_t w = 0; w < s->wants; w++)
            B[w * ld + i] = s->D[w * results + at];
    }
    assert_int_equal(LAPACKE_dgelsd(LAPACK_COL_MAJOR, (lapack_int)m,
                                    (lapack_int)s->q, (lapack_int)s->wants, A,
                                    (lapack_int)m, B, (lapack_int)ld, sv, 1e-12,
                                    &rank),
                     0);
    for (size_t w = 0; w < s->wants; w++) {
        double sum = 0;

        for (size_t k = 0; k < s->q; k++)
            sum += B[w * ld + k] * B[w * ld + k];
        worst = fmax(worst, sqrt(sum));
    }
    kf_free(A);
    kf_free(B);
    kf_free(sv);
    return (size_t)rank < m ? HUGE_VAL : worst;
}

/* Returns the largest gain over all sets of `few` nodes that begin with the n
 * nodes of U. */
static inline double worst_gain(const unseen *s, uint32_t *U, size_t n,
                                size_t few)
{
    double worst = 0;

    if (n == few)
        return gain_of(s, U, few);
    for (uint32_t i = n ? U[n - 1] + 1 : 0; i < s->nodes; i++) {
        U[n] = i;
        worst = fmax(worst, worst_gain(s, U, n + 1, few));
    }
    return worst;
}

static inline double sets_of(size_t nodes, size_t few)
{
    double sets = 1;

    for (size_t i = 0; i < few; i++)
        sets *= (double)(nodes - i) / (double)(i + 1);
    return sets;
}

/* Returns the rows of a decoder for results that are divided by the weights of
 * their seats. */
static inline double *decoder_rows(kf_code *code, const kofn_decoder *d)
{
    double *D = kf_zero(d->wants * d->results, sizeof *D);
    size_t row = 0;

    assert_non_null(D);
    for (size_t w = 0; w < d->wants; w++) {
        double *to = D + w * d->results;

        for (size_t r = 0; r < d->results; r++) {
            const kf_seat *s;

            assert_ok(
                kf_code_seat(code, d->seat[r / (d->results / d->seats)], &s));
            to[r] = d->copy[w] == KF_MIXED ? d->D[row * d->results + r]
                                           : d->copy[w] == (int32_t)r;
            to[r] *= s->weight > 0 ? s->weight : 1;
        }
        row += d->copy[w] == KF_MIXED;
    }
    return D;
}

#endif
