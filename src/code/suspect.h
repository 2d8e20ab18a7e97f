/* suspect.h -- who lied?  From sketches of results to the seats that sent
 * wrong ones. */
#ifndef KF_SUSPECT_H
#define KF_SUSPECT_H

#include "code.h"

/* What is known of one cell: a sketch of every result and the parities that
 * honest results satisfy. */
typedef struct kf_evidence {
    size_t nodes, lanes; /* seats; results of each, answered together      */
    bool closed;         /* right multiples of codewords are codewords
                            (lanes is 4: quaternions)                      */
    size_t q;            /* parities                                       */
    const double *H;     /* q x (nodes lanes), orthonormal rows            */
    size_t columns;
    const double *Y;     /* (nodes lanes) x columns                        */
    double noise;        /* usual rounding of an entry of Y                */
    double alarm;        /* rounding that no honest entry reaches          */
    double bound;        /* no honest entry is larger; HUGE_VAL: unknown   */
} kf_evidence;

/* Marks the nodes that lied in bad[] (nodes flags) and counts them.
 *
 * KOFN_OK: what is left agrees, with at least one parity over to say so; an
 * entry that is wrong by less than *floor can be among it.  Without parities
 * nothing disagrees, and *floor is HUGE_VAL.
 * KOFN_CORRUPT: something disagrees and nobody can be named for certain, or
 * more than `most` nodes would have to be; bad[] then holds those of whom it
 * is sure.  With most = 0 this is said without looking for them. */
kofn_status kf_suspect(const kf_evidence *e, size_t most, uint8_t *bad,
                       size_t *count, double *floor);

/* The parities of a survivor set: *H is *q x (n lanes) with orthonormal rows
 * such that H y = 0 for honest results y, each divided by the weight of its
 * seat.  Seats ascend.  *q may be 0. */
kofn_status kf_parity(kf_code *c, const uint32_t *seats, size_t n, double **H,
                      size_t *q);

#endif
