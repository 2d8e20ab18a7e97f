/* code_test.c -- the small solvers, the coefficients, what decodes them, and
 * who is dealt which strips; against LAPACK, closed forms and published
 * numbers. */
#include "support.h"

#include "code/code.h"
#include "mat/mat.h"

#include "base/rng.h"

#include <kofn/core.h>
#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define U 0x1p-53 /* unit roundoff of double */

/* Sanitizers cost a factor of twenty: they see a sample. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY 2
#else
#define EVERY 1
#endif

static double *numbers(size_t n)
{
    double *x = kf_zero(n, sizeof *x);

    assert_non_null(x);
    return x;
}

static double *normals(size_t n, uint32_t tag)
{
    kf_rng r = kf_rng_stream(11, KF_FOR_DATA, tag, (uint32_t)n);
    double *x = numbers(n);

    for (size_t i = 0; i < n; i++)
        x[i] = kf_rng_normal(&r);
    return x;
}

static double frobenius(const double *a, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * a[i];
    return sqrt(sum);
}

/* ---- small dense systems ------------------------------------------------- */

/* P X = B with its leading dimensions; the gaps hold NaN, which spreads if it
 * is read and is missed if it is written over. */
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
    kf_rng r = kf_rng_stream(3, KF_FOR_DATA, (uint32_t)(m * 1000 + n),
                             (uint32_t)kind);
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

/* Largest |b - P x|_i over its bound: rows are taken relative to their largest
 * entry, columns to theirs after that, since elimination with row scaling and
 * partial pivoting is indifferent to both.  3 n u is the classical constant
 * of factoring and two substitutions (Higham 2002, theorem 9.4) where pivots
 * do not grow. */
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

/* Both are exact solutions of systems that close: they differ by at most the
 * condition number times that. */
static void agrees_with_dgesv(const system_t *s, const double *X, size_t ldx)
{
    lapack_int n = (lapack_int)s->n, pivot[256];
    system_t t = copy_system(s);
    double norm, rcond, top = 0, off = 0;

    norm = LAPACKE_dlange(LAPACK_ROW_MAJOR, 'I', n, n, t.P, (lapack_int)t.ldp);
    assert_int_equal(LAPACKE_dgesv(LAPACK_ROW_MAJOR, n, (lapack_int)t.cols, t.P,
                                   (lapack_int)t.ldp, pivot, t.B,
                                   (lapack_int)t.ldb), 0);
    assert_int_equal(LAPACKE_dgecon(LAPACK_ROW_MAJOR, 'I', n, t.P,
                                    (lapack_int)t.ldp, norm, &rcond), 0);
    for (size_t c = 0; c < s->cols; c++)
        for (size_t i = 0; i < s->n; i++) {
            top = fmax(top, fabs(t.B[i * t.ldb + c]));
            off = fmax(off, fabs(t.B[i * t.ldb + c] - X[i * ldx + c]));
        }
    assert_at_most(off, 6 * (double)s->n * U / rcond * top);
    free_system(&t);
}

static const size_t sizes[] = {1, 2, 3, 4, 5, 8, 16, 31, 64, 65, 100, 200};
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

/* A row of the smallest numbers there are has no power of two that brings it
 * to 1. */
static void solves_subnormal_rows(void **state)
{
    double P[4] = {0x1p-1074, 0x1p-1073, 1, 1};
    double B[2] = {0x1p-1074 * 5, 3}; /* x + 2 y = 5, x + y = 3 */

    (void)state;
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

/* Optimality: the residual is orthogonal to every column, relative to what
 * rounding in Householder's method allows (Higham 2002, theorem 20.3). */
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
            worst = fmax(worst, fabs(dot) / sqrt(norm) /
                                    ((double)(s->m + s->n) * 2 * U *
                                     (size + sqrt(b))));
        }
        kf_free(r);
    }
    return worst;
}

/* kappa + kappa^2 ||r|| bounds what the same backward error does to the
 * solution; random tall systems are well conditioned. */
