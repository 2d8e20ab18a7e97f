/* syndrome.h -- what parities show about results; internal to suspect.c and its
 * helpers.
 *
 * The memory of a struct belongs to the arrays that it was made with; their
 * status reports a failed allocation.  All structs are for one thread, within
 * one call of kf_suspect or kf_hidden_of. */
#ifndef KF_SYNDROME_H
#define KF_SYNDROME_H

#include "suspect.h"

#include "base/rng.h"

#include <assert.h>
#include <math.h>

/* A norm of n entries of noise is practically always below sqrt(n) + KF_TAIL.
 */
#define KF_TAIL 6

/* Accidents with a smaller probability are ignored, if more nodes are wrong
 * than may be wrong in any way. */
#define KF_ACCIDENT 1e-9

/* In the same case, the probability that the errors cancel in all parities to
 * within rounding. */
#define KF_MISSED 1e-5

/* Parities and syndromes [H | S], S = H Y up to its sign.  Nodes can be struck;
 * the rest then does not depend on their results. */
typedef struct kf_syndromes {
    size_t q, components, rows, columns; /* H is q x rows, S q x columns */
    size_t ld;               /* rows + columns                     */
    double *memory, *first;  /* the q rows begin at `first`        */
    double *v, *w;           /* scratch: q; ld                     */
    const double *allowance; /* largest honest rounding, per column of S
                              */
} kf_syndromes;

void kf_syndromes_new(kf_syndromes *t, kf_arrays *a, const kf_evidence *e,
                      const double *allowance);
/* Computes the syndromes of these results. */
kofn_status kf_syndromes_fill(kf_syndromes *t, const double *H,
                              const double *Y);
void kf_syndromes_copy(kf_syndromes *to, const kf_syndromes *from);
void kf_syndromes_strike(kf_syndromes *t, size_t node);

/* Return the disagreement of the results: of the largest column of syndromes,
 * or of all together.  The unit is the largest honest rounding; honest results
 * stay below 1. */
double kf_code_syndrome_norm(const kf_syndromes *t);
double kf_code_column_syndrome_norm(const kf_syndromes *t, size_t c);
/* Returns the norm of column j of [H | S]. */
double kf_code_view(const kf_syndromes *t, size_t j);
/* Copies the column to a contiguous array. */
void kf_code_get_column(const kf_syndromes *t, size_t j, double *out);

/* The decomposition S = sum_k u_k value_k w_k', with orthonormal u_k (row k of
 * U) and w_k. */
typedef struct kf_spectrum {
    size_t q, columns; /* of S; four times the number if closed */
    double *U, *value;
    double *C;   /* scratch: q x columns */
    double *all; /* scratch: Y, closed   */
} kf_spectrum;

void kf_spectrum_new(kf_spectrum *p, kf_arrays *a, const kf_evidence *e);
/* Decomposes the syndromes.  The rows of Y of struck nodes are not needed,
 * because their columns of H are zero. */
void kf_spectrum_of(kf_spectrum *p, const kf_syndromes *t, const kf_evidence *e,
                    const double *Y);
/* Returns a value that noise of this size in every entry does not reach. */
double kf_spectrum_level(const kf_spectrum *p, double size);
size_t kf_spectrum_above(const kf_spectrum *p, double level);

/* Rotates the columns of S, with their right multiples, so that at most q
 * remain; inner products of rows do not change.  p->C receives them, *columns
 * wide. */
void kf_spectrum_rotate(kf_spectrum *p, const kf_syndromes *t,
                        const kf_evidence *e, const double *Y, size_t *columns);

/* ---- guesses ------------------------------------------------------------- */

/* Number of sets of nodes that are tested side by side. */
#define KF_SETS 8

/* A search for nodes that explain a column of syndromes (fit.c). */
typedef struct kf_fit {
    size_t components, rows, q;
    double *columns, *v; /* of H, in order, q each; of S */
    double length;       /* norm of v */
    bool quick;          /* A is available */
    double *A;           /* products of all columns and v / |v| */
    size_t parts;        /* numbers per product: 1, or 4 for a quaternion */
    double unlike;       /* largest deviation of products from quaternions */
    double *R;           /* scratch: products of some columns */
    uint32_t *at;        /* columns of these products */
    double *left;        /* scratch: the rest of v, and q directions */
    kf_rng rng;
    uint32_t *drawn, *sets; /* scratch: nodes before the draw; drawn sets */
    uint64_t *random;       /* scratch: random numbers of the draw */
} kf_fit;

void kf_fit_new(kf_fit *f, kf_arrays *a, const kf_evidence *e);
/* Prepares the search for column c of this table's syndromes. */
void kf_fit_of(kf_fit *f, const kf_syndromes *t, size_t c);
/* Returns the norm of v after these nodes are removed. */
double kf_fit_left(kf_fit *f, const uint32_t *nodes, size_t n);
/* Returns a bit for each of KF_SETS sets of n nodes, in order: 1 if the set
 * surely leaves more than the limit.  The first set is the lowest bit.  Most
 * such sets are found; a bit 0 is inconclusive. */
unsigned kf_fit_surely_more(kf_fit *f, const uint32_t *nodes, size_t n,
                            double limit);
/* A budget of operations: the cost of one choice, and what is left. */
typedef struct kf_budget {
    double each, left;
} kf_budget;
/* Draws random choices of `want` of the n nodes until one leaves no more than
 * the limit; the choice comes first in nodes[].  Each failed choice costs.
 * False if the budget is used. */
