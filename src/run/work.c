/* work.c -- what a worker does with its block, and what that costs. */
#include "run.h"

#include "code/combine.h"

/* A worker looks up from its work after about this much of it, so that a
 * cancelled task ends within a millisecond or so; but BLAS is fast only with
 * so many rows at a time. */
#define LOOK_UP_WORK 2e6
#define LOOK_UP_ROWS 64

/* ---- what it costs ----------------------------------------------------------- */

/* Rows [lo, hi) of a part as rows of A, as far as there are any. */
static void part_rows(const kofn_block *b, size_t j, size_t lo, size_t hi,
                      size_t *from, size_t *to)
{
    *from = kf_min(b->first[j] + lo, b->A->rows);
    *to = kf_min(b->first[j] + hi, b->A->rows);
}

static double sparse_entries(const kofn_block *b, size_t lo, size_t hi)
{
    double sum = 0;

    for (size_t j = 0; j < b->used; j++) {
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        sum += (double)(b->A->ptr[to] - b->A->ptr[from]);
    }
    return sum;
}

size_t kofn_block_bytes(const kofn_block *b)
{
    size_t bytes = 0;

    if (b->share)
        return b->share->parts * sizeof(size_t);
    if (b->A)
        return (size_t)sparse_entries(b, 0, b->rows) * 12;
    for (size_t l = 0; l < b->lanes; l++)
        bytes += b->lane[l].rows * b->lane[l].cols * kf_dtype_size(b->dtype);
    return bytes;
}

/* Lanes that are not zero throughout. */
static double full_lanes(const kofn_block *b)
{
    double n = 0;

    for (size_t l = 0; l < b->lanes; l++)
        n += b->lane[l].rows > 0;
    return n;
}

double kofn_work_size(const kofn_block *b, const kofn_msg *m)
{
    double strips = (double)(m->hi - m->lo), cols = (double)b->cols;
    const kofn_matrix *in = &m->in->m;

    if (b->A)
        return sparse_entries(b, m->lo, m->hi) * (double)in->cols;
    switch (m->how) {
    case KOFN_TWICE:
        return 2 * full_lanes(b) * (double)b->rows * cols;
    case KOFN_TURN: /* f, the first time, and its values mixed */
        return (m->turn == 0 ? (double)b->share->parts : 0) * b->share->work +
               (double)(b->share->lanes * b->share->span);
    case KOFN_LEFT_ROWS:
        return full_lanes(b) * strips * (double)b->rows * cols;
    case KOFN_INNER:
        return full_lanes(b) * strips * (double)b->rows * (double)in->cols;
    case KOFN_LEFT_INNER:
        return full_lanes(b) * strips * (double)in->rows * cols;
    case KOFN_ROWS:
        break;
    }
    return full_lanes(b) * strips * cols * (double)in->cols;
}

/* Strips to do at a time, each of which is so much work. */
static size_t stride(double each, bool many)
{
    double n = LOOK_UP_WORK / (each + 1), least = many ? LOOK_UP_ROWS : 1;

    return n < least ? (size_t)least : (size_t)n;
}

/* ---- rows of a sparse block ---------------------------------------------------- */

static double work_a_strip(const kofn_block *b)
{
    return (double)b->A->ptr[b->A->rows] / (double)kf_max(1, b->A->rows) *
           (double)b->used;
}

/* Products of the plain parts, then their mix.  temp: used x strips x cols. */
static void compute_sparse(const kofn_block *b, const kofn_matrix *in,
                           size_t lo, size_t hi, double *temp,
                           const void **src, void **dst)
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

static kofn_status rows_sparse(const kofn_block *b, const kofn_matrix *in,
                                 size_t lo, size_t hi, kofn_matrix *out,
                                 bool (*stopped)(void *), void *ud)
{
    size_t step = kf_min(stride(work_a_strip(b) * (double)in->cols, false),
                         hi - lo);
    double *temp = kf_new(b->used * step, in->cols * sizeof *temp);
    const void **src = kf_new(b->used, sizeof *src);
    void **dst = kf_new(b->lanes, sizeof *dst);
    kofn_status st = temp && src && dst ? KOFN_OK : KOFN_NOMEM;

    for (size_t at = lo; at < hi && !st; at += step) {
        size_t end = kf_min(at + step, hi);

        for (size_t l = 0; l < b->lanes; l++)
            dst[l] = kf_at(out, l * (hi - lo) + at - lo, 0);
        compute_sparse(b, in, at, end, temp, src, dst);
        if (end < hi && stopped && stopped(ud))
            st = KOFN_AGAIN;
    }
    kf_free(temp);
    kf_free(src);
    kf_free(dst);
    return st;
}

