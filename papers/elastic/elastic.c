/* elastic.c -- the timings of "Coded Elastic Computing" (Yang,
 * Interlandi, Grover, Kar, Amizadeh, Weimer, 2018), Figures 2a and 2b;
 * math/elastic.md 18.
 *
 * Real matrices on kofn's simulator with the measured clock: every task takes
 * the processor time it really took, as if each worker had a machine of its
 * own.  Caches are emptied before every round, as if other work went on in
 * between: when they are not, the ratios are those of a cache that holds the
 * shares of many workers and not of few.
 */
#include "elastic/elastic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the elastic experiments share ---------------------------------- */

void transposed_product(const double *X, size_t rows, size_t cols,
                        const double *z, double *g)
{
    memset(g, 0, cols * sizeof *g);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols && z[i] != 0; j++)
            g[j] += z[i] * X[i * cols + j];
}

kofn_status fleet_open(fleet *f, const kofn_matrix *A, const kofn_options *opt,
                       const kofn_faults *faults)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, A->rows, A->cols, 1, KOFN_F64, false);
    kofn_options published = opt ? *opt : (kofn_options)KOFN_OPTIONS_INIT;
    kofn_port *port;
    kofn_status st;
    char spec[40];

    published.late = -1; /* there all who are there are waited for */
    snprintf(spec, sizeof spec, "elastic:k=%zu", f->k);
    st = kofn_plan_new(&f->plan, &pb, spec, f->n, f->seed);
    if (!st)
        st = kofn_plan_serve_left(f->plan, 1);
    if (!st)
        st = kofn_port_sim(&port, f->n, faults);
    if (!st)
        st = kofn_open(&f->job, f->plan, port, &published);
    return st ? st : kofn_place(f->job, A);
}

void fleet_close(fleet *f)
{
    kofn_close(f->job);
    kofn_plan_free(f->plan);
    *f = (fleet){.plan = NULL};
}

/* Twice the last cache of most machines. */
#define SWEEP ((size_t)8 << 20)

static double empty_caches(const double *sweep)
{
    double sum = 0;

    for (size_t i = 0; i < SWEEP; i += 8)
        sum += sweep[i];
    return sum;
}

/* Rows of its block that the busiest worker was asked for. */
static size_t busiest(const kofn_report *rep)
{
    size_t most = 0;

    for (size_t i = 0; i < rep->workers; i++)
        most = larger(most, rep->rows[i]);
    return most;
}

/* ---- settings, measured by turns ----------------------------------------- */

#define MOST_SETTINGS 4
enum { WORK, CODE, WHOLE, FIGURES };

/* Workers, `gone` of which have left. */
typedef struct setting {
    fleet fleet;
    size_t gone;
    kofn_fault_event leave[20];
    size_t live, rows; /* rows: of the busiest worker */
} setting;

/* One matrix, its vectors, and the times of every setting and trial. */
typedef struct bench {
    size_t rows, cols, trials, settings;
    setting setting[MOST_SETTINGS];
    double *A, *x, *y;     /* y: labels                   */
    double *all;           /* of those that follow        */
    double *want, *grad;   /* A x and A' (A x - y), plain */
    double *out, *z, *got; /* the same from a fleet       */
    double *sweep, *time, *room;
    double worst; /* relative error of any answer */
} bench;

static double *times_of(const bench *b, size_t figure, size_t s)
{
    return b->time + (figure * MOST_SETTINGS + s) * b->trials;
}

static void bench_free(bench *b)
{
    free(b->A);
    free(b->x);
    free(b->y);
    free(b->all);
}

static kofn_status plain_answers(bench *b)
{
    kofn_matrix A = as_matrix(b->A, b->rows, b->cols);
    kofn_matrix x = as_matrix(b->x, b->cols, 1);
    kofn_matrix want = as_matrix(b->want, b->rows, 1);
    kofn_status st = kofn_product_plain(&A, &x, &want);

    for (size_t i = 0; i < b->rows; i++)
        b->z[i] = b->want[i] - b->y[i];
    transposed_product(b->A, b->rows, b->cols, b->z, b->grad);
    return st;
}

