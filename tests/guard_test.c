/* guard_test.c -- what the coordinator does about verdicts: how many results
 * it waits for, whom it leaves out, when it gives up (docs/errors.md).  An
 * oracle that knows who lies stands in for the arithmetic. */
#include "support.h"

#include "base/rng.h"
#include "core/state.h"

#include <math.h>
#include <stdlib.h>

#define MOST 32

typedef struct body {
    kofn_plan *plan;
    kofn_core *core;
    kofn_core_options opt;
    size_t workers, k;
    bool liar[MOST], gone[MOST];
    uint32_t principal[MOST];
    bool conspire; /* liars agree on what k - 1 honest results allow */
    struct {
        uint32_t worker, task, row;
        bool out;
    } task[4096];
    uint32_t product; /* its number */
    size_t tasks, checks, most_seen;
    bool running;
    kofn_status ended;
    kofn_action ask[64]; /* checks not yet answered */
    uint32_t evidence[64][MOST];
    size_t asks;
} body;

static uint32_t worker_of(const body *b, uint32_t task)
{
    for (size_t i = 0; i < b->tasks; i++)
        if (b->task[i].task == task)
            return b->task[i].worker;
    fail_msg("task %u was never given out", task);
    return 0;
}

static size_t liars_among(const body *b, const kofn_action *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->count; i++)
        n += b->liar[worker_of(b, a->tasks[i])];
    return n;
}

static void take(body *b, const kofn_action *a)
{
    switch (a->type) {
    case KOFN_DO_WORK:
        assert_true(b->tasks < sizeof b->task / sizeof *b->task);
        b->task[b->tasks].worker = a->worker;
        b->task[b->tasks].task = a->task;
        b->task[b->tasks].row = (uint32_t)a->row;
        b->task[b->tasks++].out = true;
        break;
    case KOFN_DO_CANCEL:
        for (size_t i = 0; i < b->tasks; i++)
            b->task[i].out &= b->task[i].task != a->task;
        break;
    case KOFN_DO_CHECK:
        assert_true(a->count <= MOST && b->asks < 64);
        assert_int_equal(a->count, a->decoder->seats);
        b->ask[b->asks] = *a;
        memcpy(b->evidence[b->asks], a->tasks, a->count * 4);
        b->ask[b->asks].tasks = b->evidence[b->asks];
        b->asks++;
        b->checks++;
        break;
    case KOFN_DO_DECODE: /* never from a lie */
        assert_int_equal(a->count, a->decoder->seats);
        assert_true(b->opt.errors == KOFN_ERRORS_NONE ||
                    liars_among(b, a) == 0);
        break;
    case KOFN_DO_DELIVER:
        b->running = false;
        b->ended = a->status;
        break;
    case KOFN_DO_STORE:
    case KOFN_DO_MIX:
    case KOFN_DO_GIVE_UP:
        break;
    }
}

static void say_one(body *b, kofn_event ev)
{
    kofn_action a;

    assert_ok(kofn_core_step(b->core, &ev));
    assert_null(kf_core_check(b->core));
    while (kofn_core_next(b->core, &a))
        take(b, &a);
}

/* What arithmetic finds: liars are named as long as no more than may be, and
 * as long as one result more than the honest ones' k is left. */
static void answer_check(body *b)
{
    kofn_action a = b->ask[--b->asks];
    uint32_t bad[MOST];
    kofn_event ev = {.type = KOFN_EV_VERDICT,
                     .product = a.product,
                     .task = a.task,
                     .bad = bad};
    size_t liars = liars_among(b, &a), honest = a.count - liars;

    b->most_seen = a.most > b->most_seen ? a.most : b->most_seen;
    if (b->conspire && liars && honest <= a.most + b->k - 1) {
        for (uint32_t i = 0; i < a.count; i++)
            if (!b->liar[worker_of(b, a.tasks[i])] && honest-- > b->k - 1)
                bad[ev.bad_count++] = i;
    } else if (liars > a.most || (liars && a.count - liars <= b->k)) {
        ev.status = KOFN_CORRUPT;
    } else {
        for (uint32_t i = 0; i < a.count; i++)
            if (b->liar[worker_of(b, a.tasks[i])])
                bad[ev.bad_count++] = i;
    }
    say_one(b, ev);
}

static void say(body *b, kofn_event ev)
{
    say_one(b, ev);
    while (b->asks)
        answer_check(b);
}

