/* catch_up.c -- catching up with nodes that are ahead.
 *
 * A node may lack an iterate because it has just joined, was stopped, is too
 * slow, or was in the part of a divided network that lost.  In each case it
 * asks a node that has the iterate.
 */
#include "node.h"

#include <assert.h>

static uint64_t number_of_iterate(const kf_other *o, const void *of)
{
    (void)of;
    return o->at.step;
}

static uint64_t stands_at(const kf_other *o, const void *of)
{
    return kf_same_iterate(o->at, *(const kofn_iterate_id *)of);
}

static uint64_t ends_at(const kf_other *o, const void *of)
{
    return o->final && stands_at(o, of);
}

/* True if enough nodes are at this iterate. */
static bool agreed_on(const kf_node *n, kofn_iterate_id at, bool final)
{
    return kf_peer_common(n, final ? ends_at : stands_at, &at) > 0;
}

/* True if all partial products are here from which the next iterate is made. */
static bool makes_next(const kf_node *n)
{
    for (size_t g = 0; g < n->on->groups; g++)
        if (!kf_peer_complete(&n->pieces.cluster[g]))
            return false;
    return true;
}

/* True if the iterate of `o` must be requested, because this node cannot make
 * it soon enough.  The number of nodes that must confirm an iterate must claim
 * it; a claim of fewer changes nothing.  The last iterate, too, is requested
 * only when its partial products are late, if only nodes that made it
 * themselves are its witnesses.
 *
 * An idle node also asks the leader for an iterate of the same number with
 * another mark.  The host takes it if it agrees with ours to rounding
 * (like_ours in src/mesh/vector_quorum.c), and both nodes continue together. */
static bool out_of_reach(kf_node *n, const kf_other *o, bool idle)
{
    kofn_iterate_id child = kf_peer_child(n->in.epoch, n->stage.at);

    if (idle && o->at.step == n->stage.at.step &&
        !kf_same_iterate(o->at, n->stage.at) &&
        o->incarnation == n->in.epoch.proposer)
        return true;
    if (o->at.step > n->catch_up.agreed || o->at.step < n->stage.at.step)
        return false;
    if (o->final && agreed_on(n, o->at, true) &&
        !(kf_node_hears_makers(n) && kf_same_iterate(o->at, child)))
        return true;
    if (kf_same_iterate(o->at, n->stage.at))
        return false;
    if (o->at.step == n->stage.at.step)
        return o->incarnation == n->in.epoch.proposer &&
               agreed_on(n, o->at, false);
    if (!kf_same_iterate(o->at, child))
        return !makes_next(n) && (o->at.step > n->stage.at.step + 1 ||
                                  agreed_on(n, o->at, false));
    /* We are about to make it too, and ask only when the partial products are
     * late. */
    kf_track_since(n, &n->catch_up.ahead, true);
    return kf_elapsed_or_wake(n, n->catch_up.ahead, n->opt.hedge);
}

/* Returns one of the nodes that are farthest ahead, or NULL.  Each call returns
 * another one.  The first depends on the own incarnation, so that nodes ask
 * different ones. */
static kf_other *pick_among(kf_node *n, bool slow)
{
    bool idle = kf_peer_idle(n);
    kf_other *ahead[KF_MOST_LIVES];
    size_t count = 0;

    for (kf_other *o = n->table.other; o != kf_end(n); o++) {
        if (!kf_live(n, o) || o->slow > slow || !out_of_reach(n, o, idle) ||
            (count > 0 && o->at.step < ahead[0]->at.step))
            continue;
        if (count > 0 && o->at.step > ahead[0]->at.step)
            count = 0;
        assert(count < KF_MOST_LIVES);
        ahead[count++] = o;
    }
    return count ? ahead[(n->opt.incarnation + n->catch_up.tries) % count]
                 : NULL;
}

/* True if another node may be ahead.  Also sets `behind`.  Usually no node is
 * ahead, and this saves the costlier functions above. */
