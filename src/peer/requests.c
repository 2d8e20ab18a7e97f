/* requests.c -- which partial products a node makes, and which it requests.
 *
 * All nodes pull, and none waits for a certain other node.  Member r of m makes
 * the groups from r g / m on, cyclically.  If all are equally fast, every group
 * has its k partial products when each member has made k g / m of them.  This
 * is the elastic share of math/elastic.md 14.  If some are slow, lost or
 * stopped, the others continue into their groups while these partial products
 * are wanted.
 */
#include "node.h"

#include <assert.h>

/* ---- shares -------------------------------------------------------------- */

/* Returns the groups that a member makes without a request. */
static uint64_t share(const kf_node *n, size_t rank)
{
    size_t g = n->on->groups, first = rank * g / n->in.members;
    size_t end = kf_ceil_div((rank + kf_peer_awaited(n)) * g, n->in.members);
    uint64_t set = 0;

    assert(rank < n->in.members);
    for (size_t i = first; i < end && i < first + g; i++)
        set |= kf_bit(i < g ? i : i - g);
    return set;
}

/* True if it is known which partial products of the group are used. */
static bool is_known(const kf_node *n, const kf_cluster *c)
{
    return kf_peer_checks(n) ? c->shown > 0 : c->decoder != NULL;
}

/* True if the partial product of this seat is one of these. */
static bool takes(const kf_node *n, const kf_cluster *c, uint32_t seat)
{
    assert(is_known(n, c));
    return kf_peer_checks(n) ? kf_compares(c, seat)
                             : kf_decodes(c->decoder, seat);
}

bool kf_peer_complete(const kf_cluster *c)
{
    for (size_t i = 0; c->decoder && i < c->decoder->seats; i++)
        if (!kf_has(c, c->decoder->seat[i]))
            return false;
    return c->decoder != NULL;
}

/* Returns the groups for which this node should make partial products: its
 * share, the requested ones, and the groups that it decides.  A decided group
 * counts only if the partial product of our seat is used. */
static uint64_t wanted(const kf_node *n)
{
    uint64_t set = n->stage.final ? 0
                                  : n->pieces.mine | n->pieces.local |
                                        share(n, n->in.rank);
    uint64_t asked = n->pieces.local;

    assert(n->in.rank < n->in.members);
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (kf_same_iterate(o->want.at, n->stage.at) && kf_live(n, o))
            asked |= o->want.of.partials;
    set |= asked;
    for (size_t g = 0; g < n->on->groups; g++) {
        const kf_cluster *c = &n->pieces.cluster[g];
        bool known = is_known(n, c);

        if (known && takes(n, c, n->blocks.made_of))
            set |= kf_bit(g);
        else if (known && !(kf_peer_checks(n) && asked & kf_bit(g)))
            set &= ~kf_bit(g);
    }
    return set & ~n->stage.made;
}

bool kf_peer_wants(const kf_node *n, size_t group)
{
    assert(group < n->on->groups);
    return n->in.rank != KF_NONE && n->in.members > 0 &&
           wanted(n) & kf_bit(group);
}

size_t kf_peer_next_group(const kf_node *n)
{
    size_t g = n->on->groups;
    uint64_t set;

    if (n->in.rank == KF_NONE || n->blocks.holds == KOFN_NO_SEAT)
        return KF_NONE;
    assert(n->in.rank < n->in.members);
    set = wanted(n);
    for (size_t q = 0; set && q < g; q++) {
        size_t group = (n->in.rank * g / n->in.members + q) % g;

        if (set & kf_bit(group))
            return group;
    }
    return KF_NONE;
}

/* ---- requests ------------------------------------------------------------ */

/* Returns the groups for which we lack the partial product of this member and
 * expect it. Before a group is decided, a node that does not decide expects the
 * shares. */
static uint64_t lacking(const kf_node *n, const kf_other *o)
{
    bool all = n->opt.decoding == KOFN_DECODE_REPLICATED;
    uint64_t expect = n->pieces.mine | (all ? share(n, o->rank) : 0), set = 0;
    uint32_t seat = n->in.member[o->rank].seat;

    assert(o->rank < n->in.members);
    for (size_t g = 0; g < n->on->groups; g++) {
        const kf_cluster *c = &n->pieces.cluster[g];
        bool want =
            is_known(n, c) ? takes(n, c, seat) : (expect & kf_bit(g)) != 0;

        if ((want || n->pieces.local & kf_bit(g)) &&
            !(n->stage.done & kf_bit(g)) && !kf_has(c, seat))
            set |= kf_bit(g);
    }
    return set;
}

kofn_status kf_peer_ask_partials(kf_node *n, bool again)
{
    bool distributed = n->opt.decoding == KOFN_DECODE_DISTRIBUTED;

    if (again)
        n->pieces.wanted_at = n->now;
    if (n->in.rank == KF_NONE || n->stage.final)
        return KOFN_OK;
    for (kf_other *o = n->table.other; o != kf_end(n); o++) {
        uint64_t partials, results;

        if (o->rank == KF_NONE || o->heard == KF_LONG_AGO ||
            (again && kf_peer_is_coming(n, o, n->stage.began)))
            continue;
        partials = lacking(n, o) & ~(again ? 0 : o->asked.partials);
        results =
            distributed ? kf_peer_decides(n, o->rank) & ~n->stage.done : 0;
        results &= ~(again ? 0 : o->asked.results);
        if (!(partials | results))
            continue;
        o->asked.partials |= partials;
        o->asked.results |= results;
        n->pieces.wanted_at = n->now;
        TRY(kf_peer_send(n, o->incarnation,
                         (kf_note){.type = KF_NOTE_WANT,
                                   .at = n->stage.at,
                                   .want = {partials, results},
                                   .digest = kf_peer_digest(n)}));
    }
    return KOFN_OK;
}

kofn_status kf_peer_say_enough(kf_node *n, size_t group)
{
    assert(n->opt.decoding == KOFN_DECODE_DISTRIBUTED);
    assert(n->stage.decided & kf_bit(group));
    for (kf_other *o = n->table.other; o != kf_end(n); o++) {
        if (o->rank == KF_NONE || !(o->asked.partials & kf_bit(group)) ||
            kf_has(&n->pieces.cluster[group], n->in.member[o->rank].seat))
            continue;
        o->asked.partials &= ~kf_bit(group);
        TRY(kf_peer_send(n, o->incarnation,
                         (kf_note){.type = KF_NOTE_ENOUGH,
                                   .at = n->stage.at,
                                   .enough.groups = kf_bit(group)}));
    }
    return KOFN_OK;
}
