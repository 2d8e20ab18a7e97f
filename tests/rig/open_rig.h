/* open_rig.h -- drives a coordinator core with several open products. It knows
 * the value of every row, and compares each decoded value with the numbers
 * that the symbols stand for. */
#ifndef KF_TEST_OPEN_RIG_H
#define KF_TEST_OPEN_RIG_H

#include "support.h"

#include "base/rng.h"
#include "core/state.h"

#include <math.h>

#define MOST_WORKERS 200
#define OPEN 3
#define PRODUCTS 12

typedef struct given_task {
    uint32_t worker, product, task, row;
    size_t group, lo, hi;
    bool out; /* it will be answered, cancelled or not */
    bool cancelled;
    bool lost; /* its worker has left, or the result has come */
    bool wrong;
} given_task;

/* A check that must be answered before the next event. */
typedef struct pending_check {
    uint32_t product, number;
    kofn_status status;
    uint32_t bad[MOST_WORKERS];
    size_t count;
} pending_check;

typedef struct open_product {
    uint32_t use;
    bool open;
    kofn_status ended;
    uint8_t *decoded; /* per group and strip */
} open_product;

typedef struct open_case {
    kofn_plan *plan;
    kofn_core *core;
    kofn_time now;
    uint32_t workers;
    bool storing[MOST_WORKERS], stored[MOST_WORKERS], gone[MOST_WORKERS],
        failed[MOST_WORKERS];
    given_task *task; /* all tasks that were ever given out */
    size_t tasks, cap;
    uint32_t products; /* numbers given out */
    open_product product[PRODUCTS + 1];
    pending_check *check;
    size_t checks, check_cap;
    size_t most_open, crossed; /* decoded while another was open */
    size_t located;
    bool faulty; /* one worker in seven is faulty */
} open_case;

static inline const kofn_plan *plan_of(const open_case *b, uint32_t product)
{
    return b->product[product].use ? b->plan->left : b->plan;
}

/* Returns the number that symbol s stands for in this strip of a group. */
static inline double symbol(uint32_t product, size_t group, size_t strip,
                            size_t s)
{
    kf_rng r =
        kf_rng_stream(product, KF_FOR_DATA, (uint32_t)group, (uint32_t)strip);
    double x = 0;

    for (size_t i = 0; i <= s; i++)
        x = (double)kf_rng_below(&r, 2000) / 1000 - 1;
    return x;
}

/* Returns the value of component `component` of a row in a strip. */
static inline double row_value(const open_case *b, uint32_t product,
                               size_t group, size_t strip, uint32_t row,
                               size_t component)
{
    const kf_seat *rows;
    const kf_row *g;
    double sum = 0;

    assert_ok(kf_code_seat(kf_core_use(b->core, b->product[product].use)->code,
                           row, &rows));
    g = &rows->G[component];
    for (size_t i = 0; i < g->n; i++)
        sum += g->val[i] * symbol(product, group, strip, g->col[i]);
    return sum;
}

/* Returns the value of want w in a strip. */
static inline double want_value(const open_case *b, uint32_t product,
                                size_t group, size_t strip, size_t w)
{
    const kofn_layout *L = &plan_of(b, product)->layout;
    double sum = 0;

    if (!L->W)
        return symbol(product, group, strip, w);
    for (size_t s = 0; s < L->symbols; s++)
        sum += L->W[w * L->symbols + s] * symbol(product, group, strip, s);
    return sum;
}

static inline const given_task *find(const open_case *b, uint32_t product,
                                     uint32_t task)
{
    for (size_t i = 0; i < b->tasks; i++)
        if (b->task[i].product == product && b->task[i].task == task)
            return &b->task[i];
    fail_msg("task %u of product %u was never given out", task, product);
    return NULL;
}

