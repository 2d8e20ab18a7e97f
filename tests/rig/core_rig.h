/* core_rig.h -- drives a coordinator core alone with scripted workers and no
 * matrix.
 *
 * It keeps a separate account of the workers, the given tasks and the answers.
 * It checks every action against the account.
 * It also checks after every step that the sums of the ledger agree. */
#ifndef KF_TEST_CORE_RIG_H
#define KF_TEST_CORE_RIG_H

#include "support.h"

#include "core/state.h"

#include <math.h>
#include <stdlib.h>

/* ---- workers without a matrix -------------------------------------------- */

enum { ABSENT, STANDBY, STORING, LIVE, LEAVING, GONE };
enum { OUT, CAME, CANCELLED, LOST, FAILED };

#define MOST_WORKERS 512

typedef struct scripted_worker {
    int state;
    size_t seat, out; /* outstanding tasks */
    bool failed;
    kofn_time heard; /* last answer, or first task after it was idle */
} scripted_worker;

typedef struct given_task {
    uint32_t worker, task;
    size_t row, group, lo, hi;
    int state;
    unsigned deal; /* value of `deals` when it was given out */
} given_task;

typedef struct core_case {
    kofn_plan *plan, *own; /* own: freed with the case */
    kofn_core *core;
    kofn_core_options opt;
    uint64_t seed;
    kofn_time now, took; /* took: compute time that the next answer reports */

    scripted_worker worker[MOST_WORKERS];
    uint32_t workers; /* numbers given out */
    given_task *task;
    size_t tasks, task_cap;
    uint32_t first, product; /* number of its first task; its number */
    unsigned deals;   /* times in this round that past results were discarded */
    uint8_t *decoded; /* per group and strip, in this round */
    size_t lo, hi;    /* strips of the next round; hi == 0: all */
    size_t from, to;  /* strips of this round */
    bool lost;
    unsigned decodes;

    bool running, was_degraded; /* before the event */
    unsigned evicted;           /* in this round */
    uint32_t
        voided; /* 1 + the worker that is to store another block; 0: none */
    kofn_status ended;
    double predicted;
    unsigned rounds, asked_of_late;
    uint64_t digest;

    kofn_event *event; /* all events that were sent, to be repeated */
    size_t events, event_cap;
} core_case;

#define check(b, condition)                                                    \
    do {                                                                       \
        if (!(condition))                                                      \
            fail_msg("%s, seed %llu, event %zu, line %d: %s", (b)->plan->spec, \
                     (unsigned long long)(b)->seed, (b)->events, __LINE__,     \
                     #condition);                                              \
    } while (0)

static inline kofn_plan *make_plan(const char *spec, size_t workers,
                                   size_t span)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 1, 3, 1, KOFN_F64, false);
    kofn_plan *p;

    assert_ok(kofn_plan_new(&p, &pb, spec, workers, 5));
    pb.m = span * p->layout.groups * p->layout.cut[0].rows;
    kofn_plan_free(p);
    assert_ok(kofn_plan_new(&p, &pb, spec, workers, 5));
    assert_int_equal(p->span, span);
    return p;
}

static inline void case_open(core_case *b, kofn_plan *plan,
                             const kofn_core_options *opt)
{
    *b = (core_case){.plan = plan};
    if (opt)
        b->opt = *opt;
    assert_ok(kf_core_new(&b->core, plan, opt));
    b->decoded = kf_zero(plan->layout.groups, plan->span);
    assert_non_null(b->decoded);
}

static inline void case_close(core_case *b)
{
    kofn_core_free(b->core);
    kofn_plan_free(b->own);
    kf_free(b->decoded);
    kf_free(b->task);
    kf_free(b->event);
}

static inline size_t groups(const core_case *b)
{
    return b->plan->layout.groups;
}

static inline size_t enough(const core_case *b)
{
    return b->plan->layout.enough;
}

static inline double tolerance(const core_case *b)
{
    return b->opt.max_error > 0 ? b->opt.max_error : 1e-9;
}

static inline const kf_round *newest(const core_case *b)
{
    return kf_newest(b->core);
}

static inline const kf_ledger *ledger(const core_case *b, size_t group)
{
    return &newest(b)->p.ledger[group];
}

/* Returns the row that a worker at this seat answers. */
static inline size_t row_of(const core_case *b, size_t seat)
{
    return seat / groups(b);
}

/* ---- actions against the account ----------------------------------------- */

