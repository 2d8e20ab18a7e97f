/* sockets_test.c -- the transport over TCP and Unix sockets: packets, and
 * peers that come and go.
 *
 * Peers that die, stop or return are separate processes. */
#define _GNU_SOURCE /* unshare */
#include "net_rig.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

/* ---- order and sizes ----------------------------------------------------- */

#define MOST                                                                   \
    (17 * MEGA + 3) /* with keys, this many bytes take several records */

static void packets_arrive(void **state)
{
    static const size_t sizes[] = {0,     1,       7,       33,   64,
                                   255,   256,     1000,    8192,
#ifndef __SANITIZE_THREAD__ /* it needs milliseconds for every number */
                                   65536, 1000003, 8 << 20, MOST
#endif
    };
    unsigned char *big = malloc(MOST), head[KOFN_HEAD_MAX];

    (void)state;
    for (size_t i = 0; i < MOST; i++)
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

                assert_ok(
                    from->send(from, way ? m.of_b : m.of_a, head, hb,
                               &(kofn_lent){big, sizes[k], count_done, &done},
                               k % 3 == 0));
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
    assert_int_equal(access(unix_socket + 6, F_OK), -1);
    free(big);
}

/* ---- processes ----------------------------------------------------------- */

/* Echoes each packet until the process is dismissed or its time is over. */
static int echo(const char *address, const kofn_net_options *o)
{
    kofn_time end = kf_clock() + 2 * LIMIT;
    kofn_transport *t;

    if (kofn_net_connect(&t, address, o))
        return 1;
    while (kf_clock() < end && getppid() != 1) {
        kofn_packet p;

        if (t->wait(t, KOFN_SECOND / 2, &p) || p.what != KOFN_PACKET)
            continue;
        t->send(t, p.peer, p.head, p.head_bytes,
                &(kofn_lent){.data = p.body, .bytes = p.body_bytes}, false);
        /* The body is not given back: the process is short-lived. */
    }
    return 0;
}

static pid_t spawn(const char *address)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl("/proc/self/exe", "net", "sockets_test", "echo", address,
              (char *)NULL);
        _exit(1);
    }
    assert_true(pid > 0);
    return pid;
}

/* Detected by the end of the connection, long before the failure timeout. */
static void killed(void **state)
{
    const kofn_net_options o = {.size = sizeof o, .silence = 10 * LIMIT};

    (void)state;
    for (int w = 0; w < 2; w++) {
        kofn_transport *t = listener(addresses[w], &o);

        for (unsigned round = 0; round < 5; round++) {
            pid_t pid = spawn(kofn_net_endpoint(t));

            assert_int_equal(came(t, NULL), round);
            say(t, round, "here?");
            hear(t, round, "here?");
            end(pid);
            went(t, round);
            assert_status(KOFN_TRANSPORT,
                          t->send(t, round, "x", 1, NULL, false));
        }
        t->close(t, 0);
    }
}

static void stopped(void **state)
{
    const kofn_net_options o = {.size = sizeof o, .silence = 2 * KOFN_SECOND};
    kofn_transport *t = listener(addresses[0], &o);
    pid_t pid = spawn(kofn_net_endpoint(t));

    (void)state;
    for (kofn_peer life = 0; life < 2; life++) {
        assert_int_equal(came(t, NULL), life);
        say(t, life, "here?");
        hear(t, life, "here?");
        if (life)
            nap(KOFN_SECOND / 2); /* its heartbeats have begun */
        kill(pid, SIGSTOP);
        went(t, life);
        kill(pid, SIGCONT);
    }
    assert_int_equal(came(t, NULL), 2);
    end(pid);
    t->close(t, 0);
}

static void new_listener(void **state)
{
    char address[160];
    kofn_transport *t = listener(addresses[0], &patient);
    pid_t pid = spawn(kofn_net_endpoint(t));

    (void)state;
    snprintf(address, sizeof address, "%s", kofn_net_endpoint(t));
    for (int round = 0; round < 3; round++) {
        assert_int_equal(came(t, NULL), 0);
        say(t, 0, "here?");
        hear(t, 0, "here?");
        t->close(t, 0);
        t = listener(address, &patient);
    }
    assert_int_equal(came(t, NULL), 0);
    end(pid);
    t->close(t, 0);
}