/* ---- rows of a dense block ------------------------------------------------------ */

/* Rows [lo, hi) or columns [lo, hi) of a matrix. */
static kofn_matrix some_rows(const kofn_matrix *a, size_t lo, size_t hi)
{
    return (kofn_matrix){kf_at(a, lo, 0), hi - lo, a->cols, a->ld, a->dtype};
}

static kofn_matrix some_cols(const kofn_matrix *a, size_t lo, size_t hi)
{
    return (kofn_matrix){kf_at(a, 0, lo), a->rows, hi - lo, a->ld, a->dtype};
}

static bool is_stopped(bool (*stopped)(void *), void *ud)
{
    return stopped && stopped(ud);
}

/* Answers of lane l stand in rows l (hi - lo) + [0, hi - lo) of the result. */
static kofn_status rows_dense(const kofn_block *b, bool left,
                              const kofn_matrix *in, size_t lo, size_t hi,
                              kofn_matrix *out, bool (*stopped)(void *),
                              void *ud)
{
    size_t step = stride((double)b->cols *
                             (double)(left ? b->rows : in->cols),
                         left || in->cols > 1);
    size_t size = kf_dtype_size(b->dtype);

    for (size_t l = 0; l < b->lanes; l++)
        for (size_t at = lo; at < hi; at += step) {
            size_t end = kf_min(at + step, hi);
            const kofn_matrix *lane = &b->lane[l];
            char *to = kf_at(out, l * (hi - lo) + at - lo, 0);
            kofn_matrix strips;

            if ((l > 0 || at > lo) && is_stopped(stopped, ud))
                return KOFN_AGAIN;
            if (lane->rows == 0) {
                memset(to, 0, (end - at) * out->cols * size);
                continue;
            }
            strips = some_rows(left ? in : lane, at, end);
            kf_multiply(&strips, left ? lane : in, false, to);
        }
    return KOFN_OK;
}

kofn_status kofn_compute(const kofn_block *b, const kofn_matrix *in, size_t lo,
                         size_t hi, kofn_matrix *out, bool (*stopped)(void *),
                         void *ud)
{
    return b->A ? rows_sparse(b, in, lo, hi, out, stopped, ud)
                : rows_dense(b, false, in, lo, hi, out, stopped, ud);
}

/* ---- sums over strips ------------------------------------------------------------ */

/* Those of strips [lo, hi); *begun when there is something to add to.  The lanes
 * of the input stand one behind the other, `span` strips each. */
static kofn_status add_strips(const kofn_block *b, bool left, size_t span,
                              const kofn_matrix *in, size_t lo, size_t hi,
                              kofn_matrix *out, bool *begun,
                              bool (*stopped)(void *), void *ud)
{
    size_t step = stride((double)out->rows * (double)out->cols, true);

    for (size_t l = 0; l < b->lanes; l++)
        for (size_t at = lo; at < hi; at += step) {
            size_t end = kf_min(at + step, hi);
            kofn_matrix x, y;

            if (b->lane[l].rows == 0)
                continue;
            if (*begun && is_stopped(stopped, ud))
                return KOFN_AGAIN;
            if (left) {
                x = some_cols(in, l * span + at, l * span + end);
                y = some_rows(&b->lane[l], at, end);
            } else {
                x = some_cols(&b->lane[l], at, end);
                y = some_rows(in, l * span + at, l * span + end);
            }
            kf_multiply(&x, &y, *begun, out->data);
            *begun = true;
        }
    return KOFN_OK;
}

/* Strips beyond the last are the first ones. */
static kofn_status sum_dense(const kofn_block *b, bool left,
                             const kofn_matrix *in, size_t lo, size_t hi,
                             kofn_matrix *out, bool (*stopped)(void *),
                             void *ud)
{
    size_t span = (left ? in->cols : in->rows) / b->lanes;
    bool begun = false;

    TRY(add_strips(b, left, span, in, lo, kf_min(hi, span), out, &begun,
                   stopped, ud));
    if (hi > span)
        TRY(add_strips(b, left, span, in, 0, hi - span, out, &begun, stopped,
                       ud));
    if (!begun)
        memset(out->data, 0,
               out->rows * out->cols * kf_dtype_size(out->dtype));
    return KOFN_OK;
}

/* ---- A' A x --------------------------------------------------------------------- */

/* Some rows at a time, which are still in the cache for their second use. */
#define GRAM_BYTES ((size_t)256 << 10)