static inline size_t members(const core_case *b, size_t group)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->workers; w++)
        n += b->worker[w].state >= STORING && b->worker[w].state <= LEAVING &&
             b->worker[w].seat % groups(b) == group;
    return n;
}

static inline bool taken(const core_case *b, size_t seat)
{
    for (uint32_t w = 0; w < b->workers; w++)
        if (b->worker[w].state >= STORING && b->worker[w].state <= LEAVING &&
            b->worker[w].seat == seat)
            return true;
    return false;
}

static inline bool full(const core_case *b, size_t group)
{
    return members(b, group) >= b->plan->layout.max_seats;
}

/* Checks a seat: it must be the lowest empty seat of a group with the fewest
 * members. */
static inline void take_store(core_case *b, const kofn_action *a)
{
    size_t group = a->seat % groups(b);

    check(b, a->worker < b->workers);
    if (b->worker[a->worker].state == STORING) { /* another block */
        check(b, b->voided == a->worker + 1 &&
                     b->worker[a->worker].seat == a->seat);
        b->voided = 0;
        return;
    }
    check(b, b->worker[a->worker].state == STANDBY);
    check(b, a->seat / groups(b) < b->plan->layout.max_seats);
    check(b, !taken(b, a->seat));
    for (size_t s = group; s < a->seat; s += groups(b))
        check(b, taken(b, s));
    for (size_t g = 0; g < groups(b); g++)
        check(b, full(b, g) || members(b, g) >= members(b, group));
    b->worker[a->worker].state = STORING;
    b->worker[a->worker].seat = a->seat;
}

static inline bool overlap(const given_task *e, const kofn_action *a)
{
    return e->group == a->group && e->lo < a->hi && e->hi > a->lo;
}

static inline void take_work(core_case *b, const kofn_action *a)
{
    scripted_worker *m = &b->worker[a->worker];

    check(b, b->running);
    check(b, a->worker < b->workers && m->state == LIVE && !m->failed);
    check(b, a->product == b->product);
    check(b, a->row == row_of(b, m->seat) && a->group == m->seat % groups(b));
    check(b, b->from <= a->lo && a->lo < a->hi && a->hi <= b->to);
    check(b, a->task == b->first + b->tasks);
    for (size_t i = 0; i < b->tasks; i++) {
        const given_task *e = &b->task[i];

        if (e->row != a->row || !overlap(e, a))
            continue;
        check(b, e->state != OUT);
        /* a row is asked twice only if its result was discarded */
        check(b, e->state != CAME || e->deal < b->deals);
    }
    assert_ok(kf_grow(&b->task, &b->task_cap, b->tasks, sizeof *b->task));
    b->task[b->tasks++] = (given_task){a->worker, a->task, a->row, a->group,
                                       a->lo,     a->hi,   OUT,    b->deals};
    if (m->out++ == 0)
        m->heard = b->now;
}

static inline given_task *task_of(core_case *b, uint32_t task)
{
    check(b, task - b->first < b->tasks);
    return &b->task[task - b->first];
}

static inline void take_cancel(core_case *b, const kofn_action *a)
{
    given_task *e = task_of(b, a->task);

    check(b, e->worker == a->worker && e->state == OUT);
    check(b, b->worker[a->worker].state != GONE);
    e->state = CANCELLED;
    b->worker[a->worker].out--;
}

/* Marks all outstanding tasks of a worker as lost. */
static inline void lose_tasks(core_case *b, uint32_t worker)
{
    for (size_t i = 0; i < b->tasks; i++)
        if (b->task[i].worker == worker && b->task[i].state == OUT)
            b->task[i].state = LOST;
    b->worker[worker].out = 0;
    b->worker[worker].state = GONE;
}

/* Discards the past results of a round that a worker of it left, if the mode
 * says so. */
static inline void discard_results(core_case *b)
{
    if (b->was_degraded || b->opt.in_flight == KOFN_IN_FLIGHT_LEDGER)
        return;
    b->deals++;
    if (b->opt.in_flight == KOFN_IN_FLIGHT_ABORT)
        memset(b->decoded, 0, b->plan->layout.groups * b->plan->span);
}

/* Checks an eviction.  The worker must have owed a result for the lease.  At
 * least one result of the round must have arrived, so that the time of a task
 * is known. */
static inline void take_evict(core_case *b, const kofn_action *a)
{
    const scripted_worker *m = &b->worker[a->worker];
    size_t came = 0;

    check(b, b->running && b->opt.lease > 0 && a->worker < b->workers);
    check(b, m->state == LIVE || m->state == LEAVING);
    check(b, m->out > 0 && b->now - m->heard >= b->opt.lease);
    for (size_t i = 0; i < b->tasks; i++)
        came += b->task[i].state == CAME;
    check(b, came > 0);
    lose_tasks(b, a->worker);
    discard_results(b);
    b->evicted++;
}

