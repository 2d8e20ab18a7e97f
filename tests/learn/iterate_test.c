/* iterate_test.c -- power iteration and PageRank: published numbers, closed
 * forms, and the same iterates under any faults of workers. */
#include "portable.h"
#include "rig.h"

#include <kofn/io.h>
#include <kofn/peer.h>
#include <stdio.h>
#include <unistd.h>

/* ---- the portable random numbers of math/README.md ----------------------- */

static uint32_t below(uint64_t *state, uint32_t k)
{
    return (uint32_t)(uniform(state) * k);
}

/* Fact prng.splitmix64. */
static void splitmix(void **state)
{
    static const uint64_t first[] = {
        UINT64_C(10451216379200822465), UINT64_C(13757245211066428519),
        UINT64_C(17911839290282890590), UINT64_C(8196980753821780235)};
    uint64_t s = 1;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_true(splitmix64(&s) == first[i]);
}

/* The graph of fact cec.pagerank.iters: 50 nodes. Nodes with i % 13 == 5 are
 * dangling, the others have four draws each. Equal draws are one arc. */
static kofn_sparse fact_graph(void)
{
    size_t *ptr = numbers(51, sizeof *ptr), count = 0;
    uint32_t *col = numbers(200, sizeof *col);
    double *val = numbers(200, sizeof *val);
    uint64_t s = 7;

    for (uint32_t i = 0; i < 50; i++) {
        bool to[50] = {false};

        for (int draw = 0; draw < 4 && i % 13 != 5; draw++)
            to[below(&s, 50)] = true;
        for (uint32_t j = 0; j < 50; j++)
            if (to[j]) {
                col[count] = j;
                val[count++] = 1;
            }
        ptr[i + 1] = count;
    }
    return (kofn_sparse){50, 50, ptr, col, val};
}

/* ---- PageRank ------------------------------------------------------------ */

typedef struct rank_case {
    kofn_sparse *M;
    uint8_t *dangling;
    kofn_matrix plain, v;    /* ranks of the plain iteration, and of the job */
    kofn_iterate_result res; /* of the plain iteration */
} rank_case;

static kofn_matrix vector(size_t n)
{
    return (kofn_matrix){numbers(n, 8), n, 1, 1, KOFN_F64};
}

static void rank_up(rank_case *w, const kofn_sparse *graph)
{
    assert_ok(kofn_pagerank_matrix(&w->M, &w->dangling, graph));
    w->plain = vector(graph->rows);
    w->v = vector(graph->rows);
    w->res = (kofn_iterate_result)KOFN_ITERATE_RESULT_INIT;
    assert_ok(
        kofn_pagerank_peers(NULL, w->M, w->dangling, &w->plain, NULL, &w->res));
    assert_true(w->res.converged);
}

static void rank_down(rank_case *w)
{
    kofn_free(w->M);
    kofn_free(w->dangling);
    kf_free(w->plain.data);
    kf_free(w->v.data);
}

static kofn_job *rank_job(const rank_case *w, kofn_plan **plan,
                          const char *spec, size_t workers, bool sim,
                          const kofn_options *o)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, w->M->rows, w->M->cols, 1,
                                        KOFN_F64, true);
    kofn_port *port;
    kofn_job *job;

    assert_ok(kofn_plan_new(plan, &pb, spec, workers, 3));
    assert_ok(sim ? kofn_port_sim(&port, workers, NULL)
                  : kofn_port_threads(&port, workers, NULL));
    assert_ok(kofn_open(&job, *plan, port, o));
    assert_ok(kofn_place_at(job, 0, KOFN_SPARSE(w->M)));
    return job;
}

