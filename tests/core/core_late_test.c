/* core_late_test.c -- the coordinator alone when workers are late, or answer
 * nothing at all. */
#include "core_rig.h"

/* ---- (f) stragglers ------------------------------------------------------ */

static void others_are_asked_for_what_is_late(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 3};
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=2,basis=gauss", 4, 16, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 100;
    answer_worker(&b, 0);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER);
    answer_worker(&b, 1); /* half are ready: three times as long, then */
    assert_int_equal(kf_core_alarm(b.core), 300);
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
    assert_int_equal(kf_core_alarm(b.core), 600);
    /* the straggler may still be the first */
    answer_worker(&b, 3);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* Alarms come to an end although time stands still. */
static void alarms_move_on(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 1};
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=2,basis=gauss", 4, 16, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    for (uint32_t w = 0; w < 2; w++)
        answer_worker(&b, w); /* in no time */
    for (int i = 0; i < 50; i++) {
        b.now = kf_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
        assert_true(kf_core_alarm(b.core) > b.now);
    }
    assert_true(b.now > 1000000);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* A worker that is late with one thing is still better than none for another:
 * three live workers are enough for a code that needs three. */
static void the_late_are_a_last_resort(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 2, .pieces = 1};
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=3,basis=gauss", 4, 8, &opt);
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
}

/* On one core workers finish one by one: none of them is late, though the last
 * takes twice as long as half of them. */
static void who_waits_for_a_core_is_not_late(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 1.5};
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=2,basis=gauss", 8, 16, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    size_t dealt = b.errands;
    for (uint32_t w = 0; w < 8 && b.running; w++) {
        b.now = 100 * (1 + w);
        if (kf_core_alarm(b.core) <= b.now)
            say(&b, KOFN_EV_ALARM, 0);
        answer_worker(&b, w);
    }
    assert_int_equal(b.errands, dealt);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* Shares of one strip and of two: who has two is not late at 1.9 times. */
static void a_larger_share_takes_longer(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 1.5};
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=2,basis=gauss", 4, 3, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    size_t dealt = b.errands, large = 0;
    for (int turn = 1; turn < 3 && b.running; turn++)
        for (uint32_t w = 0; w < 4 && b.running; w++) {
            b.now = turn == 1 ? 100 : 190;
            if (kf_core_alarm(b.core) <= b.now)
                say(&b, KOFN_EV_ALARM, 0);
            large += turn == 1 && asked(&b, w, 0) == 2;
            if (asked(&b, w, 0) == (size_t)turn)
                answer_worker(&b, w);
        }
    assert_int_equal(large, 2);
    assert_int_equal(b.errands, dealt);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* How long others are waited for after the last of them is ready: less, the
 * more often who was late answered nothing, and again more when it did. */
static void hedge_factor_follows_experience(void **state)
{
    static const kofn_time slack[] = {500, 250, 125, 125, 125, 250, 500, 250};
    kofn_core_options opt = {.size = sizeof opt, .late = 2};
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=2,basis=gauss", 4, 16, &opt);
    for (int round = 0; round < 8; round++) {
        bool in_vain = round == 4 || round == 5;

        say(&b, KOFN_EV_BEGIN, 0);
        b.now += 500;
        for (uint32_t w = 0; w < 3; w++)
            answer_worker(&b, w);
        assert_int_equal(kf_core_alarm(b.core) - b.now, slack[round]);
        b.now = kf_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
        answer_worker(&b, in_vain ? 3 : 0);
        for (uint32_t w = 1; w < 3 && b.running; w++)
            answer_worker(&b, w);
        assert_false(b.running);
    }
    body_close(&b);
}

/* Where a share takes less than late_least everybody is asked for everything
 * after somebody was late, and a straggler is not waited for at all; after
 * that many rounds it is tried again. */
