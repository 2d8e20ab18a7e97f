/* laws_net_test.c -- the laws of rounds with worker processes, reached over
 * sockets: those of laws_test.c, and that any survivors suffice. */
#include "pool_port.h"

#include "laws_faults.h"

static kofn_port *processes(const rig *x, const rig_kind *kind,
                            const kofn_faults *faults)
{
    (void)x; /* each process makes its own */
    return pool_port(kind, faults);
}

static const site process_site = {.staged = true, .open = processes};

/* ---- survivors ----------------------------------------------------------- */

/* Before the second round all workers leave except the minimum of each group;
 * in a stream one stays. */
static size_t leave_enough(const kofn_plan *p, kofn_fault_event *h, kf_rng *r)
{
    const kofn_layout *L = &p->layout;
    size_t keep = kf_ceil_div(L->threshold, L->submessages), n = 0;

    if (p->op->stream)
        keep = 1;
    for (size_t g = 0; g < L->groups; g++) {
        size_t left = kf_ceil_div(p->workers - g, L->groups);

        for (size_t w = g, spare = left - keep; w < p->workers;
             w += L->groups, left--)
            if (kf_rng_below(r, left) < spare) {
                h[n++] = (kofn_fault_event){.round = 2,
                                            .kind = KOFN_FAULT_EVENT_LEAVE,
                                            .worker = (uint32_t)w};
                spare--;
            }
    }
    return n;
}

static size_t rounds, right;

static void any_survivors(const point *at, const kofn_plan *p, kf_rng *r)
{
    const kofn_faults fair = KOFN_FAULTS_INIT(.seed = kf_rng_u64(r));
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_fault_event leave[64];
    rig_kind kind;
    rig x;

    o.pieces = 1 + (unsigned)kf_rng_below(r, 4);
    o.in_flight = (kofn_in_flight)kf_rng_below(r, 3);
    o.events = leave;
    o.event_count = leave_enough(p, leave, r);
    job_inputs(&x, at, &kind);
    assert_ok(kofn_open(&x.job, p, process_site.open(&x, &kind, &fair), &o));
    check(rig_place(&x) == KOFN_OK);
    for (uint64_t round = 0; round < 3; round++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        rig_next(&x, round + 90);
        st = rig_round(&x, &rep);
        check(st == KOFN_OK || st == KOFN_UNSTABLE);
        if (!st)
            check_answer(&x, &rep);
        rounds++;
        right += st == KOFN_OK;
    }
    rig_down(&x);
}

static void survivors(void **state)
{
    (void)state;
    over_the_grid(any_survivors, 1, 3, 11);
    pool_end(60 * KOFN_SECOND);
    print_message("%zu rounds, %zu right\n", rounds, right);
    assert_true(right >= rounds * 9 / 10); /* few sets are refused */
}

/* ---- laws 5 and 9 -------------------------------------------------------- */

static void in_processes(const point *at, const kofn_plan *p, kf_rng *r)
{
    any_faults(at, p, r, &process_site);
}

static void faults_and_replay(void **state)
{
    (void)state;
    over_the_grid(in_processes, 1, 3, 12);
    pool_end(60 * KOFN_SECOND);
}

TEST_FILE(laws_net_test)
{
    const struct CMUnitTest tests[] = {
        TEST(survivors, "laws, sockets: any minimal set of survivors suffices"),
        TEST(
            faults_and_replay,
            "laws 5 and 9, sockets: right or refused under faults, and replays"),
    };
    int failed;

    if (argc > 1) /* only tests with that sentence, with asterisks */
        cmocka_set_test_filter(argv[1]);
    pool_open();
    rig_begin();
    if (!pool_folder_new())
        return 1;
    failed =
        cmocka_run_group_tests_name("laws over sockets", tests, NULL, NULL);
    return pool_folder_end() ? failed : 1;
}
