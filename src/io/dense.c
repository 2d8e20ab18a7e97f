/* dense.c -- the numbers of a dense matrix that is read: their room, and
 * whether they are all there and finite.
 *
 * Owns nothing: what is allocated goes into the kofn_file. */
#include "io.h"

#include <assert.h>

kofn_status kf_io_check_size(size_t have, size_t rows, size_t cols, size_t size)
{
    size_t need;

    if (rows == 0 || cols == 0)
        return kf_fail(KOFN_FORMAT, "the array of %zu x %zu numbers is empty",
                       rows, cols);
    if (!kf_mul(rows, cols, &need) || !kf_mul(need, size, &need))
        return kf_fail(KOFN_FORMAT,
                       "the header says %zu x %zu numbers, more than there is "
                       "memory anywhere",
                       rows, cols);
    if (have != need)
        return kf_fail(KOFN_FORMAT,
                       "%zu x %zu numbers of %zu bytes need %zu bytes, but "
                       "%s%zu follow the header%s",
                       rows, cols, size, need, have < need ? "only " : "", have,
                       have < need ? ": the file is cut off"
                                   : "; kofn reads one array a file");
    return KOFN_OK;
}

kofn_status kf_file_dense(kf_file *f, size_t rows, size_t cols)
{
    size_t n;

    assert(!f->owned);
    if (!kf_mul(rows, cols, &n))
        return kf_fail(KOFN_NOMEM, "%zu x %zu numbers do not fit in memory",
                       rows, cols);
    f->owned = kf_new(n, sizeof(double));
    if (!f->owned)
        return KOFN_NOMEM;
    f->dense = (kofn_matrix){f->owned, rows, cols, cols, KOFN_F64};
    return KOFN_OK;
}

kofn_status kf_io_refuse_complex(void)
{
    return kf_fail(KOFN_FORMAT,
                   "it holds complex numbers; kofn matvec and kofn matmul take "
                   "them, and all else needs real numbers");
}

kofn_status kf_file_odd(const kf_file *f, kofn_status st, size_t i, size_t j,
                        const char *what)
{
    assert(i < f->dense.rows);
    assert(j < f->dense.cols);
    if (f->shown.is_complex)
        j /= 2;
    if (f->shown.dims == 1)
        return kf_fail(st, "element [%zu] is %s", i, what);
    return kf_fail(st, "element [%zu, %zu] is %s", i, j, what);
}

kofn_status kf_file_finite(const kf_file *f)
{
    const kofn_matrix *a = &f->dense;
    size_t at;

    for (size_t i = 0; i < a->rows; i++) {
        at = kf_mat_first_odd(kf_at(a, i, 0), a->cols, a->dtype);
        if (at < a->cols)
            return kf_file_odd(f, KOFN_NONFINITE, i, at, "NaN or infinite");
    }
    return KOFN_OK;
}
