/* regress_refusals_test.c -- regressions that are refused, and failed
 * allocations. */
#include "failing.h"
#include "regress_rig.h"

/* ---- refusals ------------------------------------------------------------ */

static void refuse_new(const data *d, kofn_regress_options o, kofn_status want,
                       const char *says)
{
    kofn_regression *r;

    assert_status(want, kofn_regression_new(&r, KOFN_DENSE(&d->X), &d->y, &o));
    assert_null(r);
    if (!strstr(kofn_errmsg(), says))
        fail_msg("\"%s\" is not in: %s", says, kofn_errmsg());
}

static void options_are_checked(void **state)
{
    data d = make_data(10, 3, KOFN_LOSS_SQUARES, 1), narrow = d;
    const kofn_regress_options o = {.size = sizeof o};
    kofn_regress_options p;

    (void)state;
#define WITH(...) (p = o, __VA_ARGS__, p)
    refuse_new(&d, WITH(p.l2 = -1), KOFN_INVAL, "l2 = -1");
    refuse_new(&d, WITH(p.step = NAN), KOFN_INVAL, "step = nan");
    refuse_new(&d, WITH(p.tol = NAN), KOFN_INVAL, "tol = nan");
    refuse_new(&d, WITH(p.tol = -1), KOFN_INVAL, "tol = -1");
    refuse_new(&d,
               WITH(p.optimizer = KOFN_OPTIMIZER_SGD,
                    p.line_search = KOFN_LINE_SEARCH_GRID),
               KOFN_INVAL, "line searches");
    refuse_new(&d, WITH(p.optimizer = KOFN_OPTIMIZER_SGD, p.batches = 11),
               KOFN_INVAL, "11 batches of 10");
    refuse_new(&d, WITH(p.loss = KOFN_LOSS_LOGISTIC), KOFN_INVAL, "labels");
    refuse_new(&d, WITH(p.loss = KOFN_LOSS_POISSON, p.step = 1), KOFN_INVAL,
               "counts");
    narrow.y.rows = 9;
    refuse_new(&narrow, o, KOFN_SHAPE, "y is 9 x 1");
    narrow = d;
    narrow.y.data = (char *)d.y.data + 4;
    refuse_new(&narrow, o, KOFN_INVAL, "y has numbers at");
    narrow = d;
    narrow.X.data = (char *)d.X.data + 4;
    refuse_new(&narrow, o, KOFN_INVAL, "X has numbers at");
    narrow = d;
    narrow.X.dtype = KOFN_F32;
    refuse_new(&narrow, o, KOFN_SHAPE, "float64");
    narrow = make_data(7, 2, KOFN_LOSS_SQUARES, 1);
    refuse_new(&d, WITH(p.test_X = &narrow.X, p.test_y = &narrow.y), KOFN_SHAPE,
               "2 columns and X 3");
    data_free(&narrow);
    ((double *)d.y.data)[4] = INFINITY;
    refuse_new(&d, o, KOFN_NONFINITE, "y[4]");
    for (size_t i = 0; i < 10; i++)
        ((double *)d.y.data)[i] = (double)(i % 3) - 1;
    refuse_new(&d, WITH(p.loss = KOFN_LOSS_LOGISTIC), KOFN_INVAL, "0 and -1");
    for (size_t i = 0; i < 10; i++)
        ((double *)d.y.data)[i] = (double)(i % 3);
    refuse_new(
        &d,
        WITH(p.loss = KOFN_LOSS_POISSON, p.optimizer = KOFN_OPTIMIZER_NESTEROV),
        KOFN_INVAL, "no bound");
    for (int label = 0; label < 2; label++) {
        for (size_t i = 0; i < 10; i++)
            ((double *)d.y.data)[i] = label;
        refuse_new(&d, WITH(p.loss = KOFN_LOSS_LOGISTIC), KOFN_INVAL,
                   "all 10 labels of y are of one class");
    }
    ((double *)d.X.data)[7] = NAN;
    refuse_new(&d, o, KOFN_NONFINITE, "[2, 1]");
#undef WITH
    data_free(&d);
}

