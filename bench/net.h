/* net.h -- parts that the network benches share: other processes, a plain
 * socket on the loopback, and packets that must arrive. */
#ifndef KF_BENCH_NET_H
#define KF_BENCH_NET_H

#include "bench.h"

#include <kofn/transport.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- processes ----------------------------------------------------------- */

/* Cores of the two ends. Left alone, the system puts both on one core or on
 * two for minutes at a time, which changes the figures by half. */
typedef enum placing { ANYWHERE, ONE_CORE, TWO_CORES } placing;

/* Places this thread, its later threads, and its children. */
static inline void place(placing how, bool is_child)
{
    static cpu_set_t all;
    size_t seen = 0, wanted = how == TWO_CORES && is_child;
    cpu_set_t one;

    if (CPU_COUNT(&all) == 0)
        must(!sched_getaffinity(0, sizeof all, &all), "which cores there are");
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && (how == ANYWHERE || seen++ == wanted))
            CPU_SET(i, &one);
    must(CPU_COUNT(&one) && !sched_setaffinity(0, sizeof one, &one),
         "two ends need two cores");
}

/* Starts a child, which lives until it is killed or this process ends. */
static inline pid_t child(void (*life)(const char *), const char *where)
{
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        life(where);
        _exit(0);
    }
    return pid;
}

static inline void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Returns the processor time of this process and of another. */
static inline double cpu_both(pid_t pid)
{
    struct timespec mine = {0}, its = {0};
    clockid_t clock;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mine);
    if (clock_getcpuclockid(pid, &clock) == 0)
        clock_gettime(clock, &its);
    return (double)(mine.tv_sec + its.tv_sec) +
           1e-9 * (double)(mine.tv_nsec + its.tv_nsec);
}

/* ---- a plain socket ------------------------------------------------------ */

static inline void read_all(int fd, void *into, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, (char *)into + at, n - at);

        must(got > 0, "read");
        at += (size_t)got;
    }
}

static inline void write_all(int fd, const void *from, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t put = write(fd, (const char *)from + at, n - at);

        must(put > 0, "write");
        at += (size_t)put;
    }
}

static inline void at_once(int fd)
{
    int yes = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static inline int plain_to(const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_port = htons((uint16_t)atoi(port));
    must(connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect");
    at_once(fd);
    return fd;
}

/* Connects with the Reno algorithm, which does not pace its traffic, whatever
 * the system's default is. */
static inline int unpaced_to(const char *port)
{
    int fd = plain_to(port);

    must(!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), "reno");
    return fd;
}

/* Listens on the loopback; writes the port as text. */
static inline int plain_listen(char port[16])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0);

    must(bind(l, (struct sockaddr *)&at, size) == 0 && listen(l, 100) == 0 &&
             getsockname(l, (struct sockaddr *)&at, &size) == 0,
         "listen");
    snprintf(port, 16, "%d", ntohs(at.sin_port));
    return l;
}

/* Starts a child that connects to this process. */
static inline pid_t plain_open(void (*life)(const char *), int *fd)
{
    char port[16];
    int l = plain_listen(port);
    pid_t pid = child(life, port);

    *fd = accept(l, NULL, NULL);
    at_once(*fd);
    close(l);
    return pid;
}

/* ---- packets ------------------------------------------------------------- */

static inline kofn_packet packet(kofn_transport *t)
{
    kofn_packet p;
    kofn_status st = t->wait(t, 30 * KOFN_SECOND, &p);

    must(st != KOFN_AGAIN, "a packet did not come within 30 s");
    check(st, "wait");
    return p;
}

/* Sends a packet without a body, as soon as there is room. Nothing is expected
 * to arrive before. */
static inline void deliver(kofn_transport *t, kofn_peer peer, const void *head,
                           size_t bytes)
{
    kofn_status st;
    kofn_packet p;

    while ((st = t->send(t, peer, head, bytes, NULL, false)) == KOFN_AGAIN)
        must(t->wait(t, KOFN_SECOND / 1000, &p) == KOFN_AGAIN, "out of turn");
    check(st, "send");
}

#endif
