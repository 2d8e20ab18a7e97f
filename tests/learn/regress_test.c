/* regress_test.c -- regression by coded gradients. The descent is the plain one
 * under any faults, on random points and on housing data. Also tests sums of
 * the caller's functions and reports. */
#include "regress_rig.h"

#include <kofn/io.h>
#include <stdio.h>

/* ---- coded and plain descents -------------------------------------------- */

/* Lets workers leave at random times, down to the threshold. */
static size_t make_trace(kofn_fault_event *e, size_t workers, size_t threshold,
                         unsigned rounds, kf_rng *r)
{
    size_t gone = workers - threshold, n = 0;

    for (size_t i = 0; i < gone; i++)
        e[n++] = (kofn_fault_event){
            1 + (unsigned)(rounds * i / gone) +
                (unsigned)kf_rng_below(r, rounds / (unsigned)gone),
            (double)kf_rng_below(r, 3) / 3, KOFN_FAULT_EVENT_LEAVE,
            (uint32_t)(i * 2 % workers + i * 2 / workers), 0};
    return n;
}

static size_t threshold_of(const data *d, const kofn_regress_options *o,
                           const worker_setup *k, kofn_op *op)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_regression *r;
    kofn_problem pb = {.size = sizeof pb};
    kofn_plan *plan;
    kofn_status st;
    size_t threshold = 0;
    char spec[256];

    assert_ok(kofn_regression_new(&r, KOFN_DENSE(&d->X), &d->y, o));
    st = kofn_regression_problem(r, k->spec, k->workers, &pb);
    *op = pb.op;
    kofn_regression_free(r);
    if (st && st != KOFN_UNSUITED && !strstr(kofn_errmsg(), "left products"))
        fail_msg("%s: %s", k->spec, kofn_errmsg());
    if (st)
        return 0;
    assert_ok(kofn_plan_new(&plan, &pb, k->spec, k->workers, 3));
    assert_ok(kofn_plan_describe(plan, false, &info));
    threshold = info.threshold;
    snprintf(spec, sizeof spec, "%s", info.spec);
    kofn_plan_free(plan);
    if (pb.op != KOFN_MATVEC)
        return threshold;
    pb.op = KOFN_LEFT; /* which may need more answers */
    assert_ok(kofn_plan_new(&plan, &pb, spec, k->workers, 3));
    assert_ok(kofn_plan_describe(plan, false, &info));
    kofn_plan_free(plan);
    return kf_max(threshold, info.threshold);
}

/* 100 iterations with a fixed step: w, F and |g| agree to 1e-10. */
static kofn_op same_descent(const data *d, const char *spec, size_t workers,
                            kofn_regress_options o, bool sim)
{
    worker_setup k = {spec, workers, sim, sim ? &straggling : NULL, NULL};
    kf_rng r = kf_rng_stream(workers, KF_FOR_DATA, 30, 0);
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_fault_event events[64];
    kofn_regress_result want = KOFN_REGRESS_RESULT_INIT;
    kofn_op op;
    size_t threshold = threshold_of(d, &o, &k, &op);
    kofn_matrix w;
    fit f;

    if (threshold == 0)
        return 0;
    w = column(d->X.cols);
    opt.events = events;
    opt.event_count = make_trace(events, workers, threshold, 100, &r);
    opt.late = 3;
    k.opt = &opt;
    assert_ok(fit_up(&f, d, &o, &k));
    assert_ok(kofn_regress_plain(f.r, &w, &want)); /* in the same batches */
    if (kofn_regress(f.r, &f.w, &f.res))
        fail_msg("%s: %s", spec, kofn_errmsg());
    if (relative_error(f.w.data, w.data, d->X.cols) > 1e-10)
        fail_msg("%s: w is off by %g", spec,
                 relative_error(f.w.data, w.data, d->X.cols));
    assert_int_equal(f.res.iterations, want.iterations);
    assert_at_most(fabs(f.res.objective - want.objective),
                   1e-10 * fabs(want.objective));
    assert_true(f.res.converged == want.converged);
    assert_int_equal(f.res.rounds.left, opt.event_count);
    fit_down(&f);
    kf_free(w.data);
    return op;
}

