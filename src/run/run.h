/* run.h -- floor 5: the body of the coordinator. */
#ifndef KF_RUN_H
#define KF_RUN_H

#include <kofn/core.h>
#include <kofn/port.h>

#include <stdio.h>

#include "data/data.h"
#include "weather/weather.h"

/* ---- wrong results (guard.c) --------------------------------------------- */

typedef struct kf_verdict {
    uint32_t product, number;
    kofn_status status;
    uint32_t *bad; /* the last `doubted` of them are only left out */
    size_t count, doubted;
} kf_verdict;

typedef struct kf_guard {
    uint64_t secret;   /* of the random weights that results are compared by */
    double **resident; /* scales; see check.h */
    size_t groups;
    double tolerance;    /* asked for; 0: was not */
    kf_verdict *verdict; /* not yet told to the core */
    size_t next, count, cap;
    uint32_t *spent; /* of the verdict told last */
} kf_guard;

/* What a product is measured by: its input. */
typedef struct kf_measure {
    kf_messages *messages;
    double *input; /* scales */
    bool known;
    double floor, error; /* of its answer, and what that may come to in it */
} kf_measure;

kofn_status kf_guard_init(kf_guard *g, bool repeatable, uint64_t seed,
                          double tolerance);
/* Answer a KOFN_DO_CHECK: the verdict waits for kf_guard_next. */
kofn_status kf_guard_check(kf_guard *g, const kf_resident *r, kf_measure *of,
                           kofn_core *core, uint32_t use, const kofn_action *a,
                           const kf_source *source);
bool kf_guard_next(kf_guard *g, kofn_event *ev);
void kf_guard_free(kf_guard *g);

/* ---- journal (journal.c) ------------------------------------------------- */

typedef struct kf_journal kf_journal;
kofn_status kf_journal_open(kf_journal **out, const char *path,
                            const kofn_plan *plan,
                            const kofn_core_options *opt);
void kf_journal_event(kf_journal *j, const kofn_event *ev);
void kf_journal_action(kf_journal *j, const kofn_action *a);
/* End of the step's line. */
kofn_status kf_journal_step(kf_journal *j);
kofn_status kf_journal_close(kf_journal *j);

#endif
