/* stream_late_test.c -- streams of products with workers that stay and do not
 * answer. The wait for them is limited by `late`. Every product is still in
 * time, and the marks are those of the model. */
#include "stream_rig.h"

#include <stdio.h>

#define NEVER_ENDING 1000000 /* slowdown of a worker that never answers */

static const kofn_core_options impatient = {
    .size = sizeof impatient, .mu = 0.25, .late = 1.5};

static stage s;

static kofn_plan *up(const char *spec, size_t P, const kofn_core_options *o)
{
    kofn_plan *plan = stream_plan(spec, P);

    stage_open(&s, plan, o);
    s.pattern = NULL;
    return plan;
}

static void down(kofn_plan *plan)
{
    stage_close(&s);
    kofn_plan_free(plan);
}

/* ---- every pattern ------------------------------------------------------- */

typedef struct law {
    const char *spec;
    size_t P, rounds;
    size_t B, W, N; /* idip; B > 0: bursty, N is eps */
} law;

/* The first worker completes its list. Half of that time later all others are
 * late. The tasks that replace theirs are answered at once. */
static void check_time(const law *l)
{
    for (unsigned t = 1; t <= s.round; t++)
        hold(&s, s.took[t] <= (kofn_time)(s.slots[t] * UNIT * 3 / 2));
    check_deadlines(&s);
    if (l->W)
        hold(&s,
             l->B ? bursty(&s, l->B, l->W, l->N) : arbitrary(&s, l->W, l->N));
}

/* Decodes the pattern. True if at least one worker answers in every round. */
static bool spelt(const law *l, size_t bits, unsigned *slow)
{
    unsigned all = (1u << l->P) - 1;

    for (size_t t = 0; t < l->rounds; t++) {
        slow[t] = (unsigned)(bits >> t * l->P) & all;
        if (slow[t] == all)
            return false;
    }
    return true;
}