/* Fails unless the iterations and ranks are those of the plain iteration. */
static void rank_coded(rank_case *w, const char *spec, size_t workers, bool sim,
                       const kofn_options *o)
{
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_plan *plan;
    kofn_job *job = rank_job(w, &plan, spec, workers, sim, o);
    double sum = 0;

    assert_ok(kofn_pagerank(job, w->dangling, &w->v, NULL, &res));
    assert_true(res.converged && res.change < 1e-10);
    assert_int_equal(res.iterations, w->res.iterations);
    assert_at_most(relative_error(w->v.data, w->plain.data, w->v.rows), 1e-12);
    for (size_t i = 0; i < w->v.rows; i++)
        sum += ((double *)w->v.data)[i];
    assert_at_most(fabs(sum - 1), 1e-12);
    kofn_close(job);
    kofn_plan_free(plan);
}

/* Fact cec.pagerank.iters: 27 iterations, page 47 at the top. */
static void fact_pagerank(void **state)
{
    kofn_sparse graph = fact_graph();
    size_t top = 0;
    double *x;
    rank_case w;

    (void)state;
    rank_up(&w, &graph);
    assert_int_equal(w.res.iterations, 27);
    x = w.plain.data;
    for (size_t i = 0; i < 50; i++)
        top = x[i] > x[top] ? i : top;
    assert_int_equal(top, 47);
    assert_at_most(fabs(x[top] - 0.04310289565390004), 1e-9);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(w.dangling[i], i % 13 == 5);
    for (int sim = 0; sim < 2; sim++) {
        rank_coded(&w, "elastic:k=3", 6, sim, NULL);
        rank_coded(&w, "mds:k=3", 5, sim, NULL);
        rank_coded(&w, "replication", 4, sim, NULL);
        rank_coded(&w, "uncoded", 4, sim, NULL);
    }
    rank_down(&w);
    sparse_free(&graph);
}

/* Sixty joins and leaves, spread over the rounds, within rounds and between
 * them. */
static size_t make_trace(kofn_fault_event *h, size_t workers, size_t enough,
                         unsigned iterations)
{
    kf_rng r = kf_rng_stream(8, KF_FOR_DATA, 8, 8);
    size_t there = workers, live = workers;
    bool gone[200] = {false};

    for (size_t i = 0; i < 60; i++) {
        uint32_t worker = (uint32_t)kf_rng_below(&r, there);
        bool leave = live > enough && !gone[worker] && kf_rng_below(&r, 3);

        h[i] = (kofn_fault_event){
            .round = 1 + (unsigned)(i * (iterations - 1) / 60),
            .fraction = (double)(i % 5) * 0.2,
            .kind = leave ? KOFN_FAULT_EVENT_LEAVE : KOFN_FAULT_EVENT_JOIN,
            .worker = worker};
        if (leave) {
            gone[worker] = true;
            live--;
        } else {
            there++;
            live++;
        }
        /* events are in order of time: fractions ascend within a round */
        if (i && h[i].round == h[i - 1].round &&
            h[i].fraction < h[i - 1].fraction)
            h[i].fraction = h[i - 1].fraction;
    }
    return 60;
}

static void rank_under_trace(const kofn_sparse *graph, size_t workers, size_t k)
{
    kofn_fault_event events[60];
    kofn_options o = KOFN_OPTIONS_INIT;
    char spec[40];
    rank_case w;

    rank_up(&w, graph);
    snprintf(spec, sizeof spec, "elastic:k=%zu", k);
    o.events = events;
    o.event_count = make_trace(events, workers, k, w.res.iterations);
    for (int sim = 0; sim < 2; sim++)
        for (int mode = 0; mode < 3; mode++) {
            o.in_flight = (kofn_in_flight)mode;
            rank_coded(&w, spec, workers, sim, &o);
        }
    rank_down(&w);
}

static void rmat_under_a_trace(void **state)
{
    kofn_sparse *graph;

    (void)state;
    assert_ok(kofn_rmat(&graph, 4000 / SLOWED, 30000 / SLOWED, 5));
    rank_under_trace(graph, 12, 8);
    rank_under_trace(graph, 6, 3);
    kofn_free(graph);
}

