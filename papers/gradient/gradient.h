/* gradient.h -- adaptive gradient coding in simulated time, beside its closed form. */
#ifndef PAPERS_GRADIENT_GRADIENT_H
#define PAPERS_GRADIENT_GRADIENT_H

#include "gradient/aet.h"

#define GRADIENT_SCHEMES 9
#define GRADIENT_SCENARIOS 2

typedef struct gradient_row {
    aet_scheme scheme;
    char name[16];
    double mean, error;    /* seconds an iteration, its standard error */
    double formula;        /* the AET in closed form                   */
    double printed;        /* in the paper                             */
    double epochs, length; /* simulated                                */
    bool within;           /* mean within 3 errors of the formula      */
} gradient_row;

typedef struct gradient_result {
    double p; /* chance of straggling */
    size_t iterations;
    gradient_row row[GRADIENT_SCHEMES];
    bool ordered;       /* by simulated mean as by formula          */
    double at_most_one; /* share of iterations with 0 or 1 stragglers */
    double at_most_one_formula;
} gradient_result;

/* Scenario 1: p = 0.05, 2: p = 0.10. */
kofn_status gradient_run(size_t scenario, size_t iterations, uint64_t seed,
                         gradient_result *out);

#endif
