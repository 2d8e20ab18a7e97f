/* operation.c -- the table of operations.
 *
 * Constant data and functions of it.  Only this file and the kernels of
 * src/data/work.c know the single operations. */
#include "operation.h"

/* Pieces of a sum longer than LONG_PIECE start at a cache line of LINE float32
 * numbers. */
#define LONG_PIECE 4096
#define LINE 16

/* ---- strips -------------------------------------------------------------- */

/* Returns the number of strips of a part.  Strips run along the rows of a
 * result, which are rows of the first factor.  In an adjoint code they run
 * along the summed side. */
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

/* Returns the length of a segment.  A vector is padded with zeros to whole
 * segments; a short vector may leave the last segments empty.  Segments that
 * start at cache lines need padding only in the last one. */
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
        .served = "elastic, mds",
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
        .served = "elastic, mds, gpd",
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
        .served = "elastic, gpd",
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
        .served = "pcr",
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
        .served = "gc, agc",
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
        .served = "a plan for it",
        .in = {KF_N, KF_P},
        .out = {KF_M, KF_ONE},
        .over = KF_OVER_ROWS,
        .whole = true,
        .span = all_rows,
    },
    {
        .op = KOFN_STREAM,
        .name = "a stream of products",
        .served = "dip, idip",
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
        .served = "a plan for it",
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

/* Most pieces, so that the finished part of a straggler's share counts.  Fewer
 * are used if BLAS would get too few rows per call, because packing the other
 * factor then costs noticeable time.  Work below PIECE_WORK takes no time and
 * is always cut. */
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
    if (!op->left) { /* all components are multiplied together */
        high *= L->components;
        cols = kf_ceil_div(L->problem.p, L->cut[1].cols);
    }
    if (L->problem.sparse || cols < PIECE_COLS ||
        (double)high * (double)deep * (double)cols < PIECES * PIECE_WORK)
        return PIECES;
    return kf_min(PIECES, kf_max(1, high / PIECE_ROWS));
}
