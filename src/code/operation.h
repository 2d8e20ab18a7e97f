/* operation.h -- the operations on the resident operand, one table row each.
 *
 * Rows are constant.  Code that depends on an operation reads its row and never
 * compares its number. */
#ifndef KF_CODE_OPERATION_H
#define KF_CODE_OPERATION_H

#include <kofn/scheme.h>

#include "base/base.h"

/* A number of rows or columns, by its name in kofn_problem. */
typedef enum kf_size { KF_ONE, KF_M, KF_N, KF_P } kf_size;
typedef struct kf_shape {
    kf_size rows, cols;
} kf_shape;

/* The dimensions of A that an entry of the output sums over. */
enum { KF_OVER_COLS = 1, KF_OVER_ROWS = 2 }; /* of A; parts of a sum are rows */

typedef struct kf_operation {
    kofn_op op;
    const char *name;   /* as printed */
    const char *served; /* schemes to take for it, as advice */
    kf_shape in, out;
    unsigned factors; /* times that A is a factor; 0: a function, no A */
    unsigned over;    /* KF_OVER_*                                            */
    bool left;        /* the input is to the left of A */
    bool vector;      /* the input has one column                             */
    bool sparse; /* also with a sparse A: a kernel in src/data computes it */
    bool whole;  /* answers come only as a whole, not by strips */
    bool
        below; /* sub-blocks of a component (layout.inner): rows, not columns */
    bool stream;  /* each product has its own A, sent with each task */
    bool checked; /* wrong answers can be distinguished from rounding */
    /* Returns the number of strips of a block, transposed code or not. */
    size_t (*span)(const kofn_layout *L);
} kf_operation;

/* True if there is an A, and workers keep blocks of it between products. */
static inline bool kf_operation_is_resident(const kf_operation *op)
{
    return op->factors > 0 && !op->stream;
}

/* Reads A: strips of blocks as they are.  Only readers use it (blocks.c); no
 * problem has it. */
#define KF_READ ((kofn_op)(1 << 30))
/* Each part of a sum from one worker that holds it (alone.c).  No problem has
 * it either. */
#define KF_PARTS ((kofn_op)(1 << 29))

/* Returns the row of an operation, or NULL. */
const kf_operation *kf_operation_of(kofn_op op);
/* Returns the row of the layout's operation, which exists. */
const kf_operation *kf_operation_of_layout(const kofn_layout *L);

size_t kf_size_of(const kofn_problem *pb, kf_size size);

/* Returns the rows and columns of a component of a block, with its sub-blocks.
 */
void kf_operation_block(const kofn_layout *L, size_t *rows, size_t *cols);
/* Returns the best number of results for a worker's share if none is given. */
size_t kf_operation_pieces(const kofn_layout *L);

#endif
