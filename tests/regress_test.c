/* regress_test.c -- regression by coded gradients: the descent of the plain
 * one whatever the workers do, published numbers, and known minima.
 *
 * Facts are those of the companion table of the specification (facts.json),
 * quoted by their names.
 */
#include "regress_rig.h"

#include <kofn/io.h>
#include <kofn/scheme.h>
#include <lapacke.h>
#include <stdio.h>

/* ---- the portable random numbers of SPEC-A 0.3 ------------------------------- */

static double uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double u = uniform(state), v = uniform(state);

    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

/* SPEC-A C14. */
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

/* ---- coded and plain descents are the same ------------------------------------------- */

/* Workers leave, as many as may, at random times. */
static size_t make_trace(kofn_happening *e, size_t workers, size_t threshold,
                         unsigned rounds, kf_rng *r)
{
    size_t gone = workers - threshold, n = 0;

    for (size_t i = 0; i < gone; i++)
        e[n++] = (kofn_happening){
            1 + (unsigned)(rounds * i / gone) +
                (unsigned)kf_rng_below(r, rounds / (unsigned)gone),
            (double)kf_rng_below(r, 3) / 3, KOFN_EVENT_LEAVE,
            (uint32_t)(i * 2 % workers + i * 2 / workers), 0};
    return n;
}

static size_t threshold_of(const data *d, const kofn_regress_options *o,
                           const fleet *k, kofn_op *op)
{
    kofn_plan_info info;
    kofn_regression *r;
    kofn_problem pb;
    kofn_plan *plan;
    kofn_status st;
    size_t threshold = 0;
    char spec[256];

    assert_ok(kofn_regression_new(&r, &d->X, &d->y, o));
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
    pb.op = KOFN_LEFT; /* which may take more answers */
    assert_ok(kofn_plan_new(&plan, &pb, spec, k->workers, 3));
    assert_ok(kofn_plan_describe(plan, false, &info));
    kofn_plan_free(plan);
    return kf_max(threshold, info.threshold);
}

