/* slow_test.c -- which worker is slow, from simulated times of equal and
 * unequal work. */
#include "ports/badge.h"

#include "rig.h"

#define WORKERS 64

typedef struct crowd {
    kf_badge badge[WORKERS];
    kf_badge *at[WORKERS];
    double scratch[WORKERS];
    kf_rng rng;
} crowd;

static crowd *make_crowd(unsigned seed)
{
    crowd *c = kf_zero(1, sizeof *c);

    assert_non_null(c);
    for (size_t i = 0; i < WORKERS; i++)
        c->at[i] = &c->badge[i];
    c->rng = kf_rng_stream(seed, KF_FOR_DATA, 0, 0);
    return c;
}

/* One product: each worker has some rows, and takes a time for each number that
 * varies by a tenth. One of ten takes three times as long by chance. Worker 5
 * takes `factor` times as long always. */
static void play(crowd *c, double factor)
{
    for (size_t i = 0; i < WORKERS; i++) {
        size_t rows = 50 + (size_t)(kf_rng_uniform(&c->rng) * 100);
        double noise = 0.95 + 0.1 * kf_rng_uniform(&c->rng);
        double chance = kf_rng_uniform(&c->rng) < 0.1 ? 3 : 1;
        kf_head h = {.type = KF_WIRE_RESULT, .rows = rows, .cols = 1};

        h.took = (uint64_t)(1000.0 * (double)rows * noise * chance *
                            (i == 5 ? factor : 1));
        kf_badge_count(&c->badge[i], &h, 8 * rows);
    }
    kf_badge_compare(c->at, WORKERS, c->scratch);
}

static void slow_is_named(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        crowd *c = make_crowd(seed);

        for (int i = 0; i < 9; i++)
            play(c, 1.3);
        assert_true(c->badge[5].slow == 0); /* not enough data */
        play(c, 1.3);
        assert_true(c->badge[5].slow > 1.15);
        for (size_t i = 0; i < WORKERS; i++)
            assert_true(i == 5 || c->badge[i].slow == 1);
        kf_free(c);
    }
}

static void others_are_not(void **state)
{
    crowd *c = make_crowd(7);

    (void)state;
    for (size_t i = 0; i < often(10000); i++) {
        play(c, 1);
        for (size_t w = 0; w < WORKERS; w++)
            assert_true(c->badge[w].slow <= 1);
    }
    kf_free(c);
}

static void forgiven(void **state)
{
    crowd *c = make_crowd(3);

    (void)state;
    for (int i = 0; i < 60; i++)
        play(c, 2);
    assert_true(c->badge[5].slow > 1.5);
    play(c, 1);
    play(c, 1);
    assert_true(c->badge[5].slow == 1);
    kf_free(c);
}

/* Two workers cannot be compared: there is no majority. */
static void few_are_not_compared(void **state)
{
    crowd *c = make_crowd(4);

    (void)state;
    for (int i = 0; i < 30; i++) {
        for (size_t w = 0; w < 2; w++) {
            const kf_head h = {.type = KF_WIRE_RESULT,
                               .rows = 10,
                               .cols = 1,
                               .took = 1000 * (1 + 3 * w)};

            kf_badge_count(&c->badge[w], &h, 80);
        }
        kf_badge_compare(c->at, 2, c->scratch);
    }
    assert_true(c->badge[1].slow == 0);
    kf_free(c);
}

static void badges(void **state)
{
    static const char words[] = "kofn 0.1.0, process 12 on node\a7 as anna";
    const kf_head h = {.lo = 12, .hi = 1024};
    kofn_packet k = {.body = words, .body_bytes = sizeof words - 1};
    kf_badge c = {0};

    (void)state;
    kf_badge_read(&c, &h, &k);
    assert_string_equal(c.host, "node?7");
    assert_string_equal(c.name, "anna");
    assert_int_equal(c.process, 12);
    assert_int_equal(c.memory, 1024);
    c = (kf_badge){0};
    k.body_bytes -= strlen(" as anna");
    kf_badge_read(&c, &h, &k);
    assert_string_equal(c.name, "node?7:12");
    c = (kf_badge){0};
    k = (kofn_packet){0};
    kf_badge_read(&c, &h, &k);
    assert_string_equal(c.name, ":12");
}

TEST_FILE(slow_test)
{
    const struct CMUnitTest tests[] = {
        TEST(slow_is_named,
             "slow: of 64 workers one with 1.3 times the time is found in ten "
             "products"),
        TEST(others_are_not, "slow: none is found in 10000 products by chance"),
        TEST(forgiven, "slow: a worker that is fast again is not slow"),
        TEST(few_are_not_compared, "slow: two workers are not compared"),
        TEST(badges, "slow: a hello has host, process, memory and name"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
