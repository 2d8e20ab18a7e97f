/* findings.c -- tests C = A B: from suspected rows and columns to wrong
 * entries.
 *
 * Entries at the crossings of suspected rows and columns are recomputed first.
 * Then whole rows and columns are recomputed if the corrected entries do not
 * explain their sums.  So no entry is reported because of random sums alone,
 * and corrections are as exact as possible.  If recomputing costs too much,
 * rows and columns are reported as wrong if their sums are beyond any rounding.
 *
 * The findings belong to the caller and are freed by kofn_findings_free.
 * Matrices are borrowed; only kofn_correct writes to C. */
#include "freivalds.h"

#include "base/entropy.h"
#include "base/rng.h"

#include <assert.h>
#include <float.h>
#include <math.h>

/* Work for recomputed entries, in passes over the operands. */
#define PASSES 64

typedef struct inquiry {
    kf_factors f;
    kf_freivalds v;
    kf_recompute r;
    size_t left;    /* number of entries that may still be recomputed */
    bool sure_only; /* ignore rows and columns that are only suspected */
    bool rows_only; /* columns give no full information */
    bool *bad_row, *bad_col;
    bool complete;
} inquiry;

/* ---- crossings ----------------------------------------------------------- */

static size_t choose(const kf_suspect_lines *s, bool sure_only, size_t *at)
{
    size_t n = 0;

    for (size_t k = 0; k < s->count; k++)
        if (!sure_only || s->of[k].sure)
            at[n++] = s->of[k].at;
    return n;
}

static void spend(inquiry *q, size_t entries)
{
    q->left -= kf_min(q->left, entries);
}

/* True if rows * cols entries are affordable; the product may overflow a
 * size_t. */
static bool affords(const inquiry *q, size_t rows, size_t cols)
{
    return rows == 0 || cols <= q->left / rows;
}

static kofn_status look_at_crossings(inquiry *q)
{
    size_t *row = kf_new(q->v.rows.count, sizeof *row);
    size_t *col = kf_new(q->v.cols.count, sizeof *col);
    kofn_status st = row && col ? KOFN_OK : KOFN_NOMEM;
    size_t rows, cols;

    if (!st) {
        q->sure_only = !affords(q, q->v.rows.count, q->v.cols.count);
        rows = choose(&q->v.rows, q->sure_only, row);
        cols = choose(&q->v.cols, q->sure_only, col);
        if (affords(q, rows, cols)) {
            spend(q, rows * cols);
            st = kf_recompute_entries(&q->r, row, rows, col, cols);
        }
    }
    kf_free(row);
    kf_free(col);
    return st;
}

/* ---- lines that are not explained ---------------------------------------- */

/* Finds the corrected entries of row i by bisection; entries are sorted by row.
 */
static const kofn_wrong *fixed_in(const kf_recompute *r, size_t i, size_t *n)
{
    size_t lo = 0, hi = r->count, end;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (r->entry[mid].row < i)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (end = lo; end < r->count && r->entry[end].row == i;)
        end++;
    *n = end - lo;
    return r->entry + lo;
}

/* Recomputes the whole row or column if that is affordable.  Else marks it
 * wrong if `surely`, else ignores it. */
static kofn_status settle(inquiry *q, const kf_line *s, bool column,
                          bool surely)
{
    size_t length = column ? q->f.m : q->f.p;

    assert(s->at < (column ? q->f.p : q->f.m));
    if (s->full || affords(q, 1, length)) {
        spend(q, length);
        return column ? kf_recompute_entries(&q->r, NULL, 0, &s->at, 1)
                      : kf_recompute_entries(&q->r, &s->at, 1, NULL, 0);
    }
    if (surely) {
        (column ? q->bad_col : q->bad_row)[s->at] = true;
        q->complete = false;
    } else {
        q->sure_only = true;
    }
    return KOFN_OK;
}

static kofn_status settle_rows(inquiry *q)
{
    size_t known = q->r.count; /* entries found below do not move these */

    for (size_t k = 0; k < q->v.rows.count; k++) {
        const kf_line *s = &q->v.rows.of[k];
        kf_recompute sorted = q->r;
        const kofn_wrong *fixed;
        double norm;
        size_t n;

        if (q->sure_only && !s->sure)
            continue;
        sorted.count = known;
        fixed = fixed_in(&sorted, s->at, &n);
        norm =
            n || !s->sure ? kf_freivalds_again(&q->v, s, fixed, n) : HUGE_VAL;
        if (s->full || !(norm <= (q->sure_only ? s->most : s->usual)))
            TRY(settle(q, s, false, !(norm <= s->most)));
    }
    kf_recompute_sort(&q->r);
    return KOFN_OK;
}

