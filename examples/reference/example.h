/* example.h -- shared by the examples of the reference.  Each checks its
 * results against a plain computation, and ends with a message if one is wrong.
 *
 *     cc plan.c $(pkg-config --cflags --libs kofn) -lm -o plan && ./plan
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <kofn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a function failed. */
static inline void must(kofn_status st)
{
    if (st >= 0)
        return;
    fprintf(stderr, "%s: %s\n", kofn_strerror(st), kofn_errmsg());
    exit(1);
}

/* Ends the program if a result is wrong. */
static inline void expect(bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}

/* Returns a contiguous float64 matrix of these numbers. */
static inline kofn_matrix matrix(double *data, size_t rows, size_t cols)
{
    return (kofn_matrix){data, rows, cols, cols, KOFN_F64};
}

/* Fills numbers between -1 and 1. */
static inline void fill(double *x, size_t count, double seed)
{
    for (size_t i = 0; i < count; i++)
        x[i] = sin(0.7 * (double)i * (double)i + seed);
}

/* True if C is A B, computed with three loops. */
static inline bool is_product(const kofn_matrix *A, const kofn_matrix *B,
                              const kofn_matrix *C)
{
    const double *a = A->data, *b = B->data, *c = C->data;

    for (size_t i = 0; i < A->rows; i++)
        for (size_t j = 0; j < B->cols; j++) {
            double sum = 0;

            for (size_t k = 0; k < A->cols; k++)
                sum += a[i * A->ld + k] * b[k * B->ld + j];
            if (!(fabs(sum - c[i * C->ld + j]) < 1e-9))
                return false;
        }
    return true;
}

/* Opens a job on workers of the simulator. */
static inline kofn_job *open_job(const kofn_plan *plan, size_t workers,
                                 const kofn_options *opt)
{
    kofn_port *port;
    kofn_job *job;

    must(kofn_port_sim(&port, workers, NULL));
    must(kofn_open(&job, plan, port, opt));
    return job;
}

#endif
