/* syndrome.h -- what parities say of results: inside of suspect.c. */
#ifndef KF_SYNDROME_H
#define KF_SYNDROME_H

#include "suspect.h"

/* A norm of n entries of noise is below sqrt(n) + KF_TAIL for good. */
#define KF_TAIL 6

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

kofn_status kf_syndromes_new(kf_syndromes *t, const kf_evidence *e,
                             const double *allowance);
void kf_syndromes_free(kf_syndromes *t);
/* Of these results. */
kofn_status kf_syndromes_fill(kf_syndromes *t, const double *H,
                              const double *Y);
void kf_syndromes_copy(kf_syndromes *to, const kf_syndromes *from);
void kf_syndromes_strike(kf_syndromes *t, size_t node);

/* How loudly results disagree: their largest column of syndromes, or all of
 * them together, in units of what honest rounding may come to; 1 is what
 * honest results never reach. */
double kf_loudness(const kf_syndromes *t);
double kf_column_loudness(const kf_syndromes *t, size_t c);
/* The sum of squares over columns of the same. */
double kf_misfit(const kf_syndromes *t);
/* Norm of column j of [H | S]. */
double kf_view(const kf_syndromes *t, size_t j);
/* Norms of the columns of H: how much of each result the parities see, from
 * nothing to 1.  In scratch that the next call overwrites. */
const double *kf_views(const kf_syndromes *t);
/* The column, contiguous. */
void kf_get_column(const kf_syndromes *t, size_t j, double *out);

/* S = sum_k u_k value_k w_k', u_k row k of U, both orthonormal. */
typedef struct kf_spectrum {
    size_t q, columns; /* of S; four times as many when closed */
    double *U, *value;
    double *C;         /* scratch: q x columns */
    double *all;       /* scratch: Y, closed   */
} kf_spectrum;

kofn_status kf_spectrum_new(kf_spectrum *p, const kf_evidence *e);
void kf_spectrum_free(kf_spectrum *p);
/* Y without the rows of nodes that are struck is not needed: their columns of
 * H are zero. */
void kf_spectrum_of(kf_spectrum *p, const kf_syndromes *t,
                    const kf_evidence *e, const double *Y);
/* A value that noise of this size in every entry does not reach. */
double kf_spectrum_level(const kf_spectrum *p, double size);
size_t kf_spectrum_above(const kf_spectrum *p, double level);

/* ---- small vectors ----------------------------------------------------- */

/* Eight sums side by side: the order is the same on every machine. */
static inline double kf_dot(const double *restrict a, const double *restrict b,
                            size_t n)
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

/* y += f x */
static inline void kf_axpy(size_t n, double f, const double *restrict x,
                           double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += f * x[i];
}

#endif
