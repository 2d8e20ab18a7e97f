/* away_hostile_test.c -- workers that send anything at any time, next to
 * honest ones. Every round ends, and its answer is the plain product or an
 * error. No honest worker is named, and memory stays bounded. */
#include "counting_alloc.h"
#include "fleet.h"
#include "flooder.h"

/* ---- runs ---------------------------------------------------------------- */

enum { HOSTILE = 2, ROUNDS = 60 };

typedef struct tally {
    size_t rounds, right, errors, sent;
} tally;

static bool is_hostile(const hostile *h, uint32_t worker)
{
    for (size_t i = 0; i < HOSTILE; i++)
        for (size_t k = 0; k < h[i].numbers; k++)
            if (h[i].number[k] == worker)
                return true;
    return false;
}

static void run(uint64_t seed, tally *t)
{
    static const rig_kind kind = {
        .spec = "mds:k=3", .workers = 8, .m = 301, .n = 40, .p = 1};
    const double cut = 1e-9;
    kofn_options opt = KOFN_OPTIONS_INIT;
    hostile *h = calloc(HOSTILE, sizeof *h);
    fleet f;
    rig r;

    opt.errors = KOFN_ERRORS_ADVERSARIAL;
    opt.below = KOFN_BELOW_PAUSE;
    opt.patience = 20 * KOFN_SECOND * SLOWED;
    opt.late = 3;
    rig_inputs(&r, &kind);
    fleet_init(&f, NULL);
    assert_ok(
        kofn_open(&r.job, r.plan, fleet_port(&f, kind.workers, NULL), &opt));
    assert_ok(rig_place(&r));
    for (size_t i = 0; i < HOSTILE; i++) {
        h[i].r = kf_rng_stream(seed, KF_FOR_DATA, 31, (uint32_t)i);
        h[i].t = loop_spoke(&f.net);
        assert_int_equal(pthread_create(&h[i].thread, NULL, flooder, &h[i]), 0);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        kofn_report rep = KOFN_REPORT_INIT;
        kofn_status st;

        rig_next(&r, 11 + round);
        rig_spoil(&r);
        assert_ok(kofn_put(r.job, &r.x, &r.y, NULL));
        st = kofn_take(r.job, 0, 100 * KOFN_SECOND * SLOWED, &rep);
        t->rounds++;
        t->right += st == KOFN_OK;
        t->errors += st != KOFN_OK;
        if (st == KOFN_OK && !(rig_error(&r) <= cut))
            fail_msg("seed %d: round %d is off by %g", (int)seed, (int)round,
                     rig_error(&r));
        if (st != KOFN_OK && st != KOFN_CORRUPT && st != KOFN_TOOFEW &&
            st != KOFN_LATE)
            fail_msg("seed %d: %s (%s)", (int)seed, kofn_strerror(st),
                     kofn_errmsg());
    }
    for (size_t i = 0; i < HOSTILE; i++) {
        atomic_store(&h[i].stop, true);
        pthread_join(h[i].thread, NULL);
        t->sent += h[i].sent;
    }
    {
        kofn_report rep = KOFN_REPORT_INIT;

        kofn_job_totals(r.job, &rep);
        for (uint32_t w = 0; w < rep.workers; w++)
            if (rep.located && rep.located[w] && !is_hostile(h, w))
                fail_msg("seed %d: worker %u was named and is honest",
                         (int)seed, w);
    }
    kofn_close(r.job);
    r.job = NULL;
    for (size_t i = 0; i < HOSTILE; i++)
        h[i].t->close(h[i].t, 0);
    fleet_down(&f);
    rig_down(&r);
    free(h);
}

static void hostile_packets(void **state)
{
    const char *one = getenv("KOFN_TEST_SEED");
    uint64_t first = one ? strtoull(one, NULL, 10) : 0;
    size_t n = often(6);
    tally t = {0};

    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        size_t before = atomic_load(&held);

        run(seed, &t);
        if (atomic_load(&held) != before)
            fail_msg("seed %d keeps %zu bytes", (int)seed,
                     atomic_load(&held) - before);
    }
    print_message("EVENTS %zu hostile packets in %zu rounds: %zu right, %zu "
                  "errors; at most %zu KiB held\n",
                  t.sent, t.rounds, t.right, t.errors,
                  atomic_load(&most_held) >> 10);
    assert_true(t.right >= t.rounds * 3 / 4);
    assert_true(atomic_load(&most_held) < (size_t)128 << 20);
}

TEST_FILE(away_hostile_test)
{
    const struct CMUnitTest tests[] = {
        TEST(hostile_packets,
             "away: rounds are right or fail next to hostile workers")};

    rig_begin();
    kofn_set_alloc(counting_alloc, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
