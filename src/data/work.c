/* work.c -- the work of a worker with its block: the table of kernels, their
 * costs, and their inputs from a message.
 *
 * Owns the constant table of kernels.  It checks that a message fits before a
 * kernel runs; a kernel need not check again. */
#include "kernel.h"

#include "code/operation.h"

#include <assert.h>

/* True if the strips of the components of a summed input are valid; they may
 * continue with the first one. */
static bool within(const kf_work *w, size_t strips, size_t components,
                   size_t most)
{
    size_t span = strips / components;

    assert(components > 0);
    return strips % components == 0 && span <= most && w->lo < span &&
           w->hi - w->lo <= span;
}

/* ---- what it takes, and what comes of it ----------------------------------
 */

/* Sets the rows for the strips of each component, one component below the
 * other. */
static bool rows_of_components(const kf_extent *b, const kf_work *w,
                               size_t *rows)
{
    return kf_mul(b->components, w->hi - w->lo, rows);
}

static bool gives_rows(const kf_extent *b, const kf_work *w, size_t *rows,
                       size_t *cols)
{
    *cols = w->in->cols;
    return w->hi <= b->rows && w->in->rows == b->cols &&
           rows_of_components(b, w, rows);
}

static bool gives_left_rows(const kf_extent *b, const kf_work *w, size_t *rows,
                            size_t *cols)
{
    *cols = b->cols;
    return w->hi <= w->in->rows && w->in->cols == b->rows &&
           rows_of_components(b, w, rows);
}

/* Sets the size for a sum of products, each of the size of the result. */
static bool gives_inner(const kf_extent *b, const kf_work *w, size_t *rows,
                        size_t *cols)
{
    *rows = b->rows;
    *cols = w->in->cols;
    return within(w, w->in->rows, b->components, b->cols);
}

static bool gives_left_inner(const kf_extent *b, const kf_work *w, size_t *rows,
                             size_t *cols)
{
    *rows = w->in->rows;
    *cols = b->cols;
    return within(w, w->in->cols, b->components, b->rows);
}

static bool gives_vector(const kf_extent *b, const kf_work *w, size_t *rows,
                         size_t *cols)
{
    *rows = b->cols;
    *cols = 1;
    return w->in->rows == b->cols && w->in->cols == 1;
}

static bool gives_block_rows(const kf_extent *b, const kf_work *w, size_t *rows,
                             size_t *cols)
{
    *cols = b->cols;
    return w->hi <= b->rows && rows_of_components(b, w, rows);
}

/* Sets the size for a function; every input is valid. */
static bool gives_segments(const kf_extent *b, const kf_work *w, size_t *rows,
                           size_t *cols)
{
    (void)w;
    *cols = 1;
    return kf_mul(b->components, b->rows, rows);
}

/* ---- costs --------------------------------------------------------------- */

/* Returns the number of components that are not all zeros. */
static double full_components(const kf_block *b)
{
    double n = 0;

    for (size_t l = 0; l < b->components; l++)
        n += b->component[l].rows > 0;
    return n;
}

/* Returns the numbers in rows [lo, hi) of all components; beyond the last, rows
 * continue with the first. */
static double numbers(const kf_block *b, size_t lo, size_t hi)
{
    assert(lo <= hi);
    if (!b->A)
        return full_components(b) * (double)(hi - lo) * (double)b->cols;
    return kf_data_sparse_entries(b, lo, kf_min(hi, b->rows)) +
           (hi > b->rows ? kf_data_sparse_entries(b, 0, hi - b->rows) : 0);
}

static double cost_rows(const kf_block *b, const kf_work *w)
{
    return numbers(b, w->lo, w->hi) * (double)w->in->cols;
}

/* Returns the cost; plain parts are read once for each component. */
static double cost_left_rows(const kf_block *b, const kf_work *w)
{
    return numbers(b, 0, b->rows) * (double)(b->A ? b->components : 1) *
           (double)(w->hi - w->lo);
}

static double cost_inner(const kf_block *b, const kf_work *w)
{
    return full_components(b) * (double)(w->hi - w->lo) * (double)b->rows *
           (double)w->in->cols;
}

