/* mat.c -- checks, parts and products; see mat.h.
 *
 * Parts are views of an operand, padded copies only at its edges, which the
 * kf_parts own.  CBLAS is called here and nowhere else. */
#include "mat.h"

#include "base/vectors.h"

#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <math.h>

/* ---- checks -------------------------------------------------------------- */

/* Kernels of a BLAS may read numbers that lie askew by instructions that
 * trap. */
static kofn_status check_place(const void *numbers, size_t size,
                               const char *name)
{
    assert(size > 0);
    if ((uintptr_t)numbers % size == 0)
        return KOFN_OK;
    return kf_fail(KOFN_INVAL,
                   "%s has numbers at %p, which is not a multiple of their %zu "
                   "bytes; copy them to memory that is aligned",
                   name, numbers, size);
}

kofn_status kf_mat_check_matrix(const kofn_matrix *a, const char *name)
{
    size_t bytes;

    if (!a || !a->data)
        return kf_fail(KOFN_INVAL, "%s is missing", name);
    if (a->dtype != KOFN_F64 && a->dtype != KOFN_F32)
        return kf_fail(KOFN_INVAL, "%s has an unknown type %d", name,
                       (int)a->dtype);
    TRY(check_place(a->data, kf_dtype_size(a->dtype), name));
    if (a->rows == 0 || a->cols == 0)
        return kf_fail(KOFN_SHAPE, "%s is %zu x %zu: empty", name, a->rows,
                       a->cols);
    if (a->ld < a->cols || a->ld > INT_MAX)
        return kf_fail(KOFN_SHAPE,
                       "%s has leading dimension %zu, which is not in %zu..%d",
                       name, a->ld, a->cols, INT_MAX);
    if (!kf_mul(a->rows, a->ld, &bytes) || !kf_mul(bytes, 8, &bytes))
        return kf_fail(KOFN_SHAPE, "%s is %zu x %zu: too large", name, a->rows,
                       a->cols);
    return KOFN_OK;
}

kofn_status kf_mat_check_sparse(const kofn_sparse *a, const char *name)
{
    if (!a || !a->ptr)
        return kf_fail(KOFN_INVAL, "%s is missing", name);
    TRY(check_place(a->ptr, sizeof *a->ptr, name));
    TRY(check_place(a->col, sizeof *a->col, name));
    TRY(check_place(a->val, sizeof *a->val, name));
    if (a->rows == 0 || a->cols == 0 || a->cols > UINT32_MAX)
        return kf_fail(KOFN_SHAPE, "%s is %zu x %zu: empty or too wide", name,
                       a->rows, a->cols);
    if (a->ptr[a->rows] && (!a->col || !a->val))
        return kf_fail(KOFN_INVAL, "%s has no col or no val", name);
    if (a->ptr[0] != 0)
        return kf_fail(KOFN_INVAL, "%s: its first row does not start at 0",
                       name);
    for (size_t i = 0; i < a->rows; i++) /* before an entry is read by them */
        if (a->ptr[i + 1] < a->ptr[i])
            return kf_fail(KOFN_INVAL, "%s: row %zu ends before it starts",
                           name, i);
    for (size_t i = 0; i < a->rows; i++)
        for (size_t e = a->ptr[i]; e < a->ptr[i + 1]; e++) {
            if (a->col[e] >= a->cols)
                return kf_fail(KOFN_INVAL, "%s: row %zu has column %u of %zu",
                               name, i, a->col[e], a->cols);
            if (!(a->val[e] - a->val[e] == 0))
                return kf_fail(KOFN_NONFINITE,
                               "%s: row %zu, column %u is not finite", name, i,
                               a->col[e]);
        }
    return KOFN_OK;
}

/* A number is at least a power of two if its exponent bits, read as an integer,
 * are.  This is the distance from these bits to the sign bit: adding it carries
 * into the sign bit of such numbers.  NaN and infinity are the largest.  The
 * compiler turns a fixed number of components into vector code. */
#define BLOCK 1024
#define LANES 16
#define UP_TO_SIGN_F64(power) ((uint64_t)(1025 - (power)) << 52)
#define UP_TO_SIGN_F32(power) ((uint32_t)(129 - (power)) << 23)

