/* products_test.c -- coded products of two matrices: what is enough, what
 * comes out, and the numbers of the literature.
 *
 * Facts are those of the companion table of the specification (facts.json),
 * quoted by their names.
 */
#include "product_rig.h"

#include <lapacke.h>

/* ---- what W and G say, by LAPACK ----------------------------------------- */

static double *dense_rows(kf_code *code, const uint32_t *set, size_t n)
{
    const kofn_layout *L = &code->plan->layout;
    double *G = room(n * L->lanes * L->symbols, sizeof *G);

    for (size_t i = 0; i < n; i++) {
        const kf_seat *s;

        assert_ok(kf_code_seat(code, set[i], &s));
        for (size_t l = 0; l < L->lanes; l++)
            for (size_t e = 0; e < s->G[l].n; e++)
                G[(i * L->lanes + l) * L->symbols + s->G[l].col[e]] =
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
                                    (lapack_int)cols), 0);
    while (rank < n && sv[rank] > 1e-10 * sv[0])
        rank++;
    kf_free(A);
    kf_free(sv);
    return rank;
}

/* Whether these seats determine every want, by the rank of G and of G with W
 * below it. */
static bool determined(kf_code *code, const uint32_t *set, size_t n)
{
    const kofn_layout *L = &code->plan->layout;
    size_t rows = n * L->lanes, cols = L->symbols;
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
 * roots of most powers is 0, and less than all coefficients is asked for. */
static size_t tried, lucky;

/* Any `enough` of a few sets decode to the right thing, one seat fewer are
 * refused, and are too few but for rare chance.  Where the noise is too large
 * for ranks to be told, no error larger than predicted has to do. */
static void try_enough(fleet *f, const uint32_t *set, size_t k)
{
    uint32_t fewer[128];
    kf_decoder *d;
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
        fleet f;

        if (EVERY > 1 && turn++ % 12)
            continue;
        fleet_up(&f, op, spec, n, n, s, type ? KOFN_F32 : KOFN_F64, 3);
        assert_int_equal(f.L->enough, K);
        if (strstr(spec, "complex")) /* half decode, but not well */
            assert_int_equal(f.L->threshold, n < 2 * K - 1 ? n : f.L->threshold);
        else
            assert_int_equal(f.L->threshold, K);
        assert_int_equal(f.L->max_seats, n);
        for (int t = 0; t < (K > 50 ? 2 : 5); t++) {
            random_set(&r, set, K, n);
            try_enough(&f, set, K);
        }
        fleet_down(&f);
    }
}

/* SPEC-B E.2. */
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

/* The other bases.  Complex answers are two equations each. */
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
                assert_status(KOFN_INVAL, plan_of(&p, codes[c].op, s, 12,
                                                  KOFN_F64, 1));
                assert_non_null(strstr(kofn_errmsg(), "basis=circle"));
                continue;
            }
            check_code(codes[c].op, s, need);
        }
}

/* A coefficient of B near 0 would spoil a seat for a whole column of B. */
static void check_reals(fleet *f)
{
    for (size_t i = f->L->enough; f->L->cut[1].cols > 1 && i < f->seats; i++) {
        const kf_seat *s;

        assert_ok(kf_code_seat(f->code, i, &s));
        assert_int_equal(s->E1->n, f->L->cut[1].cols);
        for (size_t e = 0; e < s->E1->n; e++)
            assert_true(fabs(s->E1->val[e]) > 0.5 &&
                        fabs(s->E1->val[e]) < 1);
    }
}

/* Khatri-Rao: systematic, and open-ended; rows that joiners would have count
 * like any. */
