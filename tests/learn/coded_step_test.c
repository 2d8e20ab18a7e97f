/* coded_step_test.c -- one step of training on coded weights, product by
 * product. Covers every code for both products and every set of workers that
 * may answer first. Compares both products of every operand, its change and
 * its reading with plain BLAS. The error must be within the prediction. */
#include "result_filter.h"
#include "rig.h"
#include "sgd.h"

#include "code/code.h"

#define OPERANDS 2
#define SEATS 8
/* The prediction holds for many numbers. For few numbers this factor is added.
 */
#define FEW 4

/* `small` has sizes that no grid divides. With `long_ones` blocks are rebuilt
 * from others a few strips at a time, by the number that a product moves. */
typedef struct sizes {
    size_t wide[OPERANDS + 1], batch;
} sizes;
static const sizes small = {{11, 13, 7}, 4}, long_ones = {{61, 90, 43}, 1};

/* ---- sets of workers that suffice ---------------------------------------- */

enum { RIGHT, LEFT, READ, USES };

/* The minimal sets of workers that determine a result. */
typedef struct minimal_sets {
    uint32_t *set; /* bit sets */
    size_t count;
} minimal_sets;

static bool decodes(kf_code *code, uint32_t bits, size_t workers)
{
    uint32_t seats[32];
    kofn_decoder *d;
    size_t n = 0;
    kofn_status st;

    for (uint32_t w = 0; w < workers; w++)
        if (bits >> w & 1)
            seats[n++] = w;
    if (n < code->plan->layout.enough)
        return false;
    st = kf_decoder_new(&d, code, seats, n, false);
    if (st == KOFN_OK)
        kf_decoder_free(d);
    return st == KOFN_OK;
}

static void find_minimal_sets(minimal_sets *l, const kofn_plan *plan,
                              size_t workers)
{
    size_t all = (size_t)1 << workers;
    bool *can = numbers(all, sizeof *can);
    kf_code *code;

    assert_ok(kf_code_new(&code, plan));
    *l = (minimal_sets){numbers(all, sizeof *l->set), 0};
    for (uint32_t bits = 1; bits < all; bits++) {
        bool smaller = false;

        for (size_t w = 0; w < workers; w++)
            smaller |= can[bits & ~(UINT32_C(1) << w)];
        can[bits] = smaller || decodes(code, bits, workers);
        if (can[bits] && !smaller)
            l->set[l->count++] = bits;
    }
    kf_code_free(code);
    kf_free(can);
    assert_true(l->count > 0);
}

/* ---- a job --------------------------------------------------------------- */

typedef struct step_case {
    const char *spec;
    size_t workers, answers[2]; /* answers that suffice; 0: no such number */
    const sizes *of;
    kofn_dtype dtype;
    kofn_plan *plan[OPERANDS], *reader[OPERANDS];
    kofn_matrix A[OPERANDS];              /* as placed */
    kofn_matrix is[OPERANDS];             /* the current matrix */
    kofn_matrix U[OPERANDS], V[OPERANDS]; /* by which it changes */
    double *M[OPERANDS];                  /* velocity */
    /* Upper bounds on the norms of A with all that was added, and of M. */
    double size[OPERANDS], speed[OPERANDS];
    sgd change;
    minimal_sets minimal_sets[OPERANDS][USES];
    kofn_matrix in[OPERANDS][2], out[OPERANDS][USES];
    result_filter filter;
    kofn_job *job;
} step_case;

/* Returns false if too few workers are given. */
static bool plan_all(step_case *k)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        kofn_problem pb =
            KOFN_PROBLEM_INIT(KOFN_MATMUL, k->of->wide[o + 1], k->of->wide[o],
                              k->of->batch, k->dtype, false);

        if (kofn_plan_new(&k->plan[o], &pb, k->spec, k->workers, 5)) {
            assert_int_equal(o, 0);
            return false;
        }
        if (kofn_plan_serve_left(k->plan[o], k->of->batch)) {
            assert_int_equal(o, 0);
            kofn_plan_free(k->plan[o]);
            return false;
        }
        assert_ok(kf_code_reader(&k->reader[o], k->plan[o]));
    }
    return true;
}