#define FIRST_AS_LARGE(name, type, bits)                                       \
    static inline type name##_one(const unsigned char *p, type missing)        \
    {                                                                          \
        type x;                                                                \
                                                                               \
        memcpy(&x, p, sizeof x);                                               \
        return (type)((x & ~((type)1 << (bits - 1))) + missing);               \
    }                                                                          \
    KF_VECTORS(optimize("O3"))                                                 \
    static bool name##_block(const unsigned char *p, size_t n, type missing)   \
    {                                                                          \
        type odd[LANES] = {0}, any = 0;                                        \
        size_t i = 0;                                                          \
                                                                               \
        for (; i + LANES <= n; i += LANES)                                     \
            for (size_t k = 0; k < LANES; k++)                                 \
                odd[k] |= name##_one(p + (i + k) * sizeof any, missing);       \
        for (; i < n; i++)                                                     \
            any |= name##_one(p + i * sizeof any, missing);                    \
        for (size_t k = 0; k < LANES; k++)                                     \
            any |= odd[k];                                                     \
        return any >> (bits - 1);                                              \
    }                                                                          \
    static size_t name(const unsigned char *p, size_t n, type missing)         \
    {                                                                          \
        size_t at = 0, size = sizeof(type);                                    \
                                                                               \
        while (at < n &&                                                       \
               !name##_block(p + at * size, kf_min(BLOCK, n - at), missing))   \
            at += kf_min(BLOCK, n - at);                                       \
        while (at < n && !name##_block(p + at * size, 1, missing))             \
            at++;                                                              \
        return at;                                                             \
    }
FIRST_AS_LARGE(first_as_large64, uint64_t, 64)
FIRST_AS_LARGE(first_as_large32, uint32_t, 32)

/* Index of the first element that reaches a power of two, one for each type. */
static size_t first_as_large(const void *x, size_t n, kofn_dtype dtype, int f64,
                             int f32)
{
    return dtype == KOFN_F64 ? first_as_large64(x, n, UP_TO_SIGN_F64(f64))
                             : first_as_large32(x, n, UP_TO_SIGN_F32(f32));
}

size_t kf_mat_first_odd(const void *x, size_t n, kofn_dtype dtype)
{
    return first_as_large(x, n, dtype, 1024, 128);
}

/* Returns a view of the same numbers with one row, where no gaps are between
 * rows: a vector, which is a column, is looked at in one run. */
static kofn_matrix runs(const kofn_matrix *a)
{
    kofn_matrix all = *a;

    if (a->ld == a->cols && a->rows > 1) {
        all.cols = all.ld = a->rows * a->cols;
        all.rows = 1;
    }
    return all;
}

kofn_status kf_mat_check_finite(const kofn_matrix *a, const char *name)
{
    kofn_matrix all = runs(a);

    for (size_t i = 0; i < all.rows; i++) {
        size_t j = kf_mat_first_odd(kf_at(&all, i, 0), all.cols, a->dtype);

        if (j < all.cols)
            return kf_fail(KOFN_NONFINITE,
                           "%s: element [%zu, %zu] is NaN or infinite", name,
                           i + j / a->cols, j % a->cols);
    }
    return KOFN_OK;
}

/* Far from the end: three such numbers and their sums can be multiplied. */
#define FAR_F64 300
#define FAR_F32 30

/* Are all elements smaller than a power of two, one for each type? */
static bool smaller(const kofn_matrix *a, int f64, int f32)
{
    kofn_matrix all = runs(a);
    bool are = true;

    for (size_t i = 0; i < all.rows && are; i++)
        are = all.cols ==
              first_as_large(kf_at(&all, i, 0), all.cols, a->dtype, f64, f32);
    return are;
}

double kf_mat_most(const kofn_matrix *a)
{
    double most = 0;

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            most = kf_larger(most, fabs(kf_mat_entry(a, i, j)));
    return most;
}

kofn_status kf_mat_check_range(const kofn_matrix *a, const char *name,
                               double *most)
{
    *most = a->dtype == KOFN_F64 ? ldexp(1, FAR_F64) : ldexp(1, FAR_F32);
    if (smaller(a, FAR_F64, FAR_F32) && /* tiny: mostly the first is not */
        !smaller(a, KF_MAT_TINY_F64, KF_MAT_TINY_F32))
        return KOFN_OK;
    TRY(kf_mat_check_finite(a, name));
    *most = kf_mat_most(a);
    return KOFN_OK;
}

/* ---- copies -------------------------------------------------------------- */

kofn_status kf_mat_new(kofn_matrix *out, size_t rows, size_t cols,
                       kofn_dtype type)
{
    size_t n;

    *out = (kofn_matrix){NULL, rows, cols, cols, type};
    if (!kf_mul(rows, cols, &n))
        return kf_nomem(SIZE_MAX);
    out->data = kf_new(n, kf_dtype_size(type));
    return out->data ? KOFN_OK : KOFN_NOMEM;
}

void kf_mat_widen(const void *from, size_t n, kofn_dtype type, double *to)
{
    const float *restrict x = from;

    if (type == KOFN_F64)
        memcpy(to, from, n * sizeof *to);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = (double)x[i];
}

void kf_mat_narrow(const double *from, size_t n, kofn_dtype type, void *to)
{
    float *restrict x = to;

    if (type == KOFN_F64)
        memcpy(to, from, n * sizeof *from);
    else
        for (size_t i = 0; i < n; i++)
            x[i] = (float)from[i];
}

void kf_mat_copy(const kofn_matrix *from, const kofn_matrix *to)
{
    assert(from->dtype == to->dtype);
    assert(from->rows <= to->rows);
    assert(from->cols <= to->cols);
    size_t row = from->cols * kf_dtype_size(from->dtype);

    if (from->rows && from->ld == from->cols && to->ld == from->cols) {
        memcpy(to->data, from->data, from->rows * row);
        return;
    }
    for (size_t i = 0; i < from->rows; i++)
        memcpy(kf_at(to, i, 0), kf_at(from, i, 0), row);
}

/* ---- parts --------------------------------------------------------------- */

/* Rows or columns of the operand that part i of `parts` holds. */
static size_t inside(size_t whole, size_t each, size_t i)
{
    return i * each >= whole ? 0 : kf_min(each, whole - i * each);
}

/* Pads a part: copies its numbers, with zeros below and to the right. */
static void pad(kofn_matrix *part, const kf_parts *p, char **space)
{
    assert(part->rows <= p->rows);
    assert(part->cols <= p->cols);
    kofn_matrix all = {*space, p->rows, p->cols, p->cols, part->dtype};
    size_t size = kf_dtype_size(part->dtype);

    for (size_t i = 0; i < p->rows; i++) {
        size_t cols = i < part->rows ? part->cols : 0;
        char *row = kf_at(&all, i, 0);

        if (cols)
            memcpy(row, kf_at(part, i, 0), cols * size);
        memset(row + cols * size, 0, (p->cols - cols) * size);
    }
    *space += p->rows * p->cols * size;
    *part = all;
}

kofn_status kf_parts_new(kf_parts *out, const kofn_matrix *a, size_t grid_rows,
                         size_t grid_cols)
{
    kf_parts p = {.count = grid_rows * grid_cols,
                  .rows = kf_ceil_div(a->rows, grid_rows),
                  .cols = kf_ceil_div(a->cols, grid_cols)};
    size_t rows = kf_max(p.rows, 1), cols = kf_max(p.cols, 1); /* 0: empty */
    size_t edge = kf_ceil_div(a->rows, rows) * kf_ceil_div(a->cols, cols) -
                  (a->rows / rows) * (a->cols / cols); /* parts over it */
    size_t numbers;
    char *space;

    *out = p;
    if (!kf_mul(edge, p.rows, &numbers) || !kf_mul(numbers, p.cols, &numbers))
        numbers = SIZE_MAX / 8;
    TRY_ZERO(p.part, p.count);
    p.padded = edge ? kf_new(numbers, kf_dtype_size(a->dtype)) : NULL;
    if (edge && !p.padded) {
        kf_free(p.part);
        return KOFN_NOMEM;
    }
    space = p.padded;
    for (size_t j = 0; j < p.count; j++) {
        size_t r = j % grid_rows, c = j / grid_rows;

        rows = inside(a->rows, p.rows, r);
        cols = inside(a->cols, p.cols, c);
        p.part[j] = (kofn_matrix){NULL, 0, p.cols, p.cols, a->dtype};
        if (rows == 0 || cols == 0)
            continue;
        p.part[j] = (kofn_matrix){kf_at(a, r * p.rows, c * p.cols), rows, cols,
                                  a->ld, a->dtype};
        if (rows < p.rows || cols < p.cols)
            pad(&p.part[j], &p, &space);
    }
    *out = p;
    return KOFN_OK;
}

void kf_parts_free(kf_parts *p)
{
    kf_free(p->part);
    kf_free(p->padded);
    *p = (kf_parts){0};
}

/* ---- products ------------------------------------------------------------ */

/* Multiplies in panels.  A BLAS may add up a long row number by number, and
 * rounding then grows with its length. */
static void rows_f32(int m, int k, const kofn_matrix *a, const kofn_matrix *b,
                     float add, float *c)
{
    const float *x = a->data, *y = b->data;

    for (int at = 0; at == 0 || at < k; at += KF_PANEL, add = 1)
        cblas_sgemv(CblasRowMajor, CblasNoTrans, m,
                    k - at < KF_PANEL ? k - at : KF_PANEL, 1, x + at,
                    (int)a->ld, y + (size_t)at * b->ld, (int)b->ld, add, c, 1);
}

typedef struct factor {
    const kofn_matrix *m;
    bool transposed; /* it is transposed */
} factor;

/* c = beta c + alpha a b. */
static void gemm(double alpha, factor a, factor b, double beta,
                 const kofn_matrix *c)
{
    CBLAS_TRANSPOSE ta = a.transposed ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = b.transposed ? CblasTrans : CblasNoTrans;
    int m = (int)c->rows, n = (int)c->cols;
    int k = (int)(a.transposed ? a.m->rows : a.m->cols);
    int lda = (int)a.m->ld, ldb = (int)b.m->ld, ldc = (int)c->ld;

    assert(c->rows == (a.transposed ? a.m->cols : a.m->rows));
    assert(c->cols == (b.transposed ? b.m->rows : b.m->cols));
    assert((size_t)k == (b.transposed ? b.m->cols : b.m->rows));
    assert(a.m->dtype == c->dtype);
    assert(b.m->dtype == c->dtype);
    if (c->dtype == KOFN_F64)
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a.m->data, lda,
                    b.m->data, ldb, beta, c->data, ldc);
    else
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, (float)alpha, a.m->data,
                    lda, b.m->data, ldb, (float)beta, c->data, ldc);
}

