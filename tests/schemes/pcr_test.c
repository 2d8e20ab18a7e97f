/* pcr_test.c -- polynomially coded regression: A' A x from any 2 ceil(n/r) - 1
 * answers (math/regression.md).
 *
 * Facts are those of the companion table of the specification (facts.json),
 * quoted by their names.
 */
#include "pcr_rig.h"
#include "portable.h"

#include <lapacke.h>

static size_t members(unsigned set, size_t n, uint32_t *seats)
{
    size_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        if (set >> i & 1)
            seats[k++] = i;
    return k;
}

/* ---- T16: every survivor set --------------------------------------------- */

/* Decides by the ranks of G and of G with W below it. */
static bool determined(const herd *h, const uint32_t *set, size_t k)
{
    size_t K = h->L->symbols, rank[2];

    for (size_t with = 0; with < 2; with++) {
        size_t rows = k + with, low = kf_min(rows, K);
        double *G = numbers(rows * K, 8), *sv = numbers(low, 8), none;

        for (size_t i = 0; i < k; i++) {
            const kf_seat *s;

            assert_ok(kf_code_seat(h->code, set[i], &s));
            for (size_t e = 0; e < s->G[0].n; e++)
                G[i * K + s->G[0].col[e]] = s->G[0].val[e];
        }
        if (with)
            memcpy(G + k * K, h->L->W, K * sizeof *G);
        assert_int_equal(LAPACKE_dgesdd(LAPACK_ROW_MAJOR, 'N', (lapack_int)rows,
                                        (lapack_int)K, G, (lapack_int)K, sv,
                                        &none, (lapack_int)rows, &none,
                                        (lapack_int)K),
                         0);
        rank[with] = 0;
        while (rank[with] < low && sv[rank[with]] > 1e-10 * sv[0])
            rank[with]++;
        kf_free(G);
        kf_free(sv);
    }
    return rank[0] == rank[1];
}

/* A set of K decodes. A smaller set decodes if it determines the sum, which a
 * code that is not systematic does not try. */
static void try_set(const herd *h, const uint32_t *set, size_t k)
{
    bool can =
        k >= h->L->threshold || (k >= h->L->enough && determined(h, set, k));
    kofn_decoder *d;
    kofn_status st = kf_decoder_new(&d, h->code, set, k, false);

    if (st != (can ? KOFN_OK : KOFN_TOOFEW))
        fail_msg("%s, %zu seats from %u: %s (%s)", h->plan->spec, k, set[0],
                 kofn_strerror(st), kofn_errmsg());
    if (!can)
        return;
    assert_at_most(error_of(h, d), d->predicted);
    assert_at_most(error_of(h, d), h->A.dtype == KOFN_F64 ? 1e-11 : 1e-3);
    kf_decoder_free(d);
}

static size_t all_sets(const char *spec, size_t n, size_t c, kofn_dtype dtype)
{
    uint32_t set[8];
    herd h;

    herd_up(&h, spec, n, 5 * c + 2, 9, dtype);
    assert_int_equal(h.L->symbols, 2 * c - 1);
    assert_int_equal(h.L->threshold, 2 * c - 1);
    for (unsigned s = 1; s < 1u << n; s++)
        try_set(&h, set, members(s, n, set));
    herd_down(&h);
    return (1u << n) - 1;
}

static void every_survivor_set(void **state)
{
    static const char *const form[] = {"pcr:r=%zu",
                                       "pcr:r=%zu,systematic=1",
                                       "pcr:r=%zu,basis=lagrange",
                                       "pcr:r=%zu,basis=lagrange,systematic=1",
                                       "pcr:r=%zu,layout=paper",
                                       "pcr:r=%zu,layout=paper,systematic=1",
                                       "pcr:r=%zu,layout=paper,basis=lagrange"};
    size_t sets = 0;
    char spec[80];

    (void)state;
    for (size_t n = 2; n <= (SLOWED == 1 ? 8 : 6); n++)
        for (size_t r = 2; r <= n; r++)
            for (size_t f = 0; f < sizeof form / sizeof *form; f++) {
                snprintf(spec, sizeof spec, form[f], r);
                sets += all_sets(spec, n, blocks_of(n, r),
                                 (r + f) % 2 ? KOFN_F64 : KOFN_F32);
            }
    print_message("%zu survivor sets\n", sets);
}

