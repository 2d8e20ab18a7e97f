/* dense.c -- the kernels for dense blocks.
 *
 * The block, the input and the output are borrowed.  A kernel asks between
 * tiles whether to stop, and must then return at once. */
#include "kernel.h"

#include <assert.h>

/* Return a view of rows [lo, hi), and of columns [lo, hi), of a matrix. */
static kofn_matrix some_rows(const kofn_matrix *a, size_t lo, size_t hi)
{
    assert(lo <= hi);
    assert(hi <= a->rows);
    return (kofn_matrix){kf_at(a, lo, 0), hi - lo, a->cols, a->ld, a->dtype};
}

static kofn_matrix some_cols(const kofn_matrix *a, size_t lo, size_t hi)
{
    assert(lo <= hi);
    assert(hi <= a->cols);
    return (kofn_matrix){kf_at(a, 0, lo), a->rows, hi - lo, a->ld, a->dtype};
}

/* ---- tiles ----------------------------------------------------------------
 */

/* Rows of a tile, and the most work between two tests for a stop.  With few
 * columns, A is read once in bands of rows.  With many columns, BLAS packs its
 * operands again in every call; in bands of 64 rows a product takes 1.3 times
 * the time.  If the inner dimension is cut, nothing is packed twice, because
 * BLAS uses steps of about KF_LOOK_UP_DEPTH itself.  So a tile has enough rows
 * that packing costs a few percent. */
#define TILE_ROWS 1024
#define TILE_WORK 1e9 /* most multiply-adds: 10 to 25 ms */

typedef struct tile {
    size_t rows, depth;
} tile;

/* Returns the size of equal parts of n, each at least `least` if possible. */
static size_t evenly(size_t n, size_t least)
{
    size_t parts = kf_max(1, n / least);

    assert(least > 0);
    return kf_max(1, n / parts + (n % parts > 0));
}

static tile tile_of(size_t rows, size_t depth, size_t cols)
{
    tile t = {kf_stride((double)depth * (double)cols, false), depth};
    double slice;

    if (cols == 1 || t.rows >= 32 * cols)
        return t;
    t.rows = kf_min(rows, TILE_ROWS);
    t.depth = evenly(depth, kf_stride((double)t.rows * (double)cols, true));
    slice = (double)t.depth * (double)cols;
    if ((double)t.rows * slice > TILE_WORK)
        t.rows = kf_max(64, (size_t)(TILE_WORK / slice));
    return t;
}

/* Rows [lo, hi) of some components, one below the other. */
typedef struct stack {
    const kofn_matrix *component;
    size_t components, lo, hi;
    void *room; /* memory for a tile if there are several components */
} stack;

/* Returns rows [at, end), columns [in, to) of the stack: a view, or a copy. */
static kofn_matrix part_of(const stack *x, size_t at, size_t end, size_t in,
                           size_t to)
{
    size_t each = x->hi - x->lo, size = kf_dtype_size(x->component->dtype);
    kofn_matrix part = {NULL, end - at, to - in, x->component->ld,
                        x->component->dtype};

    assert(at < end);
    assert(x->components == 1 || x->room);
    part.data = kf_at(&x->component[at / each], x->lo + at % each, in);
    if (x->components == 1)
        return part;
    part.data = x->room;
    part.ld = to - in;
    for (size_t r = at; r < end; r++)
        memcpy(kf_at(&part, r - at, 0),
               kf_at(&x->component[r / each], x->lo + r % each, in),
               (to - in) * size);
    return part;
}

/* Computes to = x y.  Sets *begun at the first tile; later tiles test for a
 * stop. */
