/* transport_bench.c -- the ZeroMQ transport against a plain socket.
 *
 *     transport_bench [ROUNDS [MIB]]
 *
 * Two processes on the loopback.  Bulk: messages of 8 MiB, or as many as are
 * said, from one into the memory of the other, where a byte of each page is
 * read, in bytes a second, and the processor time that both ends take; a plain
 * TCP socket that is read into one buffer of that size is the measure.
 * Round trip: 100 bytes there and back, one at a time; the measures are a
 * plain socket and a bare pair of ZeroMQ sockets.  Each round measures all of
 * them one after the other; shown are medians, and medians of the ratios of
 * one round.
 *
 * Under a flood, connections are made to the port and sent junk, 1000 a second
 * or as fast as one process can, while trips of 100 bytes and bulk are measured, encrypted; also
 * while the same flood goes to a port of another process, for it keeps a core
 * busy wherever it goes.
 */
#define BENCH_NO_BLAS
#include "bench.h"

#include "net.h"

#include <kofn/zmq.h>

#include <zmq.h>

#define TOTAL 256 /* MiB that are sent at a time */
#define TRIPS 1000
#define SMALL 100
#define BOUND 1000 /* connections a second */

static size_t bulk_bytes;
static int messages;
static unsigned char *body;

static unsigned touch(const unsigned char *p, size_t n)
{
    unsigned sum = 0;

    for (size_t i = 0; i < n; i += 4096)
        sum += p[i];
    return sum;
}

/* Bytes a second, and seconds of the processor for each. */
typedef struct pace {
    double speed, cost;
} pace;

/* Since a clock showed t and the processors' cpu. */
static pace pace_since(double t, double cpu, pid_t pid)
{
    double bytes = messages * (double)bulk_bytes;

    return (pace){bytes / (now() - t), (cpu_both(pid) - cpu) / bytes};
}

/* ---- a plain socket -------------------------------------------------------
 *
 * It sends the messages when it gets "b", and otherwise sends back what it
 * gets, until it is killed. */

static void plain_life(const char *port)
{
    int fd = plain_to(port);
    char small[SMALL];

    for (;;) {
        read_all(fd, small, sizeof small);
        if (small[0] != 'b')
            write_all(fd, small, sizeof small);
        else
            for (int i = 0; i < messages; i++)
                write_all(fd, body, bulk_bytes);
    }
}

static pace plain_bulk(int fd, pid_t pid)
{
    unsigned char *into = malloc(bulk_bytes);
    char small[SMALL] = "b";
    double t = now(), cpu = cpu_both(pid);
    unsigned sum = 0;
    pace p;

    write_all(fd, small, sizeof small);
    for (int i = 0; i < messages; i++) {
        read_all(fd, into, bulk_bytes);
        sum += touch(into, bulk_bytes);
    }
    p = pace_since(t, cpu, pid);
    must(sum != 1, "sum");
    free(into);
    return p;
}

static double plain_trip(int fd)
{
    char small[SMALL] = "t";
    double t = now();

    for (int i = 0; i < TRIPS; i++) {
        write_all(fd, small, sizeof small);
        read_all(fd, small, sizeof small);
    }
    return (now() - t) / TRIPS;
}

/* ---- bare ZeroMQ --------------------------------------------------------- */

static void bare_life(const char *address)
{
    void *context = zmq_ctx_new(), *s = zmq_socket(context, ZMQ_DEALER);
    char small[SMALL] = "t";

    must(zmq_connect(s, address) == 0, "zmq_connect");
    zmq_send(s, small, sizeof small, 0);
    for (;;) {
        zmq_recv(s, small, sizeof small, 0);
        zmq_send(s, small, sizeof small, 0);
    }
}

static double bare_trip(void)
{
    void *context = zmq_ctx_new(), *s = zmq_socket(context, ZMQ_ROUTER);
    char address[100], id[100], small[SMALL];
    size_t size = sizeof address;
    const int zero = 0;
    double t;
    pid_t pid;
    int n;

    must(zmq_bind(s, "tcp://127.0.0.1:*") == 0, "zmq_bind");
    zmq_getsockopt(s, ZMQ_LAST_ENDPOINT, address, &size);
    pid = child(bare_life, address);
    n = zmq_recv(s, id, sizeof id, 0);
    zmq_recv(s, small, sizeof small, 0);
    t = now();
    for (int i = 0; i < TRIPS; i++) {
        zmq_send(s, id, (size_t)n, ZMQ_SNDMORE);
        zmq_send(s, small, sizeof small, 0);
        zmq_recv(s, id, sizeof id, 0);
        zmq_recv(s, small, sizeof small, 0);
    }
    t = (now() - t) / TRIPS;
    end(pid);
    zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof zero);
    zmq_close(s);
    zmq_ctx_term(context);
    return t;
}

