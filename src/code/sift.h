/* sift.h -- the rows of a survivor set, sorted into what they hold plainly and
 * what has to be solved for.  Between decoder.c, parity.c and unknown.c.
 *
 * The lists are the caller's arrays; G is borrowed from the seats. */
#ifndef KF_SIFT_H
#define KF_SIFT_H

#include "code.h"

/* The survivors' rows sorted into what is known and what is asked. */
typedef struct kf_sift {
    size_t symbols, results, unknown, rows;
    const kf_row **row; /* per result                              */
    double *weight;     /* per result: what its rounding is in     */
    uint32_t *first;    /* per result: the first with the same row */
    int32_t *from;      /* per symbol: result that is it, or -1    */
    uint32_t *place;    /* per symbol: its column in P or K        */
    uint32_t *use;      /* results that make the system            */
    bool quaternions;   /* P and B are made of such (quaternion.c) */
    kf_arrays arrays;   /* what all these are of, and scratch      */
} kf_sift;

/* Sorts the rows of these seats, and numbers the symbols that no row holds
 * plainly and the others.  For a decoder results carry the rounding |E0| |E1|
 * of their own lane, and any of several that hold a symbol will do; for
 * parities they are divided by the weights of their seats, and it is the first.
 */
kofn_status kf_sift_rows(kf_sift *s, kf_code *c, const uint32_t *seats,
                         size_t n, bool parities);
/* Is it this result by which its symbol is known? */
bool kf_sift_is_plain(const kf_sift *s, size_t result);

/* Solves for the unknown symbols: D has a row for each and a column for every
 * result, and is the caller's.  *condition is that of the system, *off how far
 * D G is from what it should be. */
kofn_status kf_solve_unknown(kf_sift *s, double **D, double *condition,
                             double *off);

#endif
