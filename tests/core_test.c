/* core_test.c -- the coordinator alone: events in, actions out.
 *
 * A small body without a matrix keeps its own account of who is there, what
 * was asked of whom and what has come, and holds every action against it.
 * What the ledger says of itself is checked as well: sums that must agree
 * after every step.
 */
#include "support.h"

#include "base/rng.h"
#include "core/state.h"

#include <math.h>
#include <stdlib.h>

/* ---- a body without a matrix -----------------------------------------------
 */

enum { ABSENT, STANDBY, STORING, LIVE, LEAVING, GONE };
enum { OUT, CAME, CANCELLED, LOST, FAILED };

#define MEN 512

typedef struct man {
    int state;
    size_t seat;
    bool failed;
} man;

typedef struct errand {
    uint32_t worker;
    size_t seat, group, lo, hi;
    int state;
    unsigned deal; /* how many times work had been taken back before */
} errand;

typedef struct body {
    kofn_plan *plan;
    kofn_core *core;
    kofn_core_options opt;
    uint64_t seed;
    kofn_time now, took; /* took: what the next answer says of its work */

    man man[MEN];
    uint32_t men; /* numbers given out */
    errand *errand;
    size_t errands, errand_cap;
    uint32_t first;
    unsigned deals;   /* times that what had come was forgotten this round */
    uint8_t *decoded; /* per group and strip, in this round */
    size_t lo, hi;    /* strips that a round is asked for; hi == 0: all */
    size_t from, to;  /* and this round is of */
    bool lost;
    unsigned decodes;

    bool running;
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

static kofn_plan *make_plan(const char *spec, size_t workers, size_t span)
{
    kofn_problem pb = {KOFN_MATVEC, 1, 3, 1, KOFN_F64, false};
    kofn_plan *p;

    assert_ok(kofn_plan_new(&p, &pb, spec, workers, 5));
    pb.m = span * p->layout.groups * p->layout.cut[0].rows;
    kofn_plan_free(p);
    assert_ok(kofn_plan_new(&p, &pb, spec, workers, 5));
    assert_int_equal(p->span, span);
    return p;
}

static void body_open(body *b, kofn_plan *plan, const kofn_core_options *opt)
{
    *b = (body){.plan = plan};
    if (opt)
        b->opt = *opt;
    assert_ok(kofn_core_new(&b->core, plan, opt));
    b->decoded = kf_zero(plan->layout.groups, plan->span);
    assert_non_null(b->decoded);
}

/* The plan stays. */
static void body_close(body *b)
{
    kofn_core_free(b->core);
    kf_free(b->decoded);
    kf_free(b->errand);
    kf_free(b->event);
}

static size_t groups(const body *b)
{
    return b->plan->layout.groups;
}

static size_t enough(const body *b)
{
    return b->plan->layout.enough;
}

static double tolerance(const body *b)
{
    return b->opt.tolerance > 0 ? b->opt.tolerance : 1e-9;
}

/* ---- actions against the account --------------------------------------------
 */

static size_t members(const body *b, size_t group)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->men; w++)
        n += b->man[w].state >= STORING && b->man[w].state <= LEAVING &&
             b->man[w].seat % groups(b) == group;
    return n;
}

static bool taken(const body *b, size_t seat)
{
    for (uint32_t w = 0; w < b->men; w++)
        if (b->man[w].state >= STORING && b->man[w].state <= LEAVING &&
            b->man[w].seat == seat)
            return true;
    return false;
}

static bool full(const body *b, size_t group)
{
    return members(b, group) >= b->plan->layout.max_seats;
}

/* The lowest empty seat of a group that has the fewest members. */
static void take_store(body *b, const kofn_action *a)
{
    size_t group = a->seat % groups(b);

    check(b, a->worker < b->men && b->man[a->worker].state == STANDBY);
    check(b, a->seat / groups(b) < b->plan->layout.max_seats);
    check(b, !taken(b, a->seat));
    for (size_t s = group; s < a->seat; s += groups(b))
        check(b, taken(b, s));
    for (size_t g = 0; g < groups(b); g++)
        check(b, full(b, g) || members(b, g) >= members(b, group));
    b->man[a->worker].state = STORING;
    b->man[a->worker].seat = a->seat;
}

static bool overlap(const errand *e, const kofn_action *a)
{
    return e->group == a->group && e->lo < a->hi && e->hi > a->lo;
}

static void take_work(body *b, const kofn_action *a)
{
    man *m = &b->man[a->worker];

    check(b, b->running);
    check(b, a->worker < b->men && m->state == LIVE && !m->failed);
    check(b, a->seat == m->seat && a->group == a->seat % groups(b));
    check(b, b->from <= a->lo && a->lo < a->hi && a->hi <= b->to);
    check(b, a->task == b->first + b->errands);
    for (size_t i = 0; i < b->errands; i++) {
        const errand *e = &b->errand[i];

        if (e->seat != a->seat || !overlap(e, a))
            continue;
        check(b, e->state != OUT);
        /* a seat says the same thing twice: only when it was not kept */
        check(b, e->state != CAME || e->deal < b->deals);
    }
    assert_ok(
        kf_grow(&b->errand, &b->errand_cap, b->errands, sizeof *b->errand));
    b->errand[b->errands++] =
        (errand){a->worker, a->seat, a->group, a->lo, a->hi, OUT, b->deals};
}

static errand *errand_of(body *b, uint32_t task)
{
    check(b, task - b->first < b->errands);
    return &b->errand[task - b->first];
}

static void take_cancel(body *b, const kofn_action *a)
{
    errand *e = errand_of(b, a->task);

    check(b, e->worker == a->worker && e->state == OUT);
    check(b, b->man[a->worker].state != GONE);
    e->state = CANCELLED;
}

static void take_decode(body *b, const kofn_action *a)
{
    const kf_decoder *d = a->decoder;

    check(b, b->running && a->group < groups(b));
    check(b, b->from <= a->lo && a->lo < a->hi && a->hi <= b->to);
    for (size_t i = 0; i < d->seats; i++) {
        const errand *e = errand_of(b, a->tasks[i]);

        check(b, e->state == CAME && e->group == a->group);
        check(b, e->lo <= a->lo && e->hi >= a->hi);
        check(b, e->seat / groups(b) == d->seat[i]);
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

static void take_deliver(body *b, const kofn_action *a)
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

static void take(body *b, const kofn_action *a)
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
    case KOFN_DO_MIX:
    case KOFN_DO_CHECK:
        break;
    }
}

