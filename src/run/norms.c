/* norms.c -- how large the rows and columns are of an operand that changes, which
 * nobody has.
 *
 * Results are measured by the norms of the rows and columns they are products of
 * (check.h).  Of what a change adds they are bounded: that of a row of U' V by the
 * norm of U's column times the largest singular value of V, and so for columns.
 * The bounds grow with every change, and are the norms again when the operand has
 * been read. */
#include "run.h"

#include "data/check.h"

#include <float.h>
#include <math.h>

/* At least the largest singular value: the root of the largest sum of a row of
 * a a', with a little more for its rounding. */
static kofn_status most_stretched(const kofn_matrix *a, double *out)
{
    kofn_matrix g = {kf_new(a->rows * a->rows, kf_dtype_size(a->dtype)),
                     a->rows, a->rows, a->rows, a->dtype};
    double most = 0;

    if (!g.data)
        return KOFN_NOMEM;
    kf_mat_multiply_turned(a, false, a, true, &g);
    for (size_t i = 0; i < g.rows; i++) {
        double sum = 0;

        for (size_t k = 0; k < g.cols; k++)
            sum += fabs(kf_mat_entry(&g, i, k));
        most = kf_larger(most, sum);
    }
    kf_free(g.data);
    *out = 1.01 * sqrt(most);
    return KOFN_OK;
}

/* Squares of columns first, first + 1, ... of a, cut every `width` of them, of
 * `parts` parts. */
static void add_squares(const kofn_matrix *a, size_t first, size_t width,
                        size_t parts, double *sum)
{
    for (size_t k = 0; k < a->rows; k++)
        for (size_t c = first; c < a->cols && c < first + parts * width; c++) {
            double x = kf_mat_entry(a, k, c);

            sum[(c - first) % width] += x * x;
        }
}

/* A row, or a column, of what is added is no larger than `gain` times the root of
 * its square here. */
static void grow(const kofn_change *c, const double *square, double gain,
                 size_t n, double *norm, double *speed)
{
    double momentum = fabs(c->momentum);

    for (size_t i = 0; i < n; i++) {
        double G = gain * sqrt(square[i]) + fabs(c->decay) * norm[i];
        double M = momentum * speed[i] + G;

        norm[i] += fabs(c->step) * (c->nesterov ? G + momentum * M : M);
        speed[i] = momentum > 0 ? M : 0;
    }
}

static kofn_status change_one(kf_held *h, const kofn_change *c,
                              const kofn_matrix *a, double gain, size_t at,
                              size_t first, size_t width, size_t parts)
{
    double *square = kf_zero(width, sizeof *square);

    if (!square)
        return KOFN_NOMEM;
    if (!h->speed[at])
        h->speed[at] = kf_zero(width, sizeof *square);
    if (h->speed[at]) {
        add_squares(a, first, width, parts, square);
        grow(c, square, gain, width, h->norms[at], h->speed[at]);
    }
    kf_free(square);
    return h->speed[at] ? KOFN_OK : KOFN_NOMEM;
}

kofn_status kf_guard_change(kf_held *h, const kofn_change *change,
                            const kofn_matrix *U, const kofn_matrix *V)
{
    const kofn_layout *L = &h->plan->layout;
    const kf_parts *p = &h->resident.parts;
    size_t rows = L->cut[0].rows, cols = L->cut[0].cols;
    double of_U, of_V, by = h->resident.by;

    TRY(kf_guard_know(h));
    if (!h->speed)
        h->speed = kf_zero(2 * L->groups, sizeof *h->speed);
    if (!h->speed)
        return KOFN_NOMEM;
    TRY(most_stretched(U, &of_U));
    TRY(most_stretched(V, &of_V));
    for (size_t g = 0; g < L->groups; g++)
        TRY(change_one(h, change, U, by * of_V, g, g * rows * p->rows, p->rows,
                       rows));
    return change_one(h, change, V, by * of_U, L->groups, 0, p->cols, cols);
}

kofn_status kf_guard_renew_rows(kf_held *h, bool velocity,
                                const kf_resident *strips, size_t at,
                                double **cols)
{
    double **norms = velocity ? h->speed : h->norms;
    size_t n = strips->parts.cols, groups = h->plan->layout.groups;
    double *more;
    kofn_status st = KOFN_OK;

    if (!norms || !norms[groups]) /* nothing was measured yet */
        return KOFN_OK;
    more = kf_new(n, sizeof *more);
    if (more && !*cols)
        *cols = kf_zero(n, sizeof **cols);
    if (!more || !*cols)
        st = KOFN_NOMEM;
    for (size_t g = 0; g < groups && !st; g++)
        if (norms[g])
            st = kf_data_scales_of_rows(strips, g, norms[g] + at);
    if (!st)
        st = kf_data_scales_of_resident_columns(strips, more, n);
    for (size_t i = 0; i < n && !st; i++)
        (*cols)[i] = fmin(hypot((*cols)[i], more[i]), DBL_MAX);
    kf_free(more);
    return st;
}

void kf_guard_renew_cols(kf_held *h, bool velocity, double **cols)
{
    double **norms = velocity ? h->speed : h->norms;

    if (*cols) {
        kf_free(norms[h->plan->layout.groups]);
        norms[h->plan->layout.groups] = *cols;
        *cols = NULL;
    }
}

kofn_status kf_guard_renew(kf_held *h, const kofn_matrix *A)
{
    kf_held now = {.plan = h->plan};
    kofn_status st = kf_resident_dense(&now.resident, h->plan, A);

    now.resident.by = h->resident.by;
    if (!st)
        st = kf_guard_know(&now);
    if (!st) {
        double **was = h->norms;

        h->norms = now.norms;
        now.norms = was;
    }
    kf_guard_forget(&now);
    kf_resident_free(&now.resident);
    return st;
}
