/* mix.c -- linear combinations of the parts of an operand.
 *
 * Owns its lists of pointers within a call.  The parts are only read, and the
 * output must not overlap them. */
#include "data.h"

#include "code/combine.h"

#include <assert.h>

/* Sources and destinations of a call of the engine.  It does not read sources
 * with zero coefficients; parts without rows have only such. */
typedef struct mixing {
    double *D; /* n x parts */
    const void **src;
    void **dst;
} mixing;

static void fill(double *D, const kf_mixed *mixed, size_t n,
                 const kofn_matrix *part, size_t parts)
{
    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; e < mixed[i].row->n; e++) {
            size_t j = mixed[i].row->col[e];
            assert(j < parts);

            if (part[j].rows)
                D[i * parts + j] = mixed[i].by * mixed[i].row->val[e];
        }
}

/* True if every matrix is contiguous. */
static bool contiguous(const kf_mixed *mixed, size_t n, const kofn_matrix *part,
                       size_t parts, size_t cols)
{
    bool all = true;

    for (size_t j = 0; j < parts; j++)
        all &= part[j].rows == 0 || part[j].ld == cols;
    for (size_t i = 0; i < n; i++)
        all &= mixed[i].into.ld == cols;
    return all;
}

kofn_status kf_mix(const kf_mixed *mixed, size_t n, const kofn_matrix *part,
                   size_t parts, size_t rows, size_t cols)
{
    mixing x = {.D = kofn_layout_table(n, parts),
                .src = kf_new(parts, sizeof *x.src),
                .dst = kf_new(n, sizeof *x.dst)};
    kofn_status st = x.D && x.src && x.dst ? KOFN_OK : KOFN_NOMEM;
    size_t length = cols;

    if (!st)
        fill(x.D, mixed, n, part, parts);
    if (contiguous(mixed, n, part, parts, cols)) {
        length *= rows;
        rows = 1;
    }
    for (size_t i = 0; i < rows && !st && n > 0; i++) {
        for (size_t j = 0; j < parts; j++)
            x.src[j] = part[j].rows ? kf_at(&part[j], i, 0) : NULL;
        for (size_t k = 0; k < n; k++)
            x.dst[k] = kf_at(&mixed[k].into, i, 0);
        kf_combine(&(kf_combination){n, parts, x.D, parts, x.src, x.dst},
                   length, mixed[0].into.dtype);
    }
    kf_free(x.D);
    kf_free(x.src);
    kf_free(x.dst);
    return st;
}
