/* sparse.c -- the kernels for sparse blocks: products of the plain parts, then
 * their mixtures (block.c).
 *
 * Blocks are views of the plain parts; products are made in scratch of the
 * call.  The operand is never made dense. */
#include "kernel.h"

#include "code/combine.h"

#include <assert.h>

/* Finds the rows of A for rows [lo, hi) of a part, cut off at the end of A. */
static void part_rows(const kf_block *b, size_t j, size_t lo, size_t hi,
                      size_t *from, size_t *to)
{
    assert(j < b->used);
    assert(lo <= hi);
    *from = kf_min(b->first[j] + lo, b->A->rows);
    *to = kf_min(b->first[j] + hi, b->A->rows);
}

double kf_data_sparse_entries(const kf_block *b, size_t lo, size_t hi)
{
    double sum = 0;

    for (size_t j = 0; j < b->used; j++) {
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        sum += (double)(b->A->ptr[to] - b->A->ptr[from]);
    }
    return sum;
}

/* Returns the work of a strip.  Strips are done in groups, so that any number
 * of components needs little memory. */
static double work_a_strip(const kf_block *b)
{
    return ((double)b->A->ptr[b->A->rows] / (double)kf_max(1, b->A->rows) +
            (double)b->components) *
               (double)b->used +
           (double)b->components;
}

/* ---- rows ---------------------------------------------------------------- */

/* Products of some strips, before and after mixing. */
typedef struct mixture {
    double *each; /* used x strips x columns of the input: of the plain parts */
    double *mixed; /* A' A x: components x strips, summed over components */
    const void **src;
    void **dst;
} mixture;

static void mix_rows(const kf_block *b, const kofn_matrix *in, size_t lo,
                     size_t hi, const mixture *m)
{
    size_t length = (hi - lo) * in->cols;

    assert(in->rows == b->A->cols);
    for (size_t j = 0; j < b->used; j++) {
        double *t = m->each + j * length;
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        kf_mat_multiply_sparse(b->A, from, to, in, t);
        memset(t + (to - from) * in->cols, 0,
               (length - (to - from) * in->cols) * sizeof *t);
        m->src[j] = t;
    }
    kf_combine(&(kf_combination){b->components, b->used, b->weight, b->used,
                                 m->src, m->dst},
               length, KOFN_F64);
}

kofn_status kf_data_rows_sparse(const kf_block *b, const kf_work *w)
{
    size_t cols = w->in->cols, strips = w->hi - w->lo;
    size_t step =
        kf_min(kf_stride(work_a_strip(b) * (double)cols, false), strips);
    mixture m = {.each = kf_new(b->used * step, cols * sizeof *m.each),
                 .src = kf_new(b->used, sizeof *m.src),
                 .dst = kf_new(b->components, sizeof *m.dst)};
    kofn_status st = m.each && m.src && m.dst ? KOFN_OK : KOFN_NOMEM;

    assert(w->hi <= b->rows);
    for (size_t at = w->lo; at < w->hi && !st; at += step) {
        size_t end = kf_min(at + step, w->hi);

        for (size_t l = 0; l < b->components; l++)
            m.dst[l] = kf_at(w->out, l * strips + at - w->lo, 0);
        mix_rows(b, w->in, at, end, &m);
        if (end < w->hi && kf_is_stopped(w))
            st = KOFN_AGAIN;
    }
    kf_free(m.each);
    kf_free(m.src);
    kf_free(m.dst);
    return st;
}

/* ---- the input on the left ----------------------------------------------- */

/* An input with components that are `apart` columns from each other. */
typedef struct wide {
    const kofn_matrix *in;
    size_t apart;
} wide;

/* Fills `mixed` by rows: the sum over components of weight times strips [lo,
 * hi) of the component's input, for part j. */
static void mix_input(const kf_block *b, size_t j, wide of, size_t lo,
                      size_t hi, double *mixed)
{
    const kofn_matrix *in = of.in;

    memset(mixed, 0, in->rows * (hi - lo) * sizeof *mixed);
    for (size_t l = 0; l < b->components; l++) {
        double weight = b->weight[l * b->used + j];

        for (size_t r = 0; r < in->rows && weight != 0; r++) {
            const double *x = kf_at(in, r, l * of.apart + lo);

            for (size_t i = 0; i < hi - lo; i++)
                mixed[r * (hi - lo) + i] += weight * x[i];
        }
    }
}

/* Adds to `out` strips [lo, hi) of the input, mixed for each part, times the
 * same strips of the part, cut off at the end of A. */
static void add_left(const kf_block *b, wide of, size_t lo, size_t hi,
                     double *mixed, double *out)
{
    for (size_t j = 0; j < b->used; j++) {
        kofn_matrix x = {mixed, of.in->rows, 0, hi - lo, KOFN_F64};
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        x.cols = to - from;
        if (x.cols == 0)
            continue;
        mix_input(b, j, of, lo, hi, mixed);
        kf_mat_multiply_by_sparse(&x, b->A, from, out);
    }
}

