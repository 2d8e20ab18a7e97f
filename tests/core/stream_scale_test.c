/* stream_scale_test.c -- tests long streams of products on many simulated
 * workers. The memory grows with the rounds that a product may take, not with
 * the number of products. 1,000 workers have 1,000 products in half a minute.
 *
 * KOFN_TEST_SCALE=10 is the long form. */
#include "rig.h"

#include "code/code.h"

#include <malloc.h>
#include <time.h>

/* ---- bytes --------------------------------------------------------------- */

static size_t held, most; /* bytes of the library: now, and at the peak */

static void *weighed(void *ud, void *p, size_t want)
{
    size_t was = p ? malloc_usable_size(p) : 0;
    void *q = NULL;

    (void)ud;
    if (want == 0) {
        free(p);
    } else {
        q = aligned_alloc(64, kf_ceil_div(want, 64) * 64);
        assert_non_null(q);
        if (p)
            memcpy(q, p, kf_min(was, want));
        free(p);
    }
    held += (q ? malloc_usable_size(q) : 0) - was;
    most = kf_max(most, held);
    return q;
}

/* ---- a stream ------------------------------------------------------------ */

typedef struct flow {
    kofn_plan *plan;
    kofn_job *job;
    kofn_plan_info info;
    size_t m, n, p, flight; /* products in flight */
    kofn_matrix X, Y, C[KOFN_OPEN_MOST];
    size_t puts, takes;
} flow;

static void open_flow(flow *f, const char *spec, size_t workers,
                      const kofn_faults *w)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, f->m, f->n, f->p, KOFN_F64, false);
    kofn_port *port;

    assert_ok(kofn_plan_new(&f->plan, &pb, spec, workers, 1));
    f->info = (kofn_plan_info)KOFN_PLAN_INFO_INIT;
    assert_ok(kofn_plan_describe(f->plan, false, &f->info));
    assert_ok(kofn_port_sim(&port, workers, w));
    assert_ok(kofn_open(&f->job, f->plan, port, NULL));
    f->X = random_matrix(f->m, f->n, KOFN_F64, 1);
    f->Y = random_matrix(f->n, f->p, KOFN_F64, 2);
    f->flight = f->info.delay + 2;
    for (size_t i = 0; i < f->flight; i++)
        f->C[i] = random_matrix(f->m, f->p, KOFN_F64, 3);
    f->puts = f->takes = 0;
}

static void take(flow *f)
{
    kofn_report rep = KOFN_REPORT_INIT;

    assert_ok(kofn_take(f->job, (uint32_t)++f->takes, KOFN_NEVER, &rep));
    assert_in_range(rep.ended, rep.began, rep.began + f->info.delay);
}

/* Puts this number of products, `flight` of them at a time. */
static void run(flow *f, size_t products)
{
    uint32_t number;

    for (size_t i = 0; i < products; i++) {
        if (f->puts - f->takes == f->flight)
            take(f);
        assert_ok(kofn_put_pair(f->job, &f->X, &f->Y,
                                &f->C[f->puts % f->flight], &number));
        f->puts++;
    }
}

static void close_flow(flow *f)
{
    double *want = plain_product(&f->X, &f->Y);

    while (f->takes < f->puts)
        take(f);
    for (size_t i = 0; i < f->flight; i++) {
        assert_at_most(relative_error(f->C[i].data, want, f->m * f->p), 1e-9);
        kf_free(f->C[i].data);
    }
    kf_free(want);
    kf_free(f->X.data);
    kf_free(f->Y.data);
    kofn_close(f->job);
    kofn_plan_free(f->plan);
}

/* ---- memory -------------------------------------------------------------- */

/* Returns the bytes that a stream may hold besides its operands. They are the
 * results of all open products, the coded parts for the lists of this round
 * and the last one, and a fixed amount. */
static size_t bound(const flow *f, size_t workers)
{
    const kofn_layout *L = &f->plan->layout;
    size_t high = L->components * f->plan->span,
           wide = kf_ceil_div(f->p, L->cut[1].cols);
    size_t result = high * wide * 8, block = high * f->n * 8,
           input = f->n * wide * 8;

    return workers * L->slots *
               ((L->delay + 1) * result + 2 * (block + input)) +
           (6 << 20);
}

/* The operands are large, so that their coded parts dominate. */
static void memory_is_that_of_open_products(void **state)
{
    static const char *const specs[] = {"dip:m=2,p=4,T=1", "idip:W=3,N=10",
                                        "polynomial:m=2,p=2",
                                        "dip:m=2,p=2,T=3"};
    kofn_faults w = KOFN_FAULTS_INIT(.straggle = 0.2, .seed = 3);

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        flow f = {.m = 160, .n = 500, .p = 160};
        size_t before;

        open_flow(&f, specs[i], 6, &w);
        before = most = held;
        run(&f, kf_max(often(100), 2 * f.flight));
        assert_at_most((double)(most - before), (double)bound(&f, 6));
        close_flow(&f);
    }
    assert_int_equal(held, 0);
}

/* ---- many ---------------------------------------------------------------- */

static void many_workers_and_products(void **state)
{
    bool whole = test_scale() >= 10;
    size_t workers = whole ? 1000 : 200,
           products = whole ? 1000 : kf_max(often(60), 20);
    kofn_faults w = KOFN_FAULTS_INIT(.straggle = 0.1, .seed = 1);
    flow f = {.m = 60, .n = 40, .p = 60};
    clock_t start = clock();
    double took;

    (void)state;
    most = held;
    open_flow(&f, whole ? "dip:m=12,p=12,T=1" : "dip:m=6,p=6,T=1", workers, &w);
    run(&f, products);
    close_flow(&f);
    took = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("    %zu workers, %zu products: %.1f s of processor time, "
                  "%zu MiB\n",
                  workers, products, took, most >> 20);
    assert_at_most((double)most, whole ? 1 << 30 : 100 << 20);
}

TEST_FILE(stream_scale_test)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_is_that_of_open_products,
             "stream: memory holds the open products only (4 schemes)"),
        TEST(many_workers_and_products,
             "stream: many products on many workers take bounded memory"),
    };

    rig_begin();
    kofn_set_alloc(weighed, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
