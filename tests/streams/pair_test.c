/* pair_test.c -- products of streams on workers that compute. Each scheme and
 * port is compared with BLAS, in odd and changing shapes and in both types.
 * Errors are below the prediction. Workers join and leave, and invalid calls
 * are refused. */
#include "pair_rig.h"

#include "code/code.h"

#include <stdio.h>

static kofn_job *open_stream(kofn_plan **plan, const char *spec, size_t workers,
                             kofn_dtype dtype, bool sim,
                             const kofn_faults *faults, const kofn_options *opt)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_STREAM, 30, 20, 30, dtype, false);
    kofn_port *port;
    kofn_job *job;

    assert_ok(kofn_plan_new(plan, &pb, spec, workers, 7));
    assert_ok(sim ? kofn_port_sim(&port, workers, faults)
                  : kofn_port_threads(&port, workers, faults));
    assert_ok(kofn_open(&job, *plan, port, opt));
    return job;
}

static void close_stream(kofn_job *job, kofn_plan *plan)
{
    kofn_close(job);
    kofn_plan_free(plan);
}

#define COUNT 7

static const size_t shapes[COUNT][3] = {{30, 20, 30}, {31, 7, 29}, {1, 1, 1},
                                        {5, 40, 2},   {64, 3, 1},  {30, 20, 30},
                                        {17, 17, 17}};

/* Computes seven products of seven shapes. `ahead` of them are put before the
 * first is taken. */
static void run_stream(const char *spec, size_t workers, kofn_dtype dtype,
                       bool sim, const kofn_faults *faults,
                       const kofn_options *opt, size_t ahead)
{
    kofn_plan *plan;
    kofn_job *job = open_stream(&plan, spec, workers, dtype, sim, faults, opt);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    pair a[COUNT];

    assert_ok(kofn_plan_describe(plan, false, &info));
    for (size_t i = 0; i < COUNT + ahead; i++) {
        kofn_report rep = KOFN_REPORT_INIT;

        if (i < COUNT) {
            a[i] = make_pair(shapes[i][0], shapes[i][1], shapes[i][2], dtype,
                             10 * i);
            assert_ok(
                kofn_put_pair(job, &a[i].X, &a[i].Y, &a[i].out, &a[i].number));
            assert_int_equal(a[i].number, i + 1);
        }
        if (i < ahead)
            continue;
        assert_ok(kofn_take(job, a[i - ahead].number, KOFN_NEVER, &rep));
        assert_int_equal(rep.number, i - ahead + 1);
        assert_in_range(rep.ended, rep.began, rep.began + info.delay);
        assert_true(rep.plain + rep.coded >= plan->layout.enough);
        if (!(error_of(&a[i - ahead]) <= rep.predicted))
            fail_msg("%s, product %zu: error %g, predicted %g", spec,
                     i - ahead + 1, error_of(&a[i - ahead]), rep.predicted);
    }
    for (size_t i = 0; i < COUNT; i++)
        free_pair(&a[i]);
    close_stream(job, plan);
}

static const char *const specs[] = {
    "dip",
    "dip:T=0",
    "dip:T=1,lambda=1",
    "dip:T=3,lambda=2,order=due",
    "dip:plain=no",
    "dip:m=2,p=2,basis=monomial",
    "dip:m=2,n=2,p=2",
    "dip:m=1,n=3,p=1,T=1,basis=monomial",
    "idip",
    "idip:W=4,N=10",
    "idip:W=3,early=no",
    "idip:W=2,basis=monomial",
    "idip:model=bursty,W=3,B=2,eps=2",
    "polynomial",
    "polynomial:m=1,p=2,basis=circle",
    "polynomial:m=1,p=2,basis=complex",
    "matdot:n=2",
    "polydot:m=1,p=1,n=2",
    "gpd:m=1,p=1,n=2",
    "uncoded",
};

