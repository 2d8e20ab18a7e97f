/* core_rig.h -- a body for the coordinator that is tested alone, without a
 * matrix.  It keeps its own account of who is there, what was asked of whom
 * and what has come, and holds every action against it.  What the ledger says
 * of itself is checked as well: sums that must agree after every step.
 */
#ifndef KF_TEST_CORE_RIG_H
#define KF_TEST_CORE_RIG_H

#include "support.h"

#include "core/state.h"

#include <math.h>
#include <stdlib.h>

/* ---- a body without a matrix --------------------------------------------- */

enum { ABSENT, STANDBY, STORING, LIVE, LEAVING, GONE };
enum { OUT, CAME, CANCELLED, LOST, FAILED };

#define MEN 512

typedef struct man {
    int state;
    size_t seat, out; /* errands in hand                               */
    bool failed;
    kofn_time heard; /* its last answer, or being asked when it was idle */
} man;

typedef struct errand {
    uint32_t worker, task;
    size_t row, group, lo, hi;
    int state;
    unsigned deal; /* how many times work had been taken back before */
} errand;

typedef struct body {
    kofn_plan *plan, *own; /* own: to be freed with the body */
    kofn_core *core;
    kofn_core_options opt;
    uint64_t seed;
    kofn_time now, took; /* took: what the next answer says of its work */

    man man[MEN];
    uint32_t men; /* numbers given out */
    errand *errand;
    size_t errands, errand_cap;
    uint32_t first, product; /* its first task; its number */
    unsigned deals;   /* times that what had come was forgotten this round */
    uint8_t *decoded; /* per group and strip, in this round */
    size_t lo, hi;    /* strips that a round is asked for; hi == 0: all */
    size_t from, to;  /* and this round is of */
    bool lost;
    unsigned decodes;

    bool running, was_degraded; /* before the event */
    unsigned given_up;          /* in this round    */
    uint32_t voided; /* 1 + who is to store another block; 0: nobody */
    kofn_status ended;
    double predicted;
    unsigned rounds, asked_of_late;
    uint64_t digest;

    kofn_event *event; /* all that was sent, to be sent again */
    size_t events, event_cap;
} body;

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

static inline void body_open(body *b, kofn_plan *plan,
                             const kofn_core_options *opt)
{
    *b = (body){.plan = plan};
    if (opt)
        b->opt = *opt;
    assert_ok(kf_core_new(&b->core, plan, opt));
    b->decoded = kf_zero(plan->layout.groups, plan->span);
    assert_non_null(b->decoded);
}

static inline void body_close(body *b)
{
    kofn_core_free(b->core);
    kofn_plan_free(b->own);
    kf_free(b->decoded);
    kf_free(b->errand);
    kf_free(b->event);
}

static inline size_t groups(const body *b)
{
    return b->plan->layout.groups;
}

static inline size_t enough(const body *b)
{
    return b->plan->layout.enough;
}

static inline double tolerance(const body *b)
{
    return b->opt.tolerance > 0 ? b->opt.tolerance : 1e-9;
}

static inline const kf_round *newest(const body *b)
{
    return kf_newest(b->core);
}

static inline const kf_ledger *ledger(const body *b, size_t group)
{
    return &newest(b)->p.ledger[group];
}

/* The row that whoever sits on this seat answers. */
static inline size_t row_of(const body *b, size_t seat)
{
    return seat / groups(b);
}

/* ---- actions against the account ----------------------------------------- */

static inline size_t members(const body *b, size_t group)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->men; w++)
        n += b->man[w].state >= STORING && b->man[w].state <= LEAVING &&
             b->man[w].seat % groups(b) == group;
    return n;
}

static inline bool taken(const body *b, size_t seat)
{
    for (uint32_t w = 0; w < b->men; w++)
        if (b->man[w].state >= STORING && b->man[w].state <= LEAVING &&
            b->man[w].seat == seat)
            return true;
    return false;
}

static inline bool full(const body *b, size_t group)
{
    return members(b, group) >= b->plan->layout.max_seats;
}

