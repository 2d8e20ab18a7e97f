/* stream.h -- DIP and IDIP, streams of products: what a round takes on the
 * average, rounds that are played out, and jobs of kofn. */
#ifndef PAPERS_STREAM_STREAM_H
#define PAPERS_STREAM_STREAM_H

#include "papers.h"

/* ---- in closed form and by chains (chain.c) ------------------------------ */

/* A product begins every round; each worker is slow in a round with chance
 * delta, whatever it was before, and then takes alpha times as long for all it
 * is asked for, of which nothing comes earlier.  A round lasts until the scheme
 * can do without those that are not done, and unless all are done mu times
 * longer than the first worker took. */
typedef struct rhat_params {
    size_t workers;
    double alpha, delta, mu;
} rhat_params;

typedef enum rhat_kind {
    RHAT_ONCE = 1, /* every product by itself, a result from each worker */
    RHAT_DIP,
    RHAT_IDIP
} rhat_kind;

#define RHAT_ENDLESS SIZE_MAX

typedef struct rhat_scheme {
    rhat_kind kind;
    size_t threshold; /* results that decode a product; IDIP: 0, or PW - N   */
    size_t parts;     /* one is so much of a product; 0: threshold           */
    size_t T, lambda; /* DIP: rounds of delay, or RHAT_ENDLESS; workers
                         that are enough in the last of them, 0: all         */
    size_t N, W;      /* IDIP: of any W rounds N marks are done without      */
    bool late;        /* IDIP: products are carried to their due rounds though
                         they could be decoded before                        */
} rhat_scheme;

typedef struct rhat_result {
    double rhat;  /* mean time of a round, by that of a whole product on one
                        worker; IDIP: exact_early_finish, or exact_fixed_load
                        where that is late                                   */
    size_t slots; /* mini-tasks of a worker in a round, at most; or
                        RHAT_ENDLESS, and likewise delay                */
    size_t threshold, delay;
    double load;      /* slots by parts */
    double mean_load; /* of a round     */
    /* DIP: rounds that a product takes without a deadline, where all being slow
     * counts as nobody being so, and where it brings nothing. */
    double f_tie, f_binomial;
    /* IDIP, the first two with mu = 0: the paper's bound, what it should be,
     * and the mean where each product is carried to its end, or finished early.
     */
    double bound_printed, bound_corrected, exact_fixed_load, exact_early_finish;
} rhat_result;

kofn_status rhat_of(const rhat_params *q, const rhat_scheme *scheme,
                    rhat_result *out);
/* The parameters with the least rhat: ONCE a threshold below the number of
 * workers P, DIP P to (T+1)P results, without end P to 10P - 1, and any lambda,
 * IDIP any N with W = T+1.  out may be NULL. */
kofn_status rhat_best(const rhat_params *q, rhat_kind kind, size_t T,
                      rhat_scheme *best, rhat_result *out);

/* ---- rounds that are played out (rounds.c) ------------------------------- */

/* A stream whose rounds are played out: nothing is multiplied. */
typedef struct stream_setup {
    rhat_scheme scheme; /* as rhat_of has them ...                    */
    size_t B, eps;      /* ... and IDIP under the bursty model; 0: not  */
    size_t workers, products;
    double alpha, mu;
    const kofn_matrix *pattern; /* who is slow: above 1 */
    const double *size;         /* multiply-adds of products that follow each
                                   other; NULL: 1                           */
    size_t sizes, models;       /* ... each of so many models in turn        */
    double *took; /* of the first rounds, in mini-tasks, or NULL */
    size_t rounds_kept;
} stream_setup;

typedef struct stream_played {
    double time;   /* a whole product on a usual worker, or a multiply-add: 1 */
    size_t slots;  /* mini-tasks of a worker in a round, at most              */
    size_t delay;  /* rounds more than one that a product took, at most       */
    size_t waits;  /* rounds that waited for the slow while others were not   */
    size_t missed; /* products that were not over in time                     */
} stream_played;
kofn_status stream_play(const stream_setup *x, stream_played *out);

/* Results that decode a product. */
size_t stream_threshold(const stream_setup *x);

/* ---- Table 1 --------------------------------------------------------------
 */

#define TABLE1_ROWS 6
#define TABLE1_SCHEMES 4
extern const char *const table1_names[TABLE1_SCHEMES];
/* Who is slow; times of uncoded, DIP and IDIP by the polynomial code's in the
 * paper and by the rules, the latter within a band; NaN: nothing is expected.
 */
typedef struct table1_row {
    const char *title, *pattern;
    double mu, band, printed[3], expected[3];
} table1_row;
const table1_row *table1_at(size_t row);
/* Scheme k of a row, without pattern and sizes; and as kofn's plans have it. */
stream_setup table1_entrant(size_t row, size_t k);
void table1_spec(size_t row, size_t k, char *spec, size_t size);

/* ---- jobs of kofn (job.c), and workers that are processes (processes.c) ---
 */

/* A job whose plan is for a stream. */
typedef struct stream_job {
    kofn_plan *plan;
    kofn_job *job;
    double took, encoding,
        decoding; /* seconds: of all rounds; for who counts */
} stream_job;
/* The port is the job's in any case. */
kofn_status stream_job_open(stream_job *s, const kofn_problem *pb,
                            const char *spec, double mu, kofn_port *port);
void stream_job_close(stream_job *s);

/* The first argument of this program as a worker; address and pattern
 * follow. */
#define PROCESSES_WORKER "worker-of-kofn-papers"
/* That worker's whole life; the exit code. */
int processes_serve(const char *address, const char *pattern);

/* Four of them; closed when their job was. */
kofn_status processes_open(const kofn_problem *pb, const kofn_faults *faults,
                           kofn_port **out);
void processes_close(void);

#endif
