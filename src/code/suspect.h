/* suspect.h -- who is corrupt?  From sketches of results to the seats that sent
 * wrong ones.
 *
 * Evidence is borrowed by all of these; found[] and what is returned are the
 * caller's.  Nodes are numbers here, and nobody is excluded by what they find.
 */
#ifndef KF_SUSPECT_H
#define KF_SUSPECT_H

#include "code.h"

/* The evidence about one cell: a sketch of every result and the parities that
 * honest results satisfy. */
typedef struct kf_evidence {
    size_t nodes, lanes; /* seats; results of each, answered together      */
    bool closed;         /* right multiples of codewords are codewords
                            (lanes is 4: quaternions)                      */
    size_t q;            /* parities                                       */
    const double *H;     /* q x (nodes lanes), orthonormal rows            */
    size_t columns;
    const double *Y; /* (nodes lanes) x columns                        */
    double noise;    /* usual rounding of an entry of Y                */
    double alarm;    /* rounding that no honest entry reaches          */
    double bound;    /* no honest entry is larger; HUGE_VAL: unknown   */
    size_t over;     /* results beyond those that surely decode        */
    size_t liars;    /* as many as this may lie as they like           */
    size_t promised; /* as many as this in ways that do not conspire   */
} kf_evidence;

enum {
    KF_HONEST,
    KF_DOUBTED, /* left out, for all that is known for no reason */
    KF_LOCATED  /* for certain: located                            */
};

/* Judges the evidence: the finding of each node goes to found[] (nodes of
 * them); *count are located.
 *
 * KOFN_OK: what is left agrees, with at least one parity over to say so; what
 * is wrong with it leaves no more than *unseen, in length, in its parities of
 * any column (kf_hidden).  Without parities nothing disagrees, and *unseen is
 * HUGE_VAL.
 * KOFN_CORRUPT: something disagrees and cannot be sorted out, or more than
 * `most` nodes would have to be left out; found[] then names those of whom it
 * is sure.  With most = 0 this is said without looking for them. */
kofn_status kf_suspect(const kf_evidence *e, size_t most, uint8_t *found,
                       size_t *count, double *unseen);

/* The worst that at most `few` nodes, wrong by H E of length 1 in all their
 * parities together, make of an output D y; of y itself without D.  Of e only
 * the parities are asked; D is wants x (nodes lanes). */
kofn_status kf_hidden(const kf_evidence *e, const double *D, size_t wants,
                      size_t few, double *worst);
/* The same of a decoder, whose parities these are, for results divided by the
 * weights of their seats. */
kofn_status kf_hidden_of(kf_code *c, const kofn_decoder *d, const double *H,
                         size_t q, size_t few, double *worst);

/* Of those not located, as many may be wrong together, whatever they are wrong
 * by, and show; where others are promised to be found besides, no more than are
 * `over`. */
size_t kf_code_may_hide(size_t liars, size_t promised, size_t located,
                        size_t over);
/* The length that a column of q parities has to have before it shows. */
double kf_code_unseen(double alarm, size_t q);
/* The error that an entry of the output may have unseen: for certain, or, when
 * more may lie than that, with a chance of KF_MISSED that they pass. */
double kf_code_floor(double unseen, double gains, size_t q, bool more);

/* The parities of a survivor set: *H is *q x (n lanes) with orthonormal rows
 * such that H y = 0 for honest results y, each divided by the weight of its
 * seat.  Seats ascend.  *q may be 0. */
kofn_status kf_parity(kf_code *c, const uint32_t *seats, size_t n, double **H,
                      size_t *q);

#endif
