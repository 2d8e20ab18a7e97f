/* dry.c -- drives the coordinator with simulated workers that compute nothing.
 *
 * The coordinator does one thing after another. Events that come while it is at
 * work wait. Its link carries messages one after the other in each direction.
 * Workers are in machines.c.
 *
 * Owns the coordinator, the workers and their tasks for one run. It reads no
 * clock and uses no threads. */
#include "machines.h"

#include "base/options.h"
#include "code/code.h"
#include "code/operation.h"

#include <assert.h>
#include <math.h>

/* Systems of survivor sets that are solved in a fleet of more than SAMPLED
 * workers.  In a large one they would take nearly all of the time. */
#define SAMPLED 64
#define SETS 6
#define HALVINGS 3 /* most for which the costs of narrow products grow */

/* Lets the coordinator work for this time. */
static void spend(dry *d, double s)
{
    d->link.free = kf_later(d->link.free, seconds(s));
}

/* Lets the coordinator combine or copy.  If no core is free, a worker waits
 * that long; messages count as part of the tasks. */
static void labour(dry *d, double s)
{
    spend(d, s);
    if (d->costs->cores && d->computing >= d->costs->cores)
        d->lost += s;
}

/* Sends a message of that size, and returns when it arrives. */
static kofn_time send(dry *d, double bytes)
{
    spend(d, d->costs->message);
    if (!d->opt->away)
        return d->link.free;
    d->times->sent += bytes;
    if (d->costs->cores) { /* of this machine: the coordinator copies */
        labour(d, kf_dry_moving(d, bytes));
        return d->link.free;
    }
    if (d->link.out < d->link.free)
        d->link.out = d->link.free;
    d->link.out = kf_later(d->link.out, seconds(kf_dry_moving(d, bytes)));
    return kf_later(d->link.out, seconds(d->costs->latency));
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
    labour(d, 1e-9 * (work > 0       ? work * d->costs->combine
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

    TRY(kf_grow(&d->task.task, &d->task.cap, d->task.count,
                sizeof *d->task.task));
    d->task.task[d->task.count] =
        (task){.number = a->task,
               .worker = a->worker,
               .product = a->product,
               .round = p->op->stream ? d->rounds : a->product,
               .row = (uint32_t)a->row,
               .lo = a->lo,
               .hi = a->hi,
               .seconds = size.work * d->each + d->costs->task};
    if (w->product != a->product || p->parts1 > 1)
        bytes = kf_dry_input(p);
    if (p->parts1 > 1)
        labour(d, 1e-9 * d->costs->combine * bytes / 8 * (double)p->parts1);
    if (p->op->stream)
        bytes += kf_dry_block(p, 0);
    w->product = a->product;
    if (d->opt->away && d->costs->cores) /* it copies, too */
        d->task.task[d->task.count].seconds +=
            2 * d->costs->message +
            kf_dry_moving(
                d, bytes + size.elements *
                               (double)kf_dtype_size(p->layout.problem.dtype));
    return schedule(d, send(d, bytes), ARRIVE, a->worker,
                    (uint32_t)d->task.count++);
}

static kofn_status cancel(dry *d, const kofn_action *a)
{
    worker *w = &d->worker[a->worker];
    task *t = kf_core_find(d->task.task, d->task.count, sizeof *t, a->task);

    spend(d, d->costs->message);
    if (!t || w->gone)
        return KOFN_OK;
    t->cancelled = true;
    if (!w->busy || &d->task.task[w->at] != t)
        return KOFN_OK;
    return kf_machine_drop(d, a->worker);
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
    labour(d, 1e-9 * s);
}

/* Keeps a check for its verdict, which follows the step. */
static kofn_status check(dry *d, const kofn_action *a)
{
    kf_dry_size size = kf_dry_task(d->plan, 0, a->lo, a->hi, d->opt->part);

    labour(d, 1e-9 * (double)a->count * size.elements * 8 * d->costs->copy);
    TRY(kf_reach(&d->check.check, &d->check.cap, 2 * d->check.count + 2,
                 sizeof *d->check.check));
    d->check.check[2 * d->check.count] = a->task;
    d->check.check[2 * d->check.count++ + 1] = a->product;
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
        kf_machine_stop(d, a->worker);
        return KOFN_OK;
    case KOFN_DO_DELIVER:
        d->delivered++;
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
    if (d->link.free < d->now)
        d->link.free = d->now;
    TRY(step_once(d, &ev));
    while (d->check.count > 0) {
        kofn_event verdict = {.type = KOFN_EV_VERDICT};

        d->check.count--;
        verdict.task = d->check.check[2 * d->check.count];
        verdict.product = d->check.check[2 * d->check.count + 1];
        TRY(step_once(d, &verdict));
    }
    return KOFN_OK;
}

/* ---- events -------------------------------------------------------------- */

static kofn_status join(dry *d)
{
    uint32_t id;

    TRY(kf_machine_add(d, &id));
    TRY(schedule(
        d, kf_later(d->now, seconds(kf_faults_gap(&d->faults, ++d->joins))),
        JOIN, 0, 0));
    return step(d, (kofn_event){.type = KOFN_EV_JOINED, .worker = id});
}

static kofn_status come(dry *d, const kf_heap_entry *e)
{
    const task *t = &d->task.task[e->task];

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
        return kf_machine_arrive(d, e->worker, e->task);
    case SLICED:
        return kf_machine_sliced(d, e);
    case COMPUTED:
        return kf_machine_wake(d, e->worker, e->task);
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
        kf_machine_stop(d, e->worker);
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

    if (alarm < d->link.free)
        alarm = d->link.free;
    if (next == KOFN_NEVER && alarm == KOFN_NEVER)
        return KOFN_LATE;
    if (alarm < next) {
        wait_for(d, alarm);
        return step(d, (kofn_event){.type = KOFN_EV_ALARM});
    }
    e = kf_heap_pop(&d->heap);
    if (e.time < d->link.free && needs_coordinator(&e))
        return schedule(d, d->link.free, e.kind, e.worker, e.task);
    wait_for(d, e.time);
    return happen(d, &e);
}

/* ---- the run ------------------------------------------------------------- */

/* Returns the seconds of a worker for a multiply-add of this plan.  They grow
 * with each halving of the input. */
static double each(const kofn_plan *plan, const kofn_costs *c)
{
    double whole = (double)plan->layout.problem.p,
           halvings = log2(whole / kf_dry_width(plan));

    if (c->narrow > 0)
        return 1e-9 * c->work * pow(c->narrow, fmin(halvings, HALVINGS));
    return 1e-9 * c->work;
}

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
    TRY(kf_core_new(&d->core, d->plan, &o));
    if (d->plan->workers > SAMPLED)
        kf_cache_sample(kf_core_use(d->core, KOFN_USE_OWN)->cache, SETS);
    return KOFN_OK;
}

/* Lets the first workers come and store their blocks. */
static kofn_status place(dry *d)
{
    for (size_t i = 0; i < d->plan->workers; i++) {
        uint32_t id;

        TRY(kf_machine_add(d, &id));
        TRY(step(d, (kofn_event){.type = KOFN_EV_JOINED, .worker = id}));
    }
    TRY(schedule(d, seconds(kf_faults_gap(&d->faults, 0)), JOIN, 0, 0));
    while (kf_core_storing(d->core) > 0)
        TRY(go_on(d));
    wait_for(d, d->link.free);
    d->times->place = (double)d->now * 1e-9;
    return KOFN_OK;
}

/* Makes a round with this product; of a stream, 0 is none. */
static kofn_status one_round(dry *d, uint32_t product, double *took)
{
    const kofn_problem *pb = &d->plan->layout.problem;
    kofn_time began;

    wait_for(d, d->link.free);
    began = d->now;
    d->over = false;
    d->rounds++;
    labour(d, 1e-9 * kf_dry_input(d->plan) * d->costs->copy);
    TRY(step(d, (kofn_event){.type = KOFN_EV_BEGIN,
                             .product = product,
                             .m = pb->m,
                             .n = pb->n,
                             .p = pb->p}));
    while (!d->over && !d->ended) {
        if ((double)d->now > FOR_EVER * 1e9)
            return KOFN_LATE;
        TRY(go_on(d));
    }
    wait_for(d, d->link.free);
    *took = (double)(d->now - began) * 1e-9;
    return d->ended;
}

/* Makes the rounds that the last products of a stream need. */
static kofn_status finish_stream(dry *d, unsigned products)
{
    for (size_t i = 0; d->delivered < products && i <= KF_MOST_DELAY; i++) {
        double took;

        TRY(one_round(d, 0, &took));
        d->times->rest += took;
    }
    return KOFN_OK;
}

static void release(dry *d)
{
    for (size_t i = 0; i < d->workers; i++)
        kf_free(d->worker[i].queue);
    kf_free(d->worker);
    kf_free(d->task.task);
    kf_free(d->check.check);
    kf_free(d->heap.entry);
    kf_free(d->turn.worker);
    kofn_core_free(d->core);
}

kofn_status kf_dry_run(kf_dry_times *out, const kofn_plan *plan,
                       const kofn_forecast_options *opt)
{
    unsigned rounds = opt->rounds ? opt->rounds : 1;
    dry d = {.plan = plan, .opt = opt, .costs = opt->costs, .times = out};
    kofn_status st;

    d.each = each(plan, opt->costs);
    d.stride = opt->costs->cores ? kf_dry_stride(plan) * d.each : 0;
    *out = (kf_dry_times){.status = KOFN_OK};
    TRY_ZERO(out->round, rounds);
    st = kf_given(&d.faults, sizeof d.faults, opt->faults, "KOFN_FAULTS_INIT");
    if (!st)
        st = open_core(&d);
    if (!st)
        st = place(&d);
    for (unsigned r = 0; r < rounds && !st; r++) {
        st = one_round(&d, r + 1, &out->round[r]);
        out->rounds += st >= 0;
    }
    if (!st && plan->op->stream)
        st = finish_stream(&d, rounds);
    release(&d);
    out->status = st;
    return st == KOFN_NOMEM || st == KOFN_INVAL ? st : KOFN_OK;
}
