/* tls.c -- the bytes of a connection over TLS 1.3, with OpenSSL.
 *
 * OpenSSL reads and writes through a BIO of this file, which raises no SIGPIPE
 * and notes what it waits for. OpenSSL takes 40 KB when a handshake begins, and
 * 17 KB more with the first byte of each record. So it gets only complete
 * records of a stranger, and reads at most SHAKEN bytes from one.
 *
 * Owns the TLS state of each link. Leaves no error in the program's queue. The
 * caller ends a link. */
#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "keys.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <unistd.h>

#define SHAKEN (64 << 10) /* bytes that a stranger may send */
/* limit of its first record; browsers send less than 2 K */
#define HELLO_MOST 4096
#define RECORD 5 /* header of a record; its last two bytes are the length */

/* ---- OpenSSL ------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method;

static ssize_t send_now(const kf_link *l, const void *bytes, size_t n)
{
    return TEMP_FAILURE_RETRY(
        send(l->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT));
}

/* Sends what the bundle holds; false, with errno: some is left. */
static bool empty_bundle(kf_link *l)
{
    kf_bundle *b = l->secure.bundle;

    assert(b->at <= b->end);
    if (b->at < b->end) {
        ssize_t m = send_now(l, b->bytes + b->at, b->end - b->at);

        if (m < 0)
            return false;
        b->at += (size_t)m;
    }
    if (b->at < b->end) {
        errno = EAGAIN; /* as the next call would report */
        return false;
    }
    b->at = b->end = 0;
    return true;
}

/* Like send_now, but copies into the bundle, which is sent first if it is full.
 * May take only a part. */
static ssize_t add_to_bundle(kf_link *l, const void *bytes, size_t n)
{
    kf_bundle *b = l->secure.bundle;

    assert(b->end <= sizeof b->bytes);
    if (n > sizeof b->bytes - b->end && !empty_bundle(l))
        return -1;
    n = kf_min(n, sizeof b->bytes - b->end);
    memcpy(b->bytes + b->end, bytes, n);
    b->end += n;
    return (ssize_t)n;
}

/* Writes for OpenSSL. If the link has a bundle, earlier bytes are in it and go
 * first. */
static int bio_write(BIO *b, const char *bytes, size_t n, size_t *done)
{
    kf_link *l = BIO_get_data(b);
    ssize_t m =
        l->secure.bundle ? add_to_bundle(l, bytes, n) : send_now(l, bytes, n);

    BIO_clear_retry_flags(b);
    *done = m > 0 ? (size_t)m : 0;
    if (m < 0 && errno == EAGAIN) {
        l->secure.wants = 'w';
        BIO_set_retry_write(b);
    }
    return m > 0;
}

static void drop_record(kf_link *l)
{
    kf_free(l->secure.record);
    l->secure.record = NULL;
    l->secure.record_have = l->secure.record_at = 0;
}

/* True if the stranger has sent too much. Bytes 6 to 8, after the header of a
 * record, are the length of the first message. OpenSSL allocates that length at
 * once. */
static bool too_long(const kf_link *l, const unsigned char *p, size_t n)
{
    for (size_t i = 0, at = l->secure.shaken; i < n && at < 8; i++, at++)
        if ((at == 6 && p[i] > 0) || (at == 7 && p[i] >= HELLO_MOST >> 8))
            return true;
    return l->secure.shaken + n > SHAKEN;
}

static ssize_t receive_now(const kf_link *l, void *bytes, size_t room)
{
    return TEMP_FAILURE_RETRY(recv(l->fd, bytes, room, MSG_DONTWAIT));
}

/* Like receive_now, but from the gathered record. */
static ssize_t take_record(kf_link *l, void *bytes, size_t room)
{
    size_t n;

    if (!l->secure.record) {
        errno = EAGAIN;
        return -1;
    }
    assert(l->secure.record_at <= l->secure.record_have);
    n = kf_min(room, l->secure.record_have - l->secure.record_at);
    memcpy(bytes, l->secure.record + l->secure.record_at, n);
    l->secure.record_at += n;
    if (l->secure.record_at == l->secure.record_have)
        drop_record(l);
    return (ssize_t)n;
}

static int bio_read(BIO *b, char *bytes, size_t room, size_t *done)
{
    kf_link *l = BIO_get_data(b);
    ssize_t n = l->state == KF_SHAKING && !l->dial
                    ? take_record(l, bytes, room)
                    : receive_now(l, bytes, room);

    BIO_clear_retry_flags(b);
    *done = 0;
    if (n < 0 && errno == EAGAIN) {
        l->secure.wants = 'r';
        BIO_set_retry_read(b);
    } else if (n == 0) {
        l->secure.wants = 'e';
    }
    if (n <= 0)
        return 0;
    if (l->state == KF_SHAKING) {
        if (too_long(l, (const unsigned char *)bytes, (size_t)n))
            return 0;
        l->secure.shaken += (size_t)n;
    }
    *done = (size_t)n;
    return 1;
}

