/* update_factors.c -- U and V of a change A += U' V, mixed for blocks.
 *
 * A block changes by the product of two mixtures.  One mixes the columns of U
 * as the rows of A are mixed in the block.  The other mixes the columns of V as
 * the columns of A are (math/training.md 8).  A mixture that all components or
 * all seats have in common is made once.  If a matrix is not cut, seats hold
 * multiples of it, and V is multiplied by the factor.
 *
 * Owns the mixtures of one change, which seats may share, until
 * kf_update_factor_free.
 */
#include "data.h"

#include <assert.h>

/* Cuts U or V so that a part has the number of columns of a part of A in this
 * direction. */
static kofn_status side_new(kf_update_factor *s, const kofn_matrix *a,
                            size_t groups, double by)
{
    assert(s->cut > 0);
    s->dtype = a->dtype;
    s->by = by;
    return kf_parts_new(&s->parts, a, 1, groups * s->cut);
}

static void side_free(kf_update_factor *s)
{
    kf_buffer_drop(s->common);
    kf_parts_free(&s->parts);
}

static void choose(kf_update_factor *s, size_t group)
{
    assert((group + 1) * s->cut <= s->parts.count);
    s->part = s->parts.part + group * s->cut;
    kf_buffer_drop(s->common);
    s->common = NULL;
}

/* Makes the mixtures with these factors, components x cut, side by side; col:
 * 0, 1,
 * ... */
static kofn_status mix(const kf_update_factor *s, const double *factor,
                       uint32_t *col, kf_buffer **out)
{
    size_t rows = s->parts.rows, cols = s->parts.cols;
    kf_mixed *mixed = kf_new(s->components, sizeof *mixed);
    kf_row *row = kf_new(s->components, sizeof *row);
    kofn_status st = KOFN_NOMEM;

    *out = NULL;
    if (mixed && row)
        st = kf_buffer_new(out, rows, s->components * cols, s->dtype);
    for (size_t l = 0; !st && l < s->components; l++) {
        kofn_matrix into = (*out)->m;

        into.data = kf_at(&into, 0, l * cols);
        into.cols = cols;
        row[l] =
            (kf_row){s->cut, col, (double *)(uintptr_t)factor + l * s->cut};
        mixed[l] = (kf_mixed){&row[l], into, s->by};
    }
    if (!st)
        st = kf_mix(mixed, s->components, s->part, s->cut, rows, cols);
    kf_free(mixed);
    kf_free(row);
    if (st) {
        kf_buffer_drop(*out);
        *out = NULL;
    }
    return st;
}

static kofn_status take(kf_update_factor *s, const double *factor,
                        uint32_t *col, kf_buffer **out)
{
    if (!s->alike)
        return mix(s, factor, col, out);
    if (!s->common)
        TRY(mix(s, (const double[]){1}, col, &s->common));
    *out = kf_buffer_keep(s->common);
    return KOFN_OK;
}

/* ---- both ---------------------------------------------------------------- */

kofn_status kf_update_factors_new(kf_update_factors *s, const kf_resident *r,
                                  const kofn_change *c, const kofn_matrix *U,
                                  const kofn_matrix *V)
{
    const kofn_layout *L = &r->plan->layout;
    kofn_cut cut = L->cut[0];

    *s = (kf_update_factors){
        .u = {.cut = cut.rows, .alike = cut.rows == 1},
        .v = {.cut = cut.cols, .alike = cut.cols == 1 && cut.rows > 1}};
    s->u.components = s->u.alike ? 1 : L->components;
    s->v.components = s->v.alike ? 1 : L->components;
    s->f = kofn_layout_table(L->components, cut.rows);
    s->g = kofn_layout_table(L->components, cut.cols);
    s->col = kf_new(kf_max(cut.rows, cut.cols), sizeof *s->col);
    if (!s->f || !s->g || !s->col)
        return KOFN_NOMEM;
    for (size_t i = 0; i < kf_max(cut.rows, cut.cols); i++)
        s->col[i] = (uint32_t)i;
    TRY(kf_states_change_new(&s->change, c));
    TRY(side_new(&s->u, U, L->groups, r->by));
    TRY(side_new(&s->v, V, 1, 1));
    choose(&s->u, 0);
    choose(&s->v, 0);
    return KOFN_OK;
}

void kf_update_factors_free(kf_update_factors *s)
{
    side_free(&s->u);
    side_free(&s->v);
    kf_buffer_drop(s->change);
    kf_free(s->f);
    kf_free(s->g);
    kf_free(s->col);
}

void kf_update_factors_choose(kf_update_factors *s, size_t group)
{
    choose(&s->u, group);
}

kofn_status kf_update_factors_take(kf_update_factors *s, kf_code *code,
                                   size_t local, kf_msg *m)
{
    kofn_status st;

    TRY(kf_code_factors(code, local, s->f, s->g));
    TRY(take(&s->u, s->f, s->col, &m->in));
    st = take(&s->v, s->g, s->col, &m->with);
    if (st) {
        kf_buffer_drop(m->in);
        m->in = NULL;
        return st;
    }
    m->change = kf_buffer_keep(s->change);
    return KOFN_OK;
}
