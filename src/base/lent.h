/* lent.h -- bodies that were lent to a transport.
 *
 * A body stays its owner's until it is given back here, which happens once;
 * nothing may be read of it after that. */
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
