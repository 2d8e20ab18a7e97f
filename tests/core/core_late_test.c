/* core_late_test.c -- tests the coordinator alone when workers are late or
 * unresponsive. */
#include "core_rig.h"

/* ---- (f) stragglers ------------------------------------------------------ */

static void late_strips_are_asked_again(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 3};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 4, 16, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    b.now = 100;
    answer_worker(&b, 0);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER);
    answer_worker(&b, 1); /* half are done: alarm at 3 x 100 */
    assert_int_equal(kf_core_alarm(b.core), 300);
    answer_worker(&b, 2);
    size_t before = b.tasks;
    b.now = 299;
    event(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.tasks, before);
    b.now = 300;
    event(&b, KOFN_EV_ALARM, 0);
    /* worker 3 has half a block outstanding: each strip of it is asked for
     * once more */
    assert_int_equal(asked_of_all(&b, before), 8);
    assert_int_equal(asked(&b, 3, before), 0);
    assert_int_equal(kf_core_alarm(b.core), 600);
    /* the straggler may still be the first */
    answer_worker(&b, 3);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

static void alarms_end(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 1};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 4, 16, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    for (uint32_t w = 0; w < 2; w++)
        answer_worker(&b, w); /* in no time */
    for (int i = 0; i < 50; i++) {
        b.now = kf_core_alarm(b.core);
        event(&b, KOFN_EV_ALARM, 0);
        assert_true(kf_core_alarm(b.core) > b.now);
    }
    assert_true(b.now > 1000000);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* A worker that is late with one task may still do another one. Three live
 * workers are enough for a code that needs three. */
static void late_workers_are_last_resort(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 2, .pieces = 1};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=3,basis=gauss", 4, 8, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 1);
    answer_worker(&b, 2);
    b.now = 20;
    event(&b, KOFN_EV_ALARM, 0); /* 0 and 3 are late */
    event(&b, KOFN_EV_LEFT, 0);
    answer_all(&b);
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* On one processor core workers finish one after the other. None is late,
 * though the last takes twice the median time. */
static void serial_workers_are_not_late(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 1.5};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 8, 16, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    size_t dealt = b.tasks;
    for (uint32_t w = 0; w < 8 && b.running; w++) {
        b.now = 100 * (1 + w);
        if (kf_core_alarm(b.core) <= b.now)
            event(&b, KOFN_EV_ALARM, 0);
        answer_worker(&b, w);
    }
    assert_int_equal(b.tasks, dealt);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* Of 32 workers the one before the last two restarts the wait of 50, and the
 * next one does not. */
static void the_last_do_not_restart_the_wait(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 1.5};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 32, 16, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    b.now = 100;
    for (uint32_t w = 0; w < 16; w++)
        answer_worker(&b, w);
    assert_int_equal(kf_core_alarm(b.core), 150);
    b.now = 110;
    for (uint32_t w = 16; w < 29; w++)
        answer_worker(&b, w);
    assert_int_equal(kf_core_alarm(b.core), 160);
    b.now = 115;
    answer_worker(&b, 29); /* two are left */
    assert_int_equal(kf_core_alarm(b.core), 165);
    b.now = 120;
    answer_worker(&b, 30); /* one is left */
    assert_int_equal(kf_core_alarm(b.core), 165);
    answer_worker(&b, 31);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* Shares have one strip or two. */
static void larger_share_takes_longer(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .late = 1.5};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 4, 3, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    size_t dealt = b.tasks, large = 0;
    for (int turn = 1; turn < 3 && b.running; turn++)
        for (uint32_t w = 0; w < 4 && b.running; w++) {
            b.now = turn == 1 ? 100 : 190;
            if (kf_core_alarm(b.core) <= b.now)
                event(&b, KOFN_EV_ALARM, 0);
            large += turn == 1 && asked(&b, w, 0) == 2;
            if (asked(&b, w, 0) == (size_t)turn)
                answer_worker(&b, w);
        }
    assert_int_equal(large, 2);
    assert_int_equal(b.tasks, dealt);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* The wait after the last of the other workers shrinks each time that the late
 * worker does not answer. It grows again when it answers. */
