/* solve.c -- small dense systems with many right-hand sides, row by row.
 *
 * Every step adds a multiple of one row to another.  So the compiler can use
 * vectors without changing the order of a sum.  Compiled without fused
 * multiply-add, the result is the same to the bit on every machine.  LAPACK
 * does not guarantee this.  The installed BLAS must not change a decision of
 * the coordinator or break a replay.
 *
 * Works in the caller's arrays; allocates at most scratch for a call.  A
 * singular system gives an error status, never a wrong answer. */
#include "code.h"

#include "base/vectors.h"

#include <assert.h>
#include <math.h>

#define VECTORS KF_VECTORS()

/* Columns of right-hand sides at a time: a panel of a system of some hundred
 * rows stays in the second-level cache. */
#define PANEL 64

/* Computes y -= f x. */
VECTORS static void subtract(size_t n, double f, const double *restrict x,
                             double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] -= f * x[i];
}

/* Computes y -= sum of f[j] times row j of X, j = 0 .. 3, in that order.  It
 * reads and writes y once instead of four times. */
VECTORS static void subtract4(size_t n, const double *f, const double *X,
                              size_t ldx, double *restrict y)
{
    const double *restrict x0 = X, *restrict x1 = X + ldx;
    const double *restrict x2 = X + 2 * ldx, *restrict x3 = X + 3 * ldx;

    for (size_t i = 0; i < n; i++)
        y[i] = (((y[i] - f[0] * x0[i]) - f[1] * x1[i]) - f[2] * x2[i]) -
               f[3] * x3[i];
}

/* Computes y -= the sum over `rows` rows j of X of f[j] times row j. */
static void subtract_rows(size_t n, size_t rows, const double *f,
                          const double *X, size_t ldx, double *y)
{
    size_t j = 0;

    for (; j + 4 <= rows; j += 4)
        subtract4(n, f + j, X + j * ldx, ldx, y);
    for (; j < rows; j++)
        subtract(n, f[j], X + j * ldx, y);
}

static void swap_rows(size_t n, double *a, double *b)
{
    for (size_t i = 0; i < n; i++) {
        double t = a[i];

        a[i] = b[i];
        b[i] = t;
    }
}

/* A few rows and vectors of C stay in registers while all columns of A are
 * used.  Each entry subtracts its terms in the order of subtract_rows.  Vectors
 * have the length of the registers, because the compiler makes slow code for
 * other lengths. */
#define DOWN 4
#define ACROSS 2
#define TILE 16 /* columns */
#define UNROLL _Pragma("GCC unroll 4")
#define AT(type, x) (*(type *)(void *)(x))
#define OF(type, x) (*(const type *)(const void *)(x))

