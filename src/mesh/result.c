/* result.c -- checks that our vector is still the one that the nodes agreed on,
 * and explains why a node has no result.
 *
 * A node sends the digest of an iterate when it has made it.  A bit of the
 * vector may flip after that.  So the node makes the digest again before it
 * writes the vector to disk or hands it out.  If the digests differ, it takes
 * the vector of another node.
 *
 * Owns nothing.  It may not repair a vector. */
#include "host.h"

#include <assert.h>

static void spoil(kf_told *told, kf_node_digest digest)
{
    told->spoilt = true;
    told->digest = digest;
}

bool kf_host_confirm_local(kf_host *h, const double *scalar, const double *v)
{
    uint64_t sent = kf_node_beat(h->node).digest.exact;
    kf_node_digest now = kf_host_digest(h, h->it.at.step, scalar, v);

    if (sent == 0 || now.exact == sent)
        return true;
    spoil(&h->told, now);
    return false;
}

kofn_status kf_host_doubt(kf_host *h)
{
    if (h->opt.errors == KOFN_ERRORS_NONE)
        return KOFN_NONFINITE;
    h->it.blown = h->it.at;
    spoil(&h->told,
          kf_host_digest(h, h->it.at.step, h->it.scalar, h->it.v->m.data));
    return KOFN_OK;
}

kofn_status kf_host_say_why(const kf_host *h, kofn_status st)
{
    kofn_node_view view;

    assert(st != KOFN_OK);
    kf_node_look(h->node, &view);
    if (h->it.blown.step == h->it.at.step &&
        h->it.blown.lineage == h->it.at.lineage)
        return kf_fail(KOFN_NONFINITE,
                       "a factor or an update in iterate %llu is not finite, "
                       "on all nodes; restart with a shorter step",
                       (unsigned long long)h->it.at.step);
    if (st == KOFN_TOOFEW && h->blocks.changes && view.live >= h->opt.nodes)
        return kf_fail(st,
                       "all %zu nodes are there, but too few have right "
                       "blocks of step %llu to compute the next iterate or to "
                       "rebuild blocks; too many became wrong between two "
                       "comparisons; compare more often (scrub), or save "
                       "steps (checkpoint), or start more nodes",
                       view.live, (unsigned long long)h->blocks.changing.turn);
    return st == KOFN_CORRUPT
               ? kf_fail(
                     st,
                     "partial products of the nodes disagree, and the wrong ones cannot "
                     "be identified; use more nodes or a smaller "
                     "threshold, and errors adversarial or probabilistic")
               : kf_fail(
                     st,
                     "the partial products of the nodes are too few to find wrong "
                     "ones, or to make the next iterate; start more nodes");
}
