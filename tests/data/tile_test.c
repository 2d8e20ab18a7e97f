/* tile_test.c -- tests products that workers compute in tiles, against sums in
 * long double. They are tested in every cut, with one component and several, in
 * both types, from either side, and with stops. */
#include "support.h"

#include "data/kernel.h"
#include "mat/mat.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static kofn_matrix filled(size_t rows, size_t cols, size_t ld, kofn_dtype type,
                          uint32_t *seed)
{
    size_t size = type == KOFN_F64 ? 8 : 4;
    kofn_matrix a = {malloc(rows * ld * size + 1), rows, cols, ld, type};

    assert_non_null(a.data);
    for (size_t i = 0; i < rows * ld; i++) {
        double x;

        *seed = *seed * 1664525 + 1013904223;
        x = (double)(*seed >> 8) * 0x1p-23 - 1;
        if (type == KOFN_F64)
            ((double *)a.data)[i] = x;
        else
            ((float *)a.data)[i] = (float)x;
    }
    return a;
}

static double get(const kofn_matrix *a, size_t i, size_t j)
{
    size_t at = i * a->ld + j;

    return a->dtype == KOFN_F64 ? ((double *)a->data)[at]
                                : (double)((float *)a->data)[at];
}

/* Checks rows of `to` against x y. The bound holds for any order of summation:
 * n u sum |x_ik y_kj| to first order, and a little more. */
static void is_product(const kofn_matrix *to, size_t first,
                       const kofn_matrix *x, size_t lo, size_t hi,
                       const kofn_matrix *y)
{
    double u = x->dtype == KOFN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;

    for (size_t i = lo; i < hi; i++)
        for (size_t j = 0; j < y->cols; j++) {
            long double sum = 0, all = 0;
            double off;

            for (size_t k = 0; k < x->cols; k++) {
                long double t = (long double)get(x, i, k) * get(y, k, j);

                sum += t;
                all += fabsl(t);
            }
            off = fabs(get(to, first + i - lo, j) - (double)sum);
            assert_true(off <= u * (double)(x->cols + 1) * (double)all);
        }
}

/* ---- a block, its products, and when to stop ----------------------------- */

typedef struct shape {
    size_t components, rows, depth, cols, lo, hi;
} shape;

typedef struct stop_count {
    size_t looks, most;
} stop_count;

static bool stop_now(void *ud)
{
    stop_count *p = ud;

    return ++p->looks > p->most;
}

static kofn_status compute(const shape *s, bool left, kofn_dtype type,
                           stop_count *p, bool hold)
{
    uint32_t seed = (uint32_t)(s->rows * 31 + s->depth * 7 + s->cols);
    size_t size = type == KOFN_F64 ? 8 : 4, span = s->hi - s->lo;
    kofn_matrix component[4], in, out;
    kf_block b = {
        .components = s->components, .dtype = type, .component = component};
    kf_work w = {
        .in = &in, .out = &out, .lo = s->lo, .hi = s->hi, .left = left};
    kofn_status st;

    b.rows = left ? s->depth : s->rows;
    b.cols = left ? s->cols : s->depth;
    for (size_t l = 0; l < s->components; l++)
        component[l] = filled(b.rows, b.cols, b.cols + l, type, &seed);
    in = left ? filled(s->rows, s->depth, s->depth + 3, type, &seed)
              : filled(s->depth, s->cols, s->cols + 2, type, &seed);
    out = filled(s->components * span, s->cols, s->cols, type, &seed);
    memset(out.data, 0xff, s->components * span * s->cols * size); /* NaN */
    w.stopped = stop_now;
    w.ud = p;
    st = kf_data_rows_dense(&b, &w);
    for (size_t l = 0; hold && l < s->components; l++)
        is_product(&out, l * span, left ? &in : &component[l], s->lo, s->hi,
                   left ? &component[l] : &in);
    for (size_t l = 0; l < s->components; l++)
        free(component[l].data);
    free(in.data);
    free(out.data);
    return st;
}

/* ---- laws ---------------------------------------------------------------- */

/* Rows are near the size of a tile, and inner sides near its depth. There are
 * few columns or many, all strips or some. */
static const shape shapes[] = {
    {1, 40, 30, 1, 0, 40},       {1, 40, 30, 20, 3, 31},
    {1, 1, 700, 90, 0, 1},       {4, 10, 255, 64, 0, 10},
    {4, 33, 257, 70, 5, 30},     {4, 20, 511, 63, 0, 20},
    {4, 20, 513, 65, 19, 20},    {3, 70, 1100, 66, 10, 70},
    {4, 300, 530, 65, 0, 300},   {2, 530, 300, 64, 1, 528},
    {1, 1030, 300, 70, 2, 1030}, {4, 5, 2000, 1, 1, 4},
    {4, 300, 531, 65, 0, 300},   {1, 1030, 777, 70, 2, 1030},
    {4, 0, 10, 70, 0, 0},
};

static void every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int way = 0; way < 4; way++) {
            stop_count p = {0, SIZE_MAX};

            assert_int_equal(compute(&shapes[i], way % 2,
                                     way / 2 ? KOFN_F32 : KOFN_F64, &p, true),
                             KOFN_OK);
        }
}

