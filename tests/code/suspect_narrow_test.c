/* suspect_narrow_test.c -- locates faulty workers from results a few entries
 * wide. It also runs under Valgrind: a search that ends early must not leave
 * memory unwritten that is read later. */
#include "suspect_rig.h"

/* All are wrong by slightly more than the alarm. They are too many to locate,
 * and so little wrong that they may be accepted before ranking. */
static void hardly_above_the_alarm(void **state)
{
    (void)state;
    for (size_t i = 0; i < effort(200); i++) {
        kf_rng r = kf_rng_stream(8, KF_FOR_SAMPLE, (uint32_t)i, 0);
        const size_t *z = sizes[kf_rng_below(&r, SIZES)];
        double size = ALARM * (1 + 7 * kf_rng_uniform(&r));
        code_case f;
        cell c;

        fleet_of(&f, kf_rng_below(&r, FAMILIES), z[0], z[1]);
        survive(&c, &f, 0, &r);
        fill(&c, 1 + i % 8, &r);
        choose_liars(&c, c.n, &r);
        for (size_t k = 0; k < c.rows * c.columns; k++)
            c.Y[k] += size * kf_rng_normal(&r);
        ask(&c, z[0] - z[1] - 1);
        judge(&c, "hardly above the alarm");
        cell_free(&c);
        fleet_down(&f);
    }
}

/* Any number of wrong nodes, up to all, in any way. */
static void few_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < effort(200); i++) {
        kf_rng r = kf_rng_stream(11, KF_FOR_SAMPLE, (uint32_t)i, 0);
        const size_t *z = sizes[kf_rng_below(&r, SIZES)];
        code_case f;
        cell c;

        fleet_of(&f, kf_rng_below(&r, FAMILIES), z[0], z[1]);
        survive(&c, &f, 0, &r);
        fill(&c, 1 + i % 8, &r);
        choose_liars(&c, kf_rng_below(&r, c.n + 1), &r);
        for (size_t n = 0; n < c.n; n++)
            if (c.lied[n])
                tell_a_lie(&c, n, (way)(i / 8 % WAYS), &r);
        ask(&c, z[0] - z[1] - 1);
        cell_free(&c);
        fleet_down(&f);
    }
}

TEST_FILE(suspect_narrow_test)
{
    const struct CMUnitTest tests[] = {
        TEST(hardly_above_the_alarm,
             "errors, narrow: many errors just above the alarm name no one "
             "wrong"),
        TEST(few_columns,
             "errors, narrow: any number of wrong nodes, in any way"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
