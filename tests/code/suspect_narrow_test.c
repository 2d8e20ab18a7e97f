/* suspect_narrow_test.c -- who lied, from results a few entries wide.  Run once
 * more under Valgrind: a search that ends early must not have left anything
 * unwritten that is read afterwards. */
#include "suspect_rig.h"

/* All are wrong by hardly more than raises the alarm: so many that nobody can
 * be named, so little that it may be let be before anybody is ranked. */
static void hardly_above_the_alarm(void **state)
{
    (void)state;
    for (size_t i = 0; i < effort(200); i++) {
        kf_rng r = kf_rng_stream(8, KF_FOR_SAMPLE, (uint32_t)i, 0);
        const size_t *z = sizes[kf_rng_below(&r, SIZES)];
        double size = ALARM * (1 + 7 * kf_rng_uniform(&r));
        fleet f;
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

/* Whoever lies and in whatever way, up to all of them. */
static void few_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < effort(200); i++) {
        kf_rng r = kf_rng_stream(11, KF_FOR_SAMPLE, (uint32_t)i, 0);
        const size_t *z = sizes[kf_rng_below(&r, SIZES)];
        fleet f;
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
        cmocka_unit_test(hardly_above_the_alarm),
        cmocka_unit_test(few_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
