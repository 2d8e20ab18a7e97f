/* alloc_test.c -- memory runs out at every place in turn, once for good and
 * once for a moment. The result is a status, never a crash, a leak or a hang.
 */
#include "alloc_rig.h"
#include "rig.h"

#include <kofn/peer.h>
#include <stdio.h>
#include <unistd.h>

/* ---- rounds -------------------------------------------------------------- */

static const kofn_fault_event events[] = {
    {1, 0.2, KOFN_FAULT_EVENT_JOIN, 0, 0},
    {2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
    {3, 0.5, KOFN_FAULT_EVENT_JOIN, 0, 0},
    {1, 0.3, KOFN_FAULT_EVENT_LEAVE, 1, 0},
    {1, 0.4, KOFN_FAULT_EVENT_JOIN, 0, 0},
    {2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
    {2, 0.5, KOFN_FAULT_EVENT_LEAVE, 0, 0},
    {3, 0.2, KOFN_FAULT_EVENT_JOIN, 0, 0},
};

typedef struct setting {
    rig_kind kind;
    rig r;      /* the inputs; no plan, no job */
    rig beside; /* inputs of another product of a stream */
    const char *journal, *metrics, *trace;
    bool losses; /* losses that the scheme tolerates */
} setting;

/* Returns an operation that the scheme serves. */
static kofn_op op_of(const rig_kind *k)
{
    return kofn_scheme_find(k->spec)->ops == KOFN_STREAM ? KOFN_STREAM
           : k->p == 1                                   ? KOFN_MATVEC
                                                         : KOFN_MATMUL;
}

static double furthest(const rig *r)
{
    double error = 0;

    for (size_t i = 0; i < r->y.rows * r->y.cols; i++) {
        double y = r->y.dtype == KOFN_F64 ? ((double *)r->y.data)[i]
                                          : (double)((float *)r->y.data)[i];

        error = fmax(error, fabs(y - r->want[i]));
    }
    return error;
}

/* Computes three products, two of them at once. */
static kofn_status products(setting *s, kofn_job *job)
{
    double room = s->kind.dtype == KOFN_F64 ? 1e-9 : 1e-3;
    rig *one[] = {&s->beside, &s->r, &s->r};
    uint32_t number[3];
    kofn_status st = KOFN_OK;

    for (int i = 0; i < 3 && !st; i++) {
        st = kofn_put_pair(job, &one[i]->A, &one[i]->x, &one[i]->y, &number[i]);
        if (i > 0 && !st)
            st = kofn_take(job, number[i], KOFN_NEVER, NULL);
        if (i > 0 && !st)
            assert_at_most(furthest(one[i]), room);
    }
    if (!st)
        st = kofn_take(job, number[0], KOFN_NEVER, NULL);
    if (!st)
        assert_at_most(furthest(one[0]), room);
    return st;
}

static kofn_status rounds(setting *s, kofn_job *job)
{
    kofn_status st = s->kind.sparse
                         ? kofn_place_at(job, 0, KOFN_SPARSE(&s->r.sparse))
                         : kofn_place(job, &s->r.A);

    for (int round = 0; round < 3 && !st; round++) {
        double room = s->kind.dtype == KOFN_F64 ? 1e-12 : 1e-5, error = 0;

        st = kofn_round(job, &s->r.x, &s->r.y, NULL);
        if (!st)
            error = furthest(&s->r);
        assert_at_most(error, 20 * room);
    }
    return st;
}

static kofn_status run_job(const void *ud)
{
    setting *s = (setting *)(uintptr_t)ud;
    const rig_kind *k = &s->kind;
    kofn_problem pb =
        KOFN_PROBLEM_INIT(op_of(k), k->m, k->n, k->p, k->dtype, k->sparse);
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job = NULL;
    kofn_status st = kofn_plan_new(&plan, &pb, k->spec, k->workers, 7);

    o.journal = s->journal;
    o.metrics = s->metrics;
    o.trace = s->trace;
    o.events = s->losses ? events + 3 : events;
    o.event_count = s->losses ? 5 : 3;
    o.pieces = 3;
    if (!st)
        st = k->sim ? kofn_port_sim(&port, k->workers, k->faults)
                    : kofn_port_threads(&port, k->workers, k->faults);
    if (!st)
        st = kofn_open(&job, plan, port, &o);
    if (!st)
        st = (pb.op == KOFN_STREAM ? products : rounds)(s, job);
    kofn_close(job);
    kofn_plan_free(plan);
    return st;
}

/* Finds whether the scheme tolerates losses. Returns false if the scheme does
 * not support such a matrix. */
static bool can_lose(const rig_kind *k, bool *losses)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(op_of(k), k->m, k->n, k->p, k->dtype, k->sparse);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;
    kofn_status st = kofn_plan_new(&plan, &pb, k->spec, k->workers, 7);

    if (st == KOFN_UNSUITED &&
        (k->sparse || !(kofn_scheme_find(k->spec)->ops & pb.op)))
        return false;
    assert_ok(st);
    assert_ok(kofn_plan_describe(plan, false, &info));
    kofn_plan_free(plan);
    *losses = pb.op == KOFN_STREAM || info.workers > info.threshold;
    return true;
}

static void run_jobs(bool sim, size_t step)
{
    static const kofn_faults faults =
        KOFN_FAULTS_INIT(.spread = 0.3, .latency = 1e-6);
    const kofn_scheme *scheme;
    char path[] = "alloc_test.XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; (scheme = kofn_scheme_at(i)); i++)
        for (int type = 0; type < 3; type++) {
            setting s = {.kind = {.workers = 5,
                                  .m = 50,
                                  .n = 11,
                                  .p = 2,
                                  .dtype = type == 1 ? KOFN_F32 : KOFN_F64,
                                  .sparse = type == 2,
                                  .sim = sim,
                                  .faults = sim ? &faults : NULL}};

            kofn_set_alloc(NULL, NULL);
            rig_inputs(&s.r, &s.kind);
            s.beside = rig_beside(&s.r, 5);
            s.kind.spec = scheme->name;
            s.journal = sim ? path : NULL;
            /* A worker without memory is lost, and may be needed. */
            if (can_lose(&s.kind, &s.losses))
                both_ways(run_job, &s, KOFN_TOOFEW,
                          type == 0 ? step : 3 * step);
            rig_put_away(&s.beside);
            rig_down(&s.r);
        }
    unlink(path);
}

/* Observers may miss something. The rounds miss nothing. */
static void observers(void **state)
{
    setting s = {.kind = {.workers = 5,
                          .m = 50,
                          .n = 11,
                          .p = 2,
                          .dtype = KOFN_F64,
                          .sim = true,
                          .spec = "elastic"},
                 .losses = true};
    char metrics[] = "alloc_test.XXXXXX", trace[] = "alloc_test.XXXXXX";
    int fd = mkstemp(metrics), fd2 = mkstemp(trace);

    (void)state;
    assert_true(fd >= 0 && fd2 >= 0);
    close(fd);
    close(fd2);
    s.metrics = metrics;
    s.trace = trace;
    kofn_set_alloc(NULL, NULL);
    rig_inputs(&s.r, &s.kind);
    both_ways(run_job, &s, KOFN_TOOFEW, 3 * SLOWED);
    rig_down(&s.r);
    unlink(metrics);
    unlink(trace);
}

static void on_the_simulator(void **state)
{
    (void)state;
    run_jobs(true, test_scale() >= 1 ? SLOWED == 1 ? 1 : 5 : 20);
}

static void on_threads(void **state)
{
    (void)state;
    run_jobs(false, test_scale() >= 1 ? SLOWED == 1 ? 2 : 15 : 60);
}

/* ---- other functions ----------------------------------------------------- */

static kofn_status describe(const void *ud)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 100, 10, 1, KOFN_F64, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;
    kofn_status st = kofn_plan_new(&plan, &pb, ud, 8, 7);

    if (!st)
        st = kofn_plan_describe(plan, true, &info);
    kofn_plan_free(plan);
    return st;
}

