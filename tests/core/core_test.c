/* core_test.c -- tests the coordinator alone, with events in and actions out:
 * rounds, accuracy and seats. */
#include "core_rig.h"

/* ---- (a) normal rounds --------------------------------------------------- */

static void normal_rounds(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .pieces = 1};
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 3, 6, &opt);
    for (unsigned r = 1; r <= 3; r++) {
        /* cuts at 0, 2, 4, 6; worker p has groups p and p + 1 */
        static const size_t share[4][3] = {
            {0, 0, 4}, {1, 2, 6}, {2, 4, 6}, {2, 0, 2}};

        event(&b, KOFN_EV_BEGIN, 0);
        assert_int_equal(asked_of_all(&b, 0), 12);
        for (size_t k = 0; k < 4; k++) {
            bool found[6] = {false};

            for (size_t i = 0; i < b.tasks; i++)
                for (size_t s = b.task[i].lo; s < b.task[i].hi; s++)
                    found[s] |= b.task[i].worker == share[k][0];
            for (size_t s = share[k][1]; s < share[k][2]; s++)
                assert_true(found[s]);
        }
        answer_all(&b);
        assert_false(b.running);
        assert_int_equal(b.ended, KOFN_OK);
        assert_int_equal(b.rounds, r);
        assert_int_equal(b.decodes, 3);
    }
    case_close(&b);
}

static void undrained_actions_are_refused(void **state)
{
    kofn_plan *p = make_plan("mds:k=2", 3, 4);
    kofn_event ev = {.type = KOFN_EV_JOINED};
    kofn_core *c;
    kofn_action a;

    (void)state;
    assert_ok(kf_core_new(&c, p, NULL));
    assert_ok(kofn_core_step(c, &ev));
    assert_status(KOFN_STATE, kofn_core_step(c, &ev));
    assert_true(kofn_core_next(c, &a));
    assert_false(kofn_core_next(c, &a));
    assert_ok(kofn_core_step(c, &ev));
    kofn_core_free(c);
    kofn_core_free(NULL);
    kofn_plan_free(p);
}

#define ABOUT(what, w, of, k, r)                                               \
    {                                                                          \
        .type = what, .worker = w, .product = of, .task = k, .row = r          \
    }

/* Stale, foreign, duplicate and senseless events change nothing and are
 * counted. */
static void wrong_events_are_dropped(void **state)
{
    kf_core_view v;
    core_case b;

    (void)state;
    open_workers(&b, "mds:k=2,basis=gauss", 3, 4, NULL);
    event(&b, KOFN_EV_BEGIN, 0);
    answer_all(&b);
    event(&b, KOFN_EV_BEGIN, 0);
    uint32_t first = b.first, worker = b.task[0].worker, now = b.product;
    uint32_t row = (uint32_t)b.task[0].row;
    uint64_t before = b.digest;
    const kofn_event dropped[] = {
        {.type = KOFN_EV_BEGIN},
        {.type = (kofn_event_type)0},
        {.type = (kofn_event_type)99},
        {.type = KOFN_EV_JOINED, .worker = 1},
        {.type = KOFN_EV_JOINED, .worker = UINT32_MAX},
        {.type = KOFN_EV_STORED, .worker = 1},
        {.type = KOFN_EV_STORED, .worker = 400},
        {.type = KOFN_EV_LEFT, .worker = 77},
        {.type = KOFN_EV_LEAVING, .worker = 77},
        ABOUT(KOFN_EV_RESULT, worker, now, first - 1, row),
        ABOUT(KOFN_EV_RESULT, worker + 1, now, first, row),
        ABOUT(KOFN_EV_RESULT, worker, now, first, row + 1),
        ABOUT(KOFN_EV_RESULT, worker, now + 1, first, row),
        ABOUT(KOFN_EV_RESULT, worker, now - 1, first, row),
        ABOUT(KOFN_EV_RESULT, worker, 0, first, row),
        ABOUT(KOFN_EV_RESULT, 400, now, first + 9999, row),
        ABOUT(KOFN_EV_FAILED, worker, now, first - 1, row),
        ABOUT(KOFN_EV_FAILED, worker + 1, now, first, row),
        ABOUT(KOFN_EV_FAILED, worker, now, first, row + 1),
        ABOUT(KOFN_EV_FAILED, worker, now + 1, first, row),
        {.type = KOFN_EV_VERDICT, .product = now},
        {.type = KOFN_EV_VERDICT, .product = now + 1},
    };
    size_t n = sizeof dropped / sizeof *dropped;
    for (size_t i = 0; i < n; i++)
        send_event(&b, dropped[i]);
    assert_true(b.digest == before);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.dropped, n);
    answer(&b, 0, KOFN_EV_RESULT);
    answer(&b, 0, KOFN_EV_RESULT); /* the second one is dropped */
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.dropped, n + 1);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* A round of strips that do not exist does not begin. A round of some strips
 * asks for these strips only. */
