/* blocks_test.c -- operations on the blocks of A: updated in coded form, read,
 * and rebuilt from others, for all survivor sets of all schemes that serve
 * both products. */
#include "data/data.h" /* it has arguments called U */

#include "code_rig.h"

#include "code/operation.h"

enum { ROWS = 13, COLS = 10, STEP = 3 };

/* A code of one group, A, and the blocks of all seats. */
typedef struct rig {
    kofn_plan *plan, *reader;
    kf_code *code, *reading;
    const kofn_layout *L;
    size_t seats, high, wide; /* rows and columns of a part */
    double *A, **block;       /* components high x wide */
} rig;

/* Returns an entry of part j of a ROWS x COLS matrix; 0 beyond its edge. */
static double of_part(const rig *r, const double *A, size_t j, size_t i,
                      size_t c)
{
    size_t row = j % r->L->cut[0].rows * r->high + i;
    size_t col = j / r->L->cut[0].rows * r->wide + c;

    return row < ROWS && col < COLS ? A[row * COLS + col] : 0;
}

static double *encode(rig *r, const double *A, size_t seat)
{
    size_t components = r->L->components, size = r->high * r->wide;
    double *block = numbers(components * size);
    const kf_seat *s;

    assert_ok(kf_code_seat(r->code, seat, &s));
    for (size_t l = 0; l < components; l++)
        for (size_t e = 0; e < s->E0[l].n; e++)
            for (size_t at = 0; at < size; at++)
                block[l * size + at] +=
                    s->E0[l].val[e] *
                    of_part(r, A, s->E0[l].col[e], at / r->wide, at % r->wide);
    return block;
}

static bool up(rig *r, kofn_op op, const char *spec, size_t workers,
               bool uneven)
{
    kofn_problem pb = KOFN_PROBLEM_INIT(op, ROWS, COLS, 5, KOFN_F64, false);

    *r = (rig){.seats = workers};
    if (kofn_plan_new(&r->plan, &pb, spec, workers, 3) != KOFN_OK)
        return false;
    r->L = &r->plan->layout;
    assert_int_equal(r->L->groups, 1);
    r->high = kf_ceil_div(ROWS, r->L->cut[0].rows);
    r->wide = kf_ceil_div(COLS, r->L->cut[0].cols);
    assert_ok(kf_code_reader(&r->reader, r->plan));
    assert_false(r->reader->layout.adjoint);
    assert_ok(kf_code_new(&r->code, r->plan));
    assert_ok(kf_code_new(&r->reading, r->reader));
    if (uneven) {
        kf_code_uneven(r->code);
        kf_code_uneven(r->reading);
    }
    r->A = normals(ROWS * COLS, 1);
    r->block = kf_zero(workers, sizeof *r->block);
    for (size_t i = 0; i < workers; i++)
        r->block[i] = encode(r, r->A, i);
    return true;
}

static void down(rig *r)
{
    for (size_t i = 0; i < r->seats; i++)
        kf_free(r->block[i]);
    kf_free(r->block);
    kf_free(r->A);
    kf_code_free(r->reading);
    kf_code_free(r->code);
    kofn_plan_free(r->reader);
    kofn_plan_free(r->plan);
}

/* ---- updates ------------------------------------------------------------- */

/* Returns sum_j row[j] of the column blocks of X, STEP x cols, each `wide`. */
static double *coded(const double *X, size_t cols, const double *row, size_t n,
                     size_t wide)
{
    double *Y = numbers(STEP * wide);

    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < STEP; i++)
            for (size_t c = 0; c < wide && j * wide + c < cols; c++)
                Y[i * wide + c] += row[j] * X[i * cols + j * wide + c];
    return Y;
}

/* Returns A + U' V in long double. */
static double *updated(const double *A, const double *U_, const double *V)
{
    double *B = numbers(ROWS * COLS);

    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < COLS; j++) {
            long double sum = A[i * COLS + j];

            for (size_t t = 0; t < STEP; t++)
                sum += (long double)U_[t * ROWS + i] * V[t * COLS + j];
            B[i * COLS + j] = (double)sum;
        }
    return B;
}

static bool ones(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != 1)
            return false;
    return true;
}

