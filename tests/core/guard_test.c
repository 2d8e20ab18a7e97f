/* guard_test.c -- what the coordinator does about verdicts: how many results
 * it waits for, whom it leaves out, when it gives up (docs/errors.md). */
#include "guard_rig.h"

/* Every number of liars up to the limit of the mode is survived, from random
 * arrival orders; one more is a declared failure. */
static void limit(const char *spec, size_t workers, kofn_errors mode,
                  size_t limit, uint32_t name)
{
    for (uint32_t trial = 0; trial < 40; trial++)
        for (size_t t = 0; t <= limit + 1 && t < workers; t++) {
            kf_rng r = kf_rng_stream(name, KF_FOR_SAMPLE, trial, (uint32_t)t);
            body b;

            up(&b, spec, workers, mode, KOFN_F64);
            choose_liars(&b, t, &r);
            begin(&b);
            finish(&b, &r);
            if (t <= limit)
                assert_int_equal(b.ended, KOFN_OK);
            else if (b.ended != KOFN_OK) /* unless the liars came too late */
                assert_int_equal(b.ended, KOFN_CORRUPT);
            named(&b);
            down(&b);
        }
}

static void probabilistic_limit(void **state)
{
    (void)state;
    limit("mds:k=4", 9, KOFN_ERRORS_PROBABILISTIC, 4, 1);
    limit("mds:k=4", 6, KOFN_ERRORS_PROBABILISTIC, 1, 2);
    limit("elastic:k=4", 9, KOFN_ERRORS_PROBABILISTIC, 4, 3);
    limit("elastic:k=1", 5, KOFN_ERRORS_PROBABILISTIC, 3, 4);
    limit("replication:k=2", 8, KOFN_ERRORS_PROBABILISTIC, 2, 5);
}

static void adversarial_limit(void **state)
{
    (void)state;
    limit("mds:k=4", 9, KOFN_ERRORS_ADVERSARIAL, 2, 6);
    limit("elastic:k=4", 10, KOFN_ERRORS_ADVERSARIAL, 3, 7);
    limit("elastic:k=3", 5, KOFN_ERRORS_ADVERSARIAL, 1, 8);
}

/* All that the first n workers were asked for comes. */
static void some_of_first(body *b, size_t n)
{
    for (size_t i = 0; i < b->tasks && b->running; i++)
        if (b->task[i].worker < n && b->task[i].out) {
            b->task[i].out = false;
            say(b, (kofn_event){.type = KOFN_EV_RESULT,
                                .worker = b->task[i].worker,
                                .product = b->product,
                                .task = b->task[i].task,
                                .row = b->task[i].row});
        }
}

/* Just as many results as the mode needs are waited for, and no more. */
static void waits_for(const char *spec, size_t workers, kofn_errors mode,
                      size_t want)
{
    for (size_t came = 0; came < want; came++) {
        body b;

        up(&b, spec, workers, mode, KOFN_F64);
        begin(&b);
        some_of_first(&b, came + 1);
        assert_true(b.running == (came + 1 < want));
        down(&b);
    }
}

static void waits_for_what_it_needs(void **state)
{
    static const kofn_errors mode[] = {KOFN_ERRORS_NONE, KOFN_ERRORS_DETECT,
                                       KOFN_ERRORS_PROBABILISTIC,
                                       KOFN_ERRORS_ADVERSARIAL};
    static const size_t rows[] = {4, 5, 5, 6};   /* (9 - 4) / 2 more at last */
    static const size_t copies[] = {1, 2, 4, 4}; /* which may fail alike */

    (void)state;
    for (size_t m = 0; m < 4; m++) {
        waits_for("mds:k=4", 9, mode[m], rows[m]);
        waits_for("replication:k=1", 7, mode[m], copies[m]);
    }
}

/* 3 rows in 5 parts: parts 3 and 4 are empty, and what seats 3 and 4 return is
 * zero.  It is not counted, unless there is nothing else. */
static void zeros_say_nothing(void **state)
{
    static const size_t workers[] = {12, 8, 7, 6};
    static const size_t want[] = {8, 8, 7, 6}; /* 6 that say something */

    (void)state;
    for (size_t w = 0; w < 4; w++)
        for (size_t came = 0; came < want[w]; came++) {
            kofn_problem pb =
                KOFN_PROBLEM_INIT(KOFN_MATVEC, 3, 10, 1, KOFN_F64, false);
            body b;

            up_of(&b, &pb, "mds:k=5,basis=gauss_sys", workers[w],
                  KOFN_ERRORS_PROBABILISTIC);
            begin(&b);
            some_of_first(&b, came + 1);
            assert_true(b.running == (came + 1 < want[w]));
            down(&b);
        }
}

/* Of twelve that may answer five decode, two say nothing, and one has to be
 * left to show that the others are wrong. */
