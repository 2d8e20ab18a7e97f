/* norms.c -- bounds for the rows and columns of a matrix that changes and that
 * nobody has.
 *
 * The norm of a row of U' V is at most that of U's column times the largest
 * singular value of V, and so for columns.  The bounds grow with every change.
 *
 * Norms are changed in the caller's array.  They may only be bounds from
 * above: a bound that is too small would accuse the honest. */
#include "check.h"

#include "mat/mat.h"

#include <math.h>

/* The root of the largest sum of a row of a a', with a little more for its
 * rounding. */
kofn_status kf_data_stretch(const kofn_matrix *a, double by, double *out)
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
    *out = by * 1.01 * sqrt(most);
    return KOFN_OK;
}

static void add_squares(const kf_growth *g, double *sum)
{
    const kofn_matrix *a = g->by;
    size_t end = kf_min(a->cols, g->first + g->parts * g->width);

    for (size_t k = 0; k < a->rows; k++)
        for (size_t c = g->first; c < end; c++) {
            double x = kf_mat_entry(a, k, c);

            sum[(c - g->first) % g->width] += x * x;
        }
}

/* A row, or a column, of what is added is no larger than `gain` times the root of
 * its square here. */
static void grow(const kf_growth *g, const double *square, double *norm,
                 double *speed)
{
    const kofn_change *c = g->change;
    double momentum = fabs(c->momentum);

    for (size_t i = 0; i < g->width; i++) {
        double G = g->gain * sqrt(square[i]) + fabs(c->decay) * norm[i];
        double M = momentum * speed[i] + G;

        norm[i] += fabs(c->step) * (c->nesterov ? G + momentum * M : M);
        speed[i] = momentum > 0 ? M : 0;
    }
}

kofn_status kf_data_grow_norms(const kf_growth *g, double *norm, double *speed)
{
    double *square = kf_zero(g->width, sizeof *square);

    if (!square)
        return KOFN_NOMEM;
    add_squares(g, square);
    grow(g, square, norm, speed);
    kf_free(square);
    return KOFN_OK;
}