static void update_seat(rig *r, size_t seat, const double *U_, const double *V,
                        const double *B)
{
    size_t m = r->L->cut[0].rows, n = r->L->cut[0].cols,
           size = r->high * r->wide;
    double *f = numbers(r->L->components * m),
           *g = numbers(r->L->components * n);
    double *want = encode(r, B, seat), *block = encode(r, r->A, seat);

    assert_ok(kf_code_factors(r->code, seat, f, g));
    assert_true(m > 1 || ones(f, r->L->components));
    assert_true(n > 1 || m == 1 || ones(g, r->L->components));
    for (size_t l = 0; l < r->L->components; l++) {
        double *u = coded(U_, ROWS, f + l * m, m, r->high);
        double *v = coded(V, COLS, g + l * n, n, r->wide);

        for (size_t at = 0; at < size; at++)
            for (size_t t = 0; t < STEP; t++)
                block[l * size + at] += u[t * r->high + at / r->wide] *
                                        v[t * r->wide + at % r->wide];
        kf_free(u);
        kf_free(v);
    }
    for (size_t at = 0; at < r->L->components * size; at++)
        assert_at_most(fabs(block[at] - want[at]), 400 * U);
    kf_free(f);
    kf_free(g);
    kf_free(want);
    kf_free(block);
}

static void updates(rig *r)
{
    double *U_ = normals(STEP * ROWS, 2), *V = normals(STEP * COLS, 3);
    double *B = updated(r->A, U_, V);

    for (size_t i = 0; i < r->seats; i++)
        update_seat(r, i, U_, V, B);
    kf_free(U_);
    kf_free(V);
    kf_free(B);
}

/* ---- reading ------------------------------------------------------------- */

/* Returns the number of singular values of these rows that are not 0. */
static size_t rank_of(double *G, size_t rows, size_t cols)
{
    size_t small = rows < cols ? rows : cols, rank = 0;
    double *sv = numbers(small), none[1], *super = numbers(small);

    assert_int_equal(LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N',
                                    (lapack_int)rows, (lapack_int)cols, G,
                                    (lapack_int)cols, sv, none, 1, none, 1,
                                    super),
                     0);
    for (size_t i = 0; i < small; i++) {
        assert_true(sv[i] > 1e-8 * sv[0] || sv[i] < 1e-13 * sv[0]);
        rank += sv[i] > 1e-8 * sv[0];
    }
    kf_free(sv);
    kf_free(super);
    return rank;
}

/* Returns the rank of the blocks of these seats, and of one more unless it is
 * SIZE_MAX. */
static size_t rank_with(rig *r, const uint32_t *set, size_t n, size_t more)
{
    size_t components = r->L->components, parts = r->plan->parts, rows = 0,
           rank;
    double *G = numbers((n + 1) * components * parts);

    for (size_t i = 0; i < n + (more != SIZE_MAX); i++) {
        const kf_seat *s;

        assert_ok(kf_code_seat(r->code, i < n ? set[i] : more, &s));
        for (size_t l = 0; l < components; l++, rows++)
            for (size_t e = 0; e < s->E0[l].n; e++)
                G[rows * parts + s->E0[l].col[e]] = s->E0[l].val[e];
    }
    rank = rank_of(G, rows, parts);
    kf_free(G);
    return rank;
}

/* Reads A from the blocks of the set. Returns false if they do not determine
 * it. */
static bool read_back(rig *r, const uint32_t *set, size_t n)
{
    size_t components = r->L->components;
    double got[ROWS * COLS];
    kofn_matrix out = {got, ROWS, COLS, COLS, KOFN_F64};
    kofn_matrix block[8];
    kf_source source[8];
    kf_scratch scratch = {0};
    kofn_decoder *d;
    kofn_status st = kf_decoder_new(&d, r->reading, set, n, false);

    if (rank_with(r, set, n, SIZE_MAX) < r->plan->parts) {
        assert_int_equal(st, KOFN_TOOFEW);
        return false;
    }
    assert_ok(st);
    for (size_t i = 0; i < n; i++) {
        block[i] = (kofn_matrix){r->block[set[i]], components * r->high,
                                 r->wide, r->wide, KOFN_F64};
        source[i] = (kf_source){&block[i], 0, r->high};
    }
    memset(got, 0xff, sizeof got);
    assert_ok(kf_decode(r->reader, d, source, (kf_band){0, 0, r->high}, &out,
                        &scratch));
    assert_at_most(relative_error(got, r->A, ROWS * COLS), d->predicted);
    kf_scratch_free(&scratch);
    kf_decoder_free(d);
    return true;
}