static kofn_status bench_new(bench *b, uint64_t seed)
{
    size_t m = b->rows, n = b->cols;
    size_t times = FIGURES * MOST_SETTINGS * b->trials;

    b->A = dice_matrix(seed, 10, m, n);
    b->x = dice_matrix(seed, 11, n, 1);
    b->y = dice_matrix(seed, 12, m, 1);
    b->all = calloc(3 * m + 2 * n + SWEEP + times + b->trials, sizeof *b->all);
    if (!b->A || !b->x || !b->y || !b->all)
        return KOFN_NOMEM;
    b->want = b->all;
    b->out = b->want + m;
    b->z = b->out + m;
    b->grad = b->z + m;
    b->got = b->grad + n;
    b->time = b->got + n;
    b->room = b->time + times;
    b->sweep = b->room + b->trials;
    for (size_t i = 0; i < SWEEP; i++) /* pages of its own */
        b->sweep[i] = (double)i;
    return plain_answers(b);
}

static kofn_status set_up(bench *b)
{
    const kofn_faults faults = KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MEASURED);
    kofn_matrix A = as_matrix(b->A, b->rows, b->cols);
    kofn_status st = KOFN_OK;

    for (size_t s = 0; s < b->settings && !st; s++) {
        setting *t = &b->setting[s];
        kofn_options opt = KOFN_OPTIONS_INIT;

        for (size_t i = 0; i < t->gone; i++) /* every other one */
            t->leave[i] = (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_LEAVE,
                                             (uint32_t)(2 * i), 0};
        opt.events = t->leave;
        opt.event_count = t->gone;
        opt.pieces = 1;
        st = fleet_open(&t->fleet, &A, &opt, &faults);
    }
    return st;
}

/* What a round took is added to trial i of setting s. */
static void note(bench *b, size_t s, size_t i, const kofn_report *rep)
{
    times_of(b, WORK, s)[i] += 1e-9 * (double)rep->waiting;
    times_of(b, CODE, s)[i] += 1e-9 * (double)(rep->encoding + rep->decoding);
    times_of(b, WHOLE, s)[i] += 1e-9 * (double)rep->took;
    b->setting[s].live = rep->live;
    b->setting[s].rows += busiest(rep);
}

static kofn_status product(bench *b, size_t s, size_t i)
{
    kofn_matrix in = as_matrix(b->x, b->cols, 1);
    kofn_matrix out = as_matrix(b->out, b->rows, 1);
    kofn_report rep = KOFN_REPORT_INIT;

    empty_caches(b->sweep);
    PAPERS_TRY(kofn_round(b->setting[s].fleet.job, &in, &out, &rep));
    b->setting[s].rows = 0;
    note(b, s, i, &rep);
    b->worst = fmax(b->worst, papers_distance(b->out, b->want, b->rows));
    return KOFN_OK;
}

/* Margins from the fleet, residuals here, and their product with A. */
static kofn_status gradient(bench *b, size_t s, size_t i)
{
    kofn_matrix z = as_matrix(b->z, 1, b->rows);
    kofn_matrix g = as_matrix(b->got, 1, b->cols);
    kofn_report rep = KOFN_REPORT_INIT;

    PAPERS_TRY(product(b, s, i));
    for (size_t k = 0; k < b->rows; k++)
        b->z[k] = b->out[k] - b->y[k];
    empty_caches(b->sweep);
    PAPERS_TRY(kofn_left(b->setting[s].fleet.job, &z, &g, &rep));
    note(b, s, i, &rep);
    b->worst = fmax(b->worst, papers_distance(b->got, b->grad, b->cols));
    return KOFN_OK;
}

/* By turns, so that what else the machine does meets all settings alike. */
static kofn_status measure(bench *b,
                           kofn_status (*once)(bench *, size_t, size_t))
{
    kofn_status st = set_up(b);

    for (size_t i = 0; i < b->trials && !st; i++)
        for (size_t s = 0; s < b->settings && !st; s++)
            st = once(b, s, i);
    for (size_t s = 0; s < b->settings; s++)
        fleet_close(&b->setting[s].fleet);
    return st;
}

/* The median over the trials of a figure of setting s, or of what it is to the
 * same trial of setting 0. */
static double median(const bench *b, size_t figure, size_t s, bool by_first)
{
    const double *t = times_of(b, figure, s), *t0 = times_of(b, figure, 0);
    size_t n = b->trials;

    for (size_t i = 0; i < n; i++)
        b->room[i] = by_first ? t[i] / t0[i] : t[i];
    return papers_median(b->room, n);
}

static double share(const bench *b, size_t s)
{
    return (double)b->setting[s].rows / (double)b->rows;
}