static void right_products(void **state)
{
    kofn_faults slow = KOFN_FAULTS_INIT(.straggle = 0.3, .seed = 4);

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (size_t ahead = 0; ahead < 5; ahead += 2) {
            run_stream(specs[i], 4, KOFN_F64, true, NULL, NULL, ahead);
            run_stream(specs[i], 4, KOFN_F64, true, &slow, NULL, ahead);
        }
}

static void float32(void **state)
{
    kofn_faults slow = KOFN_FAULTS_INIT(.straggle = 0.3, .seed = 9);
    kofn_options o = KOFN_OPTIONS_INIT;

    (void)state;
    o.max_error = 1e-2;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        run_stream(specs[i], 4, KOFN_F32, true, &slow, &o, 3);
}

static void threads(void **state)
{
    kofn_faults slow =
        KOFN_FAULTS_INIT(.straggle = 0.3, .factor = 2, .seed = 5);

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        run_stream(specs[i], 4, KOFN_F64, false, i % 2 ? &slow : NULL, NULL, 3);
}

static void one_worker(void **state)
{
    (void)state;
    run_stream("dip:T=1", 1, KOFN_F64, true, NULL, NULL, 2);
    run_stream("idip:W=2,N=1", 1, KOFN_F64, true, NULL, NULL, 2);
    run_stream("uncoded", 1, KOFN_F64, false, NULL, NULL, 0);
}

/* ---- taking -------------------------------------------------------------- */

/* With number 0 each product is taken once, in the order of their ends. */
static void take_any(void **state)
{
    kofn_plan *plan;
    kofn_job *job =
        open_stream(&plan, "dip:T=2", 4, KOFN_F64, true, NULL, NULL);
    bool taken[COUNT + 1] = {false};
    pair a[COUNT];
    kofn_report rep = KOFN_REPORT_INIT;

    (void)state;
    assert_status(KOFN_STATE, kofn_take(job, 0, KOFN_NEVER, &rep));
    for (size_t i = 0; i < COUNT; i++) {
        a[i] = make_pair(8, 9, 10, KOFN_F64, i);
        assert_ok(
            kofn_put_pair(job, &a[i].X, &a[i].Y, &a[i].out, &a[i].number));
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_ok(kofn_take(job, 0, KOFN_NEVER, &rep));
        assert_in_range(rep.number, 1, COUNT);
        assert_false(taken[rep.number]);
        taken[rep.number] = true;
        assert_at_most(error_of(&a[rep.number - 1]), rep.predicted);
    }
    assert_status(KOFN_STATE, kofn_take(job, 0, KOFN_NEVER, &rep));
    kofn_job_totals(job, &rep);
    assert_int_equal(rep.rounds, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        free_pair(&a[i]);
    close_stream(job, plan);
}

/* Lent matrices may change, and be freed, once their product was taken.
 * Workers that still compute have copies. */
static void returned_operands(void **state)
{
    kofn_faults slow =
        KOFN_FAULTS_INIT(.straggle = 0.5, .factor = 3, .seed = 2);
    kofn_plan *plan;
    kofn_job *job =
        open_stream(&plan, "dip:T=1", 4, KOFN_F64, false, &slow, NULL);

    (void)state;
    for (size_t i = 0; i < 20; i++) {
        pair a = make_pair(40, 30, 20, KOFN_F64, i);
        kofn_report rep = KOFN_REPORT_INIT;

        assert_ok(kofn_put_pair(job, &a.X, &a.Y, &a.out, &a.number));
        assert_ok(kofn_take(job, a.number, KOFN_NEVER, &rep));
        assert_at_most(error_of(&a), rep.predicted);
        free_pair(&a);
    }
    close_stream(job, plan);
}

/* X, Y and the output are parts of larger matrices. The rest of these stays
 * unchanged. */
static void views(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        kofn_plan *plan;
        kofn_job *job =
            open_stream(&plan, specs[i], 4, KOFN_F64, true, NULL, NULL);
        pair a = make_pair(29, 17, 23, KOFN_F64, i);
        double big[3][40 * 40];
        kofn_matrix *of[] = {&a.X, &a.Y, &a.out}, view[3];
        kofn_report rep = KOFN_REPORT_INIT;

        for (size_t k = 0; k < 3; k++) {
            for (size_t e = 0; e < 1600; e++)
                big[k][e] = 1e30;
            view[k] = (kofn_matrix){big[k] + 3 * 40 + 5, of[k]->rows,
                                    of[k]->cols, 40, KOFN_F64};
            for (size_t r = 0; k < 2 && r < of[k]->rows; r++)
                memcpy(kf_at(&view[k], r, 0), kf_at(of[k], r, 0),
                       of[k]->cols * 8);
        }
        assert_ok(kofn_put_pair(job, &view[0], &view[1], &view[2], &a.number));
        assert_ok(kofn_take(job, a.number, KOFN_NEVER, &rep));
        for (size_t r = 0; r < a.out.rows; r++)
            memcpy(kf_at(&a.out, r, 0), kf_at(&view[2], r, 0), a.out.cols * 8);
        assert_at_most(error_of(&a), rep.predicted);
        for (size_t e = 0; e < 1600; e++) {
            size_t r = e / 40 - 3, col = e % 40 - 5;

            assert_true(big[2][e] == 1e30 || (r < 29 && col < 23));
        }
        free_pair(&a);
        close_stream(job, plan);
    }
}