static void khatri_rao(void **state)
{
    static const size_t sizes[][2] = {{1, 1}, {1, 3}, {3, 1}, {2, 2}, {3, 4},
                                      {4, 2}};

    (void)state;
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++)
        for (int type = 0; type < 2; type++) {
            size_t m = sizes[c][0], p = sizes[c][1], K = m * p;
            kf_rng r = kf_rng_stream(c, KF_FOR_SAMPLE, 2, 0);
            uint32_t set[128];
            char s[80];
            fleet f;

            snprintf(s, sizeof s, "polynomial:m=%zu,p=%zu", m, p);
            fleet_up(&f, KOFN_MATMUL, s, K + 2, K + 9, (sides){2, 3, 2},
                     type ? KOFN_F32 : KOFN_F64, 1);
            assert_int_equal(f.L->enough, K);
            assert_true(f.L->max_seats == SIZE_MAX && f.L->lanes == 4);
            for (int t = 0; t < 20; t++) {
                random_set(&r, set, K, K + 9);
                try_enough(&f, set, K);
            }
            first_set(set, K); /* nothing to solve */
            try_enough(&f, set, K);
            check_reals(&f);
            fleet_down(&f);
        }
}

/* ---- more workers than angles -------------------------------------------- */

/* All sets of n seats of a code with `angles` points: as many as threshold
 * says decode whatever they are, and every set with K different points does.
 * With fewer the sum of a MatDot code, a mean over the circle, can still be
 * had: two opposite points do for n = 2. */
static void every_subset(const char *spec, size_t n, size_t K, size_t angles)
{
    size_t sure = n;
    bool tight = false, special = false;
    fleet f;

    fleet_up(&f, KOFN_MATMUL, spec, n, n, (sides){2, 2, 2}, KOFN_F64, 1);
    assert_int_equal(f.L->enough, K);
    for (uint32_t bits = 0; bits < 1u << n; bits += EVERY > 1 ? 13 : 1) {
        size_t count = 0, points = 0;
        uint32_t set[16];
        uint32_t seen = 0;
        kf_decoder *d;

        for (uint32_t i = 0; i < n; i++)
            if (bits >> i & 1) {
                set[count++] = i;
                seen |= 1u << i % angles;
            }
        for (; seen; seen &= seen - 1)
            points++;
        if (points < K &&
            (count < K || !determined(f.code, set, count))) {
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
    fleet_down(&f);
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
        snprintf(s, sizeof s, "polynomial:m=%zu,p=1,basis=circle,angles=%zu",
                 K, angles);
        every_subset(s, n, K, angles);
    }
}

/* One point a worker up to ten spare ones, then K + 6. */
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
        {"gpd:m=2,n=2,p=2", 50, 15, 50 - 3 * 7 + 1},
    };

    (void)state;
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        kofn_plan *p;
        char says[40];

        assert_ok(plan_of(&p, KOFN_MATMUL, codes[c].spec, codes[c].n, KOFN_F64,
                          1));
        snprintf(says, sizeof says, "angles=%zu", codes[c].angles);
        assert_non_null(strstr(p->spec, says));
        assert_int_equal(p->layout.threshold, codes[c].threshold);
        kofn_plan_free(p);
    }
}

/* ---- the product code ---------------------------------------------------- */

/* Completing columns with m known entries and rows with p, by turns, until
 * nothing moves: bit i + m2 k is seat (i, k). */
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