bool kf_fit_choose(kf_fit *f, uint32_t *nodes, size_t n, size_t want,
                   double limit, kf_budget *b);
/* Puts the necessary nodes first, of n nodes that explain v within the limit;
 * returns their number. */
size_t kf_fit_reduce(kf_fit *f, uint32_t *nodes, size_t n, double limit);

/* ---- sets of nodes ------------------------------------------------------- */

/* Removes n orthonormal directions from v; returns its remaining length. */
double kf_rivals_take_out(const double *Q, size_t n, size_t len, double *v);
/* Adds v to the n directions unless it depends on them; there must be room.
 * Returns the new number. */
size_t kf_rivals_add(double *Q, size_t n, size_t len, const double *v);

/* Adds the columns that are not zero in the same way. */
size_t kf_rivals_directions(double *Q, size_t n, size_t len, const double *W,
                            size_t columns);

/* The columns of H by node, and the search for nodes that come nearest to a
 * vector. */
typedef struct kf_rivals {
    size_t nodes, components, q;
    double *H;     /* columns in order, q each */
    double *W;     /* columns after the struck nodes are removed */
    double *owned; /* scratch: components + 1 directions */
    uint8_t *used; /* nodes that are excluded */
} kf_rivals;

void kf_rivals_new(kf_rivals *r, kf_arrays *a, size_t nodes, size_t components,
                   size_t q);
/* Fills the columns from these q parities, at most the q of the allocation. */
void kf_rivals_of(kf_rivals *r, size_t q, const double *H, size_t ld);
const double *kf_rivals_column(const kf_rivals *r, size_t node,
                               size_t component);
/* Resets: no node is struck or used. */
void kf_rivals_begin(kf_rivals *r);
/* Returns the node that would remove most of g; r->nodes if none would remove
 * anything. */
size_t kf_rivals_next(kf_rivals *r, const double *g);
/* Removes a node from g and from the other columns; returns the number of its
 * independent directions. */
size_t kf_rivals_strike(kf_rivals *r, size_t node, double *g);

/* Other nodes that may be corrupt, and what is left of their columns. */
typedef struct kf_proof_others {
    /* other possibly corrupt nodes: p->others.candidate, in groups of `each` */
    uint32_t *candidate;
    size_t candidates, each;
    size_t fixed;   /* directions of suspended nodes that were removed */
    double *W;      /* the remaining columns, as in rivals */
    double *deeper; /* the same after each chosen group */
    size_t room;    /* room in `deeper`, in numbers */
} kf_proof_others;

/* Scratch of a proof. */
typedef struct kf_proof_scratch {
    double *S;     /* scratch: directions, q each                      */
    double *tries; /* what is left of g at each depth, q each */
    uint32_t *order;
    double *overlap;
    uint8_t *used;
} kf_proof_scratch;

/* The state of a proof that a node is corrupt (certain.c). */
typedef struct kf_proof {
    size_t nodes, components, q, m;
    const uint32_t *held; /* suspended nodes, `count`; the caller's */
    size_t count;
    kf_rivals rivals;
    double *Q, *R; /* of the suspended nodes: H_T = Q R */
    double *X; /* estimated errors of suspended nodes: count components, m */
    double *B, *x; /* directions, m each; 2 components vectors */
    double *g, *y; /* q; components                                         */
    double *try;   /* q                                                */
    kf_arrays *arrays; /* owner of the memory */
    double enough;     /* distance at which a set explains g */
    double budget;     /* multiply-adds left for proofs */
    size_t conspire;   /* most other nodes for which all sets are tried */
    bool strict;       /* try all sets for any number of nodes */
    kf_proof_others others;
    kf_proof_scratch scratch;
} kf_proof;

void kf_proof_new(kf_proof *p, kf_arrays *a, const kf_evidence *e);
/* Prepares the proof for the nodes in `held`.  S has m columns, rotated as
 * above.  False if the columns of the nodes are linearly dependent. */
bool kf_proof_of(kf_proof *p, const kf_syndromes *t, const double *S, size_t m,
                 const uint32_t *held, size_t count);
/* True if held[j] is proved corrupt.  The proof is certain if at most `liars`
 * nodes are corrupt, with `over` results beyond those that surely decode.  With
 * at most `independent` corrupt nodes it is certain or fails only by accident.
 * `apart` bounds the sum of noise and the unexplained syndromes in any
 * direction. */
bool kf_proof_certain(kf_proof *p, size_t j, size_t liars, size_t independent,
                      size_t over, double apart);

/* ---- small vectors ------------------------------------------------------- */

/* Returns the number of sets of k of n. */
static inline double kf_code_sets(size_t n, size_t k)
{
    double sets = 1;

    assert(k <= n);
    for (size_t i = 0; i < k; i++)
        sets *= (double)(n - i) / (double)(i + 1);
    return sets;
}

/* Returns a dot product from eight partial sums; the order is the same on every
 * machine. */
static inline double kf_code_dot(const double *restrict a,
                                 const double *restrict b, size_t n)
{
    double sum[8] = {0}, rest = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        rest += a[i] * b[i];
    for (size_t k = 0; k < 8; k++)
        rest += sum[k];
    return rest;
}

static inline double kf_code_length(const double *x, size_t n)
{
    return sqrt(kf_code_dot(x, x, n));
}

/* Computes y += f x. */
static inline void kf_axpy(size_t n, double f, const double *restrict x,
                           double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += f * x[i];
}

#endif
