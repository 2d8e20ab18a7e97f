/* tls_test.c -- the transport with keys: packets arrive, and only listed peers
 * are admitted. */
#define _GNU_SOURCE
#include "keys_rig.h"

#include "net/keys.h"

#include <stdatomic.h>

/* ---- packets ------------------------------------------------------------- */

#define MOST (17 * MEGA + 3)
static unsigned char *big;
static atomic_long done;

static void send_one(kofn_transport *from, kofn_peer peer, kofn_transport *to,
                     size_t bytes, size_t head)
{
    kofn_packet p;

    assert_ok(from->send(from, peer, big, head,
                         &(kofn_lent){big, bytes, count_done, &done},
                         head % 3 == 0));
    p = next_of(to, from);
    assert_int_equal(p.what, KOFN_PACKET);
    assert_int_equal(p.head_bytes, head);
    assert_memory_equal(p.head, big, head);
    assert_int_equal(p.body_bytes, bytes);
    if (bytes)
        assert_memory_equal(p.body, big, bytes);
    to->release(to, p.own);
}

/* Some bodies have the length of a TLS record, and some a byte more or less
 * with frame and head. */
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

/* Both ends send far more than one turn at a time. Neither waits for the
 * other. */
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
                st = end[i]->send(
                    end[i], i ? m.of_a : m.of_b, &sent[i], sizeof sent[i],
                    &(kofn_lent){.data = body + sent[i], .bytes = EACH}, false);
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

static bool holds_a_bundle(kofn_transport *t)
{
    const kf_bundle *b = locked(t)->in.links->secure.bundle;
    bool holds = b && b->at < b->end;

    unlock(t);
    return holds;
}

static bool holds_none(kofn_transport *t, kofn_transport *other)
{
    (void)other;
    return !holds_a_bundle(t);
}

/* Records that the system refuses stay with their link. They go in order as
 * soon as there is room, even if nothing else is sent. Keys may change among
 * them. */
static void waiting_records(void **state)
{
    enum { EACH = 100 * 1000, MANY = 300 }; /* each in one frame */
    unsigned char *body = malloc(EACH + MANY);
    kofn_net_options o = with(ring.dir);
    kofn_transport *a, *b;
    int sent = 0;

    (void)state;
    o.silence = 3600 * KOFN_SECOND; /* no heartbeat causes a write */
    a = listener(addresses[0], &o);
    b = dialler(a, &o);
    came(a, NULL);
    came(b, NULL);
    for (size_t i = 0; i < EACH + MANY; i++)
        body[i] = (unsigned char)(i * 7 >> 4);
    locked(b); /* the other end does not read */
    for (; sent < MANY && !holds_a_bundle(a); sent++) {
        locked(a)->in.links->secure.records = KF_REKEY - 20;
        unlock(a);
        assert_ok(a->send(a, 0, &sent, sizeof sent,
                          &(kofn_lent){.data = body + sent, .bytes = EACH},
                          false));
    }
    assert_true(holds_a_bundle(a));
    unlock(b);
    for (int i = 0; i < sent; i++) {
        kofn_packet p = next_of(b, a);

        assert_int_equal(p.what, KOFN_PACKET);
        assert_memory_equal(p.head, &i, sizeof i);
        assert_int_equal(p.body_bytes, EACH);
        assert_memory_equal(p.body, body + i, EACH);
        b->release(b, p.own);
    }
    until(a, b, holds_none);
    b->close(b, 0);
    a->close(a, 0);
    free(body);
}

