/* missing_test.c -- sums that omit missing workers, or remember their parts:
 * the contents, and the report (math/elastic.md 17). */
#include "failing.h"
#include "rig.h"

#define WORKERS 6
#define PARTS 6
#define LENGTH 23
#define ROUNDS 30

/* Computes f(part, x) of the rig directly. */
static void value_of(rig *x, size_t part, double *out)
{
    kofn_matrix y = {out, LENGTH, 1, 1, KOFN_F64};
    kofn_matrix in = {as_doubles(&x->x), LENGTH, 1, 1, KOFN_F64};

    assert_ok(rig_part(x, part, PARTS, &in, &y));
    kf_free(in.data);
}

/* Checks that y is the sum of weights times values. known[j] is the value that
 * part j counts with; NULL: the current one. */
static void check_sum(rig *x, const double *weights, double known[][LENGTH])
{
    double want[LENGTH] = {0}, value[LENGTH], *y = as_doubles(&x->y), size = 0;

    for (size_t j = 0; j < PARTS; j++) {
        if (known)
            memcpy(value, known[j], sizeof value);
        else
            value_of(x, j, value);
        for (size_t i = 0; i < LENGTH; i++) {
            want[i] += weights[j] * value[i];
            size += fabs(value[i]) / LENGTH;
        }
    }
    for (size_t i = 0; i < LENGTH; i++)
        assert_at_most(fabs(y[i] - want[i]),
                       (x->y.dtype == KOFN_F64 ? 1e-14 : 1e-6) * size);
    kf_free(y);
}

static void up(rig *x, const char *spec, bool sim, kofn_dtype dtype,
               const kofn_options *o)
{
    rig_kind k = {.spec = spec,
                  .workers = WORKERS,
                  .m = 50,
                  .n = LENGTH,
                  .p = 1,
                  .op = KOFN_SUM,
                  .sim = sim,
                  .dtype = dtype,
                  .opt = o};

    rig_up(x, &k);
}

static size_t sum_of(const double *w)
{
    double sum = 0;

    for (size_t j = 0; j < PARTS; j++)
        sum += w[j];
    return (size_t)(sum + 0.5);
}

