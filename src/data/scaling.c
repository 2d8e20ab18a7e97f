/* scaling.c -- row and column equilibration.
 *
 * A code adds multiples of rows.  So the rounding in a small row is that of the
 * largest row in the mixture.  If rows that are mixed differ in size, each is
 * multiplied by the power of two that gives it size 1 before it is coded.  The
 * result is divided by the same power.  Both steps are exact, and the rounding
 * is then relative to the row itself.  Columns are treated in the same way
 * (docs/numerics.md).
 *
 * The digits belong to the caller and are freed by kf_scaling_free.  Only
 * powers of two are used, so no rounding is added. */
#include "data.h"
#include "scale.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* Largest difference in size, in binary digits, for which rows or columns stay
 * unscaled.  An input has a smaller limit, because its copy costs less.
 * Together they may lose 2^6. */
#define ALIKE 5
#define ALIKE_INPUT 1
/* Powers of two between these exponents are normal numbers, and so are their
 * inverses. */
#define PLAIN 1000

/* True if the scales differ by at most `digits` and are not near the lower end
 * of the range.  The rows or columns then stay unscaled. */
static bool alike(const kf_scale *s, size_t n, int digits)
{
    int least = INT_MAX, most = INT_MIN;

    for (size_t i = 0; i < n; i++)
        if (!s[i].zero) {
            least = s[i].exponent < least ? s[i].exponent : least;
            most = s[i].exponent > most ? s[i].exponent : most;
        }
    return least > most || (most - least <= digits && most > KF_MAT_TINY_F64);
}

/* Computes the digits that equilibrate rows or columns; NULL if there is
 * nothing to do.  Lines of zeros get KF_SCALING_ZERO, so that rounding mixed
 * into their products vanishes. */
static kofn_status even_out(const kf_scale *s, size_t n, int digits, int **out)
{
    bool as_they_are = alike(s, n, digits), zeros = false;

    *out = NULL;
    for (size_t i = 0; i < n; i++)
        zeros |= s[i].zero;
    if (as_they_are && !zeros)
        return KOFN_OK;
    TRY_NEW(*out, n);
    for (size_t i = 0; i < n; i++)
        (*out)[i] = s[i].zero     ? KF_SCALING_ZERO
                    : as_they_are ? 0
                                  : -s[i].exponent;
    return KOFN_OK;
}

kofn_status kf_scaling_even(const kf_scale *s, size_t n, int **out)
{
    return even_out(s, n, ALIKE, out);
}

/* Computes the digits for the rows of `a`, or of a sparse S. */
static kofn_status rows_of(const kofn_matrix *a, const kofn_sparse *S,
                           int digits, int **out)
{
    size_t rows = S ? S->rows : a->rows;
    kf_scale *s;
    kofn_status st;

    TRY_NEW(s, rows);
    for (size_t i = 0; i < rows; i++)
        s[i] = S ? kf_scale_of(S->val + S->ptr[i], S->ptr[i + 1] - S->ptr[i], 1,
                               KOFN_F64)
                 : kf_scale_of(kf_at(a, i, 0), a->cols, 1, a->dtype);
    st = even_out(s, rows, digits, out);
    kf_free(s);
    return st;
}

/* ---- large rows, or in large columns ------------------------------------- */

/* Returns the binary exponent of an entry that is not 0, as frexp does.  This
 * function takes most of the time here. */
static inline int digits_of(double x)
{
    uint64_t bits;
    int e;

    memcpy(&bits, &x, sizeof bits);
    e = (int)(bits >> 52 & 0x7ff);
    if (e > 0)
        return e - 1022;
    frexp(x, &e); /* subnormal */
    return e;
}

/* Scaling of columns in logarithms, and sums for the mean. */
typedef struct even {
    const kofn_matrix *a; /* or */
    const kofn_sparse *S;
    size_t rows, cols;
    double *col, *sum, *count;
} even;

static size_t entries_of(const even *by, size_t row)
{
    return by->S ? by->S->ptr[row + 1] - by->S->ptr[row] : by->cols;
}

static double entry_of(const even *by, size_t row, size_t e, size_t *col)
{
    size_t at = by->S ? by->S->ptr[row] + e : e;

    *col = by->S ? by->S->col[at] : e;
    return by->S ? by->S->val[at] : kf_mat_entry(by->a, row, e);
}

