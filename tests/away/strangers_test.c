/* strangers_test.c -- the list of peers that have not said hello, and leaky
 * buckets. */
#include "support.h"

#include "base/bucket.h"
#include "ports/strangers.h"

static void list(void **state)
{
    kf_strangers s = {0};
    kofn_peer peer = 77;

    (void)state;
    assert_false(kf_strangers_surplus(&s, 0, KOFN_NEVER, &peer));
    for (kofn_peer i = 0; i < 3; i++)
        assert_ok(kf_strangers_add(&s, 10 + i, 100 * (kofn_time)i));
    assert_false(kf_strangers_surplus(&s, 3, 0, &peer));
    assert_int_equal(peer, 77);
    assert_true(kf_strangers_surplus(&s, 2, 0, &peer)); /* one too many */
    assert_int_equal(peer, 10);
    assert_false(kf_strangers_surplus(&s, 3, 0, &peer));
    assert_true(kf_strangers_surplus(&s, 3, 1, &peer)); /* it came at 0 */
    kf_strangers_drop(&s, 11);
    kf_strangers_drop(&s, 11); /* it is not there */
    assert_null(kf_strangers_find(&s, 11));
    assert_int_equal(kf_strangers_find(&s, 12)->since, 200);
    kf_strangers_drop(&s, 10);
    assert_false(kf_strangers_surplus(&s, 3, 200, &peer));
    assert_true(kf_strangers_surplus(&s, 3, 201, &peer));
    assert_int_equal(peer, 12);
    kf_strangers_drop(&s, 12);
    assert_int_equal(s.count, 0);
    kf_free(s.stranger);
}

/* Three events at once, and three seconds in which one event a second leaks. */
static void bucket(void **state)
{
    kf_bucket b = {3, 5 * KOFN_SECOND};

    (void)state;
    assert_true(kf_bucket_leak(&b, 5 * KOFN_SECOND, 1, 0) == 3);
    assert_true(kf_bucket_leak(&b, 6 * KOFN_SECOND, 1, 0) == 2);
    assert_true(kf_bucket_leak(&b, 6 * KOFN_SECOND, 1, 0.5) == 1.5);
    assert_true(kf_bucket_leak(&b, 8 * KOFN_SECOND, 1, 0) == 0);
    b.level++;
    assert_true(kf_bucket_leak(&b, 8 * KOFN_SECOND, 1, 0) == 1);
}

TEST_FILE(strangers_test)
{
    const struct CMUnitTest tests[] = {
        TEST(list, "strangers: the first goes if it is late or one too many"),
        TEST(bucket, "a leaky bucket falls with time, and never below 0"),
    };

    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
