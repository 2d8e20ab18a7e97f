/* job.c -- the life of a job: opens it and closes it.
 *
 * Owns the job and all its parts, from kofn_open_all to kofn_close.  The job
 * owns its port, and borrows its operands.  Called from one thread. */
#include "job.h"

#include "base/clock.h"

#include "base/options.h"

#include <assert.h>

/* ---- life ---------------------------------------------------------------- */

/* Refuses bit flips if workers store no numbers to flip. */
static kofn_status check_flip(const kofn_job *j, const kofn_fault_event *h)
{
    if (!j->port->flip)
        return kf_fail(KOFN_UNSUITED,
                       "no bit can be flipped at worker %u in round %u of "
                       "port %s",
                       h->worker, h->round, j->port->name);
    if (!kf_operation_is_resident(j->plan->op) ||
        j->plan->layout.problem.sparse)
        return kf_fail(
            KOFN_UNSUITED,
            "no bit can be flipped at worker %u in round %u: that needs a "
            "dense matrix that workers store, and this is %s",
            h->worker, h->round, j->plan->op->name);
    return KOFN_OK;
}

/* Refuses events that the port cannot carry out, because its workers start and
 * end elsewhere. */
static kofn_status check_events(const kofn_job *j)
{
    for (size_t i = 0; i < j->opt.event_count; i++) {
        kofn_fault_event_kind kind = j->opt.events[i].kind;
        bool can = kind == KOFN_FAULT_EVENT_JOIN ? j->port->admit != NULL
                   : kind == KOFN_FAULT_EVENT_LEAVE
                       ? j->port->remove != NULL
                       : j->port->slow && j->port->corrupt;

        if (kind == KOFN_FAULT_EVENT_ERR)
            return kf_fail(
                KOFN_UNSUITED,
                "event err of worker %u in round %u is for nodes of a mesh; "
                "use corrupt for workers",
                j->opt.events[i].worker, j->opt.events[i].round);
        if (kind == KOFN_FAULT_EVENT_FLIP)
            TRY(check_flip(j, &j->opt.events[i]));
        else if (!can)
            return kf_fail(KOFN_UNSUITED,
                           "port %s cannot have a worker %s in round %u, as "
                           "the events say; start or end a worker process "
                           "instead",
                           j->port->name,
                           kind == KOFN_FAULT_EVENT_JOIN ? "join" : "leave",
                           j->opt.events[i].round);
    }
    return KOFN_OK;
}

#define LATE_LEAST                                                             \
    (KOFN_SECOND / 1000) /* the noise of a machine's scheduling */

/* Refuses a port if its queue is too short for lists.  A worker that is left
 * alone may be asked for all answers of all open products. */
static kofn_status check_lists(const kofn_job *j)
{
    const kofn_layout *L = &j->plan->layout;
    size_t each = j->opt.errors ? L->threshold + 2 : L->enough; /* lists.c */
    size_t most = each * (L->delay + 1);

    if (!kf_is_stream(j) || !j->port->waiting || most <= j->port->waiting)
        return KOFN_OK;
    return kf_fail(KOFN_UNSUITED,
                   "a worker may be asked for %zu answers in a round, but a "
                   "worker of port %s can queue %zu; cut products less, or "
                   "allow them less delay",
                   most, j->port->name, j->port->waiting);
}

static kofn_status check_audit(const kofn_job *j)
{
    if (j->opt.audit <= 1)
        return KOFN_OK;
    if (!kf_code_can_be_alone(j->plan))
        return kf_fail(KOFN_UNSUITED,
                       "audit = %u needs a sum with one part per worker, by "
                       "gc, cgc or g-cgc; this is %s by %s",
                       j->opt.audit, j->plan->op->name, j->plan->scheme->name);
    if (j->opt.errors == KOFN_ERRORS_NONE)
        return kf_fail(KOFN_INVAL,
                       "audit = %u without errors: set errors to detect, "
                       "probabilistic or adversarial",
                       j->opt.audit);
    return KOFN_OK;
}

/* Refuses keyed errors if a product has no key of A. */
static kofn_status check_keyed(const kofn_job *j)
{
    if (j->opt.errors != KOFN_ERRORS_KEYED)
        return KOFN_OK;
    for (size_t o = 0; o < j->operands; o++)
        if (!kf_guard_has_key(j->held[o].plan) || j->held[o].plan->left)
            return kf_fail(KOFN_UNSUITED,
                           "errors = keyed tests products A x and A B by a key "
                           "of A, and this is %s by %s%s; use probabilistic or "
                           "adversarial",
                           j->held[o].plan->op->name,
                           j->held[o].plan->scheme->name,
                           j->held[o].plan->left ? " with left products" : "");
    return KOFN_OK;
}

/* Opens the observers that the options ask for. */
static kofn_status watch(kofn_job *j)
{
    kf_task_outcomes *f = &j->outcomes;

    f->core = j->core;
    f->abort = j->opt.in_flight == KOFN_IN_FLIGHT_ABORT;
    TRY(kf_task_outcomes_watch(f, j->plan, j->port->name, j->opt.trace,
                               j->opt.record));
    if (j->opt.report)
        TRY(kf_page_new(&f->observers, j, j->core, j->plan, j->port->name,
                        j->opt.report));
    return j->opt.metrics ? kf_metrics_new(&f->observers, j, j->opt.metrics)
                          : KOFN_OK;
}

