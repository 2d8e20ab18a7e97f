/* run.h -- floor 5: the body of the coordinator.
 *
 * The job owns guards, journals and norms.  Each is freed by the function
 * declared next to the one that makes it. */
#ifndef KF_RUN_H
#define KF_RUN_H

#include "core/core.h"
#include "data/port.h"

#include <stdio.h>

#include "data/data.h"
#include "faults/faults.h"
#include "verify/results.h"

/* ---- operands ------------------------------------------------------------ */

/* A resident operand; in a stream, the first operand of a product. */
typedef struct kf_held {
    const kofn_plan *plan; /* set by job.c, or by pair.c for a stream; the rest
                              by open.c */
    kf_resident resident;  /* its `most` grows when it changes */
    kf_scaling levels;     /* powers of two by which its rows and columns were
                             scaled before coding */
    void *scaled;          /* equilibrated copy, or values of a sparse one;
                              NULL: not equilibrated */
    bool placed;
    uint64_t changes; /* updates since it was placed; > 0: the job does not hold
                         the current A */
    size_t states;    /* its optimizer states */
    double most[KOFN_CHANGE_STATES]; /* bounds on their elements (change.c) */
    kf_norms norms;                  /* known when results are checked */
    struct kf_key *key; /* tests a whole product of A x or A B, if errors are
                           searched for (guard.c) */
    bool due; /* evidence.c: its blocks have to be read and compared */
    bool odd; /* a worker's block was found wrong */
} kf_held;

/* ---- wrong results (guard.c) --------------------------------------------- */

typedef struct kf_verdict {
    kofn_event event;
    uint32_t *bad; /* memory of event.bad */
} kf_verdict;

typedef struct kf_guard {
    uint64_t secret;     /* seed of the random weights for comparisons */
    double max_error;    /* as asked for; 0: none */
    kf_verdict *verdict; /* kept until the core has received them all, from
                            `next` on */
    size_t next, count, cap;
    bool doubt; /* a product failed its test.  Later products are compared as if
                   only the comparison could find equal errors */
} kf_guard;

/* How the results of a product are checked. */
typedef struct kf_measure {
    kf_sides sides;
    double floor, error; /* floor: as in kf_found. error: relative error of the
                            answer that errors below the floor may cause */
    bool keyed;          /* nothing is compared; the output is tested by a key
                            (KOFN_ERRORS_KEYED) */
    bool each;           /* answers are tested one by one instead */
    bool lenient; /* errors below the floor of the comparison pass the test */
    bool drifts;  /* measure how far blocks have drifted apart, in `drift` */
    double drift; /* as in kf_found */
} kf_measure;

kofn_status kf_guard_init(kf_guard *g, bool repeatable, uint64_t seed,
                          double max_error);
/* Answers a KOFN_DO_CHECK.  The verdict waits for kf_guard_next. */
kofn_status kf_guard_check(kf_guard *g, kf_held *h, kf_measure *of,
                           const kf_use *by, const kofn_action *a,
                           const kf_source *source);
/* True if an operand of this plan has a key: a product is linear in its
 * rows. */
bool kf_guard_has_key(const kofn_plan *p);
/* Makes the key of an operand that was placed; does nothing if its plan has
 * none. */
kofn_status kf_guard_make_key(const kf_guard *g, kf_held *h);
/* Sets *agrees if the output of a product passes the test of the operand's key,
 * or if its answers were tested one by one.  `noise` is the amplification of
 * rounding by the decoder. */
kofn_status kf_guard_test(kf_held *h, kf_measure *of, double noise,
                          const kofn_matrix *out, const kf_back *back,
                          bool *agrees);
bool kf_guard_next(kf_guard *g, kofn_event *ev);
void kf_guard_free(kf_guard *g);
/* Computes the norms anew from the matrix that the operand is now. */
kofn_status kf_guard_renew(kf_held *h, const kofn_matrix *A);

/* ---- journal (journal.c) ------------------------------------------------- */

typedef struct kf_journal kf_journal;
kofn_status kf_journal_open(kf_journal **out, const char *path,
                            const char *port, const kofn_plan *const *plan,
                            size_t operands, const kofn_core_options *opt);
/* `name`: of the worker of a KOFN_EV_JOINED; "" if it has none. */
void kf_journal_event(kf_journal *j, const kofn_event *ev, const char *name);
void kf_journal_action(kf_journal *j, const kofn_action *a);
/* Ends the line of the step. */
void kf_journal_step(kf_journal *j);
void kf_journal_note(kf_journal *j, const kofn_note *n);
/* Writes the last line: the totals of the run, and the sentence about it. */
void kf_journal_finish(kf_journal *j, kofn_time now, const kofn_report *total,
                       const char *verdict);
/* Fails with KOFN_IO if the journal could not be written.  After a round it is
 * flushed to the file. */
kofn_status kf_journal_check(kf_journal *j);
kofn_status kf_journal_close(kf_journal *j);

#endif
