/* machines.c -- simulated workers: their tasks, one after another, and their
 * turns on the cores that they share.
 *
 * A worker keeps a core for a slice of time.  One that has slept gets the next
 * free core.  Changes nothing of the coordinator but its incoming link. */
#include "machines.h"

#include <assert.h>
#include <math.h>

/* Seconds for which a worker keeps a shared core, as Linux schedules; longer
 * tasks have this number of turns. */
#define SLICE 3e-3
#define TURNS 8
/* A worker reads its clock before it reports a result.  Linux sees then that
 * the worker has had its least slice, and lets all others go first. */
#define LEAST_SLICE 1.4e-3

/* ---- workers ------------------------------------------------------------- */

kofn_status kf_machine_add(dry *d, uint32_t *id)
{
    TRY(kf_grow(&d->worker, &d->cap, d->workers, sizeof *d->worker));
    *id = (uint32_t)d->workers++;
    return schedule(d,
                    kf_later(d->now, seconds(kf_faults_leave(&d->faults, *id))),
                    LEAVE, *id, 0);
}

/* ---- cores --------------------------------------------------------------- */

/* Returns for how long the worker may keep a shared core. */
static double slice_of(const task *t)
{
    return fmax(SLICE, t->seconds / TURNS);
}

/* Gives the worker a core. Unless cores are shared, it computes without a
 * pause. */
static kofn_status run(dry *d, uint32_t id)
{
    worker *w = &d->worker[id];
    const task *t = &d->task.task[w->at];
    double slice = t->left;

    if (d->costs->cores)
        slice = fmin(slice, slice_of(t) - w->used);
    w->on_core = true;
    w->waits = false;
    d->computing++;
    w->until = slice > FOR_EVER ? KOFN_NEVER
                                : kf_later(d->now, seconds(slice + d->lost));
    d->lost = 0;
    return schedule(d, w->until, SLICED, id, w->at);
}

/* Gives free cores to those who wait longest. */
static kofn_status fill_cores(dry *d)
{
    while (d->turn.next < d->turn.count && d->computing < d->costs->cores) {
        uint32_t id = d->turn.worker[d->turn.next++];

        if (d->worker[id].waits)
            TRY(run(d, id));
    }
    if (d->turn.next == d->turn.count)
        d->turn.next = d->turn.count = 0;
    return KOFN_OK;
}

/* Lets the worker wait for a core. If it had one until now it keeps that, until
 * its slice is over. */
static kofn_status line_up(dry *d, uint32_t id)
{
    worker *w = &d->worker[id];

    if (!d->costs->cores)
        return run(d, id);
    if (w->used > 0 && w->used < slice_of(&d->task.task[w->at]) &&
        d->computing < d->costs->cores)
        return run(d, id);
    w->used = 0;
    w->waits = true;
    TRY(kf_grow(&d->turn.worker, &d->turn.cap, d->turn.count,
                sizeof *d->turn.worker));
    if (w->woke && d->turn.next > 0)
        d->turn.worker[--d->turn.next] = id;
    else
        d->turn.worker[d->turn.count++] = id;
    w->woke = false;
    return fill_cores(d);
}

/* Takes the worker's core away. */
static void rest(dry *d, worker *w)
{
    assert(!w->on_core || d->computing > 0);
    d->computing -= w->on_core;
    w->on_core = w->waits = false;
}

/* ---- tasks --------------------------------------------------------------- */

/* Starts the next waiting task. A slow worker computes for longer. If cores are
 * shared, it computes as fast as others and then sleeps. */
static kofn_status take_up(dry *d, uint32_t id)
{
    worker *w = &d->worker[id];
    task *t;

    while (w->count && d->task.task[w->queue[w->first]].cancelled)
        w->first++, w->count--;
    if (w->busy || w->gone || w->count == 0)
        return KOFN_OK;
    w->at = w->queue[w->first++];
    w->count--;
    if (w->count == 0)
        w->first = 0;
    w->busy = true;
    t = &d->task.task[w->at];
    t->since = d->now;
    t->left = t->seconds;
    if (!d->costs->cores)
        t->left =
            kf_faults_stretch(&d->faults, id, t->round, w->began != t->round,
                              t->left / kf_faults_speed(&d->faults, id));
    return line_up(d, id);
}

