/* source_test.c -- kofn_place_from: operands that are read panel by panel, on
 * the simulator, on threads and behind packets. */
#include "fleet.h"
#include "rig.h"
#include "sgd.h"

#include <math.h>

/* ---- a matrix and its source --------------------------------------------- */

/* What is done to the numbers of A. */
typedef enum spread {
    EVEN,    /* rows and columns of one size         */
    ROWS,    /* rows of different sizes, one of zeros */
    COLUMNS, /* columns of different sizes            */
    BOTH
} spread;

typedef struct placed {
    kofn_matrix A, x, y;
    unsigned *reads; /* of each row */
    size_t calls, fails_at;
    size_t changes_at;      /* from this call on, all numbers are larger */
    size_t loses_at, loses; /* in this call, so many workers leave */
    bool over;              /* no call is expected */
    kofn_plan *plan;
    kofn_job *job;
    fleet f;
    bool away;
} placed;

/* Makes the last workers leave, and waits for their ends. */
static void lose_workers(placed *p)
{
    for (; p->loses > 0; p->loses--) {
        member *m = p->f.member[--p->f.members];

        atomic_store(&m->leave, KOFN_LEAVE_NOW);
        pthread_join(m->thread, NULL);
        free(m);
    }
}

static kofn_status read_rows(void *ud, size_t row, const kofn_matrix *out)
{
    placed *p = ud;

    if (!out)
        return KOFN_OK;
    assert_false(p->over);
    assert_int_equal(out->cols, p->A.cols);
    assert_int_equal(out->dtype, p->A.dtype);
    assert_true(out->rows > 0 && row + out->rows <= p->A.rows);
    p->calls++;
    if (p->fails_at && p->calls == p->fails_at)
        return KOFN_IO;
    if (p->loses_at && p->calls == p->loses_at)
        lose_workers(p);
    for (size_t i = 0; i < out->rows; i++) {
        p->reads[row + i]++;
        for (size_t j = 0; j < out->cols; j++)
            kf_mat_put(out, i, j,
                       kf_mat_entry(&p->A, row + i, j) *
                           (p->changes_at && p->calls >= p->changes_at
                                ? 0x1p1000
                                : 1));
    }
    return KOFN_OK;
}

static void stretch(const kofn_matrix *A, spread how)
{
    for (size_t i = 0; i < A->rows; i++)
        for (size_t j = 0; j < A->cols; j++) {
            int e =
                (how == ROWS || how == BOTH ? (int)(i * 7 % 60) - 30 : 0) +
                (how == COLUMNS || how == BOTH ? (int)(j * 5 % 40) - 20 : 0);
            double a = ldexp(kf_mat_entry(A, i, j), e);

            kf_mat_put(A, i, j, how == ROWS && i == 3 ? 0 : a);
        }
}

typedef enum way { SIM, THREADS, PACKETS, WAYS } way;

typedef struct kind {
    const char *scheme;
    size_t workers, m, n, p;
    kofn_dtype dtype;
    spread how;
    way port;
} kind;

static void up(placed *p, const kind *k, const kofn_options *opt)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, k->m, k->n, k->p, k->dtype, false);
    kofn_options exact = KOFN_OPTIONS_INIT;
    kofn_port *port;

    *p = (placed){.A = random_matrix(k->m, k->n, k->dtype, 11),
                  .x = random_matrix(k->n, k->p, k->dtype, 12),
                  .y = random_matrix(k->m, k->p, k->dtype, 13),
                  .reads = numbers(k->m, sizeof(unsigned)),
                  .away = k->port == PACKETS};
    stretch(&p->A, k->how);
    exact.late = -1;
    assert_ok(kofn_plan_new(&p->plan, &pb, k->scheme, k->workers, 5));
    if (p->away) {
        fleet_init(&p->f, NULL);
        port = fleet_port(&p->f, k->workers, NULL);
    } else if (k->port == THREADS) {
        assert_ok(kofn_port_threads(&port, k->workers, NULL));
    } else {
        assert_ok(kofn_port_sim(&port, k->workers, NULL));
    }
    assert_ok(kofn_open(&p->job, p->plan, port, opt ? opt : &exact));
}