static long bio_control(BIO *b, int what, long n, void *p)
{
    (void)b, (void)n, (void)p;
    return what == BIO_CTRL_FLUSH;
}

static void begin(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kofn");
    if (!method)
        return;
    BIO_meth_set_write_ex(method, bio_write);
    BIO_meth_set_read_ex(method, bio_read);
    BIO_meth_set_ctrl(method, bio_control);
}

static size_t record_bytes(const kf_link *l)
{
    size_t n = RECORD;

    if (l->secure.record_have >= RECORD)
        n += (size_t)l->secure.record[3] << 8 | l->secure.record[4];
    return n;
}

int kf_tls_gather(kf_link *l)
{
    size_t most = RECORD + HELLO_MOST, want;
    ssize_t n;

    if (l->secure.tls) /* a chain of certificates may come */
        most += (size_t)SSL_get_max_cert_list(l->secure.tls);
    if (!l->secure.record)
        l->secure.record = kf_new(most, 1);
    while (l->secure.record && (want = record_bytes(l)) <= most) {
        if (l->secure.record_have == want && want > RECORD)
            return 1;
        n = receive_now(l, l->secure.record + l->secure.record_have,
                        want - l->secure.record_have);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0)
            break;
        l->secure.record_have += (size_t)n;
    }
    return -1;
}

bool kf_tls_new(kf_link *l)
{
    BIO *b;

    assert(!l->secure.tls);
    pthread_once(&once, begin);
    b = BIO_new(method);
    l->secure.tls = SSL_new(l->t->keys->context);
    if (!b || !l->secure.tls) {
        BIO_free(b);
        return false;
    }
    BIO_set_data(b, l);
    BIO_set_init(b, 1);
    SSL_set_bio(l->secure.tls, b, b);
    SSL_set_app_data(l->secure.tls, l);
    if (l->dial)
        SSL_set_connect_state(l->secure.tls);
    else
        SSL_set_accept_state(l->secure.tls);
    return true;
}

#define UNLISTED "it is not on its list"

/* Returns the meaning of an alert about our certificate, or NULL. OpenSSL sends
 * the same alert about a bad certificate and one that is not valid yet. */
static const char *alert_words(const kf_link *l, int alert,
                               char room[KF_DATE + 40])
{
    char date[KF_DATE] = "";

    switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
        kf_keys_begins(SSL_get_certificate(l->secure.tls), date);
        snprintf(room, KF_DATE + 40, "its certificate is valid from %s on",
                 date);
        return date[0] ? room : UNLISTED;
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_ACCESS_DENIED:
        return UNLISTED;
    case SSL_AD_CERTIFICATE_EXPIRED:
        return "its certificate has expired";
    case SSL_AD_UNKNOWN_CA:
        return "its certificate is of another CA";
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REQUIRED:
        return "it does not accept this kind of certificate";
    default:
        return NULL;
    }
}

/* Writes why the certificate of the other end is not the expected one. */
static void say_who(const kf_link *l, char *to, size_t room)
{
    const kf_dial *d = l->dial;
    const char *why = "another process listens there, or its keys are new";

    assert(l->dial);
    if (d->met[0] && d->who[0]) {
        snprintf(to, room, "%s is '%s', not '%s' as asked for", d->address,
                 d->met, d->who);
        return;
    }
    if (d->begins[0]) {
        snprintf(to, room,
                 "the certificate of %s is valid from %s on; see whether the "
                 "clocks are right",
                 d->address, d->begins);
        return;
    }
    if (l->t->keys->ca)
        why =
            X509_verify_cert_error_string(SSL_get_verify_result(l->secure.tls));
    snprintf(to, room, "%s has another key than is expected there: %s",
             d->address, why);
}

void kf_tls_say_why(const kf_link *l)
{
    unsigned long e = kf_openssl_error();
    int why = ERR_GET_LIB(e) == ERR_LIB_SSL ? ERR_GET_REASON(e) : 0;
    char words[KF_DATE + 40];
    const char *refused = alert_words(l, why - SSL_AD_REASON_OFFSET, words);
    char *to = l->t->text.trouble;
    size_t room = sizeof l->t->text.trouble;

    if (!l->dial || l->state > KF_STRANGE)
        return;
    if (refused && l->dial->admitted && !strcmp(refused, UNLISTED))
        snprintf(to, room, "disconnected by %s: key revoked", l->dial->address);
    else if (refused)
        snprintf(to, room, "%s refuses this key: %s", l->dial->address,
                 refused);
    else if (why == SSL_R_CERTIFICATE_VERIFY_FAILED)
        say_who(l, to, room);
    else if (l->state == KF_SHAKING)
        snprintf(to, room,
                 "%s: no TLS handshake: it uses no keys, or is another "
                 "program",
                 l->dial->address);
}

/* ---- bytes --------------------------------------------------------------- */

