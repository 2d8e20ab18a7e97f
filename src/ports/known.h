/* known.h -- what a simulated worker need not be sent again: inputs, as workers
 * elsewhere remember them (docs/wire.md).
 *
 * Pointers to inputs are compared and never followed: no reference of them is
 * held. */
#ifndef KF_PORTS_KNOWN_H
#define KF_PORTS_KNOWN_H

#include "data/port.h"

typedef struct kf_known {
    const kf_buffer *of[2];
    uint32_t product[2];
} kf_known;

/* Bytes of this message as it is sent; it knows its input from now on. */
double kf_known_bytes(kf_known *k, const kf_msg *m);

#endif
