/* core_faults_test.c -- the coordinator alone when workers leave or are too
 * few. */
#include "core_rig.h"

/* ---- (d) work in hand when a worker leaves ------------------------------- */

/* Four fifths of the results are here when worker `gone` leaves: how many
 * strips are asked for again? */
static void lose_one(kofn_in_flight mode, size_t pieces, uint32_t gone)
{
    kofn_core_options opt = {
        .size = sizeof opt, .in_flight = mode, .pieces = (unsigned)pieces};
    size_t before, again = 0, missing = 0, open;
    body b;

    fleet_open(&b, "elastic:k=3,basis=gauss", 5, 40, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    for (size_t i = 0; i < b.errands; i++)
        if (b.errand[i].worker != gone || i % 2)
            answer(&b, i, KOFN_EV_RESULT);
    for (size_t i = 0; i < b.errands; i++)
        if (b.errand[i].worker == gone && b.errand[i].state == OUT)
            missing += b.errand[i].hi - b.errand[i].lo;
    open = open_strips(&b);
    assert_true(open > 0 && open < 40 && missing > 0);
    before = b.errands;
    say(&b, KOFN_EV_LEFT, gone);
    again = asked_of_all(&b, before);
    if (mode == KOFN_IN_FLIGHT_LEDGER)
        assert_int_equal(again, missing);
    else if (mode == KOFN_IN_FLIGHT_KEEP)
        assert_int_equal(again, 3 * open);
    else
        assert_int_equal(again, 3 * 40);
    assert_int_equal(asked(&b, gone, before), 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

static void in_flight_modes(void **state)
{
    (void)state;
    for (uint32_t gone = 0; gone < 5; gone++)
        for (int mode = 0; mode < 3; mode++)
            lose_one((kofn_in_flight)mode, 6, gone);
}

/* What begins anew is dealt in as many tasks as at first, however what was lost
 * had been cut. */
static void what_begins_anew_is_whole(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .in_flight = KOFN_IN_FLIGHT_KEEP, .pieces = 4};
    size_t first;
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=3,basis=gauss", 9, 240, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    first = b.errands;
    for (uint32_t gone = 0; gone < 5; gone++) {
        size_t before = b.errands;

        for (size_t i = 0, told = 0; i < b.errands && told < 3; i++)
            if (b.errand[i].state == OUT && b.errand[i].worker % 2) {
                answer(&b, i, KOFN_EV_RESULT);
                told++;
            }
        say(&b, KOFN_EV_LEFT, gone);
        assert_true(b.errands > before);
        assert_true(b.errands - before <= first);
    }
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* Results of a worker that has left since stay valid, in the ledger. */
static void the_dead_are_believed(void **state)
{
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=2,basis=gauss", 3, 6, NULL);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_worker(&b, 1);
    size_t before = b.errands;
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.errands, before); /* nothing to ask again */
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* A notice: nothing new is dealt to the worker, what it has it may finish. */
static void a_notice_lets_work_finish(void **state)
{
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=2,basis=gauss", 4, 8, NULL);
    say(&b, KOFN_EV_BEGIN, 0);
    size_t before = b.errands;
    say(&b, KOFN_EV_LEAVING, 2);
    assert_int_equal(b.errands, before);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    say(&b, KOFN_EV_BEGIN, 0);
    assert_int_equal(asked(&b, 2, 0), 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* A task that failed is not given to the same worker again in this round. */
static void whoever_fails_is_not_asked_again(void **state)
{
    static const char *const specs[] = {"elastic:k=2,basis=gauss",
                                        "mds:k=2,basis=gauss", "uncoded",
                                        "replication:k=2"};

    (void)state;
    for (size_t s = 0; s < 4; s++)
        for (unsigned pieces = 1; pieces < 4; pieces += 2) {
            kofn_core_options opt = {.size = sizeof opt, .pieces = pieces};
            body b;

            fleet_open(&b, specs[s], 4, 8, &opt);
            say(&b, KOFN_EV_BEGIN, 0);
            answer(&b, 0, KOFN_EV_FAILED); /* the account checks the rest */
            answer_all(&b);
            assert_false(b.running);
            assert_int_equal(b.ended, s == 2 ? KOFN_TOOFEW : KOFN_OK);
            say(&b, KOFN_EV_BEGIN, 0); /* but in the next */
            answer_all(&b);
            assert_int_equal(b.ended, KOFN_OK);
            body_close(&b);
        }
}

/* ---- (e) below the threshold --------------------------------------------- */

static void refuse(void **state)
{
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=3,basis=gauss", 4, 6, NULL);
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 0);
    assert_true(b.running);
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    /* between rounds nothing is lost: with a joiner it goes on */
    join_and_store(&b);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* Somebody who is storing its block is waited for even under REFUSE, and
 * those who came during the round are called when it cannot end without. */
static void reserves_are_called(void **state)
{
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=3,basis=gauss", 3, 6, NULL);
    say(&b, KOFN_EV_BEGIN, 0);
    uint32_t late = join_and_store(&b); /* seat 3, a fresh row */
    assert_int_equal(b.man[late].seat, 3);
    assert_int_equal(asked(&b, late, 0), 0);
    say(&b, KOFN_EV_LEFT, 0);
    assert_true(asked(&b, late, 0) > 0);
    uint32_t later = join(&b);
    assert_int_equal(b.man[later].seat, 0);
    say(&b, KOFN_EV_LEFT, 1);
    assert_true(b.running); /* `later` is storing */
    say(&b, KOFN_EV_STORED, later);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    say(&b, KOFN_EV_BEGIN, 0);
    later = join(&b);
    say(&b, KOFN_EV_LEFT, 2);
    say(&b, KOFN_EV_LEFT, later);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    body_close(&b);
}

static void pause_and_patience(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .patience = 1000};
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=3,basis=gauss", 4, 6, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 50;
    say(&b, KOFN_EV_LEFT, 0);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER);
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(kf_core_alarm(b.core), 1050);
    b.now = 500; /* a second loss does not start the clock anew */
    say(&b, KOFN_EV_LEFT, 2);
    assert_int_equal(kf_core_alarm(b.core), 1050);
    say(&b, KOFN_EV_ALARM, 0); /* rings too early: nothing happens */
    assert_true(b.running);
    for (int i = 0; i < 2; i++)
        join_and_store(&b);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 3);
    b.now = kf_core_alarm(b.core);
    assert_int_equal(b.now, 1500);
    say(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.ended, KOFN_LATE);
    assert_non_null(strstr(kofn_errmsg(), "patience"));
    body_close(&b);
}

/* Whoever pauses for ever is not made impatient by the alarm for stragglers. */
static void lateness_is_not_impatience(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .late = 2};
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=3,basis=gauss", 4, 8, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 0);
    say(&b, KOFN_EV_LEFT, 1);
    for (uint32_t w = 2; w < 4; w++) { /* everybody that is left is ready */
        b.now += 100;
        answer_worker(&b, w);
    }
    assert_true(b.running);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER);
    b.now += 1000000;
    say(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    join_and_store(&b);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* Waiting cannot help when every seat that can exist has answered. */
static void pausing_does_not_heal_instability(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .tolerance = 1e-17};
    body b;

    (void)state;
    fleet_open(&b, "mds:k=3,basis=chebyshev", 4, 6, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_UNSTABLE);
    body_close(&b);
}

/* How many workers a round waits for: one more than there are where what they
 * answered is refused. */
static void what_is_needed_is_counted_in_workers(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .tolerance = 1e-17};
    kf_core_view v;
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=3,basis=gauss", 4, 6, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.needed, 0);
    answer_all(&b);
    assert_true(b.running);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.live, 4);
    assert_int_equal(v.needed, 5);
    body_close(&b);
}

