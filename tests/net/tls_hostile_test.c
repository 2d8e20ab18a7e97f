/* tls_hostile_test.c -- the transport with keys, and peers that break the
 * handshake: where they end, what they send, and which reason they get. */
#define _GNU_SOURCE
#include "tls_peer.h"

/* ---- ends ---------------------------------------------------------------- */

/* Sends the first n bytes of both flights of a client, then ends. The second
 * flight answers the server's. Returns false if the client has no more to
 * send. */
static bool cut_at(kofn_transport *t, size_t n, bool reset)
{
    tls_peer h = tls_peer_new(false);
    char text[8192];
    size_t has = tls_peer_says(&h, text, sizeof text), m = kf_min(n, has);

    h.fd = plain(kofn_net_endpoint(t));
    assert_int_equal(send(h.fd, text, m, MSG_NOSIGNAL), m);
    n -= m;
    if (m == has) {
        while (!SSL_is_init_finished(h.ssl)) {
            tls_peer_hears(&h, t);
            has = tls_peer_says(&h, text, sizeof text);
        }
        m = kf_min(n, has);
        assert_int_equal(send(h.fd, text, m, MSG_NOSIGNAL), m);
        n -= m;
    }
    hang_up(h.fd, reset);
    h.fd = -1;
    tls_peer_free(&h);
    return n == 0;
}

static void client_ends(void **state)
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

static void dribble(tls_peer *h, kofn_transport *t)
{
    char text[8192];
    int n = BIO_read(SSL_get_wbio(h->ssl), text, sizeof text);
    kofn_packet p;

    for (int i = 0; i < n; i++) {
        assert_int_equal(t->wait(t, i % 50 ? 0 : MILLI, &p), KOFN_AGAIN);
        assert_int_equal(send(h->fd, text + i, 1, MSG_NOSIGNAL), 1);
    }
}

static void byte_by_byte(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    unsigned char all[KF_HEADER + sizeof(kf_greeting)] = {KF_HELLO};
    kf_greeting g = {.magic = KF_MAGIC};
    tls_peer h = tls_peer_new(false);

    (void)state;
    h.fd = plain(kofn_net_endpoint(t));
    while (SSL_do_handshake(h.ssl) != 1) {
        dribble(&h, t);
        tls_peer_hears(&h, t);
    }
    memcpy(g.magic, KF_MAGIC, sizeof g.magic);
    kf_net_put_number(all + 2, sizeof g, 2);
    memcpy(all + KF_HEADER, &g, sizeof g);
    assert_int_equal(SSL_write(h.ssl, all, sizeof all), sizeof all);
    dribble(&h, t);
    came(t, NULL);
    tls_peer_free(&h);
    t->close(t, 0);
}

/* Accepts the dialler's next connection, at once. */
static int next_call(int l, kofn_transport *t)
{
    kofn_packet p;
    int fd;

    locked(t);
    inside(t)->out.dial[0]->next = 0;
    unlock(t);
    while ((fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) < 0)
        assert_int_equal(t->wait(t, MILLI, &p), KOFN_AGAIN);
    return fd;
}

static void server_ends(void **state)
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
        tls_peer h = tls_peer_new(true);

        h.fd = next_call(l, t);
        tls_peer_hears(&h, t);
        has = tls_peer_says(&h, text, sizeof text);
        assert_true(has > 300);
        n = kf_min(n, has);
        assert_int_equal(send(h.fd, text, n, MSG_NOSIGNAL), n);
        hang_up(h.fd, n % 2);
        h.fd = -1;
        until(t, NULL, nobody_is_left);
        assert_string_not_equal(kofn_net_trouble(t), "");
        tls_peer_free(&h);
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

/* Sends noise, a good beginning that goes wrong, and nothing, on many
 * connections. */
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
    assert_true(locked(t)->gate.strangers <= 8);
    unlock(t);
    for (int i = 0; i < 100; i++)
        close(idle[i]);
    t->close(t, 0);
}

/* Puts the last flight and the greeting of a peer with a key into `said`. */
static size_t last_flight(tls_peer *h, kofn_transport *t, char *said,
                          size_t room)
{
    unsigned char all[KF_HEADER + KOFN_HEAD_MAX];
    const kf_greeting g = greeting_of(NULL);
    size_t n = tls_peer_says(h, said, room);

    h->fd = plain(kofn_net_endpoint(t));
    assert_int_equal(send(h->fd, said, n, MSG_NOSIGNAL), n);
    while (!SSL_is_init_finished(h->ssl)) {
        tls_peer_hears(h, t);
        SSL_do_handshake(h->ssl);
    }
    n = lay_out(all, &(frame_of){KF_HELLO, 0, &g, sizeof g, 0, 0});
    assert_int_equal(SSL_write(h->ssl, all, (int)n), n);
    return (size_t)BIO_read(SSL_get_wbio(h->ssl), said, (int)room);
}

/* Noise comes before, in and instead of the last flight of a peer with a key.
 * The peer is admitted without noise, and never with it. */
