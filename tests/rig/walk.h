/* walk.h -- a coordinator without a body: workers that join, answer and leave
 * at a word, and a list of what is asked of them. */
#ifndef KF_TEST_WALK_H
#define KF_TEST_WALK_H

#include "support.h"

#include "base/rng.h"
#include "core/state.h"

#define WALKERS 96

typedef struct walk_task {
    uint32_t worker, task, row;
    size_t seat, lo, hi;
    bool out;
} walk_task;

typedef struct walk {
    const kofn_plan *plan;
    kofn_core *core;
    kofn_time now;
    uint32_t workers; /* ever */
    bool gone[WALKERS];
    size_t seat[WALKERS];
    walk_task *task; /* of this round */
    size_t tasks, cap;
    uint32_t product; /* its number */
    bool running;
    kofn_status ended;
} walk;

#define walk_check(w, condition)                                               \
    do {                                                                       \
        if (!(condition))                                                      \
            fail_msg("%s, line %d: %s (%s)", (w)->plan->spec, __LINE__,        \
                     #condition, kofn_errmsg());                               \
    } while (0)

static inline void walk_act(walk *w, const kofn_action *a)
{
    switch (a->type) {
    case KOFN_DO_STORE:
        w->seat[a->worker] = a->seat;
        break;
    case KOFN_DO_WORK:
        assert_ok(kf_grow(&w->task, &w->cap, w->tasks, sizeof *w->task));
        w->task[w->tasks++] = (walk_task){
            a->worker, a->task, (uint32_t)a->row, w->seat[a->worker], a->lo,
            a->hi,     true};
        break;
    case KOFN_DO_CANCEL:
        for (size_t i = 0; i < w->tasks; i++)
            w->task[i].out &= w->task[i].task != a->task;
        break;
    case KOFN_DO_DECODE:
        break;
    case KOFN_DO_DELIVER:
        w->running = false;
        w->ended = a->status;
        break;
    case KOFN_DO_MIX:
    case KOFN_DO_CHECK:
    case KOFN_DO_EVICT:
    case KOFN_DO_END:
        break;
    }
}

static inline void walk_say(walk *w, kofn_event ev)
{
    kofn_action a;

    ev.now = w->now;
    walk_check(w, kofn_core_step(w->core, &ev) == KOFN_OK);
    walk_check(w, kf_core_check(w->core) == NULL);
    while (kofn_core_next(w->core, &a))
        walk_act(w, &a);
}

static inline uint32_t walk_join(walk *w)
{
    uint32_t i = w->workers++;

    assert_true(i < WALKERS);
    walk_say(w, (kofn_event){.type = KOFN_EV_JOINED, .worker = i});
    walk_say(w, (kofn_event){.type = KOFN_EV_STORED, .worker = i});
    return i;
}

static inline void walk_leave(walk *w, uint32_t i)
{
    w->gone[i] = true;
    for (size_t k = 0; k < w->tasks; k++)
        w->task[k].out &= w->task[k].worker != i;
    walk_say(w, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
}

/* Everybody the plan has a seat for. */
static inline void walk_up(walk *w, const kofn_plan *p,
                           const kofn_core_options *o)
{
    *w = (walk){.plan = p};
    assert_ok(kf_core_new(&w->core, p, o));
    while (w->workers < p->workers)
        walk_join(w);
}

static inline void walk_down(walk *w)
{
    kofn_core_free(w->core);
    kf_free(w->task);
}

static inline void walk_begin(walk *w)
{
    w->tasks = 0;
    w->running = true;
    walk_say(w, (kofn_event){.type = KOFN_EV_BEGIN, .product = ++w->product});
}

static inline void walk_answer(walk *w, size_t i, kofn_time took)
{
    w->task[i].out = false;
    walk_say(w, (kofn_event){.type = KOFN_EV_RESULT,
                             .worker = w->task[i].worker,
                             .product = w->product,
                             .task = w->task[i].task,
                             .row = w->task[i].row,
                             .took = took});
}

static inline void walk_answer_all(walk *w)
{
    for (size_t i = 0; i < w->tasks && w->running; i++)
        if (w->task[i].out)
            walk_answer(w, i, 0);
}

static inline size_t walk_alive(const walk *w, size_t group)
{
    size_t n = 0;

    for (uint32_t i = 0; i < w->workers; i++)
        n += !w->gone[i] && w->seat[i] % w->plan->layout.groups == group;
    return n;
}

/* Somebody whose group can do without it, if that is who is drawn. */
static inline uint32_t walk_spare(const walk *w, kf_rng *r)
{
    uint32_t i = (uint32_t)kf_rng_below(r, w->workers);

    size_t alive = walk_alive(w, w->seat[i] % w->plan->layout.groups);

    if (w->gone[i] ||
        (alive - 1) * w->plan->layout.submessages < w->plan->layout.threshold)
        return UINT32_MAX;
    return i;
}

/* Strips asked of a worker from task `from` on. */
static inline size_t walk_load(const walk *w, uint32_t worker, size_t from)
{
    size_t n = 0;

    for (size_t i = from; i < w->tasks; i++)
        if (w->task[i].worker == worker)
            n += w->task[i].hi - w->task[i].lo;
    return n;
}

#endif
