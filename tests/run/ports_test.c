/* ports_test.c -- the two ports of this process: threads, which are
 * interrupted at any time, and the simulator, for what it has in common with
 * them. */
#include "rig.h"

#include "run/run.h"

#include <math.h>
#include <unistd.h>

/* ---- both ---------------------------------------------------------------- */

static kofn_status new_port(kofn_port **out, bool sim, size_t workers,
                            const kofn_faults *w)
{
    return sim ? kofn_port_sim(out, workers, w)
               : kofn_port_threads(out, workers, w);
}

static void ports_close_unused(void **state)
{
    (void)state;
    count_allocations();
    for (int sim = 0; sim < PORTS; sim++) {
        long before = allocated();
        kofn_port *port;

        assert_ok(new_port(&port, sim, 5, NULL));
        assert_string_equal(port->name, sim ? "sim" : "threads");
        kofn_port_close(port);
        kofn_port_close(NULL);
        assert_int_equal(allocated(), before);
    }
    kofn_set_alloc(NULL, NULL);
}

/* BLAS has one thread while a port is open, and only then. */
static void blas_threads(void **state)
{
    (void)state;
    kf_blas_restore(2);
    for (int sim = 0; sim < PORTS; sim++) {
        int before = kf_blas_single();
        kofn_port *port;

        assert_true(before == 0 || before == 2); /* 0: BLAS cannot report it */
        kf_blas_restore(before);
        assert_ok(new_port(&port, sim, 3, NULL));
        assert_true(kf_blas_single() <= 1);
        kofn_port_close(port);
        assert_int_equal(kf_blas_single(), before);
        kf_blas_restore(before);
    }
    kf_blas_single();
}

static void failed_jobs(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 40, 5, 1, KOFN_F64, false);

    (void)state;
    count_allocations();
    for (int sim = 0; sim < PORTS; sim++)
        for (int why = 0; why < 2; why++) {
            kofn_options o = KOFN_OPTIONS_INIT;
            long before = allocated();
            kofn_plan *p;
            kofn_port *port;
            kofn_job *job;

            o.late = why ? 0 : 0.5;
            o.journal = why ? "/nowhere/at/all" : NULL;
            assert_ok(kofn_plan_new(&p, &pb, "mds:k=2", 3, 1));
            assert_ok(new_port(&port, sim, 3, NULL));
            assert_status(why ? KOFN_IO : KOFN_INVAL,
                          kofn_open(&job, p, port, &o));
            assert_null(job);
            kofn_close(NULL);
            kofn_plan_free(p);
            assert_int_equal(allocated(), before);
        }
    kofn_set_alloc(NULL, NULL);
}

/* Computes the answer of row 4 of the code, part by part. */
static void answer_of_row(const rig *r, kf_code *code, double *want)
{
    const kf_seat *rows;
    size_t span = r->plan->span;

    assert_ok(kf_code_seat(code, 4, &rows));
    for (size_t i = 0; i < span; i++) {
        want[i] = 0;
        for (size_t e = 0; e < rows->E0[0].n; e++)
            for (size_t j = 0; j < r->A.cols; j++)
                want[i] +=
                    rows->E0[0].val[e] *
                    *(double *)kf_at(&r->A, rows->E0[0].col[e] * span + i, j) *
                    *(double *)kf_at(&r->x, j, 0);
    }
}

