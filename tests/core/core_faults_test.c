/* core_faults_test.c -- tests the coordinator alone when workers leave or are
 * too few. */
#include "core_rig.h"

/* ---- (d) outstanding tasks when a worker leaves -------------------------- */

/* Loses worker `gone` when four fifths of the results have arrived, and checks
 * how many strips are asked for again. */
static void lose_one(kofn_in_flight mode, size_t pieces, uint32_t gone)
{
    kofn_core_options opt = {
        .size = sizeof opt, .in_flight = mode, .pieces = (unsigned)pieces};
    size_t before, again = 0, missing = 0, open;
    core_case b;

    open_workers(&b, "elastic:k=3,basis=gauss", 5, 40, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    for (size_t i = 0; i < b.tasks; i++)
        if (b.task[i].worker != gone || i % 2)
            answer(&b, i, KOFN_EV_RESULT);
    for (size_t i = 0; i < b.tasks; i++)
        if (b.task[i].worker == gone && b.task[i].state == OUT)
            missing += b.task[i].hi - b.task[i].lo;
    open = open_strips(&b);
    assert_true(open > 0 && open < 40 && missing > 0);
    before = b.tasks;
    event(&b, KOFN_EV_LEFT, gone);
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
    case_close(&b);
}

static void in_flight_modes(void **state)
{
    (void)state;
    for (uint32_t gone = 0; gone < 5; gone++)
        for (int mode = 0; mode < 3; mode++)
            lose_one((kofn_in_flight)mode, 6, gone);
}

static void restarted_work_is_whole(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .in_flight = KOFN_IN_FLIGHT_KEEP, .pieces = 4};
    size_t first;
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=3,basis=gauss", 9, 240, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    first = b.tasks;
    for (uint32_t gone = 0; gone < 5; gone++) {
        size_t before = b.tasks;

        for (size_t i = 0, sent = 0; i < b.tasks && sent < 3; i++)
            if (b.task[i].state == OUT && b.task[i].worker % 2) {
                answer(&b, i, KOFN_EV_RESULT);
                sent++;
            }
        event(&b, KOFN_EV_LEFT, gone);
        assert_true(b.tasks > before);
        assert_true(b.tasks - before <= first);
    }
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

static void results_outlive_workers(void **state)
{
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 3, 6, NULL);
    event(&b, KOFN_EV_BEGIN, 0);
    answer_worker(&b, 1);
    size_t before = b.tasks;
    event(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.tasks, before); /* nothing to repeat */
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

static void notice_lets_work_finish(void **state)
{
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 4, 8, NULL);
    event(&b, KOFN_EV_BEGIN, 0);
    size_t before = b.tasks;
    event(&b, KOFN_EV_LEAVING, 2);
    assert_int_equal(b.tasks, before);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    event(&b, KOFN_EV_BEGIN, 0);
    assert_int_equal(asked(&b, 2, 0), 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

static void failed_task_goes_elsewhere(void **state)
{
    static const char *const specs[] = {"elastic:k=2,basis=gauss",
                                        "mds:k=2,basis=gauss", "uncoded",
                                        "replication:k=2"};

    (void)state;
    for (size_t s = 0; s < 4; s++)
        for (unsigned pieces = 1; pieces < 4; pieces += 2) {
            kofn_core_options opt = {.size = sizeof opt, .pieces = pieces};
            core_case b;

            open_workers(&b, specs[s], 4, 8, &opt);
            event(&b, KOFN_EV_BEGIN, 0);
            answer(&b, 0, KOFN_EV_FAILED); /* the account checks the rest */
            answer_all(&b);
            assert_false(b.running);
            assert_int_equal(b.ended, s == 2 ? KOFN_TOOFEW : KOFN_OK);
            event(&b, KOFN_EV_BEGIN, 0); /* asked again next */
            answer_all(&b);
            assert_int_equal(b.ended, KOFN_OK);
            case_close(&b);
        }
}

/* ---- (e) below the threshold --------------------------------------------- */

static void refuse_below_threshold(void **state)
{
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=3,basis=gauss", 4, 6, NULL);
    event(&b, KOFN_EV_BEGIN, 0);
    event(&b, KOFN_EV_LEFT, 0);
    assert_true(b.running);
    event(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    /* between rounds nothing is lost: the next round works with a joiner */
    join_and_store(&b);
    event(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* The round waits for a worker that is storing its block, also under REFUSE.
 * Workers that joined during the round are asked if it cannot end without
 * them. */
static void joiners_are_asked(void **state)
{
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=3,basis=gauss", 3, 6, NULL);
    event(&b, KOFN_EV_BEGIN, 0);
    uint32_t late = join_and_store(&b); /* seat 3, a fresh row */
    assert_int_equal(b.worker[late].seat, 3);
    assert_int_equal(asked(&b, late, 0), 0);
    event(&b, KOFN_EV_LEFT, 0);
    assert_true(asked(&b, late, 0) > 0);
    uint32_t later = join(&b);
    assert_int_equal(b.worker[later].seat, 0);
    event(&b, KOFN_EV_LEFT, 1);
    assert_true(b.running); /* `later` is storing */
    event(&b, KOFN_EV_STORED, later);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    event(&b, KOFN_EV_BEGIN, 0);
    later = join(&b);
    event(&b, KOFN_EV_LEFT, 2);
    event(&b, KOFN_EV_LEFT, later);
    assert_int_equal(b.ended, KOFN_TOOFEW);
    case_close(&b);
}

static void pause_with_patience(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .patience = 1000};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=3,basis=gauss", 4, 6, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    b.now = 50;
    event(&b, KOFN_EV_LEFT, 0);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER);
    event(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(kf_core_alarm(b.core), 1050);
    b.now = 500; /* a second loss does not restart the clock */
    event(&b, KOFN_EV_LEFT, 2);
    assert_int_equal(kf_core_alarm(b.core), 1050);
    event(&b, KOFN_EV_ALARM, 0); /* an early alarm changes nothing */
    assert_true(b.running);
    for (int i = 0; i < 2; i++)
        join_and_store(&b);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    event(&b, KOFN_EV_BEGIN, 0);
    event(&b, KOFN_EV_LEFT, 3);
    b.now = kf_core_alarm(b.core);
    assert_int_equal(b.now, 1500);
    event(&b, KOFN_EV_ALARM, 0);
    assert_int_equal(b.ended, KOFN_LATE);
    assert_non_null(strstr(kofn_errmsg(), "patience"));
    case_close(&b);
}

static void pause_has_no_alarm(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .late = 2};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=3,basis=gauss", 4, 8, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    event(&b, KOFN_EV_LEFT, 0);
    event(&b, KOFN_EV_LEFT, 1);
    for (uint32_t w = 2; w < 4; w++) { /* all workers that are left are done */
        b.now += 100;
        answer_worker(&b, w);
    }
    assert_true(b.running);
    assert_true(kf_core_alarm(b.core) == KOFN_NEVER);
    b.now += 1000000;
    event(&b, KOFN_EV_ALARM, 0);
    assert_true(b.running);
    join_and_store(&b);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* Waiting cannot help if every possible seat has answered. */
static void pause_ends_if_unstable(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .max_error = 1e-17};
    core_case b;

    (void)state;
    open_workers(&b, "mds-published:k=3,basis=chebyshev", 4, 6, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    assert_false(b.running);
    assert_int_equal(b.ended, KOFN_UNSTABLE);
    case_close(&b);
}

/* The round needs one worker more than it has if the result of all of them is
 * refused. */
static void needed_counts_workers(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .below = KOFN_BELOW_PAUSE, .max_error = 1e-17};
    kf_core_view v;
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=3,basis=gauss", 4, 6, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.needed, 0);
    answer_all(&b);
    assert_true(b.running);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.live, 4);
    assert_int_equal(v.needed, 5);
    case_close(&b);
}

/* A systematic code that lacks workers delivers the plain blocks. */
static void degrade_to_plain_blocks(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        kofn_core_options opt = {.size = sizeof opt,
                                 .below = KOFN_BELOW_DEGRADE,
                                 .in_flight = (kofn_in_flight)mode};
        core_case b;

        open_workers(&b, "elastic:k=3,basis=gauss_sys", 4, 6, &opt);
        event(&b, KOFN_EV_BEGIN, 0);
        event(&b, KOFN_EV_LEFT, 3);
        event(&b, KOFN_EV_LEFT, 1);
        /* 0 and 2 hold plain blocks and compute all of them */
        answer_worker(&b, 0);
        assert_true(b.running);
        event(&b, KOFN_EV_LEFT, 2);
        assert_int_equal(b.ended, KOFN_PARTIAL);
        assert_true(asked(&b, 0, 0) >= 6);
        /* the last decoder has block 0 only */
        case_close(&b);
    }
}

/* Returns the number of decoded strips of the round in which want `w` is not
 * lost. */
static size_t plain_strips(kofn_core *c, size_t w)
{
    kofn_action a;
    size_t n = 0;

    while (kofn_core_next(c, &a))
        if (a.type == KOFN_DO_DECODE && a.decoder->copy[w] != KF_LOST)
            n += a.hi - a.lo;
    return n;
}

/* Every mode delivers all plain blocks of the live workers, in whatever order
 * the others left. */
static void degraded_rounds_give_all(void **state)
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

/* A degraded round delivers what is left. It does not wait for a worker that
 * joins. */
static void degraded_rounds_go_on(void **state)
{
    const kofn_core_options opt = {.size = sizeof opt,
                                   .below = KOFN_BELOW_DEGRADE};
    kf_core_view v;
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=3,basis=gauss_sys", 4, 6, &opt);
    event(&b, KOFN_EV_BEGIN, 0);
    event(&b, KOFN_EV_LEFT, 3);
    event(&b, KOFN_EV_LEFT, 1);
    join(&b);
    event(&b, KOFN_EV_LEFT, 2);
    assert_true(b.running);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.storing, 1);
    assert_int_equal(v.needed, 0);
    answer_worker(&b, 0);
    assert_int_equal(b.ended, KOFN_PARTIAL);
    case_close(&b);
}

