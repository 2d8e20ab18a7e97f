/* update_liars_test.c -- operands that change at the workers, while some of
 * these workers are faulty. */
#include "update_rig.h"

#include "run/job.h"

#include <stdio.h>

static const char *const checked[] = {
    "gpd:m=2,n=1,p=1", "polydot:m=1,n=2,p=1",
    "matdot:n=2",      "polynomial:m=2,p=1,basis=circle",
    "gpd:m=1,n=1,p=2", /* seats hold multiples of A */
};

/* The worker is faulty from one step on. It is quarantined when it is wrong
 * with another block, too (rebuild_job_test.c). */
static void faulty_named(void **state)
{
    static const kofn_fault_event lie = {4, 0, KOFN_FAULT_EVENT_CORRUPT, 2, 0};

    (void)state;
    for (size_t s = 0; s < sizeof checked / sizeof *checked; s++) {
        held h = {.spec = checked[s], .workers = 8};
        kofn_options opt = KOFN_OPTIONS_INIT;
        kofn_report rep = KOFN_REPORT_INIT;
        unsigned step = 1;
        twin t;

        opt.errors = KOFN_ERRORS_ADVERSARIAL;
        opt.events = &lie;
        opt.event_count = 1;
        held_up(&h, &opt);
        twin_up(&t, &h);
        for (; step <= 3; step++)
            train(&h, &t, step, s % WAYS, 1e-8);
        assert_int_equal(all_of(&h).corrupt, 0);
        for (; all_of(&h).states[2] != KOFN_WORKER_QUARANTINED; step++) {
            assert_true(step < 40);
            train(&h, &t, step, s % WAYS, 1e-8);
        }
        for (size_t o = 0; o < OPERANDS; o++)
            assert_at_most(fetched(&h, &t, o), 1e-8);
        now(&h, &t);
        held_spoil(&h.out[0]);
        assert_ok(kofn_round(h.job, &h.in[0], &h.out[0], &rep));
        assert_int_equal(rep.states[2], KOFN_WORKER_QUARANTINED);
        for (size_t w = 0; w < rep.workers; w++)
            assert_int_equal(rep.located[w] > 0, w == 2);
        twin_down(&t);
        held_down(&h);
    }
}

static kofn_fault_event at_step(unsigned step, kofn_fault_event_kind kind,
                                uint32_t worker)
{
    return (kofn_fault_event){step, 0, kind, worker, 0};
}

/* A worker is faulty while blocks of joiners are made from its block. It
 * spoils none of them. It is named, and after it has left all results are
 * right. */
static void joiners_blocks(void **state)
{
    const kofn_fault_event come[] = {at_step(3, KOFN_FAULT_EVENT_CORRUPT, 2),
                                     at_step(4, KOFN_FAULT_EVENT_LEAVE, 0),
                                     at_step(4, KOFN_FAULT_EVENT_JOIN, 0),
                                     at_step(5, KOFN_FAULT_EVENT_LEAVE, 1),
                                     at_step(5, KOFN_FAULT_EVENT_JOIN, 0),
                                     at_step(10, KOFN_FAULT_EVENT_LEAVE, 2)};

    (void)state;
    for (size_t s = 0; s < sizeof checked / sizeof *checked; s++) {
        held h = {.spec = checked[s], .workers = 8};
        kofn_options opt = KOFN_OPTIONS_INIT;
        kofn_report rep = KOFN_REPORT_INIT;
        twin t;

        opt.errors = KOFN_ERRORS_ADVERSARIAL;
        opt.quarantine = 1000;
        opt.events = come;
        opt.event_count = sizeof come / sizeof *come;
        opt.late = -1;
        held_up(&h, &opt);
        twin_up(&t, &h);
        for (unsigned step = 1; step <= STEPS; step++)
            train(&h, &t, step, 2 + s % 2, 1e-8);
        for (size_t o = 0; o < OPERANDS; o++)
            assert_at_most(fetched(&h, &t, o), 1e-8);
        held_spoil(&h.out[0]);
        now(&h, &t);
        assert_ok(kofn_round(h.job, &h.in[0], &h.out[0], &rep));
        assert_int_equal(rep.workers, 10);
        for (size_t w = 0; w < rep.workers; w++)
            assert_int_equal(rep.located[w] > 0, w == 2);
        twin_down(&t);
        held_down(&h);
    }
}

