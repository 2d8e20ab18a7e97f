/* sums_audit_test.c -- coded sums that are checked in some rounds only. The
 * tests concern the work of the rounds in between, and their result if a worker
 * is missing or answers NaN. */
#include "altered_port.h"
#include "rig.h"

#include "code/code.h"

#define MOST 16
#define LENGTH 37
#define EVERY 4

typedef struct parts {
    unsigned calls; /* calls of f in this round */
    double scale;
} parts;

static double entry(size_t part, size_t e)
{
    return sin((double)(part * 31 + e * 7 + 1));
}

static kofn_status part_of(void *ctx, size_t part, size_t of,
                           const kofn_matrix *in, kofn_matrix *out)
{
    parts *p = ctx;

    (void)of;
    p->calls++;
    for (size_t e = 0; e < LENGTH; e++)
        ((double *)out->data)[e] =
            entry(part, e) * ((const double *)in->data)[0];
    return KOFN_OK;
}

/* ---- faulty workers ------------------------------------------------------ */

typedef struct faulty_port {
    altered_port port;
    uint32_t liar;   /* 1 + the faulty worker; 0: none */
    double by;       /* added to its results, or NaN */
    uint32_t leaver; /* 1 + the worker that leaves without an answer; 0: none */
} faulty_port;

static kofn_status faulty_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                               kf_msg *m)
{
    faulty_port *c = (faulty_port *)p;
    kofn_status st = c->port.sim->wait(c->port.sim, until, atmost, m);

    if (st || m->type != KF_MSG_RESULT)
        return st;
    if (m->worker + 1 == c->liar)
        ((double *)kf_buffer_matrix(m->result)->data)[0] += c->by;
    if (m->worker + 1 == c->leaver) {
        kf_buffer_drop(m->result);
        *m = (kf_msg){.type = KF_MSG_BYE, .worker = m->worker};
        c->leaver = 0;
    }
    return KOFN_OK;
}

static void faulty_close(kofn_port *p)
{
    faulty_port *c = (faulty_port *)p;

    c->port.sim->close(c->port.sim);
    kf_free(c);
}

/* ---- a job --------------------------------------------------------------- */

typedef struct job {
    parts p;
    faulty_port *c;
    kofn_plan *plan;
    kofn_job *job;
    double x, out[LENGTH];
    unsigned rounds;
} job;

static kofn_options audited(void)
{
    kofn_options o = KOFN_OPTIONS_INIT;

    o.errors = KOFN_ERRORS_PROBABILISTIC;
    o.audit = EVERY;
    o.late = -1; /* each computation is counted */
    return o;
}

/* Opens a job. `pattern`: slowness of each worker, or NULL. */
static void job_up_slow(job *j, const char *spec, size_t workers,
                        kofn_options o, const kofn_matrix *pattern)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_SUM, LENGTH, 1, 1, KOFN_F64, false);
    kofn_faults w = KOFN_FAULTS_INIT(.seed = 1, .pattern = pattern);

    *j = (job){.x = 1};
    j->c = numbers(1, sizeof *j->c);
    altered_open(&j->c->port, workers, &w);
    j->c->port.base.wait = faulty_wait;
    j->c->port.base.close = faulty_close;
    assert_ok(kofn_plan_new(&j->plan, &pb, spec, workers, 1));
    assert_ok(kofn_open(&j->job, j->plan, &j->c->port.base, &o));
    assert_ok(kofn_place_parts(j->job, part_of, &j->p));
}

static void job_up(job *j, const char *spec, size_t workers, kofn_options o)
{
    job_up_slow(j, spec, workers, o, NULL);
}

static void job_down(job *j)
{
    kofn_close(j->job);
    kofn_plan_free(j->plan);
}

static kofn_status job_round(job *j, kofn_report *rep)
{
    kofn_matrix in = {&j->x, 1, 1, 1, KOFN_F64};
    kofn_matrix out = {j->out, LENGTH, 1, 1, KOFN_F64};

    j->p.calls = 0;
    j->x = 1 + j->rounds++;
    return kofn_round(j->job, &in, &out, rep);
}

/* Returns the relative error of the sum. */
static double off(const job *j)
{
    double most = 0;

    for (size_t e = 0; e < LENGTH; e++) {
        double sum = 0;

        for (size_t k = 0; k < j->plan->parts; k++)
            sum += entry(k, e) * j->x;
        most = fmax(most, fabs(j->out[e] - sum) / j->x);
    }
    return most;
}