/* The votes on Wikipedia's administrators, if the data is next to the
 * checkout. */
static void wiki_vote_under_a_trace(void **state)
{
    static const char path[] = "/../../../shared/data/wiki-Vote/wiki-Vote.mtx";
    char full[1000];
    const char *slash = strrchr(__FILE__, '/');
    kofn_file *f;

    (void)state;
    snprintf(full, sizeof full, "%.*s%s", slash ? (int)(slash - __FILE__) : 1,
             slash ? __FILE__ : ".", path);
    if (access(full, R_OK) != 0) {
        print_message("%s does not exist\n", full);
        skip();
    }
    assert_ok(kofn_file_open(&f, full, KOFN_FILE_READ));
    assert_non_null(f->matrix.sparse);
    assert_int_equal(f->matrix.sparse->rows, 7115);
    rank_under_trace(f->matrix.sparse, 12, 8);
    kofn_file_free(f);
}

/* Two nodes, one arc: 0 -> 1 and 1 dangling. With a = r0, b = r1: a = d b/2 +
 * (1-d)/2, b = d (a + b/2) + (1-d)/2. */
static void dangling_nodes(void **state)
{
    size_t ptr[] = {0, 1, 1};
    uint32_t col[] = {1};
    double val[] = {1}, d = 0.85, b, a;
    kofn_sparse two = {2, 2, ptr, col, val};
    size_t none[] = {0, 0, 0, 0};
    kofn_sparse empty = {3, 3, none, col, val};
    rank_case w;

    (void)state;
    rank_up(&w, &two);
    assert_false(w.dangling[0]);
    assert_true(w.dangling[1]);
    /* subtracting: b - a = d a; and a + b = 1 */
    a = 1 / (2 + d);
    b = 1 - a;
    assert_at_most(fabs(((double *)w.plain.data)[0] - a), 1e-10);
    assert_at_most(fabs(((double *)w.plain.data)[1] - b), 1e-10);
    rank_coded(&w, "elastic:k=2", 3, true, NULL);
    rank_down(&w);
    rank_up(&w, &empty); /* no arcs: all are equal at once */
    assert_int_equal(w.res.iterations, 1);
    for (size_t i = 0; i < 3; i++)
        assert_at_most(fabs(((double *)w.plain.data)[i] - 1.0 / 3), 1e-15);
    rank_coded(&w, "mds:k=2", 3, true, NULL);
    rank_down(&w);
}

/* Arcs have weights. */
static void matrix_is_stochastic(void **state)
{
    kofn_sparse graph = random_sparse(60, 60, 5, 3);
    double sum[60] = {0};
    kofn_sparse *M;
    uint8_t *dangling;

    (void)state;
    for (size_t e = 0; e < graph.ptr[60]; e++)
        ((double *)(uintptr_t)graph.val)[e] = fabs(graph.val[e]);
    assert_ok(kofn_pagerank_matrix(&M, &dangling, &graph));
    for (size_t j = 0; j < 60; j++)
        for (size_t e = M->ptr[j]; e < M->ptr[j + 1]; e++)
            sum[M->col[e]] += M->val[e];
    for (size_t i = 0; i < 60; i++) {
        assert_int_equal(dangling[i], graph.ptr[i] == graph.ptr[i + 1]);
        assert_at_most(fabs(sum[i] - (dangling[i] ? 0 : 1)), 1e-14);
    }
    kofn_free(M);
    kofn_free(dangling);
    sparse_free(&graph);
}

/* ---- power iteration ----------------------------------------------------- */

#define N 40

/* A = H B H with B = diag(top, r rotation, r rotation, ...), |r| < |top|, and
 * H = I - 2 u u' orthogonal. The dominant pair is (top, H e0). */
