/* compare.h -- from results to a verdict: whether they agree, and if not, which
 * are corrupt.
 *
 * Results and weights are borrowed; findings go into the caller's arrays.
 * Excluding workers is decided elsewhere. */
#ifndef KF_COMPARE_H
#define KF_COMPARE_H

#include "data/data.h"

/* A check of one cell: the results for strips [lo, hi) of one group.
 *
 * Entry (i, c) of a result is a dot product.  By Cauchy and Schwarz it is at
 * most the weight of its seat times row[i] col[c].  In A B, row[i]^2 sums row i
 * over the parts of A, and col[c]^2 sums column c over the parts of the input.
 * In B A the factors are exchanged. */
typedef struct kf_compare {
    const kofn_plan *plan;
    kf_code *code;
    const kofn_decoder *decoder; /* its seats are the seats that answered */
    const double *H;             /* their parities, q x results: kf_parity    */
    size_t q;
    double hidden;           /* kf_hidden_of for kf_compare_few, if none is
                              * located */
    const kf_source *source; /* one per seat of the decoder               */
    size_t group, lo, hi;
    size_t most;        /* seats that may be located; 0: detect only   */
    size_t liars;       /* seats that may be wrong in any way */
    size_t independent; /* the same, without conspiring */
    const double *row;  /* per strip of a block, `span` of them      */
    const double *col;  /* per column of a result                    */
    size_t terms;       /* products in an entry; 0: length of the operands */
    uint64_t changes;   /* to the blocks since they were encoded */
    bool drifts;        /* true if kf_found.drift is requested */
    uint64_t secret;    /* of the weights; workers do not know it */
    uint32_t number;    /* of the cell: fresh weights for each       */
} kf_compare;

/* What a check has found. */
typedef struct kf_found {
    kofn_status status; /* KOFN_OK: the results that are not in bad[] are right;
                         * else as kf_compare_decide returns it */
    uint32_t *bad;      /* indices into decoder->seat, with room for all: the
                         * located, then those left out */
    size_t count;       /* of both kinds; 0: clean */
    size_t doubted;     /* those left out but not located */
    double floor;       /* undetected error of entry (i, c), relative to row[i]
                         * col[c]; HUGE_VAL: nothing was compared */
    double drift; /* part of the results outside the code, relative to them,
                   * root mean square; 0: not requested, or some were left out
                   */
} kf_found;

/* Returns the number of results that are surely wrong. */
static inline size_t kf_found_located(const kf_found *f)
{
    assert(f->doubted <= f->count);
    return f->count - f->doubted;
}

/* Returns how many of n results may be wrong in any way, besides the `located`
 * wrong ones, without escaping the check; at least 1. */
size_t kf_compare_few(const kf_compare *c, size_t n, size_t located);
/* Sets H, q and hidden; all other members must be set. */
kofn_status kf_compare_know(kf_compare *c, kf_cache *cache);
/* Returns the largest rounding of an entry relative to the scales of its row
 * and column, for a seat of weight 1.  The entry is a sum of `terms` products,
 * with blocks that have changed `changes` times. */
double kf_compare_alarm(const kofn_plan *plan, double terms, uint64_t changes);
/* Returns the lowest floor that these results can have if none is left out. */
double kf_compare_least_floor(const kf_compare *c);
/* KOFN_OK: all agree except those in bad[].  KOFN_CORRUPT: they disagree and
 * the errors cannot all be located; bad[] has the nodes that are certainly
 * corrupt. */
kofn_status kf_compare_results(const kf_compare *c, kf_found *found);
/* Does the same; KOFN_AGAIN means that one more result is needed.  The reason
 * is that more than `most` may be hidden in these.  In float32 it may also be
 * that much is hidden and they show more than rounding.  With `last` there are
 * no more results, and these are accepted if within `most`. */
kofn_status kf_compare_decide(const kf_compare *c, double most, bool last,
                              kf_found *found);

/* ---- sizes of answers (sizes.c) -------------------------------------------
 */

/* Compute the scales of strips [lo, hi) of a check of answers that measure
 * themselves.  Those of sums are the largest answers to a strip, and `scale` is
 * 0 before.  Those of A' A x follow from the norms of A's columns, the input as
 * it was sent, and the answers. */
void kf_sizes_of_sums(const kf_compare *c, double *scale);
kofn_status kf_sizes_of_gram(const kf_compare *c, const double *col,
                             const kofn_matrix *x, double *row);

#endif