/* ---- Figure 2a ----------------------------------------------------------- */

/* A data centre's network, as the simulator has it: every message takes LATENCY
 * and its bytes' time.  Added to rounds that ran without, so that what workers
 * do and the whole are of the same rounds. */
#define LATENCY 1e-4
#define BANDWIDTH 1.25e9

static double travel(const bench *b, double of_rows)
{
    double numbers = (double)b->cols + of_rows * (double)b->rows;

    return 2 * LATENCY + 8 * numbers / BANDWIDTH;
}

/* Least squares for whole = c0 + c1 / n. */
static void fit(matvec_result *r)
{
    double n = MATVEC_SIZES, x = 0, y = 0, xx = 0, xy = 0;

    for (size_t i = 0; i < MATVEC_SIZES; i++) {
        double u = 1 / (double)r->row[i].n;

        x += u;
        y += r->row[i].whole;
        xx += u * u;
        xy += u * r->row[i].whole;
    }
    r->c1 = (n * xy - x * y) / (n * xx - x * x);
    r->c0 = (y - r->c1 * x) / n;
}

static void conclude_matvec(const bench *b, matvec_result *r)
{
    const struct matvec_row *first = &r->row[0],
                            *last = &r->row[MATVEC_SIZES - 1];

    for (size_t s = 0; s < MATVEC_SIZES; s++) {
        r->row[s].n = b->setting[s].live;
        r->row[s].share = share(b, s);
        r->row[s].work = median(b, WORK, s, false);
        r->row[s].whole =
            median(b, WHOLE, s, false) + travel(b, r->row[s].share);
    }
    r->count_ratio = last->share / first->share;
    r->work_ratio = median(b, WORK, MATVEC_SIZES - 1, true);
    r->whole_ratio = last->whole / first->whole;
    fit(r);
}

kofn_status elastic_matvec(double scale, size_t trials, uint64_t seed,
                           matvec_result *out)
{
    /* 240: shares of 6, 5, 4 and 3 workers are whole. */
    bench b = {.rows = scaled_size(scale, 30000, 240),
               .cols = scaled_size(scale, 10000, 1),
               .trials = trials,
               .settings = MATVEC_SIZES};
    kofn_status st = bench_new(&b, seed);

    *out = (matvec_result){.rows = b.rows, .cols = b.cols, .trials = trials};
    for (size_t s = 0; s < MATVEC_SIZES; s++)
        b.setting[s] =
            (setting){.fleet = {.k = 3, .n = 6, .seed = 1}, .gone = s};
    if (!st)
        st = measure(&b, product);
    if (!st)
        conclude_matvec(&b, out);
    out->worst = b.worst;
    bench_free(&b);
    return st;
}

/* ---- Figure 2b ----------------------------------------------------------- */

const double bars_band[BARS][2] = {{1, 1}, {1.0, 1.3}, {1.7, 2.5}};

static const char *const bar_names[BARS] = {"uncoded, 20 live",
                                            "coded, 20 live", "coded, 10 live"};

kofn_status elastic_bars(double scale, size_t trials, uint64_t seed,
                         bars_result *out)
{
    /* 80: shares of 20 and of 10 workers are whole.  Any 20 of 20 is what is
     * called uncoded: plain parts, and all must answer. */
    bench b = {
        .rows = scaled_size(scale, 10000, 80),
        .cols = scaled_size(scale, 3352, 1),
        .trials = trials,
        .settings = BARS,
        .setting = {{.fleet = {.k = 20, .n = 20, .seed = 1}},
                    {.fleet = {.k = 10, .n = 20, .seed = 1}},
                    {.fleet = {.k = 10, .n = 20, .seed = 1}, .gone = 10}}};
    kofn_status st = bench_new(&b, seed);

    *out = (bars_result){.rows = b.rows, .cols = b.cols, .trials = trials};
    if (!st)
        st = measure(&b, gradient);
    for (size_t s = 0; s < BARS && !st; s++) {
        out->bar[s] = (struct bar){bar_names[s],
                                   b.setting[s].live,
                                   share(&b, s),
                                   median(&b, WORK, s, false),
                                   median(&b, CODE, s, false),
                                   median(&b, WHOLE, s, false)};
        out->count_ratio[s] = share(&b, s) / share(&b, 0);
        out->work_ratio[s] = median(&b, WORK, s, true);
    }
    out->worst = b.worst;
    bench_free(&b);
    return st;
}