/* 100 iterations with a fixed step: w, F and |g| agree to 1e-10. */
static kofn_op same_descent(const data *d, const char *spec, size_t workers,
                            kofn_regress_options o, bool sim)
{
    fleet k = {spec, workers, sim, sim ? &stormy : NULL, NULL};
    kf_rng r = kf_rng_stream(workers, KF_FOR_DATA, 30, 0);
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_happening events[64];
    kofn_regress_result want;
    kofn_op op;
    size_t threshold = threshold_of(d, &o, &k, &op);
    kofn_matrix w;
    fit f;

    if (threshold == 0)
        return 0;
    w = column(d->X.cols);
    opt.events = events;
    opt.event_count = make_trace(events, workers, threshold,
                                 op == KOFN_MATVEC ? 200 : 100, &r);
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

static const char *const more_specs[] = {
    "elastic:k=3", "elastic:k=3,cut=columns", "elastic:k=6", "elastic:k=4,deal=speed",
    "polynomial:basis=circle", "pcr:r=2", "pcr:r=3,systematic=1",
    "pcr:r=2,basis=lagrange"};

/* Baselines that leave out what is late. */
static bool means_to_be_off(const char *name)
{
    return strcmp(name, "ignore") == 0 || strcmp(name, "distr-bgd") == 0;
}

/* A whole batch of schemes under one descent; how many for each way. */
static void all_schemes(const data *d, kofn_regress_options o, size_t way[3])
{
    const kofn_scheme *s;

    for (size_t i = 0;; i++) {
        size_t more = sizeof more_specs / sizeof *more_specs;
        const char *spec = i < more ? more_specs[i] : NULL;
        kofn_op op;

        if (!spec && !(s = kofn_scheme_at(i - more)))
            break;
        if (!spec && means_to_be_off(s->name))
            continue;
        op = same_descent(d, spec ? spec : s->name, 6, o, i % 4 != 3);
        way[0] += op == KOFN_MATVEC;
        way[1] += op == KOFN_GRAM;
        way[2] += op == KOFN_SUM;
    }
}

static void every_scheme_descends_alike(void **state)
{
    static const char *const name[] = {"squares", "logistic", "poisson"};

    (void)state;
    for (int loss = 0; loss < 3; loss++)
        for (int how = 0; how < 3; how++) {
            data d = make_data(203, 17, (kofn_loss)loss, 3);
            kofn_regress_options o = {.size = sizeof o,
                                      .loss = (kofn_loss)loss,
                                      .descent = (kofn_descent)how,
                                      .step = loss == 2 ? 0.05 : 0.4,
                                      .ridge = how == 1 ? 0.01 : 0,
                                      .tolerance = 1e-300,
                                      .seed = 8};
            size_t way[3] = {0};

            if (SLOWED == 1 || loss == how)
                all_schemes(&d, o, way);
            print_message("    %s, descent %d: %zu row codes, %zu pcr, %zu "
                          "gradient codes\n", name[loss], how, way[0], way[1],
                          way[2]);
            if (SLOWED == 1) {
                assert_true(way[0] >= 5);
                assert_int_equal(way[1] > 0, loss == 0 && how != 2);
            }
            data_free(&d);
        }
}

/* ---- minima ----------------------------------------------------------------------------- */

/* Of |X w - y|^2 / m + ridge |w|^2. */
static double *least_squares(const data *d, double ridge)
{
    size_t m = d->X.rows, n = d->X.cols;
    double *A = numbers((m + n) * n, 8), *b = numbers(m + n, 8), *sv;
    lapack_int rank;

    memcpy(A, d->X.data, m * n * 8);
    memcpy(b, d->y.data, m * 8);
    for (size_t j = 0; j < n; j++)
        A[(m + j) * n + j] = sqrt(ridge * (double)m);
    sv = numbers(n, 8);
    assert_int_equal(LAPACKE_dgelsd(LAPACK_ROW_MAJOR, (lapack_int)(m + n),
                                    (lapack_int)n, 1, A, (lapack_int)n, b, 1,
                                    sv, 1e-14, &rank), 0);
    assert_int_equal(rank, n);
    kf_free(A);
    kf_free(sv);
    return b;
}

static void check_minimum(const data *d, const char *spec,
                          kofn_regress_options o)
{
    double *want = least_squares(d, o.ridge);
    fleet k = {spec, 6, true, &stormy, NULL};
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

/* LAPACK's least squares, by every way, descent and rule. */
static void it_finds_the_minimum(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "pcr:r=2", "gc"};
    data d = make_data(150, 12, KOFN_LOSS_SQUARES, 9);

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        kofn_regress_options o = {.size = sizeof o,
                                  .tolerance = 1e-10,
                                  .max_iterations = 2000};

        if (s == 2 && !kofn_scheme_find("gc"))
            continue;
        check_minimum(&d, spec[s], o);
        o.ridge = 0.1;
        check_minimum(&d, spec[s], o);
        o.descent = KOFN_DESCENT_NESTEROV;
        check_minimum(&d, spec[s], o);
        o.descent = KOFN_DESCENT_GD;
        o.rule = KOFN_STEP_EXACT;
        check_minimum(&d, spec[s], o);
        o.rule = KOFN_STEP_ARMIJO;
        check_minimum(&d, spec[s], o);
        o.rule = KOFN_STEP_GRID;
        check_minimum(&d, spec[s], o);
    }
    data_free(&d);
}

static double mean_square(const data *d, const double *w)
{
    size_t m = d->X.rows, n = d->X.cols;
    const double *X = d->X.data, *y = d->y.data;
    double sum = 0;

    for (size_t i = 0; i < m; i++) {
        double e = dot(X + i * n, w, n) - y[i];

        sum += e * e;
    }
    return sum / (double)m;
}

/* ---- housing ------------------------------------------------------------------------------- */

static kofn_file *housing(const char *what, kofn_matrix *out)
{
    const char *slash = strrchr(__FILE__, '/');
    char full[1000];
    kofn_file *f;

    snprintf(full, sizeof full, "%.*s/../../shared/data/housing/%s.npy",
             slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".",
             what);
    if (access(full, R_OK) != 0) {
        print_message("%s is not there\n", full);
        skip();
    }
    assert_ok(kofn_file_open(&f, full));
    *out = *kofn_file_dense(f);
    return f;
}

static void houses(data *d, kofn_file *file[2])
{
    file[0] = housing("X", &d->X);
    file[1] = housing("y", &d->y);
    if (d->y.cols != 1) { /* a vector may be read as a row */
        d->y.rows = d->y.cols;
        d->y.cols = d->y.ld = 1;
    }
    assert_int_equal(d->X.rows, 20640);
}

/* 1/L of X' X / m. */
static double longest_step(const data *d)
{
    kofn_regress_options o = {.size = sizeof o, .max_iterations = 1};
    kofn_regress_result res;

    kf_free(plain(d, &o, &res));
    return 1 / res.lipschitz;
}

