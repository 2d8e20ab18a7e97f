/* screen.c -- a fast test that passes most right products.
 *
 * Returns true if the random sums of every row of C - A B are below half of the
 * level of suspicion.  If columns are shorter, it uses columns instead.  The
 * test reads A and C once and B twice, and writes no copy of them:
 *
 *     by rows:     U = B W,  R = C W - A U   (W: p x 8)
 *     by columns:  V = w A,  Q = w C - V B   (w: 8 x m)
 *
 * W is divided by the norms of B's columns, w by those of A's rows.
 *
 * False is inconclusive: freivalds.c then tests all rows and columns.  It also
 * gets numbers that are not finite, norms far from 1 and sparse matrices.
 *
 * All memory is freed before the call returns.  docs/math/errors.md 7.6. */
#include "freivalds.h"

#include "base/vectors.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

/* Rows and columns of a tile, which stays in the cache until its next use. */
#define STRIP 6
#define ACROSS 1024
/* Number of lines with sums in registers: 16 with 256 bits or 32 with 512. */
#define SIX 6
#define UNROLL _Pragma("GCC unroll 6")
/* The sums must stay below this fraction of the level of suspicion. */
#define SHARE 0.5

#define VECTORS KF_VECTORS(optimize("O3", "fp-contract=fast"))

/* The sums of a row or column, in registers. */
typedef double sums __attribute__((vector_size(KF_SUMS * sizeof(double)),
                                   aligned(8), may_alias));

static inline const sums *in(const double *x)
{
    return (const sums *)(const void *)x;
}

static inline sums *at(double *x)
{
    return (sums *)(void *)x;
}

/* ---- sums of rows, and of columns ------------------------------------------
 */

/* Adds x W to `to`, rows x 8. W is n x 8; rows of x are ld numbers apart. */
VECTORS static void multiply_rows(double *to, const double *x, size_t ld,
                                  size_t rows, size_t n, const double *W)
{
    size_t i = 0;

    for (; i + SIX <= rows; i += SIX, x += SIX * ld) {
        sums t[SIX] = {{0}};

        for (size_t j = 0; j < n; j++)
            UNROLL for (size_t k = 0; k < SIX; k++) t[k] +=
                x[k * ld + j] * *in(W + j * KF_SUMS);
        UNROLL for (size_t k = 0; k < SIX; k++) * at(to + (i + k) * KF_SUMS) +=
            t[k];
    }
    for (; i < rows; i++, x += ld) {
        sums t = {0};

        for (size_t j = 0; j < n; j++)
            t += x[j] * *in(W + j * KF_SUMS);
        *at(to + i * KF_SUMS) += t;
    }
}

/* Adds x' w to `to`, n x 8.  w is rows x 8. */
VECTORS static void multiply_columns(double *to, const double *x, size_t ld,
                                     size_t rows, size_t n, const double *w)
{
    size_t j = 0;

    for (; j + SIX <= n; j += SIX) {
        sums t[SIX] = {{0}};

        for (size_t i = 0; i < rows; i++)
            UNROLL for (size_t k = 0; k < SIX; k++) t[k] +=
                x[i * ld + j + k] * *in(w + i * KF_SUMS);
        UNROLL for (size_t k = 0; k < SIX; k++) * at(to + (j + k) * KF_SUMS) +=
            t[k];
    }
    for (; j < n; j++) {
        sums t = {0};

        for (size_t i = 0; i < rows; i++)
            t += x[i * ld + j] * *in(w + i * KF_SUMS);
        *at(to + j * KF_SUMS) += t;
    }
}

VECTORS static void widen(double *to, const float *x, size_t n)
{
    for (size_t j = 0; j < n; j++)
        to[j] = x[j];
}

/* Returns a view of rows lo to lo + rows - 1, columns `col` to col + n - 1, as
 * doubles: in place, or copied to `tile`. */
static kofn_matrix doubles_of(const kofn_matrix *x, size_t lo, size_t rows,
                              size_t col, size_t n, double *tile)
{
    assert(rows <= STRIP);
    assert(n <= ACROSS);
    if (x->dtype == KOFN_F64)
        return (kofn_matrix){kf_at(x, lo, col), rows, n, x->ld, KOFN_F64};
    for (size_t i = 0; i < rows; i++)
        widen(tile + i * ACROSS, kf_at(x, lo + i, col), n);
    return (kofn_matrix){tile, rows, n, ACROSS, KOFN_F64};
}

