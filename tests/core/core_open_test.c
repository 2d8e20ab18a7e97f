/* core_open_test.c -- several products open at once. */
#include "open_rig.h"

/* ---- several products ---------------------------------------------------- */

static void something(body *b, kf_rng *r)
{
    uint64_t x = kf_rng_below(r, 40);
    uint32_t w = (uint32_t)kf_rng_below(r, b->men);
    size_t i = some_errand(b, r);

    b->now += (kofn_time)kf_rng_below(r, 100);
    if (x < 3 && open_products(b) < OPEN && b->products < PRODUCTS) {
        begin(b, b->plan->left && kf_rng_below(r, 2));
    } else if (x == 3 && b->men < MEN / 2) {
        join(b);
    } else if (x == 4 && b->men < MEN / 2 && !b->gone[w]) {
        go(b, w, kf_rng_below(r, 3) ? KOFN_EV_LEFT : KOFN_EV_UNRESPONSIVE);
        join(b);
    } else if (x == 7) {
        b->failed[w] = true; /* it goes in the end, for others to come */
        tell(b, (kofn_event){.type = KOFN_EV_LEAVING, .worker = w});
    } else if (x == 8 && i != SIZE_MAX) { /* of another product, or no task */
        const errand *e = &b->errand[i];

        tell(b, (kofn_event){.type = KOFN_EV_RESULT,
                             .worker = e->worker,
                             .product = 1 + (uint32_t)kf_rng_below(r, PRODUCTS),
                             .task = e->task + 1000000,
                             .row = e->row});
    } else if (x == 5) {
        tell(b, (kofn_event){.type = KOFN_EV_ALARM});
    } else if (x == 6 && i != SIZE_MAX) {
        errand *e = &b->errand[i];

        e->out = false;
        b->failed[e->worker] = true;
        tell(b, (kofn_event){.type = KOFN_EV_FAILED,
                             .worker = e->worker,
                             .product = e->product,
                             .task = e->task,
                             .row = e->row});
    } else if (i != SIZE_MAX) { /* cancelled or not, and of products past */
        answer(b, i);
    }
}

/* Everybody answers, and others come in the place of those who failed or gave
 * notice, until nothing is open. */
static void calm_down(body *b, kf_rng *r)
{
    uint32_t failed = 0;

    for (int i = 0; i < 20000 && open_products(b); i++) {
        size_t e = some_errand(b, r);

        while (failed < b->men && (!b->failed[failed] || b->gone[failed]))
            failed++;
        if (e != SIZE_MAX)
            answer(b, e);
        else if (failed < b->men)
            leave(b, failed);
        else
            join(b);
    }
    assert_int_equal(open_products(b), 0);
}

/* Who is located as corrupt in one product gets no more work of others once it
 * was often enough; each product has checks of its own. */
static void liars_among_products(void **state)
{
    static const struct {
        const char *spec;
        size_t workers;
    } fleet[] = {{"elastic:k=3,basis=gauss", 9},
                 {"mds:k=2,basis=gauss", 7},
                 {"elastic:k=4,groups=2,basis=gauss", 16}};
    size_t located = 0, ok = 0, all = 0, crossed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 90; seed++) {
        size_t f = seed % (sizeof fleet / sizeof *fleet);
        kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 79, 0);
        kofn_core_options opt = {.size = sizeof opt,
                                 .open = OPEN,
                                 .errors = seed / 3 % 2
                                               ? KOFN_ERRORS_PROBABILISTIC
                                               : KOFN_ERRORS_ADVERSARIAL,
                                 .below = KOFN_BELOW_PAUSE,
                                 .pieces = 1 + (unsigned)(seed % 4),
                                 .late = seed % 2 ? 1.5 : 0};
        body b;

        body_open(&b, fleet[f].spec, fleet[f].workers, 5, 0, &opt);
        b.liars = true;
        for (int i = 0; i < 400; i++)
            something(&b, &r);
        calm_down(&b, &r);
        for (uint32_t p = 1; p <= b.products; p++) {
            kofn_status st = b.product[p].ended;

            assert_true(st == KOFN_OK || st == KOFN_CORRUPT ||
                        st == KOFN_TOOFEW);
            ok += st == KOFN_OK;
            all++;
        }
        located += b.located;
        crossed += b.crossed;
        body_close(&b);
    }
    assert_true(located > 100 && crossed > 100);
    assert_true(ok > all / 2);
}

