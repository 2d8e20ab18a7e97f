/* alike_test.c -- faulty workers that are wrong in the same way, and faster
 * than the others. Their results agree with each other. They are left out, or
 * the product is refused. A wrong output is never delivered. */
#include "altered_port.h"
#include "rig.h"
#include "sgd.h"

#include "verify/key.h"

typedef enum fault { ZEROS, NEGATIVE, TWICE, CONSTANT, LIES } fault;

/* The simulator, with some workers that send other numbers than they computed.
 */
typedef struct faulty_port {
    altered_port port;
    size_t liars; /* workers 0, 1, ... are faulty */
    fault fault;
} faulty_port;

static double other(fault l, double y)
{
    switch (l) {
    case ZEROS:
        return 0;
    case NEGATIVE:
        return -y;
    case TWICE:
        return 2 * y;
    default:
        return 1;
    }
}

static kofn_status faulty_wait(kofn_port *p, kofn_time until, kofn_time atmost,
                               kf_msg *m)
{
    faulty_port *c = (faulty_port *)p;
    kofn_status st = c->port.sim->wait(c->port.sim, until, atmost, m);
    kofn_matrix *y;

    if (st || m->type != KF_MSG_RESULT || m->worker >= c->liars)
        return st;
    y = kf_buffer_matrix(m->result);
    for (size_t i = 0; i < y->rows; i++)
        for (size_t j = 0; j < y->cols; j++)
            kf_mat_put(y, i, j, other(c->fault, kf_mat_entry(y, i, j)));
    return KOFN_OK;
}

static void faulty_close(kofn_port *p)
{
    faulty_port *c = (faulty_port *)p;

    c->port.sim->close(c->port.sim);
    kf_free(c);
}

static kofn_port *new_faulty_port(size_t workers, size_t liars, fault l)
{
    faulty_port *c = numbers(1, sizeof *c);

    altered_open(&c->port, workers, NULL);
    c->port.base.wait = faulty_wait;
    c->port.base.close = faulty_close;
    for (size_t i = liars; i < workers; i++)
        c->port.sim->slow(c->port.sim, (uint32_t)i, 1e5);
    c->liars = liars;
    c->fault = l;
    return &c->port.base;
}

/* ---- a job --------------------------------------------------------------- */

typedef struct kind {
    const char *spec;
    size_t workers, half; /* (n - k) / 2, rounded down */
    kofn_op op;
    bool sparse;
} kind;

/* A x and A B are tested with a key. The others are only compared. */
static const kind kinds[] = {
    {"mds:k=2", 8, 3, KOFN_MATVEC, false},
    {"mds:k=2,basis=harmonic", 8, 3, KOFN_MATMUL, false},
    {"elastic:k=2", 9, 3, KOFN_MATMUL, false},
    {"polynomial:m=2,p=2", 11, 3, KOFN_MATMUL, false},
    {"matdot:n=2", 9, 3, KOFN_MATMUL, false},
    {"mds:k=2", 8, 3, KOFN_MATVEC, true},
    {"gpd:m=2,n=2,p=1,sub=vum", 12, 3, KOFN_LEFT, false},
    {"pcr:r=6", 9, 3, KOFN_GRAM, false},
};
#define KINDS (sizeof kinds / sizeof *kinds)

typedef struct job {
    rig x;
    kofn_options opt;
} job;

static void job_up(job *j, const kind *k, kofn_errors errors, size_t liars,
                   fault l, kofn_dtype dtype)
{
    rig_kind what = {.spec = k->spec,
                     .workers = k->workers,
                     .m = 97,
                     .n = 61,
                     .p = k->op & (KOFN_MATVEC | KOFN_GRAM) ? 1 : 7,
                     .op = k->op,
                     .sparse = k->sparse,
                     .dtype = dtype};

    rig_inputs(&j->x, &what);
    kofn_options_begin(&j->opt);
    j->opt.errors = errors;
    j->opt.quarantine = 1000000;
    assert_ok(kofn_open(&j->x.job, j->x.plan,
                        new_faulty_port(k->workers, liars, l), &j->opt));
    assert_ok(rig_place(&j->x));
}

