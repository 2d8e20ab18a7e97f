/* freivalds.h -- finds the rows and columns of C that differ from A B.
 *
 * R. Freivalds, "Probabilistic machines can use less running time", IFIP 1977,
 * compares C w with A (B w) for random w.  Here every row and every column of C
 * - A B is summed up in a few random directions (docs/math/errors.md 7).
 *
 * A kf_freivalds owns its sums until kf_freivalds_free; a kf_recompute owns its
 * list of entries until kf_recompute_free.  The matrices are borrowed and only
 * read. */
#ifndef KF_FREIVALDS_H
#define KF_FREIVALDS_H

#include "data/scale.h"

#include <kofn/check.h>

/* Most sums of a row or column. */
#define KF_SUMS 8

/* A product to compare with its factors. */
typedef struct kf_factors {
    const kofn_matrix *A;
    const kofn_sparse *S; /* sparse A, instead of A */
    const kofn_matrix *B, *C;
    size_t m, n, p;
    size_t terms;     /* most products in a sum */
    size_t numbers;   /* numbers in all three */
    double unit;      /* half a unit in the last place of 1, coarsest type */
    int least;        /* numbers below 2^least may lose digits */
    int top;          /* products from 2^top on may overflow */
    bool half;        /* C holds float16 numbers in a wider type */
    double tolerance; /* relative to the largest norms; they become the unit: */
    kf_scale row, col;
    uint64_t secret; /* of the weights                                    */
} kf_factors;

/* A row or column with sums that differ by more than usual rounding. */
typedef struct kf_line {
    size_t at;
    kf_scale scale;
    double usual, most; /* norms of sums by rounding: usual, and largest */
    double sum[KF_SUMS];
    bool sure; /* beyond any rounding, or impossible */
    bool full; /* not finite, and the product may overflow */
} kf_line;

typedef struct kf_suspect_lines {
    kf_line *of;
    size_t count, cap;
} kf_suspect_lines;

typedef struct kf_freivalds {
    const kf_factors *f;
    size_t across, down;   /* number of sums of a row, of a column */
    size_t strip;          /* rows at a time                                  */
    kf_scales col;         /* norms of B's columns */
    int smallest;          /* exponent of a row of A, as in kf_scales */
    double *W, *U;         /* p x across: weights; n x across: - B W          */
    double *V, *Q;         /* down x n: - weights A; down x p: differences    */
    double *a, *c, *w, *R; /* a strip of A, of B or C, its weights, its sums */
    uint8_t *odd;          /* columns of C: 1: entries are impossible (not
                            * finite, or not 0 although a factor is); 2: the
                            * product may overflow */
    size_t *zero, zeros;   /* columns of B that are 0 */
    kf_suspect_lines rows, cols;
} kf_freivalds;

kf_scale kf_freivalds_row_scale(const kf_factors *f, size_t i);
/* Draws the weights of row or column `at` of `lines`, of length sqrt(sums). */
void kf_freivalds_weights(const kf_factors *f, bool column, size_t at,
                          size_t lines, size_t sums, double *w);
/* Sets `usual` and `most` of a row or column with this scale, for `sums` sums
 * of `lines` numbers.  `smallest` is the exponent of the smallest norm across
 * it. */
void kf_freivalds_levels(kf_line *s, const kf_factors *f, size_t sums,
                         size_t lines, int smallest);
/* Sets the number of sums of a row or column, which is all that
 * kf_freivalds_floor needs. */
void kf_freivalds_expect(kf_freivalds *v, const kf_factors *f);
kofn_status kf_freivalds_run(kf_freivalds *v, const kf_factors *f);
/* Returns the norm of the sums of this row after these entries of it are
 * corrected. */
double kf_freivalds_again(kf_freivalds *v, const kf_line *row,
                          const kofn_wrong *fixed, size_t count);
/* Returns the undetected error that an entry may have, relative to both norms.
 * `all`: every suspected row and column was examined, else only the sure ones.
 * `columns`: rows and columns were examined, else only rows. */
double kf_freivalds_floor(const kf_freivalds *v, bool all, bool columns);
void kf_freivalds_free(kf_freivalds *v);

/* ---- screen.c ------------------------------------------------------------ */

/* Sets *clean to true if the sums of C - A B are below half of the level of
 * suspicion.  Operands need not be finite; if they are not, *clean is false.
 * It is also false if A is sparse. */
kofn_status kf_screen(const kf_factors *f, bool *clean);

/* ---- recompute.c --------------------------------------------------------- */

/* Computes entries of A B as exactly as possible, and decides if those of C are
 * within rounding. */
typedef struct kf_recompute {
    const kf_factors *f;
    kofn_wrong *entry; /* wrong entries, in the order of discovery */
    size_t count, cap;
    double *a, *b; /* a row, and some columns */
    size_t batch;
} kf_recompute;

kofn_status kf_recompute_begin(kf_recompute *r, const kf_factors *f);
/* Examines the entries in these rows and columns; NULL means all. */
kofn_status kf_recompute_entries(kf_recompute *r, const size_t *row,
                                 size_t rows, const size_t *col, size_t cols);
/* Sorts the list by rows, with each entry once. */
void kf_recompute_sort(kf_recompute *r);
void kf_recompute_free(kf_recompute *r);

#endif
