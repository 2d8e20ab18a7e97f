/* experiment.h -- published experiments in simulated time.
 *
 * Part of the command, not of the library.  Nothing here prints: simulators
 * fill plain structs, bench_*.c shows them.  Every draw comes from the seed and
 * the names of what it is for, so that schemes that are compared meet the same
 * weather.
 */
#ifndef KOFN_EXPERIMENT_H
#define KOFN_EXPERIMENT_H

#include <kofn.h>

#include <math.h>

#include "base/mix.h"

/* ---- dice ---------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood, 2014). */
typedef struct dice {
    uint64_t state;
} dice;

static inline uint64_t dice_roll(dice *d)
{
    return kf_next64(&d->state);
}

static inline dice dice_for(uint64_t seed, uint64_t i, uint64_t j)
{
    dice d = {seed};

    d.state = dice_roll(&d) ^ i;
    d.state = dice_roll(&d) ^ j;
    d.state = dice_roll(&d);
    return d;
}

/* [0, 1) */
static inline double dice_uniform(dice *d)
{
    return (double)(dice_roll(d) >> 11) * 0x1p-53;
}

static inline double dice_normal(dice *d)
{
    double u = dice_uniform(d), v = dice_uniform(d);

    return sqrt(-2 * log1p(-u)) * cos(6.283185307179586477 * v);
}

/* Mean 1. */
static inline double dice_exponential(dice *d)
{
    return -log1p(-dice_uniform(d));
}

/* ---- polynomially coded regression: experiment_pcr.c --------------------- */

typedef enum pcr_scheme { PCR_UNCODED, PCR_GC, PCR_PCR, PCR_BCC } pcr_scheme;
#define PCR_SCHEMES 4
extern const char *const pcr_names[PCR_SCHEMES];

/* What a worker does that is still busy with an old iteration when the next
 * one begins. */
typedef enum pcr_stale {
    PCR_FIFO,   /* all of its backlog, in order        */
    PCR_LATEST, /* what it has in hand, then the newest */
    PCR_RESET   /* drops everything at once            */
} pcr_stale;

typedef struct pcr_setup {
    pcr_scheme scheme;
    size_t n, r; /* workers; batches that each of them stores */
    bool sleeps; /* the artificial stragglers                 */
    pcr_stale stale;
    bool clogged; /* results nobody waits for take their turn, too, at
                     the master's link                                 */
    size_t iterations;
    uint64_t seed;
} pcr_setup;

typedef struct pcr_iteration {
    double took;        /* seconds                                        */
    double computation; /* of them the longest that an awaited worker spent */
    unsigned messages;  /* received until there were enough               */
} pcr_iteration;

/* Distinct messages that are enough; 0 when the scheme does not exist for
 * these n and r. */
size_t pcr_threshold(pcr_scheme scheme, size_t n, size_t r);
/* each[iterations] */
kofn_status pcr_run(const pcr_setup *s, pcr_iteration *each);

/* Over several runs with seeds that follow each other. */
typedef struct pcr_mean {
    double total, computation; /* of a run, on the average   */
    double took, took_sd;      /* of an iteration            */
    double messages, messages_sd;
    size_t iterations, runs;
    double *quantile; /* times of all iterations, ascending; for free() */
} pcr_mean;

kofn_status pcr_average(const pcr_setup *s, size_t runs, pcr_mean *out);

/* Scenario 1..4 of the paper: n = 40, 40, 30, 30; the even ones sleep. */
#define PCR_SCENARIOS 4
#define PCR_ITERATIONS 100
pcr_setup pcr_scenario(size_t k, pcr_scheme scheme);

/* uncoded/PCR, GC/PCR, uncoded/GC, communication and computation of GC/PCR. */
#define PCR_RATIOS 5
extern const char *const pcr_ratio_names[PCR_RATIOS];
extern const double pcr_published[PCR_SCENARIOS][PCR_RATIOS];
#define PCR_BAND 1.6 /* a ratio is well if within this factor */

void pcr_ratios(const pcr_mean mean[PCR_SCHEMES], double ratio[PCR_RATIOS]);
/* max(a/b, b/a) */
double pcr_factor(double a, double b);
/* Seconds that workers who are waited for sleep in 100 uncoded iterations; by
 * how much more the paper's took. */
double pcr_sleep_law(size_t n);
double pcr_sleep_published(size_t n);

/* ---- adaptive gradient coding: experiment_gradient.c --------------------- */

#define GRADIENT_SCHEMES 9
#define GRADIENT_SCENARIOS 2

typedef struct gradient_row {
    kofn_aet_scheme scheme;
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

/* ---- coded elastic computing: experiment_elastic.c, .._descent.c --------- */

/* A share of the published size, as a multiple of `step`, one at least. */
size_t elastic_size(double scale, size_t published, size_t step);

/* A simulated fleet that holds A under the elastic code: any k of n workers,
 * left products served, too. */
typedef struct fleet {
    kofn_plan *plan;
    kofn_job *job;
} fleet;
/* seed: of the code.  opt and weather may be NULL.  Ended with fleet_close,
 * also after a failure. */
kofn_status fleet_open(fleet *f, const kofn_matrix *A, size_t k, size_t n,
                       uint64_t seed, const kofn_options *opt,
                       const kofn_weather *weather);
void fleet_close(fleet *f);

/* rows x cols normal numbers, for free(); NULL when there is no memory. */
double *dice_matrix(uint64_t seed, uint64_t which, size_t rows, size_t cols);
kofn_matrix as_matrix(const double *x, size_t rows, size_t cols);
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