/* ---- signals ------------------------------------------------------------- */

static void nothing(int sig)
{
    (void)sig;
}

/* A handler without SA_RESTART interrupts system calls. */
static void signals(void **state)
{
    const struct itimerval often = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
    const struct sigaction act = {.sa_handler = nothing};
    struct sigaction was;
    pair m = meet(addresses[1], &patient);
    kofn_time enough = kf_clock() + KOFN_SECOND;

    (void)state;
    sigaction(SIGALRM, &act, &was);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uint32_t got = 0, sent = 0; kf_clock() < enough; got++) {
        kofn_packet p;

        for (; sent < got + 8; sent++)
            assert_ok(m.a->send(m.a, m.of_b, &sent, sizeof sent,
                                &(kofn_lent){.data = "body", .bytes = 4},
                                false));
        p = next_of(m.b, m.a);
        assert_int_equal(p.what, KOFN_PACKET);
        assert_memory_equal(p.head, &got, sizeof got);
        m.b->release(m.b, p.own);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &was, NULL);
    part(&m);
}

/* ---- a peer that is busy ------------------------------------------------- */

/* A peer that computes for long has many urgent packets waiting. It survives
 * if the other end is lost meanwhile. */
static void urgent_packets_wait(void **state)
{
    pair m = meet(addresses[0], &patient);
    kofn_packet p;

    (void)state;
    for (int sent = 0, pauses = 0; sent < 1500 && pauses < 2000;) {
        kofn_status st = m.a->send(m.a, m.of_b, "stop", 4, NULL, true);

        sent += st == KOFN_OK;
        pauses += st == KOFN_AGAIN;
        if (st == KOFN_AGAIN)
            nap(MILLI);
    }
    m.a->close(m.a, 0);
    nap(400 * MILLI); /* a heartbeat is due */
    while ((p = next_of(m.b, NULL)).what == KOFN_PACKET)
        m.b->release(m.b, p.own);
    assert_int_equal(p.what, KOFN_WENT);
    m.b->close(m.b, 0);
}

/* ---- a cut cable --------------------------------------------------------- */

static bool loopback(bool up)
{
    struct ifreq lo = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool done;

    lo.ifr_flags = up ? IFF_UP : 0;
    done = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
    close(fd);
    return done;
}

static int home; /* the network in which the test began */

static int save_network(void **state)
{
    (void)state;
    home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return home < 0;
}

static int restore_network(void **state)
{
    (void)state;
    setns(home, CLONE_NEWNET); /* fails only if the process never left */
    return close(home);
}

/* Nothing is under way to the peer when the cable is cut, and no heartbeat of
 * it has come before. So neither silence nor an unacknowledged packet shows the
 * loss. */
static void cut_off(void **state)
{
    const kofn_net_options o = {.size = sizeof o, .silence = KOFN_SECOND};
    pair m;

    (void)state;
    if (unshare(CLONE_NEWNET)) {
        print_message("no network can be made here: that takes root\n");
        skip();
    }
    assert_true(loopback(true));
    m = meet(addresses[0], &o);
    nap(60 * MILLI); /* all sent packets are acknowledged */
    assert_true(loopback(false));
    went(m.b, m.of_a);
    went(m.a, m.of_b);
    part(&m);
}

/* ---- heartbeats ---------------------------------------------------------- */

/* Returns a copy of the listener's only connection. */
static kf_link only_link(kofn_transport *base)
{
    kf_transport *t = (kf_transport *)base;
    kf_link l;

    pthread_mutex_lock(&t->lock);
    l = *t->in.links;
    pthread_mutex_unlock(&t->lock);
    return l;
}

/* Pretends that only heartbeats have come for longer than the failure timeout.
 */
