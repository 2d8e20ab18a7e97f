/* qr.h -- Householder's QR, for pseudo.c and parity.c.
 *
 * Its arrays are the caller's, who has filled A in. */
#ifndef KF_QR_H
#define KF_QR_H

#include "code.h"

/* m x n, m >= rank: below the diagonal the tails of the reflectors, whose
 * heads are 1; on and above it the triangle. */
typedef struct kf_qr {
    size_t m, n, rank;
    double *A, *tau;
    size_t *pick;   /* column that came to j; NULL: in order               */
    double nothing; /* with pick: what is left is rounding, and nothing, if
                       it is no more than that of the first column ...     */
    double cliff;   /* ... nor than that of the column before              */
    bool even;      /* columns are of about the same size, so that none has to
                       be scaled before its numbers are squared            */
    double *v, *w;  /* scratch: m; the widest that is reflected            */
} kf_qr;

/* Room for A, of zeros, in order; `wide` columns may be reflected. */
void kf_qr_new(kf_qr *f, kf_arrays *a, size_t m, size_t n, size_t wide);
/* With `pick` the largest column that is left always comes next. */
void kf_qr_factor(kf_qr *f);
/* B -= tau v (v' B), rows j..m-1, v from column j of A. */
void kf_qr_reflect(const kf_qr *f, size_t j, size_t cols, double *B,
                   size_t ldb);

#endif