static void check_names(const kofn_report *rep, size_t liars)
{
    for (size_t i = liars; i < rep->workers; i++)
        if (rep->located[i])
            fail_msg("worker %zu was named and is honest", i);
}

/* Half of the workers beyond k are wrong in the same way. */
static void half_excluded(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS * LIES; i++) {
        const kind *k = &kinds[i / LIES];
        bool single = i % 3 == 0 && !k->sparse && k->op != KOFN_GRAM;
        kofn_report rep = KOFN_REPORT_INIT;
        job j = {0};

        job_up(&j, k, KOFN_ERRORS_PROBABILISTIC, k->half, (fault)(i % LIES),
               single ? KOFN_F32 : KOFN_F64);
        for (uint64_t round = 1; round <= 2; round++) {
            rig_spoil(&j.x);
            if (kofn_round(j.x.job, &j.x.x, &j.x.y, &rep))
                fail_msg("%s, fault %zu: %s", k->spec, i % LIES, kofn_errmsg());
            assert_true(rig_error(&j.x) < (single ? 1e-3 : 1e-9));
            check_names(&rep, k->half);
            rig_next(&j.x, 100 + round);
        }
        rig_down(&j.x);
    }
}

/* Detection alone only reports that something is wrong. */
static void detected(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS * LIES; i++) {
        const kind *k = &kinds[i / LIES];
        job j = {0};

        job_up(&j, k, KOFN_ERRORS_DETECT, k->half, (fault)(i % LIES), KOFN_F64);
        assert_int_equal(kofn_round(j.x.job, &j.x.x, &j.x.y, NULL),
                         KOFN_CORRUPT);
        rig_down(&j.x);
    }
}

/* The key of A, which workers do not know, shows the error for any number of
 * faulty workers. */
static void majority(void **state)
{
    static const kofn_errors errors[] = {
        KOFN_ERRORS_DETECT, KOFN_ERRORS_PROBABILISTIC, KOFN_ERRORS_ADVERSARIAL};

    (void)state;
    for (size_t i = 0; kinds[i].op != KOFN_LEFT; i++)
        for (size_t l = 0; l < LIES * 3; l++) {
            const kind *k = &kinds[i];
            job j = {0};

            job_up(&j, k, errors[l / LIES], k->workers, (fault)(l % LIES),
                   KOFN_F64);
            if (kofn_round(j.x.job, &j.x.x, &j.x.y, NULL) != KOFN_CORRUPT)
                fail_msg("%s: fault %zu was delivered", k->spec, l);
            rig_down(&j.x);
        }
}

/* A product of some strips has no key, so more answers are compared. */
static void some_strips(void **state)
{
    kofn_report rep = KOFN_REPORT_INIT;
    double *y;
    job j = {0};

    (void)state;
    job_up(&j, &kinds[0], KOFN_ERRORS_PROBABILISTIC, kinds[0].half, TWICE,
           KOFN_F64);
    assert_ok(kofn_limit(j.x.job, 3, 11));
    rig_spoil(&j.x);
    assert_ok(kofn_round(j.x.job, &j.x.x, &j.x.y, &rep));
    y = j.x.y.data;
    for (size_t i = 3; i < 11; i++)
        assert_true(fabs(y[i] - j.x.want[i]) < 1e-9);
    check_names(&rep, kinds[0].half);
    rig_down(&j.x);
}

/* The key changes with A. Honest rounds pass, and faulty workers are still
 * found. */