/* A systematic code in want of workers hands over the plain blocks. */
static void degrade(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        kofn_core_options opt = {.size = sizeof opt,
                                 .below = KOFN_BELOW_DEGRADE,
                                 .in_flight = (kofn_in_flight)mode};
        body b;

        fleet_open(&b, "elastic:k=3,basis=gauss_sys", 4, 6, &opt);
        say(&b, KOFN_EV_BEGIN, 0);
        say(&b, KOFN_EV_LEFT, 3);
        say(&b, KOFN_EV_LEFT, 1);
        /* 0 and 2 hold plain blocks and compute all of them */
        answer_worker(&b, 0);
        assert_true(b.running);
        say(&b, KOFN_EV_LEFT, 2);
        assert_int_equal(b.ended, KOFN_PARTIAL);
        assert_true(asked(&b, 0, 0) >= 6);
        /* what is left of the last decoder is block 0 */
        body_close(&b);
    }
}

/* Strips of the round for which the want `w` was not lost. */
static size_t plain_strips(kofn_core *c, size_t w)
{
    kofn_action a;
    size_t n = 0;

    while (kofn_core_next(c, &a))
        if (a.type == KOFN_DO_DECODE && a.decoder->copy[w] != KF_LOST)
            n += a.hi - a.lo;
    return n;
}

