/* spawn.c -- a fleet of processes of this machine: the command of kofn, started
 * as workers over a socket in a private folder.
 *
 * Owns the processes and the folder. The process of the caller stays as it is:
 * no signal handler, no environment variable, and only own processes are waited
 * for. Another part of the program may have reaped a process; then it counts as
 * ended, and nothing is sent to its number. */
#define _GNU_SOURCE
#include "shared.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "kofn.XXXXXX"
#define PATIENCE (2 * KOFN_SECOND) /* from SIGTERM to SIGKILL */

struct spawned {
    char *program, **environment;
    char folder[64], socket[80], address[96];
    pid_t *child;
    size_t children, room, ended;
};

/* ---- environment --------------------------------------------------------- */

/* Variables of the workers: there is one process for each core. */
static const char *const own[] = {"OPENBLAS_NUM_THREADS=1",
                                  "BLIS_NUM_THREADS=1", "MKL_NUM_THREADS=1"};
enum { OWN = sizeof own / sizeof *own };

static bool is_own(const char *variable)
{
    for (size_t i = 0; i < OWN; i++) {
        size_t n = (size_t)(strchr(own[i], '=') - own[i]) + 1;

        if (strncmp(variable, own[i], n) == 0)
            return true;
    }
    return false;
}

/* Makes the list of the workers' variables. The texts are borrowed. */
static kofn_status make_environment(spawned *s)
{
    size_t n = 0, kept = 0;

    while (environ && environ[n])
        n++;
    s->environment = kf_zero(n + OWN + 1, sizeof *s->environment);
    if (!s->environment)
        return KOFN_NOMEM;
    for (size_t i = 0; i < n; i++)
        if (!is_own(environ[i]))
            s->environment[kept++] = environ[i];
    for (size_t i = 0; i < OWN; i++)
        s->environment[kept++] = (char *)(uintptr_t)own[i];
    return KOFN_OK;
}

/* ---- processes ----------------------------------------------------------- */

/* Starts the program with these attributes. Returns 0, or an errno. */
static int start_with(spawned *s, const posix_spawnattr_t *attr, pid_t *pid)
{
    /* Process 1 never ends, so a worker refuses to end with it. */
    const char *argv[] = {"kofn",     "worker",
                          s->address, "-q",
                          "--staged", getpid() == 1 ? NULL : "--with-parent",
                          NULL};
    posix_spawn_file_actions_t files;
    int error = posix_spawn_file_actions_init(&files);

    if (error)
        return error;
    error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    if (!error)
        error = posix_spawnp(pid, s->program, &files, attr,
                             (char **)(uintptr_t)argv, s->environment);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Starts a worker. A terminal sends Ctrl-C to all processes; workers ignore it,
 * since they would leave before the program does. Returns 0, or an errno. */
static int start_one(spawned *s)
{
    posix_spawnattr_t attr;
    sigset_t terminal;
    pid_t pid = 0;
    int error;

    if (kf_reach(&s->child, &s->room, s->children + 1, sizeof *s->child))
        return ENOMEM;
    error = posix_spawnattr_init(&attr);
    if (error)
        return error;
    sigemptyset(&terminal);
    sigaddset(&terminal, SIGINT);
    error = posix_spawnattr_setsigmask(&attr, &terminal);
    if (!error)
        error = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    if (!error)
        error = start_with(s, &attr, &pid);
    posix_spawnattr_destroy(&attr);
    if (!error)
        s->child[s->children++] = pid;
    return error;
}

/* Forgets the processes that have ended. */
static void reap(spawned *s)
{
    size_t left = 0;

    for (size_t i = 0; i < s->children; i++)
        if (waitpid(s->child[i], NULL, WNOHANG) == 0)
            s->child[left++] = s->child[i];
    s->ended += s->children - left;
    s->children = left;
}

/* ---- what a job's port asks; with the fleet's lock ----------------------- */

static size_t ended(void *ud)
{
    spawned *s = ((channel *)ud)->f->spawned;

    reap(s);
    return s->ended;
}

static int start(void *ud)
{
    return start_one(((channel *)ud)->f->spawned) ? -1 : 0;
}

static int kill_one(void *ud, uint64_t process)
{
    spawned *s = ((channel *)ud)->f->spawned;

    reap(s);
    for (size_t i = 0; i < s->children; i++)
        if ((uint64_t)s->child[i] == process)
            return kill(s->child[i], SIGKILL);
    return -1; /* not one of these processes */
}

void kf_spawn_serve(channel *c, kofn_away_options *o)
{
    if (!c->f->spawned || o->start || o->kill || o->ended)
        return;
    kf_shared_serve(c, o);
    o->ended = ended;
    o->start = start;
    o->kill = kill_one;
    o->alone = true; /* all of them are this user's */
}

/* ---- end ----------------------------------------------------------------- */

/* Asks all processes to end. One that was stopped goes on, to do so. */
static void ask_to_end(const spawned *s)
{
    for (size_t i = 0; i < s->children; i++) {
        kill(s->child[i], SIGTERM);
        kill(s->child[i], SIGCONT);
    }
}

void kf_spawn_end(spawned *s)
{
    const struct timespec while_ = {.tv_nsec = 2000000};
    kofn_time until = kf_clock() + PATIENCE;

    if (!s)
        return;
    reap(s);
    ask_to_end(s);
    while (s->children && kf_clock() < until) {
        nanosleep(&while_, NULL);
        reap(s);
    }
    for (size_t i = 0; i < s->children; i++) {
        kill(s->child[i], SIGKILL);
        while (waitpid(s->child[i], NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (*s->folder) {
        unlink(s->socket);
        rmdir(s->folder);
    }
    kf_free(s->child);
    kf_free(s->environment);
    kf_free(s->program);
    kf_free(s);
}

/* ---- opening ------------------------------------------------------------- */

/* The name of a socket has at most 107 bytes. */
static kofn_status make_folder(spawned *s)
{
    const char *tmp = getenv("TMPDIR");
    char path[sizeof s->folder];

    if (!tmp || strlen(tmp) > 40)
        tmp = "/tmp";
    snprintf(path, sizeof path, "%s/" FOLDER, tmp);
    if (!mkdtemp(path))
        return kf_fail(KOFN_IO,
                       "%s: %s; set TMPDIR to a folder that can be written",
                       path, strerror(errno));
    snprintf(s->folder, sizeof s->folder, "%s", path);
    snprintf(s->socket, sizeof s->socket, "%s/socket", path);
    snprintf(s->address, sizeof s->address, "ipc://%s", s->socket);
    return KOFN_OK;
}

static kofn_status prepare(spawned *s, const char *program)
{
    s->program = kf_strdup(program ? program : "kofn");
    if (!s->program)
        return KOFN_NOMEM;
    TRY(make_environment(s));
    return make_folder(s);
}

kofn_status kf_spawn_begin(spawned **out, const char *program)
{
    spawned *s = kf_zero(1, sizeof *s);
    kofn_status st = s ? prepare(s, program) : KOFN_NOMEM;

    *out = NULL;
    if (st) {
        kf_spawn_end(s);
        return st;
    }
    *out = s;
    return KOFN_OK;
}

const char *kf_spawn_address(const spawned *s)
{
    return s->address;
}

kofn_status kf_spawn_start(spawned *s, size_t workers)
{
    for (size_t i = 0; i < workers; i++) {
        int error = start_one(s);

        if (error)
            return kf_fail(KOFN_IO,
                           "%s cannot be started as a worker: %s; install "
                           "kofn, or give its path in "
                           "kofn_fleet_options.program",
                           s->program, strerror(error));
    }
    return KOFN_OK;
}
