/* flow_test.c -- what may be sent over TCP and Unix sockets before it is taken:
 * a way that is full, what is urgent, and bodies longer than there is room for.
 */
#include "net_rig.h"

#include <stdatomic.h>

/* ---- a full way ---------------------------------------------------------- */

/* What is sent while nobody listens is bounded, and nothing of it is lost. */
static void a_full_way_is_told(void **state)
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

/* Waiting ends early when a way that was full has room. */
static void room_wakes_up(void **state)
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
    /* On a loaded machine nothing may leave for a while: more are sent than are
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

/* As soon as there is room; meanwhile the other end hears nothing. */
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

/* 8 MiB are on their way when something urgent is said, and nobody listens for
 * a while; how many of them come before it. */
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

/* Where it is here, which takes longer on a loaded machine. */
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

/* A body that nobody wants comes without, and the next one as it is: within the
 * window, as long as it with or without what a packet costs, and longer. */
static void bodies_are_asked_for(void **state)
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
                             &(kofn_lent){body, n, count_done, &done},
                             i > 1) == KOFN_AGAIN) /* it has just been told */
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

/* Half a body is lost with its sender, and nothing else is. */
static void half_a_body_is_lost(void **state)
{
    const kofn_net_options o = {
        .size = sizeof o, .peer_bytes = 4 * MEGA, .silence = 10 * KOFN_SECOND};
    unsigned char *body = calloc(60 * MEGA, 1);
    atomic_long done = 0;

    (void)state;
    for (int way = 0; way < 2; way++) {
        pair m = meet(addresses[0], &o); /* between processes it is whole */
        kofn_transport *from = way ? m.a : m.b, *to = way ? m.b : m.a;
        kofn_packet p;

        done = 0;
        assert_ok(from->send(from, way ? m.of_b : m.of_a, "x", 1,
                             &(kofn_lent){body, 60 * MEGA, count_done, &done},
                             false));
        assert_int_equal(to->wait(to, MILLI, &p), KOFN_AGAIN);
        assert_int_equal(done, 0); /* it was announced, and asked for */
        from->close(from, 0);
        assert_int_equal(done, 1);
        p = next_of(to, NULL);
        assert_int_equal(p.what, KOFN_WENT);
        to->close(to, 0);
    }
    free(body);
}

/* What of a body is here is told while the rest is on its way, and when it is
 * whole nothing is. */
static void what_is_arriving_is_told(void **state)
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
    assert_false(t->arriving(t, 1, &a)); /* nobody has that number */
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
    has = t->waiting[KF_URGENT].first != NULL;
    pthread_mutex_unlock(&t->lock);
    return has;
}

/* Nothing that waits is in the way of what is urgent, where nobody has taken
 * anything and there is no credit left. */
static void urgent_passes_by_what_waits(void **state)
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

        for (int again = 0; again < 3; again++) { /* until no credit is left */
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
            nap(MILLI); /* it comes before it is asked for */
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

/* A word of another is heard though there is always one more of who was heard
 * last. */
static void who_goes_on_speaking_is_not_all_that_is_heard(void **state)
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
        cmocka_unit_test(a_full_way_is_told),
        cmocka_unit_test(room_wakes_up),
        cmocka_unit_test(urgent_overtakes),
        cmocka_unit_test(bodies_are_asked_for),
        cmocka_unit_test(half_a_body_is_lost),
        cmocka_unit_test(what_is_arriving_is_told),
        cmocka_unit_test(urgent_passes_by_what_waits),
        cmocka_unit_test(who_goes_on_speaking_is_not_all_that_is_heard),
    };

    name_socket();
    return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