static void too_many(void **state)
{
    const kofn_fault_event come[] = {at_step(3, KOFN_FAULT_EVENT_CORRUPT, 0),
                                     at_step(3, KOFN_FAULT_EVENT_CORRUPT, 1),
                                     at_step(3, KOFN_FAULT_EVENT_CORRUPT, 2),
                                     at_step(3, KOFN_FAULT_EVENT_LEAVE, 4),
                                     at_step(3, KOFN_FAULT_EVENT_JOIN, 0)};
    held h = {.spec = "gpd:m=2,n=1,p=1", .workers = 5};
    kofn_options opt = KOFN_OPTIONS_INIT;
    twin t;

    (void)state;
    opt.errors = KOFN_ERRORS_PROBABILISTIC;
    opt.events = come;
    opt.event_count = sizeof come / sizeof *come;
    opt.late = -1;
    held_up(&h, &opt);
    twin_up(&t, &h);
    for (unsigned step = 1; step <= 2; step++)
        train(&h, &t, step, 1, 1e-8);
    assert_ok(kofn_step(h.job, 3));
    assert_ok(kofn_put_at(h.job, 0, false, &h.in[0], &h.out[0], NULL));
    assert_status(KOFN_TOOFEW, kofn_take(h.job, 0, KOFN_NEVER, NULL));
    assert_non_null(strstr(kofn_errmsg(), "beyond doubt"));
    twin_down(&t);
    held_down(&h);
}

/* Without a check the error names the workers that answered NaN for a block,
 * not a lack of workers. */
static void nan_blocks(void **state)
{
    held h = {.spec = "gpd:m=2,n=2,p=1", .workers = 8};
    kofn_fault_event come[12];
    size_t n = 0;
    twin t;

    (void)state;
    for (uint32_t w = 4; w < 8; w++)
        come[n++] = at_step(3, KOFN_FAULT_EVENT_CORRUPT, w);
    n += replace_some(come + n, 3, 0, 4);
    trained(&h, &t, come, n, 2);
    assert_ok(kofn_step(h.job, 3));
    assert_ok(kofn_put_at(h.job, 0, false, &h.in[0], &h.out[0], NULL));
    assert_status(KOFN_CORRUPT, kofn_take(h.job, 0, KOFN_NEVER, NULL));
    assert_non_null(strstr(kofn_errmsg(), "answered NaN or infinity"));
    twin_down(&t);
    held_down(&h);
}

/* The operand is small and moves fast. Its velocities are not measured by its
 * own size, so no worker is named for their rounding. */
static void fast_operands(void **state)
{
    const sgd c = {1e-10, 0, 0.9, false};
    kofn_fault_event come[2 * STEPS];
    held h = {.spec = "gpd:m=2,n=1,p=1", .workers = 8};
    kofn_options opt = KOFN_OPTIONS_INIT;
    twin t;

    (void)state;
    opt.errors = KOFN_ERRORS_ADVERSARIAL;
    opt.events = come;
    opt.event_count = replace_all(come, 3, 0);
    opt.late = -1;
    held_open(&h, &opt);
    for (size_t o = 0; o < OPERANDS; o++) {
        for (size_t i = 0; i < h.A[o].rows * h.A[o].cols; i++)
            ((double *)h.A[o].data)[i] *= 1e-8;
        assert_ok(kofn_place_at(h.job, o, KOFN_DENSE(&h.A[o])));
    }
    twin_up(&t, &h);
    for (unsigned step = 1; step <= STEPS + 3; step++) {
        assert_ok(kofn_step(h.job, step));
        now(&h, &t);
        for (size_t o = 0; o < OPERANDS; o++)
            held_right(&h, o, 1e-8);
        for (size_t o = 0; o < OPERANDS; o++)
            change(&h, &t, o, &c, 10 * step + o);
    }
    assert_int_equal(all_of(&h).corrupt, 0);
    assert_int_equal(all_of(&h).joined, STEPS);
    twin_down(&t);
    held_down(&h);
}

