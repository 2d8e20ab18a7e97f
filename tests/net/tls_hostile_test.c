/* tls_hostile_test.c -- the transport with keys and those who do not shake
 * hands as they should: where they end, what they send, and what they are told.
 */
#define _GNU_SOURCE
#include "hand_rig.h"

/* ---- ends ---------------------------------------------------------------- */

/* Both of a client's flights, the second of which answers to a server; false:
 * it has no more to say. */
static bool cut_at(kofn_transport *t, size_t n, bool reset)
{
    hand h = hand_new(false);
    char text[8192];
    size_t has = hand_says(&h, text, sizeof text), m = kf_min(n, has);

    h.fd = plain(kofn_net_endpoint(t));
    assert_int_equal(send(h.fd, text, m, MSG_NOSIGNAL), m);
    n -= m;
    if (m == has) {
        while (!SSL_is_init_finished(h.ssl)) {
            hand_hears(&h, t);
            has = hand_says(&h, text, sizeof text);
        }
        m = kf_min(n, has);
        assert_int_equal(send(h.fd, text, m, MSG_NOSIGNAL), m);
        n -= m;
    }
    hang_up(h.fd, reset);
    h.fd = -1;
    hand_free(&h);
    return n == 0;
}

static void clients_end_at_every_byte(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    size_t step = SLOWED > 1 || test_scale() < 1 ? 7 : 1;

    (void)state;
    for (size_t n = 0; cut_at(t, n, n % 2); n += step) {
        kofn_packet p;

        while (!t->wait(t, 0, &p))
            t->release(t, p.own);
    }
    until(t, NULL, nobody_is_left);
    visit(t);
    t->close(t, 0);
}

static void dribble(hand *h, kofn_transport *t)
{
    char text[8192];
    int n = BIO_read(SSL_get_wbio(h->ssl), text, sizeof text);
    kofn_packet p;

    for (int i = 0; i < n; i++) {
        assert_int_equal(t->wait(t, i % 50 ? 0 : MILLI, &p), KOFN_AGAIN);
        assert_int_equal(send(h->fd, text + i, 1, MSG_NOSIGNAL), 1);
    }
}

/* A byte at a time is as good as all at once. */
static void slow_but_honest(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    unsigned char all[KF_HEADER + sizeof(kf_greeting)] = {KF_HELLO};
    kf_greeting g = {.magic = KF_MAGIC};
    hand h = hand_new(false);

    (void)state;
    h.fd = plain(kofn_net_endpoint(t));
    while (SSL_do_handshake(h.ssl) != 1) {
        dribble(&h, t);
        hand_hears(&h, t);
    }
    memcpy(g.magic, KF_MAGIC, sizeof g.magic);
    kf_net_put_number(all + 2, sizeof g, 2);
    memcpy(all + KF_HEADER, &g, sizeof g);
    assert_int_equal(SSL_write(h.ssl, all, sizeof all), sizeof all);
    dribble(&h, t);
    came(t, NULL);
    hand_free(&h);
    t->close(t, 0);
}

/* The dialler tries again at once. */
static int next_call(int l, kofn_transport *t)
{
    kofn_packet p;
    int fd;

    locked(t);
    inside(t)->dial[0]->next = 0;
    unlock(t);
    while ((fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) < 0)
        assert_int_equal(t->wait(t, MILLI, &p), KOFN_AGAIN);
    return fd;
}

static void servers_end_at_every_byte(void **state)
{
    const kofn_net_options o = with(in(&ring, "anna"));
    size_t step = SLOWED > 1 || test_scale() < 1 ? 29 : 1, has = 1;
    kofn_transport *hub = listener(addresses[0], &patient), *t;
    char text[8192];
    kf_place at;
    const char *port;
    int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1;

    (void)state;
    assert_ok(kf_place_there(kofn_net_endpoint(hub), &at, text, &port));
    t = NULL;
    hub->close(hub, 0); /* its port is free now */
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    assert_int_equal(bind(l, (struct sockaddr *)&at.at, at.bytes), 0);
    assert_int_equal(listen(l, 10), 0);
    snprintf(text, sizeof text, "tcp://");
    kf_place_text((struct sockaddr *)&at.at, text + 6, sizeof text - 6);
    assert_ok(kofn_net_connect(&t, text, &o));
    for (size_t n = 0; n < has; n += step) {
        hand h = hand_new(true);

        h.fd = next_call(l, t);
        hand_hears(&h, t);
        has = hand_says(&h, text, sizeof text);
        assert_true(has > 300);
        n = kf_min(n, has);
        assert_int_equal(send(h.fd, text, n, MSG_NOSIGNAL), n);
        hang_up(h.fd, n % 2);
        h.fd = -1;
        until(t, NULL, nobody_is_left);
        assert_string_not_equal(kofn_net_trouble(t), "");
        hand_free(&h);
    }
    close(l);
    t->close(t, 0);
}

