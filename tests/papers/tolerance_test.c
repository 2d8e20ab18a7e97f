/* tolerance_test.c -- the number of nodes that may be wrong: the published
 * tables, and the thresholds of the codes themselves. */
#include "rig.h"

#include "dnn/dnn.h"

static dnn_tolerance of(dnn_redundancy kind, size_t P, size_t m, size_t n,
                        size_t B1, size_t B2)
{
    const dnn_nodes c = {kind, P, m, n, {B1, B2}};
    dnn_tolerance t;

    assert_ok(dnn_tolerance_of(&c, &t));
    return t;
}

static void same(dnn_tolerance t, size_t af, size_t ab, size_t pf, size_t pb)
{
    assert_int_equal(t.adversarial[0], af);
    assert_int_equal(t.adversarial[1], ab);
    assert_int_equal(t.probabilistic[0], pf);
    assert_int_equal(t.probabilistic[1], pb);
}

/* 12 nodes and a grid of 2 x 2, by hand. */
static void twelve_nodes(void **state)
{
    (void)state;
    same(of(DNN_GPD_UVN, 12, 2, 2, 1, 1), 3, 3, 6, 5);
    same(of(DNN_GPD_VUM, 12, 2, 2, 1, 1), 3, 3, 5, 6);
    same(of(DNN_REPLICATION, 12, 2, 2, 1, 1), 1, 1, 1, 1);
    same(of(DNN_TWO_MDS, 12, 2, 2, 1, 1), 1, 1, 1, 1);
    same(of(DNN_REPLICATION, 4, 2, 2, 1, 1), 0, 0, 0, 0);
    same(of(DNN_TWO_MDS, 4, 2, 2, 1, 1), 0, 0, 0, 0);
}

/* The expressions of Table III as printed. */
static void as_printed(void **state)
{
    (void)state;
    for (size_t m = 1; m <= 4; m++)
        for (size_t n = 1; n <= 4; n++)
            for (size_t B = 1; B <= 3; B++) {
                size_t P = 100, C = 4 - B, mn = m * n;

                same(of(DNN_GPD_UVN, P, m, n, B, C), (P - mn * B - n + 1) / 2,
                     (P - mn * C - mn + n) / 2, P - mn * B - n,
                     P - mn * C - mn + n - 1);
                same(of(DNN_GPD_VUM, P, m, n, B, C), (P - mn * B - mn + m) / 2,
                     (P - mn * C - m + 1) / 2, P - mn * B - mn + m - 1,
                     P - mn * C - m);
            }
}

/* Any K of K + 3 workers suffice, each with its own point. */
static void decodes(size_t m, size_t n, size_t p, const char *sub, kofn_op op,
                    size_t K)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(op, 24, 24, 24, KOFN_F64, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;
    char spec[80];

    snprintf(spec, sizeof spec, "gpd:m=%zu,n=%zu,p=%zu,sub=%s", m, n, p, sub);
    assert_ok(kofn_plan_new(&plan, &pb, spec, K + 3, 1));
    assert_ok(kofn_plan_describe(plan, false, &info));
    assert_int_equal(info.threshold, K);
    kofn_plan_free(plan);
}

static void thresholds_are_those_of_the_codes(void **state)
{
    (void)state;
    for (size_t m = 1; m <= 3; m++)
        for (size_t n = 1; n <= 3; n++)
            for (size_t p = 1; p <= 3; p++)
                for (int vum = 0; vum < 2; vum++) {
                    const char *sub = vum ? "vum" : "uvn";
                    dnn_tolerance t =
                        of(vum ? DNN_GPD_VUM : DNN_GPD_UVN, 70, m, n, p, p);

                    decodes(m, n, p, sub, KOFN_MATMUL, t.K[0]);
                    decodes(m, n, p, sub, KOFN_LEFT, t.K[1]);
                }
}

/* With 4 m^2 nodes for a square grid, the code tolerates P/4 times the errors
 * of four copies in the forward product (3/2 before rounding down), and
 * sqrt(P) times those of two codes. */
static void as_nodes_grow(void **state)
{
    double P = 16384, code, two;

    (void)state;
    code = (double)of(DNN_GPD_UVN, 16384, 64, 64, 1, 1).adversarial[0];
    two = (double)of(DNN_TWO_MDS, 16384, 64, 64, 1, 1).adversarial[0];
    same(of(DNN_REPLICATION, 16384, 64, 64, 1, 1), 1, 1, 2, 2);
    assert_at_most(fabs(code / 1.5 / P - 0.25), 0.01);
    assert_at_most(fabs(code / two / sqrt(P) - 1), 0.05);
}

static void too_few_are_refused(void **state)
{
    dnn_tolerance t;

    (void)state;
    for (size_t P = 0; P <= 6; P++) /* K is 5 and 6 */
        assert_status(
            KOFN_TOOFEW,
            dnn_tolerance_of(&(dnn_nodes){DNN_GPD_UVN, P, 2, 2, {1, 1}}, &t));
    assert_ok(dnn_tolerance_of(&(dnn_nodes){DNN_GPD_UVN, 7, 2, 2, {1, 1}}, &t));
    assert_status(
        KOFN_TOOFEW,
        dnn_tolerance_of(&(dnn_nodes){DNN_REPLICATION, 3, 2, 2, {1, 1}}, &t));
    assert_status(
        KOFN_INVAL,
        dnn_tolerance_of(&(dnn_nodes){DNN_GPD_UVN, 7, 0, 2, {1, 1}}, &t));
    assert_status(KOFN_INVAL,
                  dnn_tolerance_of(
                      &(dnn_nodes){DNN_GPD_UVN, 7, 2, SIZE_MAX, {1, 1}}, &t));
    assert_status(
        KOFN_INVAL,
        dnn_tolerance_of(&(dnn_nodes){DNN_GPD_UVN, 7, 2, 2, {0, 1}}, &t));
}

TEST_FILE(tolerance_test)
{
    const struct CMUnitTest tests[] = {
        TEST(twelve_nodes,
             "tolerance: 12 nodes on a 2 x 2 grid agree with hand calculation"),
        TEST(as_printed, "tolerance: Table III is reproduced as printed"),
        TEST(thresholds_are_those_of_the_codes,
             "tolerance: thresholds are those of kofn's codes"),
        TEST(as_nodes_grow,
             "tolerance: the growth with P is the published one"),
        TEST(too_few_are_refused, "tolerance: too few nodes are refused"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
