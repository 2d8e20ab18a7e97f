/* kernel.h -- the products of workers with their blocks: a table of kernels.
 *
 * Rows of the table are constant.  A kernel writes only its output, owns
 * nothing, and returns soon after it is stopped. */
#ifndef KF_DATA_KERNEL_H
#define KF_DATA_KERNEL_H

#include "data.h"

#include <assert.h>

/* A worker's own function for products. */
typedef struct kf_user_multiply {
    kofn_multiply_fn multiply;
    void *ctx;
    uint64_t version; /* of the blocks; 0: the block comes with its task */
    double work;      /* preferred multiply-adds of one call */
} kf_user_multiply;

/* A KF_MSG_WORK for a kernel. */
typedef struct kf_work {
    const kofn_matrix *in;
    kofn_matrix *out;
    size_t lo, hi;
    size_t submessage; /* number among the rows that the block answers */
    uint32_t product;
    size_t state;            /* to read: 0 is A, others are optimizer states */
    bool left;               /* `in` is to the left of the block */
    bool (*stopped)(void *); /* called now and then; may be NULL */
    void *ud;
    const kf_user_multiply *user; /* NULL: BLAS */
} kf_work;

static inline bool kf_is_stopped(const kf_work *w)
{
    return w->stopped && w->stopped(w->ud);
}

/* The number of components of a block, and the rows and columns of each. */
typedef struct kf_extent {
    size_t components, rows, cols;
} kf_extent;

/* Returns KOFN_AGAIN if it was stopped. */
typedef kofn_status kf_kernel_fn(const kf_block *b, const kf_work *w);

typedef struct kf_kernel {
    kf_how how;
    /* The rounds that it serves: of these operations, in codes that are
     * transposed (adjoint) or not. */
    unsigned ops;
    bool adjoint;
    bool left;  /* the input is to the left of the block */
    bool inner; /* the input is summed over, in strips [lo, hi) */
    /* Kernels by the kind of block; NULL: not supported.  An operation that is
     * `sparse` (operation.h) needs a sparse one for all its codes. */
    kf_kernel_fn *dense, *sparse, *sum;
    /* Computes rows and columns of the result.  False if they overflow a size_t
     * or the input does not fit.  The input is not validated before. */
    bool (*gives)(const kf_extent *b, const kf_work *w, size_t *rows,
                  size_t *cols);
    double (*cost)(const kf_block *b, const kf_work *w); /* multiply-adds */
} kf_kernel;

/* Returns the kernel, or NULL for an unknown number. */
const kf_kernel *kf_kernel_of(kf_how how);
/* Returns the kernel that workers use in a round of this plan. */
const kf_kernel *kf_kernel_for(const kofn_plan *use);
/* Returns the extent of the blocks of a plan. */
kf_extent kf_extent_of(const kofn_plan *p);

/* ---- kernels (dense.c, sparse.c, subset.c) --------------------------------
 */

/* Dense kernels of rows and of sums serve both sides. */
kf_kernel_fn kf_data_rows_dense, kf_data_inner_dense, kf_data_gram_dense,
    kf_data_read_dense;
kf_kernel_fn kf_data_rows_sparse, kf_data_left_rows_sparse,
    kf_data_left_inner_sparse, kf_data_gram_sparse;
kf_kernel_fn kf_subset_submessage, kf_subset_part;

/* Computes to = A B, or to += A B if `add`, with the worker's own function.
 * `whole` of the factors is the component with the rows and columns of A, or of
 * B if `left` (user_multiply.c). */
kofn_status kf_user_multiply_tiles(const kf_work *w, const kofn_factors *f,
                                   bool add, void *to);
/* Does the same as kf_work_do, with products by `own`; NULL: BLAS. */
kofn_status kf_work_with(const kf_block *b, const kf_msg *m,
                         const kf_user_multiply *user, bool (*stopped)(void *),
                         void *ud);

/* Returns the entries of the plain parts in strips [lo, hi). */
double kf_data_sparse_entries(const kf_block *b, size_t lo, size_t hi);

/* Work between two tests for a stop, so that a canceled task ends within about
 * a millisecond.  BLAS is fast only with at least KF_LOOK_UP_DEPTH terms in a
 * sum. */
#define KF_LOOK_UP_WORK 2e6
#define KF_LOOK_UP_DEPTH 256

/* Returns the number of strips at a time if each takes `each` multiply-adds.
 * `deep`: they are strips of a matrix product's inner dimension. */
static inline size_t kf_stride(double each, bool deep)
{
    double n = KF_LOOK_UP_WORK / (each + 1),
           least = deep ? KF_LOOK_UP_DEPTH : 1;

    assert(each >= 0);
    return n < least ? (size_t)least : (size_t)n;
}

#endif
