/* verdict.c -- says in one sentence how a run went.
 *
 * Owns nothing. Slow workers are found by the time for each byte of results,
 * since shares of work may differ. */
#include "cli.h"

#include <kofn/fleet.h>

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A worker counts as slow from this multiple of the median on, if it and most
 * others have sent that number of results. */
#define SLOW 1.5
#define LEAST 8
#define LEAST_TIME 2e-3 /* seconds that they take in all */
#define NAMED 3         /* workers that are named; others are counted */

typedef struct text {
    char *at;
    size_t room;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *fmt,
                                                      ...)
{
    va_list more;
    int n;

    va_start(more, fmt);
    n = vsnprintf(t->at, t->room, fmt, more);
    va_end(more);
    if (n < 0)
        return;
    n = (size_t)n < t->room ? n : (int)t->room - 1;
    t->at += n;
    t->room -= (size_t)n;
}

static void add_worker(text *t, const session *s, size_t worker)
{
    const char *name = kofn_job_name(s->job, worker);

    if (*name)
        add(t, "%.64s", name);
    else
        add(t, "worker %zu", worker);
}

/* ---- slow workers -------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sets pace[i] to the seconds of worker i for a byte of results; NAN if it has
 * sent too few. Returns the median. */
static double paces(const session *s, double *pace, size_t n)
{
    double *known = calloc(n, sizeof *known), median = NAN;
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        kofn_fleet_worker w = KOFN_FLEET_WORKER_INIT;

        pace[i] = NAN;
        if (kofn_job_describe(s->job, i, &w) || w.tasks < LEAST ||
            w.computed < LEAST_TIME || w.bytes <= 0)
            continue;
        pace[i] = w.computed / w.bytes;
        if (known)
            known[count++] = pace[i];
    }
    if (count > 0) {
        qsort(known, count, sizeof *known, ascending);
        median = known[count / 2];
    }
    free(known);
    return median;
}

/* Adds "1 was slow (u5, 4.1 times)". */
static void add_slow(text *t, const session *s, size_t workers)
{
    double *pace = calloc(workers ? workers : 1, sizeof *pace), median,
           most = 0;
    size_t count = 0, worst = 0;

    if (!pace)
        return;
    median = paces(s, pace, workers);
    for (size_t i = 0; i < workers; i++)
        if (pace[i] > SLOW * median) {
            count++;
            worst = pace[i] > most ? i : worst;
            most = fmax(most, pace[i]);
        }
    if (count > 0) {
        add(t, ", %zu %s slow (%s", count, count == 1 ? "was" : "were",
            count == 1 ? "" : "slowest: ");
        add_worker(t, s, worst);
        add(t, ", %.1f times)", most / median);
    }
    free(pace);
}

/* ---- the sentence -------------------------------------------------------- */

/* Adds ", 28 wrong results of u3 were left out". */
static void add_wrong(text *t, const session *s, const kofn_report *r)
{
    size_t named = 0, more = 0;

    if (!r->corrupt)
        return;
    add(t, ", %u wrong result%s", r->corrupt, r->corrupt == 1 ? "" : "s");
    for (size_t i = 0; i < r->workers; i++) {
        if (!r->located[i])
            continue;
        if (named == NAMED) {
            more++;
            continue;
        }
        add(t, named++ ? ", " : " of ");
        add_worker(t, s, i);
        if (r->states[i] == KOFN_WORKER_QUARANTINED)
            add(t, " (excluded)");
    }
    if (more > 0)
        add(t, " and %zu others", more);
    add(t, r->corrupt == 1 ? " was left out" : " were left out");
}

/* Adds "elastic:k=4: any 4 of 8 workers suffice". */
static void add_code(text *t, const session *s, const kofn_plan_info *info)
{
    char spec[CLI_SHORT];

    cli_short_spec(spec, info->spec);
    add(t, "%s: ", spec);
    if (info->threshold < s->args->workers)
        add(t, "any %zu of %zu workers suffice", info->threshold,
            s->args->workers);
    else
        add(t, "all %zu workers are needed", s->args->workers);
}

void cli_verdict(const session *s, const kofn_report *r,
                 const kofn_plan_info *info, char *out, size_t room)
{
    text t = {out, room};
    double took = (double)r->took * 1e-9;

    add_code(&t, s, info);
    if (r->left)
        add(&t, "; %u %s lost", r->left, r->left == 1 ? "was" : "were");
    else
        add(&t, "; none was lost");
    if (r->joined)
        add(&t, ", %u joined", r->joined);
    add_slow(&t, s, r->workers);
    add_wrong(&t, s, r);
    add(&t, "; %u round%s in %.3g s", r->rounds, r->rounds == 1 ? "" : "s",
        took);
    if (cli_transport_of(s->args->port)->simulated)
        add(&t, " (simulated)");
    if (r->left && s->calm_rounds > 0 && s->calm > 0 && r->rounds > 0) {
        double more = took / (s->calm / s->calm_rounds * (double)r->rounds) - 1;

        if (more >= 0.01)
            add(&t, ", %.0f %% more than without a loss", 100 * more);
    }
}
