/* options_test.c -- the table of a job's options is what options are checked
 * by. */
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

static void what_is_begun_passes_and_says_what_0_is(void **state)
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
    assert_true(o.tolerance == 0 && o.pieces == 0 && o.patience == 0);
    assert_true(o.mu == 0.25);
}

static void never_is_0_once_it_is_settled(void **state)
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

/* By how an option is stored; the table says where that ends. */
static void what_is_out_of_range_is_named(void **state)
{
    static const struct {
        kofn_options o;
        const char *name, *value;
    } wrong[] = {
        {{.late = 0.5}, "late", "0.5"},
        {{.late = NAN}, "late", "nan"},
        {{.tolerance = 2}, "tolerance", "2"},
        {{.tolerance = -1}, "tolerance", "-1"},
        {{.mu = -1}, "mu", "-1"},
        {{.pieces = 10001}, "pieces", "10001"},
        {{.seats = 1000001}, "seats", "1e+06"},
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

static void people_give_seconds_words_and_never(void **state)
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
    assert_ok(kofn_option_set(&o, named("seats"), 1e6));
    assert_int_equal(o.seats, 1000000);
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
        cmocka_unit_test(what_is_begun_passes_and_says_what_0_is),
        cmocka_unit_test(never_is_0_once_it_is_settled),
        cmocka_unit_test(what_is_out_of_range_is_named),
        cmocka_unit_test(people_give_seconds_words_and_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
