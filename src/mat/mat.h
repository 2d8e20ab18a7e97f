/* mat.h -- floor 1: operands cut into parts, and the products of strips.
 *
 * Parts are views of operands that must outlive them.  Nothing above this
 * floor may call BLAS. */
#ifndef KF_MAT_H
#define KF_MAT_H

#include "base/base.h"

static inline size_t kf_dtype_size(kofn_dtype t)
{
    return t == KOFN_F64 ? sizeof(double) : sizeof(float);
}

/* Returns the address of element (i, j). */
static inline void *kf_at(const kofn_matrix *a, size_t i, size_t j)
{
    return (char *)a->data + (i * a->ld + j) * kf_dtype_size(a->dtype);
}

/* Returns number i of an array of this type. */
static inline double kf_mat_number(const void *x, size_t i, kofn_dtype t)
{
    return t == KOFN_F64 ? ((const double *)x)[i]
                         : (double)((const float *)x)[i];
}

static inline double kf_mat_entry(const kofn_matrix *a, size_t i, size_t j)
{
    return kf_mat_number(a->data, i * a->ld + j, a->dtype);
}

static inline void kf_mat_put(const kofn_matrix *a, size_t i, size_t j,
                              double x)
{
    if (a->dtype == KOFN_F64)
        *(double *)kf_at(a, i, j) = x;
    else
        *(float *)kf_at(a, i, j) = (float)x;
}

/* Allocates a contiguous matrix without setting its numbers.  The caller frees
 * `data`. */
kofn_status kf_mat_new(kofn_matrix *out, size_t rows, size_t cols,
                       kofn_dtype type);
/* Convert n numbers to float64, and from float64 to another type. */
void kf_mat_widen(const void *from, size_t n, kofn_dtype type, double *to);
void kf_mat_narrow(const double *from, size_t n, kofn_dtype type, void *to);
/* Copies the rows of `from` to the first rows of `to`, which is at least as
 * large. */
void kf_mat_copy(const kofn_matrix *from, const kofn_matrix *to);

/* Check shape, ld and pointers.  A message calls the matrix `name`. */
kofn_status kf_mat_check_matrix(const kofn_matrix *a, const char *name);
kofn_status kf_mat_check_sparse(const kofn_sparse *a, const char *name);
/* Fails with KOFN_NONFINITE if a number is NaN or infinite. */
kofn_status kf_mat_check_finite(const kofn_matrix *a, const char *name);
/* Exponents of two.  Mixtures lose digits if all elements are smaller. */
#define KF_MAT_TINY_F64 (-300)
#define KF_MAT_TINY_F32 (-60)
/* Checks the same, and sets *most to the largest magnitude.  If no element is
 * near the upper end of the range, and some are not near the lower end, it may
 * be larger. */
kofn_status kf_mat_check_range(const kofn_matrix *a, const char *name,
                               double *most);
/* Returns the largest magnitude; NaN if an element is NaN. */
double kf_mat_most(const kofn_matrix *a);
/* Returns the index of the first NaN or infinite number; n if there is none.
 * Runs at the speed of memory. */
size_t kf_mat_first_odd(const void *x, size_t n, kofn_dtype dtype);

/* ---- parts --------------------------------------------------------------- */

/* A dense operand cut into a grid of equal parts.  Part j is at row j % rows,
 * column j / rows of the grid.  A part inside the operand is a view of it.  A
 * part across its edge is a copy padded with zeros.  A part beyond it has no
 * rows. */
typedef struct kf_parts {
    kofn_matrix *part;
    size_t count, rows, cols; /* of a whole part */
    char *padded;             /* the copies      */
} kf_parts;

kofn_status kf_parts_new(kf_parts *out, const kofn_matrix *a, size_t grid_rows,
                         size_t grid_cols);
void kf_parts_free(kf_parts *p);

/* ---- products ------------------------------------------------------------ */

/* c = a b, or c += a b, on contiguous c (rows of a x cols of b).  One BLAS
 * call. */
void kf_mat_multiply(const kofn_matrix *a, const kofn_matrix *b, bool add,
                     void *c);
/* c = a b, with a or b transposed if transpose_a or transpose_b is set.  c need
 * not be contiguous. One BLAS call. */
void kf_mat_multiply_transposed(const kofn_matrix *a, bool transpose_a,
                                const kofn_matrix *b, bool transpose_b,
                                kofn_matrix *c);
/* to = the first rows and columns of from', to fill `to`.  They must not
 * overlap. */
void kf_mat_transpose(const kofn_matrix *from, const kofn_matrix *to);
/* c = a a'.  Writes only the diagonal and the numbers above it. */
void kf_mat_square(const kofn_matrix *a, kofn_matrix *c);
/* c = beta c + alpha a' b. */
void kf_mat_add_transposed(const kofn_matrix *a, const kofn_matrix *b,
                           double alpha, double beta, kofn_matrix *c);
/* Rows [lo, hi) of a sparse a times b, float64; c contiguous. */
void kf_mat_multiply_sparse(const kofn_sparse *a, size_t lo, size_t hi,
                            const kofn_matrix *b, double *c);
/* c += b times rows lo to lo + b->cols - 1 of a sparse a; float64, c
 * contiguous. */
void kf_mat_multiply_by_sparse(const kofn_matrix *b, const kofn_sparse *a,
                               size_t lo, double *c);

/* Makes each later BLAS call use one thread.  Returns the former number, or 0
 * if this BLAS has no function for it.  Every computing thread calls it,
 * because OpenMP and BLIS keep a number for each thread. */
int kf_blas_single(void);
void kf_blas_restore(int threads);

typedef struct kf_blas {
    char name[160];     /* of the library and its kernels, to be printed     */
    const char *better; /* better value of OPENBLAS_CORETYPE, or NULL        */
    const char *slow;   /* "many times slower ..." and the remedy, or NULL   */
    int threads;        /* 1 if kf_blas_single has set it, 0: not known      */
} kf_blas;
/* Fills *b for the BLAS in use. */
void kf_blas_look(kf_blas *b);

#endif