/* Returns an entry divided by its norms; 0 if it was replaced by 0. */
static double scaled(double x, kf_scale a, kf_scale b)
{
    return x - x == 0 ? ldexp(x, -a.exponent - b.exponent) * a.over * b.over
                      : 0;
}

/* Removes the found errors from the sums of their columns; error[k] receives
 * the rounding of this. */
static void take_out(inquiry *q, const size_t *suspect, double *error)
{
    const kf_factors *f = &q->f;
    kf_scale a = {0};
    double w[KF_SUMS];

    for (size_t e = 0; e < q->r.count; e++) {
        const kofn_wrong *x = &q->r.entry[e];
        size_t k = suspect[x->col];
        double was, is;

        if (e == 0 || x[-1].row != x->row) {
            a = kf_freivalds_row_scale(f, x->row);
            kf_freivalds_weights(f, false, x->row, f->m, q->v.down, w);
        }
        if (k == q->v.cols.count)
            continue;
        was = scaled(x->was, a, q->v.cols.of[k].scale);
        is = scaled(x->is, a, q->v.cols.of[k].scale);
        for (size_t s = 0; s < q->v.down; s++)
            q->v.cols.of[k].sum[s] += w[s] * (is - was);
        error[k] += 0x1p-50 * (double)q->v.down * (fabs(was) + fabs(is));
    }
}

static kofn_status settle_column(inquiry *q, const kf_line *s, double error)
{
    double norm = 0;

    for (size_t k = 0; k < q->v.down; k++)
        norm = hypot(norm, s->sum[k]);
    if (s->full || (q->sure_only && !s->sure) ||
        norm <= (q->sure_only ? s->most : s->usual)) {
        q->rows_only |= s->full;
        return KOFN_OK;
    }
    q->rows_only |= error > s->usual;
    return settle(q, s, true, !(norm <= s->most + error));
}

/* Settles each suspected column.  Errors found in rows are removed from its
 * sums first; only the rest counts against it. */
static kofn_status settle_columns(inquiry *q)
{
    size_t count = q->v.cols.count, *suspect = kf_new(q->f.p, sizeof *suspect);
    double *error = kf_zero(count, sizeof *error);
    kofn_status st = suspect && error ? KOFN_OK : KOFN_NOMEM;

    for (size_t j = 0; !st && j < q->f.p; j++)
        suspect[j] = count;
    for (size_t k = 0; !st && k < count; k++)
        suspect[q->v.cols.of[k].at] = k;
    if (!st)
        take_out(q, suspect, error);
    for (size_t k = 0; !st && k < count; k++) {
        const kf_line *s = &q->v.cols.of[k];

        if (q->complete)
            st = settle_column(q, s, error[k]);
        else /* a wrong row affects all its columns */
            q->bad_col[s->at] |= s->sure;
    }
    kf_free(suspect);
    kf_free(error);
    kf_recompute_sort(&q->r);
    return st;
}

/* ---- findings ------------------------------------------------------------ */

static size_t list(const bool *bad, size_t n, size_t **out)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += bad[i];
    *out = kf_new(count, sizeof **out);
    count = 0;
    for (size_t i = 0; *out && i < n; i++)
        if (bad[i])
            (*out)[count++] = i;
    return count;
}

/* Writes the findings, which take over the list of entries, and the message.
 * Rows and columns with a wrong entry are reported too. */
static kofn_status tell(inquiry *q, kofn_findings *found)
{
    for (size_t e = 0; e < q->r.count; e++) {
        q->bad_row[q->r.entry[e].row] = true;
        q->bad_col[q->r.entry[e].col] = true;
    }
    found->rows = list(q->bad_row, q->f.m, &found->row);
    found->cols = list(q->bad_col, q->f.p, &found->col);
    if (!found->row || !found->col)
        return KOFN_NOMEM;
    found->size = sizeof *found;
    found->floor = kf_freivalds_floor(&q->v, !q->sure_only, !q->rows_only);
    found->complete = q->complete;
    found->entry = q->r.entry;
    found->entries = q->r.count;
    q->r.entry = NULL;
    if (!found->rows && !found->cols)
        return KOFN_OK;
    if (!found->complete)
        return kf_fail(KOFN_CORRUPT,
                       "C is not A B: more is wrong, in %zu of %zu rows and "
                       "%zu of %zu columns, than is worth computing again "
                       "entry by entry",
                       found->rows, q->f.m, found->cols, q->f.p);
    return kf_fail(
        KOFN_CORRUPT,
        "C is not A B in %zu of %zu entries, %zu of %zu rows and %zu "
        "of %zu columns; the first is [%zu, %zu], %.17g and not %.17g",
        found->entries, q->f.m * q->f.p, found->rows, q->f.m, found->cols,
        q->f.p, found->entry[0].row, found->entry[0].col, found->entry[0].was,
        found->entry[0].is);
}