static const char *const more_specs[] = {"elastic:k=3",
                                         "elastic:k=3,cut=columns",
                                         "elastic:k=6",
                                         "elastic:k=4,deal=speed",
                                         "polynomial:basis=circle",
                                         "pcr:r=2",
                                         "pcr:r=3,systematic=1",
                                         "pcr:r=2,basis=lagrange"};

/* True for baselines that leave out late workers. */
static bool is_inexact(const char *name)
{
    return strcmp(name, "ignore") == 0 || strcmp(name, "distr-bgd") == 0;
}

/* Tries all schemes with one descent. Counts them by way to get gradients. */
static void all_schemes(const data *d, kofn_regress_options o, size_t way[3])
{
    const kofn_scheme *s;

    for (size_t i = 0;; i++) {
        size_t more = sizeof more_specs / sizeof *more_specs;
        const char *spec = i < more ? more_specs[i] : NULL;
        kofn_op op;

        if (!spec && !(s = kofn_scheme_at(i - more)))
            break;
        if (!spec && is_inexact(s->name))
            continue;
        op = same_descent(d, spec ? spec : s->name, 6, o, i % 4 != 3);
        way[0] += op == KOFN_MATVEC;
        way[1] += op == KOFN_GRAM;
        way[2] += op == KOFN_SUM;
    }
}

static void every_scheme(void **state)
{
    static const char *const name[] = {"squares", "logistic", "poisson"};

    (void)state;
    for (int loss = 0; loss < 3; loss++)
        for (int how = 0; how < 3; how++) {
            data d = make_data(203, 17, (kofn_loss)loss, 3);
            kofn_regress_options o = {
                .size = sizeof o,
                .loss = (kofn_loss)loss,
                .optimizer = (kofn_optimizer)(KOFN_OPTIMIZER_GD + how),
                .step = loss == 2 ? 0.05 : 0.4,
                .l2 = how == 1 ? 0.01 : 0,
                .tol = 1e-300,
                .seed = 8};
            size_t way[3] = {0};

            if (SLOWED == 1 || loss == how)
                all_schemes(&d, o, way);
            print_message("    %s, descent %d: %zu row codes, %zu pcr, %zu "
                          "gradient codes\n",
                          name[loss], how, way[0], way[1], way[2]);
            if (SLOWED == 1) {
                assert_true(way[0] >= 5);
                assert_int_equal(way[1] > 0, loss == 0 && how != 2);
            }
            data_free(&d);
        }
}

/* ---- housing ------------------------------------------------------------- */

static kofn_file *open_housing(const char *what, kofn_matrix *out)
{
    const char *slash = strrchr(__FILE__, '/');
    char full[1000];
    kofn_file *f;

    snprintf(full, sizeof full, "%.*s/../../../shared/data/housing/%s.npy",
             slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".", what);
    if (access(full, R_OK) != 0) {
        print_message("%s does not exist\n", full);
        skip();
    }
    assert_ok(kofn_file_open(&f, full, KOFN_FILE_READ));
    *out = *f->matrix.dense;
    return f;
}

static void load_housing(data *d, kofn_file *file[2])
{
    file[0] = open_housing("X", &d->X);
    file[1] = open_housing("y", &d->y);
    if (d->y.cols != 1) { /* a vector may be read as a row */
        d->y.rows = d->y.cols;
        d->y.cols = d->y.ld = 1;
    }
    assert_int_equal(d->X.rows, 20640);
}

/* Returns 1/L of X' X / m. */
static double longest_step(const data *d)
{
    kofn_regress_options o = {
        .size = sizeof o, .optimizer = KOFN_OPTIMIZER_GD, .max_iterations = 1};
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;

    kf_free(plain(d, &o, &res));
    return 1 / res.lipschitz;
}

/* Data of 20,640 x 13. */
static void housing_descent(void **state)
{
    kofn_regress_options o = {.size = sizeof o, .tol = 1e-300};
    kofn_file *file[2];
    size_t way[3] = {0};
    data d = {0};

    (void)state;
    load_housing(&d, file);
    o.step = longest_step(&d);
    if (SLOWED == 1) {
        all_schemes(&d, o, way);
        assert_true(way[0] >= 5 && way[1] >= 4);
    } else {
        same_descent(&d, "elastic:k=4", 6, o, true);
        same_descent(&d, "pcr:r=2", 6, o, true);
    }
    kofn_file_free(file[0]);
    kofn_file_free(file[1]);
}

