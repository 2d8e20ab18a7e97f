/* late.c -- how long a worker is waited for, measured by what others take.
 *
 * Once half of the workers are ready, and then no other has become so for
 * (late - 1) times as long as that took (longer where shares are not equal),
 * those still at work are *late*: what they owe is asked of others as well, the
 * idle first, and whichever answer comes first counts.  Each worker that becomes
 * ready puts this off, for where there are fewer cores than workers they finish
 * one after the other and none of them is late.  Where something late had not
 * come when the round was over, it would better have been waited for less: the
 * next time it is half of that, down to a quarter, and twice as much again when
 * all of it came after all.
 *
 * A worker that owes an answer for `lease`, and for many times as long as
 * others took, is *given up*: its seat is free for another, and a round that
 * cannot do without it fails instead of waiting for ever.
 *
 * The times are of the round and the fleet.  It looks at no clock: all times
 * come with events, and it sets the alarm at which it wants to be called
 * again.
 */
#include "state.h"

#include <math.h>

#define MANY 50 /* shares of others that a lease lasts at least       */
#define FEW 10  /* leases that it lasts while fewer than half are ready */

static kofn_time later(kofn_time t, kofn_time more)
{
    return more < KOFN_NEVER - t ? t + more : KOFN_NEVER;
}

static kofn_time times(kofn_time t, double by)
{
    double product = (double)t * by;

    return product < 9e18 ? (kofn_time)product : KOFN_NEVER;
}

#define HEDGE_FACTOR 0.25

/* ---- what is known ------------------------------------------------------- */

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

static void be_generous(kofn_core *c, const kf_round *r)
{
    if (r->pace >= c->opt.late_least)
        return;
    c->generosity = c->generosity ? kf_min(2 * c->generosity, 64) : 4;
    c->generous = c->generosity;
}

/* The round is over.  Was it right to ask others for what was late? */
void kf_late_learn(kofn_core *c, const kf_round *r)
{
    bool right = false;

    if (!r->hedged)
        return;
    for (size_t i = 0; i < r->p.tasks; i++)
        right |= r->p.task[i].state == KF_TASK_LATE;
    c->hedge_factor = right ? fmax(c->hedge_factor / 2, HEDGE_FACTOR)
                            : fmin(c->hedge_factor * 2, 1);
}

/* Work was dealt from the beginning. */
void kf_late_begin(const kofn_core *c, kf_round *r)
{
    r->began = c->now;
    r->pace = r->slack = 0;
    r->ready = 0;
    r->half = r->hedged = false;
    r->late_at = r->lease_at = KOFN_NEVER;
}

/* While the round is starved the alarm is for patience. */
void kf_late_alarm(kf_round *r)
{
    if (r->state == KF_ROUND_RUNNING)
        r->alarm = r->late_at < r->lease_at ? r->late_at : r->lease_at;
}

/* Somebody became ready, or was given more to do. */
void kf_late_put_off(const kofn_core *c, kf_round *r)
{
    if (r->half && !r->hedged && c->opt.late > 0)
        r->late_at = later(c->now, r->slack);
    kf_late_alarm(r);
}

/* How many times as much as this worker another has to do; where strips are few
 * that may be twice as much. */
static double largest(const kf_round *r, uint32_t worker)
{
    size_t most = r->rows[worker];

    for (size_t i = 0; i < r->workers; i++)
        if (r->load[i].out > 0)
            most = kf_max(most, r->rows[i]);
    return fmin(2, (double)most / (double)r->rows[worker]);
}

static void know_slack(const kofn_core *c, kf_round *r, uint32_t worker)
{
    double share = largest(r, worker);

    r->slack =
        times(r->pace, share - 1 + c->hedge_factor * (c->opt.late - 1) * share);
    if (r->slack < c->opt.late_least)
        r->slack = c->opt.late_least;
}

/* A worker has answered all that it was asked for. */
void kf_late_ready(const kofn_core *c, kf_round *r, uint32_t worker)
{
    kofn_time since = r->load[worker].since;

    r->ready++;
    if (!r->half) {
        r->pace = c->now - (since > r->began ? since : r->began);
        r->half = r->ready >= r->busy;
        if (r->half && c->opt.late > 0)
            know_slack(c, r, worker);
    }
    if (r->lease_at == KOFN_NEVER && c->opt.lease > 0)
        r->lease_at = later(c->now, c->opt.lease);
    kf_late_put_off(c, r);
}

/* Workers do what is of older products first: only now is this one at what it
 * was given of newer ones. */
void kf_late_next(kofn_core *c, const kf_round *r, uint32_t worker)
{
    for (size_t i = c->rounds; i > 0 && c->round[i - 1] != r; i--)
        c->round[i - 1]->load[worker].since = c->now;
}

/* ---- late ---------------------------------------------------------------- */

/* Tasks in hand may still come, but are not waited for alone. */
void kf_late_ask_others(kofn_core *c, kf_round *r)
{
    be_generous(c, r);
    for (size_t i = 0; i < r->p.tasks; i++)
        kf_product_late(&r->p, i);
    /* Where answers are whole everybody was asked for all there is. */
    for (size_t g = 0; !kf_layout(&r->p)->whole && g < r->p.groups; g++)
        kf_product_owe(&r->p, g, KF_OWED_SHORT);
    kf_product_all_news(&r->p); /* cells may have enough without the late */
}

static void hedge(kofn_core *c, kf_round *r)
{
    kofn_time past = c->now - r->began;

    r->hedged = true;
    r->late_at = later(c->now, past > 0 ? past : 1); /* they may be late, too */
    kf_policy_of(r)->late(c, r);
}

/* ---- unresponsive -------------------------------------------------------- */

kofn_time kf_late_lease(const kofn_core *c, bool known, kofn_time pace)
{
    kofn_time least = times(c->opt.lease, known ? 1 : FEW);
    kofn_time many = times(pace, MANY);

    return many > least ? many : least;
}

/* Nobody is given up before somebody has shown what the work takes. */
kofn_status kf_late_evict(kofn_core *c, const kf_round *r, kofn_time enough,
                          kofn_time *next)
{
    *next = KOFN_NEVER;
    for (size_t i = 0; i < c->fleet.workers; i++) {
        kofn_time due = later(c->fleet.worker[i].last, enough);

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

/* ---- the alarm ----------------------------------------------------------- */

static kofn_status out_of_patience(kofn_core *c, kf_round *r)
{
    kf_fail(KOFN_LATE,
            "patience ran out after %.3g s with too few workers; "
            "start more workers",
            (double)(c->now - r->starved) * 1e-9);
    return kf_core_deliver(c, r, KOFN_LATE);
}

kofn_status kf_late_rang(kofn_core *c, kf_round *r)
{
    if (c->now < r->alarm || !kf_is_open(r))
        return KOFN_OK;
    r->alarm = KOFN_NEVER;
    if (r->state == KF_ROUND_STARVED)
        return out_of_patience(c, r);
    if (c->now >= r->late_at)
        hedge(c, r);
    TRY(kf_round_go_on(c,
                       r)); /* whoever is asked now is not unresponsive yet */
    if (r->state == KF_ROUND_RUNNING && c->now >= r->lease_at)
        TRY(kf_late_evict(c, r, kf_late_lease(c, r->half, r->pace),
                          &r->lease_at));
    kf_late_alarm(r);
    return KOFN_OK;
}
