/* operands.c -- a job with two operands, which change in the workers' blocks,
 * and one with an operand that is read row by row. */
#include "example.h"

#define N 24

static double A[N * N], B[N * N], x[N], y[N], read[N * N];

/* Opens a job with the operands A and B. */
static kofn_job *open_both(const kofn_plan *plan)
{
    kofn_matrix a = matrix(A, N, N), b = matrix(B, N, N);
    const kofn_plan *both[2] = {plan, plan};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_port *port;
    kofn_job *job;

    opt.errors = KOFN_ERRORS_PROBABILISTIC;
    must(kofn_port_sim(&port, 6, NULL));
    must(kofn_open_all(&job, both, 2, port, &opt));
    must(kofn_place_at(job, 0, KOFN_DENSE(&a)));
    must(kofn_place_at(job, 1, KOFN_DENSE(&b)));
    return job;
}

/* Computes y = x' B as a left product with operand 1. */
static void left_product(kofn_job *job)
{
    kofn_matrix b = matrix(B, N, N), row = matrix(x, 1, N);
    kofn_matrix out = matrix(y, 1, N);
    uint32_t number;

    must(kofn_put_at(job, 1, true, &row, &out, &number));
    must(kofn_take(job, number, KOFN_NEVER, NULL));
    expect(is_product(&row, &b, &out), "x' B");
}

/* Subtracts half of u' v from A, and reads A from the blocks. */
static void change(kofn_job *job)
{
    kofn_change half = KOFN_CHANGE_INIT;
    kofn_matrix u = matrix(x, 1, N), v = matrix(y, 1, N);
    kofn_matrix now = matrix(read, N, N);

    must(kofn_change_sgd(&half, 0.5, 0, 0, false));
    must(kofn_update(job, 0, &half, &u, &v));
    must(kofn_fetch(job, 0, 0, &now, NULL));
    for (int i = 0; i < N * N; i++)
        expect(fabs(read[i] - (A[i] - x[i / N] * y[i % N] / 2)) < 1e-9,
               "the changed A");
}

/* Compares the blocks of all workers. */
static void compare(kofn_job *job)
{
    kofn_report rep = KOFN_REPORT_INIT;

    must(kofn_scrub(job, &rep));
    expect(rep.rebuilding == 0 && rep.drift < 1e-9, "all blocks agree");
}

/* Writes rows of A, which could be on other machines. */
static kofn_status read_rows(void *ud, size_t row, const kofn_matrix *out)
{
    double *to = out ? out->data : NULL; /* NULL: it only asks to go on */

    (void)ud;
    for (size_t i = 0; out && i < out->rows; i++)
        for (size_t j = 0; j < N; j++)
            to[i * out->ld + j] = A[(row + i) * N + j];
    return KOFN_OK;
}

/* Computes y = A x on a job that reads A row by row. */
static void read_by_rows(const kofn_plan *plan)
{
    kofn_matrix a = matrix(A, N, N), in = matrix(x, N, 1);
    kofn_matrix out = matrix(y, N, 1);
    kofn_source source = KOFN_SOURCE_INIT;
    kofn_port *port;
    kofn_job *job;

    source.read = read_rows;
    source.panel = 10 * N * sizeof(double);
    must(kofn_port_threads(&port, 6, NULL));
    must(kofn_open(&job, plan, port, NULL));
    must(kofn_place_from(job, 0, &source));
    must(kofn_round(job, &in, &out, NULL));
    expect(is_product(&a, &in, &out), "A x");
    kofn_close(job);
}

int main(void)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, N, N, 1, KOFN_F64, false);
    kofn_plan *plan;
    kofn_job *job;

    fill(A, N * N, 1);
    fill(B, N * N, 2);
    fill(x, N, 3);
    must(kofn_plan_new(&plan, &pb, "gpd:m=2,n=1,p=1", 6, 1));
    must(kofn_plan_serve_left(plan, 1));
    job = open_both(plan);
    left_product(job);
    change(job);
    compare(job);
    kofn_close(job);
    read_by_rows(plan);
    kofn_plan_free(plan);
    return 0;
}