static inline void take_decode(core_case *b, const kofn_action *a)
{
    const kofn_decoder *d = a->decoder;

    check(b, b->running && a->group < groups(b));
    check(b, b->from <= a->lo && a->lo < a->hi && a->hi <= b->to);
    for (size_t i = 0; i < d->seats; i++) {
        const given_task *e = task_of(b, a->tasks[i]);

        check(b, e->state == CAME && e->group == a->group);
        check(b, e->lo <= a->lo && e->hi >= a->hi);
        check(b, e->row == d->seat[i]);
        check(b, i == 0 || d->seat[i] > d->seat[i - 1]);
    }
    if (d->whole) {
        check(b, d->seats >= enough(b) || b->opt.below == KOFN_BELOW_DEGRADE);
        check(b, d->predicted <= tolerance(b) ||
                     b->opt.below == KOFN_BELOW_DEGRADE);
    } else {
        check(b, b->opt.below == KOFN_BELOW_DEGRADE);
        b->lost = true;
    }
    for (size_t s = a->lo; s < a->hi; s++)
        check(b, ++b->decoded[a->group * b->plan->span + s] == 1);
    b->decodes++;
}

static inline void take_deliver(core_case *b, const kofn_action *a)
{
    size_t span = b->plan->span;

    check(b, b->running);
    b->running = false;
    b->ended = a->status;
    b->predicted = a->predicted;
    b->rounds++;
    for (uint32_t w = 0; w < b->workers; w++)
        b->worker[w].failed = false;
    for (size_t i = 0; i < b->tasks; i++)
        check(b, b->task[i].state != OUT);
    for (size_t s = 0; a->status >= 0 && s < groups(b) * span; s++)
        check(b, b->decoded[s] == (s % span >= b->from && s % span < b->to));
    switch (a->status) {
    case KOFN_OK:
        check(b, !b->lost && a->predicted <= tolerance(b));
        break;
    case KOFN_PARTIAL:
        check(b, b->lost && b->opt.below == KOFN_BELOW_DEGRADE);
        break;
    case KOFN_TOOFEW:
        check(b, b->opt.below == KOFN_BELOW_REFUSE);
        break;
    case KOFN_UNSTABLE:
        check(b, b->opt.below != KOFN_BELOW_DEGRADE);
        break;
    case KOFN_LATE:
        check(b, b->opt.below == KOFN_BELOW_PAUSE && b->opt.patience > 0);
        break;
    default:
        check(b, !"a status that no round can have");
    }
    if (a->status < 0)
        check(b, *kofn_errmsg());
}

static inline void apply_action(core_case *b, const kofn_action *a)
{
    b->digest = kofn_action_digest(b->digest, a);
    switch (a->type) {
    case KOFN_DO_STORE:
        take_store(b, a);
        break;
    case KOFN_DO_WORK:
        take_work(b, a);
        break;
    case KOFN_DO_CANCEL:
        take_cancel(b, a);
        break;
    case KOFN_DO_DECODE:
        take_decode(b, a);
        break;
    case KOFN_DO_DELIVER:
        take_deliver(b, a);
        break;
    case KOFN_DO_EVICT:
        take_evict(b, a);
        break;
    case KOFN_DO_END:
    case KOFN_DO_MIX:
    case KOFN_DO_CHECK:
        break;
    }
}

/* ---- checks after every step --------------------------------------------- */

static inline size_t open_strips(const core_case *b)
{
    size_t open = 0;

    for (size_t g = 0; g < groups(b); g++)
        for (size_t i = 0; i < ledger(b, g)->count; i++) {
            const kf_cell *cell = &ledger(b, g)->cell[i];

            open += cell->settled ? 0 : cell->hi - cell->lo;
        }
    return open;
}

static inline size_t count_workers(const core_case *b, int state)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->workers; w++)
        n += b->worker[w].state == state;
    return n;
}

static inline size_t tasks_out(const core_case *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->tasks; i++)
        n += b->task[i].state == OUT;
    return n;
}

