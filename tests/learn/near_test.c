/* near_test.c -- a descent that reports convergence is near the minimum, for
 * any distribution of the points. The minimum is LAPACK's, or Newton's. */
#include "regress_rig.h"

#define POINTS 40
#define WIDE 6

/* ---- points -------------------------------------------------------------- */

/* Returns a random orthogonal matrix. */
static double *orthogonal(size_t n, uint64_t seed)
{
    kofn_matrix Q = random_matrix(n, n, KOFN_F64, seed);
    double *tau = numbers(n, 8);
    int k = (int)n;

    assert_int_equal(LAPACKE_dgeqrf(LAPACK_ROW_MAJOR, k, k, Q.data, k, tau), 0);
    assert_int_equal(LAPACKE_dorgqr(LAPACK_ROW_MAJOR, k, k, k, Q.data, k, tau),
                     0);
    kf_free(tau);
    return Q.data;
}

/* Returns points of about this condition, rotated against the axes. The first
 * `rows` of them are `large` times as large. Labels have noise or not. */
static data make(double condition, size_t rows, double large, double noise,
                 uint64_t seed)
{
    data d = {column(POINTS * WIDE), column(POINTS), numbers(WIDE, 8)};
    kofn_matrix R = random_matrix(POINTS, WIDE, KOFN_F64, seed);
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 9, 0);
    double *V = orthogonal(WIDE, seed + 1000), *X = d.X.data, *y = d.y.data;

    d.X = (kofn_matrix){X, POINTS, WIDE, WIDE, KOFN_F64};
    for (size_t e = 0; e < POINTS * WIDE; e++)
        ((double *)R.data)[e] *=
            pow(condition, -(double)(e % WIDE) / (WIDE - 1));
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, POINTS, WIDE, WIDE,
                1, R.data, WIDE, V, WIDE, 0, X, WIDE);
    for (size_t j = 0; j < WIDE; j++)
        d.w[j] = kf_rng_normal(&r);
    for (size_t i = 0; i < POINTS; i++) {
        double by = i < rows ? large : 1;

        cblas_dscal(WIDE, by, X + i * WIDE, 1);
        y[i] = dot(X + i * WIDE, d.w, WIDE) + by * noise * kf_rng_normal(&r);
    }
    kf_free(R.data);
    kf_free(V);
    return d;
}

/* ---- least squares ------------------------------------------------------- */

/* The iteration in which the gradient was first small enough. */
typedef struct first {
    double tol;
    unsigned small;
} first;

static int note_small(void *ud, const kofn_regress_step *now,
                      const kofn_report *rep)
{
    first *f = ud;

    (void)rep;
    if (!f->small && now->gradient < f->tol * now->first)
        f->small = now->iteration;
    return 0;
}

/* The bound is from the flatness of F, math/regression.md 17. It is doubled,
 * because distances are estimated. */
static void check_near(const data *d, const double *w, double tolerance,
                       size_t k)
{
    double *want = least_squares(d, 0), far = relative_error(w, want, WIDE);

    if (far > 2 * sqrt(tolerance))
        fail_msg("problem %zu: converged, and w is off by %g", k, far);
    kf_free(want);
}

/* Problem i of 50, with condition 1 to 1e8. Every second one has large rows,
 * as large as float64 allows if LAPACK is to know w to 1e-4. */
static data problem(size_t i)
{
    double condition = pow(10, 8 * (double)i / 49);
    double large = fmin(pow(10, 1 + (double)(i % 10)), 1e11 / condition);

    return make(condition, i % 2 ? 1 + i % 3 : 0, large, i % 4 < 2 ? 0.1 : 0,
                i);
}

static void converged_is_near(void **state)
{
    static const kofn_regress_options how[] = {
        {.optimizer = KOFN_OPTIMIZER_GD},
        {.optimizer = KOFN_OPTIMIZER_NESTEROV},
        {.line_search = KOFN_LINE_SEARCH_EXACT},
        {.optimizer = KOFN_OPTIMIZER_LBFGS},
    };
    size_t converged = 0, at_once = 0;

    (void)state;
    for (size_t k = 0; k < 50 * 4; k++) {
        size_t i = k / 4;
        data d = problem(i);
        first f = {i % 5 ? 1e-8 : 1e-5, 0};
        kofn_regress_options o = how[k % 4];
        kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
        double *w;

        o.size = sizeof o;
        o.tol = f.tol;
        o.max_iterations = 10000;
        o.watch = note_small;
        o.watch_ud = &f;
        w = plain(&d, &o, &res);
        if (res.converged) {
            check_near(&d, w, f.tol, k);
            converged++;
            at_once += res.iterations == f.small;
        } else if (f.small) {
            assert_true(res.distance > 0);
        }
        /* well-conditioned problems take no longer than they did */
        if (i < 8 && i % 2 == 0)
            assert_true(res.converged && res.iterations == f.small);
        kf_free(w);
        data_free(&d);
    }
    print_message("    %zu of 200 converged, %zu at the first small "
                  "gradient\n",
                  converged, at_once);
    assert_true(converged >= 15);
}