/* ---- rounds -------------------------------------------------------------- */

typedef struct seen {
    unsigned rounds, marked;
    size_t slots;
    double load;
} seen;

static void see(void *ud, const kofn_stream_round *r)
{
    seen *s = ud;
    size_t marked = 0;

    assert_int_equal(r->round, ++s->rounds);
    assert_int_equal(r->workers, 4);
    for (size_t w = 0; w < r->workers; w++) {
        marked += r->mark[w];
        assert_false(r->mark[w] && r->times[w] != KOFN_NEVER);
        if (r->times[w] != KOFN_NEVER)
            assert_in_range(r->times[w], r->first, r->took);
    }
    assert_true(r->first <= r->took && r->waited < r->took);
    s->marked += (unsigned)marked;
    s->slots = r->slots > s->slots ? r->slots : s->slots;
    s->load = fmax(s->load, r->load);
}

/* A worker that is five times slower is marked in every round. A list of three
 * tasks has three quarters of a product's work. */
static void shown_rounds(void **state)
{
    const kofn_fault_event slow = {
        .round = 1, .kind = KOFN_FAULT_EVENT_SLOW, .worker = 2, .factor = 5};
    kofn_options o = with_events(&slow, 1);
    kofn_plan *plan;
    kofn_job *job = open_stream(&plan, "dip:m=2,p=2,T=0,lambda=3", 4, KOFN_F64,
                                true, NULL, &o);
    seen s = {0};

    (void)state;
    kofn_on_round(job, see, &s);
    for (size_t i = 0; i < 5; i++) {
        pair a = make_pair(32, 8, 16, KOFN_F64, i);
        kofn_report rep = KOFN_REPORT_INIT;

        assert_ok(kofn_put_pair(job, &a.X, &a.Y, &a.out, &a.number));
        assert_ok(kofn_take(job, a.number, KOFN_NEVER, &rep));
        free_pair(&a);
    }
    assert_int_equal(s.rounds, 5);
    assert_int_equal(s.slots, 2); /* 4 answers of any 3 workers */
    assert_true(s.load == 2 * 32 * 8 * 16 / 4);
    close_stream(job, plan);
}

/* ---- workers that join and leave ----------------------------------------- */

