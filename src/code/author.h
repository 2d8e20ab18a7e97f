/* author.h -- what the schemes of the library have besides <kofn/scheme.h>: points,
 * small systems, and single rows of the families of coefficients.
 *
 * What is declared here is for files of src/schemes; nothing of it allocates
 * for longer than a call but what the layout then owns. */
#ifndef KF_CODE_AUTHOR_H
#define KF_CODE_AUTHOR_H

#include <kofn/scheme.h>

/* cos and sin of 2 pi num / den with the angle reduced exactly. */
void kf_code_cossin(uint64_t num, uint64_t den, double *cosine, double *sine);

/* Solves P X = B in place of B; P is n x n and is destroyed.  KOFN_UNSTABLE
 * when a pivot is zero. */
kofn_status kf_solve(size_t n, double *P, size_t ldp, size_t cols, double *B,
                     size_t ldb);
/* D G = W: G is results x symbols, W is wants x symbols. */
typedef struct kf_equation {
    size_t results, symbols;
    const double *G;
    size_t wants;
    const double *W;
} kf_equation;
/* D = W G^+: of all D that come closest to D G = W the smallest, whatever the
 * shape and rank of G (pseudo.c). */
kofn_status kf_pseudo(const kf_equation *q, double *D, double *condition);

/* An (n, k) code of a family.  With weight w > 0 a seat mixes only w of the k
 * blocks, cyclically placed (quaternion, gauss). */
typedef struct kf_family {
    kofn_basis basis;
    size_t n, k, weight;
    uint64_t seed;
    const void *state; /* HAAR: what kf_basis_prepare made; else NULL */
} kf_family;
/* Results a seat of this family answers together: 4 for quaternions, else 1. */
size_t kf_basis_lanes(kofn_basis b);
/* Fresh rows beyond the first n exist. */
bool kf_basis_open(kofn_basis b);
/* Tables that need the whole matrix at once (HAAR) are made here; *state is freed
 * with kofn_free.  NULL for the others. */
kofn_status kf_basis_prepare(kofn_basis b, size_t n, size_t k, uint64_t seed,
                             void **state);
/* Rows of seat i: lanes x (lanes * k). */
void kf_basis_rows(const kf_family *f, size_t i, double *rows);

#endif