/* ---- the work of each worker --------------------------------------------- */

static const struct {
    const char *spec;
    size_t workers, d;
} codes[] = {
    {"gc:d=3", 7, 3},
    {"gc:d=4,construction=cyclic", 9, 4},
    {"gc:d=3,construction=polynomial", 8, 3},
    {"cgc:d=5,m=2", 11, 5},
    {"g-cgc:d=4,m=2", 13, 4},
};

static void computed_once(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
        job *j = numbers(1, sizeof *j);
        kofn_report rep = KOFN_REPORT_INIT;
        size_t n = codes[k].workers;

        job_up(j, codes[k].spec, n, audited());
        for (unsigned t = 0; t < 3 * EVERY; t++) {
            bool coded = t % EVERY == 0;

            assert_ok(job_round(j, &rep));
            assert_true(off(j) < 1e-12);
            assert_int_equal(rep.unchecked, !coded);
            assert_int_equal(rep.floor > 0, coded);
            assert_int_equal(rep.liars > 0, coded);
            if (!coded)
                assert_int_equal(j->p.calls, n);
            else
                assert_true(j->p.calls > n * (codes[k].d - 1));
            assert_int_equal(rep.parts, n);
            for (size_t i = 0; i < n; i++)
                assert_true(rep.weights[i] == 1);
        }
        kofn_job_totals(j->job, &rep);
        assert_int_equal(rep.unchecked, 3 * (EVERY - 1));
        assert_true(rep.floor > 0 && rep.liars > 0);
        job_down(j);
        kf_free(j);
    }
}

/* ---- a missing worker ---------------------------------------------------- */

static void missing_worker(void **state)
{
    job *j = numbers(1, sizeof *j);

    (void)state;
    job_up(j, "gc:d=3", 7, audited());
    for (unsigned t = 0; t < 2 * EVERY; t++) {
        kofn_report rep = KOFN_REPORT_INIT;

        j->c->leaver = t == 2 ? 3 : 0;
        assert_ok(job_round(j, &rep));
        assert_true(off(j) < 1e-12);
        assert_int_equal(rep.unchecked, t == 1);
        assert_int_equal(rep.floor > 0, t != 1);
        assert_int_equal(rep.live, t < 2 ? 7 : 6);
    }
    job_down(j);
    kf_free(j);
}

/* ---- a faulty worker ----------------------------------------------------- */

/* A wrong answer passes before the next audit, and not after it. The audit
 * locates the worker. Its answers are not used again. Beyond chance it gets no
 * more work. */
static void faulty_worker(void **state)
{
    job *j = numbers(1, sizeof *j);
    kofn_report rep = KOFN_REPORT_INIT;

    (void)state;
    job_up(j, "gc:d=4", 9, audited());
    for (unsigned t = 0; t == 0 || rep.states[5] == KOFN_WORKER_LIVE; t++) {
        bool lies = t >= EVERY + 2, passes = lies && t < 2 * EVERY;

        j->c->liar = lies ? 6 : 0;
        j->c->by = 1;
        assert_ok(job_round(j, &rep));
        assert_int_equal(off(j) > 1e-3, passes);
        assert_int_equal(rep.unchecked, t < 2 * EVERY && t % EVERY > 0);
        assert_int_equal(rep.located[5] > 0, t >= 2 * EVERY);
        assert_true(t < 20 * EVERY);
    }
    assert_int_equal(rep.states[5], KOFN_WORKER_QUARANTINED);
    job_down(j);
    kf_free(j);
}

/* An audit ends after the answers of all workers that are trusted until the
 * next one, even if they are late. The sixth worker is thirty times slower and
 * faulty from the beginning. Late rounds are hedged or not. */
static void slow_faulty(void **state)
{
    double times[9] = {1, 1, 1, 1, 1, 30, 1, 1, 1};
    const kofn_matrix slow = {times, 1, 9, 9, KOFN_F64};

    (void)state;
    for (int hedged = 0; hedged < 2; hedged++) {
        job *j = numbers(1, sizeof *j);
        kofn_options o = audited();
        kofn_report rep = KOFN_REPORT_INIT;

        o.late = hedged ? 0 : -1;
        job_up_slow(j, "gc:d=4", 9, o, &slow);
        j->c->liar = 6;
        j->c->by = 1;
        for (unsigned t = 0; t < 2 * EVERY; t++) {
            assert_ok(job_round(j, &rep));
            assert_true(off(j) < 1e-12);
            assert_int_equal(rep.unchecked, 0);
        }
        assert_true(rep.located[5] > 0);
        job_down(j);
        kf_free(j);
    }
}

