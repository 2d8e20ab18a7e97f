/* ballot.c -- digests of an iterate, which nodes compare (src/peer/vote.c).
 *
 * A digest covers the part of the vector that the iterate wrote, and its
 * scalars: a hash, and a sum that also agrees on machines with other rounding
 * (src/verify/sums.h).
 *
 * Pure functions of the vector: a digest depends only on the number of the
 * iterate, its numbers, and the machine. */
#include "host.h"

#include "base/mix.h"

#include <assert.h>

double kf_host_room(const kf_host *h, size_t numbers, double most)
{
    assert(numbers > 0);
    return kf_sums_room(h->it.noise, h->work.single, numbers, most);
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
    d.sum = kf_sums_vote(key, scalar, KOFN_SCALARS, &most) +
            kf_sums_vote(kf_mix64(key), v + first, rows, &most);
    d.room = kf_host_room(h, rows + KOFN_SCALARS, most);
    d.tight =
        kf_sums_room(h->it.rounding, h->work.single, rows + KOFN_SCALARS, most);
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

    if (d.exact && h->blocks.changes && !final)
        d.way = h->it.way;
    return d;
}
