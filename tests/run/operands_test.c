/* operands_test.c -- several resident operands in a job: products of either
 * side of any operand, on blocks that were stored once. */
#include "operands_rig.h"

#include "core/core.h"

#include <stdio.h>

/* The codes that serve both sides, in sizes that divide nothing. */
static const char *const specs[] = {
    "elastic:k=3",     "elastic:k=3,cut=columns",
    "gpd:m=2,n=2,p=1", "polydot:m=2,n=1,p=1",
    "matdot:n=2",      "polynomial:m=2,p=1,basis=circle",
};

static void both_sides(held *h, size_t o)
{
    held_right(h, o, 1e-10);
    held_left(h, o, 1e-10);
}

static void products_of_any(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (size_t threads = 0; threads < 2; threads++) {
            held h = {.spec = specs[s], .workers = 8, .threads = threads};

            held_up(&h, NULL);
            for (size_t o = 0; o < OPERANDS; o++)
                both_sides(&h, o);
            for (size_t o = OPERANDS; o-- > 0;)
                both_sides(&h, o);
            held_down(&h);
        }
}

/* Workers are missing before the first product, or leave within one. */
static void every_survivor_set(void **state)
{
    (void)state;
    for (size_t s = 0; s < 2; s++)
        for (unsigned set = 1; set < 1u << 6; set++) {
            held h = {.spec = s ? "gpd:m=2,n=1,p=1" : "elastic:k=3",
                      .workers = 6};
            kofn_fault_event gone[6];
            kofn_options opt = KOFN_OPTIONS_INIT;

            for (uint32_t i = 0; i < h.workers; i++)
                if (!(set >> i & 1))
                    gone[opt.event_count++] = (kofn_fault_event){
                        2 + i % 2, i % 2 * 0.5, KOFN_FAULT_EVENT_LEAVE, i, 0};
            if (h.workers - opt.event_count < 3)
                continue;
            qsort(gone, opt.event_count, sizeof *gone, held_by_round);
            opt.events = gone;
            held_up(&h, &opt);
            for (size_t o = 0; o < OPERANDS; o++)
                both_sides(&h, o);
            held_down(&h);
        }
}

static void joiners(void **state)
{
    static const kofn_fault_event come[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 2, 0},
        {3, 0, KOFN_FAULT_EVENT_LEAVE, 3, 0},
    };

    (void)state;
    for (size_t threads = 0; threads < 2; threads++) {
        held h = {.spec = "elastic:k=3", .workers = 5, .threads = threads};
        kofn_options opt = KOFN_OPTIONS_INIT;

        opt.events = come;
        opt.event_count = sizeof come / sizeof *come;
        held_up(&h, &opt);
        for (size_t o = 0; o < OPERANDS; o++)
            both_sides(&h, o);
        held_down(&h);
    }
}

static void wrong_answers(void **state)
{
    static const kofn_fault_event lie[] = {
        {1, 0, KOFN_FAULT_EVENT_CORRUPT, 2, 0},
    };
    held h = {.spec = "gpd:m=2,n=1,p=1", .workers = 7};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_report rep = KOFN_REPORT_INIT;

    (void)state;
    opt.errors = KOFN_ERRORS_ADVERSARIAL;
    opt.quarantine = 1000;
    opt.events = lie;
    opt.event_count = 1;
    held_up(&h, &opt);
    for (size_t o = 0; o < OPERANDS; o++)
        both_sides(&h, o);
    kofn_job_totals(h.job, &rep);
    assert_true(rep.corrupt >= 2 * OPERANDS);
    held_down(&h);
}

