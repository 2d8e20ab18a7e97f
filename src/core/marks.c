/* marks.c -- from one event to the next: what the event marked is taken back,
 * settled, dealt and resolved, until no marks are left.
 *
 * Owns nothing.  It is the only place that calls settling, dealing and
 * resolving, so that none of them has to call another. */
#include "state.h"

#include <assert.h>

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
        kf_round_owe(r, KF_OWED_AFRESH);
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
        assert(!r->back);
        TRY(kf_settle(c, r));
        if (r->p.unsettled == 0) {
            if (kf_layout(&r->p)->adjoint)
                TRY(kf_adjoint_sum(c, r));
            return kf_core_deliver(c, r, r->p.lost ? KOFN_PARTIAL : KOFN_OK);
        }
        lo = r->p.mark_lo;
        hi = r->p.mark_hi;
        assert(lo <= hi && hi <= r->p.groups);
        r->p.mark_lo = r->p.mark_hi = 0;
        TRY(kf_deal(c, r, lo, hi));
        if (kf_is_open(r) && r->resolve)
            TRY(kf_resolve(c, r));
    }
    return KOFN_OK;
}
