/* zmq_rig.h -- ends of the ZeroMQ transport in tests. */
#ifndef ZMQ_RIG_H
#define ZMQ_RIG_H

#include "support.h"

#include "zmq/inside.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define MILLI INT64_C(1000000)
#define MEGA ((size_t)1 << 20)
#define LIMIT (300 * KOFN_SECOND) /* what takes longer hangs */

static char unix_socket[64]; /* builds are tested side by side */
static const char *const addresses[] = {"tcp://127.0.0.1:*", unix_socket};

static inline void name_socket(void)
{
    snprintf(unix_socket, sizeof unix_socket, "ipc:///tmp/kofn-zmq-%ld.sock",
             (long)getpid());
}

static inline void nap(kofn_time t)
{
    const struct timespec s = {t / KOFN_SECOND, t % KOFN_SECOND};

    nanosleep(&s, NULL);
}

/* Under a sanitizer and on a loaded machine threads may sleep for long; only
 * the tests of silence itself are strict. */
static const kofn_zmq_options patient = {.silence = 10 * KOFN_SECOND};

static inline kofn_transport *listener(const char *address,
                                       const kofn_zmq_options *o)
{
    kofn_transport *t;

    assert_ok(kofn_zmq_listen(&t, address, o));
    return t;
}

static inline kofn_transport *dialler(const kofn_transport *l,
                                      const kofn_zmq_options *o)
{
    kofn_transport *t;

    assert_ok(kofn_zmq_connect(&t, kofn_zmq_endpoint(l), o));
    return t;
}

/* The next arrival at t; the others are kept going meanwhile. */
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
                 kofn_zmq_trouble(t));
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
    kofn_peer of_b, of_a;  /* b's number at a */
} pair;

static inline pair meet(const char *address, const kofn_zmq_options *o)
{
    pair m;

    m.a = listener(address, o);
    m.b = dialler(m.a, o);
    m.of_b = came(m.a, m.b);
    m.of_a = came(m.b, m.a);
    return m;
}

static inline void part(pair *m)
{
    m->b->close(m->b, 0);
    m->a->close(m->a, 0);
}

static inline void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static inline void say(kofn_transport *t, kofn_peer peer, const char *text)
{
    assert_ok(t->send(t, peer, text, strlen(text), NULL, 0, false, NULL, NULL));
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

/* Keys in a folder of their own; dir ends in XXXXXX. */
static inline void make_keys(char *dir)
{
    assert_non_null(mkdtemp(dir));
    assert_ok(kofn_zmq_keygen(dir));
}

static inline void erase_keys(const char *dir)
{
    static const char *const names[] = {"coordinator.secret", "worker.secret",
                                        "coordinator.public", "worker.public"};
    char path[200];

    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* The most that this process has held at once, in KiB. */
static inline long memory(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss; /* KiB */
}

/* ThreadSanitizer remembers each byte that is touched with four of its own, and
 * gives them back when it likes. */
static inline void grew_less(long grown, long most)
{
#ifndef __SANITIZE_THREAD__
    assert_true(grown < most);
#else
    (void)grown;
    (void)most;
#endif
}

/* Workers made by hand: sockets of one context that say HELLO. */
static inline void *by_hand(void *context, const char *address, char channel,
                            const unsigned char *token)
{
    kf_greeting hello = {KF_MAGIC, KF_HELLO, {0}, {0}};
    char id[KF_ID] = {'k', channel};
    void *s = zmq_socket(context, ZMQ_DEALER);
    const int zero = 0;

    assert_non_null(s);
    memcpy(id + 2, token, KF_TOKEN);
    zmq_setsockopt(s, ZMQ_ROUTING_ID, id, sizeof id);
    zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof zero);
    assert_int_equal(zmq_connect(s, address), 0);
    zmq_send(s, &hello, sizeof hello, 0);
    return s;
}

#endif
