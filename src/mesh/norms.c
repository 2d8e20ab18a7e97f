/* norms.c -- norms of the rows and columns of matrices that change, if errors
 * are looked for.
 *
 * Pieces are compared relative to these norms (src/verify/norms.h), but no node
 * has the matrices.  So a node takes the norms at the start, and adds for every
 * turn the bound of its change.  The bounds travel with the vector, so all
 * nodes with an iterate have the same.
 *
 * The operands own the bounds.  They depend on the turns alone. */
#include "host.h"

#include <assert.h>
#include <float.h>

/* Returns the number of lines of norms that travel: of the rows of parts and of
 * the columns, for each state. */
static size_t lines_of(const kf_mesh_operand *o)
{
    return o->norms.awaits ? 2 * (1 + o->norms.states) : 0;
}

static double *line_of(const kf_mesh_operand *o, size_t i)
{
    assert(o->norms.groups == 1);
    return kf_norms_state(&o->norms, i / 2, i % 2);
}

/* Returns the number of norms in a line. */
static size_t count(const kf_mesh_operand *o, size_t line)
{
    const kf_parts *p = &o->resident.parts;

    return line % 2 ? p->cols : p->rows;
}

kofn_status kf_mesh_norms_new(kf_host *h)
{
    for (size_t i = 0; i < h->blocks.operands; i++) {
        kf_mesh_operand *o = &h->blocks.operand[i];

        if (o->plan && h->opt.errors != KOFN_ERRORS_NONE)
            TRY(kf_norms_await(&o->norms, &o->resident, h->blocks.states,
                               false));
    }
    return KOFN_OK;
}

static kofn_status grow(kf_host *h, uint32_t operand, uint64_t turn)
{
    kf_mesh_operand *o = &h->blocks.operand[operand];
    kf_turn_change a;
    kofn_status st = kf_turn_change_ask(h, turn, operand, &a);

    assert(turn > 0);
    if (!st)
        st = kf_norms_grow(&o->norms, &o->resident, &a.to.change, &a.to.U,
                           &a.to.V);
    kf_turn_change_done(&a);
    return st;
}

kofn_status kf_mesh_norms_turn(kf_host *h, uint64_t turn)
{
    for (uint32_t i = 0; i < h->blocks.operands; i++)
        if (h->blocks.operand[i].norms.awaits)
            TRY(grow(h, i, turn));
    return KOFN_OK;
}

/* ---- packing ------------------------------------------------------------- */

size_t kf_mesh_norms_count(const kf_mesh_blocks *blocks)
{
    size_t n = 0;

    for (size_t i = 0; i < blocks->operands; i++)
        for (size_t k = 0; k < lines_of(&blocks->operand[i]); k++)
            n += count(&blocks->operand[i], k);
    return n;
}

void kf_mesh_norms_pack(const kf_mesh_blocks *blocks, char *to)
{
    for (size_t i = 0; i < blocks->operands; i++)
        for (size_t k = 0; k < lines_of(&blocks->operand[i]); k++) {
            const kf_mesh_operand *o = &blocks->operand[i];
            size_t bytes = count(o, k) * sizeof(double);

            if (bytes)
                memcpy(to, line_of(o, k), bytes);
            to += bytes;
        }
}

static void take_line(double *norm, size_t n, const char *from)
{
    if (n)
        memcpy(norm, from, n * sizeof *norm);
    for (size_t i = 0; i < n; i++)
        if (!(norm[i] >= 0 && norm[i] <= DBL_MAX))
            norm[i] = 0; /* with a norm of 0 no result is accepted */
}

void kf_mesh_norms_take(kf_mesh_blocks *blocks, const char *from)
{
    for (size_t i = 0; i < blocks->operands; i++)
        for (size_t k = 0; k < lines_of(&blocks->operand[i]); k++) {
            const kf_mesh_operand *o = &blocks->operand[i];
            size_t n = count(o, k);

            if (n)
                take_line(line_of(o, k), n, from);
            from += n * sizeof(double);
        }
}