/* True if c is done without BLAS: it is empty, or its numbers are sums of k = 0
 * terms. Writes zeros then, unless the sum is added to c.  The reference BLAS
 * would end the process if a leading dimension is 0. */
static bool is_empty(const kofn_matrix *c, size_t k, bool add)
{
    for (size_t i = 0; i < c->rows && k == 0 && !add; i++)
        memset(kf_at(c, i, 0), 0, c->cols * kf_dtype_size(c->dtype));
    return c->rows == 0 || c->cols == 0 || k == 0;
}

void kf_mat_multiply(const kofn_matrix *a, const kofn_matrix *b, bool add,
                     void *to)
{
    kofn_matrix c = {to, a->rows, b->cols, b->cols, a->dtype};
    int m = (int)a->rows, n = (int)b->cols, k = (int)a->cols;
    int lda = (int)a->ld, ldb = (int)b->ld;
    bool wide = a->dtype == KOFN_F64;

    assert(a->cols == b->rows);
    assert(a->dtype == b->dtype);
    if (is_empty(&c, a->cols, add))
        return;
    if (n == 1 && wide)
        cblas_dgemv(CblasRowMajor, CblasNoTrans, m, k, 1, a->data, lda, b->data,
                    ldb, add, to, 1);
    else if (n == 1)
        rows_f32(m, k, a, b, add, to);
    else if (m == 1 && wide)
        cblas_dgemv(CblasRowMajor, CblasTrans, k, n, 1, b->data, ldb, a->data,
                    1, add, to, 1);
    else if (m == 1)
        cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, b->data, ldb, a->data,
                    1, add, to, 1);
    else
        gemm(1, (factor){a, false}, (factor){b, false}, add, &c);
}

