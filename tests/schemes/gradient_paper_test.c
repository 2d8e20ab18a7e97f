/* gradient_paper_test.c -- gradient codes against their papers: worked examples
 * and the invariants of gradient coding (math/gradients.md 8). */
#include "gradient_rig.h"

#include "schemes/gradient.h"

#include <lapacke.h>

/* ---- worked examples ----------------------------------------------------- */

/* Computes n x parts x segments from kf_dual_row, row submessage n + seat. */
static double *encoding_of(const kf_dual *u)
{
    size_t wide = u->n * u->units;
    double *E = numbers(u->submessages * u->n * wide, sizeof *E);

    for (size_t t = 0; t < u->submessages; t++)
        for (size_t i = 0; i < u->n; i++)
            kf_dual_row(u, i, t, 0, wide, E + (t * u->n + i) * wide);
    return E;
}

static void linked_up(kf_dual *u, size_t n, size_t d, size_t lam,
                      const double *V)
{
    *u = (kf_dual){.n = n,
                   .d = d,
                   .units = lam,
                   .submessages = lam,
                   .field = 1,
                   .linked = true};
    assert_ok(kf_dual_new(u, false));
    assert_ok(kf_dual_of(u, V));
    assert_ok(kf_dual_encode(u));
}

static void assert_close(const double *a, const double *b, size_t n,
                         double room)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= room))
            fail_msg("entry %zu: %.17g, not %.17g", i, a[i], b[i]);
}

/* math/gradients.md 5. */
static void adaptive_by_hand(void **state)
{
    static const double V[] = {1, 0, 1, 0, 0, 1, 1,  0, 1, -1, 1, 0,
                               0, 1, 1, 1, 1, 0, -1, 1, 2, 1,  0, 1};
    static const double want[] = {1,  -1, 0,  1,  0,  0, /* round 0 */
                                  0,  0,  -1, 2,  -1, 1,  1, -2, 0, 0, 0, -1,
                                  -1, -1, -3, 1,  0,  0, /* round 1 */
                                  0,  0,  0,  -2, 3,  -1, 1, 0,  0, 0, 3, 0};
    static const double g[] = {1, 2, 3, 5, -4, 7};
    static const double message[] = {4, 18, -10, -7, -29, -11};
    kf_dual u;
    double *E;

    (void)state;
    linked_up(&u, 3, 2, 2, V);
    E = encoding_of(&u);
    assert_close(E, want, 36, 1e-14);
    for (unsigned set = 1; set < 8; set++) { /* the answering workers */
        size_t here = (size_t)__builtin_popcount(set),
               submessages = here == 3 ? 1 : 2;
        uint32_t answer[6];
        double D[12] = {0}, sum[2] = {0};
        size_t n = 0;
        kofn_status st;

        for (uint32_t i = 0; i < 3; i++)
            for (uint32_t t = 0; t < submessages && set >> i & 1; t++)
                answer[n++] = i * 2 + t;
        st = kf_dual_decode(&u, answer, n, 0, D, n);
        assert_int_equal(st, here >= 2 ? KOFN_OK : KOFN_TOOFEW);
        for (size_t a = 0; a < n; a++)
            for (size_t z = 0; z < 2; z++)
                sum[z] +=
                    D[z * n + a] * message[answer[a] % 2 * 3 + answer[a] / 2];
        if (st == KOFN_OK)
            assert_close(sum, (double[]){0, 14}, 2, 1e-12);
    }
    for (size_t r = 0; r < 6; r++) /* the messages are E g */
        assert_close(&(double){cblas_ddot(6, E + r * 6, 1, g, 1)}, message + r,
                     1, 1e-12);
    kf_free(E);
    kf_arrays_free(&u.owned);
}

/* math/gradients.md 6.5: powers of distinct points can be singular; with one
 * point moved they are not. */
static void powers_may_be_singular(void **state)
{
    static const uint32_t answer[] = {0, 1, 2, 3}; /* seats 0 and 1 */

    (void)state;
    for (int moved = 0; moved < 2; moved++) {
        double x[] = {2, 4, 3, 7, 14 + moved, 5}, V[24] = {0}, D[8] = {0};
        kf_dual u;

        for (size_t r = 0; r < 6; r++)
            for (size_t c = 0; c < (r < 3 ? 3 : 4); c++)
                V[r * 4 + c] = pow(x[r], (double)c);
        linked_up(&u, 3, 2, 2, V);
        assert_int_equal(kf_dual_decode(&u, answer, 4, 0, D, 4),
                         moved ? KOFN_OK : KOFN_TOOFEW);
        kf_arrays_free(&u.owned);
    }
}

