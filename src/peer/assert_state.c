/* assert_state.c -- the invariants of a node of a mesh between steps.
 *
 * Reads the node and changes nothing.  Tests call it after every step, so it
 * may be slow. */
#include "node.h"

static const char *check_members(const kf_node *n)
{
    kf_voices voices = kf_peer_voices(n);
    size_t rank = KF_NONE;

    for (size_t r = 0; r < n->in.members; r++) {
        if (r && n->in.member[r].seat <= n->in.member[r - 1].seat)
            return "members do not ascend by seat";
        if (n->in.member[r].seat >= n->max_seats)
            return "a member's seat is not of the code";
        if (n->in.member[r].incarnation == n->opt.incarnation)
            rank = r;
    }
    if (voices.one != n->in.voices.one || voices.all != n->in.voices.all ||
        voices.known != n->in.voices.known)
        return "a node counts the wrong voices";
    if (rank != n->in.rank)
        return "a node does not know its rank";
    if (rank != KF_NONE && n->in.member[rank].seat != n->in.seat)
        return "a node does not know its seat";
    return NULL;
}

static const char *check_others(const kf_node *n)
{
    for (size_t i = 0; i < n->table.count; i++) {
        const kf_other *o = &n->table.other[i];

        if (o->incarnation == 0 || o->incarnation == n->opt.incarnation)
            return "an other has no number, or that of this node";
        if (o->rank != kf_peer_rank_of(n, o->incarnation))
            return "an other has a rank that is not its own";
        for (size_t k = 0; k < i; k++) {
            if (n->table.other[k].incarnation != o->incarnation)
                continue;
            if (n->table.other[k].principal == o->principal)
                return "an other is known twice";
            if (!n->table.other[k].duplicate || !o->duplicate)
                return "duplicates are not known to be such";
        }
    }
    return NULL;
}

static const char *check_group(const kf_node *n, size_t group)
{
    const kf_cluster *c = &n->pieces.cluster[group];
    bool mine = n->in.rank != KF_NONE && n->pieces.decider[group] == n->in.rank;

    for (size_t i = 1; i < c->count; i++)
        if (c->have[i] <= c->have[i - 1])
            return "seats of partial products do not ascend";
    if (c->decoder && !(n->stage.decided & kf_bit(group)))
        return "a group has a decoder and no decision";
    if (n->in.members && mine != ((n->pieces.mine & kf_bit(group)) != 0))
        return "a node does not know which groups it decides";
    return NULL;
}

const char *kf_node_assert_state(const kf_node *n)
{
    const char *wrong = check_members(n);

    if (!wrong)
        wrong = check_others(n);
    for (size_t g = 0; g < n->on->groups && !wrong; g++)
        wrong = check_group(n, g);
    if (!wrong &&
        (n->stage.made | n->stage.decided | n->stage.done | n->pieces.mine) &
            ~n->on->all)
        wrong = "there are marks of groups that are none";
    return wrong;
}
