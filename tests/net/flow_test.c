/* flow_test.c -- flow control over TCP and Unix sockets: a full channel,
 * urgent packets, and bodies longer than the window. */
#include "net_rig.h"

#include <stdatomic.h>

/* ---- a full channel -------------------------------------------------------
 */

static void full_channel(void **state)
{
    const kofn_net_options o = {.size = sizeof o,
                                .body_max = MEGA,
                                .peer_bytes = 4 * MEGA,
                                .silence = 10 * KOFN_SECOND};
    unsigned char *body = calloc(MEGA, 1);
    pair m = meet(addresses[0], &o);
    atomic_long done = 0;
    unsigned sent = 0, got = 0;
    kofn_status st;

    (void)state;
    do {
        st = m.a->send(m.a, m.of_b, &sent, sizeof sent,
                       &(kofn_lent){body, MEGA, count_done, &done}, false);
        sent += st == KOFN_OK;
        if (st == KOFN_AGAIN)
            nap(100 * MILLI); /* the kernel's buffers fill, too */
    } while (st == KOFN_OK && sent < 1000);
    assert_int_equal(st, KOFN_AGAIN);
    assert_true(sent < 100 && done <= (long)sent);
    for (unsigned more = sent + 20; sent < more || got < sent;) {
        kofn_packet p;

        if (got < sent) {
            p = next_of(m.b, NULL);
            assert_int_equal(p.what, KOFN_PACKET);
            assert_int_equal(p.head_bytes, sizeof got);
            assert_memory_equal(p.head, &got, sizeof got);
            assert_int_equal(p.body_bytes, MEGA);
            m.b->release(m.b, p.own);
            got++;
        }
        assert_int_equal(m.a->wait(m.a, 0, &p), KOFN_AGAIN);
        if (sent == more)
            continue;
        st = m.a->send(m.a, m.of_b, &sent, sizeof sent,
                       &(kofn_lent){body, MEGA, count_done, &done}, false);
        assert_true(st == KOFN_OK || st == KOFN_AGAIN);
        sent += st == KOFN_OK;
    }
    part(&m);
    assert_int_equal(done, sent);
    free(body);
}

static void room_wakes(void **state)
{
    const kofn_net_options o = {.size = sizeof o,
                                .body_max = MEGA,
                                .peer_bytes = 4 * MEGA,
                                .silence = 10 * KOFN_SECOND};
    unsigned char *body = calloc(MEGA, 1);
    pair m = meet(addresses[0], &o);
    kofn_time start = kf_clock();
    kofn_packet p;
    int sent = 0;

    (void)state;
    /* On a loaded machine nothing may leave for a while: more is sent than
     * read. */
    for (int again = 0; again < 3 || sent < 5; again++) {
        while (!m.a->send(m.a, m.of_b, "x", 1,
                          &(kofn_lent){.data = body, .bytes = MEGA}, false)) {
            again = 0;
            sent++;
        }
        nap(50 * MILLI);
    }
    for (int i = 0; i < 4; i++) {
        p = next_of(m.b, NULL);
        assert_int_equal(p.what, KOFN_PACKET);
        m.b->release(m.b, p.own);
    }
    assert_int_equal(m.a->wait(m.a, LIMIT, &p), KOFN_AGAIN);
    assert_true(kf_clock() - start < LIMIT);
    part(&m);
    free(body);
}

/* Sends a packet as soon as there is room. The other end receives nothing
 * meanwhile. */
static void send_all(kofn_transport *t, kofn_peer peer, const char *head,
                     const void *body, size_t bytes)
{
    kofn_time until = kf_clock() + LIMIT;
    kofn_status st;
    kofn_packet p;

    while ((st = t->send(t, peer, head, strlen(head),
                         &(kofn_lent){.data = body, .bytes = bytes}, false)) ==
               KOFN_AGAIN &&
           kf_clock() < until)
        assert_int_equal(t->wait(t, KOFN_SECOND, &p), KOFN_AGAIN);
    assert_ok(st);
}

/* Starts to send 8 MiB, then an urgent packet, and lets the receiver pause.
 * Returns how many packets arrive before the urgent one. */
static int before_urgent(kofn_transport *from, kofn_peer peer,
                         kofn_transport *to, kofn_time pause)
{
    unsigned char *body = calloc(MEGA, 1);
    int before = 0;

    for (int i = 0; i < 8; i++)
        send_all(from, peer, "bulk", body, MEGA);
    assert_ok(from->send(from, peer, "now", 3, NULL, true));
    nap(pause);
    for (int i = 0; i < 9; i++) {
        kofn_packet p = next_of(to, NULL);

        assert_int_equal(p.what, KOFN_PACKET);
        if (p.head_bytes == 3)
            before = i;
        to->release(to, p.own);
    }
    free(body);
    return before;
}

/* The receiver waits until all has arrived, which takes longer on a loaded
 * machine. */
static void urgent_overtakes(void **state)
{
    pair m = meet(addresses[0], &patient);

    (void)state;
    for (int way = 0; way < 2; way++) {
        kofn_transport *from = way ? m.a : m.b, *to = way ? m.b : m.a;
        kofn_time pause = 300 * MILLI;

        while (before_urgent(from, way ? m.of_b : m.of_a, to, pause) > 1 &&
               pause < LIMIT / 10)
            pause *= 3;
        assert_true(pause < LIMIT / 10);
    }
    part(&m);
}

