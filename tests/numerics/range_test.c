/* range_test.c -- operands and products near the end of their type's range,
 * and results with NaN or infinity. */
#include "rig.h"

#include <float.h>

#include "data/port.h"

#include <kofn/peer.h>

/* ---- near the end of the range --------------------------------------------
 */

typedef struct near_end {
    const char *spec;
    kofn_op op;
    size_t p;
    bool sparse;
    kofn_dtype dtype;
    bool checked; /* answers can be compared with each other */
} near_end;

static const near_end codes[] = {
    {"mds:k=3", KOFN_MATVEC, 1, false, KOFN_F64, true},
    {"mds:k=3", KOFN_MATVEC, 1, true, KOFN_F64, true},
    {"mds:k=3", KOFN_MATVEC, 1, false, KOFN_F32, true},
    {"mds-published:k=3,basis=vandermonde", KOFN_MATVEC, 1, false, KOFN_F64,
     true},
    {"elastic:k=3", KOFN_MATVEC, 1, false, KOFN_F64, true},
    {"elastic:k=3", KOFN_MATMUL, 5, false, KOFN_F32, true},
    {"elastic:k=3", KOFN_LEFT, 3, false, KOFN_F64, false},
    {"elastic:k=3,cut=columns", KOFN_MATMUL, 3, false, KOFN_F64, false},
    {"elastic:k=3,cut=columns", KOFN_MATVEC, 1, false, KOFN_F32, false},
    {"polynomial:m=2,p=2", KOFN_MATMUL, 6, false, KOFN_F64, false},
    {"polynomial:m=2,p=2", KOFN_MATMUL, 6, false, KOFN_F32, false},
    {"matdot:n=2", KOFN_MATMUL, 4, false, KOFN_F64, false},
    {"product:m=2,m2=4,p=2,p2=3", KOFN_MATMUL, 6, false, KOFN_F64, false},
    {"replication:k=3", KOFN_MATVEC, 1, false, KOFN_F64, false},
    {"uncoded", KOFN_MATVEC, 1, false, KOFN_F64, false},
    {"uncoded", KOFN_MATVEC, 1, true, KOFN_F64, false},
    {"pcr:r=3", KOFN_GRAM, 1, false, KOFN_F64, false},
};
#define CODES (sizeof codes / sizeof *codes)

static int exponent_of(double x)
{
    int e;

    frexp(x, &e);
    return e;
}

/* Returns e such that the largest element is below 2^e. */
static int top_of(const kofn_matrix *a)
{
    double *x = as_doubles(a), most = 0;

    for (size_t i = 0; i < a->rows * a->cols; i++)
        most = fmax(most, fabs(x[i]));
    kf_free(x);
    return exponent_of(most);
}

static void shift(kofn_matrix *a, int by)
{
    for (size_t i = 0; i < a->rows * a->cols; i++) {
        if (a->dtype == KOFN_F64)
            ((double *)a->data)[i] = ldexp(((double *)a->data)[i], by);
        else
            ((float *)a->data)[i] = ldexpf(((float *)a->data)[i], by);
    }
}

static void shift_sparse(const rig *r, int by)
{
    double *val = (double *)(uintptr_t)r->sparse.val;

    for (size_t e = 0; r->sparse.ptr && e < r->sparse.ptr[r->A.rows]; e++)
        val[e] = ldexp(val[e], by);
}

static int top_of_result(const rig *r)
{
    double most = 0;

    for (size_t i = 0; i < r->y.rows * r->y.cols; i++)
        most = fmax(most, fabs(r->want[i]));
    return exponent_of(most);
}

/* Returns the predicted error of these answers. The fastest worker of the
 * simulated fleet differs between rounds. */
static double allowed(const kofn_report *rep)
{
    return fmax(1e-13, rep->predicted);
}

/* A times 2^a and x times 2^b give the same answer times 2^(a + b). */
static void check_shifted(const rig_kind *k, int a, int b, int answer,
                          kofn_errors errors)
{
    kofn_options o = KOFN_OPTIONS_INIT;
    rig_kind kind = *k;
    kofn_report rep = KOFN_REPORT_INIT;
    rig r;

    o.errors = errors;
    kind.opt = &o;
    rig_inputs(&r, &kind);
    shift(&r.A, a);
    shift_sparse(&r, a);
    shift(&r.x, b);
    rig_open(&r, &kind);
    assert_ok(rig_round(&r, &rep));
    assert_int_equal(rep.corrupt, 0);
    shift(&r.A, -a);
    shift(&r.x, -b);
    shift(&r.y, -answer);
    if (!(rig_error(&r) <= allowed(&rep)))
        fail_msg("%s, A 2^%d, x 2^%d: error %g", k->spec, a, b, rig_error(&r));
    rig_down(&r);
}

static rig_kind kind_of(const near_end *c)
{
    return (rig_kind){.spec = c->spec,
                      .workers = 12,
                      .m = 50,
                      .n = 40,
                      .p = c->p,
                      .op = c->op,
                      .sim = true,
                      .sparse = c->sparse,
                      .dtype = c->dtype};
}