/* True if OpenSSL stopped only because the system has no bytes now, or takes
 * none. */
static bool waits(const kf_link *l)
{
    return l->secure.wants == 'r' || l->secure.wants == 'w';
}

/* Prepares to send many records at a time; one system call for each would take
 * a fifth of the processor time. Without memory for a bundle each record is
 * sent alone. */
static void take_bundle(kf_link *l)
{
    kf_transport *t = l->t;

    if (l->secure.bundle)
        return;
    l->secure.bundle =
        t->bundle ? t->bundle : kf_new(1, sizeof *l->secure.bundle);
    t->bundle = NULL;
    if (l->secure.bundle)
        l->secure.bundle->at = l->secure.bundle->end = 0;
}

static void drop_bundle(kf_link *l)
{
    kf_transport *t = l->t;

    if (t->bundle)
        kf_free(l->secure.bundle);
    else
        t->bundle = l->secure.bundle;
    l->secure.bundle = NULL;
}

bool kf_tls_flush(kf_link *l)
{
    if (!l->secure.bundle)
        return true;
    if (!empty_bundle(l))
        return false;
    drop_bundle(l);
    return true;
}

/* Writes one record of the bytes after the first `at`; returns 0 if that is not
 * possible now. */
static size_t write_record(kf_link *l, const struct iovec part[2], size_t at)
{
    kf_transport *t = l->t;
    size_t front = at < part[0].iov_len ? part[0].iov_len - at : 0, n = 0;
    const char *from = part[1].iov_base; /* NULL: there is no body */
    size_t bytes = part[0].iov_len + part[1].iov_len - at;

    assert(at < part[0].iov_len + part[1].iov_len);
    if (front) { /* a short packet goes in one record */
        bytes = kf_min(bytes, sizeof t->bytes.record);
        memcpy(t->bytes.record, (const char *)part[0].iov_base + at, front);
        if (bytes > front)
            memcpy(t->bytes.record + front, from, bytes - front);
        from = (const char *)t->bytes.record;
    } else {
        from += at - part[0].iov_len;
    }
    if (SSL_write_ex(l->secure.tls, from, bytes, &n) &&
        ++l->secure.records % KF_REKEY == 0)
        SSL_key_update(l->secure.tls, SSL_KEY_UPDATE_NOT_REQUESTED);
    return n;
}

ssize_t kf_tls_write(kf_link *l, const struct iovec part[2])
{
    kf_errors errors;
    size_t bytes = part[0].iov_len + part[1].iov_len, at = 0, n = 1;

    l->secure.wants = 0;
    take_bundle(l);
    kf_openssl_begin(&errors);
    while (at < bytes && n) {
        n = write_record(l, part, at);
        at += n;
    }
    kf_openssl_end(&errors);
    if (at)
        return kf_tls_flush(l) || errno == EAGAIN ? (ssize_t)at : -1;
    if (l->secure.wants == 'r')
        l->secure.waits |= KF_WRITES_WAIT;
    errno = waits(l) ? EAGAIN : ECONNRESET;
    return -1;
}

/* Ends a read that gets no more; bytes that came before are returned first. */
static ssize_t no_more(kf_link *l, size_t got)
{
    if (l->secure.wants == 'w')
        l->secure.waits |= KF_READS_WAIT;
    if (got)
        return (ssize_t)got;
    errno = EAGAIN;
    if (waits(l))
        return -1;
    kf_tls_say_why(l);
    if (l->secure.wants == 'e' ||
        SSL_get_shutdown(l->secure.tls) & SSL_RECEIVED_SHUTDOWN)
        return 0;
    errno = ECONNRESET;
    return -1;
}

ssize_t kf_tls_read(kf_link *l, struct iovec *part, int parts)
{
    kf_errors errors;
    size_t got = 0, n;
    bool more = true;
    ssize_t result;

    kf_openssl_begin(&errors);
    for (int i = 0; i < parts && more; i++)
        for (size_t at = 0; at < part[i].iov_len && more; at += n, got += n) {
            l->secure.wants = 0;
            n = 0;
            more = SSL_read_ex(l->secure.tls, (char *)part[i].iov_base + at,
                               part[i].iov_len - at, &n);
        }
    result = more ? (ssize_t)got : no_more(l, got);
    kf_openssl_end(&errors);
    return result;
}

bool kf_tls_holds(const kf_link *l)
{
    return l->secure.tls && SSL_has_pending(l->secure.tls);
}

/* ---- ending -------------------------------------------------------------- */

void kf_tls_bye(kf_link *l)
{
    kf_errors errors;
    if (!l->secure.tls)
        return;
    kf_openssl_begin(&errors);
    (void)SSL_shutdown(l->secure.tls);
    kf_openssl_end(&errors);
}

void kf_tls_free(kf_link *l)
{
    drop_bundle(l);
    drop_record(l);
    SSL_free(l->secure.tls);
    l->secure.tls = NULL;
}
