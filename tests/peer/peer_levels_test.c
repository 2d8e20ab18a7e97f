/* peer_levels_test.c -- matrices with rows and columns of very different size,
 * on the simulated mesh. Every product is as exact as with plain BLAS, row by
 * row, from both sides and while the matrix changes. The reference is computed
 * with long double. */
#include "levels_rig.h"
#include "mesh_sim.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { N = 13, ZEROS = 5, TURNS = 8, LATE = 3 };

/* Returns the largest error that is allowed. The predicted error assumes lines
 * of similar size. After equilibration line norms differ by at most 2^6
 * (src/data/scaling.c). Sums of their absolute values, of numbers from 1 to 2,
 * differ by at most another factor of the root of their length. A block is
 * rounded when it is encoded and at every change. */
static double allowed(double predicted, size_t changes)
{
    return 64 * sqrt(N) * (double)(1 + changes) *
           (predicted + N * DBL_EPSILON / 2);
}

/* Runs until every node has the last vector. */
static void run_to_the_end(sim *s)
{
    bool all = false;

    while (!all) {
        assert_true(s->now < 20 * KOFN_SECOND);
        sim_run(s, s->now + MS, NULL);
        all = true;
        for (size_t i = 0; i < s->nodes; i++) {
            kofn_node_view v;

            assert_ok(s->node[i].status);
            kf_node_look(s->node[i].host->node, &v);
            assert_int_equal(v.alone + v.left_out, 0);
            all &= v.final;
        }
    }
}

/* ---- a constant matrix --------------------------------------------------- */

typedef struct wide_kind {
    const char *spec;
    size_t nodes;
    bool left, sparse;
    kofn_errors errors;
} wide_kind;

static const wide_kind kinds[] = {
    {"elastic:k=3", 6, false, false, KOFN_ERRORS_NONE},
    {"elastic:k=3", 6, false, true, KOFN_ERRORS_NONE},
    {"mds:k=3", 6, false, false, KOFN_ERRORS_ADVERSARIAL},
    {"mds:k=3", 6, false, true, KOFN_ERRORS_ADVERSARIAL},
    {"gpd:m=2,n=2", 9, false, false, KOFN_ERRORS_DETECT},
    {"gpd:m=2,n=2", 9, true, false, KOFN_ERRORS_NONE},
    {"gpd:m=2,n=2", 9, true, false, KOFN_ERRORS_DETECT},
    {"matdot:n=2", 6, false, false, KOFN_ERRORS_NONE},
    {"matdot:n=2", 6, true, false, KOFN_ERRORS_DETECT},
};

/* How many decimal digits lines of A differ in size: `outer` for lines that
 * remain lines of the product, `inner` for lines that are summed over. The
 * vector has the inverse of the inner sizes. */
static const struct widths {
    double outer, inner;
} widths[] = {{300, 0}, {150, 120}};

static double predicted; /* the largest predicted error of any decoding */

/* The next vector is the product itself. */
static kofn_status product_output(void *ud, uint64_t t, kofn_matrix *product,
                                  kofn_matrix *v, double scalar[KOFN_SCALARS],
                                  bool *final)
{
    const kf_host *h = ((sim_node *)ud)->host;

    assert_int_equal(h->work.freivalds.remade, 0);
    predicted = fmax(predicted, h->work.freivalds.noise);
    memcpy(v->data, product->data, v->rows * sizeof(double));
    scalar[0] = (double)t;
    *final = true;
    return KOFN_OK;
}

/* Fills A and the vector; one line of the product is zero. */
static void make_wide(sim *s, bool left, struct widths w)
{
    kf_rng g = kf_rng_stream(s->seed, KF_FOR_DATA, 0, 0);
    double outer[N], inner[N];
    const double one = 1;

    for (size_t i = 0; i < N; i++) {
        outer[i] = i == ZEROS ? 0 : line(&g, w.outer);
        inner[i] = line(&g, w.inner);
    }
    fill(&s->A, left ? inner : outer, left ? outer : inner, &g);
    for (size_t i = 0; i < N; i++)
        inner[i] = 1 / inner[i];
    fill(&s->v0, inner, &one, &g);
}

