/* campaign_cables_test.c -- the campaign on separate networks. Their cables
 * are cut and mended. Needs root and `ip`; without them the test is skipped. */
#include "campaign_rig.h"

/* The networks. The coordinator has a separate network too, so no other
 * process meets the traffic. All networks end with their last process. */
typedef struct nets {
    int home;
    char home_name[64];
    pid_t holder[2];
    kofn_time cut[2]; /* until when it is cut; 0: it is whole */
} nets;

static nets net;

static bool run_ip(const char *form, long a, long b)
{
    char command[200], words[160];

    snprintf(words, sizeof words, form, a, b);
    snprintf(command, sizeof command, "ip %s >/dev/null 2>&1", words);
    return system(command) == 0;
}

static bool net_name(const char *path, char name[64])
{
    ssize_t n = readlink(path, name, 63);

    name[n < 0 ? 0 : n] = 0;
    return n > 0;
}

/* Lays a cable to the network of a process: 10.77.I.1 here and 10.77.I.2
 * there. */
static bool cable(long i)
{
    pid_t holder = pool_network();
    char name[64], path[64], command[200];

    net.holder[i] = holder;
    snprintf(path, sizeof path, "/proc/%ld/ns/net", (long)holder);
    for (int k = 0; k < 100; k++) { /* until the process has its own network */
        if (net_name(path, name) && strcmp(name, net.home_name) != 0)
            break;
        pool_sleep(10 * MILLI);
    }
    snprintf(command, sizeof command,
             "nsenter -t %ld -n sh -c 'ip addr add 10.77.%ld.2/24 dev eth0 && "
             "ip link set eth0 up' >/dev/null 2>&1",
             (long)holder, i);
    return run_ip("link add cable%ld type veth peer name eth0 netns %ld", i,
                  holder) &&
           run_ip("addr add 10.77.%ld.1/24 dev cable%ld", i, i) &&
           run_ip("link set cable%ld up", i, 0) && system(command) == 0;
}

static bool nets_up(void)
{
    net.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return net.home >= 0 && net_name("/proc/self/ns/net", net.home_name) &&
           unshare(CLONE_NEWNET) == 0 && run_ip("link set lo up", 0, 0) &&
           cable(0) && cable(1);
}

static void nets_down(void)
{
    for (int i = 0; i < 2; i++)
        if (net.holder[i])
            pool_signal(net.holder[i], SIGKILL);
    if (net.home >= 0)
        assert_int_equal(setns(net.home, CLONE_NEWNET), 0);
    close(net.home);
}

/* Cuts a cable, for a shorter or a longer time than the failure timeout. */
static bool cut_cable(run *r)
{
    long i = (long)kf_rng_below(&r->r, 2);

    if (net.cut[i] || !run_ip("link set cable%ld down", i, 0))
        return false;
    net.cut[i] =
        kf_clock() + 2 * SILENCE * (kofn_time)kf_rng_below(&r->r, 10) / 10;
    return true;
}

static void mend_cables(bool all)
{
    for (long i = 0; i < 2; i++)
        if (net.cut[i] && (all || kf_clock() >= net.cut[i])) {
            net.cut[i] = 0;
            assert_true(run_ip("link set cable%ld up", i, 0));
        }
}

static void cut_cables(void **state)
{
    tally t = {0};
    run *r = calloc(1, sizeof *r);

    (void)state;
    if (!nets_up()) {
        nets_down();
        free(r);
        print_message("no networks can be made here: that takes root and ip\n");
        skip();
    }
    for (uint64_t seed = 1000; seed < 1000 + often(8); seed++) {
        begin(r, seed);
        r->more = cut_cable;
        r->tend = mend_cables;
        r->life.net = net.holder[0];
        r->other_net = net.holder[1];
        open_run(r, "tcp://0.0.0.0:*", r->x.plan->workers);
        rounds(r, 6, &t);
        mend_cables(true);
        finish(r);
    }
    nets_down();
    free(r);
    pool_end(20 * KOFN_SECOND * SLACK);
    tell(&t);
}

TEST_FILE(campaign_cables_test)
{
    const struct CMUnitTest tests[] = {
        TEST(cut_cables,
             "campaign: rounds are right or too few are left (cut cables)"),
    };
    int failed;

    if (!campaign_begin(argc > 1 ? argv[1] : NULL))
        return 1;
    failed = cmocka_run_group_tests_name("campaign", tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