/* Takes away a third of A, and then nearly all that is left. */
static void nearly_take_away(held *h, twin *t, size_t o)
{
    size_t m = h->A[o].rows;
    kofn_matrix U = {numbers(m * m, 8), m, m, m, KOFN_F64};

    for (size_t i = 0; i < m; i++)
        ((double *)U.data)[i * m + i] = 1;
    for (size_t i = 0; i < 2; i++) {
        sgd c = SGD_INIT;

        c.step = i == 0 ? 1.0 / 3 : 2.0 / 3 - 1e-5;
        assert_ok(sgd_update(h->job, o, &c, &U, &h->A[o]));
        twin_step(t, o, &c, &U, &h->A[o]);
    }
    kf_free(U.data);
}

/* The operand has become small, so its blocks have rounding from before. The
 * operand is read since, as a whole or to compare blocks. */
static void shrunk_operands(void **state)
{
    (void)state;
    for (size_t s = 0; s < 2 * sizeof checked / sizeof *checked; s++) {
        held h = {.spec = checked[s / 2], .workers = 8};
        kofn_options opt = KOFN_OPTIONS_INIT;
        twin t;

        opt.errors = KOFN_ERRORS_DETECT;
        opt.late = -1;
        held_up(&h, &opt);
        twin_up(&t, &h);
        for (size_t o = 0; o < OPERANDS; o++) {
            nearly_take_away(&h, &t, o);
            if (s % 2)
                assert_at_most(fetched(&h, &t, o), 1e-8);
        }
        for (size_t i = 0; i < 3; i++)
            assert_ok(kofn_scrub(h.job, NULL));
        now(&h, &t);
        for (size_t o = 0; o < OPERANDS; o++)
            held_right(&h, o, 1e-8);
        assert_int_equal(all_of(&h).corrupt, 0);
        twin_down(&t);
        held_down(&h);
    }
}

static void honest(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof checked / sizeof *checked; s++)
        for (size_t wide = 0; wide < 2; wide++) {
            held h = {.spec = checked[s],
                      .workers = 8,
                      .dtype = wide ? KOFN_F64 : KOFN_F32};
            kofn_options opt = KOFN_OPTIONS_INIT;
            double most = wide ? 1e-8 : 1e-2;
            twin t;

            opt.errors = KOFN_ERRORS_ADVERSARIAL;
            held_up(&h, &opt);
            twin_up(&t, &h);
            for (unsigned step = 1; step <= often(100); step++) {
                train(&h, &t, step, 3 - s % 2, most);
                if (step % 20 == 0)
                    assert_at_most(fetched(&h, &t, step % OPERANDS), most);
            }
            assert_int_equal(all_of(&h).corrupt, 0);
            twin_down(&t);
            held_down(&h);
        }
}

TEST_FILE(update_liars_test)
{
    const struct CMUnitTest tests[] = {
        TEST(faulty_named,
             "update errors: a faulty worker is named and quarantined"),
        TEST(joiners_blocks,
             "update errors: a faulty worker spoils no block of a joiner"),
        TEST(too_many,
             "update errors: no block is made from too many wrong ones"),
        TEST(nan_blocks,
             "update errors: NaN in blocks is reported, not too few workers"),
        TEST(fast_operands,
             "update errors: small, fast operands raise no alarm"),
        TEST(shrunk_operands,
             "update errors: operands that became small raise no alarm"),
        TEST(honest,
             "update errors: honest workers are not named after many changes"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
