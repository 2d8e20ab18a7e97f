/* lent.h -- bodies that were lent to a transport.
 *
 * A body is given back here exactly once.  The transport must not read it after
 * that. */
#ifndef KF_BASE_LENT_H
#define KF_BASE_LENT_H

#include <kofn/transport.h>

/* Calls the owner's function, which may then reuse the body.  body may be
 * NULL. */
static inline void kf_give_back(const kofn_lent *body)
{
    if (body && body->done)
        body->done(body->ud);
}

#endif