static kofn_sparse sparse_of(const kofn_matrix *A, size_t *ptr, uint32_t *col)
{
    for (size_t i = 0; i <= A->rows; i++)
        ptr[i] = i * A->cols;
    for (size_t e = 0; e < A->rows * A->cols; e++)
        col[e] = (uint32_t)(e % A->cols);
    return (kofn_sparse){A->rows, A->cols, ptr, col, A->data};
}

static void plan_for(sim *s, const wide_kind *k)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, N, N, 1, KOFN_F64, k->sparse);

    kofn_plan_free(s->plan);
    assert_ok(kofn_plan_new(&s->plan, &pb, k->spec, k->nodes, 3));
    if (k->left)
        assert_ok(kofn_plan_serve_left(s->plan, 1));
    s->product = (kofn_mesh_product){.plan = s->plan, .left = k->left};
}

static void try_kind(const wide_kind *k, struct widths w, uint64_t seed)
{
    uint32_t col[N * N];
    size_t ptr[N + 1];
    kofn_sparse S;
    sim s;

    sim_up(&s, "mds:k=2", k->nodes, N, 1, seed);
    make_wide(&s, k->left, w);
    plan_for(&s, k);
    S = sparse_of(&s.A, ptr, col);
    if (k->sparse)
        s.operand = (kofn_operand){.sparse = &S};
    s.program.output = product_output;
    s.opt.errors = k->errors;
    if (seed % 2 && !k->errors)
        s.opt.decoding = KOFN_DECODE_DISTRIBUTED;
    predicted = 0;
    for (size_t i = 0; i < k->nodes; i++) {
        sim_start(&s, i, true);
        s.node[i].turncoat = true; /* there is no plain iterate */
    }
    run_to_the_end(&s);
    for (size_t i = 0; i < k->nodes; i++) {
        const double *v = s.node[i].host->it.v->m.data;
        double most = k->left ? worst(s.v0.data, s.A.data, v, 1, N, N)
                              : worst(s.A.data, s.v0.data, v, N, N, 1);

        if (!(most <= allowed(predicted, 0)))
            fail_msg("%s, %s, %g and %g digits: %g of |A| |x|, allowed %g",
                     k->spec, k->left ? "left" : "right", w.outer, w.inner,
                     most, allowed(predicted, 0));
    }
    sim_down(&s);
}

static void every_row_is_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t w = 0; w < COUNT(widths); w++)
            for (uint64_t seed = 0; seed < 4; seed++)
                try_kind(&kinds[i], widths[w], seed);
}

/* ---- lines of the other factor ------------------------------------------- */

/* Decimal digits between columns of B in A B, or between rows of B in B A. */
enum { COLS = 6, APART = 12, FAR_APART = 60 };

typedef struct factor_kind {
    const char *spec;
    size_t nodes;
    bool left, mixed; /* does the code mix lines of B? */
    bool changes;     /* may the matrix change? */
} factor_kind;

/* Codes that cut B along the lines that remain mix them. A vector is never cut
 * so. */
static const factor_kind factor_kinds[] = {
    {"elastic:k=3", 6, false, false, false},
    {"matdot:n=2", 6, false, false, true},
    {"grid:m=2,n=2,copies=2", 9, false, false, false},
    {"gpd:m=2,n=2,p=1", 10, false, false, true},
    {"gpd:m=2,n=2,p=1", 10, true, false, true},
    {"polynomial:m=2,p=2", 6, false, true, false},
    {"product:m=2,m2=3,p=2,p2=3", 9, false, true, false},
    {"gpd:m=2,n=1,p=2", 8, true, true, false},
};

