/* plan_from.c -- kofn plan --journal and --fleet: workers as they were in a
 * run, or as they are now.
 *
 * Owns the pattern that it makes of a fleet, until the process ends. */
#define _GNU_SOURCE
#include "plan_from.h"

#include "replay.h"

#include "base/spec.h"

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
static void keep_lost(const kofn_matrix *m, const replay_result *run)
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

/* Replays the journal, and writes the slowness of its workers to a file. */
static int record(const char *journal, const char *to, replay_result *r)
{
    replay_show show = {.record = to};
    size_t n = 0;
    char *text = NULL;
    int code;

    TRY_CODE(cli_read_text(journal, &text, &n));
    code = replay(text, n, journal, &show, r);
    free(text);
    return code ? cli_say(EXIT_USAGE, "%s", r->error) : 0;
}

/* Reads that file as a pattern. */
static int read_record(cli_args *a, const char *path, const replay_result *r)
{
    a->workers = a->workers_given ? a->workers : r->workers;
    a->rounds = a->rounds > 1 ? a->rounds : r->rounds;
    a->pattern_text = path;
    TRY_CODE(cli_make_pattern(a));
    keep_lost(&a->pattern, r);
    return 0;
}

int plan_from_journal(cli_args *a, char scheme[CLI_SPEC])
{
    char path[] = "/tmp/kofn-record-XXXXXX.csv";
    replay_result r = {0};
    int file = mkstemps(path, 4), code;

    if (file < 0)
        return cli_say(EXIT_FAILED, "no temporary file: %s", strerror(errno));
    close(file);
    code = record(a->from_journal, path, &r);
    if (!code)
        code = read_record(a, path, &r);
    a->pattern_text = NULL;
    snprintf(scheme, CLI_SPEC, "%s", r.scheme);
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

void plan_run_text(const char *scheme, const kofn_forecast *was,
                   const kofn_forecast *uncoded, const kofn_forecast *best,
                   char *out, size_t room)
{
    char spec[KF_SPEC_SHORT], other[KF_SPEC_SHORT];
    double less;
    size_t n;

    kf_spec_short(spec, scheme);
    if (!was->size || !uncoded->size) {
        snprintf(out, room, "there is no forecast for %s of the run", spec);
        return;
    }
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
    less = 1 - was->round50 / uncoded->round50;
    snprintf(out, room,
             "with these workers, %s of the run computes %.2g times as much as "
             "without a code, and a round takes %.0f %% %s",
             spec, was->work / uncoded->work, 100 * fabs(less),
             less >= 0 ? "less time" : "more time");
    n = strlen(out);
    if (best && !best->status && best->total < 0.97 * was->total) {
        kf_spec_short(other, best->spec);
        snprintf(out + n, room - n, "; %s takes %.0f %% less in all", other,
                 100 * (1 - best->total / was->total));
    }
}
