/* guard_test.c -- tests what the coordinator does about verdicts: how many
 * results it waits for, which workers it leaves out, and when it fails
 * (docs/errors.md). */
#include "guard_rig.h"

/* Runs rounds with every number of faulty workers up to the limit of the mode,
 * in random arrival orders. They end well. With one more the round fails as
 * corrupt. */
static void limit(const char *spec, size_t workers, kofn_errors mode,
                  size_t limit, uint32_t name)
{
    for (uint32_t trial = 0; trial < 40; trial++)
        for (size_t t = 0; t <= limit + 1 && t < workers; t++) {
            kf_rng r = kf_rng_stream(name, KF_FOR_SAMPLE, trial, (uint32_t)t);
            guard_case b;

            open_case(&b, spec, workers, mode, KOFN_F64);
            choose_faulty(&b, t, &r);
            begin(&b);
            finish(&b, &r);
            if (t <= limit)
                assert_int_equal(b.ended, KOFN_OK);
            else if (b.ended != KOFN_OK) /* OK if they came too late */
                assert_int_equal(b.ended, KOFN_CORRUPT);
            named(&b);
            close_case(&b);
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

/* Answers all outstanding tasks of the first n workers. */
static void answer_first(guard_case *b, size_t n)
{
    for (size_t i = 0; i < b->tasks && b->running; i++)
        if (b->task[i].worker < n && b->task[i].out) {
            b->task[i].out = false;
            send_event(b, (kofn_event){.type = KOFN_EV_RESULT,
                                       .worker = b->task[i].worker,
                                       .product = b->product,
                                       .task = b->task[i].task,
                                       .row = b->task[i].row});
        }
}

/* Checks that the round ends with `want` answers, and not before. */
static void waits_for(const char *spec, size_t workers, kofn_errors mode,
                      size_t want)
{
    for (size_t came = 0; came < want; came++) {
        guard_case b;

        open_case(&b, spec, workers, mode, KOFN_F64);
        begin(&b);
        answer_first(&b, came + 1);
        assert_true(b.running == (came + 1 < want));
        close_case(&b);
    }
}

static void waits_for_what_it_needs(void **state)
{
    static const kofn_errors mode[] = {KOFN_ERRORS_NONE, KOFN_ERRORS_DETECT,
                                       KOFN_ERRORS_PROBABILISTIC,
                                       KOFN_ERRORS_ADVERSARIAL};
    static const size_t rows[] = {4, 5, 5, 6};   /* last: (9 - 4) / 2 more */
    static const size_t copies[] = {1, 2, 4, 4}; /* copies may fail alike */

    (void)state;
    for (size_t m = 0; m < 4; m++) {
        waits_for("mds:k=4", 9, mode[m], rows[m]);
        waits_for("replication:k=1", 7, mode[m], copies[m]);
    }
}

/* 3 rows in 5 parts: parts 3 and 4 are empty, and seats 3 and 4 return zeros.
 * Zeros count only if there are no other results. */
static void zeros_do_not_count(void **state)
{
    static const size_t workers[] = {12, 8, 7, 6};
    static const size_t want[] = {8, 8, 7, 6}; /* 6 that are not zero */

    (void)state;
    for (size_t w = 0; w < 4; w++)
        for (size_t came = 0; came < want[w]; came++) {
            kofn_problem pb =
                KOFN_PROBLEM_INIT(KOFN_MATVEC, 3, 10, 1, KOFN_F64, false);
            guard_case b;

            open_problem(&b, &pb, "mds:k=5,basis=gauss_sys", workers[w],
                         KOFN_ERRORS_PROBABILISTIC);
            begin(&b);
            answer_first(&b, came + 1);
            assert_true(b.running == (came + 1 < want[w]));
            close_case(&b);
        }
}

/* 12 workers may answer. Five results decode and two are zero. One must be
 * left to show that the others are wrong. */
static void zeros_in_the_promise(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 3, 10, 1, KOFN_F64, false);
    guard_case b;

    (void)state;
    open_problem(&b, &pb, "mds:k=5,basis=gauss_sys", 12,
                 KOFN_ERRORS_PROBABILISTIC);
    begin(&b);
    answer_first(&b, 8);
    assert_int_equal(b.checks, 1);
    assert_int_equal(b.independent, 12 - 5 - 2 - 1);
    close_case(&b);
}

static void detect_fails_at_once(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 40; trial++) {
        kf_rng r = kf_rng_stream(9, KF_FOR_SAMPLE, trial, 0);
        guard_case b;

        open_case(&b, trial % 2 ? "elastic:k=4" : "mds:k=4", 8,
                  KOFN_ERRORS_DETECT, KOFN_F64);
        choose_faulty(&b, 1 + trial % 4, &r);
        begin(&b);
        finish(&b, &r);
        assert_true(b.ended == KOFN_CORRUPT ||
                    (b.ended == KOFN_OK && trial % 2 == 0));
        assert_int_equal(named(&b), 0);
        assert_int_equal(b.most_seen, 0);
        /* the next round is not affected */
        choose_faulty(&b, 0, &r);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        close_case(&b);
    }
}

