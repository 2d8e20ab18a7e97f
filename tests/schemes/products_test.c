/* products_test.c -- coded products of two matrices: the answers needed, by
 * LAPACK, and the results. */
#include "product_rig.h"

#include <lapacke.h>

/* ---- ranks of W and G by LAPACK -------------------------------------------
 */

static double *dense_rows(kf_code *code, const uint32_t *set, size_t n)
{
    const kofn_layout *L = &code->plan->layout;
    double *G = room(n * L->components * L->symbols, sizeof *G);

    for (size_t i = 0; i < n; i++) {
        const kf_seat *s;

        assert_ok(kf_code_seat(code, set[i], &s));
        for (size_t l = 0; l < L->components; l++)
            for (size_t e = 0; e < s->G[l].n; e++)
                G[(i * L->components + l) * L->symbols + s->G[l].col[e]] =
                    s->G[l].val[e];
    }
    return G;
}

static size_t rank_of(const double *G, size_t rows, size_t cols)
{
    size_t n = rows < cols ? rows : cols, rank = 0;
    double *A = room(rows * cols, sizeof *A), *sv = room(n, sizeof *sv), none;

    memcpy(A, G, rows * cols * sizeof *A);
    assert_int_equal(LAPACKE_dgesdd(LAPACK_ROW_MAJOR, 'N', (lapack_int)rows,
                                    (lapack_int)cols, A, (lapack_int)cols, sv,
                                    &none, (lapack_int)rows, &none,
                                    (lapack_int)cols),
                     0);
    while (rank < n && sv[rank] > 1e-10 * sv[0])
        rank++;
    kf_free(A);
    kf_free(sv);
    return rank;
}

/* True if these seats determine every want, by the rank of G and of G with W
 * below it. */
static bool determined(kf_code *code, const uint32_t *set, size_t n)
{
    const kofn_layout *L = &code->plan->layout;
    size_t rows = n * L->components, cols = L->symbols;
    double *G = dense_rows(code, set, n), *both;
    size_t rank = rank_of(G, rows, cols), with;

    if (!L->W) {
        kf_free(G);
        return rank == cols;
    }
    both = room((rows + L->wants) * cols, sizeof *both);
    memcpy(both, G, rows * cols * sizeof *G);
    memcpy(both + rows * cols, L->W, L->wants * cols * sizeof *G);
    with = rank_of(both, rows + L->wants, cols);
    kf_free(G);
    kf_free(both);
    return with == rank;
}

/* ---- thresholds and answers ---------------------------------------------- */

/* K-1 evenly spread points of a circle can be special: the sum over all n-th
 * roots of most powers is 0, and fewer coefficients than all are wanted. */
static size_t tried, lucky;

/* Any `enough` seats of a few sets decode correctly. One seat fewer is
 * refused, and insufficient except for rare chance. If noise hides the ranks,
 * an error below the prediction must do. */
static void try_enough(product_case *f, const uint32_t *set, size_t k)
{
    uint32_t fewer[128];
    kofn_decoder *d;
    bool clear;
    double e;

    assert_ok(kf_decoder_new(&d, f->code, set, k, false));
    e = error_of(f, d);
    clear = d->noise < 1e4;
    assert_at_most(e, d->predicted);
    if (clear)
        assert_at_most(e, f->dtype == KOFN_F64 ? 1e-11 : 1e-2);
    assert_true(d->whole);
    assert_true(!clear || determined(f->code, set, k));
    kf_decoder_free(d);
    if (k == 1)
        return;
    memcpy(fewer, set + 1, (k - 1) * sizeof *set);
    tried += clear;
    lucky += clear && determined(f->code, fewer, k - 1);
    assert_status(KOFN_TOOFEW,
                  kf_decoder_new(&d, f->code, fewer, k - 1, false));
    assert_null(d);
}

