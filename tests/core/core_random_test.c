/* core_random_test.c -- tests the coordinator alone under random events. */
#include "core_rig.h"

#include "base/rng.h"

static const struct {
    const char *spec;
    size_t workers, span;
} codes[] = {
    {"uncoded", 3, 5},
    {"uncoded", 1, 1},
    {"replication:k=2", 5, 4},
    {"replication:k=1", 3, 9},
    {"mds:k=2", 4, 6},
    {"mds-published:k=3,basis=chebyshev", 5, 4},
    {"mds:k=3,basis=harmonic", 4, 11},
    {"mds:k=1", 3, 3},
    {"mds:k=3,weight=3,basis=gauss", 5, 3},
    {"elastic:k=3", 6, 13},
    {"elastic:k=2,basis=gauss_sys", 5, 1},
    {"elastic:k=4,groups=2", 8, 7},
    {"elastic:k=6,groups=3,basis=haar", 9, 6},
    {"elastic:k=3,deal=speed,basis=gauss", 5, 10},
    {"elastic:k=4,groups=2,deal=speed,basis=gauss", 8, 10},
    {"mds-published:k=5,basis=vandermonde", 7, 8},
    {"elastic:k=4", 4, 9},
    {"elastic:k=2,groups=2,basis=haar", 6, 5},
};

#define CODES (sizeof codes / sizeof *codes)

typedef struct census {
    size_t status[32], sequences, events, evicted;
} census;

static uint32_t some_worker(const core_case *b, kf_rng *r, int from, int to)
{
    uint32_t n = 0, pick = UINT32_MAX;

    for (uint32_t w = 0; w < b->workers; w++)
        if (b->worker[w].state >= from && b->worker[w].state <= to &&
            kf_rng_below(r, ++n) == 0)
            pick = w;
    return pick;
}

static size_t some_task(const core_case *b, kf_rng *r)
{
    size_t n = 0, pick = SIZE_MAX;

    for (size_t i = 0; i < b->tasks; i++)
        if (b->task[i].state == OUT && kf_rng_below(r, ++n) == 0)
            pick = i;
    return pick;
}

static void odd_event(core_case *b, kf_rng *r)
{
    static const uint32_t odd[] = {0, 1, 63, 400, 70000, UINT32_MAX};
    kofn_event ev = {
        .type = (kofn_event_type)kf_rng_below(r, 12),
        .worker = (uint32_t)kf_rng_below(r, b->workers + 2),
        .product = b->product + 1 - (uint32_t)(3 * kf_rng_below(r, 8) / 7),
        .task = b->first + (uint32_t)kf_rng_below(r, b->tasks + 3),
        .row = (uint32_t)kf_rng_below(r, 4),
        .took = kf_rng_below(r, 3) ? 0 : (kofn_time)kf_rng_below(r, 1000),
    };

    if (kf_rng_below(r, 4) == 0)
        ev.worker = odd[kf_rng_below(r, 6)];
    if (kf_rng_below(r, 4) == 0)
        ev.task -= (uint32_t)kf_rng_below(r, 40);
    /* The account ends at MOST_WORKERS, but the core takes such a number. */
    if (ev.type == KOFN_EV_JOINED &&
        (ev.worker > b->workers + 3 || ev.worker >= MOST_WORKERS - 1) &&
        ev.worker <= b->core->fleet.workers + 65536)
        ev.worker = UINT32_MAX;
    send_event(b, ev);
}

static void answer_some(core_case *b, kf_rng *r, kofn_event_type type)
{
    size_t i = some_task(b, r);

    b->took = kf_rng_below(r, 2) ? 0 : 1 + (kofn_time)kf_rng_below(r, 1000);
    if (i != SIZE_MAX)
        answer(b, i, type);
}

static void send_some(core_case *b, kf_rng *r, kofn_event_type type, int from,
                      int to)
{
    uint32_t w = some_worker(b, r, from, to);

    if (w != UINT32_MAX)
        event(b, type, w);
}

static void alarm_event(core_case *b, kf_rng *r)
{
    kofn_time alarm = kf_core_alarm(b->core);

    if (alarm != KOFN_NEVER && alarm > b->now && kf_rng_below(r, 3))
        b->now = alarm;
    event(b, KOFN_EV_ALARM, 0);
}

