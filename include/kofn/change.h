/* change.h -- operands that change in place: changes, reading them back, and
 * the search for wrong blocks.
 *
 * For programs that train on coded operands.  <kofn.h> includes it. */
#ifndef KOFN_CHANGE_H
#define KOFN_CHANGE_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest number of optimizer states of an operand. */
#define KOFN_CHANGE_STATES 3

/* A change of an operand by U' V: a step of any linear optimizer.
 *
 * State 0 of an operand is the operand A itself.  States 1, 2, ... are
 * optimizer states, such as a velocity or a running mean.  They have the shape
 * of A and are 0 at first.  Every state up to `states` becomes
 *
 *     state s = add[s] U' V + sum over t of keep[s][t] (state t before)
 *
 * Later states are discarded, and a state with factors 0 is forgotten.  By
 * default A becomes A - U' V.  docs/training.md has examples. */
typedef struct kofn_change {
    size_t size;   /* sizeof(kofn_change) */
    size_t states; /* optimizer states: 0 to KOFN_CHANGE_STATES; 0 */
    /* finite; keep[0][0] is 1, and the others are 0 */
    double keep[KOFN_CHANGE_STATES + 1][KOFN_CHANGE_STATES + 1];
    double add[KOFN_CHANGE_STATES + 1]; /* finite; add[0] is -1, others 0 */
} kofn_change;
#define KOFN_CHANGE_INIT                                                       \
    {                                                                          \
        sizeof(kofn_change), 0, {{1}},                                         \
        {                                                                      \
            -1                                                                 \
        }                                                                      \
    }
/* Sets the factors of a step of gradient descent, as PyTorch's SGD makes it.
 * The gradient is U' V, and the velocity M is optimizer state 1:
 *
 *     G = U' V + decay A
 *     M = momentum M + G
 *     A = A - step M                        without `nesterov`
 *     A = A - step (G + momentum M)         with `nesterov`
 *
 * With momentum 0 there is no optimizer state.
 * KOFN_NONFINITE: a number is not finite.
 * KOFN_INVAL: `change` was not made by KOFN_CHANGE_INIT. */
KOFN_API kofn_status kofn_change_sgd(kofn_change *change, double step,
                                     double decay, double momentum,
                                     bool nesterov);
/* Changes an operand in the blocks that the workers hold.
 *
 * U is r x m and V r x n, with a row for each example of a batch.  With both
 * NULL, U' V is 0.  U and V belong to the caller again after the call.
 * The change takes effect before any product that starts later.  The placed
 * matrix is never written: a worker with a view of it as its block gets its own
 * copy.  Workers that join later get blocks rebuilt from those of other
 * workers, while products continue.
 *
 * With `errors` the floor in the report grows with every change.  kofn_fetch
 * sets it anew, from the present size of the operand.  The size at the last
 * fetch, or of the largest change since then, counts instead if it is larger.
 *
 * KOFN_STATE: a product of this operand is not over, an operand is not placed,
 * or the job has failed.
 * KOFN_UNSUITED: the blocks cannot change.  A is sparse, the rows of the code
 * are not outer products (basis=complex), `errors` is KOFN_ERRORS_KEYED, or
 * workers may hold blocks of an earlier run (kofn_away_options.job).
 * KOFN_INVAL, KOFN_SHAPE: an argument is missing or has a wrong shape or type.
 * KOFN_INVAL: also if `states` exceeds KOFN_CHANGE_STATES.
 * KOFN_NONFINITE: a number is not finite, or A may become too large for its
 * type.
 * KOFN_TOOFEW: a later product returns it if too few workers are left to
 * rebuild blocks.
 * KOFN_LATE, KOFN_TRANSPORT: as for kofn_take; the job has failed. */
KOFN_API kofn_status kofn_update(kofn_job *job, size_t operand,
                                 const kofn_change *change,
                                 const kofn_matrix *U, const kofn_matrix *V);
/* Reads a state of an operand into A (m x n, of the type of the plan) from any
 * blocks that determine it.  State 0 is the operand itself.  A state that the
 * operand does not have is read as 0.  For the events of a job
 * (kofn_options.events) a fetch is a round.
 * KOFN_UNSUITED: the blocks of the plan cannot be read.
 * KOFN_INVAL: also if there is no such operand, or `state` exceeds
 * KOFN_CHANGE_STATES.
 * KOFN_PARTIAL: as for kofn_take.
 * Otherwise it returns the failures of kofn_put and kofn_take. */
KOFN_API kofn_status kofn_fetch(kofn_job *job, size_t operand, size_t state,
                                kofn_matrix *A, kofn_report *rep);
/* Compares the blocks of all operands, as held by all workers that are not
 * late.  It also finds wrong blocks that no product has revealed.
 *
 * A worker with a wrong block is located (kofn_report) and its block is
 * rebuilt, from other blocks or from the placed matrix, while products
 * continue.  Each wrong block counts towards exclusion
 * (kofn_options.quarantine).  If an operand changes, its blocks are also
 * compared automatically once a worker is located in a product of it.
 *
 * KOFN_UNSUITED: the job has no `errors`, or blocks of the plan cannot be read.
 * KOFN_CORRUPT: more blocks differ than can be located.  KOFN_TOOFEW: too few
 * workers are live.  With these two no worker is judged and the job stays
 * usable.
 * KOFN_STATE: an operand is not placed, or the job has failed.
 * KOFN_LATE, KOFN_TRANSPORT: as for kofn_take; the job has failed. */
KOFN_API kofn_status kofn_scrub(kofn_job *job, kofn_report *rep);

#ifdef __cplusplus
}
#endif

#endif
