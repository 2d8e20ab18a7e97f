/* numerics_guard_test.c -- whole rounds are as accurate as predicted, or are
 * refused (docs/numerics.md). */
#include "numerics_rig.h"

#include <cblas.h>

/* ---- section 6: the guard ------------------------------------------------ */

typedef struct job {
    kofn_plan *plan;
    kofn_job *job;
    kofn_matrix A, x, y, want;
} job;

static const double untouched = 12345;

/* The reference is y = A x by plain BLAS; y also shows whether it was written.
 */
static void job_up(job *j, const char *spec, size_t workers, size_t m, size_t n,
                   size_t p, const kofn_options *opt)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(p == 1 ? KOFN_MATVEC : KOFN_MATMUL, m,
                                        n, p, KOFN_F64, false);
    kofn_port *port;

    j->A = random_matrix(m, n, KOFN_F64, 3, 1);
    j->x = random_matrix(n, p, KOFN_F64, 4, 1);
    j->y = matrix(m, p, KOFN_F64);
    j->want = matrix(m, p, KOFN_F64);
    for (size_t i = 0; i < m * p; i++)
        ((double *)j->y.data)[i] = untouched;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)p,
                (int)n, 1, j->A.data, (int)n, j->x.data, (int)p, 0,
                j->want.data, (int)p);
    assert_ok(kofn_plan_new(&j->plan, &pb, spec, workers, 1));
    assert_ok(kofn_port_sim(&port, workers, NULL));
    assert_ok(kofn_open(&j->job, j->plan, port, opt));
    assert_ok(kofn_place(j->job, &j->A));
}

static void job_down(job *j)
{
    kofn_close(j->job);
    kofn_plan_free(j->plan);
    kf_free(j->A.data);
    kf_free(j->x.data);
    kf_free(j->y.data);
    kf_free(j->want.data);
}

static double job_error(const job *j)
{
    return relative_error(j->y.data, j->want.data, j->y.rows * j->y.cols);
}

/* All workers outside the set leave before the first round. */
static size_t leave_all_but(const uint32_t *set, size_t count, size_t n,
                            kofn_fault_event *event)
{
    size_t events = 0;

    for (uint32_t w = 0, i = 0; w < n; w++) {
        if (i < count && set[i] == w)
            i++;
        else
            event[events++] =
                (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_LEAVE, w, 0};
    }
    return events;
}

static double predicted_for(const kofn_plan *plan, const uint32_t *set,
                            size_t n)
{
    kf_code *code;
    kofn_decoder *d;
    double predicted = HUGE_VAL;
    kofn_status st;

    assert_ok(kf_code_new(&code, plan));
    st = kf_decoder_new(&d, code, set, n, false);
    if (!st)
        predicted = d->predicted;
    else
        assert_int_equal(st, KOFN_UNSTABLE);
    kf_decoder_free(d);
    kf_code_free(code);
    return predicted;
}

/* Rows from accurate strips may have been written before others were found
 * inaccurate; nothing else. */
static void nothing_wrong_was_written(const job *j)
{
    const double *y = j->y.data, *want = j->want.data;
    double norm = cblas_dnrm2((int)j->y.rows, want, 1);

    for (size_t i = 0; i < j->y.rows; i++)
        if (y[i] != untouched)
            assert_at_most(fabs(y[i] - want[i]), 1e-9 * norm);
}

/* Only this set remains. It answers within the tolerance, or refuses because
 * all that remains is too noisy. */
