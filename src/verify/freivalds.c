/* freivalds.c -- random sums of the rows and the columns of C - A B.
 *
 * Rows of A and columns of B are divided by their norms, so that entries of all
 * sizes count the same.  By Cauchy and Schwarz no entry is above 1, and the
 * effect of rounding on it is known.  The weights of a row or column are a
 * vector of random direction and fixed length.  So a single wrong entry shows
 * with its full size.
 *
 *     over the rows of A:   V = - weights A
 *     over the rows of B:   U = - B W,  Q = V B
 *     over those of A, C:   R = C W + A U,  Q += weights C
 *
 * Everything is in double precision.  Only a strip of A, B and C is in memory.
 *
 * The random weights and sums belong to one check and are freed by
 * kf_freivalds_free.  The source of C must not know the weights. */
#include "freivalds.h"
#include "rounding.h"

#include "base/rng.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

/* Purposes that the library's own streams do not use. */
#define FOR_ROWS ((kf_purpose)65)
#define FOR_COLUMNS ((kf_purpose)66)

/* Numbers in a strip. */
#define STRIP ((size_t)1 << 18)

/* ---- weights ------------------------------------------------------------- */

void kf_freivalds_weights(const kf_factors *f, bool column, size_t at,
                          size_t lines, size_t sums, double *w)
{
    kf_rng rng = kf_rng_stream(f->secret, column ? FOR_COLUMNS : FOR_ROWS,
                               (uint32_t)at, (uint32_t)((uint64_t)at >> 32));
    double squares = 0;

    assert(sums <= KF_SUMS);
    assert(sums <= lines);
    assert(at < lines);
    if (lines == sums) { /* nothing is mixed */
        memset(w, 0, sums * sizeof *w);
        w[at] = sqrt((double)sums);
        return;
    }
    while (squares < 0.01) {
        squares = 0;
        for (size_t q = 0; q < sums; q++) {
            w[q] = 2 * kf_rng_uniform(&rng) - 1;
            squares += w[q] * w[q];
        }
    }
    for (size_t q = 0; q < sums; q++)
        w[q] *= sqrt((double)sums / squares);
}

/* ---- levels -------------------------------------------------------------- */

/* Returns the rounding error of an entry, usual or largest, for any order of
 * summation, plus that of the sums here. */
static double rounding(const kf_factors *f, size_t lines, bool most)
{
    double own = (double)f->terms + (double)lines, terms = (double)f->terms;

    if (most)
        return f->unit * terms + 0x1p-52 * own + f->tolerance;
    return 2 * f->unit * kf_rounding_usual(terms) +
           0x1p-52 * kf_rounding_usual(own) + f->tolerance;
}

/* Returns a level: sums beyond this multiple of their expected size are taken
 * for impossible.  `tiny` is the loss of numbers below the normal range. */
static double level(const kf_factors *f, size_t sums, size_t lines, double tiny,
                    bool most)
{
    return KF_ROUNDING_FAR * sqrt((double)sums * (double)lines) *
           (rounding(f, lines, most) + tiny);
}

void kf_freivalds_levels(kf_line *s, const kf_factors *f, size_t sums,
                         size_t lines, int smallest)
{
    double tiny = 0;

    assert(sums > 0);
    if (!s->scale.zero && smallest != INT_MAX)
        tiny = ldexp((double)f->terms,
                     f->least + 2 - s->scale.exponent - smallest);
    s->usual = s->scale.zero ? 0 : level(f, sums, lines, tiny, false);
    s->most = s->scale.zero ? 0 : level(f, sums, lines, tiny, true);
}

double kf_freivalds_floor(const kf_freivalds *v, bool all, bool columns)
{
    const kf_factors *f = v->f;
    double row = level(f, v->across, f->p, 0, !all) / sqrt((double)v->across);
    double col = level(f, v->down, f->m, 0, !all) / sqrt((double)v->down);
    double entry = f->unit * (double)(f->terms + 1) + f->tolerance;
    double sums = 2 * (columns && col < row ? col : row);

    return kf_larger(sums, entry);
}

/* ---- strips -------------------------------------------------------------- */

