/* strangers.h -- peers of a transport that have not said hello.
 *
 * Their number is limited, so a peer that only connects costs no memory.  The
 * list owns its memory; the peers belong to the transport. */
#ifndef KF_PORTS_STRANGERS_H
#define KF_PORTS_STRANGERS_H

#include <kofn/transport.h>

#include "base/base.h"

typedef struct kf_stranger {
    kofn_peer peer;
    bool refused;    /* it was sent the reason */
    kofn_time since; /* when it came */
} kf_stranger;

/* In the order in which they came. */
typedef struct kf_strangers {
    kf_stranger *stranger;
    size_t count, cap;
} kf_strangers;

/* Adds a peer that comes now. */
kofn_status kf_strangers_add(kf_strangers *s, kofn_peer peer, kofn_time now);
/* Returns the entry of a peer, or NULL. */
kf_stranger *kf_strangers_find(const kf_strangers *s, kofn_peer peer);
/* Removes a peer, if it is in the list. */
void kf_strangers_drop(kf_strangers *s, kofn_peer peer);
/* True if the first must go: there are more than `most`, or it came before
 * `expired`.  Sets *peer to it. */
bool kf_strangers_surplus(const kf_strangers *s, size_t most, kofn_time expired,
                          kofn_peer *peer);

#endif
