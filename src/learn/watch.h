/* watch.h -- runs a round of a job while the caller may ask to stop it.
 *
 * The kf_look is the caller's. It is asked between waits and may not call the
 * job. */
#ifndef KF_LEARN_WATCH_H
#define KF_LEARN_WATCH_H

#include "base/base.h"

/* The caller's function that decides whether to stop. */
typedef struct kf_look {
    int (*stops)(void *ud); /* not 0: stop; NULL: never stops */
    void *ud;
} kf_look;
/* Runs one round. Asks `look` ten times a second; if it wants to stop,
 * abandons the round and returns KOFN_AGAIN. */
kofn_status kf_learn_round(kofn_job *job, bool left, const kofn_matrix *in,
                           kofn_matrix *out, kf_look look, kofn_report *rep);
/* Waits in the same way for product `number`, which was already started by
 * kofn_put. */
kofn_status kf_learn_wait(kofn_job *job, uint32_t number, kf_look look,
                          kofn_report *rep);
/* Returns advice for numbers that have become too large: a shorter step if one
 * was taken, error detection if no answer was checked. NULL: there are no
 * workers. */
const char *kf_learn_remedy(const kofn_job *job, bool stepped);
/* Adds *sum to *all, and clears *sum. */
void kf_learn_add_up(kofn_report *all, kofn_report *sum);

#endif