/* math/gradients.md 4; the scheme has the same points. */
static void vandermonde_by_hand(void **state)
{
    static const double x[] = {-1.5, -1, 1, 1.5};
    static const double want[] = {
        -0.5, 1.25,  -2.5,  1.25, -3,    0,    0, 0, 0, 0,    -2,
        0,    -2.5,  -1.25, 0.5,  -1.25, 2,    0, 0, 0, -0.5, -1.25,
        2.5,  -1.25, 2.5,   1.25, 0.5,   1.25, 0, 0, 3, 0};
    double E[32] = {0};
    sum_case f;

    (void)state;
    assert_ok(kf_gradient_paper_polynomial(4, 3, 2, x, E));
    assert_close(E, want, 32, 1e-14);
    case_plan(&f, "cgc:d=3,m=2,construction=vandermonde", 4, 8, KOFN_F64);
    for (size_t i = 0; i < 4; i++) {
        double row[8] = {0};
        const kf_seat *rows;

        assert_ok(kf_code_seat(f.code, i, &rows));
        for (size_t e = 0; e < rows->G[0].n; e++)
            row[rows->G[0].col[e]] = rows->G[0].val[e];
        assert_close(row, want + 8 * i, 8, 1e-14);
    }
    case_down(&f);
}

/* math/gradients.md 3: the usual example. Its first row is printed at half the
 * scale. */
static void cyclic_by_hand(void **state)
{
    static const double H[] = {-2, 1, 1}, scale[] = {0.5, 1, 1};
    static const double printed[] = {0.5, 1, 0, 0, 1, -1, 0.5, 0, 1};
    static const struct {
        size_t i, j;
        double a, b;
    } decode[] = {{0, 1, 2, -1}, {0, 2, 1, 1}, {1, 2, 1, 2}};
    double E[9] = {0};

    (void)state;
    assert_ok(kf_gradient_paper_null(3, 2, H, E));
    for (size_t e = 0; e < 9; e++)
        E[e] *= scale[e / 3];
    assert_close(E, printed, 9, 1e-15);
    for (size_t k = 0; k < 3; k++)
        for (size_t c = 0; c < 3; c++)
            assert_close(&(double){decode[k].a * E[decode[k].i * 3 + c] +
                                   decode[k].b * E[decode[k].j * 3 + c]},
                         &(double){1}, 1, 1e-15);
}

/* math/gradients.md 5.4: n = 4, d = 3, lam = 6. */
static void progress_by_hand(void **state)
{
    static const struct {
        size_t count[4];
        bool whole;
    } t[] = {{{2, 2, 2, 2}, true},  {{3, 3, 3, 0}, true},
             {{6, 6, 0, 0}, true},  {{6, 5, 0, 0}, false},
             {{4, 4, 2, 0}, true},  {{4, 3, 2, 1}, true},
             {{4, 4, 3, 1}, true},  {{2, 2, 2, 1}, false},
             {{1, 1, 1, 1}, false}, {{6, 0, 0, 0}, false}};

    (void)state;
    for (size_t form = 1; form < 3; form++) {
        char spec[100];
        sum_case f;

        snprintf(spec, sizeof spec, "agc:d=3,lam=6,form=%s", forms[form]);
        case_up(&f, spec, 4, LENGTH, KOFN_F64);
        for (size_t k = 0; k < sizeof t / sizeof *t; k++)
            try_counts(&f, spec, t[k].count, t[k].whole, 1e-6);
        case_down(&f);
    }
}

/* ---- invariants (math/gradients.md 8) ------------------------------------ */

