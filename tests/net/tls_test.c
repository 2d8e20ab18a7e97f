/* tls_test.c -- the transport with keys: what is sent arrives, and who is not meant
 * does not come in.
 */
#define _GNU_SOURCE
#include "keys_rig.h"

#include "net/keys.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>

static const char *expected; /* in the trouble of who tries to come in */

static keyring ring; /* with coordinator, worker and anna */

static int make_ring(void **state)
{
    (void)state;
    name_socket();
    keyring_new(&ring);
    assert_ok(kofn_net_keygen(ring.dir));
    keyring_add(&ring, "anna");
    return 0;
}

static int drop_ring(void **state)
{
    (void)state;
    keyring_free(&ring);
    return 0;
}

static kf_transport *inside(kofn_transport *t)
{
    return (kf_transport *)t;
}

static kf_transport *locked(kofn_transport *t)
{
    pthread_mutex_lock(&inside(t)->lock);
    return inside(t);
}

static void unlock(kofn_transport *t)
{
    pthread_mutex_unlock(&inside(t)->lock);
}

static size_t peers_of(kofn_transport *t)
{
    size_t n = locked(t)->peers;

    unlock(t);
    return n;
}

static kofn_peer only_peer(kofn_transport *t)
{
    kofn_peer n = locked(t)->peer[0]->number;

    unlock(t);
    return n;
}

static kf_refused refused_by(kofn_transport *t)
{
    kf_refused r = locked(t)->refused;

    unlock(t);
    return r;
}

/* Until `seen`; both go on, and what else comes is let go. */
static void until(kofn_transport *a, kofn_transport *b,
                  bool (*seen)(kofn_transport *a, kofn_transport *b))
{
    kofn_time end = kf_clock() + LIMIT;
    kofn_packet p;

    while (!seen(a, b) && kf_clock() < end) {
        if (!a->wait(a, MILLI, &p))
            a->release(a, p.own);
        if (b && !b->wait(b, MILLI, &p))
            b->release(b, p.own);
    }
    if (!seen(a, b))
        fail_msg("it does not happen; trouble: '%s', expected %s",
                 b ? kofn_net_trouble(b) : "", expected);
}

/* The peer of a goes, while b goes on. */
static void goes(kofn_transport *a, kofn_transport *b, kofn_peer peer)
{
    kofn_packet p, q;

    do {
        p = next_of(a, NULL);
        while (b && !b->wait(b, 0, &q))
            b->release(b, q.own);
    } while (p.what != KOFN_WENT);
    assert_int_equal(p.peer, peer);
}

/* ---- what is sent -------------------------------------------------------- */

#define MOST (17 * MEGA + 3)
#define STRANGER_MOST (80 << 10) /* bytes: OpenSSL 3.0 takes 57 KiB */

static void count_done(void *ud)
{
    atomic_fetch_add((atomic_long *)ud, 1);
}

static unsigned char *big;
static atomic_long done;

static void send_one(kofn_transport *from, kofn_peer peer, kofn_transport *to,
                     size_t bytes, size_t head)
{
    kofn_packet p;

    assert_ok(from->send(from, peer, big, head, big, bytes, head % 3 == 0,
                         count_done, &done));
    p = next_of(to, from);
    assert_int_equal(p.what, KOFN_PACKET);
    assert_int_equal(p.head_bytes, head);
    assert_memory_equal(p.head, big, head);
    assert_int_equal(p.body_bytes, bytes);
    if (bytes)
        assert_memory_equal(p.body, big, bytes);
    to->release(to, p.own);
}

/* Also as long as a record of TLS, and a byte more or less with frame and head. */
static void packets_arrive(void **state)
{
    static const size_t sizes[] = {0,     1,     100,   1023,    1024,  1025,
                                   16111, 16112, 16113, 16367,   16368, 16369,
                                   16384, 16385, 65536, 1000003,
#ifndef __SANITIZE_THREAD__
                                   MOST
#endif
    };

    (void)state;
    big = malloc(MOST);
    for (size_t i = 0; i < MOST; i++)
        big[i] = (unsigned char)(i * 31 >> 3);
    for (int w = 0; w < 2; w++) {
        pair m = meet_as(addresses[w], &ring, "anna");
        long sent = 0;

        done = 0;
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++, sent += 2) {
            size_t head = k % 2 ? KOFN_HEAD_MAX : k;

            send_one(m.a, m.of_b, m.b, sizes[k], head);
            send_one(m.b, m.of_a, m.a, sizes[k], head);
        }
        part(&m);
        assert_int_equal(done, sent);
    }
    free(big);
}