/* ---- the transport ------------------------------------------------------- */

static kofn_zmq_options options = {.silence = 10 * KOFN_SECOND};

static void ours_life(const char *address)
{
    kofn_transport *t;
    kofn_peer peer;

    must(!kofn_zmq_connect(&t, address, &options), "connect");
    peer = packet(t).peer;
    for (;;) {
        kofn_packet p = packet(t);

        if (p.head[0] != 'b') {
            deliver(t, peer, p.head, p.head_bytes);
            continue;
        }
        for (int i = 0; i < messages;) {
            kofn_status st =
                t->send(t, peer, "b", 1, body, bulk_bytes, false, NULL, NULL);

            must(st >= 0, "send");
            i += st == KOFN_OK;
            if (st == KOFN_AGAIN)
                t->wait(t, KOFN_SECOND, &p);
        }
    }
}

typedef struct line {
    kofn_transport *t;
    kofn_peer peer;
    pid_t pid;
} line;

static line ours_open(const char *address)
{
    line l;

    must(!kofn_zmq_listen(&l.t, address, &options), "listen");
    l.pid = child(ours_life, kofn_zmq_endpoint(l.t));
    l.peer = packet(l.t).peer;
    return l;
}

static void ours_close(line *l)
{
    end(l->pid);
    l->t->close(l->t, 0);
}

static pace ours_bulk(line *l)
{
    double t = now(), cpu = cpu_both(l->pid);
    unsigned sum = 0;
    pace is;

    deliver(l->t, l->peer, "b", 1);
    for (int i = 0; i < messages; i++) {
        kofn_packet p = packet(l->t);

        must(p.what == KOFN_PACKET && p.body_bytes == bulk_bytes, "bulk");
        sum += touch(p.body, bulk_bytes);
        l->t->release(l->t, p.own);
    }
    is = pace_since(t, cpu, l->pid);
    must(sum != 1, "sum");
    return is;
}

static double ours_trip(line *l)
{
    char small[SMALL] = "t";
    double t = now();

    for (int i = 0; i < TRIPS; i++) {
        deliver(l->t, l->peer, small, sizeof small);
        must(packet(l->t).what == KOFN_PACKET, "trip");
    }
    return (now() - t) / TRIPS;
}

/* ---- a flood ------------------------------------------------------------- */

static void pour(const char *address, double each)
{
    double next = now();
    char junk[200];

    memset(junk, 0xff, sizeof junk);
    for (;; next += each) {
        int fd = plain_to(strrchr(address, ':') + 1);

        if (write(fd, junk, sizeof junk) < 0) {
            /* it was turned away */
        }
        close(fd);
        while (now() < next)
            usleep(100);
    }
}

static void flood_life(const char *address)
{
    pour(address, 0);
}

static void bounded_life(const char *address)
{
    pour(address, 1.0 / BOUND);
}

/* A port that takes a flood as cheaply as can be: the flood itself costs the
 * machine as much. */
static void sink_life(const char *fd)
{
    char junk[200];
    int l = atoi(fd);

    for (;;) {
        int in = accept(l, NULL, NULL);

        if (read(in, junk, sizeof junk) < 0) {
            /* whatever it was */
        }
        close(in);
    }
}

static pid_t sink_open(char *address, size_t room)
{
    char port[16], fd[16];
    int l = plain_listen(port);
    pid_t pid;

    snprintf(address, room, "tcp://127.0.0.1:%s", port);
    snprintf(fd, sizeof fd, "%d", l);
    pid = child(sink_life, fd);
    close(l);
    return pid;
}

/* ---- report -------------------------------------------------------------- */

enum { PLAIN, OURS, IPC, CURVE, BOUNDED, BESIDE, FLOODED, KINDS };

static double bulk[KINDS][MOST], cost[KINDS][MOST], trip[KINDS][MOST];
static double bare[MOST];

static void keep(int kind, int i, pace p)
{
    bulk[kind][i] = p.speed;
    cost[kind][i] = p.cost;
}

static void measure_flooded(int i, int kind, line *l,
                            void (*life)(const char *), const char *address)
{
    pid_t pid = child(life, address);

    keep(kind, i, ours_bulk(l));
    trip[kind][i] = ours_trip(l);
    end(pid);
}