static void zeros_promise_nothing(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 3, 10, 1, KOFN_F64, false);
    body b;

    (void)state;
    up_of(&b, &pb, "mds:k=5,basis=gauss_sys", 12, KOFN_ERRORS_PROBABILISTIC);
    begin(&b);
    some_of_first(&b, 8);
    assert_int_equal(b.checks, 1);
    assert_int_equal(b.promised, 12 - 5 - 2 - 1);
    down(&b);
}

static void detect_fails_at_once(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 40; trial++) {
        kf_rng r = kf_rng_stream(9, KF_FOR_SAMPLE, trial, 0);
        body b;

        up(&b, trial % 2 ? "elastic:k=4" : "mds:k=4", 8, KOFN_ERRORS_DETECT,
           KOFN_F64);
        choose_liars(&b, 1 + trial % 4, &r);
        begin(&b);
        finish(&b, &r);
        assert_true(b.ended == KOFN_CORRUPT ||
                    (b.ended == KOFN_OK && trial % 2 == 0));
        assert_int_equal(named(&b), 0);
        assert_int_equal(b.most_seen, 0);
        /* and the next round is as good as ever */
        choose_liars(&b, 0, &r);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        down(&b);
    }
}

/* However many results are compared, nobody is to be located. */
static void detect_locates_nobody(void **state)
{
    kf_rng r = kf_rng_stream(21, KF_FOR_SAMPLE, 0, 0);
    body b;

    (void)state;
    up(&b, "mds:k=4", 9, KOFN_ERRORS_DETECT, KOFN_F64);
    b.wary = true; /* until there are no more */
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    assert_true(b.sizes[8] > 0);
    assert_int_equal(b.most_seen, 0);
    down(&b);
}

/* Single precision is trusted to name half of what is over, unless told. */
static void float32_names_fewer(void **state)
{
    (void)state;
    for (int beyond = 0; beyond < 2; beyond++) {
        kf_rng r = kf_rng_stream(10, KF_FOR_SAMPLE, 0, 0);
        body b;

        up(&b, "mds:k=4", 10, KOFN_ERRORS_PROBABILISTIC, KOFN_F32);
        b.opt.beyond = beyond;
        begin_anew(&b);
        choose_liars(&b, 5, &r);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, beyond ? KOFN_OK : KOFN_CORRUPT);
        assert_true(beyond ? b.most_seen > 3 : b.most_seen == 3);
        down(&b);
    }
}

/* Erasures and errors together: whoever leaves takes from what is over. */
static void leaves_and_lies(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 300; trial++) {
        kf_rng r = kf_rng_stream(11, KF_FOR_SAMPLE, trial, 0);
        bool conspire = trial % 2;
        size_t n = 10, k = 4, rho = trial % 4, t;
        body b;

        up(&b, trial % 3 ? "elastic:k=4" : "mds:k=4", n,
           conspire ? KOFN_ERRORS_ADVERSARIAL : KOFN_ERRORS_PROBABILISTIC,
           KOFN_F64);
        t = conspire ? (n - rho - k) / 2 : n - rho - k - 1;
        choose_liars(&b, t, &r);
        begin(&b);
        for (uint32_t i = 0, left = 0; left < rho && i < n; i++) {
            if (b.liar[i] || !b.running)
                continue;
            b.gone[i] = true;
            left++;
            say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
        }
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        named(&b);
        down(&b);
    }
}

/* With fewer left fewer can conspire, and what has come may be enough. */
static void last_answers_before_leaves(void **state)
{
    body b;

    (void)state;
    up(&b, "mds:k=1", 5, KOFN_ERRORS_ADVERSARIAL, KOFN_F64);
    begin(&b);
    for (size_t i = 0; i < b.tasks; i++)
        if (b.task[i].worker < 2)
            say(&b, (kofn_event){.type = KOFN_EV_RESULT,
                                 .worker = b.task[i].worker,
                                 .product = b.product,
                                 .task = b.task[i].task,
                                 .row = b.task[i].row});
    assert_true(b.running);
    for (uint32_t i = 2; i < 5; i++)
        say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_OK);
    down(&b);
}

