/* mesh.c -- iterations without a coordinator, on four nodes that are threads.
 */
#include "example.h"

#include <kofn/io.h>
#include <kofn/peer.h>

#define N 40
#define NODES 4

static double a[N * N];
static kofn_plan *plan, *sparse_plan;
static kofn_sparse *M;
static uint8_t *dangling;

typedef struct node {
    double v[N], rank[N], power[N];
} node;

/* Waits at most a minute for the others, and serves slow ones for 20 seconds.
 */
static kofn_peer_options options(void)
{
    kofn_peer_options opt = KOFN_PEER_OPTIONS_INIT;

    opt.nodes = NODES;
    opt.give_up = 60 * KOFN_SECOND;
    opt.linger = 20 * KOFN_SECOND;
    return opt;
}

/* Finds the dominant eigenvector. */
static void eigenvector(void *ud, kofn_transport *t)
{
    kofn_iterate_options it = KOFN_ITERATE_OPTIONS_INIT;
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_matrix A = matrix(a, N, N), v = matrix(((node *)ud)->v, N, 1);
    kofn_peering at = KOFN_PEERING_INIT;
    kofn_peer_options opt = options();

    at.transport = t;
    at.plan = plan;
    at.options = &opt;
    for (int i = 0; i < N; i++)
        ((double *)v.data)[i] = 1 + i;
    it.tol = 1e-12;
    must(kofn_power_peers(&at, KOFN_DENSE(&A), &v, &it, &res));
    expect(fabs(res.eigenvalue - (N + 1)) < 1e-9, "the eigenvalue is N + 1");
}

/* Ranks the nodes of a graph. */
static void ranks(void *ud, kofn_transport *t)
{
    kofn_matrix v = matrix(((node *)ud)->rank, N, 1);
    kofn_peering at = KOFN_PEERING_INIT;
    kofn_peer_options opt = options();
    double sum = 0;

    at.transport = t;
    at.plan = sparse_plan;
    at.options = &opt;
    must(kofn_pagerank_peers(&at, M, dangling, &v, NULL, NULL));
    for (int i = 0; i < N; i++)
        sum += ((double *)v.data)[i];
    expect(fabs(sum - 1) < 1e-9, "the sum of the ranks");
}

/* Computes iterate t: the product divided by N + 1; the third is the last. */
static kofn_status divide(void *ud, uint64_t t, kofn_matrix *product,
                          kofn_matrix *v, double scalar[KOFN_SCALARS],
                          bool *final)
{
    const double *from = product->data;
    double *to = v->data;

    (void)ud;
    for (int i = 0; i < N; i++)
        to[i] = from[i] / (N + 1);
    scalar[0] = (double)t;
    *final = t == 3;
    return KOFN_OK;
}

/* Runs a program of your own: v <- A v / (N + 1), three times. */
static void own_program(void *ud, kofn_transport *t)
{
    const kofn_mesh_product product = {.plan = plan};
    kofn_matrix A = matrix(a, N, N), v = matrix(((node *)ud)->power, N, 1);
    const kofn_operand operand = KOFN_DENSE(&A);
    kofn_program program = KOFN_PROGRAM_INIT;
    kofn_peer_options opt = options();
    kofn_node_view end = KOFN_NODE_VIEW_INIT;
    double scalar[KOFN_SCALARS];

    program.product = &product;
    program.products = 1;
    program.operand = &operand;
    program.operands = 1;
    program.output = divide;
    for (int i = 0; i < N; i++)
        ((double *)v.data)[i] = 1; /* the eigenvector of N + 1 */
    must(kofn_peer_run(t, &program, &opt, &v, scalar, &end));
    expect(scalar[0] == 3 && end.at.step == 3, "three iterates");
    expect(fabs(((double *)v.data)[7] - 1) < 1e-9, "the eigenvector stays");
}

/* Runs all nodes as threads of this process, one of them on this thread. */
static void on_threads(void (*run)(void *ud, kofn_transport *t))
{
    static node nodes[NODES];
    kofn_transport *own;
    kofn_mesh *mesh;

    must(kofn_mesh_new(&mesh));
    for (int i = 1; i < NODES; i++)
        must(kofn_mesh_start(mesh, run, &nodes[i]));
    must(kofn_mesh_join(mesh, &own));
    run(&nodes[0], own);
    own->close(own, KOFN_SECOND);
    kofn_mesh_free(mesh);
}

/* Decides how to decode, and whether errors can be found. */
static void choose(void)
{
    expect(kofn_decoding_for(plan, NODES, 1, 1e-12, 1e-12) ==
               KOFN_DECODE_DISTRIBUTED,
           "multiplying costs more than sending here");
    must(kofn_nodes_find(plan, KOFN_ERRORS_PROBABILISTIC, NODES));
    expect(kofn_nodes_find(plan, KOFN_ERRORS_DETECT, 2) == KOFN_TOOFEW,
           "two pieces only just decode");
}

int main(void)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, N, N, 1, KOFN_F64, false);
    kofn_sparse *graph;

    for (int i = 0; i < N * N; i++)
        a[i] = i / N == i % N ? 2 : 1;
    must(kofn_plan_new(&plan, &pb, "mds:k=2", NODES, 1));
    pb.sparse = true;
    must(kofn_plan_new(&sparse_plan, &pb, "mds:k=2", NODES, 1));
    must(kofn_rmat(&graph, N, 200, 1));
    must(kofn_pagerank_matrix(&M, &dangling, graph));
    choose();
    on_threads(eigenvector);
    on_threads(ranks);
    on_threads(own_program);
    kofn_free(dangling);
    kofn_free(M);
    kofn_free(graph);
    kofn_plan_free(sparse_plan);
    kofn_plan_free(plan);
    return 0;
}