kf_scale kf_freivalds_row_scale(const kf_factors *f, size_t i)
{
    assert(i < f->m);
    if (f->tolerance > 0)
        return f->row;
    if (f->S)
        return kf_scale_of(f->S->val + f->S->ptr[i],
                           f->S->ptr[i + 1] - f->S->ptr[i], 1, KOFN_F64);
    return kf_scale_of(kf_at(f->A, i, 0), f->n, 1, f->A->dtype);
}

static double sparse_entry(const kf_factors *f, size_t e, kf_scale s)
{
    return ldexp(f->S->val[e], -s.exponent) * s.over;
}

static kofn_matrix view(double *x, size_t rows, size_t cols, size_t ld)
{
    return (kofn_matrix){x, rows, cols, ld, KOFN_F64};
}

/* Draws v->w, sums x rows, times `sign`. */
static void draw_strip(kf_freivalds *v, size_t lo, size_t rows, double sign)
{
    double w[KF_SUMS];

    assert(rows <= v->strip);
    for (size_t i = 0; i < rows; i++) {
        kf_freivalds_weights(v->f, false, lo + i, v->f->m, v->down, w);
        for (size_t q = 0; q < v->down; q++)
            v->w[q * rows + i] = sign * w[q];
    }
}

static void add_sparse_row(kf_freivalds *v, size_t i, kf_scale s,
                           const double *w, size_t stride)
{
    const kofn_sparse *S = v->f->S;

    for (size_t e = S->ptr[i]; e < S->ptr[i + 1]; e++) {
        double x = sparse_entry(v->f, e, s);

        for (size_t q = 0; q < v->down; q++)
            v->V[q * v->f->n + S->col[e]] += w[q * stride] * x;
    }
}

/* Sums up the rows of A, each divided by its norm, with the random weights.
 * One strip of A is in memory at a time. */
static void know_A(kf_freivalds *v)
{
    const kf_factors *f = v->f;

    v->smallest = INT_MAX;
    for (size_t lo = 0, rows; lo < f->m; lo += rows) {
        kofn_matrix w, a;

        rows = kf_min(v->strip, f->m - lo);
        draw_strip(v, lo, rows, -1);
        for (size_t i = 0; i < rows; i++) {
            kf_scale s = kf_freivalds_row_scale(f, lo + i);

            if (!s.zero && s.exponent < v->smallest)
                v->smallest = s.exponent;
            if (f->S)
                add_sparse_row(v, lo + i, s, v->w + i, rows);
            else
                kf_scale_row(kf_at(f->A, lo + i, 0), f->n, f->A->dtype, s, NULL,
                             v->a + i * f->n);
        }
        w = view(v->w, v->down, rows, rows);
        a = view(v->a, rows, f->n, f->n);
        if (!f->S)
            kf_mat_multiply(&w, &a, true, v->V);
    }
}

static void know_B(kf_freivalds *v)
{
    const kf_factors *f = v->f;
    const kf_scale as_it_is = {1, 0, false};
    kofn_matrix W = view(v->W, f->p, v->across, v->across);

    for (size_t lo = 0, rows; lo < f->n; lo += rows) {
        kofn_matrix V, b;

        rows = kf_min(v->strip, f->n - lo);
        for (size_t k = 0; k < rows; k++)
            kf_scale_row(kf_at(f->B, lo + k, 0), f->p, f->B->dtype, as_it_is,
                         &v->col, v->c + k * f->p);
        V = view(v->V + lo, v->down, rows, f->n);
        b = view(v->c, rows, f->p, f->p);
        kf_mat_multiply(&b, &W, false, v->U + lo * v->across);
        kf_mat_multiply(&V, &b, true, v->Q);
    }
    for (size_t i = 0; i < f->n * v->across; i++)
        v->U[i] = -v->U[i];
}

/* ---- rows ---------------------------------------------------------------- */

static kofn_status add_suspect(kf_suspect_lines *list, const kf_line *s)
{
    TRY(kf_grow(&list->of, &list->cap, list->count, sizeof *list->of));
    list->of[list->count++] = *s;
    return KOFN_OK;
}

static double norm_of(const double *x, size_t n)
{
    double squares = 0;

    for (size_t q = 0; q < n; q++)
        squares += x[q] * x[q];
    return sqrt(squares);
}

