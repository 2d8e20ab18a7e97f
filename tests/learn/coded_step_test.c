/* coded_step_test.c -- a step of training on coded weights, product by product,
 * for every code of both products and every set of workers that may be the
 * first: both products of every operand, its change, and what is read of it,
 * against plain BLAS and as near as was predicted. */
#include "gate.h"
#include "rig.h"

#include "code/code.h"

#define OPERANDS 2
#define SEATS 8
/* What is predicted holds for many numbers; so many times that for few. */
#define FEW 4

/* Sizes that no grid divides; and such that blocks are made of others' a few
 * strips at a time, as many as move what a product does. */
typedef struct sizes {
    size_t wide[OPERANDS + 1], batch;
} sizes;
static const sizes small = {{11, 13, 7}, 4}, long_ones = {{61, 90, 43}, 1};

/* ---- what any set is of -------------------------------------------------- */

enum { RIGHT, LEFT, READ, USES };

/* The sets that determine it, and would not without any one of theirs. */
typedef struct least {
    uint32_t *set; /* bits */
    size_t count;
} least;

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

static void least_of(least *l, const kofn_plan *plan, size_t workers)
{
    size_t all = (size_t)1 << workers;
    bool *can = numbers(all, sizeof *can);
    kf_code *code;

    assert_ok(kf_code_new(&code, plan));
    *l = (least){numbers(all, sizeof *l->set), 0};
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

typedef struct kit {
    const char *spec;
    size_t workers, answers[2]; /* that are needed; 0: not any so many do */
    const sizes *of;
    kofn_dtype dtype;
    kofn_plan *plan[OPERANDS], *reader[OPERANDS];
    kofn_matrix A[OPERANDS];  /* as it was placed, ...                  */
    kofn_matrix is[OPERANDS]; /* ... as it is, and what it is ...       */
    kofn_matrix U[OPERANDS], V[OPERANDS];   /* ... changed by             */
    double *M[OPERANDS];                    /* its velocity               */
    double size[OPERANDS], speed[OPERANDS]; /* of A and of all that was added,
                                               and of M, in norm at the most */
    kofn_change change;
    least least[OPERANDS][USES];
    kofn_matrix in[OPERANDS][2], out[OPERANDS][USES];
    gate gate;
    kofn_job *job;
} kit;

/* False: so few workers cannot. */
static bool plan_all(kit *k)
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

static kofn_matrix noise(const kit *k, size_t rows, size_t cols, size_t seed)
{
    return random_matrix(rows, cols, k->dtype, seed);
}

static bool kit_up(kit *k)
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

static void sets_up(kit *k)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        least_of(&k->least[o][RIGHT], k->plan[o], k->workers);
        least_of(&k->least[o][LEFT], k->plan[o]->left, k->workers);
        least_of(&k->least[o][READ], k->reader[o], k->workers);
    }
}

