/* scripted_core.h -- a coordinator without ports. Workers join, answer and
 * leave when the test says so, and what they are asked is listed. */
#ifndef KF_TEST_SCRIPTED_CORE_H
#define KF_TEST_SCRIPTED_CORE_H

#include "support.h"

#include "base/rng.h"
#include "core/state.h"

#define SCRIPT_WORKERS 96

typedef struct script_task {
    uint32_t worker, task, row;
    size_t seat, lo, hi;
    bool out;
} script_task;

typedef struct scripted_core {
    const kofn_plan *plan;
    kofn_core *core;
    kofn_time now;
    uint32_t workers; /* number of workers that ever joined */
    bool gone[SCRIPT_WORKERS];
    size_t seat[SCRIPT_WORKERS];
    script_task *task; /* of this round */
    size_t tasks, cap;
    uint32_t product; /* number of the product */
    bool running;
    kofn_status ended;
} scripted_core;

#define script_check(w, condition)                                             \
    do {                                                                       \
        if (!(condition))                                                      \
            fail_msg("%s, line %d: %s (%s)", (w)->plan->spec, __LINE__,        \
                     #condition, kofn_errmsg());                               \
    } while (0)

static inline void script_act(scripted_core *w, const kofn_action *a)
{
    switch (a->type) {
    case KOFN_DO_STORE:
        w->seat[a->worker] = a->seat;
        break;
    case KOFN_DO_WORK:
        assert_ok(kf_grow(&w->task, &w->cap, w->tasks, sizeof *w->task));
        w->task[w->tasks++] = (script_task){
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

static inline void script_say(scripted_core *w, kofn_event ev)
{
    kofn_action a;

    ev.now = w->now;
    script_check(w, kofn_core_step(w->core, &ev) == KOFN_OK);
    script_check(w, kf_core_assert_state(w->core) == NULL);
    while (kofn_core_next(w->core, &a))
        script_act(w, &a);
}

static inline uint32_t script_join(scripted_core *w)
{
    uint32_t i = w->workers++;

    assert_true(i < SCRIPT_WORKERS);
    script_say(w, (kofn_event){.type = KOFN_EV_JOINED, .worker = i});
    script_say(w, (kofn_event){.type = KOFN_EV_STORED, .worker = i});
    return i;
}

static inline void script_leave(scripted_core *w, uint32_t i)
{
    w->gone[i] = true;
    for (size_t k = 0; k < w->tasks; k++)
        w->task[k].out &= w->task[k].worker != i;
    script_say(w, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
}

/* Joins a worker for each seat of the plan. */
static inline void script_up(scripted_core *w, const kofn_plan *p,
                             const kofn_core_options *o)
{
    *w = (scripted_core){.plan = p};
    assert_ok(kf_core_new(&w->core, p, o));
    while (w->workers < p->workers)
        script_join(w);
}

static inline void script_down(scripted_core *w)
{
    kofn_core_free(w->core);
    kf_free(w->task);
}

static inline void script_begin(scripted_core *w)
{
    w->tasks = 0;
    w->running = true;
    script_say(w, (kofn_event){.type = KOFN_EV_BEGIN, .product = ++w->product});
}

static inline void script_answer(scripted_core *w, size_t i, kofn_time took)
{
    w->task[i].out = false;
    script_say(w, (kofn_event){.type = KOFN_EV_RESULT,
                               .worker = w->task[i].worker,
                               .product = w->product,
                               .task = w->task[i].task,
                               .row = w->task[i].row,
                               .took = took});
}

static inline void script_answer_all(scripted_core *w)
{
    for (size_t i = 0; i < w->tasks && w->running; i++)
        if (w->task[i].out)
            script_answer(w, i, 0);
}

static inline size_t script_alive(const scripted_core *w, size_t group)
{
    size_t n = 0;

    for (uint32_t i = 0; i < w->workers; i++)
        n += !w->gone[i] && w->seat[i] % w->plan->layout.groups == group;
    return n;
}

/* Draws a worker. Returns UINT32_MAX if it has left or its group needs it. */
static inline uint32_t script_spare(const scripted_core *w, kf_rng *r)
{
    uint32_t i = (uint32_t)kf_rng_below(r, w->workers);

    size_t alive = script_alive(w, w->seat[i] % w->plan->layout.groups);

    if (w->gone[i] ||
        (alive - 1) * w->plan->layout.submessages < w->plan->layout.threshold)
        return UINT32_MAX;
    return i;
}

/* Returns the number of strips asked of a worker from task `from` on. */
static inline size_t script_load(const scripted_core *w, uint32_t worker,
                                 size_t from)
{
    size_t n = 0;

    for (size_t i = from; i < w->tasks; i++)
        if (w->task[i].worker == worker)
            n += w->task[i].hi - w->task[i].lo;
    return n;
}

#endif
