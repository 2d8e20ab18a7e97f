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

#define HASTE 0.25

/* ---- what is known ------------------------------------------------------- */

/* A round begins.  Where a share takes less than anybody is waited for before
 * being late, work is cheaper than waiting: after somebody was late everybody
 * is asked for everything, for some rounds, and for more each time that this
 * proves right. */
void kf_late_round(kofn_core *c)
{
    if (c->generous > 0)
        c->generous--;
    else if (!c->hedged)
        c->generosity /= 2;
    c->hedged = false;
}

static void be_generous(kofn_core *c)
{
    if (c->plan->layout.adjoint || c->pace >= c->opt.late_least)
        return;
    c->generosity = c->generosity ? kf_min(2 * c->generosity, 64) : 4;
    c->generous = c->generosity;
}

/* The round is over.  Was it right to ask others for what was late? */
void kf_late_learn(kofn_core *c)
{
    bool right = false;

    if (!c->hedged)
        return;
    for (size_t i = 0; i < c->tasks; i++)
        right |= c->task[i].state == KF_TASK_LATE;
    c->haste = right ? fmax(c->haste / 2, HASTE) : fmin(c->haste * 2, 1);
}

/* Work was dealt from the beginning. */
void kf_late_begin(kofn_core *c)
{
    c->began = c->now;
    c->pace = c->slack = 0;
    c->ready = 0;
    c->half = c->hedged = false;
    c->late_at = c->lease_at = KOFN_NEVER;
}

/* While the round is starved the alarm is for patience. */
void kf_late_alarm(kofn_core *c)
{
    if (c->state == KF_ROUND_RUNNING)
        c->alarm = c->late_at < c->lease_at ? c->late_at : c->lease_at;
}

/* Somebody became ready, or was given more to do. */
void kf_late_put_off(kofn_core *c)
{
    if (c->half && !c->hedged && c->opt.late > 0)
        c->late_at = later(c->now, c->slack);
    kf_late_alarm(c);
}

/* How many times as much as this worker another has to do; where strips are few
 * that may be twice as much. */
static double largest(const kofn_core *c, uint32_t worker)
{
    size_t most = c->rows[worker];

    for (size_t i = 0; i < c->workers; i++)
        if (c->worker[i].out > 0)
            most = kf_max(most, c->rows[i]);
    return fmin(2, (double)most / (double)c->rows[worker]);
}

static void know_slack(kofn_core *c, uint32_t worker)
{
    double share = largest(c, worker);

    c->slack = times(c->pace, share - 1 + c->haste * (c->opt.late - 1) * share);
    if (c->slack < c->opt.late_least)
        c->slack = c->opt.late_least;
}

/* A worker has answered all that it was asked for. */
void kf_late_ready(kofn_core *c, uint32_t worker)
{
    c->ready++;
    if (!c->half) {
        c->pace = c->now - c->began;
        c->half = c->ready >= c->busy;
        if (c->half && c->opt.late > 0)
            know_slack(c, worker);
    }
    if (c->lease_at == KOFN_NEVER && c->opt.lease > 0)
        c->lease_at = later(c->now, c->opt.lease);
    kf_late_put_off(c);
}

/* ---- late ------------------------------------------------------------------ */

/* What is in hand may come yet, but it is not waited for alone. */
static kofn_status hedge(kofn_core *c)
{
    kofn_time past = c->now - c->began;

    c->hedged = true;
    be_generous(c);
    c->late_at = later(c->now, past > 0 ? past : 1); /* they may be late, too */
    if (c->plan->layout.adjoint)
        return kf_adjoint_without_late(c);
    for (size_t i = 0; i < c->tasks; i++)
        kf_late_task(c, i);
    /* Where answers are whole everybody was asked for all there is. */
    for (size_t g = 0; !c->plan->layout.whole && g < c->plan->layout.groups;
         g++)
        TRY(kf_deal_short(c, g));
    return kf_settle_all(c); /* the late may be all that is waited for */
}

/* ---- mute ------------------------------------------------------------------ */

static kofn_time lease(const kofn_core *c)
{
    kofn_time least = times(c->opt.lease, c->half ? 1 : FEW);
    kofn_time many = times(c->pace, MANY);

    return many > least ? many : least;
}

static kofn_status give_up(kofn_core *c, uint32_t worker)
{
    TRY(kf_act(c, (kofn_action){.type = KOFN_DO_GIVE_UP, .worker = worker}));
    c->mutes++;
    c->mute = worker;
    return kf_vacate(c, worker, KF_WORKER_MUTE);
}

/* Nobody is given up before somebody has shown what the work takes. */
static kofn_status give_up_mute(kofn_core *c)
{
    kofn_time enough = lease(c), next = KOFN_NEVER;
    unsigned before = c->mutes;

    for (size_t i = 0; i < c->workers; i++) {
        kofn_time due = later(c->worker[i].last, enough);

        if (c->worker[i].out == 0)
            continue;
        if (due <= c->now)
            TRY(give_up(c, (uint32_t)i));
        else if (due < next)
            next = due;
    }
    c->lease_at = next;
    return c->mutes > before ? kf_lost(c) : KOFN_OK;
}

/* ---- the alarm --------------------------------------------------------------- */

static kofn_status out_of_patience(kofn_core *c)
{
    kf_fail(KOFN_LATE, "patience ran out after %.3g s with too few workers; "
            "start more workers", (double)(c->now - c->starved) * 1e-9);
    return kf_deliver(c, KOFN_LATE);
}

kofn_status kf_alarm_rang(kofn_core *c)
{
    if (c->now < c->alarm || c->state == KF_ROUND_IDLE)
        return KOFN_OK;
    c->alarm = KOFN_NEVER;
    if (c->state == KF_ROUND_STARVED)
        return out_of_patience(c);
    if (c->now >= c->late_at)
        TRY(hedge(c));
    if (c->state == KF_ROUND_RUNNING && c->now >= c->lease_at)
        TRY(give_up_mute(c));
    kf_late_alarm(c);
    return KOFN_OK;
}
