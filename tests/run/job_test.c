/* job_test.c -- whole rounds over both ports, against plain BLAS. Also the
 * reports of a job, and its refusals. */
#include "rig.h"

#include <stddef.h>
#include <unistd.h>

static const char *const specs[] = {
    "uncoded",
    "replication:k=3",
    "mds:k=5",
    "elastic:k=3",
    "elastic:k=8",
    "mds:k=5,basis=harmonic",
    "elastic:k=4,groups=2",
    "mds:k=6,basis=gauss",
    "mds:k=6,weight=4",
};
#define SPECS (sizeof specs / sizeof *specs)

static void every_scheme(void **state)
{
    (void)state;
    for (size_t s = 0; s < SPECS; s++)
        for (int i = 0; i < 16; i++) {
            rig_kind k = {.spec = specs[s],
                          .workers = 8,
                          .m = 101,
                          .n = 37,
                          .p = i & 2 ? 3 : 1,
                          .sim = i & 1,
                          .sparse = (i & 12) == 4,
                          .dtype = (i & 12) == 8 ? KOFN_F32 : KOFN_F64};
            rig r;

            rig_up(&r, &k);
            for (uint64_t round = 0; round < 3; round++) {
                kofn_report rep = KOFN_REPORT_INIT;

                rig_next(&r, round);
                assert_ok(rig_round(&r, &rep));
                assert_at_most(rig_error(&r), k.dtype ? 1e-5 : 1e-12);
                assert_at_most(rep.predicted, k.dtype ? 1e-4 : 1e-9);
                assert_true(rep.noise >= 1 && rep.predicted > 0);
            }
            rig_down(&r);
        }
}

/* The sizes leave blocks ragged, empty or of one row. */
static void every_size(void **state)
{
    static const size_t rows[] = {1, 2, 3, 5, 8, 13, 32, 33, 95, 97};

    (void)state;
    for (size_t s = 0; s < SPECS; s++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t n = 1; n < 9; n += 7) {
                rig_kind k = {.spec = specs[s],
                              .workers = 8,
                              .m = rows[i],
                              .n = n,
                              .p = 1 + i % 2,
                              .sim = true,
                              .sparse = i % 3 == 2};
                rig r;

                rig_up(&r, &k);
                assert_ok(rig_round(&r, NULL));
                assert_at_most(rig_error(&r), 1e-11);
                rig_down(&r);
            }
}

/* Rows of A, of the input and of the output are apart in memory. The gaps
 * between them stay unchanged. */
static void strided_views(void **state)
{
    (void)state;
    for (size_t s = 0; s < SPECS; s++) {
        rig_kind k = {.spec = specs[s],
                      .workers = 8,
                      .m = 60,
                      .n = 20,
                      .p = 2,
                      .sim = true};
        kofn_matrix wide[3];
        kofn_matrix *narrow[3];
        kofn_port *port;
        rig r;

        rig_inputs(&r, &k);
        narrow[0] = &r.A;
        narrow[1] = &r.x;
        narrow[2] = &r.y;
        for (int i = 0; i < 3; i++) {
            size_t ld = narrow[i]->cols + 3;

            wide[i] = *narrow[i];
            wide[i].ld = ld;
            wide[i].data = numbers(narrow[i]->rows * ld, 8);
            for (size_t e = 0; e < narrow[i]->rows * ld; e++)
                ((double *)wide[i].data)[e] =
                    e % ld < narrow[i]->cols
                        ? ((double *)narrow[i]
                               ->data)[e / ld * narrow[i]->cols + e % ld]
                        : -77;
        }
        assert_ok(kofn_port_sim(&port, 8, NULL));
        assert_ok(kofn_open(&r.job, r.plan, port, NULL));
        assert_ok(kofn_place(r.job, &wide[0]));
        assert_ok(kofn_round(r.job, &wide[1], &wide[2], NULL));
        for (size_t e = 0; e < 60 * 5; e++) {
            double y = ((double *)wide[2].data)[e];

            if (e % 5 < 2)
                assert_at_most(fabs(y - r.want[e / 5 * 2 + e % 5]), 1e-11);
            else
                assert_true(y == -77);
        }
        rig_down(&r);
        for (int i = 0; i < 3; i++)
            kf_free(wide[i].data);
    }
}

