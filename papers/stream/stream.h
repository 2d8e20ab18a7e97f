/* stream.h -- streams of products by DIP and IDIP: mean times of rounds,
 * simulated rounds, and kofn jobs. */
#ifndef PAPERS_STREAM_STREAM_H
#define PAPERS_STREAM_STREAM_H

#include "papers.h"

/* ---- in closed form and by chains (chain.c) ------------------------------ */

/* The model. A product begins every round. Each worker is slow in a round with
 * chance delta, independent of earlier rounds. It then takes alpha times as
 * long for all its tasks and returns nothing earlier. A round lasts until the
 * scheme can do without the unfinished workers. If some are unfinished, it
 * also lasts mu times longer than the first worker took. */
typedef struct rhat_params {
    size_t workers;
    double alpha, delta, mu;
} rhat_params;

typedef enum rhat_kind {
    RHAT_ONCE = 1, /* single products, one result per worker */
    RHAT_DIP,
    RHAT_IDIP
} rhat_kind;

#define RHAT_ENDLESS SIZE_MAX

typedef struct rhat_scheme {
    rhat_kind kind;
    size_t threshold; /* results that decode a product; IDIP: 0, or PW - N */
    size_t parts;     /* a product has this many parts; 0: threshold */
    size_t T, lambda; /* DIP: rounds of delay, or RHAT_ENDLESS; workers that
                         suffice in the last round, 0: all */
    size_t N, W;      /* IDIP: N marks in any W rounds are tolerated */
    bool late; /* IDIP: products are carried to their due rounds even if they
                  could be decoded earlier */
} rhat_scheme;

typedef struct rhat_result {
    double rhat;  /* mean time of a round, relative to a whole product on one
                     worker; IDIP: exact_early_finish, or exact_fixed_load if
                     `late` */
    size_t slots; /* most mini-tasks of a worker in a round; RHAT_ENDLESS is
                     possible, also for delay */
    size_t threshold, delay;
    double load;      /* slots divided by parts */
    double mean_load; /* of a round */
    /* DIP: mean rounds of a product without a deadline. A round in which all
     * are slow counts as one in which none is (f_tie), or brings nothing
     * (f_binomial). */
    double f_tie, f_binomial;
    /* IDIP; the first two with mu = 0: the paper's bound, the corrected bound,
     * and the means if each product is carried to its end, or finished early.
     */
    double bound_printed, bound_corrected, exact_fixed_load, exact_early_finish;
} rhat_result;

kofn_status rhat_of(const rhat_params *q, const rhat_scheme *scheme,
                    rhat_result *out);
/* Finds the parameters with the least rhat. ONCE: a threshold below the number
 * of workers P. DIP: P to (T+1)P results, without end P to 10P - 1, and any
 * lambda. IDIP: any N with W = T+1. out may be NULL. */
kofn_status rhat_best(const rhat_params *q, rhat_kind kind, size_t T,
                      rhat_scheme *best, rhat_result *out);

/* ---- simulated rounds (rounds.c) ------------------------------------------
 */

/* A stream of simulated rounds: nothing is multiplied. */
typedef struct stream_setup {
    rhat_scheme scheme; /* as in rhat_of */
    size_t B, eps;      /* IDIP under the bursty model; 0: not */
    size_t workers, products;
    double alpha, mu;
    const kofn_matrix *pattern; /* slow workers: entries above 1 */
    const double *size;   /* multiply-adds of consecutive products; NULL: 1 */
    size_t sizes, models; /* length of `size`; models that take turns */
    double *took;         /* of the first rounds, in mini-tasks, or NULL */
    size_t rounds_kept;
} stream_setup;

typedef struct stream_played {
    double
        time; /* unit: a whole product on a usual worker, or a multiply-add */
    size_t slots; /* most mini-tasks of a worker in a round */
    size_t delay; /* most rounds of a product beyond its first */
    size_t
        waits; /* rounds that waited for slow workers while others were fast */
    size_t missed; /* products that were late */
} stream_played;
kofn_status stream_play(const stream_setup *x, stream_played *out);

/* Returns the results that decode a product. */
size_t stream_threshold(const stream_setup *x);

/* ---- Table 1 --------------------------------------------------------------
 */

#define TABLE1_ROWS 6
#define TABLE1_SCHEMES 4
extern const char *const table1_names[TABLE1_SCHEMES];
/* A row: slow workers; times of uncoded, DIP and IDIP relative to the
 * polynomial code, in the paper and by the rules, the latter within a band.
 * NaN: no expectation. */
typedef struct table1_row {
    const char *title, *pattern;
    double mu, band, printed[3], expected[3];
} table1_row;
const table1_row *table1_at(size_t row);
/* Return scheme k of a row, without pattern and sizes; and its kofn plan. */
stream_setup table1_entrant(size_t row, size_t k);
void table1_spec(size_t row, size_t k, char *spec, size_t size);

/* ---- kofn jobs (job.c), and worker processes (processes.c) ----------------
 */

/* A job with a plan for a stream. */
typedef struct stream_job {
    kofn_plan *plan;
    kofn_job *job;
    double took, encoding,
        decoding; /* seconds over all rounds, for callers that need them */
} stream_job;
/* Opens the job, which owns the port in any case. */
kofn_status stream_job_open(stream_job *s, const kofn_problem *pb,
                            const char *spec, double mu, kofn_port *port);
void stream_job_close(stream_job *s);

/* The first argument of this program as a worker; address and pattern follow.
 */
#define PROCESSES_WORKER "worker-of-kofn-papers"
/* Runs such a worker. Returns the exit code. */
int processes_serve(const char *address, const char *pattern);

/* Opens four of them. Close them after their job. */
kofn_status processes_open(const kofn_problem *pb, const kofn_faults *faults,
                           kofn_port **out);
void processes_close(void);

#endif