/* L-BFGS under codes that give no margins carries gradients along.  It may not
 * end because of one that rounding has made small. */
static void carried_gradients(void **state)
{
    static const char *const spec[] = {"gc:d=2", "pcr:r=2"};
    size_t converged = 0;

    (void)state;
    for (size_t k = 0; k < 100; k++) {
        data d = problem(k / 2);
        kofn_regress_options o = {.size = sizeof o,
                                  .optimizer = KOFN_OPTIMIZER_LBFGS,
                                  .max_iterations = 1000};
        worker_setup s = {spec[k % 2], 6, true, NULL, NULL};
        fit f;

        assert_ok(fit_up(&f, &d, &o, &s));
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
        if (f.res.converged) {
            check_near(&d, f.w.data, 1e-8, k);
            converged++;
        }
        fit_down(&f);
        data_free(&d);
    }
    print_message("    %zu of 100 converged\n", converged);
    assert_true(converged >= 20);
}

/* One row is 1e10 times as large as the others. Its direction has converged at
 * once, and no other has started. */
static void dominant_row(void **state)
{
    static const char *const spec[] = {"uncoded", "elastic:k=4", "pcr:r=2",
                                       "gc:d=2"};

    (void)state;
    for (size_t i = 0; i < 10; i++)
        for (size_t s = 0; s < 4; s++)
            for (int how = 0; how < 2; how++) {
                data d = make(3, 1, 1e10, 0, 77 + i);
                kofn_regress_options o = {
                    .size = sizeof o,
                    .optimizer = (kofn_optimizer)(KOFN_OPTIMIZER_GD + how),
                    .max_iterations = 200};
                worker_setup k = {spec[s], 6, true, NULL, NULL};
                fit f;

                assert_ok(fit_up(&f, &d, &o, &k));
                assert_ok(kofn_regress(f.r, &f.w, &f.res));
                assert_false(f.res.converged);
                assert_true(f.res.distance > 0);
                fit_down(&f);
                data_free(&d);
            }
}

static void dependent_columns(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "pcr:r=2", "gc:d=2"};

    (void)state;
    for (size_t s = 0; s < 6; s++) {
        data d = make(3, 0, 1, s % 2 ? 0.1 : 0, 5);
        kofn_regress_options o = {.size = sizeof o, .max_iterations = 500};
        worker_setup k = {spec[s / 2], 6, true, NULL, NULL};
        double *X = d.X.data;
        fit f;

        for (size_t i = 0; i < POINTS; i++)
            X[i * WIDE + 5] = X[i * WIDE] + X[i * WIDE + 1];
        assert_ok(fit_up(&f, &d, &o, &k));
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
        assert_true(f.res.converged);
        fit_down(&f);
        data_free(&d);
    }
}

/* ---- other losses -------------------------------------------------------- */

/* The points are large in one direction. */
static void other_losses_are_near(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc:d=2"};

    (void)state;
    for (int loss = 1; loss < 3; loss++)
        for (size_t s = 0; s < 2; s++)
            for (int how = 0; how < 4; how++) {
                data d = make_data(60, 4, (kofn_loss)loss, 3);
                kofn_regress_options o = {.size = sizeof o,
                                          .loss = (kofn_loss)loss,
                                          .line_search =
                                              KOFN_LINE_SEARCH_ARMIJO,
                                          .tol = 1e-4,
                                          .max_iterations = 400};
                worker_setup k = {spec[s], 6, true, NULL, NULL};
                double *want;
                fit f;

                for (size_t i = 0; i < 60; i++)
                    ((double *)d.X.data)[i * 4 + 3] *= pow(10, -how);
                want = newton(&d, o.loss, 0);
                assert_ok(fit_up(&f, &d, &o, &k));
                assert_ok(kofn_regress(f.r, &f.w, &f.res));
                if (how == 0)
                    assert_true(f.res.converged);
                if (f.res.converged)
                    assert_at_most(relative_error(f.w.data, want, 4),
                                   2 * sqrt(o.tol));
                fit_down(&f);
                kf_free(want);
                data_free(&d);
            }
}

TEST_FILE(near_test)
{
    const struct CMUnitTest tests[] = {
        TEST(carried_gradients,
             "near: gradients that are carried along feign no convergence"),
        TEST(converged_is_near,
             "near: least squares that converged are near the minimum"),
        TEST(dominant_row, "near: a dominant row does not feign convergence"),
        TEST(dependent_columns,
             "near: dependent columns do not prevent convergence"),
        TEST(other_losses_are_near,
             "near: other losses that converged are near the minimum"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("near", tests, NULL, NULL);
}
