/* decay_test.c -- operands that only decay: A <- (1 - step decay) A. */
#include "update_rig.h"

/* The factor is known, here -1: nothing grows, however often. */
static void no_growth(void **state)
{
    held h = {.spec = "elastic:k=4", .workers = 8, .dtype = KOFN_F32};
    sgd c = SGD_INIT;

    (void)state;
    held_up(&h, NULL);
    c.decay = 2;
    for (size_t i = 0; i < 100; i++)
        assert_ok(sgd_update(h.job, 0, &c, NULL, NULL));
    held_right(&h, 0, 1e-5); /* the operand is that of before */
    held_down(&h);
}

/* Elements of 2^-126 have no digits to lose. */
static void too_small(void **state)
{
    held h = {.spec = "elastic:k=4", .workers = 8, .dtype = KOFN_F32};
    sgd c = SGD_INIT;
    kofn_status st = KOFN_OK;

    (void)state;
    held_up(&h, NULL);
    c.decay = 0.5;
    for (size_t i = 0; i < 126 && !st; i++)
        st = sgd_update(h.job, 0, &c, NULL, NULL);
    assert_status(KOFN_NONFINITE, st);
    assert_non_null(strstr(kofn_errmsg(), "place it multiplied by a power"));
    held_down(&h);
}

TEST_FILE(decay_test)
{
    const struct CMUnitTest tests[] = {
        TEST(no_growth,
             "decay: an operand that decays is not taken for one that grows"),
        TEST(
            too_small,
            "decay: an operand that would lose digits is refused, with advice"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
