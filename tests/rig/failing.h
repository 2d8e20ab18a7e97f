/* failing.h -- what becomes of a regression without a code when machines fail:
 * what the schemes ignore and distr-bgd are compared with. */
#ifndef FAILING_H
#define FAILING_H

#include <kofn.h>

/* The points lie in `parts` parts, one on each machine; a machine fails in an
 * iteration with this probability and is replaced `delay` iterations later, 0:
 * never. */
typedef enum missing {
    MISSING_IGNORED,   /* the other points stand for all             */
    MISSING_REMEMBERED /* to first order, where they last were there */
} missing;

typedef struct failures {
    size_t parts;
    double probability;
    unsigned delay;
    missing missing;
    uint64_t seed;
} failures;

/* The steps of kofn_regress_plain, on this thread. */
kofn_status regress_failing(kofn_regression *r, const failures *how,
                            kofn_matrix *w, kofn_regress_result *res);

#endif
