/* iterate.c -- the dominant eigenvector of a matrix, and PageRank of a graph.
 */
#include "example.h"

#include <kofn/io.h>

#define N 50

static double v[N];

/* Finds the largest eigenvalue of the matrix of ones plus the identity. */
static void eigenvector(void)
{
    static double a[N * N];
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, N, N, 1, KOFN_F64, false);
    kofn_iterate_options opt = KOFN_ITERATE_OPTIONS_INIT;
    kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
    kofn_matrix A = matrix(a, N, N), x = matrix(v, N, 1);
    kofn_plan *plan;
    kofn_job *job;

    for (int i = 0; i < N * N; i++)
        a[i] = i / N == i % N ? 2 : 1, v[i % N] = 1 + i % N;
    must(kofn_plan_new(&plan, &pb, "mds:k=3", 5, 1));
    job = open_job(plan, 5, NULL);
    must(kofn_place(job, &A));
    opt.tol = 1e-12;
    must(kofn_power(job, &x, &opt, &res));
    expect(res.converged && fabs(res.eigenvalue - (N + 1)) < 1e-9,
           "the eigenvalue is N + 1");
    kofn_close(job);
    kofn_plan_free(plan);
}

/* Ranks the nodes of a random graph; the ranks sum to 1. */
static void ranks(void)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, N, N, 1, KOFN_F64, true);
    kofn_matrix x = matrix(v, N, 1);
    kofn_sparse *graph, *M;
    uint8_t *dangling;
    kofn_plan *plan;
    kofn_job *job;
    double sum = 0;

    must(kofn_rmat(&graph, N, 300, 1));
    must(kofn_pagerank_matrix(&M, &dangling, graph));
    must(kofn_plan_new(&plan, &pb, "elastic:k=2", 4, 1));
    job = open_job(plan, 4, NULL);
    must(kofn_place_at(job, 0, KOFN_SPARSE(M)));
    must(kofn_pagerank(job, dangling, &x, NULL, NULL));
    for (int i = 0; i < N; i++)
        sum += v[i];
    expect(fabs(sum - 1) < 1e-9, "the sum of the ranks");
    kofn_close(job);
    kofn_plan_free(plan);
    kofn_free(dangling);
    kofn_free(M);
    kofn_free(graph);
}

int main(void)
{
    eigenvector();
    ranks();
    return 0;
}
