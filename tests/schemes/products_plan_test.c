/* products_plan_test.c -- plans of coded products: refusals, descriptions, and
 * partial answers. */
#include "product_rig.h"

static const struct {
    kofn_op op;
    const char *spec;
    size_t n;
    const char *says[3];
} refusals[] = {
    {KOFN_MATMUL,
     "gpd:m=4,n=4,p=4",
     50,
     {"67 answers", "50 workers", "m = 3, n = 4 and p = 3"}},
    {KOFN_MATMUL, "polynomial:m=40,p=4", 50, {"160", "m = 12 and p = 4", 0}},
    {KOFN_MATMUL, "polynomial:m=2,p=300", 50, {"600", "m = 2 and p = 25", 0}},
    {KOFN_MATMUL, "matdot:n=40", 50, {"79", "n = 25", 0}},
    {KOFN_MATMUL, "matdot:n=40,basis=complex", 39, {"40 answers", "n = 39", 0}},
    {KOFN_MATVEC, "gpd:p=2", 50, {"p = 2", "p = 1", 0}},
    {KOFN_MATMUL, "matdot:n=5,angles=8", 20, {"angles = 8", "9..20", 0}},
    {KOFN_MATMUL, "matdot:n=5,angles=21", 20, {"angles = 21", "9..20", 0}},
    {KOFN_MATMUL,
     "matdot:n=5,angles=9,basis=monomial",
     20,
     {"angles = 9", "basis=circle", 0}},
    {KOFN_LEFT, "polynomial:basis=quaternion", 20, {"left", "basis=circle", 0}},
    {KOFN_LEFT, "matdot:basis=complex", 20, {"left", "basis=circle", 0}},
    {KOFN_MATMUL, "product:m2=3,p2=4", 50, {"12", "50 workers", "10 x 5"}},
    {KOFN_MATMUL, "product:m2=60", 50, {"60", "50 workers", "10 x 5"}},
    {KOFN_MATMUL, "product:m=4,m2=3", 12, {"m = 4", "m <= 3", 0}},
    {KOFN_MATMUL, "product:p=5,p2=4", 12, {"p = 5", "p <= 4", 0}},
    {KOFN_MATVEC, "product:p2=4", 12, {"p2 = 4", "p2 = 1", 0}},
};

static void refusals_name_what_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        kofn_plan *p;

        assert_status(KOFN_INVAL, plan_of(&p, refusals[i].op, refusals[i].spec,
                                          refusals[i].n, KOFN_F64, 1));
        assert_null(p);
        for (size_t s = 0; s < 3 && refusals[i].says[s]; s++)
            if (!strstr(kofn_errmsg(), refusals[i].says[s]))
                fail_msg("%s: \"%s\" does not say %s", refusals[i].spec,
                         kofn_errmsg(), refusals[i].says[s]);
    }
}

/* Every scheme accepts any number of workers, and does not cut what a vector
 * lacks. */
static void defaults_fit(void **state)
{
    static const char *const names[] = {
        "polynomial",  "polynomial:basis=circle", "matdot", "polydot", "gpd",
        "gpd:sub=vum", "gpd:basis=complex",       "product"};
    static const kofn_op ops[] = {KOFN_MATVEC, KOFN_MATMUL, KOFN_LEFT};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t n = 1; n <= 300; n += 1 + n / 8)
            for (size_t o = 0; o < 3; o++) {
                kofn_status st;
                kofn_plan *p, *again;

                st = plan_of(&p, ops[o], names[i], n, KOFN_F64, 1);
                if (ops[o] == KOFN_LEFT && (i == 6 || i == 7)) {
                    assert_true(st == KOFN_INVAL || st == KOFN_UNSUITED);
                    continue;
                }
                assert_int_equal(st, KOFN_OK);
                assert_true(p->layout.enough <= n);
                if (n > 3 && n % 2 == 0)
                    assert_true(p->layout.enough < n);
                assert_true(i == 0 || i == 7 || p->layout.enough <= 100);
                if (ops[o] == KOFN_MATVEC)
                    assert_int_equal(p->layout.cut[1].cols, 1);
                assert_ok(plan_of(&again, ops[o], p->spec, n, KOFN_F64, 1));
                assert_string_equal(p->spec, again->spec);
                kofn_plan_free(p);
                kofn_plan_free(again);
            }
}

/* Left products use the blocks of a plan unchanged. */
static void left_products_share_blocks(void **state)
{
    static const char *const specs[] = {"gpd:m=2,n=3,p=2",
                                        "matdot:n=4",
                                        "gpd:m=3,n=2,p=1,sub=vum",
                                        "polydot:m=2,n=2,p=1",
                                        "polynomial:m=3,p=2,basis=circle",
                                        "matdot:n=4,basis=chebyshev"};

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        kofn_plan *p;
        kf_code *code, *left;

        assert_ok(plan_of(&p, KOFN_MATMUL, specs[i], 22, KOFN_F64, 1));
        assert_ok(kofn_plan_serve_left(p, 30));
        assert_ok(kf_code_new(&code, p));
        assert_ok(kf_code_new(&left, p->left));
        for (size_t s = 0; s < 22; s++) {
            const kf_seat *a, *b;

            assert_ok(kf_code_seat(code, s, &a));
            assert_ok(kf_code_seat(left, s, &b));
            assert_int_equal(a->E0->n, b->E0->n);
            assert_memory_equal(a->E0->val, b->E0->val,
                                a->E0->n * sizeof(double));
            assert_memory_equal(a->E0->col, b->E0->col,
                                a->E0->n * sizeof *a->E0->col);
        }
        kf_code_free(code);
        kf_code_free(left);
        kofn_plan_free(p);
    }
}

