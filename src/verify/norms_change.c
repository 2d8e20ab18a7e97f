/* norms_change.c -- bounds for the norms of a changing matrix, because no
 * machine has all of it.
 *
 * The norm of a row of U' V is at most the norm of U's column times the largest
 * singular value of V.  The same holds for columns.  A change is linear in the
 * states of the matrix (change.h).  So a new norm is at most the sum of the
 * former ones, each times its factor.  When the matrix has been read, the norms
 * are exact again.
 *
 * The kf_norms owns the norms; they are changed in place.  They must not be too
 * small, because honest workers would then be accused. */
#include "norms.h"

#include "data/scale.h"
#include "mat/mat.h"

#include <assert.h>
#include <float.h>
#include <math.h>

/* ---- growth -------------------------------------------------------------- */

/* The growth of the rows or columns of a matrix by a change.  `by` is U for
 * rows, V for columns.  Its columns from `first` on belong to `parts` parts,
 * each `width` wide. */
typedef struct growth {
    const kofn_change *change;
    const kofn_matrix *by;
    double gain; /* bound of the other factor's largest singular value */
    size_t first, width, parts;
} growth;

/* Rows of a slice for which a a' is computed.  For normal random numbers, 256 x
 * 512, the bound is 1.3 times that of all rows at once, for an eighth of the
 * work.  For activations, which have a common sign, it is the same. */
#define SLICE ((size_t)32)

/* Returns the largest row sum of magnitudes of `slice` slice', computed in g.
 * It bounds the square of the largest singular value. */
static double largest_sum(const kofn_matrix *slice, kofn_matrix *g)
{
    double sum[SLICE] = {0}, most = 0;

    assert(slice->rows <= SLICE);
    kf_mat_square(slice, g);
    for (size_t i = 0; i < slice->rows; i++)
        for (size_t k = i; k < slice->rows; k++) {
            double x = fabs(kf_mat_entry(g, i, k));

            sum[i] += x;
            sum[k] += k > i ? x : 0;
        }
    for (size_t i = 0; i < slice->rows; i++)
        most = kf_larger(most, sum[i]);
    return most;
}

/* Bounds the largest singular value of `a` times `by`, with an allowance for
 * rounding.  Its square is at most the sum of the squares of all slices. */
static kofn_status stretch(const kofn_matrix *a, double by, double *out)
{
    double squares = 0;
    kofn_matrix g;

    assert(by > 0);
    TRY(kf_mat_new(&g, SLICE, SLICE, a->dtype));
    for (size_t at = 0; at < a->rows; at += SLICE) {
        kofn_matrix slice = {kf_at(a, at, 0), kf_min(SLICE, a->rows - at),
                             a->cols, a->ld, a->dtype};

        squares += largest_sum(&slice, &g);
    }
    kf_free(g.data);
    *out = by * 1.01 * sqrt(squares);
    return KOFN_OK;
}

static void add_squares(const growth *g, double *sum)
{
    const kofn_matrix *a = g->by;
    size_t end = kf_min(a->cols, g->first + g->parts * g->width);

    assert(g->width > 0);
    for (size_t at = g->first; at < end; at += g->width) {
        kofn_matrix part = {kf_at(a, 0, at), a->rows,
                            kf_min(g->width, end - at), a->ld, a->dtype};

        kf_scale_add_squares(&part, sum);
    }
}

/* Bounds the new norm of a state by the former ones and the norm of U' V, and
 * leaves out what `without` kept. */
static double bound(const kofn_change *c, size_t state, const double *was,
                    double added, size_t without)
{
    double sum = fabs(c->add[state]) * added;

    for (size_t t = 0; t <= KOFN_CHANGE_STATES; t++)
        sum += t == without ? 0 : fabs(c->keep[state][t]) * was[t];
    return sum;
}

/* Updates the norms.  A row or column of the added matrix is at most `gain`
 * times the root of its square here. */
