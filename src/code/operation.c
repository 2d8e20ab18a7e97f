/* operation.c -- the table of operations.
 *
 * Constant data and functions of it.  An operation is not known anywhere else
 * but in the kernels of src/data/work.c. */
#include "operation.h"

/* Pieces of a sum that are longer than this begin on a line of the cache, of so
 * many float32 numbers. */
#define LONG_PIECE 4096
#define LINE 16

/* ---- strips -------------------------------------------------------------- */

/* Strips run along the rows of a result, which are those of the first factor;
 * in an adjoint code along the side that is summed. */
static size_t rows_of_part(const kofn_layout *L)
{
    return kf_ceil_div(L->problem.m, L->groups * L->cut[0].rows);
}

static size_t along_A(const kofn_layout *L)
{
    return L->adjoint ? kf_ceil_div(L->problem.n, L->cut[0].cols)
                      : rows_of_part(L);
}

static size_t along_input(const kofn_layout *L)
{
    return L->adjoint ? rows_of_part(L)
                      : kf_ceil_div(L->problem.p, L->cut[1].rows);
}

static size_t all_rows(const kofn_layout *L)
{
    return L->problem.m;
}

static size_t all_columns(const kofn_layout *L)
{
    return L->problem.n;
}

/* A vector is padded with zeros to whole segments; of a short one the last are
 * nothing else.  Those that begin on lines of the cache pad the last one only.
 */
static size_t along_segment(const kofn_layout *L)
{
    size_t span = kf_ceil_div(L->problem.m, L->wants);
    bool pays = span >= LONG_PIECE && span / LINE >= L->wants;

    return pays ? kf_ceil_div(span, LINE) * LINE : span;
}

/* ---- the table ----------------------------------------------------------- */

static const kf_operation operations[] = {
    {
        .op = KOFN_MATVEC,
        .name = "A x",
        .in = {KF_N, KF_P},
        .out = {KF_M, KF_P},
        .factors = 1,
        .over = KF_OVER_COLS,
        .vector = true,
        .sparse = true,
        .checked = true,
        .span = along_A,
    },
    {
        .op = KOFN_MATMUL,
        .name = "A B",
        .in = {KF_N, KF_P},
        .out = {KF_M, KF_P},
        .factors = 1,
        .over = KF_OVER_COLS,
        .sparse = true,
        .checked = true,
        .span = along_A,
    },
    {
        .op = KOFN_LEFT,
        .name = "B A",
        .in = {KF_P, KF_M},
        .out = {KF_P, KF_N},
        .factors = 1,
        .over = KF_OVER_ROWS,
        .left = true,
        .sparse = true,
        .checked = true,
        .span = along_input,
    },
    {
        .op = KOFN_GRAM,
        .name = "A' A x",
        .in = {KF_N, KF_P},
        .out = {KF_N, KF_P},
        .factors = 2,
        .over = KF_OVER_COLS | KF_OVER_ROWS,
        .vector = true,
        .sparse = true,
        .whole = true,
        .below = true,
        .checked = true,
        .span = all_columns,
    },
    {
        .op = KOFN_SUM,
        .name = "a sum of functions",
        .in = {KF_N, KF_P},
        .out = {KF_M, KF_ONE},
        .over = KF_OVER_ROWS,
        .whole = true,
        .checked = true,
        .span = along_segment,
    },
    {
        .op = KF_PARTS,
        .name = "the parts of a sum",
        .in = {KF_N, KF_P},
        .out = {KF_M, KF_ONE},
        .over = KF_OVER_ROWS,
        .whole = true,
        .span = all_rows,
    },
    {
        .op = KOFN_STREAM,
        .name = "a stream of products",
        .in = {KF_N, KF_P},
        .out = {KF_M, KF_P},
        .factors = 1,
        .over = KF_OVER_COLS,
        .stream = true,
        .checked = true,
        .span = along_A,
    },
    {
        .op = KF_READ,
        .name = "A itself",
        .in = {KF_ONE, KF_ONE},
        .out = {KF_M, KF_N},
        .factors = 1,
        .checked = true,
        .span = rows_of_part,
    },
};

const kf_operation *kf_operation_of(kofn_op op)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].op == op)
            return &operations[i];
    return NULL;
}

const kf_operation *kf_operation_of_layout(const kofn_layout *L)
{
    return kf_operation_of(L->problem.op);
}

/* ---- shapes -------------------------------------------------------------- */

size_t kf_size_of(const kofn_problem *pb, kf_size size)
{
    switch (size) {
    case KF_ONE:
        break;
    case KF_M:
        return pb->m;
    case KF_N:
        return pb->n;
    case KF_P:
        return pb->p;
    }
    return 1;
}

void kf_operation_block(const kofn_layout *L, size_t *rows, size_t *cols)
{
    *rows = rows_of_part(L);
    *cols = kf_ceil_div(L->problem.n, L->cut[0].cols);
    *(kf_operation_of_layout(L)->below ? rows : cols) *= L->inner;
}

/* Four, so that what a straggler has done of its share counts; fewer where BLAS
 * would have so few rows at a time that packing the other factor shows.  What
 * takes no time anyway is not looked at. */
#define PIECES 4
#define PIECE_ROWS 256
#define PIECE_COLS 64
#define PIECE_WORK 1e7 /* multiply-adds */

size_t kf_operation_pieces(const kofn_layout *L)
{
    const kf_operation *op = kf_operation_of_layout(L);
    size_t high = op->span(L), deep, cols, rows;

    kf_operation_block(L, &rows, &cols);
    deep = op->left ? rows : cols;
    if (!op->left) { /* lanes are multiplied together */
        high *= L->lanes;
        cols = kf_ceil_div(L->problem.p, L->cut[1].cols);
    }
    if (L->problem.sparse || cols < PIECE_COLS ||
        (double)high * (double)deep * (double)cols < PIECES * PIECE_WORK)
        return PIECES;
    return kf_min(PIECES, kf_max(1, high / PIECE_ROWS));
}
