/* transpose.c -- transposes of matrices, in memory of their own.
 *
 * The caller frees the dense ones' data, and the sparse ones by
 * cli_sparse_free. */
#include "cli.h"

#include <assert.h>
#include <stdlib.h>

int cli_transposed(const kofn_matrix *a, kofn_matrix *out)
{
    double *to;

    TRY_CODE(cli_room(out, a->cols, a->rows, "a transpose"));
    to = out->data;
    for (size_t j = 0; j < a->cols; j++)
        for (size_t i = 0; i < a->rows; i++)
            *to++ = cli_element(a, i, j);
    return 0;
}

/* Counts the entries of each column: to[j + 1] is where column j + 1 begins. */
static void count(const kofn_sparse *s, size_t *to)
{
    for (size_t k = 0; k < s->ptr[s->rows]; k++)
        to[s->col[k] + 1]++;
    for (size_t j = 0; j < s->cols; j++)
        to[j + 1] += to[j];
}

int cli_sparse_transposed(const kofn_sparse *s, kofn_sparse *out)
{
    size_t n = s->ptr[s->rows], *ptr = calloc(s->cols + 2, sizeof *ptr);
    uint32_t *col = calloc(n + 1, sizeof *col);
    double *val = calloc(n + 1, sizeof *val);

    *out = (kofn_sparse){s->cols, s->rows, ptr, col, val};
    if (!ptr || !col || !val || s->rows > UINT32_MAX) {
        cli_sparse_free(out);
        return cli_say(EXIT_FAILED, "out of memory for a transpose, %zu x %zu",
                       s->cols, s->rows);
    }
    /* ptr[j + 1] moves from the begin of column j to its end */
    count(s, ptr + 1);
    for (size_t i = 0; i < s->rows; i++)
        for (size_t k = s->ptr[i]; k < s->ptr[i + 1]; k++) {
            size_t at = ptr[s->col[k] + 1]++;

            assert(at < n);
            col[at] = (uint32_t)i;
            val[at] = s->val[k];
        }
    return 0;
}

void cli_sparse_free(kofn_sparse *s)
{
    free((void *)(uintptr_t)s->ptr);
    free((void *)(uintptr_t)s->col);
    free((void *)(uintptr_t)s->val);
    *s = (kofn_sparse){0};
}