static kofn_status check_finite(const kf_factors *f)
{
    if (!f->S)
        TRY(kf_mat_check_finite(f->A, "A"));
    return kf_mat_check_finite(f->B, "B");
}

static kofn_status inquire(inquiry *q, kofn_findings *found)
{
    bool clean;

    q->complete = true;
    q->left = kf_max(PASSES * (q->f.numbers / kf_max(q->f.terms, 1)), 1);
    TRY_ZERO(q->bad_row, q->f.m);
    TRY_ZERO(q->bad_col, q->f.p);
    TRY(kf_screen(&q->f, &clean));
    if (clean) {
        kf_freivalds_expect(&q->v, &q->f);
        return tell(q, found);
    }
    TRY(check_finite(&q->f));
    TRY(kf_freivalds_run(&q->v, &q->f));
    TRY(kf_recompute_begin(&q->r, &q->f));
    if (q->v.rows.count || q->v.cols.count) {
        TRY(look_at_crossings(q));
        kf_recompute_sort(&q->r);
        TRY(settle_rows(q));
        TRY(settle_columns(q));
    }
    return tell(q, found);
}

/* ---- the call ------------------------------------------------------------ */

static kofn_status check_shapes(const kf_factors *f)
{
    if (f->B->rows != f->n)
        return kf_fail(KOFN_SHAPE,
                       "A is %zu x %zu and B %zu x %zu: the inner sizes do not "
                       "agree",
                       f->m, f->n, f->B->rows, f->p);
    if (f->C->rows != f->m || f->C->cols != f->p)
        return kf_fail(KOFN_SHAPE, "C is %zu x %zu and A B is %zu x %zu",
                       f->C->rows, f->C->cols, f->m, f->p);
    return KOFN_OK;
}

/* Sets the rounding and the range of the coarsest type.  Hardware supports
 * subnormal float16, so nothing from 2^-24 on is lost. */
static void know_types(kf_factors *f, kofn_dtype dtype)
{
    bool wide =
        dtype == KOFN_F64 && f->B->dtype == KOFN_F64 && f->C->dtype == KOFN_F64;

    f->unit = f->half ? 0x1p-11 : wide ? 0x1p-53 : 0x1p-24;
    f->least = f->half ? -24 : wide ? -1022 : -126;
    f->top = f->half ? 14 : wide ? 1022 : 126;
}

static kofn_status prepare(kf_factors *f, kofn_dtype dtype)
{
    if (!(f->tolerance >= 0) || f->tolerance > 1)
        return kf_fail(KOFN_INVAL, "tolerance %g is not in 0..1", f->tolerance);
    know_types(f, dtype);
    f->numbers += f->n * f->p + f->m * f->p;
    /* A wrong product could pass if its weights were known before. */
    return kf_entropy_number(&f->secret);
}

/* Finds the largest rows and columns; a tolerance is relative to them. */
static kofn_status know_largest(kf_factors *f)
{
    double tolerance = f->tolerance;
    kf_scales cols;

    f->row = f->col = (kf_scale){1, 0, true};
    if (tolerance == 0)
        return KOFN_OK;
    TRY(check_finite(f));
    f->tolerance = 0; /* relative to each row's own norm */
    for (size_t i = 0; i < f->m; i++)
        f->row = kf_scale_larger(f->row, kf_freivalds_row_scale(f, i));
    f->tolerance = tolerance;
    TRY(kf_scales_of_columns(f->B, &cols));
    for (size_t j = 0; j < f->p; j++)
        f->col = kf_scale_larger(f->col, cols.of[j]);
    kf_scales_free(&cols);
    return KOFN_OK;
}