void kf_mat_multiply_transposed(const kofn_matrix *a, bool transpose_a,
                                const kofn_matrix *b, bool transpose_b,
                                kofn_matrix *c)
{
    if (!is_empty(c, transpose_a ? a->rows : a->cols, false))
        gemm(1, (factor){a, transpose_a}, (factor){b, transpose_b}, 0, c);
}

void kf_mat_add_transposed(const kofn_matrix *a, const kofn_matrix *b,
                           double alpha, double beta, kofn_matrix *c)
{
    if (c->rows > 0 && c->cols > 0)
        gemm(alpha, (factor){a, true}, (factor){b, false}, beta, c);
}

void kf_mat_square(const kofn_matrix *a, kofn_matrix *c)
{
    int n = (int)a->rows, k = (int)a->cols;
    int lda = (int)a->ld, ldc = (int)c->ld;

    assert(a->rows <= c->ld);
    assert(c->dtype == a->dtype);
    if (n == 0)
        return;
    if (c->dtype == KOFN_F64)
        cblas_dsyrk(CblasRowMajor, CblasUpper, CblasNoTrans, n, k, 1, a->data,
                    lda, 0, c->data, ldc);
    else
        cblas_ssyrk(CblasRowMajor, CblasUpper, CblasNoTrans, n, k, 1, a->data,
                    lda, 0, c->data, ldc);
}