static void hedge_factor_follows_experience(void **state)
{
    static const kofn_time slack[] = {500, 250, 125, 125, 125, 250, 500, 250};
    kofn_core_options opt = {.size = sizeof opt, .late = 2};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 4, 16, &opt);
    for (int round = 0; round < 8; round++) {
        bool in_vain = round == 4 || round == 5;

        event(&b, KOFN_EV_BEGIN, 0);
        b.now += 500;
        for (uint32_t w = 0; w < 3; w++)
            answer_worker(&b, w);
        assert_int_equal(kf_core_alarm(b.core) - b.now, slack[round]);
        b.now = kf_core_alarm(b.core);
        event(&b, KOFN_EV_ALARM, 0);
        answer_worker(&b, in_vain ? 3 : 0);
        for (uint32_t w = 1; w < 3 && b.running; w++)
            answer_worker(&b, w);
        assert_false(b.running);
    }
    case_close(&b);
}

/* If a share takes less than late_least, all workers are asked for all strips
 * after a late answer. The round does not wait for a straggler then. After 4,
 * 8, 16, ... rounds the short shares are tried again. */
static void small_shares_are_repeated(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .late = 1.5, .late_least = 1000};
    size_t generous = 0, frugal = 0;
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 4, 16, &opt);
    for (int round = 0; round < 60; round++) {
        event(&b, KOFN_EV_BEGIN, 0);
        *(asked_of_all(&b, 0) == 4 * 16 ? &generous : &frugal) += 1;
        b.now += 100;
        for (uint32_t w = 0; w < 3 && b.running; w++)
            answer_worker(&b, w);
        if (b.running) { /* worker 3 has outstanding tasks */
            assert_true(kf_core_alarm(b.core) - b.now <= 1000);
            b.now = kf_core_alarm(b.core);
            event(&b, KOFN_EV_ALARM, 0);
            for (uint32_t w = 0; w < 3 && b.running; w++)
                answer_worker(&b, w);
        }
        assert_int_equal(b.ended, KOFN_OK);
    }
    /* 1 + 4, 1 + 8, 1 + 16, and the rest of 1 + 32 */
    assert_int_equal(frugal, 4);
    assert_int_equal(generous, 56);
    for (int round = 0; round < 200; round++) { /* no worker is late any more */
        event(&b, KOFN_EV_BEGIN, 0);
        frugal = asked_of_all(&b, 0) == 2 * 16 ? frugal + 1 : 0;
        answer_all(&b);
    }
    assert_true(frugal > 100);
    generous = 0;
    for (int round = 0; round < 6;
         round++) { /* the count starts at four again */
        event(&b, KOFN_EV_BEGIN, 0);
        generous += asked_of_all(&b, 0) == 4 * 16;
        b.now += 100;
        for (uint32_t w = 0; w < 3 && b.running; w++)
            answer_worker(&b, w);
        if (b.running) {
            b.now = kf_core_alarm(b.core);
            event(&b, KOFN_EV_ALARM, 0);
            for (uint32_t w = 0; w < 3 && b.running; w++)
                answer_worker(&b, w);
        }
        assert_int_equal(b.ended, KOFN_OK);
    }
    assert_int_equal(generous, 4);
    case_close(&b);
}

/* ---- (g) unresponsive workers -------------------------------------------- */

static const kofn_core_options leasing = {
    .size = sizeof leasing, .late = 1.5, .lease = 1000};

/* A code that needs all workers evicts an unresponsive one and names it. */
static void unresponsive_is_evicted(void **state)
{
    core_case b;

    (void)state;
    open_workers(&b, "uncoded", 4, 8, &leasing);
    event(&b, KOFN_EV_BEGIN, 0);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER); /* no answer came */
    b.now = 10;
    for (uint32_t w = 0; w < 4; w++)
        if (w != 2)
            answer_worker(&b, w);
    for (int i = 0; i < 50 && b.running; i++) {
        assert_true(kf_core_alarm(b.core) != KOFN_NEVER);
        assert_true(b.now < 1000);
        b.now = kf_core_alarm(b.core);
        event(&b, KOFN_EV_ALARM, 0);
    }
    assert_false(b.running);
    assert_in_range(b.now, 1000, 1010);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "worker 2"));
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_UNRESPONSIVE);
    event(&b, KOFN_EV_LEFT, 2); /* the status stays */
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_UNRESPONSIVE);
    case_close(&b);
}