static void some_strips_only(void **state)
{
    static const size_t bad[][2] = {{3, 3}, {4, 2}, {0, 10}, {9, 10}};
    kf_core_view v;
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2", 4, 9, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kofn_event ev = {.type = KOFN_EV_BEGIN,
                         .product = 1,
                         .lo = bad[i][0],
                         .hi = bad[i][1]};
        kofn_action a;

        assert_ok(kofn_core_step(b.core, &ev));
        assert_false(kofn_core_next(b.core, &a));
        kf_core_look(b.core, 0, &v);
        assert_int_equal(v.dropped, i + 1);
        assert_false(v.running);
    }
    for (size_t lo = 0; lo < 9; lo++)
        for (size_t hi = lo + 1; hi <= 9; hi++) {
            size_t strips = 0;

            b.lo = lo;
            b.hi = hi;
            event(&b, KOFN_EV_BEGIN, 0);
            for (size_t i = 0; i < b.tasks; i++)
                strips += b.task[i].hi - b.task[i].lo;
            assert_int_equal(strips, 2 * (hi - lo));
            assert_true(kf_core_done(b.core, 0) == 0);
            for (size_t i = 0, came = 0; i < b.tasks; i++) {
                answer(&b, i, KOFN_EV_RESULT);
                came += b.task[i].hi - b.task[i].lo;
                assert_true(kf_core_done(b.core, 0) ==
                            (double)came / (double)strips);
            }
            assert_int_equal(b.ended, KOFN_OK);
        }
    case_close(&b);
}

static void round_without_workers(void **state)
{
    kofn_plan *p = make_plan("elastic:k=2", 4, 5);

    (void)state;
    for (int below = 0; below < 3; below++) {
        kofn_core_options opt = {
            .size = sizeof opt, .below = (kofn_below)below, .patience = 10};
        core_case b;

        case_open(&b, p, &opt);
        event(&b, KOFN_EV_BEGIN, 0);
        if (below == KOFN_BELOW_PAUSE) {
            assert_true(b.running);
            b.now = kf_core_alarm(b.core);
            assert_int_equal(b.now, 10);
            event(&b, KOFN_EV_ALARM, 0);
        }
        assert_false(b.running);
        assert_int_equal(b.ended, below == KOFN_BELOW_REFUSE  ? KOFN_TOOFEW
                                  : below == KOFN_BELOW_PAUSE ? KOFN_LATE
                                                              : KOFN_PARTIAL);
        case_close(&b);
    }
    kofn_plan_free(p);
}

/* ---- (g) accuracy -------------------------------------------------------- */

static double predicted_error(kofn_plan *p, const uint32_t *seats, size_t n)
{
    kofn_decoder *d;
    kf_code *code;
    double e;

    assert_ok(kf_code_new(&code, p));
    assert_ok(kf_decoder_new(&d, code, seats, n, false));
    e = d->predicted;
    kf_decoder_free(d);
    kf_code_free(code);
    return e;
}