static void journals_replay(void **state)
{
    static const kofn_fault_event come[] = {
        {2, 0, KOFN_FAULT_EVENT_CORRUPT, 2, 0},
        {3, 0.5, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {3, 0.5, KOFN_FAULT_EVENT_JOIN, 0, 0},
    };
    held h = {.spec = "gpd:m=2,n=1,p=1", .workers = 7, .threads = true};
    char path[] = "/tmp/kofn-operands-XXXXXX";
    int fd = mkstemp(path);
    kofn_options opt = KOFN_OPTIONS_INIT;

    (void)state;
    assert_true(fd >= 0);
    opt.errors = KOFN_ERRORS_ADVERSARIAL;
    opt.events = come;
    opt.event_count = sizeof come / sizeof *come;
    opt.journal = path;
    opt.late = -1;
    held_up(&h, &opt);
    for (size_t o = 0; o < OPERANDS; o++)
        both_sides(&h, o);
    held_down(&h);
    held_replays(path);
    close(fd);
    unlink(path);
}

static void refusals(void **state)
{
    held h = {.spec = "elastic:k=3", .workers = 5};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 40, 30, 1, KOFN_F64, false);
    kofn_matrix x = random_matrix(64, 64, KOFN_F64, 1);
    kofn_plan *other;
    kofn_port *port;
    kofn_core *core;
    kofn_job *job;

    (void)state;
    held_open(&h, NULL);
    assert_status(KOFN_STATE, kofn_put(h.job, &h.in[0], &h.out[0], NULL));
    assert_ok(kofn_place_at(h.job, 0, KOFN_DENSE(&h.A[0])));
    assert_status(KOFN_STATE, kofn_place_at(h.job, 0, KOFN_DENSE(&h.A[0])));
    assert_status(KOFN_SHAPE, kofn_place_at(h.job, 1, KOFN_DENSE(&x)));
    assert_status(KOFN_INVAL,
                  kofn_place_at(h.job, OPERANDS, KOFN_DENSE(&h.A[0])));
    assert_status(KOFN_STATE, kofn_put(h.job, &h.in[0], &h.out[0], NULL));
    assert_non_null(strstr(kofn_errmsg(), "operand 1 of 3"));
    assert_status(KOFN_INVAL, kofn_put_at(h.job, OPERANDS, false, &h.in[0],
                                          &h.out[0], NULL));
    assert_status(KOFN_UNSUITED, kofn_limit(h.job, 0, 1));
    assert_int_equal(rig_strips(h.job), 0);
    held_down(&h);

    assert_ok(kofn_plan_new(&other, &pb, "elastic:k=3", 6, 5));
    h = (held){.spec = "elastic:k=3", .workers = 5};
    held_plans(&h);
    assert_ok(kofn_port_sim(&port, 5, NULL));
    {
        const kofn_plan *unlike[] = {h.plan[0], other};

        assert_status(KOFN_UNSUITED,
                      kofn_open_all(&job, unlike, 2, port, NULL));
        assert_null(job);
    }
    assert_ok(kofn_port_sim(&port, 5, NULL));
    assert_status(KOFN_INVAL, kofn_open_all(&job, NULL, 0, port, NULL));
    assert_ok(kofn_port_sim(&port, 5, NULL));
    assert_status(KOFN_INVAL, kofn_open_all(&job, NULL, SIZE_MAX, port, NULL));
    assert_status(KOFN_INVAL, kofn_core_new_all(&core, NULL, 0, NULL));
    assert_null(core);
    kofn_plan_free(other);
    held_down(&h);
    kf_free(x.data);
}

static void sparse_operands(void **state)
{
    static const char *const spec[] = {"elastic:k=2", "mds:k=3"};
    static const size_t rows[] = {60, 42};
    enum { BOTH = 2, COLS = 30 };

    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        kofn_plan *plan[BOTH];
        kofn_sparse S[BOTH];
        kofn_port *port;
        kofn_job *job;

        for (size_t o = 0; o < BOTH; o++) {
            kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATMUL, rows[o], COLS, 2,
                                                KOFN_F64, true);

            S[o] = random_sparse(rows[o], COLS, 5, o + 1);
            assert_ok(kofn_plan_new(&plan[o], &pb, spec[o], 5, 1));
        }
        assert_ok(threads ? kofn_port_threads(&port, 5, NULL)
                          : kofn_port_sim(&port, 5, NULL));
        assert_ok(kofn_open_all(&job, (const kofn_plan *const *)plan, BOTH,
                                port, NULL));
        for (size_t o = 0; o < BOTH; o++)
            assert_ok(kofn_place_at(job, o, KOFN_SPARSE(&S[o])));
        for (size_t o = 0; o < BOTH; o++) {
            kofn_matrix x = random_matrix(COLS, 2, KOFN_F64, o + 3);
            kofn_matrix y = random_matrix(rows[o], 2, KOFN_F64, 5);
            kofn_matrix want = random_matrix(rows[o], 2, KOFN_F64, 6);
            uint32_t number;

            assert_ok(kofn_product_plain(KOFN_SPARSE(&S[o]), &x, &want));
            assert_ok(kofn_put_at(job, o, false, &x, &y, &number));
            assert_ok(kofn_take(job, number, KOFN_NEVER, NULL));
            assert_at_most(relative_error(y.data, want.data, rows[o] * 2),
                           1e-12);
            kf_free(x.data);
            kf_free(y.data);
            kf_free(want.data);
        }
        kofn_close(job);
        for (size_t o = 0; o < BOTH; o++) {
            kofn_plan_free(plan[o]);
            sparse_free(&S[o]);
        }
    }
}

TEST_FILE(operands_test)
{
    const struct CMUnitTest tests[] = {
        TEST(products_of_any,
             "operands: products of both sides of any operand are right"),
        TEST(every_survivor_set,
             "operands: products are right with every set of survivors"),
        TEST(joiners, "operands: joiners store a block of each operand"),
        TEST(wrong_answers,
             "operands: wrong answers are found in all products"),
        TEST(journals_replay, "operands: journals replay"),
        TEST(refusals, "operands: invalid calls and plans are refused"),
        TEST(sparse_operands,
             "operands: operands may be sparse and of different codes"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