/* Rebuilds the block of a seat from those of the set, if they determine it. */
static void regenerate(rig *r, const uint32_t *set, size_t n, size_t seat)
{
    size_t components = r->L->components, size = r->high * r->wide;
    double *x = numbers(components * n * components),
           *got = numbers(components * size);
    double predicted, largest = 4; /* normal numbers and their mixtures */
    kofn_status st = kf_code_regenerator(r->code, set, n, seat, x, &predicted);

    if (rank_with(r, set, n, seat) > rank_with(r, set, n, SIZE_MAX)) {
        assert_int_equal(st, KOFN_TOOFEW);
    } else {
        assert_ok(st);
        for (size_t l = 0; l < components; l++)
            for (size_t s = 0; s < n * components; s++)
                for (size_t at = 0; at < size; at++)
                    got[l * size + at] += x[l * n * components + s] *
                                          r->block[set[s / components]]
                                                  [s % components * size + at];
        for (size_t at = 0; at < components * size; at++)
            assert_at_most(fabs(got[at] - r->block[seat][at]),
                           8 * (predicted + U) * largest);
        assert_at_most(predicted, 1e-6);
    }
    kf_free(x);
    kf_free(got);
}

/* Tries every set; it reads A exactly if its rank says so. Returns the least
 * number of seats that always suffices. */
static size_t every_set(rig *r)
{
    size_t least = 0;

    for (unsigned mask = 1; mask < 1u << r->seats; mask++) {
        uint32_t set[8];
        size_t n = 0;

        for (uint32_t i = 0; i < r->seats; i++)
            if (mask >> i & 1)
                set[n++] = i;
        if (!read_back(r, set, n) && n > least)
            least = n;
        for (uint32_t i = 0; i < r->seats; i++)
            if (!(mask >> i & 1) && (mask + i) % EVERY == 0)
                regenerate(r, set, n, i);
    }
    return least + 1;
}

/* ---- all schemes --------------------------------------------------------- */

static const char *const both[] = {
    "elastic",
    "elastic:cut=columns",
    "elastic:k=2",
    "elastic:k=3,cut=columns,basis=gauss_sys",
    "gpd:p=1,m=1,n=1",
    "gpd:p=2,m=1,n=1",
    "gpd:p=1,m=2,n=1,sub=vum",
    "gpd:p=1,m=1,n=2",
    "gpd:p=1,m=2,n=2",
    "gpd:p=1,m=2,n=2,sub=vum",
    "gpd:p=2,m=1,n=3",
    "gpd:p=1,m=2,n=2,angles=6",
    "gpd:p=1,m=2,n=2,basis=monomial",
    "polydot:p=1,m=2,n=2",
    "polydot:p=1,m=1,n=3",
    "matdot:n=2",
    "matdot:n=4",
    "matdot:n=3,basis=chebyshev",
    "polynomial:m=2,p=1,basis=circle",
    "polynomial:m=3,p=2,basis=circle",
    "polynomial:m=3,p=1,basis=chebyshev",
    "grid:copies=1,n=2",
    "grid:copies=2,m=2",
    "grid:copies=1,m=2,n=2,m2=3,n2=3",
    "grid:copies=1,m=2,n=1,m2=4",
};

/* Returns the least number of seats that always reads A, as expected of a code
 * with this number of parts. In a grid a block is lost with all of its copies,
 * and a part is lost with too many of its row and column. */
static size_t fewest(const rig *r, const char *spec)
{
    size_t parts = kf_ceil_div(r->plan->parts, r->L->components);
    bool twins = strstr(spec, "angles=6");

    if (strstr(spec, "copies=2"))
        return r->seats - 1;
    if (strstr(spec, "m2=3,n2=3"))
        return r->seats - 2;
    if (strstr(spec, "m2=4")) /* two of four, some of them twice */
        return kf_min(r->seats - 2, 3);
    if (strstr(spec, "copies=1"))
        return r->seats;
    return twins ? parts + (r->seats > 6 ? kf_min(r->seats - 6, parts - 1) : 0)
                 : parts;
}

static size_t try_spec(const char *spec, kofn_op op)
{
    size_t tried = 0;

    for (size_t n = 1; n <= 8; n++) {
        rig r;

        if (!up(&r, op, spec, n, n % 2 == 0))
            continue;
        tried++;
        updates(&r);
        assert_int_equal(every_set(&r), fewest(&r, spec));
        down(&r);
    }
    return tried;
}

