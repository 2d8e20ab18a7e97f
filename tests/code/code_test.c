/* code_test.c -- decoders against LAPACK and published numbers. */
#include "code_rig.h"
#include "figure1.h"
#include "published.h"
#include "sets.h"

/* ---- decoders ------------------------------------------------------------ */

typedef struct rig {
    kofn_plan *plan;
    kf_code *code;
    size_t n, k, components, wants;
    bool systematic;
} rig;

static void rig_up(rig *r, const char *spec, size_t n, kofn_dtype dtype)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 1000, 7, 1, dtype, false);

    assert_ok(kofn_plan_new(&r->plan, &pb, spec, n, 4));
    assert_ok(kf_code_new(&r->code, r->plan));
    r->n = n;
    r->k = r->plan->layout.enough;
    r->components = r->plan->layout.components;
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

static double frobenius(const double *a, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * a[i];
    return sqrt(sum);
}

/* Returns the survivors' rows of G, results x symbols. */
static double *survivor_rows(rig *r, const uint32_t *set, size_t n)
{
    double *G = numbers(n * r->components * r->wants);

    for (size_t i = 0; i < n; i++) {
        const kf_seat *seat;

        assert_ok(kf_code_seat(r->code, set[i], &seat));
        for (size_t l = 0; l < r->components; l++)
            for (size_t e = 0; e < seat->G[l].n; e++)
                G[(i * r->components + l) * r->wants + seat->G[l].col[e]] =
                    seat->G[l].val[e];
    }
    return G;
}

/* Returns the decoder as wants x results, copies included. */
static double *whole_decoder(const kofn_decoder *d)
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

/* Inverts by LAPACK. *cond is the Frobenius condition number. */
static double *inverse(const double *G, size_t n, double *cond)
{
    lapack_int size = (lapack_int)n, *pivot = kf_new(n, sizeof *pivot);
    double *W = numbers(n * n);

    memcpy(W, G, n * n * sizeof *W);
    assert_int_equal(
        LAPACKE_dgetrf(LAPACK_ROW_MAJOR, size, size, W, size, pivot), 0);
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

/* Returns ||F G - I||_F. */
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

/* Returns ||F diag(row norms of G)||_F / sqrt(wants). */
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

/* Returns the result that equals symbol w, or KF_MIXED. */
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

static void copies_what_is_plain(const double *G, const kofn_decoder *d)
{
    for (size_t w = 0; w < d->wants; w++)
        assert_int_equal(d->copy[w], plain_result(G, d->results, d->wants, w));
}

static void check_exact_set(rig *r, const uint32_t *set, size_t count)
{
    double *G = survivor_rows(r, set, count), *F, *W, cond;
    size_t n = r->wants;
    kofn_decoder *d;

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

static const char *const bases[] = {"quaternion", "harmonic", "haar",
                                    "gauss_sys",  "gauss",    "chebyshev",
                                    "monomial",   "cauchy",   "vandermonde"};
static const size_t shapes[][2] = {{6, 3}, {6, 1}, {5, 5},
                                   {8, 5}, {9, 4}, {7, 6}};

/* Calls `check` for all sets of `count` survivors. */
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

            snprintf(spec, sizeof spec, "%s:k=%zu,basis=%s", mds_of(bases[b]),
                     shapes[s][1], bases[b]);
            for_sets(spec, shapes[s][0], shapes[s][1], check_exact_set);
        }
    for_sets("mds:k=5,weight=3", 9, 5, check_exact_set);
    for_sets("mds:k=5,weight=4,basis=gauss", 9, 5, check_exact_set);
}

/* Returns the least-squares decoder for more results than unknowns, by LAPACK.
 * Plain symbols are copied. The others solve G_QU x_U = y_Q - G_QK x_K for the
 * results Q that involve them. */
static double *least_squares_decoder(const rig *r, const kofn_decoder *d,
                                     const double *G)
{
    size_t n = d->wants, m = d->results, rows = 0, cols = 0;
    double *P = numbers(m * n), *B = numbers(m * m), *F = numbers(n * m);

    for (size_t t = 0; t < m; t++) {
        bool plain = r->systematic && d->seat[t / r->components] < r->k;

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
                                       (lapack_int)n, B, (lapack_int)m),
                         0);
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
    kofn_decoder *d;
    size_t m = count * r->components;

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

            snprintf(spec, sizeof spec, "%s:k=5,basis=%s", mds_of(bases[b]),
                     bases[b]);
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

        snprintf(spec, sizeof spec, "%s:k=5,basis=%s", mds_of(bases[b]),
                 bases[b]);
        rig_up(&r, spec, 8, KOFN_F64);
        first_set(set, 4);
        do {
            kofn_decoder *d;

            assert_status(KOFN_TOOFEW,
                          kf_decoder_new(&d, r.code, set, 4, false));
            assert_null(d);
            assert_non_null(strstr(kofn_errmsg(), "4 results"));
            assert_non_null(strstr(kofn_errmsg(), "any 5"));
        } while (next_set(set, 4, r.n));
        rig_down(&r);
    }
}

/* Partial decoding copies what survivors hold plainly; the rest is lost, and
 * nothing is guessed. */
static void partial_decoders(void **state)
{
    uint32_t set[16];
    rig r;

    (void)state;
    rig_up(&r, "mds:k=5,basis=quaternion", 8, KOFN_F64);
    for (size_t n = 1; n <= 4; n++) {
        first_set(set, n);
        do {
            kofn_decoder *d;
            size_t plain = 0;

            assert_ok(kf_decoder_new(&d, r.code, set, n, true));
            assert_true(!d->whole && d->mixed == 0);
            for (size_t w = 0; w < d->wants; w++) {
                size_t at = 0;

                while (at < n && set[at] != w / 4)
                    at++;
                assert_int_equal(d->copy[w],
                                 at < n ? (int)(at * 4 + w % 4) : KF_LOST);
                plain += at < n;
            }
            assert_at_most(fabs(d->noise - sqrt((double)plain / 20)), 4 * U);
            kf_decoder_free(d);
        } while (next_set(set, n, r.n));
    }
    rig_down(&r);
}