/* Far more than a turn at once, both ways, while neither end waits for the other. */
static void much_at_once(void **state)
{
    enum { EACH = 700 * 1000 + 1, MANY = 30 };
    unsigned char *body = malloc(EACH + MANY);
    unsigned got[2] = {0, 0}, sent[2] = {0, 0};
    pair m = meet_as(addresses[0], &ring, "anna");
    kofn_transport *end[2] = {m.a, m.b};

    (void)state;
    for (size_t i = 0; i < EACH + MANY; i++)
        body[i] = (unsigned char)(i * 7 >> 4);
    while (got[0] < MANY || got[1] < MANY)
        for (int i = 0; i < 2; i++) {
            kofn_packet p;
            kofn_status st = KOFN_OK;

            for (; sent[i] < MANY && !st; sent[i] += !st)
                st = end[i]->send(end[i], i ? m.of_a : m.of_b, &sent[i],
                                  sizeof sent[i], body + sent[i], EACH, false,
                                  NULL, NULL);
            assert_true(st >= 0);
            st = end[i]->wait(end[i], MILLI, &p);
            if (st == KOFN_AGAIN)
                continue;
            assert_int_equal(st, KOFN_OK);
            assert_int_equal(p.what, KOFN_PACKET);
            assert_memory_equal(p.head, &got[i], sizeof got[i]);
            assert_int_equal(p.body_bytes, EACH);
            assert_memory_equal(p.body, body + got[i], EACH);
            end[i]->release(end[i], p.own);
            got[i]++;
        }
    part(&m);
    free(body);
}

static void keys_are_renewed(void **state)
{
    pair m = meet_as(addresses[0], &ring, "anna");
    int before, after;

    (void)state;
    for (int i = 0; i < 3; i++) {
        SSL *tls = locked(m.a)->links->tls;

        inside(m.a)->links->records = KF_REKEY - 1;
        unlock(m.a);
        say(m.a, m.of_b, "the last under this key");
        locked(m.a);
        before = SSL_get_key_update_type(tls);
        unlock(m.a);
        say(m.a, m.of_b, "under another");
        locked(m.a);
        after = SSL_get_key_update_type(tls);
        unlock(m.a);
        assert_int_equal(before, SSL_KEY_UPDATE_NOT_REQUESTED);
        assert_int_equal(after, SSL_KEY_UPDATE_NONE);
        hear(m.b, m.of_a, "the last under this key");
        hear(m.b, m.of_a, "under another");
        say(m.b, m.of_a, "back");
        hear(m.a, m.of_b, "back");
    }
    part(&m);
}

/* What OpenSSL has read, and the system does not tell of any more. */
static void what_openssl_holds(void **state)
{
    kofn_net_options o = with(ring.dir);
    kofn_transport *a, *b;
    char byte;
    int got = 0;

    (void)state;
    o.silence = 3600 * KOFN_SECOND; /* no heartbeat comes in between */
    a = listener(addresses[0], &o);
    b = dialler(a, &o);
    came(a, NULL);
    came(b, NULL);
    locked(b);
    assert_ok(a->send(a, 0, "held", 4, NULL, 0, false, NULL, NULL));
    while (got <= 0)
        got = SSL_peek(inside(b)->links->tls, &byte, 1);
    kf_tls_rest(inside(b)->links);
    unlock(b);
    hear(b, 0, "held");
    b->close(b, 0);
    a->close(a, 0);
}

/* Bytes that somebody on the way put in: what came before is heard, and no more. */
static void what_is_put_in(void **state)
{
    static const unsigned char junk[] = {23, 3, 3, 0, 20, 1,  2, 3, 4,
                                         5,  6, 7, 8, 9,  10, 1, 2, 3,
                                         4,  5, 6, 7, 8,  9,  10};
    kofn_net_options o = with(ring.dir);
    kofn_transport *a, *b;

    (void)state;
    o.silence = 3600 * KOFN_SECOND; /* it is not missed, but ended */
    a = listener(addresses[0], &o);
    b = dialler(a, &o);
    came(a, NULL);
    came(b, NULL);
    locked(b);
    say(a, 0, "before");
    assert_int_equal(
        send(locked(a)->links->fd, junk, sizeof junk, MSG_NOSIGNAL),
        sizeof junk);
    unlock(a);
    say(a, 0, "after");
    unlock(b);
    hear(b, 0, "before");
    went(b, 0);
    b->close(b, 0);
    a->close(a, 0);
}

/* What is said last is heard, though its sender closes at once. */
static void last_words(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pair m = meet_as(addresses[i % 2], &ring, "anna");
        unsigned char *body = calloc(MEGA, 1);
        kofn_packet p;

        assert_ok(
            m.b->send(m.b, m.of_a, "last", 4, body, MEGA, false, NULL, NULL));
        /* what is closed must be heard meanwhile */
        m.b->close(m.b, 60 * KOFN_SECOND);
        p = next_of(m.a, NULL);
        assert_int_equal(p.what, KOFN_PACKET);
        assert_int_equal(p.body_bytes, MEGA);
        m.a->release(m.a, p.own);
        went(m.a, m.of_b);
        m.a->close(m.a, 0);
        free(body);
    }
}

/* ---- who comes in -------------------------------------------------------- */

static void names_of_keys(void **state)
{
    pair m = meet_as(addresses[0], &ring, "anna");

    (void)state;
    assert_string_equal(m.a->principal_of(m.a, m.of_b), "anna");
    assert_non_null(strstr(m.a->name_of(m.a, m.of_b), ", key anna"));
    assert_non_null(strstr(m.b->name_of(m.b, m.of_a), ", key coordinator"));
    assert_int_equal(kofn_net_listed(m.a), 2);
    assert_int_equal(kofn_net_listed(m.b), 0);
    part(&m);
    m = meet_as(addresses[1], &ring, ".");
    assert_string_equal(m.a->principal_of(m.a, m.of_b), "worker");
    part(&m);
}

