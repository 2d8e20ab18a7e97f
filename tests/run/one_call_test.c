/* one_call_test.c -- kofn_product: a whole product in one call. */
#include "rig.h"

enum { GAP = 3 };

/* Makes a random matrix with NaN between the rows. */
static kofn_matrix strided(size_t m, size_t n, kofn_dtype dtype, uint64_t seed)
{
    kofn_matrix a = random_matrix(m, n + GAP, dtype, seed);

    a.cols = n;
    for (size_t i = 0; i < m; i++)
        for (size_t j = n; j < n + GAP; j++)
            kf_mat_put(&a, i, j, NAN);
    return a;
}

/* Returns the largest error, relative to the norms of the row and the column.
 */
static double error_of(const kofn_matrix *A, const kofn_matrix *B,
                       const kofn_matrix *C)
{
    double *want = plain_product(A, B), worst = 0;

    for (size_t i = 0; i < C->rows; i++)
        for (size_t j = 0; j < C->cols; j++) {
            double a = 0, b = 0, off = kf_mat_entry(C, i, j);

            for (size_t l = 0; l < A->cols; l++) {
                a = hypot(a, kf_mat_entry(A, i, l));
                b = hypot(b, kf_mat_entry(B, l, j));
            }
            off = fabs(off - want[i * C->cols + j]) / (a * b);
            worst = off <= worst ? worst : off; /* NaN is the worst */
        }
    kf_free(want);
    return worst;
}

/* Fails if a number between the rows has changed. */
static void assert_gaps(const kofn_matrix *C)
{
    for (size_t i = 0; i < C->rows; i++)
        for (size_t j = C->cols; j < C->ld; j++)
            assert_true(isnan(kf_mat_entry(C, i, j)));
}

static void as_plain(void **state)
{
    static const struct {
        const char *scheme;
        size_t workers, m, n, p;
    } is[] = {{"elastic:k=3", 5, 41, 13, 7},      {"mds:k=2", 3, 10, 30, 1},
              {"polynomial:p=2,q=2", 6, 9, 8, 5}, {"matdot:n=2", 4, 6, 11, 6},
              {"gpd:m=2,n=1,p=2", 9, 12, 7, 4},   {"uncoded", 2, 1, 1, 1},
              {"replication", 4, 8, 3, 2}};

    (void)state;
    for (size_t i = 0; i < 2 * (sizeof is / sizeof *is); i++) {
        kofn_dtype dtype = i % 2 ? KOFN_F32 : KOFN_F64;
        size_t s = i / 2;
        kofn_matrix A = strided(is[s].m, is[s].n, dtype, 3 * i);
        kofn_matrix B = strided(is[s].n, is[s].p, dtype, 3 * i + 1);
        kofn_matrix C = strided(is[s].m, is[s].p, dtype, 3 * i + 2);

        assert_ok(kofn_product(&A, &B, &C, is[s].scheme, is[s].workers));
        assert_at_most(error_of(&A, &B, &C), dtype ? 1e-4 : 1e-11);
        assert_gaps(&C);
        kf_free(A.data);
        kf_free(B.data);
        kf_free(C.data);
    }
}

/* Expects a failure whose message has these words, and an output that is not
 * touched. */
static void refused(kofn_status want, const char *words, const kofn_matrix *A,
                    const kofn_matrix *B, const char *scheme)
{
    double c[6] = {7, 7, 7, 7, 7, 7};
    kofn_matrix C = {c, 2, 3, 3, KOFN_F64};

    assert_status(want, kofn_product(A, B, &C, scheme, 3));
    if (!strstr(kofn_errmsg(), words))
        fail_msg("%s", kofn_errmsg());
    for (size_t i = 0; i < 6; i++)
        assert_true(c[i] == 7);
}

static void wrong_calls(void **state)
{
    double numbers[12] = {0};
    float narrow[12] = {0};
    kofn_matrix A = {numbers, 2, 4, 4, KOFN_F64},
                B = {numbers, 4, 3, 3, KOFN_F64};
    kofn_matrix long_B = {numbers, 3, 3, 3, KOFN_F64};
    kofn_matrix wide_B = {numbers, 4, 2, 2, KOFN_F64};
    kofn_matrix tall_A = {numbers, 3, 4, 4, KOFN_F64};
    kofn_matrix narrow_B = {narrow, 4, 3, 3, KOFN_F32};
    kofn_matrix empty = {numbers, 0, 4, 4, KOFN_F64};

    (void)state;
    refused(KOFN_SHAPE, "as many rows as A has columns, 4", &A, &long_B,
            "uncoded");
    refused(KOFN_SHAPE, "C is 2 x 3; A B needs 2 x 2", &A, &wide_B, "uncoded");
    refused(KOFN_SHAPE, "C is 2 x 3; A B needs 3 x 3", &tall_A, &B, "uncoded");
    refused(KOFN_SHAPE, "A is float64", &A, &narrow_B, "uncoded");
    refused(KOFN_SHAPE, "A is 0 x 4", &empty, &B, "uncoded");
    refused(KOFN_INVAL, "B is missing", &A, NULL, "uncoded");
    refused(KOFN_INVAL, "the scheme is missing", &A, &B, NULL);
    refused(KOFN_NOSCHEME, "\"nonsense\"", &A, &B, "nonsense");
    refused(KOFN_INVAL, "ask for k <= 3", &A, &B, "mds:k=4");
    refused(KOFN_UNSUITED, "gc", &A, &B, "gc:d=2");
    numbers[0] = NAN;
    refused(KOFN_NONFINITE, "", &A, &B, "uncoded");
}

TEST_FILE(one_call_test)
{
    const struct CMUnitTest tests[] = {
        TEST(as_plain, "one call: the product is that of plain BLAS"),
        TEST(wrong_calls, "one call: what does not fit is refused"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("one_call", tests, NULL, NULL);
}