static void too_few_to_compare(void **state)
{
    kf_rng r = kf_rng_stream(12, KF_FOR_SAMPLE, 0, 0);
    body b;

    (void)state;
    up(&b, "mds:k=4", 6, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    for (uint32_t i = 0; i < 2; i++) {
        b.gone[i] = true;
        say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
    }
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    down(&b);
}

/* Who lies in every round is excluded once that is more than chance, and does
 * no more work; nobody else is. */
static void liars_are_quarantined(void **state)
{
    kf_rng r = kf_rng_stream(13, KF_FOR_SAMPLE, 0, 0);
    unsigned rounds = 0;
    body b;

    (void)state;
    up(&b, "elastic:k=4", 8, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.liar[2] = true;
    for (bool asked = true; asked; rounds++) {
        asked = false;
        begin(&b);
        for (size_t i = 0; i < b.tasks; i++)
            asked |= b.task[i].worker == 2;
        assert_true(asked == (kf_core_worker(b.core, 2) == KOFN_WORKER_LIVE));
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        for (uint32_t i = 0; i < 8; i++)
            assert_true(i == 2 ||
                        kf_core_worker(b.core, i) == KOFN_WORKER_LIVE);
        assert_true(rounds < 40);
    }
    assert_true(rounds > 5);
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_QUARANTINED);
    /* its seat is for the next that comes, and it may leave or answer as it
     * will */
    say(&b, (kofn_event){.type = KOFN_EV_JOINED, .worker = 8});
    say(&b, (kofn_event){.type = KOFN_EV_STORED, .worker = 8});
    assert_int_equal(b.core->fleet.seat[2], 8);
    say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = 2});
    assert_int_equal(b.core->fleet.seat[2], 8);
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    down(&b);
}

/* Who is located by some strips is left out in all that disagree, where it
 * could not be told who is wrong. */
