/* task_outcomes.c -- see task_outcomes.h.
 *
 * Owns the tasks of open products and the observers.  Observers are called in
 * turn and change nothing.  This file decides nothing; it knows only the times
 * of events. */
#include "task_outcomes.h"

#include "base/base.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- reports to observers ------------------------------------------------ */

static void keep_failure(kf_observer *o, kofn_status st)
{
    if (!st || o->failed)
        return;
    o->failed = st;
    strncpy(o->why, kofn_errmsg(), sizeof o->why - 1);
}

void kf_task_outcomes_tell(const kf_task_outcomes *f, const kf_moment *m)
{
    for (kf_observer *o = f->observers; o; o = o->next)
        keep_failure(o, o->see(o, m));
}

/* Reports something that happens at this moment. */
static void tell_now(const kf_task_outcomes *f, kf_moment m)
{
    m.from = m.to = f->now;
    kf_task_outcomes_tell(f, &m);
}

/* ---- products ------------------------------------------------------------ */

static kf_slots *of_product(const kf_task_outcomes *f, uint32_t product)
{
    for (size_t i = f->opens; i > 0; i--)
        if (f->open[i - 1]->product == product)
            return f->open[i - 1];
    return NULL;
}

kofn_status kf_task_outcomes_open(kf_task_outcomes *f, uint32_t product,
                                  kf_slots **out)
{
    *out = of_product(f, product);
    if (*out)
        return KOFN_OK;
    TRY(kf_grow(&f->open, &f->open_cap, f->opens, sizeof(kf_slots *)));
    if (!f->spare)
        TRY_ZERO(f->spare, 1);
    *out = f->open[f->opens++] = f->spare;
    f->spare = NULL;
    (*out)->product = product;
    (*out)->count = 0;
    return KOFN_OK;
}

static void tasks_free(kf_slots *t)
{
    if (t)
        kf_free(t->task);
    kf_free(t);
}

void kf_task_outcomes_close(kf_task_outcomes *f, uint32_t product)
{
    size_t i = 0;

    while (i < f->opens && f->open[i]->product != product)
        i++;
    if (i == f->opens)
        return;
    tasks_free(f->spare);
    f->spare = f->open[i];
    memmove(&f->open[i], &f->open[i + 1],
            (--f->opens - i) * sizeof(kf_slots *));
}

static kf_slot *find(const kf_task_outcomes *f, uint32_t product, uint32_t task)
{
    const kf_slots *t = of_product(f, product);

    return t ? kf_task_outcomes_find(t, task) : NULL;
}

/* ---- tasks --------------------------------------------------------------- */

/* Returns the time at which the worker began this task, if known.  A worker may
 * have several tasks, of several products, and does one after the other. */
static kofn_time since(const kf_task_outcomes *f, const kf_slot *t)
{
    return t->worker < f->enders && f->ended[t->worker] > t->sent
               ? f->ended[t->worker]
               : t->sent;
}

static void end_task(kf_task_outcomes *f, kf_slot *t, kf_task_outcome outcome)
{
    assert(t->outcome == KF_OUTCOME_OUT || t->outcome == KF_OUTCOME_CANCELLED);
    t->outcome = outcome;
    t->over = f->now;
    if (!f->observers)
        return;
    t->since = since(f, t);
    if (!kf_reach(&f->ended, &f->enders, (size_t)t->worker + 1,
                  sizeof *f->ended))
        f->ended[t->worker] = t->over;
}

/* Records an answer.  A result may also come for a task that was cancelled. */
static void came(kf_task_outcomes *f, const kofn_event *ev)
{
    kf_slot *t = find(f, ev->product, ev->task);

    if (!t || t->worker != ev->worker ||
        (t->outcome != KF_OUTCOME_OUT && t->outcome != KF_OUTCOME_CANCELLED))
        return;
    t->took = ev->took;
    end_task(f, t,
             ev->type == KOFN_EV_RESULT ? KF_OUTCOME_CAME : KF_OUTCOME_FAILED);
}

/* Marks this worker's outstanding tasks as lost.  `all`: no result of an open
 * product is of use any more. */
static void lose(kf_task_outcomes *f, uint32_t worker, bool all)
{
    for (size_t k = 0; k < f->opens; k++)
        for (size_t i = 0; i < f->open[k]->count; i++) {
            kf_slot *t = &f->open[k]->task[i];

            if (t->worker == worker && t->outcome == KF_OUTCOME_OUT)
                end_task(f, t, KF_OUTCOME_LOST);
            else if (all && t->outcome == KF_OUTCOME_USED)
                t->outcome = KF_OUTCOME_CAME;
        }
}

