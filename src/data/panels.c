/* panels.c -- equilibrates an operand that comes panel by panel, because no
 * process has it as a whole.
 *
 * The scales of rows are those of scaling.c.  The scales of columns are of rows
 * that are scaled already, panel after panel.  So one reading suffices.  If
 * rows and columns differ in size and there are zeros, scaling.c looks at all
 * numbers several times, and panels are refused.
 *
 * The panels belong to the caller and are overwritten. */
#include "data.h"
#include "scale.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

/* A norm of size 1 belongs to numbers below 2. */
#define SIZE_ONE 2.0

kofn_status kf_panels_new(kf_panels *p, unsigned kind, size_t rows, size_t cols)
{
    bool by_rows = kind & KF_SCALED_ROWS;

    *p = (kf_panels){.kind = kind, .rows = rows, .cols = cols};
    if (by_rows) {
        p->row = kf_new(rows, sizeof *p->row);
        p->digits = kf_new(rows, sizeof *p->digits);
    }
    if (kind) {
        p->col = kf_new(cols, sizeof *p->col);
        p->sum = kf_zero(cols, sizeof *p->sum);
    }
    if ((by_rows && !(p->row && p->digits)) || (kind && !(p->col && p->sum))) {
        kf_panels_free(p);
        return KOFN_NOMEM;
    }
    for (size_t j = 0; kind && j < cols; j++)
        p->col[j] = (kf_scale){1, INT_MIN, true};
    return KOFN_OK;
}

void kf_panels_free(kf_panels *p)
{
    kf_free(p->row);
    kf_free(p->digits);
    kf_free(p->col);
    kf_free(p->sum);
    *p = (kf_panels){.kind = 0};
}

static bool has_zero(const kofn_matrix *a)
{
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++)
            if (kf_mat_entry(a, i, j) == 0)
                return true;
    return false;
}

/* Adds the square of a norm to that of a column.  The sum is in units of the
 * largest norm so far. */
static void add_norm(kf_scale *col, double *sum, kf_scale more)
{
    double by;

    if (more.zero)
        return;
    if (col->zero || more.exponent > col->exponent) {
        *sum = col->zero ? 0 : ldexp(*sum, 2 * (col->exponent - more.exponent));
        col->exponent = more.exponent;
        col->zero = false;
    }
    by = ldexp(1 / more.over, more.exponent - col->exponent);
    *sum += by * by;
}

static kofn_status add_columns(kf_panels *p, const kofn_matrix *panel)
{
    kf_scales s = {.count = 0};
    kofn_status st = kf_scales_of_columns(panel, &s);

    for (size_t j = 0; !st && j < p->cols; j++)
        add_norm(&p->col[j], &p->sum[j], s.of[j]);
    kf_scales_free(&s);
    return st;
}

kofn_status kf_panels_add(kf_panels *p, size_t at, const kofn_matrix *panel)
{
    char name[80];
    double most;

    assert(at + panel->rows <= p->rows);
    assert(panel->cols == p->cols);
    snprintf(name, sizeof name, "rows %zu to %zu of A", at,
             at + panel->rows - 1);
    TRY(kf_mat_check_range(panel, name, &most));
    p->most = kf_larger(p->most, most);
    p->zeros = p->zeros || (p->kind && has_zero(panel));
    if (!p->kind)
        return KOFN_OK;
    for (size_t i = 0; p->row && i < panel->rows; i++) {
        kf_scale s =
            kf_scale_of(kf_at(panel, i, 0), panel->cols, 1, panel->dtype);

        p->row[at + i] = s;
        p->digits[at + i] = s.zero ? 0 : -s.exponent;
    }
    kf_scaling_multiply(panel, p->row ? p->digits + at : NULL, NULL, 1);
    return add_columns(p, panel);
}

static bool changed(const int *row, const int *col, size_t n)
{
    const kf_scaling l = {(int *)(uintptr_t)row, (int *)(uintptr_t)col};

    return kf_scaling_change(&l, row ? n : 0, col ? n : 0);
}

/* Returns a bound on the numbers after scaling. */
static double bound(const kf_panels *p, const kf_scaling *l)
{
    int exponent = 0;

    if (!changed(l->row, NULL, p->rows) && !changed(NULL, l->col, p->cols))
        return p->most;
    if (!changed(l->row, NULL, p->rows) && p->row) {
        exponent = INT_MIN; /* columns were measured on rows of size 1 */
        for (size_t i = 0; i < p->rows; i++)
            if (!p->row[i].zero && p->row[i].exponent > exponent)
                exponent = p->row[i].exponent;
    }
    return ldexp(SIZE_ONE, exponent);
}

kofn_status kf_panels_end(kf_panels *p, kf_scaling *l, double *most)
{
    kofn_status st = KOFN_OK;
    bool rows;

    *l = (kf_scaling){NULL, NULL};
    if (p->row)
        st = kf_scaling_even(p->row, p->rows, &l->row);
    rows = !st && changed(l->row, NULL, p->rows);
    for (size_t j = 0; p->col && j < p->cols; j++)
        p->col[j].exponent += p->col[j].zero ? 0 : ilogb(sqrt(p->sum[j])) + 1;
    if (!st && (rows || p->kind & KF_SCALED_COLS))
        st = kf_scaling_even(p->col, p->cols, &l->col);
    if (!st && rows && p->zeros && changed(NULL, l->col, p->cols))
        st = kf_fail(KOFN_UNSUITED,
                     "rows and columns of A differ in size, and A has zeros: "
                     "how to scale it is only known from A as a whole; call "
                     "kofn_place, or scale the columns before");
    if (st)
        kf_scaling_free(l);
    else
        *most = bound(p, l);
    return st;
}
