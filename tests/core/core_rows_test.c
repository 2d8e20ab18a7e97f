/* core_rows_test.c -- workers that answer rows that are not those of their
 * seats. */
#include "open_rig.h"

static size_t of_row(const body *b, uint32_t worker, uint32_t row)
{
    for (size_t i = 0; i < b->errands; i++)
        if (b->errand[i].out && b->errand[i].worker == worker &&
            b->errand[i].row == row)
            return i;
    fail_msg("worker %u was not asked for row %u", worker, row);
    return 0;
}

/* A policy of one's own: this worker answers that row of all strips. */
static void have_answered(body *b, uint32_t worker, uint32_t row)
{
    assert_ok(kf_round_ask(b->core, kf_newest(b->core), worker, row,
                           (kf_band){0, 0, b->plan->span}));
    drain(b);
}

/* A fresh row that nobody has a seat for is as good as any. */
static void a_worker_answers_a_fresh_row(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    begin(&b, 0);
    answer(&b, of_row(&b, 0, 0));
    have_answered(&b, 1, 40);
    have_answered(&b, 1, 17); /* and two of the same worker */
    answer(&b, of_row(&b, 1, 40));
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 1, 17));
    assert_false(b.product[1].open);
    assert_int_equal(b.product[1].ended, KOFN_OK);
    body_close(&b);
}

/* A row that two have answered counts once, and another is asked for. */
static void a_row_counts_once(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 4, 6, 0, &opt);
    leave(&b, 3);
    begin(&b, 0);
    join(&b);                /* sits this one out, on seat 3 */
    have_answered(&b, 0, 2); /* the row of worker 2 */
    leave(&b, 1);            /* three tasks are in hand, but of two rows */
    answer(&b, of_row(&b, 0, 0));
    answer(&b, of_row(&b, 0, 2));
    answer(&b, of_row(&b, 2, 2)); /* again */
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 4, 3)); /* so it is needed */
    assert_false(b.product[1].open);
    assert_int_equal(b.product[1].ended, KOFN_OK);
    body_close(&b);
}

/* Whoever has another's row in hand and goes is replaced. */
static void a_borrowed_row_is_asked_for_again(void **state)
{
    kofn_core_options opt = {.size = sizeof opt, .pieces = 1};
    body b;

    (void)state;
    body_open(&b, "mds:k=3,basis=gauss", 5, 6, 0, &opt);
    begin(&b, 0);
    have_answered(&b, 0, 33);
    leave(&b, 0);
    answer(&b, of_row(&b, 1, 1));
    answer(&b, of_row(&b, 2, 2));
    assert_true(b.product[1].open);
    answer(&b, of_row(&b, 3, 3));
    assert_int_equal(b.product[1].ended, KOFN_OK);
    body_close(&b);
}

TEST_FILE(core_rows_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_answers_a_fresh_row),
        cmocka_unit_test(a_row_counts_once),
        cmocka_unit_test(a_borrowed_row_is_asked_for_again),
    };

    return cmocka_run_group_tests_name("core_rows", tests, NULL, NULL);
}
