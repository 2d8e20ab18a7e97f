/* dry.c -- drives the coordinator with simulated workers that compute nothing.
 *
 * The coordinator does one thing after another. Events that come while it is at
 * work wait. Its link carries messages one after the other in each direction.
 * Workers that share cores take turns, each for a slice of time.
 *
 * Owns the coordinator, the workers and their tasks for one run. It reads no
 * clock and uses no threads. */
#include "dry.h"

#include "base/heap.h"
#include "base/options.h"
#include "code/code.h"
#include "code/operation.h"
#include "core/core.h"
#include "faults/faults.h"

#include <assert.h>
#include <math.h>

/* Seconds of simulated time after which a job counts as stuck. */
#define FOR_EVER 1e8
/* Seconds for which a worker keeps a shared core, as Linux schedules; longer
 * tasks have this number of turns. */
#define SLICE 3e-3
#define TURNS 8

enum { STORED, ARRIVE, SLICED, COMPUTED, REPORT, LEAVE, JOIN };

typedef struct task {
    uint32_t number; /* the first member: kf_core_find looks for it */
    uint32_t worker, product, row;
    size_t lo, hi;
    double seconds; /* of computing, if it waits for no core */
    double left;    /* of them */
    kofn_time since, took;
    bool cancelled;
} task;

typedef struct worker {
    bool gone, busy;
    bool on_core;     /* it computes now */
    bool waits;       /* it waits for a core */
    bool woke;        /* it has slept: it gets the next free core */
    double used;      /* seconds on the core since it waited for one */
    uint32_t at;      /* index of the task, if busy */
    uint32_t product; /* whose input it has */
    uint32_t began;   /* product of the last task that it began */
    uint32_t *queue;  /* indices of tasks, from `first` on */
    size_t first, count, cap;
} worker;

typedef struct dry {
    const kofn_plan *plan;
    const kofn_forecast_options *opt;
    const kofn_costs *costs;
    kofn_core *core;
    kofn_faults faults;
    kf_heap heap;
    size_t computing; /* workers on a core */
    uint32_t *turn;   /* workers that wait for one, from `next` on; some wait no
                       * more */
    size_t next, turns, turn_cap;
    kofn_time now;     /* present time */
    kofn_time free;    /* when the coordinator has done what it was asked for */
    kofn_time out, in; /* when its link is free */
    worker *worker;
    size_t workers, cap;
    task *task;
    size_t tasks, task_cap;
    uint32_t joins;
    bool over; /* the product or, in a stream, the round has ended */
    kofn_status ended;
    uint32_t *check; /* numbers of checks without a verdict, and products */
    size_t checks, check_cap;
    kf_dry_times *times;
} dry;

static kofn_time seconds(double s)
{
    return kf_faults_nanoseconds(s);
}

/* ---- time ---------------------------------------------------------------- */

static kofn_status schedule(dry *d, kofn_time at, uint32_t kind, uint32_t w,
                            uint32_t index)
{
    if (at >= KOFN_NEVER)
        return KOFN_OK; /* it never happens */
    return kf_heap_push(
        &d->heap,
        (kf_heap_entry){.time = at, .kind = kind, .worker = w, .task = index});
}

static void wait_for(dry *d, kofn_time t)
{
    if (d->now < t)
        d->now = t;
}

/* Lets the coordinator work for this time. */
static void spend(dry *d, double s)
{
    d->free = kf_later(d->free, seconds(s));
}

/* Sends a message of that size, and returns when it arrives. */
static kofn_time send(dry *d, double bytes)
{
    double width = d->costs->bandwidth;

    spend(d, d->costs->message);
    if (!d->opt->away)
        return d->free;
    d->times->sent += bytes;
    if (d->out < d->free)
        d->out = d->free;
    d->out = kf_later(d->out, seconds(width > 0 ? bytes / width : 0));
    return kf_later(d->out, seconds(d->costs->latency));
}

/* ---- workers ------------------------------------------------------------- */