static void make_matrix(double *A, double *pair, double top)
{
    double u[N], B[N * N] = {0}, T[N * N] = {0}, norm = 0;

    for (size_t i = 0; i < N; i++) {
        u[i] = cos(1 + 3.0 * (double)i);
        norm += u[i] * u[i];
    }
    for (size_t i = 0; i < N; i++)
        u[i] /= sqrt(norm);
    B[0] = top;
    for (size_t i = 1; i < N; i += 2) {
        double r = 0.6 * fabs(top) * (1 - (double)i / 80), t = (double)i;

        B[i * N + i] = r * cos(t);
        if (i + 1 == N)
            break;
        B[i * N + i + 1] = -r * sin(t);
        B[(i + 1) * N + i] = r * sin(t);
        B[(i + 1) * N + i + 1] = r * cos(t);
    }
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            double s = 0; /* (B H)_ij = B_ij - 2 (B u)_i u_j */

            for (size_t k = 0; k < N; k++)
                s += B[i * N + k] * u[k];
            T[i * N + j] = B[i * N + j] - 2 * s * u[j];
        }
    }
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++) {
            double s = 0;

            for (size_t k = 0; k < N; k++)
                s += u[k] * T[k * N + j];
            A[i * N + j] = T[i * N + j] - 2 * u[i] * s;
        }
    for (size_t i = 0; i < N; i++)
        pair[i] = (i == 0) - 2 * u[0] * u[i];
}

static void start_vector(double *v)
{
    for (size_t i = 0; i < N; i++)
        v[i] = 3 * sin((double)(i * i + 1));
}

/* Fails unless the vector is the eigenvector up to its sign. */
static void check_pair(const double *v, const double *pair, double top,
                       const kofn_iterate_result *res)
{
    double dot = 0, length = 0;

    for (size_t i = 0; i < N; i++) {
        dot += v[i] * pair[i];
        length += v[i] * v[i];
    }
    assert_true(res->converged);
    assert_at_most(fabs(length - 1), 1e-14);
    assert_at_most(fabs(fabs(dot) - 1), 1e-12);
    assert_at_most(fabs(res->eigenvalue - top), 1e-10 * fabs(top));
}

static void known_eigenpairs(void **state)
{
    static const double tops[] = {5, -5, 1e-6, -3e8};

    (void)state;
    for (size_t t = 0; t < 4; t++) {
        double *a = numbers(N * N, 8), pair[N], v[N], plain[N];
        kofn_matrix A = {a, N, N, N, KOFN_F64};
        kofn_matrix x = {v, N, 1, 1, KOFN_F64}, y = {plain, N, 1, 1, KOFN_F64};
        kofn_problem pb =
            KOFN_PROBLEM_INIT(KOFN_MATVEC, N, N, 1, KOFN_F64, false);
        kofn_iterate_options o = {.size = sizeof o, .tol = 1e-12};
        kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT,
                            want = KOFN_ITERATE_RESULT_INIT;
        kofn_fault_event events[60];
        kofn_options opt = KOFN_OPTIONS_INIT;

        make_matrix(a, pair, tops[t]);
        start_vector(plain);
        assert_ok(kofn_power_peers(NULL, KOFN_DENSE(&A), &y, &o, &want));
        check_pair(plain, pair, tops[t], &want);
        opt.events = events;
        opt.event_count = make_trace(events, 6, 3, want.iterations);
        for (int sim = 0; sim < 2; sim++) {
            kofn_plan *plan;
            kofn_port *port;
            kofn_job *job;

            assert_ok(kofn_plan_new(&plan, &pb, "elastic:k=3", 6, 3));
            assert_ok(sim ? kofn_port_sim(&port, 6, NULL)
                          : kofn_port_threads(&port, 6, NULL));
            assert_ok(kofn_open(&job, plan, port, &opt));
            assert_ok(kofn_place(job, &A));
            start_vector(v);
            assert_ok(kofn_power(job, &x, &o, &res));
            check_pair(v, pair, tops[t], &res);
            assert_int_equal(res.iterations, want.iterations);
            assert_at_most(relative_error(v, plain, N), 1e-11);
            kofn_close(job);
            kofn_plan_free(plan);
        }
        kf_free(a);
    }
}

