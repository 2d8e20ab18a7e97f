/* watch.h -- a round of a job, with somebody watching.
 *
 * A look is the caller's and is asked between waits; it may not call the job.
 */
#ifndef KF_LEARN_WATCH_H
#define KF_LEARN_WATCH_H

#include "base/base.h"

/* The caller who is asked whether to stop. */
typedef struct kf_look {
    int (*stops)(void *ud); /* NULL: nobody */
    void *ud;
} kf_look;
/* Ten times a second it is asked while the round lasts; not 0 has this give up
 * the round and return KOFN_AGAIN. */
kofn_status kf_learn_round(kofn_job *job, bool left, const kofn_matrix *in,
                           kofn_matrix *out, kf_look look, kofn_report *rep);
/* The same of a product that was put. */
kofn_status kf_learn_wait(kofn_job *job, uint32_t number, kf_look look,
                          kofn_report *rep);
/* Returns what may help where numbers have become too large: a shorter step,
 * where one was taken, and a search for errors where no answer was checked.
 * NULL: there are no workers. */
const char *kf_learn_remedy(const kofn_job *job, bool stepped);
/* Adds *sum to *all, and begins it anew. */
void kf_learn_add_up(kofn_report *all, kofn_report *sum);

#endif
