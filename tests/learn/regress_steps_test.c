/* regress_steps_test.c -- the parts of a descent: gradients of losses, lengths
 * of steps, and batches. */
#include "regress_rig.h"

/* ---- gradients of losses ------------------------------------------------- */

/* Returns F at w, by a descent of one step of length nearly 0. */
static double objective(const data *d, kofn_regress_options o, double *w)
{
    kofn_matrix W = {w, d->X.cols, 1, 1, KOFN_F64};
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    kofn_regression *r;

    o.step = 1e-300;
    o.max_iterations = 1;
    assert_ok(kofn_regression_new(&r, KOFN_DENSE(&d->X), &d->y, &o));
    assert_ok(kofn_regress_plain(r, &W, &res));
    kofn_regression_free(r);
    return res.objective;
}

/* Computes the gradient at w, by a step of length 1. */
static void gradient(const data *d, kofn_regress_options o, const double *w,
                     const char *spec, double *g)
{
    worker_setup k = {spec, 6, true, NULL, NULL};
    size_t n = d->X.cols;
    double *to;
    fit f;

    o.step = 1;
    o.max_iterations = 1;
    assert_ok(fit_up(&f, d, &o, &k));
    to = f.w.data;
    memcpy(to, w, n * sizeof *w);
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    for (size_t j = 0; j < n; j++)
        g[j] = w[j] - to[j];
    fit_down(&f);
}

static void gradients_are_derivatives(void **state)
{
    (void)state;
    for (int loss = 0; loss < 3; loss++)
        for (int s = 0; s < 2; s++) {
            data d = make_data(57, 9, (kofn_loss)loss, 21);
            kofn_regress_options o = {
                .size = sizeof o, .loss = (kofn_loss)loss, .l2 = 0.2};
            double w[9], g[9], by_difference[9], h = 1e-5;

            if (s == 1 && !kofn_scheme_find("gc"))
                continue;
            for (size_t j = 0; j < 9; j++)
                w[j] = sin((double)j);
            gradient(&d, o, w, s ? "gc" : "elastic:k=4", g);
            for (size_t j = 0; j < 9; j++) {
                double at = w[j], up, down;

                w[j] = at + h;
                up = objective(&d, o, w);
                w[j] = at - h;
                down = objective(&d, o, w);
                w[j] = at;
                by_difference[j] = (up - down) / (2 * h);
            }
            assert_at_most(relative_error(by_difference, g, 9), 1e-7);
            data_free(&d);
        }
}

/* Margins of a thousand do not overflow. */
static void logistic_labels(void **state)
{
    data d = make_data(40, 5, KOFN_LOSS_LOGISTIC, 2);
    kofn_regress_options o = {.size = sizeof o, .loss = KOFN_LOSS_LOGISTIC};
    kofn_regress_result a = KOFN_REGRESS_RESULT_INIT,
                        b = KOFN_REGRESS_RESULT_INIT;
    double *one = plain(&d, &o, &a), *two, w[5] = {1e3, -1e3, 0, 5e3, 1};
    double *y = d.y.data;

    (void)state;
    assert_true(isfinite(objective(&d, o, w)));
    for (size_t i = 0; i < 40; i++)
        y[i] = y[i] > 0 ? 1 : -1;
    two = plain(&d, &o, &b);
    assert_true(memcmp(one, two, 5 * sizeof *one) == 0);
    assert_true(a.objective == b.objective);
    kf_free(one);
    kf_free(two);
    data_free(&d);
}

/* ---- steps --------------------------------------------------------------- */

/* All three ways to get gradients give the same step. After an exact step the
 * gradient is orthogonal to it. */
