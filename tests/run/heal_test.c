/* heal_test.c -- blocks that are wrong are found, and made anew of others'; who
 * is wrong again is done with, and who was wrong once is not. */
#include "update_rig.h"

#include <stdio.h>

static const char *const checked[] = {
    "gpd:m=2,n=1,p=1",
    "polydot:m=1,n=2,p=1",
    "matdot:n=2",
    "polynomial:m=2,p=1,basis=circle",
    "grid:m=2,n=2,m2=4,n2=4",
};
#define CHECKED (sizeof checked / sizeof *checked)

/* A job that looks for errors, and its twin; to be taken down by the caller. */
static kofn_options watchful(const kofn_fault_event *events, size_t count)
{
    kofn_options opt = KOFN_OPTIONS_INIT;

    opt.errors = KOFN_ERRORS_PROBABILISTIC;
    opt.late = -1;
    opt.events = events;
    opt.event_count = count;
    return opt;
}

static size_t workers_for(const char *spec)
{
    return strncmp(spec, "grid", 4) ? 8 : 16;
}

/* Only that one was ever located. */
static void only(const kofn_report *r, size_t worker)
{
    assert_true(worker < r->workers);
    for (size_t w = 0; w < r->workers; w++)
        assert_int_equal(r->located[w] > 0, w == worker);
}

/* ---- what no product shows ----------------------------------------------- */

/* Products with nothing. */
static void idle_round(held *h, unsigned step)
{
    memset(h->in[0].data, 0,
           h->in[0].rows * h->in[0].cols * (h->dtype == KOFN_F64 ? 8 : 4));
    assert_ok(kofn_step(h->job, step));
    assert_ok(kofn_put_at(h->job, 0, false, &h->in[0], &h->out[0], NULL));
    assert_ok(kofn_take(h->job, 0, KOFN_NEVER, NULL));
}

/* Its block is right again, for all compare clean, and it is at work. */
static void is_mended(held *h, twin *t, size_t way, unsigned step,
                      uint32_t worker, double most)
{
    kofn_report r = KOFN_REPORT_INIT;

    for (unsigned s = 0; s < 4; s++)
        train(h, t, step + s, way, most);
    assert_ok(kofn_scrub(h->job, &r));
    assert_int_equal(r.corrupt, 0);
    assert_int_equal(r.healed + r.again + r.healing, 0);
    assert_int_equal(r.states[worker], KOFN_WORKER_LIVE);
    for (size_t o = 0; o < OPERANDS; o++)
        assert_at_most(fetched(h, t, o), most);
}

static void scrubbed(held h, size_t way, unsigned first)
{
    const kofn_fault_event flip = {4, 0, KOFN_FAULT_EVENT_FLIP, 2, 0};
    kofn_options opt = watchful(&flip, 1);
    kofn_matrix in;
    kofn_report r = KOFN_REPORT_INIT;
    twin t;

    h.workers = workers_for(h.spec);
    held_up(&h, &opt);
    twin_up(&t, &h);
    for (unsigned step = first; step <= 3; step++)
        train(&h, &t, step, way, 1e-8);
    assert_ok(kofn_scrub(h.job, &r));
    assert_int_equal(r.corrupt, 0);
    assert_int_equal(r.rounds, 0);
    in = random_matrix(h.in[0].rows, h.in[0].cols, h.dtype, 20);
    idle_round(&h, 4);
    assert_int_equal(all_of(&h).corrupt, 0);
    assert_ok(kofn_scrub(h.job, &r));
    assert_true(r.corrupt > 0);
    only(&r, 2);
    memcpy(h.in[0].data, in.data, in.rows * in.cols * 8);
    kf_free(in.data);
    is_mended(&h, &t, way, 5, 2, 1e-8);
    assert_int_equal(all_of(&h).healed, 1);
    assert_int_equal(all_of(&h).again, 1);
    assert_int_equal(all_of(&h).left, 0);
    twin_down(&t);
    held_down(&h);
}

/* With momentum and without, of operands that have changed and of such as were
 * placed, which are never written. */
