/* author.h -- what the schemes of the library use in addition to
 * <kofn/scheme.h>: arrays, points, small systems, and single rows of the
 * families of coefficients.
 *
 * Only files of src/schemes and papers/schemes may use these declarations.
 * Memory that outlives a call belongs to the layout or to a list of arrays. */
#ifndef KF_CODE_AUTHOR_H
#define KF_CODE_AUTHOR_H

#include <kofn/scheme.h>

#include "base/base.h"

/* ---- arrays (arrays.c) --------------------------------------------------- */

/* Arrays that are freed together. Initialize with {0}. */
typedef struct kf_arrays {
    void *last; /* the newest array, with a link to the one before */
    bool failed;
} kf_arrays;

/* Allocate as kf_new, and a table of zeros as kofn_layout_table.  Return NULL
 * if there is no memory; kf_arrays_status reports a failure of any earlier
 * call. */
void *kf_arrays_new(kf_arrays *a, size_t n, size_t size);
double *kf_arrays_table(kf_arrays *a, size_t rows, size_t cols);
void kf_arrays_free(kf_arrays *a);

static inline kofn_status kf_arrays_status(const kf_arrays *a)
{
    return a->failed ? KOFN_NOMEM : KOFN_OK;
}

/* ---- arguments ----------------------------------------------------------- */

/* Chooses this value, at least 1, if none was given. */
static inline void kf_code_default(const kofn_layout *L, const char *name,
                                   size_t value)
{
    if (kofn_arg(L, name) == KOFN_AUTO)
        kofn_arg_choose(L, name, (long)kf_max(value, 1));
}

/* Returns the number of the n workers that may be slow or lost by default: a
 * quarter, at most 16.  Up to this number the accuracy of the default
 * coefficients is proven for any losses. */
static inline size_t kf_code_spare(size_t n)
{
    return kf_min(n < 8 ? n / 2 : n / 4, 16);
}

/* ---- small vectors and matrices ------------------------------------------ */

