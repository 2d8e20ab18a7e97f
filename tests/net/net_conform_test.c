/* net_conform_test.c -- the laws of transports (conform.h) over TCP and Unix
 * sockets. */
#define _GNU_SOURCE
#include "keys_rig.h"

#include "conform_threads.h"

static void net_with(const char *address, const char *keys, uint32_t seed)
{
    const kofn_net_options o = {.size = sizeof o,
                                .keys = keys,
                                .silence = 10 * KOFN_SECOND,
                                .body_max = 1 << 20,
                                .peer_bytes = 8 << 20};

    kofn_net_options others = patient;
    conform_end end[ENDS] = {0};

    others.keys = keys;

    for (unsigned i = 0; i < ENDS; i++) {
        if (i == 0)
            assert_ok(kofn_net_listen(&end[0].t, address, &o));
        else
            assert_ok(kofn_net_connect(&end[i].t, kofn_net_endpoint(end[0].t),
                                       &others));
        end[i].fills = true;
        end[i].bounded = true;
        end[i].longest = 1 << 20;
    }
    hold(end, seed);
}

static void plain_sockets(void **state)
{
    char address[80];

    (void)state;
    snprintf(address, sizeof address, "ipc:///tmp/kofn-conform-%ld.sock",
             (long)getpid());
    net_with("tcp://127.0.0.1:*", NULL, 3);
    net_with(address, NULL, 4);
}

static void tls_sockets(void **state)
{
    keyring k;

    (void)state;
    keyring_new(&k);
    assert_ok(kofn_net_keygen(k.dir, NULL));
    net_with("tcp://127.0.0.1:*", k.dir, 5);
    keyring_free(&k);
}

TEST_FILE(net_conform_test)
{
    const struct CMUnitTest tests[] = {

        TEST(plain_sockets,
             "net: sockets obey the laws of transports (TCP, Unix)"),
        TEST(tls_sockets, "net: TCP with keys obeys the laws of transports"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