static void agrees_with_dgels(const system_t *s, const double *X, size_t ldx)
{
    system_t t = copy_system(s), v = copy_system(s);
    lapack_int m = (lapack_int)s->m, n = (lapack_int)s->n;
    double *sigma = numbers(s->n), super[256], kappa, top = 0, off = 0;

    assert_int_equal(LAPACKE_dgels(LAPACK_ROW_MAJOR, 'N', m, n,
                                   (lapack_int)t.cols, t.P, (lapack_int)t.ldp,
                                   t.B, (lapack_int)t.ldb), 0);
    assert_int_equal(LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N', m, n, v.P,
                                    (lapack_int)v.ldp, sigma, NULL, 1, NULL, 1,
                                    super), 0);
    kappa = sigma[0] / sigma[s->n - 1];
    for (size_t c = 0; c < s->cols; c++) {
        double b = 0;

        for (size_t i = 0; i < s->m; i++)
            b += s->B[i * s->ldb + c] * s->B[i * s->ldb + c];
        for (size_t i = 0; i < s->n; i++) {
            top = fmax(top, fabs(t.B[i * t.ldb + c]) +
                                kappa * sqrt(b) / sigma[0]);
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

    assert_ok(kf_least_squares(m, n, t.P, t.ldp, cols, t.B, t.ldb));
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
    assert_status(KOFN_UNSTABLE, kf_least_squares(4, 2, P, 2, 1, B, 1));
    assert_non_null(strstr(kofn_errmsg(), "singular"));
}

/* Twice the same, to the bit; and a right-hand side has the same solution
 * whatever others it is solved with.  Replays depend on it. */
static void solutions_repeat(void **state)
{
    (void)state;
    for (size_t m = 37; m <= 40; m += 3) {
        system_t s = make_system(PLAIN, m, 37, 131);
        system_t a = copy_system(&s), b = copy_system(&s);

        for (int i = 0; i < 2; i++) {
            system_t *t = i ? &b : &a;

            assert_ok(m == 37 ? kf_solve(37, t->P, t->ldp, 131, t->B, t->ldb)
                              : kf_least_squares(m, 37, t->P, t->ldp, 131,
                                                 t->B, t->ldb));
        }
        for (size_t c = 0; c < 131; c += 13) {
            system_t t = copy_system(&s);

            assert_ok(m == 37 ? kf_solve(37, t.P, t.ldp, 1, t.B + c, t.ldb)
                              : kf_least_squares(m, 37, t.P, t.ldp, 1, t.B + c,
                                                 t.ldb));
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

/* ---- argument strings ---------------------------------------------------- */

static const kofn_problem matvec = {KOFN_MATVEC, 120, 7, 1, KOFN_F64, false};

typedef struct spelling {
    const char *spec;
    size_t workers;
    const char *whole; /* with every default */
} spelling;

/* mds spares a quarter of the workers (half of fewer than 8), elastic half,
 * neither more than 16; replication uses half of them for bands. */
static const spelling spellings[] = {
    {"uncoded", 3, "uncoded"},
    {"replication", 7, "replication:k=4"},
    {"replication:k=7", 7, "replication:k=7"},
    {"mds", 1, "mds:k=1,basis=quaternion,weight=0"},
    {"mds", 6, "mds:k=3,basis=quaternion,weight=0"},
    {"mds", 7, "mds:k=4,basis=quaternion,weight=0"},
    {"mds", 12, "mds:k=9,basis=quaternion,weight=0"},
    {"mds:", 12, "mds:k=9,basis=quaternion,weight=0"},
    {"mds", 100, "mds:k=84,basis=quaternion,weight=0"},
    {"mds:k=12", 12, "mds:k=12,basis=quaternion,weight=0"},
    {"mds:basis=haar", 8, "mds:k=6,basis=haar,weight=0"},
    {"mds:weight=3,k=9", 12, "mds:k=9,basis=quaternion,weight=3"},
    {"mds:weight=9,k=9,basis=gauss", 12, "mds:k=9,basis=gauss,weight=9"},
    {"elastic", 12,
     "elastic:k=6,basis=quaternion,weight=0,groups=1,deal=equal,cut=rows"},
    {"elastic", 40,
     "elastic:k=24,basis=quaternion,weight=0,groups=1,deal=equal,cut=rows"},
    {"elastic:groups=4", 20,
     "elastic:k=12,basis=quaternion,weight=0,groups=4,deal=equal,cut=rows"},
    {"elastic:deal=speed,basis=vandermonde,k=2", 3,
     "elastic:k=2,basis=vandermonde,weight=0,groups=1,deal=speed,cut=rows"},
};

static void defaults_are_spelled_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const spelling *s = &spellings[i];
        kofn_plan *a, *b;

        assert_ok(kofn_plan_new(&a, &matvec, s->spec, s->workers, 5));
        assert_string_equal(a->spec, s->whole);
        assert_ok(kofn_plan_new(&b, &matvec, a->spec, s->workers, 5));
        assert_string_equal(b->spec, s->whole);
        kofn_plan_free(a);
        kofn_plan_free(b);
    }
}

/* ceil(k (n-k+1) / n) blocks a row, which is necessary, and one more for
 * every 48; a dense operand is mixed whole. */
static void sparse_operands_get_light_rows(void **state)
{
    static const size_t codes[][3] = {{6, 4, 2},    {12, 9, 3},  {40, 30, 9},
                                      {64, 56, 9},  {100, 98, 5}, {5, 5, 1},
                                      {9, 1, 1},    {200, 196, 9}};
    kofn_problem pb = matvec;

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        for (int sparse = 0; sparse < 2; sparse++) {
            char spec[40], whole[100];
            kofn_plan *p;

            pb.sparse = sparse;
            snprintf(spec, sizeof spec, "mds:k=%zu", codes[i][1]);
            snprintf(whole, sizeof whole, "%s,basis=quaternion,weight=%zu",
                     spec, sparse ? codes[i][2] : 0);
            assert_ok(kofn_plan_new(&p, &pb, spec, codes[i][0], 5));
            assert_string_equal(p->spec, whole);
            kofn_plan_free(p);
        }
}

/* "a|b|c" from `choices`, or the ends of the range. */
static size_t values_of(const kofn_param *p, char value[][40])
{
    size_t n = 0;

    if (!p->choices) {
        snprintf(value[n++], 40, "%ld", p->min);
        snprintf(value[n++], 40, "%ld", p->max);
        return n;
    }
    for (const char *c = p->choices;; c++) {
        size_t length = strcspn(c, "|");

        snprintf(value[n++], 40, "%.*s", (int)length, c);
        c += length;
        if (!*c)
            return n;
    }
}

/* The table's own range and choices are understood, beyond it they are not:
 * a refusal may come of the numbers together, but never of reading one. */
static void every_parameter_is_read(void **state)
{
    const kofn_scheme *s;

    (void)state;
    for (size_t i = 0; (s = kofn_scheme_at(i)); i++)
        for (const kofn_param *p = s->params; p->name; p++) {
            kofn_problem pb = matvec;
            char value[16][40], spec[120];
            size_t n = values_of(p, value);
            kofn_plan *plan;

            if (!(s->ops & KOFN_MATVEC)) /* its first operation */
                pb.op = (kofn_op)(s->ops & ~(s->ops - 1));
            for (size_t v = 0; v < n; v++) {
                snprintf(spec, sizeof spec, "%s:%s=%.39s", s->name, p->name,
                         value[v]);
                if (kofn_plan_new(&plan, &pb, spec, 12, 1)) {
                    assert_null(strstr(kofn_errmsg(), "is not"));
                    assert_null(strstr(kofn_errmsg(), "is outside"));
                }
                kofn_plan_free(plan);
            }
            snprintf(spec, sizeof spec, "%s:%s=%ld", s->name, p->name,
                     p->choices ? 0 : p->min - 1);
            assert_status(KOFN_INVAL,
                          kofn_plan_new(&plan, &pb, spec, 12, 1));
            assert_non_null(strstr(kofn_errmsg(), strchr(spec, ':') + 1));
            if (p->choices)
                continue;
            snprintf(spec, sizeof spec, "%s:%s=%ld", s->name, p->name,
                     p->max + 1);
            assert_status(KOFN_INVAL,
                          kofn_plan_new(&plan, &pb, spec, 12, 1));
            assert_non_null(strstr(kofn_errmsg(), strchr(spec, ':') + 1));
        }
}

typedef struct refusal {
    const char *spec;
    kofn_status status;
    const char *says[3]; /* all of them */
} refusal;

static const refusal refusals[] = {
    {"", KOFN_NOSCHEME, {"\"\"", "elastic", "uncoded"}},
    {"MDS", KOFN_NOSCHEME, {"\"MDS\"", "mds"}},
    {" mds", KOFN_NOSCHEME, {"\" mds\""}},
    {"mdsx:k=3", KOFN_NOSCHEME, {"\"mdsx\""}},
    {"mds:k", KOFN_INVAL, {"\"k\"", "key=value"}},
    {"mds:,", KOFN_INVAL, {"key=value"}},
    {"mds:k=3,", KOFN_INVAL, {"comma"}},
    {"mds:k=3,,weight=0", KOFN_INVAL, {"key=value"}},
    {"mds:=3", KOFN_INVAL, {"no parameter", "basis"}},
    {"mds:K=3", KOFN_INVAL, {"no parameter K", "k, basis, weight"}},
    {"mds:kk=3", KOFN_INVAL, {"kk"}},
    {"mds:groups=2", KOFN_INVAL, {"no parameter groups"}},
    {"uncoded:k=3", KOFN_INVAL, {"no parameter k", "none"}},
    {"mds:k=3,k=3", KOFN_INVAL, {"k is given twice"}},
    {"mds:k=3,basis=haar,k=4", KOFN_INVAL, {"k is given twice"}},
    {"mds:k=", KOFN_INVAL, {"k= is not a whole number"}},
    {"mds:k=,basis=haar", KOFN_INVAL, {"k= is not a whole number"}},
    {"mds:k=3.5", KOFN_INVAL, {"k=3.5", "whole number"}},
    {"mds:k=0x3", KOFN_INVAL, {"k=0x3"}},
    {"mds:k=+3", KOFN_INVAL, {"k=+3"}},
    {"mds:k= 3", KOFN_INVAL, {"k= 3"}},
    {"mds:k=3 ", KOFN_INVAL, {"k=3 "}},
    {"mds:k=--3", KOFN_INVAL, {"k=--3"}},
    {"mds:k=3-3", KOFN_INVAL, {"k=3-3"}},
    {"mds:k=-", KOFN_INVAL, {"k=-"}},
    {"mds:k=3=4", KOFN_INVAL, {"k=3=4"}},
    {"mds:k=-1", KOFN_INVAL, {"k=-1", "1..100000"}},
    {"mds:k=99999999999999999999", KOFN_INVAL, {"k=99999999999999999999"}},
    {"mds:k=9999999999999999999999999999", KOFN_INVAL, {"9999999999999999"}},
    {"mds:basis=", KOFN_INVAL, {"basis=", "quaternion|harmonic"}},
    {"mds:basis=quat", KOFN_INVAL, {"basis=quat is not one of"}},
    {"mds:basis=haar|gauss", KOFN_INVAL, {"basis=haar|gauss"}},
    {"elastic:deal=equally", KOFN_INVAL, {"deal=equally", "equal|speed"}},
    {"mds:k=13", KOFN_INVAL, {"k = 13", "12 workers"}},
    {"elastic:k=13", KOFN_INVAL, {"k = 13", "12 workers"}},
    {"replication:k=13", KOFN_INVAL, {"k = 13", "12"}},
    {"mds:k=9,weight=10", KOFN_INVAL, {"weight = 10", "k = 9"}},
    {"mds:k=9,weight=2", KOFN_INVAL, {"weight = 2", "weight >= 3"}},
    {"mds:k=9,weight=3,basis=haar", KOFN_INVAL, {"weight", "basis=gauss"}},
    {"elastic:groups=5,k=10", KOFN_INVAL, {"groups = 5", "12 workers"}},
    {"elastic:groups=3,k=7", KOFN_INVAL, {"groups = 3", "k = 7"}},
};

static void junk_is_refused(void **state)
{
    kofn_plan *plan;

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];

        assert_status(r->status,
                      kofn_plan_new(&plan, &matvec, r->spec, 12, 1));
        assert_null(plan);
        for (size_t w = 0; w < 3 && r->says[w]; w++)
            if (!strstr(kofn_errmsg(), r->says[w]))
                fail_msg("%s: \"%s\" does not say \"%s\"", r->spec,
                         kofn_errmsg(), r->says[w]);
    }
}