/* Records that a worker has left.  With KOFN_IN_FLIGHT_ABORT all results of
 * open products are then dropped, if it took part in them. */
static void left(kf_task_outcomes *f, uint32_t worker)
{
    lose(f, worker, f->abort && kf_core_works(f->core, worker));
    tell_now(f, (kf_moment){.type = KF_LEFT, .worker = worker});
}

/* Records a verdict.  Results that are only left out are not wrong. */
static void judged(kf_task_outcomes *f, const kofn_event *ev)
{
    size_t k = 0;

    while (k < f->asks && (f->asked[k].product != ev->product ||
                           f->asked[k].number != ev->task))
        k++;
    if (k == f->asks)
        return;
    for (size_t i = 0; i + ev->doubted < ev->bad_count; i++) {
        kf_slot *t = ev->bad[i] < f->asked[k].count
                         ? find(f, ev->product, f->asked[k].tasks[ev->bad[i]])
                         : NULL;

        if (t)
            t->outcome = KF_OUTCOME_WRONG;
    }
    kf_free(f->asked[k].tasks);
    f->asked[k] = f->asked[--f->asks];
}

kofn_status kf_task_outcomes_event(kf_task_outcomes *f, const kofn_event *ev)
{
    kf_slots *t;

    f->now = ev->now;
    switch (ev->type) {
    case KOFN_EV_JOINED:
    case KOFN_EV_STORED:
    case KOFN_EV_LEAVING:
        tell_now(f,
                 (kf_moment){.type = ev->type == KOFN_EV_JOINED   ? KF_JOINED
                                     : ev->type == KOFN_EV_STORED ? KF_STORED
                                                                  : KF_LEAVING,
                             .worker = ev->worker});
        break;
    case KOFN_EV_LEFT:
    case KOFN_EV_UNRESPONSIVE:
        left(f, ev->worker);
        break;
    case KOFN_EV_RESULT:
    case KOFN_EV_FAILED:
        came(f, ev);
        break;
    case KOFN_EV_BEGIN:
        if (!ev->product) /* a round of a stream without a new product */
            break;
        TRY(kf_task_outcomes_open(f, ev->product, &t));
        t->began = ev->now;
        break;
    case KOFN_EV_VERDICT:
        judged(f, ev);
        break;
    case KOFN_EV_ALARM:
    case KOFN_EV_MOVED:
    case KOFN_EV_CANCEL:
    case KOFN_EV_VOID:
    case KOFN_EV_JUDGED:
        break;
    }
    return KOFN_OK;
}

/* ---- actions ------------------------------------------------------------- */

static kofn_status give(kf_task_outcomes *f, const kofn_action *a)
{
    kf_slots *t;

    TRY(kf_task_outcomes_open(f, a->product, &t));
    assert(!t->count || t->task[t->count - 1].task < a->task);
    TRY(kf_grow(&t->task, &t->cap, t->count, sizeof *t->task));
    t->task[t->count++] = (kf_slot){.task = a->task,
                                    .worker = a->worker,
                                    .row = (uint32_t)a->row,
                                    .group = a->group,
                                    .lo = a->lo,
                                    .hi = a->hi,
                                    .sent = f->now};
    return KOFN_OK;
}

static void use(kf_task_outcomes *f, const kofn_action *a)
{
    for (size_t i = 0; i < a->count; i++) {
        kf_slot *t = find(f, a->product, a->tasks[i]);

        if (t && t->outcome == KF_OUTCOME_CAME)
            t->outcome = KF_OUTCOME_USED;
    }
}

static kofn_status ask(kf_task_outcomes *f, const kofn_action *a)
{
    kf_unjudged *x;

    use(f, a);
    TRY(kf_grow(&f->asked, &f->ask_cap, f->asks, sizeof *f->asked));
    x = &f->asked[f->asks];
    *x = (kf_unjudged){a->product, a->task, kf_new(a->count, sizeof *x->tasks),
                       a->count};
    if (!x->tasks)
        return KOFN_NOMEM;
    f->asks++;
    memcpy(x->tasks, a->tasks, a->count * sizeof *x->tasks);
    return KOFN_OK;
}

