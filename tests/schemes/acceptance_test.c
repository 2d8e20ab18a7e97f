/* acceptance_test.c -- the demands of docs/math on coded elastic computing and
 * polynomially coded regression that no other test covers. Other tests cover
 * these:
 *
 *   T3   every live set              left_test (A B and B A),
 *                                    laws_codes_test (A x), here (gradients)
 *        traces, data never moved    elastic_traces_test
 *   T4   in-flight modes             core_faults_test, elastic_traces_test (A
 * x), left_test, here (gradients) T5   PageRank's iterations       iterate_test
 *   T6   survival of groups          elastic_test
 *   T16  pcr, every survivor set     pcr_test
 *   T17  gradient codes              the tests gradient_*
 *   T18  batched coupons             experiment_test
 *   T19  iteration counts            regress_facts_test
 *   T20  ratios of scenarios         experiment_test
 *   refusals: here, and
 *        duplicate live row          core_test
 *        singular sets               code_test
 *        foreign, stale, duplicate   core_test, laws_test
 *        sizes and parameters        plan_test, pcr_rounds_test, the tests
 *                                    gradient_*
 *        fewer than K answers        pcr_test */
#include "regress_rig.h"

#include <stdio.h>

/* ---- T3: the gradient of every live set ---------------------------------- */

/* Computes 1/m X' z + ridge w from the definition. */
static void define_gradient(const data *d, kofn_loss loss, double ridge,
                            const double *w, double *g)
{
    size_t m = d->X.rows, n = d->X.cols;
    const double *X = d->X.data, *y = d->y.data;

    for (size_t j = 0; j < n; j++)
        g[j] = ridge * w[j];
    for (size_t i = 0; i < m; i++) {
        double t = dot(X + i * n, w, n);
        double z =
            loss == KOFN_LOSS_LOGISTIC ? 1 / (1 + exp(-t)) - y[i] : t - y[i];

        cblas_daxpy((int)n, z / (double)m, X + i * n, 1, g, 1);
    }
}

static size_t missing(unsigned set, size_t n, kofn_fault_event *gone)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        if (!(set >> i & 1))
            gone[left++] = (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_LEAVE,
                                              (uint32_t)i, 0};
    return left;
}

/* A step of length 1 from w shows the gradient there. */
static void check_gradient(const data *d, kofn_loss loss, const worker_setup *k)
{
    kofn_regress_options o = {.size = sizeof o,
                              .loss = loss,
                              .l2 = 0.3,
                              .step = 1,
                              .max_iterations = 1};
    double w[7], want[7], got[7];
    fit f;

    for (size_t j = 0; j < 7; j++)
        w[j] = cos((double)j);
    define_gradient(d, loss, 0.3, w, want);
    assert_ok(fit_up(&f, d, &o, k));
    memcpy(f.w.data, w, sizeof w);
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    for (size_t j = 0; j < 7; j++)
        got[j] = w[j] - ((double *)f.w.data)[j];
    assert_at_most(relative_error(got, want, 7), 1e-12);
    fit_down(&f);
}

static void gradients_of_every_live_set(void **state)
{
    static const struct {
        size_t n, k;
    } code[] = {{6, 3}, {7, 4}, {5, 5}, {6, 1}, {8, 3}};

    (void)state;
    for (int loss = 0; loss < 2; loss++) {
        data d =
            make_data(103, 7, (kofn_loss)loss, 5); /* a prime number of rows */

        for (size_t c = 0; c < sizeof code / sizeof *code; c++)
            for (unsigned set = 0; set < 1u << code[c].n; set++) {
                kofn_options opt = KOFN_OPTIONS_INIT;
                kofn_fault_event gone[8];
                char spec[40];
                worker_setup k = {spec, code[c].n, true, NULL, &opt};

                opt.events = gone;
                opt.event_count = missing(set, code[c].n, gone);
                if (code[c].n - opt.event_count < code[c].k)
                    continue;
                snprintf(spec, sizeof spec, "elastic:k=%zu%s", code[c].k,
                         set % 2 ? "" : ",cut=columns");
                check_gradient(&d, (kofn_loss)loss, &k);
            }
        data_free(&d);
    }
}

/* ---- sent back ------------------------------------------------------------
 */