static void handshake_noise(void **state)
{
    enum { CHANGE = 6, KINDS = 4 }; /* bytes that TLS does not look at */
    const kofn_net_options o = with(ring.dir);
    int many = test_scale() < 1 ? 100 : 1000;
    kofn_transport *t = listener(addresses[1], &o);
    uint32_t s = 3, honest = 0;

    (void)state;
    for (int i = 0; i < many; i++) {
        tls_peer h = tls_peer_new(false);
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
        tls_peer_free(&h);
        until(t, NULL, nobody_is_left);
        assert_int_equal(locked(t)->in.next, honest);
        unlock(t);
    }
    visit(t);
    t->close(t, 0);
}

/* ---- peers that are refused ---------------------------------------------- */

static size_t
    lingering; /* the expected number of refused connections that linger */

static bool expected_linger(kofn_transport *a, kofn_transport *b)
{
    size_t n = 0;

    (void)b;
    for (kf_link *l = locked(a)->in.links; l; l = l->after)
        n += l->state == KF_REFUSED;
    unlock(a);
    return n == lingering;
}

/* Makes a peer with a key that is not listed. It has sent all its bytes before
 * it is refused. */
static tls_peer refused_peer(kofn_transport *t, const keyring *other)
{
    tls_peer h =
        tls_peer_of(in(other, "worker.crt"), in(other, "worker.key"), false);
    const kf_greeting g = greeting_of(NULL);
    char text[8192];
    size_t n = tls_peer_says(&h, text, sizeof text);

    h.fd = plain(kofn_net_endpoint(t));
    assert_int_equal(send(h.fd, text, n, MSG_NOSIGNAL), n);
    while (!SSL_is_init_finished(h.ssl)) {
        tls_peer_hears(&h, t);
        SSL_do_handshake(h.ssl);
    }
    assert_int_equal(SSL_write(h.ssl, &g, sizeof g), sizeof g);
    n = (size_t)BIO_read(SSL_get_wbio(h.ssl), text, sizeof text);
    assert_int_equal(send(h.fd, text, n, MSG_NOSIGNAL), n);
    return h;
}

/* The peer reads the reason, and then an orderly end, even if it writes before
 * it reads. */
static void refusal_reason(void **state)
{
    const kofn_net_options o = with(ring.dir);
    keyring other;

    (void)state;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    for (int a = 0; a < 2; a++) {
        kofn_transport *t = listener(addresses[a], &o);
        tls_peer h = refused_peer(t, &other);
        char text[100];
        ssize_t n;

        lingering = 1;
        until(t, NULL, expected_linger);
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
        tls_peer_free(&h);
        until(t, NULL, nobody_is_left);
        assert_int_equal(refused_by(t).keyless, 1);
        t->close(t, 0);
    }
    keyring_free(&other);
}

/* A refused connection that stays counts as a stranger. There may be few, for
 * ten seconds since they came, and with a limited number of bytes. */
static void refused_linger(void **state)
{
    kofn_net_options o = with(ring.dir);
    tls_peer h[12];
    kofn_transport *t;
    keyring other;
    char text[8192] = {0};

    (void)state;
    o.strangers = 8;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    t = listener(addresses[0], &o);
    for (int i = 0; i < 12; i++) {
        h[i] = refused_peer(t, &other);
        lingering = i < 8 ? (size_t)i + 1 : 8;
        until(t, NULL, expected_linger);
        assert_int_equal(refused_by(t).keyless, i + 1);
    }
    visit(t); /* which ends one of them */
    lingering = 7;
    assert_true(expected_linger(t, NULL));
    errno = 0;
    for (size_t n = 0; n < 64 * MEGA; n += sizeof text)
        if (send(h[11].fd, text, sizeof text, MSG_NOSIGNAL) < 0)
            break;
    assert_true(errno == EPIPE || errno == ECONNRESET);
    lingering = 6;
    until(t, NULL, expected_linger);
    locked(t);
    inside(t)->keep.awake += 11 * KOFN_SECOND;
    unlock(t);
    until(t, NULL, nobody_is_left);
    assert_int_equal(refused_by(t).unresponsive,
                     0); /* they are reported once */
    for (int i = 0; i < 12; i++)
        tls_peer_free(&h[i]);
    t->close(t, 0);
    keyring_free(&other);
}

static void refusal_news(void **state)
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
    assert_non_null(strstr(t->news(t), "its key is not on the list"));
    b->close(b, 0);
    t->close(t, 0);
    keyring_free(&other);
}

TEST_FILE(tls_hostile_test)
{
    const struct CMUnitTest tests[] = {
        TEST(client_ends,
             "TLS: a client may end after every byte of its handshake"),
        TEST(byte_by_byte,
             "TLS: a handshake that comes byte by byte is accepted"),
        TEST(server_ends,
             "TLS: a server may end after every byte of its handshake"),
        TEST(noise_and_crowds,
             "TLS: a peer is admitted after noise and among idle strangers"),
        TEST(handshake_noise, "TLS: a handshake with noise in it is refused"),
        TEST(refusal_reason,
             "TLS: a refused peer gets the reason, and then an orderly end"),
        TEST(refused_linger,
             "TLS: refused peers are bounded in number, time and bytes"),
        TEST(refusal_news, "TLS: a refused key is reported as news"),
    };

    return cmocka_run_group_tests_name("tls hostile", tests, make_ring,
                                       drop_ring);
}
