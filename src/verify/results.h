/* results.h -- from operands and answers to a finding.
 *
 * A kf_sides owns the norms of the input until kf_sides_forget; operands and
 * their norms are borrowed. */
#ifndef KF_RESULTS_H
#define KF_RESULTS_H

#include "compare.h"
#include "norms.h"

/* Both operands of a product, with their norms, which are computed when they
 * are needed and kept. */
typedef struct kf_sides {
    const kf_resident *resident;
    kf_norms *norms;             /* of the resident operand */
    size_t state;                /* that is read: 0, or an optimizer state */
    const kf_messages *messages; /* the parts of the input, if it is cut */
    const kofn_matrix *whole;    /* the input, if it is not */
    double *input; /* norms of its columns, in left products of its rows; NULL:
                      unknown */
} kf_sides;

/* Computes the norms of the input unless they are known. */
kofn_status kf_sides_know_input(kf_sides *s, const kofn_plan *use);
/* Measures results by both operands: sets row and col of the comparison. */
kofn_status kf_sides_measure(kf_sides *s, kf_compare *c);
/* Forgets the input. */
void kf_sides_forget(kf_sides *s);

/* Compares results and fills *found, with room for all in found->bad.  Results
 * are measured by the operands, or by themselves if the operands are not known.
 * The row, col, terms and parities of `c` are set here.  `most` and `last` are
 * those of kf_compare_decide.  Fails if nothing could be decided. */
kofn_status kf_verify_results(kf_compare *c, kf_sides *s, kf_cache *cache,
                              double most, bool last, kf_found *found);
/* Returns the relative error of an output with errors up to `floor` in every
 * entry, if the operands are like random numbers. */
double kf_verify_error(const kofn_plan *use, double floor);

#endif
