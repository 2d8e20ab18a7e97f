/* stream_rules_test.c -- tests the rules of a stream's rounds one by one.
 *
 * The rules say when a round ends and which workers are marked then.  They say
 * which workers are asked for the missing rows of a due product, when a product
 * that keeps its answers is over, and which rows are plain. */
#include "stream_rig.h"

#include <stdio.h>

static stage s;

static void up(const char *spec, size_t P, kofn_plan **plan)
{
    *plan = stream_plan(spec, P);
    stage_open(&s, *plan, NULL);
    s.pattern = NULL;
}

static void down(kofn_plan *plan)
{
    stage_close(&s);
    kofn_plan_free(plan);
}

static given_task *task_of(uint32_t worker, uint32_t product)
{
    for (size_t i = 0; i < s.tasks; i++)
        if (s.task[i].state == OUT && s.task[i].worker == worker &&
            s.task[i].product == product)
            return &s.task[i];
    fail_msg("worker %u has no task of product %u", worker, product);
    return NULL;
}

/* Ends the worker's task of that product by a result or a failure. */
static void over(kofn_event_type how, uint32_t worker, uint32_t product)
{
    given_task *e = task_of(worker, product);

    e->state = how == KOFN_EV_RESULT ? CAME : LOST;
    tell(&s, (kofn_event){.type = how,
                          .worker = worker,
                          .product = product,
                          .task = e->task,
                          .row = e->row});
}

static void comes(uint32_t worker, uint32_t product)
{
    over(KOFN_EV_RESULT, worker, product);
}

/* Sends the result of a cancelled task of that product. */
static void comes_late(uint32_t worker, uint32_t product)
{
    for (size_t i = 0; i < s.tasks; i++) {
        given_task *e = &s.task[i];

        if (e->state != CANCELLED || e->worker != worker ||
            e->product != product)
            continue;
        tell(&s, (kofn_event){.type = KOFN_EV_RESULT,
                              .worker = worker,
                              .product = product,
                              .task = e->task,
                              .row = e->row});
        return;
    }
    fail_msg("nothing of worker %u was taken back", worker);
}

/* Returns the number of rows of the newest product that have arrived. */
static size_t here(void)
{
    return kf_newest(s.core)->p.ledger[0].cell[0].count;
}

static void leaves(uint32_t worker)
{
    for (size_t i = 0; i < s.tasks; i++)
        if (s.task[i].worker == worker && s.task[i].state == OUT)
            s.task[i].state = LOST;
    s.here[worker] = false;
    tell(&s, (kofn_event){.type = KOFN_EV_LEFT, .worker = worker});
}

/* The time is exact to the nanosecond and counts from the beginning of the
 * round. */
static void round_ends_after_mu(void **state)
{
    kofn_plan *plan;

    (void)state;
    up("dip:m=2,p=2,T=1,lambda=1", 2, &plan);
    s.now = 7 * UNIT;
    begin_round(&s, true);
    s.now += UNIT;
    comes(0, 1);
    assert_int_equal(kf_core_alarm(s.core), 8 * UNIT + UNIT / 4);
    s.now = 8 * UNIT + UNIT / 4 - 1;
    tell(&s, (kofn_event){.type = KOFN_EV_ALARM});
    assert_true(s.running);
    s.now++;
    tell(&s, (kofn_event){.type = KOFN_EV_ALARM});
    assert_false(s.running);
    assert_int_equal(s.mark[1][0], 0);
    assert_int_equal(s.mark[1][1], 1);
    down(plan);
}

/* The time does not count from later lists, nor from a worker that has
 * answered nothing. It works also if the first worker took no measurable time.
 */