/* `dtype`: the type of A */
static kofn_status run(kf_factors *f, kofn_dtype dtype, kofn_findings **out)
{
    inquiry q = {0};
    kofn_findings *found;
    kofn_status st;

    TRY(check_shapes(f));
    TRY(prepare(f, dtype));
    TRY_ZERO(found, 1);
    q.f = *f;
    st = know_largest(&q.f);
    if (!st)
        st = inquire(&q, found);
    kf_freivalds_free(&q.v);
    kf_recompute_free(&q.r);
    kf_free(q.bad_row);
    kf_free(q.bad_col);
    if (st == KOFN_OK || st == KOFN_CORRUPT)
        *out = found;
    else
        kofn_findings_free(found);
    return st;
}

static kofn_status check_dense(const kofn_matrix *B, const kofn_matrix *C,
                               kofn_findings **out)
{
    if (!out)
        return kf_fail(KOFN_INVAL, "out is NULL");
    *out = NULL;
    TRY(kf_mat_check_matrix(B, "B"));
    return kf_mat_check_matrix(C, "C");
}

/* Checks the dense A of f, and sets its sizes. */
static kofn_status take_dense(kf_factors *f)
{
    TRY(kf_mat_check_matrix(f->A, "A"));
    f->m = f->A->rows;
    f->n = f->terms = f->A->cols;
    f->numbers = f->m * f->n;
    return KOFN_OK;
}

/* Checks the sparse A of f, and sets its sizes. */
static kofn_status take_sparse(kf_factors *f)
{
    const size_t *ptr;

    TRY(kf_mat_check_sparse(f->S, "A"));
    ptr = f->S->ptr;
    f->m = f->S->rows;
    f->n = f->S->cols;
    f->numbers = ptr[f->m];
    for (size_t i = 0; i < f->m; i++)
        f->terms = kf_max(f->terms, ptr[i + 1] - ptr[i]);
    return KOFN_OK;
}

/* Takes the operands and checks the product. */
static kofn_status check(kf_factors *f, kofn_operand A, kofn_findings **out)
{
    f->A = A.sparse ? NULL : A.dense;
    f->S = A.sparse;
    TRY(check_dense(f->B, f->C, out));
    TRY(A.sparse ? take_sparse(f) : take_dense(f));
    f->p = f->B->cols;
    return run(f, A.sparse ? KOFN_F64 : A.dense->dtype, out);
}

kofn_status kofn_check_product(kofn_operand A, const kofn_matrix *B,
                               const kofn_matrix *C, double tolerance,
                               kofn_findings **out)
{
    kf_factors f = {.B = B, .C = C, .tolerance = tolerance};

    return check(&f, A, out);
}

kofn_status kofn_check_product_half(kofn_operand A, const kofn_matrix *B,
                                    const kofn_matrix *C, double tolerance,
                                    kofn_findings **out)
{
    kf_factors f = {.B = B, .C = C, .tolerance = tolerance, .half = true};

    return check(&f, A, out);
}

/* Fails if the entry cannot be put into C. */
static kofn_status fits(const kofn_wrong *w, const kofn_matrix *C)
{
    bool wide = C->dtype == KOFN_F64;

    if (w->row >= C->rows || w->col >= C->cols)
        return kf_fail(KOFN_SHAPE,
                       "C is %zu x %zu, and entry [%zu, %zu] of it was found "
                       "wrong",
                       C->rows, C->cols, w->row, w->col);
    if (fabs(w->is) <= (wide ? DBL_MAX : (double)FLT_MAX))
        return KOFN_OK;
    return kf_fail(
        KOFN_NONFINITE,
        "entry [%zu, %zu] of A B is more than float%d holds, so that "
        "C cannot be corrected; divide A or B by a power of two",
        w->row, w->col, wide ? 64 : 32);
}

kofn_status kofn_correct(const kofn_findings *f, kofn_matrix *C)
{
    if (!f)
        return kf_fail(KOFN_INVAL, "findings are missing");
    TRY(kf_mat_check_matrix(C, "C"));
    if (!f->complete)
        return kf_fail(KOFN_CORRUPT, "more is wrong in C than was found one by "
                                     "one; compute it again");
    for (size_t e = 0; e < f->entries; e++)
        TRY(fits(&f->entry[e], C));
    for (size_t e = 0; e < f->entries; e++)
        kf_mat_put(C, f->entry[e].row, f->entry[e].col, f->entry[e].is);
    return KOFN_OK;
}

void kofn_findings_free(kofn_findings *f)
{
    if (!f)
        return;
    kf_free(f->entry);
    kf_free(f->row);
    kf_free(f->col);
    kf_free(f);
}
