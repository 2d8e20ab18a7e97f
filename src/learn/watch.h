/* watch.h -- a round of a job, with somebody watching. */
#ifndef KF_LEARN_WATCH_H
#define KF_LEARN_WATCH_H

#include "base/base.h"

/* As TRY, of what may also have been stopped (KOFN_AGAIN). */
#define TRY_UNSTOPPED(call)                                                    \
    do {                                                                       \
        kofn_status unstopped_status_ = (call);                                \
        if (unstopped_status_)                                                 \
            return unstopped_status_;                                          \
    } while (0)

/* Ten times a second `look` is asked while the round lasts, where it is not
 * NULL; not 0 has this return KOFN_AGAIN. */
kofn_status kf_learn_round(kofn_job *job, bool left, const kofn_matrix *in,
                           kofn_matrix *out, int (*look)(void *ud), void *ud,
                           kofn_report *rep);
/* The same of a round that has begun. */
kofn_status kf_learn_wait(kofn_job *job, int (*look)(void *ud), void *ud,
                          kofn_report *rep);

#endif