/* Makes the parts of the job with the options checked: the guard, the core,
 * the journal and the observers. */
static kofn_status open_parts(kofn_job *j, const kofn_plan *const *plan,
                              size_t operands)
{
    kofn_core_options o = KOFN_CORE_OPTIONS_INIT;

#define X(type, name, ...) o.name = j->opt.name;
    KOFN_OPTIONS_OF_CORE(X)
#undef X
    o.late_least = j->port->simulated ? 0 : LATE_LEAST;
    o.open = KF_JOB_OPEN;
    TRY(check_lists(j));
    TRY(check_events(j));
    TRY(check_audit(j));
    TRY(check_keyed(j));
    TRY(kf_guard_init(&j->guard, j->port->simulated, j->plan->layout.seed,
                      j->opt.max_error));
    TRY(kofn_core_new_all(&j->core, plan, operands, &o));
    if (j->opt.audit > 1)
        TRY(kf_code_has_own(kf_core_use(j->core, KOFN_USE_OWN)->code));
    if (j->opt.journal)
        TRY(kf_journal_open(&j->journal, j->opt.journal, j->port->name, plan,
                            operands, &o));
    return watch(j);
}

static kofn_status hold(kofn_job *j, const kofn_plan *const *plan,
                        size_t operands)
{
    if (operands == 0 || operands > KOFN_OPERANDS_MOST)
        return kf_fail(KOFN_INVAL, "%zu operands: a job has from 1 to %d",
                       operands, KOFN_OPERANDS_MOST);
    TRY_ZERO(j->held, operands);
    j->operands = operands;
    j->plan = plan[0];
    for (size_t o = 0; o < operands; o++)
        j->held[o].plan = plan[o];
    TRY(kf_options_check(&j->opt));
    if (j->opt.late == 0 && j->plan->layout.everybody)
        j->opt.late = -1; /* these codes leave out late workers */
    kf_options_settle(&j->opt);
    return open_parts(j, plan, operands);
}

kofn_status kofn_open_all(kofn_job **out, const kofn_plan *const *plan,
                          size_t operands, kofn_port *port,
                          const kofn_options *opt)
{
    kofn_job *j = kf_zero(1, sizeof *j);
    kofn_status st;

    *out = NULL;
    if (!j) {
        port->close(port);
        return KOFN_NOMEM;
    }
    j->port = port;
    j->phases.since = kf_job_now(j);
    j->label.doing.since = kf_clock();
    kofn_options_begin(&j->opt);
    st = kf_given(&j->opt, sizeof j->opt, opt, "KOFN_OPTIONS_INIT");
    if (!st)
        st = hold(j, plan, operands);
    if (st) {
        kofn_close(j);
        return st;
    }
    *out = j;
    return KOFN_OK;
}

kofn_status kofn_open(kofn_job **out, const kofn_plan *plan, kofn_port *port,
                      const kofn_options *opt)
{
    return kofn_open_all(out, &plan, 1, port, opt);
}

/* ---- closed -------------------------------------------------------------- */

static void tables_free(tables *t)
{
    kf_free(t->rows);
    kf_free(t->states);
    kf_free(t->located);
    kf_free(t->computed);
    kf_free(t->weights);
    kf_free(t->ages);
}

static void product_free(product *p)
{
    for (size_t i = 0; p->start.tasks && i < p->start.tasks->count; i++)
        kf_buffer_drop(p->start.tasks->task[i].result);
    kf_pair_release(p);
    kf_free(p->pair.block);
    kf_scaling_free(&p->scaled);
    kf_messages_free(&p->messages);
    kf_sides_forget(&p->measure.sides);
    kf_free(p->feed.fed);
    kf_free(p->end.failure);
    tables_free(&p->tables);
    kf_free(p);
}

/* Frees the state of workers. */
static void free_workers(kofn_job *j)
{
    kf_free(j->lease.owed.worker);
    kf_free(j->lease.owed.seat);
    kf_free(j->lease.rebuilding.worker);
    kf_free(j->lease.rebuilding.seat);
    kf_free(j->rebuild.window.into.data);
    kf_free(j->evidence.worker);
    kf_free(j->scrub.window.into.data);
    kf_free(j->scrub.cols);
    for (size_t i = 0; i < j->paced.workers; i++)
        kf_free(j->paced.window[i].waiting);
    kf_free(j->paced.window);
    kf_free(j->paced.list);
    kf_free(j->stream.load);
}

void kofn_close(kofn_job *j)
{
    if (!j)
        return;
    kofn_finish(j);
    for (size_t i = 0; i < j->open.count; i++)
        product_free(j->open.list[i]); /* results may be the port's */
    for (size_t i = 0; i < j->open.idles; i++)
        product_free(j->open.idle[i]);
    j->open.count = 0;
    tables_free(&j->reported.tables);
    kf_free(j->reported.failure);
    if (j->port)
        j->port->close(j->port);
    kf_journal_close(j->journal);
    kofn_core_free(j->core);
    for (size_t o = 0; o < j->operands; o++)
        kf_job_let_go(&j->held[o]);
    kf_free(j->held);
    free_workers(j);
    kf_tally_free(&j->tally);
    kf_guard_free(&j->guard);
    kf_free(j->loop.todo);
    kf_free(j->label.done);
    kf_pool_free(&j->spare);
    kf_task_outcomes_free(&j->outcomes);
    kf_scratch_free(&j->scratch);
    kf_free(j);
}