/* The worker has no block before. */
static void block_with_task(void **state)
{
    const size_t seat = 4;
    rig_kind k = {
        .spec = "mds:k=2,basis=gauss", .workers = 3, .m = 40, .n = 5, .p = 1};

    (void)state;
    for (int sim = 0; sim < PORTS; sim++) {
        kf_resident resident = {0};
        kf_msg m, work = {.type = KF_MSG_WORK,
                          .product = 7,
                          .task = 9,
                          .row = 4,
                          .round = 1,
                          .how = KF_HOW_ROWS,
                          .hi = 20};
        double want[20];
        kofn_port *port;
        kf_code *code;
        rig r;

        rig_inputs(&r, &k);
        assert_ok(kf_code_new(&code, r.plan));
        assert_ok(kf_resident_dense(&resident, r.plan, &r.A));
        assert_int_equal(r.plan->span, 20);
        answer_of_row(&r, code, want);
        assert_ok(kf_data_encode(&resident, code, &seat, 1, &work.block));
        assert_ok(kf_buffer_new(&work.in, 5, 1, KOFN_F64));
        memcpy(work.in->m.data, r.x.data, 5 * sizeof(double));
        assert_ok(kf_buffer_new(&work.result, 20, 1, KOFN_F64));
        assert_ok(new_port(&port, sim, 1, NULL));
        assert_ok(port->wait(port, KOFN_NEVER, KOFN_NEVER, &m));
        assert_int_equal(m.type, KF_MSG_HELLO);
        assert_ok(port->send(port, &work));
        assert_ok(port->wait(port, KOFN_NEVER, KOFN_NEVER, &m));
        assert_int_equal(m.type, KF_MSG_RESULT);
        assert_true(m.product == 7 && m.task == 9 && m.row == 4);
        for (size_t i = 0; i < 20; i++)
            assert_true(fabs(((double *)m.result->m.data)[i] - want[i]) <=
                        1e-12);
        kf_buffer_drop(m.in);
        kf_buffer_drop(m.result);
        kofn_free(m.why);
        kf_block_drop(m.block);
        kofn_port_close(port);
        kf_resident_free(&resident);
        kf_code_free(code);
        rig_down(&r);
    }
}

static void no_workers(void **state)
{
    (void)state;
    for (int sim = 0; sim < PORTS; sim++) {
        rig_kind k = {
            .spec = "elastic:k=2", .workers = 3, .m = 40, .n = 5, .p = 1};
        kofn_port *port;
        rig r;

        rig_inputs(&r, &k);
        assert_ok(new_port(&port, sim, 0, NULL));
        assert_ok(kofn_open(&r.job, r.plan, port, NULL));
        assert_ok(kofn_place(r.job, &r.A));
        assert_status(KOFN_TOOFEW, rig_round(&r, NULL));
        rig_down(&r);
    }
}

/* Workers leave before any message of theirs, or just after. */
static void all_leave(void **state)
{
    (void)state;
    for (int sim = 0; sim < PORTS; sim++)
        for (uint64_t seed = 0; seed < 40; seed++) {
            kofn_faults w =
                KOFN_FAULTS_INIT(.leave =
                                     1e3 * (double)(1 + seed * seed * seed),
                                 .seed = seed);
            rig_kind k = {.spec = "elastic:k=2",
                          .workers = 6,
                          .m = 40,
                          .n = 5,
                          .p = 1,
                          .sim = sim,
                          .faults = &w};
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st;
            rig r;

            w.leave = seed == 39 ? 1e9 : w.leave;
            rig_up(&r, &k);
            st = rig_round(&r, &rep);
            assert_true(st == KOFN_OK || st == KOFN_TOOFEW);
            if (st == KOFN_OK)
                assert_at_most(rig_error(&r), 1e-12);
            assert_true(rep.left <= 6);
            rig_down(&r);
        }
}

/* A leaver's block is freed: memory does not grow with the number of former
 * workers. */
static void leavers_memory(void **state)
{
    kofn_fault_event events[120] = {{0}};
    kofn_options o = with_events(events, 120);
    rig_kind k = {.spec = "elastic:k=2,basis=gauss",
                  .workers = 4,
                  .m = 64,
                  .n = 9,
                  .p = 1,
                  .sim = true,
                  .opt = &o};
    long before = 0;
    rig r;

    (void)state;
    for (uint32_t i = 0; i < 60; i++) {
        events[2 * i] =
            (kofn_fault_event){i + 2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0};
        events[2 * i + 1] =
            (kofn_fault_event){i + 2, 0, KOFN_FAULT_EVENT_LEAVE, i, 0};
    }
    count_allocations();
    rig_up(&r, &k);
    for (int round = 0; round < 61; round++) {
        assert_ok(rig_round(&r, NULL));
        if (round == 20)
            before = allocated();
    }
    assert_int_equal(allocated(), before);
    rig_down(&r);
    kofn_set_alloc(NULL, NULL);
}