/* Limits the next round to a random range of strips, or to all. */
static void limit(core_case *b, kf_rng *r)
{
    size_t span = b->plan->span;

    b->lo = (size_t)kf_rng_below(r, span);
    b->hi = b->lo + 1 + (size_t)kf_rng_below(r, span - b->lo);
    if (kf_rng_below(r, 3) == 0)
        b->lo = b->hi = 0;
}

static void random_event(core_case *b, kf_rng *r)
{
    uint64_t x = kf_rng_below(r, 100);

    if (kf_rng_below(r, 3) == 0)
        b->now += (kofn_time)kf_rng_below(r, 300);
    if (x < 45)
        answer_some(b, r, KOFN_EV_RESULT);
    else if (x < 55)
        send_some(b, r, KOFN_EV_STORED, STORING, STORING);
    else if (x < 62 && b->workers < MOST_WORKERS / 2)
        join(b);
    else if (x < 70)
        send_some(b, r, KOFN_EV_LEFT, STANDBY, LEAVING);
    else if (x < 72)
        send_some(b, r, KOFN_EV_LEAVING, LIVE, LIVE);
    else if (x < 75)
        answer_some(b, r, KOFN_EV_FAILED);
    else if (x < 82)
        alarm_event(b, r);
    else if (x < 92)
        event(b, KOFN_EV_BEGIN, 0);
    else if (x < 94 && !b->running)
        limit(b, r);
    else if (x < 96)
        send_some(b, r, KOFN_EV_VOID, LIVE, LIVE);
    else
        odd_event(b, r);
}

static size_t able(const core_case *b, size_t group)
{
    size_t n = 0;

    for (uint32_t w = 0; w < b->workers; w++)
        n += b->worker[w].state == LIVE && !b->worker[w].failed &&
             b->worker[w].seat % groups(b) == group;
    return n;
}

static uint32_t some_failure(const core_case *b)
{
    for (uint32_t w = 0; w < b->workers; w++)
        if (b->worker[w].state == LIVE && b->worker[w].failed)
            return w;
    return UINT32_MAX;
}

/* Ends the round: all workers answer, store their block or leave. */
static void end_round(core_case *b, kf_rng *r)
{
    for (int i = 0; i < 4000 && b->running; i++) {
        if (some_task(b, r) != SIZE_MAX)
            answer_some(b, r, KOFN_EV_RESULT);
        else if (some_worker(b, r, STORING, STORING) != UINT32_MAX)
            send_some(b, r, KOFN_EV_STORED, STORING, STORING);
        else if (kf_core_alarm(b->core) != KOFN_NEVER)
            alarm_event(b, r);
        else if (some_worker(b, r, LEAVING, LEAVING) != UINT32_MAX)
            send_some(b, r, KOFN_EV_LEFT, LEAVING, LEAVING);
        else if (some_failure(b) != UINT32_MAX) /* it holds a seat */
            event(b, KOFN_EV_LEFT, some_failure(b));
        else
            join(b);
    }
    check(b, !b->running);
}

/* Adds workers until every group has at least `enough` live members. */
static void fill_groups(core_case *b, kf_rng *r)
{
    for (size_t g = 0; g < groups(b); g++)
        for (int i = 0; i < 1000 && able(b, g) < enough(b); i++) {
            if (some_worker(b, r, LEAVING, LEAVING) != UINT32_MAX)
                send_some(b, r, KOFN_EV_LEFT, LEAVING, LEAVING);
            else if (some_worker(b, r, STORING, STORING) != UINT32_MAX)
                send_some(b, r, KOFN_EV_STORED, STORING, STORING);
            else
                join(b);
        }
}

/* Loses a random worker if its group stays at the threshold or above. */
static void lose_spare(core_case *b, kf_rng *r)
{
    uint32_t w = some_worker(b, r, LIVE, LIVE);

    if (w != UINT32_MAX && able(b, b->worker[w].seat % groups(b)) > enough(b))
        event(b, KOFN_EV_LEFT, w);
}

/* Runs a round in which `enough` members of every group stay and all tasks are
 * answered in the end. The round ends, and ends well unless the result would
 * be inaccurate (law 8). */