static double cost_left_inner(const kf_block *b, const kf_work *w)
{
    return numbers(b, w->lo, w->hi) * (double)w->in->rows;
}

static double cost_gram(const kf_block *b, const kf_work *w)
{
    (void)w;
    return 2 * numbers(b, 0, b->rows);
}

static double cost_read(const kf_block *b, const kf_work *w)
{
    return numbers(b, w->lo, w->hi);
}

static double cost_part(const kf_block *b, const kf_work *w)
{
    (void)w;
    return b->subset->work;
}

/* Returns the cost of f, the first time, and of mixing its values. */
static double cost_submessage(const kf_block *b, const kf_work *w)
{
    const kf_subset *s = b->subset;

    return (w->submessage == 0 ? (double)s->parts : 0) * s->work +
           (double)(s->components * s->span);
}

/* ---- the table ----------------------------------------------------------- */

static const kf_kernel kernels[] = {
    {
        .how = KF_HOW_ROWS,
        .ops = KOFN_MATVEC | KOFN_MATMUL | KOFN_STREAM,
        .dense = kf_data_rows_dense,
        .sparse = kf_data_rows_sparse,
        .gives = gives_rows,
        .cost = cost_rows,
    },
    {
        .how = KF_HOW_LEFT_ROWS,
        .ops = KOFN_LEFT,
        .left = true,
        .dense = kf_data_rows_dense,
        .sparse = kf_data_left_rows_sparse,
        .gives = gives_left_rows,
        .cost = cost_left_rows,
    },
    {
        .how = KF_HOW_INNER,
        .ops = KOFN_MATVEC | KOFN_MATMUL,
        .adjoint = true,
        .inner = true,
        .dense = kf_data_inner_dense,
        .gives = gives_inner,
        .cost = cost_inner,
    },
    {
        .how = KF_HOW_LEFT_INNER,
        .ops = KOFN_LEFT,
        .adjoint = true,
        .left = true,
        .inner = true,
        .dense = kf_data_inner_dense,
        .sparse = kf_data_left_inner_sparse,
        .gives = gives_left_inner,
        .cost = cost_left_inner,
    },
    {
        .how = KF_HOW_GRAM,
        .ops = KOFN_GRAM,
        .dense = kf_data_gram_dense,
        .sparse = kf_data_gram_sparse,
        .gives = gives_vector,
        .cost = cost_gram,
    },
    {
        .how = KF_HOW_READ,
        .ops = (unsigned)KF_READ,
        .dense = kf_data_read_dense,
        .gives = gives_block_rows,
        .cost = cost_read,
    },
    {
        .how = KF_HOW_SUBMESSAGE,
        .ops = KOFN_SUM,
        .sum = kf_subset_submessage,
        .gives = gives_segments,
        .cost = cost_submessage,
    },
    {
        .how = KF_HOW_PART,
        .ops = (unsigned)KF_PARTS,
        .sum = kf_subset_part,
        .gives = gives_segments,
        .cost = cost_part,
    },
};

const kf_kernel *kf_kernel_of(kf_how how)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].how == how)
            return &kernels[i];
    return NULL;
}

const kf_kernel *kf_kernel_for(const kofn_plan *use)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].ops & (unsigned)use->layout.problem.op &&
            kernels[i].adjoint == use->layout.adjoint)
            return &kernels[i];
    return NULL;
}

static kf_kernel_fn *function_for(const kf_kernel *k, const kf_block *b)
{
    return b->subset ? k->sum : b->A ? k->sparse : k->dense;
}

/* ---- blocks -------------------------------------------------------------- */

kf_extent kf_extent_of(const kofn_plan *p)
{
    kf_extent e = {.components = p->layout.components};

    if (p->op->factors == 0)
        return (kf_extent){p->layout.components, p->span, 1};
    kf_operation_block(&p->layout, &e.rows, &e.cols);
    return e;
}