/* ---- noise --------------------------------------------------------------- */

static uint32_t draw(uint32_t *s)
{
    *s = *s * 1664525 + 1013904223;
    return *s >> 8;
}

/* Anything; a good beginning that goes wrong; and nothing at all, by crowds. */
static void noise_and_crowds(void **state)
{
    kofn_net_options o = with(ring.dir);
    int many = test_scale() < 1 ? 100 : 1000, idle[100];
    kofn_transport *t;
    uint32_t s = 1;

    (void)state;
    o.strangers = 8;
    t = listener(addresses[1], &o);
    for (int i = 0; i < many; i++) {
        int fd = plain(kofn_net_endpoint(t));
        unsigned char junk[3000];
        size_t first = 0, n = draw(&s) % sizeof junk;
        kofn_packet p;

        for (size_t j = 0; j < sizeof junk; j++)
            junk[j] = (unsigned char)draw(&s);
        if (i % 3)
            hello_and_half((char *)junk, sizeof junk, &first);
        if (i % 3 == 2)
            junk[draw(&s) % first] ^= (unsigned char)(1 + draw(&s) % 255);
        send(fd, junk, n, MSG_NOSIGNAL);
        while (!t->wait(t, 0, &p))
            t->release(t, p.own);
        hang_up(fd, draw(&s) % 2);
    }
    for (int i = 0; i < 100; i++)
        idle[i] = plain(kofn_net_endpoint(t));
    visit(t);
    assert_true(locked(t)->strangers <= 8);
    unlock(t);
    for (int i = 0; i < 100; i++)
        close(idle[i]);
    t->close(t, 0);
}

/* Somebody with a key, whose last flight and greeting are put into `said`. */
static size_t last_flight(hand *h, kofn_transport *t, char *said, size_t room)
{
    unsigned char all[KF_HEADER + KOFN_HEAD_MAX];
    const kf_greeting g = greeting_of(NULL);
    size_t n = hand_says(h, said, room);

    h->fd = plain(kofn_net_endpoint(t));
    assert_int_equal(send(h->fd, said, n, MSG_NOSIGNAL), n);
    while (!SSL_is_init_finished(h->ssl)) {
        hand_hears(h, t);
        SSL_do_handshake(h->ssl);
    }
    n = lay_out(all, &(frame_of){KF_HELLO, 0, &g, sizeof g, 0, 0});
    assert_int_equal(SSL_write(h->ssl, all, (int)n), n);
    return (size_t)BIO_read(SSL_get_wbio(h->ssl), said, (int)room);
}

/* Before, in and instead of the last flight of somebody with a key: he comes in
 * if there is none, and never with it. */
static void noise_amid_handshakes(void **state)
{
    enum { CHANGE = 6, KINDS = 4 }; /* bytes that TLS does not look at */
    const kofn_net_options o = with(ring.dir);
    int many = test_scale() < 1 ? 100 : 1000;
    kofn_transport *t = listener(addresses[1], &o);
    uint32_t s = 3, honest = 0;

    (void)state;
    for (int i = 0; i < many; i++) {
        hand h = hand_new(false);
        char said[8192], noise[3000];
        size_t n = last_flight(&h, t, said, sizeof said), at, m = 0;

        at = CHANGE + draw(&s) % (n - CHANGE);
        for (size_t j = 0; j < sizeof noise; j++)
            noise[j] = (char)draw(&s);
        if (i % KINDS == 1)
            said[at] ^= (char)(1 + draw(&s) % 255);
        if (i % KINDS > 1)
            m = 1 + draw(&s) % (sizeof noise - 1);
        if (i % KINDS == 3)
            at = 0;
        send(h.fd, said, at, MSG_NOSIGNAL);
        send(h.fd, noise, m, MSG_NOSIGNAL);
        send(h.fd, said + at, n - at, MSG_NOSIGNAL);
        honest += i % KINDS == 0;
        while (i % KINDS == 0 && next_of(t, NULL).what != KOFN_CAME)
            ;
        hang_up(h.fd, draw(&s) % 2);
        h.fd = -1;
        hand_free(&h);
        until(t, NULL, nobody_is_left);
        assert_int_equal(locked(t)->next, honest);
        unlock(t);
    }
    visit(t);
    t->close(t, 0);
}

/* ---- who is refused ------------------------------------------------------ */

static size_t lingering; /* of those who are refused */

static bool so_many_linger(kofn_transport *a, kofn_transport *b)
{
    size_t n = 0;

    (void)b;
    for (kf_link *l = locked(a)->links; l; l = l->after)
        n += l->stage == KF_REFUSED;
    unlock(a);
    return n == lingering;
}

/* Somebody whose key is not listed, and who has said all he has to say before
 * he is refused. */
