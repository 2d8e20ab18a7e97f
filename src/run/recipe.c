/* recipe.c -- what a block is made of, as it travels.
 *
 * A worker gets the recipe first.  One that can read the operand itself makes
 * its block from that, and only these coefficients have travelled; the others
 * ask for the block's numbers piece by piece.
 */
#include "wire.h"

enum { DENSE, SPARSE, SUM };

/* ---- writing ------------------------------------------------------------------- */

void kf_bytes_free(kf_bytes *b)
{
    kf_free(b->p);
    *b = (kf_bytes){0};
}

static kofn_status put(kf_bytes *b, const void *p, size_t n)
{
    if (b->cap - b->n < n) {
        size_t cap = 2 * b->n + n + 256;
        unsigned char *now = kf_new(cap, 1);

        if (!now)
            return KOFN_NOMEM;
        if (b->n)
            memcpy(now, b->p, b->n);
        kf_free(b->p);
        b->p = now;
        b->cap = cap;
    }
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return KOFN_OK;
}

static kofn_status put_number(kf_bytes *b, size_t x)
{
    uint64_t wide = x;

    return put(b, &wide, sizeof wide);
}

static kofn_status write_dense(const kofn_block *b, kf_bytes *out)
{
    const kf_resident *r = b->from;
    const kofn_layout *L = &r->plan->layout;

    TRY(put_number(out, L->problem.m));
    TRY(put_number(out, L->problem.n));
    TRY(put_number(out, L->groups * L->cut[0].rows));
    TRY(put_number(out, L->cut[0].cols));
    TRY(put_number(out, L->inner));
    for (size_t i = 0; i < b->lanes * L->inner; i++) {
        const kf_row *row = &b->coded[i];

        TRY(put_number(out, row->n));
        for (size_t e = 0; e < row->n; e++)
            TRY(put_number(out,
                           kf_part_index(r->plan, b->group, row->col[e])));
        TRY(put(out, row->val, row->n * sizeof *row->val));
    }
    return KOFN_OK;
}

static kofn_status write_sparse(const kofn_block *b, kf_bytes *out)
{
    size_t units, bytes;

    kf_section(b, 1, &units, &bytes);
    TRY(put_number(out, b->A->rows));
    TRY(put_number(out, units));
    TRY(put_number(out, b->used));
    for (size_t j = 0; j < b->used; j++)
        TRY(put_number(out, b->first[j]));
    return put(out, b->weight, b->lanes * b->used * sizeof *b->weight);
}

static kofn_status write_sum(const kofn_block *b, kf_bytes *out)
{
    const kf_share *s = b->share;

    TRY(put_number(out, s->of));
    TRY(put_number(out, s->length));
    TRY(put_number(out, s->pieces));
    TRY(put_number(out, s->span));
    TRY(put_number(out, s->turns));
    TRY(put_number(out, s->parts));
    for (size_t k = 0; k < s->parts; k++)
        TRY(put_number(out, s->part[k]));
    return put(out, s->mix, s->turns * s->lanes * s->parts * s->pieces *
                                sizeof *s->mix);
}

kofn_status kf_recipe_write(const kofn_block *b, const char *source,
                            kf_bytes *out)
{
    size_t length = source ? strlen(source) : 0;

    out->n = 0;
    TRY(put_number(out, b->share ? SUM : b->A ? SPARSE : DENSE));
    TRY(put_number(out, b->dtype));
    TRY(put_number(out, b->share ? b->share->lanes : b->lanes));
    TRY(put_number(out, b->rows));
    TRY(put_number(out, b->cols));
    TRY(put_number(out, length));
    TRY(put(out, source, length));
    return b->share ? write_sum(b, out)
           : b->A   ? write_sparse(b, out)
                    : write_dense(b, out);
}

/* ---- reading -------------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *p;
    size_t left;
    size_t cap;      /* memory that may be spent    */
    size_t short_of; /* that, by so much; 0: it is not */
    bool broken;
} reader;

static void get(reader *r, void *into, size_t n)
{
    if (r->left < n) {
        r->broken = true;
        r->left = 0;
        memset(into, 0, n);
        return;
    }
    memcpy(into, r->p, n);
    r->p += n;
    r->left -= n;
}

/* A number of at most `most`, or the recipe is broken. */
static size_t number(reader *r, size_t most)
{
    uint64_t x;

    get(r, &x, sizeof x);
    if (x > most) {
        r->broken = true;
        return 0;
    }
    return x;
}

static bool finite(const double *x, size_t n)
{
    return kf_first_odd(x, n, KOFN_F64) == n;
}

