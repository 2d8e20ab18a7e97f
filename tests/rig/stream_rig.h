/* stream_rig.h -- plays patterns of stragglers to the coordinator of a stream,
 * without matrices. It keeps its own account of the tasks and their outcomes,
 * and checks every action against it.
 *
 * Workers return whole lists. The time of a list is one unit for each task if
 * the worker is fast in this round, and `alpha` units if it is slow. */
#ifndef KF_TEST_STREAM_RIG_H
#define KF_TEST_STREAM_RIG_H

#include "support.h"

#include "core/state.h"

#include <stdlib.h>

#define UNIT 1000
#define MOST_WORKERS 8
#define ROUNDS 64
#define MOST_TASKS 4096

enum { OUT = 1, CAME, CANCELLED, LOST };

typedef struct given_task {
    uint32_t worker, product, task, row;
    unsigned round;
    int state;
} given_task;

typedef struct outcome {
    unsigned began, ended; /* rounds; ended == 0: it is open */
    kofn_status status;
    size_t plain, coded, repeats; /* rows that were given out */
} outcome;

typedef struct stage {
    kofn_plan *plan;
    kofn_core *core;
    kofn_time now, began;
    size_t P, products;
    unsigned round;
    bool running, here[MOST_WORKERS];
    given_task task[MOST_TASKS];
    size_t tasks;
    outcome product[ROUNDS + 1];
    size_t list[MOST_WORKERS],
        slots[ROUNDS + 1]; /* of this round; the longest of each round */
    kofn_time took[ROUNDS + 1];
    unsigned waits; /* rounds that continued after all fast workers were done */
    uint8_t mark[ROUNDS + 1][MOST_WORKERS];
    const char *pattern;     /* for messages */
    bool liar[MOST_WORKERS]; /* workers with results that are found wrong, if
                                there are enough others */
    kofn_event verdict[16];  /* not delivered */
    uint32_t bad[16][MOST_TASKS / 16];
    size_t verdicts;
} stage;

#define hold(s, condition)                                                     \
    do {                                                                       \
        if (!(condition))                                                      \
            fail_msg("%s, pattern %s, round %u, line %d: %s", (s)->plan->spec, \
                     (s)->pattern ? (s)->pattern : "-", (s)->round, __LINE__,  \
                     #condition);                                              \
    } while (0)

static inline kofn_plan *stream_plan(const char *spec, size_t P)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 60, 40, 60, KOFN_F64, false);
    kofn_plan *p;

    assert_ok(kofn_plan_new(&p, &pb, spec, P, 5));
    return p;
}

/* ---- actions ------------------------------------------------------------- */

static inline bool is_late(const stage *s, uint32_t worker)
{
    return s->core->stream.list[worker].late;
}

/* True if the row was given out, to a worker that still counts. If the number
 * of rows is limited, a row may be given out again after it was lost, or while
 * its worker is late. */
static inline bool was_given(const stage *s, uint32_t product, uint32_t row)
{
    bool few = s->plan->layout.max_seats < SIZE_MAX;

    for (size_t i = 0; i < s->tasks; i++) {
        const given_task *e = &s->task[i];

        if (e->product == product && e->row == row &&
            (!few || e->state == CAME ||
             (e->state == OUT && !is_late(s, e->worker))))
            return true;
    }
    return false;
}

/* True if this worker had the row in the round before, and did not complete
 * it. */
static inline bool is_repeat(const stage *s, const kofn_action *a)
{
    for (size_t i = 0; i < s->tasks; i++) {
        const given_task *e = &s->task[i];

        if (e->product == a->product && e->row == a->row &&
            e->worker == a->worker && e->state == CANCELLED &&
            e->round + 1 == s->round)
            return true;
    }
    return false;
}

