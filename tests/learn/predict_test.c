/* predict_test.c -- models with an intercept, their predictions and how well
 * these fit. */
#include "regress_rig.h"

/* ---- an intercept -------------------------------------------------------- */

/* Returns points with a last column of ones. */
static data with_ones(size_t m, size_t n, kofn_loss loss)
{
    data d = make_data(m, n, loss, 11);

    for (size_t i = 0; i < m; i++)
        ((double *)d.X.data)[i * n + n - 1] = 1;
    for (size_t i = 0; i < m && loss == KOFN_LOSS_SQUARES; i++)
        ((double *)d.y.data)[i] += 3;
    return d;
}

/* Returns the minimum of |X w - y|^2 / m + ridge |w|^2, without the last of w
 * in the ridge. */
static double *best_with_intercept(const data *d, double ridge)
{
    size_t m = d->X.rows, n = d->X.cols;
    double *A = numbers((m + n) * n, 8), *b = numbers(m + n, 8), *sv;
    lapack_int rank;

    memcpy(A, d->X.data, m * n * 8);
    memcpy(b, d->y.data, m * 8);
    for (size_t j = 0; j + 1 < n; j++)
        A[(m + j) * n + j] = sqrt(ridge * (double)m);
    sv = numbers(n, 8);
    assert_int_equal(LAPACKE_dgelsd(LAPACK_ROW_MAJOR, (lapack_int)(m + n),
                                    (lapack_int)n, 1, A, (lapack_int)n, b, 1,
                                    sv, 1e-14, &rank),
                     0);
    assert_int_equal(rank, n);
    kf_free(A);
    kf_free(sv);
    return b;
}

static void ridge_and_intercept(void **state)
{
    static const char *const spec[] = {"elastic:k=3", "pcr:r=3", "gc:d=3"};
    static const struct {
        kofn_optimizer optimizer;
        kofn_line_search search;
    } way[] = {{KOFN_OPTIMIZER_GD, KOFN_LINE_SEARCH_NONE},
               {KOFN_OPTIMIZER_NESTEROV, KOFN_LINE_SEARCH_NONE},
               {KOFN_OPTIMIZER_GD, KOFN_LINE_SEARCH_EXACT},
               {KOFN_OPTIMIZER_GD, KOFN_LINE_SEARCH_ARMIJO},
               {KOFN_OPTIMIZER_GD, KOFN_LINE_SEARCH_GRID}};
    data d = with_ones(90, 6, KOFN_LOSS_SQUARES);
    double *want = best_with_intercept(&d, 0.4);

    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (size_t k = 0; k < sizeof way / sizeof *way; k++) {
            kofn_regress_options o = {.size = sizeof o,
                                      .l2 = 0.4,
                                      .optimizer = way[k].optimizer,
                                      .line_search = way[k].search,
                                      .tol = 1e-11,
                                      .max_iterations = 3000,
                                      .intercept = true};
            worker_setup setup = {spec[s], 6, true, NULL, NULL};
            fit f;

            assert_ok(fit_up(&f, &d, &o, &setup));
            assert_ok(kofn_regress(f.r, &f.w, &f.res));
            assert_true(f.res.converged);
            assert_at_most(relative_error(f.w.data, want, 6), 1e-9);
            fit_down(&f);
        }
    kf_free(want);
    data_free(&d);
}

/* Returns F after a step of this length along the first gradient. */
static double F_after(const data *d, double step, const double *w)
{
    kofn_matrix at = column(6);
    kofn_fit found;
    double F;

    for (size_t j = 0; j < 6; j++)
        ((double *)at.data)[j] = step * w[j];
    assert_ok(
        kofn_fit_of(&found, KOFN_DENSE(&d->X), &d->y, &at, KOFN_LOSS_SQUARES));
    F = found.loss + 5 * dot(at.data, at.data, 5); /* ridge 10 */
    kf_free(at.data);
    return F;
}

static void exact_step(void **state)
{
    static const char *const spec[] = {"elastic:k=3", "pcr:r=3", "gc:d=3"};
    data d = with_ones(90, 6, KOFN_LOSS_SQUARES);

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        kofn_regress_options o = {.size = sizeof o,
                                  .l2 = 10,
                                  .line_search = KOFN_LINE_SEARCH_EXACT,
                                  .max_iterations = 1,
                                  .intercept = true};
        worker_setup setup = {spec[s], 6, true, NULL, NULL};
        double least, off;
        fit f;

        assert_ok(fit_up(&f, &d, &o, &setup));
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
        least = F_after(&d, 1, f.w.data);
        for (off = 0.01; off < 0.2; off *= 2) {
            assert_true(F_after(&d, 1 + off, f.w.data) > least);
            assert_true(F_after(&d, 1 - off, f.w.data) > least);
        }
        fit_down(&f);
    }
    data_free(&d);
}

