/* ports.c -- --port: threads, the simulator, processes of this machine, or
 * remote workers that connect to an address.
 *
 * Owns the processes it started, which cli_ports_end waits for or ends, and
 * the folder of their socket. No other file may start a process. */
#define _GNU_SOURCE
#include "cli.h"
#include "log.h"

#include <kofn/mpi.h>
#include <kofn/transport.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAND_BY 4 /* extra connections per key, beyond its seats */
#define STRANGERS                                                              \
    1024 /* connections before authentication, besides those of workers */

/* ---- processes of this machine ------------------------------------------- */

/* Worker processes that this process started, with a socket in their own
 * folder. */
typedef struct family {
    cli_folder folder;
    char address[96];
    const cli_args *args;
    pid_t parent; /* this process */
    pid_t *child;
    size_t children, ended;
} family;

static family kin;

/* Turns the child into a worker. It waits for the coordinator without limit: a
 * loaded machine may serve it late. It ends when the coordinator ends. */
static void become_worker(const family *f)
{
    sigset_t terminal;
    char seed[32], pattern[80];
    const char *argv[16] = {"kofn",   "worker", f->address, "--staged",
                            "--once", "-q",     "--seed",   seed};
    size_t n = 8;

    snprintf(seed, sizeof seed, "%llu", (unsigned long long)f->args->seed);
    snprintf(pattern, sizeof pattern, "%s/pattern.npy", f->folder.path);
    if (*f->args->faults_given) {
        argv[n++] = "--faults";
        argv[n++] = f->args->faults_given;
    }
    if (f->args->pattern_text) {
        argv[n++] = "--pattern";
        argv[n++] = pattern;
    }
    /* one process per core */
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("BLIS_NUM_THREADS", "1", 1);
    setenv("MKL_NUM_THREADS", "1", 1);
    /* A terminal sends Ctrl-C to all of them. If workers left first, this
     * process would report lost workers. */
    sigemptyset(&terminal);
    sigaddset(&terminal, SIGINT);
    sigprocmask(SIG_BLOCK, &terminal, NULL); /* stays blocked after exec */
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a worker ends with its parent, ... */
    if (getppid() != f->parent)       /* ... which may have ended already */
        _exit(127);
    cli_again((char **)(uintptr_t)argv);
    fprintf(stderr, "kofn: cannot be started again as a worker: %s%s\n",
            strerror(errno), errno == ENOENT ? "; is /proc mounted?" : "");
    _exit(127);
}

static int start_child(void *ud)
{
    family *f = ud;
    pid_t *now = realloc(f->child, (f->children + 1) * sizeof *now), pid;

    if (!now)
        return -1;
    f->child = now;
    pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0)
        become_worker(f);
    f->child[f->children++] = pid;
    return 0;
}

static int kill_child(void *ud, uint64_t process)
{
    const family *f = ud;

    for (size_t i = 0; i < f->children; i++)
        if ((uint64_t)f->child[i] == process)
            return kill(f->child[i], SIGKILL);
    return -1; /* not one of these processes */
}

static size_t ended_children(void *ud)
{
    family *f = ud;
    size_t left = 0;

    for (size_t i = 0; i < f->children; i++)
        if (waitpid(f->child[i], NULL, WNOHANG) == 0)
            f->child[left++] = f->child[i];
    f->ended += f->children - left;
    f->children = left;
    return f->ended;
}

/* Kills stopped processes: they cannot read their dismissal. */
static void kill_stopped(const family *f)
{
    siginfo_t what;

    for (size_t i = 0; i < f->children; i++) {
        what.si_pid = 0;
        if (waitid(P_PID, (id_t)f->child[i], &what, WSTOPPED | WNOHANG) == 0 &&
            what.si_pid)
            kill(f->child[i], SIGKILL);
    }
}