static void describing_a_plan(void **state)
{
    static const char *const specs[] = {"elastic:k=5", "mds:k=5,basis=haar",
                                        "mds:k=5,basis=gauss",
                                        "elastic:k=4,groups=2"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        both_ways(describe, specs[i], KOFN_OK, i ? 7 : 3);
}

static kofn_status parse_events(const void *ud)
{
    const char *text = ud;
    kofn_fault_event *list;
    size_t count;
    kofn_status st = kofn_events_parse(&list, &count, text, strlen(text), 4, 9);

    if (st)
        assert_null(list);
    kofn_free(list);
    return st;
}

static void reading_events(void **state)
{
    char text[800] = "";

    (void)state;
    for (int i = 0; i < 40; i++)
        strcat(text, i % 2 ? "2.5 join\n" : "1 slow 2 3\n");
    both_ways(parse_events, text, KOFN_OK, 1);
}

static kofn_status rank(const void *ud)
{
    const kofn_sparse *graph = ud;
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, graph->rows, graph->cols,
                                        1, KOFN_F64, true);
    double values[64] = {0};
    kofn_matrix v = {values, graph->rows, 1, 1, KOFN_F64};
    kofn_plan *plan = NULL;
    kofn_job *job = NULL;
    kofn_port *port;
    kofn_sparse *M;
    uint8_t *dangling;
    kofn_status st = kofn_pagerank_matrix(&M, &dangling, graph);

    if (!st)
        st = kofn_pagerank_peers(NULL, M, dangling, &v, NULL, NULL);
    if (!st)
        st = kofn_plan_new(&plan, &pb, "elastic:k=2", 3, 1);
    if (!st)
        st = kofn_port_sim(&port, 3, NULL);
    if (!st)
        st = kofn_open(&job, plan, port, NULL);
    if (!st)
        st = kofn_place_at(job, 0, KOFN_SPARSE(M));
    if (!st)
        st = kofn_pagerank(job, dangling, &v, NULL, NULL);
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_free(M);
    kofn_free(dangling);
    return st;
}

static void ranking_pages(void **state)
{
    kofn_sparse graph;

    (void)state;
    kofn_set_alloc(NULL, NULL);
    graph = random_sparse(40, 40, 3, 9);
    for (size_t e = 0; e < graph.ptr[40]; e++)
        ((double *)(uintptr_t)graph.val)[e] = 1;
    both_ways(rank, &graph, KOFN_TOOFEW, SLOWED == 1 ? 1 : 5);
    sparse_free(&graph);
}

TEST_FILE(alloc_test)
{
    const struct CMUnitTest tests[] = {
        TEST(describing_a_plan,
             "alloc: describing a plan fails and leaks nothing"),
        TEST(reading_events, "alloc: reading events fails and leaks nothing"),
        TEST(ranking_pages, "alloc: PageRank is right or fails"),
        TEST(observers,
             "alloc: rounds with metrics and a trace are right or fail"),
        TEST(on_the_simulator,
             "alloc: jobs are right or fail (each scheme, simulator)"),
        TEST(on_threads,
             "alloc: jobs are right or fail (each scheme, threads)"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