static void every_pattern(void **state)
{
    static const law laws[] = {
        {"dip:m=2,p=2,T=0", 3, 3, 0, 0, 0},
        {"dip:m=2,p=2,T=1", 2, 5, 0, 0, 0},
        {"dip:m=2,p=2,T=1,lambda=1,order=due", 2, 5, 0, 0, 0},
        {"dip:m=2,p=3,T=2", 3, 4, 0, 0, 0},
        {"dip:m=2,n=2,p=1,T=1,lambda=2", 3, 3, 0, 0, 0},
        {"idip:W=2,N=0", 3, 4, 0, 2, 0},
        {"idip:W=2,N=1", 2, 5, 0, 2, 1},
        {"idip:W=3,N=2,early=no", 2, 5, 0, 3, 2},
        {"idip:W=2,N=2,basis=monomial", 3, 4, 0, 2, 2},
        {"idip:model=bursty,B=1,W=2,eps=1", 3, 4, 1, 2, 1},
        {"idip:model=bursty,B=2,W=3,eps=1", 2, 5, 2, 3, 1},
        {"polynomial:m=1,p=3", 3, 3, 0, 0, 0},
        {"matdot:n=2", 3, 3, 0, 0, 0},
        {"uncoded", 3, 3, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
        const law *l = &laws[i];
        kofn_plan *plan = stream_plan(l->spec, l->P);
        unsigned slow[8];

        for (size_t x = 0; x >> (l->P * l->rounds) == 0; x++) {
            char text[20];

            if (!spelt(l, x, slow))
                continue;
            snprintf(text, sizeof text, "%zx", x);
            stage_open(&s, plan, &impatient);
            s.pattern = text;
            play(&s, l->rounds, slow, l->rounds, NEVER_ENDING);
            check_time(l);
            stage_close(&s);
        }
        kofn_plan_free(plan);
    }
}

/* ---- one rule at a time -------------------------------------------------- */

static given_task *task_of(uint32_t worker)
{
    for (size_t i = 0; i < s.tasks; i++)
        if (s.task[i].state == OUT && s.task[i].worker == worker)
            return &s.task[i];
    fail_msg("worker %u has no task", worker);
    return NULL;
}

static void comes(given_task *e)
{
    e->state = CAME;
    tell(&s, (kofn_event){.type = KOFN_EV_RESULT,
                          .worker = e->worker,
                          .product = e->product,
                          .task = e->task,
                          .row = e->row});
}

/* The limit is exact to the nanosecond, from the end of the last completed
 * list. */
static void late_factor(void **state)
{
    kofn_plan *plan = up("dip:m=1,p=3,T=0", 3, &impatient);

    (void)state;
    begin_round(&s, true);
    s.now += 2 * UNIT;
    comes(task_of(0));
    s.now += UNIT / 4;
    comes(task_of(1));
    ring(&s, 3 * UNIT + UNIT / 4 - 1);
    assert_true(s.running);
    assert_false(has_work(&s, 0) || has_work(&s, 1));
    ring(&s, 3 * UNIT + UNIT / 4);
    assert_true(has_work(&s, 0));
    comes(task_of(0));
    check_deadlines(&s);
    assert_false(s.running);
    down(plan);
}

/* The limit is not below the noise of a machine. */
static void late_minimum(void **state)
{
    kofn_core_options o = impatient;
    kofn_plan *plan;

    (void)state;
    o.late_least = 10 * UNIT;
    plan = up("dip:m=1,p=2,T=0", 2, &o);
    begin_round(&s, true);
    s.now += UNIT;
    comes(task_of(0));
    ring(&s, 11 * UNIT - 1);
    assert_false(has_work(&s, 0));
    ring(&s, 11 * UNIT);
    assert_true(has_work(&s, 0));
    down(plan);
}

static void no_limit(void **state)
{
    kofn_plan *plan = up("dip:m=1,p=2,T=0", 2, NULL);

    (void)state;
    begin_round(&s, true);
    s.now += UNIT;
    comes(task_of(0));
    ring(&s, KOFN_NEVER - 1);
    assert_true(s.running);
    assert_false(has_work(&s, 0));
    comes(task_of(1));
    check_deadlines(&s);
    down(plan);
}

/* A replacement may not answer either. Then another worker is asked. */
static void late_replacement(void **state)
{
    kofn_plan *plan = up("uncoded", 3, &impatient);

    (void)state;
    begin_round(&s, true);
    s.now += UNIT;
    comes(task_of(0));
    comes(task_of(1));
    ring(&s, 2 * UNIT);
    assert_true(has_work(&s, 0));
    assert_false(has_work(&s, 1));
    ring(&s, 20 * UNIT);
    assert_true(has_work(&s, 1));
    assert_int_equal(task_of(1)->row, task_of(0)->row);
    assert_int_equal(task_of(1)->row, task_of(2)->row);
    comes(task_of(1));
    check_deadlines(&s);
    assert_false(s.running || has_work(&s, 0) || has_work(&s, 2));
    down(plan);
}

/* The row is needed once, from either worker. */
static void late_first(void **state)
{
    kofn_plan *plan = up("matdot:n=2", 3, &impatient);
    given_task *late;

    (void)state;
    assert_int_equal(plan->layout.enough, 3);
    begin_round(&s, true);
    s.now += UNIT;
    comes(task_of(0));
    comes(task_of(1));
    late = task_of(2);
    ring(&s, 2 * UNIT);
    assert_int_equal(task_of(0)->row, late->row);
    comes(late);
    check_deadlines(&s);
    assert_false(s.running || has_work(&s, 0));
    down(plan);
}

/* Two of four workers are late. When one of them answers, its replacement has
 * no task left. The worker that answered may replace the other one. */
static void returning(void **state)
{
    kofn_plan *plan = up("uncoded", 4, &impatient);
    kofn_stream_round r;
    uint32_t idle = 0, busy = 1;
    given_task *e;

    (void)state;
    begin_round(&s, true);
    s.now += UNIT;
    comes(task_of(0));
    comes(task_of(1));
    ring(&s, 2 * UNIT);
    if (task_of(0)->row != task_of(2)->row) {
        idle = 1;
        busy = 0;
    }
    assert_int_equal(task_of(idle)->row, task_of(2)->row);
    assert_int_equal(task_of(busy)->row, task_of(3)->row);
    comes(task_of(2));
    assert_true(s.running);
    assert_false(has_work(&s, idle) || has_work(&s, 2));
    assert_true(s.core->stream.done[idle] != KOFN_NEVER);
    e = task_of(busy);
    e->state = LOST;
    tell(&s, (kofn_event){.type = KOFN_EV_FAILED,
                          .worker = busy,
                          .product = e->product,
                          .task = e->task,
                          .row = e->row});
    assert_true(has_work(&s, idle) || has_work(&s, 2));
    comes(task_of(has_work(&s, 2) ? 2 : idle));
    check_deadlines(&s);
    assert_false(s.running);
    kf_core_round(s.core, &r);
    assert_true(r.times[idle] != KOFN_NEVER && r.times[2] != KOFN_NEVER);
    down(plan);
}

/* The last available replacement was late itself. */
static void late_replaces(void **state)
{
    kofn_plan *plan = up("uncoded", 3, &impatient);
    given_task *e;

    (void)state;
    begin_round(&s, true);
    s.now += UNIT;
    comes(task_of(0));
    ring(&s, 2 * UNIT);
    comes(task_of(1));
    e = task_of(0);
    e->state = LOST;
    tell(&s, (kofn_event){.type = KOFN_EV_FAILED,
                          .worker = 0,
                          .product = e->product,
                          .task = e->task,
                          .row = e->row});
    assert_int_equal(task_of(1)->row, task_of(2)->row);
    comes(task_of(1));
    check_deadlines(&s);
    down(plan);
}

/* If all workers are slow, none is replaced until one is done. */
static void all_slow(void **state)
{
    kofn_plan *plan = up("dip:m=1,p=2,T=0", 2, &impatient);

    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        kofn_time until = s.now + (twice ? 100000 : 1000) * UNIT;
        size_t tasks = s.tasks;

        begin_round(&s, true);
        ring(&s, until);
        assert_int_equal(s.tasks, tasks + 2);
        s.now = until;
        comes(task_of(0));
        assert_false(has_work(&s, 0));
        comes(task_of(1));
        assert_false(s.running);
    }
    check_deadlines(&s);
    down(plan);
}

