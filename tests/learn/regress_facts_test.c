/* regress_facts_test.c -- where descents end: known minima, published numbers,
 * machines that fail, and kernels.
 *
 * Facts are named as in the companion table of the specification (facts.json).
 */
#include "failing.h"
#include "figure1.h"
#include "portable.h"
#include "regress_rig.h"

/* math/regression.md 14. */
static data mixture(size_t m, size_t n, uint64_t seed)
{
    data d = {{numbers(m * n, 8), m, n, n, KOFN_F64}, column(m), NULL};
    double *X = d.X.data, *y = d.y.data;
    uint64_t s = seed;

    d.w = numbers(n, sizeof *d.w);
    for (size_t j = 0; j < n; j++)
        d.w[j] = uniform(&s);
    for (size_t i = 0; i < m; i++) {
        double sign = uniform(&s) < 0.5 ? 1 : -1;

        for (size_t j = 0; j < n; j++)
            X[i * n + j] = sign * 1.5 / (double)n * d.w[j] + normal(&s);
        y[i] = dot(X + i * n, d.w, n);
    }
    return d;
}

/* ---- minima -------------------------------------------------------------- */

static void check_minimum(const data *d, const char *spec,
                          kofn_regress_options o)
{
    double *want = least_squares(d, o.l2);
    worker_setup k = {spec, 6, true, &straggling, NULL};
    fit f;

    assert_ok(fit_up(&f, d, &o, &k));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    assert_true(f.res.converged);
    if (relative_error(f.w.data, want, d->X.cols) > 1e-8)
        fail_msg("%s: off the minimum by %g", spec,
                 relative_error(f.w.data, want, d->X.cols));
    fit_down(&f);
    kf_free(want);
}

/* Covers every way to get gradients, every descent and every step rule. */
static void finds_the_minimum(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "pcr:r=2", "gc"};
    data d = make_data(150, 12, KOFN_LOSS_SQUARES, 9);

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        kofn_regress_options o = {
            .size = sizeof o, .tol = 1e-10, .max_iterations = 2000};

        if (s == 2 && !kofn_scheme_find("gc"))
            continue;
        check_minimum(&d, spec[s], o);
        o.l2 = 0.1;
        check_minimum(&d, spec[s], o);
        o.optimizer = KOFN_OPTIMIZER_NESTEROV;
        check_minimum(&d, spec[s], o);
        o.optimizer = KOFN_OPTIMIZER_GD;
        o.line_search = KOFN_LINE_SEARCH_EXACT;
        check_minimum(&d, spec[s], o);
        o.line_search = KOFN_LINE_SEARCH_ARMIJO;
        check_minimum(&d, spec[s], o);
        o.line_search = KOFN_LINE_SEARCH_GRID;
        check_minimum(&d, spec[s], o);
    }
    data_free(&d);
}

/* ---- facts --------------------------------------------------------------- */

/* math/elastic.md 3. */
static kofn_status fig1_deal(const kofn_layout *L, const kofn_live *live,
                             size_t n, size_t cover, size_t span,
                             kofn_deals *out)
{
    kofn_status st = KOFN_OK;

    (void)L, (void)live;
    for (size_t p = 0; p < n && !st; p++)
        for (size_t q = 0; q < cover && !st; q++) {
            size_t j = (p + q) % n;

            if ((j + 1) * span / n > j * span / n)
                st = kofn_deals_add(out, p, j * span / n, (j + 1) * span / n);
        }
    return st;
}

static const kofn_scheme fig1_scheme = {
    .size = sizeof(kofn_scheme),
    .name = "fig1",
    .ops = KOFN_MATVEC | KOFN_LEFT,
    .params = fig1_no_params,
    .layout = fig1_layout,
    .seat = fig1_seat,
    .deal = fig1_deal,
};

/* Fact cec.worked.gradient: X' (X w - y) in two phases on machines 0, 2, 4 and
 * 5. */
