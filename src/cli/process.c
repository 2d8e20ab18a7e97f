/* process.c -- the command's process: its descriptors, memory and signals.
 *
 * Its state belongs to the process: the signals that came, the start time,
 * whether memory is guarded. A signal handler may only set a flag. */
#define _GNU_SOURCE
#include "cli.h"

#include "base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS 65536 /* more have no use */
#define PROMPT 2          /* seconds within which cli_caught must be called */

/* ---- signals ------------------------------------------------------------- */

static volatile sig_atomic_t caught, guarded, prompt, orphan;

static void on_signal(int sig)
{
    if (!guarded || caught)
        _exit(128 + sig);
    caught = sig;
    if (prompt)
        alarm(PROMPT);
}

/* Ends the process: cli_caught was not called after a signal. Does nothing
 * without a signal, since the alarm may have another cause. */
static void on_alarm(int sig)
{
    (void)sig;
    if ((prompt || orphan) && caught)
        _exit(128 + caught);
}

void cli_signals(void)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction late = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction was;

    sigemptyset(&act.sa_mask);
    sigemptyset(&late.sa_mask);
    sigaction(SIGALRM, &late, NULL);
    sigaction(SIGXFSZ, &ignore,
              NULL); /* the write fails instead and is reported */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &act, NULL); /* keep nohup's choice to ignore it */
}

static pid_t parent;
static unsigned latest; /* seconds from the end of the parent to the alarm */

/* Acts as on SIGTERM if the parent has ended. The signal also comes when only
 * the thread ended that had started this process. */
static void on_parent(int sig)
{
    (void)sig;
    if (orphan || getppid() == parent)
        return;
    orphan = 1;
    alarm(latest);
    on_signal(SIGTERM);
}

int cli_end_with_parent(double grace)
{
    struct sigaction act = {.sa_handler = on_parent, .sa_flags = SA_RESTART};

    parent = getppid();
    latest = (unsigned)fmin(grace, 1e6) + 2 * PROMPT;
    sigemptyset(&act.sa_mask);
    sigaction(SIGUSR2, &act, NULL);
    prctl(PR_SET_PDEATHSIG, SIGUSR2);
    if (parent == 1 || getppid() != parent)
        return cli_say(EXIT_FAILED,
                       "--with-parent: the process that started this one has "
                       "ended, or it is process 1, which never ends");
    return 0;
}

void cli_guard(bool on)
{
    prompt = 0;
    guarded = on;
}

void cli_guard_promptly(void)
{
    guarded = prompt = 1;
    if (caught)
        alarm(PROMPT);
}

int cli_caught(void)
{
    if (caught && prompt)
        alarm(0);
    return caught;
}

/* ---- descriptors and memory ---------------------------------------------- */

/* Opens missing descriptors 0, 1 and 2 on something that fails. Otherwise a
 * file could get such a number and be printed into. */
static void fill_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd < 3);
    if (fd >= 0)
        close(fd);
}

/* Keeps freed memory in the process. Messages of megabytes are allocated and
 * freed on different threads; returning their pages to the system costs more
 * than filling them. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, INT_MAX);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
}

/* Raises the limit of descriptors. Each worker takes a connection, and the
 * usual limit of 1024 is soon reached. Every user may raise it up to the hard
 * limit. */
static void raise_descriptors(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= DESCRIPTORS)
        return;
    files.rlim_cur =
        files.rlim_max < DESCRIPTORS ? files.rlim_max : DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* Starts the program by the name of its file, since under Valgrind the link
 * /proc/self/exe leads to Valgrind. Uses the link if the file was removed. */
void cli_again(char **argv)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    if (n > 0) {
        path[n] = 0;
        execv(path, argv);
    }
    execv("/proc/self/exe", argv);
}

/* Checks that memory suffices for OpenBLAS. It retries until it gets its
 * buffers, on threads that run before main and are joined at the end. Without
 * memory the process would hang. */
static void demand_room(void)
{
    const size_t buffers = (size_t)2 << 27; /* for two threads */
    struct rlimit space;
    void *p;

    if (getrlimit(RLIMIT_AS, &space) || space.rlim_cur == RLIM_INFINITY)
        return;
    p = mmap(NULL, buffers, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED) {
        munmap(p, buffers);
        return;
    }
    cli_say(EXIT_FAILED,
            "the limit of %zu KiB of address space leaves no room "
            "for the BLAS, which takes 128 MiB a thread; say ulimit -v "
            "1000000, or unlimited",
            (size_t)space.rlim_cur / 1024);
    _exit(EXIT_FAILED);
}

static double begun;

double cli_begun(void)
{
    return begun;
}

double cli_spent(cli_phase p, double since)
{
    static double spent[CLI_PHASES];

    if (since == since)
        spent[p] += kf_clock_seconds() - since;
    return spent[p];
}

void cli_begin(void)
{
    begun = kf_clock_seconds();
    keep_memory();
    fill_descriptors();
    raise_descriptors();
    demand_room();
}
