/* liars_test.c -- whole jobs with workers that return wrong numbers. They are
 * named and left out, or the round fails. A wrong answer is never delivered. */
#include "rig.h"

#include <stdio.h>

typedef struct kind {
    const char *spec;
    size_t workers, spare; /* spare = n - k - 2: this number of faulty workers
                              is always found */
    kofn_op op;
} kind;

static const kind kinds[] = {
    {"mds:k=4", 9, 3, KOFN_MATVEC},
    {"mds:k=3,basis=harmonic", 7, 2, KOFN_MATMUL},
    {"elastic:k=4", 9, 3, KOFN_MATMUL},
    {"elastic:k=5,basis=gauss_sys", 10, 3, KOFN_MATVEC},
    {"replication:k=2", 8, 1, KOFN_MATVEC},
    {"polynomial:m=2,p=2", 9, 3, KOFN_MATMUL},
    {"matdot:n=2,angles=5", 12, 1, KOFN_MATMUL},
    {"polynomial:m=2,p=2,basis=circle", 9, 3, KOFN_MATMUL},
    {"matdot:n=3", 9, 2, KOFN_MATMUL},
    {"polydot:m=2,n=1,p=2", 8, 2, KOFN_MATMUL},
    {"gpd:m=2,n=2,p=1", 9, 2, KOFN_MATMUL},
    {"gpd:m=2,n=2,p=1,sub=vum", 10, 3, KOFN_LEFT},
};

static void open_rig(rig *r, const kind *k, kofn_dtype dtype, bool sim,
                     const kofn_options *opt)
{
    rig_kind what = {.workers = k->workers,
                     .m = 203,
                     .n = 61,
                     .p = k->op == KOFN_MATVEC ? 1 : 17,
                     .sim = sim,
                     .op = k->op,
                     .dtype = dtype,
                     .spec = k->spec,
                     .opt = opt};

    rig_up(r, &what);
}

static size_t named(const kofn_report *rep, const bool *liar)
{
    size_t n = 0;

    for (size_t i = 0; i < rep->workers; i++) {
        n += rep->located[i] > 0;
        if (rep->located[i] && !liar[i])
            fail_msg("worker %zu was named and is honest", i);
    }
    return n;
}

static size_t choose(bool *liar, size_t n, size_t t, kofn_fault_event *h,
                     kf_rng *r)
{
    for (size_t i = 0; i < n; i++)
        liar[i] = false;
    for (size_t left = t; left > 0;) {
        size_t i = kf_rng_below(r, n);

        left -= !liar[i];
        liar[i] = true;
    }
    for (size_t i = 0, j = 0; i < n; i++)
        if (liar[i])
            h[j++] = (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_CORRUPT,
                                        (uint32_t)i, 0};
    return t;
}

/* Returns how many faulty workers of any kind are located: half of the spare
 * results. */
static size_t half(const kind *k)
{
    return (k->spare + 2) / 2;
}

/* Checks that results are right with up to `limit` faulty workers. pieces:
 * number of parts that are compared for each answer, with 1 the whole answer.
 */
static void survived(const kind *k, kofn_errors mode, size_t limit,
                     unsigned pieces, bool sim)
{
    for (uint32_t trial = 0; trial < often(6); trial++) {
        kf_rng r = kf_rng_stream(21, KF_FOR_SAMPLE, trial, (uint32_t)limit);
        kofn_options o = KOFN_OPTIONS_INIT;
        kofn_fault_event h[16];
        bool liar[16];
        rig x;

        o.errors = mode;
        o.pieces = pieces;
        o.events = h;
        o.event_count = choose(liar, k->workers, trial % (limit + 1), h, &r);
        open_rig(&x, k, KOFN_F64, sim, &o);
        for (uint64_t round = 0; round < 3; round++) {
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st;

            rig_next(&x, 100 * trial + round);
            st = rig_round(&x, &rep);
            if (st != KOFN_OK)
                fail_msg("%s, %zu faulty workers: %s (%s)", k->spec,
                         o.event_count, kofn_strerror(st), kofn_errmsg());
            /* a flipped bit below the floor looks like rounding */
            assert_at_most(rig_error(&x), rep.predicted);
            if (!(rep.floor > 0 && rep.floor < 1e-6))
                fail_msg("%s: floor %g", k->spec, rep.floor);
            named(&rep, liar);
        }
        rig_down(&x);
    }
}

/* Locating `spare` faulty workers needs that number of columns (math/errors.md
 * 2.3). The columns of a vector are its strips. All of them count if all
 * workers answer in one piece. In parts, or with dealt work, there may be one
 * strip to be compared. One column locates half of the spare results. */
static void probabilistic(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int sim = 0; sim < PORTS; sim++) {
            const kind *k = &kinds[i];
            bool vector = k->op == KOFN_MATVEC;

            survived(k, KOFN_ERRORS_PROBABILISTIC, vector ? half(k) : k->spare,
                     0, sim);
            if (vector && strncmp(k->spec, "elastic", 7) != 0)
                survived(k, KOFN_ERRORS_PROBABILISTIC, k->spare, 1, sim);
        }
}

static void adversarial(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        survived(&kinds[i], KOFN_ERRORS_ADVERSARIAL, half(&kinds[i]), 0, true);
}

/* With more faulty workers than can be located, a round fails or succeeds by
 * luck. */
