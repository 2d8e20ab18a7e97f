/* build.c -- a block made of the operand itself, where its worker can read it.
 *
 * The block that it makes is the caller's; the file is only read.  It is used
 * only when its digest is that of the coordinator's operand. */
#include "wire.h"

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

/* The sub-blocks of all lanes that are not zero. */
static size_t list_mixtures(const kf_block_spec *r, kf_mixed *jobs)
{
    const kf_block *b = r->block;
    size_t inner = r->rows / b->lanes, n = 0;
    bool below = b->rows > r->part_rows;

    for (size_t i = 0; i < r->rows; i++) {
        kofn_matrix *lane = &b->lane[i / inner], sub = *lane;
        size_t t = i % inner;

        sub.rows = r->part_rows;
        sub.cols = r->part_cols;
        if (!lane->rows)
            continue;
        sub.data =
            below ? kf_at(lane, t * sub.rows, 0) : kf_at(lane, 0, t * sub.cols);
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
    r->built = r->block->lanes;
    return st;
}

/* Sections [0, n) as pieces of a block at the coordinator, put where they
 * go. */
static kofn_status copy_sections(kf_block_spec *r, const kf_block *whole,
                                 size_t n)
{
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
        st = kf_piece_from(whole, section, 0, units, &scratch, &at);
        if (!st)
            memcpy(kf_piece_into(r->block, section, 0), at, units * bytes);
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
    return kf_pieces_check(r->block);
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
 * (src/data/raise.c). */
static kofn_status build_raised(kf_block_spec *r, const kofn_matrix *A)
{
    kf_levels levels;
    kofn_matrix raised = {NULL, 0, 0, 0, A->dtype};
    kofn_status st;

    TRY(kf_levels_of(A, r->raised & KF_RAISED_ROWS, r->raised & KF_RAISED_COLS,
                     &levels));
    st = kf_level_copy(A, levels.row, levels.col, 1, &raised);
    if (!st)
        st = build_dense(r, &raised);
    kf_levels_free(&levels);
    kf_free(raised.data);
    return st;
}

static kofn_status build_raised_sparse(kf_block_spec *r, const kofn_sparse *S)
{
    kofn_sparse raised = *S;
    kf_levels levels;
    double *val;
    kofn_status st;

    TRY(kf_levels_of_sparse(S, r->raised & KF_RAISED_COLS, &levels));
    st = kf_level_values(S, &levels, &val);
    raised.val = val;
    if (!st)
        st = build_sparse(r, &raised);
    kf_levels_free(&levels);
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
    if (r->raised && !b->subset && copy_of(A, S) > r->spare)
        return kf_fail(
            KOFN_UNSUITED,
            "the operand's file is not used: its scaled copy takes %zu "
            "bytes, more than the %zu bytes of this worker's memory limit",
            copy_of(A, S), r->spare);
    if (r->raised && !b->subset)
        return b->A ? build_raised_sparse(r, S) : build_raised(r, A);
    return b->subset ? build_rows(r, A)
           : b->A    ? build_sparse(r, S)
                     : build_dense(r, A);
}
