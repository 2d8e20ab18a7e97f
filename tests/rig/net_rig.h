/* net_rig.h -- ends of the transport over TCP and Unix sockets in tests. */
#ifndef NET_RIG_H
#define NET_RIG_H

#include "support.h"

#include "net/inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MILLI INT64_C(1000000)
#define MEGA ((size_t)1 << 20)
#define LIMIT (300 * KOFN_SECOND) /* a test that takes longer hangs */

static char unix_socket[64]; /* builds are tested side by side */
static const char *const addresses[] = {"tcp://127.0.0.1:*", unix_socket};

static inline void name_socket(void)
{
    snprintf(unix_socket, sizeof unix_socket, "ipc:///tmp/kofn-net-%ld.sock",
             (long)getpid());
}

/* True if this machine has an IPv6 loopback. */
static inline bool has_v6(void)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6,
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool yes = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;

    if (fd >= 0)
        close(fd);
    return yes;
}

static inline void nap(kofn_time t)
{
    const struct timespec s = {t / KOFN_SECOND, t % KOFN_SECOND};

    nanosleep(&s, NULL);
}

/* Under a sanitizer and on a loaded machine threads may sleep for long. Only
 * the tests of the failure timeout are strict. */
static const kofn_net_options patient = {.size = sizeof(kofn_net_options),
                                         .silence = 10 * KOFN_SECOND};

static inline kofn_transport *listener(const char *address,
                                       const kofn_net_options *o)
{
    kofn_transport *t;

    assert_ok(kofn_net_listen(&t, address, o));
    return t;
}

static inline kofn_transport *dialler(const kofn_transport *l,
                                      const kofn_net_options *o)
{
    kofn_transport *t;

    assert_ok(kofn_net_connect(&t, kofn_net_endpoint(l), o));
    return t;
}

/* Returns the next arrival at t. `other`, if not NULL, is served meanwhile. */
static inline kofn_packet next_of(kofn_transport *t, kofn_transport *other)
{
    kofn_time end = kf_clock() + LIMIT;
    kofn_packet p;
    kofn_status st;

    do {
        if (other) {
            st = other->wait(other, 0, &p);
            if (st != KOFN_AGAIN)
                fail_msg("the other side got %d (%s)", st, kofn_errmsg());
        }
        st = t->wait(t, other ? MILLI : 100 * MILLI, &p);
    } while (st == KOFN_AGAIN && kf_clock() < end);
    if (st)
        fail_msg("nothing comes: %s; %s", kofn_strerror(st),
                 kofn_net_trouble(t));
    return p;
}

static inline kofn_peer came(kofn_transport *t, kofn_transport *other)
{
    kofn_packet p = next_of(t, other);

    assert_int_equal(p.what, KOFN_CAME);
    return p.peer;
}

typedef struct pair {
    kofn_transport *a, *b; /* listens, dials */
    kofn_peer of_b, of_a;  /* the numbers of b at a, and of a at b */
} pair;

static inline pair meet(const char *address, const kofn_net_options *o)
{
    pair m;

    m.a = listener(address, o);
    m.b = dialler(m.a, o);
    m.of_b = came(m.a, NULL); /* the other end's thread does its part */
    m.of_a = came(m.b, NULL);
    return m;
}

static inline void part(pair *m)
{
    m->b->close(m->b, 0);
    m->a->close(m->a, 0);
}

/* Counts a lent body that was given back. */
static inline void count_done(void *ud)
{
    atomic_fetch_add((atomic_long *)ud, 1);
}

static inline void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static inline void say(kofn_transport *t, kofn_peer peer, const char *text)
{
    assert_ok(t->send(t, peer, text, strlen(text), NULL, false));
}

static inline void hear(kofn_transport *t, kofn_peer peer, const char *text)
{
    kofn_packet p = next_of(t, NULL);

    assert_int_equal(p.what, KOFN_PACKET);
    assert_int_equal(p.peer, peer);
    assert_int_equal(p.head_bytes, strlen(text));
    assert_memory_equal(p.head, text, p.head_bytes);
    t->release(t, p.own);
}

static inline void went(kofn_transport *t, kofn_peer peer)
{
    kofn_packet p = next_of(t, NULL);

    assert_int_equal(p.what, KOFN_WENT);
    assert_int_equal(p.peer, peer);
}

/* Returns the largest memory that this process has held at once, in KiB. */
static inline long memory(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss; /* KiB */
}

/* ThreadSanitizer keeps four bytes for each byte that is touched. It gives
 * them back at any time. */
static inline void grew_less(long grown, long most)
{
#ifndef __SANITIZE_THREAD__
    assert_true(grown < most);
#else
    (void)grown;
    (void)most;
#endif
}

/* ---- a peer whose frames the test writes --------------------------------- */

/* Connects a socket to the address of a listener. */
static inline int plain(const char *address)
{
    char host[256];
    const char *port;
    const struct timeval patience = {60, 0};
    kf_place at;
    int fd;

    assert_ok(kf_place_there(address, &at, host, &port));
    fd = socket(at.at.ss_family, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (connect(fd, (struct sockaddr *)&at.at, at.bytes))
        assert_true(errno == EAGAIN || errno == EINTR);
    return fd;
}

typedef struct frame_of {
    int word, channel;
    const void *head; /* NULL: none is sent, even if head_bytes > 0 */
    size_t head_bytes, piece;
    uint64_t number;
} frame_of;

/* Lays out the header and head of a frame as they are sent. Returns their
 * bytes. */
static inline size_t lay_out(unsigned char out[KF_HEADER + KOFN_HEAD_MAX],
                             const frame_of *f)
{
    out[0] = (unsigned char)f->word;
    out[1] = (unsigned char)f->channel;
    kf_net_put_number(out + 2, f->head_bytes, 2);
    kf_net_put_number(out + 4, f->piece, 4);
    kf_net_put_number(out + 8, f->number, 8);
    if (f->head)
        memcpy(out + KF_HEADER, f->head, f->head_bytes);
    return KF_HEADER + (f->head ? f->head_bytes : 0);
}

/* Sends the header and head of a frame. The body follows. */
static inline bool put_frame(int fd, int word, int channel, const void *head,
                             size_t head_bytes, size_t piece, uint64_t number)
{
    const frame_of f = {word, channel, head, head_bytes, piece, number};
    unsigned char bytes[KF_HEADER + KOFN_HEAD_MAX];
    size_t n = lay_out(bytes, &f);

    return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static inline kf_greeting greeting_of(const unsigned char *node)
{
    kf_greeting g = {.magic = KF_MAGIC};

    memcpy(g.magic, KF_MAGIC, sizeof g.magic);
    if (node)
        memcpy(g.node, node, sizeof g.node);
    kf_net_put_number(g.silence, (uint64_t)(100 * KOFN_SECOND), 8);
    kf_net_put_number(g.window, 32 * MEGA, 8);
    kf_net_put_number(g.urgent, 8 * MEGA, 8);
    return g;
}

static inline bool hello(int fd, const unsigned char *node)
{
    const kf_greeting g = greeting_of(node);

    return put_frame(fd, KF_HELLO, 0, &g, sizeof g, 0, 0);
}

/* True if the other end hangs up, whatever it says before. */
static inline bool ends(int fd)
{
    char bytes[4096];
    ssize_t n;

    do
        n = recv(fd, bytes, sizeof bytes, 0); /* plain() sets a time limit */
    while (n > 0);
    return n == 0 || errno == ECONNRESET;
}

#endif