/* Checks all wants of a strip, decoded from the tasks of the action. */
static inline void decode_strip(const open_case *b, const kofn_action *a,
                                size_t strip)
{
    const kofn_decoder *d = a->decoder;
    size_t components = d->results / d->seats, mixed = 0;
    double *result = kf_new(d->results, sizeof *result);

    assert_non_null(result);
    for (size_t r = 0; r < d->results; r++) {
        const given_task *e = find(b, a->product, a->tasks[r / components]);

        assert_int_equal(e->row, d->seat[r / components]);
        assert_false(e->wrong);
        assert_true(e->group == a->group && e->lo <= strip && strip < e->hi);
        result[r] =
            row_value(b, a->product, a->group, strip, e->row, r % components);
    }
    for (size_t w = 0; w < d->wants; w++) {
        double x = 0;

        if (d->copy[w] >= 0)
            x = result[d->copy[w]];
        for (size_t r = 0; d->copy[w] < 0 && r < d->results; r++)
            x += d->D[mixed * d->results + r] * result[r];
        mixed += d->copy[w] < 0;
        if (fabs(x - want_value(b, a->product, a->group, strip, w)) > 1e-9)
            fail_msg("%s: want %zu of product %u", b->plan->spec, w,
                     a->product);
    }
    kf_free(result);
}

static inline size_t open_products(const open_case *b)
{
    size_t n = 0;

    for (uint32_t p = 1; p <= b->products; p++)
        n += b->product[p].open;
    return n;
}

/* Queues the verdict of a check: the wrong results, if there are at most
 * a->most of them. */
static inline void compare(open_case *b, const kofn_action *a)
{
    pending_check q = {.product = a->product, .number = a->task};

    for (size_t i = 0; i < a->count; i++)
        if (find(b, a->product, a->tasks[i])->wrong)
            q.bad[q.count++] = (uint32_t)i;
    if (q.count > a->most) {
        q.status = KOFN_CORRUPT;
        q.count = 0;
    }
    b->located += q.count;
    assert_ok(kf_grow(&b->check, &b->check_cap, b->checks, sizeof *b->check));
    b->check[b->checks++] = q;
}

static inline void cancelled(open_case *b, const kofn_action *a)
{
    for (size_t i = 0; i < b->tasks; i++)
        b->task[i].cancelled |=
            b->task[i].product == a->product && b->task[i].task == a->task;
}

static inline void apply_action(open_case *b, const kofn_action *a)
{
    open_product *p = &b->product[a->product];

    if (a->type == KOFN_DO_STORE)
        b->storing[a->worker] = true;
    if (a->type == KOFN_DO_STORE || a->type == KOFN_DO_EVICT)
        return;
    assert_in_range(a->product, 1, b->products);
    assert_true(p->open);
    if (a->type == KOFN_DO_WORK) {
        assert_true(b->stored[a->worker] && !b->gone[a->worker]);
        assert_ok(kf_grow(&b->task, &b->cap, b->tasks, sizeof *b->task));
        b->task[b->tasks++] = (given_task){.worker = a->worker,
                                           .product = a->product,
                                           .task = a->task,
                                           .row = (uint32_t)a->row,
                                           .group = a->group,
                                           .lo = a->lo,
                                           .hi = a->hi,
                                           .out = true};
    } else if (a->type == KOFN_DO_CANCEL) {
        cancelled(b, a);
    } else if (a->type == KOFN_DO_CHECK) {
        compare(b, a);
    } else if (a->type == KOFN_DO_DECODE) {
        b->crossed += open_products(b) > 1;
        for (size_t s = a->lo; s < a->hi; s++) {
            assert_int_equal(
                ++p->decoded[a->group * plan_of(b, a->product)->span + s], 1);
            if (a->decoder) /* else sums, of strips mixed on the way */
                decode_strip(b, a, s);
        }
    } else if (a->type == KOFN_DO_DELIVER) {
        p->open = false;
        p->ended = a->status;
    }
}

static inline void drain(open_case *b)
{
    const char *wrong = kf_core_assert_state(b->core);
    kofn_action a;

    if (wrong)
        fail_msg("%s: %s", b->plan->spec, wrong);
    while (kofn_core_next(b->core, &a))
        apply_action(b, &a);
}

static inline void step(open_case *b, kofn_event ev)
{
    ev.now = b->now;
    assert_ok(kofn_core_step(b->core, &ev));
    drain(b);
}