static void patience_from_the_first(void **state)
{
    kofn_plan *plan;

    (void)state;
    up("dip:m=2,p=2,T=1,lambda=1", 4, &plan);
    begin_round(&s, true);
    s.now += UNIT / 2;
    over(KOFN_EV_FAILED, 3, 1);
    assert_true(kf_core_alarm(s.core) == KOFN_NEVER);
    s.now += UNIT / 2;
    comes(0, 1);
    s.now += UNIT / 8;
    comes(1, 1);
    assert_int_equal(kf_core_alarm(s.core), UNIT + UNIT / 4);
    down(plan);

    up("dip:m=2,p=2,T=1,lambda=1", 2, &plan);
    begin_round(&s, true);
    comes(0, 1);
    assert_int_equal(kf_core_alarm(s.core), s.began + 1);
    down(plan);
}

/* The marks would be few enough after the first of two simultaneous answers.
 * The order of messages must not mark the other worker. */
static void simultaneous_is_not_marked(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        kofn_plan *plan;

        up("idip:W=2,N=1", 4, &plan);
        begin_round(&s, true);
        s.now += UNIT;
        comes(0, 1);
        ring(&s, s.now + UNIT / 4);
        assert_true(s.running); /* three marks are too many */
        s.now += UNIT;
        comes(1, 1);
        comes(2, 1);
        assert_true(s.running);
        assert_int_equal(kf_core_alarm(s.core), s.now);
        if (all)
            comes(3, 1);
        else
            ring(&s, s.now);
        assert_false(s.running);
        assert_int_equal(s.mark[1][3], !all);
        for (size_t w = 0; w < 3; w++)
            assert_int_equal(s.mark[1][w], 0);
        down(plan);
    }
}

static void half_done_is_marked(void **state)
{
    kofn_plan *plan;

    (void)state;
    up("dip:m=2,p=2,T=2,lambda=1", 2, &plan);
    begin_round(&s, true);
    s.now += UNIT;
    comes(0, 1);
    comes(1, 1);
    assert_false(s.running);
    begin_round(&s, true);
    assert_int_equal(s.list[1], 2);
    s.now += UNIT;
    comes(0, 1);
    comes(0, 2);
    comes(1, 2);
    ring(&s, s.now + UNIT);
    assert_false(s.running);
    assert_int_equal(s.mark[2][0], 0);
    assert_int_equal(s.mark[2][1], 1);
    down(plan);
}

/* The list counts as done also if its tasks were cancelled. */
static void ended_product_is_done_by_all(void **state)
{
    kofn_stream_round r;
    kofn_plan *plan;

    (void)state;
    up("dip:m=1,p=2,T=0,lambda=1", 2, &plan);
    begin_round(&s, true);
    s.now += UNIT;
    comes(1, 1);
    s.now += UNIT;
    comes(0, 1);
    assert_false(s.running);
    kf_core_round(s.core, &r);
    for (size_t w = 0; w < 2; w++) {
        assert_int_equal(r.mark[w], 0);
        assert_int_equal(r.times[w], 2 * UNIT);
    }
    down(plan);
}

/* Worker 1 is late in the first round, and is asked for the same rows in the
 * second. */
static kofn_plan *one_is_late(void)
{
    kofn_plan *plan;

    up("idip:W=3,N=2", 2, &plan);
    begin_round(&s, true);
    s.now += UNIT;
    comes(0, 1);
    ring(&s, s.now + UNIT);
    assert_false(s.running);
    assert_int_equal(s.mark[1][1], 1);
    return plan;
}

static void late_answers_end_their_repeats(void **state)
{
    kofn_plan *plan = one_is_late();
    size_t dropped = s.core->dropped;

    (void)state;
    begin_round(&s, false);
    assert_int_equal(s.product[1].repeats, 1);
    assert_true(has_work(&s, 1));
    assert_int_equal(here(), 1);
    comes_late(1, 1);
    assert_false(has_work(&s, 1));
    assert_int_equal(here(), 2);
    assert_int_equal(s.core->dropped, dropped);
    comes_late(1, 1);
    assert_int_equal(here(), 2);
    assert_int_equal(s.core->dropped, dropped + 1);
    down(plan);
}

