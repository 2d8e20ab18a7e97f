/* stream_faults_test.c -- streams of products with workers that join, leave,
 * fail and hang at any event. Every product is in time, or the error says that
 * no worker is left. Also events in any order. */
#include "stream_rig.h"

#include "base/rng.h"

#include <stdio.h>

/* ---- one fault, at any event --------------------------------------------- */

enum { LEAVE, NOTICE, FAIL, JOIN, THINGS };

typedef struct fault {
    int what;
    uint32_t who;
    size_t when; /* after this number of answers */
} fault;

static void drop_tasks(stage *s, uint32_t worker)
{
    for (size_t i = 0; i < s->tasks; i++)
        if (s->task[i].worker == worker && s->task[i].state == OUT)
            s->task[i].state = LOST;
}

/* Fails the worker's oldest task, if it has one. */
static void fail_one(stage *s, uint32_t worker)
{
    for (size_t i = 0; i < s->tasks; i++) {
        given_task *e = &s->task[i];

        if (e->worker != worker || e->state != OUT)
            continue;
        e->state = LOST;
        tell(s, (kofn_event){.type = KOFN_EV_FAILED,
                             .worker = worker,
                             .product = e->product,
                             .task = e->task,
                             .row = e->row});
        return;
    }
}

static void happens(stage *s, const fault *p)
{
    switch (p->what) {
    case LEAVE:
        drop_tasks(s, p->who);
        s->here[p->who] = false;
        tell(s, (kofn_event){.type = KOFN_EV_LEFT, .worker = p->who});
        break;
    case NOTICE:
        s->here[p->who] = false;
        tell(s, (kofn_event){.type = KOFN_EV_LEAVING, .worker = p->who});
        break;
    case FAIL:
        fail_one(s, p->who);
        break;
    default:
        stage_join(s, (uint32_t)s->P);
    }
}

/* Returns the next task in its turn: one of each worker in a row, or the last
 * one first. */
static given_task *next_task(stage *s, bool back)
{
    given_task *found = NULL;

    for (size_t i = 0; i < s->tasks; i++)
        if (s->task[i].state == OUT && (back || !found))
            found = &s->task[i];
    return found;
}

static size_t play_fault(stage *s, size_t products, const fault *p, bool back)
{
    size_t answers = 0;

    while (s->products < products || some_open(s)) {
        given_task *e;

        hold(s, s->round < ROUNDS);
        begin_round(s, s->products < products);
        while (s->running) {
            if (p && answers++ == p->when) {
                happens(s, p);
                continue;
            }
            e = next_task(s, back);
            hold(s, e != NULL);
            e->state = CAME;
            s->now += UNIT / 10;
            tell(s, (kofn_event){.type = KOFN_EV_RESULT,
                                 .worker = e->worker,
                                 .product = e->product,
                                 .task = e->task,
                                 .row = e->row});
            ring(s, s->now);
        }
    }
    return answers;
}

static const char *const specs[] = {
    "dip:m=2,p=2,T=1",
    "dip:m=2,p=3,T=2,lambda=1,order=due",
    "dip:m=2,n=2,p=1,T=1",
    "idip:W=2,N=2",
    "idip:W=3,N=3,early=no",
    "idip:model=bursty,B=1,W=2,eps=1",
    "polynomial:m=1,p=2,basis=circle",
    "matdot:n=2",
    "uncoded",
};

/* The fault comes at every event of a short run, to every worker. */
static void one_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        kofn_plan *plan = stream_plan(specs[i], 3);
        static stage s;
        size_t events;

        stage_open(&s, plan, NULL);
        events = play_fault(&s, 4, &(fault){JOIN, 0, SIZE_MAX}, false);
        stage_close(&s);
        for (size_t k = 0; k < events * THINGS * 3 * 2; k++) {
            fault p = {(int)(k / 2 % THINGS), (uint32_t)(k / 2 / THINGS % 3),
                       k / 2 / THINGS / 3};

            stage_open(&s, plan, NULL);
            play_fault(&s, 4, &p, k % 2);
            check_deadlines(&s);
            stage_close(&s);
        }
        kofn_plan_free(plan);
    }
}

