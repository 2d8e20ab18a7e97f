/* conform_test.c -- the laws of transports (conform.h) on the network inside
 * the tests and on ZeroMQ; MPI's ranks are held to them by mpi/conform.c. */
#include "loop_transport.h"

#include "conform.h"

#include <kofn/zmq.h>

enum { ENDS = 5 };

static void *one_end(void *ud)
{
    (void)conform(ud);
    return NULL;
}

/* All ends on threads; `end` has their transports. */
static void hold(conform_end *end, uint32_t seed)
{
    pthread_t thread[ENDS];
    atomic_bool filled = false;

    for (unsigned i = 0; i < ENDS; i++) {
        end[i].filled = &filled;
        end[i].me = i;
        end[i].ends = ENDS;
        end[i].seed = seed;
    }
    for (unsigned i = 0; i < ENDS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, one_end, &end[i]), 0);
    for (unsigned i = 0; i < ENDS; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < ENDS; i++)
        if (end[i].why[0])
            fail_msg("end %u: %s", i, end[i].why);
}

/* The hub is closed last: its spokes leave it. */
static void loop_with(const loop_faults *f, uint32_t seed)
{
    conform_end end[ENDS] = {0};
    loop_net net;

    loop_net_init(&net, f);
    for (unsigned i = 0; i < ENDS; i++) {
        end[i].t = i ? loop_spoke(&net) : loop_hub(&net);
        end[i].fills = f->room > 0;
        end[i].longest = 1 << 20;
    }
    hold(end, seed);
    pthread_mutex_destroy(&net.lock);
}

static void on_the_loop(void **state)
{
    (void)state;
    loop_with(&(loop_faults){.room = 4 << 20}, 1);
    loop_with(&(loop_faults){.room = 4 << 20, .fetching = true}, 2);
}

#ifndef __SANITIZE_THREAD__
static void zmq_with(const char *address, const char *keys, uint32_t seed)
{
    const kofn_zmq_options o = {.silence = 10 * KOFN_SECOND,
                                .body_max = 1 << 20,
                                .peer_bytes = 8 << 20,
                                .keys = keys};
    const kofn_zmq_options longer = {.silence = 10 * KOFN_SECOND, .keys = keys};
    conform_end end[ENDS] = {0};

    for (unsigned i = 0; i < ENDS; i++) {
        if (i == 0)
            assert_ok(kofn_zmq_listen(&end[0].t, address, &o));
        else
            assert_ok(kofn_zmq_connect(&end[i].t, kofn_zmq_endpoint(end[0].t),
                                       &longer));
        end[i].fills = true;
        end[i].bounded = true;
        end[i].longest = 1 << 20;
    }
    hold(end, seed);
}

static void on_zeromq(void **state)
{
    char address[80];

    (void)state;
    snprintf(address, sizeof address, "ipc:///tmp/kofn-conform-%ld.sock",
             (long)getpid());
    zmq_with("tcp://127.0.0.1:*", NULL, 3);
    zmq_with(address, NULL, 4);
}
#endif

TEST_FILE(conform_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_the_loop),
#ifndef __SANITIZE_THREAD__ /* milliseconds for every number over libzmq */
        cmocka_unit_test(on_zeromq),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
