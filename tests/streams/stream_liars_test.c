/* stream_liars_test.c -- streams of products with faulty workers, wrong in
 * every way of verdicts_test.c, on simulated workers and on threads.
 *
 * In every case no product is wrong by more than its floor, and no honest
 * worker is named. One faulty worker with visible errors is named, and no
 * product fails because of it.
 *
 * KOFN_TEST_SCALE=10 tries ten times more. */
#include "rig.h"
#include "verdicts_rig.h"

#include "code/code.h"

#include "data/port.h"

#include <string.h>

#define MOST_WORKERS 8
#define INNER 23
#define LARGEST 4096 /* numbers of a result */

/* ---- results that are changed on their way ------------------------------- */

typedef struct said {
    double *x; /* the right numbers of its last result */
    size_t n;  /* their number; 0: no result before */
} said;

/* A port with some workers that send other numbers. */
typedef struct faulty_port {
    kofn_port base;
    kofn_port *inner;
    bool liar[MOST_WORKERS];
    uint32_t
        partner[MOST_WORKERS]; /* the worker with which results are swapped */
    way way;
    double size, constant,
        often; /* often: the share of results that are wrong */
    kf_rng r;
    said said[MOST_WORKERS];
    bool lied[MOST_WORKERS]; /* workers that were wrong before */
} faulty_port;

static double other_number(faulty_port *c, const said *old, const said *partner,
                           size_t e, double y)
{
    switch (c->way) {
    case DENSE:
        return y + c->size * kf_rng_normal(&c->r);
    case CONSTANT:
        return y + c->constant;
    case DOUBLED:
        return 2 * y;
    case STALE:
        return e < old->n ? old->x[e] : y;
    case ZEROS:
        return 0;
    case SWAPPED:
        return e < partner->n ? partner->x[e] : y;
    default:
        return y;
    }
}

static void send_other(faulty_port *c, uint32_t worker, kofn_matrix *y)
{
    const said *old = &c->said[worker], *other = &c->said[c->partner[worker]];
    size_t n = y->rows * y->cols;
    bool wide = y->dtype == KOFN_F64;
    trial t = {.wide = wide, .r = c->r};
    double *x = as_doubles(y), *was = as_doubles(y);

    if (c->way == FLIP || c->way == EXPONENT)
        flip(&t, x + kf_rng_below(&t.r, n), 1, c->way == EXPONENT);
    c->r = t.r;
    for (size_t e = 0; e < n; e++) {
        x[e] = other_number(c, old, other, e, x[e]);
        if (wide)
            ((double *)y->data)[e] = x[e];
        else
            ((float *)y->data)[e] = (float)x[e];
        c->lied[worker] |= !(x[e] == was[e]);
    }
    kf_free(x);
    kf_free(was);
}

static void remember(said *s, const double *x, size_t n)
{
    assert_true(n <= LARGEST);
    memcpy(s->x, x, n * sizeof *x);
    s->n = n;
}

static kofn_status faulty_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                               kf_msg *m)
{
    faulty_port *c = (faulty_port *)p;
    kofn_status st = c->inner->wait(c->inner, until, atmost, m);
    kofn_matrix *y;
    double *honest;

    if (st || m->type != KF_MSG_RESULT)
        return st;
    y = kf_buffer_matrix(m->result);
    assert_int_equal(y->ld, y->cols);
    honest = as_doubles(y);
    if (c->liar[m->worker] && kf_rng_uniform(&c->r) < c->often)
        send_other(c, m->worker, y);
    remember(&c->said[m->worker], honest, y->rows * y->cols);
    kf_free(honest);
    return KOFN_OK;
}

static kofn_status faulty_send(kofn_port *p, kf_msg *m)
{
    kofn_port *inner = ((faulty_port *)p)->inner;

    return inner->send(inner, m);
}

static kofn_time faulty_now(kofn_port *p)
{
    kofn_port *inner = ((faulty_port *)p)->inner;

    return inner->now(inner);
}

static void faulty_spend(kofn_port *p, kofn_time cpu)
{
    kofn_port *inner = ((faulty_port *)p)->inner;

    inner->spend(inner, cpu);
}

