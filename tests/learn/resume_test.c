/* resume_test.c -- iterations that stop after any step and resume in another
 * job. The numbers are those of an unbroken iteration. */
#include "rig.h"

#include <kofn/peer.h>

#define SIDE 12
#define POINTS 40
#define STEPS 9

/* ---- descents ------------------------------------------------------------ */

typedef struct checkpoint {
    kofn_regress_step last;
    double w[SIDE], v[SIDE];
    unsigned stop_at;
} checkpoint;

/* Records what a checkpoint contains. */
static int remember(void *ud, const kofn_regress_step *now,
                    const kofn_report *rep)
{
    checkpoint *s = ud;

    if (!rep)
        return 0;
    s->last = *now;
    memcpy(s->w, now->w, sizeof s->w);
    memcpy(s->v, now->v, sizeof s->v);
    s->last.w = s->w;
    s->last.v = s->v;
    return now->iteration == s->stop_at;
}

typedef struct setting {
    kofn_matrix X, y;
    kofn_regress_options o;
    const char *spec;
} setting;

/* Descends into w on new workers. */
static kofn_regress_result descend(const setting *s, double *w,
                                   checkpoint *saved,
                                   const kofn_regress_step *resume)
{
    kofn_matrix to = {w, SIDE, 1, 1, KOFN_F64};
    kofn_regress_options o = s->o;
    kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;
    kofn_regression *r;
    kofn_problem pb = {.size = sizeof pb};
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;
    kofn_status st;

    o.watch = remember;
    o.watch_ud = saved;
    o.resume = resume;
    assert_ok(kofn_regression_new(&r, KOFN_DENSE(&s->X), &s->y, &o));
    assert_ok(kofn_regression_problem(r, s->spec, 6, &pb));
    assert_ok(kofn_plan_new(&plan, &pb, s->spec, 6, 3));
    if (pb.op == KOFN_MATVEC)
        assert_ok(kofn_plan_serve_left(plan, 1));
    assert_ok(kofn_port_sim(&port, 6, NULL));
    assert_ok(kofn_open(&job, plan, port, NULL));
    assert_ok(kofn_regression_place(r, job, pb.op));
    st = kofn_regress(r, &to, &res);
    assert_int_equal(st, saved->stop_at ? KOFN_AGAIN : KOFN_OK);
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_regression_free(r);
    return res;
}

static void stop_anywhere(const setting *s)
{
    checkpoint whole = {0};
    double want[SIDE] = {0};
    kofn_regress_result all = descend(s, want, &whole, NULL);

    for (unsigned at = 1; at <= all.iterations; at++) {
        checkpoint before = {.stop_at = at}, after = {0};
        double w[SIDE] = {0};
        kofn_regress_result res = KOFN_REGRESS_RESULT_INIT;

        descend(s, w, &before, NULL);
        memcpy(w, before.w, sizeof w);
        res = descend(s, w, &after, &before.last);
        assert_memory_equal(w, want, sizeof w);
        assert_int_equal(res.iterations, all.iterations);
        assert_true(res.converged == all.converged);
        assert_true(res.objective == all.objective);
        assert_true(res.gradient == all.gradient);
        /* nothing is done twice, including the estimate of L */
        assert_true(res.rounds.rounds + at <= all.rounds.rounds);
    }
}

static void descents(void **state)
{
    static const struct {
        const char *spec;
        kofn_regress_options o;
    } all[] = {
        {"elastic:k=3", {.optimizer = KOFN_OPTIMIZER_GD}},
        {"elastic:k=3", {.optimizer = KOFN_OPTIMIZER_NESTEROV}},
        {"elastic:k=3", {.optimizer = KOFN_OPTIMIZER_SGD, .batches = 4}},
        {"elastic:k=3", {.line_search = KOFN_LINE_SEARCH_EXACT}},
        {"gc:d=3", {.line_search = KOFN_LINE_SEARCH_ARMIJO}},
        {"pcr:r=3", {.optimizer = KOFN_OPTIMIZER_NESTEROV}},
        {"pcr:r=3",
         {.optimizer = KOFN_OPTIMIZER_GD,
          .tol = 0.3}}, /* converges before the end */
    };
    setting s = {.X = random_matrix(POINTS, SIDE, KOFN_F64, 1),
                 .y = random_matrix(POINTS, 1, KOFN_F64, 2)};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        s.spec = all[i].spec;
        s.o = all[i].o;
        s.o.size = sizeof s.o;
        s.o.max_iterations = STEPS;
        if (!(s.o.tol > 0))
            s.o.tol = 1e-300;
        stop_anywhere(&s);
    }
    kf_free(s.X.data);
    kf_free(s.y.data);
}