/* The message has the reason why the scheme cannot compute it. */
static void schemes_are_checked(void **state)
{
    static const struct {
        const char *spec;
        kofn_loss loss;
        kofn_optimizer optimizer;
        kofn_status status;
        const char *says;
    } bad[] = {
        {"pcr", KOFN_LOSS_LOGISTIC, 0, KOFN_UNSUITED, "least squares"},
        {"pcr", KOFN_LOSS_SQUARES, KOFN_OPTIMIZER_SGD, KOFN_UNSUITED,
         "batches"},
        {"mds", 0, 0, KOFN_UNSUITED, "scheme mds computes neither"},
        {"unknown", 0, 0, KOFN_NOSCHEME, "unknown"},
        {"pcr:r=9", 0, 0, KOFN_INVAL, "r = 9"},
        {"elastic:k=7", 0, 0, KOFN_INVAL, "k = 7"},
    };
    data d = make_data(30, 4, KOFN_LOSS_LOGISTIC, 1);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kofn_regress_options o = {.size = sizeof o,
                                  .loss = bad[i].loss,
                                  .optimizer = bad[i].optimizer};
        kofn_regression *r;
        kofn_problem pb = {.size = sizeof pb};

        assert_ok(kofn_regression_new(&r, KOFN_DENSE(&d.X), &d.y, &o));
        assert_status(bad[i].status,
                      kofn_regression_problem(r, bad[i].spec, 6, &pb));
        if (!strstr(kofn_errmsg(), bad[i].says))
            fail_msg("\"%s\" is not in: %s", bad[i].says, kofn_errmsg());
        kofn_regression_free(r);
    }
    data_free(&d);
}

/* The start is no vector of numbers, there are no workers, the job is taken, or
 * the step is too long. The vector w is unchanged, or has the value of the last
 * iteration. */
static void runs_are_checked(void **state)
{
    data d = make_data(30, 4, KOFN_LOSS_SQUARES, 1);
    kofn_regress_options o = {
        .size = sizeof o, .step = 1e200, .max_iterations = 10};
    worker_setup k = {"elastic:k=4", 6, true, NULL, NULL};
    double w[4] = {1, 2, 3, 4}, wide[8] = {1};
    kofn_matrix W = {w, 4, 1, 1, KOFN_F64}, bad = {wide, 4, 1, 2, KOFN_F64};
    kofn_regression *r;
    fit f;

    (void)state;
    assert_ok(fit_up(&f, &d, &o, &k));
    assert_status(KOFN_SHAPE, kofn_regress(f.r, &bad, NULL));
    bad = (kofn_matrix){w, 3, 1, 1, KOFN_F64};
    assert_status(KOFN_SHAPE, kofn_regress(f.r, &bad, NULL));
    w[2] = NAN;
    assert_status(KOFN_NONFINITE, kofn_regress(f.r, &W, NULL));
    w[2] = 3;
    assert_true(w[0] == 1 && w[1] == 2 && w[3] == 4);
    assert_status(KOFN_STATE, kofn_regression_place(f.r, f.job, KOFN_MATVEC));
    assert_status(KOFN_INVAL, kofn_regression_place(f.r, f.job, KOFN_MATMUL));
    assert_status(KOFN_NONFINITE, kofn_regress(f.r, &W, &f.res));
    assert_true(f.res.iterations >= 1 && isfinite(w[0]));
    assert_ok(kofn_regression_new(&r, KOFN_DENSE(&d.X), &d.y, &o));
    assert_status(KOFN_STATE, kofn_regress(r, &W, NULL));
    kofn_regression_free(r);
    fit_down(&f);
    data_free(&d);
}

