/* seats.c -- workers join, get a seat, and leave.
 *
 * A joiner takes the lowest empty seat of the group with the fewest members,
 * which restores the code.  It prefers a seat from which the open products
 * still want something.  If no seat is empty, it takes the next new row of the
 * code.  If there is none, it stands by.
 *
 * A joiner works on products that begin later; it works on an open product at
 * once if that cannot finish without it.
 *
 * Owns nothing: seats belong to the fleet.  The number of a worker that left is
 * never used again.  An event that does not fit the state is counted and
 * dropped. */
#include "state.h"

/* ---- joining ------------------------------------------------------------- */

/* True if an open product has the answers of the seat, and answers come whole
 * instead of strip by strip: the seat has nothing more to give. */
static bool is_spent(const void *core, size_t seat)
{
    const kofn_core *c = core;

    for (size_t i = 0; i < c->rounds; i++) {
        const kf_product *p = &c->round[i]->p;

        if (!kf_is_open(c->round[i]) || !kf_layout(p)->whole)
            continue;
        for (size_t t = 0; t < p->tasks; t++)
            if (p->task[t].state == KF_TASK_DONE &&
                kf_seat_of_row(p, p->task[t].group, p->task[t].row) == seat)
                return true;
    }
    return false;
}

bool kf_core_crowded(const kofn_core *c, uint32_t worker)
{
    return kf_fleet_state(&c->fleet, worker) == KOFN_WORKER_STANDBY &&
           kf_fleet_crowded(&c->fleet, c->fleet.worker[worker].principal);
}

/* Gives the worker a seat, or lets it stand by. */
static kofn_status assign_seat(kofn_core *c, uint32_t worker)
{
    kf_fleet *f = &c->fleet;
    size_t seat;

    assert(f->worker[worker].state == KOFN_WORKER_UNKNOWN ||
           f->worker[worker].state == KOFN_WORKER_STANDBY);
    if (kf_core_banned(c, worker)) {
        kf_fleet_set(f, worker, KOFN_WORKER_QUARANTINED);
        return KOFN_OK;
    }
    if (kf_fleet_crowded(f, f->worker[worker].principal) ||
        !kf_fleet_choose(f, is_spent, c, &seat)) {
        kf_fleet_set(f, worker, KOFN_WORKER_STANDBY);
        return KOFN_OK;
    }
    return c->use[0].policy->sit(c, worker, seat);
}

static kofn_status know(kofn_core *c, const kofn_event *ev)
{
    TRY(kf_fleet_know(&c->fleet, ev->worker, ev->principal));
    for (size_t i = 0; i < c->rounds; i++)
        TRY(kf_round_know(c, c->round[i]));
    c->fleet.worker[ev->worker].principal = ev->principal;
    return KOFN_OK;
}

kofn_status kf_core_join(kofn_core *c, const kofn_event *ev)
{
    if (!kf_fleet_plausible(&c->fleet, ev->worker, ev->principal) ||
        kf_fleet_state(&c->fleet, ev->worker) != KOFN_WORKER_UNKNOWN)
        return kf_core_drop(c);
    TRY(know(c, ev));
    return assign_seat(c, ev->worker);
}

kofn_status kf_core_moved(kofn_core *c, const kofn_event *ev)
{
    kofn_worker_state state = kf_fleet_state(&c->fleet, ev->worker);

    if (!kf_fleet_plausible(&c->fleet, ev->worker, ev->principal) ||
        (state != KOFN_WORKER_STORING && state != KOFN_WORKER_STANDBY))
        return kf_core_drop(c);
    return know(c, ev);
}

kofn_status kf_core_stored(kofn_core *c, const kofn_event *ev)
{
    const kf_round *newest = kf_newest(c);
    uint32_t from = newest->p.number + kf_is_open(newest);

    if (kf_fleet_state(&c->fleet, ev->worker) != KOFN_WORKER_STORING)
        return kf_core_drop(c);
    kf_fleet_set(&c->fleet, ev->worker, KOFN_WORKER_LIVE);
    for (size_t i = c->rounds; i-- > 0;)
        if (c->round[i]->state == KF_ROUND_STARVED) {
            from = c->round[i]->p.number; /* it may be the worker that the round
                                             lacks */
            kf_round_more(c, c->round[i]);
        }
    c->fleet.worker[ev->worker].from = from;
    return KOFN_OK;
}

/* ---- leaving ------------------------------------------------------------- */

static kofn_status next_in_line(kofn_core *c)
{
    const kf_fleet *f = &c->fleet;

    for (size_t i = 0; f->in_state[KOFN_WORKER_STANDBY] && i < f->workers; i++)
        if (f->worker[i].state == KOFN_WORKER_STANDBY &&
            !kf_fleet_crowded(f, f->worker[i].principal) &&
            !kf_core_banned(c, (uint32_t)i))
            return assign_seat(c, (uint32_t)i);
    return KOFN_OK;
}

kofn_status kf_core_leaving(kofn_core *c, const kofn_event *ev)
{
    if (kf_fleet_state(&c->fleet, ev->worker) != KOFN_WORKER_LIVE)
        return kf_core_drop(c);
    /* The worker may finish its outstanding tasks, and gets no more. */
    kf_fleet_set(&c->fleet, ev->worker, KOFN_WORKER_LEAVING);
    return KOFN_OK;
}

kofn_status kf_core_relieve(kofn_core *c, uint32_t worker, bool there)
{
    for (size_t i = 0; i < c->rounds; i++) {
        kf_round *r = c->round[i];

        if (r->state == KF_ROUND_STARVED)
            r->resolve = true;
        else if (kf_is_open(r) && kf_policy_of(r)->misses)
            r->back |= kf_policy_of(r)->misses(c, r, worker);
        for (size_t t = 0; t < r->p.tasks; t++)
            if (r->p.task[t].worker == worker)
                TRY(kf_round_drop(c, r, t, there));
    }
    return KOFN_OK;
}

kofn_status kf_core_release_seat(kofn_core *c, uint32_t worker,
                                 kofn_worker_state state)
{
    kofn_worker_state was = c->fleet.worker[worker].state;

    assert(was != KOFN_WORKER_GONE && was != KOFN_WORKER_UNRESPONSIVE);
    TRY(kf_core_relieve(c, worker, false));
    if (state == KOFN_WORKER_UNRESPONSIVE) {
        c->mutes++;
        c->unresponsive = worker;
    }
    assert(c->fleet.worker[worker].out == 0); /* all was taken back */
    if (was != KOFN_WORKER_STANDBY && was != KOFN_WORKER_QUARANTINED)
        kf_fleet_release_seat(&c->fleet, worker);
    kf_fleet_set(&c->fleet, worker, state);
    return next_in_line(c);
}

/* Handles LEFT and UNRESPONSIVE.  An evicted worker stays evicted. */
kofn_status kf_core_left(kofn_core *c, const kofn_event *ev)
{
    kofn_worker_state was = kf_fleet_state(&c->fleet, ev->worker);

    if (was == KOFN_WORKER_GONE || was == KOFN_WORKER_UNRESPONSIVE ||
        was == KOFN_WORKER_UNKNOWN)
        return kf_core_drop(c);
    return kf_core_release_seat(
        c, ev->worker,
        ev->type == KOFN_EV_LEFT ? KOFN_WORKER_GONE : KOFN_WORKER_UNRESPONSIVE);
}