/* Every set of seats of a small grid. */
static void every_pattern(size_t m, size_t m2, size_t p, size_t p2)
{
    size_t n = m2 * p2, lost = (m2 - m + 1) * (p2 - p + 1);
    bool tight = false, more = false;
    char s[80];
    fleet f;

    snprintf(s, sizeof s, "product:m=%zu,m2=%zu,p=%zu,p2=%zu", m, m2, p, p2);
    fleet_up(&f, KOFN_MATMUL, s, n, n, (sides){2, 2, 2}, KOFN_F64, 1);
    assert_int_equal(f.L->enough, m * p);
    assert_int_equal(f.L->threshold, n - lost + 1);
    assert_int_equal(f.L->max_seats, n);
    for (uint32_t bits = 0; bits < 1u << n; bits += EVERY > 1 ? 61 : 1) {
        bool easy = peels(bits, m, m2, p, p2);
        size_t count = 0;
        uint32_t set[32];
        kofn_status st;
        kf_decoder *d;

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
    print_message("    %s: %s\n", s, more ? "also sets that do not peel"
                                          : "the sets that peel");
    fleet_down(&f);
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

/* ---- numbers of the literature ------------------------------------------- */

/* Row of a seat over `n` parts, dense. */
static void spread_row(const kf_row *row, double *out, size_t n)
{
    memset(out, 0, n * sizeof *out);
    for (size_t e = 0; e < row->n; e++)
        out[row->col[e]] = row->val[e];
}

/* Exponents are read off the powers of 2, the second of the points 1..N. */
typedef struct table {
    const char *id;
    kofn_op op;
    const char *spec;
    size_t K, m, n, p;
    size_t ea[4], ein[4], wanted[4]; /* row by row of their grids */
} table;

static const table tables[] = {
    {"E.gpd.2.2.1 u=v^n", KOFN_MATMUL, "gpd:m=2,n=2,p=1", 5, 2, 2, 1,
     {0, 1, 2, 3}, {1, 0}, {1, 3}},
    {"E.gpd.2.2.1 u=v^n left", KOFN_LEFT, "gpd:m=2,n=2,p=1", 6, 2, 2, 1,
     {0, 1, 2, 3}, {2, 0}, {2, 3}},
    {"E.gpd.2.2.1 v=u^m", KOFN_MATMUL, "gpd:m=2,n=2,p=1,sub=vum", 6, 2, 2, 1,
     {0, 2, 1, 3}, {2, 0}, {2, 3}},
    {"E.gpd.2.2.1 v=u^m left", KOFN_LEFT, "gpd:m=2,n=2,p=1,sub=vum", 5, 2, 2,
     1, {0, 2, 1, 3}, {1, 0}, {1, 3}},
    {"E.gpd.2.2.1 polydot_K", KOFN_MATMUL, "polydot:m=2,n=2,p=1", 6, 2, 2, 1,
     {0, 2, 1, 3}, {2, 0}, {2, 3}},
    {"E.gpd.2.2.2 u=v^n", KOFN_MATMUL, "gpd:m=2,n=2,p=2", 9, 2, 2, 2,
     {0, 1, 2, 3}, {1, 5, 0, 4}, {1, 5, 3, 7}},
    {"E.gpd.2.2.2 u=v^n left", KOFN_LEFT, "gpd:m=2,n=2,p=2", 10, 2, 2, 2,
     {0, 1, 2, 3}, {2, 0, 6, 4}, {2, 3, 6, 7}},
    {"E.gpd.2.2.2 v=u^m", KOFN_MATMUL, "gpd:m=2,n=2,p=2,sub=vum", 10, 2, 2, 2,
     {0, 2, 1, 3}, {2, 6, 0, 4}, {2, 6, 3, 7}},
    {"E.gpd.2.2.2 v=u^m left", KOFN_LEFT, "gpd:m=2,n=2,p=2,sub=vum", 9, 2, 2,
     2, {0, 2, 1, 3}, {1, 0, 5, 4}, {1, 3, 5, 7}},
    {"E.gpd.2.2.2 polydot_K, SPEC-B E.12A", KOFN_MATMUL,
     "polydot:m=2,n=2,p=2", 12, 2, 2, 2, {0, 2, 1, 3}, {2, 8, 0, 6},
     {2, 8, 3, 9}},
    {"ent.x2y2z2", KOFN_MATMUL, "gpd:m=2,n=2,p=2", 9, 2, 2, 2, {0, 1, 2, 3},
     {1, 5, 0, 4}, {1, 5, 3, 7}},
    {"ent.x1y1z3", KOFN_MATMUL, "gpd:m=1,n=3,p=1", 5, 1, 3, 1, {0, 1, 2},
     {2, 1, 0}, {2}},
    {"E.K_only matdot(1,4,1), SPEC-B E.12A", KOFN_MATMUL, "matdot:n=4", 7, 1,
     4, 1, {0, 1, 2, 3}, {3, 2, 1, 0}, {3}},
    {"E.K_only polynomial(4,1,4)", KOFN_MATMUL, "polynomial:m=4,p=4", 16, 4,
     1, 4, {0, 1, 2, 3}, {0, 4, 8, 12}, {0}},
};

/* Part (a, b) of a grid of so many rows against the table, row by row. */
static void check_exponents(const kf_row *row, size_t rows, size_t cols,
                            const size_t *want)
{
    double value[16];

    spread_row(row, value, rows * cols);
    for (size_t a = 0; a < rows; a++)
        for (size_t b = 0; b < cols; b++)
            assert_true(value[a + rows * b] ==
                        ldexp(1, (int)want[a * cols + b]));
}

static void exponents_of_the_papers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const table *t = &tables[i];
        bool left = t->op == KOFN_LEFT;
        size_t r = left ? t->p : t->m, c = left ? t->n : t->p;
        kofn_plan *plan;
        kf_code *code;
        const kf_seat *seat;
        char s[80];

        snprintf(s, sizeof s, "%s,basis=vandermonde", t->spec);
        assert_ok(plan_of(&plan, t->op, s, t->K + 3, KOFN_F64, 1));
        assert_ok(kf_code_new(&code, plan));
        assert_ok(kf_code_seat(code, 1, &seat));
        assert_int_equal(plan->layout.enough, t->K);
        check_exponents(seat->E0, t->m, t->n, t->ea);
        check_exponents(seat->E1, left ? t->p : t->n, left ? t->m : t->p,
                        t->ein);
        for (size_t a = 0; plan->layout.W && a < r; a++)
            for (size_t b = 0; b < c; b++)
                for (size_t d = 0; d < t->K; d++)
                    assert_true(plan->layout.W[(a + r * b) * t->K + d] ==
                                (d == t->wanted[a * c + b]));
        kf_code_free(code);
        kofn_plan_free(plan);
    }
}

