/* print.c -- fingerprints of vectors, by which a node confirms the iterate of
 * another.
 *
 * A fingerprint is the product of the vector with a row that follows from a
 * key. The entries of the row are products of two weights from 1/2 to 1, of a
 * span and of a place in it.  So an error e of one number is seen if e > 4 t.
 * Errors of several numbers come within t of zero with a chance of at most 4 t
 * / e, with e the largest.
 *
 * Pure functions of vectors.
 */
#include "host.h"

#include "base/mix.h"
#include "base/vectors.h"

#include <assert.h>
#include <math.h>

/* Allowed differences, relative to the sum of the magnitudes of all entries.
 * Honest nodes may differ by more if the code is noisy: then none confirms, and
 * nothing is taken.  If nodes vote (ballot.c), fingerprints may differ by no
 * more than votes.  Otherwise a node could take a vector with an error that is
 * too small to be seen here, and the vote would blame it. */
#define MAY_DIFFER 1e-11
#define MAY_DIFFER_F32 1e-4

double kf_print_may_differ(const kf_host *h)
{
    return h->work.single ? MAY_DIFFER_F32 : MAY_DIFFER;
}

/* With fewer components gcc 12 shuffles them across its vectors, which takes
 * three times the time. */
#define LANES 32
#define SPAN 512 /* numbers that share a weight */

/* Returns the largest of `most` and the magnitudes of n numbers. */
KF_VECTORS(optimize("O3"))
double kf_print_greatest(const double *x, size_t n, double most)
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

/* Returns the difference of fingerprints that a vote about the vector allows.
 * There is no limit without votes, or for a node that has decoded nothing and
 * so does not know the noise of the code. */
double kf_print_room(const kf_host *h, const double *body)
{
    size_t numbers = KOFN_SCALARS + h->it.v->m.rows;

    return h->opt.errors == KOFN_ERRORS_NONE || h->it.noise <= 0
               ? HUGE_VAL
               : kf_host_room(h, numbers, kf_print_greatest(body, numbers, 0));
}

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

kf_print kf_print_of(uint64_t key, const double *scalar, const double *v,
                     size_t rows)
{
    double weight[SPAN];
    size_t drawn = 0;
    components all = {0};
    kf_print p = {0};

    for (size_t k = 0; k < SPAN; k++)
        weight[k] = weight_of(key, drawn++);
    add(&all, weight, weight_of(key, drawn++), scalar, KOFN_SCALARS);
    for (size_t at = 0; at < rows; at += SPAN)
        add(&all, weight, weight_of(key, drawn++), v + at,
            kf_min(SPAN, rows - at));
    for (size_t k = 0; k < LANES; k++) {
        p.sum += all.sum[k];
        p.most += all.size[k];
    }
    return p;
}

double kf_print_local(const kf_mesh_iterate *it, uint64_t key)
{
    return kf_print_of(key, it->scalar, it->v->m.data, it->v->m.rows).sum;
}

bool kf_print_alike(const double *x, const double *y, size_t n, double room)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= room))
            return false;
    return true;
}
