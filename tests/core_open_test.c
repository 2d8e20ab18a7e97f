/* core_open_test.c -- several products open at once, and workers that answer
 * rows that are not those of their seats. */
#include "support.h"

#include "base/rng.h"
#include "core/state.h"

#include <math.h>

#define MEN 200
#define OPEN 3
#define PRODUCTS 12

/* ---- a body that knows what every row comes to --------------------------- */

typedef struct errand {
    uint32_t worker, product, task, row;
    size_t group, lo, hi;
    bool out; /* it will be answered, cancelled or not */
    bool cancelled;
    bool lost; /* its worker is gone, or it has come    */
    bool wrong;
} errand;

/* A check that is to be answered before anything else. */
typedef struct question {
    uint32_t product, number;
    kofn_status status;
    uint32_t bad[MEN];
    size_t count;
} question;

typedef struct open_product {
    uint32_t use;
    bool open;
    kofn_status ended;
    uint8_t *decoded; /* per group and strip */
} open_product;

typedef struct body {
    kofn_plan *plan;
    kofn_core *core;
    kofn_time now;
    uint32_t men;
    bool storing[MEN], stored[MEN], gone[MEN], failed[MEN];
    errand *errand; /* ever */
    size_t errands, cap;
    uint32_t products; /* numbers given out */
    open_product product[PRODUCTS + 1];
    question *asked;
    size_t questions, question_cap;
    size_t most_open, crossed; /* decoded while another was open */
    size_t located;
    bool liars; /* one worker in seven is one */
} body;

static const kofn_plan *plan_of(const body *b, uint32_t product)
{
    return b->product[product].use ? b->plan->left : b->plan;
}

/* The number that symbol s is in this strip of a group. */
static double symbol(uint32_t product, size_t group, size_t strip, size_t s)
{
    kf_rng r =
        kf_rng_stream(product, KF_FOR_DATA, (uint32_t)group, (uint32_t)strip);
    double x = 0;

    for (size_t i = 0; i <= s; i++)
        x = (double)kf_rng_below(&r, 2000) / 1000 - 1;
    return x;
}

/* What lane `lane` of a row says of a strip. */
static double said(const body *b, uint32_t product, size_t group, size_t strip,
                   uint32_t row, size_t lane)
{
    const kf_seat *rows;
    const kf_row *g;
    double sum = 0;

    assert_ok(kf_code_seat(kofn_core_code(b->core, b->product[product].use),
                           row, &rows));
    g = &rows->G[lane];
    for (size_t i = 0; i < g->n; i++)
        sum += g->val[i] * symbol(product, group, strip, g->col[i]);
    return sum;
}

/* What want w is of a strip. */
static double wanted(const body *b, uint32_t product, size_t group,
                     size_t strip, size_t w)
{
    const kofn_layout *L = &plan_of(b, product)->layout;
    double sum = 0;

    if (!L->W)
        return symbol(product, group, strip, w);
    for (size_t s = 0; s < L->symbols; s++)
        sum += L->W[w * L->symbols + s] * symbol(product, group, strip, s);
    return sum;
}

static const errand *find(const body *b, uint32_t product, uint32_t task)
{
    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].product == product && b->errand[i].task == task)
            return &b->errand[i];
    fail_msg("task %u of product %u was never given out", task, product);
    return NULL;
}

/* All wants of a strip, from the tasks of the action. */
static void decode_strip(const body *b, const kofn_action *a, size_t strip)
{
    const kf_decoder *d = a->decoder;
    size_t lanes = d->results / d->seats, mixed = 0;
    double *result = kf_new(d->results, sizeof *result);

    assert_non_null(result);
    for (size_t r = 0; r < d->results; r++) {
        const errand *e = find(b, a->product, a->tasks[r / lanes]);

        assert_int_equal(e->row, d->seat[r / lanes]);
        assert_false(e->wrong);
        assert_true(e->group == a->group && e->lo <= strip && strip < e->hi);
        result[r] = said(b, a->product, a->group, strip, e->row, r % lanes);
    }
    for (size_t w = 0; w < d->wants; w++) {
        double x = 0;

        if (d->copy[w] >= 0)
            x = result[d->copy[w]];
        for (size_t r = 0; d->copy[w] < 0 && r < d->results; r++)
            x += d->D[mixed * d->results + r] * result[r];
        mixed += d->copy[w] < 0;
        if (fabs(x - wanted(b, a->product, a->group, strip, w)) > 1e-9)
            fail_msg("%s: want %zu of product %u", b->plan->spec, w,
                     a->product);
    }
    kf_free(result);
}

