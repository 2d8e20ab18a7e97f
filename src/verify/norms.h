/* norms.h -- norms of the rows and columns of operands and inputs: the scale of
 * results.
 *
 * Arrays belong to the caller. */
#ifndef KF_NORMS_H
#define KF_NORMS_H

#include "data/data.h"

/* Compute norms of rows over parts side by side, or of columns over parts below
 * each other.  Parts without rows do not count.  Squares of entries may be
 * beyond the range of a double. */
kofn_status kf_norms_of_part_rows(const kofn_matrix *part, size_t parts,
                                  double *row, size_t rows);
/* Computes the norms of columns multiplied by a power of two. */
kofn_status kf_norms_of_columns(const kofn_matrix *part, size_t parts,
                                double by, double *col, size_t cols);
/* Computes the norms of the columns of A; a part has `cols` of them. */
kofn_status kf_norms_of_resident_columns(const kf_resident *r, double *col,
                                         size_t cols);
/* Computes the norms of the rows of the parts of A in a group, `span` of them,
 * scaled like the blocks (kf_resident.by). */
kofn_status kf_norms_of_rows(const kf_resident *r, size_t group, double *row);
/* Computes the norms of the rows of A in a group, or of its columns, and
 * allocates them.  If *out is not NULL it stays. */
kofn_status kf_norms_of_resident(const kf_resident *r, bool columns,
                                 size_t group, double **out);
/* Computes the norms of the columns of a product's input, or of the rows of the
 * input of a left product.  The input is `whole`, or cut and multiplied by
 * `by`.  The norms are ones if A itself is read. */
kofn_status kf_norms_of_input(const kofn_plan *use, const kf_parts *cut,
                              const kofn_matrix *whole, double by,
                              double **out);
/* Norms of a matrix that changes: of the rows of each group, then of its
 * columns. */
typedef struct kf_norms {
    double *const *norm;  /* upper bounds of the norms */
    double *const *speed; /* the same for the velocity */
    double *const *least; /* or NULL: least values of the norms, from when they
                           * were known or the largest step since, with decay */
} kf_norms;
/* Increases the bounds after a change. */
kofn_status kf_norms_grow(const kf_resident *r, const kofn_change *change,
                          const kofn_matrix *U, const kofn_matrix *V,
                          const kf_norms *n);

#endif
