/* log.c -- writes the log of --log.
 *
 * A line is written by one call, to the end of the file, so that lines of
 * threads and processes do not mix and none is lost if the process is killed.
 *
 * Owns the descriptor and what it knows of the workers. */
#define _GNU_SOURCE
#include "log.h"

#include "base/clock.h"

#include <kofn/fleet.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define LATE_LINES 8   /* workers with a line of their own */
#define LATE_AGAIN 1.0 /* seconds between two such lines of a worker */

typedef struct worker {
    kofn_worker_state state;
    bool located;
    uint64_t late; /* rounds that were late, as far as lines say */
    double told;   /* when the last such line was written */
} worker;

static struct {
    int fd; /* 0: no log */
    bool json, failed;
    cli_level most;
    worker *worker;
    size_t workers;
} book;

int cli_log_open(const cli_args *a)
{
    const char *dot = a->log ? strrchr(a->log, '.') : NULL;

    if (!a->log)
        return 0;
    book.most = (cli_level)a->log_level;
    book.json =
        dot && (!strcasecmp(dot, ".json") || !strcasecmp(dot, ".jsonl"));
    book.fd =
        !strcmp(a->log, "-")
            ? STDERR_FILENO
            : open(a->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (book.fd >= 0)
        return 0;
    book.fd = 0;
    return errno;
}

bool cli_log_is_open(void)
{
    return book.fd != 0;
}

void cli_log_close(void)
{
    if (book.fd > STDERR_FILENO)
        close(book.fd);
    free(book.worker);
    memset(&book, 0, sizeof book);
}

/* ---- lines --------------------------------------------------------------- */

static const char *const levels[] = {"error", "warning", "info", "debug"};

/* Writes the present time, in UTC, as ISO 8601 has it. */
static void now_as_text(char out[32])
{
    kofn_time now = kf_read_clock(CLOCK_REALTIME);
    time_t whole = (time_t)(now / KOFN_SECOND);
    struct tm utc;
    size_t n;

    gmtime_r(&whole, &utc);
    n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + n, 32 - n, ".%03dZ", (int)(now % KOFN_SECOND / 1000000));
}

/* Returns the line as JSON, or NULL if memory ran out. */
static char *json_line(const cli_event *e, const char *time, const char *why)
{
    json_t *o = json_object();
    char *line;

    PUT("time", json_string(time));
    PUT("level", json_string(levels[e->level]));
    PUT("event", json_string(e->what));
    if (e->worker != CLI_NO_WORKER)
        PUT_WHOLE("worker", e->worker);
    if (e->name && *e->name)
        PUT("name", json_string(e->name));
    PUT("text", json_string(why));
    line = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(o);
    return line;
}

static char *text_line(const cli_event *e, const char *time, const char *why)
{
    char of[300] = "", *line;
    bool named = e->name && *e->name;

    if (e->worker != CLI_NO_WORKER)
        snprintf(of, sizeof of, " worker %zu%s%s%s", e->worker,
                 named ? " (" : "", named ? e->name : "", named ? ")" : "");
    return asprintf(&line, "%s %-7s %s%s: %s", time, levels[e->level], e->what,
                    of, why) < 0
               ? NULL
               : line;
}

/* Writes a line and its end in one call. */
static void put(const char *line)
{
    size_t n = strlen(line);
    char *all = malloc(n + 1);
    ssize_t done = -1;

    if (all) {
        memcpy(all, line, n);
        all[n] = '\n';
        do
            done = write(book.fd, all, n + 1);
        while (done < 0 && errno == EINTR);
    }
    free(all);
    if (done == (ssize_t)n + 1 || book.failed)
        return;
    book.failed = true;
    fprintf(stderr, "kofn: --log: %s; lines are missing from here on\n",
            strerror(done < 0 ? errno : ENOSPC));
}

void cli_log(const cli_event *e, const char *fmt, ...)
{
    char time[32], why[1024], *line;
    va_list ap;

    if (!book.fd || e->level > book.most)
        return;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    cli_clean(why);
    now_as_text(time);
    line = book.json ? json_line(e, time, why) : text_line(e, time, why);
    if (line)
        put(line);
    free(line);
}

/* ---- messages of the library --------------------------------------------- */

/* Words of a message, and the event that it is about; the first row that fits
 * counts. */
static const struct {
    const char *words;
    cli_event event;
} kinds[] = {
    {"evicted", {CLI_LOG_WARNING, "evicted", CLI_NO_WORKER, NULL}},
    {"turned away", {CLI_LOG_WARNING, "refused", CLI_NO_WORKER, NULL}},
    {"sent away", {CLI_LOG_WARNING, "refused", CLI_NO_WORKER, NULL}},
    {"refused", {CLI_LOG_WARNING, "refused", CLI_NO_WORKER, NULL}},
    {"revoked", {CLI_LOG_WARNING, "revoked", CLI_NO_WORKER, NULL}},
    {"disconnected", {CLI_LOG_WARNING, "disconnected", CLI_NO_WORKER, NULL}},
    {"is gone", {CLI_LOG_WARNING, "disconnected", CLI_NO_WORKER, NULL}},
    {"ended before", {CLI_LOG_WARNING, "lost", CLI_NO_WORKER, NULL}},
    {" went: ", {CLI_LOG_INFO, "left", CLI_NO_WORKER, NULL}},
    {"leaving: ", {CLI_LOG_INFO, "drained", CLI_NO_WORKER, NULL}},
    {"block stored", {CLI_LOG_INFO, "connected", CLI_NO_WORKER, NULL}},
    {"", {CLI_LOG_INFO, "news", CLI_NO_WORKER, NULL}},
};