/* If the matrix may change, these are refused when lines differ too much. */
static const factor_kind refused_kinds[] = {
    {"gpd:m=2,n=1,p=2", 8, false, true, true},
    {"gpd:m=2,n=1,p=2", 8, true, true, true},
    {"polynomial:m=2,p=2,basis=circle", 6, false, true, true},
    {"product:m=2,m2=3,p=2,p2=3", 9, false, true, true},
};

/* The vector is B, by rows. */
static kofn_status factor_input(void *ud, uint64_t t, const kofn_matrix *v,
                                const double scalar[KOFN_SCALARS],
                                kofn_matrix *in)
{
    (void)ud;
    (void)t;
    (void)scalar;
    memcpy(in->data, v->data, v->rows * sizeof(double));
    return KOFN_OK;
}

static size_t remade; /* products that nodes recomputed alone, from A */

static kofn_status factor_output(void *ud, uint64_t t, kofn_matrix *product,
                                 kofn_matrix *v, double scalar[KOFN_SCALARS],
                                 bool *final)
{
    const kf_host *h = ((sim_node *)ud)->host;

    remade += h->work.freivalds.remade;
    predicted = fmax(predicted, h->work.freivalds.noise);
    memcpy(v->data, product->data, v->rows * sizeof(double));
    scalar[0] = (double)t;
    *final = true;
    return KOFN_OK;
}

/* Changes the matrix by zero. If matrices may change, no node has one to check
 * products with. */
static kofn_status change_nothing(void *ud, uint64_t turn, uint32_t operand,
                                  const kofn_matrix *v, kofn_turn_change *to)
{
    static double zeros[N];

    (void)ud;
    (void)turn;
    (void)operand;
    (void)v;
    to->U = to->V = (kofn_matrix){zeros, 1, N, N, KOFN_F64};
    return KOFN_OK;
}

/* The run ends before the matrix is read. */
static void let_change(sim *s)
{
    static kofn_mesh_product products[2];

    products[0] = s->product;
    products[1] = (kofn_mesh_product){.plan = s->plan, .read = true};
    s->program.product = products;
    s->program.products = 2;
    s->program.turns = s->program.recalls = 2;
    s->program.after = 1;
    s->program.change = change_nothing;
}

static void factor_up(sim *s, const factor_kind *k, uint64_t seed)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, N, N, COLS, KOFN_F64, false);
    kf_rng g = kf_rng_stream(seed, KF_FOR_DATA, 2, 0);
    size_t rows = k->left ? COLS : N, cols = k->left ? N : COLS;
    double one[N], own[COLS];
    kofn_matrix B;

    sim_up(s, "mds:k=2", k->nodes, N, 1, seed);
    for (size_t i = 0; i < N; i++)
        one[i] = 1;
    for (size_t i = 0; i < COLS; i++)
        own[i] = line(&g, k->changes ? APART : FAR_APART);
    fill(&s->A, one, one, &g);
    kf_free(s->v0.data);
    s->v0 = (kofn_matrix){numbers(N * COLS, 8), N * COLS, 1, 1, KOFN_F64};
    B = (kofn_matrix){s->v0.data, rows, cols, cols, KOFN_F64};
    fill(&B, k->left ? own : one, k->left ? one : own, &g);
    kofn_plan_free(s->plan);
    assert_ok(kofn_plan_new(&s->plan, &pb, k->spec, k->nodes, 3));
    if (k->left)
        assert_ok(kofn_plan_serve_left(s->plan, COLS));
    s->product = (kofn_mesh_product){.plan = s->plan, .left = k->left};
    s->program.input = factor_input;
    s->program.output = factor_output;
    if (k->changes)
        let_change(s);
}

