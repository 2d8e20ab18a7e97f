/* freivalds.h -- which rows and columns of C are not those of A B?
 *
 * R. Freivalds, "Probabilistic machines can use less running time", IFIP 1977:
 * C w is compared with A (B w) for random w.  Here every row of C A B is summed
 * up in a few random directions, and every column; docs/math/errors.md 7.
 *
 * A kf_freivalds owns its sums until kf_freivalds_free, and a kf_recompute its
 * list of entries likewise; the matrices are borrowed and only read. */
#ifndef KF_FREIVALDS_H
#define KF_FREIVALDS_H

#include "scale.h"

#include <kofn/check.h>

/* Sums of a line, at most. */
#define KF_SUMS 8

/* A product that is compared with its factors. */
typedef struct kf_factors {
    const kofn_matrix *A;
    const kofn_sparse *S; /* instead of A */
    const kofn_matrix *B, *C;
    size_t m, n, p;
    size_t terms;     /* products in a sum, at most                        */
    size_t numbers;   /* in all three                                      */
    double unit;      /* half a unit in the last place of 1, by the coarsest
                         type                                              */
    int least;        /* numbers below 2^least may be lost for being small */
    int top;          /* products from 2^top on may be more than it holds  */
    bool half;        /* C is in float16, as wide as it is given           */
    double tolerance; /* times the largest norms, by which all is then
                         divided:                                          */
    kf_scale row, col;
    uint64_t secret; /* of the weights                                    */
} kf_factors;

/* A line whose sums differ by more than rounding usually does. */
typedef struct kf_line {
    size_t at;
    kf_scale scale;
    double usual, most; /* norms of sums: of rounding as it usually is, and as
                           it can be                                        */
    double sum[KF_SUMS];
    bool sure; /* more than any rounding, or not what can be                */
    bool full; /* not finite where the product may overflow                 */
} kf_line;

typedef struct kf_lines {
    kf_line *of;
    size_t count, cap;
} kf_lines;

typedef struct kf_freivalds {
    const kf_factors *f;
    size_t across, down;   /* sums of a row, of a column                      */
    size_t strip;          /* rows at a time                                  */
    kf_scales col;         /* of B                                            */
    int smallest;          /* exponent of a row of A, as in kf_scales         */
    double *W, *U;         /* p x across: weights; n x across: - B W          */
    double *V, *Q;         /* down x n: - weights A; down x p: differences    */
    double *a, *c, *w, *R; /* a strip of A, of B or C, its weights, its sums */
    uint8_t *odd;          /* columns in which C is not finite, or not 0 where
                              a factor is: 1; 2 where the product may overflow */
    size_t *zero, zeros;   /* columns of B that are 0 */
    kf_lines rows, cols;
} kf_freivalds;

kf_scale kf_freivalds_row_scale(const kf_factors *f, size_t i);
/* Weights of line `at` of so many, of length sqrt(sums). */
void kf_freivalds_weights(const kf_factors *f, bool column, size_t at,
                          size_t lines, size_t sums, double *w);
/* Sets `usual` and `most` of a line that has this scale, and this many sums of
 * this many numbers.  `smallest` is the exponent of the smallest norm across
 * it. */
void kf_freivalds_levels(kf_line *s, const kf_factors *f, size_t sums,
                         size_t lines, int smallest);
/* Sets how many sums a line has, which is all that kf_freivalds_floor needs. */
void kf_freivalds_expect(kf_freivalds *v, const kf_factors *f);
kofn_status kf_freivalds_run(kf_freivalds *v, const kf_factors *f);
/* The norm of the sums of this row when these entries, all of them in it, are
 * as they should be. */
double kf_freivalds_again(kf_freivalds *v, const kf_line *row,
                          const kofn_wrong *fixed, size_t count);
/* The error that an entry may have unseen, over both norms: where all lines
 * that are suspected were looked at, or only those that are sure; by rows and
 * columns, or by rows alone. */
double kf_freivalds_floor(const kf_freivalds *v, bool all, bool columns);
void kf_freivalds_free(kf_freivalds *v);

/* ---- screen.c ------------------------------------------------------------ */

/* Sets *clean to true if C is A B as far as half of the level of suspicion
 * shows. Operands need not be finite; if they are not, *clean is false.  Sets
 * it to false if A is sparse. */
kofn_status kf_screen(const kf_factors *f, bool *clean);

/* ---- recompute.c --------------------------------------------------------- */

/* Entries of A B as exact as they can be had, and whether those of C may be
 * what rounding made of them. */
typedef struct kf_recompute {
    const kf_factors *f;
    kofn_wrong *entry; /* that are wrong, in the order they were found */
    size_t count, cap;
    double *a, *b; /* a row, and some columns */
    size_t batch;
} kf_recompute;

kofn_status kf_recompute_begin(kf_recompute *r, const kf_factors *f);
/* Look at the entries in these rows and columns; NULL: in all there are. */
kofn_status kf_recompute_entries(kf_recompute *r, const size_t *row,
                                 size_t rows, const size_t *col, size_t cols);
/* By rows, each entry once. */
void kf_recompute_sort(kf_recompute *r);
void kf_recompute_free(kf_recompute *r);

#endif
