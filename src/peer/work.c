/* work.c -- what this node has to do next, and the heartbeat that says how far
 * it is.
 *
 * Reads the node and changes nothing.
 */
#include "node.h"

#include <assert.h>

void kf_node_work(const kf_node *n, kf_node_task *out)
{
    size_t group;

    *out = (kf_node_task){
        .at = n->stage.at, .epoch = n->in.epoch, .seat = n->in.seat};
    if (n->unsettled.failed || n->votes.outvoted || kf_node_is_stuck(n) ||
        kf_peer_is_odd(n) || kf_peer_to_check(n, out))
        return;
    if (n->stage.done == n->on->all && !n->stage.final) {
        out->type = KF_NODE_TASK_UPDATE;
        return;
    }
    for (group = 0; group < n->on->groups && !n->stage.final; group++) {
        const kf_cluster *c = &n->pieces.cluster[group];

        if (n->stage.done & kf_bit(group) || !kf_peer_complete(c))
            continue;
        out->type = KF_NODE_TASK_DECODE;
        out->group = (uint32_t)group;
        out->decoder = c->decoder;
        return;
    }
    if (n->in.rank != KF_NONE && n->in.seat != n->blocks.holds &&
        !n->stage.final) {
        out->type = KF_NODE_TASK_ENCODE;
        return;
    }
    /* A node with the result encodes no blocks any more.  Pieces of another
     * seat are of no use. */
    group = n->catch_up.asked || n->in.seat != n->blocks.holds
                ? KF_NONE
                : kf_peer_next_group(n);
    if (group == KF_NONE) {
        if (n->alone.pending)
            out->type = KF_NODE_TASK_SOLO;
        return;
    }
    out->type = KF_NODE_TASK_COMPUTE;
    out->group = (uint32_t)group;
}

bool kf_peer_idle(const kf_node *n)
{
    kf_node_task todo;

    kf_node_work(n, &todo);
    return todo.type == KF_NODE_TASK_NONE;
}

bool kf_node_wanted(const kf_node *n, const kf_node_task *t)
{
    if (t->type == KF_NODE_TASK_ENCODE)
        return n->in.rank != KF_NONE && n->in.seat == t->seat &&
               !n->stage.final;
    if (t->type != KF_NODE_TASK_COMPUTE)
        return true;
    return kf_same_iterate(t->at, n->stage.at) && t->seat == n->blocks.holds &&
           !(n->stage.made & kf_bit(t->group)) && !n->catch_up.asked &&
           !n->votes.outvoted && kf_peer_wants(n, t->group);
}

kf_note kf_node_beat(const kf_node *n)
{
    /* a member without blocks sends no seat; its seat is known */
    bool wishes = n->blocks.holds == KOFN_NO_SEAT && n->in.rank == KF_NONE;

    return (kf_note){
        .type = KF_NOTE_BEAT,
        .from = n->opt.incarnation,
        .epoch = n->in.epoch,
        .at = n->stage.at,
        .final = n->stage.final,
        .idle = n->in.rank != KF_NONE && n->in.seat == n->blocks.holds &&
                !n->votes.outvoted && !kf_node_is_stuck(n) && kf_peer_idle(n),
        .stranded = n->blocks.lacks || n->unsettled.failed,
        .beat.made = n->stage.made,
        .seat = wishes ? n->opt.wish : n->blocks.holds,
        .digest = kf_peer_digest(n)};
}
