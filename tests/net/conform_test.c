/* conform_test.c -- the laws of transports (conform.h) on the network inside
 * the tests. net_conform_test.c holds sockets to them, and mpi/conform.c the
 * ranks of MPI. */
#include "loop_transport.h"

#include "conform_threads.h"

/* Closes the hub last: its spokes leave it. */
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

static void test_network(void **state)
{
    (void)state;
    loop_with(&(loop_faults){.room = 4 << 20}, 1);
    loop_with(&(loop_faults){.room = 4 << 20, .fetching = true}, 2);
}

TEST_FILE(conform_test)
{
    const struct CMUnitTest tests[] = {
        TEST(test_network,
             "net: the test network obeys the laws of transports"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
