/* partials.c -- the partial products of two iterates that are here: those that
 * this node made, and those that came.
 *
 * Owns their buffers until they are dropped.  Decides nothing. */
#include "host.h"

void kf_host_drop_partials(kf_partials *p)
{
    for (size_t g = 0; p && g < KF_MAX_GROUPS; g++) {
        for (size_t i = 0; i < p[g].count; i++)
            kf_buffer_drop(p[g].partial[i].data);
        p[g].count = 0;
    }
}

kf_buffer *kf_host_partial(const kf_partials *p, uint32_t seat)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->partial[i].seat == seat)
            return p->partial[i].data;
    return NULL;
}

kofn_status kf_host_keep(kf_pieces_here *pieces, size_t group, uint32_t seat,
                         kofn_peer from, kf_buffer *data)
{
    kf_partials *p = &pieces->now[group];
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < p->count; i++)
        if (p->partial[i].seat == seat) {
            kf_buffer_drop(p->partial[i].data);
            p->partial[i] = (kf_partial){seat, from, data};
            return KOFN_OK;
        }
    st = kf_grow(&p->partial, &p->cap, p->count, sizeof *p->partial);
    if (st) {
        kf_buffer_drop(data);
        return st;
    }
    p->partial[p->count++] = (kf_partial){seat, from, data};
    return KOFN_OK;
}