/* Returns the scaling of a row that makes the mean of its exponents 0. */
static double even_row(const even *by, size_t row)
{
    double sum = 0, count = 0;

    for (size_t e = 0; e < entries_of(by, row); e++) {
        size_t col;
        double x = entry_of(by, row, e, &col);

        if (x != 0) {
            sum += digits_of(x) + by->col[col];
            count++;
        }
    }
    return count > 0 ? -sum / count : 0;
}

/* Scales the rows in this way, and then the columns.  Returns the largest
 * change of a column. */
static double even_once(even *by)
{
    double most = 0;

    memset(by->sum, 0, by->cols * sizeof *by->sum);
    memset(by->count, 0, by->cols * sizeof *by->count);
    for (size_t i = 0; i < by->rows; i++) {
        double row = even_row(by, i);

        for (size_t e = 0; e < entries_of(by, i); e++) {
            size_t col;
            double x = entry_of(by, i, e, &col);

            if (x != 0) {
                by->sum[col] += digits_of(x) + row;
                by->count[col]++;
            }
        }
    }
    for (size_t j = 0; j < by->cols; j++) {
        double is = by->count[j] > 0 ? -by->sum[j] / by->count[j] : 0;

        most = fmax(most, fabs(is - by->col[j]));
        by->col[j] = is;
    }
    return most;
}

/* Finds scalings of the columns.  Large numbers in a row may come from the row
 * or from its columns.  Least squares on the logarithms of all entries decides
 * (Curtis and Reid, "On the automatic scaling of matrices for Gaussian
 * elimination", 1972).  The column with the least scaling stays unscaled,
 * because rows absorb a common factor. */
static kofn_status even_columns(const kofn_matrix *a, const kofn_sparse *S,
                                int **out)
{
    size_t rows = S ? S->rows : a->rows, cols = S ? S->cols : a->cols;
    even by = {a,
               S,
               rows,
               cols,
               kf_zero(cols, sizeof *by.col),
               kf_new(cols, sizeof *by.sum),
               kf_new(cols, sizeof *by.count)};
    int *col = kf_new(cols, sizeof *col);
    bool room = by.col && by.sum && by.count && col;
    double least = HUGE_VAL;

    for (int turn = 0; room && turn < 40 && even_once(&by) > 0.5; turn++)
        ;
    for (size_t j = 0; room && j < cols; j++)
        least = by.count[j] > 0 ? fmin(least, by.col[j]) : least;
    for (size_t j = 0; room && j < cols; j++)
        col[j] =
            by.count[j] > 0 ? (int)fmin(PLAIN, rint(by.col[j] - least)) : 0;
    kf_free(by.col);
    kf_free(by.sum);
    kf_free(by.count);
    *out = col;
    return room ? KOFN_OK : KOFN_NOMEM;
}

/* Computes the digits of rows after columns are equilibrated by least squares.
 */
static kofn_status even_rows(const kofn_matrix *a, const kofn_sparse *S,
                             int **out)
{
    kf_scaling own = {NULL, NULL};
    kofn_matrix dense = {NULL, 0, 0, 0, KOFN_F64};
    kofn_sparse sparse = S ? *S : (kofn_sparse){.rows = 0};
    double *val = NULL;
    kofn_status st = even_columns(a, S, &own.col);

    if (!st)
        st = S ? kf_scaling_values(S, &own, &val)
               : kf_scaling_copy(a, NULL, own.col, 1, &dense);
    sparse.val = val;
    if (!st)
        st = rows_of(&dense, S ? &sparse : NULL, ALIKE, out);
    kf_free(val);
    kf_free(dense.data);
    kf_scaling_free(&own);
    return st;
}

/* ---- columns ------------------------------------------------------------- */

static kofn_status dense_columns_of(const kofn_matrix *a, const int *row,
                                    int digits, int **out)
{
    kofn_matrix scaled = *a;
    kf_scales s = {.count = 0};
    kofn_status st = KOFN_OK;

    if (row)
        st = kf_scaling_copy(a, row, NULL, 1, &scaled);
    if (!st)
        st = kf_scales_of_columns(&scaled, &s);
    if (!st)
        st = even_out(s.of, s.count, digits, out);
    kf_scales_free(&s);
    if (row)
        kf_free(scaled.data);
    return st;
}