/* NaN is noticed in rounds without a check, too. */
static void nan_answer(void **state)
{
    job *j = numbers(1, sizeof *j);
    kofn_report rep = KOFN_REPORT_INIT;

    (void)state;
    job_up(j, "cgc:d=5,m=2", 11, audited());
    for (unsigned t = 0; t < 3; t++) {
        j->c->liar = t == 2 ? 4 : 0;
        j->c->by = NAN;
        assert_ok(job_round(j, &rep));
        assert_true(off(j) < 1e-12);
        assert_int_equal(rep.unchecked, t == 1);
    }
    assert_int_equal(rep.located[3], 1);
    job_down(j);
    kf_free(j);
}

/* ---- several at once ----------------------------------------------------- */

static void overlap(void **state)
{
    double x[6] = {1, 2, 3, 4, 5, 6}, y[6][LENGTH];
    kofn_report rep = KOFN_REPORT_INIT;
    job *j = numbers(1, sizeof *j);
    uint32_t number[6];

    (void)state;
    job_up(j, "gc:d=3", 7, audited());
    for (size_t t = 0; t < 6; t++) {
        kofn_matrix in = {&x[t], 1, 1, 1, KOFN_F64};
        kofn_matrix out = {y[t], LENGTH, 1, 1, KOFN_F64};

        assert_ok(kofn_put(j->job, &in, &out, &number[t]));
    }
    for (size_t i = 0; i < 6; i++) {
        size_t t = 5 - i;

        j->c->leaver = i == 0; /* several are open, and not coded */
        assert_ok(kofn_take(j->job, number[t], KOFN_NEVER, &rep));
        assert_int_equal(rep.unchecked, 0);
        j->x = x[t];
        memcpy(j->out, y[t], sizeof j->out);
        assert_true(off(j) < 1e-12);
    }
    job_down(j);
    kf_free(j);
}

/* ---- refusals ------------------------------------------------------------ */

static void refused(const char *spec, kofn_op op, kofn_errors errors,
                    kofn_status st, const char *why)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(op, LENGTH, 1, 1, KOFN_F64, false);
    kofn_options o = audited();
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *out;

    o.errors = errors;
    assert_ok(kofn_plan_new(&plan, &pb, spec, 8, 1));
    assert_ok(kofn_port_sim(&port, 8, NULL));
    assert_int_equal(kofn_open(&out, plan, port, &o), st);
    if (!strstr(kofn_errmsg(), why))
        fail_msg("%s: \"%s\" is not in: %s", spec, why, kofn_errmsg());
    kofn_plan_free(plan);
}

static void refusals(void **state)
{
    kofn_errors on = KOFN_ERRORS_DETECT;

    (void)state;
    refused("gc:d=3", KOFN_SUM, KOFN_ERRORS_NONE, KOFN_INVAL, "audit = 4");
    refused("gc:d=4,construction=fractional", KOFN_SUM, on, KOFN_UNSUITED,
            "seat 1 does not compute part 1");
    refused("replication:k=4", KOFN_SUM, on, KOFN_UNSUITED, "by replication");
    refused("mds:k=4", KOFN_MATVEC, on, KOFN_UNSUITED, "A x by mds");
    refused("agc:d=3", KOFN_SUM, KOFN_ERRORS_NONE, KOFN_UNSUITED, "by agc");
}

TEST_FILE(sums_audit_test)
{
    const struct CMUnitTest tests[] = {
        TEST(computed_once, "audit: between audits each part is computed once"),
        TEST(missing_worker, "audit: rounds with a missing worker are coded"),
        TEST(faulty_worker,
             "audit: an audit names a faulty worker, which gets no more work"),
        TEST(slow_faulty,
             "audit: an audit waits for slow workers, and names a faulty one"),
        TEST(nan_answer, "audit: a round with a NaN is coded"),
        TEST(overlap, "audit: overlapping sums are right if a worker leaves"),
        TEST(refusals, "audit: codes that cannot be audited are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