static inline void take_work(stage *s, const kofn_action *a)
{
    const kofn_layout *L = &s->plan->layout;
    outcome *p = &s->product[a->product];

    hold(s, s->running && a->product <= s->products && !p->ended);
    hold(s, a->worker < MOST_WORKERS && s->here[a->worker]);
    hold(s, a->lo == 0 && a->hi == s->plan->span && a->group == 0);
    hold(s, a->row < L->max_seats && s->tasks < MOST_TASKS);
    if (L->repeats && is_repeat(s, a)) {
        p->repeats++;
    } else {
        hold(s, !was_given(s, (uint32_t)a->product, (uint32_t)a->row));
        ++*(a->row < L->plain ? &p->plain : &p->coded);
    }
    s->task[s->tasks++] = (given_task){a->worker,        a->product, a->task,
                                       (uint32_t)a->row, s->round,   OUT};
    s->list[a->worker]++;
}

static inline void take_cancel(stage *s, const kofn_action *a)
{
    for (size_t i = 0; i < s->tasks; i++)
        if (s->task[i].task == a->task) {
            hold(s, s->task[i].state == OUT && s->task[i].worker == a->worker);
            s->task[i].state = CANCELLED;
            return;
        }
    hold(s, !"a task that was given out");
}

static inline void take_end(stage *s, const kofn_action *a)
{
    kofn_stream_round r;
    size_t marked = 0;

    kf_core_round(s->core, &r);
    hold(s, s->running && a->product == s->round && r.round == s->round);
    for (size_t i = 0; i < s->tasks; i++)
        hold(s, s->task[i].state != OUT);
    for (size_t w = 0; w < r.workers; w++) {
        s->mark[s->round][w] = r.mark[w];
        marked += r.mark[w] == KOFN_MARKED;
    }
    hold(s, a->hi == marked);
    s->took[s->round] = s->now - s->began;
    hold(s, r.took == s->took[s->round]);
    s->running = false;
}

static inline bool is_lie(const stage *s, uint32_t task)
{
    for (size_t i = 0; i < s->tasks; i++)
        if (s->task[i].task == task)
            return s->liar[s->task[i].worker];
    hold(s, !"a task that was given out");
    return false;
}

/* Returns the largest number of these results that one worker gave. */
static inline size_t most_of_one(const stage *s, const kofn_action *a)
{
    size_t of[MOST_WORKERS] = {0}, most = 0;

    for (size_t i = 0; i < s->tasks; i++)
        for (size_t k = 0; k < a->count; k++)
            if (s->task[i].task == a->tasks[k])
                most = kf_max(most, ++of[s->task[i].worker]);
    return most;
}

/* Returns half of all possible answers to a product beyond those that decode.
 * A worker that was wrong in one task may be wrong in any other. */
static inline size_t half_of_all(const stage *s, const kofn_action *a)
{
    const kofn_layout *L = &s->plan->layout;
    size_t all = 0;

    for (size_t w = 0; w < MOST_WORKERS; w++)
        all += s->here[w] * (L->delay + 1);
    all = kf_max(all, a->count);
    return (all - kf_min(all, L->threshold)) / 2;
}

/* Answers a check in place of the arithmetic. It names faulty workers if their
 * number is within the limit. */
static inline void take_check(stage *s, const kofn_action *a)
{
    kofn_event *ev = &s->verdict[s->verdicts];
    uint32_t *bad = s->bad[s->verdicts++];

    hold(s, s->verdicts <= 16);
    hold(s, a->count >= s->plan->layout.enough + most_of_one(s, a) + a->most);
    hold(s, a->liars >= kf_max(most_of_one(s, a), half_of_all(s, a)));
    *ev = (kofn_event){.type = KOFN_EV_VERDICT,
                       .product = (uint32_t)a->product,
                       .task = a->task,
                       .bad = bad};
    for (uint32_t i = 0; i < a->count; i++)
        if (is_lie(s, a->tasks[i]))
            bad[ev->bad_count++] = i;
    if (ev->bad_count > a->most) {
        ev->status = KOFN_CORRUPT;
        ev->bad_count = 0;
    }
}

/* The worker's outstanding tasks will not be completed. */
static inline void take_give_up(stage *s, const kofn_action *a)
{
    hold(s, a->worker < MOST_WORKERS && s->here[a->worker]);
    s->here[a->worker] = false;
    for (size_t i = 0; i < s->tasks; i++)
        if (s->task[i].worker == a->worker && s->task[i].state == OUT)
            s->task[i].state = LOST;
}

