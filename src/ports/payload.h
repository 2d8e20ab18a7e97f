/* payload.h -- what a message owns.
 *
 * Only whoever owns the message may drop what is in it, once. */
#ifndef KF_PORTS_PAYLOAD_H
#define KF_PORTS_PAYLOAD_H

#include "base/base.h"

#include "data/port.h"

static inline void kf_payload_drop(kf_msg *m)
{
    kf_block_drop(m->block);
    kf_buffer_drop(m->in);
    kf_buffer_drop(m->with);
    kf_buffer_drop(m->result);
    kf_free(m->why);
    m->block = NULL;
    m->in = m->with = m->result = NULL;
    m->why = NULL;
}

#endif
