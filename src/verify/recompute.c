/* recompute.c -- single entries of A B with the accuracy of twice the
 * precision.
 *
 * T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM J. Sci.
 * Comput. 26(6), 2005: a sum, and separately the rounding error of every step.
 *
 * A kf_recompute owns its lists of entries.  Entries are computed from A and B
 * alone and must not use C. */
#include "freivalds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Columns of B that are gathered at a time: neighbours share cache lines. */
#define BATCH 16
#define BATCH_NUMBERS ((size_t)1 << 21)

/* A row or column, multiplied by a power of two, which is exact. */
typedef struct line {
    double *x;
    int exponent;
    bool zero;
} line;

kofn_status kf_recompute_begin(kf_recompute *r, const kf_factors *f)
{
    size_t batch = kf_min(BATCH, kf_max(1, BATCH_NUMBERS / f->n));

    *r = (kf_recompute){.f = f, .batch = kf_min(batch, f->p)};
    r->a = kf_new(f->terms, sizeof *r->a);
    r->b = kf_new(r->batch, f->n * sizeof *r->b);
    return r->a && r->b ? KOFN_OK : KOFN_NOMEM;
}

void kf_recompute_free(kf_recompute *r)
{
    kf_free(r->entry);
    kf_free(r->a);
    kf_free(r->b);
}

/* ---- lines --------------------------------------------------------------- */

static void shift(line *l, size_t n)
{
    kf_scale s = kf_scale_of(l->x, n, 1, KOFN_F64);

    l->exponent = s.exponent;
    for (size_t k = 0; k < n && s.exponent; k++)
        l->x[k] = ldexp(l->x[k], -s.exponent);
    l->zero = s.zero;
}

static size_t load_row(const kf_recompute *r, size_t i, line *l)
{
    const kf_factors *f = r->f;
    size_t n = f->S ? f->S->ptr[i + 1] - f->S->ptr[i] : f->n;

    assert(i < f->m);
    l->x = r->a;
    for (size_t k = 0; k < n; k++)
        l->x[k] = f->S ? f->S->val[f->S->ptr[i] + k] : kf_mat_entry(f->A, i, k);
    shift(l, n);
    return n;
}

static void load_columns(const kf_recompute *r, const size_t *col, size_t from,
                         size_t count, line *l)
{
    const kf_factors *f = r->f;

    assert(count <= r->batch);
    for (size_t c = 0; c < count; c++)
        l[c].x = r->b + c * f->n;
    for (size_t k = 0; k < f->n; k++)
        for (size_t c = 0; c < count; c++)
            l[c].x[k] = kf_mat_entry(f->B, k, col ? col[from + c] : from + c);
    for (size_t c = 0; c < count; c++)
        shift(&l[c], f->n);
}

/* ---- entries ------------------------------------------------------------- */

/* Rounds to float16: 11 digits, and nothing below 2^-24. */
static double to_half(double x)
{
    int exponent;
    double y;

    frexp(x, &exponent);
    exponent = exponent < -13 ? -24 : exponent - 11;
    y = ldexp(nearbyint(ldexp(x, -exponent)), exponent);
    return fabs(y) < 0x1p16 ? y : copysign(HUGE_VAL, x);
}

/* A sum of products: the number of terms, and the sum of magnitudes. */
typedef struct total {
    size_t terms;
    double exact, size;
} total;

/* Computes sum x y, and the sum of magnitudes. index: places in y, or NULL. */
static double dot(const double *x, const double *y, const uint32_t *index,
                  size_t n, double *size)
{
    double sum = 0, lost = 0, all = 0;

    for (size_t k = 0; k < n; k++) {
        double b = y[index ? index[k] : k];
        double product = x[k] * b, next = sum + product;
        double back = next - sum;

        lost +=
            (sum - (next - back)) + (product - back) + fma(x[k], b, -product);
        sum = next;
        all += fabs(product);
    }
    *size = all;
    return sum + lost;
}

/* True if an entry is within rounding.  In any order of summation it is off by
 * at most `terms` times the unit times the sum of magnitudes (C.-P. Jeannerod,
 * S. M. Rump, "Improved error bounds for inner products in floating-point
 * arithmetic", SIAM J. Matrix Anal. Appl. 34(2), 2013), plus the loss of small
 * numbers. */
static bool is_right(const kf_factors *f, double was, const total *s,
                     const line *a, const line *b)
{
    int exponent = a->exponent + b->exponent;
    double terms = (double)s->terms;
    double bound = f->unit * (terms * s->size + fabs(s->exact));

    if (f->tolerance > 0 && !f->row.zero && !f->col.zero)
        bound += ldexp(f->tolerance / (f->row.over * f->col.over),
                       f->row.exponent + f->col.exponent - exponent);
    else if (a->zero || b->zero)
        return was == 0;
    if (s->size > 0)
        bound += ldexp(terms, f->least - exponent);
    bound += 0x1p-1070 * terms; /* loss of this sum */
    return was - was == 0 && fabs(ldexp(was, -exponent) - s->exact) <= bound;
}

static kofn_status look(kf_recompute *r, size_t i, size_t j, const line *a,
                        size_t terms, const line *b)
{
    const kf_factors *f = r->f;
    const uint32_t *index = f->S ? f->S->col + f->S->ptr[i] : NULL;
    total s = {.terms = terms};
    double was = kf_mat_entry(f->C, i, j), is;

    assert(j < f->p);
    s.exact = dot(a->x, b->x, index, terms, &s.size);
    is = ldexp(s.exact, a->exponent + b->exponent);

    if (f->half)
        is = to_half(is);
    else if (f->C->dtype == KOFN_F32)
        is = (double)(float)is;
    if (was == is || is_right(f, was, &s, a, b))
        return KOFN_OK;
    TRY(kf_grow(&r->entry, &r->cap, r->count, sizeof *r->entry));
    r->entry[r->count++] = (kofn_wrong){i, j, was, is};
    return KOFN_OK;
}

kofn_status kf_recompute_entries(kf_recompute *r, const size_t *row,
                                 size_t rows, const size_t *col, size_t cols)
{
    rows = row ? rows : r->f->m;
    cols = col ? cols : r->f->p;
    for (size_t from = 0, count; from < cols; from += count) {
        line b[BATCH];

        count = kf_min(r->batch, cols - from);
        load_columns(r, col, from, count, b);
        for (size_t k = 0; k < rows; k++) {
            size_t i = row ? row[k] : k, terms;
            line a;

            terms = load_row(r, i, &a);
            for (size_t c = 0; c < count; c++)
                TRY(look(r, i, col ? col[from + c] : from + c, &a, terms,
                         &b[c]));
        }
    }
    return KOFN_OK;
}

/* ---- order --------------------------------------------------------------- */

static int by_place(const void *x, const void *y)
{
    const kofn_wrong *a = x, *b = y;

    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->col < b->col ? -1 : a->col > b->col;
}

void kf_recompute_sort(kf_recompute *r)
{
    size_t kept = 0;

    if (r->count)
        qsort(r->entry, r->count, sizeof *r->entry, by_place);
    for (size_t e = 0; e < r->count; e++)
        if (!kept || by_place(&r->entry[kept - 1], &r->entry[e]))
            r->entry[kept++] = r->entry[e];
    r->count = kept;
}