static kofn_status multiply(const kf_work *w, const stack *x,
                            const kofn_matrix *y, bool *begun, char *to)
{
    size_t rows = x->components * (x->hi - x->lo), depth = x->component->cols;
    size_t row = y->cols * kf_dtype_size(y->dtype);
    tile t = tile_of(rows, depth, y->cols);

    assert(y->rows == depth);
    for (size_t at = 0; at < rows; at += t.rows)
        for (size_t in = 0; in == 0 || in < depth; in += t.depth) {
            size_t end = kf_min(in + t.depth, depth);
            kofn_matrix a, b = some_rows(y, in, end);

            if (*begun && kf_is_stopped(w))
                return KOFN_AGAIN;
            *begun = true;
            a = part_of(x, at, kf_min(at + t.rows, rows), in, end);
            kf_mat_multiply(&a, &b, in > 0, to + at * row);
        }
    return KOFN_OK;
}

/* ---- strips as they are -------------------------------------------------- */

/* Components are multiplied together if each alone has too few rows for BLAS
 * and copying them costs little in comparison. */
#define STACK_ROWS 512
#define STACK_COLS 64

static kofn_status stacked(const kf_block *b, const kf_work *w)
{
    stack x = {b->component, b->components, w->lo, w->hi, NULL};
    tile t = tile_of(b->components * (w->hi - w->lo), b->cols, w->in->cols);
    size_t rows = kf_min(t.rows, b->components * (w->hi - w->lo));
    bool begun = false;
    kofn_status st;

    assert(!w->left);
    x.room = kf_new(rows * t.depth, kf_dtype_size(b->dtype));
    if (!x.room)
        return KOFN_NOMEM;
    st = multiply(w, &x, w->in, &begun, w->out->data);
    kf_free(x.room);
    return st;
}

static bool stacks(const kf_block *b, const kf_work *w)
{
    if (b->components == 1 || w->in->cols < STACK_COLS ||
        w->hi - w->lo > STACK_ROWS)
        return false;
    for (size_t l = 0; l < b->components; l++)
        if (b->component[l].rows == 0)
            return false;
    return true;
}

/* Computes the answers of a component with the worker's own multiplication. */
static kofn_status own_rows(const kofn_matrix *component, const kf_work *w,
                            char *to)
{
    kofn_factors f = {.A = some_rows(w->left ? w->in : component, w->lo, w->hi),
                      .B = w->left ? *component : *w->in,
                      .whole = *component,
                      .left = w->left};

    assert(w->user);
    return kf_user_multiply_tiles(w, &f, false, to);
}

/* Computes the answers; those of component l are rows l (hi - lo) + [0, hi -
 * lo) of the result. */
kofn_status kf_data_rows_dense(const kf_block *b, const kf_work *w)
{
    size_t size = (w->hi - w->lo) * w->out->cols * kf_dtype_size(b->dtype);
    bool begun = false;
    kofn_status st = KOFN_OK;

    if (!w->left && !w->user && stacks(b, w))
        return stacked(b, w);
    for (size_t l = 0; l < b->components && !st; l++) {
        const kofn_matrix *component = &b->component[l];
        char *to = (char *)w->out->data + l * size;
        stack x = {w->left ? w->in : component, 1, w->lo, w->hi, NULL};

        if (component->rows == 0)
            memset(to, 0, size);
        else if (w->user)
            st = own_rows(component, w, to);
        else
            st = multiply(w, &x, w->left ? component : w->in, &begun, to);
    }
    return st;
}

/* ---- sums -----------------------------------------------------------------
 *
 * In steps that are small enough for BLAS to do one without looking up; what
 * the worker multiplies itself is cut further where it is multiplied. */

static kofn_status product(const kf_work *w, const kofn_factors *f, bool add,
                           void *to)
{
    if (w->user)
        return kf_user_multiply_tiles(w, f, add, to);
    kf_mat_multiply(&f->A, &f->B, add, to);
    return KOFN_OK;
}

/* ---- sums over strips ---------------------------------------------------- */

/* Returns the number of strips of each component in the input; components are
 * one after the other. */
static size_t span_of(const kf_block *b, const kf_work *w)
{
    assert((w->left ? w->in->cols : w->in->rows) % b->components == 0);
    return (w->left ? w->in->cols : w->in->rows) / b->components;
}

/* Adds up the products of strips [lo, hi).  *begun is true after the first
 * product. */
