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
#include <kofn/train.h>

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

/* ---- polynomially coded regression: pcr.c --------------------- */

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

/* ---- adaptive gradient coding: gradient.c --------------------- */

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

/* ---- coded elastic computing: elastic.c, .._descent.c --------- */

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

/* ---- streams of products: stream.c ---------------------------------------- */

#define STREAM_SCENARIOS 6
#define STREAM_PLAYED 4 /* the first: nothing is multiplied */

/* A stream whose rounds are played out: nothing is multiplied. */
typedef struct stream_setup {
    kofn_rhat_scheme scheme; /* as kofn_rhat has them ...                    */
    size_t B, eps;           /* ... and IDIP under the bursty model; 0: not  */
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
    kofn_rhat_scheme scheme;
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

/* ---- streams that are computed: stream_rates.c, stream_nets.c ------------- */

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
                        const kofn_weather *weather, kofn_port **out);
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
typedef struct nets_points {
    kofn_matrix X, y, test_X, test_y;
} nets_points;
/* As MNIST has them: images of 28 x 28 of ten kinds, 0 to 1.  Freed with
 * nets_points_free. */
kofn_status nets_points_make(nets_points *p, size_t train, size_t test,
                             uint64_t seed);
void nets_points_free(nets_points *p);
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
kofn_status nets_run(const nets_points *p, unsigned iterations, uint64_t seed,
                     nets_result *out);

/* ---- training under soft errors: dnn.c ------------------------------------- */

#define DNN_SCENARIOS 3
#define DNN_KINDS 4
extern const char *const dnn_kinds[DNN_KINDS];

/* Tables I and III: limits as published, and as they are reached. */
#define DNN_TABLES 5
typedef struct dnn_table {
    size_t P, m, n, cut[2];
    kofn_tolerance published[DNN_KINDS];
    kofn_tried got[DNN_KINDS];
    bool ok[DNN_KINDS];
} dnn_table;
kofn_status dnn_limits(size_t trials, uint64_t seed, dnn_table out[DNN_TABLES]);

/* Corollary 1, m = n = sqrt(P/4): what GPD stands by what others do, by P and by its
 * root; to 1/4 and 1. */
#define DNN_GROWTH 5 /* P = 64 to 16384 */
typedef struct dnn_growth {
    size_t P;
    double by_replication, by_two_mds;
} dnn_growth;
kofn_status dnn_corollary(dnn_growth out[DNN_GROWTH]);

/* Fig. 8: what P nodes stand in the forward product: GPD, replication, two MDS. */
#define DNN_POINTS 10
typedef struct dnn_figure {
    size_t P, adversarial[3], probabilistic[3];
} dnn_figure;
kofn_status dnn_figure8(size_t m, size_t n, dnn_figure out[DNN_POINTS]);

/* Trainings of which each operation of a node goes wrong with some chance. */
#define DNN_WAYS 4
#define DNN_RATES 3
#define DNN_SEEDS 5
#define DNN_EPOCHS 10
#define DNN_BAND 0.003
extern const char *const dnn_names[DNN_WAYS];
extern const double dnn_rates[DNN_RATES];
typedef struct dnn_run {
    double accuracy, loss; /* of held-out points               */
    double apart;          /* from the plain weights, at most  */
    unsigned steps, taken, rollbacks;
    size_t faults, corrected;
    bool finished;
} dnn_run;
typedef struct dnn_soft {
    size_t seeds, points, pixels;
    unsigned steps;
    double clean[DNN_SEEDS];
    dnn_run run[DNN_RATES][DNN_SEEDS][DNN_WAYS];
    bool same[DNN_RATES];   /* coded as error-free, 0.3 % and 1e-8           */
    bool lost[DNN_RATES];   /* uncoded tells less than half right            */
    bool fewest[DNN_RATES]; /* rollbacks of coded: no more than of the others */
} dnn_soft;
/* Images of 7 x 7; freed with nets_points_free. */
kofn_status dnn_points_make(nets_points *p, uint64_t seed);
kofn_status dnn_soft_errors(const nets_points *points, unsigned epochs,
                            size_t seeds, uint64_t seed, dnn_soft *out);
typedef struct dnn_hidden {
    size_t widths[2];
    double clean; /* loss without errors */
    dnn_run run[DNN_WAYS];
    bool ok; /* coded weights are the plain ones to 1e-8 */
} dnn_hidden;
kofn_status dnn_autoencoder(const nets_points *points, unsigned epochs,
                            uint64_t seed, dnn_hidden *out);

#endif
