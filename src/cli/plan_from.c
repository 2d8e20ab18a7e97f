/* plan_from.c -- kofn plan --journal and --fleet: workers as they were in a
 * run, or as they are now.
 *
 * Owns the pattern that it makes of a fleet, until the process ends. */
#define _GNU_SOURCE
#include "plan_from.h"

#include "replay.h"

#include <kofn/fleet.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a run --------------------------------------------------------------- */

/* Returns the largest finite factor of a round; 1 if there is none. */
static double slowest(const kofn_matrix *m, size_t row)
{
    const double *x = (const double *)m->data + row * m->ld;
    double most = 1;

    for (size_t j = 0; j < m->cols; j++)
        most = isfinite(x[j]) ? fmax(most, x[j]) : most;
    return most;
}

/* A record has infinity for a worker that others overtook. It was at least as
 * slow as the slowest that was in time. Lost workers never answer again. */
static void keep_lost(const kofn_matrix *m, const plan_run *run)
{
    double *x = m->data;

    for (size_t i = 0; i < m->rows; i++) {
        double most = slowest(m, i);

        for (size_t j = 0; j < m->cols; j++)
            if (!isfinite(x[i * m->ld + j]))
                x[i * m->ld + j] = most;
    }
    for (size_t k = 0; k < run->losts; k++)
        for (size_t i = run->lost[k].rounds;
             i < m->rows && run->lost[k].worker < m->cols; i++)
            x[i * m->ld + run->lost[k].worker] = INFINITY;
}

static size_t number_at(const char *at, const char *end)
{
    size_t n = 0;

    for (; at < end && *at >= '0' && *at <= '9' && n < 1000000; at++)
        n = 10 * n + (size_t)(*at - '0');
    return n;
}

static bool is_event(const char *line, const char *end, const char *event)
{
    char words[40];

    snprintf(words, sizeof words, "\"ev\":\"%s\"", event);
    return memmem(line, (size_t)(end - line), words, strlen(words)) != NULL;
}

/* Finds the workers that left, in the lines of the journal. */
static void find_lost(const char *text, size_t n, plan_run *run)
{
    static const char who[] = "\"w\":";
    const size_t most = sizeof run->lost / sizeof *run->lost;
    const char *end = text + n, *next, *at;
    size_t rounds = 0;

    for (const char *line = text; line < end && run->losts < most;
         line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next : end;
        rounds += is_event(line, next, "begin");
        if (!is_event(line, next, "left") &&
            !is_event(line, next, "unresponsive"))
            continue;
        at = memmem(line, (size_t)(next - line), who, strlen(who));
        if (!at)
            continue;
        run->lost[run->losts].worker = number_at(at + strlen(who), next);
        run->lost[run->losts++].rounds = rounds;
    }
}

/* Replays the journal, and keeps the slowness of its workers in a file. */
static int record(const char *journal, const char *to, plan_run *run)
{
    replay_show show = {.record = to};
    replay_result r = {0};
    size_t n = 0;
    char *text = NULL;
    int code;

    TRY_CODE(cli_read_text(journal, &text, &n));
    code = replay(text, n, journal, &show, &r);
    find_lost(text, n, run);
    free(text);
    if (code)
        return cli_say(EXIT_USAGE, "%s", r.error);
    run->workers = r.workers;
    run->rounds = r.rounds;
    snprintf(run->scheme, sizeof run->scheme, "%s", r.scheme);
    return 0;
}

int plan_from_journal(cli_args *a, plan_run *run)
{
    char path[] = "/tmp/kofn-record-XXXXXX.csv";
    int file = mkstemps(path, 4), code;

    if (file < 0)
        return cli_say(EXIT_FAILED, "no temporary file: %s", strerror(errno));
    close(file);
    code = record(a->from_journal, path, run);
    if (!code) {
        a->workers = a->workers_given ? a->workers : run->workers;
        a->rounds = a->rounds > 1 ? a->rounds : run->rounds;
        a->pattern_text = path;
        code = cli_make_pattern(a);
        a->pattern_text = NULL;
        if (!code)
            keep_lost(&a->pattern, run);
    }
    unlink(path);
    return code;
}

/* ---- a fleet ------------------------------------------------------------- */

typedef struct fleet {
    double *slow;
    size_t count, memory, unknown;
    bool short_of_memory;
} fleet;

static void add(void *ud, const kofn_fleet_worker *w)
{
    fleet *f = ud;
    double *more = realloc(f->slow, (f->count + 1) * sizeof *more);

    if (!more) {
        f->short_of_memory = true;
        return;
    }
    f->slow = more;
    f->slow[f->count++] = w->slow > 1 ? w->slow : 1;
    f->unknown += w->slow == 0;
    if (w->memory && (!f->memory || w->memory < f->memory))
        f->memory = w->memory;
}

int plan_from_fleet(cli_args *a)
{
    static kofn_matrix slow; /* one round, which repeats */
    fleet f = {.slow = NULL};
    int code = cli_ask(a, a->fleet, NULL, &(cli_asked){NULL, add, &f});

    if (!code && f.short_of_memory)
        code = cli_say(EXIT_FAILED, "out of memory");
    if (!code && f.count == 0)
        code = cli_say(EXIT_TOOFEW, "%s has no worker", a->fleet);
    if (code) {
        free(f.slow);
        return code;
    }
    a->workers = a->workers_given ? a->workers : f.count;
    a->memory = a->memory ? a->memory : f.memory;
    slow = (kofn_matrix){f.slow, 1, f.count, f.count, KOFN_F64};
    a->faults.pattern = &slow;
    if (f.unknown)
        cli_say(0,
                "%zu of %zu workers have not computed enough to know how slow "
                "they are; they count as fast",
                f.unknown, f.count);
    return 0;
}

/* ---- what the run's code cost -------------------------------------------- */

void plan_run_text(const plan_run *run, const kofn_forecast *was,
                   const kofn_forecast *uncoded, const kofn_forecast *best,
                   char *out, size_t room)
{
    char spec[CLI_SHORT], other[CLI_SHORT];
    double less = 1 - was->round50 / uncoded->round50;
    size_t n;

    cli_short_spec(spec, run->scheme);
    if (was->status) {
        snprintf(out, room, "with these workers, %s of the run fails: %s", spec,
                 kofn_strerror(was->status));
        return;
    }
    if (uncoded->status) {
        snprintf(out, room,
                 "with these workers, a run without a code fails: %s; %s "
                 "does not",
                 kofn_strerror(uncoded->status), spec);
        return;
    }
    snprintf(out, room,
             "with these workers, %s of the run computes %.2g times as much as "
             "without a code, and a round takes %.0f %% %s",
             spec, was->work / uncoded->work, 100 * fabs(less),
             less >= 0 ? "less time" : "more time");
    n = strlen(out);
    if (best && !best->status && best->total < 0.97 * was->total) {
        cli_short_spec(other, best->spec);
        snprintf(out + n, room - n, "; %s takes %.0f %% less in all", other,
                 100 * (1 - best->total / was->total));
    }
}
