/* solver_test.c -- small dense systems, square and least squares, against
 * LAPACK. */
#include "code_rig.h"

/* P X = B with leading dimensions. The gaps hold NaN, which spreads if it is
 * read and is missed if it is overwritten. */
typedef struct system {
    size_t m, n, cols, ldp, ldb;
    double *P, *B;
} system_t;

enum { PLAIN, ROWS, COLUMNS, BOTH, GRADED, NEAR, KINDS };

static double entry_scale(int kind, const int *row, const int *col, size_t i,
                          size_t j)
{
    int e = 0;

    if (kind == ROWS || kind == BOTH)
        e += row[i];
    if (kind == COLUMNS || kind == BOTH)
        e += col[j];
    if (kind == GRADED)
        e -= (int)(i + j);
    return ldexp(1, e);
}

static system_t make_system(int kind, size_t m, size_t n, size_t cols)
{
    system_t s = {m, n, cols, n + 3, cols + 5, NULL, NULL};
    kf_rng r =
        kf_rng_stream(3, KF_FOR_DATA, (uint32_t)(m * 1000 + n), (uint32_t)kind);
    int row[256], col[256], none[1] = {0};

    for (size_t i = 0; i < 256; i++) {
        row[i] = (int)kf_rng_below(&r, 601) - 300;
        col[i] = (int)kf_rng_below(&r, 201) - 100;
    }
    s.P = numbers(m * s.ldp);
    s.B = numbers(m * s.ldb);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < s.ldp; j++)
            s.P[i * s.ldp + j] = kf_rng_normal(&r) *
                                 entry_scale(kind, row, col, i, j < n ? j : 0);
        for (size_t c = 0; c < s.ldb; c++)
            s.B[i * s.ldb + c] =
                kf_rng_normal(&r) * entry_scale(kind, row, none, i, 0);
        for (size_t j = n; j < s.ldp; j++)
            s.P[i * s.ldp + j] = NAN;
        for (size_t c = cols; c < s.ldb; c++)
            s.B[i * s.ldb + c] = NAN;
    }
    for (size_t j = 0; kind == NEAR && m > 1 && j < n; j++)
        s.P[j] = s.P[s.ldp + j] * (1 + 1e-10 * (double)j);
    return s;
}

static system_t copy_system(const system_t *s)
{
    system_t t = *s;

    t.P = numbers(s->m * s->ldp);
    t.B = numbers(s->m * s->ldb);
    memcpy(t.P, s->P, s->m * s->ldp * sizeof(double));
    memcpy(t.B, s->B, s->m * s->ldb * sizeof(double));
    return t;
}

static void free_system(system_t *s)
{
    kf_free(s->P);
    kf_free(s->B);
}

static void gaps_are_untouched(const system_t *s)
{
    for (size_t i = 0; i < s->m; i++) {
        for (size_t j = s->n; j < s->ldp; j++)
            assert_true(isnan(s->P[i * s->ldp + j]));
        for (size_t c = s->cols; c < s->ldb; c++)
            assert_true(isnan(s->B[i * s->ldb + c]));
    }
}

static double row_top(const system_t *s, size_t i)
{
    double top = 0;

    for (size_t j = 0; j < s->n; j++)
        top = fmax(top, fabs(s->P[i * s->ldp + j]));
    return top;
}

/* Returns the largest |b - P x|_i over its bound. Rows are relative to their
 * largest entry, then columns to theirs: elimination with row scaling and
 * partial pivoting depends on neither. 3 n u is the classical constant of
 * factoring and two substitutions (Higham 2002, theorem 9.4) if pivots do not
 * grow. */
static double backward_error(const system_t *s, const double *X, size_t ldx)
{
    size_t n = s->n;
    double worst = 0, *col = numbers(n);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            col[j] = fmax(col[j], fabs(s->P[i * s->ldp + j]) / row_top(s, i));
    for (size_t c = 0; c < s->cols; c++) {
        double size = 0;

        for (size_t j = 0; j < n; j++)
            size += col[j] * fabs(X[j * ldx + c]);
        for (size_t i = 0; i < n; i++) {
            long double r = s->B[i * s->ldb + c];

            for (size_t j = 0; j < n; j++)
                r -= (long double)s->P[i * s->ldp + j] * X[j * ldx + c];
            worst = fmax(worst, (double)fabsl(r) / row_top(s, i) /
                                    (3 * (double)n * U * size));
        }
    }
    kf_free(col);
    return worst;
}

/* Both are exact solutions of nearby systems. They differ by at most the
 * condition number times the distance. */