/* Every mode delivers all plain blocks of those who are left, however they
 * went: nothing that is there is given up. */
static void degraded_rounds_give_all_there_is(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss_sys", 3, 6);

    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        kofn_core_options opt = {.size = sizeof opt,
                                 .below = KOFN_BELOW_DEGRADE,
                                 .in_flight = (kofn_in_flight)mode};
        kofn_event ev;
        kofn_action work[200];
        size_t works = 0, plain = 0;
        kofn_core *c;
        kofn_action a;

        assert_ok(kf_core_new(&c, p, &opt));
        for (uint32_t w = 0; w < 6; w++) {
            ev = (kofn_event){.type = w % 2 ? KOFN_EV_STORED : KOFN_EV_JOINED,
                              .worker = w / 2};
            assert_ok(kofn_core_step(c, &ev));
            while (kofn_core_next(c, &a))
                continue;
        }
        for (int e = 0; e < 3; e++) { /* begin; 1 leaves; 2 leaves */
            ev = (kofn_event){.type = e ? KOFN_EV_LEFT : KOFN_EV_BEGIN,
                              .worker = (uint32_t)e,
                              .product = 1};
            assert_ok(kofn_core_step(c, &ev));
            while (kofn_core_next(c, &a)) {
                assert_true(a.type != KOFN_DO_DELIVER);
                if (a.type == KOFN_DO_WORK && a.worker == 0) {
                    assert_true(works < 200);
                    work[works++] = a;
                }
            }
        }
        for (size_t i = 0; i < works; i++) {
            ev = (kofn_event){.type = KOFN_EV_RESULT,
                              .worker = work[i].worker,
                              .product = 1,
                              .task = work[i].task,
                              .row = (uint32_t)work[i].row};
            assert_ok(kofn_core_step(c, &ev));
            plain += plain_strips(c, 0);
        }
        assert_int_equal(plain, 6);
        kofn_core_free(c);
    }
    kofn_plan_free(p);
}

TEST_FILE(core_faults_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_flight_modes),
        cmocka_unit_test(what_begins_anew_is_whole),
        cmocka_unit_test(the_dead_are_believed),
        cmocka_unit_test(a_notice_lets_work_finish),
        cmocka_unit_test(whoever_fails_is_not_asked_again),
        cmocka_unit_test(refuse),
        cmocka_unit_test(reserves_are_called),
        cmocka_unit_test(pause_and_patience),
        cmocka_unit_test(lateness_is_not_impatience),
        cmocka_unit_test(pausing_does_not_heal_instability),
        cmocka_unit_test(what_is_needed_is_counted_in_workers),
        cmocka_unit_test(degrade),
        cmocka_unit_test(degraded_rounds_give_all_there_is),
    };

    return cmocka_run_group_tests_name("core_faults", tests, NULL, NULL);
}