/* The lowest empty seat of a group that has the fewest members. */
static inline void take_store(body *b, const kofn_action *a)
{
    size_t group = a->seat % groups(b);

    check(b, a->worker < b->men);
    if (b->man[a->worker].state == STORING) { /* another, on its seat */
        check(b,
              b->voided == a->worker + 1 && b->man[a->worker].seat == a->seat);
        b->voided = 0;
        return;
    }
    check(b, b->man[a->worker].state == STANDBY);
    check(b, a->seat / groups(b) < b->plan->layout.max_seats);
    check(b, !taken(b, a->seat));
    for (size_t s = group; s < a->seat; s += groups(b))
        check(b, taken(b, s));
    for (size_t g = 0; g < groups(b); g++)
        check(b, full(b, g) || members(b, g) >= members(b, group));
    b->man[a->worker].state = STORING;
    b->man[a->worker].seat = a->seat;
}

static inline bool overlap(const errand *e, const kofn_action *a)
{
    return e->group == a->group && e->lo < a->hi && e->hi > a->lo;
}

static inline void take_work(body *b, const kofn_action *a)
{
    man *m = &b->man[a->worker];

    check(b, b->running);
    check(b, a->worker < b->men && m->state == LIVE && !m->failed);
    check(b, a->product == b->product);
    check(b, a->row == row_of(b, m->seat) && a->group == m->seat % groups(b));
    check(b, b->from <= a->lo && a->lo < a->hi && a->hi <= b->to);
    check(b, a->task == b->first + b->errands);
    for (size_t i = 0; i < b->errands; i++) {
        const errand *e = &b->errand[i];

        if (e->row != a->row || !overlap(e, a))
            continue;
        check(b, e->state != OUT);
        /* a row says the same thing twice: only when it was not kept */
        check(b, e->state != CAME || e->deal < b->deals);
    }
    assert_ok(
        kf_grow(&b->errand, &b->errand_cap, b->errands, sizeof *b->errand));
    b->errand[b->errands++] = (errand){a->worker, a->task, a->row, a->group,
                                       a->lo,     a->hi,   OUT,    b->deals};
    if (m->out++ == 0)
        m->heard = b->now;
}

static inline errand *errand_of(body *b, uint32_t task)
{
    check(b, task - b->first < b->errands);
    return &b->errand[task - b->first];
}

static inline void take_cancel(body *b, const kofn_action *a)
{
    errand *e = errand_of(b, a->task);

    check(b, e->worker == a->worker && e->state == OUT);
    check(b, b->man[a->worker].state != GONE);
    e->state = CANCELLED;
    b->man[a->worker].out--;
}

/* What a worker had in hand will not come. */
static inline void lose_errands(body *b, uint32_t worker)
{
    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].worker == worker && b->errand[i].state == OUT)
            b->errand[i].state = LOST;
    b->man[worker].out = 0;
    b->man[worker].state = GONE;
}

/* Whoever took part in the round takes what had come with it. */
static inline void take_back(body *b)
{
    if (b->was_degraded || b->opt.in_flight == KOFN_IN_FLIGHT_LEDGER)
        return;
    b->deals++;
    if (b->opt.in_flight == KOFN_IN_FLIGHT_ABORT)
        memset(b->decoded, 0, b->plan->layout.groups * b->plan->span);
}

/* Only of one that owes something for so long, and in a round of which some
 * has come: what the work takes is known. */
static inline void take_give_up(body *b, const kofn_action *a)
{
    const man *m = &b->man[a->worker];
    size_t came = 0;

    check(b, b->running && b->opt.lease > 0 && a->worker < b->men);
    check(b, m->state == LIVE || m->state == LEAVING);
    check(b, m->out > 0 && b->now - m->heard >= b->opt.lease);
    for (size_t i = 0; i < b->errands; i++)
        came += b->errand[i].state == CAME;
    check(b, came > 0);
    lose_errands(b, a->worker);
    take_back(b);
    b->given_up++;
}