static kofn_status twice_dense(const kofn_block *b, const kofn_matrix *in,
                               kofn_matrix *out, bool (*stopped)(void *),
                               void *ud)
{
    const kofn_matrix *a = &b->lane[0];
    size_t size = kf_dtype_size(b->dtype);
    size_t step = kf_max(1, GRAM_BYTES / (b->cols * size));
    void *t;

    memset(out->data, 0, out->rows * size);
    if (a->rows == 0)
        return KOFN_OK;
    t = kf_new(kf_min(step, a->rows), size);
    if (!t)
        return KOFN_NOMEM;
    for (size_t at = 0; at < a->rows; at += step) {
        kofn_matrix rows = some_rows(a, at, kf_min(at + step, a->rows));
        kofn_matrix margins = {t, 1, rows.rows, rows.rows, b->dtype};

        if (at && is_stopped(stopped, ud)) {
            kf_free(t);
            return KOFN_AGAIN;
        }
        kf_multiply(&rows, in, false, t);
        kf_multiply(&margins, &rows, true, out->data);
    }
    kf_free(t);
    return KOFN_OK;
}

kofn_status kofn_work(const kofn_block *b, const kofn_msg *m,
                      bool (*stopped)(void *), void *ud)
{
    const kofn_matrix *in = &m->in->m;
    kofn_matrix *out = &m->result->m;

    switch (m->how) {
    case KOFN_ROWS:
        break;
    case KOFN_LEFT_ROWS:
        return rows_dense(b, true, in, m->lo, m->hi, out, stopped, ud);
    case KOFN_INNER:
    case KOFN_LEFT_INNER:
        return sum_dense(b, m->how == KOFN_LEFT_INNER, in, m->lo, m->hi, out,
                         stopped, ud);
    case KOFN_TWICE:
        return twice_dense(b, in, out, stopped, ud);
    case KOFN_TURN:
        return kf_share_turn(b->share, m, stopped, ud);
    }
    return kofn_compute(b, in, m->lo, m->hi, out, stopped, ud);
}

/* ---- messages from elsewhere ------------------------------------------------------ */

static bool shape(const kofn_matrix *a, size_t rows, size_t cols)
{
    return a->rows == rows && a->cols == cols;
}

/* n of them in each lane, one lane below the other. */
static bool stacked(const kofn_matrix *a, size_t lanes, size_t n, size_t cols)
{
    size_t rows;

    return kf_mul(lanes, n, &rows) && shape(a, rows, cols);
}

/* Strips of the lanes of an input that is summed over; they may go on at the
 * first one. */
static bool within(const kofn_msg *m, size_t strips, size_t lanes, size_t most)
{
    size_t span = strips / lanes;

    return strips % lanes == 0 && span <= most && m->lo < span &&
           m->hi - m->lo <= span;
}

static bool fits(const kofn_block *b, const kofn_msg *m, const kofn_matrix *in,
                 const kofn_matrix *out)
{
    size_t strips;

    if (m->how == KOFN_TURN)
        return b->share && m->turn < b->share->turns &&
               stacked(out, b->share->lanes, b->share->span, 1);
    if (b->share || m->lo >= m->hi || (b->A && m->how != KOFN_ROWS))
        return false;
    strips = m->hi - m->lo;
    switch (m->how) {
    case KOFN_ROWS:
        return m->hi <= b->rows && in->rows == b->cols &&
               stacked(out, b->lanes, strips, in->cols);
    case KOFN_LEFT_ROWS:
        return m->hi <= in->rows && in->cols == b->rows &&
               stacked(out, b->lanes, strips, b->cols);
    case KOFN_INNER:
        return within(m, in->rows, b->lanes, b->cols) &&
               shape(out, b->rows, in->cols);
    case KOFN_LEFT_INNER:
        return within(m, in->cols, b->lanes, b->rows) &&
               shape(out, in->rows, b->cols);
    case KOFN_TWICE:
        return shape(in, b->cols, 1) && shape(out, b->cols, 1);
    case KOFN_TURN:
        break;
    }
    return false;
}

kofn_status kf_work_fits(const kofn_block *b, const kofn_msg *m,
                         const kofn_matrix *in, const kofn_matrix *out)
{
    if (in->dtype == b->dtype && out->dtype == b->dtype && fits(b, m, in, out))
        return KOFN_OK;
    return kf_fail(KOFN_SHAPE, "task %u, strips [%zu, %zu) with an input of "
                   "%zu x %zu and a result of %zu x %zu, does not fit the "
                   "block", m->task, m->lo, m->hi, in->rows, in->cols,
                   out->rows, out->cols);
}