/* math/elastic.md 11, 10: L R margins, for the padded rows of X, and d numbers
 * from each of the n live workers. For A B with A cut into columns, each sends
 * one product. */
static void sums_are_answered_once(void **state)
{
    kofn_regress_options o = {.size = sizeof o, .step = 1, .max_iterations = 1};
    data d = make_data(103, 7, KOFN_LOSS_SQUARES, 5);
    /* no worker is asked twice */
    kofn_options opt = {.size = sizeof opt, .late = -1};

    (void)state;
    for (size_t n = 1; n <= 9; n++)
        for (size_t k = 1; k <= n; k++)
            for (int sim = 0; sim < 2; sim++) {
                char spec[60];
                worker_setup setup = {spec, n, sim, NULL, &opt};
                rig_kind kind = {.spec = spec,
                                 .workers = n,
                                 .m = 11,
                                 .n = 97,
                                 .p = 3,
                                 .sim = sim,
                                 .opt = &opt};
                kofn_report rep = KOFN_REPORT_INIT;
                fit f;
                rig r;

                snprintf(spec, sizeof spec, "elastic:k=%zu,basis=gauss", k);
                assert_ok(fit_up(&f, &d, &o, &setup));
                assert_ok(kofn_regress(f.r, &f.w, &f.res));
                assert_int_equal(f.res.rounds.scalars,
                                 (103 + k - 1) / k * k + 7 * n);
                fit_down(&f);
                strcat(spec, ",cut=columns");
                rig_up(&r, &kind);
                assert_ok(rig_round(&r, &rep));
                assert_at_most(rig_error(&r), 1e-12);
                assert_int_equal(rep.messages, n);
                assert_int_equal(rep.scalars, n * 11 * 3);
                rig_down(&r);
            }
    data_free(&d);
}

/* ---- T4: changes within both phases -------------------------------------- */

#define STEPS 16

/* On average a worker leaves or joins at any share of every second round;
 * never fewer than k are left. */
static size_t make_changes(kofn_fault_event *e, size_t workers, size_t k,
                           kf_rng *r)
{
    size_t live = workers, there = workers, gone = 0, n = 0;

    for (unsigned round = 1; round <= 2 * STEPS; round++) {
        bool leave = live > k && kf_rng_below(r, 2);

        if (kf_rng_below(r, 2))
            continue;
        e[n++] = (kofn_fault_event){round, kf_rng_uniform(r),
                                    leave ? KOFN_FAULT_EVENT_LEAVE
                                          : KOFN_FAULT_EVENT_JOIN,
                                    leave ? (uint32_t)gone : 0, 0};
        gone += leave;
        there += !leave;
        live = there - gone;
    }
    return n;
}

static void changes_within_gradients(void **state)
{
    data d = make_data(211, 13, KOFN_LOSS_LOGISTIC, 6);
    kofn_regress_options o = {.size = sizeof o,
                              .loss = KOFN_LOSS_LOGISTIC,
                              .step = 1,
                              .max_iterations = STEPS,
                              .tol = 1e-300};
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    double *want = plain(&d, &o, &res);

    (void)state;
    for (uint32_t trial = 0; trial < often(60); trial++) {
        kf_rng r = kf_rng_stream(41, KF_FOR_DATA, trial, 0);
        kofn_options opt = KOFN_OPTIONS_INIT;
        kofn_fault_event events[2 * STEPS];
        size_t k = 1 + (size_t)kf_rng_below(&r, 5);
        char spec[60];

        opt.events = events;
        opt.event_count = make_changes(events, 7, k, &r);
        snprintf(spec, sizeof spec, "elastic:k=%zu%s%s", k,
                 trial % 3 ? "" : ",deal=speed",
                 trial % 4 ? "" : ",cut=columns");
        for (int mode = 0; mode < 3; mode++) {
            worker_setup setup = {spec, 7, trial % 5 > 0, NULL, &opt};
            fit f;

            opt.in_flight = (kofn_in_flight)mode;
            assert_ok(fit_up(&f, &d, &o, &setup));
            assert_ok(kofn_regress(f.r, &f.w, &f.res));
            assert_at_most(relative_error(f.w.data, want, 13), 1e-12);
            assert_int_equal(f.res.rounds.rounds, 2 * STEPS);
            assert_true(f.res.rounds.left + f.res.rounds.joined > 0);
            fit_down(&f);
        }
    }
    kf_free(want);
    data_free(&d);
}

