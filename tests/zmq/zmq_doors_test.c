/* zmq_doors_test.c -- how many may connect to the ZeroMQ transport, for how long,
 * and what they may send before they are ended.
 */
#include "zmq_hand.h"

/* ---- descriptors --------------------------------------------------------- */

/* More come than descriptors are left: the process lives, its peers are served,
 * files can be opened, and who is honest comes in. */
static void more_than_there_are_descriptors(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &patient, 1024);
        kofn_transport *t;
        kofn_peer peer;
        int fd[1500];
        findings f;

        assert_ok(kofn_zmq_connect(&t, h.address, &patient));
        peer = came(t, NULL);
        for (int i = 0; i < 1500; i++) {
            fd[i] = plain(h.address);
            if (i % 8 == 0)
                nap(MILLI);
        }
        say(t, peer, "mine");
        hear(t, peer, "mine");
        visit(&h, &patient);
        for (int i = 0; i < 1500; i++)
            if (fd[i] >= 0)
                close(fd[i]);
        t->close(t, 0);
        f = close_house(&h);
        assert_true(f.file);
        assert_true(f.ended >= 500);
        assert_non_null(strstr(f.news, "ulimit -n"));
        assert_true(f.told <= 1 + f.seconds / 10);
    }
}

/* As many at once as the system takes, where there are few descriptors: on a
 * Unix socket ZeroMQ would end the process. */
static void bursts(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &patient, 64);

        for (int turn = 0; turn < 20; turn++) {
            int fd[500];

            for (int i = 0; i < 500; i++)
                fd[i] = plain(h.address);
            for (int i = 0; i < 500; i++)
                if (fd[i] >= 0)
                    close(fd[i]);
        }
        visit(&h, &patient);
        assert_true(close_house(&h).file);
    }
}

static void too_few_descriptors(void **state)
{
    int tell[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(tell), 0);
    pid = fork();
    if (pid == 0) {
        const struct rlimit few = {20, 20};
        kofn_transport *t;
        int bad = 0;

        setrlimit(RLIMIT_NOFILE, &few);
        bad |= kofn_zmq_listen(&t, addresses[0], NULL) != KOFN_TRANSPORT;
        bad |= !strstr(kofn_errmsg(), "raise ulimit -n") << 1;
        bad |=
            (kofn_zmq_connect(&t, "tcp://127.0.0.1:9", NULL) != KOFN_TRANSPORT)
            << 2;
        bad |= !strstr(kofn_errmsg(), "of 20 file descriptors") << 3;
        _exit(bad);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(tell[0]);
    close(tell[1]);
}

/* ---- who says nothing ---------------------------------------------------- */

static kf_doors *doors(size_t strangers, size_t ahead_bytes,
                       size_t message_bytes)
{
    kf_doors *d;

    assert_ok(kf_doors_new(&d, strangers, ahead_bytes, message_bytes));
    return d;
}

static bool is_ended(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Time and descriptors by hand: the doors do not care where they are from. */
static void the_doors(void **state)
{
    kf_doors *d = doors(3, MEGA, MEGA);
    kofn_time now = KOFN_SECOND;
    int end[6][2];
    int gone = 0;

    (void)state;
    assert_non_null(d);
    for (int i = 0; i < 6; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, end[i]), 0);
    for (int i = 0; i < 3; i++)
        kf_doors_event(d, true, end[i][0], now);
    kf_doors_peer(d, end[0][0], kf_doors_let_in(d), KOFN_NEVER);
    /* Nobody listened, perhaps for want of time. */
    assert_true(kf_doors_look(d, now + 60 * KOFN_SECOND) < KOFN_SECOND);
    for (int i = 0; i < 3; i++)
        assert_false(is_ended(end[i][1]));
    /* Peers and three strangers; of four one goes, and no peer. */
    kf_doors_event(d, true, end[3][0], now);
    kf_doors_event(d, true, end[4][0], now + 5 * KOFN_SECOND);
    for (int i = 0; i < 5; i++)
        gone += is_ended(end[i][1]);
    assert_int_equal(gone, 1);
    assert_int_equal(kf_doors_refused(d).crowd, 1);
    assert_false(is_ended(end[0][1]));
    assert_false(is_ended(end[4][1]));
    /* Ten seconds later everything that had come was received. */
    kf_doors_listened(d, now + 11 * KOFN_SECOND);
    kf_doors_look(d, now + 11 * KOFN_SECOND);
    for (int i = 1; i < 4; i++)
        assert_true(is_ended(end[i][1]));
    assert_false(is_ended(end[0][1]));
    assert_false(is_ended(end[4][1]));
    /* Who was told to go, and does not. */
    kf_doors_end(d, end[0][0], 1, now + 12 * KOFN_SECOND);
    kf_doors_look(d, now + 11 * KOFN_SECOND + KOFN_SECOND / 2);
    assert_false(is_ended(end[0][1]));
    kf_doors_look(d, now + 13 * KOFN_SECOND);
    assert_true(is_ended(end[0][1]));
    for (int i = 0; i < 6; i++) {
        close(end[i][0]);
        close(end[i][1]);
    }
    kf_doors_free(d);
}

/* Two connections of one name, of which the first goes on sending: ZeroMQ does
 * not end it any more, and keeps its descriptor. */
static void leave_one(const house *h)
{
    static const unsigned char token[KF_TOKEN] = {10};
    const unsigned char frame[4] = {0, 2, 'h', 'i'};
    int fd[2];

    for (int i = 0; i < 2; i++) {
        fd[i] = plain(h->address);
        assert_true(greet(fd[i], "NULL") && ready(fd[i], KF_BULK, token));
    }
    put(fd[0], frame, sizeof frame);
    close(fd[0]);
    close(fd[1]);
}

/* They cost descriptors, but keep nobody out who is no stranger for long. */
static void leftovers(void **state)
{
    kofn_zmq_options o = patient;

    (void)state;
    o.strangers = 4;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &o, 0);

        for (int i = 0; i < 20; i++)
            leave_one(&h);
        visit(&h, &patient);
        assert_true(close_house(&h).file);
    }
}

