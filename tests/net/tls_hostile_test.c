/* tls_hostile_test.c -- the transport with keys and those who do not shake hands as they
 * should: where they end, and what they cost. */
#define _GNU_SOURCE
#include "keys_rig.h"

#include "net/keys.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#define STRANGERS 1024           /* that there may be                    */
#define SHAKING 160              /* ... with whom OpenSSL shakes hands   */
#define STRANGER_MOST (16 << 10) /* bytes of memory that each costs      */
#define GATHERED 4096            /* bytes of a record that is waited for */

static size_t wanted; /* strangers, or what is counted */

/* ---- by hand ------------------------------------------------------------- */

typedef struct hand {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
} hand;

/* Somebody with such a key, whose bytes go through our hands. */
static hand hand_of(const char *crt, const char *key, bool listens)
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
static hand hand_new(bool listens)
{
    return listens ? hand_of(in(&ring, "coordinator.crt"),
                             in(&ring, "coordinator.key"), true)
                   : hand_of(in(&ring, "anna.crt"),
                             in(&ring, "anna/worker.key"), false);
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
    kf_greeting g = {.magic = KF_MAGIC};
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

static size_t shaking, crowd;
static bool begun;

/* OpenSSL has begun with them, or not; they have got as far, and wait.  So many were
 * ended for those who came after them. */
static bool so_many_shake(kofn_transport *a, kofn_transport *b)
{
    size_t n = 0;
    bool seen;

    (void)b;
    for (kf_link *l = locked(a)->links; l; l = l->after)
        n += l->stage == KF_SHAKING && (l->tls != NULL) == begun &&
             l->shaken + l->record_have >= shaking;
    seen = n == wanted && inside(a)->refused.crowd == crowd;
    unlock(a);
    return seen;
}

/* Of a connection that has begun, and of the longest record that may come the first
 * bytes. */
static size_t hello_and_half(char *text, size_t room, size_t *first)
{
    static const char half[] = {23, 3, 3, 0x20, 0, 'h', 'a', 'l', 'f'};
    hand h = hand_new(false);
    size_t n = hand_says(&h, text, room - sizeof half);

    hand_free(&h);
    *first = n;
    memcpy(text + n, half, sizeof half);
    return n + sizeof half;
}

static bool it_is_crowded(kofn_transport *a, kofn_transport *b)
{
    (void)b;
    return refused_by(a).crowd > 0;
}

/* All of it but for the last byte. */
static size_t hello_and_most(char *text, size_t room)
{
    const size_t most = 2 * GATHERED;
    size_t first;

    hello_and_half(text, room, &first);
    assert_true(first + 5 + most <= room);
    memset(text + first + 5, 'h', most);
    return first + 5 + most - 1;
}

/* One more who says that; until `now` of them are there and have got as far. */
static int one_more(kofn_transport *t, const char *text, size_t n, bool begins,
                    size_t now)
{
    int fd = plain(kofn_net_endpoint(t));

    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
    begun = begins;
    shaking = n;
    wanted = now;
    until(t, NULL, so_many_shake);
    return fd;
}

/* Who connects by the hundred is in one process with those who listen. */
static struct rlimit many_files(void)
{
    const struct rlimit files = {4096, 4096};
    struct rlimit were;

    getrlimit(RLIMIT_NOFILE, &were);
    if (were.rlim_cur < files.rlim_cur && setrlimit(RLIMIT_NOFILE, &files))
        skip();
    return were;
}

/* As many as there may be: those who have got as far as they can without a key, and
 * those who are about to begin.  When one more begins the first of these is ended. */
static void a_thousand_strangers(void **state)
{
    enum { MORE = 64 };
    static char slow[5 + GATHERED - 1] = {22, 3, 1, GATHERED >> 8, 0, 1, 0, 15};
    const struct rlimit were = many_files();
    const kofn_net_options o = with(ring.dir);
    static int fd[STRANGERS + MORE];
    kofn_transport *t;
    char text[16 << 10];
    size_t n = hello_and_most(text, sizeof text);
    int i = 0;
    long before, slowly, each;

    (void)state;
    t = listener(addresses[1], &o);
    visit(t);
    before = resident();
    for (; i < STRANGERS - SHAKING; i++)
        fd[i] = one_more(t, slow, sizeof slow, false, (size_t)i + 1);
    slowly = (resident() - before) / i;
    for (; i < STRANGERS; i++)
        fd[i] =
            one_more(t, text, n, true, (size_t)i + 1 - (STRANGERS - SHAKING));
    for (; i < STRANGERS + MORE; i++) {
        crowd = (size_t)i - STRANGERS + 2; /* ... and one was of all */
        fd[i] = one_more(t, text, n, true, SHAKING);
    }
    crowd = 0;
    assert_non_null(strstr(t->news(t), "160 of them shook hands"));
    each = (resident() - before) / STRANGERS;
    printf("a stranger costs %ld bytes: %ld before it begins\n", each, slowly);
    if (SLOWED == 1) /* a sanitizer keeps more */
        grew_less(each, STRANGER_MOST);
    visit(t);
    while (i > 0)
        close(fd[--i]);
    until(t, NULL, nobody_is_left);
    assert_int_equal(refused_by(t).unresponsive, 0); /* their end was noticed */
    t->close(t, 0);
    setrlimit(RLIMIT_NOFILE, &were);
}

/* Those for whom there is more room than for a thousand may all shake hands at once:
 * they do not end each other. */
static void those_who_are_expected(void **state)
{
    enum { EXPECTED = 20, ALL = SHAKING + EXPECTED };
    const struct rlimit were = many_files();
    kofn_net_options o = with(ring.dir);
    kofn_transport *t;
    char text[8192];
    size_t first, n = hello_and_half(text, sizeof text, &first);
    int fd[ALL + 1];

    (void)state;
    o.strangers = STRANGERS + EXPECTED;
    t = listener(addresses[1], &o);
    for (int i = 0; i < ALL; i++)
        fd[i] = one_more(t, text, n, true, (size_t)i + 1);
    crowd = 1;
    fd[ALL] = one_more(t, text, n, true, ALL);
    crowd = 0;
    assert_true(ends(fd[0])); /* the first of them */
    for (int i = 0; i <= ALL; i++)
        close(fd[i]);
    t->close(t, 0);
    setrlimit(RLIMIT_NOFILE, &were);
}

/* In a process of its own: strangers who begin and sit there, and come again as soon
 * as they are ended. */
static void flood(const char *address, const char *text, size_t n)
{
    enum { MANY = 900 };
    int fd[MANY];
    char host[256], heard[4096];
    const char *port;
    kf_place at;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memset(fd, -1, sizeof fd);
    if (kf_place_there(address, &at, host, &port))
        _exit(1);
    for (int i = 0;; i = (i + 1) % MANY) {
        ssize_t m =
            fd[i] < 0 ? 0 : recv(fd[i], heard, sizeof heard, MSG_DONTWAIT);

        if (m > 0 || (m < 0 && errno == EAGAIN))
            continue;
        if (fd[i] >= 0)
            hang_up(fd[i], true); /* its port is free again */
        fd[i] = socket(at.at.ss_family, SOCK_STREAM, 0);
        if (connect(fd[i], (struct sockaddr *)&at.at, at.bytes) == 0)
            send(fd[i], text, n, MSG_NOSIGNAL);
    }
}

/* Who is honest comes in while strangers come without end. */
static void the_honest_come_in(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    char text[8192];
    size_t first, n = hello_and_half(text, sizeof text, &first);
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        flood(kofn_net_endpoint(t), text, n);
    until(t, NULL, it_is_crowded);
    for (int i = 0; i < 3; i++)
        visit(t);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* they still come */
    end(pid);
    t->close(t, 0);
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
    begun = false;
    until(t, NULL, so_many_shake);
    locked(t);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(send(fd[i], text, first, MSG_NOSIGNAL), first);
    inside(t)->shakes = 0;
    uv_run(&inside(t)->loop, UV_RUN_NOWAIT);
    for (kf_link *l = inside(t)->links; l; l = l->after)
        began += l->tls != NULL;
    unlock(t);
    assert_true(began > 0 && began <= AT_ONCE);
    shaking = first;
    begun = true;
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
        assert_int_equal(refused_by(t).unresponsive, 0); /* it was at once */
        close(fd);
    }
    for (int i = 0; i < 2; i++) { /* ... a record behind it that says so, ... */
        char text[8192];
        size_t first, n = hello_and_half(text, sizeof text, &first);
        int fd = plain(kofn_net_endpoint(t));

        text[first + 4] = (char)i; /* as long as may be, or more */
        assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
        wanted = 1;
        shaking = n;
        begun = true;
        if (i == 0)
            until(t, NULL, so_many_shake);
        else
            assert_true(ends(fd));
        close(fd);
        until(t, NULL, nobody_is_left);
        assert_int_equal(refused_by(t).unresponsive, 0);
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

/* Somebody with a key, whose last flight and greeting are put into `said`. */
static size_t last_flight(hand *h, kofn_transport *t, char *said, size_t room)
{
    unsigned char all[KF_HEADER + KOFN_HEAD_MAX];
    const kf_greeting g = greeting_of(NULL);
    size_t n = hand_says(h, said, room);

    h->fd = plain(kofn_net_endpoint(t));
    assert_int_equal(send(h->fd, said, n, MSG_NOSIGNAL), n);
    while (!SSL_is_init_finished(h->ssl)) {
        hand_hears(h, t);
        SSL_do_handshake(h->ssl);
    }
    n = lay_out(all, &(frame_of){KF_HELLO, 0, &g, sizeof g, 0, 0});
    assert_int_equal(SSL_write(h->ssl, all, (int)n), n);
    return (size_t)BIO_read(SSL_get_wbio(h->ssl), said, (int)room);
}

/* Before, in and instead of the last flight of somebody with a key: he comes in if
 * there is none, and never with it. */
static void noise_amid_handshakes(void **state)
{
    enum { CHANGE = 6, KINDS = 4 }; /* bytes that TLS does not look at */
    const kofn_net_options o = with(ring.dir);
    int many = test_scale() < 1 ? 100 : 1000;
    kofn_transport *t = listener(addresses[1], &o);
    uint32_t s = 3, honest = 0;

    (void)state;
    for (int i = 0; i < many; i++) {
        hand h = hand_new(false);
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
        hand_free(&h);
        until(t, NULL, nobody_is_left);
        assert_int_equal(locked(t)->next, honest);
        unlock(t);
    }
    visit(t);
    t->close(t, 0);
}

/* Who begins and does not go on is ended like the unresponsive. */
static void ten_seconds_for_hands(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    char text[8192];
    size_t first, n = hello_and_half(text, sizeof text, &first);
    int fd = one_more(t, text, n, true, 1);

    (void)state;
    locked(t);
    inside(t)->awake += 11 * KOFN_SECOND;
    unlock(t);
    until(t, NULL, nobody_is_left);
    assert_int_equal(refused_by(t).unresponsive, 1);
    close(fd);
    t->close(t, 0);
}

/* ---- who is refused ------------------------------------------------------ */

static size_t lingering; /* of those who are refused */

static bool so_many_linger(kofn_transport *a, kofn_transport *b)
{
    size_t n = 0;

    (void)b;
    for (kf_link *l = locked(a)->links; l; l = l->after)
        n += l->stage == KF_REFUSED;
    unlock(a);
    return n == lingering;
}

/* Somebody whose key is not listed, and who has said all he has to say before he is
 * refused. */
static hand refused_hand(kofn_transport *t, const keyring *other)
{
    hand h = hand_of(in(other, "worker.crt"), in(other, "worker.key"), false);
    const kf_greeting g = greeting_of(NULL);
    char text[8192];
    size_t n = hand_says(&h, text, sizeof text);

    h.fd = plain(kofn_net_endpoint(t));
    assert_int_equal(send(h.fd, text, n, MSG_NOSIGNAL), n);
    while (!SSL_is_init_finished(h.ssl)) {
        hand_hears(&h, t);
        SSL_do_handshake(h.ssl);
    }
    assert_int_equal(SSL_write(h.ssl, &g, sizeof g), sizeof g);
    n = (size_t)BIO_read(SSL_get_wbio(h.ssl), text, sizeof text);
    assert_int_equal(send(h.fd, text, n, MSG_NOSIGNAL), n);
    return h;
}

/* He reads why, and then an end that is none by force, also if he writes before he
 * reads. */
static void the_refused_are_told_why(void **state)
{
    const kofn_net_options o = with(ring.dir);
    keyring other;

    (void)state;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    for (int a = 0; a < 2; a++) {
        kofn_transport *t = listener(addresses[a], &o);
        hand h = refused_hand(t, &other);
        char text[100];
        ssize_t n;

        lingering = 1;
        until(t, NULL, so_many_linger);
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
        hand_free(&h);
        until(t, NULL, nobody_is_left);
        assert_int_equal(refused_by(t).keyless, 1);
        t->close(t, 0);
    }
    keyring_free(&other);
}

/* Those who do not leave when they are refused are strangers still: few, for ten
 * seconds since they came, with so many bytes. */
static void the_refused_have_to_go(void **state)
{
    kofn_net_options o = with(ring.dir);
    hand h[12];
    kofn_transport *t;
    keyring other;
    char text[8192] = {0};

    (void)state;
    o.strangers = 8;
    keyring_new(&other);
    assert_ok(kofn_net_keygen(other.dir, NULL));
    t = listener(addresses[0], &o);
    for (int i = 0; i < 12; i++) {
        h[i] = refused_hand(t, &other);
        lingering = i < 8 ? (size_t)i + 1 : 8;
        until(t, NULL, so_many_linger);
        assert_int_equal(refused_by(t).keyless, i + 1);
    }
    visit(t); /* which ends one of them */
    lingering = 7;
    assert_true(so_many_linger(t, NULL));
    errno = 0;
    for (size_t n = 0; n < 64 * MEGA; n += sizeof text)
        if (send(h[11].fd, text, sizeof text, MSG_NOSIGNAL) < 0)
            break;
    assert_true(errno == EPIPE || errno == ECONNRESET);
    lingering = 6;
    until(t, NULL, so_many_linger);
    locked(t);
    inside(t)->awake += 11 * KOFN_SECOND;
    unlock(t);
    until(t, NULL, nobody_is_left);
    assert_int_equal(refused_by(t).unresponsive, 0); /* they are told of once */
    for (int i = 0; i < 12; i++)
        hand_free(&h[i]);
    t->close(t, 0);
    keyring_free(&other);
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
    assert_ok(kofn_net_keygen(other.dir, NULL));
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

TEST_FILE(tls_hostile_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_end_at_every_byte),
        cmocka_unit_test(slow_but_honest),
        cmocka_unit_test(servers_end_at_every_byte),
        cmocka_unit_test(a_thousand_strangers),
        cmocka_unit_test(those_who_are_expected),
        cmocka_unit_test(the_honest_come_in),
        cmocka_unit_test(few_shake_hands_at_once),
        cmocka_unit_test(too_much_to_begin_with),
        cmocka_unit_test(noise_and_crowds),
        cmocka_unit_test(noise_amid_handshakes),
        cmocka_unit_test(ten_seconds_for_hands),
        cmocka_unit_test(the_refused_are_told_why),
        cmocka_unit_test(the_refused_have_to_go),
        cmocka_unit_test(the_refused_are_news),
    };

    return cmocka_run_group_tests_name("tls hostile", tests, make_ring,
                                       drop_ring);
}