/* ---- what must agree after every step
 * ---------------------------------------- */

static void audit_ledger(const body *b, size_t group)
{
    const kofn_core *c = b->core;
    const kf_ledger *l = &c->ledger[group];
    size_t at = 0;

    for (size_t i = 0; i < l->count; i++) {
        const kf_cell *cell = &l->cell[i];
        size_t pending = 0, slow = 0;

        check(b, cell->lo == at && cell->hi > cell->lo);
        at = cell->hi;
        for (size_t t = 0; t < c->tasks; t++) {
            const kf_task *task = &c->task[t];
            bool on = task->lo < cell->hi && task->hi > cell->lo &&
                      kf_group(b->plan, task->seat) == group;

            on &= kf_in_hand(task);
            check(b, !on || (task->lo <= cell->lo && task->hi >= cell->hi));
            pending += on && task->state == KF_TASK_OUT;
            slow += on && task->state == KF_TASK_LATE;
        }
        check(b, cell->pending == pending && cell->slow == slow);
        for (size_t h = 0; h < cell->count; h++)
            for (size_t k = 0; k < h; k++)
                check(b, c->task[cell->have[h]].seat !=
                             c->task[cell->have[k]].seat);
    }
    check(b, at == b->plan->span);
}

static size_t open_strips(const body *b)
{
    size_t open = 0;

    for (size_t g = 0; g < groups(b); g++)
        for (size_t i = 0; i < b->core->ledger[g].count; i++) {
            const kf_cell *cell = &b->core->ledger[g].cell[i];

            open += cell->settled ? 0 : cell->hi - cell->lo;
        }
    return open;
}

static size_t count_men(const body *b, int state)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->men; w++)
        n += b->man[w].state == state;
    return n;
}

static size_t errands_out(const body *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->errands; i++)
        n += b->errand[i].state == OUT;
    return n;
}

static void audit_view(const body *b)
{
    kofn_core_view v;
    size_t rows[MEN] = {0}, awaited = 0;
    bool busy[MEN] = {false};

    kofn_core_look(b->core, &v);
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
        check(b, v.rows[w] == rows[w]);
}

/* A seat that could still say something about this cell. */
static bool can_help(const body *b, const kf_cell *cell, const man *m)
{
    if (m->state != LIVE || m->failed)
        return false;
    for (size_t h = 0; h < cell->count; h++)
        if (b->core->task[cell->have[h]].seat == m->seat)
            return false;
    return true;
}

/* Some cell cannot be completed by whoever is there. */
static bool in_need(const body *b)
{
    for (size_t g = 0; g < groups(b); g++)
        for (size_t i = 0; i < b->core->ledger[g].count; i++) {
            const kf_cell *cell = &b->core->ledger[g].cell[i];
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
static void audit_waiting(const body *b)
{
    bool waits = b->core->state == KF_ROUND_STARVED;
    bool coming = count_men(b, STORING) > 0;

    if (!b->running)
        return;
    check(b, waits || errands_out(b) > 0);
    if (!waits)
        return;
    check(b, coming || b->opt.below == KOFN_BELOW_PAUSE);
    check(b, b->core->degraded || in_need(b));
    check(b, (kofn_core_alarm(b->core) != KOFN_NEVER) ==
                 (b->opt.below == KOFN_BELOW_PAUSE && b->opt.patience > 0));
}

static void audit(const body *b)
{
    bool room = false;

    audit_view(b);
    audit_waiting(b);
    for (size_t g = 0; g < groups(b); g++) {
        room |= !full(b, g);
        if (b->running)
            audit_ledger(b, g);
    }
    check(b, !room || count_men(b, STANDBY) == 0);
    check(b, !b->running || b->core->unsettled == open_strips(b));
    check(b, b->running || kofn_core_alarm(b->core) == KOFN_NEVER);
}

/* ---- events
 * -------------------------------------------------------------------- */

/* What the account makes of an event before the core hears of it. */
static void note_left(body *b, man *m, uint32_t worker)
{
    const kf_worker *w = &b->core->worker[worker];
    bool in_round =
        (m->state == LIVE || m->state == LEAVING) && w->from <= b->core->round;

    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].worker == worker && b->errand[i].state == OUT)
            b->errand[i].state = LOST;
    m->state = GONE;
    if (b->core->state != KF_ROUND_RUNNING || !in_round || b->core->degraded ||
        b->opt.in_flight == KOFN_IN_FLIGHT_LEDGER)
        return;
    b->deals++;
    if (b->opt.in_flight == KOFN_IN_FLIGHT_ABORT)
        memset(b->decoded, 0, groups(b) * b->plan->span);
}

static void note_begin(body *b)
{
    if (b->running)
        return;
    b->running = true;
    b->first += (uint32_t)b->errands;
    b->errands = 0;
    b->deals = b->decodes = 0;
    b->lost = false;
    b->from = b->lo;
    b->to = b->hi ? b->hi : b->plan->span;
    memset(b->decoded, 0, groups(b) * b->plan->span);
}

static void note(body *b, const kofn_event *ev)
{
    man *m = ev->worker < MEN ? &b->man[ev->worker] : NULL;
    size_t index = ev->task - b->first;
    errand *e = index < b->errands ? &b->errand[index] : NULL;

    if (e && (e->worker != ev->worker || e->state != OUT || !b->running))
        e = NULL;
    if (ev->type == KOFN_EV_BEGIN)
        note_begin(b);
    else if (ev->type == KOFN_EV_RESULT && e)
        e->state = CAME;
    else if (ev->type == KOFN_EV_FAILED && e)
        e->state = FAILED, m->failed = true;
    if (!m)
        return;
    if (ev->type == KOFN_EV_JOINED && m->state == ABSENT) {
        m->state = STANDBY;
        b->men = ev->worker < b->men ? b->men : ev->worker + 1;
    } else if (ev->type == KOFN_EV_STORED && m->state == STORING) {
        m->state = LIVE;
    } else if (ev->type == KOFN_EV_LEAVING && m->state == LIVE) {
        m->state = LEAVING;
    } else if (ev->type == KOFN_EV_LEFT && m->state > ABSENT &&
               m->state < GONE) {
        note_left(b, m, ev->worker);
    }
}

