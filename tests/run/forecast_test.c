/* forecast_test.c -- forecasts compared with formulas, and with jobs that the
 * simulator runs with numbers on the same clock. */
#include "rig.h"

#include <kofn/forecast.h>

#define WORKERS 8

/* Costs of workers that compute a product of `work` nanoseconds for each
 * multiply-add, with nothing else that takes time. */
static kofn_costs costs_of(double work)
{
    kofn_costs c = KOFN_COSTS_INIT;

    c.work = c.plain = work;
    return c;
}

static kofn_forecast forecast(const kofn_problem *pb, const char *spec,
                              const kofn_forecast_options *o)
{
    kofn_forecast f = KOFN_FORECAST_INIT;

    assert_ok(kofn_forecast_job(&f, pb, spec, WORKERS, o));
    assert_ok(f.status);
    return f;
}

static void assert_near(double a, double b, double part)
{
    if (!(fabs(a - b) <= part * fabs(b)))
        fail_msg("%.9g is not %.9g", a, b);
}

/* Each of eight workers has an eighth of the rows. */
static void a_share(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 8000, 500, 10, KOFN_F64, false);
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    kofn_costs c = costs_of(2);
    kofn_forecast f;

    (void)state;
    o.costs = &c;
    o.rounds = 5;
    f = forecast(&pb, "", &o);
    assert_near(f.round50, 2e-9 * 8000 * 500 * 10, 1e-12);
    assert_near(f.total, 5 * f.round50, 1e-12);
    f = forecast(&pb, "uncoded", &o);
    assert_near(f.round50, 2e-9 * 1000 * 500 * 10, 1e-6);
    assert_near(f.memory, 8.0 * 1000 * 500, 1e-12);
    assert_near(f.work, 1, 1e-12);
    assert_int_equal(f.survives, 0);
    f = forecast(&pb, "mds:k=4,basis=gauss", &o);
    assert_near(f.round50, 2e-9 * 2000 * 500 * 10, 1e-6);
    assert_int_equal(f.survives, 4);
    f = forecast(&pb, "elastic:k=4,basis=gauss", &o);
    assert_near(f.round50, 2e-9 * 1000 * 500 * 10, 1e-3);
}

/* Inputs leave one after the other, and so do answers that come at once. */
static void a_link(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 800, 100, 20, KOFN_F64, false);
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    kofn_options job = KOFN_OPTIONS_INIT;
    kofn_costs c = costs_of(1);
    double input = 8.0 * 100 * 20, answer = 8.0 * 100 * 20,
           work = 1e-9 * 100 * 100 * 20;

    (void)state;
    c.latency = 1e-3;
    c.bandwidth = 1e8;
    job.pieces = 1;
    o.job = &job;
    o.costs = &c;
    o.away = true;
    assert_near(forecast(&pb, "uncoded", &o).round50,
                2e-3 + 8 * input / 1e8 + work + answer / 1e8, 1e-5);
    c.latency = 0;
    assert_near(forecast(&pb, "uncoded", &o).received, 8 * answer, 1e-12);
    /* a process of this machine copies both itself, on the core that computes
     */
    c.cores = 8;
    assert_near(forecast(&pb, "uncoded", &o).round50,
                9 * input / 1e8 + work + 2 * answer / 1e8, 1e-5);
}

/* Eight workers on two cores take four turns. */
static void two_cores(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 8000, 1000, 1, KOFN_F64, false);
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    kofn_costs c = costs_of(1);

    (void)state;
    o.costs = &c;
    c.cores = 2;
    assert_near(forecast(&pb, "uncoded", &o).round50, 4e-9 * 1000 * 1000, 1e-5);
    /* the six fastest of eight are enough: three turns */
    assert_near(forecast(&pb, "mds:k=6,basis=gauss", &o).round50,
                3e-9 * 1334 * 1000, 1e-3);
}

/* A worker that had its core for long lets the others go before it reports.  So
 * all eight have computed when the first result comes. */
static void long_tasks(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 8000, 1500, 1, KOFN_F64, false);
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    kofn_options job = KOFN_OPTIONS_INIT;
    kofn_costs c = costs_of(1);

    (void)state;
    job.pieces = 1;
    o.job = &job;
    o.costs = &c;
    c.cores = 2;
    assert_near(forecast(&pb, "mds:k=6,basis=gauss", &o).round50,
                4e-9 * 1334 * 1500, 1e-3);
}

