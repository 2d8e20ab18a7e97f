/* cache_test.c -- the cache of decoders. */
#include "code_rig.h"
#include "sets.h"

typedef struct coder {
    kofn_plan *plan;
    kf_code *code;
} coder;

static void up(coder *r, const char *spec, size_t n)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 1000, 7, 1, KOFN_F64, false);

    assert_ok(kofn_plan_new(&r->plan, &pb, spec, n, 4));
    assert_ok(kf_code_new(&r->code, r->plan));
}

static void down(coder *r)
{
    kf_code_free(r->code);
    kofn_plan_free(r->plan);
}

static void cache_knows_sets(void **state)
{
    uint32_t set[5], copy[5];
    const kofn_decoder *first[56], *d;
    kf_cache *cache;
    coder r;

    (void)state;
    up(&r, "mds:k=5", 8);
    assert_ok(kf_cache_new(&cache, r.code, SIZE_MAX));
    for (int again = 0; again < 2; again++) {
        size_t i = 0;

        first_set(set, 5);
        do {
            memcpy(copy, set, sizeof set);
            assert_ok(kf_cache_get(cache, copy, 5, false, &d));
            if (!again)
                first[i] = d;
            assert_ptr_equal(d, first[i++]);
            assert_memory_equal(d->seat, set, sizeof set);
        } while (next_set(set, 5, 8));
        assert_int_equal(i, 56);
        kf_cache_trim(cache);
    }
    /* a prefix, and the same set as partial, are other keys */
    assert_ok(kf_cache_get(cache, copy, 5, true, &d));
    for (size_t i = 0; i < 56; i++)
        assert_ptr_not_equal(d, first[i]);
    assert_status(KOFN_TOOFEW, kf_cache_get(cache, copy, 4, false, &d));
    assert_null(d);
    kf_cache_free(cache);
    down(&r);
}

/* A budget for about three decoders keeps the last three used. Nothing is
 * dropped before trimming. A decoder made again is equal to the bit. */
static void cache_drops_the_least_recent(void **state)
{
    static const uint32_t sets[4][5] = {
        {0, 1, 5, 6, 7}, {0, 2, 5, 6, 7}, {1, 2, 5, 6, 7}, {3, 4, 5, 6, 7}};
    const kofn_decoder *d[4], *e;
    double *kept = NULL;
    kf_cache *cache;
    coder r;

    (void)state;
    up(&r, "mds:k=5", 8);
    assert_ok(kf_cache_new(&cache, r.code, 3 * (12 * 20 * 8 + 300)));
    for (size_t i = 0; i < 4; i++)
        assert_ok(kf_cache_get(cache, sets[i], 5, false, &d[i]));
    kept = numbers(12 * 20);
    assert_true(d[0]->mixed == 12 && d[0]->results == 20);
    memcpy(kept, d[0]->D, 12 * 20 * sizeof *kept);
    assert_ok(kf_cache_get(cache, sets[1], 5, false, &e));
    assert_ptr_equal(e, d[1]);
    kf_cache_trim(cache); /* drops set 0 */
    fail_allocation(0);
    for (size_t i = 1; i < 4; i++) {
        assert_ok(kf_cache_get(cache, sets[i], 5, false, &e));
        assert_ptr_equal(e, d[i]);
    }
    assert_int_equal(allocations(), 0);
    assert_ok(kf_cache_get(cache, sets[0], 5, false, &e));
    assert_true(allocations() > 0);
    assert_memory_equal(e->D, kept, 12 * 20 * sizeof *kept);
    kf_free(kept);
    kf_cache_free(cache);
    down(&r);
}

/* Two systems are solved, and stand for others: a set gets the nearest. A set
 * that differs in less than an eighth is not solved, one of another size is. */
static void cache_samples_sets(void **state)
{
    static const uint32_t set[][17] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 17, 18, 19},
        {0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18, 19},
        {0, 1, 2, 3, 4, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19},
        {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19},
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 17, 18, 19}};
    const kofn_decoder *a, *b, *d;
    kf_cache *cache;
    coder r;

    (void)state;
    up(&r, "mds:k=16", 20);
    assert_ok(kf_cache_new(&cache, r.code, SIZE_MAX));
    kf_cache_sample(cache, 2);
    assert_ok(kf_cache_get(cache, set[0], 16, false, &a));
    assert_ok(kf_cache_get(cache, set[1], 16, false, &d)); /* 15 of set 0 */
    assert_ptr_equal(d, a);
    assert_ok(kf_cache_get(cache, set[2], 16, false, &b)); /* 12 of set 0 */
    assert_ptr_not_equal(b, a);
    assert_ok(kf_cache_get(cache, set[3], 16, false, &d)); /* 12, and 13 */
    assert_ptr_equal(d, b);
    assert_ok(kf_cache_get(cache, set[4], 16, false, &d)); /* 13, and 12 */
    assert_ptr_equal(d, a);
    assert_ok(kf_cache_get(cache, set[5], 17, false, &d));
    assert_int_equal(d->seats, 17);
    assert_ok(kf_cache_get(cache, set[0], 16, true, &d));
    assert_true(d != a && d != b);
    kf_cache_free(cache);
    down(&r);
}

static void cache_survives_no_budget(void **state)
{
    static const uint32_t set[5] = {0, 1, 5, 6, 7};
    const kofn_decoder *d;
    kf_cache *cache;
    long before;
    coder r;

    (void)state;
    up(&r, "mds:k=5", 8);
    assert_ok(kf_cache_new(&cache, r.code, 0));
    assert_ok(kf_cache_get(cache, set, 5, false, &d));
    kf_cache_trim(cache);
    before = allocated();
    for (int i = 0; i < 3; i++) {
        kf_cache_trim(cache);
        assert_int_equal(allocated(), before);
        assert_ok(kf_cache_get(cache, set, 5, false, &d));
        assert_true(d->whole && allocated() > before);
    }
    kf_cache_free(cache);
    down(&r);
}

/* A decoder used since the last trim stays, whatever the budget. */
static void cache_keeps_what_is_in_use(void **state)
{
    static const uint32_t sets[2][5] = {{0, 1, 5, 6, 7}, {0, 2, 5, 6, 7}};
    const kofn_decoder *d, *e;
    kf_cache *cache;
    long empty;
    coder r;

    (void)state;
    up(&r, "mds:k=5", 8);
    assert_ok(kf_cache_new(&cache, r.code, 0));
    assert_ok(kf_cache_get(cache, sets[0], 5, false, &d));
    assert_ok(kf_cache_get(cache, sets[1], 5, false, &e));
    kf_cache_trim(cache);
    empty = allocated();
    assert_ok(kf_cache_get(cache, sets[0], 5, false, &d));
    kf_cache_trim_idle(cache);
    assert_ok(kf_cache_get(cache, sets[1], 5, false, &e));
    assert_true(d->whole && e->whole);
    kf_cache_trim_idle(cache); /* drops set 0 */
    assert_true(e->whole && allocated() > empty);
    kf_cache_trim_idle(cache);
    assert_int_equal(allocated(), empty);
    kf_cache_free(cache);
    down(&r);
}

TEST_FILE(cache_test)
{
    const struct CMUnitTest tests[] = {
        TEST(cache_knows_sets,
             "cache: a set is found again, whatever else is asked"),
        TEST(cache_drops_the_least_recent,
             "cache: trimming drops the least recently used"),
        TEST(cache_samples_sets,
             "cache: of a forecast, one set stands for others"),
        TEST(cache_survives_no_budget, "cache: a budget of 0 works"),
        TEST(cache_keeps_what_is_in_use, "cache: decoders in use stay"),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