static double try_factor(const factor_kind *k, uint64_t seed)
{
    double alone = 0;
    sim s;

    factor_up(&s, k, seed);
    predicted = 0;
    for (size_t i = 0; i < k->nodes; i++) {
        sim_start(&s, i, true);
        s.node[i].turncoat = true; /* there is no plain iterate */
    }
    run_to_the_end(&s);
    for (size_t i = 0; i < k->nodes; i++) {
        const double *v = s.node[i].host->it.v->m.data;
        const double *A = s.A.data, *B = s.v0.data;

        alone = fmax(alone, k->left ? worst(B, A, v, COLS, N, N)
                                    : worst(A, B, v, N, N, COLS));
    }
    if (!(alone <= allowed(predicted, 0)))
        fail_msg("%s, %s: %g, allowed %g", k->spec, k->left ? "left" : "right",
                 alone, allowed(predicted, 0));
    sim_down(&s);
    return alone;
}

/* docs/numerics.md has what a mesh promises. If the code does not mix lines of
 * B, the products are as exact as with plain BLAS. If it does, every node
 * finds that the product is less exact and recomputes it alone. */
static void lines_are_exact_or_recomputed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(factor_kinds); i++) {
        const factor_kind *k = &factor_kinds[i];
        double most = 0;

        remade = 0;
        for (uint64_t seed = 0; seed < 4; seed++)
            most = fmax(most, try_factor(k, seed));
        print_message(
            "%s, %s%s: %.2g of |A| |B|, %zu times recomputed from A\n", k->spec,
            k->left ? "B A" : "A B", k->changes ? ", which may change" : "",
            most, remade);
        assert_int_equal(remade > 0, k->mixed);
    }
}

/* If the matrix changes, no node can recompute the product from A. The message
 * has the error that it would have. */
static void lines_too_far_apart_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refused_kinds); i++) {
        const factor_kind *k = &refused_kinds[i];
        size_t failed = 0;
        sim s;

        factor_up(&s, k, 0);
        for (size_t n = 0; n < k->nodes; n++) {
            sim_start(&s, n, true);
            s.node[n].turncoat = true; /* there is no plain iterate */
        }
        while (failed == 0) {
            assert_true(s.now < 20 * KOFN_SECOND);
            sim_run(&s, s.now + MS, NULL);
            for (size_t n = 0; n < k->nodes; n++)
                failed += s.node[n].status != KOFN_OK;
        }
        for (size_t n = 0; n < k->nodes; n++)
            if (s.node[n].status)
                assert_status(KOFN_UNSTABLE, s.node[n].status);
        assert_non_null(strstr(kofn_errmsg(), "say p=1"));
        assert_non_null(
            strstr(kofn_errmsg(), k->left ? "mixes rows" : "mixes columns"));
        sim_down(&s);
    }
}

/* ---- a matrix that changes ----------------------------------------------- */

/* Every turn computes A x and y A and adds U' V to A. At the end A is read.
 * The vector is these three, one behind the other. */
typedef struct changing {
    kofn_matrix x, y, U[TURNS], V[TURNS];
    long double *A;
    double *size; /* of each turn, by entry of A: the sum of absolute values
                     that were added up */
    kofn_mesh_product product[3];
    size_t made; /* products that were compared */
    double most; /* largest error, as a fraction of the allowed one */
} changing;

static kofn_matrix wide_line(size_t rows, size_t cols, const double *size,
                             kf_rng *g)
{
    kofn_matrix a = {numbers(N, 8), rows, cols, cols, KOFN_F64};
    const double one = 1;

    fill(&a, rows > 1 ? size : &one, rows > 1 ? &one : size, g);
    return a;
}

/* Computes the matrix of the next turn by adding U' V, and its size in
 * proportion. */
static void make_turn(changing *c, size_t turn)
{
    const double *u = c->U[turn].data, *v = c->V[turn].data;
    long double *A = c->A + turn * N * N;
    double *size = c->size + turn * N * N;

    for (size_t e = 0; e < N * N; e++) {
        A[N * N + e] = A[e] + (long double)u[e / N] * v[e % N];
        size[N * N + e] = size[e] + fabs(u[e / N] * v[e % N]);
    }
}

/* After equilibration rows of A bring U to 1 / `most`, and columns bring V to
 * `most`. Lines of zeros are not scaled, so what is added to them has that
 * size. */
