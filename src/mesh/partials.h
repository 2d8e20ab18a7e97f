/* partials.h -- the partial products of an iterate that are here.
 *
 * A host has those of two iterates, and uses them on its thread. */
#ifndef KF_MESH_PARTIALS_H
#define KF_MESH_PARTIALS_H

#include <kofn/transport.h>

#include "data/data.h"

#define KF_LOCAL UINT32_MAX

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

/* Returns the partial product of that seat; NULL if it is not here. */
kf_buffer *kf_host_partial(const kf_partials *p, uint32_t seat);
/* Drops the partial products of all groups.  `p` may be NULL. */
void kf_host_drop_partials(kf_partials *p);

#endif
