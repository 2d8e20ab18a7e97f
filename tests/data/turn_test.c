/* turn_test.c -- tests transposes entry by entry: every small shape and some
 * that are larger than a band of rows, in both types. They lie inside larger
 * matrices, and the rest of these must be unchanged. */
#include "support.h"

#include "mat/mat.h"

#define MOST 70

/* Makes every entry another number, and none 0. */
static void fill(kofn_matrix *a)
{
    for (size_t i = 0; i < a->rows * a->ld; i++)
        if (a->dtype == KOFN_F64)
            ((double *)a->data)[i] = 1.0 + (double)i;
        else
            ((float *)a->data)[i] = 1.0F + (float)i;
}

static void turns(size_t rows, size_t cols, size_t beside, kofn_dtype type)
{
    static double from[MOST * (MOST + 8)], to[(MOST + 1) * (MOST + 8)];
    kofn_matrix a = {from, cols + beside % 3, rows + beside, rows + beside,
                     type};
    kofn_matrix b = {to, rows, cols, cols + beside, type};

    memset(to, 0, sizeof to);
    fill(&a);
    kf_mat_transpose(&a, &b);
    for (size_t i = 0; i <= rows; i++)
        for (size_t j = 0; j < b.ld; j++) {
            double is = kf_mat_number(to, i * b.ld + j, type);
            double want = i < rows && j < cols
                              ? kf_mat_number(from, j * a.ld + i, type)
                              : 0;

            if (is != want)
                fail_msg("(%zu, %zu) of %zu x %zu is %g, not %g", i, j, rows,
                         cols, is, want);
        }
}

static void transposes_are_exact(void **state)
{
    (void)state;
    for (int type = KOFN_F64; type <= KOFN_F32; type++) {
        for (size_t rows = 1; rows <= 20; rows++)
            for (size_t cols = 1; cols <= 20; cols++)
                turns(rows, cols, (rows + cols) % 8, (kofn_dtype)type);
        turns(64, 60, 0, (kofn_dtype)type);
        turns(MOST - 3, MOST - 3, 5, (kofn_dtype)type);
    }
}

TEST_FILE(turn_test)
{
    const struct CMUnitTest tests[] = {
        TEST(transposes_are_exact,
             "data: transposes are exact (all shapes up to 20 x 20)"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
