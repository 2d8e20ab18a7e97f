/* write.c -- matrices to .npy, Matrix Market and CSV files.
 *
 * Writers take NaN and infinity: an answer given in part (KOFN_PARTIAL) has
 * NaN in the rows that were lost, and must not be lost with them.
 *
 * Owns nothing but the open kf_out.  Numbers are written so that they read
 * back as the same.
 */
#include "io.h"
#include "text.h"

#include <stdio.h>

/* What is written.  A complex number is two adjacent columns. */
typedef struct form {
    unsigned dims;
    size_t width; /* columns of a number: 1 or 2 */
} form;

static kofn_status check(const kofn_matrix *a, form as)
{
    unsigned dims = as.dims;

    if (!a || !a->data)
        return kf_fail(KOFN_INVAL, "there is no matrix to write");
    if (a->dtype != KOFN_F64 && a->dtype != KOFN_F32)
        return kf_fail(KOFN_INVAL, "the matrix has the unknown dtype %d",
                       (int)a->dtype);
    if (a->rows == 0 || a->cols == 0)
        return kf_fail(KOFN_SHAPE, "the %zu x %zu matrix is empty", a->rows,
                       a->cols);
    if (a->ld < a->cols)
        return kf_fail(KOFN_SHAPE, "ld = %zu is less than the %zu columns",
                       a->ld, a->cols);
    if (dims != 1 && dims != 2)
        return kf_fail(KOFN_INVAL, "dims = %u is neither 1 nor 2", dims);
    if (a->cols % as.width != 0)
        return kf_fail(KOFN_SHAPE,
                       "complex numbers take two columns each, and the matrix "
                       "has %zu",
                       a->cols);
    if (dims == 1 && a->cols != as.width)
        return kf_fail(KOFN_SHAPE, "dims = 1, but the matrix has %zu columns",
                       a->cols / as.width);
    return KOFN_OK;
}

static kofn_status put_number(kf_out *o, double v, bool single, char end)
{
    char text[KF_DIGITS + 1];
    size_t n = kf_io_print_number(text, v, single);

    text[n] = end;
    return kf_out_put(o, text, n + 1);
}

/* ---- .npy ---------------------------------------------------------------- */

static kofn_status put_swapped(kf_out *o, const unsigned char *p, size_t n,
                               size_t size)
{
    for (size_t k = 0; k < n; k++, p += size) {
        unsigned char x[8];

        for (size_t b = 0; b < size; b++)
            x[b] = p[size - 1 - b];
        TRY(kf_out_put(o, x, size));
    }
    return KOFN_OK;
}

static kofn_status put_npy(kf_out *o, const kofn_matrix *a, form as)
{
    size_t size = kf_dtype_size(a->dtype);
    bool flat = a->ld == a->cols;
    size_t runs = flat ? 1 : a->rows, length = flat ? a->rows : 1;
    char dict[128], shape[64], head[10] = "\x93NUMPY\x01";
    int n, pad;

    if (as.dims == 1)
        snprintf(shape, sizeof shape, "(%zu,)", a->rows);
    else
        snprintf(shape, sizeof shape, "(%zu, %zu)", a->rows,
                 a->cols / as.width);
    n = snprintf(dict, sizeof dict,
                 "{'descr': '<%c%zu', 'fortran_order': False, 'shape': %s, }",
                 as.width == 2 ? 'c' : 'f', size * as.width, shape);
    /* With its line end the header makes the numbers begin at a multiple of
     * 64, so that they can be mapped. */
    pad = 63 - (10 + n) % 64;
    head[8] = (char)(n + pad + 1);
    TRY(kf_out_put(o, head, sizeof head));
    TRY(kf_out_text(o, "%s%*s\n", dict, pad, ""));
    length *= a->cols;
    for (size_t r = 0; r < runs; r++)
        if (KF_BIG)
            TRY(put_swapped(o, kf_at(a, r, 0), length, size));
        else
            TRY(kf_out_put(o, kf_at(a, r, 0), length * size));
    return KOFN_OK;
}

/* ---- CSV ----------------------------------------------------------------- */

static kofn_status put_csv(kf_out *o, const kofn_matrix *a, form as)
{
    bool single = a->dtype == KOFN_F32;

    (void)as;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            TRY(put_number(o, kf_mat_entry(a, i, j), single,
                           j + 1 < a->cols ? ',' : '\n'));
    return KOFN_OK;
}

/* ---- Matrix Market ------------------------------------------------------- */

/* "i j" and `end`, without printf: these are most of a large file. */
static kofn_status put_place(kf_out *o, size_t i, size_t j, char end)
{
    char text[48];
    size_t at = sizeof text;

    text[--at] = end;
    do
        text[--at] = (char)('0' + j % 10);
    while (j /= 10);
    text[--at] = ' ';
    do
        text[--at] = (char)('0' + i % 10);
    while (i /= 10);
    return kf_out_put(o, text + at, sizeof text - at);
}

