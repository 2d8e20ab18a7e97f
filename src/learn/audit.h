/* audit.h -- iterations that check their sums only now and then.
 *
 * With kofn_options.audit a sum between two checks may be wrong, and so may
 * every iterate computed from it. The loop keeps its state whenever a check
 * finds no faulty worker. It returns to that state if a check finds a faulty
 * worker, if its numbers are not finite, or if the loss has grown: a small
 * error may not show next to huge numbers. Then it has all sums checked until
 * it is past that iteration.
 *
 * An audit owns the kept state until kf_audit_free. */
#ifndef KF_LEARN_AUDIT_H
#define KF_LEARN_AUDIT_H

#include "base/base.h"

#define KF_AUDIT_PARTS 3

/* A part of the loop's state, copied byte by byte. */
typedef struct kf_audit_part {
    void *at;
    size_t bytes;
} kf_audit_part;

typedef struct kf_audit {
    kofn_job *job;  /* NULL: there is nothing to audit */
    unsigned every; /* rounds between two checks (kofn_options.audit) */
    kf_audit_part part[KF_AUDIT_PARTS];
    void *kept;
    const double *loss; /* the loop's current loss, borrowed */
    double kept_loss;   /* the loss when the state was kept; 0: unknown */
    bool unsure;    /* true if sums were unchecked since the state was kept */
    uint64_t until; /* all sums are checked up to this iteration */
} kf_audit;

/* The loop's next move after an iteration. */
typedef enum kf_audit_move {
    KF_AUDIT_ON,       /* continue with the next iteration */
    KF_AUDIT_BACK,     /* continue from the kept state, which was restored */
    KF_AUDIT_ONCE_MORE /* do the last iteration again: it would end the loop,
                          but its sums were not checked */
} kf_audit_move;

/* Keeps the current state, as the parts name it. *loss is what the loop
 * minimises; it is borrowed. job may be NULL. */
kofn_status kf_audit_begin(kf_audit *a, kofn_job *job,
                           const kf_audit_part part[KF_AUDIT_PARTS],
                           const double *loss);
/* Frees the kept state, and has the job check sums as its options say. */
void kf_audit_free(kf_audit *a);
/* Prepares iteration t. `last`: it is the last one, so that all its sums are
 * checked. */
kofn_status kf_audit_before(kf_audit *a, uint64_t t, bool last);
/* Decides what follows iteration t, which ended with *st and the rounds in
 * *sum. `over`: the loop would end here. Sets *st to KOFN_OK if the loop
 * continues. */
kofn_status kf_audit_after(kf_audit *a, uint64_t t, const kofn_report *sum,
                           bool over, kofn_status *st, kf_audit_move *to);

#endif
