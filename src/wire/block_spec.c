/* block_spec.c -- what a block is made of, as it travels.
 *
 * A worker gets the block specification first.  One that can read the operand
 * itself makes its block from that, and only these coefficients have travelled;
 * the others ask for the block's numbers slice by slice.
 *
 * Bytes are the caller's, freed by kf_bytes_free.  Nothing that is read is
 * believed: every size is checked before memory is asked for.
 */
#include "wire.h"

#include <assert.h>

enum { DENSE, SPARSE, SUM, EMPTY, KINDS };

#define SOURCE_MOST (sizeof((kf_block_spec *)0)->source - 1)

/* ---- writing ------------------------------------------------------------- */

static kofn_status put(kf_bytes *b, const void *p, size_t n)
{
    assert(n == 0 || p);
    TRY(kf_reach(&b->p, &b->cap, b->n + n, 1));
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return KOFN_OK;
}

static kofn_status put_number(kf_bytes *b, size_t x)
{
    unsigned char little[8];

    for (size_t i = 0; i < sizeof little; i++)
        little[i] = (unsigned char)((uint64_t)x >> 8 * i);
    return put(b, little, sizeof little);
}

static kofn_status put_all(kf_bytes *b, const size_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        TRY(put_number(b, x[i]));
    return KOFN_OK;
}

#define PUT_NUMBERS(b, ...)                                                    \
    put_all(b, (const size_t[]){__VA_ARGS__},                                  \
            sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static kofn_status write_dense(const kf_block *b, kf_bytes *out)
{
    assert(b->coded);
    assert(b->from);
    const kf_resident *r = b->from;
    const kofn_layout *L = &r->plan->layout;

    TRY(PUT_NUMBERS(out, L->problem.m, L->problem.n, L->groups * L->cut[0].rows,
                    L->cut[0].cols, L->inner));
    for (size_t i = 0; i < b->components * L->inner; i++) {
        const kf_row *row = &b->coded[i];

        TRY(put_number(out, row->n));
        for (size_t e = 0; e < row->n; e++)
            TRY(put_number(out,
                           kf_data_part_index(r->plan, b->group, row->col[e])));
        for (size_t e = 0; e < row->n; e++) {
            double val = r->by * row->val[e];

            TRY(put(out, &val, sizeof val));
        }
    }
    return KOFN_OK;
}

/* Writes which components of the block are not zero throughout. */
static kofn_status write_empty(const kf_block *b, kf_bytes *out)
{
    assert(b->empty);
    for (size_t l = 0; l < b->components; l++)
        TRY(put_number(out, b->component[l].rows > 0));
    return KOFN_OK;
}

static kofn_status write_sparse(const kf_block *b, kf_bytes *out)
{
    size_t units, bytes;

    assert(b->A);
    kf_wire_section(b, 1, &units, &bytes);
    TRY(PUT_NUMBERS(out, b->A->rows, units, b->used));
    TRY(put_all(out, b->first, b->used));
    return put(out, b->weight, b->components * b->used * sizeof *b->weight);
}

static kofn_status write_sum(const kf_block *b, kf_bytes *out)
{
    assert(b->subset);
    const kf_subset *s = b->subset;
    size_t name = s->formula ? strlen(s->formula->name) : 0;

    TRY(put_number(out, name));
    if (name) {
        TRY(put(out, s->formula->name, name));
        TRY(put(out, s->arg, sizeof s->arg));
        TRY(PUT_NUMBERS(out, s->points, s->X.cols));
    }
    TRY(PUT_NUMBERS(out, s->of, s->length, s->segments, s->span, s->submessages,
                    s->parts));
    TRY(put_all(out, s->part, s->parts));
    return put(out, s->mix,
               s->submessages * s->components * s->parts * s->segments *
                   sizeof *s->mix);
}

static kofn_status put_digest(const kf_block *b, kf_bytes *out)
{
    assert(b->from);
    const kf_resident *r = b->from;
    kf_operand o = {.digest = r->digest};
    uint64_t digest;

    if (b->subset) {
        o.X = &r->X;
        o.parts = b->subset->of;
    } else if (b->A) {
        o.sparse = b->A;
        o.span = b->rows;
        o.parts = kf_ceil_div(b->A->rows, b->rows);
        o.first = b->first;
    } else {
        o.part = r->parts.part;
        o.parts = r->parts.count;
        o.row = b->coded;
        o.rows = b->components * r->plan->layout.inner;
    }
    TRY(kf_digest_block(b, &o, &digest));
    return put_number(out, digest);
}

static kofn_status write_block(const kf_block *b, const char *source,
                               kf_bytes *out)
{
    bool operand = !b->empty && (!b->subset || b->subset->formula);
    size_t length = source && operand ? strlen(source) : 0;
    size_t components = b->subset ? b->subset->components : b->components;
    size_t kind = b->empty ? EMPTY : b->subset ? SUM : b->A ? SPARSE : DENSE;

    if (length > SOURCE_MOST)
        length = 0; /* the workers have no such name */
    TRY(PUT_NUMBERS(out, kind, b->dtype, components, b->rows, b->cols, length));
    TRY(put(out, source, length));
    if (length) {
        TRY(put_digest(b, out));
        TRY(put_number(out, b->from->scaled));
    }
    return kind == SUM      ? write_sum(b, out)
           : kind == SPARSE ? write_sparse(b, out)
           : kind == EMPTY  ? write_empty(b, out)
                            : write_dense(b, out);
}

kofn_status kf_block_spec_write(const kf_block *b, const char *source,
                                kf_bytes *out)
{
    const char *name = b->next ? NULL : source;

    out->n = 0;
    for (; b; b = b->next)
        TRY(write_block(b, name, out));
    return KOFN_OK;
}

/* ---- reading ------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *p;
    size_t left;
    size_t cap;      /* bytes that may be used */
    size_t short_of; /* bytes that are missing for the block; 0: none */
    bool broken;     /* the numbers make no sense, or take too much memory */
    bool no_memory;
} reader;