static size_t open_products(const body *b)
{
    size_t n = 0;

    for (uint32_t p = 1; p <= b->products; p++)
        n += b->product[p].open;
    return n;
}

/* Whoever compares the results finds those that are wrong, if they are no more
 * than may be left out. */
static void compare(body *b, const kofn_action *a)
{
    question q = {.product = a->product, .number = a->task};

    for (size_t i = 0; i < a->count; i++)
        if (find(b, a->product, a->tasks[i])->wrong)
            q.bad[q.count++] = (uint32_t)i;
    if (q.count > a->most) {
        q.status = KOFN_CORRUPT;
        q.count = 0;
    }
    b->located += q.count;
    assert_ok(
        kf_grow(&b->asked, &b->question_cap, b->questions, sizeof *b->asked));
    b->asked[b->questions++] = q;
}

static void cancelled(body *b, const kofn_action *a)
{
    for (size_t i = 0; i < b->errands; i++)
        b->errand[i].cancelled |=
            b->errand[i].product == a->product && b->errand[i].task == a->task;
}

static void take(body *b, const kofn_action *a)
{
    open_product *p = &b->product[a->product];

    if (a->type == KOFN_DO_STORE)
        b->storing[a->worker] = true;
    if (a->type == KOFN_DO_STORE || a->type == KOFN_DO_GIVE_UP)
        return;
    assert_in_range(a->product, 1, b->products);
    assert_true(p->open);
    if (a->type == KOFN_DO_WORK) {
        assert_true(b->stored[a->worker] && !b->gone[a->worker]);
        assert_ok(kf_grow(&b->errand, &b->cap, b->errands, sizeof *b->errand));
        b->errand[b->errands++] = (errand){.worker = a->worker,
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

static void drain(body *b)
{
    const char *wrong = kf_core_check(b->core);
    kofn_action a;

    if (wrong)
        fail_msg("%s: %s", b->plan->spec, wrong);
    while (kofn_core_next(b->core, &a))
        take(b, &a);
}

static void step(body *b, kofn_event ev)
{
    ev.now = b->now;
    assert_ok(kofn_core_step(b->core, &ev));
    drain(b);
}

static void tell(body *b, kofn_event ev)
{
    step(b, ev);
    while (b->questions > 0) {
        question q = b->asked[0];

        memmove(b->asked, b->asked + 1, --b->questions * sizeof q);
        step(b, (kofn_event){.type = KOFN_EV_VERDICT,
                             .product = q.product,
                             .task = q.number,
                             .status = q.status,
                             .bad = q.bad,
                             .bad_count = q.count});
    }
    for (uint32_t w = 0; w < b->men; w++) /* who was given a block has it */
        if (b->storing[w]) {
            b->storing[w] = false;
            b->stored[w] = true;
            tell(b, (kofn_event){.type = KOFN_EV_STORED, .worker = w});
        }
}

static void join(body *b)
{
    uint32_t w = b->men++;

    assert_true(w < MEN);
    tell(b, (kofn_event){.type = KOFN_EV_JOINED, .worker = w});
}

static void go(body *b, uint32_t w, kofn_event_type how)
{
    b->gone[w] = true;
    for (size_t i = 0; i < b->errands; i++)
        b->errand[i].out &= b->errand[i].worker != w;
    tell(b, (kofn_event){.type = how, .worker = w});
}

static void leave(body *b, uint32_t w)
{
    go(b, w, KOFN_EV_LEFT);
}

static void begin(body *b, uint32_t use)
{
    open_product *p = &b->product[++b->products];

    *p = (open_product){.use = use, .open = true};
    p->decoded = kf_zero(b->plan->layout.groups, plan_of(b, b->products)->span);
    assert_non_null(p->decoded);
    tell(b, (kofn_event){
                .type = KOFN_EV_BEGIN, .product = b->products, .use = use});
    b->most_open = kf_max(b->most_open, open_products(b));
}

static void answer(body *b, size_t i)
{
    errand *e = &b->errand[i];

    e->out = false;
    e->wrong = b->liars && e->worker % 7 == 3;
    tell(b, (kofn_event){.type = KOFN_EV_RESULT,
                         .worker = e->worker,
                         .product = e->product,
                         .task = e->task,
                         .row = e->row});
}

/* It is over at once, and nobody has anything of it in hand; more is never asked
 * of it: see `take`. */
static void cancel(body *b, uint32_t product)
{
    tell(b, (kofn_event){.type = KOFN_EV_CANCEL, .product = product});
    assert_false(b->product[product].open);
    assert_int_equal(b->product[product].ended, KOFN_AGAIN);
    for (size_t i = 0; i < b->errands; i++)
        assert_true(b->errand[i].product != product || !b->errand[i].out ||
                    b->errand[i].cancelled);
}

static void body_open(body *b, const char *spec, size_t workers, size_t span,
                      size_t left, const kofn_core_options *opt)
{
    kofn_problem pb = {KOFN_MATVEC, 1, 4, 1, KOFN_F64, false};
    kofn_plan *p;

    *b = (body){.now = 0};
    assert_ok(kofn_plan_new(&p, &pb, spec, workers, 5));
    pb.m = span * p->layout.groups * p->layout.cut[0].rows;
    kofn_plan_free(p);
    assert_ok(kofn_plan_new(&b->plan, &pb, spec, workers, 5));
    if (left)
        assert_ok(kofn_plan_serve_left(b->plan, left));
    assert_ok(kofn_core_new(&b->core, b->plan, opt));
    while (b->men < workers)
        join(b);
}

static void body_close(body *b)
{
    kofn_core_free(b->core);
    for (uint32_t p = 1; p <= b->products; p++)
        kf_free(b->product[p].decoded);
    kf_free(b->errand);
    kf_free(b->asked);
    kofn_plan_free(b->plan);
}

static size_t some_errand(const body *b, kf_rng *r)
{
    size_t n = 0, pick = SIZE_MAX;

    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].out && kf_rng_below(r, ++n) == 0)
            pick = i;
    return pick;
}

/* ---- several products ---------------------------------------------------- */

static void something(body *b, kf_rng *r)
{
    uint64_t x = kf_rng_below(r, 40);
    uint32_t w = (uint32_t)kf_rng_below(r, b->men);
    size_t i = some_errand(b, r);

    b->now += (kofn_time)kf_rng_below(r, 100);
    if (x < 3 && open_products(b) < OPEN && b->products < PRODUCTS) {
        begin(b, b->plan->left && kf_rng_below(r, 2));
    } else if (x == 3 && b->men < MEN / 2) {
        join(b);
    } else if (x == 4 && b->men < MEN / 2 && !b->gone[w]) {
        go(b, w, kf_rng_below(r, 3) ? KOFN_EV_LEFT : KOFN_EV_MUTE);
        join(b);
    } else if (x == 7) {
        b->failed[w] = true; /* it goes in the end, for others to come */
        tell(b, (kofn_event){.type = KOFN_EV_LEAVING, .worker = w});
    } else if (x == 8 && i != SIZE_MAX) { /* of another product, or no task */
        const errand *e = &b->errand[i];

        tell(b, (kofn_event){.type = KOFN_EV_RESULT,
                             .worker = e->worker,
                             .product = 1 + (uint32_t)kf_rng_below(r, PRODUCTS),
                             .task = e->task + 1000000,
                             .row = e->row});
    } else if (x == 5) {
        tell(b, (kofn_event){.type = KOFN_EV_ALARM});
    } else if (x == 6 && i != SIZE_MAX) {
        errand *e = &b->errand[i];

        e->out = false;
        b->failed[e->worker] = true;
        tell(b, (kofn_event){.type = KOFN_EV_FAILED,
                             .worker = e->worker,
                             .product = e->product,
                             .task = e->task,
                             .row = e->row});
    } else if (i != SIZE_MAX) { /* cancelled or not, and of products past */
        answer(b, i);
    }
}

/* Everybody answers, and others come in the place of those who failed or gave
 * notice, until nothing is open. */
static void calm_down(body *b, kf_rng *r)
{
    uint32_t failed = 0;

    for (int i = 0; i < 20000 && open_products(b); i++) {
        size_t e = some_errand(b, r);

        while (failed < b->men && (!b->failed[failed] || b->gone[failed]))
            failed++;
        if (e != SIZE_MAX)
            answer(b, e);
        else if (failed < b->men)
            leave(b, failed);
        else
            join(b);
    }
    assert_int_equal(open_products(b), 0);
}

/* Who is located as corrupt in one product gets no more work of others once it
 * was often enough; each product has checks of its own. */
static void liars_among_products(void **state)
{
    static const struct {
        const char *spec;
        size_t workers;
    } fleet[] = {{"elastic:k=3,basis=gauss", 9},
                 {"mds:k=2,basis=gauss", 7},
                 {"elastic:k=4,groups=2,basis=gauss", 16}};
    size_t located = 0, ok = 0, all = 0, crossed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 90; seed++) {
        size_t f = seed % (sizeof fleet / sizeof *fleet);
        kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 79, 0);
        kofn_core_options opt = {.open = OPEN,
                                 .errors = seed / 3 % 2
                                               ? KOFN_ERRORS_PROBABILISTIC
                                               : KOFN_ERRORS_ADVERSARIAL,
                                 .below = KOFN_BELOW_PAUSE,
                                 .pieces = 1 + (unsigned)(seed % 4),
                                 .late = seed % 2 ? 1.5 : 0};
        body b;

        body_open(&b, fleet[f].spec, fleet[f].workers, 5, 0, &opt);
        b.liars = true;
        for (int i = 0; i < 400; i++)
            something(&b, &r);
        calm_down(&b, &r);
        for (uint32_t p = 1; p <= b.products; p++) {
            kofn_status st = b.product[p].ended;

            assert_true(st == KOFN_OK || st == KOFN_CORRUPT ||
                        st == KOFN_TOOFEW);
            ok += st == KOFN_OK;
            all++;
        }
        located += b.located;
        crossed += b.crossed;
        body_close(&b);
    }
    assert_true(located > 100 && crossed > 100);
    assert_true(ok > all / 2);
}