static void problems_are_checked(void **state)
{
    static const kofn_problem bad[] = {
        {KOFN_MATVEC, 0, 7, 1, KOFN_F64, false},
        {KOFN_MATVEC, 7, 0, 1, KOFN_F64, false},
        {KOFN_MATMUL, 7, 7, 0, KOFN_F64, false},
        {KOFN_MATVEC, 7, 7, 2, KOFN_F64, false},
        {KOFN_MATVEC, 7, (size_t)1 << 32, 1, KOFN_F64, false},
        {KOFN_MATVEC, SIZE_MAX / 8, 7, 1, KOFN_F64, false},
        {KOFN_MATMUL, SIZE_MAX / 8, 7, 16, KOFN_F64, true},
    };
    kofn_plan *plan;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(KOFN_SHAPE, kofn_plan_new(&plan, &bad[i], "mds", 4, 1));
    assert_status(KOFN_INVAL, kofn_plan_new(&plan, &matvec, "mds", 0, 1));
    assert_non_null(strstr(kofn_errmsg(), "workers = 0"));
    assert_status(KOFN_INVAL, kofn_plan_new(&plan, &matvec, "mds", 1000001, 1));
}

/* ---- coefficients -------------------------------------------------------- */

static double *basis_rows(kofn_basis b, size_t i, size_t n, size_t k, size_t w,
                          uint64_t seed)
{
    size_t lanes = kofn_basis_lanes(b);
    double *rows = numbers(lanes * lanes * k);
    void *table;

    assert_ok(kofn_basis_prepare(b, n, k, seed, &table));
    assert_ok(kofn_basis_rows(b, i, n, k, w, seed, table, rows));
    kofn_free(table);
    return rows;
}

/* Every 4 x 4 block is L(q) as NUMERICS 2.1 prints it, with components of 16
 * random bits, so that L(q)^T L(q) = |q|^2 I holds exactly. */
static void quaternion_rows(void **state)
{
    static const double sign[4][4] = {
        {1, -1, -1, -1}, {1, 1, -1, 1}, {1, 1, 1, -1}, {1, -1, 1, 1}};
    double mean = 0, square = 0, count = 0;
    size_t k = 40;

    (void)state;
    for (size_t seat = k; seat < k + 60; seat++) {
        double *r = basis_rows(KOFN_BASIS_QUATERNION, seat, 100, k, 0, 9);

        for (size_t b = 0; b < k; b++) {
            double L[4][4], norm = 0;

            for (size_t s = 0; s < 4; s++)
                for (size_t t = 0; t < 4; t++)
                    L[s][t] = r[s * 4 * k + 4 * b + t];
            for (size_t s = 0; s < 4; s++) {
                double u = (L[s][0] * 8 + 1) * 32768 - 0.5;

                assert_true(u == floor(u) && u >= 0 && u <= 65535);
                norm += L[s][0] * L[s][0];
                mean += L[s][0] * 8;
                square += L[s][0] * 8 * L[s][0] * 8;
                count++;
                for (size_t t = 0; t < 4; t++)
                    assert_true(L[s][t] == sign[s][t] * L[s ^ t][0]);
            }
            for (size_t s = 0; s < 4; s++)
                for (size_t t = 0; t < 4; t++) {
                    double dot = 0;

                    for (size_t i = 0; i < 4; i++)
                        dot += L[i][s] * L[i][t];
                    assert_true(dot == (s == t ? norm : 0));
                }
        }
        kf_free(r);
    }
    /* uniform on (-1, 1), to five standard errors */
    assert_at_most(fabs(mean / count), 5 * sqrt(1 / 3.0 / count));
    assert_at_most(fabs(square / count - 1 / 3.0), 5 * sqrt(4 / 45.0 / count));
}

/* A joiner's row is a function of (seed, seat, block) alone: of neither the
 * number of workers nor, up to a power of two, of k. */
static void open_rows_do_not_depend_on_n(void **state)
{
    static const kofn_basis open[] = {KOFN_BASIS_QUATERNION,
                                      KOFN_BASIS_GAUSS_SYS, KOFN_BASIS_GAUSS};

    (void)state;
    for (size_t o = 0; o < 3; o++) {
        size_t lanes = kofn_basis_lanes(open[o]), size = lanes * lanes * 9;
        double *a = basis_rows(open[o], 70, 12, 9, 0, 1);
        double *b = basis_rows(open[o], 70, 500, 9, 0, 1);
        double *wide = basis_rows(open[o], 70, 500, 20, 0, 1);
        double *other = basis_rows(open[o], 71, 12, 9, 0, 1);
        double *reseeded = basis_rows(open[o], 70, 12, 9, 0, 2);

        assert_true(kofn_basis_open(open[o]));
        assert_memory_equal(a, b, size * sizeof *a);
        for (size_t l = 0; l < lanes; l++)
            for (size_t j = 0; j < 9 * lanes; j++) {
                size_t at = l * 9 * lanes + j;

                /* 9 and 20 have the same power of two next to their root */
                assert_true(a[at] == wide[l * 20 * lanes + j]);
                assert_true(a[at] != other[at] && a[at] != reseeded[at]);
            }
        kf_free(a);
        kf_free(b);
        kf_free(wide);
        kf_free(other);
        kf_free(reseeded);
    }
}

static void systematic_rows_are_units(void **state)
{
    static const kofn_basis plain[] = {
        KOFN_BASIS_QUATERNION, KOFN_BASIS_HAAR, KOFN_BASIS_GAUSS_SYS,
        KOFN_BASIS_CAUCHY};

    (void)state;
    for (size_t b = 0; b < 4; b++)
        for (size_t i = 0; i < 5; i++) {
            size_t lanes = kofn_basis_lanes(plain[b]), width = 5 * lanes;
            double *r = basis_rows(plain[b], i, 9, 5, 0, 1);

            for (size_t l = 0; l < lanes; l++)
                for (size_t j = 0; j < width; j++)
                    assert_true(r[l * width + j] == (j == i * lanes + l));
            kf_free(r);
        }
}

/* All n rows, one below the other. */
static double *whole_basis(kofn_basis b, size_t n, size_t k)
{
    double *G = numbers(n * k);

    for (size_t i = 0; i < n; i++) {
        double *r = basis_rows(b, i, n, k, 0, 4);

        memcpy(G + i * k, r, k * sizeof *r);
        kf_free(r);
    }
    return G;
}

/* The columns of all n rows of the trigonometric frame are orthogonal and of
 * norm^2 n: sums of roots of unity. */
static void harmonic_frame_is_tight(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 25; n += 3)
        for (size_t k = 1; k <= n; k++) {
            double *G = whole_basis(KOFN_BASIS_HARMONIC, n, k);

            for (size_t a = 0; a < k; a++)
                for (size_t b = 0; b < k; b++) {
                    double dot = 0;

                    for (size_t i = 0; i < n; i++)
                        dot += G[i * k + a] * G[i * k + b];
                    assert_at_most(fabs(dot - (a == b ? (double)n : 0)),
                                   8 * U * (double)n);
                }
            kf_free(G);
        }
}

static void haar_slice_is_orthonormal(void **state)
{
    static const size_t shapes[][2] = {{6, 5}, {9, 5}, {20, 18}, {40, 8},
                                       {64, 32}, {30, 29}};

    (void)state;
    for (size_t c = 0; c < 6; c++) {
        size_t n = shapes[c][0], k = shapes[c][1], r = n - k;
        double *G = whole_basis(KOFN_BASIS_HAAR, n, k), *P = G + k * k;
        bool rows = r <= k;
        size_t count = rows ? r : k, length = rows ? k : r;

        for (size_t a = 0; a < count; a++)
            for (size_t b = 0; b < count; b++) {
                double dot = 0;

                for (size_t t = 0; t < length; t++)
                    dot += rows ? P[a * k + t] * P[b * k + t]
                                : P[t * k + a] * P[t * k + b];
                assert_at_most(fabs(dot - (a == b)), 4 * U * (double)length);
            }
        kf_free(G);
    }
}