/* ---- reports ------------------------------------------------------------- */

static void reports(void **state)
{
    static const kofn_fault_event events[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {2, 0.5, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {3, 0.5, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {5, 0, KOFN_FAULT_EVENT_NORMAL, 0, 0}};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "elastic:k=2",
                  .workers = 4,
                  .m = 96,
                  .n = 10,
                  .p = 1,
                  .opt = &o};
    const kofn_worker_state L = KOFN_WORKER_LIVE, G = KOFN_WORKER_GONE;
    const kofn_worker_state states[][4] = {
        {L, L, L, L}, {L, G, L, L}, {G, G, L, L}, {G, G, L, L}};
    static const unsigned live[] = {4, 3, 3, 3};

    (void)state;
    o.events = events;
    o.event_count = 4;
    o.late = -1; /* else other workers would be asked too on a busy machine */
    for (int sim = 0; sim < 2; sim++) {
        kofn_report rep = KOFN_REPORT_INIT, total = rep;
        kofn_time took = 0;
        rig r;

        k.sim = sim;
        rig_up(&r, &k);
        for (unsigned round = 0; round < 4; round++) {
            size_t rows = 0;

            assert_ok(rig_round(&r, &rep));
            assert_at_most(rig_error(&r), 1e-12);
            assert_int_equal(rep.rounds, 1);
            assert_int_equal(rep.left, round == 1 || round == 2);
            assert_int_equal(rep.joined, round == 1);
            assert_int_equal(rep.dropped, 0);
            assert_int_equal(rep.workers, round < 1 ? 4 : 5);
            assert_memory_equal(rep.states, states[round],
                                sizeof states[round]);
            if (round >= 2) {
                assert_int_equal(rep.states[4], KOFN_WORKER_LIVE);
                assert_int_equal(rep.live, live[round]);
            }
            for (size_t i = 0; i < rep.workers; i++)
                rows += rep.rows[i];
            /* two blocks of 48 rows; in round 3 also the lost rows that had
             * not come */
            assert_true(round == 2 ? rows >= 96 : rows == 96);
            if (round == 1)
                assert_int_equal(rep.rows[4],
                                 0); /* not before the next round */
            took += rep.took;
        }
        kofn_job_totals(r.job, &total);
        assert_int_equal(total.rounds, 4);
        assert_int_equal(total.took, took);
        assert_int_equal(total.left, 2);
        assert_int_equal(total.joined, 1);
        rig_down(&r);
    }
}

/* Wants that are lost are NaN from end to end. All others are exact. */
static void degraded_answers(void **state)
{
    static const kofn_fault_event events[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 4, 0},
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 3, 0}};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "elastic:k=4,basis=gauss_sys",
                  .workers = 6,
                  .m = 90,
                  .n = 10,
                  .p = 2,
                  .opt = &o};

    (void)state;
    o.events = events;
    o.event_count = 3;
    o.below = KOFN_BELOW_DEGRADE;
    for (int i = 0; i < 6; i++) {
        rig r;

        k.sim = i % 2;
        o.in_flight = (kofn_in_flight)(i / 2);
        rig_up(&r, &k);
        assert_ok(rig_round(&r, NULL));
        assert_int_equal(rig_round(&r, NULL), KOFN_PARTIAL);
        /* blocks of 23 rows; seats 0 and 2 are left of the first four */
        for (size_t e = 0; e < 180; e++) {
            double y = ((double *)r.y.data)[e];
            size_t block = e / 2 / 23;

            if (block == 1 || block == 3)
                assert_true(isnan(y));
            else
                assert_at_most(fabs(y - r.want[e]), 1e-12);
        }
        rig_down(&r);
    }
}

/* The round pauses for joiners. The port's clock measures the patience. */
static void pausing(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0.2, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {1, 0.2, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {1, 0.2, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {2, 0.2, KOFN_FAULT_EVENT_LEAVE, 2, 0}};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "elastic:k=3",
                  .workers = 4,
                  .m = 96,
                  .n = 10,
                  .p = 1,
                  .opt = &o};

    (void)state;
    o.events = events;
    o.event_count = 4;
    o.below = KOFN_BELOW_PAUSE;
    o.patience = KOFN_SECOND; /* longer than a joiner takes */
    for (int sim = 0; sim < 2; sim++) {
        kofn_report rep = KOFN_REPORT_INIT;
        rig r;

        k.sim = sim;
        rig_up(&r, &k);
        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        assert_status(KOFN_LATE, rig_round(&r, &rep));
        assert_true(rep.took >= o.patience);
        /* the job is as good as before, only workers are missing */
        assert_status(KOFN_LATE, rig_round(&r, &rep));
        rig_down(&r);
    }
}