static void agrees_with_dgesv(const system_t *s, const double *X, size_t ldx)
{
    lapack_int n = (lapack_int)s->n, pivot[256];
    system_t t = copy_system(s);
    double norm, rcond, top = 0, off = 0;

    norm = LAPACKE_dlange(LAPACK_ROW_MAJOR, 'I', n, n, t.P, (lapack_int)t.ldp);
    assert_int_equal(LAPACKE_dgesv(LAPACK_ROW_MAJOR, n, (lapack_int)t.cols, t.P,
                                   (lapack_int)t.ldp, pivot, t.B,
                                   (lapack_int)t.ldb),
                     0);
    assert_int_equal(LAPACKE_dgecon(LAPACK_ROW_MAJOR, 'I', n, t.P,
                                    (lapack_int)t.ldp, norm, &rcond),
                     0);
    for (size_t c = 0; c < s->cols; c++)
        for (size_t i = 0; i < s->n; i++) {
            top = fmax(top, fabs(t.B[i * t.ldb + c]));
            off = fmax(off, fabs(t.B[i * t.ldb + c] - X[i * ldx + c]));
        }
    assert_at_most(off, 6 * (double)s->n * U / rcond * top);
    free_system(&t);
}

static const size_t sizes[] = {1,  2,  3,  4,  5,  8,   16,
                               31, 32, 33, 64, 65, 100, 200};
static const size_t widths[] = {1, 3, 64, 131};

static void solve_one(int kind, size_t n, size_t cols)
{
    system_t s = make_system(kind, n, n, cols), t = copy_system(&s);

    assert_ok(kf_solve(n, t.P, t.ldp, cols, t.B, t.ldb));
    gaps_are_untouched(&t);
    assert_at_most(backward_error(&s, t.B, t.ldb), 1);
    if (kind == PLAIN || kind == NEAR)
        agrees_with_dgesv(&s, t.B, t.ldb);
    free_system(&s);
    free_system(&t);
}

static void solves(void **state)
{
    size_t count = 0;

    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
                if (count++ % EVERY == 0)
                    solve_one(kind, sizes[i], widths[w]);
}

/* No power of two scales a row of the smallest numbers to 1. */
static void solves_subnormal_rows(void **state)
{
    double P[4] = {0x1p-1074, 0x1p-1073, 1, 1};
    double B[2] = {0x1p-1074 * 5, 3}; /* x + 2 y = 5, x + y = 3 */

    (void)state;
    assert_ok(kf_solve(0, P, 2, 1, B, 1)); /* an empty system */
    assert_true(B[1] == 3);
    assert_ok(kf_solve(2, P, 2, 1, B, 1));
    assert_true(B[0] == 1 && B[1] == 2);
}

static void refuses_singular(void **state)
{
    enum { N = 6 };
    double P[N * N], B[N];
    int cases = 5;

    (void)state;
    for (int what = 0; what < cases; what++) {
        double *r = normals(N * N, 5);

        memcpy(P, r, sizeof P);
        for (size_t j = 0; j < N; j++) {
            B[j] = 1;
            if (what == 0)
                P[3 * N + j] = 0; /* a row */
            if (what == 1)
                P[j * N + 3] = 0; /* a column */
            if (what == 2)
                P[4 * N + j] = 4 * P[N + j]; /* the same row twice */
            for (size_t i = 0; i < N; i++) {
                if (what == 3)
                    P[i * N + j] = (double)((i + 1) * (j + 1)); /* rank 1 */
                if (what == 4)
                    P[i * N + j] = 0;
            }
        }
        assert_status(KOFN_UNSTABLE, kf_solve(N, P, N, 1, B, 1));
        assert_non_null(strstr(kofn_errmsg(), "singular"));
        kf_free(r);
    }
}

/* Returns how far the residual is from orthogonal to every column, relative to
 * the rounding of Householder's method (Higham 2002, theorem 20.3). */
static double least_squares_error(const system_t *s, const double *X,
                                  size_t ldx)
{
    double worst = 0;

    for (size_t c = 0; c < s->cols; c++) {
        double size = 0, b = 0, *r = numbers(s->m);

        for (size_t i = 0; i < s->m; i++) {
            long double sum = s->B[i * s->ldb + c];

            b += pow(s->B[i * s->ldb + c], 2);
            for (size_t j = 0; j < s->n; j++)
                sum -= (long double)s->P[i * s->ldp + j] * X[j * ldx + c];
            r[i] = (double)sum;
        }
        for (size_t j = 0; j < s->n; j++) {
            double norm = 0;

            for (size_t i = 0; i < s->m; i++)
                norm += pow(s->P[i * s->ldp + j], 2);
            size += sqrt(norm) * fabs(X[j * ldx + c]);
        }
        for (size_t j = 0; j < s->n; j++) {
            double norm = 0, dot = 0;

            for (size_t i = 0; i < s->m; i++) {
                norm += pow(s->P[i * s->ldp + j], 2);
                dot += s->P[i * s->ldp + j] * r[i];
            }
            worst = fmax(
                worst, fabs(dot) / sqrt(norm) /
                           ((double)(s->m + s->n) * 2 * U * (size + sqrt(b))));
        }
        kf_free(r);
    }
    return worst;
}

/* kappa + kappa^2 ||r|| bounds the effect of the same backward error on the
 * solution. Random tall systems are well conditioned. */