/* Marks entries that are not 0 although a factor is; they have no scale. */
static void find_nonzero(kf_freivalds *v, kf_line *s)
{
    size_t count = s->scale.zero ? v->f->p : v->zeros;

    for (size_t k = 0; k < count; k++) {
        size_t j = s->scale.zero ? k : v->zero[k];

        if (kf_mat_entry(v->f->C, s->at, j) != 0) {
            v->odd[j] |= 1;
            s->sure = true;
        }
    }
}

/* Loads row i of C into strip row `to`.  Entries that are not finite, or too
 * large for any product, are replaced by 0 and marked. */
static void load_row(kf_freivalds *v, kf_line *s, double *to)
{
    const kf_factors *f = v->f;

    find_nonzero(v, s);
    kf_scale_row(kf_at(f->C, s->at, 0), f->p, f->C->dtype, s->scale, &v->col,
                 to);
    for (size_t j = kf_mat_first_odd(to, f->p, KOFN_F64); j < f->p; j++) {
        bool full = s->scale.exponent + v->col.of[j].exponent >= f->top;

        if (to[j] - to[j] == 0)
            continue;
        to[j] = 0;
        v->odd[j] |= full ? 2 : 1;
        s->sure = true;
        s->full |= full;
    }
}

/* Computes R += A U for one row. */
static void multiply_sparse_row(const kf_freivalds *v, size_t i, kf_scale s,
                                double *R)
{
    const kofn_sparse *S = v->f->S;

    for (size_t e = S->ptr[i]; e < S->ptr[i + 1]; e++) {
        double x = sparse_entry(v->f, e, s);

        for (size_t q = 0; q < v->across; q++)
            R[q] += x * v->U[S->col[e] * v->across + q];
    }
}

/* Computes v->R of the rows in v->a and v->c. */
static void sum_rows(kf_freivalds *v, const kf_line *row, size_t rows)
{
    const kf_factors *f = v->f;
    kofn_matrix W = view(v->W, f->p, v->across, v->across);
    kofn_matrix U = view(v->U, f->n, v->across, v->across);
    kofn_matrix a = view(v->a, rows, f->n, f->n);
    kofn_matrix c = view(v->c, rows, f->p, f->p);

    kf_mat_multiply(&c, &W, false, v->R);
    if (!f->S)
        kf_mat_multiply(&a, &U, true, v->R);
    for (size_t i = 0; f->S && i < rows; i++)
        multiply_sparse_row(v, row[i].at, row[i].scale, v->R + i * v->across);
}

static void load_A(kf_freivalds *v, const kf_line *s, size_t i)
{
    const kf_factors *f = v->f;

    assert(i < v->strip);
    if (!f->S)
        kf_scale_row(kf_at(f->A, s->at, 0), f->n, f->A->dtype, s->scale, NULL,
                     v->a + i * f->n);
}

static kofn_status judge_rows(kf_freivalds *v, kf_line *row, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        double norm = norm_of(v->R + i * v->across, v->across);

        kf_freivalds_levels(&row[i], v->f, v->across, v->f->p, v->col.smallest);
        row[i].sure |= !(norm <= row[i].most);
        if (row[i].sure || !(norm <= row[i].usual))
            TRY(add_suspect(&v->rows, &row[i]));
    }
    return KOFN_OK;
}

static kofn_status compare_rows(kf_freivalds *v, kf_line *row)
{
    const kf_factors *f = v->f;

    for (size_t lo = 0, rows; lo < f->m; lo += rows) {
        kofn_matrix w, c;

        rows = kf_min(v->strip, f->m - lo);
        draw_strip(v, lo, rows, 1);
        for (size_t i = 0; i < rows; i++) {
            row[i] = (kf_line){.at = lo + i,
                               .scale = kf_freivalds_row_scale(f, lo + i)};
            load_A(v, &row[i], i);
            load_row(v, &row[i], v->c + i * f->p);
        }
        w = view(v->w, v->down, rows, rows);
        c = view(v->c, rows, f->p, f->p);
        kf_mat_multiply(&w, &c, true, v->Q);
        sum_rows(v, row, rows);
        TRY(judge_rows(v, row, rows));
    }
    return KOFN_OK;
}

