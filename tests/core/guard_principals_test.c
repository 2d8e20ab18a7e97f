/* guard_principals_test.c -- several workers of one principal: what they say
 * may be one lie, so it is principals that are counted (docs/errors.md). */
#include "guard_rig.h"

/* Liars are whole principals, as many as the coordinator says may lie. */
static size_t choose_principals(body *b, size_t principals, kf_rng *r)
{
    kf_core_view v;
    size_t t;

    kf_core_look(b->core, 0, &v);
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

/* Ten seats and four that decode: three may lie.  One key has two of the seats,
 * so any two keys have at most three, and any three may have four. */
static void small_shares_are_counted_after_large_ones(void **state)
{
    kf_core_view v;
    body b;

    (void)state;
    up(&b, "mds:k=4", 10, KOFN_ERRORS_ADVERSARIAL, KOFN_F64);
    for (uint32_t i = 0; i < 10; i++)
        b.principal[i] = i < 2 ? 1 : i;
    begin_anew(&b);
    begin(&b);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.liars, 2);
    down(&b);
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

        assert_int_equal(kf_core_worker(b.core, i),
                         more ? KOFN_WORKER_STANDBY : KOFN_WORKER_LIVE);
        assert_int_equal(kf_core_crowded(b.core, i), more);
    }
    /* the other's seat is not for it, but its own is */
    say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = 4});
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_STANDBY);
    say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = 0});
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_STORING);
    assert_int_equal(kf_core_worker(b.core, 3), KOFN_WORKER_STANDBY);
    join(&b, 6, 0); /* who answers for itself is nobody's */
    join(&b, 7, 0);
    join(&b, 8, 0);
    for (uint32_t i = 6; i < 9; i++)
        assert_int_equal(kf_core_worker(b.core, i), KOFN_WORKER_LIVE);
    down(&b);
}

/* A new number does not help: it is the key that was named. */
static void principals_are_quarantined(void **state)
{
    kf_rng r = kf_rng_stream(17, KF_FOR_SAMPLE, 0, 0);
    uint32_t now = 2, next = 8;
    body b;

    (void)state;
    up(&b, "elastic:k=4", 8, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.opt.quarantine = 1;
    for (uint32_t i = 0; i < 8; i++)
        b.principal[i] = i + 1;
    begin_anew(&b);
    for (; kf_core_worker(b.core, now) != KOFN_WORKER_QUARANTINED; next++) {
        assert_int_equal(kf_core_worker(b.core, now), KOFN_WORKER_LIVE);
        assert_true(next < MOST - 4);
        b.liar[now] = true;
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        b.gone[now] = true;
        say(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = now});
        now = next;
        join(&b, now, 3);
    }
    assert_true(next > 8 + 2);
    assert_int_equal(b.core->fleet.seat[2], KF_NOBODY);
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    /* whoever was given up has no seat to lose: another has it */
    say(&b, (kofn_event){.type = KOFN_EV_UNRESPONSIVE, .worker = 0});
    join(&b, next, 0);
    join(&b, next + 1, 0);
    assert_int_equal(b.core->fleet.seat[0], next);
    b.core->fleet.principal[1].blame.level = 1e9;
    begin(&b);
    assert_int_equal(b.core->fleet.seat[0], next);
    assert_int_equal(kf_core_worker(b.core, 0), KOFN_WORKER_UNRESPONSIVE);
    b.gone[0] = true;
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    /* a wild number is none */
    say(&b, (kofn_event){.type = KOFN_EV_JOINED,
                         .worker = next + 2,
                         .principal = UINT32_MAX});
    assert_int_equal(kf_core_worker(b.core, next + 2), KOFN_WORKER_UNKNOWN);
    down(&b);
}

TEST_FILE(guard_principals_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(principals_lie_together),
        cmocka_unit_test(many_seats_for_one),
        cmocka_unit_test(small_shares_are_counted_after_large_ones),
        cmocka_unit_test(seats_are_limited),
        cmocka_unit_test(principals_are_quarantined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