static void shares(void **state)
{
    static const struct {
        kofn_op op;
        const char *spec;
        double storage, load, upload, answer;
        size_t threshold;
    } cases[] = {
        {KOFN_MATMUL, "gpd:m=2,n=3,p=4", 6, 24, 12, 8, 26},
        {KOFN_LEFT, "gpd:m=2,n=3,p=4", 6, 24, 8, 12, 27},
        {KOFN_MATMUL, "matdot:n=5", 5, 5, 5, 1, 30 - 3},
        {KOFN_MATMUL, "polynomial:m=4,p=5", 4, 20, 5, 20, 20},
        {KOFN_MATVEC, "polynomial:m=4", 4, 4, 1, 4, 4},
        {KOFN_MATMUL, "gpd:m=2,n=3,p=4,basis=complex", 1.5, 6, 6, 4, 26},
        {KOFN_MATVEC, "polynomial:m=4,basis=complex", 2, 2, 1, 2, 4},
        {KOFN_MATMUL, "product:m=4,m2=6,p=3,p2=5", 4, 12, 3, 12, 22},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kofn_plan_info info = KOFN_PLAN_INFO_INIT;
        kofn_plan *p;

        assert_ok(plan_of(&p, cases[i].op, cases[i].spec, 30, KOFN_F64, 1));
        assert_ok(kofn_plan_describe(p, true, &info));
        assert_at_most(fabs(info.storage * cases[i].storage - 1), 1e-12);
        assert_at_most(fabs(info.load * cases[i].load - 1), 1e-12);
        assert_at_most(fabs(info.upload * cases[i].upload - 1), 1e-12);
        assert_at_most(fabs(info.answer * cases[i].answer - 1), 1e-12);
        if (strstr(p->spec, "angles=15"))
            assert_int_equal(info.threshold, 30 - 2 * 7 + 1);
        else
            assert_int_equal(info.threshold, cases[i].threshold);
        assert_true(info.noise50 > 0 && info.noise50 < 1e6);
        assert_true(info.noise99 >= info.noise50 && info.noise99 < 1e9);
        kofn_plan_free(p);
    }
}

/* B A needs more answers than A B here, and a plan that serves both says so. */
static void both_products(void **state)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *p;

    (void)state;
    assert_ok(plan_of(&p, KOFN_MATMUL, "gpd:m=2,n=3,p=1,q=2", 18, KOFN_F64, 1));
    assert_ok(kofn_plan_describe(p, false, &info));
    assert_int_equal(info.threshold, 2 * 3 + 3 - 1);
    assert_ok(kofn_plan_serve_left(p, 8));
    assert_ok(kofn_plan_describe(p, false, &info));
    assert_int_equal(info.threshold, 2 * 3 * 2 + 2 * 3 - 3);
    kofn_plan_free(p);
}

/* If not everything can be decoded, plain parts are delivered; a code without
 * plain seats reports too few answers. */
static void partial_answers(void **state)
{
    static const uint32_t set[] = {0, 2, 5, 7, 8};
    kofn_plan *p;
    kf_code *code;
    kofn_decoder *d;

    (void)state;
    assert_ok(plan_of(&p, KOFN_MATMUL, "polynomial:m=3,p=2", 9, KOFN_F64, 1));
    assert_ok(kf_code_new(&code, p));
    assert_ok(kf_decoder_new(&d, code, set, 5, true));
    assert_false(d->whole);
    for (size_t w = 0; w < d->wants; w++) { /* product (i, k): seat i + 3 k */
        size_t seat = w % 12 / 4 + 3 * (w / 12);
        int32_t at = seat == 0 ? 0 : seat == 2 ? 1 : seat == 5 ? 2 : -1;

        assert_int_equal(d->copy[w],
                         at < 0 ? KF_LOST : 4 * at + (int32_t)(w % 4));
    }
    kf_decoder_free(d);
    assert_status(KOFN_TOOFEW, kf_decoder_new(&d, code, set + 3, 2, true));
    kf_code_free(code);
    kofn_plan_free(p);
    assert_ok(plan_of(&p, KOFN_MATMUL, "matdot:n=3", 9, KOFN_F64, 1));
    assert_ok(kf_code_new(&code, p));
    assert_status(KOFN_TOOFEW, kf_decoder_new(&d, code, set, 3, true));
    kf_code_free(code);
    kofn_plan_free(p);
}

TEST_FILE(products_plan_test)
{
    const struct CMUnitTest tests[] = {
        TEST(refusals_name_what_fits,
             "products: a refusal names parameters that fit"),
        TEST(defaults_fit, "products: defaults fit any number of workers"),
        TEST(left_products_share_blocks,
             "products: left products use the same blocks"),
        TEST(shares,
             "products: storage, load and traffic are described as computed"),
        TEST(both_products,
             "products: a plan for both products states the larger threshold"),
        TEST(partial_answers,
             "products: plain parts are delivered if too few answer"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
