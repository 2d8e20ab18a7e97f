/* side.c -- U or V of a change A += U' V, as it is mixed for blocks.
 *
 * What is added to a block is the product of two mixtures, of the columns of U as
 * A's rows are mixed in the block, and of those of V as A's columns are
 * (math/training.md 8).  Where all lanes, or all seats, have one of them in common
 * it is made once.
 *
 * Owns the mixtures of one change, shared by the seats that have them in
 * common, until kf_side_free. */
#include "data.h"

kofn_status kf_side_new(kf_side *s, const kofn_matrix *a, const kofn_layout *L,
                        size_t groups, size_t cut, double by)
{
    *s = (kf_side){.cut = cut,
                   .lanes = cut > 1 ? L->lanes : 1,
                   .dtype = a->dtype,
                   .by = by};
    TRY(kf_parts_new(&s->parts, a, 1, groups * cut));
    s->part = kf_new(cut, sizeof *s->part);
    return s->part ? KOFN_OK : KOFN_NOMEM;
}

void kf_side_free(kf_side *s)
{
    kf_buffer_drop(s->common);
    kf_parts_free(&s->parts);
    kf_free((void *)(uintptr_t)s->part);
}

void kf_side_choose(kf_side *s, size_t group)
{
    for (size_t i = 0; i < s->cut; i++)
        s->part[i] = &s->parts.part[group * s->cut + i];
    kf_buffer_drop(s->common);
    s->common = NULL;
}

/* The mixtures with these factors, lanes x cut, side by side. */
static kofn_status mix(kf_side *s, const double *factor, uint32_t *col,
                       kf_buffer **out)
{
    size_t rows = s->parts.rows, cols = s->parts.cols;
    kf_mixed *mixed = kf_new(s->lanes, sizeof *mixed);
    kf_row *row = kf_new(s->lanes, sizeof *row);
    kofn_status st = KOFN_NOMEM;

    *out = NULL;
    if (mixed && row)
        st = kf_buffer_new(out, rows, s->lanes * cols, s->dtype);
    for (size_t i = 0; i < s->cut; i++)
        col[i] = (uint32_t)i;
    for (size_t l = 0; !st && l < s->lanes; l++) {
        kofn_matrix into = (*out)->m;

        into.data = kf_at(&into, 0, l * cols);
        into.cols = cols;
        row[l] =
            (kf_row){s->cut, col, (double *)(uintptr_t)factor + l * s->cut};
        mixed[l] = (kf_mixed){&row[l], into, s->by};
    }
    if (!st)
        st = kf_mix(mixed, s->lanes, s->part, s->cut, rows, cols);
    kf_free(mixed);
    kf_free(row);
    if (st) {
        kf_buffer_drop(*out);
        *out = NULL;
    }
    return st;
}

kofn_status kf_side_take(kf_side *s, const double *factor, uint32_t *col,
                         kf_buffer **out)
{
    if (s->cut > 1)
        return mix(s, factor, col, out);
    if (!s->common)
        TRY(mix(s, (const double[]){1}, col, &s->common));
    *out = kf_buffer_keep(s->common);
    return KOFN_OK;
}
