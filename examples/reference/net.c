/* net.c -- a coordinator and a worker with keys, connected by TCP.  Here the
 * worker is a thread; elsewhere it is another program. */
#include "example.h"

#include <kofn/mpi.h>
#include <kofn/net.h>

#include <pthread.h>

#define ROWS 40
#define COLS 5

static double X[ROWS * COLS], w[COLS], y[ROWS];
static const char *keys = "example-keys";

/* Runs a worker until the coordinator dismisses it. */
static void *work(void *address)
{
    kofn_net_options net = KOFN_NET_OPTIONS_INIT;
    kofn_serve_options opt = KOFN_SERVE_OPTIONS_INIT;
    kofn_transport *t;

    net.keys = keys;
    opt.patience = 60 * KOFN_SECOND;
    must(kofn_net_connect(&t, address, &net));
    must(kofn_serve(t, &opt)); /* closes the transport */
    return NULL;
}

/* Computes a product on the workers behind this transport. */
static void coordinate(kofn_transport *t)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, ROWS, COLS, 1, KOFN_F64, false);
    kofn_matrix A = matrix(X, ROWS, COLS), in = matrix(w, COLS, 1);
    kofn_matrix out = matrix(y, ROWS, 1);
    kofn_away_options away = KOFN_AWAY_OPTIONS_INIT;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    away.workers = 2;
    must(kofn_plan_new(&plan, &pb, "mds:k=1", 2, 1));
    must(kofn_port_away(&port, t, &away));
    must(kofn_open(&job, plan, port, NULL));
    must(kofn_place(job, &A));
    must(kofn_round(job, &in, &out, NULL));
    expect(is_product(&A, &in, &out), "A x");
    kofn_close(job);
    kofn_plan_free(plan);
}

/* Opens the coordinator's end at any free port. */
static kofn_transport *listen_with_keys(char *address, size_t size)
{
    kofn_net_options net = KOFN_NET_OPTIONS_INIT;
    kofn_transport *t;

    net.keys = keys;
    must(kofn_net_listen(&t, "tcp://127.0.0.1:*", &net));
    snprintf(address, size, "%s", kofn_net_endpoint(t));
    expect(kofn_net_listed(t) == 1, "the key of the workers is admitted");
    expect(!*kofn_net_trouble(t), "nothing has failed");
    return t;
}

/* Makes keys for the coordinator and all workers; those of last time stay. */
static void make_keys(void)
{
    kofn_status st = kofn_net_keygen(keys, NULL);

    if (st != KOFN_IO)
        must(st);
}

/* Opens the end of a node of a mesh, which other nodes can reach. */
static void open_node(void)
{
    kofn_transport *t;

    must(kofn_net_mesh(&t, "tcp://127.0.0.1:*", NULL));
    printf("a node is at %s\n", kofn_net_endpoint(t));
    t->close(t, 0);
}

/* Does the same with the ranks of an MPI job, if this process is one. */
static int with_mpi(void)
{
    kofn_mpi_info info = KOFN_MPI_INFO_INIT;
    kofn_transport *t;
    kofn_status st = kofn_mpi_attach(&t, 0, NULL);

    /* A program that has started MPI gives MPI_Comm_c2f(communicator). */
    expect(st == KOFN_STATE, "attach says that this program has no MPI");
    st = kofn_mpi_open(&t, NULL, &info);
    if (st) {
        printf("without MPI: %s\n", kofn_errmsg());
        return 0;
    }
    printf("rank %u of %u under %s\n", info.rank, info.ranks, info.library);
    if (info.rank == 0)
        coordinate(t);
    else
        must(kofn_serve(t, NULL));
    return kofn_mpi_end(0);
}

static void remove_keys(void)
{
    static const char *file[] = {"coordinator.key", "coordinator.crt",
                                 "worker.key", "worker.crt"};
    char path[100];

    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", keys, file[i]);
        remove(path);
    }
    remove(keys);
}

int main(void)
{
    char address[100];
    kofn_transport *t;
    pthread_t worker[2];

    fill(X, ROWS * COLS, 1);
    fill(w, COLS, 2);
    make_keys();
    t = listen_with_keys(address, sizeof address);
    for (int i = 0; i < 2; i++)
        expect(!pthread_create(&worker[i], NULL, work, address), "a thread");
    coordinate(t);
    for (int i = 0; i < 2; i++)
        pthread_join(worker[i], NULL);
    open_node();
    remove_keys();
    return with_mpi();
}