static bool somebody_ahead(kf_node *n)
{
    kofn_iterate_id child = kf_peer_child(n->in.epoch, n->stage.at);
    bool ahead = false;

    n->catch_up.behind = false;
    for (const kf_other *o = n->table.other; o != kf_end(n); o++) {
        n->catch_up.behind |=
            o->at.step > n->stage.at.step && !kf_same_iterate(o->at, child);
        ahead |= o->at.step > n->stage.at.step ||
                 (o->at.step == n->stage.at.step &&
                  (o->final || !kf_same_iterate(o->at, n->stage.at)));
    }
    return ahead;
}

/* Returns a node with the iterate of the majority, if we have another, or with
 * a later one; or NULL.  Each call returns another one. */
static kf_other *pick_right(kf_node *n)
{
    for (size_t k = 0; k < n->table.count; k++) {
        kf_other *o = &n->table.other[(n->catch_up.tries + k) % n->table.count];

        if (kf_live(n, o) && kf_peer_has_right(n, o))
            return o;
    }
    return NULL;
}

static kf_other *whom_to_ask(kf_node *n)
{
    kf_other *o;

    if (n->votes.outvoted)
        return pick_right(n);
    if (n->stage.final || !somebody_ahead(n))
        return NULL;
    n->catch_up.agreed = kf_peer_common(n, number_of_iterate, NULL);
    o = pick_among(n, false);
    /* also nodes that did not answer in time */
    return o ? o : pick_among(n, true);
}

kofn_status kf_peer_catch_up(kf_node *n)
{
    kf_other *o = whom_to_ask(n), *was = kf_peer_find(n, n->catch_up.asked);

    if (!o) {
        n->catch_up.asked = 0;
        return KOFN_OK;
    }
    if (!n->votes.outvoted && o->final && kf_same_iterate(o->at, n->stage.at))
        return kf_peer_advance(n, n->stage.at, kf_peer_digest(n), true);
    assert(!n->catch_up.asked || n->catch_up.tries > 0);
    if (n->catch_up.asked &&
        (!kf_elapsed_or_wake(n, n->catch_up.asked_at,
                             kf_longer(n->opt.hedge, n->catch_up.tries - 1)) ||
         kf_peer_is_coming(n, was, n->catch_up.asked_at)))
        return KOFN_OK;
    if (was)
        was->slow = true;
    n->catch_up.asked = o->incarnation;
    n->catch_up.asked_at = n->now;
    n->catch_up.tries++;
    kf_elapsed_or_wake(n, n->catch_up.asked_at,
                       kf_longer(n->opt.hedge, n->catch_up.tries - 1));
    return kf_peer_send(n, o->incarnation,
                        (kf_note){.type = KF_NOTE_ASK, .at = n->stage.at});
}

static kofn_status adopt(kf_node *n, const kf_note *note, bool taken)
{
    kf_node_digest digest = note->digest;

    assert(note->at.step >= n->stage.at.step);
    digest.taken = taken;
    n->ever.adopted++;
    TRY(kf_peer_take(n, note));
    kf_peer_forget_ballots(n);
    return kf_peer_advance(n, note->at, digest, note->final);
}

kofn_status kf_peer_restore(kf_node *n, const kf_note *note)
{
    if (!n->stage.final && note->at.step > n->stage.at.step)
        return adopt(n, note, false);
    return kf_drop(n);
}

/* Takes a later iterate even if the request is void, because this node has
 * asked another node, or makes the next iterate itself.  After that iterate it
 * would need the vector again, and a sender does not repeat the same answer
 * (too_soon in src/mesh/mail.c). */
kofn_status kf_peer_receive_vector(kf_node *n, kf_other *o, const kf_note *note)
{
    bool later = note->at.step > n->stage.at.step;
    bool other = note->at.step == n->stage.at.step &&
                 (n->votes.outvoted ||
                  (!kf_same_iterate(note->at, n->stage.at) &&
                   (note->final || note->from == n->in.epoch.proposer)));

    assert(o->incarnation == note->from);
    o->slow = false;
    o->final |= note->final && kf_same_iterate(o->at, note->at);
    if ((!n->stage.final || n->votes.outvoted) &&
        (later || (other && (n->catch_up.asked || whom_to_ask(n)))))
        return adopt(n, note, true);
    return kf_drop(n);
}
