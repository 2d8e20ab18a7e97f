/* payload.h -- what a message owns. */
#ifndef KF_PORTS_PAYLOAD_H
#define KF_PORTS_PAYLOAD_H

#include "base/base.h"

#include <kofn/port.h>

static inline void kf_payload_drop(kofn_msg *m)
{
    kofn_block_drop(m->block);
    kofn_parcel_drop(m->in);
    kofn_parcel_drop(m->with);
    kofn_parcel_drop(m->result);
    kf_free(m->why);
    m->block = NULL;
    m->in = m->with = m->result = NULL;
    m->why = NULL;
}

#endif