static size_t insert(uint32_t *set, size_t n, uint32_t x)
{
    size_t i = n;

    for (; i > 0 && set[i - 1] > x; i--)
        set[i] = set[i - 1];
    set[i] = x;
    return n + 1;
}

/* If the tolerance lies between the errors of k and k + 1 results, one more
 * result is asked for. If only all results meet it, all are asked for. If they
 * do not meet it either, the round is refused. */
static void one_more_for_accuracy(void **state)
{
    kofn_plan *p = make_plan("elastic:k=6,basis=gauss", 8, 10);
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    double six = 0, seven = 0, eight = predicted_error(p, all, 8);
    core_case b;

    (void)state;
    for (size_t i = 0; i < 8; i++) { /* without i; without i and the next */
        uint32_t some[8];
        size_t n = 0;

        for (size_t k = 1; k < 8; k++)
            n = insert(some, n, (uint32_t)((i + k) % 8));
        seven = fmax(seven, predicted_error(p, some, 7));
        n = 0;
        for (size_t k = 2; k < 8; k++)
            n = insert(some, n, (uint32_t)((i + k) % 8));
        six = fmax(six, predicted_error(p, some, 6));
    }
    assert_true(six > 4 * seven && seven > 1.2 * eight);
    for (int i = 0; i < 3; i++) {
        kofn_core_options opt = {.size = sizeof opt,
                                 .pieces = 1,
                                 .max_error = i == 0   ? 1.01 * seven
                                              : i == 1 ? eight * 1.01
                                                       : eight / 2};

        case_open(&b, p, &opt);
        populate(&b, 8);
        event(&b, KOFN_EV_BEGIN, 0);
        assert_int_equal(asked_of_all(&b, 0), 60);
        answer_all(&b);
        assert_false(b.running);
        assert_int_equal(b.ended, i < 2 ? KOFN_OK : KOFN_UNSTABLE);
        if (i < 2)
            assert_true(b.predicted <= opt.max_error && b.predicted > 0);
        else
            assert_non_null(strstr(kofn_errmsg(), "max_error"));
        assert_true(asked_of_all(&b, 0) > 60);
        if (i > 0) /* to the last result */
            assert_int_equal(asked_of_all(&b, 0), 80);
        case_close(&b);
    }
    kofn_plan_free(p);
}

/* ---- (h) seats ----------------------------------------------------------- */

static void seats_are_reused_lowest_first(void **state)
{
    core_case b;

    (void)state;
    open_workers(&b, "elastic:k=2,basis=gauss", 4, 6, NULL);
    for (uint32_t w = 0; w < 4; w++)
        assert_int_equal(b.worker[w].seat, w);
    event(&b, KOFN_EV_LEFT, 3);
    event(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.worker[join(&b)].seat, 1);
    assert_int_equal(b.worker[join(&b)].seat, 3);
    assert_int_equal(b.worker[join(&b)].seat, 4); /* a fresh row */
    assert_int_equal(b.worker[join(&b)].seat, 5);
    event(&b, KOFN_EV_LEFT, 4); /* still storing */
    assert_int_equal(b.worker[join(&b)].seat, 1);
    case_close(&b);
}

static void standby_without_seat(void **state)
{
    kf_core_view v;
    core_case b;

    (void)state;
    open_workers(&b, "mds:k=2,basis=harmonic", 3, 6, NULL);
    uint32_t a = join(&b), c = join(&b), d = join(&b);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.standby, 3);
    event(&b, KOFN_EV_STORED, a); /* it has no block to store */
    assert_int_equal(b.worker[a].state, STANDBY);
    event(&b, KOFN_EV_LEFT, c); /* while it stands by */
    event(&b, KOFN_EV_LEFT, 1);
    assert_int_equal(b.worker[a].state, STORING); /* the first to come */
    assert_int_equal(b.worker[a].seat, 1);
    event(&b, KOFN_EV_LEFT, a);
    assert_int_equal(b.worker[d].seat, 1);
    event(&b, KOFN_EV_STORED, d);
    event(&b, KOFN_EV_BEGIN, 0);
    assert_true(asked(&b, d, 0) > 0);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    case_close(&b);
}