/* Bisection and Armijo evaluate F along a line. At the end the slope is 0 in
 * every direction. */
static void other_losses(void **state)
{
    static const kofn_line_search rule[] = {KOFN_LINE_SEARCH_EXACT,
                                            KOFN_LINE_SEARCH_ARMIJO};

    (void)state;
    for (int loss = KOFN_LOSS_LOGISTIC; loss <= KOFN_LOSS_POISSON; loss++)
        for (size_t k = 0; k < 2; k++) {
            data d = with_ones(90, 5, (kofn_loss)loss);
            kofn_regress_options o = {.size = sizeof o,
                                      .l2 = 0.4,
                                      .loss = (kofn_loss)loss,
                                      .line_search = rule[k],
                                      .step = loss == KOFN_LOSS_POISSON ? 1 : 0,
                                      .tol = 1e-6,
                                      .max_iterations = 3000,
                                      .intercept = true};
            worker_setup setup = {"elastic:k=3", 6, true, NULL, NULL};
            const double *X = d.X.data, *y = d.y.data, *w;
            double g[5] = {0};
            fit f;

            assert_ok(fit_up(&f, &d, &o, &setup));
            assert_ok(kofn_regress(f.r, &f.w, &f.res));
            assert_true(f.res.converged);
            w = f.w.data;
            for (size_t i = 0; i < 90; i++) {
                double t = dot(X + i * 5, w, 5);
                double mean =
                    loss == KOFN_LOSS_POISSON ? exp(t) : 1 / (1 + exp(-t));

                for (size_t j = 0; j < 5; j++)
                    g[j] += (mean - y[i]) * X[i * 5 + j] / 90;
            }
            for (size_t j = 0; j < 5; j++)
                assert_at_most(fabs(g[j] + (j < 4 ? 0.4 * w[j] : 0)), 1e-5);
            fit_down(&f);
            data_free(&d);
        }
}

/* ---- predictions and fits ------------------------------------------------ */

/* The explained share of a constant y is 1 if y is predicted to rounding, else
 * 0. The mean of twenty times 0.1 differs from 0.1 in the last digit. */
static void constant_labels(void **state)
{
    double x[20], y[20], wide[2] = {0, 0};
    kofn_matrix X = {x, 20, 1, 1, KOFN_F64}, Y = {y, 20, 1, 1, KOFN_F64};
    kofn_matrix w = {wide, 2, 1, 1, KOFN_F64};
    kofn_loss loss[] = {KOFN_LOSS_SQUARES, KOFN_LOSS_POISSON};
    kofn_fit found;

    (void)state;
    for (size_t k = 0; k < 8; k++) {
        bool counts = k % 2, off = k / 2 % 2;
        double is = k < 4 ? 0.1 : 3;

        for (size_t i = 0; i < 20; i++) {
            x[i] = (double)i;
            y[i] = is;
        }
        wide[0] = off ? 1e-3 : 0;
        wide[1] = counts ? log(is) : is * (1 + 0x1p-51);
        assert_ok(kofn_fit_of(&found, KOFN_DENSE(&X), &Y, &w, loss[counts]));
        assert_true(found.share == (off ? 0 : 1));
    }
}

static void predictions_by_hand(void **state)
{
    double x[] = {1, 2, 0, 3, -1, 1, 9, 9}, y[] = {1, 0, 1},
           wide[] = {.5, -1, 2};
    double mean[3];
    kofn_matrix X = {x, 3, 2, 2, KOFN_F64}, Y = {y, 3, 1, 1, KOFN_F64};
    kofn_matrix w = {wide, 3, 1, 1, KOFN_F64}, out = {mean, 3, 1, 1, KOFN_F64};
    kofn_fit found;

    (void)state; /* margins 0.5, -1, 0.5 with the intercept 2 */
    assert_ok(kofn_predict(&out, &X, &w, KOFN_LOSS_SQUARES));
    assert_true(mean[0] == 0.5 && mean[1] == -1 && mean[2] == 0.5);
    assert_ok(kofn_fit_of(&found, KOFN_DENSE(&X), &Y, &w, KOFN_LOSS_SQUARES));
    assert_at_most(fabs(found.loss - (0.25 + 1 + 0.25) / 6), 1e-15);
    assert_at_most(fabs(found.share - (1 - 1.5 / (2.0 / 3))), 1e-14);
    assert_ok(kofn_predict(&out, &X, &w, KOFN_LOSS_LOGISTIC));
    assert_at_most(fabs(mean[1] - 1 / (1 + exp(1))), 1e-15);
    assert_ok(kofn_fit_of(&found, KOFN_DENSE(&X), &Y, &w, KOFN_LOSS_LOGISTIC));
    assert_true(found.share == 1);
    y[1] = 1;
    assert_ok(kofn_fit_of(&found, KOFN_DENSE(&X), &Y, &w, KOFN_LOSS_LOGISTIC));
    assert_at_most(fabs(found.share - 2.0 / 3), 1e-15);
    assert_ok(kofn_predict(&out, &X, &w, KOFN_LOSS_POISSON));
    assert_at_most(fabs(mean[0] - exp(0.5)), 1e-15);
    /* without the intercept, and with a gap between rows */
    X = (kofn_matrix){x, 2, 2, 4, KOFN_F64};
    w.rows = 2;
    out.rows = 2;
    assert_ok(kofn_predict(&out, &X, &w, KOFN_LOSS_SQUARES));
    assert_true(mean[0] == -1.5 && mean[1] == -1.5);
}