static void get(reader *r, void *into, size_t n)
{
    if (r->left < n) {
        r->broken = true;
        r->left = 0;
        memset(into, 0, n);
        return;
    }
    if (n == 0) /* there may be nowhere to put nothing */
        return;
    memcpy(into, r->p, n);
    r->p += n;
    r->left -= n;
}

/* A number of at most `most`, or the block specification is broken. */
static size_t number(reader *r, size_t most)
{
    unsigned char little[8];
    uint64_t x = 0;

    get(r, little, sizeof little);
    for (size_t i = 0; i < sizeof little; i++)
        x |= (uint64_t)little[i] << 8 * i;
    if (x > most) {
        r->broken = true;
        return 0;
    }
    return x;
}

static bool finite(const double *x, size_t n)
{
    return kf_mat_first_odd(x, n, KOFN_F64) == n;
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
 * the block specification stand for one; each == 0: nothing stands for them. */
static void *make(reader *r, size_t n, size_t size, size_t each)
{
    void *p = NULL;
    size_t bytes;

    if (r->broken || !kf_mul(n, size, &bytes) || (each && n > r->left / each) ||
        !spend(r, bytes)) {
        r->broken = true;
    } else {
        p = kf_zero(n, size);
        r->no_memory |= !p;
    }
    return p;
}

/* Returns KOFN_OK if reading may continue, or else the reason. */
static kofn_status state(const reader *r)
{
    if (r->no_memory)
        return KOFN_NOMEM;
    if (!r->broken)
        return KOFN_OK;
    if (r->short_of)
        return kf_fail(KOFN_UNSUITED,
                       "a block needs %zu bytes more than the memory limit of "
                       "this worker; raise the limit, or cut A into more parts",
                       r->short_of);
    return kf_fail(KOFN_FORMAT,
                   "the block specification of a block makes no sense");
}

/* The block specification is broken unless this holds. */
static kofn_status demand(reader *r, bool holds)
{
    r->broken |= !holds;
    return state(r);
}

/* Rows of coefficients over the grid. */
static kofn_status read_rows(reader *r, kf_block_spec *out, size_t n)
{
    size_t grid = out->grid_rows * out->grid_cols, held = 0;
    uint32_t *col;
    double *val;

    /* what is left of the block specification bounds the number of
     * coefficients */
    out->row = make(r, n, sizeof *out->row, sizeof(uint64_t));
    out->numbers = make(r, r->left / 16 + 1, 12, 0);
    TRY(state(r));
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
        r->broken |= !finite(row->val, row->n);
        held += row->n;
    }
    return state(r);
}