static void detect_locates_none(void **state)
{
    kf_rng r = kf_rng_stream(21, KF_FOR_SAMPLE, 0, 0);
    guard_case b;

    (void)state;
    open_case(&b, "mds:k=4", 9, KOFN_ERRORS_DETECT, KOFN_F64);
    b.undecided_early = true; /* until there are no more */
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    assert_true(b.sizes[8] > 0);
    assert_int_equal(b.most_seen, 0);
    close_case(&b);
}

/* The option `beyond` lets float32 name all of them. */
static void float32_names_fewer(void **state)
{
    (void)state;
    for (int beyond = 0; beyond < 2; beyond++) {
        kf_rng r = kf_rng_stream(10, KF_FOR_SAMPLE, 0, 0);
        guard_case b;

        open_case(&b, "mds:k=4", 10, KOFN_ERRORS_PROBABILISTIC, KOFN_F32);
        b.opt.beyond = beyond;
        restart_core(&b);
        choose_faulty(&b, 5, &r);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, beyond ? KOFN_OK : KOFN_CORRUPT);
        assert_true(beyond ? b.most_seen > 3 : b.most_seen == 3);
        close_case(&b);
    }
}

/* A worker that leaves reduces the number of spare results. */
static void losses_and_errors(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 300; trial++) {
        kf_rng r = kf_rng_stream(11, KF_FOR_SAMPLE, trial, 0);
        bool conspire = trial % 2;
        size_t n = 10, k = 4, rho = trial % 4, t;
        guard_case b;

        open_case(&b, trial % 3 ? "elastic:k=4" : "mds:k=4", n,
                  conspire ? KOFN_ERRORS_ADVERSARIAL
                           : KOFN_ERRORS_PROBABILISTIC,
                  KOFN_F64);
        t = conspire ? (n - rho - k) / 2 : n - rho - k - 1;
        choose_faulty(&b, t, &r);
        begin(&b);
        for (uint32_t i = 0, left = 0; left < rho && i < n; i++) {
            if (b.faulty[i] || !b.running)
                continue;
            b.gone[i] = true;
            left++;
            send_event(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
        }
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        named(&b);
        close_case(&b);
    }
}

/* With fewer workers left fewer can conspire, so the results that have come
 * may be enough. */
static void last_answers_before_losses(void **state)
{
    guard_case b;

    (void)state;
    open_case(&b, "mds:k=1", 5, KOFN_ERRORS_ADVERSARIAL, KOFN_F64);
    begin(&b);
    for (size_t i = 0; i < b.tasks; i++)
        if (b.task[i].worker < 2)
            send_event(&b, (kofn_event){.type = KOFN_EV_RESULT,
                                        .worker = b.task[i].worker,
                                        .product = b.product,
                                        .task = b.task[i].task,
                                        .row = b.task[i].row});
    assert_true(b.running);
    for (uint32_t i = 2; i < 5; i++)
        send_event(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_OK);
    close_case(&b);
}