static void renewed_keys(void **state)
{
    pair m = meet_as(addresses[0], &ring, "anna");
    int before, after;

    (void)state;
    for (int i = 0; i < 3; i++) {
        SSL *tls = locked(m.a)->in.links->secure.tls;

        inside(m.a)->in.links->secure.records = KF_REKEY - 1;
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

/* The bytes are in OpenSSL's buffer, so the system no longer reports them. */
static void buffered_bytes(void **state)
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
    assert_ok(a->send(a, 0, "held", 4, NULL, false));
    while (got <= 0)
        got = SSL_peek(inside(b)->in.links->secure.tls, &byte, 1);
    kf_net_receive_rest(inside(b)->in.links);
    unlock(b);
    hear(b, 0, "held");
    b->close(b, 0);
    a->close(a, 0);
}

static void injected_bytes(void **state)
{
    static const unsigned char junk[] = {23, 3, 3, 0, 20, 1,  2, 3, 4,
                                         5,  6, 7, 8, 9,  10, 1, 2, 3,
                                         4,  5, 6, 7, 8,  9,  10};
    kofn_net_options o = with(ring.dir);
    kofn_transport *a, *b;

    (void)state;
    o.silence =
        3600 * KOFN_SECOND; /* the connection is ended, not lost by silence */
    a = listener(addresses[0], &o);
    b = dialler(a, &o);
    came(a, NULL);
    came(b, NULL);
    locked(b);
    say(a, 0, "before");
    assert_int_equal(
        send(locked(a)->in.links->fd, junk, sizeof junk, MSG_NOSIGNAL),
        sizeof junk);
    unlock(a);
    say(a, 0, "after");
    unlock(b);
    hear(b, 0, "before");
    went(b, 0);
    b->close(b, 0);
    a->close(a, 0);
}

static void last_words(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pair m = meet_as(addresses[i % 2], &ring, "anna");
        unsigned char *body = calloc(MEGA, 1);
        kofn_packet p;

        assert_ok(m.b->send(m.b, m.of_a, "last", 4,
                            &(kofn_lent){.data = body, .bytes = MEGA}, false));
        /* a closing end must still be heard */
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

/* ---- admission ----------------------------------------------------------- */

static void key_names(void **state)
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

static void refused_keys(void **state)
{
    const kofn_net_options good = with(ring.dir),
                           anna = with(in(&ring, "anna"));
    kofn_net_options own = with(in(&ring, "anna")), wrong;
    keyring other;

    (void)state;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    keyring_add(&other, "anna");
    wrong = with(in(&other, "anna"));
    /* the key is not listed, though its owner has the coordinator's
     * certificate */
    assert_int_equal(
        rename(in(&other, "anna/coordinator.crt"), in(&other, "theirs.crt")),
        0);
    assert_int_equal(
        link(in(&ring, "coordinator.crt"), in(&other, "anna/coordinator.crt")),
        0);
    refused(&good, &wrong, "refuses this key: it is not on its list");
    /* the listener has another key: a man in the middle, for example */
    own.keys = ring.dir;
    wrong = with(other.dir);
    refused(&wrong, &own, "another key than is expected");
    /* keys at one end only, both ways */
    refused(&good, &patient, "the coordinator may want --keys");
    refused(&patient, &anna, "it uses no keys");
    keyring_free(&other);
}

static void certificate_only(void **state)
{
    keyring other;
    kofn_net_options o;
    kofn_transport *t;

    (void)state;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    assert_int_equal(unlink(in(&other, "worker.crt")), 0);
    assert_int_equal(link(in(&ring, "worker.crt"), in(&other, "worker.crt")),
                     0);
    o = with(other.dir);
    assert_status(KOFN_FORMAT, kofn_net_connect(&t, "tcp://127.0.0.1:9", &o));
    assert_non_null(strstr(kofn_errmsg(), "worker.key"));
    keyring_free(&other);
}

/* ---- options that exclude each other ------------------------------------- */

static void bad_options(void **state)
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

/* Connects over IPv4 and, if there is one, over IPv6. IPv4 addresses have IPv4
 * names. */
static void public_addresses(void **state)
{
    const kofn_net_options o = with(ring.dir), own = with(in(&ring, "anna"));
    static const char *const host[] = {"127.0.0.1", "[::1]"};
    kofn_transport *t = listener("tcp://*:*", &o), *v;
    const char *port = strrchr(kofn_net_endpoint(t), ':');
    char address[64];

    (void)state;
    for (int i = 0; i < 1 + has_v6(); i++) {
        snprintf(address, sizeof address, "tcp://%s%s", host[i], port);
        assert_ok(kofn_net_connect(&v, address, &own));
        assert_string_equal(t->principal_of(t, came(t, NULL)), "anna");
        assert_ptr_equal(strstr(t->name_of(t, (kofn_peer)i), host[i]),
                         t->name_of(t, (kofn_peer)i));
        v->close(v, 0);
        went(t, (kofn_peer)i);
    }
    t->close(t, 0);
}

/* Names of keys in one file are the names in the certificates. */
static void list_file(void **state)
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

static void shared_key_mesh(void **state)
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
    return strstr(kofn_net_trouble(b), "is 'n0', not 'n1' as asked for") !=
           NULL;
}

static void keyed_mesh(void **state)
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
    assert_ok(b->reach(b, named)); /* its name is n0 */
    until(a, b, is_other);
    assert_int_equal(peers_of(b), 0);
    snprintf(named, sizeof named, "n0@%s", kofn_net_endpoint(a));
    assert_ok(b->reach(b, named));
    until(a, b, has_peer);
    assert_string_equal(a->principal_of(a, only_peer(a)), "n1");
    assert_string_equal(b->principal_of(b, only_peer(b)), "n0");
    /* a reached node is revoked like any other */
    assert_int_equal(unlink(in(&k, "n0.crt")), 0);
    goes(b, a, 0);
    a->close(a, 0);
    b->close(b, 0);
    keyring_free(&k);
}

