/* left_test.c -- transposed codes and left products: the input of a seat
 * depends on the live set, and answers are sums (math/elastic.md 10, 11). */
#include "support.h"

#include "base/rng.h"
#include "mat/mat.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double *normals(size_t n, uint32_t which)
{
    double *x = malloc((n ? n : 1) * sizeof *x);
    kf_rng r = kf_rng_stream(77, KF_FOR_SAMPLE, which, 0);

    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = kf_rng_normal(&r);
    return x;
}

/* One job over one matrix, and the plain answers. */
typedef struct fixture {
    size_t m, n, p, q; /* A is m x n; A B with B n x p; D A with D q x m */
    double *a, *b, *d, *ab, *da, *got;
    kofn_matrix A, B, D, C, E;
    kofn_plan *plan;
    kofn_job *job;
} fixture;

static void multiply(const double *x, const double *y, double *z, size_t m,
                     size_t k, size_t n)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n,
                (int)k, 1, x, (int)k, y, (int)n, 0, z, (int)n);
}

static void up(fixture *f, kofn_op op, const char *spec, size_t workers,
               const kofn_options *opt, bool threads)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(
        op, f->m, f->n, op == KOFN_LEFT ? f->q : f->p, KOFN_F64, false);
    size_t out = f->m * f->p > f->q * f->n ? f->m * f->p : f->q * f->n;
    kofn_port *port;

    f->a = normals(f->m * f->n, 1);
    f->b = normals(f->n * f->p, 2);
    f->d = normals(f->q * f->m, 3);
    f->ab = malloc(f->m * f->p * 8);
    f->da = malloc(f->q * f->n * 8);
    f->got = malloc(out * 8);
    multiply(f->a, f->b, f->ab, f->m, f->n, f->p);
    multiply(f->d, f->a, f->da, f->q, f->m, f->n);
    f->A = (kofn_matrix){f->a, f->m, f->n, f->n, KOFN_F64};
    f->B = (kofn_matrix){f->b, f->n, f->p, f->p, KOFN_F64};
    f->D = (kofn_matrix){f->d, f->q, f->m, f->m, KOFN_F64};
    f->C = (kofn_matrix){f->got, f->m, f->p, f->p, KOFN_F64};
    f->E = (kofn_matrix){f->got, f->q, f->n, f->n, KOFN_F64};
    assert_ok(kofn_plan_new(&f->plan, &pb, spec, workers, 5));
    if (op != KOFN_LEFT)
        assert_ok(kofn_plan_serve_left(f->plan, f->q));
    assert_ok(threads ? kofn_port_threads(&port, workers, NULL)
                      : kofn_port_sim(&port, workers, NULL));
    assert_ok(kofn_open(&f->job, f->plan, port, opt));
    assert_ok(kofn_place(f->job, &f->A));
}

static void down(fixture *f)
{
    kofn_close(f->job);
    kofn_plan_free(f->plan);
    free(f->a);
    free(f->b);
    free(f->d);
    free(f->ab);
    free(f->da);
    free(f->got);
}

static void right_round(fixture *f)
{
    memset(f->got, 0xff, f->m * f->p * 8);
    assert_ok(kofn_round(f->job, &f->B, &f->C, NULL));
    assert_at_most(relative_error(f->got, f->ab, f->m * f->p), 1e-12);
}

static void left_round(fixture *f)
{
    memset(f->got, 0xff, f->q * f->n * 8);
    assert_ok(rig_left(f->job, &f->D, &f->E));
    assert_at_most(relative_error(f->got, f->da, f->q * f->n), 1e-12);
}

/* Every pattern of absence that leaves k of n, for both ways of cutting, both
 * products on one encoding, and sizes that nothing divides. */
static void every_live_set(void **state)
{
    static const struct {
        size_t n, k;
    } code[] = {{6, 3}, {7, 4}, {5, 5}, {6, 1}, {8, 3}};
    static const char *const cut[] = {"rows", "columns"};

    (void)state;
    for (size_t c = 0; c < sizeof code / sizeof *code; c++)
        for (size_t w = 0; w < 2; w++)
            for (unsigned set = 0; set < 1u << code[c].n; set++) {
                fixture f = {.m = 37, .n = 29, .p = 5, .q = 3};
                kofn_fault_event gone[16];
                kofn_options opt = KOFN_OPTIONS_INIT;
                size_t left = 0;
                char spec[64];

                for (size_t i = 0; i < code[c].n; i++)
                    if (!(set >> i & 1))
                        gone[left++] = (kofn_fault_event){
                            1, 0, KOFN_FAULT_EVENT_LEAVE, (uint32_t)i, 0};
                if (code[c].n - left < code[c].k)
                    continue;
                opt.events = gone;
                opt.event_count = left;
                snprintf(spec, sizeof spec, "elastic:k=%zu,cut=%s", code[c].k,
                         cut[w]);
                up(&f, KOFN_MATMUL, spec, code[c].n, &opt, false);
                right_round(&f);
                left_round(&f);
                right_round(&f);
                down(&f);
            }
}