static void check_code(kofn_op op, const char *spec, size_t K)
{
    static const sides s = {2, 3, 2};
    kf_rng r = kf_rng_stream(K, KF_FOR_SAMPLE, 1, 0);
    static size_t turn;
    uint32_t set[128];

    for (int type = 0; type < 2; type++) {
        size_t n = K + 1 + (size_t)kf_rng_below(&r, 3);
        product_case f;

        if (EVERY > 1 && turn++ % 12)
            continue;
        case_up(&f, op, spec, n, n, s, type ? KOFN_F32 : KOFN_F64, 3);
        assert_int_equal(f.L->enough, K);
        if (strstr(spec, "complex")) /* half the answers decode, but not well */
            assert_int_equal(f.L->threshold,
                             n < 2 * K - 1 ? n : f.L->threshold);
        else
            assert_int_equal(f.L->threshold, K);
        assert_int_equal(f.L->max_seats, n);
        for (int t = 0; t < (K > 50 ? 2 : 5); t++) {
            random_set(&r, set, K, n);
            try_enough(&f, set, K);
        }
        case_down(&f);
    }
}

/* math/products.md 2. */
static void every_grid(void **state)
{
    char s[80];

    (void)state;
    for (size_t m = 1; m <= 4; m++)
        for (size_t n = 1; n <= 4; n++)
            for (size_t p = 1; p <= 4; p++) {
                snprintf(s, sizeof s, "gpd:m=%zu,n=%zu,p=%zu", m, n, p);
                check_code(KOFN_MATMUL, s, m * n * p + n - 1);
                check_code(KOFN_LEFT, s, m * n * p + m * n - n);
                strcat(s, ",sub=vum");
                check_code(KOFN_MATMUL, s, m * n * p + m * n - m);
                check_code(KOFN_LEFT, s, m * n * p + m - 1);
                snprintf(s, sizeof s, "polydot:m=%zu,n=%zu,p=%zu", m, n, p);
                check_code(KOFN_MATMUL, s, m * p * (2 * n - 1));
                check_code(KOFN_LEFT, s, m * n * p + m - 1);
            }
}

/* Left products with another cut of the input (math/training.md 7, B1 and B2).
 */
static void inputs_cut_apart(void **state)
{
    char s[80];

    (void)state;
    for (size_t p = 1; p <= 3; p++)
        for (size_t q = 1; q <= 3; q++) {
            size_t m = 2, n = 3;

            snprintf(s, sizeof s, "gpd:m=2,n=3,p=%zu,q=%zu", p, q);
            check_code(KOFN_MATMUL, s, m * n * p + n - 1);
            check_code(KOFN_LEFT, s, m * n * q + m * n - n);
            strcat(s, ",sub=vum");
            check_code(KOFN_MATMUL, s, m * n * p + m * n - m);
            check_code(KOFN_LEFT, s, m * n * q + m - 1);
            snprintf(s, sizeof s, "polydot:m=2,n=3,p=%zu,q=%zu", p, q);
            check_code(KOFN_LEFT, s, m * n * q + m - 1);
            snprintf(s, sizeof s, "polynomial:m=2,p=%zu,q=%zu,basis=circle", p,
                     q);
            check_code(KOFN_MATMUL, s, m * p);
            check_code(KOFN_LEFT, s, m * q + m - 1);
        }
}

static void polynomial_and_matdot(void **state)
{
    char s[80];

    (void)state;
    for (size_t m = 1; m <= 4; m++)
        for (size_t p = 1; p <= 4; p++) {
            snprintf(s, sizeof s, "polynomial:m=%zu,p=%zu,basis=circle", m, p);
            check_code(KOFN_MATMUL, s, m * p);
            check_code(KOFN_LEFT, s, m * p + m - 1);
        }
    for (size_t n = 1; n <= 8; n++) {
        snprintf(s, sizeof s, "matdot:n=%zu", n);
        check_code(KOFN_MATMUL, s, 2 * n - 1);
        check_code(KOFN_LEFT, s, n);
    }
    for (size_t m = 1; m <= 4; m++)
        for (size_t n = 1; n <= 4; n++) {
            snprintf(s, sizeof s, "gpd:m=%zu,n=%zu", m, n);
            check_code(KOFN_MATVEC, s, m * n + n - 1);
            strcat(s, ",sub=vum");
            check_code(KOFN_MATVEC, s, 2 * m * n - m);
        }
}

static void few_are_lucky(void **state)
{
    (void)state;
    print_message("    of %zu sets of K-1, %zu would do\n", tried, lucky);
    assert_true(tried && lucky * 20 <= tried);
}

