/* sparse.c -- sparse matrices as one block of memory, and their order.
 *
 * A sparse matrix is one allocation, freed by kofn_free.  Its arrays must not
 * be freed. */
#include "io.h"

#include <math.h>

#define ALIGN 64

/* Lay n elements behind the *total bytes there are; *at is where they begin. */
static bool lay(size_t *total, size_t n, size_t size, size_t *at)
{
    size_t bytes;

    if (!kf_add(*total, ALIGN - 1, at))
        return false;
    *at -= *at % ALIGN;
    return kf_mul(n, size, &bytes) && kf_add(*at, bytes, total);
}

kofn_sparse *kf_io_sparse_new(size_t rows, size_t cols, size_t nnz)
{
    size_t total = sizeof(kofn_sparse), ptr, val, col, rows1;
    kofn_sparse *s;
    unsigned char *block;

    if (!kf_add(rows, 1, &rows1) || !lay(&total, rows1, sizeof(size_t), &ptr) ||
        !lay(&total, nnz, sizeof(double), &val) ||
        !lay(&total, nnz, sizeof(uint32_t), &col)) {
        kf_fail(KOFN_NOMEM,
                "a sparse matrix of %zu rows and %zu entries does not fit in "
                "memory",
                rows, nnz);
        return NULL;
    }
    block = kf_new(total, 1);
    if (!block)
        return NULL;
    memset(block + ptr, 0, rows1 * sizeof(size_t));
    s = (void *)block;
    *s = (kofn_sparse){rows, cols, (void *)(block + ptr), (void *)(block + col),
                       (void *)(block + val)};
    return s;
}

/* ---- entries ------------------------------------------------------------- */

kofn_status kf_io_changed(void)
{
    return kf_fail(KOFN_IO, "the file changed while it was read");
}

size_t kf_io_sparse_lay(kofn_sparse *s)
{
    size_t *ptr = kf_sparse_ptr(s);

    for (size_t i = 0; i < s->rows; i++)
        ptr[i + 1] += ptr[i];
    memset(kf_sparse_col(s), 0, ptr[s->rows] * sizeof(uint32_t));
    return ptr[s->rows];
}

bool kf_io_sparse_put(kofn_sparse *s, size_t room, size_t i, size_t j, double v)
{
    size_t at = kf_sparse_ptr(s)[i]++;

    if (at >= room)
        return false;
    kf_sparse_col(s)[at] = (uint32_t)j;
    kf_sparse_val(s)[at] = v;
    return true;
}

kofn_status kf_io_sparse_laid(kofn_sparse *s, size_t room, bool fits)
{
    size_t *ptr = kf_sparse_ptr(s), last = 0;

    /* ptr[i] has moved to the end of row i, which is where i + 1 began. */
    for (size_t i = 0; i <= s->rows; i++) {
        size_t end = ptr[i];

        fits &= end >= last;
        ptr[i] = last;
        last = end;
    }
    return fits && ptr[s->rows] == room ? KOFN_OK : kf_io_changed();
}

/* ---- order --------------------------------------------------------------- */

/* Entries (col[k], val[k]) come in order of column, then value. */
static inline bool before(const uint32_t *col, const double *val, size_t a,
                          size_t b)
{
    return col[a] < col[b] || (col[a] == col[b] && val[a] < val[b]);
}

static void swap(uint32_t *col, double *val, size_t a, size_t b)
{
    uint32_t c = col[a];
    double v = val[a];

    col[a] = col[b];
    val[a] = val[b];
    col[b] = c;
    val[b] = v;
}

static void insertion_sort(uint32_t *col, double *val, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k && before(col, val, k, k - 1); k--)
            swap(col, val, k, k - 1);
}

static void sift(uint32_t *col, double *val, size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && before(col, val, child, child + 1);
        if (!before(col, val, at, child))
            return;
        swap(col, val, at, child);
    }
}

/* Heap sort: in place and n log n whatever a stranger's file holds. */
static void sort_row(uint32_t *col, double *val, size_t n)
{
    size_t sorted = 1;

    while (sorted < n && !before(col, val, sorted, sorted - 1))
        sorted++;
    if (sorted >= n)
        return;
    if (n <= 32) {
        insertion_sort(col, val, n);
        return;
    }
    for (size_t i = n / 2; i > 0; i--)
        sift(col, val, i - 1, n);
    for (size_t i = n - 1; i > 0; i--) {
        swap(col, val, 0, i);
        sift(col, val, 0, i);
    }
}

kofn_status kf_io_sparse_tidy(kofn_sparse *s)
{
    return kf_io_sparse_tidy_wide(s, 1);
}

kofn_status kf_io_sparse_tidy_wide(kofn_sparse *s, size_t width)
{
    size_t *ptr = kf_sparse_ptr(s), kept = 0, from = 0;
    uint32_t *col = kf_sparse_col(s);
    double *val = kf_sparse_val(s);

    for (size_t i = 0; i < s->rows; i++) {
        size_t to = ptr[i + 1], first = kept;

        sort_row(col + from, val + from, to - from);
        for (size_t k = from; k < to; k++) {
            if (kept > first && col[kept - 1] == col[k]) {
                val[kept - 1] += val[k];
                if (!isfinite(val[kept - 1]))
                    return kf_fail(KOFN_NONFINITE,
                                   "the entries for row %zu, column %zu add "
                                   "up to infinity",
                                   i + 1, col[k] / width + 1);
            } else {
                col[kept] = col[k];
                val[kept++] = val[k];
            }
        }
        from = to;
        ptr[i + 1] = kept;
    }
    return KOFN_OK;
}