/* Nesterov's descent on coded workers, restarted from the last w. It converges
 * fastest with a number of iterations that fits the condition. */
static void restarted(const data *d, const char *spec, unsigned each,
                      unsigned times, const double *want)
{
    kofn_regress_options o = {.size = sizeof o,
                              .optimizer = KOFN_OPTIMIZER_NESTEROV,
                              .max_iterations = each,
                              .step = longest_step(d),
                              .tol = 1e-300};
    worker_setup k = {spec, 6, true, &straggling, NULL};
    fit f;

    assert_ok(fit_up(&f, d, &o, &k));
    for (unsigned t = 0; t < times; t++)
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
    if (relative_error(f.w.data, want, d->X.cols) > 1e-8)
        fail_msg("%s: off the minimum by %g", spec,
                 relative_error(f.w.data, want, d->X.cols));
    fit_down(&f);
}

/* Scales columns to mean square 1. The condition of X' X falls from 16,141 to
 * 203. */
static kofn_matrix even_columns(const kofn_matrix *X, double *scale)
{
    kofn_matrix Z = {numbers(X->rows * X->cols, 8), X->rows, X->cols, X->cols,
                     KOFN_F64};
    const double *x = X->data;
    double *z = Z.data;

    for (size_t j = 0; j < X->cols; j++) {
        double sum =
            cblas_ddot((int)X->rows, x + j, (int)X->ld, x + j, (int)X->ld);

        scale[j] = sqrt(sum / (double)X->rows);
        for (size_t i = 0; i < X->rows; i++)
            z[i * X->cols + j] = x[i * X->ld + j] / scale[j];
    }
    return Z;
}

/* The README of the data has the residual of LAPACK's fit. */
static void housing_fit(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc", "cgc", "g-cgc",
                                       "pcr:r=2"};
    kofn_file *file[2];
    data d = {0}, even;
    double scale[13], *want;

    (void)state;
    load_housing(&d, file);
    want = least_squares(&d, 0);
    assert_at_most(fabs(mean_square(&d, want) - 0.4720971421), 1e-10);
    if (SLOWED == 1) /* unscaled */
        restarted(&d, "pcr:r=3", 600, 10, want);
    even = (data){even_columns(&d.X, scale), d.y, NULL};
    for (size_t j = 0; j < 13; j++)
        want[j] *= scale[j];
    for (size_t s = 0; s < (SLOWED == 1 ? 5 : 1); s++)
        restarted(&even, spec[s], 50, 9, want);
    kf_free(want);
    kf_free(even.X.data);
    kofn_file_free(file[0]);
    kofn_file_free(file[1]);
}

/* ---- the sum of the caller's function ------------------------------------ */

/* X_j' (X_j w - y_j), with a run of rows as the points of part j. */
static kofn_status own_gradient(void *ctx, size_t part, size_t parts,
                                const kofn_matrix *in, kofn_matrix *out)
{
    const data *d = ctx;
    size_t n = d->X.cols, lo = part * d->X.rows / parts;
    size_t hi = (part + 1) * d->X.rows / parts;
    const double *X = d->X.data, *y = d->y.data;
    double *g = out->data;

    memset(g, 0, n * sizeof *g);
    for (size_t i = lo; i < hi; i++)
        cblas_daxpy((int)n, dot(X + i * n, in->data, n) - y[i], X + i * n, 1, g,
                    1);
    return KOFN_OK;
}

/* Does 100 steps with kofn_place_parts and a loop. */
static void sum_of_own_functions(void **state)
{
    static const char *const spec[] = {"gc", "cgc", "g-cgc"};
    data d = make_data(203, 17, KOFN_LOSS_SQUARES, 3);
    kofn_regress_options o = {.size = sizeof o, .step = 0.4, .tol = 1e-300};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, 17, 17, 1, KOFN_F64, false);
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    double *want = plain(&d, &o, &res);

    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (int sim = 0; sim < 2; sim++) {
            worker_setup k = {spec[s], 6, sim, sim ? &straggling : NULL, NULL};
            kofn_matrix w = column(17), g = column(17);
            kofn_plan *plan;
            kofn_port *port;
            kofn_job *job;
            fit f;

            assert_ok(kofn_plan_new(&plan, &pb, spec[s], 6, 3));
            assert_ok(sim ? kofn_port_sim(&port, 6, &straggling)
                          : kofn_port_threads(&port, 6, NULL));
            assert_ok(kofn_open(&job, plan, port, NULL));
            assert_ok(kofn_place_parts(job, own_gradient, &d));
            for (int t = 0; t < 100; t++) {
                assert_ok(kofn_round(job, &w, &g, NULL));
                cblas_daxpy(17, -0.4 / 203, g.data, 1, w.data, 1);
            }
            assert_at_most(relative_error(w.data, want, 17), 1e-12);
            assert_ok(fit_up(&f, &d, &o, &k));
            assert_ok(kofn_regress(f.r, &f.w, &f.res));
            assert_at_most(relative_error(w.data, f.w.data, 17), 1e-12);
            fit_down(&f);
            kofn_close(job);
            kofn_plan_free(plan);
            kf_free(w.data);
            kf_free(g.data);
        }
    kf_free(want);
    data_free(&d);
}