static kofn_matrix noise(const step_case *k, size_t rows, size_t cols,
                         size_t seed)
{
    return random_matrix(rows, cols, k->dtype, seed);
}

static bool case_up(step_case *k)
{
    if (!plan_all(k))
        return false;
    for (size_t o = 0; o < OPERANDS; o++) {
        size_t m = k->of->wide[o + 1], n = k->of->wide[o], r = k->of->batch;

        k->A[o] = noise(k, m, n, 10 + o);
        k->is[o] = noise(k, m, n, 10 + o);
        k->M[o] = numbers(m * n, 8);
        k->U[o] = noise(k, r, m, 20 + o);
        k->V[o] = noise(k, r, n, 30 + o);
        k->in[o][RIGHT] = noise(k, n, r, 40 + o);
        k->in[o][LEFT] = noise(k, r, m, 50 + o);
        k->out[o][RIGHT] = noise(k, m, r, 60);
        k->out[o][LEFT] = noise(k, r, n, 60);
        k->out[o][READ] = noise(k, m, n, 60);
    }
    return true;
}

static void sets_up(step_case *k)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        find_minimal_sets(&k->minimal_sets[o][RIGHT], k->plan[o], k->workers);
        find_minimal_sets(&k->minimal_sets[o][LEFT], k->plan[o]->left,
                          k->workers);
        find_minimal_sets(&k->minimal_sets[o][READ], k->reader[o], k->workers);
    }
}

static void case_down(step_case *k)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        kf_free(k->A[o].data);
        kf_free(k->is[o].data);
        kf_free(k->M[o]);
        kf_free(k->U[o].data);
        kf_free(k->V[o].data);
        for (size_t u = 0; u < USES; u++) {
            kf_free(k->minimal_sets[o][u].set);
            kf_free(k->out[o][u].data);
        }
        kf_free(k->in[o][RIGHT].data);
        kf_free(k->in[o][LEFT].data);
        kofn_plan_free(k->reader[o]);
        kofn_plan_free(k->plan[o]);
    }
}

static void copy(kofn_matrix *to, const kofn_matrix *from)
{
    memcpy(to->data, from->data,
           from->rows * from->cols * kf_dtype_size(from->dtype));
}

/* Opens a new job, so that its rounding is that of one step. */
static void job_up(step_case *k)
{
    kofn_options opt = KOFN_OPTIONS_INIT;

    opt.late = -1;
    opt.lease = -1;
    opt.max_error = 1e-2; /* also for monomials in single precision */
    assert_ok(kofn_open_all(&k->job, (const kofn_plan *const *)k->plan,
                            OPERANDS, filter_new(&k->filter, k->workers),
                            &opt));
    for (size_t o = 0; o < OPERANDS; o++) {
        assert_ok(kofn_place_at(k->job, o, KOFN_DENSE(&k->A[o])));
        copy(&k->is[o], &k->A[o]);
        memset(k->M[o], 0, k->A[o].rows * k->A[o].cols * 8);
        k->size[o] = rig_norm(&k->A[o]);
        k->speed[o] = 0;
    }
}

static const sgd once = {0.3, 0.1, 0, false};
static const sgd again = {0.3, 0.1, 0.5, false};

/* ---- single operations --------------------------------------------------- */

/* ||got - want|| relative to `scale`. */
static double off_by(const kofn_matrix *got, const double *want, double scale)
{
    double *x = as_doubles(got), sum = 0;

    for (size_t i = 0; i < got->rows * got->cols; i++)
        sum += (x[i] - want[i]) * (x[i] - want[i]);
    kf_free(x);
    return sqrt(sum) / scale;
}

