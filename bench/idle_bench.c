/* idle_bench.c -- the cost of a coordinator with a thousand idle workers.
 *
 * Another process opens the connections over TCP. They greet and then send
 * heartbeats as workers do, three in the 0.8 s after which they would be lost.
 * The coordinator sends its own as rarely as for workers. Measures the
 * transport's processor time per second and its memory per connection. The
 * reference is a bare loop of epoll that reads each heartbeat and answers
 * none. Each round measures both in turn for three seconds. Prints medians,
 * and medians of the ratios within a round.
 *
 *     idle_bench [ROUNDS [WORKERS]]
 */
#define _GNU_SOURCE /* sched_setaffinity */
#define BENCH_NO_BLAS
#include "bench.h"

#include "net.h"

#include "net/inside.h"

#include <kofn/net.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#define SECONDS 3.0
#define SILENCE 0.8  /* of the coordinator, seconds */
#define PATIENCE 6.4 /* of workers, eight times that */
#define BEATS 3

static int workers = 1000;

/* ---- workers ------------------------------------------------------------- */

static void greet(int fd)
{
    unsigned char frame[KF_HEADER + sizeof(kf_greeting)] = {KF_HELLO};
    kf_greeting g = {.magic = KF_MAGIC};

    memcpy(g.magic, KF_MAGIC, sizeof g.magic);
    kf_net_put_number(g.silence, (uint64_t)(PATIENCE * 1e9), 8);
    kf_net_put_number(g.window, 32 << 20, 8);
    kf_net_put_number(g.urgent, 8 << 20, 8);
    kf_net_put_number(frame + 2, sizeof g, 2);
    memcpy(frame + KF_HEADER, &g, sizeof g);
    write_all(fd, frame, sizeof frame);
}

/* Sends heartbeats in turn and ignores what comes. */
static void workers_life(const char *address)
{
    const char *port = strrchr(address, ':') + 1;
    double each = SILENCE / BEATS / workers, next;
    int *fd = need((size_t)workers * sizeof *fd);
    char junk[256];

    for (int i = 0; i < workers; i++) {
        fd[i] = plain_to(port);
        if (*address != ':')
            greet(fd[i]);
        fcntl(fd[i], F_SETFL, O_NONBLOCK);
    }
    next = now();
    for (int i = 0;; i = (i + 1) % workers, next += each) {
        write_all(fd[i], "B", 1);
        while (read(fd[i], junk, sizeof junk) > 0)
            ;
        while (now() < next)
            usleep(200);
    }
}

/* ---- the transport ------------------------------------------------------- */

typedef struct idle {
    double share, bytes; /* of a core; per connection */
} idle;

static double resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long all, here = 0;

    must(f && fscanf(f, "%ld %ld", &all, &here) == 2, "statm");
    fclose(f);
    return (double)here * (double)sysconf(_SC_PAGESIZE);
}

static void wait_until(kofn_transport *t, double end, int *came)
{
    kofn_packet p;

    while (now() < end && *came < workers)
        *came += !t->wait(t, KOFN_SECOND / 10, &p) && p.what == KOFN_CAME;
    while (now() < end && *came >= workers)
        must(t->wait(t, KOFN_SECOND / 10, &p) == KOFN_AGAIN, "one is lost");
}

static idle ours(void)
{
    const kofn_net_options o = KOFN_NET_OPTIONS_INIT;
    double before = resident(), cpu, t;
    kofn_transport *hub;
    int came = 0;
    idle is;
    pid_t pid;

    must(!kofn_net_listen(&hub, "tcp://127.0.0.1:*", &o), "listen");
    pid = child(workers_life, kofn_net_endpoint(hub));
    for (double end = now() + 60; came < workers && now() < end;)
        wait_until(hub, now() + 1, &came);
    must(came == workers, "they come");
    wait_until(hub, now() + 2 * SILENCE, &came);
    is.bytes = (resident() - before) / workers;
    cpu = cpu_now();
    t = now();
    wait_until(hub, t + SECONDS, &came);
    is.share = (cpu_now() - cpu) / (now() - t);
    end(pid);
    hub->close(hub, 0);
    return is;
}

/* ---- a bare loop --------------------------------------------------------- */

/* Reads what comes until `end`. */
static void bare_loop(int at, double end)
{
    struct epoll_event e[64];
    char beat[256];

    while (now() < end)
        for (int n = epoll_wait(at, e, 64, 100); n-- > 0;)
            must(read(e[n].data.fd, beat, sizeof beat) > 0, "beat");
}

static idle bare(void)
{
    char port[20] = ":";
    int l = plain_listen(port + 1), at = epoll_create1(EPOLL_CLOEXEC);
    int *fd = need((size_t)workers * sizeof *fd);
    pid_t pid = child(workers_life, port);
    double cpu, t;
    idle is = {0};

    for (int i = 0; i < workers; i++) {
        struct epoll_event e = {.events = EPOLLIN};

        e.data.fd = fd[i] = accept(l, NULL, NULL);
        must(fd[i] >= 0 && !epoll_ctl(at, EPOLL_CTL_ADD, fd[i], &e), "accept");
    }
    bare_loop(at, now() + SILENCE);
    cpu = cpu_now();
    t = now();
    bare_loop(at, t + SECONDS);
    is.share = (cpu_now() - cpu) / (now() - t);
    end(pid);
    for (int i = 0; i < workers; i++)
        close(fd[i]);
    close(at);
    close(l);
    free(fd);
    return is;
}

int main(int argc, char **argv)
{
    static double share[MOST], plain[MOST], bytes[MOST];
    int rounds = argc > 1 ? atoi(argv[1]) : 3;
    struct rlimit files;

    workers = argc > 2 ? atoi(argv[2]) : workers;
    must(rounds >= 1 && rounds <= MOST, "rounds: 1 to 101");
    must(workers >= 1 && workers <= 20000, "workers: 1 to 20000");
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    must(files.rlim_cur > (rlim_t)workers + 64, "descriptors: ulimit -n");
    for (int i = 0; i < rounds; i++) {
        idle is = ours();

        share[i] = is.share;
        bytes[i] = is.bytes;
        plain[i] = bare().share;
    }
    printf("%d rounds; %d idle workers over TCP\n\n", rounds, workers);
    printf("kofn       %6.2f %% of a core, %.1f KiB each\n",
           100 * turn_median(share, rounds), turn_median(bytes, rounds) / 1024);
    printf("bare epoll %6.2f %% of a core; ratio %.2f\n",
           100 * turn_median(plain, rounds), turn_ratio(share, plain, rounds));
    figure(turn_median(share, rounds), "", "less", "core of %d idle workers",
           workers);
    figure(turn_ratio(share, plain, rounds), "", "less",
           "idle workers against a bare loop");
    return 0;
}
