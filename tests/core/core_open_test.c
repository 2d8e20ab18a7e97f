/* core_open_test.c -- tests the coordinator with several open products. */
#include "open_rig.h"

/* ---- several products ---------------------------------------------------- */

static void random_event(open_case *b, kf_rng *r)
{
    uint64_t x = kf_rng_below(r, 40);
    uint32_t w = (uint32_t)kf_rng_below(r, b->workers);
    size_t i = some_task(b, r);

    b->now += (kofn_time)kf_rng_below(r, 100);
    if (x < 3 && open_products(b) < OPEN && b->products < PRODUCTS) {
        begin(b, b->plan->left && kf_rng_below(r, 2));
    } else if (x == 3 && b->workers < MOST_WORKERS / 2) {
        join(b);
    } else if (x == 4 && b->workers < MOST_WORKERS / 2 && !b->gone[w]) {
        end_worker(b, w,
                   kf_rng_below(r, 3) ? KOFN_EV_LEFT : KOFN_EV_UNRESPONSIVE);
        join(b);
    } else if (x == 7) {
        b->failed[w] = true; /* it is replaced in the end */
        send_event(b, (kofn_event){.type = KOFN_EV_LEAVING, .worker = w});
    } else if (x == 8 && i != SIZE_MAX) { /* no such task */
        const given_task *e = &b->task[i];

        send_event(
            b, (kofn_event){.type = KOFN_EV_RESULT,
                            .worker = e->worker,
                            .product = 1 + (uint32_t)kf_rng_below(r, PRODUCTS),
                            .task = e->task + 1000000,
                            .row = e->row});
    } else if (x == 5) {
        send_event(b, (kofn_event){.type = KOFN_EV_ALARM});
    } else if (x == 6 && i != SIZE_MAX) {
        given_task *e = &b->task[i];

        e->out = false;
        b->failed[e->worker] = true;
        send_event(b, (kofn_event){.type = KOFN_EV_FAILED,
                                   .worker = e->worker,
                                   .product = e->product,
                                   .task = e->task,
                                   .row = e->row});
    } else if (i != SIZE_MAX) { /* cancelled or not, and of past products */
        answer(b, i);
    }
}

/* Answers all tasks until no product is open. Workers that failed or gave
 * notice are replaced. */
static void end_products(open_case *b, kf_rng *r)
{
    uint32_t failed = 0;

    for (int i = 0; i < 20000 && open_products(b); i++) {
        size_t e = some_task(b, r);

        while (failed < b->workers && (!b->failed[failed] || b->gone[failed]))
            failed++;
        if (e != SIZE_MAX)
            answer(b, e);
        else if (failed < b->workers)
            leave(b, failed);
        else
            join(b);
    }
    assert_int_equal(open_products(b), 0);
}

/* A worker that was located often enough in one product gets no more tasks of
 * the others. Each product is checked separately. */
static void wrong_results_are_left_out(void **state)
{
    static const struct {
        const char *spec;
        size_t workers;
    } code_case[] = {{"elastic:k=3,basis=gauss", 9},
                     {"mds:k=2,basis=gauss", 7},
                     {"elastic:k=4,groups=2,basis=gauss", 16}};
    size_t located = 0, ok = 0, all = 0, crossed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 90; seed++) {
        size_t f = seed % (sizeof code_case / sizeof *code_case);
        kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 79, 0);
        kofn_core_options opt = {.size = sizeof opt,
                                 .open = OPEN,
                                 .errors = seed / 3 % 2
                                               ? KOFN_ERRORS_PROBABILISTIC
                                               : KOFN_ERRORS_ADVERSARIAL,
                                 .below = KOFN_BELOW_PAUSE,
                                 .pieces = 1 + (unsigned)(seed % 4),
                                 .late = seed % 2 ? 1.5 : 0};
        open_case b;

        case_open(&b, code_case[f].spec, code_case[f].workers, 5, 0, &opt);
        b.faulty = true;
        for (int i = 0; i < 400; i++)
            random_event(&b, &r);
        end_products(&b, &r);
        for (uint32_t p = 1; p <= b.products; p++) {
            kofn_status st = b.product[p].ended;

            assert_true(st == KOFN_OK || st == KOFN_CORRUPT ||
                        st == KOFN_TOOFEW);
            ok += st == KOFN_OK;
            all++;
        }
        located += b.located;
        crossed += b.crossed;
        case_close(&b);
    }
    assert_true(located > 100 && crossed > 100);
    assert_true(ok > all / 2);
}