/* ---- what they send ------------------------------------------------------ */

/* end[0] is the transport's. */
static void connect_pair(bool is_unix, int end[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (is_unix) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
    } else {
        assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
        assert_int_equal(listen(fd, 1), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
        end[1] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(end[1], (struct sockaddr *)&at, size), 0);
        end[0] = accept(fd, NULL, NULL);
        assert_true(end[0] >= 0);
    }
    close(fd);
}

static void close_pair(kf_doors *d, int end[2])
{
    kf_doors_free(d);
    close(end[0]);
    close(end[1]);
}

/* Who is gone before that is heard, and whose descriptor another has by now: he
 * is not ended for what was sent by the first, nor because that one was told to
 * go, nor to make room. */
static void whose_descriptor_is_anothers(void **state)
{
    static const char bytes[5000];
    char into[5000];

    (void)state;
    for (int why = 0; why < 3; why++) {
        kf_doors *d = doors(1, MEGA, MEGA);
        kofn_time now = KOFN_SECOND;
        int first[2], next[2], third[2];
        kf_refused is;

        connect_pair(false, first);
        connect_pair(false, next);
        connect_pair(false, third);
        kf_doors_event(d, true, first[0], now);
        if (why == 0) {
            /* more than `next` has sent; that many may be heartbeats */
            assert_int_equal(put(first[1], bytes, 4000), 4000);
            assert_true(get(first[0], into, 4000));
            kf_doors_look(d, now += 10 * KOFN_SECOND);
        } else if (why == 1) {
            kf_doors_end(d, first[0], kf_doors_let_in(d), now);
        }
        assert_int_equal(dup2(next[0], first[0]), first[0]);
        if (why == 2)
            kf_doors_event(d, true, third[0], now);
        kf_doors_look(d, now += 20 * MILLI);
        is = kf_doors_refused(d);
        assert_int_equal(is.flood + is.away + is.crowd, 0);
        assert_false(is_ended(next[1]));
        /* Then it is heard, and the other is a stranger like any. */
        kf_doors_event(d, false, first[0], now);
        kf_doors_event(d, true, first[0], now);
        assert_int_equal(put(next[1], bytes, 5000), 5000);
        assert_true(get(next[0], into, 5000));
        kf_doors_look(d, now += 10 * MILLI);
        assert_true(is_ended(next[1]));
        close(third[0]);
        close(third[1]);
        close(next[0]);
        close(next[1]);
        close_pair(d, first);
    }
}

/* A stranger may send 4096 bytes, of which on a Unix socket those that were
 * received are not known. */
static void what_a_stranger_may_send(void **state)
{
    static const char bytes[4096];
    const kofn_time now = KOFN_SECOND;
    char into[4096];

    (void)state;
    for (int is_unix = 0; is_unix < 2; is_unix++) {
        kf_doors *d = doors(3, MEGA, MEGA);
        int end[2];

        connect_pair(is_unix, end);
        kf_doors_event(d, true, end[0], now);
        assert_int_equal(put(end[1], bytes, 4096), 4096);
        assert_true(is_unix || get(end[0], into, 4096));
        kf_doors_look(d, now);
        assert_int_equal(kf_doors_refused(d).flood, 0);
        assert_int_equal(put(end[1], bytes, 1), 1);
        assert_true(is_unix || get(end[0], into, 1));
        kf_doors_look(d, now);
        assert_int_equal(kf_doors_refused(d).flood, 1);
        close_pair(d, end);
    }
}

