/* away_sums_test.c -- gradients from remote workers, which know the loss by
 * its name, against the definition. */
#include "fleet.h"

#include "wire/wire.h"

typedef struct points {
    kofn_matrix X, y;
    kofn_regress_options opt;
} points;

static points make_points(kofn_loss loss)
{
    points p = {random_matrix(157, 11, KOFN_F64, 3),
                random_matrix(157, 1, KOFN_F64, 4),
                {.size = sizeof p.opt,
                 .loss = loss,
                 .step = 0.02,
                 .l2 = 0.01,
                 .max_iterations = 12,
                 .tol = 1e-14}};
    double *y = p.y.data;

    for (size_t i = 0; i < p.y.rows && loss != KOFN_LOSS_SQUARES; i++)
        y[i] = loss == KOFN_LOSS_LOGISTIC ? y[i] > 0 : floor(fabs(2 * y[i]));
    return p;
}

static void points_free(points *p)
{
    kf_free(p->X.data);
    kf_free(p->y.data);
}

/* Returns w after the descent on the 12 workers of this port. */
static kofn_matrix descend(const points *p, const char *spec, kofn_port *port)
{
    kofn_matrix w = {numbers(p->X.cols, 8), p->X.cols, 1, 1, KOFN_F64};
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    kofn_regression *r;
    kofn_problem pb = {.size = sizeof pb};
    kofn_plan *plan;
    kofn_job *job;
    kofn_status st;

    assert_ok(kofn_regression_new(&r, KOFN_DENSE(&p->X), &p->y, &p->opt));
    assert_ok(kofn_regression_problem(r, spec, 12, &pb));
    assert_int_equal(pb.op, KOFN_SUM);
    assert_ok(kofn_plan_new(&plan, &pb, spec, 12, 3));
    assert_ok(kofn_open(&job, plan, port, NULL));
    assert_ok(kofn_regression_place(r, job, pb.op));
    st = kofn_regress(r, &w, &res);
    assert_true(st == KOFN_OK || st == KOFN_PARTIAL);
    assert_int_equal(res.iterations, p->opt.max_iterations);
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_regression_free(r);
    return w;
}

/* Makes the same steps by the definition of the gradient, with plain loops. */
static double *descend_plainly(const points *p)
{
    size_t n = p->X.cols, m = p->X.rows;
    double *w = numbers(n, 8), *g = numbers(n, 8);
    const double *X = p->X.data, *y = p->y.data;

    for (unsigned t = 0; t < p->opt.max_iterations; t++) {
        for (size_t j = 0; j < n; j++)
            g[j] = p->opt.l2 * w[j];
        for (size_t i = 0; i < m; i++) {
            double u = cblas_ddot((int)n, X + i * n, 1, w, 1);
            double mean = p->opt.loss == KOFN_LOSS_SQUARES ? u
                          : p->opt.loss == KOFN_LOSS_LOGISTIC
                              ? 1 / (1 + exp(-u))
                              : exp(u);

            cblas_daxpy((int)n, (mean - y[i]) / (double)m, X + i * n, 1, g, 1);
        }
        cblas_daxpy((int)n, -p->opt.step, g, 1, w, 1);
    }
    kf_free(g);
    return w;
}

static double distance(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t j = 0; j < n; j++)
        sum += (a[j] - b[j]) * (a[j] - b[j]);
    return sqrt(sum) / cblas_dnrm2((int)n, b, 1);
}

static void gradients_by_name(void **state)
{
    static const char *const specs[] = {"gc:d=3",
                                        "gc:d=4,construction=fractional",
                                        "cgc:d=3", "agc", "distr-bgd:wait=12"};
    const loop_faults fetching = {.fetching = true}, narrow = {.room = 1000};

    (void)state;
    for (int i = 0; i < 15; i++) {
        const char *spec = specs[i % 5];
        points p = make_points((kofn_loss)(i / 5));
        double *want = descend_plainly(&p);
        kofn_matrix w, threads;
        kofn_problem pb = {.size = sizeof pb};
        kofn_regression *r;
        kofn_port *port;
        fleet f;

        assert_ok(kofn_regression_new(&r, KOFN_DENSE(&p.X), &p.y, &p.opt));
        if (kofn_regression_problem(r, spec, 12, &pb) || pb.op != KOFN_SUM)
            fail_msg("%s: %s", spec, kofn_errmsg());
        kofn_regression_free(r);
        assert_ok(kofn_port_threads(&port, 12, NULL));
        threads = descend(&p, spec, port);
        fleet_init(&f, i % 3 == 1 ? &fetching : i % 3 == 2 ? &narrow : NULL);
        w = descend(&p, spec, fleet_port(&f, 12, NULL));
        if (!(distance(w.data, threads.data, w.rows) <= 1e-12 &&
              distance(w.data, want, w.rows) <= 1e-9))
            fail_msg("%s, loss %d: %g from threads, %g from the truth", spec,
                     i / 5, distance(w.data, threads.data, w.rows),
                     distance(w.data, want, w.rows));
        fleet_down(&f);
        kf_free(w.data);
        kf_free(threads.data);
        kf_free(want);
        points_free(&p);
    }
}

/* Only y travels then, in slices of 8 bytes for each row. */
static void rows_from_files(void **state)
{
    points p = make_points(KOFN_LOSS_LOGISTIC);
    double *want = descend_plainly(&p);
    kofn_matrix other = random_matrix(p.X.rows, p.X.cols, KOFN_F64, 3), w;
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    disk d = {.A = &p.X};

    (void)state;
    o.source = "A.npy";
    ((double *)other.data)[77] += 1e-12;
    for (int changed = 0; changed < 2; changed++) {
        size_t held = 12 * p.X.rows / 12 * 3; /* d = 3 times each row */
        fleet f;

        d.A = changed ? &other : &p.X;
        fleet_init(&f, NULL);
        f.disk = &d;
        f.serve.operand = from_disk;
        f.serve.operand_done = disk_done;
        w = descend(&p, "gc:d=3", fleet_port(&f, 12, &o));
        assert_true(distance(w.data, want, w.rows) <= 1e-9);
        if (changed)
            assert_true(f.net.bytes[KF_WIRE_SLICE] > held * 8);
        else
            assert_int_equal(f.net.bytes[KF_WIRE_SLICE], held * 8);
        fleet_down(&f);
        kf_free(w.data);
    }
    kf_free(want);
    kf_free(other.data);
    points_free(&p);
}

TEST_FILE(away_sums_test)
{
    const struct CMUnitTest tests[] = {
        TEST(gradients_by_name,
             "away: gradients by name are right (three losses, five codes)"),
        TEST(rows_from_files,
             "away: gradients from own files are right, changed ones noticed"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