static void measure(int i, const char *keys)
{
    static const char *const address[] = {NULL, "tcp://127.0.0.1:*",
                                          "ipc:///tmp/kofn-bench.sock",
                                          "tcp://127.0.0.1:*", NULL};
    int fd;
    pid_t pid = plain_open(plain_life, &fd);

    keep(PLAIN, i, plain_bulk(fd, pid));
    trip[PLAIN][i] = plain_trip(fd);
    end(pid);
    close(fd);
    bare[i] = bare_trip();
    for (int kind = OURS; kind <= CURVE; kind++) {
        line l;

        options.keys = kind == CURVE ? keys : NULL;
        l = ours_open(address[kind]);
        keep(kind, i, ours_bulk(&l));
        trip[kind][i] = ours_trip(&l);
        if (kind == CURVE) {
            char elsewhere[40];
            pid_t sink = sink_open(elsewhere, sizeof elsewhere);

            measure_flooded(i, BESIDE, &l, flood_life, elsewhere);
            end(sink);
            measure_flooded(i, FLOODED, &l, flood_life, kofn_zmq_endpoint(l.t));
            measure_flooded(i, BOUNDED, &l, bounded_life,
                            kofn_zmq_endpoint(l.t));
        }
        ours_close(&l);
    }
}

static void table(const char *const *name, int rounds)
{
    printf("%-18s %8s %8s %8s %8s %10s %8s %8s\n", "", "MB/s", "ratio",
           "cpu s/GB", "ratio", "us/trip", "/plain", "/zmq");
    for (int k = 0; k < KINDS; k++) {
        printf("%-18s %8.0f %8.2f %8.3f %8.2f %10.1f %8.2f %8.2f\n", name[k],
               turn_median(bulk[k], rounds) / 1e6,
               turn_ratio(bulk[k], bulk[PLAIN], rounds),
               turn_median(cost[k], rounds) * 1e9,
               turn_ratio(cost[k], cost[PLAIN], rounds),
               turn_median(trip[k], rounds) * 1e6,
               turn_ratio(trip[k], trip[PLAIN], rounds),
               turn_ratio(trip[k], bare, rounds));
        figure(turn_ratio(bulk[k], bulk[PLAIN], rounds), "", "more", "bulk, %s",
               name[k] + strspn(name[k], " "));
        figure(turn_ratio(cost[k], cost[PLAIN], rounds), "", "less",
               "processor time, %s", name[k] + strspn(name[k], " "));
        figure(turn_ratio(trip[k], trip[PLAIN], rounds), "", "less",
               "round trip, %s", name[k] + strspn(name[k], " "));
    }
    printf("%-18s %35s %10.1f %8.2f %8.2f\n", "bare ZeroMQ", "",
           turn_median(bare, rounds) * 1e6,
           turn_ratio(bare, trip[PLAIN], rounds), 1.0);
}

static void compare(const char *what, int kind, int with, int rounds)
{
    printf("%s%s", kind == BOUNDED ? "\n" : "", what);
    printf(": bulk %.2f, trips %.2f\n",
           turn_ratio(bulk[kind], bulk[with], rounds),
           turn_ratio(trip[kind], trip[with], rounds));
}

int main(int argc, char **argv)
{
    static const char *const name[] = {
        "plain TCP socket", "kofn, TCP",       "kofn, Unix socket",
        "kofn, encrypted",  "  bounded flood", "  flood elsewhere",
        "  flood"};
    static const char *const made[] = {"coordinator.secret", "worker.secret",
                                       "coordinator.public", "worker.public"};
    char keys[] = "/tmp/kofn-bench-XXXXXX", path[100];
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    int mib = argc > 2 ? atoi(argv[2]) : 8;

    must(rounds >= 1 && rounds <= MOST, "rounds: 1 to 101");
    must(mib >= 1 && mib <= 64, "MiB: 1 to 64");
    bulk_bytes = (size_t)mib << 20;
    messages = TOTAL / mib;
    keep_memory();
    must(mkdtemp(keys) != NULL && !kofn_zmq_keygen(keys), "keys");
    body = malloc(bulk_bytes);
    must(body != NULL, "memory");
    memset(body, 7, bulk_bytes);
    for (int i = 0; i < rounds; i++)
        measure(i, keys);
    printf("%d rounds; %zu MiB messages, and %d bytes there and back\n\n",
           rounds, bulk_bytes >> 20, SMALL);
    table(name, rounds);
    compare("1000 connections a second", BOUNDED, CURVE, rounds);
    compare("as many as can be", FLOODED, CURVE, rounds);
    compare("... of as many elsewhere", FLOODED, BESIDE, rounds);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", keys, made[i]);
        unlink(path);
    }
    rmdir(keys);
    return 0;
}