static bool is_told(kofn_transport *a, kofn_transport *b)
{
    assert_int_equal(peers_of(a), 0);
    return strstr(kofn_net_trouble(b), expected) != NULL;
}

/* Who dials like this does not come in where one listens like that. */
static void refused(const kofn_net_options *listens,
                    const kofn_net_options *dials, const char *why)
{
    for (int w = 0; w < 2; w++) {
        kofn_transport *a = listener(addresses[w], listens);
        kofn_transport *b = dialler(a, dials);

        expected = why;
        until(a, b, is_told);
        b->close(b, 0);
        a->close(a, 0);
    }
}

static void others_are_kept_out(void **state)
{
    const kofn_net_options good = with(ring.dir),
                           anna = with(in(&ring, "anna"));
    kofn_net_options own = with(in(&ring, "anna")), wrong;
    keyring other;

    (void)state;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir));
    keyring_add(&other, "anna");
    wrong = with(in(&other, "anna"));
    /* a key that is not on the list, though it knows the coordinator */
    assert_int_equal(
        rename(in(&other, "anna/coordinator.crt"), in(&other, "theirs.crt")),
        0);
    assert_int_equal(
        link(in(&ring, "coordinator.crt"), in(&other, "anna/coordinator.crt")),
        0);
    refused(&good, &wrong, "refuses this key: it is not on its list");
    /* one who listens with another key: in the middle, say */
    own.keys = ring.dir;
    wrong = with(other.dir);
    refused(&wrong, &own, "another key than is expected");
    /* with none, either way */
    refused(&good, &patient, "is no kofn, has keys");
    refused(&patient, &anna, "does not speak TLS");
    keyring_free(&other);
}

/* One who has the certificate and not its key is no better than others. */
static void certificates_are_not_enough(void **state)
{
    keyring other;
    kofn_net_options o;
    kofn_transport *t;

    (void)state;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir));
    assert_int_equal(unlink(in(&other, "worker.crt")), 0);
    assert_int_equal(link(in(&ring, "worker.crt"), in(&other, "worker.crt")),
                     0);
    o = with(other.dir);
    assert_status(KOFN_FORMAT, kofn_net_connect(&t, "tcp://127.0.0.1:9", &o));
    assert_non_null(strstr(kofn_errmsg(), "worker.key"));
    keyring_free(&other);
}

/* ---- keys that come and go ----------------------------------------------- */

static size_t wanted;

static bool so_many_listed(kofn_transport *a, kofn_transport *b)
{
    (void)b;
    return kofn_net_listed(a) == wanted;
}

static bool refuses(kofn_transport *a, kofn_transport *b)
{
    (void)a;
    return strstr(kofn_net_trouble(b), "not on its list") != NULL;
}

static void keys_come_and_go(void **state)
{
    kofn_net_options o;
    kofn_transport *hub, *anna, *bert;
    keyring k;
    kofn_peer peer;
    int fd;

    (void)state;
    keyring_new(&k);
    keyring_add(&k, "anna");
    o = with(k.dir);
    hub = listener(addresses[0], &o);
    assert_int_equal(kofn_net_listed(hub), 1);
    o = with(in(&k, "anna"));
    anna = dialler(hub, &o);
    came(hub, NULL);
    came(anna, NULL);

    /* one more, and rubbish that lists nobody */
    fd = open(in(&k, "half.crt"), O_WRONLY | O_CREAT, 0644);
    assert_int_equal(write(fd, "-----BEGIN CERT", 15), 15);
    close(fd);
    keyring_add(&k, "bert");
    o = with(in(&k, "bert"));
    bert = dialler(hub, &o);
    peer = came(hub, NULL);
    came(bert, NULL);
    assert_string_equal(hub->principal_of(hub, peer), "bert");
    assert_int_equal(kofn_net_listed(hub), 2);

    /* anna's is revoked: her line ends, and she does not come back */
    assert_int_equal(rename(in(&k, "anna.crt"), in(&k, "anna.out")), 0);
    goes(hub, anna, 0);
    assert_int_equal(kofn_net_listed(hub), 1);
    until(hub, anna, refuses);
    say(bert, 0, "here");
    hear(hub, peer, "here");

    /* she is listed again */
    assert_int_equal(rename(in(&k, "anna.out"), in(&k, "anna.crt")), 0);
    wanted = 2;
    until(hub, NULL, so_many_listed);
    assert_int_equal(locked(hub)->keys->stamp, 0); /* it may change again */
    unlock(hub);
    came(hub, NULL);
    anna->close(anna, 0);
    bert->close(bert, 0);
    hub->close(hub, 0);
    keyring_free(&k);
}