static void lost_worker_answers_no_more(void **state)
{
    kofn_plan *plan = one_is_late();

    (void)state;
    leaves(1);
    comes_late(1, 1);
    assert_int_equal(here(), 1);
    down(plan);
}

/* The product is over before any answer of that round. */
static void kept_product_ends_when_due(void **state)
{
    kofn_plan *plan;

    (void)state;
    up("idip:W=3,N=2,early=no", 2, &plan);
    assert_int_equal(plan->layout.enough, 4);
    for (unsigned round = 1; round <= 2; round++) {
        begin_round(&s, round == 1);
        s.now += UNIT;
        comes(0, 1);
        comes(1, 1);
        assert_false(s.running);
        assert_int_equal(s.product[1].ended, 0);
    }
    begin_round(&s, false);
    assert_int_equal(s.product[1].ended, 3);
    down(plan);
}

/* Two of five answers have arrived, and two are asked for. The missing one is
 * asked of both live workers. */
static void due_row_is_asked_of_all(void **state)
{
    kofn_plan *plan;

    (void)state;
    up("idip:W=2,N=3", 4, &plan);
    assert_int_equal(plan->layout.enough, 5);
    begin_round(&s, true);
    leaves(2);
    leaves(3);
    s.now += UNIT;
    comes(0, 1);
    comes(1, 1);
    begin_round(&s, false);
    assert_int_equal(s.list[0], 2);
    assert_int_equal(s.list[1], 2);
    assert_int_equal(s.core->stream.caught, 2);
    down(plan);
}

/* The order of the workers' numbers does not matter. */
static void idle_workers_first(void **state)
{
    (void)state;
    for (uint32_t idle = 1; idle <= 2; idle++) {
        uint32_t busy = 3 - idle;
        kofn_plan *plan;

        up("dip:m=2,p=2,T=1,lambda=5,plain=no", 5, &plan);
        begin_round(&s, true);
        s.now += UNIT;
        comes(0, 1);
        ring(&s, s.now + UNIT);
        assert_false(s.running);
        begin_round(&s, true);
        leaves(4);
        leaves(3);
        s.now += UNIT;
        comes(busy, 1);
        comes(idle, 2);
        comes(idle, 1);
        assert_int_equal(s.core->stream.caught, 0);
        over(KOFN_EV_FAILED, 0, 1);
        assert_int_equal(s.core->stream.caught, 1);
        comes(idle, 1);
        assert_int_equal(s.product[1].ended, 2);
        down(plan);
    }
}

/* The scheme itself asks for enough rows. */
static void lambda_counts_live_workers(void **state)
{
    kofn_plan *plan;

    (void)state;
    up("dip:m=2,p=3,T=0,lambda=3", 3, &plan);
    leaves(1);
    begin_round(&s, true);
    assert_int_equal(s.list[0], 3);
    assert_int_equal(s.list[2], 3);
    assert_int_equal(s.core->stream.caught, 0);
    down(plan);
}

/* ---- plain rows ---------------------------------------------------------- */

#define LONGEST 12

typedef struct history {
    size_t P, rounds;
    bool mark[LONGEST][3]; /* the first round first */
} history;

typedef struct model {
    size_t W, B, most; /* B == 0: at most `most` marks; else workers */
} model;

/* True if every window conforms to the model. */
static bool conforms(const history *h, const model *m)
{
    for (size_t from = 0; from < h->rounds; from++) {
        size_t marks = 0, workers = 0;

        for (size_t w = 0; w < h->P; w++) {
            size_t first = SIZE_MAX, last = 0;

            for (size_t t = from; t < from + m->W && t < h->rounds; t++)
                if (h->mark[t][w]) {
                    marks++;
                    first = first == SIZE_MAX ? t : first;
                    last = t;
                }
            workers += first != SIZE_MAX;
            if (m->B && first != SIZE_MAX && last - first >= m->B)
                return false;
        }
        if ((m->B ? workers : marks) > m->most)
            return false;
    }
    return true;
}

