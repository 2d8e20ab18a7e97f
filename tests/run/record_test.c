/* record_test.c -- workers that are slow by a pattern, and records of rounds,
 * which are patterns again. */
#include "pattern_rig.h"

#include <kofn/io.h>

#include <unistd.h>

/* ---- workers by a pattern ------------------------------------------------ */

/* The pattern has three rounds and repeats, and there are seven products. Each
 * of four workers has 600 multiply-adds, a nanosecond each. */
static void simulated(void **state)
{
    double x[] = {1, 1, 7, 1, 0, 1, 1, 1, 2, 2, 2.5, 2};
    float y[12];
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_matrix a = {x, 3, 4, 4, KOFN_F64}, single = {y, 3, 4, 4, KOFN_F32};
    const double longest[] = {7, 1, 2.5};
    kofn_faults w = KOFN_FAULTS_INIT(.pattern = &a);
    rig_kind k = {.spec = "uncoded",
                  .workers = 4,
                  .m = 240,
                  .n = 10,
                  .p = 1,
                  .sim = true,
                  .faults = &w,
                  .opt = &o};

    (void)state;
    o.pieces = 1;
    for (int i = 0; i < 12; i++)
        y[i] = (float)x[i];
    for (int i = 0; i < 2; i++) {
        kofn_report rep = KOFN_REPORT_INIT;
        rig r;

        w.pattern = i ? &single : &a;
        rig_up(&r, &k);
        for (size_t t = 0; t < 7; t++) {
            assert_ok(rig_round(&r, &rep));
            assert_int_equal(rep.took, (kofn_time)(600 * longest[t % 3]));
        }
        rig_down(&r);
    }
}

/* A worker that never answers is not needed, on both ports. */
static void never_answering(void **state)
{
    double x[] = {1, HUGE_VAL, 1, 1};
    kofn_matrix a = {x, 1, 4, 4, KOFN_F64};
    kofn_faults w = KOFN_FAULTS_INIT(.pattern = &a);
    kofn_options o = KOFN_OPTIONS_INIT;

    (void)state;
    count_allocations();
    o.late = -1;
    for (int sim = 0; sim < 2; sim++) {
        rig_kind k = {.spec = "mds:k=3",
                      .workers = 5,
                      .m = 240,
                      .n = 10,
                      .p = 1,
                      .sim = sim,
                      .faults = &w,
                      .opt = &o};
        rig r;

        rig_up(&r, &k);
        for (int t = 0; t < 20; t++) {
            assert_ok(rig_round(&r, NULL));
            assert_at_most(rig_error(&r), 1e-12);
        }
        rig_down(&r);
    }
    assert_int_equal(allocated(), 0);
    kofn_set_alloc(NULL, NULL);
}

/* ---- recorded, and replayed ---------------------------------------------- */

static kofn_matrix recorded(const rig_kind *like, size_t rounds,
                            const kofn_matrix *by)
{
    static const char path[] = "record_test_record.npy";
    kofn_faults w = KOFN_FAULTS_INIT(.pattern = by);
    kofn_options o = like->opt ? *like->opt : (kofn_options)KOFN_OPTIONS_INIT;
    rig_kind k = *like;
    kofn_matrix a;
    rig r;

    o.record = path;
    o.late = -1;
    k.opt = &o;
    k.faults = &w;
    rig_up(&r, &k);
    for (size_t t = 0; t < rounds; t++)
        assert_ok(rig_round(&r, NULL));
    assert_ok(kofn_finish(r.job));
    rig_down(&r);
    assert_ok(kofn_pattern_new(&a, path, like->workers, 0, 0, 0));
    assert_int_equal(a.rows, rounds);
    unlink(path);
    return a;
}

/* If all workers are waited for and equal, the record is the pattern, relative
 * to the first of each round. A replay gives the same record to the bit. */
