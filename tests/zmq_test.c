/* zmq_test.c -- the ZeroMQ transport: packets, comings and goings, strangers.
 *
 * Peers that are to die, stop or come back are processes of their own.
 */
#include "support.h"

#include <kofn/zmq.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MILLI INT64_C(1000000)
#define LIMIT (20 * KOFN_SECOND) /* nothing here may take longer */

static kofn_time clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * KOFN_SECOND + t.tv_nsec;
}

static void nap(kofn_time t)
{
    const struct timespec s = {t / KOFN_SECOND, t % KOFN_SECOND};

    nanosleep(&s, NULL);
}

/* Under a sanitizer and on a loaded machine threads may sleep for long; only
 * the tests of silence itself are strict. */
static const kofn_zmq_options patient = {.silence = 10 * KOFN_SECOND};

static kofn_transport *listener(const char *address, const kofn_zmq_options *o)
{
    kofn_transport *t;

    assert_ok(kofn_zmq_listen(&t, address, o));
    return t;
}

static kofn_transport *dialler(const kofn_transport *l,
                               const kofn_zmq_options *o)
{
    kofn_transport *t;

    assert_ok(kofn_zmq_connect(&t, kofn_zmq_endpoint(l), o));
    return t;
}

/* The next arrival at t; the others are kept going meanwhile. */
static kofn_packet next_of(kofn_transport *t, kofn_transport *other)
{
    kofn_time end = clock_now() + LIMIT;
    kofn_packet p;
    kofn_status st;

    do {
        if (other) {
            st = other->wait(other, 0, &p);
            if (st != KOFN_AGAIN)
                fail_msg("the other side got %d (%s)", st, kofn_errmsg());
        }
        st = t->wait(t, other ? MILLI : 100 * MILLI, &p);
    } while (st == KOFN_AGAIN && clock_now() < end);
    if (st)
        fail_msg("nothing comes: %s; %s", kofn_strerror(st),
                 kofn_zmq_trouble(t));
    return p;
}

static kofn_peer came(kofn_transport *t, kofn_transport *other)
{
    kofn_packet p = next_of(t, other);

    assert_int_equal(p.what, KOFN_CAME);
    return p.peer;
}

typedef struct pair {
    kofn_transport *a, *b; /* listens, dials */
    kofn_peer of_b, of_a;  /* b's number at a */
} pair;

static pair meet(const char *address, const kofn_zmq_options *o)
{
    pair m;

    m.a = listener(address, o);
    m.b = dialler(m.a, o);
    m.of_b = came(m.a, m.b);
    m.of_a = came(m.b, m.a);
    return m;
}

static void part(pair *m)
{
    m->b->close(m->b, 0);
    m->a->close(m->a, 0);
}

static void count_done(void *ud)
{
    atomic_fetch_add((atomic_long *)ud, 1);
}

/* ---- order and sizes
 * ---------------------------------------------------------- */

static const char *const addresses[] = {"tcp://127.0.0.1:*",
                                        "ipc:///tmp/kofn-zmq-test.sock"};

static void packets_arrive(void **state)
{
    static const size_t sizes[] = {0,   1,    7,    33,    64,      255,
                                   256, 1000, 8192, 65536, 1000003, 8 << 20};
    unsigned char *big = malloc(8 << 20), head[KOFN_HEAD_MAX];

    (void)state;
    for (size_t i = 0; i < 8 << 20; i++)
        big[i] = (unsigned char)(i * 31 >> 3);
    for (size_t i = 0; i < sizeof head; i++)
        head[i] = (unsigned char)i;
    for (int w = 0; w < 2; w++) {
        pair m = meet(addresses[w], &patient);
        atomic_long done = 0;
        long sent = 0;

        for (int way = 0; way < 2; way++)
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                kofn_transport *from = way ? m.a : m.b, *to = way ? m.b : m.a;
                size_t hb = k % 2 ? KOFN_HEAD_MAX : k;
                kofn_packet p;

                assert_ok(from->send(from, way ? m.of_b : m.of_a, head, hb, big,
                                     sizes[k], k % 3 == 0, count_done, &done));
                sent++;
                p = next_of(to, from);
                assert_int_equal(p.what, KOFN_PACKET);
                assert_int_equal(p.peer, way ? m.of_a : m.of_b);
                assert_int_equal(p.head_bytes, hb);
                assert_memory_equal(p.head, head, hb);
                assert_int_equal(p.body_bytes, sizes[k]);
                if (sizes[k])
                    assert_memory_equal(p.body, big, sizes[k]);
                to->release(to, p.own);
            }
        part(&m);
        assert_int_equal(done, sent);
    }
    free(big);
}

