/* net_hostile_test.c -- the transport over TCP and Unix sockets, and strangers
 * or peers that break the protocol. No other peer is affected. */
#define _GNU_SOURCE
#include "caller_rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

/* The state of a case with keys. Without keys the state is NULL. */
static bool with_keys = true;

/* The link is all that is kept of a stranger without keys. */
_Static_assert(sizeof(kf_link) <= 4096, "a stranger costs at most 16 KiB");

static void mark(void *ud)
{
    *(int *)ud = 1;
}

static bool has_links(kofn_transport *t)
{
    bool has;

    pthread_mutex_lock(&inside(t)->lock);
    has = inside(t)->in.links != NULL;
    pthread_mutex_unlock(&inside(t)->lock);
    return has;
}

/* Returns the next arrival at t that is `what` of this peer. Skips all others.
 */
static kofn_packet that(kofn_transport *t, kofn_arrival what, kofn_peer peer)
{
    for (;;) {
        kofn_packet p = next_of(t, NULL);

        if (p.what == what && p.peer == peer)
            return p;
        if (p.what == KOFN_PACKET)
            t->release(t, p.own);
    }
}

/* Connects an honest peer, and checks that it is admitted and heard. */
static void visit(kofn_transport *t)
{
    const kofn_net_options keyed = with(in(&ring, "anna"));
    kofn_transport *v;
    kofn_packet p, q;
    kofn_peer newest = 0;
    bool let_in = false;

    assert_ok(kofn_net_connect(&v, kofn_net_endpoint(t),
                               inside(t)->keys ? &keyed : &patient));
    while (!let_in) {
        let_in = !v->wait(v, MILLI, &q);
        while (!t->wait(t, let_in ? 0 : MILLI, &p)) {
            if (p.what == KOFN_CAME)
                newest = p.peer;
            if (p.what == KOFN_PACKET)
                t->release(t, p.own);
        }
    }
    assert_int_equal(q.what, KOFN_CAME);
    say(v, 0, "still there?");
    p = that(t, KOFN_PACKET, newest);
    assert_int_equal(p.head_bytes, 12);
    assert_memory_equal(p.head, "still there?", 12);
    t->release(t, p.own);
    v->close(v, 0);
    that(t, KOFN_WENT, newest);
}

/* ---- frames that are not allowed ----------------------------------------- */

#define LONGEST (1 << 20)

typedef struct wrong {
    const char *what;
    int word, channel;
    size_t head, chunk;
    uint64_t number;
    bool begun; /* a PACKET of 1000 bytes, with 10 of them, came before */
} wrong;

static const wrong wrongs[] = {
    {"a word that is none", 'X', 0, 0, 0, 0, false},
    {"no word at all", 0, 0, 0, 0, 0, false},
    {"a channel that is none", KF_PACKET, 2, 0, 0, 0, false},
    {"a head that is too long", KF_PACKET, 0, 257, 0, 0, false},
    {"more of a body than there is", KF_PACKET, 0, 4, 11, 10, false},
    {"a body that is too long", KF_PACKET, 0, 4, 0, LONGEST + 1, false},
    {"a body of the largest length", KF_PACKET, 0, 4, 0, UINT64_MAX, false},
    {"a piece of the largest length", KF_PACKET, 0, 4, UINT32_MAX, UINT64_MAX,
     false},
    {"a piece that is too long", KF_PACKET, 0, 4, KF_CHUNK + 1, KF_CHUNK + 1,
     false},
    {"a packet within another", KF_PACKET, 0, 4, 0, 0, true},
    {"more than was announced", KF_DATA, 0, 0, 991, 0, true},
    {"nothing more", KF_DATA, 0, 0, 0, 0, true},
    {"more of a packet that never began", KF_DATA, 1, 0, 5, 0, true},
    {"more of a packet that is over", KF_DATA, 0, 0, 5, 0, false},
    {"skipping what was not sent", KF_SKIP, 0, 0, 0, 0, false},
    {"credit that is taken back", KF_CREDIT, 0, 0, 0, 1, false},
    {"a second hello", KF_HELLO, 0, sizeof(kf_greeting), 0, 0, false},
    {"a welcome that was not asked for", KF_WELCOME, 0, sizeof(kf_greeting), 0,
     0, false},
};