/* A file that holds another key now, or that has another name. */
static void names_change_hands(void **state)
{
    kofn_net_options o;
    kofn_transport *hub, *anna;
    keyring k;

    (void)state;
    keyring_new(&k);
    keyring_add(&k, "anna");
    keyring_add(&k, "carl");
    o = with(k.dir);
    hub = listener(addresses[0], &o);
    o = with(in(&k, "anna"));
    anna = dialler(hub, &o);
    came(hub, NULL);
    assert_int_equal(rename(in(&k, "anna.crt"), in(&k, "eve.crt")), 0);
    goes(hub, anna, 0);
    assert_string_equal(hub->principal_of(hub, came(hub, NULL)), "eve");
    assert_int_equal(rename(in(&k, "carl.crt"), in(&k, "eve.crt")), 0);
    goes(hub, anna, 1);
    anna->close(anna, 0);
    hub->close(hub, 0);
    keyring_free(&k);
}

/* ---- a CA ---------------------------------------------------------------- */

typedef struct authority {
    EVP_PKEY *key;
    X509 *x;
} authority;

static void extend(X509 *x, X509 *by, int nid, const char *text)
{
    X509_EXTENSION *e;
    X509V3_CTX c;

    X509V3_set_ctx(&c, by, x, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&c);
    e = X509V3_EXT_conf_nid(NULL, &c, nid, text);
    assert_non_null(e);
    assert_int_equal(X509_add_ext(x, e, -1), 1);
    X509_EXTENSION_free(e);
}

/* Signed by the CA, or, where that is NULL, by itself; until so many seconds. */
static X509 *issue(const authority *by, EVP_PKEY *key, const char *cn,
                   const char *san, long until)
{
    static long serial;
    X509 *x = X509_new();
    X509_NAME *of = X509_get_subject_name(x);

    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), -100000);
    X509_gmtime_adj(X509_getm_notAfter(x), until);
    X509_NAME_add_entry_by_txt(of, "CN", MBSTRING_ASC,
                               (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(x, by ? X509_get_subject_name(by->x) : of);
    X509_set_pubkey(x, key);
    extend(x, by ? by->x : x, NID_basic_constraints,
           by ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (san)
        extend(x, by->x, NID_subject_alt_name, san);
    assert_true(X509_sign(x, by ? by->key : key, EVP_sha256()) > 0);
    return x;
}

static EVP_PKEY *new_key(void)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");

    assert_non_null(key);
    return key;
}

static authority authority_new(const keyring *k, const char *file)
{
    authority a = {new_key(), NULL};
    FILE *f = fopen(in(k, file), "w");

    a.x = issue(NULL, a.key, "some company", NULL, 100000);
    PEM_write_X509(f, a.x);
    fclose(f);
    return a;
}

static void authority_free(authority *a)
{
    EVP_PKEY_free(a->key);
    X509_free(a->x);
}

/* NAME.crt and NAME.key. */
static void enrol(const keyring *k, const authority *a, const char *name,
                  const char *cn, const char *san, long until)
{
    EVP_PKEY *key = new_key();
    X509 *x = issue(a, key, cn, san, until);
    char file[40];
    FILE *f;

    snprintf(file, sizeof file, "%.30s.crt", name);
    f = fopen(in(k, file), "w");
    PEM_write_X509(f, x);
    fclose(f);
    snprintf(file, sizeof file, "%.30s.key", name);
    f = fopen(in(k, file), "w");
    PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    assert_int_equal(chmod(in(k, file), 0600), 0);
    X509_free(x);
    EVP_PKEY_free(key);
}

typedef struct papers {
    kofn_net_options o;
    char ca[80], crt[80], key[80];
} papers;

static const kofn_net_options *papers_of(papers *p, const keyring *k,
                                         const char *ca, const char *name)
{
    *p = (papers){.o = patient};
    snprintf(p->ca, sizeof p->ca, "%s/%s", k->dir, ca);
    snprintf(p->crt, sizeof p->crt, "%s/%s.crt", k->dir, name);
    snprintf(p->key, sizeof p->key, "%s/%s.key", k->dir, name);
    p->o.tls_ca = p->ca;
    p->o.tls_cert = p->crt;
    p->o.tls_key = p->key;
    return &p->o;
}

static void a_ca_lets_in(void **state)
{
    static const struct {
        const char *file, *cn, *san, *name;
    } who[] = {
        {"plain", "plain", NULL, "plain"},
        {"dns", "other", "DNS:w1.example.org,DNS:w2", "w1.example.org"},
        {"uri", "other", "email:a@b.c,URI:spiffe://x/y", "spiffe://x/y"}};
    papers p;
    keyring k;
    authority a;
    kofn_transport *hub;

    (void)state;
    keyring_new(&k);
    a = authority_new(&k, "ca.crt");
    enrol(&k, &a, "hub", "hub", NULL, 10000);
    hub = listener(addresses[0], papers_of(&p, &k, "ca.crt", "hub"));
    assert_int_equal(kofn_net_listed(hub), 0);
    for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
        char at[200];
        kofn_transport *t;

        enrol(&k, &a, who[i].file, who[i].cn, who[i].san, 10000);
        papers_of(&p, &k, "ca.crt", who[i].file);
        snprintf(at, sizeof at, "%s%s", i ? "hub@" : "",
                 kofn_net_endpoint(hub));
        assert_ok(kofn_net_connect(&t, at, &p.o));
        assert_string_equal(hub->principal_of(hub, came(hub, NULL)),
                            who[i].name);
        came(t, NULL);
        say(t, 0, "hello");
        hear(hub, (kofn_peer)i, "hello");
        t->close(t, 0);
        went(hub, (kofn_peer)i);
    }
    hub->close(hub, 0);
    authority_free(&a);
    keyring_free(&k);
}

