/* run.h -- floor 5: the body of the coordinator.
 *
 * Guards, journals and norms are the job's, each freed by the function beside
 * the one that made it. */
#ifndef KF_RUN_H
#define KF_RUN_H

#include "core/core.h"
#include "data/port.h"

#include <stdio.h>

#include "data/data.h"
#include "faults/faults.h"

/* ---- operands ------------------------------------------------------------ */

/* A resident operand, or of a stream the first one of a product. */
typedef struct kf_held {
    const kofn_plan *plan; /* job.c, or pair.c of a stream; and, by open.c: */
    kf_resident resident;  /* (its `most` grows as it changes)              */
    kf_levels levels;      /* it is raised by these in blocks ...           */
    void *raised;          /* ... or NULL: a copy of its own, or its values */
    bool placed;
    uint64_t changes; /* since it was placed: A is not what is held any more */
    bool moves;       /* it has a velocity ...                               */
    double most;      /* ... no element of which is larger (change.c)        */
    double **norms; /* once results are checked: scales (check.h) of the rows of
                       each group, then of the columns (guard.c, norms.c)    */
    double **speed; /* once it has changed: likewise, of its velocity, ...   */
    double **least; /* ... and of what was rounded before (kf_norms)         */
    struct kf_key *key; /* where results are looked at: a whole product of A x
                           or A B is tested by it (guard.c)                 */
    bool due; /* trial.c: its blocks are to be read and compared ... */
    bool odd; /* ... and somebody's came wrong                       */
} kf_held;

/* ---- wrong results (guard.c) --------------------------------------------- */

typedef struct kf_verdict {
    kofn_event event;
    uint32_t *bad; /* the event's */
} kf_verdict;

typedef struct kf_guard {
    uint64_t secret;  /* of the random weights that results are compared by */
    double tolerance; /* asked for; 0: was not */
    kf_verdict *verdict; /* until all are told to the core: `next` is to be */
    size_t next, count, cap;
    bool doubt; /* a product failed its test: those after it are compared as if
                   nothing but the comparison found what is wrong alike      */
} kf_guard;

/* The measure of a product: its input. */
typedef struct kf_measure {
    kf_messages *messages;
    double *input; /* scales */
    bool known;
    bool velocity;       /* what is read is that of the operand            */
    double floor, error; /* of its answer, and what that may come to in it */
    bool
        keyed; /* nothing is compared: its output is tested (KOFN_ERRORS_KEYED) */
    bool each;    /* ... or instead its answers, one by one              */
    bool lenient; /* lies below the floor of the comparison pass the test */
    bool drifts;  /* it is of interest how far blocks have drifted apart: */
    double drift; /* kf_found */
} kf_measure;

kofn_status kf_guard_init(kf_guard *g, bool repeatable, uint64_t seed,
                          double tolerance);
/* Answer a KOFN_DO_CHECK: the verdict waits for kf_guard_next. */
kofn_status kf_guard_check(kf_guard *g, kf_held *h, kf_measure *of,
                           const kf_use *by, const kofn_action *a,
                           const kf_source *source);
/* Has the operand of such a plan a key?  Then a product of it is linear in its rows. */
bool kf_guard_has_key(const kofn_plan *p);
/* Makes the key of an operand that was placed; where its plan has none, nothing. */
kofn_status kf_guard_make_key(const kf_guard *g, kf_held *h);
/* Sets *agrees: the output of a product of the operand is what it should be, so far
 * as its key tells; true where its answers were tested one by one.  `noise` is what
 * decoding made of rounding. */
kofn_status kf_guard_test(const kf_held *h, kf_measure *of, double noise,
                          const kofn_matrix *out, const kf_back *back,
                          bool *agrees);
bool kf_guard_next(kf_guard *g, kofn_event *ev);
void kf_guard_free(kf_guard *g);
void kf_guard_forget(kf_held *h); /* its norms */
void kf_guard_forget_lines(const kf_held *h, double ***norms);
/* All of them are known. */
kofn_status kf_guard_know(kf_held *h);
/* The operand changes (norms.c): norms are no larger afterwards than what is
 * kept for them. */
kofn_status kf_guard_change(kf_held *h, const kofn_change *change,
                            const kofn_matrix *U, const kofn_matrix *V);
/* The operand is this matrix now. */
kofn_status kf_guard_renew(kf_held *h, const kofn_matrix *A);
/* The strips given are those from `at` on of the operand; *cols has what columns have
 * come to in those before, and the norms of columns are known when all strips have been
 * seen. */
kofn_status kf_guard_renew_rows(kf_held *h, const kf_resident *strips,
                                size_t at, double **cols);
/* They have. */
void kf_guard_renew_cols(kf_held *h, double **cols);

/* ---- journal (journal.c) ------------------------------------------------- */

typedef struct kf_journal kf_journal;
kofn_status kf_journal_open(kf_journal **out, const char *path,
                            const char *port, const kofn_plan *const *plan,
                            size_t operands, const kofn_core_options *opt);
void kf_journal_event(kf_journal *j, const kofn_event *ev);
void kf_journal_action(kf_journal *j, const kofn_action *a);
/* End of the step's line. */
void kf_journal_step(kf_journal *j);
void kf_journal_note(kf_journal *j, const kofn_note *n);
/* Could all be written?  After a round it is on disk. */
kofn_status kf_journal_check(kf_journal *j);
kofn_status kf_journal_close(kf_journal *j);

#endif
