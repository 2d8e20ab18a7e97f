/* ports_test.c -- the two ways to reach workers: threads that are interrupted
 * in all they do, and a simulator whose clock is known in closed form. */
#include "rig.h"

#include "run/run.h"

#include <stdio.h>
#include <unistd.h>

static kofn_options options(const kofn_happening *events, size_t count)
{
    kofn_options o = KOFN_OPTIONS_INIT;

    o.events = events;
    o.event_count = count;
    return o;
}

/* ---- both
 * ---------------------------------------------------------------------- */

static kofn_status new_port(kofn_port **out, bool sim, size_t workers,
                            const kofn_weather *w)
{
    return sim ? kofn_port_sim(out, workers, w)
               : kofn_port_threads(out, workers, w);
}

static void ports_close_unused(void **state)
{
    (void)state;
    count_allocations();
    for (int sim = 0; sim < 2; sim++) {
        long before = allocated();
        kofn_port *port;

        assert_ok(new_port(&port, sim, 5, NULL));
        assert_string_equal(port->name, sim ? "sim" : "threads");
        kofn_port_close(port);
        kofn_port_close(NULL);
        assert_int_equal(allocated(), before);
    }
    kofn_set_alloc(NULL);
}

/* BLAS is set to one thread while a port is open, and only then. */
static void blas_threads_are_restored(void **state)
{
    (void)state;
    kf_blas_restore(2);
    for (int sim = 0; sim < 2; sim++) {
        int before = kf_blas_single();
        kofn_port *port;

        kf_blas_restore(before);
        assert_ok(new_port(&port, sim, 3, NULL));
        assert_true(kf_blas_single() <= 1);
        kofn_port_close(port);
        assert_int_equal(kf_blas_single(), before);
        kf_blas_restore(before);
    }
    kf_blas_single();
}

/* A job that cannot be opened closes the port it was given. */
static void failed_jobs_close_their_port(void **state)
{
    kofn_problem pb = {KOFN_MATVEC, 40, 5, 1, KOFN_F64, false};

    (void)state;
    count_allocations();
    for (int sim = 0; sim < 2; sim++)
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
    kofn_set_alloc(NULL);
}

