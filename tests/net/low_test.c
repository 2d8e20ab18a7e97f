/* low_test.c -- a process that has closed descriptors 0, 1 or 2. No descriptor
 * of the transport becomes one of these, and libuv closes none of them.
 *
 * Each case runs in a separate process. Its exit status is the number of the
 * fault. */
#define _GNU_SOURCE
#include "keys_rig.h"

#include <fcntl.h>

#define BODY ((size_t)512 << 10) /* sent as a memory file */

static unsigned
    closed; /* the closed descriptors: a bit for each of 0, 1 and 2 */

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void check_standard(bool good, int number)
{
    for (int fd = 0; fd < 3; fd++)
        good &= is_open(fd) == !(closed & 1u << fd);
    if (!good)
        _exit(number);
}

/* Waits until t has `peers` more peers. */
static void meets(kofn_transport *t, int peers)
{
    kofn_packet p;

    while (peers > 0)
        peers -= !t->wait(t, MILLI, &p) && p.what == KOFN_CAME;
}

static void gets(kofn_transport *t)
{
    kofn_packet p;

    while (t->wait(t, MILLI, &p))
        ;
    check_standard(p.what == KOFN_PACKET && p.body_bytes == BODY, 1);
    t->release(t, p.own);
}

static void story(const char *address, const kofn_net_options *o)
{
    static char body[BODY];
    const kofn_lent lent = {body, BODY, NULL, NULL};
    kofn_transport *l, *a, *b;

    if (kofn_net_listen(&l, address, o))
        _exit(2);
    check_standard(true, 3);
    if (kofn_net_connect(&a, kofn_net_endpoint(l), o) ||
        kofn_net_connect(&b, kofn_net_endpoint(l), o))
        _exit(4);
    meets(l, 2);
    meets(a, 1);
    meets(b, 1);
    check_standard(true, 5);
    for (kofn_peer i = 0; i < 2; i++)
        check_standard(l->send(l, i, "x", 1, &lent, false) == KOFN_OK, 6);
    gets(a);
    gets(b);
    a->close(a, 0);
    b->close(b, 0);
    check_standard(true, 7);
    l->close(l, 0);
    check_standard(true, 8);
}

/* Runs the story in a process without these descriptors. Returns its exit
 * status. */
static int run_without(const char *address, const char *keys)
{
    kofn_net_options o = patient;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        o.keys = keys;
        for (int fd = 0; fd < 3; fd++)
            if (closed & 1u << fd)
                close(fd);
        story(address, &o);
        exit(0); /* libuv closes what it has left */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("%s without %u: signal %d", address, closed, WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void closed_standard(void **state)
{
    static const unsigned sets[] = {1, 2, 4, 7};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        closed = sets[i];
        assert_int_equal(run_without(addresses[0], NULL), 0);
        assert_int_equal(run_without(addresses[0], ring.dir), 0);
        assert_int_equal(run_without(addresses[1], NULL), 0);
    }
}

TEST_FILE(low_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            closed_standard,
            "net: no descriptor becomes 0, 1 or 2 if the program closed these"),
    };

    return cmocka_run_group_tests_name("low", tests, make_ring, drop_ring);
}