/* Results come after their round while joiners are still storing. They belong
 * to no round. */
static void late_results(void **state)
{
    static const kofn_fault_event events[] = {
        {2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {4, 0, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    kofn_faults w = KOFN_FAULTS_INIT(.spread = 0.5, .latency = 1e-6, .seed = 2);
    kofn_options o = with_events(events, 3);
    rig_kind k = {.spec = "mds:k=2",
                  .workers = 5,
                  .m = 64,
                  .n = 9,
                  .p = 1,
                  .sim = true,
                  .faults = &w,
                  .opt = &o};
    unsigned late = 0;
    long before;
    rig r;

    (void)state;
    count_allocations();
    before = allocated();
    rig_up(&r, &k);
    for (int round = 0; round < 5; round++) {
        kofn_report rep = KOFN_REPORT_INIT;

        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        late += rep.late;
    }
    assert_true(late > 0);
    rig_down(&r);
    assert_int_equal(allocated(), before);
    kofn_set_alloc(NULL, NULL);
}

/* ---- threads ------------------------------------------------------------- */

static void many_threads(void **state)
{
    static const char *const specs[] = {"elastic:k=40", "uncoded",
                                        "replication:k=16", "mds:k=60"};

    (void)state;
    for (size_t s = 0; s < 4; s++) {
        rig_kind k = {
            .spec = specs[s], .workers = 64, .m = 700, .n = 30, .p = 2};
        rig r;

        rig_up(&r, &k);
        for (uint64_t round = 0; round < often(24); round++) {
            rig_next(&r, round + 10);
            assert_ok(rig_round(&r, NULL));
            assert_at_most(rig_error(&r), 1e-12);
        }
        rig_down(&r);
    }
}

static void tiny_rounds(void **state)
{
    /* no worker is asked twice, so no result is dropped */
    kofn_options o = {.size = sizeof o, .late = -1};
    rig_kind k = {.spec = "elastic:k=3",
                  .workers = 5,
                  .m = 24,
                  .n = 3,
                  .p = 1,
                  .opt = &o};
    size_t rounds = often(1000);
    kofn_report total = KOFN_REPORT_INIT;
    rig r;

    (void)state;
    rig_up(&r, &k);
    for (uint64_t round = 0; round < rounds; round++) {
        rig_next(&r, round);
        assert_ok(rig_round(&r, NULL));
        assert_at_most(rig_error(&r), 1e-12);
    }
    kofn_job_totals(r.job, &total);
    assert_int_equal(total.rounds, rounds);
    assert_int_equal(total.dropped, 0);
    rig_down(&r);
}

/* With k = 1 the first answer ends the round. The others are stopped within a
 * block that takes several looks for cancellations. */
static void cancelled_while_computing(void **state)
{
    rig_kind k = {.spec = "mds:k=1,basis=gauss",
                  .workers = 4,
                  .m = 1200,
                  .n = 4000 / SLOWED,
                  .p = 1};
    rig r;

    (void)state;
    rig_up(&r, &k);
    for (uint64_t round = 0; round < often(40); round++) {
        assert_ok(rig_round(&r, NULL));
        assert_at_most(rig_error(&r), 1e-12);
    }
    rig_down(&r);
}

/* One worker sleeps a million times longer than its work takes. Neither the
 * end of a round nor the end of the job waits for it. */
static void cancelled_asleep(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0, KOFN_FAULT_EVENT_SLOW, 2, 1e6},
        {4, 0, KOFN_FAULT_EVENT_SLOW, 0, 1e6},
        {6, 0, KOFN_FAULT_EVENT_NORMAL, 2, 0},
        {6, 0.3, KOFN_FAULT_EVENT_LEAVE, 0, 0}};
    kofn_options o = with_events(events, 4);
    rig_kind k = {
        .spec = "mds:k=2", .workers = 4, .m = 800, .n = 100, .p = 1, .opt = &o};
    rig r;

    (void)state;
    rig_up(&r, &k);
    for (int round = 0; round < 8; round++) {
        assert_ok(rig_round(&r, NULL));
        assert_at_most(rig_error(&r), 1e-12);
    }
    rig_down(&r);
}

/* The delay is noticed, and other workers do the work. */
static void hedged(void **state)
{
    static const kofn_fault_event events[] = {
        {2, 0, KOFN_FAULT_EVENT_SLOW, 1, 1e6}};
    kofn_options o = with_events(events, 1);
    rig_kind k = {.spec = "elastic:k=2",
                  .workers = 4,
                  .m = 800,
                  .n = 100,
                  .p = 1,
                  .opt = &o};
    rig r;

    (void)state;
    o.late = 3;
    rig_up(&r, &k);
    for (int round = 0; round < 4; round++) {
        kofn_report rep = KOFN_REPORT_INIT;

        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        assert_int_equal(rep.live, 4);
    }
    rig_down(&r);
}

/* Workers join and leave at any time of a round. */
static void joins_and_losses(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0.01, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {1, 0.02, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {1, 0.5, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {2, 0.2, KOFN_FAULT_EVENT_LEAVE, 2, 0},
        {2, 0.2, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {2, 0.9, KOFN_FAULT_EVENT_LEAVE, 5, 0},
        {3, 0.001, KOFN_FAULT_EVENT_LEAVE, 3, 0},
        {3, 0.5, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {3, 0.5, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {3, 0.999, KOFN_FAULT_EVENT_LEAVE, 6, 0}};
    static const char *const specs[] = {"elastic:k=3", "mds:k=3",
                                        "elastic:k=3,deal=speed"};

    (void)state;
    for (size_t i = 0; i < often(48); i++) {
        kofn_options o = with_events(events, sizeof events / sizeof *events);
        rig_kind k = {.spec = specs[i % 3],
                      .workers = 5,
                      .m = 1000,
                      .n = 211,
                      .p = 1 + i % 2,
                      .opt = &o};
        rig r;

        o.in_flight = (kofn_in_flight)(i / 3 % 3);
        rig_up(&r, &k);
        for (uint64_t round = 0; round < 4; round++) {
            rig_next(&r, round);
            assert_ok(rig_round(&r, NULL));
            assert_at_most(rig_error(&r), 1e-12);
        }
        rig_down(&r);
    }
}

/* Each worker has outstanding tasks when the job is closed. */
static void close_in_round(void **state)
{
    static const kofn_fault_event events[] = {
        {1, 0, KOFN_FAULT_EVENT_SLOW, 0, 1e6},
        {1, 0, KOFN_FAULT_EVENT_SLOW, 1, 1e6},
        {1, 0, KOFN_FAULT_EVENT_SLOW, 2, 1e6}};

    (void)state;
    count_allocations();
    for (size_t i = 0; i < often(40); i++) {
        kofn_options o = with_events(events, i % 4 ? 3 : 0);
        rig_kind k = {.spec = "elastic:k=3",
                      .workers = 3,
                      .m = 2400,
                      .n = 400,
                      .p = 1,
                      .opt = &o,
                      .sim = i % 5 == 4};
        long before = allocated();
        kofn_progress progress = KOFN_PROGRESS_INIT;
        kofn_status st;
        rig r;

        rig_up(&r, &k);
        if (i % 4 != 3) {
            assert_ok(kofn_put(r.job, &r.x, &r.y, NULL));
            st = kofn_take(r.job, 0, (kofn_time)(i % 8) * 100000, NULL);
            assert_true(st == KOFN_AGAIN || st == KOFN_OK);
            kofn_job_progress(r.job, &progress);
            assert_true(progress.done >= 0 && progress.done <= 1);
        }
        rig_down(&r);
        assert_int_equal(allocated(), before);
    }
    kofn_set_alloc(NULL, NULL);
}

static void short_waits(void **state)
{
    (void)state;
    for (int sim = 0; sim < PORTS; sim++) {
        rig_kind k = {.spec = "elastic:k=4",
                      .workers = 6,
                      .m = 500,
                      .n = 60,
                      .p = 1,
                      .sim = sim};
        kofn_status st = KOFN_AGAIN;
        kofn_report rep = KOFN_REPORT_INIT;
        rig r;

        rig_up(&r, &k);
        assert_status(KOFN_STATE, kofn_take(r.job, 0, 0, NULL));
        assert_ok(kofn_put(r.job, &r.x, &r.y, NULL));
        assert_int_equal(kofn_take(r.job, 0, 0, &rep), KOFN_AGAIN);
        for (int i = 0; i < 100000 && st == KOFN_AGAIN; i++)
            st = kofn_take(r.job, 0, 50000, &rep);
        assert_ok(st);
        assert_at_most(rig_error(&r), 1e-12);
        assert_int_equal(rep.live, 6);
        rig_down(&r);
    }
}

/* Without a check, wrong results make a wrong answer. */
/* Plays a round in which all results are wrong. True if it was delivered.
 * Results that are NaN or infinite are refused. */
static bool delivered_wrong(rig *r)
{
    kofn_status st = rig_round(r, NULL);

    if (st == KOFN_CORRUPT) {
        assert_non_null(strstr(kofn_errmsg(), "NaN or infinity"));
        return false;
    }
    assert_int_equal(st, KOFN_OK);
    assert_true(rig_error(r) > 0.5);
    return true;
}

static void unchecked(void **state)
{
    static const kofn_fault_event events[] = {
        {2, 0, KOFN_FAULT_EVENT_CORRUPT, 3, 0},
        {3, 0, KOFN_FAULT_EVENT_NORMAL, 3, 0}};

    (void)state;
    for (int sim = 0; sim < PORTS; sim++)
        for (int f32 = 0; f32 < 2; f32++) {
            kofn_faults all = KOFN_FAULTS_INIT(.corrupt = 1);
            kofn_options o = with_events(events, 2);
            rig_kind k = {.spec = "uncoded",
                          .workers = 4,
                          .m = 80,
                          .n = 20,
                          .p = 1,
                          .sim = sim,
                          .opt = &o,
                          .dtype = f32 ? KOFN_F32 : KOFN_F64};
            double honest = f32 ? 1e-5 : 1e-12;
            unsigned through = 0;
            rig r;

            rig_up(&r, &k);
            for (int round = 1; round <= 3; round++) {
                assert_ok(rig_round(&r, NULL));
                if (round == 2) {
                    /* the last quarter of the rows, and only that */
                    assert_true(rig_error(&r) > 0.1);
                    for (size_t i = 60; i < 80; i++)
                        r.want[i] = f32 ? (double)((float *)r.y.data)[i]
                                        : ((double *)r.y.data)[i];
                }
                assert_at_most(rig_error(&r), honest);
                rig_next(&r, 5);
            }
            rig_down(&r);
            k.faults = &all;
            k.opt = NULL;
            for (all.seed = 1; all.seed <= 60; all.seed++) {
                rig_up(&r, &k);
                through += delivered_wrong(&r);
                rig_down(&r);
            }
            assert_in_range(through, 1, 59);
        }
}

/* Stragglers of the fault model really sleep, and results are right. */
static void real_faults(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.spread = 0.5, .straggle = 0.3,
                                     .delay = 2e-3, .seed = 4);
    rig_kind k = {.spec = "mds:k=3",
                  .workers = 6,
                  .m = 300,
                  .n = 50,
                  .p = 1,
                  .faults = &w};
    rig r;

    (void)state;
    rig_up(&r, &k);
    for (int round = 0; round < 12; round++) {
        assert_ok(rig_round(&r, NULL));
        assert_at_most(rig_error(&r), 1e-12);
    }
    rig_down(&r);
    w = (kofn_faults)KOFN_FAULTS_INIT(.leave = 30, .join = 200, .seed = 5);
    k.spec = "elastic:k=2";
    rig_up(&r, &k);
    for (int round = 0; round < 60; round++) {
        kofn_status st = rig_round(&r, NULL);

        assert_true(st == KOFN_OK || st == KOFN_TOOFEW);
        if (!st)
            assert_at_most(rig_error(&r), 1e-12);
    }
    rig_down(&r);
}

static bool straggles(const kofn_faults *w, uint32_t worker, unsigned round)
{
    return kf_faults_stretch(w, worker, round, true, 1) > 1;
}

/* Bursts do not change the share of slow rounds. Changes occur at 2 p (1 - p)
 * in one of `burst` rounds. There are 100,000 draws. Draws in bursts count as
 * a twentieth: 3 sigma are 0.02. */
static void bursts(void **state)
{
    static const double length[] = {0, 1, 10};
    bool was[3][100][1000];

    (void)state;
    for (int b = 0; b < 3; b++) {
        kofn_faults w =
            KOFN_FAULTS_INIT(.straggle = 0.2, .burst = length[b], .seed = 3);
        double share = 0, changes = 0, each = b == 2 ? 0.032 : 0.32;

        for (uint32_t i = 0; i < 100; i++)
            for (unsigned r = 1; r <= 1000; r++) {
                bool now = was[b][i][r - 1] = straggles(&w, i, r);

                share += now * 1e-5;
                changes += (r > 1 && was[b][i][r - 2] != now) * 1e-5;
            }
        assert_at_most(fabs(share - 0.2), 0.02);
        assert_at_most(fabs(changes - each), each / 10);
    }
    assert_memory_equal(was[0], was[1], sizeof *was);
}

TEST_FILE(ports_test)
{
    const struct CMUnitTest tests[] = {
        TEST(ports_close_unused, "ports: an unused port closes without a leak"),
        TEST(blas_threads, "ports: BLAS has one thread while a port is open"),
        TEST(failed_jobs, "ports: a job that cannot be opened closes its port"),
        TEST(block_with_task, "ports: a task may bring its block"),
        TEST(no_workers, "ports: a round of a port without workers fails"),
        TEST(all_leave,
             "ports: rounds are right or fail if all workers leave at once"),
        TEST(leavers_memory, "ports: leavers hold no memory"),
        TEST(late_results, "ports: late results between rounds are dropped"),
        TEST(many_threads, "ports: rounds of 64 threads are right"),
        TEST(tiny_rounds,
             "ports: 1000 small rounds are right and drop nothing"),
        TEST(cancelled_while_computing,
             "ports: tasks are cancelled while they are computed"),
        TEST(cancelled_asleep, "ports: no round waits for a sleeping worker"),
        TEST(hedged,
             "ports: the tasks of a sleeping worker are given to others"),
        TEST(joins_and_losses,
             "ports: rounds are right while workers join and leave"),
        TEST(close_in_round,
             "ports: a job closes within a round without a leak"),
        TEST(short_waits, "ports: a round completes in many short waits"),
        TEST(unchecked,
             "ports: wrong results are delivered if no check is asked for"),
        TEST(real_faults,
             "ports: rounds are right with real stragglers and losses"),
        TEST(bursts, "ports: bursts keep the share of slow rounds"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
