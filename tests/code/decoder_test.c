/* decoder_test.c -- wanted combinations of symbols: D = W G^+ against LAPACK,
 * and layouts of the test that no scheme of the library has. */
#include "product_rig.h"

#include <lapacke.h>

#define U 0x1p-52

/* ---- D = W G^+ ----------------------------------------------------------- */

/* Returns an A of this shape and rank, with columns scaled by powers of
 * `scale` and `twins` repeated rows. */
static double *random_rows(size_t rows, size_t cols, size_t rank, double scale,
                           size_t twins, kf_rng *r)
{
    double *A = room(rows * cols, sizeof *A);
    double *L = room(rows * rank, sizeof *L), *R = room(rank * cols, sizeof *R);

    for (size_t i = 0; i < rows * rank; i++)
        L[i] = kf_rng_normal(r);
    for (size_t i = 0; i < rank * cols; i++)
        R[i] = kf_rng_normal(r);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            for (size_t t = 0; t < rank; t++)
                A[i * cols + j] += L[i * rank + t] * R[t * cols + j];
            A[i * cols + j] *= pow(scale, (double)j);
        }
    for (size_t t = 0; t < twins; t++)
        memcpy(A + (rows - 1 - t) * cols, A + t * cols, cols * sizeof *A);
    kf_free(L);
    kf_free(R);
    return A;
}

/* Returns the smallest D' that comes closest to A' D' = W', by SVD. */
static double *by_lapack(const double *A, size_t rows, size_t cols,
                         const double *W, size_t wants)
{
    size_t m = rows > cols ? rows : cols;
    double *M = room(rows * cols, sizeof *M), *B = room(m * wants, sizeof *B);
    double *sv = room(m, sizeof *sv);
    lapack_int rank;

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            M[j * rows + i] = A[i * cols + j];
    for (size_t w = 0; w < wants; w++)
        for (size_t j = 0; j < cols; j++)
            B[j * wants + w] = W[w * cols + j];
    assert_int_equal(LAPACKE_dgelsd(LAPACK_ROW_MAJOR, (lapack_int)cols,
                                    (lapack_int)rows, (lapack_int)wants, M,
                                    (lapack_int)rows, B, (lapack_int)wants, sv,
                                    1e-11, &rank),
                     0);
    kf_free(M);
    kf_free(sv);
    return B;
}

static double off_by(const double *D, const double *Dt, size_t wants,
                     size_t rows)
{
    double top = 0, bottom = 0;

    for (size_t w = 0; w < wants; w++)
        for (size_t r = 0; r < rows; r++) {
            double x = D[w * rows + r] - Dt[r * wants + w];

            top += x * x;
            bottom += Dt[r * wants + w] * Dt[r * wants + w];
        }
    return sqrt(top / bottom);
}

/* Uses wants that the rows determine: for those the scale of symbols makes no
 * difference. */
static void pseudo_inverses(void **state)
{
    static const struct {
        size_t rows, cols, rank, twins;
    } shapes[] = {{1, 1, 1, 0},    {5, 5, 5, 0},    {20, 20, 20, 0},
                  {30, 12, 12, 0}, {12, 30, 12, 0}, {30, 12, 12, 9},
                  {12, 30, 9, 3},  {20, 20, 11, 0}, {40, 7, 3, 0},
                  {7, 40, 3, 2},   {60, 50, 50, 5}, {9, 1, 1, 3}};
    static const double scales[] = {1, 1e3, 1e-2};

    (void)state;
    for (size_t c = 0; c < sizeof shapes / sizeof *shapes; c++)
        for (size_t s = 0; s < 3; s++) {
            size_t rows = shapes[c].rows, cols = shapes[c].cols, wants = 4;
            double scale = cols > 12 ? sqrt(sqrt(scales[s])) : scales[s];
            kf_rng r = kf_rng_stream(c, KF_FOR_DATA, (uint32_t)s, 4);
            double *A = random_rows(rows, cols, shapes[c].rank, scale,
                                    shapes[c].twins, &r);
            double *W = room(wants * cols, sizeof *W), condition;
            double *D = room(wants * rows, sizeof *D), *Dt;

            for (size_t w = 0; w < wants; w++)
                for (size_t i = 0; i < rows; i++) {
                    double x = kf_rng_normal(&r);

                    for (size_t j = 0; j < cols; j++)
                        W[w * cols + j] += x * A[i * cols + j];
                }
            assert_ok(kf_pseudo(&(kf_equation){rows, cols, A, wants, W}, D,
                                &condition));
            /* LAPACK gets it unscaled, which W in the span of A undoes */
            for (size_t j = 0; j < cols; j++) {
                double unscale = pow(scale, -(double)j);

                for (size_t i = 0; i < rows; i++)
                    A[i * cols + j] *= unscale;
                for (size_t w = 0; w < wants; w++)
                    W[w * cols + j] *= unscale;
            }
            Dt = by_lapack(A, rows, cols, W, wants);
            assert_at_most(off_by(D, Dt, wants, rows), 1e-9);
            assert_true(condition >= 1 && condition < 1e6);
            kf_free(A);
            kf_free(W);
            kf_free(D);
            kf_free(Dt);
        }
}