/* Waits for the workers. Dismissed ones end within a second or so. */
void cli_ports_end(void)
{
    for (int i = 0; i < 200 && kin.children; i++) {
        kill_stopped(&kin);
        ended_children(&kin);
        if (kin.children)
            usleep(10000);
    }
    for (size_t k = 0; k < kin.children; k++) {
        kill(kin.child[k], SIGKILL);
        waitpid(kin.child[k], NULL, 0);
    }
    free(kin.child);
    cli_folder_remove(&kin.folder);
    kin = (family){.child = NULL};
}

/* ---- opening ------------------------------------------------------------- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the size of the longest result that may come: a whole output and its
 * padding. Products of a stream may be larger than the first. */
static size_t longest_body(const cli_args *a, const kofn_problem *pb)
{
    double numbers = (double)larger(pb->m, pb->n) * (double)pb->p;
    size_t least = (size_t)(a->command->bit == IN_STREAM ? 256 : 8) << 20;

    return numbers > 1e15
               ? (size_t)1 << 53
               : larger((size_t)(9 * numbers) + ((size_t)1 << 16), least);
}

/* Returns the name of A on the workers' own disks, which is its name here. */
static const char *source(const cli_args *a)
{
    bool as_it_is = a->command->bit & (IN_PRODUCT | IN_POWER | IN_REGRESS) &&
                    !a->kernel && !a->regress.intercept && !a->standardise;

    return as_it_is ? basename(a->operand[0]) : NULL;
}

/* Returns the workers required before the first round. */
static size_t needed(const cli_args *a)
{
    return a->least ? a->least : a->workers;
}

/* True if all workers come from this machine and from one user. */
static bool is_of_one_host(const char *endpoint)
{
    static const char *const local[] = {"ipc://", "tcp://127.", "tcp://[::1]:"};

    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if (strncmp(endpoint, local[i], strlen(local[i])) == 0)
            return true;
    return false;
}

/* Checks that this number of workers can connect, given the seats per
 * principal. Without keys, all workers at an address of this machine are one
 * principal. A CA may have issued any number of certificates. */
static int check_seats(const cli_args *a, const kofn_transport *t)
{
    size_t keys = kofn_net_listed(t), seats = a->job.workers_per_principal;

    if (a->tls_ca || (a->insecure && !is_of_one_host(kofn_net_endpoint(t))) ||
        (keys ? keys : 1) * seats >= needed(a))
        return 0;
    if (keys)
        return cli_say(
            EXIT_USAGE,
            "%zu workers need seats, but the %zu key%s listed may take %zu "
            "each, since the owner of a key could be all of its workers; make "
            "one key per worker (kofn keygen %s --worker NAME), or see "
            "--workers-per-principal",
            needed(a), keys, keys == 1 ? "" : "s", seats, a->keys);
    return cli_say(
        EXIT_USAGE,
        "without keys all workers at %s count as one, with %zu of %zu seats. "
        "--errors needs keys: kofn keygen DIR --worker NAME. Or use --port "
        "processes, or see --workers-per-principal",
        a->port, seats, needed(a));
}

kofn_net_options cli_net_options(const cli_args *a, size_t body_max)
{
    return (kofn_net_options){.size = sizeof(kofn_net_options),
                              .body_max = body_max,
                              .keys = a->keys,
                              .tls_ca = a->tls_ca,
                              .tls_cert = a->tls_cert,
                              .tls_key = a->tls_key,
                              .insecure = a->insecure};
}