static void products_are_independent(void **state)
{
    static const struct {
        const char *spec;
        size_t workers, left;
    } code_case[] = {{"elastic:k=3,basis=gauss", 6, 0},
                     {"mds:k=3", 6, 0},
                     {"elastic:k=2,basis=gauss", 5, 3}, /* left: adjoint */
                     {"elastic:k=4,groups=2,basis=gauss", 8, 0},
                     {"replication:k=2", 6, 0},
                     {"gpd:m=2,n=1,p=1", 6, 4}};
    size_t most = 0, crossed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 240; seed++) {
        size_t f = seed % (sizeof code_case / sizeof *code_case);
        kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 78, 0);
        kofn_core_options opt = {.size = sizeof opt,
                                 .open = OPEN,
                                 .in_flight = seed / 6 % 2
                                                  ? KOFN_IN_FLIGHT_KEEP
                                                  : KOFN_IN_FLIGHT_LEDGER,
                                 .below = KOFN_BELOW_PAUSE,
                                 .pieces = 1 + (unsigned)(seed % 4),
                                 .late = seed % 3 ? 1.5 : 0};
        open_case b;

        case_open(&b, code_case[f].spec, code_case[f].workers, 5 + seed % 4,
                  code_case[f].left, &opt);
        for (int i = 0; i < 400; i++)
            random_event(&b, &r);
        end_products(&b, &r);
        for (uint32_t p = 1; p <= b.products; p++) {
            assert_int_equal(b.product[p].ended, KOFN_OK);
            for (size_t s = 0; s < b.plan->layout.groups * plan_of(&b, p)->span;
                 s++)
                assert_int_equal(b.product[p].decoded[s], 1);
        }
        most = kf_max(most, b.most_open);
        crossed += b.crossed;
        case_close(&b);
    }
    assert_int_equal(most, OPEN);
    assert_true(crossed > 1000);
}

/* Returns the number of the nth open product (from 0), or 0. */
static uint32_t nth_open(const open_case *b, size_t nth)
{
    for (uint32_t p = 1; p <= b->products; p++)
        if (b->product[p].open && nth-- == 0)
            return p;
    return 0;
}

/* Cancels each of the open products after each number of events. The others
 * end by their own answers, and late answers of the cancelled one are dropped.
 */
static void cancel_after_any_event(void **state)
{
    static const struct {
        const char *spec;
        size_t workers, left;
        bool faulty;
    } code_case[] = {
        {"elastic:k=3,basis=gauss", 6, 0, false},
        {"elastic:k=2,basis=gauss", 5, 3, false}, /* left: adjoint */
        {"elastic:k=4,groups=2,basis=gauss", 8, 0, false},
        {"gpd:m=2,n=1,p=1", 6, 4, false},
        {"mds:k=2,basis=gauss", 7, 0, true}};
    size_t cancels = 0, ended = 0;

    (void)state;
    for (size_t f = 0; f < sizeof code_case / sizeof *code_case; f++)
        for (int events = 0; events <= 60; events++)
            for (size_t nth = 0; nth < OPEN; nth++) {
                kf_rng r = kf_rng_stream(f, KF_FOR_DATA, 80, 0);
                kofn_core_options opt = {
                    .size = sizeof opt,
                    .open = OPEN,
                    .errors = code_case[f].faulty ? KOFN_ERRORS_PROBABILISTIC
                                                  : KOFN_ERRORS_NONE,
                    .below = KOFN_BELOW_PAUSE,
                    .late = 1.5};
                uint32_t gone;
                open_case b;

                case_open(&b, code_case[f].spec, code_case[f].workers, 5,
                          code_case[f].left, &opt);
                b.faulty = code_case[f].faulty;
                for (int i = 0; i < events; i++)
                    random_event(&b, &r);
                gone = nth_open(&b, nth);
                if (gone) {
                    cancel(&b, gone);
                    cancels++;
                }
                for (int i = 0; i < 40; i++)
                    random_event(&b, &r);
                end_products(&b, &r);
                for (uint32_t p = 1; p <= b.products; p++) {
                    if (p != gone && !b.faulty)
                        assert_int_equal(b.product[p].ended, KOFN_OK);
                    ended += p != gone && b.product[p].ended == KOFN_OK;
                }
                case_close(&b);
            }
    assert_true(cancels > 300 && ended > cancels);
}

/* Cancels of a product that is over, and of one that never was, are dropped. */
static void void_cancels_are_dropped(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .open = 2};
    kf_core_view v;
    open_case b;

    (void)state;
    case_open(&b, "mds:k=2,basis=gauss", 3, 4, 0, &opt);
    begin(&b, 0);
    begin(&b, 0);
    cancel(&b, 1);
    for (uint32_t p = 0; p < 4; p++)
        if (p != 2)
            send_event(&b, (kofn_event){.type = KOFN_EV_CANCEL, .product = p});
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.dropped, 3);
    assert_true(b.product[2].open);
    begin(&b, 0); /* there is room for it */
    assert_true(b.product[3].open);
    case_close(&b);
}