static inline void take_decode(body *b, const kofn_action *a)
{
    const kofn_decoder *d = a->decoder;

    check(b, b->running && a->group < groups(b));
    check(b, b->from <= a->lo && a->lo < a->hi && a->hi <= b->to);
    for (size_t i = 0; i < d->seats; i++) {
        const errand *e = errand_of(b, a->tasks[i]);

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

static inline void take_deliver(body *b, const kofn_action *a)
{
    size_t span = b->plan->span;

    check(b, b->running);
    b->running = false;
    b->ended = a->status;
    b->predicted = a->predicted;
    b->rounds++;
    for (uint32_t w = 0; w < b->men; w++)
        b->man[w].failed = false;
    for (size_t i = 0; i < b->errands; i++)
        check(b, b->errand[i].state != OUT);
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

static inline void take(body *b, const kofn_action *a)
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
        take_give_up(b, a);
        break;
    case KOFN_DO_END:
    case KOFN_DO_MIX:
    case KOFN_DO_CHECK:
        break;
    }
}

/* ---- what must agree after every step ------------------------------------ */

static inline size_t open_strips(const body *b)
{
    size_t open = 0;

    for (size_t g = 0; g < groups(b); g++)
        for (size_t i = 0; i < ledger(b, g)->count; i++) {
            const kf_cell *cell = &ledger(b, g)->cell[i];

            open += cell->settled ? 0 : cell->hi - cell->lo;
        }
    return open;
}

static inline size_t count_men(const body *b, int state)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->men; w++)
        n += b->man[w].state == state;
    return n;
}

static inline size_t errands_out(const body *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->errands; i++)
        n += b->errand[i].state == OUT;
    return n;
}

static inline void audit_view(const body *b)
{
    kf_core_view v;
    size_t rows[MEN] = {0}, awaited = 0;
    bool busy[MEN] = {false};

    kf_core_look(b->core, 0, &v);
    check(b, v.running == b->running);
    check(b, v.live == count_men(b, LIVE) + count_men(b, LEAVING));
    check(b, v.storing == count_men(b, STORING));
    check(b, v.standby == count_men(b, STANDBY));
    check(b, v.done >= 0 && v.done <= 1);
    for (size_t i = 0; i < b->errands; i++) {
        const errand *e = &b->errand[i];

        rows[e->worker] += e->hi - e->lo;
        awaited += e->state == OUT && !busy[e->worker];
        busy[e->worker] |= e->state == OUT;
    }
    check(b, v.awaited == awaited);
    for (size_t w = 0; w < v.workers; w++)
        check(b, kf_core_rows(b->core, v.round, (uint32_t)w) == rows[w]);
}

/* A seat that could still say something about this cell. */
static inline bool can_help(const body *b, const kf_cell *cell, const man *m)
{
    if (m->state != LIVE || m->failed)
        return false;
    for (size_t h = 0; h < cell->count; h++)
        if (newest(b)->p.task[cell->have[h]].row == row_of(b, m->seat))
            return false;
    return true;
}

/* Some cell cannot be completed by whoever is there. */
static inline bool in_need(const body *b)
{
    for (size_t g = 0; g < groups(b); g++)
        for (size_t i = 0; i < ledger(b, g)->count; i++) {
            const kf_cell *cell = &ledger(b, g)->cell[i];
            size_t hope = cell->count;

            for (uint32_t w = 0; w < b->men; w++)
                hope += b->man[w].seat % groups(b) == g &&
                        can_help(b, cell, &b->man[w]);
            if (!cell->settled && hope < enough(b) + cell->extra)
                return true;
        }
    return false;
}

/* The core never waits for nothing (law 8). */
static inline void audit_waiting(const body *b)
{
    bool waits = newest(b)->state == KF_ROUND_STARVED;
    bool coming = count_men(b, STORING) > 0;

    if (!b->running)
        return;
    check(b, waits || errands_out(b) > 0);
    if (!waits)
        return;
    check(b, coming || b->opt.below == KOFN_BELOW_PAUSE);
    check(b, newest(b)->p.degraded || in_need(b));
    check(b, (kf_core_alarm(b->core) != KOFN_NEVER) ==
                 (b->opt.below == KOFN_BELOW_PAUSE && b->opt.patience > 0));
}

static inline void audit(const body *b)
{
    bool room = false;

    const char *wrong = kf_core_check(b->core);

    if (wrong)
        fail_msg("%s, seed %llu, event %zu: %s", b->plan->spec,
                 (unsigned long long)b->seed, b->events, wrong);
    audit_view(b);
    audit_waiting(b);
    for (size_t g = 0; g < groups(b); g++)
        room |= !full(b, g);
    check(b, !room || count_men(b, STANDBY) == 0);
    check(b, !b->running || newest(b)->p.unsettled == open_strips(b));
    check(b, b->running || kf_core_alarm(b->core) == KOFN_NEVER);
}

