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
    const double *Y;     /* (nodes lanes) x columns, in units in which the
                            rounding of an honest entry is about `noise`   */
    double noise;
    double bound;        /* no honest entry is larger; HUGE_VAL: unknown   */
} kf_evidence;

/* Marks the nodes that lied in bad[] (nodes flags) and counts them.
 *
 * KOFN_OK: what is left agrees, with at least one parity over to say so.
 * KOFN_CORRUPT: something disagrees and nobody can be named, or more than
 * `most` nodes would have to be; bad[] then holds those of whom it is sure. */
kofn_status kf_suspect(const kf_evidence *e, size_t most, uint8_t *bad,
                       size_t *count);

/* The parities of a survivor set: *H is *q x (n lanes) with orthonormal rows
 * and H G = 0.  Seats ascend.  *q may be 0. */
kofn_status kf_parity(kf_code *c, const uint32_t *seats, size_t n, double **H,
                      size_t *q);

#endif
