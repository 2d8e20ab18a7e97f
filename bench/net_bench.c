/* net_bench.c -- the transport over TCP and Unix sockets against bare sockets.
 *
 * Two processes. Bulk: messages of MIB MiB (8) go from one into the memory of
 * the other, which reads one byte of each page. Figures are bytes per second
 * and the processor time of both ends. The reference is a bare socket of the
 * same kind, read into one buffer of that size. Round trip: 100 bytes there
 * and back, one at a time, against the bare socket. Each round measures all of
 * them in turn. Prints medians, and medians of the ratios within a round.
 *
 * With keys: the same over TLS, against TCP without. Also measures how fast
 * one core encrypts and decrypts AES-GCM in records of 16 KiB, the limit of
 * TLS in one thread at either end.
 *
 * Under a flood: connections are made to the port and send junk, 1000 per
 * second or as fast as one process can, while trips and bulk are measured. The
 * same flood also goes to a port of another process, since it keeps a core
 * busy anyway. These measurements use any cores and begin after a while: a
 * flood is worst until the system's queue of pending connections is full.
 *
 *     net_bench [ROUNDS [MIB]]
 */
#define _GNU_SOURCE /* sched_setaffinity */
#define BENCH_NO_BLAS
#include "bench.h"

#include "net.h"

#include <kofn/net.h>

#include <openssl/evp.h>
#include <sys/un.h>

#define TOTAL 256 /* MiB sent at a time */
#define WARM 4    /* repetitions before measuring */
#define TRIPS 1000
#define SMALL 100
#define BOUND 1000 /* connections per second */

static placing placed;
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

/* Bytes per second, and processor seconds per byte. */
typedef struct pace {
    double speed, cost;
} pace;

/* Returns the pace since wall clock t and processor time cpu. */
static pace pace_since(double t, double cpu, pid_t pid)
{
    double bytes = messages * (double)bulk_bytes;

    return (pace){bytes / (now() - t), (cpu_both(pid) - cpu) / bytes};
}

/* ---- a plain socket -------------------------------------------------------
 *
 * Sends the messages when it receives "b", else echoes what it receives, until
 * it is killed. */

static void plain_talk(int fd)
{
    char small[SMALL];

    place(placed, true);
    for (;;) {
        read_all(fd, small, sizeof small);
        if (small[0] != 'b')
            write_all(fd, small, sizeof small);
        else
            for (int i = 0; i < messages; i++)
                write_all(fd, body, bulk_bytes);
    }
}

static void plain_life(const char *port)
{
    plain_talk(plain_to(port));
}