static void survivable_round(core_case *b, kf_rng *r, census *sum)
{
    fill_groups(b, r);
    for (size_t g = 0; g < groups(b); g++)
        check(b, able(b, g) >= enough(b));
    event(b, KOFN_EV_BEGIN, 0);
    for (int i = 0; i < 4000 && b->running; i++) {
        uint64_t x = kf_rng_below(r, 16);

        b->now += (kofn_time)kf_rng_below(r, 50);
        if (x == 0)
            lose_spare(b, r);
        else if (x == 1)
            alarm_event(b, r);
        else if (x == 2 && b->workers < MOST_WORKERS / 2)
            join(b);
        else if (x == 3)
            send_some(b, r, KOFN_EV_STORED, STORING, STORING);
        else
            answer_some(b, r, KOFN_EV_RESULT);
    }
    check(b, !b->running);
    if (b->evicted) { /* too few workers may have been left */
        sum->evicted += b->evicted;
        return;
    }
    check(b, b->ended == KOFN_OK || b->ended == KOFN_UNSTABLE ||
                 (b->ended == KOFN_PARTIAL && b->opt.max_error > 0) ||
                 (b->ended == KOFN_LATE && b->opt.max_error > 0));
    check(b, b->ended == KOFN_OK || b->opt.max_error > 0 ||
                 strstr(b->plan->spec, "vandermonde"));
}

static void replay(const core_case *b)
{
    uint64_t digest = 0;
    kofn_core *c;
    kofn_action a;

    assert_ok(kf_core_new(&c, b->plan, &b->opt));
    for (size_t i = 0; i < b->events; i++) {
        assert_ok(kofn_core_step(c, &b->event[i]));
        while (kofn_core_next(c, &a))
            digest = kofn_action_digest(digest, &a);
    }
    check(b, digest == b->digest);
    kofn_core_free(c);
}

static kofn_core_options random_options(kf_rng *r)
{
    static const double late[] = {0, 0, 1, 1.5, 4};
    static const kofn_time leases[] = {0, 0, 300, 3000};
    static const unsigned pieces[] = {0, 1, 2, 7};
    static const double tolerances[] = {0, 0, 0, 3e-15, 2e-14};
    kofn_core_options o = {
        .size = sizeof o,
        .in_flight = (kofn_in_flight)kf_rng_below(r, 3),
        .below = (kofn_below)kf_rng_below(r, 3),
        .patience = kf_rng_below(r, 2) ? 0 : 2000,
        .max_error = tolerances[kf_rng_below(r, 5)],
        .late = late[kf_rng_below(r, 5)],
        .pieces = pieces[kf_rng_below(r, 4)],
        .late_least = kf_rng_below(r, 2) ? 0 : 100,
        .lease = leases[kf_rng_below(r, 4)],
    };

    return o;
}

/* True if the round may never end: it pauses without a limit, and its
 * tolerance may be impossible to meet. */
static bool may_never_end(const core_case *b)
{
    return b->opt.below == KOFN_BELOW_PAUSE && b->opt.patience == 0 &&
           (b->opt.max_error > 0 || strstr(b->plan->spec, "vandermonde"));
}

static void one_sequence(kofn_plan *plan, uint64_t seed, census *sum)
{
    kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 77, 0);
    kofn_core_options opt = random_options(&r);
    size_t start = kf_rng_below(&r, plan->workers + 3), last = 0;
    core_case b;

    case_open(&b, plan, &opt);
    b.seed = seed;
    populate(&b, start);
    for (size_t i = 0, n = kf_rng_below(&r, 120); i < n; i++) {
        random_event(&b, &r);
        if (b.rounds > last)
            sum->status[b.ended + 16]++;
        last = b.rounds;
    }
    if (!may_never_end(&b)) {
        end_round(&b, &r);
        survivable_round(&b, &r, sum);
        sum->status[b.ended + 16]++;
    }
    replay(&b);
    sum->sequences++;
    sum->events += b.events;
    case_close(&b);
}