static void left_out_until_replaced(void **state)
{
    static kofn_fault_event h[] = {{2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
                                   {2, 0.4, KOFN_FAULT_EVENT_LEAVE, 4, 0},
                                   {4, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
                                   {5, 0, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    static const char *const spec[] = {"ignore", "ignore:scale=none"};
    static const bool gone[ROUNDS][PARTS] = {
        [2] = {0, 1, 0, 0, 1}, [3] = {0, 1, 0, 0, 1}, [4] = {0, 0, 0, 0, 1}};

    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        bool up_scaled = kind % 2 == 0, sim = kind / 2 % 2;
        kofn_options o = KOFN_OPTIONS_INIT;
        rig x;

        o.events = h;
        o.event_count = 4;
        up(&x, spec[kind % 2], sim, kind / 4 ? KOFN_F32 : KOFN_F64, &o);
        for (size_t round = 1; round <= 6; round++) {
            kofn_report rep = KOFN_REPORT_INIT;
            size_t there = PARTS;
            kofn_status st;

            rig_next(&x, round);
            st = rig_round(&x, &rep);
            assert_int_equal(rep.parts, PARTS);
            assert_null(rep.ages);
            if (round == 2 &&
                rep.weights[4] > 0) /* the replacement was quicker */
                assert_true(rep.weights[1] == 0);
            for (size_t j = 0; j < PARTS; j++)
                there -=
                    round == 2 && j == 4 ? rep.weights[4] == 0 : gone[round][j];
            assert_int_equal(st, there < PARTS ? KOFN_PARTIAL : KOFN_OK);
            for (size_t j = 0; j < PARTS; j++)
                if (round != 2 || j != 4)
                    assert_true(fabs(rep.weights[j] -
                                     (gone[round][j] ? 0
                                      : up_scaled    ? PARTS / (double)there
                                                     : 1)) < 1e-15);
            check_sum(&x, rep.weights, NULL);
        }
        rig_down(&x);
    }
}

/* The first `count` workers; with `late` also those that are slightly slower.
 */
static void slow_ones_are_left_out(void **state)
{
    static kofn_fault_event h[] = {{2, 0, KOFN_FAULT_EVENT_SLOW, 3, 1e5},
                                   {3, 0, KOFN_FAULT_EVENT_NORMAL, 3, 0}};
    static const char *const spec[] = {"ignore:wait=4,scale=none",
                                       "ignore:scale=none", "distr-bgd"};

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        kofn_faults even = KOFN_FAULTS_INIT(.seed = 1, .latency = 1e-6);
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind k = {.spec = spec[kind],
                      .workers = WORKERS,
                      .m = 50,
                      .n = LENGTH,
                      .p = 1,
                      .op = KOFN_SUM,
                      .sim = true,
                      .faults = &even,
                      .opt = &o};
        rig x;

        o.events = h;
        o.event_count = 2;
        o.late = kind ? 3 : 0;
        rig_up(&x, &k);
        for (size_t round = 1; round <= 3; round++) {
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st;

            rig_next(&x, round);
            st = rig_round(&x, &rep);
            if (kind == 0) {
                assert_int_equal(st, KOFN_PARTIAL);
                assert_int_equal(sum_of(rep.weights), 4);
            } else if (kind == 1) {
                assert_int_equal(st, round == 2 ? KOFN_PARTIAL : KOFN_OK);
                assert_int_equal(sum_of(rep.weights), round == 2 ? 5 : 6);
                assert_true(rep.weights[3] == (round == 2 ? 0 : 1));
            } else {
                assert_int_equal(st, round == 2 ? KOFN_PARTIAL : KOFN_OK);
                for (size_t j = 0; j < PARTS; j++)
                    assert_int_equal(rep.ages[j], round == 2 && j == 3);
                continue;
            }
            if (round == 2)
                assert_true(rep.weights[3] == 0);
            check_sum(&x, rep.weights, NULL);
        }
        rig_down(&x);
    }
}

/* Compares with a memory of the test. Workers leave and join at random, and
 * some parts were never there. */
static void remembered(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < often(8); trial++) {
        kf_rng r = kf_rng_stream(3, KF_FOR_SAMPLE, trial, 0);
        kofn_fault_event h[ROUNDS];
        kofn_options o = KOFN_OPTIONS_INIT;
        double known[PARTS][LENGTH] = {{0}};
        unsigned since[PARTS] = {0};
        bool ever[PARTS] = {false}, gone[WORKERS + ROUNDS] = {false};
        uint32_t there = WORKERS;
        rig x;

        o.events = h;
        for (unsigned round = 1; round <= ROUNDS; round++) {
            uint32_t who = (uint32_t)kf_rng_below(&r, there), live = 0;
            bool join = kf_rng_below(&r, 2);

            for (uint32_t i = 0; i < there; i++)
                live += !gone[i];
            if (!join && (gone[who] || live < 2))
                continue;
            h[o.event_count++] = (kofn_fault_event){
                round, 0, join ? KOFN_FAULT_EVENT_JOIN : KOFN_FAULT_EVENT_LEAVE,
                who, 0};
            gone[who] |= !join;
            there += join;
        }
        up(&x, "distr-bgd", trial % 4 != 3, trial % 2 ? KOFN_F32 : KOFN_F64,
           &o);
        for (size_t round = 1; round <= ROUNDS; round++) {
            size_t now = 0;
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st;

            rig_next(&x, round);
            st = rig_round(&x, &rep);
            for (size_t j = 0; j < PARTS; j++) {
                since[j]++;
                if (rep.ages[j] == 0 && rep.weights[j] > 0) {
                    value_of(&x, j, known[j]);
                    since[j] = 0;
                    ever[j] = true;
                    now++;
                }
                assert_true(rep.weights[j] == (ever[j] ? 1 : 0));
                if (ever[j])
                    assert_int_equal(rep.ages[j], since[j]);
            }
            assert_true(now <= rep.live && now > 0);
            assert_int_equal(st, now < PARTS ? KOFN_PARTIAL : KOFN_OK);
            check_sum(&x, rep.weights, known);
        }
        rig_down(&x);
    }
}

static void no_worker(void **state)
{
    static const char *const spec[] = {"ignore", "distr-bgd", "ignore:wait=2"};

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        kofn_fault_event h[WORKERS];
        kofn_options o = KOFN_OPTIONS_INIT;
        kofn_report rep = KOFN_REPORT_INIT;
        rig x;

        for (uint32_t i = 0; i < WORKERS; i++)
            h[i] = (kofn_fault_event){2, 0, KOFN_FAULT_EVENT_LEAVE, i, 0};
        o.events = h;
        o.event_count = k == 2 ? WORKERS - 1 : WORKERS; /* one is too few */
        up(&x, spec[k], true, KOFN_F64, &o);
        assert_true(rig_round(&x, &rep) >= 0);
        assert_status(KOFN_TOOFEW, rig_round(&x, &rep));
        rig_down(&x);
    }
}

static void exact_sums_say_so(void **state)
{
    static const char *const spec[] = {"gc:d=2",  "cgc:d=3", "agc:d=2",
                                       "uncoded", "bcc:r=2", "g-agc:d=3"};

    (void)state;
    for (size_t k = 0; k < sizeof spec / sizeof *spec; k++) {
        kofn_report rep = KOFN_REPORT_INIT;
        rig x;

        up(&x, spec[k], false, KOFN_F64, NULL);
        assert_ok(rig_round(&x, &rep));
        assert_int_equal(rep.parts, PARTS);
        assert_null(rep.ages);
        for (size_t j = 0; j < PARTS; j++)
            assert_true(rep.weights[j] == 1);
        rig_down(&x);
    }
}