static void a_scrub_finds_them(void **state)
{
    (void)state;
    for (size_t s = 0; s < CHECKED; s++)
        for (int threads = 0; threads < 2; threads++) {
            held h = {.spec = checked[s], .threads = threads};

            scrubbed(h, s % WAYS, 1);
            scrubbed(h, (s + 2) % WAYS, 4);
        }
}

/* A bit of all that is stored, of velocities too: of many one is of one of
 * those alone, and shows in products after the next update only. */
static void velocities_are_compared(void **state)
{
    held h = {.spec = "gpd:m=2,n=1,p=1", .workers = 8};
    kofn_fault_event flip = {3, 0, KOFN_FAULT_EVENT_FLIP, 2, 0};
    size_t shown = 0;

    (void)state;
    for (uint32_t w = 0; w < 8; w++) {
        kofn_options opt = watchful(&flip, 1);
        kofn_report r = KOFN_REPORT_INIT;
        unsigned before;
        twin t;

        h = (held){.spec = "gpd:m=2,n=1,p=1", .workers = 8};
        flip.worker = w;
        held_up(&h, &opt);
        twin_up(&t, &h);
        for (unsigned step = 1; step <= 2; step++)
            train(&h, &t, step, 2, 1e-8);
        assert_ok(kofn_step(h.job, 3));
        now(&h, &t);
        for (size_t o = 0; o < OPERANDS; o++) {
            held_right(&h, o, 1e-8);
            held_left(&h, o, 1e-8);
        }
        before = all_of(&h).corrupt;
        assert_ok(kofn_scrub(h.job, &r));
        assert_int_equal(r.corrupt > 0 || all_of(&h).healed > 0, true);
        only(&r, w);
        shown += before > 0;
        is_mended(&h, &t, 2, 4, w, 1e-8);
        assert_int_equal(all_of(&h).healed, 1);
        twin_down(&t);
        held_down(&h);
    }
    assert_true(shown > 0 && shown < 8);
}

/* Two wrong blocks, with which there are fewer than any product is compared
 * with: products wait until they are there. */
static void products_wait_for_them(void **state)
{
    static const kofn_fault_event flips[] = {
        {4, 0, KOFN_FAULT_EVENT_FLIP, 1, 0},
        {4, 0, KOFN_FAULT_EVENT_FLIP, 2, 0}};

    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        held h = {.spec = "gpd:m=2,n=2,p=1", .workers = 8, .threads = threads};
        kofn_options opt = watchful(flips, 2);
        kofn_matrix in;
        twin t;

        held_up(&h, &opt);
        twin_up(&t, &h);
        for (unsigned step = 1; step <= 3; step++)
            train(&h, &t, step, 3, 1e-8);
        in = random_matrix(h.in[0].rows, h.in[0].cols, h.dtype, 20);
        idle_round(&h, 4);
        assert_ok(kofn_scrub(h.job, NULL));
        memcpy(h.in[0].data, in.data, in.rows * in.cols * 8);
        kf_free(in.data);
        is_mended(&h, &t, 3, 5, 1, 1e-8);
        assert_int_equal(all_of(&h).healed, 2);
        twin_down(&t);
        held_down(&h);
    }
}

/* ---- what products show -------------------------------------------------- */

static void flips_are_mended(void **state)
{
    static const kofn_fault_event flips[] = {
        {3, 0, KOFN_FAULT_EVENT_FLIP, 1, 0},
        {5, 0.5, KOFN_FAULT_EVENT_FLIP, 4, 0},
        {7, 0, KOFN_FAULT_EVENT_FLIP, 0, 0}};

    (void)state;
    for (size_t s = 0; s < CHECKED; s++)
        for (int threads = 0; threads < 2; threads++) {
            held h = {.spec = checked[s],
                      .workers = workers_for(checked[s]),
                      .threads = threads};
            kofn_options opt = watchful(flips, 3);
            kofn_report all = KOFN_REPORT_INIT;
            twin t;

            held_up(&h, &opt);
            twin_up(&t, &h);
            for (unsigned step = 1; step <= 10; step++) {
                train(&h, &t, step, s % WAYS, 1e-8);
                /* others may be first in all products; two unseen and a
                 * third on its way are more than the grid can tell */
                if (threads)
                    assert_ok(kofn_scrub(h.job, NULL));
            }
            assert_ok(
                kofn_scrub(h.job, NULL)); /* may be asked for and unused */
            is_mended(&h, &t, s % WAYS, 11, 4, 1e-8);
            all = all_of(&h);
            assert_int_equal(all.healed, 3);
            assert_true(all.again >= 1 && all.again <= 3);
            assert_int_equal(all.left, 0);
            for (size_t w = 0; w < all.workers; w++) {
                assert_int_equal(all.states[w], KOFN_WORKER_LIVE);
                assert_int_equal(all.located[w] > 0, w <= 1 || w == 4);
            }
            twin_down(&t);
            held_down(&h);
        }
}