static void multiply_row(const kofn_sparse *a, size_t i, const double *b,
                         size_t ldb, size_t cols, double *c)
{
    if (cols == 1) {
        double sum = 0;

        for (size_t e = a->ptr[i]; e < a->ptr[i + 1]; e++)
            sum += a->val[e] * b[a->col[e] * ldb];
        *c = sum;
        return;
    }
    memset(c, 0, cols * sizeof *c);
    for (size_t e = a->ptr[i]; e < a->ptr[i + 1]; e++)
        for (size_t j = 0; j < cols; j++)
            c[j] += a->val[e] * b[a->col[e] * ldb + j];
}

void kf_mat_multiply_sparse(const kofn_sparse *a, size_t lo, size_t hi,
                            const kofn_matrix *b, double *c)
{
    assert(lo <= hi);
    assert(hi <= a->rows);
    assert(b->rows == a->cols);
    assert(b->dtype == KOFN_F64);
    for (size_t i = lo; i < hi; i++)
        multiply_row(a, i, b->data, b->ld, b->cols, c + (i - lo) * b->cols);
}

void kf_mat_multiply_by_sparse(const kofn_matrix *b, const kofn_sparse *a,
                               size_t lo, double *c)
{
    assert(lo + b->cols <= a->rows);
    assert(b->dtype == KOFN_F64);
    for (size_t r = 0; r < b->rows; r++) {
        const double *x = kf_at(b, r, 0);
        double *to = c + r * a->cols;

        for (size_t i = 0; i < b->cols; i++)
            for (size_t e = a->ptr[lo + i]; e < a->ptr[lo + i + 1]; e++)
                to[a->col[e]] += x[i] * a->val[e];
    }
}

/* ---- the plain answer ---------------------------------------------------- */

static kofn_status check_plain(size_t m, size_t n, const kofn_matrix *in,
                               const kofn_matrix *out)
{
    TRY(kf_mat_check_matrix(in, "the input"));
    TRY(kf_mat_check_matrix(out, "the output"));
    if (in->rows != n || out->rows != m || out->cols != in->cols ||
        out->ld != out->cols || out->dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE,
                       "a plain product of %zu x %zu with %zu x "
                       "%zu needs a contiguous float64 output of %zu x %zu",
                       m, n, in->rows, in->cols, m, in->cols);
    return KOFN_OK;
}

/* float32 in, double throughout, a band of A at a time. */
static kofn_status multiply_wide(const kofn_matrix *A, const kofn_matrix *in,
                                 double *out)
{
    size_t band = kf_min(A->rows, 256);
    kofn_matrix a = {0}, b = {0};
    kofn_status st = kf_mat_new(&a, band, A->cols, KOFN_F64);

    assert(A->dtype == KOFN_F32);
    assert(A->cols == in->rows);
    if (!st)
        st = kf_mat_new(&b, in->rows, in->cols, KOFN_F64);
    for (size_t i = 0; i < in->rows && !st; i++)
        kf_mat_widen(kf_at(in, i, 0), in->cols, KOFN_F32, kf_at(&b, i, 0));
    for (size_t lo = 0; lo < A->rows && !st; lo += band) {
        a.rows = kf_min(band, A->rows - lo);
        for (size_t i = 0; i < a.rows; i++)
            kf_mat_widen(kf_at(A, lo + i, 0), A->cols, KOFN_F32,
                         kf_at(&a, i, 0));
        kf_mat_multiply(&a, &b, false, out + lo * in->cols);
    }
    kf_free(a.data);
    kf_free(b.data);
    return st;
}

static kofn_status multiply_dense(const kofn_matrix *A, const kofn_matrix *in,
                                  kofn_matrix *out)
{
    TRY(kf_mat_check_matrix(A, "A"));
    TRY(check_plain(A->rows, A->cols, in, out));
    if (in->dtype != A->dtype)
        return kf_fail(KOFN_SHAPE, "A and the input are of different types");
    if (A->dtype == KOFN_F32)
        return multiply_wide(A, in, out->data);
    kf_mat_multiply(A, in, false, out->data);
    return KOFN_OK;
}

kofn_status kofn_product_plain(kofn_operand a, const kofn_matrix *in,
                               kofn_matrix *out)
{
    const kofn_sparse *A = a.sparse;

    if (!A)
        return multiply_dense(a.dense, in, out);
    TRY(check_plain(A->rows, A->cols, in, out));
    if (in->dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "sparse matrices are float64");
    kf_mat_multiply_sparse(A, 0, A->rows, in, out->data);
    return KOFN_OK;
}