/* If answers are whole, a round waits for a worker in the seat of a leaver: gc
 * needs 4 of 6, cgc 5. Worker 0 leaves after its answer, which counts if
 * results are kept. The others have not answered. */
static void pausing_whole(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0.2, KOFN_FAULT_EVENT_LEAVE, 3, 0},
        {1, 0.2, KOFN_FAULT_EVENT_LEAVE, 2, 0},
        {1, 0.2, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {1, 0.2, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {1, 0.2, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    static const char *const whole[] = {"gc:d=3", "cgc:d=3"};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.workers = 6,
                  .m = 60,
                  .n = 10,
                  .p = 1,
                  .op = KOFN_SUM,
                  .sim = true,
                  .opt = &o};

    (void)state;
    o.below = KOFN_BELOW_PAUSE;
    o.patience = KOFN_SECOND;
    for (int mode = 0; mode < 6; mode++) {
        rig r;

        size_t stay = (size_t)mode % 2;

        k.spec = whole[mode % 2];
        o.in_flight = (kofn_in_flight)(mode / 2);
        stay += o.in_flight != KOFN_IN_FLIGHT_LEDGER;
        o.events = events + stay;
        o.event_count = 5 - stay;
        rig_up(&r, &k);
        assert_ok(rig_round(&r, NULL));
        assert_at_most(rig_error(&r), 1e-12);
        rig_down(&r);
    }
}

static void tolerance(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "mds:k=3,basis=gauss",
                  .workers = 5,
                  .m = 30,
                  .n = 10,
                  .p = 1,
                  .opt = &o,
                  .sim = true};
    rig r;

    (void)state;
    o.max_error = 1e-17;
    rig_up(&r, &k);
    assert_status(KOFN_UNSTABLE, rig_round(&r, NULL));
    assert_non_null(strstr(kofn_errmsg(), "1.0e-17"));
    rig_down(&r);
}

/* ---- refusals ------------------------------------------------------------ */

static void wrong_matrices(void **state)
{
    rig_kind k = {
        .spec = "mds:k=2", .workers = 3, .m = 12, .n = 5, .p = 1, .sim = true};
    kofn_sparse sparse;
    kofn_matrix bad;
    kofn_port *port;
    rig r;

    (void)state;
    rig_inputs(&r, &k);
    sparse = random_sparse(12, 5, 2, 1);
    assert_ok(kofn_port_sim(&port, 3, NULL));
    assert_ok(kofn_open(&r.job, r.plan, port, NULL));
    assert_status(KOFN_STATE, kofn_round(r.job, &r.x, &r.y, NULL));
    assert_status(KOFN_SHAPE, kofn_place_at(r.job, 0, KOFN_SPARSE(&sparse)));
    assert_status(KOFN_INVAL, kofn_place(r.job, NULL));
    bad = r.A;
    bad.rows = 11;
    assert_status(KOFN_SHAPE, kofn_place(r.job, &bad));
    bad = r.A;
    bad.dtype = KOFN_F32;
    assert_status(KOFN_SHAPE, kofn_place(r.job, &bad));
    ((double *)r.A.data)[7] = INFINITY;
    assert_status(KOFN_NONFINITE, kofn_place(r.job, &r.A));
    ((double *)r.A.data)[7] = 0.5;
    assert_ok(kofn_place(r.job, &r.A));
    assert_status(KOFN_STATE, kofn_place(r.job, &r.A));
    kf_free(r.want);
    r.want = plain_product(&r.A, &r.x);

    bad = r.x;
    bad.rows = 4;
    assert_status(KOFN_SHAPE, kofn_round(r.job, &bad, &r.y, NULL));
    bad = r.y;
    bad.cols = 2;
    bad.ld = 2;
    assert_status(KOFN_SHAPE, kofn_round(r.job, &r.x, &bad, NULL));
    bad = r.y;
    bad.ld = 0;
    assert_status(KOFN_SHAPE, kofn_round(r.job, &r.x, &bad, NULL));
    bad = r.y;
    bad.dtype = KOFN_F32;
    assert_status(KOFN_SHAPE, kofn_round(r.job, &r.x, &bad, NULL));
    assert_status(KOFN_INVAL, kofn_round(r.job, &r.x, NULL, NULL));
    ((double *)r.x.data)[2] = NAN;
    assert_status(KOFN_NONFINITE, kofn_round(r.job, &r.x, &r.y, NULL));
    ((double *)r.x.data)[2] = 1;
    kf_free(r.want);
    r.want = plain_product(&r.A, &r.x);
    /* none of these calls harmed the job */
    assert_ok(rig_round(&r, NULL));
    assert_at_most(rig_error(&r), 1e-12);
    sparse_free(&sparse);
    rig_down(&r);
}

