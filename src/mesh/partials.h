/* partials.h -- the partial products of two iterates that are here.
 *
 * The host owns them (kf_host.pieces). */

#ifndef KF_MESH_PARTIALS_H
#define KF_MESH_PARTIALS_H

#include <kofn/peer.h>

#include "data/data.h"

#define KF_LOCAL UINT32_MAX

typedef struct kf_host kf_host; /* host.h */

/* A partial product of a group.  Without a seat (KOFN_NO_SEAT): the result of
 * the group. */
typedef struct kf_partial {
    uint32_t seat;
    kofn_peer from; /* KF_LOCAL: made here */
    kf_buffer *data;
} kf_partial;

typedef struct kf_partials {
    kf_partial *partial;
    size_t count, cap;
} kf_partials;

typedef struct kf_pieces_here {
    /* partial products of the iterate and of `before_at`, by group */
    kf_partials *now, *before;
    kofn_iterate_id before_at;
} kf_pieces_here;

/* partials.c */
/* Stores a partial product, and takes over the buffer. */
kofn_status kf_host_keep(kf_pieces_here *pieces, size_t group, uint32_t seat,
                         kofn_peer from, kf_buffer *data);
/* Returns the partial product of that seat; NULL if it is not here. */
kf_buffer *kf_host_partial(const kf_partials *p, uint32_t seat);
/* Drops the partial products of all groups.  `p` may be NULL. */
void kf_host_drop_partials(kf_partials *p);

#endif
