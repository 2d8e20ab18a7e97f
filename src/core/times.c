/* times.c -- how long a worker is waited for, measured by what others take.
 *
 * Once half of the workers are ready, and then no other has become so for
 * (late - 1) times as long as that took (longer where shares are not equal),
 * those still at work are *late* (late.c).  Each worker that becomes
 * ready puts this off, for where there are fewer cores than workers they finish
 * one after the other and none of them is late.  Where something late had not
 * come when the round was over, it would better have been waited for less: the
 * next time it is half of that, down to a quarter, and twice as much again when
 * all of it came after all.
 *
 * The times are of the round and the fleet.  It looks at no clock: all times
 * come with events, and it sets the alarm at which the round wants to be called
 * again.
 */
#include "state.h"

#include <math.h>

#define HEDGE_FACTOR 0.25
#define MANY 50 /* shares of others that a lease lasts at least       */
#define FEW 10  /* leases that it lasts while fewer than half are ready */

kofn_time kf_times_of(double t)
{
    return t < 9e18 ? (kofn_time)t : KOFN_NEVER;
}

/* The round is over.  Was it right to ask others for what was late? */
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

/* Work was dealt from the beginning. */
void kf_times_begin(const kofn_core *c, kf_round *r)
{
    r->began = c->now;
    r->pace = r->slack = 0;
    r->ready = 0;
    r->half = r->hedged = false;
    r->late_at = r->lease_at = KOFN_NEVER;
}

/* While the round is starved the alarm is for patience. */
void kf_times_alarm(kf_round *r)
{
    if (r->state == KF_ROUND_RUNNING)
        r->alarm = r->late_at < r->lease_at ? r->late_at : r->lease_at;
}

/* Somebody became ready, or was given more to do. */
void kf_times_put_off(const kofn_core *c, kf_round *r)
{
    if (r->half && !r->hedged && c->opt.late > 0)
        r->late_at = kf_later(c->now, r->slack);
    kf_times_alarm(r);
}

/* Another may have so many times as much to do as this worker; where strips are few
 * that may be twice as much. */
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

/* A worker has answered all that it was asked for. */
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
    kf_times_put_off(c, r);
}

/* Workers do what is of older products first: only now is this one at what it
 * was given of newer ones. */
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