static void down(placed *p)
{
    kofn_close(p->job);
    if (p->away)
        fleet_down(&p->f);
    kofn_plan_free(p->plan);
    kf_free(p->A.data);
    kf_free(p->x.data);
    kf_free(p->y.data);
    kf_free(p->reads);
}

static kofn_status place(placed *p, size_t panel)
{
    kofn_source s = KOFN_SOURCE_INIT;
    kofn_status st;

    s.read = read_rows;
    s.ud = p;
    s.panel = panel;
    st = kofn_place_from(p->job, 0, &s);
    p->over = true;
    return st;
}

/* Multiplies, and returns the largest error relative to |row| |x|, as numbers:
 * row by row. */
static double product_error(placed *p)
{
    double worst = 0;

    memset(p->y.data, 0xff,
           p->y.rows * p->y.cols * (p->y.dtype == KOFN_F64 ? 8 : 4));
    assert_ok(kofn_round(p->job, &p->x, &p->y, NULL));
    for (size_t i = 0; i < p->A.rows; i++)
        for (size_t j = 0; j < p->x.cols; j++) {
            double sum = 0, size = 0, off;

            for (size_t l = 0; l < p->A.cols; l++) {
                double t =
                    kf_mat_entry(&p->A, i, l) * kf_mat_entry(&p->x, l, j);

                sum += t;
                size += fabs(t);
            }
            off = fabs(kf_mat_entry(&p->y, i, j) - sum);
            off = size > 0 ? off / size : off;
            worst = off <= worst ? worst : off; /* NaN is the worst */
        }
    return worst;
}

/* ---- products ------------------------------------------------------------ */

static const kind kinds[] = {
    {"elastic:k=3", 5, 41, 13, 7, KOFN_F64, EVEN, SIM},
    {"elastic:k=4", 6, 40, 9, 1, KOFN_F32, EVEN, SIM},
    {"elastic:k=2,cut=columns", 4, 17, 12, 3, KOFN_F64, EVEN, SIM},
    {"mds:k=3,basis=gauss_sys", 5, 31, 8, 2, KOFN_F64, EVEN, SIM},
    {"polynomial:m=2,p=2,basis=chebyshev", 6, 19, 8, 5, KOFN_F64, EVEN, SIM},
    {"matdot:n=2,basis=chebyshev", 4, 6, 11, 6, KOFN_F64, EVEN, SIM},
    {"gpd:m=2,n=1,p=2", 9, 12, 7, 4, KOFN_F64, EVEN, SIM},
    {"uncoded", 3, 10, 5, 2, KOFN_F64, EVEN, SIM},
    {"replication", 4, 9, 3, 2, KOFN_F32, EVEN, SIM},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static void every_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS; i++)
        for (int port = 0; port < WAYS; port++) {
            static const size_t panels[] = {1, 700, 0};
            kind k = kinds[i];
            placed p;

            k.port = (way)port;
            up(&p, &k, NULL);
            assert_ok(place(&p, panels[(i + (size_t)port) % 3]));
            assert_at_most(product_error(&p), k.dtype ? 1e-4 : 1e-11);
            assert_at_most(product_error(&p), k.dtype ? 1e-4 : 1e-11);
            down(&p);
        }
}

static void each_row_twice(void **state)
{
    (void)state;
    for (int port = 0; port < WAYS; port++) {
        kind k = kinds[0];
        placed p;

        k.port = (way)port;
        up(&p, &k, NULL);
        assert_ok(place(&p, 400));
        for (size_t i = 0; i < p.A.rows; i++)
            assert_int_equal(p.reads[i], 2);
        assert_true(p.calls > 10);
        down(&p);
    }
}

static void row_by_row(void **state)
{
    static const char *const schemes[] = {"elastic:k=3", "mds:k=3",
                                          "gpd:m=2,n=1,p=1"};

    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (spread how = ROWS; how <= BOTH; how++) {
            kind k = {schemes[s], 6, 60, 40, 2, KOFN_F64, how, SIM};
            placed p, whole;

            up(&p, &k, NULL);
            up(&whole, &k, NULL);
            assert_ok(place(&p, 5000));
            assert_ok(kofn_place(whole.job, &whole.A));
            /* as exact as from the whole matrix, but for a small factor */
            assert_at_most(product_error(&p),
                           fmax(8 * product_error(&whole), 1e-13));
            down(&p);
            down(&whole);
        }
}

