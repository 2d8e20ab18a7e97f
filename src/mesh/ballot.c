/* ballot.c -- digests of an iterate, which nodes compare (src/peer/vote.c).
 *
 * A digest covers the part of the vector that the iterate wrote, and its
 * scalars.  Machines that compute the same bits have the same hash.  On other
 * machines, sums of the numbers with random weights agree within the rounding
 * of decoding (math/training.md 12).
 *
 * Pure functions of the vector: a digest depends only on the number of the
 * iterate, its numbers, and the machine. */
#include "host.h"

#include "base/mix.h"
#include "base/vectors.h"

#include <assert.h>
#include <math.h>

/* Smallest noise that is assumed, also of a node that has decoded nothing. */
#define NOISE 1e-13
#define NOISE_F32 (NOISE * 0x1p29) /* the same number of units of rounding */
/* bound of a sum of rounding errors, in standard deviations */
#define DEVIATIONS 20

/* Returns a weight from 1/2 to 1 of either sign: 15 bits of a significand, and
 * the sign. */
static inline double weigh(uint64_t bits)
{
    uint64_t number =
        UINT64_C(0x3fe) << 52 | (bits & 0x7fff) << 37 | (bits & 0x8000) << 48;
    double x;

    memcpy(&x, &number, sizeof x);
    return x;
}

#define LANES 32 /* see vector_quorum.c */

/* Adds numbers with their weights, in components.  One random number gives the
 * weights of four numbers in a column, so that the columns are added in
 * components. */
KF_VECTORS(optimize("O3"))
static size_t add(uint64_t key, const double *x, size_t n, double sum[LANES],
                  double top[LANES])
{
    size_t i = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        uint64_t bits[LANES];

        for (size_t k = 0; k < LANES; k++)
            bits[k] = kf_mix64(kf_state64(key, i + k));
        for (size_t r = 0; r < 4; r++)
            for (size_t k = 0; k < LANES; k++) {
                double y = x[i + r * LANES + k], size = fabs(y);

                sum[k] += weigh(bits[k] >> 16 * r) * y;
                top[k] = size > top[k] ? size : top[k];
            }
    }
    return i;
}

/* Returns the weighted sum.  Updates *most, the largest magnitude of the
 * numbers. */
static double weighted_sum(uint64_t key, const double *x, size_t n,
                           double *most)
{
    double sum[LANES] = {0}, top[LANES] = {0}, all = 0;
    size_t i = add(key, x, n, sum, top);

    assert(i <= n);
    assert(n - i < 4 * LANES);
    for (; i < n; i++) {
        all += weigh(kf_mix64(kf_state64(key, i))) * x[i];
        *most = fmax(*most, fabs(x[i]));
    }
    for (size_t k = 0; k < LANES; k++) {
        all += sum[k];
        *most = fmax(*most, top[k]);
    }
    return all;
}

static double room_of(const kf_mesh_work *work, double noise, size_t numbers,
                      double most)
{
    assert(most >= 0);
    noise = fmax(noise, work->single ? NOISE_F32 : NOISE);
    return DEVIATIONS * sqrt((double)numbers) * 2 * noise * most;
}

double kf_host_room(const kf_host *h, size_t numbers, double most)
{
    assert(numbers > 0);
    return room_of(&h->work, h->it.noise, numbers, most);
}

kf_node_digest kf_host_digest(const kf_host *h, uint64_t t,
                              const double *scalar, const double *v)
{
    uint64_t key = kf_mix64(kf_state64(h->job, t));
    kf_node_digest d = {.machine = h->it.machine};
    size_t first, rows;
    double most = 0;

    if (h->opt.errors == KOFN_ERRORS_NONE)
        return d;
    kf_host_wrote(h, t, &first, &rows);
    assert(first + rows <= h->it.v->m.rows);
    d.exact = kf_hash(t, scalar, KOFN_SCALARS * sizeof *scalar);
    d.exact = kf_hash(d.exact, v + first, rows * sizeof *v) | 1;
    d.sum = weighted_sum(key, scalar, KOFN_SCALARS, &most) +
            weighted_sum(kf_mix64(key), v + first, rows, &most);
    d.room = kf_host_room(h, rows + KOFN_SCALARS, most);
    d.tight = room_of(&h->work, h->it.rounding, rows + KOFN_SCALARS, most);
    return d;
}

/* ---- ways ---------------------------------------------------------------- */

/* Two nodes that leave out different partial products decode from different
 * ones, so their products differ by rounding.  This also holds for all that
 * follows until the end of the turn; the next turn starts from points and
 * blocks alone. */

void kf_host_way_note(kf_host *h, size_t group, const kofn_decoder *d)
{
    assert(group < h->work.on->groups);
    assert(d->seats > 0);
    h->it.from[group] = kf_hash(group + 1, d->seat, d->seats * sizeof *d->seat);
}

void kf_host_way_go(kf_host *h)
{
    uint64_t turn = kf_course_turn(&h->work.course, h->it.at.step);

    if (h->it.at.step == kf_course_end(&h->work.course, turn))
        h->it.way = 0;
    h->it.way =
        kf_hash(h->it.way, h->it.from, h->work.on->groups * sizeof *h->it.from);
}

void kf_host_way_take(kf_mesh_iterate *it, const kf_node_digest *digest)
{
    it->way = digest->way;
}

kf_node_digest kf_host_digest_of_way(const kf_host *h, uint64_t t,
                                     const double *scalar, const double *v,
                                     bool final)
{
    kf_node_digest d = kf_host_digest(h, t, scalar, v);

    if (d.exact && h->program.change && !final)
        d.way = h->it.way;
    return d;
}