static void join(body *b, uint32_t worker, uint32_t principal)
{
    b->principal[worker] = principal;
    say(b, (kofn_event){.type = KOFN_EV_JOINED,
                        .worker = worker,
                        .principal = principal});
    say(b, (kofn_event){.type = KOFN_EV_STORED, .worker = worker});
}

static void join_all(body *b)
{
    for (uint32_t i = 0; i < b->workers; i++)
        join(b, i, b->principal[i]);
}

/* The same plan, another coordinator, with b->opt. */
static void begin_anew(body *b)
{
    kofn_core_free(b->core);
    assert_ok(kofn_core_new(&b->core, b->plan, &b->opt));
    join_all(b);
}

static void up(body *b, const char *spec, size_t workers, kofn_errors errors,
               kofn_dtype dtype)
{
    kofn_problem pb = {KOFN_MATVEC, 400, 10, 1, dtype, false};

    *b = (body){.workers = workers};
    b->opt.errors = errors;
    b->opt.tolerance = 1e9;
    assert_ok(kofn_plan_new(&b->plan, &pb, spec, workers, 1));
    b->k = b->plan->layout.enough;
    assert_ok(kofn_core_new(&b->core, b->plan, &b->opt));
    join_all(b);
}

static void down(body *b)
{
    kofn_core_free(b->core);
    kofn_plan_free(b->plan);
}

static void begin(body *b)
{
    b->tasks = b->checks = b->most_seen = 0;
    b->running = true;
    say(b, (kofn_event){.type = KOFN_EV_BEGIN, .product = ++b->product});
}

/* So many answers come in random order while the round goes on. */
static void some(body *b, kf_rng *r, size_t many)
{
    while (b->running && many-- > 0) {
        size_t n = 0, pick = SIZE_MAX;

        for (size_t i = 0; i < b->tasks; i++)
            if (b->task[i].out && !b->gone[b->task[i].worker] &&
                kf_rng_below(r, ++n) == 0)
                pick = i;
        if (pick == SIZE_MAX)
            fail_msg("the coordinator waits for nothing");
        b->task[pick].out = false;
        say(b, (kofn_event){.type = KOFN_EV_RESULT,
                            .worker = b->task[pick].worker,
                            .product = b->product,
                            .task = b->task[pick].task,
                            .row = b->task[pick].row});
    }
}

static void finish(body *b, kf_rng *r)
{
    some(b, r, SIZE_MAX);
}

static size_t named(const body *b)
{
    kofn_core_view v;
    size_t n = 0;

    kofn_core_look(b->core, &v);
    for (size_t i = 0; i < v.workers; i++) {
        n += v.lies[i] > 0;
        assert_true(!v.lies[i] || b->liar[i]); /* nobody is slandered */
    }
    return n;
}

static void choose_liars(body *b, size_t t, kf_rng *r)
{
    for (size_t i = 0; i < b->workers; i++)
        b->liar[i] = false;
    while (t > 0) {
        size_t i = (size_t)kf_rng_below(r, b->workers);

        t -= !b->liar[i];
        b->liar[i] = true;
    }
}

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

