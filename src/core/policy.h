/* policy.h -- what rounds, adjoint rounds and streams do differently.
 *
 * In *rounds* (R) the worker on a seat stores a block and answers the rows of its
 * seat, of each product as it begins (rounds.c).  An *adjoint* round (A) differs in
 * what a single answer is worth: the answers are added up, so that each is needed
 * and was mixed for the others (adjoint.c).  In a *stream* (S) nothing is stored,
 * everybody answers any row, and a product may take several rounds (stream.c).
 *
 * A use of a plan has a policy from the moment it is made.  Whatever more than one
 * policy runs through asks the functions of the policy, and may not ask which it
 * is.  A function that is NULL has nothing to do. */
#ifndef KF_CORE_POLICY_H
#define KF_CORE_POLICY_H

#include "fleet.h"
#include "product.h"

typedef struct kf_round kf_round;

typedef struct kf_policy {
    /* Refuses options that the plan cannot serve. */
    kofn_status (*limits)(const kofn_plan *p, const kofn_core_options *o);
    /* Makes the fleet.  R, A: of the seats of the code.  S: of any number. */
    kofn_status (*open)(kofn_core *c);
    /* A worker takes a seat.  R, A: it is to store a block.  S: it is live. */
    kofn_status (*sit)(kofn_core *c, uint32_t worker, size_t seat);
    /* Apply an event of a product, or of none.  S: none is cancelled, and no
     * block is void.  A task that failed is, R: asked of others, A: the end of
     * all that has come, S: asked of others if it is due. */
    kofn_status (*on[KOFN_EV_JUDGED + 1])(kofn_core *c, kf_round *r,
                                          const kofn_event *ev);
    /* Acts on marks, until there is nothing to do but wait.  S: ends rounds. */
    kofn_status (*go_on)(kofn_core *c);
    /* NULL, or what does not hold between steps. */
    const char *(*wrong)(const kofn_core *c);

    /* Is work to be taken back when this worker goes?  R: if it could have been
     * asked.  A: if it owes an answer. */
    bool (*misses)(const kofn_core *c, const kf_round *r, uint32_t worker);
    /* Takes it back.  R: as the options say.  A: all, with what has come. */
    kofn_status (*back)(kofn_core *c, kf_round *r);
    /* Asks for what a group is owed.  R: pieces, or what is short.  A: one sum of
     * each, mixed for those who are asked. */
    kofn_status (*deal)(kofn_core *c, kf_round *r, size_t group, kf_owed owed);
    /* Others are ready.  R: they are asked for what is late.  A: all begins again
     * without the late. */
    void (*late)(kofn_core *c, kf_round *r);
    /* Strips are settled by the n tasks at the end of the pool.  R, S: they are
     * decoded.  A: once all are, all answers are added up. */
    kofn_status (*decode)(kofn_core *c, kf_product *p, kf_band b,
                          const kofn_decoder *d, size_t n);
    /* A product is over.  S: lists may be done. */
    void (*over)(kofn_core *c);
    /* Live workers that it waits for.  R, A: all of every group.  S: anybody. */
    size_t (*needed)(const kf_product *p);

    /* Where results are compared.  R, A: seats count.  S: what was said does. */
    kf_voices (*voices)(kofn_core *c, kf_round *r, size_t group,
                        const uint32_t *tasks, size_t n);
    /* The principals that may lie when `spare` results may be wrong. */
    size_t (*liars)(const kf_fleet *f, const kf_voices *v, size_t spare);
    /* Results that say nothing, of all that may be compared in the check. */
    kofn_status (*silent)(const kf_fleet *f, const kf_product *p,
                          const kofn_action *check, const uint32_t *tasks,
                          size_t *silent);
    /* The results that are wanted where the n of a check disagree. */
    size_t (*apart)(const kf_fleet *f, const kf_product *p, const kf_asked *a,
                    size_t n);
} kf_policy;

extern const kf_policy kf_rounds, kf_rounds_adjoint, kf_stream_policy;

#endif
