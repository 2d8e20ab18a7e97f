/* shake.c -- handshakes: their cost, and what follows for the link.
 *
 * The steps that a stranger can cause, with public-key operations, are limited
 * in each pass, so that peers have their turn. OpenSSL begins when the first
 * record of a stranger is complete, with a limited number of strangers at a
 * time.
 *
 * Owns nothing. Called with the lock; never blocks. */
#include "keys.h"

#include <assert.h>
#include <stdio.h>

#define SHAKES 8 /* handshake steps in a pass of the loop */

/* STRANGERS are to cost 16 KiB each on average. That holds if at most SHAKING
 * of them shake hands. One of these costs 66 KB with the certificates of a CA;
 * each other costs 6.3 KB. */
#define STRANGERS 1024
#define SHAKING 160

#define AHEAD (64 << 10) /* bytes that are read for several records */

/* Returns the limit of handshakes at a time. If more than STRANGERS are
 * allowed, the excess is added. They may all connect at once and must not end
 * each other. */
size_t kf_shake_most(const kf_transport *t)
{
    size_t more = t->gate.strangers_most > STRANGERS
                      ? t->gate.strangers_most - STRANGERS
                      : 0;

    return SHAKING + more;
}

/* True if a record is complete. If not, the link waits, or is over. */
static bool gathered(kf_link *l)
{
    int whole = kf_tls_gather(l);

    if (whole < 0)
        kf_link_end(l);
    return whole > 0;
}

/* Counts a stranger that has no key of ours, and words why. */
static void refuse_key(const kf_link *l, long why)
{
    kf_transport *t = l->t;

    t->gate.refused.keyless++;
    if (t->keys->ca && why != X509_V_ERR_CERT_REVOKED)
        snprintf(t->text.keyless, sizeof t->text.keyless,
                 "refused %.180s: %.140s", l->name,
                 X509_verify_cert_error_string(why));
    else if (t->text.revoked[0])
        snprintf(t->text.keyless, sizeof t->text.keyless,
                 "refused %.120s (%.180s): key revoked", t->text.revoked,
                 l->name);
    else
        snprintf(t->text.keyless, sizeof t->text.keyless,
                 "refused %.180s: its key is not on the list", l->name);
    t->text.revoked[0] = '\0';
}

static void has_failed(kf_link *l)
{
    assert(l->secure.tls);
    kf_tls_say_why(l);
    if (!l->dial && SSL_get_verify_result(l->secure.tls) != X509_V_OK)
        refuse_key(l, SSL_get_verify_result(l->secure.tls));
    if (l->dial || l->secure.wants == 'e')
        kf_link_end(l);
    else
        kf_link_refuse(l);
}

/* Ends the handshake: the name of the other end is known from now on. */
static void is_done(kf_link *l)
{
    kf_transport *t = l->t;
    char name[KF_NAME];
    size_t n;
    X509 *x = SSL_get0_peer_certificate(l->secure.tls);

    if (!x || !kf_keys_know(l, x, name)) { /* the list has just changed */
        kf_link_end(l);
        return;
    }
    n = kf_min(strlen(l->name), sizeof l->name - KF_NAME - 8);
    snprintf(l->name + n, sizeof l->name - n, ", key %s", name);
    if (t->mesh || !l->dial)
        memcpy(l->principal, name, sizeof name);
    if (t->mesh && !t->keys->ca && strcmp(name, KF_COMMON) == 0)
        l->principal[0] = '\0'; /* a node is responsible for itself */
    SSL_set_read_ahead(l->secure.tls, 1);
    SSL_set_default_read_buffer_len(l->secure.tls, AHEAD);
    l->state = KF_STRANGE;
    kf_link_watch(l);
    kf_net_send_on(l);
}

void kf_shake(kf_link *l)
{
    kf_errors errors;
    unsigned waits = l->secure.waits;
    bool done;

    assert(l->state == KF_SHAKING);
    if (l->t->shakes >= SHAKES)
        return; /* it is ready again in the next pass */
    if (!l->dial && !waits && !gathered(l))
        return;
    l->t->shakes++;
    if (!l->secure.tls && !l->dial)
        kf_link_make_room(l->t, true, kf_shake_most(l->t),
                          &l->t->gate.refused.crowd);
    if (!l->secure.tls && !kf_tls_new(l)) {
        kf_link_end(l);
        return;
    }
    l->secure.waits = 0;
    kf_openssl_begin(&errors);
    do {
        l->secure.wants = 0;
        done = SSL_do_handshake(l->secure.tls) == 1;
    } while (!done && l->secure.wants == 'r' && !l->dial && gathered(l));
    if (done)
        is_done(l);
    else if (l->secure.wants != 'r' && l->secure.wants != 'w')
        has_failed(l);
    else
        l->secure.waits = l->secure.wants == 'w' ? KF_READS_WAIT : 0;
    kf_openssl_end(&errors);
    if (l->state == KF_SHAKING && l->secure.waits != waits)
        kf_link_watch(l);
}