/* An impossible want is missed by as little as possible. */
static void out_of_reach(void **state)
{
    static const double G[] = {1, 0, 0, 0, 1, 0}, W[] = {3, 4, 5};
    static const double none[6];
    double D[2], condition;

    (void)state;
    assert_ok(kf_pseudo(&(kf_equation){2, 3, G, 1, W}, D, &condition));
    assert_true(fabs(D[0] - 3) < 4 * U && fabs(D[1] - 4) < 4 * U);
    assert_ok(kf_pseudo(&(kf_equation){2, 3, none, 1, W}, D, &condition));
    assert_true(D[0] == 0 && D[1] == 0);
}

/* ---- layouts of the test --------------------------------------------------
 */

/* The sum of k row blocks on k seats: seat i holds the sum of blocks i and
 * i+1, so half the seats can suffice. */
static const kofn_param none[] = {{0}};

static kofn_status sum_layout(kofn_layout *L)
{
    size_t k = L->workers;

    L->seats = L->max_seats = k;
    L->enough = k / 2;
    L->threshold = k;
    L->cut[0].rows = k;
    L->symbols = k;
    L->wants = 1;
    L->W = kofn_layout_table(1, k);
    if (!L->W)
        return KOFN_NOMEM;
    for (size_t j = 0; j < k; j++)
        L->W[j] = 1;
    return KOFN_OK;
}

static kofn_status sum_seat(const kofn_layout *L, size_t seat, double *E0,
                            double *E1, double *G)
{
    (void)E1;
    E0[seat] = E0[(seat + 1) % L->seats] = 1;
    memcpy(G, E0, L->seats * sizeof *G);
    return KOFN_OK;
}

static const kofn_scheme sums = {
    .size = sizeof(kofn_scheme),
    .name = "sums",
    .summary = "a sum of row blocks, two of them a seat",
    .cite = "-",
    .ops = KOFN_MATVEC,
    .params = none,
    .layout = sum_layout,
    .seat = sum_seat,
};

static void fewer_results_than_symbols(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 7, 1, KOFN_F64, false);
    uint32_t set[6];
    size_t met = 0;
    kofn_plan *p;
    kf_code *code;

    (void)state;
    assert_ok(kofn_plan_new_for(&p, &pb, &sums, NULL, 6, 1));
    assert_ok(kf_code_new(&code, p));
    for (uint32_t bits = 0; bits < 64; bits++) {
        uint32_t other = 0;
        size_t n = 0;
        kofn_decoder *d;
        bool have;

        for (uint32_t i = 0; i < 6; i++)
            if (bits >> i & 1)
                set[n++] = i;
            else
                other |= 1u << i;
        /* all even or all odd seats form a partition */
        have = (bits & 0x15) == 0x15 || (bits & 0x2a) == 0x2a;
        if (!have) {
            assert_status(KOFN_TOOFEW, kf_decoder_new(&d, code, set, n, false));
            continue;
        }
        met++;
        assert_ok(kf_decoder_new(&d, code, set, n, false));
        assert_true(d->mixed == 1 && d->wants == 1 && d->whole);
        for (size_t j = 0; j < 6; j++) {
            double sum = 0;

            for (size_t i = 0; i < n; i++)
                sum += d->D[i] * (set[i] == j || (set[i] + 1) % 6 == j);
            assert_at_most(fabs(sum - 1), 8 * U);
        }
        if (n == 3) /* weights 1 each, rows of norm sqrt2 */
            assert_at_most(fabs(d->noise - sqrt(6)), 1e-14);
        kf_decoder_free(d);
        assert_status(KOFN_TOOFEW, kf_decoder_new(&d, code, set, n, true));
    }
    assert_int_equal(met, 15);
    kf_code_free(code);
    kofn_plan_free(p);
}

