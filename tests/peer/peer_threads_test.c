/* peer_threads_test.c -- iterations without a master, on threads in real time.
 */
#include "base/lent.h"
#include "mesh_sim.h"

#include <pthread.h>
#include <time.h>

enum { THREADS = 6 };

typedef struct thread_node {
    pthread_t thread;
    kofn_mesh *mesh;
    const kofn_plan *plan;
    const kofn_matrix *A;
    kofn_matrix v;
    uint32_t seat;
    kofn_decoding decoding;
    size_t confirm;
    unsigned sleep_at, die_at; /* iterations; 0: never */
    bool slept;
    kofn_transport *t;
    kofn_status status;
    kofn_iterate_result res;
    kofn_node_view end;
} thread_node;

static kofn_status send_nothing(kofn_transport *t, kofn_peer peer,
                                const void *head, size_t head_bytes,
                                const kofn_lent *body, bool urgent)
{
    (void)t, (void)peer, (void)head, (void)head_bytes, (void)body;
    (void)urgent;
    kf_give_back(body);
    return KOFN_OK;
}

/* Sleeps for longer than the failure timeout, or ends without a note. */
static int watch_node(void *ud, const kofn_node_view *view, const double *x)
{
    thread_node *l = ud;

    (void)x;
    if (l->sleep_at && view->at.step >= l->sleep_at && !l->slept) {
        struct timespec nap = {0, 400000000};

        l->slept = true;
        nanosleep(&nap, NULL);
    }
    if (l->die_at && view->at.step >= l->die_at) {
        l->t->send = send_nothing;
        return 1;
    }
    return 0;
}

static void *run_node(void *ud)
{
    thread_node *l = ud;
    kofn_iterate_options o = {
        .size = sizeof o, .tol = 1e-12, .max_iterations = 400};
    kofn_peer_options p = {.size = sizeof p,
                           .nodes = THREADS,
                           .seat = l->seat,
                           .decoding = l->decoding,
                           .confirm = l->confirm,
                           .beat = 10 * MS,
                           .linger = 20 * KOFN_SECOND,
                           .give_up = 60 * KOFN_SECOND,
                           .watch = watch_node,
                           .watch_ud = l};
    kofn_peering at = {sizeof at, NULL, l->plan, &p, &l->end};

    l->status = kofn_mesh_join(l->mesh, &l->t);
    if (l->status)
        return NULL;
    at.transport = l->t;
    l->end = (kofn_node_view)KOFN_NODE_VIEW_INIT;
    l->res = (kofn_iterate_result)KOFN_ITERATE_RESULT_INIT;
    l->status = kofn_power_peers(&at, KOFN_DENSE(l->A), &l->v, &o, &l->res);
    l->t->close(l->t, KOFN_SECOND);
    return NULL;
}

/* The largest eigenvalue is simple: the others are at most 0.9 of it. The
 * plain iteration gives the expected vector. */