static void end_lists(const kf_task_outcomes *f)
{
    kofn_stream_round r;

    if (!f->observers)
        return;
    kf_core_round(f->core, &r);
    tell_now(f, (kf_moment){.type = KF_LISTS, .lists = &r});
}

kofn_status kf_task_outcomes_action(kf_task_outcomes *f, const kofn_action *a)
{
    kf_slot *t;

    switch (a->type) {
    case KOFN_DO_WORK:
        return give(f, a);
    case KOFN_DO_CANCEL:
        t = find(f, a->product, a->task);
        if (t && t->outcome == KF_OUTCOME_OUT)
            end_task(f, t, KF_OUTCOME_CANCELLED);
        break;
    case KOFN_DO_EVICT:
        lose(f, a->worker, false);
        break;
    case KOFN_DO_DECODE:
        use(f, a);
        break;
    case KOFN_DO_CHECK:
        return ask(f, a);
    case KOFN_DO_END:
        end_lists(f);
        break;
    case KOFN_DO_STORE:
    case KOFN_DO_DELIVER:
    case KOFN_DO_MIX:
        break;
    }
    return KOFN_OK;
}

/* ---- moments that only the body knows ------------------------------------ */

static void tell_tasks(const kf_task_outcomes *f, const kf_slots *of,
                       const kf_moment *m)
{
    for (size_t i = 0; i < of->count; i++) {
        kf_slot t = of->task[i];

        if (t.outcome == KF_OUTCOME_OUT) {
            t.since = since(f, &t);
            t.over = m->to;
        }
        kf_task_outcomes_tell(f, &(kf_moment){.type = KF_TASK,
                                              .from = t.since,
                                              .to = t.over,
                                              .round = m->round,
                                              .worker = t.worker,
                                              .task = &t});
    }
}

void kf_task_outcomes_note(kf_task_outcomes *f, const kofn_note *n)
{
    const kf_slots *of = of_product(f, n->product);
    kf_moment m = {.type = !strcmp(n->own, "over")      ? KF_ROUND
                           : !strcmp(n->own, "storing") ? KF_STORING
                                                        : KF_SPENT,
                   .from = n->since,
                   .to = n->now,
                   .what = n->own,
                   .status = n->status,
                   .round = n->round,
                   .worker = n->worker};
    kf_slot *t;

    if (!strcmp(n->own, "sent")) {
        t = of ? kf_task_outcomes_find(of, n->task) : NULL;
        if (t)
            t->sent = n->now;
        return;
    }
    if (!strcmp(n->own, "finished") || !f->observers ||
        (m.type == KF_ROUND && (!of || m.round == 0)))
        return;
    if (m.type == KF_ROUND)
        tell_tasks(f, of, &m);
    kf_task_outcomes_tell(f, &m);
}

unsigned kf_task_outcomes_late(const kf_slots *t)
{
    unsigned n = 0;

    for (size_t i = 0; i < t->count; i++)
        n += t->task[i].outcome == KF_OUTCOME_CAME ||
             t->task[i].outcome == KF_OUTCOME_CANCELLED;
    return n;
}

/* ---- observers ----------------------------------------------------------- */

kofn_status kf_task_outcomes_watch(kf_task_outcomes *f, const kofn_plan *plan,
                                   const char *port, const char *trace,
                                   const char *record)
{
    if (record)
        TRY(kf_record_new(&f->observers, plan, record));
    if (trace)
        TRY(kf_trace_new(&f->observers, plan, port, trace));
    return KOFN_OK;
}

kofn_status kf_task_outcomes_end(kf_task_outcomes *f, bool keep)
{
    char first[300] = "";
    kofn_status bad = KOFN_OK;

    while (f->observers) {
        kf_observer o = *f->observers;

        keep_failure(&o, o.end(f->observers, keep));
        f->observers = o.next;
        if (o.failed && !bad)
            snprintf(first, sizeof first, "%s: %s", o.name, o.why);
        bad = bad ? bad : o.failed;
    }
    return bad ? kf_fail(bad, "%s", first) : KOFN_OK;
}

void kf_task_outcomes_free(kf_task_outcomes *f)
{
    kf_task_outcomes_end(f, false);
    for (size_t i = 0; i < f->opens; i++)
        tasks_free(f->open[i]);
    tasks_free(f->spare);
    kf_free(f->open);
    for (size_t i = 0; i < f->asks; i++)
        kf_free(f->asked[i].tasks);
    kf_free(f->asked);
    kf_free(f->ended);
}