static void check_error(const step_case *k, const char *what, size_t o,
                        const double *want, const kofn_matrix *got,
                        double scale, const kofn_report *rep)
{
    double e = off_by(got, want, scale);

    if (!(e <= FEW * rep->predicted))
        fail_msg("%s of %zu, operand %zu: %s of workers %x is %.2e off, "
                 "predicted %.2e",
                 k->spec, k->workers, o, what, k->filter.open, e,
                 rep->predicted);
}

static void product(step_case *k, size_t o, size_t use)
{
    const kofn_matrix *A = &k->is[o], *x = &k->in[o][use];
    kofn_matrix *y = &k->out[o][use];
    double *want = use == LEFT ? plain_product(x, A) : plain_product(A, x);
    kofn_report rep = KOFN_REPORT_INIT;

    memset(y->data, 0xff, y->rows * y->cols * kf_dtype_size(k->dtype));
    assert_ok(kofn_put_at(k->job, o, use == LEFT, x, y, NULL));
    assert_ok(kofn_take(k->job, 0, KOFN_NEVER, &rep));
    check_error(k, use == LEFT ? "in A" : "A in", o, want, y,
                k->size[o] * rig_norm(x) /
                    sqrt((double)(use == LEFT ? A->rows : A->cols)),
                &rep);
    kf_free(want);
}

/* M = momentum M + U' V + decay A; A -= step M, by one BLAS call and sums. */
static void change(step_case *k, size_t o)
{
    const sgd *c = &k->change;
    double *A = as_doubles(&k->is[o]), *U = as_doubles(&k->U[o]);
    double *V = as_doubles(&k->V[o]), *M = k->M[o];
    size_t m = k->A[o].rows, n = k->A[o].cols;

    assert_ok(sgd_update(k->job, o, c, &k->U[o], &k->V[o]));
    for (size_t i = 0; i < m * n; i++)
        M[i] = c->momentum * M[i] + c->decay * A[i];
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)n,
                (int)k->of->batch, 1, U, (int)m, V, (int)n, 1, M, (int)n);
    for (size_t i = 0; i < m * n; i++) {
        A[i] -= c->step * M[i];
        if (k->dtype == KOFN_F64)
            ((double *)k->is[o].data)[i] = A[i];
        else
            ((float *)k->is[o].data)[i] = (float)A[i];
    }
    k->speed[o] = c->momentum * k->speed[o] + c->decay * k->size[o] +
                  rig_norm(&k->U[o]) * rig_norm(&k->V[o]);
    k->size[o] += c->step * k->speed[o];
    kf_free(A);
    kf_free(U);
    kf_free(V);
}

static void fetch(step_case *k, size_t o)
{
    double *want = as_doubles(&k->is[o]);
    kofn_report rep = KOFN_REPORT_INIT;

    assert_ok(kofn_fetch(k->job, o, 0, &k->out[o][READ], &rep));
    check_error(k, "A", o, want, &k->out[o][READ], k->size[o], &rep);
    kf_free(want);
}

/* ---- any first answers --------------------------------------------------- */

static void pass_results(step_case *k, size_t o, size_t use, size_t t)
{
    const minimal_sets *l = &k->minimal_sets[o][use];

    k->filter.open = l->set[t % l->count];
}

/* Computes each product from another set, before the weights change and after.
 */
static void step(step_case *k, size_t t)
{
    job_up(k);
    for (size_t after = 0; after < 2; after++) {
        for (size_t o = 0; o < OPERANDS; o++) {
            pass_results(k, o, RIGHT, t + o);
            product(k, o, RIGHT);
        }
        for (size_t o = OPERANDS; o > 0; o--) {
            pass_results(k, o - 1, LEFT, t + o);
            product(k, o - 1, LEFT);
        }
        for (size_t o = 0; o < OPERANDS && !after; o++)
            change(k, o);
    }
    for (size_t o = 0; o < OPERANDS; o++) {
        pass_results(k, o, READ, t + o);
        fetch(k, o);
    }
    kofn_close(k->job);
}

static size_t most_sets(const step_case *k)
{
    size_t most = 0;

    for (size_t o = 0; o < OPERANDS; o++)
        for (size_t u = 0; u < USES; u++)
            most = kf_max(most, k->minimal_sets[o][u].count);
    return most;
}