/* ---- the same with a faulty worker --------------------------------------- */

static size_t present(const stage *s)
{
    size_t n = 0;

    for (size_t w = 0; w < MOST_WORKERS; w++)
        n += s->here[w];
    return n;
}

/* The faulty worker is named, or the product fails. A product fails only if
 * there are fewer than two honest workers, or no rows are left. */
static void check_liar(stage *s, bool few)
{
    for (size_t i = 1; i <= s->products; i++) {
        kofn_status st = s->product[i].status;

        hold(s, s->product[i].ended <=
                    s->product[i].began + s->plan->layout.delay);
        hold(s, st == KOFN_OK || ((st == KOFN_CORRUPT || st == KOFN_TOOFEW) &&
                                  (few || present(s) < 4)));
    }
}

/* One of four workers is faulty, and another fault comes at any event. */
static void faulty_worker(void **state)
{
    static const kofn_errors modes[] = {KOFN_ERRORS_PROBABILISTIC,
                                        KOFN_ERRORS_ADVERSARIAL};

    (void)state;
    for (size_t i = 0; i < (sizeof specs / sizeof *specs - 1) * 2; i++) {
        kofn_core_options o = {.size = sizeof o,
                               .mu = 0.25,
                               .errors = modes[i % 2],
                               .quarantine = 100};
        kofn_plan *plan = stream_plan(specs[i / 2], 4);
        bool few = plan->layout.max_seats < SIZE_MAX;
        static stage s;
        size_t events;

        stage_open(&s, plan, &o);
        s.liar[1] = true;
        events = play_fault(&s, 3, &(fault){JOIN, 0, SIZE_MAX}, false);
        check_liar(&s, few);
        hold(&s, few || s.core->fleet.located[1] > 0);
        stage_close(&s);
        for (size_t k = 0; k < events * THINGS * 4; k++) {
            fault p = {(int)(k % THINGS), (uint32_t)(k / THINGS % 4),
                       k / THINGS / 4};

            if (test_scale() <= 1 && k % 3)
                continue;
            stage_open(&s, plan, &o);
            s.liar[1] = true;
            play_fault(&s, 3, &p, k % 2);
            check_liar(&s, few);
            for (uint32_t w = 0; w < s.core->fleet.workers; w++)
                hold(&s, w == 1 || s.core->fleet.located[w] == 0);
            stage_close(&s);
        }
        kofn_plan_free(plan);
    }
}

/* ---- many faults --------------------------------------------------------- */

/* At least one worker stays and completes the products. */
static void random_events(void **state)
{
    size_t runs = (size_t)(300 * test_scale());

    (void)state;
    for (size_t run = 0; run < runs; run++) {
        kf_rng r = kf_rng_stream(run, KF_FOR_DATA, 1, 2);
        kofn_core_options o = {
            .size = sizeof o, .mu = 0.25, .late = run / 9 % 2 ? 1.5 : 0};
        kofn_plan *plan = stream_plan(specs[run % 9], 3);
        static stage s;

        stage_open(&s, plan, &o);
        while (s.products < 12 || some_open(&s)) {
            hold(&s, s.round < ROUNDS);
            begin_round(&s, s.products < 12);
            for (size_t k = 0; s.running; k++) {
                uint32_t who = (uint32_t)kf_rng_below(&r, s.P);
                size_t n = 0;
                given_task *e = NULL;

                hold(&s, k < 3000);
                s.now += UNIT / 8;
                ring(&s, s.now);
                if (kf_rng_below(&r, 25) == 0 && s.here[who] && present(&s) > 1)
                    happens(&s, &(fault){(int)kf_rng_below(&r, 2), who, 0});
                if (kf_rng_below(&r, 40) == 0 && s.P < MOST_WORKERS) {
                    happens(&s, &(fault){JOIN, 0, 0});
                    s.P++;
                }
                for (size_t i = 0; i < s.tasks; i++)
                    if (s.task[i].state == OUT && kf_rng_below(&r, ++n) == 0)
                        e = &s.task[i];
                if (!s.running || !e)
                    continue;
                e->state = CAME;
                tell(&s, (kofn_event){.type = KOFN_EV_RESULT,
                                      .worker = e->worker,
                                      .product = e->product,
                                      .task = e->task,
                                      .row = e->row});
            }
        }
        check_deadlines(&s);
        stage_close(&s);
        kofn_plan_free(plan);
    }
}

