/* build.c -- a block made of the operand itself, where its worker can read it.
 *
 * The block that it makes is the caller's; the file is only read.  It is used
 * only when its digest is that of the coordinator's operand. */
#include "wire.h"

#include <assert.h>

static kofn_status other_numbers(void)
{
    return kf_fail(KOFN_SHAPE, "the operand's file is not what the coordinator "
                               "has: other numbers");
}

static kofn_status check_digest(const kf_block_spec *r, const kf_operand *o)
{
    uint64_t digest;

    TRY(kf_digest_block(r->block, o, &digest));
    return digest == r->digest ? KOFN_OK : other_numbers();
}

/* The sub-blocks of all components that are not zero. */
static size_t list_mixtures(const kf_block_spec *r, kf_mixed *jobs)
{
    const kf_block *b = r->block;
    size_t inner = r->rows / b->components, n = 0;
    bool below = b->rows > r->part_rows;

    assert(r->rows % b->components == 0);
    for (size_t i = 0; i < r->rows; i++) {
        kofn_matrix *component = &b->component[i / inner], sub = *component;
        size_t t = i % inner;

        sub.rows = r->part_rows;
        sub.cols = r->part_cols;
        if (!component->rows)
            continue;
        sub.data = below ? kf_at(component, t * sub.rows, 0)
                         : kf_at(component, 0, t * sub.cols);
        jobs[n++] = (kf_mixed){&r->row[i], sub, 1};
    }
    return n;
}

static kofn_status build_dense(kf_block_spec *r, const kofn_matrix *A)
{
    size_t parts = r->grid_rows * r->grid_cols;
    kf_mixed *jobs = kf_new(r->rows, sizeof *jobs);
    kf_parts grid = {0};
    kofn_status st = jobs ? KOFN_OK : KOFN_NOMEM;

    if (!st)
        st = kf_parts_new(&grid, A, r->grid_rows, r->grid_cols);
    if (!st)
        st = check_digest(r, &(kf_operand){.parts = parts,
                                           .part = grid.part,
                                           .row = r->row,
                                           .rows = r->rows});
    if (!st)
        st = kf_mix(jobs, list_mixtures(r, jobs), grid.part, parts,
                    r->part_rows, r->part_cols);
    kf_parts_free(&grid);
    kf_free(jobs);
    r->built = r->block->components;
    return st;
}

/* Sections [0, n) as slices of a block at the coordinator, put where they
 * go. */
static kofn_status copy_sections(kf_block_spec *r, const kf_block *whole,
                                 size_t n)
{
    assert(n <= kf_wire_sections(r->block));
    for (size_t section = 0; section < n; section++) {
        kf_bytes scratch = {0};
        size_t units, bytes, there;
        const void *at;
        kofn_status st;

        kf_wire_section(r->block, section, &units, &bytes);
        kf_wire_section(whole, section, &there, &bytes);
        if (there != units)
            return other_numbers();
        if (units == 0)
            continue;
        st = kf_slice_from(whole, section, 0, units, &scratch, &at);
        if (!st)
            memcpy(kf_slice_into(r->block, section, 0), at, units * bytes);
        kf_bytes_free(&scratch);
        TRY(st);
    }
    r->built = n;
    return KOFN_OK;
}

static kofn_status build_sparse(kf_block_spec *r, const kofn_sparse *S)
{
    kf_block whole = *r->block;

    TRY(check_digest(r, &(kf_operand){.parts = kf_ceil_div(S->rows, whole.rows),
                                      .sparse = S,
                                      .span = whole.rows,
                                      .first = r->first}));
    whole.A = S;
    whole.first = r->first;
    whole.own = (kofn_sparse){0};
    whole.next = NULL; /* operands after it are not of this file */
    TRY(copy_sections(r, &whole, kf_wire_sections(&whole)));
    return kf_slices_check(r->block);
}

/* Rows of X; the numbers that go with them still have to come. */
static kofn_status build_rows(kf_block_spec *r, const kofn_matrix *X)
{
    kf_subset subset = *r->block->subset;
    kf_block whole = {.subset = &subset};
    kofn_status st;

    TRY(check_digest(r, &(kf_operand){.parts = subset.of, .X = X}));
    subset.X = *X;
    TRY(kf_subset_rows(&subset, false));
    st = copy_sections(r, &whole, 1);
    kf_free(subset.at);
    return st;
}

/* Builds from a copy that is scaled as the coordinator's copy is
 * (src/data/equilibrate.c). */
static kofn_status build_scaled(kf_block_spec *r, const kofn_matrix *A)
{
    kf_scaling levels;
    kofn_matrix scaled = {NULL, 0, 0, 0, A->dtype};
    kofn_status st;

    TRY(kf_scaling_of(A, r->scaled & KF_SCALED_ROWS, r->scaled & KF_SCALED_COLS,
                      &levels));
    st = kf_scaling_copy(A, levels.row, levels.col, 1, &scaled);
    if (!st)
        st = build_dense(r, &scaled);
    kf_scaling_free(&levels);
    kf_free(scaled.data);
    return st;
}

static kofn_status build_scaled_sparse(kf_block_spec *r, const kofn_sparse *S)
{
    kofn_sparse scaled = *S;
    kf_scaling levels;
    double *val;
    kofn_status st;

    TRY(kf_scaling_of_sparse(S, r->scaled & KF_SCALED_COLS, &levels));
    st = kf_scaling_values(S, &levels, &val);
    scaled.val = val;
    if (!st)
        st = build_sparse(r, &scaled);
    kf_scaling_free(&levels);
    kf_free(val);
    return st;
}

/* Bytes, at most: while columns are measured there is another. */
static size_t copy_of(const kofn_matrix *A, const kofn_sparse *S)
{
    return A ? 2 * A->rows * A->cols * kf_dtype_size(A->dtype)
             : S->ptr[S->rows] * sizeof *S->val;
}

kofn_status kf_block_spec_build(kf_block_spec *r, const kofn_matrix *A,
                                const kofn_sparse *S)
{
    kf_block *b = r->block;

    if (!(b->A ? (const void *)S : (const void *)A) ||
        (b->subset && !b->subset->formula))
        return kf_fail(KOFN_SHAPE, "the operand is not of the kind that the "
                                   "block specification is for");
    if (b->A ? S->rows != r->A_rows || S->cols != r->A_cols
             : A->rows != r->A_rows || A->cols != r->A_cols ||
                   A->dtype != b->dtype)
        return kf_fail(KOFN_SHAPE,
                       "the operand's file is not what the "
                       "coordinator has: %zu x %zu numbers of its type",
                       r->A_rows, r->A_cols);
    if (r->scaled && !b->subset && copy_of(A, S) > r->spare)
        return kf_fail(
            KOFN_UNSUITED,
            "the operand's file is not used: its scaled copy takes %zu "
            "bytes, more than the %zu bytes of this worker's memory limit",
            copy_of(A, S), r->spare);
    if (r->scaled && !b->subset)
        return b->A ? build_scaled_sparse(r, S) : build_scaled(r, A);
    return b->subset ? build_rows(r, A)
           : b->A    ? build_sparse(r, S)
                     : build_dense(r, A);
}