/* Encoded for A B and for B A, the blocks and everything else agree. */
static void codes_of_both_products(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        if (!try_spec(both[i], KOFN_MATMUL) || !try_spec(both[i], KOFN_LEFT))
            fail_msg("%s: %s", both[i], kofn_errmsg());
    }
}

static void none_is_left_out(void **state)
{
    const kofn_scheme *s;

    (void)state;
    for (size_t i = 0; (s = kofn_scheme_at(i)); i++) {
        size_t with = 0;

        for (size_t j = 0; j < sizeof both / sizeof *both; j++)
            with += strcspn(both[j], ":") == strlen(s->name) &&
                    !strncmp(both[j], s->name, strlen(s->name));
        if (s->ops & KOFN_LEFT && s->ops & KOFN_MATMUL && !with)
            fail_msg("no arguments of %s are tried", s->name);
    }
}

static void codes_of_one_product(void **state)
{
    (void)state;
    assert_true(try_spec("mds:k=3", KOFN_MATMUL) > 0);
    assert_true(try_spec("polynomial:m=2,p=1", KOFN_MATMUL) > 0);
}

/* ---- what is refused ----------------------------------------------------- */

static void blocks_that_stand_for_two(void **state)
{
    static const char *const spec[] = {"gpd:m=2,n=2,p=1,basis=complex",
                                       "gpd:m=2,n=1,p=2,basis=complex"};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, ROWS, COLS, 5, KOFN_F64, false);
    const uint32_t set[] = {0, 1, 2, 3, 4};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        double f[8], g[8], x[80], predicted;
        kofn_plan *plan, *reader;
        kf_code *code;

        assert_ok(kofn_plan_new(&plan, &pb, spec[i], 6, 3));
        assert_ok(kf_code_new(&code, plan));
        assert_status(KOFN_UNSUITED, kf_code_factors(code, 1, f, g));
        assert_non_null(strstr(kofn_errmsg(), "no outer product"));
        assert_status(KOFN_UNSUITED, kf_code_reader(&reader, plan));
        assert_null(reader);
        assert_status(KOFN_UNSUITED,
                      kf_code_regenerator(code, set, 5, 5, x, &predicted));
        kf_code_free(code);
        kofn_plan_free(plan);
    }
}

/* A scheme with blocks that no outer product of two vectors gives. */
static kofn_status layout_of_corners(kofn_layout *L)
{
    L->seats = L->max_seats = L->workers;
    L->cut[0] = (kofn_cut){2, 2};
    L->enough = L->seats;
    return KOFN_OK;
}

static kofn_status seat_of_corners(const kofn_layout *L, size_t seat,
                                   double *E0, double *E1, double *G)
{
    (void)L;
    (void)E1;
    (void)G;
    E0[0] = 1;
    E0[3] = seat == 0 ? 1e-12 : seat == 1 ? 1 : 0;
    return KOFN_OK;
}

/* Decodes its products. Nothing else may be decoded by this function. */
static kofn_status decode_corners(const kofn_layout *L, const uint32_t *seats,
                                  size_t n, double *D)
{
    (void)L;
    (void)seats;
    (void)n;
    (void)D;
    return KOFN_STATE;
}

static void sums_of_two_outer_products(void **state)
{
    static const kofn_param none[] = {{0}};
    static const kofn_scheme corners = {.size = sizeof(kofn_scheme),
                                        .name = "corners",
                                        .ops = KOFN_MATMUL,
                                        .params = none,
                                        .layout = layout_of_corners,
                                        .seat = seat_of_corners,
                                        .decode = decode_corners};
    const uint32_t all[] = {0, 1, 2, 3};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, ROWS, COLS, 5, KOFN_F64, false);
    kofn_plan *plan, *reader;
    kf_code *code, *reading;
    kofn_decoder *d;
    double f[2], g[2];

    (void)state;
    assert_ok(kofn_plan_new_for(&plan, &pb, &corners, NULL, 4, 3));
    assert_ok(kf_code_new(&code, plan));
    assert_status(KOFN_UNSUITED, kf_code_factors(code, 0, f, g));
    assert_status(KOFN_UNSUITED, kf_code_factors(code, 1, f, g));
    assert_ok(kf_code_factors(code, 2, f, g));
    assert_true(f[0] == 1 && f[1] == 0 && g[0] == 1 && g[1] == 0);
    assert_ok(kf_code_reader(&reader, plan));
    assert_ok(kf_code_new(&reading, reader));
    assert_status(KOFN_TOOFEW, kf_decoder_new(&d, reading, all, 4, false));
    kf_code_free(reading);
    kofn_plan_free(reader);
    kf_code_free(code);
    kofn_plan_free(plan);
}

