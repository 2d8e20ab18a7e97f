/* norms.c -- norms of rows and columns of operands and inputs, by which results
 * are measured (compare.h).
 *
 * Squares of entries may be beyond the range of a double.  A norm is finite: it
 * is at most the largest double.  Norms of an operand are computed when they
 * are needed, and kept.
 *
 * Norms must not be too small, because honest workers would then be accused. */
#include "norms.h"

#include "code/operation.h"
#include "data/scale.h"

#include <assert.h>
#include <float.h>
#include <math.h>

/* Returns a norm, with numbers multiplied by a power of two so that it stays
 * finite. */
static double norm(const void *x, size_t n, double by, kofn_dtype dtype)
{
    double squares = kf_scale_squares(x, n, dtype);
    kf_scale s;

    if (kf_scale_fits(squares) || dtype == KOFN_F32)
        return by * sqrt(squares);
    s = kf_scale_of(x, n, 1, dtype);
    return s.zero ? 0 : fmin(ldexp(by / s.over, s.exponent), DBL_MAX);
}

/* Returns the norm of several rows together, at most the largest double. */
static double together(double a, double b)
{
    return fmin(hypot(a, b), DBL_MAX);
}

static void add_row_norms(const kofn_matrix *part, double by, double *out)
{
    for (size_t i = 0; i < part->rows; i++)
        out[i] = together(out[i],
                          norm(kf_at(part, i, 0), part->cols, by, part->dtype));
}

kofn_status kf_norms_of_part_rows(const kofn_matrix *part, size_t parts,
                                  double *row, size_t rows)
{
    memset(row, 0, rows * sizeof *row);
    for (size_t j = 0; j < parts; j++)
        add_row_norms(&part[j], 1, row);
    return KOFN_OK;
}

/* Computes row norms of a sparse A, which is cut into ranges of rows only. */
static void sparse_row_norms(const kf_resident *r, size_t group, double *row)
{
    const kofn_plan *p = r->plan;
    const kofn_sparse *A = r->A;
    size_t first = group * p->parts * p->span;
    size_t last = kf_min(first + p->parts * p->span, A->rows);

    for (size_t i = kf_min(first, A->rows); i < last; i++) {
        double *out = &row[(i - first) % p->span];

        *out = together(*out, norm(A->val + A->ptr[i],
                                   A->ptr[i + 1] - A->ptr[i], r->by, KOFN_F64));
    }
}

kofn_status kf_norms_of_rows(const kf_resident *r, size_t group, double *row)
{
    assert(group < r->plan->layout.groups);
    memset(row, 0, (r->A ? r->plan->span : r->parts.rows) * sizeof *row);
    if (r->A)
        sparse_row_norms(r, group, row);
    for (size_t j = 0; !r->A && j < r->plan->parts; j++)
        add_row_norms(kf_resident_part(r, group, j), r->by, row);
    return KOFN_OK;
}

/* Computes column norms with columns divided by their largest entries. */
static kofn_status careful_columns(const kofn_matrix *part, size_t parts,
                                   double by, double *col, size_t cols)
{
    double *top = kf_zero(cols, sizeof *top);

    if (!top)
        return KOFN_NOMEM;
    for (size_t j = 0; j < parts; j++)
        for (size_t i = 0; i < part[j].rows; i++)
            for (size_t c = 0; c < cols; c++)
                top[c] = kf_larger(top[c], fabs(kf_mat_entry(&part[j], i, c)));
    memset(col, 0, cols * sizeof *col);
    for (size_t j = 0; j < parts; j++)
        for (size_t i = 0; i < part[j].rows; i++)
            for (size_t c = 0; c < cols; c++) {
                double x =
                    top[c] > 0 ? kf_mat_entry(&part[j], i, c) / top[c] : 0;

                col[c] += x * x;
            }
    for (size_t c = 0; c < cols; c++)
        col[c] = together(by * top[c] * sqrt(col[c]), 0);
    kf_free(top);
    return KOFN_OK;
}

kofn_status kf_norms_of_columns(const kofn_matrix *part, size_t parts,
                                double by, double *col, size_t cols)
{
    bool all_fit = true;

    assert(by > 0);
    memset(col, 0, cols * sizeof *col);
    for (size_t j = 0; j < parts; j++)
        kf_scale_add_squares(&part[j], col);
    for (size_t c = 0; c < cols; c++)
        all_fit &= kf_scale_fits(col[c]);
    if (!all_fit)
        return careful_columns(part, parts, by, col, cols);
    for (size_t c = 0; c < cols; c++)
        col[c] = by * sqrt(col[c]);
    return KOFN_OK;
}