/* The largest element of A, or of x, is the largest number of its type, or
 * both are half way there. Nearly so large is the largest result; some bits
 * remain for the order of sums. */
static void within_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES; i++) {
        rig_kind k = kind_of(&codes[i]);
        int end = k.dtype == KOFN_F64 ? DBL_MAX_EXP : FLT_MAX_EXP;
        int times = k.op == KOFN_GRAM ? 2 : 1;
        rig r;
        int a[3], all;

        rig_inputs(&r, &k);
        all = end - 3 - top_of_result(&r);
        a[0] = end - top_of(&r.A);
        if (times == 2) /* so that x is normal */
            a[0] = (all + 990) / 2;
        a[1] = (all - (end - top_of(&r.x))) / times;
        a[2] = all / 2 / times;
        rig_down(&r);
        for (int n = 0; n < 3; n++)
            for (int e = KOFN_ERRORS_NONE; e <= KOFN_ERRORS_DETECT; e++) {
                if (e && !codes[i].checked)
                    continue;
                check_shifted(&k, a[n], all - times * a[n], all,
                              (kofn_errors)e);
            }
    }
}

/* Results beyond the range are refused, and the job continues. */
static void beyond_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODES; i++) {
        rig_kind k = kind_of(&codes[i]);
        int end = k.dtype == KOFN_F64 ? DBL_MAX_EXP : FLT_MAX_EXP;
        int times = k.op == KOFN_GRAM ? 2 : 1, half, by;
        kofn_report rep = KOFN_REPORT_INIT;
        rig r;

        rig_inputs(&r, &k);
        half = (end - top_of_result(&r)) / 2 / times;
        by = end + 3 - top_of_result(&r) - times * half;
        shift(&r.A, half);
        shift_sparse(&r, half);
        shift(&r.x, by);
        rig_open(&r, &k);
        assert_status(KOFN_NONFINITE, rig_round(&r, NULL));
        assert_non_null(strstr(kofn_errmsg(), "cannot hold"));
        shift(&r.x, -by);
        assert_ok(rig_round(&r, &rep));
        shift(&r.A, -half);
        shift(&r.y, -times * half);
        assert_at_most(rig_error(&r), allowed(&rep));
        rig_down(&r);
    }
}

/* ---- answers with NaN -----------------------------------------------------
 */

static kofn_status (*honest_wait)(kofn_port *, kofn_time, kofn_time, kf_msg *);
static double answered; /* the first element of worker 1's answer */
static bool lies;

static kofn_status lying_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                              kf_msg *m)
{
    kofn_status st = honest_wait(p, until, atmost, m);
    kofn_matrix *y = st == KOFN_OK && m->type == KF_MSG_RESULT
                         ? kf_buffer_matrix(m->result)
                         : NULL;

    if (!y || m->worker != 1 || !lies)
        return st;
    if (y->dtype == KOFN_F64)
        ((double *)y->data)[0] = answered;
    else
        ((float *)y->data)[0] = (float)answered;
    return st;
}

static void open_lying(rig *r, const rig_kind *k)
{
    kofn_port *port;

    assert_ok(kofn_port_sim(&port, k->workers, NULL));
    honest_wait = port->wait;
    port->wait = lying_wait;
    assert_ok(kofn_open(&r->job, r->plan, port, k->opt));
    assert_ok(rig_place(r));
}

/* All answers are needed here, so the wrong one must be used. */
static const near_end all_needed[] = {
    {"uncoded", KOFN_MATVEC, 1, false, KOFN_F64, false},
    {"mds:k=4", KOFN_MATVEC, 1, false, KOFN_F64, false},
    {"mds:k=4", KOFN_MATVEC, 1, true, KOFN_F64, false},
    {"mds:k=4", KOFN_MATVEC, 1, false, KOFN_F32, false},
    {"elastic:k=4", KOFN_MATMUL, 3, false, KOFN_F64, false},
    {"elastic:k=4", KOFN_LEFT, 3, false, KOFN_F64, false},
    {"elastic:k=4,cut=columns", KOFN_MATMUL, 3, false, KOFN_F64, false},
    {"polynomial:m=2,p=2", KOFN_MATMUL, 6, false, KOFN_F64, false},
    {"pcr:r=2", KOFN_GRAM, 1, false, KOFN_F64, false},
    {"gc:d=1", KOFN_SUM, 1, false, KOFN_F64, false},
    {"ignore", KOFN_SUM, 1, false, KOFN_F64, false},
    {"distr-bgd", KOFN_SUM, 1, false, KOFN_F64, false},
};