/* [E.fixture.gpd221.*]: nodes at cos((2i+1) pi/14); here they come in another
 * order. */
static const double fixture_weights[2][5] = {
    {1.0257168633, -2.8739947855, 4.6659012248, -2.304764871, -0.5128584316},
    {-5.4485475737, 15.266491052, -18.6636048991, 12.2427752679,
     -3.3971138471}};
static const double fixture_outputs[7][2] = {
    {247.9372648079, 400.8609587536}, {147.7799329234, 255.103390286},
    {48.9257001746, 105.5037665418},  {11.0, 39.0},
    {4.9228940432, 20.2557951775},    {-4.2685449805, 2.276179619},
    {-14.4222469687, -13.6250903779}};

static size_t fixture_node(const kf_seat *s)
{
    double row[4], x;

    spread_row(s->E0, row, 4);
    x = row[2]; /* part (0, 1): the first power */
    for (size_t i = 0; i < 7; i++)
        if (fabs(cos((2 * (double)i + 1) * acos(-1) / 14) - x) < 1e-12)
            return i;
    fail_msg("no node at %g", x);
    return 0;
}

/* A = 1..16 row by row in blocks of two, x = 1..4 in two. */
static void fixture_answer(const kf_seat *s, double *y)
{
    double a[4], b[2];

    spread_row(s->E0, a, 4);
    spread_row(s->E1, b, 2);
    for (size_t r = 0; r < 2; r++) {
        y[r] = 0;
        for (size_t c = 0; c < 2; c++) {
            double block = 0, message = 0;

            for (size_t j = 0; j < 4; j++)
                block += a[j] * (double)(4 * (j % 2 * 2 + r) + j / 2 * 2 + c +
                                         1);
            for (size_t j = 0; j < 2; j++)
                message += b[j] * (double)(2 * j + c + 1);
            y[r] += block * message;
        }
    }
}