static void products_do_not_disturb_each_other(void **state)
{
    static const struct {
        const char *spec;
        size_t workers, left;
    } fleet[] = {{"elastic:k=3,basis=gauss", 6, 0},
                 {"mds:k=3", 6, 0},
                 {"elastic:k=2,basis=gauss", 5, 3}, /* left: adjoint */
                 {"elastic:k=4,groups=2,basis=gauss", 8, 0},
                 {"replication:k=2", 6, 0},
                 {"gpd:m=2,n=1,p=1", 6, 4}};
    size_t most = 0, crossed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 240; seed++) {
        size_t f = seed % (sizeof fleet / sizeof *fleet);
        kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 78, 0);
        kofn_core_options opt = {.open = OPEN,
                                 .in_flight = seed / 6 % 2
                                                  ? KOFN_IN_FLIGHT_KEEP
                                                  : KOFN_IN_FLIGHT_LEDGER,
                                 .below = KOFN_BELOW_PAUSE,
                                 .pieces = 1 + (unsigned)(seed % 4),
                                 .late = seed % 3 ? 1.5 : 0};
        body b;

        body_open(&b, fleet[f].spec, fleet[f].workers, 5 + seed % 4,
                  fleet[f].left, &opt);
        for (int i = 0; i < 400; i++)
            something(&b, &r);
        calm_down(&b, &r);
        for (uint32_t p = 1; p <= b.products; p++) {
            assert_int_equal(b.product[p].ended, KOFN_OK);
            for (size_t s = 0; s < b.plan->layout.groups * plan_of(&b, p)->span;
                 s++)
                assert_int_equal(b.product[p].decoded[s], 1);
        }
        most = kf_max(most, b.most_open);
        crossed += b.crossed;
        body_close(&b);
    }
    assert_int_equal(most, OPEN);
    assert_true(crossed > 1000);
}