static void power_limits(void **state)
{
    double a[4] = {0, 1, -1, 0}, v[2] = {1, 2}, zero[2] = {0};
    kofn_matrix A = {a, 2, 2, 2, KOFN_F64}, x = {v, 2, 1, 1, KOFN_F64};
    kofn_matrix z = {zero, 2, 1, 1, KOFN_F64};
    kofn_iterate_options o = {.size = sizeof o, .max_iterations = 17};
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;

    (void)state;
    /* a rotation has no dominant eigenvalue: it stops and reports that */
    assert_ok(kofn_power_peers(NULL, KOFN_DENSE(&A), &x, &o, &res));
    assert_false(res.converged);
    assert_int_equal(res.iterations, 17);
    assert_at_most(fabs(res.change - sqrt(2)), 1e-14);
    assert_status(KOFN_INVAL,
                  kofn_power_peers(NULL, KOFN_DENSE(&A), &z, &o, &res));
    /* the eigenvalue 2e308 overflows, though no product does */
    a[0] = a[1] = a[2] = a[3] = 1e308;
    v[0] = v[1] = 1;
    assert_status(KOFN_NONFINITE,
                  kofn_power_peers(NULL, KOFN_DENSE(&A), &x, &o, &res));
}

/* A v = 0 means that v is an eigenvector of the eigenvalue 0. For the zero
 * matrix it is the start vector, for a nilpotent one its only direction. */
static void eigenvalue_zero(void **state)
{
    double a[4] = {0}, v[2] = {3, 4};
    kofn_matrix A = {a, 2, 2, 2, KOFN_F64}, x = {v, 2, 1, 1, KOFN_F64};
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;

    (void)state;
    assert_ok(kofn_power_peers(NULL, KOFN_DENSE(&A), &x, NULL, &res));
    assert_true(res.converged && res.eigenvalue == 0);
    assert_at_most(fabs(v[0] - 0.6) + fabs(v[1] - 0.8), 1e-15);
    a[1] = 5; /* [0 5; 0 0] */
    assert_ok(kofn_power_peers(NULL, KOFN_DENSE(&A), &x, NULL, &res));
    assert_true(res.converged && res.eigenvalue == 0);
    assert_at_most(fabs(v[0] - 1) + fabs(v[1]), 1e-15);
}

/* ---- refusals ------------------------------------------------------------ */

/* A vector of the wrong type or shape is not changed. */
static void vectors_are_checked_first(void **state)
{
    kofn_sparse graph = fact_graph();
    float small[50] = {1};
    double wide[100] = {1};
    kofn_matrix wrong[] = {{small, 50, 1, 1, KOFN_F32},
                           {wide, 50, 1, 2, KOFN_F64},
                           {wide, 25, 2, 2, KOFN_F64},
                           {NULL, 50, 1, 1, KOFN_F64}};
    kofn_matrix askew = {(char *)wide + 4, 50, 1, 1, KOFN_F64};
    double *a = numbers(2500, 8);
    kofn_matrix A = {a, 50, 50, 50, KOFN_F64};
    const kofn_iterate_options odd[] = {{.size = sizeof *odd, .damping = 1.01},
                                        {.size = sizeof *odd, .damping = -0.5},
                                        {.size = sizeof *odd, .damping = NAN},
                                        {.size = sizeof *odd, .tol = NAN},
                                        {.size = sizeof *odd, .tol = -1},
                                        {.size = sizeof *odd, .tol = INFINITY}};
    rank_case w;

    (void)state;
    rank_up(&w, &graph);
    for (size_t i = 0; i < 4; i++) {
        assert_status(KOFN_SHAPE, kofn_pagerank_peers(NULL, w.M, w.dangling,
                                                      &wrong[i], NULL, NULL));
        assert_status(KOFN_SHAPE, kofn_power_peers(NULL, KOFN_DENSE(&A),
                                                   &wrong[i], NULL, NULL));
    }
    assert_status(KOFN_SHAPE,
                  kofn_pagerank_peers(NULL, w.M, w.dangling, NULL, NULL, NULL));
    for (int i = 1; i < 50; i++)
        assert_true(small[i] == 0 && wide[i] == 0);
    assert_status(KOFN_INVAL, kofn_pagerank_peers(NULL, w.M, w.dangling, &askew,
                                                  NULL, NULL));
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_status(KOFN_INVAL, kofn_pagerank_peers(NULL, w.M, w.dangling,
                                                      &w.v, &odd[i], NULL));
        assert_non_null(
            strstr(kofn_errmsg(), odd[i].damping == 0 ? "tol =" : "damping ="));
    }
    rank_down(&w);
    kf_free(a);
    sparse_free(&graph);
}