/* Who answers wrongly once has a right block, and keeps it, but by an accident:
 * one in a hundred answers is wrong, and so may be both to what its block is.
 */
static void who_errs_once_is_asked_again(void **state)
{
    static const kofn_faults odd = KOFN_FAULTS_INIT(.corrupt = 0.01, .seed = 4);
    held h = {.spec = checked[0], .workers = 8, .faults = &odd};
    kofn_options opt = watchful(NULL, 0);
    kofn_report all = KOFN_REPORT_INIT;
    twin t;

    (void)state;
    opt.quarantine = 1000;
    held_up(&h, &opt);
    twin_up(&t, &h);
    for (unsigned step = 1; step <= 20; step++)
        train(&h, &t, step, 2, 1e-8);
    all = all_of(&h);
    assert_true(all.again >= 3);
    assert_true(all.healed <= all.again / 4);
    assert_int_equal(all.live, 8);
    twin_down(&t);
    held_down(&h);
}

/* Updates that are missed, bits that flip: what comes out is right all
 * along. */
static void blocks_fail_by_chance(void **state)
{
    static const kofn_faults bad =
        KOFN_FAULTS_INIT(.flip = 0.01, .miss = 0.01, .seed = 4);

    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        held h = {.spec = "gpd:m=2,n=1,p=1",
                  .workers = 9,
                  .threads = threads,
                  .faults = &bad};
        kofn_options opt = watchful(NULL, 0);
        twin t;

        held_up(&h, &opt);
        twin_up(&t, &h);
        for (unsigned step = 1; step <= 12; step++) {
            train(&h, &t, step, step % 2 ? 2 : 3, 1e-8);
            assert_ok(kofn_scrub(h.job, NULL));
        }
        for (size_t o = 0; o < OPERANDS; o++)
            assert_at_most(fetched(&h, &t, o), 1e-8);
        assert_true(all_of(&h).healed >= 2);
        twin_down(&t);
        held_down(&h);
    }
}

/* ---- liars --------------------------------------------------------------- */

/* Who lies on, however often it has another block, is done with. */
static void who_lies_again_is_done_with(void **state)
{
    static const kofn_fault_event lie = {4, 0, KOFN_FAULT_EVENT_CORRUPT, 2, 0};

    (void)state;
    for (size_t s = 0; s < CHECKED; s++)
        for (int threads = 0; threads < 2; threads++) {
            held h = {.spec = checked[s],
                      .workers = workers_for(checked[s]),
                      .threads = threads};
            kofn_options opt = watchful(&lie, 1);
            kofn_report all = KOFN_REPORT_INIT;
            twin t;

            held_up(&h, &opt);
            twin_up(&t, &h);
            for (unsigned step = 1;
                 step <= 4 || all_of(&h).states[2] != KOFN_WORKER_QUARANTINED;
                 step++) {
                assert_true(step < 40);
                train(&h, &t, step, s % WAYS, 1e-8);
                if (threads) /* others may be first in all products */
                    assert_ok(kofn_scrub(h.job, NULL));
            }
            for (size_t o = 0; o < OPERANDS; o++)
                assert_at_most(fetched(&h, &t, o), 1e-8);
            all = all_of(&h);
            only(&all, 2);
            assert_true(all.healed >= 1 && all.healed <= all.again);
            assert_int_equal(all.states[2], KOFN_WORKER_QUARANTINED);
            twin_down(&t);
            held_down(&h);
        }
}

/* ---- drift --------------------------------------------------------------- */

/* Blocks that each round for themselves part as a walk by chance does: by no
 * more than 3 (1 + sqrt(n)) roundings of a number, and what alarms grows as
 * fast. */