/* ---- regression ---------------------------------------------------------- */

#define POINTS 103 /* parts of different sizes */
#define MACHINES 10
#define ITERATIONS 25

/* Makes the machine failures of regress_failing into events. */
static size_t failures_as_events(const failures *f, kofn_fault_event *h)
{
    bool gone[MACHINES] = {false};
    size_t n = 0;

    for (unsigned t = 1; t <= ITERATIONS; t++)
        for (uint32_t p = 0; p < MACHINES; p++) {
            kf_rng r = kf_rng_stream(f->seed, KF_FOR_LEAVE, p, t);

            if (gone[p] || kf_rng_uniform(&r) >= f->probability)
                continue;
            gone[p] = true;
            h[n++] = (kofn_fault_event){t, 0, KOFN_FAULT_EVENT_LEAVE, p, 0};
        }
    return n;
}

static void workers_fail_as_machines_do(void **state)
{
    kofn_matrix X = random_matrix(POINTS, 7, KOFN_F64, 5);
    kofn_matrix y = random_matrix(POINTS, 1, KOFN_F64, 6);

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        bool remember = kind % 2;
        kofn_regress_options o = {.size = sizeof o,
                                  .line_search = KOFN_LINE_SEARCH_NONE,
                                  .step = 0.05,
                                  .max_iterations = ITERATIONS,
                                  .tol = 1e-300,
                                  .loss = kind / 2 ? KOFN_LOSS_LOGISTIC
                                                   : KOFN_LOSS_SQUARES};
        failures f = {MACHINES, 0.03, 0,
                      remember ? MISSING_REMEMBERED : MISSING_IGNORED, 8};
        double a[7] = {0}, b[7] = {0}, labels[POINTS];
        kofn_matrix wa = {a, 7, 1, 1, KOFN_F64}, wb = {b, 7, 1, 1, KOFN_F64};
        kofn_matrix l = {labels, POINTS, 1, 1, KOFN_F64};
        kofn_regress_result ra = KOFN_REGRESS_RESULT_INIT,
                            rb = KOFN_REGRESS_RESULT_INIT;
        kofn_fault_event h[MACHINES];
        kofn_options jo = KOFN_OPTIONS_INIT;
        kofn_regression *r;
        kofn_problem pb = {.size = sizeof pb};
        kofn_plan *plan;
        kofn_port *port;
        kofn_job *job;

        for (size_t i = 0; i < POINTS; i++)
            labels[i] = ((double *)y.data)[i] > 0;
        assert_ok(
            kofn_regression_new(&r, KOFN_DENSE(&X), kind / 2 ? &l : &y, &o));
        assert_ok(regress_failing(r, &f, &wa, &ra));
        jo.events = h; /* events count iterations, not rounds */
        jo.event_count = failures_as_events(&f, h);
        assert_true(jo.event_count > 2 && jo.event_count < MACHINES);
        assert_ok(kofn_regression_problem(r, remember ? "distr-bgd" : "ignore",
                                          MACHINES, &pb));
        assert_ok(kofn_plan_new(&plan, &pb, remember ? "distr-bgd" : "ignore",
                                MACHINES, 1));
        assert_ok(kofn_port_sim(&port, MACHINES, NULL));
        assert_ok(kofn_open(&job, plan, port, &jo));
        assert_ok(kofn_regression_place(r, job, pb.op));
        assert_int_equal(kofn_regress(r, &wb, &rb), KOFN_PARTIAL);
        assert_at_most(relative_error(b, a, 7), 1e-12);
        assert_true(fabs(rb.objective - ra.objective) <= 1e-12 * ra.objective);
        kofn_close(job);
        kofn_plan_free(plan);
        kofn_regression_free(r);
    }
    kf_free(X.data);
    kf_free(y.data);
}

TEST_FILE(missing_test)
{
    const struct CMUnitTest tests[] = {
        TEST(left_out_until_replaced,
             "ignore: a lost part is omitted until a worker takes its seat"),
        TEST(slow_ones_are_left_out,
             "ignore: slow parts are omitted, slightly late ones are not"),
        TEST(remembered, "distr-bgd: lost parts count with their last value"),
        TEST(no_worker, "ignore: without any worker the sum is refused"),
        TEST(exact_sums_say_so,
             "sums: exact schemes report every part with weight 1"),
        TEST(workers_fail_as_machines_do,
             "ignore, distr-bgd: regression with failures is the paper's"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("missing", tests, NULL, NULL);
}