/* facts nodes.perm: the rank of the node of each seat among cheb(M). */
static void chebyshev_points_are_spread(void **state)
{
    static const size_t perm[3][12] = {
        {0, 4, 2, 5, 3, 1},
        {0, 5, 2, 7, 4, 1, 6, 3},
        {0, 7, 3, 10, 5, 1, 8, 4, 11, 6, 2, 9}};
    static const size_t M[3] = {6, 8, 12};
    const double pi = acos(-1);

    (void)state;
    for (size_t c = 0; c < 3; c++) {
        size_t k = M[c] - 1;
        double *T = whole_basis(KOFN_BASIS_CHEBYSHEV, M[c], k);
        double *X = whole_basis(KOFN_BASIS_MONOMIAL, M[c], k);

        for (size_t i = 0; i < M[c]; i++) {
            double a = (double)(2 * perm[c][i] + 1) * pi / (double)(2 * M[c]);

            for (size_t j = 0; j < k; j++) {
                assert_at_most(fabs(T[i * k + j] - cos((double)j * a)), 1e-14);
                assert_at_most(fabs(X[i * k + j] - pow(cos(a), (double)j)),
                               1e-14);
            }
        }
        kf_free(T);
        kf_free(X);
    }
}

static void closed_forms(void **state)
{
    double *V = whole_basis(KOFN_BASIS_VANDERMONDE, 9, 6);
    double *C = whole_basis(KOFN_BASIS_CAUCHY, 9, 6);

    (void)state;
    for (size_t i = 0; i < 9; i++) {
        long power = 1;

        for (size_t j = 0; j < 6; j++, power *= (long)i + 1) {
            assert_true(V[i * 6 + j] == (double)power);
            if (i >= 6)
                assert_true(C[i * 6 + j] == 1.0 / (double)(i - j));
        }
    }
    kf_free(V);
    kf_free(C);
}

/* The angle is reduced in integers: exact at the axes, the same after any
 * number of turns, and within an ulp of 1 everywhere. */
static void turns(void **state)
{
    double c, s, d, t;

    (void)state;
    for (uint64_t q = 0; q < 8; q++) {
        static const double at[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};

        kofn_turn(q * 25, 100, &c, &s);
        assert_true(c == at[q % 4][0] && s == at[q % 4][1]);
    }
    for (uint64_t den = 1; den < 300; den += 7)
        for (uint64_t num = 0; num < den; num++) {
            long double a = 2 * acosl(-1) * (long double)num / (long double)den;

            kofn_turn(num, den, &c, &s);
            assert_at_most((double)fabsl(c - cosl(a)), 2 * U);
            assert_at_most((double)fabsl(s - sinl(a)), 2 * U);
            kofn_turn(num + 1000000 * den, den, &d, &t);
            assert_true(c == d && s == t);
        }
}

/* NUMERICS 2.5: columns floor(i k/n) .. + w-1, cyclically; a joiner beyond
 * the first n mixes all. */
static void light_rows_have_their_support(void **state)
{
    static const size_t shapes[][3] = {{6, 4, 2}, {20, 16, 4}, {40, 30, 9},
                                       {12, 9, 9}, {7, 7, 1}};

    (void)state;
    for (size_t c = 0; c < 5; c++)
        for (int real = 0; real < 2; real++)
            for (size_t i = 0; i < shapes[c][0] + 2; i++) {
                kofn_basis b = real ? KOFN_BASIS_GAUSS : KOFN_BASIS_QUATERNION;
                size_t n = shapes[c][0], k = shapes[c][1], w = shapes[c][2];
                size_t lanes = kofn_basis_lanes(b), from = i * k / n;
                double *r = basis_rows(b, i, n, k, w, 8);

                for (size_t j = 0; j < k * lanes; j++) {
                    size_t off = (j / lanes + k - from % k) % k;

                    assert_true((r[j] != 0) == (i >= n || off < w));
                }
                kf_free(r);
            }
}

/* ---- decoders ------------------------------------------------------------ */

typedef struct rig {
    kofn_plan *plan;
    kf_code *code;
    size_t n, k, lanes, wants;
    bool systematic;
} rig;

static void rig_up(rig *r, const char *spec, size_t n, kofn_dtype dtype)
{
    kofn_problem pb = {KOFN_MATVEC, 1000, 7, 1, dtype, false};

    assert_ok(kofn_plan_new(&r->plan, &pb, spec, n, 4));
    assert_ok(kf_code_new(&r->code, r->plan));
    r->n = n;
    r->k = r->plan->layout.enough;
    r->lanes = r->plan->layout.lanes;
    r->wants = r->plan->layout.wants;
    r->systematic = !strstr(spec, "weight") &&
                    (strstr(spec, "quaternion") || strstr(spec, "haar") ||
                     strstr(spec, "gauss_sys") || strstr(spec, "cauchy"));
}

static void rig_down(rig *r)
{
    kf_code_free(r->code);
    kofn_plan_free(r->plan);
}

/* The next k-subset of 0..n-1 in lexicographic order. */
static bool next_set(uint32_t *set, size_t k, size_t n)
{
    size_t i = k;

    while (i > 0 && set[i - 1] == n - k + i - 1)
        i--;
    if (i == 0)
        return false;
    set[i - 1]++;
    for (; i < k; i++)
        set[i] = set[i - 1] + 1;
    return true;
}

static void first_set(uint32_t *set, size_t k)
{
    for (size_t i = 0; i < k; i++)
        set[i] = (uint32_t)i;
}

/* Rows of G of the survivors, results x symbols. */
static double *survivor_rows(rig *r, const uint32_t *set, size_t n)
{
    double *G = numbers(n * r->lanes * r->wants);

    for (size_t i = 0; i < n; i++) {
        const kf_seat *seat;

        assert_ok(kf_code_seat(r->code, set[i], &seat));
        for (size_t l = 0; l < r->lanes; l++)
            for (size_t e = 0; e < seat->G[l].n; e++)
                G[(i * r->lanes + l) * r->wants + seat->G[l].col[e]] =
                    seat->G[l].val[e];
    }
    return G;
}

/* wants x results, copies included. */
static double *whole_decoder(const kf_decoder *d)
{
    double *F = numbers(d->wants * d->results);
    size_t row = 0;

    for (size_t w = 0; w < d->wants; w++) {
        if (d->copy[w] >= 0)
            F[w * d->results + (size_t)d->copy[w]] = 1;
        else if (d->copy[w] == KF_MIXED)
            memcpy(F + w * d->results, d->D + row++ * d->results,
                   d->results * sizeof *F);
    }
    assert_int_equal(row, d->mixed);
    return F;
}

/* By LAPACK; *cond is the Frobenius condition number. */
static double *inverse(const double *G, size_t n, double *cond)
{
    lapack_int size = (lapack_int)n, *pivot = kf_new(n, sizeof *pivot);
    double *W = numbers(n * n);

    memcpy(W, G, n * n * sizeof *W);
    assert_int_equal(LAPACKE_dgetrf(LAPACK_ROW_MAJOR, size, size, W, size,
                                    pivot), 0);
    assert_int_equal(LAPACKE_dgetri(LAPACK_ROW_MAJOR, size, W, size, pivot), 0);
    kf_free(pivot);
    *cond = frobenius(G, n * n) * frobenius(W, n * n);
    return W;
}