static bool spend(reader *r, size_t bytes)
{
    if (bytes > r->cap) {
        r->short_of = bytes - r->cap;
        return false;
    }
    r->cap -= bytes;
    return true;
}

/* n things of `size` bytes, if they may be had and at least `each` bytes of
 * the recipe stand for one; each == 0: nothing stands for them. */
static void *make(reader *r, size_t n, size_t size, size_t each)
{
    size_t bytes;

    if (r->broken || !kf_mul(n, size, &bytes) ||
        (each && n > r->left / each) || !spend(r, bytes)) {
        r->broken = true;
        return NULL;
    }
    return kf_zero(n, size);
}

static kofn_status malformed(const reader *r)
{
    if (r->short_of)
        return kf_fail(KOFN_UNSUITED, "a block takes %zu bytes more than this "
                       "worker may spend; give it more memory, or have A cut "
                       "finer", r->short_of);
    return kf_fail(KOFN_FORMAT, "the recipe of a block makes no sense");
}

/* Rows of coefficients over the grid. */
static kofn_status read_rows(reader *r, kf_recipe *out, size_t n)
{
    size_t grid = out->grid_rows * out->grid_cols, held = 0;
    uint32_t *col;
    double *val;

    /* what is left of the recipe bounds the number of coefficients */
    out->row = make(r, n, sizeof *out->row, sizeof(uint64_t));
    out->numbers = make(r, r->left / 16 + 1, 12, 0);
    if (!out->row || !out->numbers)
        return r->broken ? malformed(r) : KOFN_NOMEM;
    out->rows = n;
    val = out->numbers;
    col = (uint32_t *)(val + r->left / 16 + 1);
    for (size_t i = 0; i < n; i++) {
        kf_row *row = &out->row[i];

        row->n = number(r, kf_min(grid, r->left / 16));
        row->col = col + held;
        row->val = val + held;
        for (size_t e = 0; e < row->n; e++)
            row->col[e] = (uint32_t)number(r, grid - 1);
        get(r, row->val, row->n * sizeof *row->val);
        if (!finite(row->val, row->n))
            r->broken = true;
        held += row->n;
    }
    return r->broken ? malformed(r) : KOFN_OK;
}

/* Parts beyond the operand's edge are zero, and so are lanes made of them. */
static bool zero_lane(const kf_recipe *r, const kf_row *row)
{
    for (size_t e = 0; e < row->n; e++)
        if (row->col[e] % r->grid_rows * r->part_rows < r->A_rows &&
            row->col[e] / r->grid_rows * r->part_cols < r->A_cols)
            return false;
    return true;
}

static kofn_status read_dense(reader *r, kf_recipe *out)
{
    kofn_block *b = out->block;
    size_t inner, full = 0, units, bytes;

    out->A_rows = number(r, SIZE_MAX);
    out->A_cols = number(r, SIZE_MAX);
    out->grid_rows = number(r, UINT16_MAX);
    out->grid_cols = number(r, UINT16_MAX);
    inner = number(r, UINT16_MAX);
    if (r->broken || !out->A_rows || !out->A_cols || !out->grid_rows ||
        !out->grid_cols || !inner)
        return malformed(r);
    out->part_rows = kf_ceil_div(out->A_rows, out->grid_rows);
    out->part_cols = kf_ceil_div(out->A_cols, out->grid_cols);
    /* the sub-blocks of a lane stand side by side or below each other */
    if (!(b->rows == out->part_rows && b->cols % inner == 0 &&
          b->cols / inner == out->part_cols) &&
        !(b->cols == out->part_cols && b->rows % inner == 0 &&
          b->rows / inner == out->part_rows))
        return malformed(r);
    TRY(read_rows(r, out, b->lanes * inner));
    b->lane = make(r, b->lanes, sizeof *b->lane, 0);
    if (!b->lane)
        return r->broken ? malformed(r) : KOFN_NOMEM;
    for (size_t l = 0; l < b->lanes; l++) {
        bool zero = inner == 1 && zero_lane(out, &out->row[l]);

        b->lane[l] = (kofn_matrix){NULL, zero ? 0 : b->rows, b->cols, b->cols,
                                   b->dtype};
        full += !zero;
    }
    if (!kf_mul(full, b->rows, &units) || !kf_mul(units, b->cols, &units) ||
        !kf_mul(units, kf_dtype_size(b->dtype), &bytes) || !spend(r, bytes))
        return malformed(r);
    b->owned = kf_new(bytes, 1);
    if (!b->owned)
        return KOFN_NOMEM;
    for (size_t l = 0, at = 0; l < b->lanes; l++)
        if (b->lane[l].rows)
            b->lane[l].data = (char *)b->owned + at++ * (bytes / full);
    return KOFN_OK;
}