/* S as in D.5.1, by LAPACK; V S and the dual give the same E. */
static void S_gives_E(size_t n, size_t d, size_t lam)
{
    size_t rest = n - d, L = lam + rest * lam, wide = n * lam;
    kf_dual u = {.n = n, .d = d, .units = lam, .submessages = lam};
    double *V = kf_gradient_gaussian_V(&u, n + 10 * d), *E, *mine, size = 0;
    double *S = numbers(L * wide, sizeof *S), *C = numbers(rest * rest + 1, 8);
    double *B = numbers(rest * lam + 1, 8);

    assert_non_null(V);
    linked_up(&u, n, d, lam, V);
    mine = encoding_of(&u);
    for (size_t j = 0; j < n; j++) {
        for (size_t z = 0; z < lam; z++)
            S[z * wide + j * lam + z] = 1;
        for (size_t t = 0; t < lam && rest; t++) {
            int pivot[8];

            for (size_t q = 0; q < rest; q++) {
                const double *row = V + (t * n + (j + 1 + q) % n) * L;
                size_t from = lam + rest * t;

                memcpy(C + q * rest, row + from, rest * sizeof *C);
                for (size_t z = 0; z < lam; z++) {
                    double *b = B + q * lam + z;

                    *b = 0;
                    for (size_t c = 0; c < from; c++)
                        *b -= row[c] * S[c * wide + j * lam + z];
                }
            }
            assert_int_equal(LAPACKE_dgesv(LAPACK_ROW_MAJOR, (int)rest,
                                           (int)lam, C, (int)rest, pivot, B,
                                           (int)lam),
                             0);
            for (size_t q = 0; q < rest; q++)
                for (size_t z = 0; z < lam; z++)
                    S[(lam + rest * t + q) * wide + j * lam + z] =
                        B[q * lam + z];
        }
    }
    E = numbers(n * lam * wide, sizeof *E);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)(n * lam),
                (int)wide, (int)L, 1, V, (int)L, S, (int)wide, 0, E, (int)wide);
    for (size_t e = 0; e < n * lam * wide; e++)
        size = fmax(size, fabs(E[e]));
    assert_close(mine, E, n * lam * wide, 1e-9 * size);
    kf_free(V);
    kf_free(S);
    kf_free(C);
    kf_free(B);
    kf_free(E);
    kf_free(mine);
    kf_arrays_free(&u.owned);
}

static void duals_are_the_papers(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 7; n++)
        for (size_t d = 1; d <= n && d <= 4; d++)
            for (size_t lam = 1; lam <= 4; lam++)
                S_gives_E(n, d, lam);
}

/* A worker mixes only the parts it computes, each computes the right number of
 * parts, and each part is with the right number of workers. */
static void holders(void **state)
{
    static const struct {
        const char *spec;
        size_t n, each;
    } t[] = {{"gc:d=3", 7, 3},
             {"gc:d=3,construction=fractional", 9, 3},
             {"cgc:d=4,m=2", 9, 4},
             {"cgc:d=4,m=2,construction=random", 9, 4},
             {"cgc:d=4,m=2,construction=vandermonde", 9, 4},
             {"agc:d=3", 7, 3},
             {"agc:d=3,form=staircase", 6, 3},
             {"agc:d=3,form=decoupled", 7, 3},
             {"uncoded", 5, 1}};

    (void)state;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        size_t with[9] = {0};
        sum_case f;

        case_plan(&f, t[k].spec, t[k].n, LENGTH, KOFN_F64);
        for (size_t a = 0; a < t[k].n * f.L->submessages; a++) {
            bool mine[9] = {false};
            const kf_seat *rows;

            assert_ok(kf_code_seat(f.code, a, &rows));
            assert_int_equal(rows->E0[0].n, t[k].each);
            for (size_t e = 0; e < rows->E0[0].n; e++) {
                mine[rows->E0[0].col[e]] = true;
                with[rows->E0[0].col[e]] += a % f.L->submessages == 0;
            }
            for (size_t l = 0; l < f.L->components; l++)
                for (size_t e = 0; e < rows->G[l].n; e++)
                    assert_true(mine[rows->G[l].col[e] / f.L->wants]);
        }
        for (size_t j = 0; j < t[k].n; j++)
            assert_int_equal(with[j], t[k].each);
        case_down(&f);
    }
}

/* math/gradients.md 7.1: which workers share parts. */
static void groups_share(void **state)
{
    static const struct {
        size_t n, d, sizes[7];
    } t[] = {{7, 2, {2, 2, 3}},
             {11, 3, {3, 3, 5}},
             {20, 3, {3, 3, 3, 3, 3, 5}},
             {20, 4, {4, 4, 4, 4, 4}},
             {5, 3, {5}}};

    (void)state;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        for (size_t s = 0; s < 2; s++) {
            char spec[50];
            sum_case f;
            size_t from = 0;

            snprintf(spec, sizeof spec, "%s:d=%zu", s ? "g-cgc" : "g-agc",
                     t[k].d);
            case_plan(&f, spec, t[k].n, LENGTH, KOFN_F64);
            for (size_t h = 0; t[k].sizes[h]; from += t[k].sizes[h++])
                for (size_t i = from; i < from + t[k].sizes[h]; i++) {
                    const kf_seat *rows;

                    assert_ok(
                        kf_code_seat(f.code, i * f.L->submessages, &rows));
                    assert_int_equal(rows->E0[0].n, t[k].d);
                    for (size_t e = 0; e < t[k].d; e++)
                        assert_int_equal(rows->E0[0].col[e] >= from &&
                                             rows->E0[0].col[e] <
                                                 from + t[k].sizes[h],
                                         1);
                }
            assert_int_equal(from, t[k].n);
            case_down(&f);
        }
}