static void a_ca_keeps_out(void **state)
{
    papers hub, p;
    keyring k;
    authority a, b;
    kofn_transport *t, *l;
    char at[200];

    (void)state;
    keyring_new(&k);
    a = authority_new(&k, "a.ca");
    b = authority_new(&k, "b.ca");
    enrol(&k, &a, "hub", "hub", NULL, 10000);
    enrol(&k, &a, "late", "late", NULL, -10);
    enrol(&k, &a, "blank", "a blank", NULL, 10000);
    enrol(&k, &b, "stranger", "hub", NULL, 10000);
    papers_of(&hub, &k, "a.ca", "hub");
    refused(&hub.o, papers_of(&p, &k, "a.ca", "late"), "has expired");
    refused(&hub.o, papers_of(&p, &k, "a.ca", "blank"), "refuses this key");
    refused(&hub.o, papers_of(&p, &k, "a.ca", "stranger"), "of another CA");
    refused(papers_of(&p, &k, "b.ca", "stranger"), &hub.o, "another key");
    refused(papers_of(&p, &k, "a.ca", "late"), &hub.o, "expired");
    /* one of the CA who is not the one that is expected */
    l = listener(addresses[0], &hub.o);
    snprintf(at, sizeof at, "boss@%s", kofn_net_endpoint(l));
    assert_ok(kofn_net_connect(&t, at, papers_of(&p, &k, "a.ca", "hub")));
    expected = "another key";
    until(l, t, is_told);
    t->close(t, 0);
    l->close(l, 0);
    authority_free(&a);
    authority_free(&b);
    keyring_free(&k);
}

/* ---- what is given together ---------------------------------------------- */

static void what_does_not_fit(void **state)
{
    const kofn_net_options all[] = {
        {.size = sizeof *all, .keys = ring.dir, .insecure = true},
        {.size = sizeof *all, .allow = ring.dir},
        {.size = sizeof *all, .keys = ring.dir, .tls_ca = "a"},
        {.size = sizeof *all, .tls_ca = "a", .tls_cert = "b"},
        {.size = sizeof *all,
         .tls_ca = "a",
         .tls_cert = "b",
         .tls_key = "c",
         .insecure = true},
    };
    const kofn_net_options none = with("/nowhere");
    kofn_transport *t;

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_status(KOFN_INVAL,
                      kofn_net_listen(&t, "tcp://127.0.0.1:*", &all[i]));
    assert_status(KOFN_IO, kofn_net_listen(&t, "tcp://127.0.0.1:*", &none));
    assert_non_null(strstr(kofn_errmsg(), "kofn keygen"));
    assert_status(KOFN_INVAL, kofn_net_listen(&t, "tcp://*:*", &patient));
    assert_non_null(strstr(kofn_errmsg(), "give keys (made by kofn keygen)"));
}

static void anywhere_with_keys(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener("tcp://*:*", &o);

    (void)state;
    t->close(t, 0);
}

/* A file with several: they are called as they call themselves. */
static void one_file_lists_many(void **state)
{
    kofn_net_options o = with(ring.dir);
    kofn_transport *hub, *t;
    char text[4096];
    keyring k;
    FILE *to, *from;

    (void)state;
    keyring_new(&k);
    to = fopen(in(&k, "list"), "w");
    for (int i = 0; i < 3; i++) {
        from = fopen(in(&ring, i ? "worker.crt" : "anna.crt"), "r");
        fwrite(text, 1, fread(text, 1, sizeof text, from), to);
        fclose(from);
    }
    fclose(to);
    o.allow = in(&k, "list");
    hub = listener(addresses[0], &o);
    assert_int_equal(kofn_net_listed(hub), 3);
    o = with(in(&ring, "anna"));
    t = dialler(hub, &o);
    assert_string_equal(hub->principal_of(hub, came(hub, NULL)), "anna");
    t->close(t, 0);
    hub->close(hub, 0);
    keyring_free(&k);
}

/* ---- meshes -------------------------------------------------------------- */

static bool has_peer(kofn_transport *a, kofn_transport *b)
{
    return peers_of(a) == 1 && peers_of(b) == 1;
}

static void a_mesh_of_one_key(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *a, *b;

    (void)state;
    assert_ok(kofn_net_mesh(&a, addresses[0], &o));
    assert_ok(kofn_net_mesh(&b, addresses[0], &o));
    assert_ok(a->reach(a, kofn_net_endpoint(b)));
    assert_ok(b->reach(b, kofn_net_endpoint(a)));
    until(a, b, has_peer);
    assert_null(a->principal_of(a, only_peer(a)));
    assert_null(b->principal_of(b, only_peer(b)));
    a->close(a, 0);
    b->close(b, 0);
}

