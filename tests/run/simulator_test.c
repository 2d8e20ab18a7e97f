/* simulator_test.c -- the simulator's clock, which is known in closed form,
 * and runs that repeat with their seed. */
#include "rig.h"

#include <stdio.h>
#include <unistd.h>

/* ---- the simulator's clock ----------------------------------------------- */

/* Plays rounds on the simulator. took[]: the time of each. */
static void simulate(const rig_kind *kind, size_t rounds, kofn_time *took)
{
    rig_kind k = *kind;
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    k.sim = true;
    rig_up(&r, &k);
    for (size_t i = 0; i < rounds; i++) {
        assert_ok(rig_round(&r, &rep));
        took[i] = rep.took;
    }
    rig_down(&r);
}

static kofn_time simulate_one(const rig_kind *kind)
{
    kofn_time took;

    simulate(kind, 1, &took);
    return took;
}

/* With equal workers a round takes a nanosecond for each multiply-add of a
 * share, a second for 1e9 of them. */
static void equal_workers(void **state)
{
    /* A is 480 x 10, times 1 or 3 columns */
    static const struct {
        const char *spec;
        size_t workers;
        kofn_time rows; /* rows that each worker computes */
    } all[] = {
        {"uncoded", 8, 60},
        {"replication:k=4", 8, 120},
        {"mds:k=4", 8, 120},
        {"elastic:k=4", 6, 80},
        {"elastic:k=4,basis=gauss", 8, 60},
        {"elastic:k=4,groups=2", 8, 60},
        {"elastic:k=6,deal=speed", 6, 80},
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t p = 1; p < 4; p += 2) {
            kofn_faults w = KOFN_FAULTS_INIT(.work = 2.5);
            rig_kind k = {.spec = all[i].spec,
                          .workers = all[i].workers,
                          .m = 480,
                          .n = 10,
                          .p = p};
            kofn_time macs = all[i].rows * 10 * (kofn_time)p, took[3];

            assert_int_equal(simulate_one(&k), macs);
            k.faults = &w;
            simulate(&k, 3, took);
            for (int round = 0; round < 3; round++)
                assert_int_equal(took[round], macs * 5 / 2);
        }
}

/* Sparse work is counted in entries. */
static void sparse_workers(void **state)
{
    rig_kind k = {.spec = "uncoded",
                  .workers = 5,
                  .m = 100,
                  .n = 80,
                  .p = 1,
                  .sparse = true};
    size_t most = 0;
    rig r;

    (void)state;
    rig_inputs(&r, &k);
    for (size_t b = 0; b < 100; b += 20)
        most = kf_max(most, r.sparse.ptr[b + 20] - r.sparse.ptr[b]);
    rig_down(&r);
    assert_int_equal(simulate_one(&k), most);
}

/* An uncoded round waits for its one straggler, a coded one does not. */
static void one_straggler(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0, KOFN_FAULT_EVENT_SLOW, 2, 7},
        {2, 0, KOFN_FAULT_EVENT_NORMAL, 2, 0}};
    kofn_options o = with_events(events, 2);
    rig_kind k = {
        .spec = "uncoded", .workers = 6, .m = 480, .n = 10, .p = 1, .opt = &o};
    kofn_time took[2];

    (void)state;
    simulate(&k, 2, took);
    assert_int_equal(took[0], 7 * 800);
    assert_int_equal(took[1], 800);
    k.spec = "mds:k=4";
    simulate(&k, 2, took);
    assert_int_equal(took[0], 1200);
    assert_int_equal(took[1], 1200);
    k.spec = "elastic:k=4"; /* no redundancy inside a round ... */
    o.late = -1;
    simulate(&k, 2, took);
    assert_int_equal(took[0], 7 * 800);
    /* ... unless others are asked: late at twice the time of the others, which
     * then share its 20 strips of four rows: 4 strips each, 5 at most as cells
     * fall */
    o.late = 2;
    o.pieces = 1;
    simulate(&k, 2, took);
    assert_in_range(took[0], 1600 + 4 * 40, 1600 + 5 * 40);
    assert_int_equal(took[1], 800);
}