static void drift_is_bounded(void **state)
{
    (void)state;
    for (size_t s = 0; s < 4; s++)
        for (int wide = 0; wide < 2; wide++) {
            held h = {.spec = checked[s],
                      .workers = 8,
                      .dtype = wide ? KOFN_F64 : KOFN_F32};
            double u = wide ? 0x1p-53 : 0x1p-24, first = 0;
            kofn_change c = {sizeof c, 0.001, 0.01, s % 2 ? 0.9 : 0, false};
            kofn_options opt = watchful(NULL, 0);
            unsigned n = 0;
            kofn_report r = KOFN_REPORT_INIT;
            twin t;

            held_up(&h, &opt);
            twin_up(&t, &h);
            for (; n < 1000; n++) {
                if (n % 100 == 0 || n == 1) {
                    assert_ok(kofn_scrub(h.job, &r));
                    assert_true(r.drift > 0 || n == 0);
                    assert_at_most(r.drift, 3 * u * (1 + sqrt(n)));
                    first = n == 1 ? r.drift : first;
                }
                change(&h, &t, 0, &c, n);
            }
            assert_ok(kofn_scrub(h.job, &r));
            assert_true(r.drift > first);
            if (getenv("KOFN_TEST_TELL"))
                print_message("%s: %.2f u sqrt(n)\n", h.spec,
                              r.drift / u / sqrt(1000));
            assert_at_most(r.drift, 3 * u * (1 + sqrt(1000)));
            assert_int_equal(all_of(&h).corrupt, 0);
            /* a momentum of 0.9 makes ten times as much of each rounding */
            assert_at_most(fetched(&h, &t, 0), 20 * u * sqrt(1000));
            twin_down(&t);
            held_down(&h);
        }
}

/* ---- what else is read --------------------------------------------------- */

static void velocities_are_read(void **state)
{
    (void)state;
    for (size_t way = 0; way < WAYS; way++) {
        held h = {.spec = "gpd:m=2,n=2,p=1", .workers = 8};
        twin t;

        held_up(&h, NULL);
        twin_up(&t, &h);
        for (unsigned step = 0; step < 4; step++) {
            for (size_t o = 0; o < OPERANDS; o++) {
                kofn_matrix M =
                    random_matrix(h.A[o].rows, h.A[o].cols, KOFN_F64, 1);
                size_t n = M.rows * M.cols;

                held_spoil(&M);
                assert_ok(kofn_fetch(h.job, o, true, &M, NULL));
                for (size_t i = 0; i < n; i++) {
                    double m = step && ways[way].momentum > 0 ? t.M[o][i] : 0;

                    assert_at_most(fabs(((double *)M.data)[i] - m), 1e-12);
                }
                kf_free(M.data);
            }
            for (size_t o = 0; o < OPERANDS; o++)
                change(&h, &t, o, &ways[way], 10 * step + o);
        }
        twin_down(&t);
        held_down(&h);
    }
}

/* A velocity may be much larger than its operand: that is no reason to find it
 * wrong when blocks are made of others'. */
