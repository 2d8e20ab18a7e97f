/* norms.c -- how large the rows and columns are of an operand that changes, which
 * nobody has.
 *
 * Results are measured by the norms of the rows and columns they are products of
 * (check.h), which are bounded as it changes (src/data/norms.c), and are the norms
 * again when it has been read.
 *
 * Norms are of the held operand and are changed in place.  They may only be
 * bounds from above. */
#include "run.h"

#include "data/check.h"

#include <float.h>
#include <math.h>

kofn_status kf_guard_change(kf_held *h, const kofn_change *change,
                            const kofn_matrix *U, const kofn_matrix *V)
{
    size_t groups = h->plan->layout.groups;
    const kf_parts *p = &h->resident.parts;

    TRY(kf_guard_know(h));
    if (!h->speed)
        h->speed = kf_zero(2 * groups, sizeof *h->speed);
    for (size_t g = 0; h->speed && g <= groups; g++) {
        if (!h->speed[g])
            h->speed[g] =
                kf_zero(g < groups ? p->rows : p->cols, sizeof **h->speed);
        if (!h->speed[g])
            return KOFN_NOMEM;
    }
    return h->speed ? kf_data_grow_norms(&h->resident, change, U, V, h->norms,
                                         h->speed)
                    : KOFN_NOMEM;
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

void kf_guard_renew_cols(kf_held *h, double *cols[2])
{
    double **norms[] = {h->norms, h->speed};
    size_t groups = h->plan->layout.groups;

    for (size_t i = 0; i < 2; i++)
        if (cols[i]) {
            kf_free(norms[i][groups]);
            norms[i][groups] = cols[i];
            cols[i] = NULL;
        }
}

kofn_status kf_guard_renew(kf_held *h, const kofn_matrix *A)
{
    kf_held now = {.plan = h->plan};
    kofn_matrix raised = *A;
    kofn_status st = KOFN_OK;

    if (kf_levels_any(&h->levels))
        st = kf_level_copy(A, h->levels.row, h->levels.col, 1, &raised);
    if (!st)
        st = kf_resident_dense(&now.resident, h->plan, &raised);
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
    if (raised.data != A->data)
        kf_free(raised.data);
    return st;
}
