/* gradient.h -- what the gradient codes share.
 *
 * The wanted result is the sum of the vectors g_j of the parts j = 0..n-1 of
 * the data.  Seat i computes d of the vectors, j = i .. i+d-1 around the
 * circle, and sends mixtures of their segments.  A *unit* is a segment with
 * `field` real numbers per element.  These are complex numbers or quaternions
 * made of neighbouring segments, which adds no traffic.  All matrices below are
 * real; an entry stands for a field x field block.
 *
 * A kf_gradient is the state of a layout and owns its duals; a dual owns its
 * matrices.  All are constant after the layout is made.  So any thread may
 * request rows. */
#ifndef KF_GRADIENT_H
#define KF_GRADIENT_H

#include "code/author.h"

#include <math.h>

/* A code given by its dual: a matrix M with a row for each seat and d columns.
 * For every part j and submessage t,
 *
 *     sum over the seats i that hold j of  M_i' E_(t,i),j = P_t.
 *
 * E_(t,i),j is the mixture of part j that seat i sends in submessage t.  For
 * any set of missing seats, some combinations of the columns of M are zero in
 * the rows of these seats.  Each of them is an equation on the wanted sum.
 * Their number is the number of columns minus the number of missing seats. */
typedef struct kf_dual {
    size_t n, d, units, submessages;
    size_t field; /* real numbers in a unit: 1, 2 or 4                      */
    bool linked;  /* M has a row t n + i and a column t d + q for each
                   submessage t                                           */
    double *M;    /* rows of seats x columns                                */
    double *X;    /* part j: (M of its holders)^-T; linked: its E */
    double *P;    /* of submessage t: d x units; NULL:                       */
    size_t *slot; /* t d + q: the unit with entry 1 in row q of P_t, or NONE */
    double *norm; /* t n + i: divisor of the row of E */
    kf_arrays owned; /* owns all of these */
} kf_dual;
#define KF_NONE SIZE_MAX

/* ---- gradient_dual.c ----------------------------------------------------- */

/* Allocates M, X, P or slots, and norms of 1. The sizes must be set. */
kofn_status kf_dual_new(kf_dual *u, bool slots);
/* Computes X from M, and also from P if submessages are linked. */
kofn_status kf_dual_encode(kf_dual *u);
/* Scales the rows of E to norm 1, so that the rounding error is the same for
 * every submessage and seat. */
kofn_status kf_dual_level(kf_dual *u);
/* Returns the largest |X_j|.  A large value means that the holders of a part
 * hardly determine it. */
double kf_dual_spread(const kf_dual *u);
/* Adds the rows of seat i in submessage t to G.  The parts of this code start
 * at part `first`, and rows are `wide` numbers apart. */
void kf_dual_row(const kf_dual *u, size_t i, size_t t, size_t first,
                 size_t wide, double *G);
/* Fails with KOFN_TOOFEW if these answers give too few equations.  This check
 * is quick. */
kofn_status kf_dual_enough(const kf_dual *u, const uint32_t *answers,
                           size_t count, uint32_t base);
/* Solves for the units with the answers seat submessages + submessage, which
 * ascend from `base`.  Rows of D are `wide` numbers apart.  Fails with
 * KOFN_TOOFEW if the answers do not determine all units. */
kofn_status kf_dual_decode(const kf_dual *u, const uint32_t *answers,
                           size_t count, uint32_t base, double *D, size_t wide);
/* One Householder step: reflects rows c.. of T (w x wide) so that column c is 0
 * below row c.  Columns before c are unchanged.  `scratch` has room for a row.
 */
void kf_gradient_eliminate(double *T, size_t w, size_t wide, size_t c,
                           double *scratch);

/* ---- gradient_field.c: the matrices M ------------------------------------ */

/* Returns the best field: 1 for d = 1, complex numbers for d <= 8, else
 * quaternions. */
size_t kf_gradient_best_field(size_t d);
/* Fills M and X for d and the field.  M is 1 if nothing is to be cancelled,
 * else stride-DFT or the best of some draws of orthonormal quaternions. */
kofn_status kf_dual_fill(kf_dual *u, long draws, uint64_t seed);
/* Fills P with Gaussian numbers of the field. */
kofn_status kf_dual_random_P(kf_dual *u, uint64_t seed);

