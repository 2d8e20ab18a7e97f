/* regress_sparse_test.c -- models of sparse points: the steps are those of the
 * same points in dense form. */
#include "failing.h"
#include "regress_rig.h"

typedef struct points {
    kofn_sparse S;
    kofn_matrix X, y, w[2];
} points;

#define M 210
#define N 13

static void up(points *p, kofn_loss loss)
{
    data d = make_data(M, N, loss, 4);

    p->S = random_sparse(M, N, 5, 3);
    p->X = sparse_as_dense(&p->S);
    p->y = d.y;
    d.y.data = NULL;
    data_free(&d);
    p->w[0] = column(N);
    p->w[1] = column(N);
}

static void down(points *p)
{
    sparse_free(&p->S);
    kf_free(p->X.data);
    kf_free(p->y.data);
    kf_free(p->w[0].data);
    kf_free(p->w[1].data);
}

/* Descends on workers with sparse blocks, then on this thread from dense
 * points. */
static void same_descent(const char *spec, kofn_loss loss, bool sim)
{
    kofn_regress_options o = {.size = sizeof o,
                              .loss = loss,
                              .l2 = 0.1,
                              .max_iterations = 40,
                              .tol = 1e-14};
    kofn_regress_result with = KOFN_REGRESS_RESULT_INIT,
                        without = KOFN_REGRESS_RESULT_INIT;
    kofn_regression *r, *plain;
    kofn_fit a, b;
    kofn_problem pb = {.size = sizeof pb};
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;
    points p;

    up(&p, loss);
    assert_ok(kofn_regression_new(&r, KOFN_SPARSE(&p.S), &p.y, &o));
    assert_ok(kofn_regression_new(&plain, KOFN_DENSE(&p.X), &p.y, &o));
    assert_ok(kofn_regression_problem(r, spec, 9, &pb));
    assert_true(pb.sparse);
    assert_ok(kofn_plan_new(&plan, &pb, spec, 9, 1));
    if (pb.op == KOFN_MATVEC)
        assert_ok(kofn_plan_serve_left(plan, 1));
    assert_ok(sim ? kofn_port_sim(&port, 9, &straggling)
                  : kofn_port_threads(&port, 9, NULL));
    assert_ok(kofn_open(&job, plan, port, NULL));
    assert_ok(kofn_regression_place(r, job, pb.op));
    assert_ok(kofn_regress(r, &p.w[0], &with));
    assert_ok(kofn_regress_plain(plain, &p.w[1], &without));
    assert_at_most(relative_error(p.w[0].data, p.w[1].data, N), 1e-9);
    assert_ok(kofn_fit_of(&a, KOFN_SPARSE(&p.S), &p.y, &p.w[1], loss));
    assert_ok(kofn_fit_of(&b, KOFN_DENSE(&p.X), &p.y, &p.w[1], loss));
    assert_at_most(fabs(a.loss - b.loss), 1e-12 * fabs(b.loss));
    assert_at_most(fabs(a.share - b.share), 1e-12);
    memset(p.w[0].data, 0, N * sizeof(double)); /* sparse, on this thread */
    assert_ok(kofn_regress_plain(r, &p.w[0], &with));
    assert_at_most(relative_error(p.w[0].data, p.w[1].data, N), 1e-9);
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_regression_free(r);
    kofn_regression_free(plain);
    down(&p);
}

static void descents(void **state)
{
    (void)state;
    for (int sim = 0; sim < 2; sim++) {
        same_descent("pcr:r=3", KOFN_LOSS_SQUARES, sim);
        same_descent("pcr:r=3,layout=paper", KOFN_LOSS_SQUARES, sim);
        same_descent("elastic:k=4", KOFN_LOSS_SQUARES, sim);
        same_descent("elastic:k=4", KOFN_LOSS_LOGISTIC, sim);
    }
}

static void refusals(void **state)
{
    kofn_regress_options o = {.size = sizeof o};
    kofn_matrix few = column(M - 1);
    kofn_regression *r;
    kofn_problem pb = {.size = sizeof pb};
    kofn_fit found;
    points p;

    (void)state;
    up(&p, KOFN_LOSS_SQUARES);
    assert_status(KOFN_INVAL,
                  kofn_regression_new(&r, KOFN_SPARSE(NULL), &p.y, &o));
    assert_status(KOFN_SHAPE,
                  kofn_regression_new(&r, KOFN_SPARSE(&p.S), &few, &o));
    assert_ok(kofn_regression_new(&r, KOFN_SPARSE(&p.S), &p.y, &o));
    assert_status(KOFN_UNSUITED, kofn_regression_problem(r, "gc:d=3", 9, &pb));
    assert_non_null(strstr(kofn_errmsg(), "sparse"));
    assert_status(KOFN_UNSUITED,
                  regress_failing(r, &(failures){.parts = 3}, &p.w[0], NULL));
    assert_status(KOFN_SHAPE, kofn_fit_of(&found, KOFN_SPARSE(&p.S), &p.y, &few,
                                          KOFN_LOSS_SQUARES));
    kofn_regression_free(r);
    ((double *)(uintptr_t)p.S.val)[5] = NAN;
    assert_status(KOFN_NONFINITE,
                  kofn_regression_new(&r, KOFN_SPARSE(&p.S), &p.y, &o));
    kf_free(few.data);
    down(&p);
}

TEST_FILE(regress_sparse_test)
{
    const struct CMUnitTest tests[] = {
        TEST(descents, "regress: sparse points give the descent of dense ones"),
        TEST(refusals, "regress: sparse points that do not fit are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
