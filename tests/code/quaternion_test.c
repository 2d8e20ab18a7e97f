/* quaternion_test.c -- tiled products against simple loops, and matrices of
 * blocks L(q) against the code for general matrices. */
#include "code_rig.h"

/* ---- products ------------------------------------------------------------ */

/* The order of terms is guaranteed: results are equal to the bit. */
static void one_product(size_t m, size_t k, size_t n)
{
    size_t lda = k + 3, ldb = n + 2, ldc = n + 5;
    double *A = normals(m * lda, 1), *B = normals(k * ldb, 2);
    double *C = normals(m * ldc, 3), *D = numbers(m * ldc);

    memcpy(D, C, m * ldc * sizeof *C);
    for (size_t i = 0; i < m; i++)
        for (size_t c = 0; c < n; c++)
            for (size_t j = 0; j < k; j++) {
                volatile double term = A[i * lda + j] * B[j * ldb + c];

                D[i * ldc + c] -= term;
            }
    kf_code_subtract_product(&(kf_difference){m, k, n, A, lda, B, ldb, C, ldc});
    assert_memory_equal(C, D, m * ldc * sizeof *C);
    kf_free(A);
    kf_free(B);
    kf_free(C);
    kf_free(D);
}

static void products_keep_their_order(void **state)
{
    static const size_t rows[] = {1, 3, 4, 5, 8, 11}, terms[] = {1, 4, 7, 30},
                        cols[] = {1, 15, 16, 17, 33, 64, 65, 95, 147};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t j = 0; j < sizeof terms / sizeof *terms; j++)
            for (size_t c = 0; c < sizeof cols / sizeof *cols; c++)
                one_product(rows[i], terms[j], cols[c]);
}

/* ---- blocks -------------------------------------------------------------- */

/* Hamilton's table: the product of units a and b, and its sign. */
static void units(size_t a, size_t b, size_t *unit, double *sign)
{
    static const int table[4][4] = {
        {1, 2, 3, 4}, {2, -1, 4, -3}, {3, -4, -1, 2}, {4, 3, -2, -1}};
    int entry = table[a][b];

    *unit = (size_t)abs(entry) - 1;
    *sign = entry < 0 ? -1 : 1;
}

/* Returns an m x n matrix of blocks: multiplication by random quaternions. */
static double *blocks(size_t m, size_t n, uint32_t tag)
{
    double *q = normals(m * n / 4, tag), *A = numbers(m * n);

    for (size_t i = 0; i < m; i += 4)
        for (size_t j = 0; j < n; j += 4)
            for (size_t a = 0; a < 4; a++)
                for (size_t b = 0; b < 4; b++) {
                    size_t unit;
                    double sign;

                    units(a, b, &unit, &sign);
                    A[(i + unit) * n + j + b] += sign * q[i * n / 4 + j + a];
                }
    kf_free(q);
    return A;
}

static bool recognised(const double *A, size_t n)
{
    kf_row rows[4];
    bool yes;

    for (size_t l = 0; l < 4; l++) {
        rows[l] = (kf_row){0, kf_zero(n, sizeof(uint32_t)), numbers(n)};
        for (size_t j = 0; j < n; j++)
            if (A[l * n + j] != 0) {
                rows[l].col[rows[l].n] = (uint32_t)j;
                rows[l].val[rows[l].n++] = A[l * n + j];
            }
    }
    yes = kf_code_quaternions(rows);
    for (size_t l = 0; l < 4; l++) {
        kf_free(rows[l].col);
        kf_free(rows[l].val);
    }
    return yes;
}

static void blocks_are_recognised(void **state)
{
    double *A = blocks(4, 24, 1);

    (void)state;
    for (size_t e = 4; e < 8; e++) /* a block of zeros */
        for (size_t l = 0; l < 4; l++)
            A[l * 24 + e] = 0;
    assert_true(recognised(A, 24));
    for (size_t e = 0; e < 96; e += 5) {
        double was = A[e];

        A[e] += 1;
        assert_false(recognised(A, 24));
        A[e] = was;
    }
    kf_free(A);
}

static void numbers_come_in_fours(void **state)
{
    uint32_t x[] = {4, 5, 6, 7, 99, 99, 99, 99, 12, 13, 14, 15};

    (void)state;
    assert_true(kf_code_in_fours(x, 12, 99));
    assert_true(kf_code_in_fours(x, 0, 99));
    assert_false(kf_code_in_fours(x, 11, 99));
    for (size_t i = 0; i < 12; i++) { /* each of them changed, or missing */
        uint32_t was = x[i];

        x[i] = 20;
        assert_false(kf_code_in_fours(x, 12, 99));
        x[i] = was == 99 ? 3 : 99;
        assert_false(kf_code_in_fours(x, 12, 99));
        x[i] = was;
    }
    for (size_t i = 0; i < 4; i++) /* across two blocks */
        x[i]++;
    assert_false(kf_code_in_fours(x, 12, 99));
}

