/* block.c -- the block of a seat, and products with it.
 *
 * A dense block is coded before it is sent.  Each component is a linear
 * combination of parts of A, or a view of A if the row of coefficients is a
 * unit vector.  A sparse block is not coded, because a combination of sparse
 * parts is denser than all of them together.  Instead a seat holds the plain
 * parts that its rows name, and mixes their products.  For a linear operation
 * the result is the same.
 *
 * Blocks have counted references and are freed with the last one.  The operand
 * is borrowed until the job is closed.  A component that is a view of A must
 * not be written. */
#include "data.h"

#include "code/operation.h"

#include <assert.h>
#include <math.h>

/* ---- the resident operand ------------------------------------------------ */

kofn_status kf_resident_dense(kf_resident *r, const kofn_plan *plan,
                              const kofn_matrix *A)
{
    const kofn_layout *L = &plan->layout;

    *r = (kf_resident){.plan = plan, .by = 1};
    return kf_parts_new(&r->parts, A, L->groups * L->cut[0].rows,
                        L->cut[0].cols);
}

void kf_resident_shape(kf_resident *r, const kofn_plan *plan)
{
    const kofn_layout *L = &plan->layout;
    size_t rows = L->groups * L->cut[0].rows, cols = L->cut[0].cols;

    *r = (kf_resident){.plan = plan,
                       .by = 1,
                       .parts = {.count = rows * cols,
                                 .rows = kf_ceil_div(L->problem.m, rows),
                                 .cols = kf_ceil_div(L->problem.n, cols)}};
}

kofn_status kf_resident_sparse(kf_resident *r, const kofn_plan *plan,
                               const kofn_sparse *A)
{
    *r = (kf_resident){.plan = plan, .view = *A, .by = 1};
    for (size_t e = 0; e < A->ptr[A->rows]; e++)
        r->most = kf_larger(r->most, fabs(A->val[e]));
    if (plan->layout.cut[0].cols != 1)
        return kf_fail(KOFN_UNSUITED,
                       "scheme %s cuts columns, which a sparse matrix does not "
                       "allow; choose another scheme or a dense matrix",
                       plan->scheme->name);
    r->A = &r->view;
    return KOFN_OK;
}

void kf_resident_sum(kf_resident *r, const kofn_plan *plan)
{
    *r = (kf_resident){.plan = plan, .by = 1};
}

kofn_status kf_resident_away(kf_resident *r)
{
    r->away = true;
    r->digest =
        kf_zero(r->plan->parts, r->plan->layout.groups * sizeof *r->digest);
    return r->digest ? KOFN_OK : KOFN_NOMEM;
}

void kf_resident_free(kf_resident *r)
{
    kf_parts_free(&r->parts);
    kf_free(r->digest);
    r->digest = NULL;
    r->A = NULL;
}

/* Returns the number of part j of a group among the parts of all groups, which
 * are numbered down the columns of the whole grid. */
size_t kf_data_part_index(const kofn_plan *p, size_t group, size_t j)
{
    size_t rows = p->layout.cut[0].rows;

    assert(group < p->layout.groups);
    assert(j < p->parts);
    return j / rows * rows * p->layout.groups + group * rows + j % rows;
}

const kofn_matrix *kf_resident_part(const kf_resident *r, size_t group,
                                    size_t j)
{
    assert(!r->A);
    return &r->parts.part[kf_data_part_index(r->plan, group, j)];
}

/* ---- references ---------------------------------------------------------- */