static const kofn_net_options bounded = {.size = sizeof(kofn_net_options),
                                         .body_max = LONGEST,
                                         .peer_bytes = 4 * MEGA,
                                         .silence = 10 * KOFN_SECOND};

static kofn_net_options bounded_with(bool keys)
{
    kofn_net_options o = bounded;

    o.keys = keys ? ring.dir : NULL;
    return o;
}

static void say_wrong(caller *c, const wrong *w)
{
    static const unsigned char head[KOFN_HEAD_MAX] = KF_MAGIC;
    const frame_of f = {
        w->word, w->channel, w->head > KOFN_HEAD_MAX ? NULL : head,
        w->head, w->chunk,   w->number};

    if (w->begun) {
        caller_frames(c, &(frame_of){KF_PACKET, 0, "head", 4, 10, 1000});
        caller_says(c, "0123456789", 10);
    }
    caller_frames(c, &f);
}

static void wrong_frames(void **state)
{
    const kofn_net_options o = bounded_with(*state);

    for (int a = 0; a < 2; a++) {
        kofn_transport *t = listener(addresses[a], &o);

        for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
            caller c = call(t, *state);
            uint64_t before = refused_by(t).flood;
            kofn_peer peer;

            assert_true(caller_greets(&c));
            peer = came(t, NULL);
            say_wrong(&c, &wrongs[i]);
            went(t, peer);
            if (!caller_is_ended(&c) || refused_by(t).flood != before + 1)
                fail_msg("%s is taken", wrongs[i].what);
            hang_up_caller(&c);
        }
        visit(t);
        t->close(t, 0);
    }
}

/* Before its hello a stranger may send nothing else. */
static void only_hello(void **state)
{
    static const kf_greeting other = {.magic = {'k', 'o', 'f', 'n', 'z'}};
    const frame_of hellos[] = {{KF_HELLO, 0, &other, sizeof other, 0, 0},
                               {KF_HELLO, 0, "short", 5, 0, 0}};
    const size_t many = sizeof wrongs / sizeof *wrongs;
    const kofn_net_options o = bounded_with(*state);
    kofn_transport *t = listener(addresses[0], &o);

    for (size_t i = 0; i < many + 2; i++) {
        caller c = call(t, *state);

        if (i < many)
            say_wrong(&c, &wrongs[i]);
        else
            caller_frames(&c, &hellos[i - many]);
        if (i < many && wrongs[i].word == KF_HELLO) {
            came(t, NULL); /* the only frame that is allowed */
            hang_up_caller(&c);
            next_of(t, NULL);
            continue;
        }
        for (int turn = 0; turn < 1000 && has_links(t); turn++) {
            kofn_packet p;

            assert_int_equal(t->wait(t, 10 * MILLI, &p), KOFN_AGAIN);
        }
        assert_false(has_links(t));
        assert_true(caller_is_ended(&c));
        assert_int_equal(refused_by(t).unresponsive,
                         0); /* it ended at once, not after the timeout */
        hang_up_caller(&c);
    }
    visit(t);
    t->close(t, 0);
}

/* Sends bodies beyond the window, by their true cost. The listener takes none.
 */
static void beyond_window(void **state)
{
    static unsigned char chunk[KF_CHUNK];
    const kofn_net_options o = bounded_with(*state);

    for (int channel = 0; channel < 2; channel++) {
        const frame_of f = {KF_PACKET, channel, "x", 1, KF_CHUNK, KF_CHUNK};
        kofn_transport *t = listener(addresses[0], &o);
        caller c = call(t, *state);
        size_t fits = (channel ? MEGA : 4 * MEGA) / (KF_CHUNK + KF_COST), n;

        assert_true(caller_greets(&c));
        came(t, NULL);
        for (n = 0; n < fits + 8; n++)
            if (!caller_frames(&c, &f) || !caller_says(&c, chunk, KF_CHUNK))
                break;
        assert_true(caller_is_ended(&c));
        for (size_t i = 0; i < fits; i++) {
            kofn_packet p = next_of(t, NULL);

            assert_int_equal(p.what, KOFN_PACKET);
            t->release(t, p.own);
        }
        went(t, 0);
        hang_up_caller(&c);
        t->close(t, 0);
    }
}

