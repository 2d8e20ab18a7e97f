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

/* Element (i, j). */
static inline void *kf_at(const kofn_matrix *a, size_t i, size_t j)
{
    return (char *)a->data + (i * a->ld + j) * kf_dtype_size(a->dtype);
}

/* Number i of some. */
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

/* Memory for numbers that are not set yet; to be freed is its `data`. */
kofn_status kf_mat_new(kofn_matrix *out, size_t rows, size_t cols,
                       kofn_dtype type);
/* n numbers as float64, and such as numbers of another type. */
void kf_mat_widen(const void *from, size_t n, kofn_dtype type, double *to);
void kf_mat_narrow(const double *from, size_t n, kofn_dtype type, void *to);
/* Rows of one matrix, as far as they go, into those of another. */
void kf_mat_copy(const kofn_matrix *from, const kofn_matrix *to);

/* Shape, ld and pointer make sense; `name` is what the message calls it. */
kofn_status kf_mat_check_matrix(const kofn_matrix *a, const char *name);
kofn_status kf_mat_check_sparse(const kofn_sparse *a, const char *name);
/* No NaN, no infinity. */
kofn_status kf_mat_check_finite(const kofn_matrix *a, const char *name);
/* Powers of two: where no element is as large, mixtures lose digits. */
#define KF_MAT_TINY_F64 (-300)
#define KF_MAT_TINY_F32 (-60)
/* The same, and how large elements are: none is larger than *most, which is the
 * largest of them unless they are all far from the upper end of the range and some
 * from the lower. */
kofn_status kf_mat_check_range(const kofn_matrix *a, const char *name,
                               double *most);
/* The largest magnitude; NaN if there is one. */
double kf_mat_most(const kofn_matrix *a);
/* Index of the first element that is NaN or infinite; n when none is.  Runs
 * at the speed of memory. */
size_t kf_mat_first_odd(const void *x, size_t n, kofn_dtype dtype);

/* ---- parts --------------------------------------------------------------- */

/* A dense operand cut into a grid of equal parts, part j at row j % rows,
 * column j / rows of the grid.  Parts that lie inside the operand are views of
 * it; those over its edge are copies padded with zeros; those beyond it have
 * no rows. */
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
/* c = a b, each of them transposed where that is said; c need not be contiguous.
 * One BLAS call. */
void kf_mat_multiply_turned(const kofn_matrix *a, bool turn_a,
                            const kofn_matrix *b, bool turn_b, kofn_matrix *c);
/* to = from', as many rows and columns as `to` has, which lies elsewhere. */
void kf_mat_turn(const kofn_matrix *from, const kofn_matrix *to);
/* c = a a', of which only what is right of and above the diagonal is written. */
void kf_mat_square(const kofn_matrix *a, kofn_matrix *c);
/* c = beta c + alpha a' b. */
void kf_mat_add_turned(const kofn_matrix *a, const kofn_matrix *b, double alpha,
                       double beta, kofn_matrix *c);
/* Rows [lo, hi) of a sparse a times b, float64; c contiguous. */
void kf_mat_multiply_sparse(const kofn_sparse *a, size_t lo, size_t hi,
                            const kofn_matrix *b, double *c);
/* c += b times rows lo, lo + 1, ... of a sparse a, as many as b has columns;
 * float64, c contiguous. */
void kf_mat_multiply_by_sparse(const kofn_matrix *b, const kofn_sparse *a,
                               size_t lo, double *c);

/* Sets one BLAS thread per caller from now on; returns the number before, or 0
 * when the BLAS at hand has no way to say.  A thread that computes calls it as
 * well: where OpenMP or BLIS keep the number for each thread that is its own. */
int kf_blas_single(void);
void kf_blas_restore(int threads);

typedef struct kf_blas {
    char name[160];     /* of the library and its kernels, for people        */
    const char *better; /* what OPENBLAS_CORETYPE should have been, or NULL  */
    const char *slow;   /* "many times slower ..." and what mends it, or NULL */
    int threads;        /* 1 when kf_blas_single sees to it, 0: not known    */
} kf_blas;
/* Looks at the BLAS that computes. */
void kf_blas_look(kf_blas *b);

#endif
