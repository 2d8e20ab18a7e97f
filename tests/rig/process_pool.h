/* process_pool.h -- workers that are processes, to be killed, stopped and
 * joined. The spawner is a process that is forked while there is only one
 * thread. It forks the workers on request, and counts how each of them ended.
 */
#ifndef KF_TEST_PROCESS_POOL_H
#define KF_TEST_PROCESS_POOL_H

#define _GNU_SOURCE
#include "flooder.h"
#include "rig.h"

#include <kofn/net.h>
#include <kofn/transport.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

/* The properties of a worker. */
typedef struct pool_worker {
    char address[108];
    rig_kind kind; /* gives the function for sums; spec is not used */
    kofn_faults faults;
    kofn_time patience,
        silence; /* silence: the failure timeout of its transport */
    bool staged;
    pid_t net;        /* a process in the network that it joins; 0: ours */
    uint64_t hostile; /* seed of a worker that sends anything at any time; 0:
                         honest */
} pool_worker;

typedef enum pool_command {
    POOL_START,
    POOL_NETWORK,
    POOL_SIGNAL,
    POOL_END
} pool_command;

typedef struct pool_message {
    pool_command command;
    pool_worker life;
    pid_t pid;
    int sig;
    kofn_time atmost;
} pool_message;

/* How workers have ended. killed: on request. well: in order, either dismissed
 * or out of patience. ill: in another way. left: ended by force at the end. */
typedef struct pool_ends {
    size_t killed, well, ill, left;
    int worst; /* waitpid's status of the last that ended ill */
} pool_ends;

static int pool_socket = -1;
static atomic_size_t *pool_sent; /* packets sent by hostile workers */

static inline void pool_sleep(kofn_time t)
{
    const struct timespec s = {t / KOFN_SECOND, t % KOFN_SECOND};

    nanosleep(&s, NULL);
}

/* ---- a worker ------------------------------------------------------------ */

static inline bool pool_enter_network(pid_t net)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)net);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && close(fd) == 0;
}

/* Sends anything, until there has been no coordinator for the patience. */
static inline int pool_flood(const pool_worker *life)
{
    kofn_net_options z = {
        .size = sizeof z, .silence = life->silence, .insecure = true};
    hostile h = {.r = kf_rng_stream(life->hostile, KF_FOR_DATA, 31, 0)};
    kofn_time seen = kf_clock();
    size_t told = 0;

    if (kofn_net_connect(&h.t, life->address, &z))
        return 4;
    while (kf_clock() - seen < life->patience) {
        flooder_turn(&h);
        seen = h.here ? kf_clock() : seen;
        atomic_fetch_add(pool_sent, h.sent - told);
        told = h.sent;
    }
    h.t->close(h.t, 0);
    return 0;
}

static inline int pool_serve(const pool_worker *life)
{
    kofn_net_options z = {
        .size = sizeof z, .silence = life->silence, .insecure = true};
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_faults w = life->faults;
    kofn_transport *t;
    kofn_status st;
    rig r;

    if (life->net && !pool_enter_network(life->net))
        return 3;
    rig_inputs(&r, &life->kind);
    if (kofn_net_connect(&t, life->address, &z)) {
        rig_down(&r);
        return 4;
    }
    o.f = rig_part;
    o.ctx = &r;
    w.size = sizeof w;
    o.faults = &w;
    o.patience = life->patience;
    o.staged = life->staged;
    st = kofn_serve(t, &o);
    rig_down(&r);
    return st == KOFN_OK || st == KOFN_AGAIN || st == KOFN_LATE ? 0 : 5;
}

/* ---- the spawner, another process ---------------------------------------- */

static inline pid_t pool_fork(const pool_message *ask)
{
    pid_t spawner = getpid(), pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pool_socket);
    if (getppid() != spawner)
        _exit(1);
    if (ask->command == POOL_START)
        exit(ask->life.hostile ? pool_flood(&ask->life)
                               : pool_serve(&ask->life));
    if (unshare(CLONE_NEWNET))
        _exit(0);
    for (;;)
        pause();
}