static void faulty_close(kofn_port *p)
{
    faulty_port *c = (faulty_port *)p;

    c->inner->close(c->inner);
    for (size_t i = 0; i < MOST_WORKERS; i++)
        kf_free(c->said[i].x);
    kf_free(c);
}

/* Takes the port over. */
static faulty_port *new_faulty_port(kofn_port *inner)
{
    faulty_port *c = numbers(1, sizeof *c);

    c->inner = inner;
    c->base = *inner;
    c->base.send = faulty_send;
    c->base.wait = faulty_wait;
    c->base.now = faulty_now;
    c->base.spend = inner->spend ? faulty_spend : NULL;
    c->base.close = faulty_close;
    c->base.admit = NULL;
    c->base.remove = NULL;
    c->base.slow = NULL;
    c->base.corrupt = NULL;
    c->base.name_of = NULL;
    c->base.storing = NULL;
    c->base.coming = NULL;
    for (size_t i = 0; i < MOST_WORKERS; i++)
        c->said[i].x = numbers(LARGEST, sizeof(double));
    return c;
}

/* ---- a stream ------------------------------------------------------------ */

#define PRODUCTS 6

typedef struct run {
    const char *spec;
    size_t workers, liars;
    mode mode;
    way way;
    bool wide, threads,
        certain; /* certain: the result must be right, and the worker named */
    double often, straggle;
    uint64_t seed;
    /* results */
    size_t products, right, declared, located;
} run_of;

static const kofn_errors errors_of[] = {
    KOFN_ERRORS_PROBABILISTIC, KOFN_ERRORS_ADVERSARIAL, KOFN_ERRORS_DETECT};

static void say_wrong(const run_of *x, uint32_t product, const char *what,
                      double off)
{
    fail_msg(
        "%s of %zu, %s, float%d, %s, %zu faulty, %s, seed %zu, product %u: "
        "%s (%g)",
        x->spec, x->workers, mode_names[x->mode], x->wide ? 64 : 32,
        x->threads ? "threads" : "sim", x->liars, way_names[x->way],
        (size_t)x->seed, product, what, off);
}

typedef struct pair {
    kofn_matrix X, Y, out;
    uint32_t number;
} pair;

/* Returns norms of rows of a, or of its columns. Those at a distance of `each`
 * are taken together. */
static double *norms(const kofn_matrix *a, bool columns, size_t each)
{
    size_t n = columns ? a->cols : a->rows;
    double *x = as_doubles(a), *sum = numbers(each, 8), *of = numbers(n, 8);

    for (size_t i = 0; i < a->rows * a->cols; i++)
        sum[(columns ? i % a->cols : i / a->cols) % each] += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        of[i] = sqrt(sum[i % each]);
    kf_free(x);
    kf_free(sum);
    return of;
}

static void within_floor(const run_of *x, const kofn_layout *L, const pair *a,
                         const kofn_report *rep)
{
    double *y = as_doubles(&a->out), *want = plain_product(&a->X, &a->Y);
    double *row = norms(&a->X, false, kf_ceil_div(a->X.rows, L->cut[0].rows));
    double *col = norms(&a->Y, true, kf_ceil_div(a->Y.cols, L->cut[1].cols));
    double unit = x->wide ? 0x1p-53 : 0x1p-24;
    double own = unit * sqrt((x->wide ? 576 : 6.5) + 0.8 * (double)a->X.cols);

    for (size_t e = 0; e < a->out.rows * a->out.cols; e++) {
        double off = fabs(y[e] - want[e]);

        off /= row[e / a->out.cols] * col[e % a->out.cols];
        if (!(off <= rep->floor + own * fmax(rep->noise, 1)))
            say_wrong(x, rep->number, "delivered above the floor", off);
    }
    kf_free(y);
    kf_free(want);
    kf_free(row);
    kf_free(col);
}