/* Checks that no result of a decoded product is wrong. */
static inline void take_decode(stage *s, const kofn_action *a)
{
    hold(s, a->decoder && a->count >= s->plan->layout.enough);
    for (size_t i = 0; i < a->count; i++)
        hold(s, !is_lie(s, a->tasks[i]));
}

static inline void tell(stage *s, kofn_event ev)
{
    kofn_action a;

    ev.now = s->now;
    assert_ok(kofn_core_step(s->core, &ev));
    while (kofn_core_next(s->core, &a))
        switch (a.type) {
        case KOFN_DO_WORK:
            take_work(s, &a);
            break;
        case KOFN_DO_CANCEL:
            take_cancel(s, &a);
            break;
        case KOFN_DO_END:
            take_end(s, &a);
            break;
        case KOFN_DO_DELIVER:
            hold(s, !s->product[a.product].ended);
            s->product[a.product].ended = s->round;
            s->product[a.product].status = a.status;
            break;
        case KOFN_DO_DECODE:
            take_decode(s, &a);
            break;
        case KOFN_DO_CHECK:
            take_check(s, &a);
            break;
        case KOFN_DO_EVICT:
            take_give_up(s, &a);
            break;
        default:
            hold(s, !"an action of streams");
        }
    if (kf_core_assert_state(s->core))
        fail_msg("%s: %s", s->plan->spec, kf_core_assert_state(s->core));
    if (s->verdicts)
        tell(s, s->verdict[--s->verdicts]);
}

/* ---- a stream ------------------------------------------------------------ */

static inline void stage_join(stage *s, uint32_t worker)
{
    s->here[worker] = true;
    tell(s, (kofn_event){.type = KOFN_EV_JOINED, .worker = worker});
}

static inline void stage_open(stage *s, kofn_plan *plan,
                              const kofn_core_options *opt)
{
    kofn_core_options o =
        opt ? *opt
            : (kofn_core_options){.size = sizeof(kofn_core_options),
                                  .mu = 0.25};

    *s = (stage){.plan = plan, .P = plan->workers};
    o.open = KOFN_OPEN_MOST;
    assert_ok(kf_core_new(&s->core, plan, &o));
    for (uint32_t w = 0; w < s->P; w++)
        stage_join(s, w);
}

static inline void stage_close(stage *s)
{
    kofn_core_free(s->core);
}

static inline bool some_open(const stage *s)
{
    for (size_t i = 1; i <= s->products; i++)
        if (!s->product[i].ended)
            return true;
    return false;
}

static inline void begin_round(stage *s, bool product)
{
    kofn_event ev = {.type = KOFN_EV_BEGIN, .m = 60, .n = 40, .p = 60};

    memset(s->list, 0, sizeof s->list);
    s->round++;
    s->began = s->now;
    s->running = true;
    if (product) {
        ev.product = (uint32_t)++s->products;
        s->product[s->products].began = s->round;
    }
    tell(s, ev);
    for (size_t w = 0; w < MOST_WORKERS; w++)
        if (s->list[w] > s->slots[s->round])
            s->slots[s->round] = s->list[w];
}

/* Delivers all outstanding results of this worker. */
static inline void answer(stage *s, size_t worker)
{
    size_t n = s->tasks;

    for (size_t i = 0; i < n; i++) {
        given_task *e = &s->task[i];

        if (e->state != OUT || e->worker != worker)
            continue;
        e->state = CAME;
        tell(s, (kofn_event){.type = KOFN_EV_RESULT,
                             .worker = e->worker,
                             .product = e->product,
                             .task = e->task,
                             .row = e->row});
    }
}

static inline bool has_work(const stage *s, size_t worker)
{
    for (size_t i = 0; i < s->tasks; i++)
        if (s->task[i].state == OUT && s->task[i].worker == worker)
            return true;
    return false;
}