static void worked_example(void **state)
{
    static const double Ax[] = {30, 70, 110, 150};
    uint32_t set[5];
    size_t node[5], count = 0;
    double y[5][2];
    kofn_plan *plan;
    kf_code *code;
    kf_decoder *d;

    (void)state;
    assert_ok(plan_of(&plan, KOFN_MATVEC, "gpd:m=2,n=2,basis=monomial", 7,
                      KOFN_F64, 1));
    assert_ok(kf_code_new(&code, plan));
    for (uint32_t i = 0; i < 7; i++) {
        const kf_seat *s;
        double out[2];
        size_t at;

        assert_ok(kf_code_seat(code, i, &s));
        at = fixture_node(s);
        fixture_answer(s, out);
        for (size_t r = 0; r < 2; r++)
            assert_at_most(fabs(out[r] - fixture_outputs[at][r]), 1e-9);
        if (at >= 5)
            continue;
        memcpy(y[count], out, sizeof out);
        node[count] = at;
        set[count++] = i;
    }
    assert_int_equal(count, 5);
    assert_ok(kf_decoder_new(&d, code, set, 5, false));
    for (size_t w = 0; w < 2; w++) {
        double sum[2] = {0, 0};

        for (size_t j = 0; j < 5; j++) {
            assert_at_most(fabs(d->D[w * 5 + j] - fixture_weights[w][node[j]]),
                           1e-9);
            sum[0] += d->D[w * 5 + j] * y[j][0];
            sum[1] += d->D[w * 5 + j] * y[j][1];
        }
        assert_at_most(fabs(sum[0] - Ax[2 * w]), 1e-9);
        assert_at_most(fabs(sum[1] - Ax[2 * w + 1]), 1e-9);
    }
    kf_decoder_free(d);
    kf_code_free(code);
    kofn_plan_free(plan);
}

/* ---- plans --------------------------------------------------------------- */

static const struct {
    kofn_op op;
    const char *spec;
    size_t n;
    const char *says[3];
} refusals[] = {
    {KOFN_MATMUL, "gpd:m=4,n=4,p=4", 50, {"67 answers", "50 workers",
                                          "m = 3, n = 4 and p = 3"}},
    {KOFN_MATMUL, "polynomial:m=40,p=4", 50, {"160", "m = 12 and p = 4", 0}},
    {KOFN_MATMUL, "polynomial:m=2,p=300", 50, {"600", "m = 2 and p = 25", 0}},
    {KOFN_MATMUL, "matdot:n=40", 50, {"79", "n = 25", 0}},
    {KOFN_MATMUL, "matdot:n=40,basis=complex", 39, {"40 answers", "n = 39",
                                                    0}},
    {KOFN_MATVEC, "gpd:p=2", 50, {"p = 2", "p = 1", 0}},
    {KOFN_MATMUL, "matdot:n=5,angles=8", 20, {"angles = 8", "9..20", 0}},
    {KOFN_MATMUL, "matdot:n=5,angles=21", 20, {"angles = 21", "9..20", 0}},
    {KOFN_MATMUL, "matdot:n=5,angles=9,basis=monomial", 20,
     {"angles = 9", "basis=circle", 0}},
    {KOFN_LEFT, "polynomial:basis=quaternion", 20, {"left", "basis=circle",
                                                    0}},
    {KOFN_LEFT, "matdot:basis=complex", 20, {"left", "basis=circle", 0}},
    {KOFN_MATMUL, "product:m2=3,p2=4", 50, {"12", "50 workers", "10 x 5"}},
    {KOFN_MATMUL, "product:m2=60", 50, {"60", "50 workers", "10 x 5"}},
    {KOFN_MATMUL, "product:m=4,m2=3", 12, {"m = 4", "m <= 3", 0}},
    {KOFN_MATMUL, "product:p=5,p2=4", 12, {"p = 5", "p <= 4", 0}},
    {KOFN_MATVEC, "product:p2=4", 12, {"p2 = 4", "p2 = 1", 0}},
};