/* Two components per seat, from the parts that `parts` names by seat and
 * component. */
static kofn_status layout_of_pairs(kofn_layout *L)
{
    L->seats = L->max_seats = L->workers;
    L->cut[0] = (kofn_cut){2, 1};
    L->components = 2;
    L->enough = L->seats;
    return KOFN_OK;
}

static kofn_status seat_of_pairs(const kofn_layout *L, size_t seat, double *E0,
                                 double *E1, double *G)
{
    static const int part[3][2] = {{0, 0}, {0, 1}, {1, 0}};

    (void)L;
    (void)E1;
    (void)G;
    for (size_t l = 0; l < 2; l++)
        E0[2 * l + (size_t)part[seat][l]] = 1;
    return KOFN_OK;
}

/* A block is rebuilt from others if they determine all of its components. */
static void every_component_counts(void **state)
{
    static const kofn_param none[] = {{0}};
    static const kofn_scheme pairs = {.size = sizeof(kofn_scheme),
                                      .name = "pairs",
                                      .ops = KOFN_MATMUL,
                                      .params = none,
                                      .layout = layout_of_pairs,
                                      .seat = seat_of_pairs};
    const uint32_t first[] = {0}, second[] = {1};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, ROWS, COLS, 5, KOFN_F64, false);
    double x[4], predicted;
    kofn_plan *plan;
    kf_code *code;

    (void)state;
    assert_ok(kofn_plan_new_for(&plan, &pb, &pairs, NULL, 3, 3));
    assert_ok(kf_code_new(&code, plan));
    for (size_t seat = 1; seat < 3; seat++)
        assert_status(KOFN_TOOFEW,
                      kf_code_regenerator(code, first, 1, seat, x, &predicted));
    assert_ok(kf_code_regenerator(code, second, 1, 2, x, &predicted));
    kf_code_free(code);
    kofn_plan_free(plan);
}

/* A scheme with a block of no part. */
static kofn_status layout_of_nothing(kofn_layout *L)
{
    L->seats = L->max_seats = L->workers;
    L->cut[0] = L->seats == 2 ? (kofn_cut){1, 2} : (kofn_cut){2, 1};
    L->enough = L->seats;
    return KOFN_OK;
}

static kofn_status seat_of_nothing(const kofn_layout *L, size_t seat,
                                   double *E0, double *E1, double *G)
{
    (void)L;
    (void)E1;
    (void)G;
    E0[0] = seat == 0 ? 0 : 3;
    return KOFN_OK;
}

static void nothing_is_an_outer_product(void **state)
{
    static const kofn_param none[] = {{0}};
    static const kofn_scheme nothing = {.size = sizeof(kofn_scheme),
                                        .name = "nothing",
                                        .ops = KOFN_MATMUL,
                                        .params = none,
                                        .layout = layout_of_nothing,
                                        .seat = seat_of_nothing};
    kofn_problem pb =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, ROWS, COLS, 5, KOFN_F64, false);

    (void)state;
    for (size_t workers = 2; workers <= 3; workers++)
        for (size_t seat = 0; seat < 2; seat++) {
            double f[2], g[2], product;
            kofn_plan *plan;
            kf_code *code;

            assert_ok(
                kofn_plan_new_for(&plan, &pb, &nothing, NULL, workers, 3));
            assert_ok(kf_code_new(&code, plan));
            assert_ok(kf_code_factors(code, seat, f, g));
            product = f[0] * g[0];
            assert_true(product == (seat ? 3 : 0));
            assert_true((workers == 2 ? f[0] * g[1] : f[1] * g[0]) == 0);
            kf_code_free(code);
            kofn_plan_free(plan);
        }
}