/* The nth of those that are open, or 0. */
static uint32_t nth_open(const body *b, size_t nth)
{
    for (uint32_t p = 1; p <= b->products; p++)
        if (b->product[p].open && nth-- == 0)
            return p;
    return 0;
}

/* Whichever of the products that are open is cancelled, after whichever event:
 * the others come to their end, by answers that are their own, and what still
 * comes of it is dropped. */
static void one_is_cancelled_after_any_event(void **state)
{
    static const struct {
        const char *spec;
        size_t workers, left;
        bool liars;
    } fleet[] = {{"elastic:k=3,basis=gauss", 6, 0, false},
                 {"elastic:k=2,basis=gauss", 5, 3, false}, /* left: adjoint */
                 {"elastic:k=4,groups=2,basis=gauss", 8, 0, false},
                 {"gpd:m=2,n=1,p=1", 6, 4, false},
                 {"mds:k=2,basis=gauss", 7, 0, true}};
    size_t cancels = 0, ended = 0;

    (void)state;
    for (size_t f = 0; f < sizeof fleet / sizeof *fleet; f++)
        for (int events = 0; events <= 60; events++)
            for (size_t nth = 0; nth < OPEN; nth++) {
                kf_rng r = kf_rng_stream(f, KF_FOR_DATA, 80, 0);
                kofn_core_options opt = {
                    .open = OPEN,
                    .errors = fleet[f].liars ? KOFN_ERRORS_PROBABILISTIC
                                             : KOFN_ERRORS_NONE,
                    .below = KOFN_BELOW_PAUSE,
                    .late = 1.5};
                uint32_t gone;
                body b;

                body_open(&b, fleet[f].spec, fleet[f].workers, 5, fleet[f].left,
                          &opt);
                b.liars = fleet[f].liars;
                for (int i = 0; i < events; i++)
                    something(&b, &r);
                gone = nth_open(&b, nth);
                if (gone) {
                    cancel(&b, gone);
                    cancels++;
                }
                for (int i = 0; i < 40; i++)
                    something(&b, &r);
                calm_down(&b, &r);
                for (uint32_t p = 1; p <= b.products; p++) {
                    if (p != gone && !b.liars)
                        assert_int_equal(b.product[p].ended, KOFN_OK);
                    ended += p != gone && b.product[p].ended == KOFN_OK;
                }
                body_close(&b);
            }
    assert_true(cancels > 300 && ended > cancels);
}

