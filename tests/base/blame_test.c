/* blame_test.c -- exclusion of workers that are wrong too often: never by
 * chance, and soon for those that are wrong more often than others. */
#include "support.h"

#include "base/blame.h"
#include "base/rng.h"

#include <math.h>

#define MOST 100

/* Returns the rounds until a worker is excluded. The first `bad` workers are
 * wrong with chance `theirs`, the others with chance `rate`. 0: never. */
static unsigned excluded(size_t workers, size_t bad, double theirs, double rate,
                         unsigned rounds)
{
    kf_rng r =
        kf_rng_stream(1, KF_FOR_SAMPLE, (uint32_t)workers, (uint32_t)bad);
    kf_blame one[MOST] = {{0}}, all = {0};
    unsigned last = 0;

    for (unsigned t = 1; t <= rounds; t++)
        for (size_t i = 0; i < workers; i++) {
            bool wrong = kf_rng_uniform(&r) < (i < bad ? theirs : rate);

            if (kf_blame_suffices(&one[i], 3))
                continue;
            kf_blame_note(&one[i], &all, wrong);
            if (!kf_blame_suffices(&one[i], 3))
                continue;
            if (i >= bad)
                fail_msg("%zu of %zu, wrong by chance %g, is excluded in "
                         "round %u",
                         i, workers, rate, t);
            kf_blame_leave(&one[i], &all);
            last = t;
        }
    for (size_t i = 0; i < bad; i++)
        if (!kf_blame_suffices(&one[i], 3))
            return 0;
    return last;
}

static void never_by_chance(void **state)
{
    static const double rate[] = {0, 1e-4, 1e-3, .01, .02, .05, .1, .2, .3};

    (void)state;
    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
        for (size_t workers = 1; workers <= 33; workers += 8)
            assert_int_equal(excluded(workers, 0, 0, rate[i], 10000), 0);
}

/* The limits follow from the sums of blame.h. */
static void always_wrong(void **state)
{
    (void)state;
    assert_in_range(excluded(8, 1, 1, 0, 1000), 10, 30);
    assert_in_range(excluded(100, 1, 1, 0, 1000), 8, 20);
    assert_in_range(excluded(9, 4, 1, 0, 1000), 30, 150);
    assert_in_range(excluded(100, 30, 1, 0, 1000), 30, 150);
    assert_in_range(excluded(11, 1, 1, .02, 1000), 15, 40);
    assert_in_range(excluded(11, 1, .5, .02, 1000), 25, 150);
}

/* The others were right 70 times: q = 1/71, and p = sqrt q. */
static void one_error(void **state)
{
    const double right = log((1 - sqrt(1. / 71)) / (1 - 1. / 71));
    kf_blame one = {0}, all = {.times = 70};

    (void)state;
    kf_blame_note(&one, &all, true);
    assert_at_most(fabs(one.level - log(71) / 2), 1e-14);
    kf_blame_note(&one, &all, false);
    assert_at_most(fabs(one.level - log(71) / 2 - right), 1e-14);
    for (int i = 0; i < 20; i++)
        kf_blame_note(&one, &all, false);
    assert_true(one.level == 0); /* the error is forgiven */
    assert_int_equal(one.wrong, 1);
    assert_int_equal(one.times, 22);
    assert_int_equal(all.times, 92);
}

/* Each right answer weighs ln .9; the limit is ln e^36. */
static void returned(void **state)
{
    (void)state;
    for (int right = 0; right <= 400; right += 200) {
        kf_blame one = {0}, all = {.times = 100000000};

        kf_blame_warn(&one, 3);
        assert_false(kf_blame_suffices(&one, 3));
        for (int i = 0; i < right; i++)
            kf_blame_note(&one, &all, false);
        kf_blame_note(&one, &all, true);
        assert_int_equal(kf_blame_suffices(&one, 3), right == 0);
        kf_blame_note(&one, &all, true);
        assert_int_equal(kf_blame_suffices(&one, 3), right <= 200);
    }
}

static void one_alone(void **state)
{
    kf_blame one = {0}, all = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        kf_blame_note(&one, &all, true);
    assert_true(one.level == 0);
}

/* Lorden's bound: by chance a limit h is reached at most once in e^h times. */
static void lordens_bound(void **state)
{
    static const double rate[] = {.001, .01, .1, .3};

    (void)state;
    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++) {
        kf_rng r = kf_rng_stream(2, KF_FOR_SAMPLE, (uint32_t)i, 0);
        uint64_t many = UINT64_C(1) << 40, times = 2000000, reached = 0;
        uint64_t wrong = (uint64_t)(rate[i] * (double)many);
        kf_blame one = {0};

        for (uint64_t t = 0; t < times; t++) {
            kf_blame all = {.wrong = wrong, .times = many};

            one.wrong = one.times = 0;
            kf_blame_note(&one, &all, kf_rng_uniform(&r) < rate[i]);
            if (one.level < 4)
                continue;
            reached++;
            one.level = 0;
        }
        assert_true((double)reached <= (double)times / exp(4));
    }
}

TEST_FILE(blame_test)
{
    const struct CMUnitTest tests[] = {
        TEST(never_by_chance, "blame: no worker is excluded by chance"),
        TEST(always_wrong,
             "blame: an always wrong worker is excluded within 20 rounds"),
        TEST(one_error, "blame: one error weighs as computed, and is forgiven"),
        TEST(returned,
             "blame: a readmitted worker is excluded again after one error"),
        TEST(one_alone,
             "blame: a single worker cannot be compared, so is never excluded"),
        TEST(lordens_bound,
             "blame: by chance a limit h is reached at most once in e^h times"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
