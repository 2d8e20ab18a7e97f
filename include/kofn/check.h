/* check.h -- is C = A B, from wherever C came?
 *
 * For whoever has a product from hardware or people that may be wrong; no workers
 * and no codes are needed.
 *
 * A product of a GPU, of a vendor's BLAS, of somebody else's cluster is compared
 * with its operands in a few passes over them: sums of the rows and of the columns
 * of C with random weights against the same sums of A B.  Where these disagree
 * the entries are computed again, and those that are wrong are named.
 * docs/errors.md says what is found; docs/math/errors.md why.
 */
#ifndef KOFN_CHECK_H
#define KOFN_CHECK_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kofn_wrong {
    size_t row, col;
    double was, is; /* in C; of A B, rounded to the type of C */
} kofn_wrong;

typedef struct kofn_findings {
    size_t size;       /* of this struct as the library has it              */
    double floor;      /* what may have been missed: entry (i, j) may be off by
                          that times the norm of row i of A times that of column j
                          of B; with a tolerance times the largest of these  */
    kofn_wrong *entry; /* that are wrong, by rows                           */
    size_t entries;
    size_t *row, *col; /* rows and columns in which something is wrong      */
    size_t rows, cols;
    bool complete; /* all that is wrong is in entry[]; else there is more of it
                      than is worth computing again                         */
} kofn_findings;

/* KOFN_OK: all entries are right.  KOFN_CORRUPT: some are not, and *out says
 * which.  C is only read, and may be A or B.  Types may differ: what rounding may
 * do is that of the coarsest.  An entry is right that is no further from the
 * exact one than any order of summation may leave it, or than `tolerance` times
 * the largest norm of a row of A times the largest of a column of B: for products
 * that are computed in less precision, or by way of others (Strassen's, coded
 * ones).  A and B must be finite; what is not in C is wrong, unless the product
 * overflows.  *out is set in both
 * cases, else NULL; kofn_findings_free. */
KOFN_API kofn_status kofn_check_product(kofn_operand A, const kofn_matrix *B,
                                        const kofn_matrix *C, double tolerance,
                                        kofn_findings **out);
/* The same of a C in float16, which is given as float64 or float32: products and
 * sums may be rounded to float16, and `is` is.  A and B in float16 need nothing:
 * the wider types have all their numbers. */
KOFN_API kofn_status kofn_check_product_half(kofn_operand A,
                                             const kofn_matrix *B,
                                             const kofn_matrix *C,
                                             double tolerance,
                                             kofn_findings **out);
/* Put what entry[] has into C.  KOFN_CORRUPT, and C is as it was, where that is
 * not all that is wrong; KOFN_NONFINITE likewise where some of it is more than C's
 * type holds. */
KOFN_API kofn_status kofn_correct(const kofn_findings *f, kofn_matrix *C);
KOFN_API void kofn_findings_free(kofn_findings *f);

#ifdef __cplusplus
}
#endif
#endif
