/* syndrome.h -- what parities say of results: inside of suspect.c.
 *
 * What a struct has is of the arrays that it was made with, whose status says
 * whether there was memory; all are for one thread, within one call of
 * kf_suspect or kf_hidden_of. */
#ifndef KF_SYNDROME_H
#define KF_SYNDROME_H

#include "suspect.h"

#include "base/rng.h"

#include <math.h>

/* A norm of n entries of noise is below sqrt(n) + KF_TAIL for good. */
#define KF_TAIL 6

/* The chance below which an accident is taken not to happen, in rounds in which
 * more lie than may lie as they like. */
#define KF_ACCIDENT 1e-9

/* ... and with this chance the errors of more than may lie as they like cancel
 * each other in all parities, to within what rounding hides. */
#define KF_MISSED 1e-5

/* Parities and syndromes [H | S], S = H Y up to its sign, from which nodes can
 * be struck: what is left then does not depend on their results. */
typedef struct kf_syndromes {
    size_t q, lanes, rows, columns; /* H is q x rows, S q x columns       */
    size_t ld;                      /* rows + columns                     */
    double *memory, *first;         /* the q rows begin at `first`        */
    double *v, *w;                  /* scratch: q; ld                     */
    const double *allowance;        /* per column of S: what an entry's
                                       honest rounding may come to        */
} kf_syndromes;

void kf_syndromes_new(kf_syndromes *t, kf_arrays *a, const kf_evidence *e,
                      const double *allowance);
/* Of these results. */
kofn_status kf_syndromes_fill(kf_syndromes *t, const double *H,
                              const double *Y);
void kf_syndromes_copy(kf_syndromes *to, const kf_syndromes *from);
void kf_syndromes_strike(kf_syndromes *t, size_t node);

/* How loudly results disagree: their largest column of syndromes, or all of
 * them together, in units of what honest rounding may come to; 1 is what
 * honest results never reach. */
double kf_code_syndrome_norm(const kf_syndromes *t);
double kf_code_column_syndrome_norm(const kf_syndromes *t, size_t c);
/* Norm of column j of [H | S]. */
double kf_code_view(const kf_syndromes *t, size_t j);
/* The column, contiguous. */
void kf_code_get_column(const kf_syndromes *t, size_t j, double *out);

/* S = sum_k u_k value_k w_k', u_k row k of U, both orthonormal. */
typedef struct kf_spectrum {
    size_t q, columns; /* of S; four times as many when closed */
    double *U, *value;
    double *C;   /* scratch: q x columns */
    double *all; /* scratch: Y, closed   */
} kf_spectrum;

void kf_spectrum_new(kf_spectrum *p, kf_arrays *a, const kf_evidence *e);
/* Y without the rows of nodes that are struck is not needed: their columns of
 * H are zero. */
void kf_spectrum_of(kf_spectrum *p, const kf_syndromes *t, const kf_evidence *e,
                    const double *Y);
/* A value that noise of this size in every entry does not reach. */
double kf_spectrum_level(const kf_spectrum *p, double size);
size_t kf_spectrum_above(const kf_spectrum *p, double level);

/* The columns of S, right multiples and all, rotated so that there are no more
 * than q: rows keep their products with each other.  They go to p->C, *columns
 * wide. */
void kf_spectrum_rotate(kf_spectrum *p, const kf_syndromes *t,
                        const kf_evidence *e, const double *Y, size_t *columns);

/* ---- guesses ------------------------------------------------------------- */

/* Number of sets of nodes that are looked at side by side. */
#define KF_SETS 8

/* A search for what the results of a few nodes leave of a column of syndromes
 * (fit.c). */
typedef struct kf_fit {
    size_t lanes, rows, q;
    double *columns, *v; /* of H, one after the other, q each; of S          */
    double length;       /* of v                                             */
    bool quick;          /* there are the products ...                       */
    double *A;           /* ... of all columns with each other and v / |v|   */
    size_t parts;        /* numbers that a product has: 1, or a quaternion's */
    double unlike;       /* other products than quaternions have, at most    */
    double *R;           /* scratch: products of some, sets side by side ... */
    uint32_t *at;        /* ... and which of the columns they are            */
    double *left;        /* scratch: what is left, and q directions          */
    kf_rng rng;
    uint32_t *drawn, *sets; /* scratch: nodes before sets were drawn; sets   */
    uint64_t *random;       /* ... and what they are drawn with              */
} kf_fit;

void kf_fit_new(kf_fit *f, kf_arrays *a, const kf_evidence *e);
/* Of column c of the syndromes of this table. */
void kf_fit_of(kf_fit *f, const kf_syndromes *t, size_t c);
/* The length of what these nodes leave of it. */
double kf_fit_left(kf_fit *f, const uint32_t *nodes, size_t n);
/* Bits that say which of KF_SETS sets of n nodes, one after the other, surely
 * leave more than the limit; the first set is the lowest bit.  Most that do are
 * found. */