/* Complex answers are two equations each. */
static void other_bases(void **state)
{
    static const char *const bases[] = {"complex", "chebyshev", "monomial",
                                        "vandermonde"};
    static const struct {
        kofn_op op;
        const char *spec;
        size_t K;
        bool chebyshev;
    } codes[] = {
        {KOFN_MATMUL, "polynomial:m=2,p=3", 6, true},
        {KOFN_MATMUL, "matdot:n=4", 7, true},
        {KOFN_MATMUL, "polydot:m=2,n=2,p=1", 6, false},
        {KOFN_MATMUL, "gpd:m=2,n=2,p=2", 9, false},
        {KOFN_MATMUL, "gpd:m=2,n=2,p=1,sub=vum", 6, false},
        {KOFN_MATVEC, "gpd:m=3,n=2", 7, false},
        {KOFN_MATVEC, "polynomial:m=4", 4, true},
        {KOFN_LEFT, "matdot:n=5", 5, true},
        {KOFN_LEFT, "polynomial:m=3,p=1", 5, true},
        {KOFN_LEFT, "polynomial:m=2,p=2", 5, false},
        {KOFN_LEFT, "gpd:m=2,n=2,p=1", 6, false},
    };

    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (size_t b = 0; b < 4; b++) {
            bool left = codes[c].op == KOFN_LEFT;
            size_t need = b ? codes[c].K : (codes[c].K + 1) / 2;
            kofn_plan *p;
            char s[80];

            snprintf(s, sizeof s, "%s,basis=%s", codes[c].spec, bases[b]);
            if ((b == 1 && !codes[c].chebyshev) || (b == 0 && left)) {
                assert_status(KOFN_INVAL,
                              plan_of(&p, codes[c].op, s, 12, KOFN_F64, 1));
                assert_non_null(strstr(kofn_errmsg(), "basis=circle"));
                continue;
            }
            check_code(codes[c].op, s, need);
        }
}

/* A coefficient of B near 0 would spoil a seat for a whole column of B. */
static void check_reals(product_case *f)
{
    for (size_t i = f->L->enough; f->L->cut[1].cols > 1 && i < f->seats; i++) {
        const kf_seat *s;

        assert_ok(kf_code_seat(f->code, i, &s));
        assert_int_equal(s->E1->n, f->L->cut[1].cols);
        for (size_t e = 0; e < s->E1->n; e++)
            assert_true(fabs(s->E1->val[e]) > 0.5 && fabs(s->E1->val[e]) < 1);
    }
}

/* Systematic and open-ended; rows of joining workers count like any. */
static void khatri_rao(void **state)
{
    static const size_t sizes[][2] = {{1, 1}, {1, 3}, {3, 1},
                                      {2, 2}, {3, 4}, {4, 2}};

    (void)state;
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++)
        for (int type = 0; type < 2; type++) {
            size_t m = sizes[c][0], p = sizes[c][1], K = m * p;
            kf_rng r = kf_rng_stream(c, KF_FOR_SAMPLE, 2, 0);
            uint32_t set[128];
            char s[80];
            product_case f;

            snprintf(s, sizeof s, "polynomial:m=%zu,p=%zu", m, p);
            case_up(&f, KOFN_MATMUL, s, K + 2, K + 9, (sides){2, 3, 2},
                    type ? KOFN_F32 : KOFN_F64, 1);
            assert_int_equal(f.L->enough, K);
            assert_true(f.L->max_seats == SIZE_MAX && f.L->components == 4);
            for (int t = 0; t < 20; t++) {
                random_set(&r, set, K, K + 9);
                try_enough(&f, set, K);
            }
            first_set(set, K); /* nothing to solve */
            try_enough(&f, set, K);
            check_reals(&f);
            case_down(&f);
        }
}

/* ---- more workers than angles -------------------------------------------- */

/* All sets of n seats of a code with `angles` points. Any `threshold` seats
 * decode, and so does every set with K different points. With fewer points the
 * sum of a MatDot code, a mean over the circle, may still be determined: two
 * opposite points suffice for n = 2. */
