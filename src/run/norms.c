/* norms.c -- bounds the norms of rows and columns of an operand that changes
 * and that no process holds as a whole.
 *
 * Results are measured by the norms of the rows and columns that are multiplied
 * (check.h).  While the operand changes they are bounded (src/verify/norms.c).
 * When it has been read they are exact again.
 *
 * The held operand owns the norms; they are changed in place.  They must never
 * be too small. */
#include "run.h"

#include "verify/norms.h"

#include <assert.h>
#include <float.h>
#include <math.h>

static double **new_lines(const kf_held *h)
{
    size_t groups = h->plan->layout.groups;
    const kf_parts *p = &h->resident.parts;
    double **line = kf_zero(2 * groups, sizeof *line);

    for (size_t g = 0; line && g <= groups; g++) {
        line[g] = kf_zero(g < groups ? p->rows : p->cols, sizeof **line);
        if (!line[g]) {
            kf_guard_forget_lines(h, &line);
            return NULL;
        }
    }
    return line;
}

kofn_status kf_guard_expect(kf_held *h)
{
    assert(!h->norms);
    h->norms = new_lines(h);
    return h->norms ? KOFN_OK : KOFN_NOMEM;
}

/* Adopts known norms.  Blocks keep the rounding from when rows or columns were
 * larger.  So a norm is at least the bound that `least` keeps. */
static void know(double *norm, double *least, size_t n)
{
    for (size_t i = 0; least && i < n; i++)
        least[i] = norm[i] = kf_larger(norm[i], least[i]);
}

static void know_lines(kf_held *h)
{
    size_t groups = h->plan->layout.groups;
    const kf_parts *p = &h->resident.parts;

    for (size_t g = 0; h->least && g <= groups; g++)
        know(h->norms[g], h->least[g], g < groups ? p->rows : p->cols);
}

kofn_status kf_guard_change(kf_held *h, const kofn_change *change,
                            const kofn_matrix *U, const kofn_matrix *V)
{
    assert(h->placed);
    assert(U->rows == V->rows);
    TRY(kf_guard_know(h));
    if (!h->least) { /* the first change */
        h->speed = h->speed ? h->speed : new_lines(h);
        h->least = new_lines(h);
        if (!h->speed || !h->least)
            return KOFN_NOMEM;
        know_lines(h);
    }
    return kf_norms_grow(&h->resident, change, U, V,
                         &(kf_norms){h->norms, h->speed, h->least});
}

kofn_status kf_guard_renew_rows(kf_held *h, const kf_resident *strips,
                                size_t at, double **cols)
{
    size_t n = strips->parts.cols, groups = h->plan->layout.groups;
    double *more;
    kofn_status st = KOFN_OK;

    assert(n == h->resident.parts.cols);
    assert(at + strips->plan->span <= h->resident.parts.rows);
    if (!h->norms || !h->norms[groups]) /* nothing was measured */
        return KOFN_OK;
    more = kf_new(n, sizeof *more);
    if (more && !*cols)
        *cols = kf_zero(n, sizeof **cols);
    if (!more || !*cols)
        st = KOFN_NOMEM;
    for (size_t g = 0; g < groups && !st; g++)
        if (h->norms[g]) {
            st = kf_norms_of_rows(strips, g, h->norms[g] + at);
            know(h->norms[g] + at, h->least ? h->least[g] + at : NULL,
                 strips->plan->span);
        }
    if (!st)
        st = kf_norms_of_resident_columns(strips, more, n);
    for (size_t i = 0; i < n && !st; i++)
        (*cols)[i] = fmin(hypot((*cols)[i], more[i]), DBL_MAX);
    kf_free(more);
    return st;
}

void kf_guard_renew_cols(kf_held *h, double **cols)
{
    size_t groups = h->plan->layout.groups;

    if (!*cols)
        return;
    assert(h->norms);
    kf_free(h->norms[groups]);
    h->norms[groups] = *cols;
    *cols = NULL;
    know(h->norms[groups], h->least ? h->least[groups] : NULL,
         h->resident.parts.cols);
}

kofn_status kf_guard_renew(kf_held *h, const kofn_matrix *A)
{
    kf_held now = {.plan = h->plan};
    kofn_matrix scaled = *A;
    kofn_status st = KOFN_OK;

    assert(A->rows == h->plan->layout.problem.m);
    if (kf_scaling_any(&h->levels))
        st = kf_scaling_copy(A, h->levels.row, h->levels.col, 1, &scaled);
    if (!st)
        st = kf_resident_dense(&now.resident, h->plan, &scaled);
    now.resident.by = h->resident.by;
    if (!st)
        st = kf_guard_know(&now);
    if (!st) {
        double **was = h->norms;

        h->norms = now.norms;
        now.norms = was;
        know_lines(h);
    }
    kf_guard_forget(&now);
    kf_resident_free(&now.resident);
    if (scaled.data != A->data)
        kf_free(scaled.data);
    return st;
}