/* Each worker multiplies a half of A by a half of the input. */
static void narrow_products(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 8000, 500, 10, KOFN_F64, false);
    const kofn_problem twelfths =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 8000, 50, 12, KOFN_F64, false);
    kofn_forecast f = KOFN_FORECAST_INIT;
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    kofn_costs c = costs_of(2);

    (void)state;
    o.costs = &c;
    c.narrow = 1.5;
    assert_near(forecast(&pb, "polynomial:m=2,p=2", &o).round50,
                1.5 * 2e-9 * 4000 * 500 * 5, 1e-3);
    assert_near(forecast(&pb, "uncoded", &o).round50, 2e-9 * 1000 * 500 * 10,
                1e-3);
    /* twelve parts are more than three halvings, the most that count */
    assert_ok(kofn_forecast_job(&f, &twelfths, "polynomial:m=1,p=12", 12, &o));
    assert_near(f.round50, 1.5 * 1.5 * 1.5 * 2e-9 * 8000 * 50 * 1, 1e-3);
}

/* ---- beside the simulator ------------------------------------------------ */

typedef struct trial {
    kofn_problem pb;
    const char *spec, *faults;
} trial;

static const trial trials[] = {
    {KOFN_PROBLEM_INIT(KOFN_MATVEC, 480, 60, 1, KOFN_F64, false), "elastic:k=4",
     "straggle=0.2,factor=5"},
    {KOFN_PROBLEM_INIT(KOFN_MATMUL, 480, 60, 4, KOFN_F64, false), "mds:k=5",
     "straggle=0.3,factor=3"},
    {KOFN_PROBLEM_INIT(KOFN_MATMUL, 480, 60, 4, KOFN_F64, false),
     "elastic:k=3,deal=speed", "spread=0.5"},
    {KOFN_PROBLEM_INIT(KOFN_MATMUL, 480, 60, 4, KOFN_F64, false),
     "polynomial:m=2,p=2", "straggle=0.4,factor=4"},
    {KOFN_PROBLEM_INIT(KOFN_MATMUL, 480, 60, 4, KOFN_F64, false), "matdot:n=3",
     "straggle=0.4,factor=4"},
    {KOFN_PROBLEM_INIT(KOFN_MATMUL, 480, 60, 4, KOFN_F64, false),
     "replication:k=4", "straggle=0.2,delay=1"},
    {KOFN_PROBLEM_INIT(KOFN_GRAM, 480, 60, 1, KOFN_F64, false), "pcr:r=3",
     "straggle=0.3,factor=6"},
    {KOFN_PROBLEM_INIT(KOFN_MATVEC, 480, 60, 1, KOFN_F64, false), "uncoded",
     "straggle=0.2,factor=2"},
};
#define ROUNDS 40
#define PRODUCTS 7

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Runs the job in the simulator. Returns the median of its rounds. */
static double simulated(const trial *t, const kofn_faults *w)
{
    kofn_matrix A = random_matrix(t->pb.m, t->pb.n, KOFN_F64, 1),
                B = random_matrix(t->pb.n, t->pb.p, KOFN_F64, 2),
                C = random_matrix(t->pb.op == KOFN_GRAM ? t->pb.n : t->pb.m,
                                  t->pb.p, KOFN_F64, 3);
    double took[ROUNDS];
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    assert_ok(kofn_plan_new(&plan, &t->pb, t->spec, WORKERS, 1));
    assert_ok(kofn_port_sim(&port, WORKERS, w));
    assert_ok(kofn_open(&job, plan, port, NULL));
    assert_ok(kofn_place(job, &A));
    for (int i = 0; i < ROUNDS; i++) {
        kofn_report rep = KOFN_REPORT_INIT;

        assert_ok(kofn_round(job, &B, &C, &rep));
        took[i] = (double)rep.took * 1e-9;
    }
    kofn_close(job);
    kofn_plan_free(plan);
    kf_free(A.data);
    kf_free(B.data);
    kf_free(C.data);
    qsort(took, ROUNDS, sizeof *took, ascending);
    return took[ROUNDS / 2];
}

/* Runs the products of a stream in the simulator. Returns the time of all. */
static double streamed(const trial *t, const kofn_faults *w,
                       const kofn_matrix *X, const kofn_matrix *Y)
{
    kofn_report all = KOFN_REPORT_INIT;
    kofn_matrix out[PRODUCTS];
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    assert_ok(kofn_plan_new(&plan, &t->pb, t->spec, WORKERS, 1));
    assert_ok(kofn_port_sim(&port, WORKERS, w));
    assert_ok(kofn_open(&job, plan, port, NULL));
    for (uint32_t i = 0; i < PRODUCTS; i++) {
        out[i] = random_matrix(t->pb.m, t->pb.p, KOFN_F64, 3);
        assert_ok(kofn_put_pair(job, X, Y, &out[i], NULL));
    }
    for (uint32_t i = 1; i <= PRODUCTS; i++)
        assert_ok(kofn_take(job, i, KOFN_NEVER, NULL));
    assert_ok(kofn_job_totals(job, &all));
    kofn_close(job);
    kofn_plan_free(plan);
    for (size_t i = 0; i < PRODUCTS; i++)
        kf_free(out[i].data);
    return (double)(all.placing + all.waiting) * 1e-9;
}