/* The job is broken if its port cannot do anything more. */
static void broken_jobs(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0.1, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {1, 0.1, KOFN_FAULT_EVENT_LEAVE, 1, 0}};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "elastic:k=2",
                  .workers = 3,
                  .m = 24,
                  .n = 5,
                  .p = 1,
                  .sim = true,
                  .opt = &o};
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    (void)state;
    o.events = events;
    o.event_count = 2;
    o.below = KOFN_BELOW_PAUSE; /* for ever, and no worker can come */
    rig_up(&r, &k);
    assert_status(KOFN_LATE, rig_round(&r, &rep));
    assert_non_null(strstr(kofn_errmsg(), "can come"));
    assert_status(KOFN_STATE, rig_round(&r, &rep));
    assert_non_null(strstr(kofn_errmsg(), "patience"));
    rig_down(&r);
}

/* A program that was compiled with fewer options gives shorter ones. */
static void shorter_options(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "elastic:k=2",
                  .workers = 3,
                  .m = 24,
                  .n = 5,
                  .p = 1,
                  .sim = true,
                  .opt = &o};
    rig r;

    (void)state;
    o.size = offsetof(kofn_options, late);
    o.late = -3; /* not read */
    o.journal = "/nowhere/at/all";
    rig_up(&r, &k);
    assert_ok(rig_round(&r, NULL));
    assert_at_most(rig_error(&r), 1e-12);
    rig_down(&r);
}

static void two_jobs(void **state)
{
    rig_kind k[] = {
        {.spec = "elastic:k=2", .workers = 3, .m = 100, .n = 50, .p = 1},
        {.spec = "mds:k=3", .workers = 4, .m = 70, .n = 20, .p = 2}};
    rig r[2];

    (void)state;
    rig_up(&r[0], &k[0]);
    rig_up(&r[1], &k[1]);
    for (uint64_t round = 0; round < 6; round++)
        for (int i = 0; i < 2; i++) {
            rig_next(&r[i], round);
            assert_ok(rig_round(&r[i], NULL));
            assert_at_most(rig_error(&r[i]), 1e-12);
        }
    rig_down(&r[0]);
    assert_ok(rig_round(&r[1], NULL));
    assert_at_most(rig_error(&r[1]), 1e-12);
    rig_down(&r[1]);
}

TEST_FILE(job_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_scheme,
             "job: rounds are right (each scheme, type; threads, simulator)"),
        TEST(every_size,
             "job: rounds are right for ragged, empty and one-row blocks"),
        TEST(strided_views,
             "job: strided matrices work, and their gaps stay unchanged"),
        TEST(reports, "job: reports count workers, rows, joins and losses"),
        TEST(degraded_answers,
             "job: only lost rows of a degraded answer are NaN"),
        TEST(pausing, "job: a round pauses for joiners, up to the patience"),
        TEST(pausing_whole,
             "job: a round with whole answers pauses for joiners (gc, cgc)"),
        TEST(tolerance, "job: a round above the tolerance is refused"),
        TEST(wrong_matrices,
             "job: matrices of wrong shape, type or content are refused"),
        TEST(broken_jobs,
             "job: a job without a possible worker is broken and says so"),
        TEST(shorter_options,
             "job: shorter options of an older program have defaults"),
        TEST(two_jobs, "job: two jobs in one process are independent"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
