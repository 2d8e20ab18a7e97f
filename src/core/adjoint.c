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

#include <assert.h>

/* The seats that `d` deals this cell to, ascending, at the end of the pool. */
static kofn_status users(kofn_core *c, const kofn_deals *d, const kf_cell *cell,
                         uint32_t **seats, size_t *n)
{
    while (c->pool_cap <= c->pooled + d->members)
        TRY(kf_grow(&c->pool, &c->pool_cap, c->pool_cap, sizeof *c->pool));
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
kofn_status kf_adjoint_mix(kofn_core *c, kf_round *r, const kofn_deals *d)
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
                        "predicted relative error %.1e exceeds "
                        "the tolerance %.1e; use another basis or a larger "
                        "tolerance",
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

/* Everything has come: have it added up. */
kofn_status kf_adjoint_sum(kofn_core *c, kf_round *r)
{
    const kf_product *p = &r->p;
    kofn_action a = {.type = KOFN_DO_DECODE,
                     .product = p->number,
                     .hi = p->use->plan->span,
                     .first = c->pooled};

    assert(p->unsettled == 0);
    for (size_t i = 0; i < p->tasks; i++) {
        if (p->task[i].state != KF_TASK_DONE)
            continue;
        TRY(kf_grow(&c->pool, &c->pool_cap, c->pooled, sizeof *c->pool));
        c->pool[c->pooled++] = p->task[i].number;
        a.count++;
    }
    return kf_act(c, a);
}

/* Marks the workers that have not answered by now as late, to be done without,
 * if there are enough others. */
void kf_adjoint_without_late(const kofn_core *c, kf_round *r)
{
    size_t idle = 0;

    for (uint32_t i = 0; i < r->workers; i++)
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