/* The same with equal seats 0 and 1: the promised threshold is false, which is
 * the code's fault and not the workers'. */
static kofn_status twin_seat(const kofn_layout *L, size_t seat, double *E0,
                             double *E1, double *G)
{
    return sum_seat(L, seat == 1 ? 0 : seat, E0, E1, G);
}

static kofn_status twin_layout(kofn_layout *L)
{
    kofn_status st = sum_layout(L);

    L->threshold = 4;
    L->W[0] = 3;
    return st;
}

static void broken_promises(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 7, 1, KOFN_F64, false);
    static const uint32_t few[] = {0, 1, 2}, many[] = {0, 1, 2, 3};
    kofn_scheme twins = sums;
    kofn_plan *p;
    kf_code *code;
    kofn_decoder *d;

    (void)state;
    twins.layout = twin_layout;
    twins.seat = twin_seat;
    assert_ok(kofn_plan_new_for(&p, &pb, &twins, NULL, 6, 1));
    assert_ok(kf_code_new(&code, p));
    assert_status(KOFN_TOOFEW, kf_decoder_new(&d, code, few, 3, false));
    assert_non_null(strstr(kofn_errmsg(), "any 4"));
    assert_status(KOFN_UNSTABLE, kf_decoder_new(&d, code, many, 4, false));
    assert_non_null(strstr(kofn_errmsg(), "singular"));
    kf_code_free(code);
    kofn_plan_free(p);
}

/* Equal seats give equal rounding, which does not average out. */
static kofn_status copies_layout(kofn_layout *L)
{
    L->seats = L->workers;
    L->enough = 1;
    L->cut[0].rows = 2;
    L->symbols = 2;
    L->wants = 1;
    L->W = kofn_layout_table(1, 2);
    if (L->W)
        L->W[0] = L->W[1] = 1;
    return L->W ? KOFN_OK : KOFN_NOMEM;
}

static kofn_status copies_seat(const kofn_layout *L, size_t seat, double *E0,
                               double *E1, double *G)
{
    (void)L, (void)seat, (void)E1;
    E0[0] = E0[1] = G[0] = G[1] = 1;
    return KOFN_OK;
}

static void twins_do_not_average(void **state)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 7, 1, KOFN_F64, false);
    kofn_scheme copies = sums;
    kofn_plan *p;
    kf_code *code;

    (void)state;
    copies.layout = copies_layout;
    copies.seat = copies_seat;
    assert_ok(kofn_plan_new_for(&p, &pb, &copies, NULL, 9, 1));
    assert_ok(kf_code_new(&code, p));
    for (size_t n = 1; n <= 9; n++) {
        uint32_t set[9];
        kofn_decoder *d;

        first_set(set, n);
        assert_ok(kf_decoder_new(&d, code, set, n, false));
        assert_at_most(fabs(d->noise - sqrt(2)), 1e-14);
        for (size_t i = 0; i < n; i++)
            assert_at_most(fabs(d->D[i] * (double)n - 1), 8 * U);
        kf_decoder_free(d);
    }
    kf_code_free(code);
    kofn_plan_free(p);
}

