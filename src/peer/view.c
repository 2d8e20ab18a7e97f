/* view.c -- the public view of a node of a mesh, and choices that follow from
 * the number of nodes.
 *
 * Reads the node and changes nothing. */
#include "node.h"

#include "code/operation.h"

#include <assert.h>

/* True if enough nodes have the result, this one included, for another to
 * believe it. */
static bool can_be_believed(const kf_node *n)
{
    size_t have = 1;

    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        have += kf_live(n, o) && o->final;
    return have >= kf_node_confirmed_by(n);
}

/* True if its connection broke within a silence, so that it may be heard
 * again. */
static bool may_be_back(const kf_node *n, const kf_other *o)
{
    return o->lost != KF_LONG_AGO && n->now - o->lost < n->opt.silence &&
           !o->ended && !o->liar;
}

/* Returns how long this node serves another after it has the result.  A node
 * that still works gets the time to fetch it.  A node that is silent, has
 * failed or has another result gets less. */
static kofn_time serves_for(const kf_node *n, const kf_other *o)
{
    bool silent = o->heard != KF_LONG_AGO && !kf_live(n, o);
    bool longer = n->opt.give_up > n->opt.linger && !silent && !o->final &&
                  !o->stranded && can_be_believed(n);

    return longer ? n->opt.give_up : n->opt.linger;
}

/* True if another node may still get the result from this node. */
static bool is_awaited(const kf_node *n, const kf_other *o)
{
    assert(n->stage.final);
    if (o->heard == KF_LONG_AGO ? !may_be_back(n, o)
                                : o->final && kf_peer_has_local(n, o))
        return false;
    return n->now - n->stage.finished < serves_for(n, o);
}

/* True if no other node is awaited.  With errors, no node ends with a result
 * that the majority does not have. */
bool kf_node_is_over(const kf_node *n)
{
    if (n->unsettled.failed)
        return n->now - n->stage.finished >= n->opt.linger;
    if (!n->stage.final || n->votes.outvoted || !kf_node_is_agreed(n))
        return false;
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (is_awaited(n, o))
            return false;
    return true;
}

kofn_status kf_node_failed(const kf_node *n)
{
    return n->unsettled.failed;
}

void kf_node_look(const kf_node *n, kofn_node_view *v)
{
    *v = n->ever;
    v->size = sizeof *v;
    v->epoch = n->in.epoch;
    v->members = n->in.members;
    v->live = kf_peer_count(n, false);
    v->seat = n->in.rank != KF_NONE ? n->in.seat : KOFN_NO_SEAT;
    v->at = n->stage.at;
    v->leader = kf_leads(n);
    v->final = n->stage.final;
    v->over = kf_node_is_over(n);
    v->failed = n->unsettled.failed;
}

/* Returns f + 1, with f = floor((n - 1)/2): at most f of the n - 1 others may
 * be hostile.  f is less than half of all n nodes, and half of the others if n
 * is odd. */
size_t kf_node_confirm(size_t nodes)
{
    return nodes > 1 ? (nodes - 1) / 2 + 1 : 1;
}

#define PACKET 5e-6 /* seconds to send and receive one */

kofn_decoding kofn_decoding_for(const kofn_plan *plan, size_t nodes,
                                double multiply, double move, double trip)
{
    const kofn_layout *L = &plan->layout;
    double n = (double)nodes, k = (double)L->enough, others = 1 - 1 / n;
    double N = (double)kf_size_of(&L->problem, plan->op->out.rows) *
               (double)kf_size_of(&L->problem, plan->op->out.cols);
    double partial = N * (double)L->components / (double)L->wants;
    double g = (double)kf_node_groups(&(kofn_mesh_product){.plan = plan}, nodes,
                                      KOFN_ERRORS_NONE);
    double saved = k * N * others * (multiply > 0 ? multiply : 0.5e-9) +
                   g * (k * others - (k - 1) / n - others) * PACKET;
    double more = ((k - 1) * partial / n + (N - k * partial) * others) *
                      (move > 0 ? move : 8e-9) +
                  (trip > 0 ? trip : 100e-6);

    return saved > more ? KOFN_DECODE_DISTRIBUTED : KOFN_DECODE_REPLICATED;
}

kofn_status kofn_nodes_find(const kofn_plan *plan, kofn_errors errors,
                            size_t nodes)
{
    const kofn_layout *L = &plan->layout;
    size_t partials = kf_min(nodes, L->max_seats);

    if (errors == KOFN_ERRORS_KEYED)
        return kf_fail(KOFN_UNSUITED,
                       "errors = keyed needs a coordinator; nodes of a mesh "
                       "take probabilistic or adversarial");
    if (errors == KOFN_ERRORS_NONE || partials > L->enough)
        return KOFN_OK;
    return kf_fail(
        KOFN_TOOFEW,
        "the partial products of %zu nodes are needed to locate errors with "
        "%s, but only %zu are available; use %zu nodes, or "
        "another scheme",
        L->enough + 1, plan->spec, partials, L->enough + 1);
}

const kf_node_options *kf_node_reported(const kf_node *n)
{
    return &n->opt;
}