static int listen_at(const cli_args *a, const char *address,
                     const kofn_problem *pb, kofn_transport **t)
{
    kofn_net_options z = cli_net_options(a, longest_body(a, pb));
    kofn_status st;

    z.silence = cli_transport_of(address)->silence;
    z.strangers =
        STRANGERS + 2 * needed(a); /* all may connect at the same time */
    st = kofn_net_listen(t, address, &z);
    if (st) /* keys are the only files it reads */
        return st == KOFN_IO ? cli_fail_input(st) : cli_fail(st);
    if (address == a->port && a->job.workers_per_principal &&
        check_seats(a, *t)) {
        (*t)->close(*t, 0);
        return EXIT_USAGE;
    }
    if (!a->quiet && address == a->port)
        fprintf(stderr, "listening on %s for %zu worker%s%s\n",
                kofn_net_endpoint(*t), needed(a), needed(a) == 1 ? "" : "s",
                a->insecure ? ", without encryption or authentication" : "");
    return 0;
}

static void news(void *ud, const char *words)
{
    const family *f = ud;

    cli_log_news(words);
    if (!f->args->quiet)
        cli_tell("%s", words);
}

static int open_away(const cli_args *a, kofn_transport *t, uint64_t job,
                     bool staged, kofn_port **out)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;

    kin.args = a;
    o.ud = &kin;
    o.workers = needed(a);
    o.job = job;
    o.source =
        staged ? NULL : source(a); /* workers of this command read no files */
    o.news = news;
    o.name = cli_transport_of(a->port)->name;
    o.alone = a->per_principal_given && a->job.workers_per_principal == 0;
    o.crowd = a->job.workers_per_principal
                  ? a->job.workers_per_principal + STAND_BY
                  : 0;
    if (staged) {
        o.alone = true;
        o.start = start_child;
        o.kill = kill_child;
        o.ended = ended_children;
    }
    return cli_fail(kofn_port_away(out, t, &o));
}

static int open_processes(const cli_args *a, const kofn_problem *pb,
                          uint64_t job, kofn_port **out)
{
    kofn_transport *t;
    char pattern[80];
    int code = 0;

    kin.args = a;
    kin.parent = getpid();
    TRY_CODE(cli_folder_make(&kin.folder));
    snprintf(kin.address, sizeof kin.address, "ipc://%s/socket",
             kin.folder.path);
    snprintf(pattern, sizeof pattern, "%s/pattern.npy", kin.folder.path);
    if (a->pattern_text) /* the workers read it */
        TRY_CODE(cli_wrote(kofn_write(pattern, KOFN_DENSE(&a->pattern), 2)));
    TRY_CODE(listen_at(a, kin.address, pb, &t));
    TRY_CODE(open_away(a, t, job, true, out));
    for (size_t i = 0; i < a->workers && !code; i++)
        if (start_child(&kin)) {
            code = cli_say(EXIT_FAILED, "worker %zu could not be started: %s",
                           i, strerror(errno));
            kofn_port_close(*out);
        }
    return code;
}

static int open_mpi(const cli_args *a, const kofn_problem *pb, uint64_t job,
                    kofn_port **out)
{
    (void)pb;
    return open_away(a, a->mpi, job, false, out);
}

static int open_address(const cli_args *a, const kofn_problem *pb, uint64_t job,
                        kofn_port **out)
{
    kofn_transport *t;

    TRY_CODE(listen_at(a, a->port, pb, &t));
    return open_away(a, t, job, false, out);
}

/* Starts MPI before anything is read. Every rank runs this command. All ranks
 * but the first become workers here and never return to the command. */
static int start_mpi(cli_args *a, bool *is_worker)
{
    kofn_mpi_options o = KOFN_MPI_OPTIONS_INIT;
    kofn_mpi_info info = KOFN_MPI_INFO_INIT;
    kofn_transport *t;
    kofn_status st = kofn_mpi_open(&t, &o, &info);

    *is_worker = false;
    if (st)
        return cli_fail(st);
    if (a->workers_given &&
        a->workers >= info.ranks) { /* every rank knows it */
        t->close(t, 0);
        return info.rank
                   ? EXIT_USAGE
                   : cli_say(EXIT_USAGE,
                             "--workers %zu, but the job has %u ranks besides "
                             "this one: start it with %zu (mpirun -n %zu)",
                             a->workers, info.ranks - 1, a->workers + 1,
                             a->workers + 1);
    }
    if (info.rank > 0) {
        *is_worker = true;
        return cli_serve(a, t, false);
    }
    if (!a->quiet)
        fprintf(stderr, "%s, %u ranks: %s\n", info.library, info.ranks,
                info.survival);
    a->mpi = t;
    if (!a->workers_given)
        a->workers = info.ranks - 1;
    return 0;
}