/* One that is over, or that never was, cannot be. */
static void what_cannot_be_cancelled(void **state)
{
    kofn_core_options opt = {.open = 2};
    kofn_core_view v;
    body b;

    (void)state;
    body_open(&b, "mds:k=2,basis=gauss", 3, 4, 0, &opt);
    begin(&b, 0);
    begin(&b, 0);
    cancel(&b, 1);
    for (uint32_t p = 0; p < 4; p++)
        if (p != 2)
            tell(&b, (kofn_event){.type = KOFN_EV_CANCEL, .product = p});
    kofn_core_look(b.core, &v);
    assert_int_equal(v.dropped, 3);
    assert_true(b.product[2].open);
    begin(&b, 0); /* there is room for it */
    assert_true(b.product[3].open);
    body_close(&b);
}

/* One more than may be open is refused, and so is a number that was given. */
static void as_many_as_may_be_open(void **state)
{
    kofn_core_view v;
    body b;

    (void)state;
    for (unsigned open = 0; open < 3; open++) {
        kofn_core_options opt = {.open = open};
        size_t may = open ? open : 1;

        body_open(&b, "mds:k=2,basis=gauss", 3, 4, 0, &opt);
        for (uint32_t p = 1; p <= may; p++)
            begin(&b, 0);
        kofn_core_look(b.core, &v);
        assert_int_equal(v.round, may);
        assert_int_equal(v.dropped, 0);
        tell(&b,
             (kofn_event){.type = KOFN_EV_BEGIN, .product = (uint32_t)may + 1});
        while (b.product[1].open)
            answer(&b, some_errand(&b, &(kf_rng){0}));
        tell(&b, (kofn_event){.type = KOFN_EV_BEGIN, .product = 1});
        tell(&b, (kofn_event){.type = KOFN_EV_BEGIN, .product = 9, .use = 1});
        tell(&b, (kofn_event){.type = KOFN_EV_BEGIN, .product = 9, .use = 2});
        kofn_core_look(b.core, &v);
        assert_int_equal(v.dropped, 4);
        body_close(&b);
    }
}

/* ---- time, where products wait for each other ---------------------------- */

static void answer_of(body *b, uint32_t product, uint32_t worker, kofn_time now)
{
    b->now = now;
    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].out && b->errand[i].product == product &&
            b->errand[i].worker == worker) {
            answer(b, i);
            return;
        }
    fail_msg("worker %u has nothing of product %u", worker, product);
}