/* The message gives the number of evicted workers besides the last. */
static void unresponsive_are_counted(void **state)
{
    (void)state;
    for (uint32_t unresponsive = 1; unresponsive < 4; unresponsive++) {
        char want[60];
        core_case b;

        open_workers(&b, "uncoded", 6, 12, &leasing);
        event(&b, KOFN_EV_BEGIN, 0);
        b.now = 10;
        for (uint32_t w = unresponsive; w < 6; w++)
            answer_worker(&b, w);
        for (int i = 0; i < 100 && b.running; i++) {
            b.now = kf_core_alarm(b.core);
            event(&b, KOFN_EV_ALARM, 0);
        }
        assert_int_equal(b.ended, KOFN_TOOFEW);
        snprintf(want, sizeof want,
                 unresponsive > 1
                     ? "and %u more did not answer and were evicted"
                     : "did not answer and was evicted",
                 unresponsive - 1);
        if (!strstr(kofn_errmsg(), want))
            fail_msg("\"%s\" is not in: %s", want, kofn_errmsg());
        case_close(&b);
    }
}

static void evicted_seat_is_taken(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .lease = 1000};
    core_case b;

    (void)state;
    open_workers(&b, "uncoded", 3, 8, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 0);
    answer_worker(&b, 1);
    while (kf_core_worker(b.core, 2) != KOFN_WORKER_UNRESPONSIVE) {
        assert_true(kf_core_alarm(b.core) <= 2000);
        b.now = kf_core_alarm(b.core);
        event(&b, KOFN_EV_ALARM, 0);
    }
    assert_int_equal(b.worker[join_and_store(&b)].seat, 2);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* A lease lasts 50 times the time of the other workers. No worker is evicted
 * before one has answered. */
static void long_work_is_not_evicted(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .lease = 1000};
    core_case b;

    (void)state;
    open_workers(&b, "uncoded", 2, 8, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    b.now = 1000000;
    event(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    answer_worker(&b, 0);
    for (b.now = 1000000; b.now < 50 * 1000000; b.now += 100000)
        event(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    answer_worker(&b, 1);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* The shortest lease counts as one. */
static void shortest_lease(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .lease = 1};
    core_case b;

    (void)state;
    open_workers(&b, "uncoded", 2, 8, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 0);
    for (int i = 0; i < 100 && b.running; i++) {
        assert_true(kf_core_alarm(b.core) != KOFN_NEVER);
        b.now = kf_core_alarm(b.core);
        event(&b, KOFN_EV_ALARM, 0);
    }
    assert_int_equal(b.ended, KOFN_TOOFEW);
    case_close(&b);
}

/* The time of a task is not known before half of the workers have answered. */
static void lease_after_one_answer(void **state)
{
    core_case b;

    (void)state;
    open_workers(&b, "uncoded", 4, 8, &leasing);
    event(&b, KOFN_EV_BEGIN, 0);
    b.now = 10;
    answer_worker(&b, 0);
    for (b.now = 1000; b.now < 10000; b.now += 100)
        event(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    b.now = 10010;
    event(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    case_close(&b);
}

TEST_FILE(core_late_test)
{
    const struct CMUnitTest tests[] = {
        TEST(late_strips_are_asked_again,
             "core: late strips are asked of other workers (late=3)"),
        TEST(alarms_end, "core: alarms end although time stands still"),
        TEST(late_workers_are_last_resort,
             "core: late workers are asked if no others are left"),
        TEST(serial_workers_are_not_late,
             "core: workers that finish one by one are not late"),
        TEST(larger_share_takes_longer,
             "core: a worker with two strips is not late at 1.9 times"),
        TEST(the_last_do_not_restart_the_wait,
             "core: the last sixteenth of the workers restarts no wait"),
        TEST(hedge_factor_follows_experience,
             "core: the hedge factor follows past rounds"),
        TEST(small_shares_are_repeated,
             "core: small shares are dealt to all after a late answer"),
        TEST(unresponsive_is_evicted,
             "core: an unresponsive worker is evicted and named"),
        TEST(unresponsive_are_counted,
             "core: the message counts all evicted workers (1 to 3)"),
        TEST(evicted_seat_is_taken,
             "core: a joiner takes the seat of an evicted worker"),
        TEST(long_work_is_not_evicted,
             "core: long work is not evicted (lease = 50 x the others)"),
        TEST(shortest_lease, "core: a lease of one nanosecond ends the round"),
        TEST(lease_after_one_answer,
             "core: a lease lasts ten times before half have answered"),
    };

    return cmocka_run_group_tests_name("core_late", tests, NULL, NULL);
}