static void fact_worked_gradient(void **state)
{
    static const double want[] = {7.680342215831864, 11.202680229974703,
                                  -9.716197135456145};
    static const kofn_fault_event gone[] = {
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 3, 0}};
    kofn_regress_options o = {.size = sizeof o, .step = 1, .max_iterations = 1};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 12, 3, 1, KOFN_F64, false);
    kofn_options opt = KOFN_OPTIONS_INIT;
    data d = {{numbers(36, 8), 12, 3, 3, KOFN_F64}, column(12), NULL};
    double w[3] = {1, 0.5, -1}, g[3];
    kofn_matrix W = {w, 3, 1, 1, KOFN_F64};
    kofn_regression *r;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;
    uint64_t s = 42;

    (void)state;
    opt.events = gone;
    opt.event_count = 2;
    for (size_t i = 0; i < 36; i++)
        ((double *)d.X.data)[i] = normal(&s);
    for (size_t i = 0; i < 12; i++)
        ((double *)d.y.data)[i] = normal(&s);
    assert_ok(kofn_regression_new(&r, KOFN_DENSE(&d.X), &d.y, &o));
    assert_ok(kofn_plan_new_for(&plan, &pb, &fig1_scheme, NULL, 6, 1));
    assert_ok(kofn_plan_serve_left(plan, 1));
    assert_ok(kofn_port_sim(&port, 6, NULL));
    assert_ok(kofn_open(&job, plan, port, &opt));
    assert_ok(kofn_regression_place(r, job, KOFN_MATVEC));
    assert_ok(kofn_regress(r, &W, NULL));
    for (size_t j = 0; j < 3; j++)
        g[j] = 12 * ((double[]){1, 0.5, -1}[j] - w[j]);
    assert_at_most(relative_error(g, want, 3), 1e-13);
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_regression_free(r);
    data_free(&d);
}

/* Stops when the mean square is below 1e-8 of that of y. */
typedef struct goal {
    const data *d;
    double yy, *loss;
    unsigned calls;
} goal;

static int reached(void *ud, const kofn_regress_step *now,
                   const kofn_report *rep)
{
    goal *g = ud;

    if (!rep)
        return 0;
    assert_int_equal(now->iteration, ++g->calls);
    return mean_square(g->d, now->w) < 1e-8 * g->yy;
}

/* Facts pcr.data.head, pcr.iters: 35 iterations instead of 52. */
static void fact_iterations(void **state)
{
    static const unsigned want[] = {52, 35};
    data d = mixture(80, 20, 123);
    const double *X = d.X.data, *y = d.y.data;

    (void)state;
    assert_at_most(fabs(d.w[0] - 0.7064912217637067), 1e-15);
    assert_at_most(fabs(X[0] - 1.4284480057628275), 1e-14);
    assert_at_most(fabs(X[1599] + 1.2755121427474223), 1e-14);
    assert_at_most(fabs(y[0] - 4.613965094664996), 1e-13);
    assert_at_most(fabs(y[79] - 2.634386460932193), 1e-13);
    for (int how = 0; how < 2; how++)
        for (int coded = 0; coded < 3; coded++) {
            goal g = {&d, dot(y, y, 80) / 80, NULL, 0};
            kofn_regress_options o = {
                .size = sizeof o,
                .optimizer = (kofn_optimizer)(KOFN_OPTIMIZER_GD + how),
                .tol = 1e-300,
                .watch = reached,
                .watch_ud = &g};
            worker_setup k = {coded == 1 ? "pcr:r=3" : "elastic:k=4", 8, true,
                              &straggling, NULL};
            fit f;

            assert_ok(fit_up(&f, &d, &o, &k));
            assert_int_equal(coded ? kofn_regress(f.r, &f.w, &f.res)
                                   : kofn_regress_plain(f.r, &f.w, &f.res),
                             KOFN_AGAIN);
            assert_int_equal(f.res.iterations, g.calls);
            assert_in_range(g.calls, want[how] - 1, want[how] + 1);
            fit_down(&f);
        }
    data_free(&d);
}

