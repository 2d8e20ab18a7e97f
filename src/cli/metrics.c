/* metrics.c -- the figures of --metrics-listen: of the job, of each of its
 * workers, or of a process that is a worker. Those that --metrics has too have
 * the same names.
 *
 * Owns nothing but the text until it is put. */
#define _GNU_SOURCE
#include "metrics.h"

#include "base/report.h"

#include <kofn/fleet.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MOST 1000 /* workers with series of their own */
#define OTHERS "others" /* the name of all others together */

/* The workers of one name. */
typedef struct figures {
    char name[160];
    size_t number; /* of the worker that came last */
    uint64_t results, late;
    double computed, bytes, slow;
    kofn_worker_state state; /* of that worker; KOFN_WORKER_UNKNOWN: others */
} figures;

/* ---- the format ---------------------------------------------------------- */

static void family(FILE *f, const char *name, const char *type,
                   const char *help)
{
    fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void quote(FILE *f, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", f);
        else
            fprintf(f, "%s%c", *text == '"' || *text == '\\' ? "\\" : "",
                    *text);
}

static void number(FILE *f, double x)
{
    if (isfinite(x))
        fprintf(f, "%.17g\n", x);
    else
        fprintf(f, "%s\n", isnan(x) ? "NaN" : x > 0 ? "+Inf" : "-Inf");
}

static void one(FILE *f, const char *name, const char *type, const char *help,
                double x)
{
    family(f, name, type, help);
    fprintf(f, "%s ", name);
    number(f, x);
}

/* ---- a job --------------------------------------------------------------- */

#define COUNT(x) (double)(x)
#define SECONDS(x) ((double)(x)*1e-9)
#define NUMBER(x) (x)
#define LIST(x) 0

static void put_totals(FILE *f, const kofn_job *job)
{
    kofn_report t = KOFN_REPORT_INIT;
    size_t n;

    kofn_job_totals(job, &t);
#define X(field, adds, kind, key, metric, text)                                \
    n = strlen("" metric);                                                     \
    if (n)                                                                     \
        one(f, "" metric,                                                      \
            n > 6 && !strcmp("" metric + n - 6, "_total") ? "counter"          \
                                                          : "gauge",           \
            "" text, kind(t.field));
    KF_REPORT_MAP(X)
#undef X
    family(f, "kofn_round_seconds", "summary",
           "Delivered rounds and their duration.");
    fprintf(f, "kofn_round_seconds_count %u\nkofn_round_seconds_sum %.9f\n",
            t.rounds, (double)t.took * 1e-9);
}

static void put_job(FILE *f, const kofn_job *job, const char *port)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_progress p = KOFN_PROGRESS_INIT;

    kofn_plan_describe(kofn_job_plan(job), false, &info);
    kofn_job_progress(job, &p);
    family(f, "kofn_job_info", "gauge", "Version, port and scheme of the job.");
    fprintf(f, "kofn_job_info{version=\"%s\",port=\"", KOFN_VERSION);
    quote(f, port);
    fprintf(f, "\",scheme=\"");
    quote(f, info.spec);
    fprintf(f, "\"} 1\n");
    one(f, "kofn_workers_joined_total", "counter",
        "Workers that joined after the start.", (double)p.joined);
    one(f, "kofn_workers_lost_total", "counter", "Workers that left.",
        (double)p.left);
    one(f, "kofn_workers_awaited", "gauge", "Workers with outstanding tasks.",
        (double)p.awaited);
    one(f, "kofn_round", "gauge", "The current round, or the last one.",
        p.round);
    put_totals(f, job);
}

/* ---- its workers --------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const figures *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static int by_number(const void *a, const void *b)
{
    const figures *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

/* Adds the figures of a worker that came later. */
static void add(figures *to, const figures *more)
{
    to->results += more->results;
    to->late += more->late;
    to->computed += more->computed;
    to->bytes += more->bytes;
}

static figures describe(const kofn_job *job, size_t i, kofn_worker_state state)
{
    kofn_fleet_worker w = KOFN_FLEET_WORKER_INIT;
    figures x = {.number = i, .state = state};

    kofn_job_describe(job, i, &w);
    if (w.name && *w.name)
        snprintf(x.name, sizeof x.name, "%.159s", w.name);
    else
        snprintf(x.name, sizeof x.name, "%zu", i);
    x.results = w.tasks;
    x.late = w.late;
    x.computed = w.computed;
    x.bytes = w.bytes;
    x.slow = w.slow;
    return x;
}

/* Adds up workers of one name, and those beyond the first thousand names.
 * Returns the number of names. */
static size_t merge(figures *of, size_t n)
{
    size_t names = 0;

    qsort(of, n, sizeof *of, by_name);
    for (size_t i = 0; i < n; i++)
        if (names && !strcmp(of[names - 1].name, of[i].name)) {
            add(&of[i], &of[names - 1]);
            of[names - 1] = of[i];
        } else {
            of[names++] = of[i];
        }
    qsort(of, names, sizeof *of, by_number);
    if (names <= NAMES_MOST)
        return names;
    for (size_t i = NAMES_MOST + 1; i < names; i++)
        add(&of[NAMES_MOST], &of[i]);
    for (size_t i = 0; i < NAMES_MOST; i++) /* a worker of that very name */
        if (!strcmp(of[i].name, OTHERS))
            snprintf(of[i].name, sizeof of[i].name, "%zu", of[i].number);
    snprintf(of[NAMES_MOST].name, sizeof of->name, OTHERS);
    of[NAMES_MOST].state = KOFN_WORKER_UNKNOWN;
    return NAMES_MOST + 1;
}