/* Sends the result of a task that was computed. */
static kofn_status report(dry *d, uint32_t id, uint32_t at)
{
    task *t = &d->task.task[at];
    kf_dry_size size = kf_dry_task(d->plan, t->row, t->lo, t->hi, d->opt->part);
    double bytes =
        size.elements * (double)kf_dtype_size(d->plan->layout.problem.dtype);
    kofn_time comes = d->now;

    t->took = d->now - t->since;
    d->times->work += size.work;
    if (d->opt->away) {
        d->times->received += bytes;
        if (d->costs->cores && d->computing >= d->costs->cores)
            d->lost += kf_dry_moving(d, bytes);
        if (d->link.in < d->now)
            d->link.in = d->now;
        d->link.in = kf_later(d->link.in, seconds(kf_dry_moving(d, bytes)));
        comes = kf_later(d->link.in, seconds(d->costs->latency));
    }
    d->worker[id].busy = false;
    TRY(schedule(d, comes, REPORT, id, at));
    return take_up(d, id);
}

/* Returns the seconds that the worker sleeps after a task on a shared core. */
static double sleep_after(const dry *d, uint32_t id, const task *t)
{
    double s = t->seconds;

    if (!d->costs->cores)
        return 0;
    return kf_faults_stretch(&d->faults, id, t->round,
                             d->worker[id].began != t->round,
                             s / kf_faults_speed(&d->faults, id)) -
           s;
}

/* Starts the next task after one that was cancelled. */
static kofn_status end_cancelled(dry *d, uint32_t id)
{
    rest(d, &d->worker[id]);
    d->worker[id].busy = false;
    TRY(take_up(d, id));
    return fill_cores(d);
}

kofn_status kf_machine_sliced(dry *d, const kf_heap_entry *e)
{
    worker *w = &d->worker[e->worker];
    task *t = &d->task.task[e->task];
    double ran, more;

    if (!w->on_core || w->at != e->task || w->until != e->time)
        return KOFN_OK; /* cancelled, or gone */
    ran = d->costs->cores ? fmin(t->left, slice_of(t) - w->used) : t->left;
    rest(d, w);
    t->left -= ran;
    w->used += ran;
    if (t->left > 0 ||
        (d->costs->cores && !t->cancelled && w->used > LEAST_SLICE)) {
        w->used = 0;
        return line_up(d, e->worker);
    }
    if (t->cancelled)
        return end_cancelled(d, e->worker);
    more = sleep_after(d, e->worker, t);
    w->began = t->round;
    if (more <= 0) {
        TRY(report(d, e->worker, e->task)); /* and goes on with its next task */
        return fill_cores(d);
    }
    w->used = 0;
    TRY(fill_cores(d));
    if (more > FOR_EVER)
        return KOFN_OK;
    return schedule(d, kf_later(d->now, seconds(more)), COMPUTED, e->worker,
                    e->task);
}

kofn_status kf_machine_wake(dry *d, uint32_t id, uint32_t at)
{
    worker *w = &d->worker[id];

    if (!w->busy || w->at != at)
        return KOFN_OK;
    w->woke = true;
    return report(d, id, at);
}

kofn_status kf_machine_arrive(dry *d, uint32_t id, uint32_t at)
{
    worker *w = &d->worker[id];
    uint32_t *queue;
    size_t i;

    if (w->gone || d->task.task[at].cancelled)
        return KOFN_OK;
    TRY(kf_grow(&w->queue, &w->cap, w->first + w->count, sizeof *w->queue));
    queue = w->queue + w->first;
    for (i = w->count++;
         i > 0 && d->task.task[queue[i - 1]].round > d->task.task[at].round;
         i--)
        queue[i] = queue[i - 1];
    queue[i] = at;
    return take_up(d, id);
}

void kf_machine_stop(dry *d, uint32_t id)
{
    worker *w = &d->worker[id];

    w->gone = true;
    rest(d, w);
    w->busy = false;
    w->count = 0;
}

kofn_status kf_machine_drop(dry *d, uint32_t id)
{
    worker *w = &d->worker[id];
    task *t = &d->task.task[w->at];

    if (d->stride <= 0 || (!w->on_core && (!w->waits || t->left >= t->seconds)))
        return end_cancelled(d, id); /* it sleeps, or has not begun */
    t->left = fmin(t->left, d->stride);
    if (!w->on_core)
        return KOFN_OK;
    rest(d, w);
    return run(d, id);
}
