/* lbfgs_test.c -- limited-memory BFGS: it ends at the minimum of Newton's
 * method, after few iterations, with the predicted number of products, and it
 * resumes after a stop. */
#include "failing.h"
#include "regress_rig.h"

#define POINTS 120
#define WIDE 7

/* Returns points with labels of this loss, and columns of sizes from 1 to
 * 1/`spread`. */
static data uneven(kofn_loss loss, double spread, uint64_t seed)
{
    data d = make_data(POINTS, WIDE, loss, seed);
    double *X = d.X.data;

    for (size_t e = 0; e < POINTS * WIDE; e++)
        X[e] *= pow(spread, -(double)(e % WIDE) / (WIDE - 1));
    return d;
}

static double *minimum(const data *d, const kofn_regress_options *o)
{
    return o->loss == KOFN_LOSS_SQUARES ? least_squares(d, o->l2)
                                        : newton(d, o->loss, o->l2);
}

static kofn_regress_options options(kofn_loss loss, double ridge)
{
    return (kofn_regress_options){.size = sizeof(kofn_regress_options),
                                  .loss = loss,
                                  .optimizer = KOFN_OPTIMIZER_LBFGS,
                                  .l2 = ridge,
                                  .tol = 1e-11,
                                  .max_iterations = 100};
}

/* ---- least squares by default -------------------------------------------- */

#define TALL 500
#define COLS 9

/* Returns points as those of California housing: columns differ in size, some
 * have a mean of sixty deviations, and the last is all ones. */
static data houses(uint64_t seed)
{
    data d = {column(TALL * COLS), column(TALL), NULL};
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 1, 0);
    double *X = d.X.data, *y = d.y.data;

    d.X = (kofn_matrix){X, TALL, COLS, COLS, KOFN_F64};
    for (size_t i = 0; i < TALL; i++) {
        y[i] = kf_rng_normal(&r);
        for (size_t j = 0; j < COLS; j++) {
            double size = pow(10, (double)(j % 4)), mean = j % 3 ? 0 : 60;

            X[i * COLS + j] =
                j + 1 == COLS ? 1 : size * (mean + kf_rng_normal(&r));
            y[i] += X[i * COLS + j] / size;
        }
    }
    return d;
}

/* Returns the sum of squares of X w - y; the residuals go into r. */
static double squares(const data *d, const double *w, double *r)
{
    memcpy(r, d->y.data, TALL * sizeof *r);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, TALL, COLS, 1, d->X.data, COLS, w,
                1, -1, r, 1);
    return dot(r, r, TALL);
}

/* Returns the products that LSQR needs to come within 1e-8 of the least sum of
 * squares.  Its iterates are those of conjugate gradients on X' X w = X' y,
 * with two products an iteration. */
static size_t products_of_lsqr(const data *d, double least)
{
    double w[COLS] = {0}, s[COLS], p[COLS] = {0}, r[TALL], q[TALL], was = 0;
    size_t n = 0;

    while (squares(d, w, r) > (1 + 1e-8) * least) {
        double now, step;

        cblas_dgemv(CblasRowMajor, CblasTrans, TALL, COLS, -1, d->X.data, COLS,
                    r, 1, 0, s, 1);
        now = dot(s, s, COLS);
        for (size_t j = 0; j < COLS; j++)
            p[j] = s[j] + (n ? now / was : 0) * p[j];
        cblas_dgemv(CblasRowMajor, CblasNoTrans, TALL, COLS, 1, d->X.data, COLS,
                    p, 1, 0, q, 1);
        step = now / dot(q, q, TALL);
        for (size_t j = 0; j < COLS; j++)
            w[j] += step * p[j];
        was = now;
        n += 2;
        assert_true(n < 1000);
    }
    return n;
}