static double distance(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* ||F G - I||_F */
static double not_identity(const double *F, const double *G, size_t wants,
                           size_t results)
{
    double sum = 0;

    for (size_t i = 0; i < wants; i++)
        for (size_t j = 0; j < wants; j++) {
            double dot = 0;

            for (size_t t = 0; t < results; t++)
                dot += F[i * results + t] * G[t * wants + j];
            sum += (dot - (i == j)) * (dot - (i == j));
        }
    return sqrt(sum);
}

/* ||F diag(row norms of G)||_F / sqrt(wants) */
static double noise_of(const double *F, const double *G, size_t wants,
                       size_t results)
{
    double sum = 0;

    for (size_t t = 0; t < results; t++) {
        double norm = frobenius(G + t * wants, wants);

        for (size_t i = 0; i < wants; i++)
            sum += pow(F[i * results + t] * norm, 2);
    }
    return sqrt(sum / (double)wants);
}

/* The result that is symbol w as it stands, or KF_MIXED. */
static int plain_result(const double *G, size_t results, size_t wants, size_t w)
{
    for (size_t t = 0; t < results; t++) {
        bool unit = true;

        for (size_t j = 0; j < wants; j++)
            unit &= G[t * wants + j] == (j == w);
        if (unit)
            return (int)t;
    }
    return KF_MIXED;
}

static void copies_what_is_plain(const double *G, const kf_decoder *d)
{
    for (size_t w = 0; w < d->wants; w++)
        assert_int_equal(d->copy[w],
                         plain_result(G, d->results, d->wants, w));
}

static void check_exact_set(rig *r, const uint32_t *set, size_t count)
{
    double *G = survivor_rows(r, set, count), *F, *W, cond;
    size_t n = r->wants;
    kf_decoder *d;

    assert_ok(kf_decoder_new(&d, r->code, set, count, false));
    F = whole_decoder(d);
    W = inverse(G, n, &cond);
    assert_true(d->whole && d->results == n);
    copies_what_is_plain(G, d);
    assert_at_most(not_identity(F, G, n, n), 4 * (double)n * U * cond);
    assert_at_most(distance(F, W, n * n) / frobenius(W, n * n),
                   4 * (double)n * U * cond);
    assert_at_most(fabs(d->noise / noise_of(W, G, n, n) - 1),
                   4 * (double)n * U * cond);
    kf_decoder_free(d);
    kf_free(G);
    kf_free(F);
    kf_free(W);
}

static const char *const bases[] = {
    "quaternion", "harmonic",  "haar",   "gauss_sys",  "gauss",
    "chebyshev",  "monomial", "cauchy", "vandermonde"};
static const size_t shapes[][2] = {{6, 3}, {6, 1}, {5, 5}, {8, 5}, {9, 4},
                                   {7, 6}};

/* All sets of `count` survivors. */
static void for_sets(const char *spec, size_t n, size_t count,
                     void (*check)(rig *, const uint32_t *, size_t))
{
    uint32_t set[16];
    size_t tried = 0;
    rig r;

    rig_up(&r, spec, n, KOFN_F64);
    first_set(set, count);
    do {
        if (tried++ % EVERY == 0)
            check(&r, set, count);
    } while (next_set(set, count, n));
    rig_down(&r);
}

static void every_set_is_inverted(void **state)
{
    (void)state;
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            char spec[60];

            snprintf(spec, sizeof spec, "mds:k=%zu,basis=%s", shapes[s][1],
                     bases[b]);
            for_sets(spec, shapes[s][0], shapes[s][1], check_exact_set);
        }
    for_sets("mds:k=5,weight=3", 9, 5, check_exact_set);
    for_sets("mds:k=5,weight=4,basis=gauss", 9, 5, check_exact_set);
}

/* What least squares makes of more results than unknowns, by LAPACK.  Plain
 * symbols are taken as they are; the others solve G_QU x_U = y_Q - G_QK x_K
 * for the results Q that say something about them. */
static double *least_squares_decoder(const rig *r, const kf_decoder *d,
                                     const double *G)
{
    size_t n = d->wants, m = d->results, rows = 0, cols = 0;
    double *P = numbers(m * n), *B = numbers(m * m), *F = numbers(n * m);

    for (size_t t = 0; t < m; t++) {
        bool plain = r->systematic && d->seat[t / r->lanes] < r->k;

        cols = 0;
        if (plain)
            continue;
        B[rows * m + t] = 1;
        for (size_t j = 0; j < n; j++)
            if (d->copy[j] >= 0)
                B[rows * m + (size_t)d->copy[j]] -= G[t * n + j];
            else
                P[rows * n + cols++] = G[t * n + j];
        rows++;
    }
    if (cols)
        assert_int_equal(LAPACKE_dgels(LAPACK_ROW_MAJOR, 'N', (lapack_int)rows,
                                       (lapack_int)cols, (lapack_int)m, P,
                                       (lapack_int)n, B, (lapack_int)m), 0);
    for (size_t j = 0, c = 0; j < n; j++)
        if (d->copy[j] >= 0)
            F[j * m + (size_t)d->copy[j]] = 1;
        else
            memcpy(F + j * m, B + c++ * m, m * sizeof *F);
    kf_free(P);
    kf_free(B);
    return F;
}

static void check_surplus_set(rig *r, const uint32_t *set, size_t count)
{
    double *G = survivor_rows(r, set, count), *F, *W, cond;
    kf_decoder *d;
    size_t m = count * r->lanes;

    assert_ok(kf_decoder_new(&d, r->code, set, count, false));
    F = whole_decoder(d);
    W = least_squares_decoder(r, d, G);
    cond = frobenius(G, m * r->wants) * frobenius(W, m * r->wants);
    copies_what_is_plain(G, d);
    assert_at_most(not_identity(F, G, r->wants, m), 8 * (double)m * U * cond);
    assert_at_most(distance(F, W, m * r->wants) / frobenius(W, m * r->wants),
                   8 * (double)m * U * cond);
    assert_at_most(fabs(d->noise / noise_of(W, G, r->wants, m) - 1),
                   8 * (double)m * U * cond);
    kf_decoder_free(d);
    kf_free(G);
    kf_free(F);
    kf_free(W);
}

static void more_results_are_least_squares(void **state)
{
    (void)state;
    for (size_t more = 1; more <= 3; more++) {
        for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
            char spec[60];

            snprintf(spec, sizeof spec, "mds:k=5,basis=%s", bases[b]);
            for_sets(spec, 9, 5 + more, check_surplus_set);
        }
        for_sets("mds:k=5,weight=3", 9, 5 + more, check_surplus_set);
    }
}

static void too_few_is_said(void **state)
{
    (void)state;
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++) {
        char spec[60];
        uint32_t set[16];
        rig r;

        snprintf(spec, sizeof spec, "mds:k=5,basis=%s", bases[b]);
        rig_up(&r, spec, 8, KOFN_F64);
        first_set(set, 4);
        do {
            kf_decoder *d;

            assert_status(KOFN_TOOFEW,
                          kf_decoder_new(&d, r.code, set, 4, false));
            assert_null(d);
            assert_non_null(strstr(kofn_errmsg(), "4 results"));
            assert_non_null(strstr(kofn_errmsg(), "any 5"));
        } while (next_set(set, 4, r.n));
        rig_down(&r);
    }
}

/* Partial: what survivors hold plainly is copied, the rest is lost, nothing
 * is guessed. */
static void partial_decoders(void **state)
{
    uint32_t set[16];
    rig r;

    (void)state;
    rig_up(&r, "mds:k=5,basis=quaternion", 8, KOFN_F64);
    for (size_t n = 1; n <= 4; n++) {
        first_set(set, n);
        do {
            kf_decoder *d;
            size_t plain = 0;

            assert_ok(kf_decoder_new(&d, r.code, set, n, true));
            assert_true(!d->whole && d->mixed == 0);
            for (size_t w = 0; w < d->wants; w++) {
                size_t at = 0;

                while (at < n && set[at] != w / 4)
                    at++;
                assert_int_equal(d->copy[w], at < n ? (int)(at * 4 + w % 4)
                                                    : KF_LOST);
                plain += at < n;
            }
            assert_at_most(fabs(d->noise - sqrt((double)plain / 20)), 4 * U);
            kf_decoder_free(d);
        } while (next_set(set, n, r.n));
    }
    rig_down(&r);
}

