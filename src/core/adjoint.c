/* adjoint.c -- rounds of transposed codes.  The input that a seat gets depends
 * on the other live seats, and the result is the sum of all answers.
 *
 * So the survivor set of every strip is chosen before any work is sent.  If a
 * chosen worker does not answer, the round restarts without it, because the
 * sums of the others hold strips that were mixed for it (math/elastic.md 10).
 *
 * Owns nothing: the marks and tasks belong to the round.  Sends nothing: like
 * all files of this folder, it leaves actions for the body. */
#include "state.h"

/* Writes the seats that `d` deals this cell to at the end of the pool, in
 * ascending order. */
static kofn_status users(kofn_core *c, const kofn_deals *d, const kf_cell *cell,
                         uint32_t **seats, size_t *n)
{
    TRY(kf_core_room(c, d->members));
    assert(d->members <= c->scratch.live_cap);
    *seats = c->todo.pool + c->todo.pooled;
    *n = 0;
    for (size_t m = 0; m < d->members; m++)
        for (size_t k = 0; k < d->count; k++)
            if (d->deal[k].who == m && d->deal[k].lo <= cell->lo &&
                d->deal[k].hi >= cell->hi) {
                (*seats)[(*n)++] = (uint32_t)c->scratch.live[m].seat;
                break;
            }
    return KOFN_OK;
}

/* Orders the mixes of the input, cell by cell, before the work is given out. */
static kofn_status mix(kofn_core *c, kf_round *r, const kofn_deals *d)
{
    kf_product *p = &r->p;
    const kf_ledger *l = &p->ledger[0];
    const kofn_decoder *was = NULL;
    size_t from = 0;

    assert(p->groups == 1); /* the code has one row band */
    for (size_t i = 0; i <= l->count; i++) {
        const kofn_decoder *now = NULL;
        uint32_t *seats;
        size_t n;

        if (i < l->count && !l->cell[i].settled) {
            TRY(users(c, d, &l->cell[i], &seats, &n));
            TRY(kf_core_find_decoder(c, p, seats, n, &now));
            if (!now) {
                kf_fail(KOFN_UNSTABLE,
                        "predicted relative error %.1e exceeds max_error "
                        "%.1e; use another basis or a larger max_error",
                        p->error.refused, c->opt.max_error);
                return kf_core_deliver(c, r, KOFN_UNSTABLE);
            }
            p->error.noise = kf_larger(p->error.noise, now->noise);
            p->error.predicted = kf_larger(p->error.predicted, now->predicted);
        }
        if (was && now != was) {
            TRY(kf_act(c, (kofn_action){.type = KOFN_DO_MIX,
                                        .product = p->number,
                                        .lo = l->cell[from].lo,
                                        .hi = l->cell[i - 1].hi,
                                        .decoder = was}));
        }
        if (now != was)
            from = i;
        was = now;
    }
    return KOFN_OK;
}

/* Asks each member for one sum.  A sum has the same size for few strips as for
 * all, so each member gets one task.  Its strips may wrap around from the last
 * to the first. */
static kofn_status ask_for_sums(kofn_core *c, kf_round *r, const kofn_deals *d)
{
    for (size_t k = 0; k < d->count; k++) {
        kofn_deal one = d->deal[k];
        const kofn_deal *next = &d->deal[k + 1];

        if (k + 1 < d->count && next->who == one.who && next->lo == 0 &&
            one.hi == r->p.use->plan->span) {
            one.hi += next->hi;
            k++;
        }
        TRY(kf_core_ask_seat(c, r, kf_core_member(c, 0, one.who),
                             (kf_band){0, one.lo, one.hi}));
    }
    return KOFN_OK;
}

/* Deals all shares afresh, or none. */
kofn_status kf_adjoint_deal(kofn_core *c, kf_round *r, size_t group,
                            kf_owed owed)
{
    kofn_deals d;
    kofn_status st;

    assert(owed != KF_OWED_SHORT); /* by the mix, any answers suffice */
    if (!kf_deal_can(c, r, group, owed))
        return KOFN_OK;
    st = kf_deal_afresh(c, r, group, false, &d);
    if (!st)
        st = mix(c, r, &d);
    if (!st && kf_is_open(r))
        st = ask_for_sums(c, r, &d);
    kf_free(d.deal);
    return st;
}

/* Orders the sum of all answers once the last strip is settled. */
kofn_status kf_adjoint_decode(kofn_core *c, kf_product *p, kf_band b,
                              const kofn_decoder *d, size_t n)
{
    kofn_action a = {.type = KOFN_DO_DECODE,
                     .product = p->number,
                     .hi = p->use->plan->span,
                     .first = c->todo.pooled};

    (void)b;
    (void)d;
    (void)n;
    if (p->unsettled > 0)
        return KOFN_OK;
    for (size_t i = 0; i < p->tasks; i++) {
        if (p->task[i].state != KF_TASK_DONE)
            continue;
        TRY(kf_core_room(c, 1));
        c->todo.pool[c->todo.pooled++] = p->task[i].number;
        a.count++;
    }
    return kf_act(c, a);
}

/* Drops all work and all answers, and restarts with the workers that can still
 * work. */
kofn_status kf_adjoint_back(kofn_core *c, kf_round *r)
{
    TRY(kf_round_drop_all(c, r));
    for (size_t i = 0; i < r->p.tasks; i++)
        if (r->p.task[i].state == KF_TASK_DONE)
            r->p.task[i].state = KF_TASK_DROPPED;
    r->p.error.noise = r->p.error.predicted = 0;
    return kf_round_restart(c, r);
}

kofn_status kf_adjoint_failed(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    if (kf_round_fail(c, r, ev))
        r->back = true;
    return KOFN_OK;
}

bool kf_adjoint_misses(const kofn_core *c, const kf_round *r, uint32_t worker)
{
    (void)c;
    return r->load[worker].out > 0;
}

/* Marks the workers that still owe an answer as late, if there are enough
 * others. */
void kf_adjoint_late(kofn_core *c, kf_round *r)
{
    size_t idle = 0;

    for (uint32_t i = 0; i < c->fleet.workers; i++)
        idle += kf_core_can_work(c, r, i) && r->load[i].out == 0;
    if (idle < kf_layout(&r->p)->enough)
        return;
    for (size_t i = 0; i < r->workers; i++)
        r->load[i].late |= r->load[i].out > 0;
    r->back = true;
}

bool kf_adjoint_with_late(kf_round *r)
{
    bool any = false;

    for (size_t i = 0; i < r->workers; i++) {
        any |= r->load[i].late;
        r->load[i].late = false;
    }
    r->back |= any;
    return any;
}
