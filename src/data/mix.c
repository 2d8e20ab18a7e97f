/* mix.c -- linear combinations of the parts of an operand.
 *
 * Owns its lists of pointers within a call.  The parts are only read, and the
 * output may not overlap them. */
#include "data.h"

#include "code/combine.h"

/* Sources and destinations of a call of the engine, and where they are. */
typedef struct mixing {
    size_t n, parts, used;
    double *D;      /* n x parts; the first `used` columns count */
    size_t *column; /* of each part in D                         */
    const kofn_matrix **from;
    const void **src;
    void **dst;
} mixing;

static void mixing_free(mixing *x)
{
    kf_free(x->D);
    kf_free(x->column);
    kf_free(x->from);
    kf_free(x->src);
    kf_free(x->dst);
}

static kofn_status mixing_new(mixing *x, const kf_mixed *mixed,
                              const kofn_matrix *const *part)
{
    x->D = kofn_layout_table(x->n, x->parts);
    x->column = kf_new(x->parts, sizeof *x->column);
    x->from = kf_new(x->parts, sizeof *x->from);
    x->src = kf_new(x->parts, sizeof *x->src);
    x->dst = kf_new(x->n, sizeof *x->dst);
    if (!x->D || !x->column || !x->from || !x->src || !x->dst)
        return KOFN_NOMEM;
    for (size_t j = 0; j < x->parts; j++) {
        x->column[j] = x->used;
        if (part[j]->rows)
            x->from[x->used++] = part[j];
    }
    for (size_t i = 0; i < x->n; i++)
        for (size_t e = 0; e < mixed[i].row->n; e++) {
            size_t j = mixed[i].row->col[e];

            if (part[j]->rows)
                x->D[i * x->parts + x->column[j]] =
                    mixed[i].by * mixed[i].row->val[e];
        }
    return KOFN_OK;
}

/* Every matrix lies in one piece. */
static bool contiguous(const mixing *x, const kf_mixed *mixed, size_t cols)
{
    bool all = true;

    for (size_t j = 0; j < x->used; j++)
        all &= x->from[j]->ld == cols;
    for (size_t i = 0; i < x->n; i++)
        all &= mixed[i].into.ld == cols;
    return all;
}

kofn_status kf_mix(const kf_mixed *mixed, size_t n,
                   const kofn_matrix *const *part, size_t parts, size_t rows,
                   size_t cols)
{
    mixing x = {.n = n, .parts = parts};
    size_t length = cols;
    kofn_status st;

    if (n == 0)
        return KOFN_OK;
    st = mixing_new(&x, mixed, part);
    if (!st && contiguous(&x, mixed, cols)) {
        length *= rows;
        rows = 1;
    }
    for (size_t i = 0; i < rows && !st; i++) {
        for (size_t j = 0; j < x.used; j++)
            x.src[j] = kf_at(x.from[j], i, 0);
        for (size_t k = 0; k < n; k++)
            x.dst[k] = kf_at(&mixed[k].into, i, 0);
        kf_combine(&(kf_combination){n, x.used, x.D, parts, x.src, x.dst},
                   length, mixed[0].into.dtype);
    }
    mixing_free(&x);
    return st;
}