static kf_extent extent_of_block(const kf_block *b, kf_how how)
{
    if (b->subset && how == KF_HOW_PART)
        return (kf_extent){1, b->subset->length, 1};
    if (b->subset)
        return (kf_extent){b->subset->components, b->subset->span, 1};
    return (kf_extent){b->components, b->rows, b->cols};
}

static size_t bytes_of(const kf_block *b)
{
    size_t bytes = 0;

    if (b->subset)
        return b->subset->parts * sizeof(size_t);
    if (b->A)
        return (size_t)kf_data_sparse_entries(b, 0, b->rows) * 12;
    for (size_t l = 0; l < b->components; l++)
        bytes += b->component[l].rows * b->component[l].cols *
                 kf_dtype_size(b->dtype);
    return bytes;
}

size_t kf_block_bytes(const kf_block *b)
{
    size_t bytes = 0;

    for (; b; b = b->next)
        bytes += bytes_of(b);
    return bytes;
}

/* ---- messages ------------------------------------------------------------ */

/* Fills the work; `fits` checks that the block answers the row. */
KF_WRAPS static kf_work work_of(const kf_block *b, const kf_msg *m,
                                const kofn_matrix *in, kofn_matrix *out)
{
    return (kf_work){.in = in,
                     .out = out,
                     .lo = m->lo,
                     .hi = m->hi,
                     .submessage = m->row - b->row,
                     .product = m->product,
                     .state = m->state,
                     .left = m->how == KF_HOW_LEFT_ROWS ||
                             m->how == KF_HOW_LEFT_INNER};
}

double kf_work_size(const kf_block *b, const kf_msg *m)
{
    kf_work w;

    b = kf_block_of(b, m->operand);
    if (!b)
        return 0;
    w = work_of(b, m, &m->in->m, NULL);
    return kf_kernel_of(m->how)->cost(b, &w);
}

kofn_status kf_work_with(const kf_block *b, const kf_msg *m,
                         const kf_user_multiply *user, bool (*stopped)(void *),
                         void *ud)
{
    kf_work w;

    b = kf_block_of(b, m->operand);
    if (!b)
        return kf_fail(KOFN_STATE, "no block of operand %u is stored",
                       m->operand);
    w = work_of(b, m, &m->in->m, &m->result->m);
    w.stopped = stopped;
    w.ud = ud;
    w.user = user;
    return function_for(kf_kernel_of(m->how), b)(b, &w);
}

kofn_status kf_work_do(const kf_block *b, const kf_msg *m,
                       bool (*stopped)(void *), void *ud)
{
    return kf_work_with(b, m, NULL, stopped, ud);
}

kofn_status kf_data_compute(const kf_block *b, const kofn_matrix *in, size_t lo,
                            size_t hi, kofn_matrix *out)
{
    kf_work w = {.in = in, .out = out, .lo = lo, .hi = hi};

    assert(lo <= hi);
    return function_for(kf_kernel_of(KF_HOW_ROWS), b)(b, &w);
}

static bool fits(const kf_block *b, const kf_msg *m, const kofn_matrix *in,
                 const kofn_matrix *out)
{
    const kf_kernel *k = kf_kernel_of(m->how);
    kf_work w = work_of(b, m, in, NULL);
    kf_extent e = extent_of_block(b, m->how);
    size_t rows, cols;

    if (!k || !function_for(k, b))
        return false;
    if (w.submessage >= (b->subset ? b->subset->submessages : 1) ||
        (!b->subset && m->lo >= m->hi))
        return false;
    return k->gives(&e, &w, &rows, &cols) && out->rows == rows &&
           out->cols == cols;
}

kofn_status kf_work_fits(const kf_block *b, const kf_msg *m,
                         const kofn_matrix *in, const kofn_matrix *out)
{
    if (in->dtype == b->dtype && out->dtype == b->dtype && fits(b, m, in, out))
        return KOFN_OK;
    return kf_fail(KOFN_SHAPE,
                   "task %u, row %u and strips [%zu, %zu) with an input of %zu "
                   "x %zu and a result of %zu x %zu, does not fit the block",
                   m->task, m->row, m->lo, m->hi, in->rows, in->cols, out->rows,
                   out->cols);
}
