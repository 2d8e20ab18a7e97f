/* core_faults_test.c -- the coordinator alone when workers leave, are too few
 * or are late. */
#include "core_rig.h"

/* ---- (d) work in hand when a worker leaves ------------------------------- */

/* Four fifths of the results are here when worker `gone` leaves: how many
 * strips are asked for again? */
static void lose_one(kofn_in_flight mode, size_t pieces, uint32_t gone)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 5, 40);
    kofn_core_options opt = {.in_flight = mode, .pieces = (unsigned)pieces};
    size_t before, again = 0, missing = 0, open;
    body b;

    body_open(&b, p, &opt);
    populate(&b, 5);
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
    kofn_plan_free(p);
}

static void in_flight_modes(void **state)
{
    (void)state;
    for (uint32_t gone = 0; gone < 5; gone++)
        for (int mode = 0; mode < 3; mode++)
            lose_one((kofn_in_flight)mode, 6, gone);
}

/* Results of a worker that has left since stay valid, in the ledger. */
static void the_dead_are_believed(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 3, 6);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 3);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_worker(&b, 1);
    size_t before = b.errands;
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.errands, before); /* nothing to ask again */
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* A notice: nothing new is dealt to the worker, what it has it may finish. */
static void a_notice_lets_work_finish(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 8);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 4);
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
    kofn_plan_free(p);
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
            kofn_plan *p = make_plan(specs[s], 4, 8);
            kofn_core_options opt = {.pieces = pieces};
            body b;

            body_open(&b, p, &opt);
            populate(&b, 4);
            say(&b, KOFN_EV_BEGIN, 0);
            answer(&b, 0, KOFN_EV_FAILED); /* the account checks the rest */
            answer_all(&b);
            assert_false(b.running);
            assert_int_equal(b.ended, s == 2 ? KOFN_TOOFEW : KOFN_OK);
            say(&b, KOFN_EV_BEGIN, 0); /* but in the next */
            answer_all(&b);
            assert_int_equal(b.ended, KOFN_OK);
            body_close(&b);
            kofn_plan_free(p);
        }
}

/* ---- (e) below the threshold --------------------------------------------- */

static void refuse(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 4, 6);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 4);
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
    kofn_plan_free(p);
}

/* Somebody who is storing its block is waited for even under REFUSE, and
 * those who came during the round are called when it cannot end without. */
static void reserves_are_called(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 3, 6);
    body b;

    (void)state;
    body_open(&b, p, NULL);
    populate(&b, 3);
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
    kofn_plan_free(p);
}

static void pause_and_patience(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 4, 6);
    kofn_core_options opt = {.below = KOFN_BELOW_PAUSE, .patience = 1000};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 50;
    say(&b, KOFN_EV_LEFT, 0);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER);
    say(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(kofn_core_alarm(b.core), 1050);
    b.now = 500; /* a second loss does not start the clock anew */
    say(&b, KOFN_EV_LEFT, 2);
    assert_int_equal(kofn_core_alarm(b.core), 1050);
    say(&b, KOFN_EV_ALARM, 0); /* rings too early: nothing happens */
    assert_true(b.running);
    for (int i = 0; i < 2; i++)
        join_and_store(&b);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 3);
    b.now = kofn_core_alarm(b.core);
    assert_int_equal(b.now, 1500);
    say(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.ended, KOFN_LATE);
    assert_non_null(strstr(kofn_errmsg(), "patience"));
    body_close(&b);
    kofn_plan_free(p);
}

/* Whoever pauses for ever is not made impatient by the alarm for stragglers. */
static void lateness_is_not_impatience(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 4, 8);
    kofn_core_options opt = {.below = KOFN_BELOW_PAUSE, .late = 2};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    say(&b, KOFN_EV_LEFT, 0);
    say(&b, KOFN_EV_LEFT, 1);
    for (uint32_t w = 2; w < 4; w++) { /* everybody that is left is ready */
        b.now += 100;
        answer_worker(&b, w);
    }
    assert_true(b.running);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER);
    b.now += 1000000;
    say(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    join_and_store(&b);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* Waiting cannot help when every seat that can exist has answered. */
static void pausing_does_not_heal_instability(void **state)
{
    kofn_plan *p = make_plan("mds:k=3,basis=chebyshev", 4, 6);
    kofn_core_options opt = {.below = KOFN_BELOW_PAUSE, .tolerance = 1e-17};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_UNSTABLE);
    body_close(&b);
    kofn_plan_free(p);
}

