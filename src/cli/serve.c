/* serve.c -- the life of a worker, however it was started.
 *
 * Owns the operand while a block is made of it. A worker prints what concerns
 * it alone; the coordinator takes every decision. */
#include "cli.h"
#include "leave.h"
#include "log.h"
#include "metrics.h"

#include <malloc.h>
#include <signal.h>
#include <string.h>

#define PATIENCE (3600 * KOFN_SECOND) /* of a worker that stays */

typedef struct life {
    const cli_args *args;
    const kofn_transport *net; /* NULL: another kind of transport */
    kofn_file *file;           /* the operand, while a block is made of it */
    char trouble[256];         /* the last trouble that was reported */
    cli_leaving leaving;
    kofn_serve_counts counts;
} life;

/* Reports why the coordinator cannot be reached, once per reason. */
static void tell_trouble(life *l)
{
    const char *now = kofn_net_trouble(l->net);

    if (!strcmp(now, l->trouble))
        return;
    snprintf(l->trouble, sizeof l->trouble, "%s", now);
    if (*now)
        cli_log(
            &(cli_event){CLI_LOG_WARNING, "disconnected", CLI_NO_WORKER, ""},
            "%s", now);
    if (*now && !l->args->quiet)
        cli_tell("%s; retrying", now);
}

/* True from the first reason to leave on, which is reported once. */
static bool is_preempted(life *l)
{
    bool was = l->leaving.why;
    const char *why = cli_leaving_why(&l->leaving);

    if (why && !was)
        cli_log(&(cli_event){CLI_LOG_INFO, "drained", CLI_NO_WORKER, ""},
                "leaving: %s", why);
    if (why && !was && !l->args->quiet)
        cli_tell("leaving: %s", why);
    return why;
}

/* Asks to leave at the first signal, or if --preempt-file or --preempt-command
 * say so; unfinished work may take up to --grace. The second signal ends the
 * process. */
static kofn_leave watch(void *ud, const char *news)
{
    life *l = ud;

    if (l->net)
        tell_trouble(l);
    cli_metrics_of_worker(&l->counts);
    if (news)
        cli_log_news(news);
    if (news && !l->args->quiet)
        cli_tell("%s", news);
    return cli_caught() || is_preempted(l) ? KOFN_LEAVE_SOON : KOFN_STAY;
}

/* Opens the operand in the worker's folder, whatever its folder at the
 * coordinator is. */
static kofn_status operand(void *ud, const char *name, const kofn_matrix **A,
                           const kofn_sparse **S)
{
    life *l = ud;
    char path[4096];
    kofn_status st;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", l->args->data_path,
                         name) >= sizeof path)
        return KOFN_UNSUITED;
    st = kofn_file_open(&l->file, path, KOFN_FILE_READ | KOFN_FILE_COMPLEX);
    if (st)
        return st;
    *A = l->file->matrix.dense;
    *S = l->file->matrix.sparse;
    return KOFN_OK;
}

static void operand_done(void *ud)
{
    life *l = ud;

    kofn_file_free(l->file);
    l->file = NULL;
}

/* Lets malloc keep up to 64 MiB of freed memory. Otherwise each round returns
 * its vectors to the system and faults them in again. The values are the
 * largest that glibc would choose itself. */
static void keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

int cli_serve(const cli_args *a, struct kofn_transport *t, bool net)
{
    life l = {
        .args = a,
        .net = net ? t : NULL,
        .counts = KOFN_SERVE_COUNTS_INIT,
        .leaving = {.file = a->preempt_file, .command = a->preempt_command}};
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_status st;

    o.memory = a->memory;
    o.patience = a->job.patience;
    o.stay = net && !a->once;
    o.name = a->name;
    if (o.stay && !o.patience)
        o.patience = PATIENCE;
    o.grace = (kofn_time)(a->grace * 1e9);
    o.faults = &a->faults;
    o.watch = watch;
    o.counts = &l.counts;
    o.ud = &l;
    o.staged = a->staged;
    if (a->data_path) {
        o.operand = operand;
        o.operand_done = operand_done;
    }
    keep_memory();
    cli_guard(true);
    st = kofn_serve(t, &o);
    cli_guard(false);
    cli_leaving_end(&l.leaving);
    if (cli_caught())
        return 128 + cli_caught();
    if (st == KOFN_AGAIN && l.leaving.why) /* as after a signal */
        return 128 + SIGTERM;
    if (st == KOFN_LATE && *l.trouble)
        return cli_say(EXIT_TOOFEW, "%s (%s)", kofn_errmsg(), l.trouble);
    return st == KOFN_AGAIN ? EXIT_EXACT : st ? cli_fail(st) : EXIT_EXACT;
}
