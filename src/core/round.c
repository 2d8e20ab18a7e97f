/* round.c -- an open product among the workers: which workers can work on it,
 * their tasks, restart and end.  It also keeps the list of rounds that are open
 * or just over.
 *
 * A round owns its product and its record of each worker.  All tasks begin and
 * end here, so that the counts of product, round and fleet agree.  The list is
 * in the order of beginning.  One round that is over is kept as a spare, for
 * its memory.  An open round is never forgotten. */
#include "state.h"

#include <stdio.h>

void kf_round_free(kf_round *r)
{
    if (!r)
        return;
    kf_product_close(&r->p);
    kf_free(r->load);
    kf_free(r);
}

kofn_status kf_round_know(const kofn_core *c, kf_round *r)
{
    return kf_reach(&r->load, &r->workers, c->fleet.workers, sizeof *r->load);
}

/* ---- open rounds --------------------------------------------------------- */

kf_round *kf_core_find_round(const kofn_core *c, uint32_t product)
{
    for (size_t i = c->rounds; i > 0; i--)
        if (c->round[i - 1]->p.number == product)
            return c->round[i - 1];
    return NULL;
}

size_t kf_core_open_rounds(const kofn_core *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->rounds; i++)
        n += kf_is_open(c->round[i]);
    return n;
}

/* Forgets rounds that are over, but keeps the memory of one. */
void kf_core_forget_over(kofn_core *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->rounds; i++) {
        kf_round *r = c->round[i];

        if (kf_is_open(r)) {
            c->round[kept++] = r;
            continue;
        }
        kf_round_free(c->spare);
        c->spare = r;
    }
    c->rounds = kept;
}

kofn_status kf_core_add_round(kofn_core *c)
{
    kf_round *r;

    if (!c->spare)
        TRY_ZERO(c->spare, 1);
    r = c->spare;
    r->alarm = KOFN_NEVER;
    TRY(kf_product_open(&r->p, c->fleet.groups));
    assert(!kf_is_open(r) && r->busy == 0);
    for (size_t i = 0; i < r->workers; i++)
        r->load[i] = (kf_load){.out = 0};
    TRY(kf_round_know(c, r));
    TRY(kf_grow(&c->round, &c->round_cap, c->rounds, sizeof *c->round));
    c->spare = NULL;
    c->round[c->rounds++] = r;
    return KOFN_OK;
}

/* ---- which workers can work on a round ----------------------------------- */

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
    TRY(kf_reach(&c->scratch.live, &c->scratch.live_cap, f->seats,
                 sizeof *c->scratch.live));
    for (size_t s = group; s < f->seats; s += f->groups) {
        kf_worker *w;

        if (!kf_core_seat_works(c, r, s))
            continue;
        w = &f->worker[f->seat[s]];
        assert(*n < c->scratch.live_cap);
        w->place = (uint32_t)*n;
        c->scratch.live[(*n)++] = (kofn_live){s / f->groups, w->speed};
        mean += w->speed;
        known += w->speed > 0;
    }
    for (size_t i = 0; i < *n; i++)
        if (c->scratch.live[i].speed <= 0)
            c->scratch.live[i].speed = known ? mean / (double)known : 1;
    return KOFN_OK;
}

/* ---- tasks --------------------------------------------------------------- */

KF_WRAPS kofn_status kf_round_ask(kofn_core *c, kf_round *r, uint32_t worker,
                                  uint32_t row, kf_band b)
{
    kf_task t = {.number = c->next_task,
                 .group = (uint32_t)b.group,
                 .row = row,
                 .worker = worker,
                 .lo = b.lo,
                 .hi = b.hi};

    assert(kf_is_open(r) && worker < r->workers);
    TRY(kf_act(c, (kofn_action){.type = KOFN_DO_WORK,
                                .worker = worker,
                                .product = r->p.number,
                                .task = t.number,
                                .group = b.group,
                                .row = row,
                                .lo = b.lo,
                                .hi = b.hi}));
    TRY(kf_product_ask(&r->p, t));
    c->next_task++;
    kf_fleet_ask(&c->fleet, worker, c->now);
    r->busy += r->load[worker].out++ == 0;
    r->load[worker].rows += b.hi - b.lo;
    return KOFN_OK;
}