/* ---- events -------------------------------------------------------------- */

/* What the account makes of an event before the core hears of it. */
static inline void note_left(body *b, man *m, uint32_t worker)
{
    const kf_worker *w = &b->core->fleet.worker[worker];
    bool in_round = (m->state == LIVE || m->state == LEAVING) &&
                    w->from <= newest(b)->p.number;

    lose_errands(b, worker);
    if (newest(b)->state == KF_ROUND_RUNNING && in_round)
        take_back(b);
}

/* Its block is wrong: what it has in hand is cancelled, and it is as if it had
 * left, but for its seat. */
static inline void note_void(body *b, man *m, uint32_t worker)
{
    const kf_worker *w = &b->core->fleet.worker[worker];

    m->state = STORING;
    b->voided = worker + 1;
    if (newest(b)->state == KF_ROUND_RUNNING && w->from <= newest(b)->p.number)
        take_back(b);
}

static inline void note_begin(body *b)
{
    if (b->running)
        return;
    b->running = true;
    b->product++;
    b->first += (uint32_t)b->errands;
    b->errands = 0;
    for (uint32_t w = 0; w < b->men; w++)
        b->man[w].out = 0;
    b->deals = b->decodes = b->given_up = 0;
    b->lost = false;
    b->from = b->lo;
    b->to = b->hi ? b->hi : b->plan->span;
    memset(b->decoded, 0, groups(b) * b->plan->span);
}

static inline void note(body *b, const kofn_event *ev)
{
    man *m = ev->worker < MEN ? &b->man[ev->worker] : NULL;
    size_t index = ev->task - b->first;
    errand *e = index < b->errands ? &b->errand[index] : NULL;

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
        b->men = ev->worker < b->men ? b->men : ev->worker + 1;
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

static inline void tell(body *b, kofn_event ev)
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
        take(b, &a);
    audit(b);
}

static inline void say(body *b, kofn_event_type type, uint32_t worker)
{
    tell(b, (kofn_event){.type = type, .worker = worker});
}

static inline void answer(body *b, size_t i, kofn_event_type type)
{
    tell(b, (kofn_event){.type = type,
                         .worker = b->errand[i].worker,
                         .product = b->product,
                         .task = b->errand[i].task,
                         .row = (uint32_t)b->errand[i].row,
                         .took = b->took});
}

static inline uint32_t join(body *b)
{
    uint32_t w = b->men;

    say(b, KOFN_EV_JOINED, w);
    return w;
}

static inline uint32_t join_and_store(body *b)
{
    uint32_t w = join(b);

    say(b, KOFN_EV_STORED, w);
    return w;
}

static inline void populate(body *b, size_t workers)
{
    for (size_t i = 0; i < workers; i++)
        join_and_store(b);
}

/* A body with a plan of its own, of which all workers are there. */
static inline void fleet_open(body *b, const char *spec, size_t workers,
                              size_t span, const kofn_core_options *opt)
{
    kofn_plan *own = make_plan(spec, workers, span);

    body_open(b, own, opt);
    b->own = own;
    populate(b, workers);
}

/* Answer everything in order until nothing is out. */
static inline void answer_all(body *b)
{
    for (size_t i = 0; i < b->errands && b->running; i++)
        if (b->errand[i].state == OUT)
            answer(b, i, KOFN_EV_RESULT);
}

static inline void answer_worker(body *b, uint32_t worker)
{
    for (size_t i = 0; i < b->errands && b->running; i++)
        if (b->errand[i].state == OUT && b->errand[i].worker == worker)
            answer(b, i, KOFN_EV_RESULT);
}

/* Strips asked of a worker from errand `from` on. */
static inline size_t asked(const body *b, uint32_t worker, size_t from)
{
    size_t n = 0;

    for (size_t i = from; i < b->errands; i++)
        if (b->errand[i].worker == worker)
            n += b->errand[i].hi - b->errand[i].lo;
    return n;
}

static inline size_t asked_of_all(const body *b, size_t from)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->men; w++)
        n += asked(b, w, from);
    return n;
}

#endif
