/* coefficient_test.c -- the families of coefficients against closed forms and
 * their definitions. */
#include "code_rig.h"

static double *basis_rows(kf_basis b, size_t i, size_t n, size_t k, size_t w,
                          uint64_t seed)
{
    size_t components = kf_basis_components(b);
    double *rows = numbers(components * components * k);
    void *table;

    assert_ok(kf_basis_prepare(b, n, k, seed, &table));
    kf_basis_rows(&(kf_family){b, n, k, w, seed, table}, i, rows);
    kofn_free(table);
    return rows;
}

/* Every 4 x 4 block is L(q) of math/numerics.md 2.1, with components of 16
 * random bits, so that L(q)^T L(q) = |q|^2 I holds exactly. */
static void quaternion_rows(void **state)
{
    static const double sign[4][4] = {
        {1, -1, -1, -1}, {1, 1, -1, 1}, {1, 1, 1, -1}, {1, -1, 1, 1}};
    double mean = 0, square = 0, count = 0;
    size_t k = 40;

    (void)state;
    for (size_t seat = k; seat < k + 60; seat++) {
        double *r = basis_rows(KF_BASIS_QUATERNION, seat, 100, k, 0, 9);

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

/* A joining worker's row depends on (seed, seat, block) alone: not on the
 * number of workers nor, up to a power of two, on k. */
static void open_rows_do_not_depend_on_n(void **state)
{
    static const kf_basis open[] = {KF_BASIS_QUATERNION, KF_BASIS_GAUSS_SYS,
                                    KF_BASIS_GAUSS};

    (void)state;
    for (size_t o = 0; o < 3; o++) {
        size_t components = kf_basis_components(open[o]),
               size = components * components * 9;
        double *a = basis_rows(open[o], 70, 12, 9, 0, 1);
        double *b = basis_rows(open[o], 70, 500, 9, 0, 1);
        double *wide = basis_rows(open[o], 70, 500, 20, 0, 1);
        double *other = basis_rows(open[o], 71, 12, 9, 0, 1);
        double *reseeded = basis_rows(open[o], 70, 12, 9, 0, 2);

        assert_true(kf_basis_open(open[o]));
        assert_memory_equal(a, b, size * sizeof *a);
        for (size_t l = 0; l < components; l++)
            for (size_t j = 0; j < 9 * components; j++) {
                size_t at = l * 9 * components + j;

                /* 9 and 20 have the same power of two next to their root */
                assert_true(a[at] == wide[l * 20 * components + j]);
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
    static const kf_basis plain[] = {KF_BASIS_QUATERNION, KF_BASIS_HAAR,
                                     KF_BASIS_GAUSS_SYS};

    (void)state;
    for (size_t b = 0; b < 3; b++)
        for (size_t i = 0; i < 5; i++) {
            size_t components = kf_basis_components(plain[b]),
                   width = 5 * components;
            double *r = basis_rows(plain[b], i, 9, 5, 0, 1);

            for (size_t l = 0; l < components; l++)
                for (size_t j = 0; j < width; j++)
                    assert_true(r[l * width + j] == (j == i * components + l));
            kf_free(r);
        }
}

/* Returns all n rows, one below the other. */
static double *whole_basis(kf_basis b, size_t n, size_t k)
{
    double *G = numbers(n * k);

    for (size_t i = 0; i < n; i++) {
        double *r = basis_rows(b, i, n, k, 0, 4);

        memcpy(G + i * k, r, k * sizeof *r);
        kf_free(r);
    }
    return G;
}

/* The columns of all n rows of the trigonometric frame are orthogonal with
 * norm^2 n: sums of roots of unity. */
static void harmonic_frame_is_tight(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 25; n += 3)
        for (size_t k = 1; k <= n; k++) {
            double *G = whole_basis(KF_BASIS_HARMONIC, n, k);

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
    static const size_t shapes[][2] = {{6, 5},  {9, 5},   {20, 18},
                                       {40, 8}, {64, 32}, {30, 29}};

    (void)state;
    for (size_t c = 0; c < 6; c++) {
        size_t n = shapes[c][0], k = shapes[c][1], r = n - k;
        double *G = whole_basis(KF_BASIS_HAAR, n, k), *P = G + k * k;
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

/* facts nodes.perm: the rank of each seat's node among cheb(M). */
/* The same for mds-published. */
static double *whole_published(const char *basis, size_t n, size_t k)
{
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 1000, 7, 1, KOFN_F64, false);
    double *G = numbers(n * k);
    kofn_plan *plan;
    char spec[60];

    snprintf(spec, sizeof spec, "mds-published:k=%zu,basis=%s", k, basis);
    assert_ok(kofn_plan_new(&plan, &pb, spec, n, 4));
    for (size_t i = 0; i < n; i++)
        assert_ok(plan->scheme->seat(&plan->layout, i, G + i * k, NULL, NULL));
    kofn_plan_free(plan);
    return G;
}

static void chebyshev_points_are_spread(void **state)
{
    static const size_t perm[3][12] = {{0, 4, 2, 5, 3, 1},
                                       {0, 5, 2, 7, 4, 1, 6, 3},
                                       {0, 7, 3, 10, 5, 1, 8, 4, 11, 6, 2, 9}};
    static const size_t M[3] = {6, 8, 12};
    const double pi = acos(-1);

    (void)state;
    for (size_t c = 0; c < 3; c++) {
        size_t k = M[c] - 1;
        double *T = whole_published("chebyshev", M[c], k);
        double *X = whole_published("monomial", M[c], k);

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
    double *V = whole_published("vandermonde", 9, 6);
    double *C = whole_published("cauchy", 9, 6);

    (void)state;
    for (size_t i = 0; i < 9; i++) {
        long power = 1;

        for (size_t j = 0; j < 6; j++, power *= (long)i + 1) {
            assert_true(V[i * 6 + j] == (double)power);
            assert_true(C[i * 6 + j] ==
                        (i < 6 ? i == j : 1.0 / (double)(i - j)));
        }
    }
    kf_free(V);
    kf_free(C);
}

/* The angle is reduced in integers: exact at the axes, equal after any number
 * of turns, and within an ulp of 1 everywhere. */
static void cosines(void **state)
{
    double c, s, d, t;

    (void)state;
    for (uint64_t q = 0; q < 8; q++) {
        static const double at[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};

        kf_code_cossin(q * 25, 100, &c, &s);
        assert_true(c == at[q % 4][0] && s == at[q % 4][1]);
    }
    for (uint64_t den = 1; den < 300; den += 7)
        for (uint64_t num = 0; num < den; num++) {
            long double a = 2 * acosl(-1) * (long double)num / (long double)den;

            kf_code_cossin(num, den, &c, &s);
            assert_at_most((double)fabsl(c - cosl(a)), 2 * U);
            assert_at_most((double)fabsl(s - sinl(a)), 2 * U);
            kf_code_cossin(num + 1000000 * den, den, &d, &t);
            assert_true(c == d && s == t);
        }
}

/* math/numerics.md 2.5: columns floor(i k/n) .. + w-1, cyclically; a joining
 * worker beyond the first n mixes all. */
static void light_rows_have_their_support(void **state)
{
    static const size_t shapes[][3] = {
        {6, 4, 2}, {20, 16, 4}, {40, 30, 9}, {12, 9, 9}, {7, 7, 1}};

    (void)state;
    for (size_t c = 0; c < 5; c++)
        for (int real = 0; real < 2; real++)
            for (size_t i = 0; i < shapes[c][0] + 2; i++) {
                kf_basis b = real ? KF_BASIS_GAUSS : KF_BASIS_QUATERNION;
                size_t n = shapes[c][0], k = shapes[c][1], w = shapes[c][2];
                size_t components = kf_basis_components(b), from = i * k / n;
                double *r = basis_rows(b, i, n, k, w, 8);

                for (size_t j = 0; j < k * components; j++) {
                    size_t off = (j / components + k - from % k) % k;

                    assert_true((r[j] != 0) == (i >= n || off < w));
                }
                kf_free(r);
            }
}

TEST_FILE(coefficient_test)
{
    const struct CMUnitTest tests[] = {
        TEST(quaternion_rows,
             "coefficients: quaternion blocks are L(q), uniform and exact"),
        TEST(open_rows_do_not_depend_on_n,
             "coefficients: a joining worker's row depends on seed and seat "
             "only"),
        TEST(systematic_rows_are_units,
             "coefficients: systematic rows are unit vectors"),
        TEST(harmonic_frame_is_tight,
             "coefficients: the harmonic frame is tight"),
        TEST(haar_slice_is_orthonormal,
             "coefficients: the Haar slice is orthonormal"),
        TEST(chebyshev_points_are_spread,
             "coefficients: Chebyshev points are spread over the seats"),
        TEST(closed_forms,
             "coefficients: the other families equal their closed forms"),
        TEST(cosines,
             "coefficients: cosines are exact at the axes and within an ulp"),
        TEST(light_rows_have_their_support,
             "coefficients: light rows have the published support"),
    };

    return cmocka_run_group_tests_name("coefficient", tests, setup, NULL);
}
