/* caller_rig.h -- a caller of a listener that writes its own frames, without
 * keys or inside TLS. The frames are the same in both cases. */
#ifndef CALLER_RIG_H
#define CALLER_RIG_H

#include "keys_rig.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

typedef struct caller {
    int fd;
    SSL_CTX *context;
    SSL *ssl; /* NULL: without keys */
} caller;

/* Calls the listener, with anna's key if `keys`. The listener's thread does
 * its part of the handshake. */
static inline caller call(const kofn_transport *t, bool keys)
{
    caller c = {plain(kofn_net_endpoint(t)), NULL, NULL};

    if (!keys)
        return c;
    signal(SIGPIPE, SIG_IGN); /* SSL_write has no MSG_NOSIGNAL */
    c.context = SSL_CTX_new(TLS_method());
    assert_int_equal(SSL_CTX_use_certificate_file(
                         c.context, in(&ring, "anna.crt"), SSL_FILETYPE_PEM),
                     1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(c.context,
                                                 in(&ring, "anna/worker.key"),
                                                 SSL_FILETYPE_PEM),
                     1);
    c.ssl = SSL_new(c.context);
    assert_int_equal(SSL_set_fd(c.ssl, c.fd), 1);
    assert_int_equal(SSL_connect(c.ssl), 1);
    return c;
}

static inline void hang_up_caller(caller *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->context);
    close(c->fd);
}

/* Sends bytes. Returns false if the other end is gone. */
static inline bool caller_says(caller *c, const void *bytes, size_t n)
{
    if (!c->ssl)
        return send(c->fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
    ERR_clear_error();
    return SSL_write(c->ssl, bytes, (int)n) == (int)n;
}

static inline bool caller_frames(caller *c, const frame_of *f)
{
    unsigned char bytes[KF_HEADER + KOFN_HEAD_MAX];

    return caller_says(c, bytes, lay_out(bytes, f));
}

static inline bool caller_greets(caller *c)
{
    const kf_greeting g = greeting_of(NULL);

    return caller_frames(c, &(frame_of){KF_HELLO, 0, &g, sizeof g, 0, 0});
}

/* True if the other end hangs up, whatever it says before. */
static inline bool caller_is_ended(caller *c)
{
    char bytes[4096];
    int n;

    if (!c->ssl)
        return ends(c->fd);
    do {
        ERR_clear_error();
        errno = 0;
        n = SSL_read(c->ssl, bytes, sizeof bytes);
    } while (n > 0);
    return SSL_get_error(c->ssl, n) !=
           SSL_ERROR_WANT_READ; /* the time limit of plain() is over */
}

#endif