unsigned kf_fit_surely_more(kf_fit *f, const uint32_t *nodes, size_t n,
                            double limit);
/* Operations that may be spent: what a choice costs, and what is left. */
typedef struct kf_budget {
    double each, left;
} kf_budget;
/* Of the n put random choices of `want` first, one after the other, until one
 * leaves no more than the limit; each that does not is paid for, and false:
 * there is nothing left to spend. */
bool kf_fit_choose(kf_fit *f, uint32_t *nodes, size_t n, size_t want,
                   double limit, kf_budget *b);
/* Of n nodes that leave no more than the limit put those first without which
 * more is left; how many they are. */
size_t kf_fit_reduce(kf_fit *f, uint32_t *nodes, size_t n, double limit);

/* ---- sets of nodes ------------------------------------------------------- */

/* Take n orthonormal directions out of v; how long it is then. */
double kf_rivals_take_out(const double *Q, size_t n, size_t len, double *v);
/* Adds a direction, for which there must be room, unless v depends on the n
 * that there are; returns how many there are then. */
size_t kf_rivals_add(double *Q, size_t n, size_t len, const double *v);

/* The same of columns of which something is left. */
size_t kf_rivals_directions(double *Q, size_t n, size_t len, const double *W,
                            size_t columns);

/* Columns of H, node by node, and those of them that others come nearest to. */
typedef struct kf_rivals {
    size_t nodes, lanes, q;
    double *H;     /* columns one after the other, q each                 */
    double *W;     /* what those struck leave of them                     */
    double *own;   /* scratch: lanes + 1 directions                       */
    uint8_t *used; /* nodes that are no choice                            */
} kf_rivals;

void kf_rivals_new(kf_rivals *r, kf_arrays *a, size_t nodes, size_t lanes,
                   size_t q);
/* Of these q parities, no more than at first. */
void kf_rivals_of(kf_rivals *r, size_t q, const double *H, size_t ld);
const double *kf_rivals_column(const kf_rivals *r, size_t node, size_t lane);
/* Nobody is struck or used. */
void kf_rivals_begin(kf_rivals *r);
/* The node that would take most of g; r->nodes: none would take anything. */
size_t kf_rivals_next(kf_rivals *r, const double *g);
/* Take a node out of g and out of what is left of the others; how many
 * directions it had left. */
size_t kf_rivals_strike(kf_rivals *r, size_t node, double *g);

/* The state of a proof that a node must be corrupt (certain.c). */
typedef struct kf_proof {
    size_t nodes, lanes, q, m;
    const uint32_t *held; /* `count` of them: the caller's */
    size_t count;
    kf_rivals rivals;
    double *Q, *R; /* of those held: H_T = Q R                         */
    double *X;     /* lies of those held, as they seem: count lanes, m */
    double *B, *x; /* directions, m each; 2 lanes of them              */
    double *g, *y; /* q; lanes                                         */
    double *try;   /* q                                                */
    /* who else could have: p->candidate, in groups of `each` */
    uint32_t *candidate;
    size_t candidates, each;
    size_t fixed;      /* directions of those held, taken out of all       */
    double *W;         /* what they leave of the columns, as in rivals     */
    double *deeper;    /* the same, less those chosen so far, one table
                        for each                                         */
    size_t room;       /* numbers that it has room for                     */
    kf_arrays *arrays; /* what that is of                                */
    double *S;         /* scratch: directions, q each                      */
    double *tries;     /* what those chosen leave of g, q each             */
    double enough;     /* what comes so near explains it                   */
    double budget;     /* multiply-adds that are left for proofs           */
    size_t conspire;   /* up to so many others a proof tries all           */
    bool strict;       /* ... and beyond, or nobody is certain             */
    uint32_t *order;
    double *overlap;
    uint8_t *used;
} kf_proof;

void kf_proof_new(kf_proof *p, kf_arrays *a, const kf_evidence *e);
/* Of these nodes, with syndromes S of m columns, rotated as above.  False: they
 * depend on each other. */
bool kf_proof_of(kf_proof *p, const kf_syndromes *t, const double *S, size_t m,
                 const uint32_t *held, size_t count);
/* Is held[j] corrupt?  For certain when no more than `liars` nodes have, where
 * there are `over` beyond those that surely decode; when no more than
 * `promised` have, for certain or but for an accident.  Noise and what those
 * held leave are no longer than `apart` together, in any direction. */
bool kf_proof_certain(kf_proof *p, size_t j, size_t liars, size_t promised,
                      size_t over, double apart);

/* ---- small vectors ------------------------------------------------------- */

/* Sets of k of n. */
static inline double kf_code_sets(size_t n, size_t k)
{
    double sets = 1;

    for (size_t i = 0; i < k; i++)
        sets *= (double)(n - i) / (double)(i + 1);
    return sets;
}

/* Eight sums side by side: the order is the same on every machine. */
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

/* y += f x */
static inline void kf_axpy(size_t n, double f, const double *restrict x,
                           double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += f * x[i];
}

#endif