/* Just as many results as the mode needs are waited for, and no more. */
static void waits_for(const char *spec, size_t workers, kofn_errors mode,
                      size_t want)
{
    for (size_t came = 0; came < want; came++) {
        body b;

        up(&b, spec, workers, mode, KOFN_F64);
        begin(&b);
        for (size_t i = 0; i < b.tasks && b.running; i++)
            if (b.task[i].worker <= came && b.task[i].out) {
                b.task[i].out = false;
                say(&b, (kofn_event){.type = KOFN_EV_RESULT,
                                     .worker = b.task[i].worker,
                                     .product = b.product,
                                     .task = b.task[i].task,
                                     .row = b.task[i].row});
            }
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
        assert_int_equal(b.most_seen, beyond ? 5 : 3);
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

/* The third round in which it lies is its last. */
static void liars_are_quarantined(void **state)
{
    kf_rng r = kf_rng_stream(13, KF_FOR_SAMPLE, 0, 0);
    body b;

    (void)state;
    up(&b, "elastic:k=4", 8, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.liar[2] = true;
    for (unsigned round = 1; round <= 5; round++) {
        bool asked = false;

        begin(&b);
        for (size_t i = 0; i < b.tasks; i++)
            asked |= b.task[i].worker == 2;
        assert_true(asked == (round <= 3));
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        assert_int_equal(kofn_core_worker(b.core, 2), round <= 3 ? 'l' : 'q');
    }
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

/* ---- principals ---------------------------------------------------------- */

/* Liars are whole principals, as many as the coordinator says may lie. */
static size_t choose_principals(body *b, size_t principals, kf_rng *r)
{
    kofn_core_view v;
    size_t t;

    kofn_core_look(b->core, &v);
    assert_true(v.liars >= 1);
    t = v.liars < principals ? v.liars : principals;
    for (size_t i = 0; i < b->workers; i++)
        b->liar[i] = false;
    for (size_t left = t; left > 0;) {
        uint32_t p = 1 + (uint32_t)kf_rng_below(r, principals);
        bool fresh = false;

        for (size_t i = 0; i < b->workers; i++)
            if (b->principal[i] == p && !b->liar[i])
                b->liar[i] = fresh = true;
        left -= fresh;
    }
    return t;
}

/* A liar has answered, leaves, and comes back to whatever seat is free. */
static void come_back(body *b, kf_rng *r)
{
    uint32_t i = (uint32_t)kf_rng_below(r, b->workers);

    some(b, r, kf_rng_below(r, 20));
    if (!b->liar[i] || b->gone[i] || b->workers == MOST || !b->running)
        return;
    b->gone[i] = b->liar[b->workers] = true;
    say(b, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
    join(b, (uint32_t)b->workers++, b->principal[i]);
}

/* Whoever the liars are among the principals, and whatever they agree on with
 * all their seats: a lie is never decoded, nobody honest is named. */
static void principals_lie_together(void **state)
{
    static const kofn_errors modes[] = {
        KOFN_ERRORS_DETECT, KOFN_ERRORS_PROBABILISTIC, KOFN_ERRORS_ADVERSARIAL};
    size_t together = 0, ok = 0;

    (void)state;
    for (uint32_t trial = 0; trial < 1500; trial++) {
        kf_rng r = kf_rng_stream(15, KF_FOR_SAMPLE, trial, 0);
        size_t n = 8 + (size_t)kf_rng_below(&r, 9);
        size_t principals = 3 + (size_t)kf_rng_below(&r, n - 2), t;
        body b;

        up(&b, trial % 2 ? "elastic:k=3" : "mds:k=3", n, modes[trial % 3],
           KOFN_F64);
        for (size_t i = 0; i < n; i++)
            b.principal[i] =
                1 +
                (uint32_t)(i < principals ? i : kf_rng_below(&r, principals));
        begin_anew(&b);
        begin(&b); /* who holds what is known from here */
        t = choose_principals(&b, principals, &r);
        assert_true(modes[trial % 3] == KOFN_ERRORS_ADVERSARIAL || t == 1);
        together += t > 1;
        b.conspire = true;
        for (size_t i = kf_rng_below(&r, 20); i > 0; i--)
            come_back(&b, &r);
        finish(&b, &r);
        ok += b.ended == KOFN_OK;
        assert_true(b.ended == KOFN_OK || b.ended == KOFN_CORRUPT ||
                    b.ended == KOFN_TOOFEW);
        named(&b);
        down(&b);
    }
    print_message("%zu of 1500 rounds delivered, %zu with liars of several "
                  "principals\n",
                  ok, together);
    assert_true(together > 100 && ok > 300);
}

/* Seven honest keys, and one with as many seats as it could get. */
static void many_seats_for_one(void **state)
{
    for (size_t seats = 1; seats <= 20; seats++) {
        kf_rng r = kf_rng_stream(16, KF_FOR_SAMPLE, (uint32_t)seats, 0);
        body b;

        (void)state;
        up(&b, "mds:k=4", 7 + seats, KOFN_ERRORS_ADVERSARIAL, KOFN_F64);
        for (uint32_t i = 0; i < b.workers; i++) {
            b.liar[i] = i >= 7;
            b.principal[i] = i < 7 ? i + 1 : 8;
        }
        b.conspire = true;
        begin_anew(&b);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, seats <= 3 ? KOFN_OK
                                  : b.checks ? KOFN_CORRUPT
                                             : KOFN_TOOFEW);
        named(&b);
        down(&b);
    }
}

/* It may stand by with as many workers as it will. */
static void seats_are_limited(void **state)
{
    body b;

    (void)state;
    up(&b, "elastic:k=4", 6, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.opt.seats = 2;
    for (uint32_t i = 0; i < 6; i++)
        b.principal[i] = i < 4 ? 1 : 2;
    begin_anew(&b);
    for (uint32_t i = 0; i < 6; i++) {
        bool more = i == 2 || i == 3;

        assert_int_equal(kofn_core_worker(b.core, i), more ? 'b' : 'l');
        assert_int_equal(kofn_core_crowded(b.core, i), more);
    }
    /* the other's seat is not for it, but its own is */
    say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = 4});
    assert_int_equal(kofn_core_worker(b.core, 2), 'b');
    say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = 0});
    assert_int_equal(kofn_core_worker(b.core, 2), 's');
    assert_int_equal(kofn_core_worker(b.core, 3), 'b');
    join(&b, 6, 0); /* who answers for itself is nobody's */
    join(&b, 7, 0);
    join(&b, 8, 0);
    for (uint32_t i = 6; i < 9; i++)
        assert_int_equal(kofn_core_worker(b.core, i), 'l');
    down(&b);
}

/* A new number does not help: it is the key that was named. */
static void principals_are_quarantined(void **state)
{
    kf_rng r = kf_rng_stream(17, KF_FOR_SAMPLE, 0, 0);
    body b;

    (void)state;
    up(&b, "elastic:k=4", 8, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    for (uint32_t i = 0; i < 8; i++)
        b.principal[i] = i + 1;
    begin_anew(&b);
    b.liar[2] = true;
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t now = round ? 7 + round : 2;

        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        assert_int_equal(kofn_core_worker(b.core, now), 'l');
        b.gone[now] = b.liar[8 + round] = true;
        say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = now});
        join(&b, 8 + round, 3);
    }
    assert_int_equal(kofn_core_worker(b.core, 10), 'q');
    assert_int_equal(b.core->fleet.seat[2], KF_NOBODY);
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    /* whoever was given up has no seat to lose: another has it */
    say(&b, (kofn_event){.type = KOFN_EV_MUTE, .worker = 0});
    join(&b, 11, 0);
    join(&b, 12, 0);
    assert_int_equal(b.core->fleet.seat[0], 11);
    b.core->fleet.principal[1].lies = 3;
    begin(&b);
    assert_int_equal(b.core->fleet.seat[0], 11);
    assert_int_equal(kofn_core_worker(b.core, 0), 'm');
    b.gone[0] = true;
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    /* a wild number is none */
    say(&b, (kofn_event){
                .type = KOFN_EV_JOINED, .worker = 13, .principal = UINT32_MAX});
    assert_int_equal(kofn_core_worker(b.core, 13), '?');
    down(&b);
}