static void tell(body *b, kofn_event ev)
{
    kofn_action a;

    ev.now = b->now;
    if (ev.type == KOFN_EV_BEGIN) {
        ev.lo = b->lo;
        ev.hi = b->hi;
    }
    assert_ok(kf_grow(&b->event, &b->event_cap, b->events, sizeof *b->event));
    b->event[b->events++] = ev;
    note(b, &ev);
    check(b, kofn_core_step(b->core, &ev) == KOFN_OK);
    while (kofn_core_next(b->core, &a))
        take(b, &a);
    audit(b);
}

static void say(body *b, kofn_event_type type, uint32_t worker)
{
    tell(b, (kofn_event){.type = type, .worker = worker});
}

static void answer(body *b, size_t i, kofn_event_type type)
{
    tell(b, (kofn_event){.type = type,
                         .worker = b->errand[i].worker,
                         .task = b->first + (uint32_t)i,
                         .took = b->took});
}

static uint32_t join(body *b)
{
    uint32_t w = b->men;

    say(b, KOFN_EV_JOINED, w);
    return w;
}

static uint32_t join_and_store(body *b)
{
    uint32_t w = join(b);

    say(b, KOFN_EV_STORED, w);
    return w;
}

static void populate(body *b, size_t workers)
{
    for (size_t i = 0; i < workers; i++)
        join_and_store(b);
}

/* Answer everything in order until nothing is out. */
static void answer_all(body *b)
{
    for (size_t i = 0; i < b->errands && b->running; i++)
        if (b->errand[i].state == OUT)
            answer(b, i, KOFN_EV_RESULT);
}

static void answer_worker(body *b, uint32_t worker)
{
    for (size_t i = 0; i < b->errands && b->running; i++)
        if (b->errand[i].state == OUT && b->errand[i].worker == worker)
            answer(b, i, KOFN_EV_RESULT);
}

/* Strips asked of a worker from errand `from` on. */
static size_t asked(const body *b, uint32_t worker, size_t from)
{
    size_t n = 0;

    for (size_t i = from; i < b->errands; i++)
        if (b->errand[i].worker == worker)
            n += b->errand[i].hi - b->errand[i].lo;
    return n;
}

static size_t asked_of_all(const body *b, size_t from)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->men; w++)
        n += asked(b, w, from);
    return n;
}

/* ---- (a) a normal life
 * ------------------------------------------------------------ */

static void a_normal_life(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 3, 6);
    kofn_core_options opt = {.pieces = 1};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 3);
    for (unsigned r = 1; r <= 3; r++) {
        /* cuts at 0, 2, 4, 6; worker p has groups p and p + 1 */
        static const size_t share[4][3] = {
            {0, 0, 4}, {1, 2, 6}, {2, 4, 6}, {2, 0, 2}};

        say(&b, KOFN_EV_BEGIN, 0);
        assert_int_equal(asked_of_all(&b, 0), 12);
        for (size_t k = 0; k < 4; k++) {
            bool found[6] = {false};

            for (size_t i = 0; i < b.errands; i++)
                for (size_t s = b.errand[i].lo; s < b.errand[i].hi; s++)
                    found[s] |= b.errand[i].worker == share[k][0];
            for (size_t s = share[k][1]; s < share[k][2]; s++)
                assert_true(found[s]);
        }
        answer_all(&b);
        assert_false(b.running);
        assert_int_equal(b.ended, KOFN_OK);
        assert_int_equal(b.rounds, r);
        assert_int_equal(b.decodes, 3);
    }
    body_close(&b);
    kofn_plan_free(p);
}

static void undrained_actions_are_refused(void **state)
{
    kofn_plan *p = make_plan("mds:k=2", 3, 4);
    kofn_event ev = {.type = KOFN_EV_JOINED};
    kofn_core *c;
    kofn_action a;

    (void)state;
    assert_ok(kofn_core_new(&c, p, NULL));
    assert_ok(kofn_core_step(c, &ev));
    assert_status(KOFN_STATE, kofn_core_step(c, &ev));
    assert_true(kofn_core_next(c, &a));
    assert_false(kofn_core_next(c, &a));
    assert_ok(kofn_core_step(c, &ev));
    kofn_core_free(c);
    kofn_core_free(NULL);
    kofn_plan_free(p);
}

/* Stale, foreign, duplicate and senseless events change nothing and count. */
static void what_does_not_fit_is_dropped(void **state)
{
    kofn_plan *p = make_plan("mds:k=2,basis=gauss", 3, 4);
    kofn_core_view v;
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 3);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    say(&b, KOFN_EV_BEGIN, 0);
    uint32_t first = b.first, worker = b.errand[0].worker;
    uint64_t before = b.digest;
    const kofn_event wild[] = {
        {.type = KOFN_EV_BEGIN},
        {.type = (kofn_event_type)0},
        {.type = (kofn_event_type)99},
        {.type = KOFN_EV_JOINED, .worker = 1},
        {.type = KOFN_EV_JOINED, .worker = UINT32_MAX},
        {.type = KOFN_EV_STORED, .worker = 1},
        {.type = KOFN_EV_STORED, .worker = 400},
        {.type = KOFN_EV_LEFT, .worker = 77},
        {.type = KOFN_EV_LEAVING, .worker = 77},
        {.type = KOFN_EV_RESULT, .worker = worker, .task = first - 1},
        {.type = KOFN_EV_RESULT, .worker = worker + 1, .task = first},
        {.type = KOFN_EV_RESULT, .worker = 400, .task = first + 9999},
        {.type = KOFN_EV_FAILED, .worker = worker, .task = first - 1},
        {.type = KOFN_EV_FAILED, .worker = worker + 1, .task = first},
    };
    size_t n = sizeof wild / sizeof *wild;
    for (size_t i = 0; i < n; i++)
        tell(&b, wild[i]);
    assert_true(b.digest == before);
    kofn_core_look(b.core, &v);
    assert_int_equal(v.dropped, n);
    answer(&b, 0, KOFN_EV_RESULT);
    answer(&b, 0, KOFN_EV_RESULT); /* once is enough */
    kofn_core_look(b.core, &v);
    assert_int_equal(v.dropped, n + 1);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* A round of strips that are not there is none; of some, it is of these. */