static void on_threads(void **state)
{
    enum { ROWS = 60 };
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, ROWS, 1, KOFN_F64, false);

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        bool d = kind % 2, trusting = kind / 2;
        kofn_matrix A = random_matrix(ROWS, ROWS, KOFN_F64, 8), plain;
        kofn_matrix start = random_matrix(ROWS, 1, KOFN_F64, 9);
        kofn_iterate_options o = {
            .size = sizeof o, .tol = 1e-12, .max_iterations = 400};
        kofn_iterate_result want = KOFN_ITERATE_RESULT_INIT;
        thread_node l[THREADS + 1];
        kofn_plan *plan;
        kofn_mesh *mesh;
        double *a = A.data;

        for (size_t i = 0; i < ROWS; i++) {
            for (size_t j = 0; j < i; j++)
                a[i * ROWS + j] = a[j * ROWS + i] *= 0.01;
            a[i * ROWS + i] = i == 7 ? 2 : 1.8 * (double)i / ROWS;
        }
        plain = start;
        plain.data = numbers(ROWS, 8);
        memcpy(plain.data, start.data, ROWS * 8);
        assert_ok(kofn_power_peers(NULL, KOFN_DENSE(&A), &plain, &o, &want));
        assert_true(want.converged);
        assert_ok(kofn_plan_new(&plan, &pb, "mds:k=4", THREADS, 3));
        assert_ok(kofn_mesh_new(&mesh));
        for (size_t i = 0; i <= THREADS; i++) {
            l[i] =
                (thread_node){.mesh = mesh,
                              .plan = plan,
                              .A = &A,
                              .seat = i < THREADS ? (uint32_t)i : KOFN_NO_SEAT,
                              .decoding = d ? KOFN_DECODE_DISTRIBUTED
                                            : KOFN_DECODE_REPLICATED,
                              .confirm = trusting,
                              .sleep_at = i == 1 ? 9 : 0,
                              .die_at = i == 0 ? 5 : 0,
                              .v = start};
            l[i].v.data = numbers(ROWS, 8);
            memcpy(l[i].v.data, start.data, ROWS * 8);
            if (i == THREADS) { /* the last node joins late */
                struct timespec nap = {0, 30000000};

                nanosleep(&nap, NULL);
            }
            assert_int_equal(
                pthread_create(&l[i].thread, NULL, run_node, &l[i]), 0);
        }
        for (size_t i = 0; i <= THREADS; i++)
            pthread_join(l[i].thread, NULL);
        for (size_t i = 0; i <= THREADS; i++) {
            double sign, error = 0;
            const double *x = l[i].v.data, *y = plain.data;

            if (l[i].die_at)
                continue;
            if (l[i].status)
                fail_msg("node %zu: %s", i, kofn_strerror(l[i].status));
            sign = x[7] * y[7] < 0 ? -1 : 1;
            for (size_t r = 0; r < ROWS; r++)
                error = fmax(error, fabs(x[r] - sign * y[r]));
            assert_at_most(error, 1e-11);
            assert_true(l[i].end.final && l[i].res.converged);
            if (trusting) /* else some may compute an iterate alone */
                assert_memory_equal(x, l[2].v.data, ROWS * 8);
            assert_int_equal(l[i].res.iterations, want.iterations);
            assert_at_most(fabs(l[i].res.eigenvalue - want.eigenvalue), 1e-11);
        }
        for (size_t i = 0; i <= THREADS; i++)
            kf_free(l[i].v.data);
        kofn_mesh_free(mesh);
        kofn_plan_free(plan);
        kf_free(A.data);
        kf_free(start.data);
        kf_free(plain.data);
    }
}

/* Receives all packets that have arrived. Returns the status of the last wait.
 */
static kofn_status drain(kofn_transport *t, size_t *gone)
{
    kofn_packet p;
    kofn_status st;

    while (!(st = t->wait(t, 0, &p)))
        *gone += p.what == KOFN_WENT;
    return st;
}

/* An end that most others have forgotten fails when the rest have left. An end
 * that one of many has forgotten waits on. */
static void forgotten(void **state)
{
    kofn_transport *t[5];
    size_t gone = 0;
    kofn_mesh *mesh;

    (void)state;
    assert_ok(kofn_mesh_new(&mesh));
    for (size_t i = 0; i < 5; i++)
        assert_ok(kofn_mesh_join(mesh, &t[i]));
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(drain(t[0], &gone), KOFN_AGAIN);
        t[i]->forget(t[i], 0);
        t[i]->forget(t[i], 0);
    }
    assert_int_equal(drain(t[0], &gone), KOFN_AGAIN);
    assert_int_equal(gone, 3);
    t[2]->forget(t[2], 4);
    for (size_t i = 1; i < 4; i++)
        t[i]->close(t[i], 0);
    assert_int_equal(drain(t[4], &gone), KOFN_AGAIN);
    t[4]->close(t[4], 0);
    assert_int_equal(drain(t[0], &gone), KOFN_TRANSPORT);
    assert_non_null(strstr(kofn_errmsg(), "node 0"));
    kofn_mesh_free(mesh);
}

TEST_FILE(peer_threads_test)
{
    const struct CMUnitTest tests[] = {
        TEST(forgotten, "mesh: a node that most others have forgotten fails"),
        TEST(on_threads,
             "mesh: threads survive a death, a sleep and a late join"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
