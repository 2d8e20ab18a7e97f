/* vector.c -- the vector of a node as bytes, with all that travels with it.
 *
 * The body is made once and shared by counted references.  A vector from
 * another node must have been checked.
 *
 * A node that is some iterates behind has most of the vector already, because
 * an iterate writes a few rows of it (kofn_program.wrote).  A request names the
 * iterate that the node has.  A node remembers from which iterates its own was
 * made.  If the named one is among them, it sends a *part*: the rows that were
 * written since, one iterate after the other.  A part fits, whatever the
 * receiver has made from that base meanwhile, because it replaces these rows.
 *
 * Parts are used only if errors are not looked for and no iterate needs a
 * confirmation.  Otherwise the new iterate must not depend on what the receiver
 * holds, which may be wrong. */
#include "host.h"

#include <assert.h>

/* ---- the whole vector ---------------------------------------------------- */

size_t kf_mesh_vector_bytes(const kf_host *h)
{
    return (h->it.v->m.rows + KOFN_SCALARS + h->blocks.changing.recalls +
            kf_mesh_norms_count(&h->blocks)) *
           sizeof(double);
}

kofn_status kf_mesh_vector_room(kf_mesh_iterate *it, size_t bytes,
                                kf_buffer **out)
{
    assert(bytes % sizeof(double) == 0);
    TRY(kf_pool_take(&it->vectors, bytes / sizeof(double), 1, KOFN_F64, out));
    kf_pool_give(&it->vectors, kf_buffer_keep(*out));
    return KOFN_OK;
}

/* Writes what travels with that many rows, before and after them. */
static void pack(const kf_host *h, double *body, size_t rows)
{
    size_t bytes = h->blocks.changing.recalls * sizeof *h->blocks.changing.line;
    char *to = (char *)(body + KOFN_SCALARS + rows);

    memcpy(body, h->it.scalar, sizeof h->it.scalar);
    if (bytes)
        memcpy(to, h->blocks.changing.line, bytes);
    kf_mesh_norms_pack(&h->blocks, to + bytes);
}

/* Makes the body of the vector, one for all requests. */
kofn_status kf_mesh_vector_body(kf_host *h, kf_buffer **body, size_t *bytes)
{
    size_t rows = h->it.v->m.rows;

    *bytes = kf_mesh_vector_bytes(h);
    if (!h->it.packed) {
        TRY(kf_mesh_vector_room(&h->it, *bytes, &h->it.packed));
        pack(h, h->it.packed->m.data, rows);
        memcpy(kf_at(&h->it.packed->m, KOFN_SCALARS, 0), h->it.v->m.data,
               rows * sizeof(double));
    }
    *body = kf_buffer_keep(h->it.packed);
    return KOFN_OK;
}

/* ---- parts --------------------------------------------------------------- */

bool kf_mesh_part_suffices(const kf_host *h)
{
    return h->program.wrote && h->confirm < 2 &&
           h->opt.errors == KOFN_ERRORS_NONE;
}

void kf_mesh_part_remember(kf_mesh_iterate *it)
{
    it->past[it->at.step % KF_PAST] = it->at;
}

/* True if our iterate is that one, or was made from it. */
static bool is_past(const kf_mesh_iterate *it, kofn_iterate_id base)
{
    const kofn_iterate_id *was =
        base.step == it->at.step ? &it->at : &it->past[base.step % KF_PAST];

    return base.step <= it->at.step && it->at.step - base.step <= KF_PAST &&
           base.lineage != 0 && was->step == base.step &&
           was->lineage == base.lineage;
}

/* Returns the base of a part, as its note names it. */
kofn_iterate_id kf_mesh_part_base(const kf_note *note)
{
    assert(kf_mesh_part_is(note));
    return (kofn_iterate_id){note->vector.after - 1, note->vector.lineage};
}

/* Copies the rows that the iterates after the base wrote, one after the other,
 * into or out of the vector.  Returns their number.  With `at` NULL it only
 * counts. */
size_t kf_mesh_part_rows(const kf_host *h, uint64_t base, uint64_t t,
                         double *at, bool in)
{
    size_t all = 0;

    assert(base <= t);
    assert(t - base <= KF_PAST);
    for (uint64_t i = base + 1; i <= t; i++) {
        size_t first, rows;
        double *v;

        kf_host_wrote(h, i, &first, &rows);
        v = (double *)h->it.v->m.data + first;
        if (at)
            memcpy(in ? v : at + all, in ? at + all : v, rows * sizeof *v);
        all += rows;
    }
    return all;
}

/* Returns the bytes of all that travels with the rows. */
static size_t others(const kf_host *h)
{
    return kf_mesh_vector_bytes(h) - h->it.v->m.rows * sizeof(double);
}

static size_t bytes_since(const kf_host *h, uint64_t base, uint64_t t)
{
    return others(h) +
           kf_mesh_part_rows(h, base, t, NULL, false) * sizeof(double);
}

void kf_mesh_part_choose(const kf_host *h, const kf_route *r, kf_note *note)
{
    assert(note->type == KF_NOTE_VECTOR);
    note->vector.after = note->vector.lineage = 0;
    if (!h->program.wrote || !is_past(&h->it, r->base) ||
        r->base.step == h->it.at.step ||
        bytes_since(h, r->base.step, h->it.at.step) >
            kf_mesh_vector_bytes(h) / 2)
        return;
    note->vector.after = r->base.step + 1;
    note->vector.lineage = r->base.lineage;
}

size_t kf_mesh_part_bytes(const kf_host *h, const kf_note *note)
{
    kofn_iterate_id base = kf_mesh_part_base(note);

    return kf_mesh_part_suffices(h) && is_past(&h->it, base) &&
                   note->at.step > h->it.at.step &&
                   note->at.step - base.step <= KF_PAST
               ? bytes_since(h, base.step, note->at.step)
               : 0;
}

kofn_status kf_mesh_part_body(kf_host *h, const kf_note *note, kf_buffer **body,
                              size_t *bytes)
{
    uint64_t base = kf_mesh_part_base(note).step;
    double *to;

    *bytes = bytes_since(h, base, h->it.at.step);
    TRY(kf_mesh_vector_room(&h->it, *bytes, body));
    to = (*body)->m.data;
    pack(h, to,
         kf_mesh_part_rows(h, base, h->it.at.step, to + KOFN_SCALARS, false));
    return KOFN_OK;
}