static void ask_in(const kofn_plan *plan, const model *m, const history *h,
                   size_t age, size_t who)
{
    size_t left = plan->layout.delay + 1 - age, marked[LONGEST] = {0};
    size_t seen = h->rounds < m->W ? h->rounds : m->W;
    uint8_t mark[LONGEST * 3] = {0};
    history longer = *h;
    kofn_ask ask;

    for (size_t r = 0; r < seen; r++)
        for (size_t w = 0; w < h->P; w++) {
            mark[r * h->P + w] = h->mark[h->rounds - 1 - r][w];
            marked[r] += mark[r * h->P + w];
        }
    for (size_t t = 0; t < left; t++)
        longer.mark[longer.rounds++][who] = true;
    plan->scheme->ask(
        &plan->layout,
        &(kofn_pending){.age = age, .plain_left = 1, .live = h->P},
        &(kofn_past){seen, h->P, marked, mark}, who, &ask);
    if (ask.plain == conforms(&longer, m))
        fail_msg("%s: %zu rounds are over, age %zu, worker %zu: %s", plan->spec,
                 h->rounds, age, who, ask.plain ? "plain" : "not plain");
}

/* Checks after every history that a row is plain exactly if the model forbids
 * marking the worker in all rounds that the product has left. */
static void plain_rows_are_those_that_come(const char *spec, size_t P,
                                           const model *m)
{
    kofn_plan *plan = stream_plan(spec, P);

    for (size_t rounds = 0; rounds <= 4; rounds++)
        for (size_t bits = 0; bits >> rounds * P == 0; bits++) {
            history h = {.P = P, .rounds = rounds};

            for (size_t i = 0; i < rounds * P; i++)
                h.mark[i / P][i % P] = bits >> i & 1;
            if (!conforms(&h, m))
                continue;
            for (size_t age = 0; age <= plan->layout.delay && age <= rounds;
                 age++)
                for (size_t who = 0; who < P; who++)
                    ask_in(plan, m, &h, age, who);
        }
    kofn_plan_free(plan);
}

static void plain_after_every_history(void **state)
{
    (void)state;
    for (size_t P = 2; P <= 3; P++)
        for (size_t W = 2; W <= 3; W++) {
            char spec[80];

            for (size_t N = 0; N < P * W; N++) {
                snprintf(spec, sizeof spec, "idip:W=%zu,N=%zu", W, N);
                plain_rows_are_those_that_come(spec, P, &(model){W, 0, N});
            }
            for (size_t B = 1; B < W; B++)
                for (size_t eps = 1; eps <= P; eps++) {
                    snprintf(spec, sizeof spec,
                             "idip:model=bursty,W=%zu,B=%zu,eps=%zu", W, B,
                             eps);
                    plain_rows_are_those_that_come(spec, P,
                                                   &(model){W, B, eps});
                }
        }
}

TEST_FILE(stream_rules_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            round_ends_after_mu,
            "stream: a round ends 1 + mu times after the first worker is done"),
        TEST(patience_from_the_first,
             "stream: the patience counts from the first list that is done"),
        TEST(simultaneous_is_not_marked,
             "stream: workers done at the same instant are not marked"),
        TEST(half_done_is_marked,
             "stream: a worker with a part of its list done is marked"),
        TEST(late_answers_end_their_repeats,
             "stream: a late answer ends its repeat and counts once"),
        TEST(lost_worker_answers_no_more,
             "stream: an answer of a lost worker does not count"),
        TEST(ended_product_is_done_by_all,
             "stream: a list is done if its product is over"),
        TEST(kept_product_ends_when_due,
             "stream: a product ends as its due round begins (early=no)"),
        TEST(due_row_is_asked_of_all,
             "stream: a due product's missing row is asked of all workers"),
        TEST(idle_workers_first,
             "stream: the worker with least work is asked first"),
        TEST(lambda_counts_live_workers,
             "stream: lambda counts the live workers"),
        TEST(plain_after_every_history,
             "stream: rows are plain only if they must come (every history)"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
