/* sift.h -- the rows of a survivor set, sorted into what they hold plainly and what
 * has to be solved for.  Between decoder.c and unknown.c.
 *
 * The lists are the decoder's scratch, freed by it; G is borrowed from the
 * seats. */
#ifndef KF_SIFT_H
#define KF_SIFT_H

#include "code.h"

/* The survivors' rows sorted into what is known and what is asked. */
typedef struct kf_sift {
    size_t symbols, results, unknown, rows;
    const kf_row **row; /* per result                              */
    double *weight;     /* per result: |E0| |E1|, what it enlarges */
    uint32_t *first;    /* per result: the first with the same row */
    int32_t *from;      /* per symbol: result that is it, or -1    */
    uint32_t *place;    /* per symbol: its column in P or K        */
    uint32_t *use;      /* results that make the system            */
    bool quaternions;   /* P and B are made of such (quaternion.c) */
} kf_sift;

/* Solves for the unknown symbols: D has a row for each and a column for every
 * result, and is the caller's.  *condition is that of the system, *off how far
 * D G is from what it should be. */
kofn_status kf_solve_unknown(const kf_sift *s, double **D, double *condition,
                             double *off);

#endif