/* ---- processes ------------------------------------------------------------
 */

/* Sends back whatever comes, until it is sent away or its time is over. */
static int echo(const char *address, const kofn_zmq_options *o)
{
    kofn_time end = clock_now() + 2 * LIMIT;
    kofn_transport *t;

    if (kofn_zmq_connect(&t, address, o))
        return 1;
    while (clock_now() < end && getppid() != 1) {
        kofn_packet p;

        if (t->wait(t, KOFN_SECOND / 2, &p) || p.what != KOFN_PACKET)
            continue;
        t->send(t, p.peer, p.head, p.head_bytes, p.body, p.body_bytes, false,
                NULL, NULL);
        /* The body is not given back: the process is short-lived. */
    }
    return 0;
}

static pid_t spawn(const char *what, const char *address)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl("/proc/self/exe", "zmq_test", what, address, (char *)NULL);
        _exit(1);
    }
    assert_true(pid > 0);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void say(kofn_transport *t, kofn_peer peer, const char *text)
{
    assert_ok(t->send(t, peer, text, strlen(text), NULL, 0, false, NULL, NULL));
}

static void hear(kofn_transport *t, kofn_peer peer, const char *text)
{
    kofn_packet p = next_of(t, NULL);

    assert_int_equal(p.what, KOFN_PACKET);
    assert_int_equal(p.peer, peer);
    assert_int_equal(p.head_bytes, strlen(text));
    assert_memory_equal(p.head, text, p.head_bytes);
    t->release(t, p.own);
}

static void went(kofn_transport *t, kofn_peer peer)
{
    kofn_packet p = next_of(t, NULL);

    assert_int_equal(p.what, KOFN_WENT);
    assert_int_equal(p.peer, peer);
}

static void the_killed_are_missed(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        kofn_transport *t = listener(addresses[w], NULL);

        for (unsigned round = 0; round < 5; round++) {
            pid_t pid = spawn("echo", kofn_zmq_endpoint(t));
            kofn_time start;

            assert_int_equal(came(t, NULL), round);
            say(t, round, "here?");
            hear(t, round, "here?");
            start = clock_now();
            end(pid);
            went(t, round);
            assert_true(clock_now() - start < 2 * KOFN_SECOND);
            assert_status(KOFN_TRANSPORT, t->send(t, round, "x", 1, NULL, 0,
                                                  false, NULL, NULL));
        }
        t->close(t, 0);
    }
}

static void the_stopped_come_back_as_others(void **state)
{
    kofn_transport *t = listener(addresses[0], NULL);
    pid_t pid = spawn("echo", kofn_zmq_endpoint(t));

    (void)state;
    for (kofn_peer life = 0; life < 2; life++) {
        assert_int_equal(came(t, NULL), life);
        say(t, life, "here?");
        hear(t, life, "here?");
        nap(KOFN_SECOND / 2); /* heartbeats begin */
        kill(pid, SIGSTOP);
        went(t, life);
        kill(pid, SIGCONT);
    }
    assert_int_equal(came(t, NULL), 2);
    end(pid);
    t->close(t, 0);
}

static void a_new_listener_is_found(void **state)
{
    char address[160];
    kofn_transport *t = listener(addresses[0], NULL);
    pid_t pid = spawn("echo", kofn_zmq_endpoint(t));

    (void)state;
    snprintf(address, sizeof address, "%s", kofn_zmq_endpoint(t));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(came(t, NULL), 0);
        say(t, 0, "here?");
        hear(t, 0, "here?");
        t->close(t, 0);
        t = listener(address, NULL);
    }
    assert_int_equal(came(t, NULL), 0);
    end(pid);
    t->close(t, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_arrive),
        cmocka_unit_test(the_killed_are_missed),
        cmocka_unit_test(the_stopped_come_back_as_others),
        cmocka_unit_test(a_new_listener_is_found),
    };

    if (argc == 3 && strcmp(argv[1], "echo") == 0)
        return echo(argv[2], NULL);
    return cmocka_run_group_tests_name("zmq", tests, NULL, NULL);
}
