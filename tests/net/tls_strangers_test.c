/* tls_strangers_test.c -- the cost of strangers that begin a handshake:
 * memory, time and the places of others. */
#define _GNU_SOURCE
#include "tls_peer.h"

#include <stdatomic.h>
#include <sys/prctl.h>

#define STRANGERS 1024           /* the most strangers at a time */
#define SHAKING 160              /* ... in a handshake with OpenSSL */
#define STRANGER_MOST (16 << 10) /* bytes of memory for each, at most */
#define GATHERED 4096            /* bytes of a record that is collected */

static size_t wanted; /* expected number of strangers */

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

/* True if `wanted` strangers are in the handshake, have sent `shaking` bytes,
 * and OpenSSL has begun with them as `begun` says. `crowd` strangers were
 * ended for later ones. */
static bool wanted_shake(kofn_transport *a, kofn_transport *b)
{
    size_t n = 0;
    bool seen;

    (void)b;
    for (kf_link *l = locked(a)->in.links; l; l = l->after)
        n += l->state == KF_SHAKING && (l->secure.tls != NULL) == begun &&
             l->secure.shaken + l->secure.record_have >= shaking;
    seen = n == wanted && inside(a)->gate.refused.crowd == crowd;
    unlock(a);
    return seen;
}

static bool it_is_crowded(kofn_transport *a, kofn_transport *b)
{
    (void)b;
    return refused_by(a).crowd > 0;
}

/* Makes all of it but the last byte. */
static size_t hello_and_most(char *text, size_t room)
{
    const size_t most = 2 * GATHERED;
    size_t first;

    hello_and_half(text, room, &first);
    assert_true(first + 5 + most <= room);
    memset(text + first + 5, 'h', most);
    return first + 5 + most - 1;
}

/* Connects one more stranger that sends `text`. Waits until `now` strangers
 * have reached this state. */
static int one_more(kofn_transport *t, const char *text, size_t n, bool begins,
                    size_t now)
{
    int fd = plain(kofn_net_endpoint(t));

    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
    begun = begins;
    shaking = n;
    wanted = now;
    until(t, NULL, wanted_shake);
    return fd;
}

/* The callers and the listener share the descriptors of one process. */
static struct rlimit many_files(void)
{
    const struct rlimit files = {4096, 4096};
    struct rlimit were;

    getrlimit(RLIMIT_NOFILE, &were);
    if (were.rlim_cur < files.rlim_cur && setrlimit(RLIMIT_NOFILE, &files))
        skip();
    return were;
}

/* The number of strangers is at its limit. Some have made every step that needs
 * no key, and some are about to begin. When one more begins, the first in a
 * handshake is ended. */
static void many_strangers(void **state)
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

static void expected_peers(void **state)
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

/* Floods the listener from a separate process. Its strangers begin and then
 * stay idle. They return as soon as they are ended. */
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

static void endless_strangers(void **state)
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

static void few_at_once(void **state)
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
    until(t, NULL, wanted_shake);
    locked(t);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(send(fd[i], text, first, MSG_NOSIGNAL), first);
    inside(t)->shakes = 0;
    uv_run(&inside(t)->uv.loop, UV_RUN_NOWAIT);
    for (kf_link *l = inside(t)->in.links; l; l = l->after)
        began += l->secure.tls != NULL;
    unlock(t);
    assert_true(began > 0 && began <= AT_ONCE);
    shaking = first;
    begun = true;
    until(t, NULL, wanted_shake);
    visit(t);
    for (int i = 0; i < MANY; i++)
        close(fd[i]);
    t->close(t, 0);
}

/* The cases: a first message that announces a length beyond the limit, and
 * bytes without end. */
static void oversized_start(void **state)
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
        assert_int_equal(refused_by(t).unresponsive,
                         0); /* it ended at once, not after the timeout */
        close(fd);
    }
    for (int i = 0; i < 2; i++) { /* ... a record behind it that announces it */
        char text[8192];
        size_t first, n = hello_and_half(text, sizeof text, &first);
        int fd = plain(kofn_net_endpoint(t));

        text[first + 4] = (char)i; /* the longest allowed, or longer */
        assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
        wanted = 1;
        shaking = n;
        begun = true;
        if (i == 0)
            until(t, NULL, wanted_shake);
        else
            assert_true(ends(fd));
        close(fd);
        until(t, NULL, nobody_is_left);
        assert_int_equal(refused_by(t).unresponsive, 0);
    }
    for (int i = 0; i < 2;
         i++) { /* ... changes of the cipher, which do not count as a step */
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

static void handshake_timeout(void **state)
{
    const kofn_net_options o = with(ring.dir);
    kofn_transport *t = listener(addresses[0], &o);
    char text[8192];
    size_t first, n = hello_and_half(text, sizeof text, &first);
    int fd = one_more(t, text, n, true, 1);

    (void)state;
    locked(t);
    inside(t)->keep.awake += 11 * KOFN_SECOND;
    unlock(t);
    until(t, NULL, nobody_is_left);
    assert_int_equal(refused_by(t).unresponsive, 1);
    close(fd);
    t->close(t, 0);
}

TEST_FILE(tls_strangers_test)
{
    const struct CMUnitTest tests[] = {
        TEST(many_strangers,
             "TLS: 1024 strangers cost 16 KiB each and keep no peer out"),
        TEST(expected_peers,
             "TLS: more strangers may shake hands if more are allowed"),
        TEST(endless_strangers,
             "TLS: a peer is admitted while strangers come without end"),
        TEST(few_at_once, "TLS: at most 8 of 40 handshakes begin in one turn"),
        TEST(oversized_start,
             "TLS: too long messages and endless bytes end a handshake"),
        TEST(handshake_timeout,
             "TLS: a handshake that stops is ended after ten seconds"),
    };

    return cmocka_run_group_tests_name("tls strangers", tests, make_ring,
                                       drop_ring);
}