static void some_strips_only(void **state)
{
    static const size_t bad[][2] = {{3, 3}, {4, 2}, {0, 10}, {9, 10}};
    kofn_plan *p = make_plan("elastic:k=2", 4, 9);
    kofn_core_view v;
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 4);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kofn_event ev = {.type = KOFN_EV_BEGIN, .lo = bad[i][0],
                         .hi = bad[i][1]};
        kofn_action a;

        assert_ok(kofn_core_step(b.core, &ev));
        assert_false(kofn_core_next(b.core, &a));
        kofn_core_look(b.core, &v);
        assert_int_equal(v.dropped, i + 1);
        assert_false(v.running);
    }
    for (size_t lo = 0; lo < 9; lo++)
        for (size_t hi = lo + 1; hi <= 9; hi++) {
            size_t strips = 0;

            b.lo = lo;
            b.hi = hi;
            say(&b, KOFN_EV_BEGIN, 0);
            for (size_t i = 0; i < b.errands; i++)
                strips += b.errand[i].hi - b.errand[i].lo;
            assert_int_equal(strips, 2 * (hi - lo));
            kofn_core_look(b.core, &v);
            assert_true(v.done == 0);
            answer_all(&b);
            assert_int_equal(b.ended, KOFN_OK);
        }
    body_close(&b);
    kofn_plan_free(p);
}

static void a_round_without_workers(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2", 4, 5);

    (void)state;
    for (int below = 0; below < 3; below++) {
        kofn_core_options opt = {.below = (kofn_below)below, .patience = 10};
        body b;

        body_open(&b, p, &opt);
        say(&b, KOFN_EV_BEGIN, 0);
        if (below == KOFN_BELOW_PAUSE) {
            assert_true(b.running);
            b.now = kofn_core_alarm(b.core);
            assert_int_equal(b.now, 10);
            say(&b, KOFN_EV_ALARM, 0);
        }
        assert_false(b.running);
        assert_int_equal(b.ended, below == KOFN_BELOW_REFUSE  ? KOFN_TOOFEW
                                  : below == KOFN_BELOW_PAUSE ? KOFN_LATE
                                                              : KOFN_PARTIAL);
        body_close(&b);
    }
    kofn_plan_free(p);
}

/* ---- (d) work in hand when a worker leaves
 * ------------------------------------------ */

/* Four fifths of the results are here when worker `gone` leaves: how many
 * strips are asked for again? */
static void lose_one(kofn_in_flight mode, size_t pieces, uint32_t gone)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 5, 40);
    kofn_core_options opt = {.in_flight = mode, .pieces = (unsigned)pieces};
    size_t before, again = 0, missing = 0, open;
    body b;

    body_open(&b, p, &opt);
    populate(&b, 5);
    say(&b, KOFN_EV_BEGIN, 0);
    for (size_t i = 0; i < b.errands; i++)
        if (b.errand[i].worker != gone || i % 2)
            answer(&b, i, KOFN_EV_RESULT);
    for (size_t i = 0; i < b.errands; i++)
        if (b.errand[i].worker == gone && b.errand[i].state == OUT)
            missing += b.errand[i].hi - b.errand[i].lo;
    open = open_strips(&b);
    assert_true(open > 0 && open < 40 && missing > 0);
    before = b.errands;
    say(&b, KOFN_EV_LEFT, gone);
    again = asked_of_all(&b, before);
    if (mode == KOFN_IN_FLIGHT_LEDGER)
        assert_int_equal(again, missing);
    else if (mode == KOFN_IN_FLIGHT_KEEP)
        assert_int_equal(again, 3 * open);
    else
        assert_int_equal(again, 3 * 40);
    assert_int_equal(asked(&b, gone, before), 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

static void in_flight_modes(void **state)
{
    (void)state;
    for (uint32_t gone = 0; gone < 5; gone++)
        for (int mode = 0; mode < 3; mode++)
            lose_one((kofn_in_flight)mode, 6, gone);
}

/* Results of a worker that has left since stay valid, in the ledger. */
static void the_dead_are_believed(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 3, 6);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 3);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_worker(&b, 1);
    size_t before = b.errands;
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.errands, before); /* nothing to ask again */
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* A notice: nothing new is dealt to the worker, what it has it may finish. */
static void a_notice_lets_work_finish(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 8);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    size_t before = b.errands;
    say(&b, KOFN_EV_LEAVING, 2);
    assert_int_equal(b.errands, before);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    say(&b, KOFN_EV_BEGIN, 0);
    assert_int_equal(asked(&b, 2, 0), 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* A task that failed is not given to the same worker again in this round. */
static void whoever_fails_is_not_asked_again(void **state)
{
    static const char *const specs[] = {"elastic:k=2,basis=gauss",
                                        "mds:k=2,basis=gauss", "uncoded",
                                        "replication:k=2"};

    (void)state;
    for (size_t s = 0; s < 4; s++)
        for (unsigned pieces = 1; pieces < 4; pieces += 2) {
            kofn_plan *p = make_plan(specs[s], 4, 8);
            kofn_core_options opt = {.pieces = pieces};
            body b;

            body_open(&b, p, &opt);
            populate(&b, 4);
            say(&b, KOFN_EV_BEGIN, 0);
            answer(&b, 0, KOFN_EV_FAILED); /* the account checks the rest */
            answer_all(&b);
            assert_false(b.running);
            assert_int_equal(b.ended, s == 2 ? KOFN_TOOFEW : KOFN_OK);
            say(&b, KOFN_EV_BEGIN, 0); /* but in the next */
            answer_all(&b);
            assert_int_equal(b.ended, KOFN_OK);
            body_close(&b);
            kofn_plan_free(p);
        }
}

/* ---- (e) below the threshold
 * ---------------------------------------------------------- */

static void refuse(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 4, 6);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 0);
    assert_true(b.running);
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    /* between rounds nothing is lost: with a joiner it goes on */
    join_and_store(&b);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* Somebody who is storing its block is waited for even under REFUSE, and
 * those who came during the round are called when it cannot end without. */
static void reserves_are_called(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 3, 6);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 3);
    say(&b, KOFN_EV_BEGIN, 0);
    uint32_t late = join_and_store(&b); /* seat 3, a fresh row */
    assert_int_equal(b.man[late].seat, 3);
    assert_int_equal(asked(&b, late, 0), 0);
    say(&b, KOFN_EV_LEFT, 0);
    assert_true(asked(&b, late, 0) > 0);
    uint32_t later = join(&b);
    assert_int_equal(b.man[later].seat, 0);
    say(&b, KOFN_EV_LEFT, 1);
    assert_true(b.running); /* `later` is storing */
    say(&b, KOFN_EV_STORED, later);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    say(&b, KOFN_EV_BEGIN, 0);
    later = join(&b);
    say(&b, KOFN_EV_LEFT, 2);
    say(&b, KOFN_EV_LEFT, later);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    body_close(&b);
    kofn_plan_free(p);
}