/* A systematic code in want of workers hands over the plain blocks. */
static void degrade(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        kofn_plan *p = make_plan("elastic:k=3,basis=gauss_sys", 4, 6);
        kofn_core_options opt = {.below = KOFN_BELOW_DEGRADE,
                                 .in_flight = (kofn_in_flight)mode};
        body b;

        body_open(&b, p, &opt);
        populate(&b, 4);
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
        kofn_plan_free(p);
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
        kofn_core_options opt = {.below = KOFN_BELOW_DEGRADE,
                                 .in_flight = (kofn_in_flight)mode};
        kofn_event ev;
        kofn_action work[200];
        size_t works = 0, plain = 0;
        kofn_core *c;
        kofn_action a;

        assert_ok(kofn_core_new(&c, p, &opt));
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

/* ---- (f) stragglers ------------------------------------------------------ */

static void others_are_asked_for_what_is_late(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 16);
    kofn_core_options opt = {.late = 3};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 100;
    answer_worker(&b, 0);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER);
    answer_worker(&b, 1); /* half are ready: three times as long, then */
    assert_int_equal(kofn_core_alarm(b.core), 300);
    answer_worker(&b, 2);
    size_t before = b.errands;
    b.now = 299;
    say(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.errands, before);
    b.now = 300;
    say(&b, KOFN_EV_ALARM, 0);
    /* worker 3 owes half a block: each strip of it is asked for once more */
    assert_int_equal(asked_of_all(&b, before), 8);
    assert_int_equal(asked(&b, 3, before), 0);
    assert_int_equal(kofn_core_alarm(b.core), 600);
    /* the straggler may still be the first */
    answer_worker(&b, 3);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* Alarms come to an end although time stands still. */
static void alarms_move_on(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 16);
    kofn_core_options opt = {.late = 1};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    for (uint32_t w = 0; w < 2; w++)
        answer_worker(&b, w); /* in no time */
    for (int i = 0; i < 50; i++) {
        b.now = kofn_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
        assert_true(kofn_core_alarm(b.core) > b.now);
    }
    assert_true(b.now > 1000000);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* A worker that is late with one thing is still better than none for another:
 * three live workers are enough for a code that needs three. */
static void the_late_are_a_last_resort(void **state)
{
    kofn_plan *p = make_plan("elastic:k=3,basis=gauss", 4, 8);
    kofn_core_options opt = {.late = 2, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 1);
    answer_worker(&b, 2);
    b.now = 20;
    say(&b, KOFN_EV_ALARM, 0); /* 0 and 3 are late */
    say(&b, KOFN_EV_LEFT, 0);
    answer_all(&b);
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* On one core workers finish one by one: none of them is late, though the last
 * takes twice as long as half of them. */
static void who_waits_for_a_core_is_not_late(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 8, 16);
    kofn_core_options opt = {.late = 1.5};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 8);
    say(&b, KOFN_EV_BEGIN, 0);
    size_t dealt = b.errands;
    for (uint32_t w = 0; w < 8 && b.running; w++) {
        b.now = 100 * (1 + w);
        if (kofn_core_alarm(b.core) <= b.now)
            say(&b, KOFN_EV_ALARM, 0);
        answer_worker(&b, w);
    }
    assert_int_equal(b.errands, dealt);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* Shares of one strip and of two: who has two is not late at 1.9 times. */
static void a_larger_share_takes_longer(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 3);
    kofn_core_options opt = {.late = 1.5};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    size_t dealt = b.errands, large = 0;
    for (int turn = 1; turn < 3 && b.running; turn++)
        for (uint32_t w = 0; w < 4 && b.running; w++) {
            b.now = turn == 1 ? 100 : 190;
            if (kofn_core_alarm(b.core) <= b.now)
                say(&b, KOFN_EV_ALARM, 0);
            large += turn == 1 && asked(&b, w, 0) == 2;
            if (asked(&b, w, 0) == (size_t)turn)
                answer_worker(&b, w);
        }
    assert_int_equal(large, 2);
    assert_int_equal(b.errands, dealt);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* How long others are waited for after the last of them is ready: less, the
 * more often who was late answered nothing, and again more when it did. */
static void haste_follows_experience(void **state)
{
    static const kofn_time slack[] = {500, 250, 125, 125, 125, 250, 500, 250};
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 16);
    kofn_core_options opt = {.late = 2};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    for (int round = 0; round < 8; round++) {
        bool in_vain = round == 4 || round == 5;

        say(&b, KOFN_EV_BEGIN, 0);
        b.now += 500;
        for (uint32_t w = 0; w < 3; w++)
            answer_worker(&b, w);
        assert_int_equal(kofn_core_alarm(b.core) - b.now, slack[round]);
        b.now = kofn_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
        answer_worker(&b, in_vain ? 3 : 0);
        for (uint32_t w = 1; w < 3 && b.running; w++)
            answer_worker(&b, w);
        assert_false(b.running);
    }
    body_close(&b);
    kofn_plan_free(p);
}

/* Where a share takes less than late_least everybody is asked for everything
 * after somebody was late, and a straggler is not waited for at all; after
 * that many rounds it is tried again. */