/* ---- the systematic variant ---------------------------------------------- */

static size_t plain_seats(const herd *h, uint32_t *set)
{
    size_t k = 0;

    for (uint32_t i = 0; i < h->n; i++) {
        const kf_seat *s;

        assert_ok(kf_code_seat(h->code, i, &s));
        if (s->E0[0].n == 1 && s->E0[0].val[0] == 1)
            set[k++] = i;
    }
    return k;
}

/* c seats store different plain blocks, and their answers are added. */
static void plain_blocks_add_up(void **state)
{
    static const size_t sizes[][2] = {{6, 3},  {7, 2},  {40, 10}, {100, 10},
                                      {11, 3}, {13, 4}, {9, 8},   {50, 2}};
    static const char *const basis[] = {"circle", "lagrange"};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t b = 0; b < 2; b++) {
            size_t n = sizes[i][0], c = blocks_of(n, sizes[i][1]);
            uint32_t set[100], held[100] = {0};
            kofn_decoder *d;
            char spec[80];
            herd h;

            snprintf(spec, sizeof spec, "pcr:r=%zu,systematic=1,basis=%s",
                     sizes[i][1], basis[b]);
            herd_up(&h, spec, n, 7 * c - 1, 5, KOFN_F64);
            assert_int_equal(h.L->enough, c);
            assert_int_equal(plain_seats(&h, set), c);
            assert_ok(kf_decoder_new(&d, h.code, set, c, false));
            for (size_t k = 0; k < c; k++) {
                const kf_seat *s;

                assert_ok(kf_code_seat(h.code, set[k], &s));
                assert_int_equal(held[s->E0[0].col[0]]++, 0);
                assert_at_most(fabs(d->D[k] - 1), 4e-15 * (double)c);
            }
            assert_at_most(error_of(&h, d), 1e-14);
            kf_decoder_free(d);
            herd_down(&h);
        }
}

/* Seats that are evenly spread on the circle suffice: every tenth or every
 * eighth of 40 angles. */
static void even_sets_are_enough(void **state)
{
    herd h;
    size_t found = 0;

    (void)state;
    herd_up(&h, "pcr:r=10,systematic=1", 40, 61, 4, KOFN_F64);
    for (size_t q = 4; q <= 5; q++)
        for (size_t at = 0; at < 40 / q; at++) {
            uint32_t set[5];
            kofn_decoder *d;

            for (size_t k = 0; k < q; k++)
                set[k] = (uint32_t)(at + k * (40 / q));
            assert_ok(kf_decoder_new(&d, h.code, set, q, false));
            for (size_t k = 0; k < q; k++)
                assert_at_most(fabs(d->D[k] - 4 / (double)q), 1e-13);
            assert_at_most(error_of(&h, d), 1e-13);
            kf_decoder_free(d);
            found++;
        }
    assert_int_equal(found, 18);
    herd_down(&h);
}

/* ---- weights ------------------------------------------------------------- */

/* With all n present: the mean, 1/n each (math/numerics.md 3.2). With more
 * than K: LAPACK's minimum norm, since all rows have the same rounding. */
static void weights_have_minimum_norm(void **state)
{
    kf_rng r = kf_rng_stream(4, KF_FOR_SAMPLE, 0, 0);
    uint32_t set[40];
    kofn_decoder *d;
    herd h;

    (void)state;
    herd_up(&h, "pcr:r=10", 40, 50, 3, KOFN_F64);
    window(set, 40, 40, 0);
    assert_ok(kf_decoder_new(&d, h.code, set, 40, false));
    for (size_t k = 0; k < 40; k++)
        assert_at_most(fabs(d->D[k] - 0.025), 1e-15);
    kf_decoder_free(d);
    for (size_t k = 7; k < 40; k += 3) {
        double F[7 * 40] = {0}, b[40] = {0}, sv[7];
        lapack_int rank;

        random_set(&r, set, k, 40);
        for (size_t i = 0; i < k; i++) {
            const kf_seat *s;

            assert_ok(kf_code_seat(h.code, set[i], &s));
            for (size_t e = 0; e < s->G[0].n; e++)
                F[s->G[0].col[e] * k + i] = s->G[0].val[e];
        }
        b[3] = 1;
        assert_int_equal(LAPACKE_dgelsd(LAPACK_ROW_MAJOR, 7, (lapack_int)k, 1,
                                        F, (lapack_int)k, b, 1, sv, 1e-14,
                                        &rank),
                         0);
        assert_int_equal(rank, 7);
        assert_ok(kf_decoder_new(&d, h.code, set, k, false));
        assert_at_most(relative_error(d->D, b, k), 1e-15 * sv[0] / sv[6] * 20);
        kf_decoder_free(d);
    }
    herd_down(&h);
}