/* Adds up strips of the block; strips beyond the last continue with the first.
 */
static kofn_status add_strips(const kf_block *b, const kf_work *w, size_t lo,
                              size_t hi, size_t step, double *mixed)
{
    wide of = {w->in, w->in->cols / b->components};

    assert(step > 0);
    for (size_t at = lo; at < hi; at += step) {
        if (at > lo && kf_is_stopped(w))
            return KOFN_AGAIN;
        add_left(b, of, at, kf_min(at + step, hi), mixed, w->out->data);
    }
    return KOFN_OK;
}

kofn_status kf_data_left_inner_sparse(const kf_block *b, const kf_work *w)
{
    size_t span = w->in->cols / b->components;
    size_t step = kf_min(
        kf_stride(work_a_strip(b) * (double)w->in->rows, false), w->hi - w->lo);
    double *mixed = kf_new(w->in->rows * step, sizeof *mixed);
    kofn_status st = mixed ? KOFN_OK : KOFN_NOMEM;

    assert(w->in->cols % b->components == 0);
    memset(w->out->data, 0, w->out->rows * w->out->cols * sizeof *mixed);
    if (!st)
        st = add_strips(b, w, w->lo, kf_min(w->hi, span), step, mixed);
    if (!st && w->hi > span)
        st = add_strips(b, w, 0, w->hi - span, step, mixed);
    kf_free(mixed);
    return st;
}

/* Computes row by row of the input all components; component l has the weights
 * of row l.
 */
kofn_status kf_data_left_rows_sparse(const kf_block *b, const kf_work *w)
{
    size_t strips = w->hi - w->lo;
    double *mixed = kf_new(b->rows, sizeof *mixed);
    kofn_status st = mixed ? KOFN_OK : KOFN_NOMEM;

    memset(w->out->data, 0, w->out->rows * w->out->cols * sizeof *mixed);
    for (size_t l = 0; l < b->components && !st; l++)
        for (size_t i = 0; i < strips && !st; i++) {
            kf_block component = *b;
            kofn_matrix row = {kf_at(w->in, w->lo + i, 0), 1, w->in->cols,
                               w->in->ld, KOFN_F64};

            component.components = 1;
            component.weight = b->weight + l * b->used;
            if (i + l > 0 && kf_is_stopped(w))
                st = KOFN_AGAIN;
            else
                add_left(&component, (wide){&row, 0}, 0, b->rows, mixed,
                         kf_at(w->out, l * strips + i, 0));
        }
    kf_free(mixed);
    return st;
}

/* ---- A' A x -------------------------------------------------------------- */

static void add_gram(const kf_block *b, const kf_work *w, size_t lo, size_t hi,
                     const mixture *t)
{
    kofn_matrix margins = {t->mixed, 1, b->components * (hi - lo),
                           b->components * (hi - lo), KOFN_F64};

    for (size_t l = 0; l < b->components; l++)
        t->dst[l] = t->mixed + l * (hi - lo);
    mix_rows(b, w->in, lo, hi, t);
    /* components are side by side, so they are summed */
    for (size_t j = 0; j < b->used; j++) {
        kofn_matrix x = {t->each, 1, 0, hi - lo, KOFN_F64};
        size_t from, to;

        part_rows(b, j, lo, hi, &from, &to);
        x.cols = to - from;
        mix_input(b, j, (wide){&margins, hi - lo}, 0, hi - lo, t->each);
        kf_mat_multiply_by_sparse(&x, b->A, from, w->out->data);
    }
}

kofn_status kf_data_gram_sparse(const kf_block *b, const kf_work *w)
{
    size_t step = kf_min(kf_stride(2 * work_a_strip(b), false), b->rows);
    mixture t = {.each = kf_new(kf_max(b->used, 1) * step, sizeof *t.each),
                 .mixed = kf_new(b->components * step, sizeof *t.mixed),
                 .src = kf_new(b->used, sizeof *t.src),
                 .dst = kf_new(b->components, sizeof *t.dst)};
    kofn_status st = t.each && t.mixed && t.src && t.dst ? KOFN_OK : KOFN_NOMEM;

    memset(w->out->data, 0, w->out->rows * sizeof *t.each);
    for (size_t at = 0; at < b->rows && !st; at += step) {
        if (at > 0 && kf_is_stopped(w))
            st = KOFN_AGAIN;
        else
            add_gram(b, w, at, kf_min(at + step, b->rows), &t);
    }
    kf_free(t.each);
    kf_free(t.mixed);
    kf_free(t.src);
    kf_free(t.dst);
    return st;
}
