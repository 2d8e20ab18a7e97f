/* late.c -- acts on late workers, and on workers that no longer answer.
 *
 * Work that a late worker owes is asked of other workers too, of idle ones
 * first.  The first answer counts.  A worker is *evicted* if it owes an answer
 * for longer than `lease` and than 50 times the time that others took
 * (kf_core_lease).  Its seat is then free, and a round that cannot finish
 * without it fails instead of waiting for ever.
 *
 * Owns nothing.  times.c decides when a worker is late, and when it is
 * evicted. */
#include "state.h"

/* ---- work that is cheaper than waiting ----------------------------------- */

/* Counts the rounds of generosity when a round begins.  If a share takes less
 * than the shortest wait for late workers, work is cheaper than waiting.  So
 * after a worker was late, every worker is asked for everything, for some
 * rounds.  Their number grows each time that this proves right. */
void kf_late_round(kofn_core *c, const kf_round *last)
{
    if (c->generous > 0)
        c->generous--;
    else if (!last->hedged)
        c->generosity /= 2;
}

/* ---- late ---------------------------------------------------------------- */

/* Marks tasks as late and asks others for them.  Their results may still
 * come. */
void kf_late_ask_others(kofn_core *c, kf_round *r)
{
    if (r->pace < c->opt.late_least) {
        c->generosity = c->generosity ? kf_min(2 * c->generosity, 64) : 4;
        c->generous = c->generosity;
    }
    kf_product_all_late(&r->p);
    /* If answers are whole, all workers were asked for all rows already. */
    for (size_t g = 0; !kf_layout(&r->p)->whole && g < r->p.groups; g++)
        kf_product_owe(&r->p, g, KF_OWED_SHORT);
    kf_product_all_news(&r->p); /* cells may have enough without the late
                                   results */
}

void kf_late_hedge(kofn_core *c, kf_round *r)
{
    kofn_time past = c->now - r->began;

    r->hedged = true;
    r->late_at = kf_later(c->now, past > 0 ? past : 1); /* the new ones may be
                                                           late, too */
    kf_policy_of(r)->late(c, r);
}

/* ---- unresponsive -------------------------------------------------------- */

/* Evicts no worker before another one has shown how long the work takes. */
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
