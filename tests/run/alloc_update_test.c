/* alloc_update_test.c -- memory runs out at every place in turn of a job with
 * changing operands and workers. The result is a status, never a crash, a leak
 * or a wrong number. */
#include "alloc_rig.h"
#include "rig.h"
#include "sgd.h"

#define M 9
#define N 7
#define BATCH 3
#define OPERANDS 2

static const kofn_fault_event events[] = {
    {2, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
    {2, 0, KOFN_FAULT_EVENT_JOIN, 0, 0},
    {3, 0.5, KOFN_FAULT_EVENT_LEAVE, 2, 0},
    {3, 0.5, KOFN_FAULT_EVENT_JOIN, 0, 0},
};
static const kofn_fault_event flips[] = {
    {2, 0, KOFN_FAULT_EVENT_FLIP, 1, 0},
    {3, 0.5, KOFN_FAULT_EVENT_FLIP, 2, 0},
};

typedef struct setting {
    const char *spec;
    kofn_errors errors;
    bool flips; /* blocks have flipped bits, and are scrubbed */
    double A[M * N], U[BATCH * M], V[BATCH * N];
} setting;

static kofn_matrix view(const double *x, size_t rows, size_t cols)
{
    return (kofn_matrix){(double *)(uintptr_t)x, rows, cols, cols, KOFN_F64};
}

/* Returns the distance from the operand after `changes` changes. */
static double furthest(const setting *s, const double *got, unsigned changes,
                       double step)
{
    double off = 0;

    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            double x = s->A[i * N + j];

            for (size_t k = 0; k < BATCH; k++)
                x -= changes * step * s->U[k * M + i] * s->V[k * N + j];
            off = fmax(off, fabs(got[i * N + j] - x));
        }
    return off;
}

/* Changes the operand once more. If memory ran out for a moment only, the
 * change reached all workers or none, or the job reports the failure. */
static kofn_status change(const setting *s, kofn_job *job, size_t operand,
                          const sgd *c, unsigned changes)
{
    kofn_matrix U = view(s->U, BATCH, M), V = view(s->V, BATCH, N);
    kofn_status st = sgd_update(job, operand, c, &U, &V);
    double got[M * N];
    kofn_matrix now = view(got, M, N);

    if (!st || !atomic_load(&fails_at))
        return st;
    if (kofn_fetch(job, operand, 0, &now, NULL)) {
        assert_int_equal(sgd_update(job, operand, c, &U, &V), KOFN_STATE);
        return st;
    }
    if (furthest(s, got, changes, c->step) > 1e-9 &&
        furthest(s, got, changes + 1, c->step) > 1e-9)
        fail_msg("operand %zu has changed with some workers", operand);
    return st;
}

static kofn_status steps(const setting *s, kofn_job *job)
{
    kofn_matrix A = view(s->A, M, N), U = view(s->U, BATCH, M);
    sgd c = SGD_INIT, none = {0, 0, 0.5, false};
    double to[BATCH * N], got[M * N];
    kofn_matrix out = view(to, BATCH, N), now = view(got, M, N);

    c.step = 0.125;
    for (size_t o = 0; o < OPERANDS; o++)
        TRY(kofn_place_at(job, o, KOFN_DENSE(&A)));
    for (unsigned round = 1; round <= 3; round++) {
        TRY(kofn_put_at(job, round % 2, true, &U, &out, NULL));
        TRY(kofn_take(job, 0, KOFN_NEVER, NULL));
        TRY(change(s, job, 0, &c, round - 1));
    }
    c.momentum = 0.5;
    TRY(change(s, job, 1, &c, 0));
    TRY(sgd_update(job, 1, &none, NULL, NULL));
    if (s->flips)
        TRY(kofn_scrub(job, NULL));
    TRY(kofn_fetch(job, 0, 0, &now, NULL));
    if (furthest(s, got, 3, c.step) > 1e-9)
        fail_msg("operand 0 is %g off", furthest(s, got, 3, c.step));
    TRY(kofn_fetch(job, 1, 0, &now, NULL));
    if (furthest(s, got, 1, c.step) > 1e-9)
        fail_msg("operand 1 is %g off", furthest(s, got, 1, c.step));
    return KOFN_OK;
}

static kofn_status train(const void *ud)
{
    const setting *s = ud;
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, M, N, BATCH, KOFN_F64, false);
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_plan *plan[OPERANDS] = {NULL};
    kofn_job *job = NULL;
    kofn_port *port;
    kofn_status st = KOFN_OK;

    opt.errors = s->errors;
    opt.events = s->flips ? flips : events;
    opt.event_count = s->flips ? 2 : sizeof events / sizeof *events;
    for (size_t o = 0; o < OPERANDS && !st; o++) {
        st = kofn_plan_new(&plan[o], &pb, s->spec, 7, 1);
        if (!st)
            st = kofn_plan_serve_left(plan[o], BATCH);
    }
    if (!st)
        st = kofn_port_sim(&port, 7, NULL);
    if (!st)
        st = kofn_open_all(&job, (const kofn_plan *const *)plan, OPERANDS, port,
                           &opt);
    if (!st)
        st = steps(s, job);
    kofn_close(job);
    for (size_t o = 0; o < OPERANDS; o++)
        kofn_plan_free(plan[o]);
    return st;
}

static void fill(double *x, size_t n, uint64_t seed)
{
    kofn_matrix a = random_matrix(1, n, KOFN_F64, seed);

    memcpy(x, a.data, n * sizeof *x);
    kf_free(a.data);
}

static void try_all(const char *spec, kofn_errors errors, bool flip)
{
    setting s = {.spec = spec, .errors = errors, .flips = flip};

    fill(s.A, M * N, 1);
    fill(s.U, BATCH * M, 2);
    fill(s.V, BATCH * N, 3);
    both_ways(train, &s, KOFN_TOOFEW, test_scale() < 1 ? 3 * SLOWED : SLOWED);
}

static void changing_jobs(void **state)
{
    (void)state;
    try_all("elastic:k=3", KOFN_ERRORS_NONE, false);
    try_all("gpd:m=2,n=1,p=1", KOFN_ERRORS_NONE, false);
}

static void checked_jobs(void **state)
{
    (void)state;
    try_all("gpd:m=2,n=1,p=1", KOFN_ERRORS_ADVERSARIAL, false);
    try_all("gpd:m=2,n=1,p=1", KOFN_ERRORS_ADVERSARIAL, true);
}

TEST_FILE(alloc_update_test)
{
    const struct CMUnitTest tests[] = {
        TEST(changing_jobs,
             "alloc: updates reach all workers or none, or the job says so"),
        TEST(
            checked_jobs,
            "alloc: updates of checked jobs are right or fail (flips, scrubs)"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
