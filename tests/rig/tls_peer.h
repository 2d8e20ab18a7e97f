/* tls_peer.h -- a TLS peer that sends and receives through the test, so that a
 * handshake can be cut short, changed or left (keys_rig.h). */
#ifndef KF_TEST_HAND_RIG_H
#define KF_TEST_HAND_RIG_H

#include "keys_rig.h"

#include "net/keys.h"

#include <fcntl.h>
#include <openssl/err.h>

typedef struct tls_peer {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
} tls_peer;

/* Makes a peer with this key. Its bytes pass through the test. */
static inline tls_peer tls_peer_of(const char *crt, const char *key,
                                   bool listens)
{
    tls_peer h = {SSL_CTX_new(TLS_method()), NULL, -1};

    assert_int_equal(
        SSL_CTX_use_certificate_file(h.context, crt, SSL_FILETYPE_PEM), 1);
    assert_int_equal(
        SSL_CTX_use_PrivateKey_file(h.context, key, SSL_FILETYPE_PEM), 1);
    h.ssl = SSL_new(h.context);
    SSL_set_bio(h.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (listens)
        SSL_set_accept_state(h.ssl);
    else
        SSL_set_connect_state(h.ssl);
    return h;
}

/* Makes a peer with anna's key, or a listener with the coordinator's. */
static inline tls_peer tls_peer_new(bool listens)
{
    return listens ? tls_peer_of(in(&ring, "coordinator.crt"),
                                 in(&ring, "coordinator.key"), true)
                   : tls_peer_of(in(&ring, "anna.crt"),
                                 in(&ring, "anna/worker.key"), false);
}

static inline void tls_peer_free(tls_peer *h)
{
    SSL_free(h->ssl);
    SSL_CTX_free(h->context);
    if (h->fd >= 0)
        close(h->fd);
}

/* Returns the bytes that the peer would send now. */
static inline size_t tls_peer_says(tls_peer *h, char *text, size_t room)
{
    int n;

    SSL_do_handshake(h->ssl);
    n = BIO_read(SSL_get_wbio(h->ssl), text, (int)room);
    return n > 0 ? (size_t)n : 0;
}

static inline void tls_peer_hears(tls_peer *h, kofn_transport *t)
{
    char text[4096];
    kofn_packet p;
    ssize_t n;

    do
        t->wait(t, MILLI, &p);
    while ((n = recv(h->fd, text, sizeof text, MSG_DONTWAIT)) < 0);
    BIO_write(SSL_get_rbio(h->ssl), text, (int)n);
}

static inline void hang_up(int fd, bool reset)
{
    const struct linger now = {1, 0};

    if (reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

/* Connects an honest peer, and checks that it is heard. */
static inline void visit(kofn_transport *t)
{
    const kofn_net_options o = with(in(&ring, "anna"));
    kofn_transport *v;
    kofn_packet p;

    assert_ok(kofn_net_connect(&v, kofn_net_endpoint(t), &o));
    came(v, NULL);
    say(v, 0, "still there?");
    do
        p = next_of(t, v);
    while (p.what != KOFN_PACKET);
    assert_memory_equal(p.head, "still there?", 12);
    t->release(t, p.own);
    v->close(v, 0);
    do
        p = next_of(t, NULL);
    while (p.what != KOFN_WENT);
}

/* Makes a client's first flight, and then the first bytes of the longest
 * allowed record. */
static inline size_t hello_and_half(char *text, size_t room, size_t *first)
{
    static const char half[] = {23, 3, 3, 0x20, 0, 'h', 'a', 'l', 'f'};
    tls_peer h = tls_peer_new(false);
    size_t n = tls_peer_says(&h, text, room - sizeof half);

    tls_peer_free(&h);
    *first = n;
    memcpy(text + n, half, sizeof half);
    return n + sizeof half;
}

static inline bool nobody_is_left(kofn_transport *a, kofn_transport *b)
{
    bool none = locked(a)->in.links == NULL;

    (void)b;
    unlock(a);
    return none;
}

#endif
