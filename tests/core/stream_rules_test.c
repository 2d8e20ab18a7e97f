/* stream_rules_test.c -- the rules of a stream's rounds one by one: when a
 * round ends and who is marked then, who is asked for what a due product lacks,
 * when a product that keeps its answers is over, and which rows are plain. */
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

static errand *task_of(uint32_t worker, uint32_t product)
{
    for (size_t i = 0; i < s.errands; i++)
        if (s.errand[i].state == OUT && s.errand[i].worker == worker &&
            s.errand[i].product == product)
            return &s.errand[i];
    fail_msg("worker %u has no task of product %u", worker, product);
    return NULL;
}

/* A task of that product comes, or fails. */
static void over(kofn_event_type how, uint32_t worker, uint32_t product)
{
    errand *e = task_of(worker, product);

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

/* What was taken back of that product comes all the same. */
static void comes_late(uint32_t worker, uint32_t product)
{
    for (size_t i = 0; i < s.errands; i++) {
        errand *e = &s.errand[i];

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

/* Rows of the newest product that are here. */
static size_t here(void)
{
    return kf_newest(s.core)->p.ledger[0].cell[0].count;
}

static void leaves(uint32_t worker)
{
    for (size_t i = 0; i < s.errands; i++)
        if (s.errand[i].worker == worker && s.errand[i].state == OUT)
            s.errand[i].state = LOST;
    s.here[worker] = false;
    tell(&s, (kofn_event){.type = KOFN_EV_LEFT, .worker = worker});
}

/* To the nanosecond when 1 + mu times as long as the first took have passed,
 * from the beginning of the round. */
static void patience_is_that_of_mu(void **state)
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

/* ... and not when others are done, nor from who has answered nothing; also
 * where the first took no time that can be told. */
static void patience_is_from_the_first(void **state)
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

/* Two of one instant are both done, though after the first of them the marks
 * would have been few enough: who is done is not marked for the order of
 * messages. */
static void who_is_done_at_once_is_not_marked(void **state)
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

/* Who has done some of its list has not done it. */
static void who_has_done_half_is_marked(void **state)
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

/* Whose tasks are taken back, for the product is over, has done its list. */
static void what_is_over_is_done_by_all(void **state)
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

/* Worker 1 is late in the first round, and is asked for the same in the
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

/* What comes late need not be done once more, and counts once. */
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

/* ... and not at all once its worker is gone. */
static void who_is_gone_answers_no_more(void **state)
{
    kofn_plan *plan = one_is_late();

    (void)state;
    leaves(1);
    comes_late(1, 1);
    assert_int_equal(here(), 1);
    down(plan);
}

/* early=no: it is over as its due round begins, before anything more comes. */
static void what_was_kept_is_over_when_due(void **state)
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

/* Of five answers two are here and two are asked for: the one that is short is
 * asked of both who are left. */
static void the_net_is_cast_over_all(void **state)
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

/* In the middle of a round who has least in hand is asked, wherever it stands
 * among the others. */
static void the_idle_are_asked_first(void **state)
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

/* lambda is of those who are there: the scheme itself asks for enough. */
static void lambda_counts_who_is_there(void **state)
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

/* Does every window keep to the model? */
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

/* A row is plain if and only if a worker cannot be marked, within the model, in
 * all rounds that the product has left: after every history. */
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
        cmocka_unit_test(patience_is_that_of_mu),
        cmocka_unit_test(patience_is_from_the_first),
        cmocka_unit_test(who_is_done_at_once_is_not_marked),
        cmocka_unit_test(who_has_done_half_is_marked),
        cmocka_unit_test(late_answers_end_their_repeats),
        cmocka_unit_test(who_is_gone_answers_no_more),
        cmocka_unit_test(what_is_over_is_done_by_all),
        cmocka_unit_test(what_was_kept_is_over_when_due),
        cmocka_unit_test(the_net_is_cast_over_all),
        cmocka_unit_test(the_idle_are_asked_first),
        cmocka_unit_test(lambda_counts_who_is_there),
        cmocka_unit_test(plain_after_every_history),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