static void changing_key(void **state)
{
    kofn_matrix U = random_matrix(3, 97, KOFN_F64, 11);
    kofn_matrix V = random_matrix(3, 61, KOFN_F64, 12);
    double *M = numbers(97 * 61, 8);

    (void)state;
    for (size_t liars = 0; liars <= 3; liars += 3) {
        kofn_report rep = KOFN_REPORT_INIT;
        double *A, *placed;
        job j = {0};

        memset(M, 0, 97 * 61 * sizeof *M);
        job_up(&j, &kinds[1], KOFN_ERRORS_PROBABILISTIC, liars, NEGATIVE,
               KOFN_F64);
        placed = j.x.A.data; /* blocks may point into it */
        j.x.A.data = A = as_doubles(&j.x.A);
        for (unsigned t = 0; t < 4; t++) {
            sgd c = SGD_INIT;

            c.step = 0.1;
            c.decay = 0.01;
            c.momentum = t % 4 == 3 ? 0 : 0.5;
            c.nesterov = t % 2;
            assert_ok(sgd_update(j.x.job, 0, &c, &U, &V));
            for (size_t i = 0; i < 97; i++)
                for (size_t n = 0; n < 61; n++) {
                    double *a = A + i * 61 + n, *m = M + i * 61 + n;
                    double G = c.decay * *a;

                    for (size_t k = 0; k < 3; k++)
                        G += ((double *)U.data)[k * 97 + i] *
                             ((double *)V.data)[k * 61 + n];
                    *m = c.momentum * *m + G;
                    *a -= c.step * (c.nesterov ? G + c.momentum * *m : *m);
                    *m *= c.momentum != 0;
                }
            rig_next(&j.x, t);
            rig_spoil(&j.x);
            assert_ok(kofn_round(j.x.job, &j.x.x, &j.x.y, &rep));
            assert_true(rig_error(&j.x) < 1e-9);
            check_names(&rep, liars);
        }
        rig_down(&j.x);
        kf_free(placed);
    }
    kf_free(U.data);
    kf_free(V.data);
    kf_free(M);
}

/* The key has at most the size of the matrix. It finds an error in one entry.
 */
static void sparse_key(void **state)
{
    enum { SIDE = 20000 };
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, SIDE, SIDE, 1, KOFN_F64, true);
    size_t *ptr = numbers(SIDE + 1, sizeof *ptr);
    uint32_t *col = numbers(SIDE, sizeof *col);
    double *ones = numbers(SIDE, 8), *x = numbers(SIDE, 8);
    double *y = numbers(SIDE, 8), **norm = numbers(1, sizeof *norm);
    const kofn_matrix in = {x, SIDE, 1, 1, KOFN_F64};
    const kofn_matrix out = {y, SIDE, 1, 1, KOFN_F64};
    const kf_back back = {.by = 1};
    double one = 1e6;
    kf_keyed test = {.out = &out,
                     .back = &back,
                     .in = &in,
                     .col = &one,
                     .cols = 1,
                     .error = 1e-14};
    kofn_sparse A = {SIDE, SIDE, ptr, col, ones};
    kofn_plan *plan;
    kf_resident r;
    kf_key *k;
    bool agrees;

    (void)state;
    for (uint32_t i = 0; i < SIDE; i++) { /* a cycle */
        ptr[i + 1] = i + 1;
        col[i] = (i + 1) % SIDE;
        ones[i] = 1;
        x[i] = i;
        y[i] = (i + 1) % SIDE;
    }
    assert_ok(kofn_plan_new(&plan, &pb, "uncoded", 1, 1));
    test.plan = plan;
    assert_ok(kf_resident_sparse(&r, test.plan, &A));
    norm[0] = ones;
    assert_ok(kf_key_new(&k, &r, norm, NULL, 5));
    assert_true(k->runs * k->cols * KF_KEY_SUMS <= 3 * (size_t)SIDE);
    assert_ok(kf_key_test(k, &test, &agrees));
    assert_true(agrees);
    y[SIDE - 3] += 1;
    assert_ok(kf_key_test(k, &test, &agrees));
    assert_false(agrees);
    kf_key_free(k);
    kf_resident_free(&r);
    kofn_plan_free(plan);
    kf_free(norm);
    kf_free(ptr);
    kf_free(col);
    kf_free(ones);
    kf_free(x);
    kf_free(y);
}

/* ---- answers that are tested one by one ---------------------------------- */

static bool is_keyed(const kind *k)
{
    return k->op == KOFN_MATVEC || k->op == KOFN_MATMUL;
}

