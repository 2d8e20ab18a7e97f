/* round.c -- an open product among the workers: who can work on it, what they
 * are asked, and its way from one event to the next. */
#include "state.h"

kofn_status kf_round_new(kf_round **out, size_t groups)
{
    kf_round *r = kf_zero(1, sizeof *r);

    *out = NULL;
    if (!r)
        return KOFN_NOMEM;
    r->alarm = KOFN_NEVER;
    if (kf_product_open(&r->p, groups)) {
        kf_round_free(r);
        return KOFN_NOMEM;
    }
    *out = r;
    return KOFN_OK;
}

void kf_round_free(kf_round *r)
{
    if (!r)
        return;
    kf_product_close(&r->p);
    kf_free(r->load);
    kf_free(r->rows);
    kf_free(r);
}

kofn_status kf_round_know(kf_round *r, size_t workers)
{
    while (r->workers < workers) {
        TRY(kf_grow(&r->load, &r->load_cap, r->workers, sizeof *r->load));
        TRY(kf_grow(&r->rows, &r->row_cap, r->workers, sizeof *r->rows));
        r->rows[r->workers] = 0;
        r->load[r->workers++] = (kf_load){.again = KF_NO_ROW};
    }
    return KOFN_OK;
}

/* ---- who can work -------------------------------------------------------- */

bool kf_core_can_work(const kofn_core *c, const kf_round *r, uint32_t worker)
{
    const kf_worker *w = &c->fleet.worker[worker];

    return w->state == KOFN_WORKER_LIVE && w->from <= r->p.number &&
           !r->load[worker].failed;
}

size_t kf_core_count_live(const kofn_core *c, const kf_round *r, size_t group)
{
    const kf_fleet *f = &c->fleet;
    size_t n = 0;

    for (size_t s = group; s < f->seats; s += f->groups)
        n += f->seat[s] != KF_NOBODY && kf_core_can_work(c, r, f->seat[s]);
    return n;
}

static kofn_status make_room(kofn_core *c)
{
    if (c->live_cap >= c->fleet.seats)
        return KOFN_OK;
    kf_free(c->live);
    kf_free(c->live_worker);
    c->live_cap = 0;
    c->live = kf_new(c->fleet.seats, sizeof *c->live);
    c->live_worker = kf_new(c->fleet.seats, sizeof *c->live_worker);
    if (!c->live || !c->live_worker)
        return KOFN_NOMEM;
    c->live_cap = c->fleet.seats;
    return KOFN_OK;
}

kofn_status kf_core_live_members(kofn_core *c, const kf_round *r, size_t group,
                                 size_t *n)
{
    kf_fleet *f = &c->fleet;
    double mean = 0;
    size_t known = 0;

    *n = 0;
    TRY(make_room(c));
    for (size_t s = group; s < f->seats; s += f->groups) {
        kf_worker *w;

        if (f->seat[s] == KF_NOBODY || !kf_core_can_work(c, r, f->seat[s]))
            continue;
        w = &f->worker[f->seat[s]];
        w->place = (uint32_t)*n;
        c->live_worker[*n] = f->seat[s];
        c->live[(*n)++] = (kofn_live){s / f->groups, w->speed};
        mean += w->speed;
        known += w->speed > 0;
    }
    for (size_t i = 0; i < *n; i++)
        if (c->live[i].speed <= 0)
            c->live[i].speed = known ? mean / (double)known : 1;
    return KOFN_OK;
}

/* ---- what they are asked ------------------------------------------------- */

KF_WRAPS kofn_status kf_round_ask(kofn_core *c, kf_round *r, uint32_t worker,
                                  size_t group, uint32_t row, size_t lo,
                                  size_t hi)
{
    TRY(kf_act(c, (kofn_action){.type = KOFN_DO_WORK,
                                .worker = worker,
                                .product = r->p.number,
                                .task = c->next_task,
                                .group = group,
                                .row = row,
                                .lo = lo,
                                .hi = hi}));
    TRY(kf_product_ask(&r->p, (kf_task){.number = c->next_task,
                                        .group = (uint32_t)group,
                                        .row = row,
                                        .worker = worker,
                                        .lo = lo,
                                        .hi = hi}));
    c->next_task++;
    kf_fleet_ask(&c->fleet, worker, c->now);
    r->busy += r->load[worker].out++ == 0;
    r->rows[worker] += hi - lo;
    return KOFN_OK;
}

