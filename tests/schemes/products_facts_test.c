/* products_facts_test.c -- coded products of two matrices against published
 * numbers.
 *
 * Facts are those of the companion table of the specification (facts.json),
 * quoted by their names. */
#include "product_rig.h"

/* Expands the row of a seat over `n` parts. */
static void spread_row(const kf_row *row, double *out, size_t n)
{
    memset(out, 0, n * sizeof *out);
    for (size_t e = 0; e < row->n; e++)
        out[row->col[e]] = row->val[e];
}

/* Exponents follow from powers of 2, the second of the points 1..N. */
typedef struct table {
    const char *id;
    kofn_op op;
    const char *spec;
    size_t K, m, n, p;
    size_t ea[4], ein[4], wanted[4]; /* row by row of their grids */
} table;

static const table tables[] = {
    {"E.gpd.2.2.1 u=v^n",
     KOFN_MATMUL,
     "gpd:m=2,n=2,p=1",
     5,
     2,
     2,
     1,
     {0, 1, 2, 3},
     {1, 0},
     {1, 3}},
    {"E.gpd.2.2.1 u=v^n left",
     KOFN_LEFT,
     "gpd:m=2,n=2,p=1",
     6,
     2,
     2,
     1,
     {0, 1, 2, 3},
     {2, 0},
     {2, 3}},
    {"E.gpd.2.2.1 v=u^m",
     KOFN_MATMUL,
     "gpd:m=2,n=2,p=1,sub=vum",
     6,
     2,
     2,
     1,
     {0, 2, 1, 3},
     {2, 0},
     {2, 3}},
    {"E.gpd.2.2.1 v=u^m left",
     KOFN_LEFT,
     "gpd:m=2,n=2,p=1,sub=vum",
     5,
     2,
     2,
     1,
     {0, 2, 1, 3},
     {1, 0},
     {1, 3}},
    {"E.gpd.2.2.1 polydot_K",
     KOFN_MATMUL,
     "polydot:m=2,n=2,p=1",
     6,
     2,
     2,
     1,
     {0, 2, 1, 3},
     {2, 0},
     {2, 3}},
    {"E.gpd.2.2.2 u=v^n",
     KOFN_MATMUL,
     "gpd:m=2,n=2,p=2",
     9,
     2,
     2,
     2,
     {0, 1, 2, 3},
     {1, 5, 0, 4},
     {1, 5, 3, 7}},
    {"E.gpd.2.2.2 u=v^n left",
     KOFN_LEFT,
     "gpd:m=2,n=2,p=2",
     10,
     2,
     2,
     2,
     {0, 1, 2, 3},
     {2, 0, 6, 4},
     {2, 3, 6, 7}},
    {"E.gpd.2.2.2 v=u^m",
     KOFN_MATMUL,
     "gpd:m=2,n=2,p=2,sub=vum",
     10,
     2,
     2,
     2,
     {0, 2, 1, 3},
     {2, 6, 0, 4},
     {2, 6, 3, 7}},
    {"E.gpd.2.2.2 v=u^m left",
     KOFN_LEFT,
     "gpd:m=2,n=2,p=2,sub=vum",
     9,
     2,
     2,
     2,
     {0, 2, 1, 3},
     {1, 0, 5, 4},
     {1, 3, 5, 7}},
    {"E.gpd.2.2.2 polydot_K, products.md 2",
     KOFN_MATMUL,
     "polydot:m=2,n=2,p=2",
     12,
     2,
     2,
     2,
     {0, 2, 1, 3},
     {2, 8, 0, 6},
     {2, 8, 3, 9}},
    {"ent.x2y2z2",
     KOFN_MATMUL,
     "gpd:m=2,n=2,p=2",
     9,
     2,
     2,
     2,
     {0, 1, 2, 3},
     {1, 5, 0, 4},
     {1, 5, 3, 7}},
    {"ent.x1y1z3",
     KOFN_MATMUL,
     "gpd:m=1,n=3,p=1",
     5,
     1,
     3,
     1,
     {0, 1, 2},
     {2, 1, 0},
     {2}},
    {"E.K_only matdot(1,4,1), products.md 2",
     KOFN_MATMUL,
     "matdot:n=4",
     7,
     1,
     4,
     1,
     {0, 1, 2, 3},
     {3, 2, 1, 0},
     {3}},
    {"E.K_only polynomial(4,1,4)",
     KOFN_MATMUL,
     "polynomial:m=4,p=4",
     16,
     4,
     1,
     4,
     {0, 1, 2, 3},
     {0, 4, 8, 12},
     {0}},
};

/* Compares part (a, b) of a grid with `rows` rows with the table. */
static void check_exponents(const kf_row *row, size_t rows, size_t cols,
                            const size_t *want)
{
    double value[16];

    spread_row(row, value, rows * cols);
    for (size_t a = 0; a < rows; a++)
        for (size_t b = 0; b < cols; b++)
            assert_true(value[a + rows * b] ==
                        ldexp(1, (int)want[a * cols + b]));
}