/* With a key, k right answers suffice, and every wrong one is located. */
static void keyed(void **state)
{
    (void)state;
    for (size_t i = 0; i < KINDS * LIES; i++) {
        const kind *k = &kinds[i / LIES];
        bool single = i % 3 == 1 && !k->sparse;
        kofn_report rep = KOFN_REPORT_INIT;
        size_t liars = 2 * k->half;
        job j = {0};

        if (!is_keyed(k))
            continue;
        job_up(&j, k, KOFN_ERRORS_KEYED, liars, (fault)(i % LIES),
               single ? KOFN_F32 : KOFN_F64);
        for (uint64_t round = 1; round <= 3; round++) {
            rig_spoil(&j.x);
            if (kofn_round(j.x.job, &j.x.x, &j.x.y, &rep))
                fail_msg("%s, fault %zu: %s", k->spec, i % LIES, kofn_errmsg());
            assert_true(rig_error(&j.x) < (single ? 1e-3 : 1e-9));
            check_names(&rep, liars);
            assert_true(rep.corrupt > 0 && rep.floor > 0);
            rig_next(&j.x, 100 + round);
        }
        rig_down(&j.x);
    }
}

static void keyed_honest(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * KINDS; i++) {
        const kind *k = &kinds[i / 2];
        kofn_report rep = KOFN_REPORT_INIT;
        job j = {0};

        if (!is_keyed(k))
            continue;
        job_up(&j, k, KOFN_ERRORS_KEYED, 0, ZEROS, KOFN_F64);
        if (i % 2)
            assert_ok(kofn_limit(j.x.job, 3, 7));
        assert_ok(kofn_round(j.x.job, &j.x.x, &j.x.y, &rep));
        assert_int_equal(rep.corrupt, 0);
        rig_down(&j.x);
    }
}

/* One answer too few is right. */
static void keyed_too_few(void **state)
{
    job j = {0};

    (void)state;
    job_up(&j, &kinds[0], KOFN_ERRORS_KEYED, 7, TWICE, KOFN_F64);
    assert_int_equal(kofn_round(j.x.job, &j.x.x, &j.x.y, NULL), KOFN_CORRUPT);
    assert_non_null(strstr(kofn_errmsg(), "1 answers are right and 2"));
    rig_down(&j.x);
}

static void keyed_refused(void **state)
{
    kofn_options opt = KOFN_OPTIONS_INIT;

    (void)state;
    opt.errors = KOFN_ERRORS_KEYED;
    for (size_t i = 0; i < KINDS; i++) {
        rig_kind what = {.spec = kinds[i].spec,
                         .workers = kinds[i].workers,
                         .m = 97,
                         .n = 61,
                         .p = kinds[i].op == KOFN_LEFT ? 7 : 1,
                         .op = kinds[i].op};
        kofn_port *port;
        rig r;

        if (is_keyed(&kinds[i]))
            continue;
        rig_inputs(&r, &what);
        assert_ok(kofn_port_sim(&port, kinds[i].workers, NULL));
        assert_status(KOFN_UNSUITED, kofn_open(&r.job, r.plan, port, &opt));
        rig_down(&r);
    }
}

TEST_FILE(alike_test)
{
    const struct CMUnitTest tests[] = {
        TEST(half_excluded,
             "alike: half of the spare workers may agree on a wrong result"),
        TEST(detected,
             "alike: detection fails a round with agreeing wrong results"),
        TEST(majority, "alike: no majority of wrong results passes the key"),
        TEST(some_strips,
             "alike: a product of some strips leaves out the faulty workers"),
        TEST(changing_key, "alike: the key follows updates of its operand"),
        TEST(
            sparse_key,
            "alike: a sparse matrix's key is small, and finds one wrong entry"),
        TEST(keyed,
             "keyed: any k right answers suffice, only wrong ones are named"),
        TEST(keyed_honest, "keyed: no honest answer is rejected"),
        TEST(keyed_too_few,
             "keyed: a round with one right answer too few fails"),
        TEST(keyed_refused, "keyed: operations without a key are refused"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("alike", tests, NULL, NULL);
}
