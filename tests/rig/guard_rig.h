/* guard_rig.h -- drives a coordinator core alone with faulty workers. An
 * oracle that knows the faulty workers replaces the arithmetic. */
#ifndef KF_TEST_GUARD_RIG_H
#define KF_TEST_GUARD_RIG_H

#include "support.h"

#include "base/rng.h"
#include "core/state.h"

#include <math.h>
#include <stdlib.h>

#define MOST 32

typedef struct guard_case {
    kofn_plan *plan;
    kofn_core *core;
    kofn_core_options opt;
    size_t workers, k;
    bool faulty[MOST], gone[MOST];
    uint32_t principal[MOST];
    bool conspire;         /* faulty results agree with k - 1 honest ones */
    size_t blind;          /* strips below it show errors without names */
    bool undecided_early;  /* undecided while another may come */
    bool undecided_always; /* checks are always undecided */
    size_t half;    /* arbitrarily faulty workers in a check; 0: unchecked */
    size_t lowered; /* checks in which it was smaller, by the located workers */
    struct {
        uint32_t worker, task, row;
        bool out;
    } task[4096];
    bool disagreed[4][1000]; /* strips of this round, by group */
    uint32_t product;        /* its number */
    size_t tasks, checks, independent, most_seen, sizes[MOST];
    bool running;
    kofn_status ended;
    kofn_action ask[64]; /* outstanding checks */
    uint32_t evidence[64][MOST];
    size_t asks;
} guard_case;

static inline uint32_t worker_of(const guard_case *b, uint32_t task)
{
    for (size_t i = 0; i < b->tasks; i++)
        if (b->task[i].task == task)
            return b->task[i].worker;
    fail_msg("task %u was never given out", task);
    return 0;
}

static inline size_t faulty_among(const guard_case *b, const kofn_action *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->count; i++)
        n += b->faulty[worker_of(b, a->tasks[i])];
    return n;
}

/* Checks that workers located in this round have no part in strips that
 * disagreed. */
static inline void without_located(const guard_case *b, const kofn_action *a)
{
    const kf_round *r = kf_newest(b->core);

    for (size_t i = 0; i < a->count; i++)
        assert_false(b->disagreed[a->group][a->lo] &&
                     r->load[worker_of(b, a->tasks[i])].located);
}

/* Checks the number of workers that may be arbitrarily wrong.  Each worker that
 * was located in this round and has no part in the check reduces it by one
 * (math/errors.md 2.5). */
static inline void less_by_located(guard_case *b, const kofn_action *a)
{
    const kf_round *r = kf_newest(b->core);
    size_t known = 0;

    for (uint32_t w = 0; w < b->workers; w++)
        known += r->load[w].located;
    for (size_t i = 0; i < a->count; i++)
        known -= r->load[worker_of(b, a->tasks[i])].located;
    assert_int_equal(a->liars, b->half - kf_min(b->half, known));
    b->lowered += known > 0;
}

static inline void apply_action(guard_case *b, const kofn_action *a)
{
    switch (a->type) {
    case KOFN_DO_WORK:
        assert_true(b->tasks < sizeof b->task / sizeof *b->task);
        b->task[b->tasks].worker = a->worker;
        b->task[b->tasks].task = a->task;
        b->task[b->tasks].row = (uint32_t)a->row;
        b->task[b->tasks++].out = true;
        break;
    case KOFN_DO_CANCEL:
        for (size_t i = 0; i < b->tasks; i++)
            b->task[i].out &= b->task[i].task != a->task;
        break;
    case KOFN_DO_CHECK:
        assert_true(a->count <= MOST && b->asks < 64);
        assert_int_equal(a->count, a->decoder->seats);
        without_located(b, a);
        if (b->half)
            less_by_located(b, a);
        b->ask[b->asks] = *a;
        memcpy(b->evidence[b->asks], a->tasks, a->count * 4);
        b->ask[b->asks].tasks = b->evidence[b->asks];
        b->asks++;
        b->checks++;
        b->independent = a->independent;
        b->sizes[a->count - 1]++;
        break;
    case KOFN_DO_DECODE: /* never from a wrong result */
        assert_int_equal(a->count, a->decoder->seats);
        assert_true(b->opt.errors == KOFN_ERRORS_NONE ||
                    faulty_among(b, a) == 0);
        break;
    case KOFN_DO_DELIVER:
        b->running = false;
        b->ended = a->status;
        break;
    case KOFN_DO_STORE:
    case KOFN_DO_MIX:
    case KOFN_DO_EVICT:
    case KOFN_DO_END:
        break;
    }
}

static inline void send_one(guard_case *b, kofn_event ev)
{
    kofn_action a;

    assert_ok(kofn_core_step(b->core, &ev));
    assert_null(kf_core_assert_state(b->core));
    while (kofn_core_next(b->core, &a))
        apply_action(b, &a);
}

/* Answers a check as the arithmetic would. Faulty workers are named if they
 * are at most a.most and k + 1 honest results are left. */
