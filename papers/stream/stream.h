/* stream.h -- DIP and IDIP: streams that are played out, and that are computed. */
#ifndef PAPERS_STREAM_STREAM_H
#define PAPERS_STREAM_STREAM_H

#include "images.h"
#include "stream/rhat.h"

#define STREAM_SCENARIOS 6
#define STREAM_PLAYED 4 /* the first: nothing is multiplied */

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

/* Figure 1: the least of each scheme by delta, in closed form or by its chain,
 * and played out. */
#define FIGURE1_POINTS 8
#define FIGURE1_CURVES 5
#define FIGURE1_BAND 0.02
extern const char *const figure1_names[FIGURE1_CURVES];
typedef struct figure1_curve {
    rhat_scheme scheme;
    double model, corrected; /* IDIP: the bound, as printed and corrected ... */
    double exact, simulated; /* ... and what it bounds                        */
    bool within;             /* simulated within the band of exact            */
} figure1_curve;
typedef struct figure1_point {
    double delta;
    figure1_curve curve[FIGURE1_CURVES];
    bool ordered; /* each above the next, with either bound */
} figure1_point;
typedef struct figure1_result {
    size_t workers, T, rounds;
    double alpha;
    figure1_point point[FIGURE1_POINTS];
} figure1_result;
/* Panel 1: four workers, 2: six. */
kofn_status figure1_run(size_t panel, size_t rounds, uint64_t seed,
                        figure1_result *out);

/* Table 1: the time of a training by that of the polynomial code. */
#define TABLE1_ROWS 6
#define TABLE1_SCHEMES 4
extern const char *const table1_names[TABLE1_SCHEMES];
typedef struct table1_row {
    const char *title, *pattern;
    double mu, time[TABLE1_SCHEMES];
    /* uncoded, DIP, IDIP; NaN: nothing is expected */
    double ratio[3], printed[3], expected[3], band;
    bool within[3];
    size_t missed;
} table1_row;
typedef struct table1_result {
    size_t runs, products; /* of each run */
    double multiply_adds;  /* of an iteration of one network */
    table1_row row[TABLE1_ROWS];
} table1_result;
kofn_status table1_run(size_t runs, uint64_t seed, table1_result *out);
/* Scheme k of a row, without pattern and sizes; and as kofn's plans have it. */
stream_setup table1_entrant(size_t row, size_t k);
void table1_spec(size_t row, size_t k, char *spec, size_t size);

/* The largest load under patterns that conform, P = W = 4 and N = 10. */
typedef struct worst_load {
    double bound, dip, idip;
    size_t missed, waits;
} worst_load;
kofn_status stream_worst_load(size_t seeds, uint64_t seed, worst_load *out);

/* ---- streams that are computed: rates.c, nets.c -------------------------- */

/* A job whose plan is for a stream. */
typedef struct stream_job {
    kofn_plan *plan;
    kofn_job *job;
    double took, encoding, decoding; /* seconds: of all rounds, of products that
                                        stream_job_count was told of */
} stream_job;
/* The port is the job's in any case. */
kofn_status stream_job_open(stream_job *s, const kofn_problem *pb,
                            const char *spec, double mu, kofn_port *port);
void stream_job_count(stream_job *s, const kofn_report *rep);
void stream_job_close(stream_job *s);

/* Products of real matrices by workers whose time is real.  They wait for most of
 * it, so that few cores are enough for them: a usual task takes RATES_IDLE times
 * as long as its multiplications, a slow one 3 times that. */
#define RATES_IDLE 8
#define RATES_FACTOR 3
#define RATES_PATTERN "fritchman:a=0.05,b=1,M=2"
#define RATES_MU 0.25
#define RATES_TURNS 5 /* of all schemes, with a stretch of the pattern each */
#define RATES_EACH 12 /* products of each scheme in a turn                  */
typedef struct rates_result {
    size_t size, products; /* of each scheme */
    struct rates_row {
        const char *spec;
        double seconds, turn[RATES_TURNS], turn_model[RATES_TURNS];
        double ratio, model; /* medians of turns: by the polynomial code's */
        double encoding, decoding; /* seconds a product */
    } row[TABLE1_SCHEMES];
    double worst; /* relative error of a product in one direction */
} rates_result;
/* Where the workers are. */
typedef struct rates_port {
    kofn_status (*open)(void *ud, const kofn_problem *pb,
                        const kofn_faults *faults, kofn_port **out);
    void (*close)(void *ud); /* when its job was closed; or NULL */
    void *ud;
} rates_port;
kofn_status rates_run(size_t size, uint64_t seed, const rates_port *port,
                      rates_result *out);

/* Five networks trained side by side, every product one of a stream. */
#define NETS 5
#define NETS_BATCH 1024
#define NETS_HIDDEN 48 /* parts of 1, 2, 3 and 6 of it are in fours */
#define NETS_ITERATIONS 250
#define FIGURE2_POINTS 10
typedef struct nets_row {
    const char *title, *pattern;
    double mu, time[TABLE1_SCHEMES]; /* seconds of its rounds, modelled      */
    double played[TABLE1_SCHEMES];   /* what the rules come to               */
    double ratio[3], model[3], printed[3]; /* as in Table 1; of played ones  */
    double at[TABLE1_SCHEMES][FIGURE2_POINTS]; /* seconds to that point      */
    bool within;                               /* 3 % of what is played      */
} nets_row;
typedef struct nets_result {
    unsigned iterations;
    size_t points, products;
    double test_loss[FIGURE2_POINTS]; /* of the first network, so far as it is
                                         at a tenth of its iterations, ...   */
    double accuracy;                  /* ... and in the end                  */
    double worst; /* relative distance of weights from plain ones, any time  */
    nets_row row[TABLE1_ROWS];
} nets_result;
/* What a row is. */
void table1_about(size_t row, nets_row *out);
kofn_status nets_run(const images *p, unsigned iterations, uint64_t seed,
                     nets_result *out);

#endif
