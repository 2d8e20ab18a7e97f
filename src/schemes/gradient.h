/* gradient.h -- what the gradient codes share.
 *
 * Parts of the data j = 0..n-1 give vectors g_j of which the sum is wanted.
 * Seat i computes d of them, j = i .. i+d-1 round the circle, and sends
 * mixtures of their segments.  A *unit* is a segment with `field` real numbers
 * each: complex numbers or quaternions made of neighbouring segments, which
 * cost no traffic.  All matrices below are real; an entry stands for a field x
 * field block.
 *
 * A kf_gradient is the state of a layout and owns its duals, which own their
 * matrices; all are constant once the layout is made, so that any thread may
 * ask for rows.
 */
#ifndef KF_GRADIENT_H
#define KF_GRADIENT_H

#include "code/author.h"

#include <math.h>

/* A code by its dual: a matrix M with a row for each seat and d columns such
 * that for every part j and submessage t
 *
 *     sum over the seats i that hold j of  M_i' E_(t,i),j = P_t,
 *
 * E what seat i mixes of part j in submessage t.  Whoever is missing, the
 * columns of M can be combined so that the rows of the missing vanish, and as
 * many equations on the wanted sum are left as M has columns more than seats
 * are missing. */
typedef struct kf_dual {
    size_t n, d, units, submessages;
    size_t field;  /* real numbers in a unit: 1, 2 or 4                      */
    bool linked;   /* M has a row t n + i and a column t d + q for each
                    submessage t                                           */
    double *M;     /* rows of seats x columns                                */
    double *X;     /* part j: (M of its holders)^-T; linked: its E           */
    double *P;     /* of submessage t: d x units; NULL:                       */
    size_t *slot;  /* t d + q: the unit that is 1 in row q of P_t, or NONE   */
    double *norm;  /* t n + i: what the row of E is divided by               */
    kf_arrays own; /* what all of these are of                             */
} kf_dual;
#define KF_NONE SIZE_MAX

/* ---- gradient_dual.c ----------------------------------------------------- */

/* Room for M, X, P or slots, and norms of 1, once the sizes are set. */
kofn_status kf_dual_new(kf_dual *u, bool slots);
/* X from M, and from P where submessages are linked. */
kofn_status kf_dual_encode(kf_dual *u);
/* Rows of E of norm 1 round alike, whatever the submessage and the seat. */
kofn_status kf_dual_level(kf_dual *u);
/* The largest |X_j|: how badly the holders of a part determine it. */
double kf_dual_spread(const kf_dual *u);
/* Adds the rows of seat i in submessage t to G; the parts of this code begin
 * with part `first`, and rows are `wide` apart. */
void kf_dual_row(const kf_dual *u, size_t i, size_t t, size_t first,
                 size_t wide, double *G);
/* KOFN_TOOFEW when these answers are too few equations, which is quick to
 * say. */
kofn_status kf_dual_enough(const kf_dual *u, const uint32_t *answers,
                           size_t count, uint32_t base);
/* Solves for what the answers seat submessages + submessage, ascending from
 * `base` on, make of the units; rows of D are `wide` apart.  KOFN_TOOFEW when
 * it is not all. */
kofn_status kf_dual_decode(const kf_dual *u, const uint32_t *answers,
                           size_t count, uint32_t base, double *D, size_t wide);
/* Householder's step: rows c.. of T (w x wide) are reflected so that column c
 * is 0 below row c; columns before c are left as they are.  `scratch` holds a
 * row. */
void kf_gradient_eliminate(double *T, size_t w, size_t wide, size_t c,
                           double *scratch);

/* ---- gradient_field.c: the matrices M ------------------------------------ */

/* The field that serves best: 1 for d = 1, complex numbers for d <= 8, else
 * quaternions. */
size_t kf_gradient_best_field(size_t d);
/* M and X by d and the field: 1 where nothing is to be cancelled, stride-DFT,
 * or the best of some draws of orthonormal quaternions. */
kofn_status kf_dual_fill(kf_dual *u, long draws, uint64_t seed);
/* Gaussian numbers of the field. */
kofn_status kf_dual_random_P(kf_dual *u, uint64_t seed);

/* ---- gradient_layout.c: plans of one code or of several ------------------ */

/* Codes side by side, on `d` seats each and the last on those that are left
 * over besides.  All but the last are the same. */
typedef struct kf_gradient {
    size_t codes, d;
    kf_dual code[2]; /* of all but the last; of the last           */
    double *E;       /* or seats x (parts x segments), as it is in a paper */
} kf_gradient;

/* A state for L with the sizes of its codes, on floor(n/d) groups or on one;
 * NULL when memory runs out. */
kf_gradient *kf_gradient_new(kofn_layout *L, size_t d, bool groups);
/* The sizes of the layout, `units` segments of `field` numbers. */
kofn_status kf_gradient_sizes(kofn_layout *L, const char *who, size_t units,
                              size_t field, size_t submessages);
/* seat() and decode(). */
kofn_status kf_gradient_seat(const kofn_layout *L, size_t answer, double *E0,
                             double *E1, double *G);
kofn_status kf_gradient_decode(const kofn_layout *L, const uint32_t *answers,
                               size_t count, double *D);
/* The parameter d; 3, or as much as there is, by default. */
kofn_status kf_gradient_d(const kofn_layout *L, const char *who, size_t *d);
#define KF_D_PARAM                                                             \
    "d", KOFN_AUTO, 1, 1000, "parts that each worker computes; auto: 3", NULL

/* ---- gradient_plain.c ---------------------------------------------------- */

/* Answers that are sums of a class of parts, 0..classes-1, the same from every
 * seat of the class: the first of each counts. */
kofn_status
kf_gradient_first_of_each(const kofn_layout *L, size_t classes,
                          size_t (*class_of)(const kofn_layout *, size_t),
                          const uint32_t *seats, size_t n, double *D);

/* ---- gradient_paper.c: as they were published ---------------------------- */

/* Seats x parts (x m segments); KOFN_UNSTABLE where a draw is singular.  H is
 * d-1 x n, its rows add up to 0. */
kofn_status kf_gradient_paper_null(size_t n, size_t d, const double *H,
                                   double *E);
kofn_status kf_gradient_paper_cyclic(size_t n, size_t d, uint64_t seed,
                                     double *E);
/* At the points x, one for each seat. */
kofn_status kf_gradient_paper_polynomial(size_t n, size_t d, size_t m,
                                         const double *x, double *E);
/* ---- gradient_linked.c --------------------------------------------------- */

/* The code of a V, (submessages n) x (units + submessages (n-d)), rows t n + i:
 * in submessage t only the first units + (t+1) (n-d) columns of it matter.  `u`
 * is linked, of field 1, with room for P. */
kofn_status kf_dual_of(kf_dual *u, const double *V);
/* A Gaussian V; and the code of one, which is encoded. */
double *kf_gradient_gaussian_V(const kf_dual *u, uint64_t seed);
kofn_status kf_dual_draw(kf_dual *u, uint64_t seed);

#endif
