/* norms.h -- norms of the rows and columns of operands and inputs: the scale of
 * results.
 *
 * A kf_norms owns its lines until kf_norms_forget; other arrays belong to the
 * caller. */
#ifndef KF_NORMS_H
#define KF_NORMS_H

#include "data/data.h"

/* Compute norms of rows over parts side by side, or of columns over parts below
 * each other.  Parts without rows do not count.  Squares of entries may be
 * beyond the range of a double. */
kofn_status kf_norms_of_part_rows(const kofn_matrix *part, size_t parts,
                                  double *row, size_t rows);
/* Computes the norms of columns multiplied by a power of two. */
kofn_status kf_norms_of_columns(const kofn_matrix *part, size_t parts,
                                double by, double *col, size_t cols);
/* Computes the norms of the columns of A; a part has `cols` of them. */
kofn_status kf_norms_of_resident_columns(const kf_resident *r, double *col,
                                         size_t cols);
/* Computes the norms of the rows of the parts of A in a group, `span` of them,
 * scaled like the blocks (kf_resident.by). */
kofn_status kf_norms_of_rows(const kf_resident *r, size_t group, double *row);
/* Computes the norms of the columns of a product's input, or of the rows of the
 * input of a left product, and allocates them.  The input is `whole`, or cut
 * into the parts of the messages.  The norms are ones if A itself is read. */
kofn_status kf_norms_of_input(const kofn_plan *use, const kf_messages *m,
                              const kofn_matrix *whole, double **out);

/* ---- an operand ---------------------------------------------------------- */

/* Norms of an operand: a line for the rows of each group, then one for its
 * columns.  A line that is NULL is unknown. */
typedef struct kf_norms {
    size_t groups;
    double **norm; /* while the operand changes, upper bounds */
    bool awaits;   /* changes were prepared for */
    size_t states; /* optimizer states with norms: state[0] is for state 1 */
    double **state[KOFN_CHANGE_STATES];
    double **least; /* least values of the norms, from when they were known or
                     * the largest step since, with decay; NULL: the norms are
                     * not computed anew */
} kf_norms;

/* Computes the norms of the rows of a group, or of the columns, unless they are
 * known. */
kofn_status kf_norms_know(kf_norms *n, const kf_resident *r, bool columns,
                          size_t group);
/* Makes room for all norms of an operand that comes strip by strip. */
kofn_status kf_norms_expect(kf_norms *n, const kf_resident *r);
void kf_norms_forget(kf_norms *n);

/* ---- an operand that changes (norms_change.c) ---------------------------- */

/* Prepares for changes with this number of optimizer states, unless that was
 * done: all norms are known.  With `renewed` they will be computed anew later.
 */
kofn_status kf_norms_await(kf_norms *n, const kf_resident *r, size_t states,
                           bool renewed);
/* Returns the norms of a state, of the rows of a group or of the columns; NULL
 * if it has none. */
static inline double *kf_norms_state(const kf_norms *n, size_t state,
                                     size_t line)
{
    if (state == 0)
        return n->norm[line];
    return state <= n->states ? n->state[state - 1][line] : NULL;
}
/* Updates norms for a change of the operand.  They remain upper bounds. */
kofn_status kf_norms_grow(kf_norms *n, const kf_resident *r,
                          const kofn_change *change, const kofn_matrix *U,
                          const kofn_matrix *V);
/* Computes the norms anew from the operand as it is now, `now`. */
kofn_status kf_norms_renew(kf_norms *n, const kf_resident *now);
/* Updates norms from the strips of the operand that begin at `at`.  *cols
 * accumulates the norms of columns, which are known when all strips have been
 * seen. */
kofn_status kf_norms_renew_rows(kf_norms *n, const kf_resident *strips,
                                size_t at, double **cols);
/* Sets the norms of columns after all strips. */
void kf_norms_renew_cols(kf_norms *n, const kf_resident *r, double **cols);

#endif
