/* worst_row.c -- how exact a product is row by row.
 *
 * Owns its scratch within a call.  It compares with a product made without the
 * workers, so it is for --verify alone. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

/* Rows of A whose absolute values are taken at a time. */
#define BAND 64

/* The absolute values of rows [lo, lo + rows). */
static kofn_status absolute(const kofn_matrix *a, size_t lo, size_t rows,
                            kofn_matrix *out)
{
    *out = (kofn_matrix){calloc(rows * a->cols + 1, sizeof(double)), rows,
                         a->cols, a->cols, KOFN_F64};
    if (!out->data)
        return KOFN_NOMEM;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            ((double *)out->data)[i * a->cols + j] =
                fabs(cli_element(a, lo + i, j));
    return KOFN_OK;
}

static kofn_status sizes_dense(const kofn_matrix *A, const kofn_matrix *B,
                               const kofn_matrix *size)
{
    kofn_status st = KOFN_OK;

    for (size_t lo = 0; lo < A->rows && !st; lo += BAND) {
        size_t rows = A->rows - lo < BAND ? A->rows - lo : BAND;
        kofn_matrix band, into = *size;

        into.data = (double *)size->data + lo * size->ld;
        into.rows = rows;
        st = absolute(A, lo, rows, &band);
        if (!st)
            st = kofn_product_plain(&band, B, &into);
        free(band.data);
    }
    return st;
}

static kofn_status sizes_sparse(const kofn_sparse *A, const kofn_matrix *B,
                                kofn_matrix *size)
{
    double *val = calloc(A->ptr[A->rows] + 1, sizeof *val);
    kofn_sparse positive = *A;
    kofn_status st;

    for (size_t e = 0; val && e < A->ptr[A->rows]; e++)
        val[e] = fabs(A->val[e]);
    positive.val = val;
    st = val ? kofn_product_plain_sparse(&positive, B, size) : KOFN_NOMEM;
    free(val);
    return st;
}

/* |A| |B|, by which rounding in each element is measured: a small row may be wrong
 * where all of the result is right. */
static kofn_status sizes(const cli_factors *f, kofn_matrix *size)
{
    kofn_matrix B;
    kofn_status st = absolute(f->B, 0, f->B->rows, &B);

    if (!st)
        st = f->A ? sizes_dense(f->A, &B, size) : sizes_sparse(f->S, &B, size);
    free(B.data);
    return st;
}

kofn_status cli_find_worst_row(const cli_factors *f, const kofn_matrix *out,
                               const kofn_matrix *want, double *most,
                               size_t *row)
{
    kofn_matrix size = *want;
    kofn_status st = KOFN_NOMEM;

    size.data = malloc(want->rows * want->cols * sizeof(double) + 1);
    if (size.data)
        st = sizes(f, &size);
    *most = 0;
    for (size_t i = 0; i < want->rows && !st; i++)
        for (size_t j = 0; j < want->cols; j++) {
            double off = fabs(cli_element(out, i, j) - cli_element(want, i, j));
            double error = off == 0 ? 0 : off / cli_element(&size, i, j);

            if (error > *most) {
                *most = error;
                *row = i;
            }
        }
    free(size.data);
    return st;
}