static void kit_down(kit *k)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        kf_free(k->A[o].data);
        kf_free(k->is[o].data);
        kf_free(k->M[o]);
        kf_free(k->U[o].data);
        kf_free(k->V[o].data);
        for (size_t u = 0; u < USES; u++) {
            kf_free(k->least[o][u].set);
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

/* A job of its own: what rounds is that of one step. */
static void job_up(kit *k)
{
    kofn_options opt = KOFN_OPTIONS_INIT;

    opt.late = -1;
    opt.lease = -1;
    opt.tolerance = 1e-2; /* of monomials in single precision, too */
    assert_ok(kofn_open_all(&k->job, (const kofn_plan *const *)k->plan,
                            OPERANDS, gate_new(&k->gate, k->workers), &opt));
    for (size_t o = 0; o < OPERANDS; o++) {
        assert_ok(kofn_place_at(k->job, o, KOFN_DENSE(&k->A[o])));
        copy(&k->is[o], &k->A[o]);
        memset(k->M[o], 0, k->A[o].rows * k->A[o].cols * 8);
        k->size[o] = rig_norm(&k->A[o]);
        k->speed[o] = 0;
    }
}

static const kofn_change once = {sizeof once, 0.3, 0.1, 0, false};
static const kofn_change again = {sizeof again, 0.3, 0.1, 0.5, false};

/* ---- one thing at a time ------------------------------------------------- */

/* ||got - want|| by `scale`. */
static double off_by(const kofn_matrix *got, const double *want, double scale)
{
    double *x = as_doubles(got), sum = 0;

    for (size_t i = 0; i < got->rows * got->cols; i++)
        sum += (x[i] - want[i]) * (x[i] - want[i]);
    kf_free(x);
    return sqrt(sum) / scale;
}

static void near_enough(const kit *k, const char *what, size_t o,
                        const double *want, const kofn_matrix *got,
                        double scale, const kofn_report *rep)
{
    double e = off_by(got, want, scale);

    if (!(e <= FEW * rep->predicted))
        fail_msg("%s of %zu, operand %zu: %s of workers %x is %.2e off and "
                 "%.2e was predicted",
                 k->spec, k->workers, o, what, k->gate.open, e, rep->predicted);
}

static void product(kit *k, size_t o, size_t use)
{
    const kofn_matrix *A = &k->is[o], *x = &k->in[o][use];
    kofn_matrix *y = &k->out[o][use];
    double *want = use == LEFT ? plain_product(x, A) : plain_product(A, x);
    kofn_report rep = KOFN_REPORT_INIT;

    memset(y->data, 0xff, y->rows * y->cols * kf_dtype_size(k->dtype));
    assert_ok(kofn_put_at(k->job, o, use == LEFT, x, y, NULL));
    assert_ok(kofn_take(k->job, 0, KOFN_NEVER, &rep));
    near_enough(k, use == LEFT ? "in A" : "A in", o, want, y,
                k->size[o] * rig_norm(x) /
                    sqrt((double)(use == LEFT ? A->rows : A->cols)),
                &rep);
    kf_free(want);
}

/* M = momentum M + U' V + decay A; A -= step M, by one BLAS call and sums. */
static void change(kit *k, size_t o)
{
    const kofn_change *c = &k->change;
    double *A = as_doubles(&k->is[o]), *U = as_doubles(&k->U[o]);
    double *V = as_doubles(&k->V[o]), *M = k->M[o];
    size_t m = k->A[o].rows, n = k->A[o].cols;

    assert_ok(kofn_update(k->job, o, c, &k->U[o], &k->V[o]));
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

static void fetch(kit *k, size_t o)
{
    double *want = as_doubles(&k->is[o]);
    kofn_report rep = KOFN_REPORT_INIT;

    assert_ok(kofn_fetch(k->job, o, false, &k->out[o][READ], &rep));
    near_enough(k, "A", o, want, &k->out[o][READ], k->size[o], &rep);
    kf_free(want);
}

/* ---- whoever is first ---------------------------------------------------- */

static void let_through(kit *k, size_t o, size_t use, size_t t)
{
    const least *l = &k->least[o][use];

    k->gate.open = l->set[t % l->count];
}

/* Each product from a set of its own, before the weights change and after. */
static void step(kit *k, size_t t)
{
    job_up(k);
    for (size_t after = 0; after < 2; after++) {
        for (size_t o = 0; o < OPERANDS; o++) {
            let_through(k, o, RIGHT, t + o);
            product(k, o, RIGHT);
        }
        for (size_t o = OPERANDS; o > 0; o--) {
            let_through(k, o - 1, LEFT, t + o);
            product(k, o - 1, LEFT);
        }
        for (size_t o = 0; o < OPERANDS && !after; o++)
            change(k, o);
    }
    for (size_t o = 0; o < OPERANDS; o++) {
        let_through(k, o, READ, t + o);
        fetch(k, o);
    }
    kofn_close(k->job);
}

static size_t most_sets(const kit *k)
{
    size_t most = 0;

    for (size_t o = 0; o < OPERANDS; o++)
        for (size_t u = 0; u < USES; u++)
            most = kf_max(most, k->least[o][u].count);
    return most;
}

static size_t choices(size_t n, size_t k)
{
    return k == 0 ? 1 : choices(n - 1, k - 1) * n / k;
}

/* Any so many determine it, and no fewer; where there are just so many workers
 * the points may be such that fewer do. */
static void any_will_do(const kit *k, size_t use, size_t answers)
{
    for (size_t o = 0; o < OPERANDS; o++) {
        const least *l = &k->least[o][use];

        if (l->count != choices(k->workers, answers))
            fail_msg(
                "%s, use %zu: not any %zu of %zu workers determine it, but "
                "%zu sets, as %x",
                k->spec, use, answers, k->workers, l->count, l->set[0]);
        for (size_t i = 0; i < l->count; i++)
            assert_int_equal(__builtin_popcount(l->set[i]), answers);
    }
}

/* All sets, or some that lie evenly among them. */
static size_t try_sets(kit k)
{
    size_t sets, each = often(1000) < 1000 ? 7 : 1;

    if (!kit_up(&k))
        return 0;
    sets_up(&k);
    for (size_t use = RIGHT; use <= LEFT; use++)
        if (k.answers[use] && k.workers == SEATS)
            any_will_do(&k, use, k.answers[use]);
    sets = most_sets(&k);
    for (size_t t = 0; t < sets; t += each)
        step(&k, t);
    kit_down(&k);
    return sets;
}

static void whoever_is_first(void **state)
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
        kit k = {.spec = t[i].spec, .of = &small, .change = once};
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

/* ---- whoever is left ----------------------------------------------------- */

/* An elastic code splits its products among those who are there.  Those who are
 * not have gone before the step, or go one after the other as the answers of
 * its first products come. */
static void without(kit *k, uint32_t gone, bool before)
{
    uint32_t left = gone;

    job_up(k);
    product(k, 1, RIGHT);
    if (before)
        k->gate.gone = gone;
    for (size_t after = 0; after < 2; after++) {
        for (size_t use = RIGHT; use <= LEFT; use++)
            for (size_t o = 0; o < OPERANDS; o++) {
                if (!before && left) {
                    k->gate.goer = (uint32_t)__builtin_ctz(left);
                    k->gate.goes_at = k->gate.come + 2;
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

static void whoever_is_left(void **state)
{
    static const char *const specs[] = {
        "elastic:k=5", "elastic:k=5,cut=columns", "elastic:k=6"};

    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (size_t wide32 = 0; wide32 < 2; wide32++) {
            kit k = {.spec = specs[s],
                     .workers = SEATS,
                     .of = &small,
                     .change = once,
                     .dtype = wide32 ? KOFN_F32 : KOFN_F64};
            size_t each = often(1000) < 1000 || wide32 ? 5 : 1;

            assert_true(kit_up(&k));
            for (uint32_t gone = 0; gone < 1u << SEATS; gone += (uint32_t)each)
                if ((size_t)__builtin_popcount(gone) <=
                    SEATS - k.plan[0]->layout.threshold)
                    for (size_t before = 0; before < 2; before++)
                        without(&k, gone, before);
            kit_down(&k);
        }
}

/* ---- whoever joins ------------------------------------------------------- */

#define SETTLED (2 * SEATS) /* messages until everybody has a block */

static void whole_step(kit *k)
{
    for (size_t use = RIGHT; use <= LEFT; use++)
        for (size_t o = 0; o < OPERANDS; o++)
            product(k, o, use);
    for (size_t o = 0; o < OPERANDS; o++)
        change(k, o);
}

/* Everybody but the joiner and as many as determine A with it; of the others
 * those of the lowest numbers from `first` on stay. */
static uint32_t all_but(const kit *k, size_t first)
{
    size_t stay = k->reader[0]->layout.threshold - 1;
    uint32_t gone = 0;

    for (uint32_t i = 0; i < SEATS; i++) {
        uint32_t w = (uint32_t)((first + i) % SEATS);

        if (w == k->gate.goer || stay == 0)
            gone |= UINT32_C(1) << w;
        else
            stay--;
    }
    return gone & ~(UINT32_C(1) << k->gate.goer);
}

/* One goes, and when so many messages have come another joins; false: not so
 * many come.  What the joiner holds in the end is what is there of A. */
static bool joined(kit *k, size_t goes_at, size_t joins_at)
{
    kofn_progress p = KOFN_PROGRESS_INIT;
    bool came;

    job_up(k);
    k->gate.goer = (uint32_t)(joins_at % SEATS);
    k->gate.goes_at = goes_at;
    k->gate.joins_at = joins_at;
    for (size_t i = 0; i < 3; i++)
        whole_step(k);
    came = k->gate.joins_at == GATE_NEVER;
    for (size_t i = 0; came && i < 20; i++) {
        kofn_job_progress(k->job, &p);
        if (p.live == SEATS)
            break;
        assert_true(i < 19);
        whole_step(k);
    }
    if (came) {
        whole_step(k);
        k->gate.gone = all_but(k, joins_at);
        for (size_t o = 0; o < OPERANDS; o++)
            fetch(k, o);
    }
    kofn_close(k->job);
    return came;
}

static void whoever_joins(void **state)
{
    static const char *const specs[] = {"gpd:m=2,n=2,p=1", "elastic:k=5",
                                        "matdot:n=3"};

    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        kit k = {.spec = specs[s],
                 .workers = SEATS,
                 .of = &long_ones,
                 .change = again};
        size_t each = SLOWED > 1 ? 7 : 1, at = SETTLED;

        assert_true(kit_up(&k));
        while (joined(&k, SETTLED, at) && joined(&k, at, at))
            at += each;
        print_message("%s: %zu places\n", specs[s], at - SETTLED);
        assert_true(at > SETTLED + 40);
        kit_down(&k);
    }
}

TEST_FILE(coded_step_test)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_first),
        cmocka_unit_test(whoever_is_left),
        cmocka_unit_test(whoever_joins),
    };

    rig_begin();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