static void late_results(void **state)
{
    kofn_plan *plan = stream_plan("idip:W=3,N=4", 3);
    static stage s;
    given_task late = {.state = 0};

    (void)state;
    stage_open(&s, plan, NULL);
    begin_round(&s, true);
    play_round(&s, 4, 5); /* worker 2 is marked */
    assert_int_equal(s.mark[1][2], 1);
    for (size_t i = 0; i < s.tasks; i++)
        if (s.task[i].state == CANCELLED)
            late = s.task[i];
    assert_int_equal(late.worker, 2);
    for (int twice = 0; twice < 2; twice++)
        tell(&s, (kofn_event){.type = KOFN_EV_RESULT,
                              .worker = late.worker,
                              .product = late.product,
                              .task = late.task,
                              .row = late.row});
    begin_round(&s, true);
    for (size_t i = 0; i < s.tasks; i++) /* so it is not repeated */
        assert_false(s.task[i].round == 2 && s.task[i].product == 1 &&
                     s.task[i].row == late.row);
    play_round(&s, 0, 5);
    while (some_open(&s)) {
        begin_round(&s, false);
        play_round(&s, 0, 5);
    }
    check_deadlines(&s);
    stage_close(&s);
    kofn_plan_free(plan);
}

/* ---- no worker, and workers that do not answer --------------------------- */

static void no_worker_left(void **state)
{
    static const kofn_below below[] = {KOFN_BELOW_REFUSE, KOFN_BELOW_PAUSE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        kofn_core_options o = {
            .size = sizeof o, .below = below[i], .patience = KOFN_SECOND};
        kofn_plan *plan = stream_plan("dip:m=2,p=2,T=0", 2);
        static stage s;

        stage_open(&s, plan, &o);
        begin_round(&s, true);
        happens(&s, &(fault){LEAVE, 0, 0});
        happens(&s, &(fault){LEAVE, 1, 0});
        if (below[i] == KOFN_BELOW_REFUSE) {
            assert_int_equal(s.product[1].status, KOFN_TOOFEW);
            assert_false(s.running);
        } else { /* a joiner finishes it */
            assert_int_equal(s.product[1].ended, 0);
            s.P = 3;
            stage_join(&s, 2);
            play_round(&s, 0, 5);
            check_deadlines(&s);
        }
        stage_close(&s);
        kofn_plan_free(plan);
    }
}

static void patience(void **state)
{
    kofn_core_options o = {
        .size = sizeof o, .below = KOFN_BELOW_PAUSE, .patience = KOFN_SECOND};
    kofn_plan *plan = stream_plan("dip:m=2,p=2,T=0", 1);
    static stage s;

    (void)state;
    stage_open(&s, plan, &o);
    begin_round(&s, true);
    happens(&s, &(fault){LEAVE, 0, 0});
    assert_int_equal(kf_core_alarm(s.core), s.now + KOFN_SECOND);
    ring(&s, s.now + KOFN_SECOND);
    assert_int_equal(s.product[1].status, KOFN_LATE);
    stage_close(&s);
    kofn_plan_free(plan);
}