/* The paper's example: blocks at 0, -1, ..., workers at 0, 1, 2, ...; symbols
 * are the coefficients of powers. */
static const kofn_param no_params[] = {{0}};

static kofn_status example_layout(kofn_layout *L)
{
    L->seats = L->max_seats = L->workers;
    L->enough = L->symbols = 3;
    L->cut[0].rows = 2;
    L->wants = 1;
    L->W = kofn_layout_table(1, 3);
    if (!L->W)
        return KOFN_NOMEM;
    for (size_t e = 0; e < 3; e++)
        L->W[e] = pow(0, (double)e) + pow(-1, (double)e);
    return KOFN_OK;
}

static kofn_status example_seat(const kofn_layout *L, size_t i, double *E0,
                                double *E1, double *G)
{
    (void)L, (void)E1;
    E0[0] = (double)i + 1;
    E0[1] = -(double)i;
    for (size_t e = 0; e < 3; e++)
        G[e] = pow((double)i, (double)e);
    return KOFN_OK;
}

static const kofn_scheme example = {
    .size = sizeof(kofn_scheme),
    .name = "example",
    .ops = KOFN_GRAM,
    .params = no_params,
    .layout = example_layout,
    .seat = example_seat,
};

static void example_up(herd *h)
{
    kofn_matrix A = {numbers(36, 8), 12, 3, 3, KOFN_F64};
    kofn_matrix x = {numbers(3, 8), 3, 1, 1, KOFN_F64};
    uint64_t s = 42;

    for (size_t i = 0; i < 36; i++)
        ((double *)A.data)[i] = normal(&s);
    memcpy(x.data, (double[]){1, 0.5, -1}, 24);
    herd_with(h, &example, NULL, 6, A, x);
}

/* Facts pcr.weights.ex.*, pcr.worked. */
static void the_papers_example(void **state)
{
    static const struct {
        uint32_t set[3];
        double a[3];
    } fact[] = {
        {{0, 1, 2}, {4, -3, 1}},
        {{1, 3, 5}, {4.875, -4.25, 1.375}},
        {{3, 4, 5}, {25, -39, 16}},
    };
    static const double f[6][3] = {
        {2.788713041030605, 4.539144171281125, -4.959600829110565},
        {18.831356677795277, 29.72158705720079, -30.377131117058774},
        {50.28392164624482, 84.48072597193874, -84.14053683647626},
        {97.14640794637921, 168.81656091549502, -166.24981798736306},
        {159.41881557819852, 282.7290918878695, -276.7049745697192},
        {237.10114454170252, 426.2183188890623, -415.5060065835445}};
    static const double want[3] = {4.944703776981402, 13.472541485460884,
                                   -12.847546801742215};
    uint32_t set[6];
    herd h;

    (void)state;
    example_up(&h);
    assert_at_most(relative_error(h.f, f[0], 18), 1e-14);
    assert_at_most(relative_error(h.want, want, 3), 1e-14);
    for (size_t i = 0; i < 3; i++) {
        kofn_decoder *d;

        assert_ok(kf_decoder_new(&d, h.code, fact[i].set, 3, false));
        assert_at_most(relative_error(d->D, fact[i].a, 3), 1e-13);
        kf_decoder_free(d);
    }
    for (unsigned s = 1; s < 64; s++) {
        size_t k = members(s, 6, set);
        kofn_decoder *d;

        assert_int_equal(kf_decoder_new(&d, h.code, set, k, false),
                         k < 3 ? KOFN_TOOFEW : KOFN_OK);
        if (k >= 3)
            assert_at_most(error_of(&h, d), 1e-12);
        kf_decoder_free(d);
    }
    herd_down(&h);
}

