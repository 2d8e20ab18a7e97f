/* iterate.c -- from one iterate to the next.
 *
 * Everything of an iterate is cleared here; its partial products stay until the
 * one after it.
 */
#include "node.h"

#include <assert.h>

/* Returns the mark of the iterate that epoch `e` makes from iterate `at`.  An
 * epoch decides once, so there is one such iterate. */
kofn_iterate_id kf_peer_child(kofn_epoch e, kofn_iterate_id at)
{
    uint64_t line = kf_mix64(kf_state64(at.lineage, 1));

    line = kf_mix64(line ^ e.number);
    return (kofn_iterate_id){at.step + 1, kf_mix64(line ^ e.proposer)};
}

kofn_status kf_peer_advance(kf_node *n, kofn_iterate_id to,
                            kf_node_digest digest, bool final)
{
    kf_decisions last = n->pieces.decisions[1];

    assert(to.step >= n->stage.at.step);
    n->unsettled.stuck = KOFN_OK;
    if (to.step > n->stage.at.step)
        n->unsettled.agains = 0;
    if (to.step == n->stage.at.step + 1) {
        kofn_time took = n->now - n->stage.began;

        n->stage.took = n->stage.took ? (3 * n->stage.took + took) / 4 : took;
    }
    n->stage.before = n->stage.at;
    n->stage.before_epoch = n->in.epoch;
    n->stage.made_before = n->stage.made;
    n->stage.done_before = n->stage.done;
    kf_peer_reset_leader_backoff(n);
    n->pieces.decisions[1] = n->pieces.decisions[0];
    n->pieces.decisions[0] = last;
    n->pieces.decisions[0].groups = 0;
    n->stage.at = to;
    kf_peer_cast(n, digest);
    n->on = kf_peer_product_of(n, to.step);
    n->stage.final = final;
    n->stage.began = n->now;
    n->catch_up.asked = 0;
    n->catch_up.tries = n->in.lead.failed = n->pieces.repeats = 0;
    n->in.lead.stalled = n->catch_up.ahead = n->alone.idled = KF_LONG_AGO;
    n->alone.pending = false;
    kf_peer_set_deciders(n); /* another product has other groups */
    kf_peer_clear_iterate(n);
    if (!final)
        return kf_peer_ask_partials(n, false);
    n->stage.finished = n->now;
    kf_peer_beat_soon(n);
    return KOFN_OK;
}