static bool is_other(kofn_transport *a, kofn_transport *b)
{
    (void)a;
    return strstr(kofn_net_trouble(b), "another key") != NULL;
}

static void a_mesh_of_many_keys(void **state)
{
    kofn_net_options o[2];
    kofn_transport *a, *b;
    char named[200];
    keyring k;

    (void)state;
    keyring_new(&k);
    keyring_add(&k, "n0");
    keyring_add(&k, "n1");
    for (int i = 0; i < 2; i++) {
        o[i] = with(i ? in(&k, "n1") : in(&k, "n0"));
        o[i].allow = k.dir;
    }
    assert_ok(kofn_net_mesh(&a, addresses[0], &o[0]));
    assert_ok(kofn_net_mesh(&b, addresses[0], &o[1]));
    assert_status(KOFN_INVAL, b->reach(b, kofn_net_endpoint(a)));
    assert_non_null(strstr(kofn_errmsg(), "NAME@"));
    snprintf(named, sizeof named, "nobody@%s", kofn_net_endpoint(a));
    assert_status(KOFN_INVAL, b->reach(b, named));
    snprintf(named, sizeof named, "@%s", kofn_net_endpoint(a));
    assert_status(KOFN_INVAL, b->reach(b, named));
    snprintf(named, sizeof named, "n1@%s", kofn_net_endpoint(a));
    assert_ok(b->reach(b, named)); /* it is n0 */
    until(a, b, is_other);
    assert_int_equal(peers_of(b), 0);
    snprintf(named, sizeof named, "n0@%s", kofn_net_endpoint(a));
    assert_ok(b->reach(b, named));
    until(a, b, has_peer);
    assert_string_equal(a->principal_of(a, only_peer(a)), "n1");
    assert_string_equal(b->principal_of(b, only_peer(b)), "n0");
    /* who was reached is revoked like any other */
    assert_int_equal(unlink(in(&k, "n0.crt")), 0);
    goes(b, a, 0);
    a->close(a, 0);
    b->close(b, 0);
    keyring_free(&k);
}

/* ---- files --------------------------------------------------------------- */

static mode_t mode_of(const char *path)
{
    struct stat s;

    assert_int_equal(lstat(path, &s), 0);
    return s.st_mode & 0777;
}

static void keys_are_made(void **state)
{
    static const char *const crt[] = {"coordinator.crt", "worker.crt",
                                      "anna.crt", "anna/worker.crt",
                                      "anna/coordinator.crt"};
    static const char *const cn[] = {"coordinator", "worker", "anna", "anna",
                                     "coordinator"};
    static const char *const key[] = {"coordinator.key", "worker.key",
                                      "anna/worker.key"};
    char name[64];

    (void)state;
    for (size_t i = 0; i < sizeof crt / sizeof *crt; i++) {
        FILE *f = fopen(in(&ring, crt[i]), "r");
        X509 *x = PEM_read_X509(f, NULL, NULL, NULL);

        assert_non_null(x);
        fclose(f);
        assert_true(X509_NAME_get_text_by_NID(X509_get_subject_name(x),
                                              NID_commonName, name,
                                              sizeof name) > 0);
        assert_string_equal(name, cn[i]);
        assert_int_equal(X509_verify(x, X509_get0_pubkey(x)), 1);
        X509_free(x);
        assert_int_equal(mode_of(in(&ring, crt[i])), 0644);
    }
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        assert_int_equal(mode_of(in(&ring, key[i])), 0600);
    assert_int_equal(mode_of(ring.dir), 0700);
    assert_int_equal(mode_of(in(&ring, "anna")), 0700);
}