/* Squares of X overflow or vanish. No fit may be reported. */
static void extreme_points(void **state)
{
    static const double by[] = {1e-200, 1e-170, 1e170, 1e300};
    static const char *const spec[] = {"elastic:k=4", "pcr:r=3", "gc:d=2"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (size_t s = 0; s < 3; s++) {
            data d = make_data(30, 4, KOFN_LOSS_SQUARES, 1);
            kofn_regress_options o = {.size = sizeof o, .max_iterations = 10};
            worker_setup k = {spec[s], 6, true, NULL, NULL};
            double w[4] = {0};
            kofn_matrix W = {w, 4, 1, 1, KOFN_F64};
            fit f;

            for (size_t e = 0; e < 120; e++)
                ((double *)d.X.data)[e] *= by[i];
            assert_ok(fit_up(&f, &d, &o, &k));
            assert_true(kofn_regress(f.r, &W, &f.res) < 0);
            assert_false(f.res.converged);
            fit_down(&f);
            data_free(&d);
        }
}

/* Two steps were made. */
static void too_few_workers(void **state)
{
    static const kofn_fault_event gone[] = {
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {3, 0.3, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0.3, KOFN_FAULT_EVENT_LEAVE, 2, 0}};
    data d = make_data(30, 4, KOFN_LOSS_SQUARES, 1);
    kofn_regress_options o = {.size = sizeof o, .step = 0.1};
    kofn_options opt = KOFN_OPTIONS_INIT;
    worker_setup k = {"elastic:k=4", 6, true, NULL, &opt};
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    double *w;
    fit f;

    (void)state;
    opt.events = gone;
    opt.event_count = 3;
    assert_ok(fit_up(&f, &d, &o, &k));
    assert_status(KOFN_TOOFEW, kofn_regress(f.r, &f.w, &f.res));
    assert_int_equal(f.res.iterations, 2);
    o.max_iterations = 2;
    w = plain(&d, &o, &res);
    assert_at_most(relative_error(f.w.data, w, 4), 1e-12);
    fit_down(&f);
    kf_free(w);
    data_free(&d);
}

/* ---- failed allocations -------------------------------------------------- */

/* Runs a regression without workers. Returns the first failure.
 */
static kofn_status alone(const data *d, kofn_regress_options o, int what)
{
    const failures f = {5, 0.1, 2, MISSING_REMEMBERED, 1};
    double w[6] = {0};
    kofn_matrix W = {w, 6, 1, 1, KOFN_F64}, K;
    kofn_regression *r;
    kofn_status st;

    if (what == 0) {
        st = kofn_kernel(&K, &d->X, &d->X, "rbf:s=2");
        kofn_free(K.data);
        return st;
    }
    st = kofn_regression_new(&r, KOFN_DENSE(&d->X), &d->y, &o);
    if (!st)
        st = what == 1 ? kofn_regress_plain(r, &W, NULL)
                       : regress_failing(r, &f, &W, NULL);
    kofn_regression_free(r);
    return st;
}

/* Runs a regression with workers, which may be lost if they have no memory. */
static kofn_status with_workers(const data *d, kofn_regress_options o,
                                const char *spec)
{
    double w[6] = {0};
    kofn_matrix W = {w, 6, 1, 1, KOFN_F64};
    kofn_regression *r;
    kofn_plan *plan = NULL;
    kofn_job *job = NULL;
    kofn_problem pb = {.size = sizeof pb};
    kofn_port *port;
    kofn_status st = kofn_regression_new(&r, KOFN_DENSE(&d->X), &d->y, &o);

    if (!st)
        st = kofn_regression_problem(r, spec, 5, &pb);
    if (!st)
        st = kofn_plan_new(&plan, &pb, spec, 5, 1);
    if (!st && pb.op == KOFN_MATVEC)
        st = kofn_plan_serve_left(plan, 1);
    if (!st)
        st = kofn_port_sim(&port, 5, NULL);
    if (!st)
        st = kofn_open(&job, plan, port, NULL);
    if (!st)
        st = kofn_regression_place(r, job, pb.op);
    if (!st)
        st = kofn_regress(r, &W, NULL);
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_regression_free(r);
    return st;
}

static void every_allocation(void **state)
{
    static const char *const spec[] = {"elastic:k=3", "pcr:r=2", "gc"};
    data d = make_data(40, 6, KOFN_LOSS_SQUARES, 3);
    kofn_regress_options o = {.size = sizeof o,
                              .line_search = KOFN_LINE_SEARCH_GRID,
                              .test_X = &d.X,
                              .test_y = &d.y,
                              .max_iterations = 3};

    (void)state;
    count_allocations();
    for (int what = 0; what < 6; what++)
        for (long n = 1, step = what < 3 ? 1 : 7 * SLOWED;; n += step) {
            long before = allocated(), made;
            kofn_status st;

            if (what == 5 && !kofn_scheme_find("gc"))
                break;
            fail_allocation(n);
            st = what < 3 ? alone(&d, o, what)
                          : with_workers(&d, o, spec[what - 3]);
            made = allocations();
            fail_allocation(0);
            assert_int_equal(allocated(), before);
            if (made < n) {
                assert_int_equal(st, KOFN_OK);
                break;
            }
            assert_true(st == KOFN_NOMEM || (what > 2 && st == KOFN_TOOFEW));
        }
    kofn_set_alloc(NULL, NULL);
    data_free(&d);
}

TEST_FILE(regress_refusals_test)
{
    const struct CMUnitTest tests[] = {
        TEST(options_are_checked,
             "regress: options out of range are refused with the value"),
        TEST(schemes_are_checked,
             "regress: a scheme that does not fit is refused with the reason"),
        TEST(runs_are_checked,
             "regress: a run that cannot start leaves w unchanged"),
        TEST(too_few_workers,
             "regress: too few workers in an iteration end with KOFN_TOOFEW"),
        TEST(extreme_points,
             "regress: points with squares that overflow report no fit"),
        TEST(every_allocation,
             "regress: a failed allocation anywhere ends with KOFN_NOMEM"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("regress_refusals", tests, NULL, NULL);
}