static void make_calm(kofn_transport *base)
{
    kf_transport *t = (kf_transport *)base;
    kofn_packet p;

    pthread_mutex_lock(&t->lock);
    t->in.links->life.busy = t->keep.awake - t->silence - KOFN_SECOND;
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < 10000 && !only_link(base).life.calm; i++)
        assert_int_equal(base->wait(base, 10 * MILLI, &p), KOFN_AGAIN);
    assert_true(only_link(base).life.calm);
}

/* Pretends that the last heartbeat came `ago` before now. Waits until a newer
 * one is found. */
static void wait_for_beat(kofn_transport *base, kofn_time ago)
{
    kf_transport *t = (kf_transport *)base;
    kofn_time then;
    kofn_packet p;

    pthread_mutex_lock(&t->lock);
    then = t->in.links->life.heard = t->keep.awake - ago;
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < 10000 && only_link(base).life.heard == then; i++)
        assert_int_equal(base->wait(base, 10 * MILLI, &p), KOFN_AGAIN);
    assert_true(only_link(base).life.heard > then);
}

/* A peer that only sends heartbeats is heard, but wakes no thread. Any other
 * packet, and the end of the connection, wakes one at once. */
static void heartbeats(void **state)
{
    const kofn_net_options o = {.size = sizeof o, .silence = 100 * KOFN_SECOND};
    kofn_transport *t = listener(addresses[0], &o);
    int fd = plain(kofn_net_endpoint(t)), unread = 0;

    (void)state;
    assert_true(hello(fd, NULL));
    came(t, NULL);
    make_calm(t);
    assert_int_equal(send(fd, "B", 1, MSG_NOSIGNAL), 1);
    wait_for_beat(t, 90 * KOFN_SECOND);
    assert_int_equal(ioctl(only_link(t).fd, FIONREAD, &unread), 0);
    assert_int_equal(unread, 1);
    put_frame(fd, KF_PACKET, 0, "word", 4, 0, 0);
    hear(t, 0, "word");
    assert_false(only_link(t).life.calm);
    make_calm(t);
    close(fd);
    went(t, 0);
    t->close(t, 0);
}

/* Checks both ends. On a system with Reno as its default this cannot fail. */
static void reno_loopback(void **state)
{
    static const char *const at[] = {"tcp://127.0.0.1:*", "tcp://[::1]:*"};

    (void)state;
    for (int w = 0; w < (has_v6() ? 2 : 1); w++) {
        pair m = meet(at[w], &patient);

        for (int end = 0; end < 2; end++) {
            int fd = only_link(end ? m.b : m.a).fd;
            char by[16] = "";
            socklen_t bytes = sizeof by;

            assert_int_equal(
                getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, by, &bytes), 0);
            assert_string_equal(by, "reno");
        }
        part(&m);
    }
}

/* ---- many peers ---------------------------------------------------------- */

static void many_peers(void **state)
{
    enum { MANY = 256, GO = 20 };
    kofn_transport *t = listener(addresses[0], &patient);
    char gone[MANY] = {0};
    int fd[MANY];

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        fd[i] = plain(kofn_net_endpoint(t));
        assert_true(hello(fd[i], NULL));
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(came(t, NULL), i);
    for (unsigned i = 0; i < MANY; i++)
        say(t, i, "hello");
    for (int i = 0; i < GO; i++)
        close(fd[7 * i]);
    for (int i = 0; i < GO; i++) {
        kofn_packet p = next_of(t, NULL);

        assert_int_equal(p.what, KOFN_WENT);
        assert_false(gone[p.peer]);
        gone[p.peer] = 1;
    }
    for (unsigned i = 0; i < MANY; i++)
        if (!gone[i])
            say(t, i, "still there");
    for (int i = 0; i < MANY; i++)
        if (i % 7 || i / 7 >= GO)
            close(fd[i]);
    for (int i = 0; i < MANY - GO; i++)
        assert_int_equal(next_of(t, NULL).what, KOFN_WENT);
    t->close(t, 0);
}

/* ---- a mesh -------------------------------------------------------------- */

#define NODES 4

typedef struct node {
    kofn_transport *t;
    bool live[64];
    int peers, heard;
} node;