static void grow(const growth *g, const double *square, kf_norms *n,
                 size_t line)
{
    const kofn_change *c = g->change;
    double *least = n->least ? n->least[line] : NULL;

    assert(c->states <= n->states);
    for (size_t i = 0; i < g->width; i++) {
        double added = g->gain * sqrt(square[i]);
        double was[KOFN_CHANGE_STATES + 1] = {0};

        for (size_t s = 0; s <= n->states; s++)
            was[s] = kf_norms_state(n, s, line)[i];
        for (size_t s = 0; s <= n->states; s++)
            kf_norms_state(n, s, line)[i] =
                s <= c->states ? bound(c, s, was, added, SIZE_MAX) : 0;
        if (least)
            least[i] = kf_larger(fabs(c->keep[0][0]) * least[i],
                                 bound(c, 0, was, added, 0));
    }
}

static kofn_status grow_lines(const growth *g, kf_norms *n, size_t line)
{
    double *square;

    TRY_ZERO(square, g->width);
    add_squares(g, square);
    grow(g, square, n, line);
    kf_free(square);
    return KOFN_OK;
}

kofn_status kf_norms_grow(kf_norms *n, const kf_resident *r,
                          const kofn_change *change, const kofn_matrix *U,
                          const kofn_matrix *V)
{
    const kofn_layout *L = &r->plan->layout;
    const kf_parts *p = &r->parts;
    growth rows = {change, U, 0, 0, p->rows, L->cut[0].rows};
    growth cols = {change, V, 0, 0, p->cols, L->cut[0].cols};

    assert(U->rows == V->rows);
    assert(n->awaits);
    assert(!r->A);
    TRY(stretch(V, r->by, &rows.gain));
    TRY(stretch(U, r->by, &cols.gain));
    for (size_t g = 0; g < L->groups; g++) {
        rows.first = g * rows.parts * p->rows;
        TRY(grow_lines(&rows, n, g));
    }
    return grow_lines(&cols, n, L->groups);
}

/* ---- norms that are known again ------------------------------------------ */

/* Adopts known norms.  Blocks keep the rounding from when rows or columns were
 * larger.  So a norm is at least the bound that `least` keeps. */
static void adopt(double *norm, double *least, size_t n)
{
    for (size_t i = 0; least && i < n; i++)
        least[i] = norm[i] = kf_larger(norm[i], least[i]);
}

kofn_status kf_norms_renew(kf_norms *n, const kf_resident *now)
{
    const kf_parts *p = &now->parts;
    kf_norms known = {.groups = 0};
    kofn_status st = kf_norms_know(&known, now, true, 0);

    for (size_t g = 0; g < n->groups && !st; g++)
        st = kf_norms_know(&known, now, false, g);
    if (!st) {
        double **was = n->norm;

        n->norm = known.norm;
        known.norm = was;
        for (size_t i = 0; n->least && i <= n->groups; i++)
            adopt(n->norm[i], n->least[i], i < n->groups ? p->rows : p->cols);
    }
    kf_norms_forget(&known);
    return st;
}

kofn_status kf_norms_renew_rows(kf_norms *n, const kf_resident *strips,
                                size_t at, double **cols)
{
    size_t width = strips->parts.cols;
    double *more;
    kofn_status st = KOFN_OK;

    if (!n->norm || !n->norm[n->groups]) /* nothing was measured */
        return KOFN_OK;
    more = kf_new(width, sizeof *more);
    if (more && !*cols)
        *cols = kf_zero(width, sizeof **cols);
    if (!more || !*cols)
        st = KOFN_NOMEM;
    for (size_t g = 0; g < n->groups && !st; g++)
        if (n->norm[g]) {
            st = kf_norms_of_rows(strips, g, n->norm[g] + at);
            adopt(n->norm[g] + at, n->least ? n->least[g] + at : NULL,
                  strips->plan->span);
        }
    if (!st)
        st = kf_norms_of_resident_columns(strips, more, width);
    for (size_t i = 0; i < width && !st; i++)
        (*cols)[i] = fmin(hypot((*cols)[i], more[i]), DBL_MAX);
    kf_free(more);
    return st;
}

void kf_norms_renew_cols(kf_norms *n, const kf_resident *r, double **cols)
{
    if (!*cols)
        return;
    assert(n->norm);
    kf_free(n->norm[n->groups]);
    n->norm[n->groups] = *cols;
    *cols = NULL;
    adopt(n->norm[n->groups], n->least ? n->least[n->groups] : NULL,
          r->parts.cols);
}