/* ---- harmless refusals ----------------------------------------------------
 */

/* A code for each operation. */
static const struct job_kind {
    kofn_op op;
    const char *spec;
} kinds[] = {{KOFN_MATVEC, "elastic:k=4"},
             {KOFN_LEFT, "elastic:k=4,cut=columns"},
             {KOFN_GRAM, "pcr:r=2"},
             {KOFN_GRAM, "pcr:r=2,basis=lagrange,layout=paper"},
             {KOFN_SUM, "gc:d=3"}};
#define KINDS (sizeof kinds / sizeof *kinds)

static rig_kind rig_for(const struct job_kind *kind, const kofn_options *opt)
{
    return (rig_kind){.spec = kind->spec,
                      .workers = 6,
                      .m = 24,
                      .n = 10,
                      .p = 1,
                      .op = kind->op,
                      .sim = true,
                      .opt = opt};
}

static void refuse(kofn_status want, kofn_status got, const char *says)
{
    if (got != want || !strstr(kofn_errmsg(), says))
        fail_msg("%s, not %s with \"%s\" (%s)", kofn_strerror(got),
                 kofn_strerror(want), says, kofn_errmsg());
}

static void right_answer(rig *r)
{
    assert_ok(rig_round(r, NULL));
    assert_at_most(rig_error(r), 1e-12);
}

/* Vectors with NaN or of the wrong length, and a second matrix. */
static void wrong_rounds_are_harmless(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++) {
        rig_kind k = rig_for(&kinds[i], NULL);
        kofn_matrix bad;
        double *x, was;
        rig r;

        rig_up(&r, &k);
        right_answer(&r);
        x = r.x.data;
        was = x[3];
        x[3] = NAN;
        refuse(KOFN_NONFINITE, kofn_round(r.job, &r.x, &r.y, NULL), "NaN");
        x[3] = -INFINITY;
        refuse(KOFN_NONFINITE, kofn_round(r.job, &r.x, &r.y, NULL), "NaN or");
        x[3] = was;
        right_answer(&r);
        bad = r.x;
        *(k.op == KOFN_LEFT ? &bad.cols : &bad.rows) -= 1;
        refuse(KOFN_SHAPE, kofn_round(r.job, &bad, &r.y, NULL), "input is");
        bad = r.y;
        *(k.op == KOFN_LEFT ? &bad.cols : &bad.rows) += 1;
        bad.ld = bad.cols;
        refuse(KOFN_SHAPE, kofn_round(r.job, &r.x, &bad, NULL), "output is");
        refuse(KOFN_STATE, rig_place(&r), "another job");
        right_answer(&r);
        rig_down(&r);
    }
}

/* A matrix with NaN is not placed, and the next one is. */
static void wrong_matrices_are_harmless(void **state)
{
    (void)state;
    for (size_t i = 0; kinds[i].op != KOFN_SUM; i++) {
        rig_kind k = rig_for(&kinds[i], NULL);
        kofn_port *port;
        double was;
        rig r;

        rig_inputs(&r, &k);
        assert_ok(kofn_port_sim(&port, 6, NULL));
        assert_ok(kofn_open(&r.job, r.plan, port, NULL));
        was = ((double *)r.A.data)[17];
        ((double *)r.A.data)[17] = NAN;
        refuse(KOFN_NONFINITE, kofn_place(r.job, &r.A), "A: element [1, 7]");
        ((double *)r.A.data)[17] = was;
        assert_ok(kofn_place(r.job, &r.A));
        right_answer(&r);
        rig_down(&r);
    }
}