static inline void audit_view(const core_case *b)
{
    kf_core_view v;
    size_t rows[MOST_WORKERS] = {0}, awaited = 0;
    bool busy[MOST_WORKERS] = {false};

    kf_core_look(b->core, 0, &v);
    check(b, v.running == b->running);
    check(b, v.live == count_workers(b, LIVE) + count_workers(b, LEAVING));
    check(b, v.storing == count_workers(b, STORING));
    check(b, v.standby == count_workers(b, STANDBY));
    check(b, v.done >= 0 && v.done <= 1);
    for (size_t i = 0; i < b->tasks; i++) {
        const given_task *e = &b->task[i];

        rows[e->worker] += e->hi - e->lo;
        awaited += e->state == OUT && !busy[e->worker];
        busy[e->worker] |= e->state == OUT;
    }
    check(b, v.awaited == awaited);
    for (size_t w = 0; w < v.workers; w++)
        check(b, kf_core_rows(b->core, v.round, (uint32_t)w) == rows[w]);
}

/* True if the seat could give this cell another row. */
static inline bool can_help(const core_case *b, const kf_cell *cell,
                            const scripted_worker *m)
{
    if (m->state != LIVE || m->failed)
        return false;
    for (size_t h = 0; h < cell->count; h++)
        if (newest(b)->p.task[cell->have[h]].row == row_of(b, m->seat))
            return false;
    return true;
}

/* True if the live workers cannot complete some cell. */
static inline bool in_need(const core_case *b)
{
    for (size_t g = 0; g < groups(b); g++)
        for (size_t i = 0; i < ledger(b, g)->count; i++) {
            const kf_cell *cell = &ledger(b, g)->cell[i];
            size_t hope = cell->count;

            for (uint32_t w = 0; w < b->workers; w++)
                hope += b->worker[w].seat % groups(b) == g &&
                        can_help(b, cell, &b->worker[w]);
            if (!cell->settled && hope < enough(b) + cell->extra)
                return true;
        }
    return false;
}

/* Checks that the core never waits for nothing (law 8). */
static inline void audit_waiting(const core_case *b)
{
    bool waits = newest(b)->state == KF_ROUND_STARVED;
    bool coming = count_workers(b, STORING) > 0;

    if (!b->running)
        return;
    check(b, waits || tasks_out(b) > 0);
    if (!waits)
        return;
    check(b, coming || b->opt.below == KOFN_BELOW_PAUSE);
    check(b, newest(b)->p.degraded || in_need(b));
    check(b, (kf_core_alarm(b->core) != KOFN_NEVER) ==
                 (b->opt.below == KOFN_BELOW_PAUSE && b->opt.patience > 0));
}

static inline void audit(const core_case *b)
{
    bool room = false;

    const char *wrong = kf_core_assert_state(b->core);

    if (wrong)
        fail_msg("%s, seed %llu, event %zu: %s", b->plan->spec,
                 (unsigned long long)b->seed, b->events, wrong);
    audit_view(b);
    audit_waiting(b);
    for (size_t g = 0; g < groups(b); g++)
        room |= !full(b, g);
    check(b, !room || count_workers(b, STANDBY) == 0);
    check(b, !b->running || newest(b)->p.unsettled == open_strips(b));
    check(b, b->running || kf_core_alarm(b->core) == KOFN_NEVER);
}

/* ---- events -------------------------------------------------------------- */

/* Enters a loss into the account before the core is given the event. */
static inline void note_left(core_case *b, scripted_worker *m, uint32_t worker)
{
    const kf_worker *w = &b->core->fleet.worker[worker];
    bool in_round = (m->state == LIVE || m->state == LEAVING) &&
                    w->from <= newest(b)->p.number;

    lose_tasks(b, worker);
    if (newest(b)->state == KF_ROUND_RUNNING && in_round)
        discard_results(b);
}

/* Enters a wrong block into the account. The outstanding tasks are cancelled
 * as in a loss, but the worker keeps its seat. */
static inline void note_void(core_case *b, scripted_worker *m, uint32_t worker)
{
    const kf_worker *w = &b->core->fleet.worker[worker];

    m->state = STORING;
    b->voided = worker + 1;
    if (newest(b)->state == KF_ROUND_RUNNING && w->from <= newest(b)->p.number)
        discard_results(b);
}

static inline void note_begin(core_case *b)
{
    if (b->running)
        return;
    b->running = true;
    b->product++;
    b->first += (uint32_t)b->tasks;
    b->tasks = 0;
    for (uint32_t w = 0; w < b->workers; w++)
        b->worker[w].out = 0;
    b->deals = b->decodes = b->evicted = 0;
    b->lost = false;
    b->from = b->lo;
    b->to = b->hi ? b->hi : b->plan->span;
    memset(b->decoded, 0, groups(b) * b->plan->span);
}

