/* pcr.h -- polynomially coded regression in simulated time. */
#ifndef PAPERS_PCR_PCR_H
#define PAPERS_PCR_PCR_H

#include "show.h"

typedef enum pcr_scheme { PCR_UNCODED, PCR_GC, PCR_PCR, PCR_BCC } pcr_scheme;
#define PCR_SCHEMES 4
extern const char *const pcr_names[PCR_SCHEMES];

/* Behaviour of a worker that is busy with an old iteration when the next
 * begins. */
typedef enum pcr_stale {
    PCR_FIFO,   /* works through its backlog in order */
    PCR_LATEST, /* finishes its current work, then takes the newest */
    PCR_RESET   /* drops everything at once */
} pcr_stale;

#define PCR_SLEEP 0.5
#define PCR_SLEEP_CHANCE 0.05

typedef struct pcr_setup {
    pcr_scheme scheme;
    size_t n, r; /* workers; batches that each worker stores */
    bool sleeps; /* artificial stragglers: sleep for some seconds, by chance */
    pcr_stale stale;
    bool clogged; /* late results occupy the coordinator's link, too */
    size_t iterations;
    uint64_t seed;
} pcr_setup;

typedef struct pcr_iteration {
    double took;        /* seconds */
    double computation; /* longest computation of a worker that was waited for,
                           s */
    unsigned messages;  /* messages received until they sufficed */
} pcr_iteration;

/* Returns the number of distinct messages that suffices; 0 if the scheme does
 * not exist for these n and r. */
size_t pcr_threshold(pcr_scheme scheme, size_t n, size_t r);
/* Runs the iterations into each[iterations]. */
kofn_status pcr_run(const pcr_setup *s, pcr_iteration *each);

/* Means over several runs with consecutive seeds. */
typedef struct pcr_mean {
    double total, computation; /* of a run, averaged */
    double took, took_sd;      /* of an iteration */
    double messages, messages_sd;
    size_t iterations, runs;
    double
        *quantile; /* times of all iterations, ascending; freed by the caller */
} pcr_mean;

kofn_status pcr_average(const pcr_setup *s, size_t runs, pcr_mean *out);

/* Scenarios 1 to 4 of the paper: n = 40, 40, 30, 30. Workers sleep in the even
 * ones. */
#define PCR_SCENARIOS 4
#define PCR_ITERATIONS 100
pcr_setup pcr_scenario(size_t k, pcr_scheme scheme);

/* Results of one scenario. */
typedef struct pcr_panel {
    size_t k;
    pcr_mean mean[PCR_SCHEMES];
} pcr_panel;
#define PCR_RUNS 20
/* Returns the setup with the options' seed and --stale. */
pcr_setup pcr_setup_for(const papers_args *a, size_t k, pcr_scheme scheme);
/* Computes the mean seconds of a run. */
kofn_status pcr_total(const pcr_setup *s, size_t runs, double *total);

/* ---- Tables III to VI -----------------------------------------------------
 */

/* Ratios: uncoded/PCR, GC/PCR, uncoded/GC, communication and computation of
 * GC/PCR. */
#define PCR_RATIOS 5
extern const double pcr_published[PCR_SCENARIOS][PCR_RATIOS];
#define PCR_BAND 1.6 /* a ratio is accepted within this factor */
void pcr_ratios(const pcr_mean mean[PCR_SCHEMES], double ratio[PCR_RATIOS]);
/* Returns max(a/b, b/a). */
double pcr_factor(double a, double b);

/* ---- Figure 4, stored batches, and sleep ----------------------------------
 */

json_t *pcr_figure_4_json(const pcr_panel *p);
void pcr_figure_4_tell(const pcr_panel *p, size_t panels);

kofn_status pcr_batches_add(const papers_args *a, size_t k, json_t *o);
void pcr_batches_tell(json_t *list);

/* Return the seconds that awaited workers sleep in 100 uncoded iterations: by
 * the model, and the paper's measured difference. */
double pcr_sleep_law(size_t n);
double pcr_sleep_published(size_t n);
/* Adds the results of all four scenarios. */
kofn_status pcr_sleep_add(const papers_args *a, const pcr_panel *p, json_t *o);
void pcr_sleep_tell(json_t *o);

#endif
