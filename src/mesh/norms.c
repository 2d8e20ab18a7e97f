/* norms.c -- norms of the rows and columns of matrices that change, if errors
 * are looked for.
 *
 * Pieces are compared relative to these norms (src/verify/compare.h), but no
 * node has the matrices.  So a node takes the norms at the start, and adds for
 * every turn the bound of its change (src/verify/norms.c).  The bounds travel
 * with the vector, so all nodes with an iterate have the same.
 *
 * Owns bounds for the norms of each matrix that changes.  They depend on the
 * turns alone. */
#include "host.h"

#include "verify/norms.h"

#include <assert.h>
#include <float.h>

/* Returns the number of norms of rows of parts and of columns.  The velocity
 * has the same number.  Matrices that are not measured have none. */
static size_t half(const kf_mesh_operand *o)
{
    return o->resident.parts.rows + o->resident.parts.cols;
}

static size_t count(const kf_mesh_operand *o)
{
    return o->norms ? 2 * half(o) : 0;
}

kofn_status kf_mesh_norms_new(kf_host *h)
{
    for (size_t i = 0; i < h->program.operands; i++) {
        kf_mesh_operand *o = &h->blocks.operand[i];
        const kf_parts *p = &o->resident.parts;

        if (!o->plan || h->opt.errors == KOFN_ERRORS_NONE)
            continue;
        assert(!o->norms);
        o->norms = kf_zero(half(o), 2 * sizeof *o->norms);
        if (!o->norms)
            return KOFN_NOMEM;
        TRY(kf_norms_of_rows(&o->resident, 0, o->norms));
        TRY(kf_norms_of_resident_columns(&o->resident, o->norms + p->rows,
                                         p->cols));
    }
    return KOFN_OK;
}

const double *kf_mesh_norms_rows(const kf_mesh_operand *o, bool velocity)
{
    assert(o->norms);
    return o->norms + (velocity ? half(o) : 0);
}

const double *kf_mesh_norms_cols(const kf_mesh_operand *o)
{
    assert(o->norms);
    return o->norms + o->resident.parts.rows;
}

static kofn_status grow(kf_host *h, uint32_t operand, uint64_t turn)
{
    kf_mesh_operand *o = &h->blocks.operand[operand];
    const kf_parts *p = &o->resident.parts;
    double *norm[] = {o->norms, o->norms + p->rows};
    double *speed[] = {norm[0] + half(o), norm[1] + half(o)};
    kf_turn_change a;
    kofn_status st = kf_turn_change_ask(h, turn, operand, &a);

    assert(turn > 0);
    if (!st)
        st = kf_norms_grow(&o->resident, &a.to.change, &a.to.U, &a.to.V,
                           &(kf_norms){norm, speed, NULL});
    kf_turn_change_done(&a);
    return st;
}

kofn_status kf_mesh_norms_turn(kf_host *h, uint64_t turn)
{
    for (uint32_t i = 0; i < h->program.operands; i++)
        if (h->blocks.operand[i].norms)
            TRY(grow(h, i, turn));
    return KOFN_OK;
}

/* ---- packing ------------------------------------------------------------- */

size_t kf_mesh_norms_count(const kf_host *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->program.operands; i++)
        n += count(&h->blocks.operand[i]);
    return n;
}

void kf_mesh_norms_pack(const kf_host *h, char *to)
{
    for (size_t i = 0; i < h->program.operands; i++) {
        const kf_mesh_operand *o = &h->blocks.operand[i];
        size_t bytes = count(o) * sizeof *o->norms;

        if (bytes)
            memcpy(to, o->norms, bytes);
        to += bytes;
    }
}

void kf_mesh_norms_take(kf_host *h, const char *from)
{
    for (size_t i = 0; i < h->program.operands; i++) {
        kf_mesh_operand *o = &h->blocks.operand[i];

        for (size_t k = 0; k < count(o); k++, from += sizeof *o->norms) {
            double *norm = &o->norms[k];

            memcpy(norm, from, sizeof *norm);
            if (!(*norm >= 0 && *norm <= DBL_MAX))
                *norm = 0; /* with a norm of 0 no result is accepted */
        }
    }
}
