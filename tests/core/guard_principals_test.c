/* guard_principals_test.c -- tests several workers of one principal. Their
 * results may all be wrong in the same way, so principals are counted, not
 * workers (docs/errors.md). */
#include "guard_rig.h"

/* Makes all workers of random principals faulty, up to the limit that the
 * coordinator reports.  Returns the number of principals. */
static size_t choose_principals(guard_case *b, size_t principals, kf_rng *r)
{
    kf_core_view v;
    size_t t;

    kf_core_look(b->core, 0, &v);
    assert_true(v.liars >= 1);
    t = v.liars < principals ? v.liars : principals;
    for (size_t i = 0; i < b->workers; i++)
        b->faulty[i] = false;
    for (size_t left = t; left > 0;) {
        uint32_t p = 1 + (uint32_t)kf_rng_below(r, principals);
        bool fresh = false;

        for (size_t i = 0; i < b->workers; i++)
            if (b->principal[i] == p && !b->faulty[i])
                b->faulty[i] = fresh = true;
        left -= fresh;
    }
    return t;
}

/* Lets a faulty worker that has answered leave and rejoin at another free
 * seat. */
static void rejoin(guard_case *b, kf_rng *r)
{
    uint32_t i = (uint32_t)kf_rng_below(r, b->workers);

    answer_some(b, r, kf_rng_below(r, 20));
    if (!b->faulty[i] || b->gone[i] || b->workers == MOST || !b->running)
        return;
    b->gone[i] = b->faulty[b->workers] = true;
    send_event(b, (kofn_event){.type = KOFN_EV_LEFT, .worker = i});
    join(b, (uint32_t)b->workers++, b->principal[i]);
}

/* The faulty workers of random principals agree on wrong results at all their
 * seats. No wrong result is decoded, and no honest worker is named. */
static void principals_conspire(void **state)
{
    static const kofn_errors modes[] = {
        KOFN_ERRORS_DETECT, KOFN_ERRORS_PROBABILISTIC, KOFN_ERRORS_ADVERSARIAL};
    size_t together = 0, ok = 0;

    (void)state;
    for (uint32_t trial = 0; trial < 1500; trial++) {
        kf_rng r = kf_rng_stream(15, KF_FOR_SAMPLE, trial, 0);
        size_t n = 8 + (size_t)kf_rng_below(&r, 9);
        size_t principals = 3 + (size_t)kf_rng_below(&r, n - 2), t;
        guard_case b;

        open_case(&b, trial % 2 ? "elastic:k=3" : "mds:k=3", n,
                  modes[trial % 3], KOFN_F64);
        for (size_t i = 0; i < n; i++)
            b.principal[i] =
                1 +
                (uint32_t)(i < principals ? i : kf_rng_below(&r, principals));
        restart_core(&b);
        begin(&b); /* the owners of the seats are known from here on */
        t = choose_principals(&b, principals, &r);
        assert_true(modes[trial % 3] == KOFN_ERRORS_ADVERSARIAL || t == 1);
        together += t > 1;
        b.conspire = true;
        for (size_t i = kf_rng_below(&r, 20); i > 0; i--)
            rejoin(&b, &r);
        finish(&b, &r);
        ok += b.ended == KOFN_OK;
        assert_true(b.ended == KOFN_OK || b.ended == KOFN_CORRUPT ||
                    b.ended == KOFN_TOOFEW);
        named(&b);
        close_case(&b);
    }
    print_message(
        "%zu of 1500 rounds delivered, %zu with faulty workers of several "
        "principals\n",
        ok, together);
    assert_true(together > 100 && ok > 300);
}

/* Seven honest keys have one seat each. One faulty key has 1 to 20 seats. */
static void many_seats_for_one_key(void **state)
{
    for (size_t seats = 1; seats <= 20; seats++) {
        kf_rng r = kf_rng_stream(16, KF_FOR_SAMPLE, (uint32_t)seats, 0);
        guard_case b;

        (void)state;
        open_case(&b, "mds:k=4", 7 + seats, KOFN_ERRORS_ADVERSARIAL, KOFN_F64);
        for (uint32_t i = 0; i < b.workers; i++) {
            b.faulty[i] = i >= 7;
            b.principal[i] = i < 7 ? i + 1 : 8;
        }
        b.conspire = true;
        restart_core(&b);
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, seats <= 3 ? KOFN_OK
                                  : b.checks ? KOFN_CORRUPT
                                             : KOFN_TOOFEW);
        named(&b);
        close_case(&b);
    }
}

