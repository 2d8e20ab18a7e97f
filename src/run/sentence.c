/* sentence.c -- says in one sentence how a run went.  The command, the report
 * and the journal have the same one.
 *
 * Owns nothing.  Slow workers are found by the time for each byte or strip of
 * results, since shares of work may differ. */
#include "sentence.h"
#include "job.h"

#include "base/number.h"
#include "base/spec.h"
#include "code/operation.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

/* A worker counts as slow from this multiple of the median on, if it and most
 * others have sent that number of results. */
#define SLOW 1.5
#define LEAST 8
#define LEAST_TIME 2e-3 /* seconds that they take in all */
#define NAMED 3         /* workers that are named; others are counted */

typedef struct words {
    char *at;
    size_t room;
} words;

__attribute__((format(printf, 2, 3))) static void add(words *t, const char *fmt,
                                                      ...)
{
    va_list more;
    int n;

    va_start(more, fmt);
    n = kf_vformat(t->at, t->room, fmt, more);
    va_end(more);
    if (n < 0)
        return;
    n = (size_t)n < t->room ? n : (int)t->room - 1;
    t->at += n;
    t->room -= (size_t)n;
}

static void add_worker(words *t, const kf_sentence *s, size_t worker)
{
    const char *name = s->name(s->ud, worker);

    if (name && *name)
        add(t, "%.64s", name);
    else
        add(t, "worker %zu", worker);
}

/* Adds the workers for which `is` holds, after `before`; returns their
 * number. */
static size_t add_list(words *t, const kf_sentence *s, const char *before,
                       bool (*is)(const kf_sentence_worker *w), bool mark)
{
    size_t n = 0;

    for (size_t i = 0; i < s->workers; i++) {
        if (!is(&s->worker[i]) || ++n > NAMED)
            continue;
        add(t, "%s", n == 1 ? before : ", ");
        add_worker(t, s, i);
        if (mark && s->worker[i].excluded)
            add(t, " (excluded)");
    }
    if (n > NAMED)
        add(t, " and %zu other%s", n - NAMED, n == NAMED + 1 ? "" : "s");
    return n;
}

static bool is_lost(const kf_sentence_worker *w)
{
    return w->lost;
}

static bool is_located(const kf_sentence_worker *w)
{
    return w->located;
}

static const char *was(size_t n)
{
    return n == 1 ? "was" : "were";
}

/* ---- slow workers -------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the seconds of a worker for one unit of results; NAN if it has sent
 * too few. */
static double pace_of(const kf_sentence_worker *w)
{
    return w->results < LEAST || w->seconds < LEAST_TIME || w->size <= 0
               ? NAN
               : w->seconds / w->size;
}

/* Returns the median of the paces that are known; NAN if none is. */
static double median_pace(const kf_sentence *s)
{
    double *known = kf_new(kf_max(1, s->workers), sizeof *known), median = NAN;
    size_t count = 0;

    for (size_t i = 0; known && i < s->workers; i++)
        if (pace_of(&s->worker[i]) > 0)
            known[count++] = pace_of(&s->worker[i]);
    if (count > 0) {
        qsort(known, count, sizeof *known, ascending);
        median = known[count / 2];
    }
    kf_free(known);
    return median;
}

/* Adds ", 1 was slow (worker 5, 4.1 times)". */
static void add_slow(words *t, const kf_sentence *s)
{
    double median = median_pace(s), most = 0;
    size_t count = 0, worst = 0;

    for (size_t i = 0; i < s->workers; i++) {
        double pace = pace_of(&s->worker[i]);

        if (!(pace > SLOW * median))
            continue;
        count++;
        worst = pace > most ? i : worst;
        most = fmax(most, pace);
    }
    if (!count)
        return;
    add(t, ", %zu %s slow (%s", count, was(count),
        count == 1 ? "" : "slowest: ");
    add_worker(t, s, worst);
    add(t, ", %.1f times)", most / median);
}

/* ---- the sentence -------------------------------------------------------- */

/* Adds "elastic:k=4: any 4 of 8 workers suffice". */
static void add_code(words *t, const kf_sentence *s)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    char spec[KF_SPEC_SHORT];

    if (kofn_plan_describe(s->plan, false, &info))
        return;
    kf_spec_short(spec, info.spec);
    add(t, "%s: ", spec);
    if (info.threshold < info.workers)
        add(t, "any %zu of %zu workers suffice", info.threshold, info.workers);
    else
        add(t, "all %zu workers are needed", info.workers);
}