static void same_rows(const char *one, const char *other, size_t n)
{
    sum_case a, b;

    case_plan(&a, one, n, LENGTH, KOFN_F64);
    case_plan(&b, other, n, LENGTH, KOFN_F64);
    assert_int_equal(a.L->symbols, b.L->symbols);
    for (size_t i = 0; i < n * a.L->submessages; i++) {
        const kf_seat *x, *y;

        assert_ok(kf_code_seat(a.code, i, &x));
        assert_ok(kf_code_seat(b.code, i, &y));
        for (size_t l = 0; l < a.L->components; l++) {
            assert_int_equal(x->G[l].n, y->G[l].n);
            assert_memory_equal(x->G[l].col, y->G[l].col, x->G[l].n * 4);
            assert_close(x->G[l].val, y->G[l].val, x->G[l].n, 0);
        }
    }
    case_down(&a);
    case_down(&b);
}

/* One segment is gradient coding; a single group is no grouping. */
static void special_cases(void **state)
{
    (void)state;
    same_rows("gc:d=4", "cgc:d=4,m=1", 9);
    same_rows("gc:d=2,construction=quaternion",
              "cgc:d=2,s=1,construction=quaternion", 7);
    same_rows("cgc:d=4,m=2", "g-cgc:d=4,m=2", 7);
    same_rows("agc:d=4", "g-agc:d=4", 7);
    same_rows("agc:d=3,form=decoupled", "g-agc:d=3,form=decoupled", 5);
}

/* Also floor(n/d) (d-1) stragglers in all may be survived (Theorem 4). */
static void whole_groups(void **state)
{
    kf_rng r = kf_rng_stream(42, KF_FOR_SAMPLE, 0, 0);
    size_t count[8];
    sum_case f;

    (void)state;
    case_up(&f, "g-agc:d=3,lam=5,form=decoupled", 3, LENGTH, KOFN_F64);
    for (size_t trial = 0; trial < often(300); trial++) {
        uint32_t answer[5];
        size_t n = 0;
        double e;

        for (uint32_t a = 0; n < 5; a++)
            if (kf_rng_below(&r, 15 - a) < 5 - n)
                answer[n++] = a;
        e = case_error(&f, answer, 5);
        assert_true(e >= 0 && e <= 1e-9);
        assert_true(case_error(&f, answer, 4) < 0);
    }
    case_down(&f);
    for (size_t n = 1; n <= LARGEST; n++)
        for (size_t d = 1; d <= n && d <= 4; d++) {
            char spec[50];

            snprintf(spec, sizeof spec, "g-agc:d=%zu", d);
            case_up(&f, spec, n, LENGTH, KOFN_F64);
            for (size_t i = 0; i < n; i++) /* the first d - 1 of each group */
                count[i] =
                    i % d < d - 1 && i / d < n / d ? 0 : f.L->submessages;
            try_counts(&f, spec, count, true, 1e-12);
            case_down(&f);
        }
}

TEST_FILE(gradient_paper_test)
{
    const struct CMUnitTest tests[] = {
        TEST(adaptive_by_hand,
             "gradients: the adaptive example agrees with hand calculation"),
        TEST(powers_may_be_singular,
             "gradients: distinct points may give singular powers"),
        TEST(vandermonde_by_hand,
             "gradients: the Vandermonde example agrees with hand calculation"),
        TEST(cyclic_by_hand,
             "gradients: the cyclic example agrees with the published one"),
        TEST(progress_by_hand,
             "gradients: partial progress decodes as published (n=4, d=3)"),
        TEST(duals_are_the_papers,
             "gradients: duals give the paper's encoding"),
        TEST(holders,
             "gradients: each worker has its parts, each part its workers"),
        TEST(groups_share, "gradients: parts are shared within groups only"),
        TEST(special_cases,
             "gradients: one segment or one group is plain gradient coding"),
        TEST(whole_groups,
             "gradients: any lam answers decode a group (Theorem 4)"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("gradient_paper", tests, NULL, NULL);
}