static faulty_port *port_of(const run_of *x)
{
    kofn_faults w =
        KOFN_FAULTS_INIT(.seed = x->seed, .straggle = x->straggle, .factor = 3);
    kf_rng r = kf_rng_stream(x->seed, KF_FOR_SAMPLE, 7, 7);
    uint32_t who[MOST_WORKERS];
    kofn_port *inner;
    faulty_port *c;

    assert_ok(x->threads ? kofn_port_threads(&inner, x->workers, &w)
                         : kofn_port_sim(&inner, x->workers, &w));
    c = new_faulty_port(inner);
    shuffle(who, x->workers, &r);
    for (size_t i = 0; i < x->liars; i++) {
        c->liar[who[i]] = true;
        c->partner[who[i]] = who[(i ^ 1) < x->workers ? i ^ 1 : i];
    }
    c->way = x->way;
    c->often = x->often;
    /* a worker that must be named is wrong by more than rounding hides */
    c->size = x->certain ? (x->wide ? 1e-3 : 10)
                         : (x->wide ? 1e-14 : 1e-5) *
                               pow(10, 7 * kf_rng_uniform(&r) - 1);
    c->constant = x->certain ? 10 : pow(10, 3 * kf_rng_uniform(&r) - 3);
    c->r = r;
    return c;
}

static void judge(run_of *x, const faulty_port *c, const kofn_layout *L,
                  const pair *a, const kofn_report *rep, kofn_status st)
{
    x->products++;
    for (size_t i = 0; i < rep->workers; i++) {
        x->located += rep->located[i] > 0;
        if (rep->located[i] && !c->lied[i])
            say_wrong(x, rep->number, "an honest worker was named", (double)i);
    }
    if (st == KOFN_OK) {
        x->right++;
        within_floor(x, L, a, rep);
        return;
    }
    x->declared++;
    if (st != KOFN_CORRUPT && st != KOFN_TOOFEW)
        say_wrong(x, rep->number, kofn_errmsg(), st);
    if (x->certain)
        say_wrong(x, rep->number, kofn_errmsg(), st);
}

static void put(kofn_job *job, const run_of *x, pair *a, size_t i)
{
    static const size_t sides[PRODUCTS][2] = {{30, 30}, {25, 31}, {40, 9},
                                              {7, 33},  {30, 30}, {16, 16}};
    kofn_dtype dtype = x->wide ? KOFN_F64 : KOFN_F32;
    uint64_t seed = 100 * x->seed + 3 * i;

    a->X = random_matrix(sides[i][0], INNER, dtype, seed);
    a->Y = random_matrix(INNER, sides[i][1], dtype, seed + 1);
    a->out = random_matrix(sides[i][0], sides[i][1], dtype, seed + 2);
    assert_ok(kofn_put_pair(job, &a->X, &a->Y, &a->out, &a->number));
}

static void drop(pair *a)
{
    kf_free(a->X.data);
    kf_free(a->Y.data);
    kf_free(a->out.data);
}

static void run_stream(run_of *x)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_STREAM, 30, INNER, 30,
                                        x->wide ? KOFN_F64 : KOFN_F32, false);
    kofn_options o = KOFN_OPTIONS_INIT;
    faulty_port *c = port_of(x);
    pair a[PRODUCTS];
    kofn_plan *plan;
    kofn_job *job;

    o.errors = errors_of[x->mode];
    o.quarantine = 1000000;
    assert_ok(kofn_plan_new(&plan, &pb, x->spec, x->workers, 7));
    assert_ok(kofn_open(&job, plan, &c->base, &o));
    for (size_t i = 0; i < PRODUCTS + 2; i++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        if (i < PRODUCTS)
            put(job, x, &a[i], i);
        if (i < 2)
            continue;
        st = kofn_take(job, a[i - 2].number, KOFN_NEVER, &rep);
        judge(x, c, &plan->layout, &a[i - 2], &rep, st);
        drop(&a[i - 2]);
    }
    kofn_close(job);
    kofn_plan_free(plan);
}

/* ---- one faulty worker --------------------------------------------------- */

/* The number of faulty workers that can be located if they act independently:
 * one of four, two of six. Codes with one row for each worker locate one if K
 * + 2 workers are there. */