static void line_searches(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc", "pcr:r=2"};

    (void)state;
    for (int loss = 0; loss < 3; loss++)
        for (int rule = 1; rule < 4; rule++) {
            data d = make_data(90, 8, (kofn_loss)loss, 4);
            kofn_regress_options o = {.size = sizeof o,
                                      .loss = (kofn_loss)loss,
                                      .line_search = (kofn_line_search)rule,
                                      .l2 = 0.05,
                                      .max_iterations = 1};
            kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
            double before, *w = plain(&d, &o, &res), g0[8], g1[8];

            before = res.objective;
            if (rule == KOFN_LINE_SEARCH_EXACT) {
                double zero[8] = {0};

                o.line_search = KOFN_LINE_SEARCH_NONE;
                gradient(&d, o, zero, spec[0], g0);
                gradient(&d, o, w, spec[0], g1);
                o.line_search = (kofn_line_search)rule;
                assert_at_most(fabs(dot(g0, g1, 8)), 1e-9 * dot(g0, g0, 8));
            }
            assert_true(
                objective(&d,
                          (kofn_regress_options){.size = sizeof o,
                                                 .loss = (kofn_loss)loss,
                                                 .l2 = 0.05},
                          w) < before);
            for (size_t s = 0; s < 3; s++) {
                worker_setup k = {spec[s], 6, true, &straggling, NULL};
                kofn_status st;
                fit f;

                if (!kofn_scheme_find("gc") && s == 1)
                    continue;
                st = fit_up(&f, &d, &o, &k);
                if (st) {
                    assert_int_equal(st, KOFN_UNSUITED);
                    assert_true(loss > 0 && (s == 2 || rule == 1));
                } else {
                    assert_ok(kofn_regress(f.r, &f.w, &f.res));
                    assert_at_most(relative_error(f.w.data, w, 8), 1e-9);
                }
                fit_down(&f);
            }
            kf_free(w);
            data_free(&d);
        }
}

/* Power iterations on the coded job estimate L. It is not below the largest
 * eigenvalue of the Hessian, and little above it. */
static void lipschitz(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "pcr:r=2", "gc"};
    data d = make_data(90, 8, KOFN_LOSS_SQUARES, 4);
    double H[64] = {0}, value[8];

    (void)state;
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, 8, 8, 90, 1.0 / 90,
                d.X.data, 8, d.X.data, 8, 0, H, 8);
    assert_int_equal(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'N', 'U', 8, H, 8, value),
                     0);
    for (size_t s = 0; s < 3; s++) {
        kofn_regress_options o = {.size = sizeof o,
                                  .optimizer = KOFN_OPTIMIZER_GD,
                                  .l2 = 0.5,
                                  .max_iterations = 2};
        worker_setup k = {spec[s], 6, true, NULL, NULL};
        fit f;

        if (!kofn_scheme_find("gc") && s == 2)
            continue;
        assert_ok(fit_up(&f, &d, &o, &k));
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
        assert_true(f.res.lipschitz >= value[7] + 0.5 &&
                    f.res.lipschitz <= 1.0201 * value[7] + 0.5);
        /* 30 power iterations and two gradients, of one or two rounds */
        assert_int_equal(f.res.rounds.rounds, s == 0 ? 64 : 32);
        fit_down(&f);
    }
    data_free(&d);
}

/* ---- batches ------------------------------------------------------------- */

/* An epoch uses every point once. With steps of length nearly 0 the gradients
 * of its batches sum to the gradient of all points. */
static void an_epoch_is_all_points(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc"};
    data d = make_data(84, 6, KOFN_LOSS_LOGISTIC, 6);
    kofn_regress_options o = {.size = sizeof o, .loss = KOFN_LOSS_LOGISTIC};
    double zero[6] = {0}, want[6], sum[6];

    (void)state;
    gradient(&d, o, zero, spec[0], want);
    o.optimizer = KOFN_OPTIMIZER_SGD;
    o.batches = 7;
    o.max_iterations = 7;
    o.step = 1e-9;
    for (size_t s = 0; s < 2; s++) {
        worker_setup k = {spec[s], 6, true, &straggling, NULL};
        fit f;

        if (!kofn_scheme_find("gc") && s == 1)
            continue;
        assert_ok(fit_up(&f, &d, &o, &k));
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
        assert_int_equal(f.res.iterations, 7);
        assert_false(f.res.converged);
        for (size_t j = 0; j < 6; j++)
            sum[j] = -((double *)f.w.data)[j] / 7e-9;
        assert_at_most(relative_error(sum, want, 6), 1e-7);
        fit_down(&f);
    }
    data_free(&d);
}

/* Batches of a row code are runs of strips. With S = rig_strips, batch b of B
 * has the points k S + b S/B .. k S + (b+1) S/B - 1 (math/elastic.md 11). */
static void define_batch(const data *d, size_t S, size_t b, size_t B, double *g)
{
    size_t m = d->X.rows, n = d->X.cols, count = 0;

    memset(g, 0, n * sizeof *g);
    for (size_t i = 0; i < m; i++)
        if (i % S >= b * S / B && i % S < (b + 1) * S / B) {
            cblas_daxpy((int)n, -((double *)d->y.data)[i],
                        (double *)d->X.data + i * n, 1, g, 1);
            count++;
        }
    cblas_dscal((int)n, 1 / (double)count, g, 1);
}

