/* lbfgs_test.c -- limited-memory BFGS: it ends where Newton's method does,
 * soon, with as many products as it says, and goes on after a break. */
#include "failing.h"
#include "regress_rig.h"

#define POINTS 120
#define WIDE 7

/* Labels of this loss; columns 1 to `spread` in size. */
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
    return o->loss == KOFN_LOSS_SQUARES ? least_squares(d, o->ridge)
                                        : newton(d, o->loss, o->ridge);
}

static kofn_regress_options options(kofn_loss loss, double ridge)
{
    return (kofn_regress_options){.size = sizeof(kofn_regress_options),
                                  .loss = loss,
                                  .descent = KOFN_DESCENT_LBFGS,
                                  .ridge = ridge,
                                  .tolerance = 1e-11,
                                  .max_iterations = 100};
}

/* ---- where it ends ------------------------------------------------------- */

static unsigned check_end(const data *d, const kofn_regress_options *o,
                          const fleet *k)
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

/* Twenty of each loss, under each way, with stragglers and without. */
static void it_ends_at_the_minimum(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc:d=3", "pcr:r=2"};
    unsigned most[3] = {0};

    (void)state;
    for (size_t i = 0; i < 20; i++)
        for (int loss = 0; loss < 3; loss++) {
            data d = uneven((kofn_loss)loss, pow(10, (double)(i % 3)), 50 + i);
            kofn_regress_options o = options((kofn_loss)loss, i % 2 ? 0.01 : 0);

            for (size_t s = 0; s < (loss ? 2 : 3); s++) {
                fleet k = {spec[s], 6, true, i % 4 < 2 ? &stormy : NULL, NULL};

                most[loss] =
                    (unsigned)kf_max(most[loss], check_end(&d, &o, &k));
            }
            data_free(&d);
        }
    print_message("    at most %u, %u and %u iterations\n", most[0], most[1],
                  most[2]);
}

/* ---- what it costs ------------------------------------------------------- */

/* X p and X' z an iteration, and X w in every sixteenth; of sums a gradient,
 * and hardly ever a second one.  8 times H p at the end, or as many as
 * features. */
static void products_are_few(void **state)
{
    data d = uneven(KOFN_LOSS_LOGISTIC, 10, 3);
    kofn_regress_options o = options(KOFN_LOSS_LOGISTIC, 0);
    fleet by[] = {{"elastic:k=4", 6, true, NULL, NULL},
                  {"gc:d=3", 6, true, NULL, NULL}};
    unsigned t, rounds;
    fit f;

    (void)state;
    assert_ok(fit_up(&f, &d, &o, &by[0]));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    t = f.res.iterations;
    rounds = (unsigned)f.res.rounds.rounds;
    assert_int_equal(rounds, 2 * (t - 1) + 1 + 1 + (t - 1) / 16 + 2 * WIDE);
    fit_down(&f);
    assert_ok(fit_up(&f, &d, &o, &by[1]));
    assert_ok(kofn_regress(f.r, &f.w, &f.res));
    t = f.res.iterations;
    rounds = (unsigned)f.res.rounds.rounds;
    assert_in_range(rounds, t + WIDE, t + t / 3 + 4 + WIDE);
    fit_down(&f);
    data_free(&d);
}

/* A first step that makes e^t infinite is cut. */
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
        fleet k = {spec[s], 6, true, NULL, NULL};
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

/* ---- breaks -------------------------------------------------------------- */

typedef struct tale {
    kofn_regress_step last;
    double w[WIDE];
    unsigned at;
} tale;

static int stop(void *ud, const kofn_regress_step *now, const kofn_report *rep)
{
    tale *t = ud;

    if (!rep || now->iteration != t->at)
        return 0;
    t->last = *now;
    memcpy(t->w, now->w, sizeof t->w);
    t->last.w = t->last.v = t->w;
    return 1;
}

static void it_goes_on_after_a_break(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc:d=3"};
    data d = uneven(KOFN_LOSS_LOGISTIC, 10, 3);
    kofn_regress_options o = options(KOFN_LOSS_LOGISTIC, 0);
    double *want = minimum(&d, &o);

    (void)state;
    for (size_t s = 0; s < 2; s++) {
        tale t = {.at = 5};
        fleet k = {spec[s], 6, true, NULL, NULL};
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

static void what_it_does_not_go_with(void **state)
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
    o.rule = KOFN_STEP_GRID;
    assert_status(KOFN_INVAL,
                  kofn_regression_new(&r, KOFN_DENSE(&d.X), &d.y, &o));
    kf_free(w.data);
    data_free(&d);
}

TEST_FILE(lbfgs_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_at_the_minimum),
        cmocka_unit_test(products_are_few),
        cmocka_unit_test(long_steps_are_cut),
        cmocka_unit_test(it_goes_on_after_a_break),
        cmocka_unit_test(what_it_does_not_go_with),
    };

    rig_begin();
    return cmocka_run_group_tests_name("lbfgs", tests, NULL, NULL);
}