static void draw_sizes(double row[N], double col[N], kf_rng *g)
{
    double most = 0;

    for (size_t i = 0; i < N; i++) {
        row[i] = line(g, 120);
        col[i] = line(g, 100);
        most = fmax(most, i == ZEROS ? 0 : col[i]);
    }
    row[ZEROS] = 1 / most;
    col[ZEROS] = most;
}

static void make_changing(changing *c, sim *s)
{
    kf_rng g = kf_rng_stream(s->seed, KF_FOR_DATA, 1, 0);
    double row[N], col[N], by_row[N], by_col[N];

    *c = (changing){.A = numbers((TURNS + 1) * N * N, sizeof *c->A),
                    .size = numbers((TURNS + 1) * N * N, 8)};
    draw_sizes(row, col, &g);
    for (size_t i = 0; i < N; i++) {
        by_row[i] = 1 / row[i];
        by_col[i] = 1 / col[i];
    }
    fill(&s->A, row, col, &g);
    for (size_t i = 0; i < N; i++) {
        set(&s->A, i, ZEROS, 0, 0);
        set(&s->A, ZEROS, i, 0, 0);
    }
    c->x = wide_line(N, 1, by_col, &g);
    c->y = wide_line(1, N, by_row, &g);
    for (size_t e = 0; e < N * N; e++) {
        c->A[e] = ((double *)s->A.data)[e];
        c->size[e] = (double)fabsl(c->A[e]);
    }
    for (size_t t = 0; t < TURNS; t++) {
        c->U[t] = wide_line(1, N, row, &g);
        c->V[t] = wide_line(1, N, col, &g);
        make_turn(c, t);
    }
}

static changing *changing_of(void *ud)
{
    return ((sim_node *)ud)->sim->own;
}

static kofn_status change_input(void *ud, uint64_t t, const kofn_matrix *v,
                                const double scalar[KOFN_SCALARS],
                                kofn_matrix *in)
{
    const changing *c = changing_of(ud);

    (void)v;
    (void)scalar;
    memcpy(in->data, t % 2 ? c->x.data : c->y.data, N * sizeof(double));
    return KOFN_OK;
}

/* Returns the largest error of an entry of a product, relative to the product
 * of the absolute values. */
static double error_of(const changing *c, uint64_t t, const double *is)
{
    const long double *A = c->A + (t - 1) / 2 * N * N;
    const double *size = c->size + (t - 1) / 2 * N * N;
    const double *in = t % 2 ? c->x.data : c->y.data;
    double most = 0;

    for (size_t i = 0; i < N; i++) {
        long double sum = 0, all = 0;

        for (size_t j = 0; j < N; j++) {
            size_t e = t % 2 ? i * N + j : j * N + i;

            sum += A[e] * in[j];
            all += (long double)size[e] * fabs(in[j]);
        }
        if (all > 0)
            most = fmax(most, (double)(fabsl(is[i] - sum) / all));
        else
            assert_true(is[i] == 0);
    }
    return most;
}

static double error_of_reading(const changing *c, const double *is)
{
    const long double *A = c->A + TURNS * N * N;
    const double *size = c->size + TURNS * N * N;
    double most = 0;

    for (size_t e = 0; e < N * N; e++)
        most = fmax(most, (double)fabsl(is[e] - A[e]) / size[e]);
    return most;
}

static kofn_status change_output(void *ud, uint64_t t, kofn_matrix *product,
                                 kofn_matrix *v, double scalar[KOFN_SCALARS],
                                 bool *final)
{
    const kf_host *h = ((sim_node *)ud)->host;
    changing *c = changing_of(ud);
    size_t n = product->rows * product->cols, turns = (t - 1) / 2;
    double error;

    *final = t > 2 * TURNS;
    error = *final ? error_of_reading(c, product->data)
                   : error_of(c, t, product->data);
    c->most = fmax(c->most, error / allowed(h->work.freivalds.noise, turns));
    c->made++;
    memcpy((double *)v->data + (*final  ? 2 * N
                                : t % 2 ? 0
                                        : N),
           product->data, n * sizeof(double));
    scalar[0] = (double)t;
    return KOFN_OK;
}