static void products_do_not_disturb_each_other(void **state)
{
    static const struct {
        const char *spec;
        size_t workers, left;
    } fleet[] = {{"elastic:k=3,basis=gauss", 6, 0},
                 {"mds:k=3", 6, 0},
                 {"elastic:k=2,basis=gauss", 5, 3}, /* left: adjoint */
                 {"elastic:k=4,groups=2,basis=gauss", 8, 0},
                 {"replication:k=2", 6, 0},
                 {"gpd:m=2,n=1,p=1", 6, 4}};
    size_t most = 0, crossed = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 240; seed++) {
        size_t f = seed % (sizeof fleet / sizeof *fleet);
        kf_rng r = kf_rng_stream(seed, KF_FOR_DATA, 78, 0);
        kofn_core_options opt = {.size = sizeof opt,
                                 .open = OPEN,
                                 .in_flight = seed / 6 % 2
                                                  ? KOFN_IN_FLIGHT_KEEP
                                                  : KOFN_IN_FLIGHT_LEDGER,
                                 .below = KOFN_BELOW_PAUSE,
                                 .pieces = 1 + (unsigned)(seed % 4),
                                 .late = seed % 3 ? 1.5 : 0};
        body b;

        body_open(&b, fleet[f].spec, fleet[f].workers, 5 + seed % 4,
                  fleet[f].left, &opt);
        for (int i = 0; i < 400; i++)
            something(&b, &r);
        calm_down(&b, &r);
        for (uint32_t p = 1; p <= b.products; p++) {
            assert_int_equal(b.product[p].ended, KOFN_OK);
            for (size_t s = 0; s < b.plan->layout.groups * plan_of(&b, p)->span;
                 s++)
                assert_int_equal(b.product[p].decoded[s], 1);
        }
        most = kf_max(most, b.most_open);
        crossed += b.crossed;
        body_close(&b);
    }
    assert_int_equal(most, OPEN);
    assert_true(crossed > 1000);
}

/* The nth of those that are open, or 0. */
static uint32_t nth_open(const body *b, size_t nth)
{
    for (uint32_t p = 1; p <= b->products; p++)
        if (b->product[p].open && nth-- == 0)
            return p;
    return 0;
}

/* Whichever of the products that are open is cancelled, after whichever event:
 * the others come to their end, by answers that are their own, and what still
 * comes of it is dropped. */
static void one_is_cancelled_after_any_event(void **state)
{
    static const struct {
        const char *spec;
        size_t workers, left;
        bool liars;
    } fleet[] = {{"elastic:k=3,basis=gauss", 6, 0, false},
                 {"elastic:k=2,basis=gauss", 5, 3, false}, /* left: adjoint */
                 {"elastic:k=4,groups=2,basis=gauss", 8, 0, false},
                 {"gpd:m=2,n=1,p=1", 6, 4, false},
                 {"mds:k=2,basis=gauss", 7, 0, true}};
    size_t cancels = 0, ended = 0;

    (void)state;
    for (size_t f = 0; f < sizeof fleet / sizeof *fleet; f++)
        for (int events = 0; events <= 60; events++)
            for (size_t nth = 0; nth < OPEN; nth++) {
                kf_rng r = kf_rng_stream(f, KF_FOR_DATA, 80, 0);
                kofn_core_options opt = {
                    .size = sizeof opt,
                    .open = OPEN,
                    .errors = fleet[f].liars ? KOFN_ERRORS_PROBABILISTIC
                                             : KOFN_ERRORS_NONE,
                    .below = KOFN_BELOW_PAUSE,
                    .late = 1.5};
                uint32_t gone;
                body b;

                body_open(&b, fleet[f].spec, fleet[f].workers, 5, fleet[f].left,
                          &opt);
                b.liars = fleet[f].liars;
                for (int i = 0; i < events; i++)
                    something(&b, &r);
                gone = nth_open(&b, nth);
                if (gone) {
                    cancel(&b, gone);
                    cancels++;
                }
                for (int i = 0; i < 40; i++)
                    something(&b, &r);
                calm_down(&b, &r);
                for (uint32_t p = 1; p <= b.products; p++) {
                    if (p != gone && !b.liars)
                        assert_int_equal(b.product[p].ended, KOFN_OK);
                    ended += p != gone && b.product[p].ended == KOFN_OK;
                }
                body_close(&b);
            }
    assert_true(cancels > 300 && ended > cancels);
}