static void turn(node *n)
{
    kofn_packet p;

    if (n->t->wait(n->t, 5 * MILLI, &p))
        return;
    assert_true(p.peer < 64);
    if (p.what == KOFN_PACKET) {
        assert_true(n->live[p.peer]);
        n->heard++;
        n->t->release(n->t, p.own);
        return;
    }
    assert_true(n->live[p.peer] == (p.what == KOFN_WENT));
    n->live[p.peer] = p.what == KOFN_CAME;
    n->peers += p.what == KOFN_CAME ? 1 : -1;
}

/* Waits until every node has `peers` peers, and a second longer. */
static void settle(node *n, int nodes, int peers)
{
    kofn_time end = kf_clock() + LIMIT, calm = kf_clock();

    while (kf_clock() < end && kf_clock() - calm < KOFN_SECOND)
        for (int i = 0; i < nodes; i++) {
            turn(&n[i]);
            if (n[i].peers != peers)
                calm = kf_clock();
        }
    assert_true(kf_clock() < end);
}

/* Waits until each node has one word of every other, and half a second longer.
 */
static void hear_all(node *n)
{
    kofn_time end = kf_clock() + LIMIT, calm = kf_clock();

    while (kf_clock() < end && kf_clock() - calm < KOFN_SECOND / 2)
        for (int i = 0; i < NODES; i++) {
            turn(&n[i]);
            if (n[i].heard < NODES - 1)
                calm = kf_clock();
        }
}

static bool is_an_endpoint(const node *n, const char *name)
{
    for (int i = 0; i < NODES; i++)
        if (strcmp(kofn_net_endpoint(n[i].t), name) == 0)
            return true;
    return false;
}

/* Waits until all peers have the addresses at which they listen as names. */
static void know_names(node *n)
{
    kofn_time end = kf_clock() + LIMIT;
    bool all = false;

    while (!all && kf_clock() < end) {
        all = true;
        for (int i = 0; i < NODES; i++) {
            turn(&n[i]);
            for (unsigned p = 0; p < 64; p++)
                all &= !n[i].live[p] ||
                       is_an_endpoint(n, n[i].t->name_of(n[i].t, p));
        }
    }
    assert_true(all);
}

static void mesh_pairs(void **state)
{
    node n[NODES] = {0};
    char first[160];

    (void)state;
    for (int i = 0; i < NODES; i++)
        assert_ok(kofn_net_mesh(&n[i].t, addresses[0], &patient));
    for (int i = 0; i < NODES; i++)
        for (int k = 0; k < NODES; k++) /* itself too */
            assert_ok(n[i].t->reach(n[i].t, kofn_net_endpoint(n[k].t)));
    settle(n, NODES, NODES - 1);
    know_names(n);
    for (int i = 0; i < NODES; i++)
        for (unsigned p = 0; p < 64; p++)
            if (n[i].live[p])
                say(n[i].t, p, "one");
    hear_all(n);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(n[i].heard, NODES - 1);

    /* One node goes, and another comes at the same address. */
    snprintf(first, sizeof first, "%s", kofn_net_endpoint(n[0].t));
    n[0].t->close(n[0].t, 0);
    settle(n + 1, NODES - 1, NODES - 2);
    n[0] = (node){0};
    assert_ok(kofn_net_mesh(&n[0].t, first, &patient));
    settle(n, NODES, NODES - 1);
    for (int i = 0; i < NODES; i++)
        n[i].t->close(n[i].t, 0);
}

/* Greets t as a node that listens at `listens`. Returns the socket. */
static int greet(kofn_transport *t, const char *listens, size_t bytes)
{
    unsigned char number[KF_NODE] = {1};
    kf_greeting g = greeting_of(number);
    int fd = plain(kofn_net_endpoint(t));

    memcpy(g.listens, listens, bytes);
    assert_true(put_frame(fd, KF_HELLO, 0, &g, sizeof g, 0, 0));
    return fd;
}