/* ---- long bodies --------------------------------------------------------- */

typedef struct taste {
    size_t asked, times;
    bool wanted;
} taste;

static bool wants(void *ud, kofn_peer peer, const void *head, size_t head_bytes,
                  size_t body_bytes)
{
    taste *is = ud;

    (void)peer;
    assert_int_equal(head_bytes, 4);
    assert_memory_equal(head, "long", 4);
    is->asked = body_bytes;
    is->times++;
    return is->wanted;
}

static void long_bodies(void **state)
{
    const kofn_net_options o = {
        .size = sizeof o, .peer_bytes = 6 * MEGA, .silence = 10 * KOFN_SECOND};
    const size_t sizes[] = {5 * MEGA + 77, 6 * MEGA - KF_COST,
                            6 * MEGA - KF_COST + 1, 6 * MEGA, 17 * MEGA + 3};
    unsigned char *body = malloc(17 * MEGA + 3);

    (void)state;
    for (size_t i = 0; i < 17 * MEGA + 3; i++)
        body[i] = (unsigned char)(i * 131 >> 7);
    for (size_t k = 0; k < 2 * (sizeof sizes / sizeof *sizes); k++) {
        size_t n = sizes[k / 2];
        pair m = meet(addresses[k % 2], &o);
        atomic_long done = 0;
        taste is = {0, 0, false};

        m.a->wanted = wants;
        m.a->wanted_ud = &is;
        for (unsigned i = 0; i < 4; i++) {
            kofn_packet p;

            is.wanted = i % 2;
            while (m.b->send(m.b, m.of_a, "long", 4,
                             &(kofn_lent){body, n, count_done, &done}, i > 1) ==
                   KOFN_AGAIN) /* nothing changed since the last call */
                assert_int_equal(m.b->wait(m.b, MILLI, &p), KOFN_AGAIN);
            p = next_of(m.a, m.b);
            assert_int_equal(is.asked, n);
            assert_int_equal(is.times, i + 1);
            assert_int_equal(p.what, KOFN_PACKET);
            assert_int_equal(p.body_bytes, i % 2 ? n : 0);
            if (i % 2)
                assert_memory_equal(p.body, body, n);
            m.a->release(m.a, p.own);
        }
        part(&m);
        assert_int_equal(done, 4);
    }
    free(body);
}

/* Sends a packet from b to a, where it arrives. */
static void passes(pair *m, const unsigned char *body, size_t n)
{
    kofn_packet p;

    while (m->b->send(m->b, m->of_a, "body", 4,
                      &(kofn_lent){.data = body, .bytes = n},
                      false) == KOFN_AGAIN)
        assert_int_equal(m->b->wait(m->b, MILLI, &p), KOFN_AGAIN);
    p = next_of(m->a, m->b);
    assert_int_equal(p.what, KOFN_PACKET);
    assert_int_equal(p.body_bytes, n);
    assert_memory_equal(p.body, body, n);
    m->a->release(m->a, p.own);
}

/* Credit comes by quarters of the window: after a short body up to a quarter of
 * it is not given back. */
static void after_a_short_body(void **state)
{
    const kofn_net_options o = {
        .size = sizeof o, .peer_bytes = 4 * MEGA, .silence = 10 * KOFN_SECOND};
    unsigned char *body = malloc(4 * MEGA);

    (void)state;
    for (size_t i = 0; i < 4 * MEGA; i++)
        body[i] = (unsigned char)(i * 131 >> 7);
    for (int k = 0; k < 2; k++) {
        pair m = meet(addresses[k], &o);

        for (size_t n = 4 * MEGA - KF_COST; n > 2 * MEGA; n -= MEGA / 3) {
            passes(&m, body, MEGA / 5);
            passes(&m, body, n);
        }
        part(&m);
    }
    free(body);
}

static void half_a_body(void **state)
{
    const kofn_net_options o = {
        .size = sizeof o, .peer_bytes = 4 * MEGA, .silence = 10 * KOFN_SECOND};
    unsigned char *body = calloc(60 * MEGA, 1);
    atomic_long done = 0;

    (void)state;
    for (int way = 0; way < 2; way++) {
        pair m = meet(addresses[0],
                      &o); /* between processes a file carries the whole body */
        kofn_transport *from = way ? m.a : m.b, *to = way ? m.b : m.a;
        kofn_packet p;

        done = 0;
        assert_ok(from->send(from, way ? m.of_b : m.of_a, "x", 1,
                             &(kofn_lent){body, 60 * MEGA, count_done, &done},
                             false));
        assert_int_equal(to->wait(to, MILLI, &p), KOFN_AGAIN);
        assert_int_equal(done, 0); /* it was announced and accepted */
        from->close(from, 0);
        assert_int_equal(done, 1);
        p = next_of(to, NULL);
        assert_int_equal(p.what, KOFN_WENT);
        to->close(to, 0);
    }
    free(body);
}