static void small_shares_are_dealt_generously(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2,basis=gauss", 4, 16);
    kofn_core_options opt = {.late = 1.5, .late_least = 1000};
    size_t generous = 0, frugal = 0;
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 4);
    for (int round = 0; round < 60; round++) {
        say(&b, KOFN_EV_BEGIN, 0);
        *(asked_of_all(&b, 0) == 4 * 16 ? &generous : &frugal) += 1;
        b.now += 100;
        for (uint32_t w = 0; w < 3 && b.running; w++)
            answer_worker(&b, w);
        if (b.running) { /* 3 owes something */
            assert_true(kofn_core_alarm(b.core) - b.now <= 1000);
            b.now = kofn_core_alarm(b.core);
            say(&b, KOFN_EV_ALARM, 0);
            for (uint32_t w = 0; w < 3 && b.running; w++)
                answer_worker(&b, w);
        }
        assert_int_equal(b.ended, KOFN_OK);
    }
    /* 1 + 4, 1 + 8, 1 + 16, and the rest of 1 + 32 */
    assert_int_equal(frugal, 4);
    assert_int_equal(generous, 56);
    for (int round = 0; round < 200; round++) { /* all is well again */
        say(&b, KOFN_EV_BEGIN, 0);
        frugal = asked_of_all(&b, 0) == 2 * 16 ? frugal + 1 : 0;
        answer_all(&b);
    }
    assert_true(frugal > 100);
    body_close(&b);
    kofn_plan_free(p);
}

/* ---- (g) who answers nothing --------------------------------------------- */

static const kofn_core_options leasing = {.late = 1.5, .lease = 1000};

/* Who needs everybody gives up a worker that is there and mute, and names it. */
static void the_mute_are_given_up_and_named(void **state)
{
    kofn_plan *p = make_plan("uncoded", 4, 8);
    body b;

    (void)state;
    body_open(&b, p, &leasing);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    assert_true(kofn_core_alarm(b.core) == KOFN_NEVER); /* nothing is known */
    b.now = 10;
    for (uint32_t w = 0; w < 4; w++)
        if (w != 2)
            answer_worker(&b, w);
    for (int i = 0; i < 50 && b.running; i++) {
        assert_true(kofn_core_alarm(b.core) != KOFN_NEVER);
        assert_true(b.now < 1000);
        b.now = kofn_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
    }
    assert_false(b.running);
    assert_in_range(b.now, 1000, 1010);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "worker 2"));
    assert_int_equal(kofn_core_worker(b.core, 2), 'm');
    say(&b, KOFN_EV_LEFT, 2); /* it stays named */
    assert_int_equal(kofn_core_worker(b.core, 2), 'm');
    body_close(&b);
    kofn_plan_free(p);
}

/* Its seat is for the next who comes. */
static void others_take_the_seats_of_the_mute(void **state)
{
    kofn_plan *p = make_plan("uncoded", 3, 8);
    kofn_core_options opt = {.below = KOFN_BELOW_PAUSE, .lease = 1000};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 3);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 0);
    answer_worker(&b, 1);
    while (kofn_core_worker(b.core, 2) != 'm') {
        assert_true(kofn_core_alarm(b.core) <= 2000);
        b.now = kofn_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
    }
    assert_int_equal(b.man[join_and_store(&b)].seat, 2);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* Work that takes long is no silence: a lease is 50 times what others took,
 * and nobody is given up while nobody has answered. */
static void long_work_is_no_silence(void **state)
{
    kofn_plan *p = make_plan("uncoded", 2, 8);
    kofn_core_options opt = {.lease = 1000};
    body b;

    (void)state;
    body_open(&b, p, &opt);
    populate(&b, 2);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 1000000;
    say(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    answer_worker(&b, 0);
    for (b.now = 1000000; b.now < 50 * 1000000; b.now += 100000)
        say(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    answer_worker(&b, 1);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
    kofn_plan_free(p);
}

/* While fewer than half have answered it lasts ten times as long: what the work
 * takes is not yet known. */
static void one_answer_is_not_the_rule(void **state)
{
    kofn_plan *p = make_plan("uncoded", 4, 8);
    body b;

    (void)state;
    body_open(&b, p, &leasing);
    populate(&b, 4);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 0);
    for (b.now = 1000; b.now < 10000; b.now += 100)
        say(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    b.now = 10010;
    say(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    body_close(&b);
    kofn_plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_flight_modes),
        cmocka_unit_test(the_dead_are_believed),
        cmocka_unit_test(a_notice_lets_work_finish),
        cmocka_unit_test(whoever_fails_is_not_asked_again),
        cmocka_unit_test(refuse),
        cmocka_unit_test(reserves_are_called),
        cmocka_unit_test(pause_and_patience),
        cmocka_unit_test(lateness_is_not_impatience),
        cmocka_unit_test(pausing_does_not_heal_instability),
        cmocka_unit_test(degrade),
        cmocka_unit_test(degraded_rounds_give_all_there_is),
        cmocka_unit_test(others_are_asked_for_what_is_late),
        cmocka_unit_test(alarms_move_on),
        cmocka_unit_test(the_late_are_a_last_resort),
        cmocka_unit_test(who_waits_for_a_core_is_not_late),
        cmocka_unit_test(a_larger_share_takes_longer),
        cmocka_unit_test(haste_follows_experience),
        cmocka_unit_test(small_shares_are_dealt_generously),
        cmocka_unit_test(the_mute_are_given_up_and_named),
        cmocka_unit_test(others_take_the_seats_of_the_mute),
        cmocka_unit_test(long_work_is_no_silence),
        cmocka_unit_test(one_answer_is_not_the_rule),
    };

    return cmocka_run_group_tests_name("core_faults", tests, NULL, NULL);
}
