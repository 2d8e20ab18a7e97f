/* locale_test.c -- the library reads and writes numbers with a point in a
 * program that has a decimal comma. */
#include "comma_locale.h"
#include "operands_rig.h"

#include "base/number.h"

#include <kofn/faults.h>
#include <kofn/learn.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[4][96];
    static int turn;
    char *p = path[turn = (turn + 1) % 4];

    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static int made(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kofn-comma-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int removed(void **state)
{
    char command[96];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* ---- numbers that are read ----------------------------------------------- */

static void reading(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.seed = 1);
    double x[] = {0, 0, 3, 4}, y;
    kofn_matrix K, X = {x, 2, 2, 2, KOFN_F64}, slow;
    kofn_fault_event *events;
    size_t count;
    const char *lines = "1.5 leave 2\n2 slow 1 2.5\n";
    char text[32], *end;

    (void)state;
    if (!comma_begin(folder))
        skip();
    y = kf_read_real("2.5", &end);
    assert_true(y == 2.5 && !*end);
    assert_int_equal(kf_format(text, sizeof text, "%.17g", 2.5), 3);
    assert_string_equal(text, "2.5");
    assert_true(strtod("1,5", NULL) ==
                1.5); /* the program's own locale is unchanged */
    assert_ok(kofn_events_parse(&events, &count, lines, strlen(lines), 4, 9));
    assert_int_equal(count, 2);
    assert_true(events[0].fraction == 0.5 && events[1].factor == 2.5);
    kofn_free(events);
    assert_ok(kofn_faults_parse(&w, "straggle=0.25,factor=2.5"));
    assert_true(w.straggle == 0.25 && w.factor == 2.5);
    assert_status(KOFN_INVAL, kofn_faults_parse(&w, "straggle=0,25"));
    assert_ok(kofn_kernel(&K, &X, &X, "rbf:s=2.5"));
    assert_true(fabs(((double *)K.data)[1] - exp(-2)) < 1e-15);
    kofn_free(K.data);
    assert_ok(kofn_pattern_new(&slow, "iid:p=0.5", 4, 9, 2.5, 1));
    kofn_free(slow.data);
    assert_status(KOFN_INVAL, kofn_pattern_new(&slow, "iid:p=1.5", 4, 9, 2, 1));
    assert_non_null(strstr(kofn_errmsg(), "1.5"));
    comma_end();
}

/* ---- files that are written ---------------------------------------------- */

/* Checks that no number in the file has a comma. Only lists have a digit, a
 * comma and a digit in a row, and metrics have no lists. */
static void has_no_comma(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    for (char *p = strchr(text, ','); p; p = strchr(p + 1, ','))
        assert_false(p > text && p[-1] >= '0' && p[-1] <= '9' && p[1] >= '0' &&
                     p[1] <= '9');
    assert_non_null(strstr(text, "kofn_round_seconds_sum 0."));
}

static void writing(void **state)
{
    kofn_faults w = KOFN_FAULTS_INIT(.latency = 0.125);
    held h = {.spec = "gpd:m=2,n=1,p=1", .workers = 4, .faults = &w};
    kofn_options opt = KOFN_OPTIONS_INIT;

    (void)state;
    if (!comma_begin(folder))
        skip();
    opt.journal = path_of("journal");
    opt.metrics = path_of("metrics");
    opt.max_error = 0.5;
    opt.late = 2.5;
    held_up(&h, &opt);
    held_right(&h, 0, 1e-10);
    held_down(&h);
    comma_end();
    held_replays(opt.journal);
    has_no_comma(opt.metrics);
}

TEST_FILE(locale_test)
{
    const struct CMUnitTest tests[] = {
        TEST(reading, "locale: numbers are read with a point (comma locale)"),
        TEST(writing,
             "locale: journals and metrics have a point (comma locale)"),
    };

    return cmocka_run_group_tests(tests, made, removed);
}
