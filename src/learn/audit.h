/* audit.h -- iterations whose sums are not all checked.
 *
 * With kofn_options.audit a sum between two checks may be wrong, and so may
 * every iterate that was made of it.  The loop keeps its state whenever a check
 * finds no worker wrong.  It goes back to that state when a check finds one, or
 * when its numbers are not finite.  It also goes back when the loss has grown:
 * beside huge numbers a lie may not show.  Then it has all sums checked until
 * it is past that iteration.
 *
 * An audit owns the state that it keeps until kf_audit_free. */
#ifndef KF_LEARN_AUDIT_H
#define KF_LEARN_AUDIT_H

#include "base/base.h"

#define KF_AUDIT_PARTS 3

/* A piece of the loop's state, which is copied as it is. */
typedef struct kf_audit_part {
    void *at;
    size_t bytes;
} kf_audit_part;

typedef struct kf_audit {
    kofn_job *job;  /* NULL: every sum is checked, or none */
    unsigned every; /* the job's own option */
    kf_audit_part part[KF_AUDIT_PARTS];
    void *kept;
    const double *loss; /* now ... */
    double kept_loss;   /* ... and when the state was kept; 0: not known */
    bool unsure;        /* sums were not checked since the state was kept */
    uint64_t until;     /* all sums are checked up to this iteration */
} kf_audit;

/* The loop's next move after an iteration. */
typedef enum kf_audit_move {
    KF_AUDIT_ON,       /* go on */
    KF_AUDIT_BACK,     /* the state is the one that was kept */
    KF_AUDIT_ONCE_MORE /* as KF_AUDIT_ON, but what ended is not over: the last
                          iteration was not checked, and is to be made again */
} kf_audit_move;

/* Keeps the state that the parts are now.  *loss, which is borrowed, is what
 * the loop makes smaller.  job may be NULL. */
kofn_status kf_audit_begin(kf_audit *a, kofn_job *job,
                           const kf_audit_part part[KF_AUDIT_PARTS],
                           const double *loss);
/* The job's sums are checked as its options say. */
void kf_audit_free(kf_audit *a);
/* Before iteration t; the sums of the last one are all checked. */
kofn_status kf_audit_before(kf_audit *a, uint64_t t, bool last);
/* After iteration t, which came to *st with these rounds.  `over`: the loop
 * would end.  Sets *st to KOFN_OK if the loop goes on. */
kofn_status kf_audit_after(kf_audit *a, uint64_t t, const kofn_report *sum,
                           bool over, kofn_status *st, kf_audit_move *to);

#endif