static void too_few_to_compare(void **state)
{
    kf_rng r = kf_rng_stream(12, KF_FOR_SAMPLE, 0, 0);
    guard_case b;

    (void)state;
    open_case(&b, "mds:k=4", 6, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    for (uint32_t i = 0; i < 2; i++) {
        b.gone[i] = true;
        send_event(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
    }
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    close_case(&b);
}

/* A worker that is wrong in every round is quarantined once that exceeds
 * chance, and gets no more tasks. No other worker is quarantined. */
static void faulty_are_quarantined(void **state)
{
    kf_rng r = kf_rng_stream(13, KF_FOR_SAMPLE, 0, 0);
    unsigned rounds = 0;
    guard_case b;

    (void)state;
    open_case(&b, "elastic:k=4", 8, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.faulty[2] = true;
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
    /* a joiner gets its seat; the old worker may still leave or answer */
    send_event(&b, (kofn_event){.type = KOFN_EV_JOINED, .worker = 8});
    send_event(&b, (kofn_event){.type = KOFN_EV_STORED, .worker = 8});
    assert_int_equal(b.core->fleet.seat[2], 8);
    send_event(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = 2});
    assert_int_equal(b.core->fleet.seat[2], 8);
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    close_case(&b);
}

/* A worker located by some strips is left out in all strips that disagree and
 * do not show which results are wrong. */
static void names_serve_other_strips(void **state)
{
    static const char *const spec[] = {"mds:k=4", "elastic:k=4"};
    size_t lowered = 0;

    (void)state;
    for (uint32_t trial = 0; trial < 100; trial++) {
        kf_rng r = kf_rng_stream(15, KF_FOR_SAMPLE, trial, 0);
        guard_case b;

        open_case(&b, spec[trial % 2], 9, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
        b.blind = 20; /* of 100 strips */
        b.half = 2;   /* of the 5 spare results */
        choose_faulty(&b, 1 + trial / 2 % 4, &r);
        begin(&b);
        finish(&b, &r);
        if (b.ended != KOFN_OK) /* a wrong result was in those strips only */
            assert_true(named(&b) < 1 + trial / 2 % 4);
        named(&b);
        lowered += b.lowered;
        close_case(&b);
    }
    assert_true(lowered > 0);
}

/* Each worker in turn is wrong once in 15 rounds, so no worker is quarantined.
 */
static void rare_errors_are_forgiven(void **state)
{
    kf_rng r = kf_rng_stream(20, KF_FOR_SAMPLE, 0, 0);
    size_t named_rounds = 0;
    guard_case b;

    (void)state;
    open_case(&b, "mds:k=4", 8, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    for (uint32_t round = 0; round < 600; round++) {
        for (size_t i = 0; i < 8; i++)
            b.faulty[i] = kf_rng_below(&r, 15) == 0;
        begin(&b);
        finish(&b, &r);
        assert_true(b.ended == KOFN_OK || b.ended == KOFN_CORRUPT);
        for (uint32_t i = 0; i < 8; i++)
            assert_int_equal(kf_core_worker(b.core, i), KOFN_WORKER_LIVE);
    }
    for (uint32_t i = 0; i < 8; i++)
        named_rounds += b.core->fleet.located[i];
    assert_true(named_rounds > 60); /* of the 320 wrong ones */
    close_case(&b);
}

/* A worker located in an earlier round is left out if nothing else helps. That
 * does not count as another location. */
static void names_serve_later_rounds(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 60; trial++) {
        kf_rng r = kf_rng_stream(16, KF_FOR_SAMPLE, trial, 0);
        size_t faulty = 1 + trial / 2 % 4;
        kf_core_view v;
        guard_case b;

        open_case(&b, trial % 2 ? "elastic:k=4" : "mds:k=4", 9,
                  trial % 3 ? KOFN_ERRORS_PROBABILISTIC
                            : KOFN_ERRORS_ADVERSARIAL,
                  KOFN_F64);
        faulty = trial % 3 ? faulty : 1 + faulty % 2;
        choose_faulty(&b, faulty, &r);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        if (named(&b) == faulty) {
            b.blind = SIZE_MAX;
            begin(&b);
            finish(&b, &r);
            assert_int_equal(b.ended, KOFN_OK);
        }
        kf_core_look(b.core, 0, &v);
        for (size_t i = 0; i < v.workers; i++)
            assert_true(v.located[i] <= 1);
        close_case(&b);
    }
}

/* Locating takes 4 results that decode, 2 that may be wrong, and one. */
static void asks_for_what_locating_takes(void **state)
{
    kf_rng r = kf_rng_stream(17, KF_FOR_SAMPLE, 0, 0);
    size_t seen = 0;
    guard_case b;

    (void)state;
    open_case(&b, "elastic:k=4", 9, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    for (uint32_t trial = 0; trial < 20; trial++) {
        b.faulty[trial % 9] = true;
        restart_core(&b);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        assert_true(b.sizes[4] > 0);
        assert_int_equal(b.sizes[5], 0);
        seen += b.sizes[6];
        b.faulty[trial % 9] = false;
    }
    assert_true(seen > 0);
    close_case(&b);
}

/* If no other worker can answer, the check says so and decides with the
 * results that came. */
static void last_results(void **state)
{
    static const char *const spec[] = {"mds:k=4", "elastic:k=4"};

    (void)state;
    for (uint32_t trial = 0; trial < 40; trial++) {
        kf_rng r = kf_rng_stream(18, KF_FOR_SAMPLE, trial, 0);
        guard_case b;

        open_case(&b, spec[trial % 2], 9, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
        b.undecided_early = true;
        choose_faulty(&b, trial / 2 % 5, &r);
        for (uint32_t gone = 0; gone < trial / 10 % 3; gone++) {
            b.gone[gone] = true;
            send_event(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = gone});
            b.faulty[gone] = false;
        }
        begin(&b);
        finish(&b, &r);
        assert_true(b.ended == KOFN_OK || trial / 2 % 5 > 2);
        for (size_t n = 9 - trial / 10 % 3; n < 9; n++)
            assert_int_equal(b.sizes[n], 0);
        assert_true(b.sizes[8 - trial / 10 % 3] > 0);
        close_case(&b);
    }
}

/* Verdicts of no check, repeated and late verdicts, and verdicts with names
 * that do not exist are sent. */
static void foreign_verdicts(void **state)
{
    static const uint32_t wild[] = {0, 7, 7, UINT32_MAX, 1000000};

    (void)state;
    for (uint32_t trial = 0; trial < 200; trial++) {
        kf_rng r = kf_rng_stream(14, KF_FOR_SAMPLE, trial, 0);
        guard_case b;

        open_case(&b, trial % 2 ? "elastic:k=4" : "mds:k=4", 9,
                  KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
        for (int round = 0; round < 3; round++) {
            begin(&b);
            while (b.running) {
                size_t i = (size_t)kf_rng_below(&r, b.tasks);

                send_event(
                    &b,
                    (kofn_event){
                        .type = KOFN_EV_VERDICT,
                        .product = b.product,
                        .task = (uint32_t)kf_rng_below(&r, 20) +
                                (kf_rng_below(&r, 4) ? 0 : UINT32_MAX - 9),
                        .status = kf_rng_below(&r, 2) ? KOFN_OK : KOFN_CORRUPT,
                        .bad = wild,
                        .bad_count = (size_t)kf_rng_below(&r, 6)});
                send_event(&b, (kofn_event){.type = KOFN_EV_RESULT,
                                            .worker = b.task[i].worker,
                                            .product = b.product,
                                            .task = b.task[i].task,
                                            .row = b.task[i].row});
            }
            assert_int_equal(b.ended, KOFN_OK);
        }
        close_case(&b);
    }
}

/* All results together do not decide. That is neither corruption nor a lack of
 * results to decode. */
static void undecided_is_too_few(void **state)
{
    kf_rng r = kf_rng_stream(19, KF_FOR_SAMPLE, 0, 0);
    guard_case b;

    (void)state;
    open_case(&b, "mds:k=4", 9, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.undecided_always = true;
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "9 results agree, but are too few"));
    close_case(&b);
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
        TEST(
            probabilistic_limit,
            "guard: faulty workers up to the probabilistic limit are survived"),
        TEST(adversarial_limit,
             "guard: faulty workers up to the adversarial limit are survived"),
        TEST(waits_for_what_it_needs,
             "guard: a round waits for the results that its mode needs"),
        TEST(zeros_do_not_count,
             "guard: results that are zero by design do not count"),
        TEST(
            zeros_in_the_promise,
            "guard: results that are zero by design do not count in the bounds"),
        TEST(detect_fails_at_once,
             "guard: detect fails without names, and the next round is right"),
        TEST(
            detect_locates_none,
            "guard: detect locates no worker, however many results it compares"),
        TEST(float32_names_fewer,
             "guard: float32 names half of the spare results unless beyond "
             "is set"),
        TEST(
            losses_and_errors,
            "guard: losses and errors are survived together (10 workers, k=4)"),
        TEST(last_answers_before_losses,
             "guard: two answers are enough when all others have left"),
        TEST(too_few_to_compare,
             "guard: four workers are too few to compare (k=4)"),
        TEST(
            faulty_are_quarantined,
            "guard: a worker that is always wrong is quarantined, no other is"),
        TEST(rare_errors_are_forgiven,
             "guard: workers that are wrong once in 15 rounds stay"),
        TEST(names_serve_other_strips,
             "guard: a located worker is left out in all strips that disagree"),
        TEST(
            names_serve_later_rounds,
            "guard: a worker located earlier is left out if nothing else helps"),
        TEST(asks_for_what_locating_takes,
             "guard: locating asks for all results that it takes at once"),
        TEST(last_results,
             "guard: the last check says that no more results can come"),
        TEST(foreign_verdicts,
             "guard: foreign, repeated and late verdicts change nothing"),
        TEST(undecided_is_too_few,
             "guard: a comparison without a verdict ends as too few results"),
        TEST(refusals, "guard: too few workers and below=degrade are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