/* ---- peers that are forgotten -------------------------------------------- */

static void forgotten_sender(void **state)
{
    static unsigned char body[8000];
    kofn_transport *t = listener(addresses[0], &bounded);
    int fd = plain(kofn_net_endpoint(t));
    size_t left = 1;
    kofn_packet p;

    (void)state;
    assert_true(hello(fd, NULL));
    came(t, NULL);
    assert_true(put_frame(fd, KF_PACKET, 0, "x", 1, sizeof body, sizeof body));
    assert_int_equal(send(fd, body, 1000, MSG_NOSIGNAL), 1000);
    while (left != sizeof body - 1000) {
        assert_int_equal(t->wait(t, MILLI, &p), KOFN_AGAIN);
        pthread_mutex_lock(&inside(t)->lock);
        left = inside(t)->in.links->in.left;
        pthread_mutex_unlock(&inside(t)->lock);
    }
    t->forget(t, 0);
    send(fd, body, sizeof body - 1000, MSG_NOSIGNAL);
    assert_true(ends(fd));
    assert_int_equal(refused_by(t).flood, 0);
    close(fd);
    visit(t);
    t->close(t, 0);
}

static void forgotten_receiver(void **state)
{
    const size_t most = 24 * MEGA;
    kofn_transport *t = listener(addresses[0], &patient);
    unsigned char *body = calloc(most, 1), text[4096];
    int fd = plain(kofn_net_endpoint(t)), done = 0;
    ssize_t n;

    (void)state;
    assert_true(hello(fd, NULL));
    came(t, NULL);
    assert_ok(
        t->send(t, 0, "x", 1, &(kofn_lent){body, most, mark, &done}, false));
    assert_int_equal(done, 0);
    t->forget(t, 0);
    assert_int_equal(done, 1);
    memset(body, 0xee, most);
    while ((n = recv(fd, text, sizeof text, 0)) > 0)
        assert_null(memchr(text, 0xee, (size_t)n));
    close(fd);
    visit(t);
    t->close(t, 0);
    free(body);
}

/* ---- connections that end at any time ------------------------------------ */

static void leave(caller *c, bool reset)
{
    const struct linger now = {1, 0};

    if (reset)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    hang_up_caller(c);
}

static void hang_up(int fd, bool reset)
{
    leave(&(caller){fd, NULL, NULL}, reset);
}

static void ends_at_every_byte(void **state)
{
    unsigned char all[KF_HEADER + sizeof(kf_greeting) + KF_HEADER + 4 + 100];
    kf_greeting g = {.magic = KF_MAGIC};

    (void)state;
    memset(all, 0, sizeof all);
    memcpy(g.magic, KF_MAGIC, sizeof g.magic);
    kf_net_put_number(g.silence, KOFN_SECOND, 8);
    all[0] = KF_HELLO;
    kf_net_put_number(all + 2, sizeof g, 2);
    memcpy(all + KF_HEADER, &g, sizeof g);
    all[KF_HEADER + sizeof g] = KF_PACKET;
    kf_net_put_number(all + KF_HEADER + sizeof g + 2, 4, 2);
    kf_net_put_number(all + KF_HEADER + sizeof g + 4, 100, 4);
    kf_net_put_number(all + KF_HEADER + sizeof g + 8, 100, 8);
    for (int a = 0; a < 2; a++) {
        kofn_transport *t = listener(addresses[a], &bounded);

        for (size_t n = 0; n <= sizeof all; n++) {
            int fd = plain(kofn_net_endpoint(t));

            assert_int_equal(send(fd, all, n, MSG_NOSIGNAL), n);
            hang_up(fd, n % 2);
        }
        visit(t);
        t->close(t, 0);
    }
}

