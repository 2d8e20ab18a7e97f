/* times.c -- decides how long to wait for a worker, from the time that others
 * take.
 *
 * A wait begins when half of the workers are ready.  It lasts (late - 1) times
 * the time that they took, and longer if shares are not equal.  Workers that
 * are still at work at its end are *late* (late.c).  Each further worker that
 * becomes ready restarts the wait: with fewer cores than workers they finish
 * one after the other, and none of them is late.  The last sixteenth of them
 * does not restart it.  In such a fleet they need no more than an eighth of the
 * time of the first half, which is the shortest wait.
 *
 * If a late result had not come when the round was over, a shorter wait would
 * have been better.  So the wait halves, down to a quarter.  It doubles, up to
 * the full length, if all late results came.
 *
 * The times belong to the round and the fleet.  This file reads no clock: all
 * times come with events.  It sets the alarm at which the round wants to be
 * called. */
#include "state.h"

#include <math.h>

#define HEDGE_FACTOR 0.25
#define LAST 16 /* the last workers: this part of all */
#define MANY 50 /* a lease lasts at least this number of shares */
#define FEW 10  /* factor of the lease while fewer than half are ready */

kofn_time kf_times_of(double t)
{
    return t < 9e18 ? (kofn_time)t : KOFN_NEVER;
}

/* Adapts the waiting time when a round is over: was it right to ask others for
 * late work? */
void kf_times_learn(kofn_core *c, const kf_round *r)
{
    bool right = false;

    if (!r->hedged)
        return;
    for (size_t i = 0; i < r->p.tasks; i++)
        right |= r->p.task[i].state == KF_TASK_LATE;
    c->hedge_factor = right ? fmax(c->hedge_factor / 2, HEDGE_FACTOR)
                            : fmin(c->hedge_factor * 2, 1);
}

/* Resets the times after all work was dealt from the beginning. */
void kf_times_begin(const kofn_core *c, kf_round *r)
{
    r->began = c->now;
    r->pace = r->slack = 0;
    r->ready = 0;
    r->half = r->hedged = false;
    r->late_at = r->lease_at = KOFN_NEVER;
}

/* Sets the alarm.  While the round is starved, the alarm is for patience
 * instead. */
void kf_times_alarm(kf_round *r)
{
    if (r->state == KF_ROUND_RUNNING)
        r->alarm = r->late_at < r->lease_at ? r->late_at : r->lease_at;
}

/* Extends the wait after a worker became ready or got more work. */
void kf_times_put_off(const kofn_core *c, kf_round *r)
{
    if (r->half && !r->hedged && c->opt.late > 0)
        r->late_at = kf_later(c->now, r->slack);
    kf_times_alarm(r);
}

/* Computes the slack.  Another worker may have more work than this one; with
 * few strips it may have twice the work. */
static void know_slack(const kofn_core *c, kf_round *r, uint32_t worker)
{
    size_t most = r->load[worker].rows;
    double share;

    for (size_t i = 0; i < r->workers; i++)
        if (r->load[i].out > 0)
            most = kf_max(most, r->load[i].rows);
    share = fmin(2, (double)most / (double)r->load[worker].rows);
    r->slack =
        kf_times_of((double)r->pace *
                    (share - 1 + c->hedge_factor * (c->opt.late - 1) * share));
    if (r->slack < c->opt.late_least)
        r->slack = c->opt.late_least;
}

/* Records that a worker has answered everything that it was asked for. */
void kf_times_ready(const kofn_core *c, kf_round *r, uint32_t worker)
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
        r->lease_at = kf_later(c->now, c->opt.lease);
    if (LAST * r->busy >= r->ready + r->busy)
        kf_times_put_off(c, r);
    else
        kf_times_alarm(r);
}

/* Records the time at which the worker turns to newer products, because workers
 * do older ones first. */
void kf_times_next(kofn_core *c, const kf_round *r, uint32_t worker)
{
    for (size_t i = c->rounds; i > 0 && c->round[i - 1] != r; i--)
        c->round[i - 1]->load[worker].since = c->now;
}

kofn_time kf_core_lease(const kofn_core *c, bool known, kofn_time pace)
{
    kofn_time least =
        known ? c->opt.lease : kf_times_of(FEW * (double)c->opt.lease);
    kofn_time many = kf_times_of(MANY * (double)pace);

    return many > least ? many : least;
}
