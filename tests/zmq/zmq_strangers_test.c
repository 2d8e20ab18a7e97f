/* zmq_strangers_test.c -- the ZeroMQ transport and those who are not meant:
 * strangers, wrong frames, other keys, floods.
 */
#define _GNU_SOURCE /* signals, clocks and limits */
#include "zmq_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* ---- strangers ------------------------------------------------------------
 */

static int raw(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void quiet(kofn_transport *t, kofn_time atmost)
{
    kofn_time until = kf_clock() + atmost;
    kofn_packet p;

    while (kf_clock() < until)
        if (t->wait(t, atmost, &p) == KOFN_OK)
            fail_msg("arrival %d of peer %u", p.what, p.peer);
}

/* Until so much was dropped, and nothing else comes. */
static void drops(kofn_transport *t, uint64_t least)
{
    kofn_time until = kf_clock() + LIMIT;

    while (t->dropped < least && kf_clock() < until)
        quiet(t, 10 * MILLI);
    assert_true(t->dropped >= least);
}

static void strangers_are_not_heard(void **state)
{
    static const unsigned char token[2][KF_TOKEN] = {{1}, {2}};
    kofn_transport *t = listener(addresses[0], NULL);
    const char *address = kofn_zmq_endpoint(t);
    void *context = zmq_ctx_new(), *s[4];
    char junk[1000];
    int fd[20];
    uint64_t before;

    (void)state;
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (char)(i * i % 251);
    for (int i = 0; i < 20; i++) {
        fd[i] = raw(address);
        assert_true(write(fd[i], junk + i, sizeof junk - 20) > 0);
    }
    quiet(t, 200 * MILLI);
    for (int i = 0; i < 20; i++)
        close(fd[i]);
    drops(t, 20);

    before = t->dropped;
    s[0] = by_hand(context, address, KF_BULK, token[0]); /* alone */
    s[1] = by_hand(context, address, 'x', token[0]);
    s[2] = by_hand(context, address, KF_BULK, token[1]);
    s[3] = by_hand(context, address, KF_BULK, token[1]); /* twice */
    for (int i = 0; i < 4; i++) {
        zmq_send(s[i], "head", 4, ZMQ_SNDMORE);
        zmq_send(s[i], "body", 4, 0);
        zmq_send(s[i], "a", 1, 0);
    }
    drops(t, before + 7);
    for (int i = 0; i < 4; i++)
        zmq_close(s[i]);
    zmq_ctx_term(context);
    quiet(t, 100 * MILLI);
    t->close(t, 0);
}

static void wrong_frames_are_dropped(void **state)
{
    static const unsigned char token[KF_TOKEN] = {7};
    kofn_transport *t = listener(addresses[0], &patient);
    void *context = zmq_ctx_new(), *b, *u;
    char lead[KF_LEAD + 1] = {0}, short_one[KF_LEAD] = {3}, good[KF_LEAD] = {4};
    uint64_t before;
    kofn_packet p;

    (void)state;
    b = by_hand(context, kofn_zmq_endpoint(t), KF_BULK, token);
    u = by_hand(context, kofn_zmq_endpoint(t), KF_URGENT, token);
    came(t, NULL);
    before = t->dropped;
    zmq_send(b, "one", 3, 0);
    for (int frames = 3; frames < 40; frames += 12) {
        for (int i = 1; i < frames; i++)
            zmq_send(b, "more", 4, ZMQ_SNDMORE);
        zmq_send(b, "last", 4, 0);
    }
    zmq_send(b, lead, sizeof lead, ZMQ_SNDMORE); /* too long */
    zmq_send(b, "", 0, 0);
    zmq_send(b, lead, 7, ZMQ_SNDMORE); /* too short */
    zmq_send(b, "", 0, 0);
    zmq_send(b, "", 0, ZMQ_SNDMORE); /* goes on with nothing */
    zmq_send(b, "piece", 5, 0);
    zmq_send(b, short_one, sizeof short_one, ZMQ_SNDMORE); /* of 3 bytes? */
    zmq_send(b, "piece", 5, 0);
    zmq_send(b, good, sizeof good, ZMQ_SNDMORE);
    zmq_send(b, "good", 4, 0);
    p = next_of(t, NULL);
    assert_int_equal(p.what, KOFN_PACKET);
    assert_int_equal(p.head_bytes, KOFN_HEAD_MAX);
    t->release(t, p.own);
    assert_int_equal(t->dropped, before + 9);
    zmq_close(b);
    zmq_close(u);
    went(t, 0);
    zmq_ctx_term(context);
    t->close(t, 0);
}

/* Who connects under the name of a peer's connection, as one who knew its token
 * could, takes the name from it and is not heard under it; the peer is lost. */
static void names_are_not_taken_over(void **state)
{
    static const char lead[9] = {4, [8] = 'x'}; /* 4 bytes and a head */

    (void)state;
    for (int w = 0; w < 4; w++) {
        const unsigned char token[KF_TOKEN] = {9, (unsigned char)w};
        const char channel = w / 2 ? KF_URGENT : KF_BULK;
        kofn_transport *t = listener(addresses[w % 2], &patient);
        const char *address = kofn_zmq_endpoint(t);
        void *context = zmq_ctx_new(), *thief;
        void *b = by_hand(context, address, KF_BULK, token);
        void *u = by_hand(context, address, KF_URGENT, token);

        came(t, NULL);
        zmq_send(channel == KF_BULK ? b : u, lead, sizeof lead, ZMQ_SNDMORE);
        zmq_send(channel == KF_BULK ? b : u, "mine", 4, 0);
        hear(t, 0, "x");
        thief = by_hand(context, address, channel, token);
        zmq_send(thief, lead, sizeof lead, ZMQ_SNDMORE);
        zmq_send(thief, "lies", 4, 0);
        nap(200 * MILLI); /* so that it is here when the peer still is */
        went(t, 0);
        zmq_close(thief);
        zmq_close(b);
        zmq_close(u);
        zmq_ctx_term(context);
        t->close(t, 0);
    }
}

/* Whoever sends what is too long is gone before memory is asked for. */
static void the_oversized_go(void **state)
{
    const kofn_zmq_options o = {.body_max = MEGA, .silence = 10 * KOFN_SECOND};
    kofn_transport *a = listener(addresses[0], &o), *b = dialler(a, &patient);
    unsigned char *body = calloc(48 * MEGA, 1);
    long before;

    (void)state;
    memset(body, 1, 48 * MEGA);
    before = memory();
    for (unsigned life = 0; life < 3; life++) {
        assert_int_equal(came(a, b), life);
        assert_int_equal(came(b, a), life);
        assert_ok(b->send(b, life, "x", 1, body, 48 * MEGA, false, NULL, NULL));
        went(a, life);
        went(b, life);
    }
    grew_less(memory() - before, 24 * 1024);
    b->close(b, 0);
    a->close(a, 0);
    free(body);
}

/* ---- keys ---------------------------------------------------------------- */

static void keys_are_kept_well(void **state)
{
    char dir[] = "/tmp/kofn-keys-XXXXXX", sub[64], path[100];
    const kofn_zmq_options o = {.keys = sub};
    kofn_transport *t;
    struct stat s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(sub, sizeof sub, "%s/new", dir);
    assert_ok(kofn_zmq_keygen(sub));
    assert_int_equal(stat(sub, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    snprintf(path, sizeof path, "%s/worker.secret", sub);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    assert_status(KOFN_IO, kofn_zmq_keygen(sub));
    assert_non_null(strstr(kofn_errmsg(), "never overwritten"));
    assert_ok(kofn_zmq_listen(&t, addresses[0], &o));
    t->close(t, 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_status(KOFN_INVAL, kofn_zmq_connect(&t, "tcp://127.0.0.1:9", &o));
    assert_non_null(strstr(kofn_errmsg(), "644"));
    assert_int_equal(unlink(path), 0);
    assert_status(KOFN_IO, kofn_zmq_connect(&t, "tcp://127.0.0.1:9", &o));
    erase_keys(sub);
    rmdir(dir);
}

/* It is told why, and comes to nobody. */
static void is_troubled(kofn_transport *stranger, kofn_transport *at)
{
    kofn_time until = kf_clock() + LIMIT;

    while (!*kofn_zmq_trouble(stranger) && kf_clock() < until) {
        quiet(at, 50 * MILLI);
        quiet(stranger, 10 * MILLI);
    }
    assert_true(*kofn_zmq_trouble(stranger) != 0);
}

static void others_are_kept_out(void **state)
{
    char ours[] = "/tmp/kofn-keys-XXXXXX", theirs[] = "/tmp/kofn-keys-XXXXXX";
    char mixed[] = "/tmp/kofn-keys-XXXXXX", from[100], to[100];
    kofn_zmq_options o = {.silence = 10 * KOFN_SECOND};
    kofn_transport *a, *b, *stranger[3];
    kofn_peer of_b;

    (void)state;
    assert_non_null(mkdtemp(ours));
    assert_non_null(mkdtemp(theirs));
    assert_non_null(mkdtemp(mixed));
    assert_ok(kofn_zmq_keygen(ours));
    assert_ok(kofn_zmq_keygen(theirs));
    /* Who knows the coordinator's key, and has a key that is not listed. */
    snprintf(from, sizeof from, "%s/coordinator.public", ours);
    snprintf(to, sizeof to, "%s/coordinator.public", mixed);
    assert_int_equal(link(from, to), 0);
    snprintf(from, sizeof from, "%s/worker.secret", theirs);
    snprintf(to, sizeof to, "%s/worker.secret", mixed);
    assert_int_equal(link(from, to), 0);

    o.keys = ours;
    a = listener(addresses[0], &o);
    stranger[0] = dialler(a, &patient); /* no keys */
    o.keys = theirs;                    /* other keys */
    stranger[1] = dialler(a, &o);
    o.keys = mixed;
    stranger[2] = dialler(a, &o);
    for (int k = 0; k < 3; k++)
        is_troubled(stranger[k], a);
    assert_non_null(strstr(kofn_zmq_trouble(stranger[2]), "not on its list"));
    drops(a, 1);

    o.keys = ours;
    b = dialler(a, &o);
    of_b = came(a, b);
    came(b, a);
    assert_non_null(strstr(a->name_of(a, of_b), "127.0.0.1, key "));
    for (int k = 0; k < 3; k++)
        stranger[k]->close(stranger[k], 0);
    b->close(b, 0);
    went(a, of_b);
    a->close(a, 0);
    erase_keys(ours);
    erase_keys(theirs);
    erase_keys(mixed);
}

/* Connections that come to nothing leave nothing behind, and a peer stays. */
static void a_flood_runs_off(void **state)
{
    char dir[] = "/tmp/kofn-keys-XXXXXX", junk[200];
    kofn_zmq_options o = {.keys = dir, .silence = 10 * KOFN_SECOND};
    kofn_transport *a, *b;
    long before = 0;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_ok(kofn_zmq_keygen(dir));
    memset(junk, 0xff, sizeof junk);
    a = listener(addresses[0], &o);
    b = dialler(a, &o);
    came(a, b);
    came(b, a);
    for (int i = 0; i < 2000; i++) {
        int fd = raw(kofn_zmq_endpoint(a));

        if (write(fd, junk, sizeof junk) < 0) {
            /* it was turned away */
        }
        close(fd);
        if (i == 500)
            before = memory();
        if (i % 100 == 0) {
            say(b, 0, "on");
            hear(a, 0, "on");
        }
    }
    grew_less(memory() - before, 8 * 1024);
    drops(a, 1000);
    b->close(b, 0);
    a->close(a, 0);
    erase_keys(dir);
}

static void open_addresses_want_keys(void **state)
{
    static const char *const reachable[] = {
        "tcp://*:*", "tcp://0.0.0.0:*", "tcp://[::]:*", "tcp://127.example:1",
        "tcp://lo:*"};
    const kofn_zmq_options insecure = {.insecure = true};
    kofn_transport *t;

    (void)state;
    for (size_t i = 0; i < sizeof reachable / sizeof *reachable; i++) {
        assert_status(KOFN_INVAL, kofn_zmq_listen(&t, reachable[i], NULL));
        assert_non_null(strstr(kofn_errmsg(), "--insecure"));
        assert_status(KOFN_INVAL, kofn_zmq_connect(&t, reachable[i], NULL));
        assert_null(t);
    }
    assert_ok(kofn_zmq_listen(&t, "tcp://0.0.0.0:*", &insecure));
    t->close(t, 0);
    assert_status(KOFN_INVAL, kofn_zmq_listen(&t, "inproc://x", NULL));
    assert_status(KOFN_INVAL, kofn_zmq_listen(&t, "tcp://127.0.0.1", NULL));
    assert_status(KOFN_INVAL, kofn_zmq_connect(&t, "tcp://127.0.0.1:x", NULL));
}

/* Who may write to a Unix socket may connect: nobody else. */
static void sockets_are_for_their_owner(void **state)
{
    kofn_transport *t = listener(addresses[1], NULL);
    struct stat s;

    (void)state;
    assert_int_equal(stat(unix_socket + 6, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    t->close(t, 0);
}

TEST_FILE(zmq_strangers_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_are_not_heard),
        cmocka_unit_test(wrong_frames_are_dropped),
        cmocka_unit_test(names_are_not_taken_over),
        cmocka_unit_test(the_oversized_go),
        cmocka_unit_test(keys_are_kept_well),
        cmocka_unit_test(others_are_kept_out),
        cmocka_unit_test(a_flood_runs_off),
        cmocka_unit_test(open_addresses_want_keys),
        cmocka_unit_test(sockets_are_for_their_owner),
    };

    name_socket();
    return cmocka_run_group_tests_name("zmq_strangers", tests, NULL, NULL);
}
