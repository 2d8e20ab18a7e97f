/* guard.c -- `guard NAME COMMAND [ARGUMENT...]` runs a test, ends it if it
 * hangs, and reports its cost.
 *
 * A test hangs if all its processes together use less than a hundredth of a
 * processor for ten minutes, or fifty minutes of processor time in all. Unlike
 * a deadline by the clock, both limits are right on a slow or heavily loaded
 * machine. With KOFN_TEST_TIMES a line "NAME WALL CPU STATUS", times in
 * seconds, is appended to that file. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK 10       /* seconds between two looks at the processes */
#define IDLE_LOOKS 60 /* looks, ten minutes, ... */
#define IDLE_USE                                                               \
    6 /* ... with less than this many seconds of processor time in all */
#define MOST_USE 3000 /* limit of a test's processor time, in seconds */

static volatile sig_atomic_t ended_by; /* signal received to end the test */

static void on_signal(int signal)
{
    ended_by = signal;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the seconds that process `pid` and its reaped children have used if
 * it belongs to this session; else 0. */
static double used_by(const char *pid, long session)
{
    char path[300], line[1000];
    const char *rest;
    unsigned long time[4];
    long sid;
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    if (!(f = fopen(path, "r")))
        return 0; /* the process has ended */
    n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = '\0';
    if (!(rest = strrchr(line, ')')) || /* a process name may have blanks */
        sscanf(rest + 1,
               " %*c %*d %*d %ld %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
               &sid, &time[0], &time[1], &time[2], &time[3]) != 5 ||
        sid != session)
        return 0;
    return (double)(time[0] + time[1] + time[2] + time[3]) /
           (double)sysconf(_SC_CLK_TCK);
}

/* For each process of the session: adds its time (signal == 0), or ends it.
 * Returns the sum. */
static double over_session(long session, int signal)
{
    DIR *proc = opendir("/proc");
    double sum = 0;

    for (struct dirent *e; proc && (e = readdir(proc));) {
        double used = e->d_name[0] >= '0' && e->d_name[0] <= '9'
                          ? used_by(e->d_name, session)
                          : 0;

        sum += used;
        if (signal && e->d_name[0] >= '0' && e->d_name[0] <= '9' &&
            getsid((pid_t)atol(e->d_name)) == session)
            kill((pid_t)atol(e->d_name), signal);
    }
    if (proc)
        closedir(proc);
    return sum;
}

/* Waits for the test. Returns NULL, or why it counts as hanging. */
static const char *watch(pid_t pid, int *status, struct rusage *cost)
{
    const struct timespec look = {LOOK, 0};
    double used[IDLE_LOOKS] = {0};
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (size_t looks = 0; wait4(pid, status, WNOHANG, cost) == 0;) {
        double all;

        if (ended_by)
            return "it was asked to end";
        if (sigtimedwait(&child, NULL, &look) == SIGCHLD || errno == EINTR)
            continue;
        all = over_session(pid, 0);
        if (all > MOST_USE)
            return "it has used fifty minutes of processor time";
        /* processes that ended meanwhile lower the sum */
        if (looks >= IDLE_LOOKS && all >= used[looks % IDLE_LOOKS] &&
            all - used[looks % IDLE_LOOKS] < IDLE_USE)
            return "it has hardly done anything for ten minutes";
        used[looks++ % IDLE_LOOKS] = all;
    }
    return NULL;
}

static void tell(const char *name, double wall, const struct rusage *cost,
                 int status)
{
    const char *to = getenv("KOFN_TEST_TIMES");
    FILE *f = to ? fopen(to, "a") : NULL;

    if (!f)
        return;
    fprintf(f, "%s %.2f %.2f %d\n", name, wall,
            (double)(cost->ru_utime.tv_sec + cost->ru_stime.tv_sec) +
                1e-6 *
                    (double)(cost->ru_utime.tv_usec + cost->ru_stime.tv_usec),
            status);
    fclose(f);
}

int main(int argc, char **argv)
{
    const struct sigaction act = {.sa_handler = on_signal};
    struct rusage cost = {0};
    double begun = now();
    const char *why;
    sigset_t child, before;
    int status = 0;
    pid_t pid;

    if (argc < 3) {
        fprintf(stderr, "usage: guard NAME COMMAND [ARGUMENT...]\n");
        return 2;
    }
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
    if ((pid = fork()) < 0) {
        perror("guard: fork");
        return 1;
    }
    if (pid == 0) {
        setsid();
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(argv[2], argv + 2);
        fprintf(stderr, "guard: %s: %s\n", argv[2], strerror(errno));
        _exit(127);
    }
    if ((why = watch(pid, &status, &cost))) {
        fprintf(stderr, "guard: %s is ended: %s\n", argv[1], why);
        over_session(pid, SIGTERM);
        sleep(1);
        over_session(pid, SIGKILL);
        wait4(pid, &status, 0, &cost);
        status = 1;
    } else {
        status =
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (status > 128)
        fprintf(stderr, "guard: %s: signal %d\n", argv[1], status - 128);
    tell(argv[1], now() - begun, &cost, status);
    return status;
}
