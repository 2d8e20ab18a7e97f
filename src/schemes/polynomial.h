/* polynomial.h -- the shape of a polynomial code, which polynomial.c settles
 * and points.c turns into the rows of a seat.
 *
 * Shapes are values without an owner; nothing in a shape may depend on a seat.
 */
#ifndef KF_POLYNOMIAL_H
#define KF_POLYNOMIAL_H

#include "code/author.h"

#define KF_ROOT_TWO 1.41421356237309504880

/* The evaluation points, in the order of the choices of the parameter basis. */
typedef enum kf_points {
    KF_CIRCLE,
    KF_COMPLEX,
    KF_CHEBYSHEV,
    KF_MONOMIAL,
    KF_VANDERMONDE,
    KF_QUATERNION
} kf_points;

/* A is cut m x n and the input n x p (p x m in B A).  Part (i, j) of A has the
 * exponent eu i + ev j.  Along the summed axis the exponents of the input run
 * backwards.  So terms that belong to one product have the same total exponent.
 *
 *     A B:  part (j, k)     ev (n-1-j) + ew k
 *           product (i, k)  eu i + ev (n-1) + ew k
 *     B A:  part (k, i)     eu (m-1-i) + ew k
 *           product (k, j)  eu (m-1) + ev j + ew k
 */
typedef struct kf_cut_shape {
    size_t m, n, p;
    size_t eu, ev, ew;
    bool left;
    size_t sum, es;  /* parts along the summed axis of A, its exponent */
    size_t kept, ek; /* parts along the other, its exponent            */
    size_t K;        /* coefficients of the product                    */
    size_t points;   /* different points in use */
    kf_points basis;
} kf_cut_shape;

/* Returns the number of answers that determine the coefficients; a complex
 * answer counts twice. */
static inline size_t kf_answers(const kf_cut_shape *s)
{
    return s->basis == KF_COMPLEX ? (s->K + 1) / 2 : s->K;
}

/* Computes the other sizes from m, n and p for entangled polynomial codes. */
void kf_schemes_entangle(kf_cut_shape *s);
/* Makes the cuts, symbols and wants of codes on points. */
kofn_status kf_schemes_tables(kofn_layout *L, const kf_cut_shape *s);
/* The same functions for quaternions times reals.  Each row block has four
 * sub-blocks and a seat has four results.  The first K seats are plain. */
kofn_status kf_schemes_khatri_rao(kofn_layout *L, const kf_cut_shape *s);
kofn_status kf_schemes_khatri_rao_seat(const kofn_layout *L,
                                       const kf_cut_shape *s, size_t seat,
                                       double *E0, double *E1, double *G);

/* Returns the number of answers, from n workers, that surely include K
 * different points of the circle.  In the worst case the first answers share
 * the K-1 points with most workers.  One answer more is enough. */
static inline size_t kf_points_threshold(size_t n, size_t angles, size_t K)
{
    return n / angles * (K - 1) + kf_min(K - 1, n % angles) + 1;
}

/* Returns the reason why the basis cannot serve this shape, or NULL. */
const char *kf_points_refuse(const kf_cut_shape *s);
/* Fills W, wants x K, if the wants are not the symbols themselves. */
void kf_points_wants(const kf_cut_shape *s, double *W);
/* Makes the rows of a seat, as kofn_scheme.seat. */
kofn_status kf_points_seat(const kofn_layout *L, const kf_cut_shape *s,
                           size_t seat, double *E0, double *E1, double *G);

#endif