/* The component without rows may lie among other components. */
static void components_of_zeros(void **state)
{
    uint32_t seed = 1;
    kofn_matrix component[2] = {filled(9, 40, 40, KOFN_F64, &seed), {0}};
    kofn_matrix in = filled(40, 80, 80, KOFN_F64, &seed);
    kofn_matrix out = filled(18, 80, 80, KOFN_F64, &seed);
    kf_block b = {
        .components = 2, .rows = 9, .cols = 40, .component = component};
    kf_work w = {.in = &in, .out = &out, .lo = 0, .hi = 9};

    (void)state;
    b.dtype = KOFN_F64;
    assert_int_equal(kf_data_rows_dense(&b, &w), KOFN_OK);
    is_product(&out, 0, &component[0], 0, 9, &in);
    for (size_t i = 9 * 80; i < 18 * 80; i++)
        assert_true(((double *)out.data)[i] == 0);
    free(component[0].data);
    free(in.data);
    free(out.data);
}

/* The strips wrap around at the last row. The sum stops in both halves. */
static void sums_stop(void **state)
{
    static const size_t rows = 700, cols = 80, p = 70, from[] = {100, 600};
    uint32_t seed = 5;
    kofn_matrix component = filled(rows, cols, cols, KOFN_F64, &seed);
    kofn_matrix in = filled(p, rows, rows, KOFN_F64, &seed);
    kofn_matrix out = filled(p, cols, cols, KOFN_F64, &seed);
    kf_block b = {
        .components = 1, .rows = rows, .cols = cols, .component = &component};

    (void)state;
    b.dtype = KOFN_F64;
    for (size_t i = 0; i < 2; i++) {
        stop_count all = {0, SIZE_MAX};
        kf_work w = {.in = &in,
                     .out = &out,
                     .lo = from[i],
                     .hi = from[i] + rows,
                     .left = true,
                     .stopped = stop_now,
                     .ud = &all};

        assert_int_equal(kf_data_inner_dense(&b, &w), KOFN_OK);
        is_product(&out, 0, &in, 0, p, &component);
        assert_true(all.looks > 1);
        for (size_t n = 0; n < all.looks; n++) {
            stop_count few = {0, n};

            w.ud = &few;
            assert_int_equal(kf_data_inner_dense(&b, &w), KOFN_AGAIN);
            assert_int_equal(few.looks, n + 1);
        }
    }
    free(component.data);
    free(in.data);
    free(out.data);
}

/* A' A x is computed some rows at a time, and equals A' times A x. */
static void gram_products(void **state)
{
    static const size_t rows = 331, cols = 500;
    uint32_t seed = 9;
    kofn_matrix A = filled(rows, cols, cols + 1, KOFN_F64, &seed);
    kofn_matrix x = filled(cols, 1, 1, KOFN_F64, &seed);
    kofn_matrix y = filled(cols, 1, 1, KOFN_F64, &seed);
    kf_block b = {.components = 1, .rows = rows, .cols = cols, .component = &A};
    stop_count all = {0, SIZE_MAX};
    kf_work w = {.in = &x, .out = &y, .stopped = stop_now, .ud = &all};
    long double size = 0;

    (void)state;
    b.dtype = KOFN_F64;
    assert_int_equal(kf_data_gram_dense(&b, &w), KOFN_OK);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < cols; k++)
            size += fabsl((long double)get(&A, i, k) * get(&x, k, 0));
    for (size_t j = 0; j < cols; j++) {
        long double sum = 0;

        for (size_t i = 0; i < rows; i++) {
            long double margin = 0;

            for (size_t k = 0; k < cols; k++)
                margin += (long double)get(&A, i, k) * get(&x, k, 0);
            sum += margin * get(&A, i, j);
        }
        assert_true(fabs(get(&y, j, 0) - (double)sum) <=
                    DBL_EPSILON * (double)(rows + cols) * (double)size);
    }
    assert_true(all.looks > 2);
    for (size_t n = 0; n < all.looks; n++) {
        stop_count few = {0, n};

        w.ud = &few;
        assert_int_equal(kf_data_gram_dense(&b, &w), KOFN_AGAIN);
        assert_int_equal(few.looks, n + 1);
    }
    free(A.data);
    free(x.data);
    free(y.data);
}

/* There are many checks for a stop: a tile has at most 10^9 multiply-adds. */
static void products_stop(void **state)
{
    static const shape many[] = {{4, 300, 530, 65, 0, 300},
                                 {1, 1030, 600, 90, 0, 1030},
                                 {1, 1500, 3000, 1, 0, 1500},
                                 {2, 1500, 3000, 1, 0, 1500}};

    (void)state;
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        stop_count all = {0, SIZE_MAX};

        assert_int_equal(compute(&many[i], false, KOFN_F64, &all, false),
                         KOFN_OK);
        assert_true(all.looks > 1);
        for (size_t n = 0; n < all.looks; n++) {
            stop_count p = {0, n};

            assert_int_equal(compute(&many[i], false, KOFN_F64, &p, false),
                             KOFN_AGAIN);
            assert_int_equal(p.looks, n + 1);
        }
    }
}

TEST_FILE(tile_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_cut, "tile: products are right in every cut (15 shapes)"),
        TEST(components_of_zeros, "tile: a component without rows gives zeros"),
        TEST(products_stop, "tile: a product stops at every check for a stop"),
        TEST(sums_stop,
             "tile: a sum over strips stops at every check for a stop"),
        TEST(gram_products,
             "tile: A' A x is right and stops at every check for a stop"),
    };

    kf_blas_single(); /* as in a worker */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