static kofn_status add_strips(const kf_block *b, const kf_work *w, size_t lo,
                              size_t hi, bool *begun)
{
    size_t span = span_of(b, w);
    size_t step =
        w->user ? hi - lo
                : kf_stride((double)w->out->rows * (double)w->out->cols, true);

    for (size_t l = 0; l < b->components; l++)
        for (size_t at = lo; at < hi; at += step) {
            size_t end = kf_min(at + step, hi);
            kofn_factors f = {.whole = b->component[l], .left = w->left};

            if (b->component[l].rows == 0)
                continue;
            if (*begun && kf_is_stopped(w))
                return KOFN_AGAIN;
            if (w->left) {
                f.A = some_cols(w->in, l * span + at, l * span + end);
                f.B = some_rows(&b->component[l], at, end);
            } else {
                f.A = some_cols(&b->component[l], at, end);
                f.B = some_rows(w->in, l * span + at, l * span + end);
            }
            TRY(product(w, &f, *begun, w->out->data));
            *begun = true;
        }
    return KOFN_OK;
}

/* Computes the sum; strips beyond the last continue with the first. */
kofn_status kf_data_inner_dense(const kf_block *b, const kf_work *w)
{
    size_t span = span_of(b, w);
    bool begun = false;
    kofn_status st = add_strips(b, w, w->lo, kf_min(w->hi, span), &begun);

    assert(w->hi - w->lo <= span);
    if (!st && w->hi > span)
        st = add_strips(b, w, 0, w->hi - span, &begun);
    if (!st && !begun)
        memset(w->out->data, 0,
               w->out->rows * w->out->cols * kf_dtype_size(w->out->dtype));
    return st;
}

/* ---- A' A x -------------------------------------------------------------- */

/* Bytes of rows at a time, still in the cache for their second use. */
#define GRAM_BYTES ((size_t)256 << 10)

static size_t gram_step(const kofn_matrix *a, const kf_work *w)
{
    size_t row = a->cols * kf_dtype_size(a->dtype);

    if (w->user && w->user->work / (double)a->cols < (double)a->rows)
        return kf_max(1, (size_t)(w->user->work / (double)a->cols));
    return w->user ? a->rows : kf_max(1, GRAM_BYTES / row);
}

kofn_status kf_data_gram_dense(const kf_block *b, const kf_work *w)
{
    const kofn_matrix *a = &b->component[0];
    size_t size = kf_dtype_size(b->dtype), step = gram_step(a, w);
    kofn_status st = KOFN_OK;
    void *t;

    memset(w->out->data, 0, w->out->rows * size);
    if (a->rows == 0)
        return KOFN_OK;
    t = kf_new(kf_min(step, a->rows), size);
    if (!t)
        return KOFN_NOMEM;
    for (size_t at = 0; at < a->rows && !st; at += step) {
        kofn_matrix rows = some_rows(a, at, kf_min(at + step, a->rows));
        kofn_factors once = {.A = rows, .B = *w->in, .whole = *a};
        kofn_factors twice = {.A = {t, 1, rows.rows, rows.rows, b->dtype},
                              .B = rows,
                              .whole = *a,
                              .left = true};

        if (at && kf_is_stopped(w))
            st = KOFN_AGAIN;
        if (!st)
            st = product(w, &once, false, t);
        if (!st)
            st = product(w, &twice, true, w->out->data);
    }
    kf_free(t);
    return st;
}

/* ---- the block itself ---------------------------------------------------- */

kofn_status kf_data_read_dense(const kf_block *b, const kf_work *w)
{
    size_t n = w->hi - w->lo, row = b->cols * kf_dtype_size(b->dtype);

    assert(w->hi <= b->rows);
    for (size_t l = 0; l < b->components; l++) {
        kofn_matrix component = kf_block_state(b, w->state, l);

        for (size_t i = 0; i < n; i++) {
            void *to = kf_at(w->out, l * n + i, 0);

            if (component.rows)
                memcpy(to, kf_at(&component, w->lo + i, 0), row);
            else
                memset(to, 0, row);
        }
    }
    return KOFN_OK;
}