static const struct {
    const char *spec;
    size_t workers, liars;
} streams[] = {
    {"dip", 4, 1},
    {"dip:m=2,p=2,T=0", 4, 1},
    {"dip:m=2,p=2,T=1,lambda=2", 4, 1},
    {"dip:m=2,p=3,T=2,plain=no,order=due", 4, 1},
    {"dip:m=2,n=2,p=1,T=1", 4, 1},
    {"dip:m=2,p=2,T=1", 6, 2},
    {"idip:W=2,N=4", 4, 1},
    {"idip:W=3,N=6,early=no", 4, 1},
    {"idip:model=bursty,W=3,B=1,eps=2", 4, 1},
    {"idip:W=2,N=6", 6, 2},
    {"polynomial:m=2,p=1", 4, 1},
    {"polynomial:m=2,p=2", 7, 2},
    {"polynomial:m=1,p=2,basis=circle", 5, 1},
    {"matdot:n=2", 5, 1},
    {"polydot:m=1,p=1,n=2", 6, 2},
    {"gpd:m=1,p=1,n=2", 5, 1},
};

#define STREAMS (sizeof streams / sizeof *streams)

/* The errors are too large to be overlooked, in every result or in every
 * second one. */
static void one_faulty(void **state)
{
    static const way ways[] = {DENSE, CONSTANT, DOUBLED, ZEROS, STALE};

    (void)state;
    for (size_t i = 0; i < STREAMS * 5; i++) {
        run_of x = {.spec = streams[i % STREAMS].spec,
                    .workers = streams[i % STREAMS].workers,
                    .liars = 1,
                    .way = ways[i / STREAMS % 5],
                    .mode = (mode)(i / 2 % 2),
                    .wide = true,
                    .certain = true,
                    .often = i % 2 ? 0.5 : 1,
                    .straggle = i % 3 ? 0.3 : 0,
                    .seed = i + 1};

        if (SLOWED > 1 && i % 5)
            continue;
        run_stream(&x);
        if (x.located == 0 &&
            strstr(x.spec, "dip")) /* all of its results were compared */
            say_wrong(&x, 0, "no worker was named", 0);
    }
}

/* ---- any number of faulty workers, in every way -------------------------- */

static void campaign(bool threads, size_t runs)
{
    size_t all = 0, right[MODES] = {0}, declared[MODES] = {0};

    for (size_t i = 0; i < runs; i++) {
        kf_rng r = kf_rng_stream(i, KF_FOR_SAMPLE, 8, threads);
        run_of x = {.spec = streams[i % STREAMS].spec,
                    .workers = streams[i % STREAMS].workers,
                    .liars = 1 + kf_rng_below(&r, streams[i % STREAMS].liars),
                    .way = (way)(kf_rng_below(&r, WAYS)),
                    .mode = (mode)(i % MODES),
                    .wide = kf_rng_below(&r, 3) > 0,
                    .threads = threads,
                    .often = kf_rng_below(&r, 2) ? 1 : 0.3,
                    .straggle = 0.2,
                    .seed = i + 1};

        if (x.mode != PROBABILISTIC)
            x.liars = 1;
        run_stream(&x);
        all += x.products;
        right[x.mode] += x.right;
        declared[x.mode] += x.declared;
    }
    print_message("    %zu products; right and declared failures:", all);
    for (size_t m = 0; m < MODES; m++)
        print_message(" %s %zu %zu", mode_names[m], right[m], declared[m]);
    print_message("\n");
}

static void every_kind(void **state)
{
    (void)state;
    campaign(false, often(STREAMS * WAYS / 2));
}

static void every_kind_threads(void **state)
{
    (void)state;
    campaign(true, often(STREAMS * WAYS / 4));
}

/* ---- rounds -------------------------------------------------------------- */

static kofn_status open_with(const char *spec, size_t workers,
                             const kofn_options *o, kofn_job **job,
                             kofn_plan **plan)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 30, INNER, 30, KOFN_F64, false);
    kofn_port *port;

    assert_ok(kofn_plan_new(plan, &pb, spec, workers, 7));
    assert_ok(kofn_port_sim(&port, workers, NULL));
    return kofn_open(job, *plan, port, o);
}

typedef struct seen {
    unsigned rounds;
    double load; /* of the longest list */
} seen;

static void see(void *ud, const kofn_stream_round *r)
{
    seen *s = ud;

    s->rounds++;
    s->load = r->load;
}

/* The worker is wrong in every product. Once that exceeds chance it gets no
 * list. Products are right without it. */
