/* grid.c -- grids of blocks, the reference for training on coded weights
 * (Dutta, Bai, Jeong, Low, Grover, "A unified coded deep neural network
 * training strategy based on generalized PolyDot codes", 2018).
 *
 *     grid:m=2,n=3             A cut m x n, a block per worker; all must answer
 *     grid:m=2,n=3,copies=2    two copies of each block
 *     grid:m=2,n=3,m2=4,n2=5   two systematic codes.  Each column of blocks
 *                              has m2 coded rows, any m are enough for A B.
 *                              Each row has n2 coded columns, any n are
 *                              enough for B A.
 *
 * The symbols are the products A_ij B_j (B_i A_ij); sums of them are wanted.  A
 * coded row of blocks answers A B.  In B A it would need a different input for
 * each row that it mixes.  So there its input and its answer are zero.  The
 * same holds for coded columns in A B.
 *
 * Its codes belong to the layout.  Answers that are zero by construction must
 * not be counted as agreeing with others. */
#include "schemes.h"
#include "systematic.h"

static const kofn_param params[] = {
    {"m", KOFN_AUTO, 1, 10000, "rows of blocks of A; auto: near to a square",
     0},
    {"n", KOFN_AUTO, 1, 10000, "columns of blocks of A; auto: near to a square",
     0},
    {"m2", KOFN_AUTO, 1, 10000, "rows with those that are coded; auto: m", 0},
    {"n2", KOFN_AUTO, 1, 10000, "columns with those that are coded; auto: n",
     0},
    {"copies", KOFN_AUTO, 1, 1000000,
     "workers with the same block; auto: as many as there are", 0},
    {0},
};

typedef struct sizes {
    size_t m, n, m2, n2, copies;
} sizes;

static sizes sizes_of(const kofn_layout *L)
{
    return (sizes){(size_t)kofn_arg(L, "m"), (size_t)kofn_arg(L, "n"),
                   (size_t)kofn_arg(L, "m2"), (size_t)kofn_arg(L, "n2"),
                   (size_t)kofn_arg(L, "copies")};
}

/* Returns the number of different blocks. */
static size_t blocks_of(const sizes *s)
{
    return s->m * s->n + (s->m2 - s->m) * s->n + s->m * (s->n2 - s->n);
}

/* ---- the shape ----------------------------------------------------------- */

static void choose_sizes(const kofn_layout *L)
{
    size_t each = L->workers;
    sizes s;

    if (kofn_arg(L, "copies") != KOFN_AUTO)
        each /= (size_t)kofn_arg(L, "copies");
    if (kofn_arg(L, "m2") != KOFN_AUTO)
        kf_code_default(L, "m", (size_t)kofn_arg(L, "m2") - 1);
    if (kofn_arg(L, "n2") != KOFN_AUTO)
        kf_code_default(L, "n", (size_t)kofn_arg(L, "n2") - 1);
    if (kofn_arg(L, "m") == KOFN_AUTO)
        kf_code_default(L, "n", kf_schemes_divisor(each));
    if (kofn_arg(L, "n") == KOFN_AUTO)
        kf_code_default(L, "n", each / sizes_of(L).m);
    kf_code_default(L, "m", each / sizes_of(L).n);
    kf_code_default(L, "m2", sizes_of(L).m);
    kf_code_default(L, "n2", sizes_of(L).n);
    s = sizes_of(L);
    if (s.m2 >= s.m && s.n2 >= s.n)
        kf_code_default(L, "copies", L->workers / blocks_of(&s));
}

static kofn_status check(const kofn_layout *L, const sizes *s)
{
    size_t workers = L->workers, blocks;

    if (s->m > s->m2 || s->n > s->n2)
        return kofn_say(KOFN_INVAL,
                        "grid: %zu x %zu blocks among m2 = %zu coded rows and "
                        "n2 = %zu coded columns; ask for m2 >= m and n2 >= n",
                        s->m, s->n, s->m2, s->n2);
    blocks = blocks_of(s);
    if (workers / blocks != s->copies)
        return kofn_say(
            KOFN_INVAL,
            "grid: m = %zu, n = %zu, m2 = %zu and n2 = %zu are %zu different "
            "blocks, copies = %zu of each take %zu workers, and there are %zu",
            s->m, s->n, s->m2, s->n2, blocks, s->copies, blocks * s->copies,
            workers);
    return KOFN_OK;
}