static inline void answer_check(guard_case *b)
{
    kofn_action a = b->ask[--b->asks];
    uint32_t bad[MOST];
    kofn_event ev = {.type = KOFN_EV_VERDICT,
                     .product = a.product,
                     .task = a.task,
                     .bad = bad};
    size_t faulty = faulty_among(b, &a), honest = a.count - faulty;

    b->most_seen = a.most > b->most_seen ? a.most : b->most_seen;
    if (b->conspire && faulty && honest <= a.most + b->k - 1) {
        for (uint32_t i = 0; i < a.count; i++)
            if (!b->faulty[worker_of(b, a.tasks[i])] && honest-- > b->k - 1)
                bad[ev.bad_count++] = i;
    } else if (b->undecided_always || (b->undecided_early && !a.last)) {
        ev.status = KOFN_AGAIN;
    } else if (faulty > a.most || (faulty && a.count - faulty <= b->k) ||
               (faulty && a.lo < b->blind)) {
        ev.status = KOFN_CORRUPT;
    } else {
        for (uint32_t i = 0; i < a.count; i++)
            if (b->faulty[worker_of(b, a.tasks[i])])
                bad[ev.bad_count++] = i;
    }
    for (size_t i = a.lo; i < a.hi && ev.status == KOFN_CORRUPT; i++)
        b->disagreed[a.group][i] = true;
    send_one(b, ev);
}

static inline void send_event(guard_case *b, kofn_event ev)
{
    send_one(b, ev);
    while (b->asks)
        answer_check(b);
}

static inline void join(guard_case *b, uint32_t worker, uint32_t principal)
{
    b->principal[worker] = principal;
    send_event(b, (kofn_event){.type = KOFN_EV_JOINED,
                               .worker = worker,
                               .principal = principal});
    send_event(b, (kofn_event){.type = KOFN_EV_STORED, .worker = worker});
}

static inline void join_all(guard_case *b)
{
    for (uint32_t i = 0; i < b->workers; i++)
        join(b, i, b->principal[i]);
}

/* Replaces the coordinator by another one for the same plan, with b->opt. */
static inline void restart_core(guard_case *b)
{
    kofn_core_free(b->core);
    assert_ok(kf_core_new(&b->core, b->plan, &b->opt));
    join_all(b);
}

static inline void open_problem(guard_case *b, const kofn_problem *pb,
                                const char *spec, size_t workers,
                                kofn_errors errors)
{
    *b = (guard_case){.workers = workers, .opt = KOFN_CORE_OPTIONS_INIT};
    b->opt.errors = errors;
    b->opt.max_error = 1e9;
    assert_ok(kofn_plan_new(&b->plan, pb, spec, workers, 1));
    b->k = b->plan->layout.enough;
    assert_ok(kf_core_new(&b->core, b->plan, &b->opt));
    join_all(b);
}

static inline void open_case(guard_case *b, const char *spec, size_t workers,
                             kofn_errors errors, kofn_dtype dtype)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 400, 10, 1, dtype, false);

    open_problem(b, &pb, spec, workers, errors);
}

static inline void close_case(guard_case *b)
{
    kofn_core_free(b->core);
    kofn_plan_free(b->plan);
}

static inline void begin(guard_case *b)
{
    b->tasks = b->checks = b->most_seen = 0;
    memset(b->sizes, 0, sizeof b->sizes);
    memset(b->disagreed, 0, sizeof b->disagreed);
    b->running = true;
    send_event(b, (kofn_event){.type = KOFN_EV_BEGIN, .product = ++b->product});
}

/* Answers `many` tasks in random order while the round runs. */
static inline void answer_some(guard_case *b, kf_rng *r, size_t many)
{
    while (b->running && many-- > 0) {
        size_t n = 0, pick = SIZE_MAX;

        for (size_t i = 0; i < b->tasks; i++)
            if (b->task[i].out && !b->gone[b->task[i].worker] &&
                kf_rng_below(r, ++n) == 0)
                pick = i;
        if (pick == SIZE_MAX)
            fail_msg("the coordinator waits for nothing");
        b->task[pick].out = false;
        send_event(b, (kofn_event){.type = KOFN_EV_RESULT,
                                   .worker = b->task[pick].worker,
                                   .product = b->product,
                                   .task = b->task[pick].task,
                                   .row = b->task[pick].row});
    }
}

static inline void finish(guard_case *b, kf_rng *r)
{
    answer_some(b, r, SIZE_MAX);
}

static inline size_t named(const guard_case *b)
{
    kf_core_view v;
    size_t n = 0;

    kf_core_look(b->core, 0, &v);
    for (size_t i = 0; i < v.workers; i++) {
        n += v.located[i] > 0;
        assert_true(!v.located[i] || b->faulty[i]); /* none is honest */
    }
    return n;
}

static inline void choose_faulty(guard_case *b, size_t t, kf_rng *r)
{
    for (size_t i = 0; i < b->workers; i++)
        b->faulty[i] = false;
    while (t > 0) {
        size_t i = (size_t)kf_rng_below(r, b->workers);

        t -= !b->faulty[i];
        b->faulty[i] = true;
    }
}

#endif