/* Adds "; 1 was lost (worker 2), 1 joined". */
static void add_fleet(words *t, const kf_sentence *s)
{
    if (!s->left)
        add(t, "; none was lost");
    else
        add(t, "; %u %s lost", s->left, was(s->left));
    if (s->left && add_list(t, s, " (", is_lost, false) > 0)
        add(t, ")");
    if (s->joined)
        add(t, ", %u joined", s->joined);
}

/* Adds ", 28 wrong results of worker 3 (excluded) were left out". */
static void add_wrong(words *t, const kf_sentence *s)
{
    if (!s->wrong)
        return;
    add(t, ", %u wrong result%s", s->wrong, s->wrong == 1 ? "" : "s");
    add_list(t, s, " of ", is_located, true);
    add(t, " %s left out", was(s->wrong));
}

/* Adds "; 12 rounds in 0.5 s (simulated), 8 % more than without a loss". */
static void add_time(words *t, const kf_sentence *s, const char *round)
{
    add(t, "; %u %s%s in %.3g s", s->rounds, round, s->rounds == 1 ? "" : "s",
        s->took);
    if (s->simulated)
        add(t, " (simulated)");
    if (s->left && s->calm_rounds > 0 && s->calm > 0 && s->rounds > 0) {
        double plain = s->calm / s->calm_rounds * s->rounds;

        if (s->took / plain >= 1.01)
            add(t, ", %.0f %% more than without a loss",
                100 * (s->took / plain - 1));
    }
}

void kf_sentence_write(const kf_sentence *s, char *out, size_t room)
{
    const char *round = s->plan->op->stream ? "product" : "round";
    words t = {out, room};

    *out = 0;
    add_code(&t, s);
    add_fleet(&t, s);
    add_slow(&t, s);
    add_wrong(&t, s);
    if (s->failed)
        add(&t, ", %s %u failed", round, s->failed_at);
    else if (s->cut)
        add(&t, ", the run ended during %s %u", round, s->at);
    add_time(&t, s, round);
}

/* ---- of a job ------------------------------------------------------------ */

static const char *name_in_job(const void *ud, size_t worker)
{
    return kofn_job_name(ud, worker);
}

static kofn_status look(const kofn_job *j, const kofn_report *r, kf_sentence *s)
{
    TRY_ZERO(s->worker, kf_max(1, r->workers));
    s->workers = r->workers;
    for (size_t i = 0; i < r->workers; i++) {
        kf_sentence_worker *w = &s->worker[i];

        w->lost = r->states[i] == KOFN_WORKER_GONE ||
                  r->states[i] == KOFN_WORKER_UNRESPONSIVE;
        w->excluded = r->states[i] == KOFN_WORKER_QUARANTINED;
        w->located = r->located[i] > 0;
        if (i >= j->label.workers)
            continue;
        w->results = j->label.done[i].results;
        w->seconds = j->label.done[i].seconds;
        w->size = j->label.done[i].bytes;
    }
    for (size_t i = 0; i < j->open.count && !s->cut; i++)
        if (kf_job_is_running(j->open.list[i])) {
            s->cut = true;
            s->at = j->open.list[i]->number;
        }
    return KOFN_OK;
}

kofn_status kofn_job_verdict(const kofn_job *j, char *out, size_t room)
{
    kofn_report r = KOFN_REPORT_INIT;
    kf_sentence s = {.plan = j->plan, .name = name_in_job, .ud = j};

    if (!out || !room)
        return kf_fail(KOFN_INVAL, "the sentence has no room");
    TRY(kofn_job_totals(j, &r));
    TRY(look(j, &r, &s));
    s.simulated = !strcmp(j->port->name, "sim");
    s.rounds = r.rounds;
    s.left = r.left;
    s.joined = r.joined;
    s.wrong = r.corrupt;
    s.took = (double)r.took * 1e-9;
    s.calm = (double)j->reported.calm * 1e-9;
    s.calm_rounds = j->reported.calm_rounds;
    s.failed = j->reported.failed;
    s.failed_at = j->reported.failed_at;
    kf_sentence_write(&s, out, room);
    kf_free(s.worker);
    return KOFN_OK;
}