static void names_serve_other_strips(void **state)
{
    static const char *const spec[] = {"mds:k=4", "elastic:k=4"};
    size_t lowered = 0;

    (void)state;
    for (uint32_t trial = 0; trial < 100; trial++) {
        kf_rng r = kf_rng_stream(15, KF_FOR_SAMPLE, trial, 0);
        body b;

        up(&b, spec[trial % 2], 9, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
        b.blind = 20; /* of 100 */
        b.half = 2;   /* of 5 beyond those that decode */
        choose_liars(&b, 1 + trial / 2 % 4, &r);
        begin(&b);
        finish(&b, &r);
        if (b.ended != KOFN_OK) /* a liar answered in those strips only */
            assert_true(named(&b) < 1 + trial / 2 % 4);
        named(&b);
        lowered += b.lowered;
        down(&b);
    }
    assert_true(lowered > 0);
}

/* Each in turn is wrong once in 15 rounds, all alike: nobody is excluded. */
static void chance_is_forgiven(void **state)
{
    kf_rng r = kf_rng_stream(20, KF_FOR_SAMPLE, 0, 0);
    size_t named_rounds = 0;
    body b;

    (void)state;
    up(&b, "mds:k=4", 8, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    for (uint32_t round = 0; round < 600; round++) {
        for (size_t i = 0; i < 8; i++)
            b.liar[i] = kf_rng_below(&r, 15) == 0;
        begin(&b);
        finish(&b, &r);
        assert_true(b.ended == KOFN_OK || b.ended == KOFN_CORRUPT);
        for (uint32_t i = 0; i < 8; i++)
            assert_int_equal(kf_core_worker(b.core, i), KOFN_WORKER_LIVE);
    }
    for (uint32_t i = 0; i < 8; i++)
        named_rounds += b.core->fleet.located[i];
    assert_true(named_rounds > 60); /* of the 320 times that they were wrong */
    down(&b);
}

/* Who was located in an earlier round is left out where nothing else helps, and
 * is not located for that. */
static void names_serve_later_rounds(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 60; trial++) {
        kf_rng r = kf_rng_stream(16, KF_FOR_SAMPLE, trial, 0);
        size_t liars = 1 + trial / 2 % 4;
        kf_core_view v;
        body b;

        up(&b, trial % 2 ? "elastic:k=4" : "mds:k=4", 9,
           trial % 3 ? KOFN_ERRORS_PROBABILISTIC : KOFN_ERRORS_ADVERSARIAL,
           KOFN_F64);
        liars = trial % 3 ? liars : 1 + liars % 2;
        choose_liars(&b, liars, &r);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        if (named(&b) == liars) {
            b.blind = SIZE_MAX;
            begin(&b);
            finish(&b, &r);
            assert_int_equal(b.ended, KOFN_OK);
        }
        kf_core_look(b.core, 0, &v);
        for (size_t i = 0; i < v.workers; i++)
            assert_true(v.located[i] <= 1);
        down(&b);
    }
}

/* As many are asked for at once as locating somebody takes: 4 that decode, 2
 * that may lie and one. */
static void asks_for_what_locating_takes(void **state)
{
    kf_rng r = kf_rng_stream(17, KF_FOR_SAMPLE, 0, 0);
    size_t seen = 0;
    body b;

    (void)state;
    up(&b, "elastic:k=4", 9, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    for (uint32_t trial = 0; trial < 20; trial++) {
        b.liar[trial % 9] = true;
        begin_anew(&b);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        assert_true(b.sizes[4] > 0);
        assert_int_equal(b.sizes[5], 0);
        seen += b.sizes[6];
        b.liar[trial % 9] = false;
    }
    assert_true(seen > 0);
    down(&b);
}

/* Nobody else can answer: that is known, and what there is is looked at. */
static void last_results(void **state)
{
    static const char *const spec[] = {"mds:k=4", "elastic:k=4"};

    (void)state;
    for (uint32_t trial = 0; trial < 40; trial++) {
        kf_rng r = kf_rng_stream(18, KF_FOR_SAMPLE, trial, 0);
        body b;

        up(&b, spec[trial % 2], 9, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
        b.wary = true;
        choose_liars(&b, trial / 2 % 5, &r);
        for (uint32_t gone = 0; gone < trial / 10 % 3; gone++) {
            b.gone[gone] = true;
            say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = gone});
            b.liar[gone] = false;
        }
        begin(&b);
        finish(&b, &r);
        assert_true(b.ended == KOFN_OK || trial / 2 % 5 > 2);
        for (size_t n = 9 - trial / 10 % 3; n < 9; n++)
            assert_int_equal(b.sizes[n], 0);
        assert_true(b.sizes[8 - trial / 10 % 3] > 0);
        down(&b);
    }
}

/* Verdicts on nothing, twice, late, or with names that do not exist. */
static void foreign_verdicts(void **state)
{
    static const uint32_t wild[] = {0, 7, 7, UINT32_MAX, 1000000};

    (void)state;
    for (uint32_t trial = 0; trial < 200; trial++) {
        kf_rng r = kf_rng_stream(14, KF_FOR_SAMPLE, trial, 0);
        body b;

        up(&b, trial % 2 ? "elastic:k=4" : "mds:k=4", 9,
           KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
        for (int round = 0; round < 3; round++) {
            begin(&b);
            while (b.running) {
                size_t i = (size_t)kf_rng_below(&r, b.tasks);

                say(&b,
                    (kofn_event){
                        .type = KOFN_EV_VERDICT,
                        .product = b.product,
                        .task = (uint32_t)kf_rng_below(&r, 20) +
                                (kf_rng_below(&r, 4) ? 0 : UINT32_MAX - 9),
                        .status = kf_rng_below(&r, 2) ? KOFN_OK : KOFN_CORRUPT,
                        .bad = wild,
                        .bad_count = (size_t)kf_rng_below(&r, 6)});
                say(&b, (kofn_event){.type = KOFN_EV_RESULT,
                                     .worker = b.task[i].worker,
                                     .product = b.product,
                                     .task = b.task[i].task,
                                     .row = b.task[i].row});
            }
            assert_int_equal(b.ended, KOFN_OK);
        }
        down(&b);
    }
}

/* Nothing can be told of all the results that there are: that is not
 * corruption, and not a lack of results either. */
static void never_enough_to_tell(void **state)
{
    kf_rng r = kf_rng_stream(19, KF_FOR_SAMPLE, 0, 0);
    body b;

    (void)state;
    up(&b, "mds:k=4", 9, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.unsure = true;
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "9 results agree, but are too few"));
    down(&b);
}

static void refusals(void **state)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 40, 10, 1, KOFN_F64, false);
    kofn_core_options o = {.size = sizeof o, .errors = KOFN_ERRORS_DETECT};
    kofn_plan *plan;
    kofn_core *core;

    (void)state;
    assert_ok(kofn_plan_new(&plan, &pb, "mds:k=5", 5, 1));
    assert_status(KOFN_INVAL, kf_core_new(&core, plan, &o));
    assert_non_null(strstr(kofn_errmsg(), "at least 6 workers"));
    kofn_plan_free(plan);
    assert_ok(kofn_plan_new(&plan, &pb, "mds:k=4", 5, 1));
    o.below = KOFN_BELOW_DEGRADE;
    assert_status(KOFN_UNSUITED, kf_core_new(&core, plan, &o));
    kofn_plan_free(plan);
}

TEST_FILE(guard_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilistic_limit),
        cmocka_unit_test(adversarial_limit),
        cmocka_unit_test(waits_for_what_it_needs),
        cmocka_unit_test(zeros_say_nothing),
        cmocka_unit_test(zeros_promise_nothing),
        cmocka_unit_test(detect_fails_at_once),
        cmocka_unit_test(detect_locates_nobody),
        cmocka_unit_test(float32_names_fewer),
        cmocka_unit_test(leaves_and_lies),
        cmocka_unit_test(last_answers_before_leaves),
        cmocka_unit_test(too_few_to_compare),
        cmocka_unit_test(liars_are_quarantined),
        cmocka_unit_test(chance_is_forgiven),
        cmocka_unit_test(names_serve_other_strips),
        cmocka_unit_test(names_serve_later_rounds),
        cmocka_unit_test(asks_for_what_locating_takes),
        cmocka_unit_test(last_results),
        cmocka_unit_test(foreign_verdicts),
        cmocka_unit_test(never_enough_to_tell),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