/* Steps of length nearly 0 from 0 show the batch. Each batch is drawn, and
 * little work is done. */
static void batches_are_strips(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "elastic:k=3,basis=gauss",
                                       "elastic:k=2"};
    data d = make_data(211, 5, KOFN_LOSS_SQUARES, 6);
    const size_t B = 6;

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        kofn_regress_options o = {.size = sizeof o,
                                  .optimizer = KOFN_OPTIMIZER_SGD,
                                  .batches = (unsigned)B,
                                  .max_iterations = 1,
                                  .step = 1e-9};
        size_t found = 0;

        for (size_t seed = 0; seed < 40; seed++) {
            kofn_options late = {.size = sizeof late, .late = -1};
            worker_setup k = {spec[s], 6, seed % 2, NULL, &late};
            double g[5], got[5];
            size_t S, drawn = B, answers;
            fit f;

            o.seed = seed;
            assert_ok(fit_up(&f, &d, &o, &k));
            S = rig_strips(f.job);
            assert_ok(kofn_regress(f.r, &f.w, &f.res));
            for (size_t j = 0; j < 5; j++)
                got[j] = -1e9 * ((double *)f.w.data)[j];
            for (size_t b = 0; b < B; b++) {
                define_batch(&d, S, b, B, g);
                if (relative_error(got, g, 5) < 1e-12)
                    drawn = b;
            }
            assert_true(drawn < B);
            found |= (size_t)1 << drawn;
            /* its margins, with padding, and 5 numbers from each of 6 workers,
             * twice from workers with strips at both ends */
            answers =
                (size_t)f.res.rounds.scalars -
                ((drawn + 1) * S / B - drawn * S / B) * ((211 + S - 1) / S);
            assert_true(answers % 5 == 0 && answers >= 30 && answers <= 45);
            fit_down(&f);
        }
        assert_int_equal(found, ((size_t)1 << B) - 1); /* all in 40 draws */
    }
    data_free(&d);
}

/* The descent comes near the minimum and moves around it. */
static void batches_descend(void **state)
{
    data d = make_data(400, 6, KOFN_LOSS_SQUARES, 6);
    kofn_regress_options o = {.size = sizeof o,
                              .optimizer = KOFN_OPTIMIZER_SGD,
                              .step = 0.02,
                              .max_iterations = 1000};
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    double *want = least_squares(&d, 0), *w = plain(&d, &o, &res);

    (void)state;
    assert_int_equal(res.iterations, 1000);
    assert_at_most(relative_error(w, want, 6), 0.05);
    kf_free(w);
    kf_free(want);
    data_free(&d);
}

/* Poisson's loss has no 1/L. By default a descent searches each step, and ends
 * at the minimum of Newton's method. */
static void poisson_by_default(void **state)
{
    data d = make_data(60, 4, KOFN_LOSS_POISSON, 3);
    const kofn_regress_options o = {.size = sizeof o,
                                    .loss = KOFN_LOSS_POISSON,
                                    .l2 = 0.3,
                                    .tol = 1e-6,
                                    .max_iterations = 2000};
    worker_setup k = {"elastic:k=4", 6, true, NULL, NULL};
    double *want = newton(&d, KOFN_LOSS_POISSON, 0.3);
    fit f;

    (void)state;
    assert_ok(fit_up(&f, &d, &o, &k));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    assert_true(f.res.converged);
    /* F is strongly convex: |w - w*| <= |gradient| / ridge */
    assert_at_most(relative_error(f.w.data, want, 4) * cblas_dnrm2(4, want, 1),
                   f.res.gradient / 0.3 + 1e-12);
    fit_down(&f);
    kf_free(want);
    data_free(&d);
}

TEST_FILE(regress_steps_test)
{
    const struct CMUnitTest tests[] = {
        TEST(gradients_are_derivatives,
             "regress: gradients of losses are the derivatives"),
        TEST(logistic_labels,
             "regress: labels 0 and 1 give the weights of -1 and 1"),
        TEST(line_searches,
             "regress: each step rule takes the same step in all ways"),
        TEST(poisson_by_default,
             "regress: Poisson's loss searches its steps by default"),
        TEST(lipschitz,
             "regress: the bound on the Hessian is at most 2 % too large"),
        TEST(an_epoch_is_all_points, "regress: an epoch uses every point once"),
        TEST(batches_are_strips,
             "regress: a batch has the strips of its number"),
        TEST(batches_descend, "regress: batches descend to near the minimum"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("regress_steps", tests, NULL, NULL);
}