static void pause_and_patience(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 4, 6);
    kofn_core_options opt = {.below = KOFN_BELOW_PAUSE, .patience = 1000};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 50;
    say(&b, KOFN_EV_LEFT, 0);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER);
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(kofn_core_alarm(b.core), 1050);
    b.now = 500; /* a second loss does not start the clock anew */
    say(&b, KOFN_EV_LEFT, 2);
    assert_int_equal(kofn_core_alarm(b.core), 1050);
    say(&b, KOFN_EV_ALARM, 0); /* rings too early: nothing happens */
    assert_true(b.running);
    for (int i = 0; i < 2; i++)
        join_and_store(&b);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 3);
    b.now = kofn_core_alarm(b.core);
    assert_int_equal(b.now, 1500);
    say(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.ended, KOFN_LATE);
    assert_non_null(strstr(kofn_errmsg(), "patience"));
    body_close(&b);
    kofn_plan_free(p);
}

/* Whoever pauses for ever is not made impatient by the alarm for stragglers. */
static void lateness_is_not_impatience(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 4, 8);
    kofn_core_options opt = {.below = KOFN_BELOW_PAUSE, .late = 2};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 0);
    say(&b, KOFN_EV_LEFT, 1);
    for (uint32_t w = 2; w < 4; w++) { /* everybody that is left is ready */
        b.now += 100;
        answer_worker(&b, w);
    }
    assert_true(b.running);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER);
    b.now += 1000000;
    say(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    join_and_store(&b);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* Waiting cannot help when every seat that can exist has answered. */
static void pausing_does_not_heal_instability(void **state)
{
    kofn_plan *p = make_plan("mds:k=3,basis=chebyshev", 4, 6);
    kofn_core_options opt = {.below = KOFN_BELOW_PAUSE, .tolerance = 1e-17};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_UNSTABLE);
    body_close(&b);
    kofn_plan_free(p);
}

/* A systematic code in want of workers hands over the plain blocks. */
static void degrade(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        kofn_plan *p = make_plan("elastic:k=3,basis=gauss_sys", 4, 6);
        kofn_core_options opt = {.below = KOFN_BELOW_DEGRADE,
                                 .in_flight = (kofn_in_flight)mode};
        body b;

        body_open(&b, p, &opt);
        populate(&b, 4);
        say(&b, KOFN_EV_BEGIN, 0);
        say(&b, KOFN_EV_LEFT, 3);
        say(&b, KOFN_EV_LEFT, 1);
        /* 0 and 2 hold plain blocks and compute all of them */
        answer_worker(&b, 0);
        assert_true(b.running);
        say(&b, KOFN_EV_LEFT, 2);
        assert_int_equal(b.ended, KOFN_PARTIAL);
        assert_true(asked(&b, 0, 0) >= 6);
        /* what is left of the last decoder is block 0 */
        body_close(&b);
        kofn_plan_free(p);
    }
}

/* Strips of the round for which the want `w` was not lost. */
static size_t plain_strips(kofn_core *c, size_t w)
{
    kofn_action a;
    size_t n = 0;

    while (kofn_core_next(c, &a))
        if (a.type == KOFN_DO_DECODE && a.decoder->copy[w] != KF_LOST)
            n += a.hi - a.lo;
    return n;
}

/* Every mode delivers all plain blocks of those who are left, however they
 * went: nothing that is there is given up. */
static void degraded_rounds_give_all_there_is(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss_sys", 3, 6);

    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        kofn_core_options opt = {.below = KOFN_BELOW_DEGRADE,
                                 .in_flight = (kofn_in_flight)mode};
        kofn_event ev = {.type = KOFN_EV_BEGIN};
        struct {
            uint32_t worker, task;
        } work[200];
        size_t works = 0, plain = 0;
        kofn_core *c;
        kofn_action a;

        assert_ok(kofn_core_new(&c, p, &opt));
        for (uint32_t w = 0; w < 6; w++) {
            ev = (kofn_event){.type = w % 2 ? KOFN_EV_STORED : KOFN_EV_JOINED,
                              .worker = w / 2};
            assert_ok(kofn_core_step(c, &ev));
            while (kofn_core_next(c, &a))
                continue;
        }
        for (int e = 0; e < 3; e++) { /* begin; 1 leaves; 2 leaves */
            ev = (kofn_event){.type = e ? KOFN_EV_LEFT : KOFN_EV_BEGIN,
                              .worker = (uint32_t)e};
            assert_ok(kofn_core_step(c, &ev));
            while (kofn_core_next(c, &a)) {
                assert_true(a.type != KOFN_DO_DELIVER);
                if (a.type == KOFN_DO_WORK && a.worker == 0) {
                    assert_true(works < 200);
                    work[works].worker = a.worker;
                    work[works++].task = a.task;
                }
            }
        }
        for (size_t i = 0; i < works; i++) {
            ev = (kofn_event){.type = KOFN_EV_RESULT,
                              .worker = work[i].worker,
                              .task = work[i].task};
            assert_ok(kofn_core_step(c, &ev));
            plain += plain_strips(c, 0);
        }
        assert_int_equal(plain, 6);
        kofn_core_free(c);
    }
    kofn_plan_free(p);
}

/* ---- (f) stragglers
 * ---------------------------------------------------------------------- */

static void others_are_asked_for_what_is_late(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 16);
    kofn_core_options opt = {.late = 3};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 100;
    answer_worker(&b, 0);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER);
    answer_worker(&b, 1); /* half are ready: three times as long, then */
    assert_int_equal(kofn_core_alarm(b.core), 300);
    answer_worker(&b, 2);
    size_t before = b.errands;
    b.now = 299;
    say(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.errands, before);
    b.now = 300;
    say(&b, KOFN_EV_ALARM, 0);
    /* worker 3 owes half a block: each strip of it is asked for once more */
    assert_int_equal(asked_of_all(&b, before), 8);
    assert_int_equal(asked(&b, 3, before), 0);
    assert_int_equal(kofn_core_alarm(b.core), 600);
    /* the straggler may still be the first */
    answer_worker(&b, 3);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* Alarms come to an end although time stands still. */
static void alarms_move_on(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 16);
    kofn_core_options opt = {.late = 1};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    for (uint32_t w = 0; w < 2; w++)
        answer_worker(&b, w); /* in no time */
    for (int i = 0; i < 50; i++) {
        b.now = kofn_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
        assert_true(kofn_core_alarm(b.core) > b.now);
    }
    assert_true(b.now > 1000000);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* A worker that is late with one thing is still better than none for another:
 * three live workers are enough for a code that needs three. */
