/* fail.c -- what a node does when an iterate cannot be decided: it waits for a
 * repetition, or fails for good.
 *
 * The counts and times are part of the node.  again.c repeats the iterate.
 */
#include "node.h"

#include <assert.h>

bool kf_node_is_stuck(const kf_node *n)
{
    return n->unsettled.stuck != KOFN_OK;
}

kofn_status kf_peer_fail(kf_node *n, kofn_status st)
{
    assert(st != KOFN_OK);
    n->unsettled.failed = st;
    n->stage.finished = n->now;
    kf_peer_beat_soon(n);
    return KOFN_OK;
}

kofn_status kf_peer_give_up(kf_node *n, kofn_status st)
{
    assert(st != KOFN_OK);
    assert(!kf_node_is_stuck(n));
    if (n->unsettled.agains >= KF_MOST_AGAINS ||
        n->opt.errors == KOFN_ERRORS_DETECT)
        return kf_peer_fail(n, st);
    n->unsettled.stuck = st;
    n->unsettled.stuck_at = n->now;
    n->unsettled.agains++;
    kf_peer_beat_soon(n);
    return KOFN_OK;
}

uint64_t kf_node_agains(const kf_node *n)
{
    return n->ever.again;
}
