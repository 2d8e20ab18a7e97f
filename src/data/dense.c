/* dense.c -- what a worker computes with a dense block. */
#include "kernel.h"

/* Rows [lo, hi) or columns [lo, hi) of a matrix. */
static kofn_matrix some_rows(const kofn_matrix *a, size_t lo, size_t hi)
{
    return (kofn_matrix){kf_at(a, lo, 0), hi - lo, a->cols, a->ld, a->dtype};
}

static kofn_matrix some_cols(const kofn_matrix *a, size_t lo, size_t hi)
{
    return (kofn_matrix){kf_at(a, 0, lo), a->rows, hi - lo, a->ld, a->dtype};
}

/* ---- strips as they are -------------------------------------------------- */

/* Answers of lane l stand in rows l (hi - lo) + [0, hi - lo) of the result. */
static kofn_status rows(const kofn_block *b, bool left, const kf_work *w)
{
    const kofn_matrix *in = w->in;
    size_t step =
        kf_stride((double)b->cols * (double)(left ? b->rows : in->cols),
                  left || in->cols > 1);
    size_t size = kf_dtype_size(b->dtype);

    for (size_t l = 0; l < b->lanes; l++)
        for (size_t at = w->lo; at < w->hi; at += step) {
            size_t end = kf_min(at + step, w->hi);
            const kofn_matrix *lane = &b->lane[l];
            char *to = kf_at(w->out, l * (w->hi - w->lo) + at - w->lo, 0);
            kofn_matrix strips;

            if ((l > 0 || at > w->lo) && kf_is_stopped(w))
                return KOFN_AGAIN;
            if (lane->rows == 0) {
                memset(to, 0, (end - at) * w->out->cols * size);
                continue;
            }
            strips = some_rows(left ? in : lane, at, end);
            kf_mat_multiply(&strips, left ? lane : in, false, to);
        }
    return KOFN_OK;
}

kofn_status kf_data_rows_dense(const kofn_block *b, const kf_work *w)
{
    return rows(b, false, w);
}

kofn_status kf_data_left_rows_dense(const kofn_block *b, const kf_work *w)
{
    return rows(b, true, w);
}

/* ---- sums over strips ---------------------------------------------------- */

/* Those of strips [lo, hi); *begun when there is something to add to.  The
 * lanes of the input stand one behind the other, `span` strips each. */
static kofn_status add_strips(const kofn_block *b, bool left, size_t span,
                              const kf_work *w, size_t lo, size_t hi,
                              bool *begun)
{
    size_t step = kf_stride((double)w->out->rows * (double)w->out->cols, true);

    for (size_t l = 0; l < b->lanes; l++)
        for (size_t at = lo; at < hi; at += step) {
            size_t end = kf_min(at + step, hi);
            kofn_matrix x, y;

            if (b->lane[l].rows == 0)
                continue;
            if (*begun && kf_is_stopped(w))
                return KOFN_AGAIN;
            if (left) {
                x = some_cols(w->in, l * span + at, l * span + end);
                y = some_rows(&b->lane[l], at, end);
            } else {
                x = some_cols(&b->lane[l], at, end);
                y = some_rows(w->in, l * span + at, l * span + end);
            }
            kf_mat_multiply(&x, &y, *begun, w->out->data);
            *begun = true;
        }
    return KOFN_OK;
}

/* Strips beyond the last are the first ones. */
static kofn_status inner(const kofn_block *b, bool left, const kf_work *w)
{
    size_t span = (left ? w->in->cols : w->in->rows) / b->lanes;
    bool begun = false;

    TRY(add_strips(b, left, span, w, w->lo, kf_min(w->hi, span), &begun));
    if (w->hi > span)
        TRY(add_strips(b, left, span, w, 0, w->hi - span, &begun));
    if (!begun)
        memset(w->out->data, 0,
               w->out->rows * w->out->cols * kf_dtype_size(w->out->dtype));
    return KOFN_OK;
}

kofn_status kf_data_inner_dense(const kofn_block *b, const kf_work *w)
{
    return inner(b, false, w);
}

kofn_status kf_data_left_inner_dense(const kofn_block *b, const kf_work *w)
{
    return inner(b, true, w);
}

/* ---- A' A x -------------------------------------------------------------- */

/* Some rows at a time, which are still in the cache for their second use. */
#define GRAM_BYTES ((size_t)256 << 10)

kofn_status kf_data_gram_dense(const kofn_block *b, const kf_work *w)
{
    const kofn_matrix *a = &b->lane[0];
    size_t size = kf_dtype_size(b->dtype);
    size_t step = kf_max(1, GRAM_BYTES / (b->cols * size));
    void *t;

    memset(w->out->data, 0, w->out->rows * size);
    if (a->rows == 0)
        return KOFN_OK;
    t = kf_new(kf_min(step, a->rows), size);
    if (!t)
        return KOFN_NOMEM;
    for (size_t at = 0; at < a->rows; at += step) {
        kofn_matrix rows = some_rows(a, at, kf_min(at + step, a->rows));
        kofn_matrix margins = {t, 1, rows.rows, rows.rows, b->dtype};

        if (at && kf_is_stopped(w)) {
            kf_free(t);
            return KOFN_AGAIN;
        }
        kf_mat_multiply(&rows, w->in, false, t);
        kf_mat_multiply(&margins, &rows, true, w->out->data);
    }
    kf_free(t);
    return KOFN_OK;
}