static void joins_and_losses(void **state)
{
    static const kofn_fault_event events[] = {
        {.round = 2, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 0},
        {.round = 3,
         .fraction = 0.3,
         .kind = KOFN_FAULT_EVENT_LEAVE,
         .worker = 1},
        {.round = 4, .kind = KOFN_FAULT_EVENT_JOIN},
        {.round = 5, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 2},
        {.round = 6, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (size_t ahead = 0; ahead < 4; ahead += 3) {
            kofn_options o = with_events(events, 5);

            run_stream(specs[i], 4, KOFN_F64, true, NULL, &o, ahead);
        }
}

static void no_worker_left(void **state)
{
    static const kofn_fault_event events[] = {
        {.round = 2, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 0},
        {.round = 2, .kind = KOFN_FAULT_EVENT_LEAVE, .worker = 1}};
    kofn_options o = with_events(events, 2);
    kofn_plan *plan;
    kofn_job *job = open_stream(&plan, "dip:T=2", 2, KOFN_F64, true, NULL, &o);
    pair a = make_pair(9, 8, 7, KOFN_F64, 1);
    kofn_report rep = KOFN_REPORT_INIT;

    (void)state;
    assert_ok(kofn_put_pair(job, &a.X, &a.Y, &a.out, &a.number));
    assert_ok(kofn_take(job, a.number, KOFN_NEVER, &rep));
    assert_ok(kofn_put_pair(job, &a.X, &a.Y, &a.out, &a.number));
    assert_status(KOFN_TOOFEW, kofn_take(job, a.number, KOFN_NEVER, &rep));
    assert_non_null(strstr(kofn_errmsg(), "no worker is left"));
    free_pair(&a);
    close_stream(job, plan);
}

/* ---- refusals ------------------------------------------------------------ */

static void refusals(void **state)
{
    kofn_plan *plan;
    kofn_job *job = open_stream(&plan, "dip", 4, KOFN_F64, true, NULL, NULL);
    pair a = make_pair(9, 8, 7, KOFN_F64, 1), b = make_pair(9, 7, 8, 0, 2),
         f = make_pair(9, 8, 7, KOFN_F32, 3);
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_port *port;
    kofn_job *other;
    uint32_t number;

    (void)state;
    assert_status(KOFN_SHAPE, kofn_put_pair(job, &a.X, &b.Y, &a.out, &number));
    assert_status(KOFN_SHAPE, kofn_put_pair(job, &a.X, &a.Y, &b.out, &number));
    assert_status(KOFN_SHAPE, kofn_put_pair(job, &f.X, &f.Y, &f.out, &number));
    ((double *)a.X.data)[3] = NAN;
    assert_status(KOFN_NONFINITE,
                  kofn_put_pair(job, &a.X, &a.Y, &a.out, &number));
    assert_status(KOFN_STATE, kofn_place(job, &a.X));
    assert_status(KOFN_STATE, kofn_put(job, &a.Y, &a.out, &number));
    assert_status(KOFN_STATE, kofn_round(job, &a.Y, &a.out, NULL));
    assert_status(KOFN_UNSUITED, kofn_limit(job, 0, 1));
    o.mu = -1;
    assert_ok(kofn_port_sim(&port, 4, NULL));
    assert_status(KOFN_INVAL, kofn_open(&other, plan, port, &o));
    o.mu = 0;
    o.below = KOFN_BELOW_DEGRADE;
    assert_ok(kofn_port_sim(&port, 4, NULL));
    assert_status(KOFN_UNSUITED, kofn_open(&other, plan, port, &o));
    free_pair(&a);
    free_pair(&b);
    free_pair(&f);
    close_stream(job, plan);
}

TEST_FILE(pair_test)
{
    const struct CMUnitTest tests[] = {
        TEST(right_products,
             "pair: products are right (each code, with stragglers)"),
        TEST(float32,
             "pair: products in float32 are below their predicted error"),
        TEST(threads, "pair: products on threads are right (each code)"),
        TEST(one_worker, "pair: products of one worker are right"),
        TEST(take_any, "pair: number 0 takes each product once"),
        TEST(returned_operands,
             "pair: lent matrices may be freed once the product is taken"),
        TEST(views, "pair: views work, and the rest of their matrices stays"),
        TEST(shown_rounds, "pair: rounds report times, marks, slots and load"),
        TEST(joins_and_losses,
             "pair: products are right while workers join and leave"),
        TEST(no_worker_left, "pair: a product fails if no worker is left"),
        TEST(refusals, "pair: invalid matrices, calls and options are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