/* Uses the largest numbers, which are close enough to norms. */
static kofn_status sparse_columns_of(const kofn_sparse *S, const int *row,
                                     int **out)
{
    kf_scale *s;
    kofn_status st;

    TRY_NEW(s, S->cols);
    for (size_t j = 0; j < S->cols; j++)
        s[j] = (kf_scale){1, INT_MIN, true};
    for (size_t i = 0; i < S->rows; i++)
        for (size_t e = S->ptr[i]; e < S->ptr[i + 1]; e++) {
            kf_scale *of = &s[S->col[e]];
            int is = digits_of(S->val[e]) + (row ? row[i] : 0);

            if (S->val[e] == 0)
                continue;
            of->zero = false;
            of->exponent = is > of->exponent ? is : of->exponent;
        }
    st = even_out(s, S->cols, ALIKE, out);
    kf_free(s);
    return st;
}

/* Computes the digits of the columns of the scaled rows. */
static kofn_status columns_of(const kofn_matrix *a, const kofn_sparse *S,
                              const int *row, int **out)
{
    return S ? sparse_columns_of(S, row, out)
             : dense_columns_of(a, row, ALIKE, out);
}

static bool has_zeros(const kofn_matrix *a)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            if (kf_mat_entry(a, i, j) == 0)
                return true;
    return false;
}

/* Computes the digits of rows, then those of columns on the scaled rows.  If
 * both differ in size, a row may only seem large because of its columns; then
 * even_rows decides.  Without zeros in the matrix the norms are reliable. */
static kofn_status levels_of(const kofn_matrix *a, const kofn_sparse *S,
                             bool rows, bool cols, kf_scaling *out)
{
    size_t m = S ? S->rows : a->rows, n = S ? S->cols : a->cols;

    *out = (kf_scaling){NULL, NULL};
    if (rows)
        TRY(rows_of(a, S, ALIKE, &out->row));
    if (cols || kf_scaling_change(out, m, 0))
        TRY(columns_of(a, S, out->row, &out->col));
    if (!kf_scaling_change(out, m, 0) ||
        !kf_scaling_change(&(kf_scaling){NULL, out->col}, 0, n) ||
        !(S || has_zeros(a)))
        return KOFN_OK;
    kf_scaling_free(out);
    TRY(even_rows(a, S, &out->row));
    return cols || kf_scaling_change(out, m, 0)
               ? columns_of(a, S, out->row, &out->col)
               : KOFN_OK;
}

static kofn_status all_or_none(kofn_status st, kf_scaling *out)
{
    if (st)
        kf_scaling_free(out);
    return st;
}

kofn_status kf_scaling_of(const kofn_matrix *a, bool rows, bool cols,
                          kf_scaling *out)
{
    return all_or_none(levels_of(a, NULL, rows, cols, out), out);
}

kofn_status kf_scaling_of_sparse(const kofn_sparse *S, bool cols,
                                 kf_scaling *out)
{
    return all_or_none(levels_of(NULL, S, true, cols, out), out);
}

kofn_status kf_scaling_of_input(const kofn_matrix *a, bool rows,
                                kf_scaling *out)
{
    *out = (kf_scaling){NULL, NULL};
    return rows ? rows_of(a, NULL, ALIKE_INPUT, &out->row)
                : dense_columns_of(a, NULL, ALIKE_INPUT, &out->col);
}

bool kf_scaling_change(const kf_scaling *l, size_t rows, size_t cols)
{
    bool yes = false;

    for (size_t i = 0; l->row && i < rows; i++)
        yes |= l->row[i] != 0 && l->row[i] != KF_SCALING_ZERO;
    for (size_t j = 0; l->col && j < cols; j++)
        yes |= l->col[j] != 0 && l->col[j] != KF_SCALING_ZERO;
    return yes;
}

void kf_scaling_free(kf_scaling *l)
{
    kf_free(l->row);
    kf_free(l->col);
    *l = (kf_scaling){NULL, NULL};
}

/* ---- equilibrated operands ----------------------------------------------- */

/* Columns that are scaled together: their factors are made once for all rows.
 */
#define TOGETHER 256
#define LANES 16 /* constant, for vector instructions */