static kofn_status read_sparse(reader *r, kf_recipe *out)
{
    kofn_block *b = out->block;
    size_t rows, weights;

    out->A_rows = number(r, SIZE_MAX / 2);
    out->A_cols = b->cols;
    b->entries = number(r, SIZE_MAX / 16);
    b->used = number(r, r->left / sizeof(uint64_t));
    if (r->broken || !b->cols || b->cols > UINT32_MAX || !b->rows ||
        b->rows > out->A_rows || !kf_mul(b->used, b->rows, &rows) ||
        !kf_mul(b->lanes, b->used, &weights))
        return malformed(r);
    b->first = make(r, b->used, sizeof *b->first, sizeof(uint64_t));
    b->weight = make(r, weights, sizeof *b->weight, sizeof(double));
    b->own.ptr = make(r, rows + 1, sizeof *b->own.ptr, 0);
    b->own.col = make(r, b->entries, sizeof *b->own.col, 0);
    b->own.val = make(r, b->entries, sizeof *b->own.val, 0);
    if (!b->first || !b->weight || !b->own.ptr || !b->own.col || !b->own.val)
        return r->broken ? malformed(r) : KOFN_NOMEM;
    out->first = make(r, b->used, sizeof *out->first, 0);
    if (!out->first)
        return r->broken ? malformed(r) : KOFN_NOMEM;
    for (size_t j = 0; j < b->used; j++) {
        out->first[j] = number(r, SIZE_MAX / 2);
        b->first[j] = j * b->rows; /* here they stand one below the other */
    }
    get(r, b->weight, weights * sizeof *b->weight);
    b->own.rows = rows;
    b->own.cols = b->cols;
    b->A = &b->own;
    return r->broken || !finite(b->weight, weights) ? malformed(r) : KOFN_OK;
}

static kofn_status read_sum(reader *r, kf_recipe *out, kofn_part_fn f,
                            void *ctx)
{
    kofn_block *b = out->block;
    kf_share *s = make(r, 1, sizeof *s, 0);
    size_t wide, mixes, values;

    b->share = s;
    if (!s)
        return r->broken ? malformed(r) : KOFN_NOMEM;
    if (!f)
        return kf_fail(KOFN_UNSUITED, "the job is a sum of a function that "
                       "this worker does not have; start a worker program "
                       "that gives it to kofn_serve");
    s->f = f;
    s->ctx = ctx;
    s->lanes = b->lanes;
    s->of = number(r, UINT32_MAX);
    s->length = number(r, SIZE_MAX / 16);
    s->pieces = number(r, UINT16_MAX);
    s->span = number(r, SIZE_MAX / 16);
    s->turns = number(r, UINT16_MAX);
    s->parts = number(r, s->of);
    if (r->broken || !s->pieces || !s->turns || !s->span ||
        s->span != kf_ceil_div(s->length, s->pieces) ||
        !kf_mul(s->parts, s->pieces, &wide) ||
        !kf_mul(wide, s->turns * s->lanes, &mixes) ||
        !kf_mul(wide, s->span, &values))
        return malformed(r);
    s->part = make(r, s->parts, sizeof *s->part, sizeof(uint64_t));
    s->mix = make(r, mixes, sizeof *s->mix, sizeof(double));
    s->value = make(r, values, sizeof(double), 0);
    if (!s->part || !s->mix || !s->value)
        return r->broken ? malformed(r) : KOFN_NOMEM;
    for (size_t k = 0; k < s->parts; k++)
        s->part[k] = number(r, s->of - 1);
    get(r, s->mix, mixes * sizeof *s->mix);
    return r->broken || !finite(s->mix, mixes) ? malformed(r) : KOFN_OK;
}

static void read_source(reader *r, kf_recipe *out)
{
    size_t n = number(r, sizeof out->source - 1);

    get(r, out->source, n);
    if (memchr(out->source, 0, n))
        r->broken = true;
}

static kofn_status read_block(reader *r, kf_recipe *out, kofn_part_fn f,
                              void *ctx)
{
    kofn_block *b = out->block;
    size_t kind = number(r, SUM);

    b->dtype = number(r, KOFN_F32) == KOFN_F32 ? KOFN_F32 : KOFN_F64;
    b->lanes = number(r, UINT16_MAX);
    b->rows = number(r, SIZE_MAX / 16);
    b->cols = number(r, SIZE_MAX / 16);
    read_source(r, out);
    if (r->broken || b->lanes == 0)
        return malformed(r);
    TRY(kind == SUM      ? read_sum(r, out, f, ctx)
        : kind == SPARSE ? read_sparse(r, out)
                         : read_dense(r, out));
    if (r->left > 0)
        return malformed(r);
    out->sections = kf_sections(b);
    return KOFN_OK;
}