static size_t choices(size_t n, size_t k)
{
    return k == 0 ? 1 : choices(n - 1, k - 1) * n / k;
}

/* Fails unless any `answers` workers determine the result and no fewer do.
 * With exactly that number of workers, special points may let fewer suffice. */
static void check_set_sizes(const step_case *k, size_t use, size_t answers)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        const minimal_sets *l = &k->minimal_sets[o][use];

        if (l->count != choices(k->workers, answers))
            fail_msg(
                "%s, use %zu: not any %zu of %zu workers determine it, but "
                "%zu sets, as %x",
                k->spec, use, answers, k->workers, l->count, l->set[0]);
        for (size_t i = 0; i < l->count; i++)
            assert_int_equal(__builtin_popcount(l->set[i]), answers);
    }
}

/* Tries all sets, or an evenly spaced sample. Returns their number. */
static size_t try_sets(step_case k)
{
    size_t sets, each = often(1000) < 1000 ? 7 : 1;

    if (!case_up(&k))
        return 0;
    sets_up(&k);
    for (size_t use = RIGHT; use <= LEFT; use++)
        if (k.answers[use] && k.workers == SEATS)
            check_set_sizes(&k, use, k.answers[use]);
    sets = most_sets(&k);
    for (size_t t = 0; t < sets; t += each)
        step(&k, t);
    case_down(&k);
    return sets;
}

static void any_first_answers(void **state)
{
    static const struct {
        const char *spec;
        size_t answers[2];
    } t[] = {
        {"gpd:m=2,n=2,p=1", {5, 6}},
        {"gpd:m=2,n=2,p=1,sub=vum", {6, 5}},
        {"gpd:m=1,n=2,p=1", {3, 2}},
        {"gpd:m=3,n=1,p=1", {3, 5}},
        {"gpd:m=1,n=2,p=2", {0}},
        {"gpd:m=2,n=2,p=1,basis=monomial", {5, 6}},
        {"polydot:m=2,n=2,p=1", {6, 5}},
        {"matdot:n=3", {5, 3}},
        {"polynomial:m=3,p=1,basis=circle", {3, 5}},
        {"grid:m=2,n=2", {0}},
        {"grid:m=2,n=2,copies=2", {0}},
        {"grid:m=2,n=2,m2=3,n2=3", {0}},
    };
    size_t all = 0;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        step_case k = {.spec = t[i].spec, .of = &small, .change = once};
        size_t had = 0;

        memcpy(k.answers, t[i].answers, sizeof k.answers);
        for (k.workers = SLOWED > 1 ? SEATS : 1; k.workers <= SEATS;
             k.workers++)
            had += try_sets(k);
        k.workers = SEATS;
        k.dtype = KOFN_F32;
        had += try_sets(k);
        assert_true(had > 0);
        all += had;
    }
    print_message("%zu steps\n", all);
}

/* ---- any remaining workers ----------------------------------------------- */

/* An elastic code divides its products among the workers that are up. The
 * others leave before the step, or one after the other during its first
 * products. */
static void try_without(step_case *k, uint32_t gone, bool before)
{
    uint32_t left = gone;

    job_up(k);
    product(k, 1, RIGHT);
    if (before)
        k->filter.gone = gone;
    for (size_t after = 0; after < 2; after++) {
        for (size_t use = RIGHT; use <= LEFT; use++)
            for (size_t o = 0; o < OPERANDS; o++) {
                if (!before && left) {
                    k->filter.leaver = (uint32_t)__builtin_ctz(left);
                    k->filter.leaves_at = k->filter.passed + 2;
                    left &= left - 1;
                }
                product(k, o, use);
            }
        for (size_t o = 0; o < OPERANDS && !after; o++)
            change(k, o);
    }
    for (size_t o = 0; o < OPERANDS; o++)
        fetch(k, o);
    kofn_close(k->job);
}

