/* key.h -- a secret that a whole product can be checked with.
 *
 * A key holds random sums of the rows of A, each row divided by its norm: K = r
 * A. Every product C = A B has r C = K B.  The test takes one pass over C and
 * one over B, and does not depend on the code.  It is due to R. Freivalds,
 * "Probabilistic machines can use less running time", IFIP 1977.  T. Tang et
 * al. use it for coded workers, "Adaptive verifiable coded computing", arXiv
 * 2107.12958.  A wrong C does not pass unless r is known, even if all workers
 * conspire.
 *
 * A key owns its sums.  Its weights are drawn by `secret`, which no worker may
 * know. */
#ifndef KF_KEY_H
#define KF_KEY_H

#include "data.h"

/* Rows that are summed up together, at least. */
#define KF_KEY_RUN 4096
/* Numbers of A for each number of its key, at least, if a run is not all of
 * A. */
#define KF_KEY_SHARE 64
/* Sums of the same rows with weights of their own (math/errors.md 11). */
#define KF_KEY_SUMS 3
/* The error that the test misses with a chance of 1 in 100,000: this factor
 * times the root of the rows of a run, times rounding, times both norms
 * (math/errors.md 11.3). */
#define KF_KEY_BLUR 740

typedef struct kf_key {
    uint64_t secret;
    size_t rows;   /* of A                                                   */
    size_t cols;   /* of A, counted as its parts have them                   */
    size_t run;    /* rows that are summed up together                       */
    size_t runs;   /* of them                                                */
    double *scale; /* KF_KEY_SUMS x rows: weights over the norms of then     */
    double *sum;   /* KF_KEY_SUMS x runs x cols                              */
    double *limit; /* KF_KEY_SUMS x runs x 2: sums of squares of weights times
                      norms over the norms of then, and of sizes of scales    */
    double *speed; /* the same sums of A's velocity; NULL: there is none */
} kf_key;

/* The key of an operand.  norm[g][strip] is the norm of the rows of group g
 * that are coded together in that strip.  `raised` has the digits by which rows
 * were raised, or is NULL.  Rows of zeros that were raised count for nothing:
 * lowering makes them zeros again, whatever was decoded. */
kofn_status kf_key_new(kf_key **out, const kf_resident *r, double *const *norm,
                       const int *raised, uint64_t secret);
void kf_key_free(kf_key *k);
/* Changes the key as kofn_update changes A; U and V are raised as for
 * workers. */
kofn_status kf_key_change(kf_key *k, const kf_resident *r,
                          const kofn_change *change, const kofn_matrix *U,
                          const kofn_matrix *V);

/* The norms of rows have changed. */
void kf_key_measure(kf_key *k, const kofn_plan *plan, double *const *norm);

/* A product, to be tested. */
typedef struct kf_keyed {
    const kofn_plan *plan;
    const kofn_matrix *out; /* C */
    const kf_back *back;    /* what C was multiplied by after it was decoded  */
    const kofn_matrix *in;  /* B as it is multiplied with the coded A         */
    const double *col;      /* norms of columns of B: of column j, number     */
    size_t cols;            /* ... j modulo this                              */
    double error; /* an honest entry is off by at most this, times both norms */
} kf_keyed;

/* Sets *agrees: C is A B, to within what rounding does.  C = A B passes but for
 * a chance of 2 e^-32 a column, sum and run (math/errors.md 11.1). */
kofn_status kf_key_test(const kf_key *k, const kf_keyed *of, bool *agrees);
/* to += f x, n numbers of this type. */
void kf_key_add(double *to, double f, const void *x, size_t n, kofn_dtype type);

/* ---- single answers (key_answers.c) -------------------------------------- */

/* Answers for strips [lo, hi) of a group.  Each is tested alone, which needs
 * A. */
typedef struct kf_keyed_answers {
    const kofn_plan *plan;
    const kf_resident *resident;
    kf_code *code;
    const kofn_decoder *decoder; /* its seats answered                     */
    const kf_source *source;     /* ... this, each of them                 */
    const kf_messages *messages; /* ... to these                           */
    size_t group, lo, hi;
    const double *row; /* norms of strips, all of the group                */
    const double *col; /* norms of columns of an answer                    */
    double error;      /* as in kf_keyed, of a seat of weight 1            */
    uint64_t secret;   /* of the weights of this call                      */
} kf_keyed_answers;

/* Lists in `bad`, with room for all, those that are wrong.  An honest answer is
 * listed with a chance of 2 e^-32 a column. */
kofn_status kf_key_test_answers(const kf_keyed_answers *of, uint32_t *bad,
                                size_t *count);

#endif