static void every_subset(const char *spec, size_t n, size_t K, size_t angles)
{
    size_t sure = n;
    bool tight = false, special = false;
    product_case f;

    case_up(&f, KOFN_MATMUL, spec, n, n, (sides){2, 2, 2}, KOFN_F64, 1);
    assert_int_equal(f.L->enough, K);
    for (uint32_t bits = 0; bits<1u << n; bits += EVERY> 1 ? 13 : 1) {
        size_t count = 0, points = 0;
        uint32_t set[16];
        uint32_t seen = 0;
        kofn_decoder *d;

        for (uint32_t i = 0; i < n; i++)
            if (bits >> i & 1) {
                set[count++] = i;
                seen |= 1u << i % angles;
            }
        for (; seen; seen &= seen - 1)
            points++;
        if (points < K && (count < K || !determined(f.code, set, count))) {
            assert_status(KOFN_TOOFEW,
                          kf_decoder_new(&d, f.code, set, count, false));
            assert_true(count < f.L->threshold);
            tight |= count == f.L->threshold - 1;
            continue;
        }
        special |= points < K;
        assert_ok(kf_decoder_new(&d, f.code, set, count, false));
        sure = count < sure ? count : sure;
        assert_at_most(error_of(&f, d), 1e-12);
        kf_decoder_free(d);
    }
    assert_true(EVERY > 1 || (sure == K && (tight || special)));
    assert_true(f.L->W || !special);
    case_down(&f);
}

static void replicated_angles(void **state)
{
    static const size_t codes[][3] = {{8, 3, 4},  {9, 3, 4}, {10, 5, 6},
                                      {11, 5, 7}, {7, 3, 3}, {12, 1, 5},
                                      {11, 3, 9}, {9, 5, 9}};

    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        size_t n = codes[c][0], K = codes[c][1], angles = codes[c][2];
        char s[80];

        snprintf(s, sizeof s, "matdot:n=%zu,angles=%zu", (K + 1) / 2, angles);
        every_subset(s, n, K, angles);
        snprintf(s, sizeof s, "polynomial:m=%zu,p=1,basis=circle,angles=%zu", K,
                 angles);
        every_subset(s, n, K, angles);
    }
}

/* One point per worker up to ten spare ones, then K + 6; K is that of the
 * product that needs more. */
static void angles_by_themselves(void **state)
{
    static const struct {
        const char *spec;
        size_t n, angles, threshold;
    } codes[] = {
        {"matdot:n=5", 19, 19, 9},
        {"matdot:n=5", 20, 15, 20 - (15 - 9 + 1) + 1},
        {"matdot:n=5", 9, 9, 9},
        {"matdot:n=30", 200, 65, 200 - 3 * 7 + 1},
        {"matdot:n=30,angles=66", 200, 66, 200 - 3 * 8 + 1},
        {"gpd:m=2,n=2,p=2", 50, 16, 50 - 3 * 8 + 1}, /* B A: 10 answers */
    };

    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        kofn_plan *p;
        char says[40];

        assert_ok(
            plan_of(&p, KOFN_MATMUL, codes[c].spec, codes[c].n, KOFN_F64, 1));
        snprintf(says, sizeof says, "angles=%zu", codes[c].angles);
        assert_non_null(strstr(p->spec, says));
        assert_int_equal(p->layout.threshold, codes[c].threshold);
        kofn_plan_free(p);
    }
}

/* ---- the product code ---------------------------------------------------- */

/* Completes columns with m known entries and rows with p, in turn, until
 * nothing changes. Bit i + m2 k is seat (i, k). */
static bool peels(uint32_t known, size_t m, size_t m2, size_t p, size_t p2)
{
    uint32_t before;

    do {
        before = known;
        for (size_t k = 0; k < p2; k++) {
            uint32_t column = ((1u << m2) - 1) << m2 * k;

            if ((size_t)__builtin_popcount(known & column) >= m)
                known |= column;
        }
        for (size_t i = 0; i < m2; i++) {
            uint32_t row = 0;

            for (size_t k = 0; k < p2; k++)
                row |= 1u << (i + m2 * k);
            if ((size_t)__builtin_popcount(known & row) >= p)
                known |= row;
        }
    } while (known != before);
    return known == (1u << m2 * p2) - 1;
}