/* The simulator models the time of a step: the busiest worker's share of 2 m n
 * multiply-adds, in every way to compute it. So schemes can be compared by it.
 * A batch of ten takes a tenth. */
static void modelled_cost(void **state)
{
    static const struct {
        const char *spec;
        double share;
    } code[] = {{"uncoded", 1.0 / 8}, {"gc:d=2", 2.0 / 8},
                {"cgc:d=4", 4.0 / 8}, {"bcc:r=2", 2.0 / 8},
                {"pcr:r=2", 2.0 / 8}, {"elastic:k=4", 1.0 / 8}};
    data d = make_data(960, 40, KOFN_LOSS_SQUARES, 2);

    (void)state;
    for (size_t s = 0; s < sizeof code / sizeof *code; s++)
        for (int sgd = 0; sgd < 2; sgd++) {
            kofn_regress_options o = {
                .size = sizeof o, .step = 0.1, .max_iterations = 1};
            worker_setup k = {code[s].spec, 8, true, NULL, NULL};
            double want = 2 * 960 * 40 * code[s].share * (sgd ? 0.1 : 1), took;
            fit f;

            o.optimizer = sgd ? KOFN_OPTIMIZER_SGD : KOFN_OPTIMIZER_GD;
            if (fit_up(&f, &d, &o, &k) == KOFN_OK) {
                assert_ok(kofn_regress(f.r, &f.w, &f.res));
                took = (double)f.res.rounds.took; /* a nanosecond each */
                /* strips are whole, and values are mixed */
                assert_at_most(want, took * (sgd ? 1.3 : 1.0001));
                assert_at_most(took, want * (sgd ? 1.7 : 1.05) + 100);
            } else {
                assert_true(sgd && s == 4);
            }
            fit_down(&f);
        }
    data_free(&d);
}

static void work_is_set_in_time(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, 17, 17, 1, KOFN_F64, false);
    data d = make_data(203, 17, KOFN_LOSS_SQUARES, 3);
    kofn_matrix w = column(17), g = column(17);
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    (void)state;
    assert_ok(kofn_plan_new(&plan, &pb, "gc", 6, 3));
    assert_ok(kofn_port_sim(&port, 6, NULL));
    assert_ok(kofn_open(&job, plan, port, NULL));
    assert_status(KOFN_STATE, kofn_parts_work(job, 1));
    assert_ok(kofn_place_parts(job, own_gradient, &d));
    assert_status(KOFN_INVAL, kofn_parts_work(job, 0));
    assert_status(KOFN_INVAL, kofn_parts_work(job, INFINITY));
    assert_ok(kofn_parts_work(job, 2 * 203 * 17));
    assert_ok(kofn_round(job, &w, &g, NULL));
    assert_status(KOFN_STATE, kofn_parts_work(job, 1));
    assert_ok(kofn_round(job, &w, &g, NULL));
    kofn_close(job);
    kofn_plan_free(plan);
    kf_free(w.data);
    kf_free(g.data);
    data_free(&d);
}

/* ---- reports ------------------------------------------------------------- */

typedef struct history {
    unsigned calls, stop_at;
    double objective, test, scalars;
    unsigned rounds;
} history;

static int record(void *ud, const kofn_regress_step *now,
                  const kofn_report *rep)
{
    history *h = ud;

    if (!rep)
        return 0;
    assert_int_equal(now->iteration, ++h->calls);
    assert_true(h->calls == 1 || now->objective < h->objective);
    assert_true(now->step > 0 && now->gradient > 0);
    h->objective = now->objective;
    h->test = now->test;
    h->rounds += rep->rounds;
    h->scalars += (double)rep->scalars;
    return h->calls == h->stop_at;
}