static void agrees_with_dgels(const system_t *s, const double *X, size_t ldx)
{
    system_t t = copy_system(s), v = copy_system(s);
    lapack_int m = (lapack_int)s->m, n = (lapack_int)s->n;
    double *sigma = numbers(s->n), super[256], kappa, top = 0, off = 0;

    assert_int_equal(LAPACKE_dgels(LAPACK_ROW_MAJOR, 'N', m, n,
                                   (lapack_int)t.cols, t.P, (lapack_int)t.ldp,
                                   t.B, (lapack_int)t.ldb),
                     0);
    assert_int_equal(LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N', m, n, v.P,
                                    (lapack_int)v.ldp, sigma, NULL, 1, NULL, 1,
                                    super),
                     0);
    kappa = sigma[0] / sigma[s->n - 1];
    for (size_t c = 0; c < s->cols; c++) {
        double b = 0;

        for (size_t i = 0; i < s->m; i++)
            b += s->B[i * s->ldb + c] * s->B[i * s->ldb + c];
        for (size_t i = 0; i < s->n; i++) {
            top = fmax(top,
                       fabs(t.B[i * t.ldb + c]) + kappa * sqrt(b) / sigma[0]);
            off = fmax(off, fabs(t.B[i * t.ldb + c] - X[i * ldx + c]));
        }
    }
    assert_at_most(off, 2 * (double)(m + n) * U * kappa * top);
    kf_free(sigma);
    free_system(&t);
    free_system(&v);
}

static void least_squares_one(int kind, size_t m, size_t n, size_t cols)
{
    system_t s = make_system(kind, m, n, cols), t = copy_system(&s);

    assert_ok(kf_code_least_squares(
        &(kf_system){m, n, t.P, t.ldp, cols, t.B, t.ldb}));
    gaps_are_untouched(&t);
    assert_at_most(least_squares_error(&s, t.B, t.ldb), 1);
    if (kind == PLAIN)
        agrees_with_dgels(&s, t.B, t.ldb);
    free_system(&s);
    free_system(&t);
}

static void least_squares(void **state)
{
    static const size_t taller[] = {0, 1, 4, 50};
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < 4; k++)
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
                if (count++ % EVERY == 0) {
                    least_squares_one(PLAIN, sizes[i] + taller[k], sizes[i],
                                      widths[w]);
                    least_squares_one(COLUMNS, sizes[i] + taller[k], sizes[i],
                                      widths[w]);
                }
}

static void least_squares_refuses_singular(void **state)
{
    double P[8] = {1, 0, 2, 0, 3, 0, 4, 0}, B[4] = {1, 1, 1, 1};

    (void)state;
    assert_status(KOFN_UNSTABLE,
                  kf_code_least_squares(&(kf_system){4, 2, P, 2, 1, B, 1}));
    assert_non_null(strstr(kofn_errmsg(), "singular"));
}

/* Repeated calls are equal to the bit. A right-hand side has the same solution
 * whatever it is solved with. Replays depend on that. */
static void solutions_repeat(void **state)
{
    (void)state;
    for (size_t m = 37; m <= 40; m += 3) {
        system_t s = make_system(PLAIN, m, 37, 131);
        system_t a = copy_system(&s), b = copy_system(&s);

        for (int i = 0; i < 2; i++) {
            system_t *t = i ? &b : &a;

            assert_ok(m == 37 ? kf_solve(37, t->P, t->ldp, 131, t->B, t->ldb)
                              : kf_code_least_squares(&(kf_system){
                                    m, 37, t->P, t->ldp, 131, t->B, t->ldb}));
        }
        for (size_t c = 0; c < 131; c += 13) {
            system_t t = copy_system(&s);

            assert_ok(m == 37 ? kf_solve(37, t.P, t.ldp, 1, t.B + c, t.ldb)
                              : kf_code_least_squares(&(kf_system){
                                    m, 37, t.P, t.ldp, 1, t.B + c, t.ldb}));
            for (size_t i = 0; i < 37; i++) {
                assert_true(t.B[i * t.ldb + c] == a.B[i * a.ldb + c]);
                assert_true(b.B[i * b.ldb + c] == a.B[i * a.ldb + c]);
            }
            free_system(&t);
        }
        free_system(&s);
        free_system(&a);
        free_system(&b);
    }
}

TEST_FILE(solver_test)
{
    const struct CMUnitTest tests[] = {
        TEST(solves, "solver: square systems agree with LAPACK's dgesv"),
        TEST(solves_subnormal_rows,
             "solver: rows of subnormal numbers are solved"),
        TEST(refuses_singular, "solver: singular systems are refused"),
        TEST(least_squares, "solver: least squares agree with LAPACK's dgels"),
        TEST(least_squares_refuses_singular,
             "solver: singular least squares are refused"),
        TEST(solutions_repeat,
             "solver: solutions repeat to the bit, alone or with others"),
    };

    return cmocka_run_group_tests_name("solver", tests, setup, NULL);
}