static void refusals_name_what_fits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        kofn_plan *p;

        assert_status(KOFN_INVAL, plan_of(&p, refusals[i].op, refusals[i].spec,
                                          refusals[i].n, KOFN_F64, 1));
        assert_null(p);
        for (size_t s = 0; s < 3 && refusals[i].says[s]; s++)
            if (!strstr(kofn_errmsg(), refusals[i].says[s]))
                fail_msg("%s: \"%s\" does not say %s", refusals[i].spec,
                         kofn_errmsg(), refusals[i].says[s]);
    }
}

/* Every scheme takes any number of workers, and cuts nothing a vector does
 * not have. */
static void defaults_fit(void **state)
{
    static const char *const names[] = {"polynomial", "polynomial:basis=circle",
                                        "matdot", "polydot", "gpd",
                                        "gpd:sub=vum", "gpd:basis=complex",
                                        "product"};
    static const kofn_op ops[] = {KOFN_MATVEC, KOFN_MATMUL, KOFN_LEFT};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t n = 1; n <= 300; n += 1 + n / 8)
            for (size_t o = 0; o < 3; o++) {
                kofn_status st;
                kofn_plan *p, *again;

                st = plan_of(&p, ops[o], names[i], n, KOFN_F64, 1);
                if (ops[o] == KOFN_LEFT && (i == 6 || i == 7)) {
                    assert_true(st == KOFN_INVAL || st == KOFN_UNSUITED);
                    continue;
                }
                assert_int_equal(st, KOFN_OK);
                assert_true(p->layout.enough <= n);
                if (n > 3 && n % 2 == 0)
                    assert_true(p->layout.enough < n);
                assert_true(i == 0 || i == 7 || p->layout.enough <= 100);
                if (ops[o] == KOFN_MATVEC)
                    assert_int_equal(p->layout.cut[1].cols, 1);
                assert_ok(plan_of(&again, ops[o], p->spec, n, KOFN_F64, 1));
                assert_string_equal(p->spec, again->spec);
                kofn_plan_free(p);
                kofn_plan_free(again);
            }
}

/* The blocks of a plan serve left products as they are. */
static void left_products_share_blocks(void **state)
{
    static const char *const specs[] = {"gpd:m=2,n=3,p=2", "matdot:n=4",
                                        "gpd:m=3,n=2,p=1,sub=vum",
                                        "polydot:m=2,n=2,p=1",
                                        "polynomial:m=3,p=2,basis=circle",
                                        "matdot:n=4,basis=chebyshev"};

    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        kofn_plan *p;
        kf_code *code, *left;

        assert_ok(plan_of(&p, KOFN_MATMUL, specs[i], 22, KOFN_F64, 1));
        assert_ok(kofn_plan_serve_left(p, 30));
        assert_ok(kf_code_new(&code, p));
        assert_ok(kf_code_new(&left, p->left));
        for (size_t s = 0; s < 22; s++) {
            const kf_seat *a, *b;

            assert_ok(kf_code_seat(code, s, &a));
            assert_ok(kf_code_seat(left, s, &b));
            assert_int_equal(a->E0->n, b->E0->n);
            assert_memory_equal(a->E0->val, b->E0->val,
                                a->E0->n * sizeof(double));
            assert_memory_equal(a->E0->col, b->E0->col,
                                a->E0->n * sizeof *a->E0->col);
        }
        kf_code_free(code);
        kf_code_free(left);
        kofn_plan_free(p);
    }
}