/* The codes of the rows and of the columns. */
typedef struct codes {
    void *rows, *cols;
} codes;

static void free_codes(void *state)
{
    codes *c = state;

    kofn_free(c->rows);
    kofn_free(c->cols);
    kofn_free(c);
}

static kofn_status make_codes(kofn_layout *L, const sizes *s)
{
    codes *c;

    TRY_ZERO(c, 1);
    L->state = c;
    L->free_state = free_codes;
    TRY(kf_schemes_systematic(s->m2, s->m, L->seed, &c->rows));
    return kf_schemes_systematic(s->n2, s->n, L->seed, &c->cols);
}

/* Makes each row or column of blocks of the product a sum of symbols. */
static kofn_status make_wants(kofn_layout *L, const sizes *s, bool left)
{
    L->symbols = s->m * s->n;
    L->wants = left ? s->n : s->m;
    L->grid_rows = left ? 1 : s->m;
    if (L->wants == L->symbols)
        return KOFN_OK;
    L->W = kofn_layout_table(L->wants, L->symbols);
    if (!L->W)
        return KOFN_NOMEM;
    for (size_t i = 0; i < L->symbols; i++)
        L->W[(left ? i / s->m : i % s->m) * L->symbols + i] = 1;
    return KOFN_OK;
}

/* Lays the grid out.  A result is lost if all copies of too many rows of blocks
 * are missing: one more than the number of coded rows. */
static kofn_status layout(kofn_layout *L)
{
    bool left = L->problem.op == KOFN_LEFT;
    sizes s;

    choose_sizes(L);
    s = sizes_of(L);
    TRY(check(L, &s));
    L->seats = L->max_seats = L->workers;
    L->cut[0] = (kofn_cut){s.m, s.n};
    L->cut[1] = left ? (kofn_cut){1, s.m} : (kofn_cut){s.n, 1};
    L->enough = s.m * s.n;
    L->threshold =
        L->seats + 1 - s.copies * (left ? s.n2 - s.n + 1 : s.m2 - s.m + 1);
    TRY(make_wants(L, &s, left));
    return make_codes(L, &s);
}

/* ---- seats --------------------------------------------------------------- */

/* Finds the row and column of a block: plain blocks first, then coded rows,
 * then coded columns. */
static void place_of(const sizes *s, size_t block, size_t *row, size_t *col)
{
    size_t more = s->m2 - s->m, plain = s->m * s->n, top = plain + more * s->n;

    if (block < plain) {
        *row = block % s->m;
        *col = block / s->m;
    } else if (block < top) {
        *row = s->m + (block - plain) % more;
        *col = (block - plain) / more;
    } else {
        *row = (block - top) % s->m;
        *col = s->n + (block - top) / s->m;
    }
}

static kofn_status seat(const kofn_layout *L, size_t at, double *E0, double *E1,
                        double *G)
{
    sizes s = sizes_of(L);
    const codes *code = L->state;
    double *r = kofn_layout_table(s.m + s.n, 1), *c = r + s.m;
    bool left = L->problem.op == KOFN_LEFT;
    size_t row, col;

    if (!r)
        return KOFN_NOMEM;
    place_of(&s, at % blocks_of(&s), &row, &col);
    kf_schemes_systematic_row(s.m2, s.m, code->rows, row, r);
    kf_schemes_systematic_row(s.n2, s.n, code->cols, col, c);
    if (E1 && (left ? row < s.m : col < s.n))
        E1[left ? row : col] = 1;
    for (size_t j = 0; j < s.n; j++)
        for (size_t i = 0; i < s.m; i++) {
            E0[i + s.m * j] = r[i] * c[j];
            G[i + s.m * j] = E0[i + s.m * j] * (E1 ? E1[left ? i : j] : 1);
        }
    kofn_free(r);
    return KOFN_OK;
}

const kofn_scheme kf_grid = {
    .size = sizeof(kofn_scheme),
    .name = "grid",
    .summary = "A B and B A by a grid of blocks, copied or with coded rows and "
               "columns",
    .cite = "the baselines of Dutta et al. 2018, arXiv:1811.10751",
    .ops = KOFN_MATVEC | KOFN_MATMUL | KOFN_LEFT,
    .params = params,
    .layout = layout,
    .seat = seat,
};
