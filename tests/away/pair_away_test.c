/* pair_away_test.c -- products of streams on workers behind packets.
 * Connections are narrow, break or damage packets, and workers have little
 * memory. */
#include "fleet.h"
#include "pair_rig.h"
#include "scripted_coordinator.h"

#include <string.h>
#include <time.h>

#define COUNT 6

static const size_t shapes[COUNT][3] = {
    {30, 20, 30}, {31, 7, 29}, {1, 1, 1}, {5, 40, 2}, {64, 3, 1}, {17, 17, 17}};

typedef struct run {
    const char *spec;
    kofn_dtype dtype;
    size_t ahead;
    kofn_options opt;
    kofn_away_options away;
    bool in_time; /* products must end in time */
} run;

/* Computes products of all shapes. `ahead` of them are put before one is
 * taken. */
static void stream(fleet *f, const run *how)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 30, 20, 30, how->dtype, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;
    kofn_job *job;
    pair a[COUNT];

    assert_ok(kofn_plan_new(&plan, &pb, how->spec, 4, 7));
    assert_ok(kofn_plan_describe(plan, false, &info));
    assert_ok(kofn_open(&job, plan, fleet_port(f, 4, &how->away), &how->opt));
    for (size_t i = 0; i < COUNT + how->ahead; i++) {
        kofn_report rep = KOFN_REPORT_INIT;
        pair *now;

        if (i < COUNT) {
            a[i] = make_pair(shapes[i][0], shapes[i][1], shapes[i][2],
                             how->dtype, 10 * i);
            assert_ok(
                kofn_put_pair(job, &a[i].X, &a[i].Y, &a[i].out, &a[i].number));
        }
        if (i < how->ahead)
            continue;
        now = &a[i - how->ahead];
        assert_ok(kofn_take(job, now->number, KOFN_NEVER, &rep));
        if (how->in_time)
            assert_in_range(rep.ended, rep.began, rep.began + info.delay);
        if (!(error_of(now) <= rep.predicted))
            fail_msg("%s, product %u: error %g, predicted %g", how->spec,
                     now->number, error_of(now), rep.predicted);
    }
    for (size_t i = 0; i < COUNT; i++)
        free_pair(&a[i]);
    kofn_close(job);
    kofn_plan_free(plan);
}

static run run_of(const char *spec)
{
    run r = {
        .spec = spec, .opt = KOFN_OPTIONS_INIT, .away = KOFN_AWAY_OPTIONS_INIT};

    r.opt.below = KOFN_BELOW_PAUSE;
    r.opt.patience = 60 * KOFN_SECOND;
    return r;
}

static const char *const specs[] = {
    "dip",         "dip:T=0",
    "dip:m=2,p=2", "dip:m=2,n=2,p=2",
    "idip",        "idip:W=2,basis=monomial",
    "polynomial",  "matdot:n=2",
    "uncoded",     "idip:model=bursty,W=3,B=2,eps=2"};

static void every_scheme(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        run r = run_of(specs[i]);
        fleet f;

        r.ahead = i % 4;
        r.dtype = i % 3 == 1 ? KOFN_F32 : KOFN_F64;
        r.opt.max_error = r.dtype == KOFN_F32 ? 1e-2 : 0;
        r.in_time = true;
        fleet_init(&f, NULL);
        stream(&f, &r);
        assert_int_equal(f.net.sent[KF_WIRE_STORE] + f.net.sent[KF_WIRE_NEED],
                         0);
        fleet_down(&f);
    }
}

/* Both halves of X and all of Y are needed, and no worker is late. */
static void bytes_sent(void **state)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 32, 8, 16, KOFN_F64, false);
    pair a = make_pair(32, 8, 16, KOFN_F64, 3);
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_plan *plan;
    kofn_job *job;
    fleet f;

    (void)state;
    o.mu = 1e6;
    o.late = -1;
    fleet_init(&f, NULL);
    assert_ok(kofn_plan_new(&plan, &pb, "uncoded", 2, 7));
    assert_ok(kofn_open(&job, plan, fleet_port(&f, 2, NULL), &o));
    for (size_t i = 0; i < 3; i++) {
        assert_ok(kofn_put_pair(job, &a.X, &a.Y, &a.out, &a.number));
        assert_ok(kofn_take(job, a.number, KOFN_NEVER, NULL));
        assert_at_most(error_of(&a), 1e-14);
    }
    kofn_close(job);
    kofn_plan_free(plan);
    assert_int_equal(f.net.sent[KF_WIRE_WORK], 6);
    assert_int_equal(f.net.bytes[KF_WIRE_WORK], 6 * (16 * 8 + 8 * 16) * 8);
    assert_int_equal(f.net.bytes[KF_WIRE_RESULT], 6 * 16 * 16 * 8);
    assert_int_equal(f.net.sent[KF_WIRE_STORE], 0);
    fleet_down(&f);
    free_pair(&a);
}

/* The cases: bodies that are fetched, narrow pipes, connections that break and
 * are restored, and packets that are damaged, cut short or repeated. */