double kf_freivalds_again(kf_freivalds *v, const kf_line *row,
                          const kofn_wrong *fixed, size_t count)
{
    kf_line again = *row;

    load_A(v, row, 0);
    load_row(v, &again, v->c);
    for (size_t e = 0; e < count; e++) {
        kf_scale s = v->col.of[fixed[e].col];

        v->c[fixed[e].col] =
            ldexp(fixed[e].is, -s.exponent - row->scale.exponent) * s.over *
            row->scale.over;
    }
    sum_rows(v, row, 1);
    return norm_of(v->R, v->across);
}

/* ---- columns ------------------------------------------------------------- */

static kofn_status compare_columns(kf_freivalds *v)
{
    const kf_factors *f = v->f;

    for (size_t j = 0; j < f->p; j++) {
        kf_line s = {.at = j,
                     .scale = v->col.of[j],
                     .sure = v->odd[j],
                     .full = v->odd[j] & 2};
        double norm;

        for (size_t q = 0; q < v->down; q++)
            s.sum[q] = v->Q[q * f->p + j];
        norm = norm_of(s.sum, v->down);
        kf_freivalds_levels(&s, f, v->down, f->m, v->smallest);
        s.sure |= !(norm <= s.most);
        if (s.sure || !(norm <= s.usual))
            TRY(add_suspect(&v->cols, &s));
    }
    return KOFN_OK;
}

/* ---- all of it ----------------------------------------------------------- */

static kofn_status make_room(kf_freivalds *v)
{
    const kf_factors *f = v->f;
    size_t wide = f->n + f->p, most = kf_max(f->m, f->n);

    v->strip = kf_min(kf_max(STRIP / wide, 1), most);
    v->W = kf_new(f->p, v->across * sizeof(double));
    v->U = kf_new(f->n, v->across * sizeof(double));
    v->V = kf_zero(f->n, v->down * sizeof(double));
    v->Q = kf_zero(f->p, v->down * sizeof(double));
    v->a = f->S ? NULL : kf_new(v->strip, f->n * sizeof(double));
    v->c = kf_new(v->strip, f->p * sizeof(double));
    v->w = kf_new(v->strip, v->down * sizeof(double));
    v->R = kf_new(v->strip, v->across * sizeof(double));
    v->odd = kf_zero(f->p, sizeof *v->odd);
    v->zero = kf_new(f->p, sizeof *v->zero);
    if (!v->W || !v->U || !v->V || !v->Q || (!f->S && !v->a) || !v->c ||
        !v->w || !v->R || !v->odd || !v->zero)
        return KOFN_NOMEM;
    for (size_t j = 0; j < f->p; j++)
        if (v->col.of[j].zero)
            v->zero[v->zeros++] = j;
    for (size_t j = 0; j < f->p; j++)
        kf_freivalds_weights(f, true, j, f->p, v->across, v->W + j * v->across);
    return KOFN_OK;
}

void kf_freivalds_expect(kf_freivalds *v, const kf_factors *f)
{
    *v = (kf_freivalds){
        .f = f, .across = kf_min(KF_SUMS, f->p), .down = kf_min(KF_SUMS, f->m)};
}

kofn_status kf_freivalds_run(kf_freivalds *v, const kf_factors *f)
{
    kf_line *row;
    kofn_status st;

    kf_freivalds_expect(v, f);
    TRY(kf_scales_of_columns(f->B, &v->col));
    if (f->tolerance > 0)
        kf_scales_scaling(&v->col, f->col);
    TRY(make_room(v));
    know_A(v);
    know_B(v);
    row = kf_new(v->strip, sizeof *row);
    st = row ? compare_rows(v, row) : KOFN_NOMEM;
    kf_free(row);
    return st ? st : compare_columns(v);
}

void kf_freivalds_free(kf_freivalds *v)
{
    double *own[] = {v->W, v->U, v->V, v->Q, v->a, v->c, v->w, v->R};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        kf_free(own[i]);
    kf_free(v->odd);
    kf_free(v->zero);
    kf_free(v->rows.of);
    kf_free(v->cols.of);
    kf_scales_free(&v->col);
}