/* Fills *out with the figures of all names; it is the caller's. Returns their
 * number, 0 without memory. Counts the workers by state. */
static size_t list(const kofn_job *job, figures **out,
                   size_t count[KOFN_WORKER_STATES])
{
    size_t n = 0;
    kofn_worker_state state;

    *out = NULL;
    while ((state = kofn_job_worker(job, n)) != KOFN_WORKER_UNKNOWN) {
        figures *more =
            n & (n - 1) ? *out : realloc(*out, (n ? 2 * n : 1) * sizeof **out);

        if (!more) {
            free(*out);
            *out = NULL;
            return 0;
        }
        *out = more;
        count[state]++;
        more[n] = describe(job, n, state);
        n++;
    }
    return n ? merge(*out, n) : 0;
}

static const struct {
    kofn_worker_state is;
    const char *name;
} states[] = {{KOFN_WORKER_LIVE, "live"},
              {KOFN_WORKER_STORING, "storing"},
              {KOFN_WORKER_STANDBY, "standby"},
              {KOFN_WORKER_LEAVING, "leaving"},
              {KOFN_WORKER_QUARANTINED, "quarantined"},
              {KOFN_WORKER_GONE, "gone"},
              {KOFN_WORKER_UNRESPONSIVE, "unresponsive"}};
#define STATES (sizeof states / sizeof *states)

static double results(const figures *x)
{
    return (double)x->results;
}

static double late(const figures *x)
{
    return (double)x->late;
}

static double computed(const figures *x)
{
    return x->computed;
}

static double bytes(const figures *x)
{
    return x->bytes;
}

static double slow(const figures *x)
{
    return x->state == KOFN_WORKER_UNKNOWN || x->slow <= 0 ? NAN : x->slow;
}

static const struct {
    const char *name, *type, *help;
    double (*of)(const figures *x); /* NAN: it is not known */
} of_worker[] = {
    {"kofn_worker_results_total", "counter", "Results of the worker.", results},
    {"kofn_worker_compute_seconds_total", "counter",
     "Seconds that the worker computed for its results.", computed},
    {"kofn_worker_result_bytes_total", "counter", "Bytes of its results.",
     bytes},
    {"kofn_worker_late_rounds_total", "counter",
     "Rounds that ended without a result that it was asked for.", late},
    {"kofn_worker_slowdown_ratio", "gauge",
     "Times as long as others take for the same work; 1: it is not slow.",
     slow}};

static void put_states(FILE *f, const figures *x, size_t n)
{
    family(f, "kofn_worker_state", "gauge", "1 for the worker's state.");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < STATES; k++)
            if (states[k].is == x[i].state) {
                fprintf(f, "kofn_worker_state{worker=\"");
                quote(f, x[i].name);
                fprintf(f, "\",state=\"%s\"} 1\n", states[k].name);
            }
}

static void put_workers(FILE *f, const kofn_job *job)
{
    size_t count[KOFN_WORKER_STATES] = {0};
    figures *x;
    size_t n = list(job, &x, count);

    family(f, "kofn_workers", "gauge", "Workers by state.");
    for (size_t k = 0; k < STATES; k++)
        fprintf(f, "kofn_workers{state=\"%s\"} %zu\n", states[k].name,
                count[states[k].is]);
    for (size_t k = 0; k < sizeof of_worker / sizeof *of_worker; k++) {
        bool begun = false; /* a family without a sample is not valid */

        for (size_t i = 0; i < n; i++) {
            double value = of_worker[k].of(&x[i]);

            if (isnan(value))
                continue;
            if (!begun)
                family(f, of_worker[k].name, of_worker[k].type,
                       of_worker[k].help);
            begun = true;
            fprintf(f, "%s{worker=\"", of_worker[k].name);
            quote(f, x[i].name);
            fprintf(f, "\"} ");
            number(f, value);
        }
    }
    if (n)
        put_states(f, x, n);
    free(x);
}

/* ---- both ---------------------------------------------------------------- */

/* Puts the text that was written to f, unless memory ran out. */
static void put(FILE *f, char **text)
{
    bool good = !ferror(f);

    if (fclose(f) == 0 && good)
        cli_metrics_put(*text);
    else
        free(*text);
}

void cli_metrics_of_job(const kofn_job *job, const char *port)
{
    char *text = NULL;
    size_t n;
    FILE *f = cli_metrics_due() ? open_memstream(&text, &n) : NULL;

    if (!f)
        return;
    put_job(f, job, port);
    put_workers(f, job);
    put(f, &text);
}

void cli_metrics_of_worker(const kofn_serve_counts *c)
{
    char *text = NULL;
    size_t n;
    FILE *f = cli_metrics_due() ? open_memstream(&text, &n) : NULL;

    if (!f)
        return;
    one(f, "kofn_connected", "gauge", "1 if a coordinator is connected.",
        c->connected);
    one(f, "kofn_waiting_tasks", "gauge", "Tasks that wait or are computed.",
        (double)c->waiting);
    one(f, "kofn_served_results_total", "counter", "Results that were sent.",
        (double)c->results);
    one(f, "kofn_served_failures_total", "counter", "Tasks that failed.",
        (double)c->failures);
    one(f, "kofn_served_compute_seconds_total", "counter",
        "Seconds that the results took.", c->computed);
    one(f, "kofn_served_bytes_total", "counter", "Bytes of the results.",
        c->bytes);
    put(f, &text);
}