/* A worker leaves or joins at every share of the rounds. */
static void changes_inside_rounds(void **state)
{
    static const char *const cut[] = {"rows", "columns"};

    (void)state;
    for (unsigned trial = 0; trial < 60; trial++) {
        fixture f = {.m = 53, .n = 41, .p = 1 + trial % 4, .q = 1 + trial % 3};
        kf_rng r = kf_rng_stream(3, KF_FOR_SAMPLE, trial, 0);
        kofn_fault_event what[12];
        kofn_options opt = KOFN_OPTIONS_INIT;
        size_t n = 0, live = 8;
        char spec[64];

        for (unsigned round = 1; round <= 6; round++) {
            double share = (double)kf_rng_below(&r, 100) / 100;
            bool leave = live > 4 && kf_rng_below(&r, 3) > 0;

            /* workers leave in the order of their numbers */
            what[n] = (kofn_fault_event){
                round, share,
                leave ? KOFN_FAULT_EVENT_LEAVE : KOFN_FAULT_EVENT_JOIN, 0, 0};
            if (leave) {
                uint32_t next = 0;

                for (size_t i = 0; i < n; i++)
                    next += what[i].kind == KOFN_FAULT_EVENT_LEAVE;
                what[n].worker = next;
            }
            live += leave ? (size_t)-1 : 1;
            n++;
        }
        opt.events = what;
        opt.event_count = n;
        opt.in_flight = (kofn_in_flight)(trial % 3);
        snprintf(spec, sizeof spec, "elastic:k=4,cut=%s", cut[trial / 3 % 2]);
        up(&f, f.p == 1 ? KOFN_MATVEC : KOFN_MATMUL, spec, 8, &opt, trial % 2);
        for (unsigned round = 0; round < 3; round++) {
            right_round(&f);
            left_round(&f);
        }
        down(&f);
    }
}

/* True if the row of A is in strips [lo, hi) of S. */
static bool within(size_t row, size_t S, size_t lo, size_t hi)
{
    return row % S >= lo && row % S < hi;
}

/* Computes both products for some strips. Other rows are unchanged, and of the
 * other product's input only these count. */
static void limited_rounds(fixture *f, size_t lo, size_t hi)
{
    size_t S = rig_strips(f->job);

    assert_ok(kofn_limit(f->job, lo, hi));
    for (size_t i = 0; i < f->m * f->p; i++)
        f->got[i] = 0.25;
    assert_ok(kofn_round(f->job, &f->B, &f->C, NULL));
    for (size_t i = 0; i < f->m; i++)
        for (size_t j = 0; j < f->p; j++) {
            double got = f->got[i * f->p + j], want = f->ab[i * f->p + j];

            if (within(i, S, lo, hi))
                assert_at_most(fabs(got - want), 1e-12 * (double)f->n);
            else
                assert_true(got == 0.25);
        }
    for (size_t i = 0; i < f->q * f->m; i++)
        if (!within(i % f->m, S, lo, hi))
            f->d[i] = 0;
    multiply(f->d, f->a, f->da, f->q, f->m, f->n);
    left_round(f);
}

static void some_strips_only(void **state)
{
    (void)state;
    for (unsigned trial = 0; trial < 48; trial++) {
        fixture f = {.m = 203, .n = 31, .p = 1 + trial % 2, .q = 1 + trial % 3};
        kf_rng r = kf_rng_stream(5, KF_FOR_SAMPLE, trial, 0);
        kofn_fault_event what[] = {{2, 0.4, KOFN_FAULT_EVENT_LEAVE, 1, 0},
                                   {3, 0.5, KOFN_FAULT_EVENT_JOIN, 0, 0},
                                   {4, 0.3, KOFN_FAULT_EVENT_LEAVE, 5, 0},
                                   {5, 0.6, KOFN_FAULT_EVENT_LEAVE, 2, 0},
                                   {6, 0.2, KOFN_FAULT_EVENT_JOIN, 0, 0}};
        kofn_options opt = KOFN_OPTIONS_INIT;
        double *d;
        size_t S;

        opt.events = what;
        opt.event_count = sizeof what / sizeof *what;
        opt.in_flight = (kofn_in_flight)(trial % 3);
        up(&f, f.p == 1 ? KOFN_MATVEC : KOFN_MATMUL,
           trial % 4 ? "elastic:k=4" : "elastic:k=3,basis=gauss,deal=speed", 7,
           &opt, trial / 3 % 2);
        S = rig_strips(f.job);
        d = f.d;
        f.d = malloc(f.q * f.m * 8);
        f.D.data = f.d;
        for (int k = 0; k < 4; k++) {
            size_t lo = (size_t)kf_rng_below(&r, S);

            memcpy(f.d, d, f.q * f.m * 8);
            limited_rounds(&f, lo, lo + 1 + (size_t)kf_rng_below(&r, S - lo));
        }
        memcpy(f.d, d, f.q * f.m * 8);
        multiply(f.d, f.a, f.da, f.q, f.m, f.n);
        assert_ok(kofn_limit(f.job, 0, S));
        right_round(&f);
        left_round(&f);
        free(d);
        down(&f);
    }
}