static void the_late_are_a_last_resort(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 4, 8);
    kofn_core_options opt = {.late = 2, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 1);
    answer_worker(&b, 2);
    b.now = 20;
    say(&b, KOFN_EV_ALARM, 0); /* 0 and 3 are late */
    say(&b, KOFN_EV_LEFT, 0);
    answer_all(&b);
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* ---- (g) accuracy
 * ---------------------------------------------------------------------------
 */

static double predicted_error(kofn_plan *p, const uint32_t *seats, size_t n)
{
    kf_decoder *d;
    kf_code *code;
    double e;

    assert_ok(kf_code_new(&code, p));
    assert_ok(kf_decoder_new(&d, code, seats, n, false));
    e = d->predicted;
    kf_decoder_free(d);
    kf_code_free(code);
    return e;
}

static size_t insert(uint32_t *set, size_t n, uint32_t x)
{
    size_t i = n;

    for (; i > 0 && set[i - 1] > x; i--)
        set[i] = set[i - 1];
    set[i] = x;
    return n + 1;
}

/* With a tolerance between what k results give and what k + 1 give, one more
 * is asked for; below that, all; and then the round is refused. */
static void one_more_for_accuracy(void **state)
{
    kofn_plan *p = make_plan("elastic:k=6,basis=gauss", 8, 10);
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    double six = 0, seven = 0, eight = predicted_error(p, all, 8);
    body b;

    (void)state;
    for (size_t i = 0; i < 8; i++) { /* without i; without i and the next */
        uint32_t some[8];
        size_t n = 0;

        for (size_t k = 1; k < 8; k++)
            n = insert(some, n, (uint32_t)((i + k) % 8));
        seven = fmax(seven, predicted_error(p, some, 7));
        n = 0;
        for (size_t k = 2; k < 8; k++)
            n = insert(some, n, (uint32_t)((i + k) % 8));
        six = fmax(six, predicted_error(p, some, 6));
    }
    assert_true(six > 4 * seven && seven > 1.2 * eight);
    for (int i = 0; i < 3; i++) {
        kofn_core_options opt = {.pieces = 1,
                                 .tolerance = i == 0   ? 1.01 * seven
                                              : i == 1 ? eight * 1.01
                                                       : eight / 2};

        body_open(&b, p, &opt);
        populate(&b, 8);
        say(&b, KOFN_EV_BEGIN, 0);
        assert_int_equal(asked_of_all(&b, 0), 60);
        answer_all(&b);
        assert_false(b.running);
        assert_int_equal(b.ended, i < 2 ? KOFN_OK : KOFN_UNSTABLE);
        if (i < 2)
            assert_true(b.predicted <= opt.tolerance && b.predicted > 0);
        else
            assert_non_null(strstr(kofn_errmsg(), "tolerance"));
        assert_true(asked_of_all(&b, 0) > 60);
        if (i > 0) /* to the last */
            assert_int_equal(asked_of_all(&b, 0), 80);
        body_close(&b);
    }
    kofn_plan_free(p);
}

/* ---- (h) seats
 * ----------------------------------------------------------------------------------
 */

static void seats_are_reused_lowest_first(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 6);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 4);
    for (uint32_t w = 0; w < 4; w++)
        assert_int_equal(b.man[w].seat, w);
    say(&b, KOFN_EV_LEFT, 3);
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.man[join(&b)].seat, 1);
    assert_int_equal(b.man[join(&b)].seat, 3);
    assert_int_equal(b.man[join(&b)].seat, 4); /* a fresh row */
    assert_int_equal(b.man[join(&b)].seat, 5);
    say(&b, KOFN_EV_LEFT, 4); /* still storing */
    assert_int_equal(b.man[join(&b)].seat, 1);
    body_close(&b);
    kofn_plan_free(p);
}

static void without_a_seat_one_stands_by(void **state)
{
    kofn_plan *p = make_plan("mds:k=2,basis=harmonic", 3, 6);
    kofn_core_view v;
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 3);
    uint32_t a = join(&b), c = join(&b), d = join(&b);
    kofn_core_look(b.core, &v);
    assert_int_equal(v.standby, 3);
    say(&b, KOFN_EV_STORED, a); /* it has nothing to store */
    assert_int_equal(b.man[a].state, STANDBY);
    say(&b, KOFN_EV_LEFT, c); /* on its feet */
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.man[a].state, STORING); /* first come */
    assert_int_equal(b.man[a].seat, 1);
    say(&b, KOFN_EV_LEFT, a);
    assert_int_equal(b.man[d].seat, 1);
    say(&b, KOFN_EV_STORED, d);
    say(&b, KOFN_EV_BEGIN, 0);
    assert_true(asked(&b, d, 0) > 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* Each group has a code of its own: results of one say nothing about another,
 * and joiners go where they are needed most. */
static void groups_stand_side_by_side(void **state)
{
    kofn_plan *p = make_plan("elastic:k=4,groups=2,basis=gauss", 6, 5);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 6); /* 0 2 4 and 1 3 5 */
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 0);
    assert_true(b.running);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    say(&b, KOFN_EV_LEFT, 2);
    assert_int_equal(b.man[join_and_store(&b)].seat % 2, 0);
    assert_int_equal(b.man[join_and_store(&b)].seat % 2, 0);
    say(&b, KOFN_EV_LEFT, 1);
    say(&b, KOFN_EV_LEFT, 3);
    say(&b, KOFN_EV_BEGIN, 0); /* four are live, but one in the second group */
    assert_int_equal(b.ended, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "smallest group"));
    body_close(&b);
    kofn_plan_free(p);
}

/* ---- (b), (c): any events whatever
 * ------------------------------------------------------------------- */

static const struct {
    const char *spec;
    size_t workers, span;
} fleet[] = {
    {"uncoded", 3, 5},
    {"uncoded", 1, 1},
    {"replication:k=2", 5, 4},
    {"replication:k=1", 3, 9},
    {"mds:k=2", 4, 6},
    {"mds:k=3,basis=chebyshev", 5, 4},
    {"mds:k=3,basis=harmonic", 4, 11},
    {"mds:k=1", 3, 3},
    {"mds:k=3,weight=3,basis=gauss", 5, 3},
    {"elastic:k=3", 6, 13},
    {"elastic:k=2,basis=gauss_sys", 5, 1},
    {"elastic:k=4,groups=2", 8, 7},
    {"elastic:k=6,groups=3,basis=haar", 9, 6},
    {"elastic:k=3,deal=speed,basis=gauss", 5, 10},
    {"elastic:k=4,groups=2,deal=speed,basis=gauss", 8, 10},
    {"elastic:k=5,basis=vandermonde", 7, 8},
    {"elastic:k=4", 4, 9},
    {"elastic:k=2,groups=2,basis=cauchy", 6, 5},
};
#define FLEET (sizeof fleet / sizeof *fleet)