/* Parts beyond the operand's edge are zero, and so are components made of them.
 */
static bool zero_component(const kf_block_spec *r, const kf_row *row)
{
    for (size_t e = 0; e < row->n; e++)
        if (row->col[e] % r->grid_rows * r->part_rows < r->A_rows &&
            row->col[e] / r->grid_rows * r->part_cols < r->A_cols)
            return false;
    return true;
}

/* Allocates components, one below the other.  `full` of them are not zero. */
static kofn_status make_components(reader *r, kf_block *b, size_t full)
{
    size_t units = 0, bytes = 0;

    assert(full <= b->components);
    TRY(demand(r, !r->broken && kf_mul(full, b->rows, &units) &&
                      kf_mul(units, b->cols, &units) &&
                      kf_mul(units, kf_dtype_size(b->dtype), &bytes) &&
                      spend(r, bytes)));
    b->owned = b->empty ? kf_zero(bytes, 1) : kf_new(bytes, 1);
    if (!b->owned)
        return KOFN_NOMEM;
    for (size_t l = 0, at = 0; l < b->components; l++)
        if (b->component[l].rows)
            b->component[l].data = (char *)b->owned + at++ * (bytes / full);
    b->changes = true; /* it is this worker's own */
    return KOFN_OK;
}

static kofn_status read_empty(reader *r, kf_block_spec *out)
{
    kf_block *b = out->block;
    size_t full = 0;

    b->empty = true;
    b->component =
        make(r, b->components, sizeof *b->component, sizeof(uint64_t));
    TRY(demand(r, b->rows && b->cols));
    for (size_t l = 0; l < b->components; l++) {
        size_t some = number(r, 1);

        b->component[l] =
            (kofn_matrix){NULL, some * b->rows, b->cols, b->cols, b->dtype};
        full += some;
    }
    return make_components(r, b, full);
}

/* Reads the specification of a dense block.  Nothing is believed: each size is
 * bounded and paid for from what the peer may spend before memory is asked
 * for. */
static kofn_status read_dense(reader *r, kf_block_spec *out)
{
    kf_block *b = out->block;
    size_t inner, full = 0;

    out->A_rows = number(r, SIZE_MAX / 16);
    out->A_cols = number(r, SIZE_MAX / 16);
    out->grid_rows = number(r, UINT16_MAX);
    out->grid_cols = number(r, UINT16_MAX);
    inner = number(r, UINT16_MAX);
    TRY(demand(r, out->A_rows && out->A_cols && out->grid_rows &&
                      out->grid_cols && inner && /* to make the block here: */
                      spend(r, out->grid_rows * out->grid_cols *
                                   sizeof(kofn_matrix))));
    out->part_rows = kf_ceil_div(out->A_rows, out->grid_rows);
    out->part_cols = kf_ceil_div(out->A_cols, out->grid_cols);
    /* the sub-blocks of a component stand side by side or below each other */
    TRY(demand(r, (b->rows == out->part_rows && b->cols % inner == 0 &&
                   b->cols / inner == out->part_cols) ||
                      (b->cols == out->part_cols && b->rows % inner == 0 &&
                       b->rows / inner == out->part_rows)));
    TRY(read_rows(r, out, b->components * inner));
    b->component = make(r, b->components, sizeof *b->component, 0);
    TRY(state(r));
    for (size_t l = 0; l < b->components; l++) {
        bool zero = inner == 1 && zero_component(out, &out->row[l]);

        b->component[l] =
            (kofn_matrix){NULL, zero ? 0 : b->rows, b->cols, b->cols, b->dtype};
        full += !zero;
    }
    return make_components(r, b, full);
}

