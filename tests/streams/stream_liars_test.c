/* stream_liars_test.c -- streams of products some of whose workers lie, in
 * every way of verdicts_test.c, on simulated workers and on threads.
 *
 * Whatever they do, no product is wrong by more than its floor and nobody
 * honest is named; one liar whose lies show is named, and no product fails for
 * it.
 *
 * KOFN_TEST_SCALE=10 tries ten times as many. */
#include "rig.h"
#include "verdicts_rig.h"

#include "code/code.h"

#include "data/port.h"

#include <string.h>

#define MEN 8
#define INNER 23
#define LARGEST 4096 /* numbers of a result */

/* ---- what is sent, made wrong on its way --------------------------------- */

typedef struct said {
    double *x; /* what it should have sent last ... */
    size_t n;  /* ... so many numbers, 0: nothing   */
} said;

/* A port some of whose workers send something else. */
typedef struct crooked {
    kofn_port base;
    kofn_port *inner;
    bool liar[MEN];
    uint32_t partner[MEN]; /* with whom results are swapped */
    way way;
    double size, constant, often; /* often: the share of results that lie */
    kf_rng r;
    said said[MEN];
    bool lied[MEN]; /* so far */
} crooked;

static double other_number(crooked *c, const said *old, const said *partner,
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

static void send_other(crooked *c, uint32_t worker, kofn_matrix *y)
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

static kofn_status crooked_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                                kf_msg *m)
{
    crooked *c = (crooked *)p;
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

static kofn_status crooked_send(kofn_port *p, kf_msg *m)
{
    kofn_port *inner = ((crooked *)p)->inner;

    return inner->send(inner, m);
}

static kofn_time crooked_now(kofn_port *p)
{
    kofn_port *inner = ((crooked *)p)->inner;

    return inner->now(inner);
}

static void crooked_spend(kofn_port *p, kofn_time cpu)
{
    kofn_port *inner = ((crooked *)p)->inner;

    inner->spend(inner, cpu);
}

static void crooked_close(kofn_port *p)
{
    crooked *c = (crooked *)p;

    c->inner->close(c->inner);
    for (size_t i = 0; i < MEN; i++)
        kf_free(c->said[i].x);
    kf_free(c);
}

/* Takes the port over. */
static crooked *crooked_port(kofn_port *inner)
{
    crooked *c = numbers(1, sizeof *c);

    c->inner = inner;
    c->base = *inner;
    c->base.send = crooked_send;
    c->base.wait = crooked_wait;
    c->base.now = crooked_now;
    c->base.spend = inner->spend ? crooked_spend : NULL;
    c->base.close = crooked_close;
    c->base.admit = NULL;
    c->base.remove = NULL;
    c->base.slow = NULL;
    c->base.corrupt = NULL;
    c->base.name_of = NULL;
    c->base.storing = NULL;
    c->base.coming = NULL;
    for (size_t i = 0; i < MEN; i++)
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
    bool wide, threads, certain; /* certain: it must be right, and named */
    double often, straggle;
    uint64_t seed;
    /* what came of it */
    size_t products, right, declared, located;
} run_of;

static const kofn_errors errors_of[] = {
    KOFN_ERRORS_PROBABILISTIC, KOFN_ERRORS_ADVERSARIAL, KOFN_ERRORS_DETECT};

static void say_wrong(const run_of *x, uint32_t product, const char *what,
                      double off)
{
    fail_msg("%s of %zu, %s, float%d, %s, %zu liars, %s, seed %zu, product %u: "
             "%s (%g)",
             x->spec, x->workers, mode_names[x->mode], x->wide ? 64 : 32,
             x->threads ? "threads" : "sim", x->liars, way_names[x->way],
             (size_t)x->seed, product, what, off);
}

typedef struct pair {
    kofn_matrix X, Y, out;
    uint32_t number;
} pair;

/* Norms of rows of a, or of its columns, those `each` apart together. */
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

static crooked *port_of(const run_of *x)
{
    kofn_faults w =
        KOFN_FAULTS_INIT(.seed = x->seed, .straggle = x->straggle, .factor = 3);
    kf_rng r = kf_rng_stream(x->seed, KF_FOR_SAMPLE, 7, 7);
    uint32_t who[MEN];
    kofn_port *inner;
    crooked *c;

    assert_ok(x->threads ? kofn_port_threads(&inner, x->workers, &w)
                         : kofn_port_sim(&inner, x->workers, &w));
    c = crooked_port(inner);
    shuffle(who, x->workers, &r);
    for (size_t i = 0; i < x->liars; i++) {
        c->liar[who[i]] = true;
        c->partner[who[i]] = who[(i ^ 1) < x->workers ? i ^ 1 : i];
    }
    c->way = x->way;
    c->often = x->often;
    /* one liar that must be named lies by more than rounding hides */
    c->size = x->certain ? (x->wide ? 1e-3 : 10)
                         : (x->wide ? 1e-14 : 1e-5) *
                               pow(10, 7 * kf_rng_uniform(&r) - 1);
    c->constant = x->certain ? 10 : pow(10, 3 * kf_rng_uniform(&r) - 3);
    c->r = r;
    return c;
}

static void judge(run_of *x, const crooked *c, const kofn_layout *L,
                  const pair *a, const kofn_report *rep, kofn_status st)
{
    x->products++;
    for (size_t i = 0; i < rep->workers; i++) {
        x->located += rep->located[i] > 0;
        if (rep->located[i] && !c->lied[i])
            say_wrong(x, rep->number, "somebody honest was named", (double)i);
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
    crooked *c = port_of(x);
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

/* ---- one liar ------------------------------------------------------------ */

/* So many liars can be told from the others, whatever they do apart from each
 * other: one of four, two of six; of codes that have a row a worker and no more
 * of K one where K + 2 are there. */
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

/* A lie that cannot be overlooked, in every result or in every second one. */
static void one_liar_is_named(void **state)
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
            strstr(x.spec, "dip")) /* all of its were weighed */
            say_wrong(&x, 0, "nobody was named", 0);
    }
}

/* ---- any number of them, in every way ------------------------------------ */

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

static void liars_of_every_kind(void **state)
{
    (void)state;
    campaign(false, often(STREAMS * WAYS / 2));
}

static void liars_on_threads(void **state)
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

/* Who lies in every product has no list any more once that is more than chance,
 * and products are right without it. */
static void liars_are_left_out(void **state)
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

static void what_cannot_be_compared_is_refused(void **state)
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

/* Of two it is found out that one lies, and not which; and one that is left has
 * nobody to be compared with. */
static void two_are_compared(void **state)
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
        cmocka_unit_test(one_liar_is_named),
        cmocka_unit_test(liars_of_every_kind),
        cmocka_unit_test(liars_on_threads),
        cmocka_unit_test(liars_are_left_out),
        cmocka_unit_test(what_cannot_be_compared_is_refused),
        cmocka_unit_test(two_are_compared),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
