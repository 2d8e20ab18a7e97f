/* fuzz_block_spec.c -- fuzzes block specifications: the input itself, a good
 * one with some bytes changed, and a made one. An accepted block gets a task.
 *
 * fuzz-iterations: 400000 */
#include "forge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY ((size_t)64 << 10)

/* Fills the ends of rows. Most often they ascend to the number of entries. */
static void fill_ends(const kf_block *b, draw *d)
{
    size_t end = 0, *to = kf_slice_into(b, 0, 0);

    for (size_t i = 0; i < b->A->rows; i++) {
        end += kf_min(next(d, 3), b->entries - end);
        to[i] = i + 1 < b->A->rows ? end : b->entries;
    }
    if (b->A->rows && next(d, 16) == 1)
        to[next(d, 256) % b->A->rows] = size_of(d, 1);
}

static void fill_columns(const kf_block *b, draw *d)
{
    uint32_t *to = kf_slice_into(b, 1, 0);

    for (size_t e = 0; e < b->entries; e++)
        to[e] = next(d, 256) % (uint32_t)b->cols;
    if (b->entries && next(d, 16) == 1)
        to[next(d, 256) % b->entries] = (uint32_t)size_of(d, b->cols);
}

/* Fills all sections. Every byte that may come must have its place. */
static void fill(const kf_block_spec *r, draw *d)
{
    const kf_block *b = r->block;

    for (size_t s = 0; s < r->sections; s++) {
        size_t units, bytes;

        kf_wire_section(b, s, &units, &bytes);
        MUST(bytes > 0 && units <= MEMORY / bytes + 1);
        if (units)
            memset(kf_slice_into(b, s, 0), 0, units * bytes);
    }
    if (b->A && b->own.ptr) {
        fill_ends(b, d);
        fill_columns(b, d);
    }
    kf_slices_check(b);
}

/* The worker's own function: it fills its whole output. */
static kofn_status ones(void *ctx, size_t part, size_t parts,
                        const kofn_matrix *in, kofn_matrix *out)
{
    (void)ctx;
    (void)in;
    MUST(part < parts && out->cols == 1);
    for (size_t i = 0; i < out->rows; i++) {
        if (out->dtype == KOFN_F64)
            *(double *)kf_at(out, i, 0) = 1;
        else
            *(float *)kf_at(out, i, 0) = 1;
    }
    return KOFN_OK;
}

static void build(kf_block_spec *r)
{
    static double zeros[4096];
    kofn_matrix A = {zeros, r->A_rows, r->A_cols, r->A_cols, r->block->dtype};
    kofn_status st;

    if (r->block->A || !A.rows || !A.cols || A.rows > 4096 / A.cols)
        return;
    st = kf_block_spec_build(r, &A, NULL);
    MUST(st == KOFN_OK || st == KOFN_SHAPE || st == KOFN_NOMEM);
}

/* Computes a task. If it fits, its sizes must not wrap round. Small tasks are
 * computed. */
static void work(const kf_block *b, const kf_head *h)
{
    __extension__ typedef unsigned __int128 wide;
    kofn_matrix in = {NULL, h->rows, h->cols, h->cols, h->dtype};
    kofn_matrix out = {NULL, h->out_rows, h->out_cols, h->out_cols, h->dtype};
    kf_msg m = {
        .how = h->how, .lo = h->lo, .hi = h->hi, .row = h->row, .product = 1};

    if (kf_work_fits(b, &m, &in, &out))
        return;
    if (b->subset)
        MUST((wide)b->subset->components * b->subset->span == out.rows);
    else if (m.how <= KF_HOW_LEFT_ROWS || m.how == KF_HOW_READ)
        MUST(m.lo < m.hi && (wide)b->components * (m.hi - m.lo) == out.rows);
    most = held + ((size_t)64 << 20); /* scratch */
    if (in.rows > 256 || in.cols > 256 || out.rows > 256 || out.cols > 256)
        return;
    MUST(kf_buffer_new(&m.in, in.rows, in.cols, in.dtype) == KOFN_OK);
    MUST(kf_buffer_new(&m.result, out.rows, out.cols, out.dtype) == KOFN_OK);
    memset(m.in->m.data, 0, kf_buffer_bytes(m.in));
    kf_work_do(b, &m, NULL, NULL);
    kf_buffer_drop(m.in);
    kf_buffer_drop(m.result);
}

static void read(const uint8_t *bytes, size_t n, const kf_head *task, draw *d)
{
    kofn_serve_options o = KOFN_SERVE_OPTIONS_INIT;
    size_t before = held;
    kofn_status st;
    kf_block_spec r;

    o.memory = MEMORY;
    o.f = ones;
    most = held + MEMORY + 4096;
    st = kf_block_spec_read(&r, bytes, n, &o);
    MUST(st == KOFN_OK || st == KOFN_FORMAT || st == KOFN_UNSUITED);
    if (st == KOFN_OK) {
        fill(&r, d);
        most += 4 * MEMORY;
        build(&r);
        if (task && kf_slices_check(r.block) == KOFN_OK)
            work(r.block, task);
        kf_block_spec_free(&r);
        kf_block_drop(r.block);
    }
    most = SIZE_MAX;
    MUST(held == before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    draw d = {data, size}, none = {data, 0};
    kf_head task = {0};
    const sample *s;
    uint8_t *copy;
    forged f;

    watch_memory();
    read(data, size, NULL, &none);
    forge(&f, &d);
    forge_task(&f, &d, &task);
    read(f.p, f.n, &task, &d);
    d = (draw){data, size};
    s = &samples()[next(&d, BLOCKS)];
    copy = malloc(s->block_spec.n);
    MUST(copy);
    memcpy(copy, s->block_spec.p, s->block_spec.n);
    while (d.left) {
        size_t at = (next(&d, 256) + 256 * next(&d, 4)) % s->block_spec.n;

        copy[at] = (uint8_t)next(&d, 256);
    }
    read(copy, s->block_spec.n, NULL, &d);
    free(copy);
    return 0;
}