/* Returns the sum of products, added in order. */
static inline double kf_code_sum(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* `count` vectors of `length` numbers.  Neighbouring numbers of a vector are
 * `step` apart; the next vector starts `next` numbers later. */
typedef struct kf_vectors {
    size_t count, length;
    double *first;
    size_t next, step;
} kf_vectors;
/* Orthonormalises by Gram-Schmidt, twice for accuracy. */
void kf_code_orthonormalise(const kf_vectors *a);

/* Returns entry t of row l of L(q), the matrix of the left multiplication by q
 * (quaternion.c). */
static inline double kf_code_left_entry(const double *q, size_t l, size_t t)
{
    static const double sign[4][4] = {
        {1, -1, -1, -1}, {1, 1, -1, 1}, {1, 1, 1, -1}, {1, -1, 1, 1}};

    return sign[l][t] * q[l ^ t];
}

/* Computes rows over the products of parts if nothing is summed.  E1 is one row
 * of `cols`, or NULL for a whole input. */
static inline void kf_code_outer(size_t components, size_t rows, size_t cols,
                                 const double *E0, const double *E1, double *G)
{
    for (size_t l = 0; l < components; l++)
        for (size_t b = 0; b < cols; b++)
            for (size_t a = 0; a < rows; a++)
                G[(l * cols + b) * rows + a] =
                    E0[l * rows + a] * (E1 ? E1[b] : 1);
}

/* ---- points -------------------------------------------------------------- */

/* Returns the i-th of n Chebyshev points, in an order that separates neighbours
 * (math/numerics.md 3.2). */
double kf_code_chebyshev_point(size_t i, size_t n);
/* Computes T_0 .. T_{k-1} at x. */
void kf_code_chebyshev_row(double x, size_t k, double *row);
/* Computes the cosine and sine of 2 pi num / den.  The angle is reduced
 * exactly. */
void kf_code_cossin(uint64_t num, uint64_t den, double *cosine, double *sine);

/* ---- small systems ------------------------------------------------------- */

/* Solves P X = B and overwrites B with X.  P is n x n and is destroyed.  Fails
 * with KOFN_UNSTABLE if a pivot is zero. */
kofn_status kf_solve(size_t n, double *P, size_t ldp, size_t cols, double *B,
                     size_t ldb);
/* The equation D G = W: G is results x symbols, W is wants x symbols. */
typedef struct kf_equation {
    size_t results, symbols;
    const double *G;
    size_t wants;
    const double *W;
} kf_equation;
/* Computes D = W G^+.  This is the smallest of all D that come closest to D G =
 * W, for any shape and rank of G (pseudo.c). */
kofn_status kf_pseudo(const kf_equation *q, double *D, double *condition);

/* ---- decoders (first.c) -------------------------------------------------- */

/* Decodes answers that are sums of one class of parts, 0..classes-1.  All seats
 * of a class answer the same; the first answer of each class counts. */
kofn_status kf_code_first_of_each(const kofn_layout *L, size_t classes,
                                  size_t (*class_of)(const kofn_layout *,
                                                     size_t),
                                  const uint32_t *seats, size_t n, double *D);

/* ---- families of coefficients -------------------------------------------- */

/* The families of coefficients for "any k of n" (docs/numerics.md).  An
 * open-ended family has further rows for seats beyond the first n. */
#define KF_BASES "quaternion|harmonic|haar|gauss_sys|gauss"
typedef enum kf_basis {
    KF_BASIS_QUATERNION, /* [I; P], P of quaternions with dyadic components;
                            open-ended */
    KF_BASIS_HARMONIC,   /* real trigonometric frame                       */
    KF_BASIS_HAAR,       /* [I; P], P a slice of an orthogonal matrix      */
    KF_BASIS_GAUSS_SYS,  /* [I; P], P Gaussian; open-ended                 */
    KF_BASIS_GAUSS       /* Gaussian in all rows; open-ended */
} kf_basis;

/* The parameters k, basis and weight, for a scheme's table. */
#define KF_BASIS_PARAMS                                                        \
    {"k", KOFN_AUTO, 1, 100000, "threshold: any k answers are enough", NULL},  \
        {"basis",                                                              \
         KF_BASIS_QUATERNION,                                                  \
         0,                                                                    \
         0,                                                                    \
         "family of coefficients; others: mds-published",                      \
         KF_BASES},                                                            \
    {                                                                          \
        "weight", KOFN_AUTO, 0, 100000,                                        \
            "blocks a seat mixes, 0 for all; fewer where A is sparse", NULL    \
    }
/* Reads these parameters and sets the sizes.  A is cut into row blocks, and any
 * k/groups of n/groups seats of a group decode.  If k is not given it is n -
 * all_but. */
kofn_status kf_basis_layout(kofn_layout *L, size_t n, size_t groups,
                            size_t all_but);
/* The function seat() of a scheme with this basis. */
kofn_status kf_basis_seat(const kofn_layout *L, size_t seat, double *E0,
                          double *E1, double *G);

/* An (n, k) code of a family.  With weight w > 0 a seat mixes only w of the k
 * blocks, placed cyclically (quaternion, gauss). */
typedef struct kf_family {
    kf_basis basis;
    size_t n, k, weight;
    uint64_t seed;
    const void *state; /* HAAR: from kf_basis_prepare; else NULL */
} kf_family;
/* Returns the number of results that a seat answers together: 4 for
 * quaternions, else 1. */
size_t kf_basis_components(kf_basis b);
/* True if the family has new rows for seats beyond the first n. */
bool kf_basis_open(kf_basis b);
/* Makes the table of HAAR, which needs the whole matrix at once.  *state is
 * freed with kofn_free; it is NULL for other families. */
kofn_status kf_basis_prepare(kf_basis b, size_t n, size_t k, uint64_t seed,
                             void **state);
/* Makes the rows of seat i: components x (components * k). */
void kf_basis_rows(const kf_family *f, size_t i, double *rows);

#endif