static hand refused_hand(kofn_transport *t, const keyring *other)
{
    hand h = hand_of(in(other, "worker.crt"), in(other, "worker.key"), false);
    const kf_greeting g = greeting_of(NULL);
    char text[8192];
    size_t n = hand_says(&h, text, sizeof text);

    h.fd = plain(kofn_net_endpoint(t));
    assert_int_equal(send(h.fd, text, n, MSG_NOSIGNAL), n);
    while (!SSL_is_init_finished(h.ssl)) {
        hand_hears(&h, t);
        SSL_do_handshake(h.ssl);
    }
    assert_int_equal(SSL_write(h.ssl, &g, sizeof g), sizeof g);
    n = (size_t)BIO_read(SSL_get_wbio(h.ssl), text, sizeof text);
    assert_int_equal(send(h.fd, text, n, MSG_NOSIGNAL), n);
    return h;
}

/* He reads why, and then an end that is none by force, also if he writes before
 * he reads. */
static void the_refused_are_told_why(void **state)
{
    const kofn_net_options o = with(ring.dir);
    keyring other;

    (void)state;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    for (int a = 0; a < 2; a++) {
        kofn_transport *t = listener(addresses[a], &o);
        hand h = refused_hand(t, &other);
        char text[100];
        ssize_t n;

        lingering = 1;
        until(t, NULL, so_many_linger);
        assert_int_equal(send(h.fd, text, 100, MSG_NOSIGNAL), 100);
        n = recv(h.fd, text, sizeof text, 0);
        assert_true(n > 0);
        assert_int_equal(BIO_write(SSL_get_rbio(h.ssl), text, (int)n), n);
        ERR_clear_error();
        assert_true(SSL_read(h.ssl, text, 1) <= 0);
        assert_int_equal(ERR_GET_REASON(ERR_get_error()),
                         SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REVOKED);
        assert_int_equal(recv(h.fd, text, 1, 0), 0);
        assert_int_equal(send(h.fd, text, 100, MSG_NOSIGNAL), 100);
        hand_free(&h);
        until(t, NULL, nobody_is_left);
        assert_int_equal(refused_by(t).keyless, 1);
        t->close(t, 0);
    }
    keyring_free(&other);
}

/* Those who do not leave when they are refused are strangers still: few, for
 * ten seconds since they came, with so many bytes. */
static void the_refused_have_to_go(void **state)
{
    kofn_net_options o = with(ring.dir);
    hand h[12];
    kofn_transport *t;
    keyring other;
    char text[8192] = {0};

    (void)state;
    o.strangers = 8;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    t = listener(addresses[0], &o);
    for (int i = 0; i < 12; i++) {
        h[i] = refused_hand(t, &other);
        lingering = i < 8 ? (size_t)i + 1 : 8;
        until(t, NULL, so_many_linger);
        assert_int_equal(refused_by(t).keyless, i + 1);
    }
    visit(t); /* which ends one of them */
    lingering = 7;
    assert_true(so_many_linger(t, NULL));
    errno = 0;
    for (size_t n = 0; n < 64 * MEGA; n += sizeof text)
        if (send(h[11].fd, text, sizeof text, MSG_NOSIGNAL) < 0)
            break;
    assert_true(errno == EPIPE || errno == ECONNRESET);
    lingering = 6;
    until(t, NULL, so_many_linger);
    locked(t);
    inside(t)->awake += 11 * KOFN_SECOND;
    unlock(t);
    until(t, NULL, nobody_is_left);
    assert_int_equal(refused_by(t).unresponsive, 0); /* they are told of once */
    for (int i = 0; i < 12; i++)
        hand_free(&h[i]);
    t->close(t, 0);
    keyring_free(&other);
}

/* Who is refused is told of. */
static void the_refused_are_news(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    kofn_net_options wrong;
    kofn_transport *b;
    keyring other;

    (void)state;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    assert_int_equal(unlink(in(&other, "coordinator.crt")), 0);
    assert_int_equal(
        link(in(&ring, "coordinator.crt"), in(&other, "coordinator.crt")), 0);
    wrong = with(other.dir);
    b = dialler(t, &wrong);
    until(t, b, refuses);
    assert_non_null(strstr(t->news(t), "their keys are not on the list"));
    b->close(b, 0);
    t->close(t, 0);
    keyring_free(&other);
}

TEST_FILE(tls_hostile_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_end_at_every_byte),
        cmocka_unit_test(slow_but_honest),
        cmocka_unit_test(servers_end_at_every_byte),
        cmocka_unit_test(noise_and_crowds),
        cmocka_unit_test(noise_amid_handshakes),
        cmocka_unit_test(the_refused_are_told_why),
        cmocka_unit_test(the_refused_have_to_go),
        cmocka_unit_test(the_refused_are_news),
    };

    return cmocka_run_group_tests_name("tls hostile", tests, make_ring,
                                       drop_ring);
}