static kofn_status put_sparse(kf_out *o, const kofn_sparse *a)
{
    size_t nnz = a->ptr[a->rows];
    bool pattern = true;

    for (size_t k = 0; k < nnz && pattern; k++)
        pattern = a->val[k] == 1;
    TRY(kf_out_text(o, "%%%%MatrixMarket matrix coordinate %s general\n",
                    pattern ? "pattern" : "real"));
    TRY(kf_out_text(o, "%zu %zu %zu\n", a->rows, a->cols, nnz));
    for (size_t i = 0; i < a->rows; i++)
        for (size_t k = a->ptr[i]; k < a->ptr[i + 1]; k++) {
            size_t j = (size_t)a->col[k] + 1;

            TRY(put_place(o, i + 1, j, pattern ? '\n' : ' '));
            if (!pattern)
                TRY(put_number(o, a->val[k], false, '\n'));
        }
    return KOFN_OK;
}

static kofn_status write_sparse(const char *path, const kofn_sparse *a)
{
    kf_out o;

    TRY(kf_mat_check_sparse(a, "the matrix"));
    TRY(kf_out_open(&o, path));
    return kf_out_close(&o, put_sparse(&o, a));
}

static kofn_status put_array(kf_out *o, const kofn_matrix *a, form as)
{
    bool single = a->dtype == KOFN_F32;
    size_t w = as.width;

    TRY(kf_out_text(o, "%%%%MatrixMarket matrix array %s general\n",
                    w == 2 ? "complex" : "real"));
    TRY(kf_out_text(o, "%zu %zu\n", a->rows, a->cols / w));
    for (size_t j = 0; j < a->cols; j += w)
        for (size_t i = 0; i < a->rows; i++)
            for (size_t k = 0; k < w; k++)
                TRY(put_number(o, kf_mat_entry(a, i, j + k), single,
                               k + 1 < w ? ' ' : '\n'));
    return KOFN_OK;
}

/* ---- anything ------------------------------------------------------------ */

kofn_status kofn_write_bytes(const char *path, const void *bytes, size_t length)
{
    kf_out o;

    TRY(kf_out_open(&o, path));
    return kf_out_close(&o, kf_out_put(&o, bytes, length));
}

/* ---- by suffix ----------------------------------------------------------- */

static kofn_status write_by(kofn_status (*put)(kf_out *o, const kofn_matrix *a,
                                               form as),
                            const char *path, const kofn_matrix *a, form as)
{
    kf_out o;

    TRY(check(a, as));
    TRY(kf_out_open(&o, path));
    return kf_out_close(&o, put(&o, a, as));
}

kofn_status kofn_write_npy(const char *path, const kofn_matrix *a,
                           unsigned dims)
{
    return write_by(put_npy, path, a, (form){dims, 1});
}

kofn_status kofn_write_complex(const char *path, const kofn_matrix *a,
                               unsigned dims)
{
    const form as = {dims, 2};
    char name[KF_NAME];

    if (!path)
        return kf_fail(KOFN_INVAL, "the file's name is NULL");
    if (kf_io_has_suffix(path, ".npy"))
        return write_by(put_npy, path, a, as);
    if (kf_io_has_suffix(path, ".mtx"))
        return write_by(put_array, path, a, as);
    kf_io_show_path(name, path);
    return kf_fail(KOFN_INVAL,
                   "cannot write complex numbers to %s: %s; name it .npy or "
                   ".mtx",
                   name,
                   kf_io_has_suffix(path, ".csv") ? "CSV has real numbers only"
                                                  : "it has no known format");
}

kofn_status kofn_write(const char *path, kofn_operand a, unsigned dims)
{
    const form as = {dims, 1};
    char name[KF_NAME];

    if (!path)
        return kf_fail(KOFN_INVAL, "the file's name is NULL");
    kf_io_show_path(name, path);
    if (a.sparse && (dims != 2 || !kf_io_has_suffix(path, ".mtx")))
        return kf_fail(KOFN_INVAL,
                       "cannot write a sparse matrix of %u dimensions to %s: "
                       "say 2, and name it .mtx",
                       dims, name);
    if (a.sparse)
        return write_sparse(path, a.sparse);
    if (kf_io_has_suffix(path, ".npy"))
        return write_by(put_npy, path, a.dense, as);
    if (kf_io_has_suffix(path, ".csv"))
        return write_by(put_csv, path, a.dense, as);
    if (kf_io_has_suffix(path, ".mtx"))
        return write_by(put_array, path, a.dense, as);
    return kf_fail(KOFN_INVAL, "no format for %s: name it .npy, .csv or .mtx",
                   name);
}
