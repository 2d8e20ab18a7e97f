/* complex.c -- complex inputs as inputs of real jobs.
 *
 * The numbers i and 1 are the real matrices [0 1; -1 0] and [1 0; 0 1], acting
 * on rows (real part, imaginary part).  So a product of complex matrices is one
 * of real matrices, and everything that holds for the rows of these holds for
 * its rows.
 *
 * Owns nothing. */
#include "base/base.h"
#include "mat/mat.h"

static kofn_status check(const kofn_matrix *X, size_t width,
                         const kofn_matrix *out)
{
    size_t rows, cols;

    TRY(kf_mat_check_matrix(X, "X"));
    TRY(kf_mat_check_matrix(out, "out"));
    if (X->dtype != out->dtype)
        return kf_fail(KOFN_INVAL, "X and out have different types");
    if (X->cols % width != 0)
        return kf_fail(KOFN_SHAPE,
                       "complex numbers take two columns each, and X has %zu",
                       X->cols);
    if (!kf_mul(X->rows, 2, &rows) || !kf_mul(X->cols / width, 2, &cols) ||
        out->rows != rows || out->cols != cols)
        return kf_fail(KOFN_SHAPE,
                       "out is %zu x %zu; it has twice the rows and columns of "
                       "X, which has %zu x %zu numbers",
                       out->rows, out->cols, X->rows, X->cols / width);
    return KOFN_OK;
}

kofn_status kofn_complex_input(const kofn_matrix *X, bool is_complex,
                               const kofn_matrix *out)
{
    size_t width = is_complex ? 2 : 1;

    TRY(check(X, width, out));
    for (size_t i = 0; i < X->rows; i++)
        for (size_t j = 0; j < out->cols; j += 2) {
            double a = kf_mat_entry(X, i, j / 2 * width);
            double b = is_complex ? kf_mat_entry(X, i, j + 1) : 0;

            kf_mat_put(out, 2 * i, j, a);
            kf_mat_put(out, 2 * i, j + 1, b);
            kf_mat_put(out, 2 * i + 1, j, -b);
            kf_mat_put(out, 2 * i + 1, j + 1, a);
        }
    return KOFN_OK;
}
