/* complex.c -- a product of complex matrices, as a product of real ones. */
#include "example.h"

#include <complex.h>
#include <kofn/io.h>

#define M 30
#define N 8
#define P 3

static double complex A[M * N], X[N * P], Y[M * P];

/* Returns a complex matrix as the library sees it. */
static kofn_matrix pairs(double complex *data, size_t rows, size_t cols)
{
    return matrix((double *)data, rows, 2 * cols);
}

static void multiply(const kofn_matrix *a, const kofn_matrix *x, kofn_matrix *y)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, M, 2 * N, 2 * P, KOFN_F64, false);
    double room[2 * N * 2 * P];
    kofn_matrix in = matrix(room, 2 * N, 2 * P);
    kofn_plan *plan;
    kofn_job *job;

    must(kofn_complex_input(x, true, &in));
    must(kofn_plan_new(&plan, &pb, "elastic:k=2", 4, 1));
    job = open_job(plan, 4, NULL);
    must(kofn_place(job, a));
    must(kofn_round(job, &in, y, NULL));
    kofn_close(job);
    kofn_plan_free(plan);
}

/* Writes a matrix, and reads the same numbers. */
static void write_and_read(const kofn_matrix *y)
{
    kofn_file *f;

    must(kofn_write_complex("complex.npy", y, 2));
    must(kofn_file_open(&f, "complex.npy", KOFN_FILE_READ | KOFN_FILE_COMPLEX));
    expect(f->is_complex && f->matrix.dense->cols == 2 * P &&
               ((double complex *)f->matrix.dense->data)[4] == Y[4],
           "the complex numbers in the .npy");
    kofn_file_free(f);
    remove("complex.npy");
}

int main(void)
{
    kofn_matrix a = pairs(A, M, N), x = pairs(X, N, P), y = pairs(Y, M, P);

    fill(a.data, 2 * M * N, 1);
    fill(x.data, 2 * N * P, 2);
    multiply(&a, &x, &y);
    for (int i = 0; i < M * P; i++) {
        double complex sum = 0;

        for (int k = 0; k < N; k++)
            sum += A[i / P * N + k] * X[k * P + i % P];
        expect(cabs(sum - Y[i]) < 1e-9, "A X");
    }
    write_and_read(&y);
    return 0;
}
