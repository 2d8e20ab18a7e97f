/* zmq_floods_test.c -- what strangers and peers can make the ZeroMQ transport
 * hold: messages that are long, or do not end.
 */
#include "zmq_hand.h"

#include <stdatomic.h>

/* ---- memory -------------------------------------------------------------- */

#define LITTLE (100 * 1024) /* KiB; the attacks below offer 512 MiB and more */
#define LONGEST (8 * MEGA)  /* a body that is allowed */

static const kofn_zmq_options bounded = {.body_max = LONGEST,
                                         .silence = 10 * KOFN_SECOND};

/* What was sent is all that is held of it. */
static void held_at_most(const findings *f, size_t sent)
{
    grew_less(f->grown, (long)(sent * 1024) + LITTLE);
}

/* A message that does not end, of one who has not said who it is.  How much of it
 * comes before anybody looks depends on the machine; what it may have then does
 * not (zmq_doors_test.c). */
static void endless_messages_of_strangers(void **state)
{
    static const unsigned char token[KF_TOKEN] = {5};

    (void)state;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &patient, 0);
        int fd = plain(h.address);
        size_t sent;
        findings f;

        assert_true(greet(fd, "NULL") && ready(fd, KF_BULK, token));
        sent = endless(fd, 2048);
        assert_true(sent < 2048);
        close(fd);
        visit(&h, &patient);
        f = close_house(&h);
        held_at_most(&f, sent + 1);
        assert_true(f.ended >= 1);
        assert_non_null(strstr(f.news, "more than a message may have"));
    }
}

/* ... and of a peer, who is let in and heard. */
static void endless_messages_of_peers(void **state)
{
    static const unsigned char token[KF_TOKEN] = {6};
    house h = open_house(addresses[0], &bounded, 0);
    int bulk = plain(h.address), urgent = plain(h.address);
    size_t sent;
    findings f;

    (void)state;
    assert_true(greet(bulk, "NULL") && ready(bulk, KF_BULK, token));
    assert_true(greet(urgent, "NULL") && ready(urgent, KF_URGENT, token));
    hello(bulk);
    hello(urgent);
    assert_true(welcome(bulk));
    sent = endless(bulk, 2048);
    assert_true(sent < 2048);
    close(bulk);
    close(urgent);
    visit(&h, &patient);
    f = close_house(&h);
    assert_int_equal(f.came, 2);
    held_at_most(&f, sent + 1);
    assert_true(f.ended >= 1);
}

/* Whoever begins a frame that is longer than the longest body that is allowed
 * and a head is disconnected before more of it is received. */
static void long_frames(void **state)
{
    static const unsigned char token[KF_TOKEN] = {8};

    (void)state;
    for (int w = 0; w < 2; w++) {
        house h = open_house(addresses[w], &bounded, 0);
        int bulk = plain(h.address), urgent = plain(h.address);

        assert_true(greet(bulk, "NULL") && ready(bulk, KF_BULK, token));
        assert_true(greet(urgent, "NULL") && ready(urgent, KF_URGENT, token));
        hello(bulk);
        hello(urgent);
        assert_int_equal(begin_frame(bulk, 0, LONGEST + KF_LEAD + 1), 9);
        assert_true(ends(bulk));
        visit(&h, &patient);
        close(bulk);
        close(urgent);
        close_house(&h);
    }
}

/* Many strangers begin a frame of so many bytes, and send them; those without
 * a key as a handshake, the others as a message. */