static bool guard_set(const char *spec, size_t n, const uint32_t *set,
                      size_t left)
{
    kofn_fault_event event[64];
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_status st;
    double predicted;
    job j;

    opt.events = event;
    opt.event_count = leave_all_but(set, left, n, event);
    job_up(&j, spec, n, 120, 40, 1, &opt);
    predicted = predicted_for(j.plan, set, left);
    st = kofn_round(j.job, &j.x, &j.y, &rep);
    if (left == j.plan->layout.enough)
        assert_int_equal(st, predicted > 1e-9 ? KOFN_UNSTABLE : KOFN_OK);
    if (st) {
        assert_int_equal(st, KOFN_UNSTABLE);
        assert_non_null(strstr(kofn_errmsg(), "max_error 1.0e-09"));
        assert_true(predicted > 1e-9);
        nothing_wrong_was_written(&j);
    } else {
        assert_at_most(rep.predicted, 1e-9);
        assert_at_most(job_error(&j), rep.predicted);
    }
    job_down(&j);
    return st == KOFN_OK;
}

/* Bases from good to hopeless, so that both outcomes are frequent; two
 * schemes, with exactly enough workers and with two more. */
static void within_tolerance(void **state)
{
    static const char *const specs[] = {"mds-published:k=16,basis=vandermonde",
                                        "mds-published:k=16,basis=cauchy",
                                        "mds-published:k=16,basis=monomial",
                                        "mds-published:k=16,basis=chebyshev",
                                        "mds:k=16,basis=harmonic",
                                        "mds:k=16,basis=gauss",
                                        "elastic:k=16,basis=harmonic",
                                        "mds:k=16"};
    kf_rng r = kf_rng_stream(8, KF_FOR_SAMPLE, 0, 0);

    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        size_t answered = 0, trials = effort(40);
        uint32_t set[32];

        for (size_t i = 0; i < trials; i++) {
            size_t left = 16 + i % 2 * 2;

            if (i < 2)
                without_window(set, left, 32, 5);
            else
                random_set(&r, set, left, 32);
            answered += guard_set(specs[s], 32, set, left);
        }
        print_message("    guard %-30s answers %3zu of %zu\n", specs[s],
                      answered, trials);
        if (s == 0 || s == 7)
            assert_int_equal(answered, s == 0 ? 0 : trials);
    }
}