static kofn_status read_sparse(reader *r, kf_block_spec *out)
{
    kf_block *b = out->block;
    size_t rows = 0, ends = 0, weights = 0;

    out->A_rows = number(r, SIZE_MAX / 2);
    out->A_cols = b->cols;
    b->entries = number(r, SIZE_MAX / 16);
    b->used = number(r, r->left / sizeof(uint64_t));
    TRY(demand(r, b->dtype == KOFN_F64 && b->cols && b->cols <= UINT32_MAX &&
                      b->rows && b->rows <= out->A_rows &&
                      kf_mul(b->used, b->rows, &rows) &&
                      kf_add(rows, 1, &ends) &&
                      kf_mul(b->components, b->used, &weights)));
    b->first = make(r, b->used, sizeof *b->first, sizeof(uint64_t));
    b->weight = make(r, weights, sizeof *b->weight, sizeof(double));
    b->own.ptr = make(r, ends, sizeof *b->own.ptr, 0);
    b->own.col = make(r, b->entries, sizeof *b->own.col, 0);
    b->own.val = make(r, b->entries, sizeof *b->own.val, 0);
    out->first = make(r, b->used, sizeof *out->first, 0);
    TRY(state(r));
    for (size_t j = 0; j < b->used; j++) {
        out->first[j] = number(r, SIZE_MAX / 2);
        b->first[j] = j * b->rows; /* here they stand one below the other */
    }
    get(r, b->weight, weights * sizeof *b->weight);
    b->own.rows = rows;
    b->own.cols = b->cols;
    b->A = &b->own;
    return demand(r, finite(b->weight, weights));
}

/* The function of that name, or the caller's own. */
static kofn_status find_function(reader *r, kf_subset *s,
                                 const kofn_serve_options *opt)
{
    char name[64] = "";
    size_t n = number(r, sizeof name - 1);

    get(r, name, n);
    s->f = opt->f;
    s->ctx = opt->ctx;
    for (const kofn_formula *k = opt->formulas; n && k && k->name; k++)
        if (!strcmp(k->name, name))
            s->formula = k;
    for (size_t i = 0; i < n; i++) /* it may be said to people */
        r->broken |= name[i] <= ' ' || name[i] > '~';
    TRY(state(r));
    if (n ? !s->formula : !s->f)
        return kf_fail(KOFN_UNSUITED,
                       "the job is a sum of a function%s%s that "
                       "this worker does not have; start a worker program "
                       "that gives it to kofn_serve",
                       n ? " " : "", name);
    if (n) {
        get(r, s->arg, sizeof s->arg);
        s->points = number(r, SIZE_MAX / 16);
        s->X.cols = s->X.ld = number(r, SIZE_MAX / 16);
    }
    return KOFN_OK;
}

/* Room for the rows of its parts, which are known. */
static kofn_status make_rows(reader *r, kf_block_spec *out, kf_subset *s)
{
    const kf_block *b = out->block;
    size_t most = 0, numbers = 0;

    out->A_rows = s->points;
    out->A_cols = s->X.cols;
    if (!s->formula)
        return KOFN_OK;
    TRY(demand(r, b->dtype == KOFN_F64 && s->points && s->X.cols &&
                      kf_mul(s->points, s->of, &most) &&
                      spend(r, s->parts * sizeof *s->at)));
    TRY(kf_subset_rows(s, true));
    TRY(demand(r, kf_mul(s->held, s->X.cols + 1, &numbers)));
    s->own = make(r, numbers, sizeof(double), 0);
    TRY(state(r));
    s->X.data = s->own;
    s->X.rows = s->held;
    s->y = (double *)s->own + s->held * s->X.cols;
    return KOFN_OK;
}

/* Reads the specification of a share of a sum.  All products of sizes are
 * formed with overflow checked, and coefficients must be finite. */
static kofn_status read_sum(reader *r, kf_block_spec *out,
                            const kofn_serve_options *opt)
{
    kf_block *b = out->block;
    kf_subset *s = make(r, 1, sizeof *s, 0);
    size_t wide = 0, mixes = 0, values = 0, answer = 0;

    b->subset = s;
    TRY(state(r));
    TRY(find_function(r, s, opt));
    s->components = b->components;
    s->of = number(r, UINT32_MAX);
    s->length = number(r, SIZE_MAX / 16);
    s->segments = number(r, UINT16_MAX);
    s->span = number(r, SIZE_MAX / 16);
    s->submessages = number(r, UINT16_MAX);
    s->parts = number(r, s->of);
    TRY(demand(r, spend(r, s->of) && s->segments && s->submessages && s->span &&
                      s->span >= kf_ceil_div(s->length, s->segments) &&
                      kf_mul(s->parts, s->segments, &wide) &&
                      kf_mul(wide, s->submessages * s->components, &mixes) &&
                      kf_mul(wide, s->span, &values) &&
                      kf_mul(s->segments, s->span, &answer) &&
                      kf_mul(s->components, s->span, &answer)));
    s->part = make(r, s->parts, sizeof *s->part, sizeof(uint64_t));
    s->mix = make(r, mixes, sizeof *s->mix, sizeof(double));
    s->value = make(r, values, sizeof(double), 0);
    TRY(state(r));
    for (size_t k = 0; k < s->parts; k++)
        s->part[k] = number(r, s->of - 1);
    get(r, s->mix, mixes * sizeof *s->mix);
    TRY(demand(r, finite(s->mix, mixes) && finite(s->arg, KOFN_FORMULA_ARGS)));
    return make_rows(r, out, s);
}

