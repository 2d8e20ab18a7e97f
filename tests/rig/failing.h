/* failing.h -- an uncoded regression on machines that fail, as a baseline for
 * the schemes ignore and distr-bgd. */
#ifndef FAILING_H
#define FAILING_H

#include <kofn.h>

/* The points are divided into `parts` parts, one for each machine. A machine
 * fails in each iteration with this probability. It is replaced `delay`
 * iterations later; 0 means never. */
typedef enum missing {
    MISSING_IGNORED,   /* the other points stand for all */
    MISSING_REMEMBERED /* to first order, from the last iterate at which they
                          were computed */
} missing;

typedef struct failures {
    size_t parts;
    double probability;
    unsigned delay;
    missing missing;
    uint64_t seed;
} failures;

/* Does the steps of kofn_regress_plain on this thread. */
kofn_status regress_failing(kofn_regression *r, const failures *how,
                            kofn_matrix *w, kofn_regress_result *res);

#endif
