/* regress_errors_test.c -- regressions by X' X w with workers that send wrong
 * answers from some step on. */
#include "regress_rig.h"

static const char *const spec[] = {"pcr:r=3", "pcr:r=3,systematic=1",
                                   "pcr:r=3,layout=paper",
                                   "pcr:r=3,basis=lagrange"};
#define SPECS (sizeof spec / sizeof *spec)
#define WORKERS 9 /* any 5 of them decode */

static const kofn_fault_event wrong_answers[] = {
    {2, 0, KOFN_FAULT_EVENT_CORRUPT, 3, 0},
    {4, 0, KOFN_FAULT_EVENT_CORRUPT, 7, 0}};

static const kofn_regress_options ridge = {
    .size = sizeof ridge, .l2 = 0.1, .max_iterations = 400, .tol = 1e-10};

static kofn_status descend(fit *f, const data *d, const char *code, bool sim,
                           kofn_errors errors, size_t faulty)
{
    kofn_options opt = KOFN_OPTIONS_INIT;
    worker_setup k = {code, WORKERS, sim, sim ? &straggling : NULL, &opt};

    opt.errors = errors;
    opt.events = wrong_answers;
    opt.event_count = faulty;
    opt.quarantine = 1000000;
    assert_ok(fit_up(f, d, &ridge, &k));
    return kofn_regress(f->r, &f->w, &f->res);
}

/* Up to two faulty workers of nine can be corrected. They are left out, and
 * the weights are those of least squares by LAPACK. */
static void faulty_workers_are_left_out(void **state)
{
    data d = make_data(90, 7, KOFN_LOSS_SQUARES, 11);
    double *want = least_squares(&d, 0.1);

    (void)state;
    for (size_t c = 0; c < 4 * SPECS; c++) {
        kofn_errors errors =
            c % 2 ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_PROBABILISTIC;
        kofn_report all = KOFN_REPORT_INIT;
        fit f;

        assert_ok(descend(&f, &d, spec[c / 4], c / 2 % 2, errors, 2));
        assert_true(f.res.converged);
        assert_at_most(relative_error(f.w.data, want, 7), 1e-8);
        kofn_job_totals(f.job, &all);
        for (size_t w = 0; w < WORKERS; w++)
            if (w != 3 && w != 7)
                assert_int_equal(all.located[w], 0);
        if (c / 2 % 2) /* on threads a worker may never be in time */
            assert_true(all.located[3] > 0 && all.located[7] > 0);
        assert_true(all.located[3] + all.located[7] > 0);
        assert_true(all.floor > 0 && all.floor < 1e-6);
        fit_down(&f);
    }
    kf_free(want);
    data_free(&d);
}

static void errors_are_detected(void **state)
{
    data d = make_data(90, 7, KOFN_LOSS_SQUARES, 12);

    (void)state;
    for (size_t c = 0; c < SPECS; c++) {
        fit f;

        assert_status(KOFN_CORRUPT,
                      descend(&f, &d, spec[c], true, KOFN_ERRORS_DETECT, 1));
        fit_down(&f);
        assert_ok(descend(&f, &d, spec[c], true, KOFN_ERRORS_DETECT, 0));
        fit_down(&f);
    }
    data_free(&d);
}

/* If no answer was checked, a wrong one may be the cause. A shorter step is no
 * advice in the first iteration, before which no step is taken. */
static void failure_names_the_option(void **state)
{
    data d = make_data(90, 7, KOFN_LOSS_SQUARES, 12);
    bool first = false;
    fit f;

    (void)state;
    for (uint64_t seed = 0; seed < 10 && !first; seed++) {
        kofn_faults w = KOFN_FAULTS_INIT(.corrupt = 0.3, .seed = seed);
        worker_setup k = {"elastic:k=3", WORKERS, true, &w, NULL};

        assert_ok(fit_up(&f, &d, &ridge, &k));
        if (kofn_regress(f.r, &f.w, &f.res) == KOFN_NONFINITE) {
            first = strstr(kofn_errmsg(), "iteration 1:") != NULL;
            assert_non_null(strstr(kofn_errmsg(), "option errors"));
            assert_int_equal(first, !strstr(kofn_errmsg(), "shorter step"));
        }
        fit_down(&f);
    }
    assert_true(first);
    data_free(&d);
}

/* ---- audits -------------------------------------------------------------- */

#define ROUNDS 12

/* Gradient descent on sums. Every seventh sum is checked. A worker errs from
 * iteration `from` on. */
static void audited(fit *f, const data *d, kofn_optimizer descent,
                    unsigned from, uint64_t seed)
{
    kofn_regress_options o = {.size = sizeof o,
                              .optimizer = descent,
                              .l2 = 0.1,
                              .line_search = KOFN_LINE_SEARCH_NONE,
                              .step = 0.5,
                              .max_iterations = ROUNDS,
                              .tol = 1e-300};
    kofn_fault_event wrong = {from, 0, KOFN_FAULT_EVENT_CORRUPT, 2, 0};
    kofn_faults w = KOFN_FAULTS_INIT(.seed = seed);
    kofn_options opt = KOFN_OPTIONS_INIT;
    worker_setup k = {"gc:d=3", 7, true, &w, &opt};

    opt.errors = KOFN_ERRORS_PROBABILISTIC;
    opt.audit = 7;
    opt.events = &wrong;
    opt.event_count = 1;
    assert_ok(fit_up(f, d, &o, &k));
    assert_ok(kofn_regress(f->r, &f->w, &f->res));
}

/* The errors begin anywhere, also after the last check, and may make a sum
 * infinite. The iterates are those of the same descent without workers. */
static void audited_descent(void **state)
{
    static const kofn_optimizer descent[] = {KOFN_OPTIMIZER_GD,
                                             KOFN_OPTIMIZER_NESTEROV};
    data d = make_data(210, 13, KOFN_LOSS_SQUARES, 13);

    (void)state;
    for (unsigned c = 0; c < 2 * ROUNDS; c++) {
        kofn_matrix w;
        fit f;

        audited(&f, &d, descent[c % 2], 1 + c / 2, c);
        w = random_matrix(13, 1, KOFN_F64, 1);
        memset(w.data, 0, 13 * sizeof(double));
        assert_ok(kofn_regress_plain(f.r, &w, NULL));
        assert_int_equal(f.res.iterations, ROUNDS);
        assert_at_most(relative_error(f.w.data, w.data, 13), 1e-9);
        kf_free(w.data);
        fit_down(&f);
    }
    data_free(&d);
}

TEST_FILE(regress_errors_test)
{
    const struct CMUnitTest tests[] = {
        TEST(faulty_workers_are_left_out,
             "regress: two faulty workers of nine do not change the weights"),
        TEST(errors_are_detected,
             "regress: errors=detect finds a wrong answer"),
        TEST(failure_names_the_option,
             "regress: an overflow without checks names the option errors"),
        TEST(audited_descent,
             "regress: an audited descent takes no step from a wrong answer"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("regress_errors", tests, NULL, NULL);
}
