/* core_rows_test.c -- tests workers that answer rows that are not those of
 * their seats. */
#include "open_rig.h"

static size_t of_row(const open_case *b, uint32_t worker, uint32_t row)
{
    for (size_t i = 0; i < b->tasks; i++)
        if (b->task[i].out && b->task[i].worker == worker &&
            b->task[i].row == row)
            return i;
    fail_msg("worker %u was not asked for row %u", worker, row);
    return 0;
}

/* Asks this worker for that row of all strips, as a policy of the caller's own
 * may do. */
static void have_answered(open_case *b, uint32_t worker, uint32_t row)
{
    assert_ok(kf_round_ask(b->core, kf_newest(b->core), worker, row,
                           (kf_band){0, 0, b->plan->span}));
    drain(b);
}

/* A fresh row that has no seat counts like any other row. */
static void fresh_row_counts(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .pieces = 1};
    open_case b;

    (void)state;
    case_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    answer(&b, of_row(&b, 0, 0));
    have_answered(&b, 1, 40);
    have_answered(&b, 1, 17); /* and two rows of the same worker */
    answer(&b, of_row(&b, 1, 40));
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 1, 17));
    assert_false(b.product[1].open);
    assert_int_equal(b.product[1].ended, KOFN_OK);
    case_close(&b);
}

/* Another row is asked for instead. */
static void row_counts_once(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .pieces = 1};
    open_case b;

    (void)state;
    case_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    leave(&b, 3);
    begin(&b, 0);
    join(&b);                /* joins at seat 3, outside this round */
    have_answered(&b, 0, 2); /* the row of worker 2 */
    leave(&b, 1);            /* three tasks are outstanding, but of two rows */
    answer(&b, of_row(&b, 0, 0));
    answer(&b, of_row(&b, 0, 2));
    answer(&b, of_row(&b, 2, 2)); /* again */
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 4, 3)); /* so it is needed */
    assert_false(b.product[1].open);
    assert_int_equal(b.product[1].ended, KOFN_OK);
    case_close(&b);
}

/* A worker with an outstanding row of another seat is replaced when it leaves.
 */
static void borrowed_row_is_replaced(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .pieces = 1};
    open_case b;

    (void)state;
    case_open(&b, "mds:k=3,basis=gauss", 5, 6, 0, &opt);
    begin(&b, 0);
    have_answered(&b, 0, 33);
    leave(&b, 0);
    answer(&b, of_row(&b, 1, 1));
    answer(&b, of_row(&b, 2, 2));
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 3, 3));
    assert_int_equal(b.product[1].ended, KOFN_OK);
    case_close(&b);
}

TEST_FILE(core_rows_test)
{
    const struct CMUnitTest tests[] = {
        TEST(fresh_row_counts, "core: a fresh row counts as a row of a seat"),
        TEST(row_counts_once,
             "core: a row that two workers answered counts once"),
        TEST(borrowed_row_is_replaced,
             "core: a row of another seat is replaced if its worker leaves"),
    };

    return cmocka_run_group_tests_name("core_rows", tests, NULL, NULL);
}