/* ---- gradient_layout.c: plans of one code or of several ------------------ */

/* Codes side by side on `d` seats each.  The last code also has the remaining
 * seats.  All codes but the last are equal. */
typedef struct kf_gradient {
    size_t codes, d;
    kf_dual code[2]; /* of all codes but the last; of the last */
    double *E;       /* published code: seats x (parts x segments) */
} kf_gradient;

/* Allocates the state of L with the sizes of its codes, one for each group.
 * NULL if there is no memory. */
kf_gradient *kf_gradient_new(kofn_layout *L, size_t d, size_t groups);
/* Sets the sizes of the layout for `units` segments of `field` numbers. */
kofn_status kf_gradient_sizes(kofn_layout *L, const char *who, size_t units,
                              size_t field, size_t submessages);
/* The functions seat() and decode() of a scheme. */
kofn_status kf_gradient_seat(const kofn_layout *L, size_t answer, double *E0,
                             double *E1, double *G);
kofn_status kf_gradient_decode(const kofn_layout *L, const uint32_t *answers,
                               size_t count, double *D);

/* What a scheme fixes of its family. */
typedef struct kf_preset {
    const char *name;
    bool whole;  /* vectors are not cut: m = 1               */
    bool groups; /* groups = floor(n/d), and not a parameter */
} kf_preset;

/* Reads the parameters d and groups.  If neither is given, d is 3, or the
 * number of workers if that is smaller.  With several groups d is the number
 * of workers of each; the last may have more if d is given. */
kofn_status kf_gradient_groups(const kofn_layout *L, const kf_preset *p,
                               size_t *d, size_t *groups);
#define KF_D_PARAM                                                             \
    "d", KOFN_AUTO, 1, 1000, "parts that each worker computes; auto: 3", NULL
/* The same, and `groups`, of a scheme that has both. */
#define KF_D_GROUPS_PARAM                                                      \
    "d", KOFN_AUTO, 1, 1000,                                                   \
        "parts that each worker computes; auto: 3, or workers/groups", NULL
#define KF_GROUPS_PARAM                                                        \
    "groups", 1, 1, 100000,                                                    \
        "codes side by side, decoded apart, on d = workers/groups workers "    \
        "each; 1: one code of all workers, with any d",                        \
        NULL
/* Defines the scheme kf_WHICH.  The function layout(L, preset) of its file
 * makes the layout. */
#define KF_PRESET(which, spelled, whole, groups, table, decoder, about,        \
                  source)                                                      \
    static kofn_status which##_layout(kofn_layout *L)                          \
    {                                                                          \
        return layout(L, &(const kf_preset){spelled, whole, groups});          \
    }                                                                          \
    const kofn_scheme kf_##which = {                                           \
        .size = sizeof(kofn_scheme),                                           \
        .name = spelled,                                                       \
        .summary = about,                                                      \
        .cite = source,                                                        \
        .ops = KOFN_SUM,                                                       \
        .params = table,                                                       \
        .layout = which##_layout,                                              \
        .seat = kf_gradient_seat,                                              \
        .decode = decoder,                                                     \
    }

/* ---- gradient_paper.c: as they were published ---------------------------- */

/* Fill E, seats x parts (x m segments).  Here H is (d-1) x n with rows that sum
 * to 0.  Fails with KOFN_UNSTABLE if the draw is singular. */
kofn_status kf_gradient_paper_null(size_t n, size_t d, const double *H,
                                   double *E);
kofn_status kf_gradient_paper_cyclic(size_t n, size_t d, uint64_t seed,
                                     double *E);
/* Uses the points x, one for each seat. */
kofn_status kf_gradient_paper_polynomial(size_t n, size_t d, size_t m,
                                         const double *x, double *E);
/* ---- gradient_linked.c --------------------------------------------------- */

/* Makes the code of a V, which is (submessages n) x (units + submessages (n-d))
 * with rows t n + i.  Submessage t uses only the first units + (t+1) (n-d)
 * columns.  `u` is linked, of field 1, with room for P. */
kofn_status kf_dual_of(kf_dual *u, const double *V);
/* Return a Gaussian V; make and encode the code of one. */
double *kf_gradient_gaussian_V(const kf_dual *u, uint64_t seed);
kofn_status kf_dual_draw(kf_dual *u, uint64_t seed);

#endif