static void with_errors_searched(void **state)
{
    static const kofn_fault_event wrong[] = {
        {2, 0, KOFN_FAULT_EVENT_CORRUPT, 1, 0}};

    (void)state;
    for (spread how = EVEN; how <= BOTH; how++) {
        kind k = {"elastic:k=3", 6, 60, 40, 2, KOFN_F64, how, SIM};
        kofn_options opt = KOFN_OPTIONS_INIT;
        kofn_report all = KOFN_REPORT_INIT;
        placed p;

        opt.errors = KOFN_ERRORS_PROBABILISTIC;
        opt.late = -1;
        opt.events = wrong;
        opt.event_count = 1;
        up(&p, &k, &opt);
        assert_ok(place(&p, 3000));
        for (size_t i = 0; i < 4; i++)
            assert_at_most(product_error(&p), how == EVEN ? 1e-12 : 1e-9);
        assert_ok(kofn_job_totals(p.job, &all));
        assert_true(all.corrupt > 0);
        down(&p);
    }
}

/* ---- workers that come and go -------------------------------------------- */

static void joiners(void **state)
{
    static const kofn_fault_event come[] = {
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0},
        {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {3, 0, KOFN_FAULT_EVENT_JOIN, 5, 0},
        {4, 0, KOFN_FAULT_EVENT_JOIN, 6, 0},
        {8, 0, KOFN_FAULT_EVENT_LEAVE, 2, 0},
        {8, 0, KOFN_FAULT_EVENT_LEAVE, 3, 0}};
    kofn_report all = KOFN_REPORT_INIT;

    (void)state;
    for (int port = SIM; port <= THREADS; port++) {
        kind k = {"elastic:k=3", 5, 43, 13, 2, KOFN_F64, ROWS, (way)port};
        kofn_options opt = KOFN_OPTIONS_INIT;
        placed p;

        opt.below = KOFN_BELOW_PAUSE;
        opt.late = -1;
        opt.events = come;
        opt.event_count = sizeof come / sizeof *come;
        up(&p, &k, &opt);
        assert_ok(place(&p, 900));
        for (size_t i = 0; i < 10; i++)
            assert_at_most(product_error(&p), 1e-10);
        assert_ok(kofn_job_totals(p.job, &all));
        assert_int_equal(all.left, 4);
        down(&p);
    }
}

/* Workers leave while A is placed. */
static void losses(void **state)
{
    kind k = {"elastic:k=3", 5, 43, 13, 2, KOFN_F64, ROWS, PACKETS};
    placed p;

    (void)state;
    for (size_t at = 8; at < 26; at += 4) { /* in the second reading */
        up(&p, &k, NULL);
        p.loses_at = at;
        p.loses = 2;
        assert_ok(place(&p, 900));
        assert_int_equal(p.calls > at, true);
        assert_at_most(product_error(&p), 1e-10);
        down(&p);
    }
}

static void too_few_left(void **state)
{
    kind k = {"elastic:k=3", 5, 43, 13, 2, KOFN_F64, EVEN, PACKETS};

    (void)state;
    for (int pause = 0; pause < 2; pause++) {
        kofn_options opt = KOFN_OPTIONS_INIT;
        placed p;

        opt.below = pause ? KOFN_BELOW_PAUSE : KOFN_BELOW_REFUSE;
        opt.patience = KOFN_SECOND / 50;
        up(&p, &k, &opt);
        p.loses_at = 9;
        p.loses = 3;
        assert_status(KOFN_TOOFEW, place(&p, 900));
        assert_non_null(strstr(kofn_errmsg(),
                               "2 workers are left while A is placed, and 3 "
                               "are needed"));
        down(&p);
    }
}