static void arriving(void **state)
{
    static unsigned char body[8000];
    kofn_transport *t = listener(addresses[0], &patient);
    int fd = plain(kofn_net_endpoint(t));
    kofn_arriving a = {.at = 0};
    kofn_packet p;

    (void)state;
    assert_true(hello(fd, NULL));
    came(t, NULL);
    assert_false(t->arriving(t, 0, &a));
    assert_false(t->arriving(t, 1, &a)); /* no peer has that number */
    assert_true(
        put_frame(fd, KF_PACKET, 0, "xyz", 3, sizeof body, sizeof body));
    assert_int_equal(send(fd, body, 1000, MSG_NOSIGNAL), 1000);
    while (a.at < 1000) {
        assert_int_equal(t->wait(t, MILLI, &p), KOFN_AGAIN);
        t->arriving(t, 0, &a);
    }
    assert_int_equal(a.at, 1000);
    assert_int_equal(a.body_bytes, sizeof body);
    assert_int_equal(a.head_bytes, 3);
    assert_memory_equal(a.head, "xyz", 3);
    assert_true(a.age > 0);
    assert_int_equal(send(fd, body, sizeof body - 1000, MSG_NOSIGNAL),
                     sizeof body - 1000);
    p = next_of(t, NULL);
    assert_int_equal(p.body_bytes, sizeof body);
    t->release(t, p.own);
    assert_false(t->arriving(t, 0, &a));
    close(fd);
    t->close(t, 0);
}

static bool has_urgent(kofn_transport *base)
{
    kf_transport *t = (kf_transport *)base;
    bool has;

    pthread_mutex_lock(&t->lock);
    has = t->traffic.waiting[KF_URGENT].first != NULL;
    pthread_mutex_unlock(&t->lock);
    return has;
}

static void urgent_without_credit(void **state)
{
    const kofn_net_options o = {.size = sizeof o,
                                .body_max = 2 * MEGA,
                                .peer_bytes = 2 * MEGA,
                                .silence = 10 * KOFN_SECOND};
    unsigned char *body = calloc(MEGA, 1);

    (void)state;
    for (int a = 0; a < 2; a++) {
        pair m = meet(addresses[a], &o);
        kofn_packet p;
        int sent = 0;

        for (int again = 0; again < 3;
             again++) { /* until the credit is used up */
            while (!m.a->send(m.a, m.of_b, "bulk", 4,
                              &(kofn_lent){.data = body, .bytes = MEGA / 2},
                              false)) {
                sent++;
                again = 0;
            }
            nap(50 * MILLI);
        }
        assert_ok(m.a->send(m.a, m.of_b, "now", 3, NULL, true));
        assert_true(sent > 1);
        for (int i = 0; i < 10000 && !has_urgent(m.b); i++)
            nap(MILLI); /* it arrives before the receiver asks */
        assert_true(has_urgent(m.b));
        p = next_of(m.b, NULL);
        assert_int_equal(p.head_bytes, 3);
        m.b->release(m.b, p.own);
        for (int i = 0; i < sent; i++) {
            p = next_of(m.b, m.a);
            assert_int_equal(p.head_bytes, 4);
            assert_int_equal(p.body_bytes, MEGA / 2);
            m.b->release(m.b, p.own);
        }
        part(&m);
    }
    free(body);
}

static void fairness(void **state)
{
    (void)state;
    for (int a = 0; a < 2; a++) {
        pair m = meet(addresses[a], &patient);
        kofn_transport *other = dialler(m.a, &patient);
        kofn_peer of_other = came(m.a, NULL), of_a = came(other, NULL);
        kofn_packet p;
        int said = 0;

        for (; said < 100; said++) {
            say(m.b, m.of_a, "still here");
            hear(m.a, m.of_b, "still here");
        }
        say(other, of_a, "I, too");
        do {
            assert_true(said++ < 200);
            say(m.b, m.of_a, "still here");
            p = next_of(m.a, NULL);
            m.a->release(m.a, p.own);
        } while (p.peer == m.of_b);
        assert_int_equal(p.peer, of_other);
        assert_int_equal(p.head_bytes, 6);
        other->close(other, 0);
        part(&m);
    }
}

TEST_FILE(flow_test)
{
    const struct CMUnitTest tests[] = {
        TEST(full_channel,
             "net: a full channel refuses packets and loses no accepted one"),
        TEST(room_wakes,
             "net: waiting ends as soon as a full channel has room"),
        TEST(urgent_overtakes,
             "net: urgent packets overtake 8 MiB of bulk (TCP, Unix sockets)"),
        TEST(
            long_bodies,
            "net: a long body may be declined (within, at, beyond the window)"),
        TEST(
            after_a_short_body,
            "net: a body almost as long as the window arrives after a short one"),
        TEST(half_a_body,
             "net: a sender that ends within a body loses that packet only"),
        TEST(arriving,
             "net: the arrived part of a body is reported until it is whole"),
        TEST(urgent_without_credit,
             "net: an urgent packet arrives although bulk has no credit left"),
        TEST(fairness,
             "net: a peer that always sends does not silence the others"),
    };

    name_socket();
    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