void kf_round_end(kofn_core *c, kf_round *r, size_t index, kf_task_state state)
{
    uint32_t worker = r->p.task[index].worker;

    kf_product_end(&r->p, index, state);
    kf_fleet_unask(&c->fleet, worker);
    r->busy -= --r->load[worker].out == 0;
    if (r->load[worker].out == 0)
        kf_late_next(c, r, worker);
}

kofn_status kf_round_drop(kofn_core *c, kf_round *r, size_t index, bool cancel)
{
    const kf_task *t = &r->p.task[index];

    if (!kf_in_hand(t))
        return KOFN_OK;
    kf_round_end(c, r, index, KF_TASK_DROPPED);
    if (!cancel)
        return KOFN_OK;
    kf_fleet_begin(&c->fleet, t->worker, c->now);
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

/* ---- from one event to the next ------------------------------------------ */

static void owe_all(kf_round *r, kf_owed owed)
{
    for (size_t g = 0; g < r->p.groups; g++)
        kf_product_owe(&r->p, g, owed);
    r->resolve = true;
}

void kf_round_more(kofn_core *c, kf_round *r)
{
    kf_late_put_off(c, r);
    kf_product_all_news(&r->p);
    owe_all(r, KF_OWED_MORE);
}

kofn_status kf_round_restart(kofn_core *c, kf_round *r)
{
    kf_late_begin(c, r);
    TRY(kf_product_reset(&r->p));
    kf_core_set_spare(c, r);
    kf_round_more(c, r);
    return KOFN_OK;
}

void kf_round_lost(kf_round *r)
{
    if (r->state == KF_ROUND_STARVED)
        r->resolve = true;
    else
        r->back = true;
}

/* In an adjoint code the sums of the others hold strips that were mixed for
 * whoever is missing: begin again with those who can still work. */
static kofn_status restart_adjoint(kofn_core *c, kf_round *r)
{
    TRY(kf_round_drop_all(c, r));
    for (size_t i = 0; i < r->p.tasks; i++)
        if (r->p.task[i].state == KF_TASK_DONE)
            r->p.task[i].state = KF_TASK_DROPPED;
    r->p.noise = r->p.predicted = 0;
    return kf_round_restart(c, r);
}

/* Somebody is missing: what of the work in hand, and of what has come, is kept
 * is as the options say. */
static kofn_status take_back(kofn_core *c, kf_round *r)
{
    r->back = false;
    if (kf_layout(&r->p)->adjoint)
        return restart_adjoint(c, r);
    kf_core_set_spare(c, r);
    if (!r->p.degraded && c->opt.in_flight == KOFN_IN_FLIGHT_ABORT) {
        TRY(kf_round_drop_all(c, r));
        return kf_round_restart(c, r);
    }
    if (!r->p.degraded && c->opt.in_flight == KOFN_IN_FLIGHT_KEEP) {
        TRY(kf_round_drop_all(c, r));
        kf_product_forget_open(&r->p);
        owe_all(r, KF_OWED_AFRESH);
        return KOFN_OK;
    }
    /* degraded: whoever is left has been asked for all there is */
    kf_round_more(c, r);
    return KOFN_OK;
}

static bool has_marks(const kf_round *r)
{
    return kf_product_marked(&r->p) || r->back || r->resolve ||
           r->p.unsettled == 0;
}

kofn_status kf_round_go_on(kofn_core *c, kf_round *r)
{
    while (kf_is_open(r) && has_marks(r)) {
        size_t lo, hi;

        if (r->back)
            TRY(take_back(c, r));
        TRY(kf_settle(c, r));
        if (r->p.unsettled == 0) {
            if (kf_layout(&r->p)->adjoint)
                TRY(kf_adjoint_sum(c, r));
            return kf_core_deliver(c, r, r->p.lost ? KOFN_PARTIAL : KOFN_OK);
        }
        lo = r->p.mark_lo;
        hi = r->p.mark_hi;
        r->p.mark_lo = r->p.mark_hi = 0; /* but for what is dealt now */
        TRY(kf_deal(c, r, lo, hi));
        if (kf_is_open(r) && r->resolve)
            TRY(kf_resolve(c, r));
    }
    return KOFN_OK;
}