/* Adds rows lo to lo + rows - 1 of x, times W, to `to`.  Line 0 of `to` belongs
 * to row lo. */
static void add_rows(double *to, const kofn_matrix *x, size_t lo, size_t rows,
                     const double *W)
{
    _Alignas(64) double tile[STRIP * ACROSS];

    for (size_t col = 0, n; col < x->cols; col += n) {
        kofn_matrix y;

        n = kf_min(ACROSS, x->cols - col);
        y = doubles_of(x, lo, rows, col, n, tile);
        multiply_rows(to, y.data, y.ld, rows, n, W + col * KF_SUMS);
    }
}

/* Adds the same rows, each times its line of w, to the lines of `to`, one per
 * column. */
static void add_columns(double *to, const kofn_matrix *x, size_t lo,
                        size_t rows, const double *w)
{
    _Alignas(64) double tile[STRIP * ACROSS];

    for (size_t col = 0, n; col < x->cols; col += n) {
        kofn_matrix y;

        n = kf_min(ACROSS, x->cols - col);
        y = doubles_of(x, lo, rows, col, n, tile);
        multiply_columns(to + col * KF_SUMS, y.data, y.ld, rows, n, w);
    }
}

/* ---- one test ------------------------------------------------------------ */

typedef struct screen {
    const kf_factors *f;
    bool by_columns;
    size_t length; /* numbers in a tested line: m or p */
    size_t count;  /* sums of a line, 1 to KF_SUMS                       */
    kf_scale *row; /* of A: of a strip, or by columns of all m rows */
    kf_scales col; /* of B, p                                            */
    double *W;     /* length x 8: weights over norms                     */
    double *U;     /* n x 8: - B W, or - (w A)'                          */
    double *sum;   /* of the lines: STRIP x 8, or by columns p x 8 */
    int smallest;  /* least exponent of the weights' norms, as in kf_scales */
} screen;

/* True if numbers with this norm can be multiplied without scaling. */
static bool is_near_one(kf_scale s)
{
    return s.exponent > -KF_SCALE_PLAIN && s.exponent < KF_SCALE_PLAIN &&
           s.over >= 1 && s.over <= 2; /* false also if it is not finite */
}

/* Draws the weights, each over the norm of its line. */
static void draw(screen *s)
{
    assert(s->count <= s->length);
    for (size_t k = 0; k < s->length; k++) {
        kf_scale by = s->by_columns ? s->row[k] : s->col.of[k];
        double *w = s->W + k * KF_SUMS;

        kf_freivalds_weights(s->f, !s->by_columns, k, s->length, s->count, w);
        for (size_t q = 0; q < s->count; q++)
            w[q] *= ldexp(by.over, -by.exponent);
    }
}

static void negate(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = -x[i];
}

/* Finds the norms of `rows` rows of A from lo on.  False if one is far from 1.
 */
static bool find_norms(const kf_factors *f, size_t lo, size_t rows,
                       kf_scale *to)
{
    for (size_t i = 0; i < rows; i++) {
        to[i] = kf_freivalds_row_scale(f, lo + i);
        if (!is_near_one(to[i]))
            return false;
    }
    return true;
}

/* True if row k of C, or column k, is 0. */
static bool is_zero(const kofn_matrix *C, bool column, size_t k)
{
    size_t n = column ? C->rows : C->cols;

    for (size_t i = 0; i < n; i++)
        if (kf_mat_entry(C, column ? i : k, column ? k : i) != 0)
            return false;
    return true;
}

/* True if the sums of line k, with this norm, are within usual rounding.  False
 * if they are NaN. */
static bool is_usual(const screen *s, size_t k, kf_scale norm,
                     const double *sum)
{
    kf_line line = {.scale = norm};
    double squares = 0, over = ldexp(norm.over, -norm.exponent);

    if (norm.zero) /* no scale for its entries */
        return is_zero(s->f->C, s->by_columns, k);
    for (size_t q = 0; q < s->count; q++)
        squares += sum[q] * over * (sum[q] * over);
    kf_freivalds_levels(&line, s->f, s->count, s->length, s->smallest);
    return sqrt(squares) <= SHARE * line.usual;
}

/* ---- by rows, and by columns -----------------------------------------------
 */