static void nan_answers(void **state)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t i = 0; i < sizeof all_needed / sizeof *all_needed; i++)
        for (size_t o = 0; o < 3; o++) {
            rig_kind k = kind_of(&all_needed[i]);
            kofn_report rep = KOFN_REPORT_INIT;
            kofn_status st;
            rig r;

            k.workers = k.op == KOFN_GRAM ? 3 : 4;
            rig_inputs(&r, &k);
            open_lying(&r, &k);
            answered = odd[o];
            lies = true;
            st = rig_round(&r, NULL);
            if (st != (k.op == KOFN_SUM ? KOFN_NONFINITE : KOFN_CORRUPT) ||
                !strstr(kofn_errmsg(), "worker 1 answered NaN"))
                fail_msg("%s: %s, %s", k.spec, kofn_strerror(st),
                         kofn_errmsg());
            lies = false; /* a round later it has no effect */
            assert_ok(rig_round(&r, &rep));
            assert_at_most(rig_error(&r), allowed(&rep));
            rig_down(&r);
        }
}

/* A scheme with memory never remembers NaN: it is gone before a good answer
 * comes. */
static void nan_not_remembered(void **state)
{
    static const kofn_fault_event gone[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0}};
    kofn_options o = with_events(gone, 1);
    rig_kind k = kind_of(&all_needed[11]);
    rig r;

    (void)state;
    k.workers = 4;
    k.opt = &o;
    rig_inputs(&r, &k);
    open_lying(&r, &k);
    answered = NAN;
    lies = true;
    assert_status(KOFN_NONFINITE, rig_round(&r, NULL));
    lies = false;
    assert_int_equal(rig_round(&r, NULL), KOFN_PARTIAL);
    for (size_t i = 0; i < r.y.rows; i++)
        assert_true(isfinite(((double *)r.y.data)[i]));
    rig_down(&r);
}

/* ---- iterations ---------------------------------------------------------- */

/* Returns a symmetric matrix with a known largest eigenvalue: 2^e (I + 1
 * 1'/n). */
static kofn_matrix ones_and_identity(size_t n, int e)
{
    kofn_matrix A = random_matrix(n, n, KOFN_F64, 1);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            ((double *)A.data)[i * n + j] = ldexp((i == j) + 1 / (double)n, e);
    return A;
}

static void power_iteration_at_the_end(void **state)
{
    (void)state;
    for (int e = 1021; e <= 1023; e++) {
        kofn_matrix A = ones_and_identity(64, e), v;
        kofn_problem pb =
            KOFN_PROBLEM_INIT(KOFN_MATVEC, 64, 64, 1, KOFN_F64, false);
        kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;
        kofn_plan *plan;
        kofn_port *port;
        kofn_job *job;
        kofn_status st;

        v = random_matrix(64, 1, KOFN_F64, 2);
        ((double *)v.data)[0] = 9; /* v has a part along 1 */
        assert_ok(kofn_plan_new(&plan, &pb, "mds:k=3", 5, 1));
        assert_ok(kofn_port_sim(&port, 5, NULL));
        assert_ok(kofn_open(&job, plan, port, NULL));
        assert_ok(kofn_place(job, &A));
        st = kofn_power(job, &v, NULL, &res);
        assert_int_equal(st, e < 1023 ? KOFN_OK : KOFN_NONFINITE);
        if (!st)
            assert_at_most(fabs(res.eigenvalue / ldexp(2, e) - 1), 1e-12);
        kofn_close(job);
        kofn_plan_free(plan);
        kf_free(A.data);
        kf_free(v.data);
    }
}

/* A NaN in one element or in all of a product ends the iteration. */
static void nan_power_iteration(void **state)
{
    (void)state;
    for (size_t all = 0; all < 2; all++) {
        kofn_matrix A = ones_and_identity(8, 0);
        kofn_matrix v = random_matrix(8, 1, KOFN_F64, 2);
        kofn_iterate_result res = KOFN_ITERATE_RESULT_INIT;

        for (size_t i = 0; i < (all ? 64 : 1); i++)
            ((double *)A.data)[(i + 29) % 64] = NAN;
        assert_status(KOFN_NONFINITE,
                      kofn_power_peers(NULL, KOFN_DENSE(&A), &v, NULL, &res));
        assert_false(res.converged);
        for (size_t i = 0; i < (all ? 8 : 1); i++)
            ((double *)v.data)[i] = NAN;
        assert_status(KOFN_INVAL,
                      kofn_power_peers(NULL, KOFN_DENSE(&A), &v, NULL, &res));
        kf_free(A.data);
        kf_free(v.data);
    }
}

TEST_FILE(range_test)
{
    const struct CMUnitTest tests[] = {
        TEST(
            within_range,
            "range: a coded product is right if the plain one fits (all types)"),
        TEST(beyond_range,
             "range: results beyond the range are refused; the job continues"),
        TEST(nan_answers,
             "range: a NaN answer is refused and names the worker"),
        TEST(nan_not_remembered,
             "range: schemes with memory never remember NaN"),
        TEST(power_iteration_at_the_end,
             "range: power iteration works at the end of the range"),
        TEST(nan_power_iteration, "range: NaN ends a power iteration"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
