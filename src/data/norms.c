/* norms.c -- bounds for the rows and columns of a matrix that changes and that
 * nobody has.
 *
 * The norm of a row of U' V is at most that of U's column times the largest
 * singular value of V, and so for columns.  The bounds grow with every change.
 *
 * Norms are changed in the caller's array.  They may only be bounds from
 * above: a bound that is too small would accuse the honest. */
#include "check.h"
#include "scale.h"

#include "mat/mat.h"

#include <math.h>

/* The root of the largest sum of a row of a a', with a little more for its
 * rounding. */
kofn_status kf_data_stretch(const kofn_matrix *a, double by, double *out)
{
    kofn_matrix g = {kf_new(a->rows * a->rows, kf_dtype_size(a->dtype)),
                     a->rows, a->rows, a->rows, a->dtype};
    double *sum = kf_zero(a->rows, sizeof *sum), most = 0;

    if (!g.data || !sum) {
        kf_free(g.data);
        kf_free(sum);
        return KOFN_NOMEM;
    }
    kf_mat_square(a, &g);
    for (size_t i = 0; i < g.rows; i++)
        for (size_t k = i; k < g.cols; k++) {
            double x = fabs(kf_mat_entry(&g, i, k));

            sum[i] += x;
            sum[k] += k > i ? x : 0;
        }
    for (size_t i = 0; i < g.rows; i++)
        most = kf_larger(most, sum[i]);
    kf_free(g.data);
    kf_free(sum);
    *out = by * 1.01 * sqrt(most);
    return KOFN_OK;
}

static void add_squares(const kf_growth *g, double *sum)
{
    const kofn_matrix *a = g->by;
    size_t end = kf_min(a->cols, g->first + g->parts * g->width);

    for (size_t at = g->first; at < end; at += g->width) {
        kofn_matrix part = {kf_at(a, 0, at), a->rows,
                            kf_min(g->width, end - at), a->ld, a->dtype};

        kf_scale_add_squares(&part, sum);
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