/* Results of one group do not help another. Joiners go to the group that has
 * the fewest members. */
static void groups_are_independent(void **state)
{
    core_case b;

    (void)state;
    /* in groups 0 2 4 and 1 3 5 */
    open_workers(&b, "elastic:k=4,groups=2,basis=gauss", 6, 5, NULL);
    event(&b, KOFN_EV_BEGIN, 0);
    event(&b, KOFN_EV_LEFT, 0);
    assert_true(b.running);
    answer_all(&b);
    assert_int_equal(b.ended, KOFN_OK);
    event(&b, KOFN_EV_LEFT, 2);
    assert_int_equal(b.worker[join_and_store(&b)].seat % 2, 0);
    assert_int_equal(b.worker[join_and_store(&b)].seat % 2, 0);
    event(&b, KOFN_EV_LEFT, 1);
    event(&b, KOFN_EV_LEFT, 3);
    event(&b, KOFN_EV_BEGIN, 0); /* four live, one in group 1 */
    assert_int_equal(b.ended, KOFN_TOOFEW);
    assert_non_null(strstr(kofn_errmsg(), "a group of the code"));
    case_close(&b);
}

/* Sends an event to a core without an account. */
static void send_alone(kofn_core *c, kofn_event_type type, size_t worker)
{
    kofn_event ev = {.type = type, .worker = (uint32_t)worker};
    kofn_action a;

    assert_ok(kofn_core_step(c, &ev));
    while (kofn_core_next(c, &a))
        continue;
}

/* The search does not grow with the number of groups and seats. */
static void seat_search_is_short(void **state)
{
    static const char *const spec[] = {"uncoded", "replication:k=1000",
                                       "elastic:k=2", "elastic:k=8,groups=4"};
    enum { N = 3000 };

    (void)state;
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++) {
        kofn_plan *p = make_plan(spec[i], N, 2);
        kofn_core *c;

        assert_ok(kf_core_new(&c, p, NULL));
        for (size_t w = 0; w < N; w++)
            send_alone(c, KOFN_EV_JOINED, w);
        assert_int_equal(kf_core_storing(c), N);
        assert_in_range(c->fleet.looked, 0, 4 * N);
        c->fleet.looked = 0;
        for (size_t w = N;
             w-- > 0;) /* one seat is empty, and is found at once */
            send_alone(c, KOFN_EV_LEFT, w);
        for (size_t w = N; w < 2 * N; w++)
            send_alone(c, KOFN_EV_JOINED, w);
        assert_int_equal(kf_core_storing(c), N);
        for (size_t s = 0; s < N; s++)
            assert_int_equal(c->fleet.seat[s], N + s);
        assert_in_range(c->fleet.looked, 0, 4 * N);
        kofn_core_free(c);
        kofn_plan_free(p);
    }
}

TEST_FILE(core_test)
{
    const struct CMUnitTest tests[] = {
        TEST(normal_rounds,
             "core: three rounds end with all workers (k=2, 3 workers)"),
        TEST(undrained_actions_are_refused,
             "core: a step is refused before the actions are drained"),
        TEST(wrong_events_are_dropped,
             "core: stale, foreign and senseless events are dropped"),
        TEST(some_strips_only,
             "core: a round may be of some strips (every range of 9)"),
        TEST(round_without_workers,
             "core: a round without workers ends as below says"),
        TEST(one_more_for_accuracy,
             "core: one more result is asked for if accuracy needs it"),
        TEST(seats_are_reused_lowest_first,
             "core: joiners take the lowest empty seat first"),
        TEST(standby_without_seat,
             "core: a worker without a seat stands by until one is empty"),
        TEST(groups_are_independent,
             "core: each group needs enough workers (2 groups)"),
        TEST(seat_search_is_short,
             "core: 3000 joiners look at 4 seats each on average"),
    };

    return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