/* A product above the limit is refused. A number that was used before is
 * refused too. */
static void open_limit(void **state)
{
    kf_core_view v;
    open_case b;

    (void)state;
    for (unsigned open = 0; open < 3; open++) {
        kofn_core_options opt = {.size = sizeof opt, .open = open};
        size_t may = open ? open : 1;

        case_open(&b, "mds:k=2,basis=gauss", 3, 4, 0, &opt);
        for (uint32_t p = 1; p <= may; p++)
            begin(&b, 0);
        kf_core_look(b.core, 0, &v);
        assert_int_equal(v.round, may);
        assert_int_equal(v.dropped, 0);
        send_event(&b, (kofn_event){.type = KOFN_EV_BEGIN,
                                    .product = (uint32_t)may + 1});
        while (b.product[1].open)
            answer(&b, some_task(&b, &(kf_rng){0}));
        send_event(&b, (kofn_event){.type = KOFN_EV_BEGIN, .product = 1});
        send_event(&b,
                   (kofn_event){.type = KOFN_EV_BEGIN, .product = 9, .use = 1});
        send_event(&b, (kofn_event){.type = KOFN_EV_BEGIN,
                                    .product = 9,
                                    .use = KOFN_USES});
        kf_core_look(b.core, 0, &v);
        assert_int_equal(v.dropped, 4);
        case_close(&b);
    }
}

/* ---- time, if products wait for each other ------------------------------- */

static void answer_of(open_case *b, uint32_t product, uint32_t worker,
                      kofn_time now)
{
    b->now = now;
    for (size_t i = 0; i < b->tasks; i++)
        if (b->task[i].out && b->task[i].product == product &&
            b->task[i].worker == worker) {
            answer(b, i);
            return;
        }
    fail_msg("worker %u has nothing of product %u", worker, product);
}

/* The time of a product on a worker counts from the end of the older products
 * there. */
static void waiting_is_not_lateness(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .open = 2, .late = 2, .pieces = 1};
    open_case b;

    (void)state;
    case_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    begin(&b, 0);
    for (uint32_t w = 0; w < 3; w++)
        answer_of(&b, 1, w, 10);
    assert_false(b.product[1].open);
    answer_of(&b, 2, 0, 20);
    answer_of(&b, 2, 1, 20); /* half took 10 each: alarm 10 later */
    assert_int_equal(kf_core_alarm(b.core), 30);
    case_close(&b);
}

/* A worker that computes a cancelled task is not unresponsive because of it. */
static void cancelled_task_is_not_evicted(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .open = 2, .lease = 100, .pieces = 1};
    open_case b;

    (void)state;
    case_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    answer_of(&b, 1, 1, 1);
    answer_of(&b, 1, 2, 1);
    begin(&b, 0);
    for (uint32_t w = 1; w < 4; w++)
        answer_of(&b, 2, w, 90);
    assert_false(b.product[2].open); /* worker 0 leaves its task */
    b.now = 101;
    send_event(&b, (kofn_event){.type = KOFN_EV_ALARM});
    assert_int_equal(kf_core_worker(b.core, 0), KOFN_WORKER_LIVE);
    assert_int_equal(kf_core_alarm(b.core), 190);
    b.now = 190;
    send_event(&b, (kofn_event){.type = KOFN_EV_ALARM});
    assert_int_equal(kf_core_worker(b.core, 0), KOFN_WORKER_UNRESPONSIVE);
    case_close(&b);
}

TEST_FILE(core_open_test)
{
    const struct CMUnitTest tests[] = {
        TEST(products_are_independent,
             "core: open products end by their own answers (6 codes)"),
        TEST(wrong_results_are_left_out,
             "core: no wrong result is decoded with several open products"),
        TEST(cancel_after_any_event,
             "core: other products end after a cancel at any event (5 codes)"),
        TEST(void_cancels_are_dropped,
             "core: a cancel of a product that is not open is dropped"),
        TEST(open_limit, "core: one product more than may be open is refused"),
        TEST(waiting_is_not_lateness,
             "core: a product that waited for an older one is not late"),
        TEST(cancelled_task_is_not_evicted,
             "core: a cancelled task does not make its worker unresponsive"),
    };

    return cmocka_run_group_tests_name("core_open", tests, NULL, NULL);
}