/* What a product takes a worker counts from when it is done with older ones. */
static void a_product_that_waited_is_not_slow(void **state)
{
    kofn_core_options opt = {.open = 2, .late = 2, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    begin(&b, 0);
    for (uint32_t w = 0; w < 3; w++)
        answer_of(&b, 1, w, 10);
    assert_false(b.product[1].open);
    answer_of(&b, 2, 0, 20);
    answer_of(&b, 2, 1, 20); /* half of them, in 10 each: as long again */
    assert_int_equal(kofn_core_alarm(b.core), 30);
    body_close(&b);
}

/* Whoever was at what is not wanted any more is not mute because of it. */
static void a_cancelled_task_is_no_silence(void **state)
{
    kofn_core_options opt = {.open = 2, .lease = 100, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    answer_of(&b, 1, 1, 1);
    answer_of(&b, 1, 2, 1);
    begin(&b, 0);
    for (uint32_t w = 1; w < 4; w++)
        answer_of(&b, 2, w, 90);
    assert_false(b.product[2].open); /* and worker 0 is to leave it */
    b.now = 101;
    tell(&b, (kofn_event){.type = KOFN_EV_ALARM});
    assert_int_equal(kofn_core_worker(b.core, 0), KOFN_WORKER_LIVE);
    assert_int_equal(kofn_core_alarm(b.core), 190);
    b.now = 190;
    tell(&b, (kofn_event){.type = KOFN_EV_ALARM});
    assert_int_equal(kofn_core_worker(b.core, 0), KOFN_WORKER_MUTE);
    body_close(&b);
}

/* ---- rows that are not those of the seat --------------------------------- */

static size_t of_row(const body *b, uint32_t worker, uint32_t row)
{
    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].out && b->errand[i].worker == worker &&
            b->errand[i].row == row)
            return i;
    fail_msg("worker %u was not asked for row %u", worker, row);
    return 0;
}

/* A policy of one's own: this worker answers that row of all strips. */
static void have_answered(body *b, uint32_t worker, uint32_t row)
{
    assert_ok(kf_round_ask(b->core, kf_newest(b->core), worker, 0, row, 0,
                           b->plan->span));
    drain(b);
}

/* A fresh row that nobody has a seat for is as good as any. */
static void a_worker_answers_a_fresh_row(void **state)
{
    kofn_core_options opt = {.pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    answer(&b, of_row(&b, 0, 0));
    have_answered(&b, 1, 40);
    have_answered(&b, 1, 17); /* and two of the same worker */
    answer(&b, of_row(&b, 1, 40));
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 1, 17));
    assert_false(b.product[1].open);
    assert_int_equal(b.product[1].ended, KOFN_OK);
    body_close(&b);
}

/* A row that two have answered counts once, and another is asked for. */
static void a_row_counts_once(void **state)
{
    kofn_core_options opt = {.pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    leave(&b, 3);
    begin(&b, 0);
    join(&b);                /* sits this one out, on seat 3 */
    have_answered(&b, 0, 2); /* the row of worker 2 */
    leave(&b, 1);            /* three tasks are in hand, but of two rows */
    answer(&b, of_row(&b, 0, 0));
    answer(&b, of_row(&b, 0, 2));
    answer(&b, of_row(&b, 2, 2)); /* again */
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 4, 3)); /* so it is needed */
    assert_false(b.product[1].open);
    assert_int_equal(b.product[1].ended, KOFN_OK);
    body_close(&b);
}

/* Whoever has another's row in hand and goes is replaced. */
static void a_borrowed_row_is_asked_for_again(void **state)
{
    kofn_core_options opt = {.pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 5, 6, 0, &opt);
    begin(&b, 0);
    have_answered(&b, 0, 33);
    leave(&b, 0);
    answer(&b, of_row(&b, 1, 1));
    answer(&b, of_row(&b, 2, 2));
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 3, 3));
    assert_int_equal(b.product[1].ended, KOFN_OK);
    body_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_do_not_disturb_each_other),
        cmocka_unit_test(liars_among_products),
        cmocka_unit_test(one_is_cancelled_after_any_event),
        cmocka_unit_test(what_cannot_be_cancelled),
        cmocka_unit_test(as_many_as_may_be_open),
        cmocka_unit_test(a_product_that_waited_is_not_slow),
        cmocka_unit_test(a_cancelled_task_is_no_silence),
        cmocka_unit_test(a_worker_answers_a_fresh_row),
        cmocka_unit_test(a_row_counts_once),
        cmocka_unit_test(a_borrowed_row_is_asked_for_again),
    };

    return cmocka_run_group_tests_name("core_open", tests, NULL, NULL);
}
