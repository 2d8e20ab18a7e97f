/* hand_rig.h -- somebody whose bytes go through our hands, so that a handshake
 * of TLS can be cut short, changed or left (keys_rig.h). */
#ifndef KF_TEST_HAND_RIG_H
#define KF_TEST_HAND_RIG_H

#include "keys_rig.h"

#include "net/keys.h"

#include <fcntl.h>
#include <openssl/err.h>

typedef struct hand {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
} hand;

/* Somebody with such a key, whose bytes go through our hands. */
static inline hand hand_of(const char *crt, const char *key, bool listens)
{
    hand h = {SSL_CTX_new(TLS_method()), NULL, -1};

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

/* With anna's key, or as who listens with the coordinator's. */
static inline hand hand_new(bool listens)
{
    return listens ? hand_of(in(&ring, "coordinator.crt"),
                             in(&ring, "coordinator.key"), true)
                   : hand_of(in(&ring, "anna.crt"),
                             in(&ring, "anna/worker.key"), false);
}

static inline void hand_free(hand *h)
{
    SSL_free(h->ssl);
    SSL_CTX_free(h->context);
    if (h->fd >= 0)
        close(h->fd);
}

/* What it would say now. */
static inline size_t hand_says(hand *h, char *text, size_t room)
{
    int n;

    SSL_do_handshake(h->ssl);
    n = BIO_read(SSL_get_wbio(h->ssl), text, (int)room);
    return n > 0 ? (size_t)n : 0;
}

static inline void hand_hears(hand *h, kofn_transport *t)
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

/* Somebody honest comes in, and is heard. */
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

/* Of a connection that has begun, and of the longest record that may come the
 * first bytes. */
static inline size_t hello_and_half(char *text, size_t room, size_t *first)
{
    static const char half[] = {23, 3, 3, 0x20, 0, 'h', 'a', 'l', 'f'};
    hand h = hand_new(false);
    size_t n = hand_says(&h, text, room - sizeof half);

    hand_free(&h);
    *first = n;
    memcpy(text + n, half, sizeof half);
    return n + sizeof half;
}

static inline bool nobody_is_left(kofn_transport *a, kofn_transport *b)
{
    bool none = locked(a)->links == NULL;

    (void)b;
    unlock(a);
    return none;
}

#endif
