/* iterate.c -- the node moves to another iterate, or takes the vector of one.
 *
 * A vector from another node must have been checked.  Blocks of matrices that
 * change follow the vector (change.c).
 */
#include "host.h"

#include <assert.h>

void kf_host_advance(kf_host *h, kofn_iterate_id at)
{
    kf_partials *p = h->pieces.before;

    if (at.step > h->it.at.step)
        kf_comparison_advance(h);
    else
        kf_comparison_void(&h->net);
    kf_mesh_part_remember(&h->it);
    h->pieces.before = h->pieces.now;
    h->pieces.before_at = h->it.at;
    h->pieces.now = p;
    h->it.at = at;
    h->work.on = kf_host_product(&h->work, at.step);
    kf_host_drop_partials(h->pieces.now);
    kf_buffer_drop(h->it.packed);
    h->it.packed = NULL;
    kf_route_recall(&h->net);
    kf_host_forget_input(&h->work);
    h->work.freivalds.noise = 0;
    h->work.freivalds.odd = false;
}

/* ---- the vector of another node ------------------------------------------ */

/* Decides what else is in doubt when a vector is taken.  If ours was outvoted,
 * all that was made from it since is wrong: borrowed windows, and our own
 * blocks (*blocks).  If ours is replaced before it was compared, blocks that
 * were encoded from it may be wrong, too. */
static void doubt(kf_host *h, bool *blocks)
{
    kofn_node_view view;
    bool outvoted;

    *blocks = false;
    if (!h->node) /* it starts from a checkpoint */
        return;
    kf_node_look(h->node, &view);
    outvoted = view.outvoted > h->it.outvoted;
    h->it.outvoted = view.outvoted;
    *blocks = h->opt.errors != KOFN_ERRORS_NONE && h->blocks.changing.unsure;
    if (!outvoted)
        return;
    kf_borrowed_forget(&h->blocks);
    *blocks = h->blocks.changing.changed >= kf_node_doubted(h->node);
}

kofn_status kf_mesh_vector_take(kf_host *h, kofn_iterate_id at, kf_buffer *body)
{
    kofn_matrix part = body->m;
    bool doubtful;
    kf_buffer *v;

    assert(kf_buffer_bytes(body) >= kf_mesh_vector_bytes(h));
    doubt(h, &doubtful);
    part.rows = h->it.v->m.rows;
    part.data = (char *)body->m.data + sizeof h->it.scalar;
    TRY(kf_buffer_view(&v, body, &part));
    memcpy(h->it.scalar, body->m.data, sizeof h->it.scalar);
    kf_buffer_drop(h->it.v);
    h->it.v = v;
    h->it.odd = false;
    kf_host_advance(h, at);
    memset(h->it.past, 0,
           sizeof h->it.past); /* the iterates before this one are unknown */
    if (!h->blocks.changes)
        return KOFN_OK;
    TRY(kf_changing_adopt(h, kf_at(&body->m, KOFN_SCALARS + part.rows, 0)));
    if (doubtful)
        kf_changing_lose(h);
    return KOFN_OK;
}

kofn_status kf_mesh_part_take(kf_host *h, const kf_note *note,
                              const kf_buffer *body)
{
    uint64_t base = kf_mesh_part_base(note).step;
    double *from = body->m.data;
    size_t rows;

    assert(kf_mesh_part_bytes(h, note) > 0);
    memcpy(h->it.scalar, from, sizeof h->it.scalar);
    from += KOFN_SCALARS;
    rows = kf_mesh_part_rows(h, base, note->at.step, from, true);
    kf_host_advance(h, note->at);
    for (uint64_t t = base + 1; t < note->at.step; t++) /* these are not ours */
        h->it.past[t % KF_PAST] = (kofn_iterate_id){0, 0};
    return h->blocks.changes ? kf_changing_adopt(h, from + rows) : KOFN_OK;
}