static void a_port_without_workers(void **state)
{
    (void)state;
    for (int sim = 0; sim < 2; sim++) {
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

/* Workers that leave before anybody heard of them, or at once after. */
static void all_leave_at_once(void **state)
{
    (void)state;
    for (int sim = 0; sim < 2; sim++)
        for (uint64_t seed = 0; seed < 40; seed++) {
            kofn_weather w = {.leave = 1e3 * (double)(1 + seed * seed * seed),
                              .seed = seed};
            rig_kind k = {.spec = "elastic:k=2",
                          .workers = 6,
                          .m = 40,
                          .n = 5,
                          .p = 1,
                          .sim = sim,
                          .weather = &w};
            kofn_report rep;
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

/* Who leaves takes its block along: memory does not grow with those who were
 * there once. */
static void the_gone_hold_no_memory(void **state)
{
    kofn_happening events[120];
    kofn_options o = options(events, 120);
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
        events[2 * i] = (kofn_happening){i + 2, 0, KOFN_EVENT_JOIN, 0, 0};
        events[2 * i + 1] = (kofn_happening){i + 2, 0, KOFN_EVENT_LEAVE, i, 0};
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
    kofn_set_alloc(NULL);
}

/* Results wander in after their round while joiners are still storing: they
 * belong to nobody. */
static void latecomers_between_rounds(void **state)
{
    static const kofn_happening events[] = {{2, 0, KOFN_EVENT_JOIN, 0, 0},
                                            {3, 0, KOFN_EVENT_JOIN, 0, 0},
                                            {4, 0, KOFN_EVENT_JOIN, 0, 0}};
    kofn_weather w = {.spread = 0.5, .latency = 1e-6, .seed = 2};
    kofn_options o = options(events, 3);
    rig_kind k = {.spec = "mds:k=2",
                  .workers = 5,
                  .m = 64,
                  .n = 9,
                  .p = 1,
                  .sim = true,
                  .weather = &w,
                  .opt = &o};
    unsigned late = 0;
    long before;
    rig r;

    (void)state;
    count_allocations();
    before = allocated();
    rig_up(&r, &k);
    for (int round = 0; round < 5; round++) {
        kofn_report rep;

        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        late += rep.late;
    }
    assert_true(late > 0);
    rig_down(&r);
    assert_int_equal(allocated(), before);
    kofn_set_alloc(NULL);
}

/* ---- threads
 * ----------------------------------------------------------------------- */

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

static void a_thousand_tiny_rounds(void **state)
{
    rig_kind k = {.spec = "elastic:k=3", .workers = 5, .m = 24, .n = 3, .p = 1};
    size_t rounds = often(1000);
    kofn_report total;
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

/* k = 1: the first answer ends the round, and the others are told to stop in
 * the middle of a block that takes several looks up. */
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

/* One worker dawdles a million times as long as its work takes: nobody waits
 * for it, at the end of a round or at the end of all. */
static void cancelled_while_dawdling(void **state)
{
    static const kofn_happening events[] = {{1, 0, KOFN_EVENT_SLOW, 2, 1e6},
                                            {4, 0, KOFN_EVENT_SLOW, 0, 1e6},
                                            {6, 0, KOFN_EVENT_NORMAL, 2, 0},
                                            {6, 0.3, KOFN_EVENT_LEAVE, 0, 0}};
    kofn_options o = options(events, 4);
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

/* Lateness is noticed and others do the work. */
static void hedged_while_dawdling(void **state)
{
    static const kofn_happening events[] = {{2, 0, KOFN_EVENT_SLOW, 1, 1e6}};
    kofn_options o = options(events, 1);
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
        kofn_report rep;

        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        assert_int_equal(rep.live, 4);
    }
    rig_down(&r);
}

/* Everybody comes and goes in the middle of everything. */
static void turmoil(void **state)
{
    static const kofn_happening events[] = {
        {1, 0.01, KOFN_EVENT_LEAVE, 0, 0}, {1, 0.02, KOFN_EVENT_JOIN, 0, 0},
        {1, 0.5, KOFN_EVENT_JOIN, 0, 0},   {2, 0, KOFN_EVENT_LEAVE, 1, 0},
        {2, 0.2, KOFN_EVENT_LEAVE, 2, 0},  {2, 0.2, KOFN_EVENT_JOIN, 0, 0},
        {2, 0.9, KOFN_EVENT_LEAVE, 5, 0},  {3, 0.001, KOFN_EVENT_LEAVE, 3, 0},
        {3, 0.5, KOFN_EVENT_JOIN, 0, 0},   {3, 0.5, KOFN_EVENT_JOIN, 0, 0},
        {3, 0.999, KOFN_EVENT_LEAVE, 6, 0}};
    static const char *const specs[] = {"elastic:k=3", "mds:k=3",
                                        "elastic:k=3,deal=speed"};

    (void)state;
    for (size_t i = 0; i < often(48); i++) {
        kofn_options o = options(events, sizeof events / sizeof *events);
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

/* Closed with tasks in everybody's hands: no leak, no hang. */
static void closed_in_the_middle(void **state)
{
    static const kofn_happening events[] = {{1, 0, KOFN_EVENT_SLOW, 0, 1e6},
                                            {1, 0, KOFN_EVENT_SLOW, 1, 1e6},
                                            {1, 0, KOFN_EVENT_SLOW, 2, 1e6}};

    (void)state;
    count_allocations();
    for (size_t i = 0; i < often(40); i++) {
        kofn_options o = options(events, i % 4 ? 3 : 0);
        rig_kind k = {.spec = "elastic:k=3",
                      .workers = 3,
                      .m = 2400,
                      .n = 400,
                      .p = 1,
                      .opt = &o,
                      .sim = i % 5 == 4};
        long before = allocated();
        kofn_progress progress;
        kofn_status st;
        rig r;

        rig_up(&r, &k);
        if (i % 4 != 3) {
            assert_ok(kofn_begin(r.job, &r.x, &r.y));
            assert_status(KOFN_STATE, kofn_begin(r.job, &r.x, &r.y));
            st = kofn_pump(r.job, (kofn_time)(i % 8) * 100000, NULL);
            assert_true(st == KOFN_AGAIN || st == KOFN_OK);
            kofn_job_progress(r.job, &progress);
            assert_true(progress.done >= 0 && progress.done <= 1);
        }
        rig_down(&r);
        assert_int_equal(allocated(), before);
    }
    kofn_set_alloc(NULL);
}

/* A round in many small helpings is the same round. */
static void pumped_in_helpings(void **state)
{
    (void)state;
    for (int sim = 0; sim < 2; sim++) {
        rig_kind k = {.spec = "elastic:k=4",
                      .workers = 6,
                      .m = 500,
                      .n = 60,
                      .p = 1,
                      .sim = sim};
        kofn_status st = KOFN_AGAIN;
        kofn_report rep;
        rig r;

        rig_up(&r, &k);
        assert_status(KOFN_STATE, kofn_pump(r.job, 0, NULL));
        assert_ok(kofn_begin(r.job, &r.x, &r.y));
        assert_int_equal(kofn_pump(r.job, 0, &rep), KOFN_AGAIN);
        for (int i = 0; i < 100000 && st == KOFN_AGAIN; i++)
            st = kofn_pump(r.job, 50000, &rep);
        assert_ok(st);
        assert_at_most(rig_error(&r), 1e-12);
        assert_int_equal(rep.live, 6);
        rig_down(&r);
    }
}

/* With nothing that checks them, corrupt results make a wrong answer. */
static void corruption_is_not_noticed(void **state)
{
    static const kofn_happening events[] = {{2, 0, KOFN_EVENT_CORRUPT, 3, 0},
                                            {3, 0, KOFN_EVENT_NORMAL, 3, 0}};

    (void)state;
    for (int sim = 0; sim < 2; sim++)
        for (int f32 = 0; f32 < 2; f32++) {
            kofn_weather all = {.corrupt = 1};
            kofn_options o = options(events, 2);
            rig_kind k = {.spec = "uncoded",
                          .workers = 4,
                          .m = 80,
                          .n = 20,
                          .p = 1,
                          .sim = sim,
                          .opt = &o,
                          .dtype = f32 ? KOFN_F32 : KOFN_F64};
            double honest = f32 ? 1e-5 : 1e-12;
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
            k.weather = &all;
            k.opt = NULL;
            rig_up(&r, &k);
            assert_ok(rig_round(&r, NULL));
            assert_true(rig_error(&r) > 0.5);
            rig_down(&r);
        }
}

/* Stragglers by the weather sleep for real, and results are right. */
static void real_weather(void **state)
{
    kofn_weather w = {.spread = 0.5, .straggle = 0.3, .delay = 2e-3, .seed = 4};
    rig_kind k = {.spec = "mds:k=3",
                  .workers = 6,
                  .m = 300,
                  .n = 50,
                  .p = 1,
                  .weather = &w};
    rig r;

    (void)state;
    rig_up(&r, &k);
    for (int round = 0; round < 12; round++) {
        assert_ok(rig_round(&r, NULL));
        assert_at_most(rig_error(&r), 1e-12);
    }
    rig_down(&r);
    w = (kofn_weather){.leave = 30, .join = 200, .seed = 5};
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

/* ---- the simulator's clock
 * ----------------------------------------------------------- */

/* A run on the simulator; what the rounds took goes to took[]. */
static void simulate(const rig_kind *kind, size_t rounds, kofn_time *took)
{
    rig_kind k = *kind;
    kofn_report rep;
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

/* Equal workers: as many nanoseconds as the multiply-adds of a share, one
 * second per 1e9 of them. */
static void equal_workers(void **state)
{
    /* A is 480 x 10, times 1 or 3 columns */
    static const struct {
        const char *spec;
        size_t workers;
        kofn_time rows; /* that each touches */
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
            kofn_weather w = {.work = 2.5};
            rig_kind k = {.spec = all[i].spec,
                          .workers = all[i].workers,
                          .m = 480,
                          .n = 10,
                          .p = p};
            kofn_time macs = all[i].rows * 10 * (kofn_time)p, took[3];

            assert_int_equal(simulate_one(&k), macs);
            k.weather = &w;
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

/* One straggler: who needs everybody waits for it, a code does not. */
static void one_straggler(void **state)
{
    static const kofn_happening events[] = {{1, 0, KOFN_EVENT_SLOW, 2, 7},
                                            {2, 0, KOFN_EVENT_NORMAL, 2, 0}};
    kofn_options o = options(events, 2);
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
    k.spec = "elastic:k=4"; /* no redundancy inside a round */
    simulate(&k, 2, took);
    assert_int_equal(took[0], 7 * 800);
    /* late at twice the time of the others, who then share its 20 strips of
     * four rows: 4 strips each, 5 at most as cells fall */
    o.late = 2;
    o.pieces = 1;
    simulate(&k, 2, took);
    assert_in_range(took[0], 1600 + 4 * 40, 1600 + 5 * 40);
    assert_int_equal(took[1], 800);
}

/* By the weather: who straggles takes `factor` times as long, or `delay`
 * longer, once in the round whatever the pieces. */
static void stragglers_of_the_weather(void **state)
{
    (void)state;
    for (unsigned pieces = 1; pieces < 6; pieces++) {
        kofn_weather w = {.straggle = 1};
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind k = {.spec = "uncoded",
                      .workers = 4,
                      .m = 240,
                      .n = 10,
                      .p = 1,
                      .weather = &w,
                      .opt = &o};

        o.pieces = pieces;
        assert_int_equal(simulate_one(&k), 5 * 600);
        w.factor = 3;
        assert_int_equal(simulate_one(&k), 3 * 600);
        w.delay = 1e-3; /* whose first piece is rounded down */
        assert_in_range(simulate_one(&k), 1000000 + 599, 1000000 + 600);
    }
}

/* Some straggle and some do not, as the named streams say. */
static void chance_is_named(void **state)
{
    kofn_weather w = {.straggle = 0.4, .factor = 10, .spread = 0.3};

    (void)state;
    for (w.seed = 0; w.seed < 10; w.seed++) {
        kofn_options o = KOFN_OPTIONS_INIT;
        rig_kind k = {.spec = "uncoded",
                      .workers = 5,
                      .m = 500,
                      .n = 10,
                      .p = 1,
                      .weather = &w,
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
static void messages_take_time(void **state)
{
    kofn_weather w = {.latency = 2e-6, .bandwidth = 1e9};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "uncoded",
                  .workers = 4,
                  .m = 80,
                  .n = 50,
                  .p = 1,
                  .weather = &w,
                  .opt = &o};

    (void)state;
    o.pieces = 1;
    assert_int_equal(simulate_one(&k), 2000 + 50 * 8 + 20 * 50 + 2000 + 20 * 8);
    w.bandwidth = 0;
    assert_int_equal(simulate_one(&k), 2000 + 20 * 50 + 2000);
    w = (kofn_weather){.bandwidth = 1e9};
    assert_int_equal(simulate_one(&k), 50 * 8 + 20 * 50 + 20 * 8);
    k.dtype = KOFN_F32;
    assert_int_equal(simulate_one(&k), 50 * 4 + 20 * 50 + 20 * 4);
}

/* Work that is taken back on its way is not done.  With the first result, at
 * 4000 + 500 + 800, two of four workers leave, one after the other: the deal
 * to three is cancelled before it has arrived, and the two that are left then
 * compute 40 rows of 50 each and send 320 bytes. */
static void cancelled_on_the_way(void **state)
{
    static const kofn_happening events[] = {{1, 0.01, KOFN_EVENT_LEAVE, 0, 0},
                                            {1, 0.01, KOFN_EVENT_LEAVE, 1, 0}};
    kofn_weather w = {.bandwidth = 1e8};
    kofn_options o = options(events, 2);
    rig_kind k = {.spec = "elastic:k=2,basis=gauss",
                  .workers = 4,
                  .m = 80,
                  .n = 50,
                  .p = 1,
                  .weather = &w,
                  .opt = &o};

    (void)state;
    o.pieces = 1;
    o.in_flight = KOFN_IN_FLIGHT_ABORT;
    assert_int_equal(simulate_one(&k), 5300 + 4000 + 2000 + 3200);
}

/* Tasks of no duration at all do not keep the clock from going on. */
static void no_work_at_all(void **state)
{
    kofn_weather w = {.work = 1e-9};
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind k = {.spec = "elastic:k=2",
                  .workers = 4,
                  .m = 64,
                  .n = 3,
                  .p = 1,
                  .weather = &w,
                  .opt = &o};

    (void)state;
    o.late = 2;
    assert_int_equal(simulate_one(&k), 0);
}

/* On the measured clock there is no closed form, but an order: it moves. */
static void measured_clock(void **state)
{
    kofn_weather w = {.clock = KOFN_CLOCK_MEASURED, .spread = 0.2};
    rig_kind k = {.spec = "elastic:k=3",
                  .workers = 5,
                  .m = 600,
                  .n = 200,
                  .p = 2,
                  .weather = &w,
                  .sim = true};
    rig r;

    (void)state;
    rig_up(&r, &k);
    for (int round = 0; round < 5; round++) {
        kofn_report rep;

        assert_ok(rig_round(&r, &rep));
        assert_at_most(rig_error(&r), 1e-12);
        assert_true(rep.took > 0 && rep.took >= rep.decoding);
        assert_true(rep.decoding > 0);
    }
    rig_down(&r);
}

/* ---- the same seed, the same run
 * --------------------------------------------------------- */

static char *journal_of(uint64_t seed, kofn_time *took)
{
    static const kofn_happening events[] = {{2, 0.4, KOFN_EVENT_LEAVE, 1, 0},
                                            {3, 0, KOFN_EVENT_JOIN, 0, 0},
                                            {4, 0.5, KOFN_EVENT_SLOW, 3, 4}};
    kofn_weather w = {.spread = 0.4,
                      .straggle = 0.3,
                      .leave = 3e3,
                      .join = 2e4,
                      .latency = 1e-6,
                      .bandwidth = 1e9,
                      .seed = seed};
    kofn_options o = options(events, 3);
    rig_kind k = {.spec = "elastic:k=3,deal=speed",
                  .workers = 7,
                  .m = 100,
                  .n = 30,
                  .p = 1,
                  .sim = true,
                  .weather = &w,
                  .opt = &o};
    char path[] = "ports_test.XXXXXX", *text = numbers(1 << 18, 1);
    int fd = mkstemp(path);
    kofn_report rep;
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

static void a_seed_repeats_a_run(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_close_unused),
        cmocka_unit_test(blas_threads_are_restored),
        cmocka_unit_test(failed_jobs_close_their_port),
        cmocka_unit_test(a_port_without_workers),
        cmocka_unit_test(all_leave_at_once),
        cmocka_unit_test(the_gone_hold_no_memory),
        cmocka_unit_test(latecomers_between_rounds),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(a_thousand_tiny_rounds),
        cmocka_unit_test(cancelled_while_computing),
        cmocka_unit_test(cancelled_while_dawdling),
        cmocka_unit_test(hedged_while_dawdling),
        cmocka_unit_test(turmoil),
        cmocka_unit_test(closed_in_the_middle),
        cmocka_unit_test(pumped_in_helpings),
        cmocka_unit_test(corruption_is_not_noticed),
        cmocka_unit_test(real_weather),
        cmocka_unit_test(equal_workers),
        cmocka_unit_test(sparse_workers),
        cmocka_unit_test(one_straggler),
        cmocka_unit_test(stragglers_of_the_weather),
        cmocka_unit_test(chance_is_named),
        cmocka_unit_test(messages_take_time),
        cmocka_unit_test(cancelled_on_the_way),
        cmocka_unit_test(no_work_at_all),
        cmocka_unit_test(measured_clock),
        cmocka_unit_test(a_seed_repeats_a_run),
    };

    rig_begin();
    return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
