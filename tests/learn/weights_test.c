/* weights_test.c -- weights of points: a fit by whole weights ends at the
 * minimum over points that are repeated as often, which Newton's method or
 * LAPACK finds. Other labels on the same job end at their own minimum. */
#include "regress_rig.h"

#define POINTS 40
#define WIDE 4
#define RIDGE 0.05

static const worker_setup elastic = {"elastic:k=3", 5, true, NULL, NULL};

/* Returns the weights 0, 1, 2, 3, 0, ... times `unit`. */
static kofn_matrix weights_of(double unit)
{
    kofn_matrix s = column(POINTS);

    for (size_t i = 0; i < POINTS; i++)
        ((double *)s.data)[i] = unit * (double)(i % 4);
    return s;
}

/* Returns point i of d as often as its weight is. */
static data repeated(const data *d)
{
    data out = {random_matrix(POINTS * 2, WIDE, KOFN_F64, 1),
                column(POINTS * 2), NULL};
    size_t at = 0;

    for (size_t i = 0; i < POINTS; i++)
        for (size_t k = 0; k < i % 4 && at < POINTS * 2; k++, at++) {
            memcpy((double *)out.X.data + at * WIDE,
                   (double *)d->X.data + i * WIDE, WIDE * 8);
            ((double *)out.y.data)[at] = ((double *)d->y.data)[i];
        }
    out.X.rows = out.y.rows = at;
    return out;
}

static double *minimum(const data *d, kofn_loss loss)
{
    return loss == KOFN_LOSS_SQUARES ? least_squares(d, RIDGE)
                                     : newton(d, loss, RIDGE);
}

static void check_end(fit *f, const double *want, const char *what)
{
    double far;

    memset(f->w.data, 0, WIDE * 8);
    assert_ok(kofn_regress(f->r, &f->w, &f->res));
    far = relative_error(f->w.data, want, WIDE);
    if (far > 1e-6)
        fail_msg("%s: off the minimum by %g", what, far);
}

#define HOWS 5
static const struct {
    const char *name;
    kofn_optimizer optimizer;
    kofn_line_search search;
} hows[HOWS] = {{"lbfgs", KOFN_OPTIMIZER_LBFGS, KOFN_LINE_SEARCH_NONE},
                {"nesterov", KOFN_OPTIMIZER_NESTEROV, KOFN_LINE_SEARCH_NONE},
                {"exact", KOFN_OPTIMIZER_GD, KOFN_LINE_SEARCH_EXACT},
                {"armijo", KOFN_OPTIMIZER_GD, KOFN_LINE_SEARCH_ARMIJO},
                {"grid", KOFN_OPTIMIZER_GD, KOFN_LINE_SEARCH_GRID}};

static kofn_regress_options options(kofn_loss loss, unsigned how)
{
    return (kofn_regress_options){.size = sizeof(kofn_regress_options),
                                  .loss = loss,
                                  .optimizer = hows[how].optimizer,
                                  .line_search = hows[how].search,
                                  .l2 = RIDGE,
                                  .tol = 1e-9,
                                  .max_iterations = 3000};
}

static void weights_repeat_points(void **state)
{
    kofn_matrix s = weights_of(7);

    (void)state;
    for (unsigned loss = 0; loss < 3; loss++) {
        data d = make_data(POINTS, WIDE, loss, 5 + loss), more = repeated(&d);
        double *want = minimum(&more, loss);

        for (unsigned i = 0; i < HOWS; i++) {
            kofn_regress_options o = options(loss, i);
            fit f;

            if (loss == KOFN_LOSS_POISSON && i == 1)
                continue; /* a fixed step has no bound */
            o.weights = &s;
            assert_ok(fit_up(&f, &d, &o, &elastic));
            check_end(&f, want, hows[i].name);
            fit_down(&f);
        }
        kf_free(want);
        data_free(&more);
        data_free(&d);
    }
    kf_free(s.data);
}

/* Fits d by two iterations. */
static double *two_steps(const data *d, kofn_regress_options o)
{
    double *w;
    fit f;

    o.max_iterations = 2;
    assert_ok(fit_up(&f, d, &o, &elastic));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    w = f.w.data;
    f.w.data = NULL;
    fit_down(&f);
    return w;
}