static void graphs_are_checked(void **state)
{
    size_t ptr[] = {0, 1, 2}, back[] = {0, 2, 1}, two[] = {0, 2, 2};
    uint32_t col[] = {1, 0}, out[] = {1, 7};
    double val[] = {1, 1}, minus[] = {1, -1}, nan[] = {1, NAN};
    double large[] = {1.7e308, 1.7e308}; /* each is finite, their sum is not */
    const struct {
        kofn_status want;
        kofn_sparse graph;
    } bad[] = {
        {KOFN_SHAPE, {2, 3, ptr, col, val}},
        {KOFN_INVAL, {2, 2, ptr, out, val}},
        {KOFN_INVAL, {2, 2, back, col, val}},
        {KOFN_INVAL, {2, 2, ptr, col, minus}},
        {KOFN_NONFINITE, {2, 2, ptr, col, nan}},
        {KOFN_NONFINITE, {2, 2, two, col, large}},
        {KOFN_INVAL, {2, 2, NULL, col, val}},
    };
    kofn_sparse *M;
    uint8_t *dangling;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(bad[i].want,
                      kofn_pagerank_matrix(&M, &dangling, &bad[i].graph));
        assert_null(M);
        assert_null(dangling);
    }
    assert_status(KOFN_INVAL, kofn_pagerank_matrix(&M, &dangling, NULL));
}

/* ---- watches ------------------------------------------------------------- */

typedef struct watch_log {
    unsigned calls, within, last, stop_at;
    double change;
    bool stop_within;
} watch_log;

static int watch_iteration(void *ud, unsigned iteration, double change,
                           const kofn_report *rep)
{
    watch_log *e = ud;

    if (!rep) {
        e->within++;
        return e->stop_within;
    }
    assert_int_equal(iteration, e->last + 1);
    assert_true(rep->rounds == 1 && rep->live == 5);
    assert_true(iteration == 1 || change < e->change * 1.5);
    e->last = iteration;
    e->change = change;
    e->calls++;
    return iteration == e->stop_at;
}

static void watch_between_rounds(void **state)
{
    kofn_sparse graph = fact_graph();
    kofn_iterate_options o = {.size = sizeof o, .watch = watch_iteration};
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_plan *plan;
    rank_case w;

    (void)state;
    rank_up(&w, &graph);
    for (int sim = 0; sim < 2; sim++) {
        kofn_job *job = rank_job(&w, &plan, "elastic:k=3", 5, sim, NULL);
        watch_log e = {.stop_at = 6};

        o.watch_ud = &e;
        assert_int_equal(kofn_pagerank(job, w.dangling, &w.v, &o, &res),
                         KOFN_AGAIN);
        assert_int_equal(e.calls, 6);
        assert_int_equal(res.iterations, 6);
        assert_false(res.converged);
        assert_true(res.change == e.change);
        /* stopped between rounds: the job continues */
        e = (watch_log){0};
        assert_ok(kofn_pagerank(job, w.dangling, &w.v, &o, &res));
        assert_int_equal(e.calls, 27);
        assert_at_most(relative_error(w.v.data, w.plain.data, 50), 1e-12);
        kofn_close(job);
        kofn_plan_free(plan);
    }
    rank_down(&w);
    sparse_free(&graph);
}