/* A want that a seat holds unchanged is copied although W is no identity. */
static kofn_status some_layout(kofn_layout *L)
{
    L->seats = 4;
    L->enough = 2;
    L->threshold = 3;
    L->cut[0].rows = 3;
    L->symbols = 3;
    L->wants = 2;
    L->grid_rows = 2;
    L->W = kofn_layout_table(2, 3);
    if (!L->W)
        return KOFN_NOMEM;
    L->W[0] = 1;           /* symbol 0 */
    L->W[4] = L->W[5] = 1; /* symbols 1 + 2 */
    return KOFN_OK;
}

static kofn_status some_seat(const kofn_layout *L, size_t seat, double *E0,
                             double *E1, double *G)
{
    (void)L, (void)E1;
    if (seat < 3)
        E0[seat] = 1;
    else
        E0[0] = E0[1] = E0[2] = 1;
    memcpy(G, E0, 3 * sizeof *G);
    return KOFN_OK;
}

static void plain_wants_are_copied(void **state)
{
    static const uint32_t a[] = {0, 3}, b[] = {1, 2, 3};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 7, 1, KOFN_F64, false);
    kofn_scheme some = sums;
    kofn_plan *p;
    kf_code *code;
    kofn_decoder *d;

    (void)state;
    some.layout = some_layout;
    some.seat = some_seat;
    assert_ok(kofn_plan_new_for(&p, &pb, &some, NULL, 4, 1));
    assert_ok(kf_code_new(&code, p));
    assert_ok(kf_decoder_new(&d, code, a, 2, false));
    assert_true(d->copy[0] == 0 && d->copy[1] == KF_MIXED && d->mixed == 1);
    assert_at_most(fabs(d->D[0] + 1) + fabs(d->D[1] - 1), 8 * U);
    kf_decoder_free(d);
    assert_ok(kf_decoder_new(&d, code, b, 3, false));
    assert_true(d->copy[0] == KF_MIXED && d->mixed == 2);
    kf_decoder_free(d);
    assert_ok(kf_decoder_new(&d, code, a, 1, true));
    assert_true(d->copy[0] == 0 && d->copy[1] == KF_LOST && !d->whole);
    kf_decoder_free(d);
    kf_code_free(code);
    kofn_plan_free(p);
}

/* A seat with coefficients 0 gives no information and does no harm. */
static kofn_status empty_seat(const kofn_layout *L, size_t seat, double *E0,
                              double *E1, double *G)
{
    return seat == 1 ? KOFN_OK : some_seat(L, seat, E0, E1, G);
}

static void empty_rows(void **state)
{
    static const uint32_t set[] = {0, 1, 3};
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 60, 7, 1, KOFN_F64, false);
    kofn_scheme some = sums;
    kofn_plan *p;
    kf_code *code;
    kofn_decoder *d;

    (void)state;
    some.layout = some_layout;
    some.seat = empty_seat;
    assert_ok(kofn_plan_new_for(&p, &pb, &some, NULL, 4, 1));
    assert_ok(kf_code_new(&code, p));
    assert_ok(kf_decoder_new(&d, code, set, 3, false));
    assert_true(d->mixed == 1 && d->D[1] == 0);
    assert_at_most(fabs(d->D[0] + 1) + fabs(d->D[2] - 1), 8 * U);
    kf_decoder_free(d);
    kf_code_free(code);
    kofn_plan_free(p);
}

TEST_FILE(decoder_test)
{
    const struct CMUnitTest tests[] = {
        TEST(pseudo_inverses, "decoder: D = W G^+ agrees with LAPACK"),
        TEST(out_of_reach,
             "decoder: an impossible want is missed by the least amount"),
        TEST(fewer_results_than_symbols,
             "decoder: fewer results than symbols can suffice for sums"),
        TEST(broken_promises,
             "decoder: a false threshold is reported as the code's fault"),
        TEST(twins_do_not_average,
             "decoder: rounding of equal seats does not average"),
        TEST(plain_wants_are_copied,
             "decoder: plain wants are copied although W is no identity"),
        TEST(empty_rows,
             "decoder: a seat of zeros gives nothing and does no harm"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