static void steps_are_the_same(void **state)
{
    kofn_matrix s = weights_of(3);

    (void)state;
    for (unsigned loss = 0; loss < 3; loss++) {
        data d = make_data(POINTS, WIDE, loss, 5 + loss), more = repeated(&d);

        for (unsigned i = 0; i < HOWS; i++) {
            kofn_regress_options o = options(loss, i);
            double *a, *b;

            if (loss == KOFN_LOSS_POISSON && i == 1)
                continue;
            b = two_steps(&more, o);
            o.weights = &s;
            a = two_steps(&d, o);
            if (relative_error(a, b, WIDE) > 1e-9)
                fail_msg("loss %u, %s: weights make another step", loss,
                         hows[i].name);
            kf_free(a);
            kf_free(b);
        }
        data_free(&more);
        data_free(&d);
    }
    kf_free(s.data);
}

static void labels_are_replaced(void **state)
{
    data d = make_data(POINTS, WIDE, KOFN_LOSS_LOGISTIC, 4), other = d;
    data second = make_data(POINTS, WIDE, KOFN_LOSS_LOGISTIC, 9);
    kofn_regress_options o = {.size = sizeof o,
                              .loss = KOFN_LOSS_LOGISTIC,
                              .optimizer = KOFN_OPTIMIZER_LBFGS,
                              .l2 = RIDGE,
                              .tol = 1e-11};
    const worker_setup sums = {"gc:d=2", 4, true, NULL, NULL};
    double *want;
    fit f;

    (void)state;
    other = d;
    other.y = second.y;
    assert_ok(fit_up(&f, &d, &o, &elastic));
    want = minimum(&d, o.loss);
    check_end(&f, want, "first labels");
    kf_free(want);
    want = minimum(&other, o.loss);
    assert_ok(kofn_regression_relabel(f.r, &other.y));
    check_end(&f, want, "other labels");
    memset(d.y.data, 0, POINTS * 8); /* of one class */
    assert_status(KOFN_INVAL, kofn_regression_relabel(f.r, &d.y));
    d.y.rows--;
    assert_status(KOFN_SHAPE, kofn_regression_relabel(f.r, &d.y));
    check_end(&f, want, "after a refusal");
    fit_down(&f);
    assert_ok(fit_up(&f, &other, &o, &sums));
    assert_status(KOFN_UNSUITED, kofn_regression_relabel(f.r, &other.y));
    fit_down(&f);
    kf_free(want);
    data_free(&second);
    data_free(&d);
}

static void refuse(const data *d, const kofn_matrix *s, kofn_status want,
                   const char *says)
{
    kofn_regress_options o = {.size = sizeof o, .weights = s};
    kofn_regression *r;

    assert_status(want, kofn_regression_new(&r, KOFN_DENSE(&d->X), &d->y, &o));
    assert_non_null(strstr(kofn_errmsg(), says));
}

static void wrong_weights_are_refused(void **state)
{
    data d = make_data(POINTS, WIDE, KOFN_LOSS_SQUARES, 1);
    kofn_matrix s = weights_of(1), zero = weights_of(0), few = s;
    kofn_regress_options o = {.size = sizeof o, .weights = &s};
    const worker_setup others[] = {{"gc:d=2", 4, true, NULL, NULL},
                                   {"pcr:r=2", 4, true, NULL, NULL}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fit f;

        assert_status(KOFN_UNSUITED, fit_up(&f, &d, &o, &others[i]));
        assert_non_null(strstr(kofn_errmsg(), "equal weights"));
        fit_down(&f);
    }
    refuse(&d, &zero, KOFN_INVAL, "are 0");
    few.rows--;
    refuse(&d, &few, KOFN_SHAPE, "weights is 39 x 1");
    ((double *)s.data)[3] = -1;
    refuse(&d, &s, KOFN_INVAL, "weights[3] = -1");
    ((double *)s.data)[3] = NAN;
    refuse(&d, &s, KOFN_INVAL, "weights[3] = nan");
    kf_free(s.data);
    kf_free(zero.data);
    data_free(&d);
}

TEST_FILE(weights_test)
{
    const struct CMUnitTest tests[] = {
        TEST(weights_repeat_points,
             "regression: whole weights act as points that are repeated"),
        TEST(steps_are_the_same,
             "regression: each step by weights is that of repeated points"),
        TEST(labels_are_replaced,
             "regression: other labels on the same job have their own minimum"),
        TEST(wrong_weights_are_refused,
             "regression: weights that are wrong or not served are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
