/* rebuild_job_test.c -- wrong blocks are found, and rebuilt from those of
 * others. A worker that is wrong again is quarantined. A worker that was wrong
 * once is not. */
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

/* Returns the options of a job that looks for errors. */
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

/* Checks that only this worker was ever located. */
static void only(const kofn_report *r, size_t worker)
{
    assert_true(worker < r->workers);
    for (size_t w = 0; w < r->workers; w++)
        assert_int_equal(r->located[w] > 0, w == worker);
}

/* ---- errors that no product shows ---------------------------------------- */

/* Computes a product of a zero input. */
static void idle_round(held *h, unsigned step)
{
    memset(h->in[0].data, 0,
           h->in[0].rows * h->in[0].cols * (h->dtype == KOFN_F64 ? 8 : 4));
    assert_ok(kofn_step(h->job, step));
    assert_ok(kofn_put_at(h->job, 0, false, &h->in[0], &h->out[0], NULL));
    assert_ok(kofn_take(h->job, 0, KOFN_NEVER, NULL));
}

/* Checks that this worker's block is right again: all compare clean, and the
 * worker is live. */
static void check_rebuiled(held *h, twin *t, size_t way, unsigned step,
                           uint32_t worker, double most)
{
    kofn_report r = KOFN_REPORT_INIT;

    for (unsigned s = 0; s < 4; s++)
        train(h, t, step + s, way, most);
    assert_ok(kofn_scrub(h->job, &r));
    assert_int_equal(r.corrupt, 0);
    assert_int_equal(r.rebuilt + r.again + r.rebuilding, 0);
    assert_int_equal(r.states[worker], KOFN_WORKER_LIVE);
    for (size_t o = 0; o < OPERANDS; o++)
        assert_at_most(fetched(h, t, o), most);
}

static void scrub_flip(held h, size_t way, unsigned first)
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
    check_rebuiled(&h, &t, way, 5, 2, 1e-8);
    assert_int_equal(all_of(&h).rebuilt, 1);
    assert_int_equal(all_of(&h).again, 1);
    assert_int_equal(all_of(&h).left, 0);
    twin_down(&t);
    held_down(&h);
}

/* With momentum and without, with changed operands and with placed ones, which
 * are never written. */
static void scrub(void **state)
{
    (void)state;
    for (size_t s = 0; s < CHECKED; s++)
        for (int threads = 0; threads < 2; threads++) {
            held h = {.spec = checked[s], .threads = threads};

            scrub_flip(h, s % WAYS, 1);
            scrub_flip(h, (s + 2) % WAYS, 4);
        }
}

/* Flips any stored bit, of velocities too. Some of these bits belong to
 * velocities, and show in products only after the next update. */
static void compared_velocities(void **state)
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
        assert_int_equal(r.corrupt > 0 || all_of(&h).rebuilt > 0, true);
        only(&r, w);
        shown += before > 0;
        check_rebuiled(&h, &t, 2, 4, w, 1e-8);
        assert_int_equal(all_of(&h).rebuilt, 1);
        twin_down(&t);
        held_down(&h);
    }
    assert_true(shown > 0 && shown < 8);
}

/* Without the two wrong blocks there are too few blocks for any compared
 * product. Products wait until both are replaced. */
static void waiting_products(void **state)
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
        check_rebuiled(&h, &t, 3, 5, 1, 1e-8);
        assert_int_equal(all_of(&h).rebuilt, 2);
        twin_down(&t);
        held_down(&h);
    }
}

/* ---- errors that products show ------------------------------------------- */

static void flips(void **state)
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
                /* On threads other workers may answer first in all products.
                 * Two unseen errors and a third on its way exceed the limit of
                 * the grid. */
                if (threads)
                    assert_ok(kofn_scrub(h.job, NULL));
            }
            assert_ok(kofn_scrub(
                h.job, NULL)); /* a product may have left a request unused */
            check_rebuiled(&h, &t, s % WAYS, 11, 4, 1e-8);
            all = all_of(&h);
            assert_int_equal(all.rebuilt, 3);
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

/* One in a hundred answers is wrong at random. A worker that is wrong once
 * keeps its block, unless both answers about its block are wrong. */
static void single_errors(void **state)
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
    assert_true(all.rebuilt <= all.again / 4);
    assert_int_equal(all.live, 8);
    twin_down(&t);
    held_down(&h);
}

/* Some updates are missed and some bits flip. All results are right. */
static void random_failures(void **state)
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
        assert_true(all_of(&h).rebuilt >= 2);
        twin_down(&t);
        held_down(&h);
    }
}

/* ---- faulty workers ------------------------------------------------------ */