/* Tries every set of seats of a small grid. */
static void every_pattern(size_t m, size_t m2, size_t p, size_t p2)
{
    size_t n = m2 * p2, lost = (m2 - m + 1) * (p2 - p + 1);
    bool tight = false, more = false;
    char s[80];
    product_case f;

    snprintf(s, sizeof s, "product:m=%zu,m2=%zu,p=%zu,p2=%zu", m, m2, p, p2);
    case_up(&f, KOFN_MATMUL, s, n, n, (sides){2, 2, 2}, KOFN_F64, 1);
    assert_int_equal(f.L->enough, m * p);
    assert_int_equal(f.L->threshold, n - lost + 1);
    assert_int_equal(f.L->max_seats, n);
    for (uint32_t bits = 0; bits<1u << n; bits += EVERY> 1 ? 61 : 1) {
        bool easy = peels(bits, m, m2, p, p2);
        size_t count = 0;
        uint32_t set[32];
        kofn_status st;
        kofn_decoder *d;

        for (uint32_t i = 0; i < n; i++)
            if (bits >> i & 1)
                set[count++] = i;
        st = kf_decoder_new(&d, f.code, set, count, false);
        assert_true(easy || n - count >= lost);
        if (st == KOFN_OK) {
            assert_true(determined(f.code, set, count));
            assert_at_most(error_of(&f, d), d->predicted);
            assert_at_most(d->predicted, 1e-11);
            more |= !easy;
        } else {
            assert_int_equal(st, KOFN_TOOFEW);
            assert_false(easy);
            assert_true(count < m * p || !determined(f.code, set, count));
            tight |= n - count == lost;
        }
        kf_decoder_free(d);
    }
    assert_true(EVERY > 1 || tight);
    print_message("    %s: %s\n", s,
                  more ? "also sets that do not peel" : "the sets that peel");
    case_down(&f);
}

static void product_codes(void **state)
{
    (void)state;
    every_pattern(2, 3, 2, 3);
    every_pattern(1, 2, 2, 4);
    every_pattern(2, 3, 3, 4);
    every_pattern(2, 4, 2, 3);
    every_pattern(2, 4, 1, 3);
    every_pattern(3, 4, 1, 2);
    every_pattern(4, 5, 1, 1);
}

/* ---- parities ------------------------------------------------------------ */

/* Parities are computed once, counted, and dropped with their decoder. */
static void cached_parities(void **state)
{
    uint32_t set[12];
    const kofn_decoder *d, *same;
    const double *H, *again;
    size_t q, r;
    kofn_plan *p;
    kf_code *code;
    kf_cache *cache;
    double *G;

    (void)state;
    assert_ok(plan_of(&p, KOFN_MATMUL, "gpd:m=2,n=2,p=2", 12, KOFN_F64, 1));
    assert_ok(kf_code_new(&code, p));
    assert_ok(kf_cache_new(&cache, code, 1 << 20));
    first_set(set, 12);
    assert_ok(kf_cache_get(cache, set, 12, false, &d));
    assert_ok(kf_cache_parity(cache, d, &H, &q));
    assert_int_equal(q, 3);
    assert_ok(kf_cache_get(cache, set, 12, false, &same));
    assert_ok(kf_cache_parity(cache, same, &again, &r));
    assert_true(same == d && again == H && r == q && d->H == H && d->q == q);
    G = dense_rows(code, set, 12);
    for (size_t i = 0; i < q; i++)
        for (size_t s = 0; s < 9; s++) {
            double sum = 0;

            for (size_t j = 0; j < 12; j++)
                sum += H[i * 12 + j] * G[j * 9 + s];
            assert_at_most(fabs(sum), 1e-13);
        }
    kf_free(G);
    kf_cache_free(cache);
    kf_code_free(code);
    kofn_plan_free(p);
}

TEST_FILE(products_test)
{
    const struct CMUnitTest tests[] = {
        TEST(every_grid,
             "gpd: every small grid decodes from any K answers (LAPACK)"),
        TEST(inputs_cut_apart,
             "gpd: left products work with another cut of the input"),
        TEST(polynomial_and_matdot, "polynomial, matdot: any K answers decode"),
        TEST(few_are_lucky,
             "products: fewer than K answers decode by rare chance only"),
        TEST(other_bases,
             "products: other bases decode (complex: two equations each)"),
        TEST(khatri_rao,
             "khatri-rao: systematic and open codes decode from any K"),
        TEST(replicated_angles,
             "products: repeated angles decode from K different ones"),
        TEST(angles_by_themselves,
             "products: the number of angles is chosen as documented"),
        TEST(product_codes,
             "product code: every pattern decodes if and only if it peels"),
        TEST(cached_parities,
             "products: parities are computed once per decoder"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
