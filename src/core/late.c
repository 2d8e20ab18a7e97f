/* late.c -- what is done about workers who are late, and about those who do not
 * answer any more.
 *
 * What somebody who is late owes is asked of others as well, the idle first, and
 * whichever answer comes first counts.  A worker that owes an answer for `lease`, and
 * for many times as long as others took, is *given up*: its seat is free for
 * another, and a round that cannot do without it fails instead of waiting for ever.
 *
 * Owns nothing.  When somebody is late, and when given up, times.c says. */
#include "state.h"

/* ---- work that is cheaper than waiting ------------------------------------ */

/* A round begins.  Where a share takes less than anybody is waited for before
 * being late, work is cheaper than waiting: after somebody was late everybody
 * is asked for everything, for some rounds, and for more each time that this
 * proves right. */
void kf_late_round(kofn_core *c, const kf_round *last)
{
    if (c->generous > 0)
        c->generous--;
    else if (!last->hedged)
        c->generosity /= 2;
}

/* ---- late ---------------------------------------------------------------- */

/* Tasks in hand may still come, but are not waited for alone. */
void kf_late_ask_others(kofn_core *c, kf_round *r)
{
    if (r->pace < c->opt.late_least) {
        c->generosity = c->generosity ? kf_min(2 * c->generosity, 64) : 4;
        c->generous = c->generosity;
    }
    kf_product_all_late(&r->p);
    /* Where answers are whole everybody was asked for all there is. */
    for (size_t g = 0; !kf_layout(&r->p)->whole && g < r->p.groups; g++)
        kf_product_owe(&r->p, g, KF_OWED_SHORT);
    kf_product_all_news(&r->p); /* cells may have enough without the late */
}

void kf_late_hedge(kofn_core *c, kf_round *r)
{
    kofn_time past = c->now - r->began;

    r->hedged = true;
    r->late_at =
        kf_later(c->now, past > 0 ? past : 1); /* they may be late, too */
    kf_policy_of(r)->late(c, r);
}

/* ---- unresponsive -------------------------------------------------------- */

/* Nobody is given up before somebody has shown what the work takes. */
kofn_status kf_late_evict(kofn_core *c, const kf_round *r, kofn_time enough,
                          kofn_time *next)
{
    *next = KOFN_NEVER;
    for (size_t i = 0; i < c->fleet.workers; i++) {
        kofn_time due = kf_later(c->fleet.worker[i].last, enough);

        if ((r ? r->load[i].out : c->fleet.worker[i].out) == 0)
            continue;
        if (due <= c->now) {
            TRY(kf_act(c, (kofn_action){.type = KOFN_DO_EVICT,
                                        .worker = (uint32_t)i}));
            TRY(kf_core_release_seat(c, (uint32_t)i, KOFN_WORKER_UNRESPONSIVE));
        } else if (due < *next) {
            *next = due;
        }
    }
    return KOFN_OK;
}
