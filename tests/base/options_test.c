/* options_test.c -- the table of a job's options, by which options are
 * checked. */
#include "support.h"

#include "base/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const kofn_option *named(const char *name)
{
    const kofn_option *w;

    for (size_t i = 0; (w = kofn_option_at(i)); i++)
        if (!strcmp(w->name, name))
            return w;
    fail_msg("the table has no %s", name);
    return NULL;
}

static void says(const char *name, const char *value)
{
    char words[80];

    snprintf(words, sizeof words, "%s = %s ", name, value);
    if (!strstr(kofn_errmsg(), words))
        fail_msg("\"%s\" does not say \"%s\"", kofn_errmsg(), words);
}

static void defaults(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT, begun;

    (void)state;
    kofn_options_begin(&begun);
    assert_int_equal(begun.size, sizeof o);
    assert_true(begun.mu == 0.25 && o.mu == 0.25);
    assert_ok(kf_options_check(&o));
    kf_options_settle(&o);
    assert_true(o.late == 1.5);
    assert_true(o.lease == 30 * KOFN_SECOND);
    assert_int_equal(o.quarantine, 3);
    assert_int_equal(o.audit, 1);
    assert_true(o.max_error == 0 && o.pieces == 0 && o.patience == 0);
    assert_true(o.mu == 0.25);
}

static void never_is_zero(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;

    (void)state;
    o.late = -7;
    o.lease = -KOFN_SECOND;
    o.patience = o.start_within = KOFN_NEVER;
    assert_ok(kf_options_check(&o));
    kf_options_settle(&o);
    assert_true(o.late == 0 && o.lease == 0);
    assert_true(o.patience == KOFN_NEVER && o.start_within == KOFN_NEVER);
}

/* The range depends on how an option is stored; the table says where it ends.
 */
static void out_of_range(void **state)
{
    static const struct {
        kofn_options o;
        const char *name, *value;
    } wrong[] = {
        {{.late = 0.5}, "late", "0.5"},
        {{.late = NAN}, "late", "nan"},
        {{.max_error = 2}, "max_error", "2"},
        {{.max_error = -1}, "max_error", "-1"},
        {{.mu = -1}, "mu", "-1"},
        {{.pieces = 10001}, "pieces", "10001"},
        {{.workers_per_principal = 1000001}, "workers_per_principal", "1e+06"},
        {{.quarantine = 2000000000}, "quarantine", "2e+09"},
        {{.patience = -KOFN_SECOND}, "patience", "-1"},
        {{.start_within = 1000}, "start_within", "1e-06"},
        {{.below = 3}, "below", "3"},
        {{.errors = 5}, "errors", "5"},
        {{.in_flight = 9}, "in_flight", "9"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(KOFN_INVAL, kf_options_check(&wrong[i].o));
        says(wrong[i].name, wrong[i].value);
    }
}

static void text_values(void **state)
{
    kofn_options o = KOFN_OPTIONS_INIT;

    (void)state;
    assert_ok(kofn_option_set(&o, named("patience"), 2.5));
    assert_true(o.patience == 5 * KOFN_SECOND / 2);
    assert_ok(kofn_option_set(&o, named("late"), 0));
    assert_ok(kofn_option_set(&o, named("lease"), 0));
    assert_true(o.late < 0 && o.lease < 0);
    assert_ok(kofn_option_set(&o, named("errors"), 2));
    assert_int_equal(o.errors, KOFN_ERRORS_ADVERSARIAL);
    assert_ok(kofn_option_set(&o, named("workers_per_principal"), 1e6));
    assert_int_equal(o.workers_per_principal, 1000000);
    assert_ok(kofn_option_set(&o, named("beyond"), 1));
    assert_true(o.beyond);
    assert_status(KOFN_INVAL, kofn_option_set(&o, named("audit"), 0));
    says("audit", "0");
    assert_status(KOFN_INVAL, kofn_option_set(&o, named("pieces"), 1.5));
    assert_status(KOFN_INVAL, kofn_option_set(&o, named("late"), 0.5));
    assert_status(KOFN_INVAL, kofn_option_set(&o, named("mu"), NAN));
    assert_status(KOFN_INVAL, kofn_option_set(&o, named("journal"), 1));
}

TEST_FILE(options_test)
{
    const struct CMUnitTest tests[] = {
        TEST(defaults,
             "options: initialised options pass, and 0 takes its default"),
        TEST(never_is_zero,
             "options: never is stored as 0 once options are settled"),
        TEST(out_of_range,
             "options: a value out of range is refused with its name"),
        TEST(text_values, "options: text gives seconds, words and never"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