/* ---- thresholds ---------------------------------------------------------- */

static size_t threshold(size_t n, size_t r)
{
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;
    char spec[40];

    snprintf(spec, sizeof spec, "pcr:r=%zu", r);
    assert_ok(kofn_plan_new(&plan, &gram, spec, n, 1));
    assert_ok(kofn_plan_describe(plan, false, &info));
    assert_at_most(fabs(info.storage * (double)blocks_of(n, r) - 1), 1e-15);
    assert_int_equal(info.block_rows, blocks_of(100, blocks_of(n, r)));
    assert_true(info.upload == 1 && info.answer == 1);
    kofn_plan_free(plan);
    return info.threshold;
}

/* Facts thr.n40_r10, thr.n6_r3, pcr.worse_than_gc. */
static void thresholds(void **state)
{
    static const size_t worse[][2] = {
        {3, 2}, {4, 3}, {5, 2}, {5, 4},  {6, 5},  {7, 2},   {7, 6},
        {8, 7}, {9, 2}, {9, 8}, {10, 9}, {11, 2}, {11, 10}, {12, 11}};
    size_t found = 0;

    (void)state;
    assert_int_equal(threshold(40, 10), 7);
    assert_int_equal(threshold(6, 3), 3);
    assert_int_equal(threshold(1, 1), 1);
    for (size_t n = 2; n <= 12; n++)
        for (size_t r = 2; r <= n; r++) {
            size_t K = threshold(n, r);

            assert_true(K == 2 * blocks_of(n, r) - 1 && K <= n);
            if (K > n - r + 1) {
                assert_true(worse[found][0] == n && worse[found][1] == r);
                found++;
            }
        }
    assert_int_equal(found, sizeof worse / sizeof *worse);
}

static size_t rows_stored(const char *spec, size_t n, size_t m, double *storage)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(KOFN_GRAM, m, 3, 1, KOFN_F64, false);
    kofn_plan_info info = KOFN_PLAN_INFO_INIT;
    kofn_plan *plan;

    assert_ok(kofn_plan_new(&plan, &pb, spec, n, 1));
    assert_ok(kofn_plan_describe(plan, false, &info));
    kofn_plan_free(plan);
    assert_true(info.upload == 1 && info.answer == 1);
    *storage = info.storage;
    return info.block_rows;
}

/* C2: both layouts have the same threshold. Cutting into blocks directly never
 * needs more rows, and fewer if r does not divide n: 7 instead of 8. */
static void both_layouts(void **state)
{
    double storage;

    (void)state;
    assert_int_equal(rows_stored("pcr:r=2", 7, 28, &storage), 7);
    assert_true(storage == 0.25);
    assert_int_equal(rows_stored("pcr:r=2,layout=paper", 7, 28, &storage), 8);
    assert_true(storage == 2.0 / 7);
    for (size_t n = 2; n <= 12; n++)
        for (size_t r = 2; r <= n; r++)
            for (size_t m = 1; m < 40; m += 3) {
                char spec[40];
                size_t super, rows;

                snprintf(spec, sizeof spec, "pcr:r=%zu", r);
                super = rows_stored(spec, n, m, &storage);
                strcat(spec, ",layout=paper");
                rows = rows_stored(spec, n, m, &storage);
                assert_int_equal(super, blocks_of(m, blocks_of(n, r)));
                assert_int_equal(rows, r * blocks_of(m, n));
                assert_true(super <= rows);
            }
}

TEST_FILE(pcr_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_survivor_set,
             "pcr: every survivor set decodes if and only if it should"),
        TEST(plain_blocks_add_up,
             "pcr: c plain blocks suffice in the systematic variant"),
        TEST(even_sets_are_enough, "pcr: evenly spread sets suffice"),
        TEST(weights_have_minimum_norm,
             "pcr: weights have minimum norm (LAPACK)"),
        TEST(the_papers_example, "pcr: the paper's example gives its numbers"),
        TEST(thresholds, "pcr: thresholds are the published ones"),
        TEST(both_layouts,
             "pcr: both layouts have one threshold, blocks fewer rows"),
    };

    rig_begin();
    return cmocka_run_group_tests_name("pcr", tests, NULL, NULL);
}
