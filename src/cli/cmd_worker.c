/* cmd_worker.c -- kofn worker and kofn keygen; and the ranks of an MPI job
 * that are workers.
 *
 * Owns the transport of the worker while it serves.  A worker prints what
 * concerns it alone and leaves every decision to the coordinator. */
#include "cli.h"

#include <kofn/mpi.h>
#include <kofn/net.h>
#include <kofn/transport.h>

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct life {
    const cli_args *args;
    const kofn_transport *net; /* NULL: another */
    kofn_file *file;           /* the operand, while a block is made of it */
    char trouble[256];         /* the last, that has been told */
} life;

/* Why nobody is reached: once, until something else is in the way. */
static void tell_trouble(life *l)
{
    const char *now = kofn_net_trouble(l->net);

    if (!strcmp(now, l->trouble))
        return;
    snprintf(l->trouble, sizeof l->trouble, "%s", now);
    if (*now && !l->args->quiet)
        fprintf(stderr, "%s; trying again\n", now);
}

/* The first signal asks to leave, and work in hand is finished as far as
 * --grace allows; the second ends the process. */
static kofn_leave watch(void *ud, const char *news)
{
    life *l = ud;

    if (l->net)
        tell_trouble(l);
    if (news && !l->args->quiet)
        fprintf(stderr, "%s\n", news);
    return cli_caught() ? KOFN_LEAVE_SOON : KOFN_STAY;
}

/* In the folder, wherever the coordinator has the file. */
static kofn_status operand(void *ud, const char *name, const kofn_matrix **A,
                           const kofn_sparse **S)
{
    life *l = ud;
    char path[4096];
    kofn_status st;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", l->args->data_path,
                         name) >= sizeof path)
        return KOFN_UNSUITED;
    st = kofn_file_open(&l->file, path, KOFN_FILE_READ);
    if (st)
        return st;
    *A = kofn_file_dense(l->file);
    *S = kofn_file_sparse(l->file);
    return KOFN_OK;
}

static void operand_done(void *ud)
{
    life *l = ud;

    kofn_file_free(l->file);
    l->file = NULL;
}

static int serve(const cli_args *a, kofn_transport *t, bool net)
{
    life l = {.args = a, .net = net ? t : NULL};
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_status st;

    o.memory = a->memory;
    o.patience = a->job.patience;
    o.grace = (kofn_time)(a->grace * 1e9);
    o.faults = &a->faults;
    o.watch = watch;
    o.ud = &l;
    o.staged = a->staged;
    if (a->data_path) {
        o.operand = operand;
        o.operand_done = operand_done;
    }
    cli_guard(true);
    st = kofn_serve(t, &o);
    cli_guard(false);
    if (cli_caught())
        return 128 + cli_caught();
    if (st == KOFN_LATE && *l.trouble)
        return cli_say(EXIT_TOOFEW, "%s (%s)", kofn_errmsg(), l.trouble);
    return st == KOFN_AGAIN ? EXIT_EXACT : st ? cli_fail(st) : EXIT_EXACT;
}

/* A name that nobody knows may be known later, when its machine is up; but who
 * mistyped it should be told. */
static void tell_unknown_host(const char *address)
{
    const char *host = address + strlen("tcp://");
    size_t n = strcspn(host, ":");
    struct addrinfo *found = NULL;
    char name[256];
    int why;

    if (strncmp(address, "tcp://", 6) != 0 || *host == '[' || n >= sizeof name)
        return;
    memcpy(name, host, n);
    name[n] = 0;
    why = getaddrinfo(name, NULL, NULL, &found);
    if (why)
        fprintf(stderr, "%s: %s; trying again\n", name, gai_strerror(why));
    else
        freeaddrinfo(found);
}