typedef struct census {
    size_t status[32], sequences, events, hedged;
} census;

static uint32_t some_man(const body *b, kf_rng *r, int from, int to)
{
    uint32_t n = 0, pick = UINT32_MAX;

    for (uint32_t w = 0; w < b->men; w++)
        if (b->man[w].state >= from && b->man[w].state <= to &&
            kf_rng_below(r, ++n) == 0)
            pick = w;
    return pick;
}

static size_t some_errand(const body *b, kf_rng *r)
{
    size_t n = 0, pick = SIZE_MAX;

    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].state == OUT && kf_rng_below(r, ++n) == 0)
            pick = i;
    return pick;
}

static void wild_event(body *b, kf_rng *r)
{
    static const uint32_t odd[] = {0, 1, 63, 400, 70000, UINT32_MAX};
    kofn_event ev = {
        .type = (kofn_event_type)kf_rng_below(r, 11),
        .worker = (uint32_t)kf_rng_below(r, b->men + 2),
        .task = b->first + (uint32_t)kf_rng_below(r, b->errands + 3),
        .took = kf_rng_below(r, 3) ? 0 : (kofn_time)kf_rng_below(r, 1000),
    };

    if (kf_rng_below(r, 4) == 0)
        ev.worker = odd[kf_rng_below(r, 6)];
    if (kf_rng_below(r, 4) == 0)
        ev.task -= (uint32_t)kf_rng_below(r, 40);
    /* The account ends at MEN; the core is meant to take such a number. */
    if (ev.type == KOFN_EV_JOINED &&
        (ev.worker > b->men + 3 || ev.worker >= MEN - 1) &&
        ev.worker <= b->core->workers + 65536)
        ev.worker = UINT32_MAX;
    tell(b, ev);
}

static void answer_some(body *b, kf_rng *r, kofn_event_type type)
{
    size_t i = some_errand(b, r);

    b->took = kf_rng_below(r, 2) ? 0 : 1 + (kofn_time)kf_rng_below(r, 1000);
    if (i != SIZE_MAX)
        answer(b, i, type);
}

static void send_some(body *b, kf_rng *r, kofn_event_type type, int from,
                      int to)
{
    uint32_t w = some_man(b, r, from, to);

    if (w != UINT32_MAX)
        say(b, type, w);
}

static void ring(body *b, kf_rng *r)
{
    kofn_time alarm = kofn_core_alarm(b->core);

    if (alarm != KOFN_NEVER && alarm > b->now && kf_rng_below(r, 3))
        b->now = alarm;
    say(b, KOFN_EV_ALARM, 0);
}

/* Some strips, one at least, or all of them. */
static void limit(body *b, kf_rng *r)
{
    size_t span = b->plan->span;

    b->lo = (size_t)kf_rng_below(r, span);
    b->hi = b->lo + 1 + (size_t)kf_rng_below(r, span - b->lo);
    if (kf_rng_below(r, 3) == 0)
        b->lo = b->hi = 0;
}

static void random_event(body *b, kf_rng *r)
{
    uint64_t x = kf_rng_below(r, 100);

    if (kf_rng_below(r, 3) == 0)
        b->now += (kofn_time)kf_rng_below(r, 300);
    if (x < 45)
        answer_some(b, r, KOFN_EV_RESULT);
    else if (x < 55)
        send_some(b, r, KOFN_EV_STORED, STORING, STORING);
    else if (x < 62 && b->men < MEN / 2)
        join(b);
    else if (x < 70)
        send_some(b, r, KOFN_EV_LEFT, STANDBY, LEAVING);
    else if (x < 72)
        send_some(b, r, KOFN_EV_LEAVING, LIVE, LIVE);
    else if (x < 75)
        answer_some(b, r, KOFN_EV_FAILED);
    else if (x < 82)
        ring(b, r);
    else if (x < 92)
        say(b, KOFN_EV_BEGIN, 0);
    else if (x < 94 && !b->running)
        limit(b, r);
    else
        wild_event(b, r);
}

static size_t able(const body *b, size_t group)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->men; w++)
        n += b->man[w].state == LIVE && !b->man[w].failed &&
             b->man[w].seat % groups(b) == group;
    return n;
}

static uint32_t some_failure(const body *b)
{
    for (uint32_t w = 0; w < b->men; w++)
        if (b->man[w].state == LIVE && b->man[w].failed)
            return w;
    return UINT32_MAX;
}

/* End whatever is under way: everybody answers, stores or leaves. */
static void calm_down(body *b, kf_rng *r)
{
    for (int i = 0; i < 4000 && b->running; i++) {
        if (some_errand(b, r) != SIZE_MAX)
            answer_some(b, r, KOFN_EV_RESULT);
        else if (some_man(b, r, STORING, STORING) != UINT32_MAX)
            send_some(b, r, KOFN_EV_STORED, STORING, STORING);
        else if (kofn_core_alarm(b->core) != KOFN_NEVER)
            ring(b, r);
        else if (some_man(b, r, LEAVING, LEAVING) != UINT32_MAX)
            send_some(b, r, KOFN_EV_LEFT, LEAVING, LEAVING);
        else if (some_failure(b) != UINT32_MAX) /* it sits on a seat */
            say(b, KOFN_EV_LEFT, some_failure(b));
        else
            join(b);
    }
    check(b, !b->running);
}

/* Make sure that every group has at least `enough` live members. */
static void fill_up(body *b, kf_rng *r)
{
    for (size_t g = 0; g < groups(b); g++)
        for (int i = 0; i < 1000 && able(b, g) < enough(b); i++) {
            if (some_man(b, r, LEAVING, LEAVING) != UINT32_MAX)
                send_some(b, r, KOFN_EV_LEFT, LEAVING, LEAVING);
            else if (some_man(b, r, STORING, STORING) != UINT32_MAX)
                send_some(b, r, KOFN_EV_STORED, STORING, STORING);
            else
                join(b);
        }
}

