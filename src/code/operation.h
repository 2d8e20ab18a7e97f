/* operation.h -- what is computed with the resident operand: one row each.
 *
 * Rows are constant and owned by nobody; code that depends on an operation
 * asks its row and never its number. */
#ifndef KF_CODE_OPERATION_H
#define KF_CODE_OPERATION_H

#include <kofn/scheme.h>

#include "base/base.h"

/* A number of rows or columns, by its name in kofn_problem. */
typedef enum kf_size { KF_ONE, KF_M, KF_N, KF_P } kf_size;
typedef struct kf_shape {
    kf_size rows, cols;
} kf_shape;

/* The dimensions of A that are summed over for an entry of the output. */
enum { KF_OVER_COLS = 1, KF_OVER_ROWS = 2 }; /* of A; parts of a sum are rows */

typedef struct kf_operation {
    kofn_op op;
    const char *name; /* as people read it */
    kf_shape in, out;
    unsigned factors; /* so often A is a factor of the output; 0: there is no A
                         but a function of the input                          */
    unsigned over;    /* KF_OVER_*                                            */
    bool left;        /* the input stands to the left of A                    */
    bool vector;      /* the input has one column                             */
    bool sparse;  /* of a sparse A too: its kernel in src/data computes it */
    bool whole;   /* answers are not to be had strip by strip             */
    bool below;   /* sub-blocks of a lane (layout.inner) stand one below the
                         other, not side by side                              */
    bool stream;  /* A comes with the input, of every product another one;
                         nothing is resident and work brings its block     */
    bool checked; /* wrong answers can be told from rounding              */
    /* Strips of a block, for a transposed code or not. */
    size_t (*span)(const kofn_layout *L);
} kf_operation;

/* Is there an A, and do workers keep blocks of it from product to product? */
static inline bool kf_operation_is_resident(const kf_operation *op)
{
    return op->factors > 0 && !op->stream;
}

/* A is read: strips of blocks as they stand.  Of readers only (blocks.c), no
 * problem of anybody's. */
#define KF_READ ((kofn_op)(1 << 30))
/* Each part of a sum, from one worker that holds it (alone.c), likewise. */
#define KF_PARTS ((kofn_op)(1 << 29))

/* NULL when there is none. */
const kf_operation *kf_operation_of(kofn_op op);
/* The same of an operation that is known to be one. */
const kf_operation *kf_operation_of_layout(const kofn_layout *L);

size_t kf_size_of(const kofn_problem *pb, kf_size size);

/* Rows and columns of a lane of a block, with its sub-blocks. */
void kf_operation_block(const kofn_layout *L, size_t *rows, size_t *cols);
/* In how many results a worker's share is best sent, where nobody says. */
size_t kf_operation_pieces(const kofn_layout *L);

#endif