static void beyond_the_limit(void **state)
{
    size_t failures = 0;

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t trial = 0; trial < 4; trial++) {
            const kind *k = &kinds[i];
            kf_rng r = kf_rng_stream(22, KF_FOR_SAMPLE, trial, (uint32_t)i);
            kofn_options o = KOFN_OPTIONS_INIT;
            size_t t = k->spare + 2 + trial % 2;
            kofn_fault_event h[16];
            bool liar[16];
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st;
            rig x;

            o.errors = KOFN_ERRORS_PROBABILISTIC;
            o.events = h;
            o.event_count =
                choose(liar, k->workers, kf_min(t, k->workers), h, &r);
            open_rig(&x, k, KOFN_F64, true, &o);
            st = rig_round(&x, &rep);
            if (st == KOFN_OK)
                assert_at_most(rig_error(&x), 1e-11);
            else
                assert_int_equal(st, KOFN_CORRUPT);
            failures += st == KOFN_CORRUPT;
            rig_down(&x);
        }
    assert_true(failures > 20);
}

static void detection(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        kofn_options o = KOFN_OPTIONS_INIT;
        kofn_faults w = KOFN_FAULTS_INIT(.corrupt = 1, .seed = 5);
        rig_kind what = {.workers = kinds[i].workers,
                         .m = 100,
                         .n = 61,
                         .p = 7,
                         .spec = kinds[i].spec,
                         .sim = true,
                         .op = kinds[i].op,
                         .faults = &w,
                         .opt = &o};
        rig x;

        what.p = kinds[i].op == KOFN_MATVEC ? 1 : 7;
        o.errors = KOFN_ERRORS_DETECT;
        rig_up(&x, &what);
        assert_status(KOFN_CORRUPT, rig_round(&x, NULL));
        rig_down(&x);
    }
}

/* Also in single precision, and with rows and columns of all sizes. */
static void honest(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int type = 0; type < 2; type++) {
            kofn_options o = KOFN_OPTIONS_INIT;
            rig x;

            o.errors = KOFN_ERRORS_PROBABILISTIC;
            open_rig(&x, &kinds[i], (kofn_dtype)type, true, &o);
            for (uint64_t round = 0; round < often(20); round++) {
                kofn_report rep = KOFN_REPORT_INIT;

                rig_next(&x, 500 + round);
                assert_ok(rig_round(&x, &rep));
                assert_int_equal(rep.corrupt, 0);
                assert_at_most(rig_error(&x), type ? 1e-4 : 1e-11);
            }
            rig_down(&x);
        }
}

static void quarantine(void **state)
{
    kofn_fault_event h = {1, 0, KOFN_FAULT_EVENT_CORRUPT, 3, 0};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig x;

    (void)state;
    o.errors = KOFN_ERRORS_PROBABILISTIC;
    o.quarantine = 2;
    o.events = &h;
    o.event_count = 1;
    open_rig(&x, &kinds[2], KOFN_F64, true, &o);
    for (int round = 1, last = 0; last == 0 || round <= last + 2; round++) {
        kofn_report rep = KOFN_REPORT_INIT;

        assert_true(round < 60);
        assert_ok(rig_round(&x, &rep));
        assert_at_most(rig_error(&x), 1e-11);
        if (last == 0 && rep.states[3] == KOFN_WORKER_QUARANTINED)
            last = round - 1;
        assert_int_equal(rep.states[3],
                         last ? KOFN_WORKER_QUARANTINED : KOFN_WORKER_LIVE);
        assert_int_equal(rep.located[3], last ? last : round);
        assert_true(last == 0 || rep.rows[3] == 0);
    }
    rig_down(&x);
}

/* In float32 an error of 1e-2 of the norms may be hidden. Results that show
 * more than rounding are not accepted for the present if another may come. So
 * a block with a flipped bit raises the floor by a factor of SUSPICIOUS at
 * most, compared with a round in which all are right. */
static void float32_floor(void **state)
{
    size_t located = 0;

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t trial = 0; trial < often(40); trial++) {
            kofn_fault_event h = {2, 0, KOFN_FAULT_EVENT_FLIP,
                                  trial % (uint32_t)kinds[i].workers, 0};
            kofn_options o = KOFN_OPTIONS_INIT;
            kofn_report clean = KOFN_REPORT_INIT, rep = KOFN_REPORT_INIT;
            rig x;

            o.errors = KOFN_ERRORS_PROBABILISTIC;
            o.events = &h;
            o.event_count = 1;
            open_rig(&x, &kinds[i], KOFN_F32, true, &o);
            assert_ok(rig_round(&x, &clean));
            rig_next(&x, trial);
            assert_ok(rig_round(&x, &rep));
            assert_at_most(rep.floor, 4.001 * clean.floor);
            assert_at_most(rig_error(&x), rep.predicted);
            located += rep.corrupt;
            rig_down(&x);
        }
    assert_true(located > 0);
}

TEST_FILE(liars_test)
{
    const struct CMUnitTest tests[] = {
        TEST(probabilistic,
             "errors: workers up to the probabilistic limit may be faulty"),
        TEST(adversarial,
             "errors: workers up to the adversarial limit may be faulty"),
        TEST(beyond_the_limit,
             "errors: beyond the limit rounds are right or fail"),
        TEST(detection, "errors: detection fails a round with wrong results"),
        TEST(honest, "errors: honest workers raise no alarm"),
        TEST(quarantine,
             "errors: a faulty worker is quarantined after some rounds"),
        TEST(float32_floor,
             "errors: a flipped bit raises the float32 floor 4 times at most"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
