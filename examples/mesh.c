/* mesh.c -- power iteration without a coordinator: five equal nodes. Any three
 * can compute the next iterate, and one of them leaves during the run.
 *
 * Here the nodes are threads. On other machines each node would be a program
 * that calls kofn_power_peers in the same way, on a transport of
 * kofn_net_mesh.
 *
 *     cc mesh.c $(pkg-config --cflags --libs kofn) -lm -o mesh && ./mesh
 */
#include <kofn/peer.h>

#include <math.h>
#include <stdio.h>

#define N 200
#define NODES 5

typedef struct node {
    const kofn_plan *plan;
    const kofn_matrix *A;
    bool leaves;
    double v[N];
    kofn_iterate_result res;
    kofn_status st;
    char why[256];
} node;

static int leave_after_three(void *ud, const kofn_node_view *view,
                             const double *scalar)
{
    const node *me = ud;

    (void)scalar;
    return me->leaves && view->at.step >= 3;
}

static void live(void *ud, kofn_transport *t)
{
    node *me = ud;
    kofn_iterate_options it = KOFN_ITERATE_OPTIONS_INIT;
    kofn_peer_options peers = KOFN_PEER_OPTIONS_INIT;
    kofn_peering at = KOFN_PEERING_INIT;
    kofn_matrix v = {me->v, N, 1, 1, KOFN_F64};

    it.tol = 1e-12;
    peers.nodes = NODES;
    peers.watch = leave_after_three;
    peers.watch_ud = me;
    at.transport = t;
    at.plan = me->plan;
    at.options = &peers;
    for (int i = 0; i < N; i++)
        me->v[i] = 1 + i; /* anything but an eigenvector */
    me->res = (kofn_iterate_result)KOFN_ITERATE_RESULT_INIT;
    me->st = kofn_power_peers(&at, KOFN_DENSE(me->A), &v, &it, &me->res);
    snprintf(me->why, sizeof me->why, "%s", kofn_errmsg());
}

static int show(const node *nodes)
{
    int wrong = 0;

    for (int i = 0; i < NODES; i++)
        if (nodes[i].st == KOFN_AGAIN)
            printf("node %d left after %u iterations\n", i,
                   nodes[i].res.iterations);
        else if (nodes[i].st == KOFN_OK)
            printf("node %d: eigenvalue %.12f\n", i, nodes[i].res.eigenvalue);
        else
            wrong = printf("node %d: %s: %s\n", i, kofn_strerror(nodes[i].st),
                           nodes[i].why);
    /* The matrix is 1 1' + I: its largest eigenvalue is N + 1. */
    return wrong || !(fabs(nodes[1].res.eigenvalue - (N + 1)) < 1e-9);
}

int main(void)
{
    static double X[N * N];
    static node nodes[NODES];
    kofn_matrix A = {X, N, N, N, KOFN_F64};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, N, N, 1, KOFN_F64, false);
    kofn_plan *plan = NULL;
    kofn_mesh *mesh = NULL;
    kofn_status st;

    for (int i = 0; i < N * N; i++)
        X[i] = i / N == i % N ? 2 : 1;
    if ((st = kofn_plan_new(&plan, &pb, "mds:k=3", NODES, 1)) ||
        (st = kofn_mesh_new(&mesh)))
        fprintf(stderr, "%s: %s\n", kofn_strerror(st), kofn_errmsg());
    for (int i = 0; i < NODES && !st; i++) {
        nodes[i] = (node){.plan = plan, .A = &A, .leaves = i == 0};
        st = kofn_mesh_start(mesh, live, &nodes[i]);
    }
    kofn_mesh_free(mesh);
    kofn_plan_free(plan);
    return st || show(nodes);
}