void kf_round_end(kofn_core *c, kf_round *r, size_t index, kf_task_state state)
{
    uint32_t worker = r->p.task[index].worker;

    assert(index < r->p.tasks && worker < r->workers);
    assert(r->load[worker].out > 0 && r->busy > 0);
    kf_product_set(&r->p, index, state);
    kf_fleet_unask(&c->fleet, worker);
    r->busy -= --r->load[worker].out == 0;
    if (r->load[worker].out == 0)
        kf_times_next(c, r, worker);
}

bool kf_core_find_task(const kf_round *r, const kofn_event *ev, size_t *index)
{
    const kf_task *t =
        r ? kf_core_find(r->p.task, r->p.tasks, sizeof *t, ev->task) : NULL;

    if (!t || t->worker != ev->worker || t->row != ev->row ||
        t->state == KF_TASK_DONE)
        return false;
    *index = (size_t)(t - r->p.task);
    return true;
}

bool kf_round_fail(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    size_t index;

    if (!kf_core_find_task(r, ev, &index) || !kf_in_hand(&r->p.task[index])) {
        kf_core_drop(c);
        return false;
    }
    r->load[ev->worker].failed = true;
    kf_round_end(c, r, index, KF_TASK_DROPPED);
    return true;
}

kofn_status kf_round_drop(kofn_core *c, kf_round *r, size_t index, bool cancel)
{
    const kf_task *t = &r->p.task[index];

    assert(index < r->p.tasks);
    if (!kf_in_hand(t))
        return KOFN_OK;
    kf_round_end(c, r, index, KF_TASK_DROPPED);
    if (!cancel)
        return KOFN_OK;
    if (c->fleet.worker[t->worker].out > 0) /* its time at another product
                                               begins */
        c->fleet.worker[t->worker].last = c->now;
    return kf_act(c, (kofn_action){.type = KOFN_DO_CANCEL,
                                   .worker = t->worker,
                                   .product = r->p.number,
                                   .task = t->number});
}

kofn_status kf_round_drop_all(kofn_core *c, kf_round *r)
{
    for (size_t i = 0; i < r->p.tasks; i++)
        TRY(kf_round_drop(c, r, i, true));
    return KOFN_OK;
}

kofn_status kf_core_deliver(kofn_core *c, kf_round *r, kofn_status st)
{
    const kf_product *p = &r->p;

    assert(kf_is_open(r));
    if (st != KOFN_AGAIN) /* it was waited for to its end */
        kf_times_learn(c, r);
    if (st < 0)
        snprintf(r->why, sizeof r->why, "%s", kofn_errmsg());
    kf_core_blame(c, r);
    TRY(kf_round_drop_all(c, r));
    c->mutes = 0;
    r->state = KF_ROUND_IDLE;
    r->alarm = KOFN_NEVER;
    r->back = r->resolve = false;
    if (kf_policy_of(r)->over)
        kf_policy_of(r)->over(c);
    return kf_act(c, (kofn_action){.type = KOFN_DO_DELIVER,
                                   .product = p->number,
                                   .status = st,
                                   .why = st < 0 ? r->why : "",
                                   .noise = p->error.noise,
                                   .predicted = p->error.predicted});
}

/* ---- owed work ----------------------------------------------------------- */

void kf_round_owe(kf_round *r, kf_owed owed)
{
    for (size_t g = 0; g < r->p.groups; g++)
        kf_product_owe(&r->p, g, owed);
    r->resolve = true;
}

void kf_round_more(kofn_core *c, kf_round *r)
{
    kf_times_put_off(c, r);
    kf_product_all_news(&r->p);
    kf_round_owe(r, KF_OWED_MORE);
}

kofn_status kf_round_restart(kofn_core *c, kf_round *r)
{
    kf_times_begin(c, r);
    TRY(kf_product_reset(&r->p));
    kf_core_set_spare(c, r);
    kf_round_more(c, r);
    return KOFN_OK;
}
