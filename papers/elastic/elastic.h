/* elastic.h -- coded elastic computing on a simulated fleet, with real
 * matrices. */
#ifndef PAPERS_ELASTIC_ELASTIC_H
#define PAPERS_ELASTIC_ELASTIC_H

#include "show.h"

/* A simulated fleet that holds A under the elastic code: any k of n workers.
 * It also computes left products. */
typedef struct fleet {
    size_t k, n;
    uint64_t seed; /* of the code */
    kofn_plan *plan;
    kofn_job *job;
} fleet;
/* Opens the fleet for k, n and seed. opt and faults may be NULL. Close it with
 * fleet_close, also after a failure. */
kofn_status fleet_open(fleet *f, const kofn_matrix *A, const kofn_options *opt,
                       const kofn_faults *faults);
void fleet_close(fleet *f);

/* Computes g = X' z. */
void transposed_product(const double *X, size_t rows, size_t cols,
                        const double *z, double *g);

/* ---- settings timed in turn -----------------------------------------------
 */

#define TIMINGS_MOST 4
#define TIMINGS_TRIALS 20
typedef enum timings_figure {
    TIMINGS_WORK,
    TIMINGS_CODE,
    TIMINGS_WHOLE
} timings_figure;

/* A fleet of which `gone` workers have left. */
typedef struct setting {
    fleet fleet;
    size_t gone;
    kofn_fault_event leave[20];
    size_t live, rows; /* rows: of the busiest worker */
} setting;

/* One matrix, its vectors, and the times of every setting and trial. */
typedef struct timings {
    size_t rows, cols, settings;
    setting setting[TIMINGS_MOST];
    double *A, *x, *y;     /* freed by the caller; y: labels */
    double *want, *grad;   /* A x and A' (A x - y), plain */
    double *out, *z, *got; /* the same from a fleet */
    double *sweep, *time, *room;
    double worst; /* largest relative error of an answer */
} timings;

/* Runs all trials for the given rows, cols and settings. `once` does trial i
 * in setting s. Free A, also after a failure. */
kofn_status timings_take(timings *b, uint64_t seed,
                         kofn_status (*once)(timings *b, size_t s, size_t i));
/* Compute y = A x, and a gradient of regression. */
kofn_status timings_product(timings *b, size_t s, size_t i);
kofn_status timings_gradient(timings *b, size_t s, size_t i);
/* Returns the median over the trials of a figure of setting s, or of its ratio
 * to the same trial of setting 0. */
double timings_median(const timings *b, timings_figure figure, size_t s,
                      bool by_first);
/* Returns the share of A that the busiest worker multiplies, over all
 * products. */
double timings_share(const timings *b, size_t s);

#endif
