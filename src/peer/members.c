/* members.c -- the members of the epoch, and how many of them may be faulty.
 *
 * Reads the node and changes nothing.
 */
#include "node.h"

#include <assert.h>

size_t kf_peer_rank_of(const kf_node *n, kofn_incarnation incarnation)
{
    for (size_t r = 0; r < n->in.members; r++)
        if (n->in.member[r].incarnation == incarnation)
            return r;
    return KF_NONE;
}

uint32_t kf_node_seat_of(const kf_node *n, kofn_incarnation incarnation)
{
    size_t rank = kf_peer_rank_of(n, incarnation);

    return rank == KF_NONE ? KOFN_NO_SEAT : n->in.member[rank].seat;
}

bool kf_peer_checks(const kf_node *n)
{
    return n->opt.errors != KOFN_ERRORS_NONE;
}

bool kf_peer_has_a_say(const kf_node *n, const kf_other *o)
{
    for (const kf_other *x = n->table.other; o->duplicate && x != kf_end(n);
         x++)
        if (x->rank == o->rank &&
            (x->liar < o->liar || (x->liar == o->liar && x < o)))
            return false;
    return o->rank != KF_NONE;
}

/* Members that were never heard count as principals with one seat each, and so
 * does this node. */
kf_voices kf_peer_voices(const kf_node *n)
{
    kf_voices v = {.one = 1, .all = n->in.members};

    for (const kf_other *o = n->table.other; o != kf_end(n); o++) {
        size_t seats = 1;

        if (!kf_peer_has_a_say(n, o))
            continue;
        v.known += o->liar;
        for (const kf_other *x = n->table.other; x != o; x++)
            seats += x->principal == o->principal && kf_peer_has_a_say(n, x);
        v.one = kf_max(v.one, seats);
    }
    assert(v.known <= v.all);
    assert(v.one <= kf_max(v.all, 1));
    return v;
}