kf_block *kf_block_keep(kf_block *b)
{
    assert(atomic_load(&b->refs) > 0);
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

static void free_block(kf_block *b)
{
    kf_subset_free(b->subset);
    kf_free(b->component);
    kf_free(b->owned);
    for (size_t i = 0; i < b->states; i++)
        kf_free(b->state[i]);
    kf_buffer_drop(b->of);
    kf_free(b->first);
    kf_free(b->weight);
    kf_free((void *)(uintptr_t)b->own.ptr);
    kf_free((void *)(uintptr_t)b->own.col);
    kf_free((void *)(uintptr_t)b->own.val);
    kf_free(b);
}

void kf_block_drop(kf_block *b)
{
    while (b && atomic_fetch_sub(&b->refs, 1) == 1) {
        kf_block *next = b->next;

        free_block(b);
        b = next;
    }
}

kf_block *kf_block_of(const kf_block *b, uint32_t operand)
{
    for (; b && operand > 0; operand--)
        b = b->next;
    return (kf_block *)(uintptr_t)b;
}

kofn_status kf_block_around(kf_block **out, kf_buffer *of, size_t components,
                            size_t rows, size_t cols)
{
    size_t each = rows * cols * kf_dtype_size(of->m.dtype);
    kf_block *b;

    assert(components * each <= kf_buffer_bytes(of));
    *out = NULL;
    TRY_ZERO(b, 1);
    b->component = kf_new(components, sizeof *b->component);
    if (!b->component) {
        kf_free(b);
        return KOFN_NOMEM;
    }
    atomic_init(&b->refs, 1);
    b->components = components;
    b->rows = rows;
    b->cols = cols;
    b->dtype = of->m.dtype;
    for (size_t l = 0; l < components; l++)
        b->component[l] = (kofn_matrix){(char *)of->m.data + l * each, rows,
                                        cols, cols, b->dtype};
    b->of = kf_buffer_keep(of);
    *out = b;
    return KOFN_OK;
}

static kofn_status block_new(kf_block **out, const kf_resident *r, size_t group)
{
    const kofn_layout *L = &r->plan->layout;
    kf_block *b;

    assert(group < L->groups);
    TRY_ZERO(*out, 1);
    b = *out;
    atomic_init(&b->refs, 1);
    b->from = r;
    b->group = group;
    b->components = L->components;
    if (r->plan->op->factors > 0)
        kf_operation_block(L, &b->rows, &b->cols);
    b->dtype = L->problem.dtype;
    return KOFN_OK;
}

/* ---- memory of all components
 * --------------------------------------------------
 */

bool kf_block_state_bytes(const kf_block *b, size_t *bytes)
{
    return kf_mul(b->rows, b->cols, bytes) &&
           kf_mul(*bytes, b->components, bytes) &&
           kf_mul(*bytes, kf_dtype_size(b->dtype), bytes);
}

kofn_status kf_block_room(const kf_block *b, void **out)
{
    size_t bytes;

    if (!kf_block_state_bytes(b, &bytes))
        return kf_nomem(SIZE_MAX);
    *out = kf_zero(bytes, 1);
    return *out ? KOFN_OK : KOFN_NOMEM;
}

kofn_matrix kf_block_component(const kf_block *b, void *all, size_t l)
{
    size_t each = b->rows * b->cols * kf_dtype_size(b->dtype);

    assert(l < b->components);
    return (kofn_matrix){all ? (char *)all + l * each : NULL,
                         b->component[l].rows, b->cols, b->cols, b->dtype};
}

/* ---- sparse: choose the parts -------------------------------------------- */

/* Makes a sparse block.  Sub-blocks that are below each other are components
 * here, with the rows of a part. */
static kofn_status sparse_block(const kf_resident *r, const kf_seat *rows,
                                size_t group, kf_block *b)
{
    size_t parts = r->plan->parts, inner = r->plan->layout.inner;
    size_t *place;

    assert(b->rows % inner == 0);
    TRY_NEW(place, parts);
    b->components *= inner;
    b->rows /= inner;
    memset(place, 0xff, parts * sizeof *place);
    for (size_t l = 0; l < b->components; l++)
        for (size_t e = 0; e < rows->E0[l].n; e++)
            if (place[rows->E0[l].col[e]] == SIZE_MAX)
                place[rows->E0[l].col[e]] = b->used++;
    b->A = r->A;
    b->first = kf_new(b->used, sizeof *b->first);
    b->weight = kofn_layout_table(b->components, b->used);
    if (b->first && b->weight)
        for (size_t l = 0; l < b->components; l++)
            for (size_t e = 0; e < rows->E0[l].n; e++) {
                size_t j = rows->E0[l].col[e];

                b->first[place[j]] =
                    kf_data_part_index(r->plan, group, j) * b->rows;
                b->weight[l * b->used + place[j]] = rows->E0[l].val[e];
            }
    kf_free(place);
    return b->first && b->weight ? KOFN_OK : KOFN_NOMEM;
}

/* ---- dense: view or combine ---------------------------------------------- */

static bool plain_component(const kf_resident *r, const kf_row *row)
{
    return r->plan->layout.inner == 1 &&
           (row->n == 0 ||
            (row->n == 1 && row->val[0] == 1 && r->by == 1 && !r->lent));
}

/* Places the sub-blocks of a component if its products are summed: side by
 * side, or below each other in A' A x. */
static void lay_out_sub_blocks(const kf_resident *r, const kf_seat *rows,
                               size_t l, kofn_matrix *component,
                               kf_mixed *mixed, size_t *count)
{
    size_t inner = r->plan->layout.inner;
    bool below = r->plan->op->below;

    for (size_t t = 0; t < inner; t++) {
        kofn_matrix sub = *component;

        sub.data = below ? kf_at(component, t * r->parts.rows, 0)
                         : kf_at(component, 0, t * r->parts.cols);
        sub.rows = r->parts.rows;
        sub.cols = r->parts.cols;
        mixed[(*count)++] = (kf_mixed){&rows->E0[l * inner + t], sub, r->by};
    }
}

/* Makes views for plain components, and memory for coded components unless they
 * are made later. */
static kofn_status lay_out(const kf_resident *r, const kf_seat *rows,
                           size_t group, kf_block *b, kf_mixed *mixed,
                           size_t *count)
{
    size_t size = kf_dtype_size(b->dtype), coded = 0, next = 0;
    size_t inner = r->plan->layout.inner;

    TRY_NEW(b->component, b->components);
    for (size_t l = 0; l < b->components; l++)
        coded += !plain_component(r, &rows->E0[l]);
    for (size_t i = 0; i < b->components * inner; i++)
        TRY(kf_range_row(r, &rows->E0[i]));
    if (coded && !r->away &&
        !(b->owned = kf_new(coded * b->rows, b->cols * size)))
        return KOFN_NOMEM;
    b->coded = rows->E0;
    for (size_t l = 0; l < b->components; l++) {
        const kf_row *row = &rows->E0[l];

        b->component[l] =
            (kofn_matrix){NULL, b->rows, b->cols, b->cols, b->dtype};
        if (plain_component(r, row) && row->n == 0) {
            b->component[l].rows = 0;
        } else if (plain_component(r, row)) {
            b->component[l] = *kf_resident_part(r, group, row->col[0]);
        } else if (!r->away) {
            b->component[l].data =
                (char *)b->owned + next++ * b->rows * b->cols * size;
            lay_out_sub_blocks(r, rows, l, &b->component[l], mixed, count);
        }
    }
    return KOFN_OK;
}

/* Makes all coded components of one group in one pass over its parts. */
static kofn_status combine_components(const kf_resident *r, size_t group,
                                      const kf_mixed *mixed, size_t n)
{
    const kofn_plan *p = r->plan;
    kofn_matrix *part;
    kofn_status st;

    assert(n > 0);
    TRY_NEW(part, p->parts);
    for (size_t j = 0; j < p->parts; j++)
        part[j] = *kf_resident_part(r, group, j);
    st = kf_mix(mixed, n, part, p->parts, r->parts.rows, r->parts.cols);
    kf_free(part);
    return st;
}

/* Blocks of some seats, and the mixtures for those of a group. */
typedef struct encoding {
    const size_t *seats;
    size_t count;
    kf_block **blocks;
    kf_mixed *mixed;
} encoding;

static kofn_status encode_group(const encoding *e, const kf_resident *r,
                                kf_code *code, size_t g)
{
    const kofn_plan *p = r->plan;
    size_t count = 0;

    for (size_t i = 0; i < e->count; i++) {
        kf_block **block = &e->blocks[i];
        size_t seat = e->seats[i];
        const kf_seat *rows;

        if (kf_group(p, seat) != g)
            continue;
        TRY(block_new(block, r, g));
        (*block)->row = kf_local(p, seat) * p->layout.submessages;
        if (p->op->factors == 0) {
            TRY(kf_subset_new(&(*block)->subset, r, code, seat));
            continue;
        }
        TRY(kf_code_seat(code, kf_local(p, seat), &rows));
        TRY(r->A ? sparse_block(r, rows, g, *block)
                 : lay_out(r, rows, g, *block, e->mixed, &count));
    }
    return count ? combine_components(r, g, e->mixed, count) : KOFN_OK;
}

/* Drops all blocks if one failed. */
static kofn_status drop_unless(kofn_status st, kf_block **blocks, size_t n)
{
    for (size_t i = 0; st && i < n; i++) {
        kf_block_drop(blocks[i]);
        blocks[i] = NULL;
    }
    return st;
}

kofn_status kf_data_encode(const kf_resident *r, kf_code *code,
                           const size_t *seats, size_t n, kf_block **blocks)
{
    const kofn_layout *L = &r->plan->layout;
    encoding e = {.seats = seats,
                  .count = n,
                  .blocks = blocks,
                  .mixed =
                      kf_new(n * L->components, L->inner * sizeof *e.mixed)};
    kofn_status st = e.mixed ? KOFN_OK : KOFN_NOMEM;

    memset(blocks, 0, n * sizeof *blocks);
    for (size_t g = 0; g < L->groups && !st; g++)
        st = encode_group(&e, r, code, g);
    kf_free(e.mixed);
    return drop_unless(st, blocks, n);
}

/* ---- empty --------------------------------------------------------------- */

/* Makes an empty block. Components that mix nothing have no rows, as in
 * encoding. */
static kofn_status empty_block(const kf_resident *r, kf_code *code, size_t seat,
                               kf_block **out)
{
    const kofn_plan *p = r->plan;
    const kf_seat *rows;
    kf_block *b;

    assert(!r->A);
    assert(p->op->factors > 0);
    TRY(kf_code_seat(code, kf_local(p, seat), &rows));
    TRY(block_new(out, r, kf_group(p, seat)));
    b = *out;
    b->row = kf_local(p, seat) * p->layout.submessages;
    b->empty = b->changes = true;
    TRY_ZERO(b->component, b->components);
    if (!r->away)
        TRY(kf_block_room(b, &b->owned));
    for (size_t l = 0; l < b->components; l++) {
        b->component[l].rows = rows->E0[l].n ? b->rows : 0;
        b->component[l] = kf_block_component(b, b->owned, l);
    }
    return KOFN_OK;
}

kofn_status kf_data_empty_blocks(const kf_resident *r, kf_code *code,
                                 const size_t *seats, size_t n,
                                 kf_block **blocks)
{
    kofn_status st = KOFN_OK;

    memset(blocks, 0, n * sizeof *blocks);
    for (size_t i = 0; i < n && !st; i++)
        st = empty_block(r, code, seats[i], &blocks[i]);
    return drop_unless(st, blocks, n);
}