void cli_log_news(const char *words)
{
    size_t k = 0;
    unsigned long number;
    char name[200] = "";
    cli_event e;

    while (!strstr(words, kinds[k].words))
        k++;
    e = kinds[k].event;
    if (sscanf(words, "worker %lu (%199[^)])", &number, name) >= 1) {
        e.worker = number;
        e.name = name;
    }
    cli_log(&e, "%s", words);
}

/* ---- workers ------------------------------------------------------------- */

/* Returns what it means that a worker is in this state now. */
static void tell_state(const kofn_job *job, size_t i, kofn_worker_state was,
                       kofn_worker_state now)
{
    static const struct {
        cli_level level;
        const char *what, *why;
    } of[] = {
        [KOFN_WORKER_STANDBY] = {CLI_LOG_INFO, "waits", "no seat is free"},
        [KOFN_WORKER_STORING] = {CLI_LOG_DEBUG, "stores", "it gets its block"},
        [KOFN_WORKER_LIVE] = {CLI_LOG_DEBUG, "live", "it has its block"},
        [KOFN_WORKER_LEAVING] = {CLI_LOG_INFO, "leaves",
                                 "it has announced that it leaves"},
        [KOFN_WORKER_GONE] = {CLI_LOG_WARNING, "lost",
                              "its connection ended, or it was silent"},
        [KOFN_WORKER_QUARANTINED] = {CLI_LOG_WARNING, "faulty",
                                     "it is excluded: it was wrong too often"},
        [KOFN_WORKER_UNRESPONSIVE] = {CLI_LOG_WARNING, "evicted",
                                      "it is connected and answers nothing"},
    };
    cli_event e = {of[now].level, of[now].what, i, kofn_job_name(job, i)};
    const char *why = of[now].why;

    if (was == KOFN_WORKER_LEAVING && now == KOFN_WORKER_GONE) {
        e.level = CLI_LOG_INFO;
        e.what = "drained";
        why = "it left as announced";
    }
    cli_log(&e, "%s", why);
}

/* Makes room for the worker. Returns false without memory: the log lacks it. */
static bool know(const kofn_job *job, size_t i)
{
    worker *more;

    if (i < book.workers)
        return true;
    more = realloc(book.worker, (i + 1) * sizeof *more);
    if (!more)
        return false;
    book.worker = more;
    book.worker[book.workers++] = (worker){KOFN_WORKER_UNKNOWN, false, 0, 0};
    cli_log(&(cli_event){CLI_LOG_INFO, "came", i, kofn_job_name(job, i)},
            "it is here");
    return true;
}

void cli_log_fleet(const kofn_job *job)
{
    kofn_worker_state now;

    if (!book.fd)
        return;
    for (size_t i = 0;; i++) {
        now = kofn_job_worker(job, i);
        if (now == KOFN_WORKER_UNKNOWN || !know(job, i))
            return;
        if (now != book.worker[i].state)
            tell_state(job, i, book.worker[i].state, now);
        book.worker[i].state = now;
    }
}

/* Returns how many rounds ended without the worker since the last line about
 * that. Returns 0 within a second of that line. */
static uint64_t newly_late(const kofn_job *job, size_t i)
{
    kofn_fleet_worker w = KOFN_FLEET_WORKER_INIT;

    if (kf_clock_seconds() - book.worker[i].told < LATE_AGAIN ||
        kofn_job_describe(job, i, &w))
        return 0;
    return w.late - book.worker[i].late;
}

/* Writes that a worker was late in `rounds` rounds; with its line, `alone`. */
static void tell_late(const kofn_job *job, size_t i, uint64_t rounds,
                      bool alone)
{
    book.worker[i].late += rounds;
    book.worker[i].told = kf_clock_seconds();
    if (!alone)
        return;
    cli_log(&(cli_event){CLI_LOG_INFO, "late", i, kofn_job_name(job, i)},
            "%llu round%s ended without a result that it was asked for",
            (unsigned long long)rounds, rounds == 1 ? "" : "s");
}

/* Writes a line for each worker that is late, or one for more than a few. */
static void log_late(const kofn_job *job)
{
    size_t n = 0, used = 0;
    char which[400] = "";

    for (size_t i = 0; i < book.workers; i++)
        n += newly_late(job, i) > 0;
    for (size_t i = 0, left = n; left && i < book.workers; i++) {
        uint64_t rounds = newly_late(job, i);

        if (!rounds)
            continue;
        left--;
        tell_late(job, i, rounds, n <= LATE_LINES);
        if (used < sizeof which - 32)
            used += (size_t)snprintf(which + used, sizeof which - used, "%s%zu",
                                     used ? ", " : "", i);
        else if (left == 0)
            snprintf(which + used, sizeof which - used, " and others");
    }
    if (n > LATE_LINES)
        cli_log(&(cli_event){CLI_LOG_INFO, "late", CLI_NO_WORKER, ""},
                "rounds ended without results of %zu workers: %s", n, which);
}

void cli_log_located(const kofn_job *job, const kofn_report *rep)
{
    if (!book.fd)
        return;
    if (rep->late) {
        /* the fleet is looked at now and then, and rounds may be faster */
        if (kofn_job_worker(job, book.workers) != KOFN_WORKER_UNKNOWN)
            cli_log_fleet(job);
        log_late(job);
    }
    for (size_t i = 0; i < rep->workers && i < book.workers; i++) {
        if (rep->located[i] && !book.worker[i].located)
            cli_log(&(cli_event){CLI_LOG_WARNING, "faulty", i,
                                 kofn_job_name(job, i)},
                    "it has sent a wrong result");
        book.worker[i].located |= rep->located[i];
    }
    if (rep->late)
        cli_log(&(cli_event){CLI_LOG_DEBUG, "late", CLI_NO_WORKER, ""},
                "%u results of the round were not needed", rep->late);
}
