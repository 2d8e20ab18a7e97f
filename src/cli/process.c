/* process.c -- the process that a command runs in: its descriptors, its memory
 * and its signals.
 *
 * Its state is the process's: which signals came, when it began, whether its
 * memory is guarded.  A signal's handler may only set a flag. */
#define _GNU_SOURCE
#include "cli.h"

#include "base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS 65536 /* of more nobody has use */
#define PROMPT 2          /* seconds in which a signal has to be asked for */

/* ---- signals ------------------------------------------------------------- */

static volatile sig_atomic_t caught, guarded, prompt;

static void on_signal(int sig)
{
    if (!guarded || caught)
        _exit(128 + sig);
    caught = sig;
    if (prompt)
        alarm(PROMPT);
}

/* Nobody has asked for the signal that was caught.  Where none was, the alarm
 * is somebody else's, and nothing is done. */
static void on_alarm(int sig)
{
    (void)sig;
    if (prompt && caught)
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
    sigaction(SIGXFSZ, &ignore, NULL); /* the write fails, and is told of */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &act, NULL); /* unless nohup has it ignored */
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

/* A file must not be opened as descriptor 0, 1 or 2 and then be printed into:
 * where one is closed, something that fails takes its place. */
static void fill_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd < 3);
    if (fd >= 0)
        close(fd);
}

/* Messages of megabytes come and go, on a thread here and on another there.
 * The allocator would give each back to the system, whose pages cost more than
 * to fill them. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, INT_MAX);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_ARENA_MAX, 1);
}

/* Two connections a worker: the usual limit of 1024 is soon reached, and may be
 * raised by anybody up to the hard one. */
static void raise_descriptors(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= DESCRIPTORS)
        return;
    files.rlim_cur =
        files.rlim_max < DESCRIPTORS ? files.rlim_max : DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* By the name of its file: under Valgrind the link leads to Valgrind when it is
 * run.  By the link where the file was removed since. */
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

/* OpenBLAS asks for its buffers until it gets them, on threads that it has
 * begun before main and waits for at the end: a process that has no room for
 * them would hang. */
static void demand_room(void)
{
    const size_t buffers = (size_t)2 << 27; /* of two threads */
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

void cli_begin(void)
{
    begun = kf_clock_seconds();
    keep_memory();
    fill_descriptors();
    raise_descriptors();
    demand_room();
}
