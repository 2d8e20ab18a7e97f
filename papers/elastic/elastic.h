/* elastic.h -- coded elastic computing on a simulated fleet, with real matrices. */
#ifndef PAPERS_ELASTIC_ELASTIC_H
#define PAPERS_ELASTIC_ELASTIC_H

#include "papers.h"

/* A simulated fleet that holds A under the elastic code: any k of n workers,
 * left products served, too. */
typedef struct fleet {
    size_t k, n;
    uint64_t seed; /* of the code */
    kofn_plan *plan;
    kofn_job *job;
} fleet;
/* By k, n and seed.  opt and faults may be NULL.  Ended with fleet_close, also after a
 * failure. */
kofn_status fleet_open(fleet *f, const kofn_matrix *A, const kofn_options *opt,
                       const kofn_faults *faults);
void fleet_close(fleet *f);

/* g = X' z */
void transposed_product(const double *X, size_t rows, size_t cols,
                        const double *z, double *g);

/* Figure 2a: y = X w on 6, 5, 4, 3 workers of which any 3 are enough. */
#define MATVEC_SIZES 4
typedef struct matvec_result {
    size_t rows, cols, trials;
    struct matvec_row {
        size_t n;
        double share; /* of A that the busiest worker multiplies      */
        double work;  /* seconds, the workers' part: median of trials */
        double whole; /* with messages and decoding                   */
    } row[MATVEC_SIZES];
    double c0, c1;     /* whole ~ c0 + c1/n */
    double work_ratio; /* n = 3 by n = 6    */
    double whole_ratio, count_ratio;
    double worst; /* relative error of any product */
} matvec_result;
kofn_status elastic_matvec(double scale, size_t trials, uint64_t seed,
                           matvec_result *out);

/* Figure 2b: a gradient on 20 workers uncoded, 20 coded, 10 coded. */
#define BARS 3
typedef struct bars_result {
    size_t rows, cols, trials;
    struct bar {
        const char *name;
        size_t live;
        double share; /* of A that the busiest worker multiplies, in the
                         two products of a gradient together           */
        double work, code, whole; /* seconds: workers, encoding and decoding  */
    } bar[BARS];
    double count_ratio[BARS], work_ratio[BARS]; /* by uncoded */
    double worst;
} bars_result;
extern const double bars_band[BARS][2];
kofn_status elastic_bars(double scale, size_t trials, uint64_t seed,
                         bars_result *out);

/* Figure 2c: regression on machines that fail. */
typedef enum descent_kind {
    DESCENT_NOISELESS,   /* no failures                                  */
    DESCENT_CODED,       /* coded elastic computing, through kofn        */
    DESCENT_REPLICATION, /* every partition on two machines              */
    DESCENT_TAYLOR,      /* Distr-BGD: lost parts by their last gradient */
    DESCENT_IGNORE,      /* of what is lost until it is back             */
    DESCENT_FORGET       /* lost partitions stay lost                    */
} descent_kind;
#define DESCENT_KINDS 6
#define DESCENT_ITERATIONS 60
#define DESCENT_REALISATIONS 5
extern const char *const descent_names[DESCENT_KINDS];

typedef struct descent_result {
    size_t rows, cols;
    /* Test error after each iteration. */
    double mse[DESCENT_KINDS][DESCENT_REALISATIONS][DESCENT_ITERATIONS];
    double mean[DESCENT_KINDS][DESCENT_ITERATIONS];
    double start;                        /* test error of w = 0           */
    size_t paused[DESCENT_REALISATIONS]; /* iterations with too few live  */
    size_t left[DESCENT_REALISATIONS],
        joined[DESCENT_REALISATIONS]; /* kofn's */
    /* Distr-BGD: iterations from the tenth on that end ahead of noiseless. */
    size_t ahead[DESCENT_REALISATIONS];
    double overlap; /* coded by noiseless at the end, less 1 */
    double worst;   /* relative error of any coded product   */
    bool coded_overlaps, ignoring_worst, taylor_differs;
} descent_result;
kofn_status elastic_descent(double scale, uint64_t seed, descent_result *out);

#endif