static void read_source(reader *r, kf_block_spec *out)
{
    size_t n = number(r, SOURCE_MOST);

    get(r, out->source, n);
    if (n) {
        get(r, &out->digest, sizeof out->digest);
        out->scaled = (unsigned)number(r, KF_SCALED_ROWS | KF_SCALED_COLS);
    }
    for (size_t i = 0; i < n; i++) /* it may be said to people */
        r->broken |=
            (unsigned char)out->source[i] < ' ' || out->source[i] == 0x7f;
}

static kofn_status read_block(reader *r, kf_block_spec *out,
                              const kofn_serve_options *opt)
{
    kf_block *b = out->block;
    size_t kind = number(r, KINDS - 1), strips;

    b->dtype = number(r, KOFN_F32) == KOFN_F32 ? KOFN_F32 : KOFN_F64;
    b->components = number(r, UINT16_MAX);
    b->rows = number(r, SIZE_MAX / 16);
    b->cols = number(r, SIZE_MAX / 16);
    read_source(r, out);
    TRY(demand(r, b->components > 0 &&
                      kf_mul(b->components, b->rows, &strips) &&
                      kf_mul(b->components, b->cols, &strips)));
    TRY(kind == SUM      ? read_sum(r, out, opt)
        : kind == SPARSE ? read_sparse(r, out)
        : kind == EMPTY  ? read_empty(r, out)
                         : read_dense(r, out));
    return state(r);
}

static kofn_status discard(kf_block_spec *r, kofn_status why)
{
    kf_block_drop(r->block);
    kf_block_spec_free(r);
    *r = (kf_block_spec){0};
    return why;
}

static kofn_status read_one(reader *r, kf_block_spec *out,
                            const kofn_serve_options *opt)
{
    kofn_status st;

    *out = (kf_block_spec){.block = kf_zero(1, sizeof *out->block)};
    if (!out->block)
        return KOFN_NOMEM;
    atomic_init(&out->block->refs, 1);
    st = read_block(r, out, opt);
    return st ? discard(out, st) : KOFN_OK;
}

/* Blocks of further operands: only their numbers come. */
static kofn_status read_others(reader *r, kf_block *last,
                               const kofn_serve_options *opt)
{
    kf_block_spec next;

    for (size_t n = 1; r->left > 0; n++, last = last->next) {
        TRY(demand(r, n < KOFN_OPERANDS_MOST && spend(r, sizeof *last)));
        TRY(read_one(r, &next, opt));
        last->next = next.block;
        kf_block_spec_free(&next);
        TRY(demand(r, !last->subset && !last->next->subset)); /* is alone */
    }
    return KOFN_OK;
}

kofn_status kf_block_spec_read(kf_block_spec *out, const void *bytes, size_t n,
                               const kofn_serve_options *opt)
{
    reader r = {
        .p = bytes, .left = n, .cap = opt->memory ? opt->memory : SIZE_MAX};
    kofn_status st;

    TRY(read_one(&r, out, opt));
    st = read_others(&r, out->block, opt);
    if (st)
        return discard(out, st);
    out->sections = kf_wire_sections(out->block);
    out->spare = r.cap;
    return KOFN_OK;
}

void kf_block_spec_free(kf_block_spec *r)
{
    kf_free(r->row);
    kf_free(r->numbers);
    kf_free(r->first);
    r->row = NULL;
    r->numbers = NULL;
    r->first = NULL;
}