static void byte_by_byte(void **state)
{
    kofn_transport *t = listener(addresses[0], &bounded);
    unsigned char all[KF_HEADER + sizeof(kf_greeting)] = {KF_HELLO};
    kf_greeting g = {.magic = KF_MAGIC};
    int fd = plain(kofn_net_endpoint(t));

    (void)state;
    memcpy(g.magic, KF_MAGIC, sizeof g.magic);
    kf_net_put_number(all + 2, sizeof g, 2);
    memcpy(all + KF_HEADER, &g, sizeof g);
    for (size_t i = 0; i < sizeof all; i++) {
        kofn_packet p;

        assert_int_equal(t->wait(t, MILLI, &p), KOFN_AGAIN);
        assert_int_equal(send(fd, all + i, 1, MSG_NOSIGNAL), 1);
    }
    came(t, NULL);
    close(fd);
    t->close(t, 0);
}

/* ---- strangers that stay idle -------------------------------------------- */

static void idle_crowd(void **state)
{
    const kofn_net_options few = {
        .size = sizeof few, .strangers = 8, .silence = 10 * KOFN_SECOND};
    kofn_transport *t = listener(addresses[0], &few);
    int fd[100];

    (void)state;
    for (int i = 0; i < 100; i++)
        fd[i] = plain(kofn_net_endpoint(t));
    visit(t);
    assert_true(inside(t)->gate.strangers <= 8);
    assert_true(refused_by(t).crowd >= 92);
    assert_non_null(strstr(t->news(t), "more than 8 strangers"));
    assert_null(t->news(t)); /* not again at once */
    for (int i = 0; i < 100; i++)
        close(fd[i]);
    t->close(t, 0);
}

/* The limit is ten seconds. The test moves the clock instead of waiting. */
static void idle_timeout(void **state)
{
    kofn_transport *t = listener(addresses[0], &bounded);
    int fd = plain(kofn_net_endpoint(t));
    kofn_packet p;

    (void)state;
    while (!has_links(t))
        assert_int_equal(t->wait(t, MILLI, &p), KOFN_AGAIN);
    pthread_mutex_lock(&inside(t)->lock);
    inside(t)->in.links->life.since -= 11 * KOFN_SECOND;
    pthread_mutex_unlock(&inside(t)->lock);
    while (has_links(t))
        assert_int_equal(t->wait(t, 10 * MILLI, &p), KOFN_AGAIN);
    assert_true(ends(fd));
    assert_int_equal(refused_by(t).unresponsive, 1);
    close(fd);
    t->close(t, 0);
}