static void record_and_replay(void **state)
{
    kofn_matrix a = pattern("fritchman:a=0.3,b=0.5,M=2", 6, 40, 5), b, c;
    rig_kind k = {.spec = "uncoded",
                  .workers = 6,
                  .m = 240,
                  .n = 10,
                  .p = 1,
                  .sim = true};
    const double *x = a.data, *y;

    (void)state;
    b = recorded(&k, 40, &a);
    assert_int_equal(b.cols, 6);
    y = b.data;
    for (size_t t = 0; t < 40; t++) {
        double least = 5;

        for (size_t w = 0; w < 6; w++)
            least = fmin(least, x[6 * t + w]);
        for (size_t w = 0; w < 6; w++)
            assert_true(y[6 * t + w] == x[6 * t + w] / least);
    }
    c = recorded(&k, 40, &b);
    assert_memory_equal(b.data, c.data, 240 * sizeof(double));
    kofn_free(a.data);
    kofn_free(b.data);
    kofn_free(c.data);
}

/* Workers that the round does not wait for never answer, in the record and in
 * its replay. */
static void slow_left_out(void **state)
{
    static const kofn_fault_event events[] = {
        {9, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {9, 0, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    kofn_matrix a = pattern("arbitrary:N=2,W=1,style=max", 5, 20, 5), b, c;
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "mds:k=3",
                  .workers = 5,
                  .m = 240,
                  .n = 10,
                  .p = 1,
                  .sim = true,
                  .opt = &o};
    const double *x;

    (void)state;
    b = recorded(&k, 20, &a);
    assert_int_equal(b.cols, 5);
    x = b.data;
    for (size_t e = 0; e < 100; e++)
        assert_true(slow(&a, e / 5, e % 5) ? isinf(x[e]) : x[e] == 1);
    c = recorded(&k, 20, &b);
    assert_memory_equal(b.data, c.data, 100 * sizeof(double));
    kofn_free(b.data);
    kofn_free(c.data);
    /* A joiner has a column. A missing worker counts as normal. */
    o.events = events;
    o.event_count = 2;
    k.spec = "elastic:k=3";
    b = recorded(&k, 20, NULL);
    assert_int_equal(b.cols, 6);
    x = b.data;
    for (size_t e = 0; e < 120; e++)
        assert_true(x[e] == 1);
    kofn_free(a.data);
    kofn_free(b.data);
}

static void note_round(void *ud, const kofn_stream_round *r)
{
    uint8_t *marks = ud;

    assert_in_range(r->round, 1, 64);
    assert_int_equal(r->workers, 4);
    memcpy(marks + 4 * (r->round - 1), r->mark, 4);
}

/* Products of a stream last for several rounds. Slow workers are marked, and a
 * replay of the record gives the same marks. */
static kofn_matrix recorded_stream(const kofn_matrix *by, uint8_t *marks)
{
    enum { COUNT = 12 };
    static const char path[] = "record_test_stream.npy";
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 24, 20, 36, KOFN_F64, false);
    kofn_faults w = KOFN_FAULTS_INIT(.pattern = by, .whole = true);
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_matrix X[COUNT], Y[COUNT], out[COUNT], a;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;
    uint32_t number;

    o.record = path;
    assert_ok(kofn_plan_new(&plan, &pb, "dip:m=2,p=3,T=3,lambda=2", 4, 7));
    assert_ok(kofn_port_sim(&port, 4, &w));
    assert_ok(kofn_open(&job, plan, port, &o));
    kofn_on_round(job, note_round, marks);
    for (size_t i = 0; i < COUNT; i++) {
        X[i] = random_matrix(24, 20, KOFN_F64, 3 * i);
        Y[i] = random_matrix(20, 36, KOFN_F64, 3 * i + 1);
        out[i] = random_matrix(24, 36, KOFN_F64, 3 * i + 2);
        assert_ok(kofn_put_pair(job, &X[i], &Y[i], &out[i], &number));
    }
    for (uint32_t i = 1; i <= COUNT; i++)
        assert_ok(kofn_take(job, i, KOFN_NEVER, NULL));
    assert_ok(kofn_finish(job));
    kofn_close(job);
    kofn_plan_free(plan);
    for (size_t i = 0; i < COUNT; i++) {
        kf_free(X[i].data);
        kf_free(Y[i].data);
        kf_free(out[i].data);
    }
    assert_ok(kofn_pattern_new(&a, path, 4, 0, 0, 0));
    unlink(path);
    return a;
}

static void streams(void **state)
{
    kofn_matrix a = pattern("arbitrary:N=5,W=3,style=uniform", 4, 64, 4), b, c;
    uint8_t marks[2][64 * 4] = {{0}};
    size_t never = 0;
    const double *x;

    (void)state;
    b = recorded_stream(&a, marks[0]);
    assert_int_equal(b.cols, 4);
    assert_true(b.rows >= 12 && b.rows <= 15);
    x = b.data;
    for (size_t e = 0; e < 4 * b.rows; e++) {
        assert_int_equal(isinf(x[e]) != 0, marks[0][e]);
        if (isinf(x[e]))
            assert_true(slow(&a, e / 4, e % 4));
        never += isinf(x[e]) != 0;
    }
    assert_true(never > 5);
    c = recorded_stream(&b, marks[1]);
    assert_memory_equal(marks[0], marks[1], sizeof marks[0]);
    assert_true(c.rows == b.rows);
    assert_memory_equal(b.data, c.data, 4 * b.rows * sizeof(double));
    kofn_free(a.data);
    kofn_free(b.data);
    kofn_free(c.data);
}

/* For real workers the record only shows that one was first, and which never
 * answered. */
static void threads(void **state)
{
    double x[] = {1, 1, HUGE_VAL, 1};
    kofn_matrix a = {x, 1, 4, 4, KOFN_F64}, b;
    rig_kind k = {.spec = "mds:k=3", .workers = 4, .m = 240, .n = 10, .p = 1};
    const double *y;

    (void)state;
    b = recorded(&k, 10, &a);
    y = b.data;
    for (size_t t = 0; t < 10; t++) {
        size_t first = 0, never = 0;

        for (size_t w = 0; w < 4; w++) {
            first += y[4 * t + w] == 1;
            never += isinf(y[4 * t + w]) != 0;
            assert_true(y[4 * t + w] >= 1);
        }
        assert_true(first >= 1 && never == 1 && isinf(y[4 * t + 2]));
    }
    kofn_free(b.data);
}

static void wrong_records(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {
        .spec = "uncoded", .workers = 2, .m = 40, .n = 5, .p = 1, .opt = &o};
    kofn_port *port;
    kofn_job *job;
    rig r;

    (void)state;
    o.record = "record_test.txt";
    rig_inputs(&r, &k);
    assert_ok(kofn_port_sim(&port, 2, NULL));
    assert_status(KOFN_INVAL, kofn_open(&job, r.plan, port, &o));
    o.record = "/nowhere/at/all.npy";
    assert_ok(kofn_port_sim(&port, 2, NULL));
    assert_ok(kofn_open(&job, r.plan, port, &o));
    assert_ok(kofn_place(job, &r.A));
    assert_ok(kofn_round(job, &r.x, &r.y, NULL));
    assert_status(KOFN_IO, kofn_finish(job));
    kofn_close(job);
    assert_ok(kofn_port_sim(&port, 2, NULL));
    assert_ok(kofn_open(&job, r.plan, port, &o));
    assert_status(KOFN_STATE, kofn_finish(job)); /* there were no rounds */
    kofn_close(job);
    rig_down(&r);
}

TEST_FILE(record_test)
{
    const struct CMUnitTest tests[] = {
        TEST(simulated,
             "record: rounds last as the pattern says, which repeats"),
        TEST(never_answering,
             "record: a worker that never answers is not needed"),
        TEST(record_and_replay,
             "record: records equal the pattern and their replay"),
        TEST(slow_left_out,
             "record: workers that are not waited for never answer"),
        TEST(streams,
             "record: records of streams mark slow workers, and replay"),
        TEST(threads,
             "record: records of threads have a first and a missing worker"),
        TEST(wrong_records,
             "record: records that cannot be written are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