static void large_velocities_are_right(void **state)
{
    static const kofn_fault_event come[] = {
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    kofn_change c = {sizeof c, 1e-12, 0, 0.9, false};
    kofn_options opt = watchful(come, 2);
    held h = {.spec = checked[0], .workers = 8};
    twin t;

    (void)state;
    held_up(&h, &opt);
    twin_up(&t, &h);
    for (size_t o = 0; o < OPERANDS; o++)
        for (size_t i = 0; i < h.from[o].rows * h.from[o].cols; i++)
            ((double *)h.from[o].data)[i] *= 1e-3;
    for (unsigned step = 1; step <= 8; step++) {
        assert_ok(kofn_step(h.job, step));
        now(&h, &t);
        for (size_t o = 0; o < OPERANDS; o++)
            held_right(&h, o, 1e-8);
        for (size_t o = 0; o < OPERANDS; o++) {
            kofn_matrix U = random_matrix(3, h.A[o].rows, KOFN_F64, step);
            kofn_matrix V = random_matrix(3, h.A[o].cols, KOFN_F64, step + o);

            for (size_t i = 0; i < U.rows * U.cols; i++)
                ((double *)U.data)[i] *= 1e8;
            assert_ok(kofn_update(h.job, o, &c, &U, &V));
            twin_step(&t, o, &c, &U, &V);
            kf_free(U.data);
            kf_free(V.data);
        }
    }
    assert_ok(kofn_scrub(h.job, NULL));
    assert_int_equal(all_of(&h).corrupt, 0);
    assert_int_equal(all_of(&h).healed, 0);
    twin_down(&t);
    held_down(&h);
}

static void journals_of_it_replay(void **state)
{
    static const kofn_fault_event all[] = {
        {3, 0, KOFN_FAULT_EVENT_FLIP, 1, 0},
        {5, 0, KOFN_FAULT_EVENT_CORRUPT, 4, 0}};
    held h = {.spec = checked[0], .workers = 8, .threads = true};
    char path[] = "/tmp/kofn-heal-XXXXXX";
    int fd = mkstemp(path);
    kofn_options opt = watchful(all, 2);
    twin t;

    (void)state;
    assert_true(fd >= 0);
    opt.journal = path;
    held_up(&h, &opt);
    twin_up(&t, &h);
    for (unsigned step = 1; step <= 8; step++)
        train(&h, &t, step, 2, 1e-8);
    assert_ok(kofn_scrub(h.job, NULL));
    twin_down(&t);
    held_down(&h);
    held_replays(path);
    close(fd);
    unlink(path);
}

/* ---- refusals ------------------------------------------------------------ */

static void refusals(void **state)
{
    static const kofn_fault_event go[] = {{2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
                                          {2, 0, KOFN_FAULT_EVENT_LEAVE, 2, 0}};
    held h = {.spec = checked[0], .workers = 8};
    kofn_options opt = watchful(NULL, 0);
    kofn_report r = KOFN_REPORT_INIT;

    (void)state;
    held_up(&h, NULL);
    assert_status(KOFN_UNSUITED, kofn_scrub(h.job, &r));
    assert_non_null(strstr(kofn_errmsg(), "with errors"));
    held_down(&h);

    h = (held){.spec = checked[0], .workers = 8};
    held_open(&h, &opt);
    assert_status(KOFN_STATE, kofn_scrub(h.job, &r));
    for (size_t o = 0; o < OPERANDS; o++)
        assert_ok(kofn_place_at(h.job, o, KOFN_DENSE(&h.A[o])));
    assert_ok(kofn_put(h.job, &h.in[0], &h.out[0], NULL));
    assert_ok(kofn_scrub(h.job, &r)); /* products go on */
    assert_ok(kofn_take(h.job, 0, KOFN_NEVER, NULL));
    assert_ok(kofn_scrub(h.job, &r));
    held_down(&h);

    h = (held){.spec = "gpd:m=2,n=2,p=1,basis=complex",
               .workers = 12,
               .one_sided = true};
    held_up(&h, &opt);
    assert_status(KOFN_UNSUITED, kofn_scrub(h.job, &r));
    held_down(&h);

    opt = watchful(go, 2); /* three of five are left, and four compare */
    h = (held){.spec = "mds:k=3", .workers = 5, .one_sided = true};
    held_up(&h, &opt);
    held_right(&h, 0, 1e-10);
    assert_ok(kofn_put(h.job, &h.in[0], &h.out[0], NULL));
    assert_status(KOFN_TOOFEW, kofn_take(h.job, 0, KOFN_NEVER, NULL));
    assert_status(KOFN_TOOFEW, kofn_scrub(h.job, &r));
    assert_non_null(strstr(kofn_errmsg(), "too few workers"));
    held_down(&h);
}

TEST_FILE(heal_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scrub_finds_them),
        cmocka_unit_test(velocities_are_compared),
        cmocka_unit_test(products_wait_for_them),
        cmocka_unit_test(flips_are_mended),
        cmocka_unit_test(who_errs_once_is_asked_again),
        cmocka_unit_test(blocks_fail_by_chance),
        cmocka_unit_test(who_lies_again_is_done_with),
        cmocka_unit_test(drift_is_bounded),
        cmocka_unit_test(velocities_are_read),
        cmocka_unit_test(large_velocities_are_right),
        cmocka_unit_test(journals_of_it_replay),
        cmocka_unit_test(refusals),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