/* ---- all of them --------------------------------------------------------- */

static const cli_transport transports[] = {
    {.name = "threads",
     .here = true,
     .ours = true,
     .nodes = true,
     .port = kofn_port_threads},
    {.name = "sim",
     .here = true,
     .ours = true,
     .simulated = true,
     .port = kofn_port_sim},
    {.name = "processes", .ours = true, .open = open_processes},
    {.name = "mpi",
     .open = open_mpi,
     .nodes = true,
     .start = start_mpi,
     .end = kofn_mpi_end},
    {.name = "tcp",
     .form = "tcp://*:PORT",
     .address = true,
     .open = open_address,
     .nodes = true},
    /* On one machine a death is noticed at once. A long silence means a loaded
     * machine. */
    {.name = "ipc",
     .form = "ipc://PATH",
     .address = true,
     .silence = 10 * KOFN_SECOND,
     .open = open_address,
     .nodes = true},
};

const cli_transport *cli_transport_of(const char *port)
{
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        const cli_transport *t = &transports[i];
        size_t n = strlen(t->name);

        if (t->address
                ? !strncmp(port, t->name, n) && !strncmp(port + n, "://", 3)
                : !strcmp(port, t->name))
            return t;
    }
    return NULL;
}

const char *cli_transport_forms(bool (*fits)(const cli_transport *))
{
    static char forms[200];
    size_t count = sizeof transports / sizeof *transports, left = 0, n = 0;

    for (size_t i = 0; i < count; i++)
        left += !fits || fits(&transports[i]);
    for (size_t i = 0; i < count; i++) {
        const cli_transport *t = &transports[i];

        if (!fits || fits(t))
            n += (size_t)snprintf(forms + n, sizeof forms - n, "%s%s",
                                  t->form ? t->form : t->name,
                                  --left > 1 ? ", "
                                  : left     ? " or "
                                             : "");
    }
    return forms;
}

/* Returns the number of ranks if this process is the first of a job that was
 * started by the launcher with these variables, else 0. */
static unsigned long ranks_by(const char *rank, const char *ranks)
{
    const char *own = getenv(rank), *all = getenv(ranks);

    return own && all && !strcmp(own, "0") ? strtoul(all, NULL, 10) : 0;
}

void cli_ports_look_for_mpi(const cli_args *a)
{
    const cli_transport *t = cli_transport_of(a->port);
    unsigned long ranks =
        ranks_by("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");

    if (!ranks)
        ranks = ranks_by("PMI_RANK", "PMI_SIZE");
    if (a->quiet || ranks < 2 || t->address || t->end == kofn_mpi_end)
        return;
    cli_tell("warning: each of the %lu ranks of this MPI job does all of the "
             "work alone; --port mpi shares it",
             ranks);
}

int cli_port_open(const cli_args *a, const kofn_problem *pb, uint64_t job,
                  kofn_port **out)
{
    const cli_transport *t = cli_transport_of(a->port);

    if ((a->faults_text || a->pattern_text) && !t->ours)
        return cli_say(EXIT_USAGE,
                       "--%s with --port %s: give it to the workers",
                       a->faults_text ? "faults" : "pattern", a->port);
    if (a->faults.join > 0 && t->ours && !t->here)
        return cli_say(EXIT_USAGE, "--faults join is for threads and sim; let "
                                   "processes join by an events file");
    if (t->open)
        return t->open(a, pb, job, out);
    return cli_fail(t->port(out, a->workers, &a->faults));
}