/* Impossible limits change nothing. */
static void limits_are_checked(void **state)
{
    fixture f = {.m = 40, .n = 12, .p = 2, .q = 2};
    size_t S;

    (void)state;
    up(&f, KOFN_MATMUL, "elastic:k=3", 5, NULL, false);
    S = rig_strips(f.job);
    assert_true(S > 1);
    assert_status(KOFN_INVAL, kofn_limit(f.job, 1, 1));
    assert_status(KOFN_INVAL, kofn_limit(f.job, 0, S + 1));
    right_round(&f);
    /* a product by kofn_put is not limited */
    memset(f.got, 0xff, f.m * f.p * 8);
    assert_ok(kofn_put(f.job, &f.B, &f.C, NULL));
    assert_ok(kofn_limit(f.job, 0, 1));
    assert_ok(kofn_take(f.job, 0, KOFN_NEVER, NULL));
    assert_at_most(relative_error(f.got, f.ab, f.m * f.p), 1e-12);
    assert_ok(kofn_limit(f.job, 0, S));
    left_round(&f);
    down(&f);
    up(&f, KOFN_MATMUL, "elastic:k=3,cut=columns", 5, NULL, false);
    assert_int_equal(rig_strips(f.job), 0);
    assert_status(KOFN_UNSUITED, kofn_limit(f.job, 0, 1));
    right_round(&f);
    down(&f);
}

static void left_alone(void **state)
{
    fixture f = {.m = 31, .n = 17, .p = 1, .q = 4};

    (void)state;
    up(&f, KOFN_LEFT, "elastic:k=3", 5, NULL, true);
    memset(f.got, 0xff, f.q * f.n * 8);
    assert_ok(kofn_round(f.job, &f.D, &f.E, NULL));
    assert_at_most(relative_error(f.got, f.da, f.q * f.n), 1e-12);
    down(&f);
}

static void refusals(void **state)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 20, 20, 3, KOFN_F64, false);
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    (void)state;
    assert_ok(kofn_plan_new(&plan, &pb, "mds:k=3", 5, 1));
    assert_status(KOFN_UNSUITED, kofn_plan_serve_left(plan, 2));
    kofn_plan_free(plan);
    assert_status(
        KOFN_INVAL,
        kofn_plan_new(&plan, &pb, "elastic:k=4,groups=2,cut=columns", 8, 1));
    /* sums have no spare answers and no plain block */
    assert_ok(kofn_plan_new(&plan, &pb, "elastic:k=3,cut=columns", 5, 1));
    opt.errors = KOFN_ERRORS_DETECT;
    assert_ok(kofn_port_sim(&port, 5, NULL));
    assert_status(KOFN_UNSUITED, kofn_open(&job, plan, port, &opt));
    opt.errors = KOFN_ERRORS_NONE;
    opt.below = KOFN_BELOW_DEGRADE;
    assert_ok(kofn_port_sim(&port, 5, NULL));
    assert_status(KOFN_UNSUITED, kofn_open(&job, plan, port, &opt));
    kofn_plan_free(plan);
}

static void stragglers_are_left_out(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.work = 1, .straggle = 0);
    kofn_fault_event slow = {1, 0, KOFN_FAULT_EVENT_SLOW, 2, 1e5};
    fixture f = {.m = 60, .n = 48, .p = 6, .q = 2};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_report rep = KOFN_REPORT_INIT;

    (void)state, (void)w;
    opt.events = &slow;
    opt.event_count = 1;
    opt.late = 3;
    up(&f, KOFN_MATMUL, "elastic:k=3,cut=columns", 6, &opt, false);
    assert_ok(kofn_round(f.job, &f.B, &f.C, &rep));
    assert_at_most(relative_error(f.got, f.ab, f.m * f.p), 1e-12);
    assert_true(rep.took < KOFN_SECOND / 10);
    down(&f);
}

TEST_FILE(left_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_live_set,
             "left: every live set gives both products (both cuts)"),
        TEST(changes_inside_rounds,
             "left: workers leave and join at every share of a round"),
        TEST(some_strips_only,
             "left: rounds of some strips leave the others alone"),
        TEST(limits_are_checked,
             "left: impossible limits are refused and change nothing"),
        TEST(left_alone, "left: left products work without any right product"),
        TEST(refusals, "left: impossible products are refused"),
        TEST(stragglers_are_left_out,
             "left: a stopped worker is skipped if others suffice"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