/* A straggler of the fault model takes `factor` times the usual time, or
 * `delay` longer. The delay counts once in a round, for any number of pieces.
 */
static void fault_model(void **state)
{
    (void)state;
    for (unsigned pieces = 1; pieces < 6; pieces++) {
        kofn_faults w = KOFN_FAULTS_INIT(.straggle = 1);
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind k = {.spec = "uncoded",
                      .workers = 4,
                      .m = 240,
                      .n = 10,
                      .p = 1,
                      .faults = &w,
                      .opt = &o};

        o.pieces = pieces;
        assert_int_equal(simulate_one(&k), 5 * 600);
        w.factor = 3;
        assert_int_equal(simulate_one(&k), 3 * 600);
        w.delay = 1e-3; /* its first piece is rounded down */
        assert_in_range(simulate_one(&k), 1000000 + 599, 1000000 + 600);
    }
}

/* The named random streams decide which workers straggle. */
static void named_streams(void **state)
{
    kofn_faults w =
        KOFN_FAULTS_INIT(.straggle = 0.4, .factor = 10, .spread = 0.3);

    (void)state;
    for (w.seed = 0; w.seed < 10; w.seed++) {
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind k = {.spec = "uncoded",
                      .workers = 5,
                      .m = 500,
                      .n = 10,
                      .p = 1,
                      .faults = &w,
                      .opt = &o};
        kofn_time took[6];

        o.pieces = 1;
        simulate(&k, 6, took);
        for (unsigned round = 0; round < 6; round++) {
            double most = 0;

            for (uint32_t i = 0; i < 5; i++) {
                kf_rng speed = kf_rng_stream(w.seed, KF_FOR_SPEED, i, 0);
                kf_rng lot =
                    kf_rng_stream(w.seed, KF_FOR_STRAGGLE, i, round + 1);
                double t = 1000 / (0.7 + 0.6 * kf_rng_uniform(&speed));

                most = fmax(most, kf_rng_uniform(&lot) < 0.4 ? 10 * t : t);
            }
            assert_at_most(fabs((double)took[round] - most), 1.001);
        }
    }
}

/* latency + input / bandwidth + work + latency + result / bandwidth */
static void messages(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.latency = 2e-6, .bandwidth = 1e9);
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "uncoded",
                  .workers = 4,
                  .m = 80,
                  .n = 50,
                  .p = 1,
                  .faults = &w,
                  .opt = &o};

    (void)state;
    o.pieces = 1;
    assert_int_equal(simulate_one(&k), 2000 + 50 * 8 + 20 * 50 + 2000 + 20 * 8);
    w.bandwidth = 0;
    assert_int_equal(simulate_one(&k), 2000 + 20 * 50 + 2000);
    w = (kofn_faults)KOFN_FAULTS_INIT(.bandwidth = 1e9);
    assert_int_equal(simulate_one(&k), 50 * 8 + 20 * 50 + 20 * 8);
    k.dtype = KOFN_F32;
    assert_int_equal(simulate_one(&k), 50 * 4 + 20 * 50 + 20 * 4);
}

/* Cancelled work that is on its way is not done. At the time of the first
 * result, 4000 + 500 + 800, two of four workers leave one after the other. The
 * deal to three is cancelled before it has arrived. The two that are left then
 * compute 40 rows of 50 each and send 320 bytes. */
static void cancelled(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0.01, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {1, 0.01, KOFN_FAULT_EVENT_LEAVE, 1, 0}};
    kofn_faults w = KOFN_FAULTS_INIT(.bandwidth = 1e8);
    kofn_options o = with_events(events, 2);
    rig_kind k = {.spec = "elastic:k=2,basis=gauss",
                  .workers = 4,
                  .m = 80,
                  .n = 50,
                  .p = 1,
                  .faults = &w,
                  .opt = &o};

    (void)state;
    o.pieces = 1;
    o.in_flight = KOFN_IN_FLIGHT_ABORT;
    assert_int_equal(simulate_one(&k), 5300 + 4000 + 2000 + 3200);
}