static size_t files_of(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void keys_are_not_overwritten(void **state)
{
    static const char *const bad[] = {
        "",
        "-a",
        ".a",
        "a b",
        "a/b",
        "worker",
        "coordinator",
        "a123456789b123456789c123456789d123456789e123456789x"};
    size_t before = files_of(ring.dir);
    keyring k;

    (void)state;
    assert_status(KOFN_IO, kofn_net_keygen(ring.dir));
    assert_non_null(strstr(kofn_errmsg(), "never overwritten"));
    assert_status(KOFN_IO, kofn_net_keygen_worker(ring.dir, "anna"));
    assert_non_null(strstr(kofn_errmsg(), "never overwritten"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(KOFN_INVAL, kofn_net_keygen_worker(ring.dir, bad[i]));
    assert_int_equal(files_of(ring.dir), before);
    /* one of them is enough to leave it all */
    keyring_new(&k);
    close(open(in(&k, "worker.crt"), O_CREAT | O_WRONLY, 0600));
    assert_status(KOFN_IO, kofn_net_keygen(k.dir));
    assert_int_equal(files_of(k.dir), 3);
    keyring_free(&k);
}

/* What group may read it is told by keys_test of the other transport. */
static void keys_are_kept_well(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t;
    const char *path = in(&ring, "coordinator.key");
    struct stat s;

    (void)state;
    assert_int_equal(lstat(path, &s), 0);
    for (mode_t m = 1; m < 8; m++) {
        assert_int_equal(chmod(path, 0600 | m), 0);
        assert_status(KOFN_INVAL, kofn_net_listen(&t, "tcp://127.0.0.1:*", &o));
        assert_non_null(strstr(kofn_errmsg(), "open to everybody"));
    }
    assert_int_equal(chmod(path, 0620), 0);
    assert_status(KOFN_INVAL, kofn_net_listen(&t, "tcp://127.0.0.1:*", &o));
    assert_int_equal(chown(path, (uid_t)-1, getegid()), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_ok(kofn_net_listen(&t, "tcp://127.0.0.1:*", &o));
    t->close(t, 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* ---- by hand ------------------------------------------------------------- */

typedef struct hand {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
} hand;

/* Somebody with anna's key, or who listens with the coordinator's, whose bytes go
 * through our hands. */
static hand hand_new(bool listens)
{
    hand h = {SSL_CTX_new(TLS_method()), NULL, -1};

    assert_int_equal(SSL_CTX_use_certificate_file(
                         h.context,
                         in(&ring, listens ? "coordinator.crt" : "anna.crt"),
                         SSL_FILETYPE_PEM),
                     1);
    assert_int_equal(
        SSL_CTX_use_PrivateKey_file(
            h.context,
            in(&ring, listens ? "coordinator.key" : "anna/worker.key"),
            SSL_FILETYPE_PEM),
        1);
    h.ssl = SSL_new(h.context);
    SSL_set_bio(h.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (listens)
        SSL_set_accept_state(h.ssl);
    else
        SSL_set_connect_state(h.ssl);
    return h;
}

static void hand_free(hand *h)
{
    SSL_free(h->ssl);
    SSL_CTX_free(h->context);
    if (h->fd >= 0)
        close(h->fd);
}

/* What it would say now. */
static size_t hand_says(hand *h, char *text, size_t room)
{
    int n;

    SSL_do_handshake(h->ssl);
    n = BIO_read(SSL_get_wbio(h->ssl), text, (int)room);
    return n > 0 ? (size_t)n : 0;
}

static void hand_hears(hand *h, kofn_transport *t)
{
    char text[4096];
    kofn_packet p;
    ssize_t n;

    do
        t->wait(t, MILLI, &p);
    while ((n = recv(h->fd, text, sizeof text, MSG_DONTWAIT)) < 0);
    BIO_write(SSL_get_rbio(h->ssl), text, (int)n);
}

static void hang_up(int fd, bool reset)
{
    const struct linger now = {1, 0};

    if (reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

/* Somebody honest comes in, and is heard. */
static void visit(kofn_transport *t)
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

/* Both of a client's flights, the second of which answers to a server; false: it
 * has no more to say. */
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

static bool nobody_is_left(kofn_transport *a, kofn_transport *b)
{
    bool none = locked(a)->links == NULL;

    (void)b;
    unlock(a);
    return none;
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
    kf_greeting g = {KF_MAGIC, {0}, {0}, {0}, {0}};
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

/* ---- what strangers cost ------------------------------------------------- */

static long resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long all, here = 0;

    assert_int_equal(fscanf(f, "%ld %ld", &all, &here), 2);
    fclose(f);
    return here * sysconf(_SC_PAGESIZE);
}

static size_t shaking;

/* They have got as far, and wait. */
static bool so_many_shake(kofn_transport *a, kofn_transport *b)
{
    size_t n = 0;

    (void)b;
    for (kf_link *l = locked(a)->links; l; l = l->after)
        n += l->stage == KF_SHAKING && l->shaken >= shaking;
    unlock(a);
    return n >= wanted;
}

/* Of a connection that has begun, and half a record that says it is long. */
static size_t hello_and_half(char *text, size_t room, size_t *first)
{
    static const char half[] = {23, 3, 3, 0x40, 0, 'h', 'a', 'l', 'f'};
    hand h = hand_new(false);
    size_t n = hand_says(&h, text, room - sizeof half);

    hand_free(&h);
    *first = n;
    memcpy(text + n, half, sizeof half);
    return n + sizeof half;
}

/* A thousand who have got as far as they can without a key. */
static void a_thousand_strangers(void **state)
{
    enum { MANY = 1000 };
    const kofn_net_options o = with(ring.dir);
    const struct rlimit files = {4096, 4096};
    static int fd[MANY];
    kofn_transport *t;
    struct rlimit were;
    char text[8192];
    size_t first, n = hello_and_half(text, sizeof text, &first);
    long before, each;

    (void)state;
    getrlimit(RLIMIT_NOFILE, &were);
    if (were.rlim_cur < files.rlim_cur && setrlimit(RLIMIT_NOFILE, &files))
        skip();
    t = listener(addresses[1], &o);
    visit(t);
    before = resident();
    for (int i = 0; i < MANY; i++) {
        fd[i] = plain(kofn_net_endpoint(t));
        assert_int_equal(send(fd[i], text, n, MSG_NOSIGNAL), n);
        wanted = (size_t)i + 1;
        shaking = n - 4;
        until(t, NULL, so_many_shake);
    }
    each = (resident() - before) / MANY;
    printf("a stranger costs %ld bytes, %zu of them for the connection\n", each,
           sizeof(kf_link));
    if (SLOWED == 1) /* a sanitizer keeps more */
        grew_less(each, STRANGER_MOST);
    visit(t);
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
    until(t, NULL, nobody_is_left);
    assert_int_equal(refused_by(t).mute, 0); /* their end was noticed */
    t->close(t, 0);
    setrlimit(RLIMIT_NOFILE, &were);
}

/* Where many begin at once others have their turn after some of them. */
static void few_shake_hands_at_once(void **state)
{
    enum { MANY = 40, AT_ONCE = 8 };
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    char text[8192];
    size_t first, began = 0;
    int fd[MANY];

    (void)state;
    hello_and_half(text, sizeof text, &first);
    for (int i = 0; i < MANY; i++)
        fd[i] = plain(kofn_net_endpoint(t));
    wanted = MANY;
    shaking = 0;
    until(t, NULL, so_many_shake);
    locked(t);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(send(fd[i], text, first, MSG_NOSIGNAL), first);
    inside(t)->shakes = 0;
    uv_run(&inside(t)->loop, UV_RUN_NOWAIT);
    for (kf_link *l = inside(t)->links; l; l = l->after)
        began += l->shaken > 0;
    unlock(t);
    assert_true(began > 0 && began <= AT_ONCE);
    shaking = first;
    until(t, NULL, so_many_shake);
    visit(t);
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
    t->close(t, 0);
}

/* A first message that says it is long, of which nothing is kept; bytes without
 * end. */
static void too_much_to_begin_with(void **state)
{
    static const unsigned char longs[][11] = {
        {22, 3, 1, 0x40, 0, 1, 0, 0x10, 0, 3, 3},
        {22, 3, 1, 0x40, 0, 1, 1, 0, 0, 3, 3},
    };
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);

    (void)state;
    for (size_t i = 0; i < sizeof longs / sizeof *longs; i++) {
        int fd = plain(kofn_net_endpoint(t));

        assert_int_equal(send(fd, longs[i], sizeof longs[i], MSG_NOSIGNAL),
                         sizeof longs[i]);
        assert_true(ends(fd));
        assert_int_equal(refused_by(t).mute, 0); /* it was at once */
        close(fd);
    }
    for (int i = 0; i < 2; i++) { /* ... changes of the cipher do not count */
        static const char change[] = {20, 3, 3, 0, 1, 1};
        char text[8192];
        size_t first;
        int fd = plain(kofn_net_endpoint(t));

        hello_and_half(text, sizeof text, &first);
        assert_int_equal(send(fd, text, first, MSG_NOSIGNAL), first);
        while (send(fd, change, sizeof change, MSG_NOSIGNAL) > 0)
            ;
        assert_true(errno == EPIPE || errno == ECONNRESET);
        close(fd);
    }
    visit(t);
    t->close(t, 0);
}

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

/* Who begins and does not go on is ended like the mute. */
static void ten_seconds_for_hands(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    int fd = plain(kofn_net_endpoint(t));
    char text[8192];
    size_t first, n = hello_and_half(text, sizeof text, &first);

    (void)state;
    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
    wanted = 1;
    shaking = n - 4;
    until(t, NULL, so_many_shake);
    locked(t);
    inside(t)->awake += 11 * KOFN_SECOND;
    unlock(t);
    until(t, NULL, nobody_is_left);
    assert_int_equal(refused_by(t).mute, 1);
    close(fd);
    t->close(t, 0);
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
    assert_ok(kofn_net_keygen(other.dir));
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

TEST_FILE(tls_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_arrive),
        cmocka_unit_test(much_at_once),
        cmocka_unit_test(keys_are_renewed),
        cmocka_unit_test(what_openssl_holds),
        cmocka_unit_test(what_is_put_in),
        cmocka_unit_test(last_words),
        cmocka_unit_test(names_of_keys),
        cmocka_unit_test(others_are_kept_out),
        cmocka_unit_test(certificates_are_not_enough),
        cmocka_unit_test(keys_come_and_go),
        cmocka_unit_test(names_change_hands),
        cmocka_unit_test(a_ca_lets_in),
        cmocka_unit_test(a_ca_keeps_out),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(anywhere_with_keys),
        cmocka_unit_test(one_file_lists_many),
        cmocka_unit_test(a_mesh_of_one_key),
        cmocka_unit_test(a_mesh_of_many_keys),
        cmocka_unit_test(keys_are_made),
        cmocka_unit_test(keys_are_not_overwritten),
        cmocka_unit_test(keys_are_kept_well),
        cmocka_unit_test(clients_end_at_every_byte),
        cmocka_unit_test(servers_end_at_every_byte),
        cmocka_unit_test(slow_but_honest),
        cmocka_unit_test(a_thousand_strangers),
        cmocka_unit_test(few_shake_hands_at_once),
        cmocka_unit_test(too_much_to_begin_with),
        cmocka_unit_test(noise_and_crowds),
        cmocka_unit_test(ten_seconds_for_hands),
        cmocka_unit_test(the_refused_are_news),
    };

    return cmocka_run_group_tests_name("tls", tests, make_ring, drop_ring);
}