static void revoked_when_lost(void **state)
{
    kofn_net_options o;
    kofn_transport *hub, *anna;
    kofn_packet p;
    keyring k;

    (void)state;
    keyring_new(&k);
    keyring_add(&k, "anna");
    o = with(k.dir);
    hub = listener(addresses[0], &o);
    o.keys = in(&k, "anna");
    anna = dialler(hub, &o);
    came(hub, NULL);
    came(anna, NULL);
    locked(hub);
    assert_int_equal(shutdown(inside(hub)->in.links->fd, SHUT_WR), 0);
    assert_int_equal(unlink(in(&k, "anna.crt")), 0);
    kf_join_look(&inside(hub)->uv.look);
    unlock(hub);
    went(hub, 0);
    assert_status(KOFN_AGAIN, hub->wait(hub, 0, &p));
    anna->close(anna, 0);
    hub->close(hub, 0);
    keyring_free(&k);
}

/* Bodies go without a checksum if nothing can change them unnoticed. */
static void whole_bodies(void **state)
{
    kofn_status (*const open[])(kofn_transport **, const char *,
                                const kofn_net_options *) = {kofn_net_listen,
                                                             kofn_net_mesh};

    (void)state;
    for (int mesh = 0; mesh < 2; mesh++)
        for (int w = 0; w < 2; w++)
            for (int keys = 0; keys < 2; keys++) {
                kofn_net_options o = patient;
                kofn_transport *t;

                o.keys = keys ? ring.dir : NULL;
                assert_ok(open[mesh](&t, addresses[w], &o));
                assert_true(t->whole == (keys || (w == 1 && !mesh)));
                t->close(t, 0);
            }
}

TEST_FILE(tls_test)
{
    const struct CMUnitTest tests[] = {
        TEST(packets_arrive,
             "TLS: packets of all sizes arrive, and bodies are given back"),
        TEST(much_at_once,
             "TLS: both ends send 21 MB at once, and all arrives"),
        TEST(waiting_records,
             "TLS: records that the system refuses wait, and go in order"),
        TEST(renewed_keys,
             "TLS: session keys are renewed, and packets arrive under each"),
        TEST(buffered_bytes, "TLS: bytes in OpenSSL's buffer are delivered"),
        TEST(injected_bytes,
             "TLS: injected bytes end the connection after the packets before"),
        TEST(last_words, "TLS: packets sent before a close arrive"),
        TEST(key_names,
             "TLS: principals and names of peers are those of their keys"),
        TEST(refused_keys,
             "TLS: unlisted keys, other listeners, plain ends are refused"),
        TEST(certificate_only,
             "TLS: a certificate without its secret key is refused"),
        TEST(bad_options,
             "TLS: options that do not fit, and lacking keys, are refused"),
        TEST(public_addresses,
             "TLS: a public address needs keys, and serves IPv4 and IPv6"),
        TEST(list_file, "TLS: a file may list several keys"),
        TEST(shared_key_mesh,
             "mesh: nodes that share a key meet, and have no principals"),
        TEST(keyed_mesh, "mesh: a node meets only the key that it named"),
        TEST(revoked_when_lost,
             "TLS: a peer that is lost and revoked at once is reported once"),
        TEST(
            whole_bodies,
            "net: bodies need no checksum over TLS and Unix sockets (no mesh)"),
    };

    return cmocka_run_group_tests_name("tls", tests, make_ring, drop_ring);
}