/* ---- machines that fail, without a code ---------------------------------- */

/* math/elastic.md 18: feature k has size (1 + k)^-1/2, w* is random, noise has
 * variance 1. Rows are scaled after the labels were made. */
static data planted(size_t m, size_t n, const double *w, uint64_t seed)
{
    data d = {random_matrix(m, n, KOFN_F64, seed), column(m), NULL};
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 5, 0);
    double *X = d.X.data, sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += 1 / (double)(1 + k);
    for (size_t i = 0; i < m; i++) {
        for (size_t k = 0; k < n; k++)
            X[i * n + k] /= sqrt((double)(1 + k));
        ((double *)d.y.data)[i] = dot(X + i * n, w, n) + kf_rng_normal(&r);
        for (size_t k = 0; k < n; k++)
            X[i * n + k] /= sqrt(sum);
    }
    return d;
}

/* Returns the mean square error on held-out points after 60 iterations. */
static double failing(const data *d, const data *held, const failures *f,
                      const char *spec)
{
    kofn_regress_options o = {.size = sizeof o,
                              .line_search = KOFN_LINE_SEARCH_GRID,
                              .max_iterations = 60,
                              .tol = 1e-300,
                              .test_X = &held->X,
                              .test_y = &held->y};
    kofn_matrix w = column(d->X.cols);
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    kofn_regression *r;
    worker_setup k = {spec, 20, true, &straggling, NULL};
    fit x;

    if (spec) {
        assert_ok(fit_up(&x, d, &o, &k));
        assert_ok(kofn_regress(x.r, &x.w, &res));
        fit_down(&x);
    } else {
        assert_ok(kofn_regression_new(&r, KOFN_DENSE(&d->X), &d->y, &o));
        /* without replacements all machines may fail before the end */
        if (regress_failing(r, f, &w, &res))
            assert_true(f->delay == 0 && res.iterations > 20);
        kofn_regression_free(r);
    }
    kf_free(w.data);
    return 2 * res.test;
}

static void machines_fail(void **state)
{
    static const struct {
        const char *name;
        failures how;
    } kind[] = {
        {"no failure", {20, 0, 0, MISSING_IGNORED, 0}},
        {"never replaced", {20, 0.05, 0, MISSING_IGNORED, 0}},
        {"ignored", {20, 0.05, 10, MISSING_IGNORED, 0}},
        {"remembered", {20, 0.05, 10, MISSING_REMEMBERED, 0}},
    };
    double *w = numbers(201, sizeof *w), mean[5] = {0};
    kf_rng r = kf_rng_stream(1, KF_FOR_DATA, 6, 0);
    data d, held;

    (void)state;
    for (size_t k = 0; k < 201; k++)
        w[k] = kf_rng_normal(&r);
    d = planted(600, 201, w, 1);
    held = planted(600, 201, w, 2);
    for (size_t i = 0; i < 4; i++) {
        double low = HUGE_VAL, high = 0;

        for (uint64_t seed = 0; seed < 5; seed++) {
            failures f = kind[i].how;
            double e;

            f.seed = seed;
            e = failing(&d, &held, &f, NULL);
            mean[i] += e / 5;
            low = fmin(low, e);
            high = fmax(high, e);
        }
        print_message("    %-14s mean square %.3f (%.3f .. %.3f)\n",
                      kind[i].name, mean[i], low, high);
    }
    mean[4] = failing(&d, &held, NULL, "elastic:k=10");
    print_message("    %-14s mean square %.3f\n", "elastic", mean[4]);
    assert_at_most(fabs(mean[4] / mean[0] - 1), 0.05);
    assert_true(mean[1] > mean[2] && mean[2] > mean[0]);
    data_free(&d);
    data_free(&held);
    kf_free(w);
}

/* ---- kernels ------------------------------------------------------------- */

