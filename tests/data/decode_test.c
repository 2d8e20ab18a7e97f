/* decode_test.c -- tests decoding of blocks that lie side by side in the
 * output. They are cut off at its edges, have gaps between their rows, or are
 * larger than the caches. */
#include "support.h"

#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GAP 3 /* numbers between the rows of the output */
#define MARK (-77.0)

typedef struct product {
    const char *spec;
    size_t workers, m, n, p;
    kofn_dtype dtype;
} product;

static double get(const kofn_matrix *a, size_t i, size_t j)
{
    size_t at = i * a->ld + j;

    return a->dtype == KOFN_F64 ? ((double *)a->data)[at]
                                : (double)((float *)a->data)[at];
}

static void set(kofn_matrix *a, size_t at, double x)
{
    if (a->dtype == KOFN_F64)
        ((double *)a->data)[at] = x;
    else
        ((float *)a->data)[at] = (float)x;
}

static kofn_matrix matrix(size_t rows, size_t cols, size_t gap,
                          kofn_dtype dtype, uint32_t seed)
{
    kofn_matrix a = {malloc(rows * (cols + gap) * sizeof(double)), rows, cols,
                     cols + gap, dtype};

    assert_non_null(a.data);
    for (size_t i = 0; i < rows * a.ld; i++) {
        seed = seed * 1664525 + 1013904223;
        set(&a, i, (double)(seed >> 8) * 0x1p-23 - 1);
    }
    return a;
}

/* Checks C = A B. Numbers are at most 1, sums have n terms, and the tolerance
 * of the job is the bound for a term. The gaps must be unchanged. */
static void is_product(const kofn_matrix *C, const kofn_matrix *A,
                       const kofn_matrix *B, double tolerance)
{
    for (size_t i = 0; i < C->rows; i++) {
        for (size_t j = 0; j < C->cols; j++) {
            double sum = 0;

            for (size_t k = 0; k < A->cols; k++)
                sum += get(A, i, k) * get(B, k, j);
            assert_true(fabs(get(C, i, j) - sum) <=
                        tolerance * (double)A->cols);
        }
        for (size_t j = C->cols; j < C->ld; j++)
            assert_true(get(C, i, j) == MARK);
    }
}

/* Runs one product. The first worker leaves, so that results must be mixed. */
static void one_product(const product *x)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, x->m, x->n, x->p, x->dtype, false);
    kofn_fault_event gone = {1, 0, KOFN_FAULT_EVENT_LEAVE, 0, 0};
    kofn_matrix A = matrix(x->m, x->n, 0, x->dtype, 1);
    kofn_matrix B = matrix(x->n, x->p, 0, x->dtype, 2);
    kofn_matrix C = matrix(x->m, x->p, GAP, x->dtype, 3);
    kofn_options o = KOFN_OPTIONS_INIT;
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    o.events = &gone;
    o.event_count = 1;
    o.max_error = x->dtype == KOFN_F64 ? 1e-9 : 1e-3;
    for (size_t i = 0; i < C.rows * C.ld; i++)
        set(&C, i, MARK);
    assert_ok(kofn_plan_new(&plan, &pb, x->spec, x->workers, 1));
    assert_ok(kofn_port_sim(&port, x->workers, NULL));
    assert_ok(kofn_open(&job, plan, port, &o));
    assert_ok(kofn_place(job, &A));
    assert_ok(kofn_round(job, &B, &C, NULL));
    is_product(&C, &A, &B, o.max_error);
    kofn_close(job);
    kofn_plan_free(plan);
    free(A.data);
    free(B.data);
    free(C.data);
}

static void adjacent_wants(void **state)
{
    static const product products[] = {
        {"polynomial:m=2,p=2", 6, 60, 7, 320, KOFN_F64},
        {"polynomial:m=2,p=2", 6, 59, 7, 319, KOFN_F64},
        {"polynomial:m=2,p=2", 6, 60, 7, 600, KOFN_F32},
        {"polynomial:m=2,p=2", 6, 60, 7, 599, KOFN_F32},
        {"polynomial:m=2,p=2", 6, 60, 7, 10, KOFN_F64},
        {"polynomial:m=3,p=2,basis=circle", 8, 61, 3, 300, KOFN_F64},
        /* all blocks are mixed, also at the edge */
        {"polynomial:m=3,p=2,basis=circle", 8, 61, 3, 299, KOFN_F64},
        {"polynomial:m=2,p=2,basis=circle", 6, 59, 3, 519, KOFN_F32},
        {"polynomial:m=2,p=2,basis=circle", 6, 59, 3, 9, KOFN_F64},
        {"gpd:m=2,n=2,p=2", 12, 60, 8, 320, KOFN_F64},
        {"product:m=2,m2=3,p=2,p2=3", 9, 60, 5, 333, KOFN_F64},
        {"matdot:n=2", 4, 60, 8, 320, KOFN_F64},
        {"polynomial:m=5,p=5", 27, 9, 2, 700, KOFN_F64},
    };

    (void)state;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        one_product(&products[i]);
}

/* Results and output take 38 MB together. */
static void larger_than_caches(void **state)
{
    (void)state;
    one_product(&(product){"polynomial:m=2,p=2,basis=circle", 6, 1500, 2, 1600,
                           KOFN_F64});
}

static int setup(void **state)
{
    (void)state;
    kf_blas_single();
    return 0;
}

/* Answers of a transposed code are added into rows with other numbers between
 * them. */
static void sums_between_rows(void **state)
{
    double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {10, 20, 30, 40, 50, 60}, y[15];
    const kofn_matrix A = {a, 3, 2, 2, KOFN_F64}, B = {b, 3, 2, 2, KOFN_F64};
    const kf_source source[] = {{&A, 0, 3}, {&B, 0, 3}};
    kofn_matrix out = {y, 3, 2, 5, KOFN_F64};

    (void)state;
    for (size_t i = 0; i < 15; i++)
        y[i] = -1;
    assert_ok(kf_data_add_up(source, 2, &out));
    for (size_t i = 0; i < 15; i++)
        assert_true(y[i] == (i % 5 < 2 ? 11 * a[i / 5 * 2 + i % 5] : -1));
}

TEST_FILE(decode_test)
{
    const struct CMUnitTest tests[] = {
        TEST(sums_between_rows,
             "data: sums leave the numbers between their rows alone"),
        TEST(adjacent_wants,
             "data: decoded blocks that share rows are right (13 codes)"),
        TEST(larger_than_caches,
             "data: decoding is right for results larger than the caches"),
    };

    return cmocka_run_group_tests_name("decode", tests, setup, NULL);
}
