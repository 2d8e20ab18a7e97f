/* kernel.h -- what workers compute with a block: one row a kernel.
 *
 * Rows of kernels are constant.  A kernel writes its output and nothing else,
 * owns nothing, and returns soon once it is stopped. */
#ifndef KF_DATA_KERNEL_H
#define KF_DATA_KERNEL_H

#include "data.h"

/* A worker's own way to multiply. */
typedef struct kf_own {
    kofn_multiply_fn multiply;
    void *ctx;
    uint64_t version; /* of the blocks; 0: of one that comes with its task */
    double work;      /* multiply-adds to ask for at a time */
} kf_own;

/* A KF_MSG_WORK, as a kernel sees it. */
typedef struct kf_work {
    const kofn_matrix *in;
    kofn_matrix *out;
    size_t lo, hi;
    size_t submessage; /* which of the rows that the block answers */
    uint32_t product;
    bool velocity;           /* read that */
    bool left;               /* `in` stands to the left of the block */
    bool (*stopped)(void *); /* asked now and then; may be NULL */
    void *ud;
    const kf_own *own; /* NULL: BLAS */
} kf_work;

static inline bool kf_is_stopped(const kf_work *w)
{
    return w->stopped && w->stopped(w->ud);
}

/* Lanes of a block, and rows and columns of each. */
typedef struct kf_extent {
    size_t lanes, rows, cols;
} kf_extent;

/* KOFN_AGAIN when it was stopped. */
typedef kofn_status kf_kernel_fn(const kf_block *b, const kf_work *w);

typedef struct kf_kernel {
    kf_how how;
    /* The rounds whose work it is: of these operations, in codes that are
     * transposed or in those that are not. */
    unsigned ops;
    bool adjoint;
    bool left;  /* the input stands to the left of the block             */
    bool inner; /* of each lane of the input only strips [lo, hi) matter */
    /* With blocks of a kind; NULL: it has no such.  An operation that is
     * `sparse` (operation.h) needs sparse ones where its codes are served. */
    kf_kernel_fn *dense, *sparse, *sum;
    /* Rows and columns of the result; false where they do not fit a size_t, or
     * it does not take this input, of which nothing is known to be true. */
    bool (*gives)(const kf_extent *b, const kf_work *w, size_t *rows,
                  size_t *cols);
    double (*cost)(const kf_block *b, const kf_work *w); /* multiply-adds */
} kf_kernel;

/* NULL for a number that is none. */
const kf_kernel *kf_kernel_of(kf_how how);
/* The kernel that workers run in a round of this plan. */
const kf_kernel *kf_kernel_for(const kofn_plan *use);
/* Of the blocks of a plan. */
kf_extent kf_extent_of(const kofn_plan *p);

/* ---- kernels (dense.c, sparse.c, subset.c) --------------------------------
 */

/* Dense ones of rows and of sums are for either side. */
kf_kernel_fn kf_data_rows_dense, kf_data_inner_dense, kf_data_gram_dense,
    kf_data_read_dense;
kf_kernel_fn kf_data_rows_sparse, kf_data_left_rows_sparse,
    kf_data_left_inner_sparse, kf_data_gram_sparse;
kf_kernel_fn kf_subset_submessage, kf_subset_part;

/* to = A B, or to += A B where `add`, as the worker multiplies itself; `whole`
 * of the factors is the lane that A, or where `left` B, is some rows and
 * columns of (own.c). */
kofn_status kf_own_multiply(const kf_work *w, const kofn_factors *f, bool add,
                            void *to);
/* kf_work_do, with products in that way; own: NULL for BLAS. */
kofn_status kf_work_with(const kf_block *b, const kf_msg *m, const kf_own *own,
                         bool (*stopped)(void *), void *ud);

/* Entries of the plain parts in strips [lo, hi). */
double kf_data_sparse_entries(const kf_block *b, size_t lo, size_t hi);

/* A worker looks up from its work after about this much of it, so that a
 * cancelled task ends within a millisecond or so; but BLAS is fast only when
 * it adds up so much at a time. */
#define KF_LOOK_UP_WORK 2e6
#define KF_LOOK_UP_DEPTH 256

/* Strips to do at a time, each of which is so much work; `deep`: those of a
 * matrix product's inner dimension. */
static inline size_t kf_stride(double each, bool deep)
{
    double n = KF_LOOK_UP_WORK / (each + 1),
           least = deep ? KF_LOOK_UP_DEPTH : 1;

    return n < least ? (size_t)least : (size_t)n;
}

#endif