static void as_simulated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
        kofn_faults w = KOFN_FAULTS_INIT(.work = 1e5, .latency = 1e-5);
        kofn_costs c = costs_of(1e5);

        assert_ok(kofn_faults_parse(&w, trials[i].faults));
        c.latency = 1e-5;
        o.costs = &c;
        o.faults = &w;
        o.rounds = ROUNDS;
        o.away = true;
        assert_near(forecast(&trials[i].pb, trials[i].spec, &o).round50,
                    simulated(&trials[i], &w), 0.02);
    }
}

/* The products of a stream overlap, and the last ones need rounds of their
 * own. */
static void streams(void **state)
{
    static const char *const specs[] = {"dip:m=2,p=2,T=2,lambda=2",
                                        "idip:m=7,p=2,W=2,N=2",
                                        "polynomial:m=2,p=2", "uncoded"};
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_STREAM, 240, 60, 24, KOFN_F64, false);
    const kofn_matrix X = random_matrix(240, 60, KOFN_F64, 1),
                      Y = random_matrix(60, 24, KOFN_F64, 2);

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const trial t = {pb, specs[i], "straggle=0.3,factor=4"};
        kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
        kofn_faults w = KOFN_FAULTS_INIT(.work = 1e5);
        kofn_costs c = costs_of(1e5);

        assert_ok(kofn_faults_parse(&w, t.faults));
        o.costs = &c;
        o.faults = &w;
        o.rounds = PRODUCTS;
        assert_near(forecast(&pb, t.spec, &o).total, streamed(&t, &w, &X, &Y),
                    0.02);
    }
    kf_free(X.data);
    kf_free(Y.data);
}

/* ---- all codes ----------------------------------------------------------- */

static void all_codes(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, 8000, 500, 10, KOFN_F64, false);
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    kofn_faults w = KOFN_FAULTS_INIT(.straggle = 0.1);
    kofn_costs c = costs_of(1);
    kofn_forecast *f;
    size_t n;

    (void)state;
    o.costs = &c;
    o.faults = &w;
    o.rounds = 20;
    o.survive = 2;
    o.memory = 8.0 * 8000 * 500 / 3;
    assert_ok(kofn_forecast_all(&f, &n, &pb, WORKERS, &o));
    assert_true(n > 3);
    assert_string_equal(f[0].spec, "");
    for (size_t i = 1; i < n; i++) {
        assert_true(f[i].survives >= 2 && f[i].memory <= o.memory);
        assert_true(i == 1 || f[i - 1].total <= f[i].total);
        for (size_t j = 1; j < n; j++)
            assert_false(
                f[j].total < f[i].total && f[j].memory <= f[i].memory &&
                f[j].survives >= f[i].survives && f[j].faulty >= f[i].faulty);
    }
    kofn_free(f);
    o.deadline = 1e-9;
    assert_ok(kofn_forecast_all(&f, &n, &pb, WORKERS, &o));
    assert_int_equal(n, 1); /* plain BLAS alone */
    kofn_free(f);
}

static void refused(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 80, 50, 1, KOFN_F64, false);
    kofn_costs c = costs_of(1);
    kofn_forecast_options o = KOFN_FORECAST_OPTIONS_INIT;
    kofn_forecast f = KOFN_FORECAST_INIT;
    kofn_faults w = KOFN_FAULTS_INIT(.leave = 1e6);

    (void)state;
    o.costs = &c;
    assert_int_equal(kofn_forecast_job(&f, &pb, "mds:k=2", 0, &o), KOFN_INVAL);
    assert_int_equal(kofn_forecast_job(&f, &pb, "mds:k=9", 8, &o), KOFN_INVAL);
    assert_int_equal(kofn_forecast_job(&f, &pb, "none", 8, &o), KOFN_NOSCHEME);
    o.faults = &w; /* all leave at once */
    assert_ok(kofn_forecast_job(&f, &pb, "mds:k=2", 8, &o));
    assert_true(f.status != KOFN_OK);
}

TEST_FILE(forecast_test)
{
    const struct CMUnitTest tests[] = {
        TEST(a_share, "forecast: a round takes the time of a share's work"),
        TEST(a_link, "forecast: inputs and answers share the link"),
        TEST(two_cores, "forecast: workers take turns on shared cores"),
        TEST(long_tasks,
             "forecast: on shared cores long tasks are reported after others"),
        TEST(narrow_products,
             "forecast: products with few columns take longer"),
        TEST(as_simulated, "forecast: rounds take as long as in the simulator"),
        TEST(streams, "forecast: streams take as long as in the simulator"),
        TEST(all_codes, "forecast: no code is listed that another one beats"),
        TEST(refused, "forecast: impossible jobs are refused, or fail"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("forecast", tests, NULL, NULL);
}