static int order_of(const void *a, const void *b)
{
    uint32_t x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Workers answer in a chosen order. If the first k are too noisy for the
 * tolerance and k+1 are not, the round waits for one more and no further one.
 */
static void one_more(void **state)
{
    enum { N = 14, K = 10 };
    kf_rng r = kf_rng_stream(4, KF_FOR_SAMPLE, 0, 0);
    size_t tried = 0;

    (void)state;
    while (tried < effort(50)) {
        kofn_fault_event event[N];
        kofn_options opt = KOFN_OPTIONS_INIT;
        uint32_t order[N], set[N];
        double first, next;
        kofn_report rep = KOFN_REPORT_INIT;
        job j;

        for (uint32_t i = 0; i < N; i++) {
            uint32_t at = (uint32_t)kf_rng_below(&r, i + 1);

            order[i] = order[at];
            order[at] = i;
        }
        for (uint32_t i = 0; i < N; i++)
            event[i] = (kofn_fault_event){1, 0, KOFN_FAULT_EVENT_SLOW, order[i],
                                          1 + 0.1 * i};
        opt.events = event;
        opt.event_count = N;
        opt.pieces = 1;
        job_up(&j, "mds:k=10,basis=gauss", N, 130, 20, 1, &opt);
        memcpy(set, order, sizeof set);
        qsort(set, K, sizeof *set, order_of);
        first = predicted_for(j.plan, set, K);
        memcpy(set, order, sizeof set);
        qsort(set, K + 1, sizeof *set, order_of);
        next = predicted_for(j.plan, set, K + 1);
        job_down(&j);
        if (!(next < first))
            continue;
        tried++;
        opt.max_error = sqrt(first * next);
        job_up(&j, "mds:k=10,basis=gauss", N, 130, 20, 1, &opt);
        assert_ok(kofn_round(j.job, &j.x, &j.y, &rep));
        assert_true(rep.predicted == next);
        assert_int_equal(rep.late, N - K - 1);
        assert_at_most(job_error(&j), opt.max_error);
        job_down(&j);
    }
}

/* The same for a scheme that deals each strip to exactly k: strips that are
 * too noisy are dealt again. The tolerance lies between the noisiest window of
 * k and of k+1, so some strips need it. */
static void deals_again(void **state)
{
    enum { N = 14, K = 10 };
    double noisiest[2] = {0, 0}, tolerance;
    uint32_t set[N];
    kofn_report rep = KOFN_REPORT_INIT;
    kofn_options opt = KOFN_OPTIONS_INIT;
    size_t rows = 0;
    job j;

    (void)state;
    for (int run = 0; run < 2; run++) {
        job_up(&j, "elastic:k=10,basis=gauss", N, 1000, 20, 1, &opt);
        for (size_t more = 0; run == 0 && more < 2; more++)
            for (size_t at = 0; at < N; at++) {
                without_window(set, K + more, N, at);
                noisiest[more] =
                    fmax(noisiest[more], predicted_for(j.plan, set, K + more));
            }
        tolerance = run ? opt.max_error : 1e-9;
        assert_ok(kofn_round(j.job, &j.x, &j.y, &rep));
        for (size_t w = 0; w < rep.workers; w++)
            rows += run ? rep.rows[w] : 0;
        assert_at_most(rep.predicted, tolerance);
        assert_at_most(job_error(&j), rep.predicted);
        job_down(&j);
        opt.max_error = sqrt(noisiest[0] * noisiest[1]);
    }
    assert_true(noisiest[1] < noisiest[0]);
    assert_true(rows > 1000 && rows <= 1400);
}

/* ---- remains of an elastic fleet ------------------------------------------
 */

static double elastic_round(const char *spec, const uint32_t *set, size_t left,
                            size_t workers, size_t m, size_t n, size_t p)
{
    kofn_fault_event event[16];
    kofn_options opt = KOFN_OPTIONS_INIT;
    double off;
    job j;

    opt.events = event;
    opt.event_count = leave_all_but(set, left, workers, event);
    job_up(&j, spec, workers, m, n, p, &opt);
    assert_ok(kofn_round(j.job, &j.x, &j.y, NULL));
    off = job_error(&j);
    job_down(&j);
    return off;
}

static void elastic_rests(void **state)
{
    static const size_t shapes[][2] = {{6, 3}, {7, 4}, {5, 5},
                                       {6, 1}, {8, 3}, {12, 6}};
    size_t count = 0;

    (void)state;
    for (size_t c = 0; c < sizeof shapes / sizeof *shapes; c++) {
        size_t workers = shapes[c][0], least = shapes[c][1], rounds = 0;
        double worst = 0;
        char spec[40];

        snprintf(spec, sizeof spec, "elastic:k=%zu", least);
        for (size_t left = least; left <= workers; left++) {
            uint32_t set[16];

            first_set(set, left);
            do {
                /* a prime above the number of parts; a few rows below it */
                if (count++ % every())
                    continue;
                worst = fmax(
                    worst, elastic_round(spec, set, left, workers, 103, 29, 1));
                worst = fmax(
                    worst, elastic_round(spec, set, left, workers, 103, 29, 3));
                worst = fmax(worst,
                             elastic_round(spec, set, left, workers, 7, 5, 3));
                rounds += 3;
            } while (next_set(set, left, workers));
        }
        print_message("    elastic (P,L) = (%zu,%zu): %zu rounds, worst %.1e\n",
                      workers, least, rounds, worst);
        assert_at_most(worst, 1e-12);
    }
}

TEST_FILE(numerics_guard_test)
{
    const struct CMUnitTest tests[] = {
        TEST(within_tolerance,
             "guard: no result exceeds max_error (7 bases, 2 schemes)"),
        TEST(one_more,
             "guard: a noisy set waits for one more result and no further"),
        TEST(deals_again, "guard: elastic deals noisy strips again"),
        TEST(elastic_rests,
             "guard: every remaining set of an elastic fleet is right or "
             "refused"),
    };

    return cmocka_run_group_tests_name("numerics_guard", tests, setup, NULL);
}