typedef struct raising {
    size_t first, n; /* columns */
    const int *col;
    int sign;
    int all;             /* digits for every row, in addition to its own */
    double by[TOGETHER]; /* factors of the columns: powers of two */
    int most;            /* largest exponent of these */
} raising;

static void choose_columns(raising *r, size_t first, size_t cols)
{
    assert(first < cols);
    r->first = first;
    r->n = kf_min(TOGETHER, cols - first);
    r->most = 0;
    for (size_t j = 0; j < r->n; j++) {
        int e = r->col ? r->col[first + j] : 0;

        r->by[j] = ldexp(1, r->sign * e);
        r->most = abs(e) > r->most ? abs(e) : r->most;
    }
}

/* Multiplies by powers of two, as ldexp does: rounded once if the result is
 * below the normal range. */
#define RAISE(name, type)                                                      \
    static void name##_plain(type *restrict x, size_t n, double row,           \
                             const double *restrict by)                        \
    {                                                                          \
        size_t j = 0;                                                          \
                                                                               \
        for (; j + LANES <= n; j += LANES)                                     \
            for (size_t k = 0; k < LANES; k++)                                 \
                x[j + k] = (type)(x[j + k] * (row * by[j + k]));               \
        for (; j < n; j++)                                                     \
            x[j] = (type)(x[j] * (row * by[j]));                               \
    }                                                                          \
    static void name(const raising *r, type *x, int row)                       \
    {                                                                          \
        if (abs(row) + r->most <= PLAIN) {                                     \
            name##_plain(x, r->n, ldexp(1, r->sign *row), r->by);              \
            return;                                                            \
        }                                                                      \
        for (size_t j = 0; j < r->n; j++) {                                    \
            int e = row + (r->col ? r->col[r->first + j] : 0);                 \
                                                                               \
            x[j] = (type)ldexp(x[j], r->sign * e);                             \
        }                                                                      \
    }
RAISE(raise_f64, double)
RAISE(raise_f32, float)

/* Scales all numbers; `to` may be `from`. */
static void raise_all(const kofn_matrix *from, raising *r, const int *row,
                      const kofn_matrix *to)
{
    size_t size = kf_dtype_size(from->dtype);

    assert(to->rows == from->rows);
    assert(to->cols == from->cols);
    for (size_t j = 0; j < from->cols; j += TOGETHER) {
        choose_columns(r, j, from->cols);
        for (size_t i = 0; i < from->rows; i++) {
            void *x = kf_at(to, i, j);
            int e = r->all + (row ? row[i] : 0);

            if (to->data != from->data)
                memcpy(x, kf_at(from, i, j), r->n * size);
            if (e == 0 && r->most == 0)
                continue;
            if (to->dtype == KOFN_F64)
                raise_f64(r, x, e);
            else
                raise_f32(r, x, e);
        }
    }
}

void kf_scaling_multiply(const kofn_matrix *a, const int *row, const int *col,
                         int sign)
{
    raising r = {.col = col, .sign = sign};

    assert(sign == 1 || sign == -1);
    if (row || col)
        raise_all(a, &r, row, a);
}

void kf_scaling_divide(const kofn_matrix *a, const int *row, const int *col,
                       double by)
{
    raising r = {.col = col, .sign = -1, .all = -ilogb(by)};

    assert(by > 0);
    raise_all(a, &r, row, a);
}

kofn_status kf_scaling_copy(const kofn_matrix *a, const int *row,
                            const int *col, int sign, kofn_matrix *out)
{
    raising r = {.col = col, .sign = sign};

    TRY(kf_mat_new(out, a->rows, a->cols, a->dtype));
    raise_all(a, &r, row, out);
    return KOFN_OK;
}

kofn_status kf_scaling_values(const kofn_sparse *a, const kf_scaling *l,
                              double **out)
{
    double *val = kf_new(a->ptr[a->rows], sizeof *val);

    *out = val;
    for (size_t i = 0; val && i < a->rows; i++)
        for (size_t e = a->ptr[i]; e < a->ptr[i + 1]; e++)
            val[e] = ldexp(a->val[e], (l->row ? l->row[i] : 0) +
                                          (l->col ? l->col[a->col[e]] : 0));
    return val ? KOFN_OK : KOFN_NOMEM;
}