/* ---- power iteration and PageRank ---------------------------------------- */

typedef struct breakpoint {
    unsigned at;
    double change;
} breakpoint;

static int stop(void *ud, unsigned iteration, double change,
                const kofn_report *rep)
{
    breakpoint *b = ud;

    (void)rep;
    b->change = change;
    return iteration == b->at;
}

/* Runs one of the two iterations from `v`. */
static kofn_iterate_result iterate(bool pages, const kofn_matrix *A,
                                   const kofn_sparse *M, double *v, unsigned at,
                                   const kofn_iterate_result *resume)
{
    kofn_matrix to = {v, SIDE, 1, 1, KOFN_F64};
    breakpoint b = {at, 0};
    kofn_iterate_options o = {.size = sizeof o,
                              .max_iterations = 30,
                              .tol = 1e-6,
                              .watch = stop,
                              .watch_ud = &b,
                              .resume = resume};
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_status st = pages
                         ? kofn_pagerank_peers(NULL, M, NULL, &to, &o, &res)
                         : kofn_power_peers(NULL, KOFN_DENSE(A), &to, &o, &res);

    assert_true(st == KOFN_OK || (at && st == KOFN_AGAIN));
    return res;
}

static void iterations(void **state)
{
    kofn_matrix A = random_matrix(SIDE, SIDE, KOFN_F64, 5);
    kofn_sparse graph = random_sparse(SIDE, SIDE, 4, 6), *M;
    uint8_t *dangling;

    (void)state;
    for (size_t e = 0; e < graph.ptr[SIDE]; e++)
        ((double *)(uintptr_t)graph.val)[e] = 1;
    assert_ok(kofn_pagerank_matrix(&M, &dangling, &graph));
    for (int pages = 0; pages < 2; pages++) {
        double want[SIDE] = {1, 2};
        kofn_iterate_result all = iterate(pages, &A, M, want, 0, NULL);

        for (unsigned at = 1; at <= all.iterations; at++) {
            double v[SIDE] = {1, 2};
            kofn_iterate_result half = iterate(pages, &A, M, v, at, NULL), res;

            assert_int_equal(half.iterations, at);
            res = iterate(pages, &A, M, v, 0, &half);
            assert_memory_equal(v, want, sizeof v);
            assert_int_equal(res.iterations, all.iterations);
            assert_true(res.change == all.change &&
                        res.eigenvalue == all.eigenvalue &&
                        res.converged == all.converged);
        }
    }
    kofn_free(M);
    kofn_free(dangling);
    sparse_free(&graph);
    kf_free(A.data);
}

static void refusals(void **state)
{
    double a[4] = {1, 0, 0, 2}, v[2] = {1, 1};
    kofn_matrix A = {a, 2, 2, 2, KOFN_F64}, x = {v, 2, 1, 1, KOFN_F64};
    kofn_iterate_result bad = KOFN_ITERATE_RESULT_INIT;
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_iterate_options o = {.size = sizeof o, .resume = &bad};

    (void)state;
    bad.iterations = 3;
    bad.change = NAN;
    assert_status(KOFN_INVAL,
                  kofn_power_peers(NULL, KOFN_DENSE(&A), &x, &o, &res));
    bad.change = 1;
    bad.size = 3;
    assert_status(KOFN_INVAL,
                  kofn_power_peers(NULL, KOFN_DENSE(&A), &x, &o, &res));
    assert_non_null(strstr(kofn_errmsg(), "KOFN_ITERATE_RESULT_INIT"));
}

TEST_FILE(resume_test)
{
    const struct CMUnitTest tests[] = {
        TEST(descents,
             "resume: a descent resumes after any step with the same numbers"),
        TEST(iterations,
             "resume: iterations resume after any step with the same numbers"),
        TEST(refusals, "resume: a result that cannot be resumed is refused"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}