/* Somebody may go without its group falling below the threshold. */
static void lose_a_spare(body *b, kf_rng *r)
{
    uint32_t w = some_man(b, r, LIVE, LIVE);

    if (w != UINT32_MAX && able(b, b->man[w].seat % groups(b)) > enough(b))
        say(b, KOFN_EV_LEFT, w);
}

/* As long as `enough` of every group stay and everything is answered in the
 * end, the round ends, and well unless it would be inaccurate (law 8). */
static void a_survivable_round(body *b, kf_rng *r)
{
    fill_up(b, r);
    for (size_t g = 0; g < groups(b); g++)
        check(b, able(b, g) >= enough(b));
    say(b, KOFN_EV_BEGIN, 0);
    for (int i = 0; i < 4000 && b->running; i++) {
        uint64_t x = kf_rng_below(r, 16);

        b->now += (kofn_time)kf_rng_below(r, 50);
        if (x == 0)
            lose_a_spare(b, r);
        else if (x == 1)
            ring(b, r);
        else if (x == 2 && b->men < MEN / 2)
            join(b);
        else if (x == 3)
            send_some(b, r, KOFN_EV_STORED, STORING, STORING);
        else
            answer_some(b, r, KOFN_EV_RESULT);
    }
    check(b, !b->running);
    check(b, b->ended == KOFN_OK || b->ended == KOFN_UNSTABLE ||
                 (b->ended == KOFN_PARTIAL && b->opt.tolerance > 0) ||
                 (b->ended == KOFN_LATE && b->opt.tolerance > 0));
    check(b, b->ended == KOFN_OK || b->opt.tolerance > 0 ||
                 strstr(b->plan->spec, "vandermonde"));
}

static void send_again(const body *b)
{
    uint64_t digest = 0;
    kofn_core *c;
    kofn_action a;

    assert_ok(kofn_core_new(&c, b->plan, &b->opt));
    for (size_t i = 0; i < b->events; i++) {
        assert_ok(kofn_core_step(c, &b->event[i]));
        while (kofn_core_next(c, &a))
            digest = kofn_action_digest(digest, &a);
    }
    check(b, digest == b->digest);
    kofn_core_free(c);
}

static kofn_core_options random_options(kf_rng *r)
{
    static const double late[] = {0, 0, 1, 1.5, 4};
    static const unsigned pieces[] = {0, 1, 2, 7};
    static const double tolerances[] = {0, 0, 0, 3e-15, 2e-14};
    kofn_core_options o = {
        .in_flight = (kofn_in_flight)kf_rng_below(r, 3),
        .below = (kofn_below)kf_rng_below(r, 3),
        .patience = kf_rng_below(r, 2) ? 0 : 2000,
        .tolerance = tolerances[kf_rng_below(r, 5)],
        .late = late[kf_rng_below(r, 5)],
        .pieces = pieces[kf_rng_below(r, 4)],
    };

    return o;
}

/* Pausing for ever with a tolerance that can never be met may last for ever. */
static bool may_last(const body *b)
{
    return b->opt.below == KOFN_BELOW_PAUSE && b->opt.patience == 0 &&
           (b->opt.tolerance > 0 || strstr(b->plan->spec, "vandermonde"));
}

static void one_sequence(kofn_plan *plan, uint64_t seed, census *sum)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 77, 0);
    kofn_core_options opt = random_options(&r);
    size_t start = kf_rng_below(&r, plan->workers + 3), last = 0;
    body b;

    body_open(&b, plan, &opt);
    b.seed = seed;
    populate(&b, start);
    for (size_t i = 0, n = kf_rng_below(&r, 120); i < n; i++) {
        random_event(&b, &r);
        if (b.rounds > last)
            sum->status[b.ended + 16]++;
        last = b.rounds;
    }
    if (!may_last(&b)) {
        calm_down(&b, &r);
        a_survivable_round(&b, &r);
        sum->status[b.ended + 16]++;
    }
    send_again(&b);
    sum->sequences++;
    sum->events += b.events;
    body_close(&b);
}

static void any_events_whatever(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    uint64_t each = (uint64_t)(600 * test_scale());
#else
    uint64_t each = (uint64_t)(3000 * test_scale());
#endif
    static const kofn_status all[] = {KOFN_OK, KOFN_PARTIAL, KOFN_TOOFEW,
                                      KOFN_LATE, KOFN_UNSTABLE};
    census sum = {{0}, 0, 0, 0};

    (void)state;
    for (size_t f = 0; f < FLEET; f++) {
        kofn_plan *p =
            make_plan(fleet[f].spec, fleet[f].workers, fleet[f].span);

        for (uint64_t seed = 0; seed < each; seed++)
            one_sequence(p, seed * FLEET + f, &sum);
        kofn_plan_free(p);
    }
    print_message("%zu sequences, %zu events:", sum.sequences, sum.events);
    for (size_t i = 0; i < 5; i++) {
        print_message(" %zu %s%s", sum.status[all[i] + 16],
                      kofn_strerror(all[i]), i < 4 ? "," : "\n");
        assert_true(sum.status[all[i] + 16] > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_normal_life),
        cmocka_unit_test(undrained_actions_are_refused),
        cmocka_unit_test(what_does_not_fit_is_dropped),
        cmocka_unit_test(some_strips_only),
        cmocka_unit_test(a_round_without_workers),
        cmocka_unit_test(in_flight_modes),
        cmocka_unit_test(the_dead_are_believed),
        cmocka_unit_test(a_notice_lets_work_finish),
        cmocka_unit_test(whoever_fails_is_not_asked_again),
        cmocka_unit_test(refuse),
        cmocka_unit_test(reserves_are_called),
        cmocka_unit_test(pause_and_patience),
        cmocka_unit_test(lateness_is_not_impatience),
        cmocka_unit_test(pausing_does_not_heal_instability),
        cmocka_unit_test(degrade),
        cmocka_unit_test(degraded_rounds_give_all_there_is),
        cmocka_unit_test(others_are_asked_for_what_is_late),
        cmocka_unit_test(alarms_move_on),
        cmocka_unit_test(the_late_are_a_last_resort),
        cmocka_unit_test(one_more_for_accuracy),
        cmocka_unit_test(seats_are_reused_lowest_first),
        cmocka_unit_test(without_a_seat_one_stands_by),
        cmocka_unit_test(groups_stand_side_by_side),
        cmocka_unit_test(any_events_whatever),
    };

    return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
