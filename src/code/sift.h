/* sift.h -- the rows of a survivor set, sorted into plain symbols and symbols
 * to solve for.  Used by decoder.c, parity.c and unknown.c.
 *
 * The lists are in the caller's arrays; G is borrowed from the seats. */
#ifndef KF_SIFT_H
#define KF_SIFT_H

#include "code.h"

/* The survivors' rows, sorted into known and unknown symbols. */
typedef struct kf_sift {
    size_t symbols, results, unknown, rows;
    const kf_row **row; /* per result                              */
    double *weight;     /* per result: the unit of its rounding */
    uint32_t *first;    /* per result: the first result with the same row */
    int32_t *from;      /* per symbol: the result that equals it, or -1 */
    uint32_t *place;    /* per symbol: its column in P or K        */
    uint32_t *use;      /* results in the system */
    bool quaternions;   /* P and B consist of such blocks (quaternion.c) */
    kf_arrays arrays;   /* owns all of these, and scratch */
} kf_sift;

/* Sorts the rows of these seats.  Numbers the symbols that no row holds
 * plainly, and the others.  For a decoder, a result has the rounding |E0| |E1|
 * of its component, and any result may give a plain symbol.  For parities,
 * results are divided by the weights of their seats, and the first result gives
 * the symbol. */
kofn_status kf_sift_rows(kf_sift *s, kf_code *c, const uint32_t *seats,
                         size_t n, bool parities);
/* True if this result gives its symbol plainly. */
bool kf_sift_is_plain(const kf_sift *s, size_t result);

/* Solves for the unknown symbols.  D has a row for each of them and a column
 * for every result, and belongs to the caller.  The output `condition` is that
 * of the system; `off` is the distance of D G from its exact value. */
kofn_status kf_solve_unknown(kf_sift *s, double **D, double *condition,
                             double *off);

#endif