static void claim(const house *h, const kofn_zmq_options *o, size_t bytes)
{
    static const unsigned char token[KF_TOKEN] = {7};
    /* who goes by a name that another takes is not always hung up on */
    const struct timeval patience = {0, 100 * 1000};
    char *junk = calloc(MEGA, 1);
    int fd[64];

    assert_non_null(junk);
    for (int i = 0; i < 64; i++) {
        fd[i] = plain(h->address);
        assert_true(fd[i] >= 0);
        assert_true(greet(fd[i], o->keys ? "CURVE" : "NULL"));
        assert_true(o->keys || ready(fd[i], KF_BULK, token));
        setsockopt(fd[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        begin_frame(fd[i], o->keys ? 4 : 0, bytes);
        for (size_t n = bytes; n > 0 && put(fd[i], junk, MEGA / 2);
             n -= kf_min(n, MEGA / 2))
            ;
    }
    visit(h, o);
    for (int i = 0; i < 64; i++)
        close(fd[i]);
    free(junk);
}

static void claim_all(const kofn_zmq_options *o, size_t longest)
{
    house h = open_house(addresses[0], o, 0);
    findings f;

    for (int turn = 0; turn < 2; turn++)
        claim(&h, o, longest - 1);
    claim(&h, o, 32 * MEGA);
    f = close_when_gone(&h, 3 * 64);
    grew_less(f.grown, LITTLE);
    /* who was ended under a name that another took may stay with ZeroMQ */
    assert_true(f.silent + f.ended >= 3 * 64);
}

/* Handshakes that are long, or claim to be, of many who have no key. */
static void long_handshakes(void **state)
{
    char keys[] = "/tmp/kofn-keys-XXXXXX";
    const kofn_zmq_options o = {.keys = keys, .silence = 10 * KOFN_SECOND};

    (void)state;
    make_keys(keys);
    claim_all(&o, KF_CHUNK);
    erase_keys(keys);
}

/* ... and where there are no keys messages as long as a peer's may be, which
 * make no difference to what a stranger costs; all under one name, of which
 * ZeroMQ would keep for ever what the second and later ones have sent. */
static void long_messages(void **state)
{
    (void)state;
    claim_all(&bounded, LONGEST);
}

/* ---- long bodies --------------------------------------------------------- */

#ifndef __SANITIZE_THREAD__ /* it takes milliseconds for every number */
typedef struct taste {
    size_t asked;
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
    return is->wanted;
}

static void count_done(void *ud)
{
    atomic_fetch_add((atomic_long *)ud, 1);
}

/* A body that nobody wants comes without, and the next one as it is. */
static void ask_for(const kofn_zmq_options *o, size_t n)
{
    unsigned char *body = malloc(n);
    pair m = meet(addresses[0], o);
    atomic_long done = 0;
    taste is = {0, false};

    for (size_t i = 0; i < n; i++)
        body[i] = (unsigned char)(i * 131 >> 7);
    m.a->wanted = wants;
    m.a->wanted_ud = &is;
    for (int i = 0; i < 4; i++) {
        kofn_packet p;

        is.wanted = i % 2;
        assert_ok(m.b->send(m.b, m.of_a, "long", 4, body, n, i > 1, count_done,
                            &done));
        p = next_of(m.a, m.b);
        assert_int_equal(is.asked, n);
        assert_int_equal(p.what, KOFN_PACKET);
        assert_int_equal(p.body_bytes, i % 2 ? n : 0);
        if (i % 2)
            assert_memory_equal(p.body, body, n);
        m.a->release(m.a, p.own);
    }
    part(&m);
    assert_int_equal(done, 4);
    free(body);
}

static void bodies_are_asked_for(void **state)
{
    char keys[] = "/tmp/kofn-keys-XXXXXX";
    const kofn_zmq_options o = {.keys = keys, .silence = 10 * KOFN_SECOND};

    (void)state;
    make_keys(keys);
    ask_for(&patient, 5 * MEGA + 77); /* one message */
    ask_for(&o, 5 * MEGA + 77);       /* chunks      */
    erase_keys(keys);
}

/* Half a body is lost with its sender, and nothing else is. */
static void half_a_body_is_lost(void **state)
{
    char keys[] = "/tmp/kofn-keys-XXXXXX";
    const kofn_zmq_options o = {
        .peer_bytes = 4 * MEGA, .keys = keys, .silence = 10 * KOFN_SECOND};
    unsigned char *body = calloc(60 * MEGA, 1);
    atomic_long done = 0;

    (void)state;
    make_keys(keys);
    for (int way = 0; way < 2; way++) {
        pair m = meet(addresses[0], &o);
        kofn_transport *from = way ? m.a : m.b, *to = way ? m.b : m.a;
        kofn_packet p;

        done = 0;
        assert_ok(from->send(from, way ? m.of_b : m.of_a, "x", 1, body,
                             60 * MEGA, false, count_done, &done));
        assert_int_equal(to->wait(to, 50 * MILLI, &p), KOFN_AGAIN);
        assert_int_equal(done, 0);
        from->close(from, 0);
        assert_int_equal(done, 1);
        p = next_of(to, NULL);
        assert_int_equal(p.what, KOFN_WENT);
        to->close(to, 0);
    }
    erase_keys(keys);
    free(body);
}
#endif

TEST_FILE(zmq_floods_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endless_messages_of_strangers),
        cmocka_unit_test(endless_messages_of_peers),
        cmocka_unit_test(long_frames),
        cmocka_unit_test(long_handshakes),
        cmocka_unit_test(long_messages),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(bodies_are_asked_for),
        cmocka_unit_test(half_a_body_is_lost),
#endif
    };

    begin_by_hand();
    return cmocka_run_group_tests_name("zmq_floods", tests, NULL, NULL);
}