static kofn_status add_worker(dry *d, uint32_t *id)
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
    const task *t = &d->task[w->at];
    double slice = t->left;

    if (d->costs->cores)
        slice = fmin(slice, slice_of(t) - w->used);
    w->on_core = true;
    w->waits = false;
    d->computing++;
    if (slice > FOR_EVER)
        return KOFN_OK; /* it never ends */
    return schedule(d, kf_later(d->now, seconds(slice)), SLICED, id, w->at);
}

/* Gives free cores to those who wait longest. */
static kofn_status fill_cores(dry *d)
{
    while (d->next < d->turns && d->computing < d->costs->cores) {
        uint32_t id = d->turn[d->next++];

        if (d->worker[id].waits)
            TRY(run(d, id));
    }
    if (d->next == d->turns)
        d->next = d->turns = 0;
    return KOFN_OK;
}

/* Lets the worker wait for a core. If it had one until now it keeps that, until
 * its slice is over. */
static kofn_status line_up(dry *d, uint32_t id)
{
    worker *w = &d->worker[id];

    if (!d->costs->cores)
        return run(d, id);
    if (w->used > 0 && w->used < slice_of(&d->task[w->at]) &&
        d->computing < d->costs->cores)
        return run(d, id);
    w->used = 0;
    w->waits = true;
    TRY(kf_grow(&d->turn, &d->turn_cap, d->turns, sizeof *d->turn));
    if (w->woke && d->next > 0)
        d->turn[--d->next] = id;
    else
        d->turn[d->turns++] = id;
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

    while (w->count && d->task[w->queue[w->first]].cancelled)
        w->first++, w->count--;
    if (w->busy || w->gone || w->count == 0)
        return KOFN_OK;
    w->at = w->queue[w->first++];
    w->count--;
    if (w->count == 0)
        w->first = 0;
    w->busy = true;
    t = &d->task[w->at];
    t->since = d->now;
    t->left = t->seconds;
    if (!d->costs->cores)
        t->left = kf_faults_stretch(&d->faults, id, t->product,
                                    w->began != t->product,
                                    t->left / kf_faults_speed(&d->faults, id));
    return line_up(d, id);
}

