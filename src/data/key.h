/* key.h -- a secret that a whole product can be checked with.
 *
 * A key is made of random sums of the rows of A, each row divided by its norm:
 * K = r A.  For any B the product C = A B has r C = K B, which is tested by one pass
 * over C and one over B, whatever code made C (R. Freivalds, "Probabilistic machines
 * can use less running time", IFIP 1977; as keys of coded workers T. Tang et al.,
 * "Adaptive verifiable coded computing", arXiv 2107.12958).  Whoever does not know r
 * cannot make a wrong C that passes, however many workers conspire.
 *
 * A key owns its sums.  Its weights are drawn by `secret`, which no worker may know. */
#ifndef KF_KEY_H
#define KF_KEY_H

#include "data.h"

/* Rows that are summed up together. */
#define KF_KEY_RUN 4096

typedef struct kf_key {
    uint64_t secret;
    size_t rows,
        cols;      /* of A; columns are counted as its parts have them     */
    size_t runs;   /* of rows: each is summed up by itself                 */
    double *scale; /* weight of each row, over the norm it had at first    */
    double *sum;   /* runs x cols                                          */
    double *speed; /* likewise of the velocity of A; NULL: it has none     */
} kf_key;

/* The key of an operand.  norm[g][strip] is the norm of the rows of group g that
 * are coded together in that strip.  `raised` has the digits by which rows were raised,
 * or is NULL.  Rows of zeros that were raised count for nothing: lowering makes them
 * zeros again, whatever was decoded. */
kofn_status kf_key_new(kf_key **out, const kf_resident *r, double *const *norm,
                       const int *raised, uint64_t secret);
void kf_key_free(kf_key *k);
/* The operand changes as in kofn_update, by U and V as workers are told. */
kofn_status kf_key_change(kf_key *k, const kf_resident *r,
                          const kofn_change *change, const kofn_matrix *U,
                          const kofn_matrix *V);

/* A product, to be tested. */
typedef struct kf_keyed {
    const kofn_plan *plan;
    const kofn_matrix *out; /* C */
    const kf_back *back;    /* what C was multiplied by after it was decoded  */
    const kofn_matrix *in;  /* B as it is multiplied with the coded A         */
    double *const *row;     /* norms of rows now, as in kf_key_new            */
    const double *col;      /* norms of columns of B: of column j, number     */
    size_t cols;            /* ... j modulo this                              */
    double error; /* an honest entry is off by at most this, times both norms */
} kf_keyed;

/* Sets *agrees: C is A B, to within what rounding does.  C = A B passes but for a
 * chance of 2 e^-32.  A single entry that is off by more than 32 sqrt(r) times `error`
 * and both norms, of A with r rows, 4096 at most, never passes; wrong entries of a
 * column cancel each other by chance only. */
kofn_status kf_key_test(const kf_key *k, const kf_keyed *of, bool *agrees);

#endif
