/* fleet.c -- parts that the figures of "Coded Elastic Computing" (Yang,
 * Interlandi, Grover, Kar, Amizadeh, Weimer, 2018) share: workers under the
 * elastic code, and timings of several settings in turn (Figures 2a and 2b;
 * math/elastic.md 18).
 *
 * Real matrices run on kofn's simulator with the measured clock: every task
 * takes the processor time it really took, as if each worker had its own
 * machine. Caches are emptied before every round, as other work would do.
 * Otherwise one cache would hold the shares of many workers but not those of
 * few, and the ratios would show that. */
#include "elastic/elastic.h"

#include <stdlib.h>
#include <string.h>

/* ---- a fleet ------------------------------------------------------------- */

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

    published.late = -1; /* the paper waits for all workers present */
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

/* ---- timings ------------------------------------------------------------- */

#define FIGURES 3

/* Twice the last-level cache of most machines. */
#define SWEEP ((size_t)8 << 20)

static double empty_caches(const double *sweep)
{
    double sum = 0;

    for (size_t i = 0; i < SWEEP; i += 8)
        sum += sweep[i];
    return sum;
}

/* Returns the rows of its block that the busiest worker was asked for. */
static size_t busiest(const kofn_report *rep)
{
    size_t most = 0;

    for (size_t i = 0; i < rep->workers; i++)
        most = larger(most, rep->rows[i]);
    return most;
}

static double *times_of(const timings *b, timings_figure figure, size_t s)
{
    return b->time + (figure * TIMINGS_MOST + s) * TIMINGS_TRIALS;
}

static kofn_status plain_answers(timings *b)
{
    kofn_matrix A = as_matrix(b->A, b->rows, b->cols);
    kofn_matrix x = as_matrix(b->x, b->cols, 1);
    kofn_matrix want = as_matrix(b->want, b->rows, 1);
    kofn_status st = kofn_product_plain(KOFN_DENSE(&A), &x, &want);

    for (size_t i = 0; i < b->rows; i++)
        b->z[i] = b->want[i] - b->y[i];
    transposed_product(b->A, b->rows, b->cols, b->z, b->grad);
    return st;
}

static kofn_status fill(timings *b, uint64_t seed)
{
    size_t m = b->rows, n = b->cols;
    size_t times = FIGURES * TIMINGS_MOST * TIMINGS_TRIALS;

    b->A = calloc(m * n + 4 * m + 3 * n + SWEEP + times + TIMINGS_TRIALS,
                  sizeof *b->A);
    if (!b->A)
        return KOFN_NOMEM;
    b->x = dice_matrix(seed, 10, m, n, b->A);
    b->y = dice_matrix(seed, 11, n, 1, b->x);
    b->want = dice_matrix(seed, 12, m, 1, b->y);
    b->out = b->want + m;
    b->z = b->out + m;
    b->grad = b->z + m;
    b->got = b->grad + n;
    b->time = b->got + n;
    b->room = b->time + times;
    b->sweep = b->room + TIMINGS_TRIALS;
    for (size_t i = 0; i < SWEEP; i++) /* touches fresh pages */
        b->sweep[i] = (double)i;
    return plain_answers(b);
}

static kofn_status set_up(timings *b)
{
    const kofn_faults faults = KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MEASURED);
    kofn_matrix A = as_matrix(b->A, b->rows, b->cols);
    kofn_status st = KOFN_OK;

    for (size_t s = 0; s < b->settings && !st; s++) {
        setting *t = &b->setting[s];
        kofn_options opt = KOFN_OPTIONS_INIT;

        for (size_t i = 0; i < t->gone; i++) /* every other worker */
            t->leave[i] = (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_LEAVE,
                                             (uint32_t)(2 * i), 0};
        opt.events = t->leave;
        opt.event_count = t->gone;
        opt.pieces = 1;
        st = fleet_open(&t->fleet, &A, &opt, &faults);
    }
    return st;
}

/* Adds the times of a round to trial i of setting s. */
static void note(timings *b, size_t s, size_t i, const kofn_report *rep)
{
    times_of(b, TIMINGS_WORK, s)[i] += 1e-9 * (double)rep->waiting;
    times_of(b, TIMINGS_CODE, s)[i] +=
        1e-9 * (double)(rep->encoding + rep->decoding);
    times_of(b, TIMINGS_WHOLE, s)[i] += 1e-9 * (double)rep->took;
    b->setting[s].live = rep->live;
    b->setting[s].rows += busiest(rep);
}

kofn_status timings_product(timings *b, size_t s, size_t i)
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

/* Computes margins on the fleet, residuals here, and their product with A. */
kofn_status timings_gradient(timings *b, size_t s, size_t i)
{
    kofn_matrix z = as_matrix(b->z, 1, b->rows);
    kofn_matrix g = as_matrix(b->got, 1, b->cols);
    kofn_report rep = KOFN_REPORT_INIT;

    PAPERS_TRY(timings_product(b, s, i));
    for (size_t k = 0; k < b->rows; k++)
        b->z[k] = b->out[k] - b->y[k];
    empty_caches(b->sweep);
    PAPERS_TRY(kofn_put_at(b->setting[s].fleet.job, 0, true, &z, &g, NULL));
    PAPERS_TRY(kofn_take(b->setting[s].fleet.job, 0, KOFN_NEVER, &rep));
    note(b, s, i, &rep);
    b->worst = fmax(b->worst, papers_distance(b->got, b->grad, b->cols));
    return KOFN_OK;
}

/* Takes the settings in turn, so that other load affects all of them equally.
 */
kofn_status timings_take(timings *b, uint64_t seed,
                         kofn_status (*once)(timings *, size_t, size_t))
{
    kofn_status st = fill(b, seed);

    if (!st)
        st = set_up(b);
    for (size_t i = 0; i < TIMINGS_TRIALS && !st; i++)
        for (size_t s = 0; s < b->settings && !st; s++)
            st = once(b, s, i);
    for (size_t s = 0; s < b->settings; s++)
        fleet_close(&b->setting[s].fleet);
    return st;
}

double timings_median(const timings *b, timings_figure figure, size_t s,
                      bool by_first)
{
    const double *t = times_of(b, figure, s), *t0 = times_of(b, figure, 0);

    for (size_t i = 0; i < TIMINGS_TRIALS; i++)
        b->room[i] = by_first ? t[i] / t0[i] : t[i];
    return papers_median(b->room, TIMINGS_TRIALS);
}

double timings_share(const timings *b, size_t s)
{
    return (double)b->setting[s].rows / (double)b->rows;
}