static void products_of_blocks(void **state)
{
    size_t m = 12, k = 20, n = 36;
    double *A = blocks(m, k, 1), *B = blocks(k, n, 2), *C = blocks(m, n, 3);
    double *D = numbers(m * n);

    (void)state;
    memcpy(D, C, m * n * sizeof *C);
    kf_code_subtract_product(&(kf_difference){m, k, n, A, k, B, n, D, n});
    assert_ok(kf_code_subtract_quaternions(m, k, n, A, B, C));
    for (size_t i = 0; i < m * n; i++) /* k terms of a few units at most */
        assert_true(fabs(C[i] - D[i]) <= 200 * (double)k * U);
    kf_free(A);
    kf_free(B);
    kf_free(C);
    kf_free(D);
}

/* ---- decoders ------------------------------------------------------------ */

/* Makes the same decoder without using blocks. */
static kofn_decoder *by_numbers(kf_code *c, const uint32_t *seats, size_t n)
{
    kofn_decoder *d;
    bool was[16];

    for (size_t i = 0; i < n; i++) {
        was[i] = c->seat[seats[i]]->quaternions;
        c->seat[seats[i]]->quaternions = false;
    }
    assert_ok(kf_decoder_new(&d, c, seats, n, false));
    for (size_t i = 0; i < n; i++)
        c->seat[seats[i]]->quaternions = was[i];
    return d;
}

/* Both invert, and refine, sets with a condition of at most `condition`. */
static void same_decoders(kf_code *c, const uint32_t *seats, size_t n)
{
    kofn_decoder *d, *e;
    double top = 0;

    assert_ok(kf_decoder_new(&d, c, seats, n, false));
    e = by_numbers(c, seats, n);
    assert_int_equal(d->mixed, e->mixed);
    assert_memory_equal(d->copy, e->copy, d->wants * sizeof *d->copy);
    for (size_t i = 0; i < d->mixed * d->results; i++)
        top = kf_larger(top, fabs(e->D[i]));
    for (size_t i = 0; i < d->mixed * d->results; i++)
        assert_true(fabs(d->D[i] - e->D[i]) <=
                    100 * (double)d->results * U * e->condition * top);
    assert_true(fabs(d->noise - e->noise) <= 1e-9 * e->noise);
    kf_decoder_free(d);
    kf_decoder_free(e);
}

/* Every set of k, k + 1 or k + 2 of n seats. */
static void decoders_of_blocks(void **state)
{
    const kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 160, 7, 1, KOFN_F64, false);
    size_t tried = 0;
    kofn_plan *p;
    kf_code *c;

    (void)state;
    assert_ok(kofn_plan_new(&p, &pb, "elastic:k=5", 9, 1));
    assert_int_equal(p->layout.components, 4);
    assert_ok(kf_code_new(&c, p));
    for (size_t i = 0; i < 9; i++) {
        const kf_seat *seat;

        assert_ok(kf_code_seat(c, i, &seat));
        assert_true(seat->quaternions);
    }
    for (unsigned set = 0; set < 512; set++) {
        uint32_t seats[9];
        size_t n = 0;

        for (unsigned i = 0; i < 9; i++)
            if (set & 1U << i)
                seats[n++] = i;
        if (n < 5 || n > 7)
            continue;
        same_decoders(c, seats, n);
        tried++;
    }
    assert_int_equal(tried, 126 + 84 + 36);
    kf_code_free(c);
    kofn_plan_free(p);
}

TEST_FILE(quaternion_test)
{
    const struct CMUnitTest tests[] = {
        TEST(products_keep_their_order,
             "quaternions: tiled products keep the order of terms to the bit"),
        TEST(blocks_are_recognised,
             "quaternions: matrices of blocks L(q) are recognised"),
        TEST(numbers_come_in_fours,
             "quaternions: runs of four consecutive numbers are recognised"),
        TEST(products_of_blocks,
             "quaternions: products of blocks equal general products"),
        TEST(decoders_of_blocks,
             "quaternions: decoders of blocks equal general decoders"),
    };

    return cmocka_run_group_tests_name("quaternion", tests, setup, NULL);
}
