/* bucket.h -- a leaky bucket, which limits how often a peer may do something.
 *
 * Its level rises with each event and falls with time.  The caller owns it, and
 * decides what a high level means.  One of zeros is empty. */
#ifndef KF_BUCKET_H
#define KF_BUCKET_H

#include "base.h"

typedef struct kf_bucket {
    double level;
    kofn_time since; /* when the level was last lowered */
} kf_bucket;

/* Lowers the level by `rate` for each second since the last call, and by
 * `more`.  Returns the level, at least 0.  Time does not go back. */
static inline double kf_bucket_leak(kf_bucket *b, kofn_time now, double rate,
                                    double more)
{
    b->level -= (double)(now - b->since) * 1e-9 * rate + more;
    if (!(b->level > 0))
        b->level = 0;
    b->since = now;
    return b->level;
}

#endif