static void refusals(void **state)
{
    kofn_problem pb = {KOFN_MATVEC, 40, 10, 1, KOFN_F64, false};
    kofn_core_options o = {.errors = KOFN_ERRORS_DETECT};
    kofn_plan *plan;
    kofn_core *core;

    (void)state;
    assert_ok(kofn_plan_new(&plan, &pb, "mds:k=5", 5, 1));
    assert_status(KOFN_INVAL, kofn_core_new(&core, plan, &o));
    assert_non_null(strstr(kofn_errmsg(), "at least 6 workers"));
    kofn_plan_free(plan);
    assert_ok(kofn_plan_new(&plan, &pb, "mds:k=4", 5, 1));
    o.below = KOFN_BELOW_DEGRADE;
    assert_status(KOFN_UNSUITED, kofn_core_new(&core, plan, &o));
    kofn_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilistic_limit),
        cmocka_unit_test(adversarial_limit),
        cmocka_unit_test(waits_for_what_it_needs),
        cmocka_unit_test(detect_fails_at_once),
        cmocka_unit_test(float32_names_fewer),
        cmocka_unit_test(leaves_and_lies),
        cmocka_unit_test(last_answers_before_leaves),
        cmocka_unit_test(too_few_to_compare),
        cmocka_unit_test(liars_are_quarantined),
        cmocka_unit_test(foreign_verdicts),
        cmocka_unit_test(principals_lie_together),
        cmocka_unit_test(many_seats_for_one),
        cmocka_unit_test(seats_are_limited),
        cmocka_unit_test(principals_are_quarantined),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