static void changes_after(void **state)
{
    kind k = {"elastic:k=3", 5, 43, 13, 2, KOFN_F64, EVEN, PACKETS};
    sgd half = SGD_INIT;
    kofn_matrix u = random_matrix(1, k.m, k.dtype, 5);
    kofn_matrix v = random_matrix(1, k.n, k.dtype, 6), now;
    placed p;

    (void)state;
    up(&p, &k, NULL);
    assert_ok(place(&p, 900));
    half.step = 0.5;
    assert_ok(sgd_update(p.job, 0, &half, &u, &v));
    for (size_t i = 0; i < k.m; i++)
        for (size_t j = 0; j < k.n; j++)
            kf_mat_put(&p.A, i, j,
                       kf_mat_entry(&p.A, i, j) -
                           kf_mat_entry(&u, 0, i) * kf_mat_entry(&v, 0, j) / 2);
    assert_at_most(product_error(&p), 1e-11);
    now = random_matrix(k.m, k.n, k.dtype, 7);
    assert_ok(kofn_fetch(p.job, 0, 0, &now, NULL));
    for (size_t i = 0; i < k.m * k.n; i++)
        assert_at_most(fabs(((double *)now.data)[i] - ((double *)p.A.data)[i]),
                       1e-12);
    down(&p);
    kf_free(u.data);
    kf_free(v.data);
    kf_free(now.data);
}

/* ---- refusals ------------------------------------------------------------ */

static void refuse(const kind *k, const kofn_options *opt, placed *with,
                   kofn_status want, const char *words)
{
    placed p;

    up(&p, k, opt);
    p.fails_at = with->fails_at;
    p.changes_at = with->changes_at;
    if (with->calls) /* a NaN there */
        kf_mat_put(&p.A, with->calls, 2, NAN);
    if (k->how == BOTH)
        kf_mat_put(&p.A, 4, 1, 0);
    assert_status(want, place(&p, 900));
    if (!strstr(kofn_errmsg(), words))
        fail_msg("%s", kofn_errmsg());
    if (want == KOFN_IO ||
        with->changes_at) /* some blocks may have been sent */
        assert_true(kofn_round(p.job, &p.x, &p.y, NULL) < 0);
    down(&p);
}

static void refusals(void **state)
{
    kind k = {"elastic:k=3", 5, 43, 13, 2, KOFN_F64, EVEN, SIM};
    kofn_options keyed = KOFN_OPTIONS_INIT;
    kofn_source none = KOFN_SOURCE_INIT;
    placed p, plain = {.calls = 0};

    (void)state;
    keyed.errors = KOFN_ERRORS_KEYED;
    refuse(&k, &keyed, &plain, KOFN_UNSUITED, "errors = keyed");
    refuse(&k, NULL, &(placed){.calls = 17}, KOFN_NONFINITE, "rows 16 to 23");
    refuse(&k, NULL, &(placed){.fails_at = 2}, KOFN_IO, "");
    refuse(&k, NULL, &(placed){.fails_at = 9}, KOFN_IO, "");
    refuse(&k, NULL, &(placed){.changes_at = 8}, KOFN_INVAL,
           "must not change meanwhile");
    k.how = BOTH;
    refuse(&k, NULL, &plain, KOFN_UNSUITED, "rows and columns of A differ");
    k.how = EVEN;
    k.scheme = "gpd:m=1,n=2,p=2,basis=complex";
    k.workers = 12;
    refuse(&k, NULL, &plain, KOFN_UNSUITED, "need A as a whole");
    k.scheme = "elastic:k=3";
    up(&p, &k, NULL);
    assert_status(KOFN_INVAL, kofn_place_from(p.job, 1, &none));
    assert_status(KOFN_INVAL, kofn_place_from(p.job, 0, &none));
    assert_non_null(strstr(kofn_errmsg(), "set `read`"));
    assert_status(KOFN_INVAL, kofn_place_from(p.job, 0, NULL));
    assert_ok(place(&p, 0));
    assert_status(KOFN_STATE, place(&p, 0));
    down(&p);
}

TEST_FILE(source_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_code,
             "source: products of a matrix that is read by panels are right "
             "(each code and port)"),
        TEST(each_row_twice, "source: each row is read twice"),
        TEST(row_by_row,
             "source: rows and columns of different sizes stay exact"),
        TEST(with_errors_searched,
             "source: wrong results are found without the whole matrix"),
        TEST(joiners, "source: joiners get blocks without another reading"),
        TEST(losses, "source: workers may leave while the matrix is placed"),
        TEST(too_few_left,
             "source: too few workers that are left are an error"),
        TEST(changes_after, "source: the operand may change and be read"),
        TEST(refusals, "source: what needs the whole matrix is refused"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