/* clang-format off */
#define SUBTRACT_TILE(name, bits, across, columns)                             \
    typedef double wide_##name                                                 \
        __attribute__((vector_size(bits / 8), aligned(8), may_alias));         \
    TARGET##bits static void tile_##name(const kf_difference *d, size_t row,   \
                                         size_t col)                           \
    {                                                                          \
        const double *A = d->A + row * d->lda, *B = d->B + col;                \
        double *C = d->C + row * d->ldc + col;                                 \
        size_t k = d->k, lda = d->lda, ldb = d->ldb, ldc = d->ldc;             \
                                                                               \
        for (size_t c = 0; c < columns; c += across * (bits / 64)) {           \
            wide_##name sum[DOWN][across];                                     \
                                                                               \
            UNROLL for (size_t i = 0; i < DOWN; i++)                           \
                UNROLL for (size_t v = 0; v < across; v++)                     \
                    sum[i][v] = OF(wide_##name, C + i * ldc + c + v * (bits / 64)); \
            for (size_t j = 0; j < k; j++)                                     \
                UNROLL for (size_t v = 0; v < across; v++) {                   \
                    wide_##name b =                                            \
                        OF(wide_##name, B + j * ldb + c + v * (bits / 64));    \
                                                                               \
                    UNROLL for (size_t i = 0; i < DOWN; i++)                   \
                        sum[i][v] -= A[i * lda + j] * b;                       \
                }                                                              \
            UNROLL for (size_t i = 0; i < DOWN; i++)                           \
                UNROLL for (size_t v = 0; v < across; v++)                     \
                    AT(wide_##name, C + i * ldc + c + v * (bits / 64)) = sum[i][v]; \
        }                                                                      \
    }
/* clang-format on */

/* Updates rows `row` .. row+DOWN-1 and columns `col` .. col+TILE-1 of C, or two
 * columns at the edge. */
typedef void subtract_tile(const kf_difference *d, size_t row, size_t col);

#define TARGET128
SUBTRACT_TILE(128, 128, ACROSS, TILE)
SUBTRACT_TILE(pair, 128, 1, 2)

#if defined(__x86_64__) && defined(__GNUC__)
#define TARGET256 __attribute__((target("avx2")))
#define TARGET512 __attribute__((target("avx512f")))
SUBTRACT_TILE(256, 256, ACROSS, TILE)
SUBTRACT_TILE(512, 512, ACROSS, TILE)

static subtract_tile *tile_here(void)
{
    return __builtin_cpu_supports("avx512f") ? tile_512
           : __builtin_cpu_supports("avx2")  ? tile_256
                                             : tile_128;
}
#else
static subtract_tile *tile_here(void)
{
    return tile_128;
}
#endif

void kf_code_subtract_product(const kf_difference *d)
{
    subtract_tile *tile = tile_here();
    size_t down = d->m / DOWN * DOWN;

    assert(d->k <= d->lda);
    assert(d->n <= d->ldb);
    assert(d->n <= d->ldc);
    for (size_t c = 0; c < d->n; c += PANEL) {
        size_t width = kf_min(PANEL, d->n - c);
        size_t tiled = width / TILE * TILE, paired = width / 2 * 2;

        for (size_t i = 0; i < down; i += DOWN) {
            for (size_t t = c; t < c + tiled; t += TILE)
                tile(d, i, t);
            for (size_t t = c + tiled; t < c + paired; t += 2)
                tile_pair(d, i, t);
        }
        for (size_t i = 0; i < d->m; i++) {
            size_t from = c + (i < down ? paired : 0);

            subtract_rows(c + width - from, d->k, d->A + i * d->lda,
                          d->B + from, d->ldb, d->C + i * d->ldc + from);
        }
    }
}

/* ---- square: LU with partial pivoting ------------------------------------ */

/* Rows and columns that are handled together. */
#define BLOCK 32

/* Factors columns from .. to-1, rows `from` and below. */
static kofn_status factor_columns(size_t n, double *P, size_t ld, size_t *swap,
                                  size_t from, size_t to)
{
    assert(from <= to);
    assert(to <= n);
    for (size_t j = from; j < to; j++) {
        size_t best = j;

        for (size_t i = j + 1; i < n; i++)
            if (fabs(P[i * ld + j]) > fabs(P[best * ld + j]))
                best = i;
        swap[j] = best;
        if (best != j)
            swap_rows(n, P + j * ld, P + best * ld);
        if (!(fabs(P[j * ld + j]) > 0))
            return kf_fail(KOFN_UNSTABLE,
                           "singular system: no pivot in column %zu of %zu", j,
                           n);
        for (size_t i = j + 1; i < n; i++) {
            double f = P[i * ld + j] / P[j * ld + j];

            P[i * ld + j] = f;
            subtract(to - j - 1, f, P + j * ld + j + 1, P + i * ld + j + 1);
        }
    }
    return KOFN_OK;
}

/* Factors P.  Row i has L left of the diagonal and U from it on; swap[i] is the
 * row that was exchanged with i. */
static kofn_status factor(size_t n, double *P, size_t ld, size_t *swap)
{
    assert(n <= ld);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t end = kf_min(at + BLOCK, n), left = n - end;
        double *right = P + at * ld + end;

        TRY(factor_columns(n, P, ld, swap, at, end));
        for (size_t i = 1; i < end - at; i++)
            subtract_rows(left, i, P + (at + i) * ld + at, right, ld,
                          right + i * ld);
        kf_code_subtract_product(&(kf_difference){left, end - at, left,
                                                  P + end * ld + at, ld, right,
                                                  ld, P + end * ld + end, ld});
    }
    return KOFN_OK;
}

/* Substitutes back rows at .. end-1; the rows below are done. */
static void back(const kf_system *s, size_t at, size_t end)
{
    assert(at < end);
    assert(end <= s->n);
    for (size_t next = end; next > at; next--) {
        size_t i = next - 1;
        const double *row = s->P + i * s->ldp;

        subtract_rows(s->cols, end - next, row + next, s->B + next * s->ldb,
                      s->ldb, s->B + i * s->ldb);
        for (size_t c = 0; c < s->cols; c++)
            s->B[i * s->ldb + c] /= row[i];
    }
}

/* Solves U X = B and overwrites B. */
static void substitute_back(const kf_system *s)
{
    assert(s->n <= s->m);
    assert(s->n <= s->ldp);
    for (size_t end = s->n, at; end > 0; end = at) {
        at = (end - 1) / BLOCK * BLOCK;
        kf_code_subtract_product(&(kf_difference){
            end - at, s->n - end, s->cols, s->P + at * s->ldp + end, s->ldp,
            s->B + end * s->ldb, s->ldb, s->B + at * s->ldb, s->ldb});
        back(s, at, end);
    }
}

static void substitute(const kf_system *s, const size_t *swap)
{
    assert(s->cols <= s->ldb);
    for (size_t i = 0; i < s->n; i++)
        if (swap[i] != i)
            swap_rows(s->cols, s->B + i * s->ldb, s->B + swap[i] * s->ldb);
    for (size_t at = 0; at < s->n; at += BLOCK) {
        size_t end = kf_min(at + BLOCK, s->n);

        kf_code_subtract_product(
            &(kf_difference){end - at, at, s->cols, s->P + at * s->ldp, s->ldp,
                             s->B, s->ldb, s->B + at * s->ldb, s->ldb});
        for (size_t i = at + 1; i < end; i++)
            subtract_rows(s->cols, i - at, s->P + i * s->ldp + at,
                          s->B + at * s->ldb, s->ldb, s->B + i * s->ldb);
    }
    substitute_back(s);
}

/* Scales the rows by powers of two, because rows of very different size would
 * mislead the choice of pivots. */
static void equilibrate(size_t n, double *P, size_t ldp, size_t cols, double *B,
                        size_t ldb)
{
    for (size_t i = 0; i < n; i++) {
        double top = 0, scale;
        int e;

        for (size_t j = 0; j < n; j++)
            top = fmax(top, fabs(P[i * ldp + j]));
        if (!(top > 0) || isinf(top))
            continue;
        frexp(top, &e);
        scale = ldexp(1, e < -1000 ? 1000 : -e); /* subnormal: finite */
        for (size_t j = 0; j < n; j++)
            P[i * ldp + j] *= scale;
        for (size_t c = 0; c < cols; c++)
            B[i * ldb + c] *= scale;
    }
}

kofn_status kf_solve(size_t n, double *P, size_t ldp, size_t cols, double *B,
                     size_t ldb)
{
    size_t *swap = kf_new(n, sizeof *swap);
    kofn_status st;

    assert(n <= ldp);
    assert(cols <= ldb);
    if (!swap)
        return KOFN_NOMEM;
    equilibrate(n, P, ldp, cols, B, ldb);
    st = factor(n, P, ldp, swap);
    for (size_t c = 0; !st && c < cols; c += PANEL)
        substitute(
            &(kf_system){n, n, P, ldp, kf_min(PANEL, cols - c), B + c, ldb},
            swap);
    kf_free(swap);
    return st;
}

/* ---- overdetermined: Householder QR -------------------------------------- */

/* A reflector with v[0] = 1, and scratch w with one number for each column of
 * A. */
typedef struct mirror {
    double *v, tau, *w;
} mirror;

/* Computes A -= v w' with w = tau A' v, on the rows and columns from `at` on.
 */
static void reflect(const mirror *r, size_t at, size_t rows, size_t cols,
                    double *A, size_t lda)
{
    const double *v = r->v + at;

    memset(r->w, 0, cols * sizeof *r->w);
    for (size_t i = 0; i < rows; i++)
        subtract(cols, -r->tau * v[i], A + i * lda, r->w);
    for (size_t i = 0; i < rows; i++)
        subtract(cols, v[i], r->w, A + i * lda);
}

/* Makes the reflector that zeroes column j below the diagonal; returns tau, or
 * 0 if there is nothing to do. */
static double reflector(size_t j, size_t m, const double *P, size_t ldp,
                        double *v)
{
    double scale = 0, norm = 0, alpha, head;

    assert(j < m);
    for (size_t i = j; i < m; i++)
        scale = fmax(scale, fabs(P[i * ldp + j]));
    if (!(scale > 0))
        return 0;
    for (size_t i = j; i < m; i++) {
        v[i] = P[i * ldp + j] / scale;
        norm += v[i] * v[i];
    }
    alpha = v[j] > 0 ? -sqrt(norm) : sqrt(norm);
    head = v[j] - alpha;
    v[j] = 1;
    for (size_t i = j + 1; i < m; i++)
        v[i] /= head;
    return -head / alpha;
}

kofn_status kf_code_least_squares(const kf_system *s)
{
    mirror r = {.v = kf_new(s->m, sizeof *r.v),
                .w = kf_new(kf_max(s->n, PANEL), sizeof *r.w)};
    kofn_status st = r.v && r.w ? KOFN_OK : KOFN_NOMEM;

    assert(s->n <= s->m);
    assert(s->cols <= s->ldb);
    for (size_t j = 0; !st && j < s->n; j++) {
        size_t rows = s->m - j;

        r.tau = reflector(j, s->m, s->P, s->ldp, r.v);
        if (r.tau == 0) {
            st = kf_fail(KOFN_UNSTABLE,
                         "singular system: column %zu of %zu "
                         "depends on those before",
                         j, s->n);
            break;
        }
        reflect(&r, j, rows, s->n - j, s->P + j * s->ldp + j, s->ldp);
        for (size_t c = 0; c < s->cols; c += PANEL)
            reflect(&r, j, rows, kf_min(PANEL, s->cols - c),
                    s->B + j * s->ldb + c, s->ldb);
    }
    if (!st)
        substitute_back(s);
    kf_free(r.v);
    kf_free(r.w);
    return st;
}
