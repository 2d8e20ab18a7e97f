/* yard.h -- workers that are processes of their own, to be killed, stopped and
 * joined.  A nursery, forked while there is one thread only, forks them at a
 * word; it keeps account of how each of them ended. */
#ifndef KF_TEST_YARD_H
#define KF_TEST_YARD_H

#define _GNU_SOURCE
#include "plague.h"
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

/* What a worker is to be. */
typedef struct yard_life {
    char address[108];
    rig_kind kind; /* whose function it knows, for sums; spec is not used */
    kofn_faults faults;
    kofn_time patience, silence; /* silence: of its transport */
    bool staged;
    pid_t net;        /* whose network it lives in; 0: ours */
    uint64_t hostile; /* it sends anything at any time; a seed, or 0: not */
} yard_life;

typedef enum yard_word {
    YARD_START,
    YARD_HOUSE,
    YARD_SIGNAL,
    YARD_END
} yard_word;

typedef struct yard_ask {
    yard_word word;
    yard_life life;
    pid_t pid;
    int sig;
    kofn_time atmost;
} yard_ask;

/* Of all that have ended: killed at a word, by themselves in order (dismissed,
 * or out of patience), and otherwise.  Left: who had to be ended. */
typedef struct yard_ends {
    size_t killed, well, ill, left;
    int worst; /* waitpid's status of the last that ended ill */
} yard_ends;

static int yard_line = -1;
static atomic_size_t *yard_sent; /* packets, by those who are hostile */

static inline void yard_nap(kofn_time t)
{
    const struct timespec s = {t / KOFN_SECOND, t % KOFN_SECOND};

    nanosleep(&s, NULL);
}

/* ---- a worker ------------------------------------------------------------ */

static inline bool yard_move(pid_t net)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)net);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && close(fd) == 0;
}

/* Until there has been no coordinator for so long. */
static inline int yard_plague(const yard_life *life)
{
    kofn_net_options z = {
        .size = sizeof z, .silence = life->silence, .insecure = true};
    hostile h = {.r = kf_rng_stream(life->hostile, KF_FOR_DATA, 31, 0)};
    kofn_time seen = kf_clock();
    size_t told = 0;

    if (kofn_net_connect(&h.t, life->address, &z))
        return 4;
    while (kf_clock() - seen < life->patience) {
        plague_turn(&h);
        seen = h.here ? kf_clock() : seen;
        atomic_fetch_add(yard_sent, h.sent - told);
        told = h.sent;
    }
    h.t->close(h.t, 0);
    return 0;
}

static inline int yard_live(const yard_life *life)
{
    kofn_net_options z = {
        .size = sizeof z, .silence = life->silence, .insecure = true};
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    kofn_faults w = life->faults;
    kofn_transport *t;
    kofn_status st;
    rig r;

    if (life->net && !yard_move(life->net))
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

/* ---- the nursery, another process ---------------------------------------- */

static inline pid_t yard_fork(const yard_ask *ask)
{
    pid_t nursery = getpid(), pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(yard_line);
    if (getppid() != nursery)
        _exit(1);
    if (ask->word == YARD_START)
        exit(ask->life.hostile ? yard_plague(&ask->life)
                               : yard_live(&ask->life));
    if (unshare(CLONE_NEWNET))
        _exit(0);
    for (;;)
        pause();
}

static inline void yard_bury(yard_ends *ends, int status)
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

/* Bury who has ended; is anybody left? */
static inline bool yard_look(yard_ends *ends)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        yard_bury(ends, status);
    return pid == 0;
}

/* All of them within so long; who does not is counted, and killed. */
static inline void yard_clear(yard_ends *ends, kofn_time atmost)
{
    kofn_time end = kf_clock() + atmost;
    char path[64];
    FILE *f;
    long pid;

    while (yard_look(ends) && kf_clock() < end)
        yard_nap(KOFN_SECOND / 100);
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

static inline void yard_nursery(void)
{
    yard_ends ends = {0};
    yard_ask ask;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (recv(yard_line, &ask, sizeof ask, 0) == sizeof ask) {
        pid_t pid = ask.pid;

        yard_look(&ends);
        if (ask.word == YARD_START || ask.word == YARD_HOUSE)
            pid = yard_fork(&ask);
        else if (ask.word == YARD_SIGNAL && waitpid(pid, NULL, WNOHANG) == 0)
            kill(pid, ask.sig); /* it is still ours, and not another's */
        if (ask.word == YARD_END) {
            yard_clear(&ends, ask.atmost);
            send(yard_line, &ends, sizeof ends, 0);
            ends = (yard_ends){0};
        } else {
            send(yard_line, &pid, sizeof pid, 0);
        }
    }
    _exit(0);
}

/* ---- the test's side ----------------------------------------------------- */

/* First in main, before there is any thread. */
static inline void yard_open(void)
{
    int line[2];
    pid_t pid;

    yard_sent = mmap(NULL, sizeof *yard_sent, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (yard_sent == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line))
        abort();
    pid = fork();
    if (pid < 0)
        abort();
    yard_line = line[pid == 0];
    close(line[pid != 0]);
    if (pid == 0)
        yard_nursery();
}

static inline void yard_say(const yard_ask *ask, void *answer, size_t size)
{
    assert_int_equal(send(yard_line, ask, sizeof *ask, 0), sizeof *ask);
    assert_int_equal(recv(yard_line, answer, size, 0), size);
}

static inline pid_t yard_start(const yard_life *life)
{
    yard_ask ask = {.word = YARD_START, .life = *life};
    pid_t pid;

    yard_say(&ask, &pid, sizeof pid);
    assert_true(pid > 0);
    return pid;
}

/* Somebody who does nothing but have a network of his own. */
static inline pid_t yard_house(void)
{
    yard_ask ask = {.word = YARD_HOUSE};
    pid_t pid;

    yard_say(&ask, &pid, sizeof pid);
    assert_true(pid > 0);
    return pid;
}

/* Only for who has not been sent SIGKILL before. */
static inline void yard_signal(pid_t who, int sig)
{
    yard_ask ask = {.word = YARD_SIGNAL, .pid = who, .sig = sig};
    pid_t pid;

    yard_say(&ask, &pid, sizeof pid);
}

/* All have ended within so long, none in another way than meant. */
static inline yard_ends yard_end(kofn_time atmost)
{
    yard_ask ask = {.word = YARD_END, .atmost = atmost};
    yard_ends ends;

    yard_say(&ask, &ends, sizeof ends);
    if (ends.ill || ends.left)
        fail_msg("%zu workers ended ill (wait status %#x), %zu did not end",
                 ends.ill, (unsigned)ends.worst, ends.left);
    return ends;
}

#endif