static void quarantined(void **state)
{
    const kofn_fault_event lies = {
        .round = 1, .kind = KOFN_FAULT_EVENT_CORRUPT, .worker = 2};
    kofn_options o = with_events(&lies, 1);
    kofn_job *job;
    kofn_plan *plan;
    seen now = {0};
    unsigned i = 1, left_out = 0;

    (void)state;
    o.errors = KOFN_ERRORS_PROBABILISTIC;
    o.quarantine = 1;
    assert_ok(open_with("dip:m=2,p=2,T=0", 4, &o, &job, &plan));
    kofn_on_round(job, see, &now);
    for (; left_out < 2; i++) {
        run_of x = {.spec = "dip", .seed = i, .wide = true};
        kofn_report rep = KOFN_REPORT_INIT;
        pair a;

        put(job, &x, &a, 0);
        assert_ok(kofn_take(job, a.number, KOFN_NEVER, &rep));
        within_floor(&x, &plan->layout, &a, &rep);
        left_out += rep.states[2] == KOFN_WORKER_QUARANTINED;
        assert_int_equal(rep.located[2], i - left_out);
        assert_int_equal(rep.located[0] + rep.located[1] + rep.located[3], 0);
        assert_int_equal(rep.corrupt > 0, left_out == 0);
        assert_true(rep.rows[2] > 0 || left_out > 0);
        assert_true(i < 60);
        drop(&a);
    }
    assert_int_equal(now.rounds, i - 1);
    kofn_close(job);
    kofn_plan_free(plan);
}

static void refusals(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_job *job;
    kofn_plan *plan;

    (void)state;
    o.errors = KOFN_ERRORS_PROBABILISTIC;
    assert_status(KOFN_UNSUITED, open_with("uncoded", 4, &o, &job, &plan));
    kofn_plan_free(plan);
    assert_status(KOFN_UNSUITED, open_with("matdot:n=2", 3, &o, &job, &plan));
    kofn_plan_free(plan);
    assert_status(KOFN_INVAL, open_with("dip:m=1,p=1", 1, &o, &job, &plan));
    kofn_plan_free(plan);
}

/* With two workers an error is found, but the faulty one is not. A single
 * worker cannot be compared. */
static void two_workers(void **state)
{
    static const kofn_fault_event events[] = {
        {.round = 2, .kind = KOFN_FAULT_EVENT_CORRUPT, .worker = 0},
        {.round = 3, .kind = KOFN_FAULT_EVENT_NORMAL, .worker = 0},
        {.round = 4, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 1}};
    static const kofn_status want[] = {KOFN_OK, KOFN_CORRUPT, KOFN_OK,
                                       KOFN_TOOFEW};
    kofn_options o = with_events(events, 3);
    kofn_job *job;
    kofn_plan *plan;

    (void)state;
    o.errors = KOFN_ERRORS_PROBABILISTIC;
    assert_ok(open_with("dip:m=2,p=1,T=0", 2, &o, &job, &plan));
    for (unsigned i = 0; i < 4; i++) {
        run_of x = {.spec = "dip", .seed = i, .wide = true};
        kofn_report rep = KOFN_REPORT_INIT;
        pair a;

        put(job, &x, &a, 0);
        assert_status(want[i], kofn_take(job, a.number, KOFN_NEVER, &rep));
        if (want[i] == KOFN_OK)
            within_floor(&x, &plan->layout, &a, &rep);
        assert_int_equal(rep.located[1], 0);
        drop(&a);
    }
    kofn_close(job);
    kofn_plan_free(plan);
}

TEST_FILE(stream_liars_test)
{
    const struct CMUnitTest tests[] = {
        TEST(one_faulty,
             "stream errors: a faulty worker is named, products are right"),
        TEST(every_kind,
             "stream errors: products are right or fail (every kind of error)"),
        TEST(every_kind_threads,
             "stream errors: products are right or fail (threads)"),
        TEST(quarantined,
             "stream errors: a faulty worker gets no list after some rounds"),
        TEST(refusals,
             "stream errors: codes that cannot be compared are refused"),
        TEST(two_workers,
             "stream errors: two workers detect an error, and locate none"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
