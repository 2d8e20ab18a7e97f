/* members.c -- who can work on a product.
 *
 * The list of live members is scratch of the coordinator, which the next call
 * writes over. */
#include "state.h"

bool kf_core_can_work(const kofn_core *c, const kf_round *r, uint32_t worker)
{
    const kf_worker *w = &c->fleet.worker[worker];

    assert(worker < c->fleet.workers && worker < r->workers);
    return w->state == KOFN_WORKER_LIVE && w->from <= r->p.number &&
           !r->load[worker].failed && !r->load[worker].late;
}

bool kf_core_seat_works(const kofn_core *c, const kf_round *r, size_t seat)
{
    return c->fleet.seat[seat] != KF_NOBODY &&
           kf_core_can_work(c, r, c->fleet.seat[seat]);
}

size_t kf_core_count_live(const kofn_core *c, const kf_round *r, size_t group)
{
    const kf_fleet *f = &c->fleet;
    size_t n = 0;

    for (size_t s = group; s < f->seats; s += f->groups)
        n += kf_core_seat_works(c, r, s);
    return n;
}

kofn_status kf_core_live_members(kofn_core *c, const kf_round *r, size_t group,
                                 size_t *n)
{
    kf_fleet *f = &c->fleet;
    double mean = 0;
    size_t known = 0;

    *n = 0;
    TRY(kf_reach(&c->live, &c->live_cap, f->seats, sizeof *c->live));
    for (size_t s = group; s < f->seats; s += f->groups) {
        kf_worker *w;

        if (!kf_core_seat_works(c, r, s))
            continue;
        w = &f->worker[f->seat[s]];
        assert(*n < c->live_cap);
        w->place = (uint32_t)*n;
        c->live[(*n)++] = (kofn_live){s / f->groups, w->speed};
        mean += w->speed;
        known += w->speed > 0;
    }
    for (size_t i = 0; i < *n; i++)
        if (c->live[i].speed <= 0)
            c->live[i].speed = known ? mean / (double)known : 1;
    return KOFN_OK;
}