/* Rings the next alarm, if there is one by then. */
static inline bool ring_once(stage *s, kofn_time until)
{
    kofn_time at = kf_core_alarm(s->core);

    if (!s->running || at > until)
        return false;
    s->now = s->now < at ? at : s->now;
    tell(s, (kofn_event){.type = KOFN_EV_ALARM});
    return true;
}

static inline void ring(stage *s, kofn_time until)
{
    while (ring_once(s, until))
        ;
}

/* Plays the round. The workers of `slow` are slow. Workers that return
 * together do so in the order of their numbers, before an alarm of that time.
 */
static inline void play_round(stage *s, unsigned slow, size_t alpha)
{
    size_t list[MOST_WORKERS];
    kofn_time fast_done = 0;

    memcpy(list, s->list, sizeof list);
    for (size_t k = 0; s->running && k < MOST_WORKERS * 100; k++) {
        kofn_time next = KOFN_NEVER;
        kofn_time at[MOST_WORKERS];

        for (size_t w = 0; w < MOST_WORKERS; w++) {
            bool late = slow >> w & 1;

            at[w] = s->began + (kofn_time)(list[w] * UNIT * (late ? alpha : 1));
            if (!has_work(s, w))
                at[w] = KOFN_NEVER;
            else if (at[w] < s->now)
                at[w] = s->now; /* it got further tasks */
            next = at[w] < next ? at[w] : next;
            if (!late && at[w] != KOFN_NEVER && at[w] > fast_done)
                fast_done = at[w];
        }
        if (ring_once(s, next - 1)) /* further tasks may have been given out */
            continue;
        hold(s, next != KOFN_NEVER);
        s->now = next;
        for (size_t w = 0; w < MOST_WORKERS && s->running; w++)
            if (at[w] == next)
                answer(s, w);
        ring(s, next);
    }
    hold(s, !s->running);
    if (fast_done && s->took[s->round] > (fast_done - s->began) * 5 / 4 + 1)
        s->waits++;
}

/* Plays a stream of `products` products. Each round has one product while
 * there are any. Rounds without one follow until all are over. Bits (t - 1) P
 * and on of the pattern belong to round t. */
static inline void play(stage *s, size_t products, const unsigned *slow,
                        size_t rounds, size_t alpha)
{
    while (s->products < products || some_open(s)) {
        hold(s, s->round < ROUNDS);
        begin_round(s, s->products < products);
        play_round(s, s->round <= rounds ? slow[s->round - 1] : 0, alpha);
    }
}

/* Checks that every product is over by its due round. */
static inline void check_deadlines(stage *s)
{
    for (size_t i = 1; i <= s->products; i++) {
        hold(s, s->product[i].status == KOFN_OK);
        hold(s, s->product[i].ended <=
                    s->product[i].began + s->plan->layout.delay);
    }
}

/* ---- the models, by their definitions ------------------------------------ */

static inline size_t marks_of(const stage *s, unsigned round)
{
    size_t n = 0;

    for (size_t w = 0; w < s->P; w++)
        n += s->mark[round][w] == KOFN_MARKED;
    return n;
}

/* True if any W successive rounds have at most N marks. */
static inline bool arbitrary(const stage *s, size_t W, size_t N)
{
    for (unsigned from = 1; from <= s->round; from++) {
        size_t marks = 0;

        for (unsigned t = from; t < from + W && t <= s->round; t++)
            marks += marks_of(s, t);
        if (marks > N)
            return false;
    }
    return true;
}

/* True if any W successive rounds have at most eps marked workers, each of
 * them within B rounds. */
static inline bool bursty(const stage *s, size_t B, size_t W, size_t eps)
{
    for (unsigned from = 1; from <= s->round; from++) {
        size_t workers = 0;

        for (size_t w = 0; w < s->P; w++) {
            unsigned first = 0, last = 0;

            for (unsigned t = from; t < from + W && t <= s->round; t++)
                if (s->mark[t][w] == KOFN_MARKED) {
                    first = first ? first : t;
                    last = t;
                }
            workers += first > 0;
            if (first && last - first + 1 > B)
                return false;
        }
        if (workers > eps)
            return false;
    }
    return true;
}

#endif