static void kernels(void **state)
{
    const double x[] = {1, 2, 3, -1, 0, 2}, z[] = {0, 1};
    kofn_matrix X = {(void *)(uintptr_t)x, 3, 2, 2, KOFN_F64};
    kofn_matrix Z = {(void *)(uintptr_t)z, 1, 2, 2, KOFN_F64}, K;
    static const char *const bad[] = {
        "gauss",      "rbf:s=0", "rbf:c=1",  "poly:s=1",
        "linear:c=1", "rbf:s",   "rbf:s=1x", "poly:degree=1.5",
        "poly:c=nan", "",        "rbf:=2"};

    (void)state;
    assert_ok(kofn_kernel(&K, &X, &Z, "linear"));
    assert_true(K.rows == 3 && K.cols == 1 && K.ld == 1);
    assert_at_most(relative_error(K.data, (double[]){2, -1, 2}, 3), 0);
    kofn_free(K.data);
    assert_ok(kofn_kernel(&K, &X, &Z, "poly:degree=3,c=0.5"));
    assert_at_most(
        relative_error(K.data, (double[]){15.625, -0.125, 15.625}, 3), 1e-16);
    kofn_free(K.data);
    assert_ok(kofn_kernel(&K, &X, &Z, "rbf:s=2"));
    assert_at_most(
        relative_error(K.data, (double[]){exp(-0.25), exp(-1.625), exp(-0.125)},
                       3),
        1e-15);
    kofn_free(K.data);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(KOFN_INVAL, kofn_kernel(&K, &X, &Z, bad[i]));
        assert_null(K.data);
    }
    Z.cols = 1;
    assert_status(KOFN_SHAPE, kofn_kernel(&K, &X, &Z, "linear"));
}

/* Learns a sine from its points, by coded regression on the kernel matrix
 * (C10), with gradients K' (K a - y). */
static void kernel_learns_a_sine(void **state)
{
    kofn_matrix X = column(60), y = column(60), T = column(21), K, KT;
    kofn_regress_options o = {.size = sizeof o,
                              .optimizer = KOFN_OPTIMIZER_NESTEROV,
                              .l2 = 1e-5,
                              .max_iterations = 400,
                              .tol = 1e-300};
    worker_setup k = {"pcr:r=2", 6, true, &straggling, NULL};
    kofn_matrix at = column(21);
    data d;
    fit f;

    (void)state;
    for (size_t i = 0; i < 60; i++) {
        ((double *)X.data)[i] = (double)i / 10;
        ((double *)y.data)[i] = sin((double)i / 10);
    }
    for (size_t i = 0; i < 21; i++)
        ((double *)T.data)[i] = 0.5 + (double)i / 4.03;
    assert_ok(kofn_kernel(&K, &X, &X, "rbf:s=0.7"));
    assert_ok(kofn_kernel(&KT, &T, &X, "rbf:s=0.7"));
    d = (data){K, y, NULL};
    assert_ok(fit_up(&f, &d, &o, &k));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    assert_ok(kofn_product_plain(KOFN_DENSE(&KT), &f.w, &at));
    for (size_t i = 0; i < 21; i++)
        assert_at_most(
            fabs(((double *)at.data)[i] - sin(((double *)T.data)[i])), 0.01);
    fit_down(&f);
    kofn_free(K.data);
    kofn_free(KT.data);
    kf_free(X.data);
    kf_free(y.data);
    kf_free(T.data);
    kf_free(at.data);
}

TEST_FILE(regress_facts_test)
{
    const struct CMUnitTest tests[] = {
        TEST(finds_the_minimum,
             "regress: descents end at LAPACK's least squares"),
        TEST(fact_worked_gradient,
             "regress: the worked example has the published gradient"),
        TEST(fact_iterations,
             "regress: descents take the published numbers of iterations"),
        TEST(machines_fail,
             "regress: an elastic code fits as well as without failures"),
        TEST(kernels,
             "regress: kernels have the closed values; bad ones are refused"),
        TEST(kernel_learns_a_sine,
             "regress: a kernel regression learns a sine"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("regress_facts", tests, NULL, NULL);
}