/* Sends the result of a task that was computed. */
static kofn_status report(dry *d, uint32_t id, uint32_t at)
{
    task *t = &d->task[at];
    kf_dry_size size = kf_dry_task(d->plan, t->row, t->lo, t->hi, d->opt->part);
    double bytes = size.elements *
                   (double)kf_dtype_size(d->plan->layout.problem.dtype),
           width = d->costs->bandwidth;
    kofn_time comes = d->now;

    t->took = d->now - t->since;
    d->times->work += size.work;
    if (d->opt->away) {
        d->times->received += bytes;
        if (d->in < d->now)
            d->in = d->now;
        d->in = kf_later(d->in, seconds(width > 0 ? bytes / width : 0));
        comes = kf_later(d->in, seconds(d->costs->latency));
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
    return kf_faults_stretch(&d->faults, id, t->product,
                             d->worker[id].began != t->product,
                             s / kf_faults_speed(&d->faults, id)) -
           s;
}

/* Ends a worker's turn on a core. */
static kofn_status sliced(dry *d, const kf_heap_entry *e)
{
    worker *w = &d->worker[e->worker];
    task *t = &d->task[e->task];
    double ran, more;

    if (!w->on_core || w->at != e->task)
        return KOFN_OK; /* cancelled, or gone */
    ran = d->costs->cores ? fmin(t->left, slice_of(t) - w->used) : t->left;
    rest(d, w);
    t->left -= ran;
    w->used += ran;
    if (t->left > 0) {
        w->used = 0;
        return line_up(d, e->worker);
    }
    more = sleep_after(d, e->worker, t);
    w->began = t->product;
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

/* Ends the sleep after a task. */
static kofn_status wake(dry *d, uint32_t id, uint32_t at)
{
    worker *w = &d->worker[id];

    if (!w->busy || w->at != at)
        return KOFN_OK;
    w->woke = true;
    return report(d, id, at);
}

static kofn_status arrive(dry *d, uint32_t id, uint32_t at)
{
    worker *w = &d->worker[id];

    if (w->gone || d->task[at].cancelled)
        return KOFN_OK;
    TRY(kf_grow(&w->queue, &w->cap, w->first + w->count, sizeof *w->queue));
    w->queue[w->first + w->count++] = at;
    return take_up(d, id);
}

static void stop(dry *d, uint32_t id)
{
    worker *w = &d->worker[id];

    w->gone = true;
    rest(d, w);
    w->busy = false;
    w->count = 0;
}

/* ---- actions of the coordinator ------------------------------------------ */

/* Returns the multiply-adds that a block takes; a plain one takes none. */
static kofn_status coding(const dry *d, size_t seat, double *work)
{
    const kofn_plan *p = d->plan;
    const kofn_layout *L = &p->layout;
    const kf_seat *s;
    double terms = 0, most = 0;

    *work = 0;
    if (p->op->factors == 0)
        return KOFN_OK;
    TRY(kf_code_seat(kf_core_use(d->core, KOFN_USE_OWN)->code,
                     kf_local(p, seat), &s));
    for (size_t i = 0; i < L->components * L->inner; i++) {
        terms += (double)s->E0[i].n;
        most = fmax(most, (double)s->E0[i].n);
    }
    if (most > 1)
        *work = terms * kf_dry_block(p, 0) /
                (double)(L->components * L->inner) /
                (double)kf_dtype_size(L->problem.dtype);
    return KOFN_OK;
}

static kofn_status store(dry *d, const kofn_action *a)
{
    double bytes = kf_dry_block(d->plan, d->opt->data), work;

    TRY(coding(d, a->seat, &work));
    spend(d, 1e-9 * (work > 0       ? work * d->costs->combine
                     : d->opt->away ? bytes * d->costs->copy
                                    : 0));
    return schedule(d, send(d, bytes), STORED, a->worker, 0);
}

static kofn_status work(dry *d, const kofn_action *a)
{
    const kofn_plan *p = d->plan;
    worker *w = &d->worker[a->worker];
    double bytes = 0;
    kf_dry_size size = kf_dry_task(p, a->row, a->lo, a->hi, d->opt->part);

    TRY(kf_grow(&d->task, &d->task_cap, d->tasks, sizeof *d->task));
    d->task[d->tasks] =
        (task){.number = a->task,
               .worker = a->worker,
               .product = a->product,
               .row = (uint32_t)a->row,
               .lo = a->lo,
               .hi = a->hi,
               .seconds = 1e-9 * size.work * d->costs->work + d->costs->task};
    if (w->product != a->product || p->parts1 > 1)
        bytes = kf_dry_input(p);
    if (p->parts1 > 1)
        spend(d, 1e-9 * d->costs->combine * bytes / 8 * (double)p->parts1);
    if (p->op->stream)
        bytes += kf_dry_block(p, 0);
    w->product = a->product;
    return schedule(d, send(d, bytes), ARRIVE, a->worker, (uint32_t)d->tasks++);
}

static kofn_status cancel(dry *d, const kofn_action *a)
{
    worker *w = &d->worker[a->worker];
    task *t = kf_core_find(d->task, d->tasks, sizeof *t, a->task);

    spend(d, d->costs->message);
    if (!t || w->gone)
        return KOFN_OK;
    t->cancelled = true;
    if (!w->busy || &d->task[w->at] != t)
        return KOFN_OK;
    rest(d, w);
    w->busy = false;
    TRY(take_up(d, a->worker));
    return fill_cores(d);
}

/* Lets the coordinator decode: it copies what is plain, and combines the
 * rest. */
static void decode(dry *d, const kofn_action *a)
{
    const kofn_decoder *by = a->decoder;
    kf_dry_size size = kf_dry_task(d->plan, 0, a->lo, a->hi, d->opt->part);
    double each = size.elements / (double)d->plan->layout.components, s;

    if (!by)
        s = (double)a->count * size.elements * d->costs->combine;
    else
        s = (double)by->mixed * (double)by->results * each * d->costs->combine +
            (double)(by->wants - by->mixed) * each * 8 * d->costs->copy;
    spend(d, 1e-9 * s);
}

/* Keeps a check for its verdict, which follows the step. */
static kofn_status check(dry *d, const kofn_action *a)
{
    kf_dry_size size = kf_dry_task(d->plan, 0, a->lo, a->hi, d->opt->part);

    spend(d, 1e-9 * (double)a->count * size.elements * 8 * d->costs->copy);
    TRY(kf_reach(&d->check, &d->check_cap, 2 * d->checks + 2,
                 sizeof *d->check));
    d->check[2 * d->checks] = a->task;
    d->check[2 * d->checks++ + 1] = a->product;
    return KOFN_OK;
}

static kofn_status act(dry *d, const kofn_action *a)
{
    switch (a->type) {
    case KOFN_DO_STORE:
        return store(d, a);
    case KOFN_DO_WORK:
        return work(d, a);
    case KOFN_DO_CANCEL:
        return cancel(d, a);
    case KOFN_DO_DECODE:
    case KOFN_DO_MIX:
        decode(d, a);
        return KOFN_OK;
    case KOFN_DO_CHECK:
        return check(d, a);
    case KOFN_DO_EVICT:
        stop(d, a->worker);
        return KOFN_OK;
    case KOFN_DO_DELIVER:
        d->over |= !d->plan->op->stream;
        if (a->status)
            d->ended = a->status;
        else
            d->times->error = a->predicted;
        return KOFN_OK;
    case KOFN_DO_END:
        d->over = true;
    }
    return KOFN_OK;
}

static kofn_status step_once(dry *d, kofn_event *ev)
{
    kofn_action a;
    kofn_status st = KOFN_OK;

    ev->now = d->now;
    TRY(kofn_core_step(d->core, ev));
    while (kofn_core_next(d->core, &a))
        if (!st)
            st = act(d, &a);
    return st;
}

/* Processes an event now, and answers the checks that it leads to: all results
 * are right. */
static kofn_status step(dry *d, kofn_event ev)
{
    if (d->free < d->now)
        d->free = d->now;
    TRY(step_once(d, &ev));
    while (d->checks > 0) {
        kofn_event verdict = {.type = KOFN_EV_VERDICT};

        d->checks--;
        verdict.task = d->check[2 * d->checks];
        verdict.product = d->check[2 * d->checks + 1];
        TRY(step_once(d, &verdict));
    }
    return KOFN_OK;
}

/* ---- events -------------------------------------------------------------- */

static kofn_status join(dry *d)
{
    uint32_t id;

    TRY(add_worker(d, &id));
    TRY(schedule(
        d, kf_later(d->now, seconds(kf_faults_gap(&d->faults, ++d->joins))),
        JOIN, 0, 0));
    return step(d, (kofn_event){.type = KOFN_EV_JOINED, .worker = id});
}

static kofn_status come(dry *d, const kf_heap_entry *e)
{
    const task *t = &d->task[e->task];

    if (d->worker[e->worker].gone)
        return KOFN_OK;
    spend(d, d->costs->message);
    return step(d, (kofn_event){.type = KOFN_EV_RESULT,
                                .worker = e->worker,
                                .product = t->product,
                                .task = t->number,
                                .row = t->row,
                                .took = t->took});
}

static kofn_status happen(dry *d, const kf_heap_entry *e)
{
    switch (e->kind) {
    case ARRIVE:
        return arrive(d, e->worker, e->task);
    case SLICED:
        return sliced(d, e);
    case COMPUTED:
        return wake(d, e->worker, e->task);
    case STORED:
        return d->worker[e->worker].gone
                   ? KOFN_OK
                   : step(d, (kofn_event){.type = KOFN_EV_STORED,
                                          .worker = e->worker});
    case REPORT:
        return come(d, e);
    case LEAVE:
        if (d->worker[e->worker].gone)
            return KOFN_OK;
        stop(d, e->worker);
        return step(d, (kofn_event){.type = KOFN_EV_LEFT, .worker = e->worker});
    default:
        return join(d);
    }
}

/* True if the coordinator has to be free for this event. */
static bool needs_coordinator(const kf_heap_entry *e)
{
    return e->kind != ARRIVE && e->kind != SLICED && e->kind != COMPUTED;
}

/* Lets one thing happen. Fails with KOFN_LATE if nothing will. */
static kofn_status go_on(dry *d)
{
    kofn_time alarm = kf_core_alarm(d->core),
              next = d->heap.count ? d->heap.entry[0].time : KOFN_NEVER;
    kf_heap_entry e;

    if (alarm < d->free)
        alarm = d->free;
    if (next == KOFN_NEVER && alarm == KOFN_NEVER)
        return KOFN_LATE;
    if (alarm < next) {
        wait_for(d, alarm);
        return step(d, (kofn_event){.type = KOFN_EV_ALARM});
    }
    e = kf_heap_pop(&d->heap);
    if (e.time < d->free && needs_coordinator(&e))
        return schedule(d, d->free, e.kind, e.worker, e.task);
    wait_for(d, e.time);
    return happen(d, &e);
}

/* ---- the run ------------------------------------------------------------- */

static kofn_status open_core(dry *d)
{
    kofn_options all = KOFN_OPTIONS_INIT;
    kofn_core_options o = KOFN_CORE_OPTIONS_INIT;

    TRY(kf_given(&all, sizeof all, d->opt->job, "KOFN_OPTIONS_INIT"));
    if (all.late == 0 && d->plan->layout.everybody)
        all.late = -1;
    TRY(kf_options_check(&all));
    kf_options_settle(&all);
#define X(type, name, ...) o.name = all.name;
    KOFN_OPTIONS_OF_CORE(X)
#undef X
    o.late_least = KOFN_SECOND / 1000;
    o.open = KOFN_OPEN_MOST;
    return kf_core_new(&d->core, d->plan, &o);
}

/* Lets the first workers come and store their blocks. */
static kofn_status place(dry *d)
{
    for (size_t i = 0; i < d->plan->workers; i++) {
        uint32_t id;

        TRY(add_worker(d, &id));
        TRY(step(d, (kofn_event){.type = KOFN_EV_JOINED, .worker = id}));
    }
    TRY(schedule(d, seconds(kf_faults_gap(&d->faults, 0)), JOIN, 0, 0));
    while (kf_core_storing(d->core) > 0)
        TRY(go_on(d));
    wait_for(d, d->free);
    d->times->place = (double)d->now * 1e-9;
    return KOFN_OK;
}

static kofn_status one_round(dry *d, unsigned r)
{
    const kofn_problem *pb = &d->plan->layout.problem;
    kofn_time began;

    wait_for(d, d->free);
    began = d->now;
    d->over = false;
    spend(d, 1e-9 * kf_dry_input(d->plan) * d->costs->copy);
    TRY(step(d, (kofn_event){.type = KOFN_EV_BEGIN,
                             .product = r + 1,
                             .m = pb->m,
                             .n = pb->n,
                             .p = pb->p}));
    while (!d->over && !d->ended) {
        if ((double)d->now > FOR_EVER * 1e9)
            return KOFN_LATE;
        TRY(go_on(d));
    }
    wait_for(d, d->free);
    d->times->round[r] = (double)(d->now - began) * 1e-9;
    return d->ended;
}

static void release(dry *d)
{
    for (size_t i = 0; i < d->workers; i++)
        kf_free(d->worker[i].queue);
    kf_free(d->worker);
    kf_free(d->task);
    kf_free(d->check);
    kf_free(d->heap.entry);
    kf_free(d->turn);
    kofn_core_free(d->core);
}

kofn_status kf_dry_run(kf_dry_times *out, const kofn_plan *plan,
                       const kofn_forecast_options *opt)
{
    unsigned rounds = opt->rounds ? opt->rounds : 1;
    dry d = {.plan = plan, .opt = opt, .costs = opt->costs, .times = out};
    kofn_status st;

    *out = (kf_dry_times){.status = KOFN_OK};
    TRY_ZERO(out->round, rounds);
    st = kf_given(&d.faults, sizeof d.faults, opt->faults, "KOFN_FAULTS_INIT");
    if (!st)
        st = open_core(&d);
    if (!st)
        st = place(&d);
    for (unsigned r = 0; r < rounds && !st; r++) {
        st = one_round(&d, r);
        out->rounds += st >= 0;
    }
    release(&d);
    out->status = st;
    return st == KOFN_NOMEM || st == KOFN_INVAL ? st : KOFN_OK;
}