static void shares(void **state)
{
    static const struct {
        kofn_op op;
        const char *spec;
        double storage, load, upload, answer;
        size_t threshold;
    } cases[] = {
        {KOFN_MATMUL, "gpd:m=2,n=3,p=4", 6, 24, 12, 8, 26},
        {KOFN_LEFT, "gpd:m=2,n=3,p=4", 6, 24, 8, 12, 27},
        {KOFN_MATMUL, "matdot:n=5", 5, 5, 5, 1, 30 - 3},
        {KOFN_MATMUL, "polynomial:m=4,p=5", 4, 20, 5, 20, 20},
        {KOFN_MATVEC, "polynomial:m=4", 4, 4, 1, 4, 4},
        {KOFN_MATMUL, "gpd:m=2,n=3,p=4,basis=complex", 1.5, 6, 6, 4, 26},
        {KOFN_MATVEC, "polynomial:m=4,basis=complex", 2, 2, 1, 2, 4},
        {KOFN_MATMUL, "product:m=4,m2=6,p=3,p2=5", 4, 12, 3, 12, 22},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kofn_plan_info info;
        kofn_plan *p;

        assert_ok(plan_of(&p, cases[i].op, cases[i].spec, 30, KOFN_F64, 1));
        assert_ok(kofn_plan_describe(p, true, &info));
        assert_at_most(fabs(info.storage * cases[i].storage - 1), 1e-12);
        assert_at_most(fabs(info.load * cases[i].load - 1), 1e-12);
        assert_at_most(fabs(info.upload * cases[i].upload - 1), 1e-12);
        assert_at_most(fabs(info.answer * cases[i].answer - 1), 1e-12);
        if (strstr(p->spec, "angles=15"))
            assert_int_equal(info.threshold, 30 - 2 * 7 + 1);
        else
            assert_int_equal(info.threshold, cases[i].threshold);
        assert_true(info.noise50 > 0 && info.noise50 < 1e6);
        assert_true(info.noise99 >= info.noise50 && info.noise99 < 1e9);
        kofn_plan_free(p);
    }
}

/* What is plainly there is handed out when not everything can be; a code
 * without such seats says that they are too few. */
static void partial_answers(void **state)
{
    static const uint32_t set[] = {0, 2, 5, 7, 8};
    kofn_plan *p;
    kf_code *code;
    kf_decoder *d;

    (void)state;
    assert_ok(plan_of(&p, KOFN_MATMUL, "polynomial:m=3,p=2", 9, KOFN_F64, 1));
    assert_ok(kf_code_new(&code, p));
    assert_ok(kf_decoder_new(&d, code, set, 5, true));
    assert_false(d->whole);
    for (size_t w = 0; w < d->wants; w++) { /* product (i, k): seat i + 3 k */
        size_t seat = w % 12 / 4 + 3 * (w / 12);
        int32_t at = seat == 0 ? 0 : seat == 2 ? 1 : seat == 5 ? 2 : -1;

        assert_int_equal(d->copy[w],
                         at < 0 ? KF_LOST : 4 * at + (int32_t)(w % 4));
    }
    kf_decoder_free(d);
    assert_status(KOFN_TOOFEW, kf_decoder_new(&d, code, set + 3, 2, true));
    kf_code_free(code);
    kofn_plan_free(p);
    assert_ok(plan_of(&p, KOFN_MATMUL, "matdot:n=3", 9, KOFN_F64, 1));
    assert_ok(kf_code_new(&code, p));
    assert_status(KOFN_TOOFEW, kf_decoder_new(&d, code, set, 3, true));
    kf_code_free(code);
    kofn_plan_free(p);
}

/* Parities are asked for once, counted, and go with their decoder. */
static void cached_parities(void **state)
{
    uint32_t set[12];
    const kf_decoder *d, *same;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_grid),
        cmocka_unit_test(polynomial_and_matdot),
        cmocka_unit_test(few_are_lucky),
        cmocka_unit_test(other_bases),
        cmocka_unit_test(khatri_rao),
        cmocka_unit_test(replicated_angles),
        cmocka_unit_test(angles_by_themselves),
        cmocka_unit_test(product_codes),
        cmocka_unit_test(exponents_of_the_papers),
        cmocka_unit_test(worked_example),
        cmocka_unit_test(refusals_name_what_fits),
        cmocka_unit_test(defaults_fit),
        cmocka_unit_test(left_products_share_blocks),
        cmocka_unit_test(shares),
        cmocka_unit_test(partial_answers),
        cmocka_unit_test(cached_parities),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
