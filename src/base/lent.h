/* lent.h -- bodies that were lent to a transport. */
#ifndef KF_BASE_LENT_H
#define KF_BASE_LENT_H

#include <kofn/transport.h>

/* Tells its owner that it may have the body again; body may be NULL. */
static inline void kf_give_back(const kofn_lent *body)
{
    if (body && body->done)
        body->done(body->ud);
}

#endif
