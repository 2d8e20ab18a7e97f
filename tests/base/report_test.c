/* report_test.c -- the sum of two rounds, field by field. */
#include "support.h"

#include "base/report.h"

static const size_t rows[1] = {7};

/* Fields of the first round are odd, those of the second even. */
static const kofn_report first = {.rounds = 1,
                                  .took = 1001,
                                  .encoding = 101,
                                  .waiting = 103,
                                  .decoding = 105,
                                  .noise = 9,
                                  .predicted = 1e-9,
                                  .live = 5,
                                  .joined = 3,
                                  .left = 5,
                                  .late = 7,
                                  .dropped = 9,
                                  .messages = 11,
                                  .scalars = 13,
                                  .corrupt = 15,
                                  .liars = 3,
                                  .floor = 1e-7,
                                  .sent = 17,
                                  .received = 19,
                                  .parts = 21,
                                  .number = 23,
                                  .began = 25,
                                  .ended = 27,
                                  .plain = 29,
                                  .coded = 31,
                                  .again = 33,
                                  .rebuilt = 35,
                                  .rebuilding = 37,
                                  .drift = 1e-3};
static const kofn_report second = {.rounds = 1,
                                   .took = 2000,
                                   .encoding = 200,
                                   .waiting = 202,
                                   .decoding = 204,
                                   .noise = 8,
                                   .predicted = 2e-9,
                                   .live = 4,
                                   .joined = 2,
                                   .left = 4,
                                   .late = 6,
                                   .dropped = 8,
                                   .rows = rows,
                                   .workers = 1,
                                   .messages = 10,
                                   .scalars = 12,
                                   .corrupt = 14,
                                   .liars = 2,
                                   .floor = 2e-7,
                                   .sent = 16,
                                   .received = 18,
                                   .parts = 20,
                                   .number = 22,
                                   .began = 24,
                                   .ended = 26,
                                   .plain = 28,
                                   .coded = 30,
                                   .again = 32,
                                   .rebuilt = 34,
                                   .rebuilding = 36,
                                   .drift = 2e-4};

static void sums(void **state)
{
    kofn_report s = first;

    (void)state;
    kf_report_add(&s, &second);
    assert_int_equal(s.rounds, 2);
    assert_int_equal(s.took, 3001);
    assert_int_equal(s.encoding, 301);
    assert_int_equal(s.waiting, 305);
    assert_int_equal(s.decoding, 309);
    assert_int_equal(s.joined, 5);
    assert_int_equal(s.left, 9);
    assert_int_equal(s.late, 13);
    assert_int_equal(s.dropped, 17);
    assert_int_equal(s.messages, 21);
    assert_int_equal(s.scalars, 25);
    assert_int_equal(s.corrupt, 29);
    assert_int_equal(s.sent, 33);
    assert_int_equal(s.received, 37);
    assert_int_equal(s.plain, 57);
    assert_int_equal(s.coded, 61);
    assert_int_equal(s.again, 65);
    assert_int_equal(s.rebuilt, 69);
    assert_int_equal(s.unchecked, 0);
}

static void worst_and_last(void **state)
{
    kofn_report s = first;

    (void)state;
    kf_report_add(&s, &second);
    assert_true(s.noise == 9 && s.predicted == 2e-9);
    assert_true(s.floor == 2e-7 && s.drift == 1e-3);
    assert_int_equal(s.live, 4);
    assert_ptr_equal(s.rows, rows);
    assert_int_equal(s.workers, 1);
    assert_int_equal(s.parts, 20);
    assert_int_equal(s.began, 24);
    assert_int_equal(s.ended, 26);
    assert_int_equal(s.rebuilding, 36);
    assert_int_equal(s.number, 0);
}

static void fewest_liars(void **state)
{
    kofn_report believed = {.rounds = 1, .unchecked = 1}, s = first;

    (void)state;
    kf_report_add(&s, &second);
    assert_int_equal(s.liars, 2);
    kf_report_add(&s, &first);
    assert_int_equal(s.liars, 2);
    kf_report_add(&s, &believed);
    assert_int_equal(s.liars, 2);
    assert_int_equal(s.unchecked, 1);
    s = believed;
    kf_report_add(&s, &first);
    assert_int_equal(s.liars, 3);
    s = (kofn_report){0};
    kf_report_add(&s, &first);
    assert_int_equal(s.liars, 3);
}

TEST_FILE(report_test)
{
    const struct CMUnitTest tests[] = {
        TEST(sums, "report: counts and times are added up"),
        TEST(worst_and_last,
             "report: errors take the worst round, states the last one"),
        TEST(fewest_liars,
             "report: may_lie takes the least of the checked rounds"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