/* Tasks without duration do not stop the clock. */
static void no_work(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.work = 1e-9);
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "elastic:k=2",
                  .workers = 4,
                  .m = 64,
                  .n = 3,
                  .p = 1,
                  .faults = &w,
                  .opt = &o};

    (void)state;
    o.late = 2;
    assert_int_equal(simulate_one(&k), 0);
}

/* The measured clock has no closed form. It moves forward. */
static void measured_clock(void **state)
{
    kofn_faults w =
        KOFN_FAULTS_INIT(.clock = KOFN_CLOCK_MEASURED, .spread = 0.2);
    rig_kind k = {.spec = "elastic:k=3",
                  .workers = 5,
                  .m = 600,
                  .n = 200,
                  .p = 2,
                  .faults = &w,
                  .sim = true};
    rig r;

    (void)state;
    rig_up(&r, &k);
    for (int round = 0; round < 5; round++) {
        kofn_report rep = KOFN_REPORT_INIT;

        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        assert_true(rep.took > 0 && rep.took >= rep.decoding);
        assert_true(rep.decoding > 0);
    }
    rig_down(&r);
}

/* ---- the same seed, the same run ----------------------------------------- */

static char *journal_of(uint64_t seed, kofn_time *took)
{
    static const kofn_fault_event events[] = {
        {2, 0.4, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {4, 0.5, KOFN_FAULT_EVENT_SLOW, 3, 4}};
    kofn_faults w = KOFN_FAULTS_INIT(.spread = 0.4, .straggle = 0.3,
                                     .leave = 3e3, .join = 2e4, .latency = 1e-6,
                                     .bandwidth = 1e9, .seed = seed);
    kofn_options o = with_events(events, 3);
    rig_kind k = {.spec = "elastic:k=3,deal=speed",
                  .workers = 7,
                  .m = 100,
                  .n = 30,
                  .p = 1,
                  .sim = true,
                  .faults = &w,
                  .opt = &o};
    char path[] = "simulator_test.XXXXXX", *text = numbers(1 << 18, 1);
    int fd = mkstemp(path);
    kofn_report rep = KOFN_REPORT_INIT;
    FILE *f;
    rig r;

    assert_true(fd >= 0);
    close(fd);
    o.journal = path;
    o.late = 2;
    rig_up(&r, &k);
    for (int round = 0; round < 8; round++) {
        kofn_status st = rig_round(&r, &rep);

        assert_true(st == KOFN_OK || st == KOFN_TOOFEW);
        *took += rep.took;
    }
    rig_down(&r);
    f = fopen(path, "rb");
    assert_non_null(f);
    assert_true(fread(text, 1, (1 << 18) - 1, f) > 1000);
    fclose(f);
    unlink(path);
    return text;
}

static void repeated_run(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        kofn_time took[3] = {0};
        char *a = journal_of(seed, &took[0]), *b = journal_of(seed, &took[1]);
        char *c = journal_of(seed + 1, &took[2]);

        assert_string_equal(a, b);
        assert_int_equal(took[0], took[1]);
        assert_string_not_equal(a, c);
        assert_true(took[0] != took[2]);
        kf_free(a);
        kf_free(b);
        kf_free(c);
    }
}

TEST_FILE(simulator_test)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_workers, "sim: a round takes the time of a share's work"),
        TEST(sparse_workers, "sim: sparse work is counted in entries"),
        TEST(one_straggler, "sim: a straggler delays uncoded rounds only"),
        TEST(fault_model,
             "sim: stragglers follow the fault model, once a round"),
        TEST(named_streams,
             "sim: stragglers and speeds are those of the named streams"),
        TEST(messages, "sim: messages take latency and bandwidth"),
        TEST(cancelled, "sim: work that is cancelled on its way is not done"),
        TEST(no_work, "sim: work without duration takes no time"),
        TEST(measured_clock, "sim: the measured clock moves forward"),
        TEST(repeated_run, "sim: a seed repeats a run to the byte"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("simulator", tests, NULL, NULL);
}