static void random_events(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    uint64_t each = (uint64_t)(600 * test_scale());
#else
    uint64_t each = (uint64_t)(3000 * test_scale());
#endif
    static const kofn_status all[] = {KOFN_OK, KOFN_PARTIAL, KOFN_TOOFEW,
                                      KOFN_LATE, KOFN_UNSTABLE};
    census sum = {{0}, 0, 0, 0};

    (void)state;
    for (size_t f = 0; f < CODES; f++) {
        kofn_plan *p =
            make_plan(codes[f].spec, codes[f].workers, codes[f].span);

        for (uint64_t seed = 0; seed < each; seed++)
            one_sequence(p, seed * CODES + f, &sum);
        kofn_plan_free(p);
    }
    print_message("%zu sequences, %zu events, %zu evicted:", sum.sequences,
                  sum.events, sum.evicted);
    assert_happened(sum.evicted > 20);
    for (size_t i = 0; i < 5; i++) {
        print_message(" %zu %s%s", sum.status[all[i] + 16],
                      kofn_strerror(all[i]), i < 4 ? "," : "\n");
        assert_happened(sum.status[all[i] + 16] > 20);
    }
}

/* ---- sums with seats that answer in parts -------------------------------- */

/* The tasks of a product that were given out. */
typedef struct outstanding {
    kofn_event task[64];
    size_t tasks;
} outstanding;

static void collect(kofn_core *c, outstanding *o)
{
    kofn_action a;

    while (kofn_core_next(c, &a))
        if (a.type == KOFN_DO_WORK && o->tasks < 64)
            o->task[o->tasks++] = (kofn_event){.type = KOFN_EV_RESULT,
                                               .product = a.product,
                                               .task = a.task,
                                               .worker = a.worker,
                                               .row = (unsigned)a.row};
}

/* Returns the number of times that this worker was asked for the row. */
static size_t times_asked(const outstanding *o, uint32_t worker, unsigned row)
{
    size_t times = 0;

    for (size_t i = 0; i < o->tasks; i++)
        times += o->task[i].worker == worker && o->task[i].row == row;
    return times;
}

static void step(kofn_core *c, outstanding *o, kofn_event ev)
{
    assert_ok(kofn_core_step(c, &ev));
    collect(c, o);
}

/* A seat counts when all of its answers up to some strip have arrived. Answers
 * that complete no seat must not be waited for again and again: every step
 * ends. Here the third worker loses its block after it answered all but the
 * middle. It is asked once more for what it has not answered, the others are
 * not. */
static void seats_in_parts(void **state)
{
    static const size_t order[] = {17, 0, 6, 11, 5, 7, 13, 14, 3, 2, 12, 1, 8};
    static const uint32_t principal[] = {1, 0, 1};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_SUM, 60, 60, 4, KOFN_F64, false);
    kofn_core_options opt = KOFN_CORE_OPTIONS_INIT;
    outstanding o = {.tasks = 0};
    const kofn_plan *all[1];
    kofn_plan *plan;
    kofn_core *c;

    (void)state;
    assert_ok(kofn_plan_new(&plan, &pb, "agc", 3, 1));
    all[0] = plan;
    opt.errors = KOFN_ERRORS_PROBABILISTIC;
    assert_ok(kofn_core_new_all(&c, all, 1, &opt));
    for (uint32_t w = 0; w < 3; w++)
        step(c, &o,
             (kofn_event){.type = KOFN_EV_JOINED,
                          .worker = w,
                          .principal = principal[w]});
    for (uint32_t w = 0; w < 3; w++)
        step(c, &o, (kofn_event){.type = KOFN_EV_STORED, .worker = w});
    step(c, &o, (kofn_event){.type = KOFN_EV_BEGIN, .product = 1});
    assert_int_equal(o.tasks, 18);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (i == 11) { /* the third worker is given its block again */
            step(c, &o, (kofn_event){.type = KOFN_EV_VOID, .worker = 2});
            step(c, &o, (kofn_event){.type = KOFN_EV_STORED, .worker = 2});
        }
        step(c, &o, o.task[order[i]]);
    }
    for (size_t i = 0; i < 18; i++) {
        bool middle = i == 15 || i == 16;

        assert_int_equal(o.task[i].worker, i / 6);
        assert_int_equal(times_asked(&o, (uint32_t)(i / 6), o.task[i].row),
                         middle ? 2 : 1);
    }
    kofn_core_free(c);
    kofn_plan_free(plan);
}

TEST_FILE(core_random_test)
{
    const struct CMUnitTest tests[] = {
        TEST(random_events, "core: random events break no rule (18 codes)"),
        TEST(seats_in_parts,
             "core: steps end when seats answer in parts (agc, 3 workers)"),
    };

    return cmocka_run_group_tests_name("core_random", tests, NULL, NULL);
}