/* One that is over, or that never was, cannot be. */
static void what_cannot_be_cancelled(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .open = 2};
    kf_core_view v;
    body b;

    (void)state;
    body_open(&b, "mds:k=2,basis=gauss", 3, 4, 0, &opt);
    begin(&b, 0);
    begin(&b, 0);
    cancel(&b, 1);
    for (uint32_t p = 0; p < 4; p++)
        if (p != 2)
            tell(&b, (kofn_event){.type = KOFN_EV_CANCEL, .product = p});
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.dropped, 3);
    assert_true(b.product[2].open);
    begin(&b, 0); /* there is room for it */
    assert_true(b.product[3].open);
    body_close(&b);
}

/* One more than may be open is refused, and so is a number that was given. */
static void as_many_as_may_be_open(void **state)
{
    kf_core_view v;
    body b;

    (void)state;
    for (unsigned open = 0; open < 3; open++) {
        kofn_core_options opt = {.size = sizeof opt, .open = open};
        size_t may = open ? open : 1;

        body_open(&b, "mds:k=2,basis=gauss", 3, 4, 0, &opt);
        for (uint32_t p = 1; p <= may; p++)
            begin(&b, 0);
        kf_core_look(b.core, 0, &v);
        assert_int_equal(v.round, may);
        assert_int_equal(v.dropped, 0);
        tell(&b,
             (kofn_event){.type = KOFN_EV_BEGIN, .product = (uint32_t)may + 1});
        while (b.product[1].open)
            answer(&b, some_errand(&b, &(kf_rng){0}));
        tell(&b, (kofn_event){.type = KOFN_EV_BEGIN, .product = 1});
        tell(&b, (kofn_event){.type = KOFN_EV_BEGIN, .product = 9, .use = 1});
        tell(&b, (kofn_event){
                     .type = KOFN_EV_BEGIN, .product = 9, .use = KOFN_USES});
        kf_core_look(b.core, 0, &v);
        assert_int_equal(v.dropped, 4);
        body_close(&b);
    }
}

/* ---- time, where products wait for each other ---------------------------- */

static void answer_of(body *b, uint32_t product, uint32_t worker, kofn_time now)
{
    b->now = now;
    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].out && b->errand[i].product == product &&
            b->errand[i].worker == worker) {
            answer(b, i);
            return;
        }
    fail_msg("worker %u has nothing of product %u", worker, product);
}

/* What a product takes a worker counts from when it is done with older ones. */
static void a_product_that_waited_is_not_slow(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .open = 2, .late = 2, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    begin(&b, 0);
    for (uint32_t w = 0; w < 3; w++)
        answer_of(&b, 1, w, 10);
    assert_false(b.product[1].open);
    answer_of(&b, 2, 0, 20);
    answer_of(&b, 2, 1, 20); /* half of them, in 10 each: as long again */
    assert_int_equal(kf_core_alarm(b.core), 30);
    body_close(&b);
}

/* Whoever was at what is not wanted any more is not unresponsive because of
 * it. */
static void a_cancelled_task_is_no_silence(void **state)
{
    kofn_core_options opt = {
        .size = sizeof opt, .open = 2, .lease = 100, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    answer_of(&b, 1, 1, 1);
    answer_of(&b, 1, 2, 1);
    begin(&b, 0);
    for (uint32_t w = 1; w < 4; w++)
        answer_of(&b, 2, w, 90);
    assert_false(b.product[2].open); /* and worker 0 is to leave it */
    b.now = 101;
    tell(&b, (kofn_event){.type = KOFN_EV_ALARM});
    assert_int_equal(kf_core_worker(b.core, 0), KOFN_WORKER_LIVE);
    assert_int_equal(kf_core_alarm(b.core), 190);
    b.now = 190;
    tell(&b, (kofn_event){.type = KOFN_EV_ALARM});
    assert_int_equal(kf_core_worker(b.core, 0), KOFN_WORKER_UNRESPONSIVE);
    body_close(&b);
}

TEST_FILE(core_open_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_do_not_disturb_each_other),
        cmocka_unit_test(liars_among_products),
        cmocka_unit_test(one_is_cancelled_after_any_event),
        cmocka_unit_test(what_cannot_be_cancelled),
        cmocka_unit_test(as_many_as_may_be_open),
        cmocka_unit_test(a_product_that_waited_is_not_slow),
        cmocka_unit_test(a_cancelled_task_is_no_silence),
    };

    return cmocka_run_group_tests_name("core_open", tests, NULL, NULL);
}