/* A peer over TCP of which nothing comes for longer than its silence, the time
 * between two looks besides. */
static void who_sends_nothing(void **state)
{
    kf_doors *d = doors(3, MEGA, MEGA);
    const kofn_time silence = 2 * KOFN_SECOND;
    kofn_time now = KOFN_SECOND;
    char byte = 0;
    int end[2];

    (void)state;
    connect_pair(false, end);
    kf_doors_event(d, true, end[0], now);
    kf_doors_peer(d, end[0], kf_doors_let_in(d), silence);
    for (int beat = 0; beat < 3; beat++) {
        kf_doors_look(d, now += silence);
        assert_int_equal(put(end[1], &byte, 1), 1);
        assert_true(get(end[0], &byte, 1));
    }
    kf_doors_look(d, now += silence);
    kf_doors_look(d, now += silence + 100 * MILLI);
    assert_int_equal(kf_doors_refused(d).dead, 0);
    kf_doors_look(d, now += 100 * MILLI);
    assert_int_equal(kf_doors_refused(d).dead, 1);
    close_pair(d, end);
}

/* What the system holds; it grows. */
static size_t room(int fd)
{
    int bytes;
    socklen_t size = sizeof bytes;

    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size), 0);
    return (size_t)bytes;
}

/* More than one message may have, by 4096 bytes at least, of which heartbeats
 * may be 400: of a peer that was listened to after it had come, and of which no
 * message was received. */
static void who_is_not_heard(void **state)
{
    static const char bytes[4096];
    char into[4096];

    (void)state;
    for (int way = 0; way < 4; way++) {
        bool heard = way & 1, listened = way & 2;
        kf_doors *d = doors(3, 64 * MEGA, MEGA);
        kofn_time now = KOFN_SECOND;
        int end[2];

        connect_pair(false, end);
        kf_doors_event(d, true, end[0], now);
        kf_doors_peer(d, end[0], kf_doors_let_in(d), KOFN_NEVER);
        for (size_t n = 0; n <= MEGA + sizeof bytes + room(end[0]);
             n += sizeof bytes) {
            assert_int_equal(put(end[1], bytes, sizeof bytes), sizeof bytes);
            assert_true(get(end[0], into, sizeof into));
        }
        kf_doors_listened(d, now);
        kf_doors_look(d, now += 200 * MILLI);
        kf_doors_look(d, now += 200 * MILLI);
        assert_int_equal(kf_doors_refused(d).flood, 0);
        if (heard)
            kf_doors_heard(d, end[0]);
        if (listened)
            kf_doors_listened(d, now + 1);
        kf_doors_look(d, now += 200 * MILLI);
        assert_int_equal(kf_doors_refused(d).flood, listened && !heard);
        close_pair(d, end);
    }
}

typedef struct flood {
    kofn_transport *t;
    kf_doors *doors;
    int fd, bulk, urgent; /* fd: t's end of bulk */
    char *frame;          /* one MEGA */
    size_t sent;
} flood;

static flood begin_flood(const kofn_zmq_options *o)
{
    static const unsigned char token[KF_TOKEN] = {11};
    flood f = {.t = listener(addresses[0], o), .frame = calloc(MEGA, 1)};
    const char *address = kofn_zmq_endpoint(f.t);
    kf_transport *t = (kf_transport *)f.t;

    assert_non_null(f.frame);
    f.bulk = plain(address);
    f.urgent = plain(address);
    assert_true(greet(f.bulk, "NULL") && ready(f.bulk, KF_BULK, token));
    assert_true(greet(f.urgent, "NULL") && ready(f.urgent, KF_URGENT, token));
    hello(f.bulk);
    hello(f.urgent);
    f.fd = kf_peers_by_number(&t->peers, came(f.t, NULL))->bulk.fd;
    f.doors = t->doors;
    return f;
}

static void end_flood(flood *f)
{
    close(f->bulk);
    close(f->urgent);
    f->t->close(f->t, 0);
    free(f->frame);
}

/* Goes on with a message that does not end, until it has so many bytes; false: it
 * is cut off. */