/* A refused result is remembered while others are refused for want of results,
 * or pass. Seats 0 and 3 have the same point. */
static void refused_results_are_remembered(void **state)
{
    static const uint32_t good[] = {0, 1}, copies[] = {0, 3};
    kofn_plan *plan = make_plan("polynomial:m=2,angles=3,basis=circle", 6, 4);
    kf_use use = {.plan = plan};
    kf_product p = {.use = &use};
    kofn_core c = {.opt.max_error = 1e-17};
    const kofn_decoder *d;
    double refused;

    (void)state;
    assert_ok(kf_code_new(&use.code, plan));
    assert_ok(kf_cache_new(&use.cache, use.code, 0));
    assert_ok(kf_core_find_decoder(&c, &p, copies, 2, &d));
    assert_null(d);
    assert_true(p.error.refused == 0);
    assert_ok(kf_core_find_decoder(&c, &p, good, 2, &d));
    assert_null(d);
    refused = p.error.refused;
    assert_true(refused > 1e-17 && refused < 1e-9);
    assert_ok(kf_core_find_decoder(&c, &p, copies, 2, &d));
    assert_null(d);
    assert_true(p.error.refused == refused);
    c.opt.max_error = 1;
    assert_ok(kf_core_find_decoder(&c, &p, good, 2, &d));
    assert_non_null(d);
    assert_true(p.error.refused == refused);
    kf_cache_free(use.cache);
    kf_code_free(use.code);
    kofn_plan_free(plan);
}

