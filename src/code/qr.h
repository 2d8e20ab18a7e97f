/* qr.h -- Householder's QR, for pseudo.c and parity.c.
 *
 * Its arrays belong to the caller, which fills A in. */
#ifndef KF_QR_H
#define KF_QR_H

#include "code.h"

/* A matrix and its factors.  A is m x n, m >= rank.  Below the diagonal are the
 * tails of the reflectors (their heads are 1); on and above it is the triangle.
 */
typedef struct kf_qr {
    size_t m, n, rank;
    double *A, *tau;
    size_t *pick;   /* original number of column j; NULL: no pivoting */
    double nothing; /* with pick: smaller norms are rounding, relative to the
                     * first column */
    double cliff;   /* the same, relative to the last column */
    bool even;      /* norms of columns are similar, and need no scaling */
    double *v, *w;  /* scratch: m numbers; the widest reflected matrix */
} kf_qr;

/* Allocates A as zeros, without pivoting; up to `wide` columns may be
 * reflected. */
void kf_qr_new(kf_qr *f, kf_arrays *a, size_t m, size_t n, size_t wide);
/* Factors A. With `pick`, each step takes the largest remaining column. */
void kf_qr_factor(kf_qr *f);
/* Computes B -= tau v (v' B) on rows j..m-1, with v from column j of A. */
void kf_qr_reflect(const kf_qr *f, size_t j, size_t cols, double *B,
                   size_t ldb);

#endif