kofn_status kf_recipe_read(kf_recipe *out, const void *bytes, size_t n,
                           size_t cap, kofn_part_fn f, void *ctx)
{
    reader r = {bytes, n, cap, 0, false};
    kofn_status st;

    *out = (kf_recipe){.block = kf_zero(1, sizeof *out->block)};
    if (!out->block)
        return KOFN_NOMEM;
    atomic_init(&out->block->refs, 1);
    st = read_block(&r, out, f, ctx);
    if (st) {
        kofn_block_drop(out->block);
        kf_recipe_free(out);
        *out = (kf_recipe){0};
    }
    return st;
}

void kf_recipe_free(kf_recipe *r)
{
    kf_free(r->row);
    kf_free(r->numbers);
    kf_free(r->first);
    r->row = NULL;
    r->numbers = NULL;
    r->first = NULL;
}

/* ---- making a block from the operand --------------------------------------------- */

static kofn_status cook_dense(kf_recipe *r, const kofn_matrix *A)
{
    kofn_block *b = r->block;
    size_t inner = r->rows / b->lanes;
    bool below = b->rows > r->part_rows;
    size_t parts = r->grid_rows * r->grid_cols, n = 0;
    kf_mixed *jobs = kf_new(r->rows, sizeof *jobs);
    const kofn_matrix **part = kf_new(parts, sizeof *part);
    kf_parts grid = {0};
    kofn_status st = jobs && part ? KOFN_OK : KOFN_NOMEM;

    if (!st)
        st = kf_parts_new(&grid, A, r->grid_rows, r->grid_cols);
    for (size_t j = 0; j < parts && !st; j++)
        part[j] = &grid.part[j];
    for (size_t i = 0; i < r->rows && !st; i++) {
        kofn_matrix *lane = &b->lane[i / inner], sub = *lane;
        size_t t = i % inner;

        sub.rows = r->part_rows;
        sub.cols = r->part_cols;
        if (!lane->rows)
            continue;
        sub.data = below ? kf_at(lane, t * sub.rows, 0)
                         : kf_at(lane, 0, t * sub.cols);
        jobs[n++] = (kf_mixed){&r->row[i], sub};
    }
    if (!st)
        st = kf_mix(jobs, n, part, parts, r->part_rows, r->part_cols);
    kf_parts_free(&grid);
    kf_free(jobs);
    kf_free(part);
    return st;
}

/* The parts of S as pieces of a block at the coordinator, put where they go. */
static kofn_status cook_sparse(kf_recipe *r, const kofn_sparse *S)
{
    kofn_block *b = r->block, whole = *b;

    whole.A = S;
    whole.first = r->first;
    whole.own = (kofn_sparse){0};
    for (size_t section = 0; section < kf_sections(b); section++) {
        kf_bytes scratch = {0};
        size_t units, bytes, there;
        const void *at;

        kf_section(b, section, &units, &bytes);
        kf_section(&whole, section, &there, &bytes);
        if (there != units)
            return kf_fail(KOFN_SHAPE, "the operand's file is not what the "
                           "coordinator has: %zu entries, not %zu", there,
                           units);
        if (units == 0)
            continue;
        TRY(kf_piece(&whole, section, 0, units, &scratch, &at));
        memcpy(kf_piece_into(b, section, 0), at, units * bytes);
        kf_bytes_free(&scratch);
    }
    return kf_pieces_check(b);
}

kofn_status kf_recipe_cook(kf_recipe *r, const kofn_matrix *A,
                           const kofn_sparse *S)
{
    kofn_block *b = r->block;

    if (b->share || !(b->A ? (const void *)S : (const void *)A))
        return kf_fail(KOFN_SHAPE, "the operand is not of the kind that the "
                       "recipe is for");
    if (b->A ? S->rows != r->A_rows || S->cols != r->A_cols
             : A->rows != r->A_rows || A->cols != r->A_cols ||
                   A->dtype != b->dtype)
        return kf_fail(KOFN_SHAPE, "the operand is not %zu x %zu numbers of "
                       "the recipe's type", r->A_rows, r->A_cols);
    return b->A ? cook_sparse(r, S) : cook_dense(r, A);
}
