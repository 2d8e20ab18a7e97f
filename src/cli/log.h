/* log.h -- the log of --log: a line for each event, as text or as JSON.
 *
 * The process has one log. It may be written from any thread. */
#ifndef KOFN_LOG_H
#define KOFN_LOG_H

#include "cli.h"

typedef enum cli_level {
    CLI_LOG_ERROR,
    CLI_LOG_WARNING,
    CLI_LOG_INFO,
    CLI_LOG_DEBUG
} cli_level;

#define CLI_NO_WORKER SIZE_MAX

/* Replaces all but printable characters, so that a terminal obeys none
 * (clean.c). */
void cli_clean(char *text);

typedef struct cli_event {
    cli_level level;
    const char *what; /* one word: came, left, ... */
    size_t worker;    /* CLI_NO_WORKER: it concerns none */
    const char *name; /* of the worker's key or host; "": unknown */
} cli_event;

/* Opens the log that the options ask for. Does nothing without --log; so do
 * the functions below. Returns 0, or an errno. */
int cli_log_open(const cli_args *a);
bool cli_log_is_open(void);
/* Writes a line with the reason, unless its level is not asked for. The first
 * failure to write is reported; the job goes on. */
void cli_log(const cli_event *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes a message of the library about a worker or a connection. */
void cli_log_news(const char *words);
/* Writes what has changed among the workers of a job since the last call. */
void cli_log_fleet(const kofn_job *job);
/* Writes which workers were late, and which were located by a report. */
void cli_log_located(const kofn_job *job, const kofn_report *rep);
void cli_log_close(void);

#endif