/* A worker joins while the only worker with tasks does not answer. */
static void joiner_replaces(void **state)
{
    kofn_plan *plan = up("dip:m=1,p=2,T=0", 2, &impatient);

    (void)state;
    begin_round(&s, true);
    s.now += UNIT;
    comes(task_of(0));
    comes(task_of(1));
    begin_round(&s, true);
    for (size_t i = 0; i < s.tasks; i++)
        if (s.task[i].state == OUT && s.task[i].worker == 0)
            s.task[i].state = LOST;
    s.here[0] = false;
    tell(&s, (kofn_event){.type = KOFN_EV_LEFT, .worker = 0});
    stage_join(&s, 2);
    assert_false(has_work(&s, 2));
    ring(&s, s.now + 100 * UNIT);
    answer(&s, 2);
    check_deadlines(&s);
    assert_false(s.running);
    down(plan);
}

/* A mark that the scheme does not admit is not made, but shown. */
static void excused(void **state)
{
    kofn_plan *plan = up("idip:W=2,N=1", 3, &impatient);

    (void)state;
    for (unsigned t = 1; t <= 6; t++) {
        begin_round(&s, true);
        play_round(&s, 4, NEVER_ENDING);
        assert_int_equal(s.mark[t][0] + s.mark[t][1], 0);
        assert_int_equal(s.mark[t][2], t % 2 ? KOFN_MARKED : KOFN_EXCUSED);
    }
    assert_true(arbitrary(&s, 2, 1));
    down(plan);
}

/* ---- with a faulty worker ------------------------------------------------ */

#define LEASE (500 * UNIT)

typedef struct stopped {
    const char *spec;
    size_t P;
    bool liar; /* worker 0 is faulty; the last one never answers */
    kofn_status is;
    bool lease; /* one round takes the time of the lease */
} stopped;

static void play_stopped(const stopped *x)
{
    kofn_core_options o = impatient;
    kofn_plan *plan;
    unsigned leases = 0;

    o.lease = LEASE;
    o.errors = KOFN_ERRORS_PROBABILISTIC;
    o.quarantine = 100;
    plan = up(x->spec, x->P, &o);
    s.liar[0] = x->liar;
    while (s.products < 4 || some_open(&s)) {
        begin_round(&s, s.products < 4);
        play_round(&s, 1u << (x->P - 1), NEVER_ENDING);
        if (s.took[s.round] >= LEASE)
            leases++;
        else
            hold(&s, s.took[s.round] <= (kofn_time)(s.list[1] * UNIT * 3 / 2));
    }
    hold(&s, leases == x->lease && s.here[x->P - 1] == !x->lease);
    for (size_t i = 1; i <= s.products; i++) {
        hold(&s, s.product[i].status == x->is);
        hold(&s, s.product[i].ended <= s.product[i].began + plan->layout.delay);
    }
    for (size_t w = 0; w < x->P; w++)
        hold(&s, (s.core->fleet.located[w] > 0) ==
                     (w == 0 && x->liar && x->is == KOFN_OK));
    down(plan);
}

/* Codes with a limited number of rows give no late worker's rows to others. If
 * one of these were faulty, it would have more wrong rows. The answers that
 * are there are checked without the late one. If they do not suffice, the
 * lease decides. */
static void late_and_faulty(void **state)
{
    static const stopped cases[] = {
        {"polynomial:m=1,p=2,basis=circle", 5, true, KOFN_OK, false},
        {"matdot:n=2", 6, true, KOFN_OK, false},
        {"idip:W=2,N=3,basis=monomial", 5, true, KOFN_OK, false},
        {"dip:m=2,p=2,T=1,basis=monomial", 5, true, KOFN_OK, false},
        {"dip:m=2,p=2,T=1", 4, true, KOFN_OK, false},
        {"matdot:n=2", 5, false, KOFN_OK, false},
        {"dip:m=2,n=2,p=1,T=0", 4, false, KOFN_OK, true},
        {"matdot:n=2", 4, false, KOFN_TOOFEW, true},
        {"matdot:n=2", 5, true, KOFN_CORRUPT, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        play_stopped(&cases[i]);
}

TEST_FILE(stream_late_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_pattern,
             "stream: products are in time if late workers never answer"),
        TEST(late_factor,
             "stream: a worker is late after `late` times the first's time"),
        TEST(late_minimum, "stream: a worker is not late before late_least"),
        TEST(no_limit, "stream: without `late` all answers are waited for"),
        TEST(late_replacement,
             "stream: a replacement that is late is replaced, too"),
        TEST(late_first, "stream: a late answer counts if it comes first"),
        TEST(returning,
             "stream: a late worker that answers may replace others"),
        TEST(late_replaces,
             "stream: a worker that was late may replace another"),
        TEST(all_slow,
             "stream: if all are slow none is replaced until one is done"),
        TEST(joiner_replaces,
             "stream: a joiner replaces a worker that does not answer"),
        TEST(excused,
             "stream: marks that the scheme does not admit are excused"),
        TEST(late_and_faulty,
             "stream: checked products do not wait for late workers"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