/* Reports the loss of held-out points and the numbers received, and can stop.
 */
static void watch_reports(void **state)
{
    data d = make_data(60, 6, KOFN_LOSS_SQUARES, 12);
    data other = make_data(33, 6, KOFN_LOSS_SQUARES, 13);
    history h = {.stop_at = 9};
    kofn_regress_options o = {.size = sizeof o,
                              .step = 0.3,
                              .test_X = &other.X,
                              .test_y = &other.y,
                              .watch = record,
                              .watch_ud = &h};
    worker_setup k = {"pcr:r=3", 9, true, NULL, NULL};
    double last;
    fit f;

    (void)state;
    assert_ok(fit_up(&f, &d, &o, &k));
    assert_int_equal(kofn_regress(f.r, &f.w, &f.res), KOFN_AGAIN);
    assert_int_equal(f.res.iterations, 9);
    assert_true(h.rounds == 9 && f.res.rounds.rounds == 9);
    assert_true(h.scalars == 9 * 5 * 6);
    assert_true((double)f.res.rounds.scalars == h.scalars);
    assert_at_most(fabs(h.test - mean_square(&other, f.w.data) / 2), 1e-14);
    assert_true(f.res.test == h.test);
    /* a second call resumes at the last w */
    last = h.objective;
    h = (history){.stop_at = 2};
    assert_int_equal(kofn_regress(f.r, &f.w, &f.res), KOFN_AGAIN);
    assert_true(f.res.objective < last);
    fit_down(&f);
    data_free(&d);
    data_free(&other);
}

/* Stops as soon as a round waits. Records w after each step. */
typedef struct weights_log {
    double w[100][6];
    const double *now;
} weights_log;

static int stop_on_wait(void *ud, const kofn_regress_step *now,
                        const kofn_report *rep)
{
    weights_log *i = ud;

    if (rep)
        memcpy(i->w[now->iteration], i->now, sizeof *i->w);
    return !rep;
}

/* A worker never answers in the third step. Its task is part of no step. */
static void stopped_within_a_round(void **state)
{
    static const char *const specs[] = {"uncoded", "elastic:k=3"};
    static const kofn_fault_event slow[] = {
        {3, 0, KOFN_FAULT_EVENT_SLOW, 1, 1e6}};
    data d = make_data(60, 6, KOFN_LOSS_SQUARES, 12);
    kofn_options opt = KOFN_OPTIONS_INIT;

    (void)state;
    opt.events = slow;
    opt.event_count = 1;
    opt.late = -1;
    for (size_t k = 0; k < 2; k++) {
        weights_log at = {.now = NULL};
        kofn_regress_options o = {.size = sizeof o,
                                  .step = 0.3,
                                  .watch = stop_on_wait,
                                  .watch_ud = &at};
        worker_setup setup = {specs[k], 3, false, NULL, &opt};
        fit f;

        assert_ok(fit_up(&f, &d, &o, &setup));
        at.now = f.w.data;
        assert_int_equal(kofn_regress(f.r, &f.w, &f.res), KOFN_AGAIN);
        assert_true(f.res.iterations <= 2);
        assert_memory_equal(f.w.data, at.w[f.res.iterations], sizeof *at.w);
        /* No product is left with an output that the caller has freed. */
        assert_status(KOFN_STATE, kofn_take(f.job, 0, 0, NULL));
        fit_down(&f);
    }
    data_free(&d);
}

TEST_FILE(regress_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_scheme,
             "regress: every scheme takes the descent of the plain one"),
        TEST(housing_descent,
             "regress: every scheme takes the plain descent on housing data"),
        TEST(housing_fit, "regress: the fit of housing data is LAPACK's"),
        TEST(sum_of_own_functions,
             "regress: a sum of own functions gives the same descent"),
        TEST(modelled_cost, "regress: the modelled time of a step is its work"),
        TEST(work_is_set_in_time,
             "regress: the work of parts must be set before a round"),
        TEST(watch_reports,
             "regress: a watch gets loss and traffic, and can stop"),
        TEST(stopped_within_a_round,
             "regress: a stop within a round keeps the last weights"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("regress", tests, NULL, NULL);
}