static void socket_mode(void **state)
{
    mode_t was = umask(0);
    kofn_transport *t = listener(addresses[1], &bounded);
    struct stat s;

    (void)state;
    umask(was);
    assert_int_equal(stat(unix_socket + 6, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    t->close(t, 0);
    assert_int_equal(stat(unix_socket + 6, &s), -1);
}

/* True if some files can be opened at once. */
static bool can_open(void)
{
    int file[16], n = 0;

    while (n < 16 && (file[n] = open("/dev/null", O_RDONLY)) >= 0)
        n++;
    for (int i = 0; i < n; i++)
        close(file[i]);
    return n == 16;
}

/* Serves in a process that may have few descriptors. Peers are served, files
 * can be opened, and an honest peer comes in. */
static void few_descriptors(const char *address, const kofn_net_options *o,
                            int ready, int done)
{
    const struct rlimit few = {128, 128};
    kofn_transport *t;
    kofn_packet p;
    char byte;
    bool opens = true;

    setrlimit(RLIMIT_NOFILE, &few);
    if (kofn_net_listen(&t, address, o) ||
        write(ready, kofn_net_endpoint(t), 160) != 160)
        _exit(1);
    fcntl(done, F_SETFL, O_NONBLOCK);
    while (read(done, &byte, 1) != 1) {
        if (t->wait(t, 5 * MILLI, &p) || p.what != KOFN_PACKET)
            continue;
        locked(t); /* no connection is admitted meanwhile */
        opens &= can_open();
        unlock(t);
        t->send(t, p.peer, p.head, p.head_bytes, NULL, false);
        t->release(t, p.own);
    }
    _exit(!opens || !strstr(t->news(t), "ulimit -n") ? 2 : 0);
}

static void few_files(void **state)
{
    const kofn_net_options there = with(*state ? ring.dir : NULL);
    const kofn_net_options here = with(*state ? in(&ring, "anna") : NULL);

    for (int a = 0; a < 2; a++) {
        kofn_transport *t;
        int ready[2], done[2], fd[400], status;
        char at[160];
        pid_t pid;

        assert_int_equal(pipe(ready) | pipe(done), 0);
        pid = fork();
        if (pid == 0)
            few_descriptors(addresses[a], &there, ready[1], done[0]);
        assert_int_equal(read(ready[0], at, sizeof at), sizeof at);
        assert_ok(kofn_net_connect(&t, at, &here));
        came(t, NULL);
        for (int i = 0; i < 400; i++)
            fd[i] = plain(at);
        say(t, 0, "mine");
        hear(t, 0, "mine");
        t->close(t, 0);
        assert_ok(kofn_net_connect(&t, at, &here));
        came(t, NULL);
        say(t, 0, "new");
        hear(t, 0, "new");
        t->close(t, 0);
        assert_int_equal(write(done[1], "x", 1), 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        for (int i = 0; i < 400; i++)
            close(fd[i]);
        for (int i = 0; i < 2; i++) {
            close(ready[i]);
            close(done[i]);
        }
    }
}

/* ---- noise --------------------------------------------------------------- */

static uint32_t draw(uint32_t *s)
{
    *s = *s * 1664525 + 1013904223;
    return *s >> 8;
}

/* Sends frames that are nearly right, and random bytes. */
static void babble(caller *c, uint32_t *s)
{
    static const char words[] = "HWGBPDCSPDPDPDPD"; /* bodies above all */
    unsigned char junk[3000];
    unsigned n = draw(s) % 30;

    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (unsigned char)draw(s);
    if (draw(s) % 2) { /* a correct beginning */
        caller_frames(c, &(frame_of){KF_PACKET, 0, "head", 4, 10, 1000});
        caller_says(c, junk, 10);
    }
    for (unsigned i = 0; i < n; i++) {
        size_t chunk = draw(s) % 8 ? draw(s) % 3000 : draw(s);
        uint64_t more =
            draw(s) % 8 ? draw(s) % 3000 : (uint64_t)draw(s) << draw(s) % 40;
        uint64_t number = draw(s) % 3 ? chunk + more : chunk;
        const frame_of f = {words[draw(s) % 16],
                            draw(s) % 20 ? (int)(draw(s) % 2) : 7,
                            junk,
                            draw(s) % 200,
                            chunk,
                            number};

        caller_frames(c, &f);
        caller_says(c, junk, kf_min(chunk, sizeof junk));
    }
}

static void listener_noise(void **state)
{
    uint32_t s = 1;
    const kofn_net_options o = bounded_with(*state);
    kofn_transport *t = listener(addresses[1], &o);
    int many = test_scale() < 1 ? 100 : 1000, came_in = 0;

    for (int i = 0; i < many; i++) {
        caller c = call(t, *state);
        bool greets = draw(&s) % 4;
        kofn_packet p;

        if (greets)
            caller_greets(&c);
        babble(&c, &s);
        leave(&c, draw(&s) % 2);
        while (!t->wait(t, 0, &p)) {
            came_in += p.what == KOFN_CAME;
            if (p.what == KOFN_PACKET)
                t->release(t, p.own);
        }
    }
    assert_true(came_in > many / 8);
    visit(t);
    t->close(t, 0);
}

static void dialler_noise(void **state)
{
    uint32_t s = 2;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    int l = socket(AF_INET, SOCK_STREAM, 0);
    char address[40];
    kofn_transport *t;
    unsigned came_in = 0;

    (void)state;
    assert_int_equal(bind(l, (struct sockaddr *)&at, bytes) | listen(l, 10), 0);
    assert_int_equal(getsockname(l, (struct sockaddr *)&at, &bytes), 0);
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    assert_ok(kofn_net_connect(&t, address, &bounded));
    for (int i = 0; i < 20; i++) {
        kf_greeting g = kf_net_send_greeting(inside(t));
        kofn_packet p;
        int fd;

        while ((fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) < 0)
            t->wait(t, 0, &p);
        if (draw(&s) % 4)
            put_frame(fd, KF_WELCOME, 0, &g, sizeof g, 0, 0);
        babble(&(caller){fd, NULL, NULL}, &s);
        for (int turn = 0; turn < 3; turn++)
            while (!t->wait(t, MILLI, &p)) {
                came_in += p.what == KOFN_CAME;
                if (p.what == KOFN_PACKET)
                    t->release(t, p.own);
            }
        hang_up(fd, draw(&s) % 2);
        while (has_links(t))
            if (!t->wait(t, MILLI, &p) && p.what == KOFN_PACKET)
                t->release(t, p.own);
        pthread_mutex_lock(&inside(t)->lock);
        inside(t)->out.dial[0]->next = 0; /* dials again at once */
        pthread_mutex_unlock(&inside(t)->lock);
    }
    assert_true(came_in > 5);
    close(l);
    t->close(t, 0);
}

/* ---- the same cases inside TLS ------------------------------------------- */

static void wrong_frames_tls(void **state)
{
    *state = &with_keys;
    wrong_frames(state);
}

static void only_hello_tls(void **state)
{
    *state = &with_keys;
    only_hello(state);
}

static void beyond_window_tls(void **state)
{
    *state = &with_keys;
    beyond_window(state);
}

static void noise_tls(void **state)
{
    *state = &with_keys;
    listener_noise(state);
}

static void few_files_tls(void **state)
{
    *state = &with_keys;
    few_files(state);
}

TEST_FILE(net_hostile_test)
{
    const struct CMUnitTest tests[] = {
        TEST(wrong_frames,
             "net: a frame that is not allowed ends its connection only"),
        TEST(only_hello, "net: a stranger may only send a hello"),
        TEST(beyond_window,
             "net: a peer that sends beyond its window is ended"),
        TEST(forgotten_sender,
             "net: a peer that is forgotten within its body is not heard"),
        TEST(forgotten_receiver,
             "net: the body of a forgotten peer is given back, and not read"),
        TEST(ends_at_every_byte,
             "net: a connection may end after every byte of hello and packet"),
        TEST(byte_by_byte, "net: a hello that comes byte by byte is accepted"),
        TEST(idle_crowd,
             "net: a hundred idle strangers do not keep a peer out"),
        TEST(idle_timeout,
             "net: a stranger without a hello is ended after ten seconds"),
        TEST(socket_mode, "net: a Unix socket has mode 0600"),
        TEST(few_files, "net: peers are served when descriptors run out"),
        TEST(listener_noise, "net: a listener survives noise"),
        TEST(dialler_noise, "net: a dialler survives noise of its listener"),
        TEST(wrong_frames_tls,
             "net: a frame that is not allowed ends its connection (keys)"),
        TEST(only_hello_tls, "net: a stranger may only send a hello (keys)"),
        TEST(beyond_window_tls,
             "net: a peer that sends beyond its window is ended (keys)"),
        TEST(noise_tls, "net: a listener survives noise (keys)"),
        TEST(few_files_tls,
             "net: peers are served when descriptors run out (keys)"),
    };

    return cmocka_run_group_tests_name("net_hostile", tests, make_ring,
                                       drop_ring);
}
