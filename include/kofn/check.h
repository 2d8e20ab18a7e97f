/* check.h -- tests whether C = A B, wherever C was computed.
 *
 * For programs that get a product from hardware or software that may be faulty:
 * a GPU, another BLAS, another cluster.  It needs no workers and no codes.
 *
 * The test passes over the matrices a few times.  It compares random sums of
 * the rows and columns of C with the same sums of A B.  Entries at which sums
 * disagree are computed again, and the wrong ones are listed.  The limits are
 * described in docs/errors.md and proved in docs/math/errors.md.
 */
#ifndef KOFN_CHECK_H
#define KOFN_CHECK_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A wrong entry of C. */
typedef struct kofn_wrong {
    size_t row, col;
    double was, is; /* value in C; value of A B, rounded to the type of C */
} kofn_wrong;

/* The result of a check.  The library allocates it; release it with
 * kofn_findings_free. */
typedef struct kofn_findings {
    size_t size; /* size of this struct in the library */
    /* Error floor: an undetected error of entry (i, j) is at most floor times
     * the norm of row i of A times the norm of column j of B.  With a
     * tolerance: times the largest of these products of norms. */
    double floor;
    kofn_wrong *entry; /* the wrong entries, sorted by row */
    size_t entries;
    size_t *row, *col; /* rows and columns with wrong entries */
    size_t rows, cols;
    /* True if entry[] has all wrong entries.  False if there are more than can
     * be computed again in 64 passes. */
    bool complete;
} kofn_findings;

/* Compares C with A B.  C is only read, and may be A or B.  The types may
 * differ; rounding is then allowed for the least exact type.
 *
 * An entry is right if its error is not larger than rounding in any order of
 * summation can make it.  It is also right if its error is at most `tolerance`
 * times the largest row norm of A times the largest column norm of B.  Give a
 * tolerance for products that are less exact: low precision, Strassen's
 * algorithm, coded workers.  NaN or infinity in C is wrong, unless the product
 * overflows there.
 *
 * With KOFN_OK and KOFN_CORRUPT, *out is set; free it with kofn_findings_free.
 * Otherwise it is NULL.
 * KOFN_OK: all entries are right.
 * KOFN_CORRUPT: some entries are wrong; *out lists them.
 * KOFN_INVAL: a matrix is missing, or `tolerance` is not in 0 .. 1.
 * KOFN_SHAPE: the shapes do not agree.
 * KOFN_NONFINITE: A or B has a NaN or an infinity.
 * KOFN_IO: the system has no random numbers. */
KOFN_API kofn_status kofn_check_product(kofn_operand A, const kofn_matrix *B,
                                        const kofn_matrix *C, double tolerance,
                                        kofn_findings **out);
/* Compares like kofn_check_product a C that was computed in float16 and is
 * given as float64 or float32.  Products and sums may be rounded to float16,
 * and kofn_wrong.is is too.  A and B in float16 need no special function: the
 * wider types hold all of their numbers.
 * It returns the statuses of kofn_check_product. */
KOFN_API kofn_status kofn_check_product_half(kofn_operand A,
                                             const kofn_matrix *B,
                                             const kofn_matrix *C,
                                             double tolerance,
                                             kofn_findings **out);
/* Writes the correct values of entry[] into C.  If it fails, C is unchanged.
 * Allocates no memory.
 * KOFN_CORRUPT: entry[] is not complete.
 * KOFN_NONFINITE: a correct value is too large for the type of C.
 * KOFN_INVAL, KOFN_SHAPE: f or C is missing, or C is not the checked matrix. */
KOFN_API kofn_status kofn_correct(const kofn_findings *f, kofn_matrix *C);
/* Frees findings; NULL is allowed. */
KOFN_API void kofn_findings_free(kofn_findings *f);

#ifdef __cplusplus
}
#endif
#endif