/* In round 2 too few workers are left; in round 3 another has joined. */
static void too_few_and_then_enough(void **state)
{
    static const kofn_fault_event events[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {2, 0.2, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 4, 0},
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 5, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;

    (void)state;
    opt.events = events;
    opt.event_count = sizeof events / sizeof *events;
    for (size_t i = 0; i < KINDS; i++) {
        rig_kind k = rig_for(&kinds[i], &opt);
        rig r;

        rig_up(&r, &k);
        right_answer(&r);
        refuse(KOFN_TOOFEW, rig_round(&r, NULL), "workers");
        right_answer(&r);
        rig_down(&r);
    }
}

/* L < 1, L > P, N < 1, d < 1, r outside 2 .. n, fewer workers than answers. */
static void wrong_plans(void **state)
{
    static const struct {
        kofn_op op;
        const char *spec;
        size_t workers, m, n;
        kofn_status status;
        const char *says;
    } bad[] = {
        {KOFN_MATVEC, "elastic:k=0", 6, 9, 9, KOFN_INVAL, "k=0"},
        {KOFN_MATVEC, "elastic:k=7", 6, 9, 9, KOFN_INVAL, "k = 7"},
        {KOFN_MATVEC, "elastic:k=3", 0, 9, 9, KOFN_INVAL, "workers"},
        {KOFN_MATVEC, "elastic:k=3", 6, 0, 9, KOFN_SHAPE, "0 x 9"},
        {KOFN_MATVEC, "elastic:k=3", 6, 9, 0, KOFN_SHAPE, "9 x 0"},
        {KOFN_GRAM, "pcr:r=1", 6, 9, 9, KOFN_INVAL, "r = 1"},
        {KOFN_GRAM, "pcr:r=7", 6, 9, 9, KOFN_INVAL, "r = 7"},
        {KOFN_GRAM, "pcr:r=2", 6, 0, 9, KOFN_SHAPE, "0 x 9"},
        {KOFN_SUM, "gc:d=0", 6, 9, 9, KOFN_INVAL, "d=0"},
        {KOFN_SUM, "gc:d=7", 6, 9, 9, KOFN_INVAL, "d = 7"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kofn_problem pb = KOFN_PROBLEM_INIT(bad[i].op, bad[i].m, bad[i].n, 1,
                                            KOFN_F64, false);
        kofn_plan *plan = (kofn_plan *)&pb;

        refuse(bad[i].status,
               kofn_plan_new(&plan, &pb, bad[i].spec, bad[i].workers, 1),
               bad[i].says);
        assert_null(plan);
    }
}

/* The loss is not finite at the start of a line search. */
static void searches_from_nowhere(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "pcr:r=2", "gc:d=3"};
    static const kofn_line_search rule[] = {
        KOFN_LINE_SEARCH_EXACT, KOFN_LINE_SEARCH_ARMIJO, KOFN_LINE_SEARCH_GRID};
    data d = make_data(60, 5, KOFN_LOSS_SQUARES, 3);
    const double far[5] = {1e200, -1e200, 3e199, 0, 1};

    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (size_t i = 0; i < 3; i++) {
            kofn_regress_options o = {
                .size = sizeof o, .line_search = rule[i], .max_iterations = 5};
            worker_setup k = {spec[s], 6, true, NULL, NULL};
            kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
            double *want = plain(&d, &o, &res);
            fit f;

            assert_ok(fit_up(&f, &d, &o, &k));
            memcpy(f.w.data, far, sizeof far);
            refuse(KOFN_NONFINITE, kofn_regress(f.r, &f.w, &f.res),
                   "not finite");
            assert_memory_equal(f.w.data, far, sizeof far);
            assert_int_equal(f.res.iterations, 0);
            memset(f.w.data, 0, sizeof far);
            assert_ok(kofn_regress(f.r, &f.w, &f.res));
            assert_at_most(relative_error(f.w.data, want, 5), 1e-10);
            fit_down(&f);
            kf_free(want);
        }
    data_free(&d);
}

TEST_FILE(acceptance_test)
{
    const struct CMUnitTest tests[] = {
        TEST(gradients_of_every_live_set,
             "elastic: gradients are exact for every live set (each loss)"),
        TEST(sums_are_answered_once,
             "elastic: workers send each sum once, with the published traffic"),
        TEST(changes_within_gradients,
             "elastic: workers leave and join within gradients (3 modes)"),
        TEST(wrong_rounds_are_harmless,
             "job: a wrong round is refused and harms no other"),
        TEST(wrong_matrices_are_harmless,
             "job: a wrong matrix is refused and the next one is placed"),
        TEST(too_few_and_then_enough,
             "job: a round fails with too few workers, the next succeeds"),
        TEST(wrong_plans,
             "plan: impossible parameters are refused with the reason"),
        TEST(searches_from_nowhere,
             "regress: an infinite loss leaves w and the next descent intact"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("acceptance", tests, NULL, NULL);
}