/* The round does not end: three of five workers are left, asleep, and four are
 * needed. */
static void watch_within_a_round(void **state)
{
    static const kofn_fault_event events[] = {
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0}};
    kofn_sparse graph = fact_graph();
    kofn_iterate_options o = {.size = sizeof o, .watch = watch_iteration};
    kofn_options opt = KOFN_OPTIONS_INIT;
    watch_log e = {.stop_within = true};
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_plan *plan;
    kofn_job *job;
    rank_case w;

    (void)state;
    opt.events = events;
    opt.event_count = 2;
    opt.below = KOFN_BELOW_PAUSE;
    rank_up(&w, &graph);
    job = rank_job(&w, &plan, "elastic:k=4", 5, false, &opt);
    o.watch_ud = &e;
    assert_int_equal(kofn_pagerank(job, w.dangling, &w.v, &o, &res),
                     KOFN_AGAIN);
    assert_int_equal(res.iterations, 2);
    assert_int_equal(e.within, 1);
    kofn_close(job);
    kofn_plan_free(plan);
    rank_down(&w);
    sparse_free(&graph);
}

/* An iteration needs whole products. */
static void degraded_products(void **state)
{
    static const kofn_fault_event events[] = {
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0}};
    kofn_sparse graph = fact_graph();
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_plan *plan;
    kofn_job *job;
    rank_case w;

    (void)state;
    opt.events = events;
    opt.event_count = 2;
    rank_up(&w, &graph);
    for (int below = 0; below < 3; below += 2) {
        opt.below = (kofn_below)below;
        job = rank_job(&w, &plan, "elastic:k=4,basis=gauss_sys,weight=0", 5,
                       true, &opt);
        assert_status(KOFN_TOOFEW,
                      kofn_pagerank(job, w.dangling, &w.v, NULL, &res));
        assert_int_equal(res.iterations, 2);
        kofn_close(job);
        kofn_plan_free(plan);
    }
    rank_down(&w);
    sparse_free(&graph);
}

TEST_FILE(iterate_test)
{
    const struct CMUnitTest tests[] = {
        TEST(splitmix, "rng: splitmix64 has the published numbers"),
        TEST(fact_pagerank,
             "iterate: PageRank has the published iterations and ranks"),
        TEST(rmat_under_a_trace,
             "iterate: PageRank of R-MAT survives 60 joins and leaves"),
        TEST(wiki_vote_under_a_trace,
             "iterate: PageRank of wiki-Vote survives 60 joins and leaves"),
        TEST(dangling_nodes,
             "iterate: dangling nodes have the ranks of the closed form"),
        TEST(matrix_is_stochastic,
             "iterate: columns of the PageRank matrix sum to one"),
        TEST(known_eigenpairs,
             "iterate: power iteration finds known eigenpairs under faults"),
        TEST(power_limits,
             "iterate: power iteration reports no convergence and overflow"),
        TEST(eigenvalue_zero, "iterate: a zero product is an eigenvalue 0"),
        TEST(vectors_are_checked_first,
             "iterate: wrong vectors and options are refused unchanged"),
        TEST(graphs_are_checked, "iterate: wrong graphs are refused"),
        TEST(watch_between_rounds,
             "iterate: a watch sees each iteration and can stop it"),
        TEST(watch_within_a_round,
             "iterate: a watch can stop it within a round"),
        TEST(degraded_products,
             "iterate: too few workers end it, also with below=degrade"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("iterate", tests, NULL, NULL);
}