/* California's houses, 20,640 x 13: every scheme descends like the plain one. */
static void california(void **state)
{
    kofn_regress_options o = {.size = sizeof o, .tolerance = 1e-300};
    kofn_file *file[2];
    size_t way[3] = {0};
    data d = {0};

    (void)state;
    houses(&d, file);
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

/* Nesterov's descent on coded workers, begun again from where it was: with as
 * many iterations between as the condition has it converges fastest. */
static void restarted(const data *d, const char *spec, unsigned each,
                      unsigned times, const double *want)
{
    kofn_regress_options o = {.size = sizeof o,
                              .descent = KOFN_DESCENT_NESTEROV,
                              .max_iterations = each,
                              .step = longest_step(d),
                              .tolerance = 1e-300};
    fleet k = {spec, 6, true, &stormy, NULL};
    fit f;

    assert_ok(fit_up(&f, d, &o, &k));
    for (unsigned t = 0; t < times; t++)
        assert_ok(kofn_regress(f.r, &f.w, &f.res));
    if (relative_error(f.w.data, want, d->X.cols) > 1e-8)
        fail_msg("%s: off the minimum by %g", spec,
                 relative_error(f.w.data, want, d->X.cols));
    fit_down(&f);
}

/* Columns of mean square 1; the condition of X' X falls from 16,141 to 203. */
static kofn_matrix even_columns(const kofn_matrix *X, double *scale)
{
    kofn_matrix Z = {numbers(X->rows * X->cols, 8), X->rows, X->cols, X->cols,
                     KOFN_F64};
    const double *x = X->data;
    double *z = Z.data;

    for (size_t j = 0; j < X->cols; j++) {
        double sum = cblas_ddot((int)X->rows, x + j, (int)X->ld, x + j,
                                (int)X->ld);

        scale[j] = sqrt(sum / (double)X->rows);
        for (size_t i = 0; i < X->rows; i++)
            z[i * X->cols + j] = x[i * X->ld + j] / scale[j];
    }
    return Z;
}

/* The final fit is LAPACK's, whose residual the data's README tells. */
static void california_fitted(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc", "cgc", "g-cgc",
                                       "pcr:r=2"};
    kofn_file *file[2];
    data d = {0}, even;
    double scale[13], *want;

    (void)state;
    houses(&d, file);
    want = least_squares(&d, 0);
    assert_at_most(fabs(mean_square(&d, want) - 0.4720971421), 1e-10);
    if (SLOWED == 1) /* as it is */
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

/* ---- the sum of a function of one's own -------------------------------------------------------- */

/* X_j' (X_j w - y_j), the points of part j being a run of rows. */
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
        cblas_daxpy((int)n, dot(X + i * n, in->data, n) - y[i], X + i * n, 1,
                    g, 1);
    return KOFN_OK;
}

/* 100 steps of kofn_place_parts and a loop are those of kofn_regress, on the
 * same workers and without any. */