static inline void send_event(open_case *b, kofn_event ev)
{
    step(b, ev);
    while (b->checks > 0) {
        pending_check q = b->check[0];

        memmove(b->check, b->check + 1, --b->checks * sizeof q);
        step(b, (kofn_event){.type = KOFN_EV_VERDICT,
                             .product = q.product,
                             .task = q.number,
                             .status = q.status,
                             .bad = q.bad,
                             .bad_count = q.count});
    }
    for (uint32_t w = 0; w < b->workers;
         w++) /* a worker that was given a block has it */
        if (b->storing[w]) {
            b->storing[w] = false;
            b->stored[w] = true;
            send_event(b, (kofn_event){.type = KOFN_EV_STORED, .worker = w});
        }
}

static inline void join(open_case *b)
{
    uint32_t w = b->workers++;

    assert_true(w < MOST_WORKERS);
    send_event(b, (kofn_event){.type = KOFN_EV_JOINED, .worker = w});
}

static inline void end_worker(open_case *b, uint32_t w, kofn_event_type how)
{
    b->gone[w] = true;
    for (size_t i = 0; i < b->tasks; i++)
        b->task[i].out &= b->task[i].worker != w;
    send_event(b, (kofn_event){.type = how, .worker = w});
}

static inline void leave(open_case *b, uint32_t w)
{
    end_worker(b, w, KOFN_EV_LEFT);
}

static inline void begin(open_case *b, uint32_t use)
{
    open_product *p = &b->product[++b->products];

    *p = (open_product){.use = use, .open = true};
    p->decoded = kf_zero(b->plan->layout.groups, plan_of(b, b->products)->span);
    assert_non_null(p->decoded);
    send_event(b, (kofn_event){.type = KOFN_EV_BEGIN,
                               .product = b->products,
                               .use = use});
    b->most_open = kf_max(b->most_open, open_products(b));
}

static inline void answer(open_case *b, size_t i)
{
    given_task *e = &b->task[i];

    e->out = false;
    e->wrong = b->faulty && e->worker % 7 == 3;
    send_event(b, (kofn_event){.type = KOFN_EV_RESULT,
                               .worker = e->worker,
                               .product = e->product,
                               .task = e->task,
                               .row = e->row});
}

/* Cancels a product. It is over at once, and no worker has an outstanding task
 * of it. Later tasks of it fail in apply_action. */
static inline void cancel(open_case *b, uint32_t product)
{
    send_event(b, (kofn_event){.type = KOFN_EV_CANCEL, .product = product});
    assert_false(b->product[product].open);
    assert_int_equal(b->product[product].ended, KOFN_AGAIN);
    for (size_t i = 0; i < b->tasks; i++)
        assert_true(b->task[i].product != product || !b->task[i].out ||
                    b->task[i].cancelled);
}

static inline void case_open(open_case *b, const char *spec, size_t workers,
                             size_t span, size_t left,
                             const kofn_core_options *opt)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 1, 4, 1, KOFN_F64, false);
    kofn_plan *p;

    *b = (open_case){.now = 0};
    assert_ok(kofn_plan_new(&p, &pb, spec, workers, 5));
    pb.m = span * p->layout.groups * p->layout.cut[0].rows;
    kofn_plan_free(p);
    assert_ok(kofn_plan_new(&b->plan, &pb, spec, workers, 5));
    if (left)
        assert_ok(kofn_plan_serve_left(b->plan, left));
    assert_ok(kf_core_new(&b->core, b->plan, opt));
    while (b->workers < workers)
        join(b);
}

static inline void case_close(open_case *b)
{
    kofn_core_free(b->core);
    for (uint32_t p = 1; p <= b->products; p++)
        kf_free(b->product[p].decoded);
    kf_free(b->task);
    kf_free(b->check);
    kofn_plan_free(b->plan);
}

static inline size_t some_task(const open_case *b, kf_rng *r)
{
    size_t n = 0, pick = SIZE_MAX;

    for (size_t i = 0; i < b->tasks; i++)
        if (b->task[i].out && kf_rng_below(r, ++n) == 0)
            pick = i;
    return pick;
}

#endif