static void any_remaining_workers(void **state)
{
    static const char *const specs[] = {
        "elastic:k=5", "elastic:k=5,cut=columns", "elastic:k=6"};

    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (size_t wide32 = 0; wide32 < 2; wide32++) {
            step_case k = {.spec = specs[s],
                           .workers = SEATS,
                           .of = &small,
                           .change = once,
                           .dtype = wide32 ? KOFN_F32 : KOFN_F64};
            size_t each = often(1000) < 1000 || wide32 ? 5 : 1;

            assert_true(case_up(&k));
            for (uint32_t gone = 0; gone < 1u << SEATS; gone += (uint32_t)each)
                if ((size_t)__builtin_popcount(gone) <=
                    SEATS - k.plan[0]->layout.threshold)
                    for (size_t before = 0; before < 2; before++)
                        try_without(&k, gone, before);
            case_down(&k);
        }
}

/* ---- joining workers ----------------------------------------------------- */

#define SETTLED (2 * SEATS) /* messages until all workers have a block */

static void whole_step(step_case *k)
{
    for (size_t use = RIGHT; use <= LEFT; use++)
        for (size_t o = 0; o < OPERANDS; o++)
            product(k, o, use);
    for (size_t o = 0; o < OPERANDS; o++)
        change(k, o);
}

/* Returns all workers except the joiner and the number that determines A with
 * it. Of the others, those with the lowest numbers from `first` on stay. */
static uint32_t all_but(const step_case *k, size_t first)
{
    size_t stay = k->reader[0]->layout.threshold - 1;
    uint32_t gone = 0;

    for (uint32_t i = 0; i < SEATS; i++) {
        uint32_t w = (uint32_t)((first + i) % SEATS);

        if (w == k->filter.leaver || stay == 0)
            gone |= UINT32_C(1) << w;
        else
            stay--;
    }
    return gone & ~(UINT32_C(1) << k->filter.leaver);
}

/* One worker leaves, and after a number of messages another joins. Returns
 * false if too few messages are sent. At the end what the joiner holds is part
 * of A. */
static bool try_join(step_case *k, size_t leaves_at, size_t joins_at)
{
    kofn_progress p = KOFN_PROGRESS_INIT;
    bool came;

    job_up(k);
    k->filter.leaver = (uint32_t)(joins_at % SEATS);
    k->filter.leaves_at = leaves_at;
    k->filter.joins_at = joins_at;
    for (size_t i = 0; i < 3; i++)
        whole_step(k);
    came = k->filter.joins_at == FILTER_NEVER;
    for (size_t i = 0; came && i < 20; i++) {
        kofn_job_progress(k->job, &p);
        if (p.live == SEATS)
            break;
        assert_true(i < 19);
        whole_step(k);
    }
    if (came) {
        whole_step(k);
        k->filter.gone = all_but(k, joins_at);
        for (size_t o = 0; o < OPERANDS; o++)
            fetch(k, o);
    }
    kofn_close(k->job);
    return came;
}

static void joins_at_any_message(void **state)
{
    static const char *const specs[] = {"gpd:m=2,n=2,p=1", "elastic:k=5",
                                        "matdot:n=3"};

    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        step_case k = {.spec = specs[s],
                       .workers = SEATS,
                       .of = &long_ones,
                       .change = again};
        size_t each = SLOWED > 1 ? 7 : 1, at = SETTLED;

        assert_true(case_up(&k));
        while (try_join(&k, SETTLED, at) && try_join(&k, at, at))
            at += each;
        print_message("%s: %zu places\n", specs[s], at - SETTLED);
        assert_true(at > SETTLED + 40);
        case_down(&k);
    }
}

TEST_FILE(coded_step_test)
{
    const struct CMUnitTest tests[] = {
        TEST(any_first_answers,
             "coded: any set of first answers gives each product of a step"),
        TEST(any_remaining_workers,
             "coded: an elastic step survives the loss of any workers"),
        TEST(joins_at_any_message,
             "coded: a worker may join at any message of a step"),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