TEST_FILE(core_faults_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            in_flight_modes,
            "core: a loss repeats what the in-flight mode says (4/5 answered)"),
        TEST(restarted_work_is_whole,
             "core: restarted strips are dealt in no more tasks than at first"),
        TEST(results_outlive_workers,
             "core: results of a worker that left stay valid"),
        TEST(notice_lets_work_finish,
             "core: a leaving worker finishes its tasks and gets no new ones"),
        TEST(failed_task_goes_elsewhere,
             "core: a failed task goes to another worker in that round"),
        TEST(
            refuse_below_threshold,
            "core: a round below the threshold fails (below=refuse_below_threshold)"),
        TEST(joiners_are_asked,
             "core: workers that join in a round are asked if it needs them"),
        TEST(pause_with_patience,
             "core: a paused round fails after its patience (below=pause)"),
        TEST(pause_has_no_alarm,
             "core: a pause without patience has no alarm (late=2)"),
        TEST(pause_ends_if_unstable,
             "core: a pause ends as unstable if no seat can help"),
        TEST(needed_counts_workers,
             "core: a refused round needs one worker more than it has"),
        TEST(degrade_to_plain_blocks,
             "core: a degraded round delivers plain blocks (each mode)"),
        TEST(
            degraded_rounds_give_all,
            "core: a degraded round gives all blocks that are left (each mode)"),
        TEST(degraded_rounds_go_on,
             "core: a degraded round waits for no worker that joins"),
        TEST(refused_results_are_remembered,
             "core: a refused result is remembered when others are judged"),
    };

    return cmocka_run_group_tests_name("core_faults", tests, NULL, NULL);
}