static void small_shares_are_dealt_generously(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .late = 1.5, .late_least = 1000};
    size_t generous = 0, frugal = 0;
    body b;

    (void)state;
    fleet_open(&b, "elastic:k=2,basis=gauss", 4, 16, &opt);
    for (int round = 0; round < 60; round++) {
        say(&b, KOFN_EV_BEGIN, 0);
        *(asked_of_all(&b, 0) == 4 * 16 ? &generous : &frugal) += 1;
        b.now += 100;
        for (uint32_t w = 0; w < 3 && b.running; w++)
            answer_worker(&b, w);
        if (b.running) { /* 3 owes something */
            assert_true(kf_core_alarm(b.core) - b.now <= 1000);
            b.now = kf_core_alarm(b.core);
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
    generous = 0;
    for (int round = 0; round < 6;
         round++) { /* and it begins with four again */
        say(&b, KOFN_EV_BEGIN, 0);
        generous += asked_of_all(&b, 0) == 4 * 16;
        b.now += 100;
        for (uint32_t w = 0; w < 3 && b.running; w++)
            answer_worker(&b, w);
        if (b.running) {
            b.now = kf_core_alarm(b.core);
            say(&b, KOFN_EV_ALARM, 0);
            for (uint32_t w = 0; w < 3 && b.running; w++)
                answer_worker(&b, w);
        }
        assert_int_equal(b.ended, KOFN_OK);
    }
    assert_int_equal(generous, 4);
    body_close(&b);
}

/* ---- (g) who answers nothing --------------------------------------------- */

static const kofn_core_options leasing = {
    .size = sizeof leasing, .late = 1.5, .lease = 1000};

/* Who needs everybody gives up a worker that is there and unresponsive, and
 * names it. */
static void the_unresponsive_are_given_up_and_named(void **state)
{
    body b;

    (void)state;
    fleet_open(&b, "uncoded", 4, 8, &leasing);
    say(&b, KOFN_EV_BEGIN, 0);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER); /* nothing is known */
    b.now = 10;
    for (uint32_t w = 0; w < 4; w++)
        if (w != 2)
            answer_worker(&b, w);
    for (int i = 0; i < 50 && b.running; i++) {
        assert_true(kf_core_alarm(b.core) != KOFN_NEVER);
        assert_true(b.now < 1000);
        b.now = kf_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
    }
    assert_false(b.running);
    assert_in_range(b.now, 1000, 1010);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "worker 2"));
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_UNRESPONSIVE);
    say(&b, KOFN_EV_LEFT, 2); /* it stays named */
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_UNRESPONSIVE);
    body_close(&b);
}

/* Of several it is said how many there are besides the last. */
static void all_the_unresponsive_are_counted(void **state)
{
    (void)state;
    for (uint32_t unresponsive = 1; unresponsive < 4; unresponsive++) {
        char want[60];
        body b;

        fleet_open(&b, "uncoded", 6, 12, &leasing);
        say(&b, KOFN_EV_BEGIN, 0);
        b.now = 10;
        for (uint32_t w = unresponsive; w < 6; w++)
            answer_worker(&b, w);
        for (int i = 0; i < 100 && b.running; i++) {
            b.now = kf_core_alarm(b.core);
            say(&b, KOFN_EV_ALARM, 0);
        }
        assert_int_equal(b.ended, KOFN_TOOFEW);
        snprintf(want, sizeof want,
                 unresponsive > 1
                     ? "and %u more did not answer and were evicted"
                     : "did not answer and was evicted",
                 unresponsive - 1);
        if (!strstr(kofn_errmsg(), want))
            fail_msg("\"%s\" is not in: %s", want, kofn_errmsg());
        body_close(&b);
    }
}

/* Its seat is for the next who comes. */
static void others_take_the_seats_of_the_unresponsive(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .lease = 1000};
    body b;

    (void)state;
    fleet_open(&b, "uncoded", 3, 8, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 0);
    answer_worker(&b, 1);
    while (kf_core_worker(b.core, 2) != KOFN_WORKER_UNRESPONSIVE) {
        assert_true(kf_core_alarm(b.core) <= 2000);
        b.now = kf_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
    }
    assert_int_equal(b.man[join_and_store(&b)].seat, 2);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    body_close(&b);
}

/* Work that takes long is no silence: a lease is 50 times what others took,
 * and nobody is given up while nobody has answered. */
static void long_work_is_no_silence(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .lease = 1000};
    body b;

    (void)state;
    fleet_open(&b, "uncoded", 2, 8, &opt);
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
}

/* The shortest lease there is counts as one. */
static void a_lease_of_a_nanosecond(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .lease = 1};
    body b;

    (void)state;
    fleet_open(&b, "uncoded", 2, 8, &opt);
    say(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 0);
    for (int i = 0; i < 100 && b.running; i++) {
        assert_true(kf_core_alarm(b.core) != KOFN_NEVER);
        b.now = kf_core_alarm(b.core);
        say(&b, KOFN_EV_ALARM, 0);
    }
    assert_int_equal(b.ended, KOFN_TOOFEW);
    body_close(&b);
}

/* While fewer than half have answered it lasts ten times as long: what the work
 * takes is not yet known. */
static void one_answer_is_not_the_rule(void **state)
{
    body b;

    (void)state;
    fleet_open(&b, "uncoded", 4, 8, &leasing);
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
}

TEST_FILE(core_late_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_asked_for_what_is_late),
        cmocka_unit_test(alarms_move_on),
        cmocka_unit_test(the_late_are_a_last_resort),
        cmocka_unit_test(who_waits_for_a_core_is_not_late),
        cmocka_unit_test(a_larger_share_takes_longer),
        cmocka_unit_test(hedge_factor_follows_experience),
        cmocka_unit_test(small_shares_are_dealt_generously),
        cmocka_unit_test(the_unresponsive_are_given_up_and_named),
        cmocka_unit_test(all_the_unresponsive_are_counted),
        cmocka_unit_test(others_take_the_seats_of_the_unresponsive),
        cmocka_unit_test(long_work_is_no_silence),
        cmocka_unit_test(a_lease_of_a_nanosecond),
        cmocka_unit_test(one_answer_is_not_the_rule),
    };

    return cmocka_run_group_tests_name("core_late", tests, NULL, NULL);
}