/* 12 u noise in double, 3 u noise in single precision, u as 2.2e-16 and
 * 1.2e-7; more for sums of more than 1024 terms: of a worker, over the columns
 * of A, and of the decoder, which sums results in double.  The decoder itself
 * is the same for both types. */
static void check_prediction(size_t n, size_t k, size_t columns, double more64,
                             double more32)
{
    kofn_problem pb = {KOFN_MATVEC, 1000, columns, 1, KOFN_F64, false};
    kf_decoder *d[2];
    uint32_t set[300];
    rig r[2];

    for (uint32_t i = 0; i < k; i++)
        set[i] = i + 1;
    for (int i = 0; i < 2; i++) {
        char spec[40];

        snprintf(spec, sizeof spec, "mds:k=%zu", k);
        pb.dtype = i ? KOFN_F32 : KOFN_F64;
        assert_ok(kofn_plan_new(&r[i].plan, &pb, spec, n, 4));
        assert_ok(kf_code_new(&r[i].code, r[i].plan));
        assert_ok(kf_decoder_new(&d[i], r[i].code, set, k, false));
    }
    assert_true(d[0]->noise == d[1]->noise && d[0]->noise > 1);
    assert_memory_equal(d[0]->D, d[1]->D,
                        d[0]->mixed * d[0]->results * sizeof *d[0]->D);
    assert_at_most(fabs(d[0]->predicted /
                        (12 * 0x1p-52 * d[0]->noise * more64) - 1), 8 * U);
    assert_at_most(fabs(d[1]->predicted /
                        (3 * 0x1p-23 * d[1]->noise * more32) - 1), 8 * U);
    for (int i = 0; i < 2; i++) {
        kf_decoder_free(d[i]);
        rig_down(&r[i]);
    }
}

static void prediction_follows_type_and_length(void **state)
{
    (void)state;
    check_prediction(8, 5, 7, 1, 1);
    check_prediction(8, 5, 1024, 1, 1);
    check_prediction(8, 5, 16384, 4, 4);
    check_prediction(260, 256, 7, 1, 1);
    check_prediction(292, 288, 7, sqrt(1.125), 1);
}

/* The 1-norm condition of what was solved, for a basis that solves for all. */
static void condition_is_lapacks(void **state)
{
    static const uint32_t set[] = {0, 2, 3, 5, 7};
    double *G, *W, cond;
    kf_decoder *d;
    rig r;

    (void)state;
    rig_up(&r, "mds:k=5,basis=gauss", 8, KOFN_F64);
    G = survivor_rows(&r, set, 5);
    W = inverse(G, 5, &cond);
    assert_ok(kf_decoder_new(&d, r.code, set, 5, false));
    cond = LAPACKE_dlange(LAPACK_ROW_MAJOR, '1', 5, 5, G, 5) *
           LAPACKE_dlange(LAPACK_ROW_MAJOR, '1', 5, 5, W, 5);
    assert_at_most(fabs(d->condition / cond - 1), 1e-12);
    kf_decoder_free(d);
    kf_free(G);
    kf_free(W);
    rig_down(&r);
}

/* ---- cache --------------------------------------------------------------- */

static void cache_knows_sets(void **state)
{
    uint32_t set[5], copy[5];
    const kf_decoder *first[56], *d;
    kf_cache *cache;
    rig r;

    (void)state;
    rig_up(&r, "mds:k=5", 8, KOFN_F64);
    assert_ok(kf_cache_new(&cache, r.code, SIZE_MAX));
    for (int again = 0; again < 2; again++) {
        size_t i = 0;

        first_set(set, 5);
        do {
            memcpy(copy, set, sizeof set);
            assert_ok(kf_cache_get(cache, copy, 5, false, &d));
            if (!again)
                first[i] = d;
            assert_ptr_equal(d, first[i++]);
            assert_memory_equal(d->seat, set, sizeof set);
        } while (next_set(set, 5, 8));
        assert_int_equal(i, 56);
        kf_cache_trim(cache);
    }
    /* a prefix, and the same as partial, are other questions */
    assert_ok(kf_cache_get(cache, copy, 5, true, &d));
    for (size_t i = 0; i < 56; i++)
        assert_ptr_not_equal(d, first[i]);
    assert_status(KOFN_TOOFEW, kf_cache_get(cache, copy, 4, false, &d));
    assert_null(d);
    kf_cache_free(cache);
    rig_down(&r);
}

/* A budget for about three decoders keeps the last three used; nothing goes
 * before it is trimmed; what comes back is the same to the bit. */
static void cache_drops_the_least_recent(void **state)
{
    static const uint32_t sets[4][5] = {
        {0, 1, 5, 6, 7}, {0, 2, 5, 6, 7}, {1, 2, 5, 6, 7}, {3, 4, 5, 6, 7}};
    const kf_decoder *d[4], *e;
    double *kept = NULL;
    kf_cache *cache;
    rig r;

    (void)state;
    rig_up(&r, "mds:k=5", 8, KOFN_F64);
    assert_ok(kf_cache_new(&cache, r.code, 3 * (12 * 20 * 8 + 300)));
    for (size_t i = 0; i < 4; i++)
        assert_ok(kf_cache_get(cache, sets[i], 5, false, &d[i]));
    kept = numbers(12 * 20);
    assert_true(d[0]->mixed == 12 && d[0]->results == 20);
    memcpy(kept, d[0]->D, 12 * 20 * sizeof *kept);
    assert_ok(kf_cache_get(cache, sets[1], 5, false, &e));
    assert_ptr_equal(e, d[1]);
    kf_cache_trim(cache); /* drops set 0 */
    fail_allocation(0);
    for (size_t i = 1; i < 4; i++) {
        assert_ok(kf_cache_get(cache, sets[i], 5, false, &e));
        assert_ptr_equal(e, d[i]);
    }
    assert_int_equal(allocations(), 0);
    assert_ok(kf_cache_get(cache, sets[0], 5, false, &e));
    assert_true(allocations() > 0);
    assert_memory_equal(e->D, kept, 12 * 20 * sizeof *kept);
    kf_free(kept);
    kf_cache_free(cache);
    rig_down(&r);
}

static void cache_survives_no_budget(void **state)
{
    static const uint32_t set[5] = {0, 1, 5, 6, 7};
    const kf_decoder *d;
    kf_cache *cache;
    long before;
    rig r;

    (void)state;
    rig_up(&r, "mds:k=5", 8, KOFN_F64);
    assert_ok(kf_cache_new(&cache, r.code, 0));
    assert_ok(kf_cache_get(cache, set, 5, false, &d));
    kf_cache_trim(cache);
    before = allocated();
    for (int i = 0; i < 3; i++) {
        kf_cache_trim(cache);
        assert_int_equal(allocated(), before);
        assert_ok(kf_cache_get(cache, set, 5, false, &d));
        assert_true(d->whole && allocated() > before);
    }
    kf_cache_free(cache);
    rig_down(&r);
}

/* ---- a scheme of one's own: figure 1 of the paper ------------------------ */

static const double fig1[6][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1},
                                  {1, 1, 1}, {1, 2, 3}, {1, 4, 9}};
static const kofn_param no_params[] = {{0}};

static kofn_status fig1_layout(kofn_layout *L)
{
    L->seats = L->max_seats = 6;
    L->enough = L->cut[0].rows = 3;
    return KOFN_OK;
}

static kofn_status fig1_seat(const kofn_layout *L, size_t seat, double *E0,
                             double *E1, double *G)
{
    (void)L, (void)E1, (void)G;
    memcpy(E0, fig1[seat], sizeof fig1[seat]);
    return KOFN_OK;
}

static const kofn_scheme fig1_scheme = {
    .name = "fig1",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = no_params,
    .layout = fig1_layout,
    .seat = fig1_seat,
};

/* facts cec.fig1d.H0: (G_0^T)^-1 for machines {0,4,5}, so that its columns
 * are the rows of the decoder. */
