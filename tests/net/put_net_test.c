/* put_net_test.c -- several products in flight on one job. Every worker is a
 * separate process, reached over sockets. */
#include "pool_port.h"

#include "put_rig.h"

static const kofn_faults fair = KOFN_FAULTS_INIT();

static void up(rig *r, const rig_kind *k)
{
    rig_inputs(r, k);
    assert_ok(kofn_open(&r->job, r->plan, pool_port(k, &fair), k->opt));
    assert_ok(rig_place(r));
}

static void every_kind(void **state)
{
    kf_rng rng = kf_rng_stream(1, KF_FOR_DATA, 45, 0);

    (void)state;
    for (uint32_t cancels = 0; cancels <= 4; cancels += 4)
        for (size_t t = 0; t < FEW_TRIALS; t++) {
            kofn_report sum = KOFN_REPORT_INIT;
            rig r;

            up(&r, &trials[t].kind);
            fly(&r, 20, 2 + kf_rng_below(&rng, 7), trials[t].most, cancels,
                &rng, &sum);
            rig_down(&r);
        }
    pool_end(60 * KOFN_SECOND);
}

static void faults_in_flight(void **state)
{
    kf_rng rng = kf_rng_stream(2, KF_FOR_DATA, 46, 0);
    kofn_options o;
    rig_kind k = troubled(&o);

    (void)state;
    for (uint32_t cancels = 0; cancels <= 5; cancels += 5) {
        kofn_report sum = KOFN_REPORT_INIT;
        rig r;

        up(&r, &k);
        fly(&r, 20, 6, 1e-9, cancels, &rng, &sum);
        only_the_faulty(&sum);
        rig_down(&r);
    }
    pool_end(60 * KOFN_SECOND);
}

static void close_open(void **state)
{
    kf_rng rng = kf_rng_stream(3, KF_FOR_DATA, 47, 0);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        uint32_t puts = 1 + (uint32_t)kf_rng_below(&rng, 6);
        flight f = {.open = 0};
        rig r;

        up(&r, &trials[i].kind);
        for (uint32_t n = 1; n <= puts; n++)
            put(&f, &r, n);
        if (i % 2)
            assert_ok(kofn_take(r.job, 1, KOFN_NEVER, NULL));
        rig_down(&r);
        while (f.open > 0)
            rig_put_away(&f.one[--f.open]);
    }
    pool_end(60 * KOFN_SECOND);
}

TEST_FILE(put_net_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_kind,
             "put: products in flight are right (each code, on processes)"),
        TEST(faults_in_flight,
             "put: products in flight are right (kill, join, fault)"),
        TEST(close_open,
             "put: a job closes with products in flight (processes)"),
    };
    int failed;

    pool_open();
    rig_begin();
    if (!pool_folder_new())
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return pool_folder_end() ? failed : 1;
}