static void listening_names(void **state)
{
    static const struct {
        int address; /* 0 TCP, 1 a Unix socket */
        const char *listens, *name;
    } said[] = {
        {0, "5001", "tcp://127.0.0.1:5001"},
        {0, "", "127.0.0.1:"},
        {0, "500123", "127.0.0.1:"},
        {0, "50a1", "127.0.0.1:"},
        {0, "-1", "127.0.0.1:"},
        {1, "/run/node", "ipc:///run/node"},
        {1, "@node", "ipc://@node"},
        {1, "", "user "},
        {1, "/run/\x1b[31mnode", "user "},
        {1, "/run/a b", "user "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        kofn_transport *t;
        const char *name;
        kofn_packet p;
        int fd;

        assert_ok(kofn_net_mesh(&t, addresses[said[i].address], &patient));
        fd = greet(t, said[i].listens, strlen(said[i].listens));
        p = next_of(t, NULL);
        assert_int_equal(p.what, KOFN_CAME);
        name = t->name_of(t, p.peer);
        assert_memory_equal(name, said[i].name, strlen(said[i].name));
        assert_true(*said[i].listens == 0 || strncmp(name, "tcp", 3) ||
                    strlen(name) == strlen(said[i].name));
        close(fd);
        t->close(t, 0);
    }
}

/* The text fills the field, without a terminating zero. */
static void unterminated_name(void **state)
{
    char all[KF_LISTENS];
    kofn_transport *t;
    kofn_packet p;
    int fd;

    (void)state;
    memset(all, 'a', sizeof all);
    assert_ok(kofn_net_mesh(&t, addresses[1], &patient));
    fd = greet(t, all, sizeof all);
    p = next_of(t, NULL);
    assert_int_equal(p.what, KOFN_CAME);
    assert_memory_equal(t->name_of(t, p.peer), "user ", 5);
    close(fd);
    t->close(t, 0);
}

/* Only the second of two nodes dials. */
static void dialled_names(void **state)
{
    (void)state;
    for (int address = 0; address < 2; address++) {
        kofn_transport *a, *b;
        char second[200];
        kofn_packet p;

        assert_ok(kofn_net_mesh(&a, addresses[address], &patient));
        snprintf(second, sizeof second, "%s%s", addresses[address],
                 address ? "2" : "");
        assert_ok(kofn_net_mesh(&b, second, &patient));
        assert_ok(b->reach(b, kofn_net_endpoint(a)));
        p = next_of(a, NULL);
        assert_int_equal(p.what, KOFN_CAME);
        assert_string_equal(a->name_of(a, p.peer), kofn_net_endpoint(b));
        b->close(b, 0);
        a->close(a, 0);
    }
}

TEST_FILE(sockets_test)
{
    const struct CMUnitTest tests[] = {
        TEST(packets_arrive,
             "net: packets of all sizes arrive, and bodies are given back"),
        TEST(killed, "net: a killed peer is lost at once, and gets no packet"),
        TEST(stopped,
             "net: a stopped peer is lost, and returns under another number"),
        TEST(new_listener,
             "net: a dialler finds a new listener at the same address"),
        TEST(signals, "net: interrupted calls lose no packet"),
        TEST(urgent_packets_wait,
             "net: a busy peer keeps 1500 urgent packets of a lost one"),
        TEST_AROUND(cut_off, "net: a peer behind a cut cable is lost",
                    save_network, restore_network),
        TEST(heartbeats, "net: heartbeats wake no thread, packets and ends do"),
        TEST(reno_loopback, "net: connections over the loopback use Reno"),
        TEST(many_peers,
             "net: 256 peers come, and each one that goes is reported once"),
        TEST(mesh_pairs, "mesh: two nodes that dial each other are one peer"),
        TEST(listening_names,
             "mesh: a node that dials has the name of its address, if valid"),
        TEST(unterminated_name,
             "mesh: an address without a terminating zero is no name"),
        TEST(dialled_names,
             "mesh: a listener knows the address of a node that dialled"),
    };

    if (argc == 3 && strcmp(argv[1], "echo") == 0)
        return echo(argv[2], &patient);
    name_socket();
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
