/* stream.c -- a stream of products, each with other matrices. */
#include "example.h"

#define PRODUCTS 4
#define M 30
#define N 8
#define P 6

static double X[PRODUCTS][M * N], Y[PRODUCTS][N * P], Z[PRODUCTS][M * P];

static void count(void *ud, const kofn_stream_round *round)
{
    unsigned *rounds = ud;

    *rounds = round->round;
}

/* Queues all products, and takes them as they are over. */
static void run(kofn_job *job)
{
    unsigned rounds = 0;

    kofn_on_round(job, count, &rounds);
    for (int i = 0; i < PRODUCTS; i++) {
        kofn_matrix x = matrix(X[i], M, N), y = matrix(Y[i], N, P);
        kofn_matrix z = matrix(Z[i], M, P);

        must(kofn_put_pair(job, &x, &y, &z, NULL));
    }
    for (int i = 0; i < PRODUCTS; i++) {
        kofn_report rep = KOFN_REPORT_INIT;

        must(kofn_take(job, 0, KOFN_NEVER, &rep));
        printf("product %u is over\n", (unsigned)rep.number);
    }
    expect(rounds >= PRODUCTS, "a round for each product");
}

int main(void)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_STREAM, M, N, P, KOFN_F64, false);
    kofn_plan *plan;
    kofn_job *job;

    fill(X[0], PRODUCTS * M * N, 1);
    fill(Y[0], PRODUCTS * N * P, 2);
    must(kofn_plan_new(&plan, &pb, "dip", 4, 1));
    job = open_job(plan, 4, NULL);
    run(job);
    kofn_close(job);
    for (int i = 0; i < PRODUCTS; i++) {
        kofn_matrix x = matrix(X[i], M, N), y = matrix(Y[i], N, P);
        kofn_matrix z = matrix(Z[i], M, P);

        expect(is_product(&x, &y, &z), "X Y");
    }
    kofn_plan_free(plan);
    return 0;
}