static void hanging(void **state)
{
    kofn_core_options o = {.size = sizeof o, .lease = KOFN_SECOND};
    kofn_plan *plan = stream_plan("uncoded", 3);
    kofn_action a;
    static stage s;
    bool given_up = false;

    (void)state;
    stage_open(&s, plan, &o);
    begin_round(&s, true);
    s.now += UNIT;
    answer(&s, 0);
    answer(&s, 1);
    assert_true(s.running);
    s.now = kf_core_alarm(s.core); /* 1 + mu */
    tell(&s, (kofn_event){.type = KOFN_EV_ALARM});
    s.now = kf_core_alarm(s.core);
    assert_true(s.now >= KOFN_SECOND);
    assert_ok(kofn_core_step(
        s.core, &(kofn_event){.type = KOFN_EV_ALARM, .now = s.now}));
    drop_tasks(&s, 2);
    while (kofn_core_next(s.core, &a)) {
        if (a.type == KOFN_DO_EVICT) {
            assert_int_equal(a.worker, 2);
            s.here[2] = false;
            given_up = true;
        } else {
            assert_int_equal(a.type, KOFN_DO_WORK);
            take_work(&s, &a);
        }
    }
    assert_true(given_up);
    s.now += UNIT;
    answer(&s, 0);
    check_deadlines(&s);
    assert_false(s.running);
    stage_close(&s);
    kofn_plan_free(plan);
}

/* Impossible events are dropped and counted, and have no effect. */
static void impossible_events(void **state)
{
    static const kofn_event wrong[] = {
        {.type = KOFN_EV_BEGIN},
        {.type = KOFN_EV_BEGIN, .product = 1, .m = 1, .n = 1, .p = 1},
        {.type = KOFN_EV_BEGIN, .product = 3, .m = 0, .n = 1, .p = 1},
        {.type = KOFN_EV_BEGIN, .product = 3, .m = SIZE_MAX, .n = 9, .p = 9},
        {.type = KOFN_EV_RESULT, .worker = 0, .product = 9, .task = 1},
        {.type = KOFN_EV_RESULT, .worker = 7, .product = 2, .task = 1},
        {.type = KOFN_EV_FAILED, .worker = 0, .product = 2, .task = 999},
        {.type = KOFN_EV_STORED, .worker = 0},
        {.type = KOFN_EV_VERDICT, .product = 2, .task = 0},
        {.type = KOFN_EV_JOINED, .worker = 1},
        {.type = KOFN_EV_LEFT, .worker = 6},
    };
    kofn_plan *plan = stream_plan("dip:m=2,p=2,T=0", 2);
    kf_core_view v;
    static stage s;

    (void)state;
    stage_open(&s, plan, NULL);
    begin_round(&s, true);
    play_round(&s, 0, 5);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tell(&s, wrong[i]);
        kf_core_look(s.core, 0, &v);
        assert_int_equal(v.dropped, i + 1);
    }
    begin_round(&s, true);
    tell(&s, (kofn_event){
                 .type = KOFN_EV_BEGIN, .product = 3, .m = 1, .n = 1, .p = 1});
    kf_core_look(s.core, 0, &v);
    assert_int_equal(v.dropped, sizeof wrong / sizeof *wrong + 1);
    play_round(&s, 0, 5);
    check_deadlines(&s);
    stage_close(&s);
    kofn_plan_free(plan);
}

TEST_FILE(stream_faults_test)
{
    const struct CMUnitTest tests[] = {
        TEST(one_fault,
             "stream: products are in time with one fault at any event"),
        TEST(
            faulty_worker,
            "stream: a faulty worker is named with another fault at any event"),
        TEST(random_events, "stream: products are in time under random faults"),
        TEST(late_results,
             "stream: a cancelled result counts once if it comes"),
        TEST(no_worker_left,
             "stream: without workers a product fails, or waits for a joiner"),
        TEST(patience, "stream: a product fails when the patience is over"),
        TEST(hanging,
             "stream: a hanging worker is evicted, and others do its task"),
        TEST(impossible_events,
             "stream: impossible events are dropped and counted"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
