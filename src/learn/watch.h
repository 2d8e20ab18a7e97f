/* watch.h -- a round of a job, with somebody watching. */
#ifndef KF_LEARN_WATCH_H
#define KF_LEARN_WATCH_H

#include "base/base.h"

/* Ten times a second `look` is asked while the round lasts, where it is not
 * NULL; not 0 has this return KOFN_AGAIN. */
kofn_status kf_learn_round(kofn_job *job, bool left, const kofn_matrix *in,
                           kofn_matrix *out, int (*look)(void *ud), void *ud,
                           kofn_report *rep);

#endif
