/* pcr.h -- polynomially coded regression in simulated time. */
#ifndef PAPERS_PCR_PCR_H
#define PAPERS_PCR_PCR_H

#include "papers.h"

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

#endif