/* Four of ten seats decode, so three may be faulty. One key has two
 * seats, so any two keys have at most three seats. Three keys may have four. */
static void large_shares_count_first(void **state)
{
    kf_core_view v;
    guard_case b;

    (void)state;
    open_case(&b, "mds:k=4", 10, KOFN_ERRORS_ADVERSARIAL, KOFN_F64);
    for (uint32_t i = 0; i < 10; i++)
        b.principal[i] = i < 2 ? 1 : i;
    restart_core(&b);
    begin(&b);
    kf_core_look(b.core, 0, &v);
    assert_int_equal(v.liars, 2);
    close_case(&b);
}

/* A key may have any number of workers that stand by. */
static void seats_are_limited(void **state)
{
    guard_case b;

    (void)state;
    open_case(&b, "elastic:k=4", 6, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.opt.workers_per_principal = 2;
    for (uint32_t i = 0; i < 6; i++)
        b.principal[i] = i < 4 ? 1 : 2;
    restart_core(&b);
    for (uint32_t i = 0; i < 6; i++) {
        bool more = i == 2 || i == 3;

        assert_int_equal(kf_core_worker(b.core, i),
                         more ? KOFN_WORKER_STANDBY : KOFN_WORKER_LIVE);
        assert_int_equal(kf_core_crowded(b.core, i), more);
    }
    /* the other key's seat is not for it, but its own is */
    send_event(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = 4});
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_STANDBY);
    send_event(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = 0});
    assert_int_equal(kf_core_worker(b.core, 2), KOFN_WORKER_STORING);
    assert_int_equal(kf_core_worker(b.core, 3), KOFN_WORKER_STANDBY);
    join(&b, 6, 0); /* a worker without a key belongs to no principal */
    join(&b, 7, 0);
    join(&b, 8, 0);
    for (uint32_t i = 6; i < 9; i++)
        assert_int_equal(kf_core_worker(b.core, i), KOFN_WORKER_LIVE);
    close_case(&b);
}

/* A worker that rejoins under a new number keeps its key, and the key is what
 * was located. */
static void principals_are_quarantined(void **state)
{
    kf_rng r = kf_rng_stream(17, KF_FOR_SAMPLE, 0, 0);
    uint32_t now = 2, next = 8;
    guard_case b;

    (void)state;
    open_case(&b, "elastic:k=4", 8, KOFN_ERRORS_PROBABILISTIC, KOFN_F64);
    b.opt.quarantine = 1;
    for (uint32_t i = 0; i < 8; i++)
        b.principal[i] = i + 1;
    restart_core(&b);
    for (; kf_core_worker(b.core, now) != KOFN_WORKER_QUARANTINED; next++) {
        assert_int_equal(kf_core_worker(b.core, now), KOFN_WORKER_LIVE);
        assert_true(next < MOST - 4);
        b.faulty[now] = true;
        begin(&b);
        finish(&b, &r);
        assert_int_equal(b.ended, KOFN_OK);
        b.gone[now] = true;
        send_event(&b, (kofn_event){.type = KOFN_EV_LEFT, .worker = now});
        now = next;
        join(&b, now, 3);
    }
    assert_true(next > 8 + 2);
    assert_int_equal(b.core->fleet.seat[2], KF_NOBODY);
    begin(&b);
    finish(&b, &r);
    assert_int_equal(b.ended, KOFN_OK);
    /* an evicted worker has no seat to lose: another has it */
    send_event(&b, (kofn_event){.type = KOFN_EV_UNRESPONSIVE, .worker = 0});
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
    /* an impossible principal is refused */
    send_event(&b, (kofn_event){.type = KOFN_EV_JOINED,
                                .worker = next + 2,
                                .principal = UINT32_MAX});
    assert_int_equal(kf_core_worker(b.core, next + 2), KOFN_WORKER_UNKNOWN);
    close_case(&b);
}

TEST_FILE(guard_principals_test)
{
    const struct CMUnitTest tests[] = {
        TEST(principals_conspire,
             "guard: wrong results of whole principals are never decoded"),
        TEST(many_seats_for_one_key,
             "guard: a key with many seats counts once (1 to 20 seats)"),
        TEST(large_shares_count_first,
             "guard: the limit counts the keys with most seats first"),
        TEST(seats_are_limited,
             "guard: a key gets at most its number of seats (2)"),
        TEST(principals_are_quarantined,
             "guard: a quarantined key stays quarantined as another worker"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
