/* worst_row.c -- the error of a product, as a whole and row by row.
 *
 * Owns its scratch within a call. It compares with a product computed without
 * workers, for --verify. */
#include "busy.h"
#include "cli.h"

#include <math.h>
#include <stdlib.h>

/* Rows of A handled at a time. */
#define BAND 64

/* Computes the absolute values of rows [lo, lo + rows). Returns 0, or the exit
 * code after a message; so do the functions below. */
static int absolute(const kofn_matrix *a, size_t lo, size_t rows,
                    kofn_matrix *out)
{
    TRY_CODE(cli_room(out, rows, a->cols, "--verify"));
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            ((double *)out->data)[i * a->cols + j] =
                fabs(cli_element(a, lo + i, j));
    return 0;
}

static int sizes_dense(const kofn_matrix *A, const kofn_matrix *B,
                       const kofn_matrix *size)
{
    for (size_t lo = 0; lo < A->rows; lo += BAND) {
        size_t rows = A->rows - lo < BAND ? A->rows - lo : BAND;
        kofn_matrix band, into = *size;
        kofn_status st;

        into.data = (double *)size->data + lo * size->ld;
        into.rows = rows;
        TRY_CODE(absolute(A, lo, rows, &band));
        st = kofn_product_plain(KOFN_DENSE(&band), B, &into);
        free(band.data);
        if (st)
            return cli_fail(st);
    }
    return 0;
}

static int sizes_sparse(const kofn_sparse *A, const kofn_matrix *B,
                        kofn_matrix *size)
{
    kofn_matrix val;
    kofn_sparse positive = *A;
    kofn_status st;

    TRY_CODE(cli_room(&val, 1, A->ptr[A->rows], "--verify"));
    for (size_t e = 0; e < A->ptr[A->rows]; e++)
        ((double *)val.data)[e] = fabs(A->val[e]);
    positive.val = val.data;
    st = kofn_product_plain(KOFN_SPARSE(&positive), B, size);
    free(val.data);
    return cli_fail(st);
}

/* Computes |A| |B|, the measure of rounding in each element. A small row may
 * be wrong although the whole result seems right. */
static int sizes(const cli_factors *f, kofn_matrix *size)
{
    kofn_matrix B;
    int code;

    TRY_CODE(absolute(f->B, 0, f->B->rows, &B));
    code = f->A.sparse ? sizes_sparse(f->A.sparse, &B, size)
                       : sizes_dense(f->A.dense, &B, size);
    free(B.data);
    return code;
}

static int find_worst_row(const cli_factors *f, const kofn_matrix *out,
                          const kofn_matrix *want, cli_exactness *to)
{
    kofn_matrix size;
    int code;

    TRY_CODE(cli_room(&size, want->rows, want->cols, "--verify"));
    code = sizes(f, &size);
    to->row_error = 0;
    for (size_t i = 0; i < want->rows && !code; i++)
        for (size_t j = 0; j < want->cols; j++) {
            double off = fabs(cli_element(out, i, j) - cli_element(want, i, j));
            double error = off == 0 ? 0 : off / cli_element(&size, i, j);

            if (error > to->row_error) {
                to->row_error = error;
                to->worst_row = i;
            }
        }
    free(size.data);
    return code;
}

int cli_check_error(const cli_exactness *found)
{
    return found->rel_error < (double)INFINITY
               ? 0
               : cli_say(EXIT_FAILED,
                         "--verify: the result or the plain one is "
                         "not finite, so that there is no relative error");
}

int cli_verify(cli_exactness *to, const kofn_matrix *a, const kofn_matrix *b)
{
    to->rel_error = cli_relative_error(a, b);
    return cli_check_error(to);
}

int cli_verify_product(const cli_factors *f, const kofn_matrix *out,
                       cli_exactness *to)
{
    kofn_matrix want;
    kofn_status st;
    int code;

    TRY_CODE(cli_room(&want, out->rows, out->cols, "--verify"));
    cli_busy("computing the plain product", "to verify");
    st = kofn_product_plain(f->A, f->B, &want);
    code = st ? cli_fail(st) : find_worst_row(f, out, &want, to);
    to->rel_error = cli_relative_error(out, &want);
    cli_busy_end();
    free(want.data);
    return code;
}