/* The worker is wrong with each block that it gets. */
static void repeated_errors(void **state)
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
                if (threads) /* other workers may answer first in all products
                              */
                    assert_ok(kofn_scrub(h.job, NULL));
            }
            for (size_t o = 0; o < OPERANDS; o++)
                assert_at_most(fetched(&h, &t, o), 1e-8);
            all = all_of(&h);
            only(&all, 2);
            assert_true(all.rebuilt >= 1 && all.rebuilt <= all.again);
            assert_int_equal(all.states[2], KOFN_WORKER_QUARANTINED);
            twin_down(&t);
            held_down(&h);
        }
}

/* ---- drift --------------------------------------------------------------- */

/* Blocks that each round for themselves drift like a random walk: by at most 3
 * (1 + sqrt(n)) roundings of a number. The alarm limit grows as fast. */
static void bounded_drift(void **state)
{
    (void)state;
    for (size_t s = 0; s < 4; s++)
        for (int wide = 0; wide < 2; wide++) {
            held h = {.spec = checked[s],
                      .workers = 8,
                      .dtype = wide ? KOFN_F64 : KOFN_F32};
            double u = wide ? 0x1p-53 : 0x1p-24, first = 0;
            sgd c = {0.001, 0.01, s % 2 ? 0.9 : 0, false};
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
            /* a momentum of 0.9 multiplies each rounding by ten */
            assert_at_most(fetched(&h, &t, 0), 20 * u * sqrt(1000));
            twin_down(&t);
            held_down(&h);
        }
}

/* ---- reading ------------------------------------------------------------- */

static void read_velocities(void **state)
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
                assert_ok(kofn_fetch(h.job, o, 1, &M, NULL));
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

/* A velocity may be much larger than its operand. It still compares clean when
 * blocks are rebuilt from others. */
static void large_velocities(void **state)
{
    static const kofn_fault_event come[] = {
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 0, 0}};
    sgd c = {1e-12, 0, 0.9, false};
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
            assert_ok(sgd_update(h.job, o, &c, &U, &V));
            twin_step(&t, o, &c, &U, &V);
            kf_free(U.data);
            kf_free(V.data);
        }
    }
    assert_ok(kofn_scrub(h.job, NULL));
    assert_int_equal(all_of(&h).corrupt, 0);
    assert_int_equal(all_of(&h).rebuilt, 0);
    twin_down(&t);
    held_down(&h);
}

static void journals(void **state)
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
    assert_ok(kofn_scrub(h.job, &r)); /* products continue */
    assert_ok(kofn_take(h.job, 0, KOFN_NEVER, NULL));
    assert_ok(kofn_scrub(h.job, &r));
    held_down(&h);

    h = (held){.spec = "gpd:m=2,n=2,p=1,basis=complex",
               .workers = 12,
               .one_sided = true};
    held_up(&h, &opt);
    assert_status(KOFN_UNSUITED, kofn_scrub(h.job, &r));
    held_down(&h);

    opt =
        watchful(go, 2); /* three of five are left, and comparing needs four */
    h = (held){.spec = "mds:k=3", .workers = 5, .one_sided = true};
    held_up(&h, &opt);
    held_right(&h, 0, 1e-10);
    assert_ok(kofn_put(h.job, &h.in[0], &h.out[0], NULL));
    assert_status(KOFN_TOOFEW, kofn_take(h.job, 0, KOFN_NEVER, NULL));
    assert_status(KOFN_TOOFEW, kofn_scrub(h.job, &r));
    assert_non_null(strstr(kofn_errmsg(), "too few workers"));
    held_down(&h);
}

TEST_FILE(rebuild_job_test)
{
    const struct CMUnitTest tests[] = {
        TEST(scrub,
             "rebuild: a scrub finds a flipped bit, and the block is replaced"),
        TEST(compared_velocities,
             "rebuild: a flipped bit of a velocity is found"),
        TEST(waiting_products,
             "rebuild: products wait for blocks that are being replaced"),
        TEST(
            flips,
            "rebuild: products show flipped bits, and the blocks are replaced"),
        TEST(single_errors,
             "rebuild: a worker that is wrong once keeps its block"),
        TEST(
            random_failures,
            "rebuild: results are right under random flips and missed updates"),
        TEST(repeated_errors,
             "rebuild: a worker that is wrong with any block is quarantined"),
        TEST(bounded_drift,
             "rebuild: drift grows with the root of the updates (float32, 64)"),
        TEST(read_velocities, "rebuild: velocities are read"),
        TEST(large_velocities,
             "rebuild: large velocities of small operands compare clean"),
        TEST(journals, "rebuild: journals of replaced blocks replay"),
        TEST(refusals, "rebuild: scrubs that are impossible are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