/* Three standard deviations of the rounding of a sum in any order, u sqrt(0.8
 * terms), and other rounding: 6.5 u^2 in single precision, (24 u)^2 in double.
 * The terms are the columns of A, in single precision 4096 at a time, and in
 * double also the results that the decoder sums. The decoder is the same for
 * both types. */
static void check_prediction(size_t n, size_t k, size_t columns, double terms64,
                             double terms32)
{
    double c64 = 0x1p-53 * sqrt(576 + 0.8 * terms64);
    double c32 = 0x1p-24 * sqrt(6.5 + 0.8 * terms32);
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATVEC, 1000, columns, 1, KOFN_F64, false);
    kofn_decoder *d[2];
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
    assert_at_most(fabs(d[0]->predicted / (c64 * d[0]->noise) - 1), 8 * U);
    assert_at_most(fabs(d[1]->predicted / (c32 * d[1]->noise) - 1), 8 * U);
    for (int i = 0; i < 2; i++) {
        kf_decoder_free(d[i]);
        rig_down(&r[i]);
    }
}

static void prediction_follows_type_and_length(void **state)
{
    (void)state;
    check_prediction(8, 5, 7, 7 + 20, 7);
    check_prediction(8, 5, 1024, 1024 + 20, 1024);
    check_prediction(8, 5, 16384, 16384 + 20, 4096 + 4);
    check_prediction(260, 256, 7, 7 + 1024, 7);
}

/* The 1-norm condition of the solved system, for a basis that solves for all
 * symbols. */
static void condition_is_lapacks(void **state)
{
    static const uint32_t set[] = {0, 2, 3, 5, 7};
    double *G, *W, cond;
    kofn_decoder *d;
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

/* ---- a scheme of the test: figure 1 of the paper --------------------------
 */

static const kofn_scheme fig1_scheme = {
    .size = sizeof(kofn_scheme),
    .name = "fig1",
    .ops = KOFN_MATVEC | KOFN_MATMUL,
    .params = fig1_no_params,
    .layout = fig1_layout,
    .seat = fig1_seat,
};

/* facts cec.fig1d.H0: (G_0^T)^-1 for machines {0,4,5}; its columns are the
 * rows of the decoder. */
static void figure_1_decodes(void **state)
{
    static const double H0[3][3] = {{1.0, -1.0, 0.3333333333333333},
                                    {0.0, 1.5, -0.6666666666666666},
                                    {-0.0, -0.5, 0.3333333333333333}};
    static const uint32_t set[] = {0, 4, 5};
    kofn_decoder *d;
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
    kofn_fault_event gone[] = {{1, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
                               {1, 0, KOFN_FAULT_EVENT_LEAVE, 3, 0}};
    kofn_options opt = KOFN_OPTIONS_INIT;
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_MATVEC, 9, 2, 1, KOFN_F64, false);
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

/* Rows 3 and 4 are equal: sets that need both are singular and give no answer.
 */
static kofn_status twin_seat(const kofn_layout *L, size_t seat, double *E0,
                             double *E1, double *G)
{
    return fig1_seat(L, seat == 4 ? 3 : seat, E0, E1, G);
}

static void singular_sets_are_refused(void **state)
{
    static const kofn_fault_event gone[] = {
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 1, 0},
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 2, 0},
        {1, 0, KOFN_FAULT_EVENT_LEAVE, 5, 0}};
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

static void schemes_say_how_long_they_are(void **state)
{
    kofn_scheme old = fig1_scheme;
    kofn_plan *plan;

    (void)state;
    old.size =
        offsetof(kofn_scheme, decode); /* the older struct has no such hook */
    old.decode = (kofn_status(*)(const kofn_layout *, const uint32_t *, size_t,
                                 double *))(uintptr_t)1;
    assert_ok(kofn_plan_new_for(&plan, &matvec, &old, NULL, 6, 1));
    assert_null(plan->scheme->decode);
    kofn_plan_free(plan);
    old.size = 0;
    assert_status(KOFN_INVAL,
                  kofn_plan_new_for(&plan, &matvec, &old, NULL, 6, 1));
    assert_non_null(strstr(kofn_errmsg(), "sizeof(kofn_scheme)"));
}

TEST_FILE(code_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_set_is_inverted,
             "decoder: every survivor set is inverted as by LAPACK"),
        TEST(more_results_are_least_squares,
             "decoder: more results than needed give least squares (LAPACK)"),
        TEST(too_few_is_said,
             "decoder: too few results are refused with the numbers"),
        TEST(partial_decoders,
             "decoder: partial decoding copies plain symbols and guesses none"),
        TEST(prediction_follows_type_and_length,
             "decoder: predictions follow type and length (f32, f64)"),
        TEST(condition_is_lapacks, "decoder: the condition number is LAPACK's"),
        TEST(figure_1_decodes,
             "elastic: the decoder of the paper's figure 1 is right"),
        TEST(figure_1_multiplies,
             "elastic: the product of the paper's figure 1 is right"),
        TEST(singular_sets_are_refused, "decoder: singular sets are refused"),
        TEST(schemes_say_how_long_they_are,
             "scheme: structs of older callers are accepted"),
    };

    return cmocka_run_group_tests_name("code", tests, setup, NULL);
}
