/* accounts_test.c -- connections of one key, or of one host, share a limit for
 * waiting packets. They take turns with the connections of other keys and
 * hosts. */
#define _GNU_SOURCE
#include "caller_rig.h"

#define WINDOW ((size_t)64 << 10)

static const kofn_net_options narrow = {.size = sizeof(kofn_net_options),
                                        .peer_bytes = WINDOW,
                                        .silence = 100 * KOFN_SECOND};

static kofn_net_options narrow_with(bool keys)
{
    kofn_net_options o = narrow;

    o.keys = keys ? ring.dir : NULL;
    return o;
}

/* Greets the listener, and returns the windows that the listener grants. */
static size_t enter(caller *c)
{
    unsigned char got[KF_HEADER + sizeof(kf_greeting)];
    kf_greeting g;
    size_t at = 0;

    assert_true(caller_greets(c));
    while (at < sizeof got) {
        ssize_t n = c->ssl ? SSL_read(c->ssl, got + at, (int)(sizeof got - at))
                           : recv(c->fd, got + at, sizeof got - at, 0);

        assert_true(n > 0);
        at += at || *got != KF_BEAT ? (size_t)n : 0;
    }
    assert_int_equal(*got, KF_WELCOME);
    memcpy(&g, got + KF_HEADER, sizeof g);
    return kf_net_number(g.window, 8) + kf_net_number(g.urgent, 8);
}

/* Fills the caller's window with empty packets. */
static void fill_window(caller *c)
{
    static unsigned char all[WINDOW / KF_COST * (KF_HEADER + 4)];
    size_t n = 0;

    for (size_t i = 0; i < WINDOW / KF_COST; i++)
        n += lay_out(all + n, &(frame_of){KF_PACKET, 0, "junk", 4, 0, 0});
    assert_true(caller_says(c, all, n));
}

/* Waits until packets of `cost` bytes have come over the newest connection. */
static void wait_for_cost(kofn_transport *t, uint64_t cost)
{
    for (bool all = false; !all;) {
        nap(MILLI);
        pthread_mutex_lock(&inside(t)->lock);
        all = inside(t)->in.links->channel[KF_BULK].got >= cost;
        pthread_mutex_unlock(&inside(t)->lock);
    }
}

/* Waits until the transport has no connection. */
static void wait_for_end(kofn_transport *t)
{
    for (bool gone = false; !gone;) {
        nap(MILLI);
        pthread_mutex_lock(&inside(t)->lock);
        gone = inside(t)->in.links == NULL;
        pthread_mutex_unlock(&inside(t)->lock);
    }
}

static size_t waiting_packets(kofn_transport *t)
{
    size_t packets = 0, came_in = 0, have_gone = 0;
    kofn_packet p;

    while (!t->wait(t, 0, &p)) {
        packets += p.what == KOFN_PACKET;
        came_in += p.what == KOFN_CAME;
        have_gone += p.what == KOFN_WENT;
        if (p.what == KOFN_PACKET)
            t->release(t, p.own);
    }
    assert_int_equal(came_in, have_gone);
    return packets;
}

/* Each connection ends before the listener takes a packet of it. */
static void reconnecting(void **state)
{
    for (int keys = 0; keys < 2; keys++) {
        const kofn_net_options o = narrow_with(keys);
        kofn_transport *t = listener(addresses[0], &o);
        size_t packets;

        (void)state;
        for (int i = 0; i < 6; i++) {
            caller c = call(t, keys);

            enter(&c);
            fill_window(&c);
            hang_up_caller(&c);
            wait_for_end(t);
        }
        packets = waiting_packets(t);
        assert_true(packets > 0);
        assert_true(packets <= (WINDOW + WINDOW / 4) / KF_COST);
        assert_null(inside(t)->traffic.accounts);
        assert_null(inside(t)->traffic.ended);
        t->close(t, 0);
    }
}

static void many_connections(void **state)
{
    const kofn_net_options *o = &patient;
    kofn_transport *t = listener(addresses[0], o);
    size_t all = 0, last = 0;
    caller c[24];

    (void)state;
    for (int i = 0; i < 24; i++) {
        size_t own;

        c[i] = call(t, false);
        own = enter(&c[i]);
        assert_true(own >= MEGA + MEGA / 4);
        assert_true(i < 4 ? own == 40 * MEGA : own < 40 * MEGA);
        assert_true(i < 4 || own <= last);
        all += last = own;
    }
    assert_int_equal(last, MEGA + MEGA / 4);
    assert_true(all <= 7 * 40 * MEGA);
    for (int i = 0; i < 24; i++)
        close(c[i].fd);
    t->close(t, 0);
}

static void turns(void **state)
{
    kofn_transport *t = listener(addresses[0], &narrow);
    caller many = call(t, false), one;
    kofn_packet p;
    kofn_peer first, second;
    int before = 0;

    (void)state;
    enter(&many);
    first = came(t, NULL);
    fill_window(&many);
    wait_for_cost(t, WINDOW / KF_COST * KF_COST);
    one = call(t, false);
    enter(&one);
    assert_true(
        caller_frames(&one, &(frame_of){KF_PACKET, 0, "here", 4, 0, 0}));
    wait_for_cost(t, KF_COST);
    do {
        p = next_of(t, NULL);
        assert_int_equal(p.what == KOFN_CAME, p.peer != first);
    } while (p.what != KOFN_CAME);
    second = p.peer;
    for (p = next_of(t, NULL); p.peer != second; p = next_of(t, NULL))
        before++;
    assert_true(before <= 1);
    assert_memory_equal(p.head, "here", 4);
    /* A forgotten peer leaves nothing to take, whether it has gone or not. */
    hang_up_caller(&many);
    hang_up_caller(&one);
    wait_for_end(t);
    t->forget(t, first);
    went(t, second);
    assert_int_equal(t->wait(t, 0, &p), KOFN_AGAIN);
    assert_null(inside(t)->traffic.accounts);
    t->close(t, 0);
}

TEST_FILE(accounts_test)
{
    const struct CMUnitTest tests[] = {
        TEST(reconnecting,
             "net: a reconnecting peer keeps one connection's packets at most"),
        TEST(many_connections,
             "net: further connections of a host get smaller windows"),
        TEST(turns,
             "net: connections take turns, and forgotten ones leave no packet"),
    };

    return cmocka_run_group_tests_name("accounts", tests, make_ring, drop_ring);
}