static void exponents_of_the_papers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const table *t = &tables[i];
        bool left = t->op == KOFN_LEFT;
        size_t r = left ? t->p : t->m, c = left ? t->n : t->p;
        kofn_plan *plan;
        kf_code *code;
        const kf_seat *seat;
        char s[80];

        snprintf(s, sizeof s, "%s,basis=vandermonde", t->spec);
        assert_ok(plan_of(&plan, t->op, s, t->K + 3, KOFN_F64, 1));
        assert_ok(kf_code_new(&code, plan));
        assert_ok(kf_code_seat(code, 1, &seat));
        assert_int_equal(plan->layout.enough, t->K);
        check_exponents(seat->E0, t->m, t->n, t->ea);
        check_exponents(seat->E1, left ? t->p : t->n, left ? t->m : t->p,
                        t->ein);
        for (size_t a = 0; plan->layout.W && a < r; a++)
            for (size_t b = 0; b < c; b++)
                for (size_t d = 0; d < t->K; d++)
                    assert_true(plan->layout.W[(a + r * b) * t->K + d] ==
                                (d == t->wanted[a * c + b]));
        kf_code_free(code);
        kofn_plan_free(plan);
    }
}

/* [E.fixture.gpd221.*]: nodes at cos((2i+1) pi/14), in another order here. */
static const double fixture_weights[2][5] = {
    {1.0257168633, -2.8739947855, 4.6659012248, -2.304764871, -0.5128584316},
    {-5.4485475737, 15.266491052, -18.6636048991, 12.2427752679,
     -3.3971138471}};

static const double fixture_outputs[7][2] = {
    {247.9372648079, 400.8609587536}, {147.7799329234, 255.103390286},
    {48.9257001746, 105.5037665418},  {11.0, 39.0},
    {4.9228940432, 20.2557951775},    {-4.2685449805, 2.276179619},
    {-14.4222469687, -13.6250903779}};

static size_t fixture_node(const kf_seat *s)
{
    double row[4], x;

    spread_row(s->E0, row, 4);
    x = row[2]; /* part (0, 1): the first power */
    for (size_t i = 0; i < 7; i++)
        if (fabs(cos((2 * (double)i + 1) * acos(-1) / 14) - x) < 1e-12)
            return i;
    fail_msg("no node at %g", x);
    return 0;
}

/* A = 1..16 row by row in blocks of two, x = 1..4 in two. */
static void fixture_answer(const kf_seat *s, double *y)
{
    double a[4], b[2];

    spread_row(s->E0, a, 4);
    spread_row(s->E1, b, 2);
    for (size_t r = 0; r < 2; r++) {
        y[r] = 0;
        for (size_t c = 0; c < 2; c++) {
            double block = 0, message = 0;

            for (size_t j = 0; j < 4; j++)
                block +=
                    a[j] * (double)(4 * (j % 2 * 2 + r) + j / 2 * 2 + c + 1);
            for (size_t j = 0; j < 2; j++)
                message += b[j] * (double)(2 * j + c + 1);
            y[r] += block * message;
        }
    }
}

static void worked_example(void **state)
{
    static const double Ax[] = {30, 70, 110, 150};
    uint32_t set[5];
    size_t node[5], count = 0;
    double y[5][2];
    kofn_plan *plan;
    kf_code *code;
    kofn_decoder *d;

    (void)state;
    assert_ok(plan_of(&plan, KOFN_MATVEC, "gpd:m=2,n=2,basis=monomial", 7,
                      KOFN_F64, 1));
    assert_ok(kf_code_new(&code, plan));
    for (uint32_t i = 0; i < 7; i++) {
        const kf_seat *s;
        double out[2];
        size_t at;

        assert_ok(kf_code_seat(code, i, &s));
        at = fixture_node(s);
        fixture_answer(s, out);
        for (size_t r = 0; r < 2; r++)
            assert_at_most(fabs(out[r] - fixture_outputs[at][r]), 1e-9);
        if (at >= 5)
            continue;
        memcpy(y[count], out, sizeof out);
        node[count] = at;
        set[count++] = i;
    }
    assert_int_equal(count, 5);
    assert_ok(kf_decoder_new(&d, code, set, 5, false));
    for (size_t w = 0; w < 2; w++) {
        double sum[2] = {0, 0};

        for (size_t j = 0; j < 5; j++) {
            assert_at_most(fabs(d->D[w * 5 + j] - fixture_weights[w][node[j]]),
                           1e-9);
            sum[0] += d->D[w * 5 + j] * y[j][0];
            sum[1] += d->D[w * 5 + j] * y[j][1];
        }
        assert_at_most(fabs(sum[0] - Ax[2 * w]), 1e-9);
        assert_at_most(fabs(sum[1] - Ax[2 * w + 1]), 1e-9);
    }
    kf_decoder_free(d);
    kf_code_free(code);
    kofn_plan_free(plan);
}

TEST_FILE(products_facts_test)
{
    const struct CMUnitTest tests[] = {
        TEST(exponents_of_the_papers,
             "products: exponents are those of the papers"),
        TEST(worked_example, "products: the worked example gives its numbers"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