static void figure_1_decodes(void **state)
{
    static const double H0[3][3] = {{1.0, -1.0, 0.3333333333333333},
                                    {0.0, 1.5, -0.6666666666666666},
                                    {-0.0, -0.5, 0.3333333333333333}};
    static const uint32_t set[] = {0, 4, 5};
    kf_decoder *d;
    double *F;
    rig r = {0};

    (void)state;
    assert_ok(kofn_plan_new_for(&r.plan, &matvec, &fig1_scheme, NULL, 6, 1));
    assert_ok(kf_code_new(&r.code, r.plan));
    assert_ok(kf_decoder_new(&d, r.code, set, 3, false));
    F = whole_decoder(d);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            assert_at_most(fabs(F[i * 3 + j] - H0[j][i]), 1e-12);
    kf_free(F);
    kf_decoder_free(d);
    rig_down(&r);
}

/* facts cec.worked.matvec: X[i][k] = 10 i + k + 1 (9 x 2), w = (1, -2), live
 * machines {0, 2, 4, 5}. */
static void figure_1_multiplies(void **state)
{
    static const double Xw[9] = {-3, -13, -23, -33, -43, -53, -63, -73, -83};
    kofn_happening gone[] = {{1, 0, KOFN_EVENT_LEAVE, 1, 0},
                             {1, 0, KOFN_EVENT_LEAVE, 3, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_problem pb = {KOFN_MATVEC, 9, 2, 1, KOFN_F64, false};
    double X[18], w[2] = {1, -2}, y[9];
    kofn_matrix A = {X, 9, 2, 2, KOFN_F64}, x = {w, 2, 1, 1, KOFN_F64},
                out = {y, 9, 1, 1, KOFN_F64};
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    (void)state;
    for (size_t i = 0; i < 18; i++)
        X[i] = (double)(i / 2 * 10 + i % 2 + 1);
    opt.events = gone;
    opt.event_count = 2;
    assert_ok(kofn_plan_new_for(&plan, &pb, &fig1_scheme, NULL, 6, 1));
    assert_ok(kofn_port_sim(&port, 6, NULL));
    assert_ok(kofn_open(&job, plan, port, &opt));
    assert_ok(kofn_place(job, &A));
    assert_ok(kofn_round(job, &x, &out, NULL));
    for (size_t i = 0; i < 9; i++)
        assert_at_most(fabs(y[i] - Xw[i]), 1e-12);
    kofn_close(job);
    kofn_plan_free(plan);
}

/* Rows 3 and 4 are the same: sets that need both are singular, and no answer
 * comes of them. */
static kofn_status twin_seat(const kofn_layout *L, size_t seat, double *E0,
                             double *E1, double *G)
{
    return fig1_seat(L, seat == 4 ? 3 : seat, E0, E1, G);
}

static void singular_sets_are_refused(void **state)
{
    static const kofn_happening gone[] = {{1, 0, KOFN_EVENT_LEAVE, 1, 0},
                                          {1, 0, KOFN_EVENT_LEAVE, 2, 0},
                                          {1, 0, KOFN_EVENT_LEAVE, 5, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_scheme twins = fig1_scheme;
    double *a = normals(120 * 7, 1), *x = normals(7, 2), *y = normals(120, 3);
    kofn_matrix A = {a, 120, 7, 7, KOFN_F64}, in = {x, 7, 1, 1, KOFN_F64},
                out = {y, 120, 1, 1, KOFN_F64};
    kofn_plan *plan;
    kofn_port *port;
    kofn_job *job;

    (void)state;
    twins.seat = twin_seat;
    opt.events = gone;
    opt.event_count = 3;
    assert_ok(kofn_plan_new_for(&plan, &matvec, &twins, NULL, 6, 1));
    assert_ok(kofn_port_sim(&port, 6, NULL));
    assert_ok(kofn_open(&job, plan, port, &opt));
    assert_ok(kofn_place(job, &A));
    assert_status(KOFN_UNSTABLE, kofn_round(job, &in, &out, NULL));
    kofn_close(job);
    kofn_plan_free(plan);
    kf_free(a);
    kf_free(x);
    kf_free(y);
}

/* ---- who works on which strips ------------------------------------------- */

/* A core that is asked for rounds and answered by hand. */
typedef struct floor {
    kofn_plan *plan;
    kofn_core *core;
    kofn_action work[400];
    size_t works;
    bool delivered;
} floor_t;

static void tell(floor_t *f, kofn_event ev)
{
    kofn_action a;

    assert_ok(kofn_core_step(f->core, &ev));
    while (kofn_core_next(f->core, &a)) {
        if (a.type == KOFN_DO_WORK) {
            assert_true(f->works < 400);
            f->work[f->works++] = a;
        }
        if (a.type == KOFN_DO_DELIVER) {
            assert_int_equal(a.status, KOFN_OK);
            f->delivered = true;
        }
    }
}

static void floor_up(floor_t *f, size_t n, size_t k, size_t span,
                     const char *deal)
{
    /* one task an arc, and no matter how noisy */
    kofn_core_options opt = {.pieces = 1, .tolerance = 1e300};
    kofn_problem pb = {KOFN_MATVEC, span * k, 7, 1, KOFN_F64, false};
    char spec[80];

    *f = (floor_t){0};
    snprintf(spec, sizeof spec, "elastic:k=%zu,basis=gauss_sys,deal=%s", k,
             deal);
    assert_ok(kofn_plan_new(&f->plan, &pb, spec, n, 1));
    assert_int_equal(f->plan->span, span);
    assert_ok(kofn_core_new(&f->core, f->plan, &opt));
    for (uint32_t w = 0; w < n; w++) {
        tell(f, (kofn_event){.type = KOFN_EV_JOINED, .worker = w});
        tell(f, (kofn_event){.type = KOFN_EV_STORED, .worker = w});
    }
}

static void floor_down(floor_t *f)
{
    kofn_core_free(f->core);
    kofn_plan_free(f->plan);
}

static void begin(floor_t *f)
{
    f->works = 0;
    f->delivered = false;
    tell(f, (kofn_event){.type = KOFN_EV_BEGIN});
}

/* The time that the core, which counts 1e-9 s, reads as exactly `seconds`. */
static kofn_time exactly(double seconds)
{
    kofn_time guess = (kofn_time)(seconds * 1e9);

    for (kofn_time off = -64; off <= 64; off++)
        if ((double)(guess + off) * 1e-9 == seconds)
            return guess + off;
    return guess;
}

/* Answers all that was asked for, as workers of these speeds would. */
static void answer(floor_t *f, const double *speed)
{
    size_t works = f->works;

    for (size_t i = 0; i < works; i++) {
        const kofn_action *a = &f->work[i];

        tell(f, (kofn_event){.type = KOFN_EV_RESULT,
                             .worker = a->worker,
                             .task = a->task,
                             .took = exactly((double)(a->hi - a->lo) * 0x1p20 /
                                             speed[a->worker])});
    }
    assert_true(f->delivered && f->works == works);
}

/* used[worker][strip], load[worker]; at most two arcs each, together one arc
 * of the circle; every strip has k members. */
static void read_deal(const floor_t *f, size_t n, bool used[][200],
                      size_t *load)
{
    size_t span = f->plan->span, arcs[64] = {0}, total = 0;

    memset(used, 0, n * sizeof *used);
    memset(load, 0, n * sizeof *load);
    for (size_t i = 0; i < f->works; i++) {
        const kofn_action *a = &f->work[i];

        arcs[a->worker]++;
        for (size_t s = a->lo; s < a->hi; s++) {
            assert_false(used[a->worker][s]);
            used[a->worker][s] = true;
            load[a->worker]++;
            total++;
        }
    }
    assert_int_equal(total, f->plan->layout.enough * span);
    for (size_t s = 0; s < span; s++) {
        size_t members = 0;

        for (size_t w = 0; w < n; w++)
            members += used[w][s];
        assert_int_equal(members, f->plan->layout.enough);
    }
    for (size_t w = 0; w < n; w++) {
        size_t edges = 0;

        for (size_t s = 0; s < span; s++)
            edges += used[w][s] && !used[w][(s + 1) % span];
        assert_true(arcs[w] <= 2 && edges <= 1);
    }
}

/* Strips [s cut] of span are dealt to `users`, k of them. */
static void users_are(bool used[][200], size_t lo, size_t hi, const int *users,
                      size_t k, size_t n)
{
    for (size_t s = lo; s < hi; s++)
        for (size_t w = 0, found = 0; w < n; w++) {
            bool listed = found < k && users[found] == (int)w;

            assert_true(used[w][s] == listed);
            found += listed;
        }
}

/* facts cec.fig1b.users and cec.fig1d.users, spans that divide and do not. */
static void figure_1_is_dealt(void **state)
{
    static const int all[6][3] = {{0, 4, 5}, {0, 1, 5}, {0, 1, 2},
                                  {1, 2, 3}, {2, 3, 4}, {3, 4, 5}};
    static const int four[4][3] = {{0, 4, 5}, {0, 2, 5}, {0, 2, 4}, {2, 4, 5}};
    static const double even[6] = {1, 1, 1, 1, 1, 1};
    static const char *const deals[] = {"equal", "speed"};
    bool used[6][200];
    size_t load[6];

    (void)state;
    for (size_t span = 12; span <= 113; span += 101)
        for (int d = 0; d < 2; d++) {
            floor_t f;

            floor_up(&f, 6, 3, span, deals[d]);
            begin(&f);
            read_deal(&f, 6, used, load);
            for (size_t j = 0; j < 6; j++)
                users_are(used, j * span / 6, (j + 1) * span / 6, all[j], 3, 6);
            answer(&f, even);
            tell(&f, (kofn_event){.type = KOFN_EV_LEFT, .worker = 1});
            tell(&f, (kofn_event){.type = KOFN_EV_LEFT, .worker = 3});
            begin(&f);
            read_deal(&f, 6, used, load);
            for (size_t j = 0; j < 4; j++)
                users_are(used, j * span / 4, (j + 1) * span / 4, four[j], 3,
                          6);
            answer(&f, even);
            floor_down(&f);
        }
}

/* facts cec.hetero.example: speeds 1 1 4 2 8, L = 3, R = 22. */
static void unequal_example_is_dealt(void **state)
{
    static const double speed[5] = {1, 1, 4, 2, 8};
    static const size_t rows[5] = {6, 5, 22, 11, 22};
    static const int users[3][3] = {{0, 2, 4}, {1, 2, 4}, {2, 3, 4}};
    static const size_t cut[4] = {0, 6, 11, 22};
    bool used[5][200];
    size_t load[5];
    floor_t f;

    (void)state;
    floor_up(&f, 5, 3, 22, "speed");
    begin(&f);
    answer(&f, speed);
    begin(&f);
    read_deal(&f, 5, used, load);
    for (size_t p = 0; p < 5; p++)
        assert_int_equal(load[p], rows[p]);
    for (size_t s = 0; s < 3; s++)
        users_are(used, cut[s], cut[s + 1], users[s], 3, 5);
    answer(&f, speed);
    floor_down(&f);
}

/* SPEC-A A3: cuts floor(j R/n), rank p on the k groups from p on. */
static void equal_deals(void **state)
{
    kf_rng r = kf_rng_stream(6, KF_FOR_DATA, 0, 0);
    size_t trials = (size_t)(300 * test_scale()) / EVERY;

    (void)state;
    for (size_t t = 0; t < trials; t++) {
        size_t n = 1 + kf_rng_below(&r, 24), k = 1 + kf_rng_below(&r, n);
        size_t span = 1 + kf_rng_below(&r, 199), load[24];
        bool used[24][200];
        floor_t f;

        floor_up(&f, n, k, span, "equal");
        begin(&f);
        read_deal(&f, n, used, load);
        for (size_t p = 0; p < n; p++) {
            assert_true(load[p] == k * span / n ||
                        load[p] == kf_ceil_div(k * span, n));
            for (size_t j = 0; j < n; j++)
                for (size_t s = j * span / n; s < (j + 1) * span / n; s++)
                    assert_true(used[p][s] == ((j + n - p) % n < k));
        }
        floor_down(&f);
    }
}

/* The level c with sum of min(1, c v) = k, by bisection. */
static double water_level(const double *v, size_t n, size_t k)
{
    double lo = 0, hi = 1;

    for (size_t p = 0; p < n; p++)
        hi = fmax(hi, 1 / v[p]);
    for (int i = 0; i < 200; i++) {
        double c = (lo + hi) / 2, sum = 0;

        for (size_t p = 0; p < n; p++)
            sum += fmin(1, c * v[p]);
        *(sum < (double)k ? &lo : &hi) = c;
    }
    return hi;
}

/* Shares mu <= 1 with sum k and T = max mu/v have mu <= min(1, T v), whose
 * sum reaches k at the water level and not below it: no shares finish before
 * c, so shares of whole strips next to the level are optimal to a strip. */
static void deals_follow_the_water(const double *v, const size_t *load,
                                   size_t n, size_t k, size_t span)
{
    double c = water_level(v, n, k);

    for (size_t p = 0; p < n; p++) {
        double exact = fmin(1, c * v[p]) * (double)span;

        assert_true((double)load[p] >= floor(exact - 1e-6) &&
                    (double)load[p] <= ceil(exact + 1e-6));
    }
}

static void unequal_deals(void **state)
{
    kf_rng r = kf_rng_stream(7, KF_FOR_DATA, 0, 0);
    size_t trials = (size_t)(300 * test_scale()) / EVERY;

    (void)state;
    for (size_t t = 0; t < trials; t++) {
        size_t n = 1 + kf_rng_below(&r, 24), k = 1 + kf_rng_below(&r, n);
        size_t span = n + kf_rng_below(&r, 200 - n), load[24];
        double v[24], reach = kf_rng_uniform(&r) * 7;
        bool used[24][200];
        floor_t f;

        for (size_t p = 0; p < n; p++)
            v[p] = p && kf_rng_below(&r, 4) == 0
                       ? v[p - 1]
                       : exp(reach * kf_rng_uniform(&r));
        floor_up(&f, n, k, span, "speed");
        begin(&f);
        answer(&f, v);
        begin(&f);
        read_deal(&f, n, used, load);
        deals_follow_the_water(v, load, n, k, span);
        answer(&f, v);
        floor_down(&f);
    }
}

static int setup(void **state)
{
    (void)state;
    count_allocations();
    kf_blas_single();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solves),
        cmocka_unit_test(solves_subnormal_rows),
        cmocka_unit_test(refuses_singular),
        cmocka_unit_test(least_squares),
        cmocka_unit_test(least_squares_refuses_singular),
        cmocka_unit_test(solutions_repeat),
        cmocka_unit_test(defaults_are_spelled_out),
        cmocka_unit_test(sparse_operands_get_light_rows),
        cmocka_unit_test(every_parameter_is_read),
        cmocka_unit_test(junk_is_refused),
        cmocka_unit_test(problems_are_checked),
        cmocka_unit_test(quaternion_rows),
        cmocka_unit_test(open_rows_do_not_depend_on_n),
        cmocka_unit_test(systematic_rows_are_units),
        cmocka_unit_test(harmonic_frame_is_tight),
        cmocka_unit_test(haar_slice_is_orthonormal),
        cmocka_unit_test(chebyshev_points_are_spread),
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(turns),
        cmocka_unit_test(light_rows_have_their_support),
        cmocka_unit_test(every_set_is_inverted),
        cmocka_unit_test(more_results_are_least_squares),
        cmocka_unit_test(too_few_is_said),
        cmocka_unit_test(partial_decoders),
        cmocka_unit_test(prediction_follows_type_and_length),
        cmocka_unit_test(condition_is_lapacks),
        cmocka_unit_test(cache_knows_sets),
        cmocka_unit_test(cache_drops_the_least_recent),
        cmocka_unit_test(cache_survives_no_budget),
        cmocka_unit_test(figure_1_decodes),
        cmocka_unit_test(figure_1_multiplies),
        cmocka_unit_test(singular_sets_are_refused),
        cmocka_unit_test(figure_1_is_dealt),
        cmocka_unit_test(unequal_example_is_dealt),
        cmocka_unit_test(equal_deals),
        cmocka_unit_test(unequal_deals),
    };

    return cmocka_run_group_tests_name("code", tests, setup, NULL);
}