static inline void pool_count_end(pool_ends *ends, int status)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        ends->killed++;
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        ends->well++;
    else {
        ends->ill++;
        ends->worst = status;
    }
}

/* Counts workers that have ended. Returns true if any is left. */
static inline bool pool_reap(pool_ends *ends)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        pool_count_end(ends, status);
    return pid == 0;
}

/* Waits until all have ended, `atmost` long. Kills and counts the others. */
static inline void pool_clear(pool_ends *ends, kofn_time atmost)
{
    kofn_time end = kf_clock() + atmost;
    char path[64];
    FILE *f;
    long pid;

    while (pool_reap(ends) && kf_clock() < end)
        pool_sleep(KOFN_SECOND / 100);
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    f = fopen(path, "r");
    while (f && fscanf(f, "%ld", &pid) == 1) {
        ends->left++;
        kill((pid_t)pid, SIGKILL);
        waitpid((pid_t)pid, NULL, 0);
    }
    if (f)
        fclose(f);
}

static inline void pool_spawner(void)
{
    pool_ends ends = {0};
    pool_message ask;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (recv(pool_socket, &ask, sizeof ask, 0) == sizeof ask) {
        pid_t pid = ask.pid;

        pool_reap(&ends);
        if (ask.command == POOL_START || ask.command == POOL_NETWORK)
            pid = pool_fork(&ask);
        else if (ask.command == POOL_SIGNAL && waitpid(pid, NULL, WNOHANG) == 0)
            kill(pid,
                 ask.sig); /* it is our child: the number is not used again */
        if (ask.command == POOL_END) {
            pool_clear(&ends, ask.atmost);
            send(pool_socket, &ends, sizeof ends, 0);
            ends = (pool_ends){0};
        } else {
            send(pool_socket, &pid, sizeof pid, 0);
        }
    }
    _exit(0);
}

/* ---- the test's side ----------------------------------------------------- */

/* Opens the pool. Call this first in main, before there is any thread. */
static inline void pool_open(void)
{
    int line[2];
    pid_t pid;

    pool_sent = mmap(NULL, sizeof *pool_sent, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pool_sent == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line))
        abort();
    pid = fork();
    if (pid < 0)
        abort();
    pool_socket = line[pid == 0];
    close(line[pid != 0]);
    if (pid == 0)
        pool_spawner();
}

static inline void pool_request(const pool_message *ask, void *answer,
                                size_t size)
{
    assert_int_equal(send(pool_socket, ask, sizeof *ask, 0), sizeof *ask);
    assert_int_equal(recv(pool_socket, answer, size, 0), size);
}

static inline pid_t pool_start(const pool_worker *life)
{
    pool_message ask = {.command = POOL_START, .life = *life};
    pid_t pid;

    pool_request(&ask, &pid, sizeof pid);
    assert_true(pid > 0);
    return pid;
}

/* Starts a process that only holds a separate network. */
static inline pid_t pool_network(void)
{
    pool_message ask = {.command = POOL_NETWORK};
    pid_t pid;

    pool_request(&ask, &pid, sizeof pid);
    assert_true(pid > 0);
    return pid;
}

/* Sends a signal to a worker that has not been sent SIGKILL before. */
static inline void pool_signal(pid_t who, int sig)
{
    pool_message ask = {.command = POOL_SIGNAL, .pid = who, .sig = sig};
    pid_t pid;

    pool_request(&ask, &pid, sizeof pid);
}

/* Waits until all have ended, `atmost` long. Fails if one ended in another way
 * than meant. */
static inline pool_ends pool_end(kofn_time atmost)
{
    pool_message ask = {.command = POOL_END, .atmost = atmost};
    pool_ends ends;

    pool_request(&ask, &ends, sizeof ends);
    if (ends.ill || ends.left)
        fail_msg("%zu workers ended ill (wait status %#x), %zu did not end",
                 ends.ill, (unsigned)ends.worst, ends.left);
    return ends;
}

#endif
