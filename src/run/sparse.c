/* sparse.c -- what a worker computes with a sparse block: products of its plain
 * parts, then their mix (block.c). */
#include "kernel.h"

#include "code/combine.h"

/* Rows [lo, hi) of a part as rows of A, as far as there are any. */
static void part_rows(const kofn_block *b, size_t j, size_t lo, size_t hi,
                      size_t *from, size_t *to)
{
    *from = kf_min(b->first[j] + lo, b->A->rows);
    *to = kf_min(b->first[j] + hi, b->A->rows);
}

double kf_sparse_entries(const kofn_block *b, size_t lo, size_t hi)
{
    double sum = 0;

    for (size_t j = 0; j < b->used; j++) {
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        sum += (double)(b->A->ptr[to] - b->A->ptr[from]);
    }
    return sum;
}

static double work_a_strip(const kofn_block *b)
{
    return (double)b->A->ptr[b->A->rows] / (double)kf_max(1, b->A->rows) *
           (double)b->used;
}

/* ---- rows ----------------------------------------------------------------------- */

/* temp: used x strips x cols. */
static void mix_rows(const kofn_block *b, const kofn_matrix *in, size_t lo,
                     size_t hi, double *temp, const void **src, void **dst)
{
    size_t length = (hi - lo) * in->cols;

    for (size_t j = 0; j < b->used; j++) {
        double *t = temp + j * length;
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        kf_multiply_sparse(b->A, from, to, in, t);
        memset(t + (to - from) * in->cols, 0,
               (length - (to - from) * in->cols) * sizeof *t);
        src[j] = t;
    }
    kf_combine(b->lanes, b->used, b->weight, b->used, src, dst, length,
               KOFN_F64);
}

kofn_status kf_rows_sparse(const kofn_block *b, const kf_work *w)
{
    size_t cols = w->in->cols, strips = w->hi - w->lo;
    size_t step = kf_min(kf_stride(work_a_strip(b) * (double)cols, false),
                         strips);
    double *temp = kf_new(b->used * step, cols * sizeof *temp);
    const void **src = kf_new(b->used, sizeof *src);
    void **dst = kf_new(b->lanes, sizeof *dst);
    kofn_status st = temp && src && dst ? KOFN_OK : KOFN_NOMEM;

    for (size_t at = w->lo; at < w->hi && !st; at += step) {
        size_t end = kf_min(at + step, w->hi);

        for (size_t l = 0; l < b->lanes; l++)
            dst[l] = kf_at(w->out, l * strips + at - w->lo, 0);
        mix_rows(b, w->in, at, end, temp, src, dst);
        if (end < w->hi && kf_is_stopped(w))
            st = KOFN_AGAIN;
    }
    kf_free(temp);
    kf_free(src);
    kf_free(dst);
    return st;
}