/* Least squares without options. */
static void squares_by_default(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc:d=3", "pcr:r=2",
                                       "replication:k=4"};
    kofn_regress_options o = KOFN_REGRESS_OPTIONS_INIT;
    uint64_t most = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        data d = houses(seed);
        double *want = least_squares(&d, 0), r[TALL];
        double least = squares(&d, want, r);
        size_t lsqr = products_of_lsqr(&d, least);

        for (size_t s = 0; s < 4; s++) {
            worker_setup k = {spec[s], 8, true, &straggling, NULL};
            fit f;

            assert_ok(fit_up(&f, &d, &o, &k));
            assert_ok(kofn_regress(f.r, &f.w, &f.res));
            assert_true(f.res.converged);
            assert_at_most(squares(&d, f.w.data, r), (1 + 1e-8) * least);
            assert_true(f.res.rounds.rounds <= 2 * lsqr);
            most = kf_max(most, f.res.rounds.rounds * 100 / lsqr);
            fit_down(&f);
        }
        kf_free(want);
        data_free(&d);
    }
    print_message("    at most %llu %% of the products of LSQR\n",
                  (unsigned long long)most);
}

/* ---- the minimum --------------------------------------------------------- */

static unsigned check_end(const data *d, const kofn_regress_options *o,
                          const worker_setup *k)
{
    double *want = minimum(d, o), far;
    unsigned took;
    fit f;

    assert_ok(fit_up(&f, d, o, k));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    far = relative_error(f.w.data, want, WIDE);
    if (!f.res.converged || far > 1e-8)
        fail_msg("%s, loss %d: off the minimum by %g after %u iterations, %s",
                 k->spec, o->loss, far, f.res.iterations,
                 f.res.converged ? "converged" : "not converged");
    took = f.res.iterations;
    fit_down(&f);
    kf_free(want);
    return took;
}

/* Twenty problems of each loss, with every way to get gradients, with and
 * without stragglers. */
static void ends_at_the_minimum(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc:d=3", "pcr:r=2"};
    unsigned most[3] = {0};

    (void)state;
    for (size_t i = 0; i < 20; i++)
        for (int loss = 0; loss < 3; loss++) {
            data d = uneven((kofn_loss)loss, pow(10, (double)(i % 3)), 50 + i);
            kofn_regress_options o = options((kofn_loss)loss, i % 2 ? 0.01 : 0);

            for (size_t s = 0; s < (loss ? 2 : 3); s++) {
                worker_setup k = {spec[s], 6, true,
                                  i % 4 < 2 ? &straggling : NULL, NULL};

                most[loss] =
                    (unsigned)kf_max(most[loss], check_end(&d, &o, &k));
            }
            data_free(&d);
        }
    print_message("    at most %u, %u and %u iterations\n", most[0], most[1],
                  most[2]);
}

/* ---- cost ---------------------------------------------------------------- */

/* An iteration takes X p and X' z, and X w in every sixteenth. With sums it
 * takes one gradient and rarely a second. At the end it takes 8 times H p, or
 * one for each feature. */
static void products_are_few(void **state)
{
    data d = uneven(KOFN_LOSS_LOGISTIC, 10, 3);
    kofn_regress_options o = options(KOFN_LOSS_LOGISTIC, 0);
    worker_setup by[] = {{"elastic:k=4", 6, true, NULL, NULL},
                         {"gc:d=3", 6, true, NULL, NULL}};
    unsigned t, rounds, least;
    fit f;

    (void)state;
    assert_ok(fit_up(&f, &d, &o, &by[0]));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    t = f.res.iterations;
    rounds = (unsigned)f.res.rounds.rounds;
    /* and at most three gradients from margins that are made anew */
    least = 2 * (t - 1) + 1 + 1 + (t - 1) / 16 + 2 * WIDE;
    assert_in_range(rounds, least, least + 2 * 3);
    fit_down(&f);
    assert_ok(fit_up(&f, &d, &o, &by[1]));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    t = f.res.iterations;
    rounds = (unsigned)f.res.rounds.rounds;
    assert_in_range(rounds, t + WIDE, t + t / 3 + 4 + WIDE);
    fit_down(&f);
    data_free(&d);
}