static void nothing_to_read(void **state)
{
    static const struct {
        kofn_problem of;
        const char *spec;
    } none[] = {
        {KOFN_PROBLEM_INIT(KOFN_SUM, 10, 1, 1, KOFN_F64, false), "gc:d=2"},
        {KOFN_PROBLEM_INIT(KOFN_GRAM, ROWS, COLS, 1, KOFN_F64, false),
         "pcr:r=2"},
        {KOFN_PROBLEM_INIT(KOFN_STREAM, ROWS, COLS, 5, KOFN_F64, false),
         "uncoded"},
        {KOFN_PROBLEM_INIT(KOFN_MATMUL, ROWS, COLS, 5, KOFN_F64, true),
         "mds:k=2"},
    };
    kofn_problem dense =
        KOFN_PROBLEM_INIT(KOFN_MATMUL, ROWS, COLS, 5, KOFN_F64, false);
    kofn_plan *plan, *reader, *again;

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_ok(kofn_plan_new(&plan, &none[i].of, none[i].spec, 4, 3));
        assert_false(kf_code_can_be_read(plan));
        assert_status(KOFN_UNSUITED, kf_code_reader(&reader, plan));
        kofn_plan_free(plan);
    }
    assert_ok(kofn_plan_new(&plan, &dense, "mds:k=2", 4, 3));
    assert_true(kf_code_can_be_read(plan));
    assert_ok(kf_code_reader(&reader, plan));
    assert_false(kf_code_can_be_read(reader));
    assert_status(KOFN_STATE, kf_code_reader(&again, reader));
    kofn_plan_free(reader);
    kofn_plan_free(plan);
    /* readers alone have this operation */
    dense.op = KF_READ;
    assert_status(KOFN_UNSUITED, kofn_plan_new(&plan, &dense, "mds:k=2", 4, 3));
}

/* math/training.md 8: all seats of a circle form a tight frame. */
static void frames(void **state)
{
    (void)state;
    for (size_t n = 6; n <= 8; n++) {
        uint32_t others[7];
        double x[7], predicted, parts = 4;
        rig r;

        assert_true(up(&r, KOFN_MATMUL, "gpd:m=2,n=2,p=1", n, false));
        for (uint32_t i = 0; i + 1 < n; i++)
            others[i] = i + 1;
        assert_ok(kf_code_regenerator(r.code, others, n - 1, 0, x, &predicted));
        assert_at_most(
            fabs(predicted / (4 * U) - sqrt(parts / ((double)n - parts))),
            1e-12);
        down(&r);
    }
}

static void failing_allocations(void **state)
{
    rig r;
    const uint32_t set[] = {0, 2, 3, 5, 6};
    double f[2], g[2], x[5], predicted;
    long before, tries = 0;
    kofn_status st;

    (void)state;
    assert_true(up(&r, KOFN_MATMUL, "gpd:m=2,n=2,p=1", 7, false));
    before = allocated();
    do {
        kofn_plan *reader;

        fail_allocation(++tries);
        st = kf_code_reader(&reader, r.plan);
        if (!st)
            st = kf_code_factors(r.code, 4, f, g);
        if (!st)
            st = kf_code_regenerator(r.code, set, 5, 4, x, &predicted);
        fail_allocation(0);
        kofn_plan_free(reader);
        assert_true(st == KOFN_OK || st == KOFN_NOMEM);
        assert_int_equal(allocated(), before);
    } while (st);
    assert_true(tries > 5);
    down(&r);
}

TEST_FILE(blocks_test)
{
    const struct CMUnitTest tests[] = {
        TEST(codes_of_both_products,
             "blocks: encoded for A B and for B A they agree (every scheme)"),
        TEST(none_is_left_out,
             "blocks: the test covers every scheme that serves both products"),
        TEST(codes_of_one_product,
             "blocks: schemes of one product refuse updates and reading"),
        TEST(blocks_that_stand_for_two,
             "blocks: a block that answers for two seats is refused"),
        TEST(sums_of_two_outer_products,
             "blocks: sums of two outer products are refused"),
        TEST(
            every_component_counts,
            "blocks: a block is rebuilt only if all its components are determined"),
        TEST(nothing_is_an_outer_product,
             "blocks: an empty block counts as an outer product"),
        TEST(nothing_to_read, "blocks: impossible readers are refused"),
        TEST(frames, "blocks: all seats of a circle form a tight frame"),
        TEST(failing_allocations,
             "blocks: each failing allocation is reported"),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
