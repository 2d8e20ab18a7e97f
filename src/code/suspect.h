/* suspect.h -- from sketches of results to the seats that sent wrong ones.
 *
 * All functions borrow the evidence; found[] and outputs belong to the caller.
 * Nodes are numbers of seats here; excluding a worker is decided elsewhere. */
#ifndef KF_SUSPECT_H
#define KF_SUSPECT_H

#include "code.h"

/* The evidence of one cell: a sketch of every result, and the parities that
 * honest results satisfy. */
typedef struct kf_evidence {
    size_t nodes, components; /* seats; results that each answers together */
    bool closed;              /* right multiples of codewords are codewords:
                               * quaternions */
    size_t q;        /* parities                                       */
    const double *H; /* q x (nodes components), orthonormal rows            */
    size_t columns;
    const double *Y; /* (nodes components) x columns                        */
    double noise;    /* usual rounding of an entry of Y */
    double alarm;    /* no honest entry has this much rounding */
    double bound;    /* no honest entry is larger; HUGE_VAL: unknown */
    size_t over;     /* results beyond those that surely decode */
    size_t liars;    /* nodes that may be wrong in any way */
    size_t independent; /* nodes that may be wrong without conspiring */
} kf_evidence;

enum {
    KF_HONEST,
    KF_DOUBTED, /* left out, but not proved corrupt */
    KF_LOCATED  /* proved corrupt */
};

/* Judges the evidence.  found[] receives a verdict for each node; *count nodes
 * are located.
 *
 * KOFN_OK: the remaining results agree, and at least one parity confirms it.
 * An undetected error is at most *unseen in length in its parities of any
 * column (kf_hidden).  Without parities nothing can disagree, and *unseen is
 * HUGE_VAL.
 *
 * KOFN_CORRUPT: results disagree and the error cannot be located, or more than
 * `most` nodes would have to be left out.  The nodes that are certainly corrupt
 * are then in found[].  With most = 0 there is no search for them. */
kofn_status kf_suspect(const kf_evidence *e, size_t most, uint8_t *found,
                       size_t *count, double *unseen);

/* Bounds the effect on an output D y of at most `few` wrong nodes with errors
 * of total length 1 in all parities (|H E| = 1).  NULL for D means y itself.
 * Only the parities of e are used; D is wants x (nodes components). */
kofn_status kf_hidden(const kf_evidence *e, const double *D, size_t wants,
                      size_t few, double *worst);
/* Computes the same for a decoder with these parities.  Results are divided by
 * the weights of their seats. */
kofn_status kf_hidden_of(kf_code *c, const kofn_decoder *d, const double *H,
                         size_t q, size_t few, double *worst);

/* Returns the number of nodes that may be wrong in any way and still unlocated.
 * If other nodes are promised to be located, it is at most `over`. */
size_t kf_code_may_hide(size_t liars, size_t independent, size_t located,
                        size_t over);
/* Returns the length at which a column of q parities shows a disagreement. */
double kf_code_unseen(double alarm, size_t q);
/* Returns the undetected error that an output entry may have.  It is a sure
 * bound.  If more nodes may be wrong (`more`), it is exceeded with the
 * probability KF_MISSED. */
double kf_code_floor(double unseen, double gains, size_t q, bool more);

/* Computes the parities of a survivor set.  *H is *q x (n components) with
 * orthonormal rows.  H y = 0 for honest results y, each divided by the weight
 * of its seat.  Seats ascend.  *q may be 0. */
kofn_status kf_parity(kf_code *c, const uint32_t *seats, size_t n, double **H,
                      size_t *q);

#endif
