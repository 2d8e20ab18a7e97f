/* policy.h -- the differences between rounds, adjoint rounds and streams.
 *
 * In *rounds* (R) the worker on a seat stores a block.  When a product begins,
 * the worker answers the rows of its seat (rounds.c).  In an *adjoint* round
 * (A) the result is the sum of all answers.  So each answer is needed, and its
 * input was mixed for this set of workers (adjoint.c).  In a *stream* (S)
 * workers store nothing, any worker answers any row, and a product may take
 * several rounds (stream.c).
 *
 * A use of a plan has one policy for its whole life.  Shared code calls the
 * functions of the policy and must not ask which policy it is.  A function that
 * is NULL has nothing to do. */
#ifndef KF_CORE_POLICY_H
#define KF_CORE_POLICY_H

#include "fleet.h"
#include "product.h"

typedef struct kf_round kf_round;

typedef struct kf_policy {
    /* Refuses options that the plan cannot serve. */
    kofn_status (*limits)(const kofn_plan *p, const kofn_core_options *o);
    /* Makes the fleet.  R, A: with the seats of the code.  S: with any
     * number. */
    kofn_status (*open)(kofn_core *c);
    /* Gives a worker a seat.  R, A: the worker has to store a block.  S: it is
     * live. */
    kofn_status (*sit)(kofn_core *c, uint32_t worker, size_t seat);
    /* Apply an event of a product, or of none; r is the round of that product,
     * or NULL.  S: products cannot be cancelled, and no block can be void.
     * After a failed task, R: others are asked for it; A: the round restarts
     * and all answers are dropped; S: others are asked for it if the product is
     * due. */
    kofn_status (*on[KOFN_EV_JUDGED + 1])(kofn_core *c, kf_round *r,
                                          const kofn_event *ev);
    /* Acts on marks until it can only wait.  S: also ends rounds. */
    kofn_status (*go_on)(kofn_core *c);
    /* Returns NULL, or the invariant that does not hold between steps. */
    const char *(*wrong)(const kofn_core *c);

    /* True if work has to be taken back when this worker goes.  R: if it could
     * have been asked.  A: if it owes an answer. */
    bool (*misses)(const kofn_core *c, const kf_round *r, uint32_t worker);
    /* Takes work back.  R: as in_flight of the options says.  A: all work and
     * all answers. */
    kofn_status (*back)(kofn_core *c, kf_round *r);
    /* Asks for the work that is owed to a group.  R: pieces, or only the
     * missing results.  A: one sum from each worker, mixed for the workers that
     * are asked. */
    kofn_status (*deal)(kofn_core *c, kf_round *r, size_t group, kf_owed owed);
    /* Acts on late workers.  R: asks others for the late work.  A: restarts
     * without the late workers. */
    void (*late)(kofn_core *c, kf_round *r);
    /* Settles the strips of b by the n tasks at the end of the pool.  R, S:
     * orders decoding.  A: adds all answers up when all strips are settled. */
    kofn_status (*decode)(kofn_core *c, kf_product *p, kf_band b,
                          const kofn_decoder *d, size_t n);
    /* Follows the end of a product.  S: lists may be done then. */
    void (*over)(kofn_core *c);
    /* Returns the number of live workers that a product waits for.  R, A:
     * enough for every group.  S: one. */
    size_t (*needed)(const kf_product *p);

    /* Counts the principals that have a say in a comparison.  R, A: seats
     * count.  S: results count. */
    kf_voices (*voices)(kofn_core *c, kf_round *r, size_t group,
                        const uint32_t *tasks, size_t n);
    /* Returns the number of principals that may lie if `spare` results may be
     * wrong. */
    size_t (*liars)(const kf_fleet *f, const kf_voices *v, size_t spare);
    /* Counts the results that are zero whatever the input, among all that may
     * take part in the check. */
    kofn_status (*silent)(const kf_fleet *f, const kf_product *p,
                          const kofn_action *check, const uint32_t *tasks,
                          size_t *silent);
    /* Returns the number of results to wait for after the n results of a check
     * disagreed. */
    size_t (*apart)(const kf_fleet *f, const kf_product *p, const kf_asked *a,
                    size_t n);
} kf_policy;

extern const kf_policy kf_rounds, kf_rounds_adjoint, kf_stream_policy;

#endif