/* 0, or the exit code after a message. */
static int check_folder(const char *path)
{
    struct stat st;
    int why = stat(path, &st)             ? errno
              : !S_ISDIR(st.st_mode)      ? ENOTDIR
              : access(path, R_OK | X_OK) ? errno
                                          : 0;

    return why ? cli_say(EXIT_USAGE,
                         "--data-path %s: %s; give the folder that "
                         "has the coordinator's input files, or leave it out",
                         path, strerror(why))
               : 0;
}

/* The part of NAME@ADDRESS behind the name of the expected certificate. */
static const char *without_name(const char *address)
{
    const char *at = strchr(address, '@'), *scheme = strstr(address, "://");

    return at && scheme && at < scheme ? at + 1 : address;
}

int cmd_worker(cli_args *a)
{
    const char *address = without_name(a->operand[0]);
    kofn_net_options z = {.size = sizeof z, .body_max = (size_t)1 << 40};
    const cli_transport *to = cli_transport_of(address);
    kofn_transport *t;
    kofn_status st;

    if (!to || !to->address)
        return cli_say(EXIT_USAGE,
                       "%s is no address; give tcp://HOST:PORT or "
                       "ipc://PATH, as the coordinator says at its start",
                       a->operand[0]);
    z.silence = a->staged ? 10 * KOFN_SECOND /* tests run on loaded machines */
                          : to->silence;
    cli_net_keys(a, &z);
    if (a->data_path && check_folder(a->data_path))
        return EXIT_USAGE;
    st = kofn_net_connect(&t, a->operand[0], &z);
    if (st) /* all that is read are keys */
        return st == KOFN_IO ? cli_fail_input(st) : cli_fail(st);
    cli_tell_blas(a);
    if (!a->quiet)
        tell_unknown_host(address);
    return serve(a, t, true);
}

int cmd_keygen(cli_args *a)
{
    kofn_status st;

    if (!*a->operand[0])
        return cli_say(EXIT_USAGE, "keygen \"\": give a folder");
    st = kofn_net_keygen(a->operand[0], a->worker);
    if (st)
        return cli_fail(st);
    if (!a->quiet && a->worker)
        fprintf(stderr,
                "%s/%s.crt lists it; take it away to revoke it\n"
                "worker: move the folder %s/%s there, and\n"
                "        kofn worker tcp://HOST:5555 --keys %s\n",
                a->operand[0], a->worker, a->operand[0], a->worker, a->worker);
    else if (!a->quiet)
        fprintf(
            stderr,
            "%s: keys of the coordinator and of its workers\n"
            "coordinator: kofn COMMAND ... --port tcp://0.0.0.0:5555 --keys %s\n"
            "workers: copy worker.key, worker.crt and coordinator.crt to a "
            "folder there, and\n"
            "         kofn worker tcp://HOST:5555 --keys FOLDER\n",
            a->operand[0], a->operand[0]);
    return EXIT_EXACT;
}

int cli_mpi_start(cli_args *a, bool *is_worker)
{
    kofn_mpi_options o = KOFN_MPI_OPTIONS_INIT;
    kofn_mpi_info info;
    kofn_transport *t;
    kofn_status st = kofn_mpi_open(&t, &o, &info);

    *is_worker = false;
    if (st)
        return cli_fail(st);
    if (a->workers_given && a->workers >= info.ranks) { /* every rank knows */
        t->close(t, 0);
        return info.rank ? EXIT_USAGE
                         : cli_say(EXIT_USAGE,
                                   "--workers %zu, and beside this "
                                   "one the job has %u ranks: start it with "
                                   "%zu (mpirun -n %zu)",
                                   a->workers, info.ranks - 1, a->workers + 1,
                                   a->workers + 1);
    }
    if (info.rank > 0) {
        *is_worker = true;
        return serve(a, t, false);
    }
    if (!a->quiet)
        fprintf(stderr, "%s, %u ranks: %s\n", info.library, info.ranks,
                info.survival);
    a->mpi = t;
    if (!a->workers_given)
        a->workers = info.ranks - 1;
    return 0;
}