static bool send_up_to(flood *f, size_t bytes)
{
    while (f->sent + 9 < bytes) {
        size_t n = kf_min(bytes - f->sent - 9, MEGA);

        if (begin_frame(f->bulk, 1, n) != 9 || put(f->bulk, f->frame, n) != n)
            return false;
        f->sent += n + 9;
    }
    return true;
}

/* Looks at peers twice, and for packets in between or not. */
static bool is_cut_off(flood *f, bool listens)
{
    for (int i = 0; i < 2; i++) {
        kofn_packet p;

        nap(110 * MILLI);
        kf_doors_look(f->doors, kf_clock());
        if (listens && f->t->wait(f->t, 0, &p) == KOFN_OK)
            assert_int_equal(p.what, KOFN_WENT);
    }
    return kf_doors_refused(f->doors).flood > 0;
}

/* `bound` is what a peer may send of a message that does not end, besides what
 * the system holds: not less, for it might be messages that wait to be received,
 * and not more than a page, what was said before, and heartbeats. */
static void hold_to(size_t body_max, bool listens, size_t bound)
{
    const kofn_zmq_options o = {.body_max = body_max, .silence = 10 * LIMIT};
    flood f = begin_flood(&o);
    kofn_time began = kf_clock();

    assert_true(send_up_to(&f, bound + room(f.fd) - 4096));
    assert_false(is_cut_off(&f, listens));
    while (send_up_to(&f, bound + room(f.fd) + MEGA / 4) &&
           !is_cut_off(&f, listens))
        if (kf_clock() - began > LIMIT)
            fail_msg("%zu bytes of bodies of %zu are not too many", f.sent,
                     body_max);
    end_flood(&f);
}

/* One message, which has a body, its head, and what ZeroMQ reads at once; or, of
 * a peer that was not listened to, one more than are received in advance: of
 * 32 MiB in all, but eight, or four if they may be longer than 8 MiB. */
static void what_a_peer_may_send(void **state)
{
    static const struct {
        size_t body_max, ahead;
    } cases[] = {{MEGA, 32}, {5 * MEGA, 8}, {8 * MEGA, 8}, {9 * MEGA, 4}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t body = cases[i].body_max, message = body + KF_LEAD + (64 << 10);

        hold_to(body, true, message);
        hold_to(body, false, (cases[i].ahead + 1) * message);
    }
}

/* ---- who has a heartbeat waiting and is gone ----------------------------- */

/* More messages than are received in advance, a PING behind them, and the end
 * of the connection, before anybody listens again. */
static void ping_and_go(const char *address)
{
    static const unsigned char token[KF_TOKEN] = {5};
    unsigned char x[100][3];
    static const unsigned char beat[] = {4, 7, 4, 'P', 'I', 'N', 'G', 0, 9};
    const struct linger none = {1, 0};
    int fd = plain(address);

    assert_true(fd >= 0);
    assert_true(greet(fd, "NULL"));
    assert_true(ready(fd, KF_URGENT, token));
    for (int i = 0; i < 100; i++)
        memcpy(x[i], "\0\1x", 3);
    assert_int_equal(put(fd, x, sizeof x), sizeof x);
    assert_int_equal(put(fd, beat, sizeof beat), sizeof beat);
    nap(100 * MILLI);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(fd);
    nap(100 * MILLI);
}

static void who_pings_and_is_gone(void **state)
{
    /* 32 of them are received in advance */
    const kofn_zmq_options o = {.body_max = MEGA, .silence = 10 * KOFN_SECOND};

    (void)state;
    for (int i = 0; i < 2; i++) {
        kofn_transport *t = listener(addresses[i], &o);

        ping_and_go(kofn_zmq_endpoint(t));
        for (int k = 0; k < 20; k++) {
            kofn_packet p;

            t->wait(t, 20 * MILLI, &p);
        }
        assert_true(t->dropped > 0);
        t->close(t, 0);
    }
}

TEST_FILE(zmq_doors_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_there_are_descriptors),
        cmocka_unit_test(bursts),
        cmocka_unit_test(too_few_descriptors),
        cmocka_unit_test(the_doors),
        cmocka_unit_test(leftovers),
        cmocka_unit_test(whose_descriptor_is_anothers),
        cmocka_unit_test(what_a_stranger_may_send),
        cmocka_unit_test(who_sends_nothing),
        cmocka_unit_test(who_is_not_heard),
        cmocka_unit_test(what_a_peer_may_send),
        cmocka_unit_test(who_pings_and_is_gone),
    };

    begin_by_hand();
    return cmocka_run_group_tests_name("zmq_doors", tests, NULL, NULL);
}