/* Multiplies B by the weights, some rows at a time. */
static void know_B(screen *s)
{
    const kf_factors *f = s->f;

    for (size_t lo = 0, rows; lo < f->n; lo += rows) {
        rows = kf_min(STRIP, f->n - lo);
        add_rows(s->U + lo * KF_SUMS, f->B, lo, rows, s->W);
    }
    negate(s->U, f->n * KF_SUMS);
}

static bool rows_are_usual(screen *s)
{
    const kf_factors *f = s->f;

    assert(!s->by_columns);
    s->smallest = s->col.smallest;
    draw(s);
    know_B(s);
    for (size_t lo = 0, rows; lo < f->m; lo += rows) {
        rows = kf_min(STRIP, f->m - lo);
        if (!find_norms(f, lo, rows, s->row))
            return false;
        memset(s->sum, 0, rows * KF_SUMS * sizeof *s->sum);
        add_rows(s->sum, f->A, lo, rows, s->U);
        add_rows(s->sum, f->C, lo, rows, s->W);
        for (size_t i = 0; i < rows; i++)
            if (!is_usual(s, lo + i, s->row[i], s->sum + i * KF_SUMS))
                return false;
    }
    for (size_t j = 0; j < f->p; j++)
        if (s->col.of[j].zero && !is_zero(f->C, true, j))
            return false;
    return true;
}

/* Sums up the columns of C - A B. */
static void sum_columns(screen *s)
{
    const kf_factors *f = s->f;

    for (size_t lo = 0, rows; lo < f->m; lo += rows) {
        rows = kf_min(STRIP, f->m - lo);
        add_columns(s->U, f->A, lo, rows, s->W + lo * KF_SUMS);
        add_columns(s->sum, f->C, lo, rows, s->W + lo * KF_SUMS);
    }
    negate(s->U, f->n * KF_SUMS);
    for (size_t lo = 0, rows; lo < f->n; lo += rows) {
        rows = kf_min(STRIP, f->n - lo);
        add_columns(s->sum, f->B, lo, rows, s->U + lo * KF_SUMS);
    }
}

static bool columns_are_usual(screen *s)
{
    const kf_factors *f = s->f;

    assert(s->by_columns);
    s->smallest = INT_MAX;
    if (!find_norms(f, 0, f->m, s->row))
        return false;
    for (size_t i = 0; i < f->m; i++) {
        if (s->row[i].zero && !is_zero(f->C, false, i))
            return false;
        if (!s->row[i].zero && s->row[i].exponent < s->smallest)
            s->smallest = s->row[i].exponent;
    }
    draw(s);
    sum_columns(s);
    for (size_t j = 0; j < f->p; j++)
        if (!is_usual(s, j, s->col.of[j], s->sum + j * KF_SUMS))
            return false;
    return true;
}

/* ---- the call ---------------------------------------------------------------
 */

static kofn_status make_room(screen *s)
{
    const kf_factors *f = s->f;

    s->by_columns = f->p > f->m;
    s->length = s->by_columns ? f->m : f->p;
    s->count = kf_min(KF_SUMS, s->length);
    TRY(kf_scales_of_columns(f->B, &s->col));
    if (f->tolerance > 0)
        kf_scales_scaling(&s->col, f->col);
    s->row = kf_new(s->by_columns ? f->m : STRIP, sizeof *s->row);
    s->W = kf_zero(s->length, KF_SUMS * sizeof(double));
    s->U = kf_zero(f->n, KF_SUMS * sizeof(double));
    s->sum = kf_zero(s->by_columns ? f->p : STRIP, KF_SUMS * sizeof(double));
    return s->row && s->W && s->U && s->sum ? KOFN_OK : KOFN_NOMEM;
}

static bool columns_are_near_one(const screen *s)
{
    for (size_t j = 0; j < s->f->p; j++)
        if (!is_near_one(s->col.of[j]))
            return false;
    return true;
}

kofn_status kf_screen(const kf_factors *f, bool *clean)
{
    screen s = {.f = f};
    kofn_status st = KOFN_OK;

    *clean = false;
    if (f->S || f->m == 0 || f->n == 0 || f->p == 0)
        return KOFN_OK;
    st = make_room(&s);
    if (!st && columns_are_near_one(&s))
        *clean = s.by_columns ? columns_are_usual(&s) : rows_are_usual(&s);
    kf_scales_free(&s.col);
    kf_free(s.row);
    kf_free(s.W);
    kf_free(s.U);
    kf_free(s.sum);
    return st;
}