static void by_a_sum_of_ones_own(void **state)
{
    static const char *const spec[] = {"gc", "cgc", "g-cgc"};
    data d = make_data(203, 17, KOFN_LOSS_SQUARES, 3);
    kofn_regress_options o = {.size = sizeof o, .step = 0.4,
                              .tolerance = 1e-300};
    kofn_problem pb = {KOFN_SUM, 17, 17, 1, KOFN_F64, false};
    kofn_regress_result res;
    double *want = plain(&d, &o, &res);

    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (int sim = 0; sim < 2; sim++) {
            fleet k = {spec[s], 6, sim, sim ? &stormy : NULL, NULL};
            kofn_matrix w = column(17), g = column(17);
            kofn_plan *plan;
            kofn_port *port;
            kofn_job *job;
            fit f;

            assert_ok(kofn_plan_new(&plan, &pb, spec[s], 6, 3));
            assert_ok(sim ? kofn_port_sim(&port, 6, &stormy)
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

/* On the simulator's modelled clock a step takes what the busiest worker's share
 * of 2 m n multiply-adds does, whichever way it is computed, so that schemes
 * can be compared by it; a batch of ten takes a tenth. */
static void steps_take_what_they_cost(void **state)
{
    static const struct {
        const char *spec;
        double share;
    } code[] = {{"uncoded", 1.0 / 8}, {"gc:d=2", 2.0 / 8}, {"cgc:d=4", 4.0 / 8},
                {"bcc:r=2", 2.0 / 8}, {"pcr:r=2", 2.0 / 8},
                {"elastic:k=4", 1.0 / 8}};
    data d = make_data(960, 40, KOFN_LOSS_SQUARES, 2);

    (void)state;
    for (size_t s = 0; s < sizeof code / sizeof *code; s++)
        for (int sgd = 0; sgd < 2; sgd++) {
            kofn_regress_options o = {.size = sizeof o, .step = 0.1,
                                      .max_iterations = 1};
            fleet k = {code[s].spec, 8, true, NULL, NULL};
            double want = 2 * 960 * 40 * code[s].share * (sgd ? 0.1 : 1), took;
            fit f;

            o.descent = sgd ? KOFN_DESCENT_SGD : KOFN_DESCENT_GD;
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

static void work_is_said_in_time(void **state)
{
    kofn_problem pb = {KOFN_SUM, 17, 17, 1, KOFN_F64, false};
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

/* ---- facts ----------------------------------------------------------------------------------- */

static const double fig1[6][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1},
                                  {1, 1, 1}, {1, 2, 3}, {1, 4, 9}};

static const kofn_param no_params[] = {{0}};

static kofn_status fig1_layout(kofn_layout *L)
{
    L->seats = L->max_seats = 6;
    L->enough = L->cut[0].rows = 3;
    L->adjoint = L->problem.op == KOFN_LEFT;
    return KOFN_OK;
}

static kofn_status fig1_seat(const kofn_layout *L, size_t seat, double *E0,
                             double *E1, double *G)
{
    (void)L, (void)E1, (void)G;
    memcpy(E0, fig1[seat], sizeof fig1[seat]);
    return KOFN_OK;
}

/* SPEC-A H1. */
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
    .name = "fig1",
    .ops = KOFN_MATVEC | KOFN_LEFT,
    .params = no_params,
    .layout = fig1_layout,
    .seat = fig1_seat,
    .deal = fig1_deal,
};

/* Fact cec.worked.gradient: X' (X w - y) in two phases on machines 0, 2, 4
 * and 5. */
static void fact_worked_gradient(void **state)
{
    static const double want[] = {7.680342215831864, 11.202680229974703,
                                  -9.716197135456145};
    static const kofn_happening gone[] = {{1, 0, KOFN_EVENT_LEAVE, 1, 0},
                                          {1, 0, KOFN_EVENT_LEAVE, 3, 0}};
    kofn_regress_options o = {.size = sizeof o, .step = 1, .max_iterations = 1};
    kofn_problem pb = {KOFN_MATVEC, 12, 3, 1, KOFN_F64, false};
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
    assert_ok(kofn_regression_new(&r, &d.X, &d.y, &o));
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

/* Facts pcr.data.head, pcr.iters: 35 iterations against 52. */
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
            kofn_regress_options o = {.size = sizeof o,
                                      .descent = (kofn_descent)how,
                                      .tolerance = 1e-300,
                                      .watch = reached,
                                      .watch_ud = &g};
            fleet k = {coded == 1 ? "pcr:r=3" : "elastic:k=4", 8, true,
                       &stormy, NULL};
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

/* ---- gradients of losses ------------------------------------------------------------------------ */

/* F at w + h e_j by a descent of one step of no length. */
static double objective(const data *d, kofn_regress_options o, double *w)
{
    kofn_matrix W = {w, d->X.cols, 1, 1, KOFN_F64};
    kofn_regress_result res;
    kofn_regression *r;

    o.step = 1e-300;
    o.max_iterations = 1;
    assert_ok(kofn_regression_new(&r, &d->X, &d->y, &o));
    assert_ok(kofn_regress_plain(r, &W, &res));
    kofn_regression_free(r);
    return res.objective;
}

/* A step of length 1 from w, and back: the gradient there. */
static void gradient(const data *d, kofn_regress_options o, const double *w,
                     const char *spec, double *g)
{
    fleet k = {spec, 6, true, NULL, NULL};
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
            kofn_regress_options o = {.size = sizeof o,
                                      .loss = (kofn_loss)loss,
                                      .ridge = 0.2};
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

/* 0 and 1 or -1 and 1: the same; and no overflow for margins of a thousand. */
static void logistic_labels(void **state)
{
    data d = make_data(40, 5, KOFN_LOSS_LOGISTIC, 2);
    kofn_regress_options o = {.size = sizeof o, .loss = KOFN_LOSS_LOGISTIC};
    kofn_regress_result a, b;
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

/* ---- steps ----------------------------------------------------------------------------------------- */

/* A step of any rule makes F smaller, by as much in all three ways; an exact
 * one leaves a gradient that is at right angles to it. */
static void line_searches(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc", "pcr:r=2"};

    (void)state;
    for (int loss = 0; loss < 3; loss++)
        for (int rule = 1; rule < 4; rule++) {
            data d = make_data(90, 8, (kofn_loss)loss, 4);
            kofn_regress_options o = {.size = sizeof o,
                                      .loss = (kofn_loss)loss,
                                      .rule = (kofn_step_rule)rule,
                                      .ridge = 0.05,
                                      .max_iterations = 1};
            kofn_regress_result res;
            double before, *w = plain(&d, &o, &res), g0[8], g1[8];

            before = res.objective;
            if (rule == KOFN_STEP_EXACT) {
                double zero[8] = {0};

                o.rule = KOFN_STEP_FIXED;
                gradient(&d, o, zero, spec[0], g0);
                gradient(&d, o, w, spec[0], g1);
                o.rule = (kofn_step_rule)rule;
                assert_at_most(fabs(dot(g0, g1, 8)), 1e-9 * dot(g0, g0, 8));
            }
            assert_true(objective(&d, (kofn_regress_options){
                                          .size = sizeof o,
                                          .loss = (kofn_loss)loss,
                                          .ridge = 0.05}, w) < before);
            for (size_t s = 0; s < 3; s++) {
                fleet k = {spec[s], 6, true, &stormy, NULL};
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

/* 1/L by power iterations on the coded job: not below the largest eigenvalue
 * of the Hessian, nor much above it. */
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
        kofn_regress_options o = {.size = sizeof o, .ridge = 0.5,
                                  .max_iterations = 2};
        fleet k = {spec[s], 6, true, NULL, NULL};
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

/* ---- batches ------------------------------------------------------------------------------------------ */

/* In an epoch every point is used once: the steps from w and back to it, with
 * a step of next to no length, add up to the gradient of all. */
static void an_epoch_is_all_points(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "gc"};
    data d = make_data(84, 6, KOFN_LOSS_LOGISTIC, 6);
    kofn_regress_options o = {.size = sizeof o, .loss = KOFN_LOSS_LOGISTIC};
    double zero[6] = {0}, want[6], sum[6];

    (void)state;
    gradient(&d, o, zero, spec[0], want);
    o.descent = KOFN_DESCENT_SGD;
    o.batches = 7;
    o.max_iterations = 7;
    o.step = 1e-9;
    for (size_t s = 0; s < 2; s++) {
        fleet k = {spec[s], 6, true, &stormy, NULL};
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

/* Batches of a row code are runs of strips: with S of them and S = kofn_strips,
 * batch b of B is the points k S + b S/B .. k S + (b+1) S/B - 1 (SPEC-A A11). */
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

/* Steps of next to no length from 0: each batch once, and next to no work. */
static void batches_are_strips(void **state)
{
    static const char *const spec[] = {"elastic:k=4", "elastic:k=3,basis=gauss",
                                       "elastic:k=2"};
    data d = make_data(211, 5, KOFN_LOSS_SQUARES, 6);
    const size_t B = 6;

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        kofn_regress_options o = {.size = sizeof o,
                                  .descent = KOFN_DESCENT_SGD,
                                  .batches = (unsigned)B,
                                  .max_iterations = 1,
                                  .step = 1e-9};
        size_t found = 0;

        for (size_t seed = 0; seed < 40; seed++) {
            fleet k = {spec[s], 6, seed % 2, NULL, NULL};
            double g[5], got[5];
            size_t S, drawn = B, answers;
            fit f;

            o.seed = seed;
            assert_ok(fit_up(&f, &d, &o, &k));
            S = kofn_strips(f.job);
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
            /* its margins, with padding, and 5 numbers from each of 6, twice
             * from those whose strips are at both ends */
            answers = (size_t)f.res.rounds.scalars -
                      ((drawn + 1) * S / B - drawn * S / B) *
                          ((211 + S - 1) / S);
            assert_true(answers % 5 == 0 && answers >= 30 && answers <= 45);
            fit_down(&f);
        }
        assert_int_equal(found, ((size_t)1 << B) - 1); /* all in 40 draws */
    }
    data_free(&d);
}

/* It comes near the minimum, and goes on round it. */
static void batches_descend(void **state)
{
    data d = make_data(400, 6, KOFN_LOSS_SQUARES, 6);
    kofn_regress_options o = {.size = sizeof o,
                              .descent = KOFN_DESCENT_SGD,
                              .step = 0.02,
                              .max_iterations = 1000};
    kofn_regress_result res;
    double *want = least_squares(&d, 0), *w = plain(&d, &o, &res);

    (void)state;
    assert_int_equal(res.iterations, 1000);
    assert_at_most(relative_error(w, want, 6), 0.05);
    kf_free(w);
    kf_free(want);
    data_free(&d);
}

/* ---- machines that fail, and nothing coded ------------------------------------------ */

/* SPEC-A E-A3: feature k is as large as (1 + k)^-1/2, w* is random, noise has
 * variance 1; rows are scaled after the labels were made. */
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

/* The mean square of held-out points after 60 iterations. */
static double failing(const data *d, const data *held, const kofn_failures *f,
                      const char *spec)
{
    kofn_regress_options o = {.size = sizeof o,
                              .rule = KOFN_STEP_GRID,
                              .max_iterations = 60,
                              .tolerance = 1e-300,
                              .test_X = &held->X,
                              .test_y = &held->y};
    kofn_matrix w = column(d->X.cols);
    kofn_regress_result res;
    kofn_regression *r;
    fleet k = {spec, 20, true, &stormy, NULL};
    fit x;

    if (spec) {
        assert_ok(fit_up(&x, d, &o, &k));
        assert_ok(kofn_regress(x.r, &x.w, &res));
        fit_down(&x);
    } else {
        assert_ok(kofn_regression_new(&r, &d->X, &d->y, &o));
        /* without replacements nobody may be left before the end */
        if (kofn_regress_failing(r, f, &w, &res))
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
        kofn_failures how;
    } kind[] = {
        {"nobody fails", {20, 0, 0, KOFN_MISSING_IGNORED, 0}},
        {"lost for ever", {20, 0.05, 0, KOFN_MISSING_IGNORED, 0}},
        {"ignored", {20, 0.05, 10, KOFN_MISSING_IGNORED, 0}},
        {"remembered", {20, 0.05, 10, KOFN_MISSING_REMEMBERED, 0}},
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
            kofn_failures f = kind[i].how;
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

/* ---- what is told --------------------------------------------------------------------------------------- */

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

/* The loss of held-out points, numbers received, and a stop. */
static void a_watch_sees(void **state)
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
    fleet k = {"pcr:r=3", 9, true, NULL, NULL};
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
    /* it goes on from where it was */
    last = h.objective;
    h = (history){.stop_at = 2};
    assert_int_equal(kofn_regress(f.r, &f.w, &f.res), KOFN_AGAIN);
    assert_true(f.res.objective < last);
    fit_down(&f);
    data_free(&d);
    data_free(&other);
}

/* ---- kernels ---------------------------------------------------------------------------------------------- */

static void kernels(void **state)
{
    const double x[] = {1, 2, 3, -1, 0, 2}, z[] = {0, 1};
    kofn_matrix X = {(void *)(uintptr_t)x, 3, 2, 2, KOFN_F64};
    kofn_matrix Z = {(void *)(uintptr_t)z, 1, 2, 2, KOFN_F64}, K;
    static const char *const bad[] = {"gauss",      "rbf:s=0",    "rbf:c=1",
                                      "poly:s=1",   "linear:c=1", "rbf:s",
                                      "rbf:s=1x",   "poly:degree=1.5",
                                      "poly:c=nan", "",           "rbf:=2"};

    (void)state;
    assert_ok(kofn_kernel(&K, &X, &Z, "linear"));
    assert_true(K.rows == 3 && K.cols == 1 && K.ld == 1);
    assert_at_most(relative_error(K.data, (double[]){2, -1, 2}, 3), 0);
    kofn_free(K.data);
    assert_ok(kofn_kernel(&K, &X, &Z, "poly:degree=3,c=0.5"));
    assert_at_most(relative_error(K.data, (double[]){15.625, -0.125, 15.625},
                                  3), 1e-16);
    kofn_free(K.data);
    assert_ok(kofn_kernel(&K, &X, &Z, "rbf:s=2"));
    assert_at_most(relative_error(K.data, (double[]){exp(-0.25), exp(-1.625),
                                                     exp(-0.125)}, 3), 1e-15);
    kofn_free(K.data);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(KOFN_INVAL, kofn_kernel(&K, &X, &Z, bad[i]));
        assert_null(K.data);
    }
    Z.cols = 1;
    assert_status(KOFN_SHAPE, kofn_kernel(&K, &X, &Z, "linear"));
}

/* A sine from its points, by coded regression on the kernel matrix (C10):
 * gradients K' (K a - y). */
static void a_kernel_learns_a_sine(void **state)
{
    kofn_matrix X = column(60), y = column(60), T = column(21), K, KT;
    kofn_regress_options o = {.size = sizeof o,
                              .descent = KOFN_DESCENT_NESTEROV,
                              .ridge = 1e-5,
                              .max_iterations = 400,
                              .tolerance = 1e-300};
    fleet k = {"pcr:r=2", 6, true, &stormy, NULL};
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
    assert_ok(kofn_product_plain(&KT, &f.w, &at));
    for (size_t i = 0; i < 21; i++)
        assert_at_most(fabs(((double *)at.data)[i] -
                            sin(((double *)T.data)[i])), 0.01);
    fit_down(&f);
    kofn_free(K.data);
    kofn_free(KT.data);
    kf_free(X.data);
    kf_free(y.data);
    kf_free(T.data);
    kf_free(at.data);
}

/* ---- refusals ------------------------------------------------------------------------------------------------ */

static void refuse_new(const data *d, kofn_regress_options o, kofn_status want,
                       const char *says)
{
    kofn_regression *r;

    assert_status(want, kofn_regression_new(&r, &d->X, &d->y, &o));
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
    refuse_new(&d, WITH(p.ridge = -1), KOFN_INVAL, "ridge = -1");
    refuse_new(&d, WITH(p.step = NAN), KOFN_INVAL, "step = nan");
    refuse_new(&d, WITH(p.descent = KOFN_DESCENT_SGD, p.rule = KOFN_STEP_GRID),
               KOFN_INVAL, "line searches");
    refuse_new(&d, WITH(p.descent = KOFN_DESCENT_SGD, p.batches = 11),
               KOFN_INVAL, "11 batches of 10");
    refuse_new(&d, WITH(p.loss = KOFN_LOSS_LOGISTIC), KOFN_INVAL, "labels");
    refuse_new(&d, WITH(p.loss = KOFN_LOSS_POISSON, p.step = 1), KOFN_INVAL,
               "counts");
    narrow.y.rows = 9;
    refuse_new(&narrow, o, KOFN_SHAPE, "y is 9 x 1");
    narrow = d;
    narrow.X.dtype = KOFN_F32;
    refuse_new(&narrow, o, KOFN_SHAPE, "float64");
    narrow = make_data(7, 2, KOFN_LOSS_SQUARES, 1);
    refuse_new(&d, WITH(p.test_X = &narrow.X, p.test_y = &narrow.y),
               KOFN_SHAPE, "2 columns and X 3");
    data_free(&narrow);
    ((double *)d.y.data)[4] = INFINITY;
    refuse_new(&d, o, KOFN_NONFINITE, "y[4]");
    for (size_t i = 0; i < 10; i++)
        ((double *)d.y.data)[i] = (double)(i % 3) - 1;
    refuse_new(&d, WITH(p.loss = KOFN_LOSS_LOGISTIC), KOFN_INVAL, "0 and -1");
    for (size_t i = 0; i < 10; i++)
        ((double *)d.y.data)[i] = (double)(i % 3);
    refuse_new(&d, WITH(p.loss = KOFN_LOSS_POISSON), KOFN_INVAL,
               "no bound");
    ((double *)d.X.data)[7] = NAN;
    refuse_new(&d, o, KOFN_NONFINITE, "[2, 1]");
#undef WITH
    data_free(&d);
}

/* What a scheme cannot compute is said with the reason. */
static void ways_are_checked(void **state)
{
    static const struct {
        const char *spec;
        kofn_loss loss;
        kofn_descent descent;
        kofn_status status;
        const char *says;
    } bad[] = {
        {"pcr", KOFN_LOSS_LOGISTIC, 0, KOFN_UNSUITED, "least squares"},
        {"pcr", KOFN_LOSS_SQUARES, KOFN_DESCENT_SGD, KOFN_UNSUITED, "batches"},
        {"mds", 0, 0, KOFN_UNSUITED, "scheme mds computes neither"},
        {"nobody", 0, 0, KOFN_NOSCHEME, "nobody"},
        {"pcr:r=9", 0, 0, KOFN_INVAL, "r = 9"},
        {"elastic:k=7", 0, 0, KOFN_INVAL, "k = 7"},
    };
    data d = make_data(30, 4, KOFN_LOSS_LOGISTIC, 1);

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kofn_regress_options o = {.size = sizeof o,
                                  .loss = bad[i].loss,
                                  .descent = bad[i].descent};
        kofn_regression *r;
        kofn_problem pb;

        assert_ok(kofn_regression_new(&r, &d.X, &d.y, &o));
        assert_status(bad[i].status,
                      kofn_regression_problem(r, bad[i].spec, 6, &pb));
        if (!strstr(kofn_errmsg(), bad[i].says))
            fail_msg("\"%s\" is not in: %s", bad[i].says, kofn_errmsg());
        kofn_regression_free(r);
    }
    data_free(&d);
}

/* A start that is no vector of numbers, no workers yet, a job that is taken,
 * a step that is too long: w is as it was, or as the last iteration left it. */
static void runs_are_checked(void **state)
{
    data d = make_data(30, 4, KOFN_LOSS_SQUARES, 1);
    kofn_regress_options o = {.size = sizeof o, .step = 1e200,
                              .max_iterations = 10};
    fleet k = {"elastic:k=4", 6, true, NULL, NULL};
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
    assert_ok(kofn_regression_new(&r, &d.X, &d.y, &o));
    assert_status(KOFN_STATE, kofn_regress(r, &W, NULL));
    kofn_regression_free(r);
    fit_down(&f);
    data_free(&d);
}

/* Too few workers are left in the third iteration: two steps were made. */
static void too_few_workers(void **state)
{
    static const kofn_happening gone[] = {{5, 0, KOFN_EVENT_LEAVE, 0, 0},
                                          {5, 0.3, KOFN_EVENT_LEAVE, 1, 0},
                                          {5, 0.3, KOFN_EVENT_LEAVE, 2, 0}};
    data d = make_data(30, 4, KOFN_LOSS_SQUARES, 1);
    kofn_regress_options o = {.size = sizeof o, .step = 0.1};
    kofn_options opt = KOFN_OPTIONS_INIT;
    fleet k = {"elastic:k=4", 6, true, NULL, &opt};
    kofn_regress_result res;
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

/* ---- memory runs out ---------------------------------------------------------------------------------------------- */

/* A whole life without workers: status of what failed first. */
static kofn_status alone(const data *d, kofn_regress_options o, int what)
{
    const kofn_failures f = {5, 0.1, 2, KOFN_MISSING_REMEMBERED, 1};
    double w[6] = {0};
    kofn_matrix W = {w, 6, 1, 1, KOFN_F64}, K;
    kofn_regression *r;
    kofn_status st;

    if (what == 0) {
        st = kofn_kernel(&K, &d->X, &d->X, "rbf:s=2");
        kofn_free(K.data);
        return st;
    }
    st = kofn_regression_new(&r, &d->X, &d->y, &o);
    if (!st)
        st = what == 1 ? kofn_regress_plain(r, &W, NULL)
                       : kofn_regress_failing(r, &f, &W, NULL);
    kofn_regression_free(r);
    return st;
}

/* And one with them, who may be missed when they have no memory. */
static kofn_status with_workers(const data *d, kofn_regress_options o,
                                const char *spec)
{
    double w[6] = {0};
    kofn_matrix W = {w, 6, 1, 1, KOFN_F64};
    kofn_regression *r;
    kofn_plan *plan = NULL;
    kofn_job *job = NULL;
    kofn_problem pb;
    kofn_port *port;
    kofn_status st = kofn_regression_new(&r, &d->X, &d->y, &o);

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
                              .rule = KOFN_STEP_GRID,
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
    kofn_set_alloc(NULL);
    data_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scheme_descends_alike),
        cmocka_unit_test(it_finds_the_minimum),
        cmocka_unit_test(california),
        cmocka_unit_test(california_fitted),
        cmocka_unit_test(by_a_sum_of_ones_own),
        cmocka_unit_test(steps_take_what_they_cost),
        cmocka_unit_test(work_is_said_in_time),
        cmocka_unit_test(fact_worked_gradient),
        cmocka_unit_test(fact_iterations),
        cmocka_unit_test(gradients_are_derivatives),
        cmocka_unit_test(logistic_labels),
        cmocka_unit_test(line_searches),
        cmocka_unit_test(lipschitz),
        cmocka_unit_test(an_epoch_is_all_points),
        cmocka_unit_test(batches_are_strips),
        cmocka_unit_test(batches_descend),
        cmocka_unit_test(machines_fail),
        cmocka_unit_test(a_watch_sees),
        cmocka_unit_test(kernels),
        cmocka_unit_test(a_kernel_learns_a_sine),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(ways_are_checked),
        cmocka_unit_test(runs_are_checked),
        cmocka_unit_test(too_few_workers),
        cmocka_unit_test(every_allocation),
    };

    rig_begin();
    return cmocka_run_group_tests_name("regress", tests, NULL, NULL);
}