static inline void note(core_case *b, const kofn_event *ev)
{
    scripted_worker *m =
        ev->worker < MOST_WORKERS ? &b->worker[ev->worker] : NULL;
    size_t index = ev->task - b->first;
    given_task *e = index < b->tasks ? &b->task[index] : NULL;

    if (e && (e->worker != ev->worker || e->row != ev->row ||
              ev->product != b->product || e->state != OUT || !b->running))
        e = NULL;
    if (ev->type == KOFN_EV_BEGIN)
        note_begin(b);
    else if (ev->type == KOFN_EV_RESULT && e)
        e->state = CAME, m->out--, m->heard = b->now;
    else if (ev->type == KOFN_EV_FAILED && e)
        e->state = FAILED, m->failed = true, m->out--;
    if (!m)
        return;
    if (ev->type == KOFN_EV_JOINED && m->state == ABSENT) {
        m->state = STANDBY;
        b->workers = ev->worker < b->workers ? b->workers : ev->worker + 1;
    } else if (ev->type == KOFN_EV_STORED && m->state == STORING) {
        m->state = LIVE;
    } else if (ev->type == KOFN_EV_LEAVING && m->state == LIVE) {
        m->state = LEAVING;
    } else if (ev->type == KOFN_EV_VOID && m->state == LIVE) {
        note_void(b, m, ev->worker);
    } else if ((ev->type == KOFN_EV_LEFT || ev->type == KOFN_EV_UNRESPONSIVE) &&
               m->state > ABSENT && m->state < GONE) {
        note_left(b, m, ev->worker);
    }
}

static inline void send_event(core_case *b, kofn_event ev)
{
    kofn_action a;

    ev.now = b->now;
    if (ev.type == KOFN_EV_BEGIN) {
        ev.product = b->product + 1;
        ev.lo = b->lo;
        ev.hi = b->hi;
    }
    assert_ok(kf_grow(&b->event, &b->event_cap, b->events, sizeof *b->event));
    b->event[b->events++] = ev;
    b->was_degraded = newest(b)->p.degraded;
    note(b, &ev);
    check(b, kofn_core_step(b->core, &ev) == KOFN_OK);
    while (kofn_core_next(b->core, &a))
        apply_action(b, &a);
    audit(b);
}

static inline void event(core_case *b, kofn_event_type type, uint32_t worker)
{
    send_event(b, (kofn_event){.type = type, .worker = worker});
}

static inline void answer(core_case *b, size_t i, kofn_event_type type)
{
    send_event(b, (kofn_event){.type = type,
                               .worker = b->task[i].worker,
                               .product = b->product,
                               .task = b->task[i].task,
                               .row = (uint32_t)b->task[i].row,
                               .took = b->took});
}

static inline uint32_t join(core_case *b)
{
    uint32_t w = b->workers;

    event(b, KOFN_EV_JOINED, w);
    return w;
}

static inline uint32_t join_and_store(core_case *b)
{
    uint32_t w = join(b);

    event(b, KOFN_EV_STORED, w);
    return w;
}

static inline void populate(core_case *b, size_t workers)
{
    for (size_t i = 0; i < workers; i++)
        join_and_store(b);
}

/* Opens a case with its own plan and all its workers. */
static inline void open_workers(core_case *b, const char *spec, size_t workers,
                                size_t span, const kofn_core_options *opt)
{
    kofn_plan *own = make_plan(spec, workers, span);

    case_open(b, own, opt);
    b->own = own;
    populate(b, workers);
}

/* Answers all tasks in order until none is outstanding. */
static inline void answer_all(core_case *b)
{
    for (size_t i = 0; i < b->tasks && b->running; i++)
        if (b->task[i].state == OUT)
            answer(b, i, KOFN_EV_RESULT);
}

static inline void answer_worker(core_case *b, uint32_t worker)
{
    for (size_t i = 0; i < b->tasks && b->running; i++)
        if (b->task[i].state == OUT && b->task[i].worker == worker)
            answer(b, i, KOFN_EV_RESULT);
}

/* Returns the number of strips asked of a worker from task `from` on. */
static inline size_t asked(const core_case *b, uint32_t worker, size_t from)
{
    size_t n = 0;

    for (size_t i = from; i < b->tasks; i++)
        if (b->task[i].worker == worker)
            n += b->task[i].hi - b->task[i].lo;
    return n;
}

static inline size_t asked_of_all(const core_case *b, size_t from)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->workers; w++)
        n += asked(b, w, from);
    return n;
}

#endif