static kofn_status change_by(void *ud, uint64_t turn, uint32_t operand,
                             const kofn_matrix *v, kofn_turn_change *to)
{
    const changing *c = changing_of(ud);

    (void)operand;
    (void)v;
    to->change.add[0] = 1;
    to->U = c->U[turn - 1];
    to->V = c->V[turn - 1];
    return KOFN_OK;
}

static void changing_up(sim *s, changing *c, const wide_kind *k, uint64_t seed)
{
    sim_up(s, "mds:k=2", k->nodes, N, 1, seed);
    make_changing(c, s);
    plan_for(s, &(wide_kind){.spec = k->spec, .nodes = k->nodes, .left = true});
    kf_free(s->v0.data);
    s->v0 =
        (kofn_matrix){numbers(2 * N + N * N, 8), 2 * N + N * N, 1, 1, KOFN_F64};
    for (size_t i = 0; i < 3; i++)
        c->product[i] = (kofn_mesh_product){
            .plan = s->plan, .left = i == 1, .read = i == 2};
    s->own = c;
    s->opt.errors = k->errors;
    s->program = (kofn_program){.size = sizeof(kofn_program),
                                .product = c->product,
                                .products = 3,
                                .operand = &s->operand,
                                .operands = 1,
                                .input = change_input,
                                .output = change_output,
                                .turns = TURNS,
                                .after = 1,
                                .change = change_by,
                                .recalls = 2};
}

static void changing_down(sim *s, changing *c)
{
    sim_down(s);
    kf_free(c->A);
    kf_free(c->size);
    kf_free(c->x.data);
    kf_free(c->y.data);
    for (size_t t = 0; t < TURNS; t++) {
        kf_free(c->U[t].data);
        kf_free(c->V[t].data);
    }
}

/* The last node joins when its block can only be rebuilt from the blocks of
 * the others. */
static void try_changing(const wide_kind *k, uint64_t seed)
{
    size_t last = k->nodes - 1;
    changing c;
    sim s;

    changing_up(&s, &c, k, seed);
    for (size_t i = 0; i <= last; i++) {
        if (i == last)
            while (s.node[0].host->blocks.changing.turn < LATE)
                sim_run(&s, s.now + MS, NULL);
        sim_start(&s, i, i < last);
        s.node[i].turncoat = true; /* there is no plain iterate */
    }
    run_to_the_end(&s);
    assert_true(s.node[last].host->blocks.changing.rebuilt > 0);
    assert_true(c.made > k->nodes * TURNS);
    if (!(c.most <= 1))
        fail_msg("%s: %g of what is allowed", k->spec, c.most);
    changing_down(&s, &c);
}

static void changing_matrix_is_exact(void **state)
{
    static const wide_kind all[] = {
        {.spec = "gpd:m=2,n=2,p=1", .nodes = 10, .errors = KOFN_ERRORS_NONE},
        {.spec = "gpd:m=2,n=2,p=1", .nodes = 10, .errors = KOFN_ERRORS_DETECT},
        {.spec = "polynomial:m=2,p=1,basis=circle", .nodes = 6},
        {.spec = "matdot:n=2", .nodes = 6},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(all); i++)
        try_changing(&all[i], i);
}

TEST_FILE(peer_levels_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_row_is_exact,
             "levels: every row of a product is as exact as with plain BLAS"),
        TEST(lines_are_exact_or_recomputed,
             "levels: lines of B that a code mixes are recomputed from A"),
        TEST(lines_too_far_apart_are_refused,
             "levels: lines too different in size are refused if A may change"),
        TEST(changing_matrix_is_exact,
             "levels: products of a changing matrix stay exact row by row"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