static void unpaced_life(const char *port)
{
    plain_talk(unpaced_to(port));
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

/* Runs the same over a pair of Unix sockets. */
static void pair_life(const char *fd)
{
    plain_talk(atoi(fd));
}

static pid_t pair_open(int *fd)
{
    char text[16];
    int both[2];
    pid_t pid;

    must(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0, "socketpair");
    snprintf(text, sizeof text, "%d", both[1]);
    pid = child(pair_life, text);
    close(both[1]);
    *fd = both[0];
    return pid;
}

/* ---- the transport ------------------------------------------------------- */

static kofn_net_options options = {.size = sizeof(kofn_net_options),
                                   .silence = 10 * KOFN_SECOND};

static void ours_life(const char *address)
{
    kofn_transport *t;
    kofn_peer peer;

    place(placed, true);
    must(!kofn_net_connect(&t, address, &options), "connect");
    peer = packet(t).peer;
    for (;;) {
        kofn_packet p = packet(t);

        if (p.head[0] != 'b') {
            deliver(t, peer, p.head, p.head_bytes);
            continue;
        }
        for (int i = 0; i < messages;) {
            kofn_status st =
                t->send(t, peer, "b", 1,
                        &(kofn_lent){.data = body, .bytes = bulk_bytes}, false);

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

    must(!kofn_net_listen(&l.t, address, &options), "listen");
    l.pid = child(ours_life, kofn_net_endpoint(l.t));
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

    place(ANYWHERE, true);
    memset(junk, 0xff, sizeof junk);
    for (;; next += each) {
        int fd = plain_to(strrchr(address, ':') + 1);

        if (write(fd, junk, sizeof junk) < 0) {
            /* the connection was refused */
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

/* A port that takes a flood as cheaply as possible: the reference for the
 * flood's own cost. */
static void sink_life(const char *fd)
{
    char junk[200];
    int l = atoi(fd);

    place(ANYWHERE, true);
    for (;;) {
        int in = accept(l, NULL, NULL);

        if (read(in, junk, sizeof junk) < 0) {
            /* ignores errors */
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

/* ---- AES-GCM alone ------------------------------------------------------- */

#define RECORD (16 << 10)

enum { AES128, AES256, CIPHERS };

static double gcm[CIPHERS][MOST];

/* Returns the bytes per second that one thread encrypts. */
static double gcm_speed(const EVP_CIPHER *cipher)
{
    static unsigned char out[RECORD + 16], key[32], iv[12], tag[16];
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    double t = now();
    int n;

    must(c && EVP_EncryptInit_ex2(c, cipher, key, iv, NULL), "AES-GCM");
    for (size_t at = 0; at < ((size_t)TOTAL << 20); at += RECORD) {
        must(
            EVP_EncryptInit_ex2(c, NULL, NULL, iv, NULL) &&
                EVP_EncryptUpdate(c, out, &n, body + at % bulk_bytes, RECORD) &&
                EVP_EncryptFinal_ex(c, out + n, &n) &&
                EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, 16, tag),
            "AES-GCM");
        iv[0]++;
    }
    EVP_CIPHER_CTX_free(c);
    return ((size_t)TOTAL << 20) / (now() - t);
}

/* ---- report -------------------------------------------------------------- */

enum {
    TCP,
    UNPACED,
    UNIX,
    OURS,
    IPC,
    KEYS,
    FREE,
    BOUNDED,
    BESIDE,
    FLOODED,
    KINDS
};

static const int against[KINDS] = {TCP,  TCP,  UNIX, UNPACED, UNIX,
                                   OURS, FREE, FREE, FREE,    FREE};
static double bulk[KINDS][MOST], cost[KINDS][MOST], trip[KINDS][MOST];

static void keep(int kind, int i, pace p)
{
    bulk[kind][i] = p.speed;
    cost[kind][i] = p.cost;
}

/* Measures connections that have reached their speed. */
static pace warm_bulk(line *l)
{
    for (int i = 0; i < WARM; i++)
        (void)ours_bulk(l);
    return ours_bulk(l);
}

static void measure_flooded(int i, int kind, line *l,
                            void (*life)(const char *), const char *address)
{
    pid_t pid = child(life, address);

    keep(kind, i, warm_bulk(l));
    trip[kind][i] = ours_trip(l);
    end(pid);
}

static void measure_plain(int i, int kind)
{
    int fd;
    pid_t pid = kind == UNIX
                    ? pair_open(&fd)
                    : plain_open(kind == TCP ? plain_life : unpaced_life, &fd);

    if (placed == ONE_CORE) {
        trip[kind][i] = plain_trip(fd);
    } else {
        for (int j = 0; j < WARM; j++)
            (void)plain_bulk(fd, pid);
        keep(kind, i, plain_bulk(fd, pid));
    }
    end(pid);
    close(fd);
}

static void measure_ours(int i, int kind, const char *address)
{
    line l = ours_open(address);

    if (placed == ONE_CORE)
        trip[kind][i] = ours_trip(&l);
    else
        keep(kind, i, warm_bulk(&l));
    ours_close(&l);
}

static void measure_floods(int i)
{
    char elsewhere[40];
    pid_t sink;
    line l;

    place(placed = ANYWHERE, false);
    l = ours_open("tcp://127.0.0.1:*");
    keep(FREE, i, warm_bulk(&l));
    trip[FREE][i] = ours_trip(&l);
    sink = sink_open(elsewhere, sizeof elsewhere);
    measure_flooded(i, BESIDE, &l, flood_life, elsewhere);
    end(sink);
    measure_flooded(i, FLOODED, &l, flood_life, kofn_net_endpoint(l.t));
    measure_flooded(i, BOUNDED, &l, bounded_life, kofn_net_endpoint(l.t));
    ours_close(&l);
}

static char keys[] = "/tmp/kofn-bench-XXXXXX";

static void clear_keys(void)
{
    static const char *const name[] = {"coordinator.key", "coordinator.crt",
                                       "worker.key", "worker.crt"};
    char path[64];

    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        snprintf(path, sizeof path, "%s/%s", keys, name[i]);
        unlink(path);
    }
    rmdir(keys);
}

static void measure(int i)
{
    for (placed = ONE_CORE; placed <= TWO_CORES; placed++) {
        place(placed, false);
        measure_plain(i, TCP);
        measure_plain(i, UNPACED);
        measure_plain(i, UNIX);
        measure_ours(i, OURS, "tcp://127.0.0.1:*");
        measure_ours(i, IPC, "ipc:///tmp/kofn-bench.sock");
        options.keys = keys;
        measure_ours(i, KEYS, "tcp://127.0.0.1:*");
        options.keys = NULL;
    }
    measure_floods(i);
    gcm[AES128][i] = gcm_speed(EVP_aes_128_gcm());
    gcm[AES256][i] = gcm_speed(EVP_aes_256_gcm());
}

static void table(const char *const *name, int rounds)
{
    printf("%-18s %8s %8s %8s %8s %10s %8s\n", "", "MB/s", "ratio", "cpu s/GB",
           "ratio", "us/trip", "ratio");
    for (int k = 0; k < KINDS; k++) {
        int of = against[k];

        printf("%-18s %8.0f %8.2f %8.3f %8.2f %10.1f %8.2f\n", name[k],
               turn_median(bulk[k], rounds) / 1e6,
               turn_ratio(bulk[k], bulk[of], rounds),
               turn_median(cost[k], rounds) * 1e9,
               turn_ratio(cost[k], cost[of], rounds),
               turn_median(trip[k], rounds) * 1e6,
               turn_ratio(trip[k], trip[of], rounds));
        figure(turn_ratio(bulk[k], bulk[of], rounds), "", "more", "bulk, %s",
               name[k] + strspn(name[k], " "));
        figure(turn_ratio(cost[k], cost[of], rounds), "", "less",
               "processor time, %s", name[k] + strspn(name[k], " "));
        figure(turn_ratio(trip[k], trip[of], rounds), "", "less",
               "round trip, %s", name[k] + strspn(name[k], " "));
    }
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
    static const char *const name[] = {"bare TCP socket",   "  unpaced",
                                       "bare Unix socket",  "kofn, TCP",
                                       "kofn, Unix socket", "kofn, TCP, keys",
                                       "kofn, any cores",   "  bounded flood",
                                       "  flood elsewhere", "  flood"};
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    int mib = argc > 2 ? atoi(argv[2]) : 8;

    must(rounds >= 1 && rounds <= MOST, "rounds: 1 to 101");
    must(mib >= 1 && mib <= 64, "MiB: 1 to 64");
    bulk_bytes = (size_t)mib << 20;
    messages = TOTAL / mib;
    keep_memory();
    body = malloc(bulk_bytes);
    must(body != NULL, "memory");
    memset(body, 7, bulk_bytes);
    must(mkdtemp(keys) != NULL, "a folder for keys");
    check(kofn_net_keygen(keys, NULL), "keygen");
    for (int i = 0; i < rounds; i++)
        measure(i);
    clear_keys();
    printf("%d rounds; %zu MiB messages, and %d bytes there and back\n\n",
           rounds, bulk_bytes >> 20, SMALL);
    table(name, rounds);
    for (int k = 0; k < CIPHERS; k++)
        printf("AES-%d-GCM alone: %.0f MB/s; bulk with keys %.2f of it\n",
               k == AES128 ? 128 : 256, turn_median(gcm[k], rounds) / 1e6,
               turn_ratio(bulk[KEYS], gcm[k], rounds));
    compare("1000 connections a second", BOUNDED, FREE, rounds);
    compare("as many as can be", FLOODED, FREE, rounds);
    compare("... of as many elsewhere", FLOODED, BESIDE, rounds);
    return 0;
}