static void bad_connections(void **state)
{
    static const loop_faults faults[] = {
        {.fetching = true},
        {.room = 4096},
        {.room = 1024, .fetching = true},
        {.twice = 0.05, .damage = 0.02, .seed = 1},
        {.truncate = 0.02, .cut = 0.02, .seed = 2}};

    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (size_t s = 0; s < 2; s++) {
            run r = run_of(s ? "idip:W=2" : "dip:T=1");
            fleet f;

            r.ahead = 2;
            fleet_init(&f, &faults[i]);
            stream(&f, &r);
            fleet_down(&f);
        }
}

/* A task takes 6600 bytes at most. There is room for one task next to a
 * cancelled one that is still being computed, but not for a list of four. A
 * list fails in part, and the failed tasks go to workers with room. */
static void little_memory(void **state)
{
    run r = run_of("dip:m=2,p=2,T=0,lambda=1");
    fleet f;

    (void)state;
    r.in_time = true;
    fleet_init(&f, NULL);
    f.serve.memory = 16384;
    stream(&f, &r);
    fleet_down(&f);
}

typedef struct gate {
    fleet *of;
    atomic_bool in_vain; /* no task had failed after a minute */
} gate;

/* Computes a product after the first worker has failed a task. A worker that
 * waits for a processor would otherwise come when all is done. It would then
 * cancel its task, which also counts as a failed task. */
static kofn_status after_a_failure(void *ctx, const kofn_factors *k,
                                   kofn_matrix *out)
{
    const struct timespec nap = {0, 1000000};
    gate *g = ctx;
    size_t failed = 0;
    double *product;

    for (size_t i = 0; i < 60000 && !failed && !g->in_vain; i++) {
        pthread_mutex_lock(&g->of->net.lock);
        failed = g->of->net.sent[KF_WIRE_FAILED];
        pthread_mutex_unlock(&g->of->net.lock);
        if (!failed)
            nanosleep(&nap, NULL);
    }
    if (!failed)
        g->in_vain = true;
    product = plain_product(&k->A, &k->B);
    memcpy(out->data, product, out->rows * out->cols * sizeof *product);
    kf_free(product);
    return KOFN_OK;
}

/* The worker has no room for any task. */
static void no_memory(void **state)
{
    run r = run_of("dip:m=2,p=2,T=0,lambda=1");
    gate g = {NULL, false};
    fleet f;

    (void)state;
    r.in_time = true;
    fleet_init(&f, NULL);
    f.memory_of_first = 1;
    f.serve.multiply = after_a_failure;
    f.serve.multiply_ctx = &g;
    g.of = &f;
    stream(&f, &r);
    assert_false(g.in_vain);
    fleet_down(&f);
}

static void exact_memory(void **state)
{
    const size_t bytes = (5 * 6 + 6 * 3 + 5 * 3) * 8;
    static scripted o;

    (void)state;
    for (size_t memory = bytes - 1; memory <= bytes; memory++) {
        o = script_pair();
        assert_ok(script_serve(&o, memory));
        assert_int_equal(o.results, memory == bytes);
        assert_int_equal(o.failures, memory < bytes);
    }
    o = script_pair();
    assert_ok(script_serve(&o, 0)); /* no limit */
    assert_int_equal(o.results, 1);
}

/* A waiting task holds its memory until it is computed. */
static void waiting_tasks(void **state)
{
    const size_t bytes = (5 * 6 + 6 * 3 + 5 * 3) * 8;
    const kofn_faults for_ever = KOFN_FAULTS_INIT(.straggle = 1, .delay = 1e12);
    static scripted o;

    (void)state;
    for (size_t room = 1; room <= 4; room++)
        for (size_t less = 0; less < 2; less++) {
            o = script_pair();
            o.works = 4;
            o.faults = &for_ever;
            assert_ok(script_serve(&o, room * bytes - less));
            assert_int_equal(o.failures, 4 - room + less);
            assert_int_equal(o.results, 0); /* it is dismissed before */
        }
}

static void wrong_heads(void **state)
{
    const uint64_t odd[] = {0, 4, UINT64_C(1) << 32, UINT64_C(1) << 61,
                            UINT64_MAX};
    static scripted o;

    (void)state;
    for (size_t field = 0; field < 8; field++)
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            uint64_t *const at[] = {&o.work.lo,       &o.work.hi,
                                    &o.work.rows,     &o.work.cols,
                                    &o.work.out_rows, &o.work.out_cols,
                                    &o.work.updates};

            o = script_pair();
            if (field < 7) {
                if (field == 0 && odd[i] == 0)
                    continue; /* the valid value */
                if (field == 6 && odd[i] == 0)
                    continue;
                *at[field] = odd[i];
            } else {
                o.work.how = (kf_how)(1 + i);
            }
            o.bytes = (5 * 6 + 6 * 3) * 8;
            script_serve(&o, (size_t)1 << 20);
            assert_int_equal(o.results, 0);
        }
}

TEST_FILE(pair_away_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_scheme,
             "stream: remote products are right and in time (each code)"),
        TEST(bytes_sent, "stream: only the needed halves and results travel"),
        TEST(bad_connections,
             "stream: products are right over bad connections"),
        TEST(little_memory,
             "stream: products are right if lists do not fit into memory"),
        TEST(no_memory, "stream: other workers replace one without memory"),
        TEST(exact_memory,
             "stream: the memory limit of a worker is exact to the byte"),
        TEST(waiting_tasks, "stream: waiting tasks count to the memory limit"),
        TEST(wrong_heads, "stream: tasks with wrong sizes are not computed"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
