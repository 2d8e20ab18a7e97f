/* adjoint.c -- transposed codes: what a seat is sent depends on who else is
 * live, and the answer is the sum of all answers.
 *
 * So the survivor set of every strip is chosen before anything is sent, and
 * when one of the chosen does not answer the round begins again without it:
 * the sums of the others hold strips that were mixed for it (math/elastic.md
 * 10).
 *
 * Owns nothing: the marks and tasks are of the round.  It sends nothing, but
 * leaves actions for the body, as all of this folder.
 */
#include "state.h"

/* The seats that `d` deals this cell to, ascending, at the end of the pool. */
static kofn_status users(kofn_core *c, const kofn_deals *d, const kf_cell *cell,
                         uint32_t **seats, size_t *n)
{
    TRY(kf_core_room(c, d->members));
    assert(d->members <= c->live_cap);
    *seats = c->pool + c->pooled;
    *n = 0;
    for (size_t m = 0; m < d->members; m++)
        for (size_t k = 0; k < d->count; k++)
            if (d->deal[k].who == m && d->deal[k].lo <= cell->lo &&
                d->deal[k].hi >= cell->hi) {
                (*seats)[(*n)++] = (uint32_t)c->live[m].seat;
                break;
            }
    return KOFN_OK;
}

/* Tell the body what to mix, cell by cell, before the work is handed out. */
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
                        "predicted relative error %.1e exceeds the tolerance "
                        "%.1e; use another basis or a larger tolerance",
                        p->refused, c->opt.tolerance);
                return kf_core_deliver(c, r, KOFN_UNSTABLE);
            }
            p->noise = kf_larger(p->noise, now->noise);
            p->predicted = kf_larger(p->predicted, now->predicted);
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

/* An answer is a sum, as large for a few strips as for all: so each member gets
 * one task, whose strips may go round from the last to the first. */
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

/* Shares are dealt afresh or not at all. */
kofn_status kf_adjoint_deal(kofn_core *c, kf_round *r, size_t group,
                            kf_owed owed)
{
    kofn_deals d;
    kofn_status st;

    assert(owed != KF_OWED_SHORT); /* whoever answers is enough, by the mix */
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

/* Once everything has come it is added up. */
kofn_status kf_adjoint_decode(kofn_core *c, kf_product *p, kf_band b,
                              const kofn_decoder *d, size_t n)
{
    kofn_action a = {.type = KOFN_DO_DECODE,
                     .product = p->number,
                     .hi = p->use->plan->span,
                     .first = c->pooled};

    (void)b;
    (void)d;
    (void)n;
    if (p->unsettled > 0)
        return KOFN_OK;
    for (size_t i = 0; i < p->tasks; i++) {
        if (p->task[i].state != KF_TASK_DONE)
            continue;
        TRY(kf_core_room(c, 1));
        c->pool[c->pooled++] = p->task[i].number;
        a.count++;
    }
    return kf_act(c, a);
}

/* What is kept is nothing: begin again with those who can still work. */
kofn_status kf_adjoint_back(kofn_core *c, kf_round *r)
{
    TRY(kf_round_drop_all(c, r));
    for (size_t i = 0; i < r->p.tasks; i++)
        if (r->p.task[i].state == KF_TASK_DONE)
            r->p.task[i].state = KF_TASK_DROPPED;
    r->p.noise = r->p.predicted = 0;
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

/* Marks the workers that have not answered by now as late, to be done without,
 * if there are enough others. */
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

/* Counts on the late again when there are not enough others; true if any was
 * late. */
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
