/* vector.c -- the vector of a node as bytes: what travels with it.
 *
 * The body is made once and shared by counted references; a vector that is
 * taken over must have been checked. */
#include "host.h"

size_t kf_mesh_vector_bytes(const kf_host *h)
{
    return (h->v->m.rows + KOFN_SCALARS + h->program.recalls +
            kf_mesh_norms_count(h)) *
           sizeof(double);
}

kofn_status kf_mesh_vector_room(kf_host *h, size_t bytes, kf_buffer **out)
{
    TRY(kf_pool_take(&h->vectors, bytes / sizeof(double), 1, KOFN_F64, out));
    kf_pool_give(&h->vectors, kf_buffer_keep(*out));
    return KOFN_OK;
}

/* Makes the body of the vector, one for all who ask. */
kofn_status kf_mesh_vector_body(kf_host *h, kf_buffer **body, size_t *bytes)
{
    size_t rows = h->v->m.rows, recalls = h->program.recalls;
    char *to;

    *bytes = kf_mesh_vector_bytes(h);
    if (!h->packed) {
        TRY(kf_mesh_vector_room(h, *bytes, &h->packed));
        to = h->packed->m.data;
        memcpy(to, h->scalar, sizeof h->scalar);
        to += sizeof h->scalar;
        memcpy(to, h->v->m.data, rows * sizeof(double));
        to += rows * sizeof(double);
        if (recalls)
            memcpy(to, h->changing.line, recalls * sizeof *h->changing.line);
        kf_mesh_norms_pack(h, to + recalls * sizeof *h->changing.line);
    }
    *body = kf_buffer_keep(h->packed);
    return KOFN_OK;
}

/* Is it taken because most others had another one?  Then what was made of ours since
 * that may have begun is wrong: blocks that are lent, and our own (*blocks).  Where ours
 * is replaced before it was compared, blocks that were encoded of it may be, too. */
static void doubt(kf_host *h, bool *blocks)
{
    kofn_node_view view;
    bool outvoted;

    *blocks = false;
    if (!h->node) /* it begins with what it had kept */
        return;
    kf_node_look(h->node, &view);
    outvoted = view.outvoted > h->outvoted;
    h->outvoted = view.outvoted;
    *blocks = h->opt.errors != KOFN_ERRORS_NONE && h->changing.unsure;
    if (!outvoted)
        return;
    kf_lent_forget(h);
    *blocks = h->changing.changed >= kf_node_doubted(h->node);
}

kofn_status kf_mesh_vector_take(kf_host *h, kofn_mark at, kf_buffer *body)
{
    kofn_matrix part = body->m;
    bool again = h->node && at.t == h->at.t, doubtful;
    kf_buffer *v;

    doubt(h, &doubtful);
    part.rows = h->v->m.rows;
    part.data = (char *)body->m.data + sizeof h->scalar;
    TRY(kf_buffer_view(&v, body, &part));
    memcpy(h->scalar, body->m.data, sizeof h->scalar);
    kf_buffer_drop(h->v);
    h->v = v;
    h->odd = false;
    kf_host_advance(h, at);
    if (!h->program.change)
        return KOFN_OK;
    TRY(kf_changing_adopt(h, kf_at(&body->m, KOFN_SCALARS + part.rows, 0)));
    if (doubtful)
        return kf_changing_lose(h);
    return again ? kf_sketch_begin(h) : KOFN_OK;
}
