/* pdgemm_bench.c -- ScaLAPACK's product of two N x N matrices on all ranks,
 * the reference of away_bench.
 *
 * Prints the seconds of the second product; the first warms up. Matrices lie
 * in blocks of 128 over a square of ranks, as ScaLAPACK's guide advises.
 * Bringing them there and back does not count.
 *
 *     mpirun -n 4 pdgemm_bench N
 */
#include "../bench.h"

#include <math.h>

void Cblacs_pinfo(int *rank, int *ranks);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int cols);
void Cblacs_gridinfo(int context, int *rows, int *cols, int *row, int *col);
void Cblacs_barrier(int context, const char *scope);
void Cblacs_exit(int go_on);
int numroc_(const int *n, const int *block, const int *at, const int *from,
            const int *procs);
void descinit_(int *desc, const int *m, const int *n, const int *mb,
               const int *nb, const int *row, const int *col,
               const int *context, const int *ld, int *info);
void pdgemm_(const char *transa, const char *transb, const int *m, const int *n,
             const int *k, const double *alpha, const double *a, const int *ia,
             const int *ja, const int *desca, const double *b, const int *ib,
             const int *jb, const int *descb, const double *beta, double *c,
             const int *ic, const int *jc, const int *descc);

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 1024, block = 128, zero = 0,
              one = 1;
    const double alpha = 1, beta = 0;
    int rank, ranks, context, side, rows, cols, row, col, info, desc[9];
    double *part[3], t = 0;
    size_t count;

    Cblacs_pinfo(&rank, &ranks);
    side = (int)sqrt((double)ranks);
    if (side * side != ranks || n < 1) {
        fprintf(stderr, "pdgemm_bench: %d ranks are no square, or N is not\n",
                ranks);
        return 1;
    }
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", side, side);
    Cblacs_gridinfo(context, &rows, &cols, &row, &col);
    rows = numroc_(&n, &block, &row, &zero, &side);
    cols = numroc_(&n, &block, &col, &zero, &side);
    descinit_(desc, &n, &n, &block, &block, &zero, &zero, &context, &rows,
              &info);
    count = (size_t)rows * (size_t)cols;
    for (int k = 0; k < 3; k++) {
        part[k] = malloc(count * sizeof(double));
        if (!part[k] || info)
            return 1;
        for (size_t i = 0; i < count; i++)
            part[k][i] = (double)(i * 7919 % 1000) / 1000 - 0.5;
    }
    for (int k = 0; k < 2; k++) {
        Cblacs_barrier(context, "All");
        t = now();
        pdgemm_("N", "N", &n, &n, &n, &alpha, part[0], &one, &one, desc,
                part[1], &one, &one, desc, &beta, part[2], &one, &one, desc);
        Cblacs_barrier(context, "All");
        t = now() - t;
    }
    if (rank == 0)
        printf("%.6f\n", t);
    for (int k = 0; k < 3; k++)
        free(part[k]);
    Cblacs_exit(0);
    return 0;
}
