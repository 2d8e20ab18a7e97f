/* key.h -- a secret that tests whole products.
 *
 * A key holds random sums of the rows of A, each row divided by its norm: K = r
 * A.  Every product C = A B satisfies r C = K B.  The test takes one pass over
 * C and one over B, and does not depend on the code.  It is due to R.
 * Freivalds, "Probabilistic machines can use less running time", IFIP 1977.  T.
 * Tang et al. use it for coded workers, "Adaptive verifiable coded computing",
 * arXiv 2107.12958.  A wrong C does not pass unless r is known, even if all
 * workers conspire.
 *
 * A key owns its sums.  Its weights are drawn from `secret`, which no worker
 * may know. */
#ifndef KF_KEY_H
#define KF_KEY_H

#include "results.h"

/* Least number of rows that are summed up together. */
#define KF_KEY_RUN 4096
/* Least ratio of the numbers of A to those of its key, unless a run is all of
 * A. */
#define KF_KEY_SHARE 64
/* Sums of the same rows, each with its own weights (math/errors.md 11). */
#define KF_KEY_SUMS 3
/* The error that the test misses with a probability of 1 in 100,000.  It is
 * this factor times the root of the rows of a run, times rounding, times both
 * norms (math/errors.md 11.3). */
#define KF_KEY_BLUR 740

typedef struct kf_key {
    uint64_t secret;
    size_t rows;   /* of A                                                   */
    size_t cols;   /* of A, with padding of its parts */
    size_t run;    /* rows that are summed up together */
    size_t runs;   /* number of runs */
    double *scale; /* KF_KEY_SUMS x rows: weights over first norms */
    double *sum;   /* KF_KEY_SUMS x runs x cols                              */
    double *limit; /* KF_KEY_SUMS x runs x 2: sums of squares of weights times
                    * norms over first norms; sums of |scale| */
    size_t states; /* optimizer states of A */
    double *state[KOFN_CHANGE_STATES]; /* the same sums of state i + 1 */
} kf_key;

/* Makes the key of an operand.  norm[g][strip] is the norm of the rows of group
 * g that are coded together in that strip.  `scaled` has the digits by which
 * rows were scaled up, or is NULL.  Rows of zeros that were scaled do not
 * count: scaling them down makes any decoded number 0. */
kofn_status kf_key_new(kf_key **out, const kf_resident *r, double *const *norm,
                       const int *scaled, uint64_t secret);
void kf_key_free(kf_key *k);
/* Changes the key as kofn_update changes A; U and V are scaled as for workers.
 */
kofn_status kf_key_change(kf_key *k, const kf_resident *r,
                          const kofn_change *change, const kofn_matrix *U,
                          const kofn_matrix *V);

/* Takes over new norms of the rows. */
void kf_key_measure(kf_key *k, const kofn_plan *plan, double *const *norm);

/* A product to test. */
typedef struct kf_keyed {
    const kofn_plan *plan;
    const kofn_matrix *out; /* C */
    const kf_back *back;    /* the factor of C after decoding */
    const kofn_matrix *in;  /* B as it was multiplied with the coded A */
    const double *col;      /* norms of columns of B; column j has number ... */
    size_t cols;            /* ... j modulo this */
    double error;           /* largest honest error, relative to both norms */
} kf_keyed;

/* Returns the largest honest error of an entry by rounding and decoding,
 * relative to both norms.  `noise` is the amplification of rounding by the
 * decoder; blocks have changed `changes` times. */
double kf_key_error(const kf_key *k, const kofn_plan *plan, uint64_t changes,
                    double noise);
/* Returns the error that an entry may hide if others are off by `error`. */
double kf_key_floor(const kf_key *k, double error);
/* Sets *agrees if C is A B to within rounding.  A right C fails with a
 * probability of 2 e^-32 per column, sum and run (math/errors.md 11.1). */
kofn_status kf_key_test(const kf_key *k, const kf_keyed *of, bool *agrees);
/* Computes to += f x for n numbers of this type. */
void kf_key_add(double *to, double f, const void *x, size_t n, kofn_dtype type);

/* ---- single answers (key_answers.c) -------------------------------------- */

/* Tests the results of a comparison, each alone, which needs A.  The secret of
 * `c` is for this call alone; its row and col are set.  `error` as in kf_keyed,
 * for a seat of weight 1.  Wrong results go into found->bad, which has room for
 * all.  An honest one is listed with a probability of 2 e^-32 per column. */
kofn_status kf_key_test_answers(kf_compare *c, kf_sides *s, double error,
                                kf_found *found);

#endif