/* The first step would make e^t infinite. */
static void long_steps_are_cut(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc:d=3"};
    data d = uneven(KOFN_LOSS_POISSON, 1, 4);
    kofn_regress_options o = options(KOFN_LOSS_POISSON, 0);
    double *want = minimum(&d, &o);

    (void)state;
    for (size_t e = 0; e < POINTS * WIDE; e++)
        ((double *)d.X.data)[e] *= 1e3;
    for (size_t s = 0; s < 2; s++) {
        worker_setup k = {spec[s], 6, true, NULL, NULL};
        fit f;

        assert_ok(fit_up(&f, &d, &o, &k));
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
        assert_true(f.res.converged);
        cblas_dscal(WIDE, 1e3, f.w.data, 1);
        assert_at_most(relative_error(f.w.data, want, WIDE), 1e-8);
        fit_down(&f);
    }
    kf_free(want);
    data_free(&d);
}

/* ---- stops --------------------------------------------------------------- */

typedef struct checkpoint {
    kofn_regress_step last;
    double w[WIDE];
    unsigned at;
} checkpoint;

static int stop(void *ud, const kofn_regress_step *now, const kofn_report *rep)
{
    checkpoint *t = ud;

    if (!rep || now->iteration != t->at)
        return 0;
    t->last = *now;
    memcpy(t->w, now->w, sizeof t->w);
    t->last.w = t->last.v = t->w;
    return 1;
}

static void resumes(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc:d=3"};
    data d = uneven(KOFN_LOSS_LOGISTIC, 10, 3);
    kofn_regress_options o = options(KOFN_LOSS_LOGISTIC, 0);
    double *want = minimum(&d, &o);

    (void)state;
    for (size_t s = 0; s < 2; s++) {
        checkpoint t = {.at = 5};
        worker_setup k = {spec[s], 6, true, NULL, NULL};
        fit f;

        o.watch = stop;
        o.watch_ud = &t;
        o.resume = NULL;
        assert_ok(fit_up(&f, &d, &o, &k));
        assert_status(KOFN_AGAIN, kofn_regress(f.r, &f.w, &f.res));
        fit_down(&f);
        t.at = 0;
        o.resume = &t.last;
        assert_ok(fit_up(&f, &d, &o, &k));
        memcpy(f.w.data, t.w, sizeof t.w);
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
        assert_true(f.res.converged && f.res.iterations > 5);
        assert_at_most(relative_error(f.w.data, want, WIDE), 1e-8);
        fit_down(&f);
    }
    kf_free(want);
    data_free(&d);
}

/* ---- refusals ------------------------------------------------------------ */

static void refusals(void **state)
{
    const failures how = {5, 0.1, 2, MISSING_REMEMBERED, 1};
    data d = uneven(KOFN_LOSS_LOGISTIC, 1, 3);
    kofn_regress_options o = options(KOFN_LOSS_LOGISTIC, 0);
    kofn_matrix w = column(WIDE);
    kofn_regression *r;

    (void)state;
    assert_ok(kofn_regression_new(&r, KOFN_DENSE(&d.X), &d.y, &o));
    assert_status(KOFN_UNSUITED, regress_failing(r, &how, &w, NULL));
    kofn_regression_free(r);
    o.step = 0.5;
    assert_status(KOFN_INVAL,
                  kofn_regression_new(&r, KOFN_DENSE(&d.X), &d.y, &o));
    assert_non_null(strstr(kofn_errmsg(), "step = 0.5"));
    o.step = 0;
    o.line_search = KOFN_LINE_SEARCH_GRID;
    assert_status(KOFN_INVAL,
                  kofn_regression_new(&r, KOFN_DENSE(&d.X), &d.y, &o));
    kf_free(w.data);
    data_free(&d);
}

TEST_FILE(lbfgs_test)
{
    const struct CMUnitTest tests[] = {
        TEST(squares_by_default,
             "lbfgs: least squares without options end at the minimum"),
        TEST(ends_at_the_minimum,
             "lbfgs: every way to get gradients ends at the minimum"),
        TEST(products_are_few, "lbfgs: the number of products is as predicted"),
        TEST(long_steps_are_cut,
             "lbfgs: a first step that overflows is shortened"),
        TEST(resumes, "lbfgs: it resumes after a stop and ends at the minimum"),
        TEST(refusals, "lbfgs: options that do not fit are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("lbfgs", tests, NULL, NULL);
}