kofn_status kf_norms_of_resident_columns(const kf_resident *r, double *col,
                                         size_t cols)
{
    const kofn_sparse *A = r->A;

    if (!A)
        return kf_norms_of_columns(r->parts.part, r->parts.count, r->by, col,
                                   cols);
    memset(col, 0, cols * sizeof *col);
    for (size_t e = 0; e < A->ptr[A->rows]; e++)
        col[A->col[e]] = together(col[A->col[e]], r->by * A->val[e]);
    return KOFN_OK;
}

kofn_status kf_norms_of_input(const kofn_plan *use, const kf_messages *m,
                              const kofn_matrix *whole, double **out)
{
    bool cut = use->parts1 > 1;
    const kf_parts *p = &m->parts;
    const kofn_matrix *part = cut ? p->part : whole;
    size_t parts = cut ? p->count : 1;
    size_t rows = cut ? p->rows : whole->rows;
    size_t cols =
        use->of ? kf_ceil_div(use->layout.problem.n, use->layout.cut[0].cols)
        : cut   ? p->cols
                : whole->cols;
    double by = cut && m->lent ? m->by : 1; /* a lent input is not multiplied */

    TRY_NEW(*out, use->op->left ? rows : cols);
    for (size_t i = 0; use->of && i < cols; i++)
        (*out)[i] = 1;
    if (use->of) /* A itself is read */
        return KOFN_OK;
    return use->op->left ? kf_norms_of_part_rows(part, parts, *out, rows)
                         : kf_norms_of_columns(part, parts, by, *out, cols);
}

/* ---- an operand ---------------------------------------------------------- */

/* Returns the length of a line; line `groups` is that of the columns. */
static size_t length_of(const kf_resident *r, size_t line)
{
    if (line == r->plan->layout.groups)
        return r->A ? r->A->cols : r->parts.cols;
    return r->A ? r->plan->span : r->parts.rows;
}

kofn_status kf_norms_know(kf_norms *n, const kf_resident *r, bool columns,
                          size_t group)
{
    size_t groups = r->plan->layout.groups, line = columns ? groups : group;
    double *known;
    kofn_status st;

    assert(group < groups);
    if (!n->norm)
        TRY_ZERO(n->norm, groups + 1);
    n->groups = groups;
    if (n->norm[line])
        return KOFN_OK;
    TRY_NEW(known, length_of(r, line));
    st = columns ? kf_norms_of_resident_columns(r, known, length_of(r, line))
                 : kf_norms_of_rows(r, group, known);
    if (st)
        kf_free(known);
    else
        n->norm[line] = known;
    return st;
}

static void free_lines(double **line, size_t groups)
{
    for (size_t i = 0; line && i <= groups; i++)
        kf_free(line[i]);
    kf_free(line);
}

/* Makes all lines of an operand, with zeros. */
static kofn_status new_lines(const kf_resident *r, double ***line)
{
    size_t groups = r->plan->layout.groups;

    TRY_ZERO(*line, groups + 1);
    for (size_t i = 0; i <= groups; i++) {
        (*line)[i] = kf_zero(length_of(r, i), sizeof(double));
        if (!(*line)[i]) {
            free_lines(*line, groups);
            *line = NULL;
            return KOFN_NOMEM;
        }
    }
    return KOFN_OK;
}

kofn_status kf_norms_expect(kf_norms *n, const kf_resident *r)
{
    assert(!n->norm);
    n->groups = r->plan->layout.groups;
    return new_lines(r, &n->norm);
}

void kf_norms_forget(kf_norms *n)
{
    free_lines(n->norm, n->groups);
    for (size_t i = 0; i < n->states; i++)
        free_lines(n->state[i], n->groups);
    free_lines(n->least, n->groups);
    *n = (kf_norms){.groups = 0};
}

kofn_status kf_norms_await(kf_norms *n, const kf_resident *r, size_t states,
                           bool renewed)
{
    for (size_t g = 0; g < r->plan->layout.groups; g++)
        TRY(kf_norms_know(n, r, false, g));
    TRY(kf_norms_know(n, r, true, 0));
    assert(states <= KOFN_CHANGE_STATES);
    n->awaits = true;
    for (; n->states < states; n->states++)
        TRY(new_lines(r, &n->state[n->states]));
    if (!renewed || n->least)
        return KOFN_OK;
    TRY(new_lines(r, &n->least));
    for (size_t i = 0; i <= n->groups; i++)
        memcpy(n->least[i], n->norm[i], length_of(r, i) * sizeof(double));
    return KOFN_OK;
}