static void refusals(void **state)
{
    double x[] = {1, 2, 3, 4}, y[] = {1, -3}, weight[] = {1, 1, 1, 1}, room[2];
    kofn_matrix X = {x, 2, 2, 2, KOFN_F64}, Y = {y, 2, 1, 1, KOFN_F64};
    kofn_matrix w = {weight, 4, 1, 1, KOFN_F64},
                out = {room, 2, 1, 1, KOFN_F64};
    kofn_fit found;

    (void)state;
    assert_status(KOFN_SHAPE, kofn_predict(&out, &X, &w, KOFN_LOSS_SQUARES));
    assert_non_null(strstr(kofn_errmsg(), "4 x 1"));
    w.rows = 1;
    assert_status(KOFN_SHAPE, kofn_predict(&out, &X, &w, KOFN_LOSS_SQUARES));
    w.rows = 2;
    assert_status(KOFN_SHAPE, kofn_predict(NULL, &X, &w, KOFN_LOSS_SQUARES));
    assert_status(KOFN_SHAPE, kofn_predict(&out, NULL, &w, KOFN_LOSS_SQUARES));
    assert_status(KOFN_SHAPE, kofn_predict(&out, &X, NULL, KOFN_LOSS_SQUARES));
    out.rows = 1;
    assert_status(KOFN_SHAPE, kofn_predict(&out, &X, &w, KOFN_LOSS_SQUARES));
    out.rows = 2;
    x[3] = 1000; /* e^1003 */
    assert_status(KOFN_NONFINITE,
                  kofn_predict(&out, &X, &w, KOFN_LOSS_POISSON));
    x[3] = NAN;
    assert_status(KOFN_NONFINITE,
                  kofn_predict(&out, &X, &w, KOFN_LOSS_SQUARES));
    x[3] = 4;
    assert_status(KOFN_INVAL, kofn_fit_of(&found, KOFN_DENSE(&X), &Y, &w,
                                          KOFN_LOSS_POISSON));
    assert_status(KOFN_INVAL, kofn_fit_of(&found, KOFN_DENSE(&X), &Y, &w,
                                          KOFN_LOSS_LOGISTIC));
    Y.rows = 1;
    assert_status(KOFN_SHAPE, kofn_fit_of(&found, KOFN_DENSE(&X), &Y, &w,
                                          KOFN_LOSS_SQUARES));
}

static void every_allocation(void **state)
{
    kofn_matrix w, out;
    long made = 1;
    data d;

    (void)state;
    count_allocations(); /* before anything is allocated */
    d = make_data(20, 4, KOFN_LOSS_SQUARES, 3);
    w = (kofn_matrix){d.w, 4, 1, 1, KOFN_F64};
    out = column(20);
    for (long n = 1; made >= n || n < 2; n++) {
        long before = allocated();
        kofn_fit found;
        kofn_status st;

        fail_allocation(n);
        st = kofn_predict(&out, &d.X, &w, KOFN_LOSS_SQUARES);
        if (!st)
            st = kofn_fit_of(&found, KOFN_DENSE(&d.X), &d.y, &w,
                             KOFN_LOSS_SQUARES);
        made = allocations();
        fail_allocation(0);
        assert_int_equal(allocated(), before);
        assert_int_equal(st, made < n ? KOFN_OK : KOFN_NOMEM);
    }
    kf_free(out.data);
    data_free(&d);
}

TEST_FILE(predict_test)
{
    const struct CMUnitTest tests[] = {
        TEST(ridge_and_intercept,
             "predict: the ridge does not shrink the intercept"),
        TEST(exact_step, "predict: an exact step ends at the minimum along it"),
        TEST(other_losses,
             "predict: other losses end at a minimum with an intercept"),
        TEST(constant_labels,
             "predict: the share of constant labels is 1 or 0"),
        TEST(predictions_by_hand,
             "predict: predictions and fits match a computation by hand"),
        TEST(refusals,
             "predict: wrong shapes, labels and overflows are refused"),
        TEST(every_allocation,
             "predict: a failed allocation anywhere gives KOFN_NOMEM"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
