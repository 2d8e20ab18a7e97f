/* product.c -- computes a product with a plan, a port and a job of its own. */
#include "run.h"

/* Refuses matrices that do not fit each other. */
static kofn_status check_shapes(const kofn_matrix *A, const kofn_matrix *B,
                                const kofn_matrix *C)
{
    TRY(kf_mat_check_matrix(A, "A"));
    TRY(kf_mat_check_matrix(B, "B"));
    TRY(kf_mat_check_matrix(C, "C"));
    if (B->rows != A->cols)
        return kf_fail(KOFN_SHAPE,
                       "A is %zu x %zu and B is %zu x %zu; B must have as "
                       "many rows as A has columns, %zu",
                       A->rows, A->cols, B->rows, B->cols, A->cols);
    if (C->rows != A->rows || C->cols != B->cols)
        return kf_fail(KOFN_SHAPE, "C is %zu x %zu; A B needs %zu x %zu",
                       C->rows, C->cols, A->rows, B->cols);
    if (B->dtype != A->dtype || C->dtype != A->dtype)
        return kf_fail(KOFN_SHAPE,
                       "A, B and C are not all of one type; A is %s, so make "
                       "the others that too",
                       A->dtype == KOFN_F64 ? "float64" : "float32");
    return KOFN_OK;
}

/* Computes C = A B with the plan, on threads that end before it returns. */
static kofn_status multiply(const kofn_plan *plan, size_t workers,
                            const kofn_matrix *A, const kofn_matrix *B,
                            kofn_matrix *C)
{
    kofn_port *port;
    kofn_job *job;
    kofn_status st;

    TRY(kofn_port_threads(&port, workers, NULL));
    TRY(kofn_open(&job, plan, port, NULL));
    st = kofn_place(job, A);
    if (!st)
        st = kofn_round(job, B, C, NULL);
    kofn_close(job);
    return st;
}

kofn_status kofn_product(const kofn_matrix *A, const kofn_matrix *B,
                         kofn_matrix *C, const char *scheme, size_t workers)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATMUL, 0, 0, 0, KOFN_F64, false);
    kofn_plan *plan;
    kofn_status st;

    TRY(check_shapes(A, B, C));
    if (!scheme)
        return kf_fail(KOFN_INVAL,
                       "the scheme is missing; give one such as elastic:k=4");
    pb.m = A->rows;
    pb.n = A->cols;
    pb.p = B->cols;
    pb.dtype = A->dtype;
    TRY(kofn_plan_new(&plan, &pb, scheme, workers, 1));
    st = multiply(plan, workers, A, B, C);
    kofn_plan_free(plan);
    return st;
}
