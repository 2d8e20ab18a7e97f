/* others.c -- the other incarnations, and catching up with nodes that are
 * ahead.
 *
 * A node may lack an iterate because it has just joined, was stopped, is too
 * slow, or was in the part of a divided network that lost.  In each case it
 * asks a node that has the iterate.
 *
 * Owns the table of other incarnations, at most KF_MOST_LIVES, whatever notes
 * come.
 */
#include "node.h"

#include <assert.h>

kf_other *kf_peer_find(kf_node *n, kofn_incarnation incarnation)
{
    kf_other *any = NULL;

    for (kf_other *o = n->other; o != kf_end(n); o++) {
        if (o->incarnation != incarnation)
            continue;
        if (!o->duplicate || kf_live(n, o))
            return o;
        any = o;
    }
    return any;
}

kf_other *kf_peer_find_one(kf_node *n, kofn_incarnation incarnation,
                           uint64_t principal)
{
    for (kf_other *o = n->other; o != kf_end(n); o++)
        if (o->incarnation == incarnation && o->principal == principal)
            return o;
    return NULL;
}

/* Returns an entry that can be replaced, or NULL.  With `liars`, entries of
 * faulty nodes count too. */
static kf_other *reuse(kf_node *n, bool liars)
{
    for (kf_other *o = n->other; o != kf_end(n); o++)
        if (o->liar <= liars &&
            (o->heard == KF_LONG_AGO
                 ? o->rank == KF_NONE || o->duplicate
                 : o->rank == KF_NONE && !kf_live(n, o) &&
                       (n->now - o->heard) / 16 > n->opt.silence))
            return o;
    return NULL;
}

/* Sets the rank of a new entry, and marks entries of the same incarnation as
 * duplicates. */
static void place_among(kf_node *n, kf_other *new)
{
    assert(new->incarnation != n->opt.incarnation);
    new->rank = kf_peer_rank_of(n, new->incarnation);
    for (kf_other *o = n->other; o != kf_end(n); o++)
        if (o != new && o->incarnation == new->incarnation)
            o->duplicate = new->duplicate = true;
    n->voices = kf_peer_voices(n);
}

kofn_status kf_peer_meet(kf_node *n, kofn_incarnation incarnation,
                         uint64_t principal, kf_other **out)
{
    kf_other *o = kf_peer_find_one(n, incarnation, principal);

    assert(incarnation != 0);
    *out = o;
    if (o)
        return KOFN_OK;
    o = reuse(n, n->others == KF_MOST_LIVES);
    if (!o) {
        if (n->others == KF_MOST_LIVES)
            return KOFN_OK;
        TRY(kf_grow(&n->other, &n->other_cap, n->others, sizeof *n->other));
        o = &n->other[n->others++];
    }
    assert(n->others <= KF_MOST_LIVES && o < n->other + n->others);
    *o = (kf_other){.incarnation = incarnation,
                    .principal = principal,
                    .heard = KF_LONG_AGO,
                    .lost = KF_LONG_AGO,
                    .arriving = KF_LONG_AGO,
                    .wish = KOFN_NO_SEAT,
                    .led = n->now};
    place_among(n, o);
    *out = o;
    return KOFN_OK;
}

static bool is_there(const kf_node *n, const kf_other *o, bool or_ended)
{
    return kf_live(n, o) || (or_ended && (o->final || o->ended));
}

bool kf_peer_is_another(const kf_node *n, const kf_other *o, bool or_ended)
{
    assert(o >= n->other);
    assert(o < kf_end(n));
    for (const kf_other *x = n->other; o->duplicate && x != o; x++)
        if (x->incarnation == o->incarnation && is_there(n, x, or_ended))
            return false;
    return is_there(n, o, or_ended);
}

size_t kf_peer_count(const kf_node *n, bool or_ended)
{
    size_t count = 1;

    for (const kf_other *o = n->other; o != kf_end(n); o++)
        count += kf_peer_is_another(n, o, or_ended);
    return count;
}

/* A quorum alone is not enough: some codes do not decode from every quorum of
 * seats. */
bool kf_peer_are_too_few(const kf_node *n)
{
    return kf_peer_count(n, false) < n->opt.quorum || n->falls_short;
}

/* Nodes that have ended count if the rest can be computed without them. */
bool kf_peer_have_quorum(const kf_node *n)
{
    size_t live = kf_peer_count(n, false);
    size_t all = n->opt.changes ? live : kf_peer_count(n, true);

    return all >= n->opt.quorum && (!n->falls_short || all > live);
}

/* ---- votes of principals ------------------------------------------------- */

/* Returns the entry for what this principal says: its own if it has one, else a
 * free one, else the entry with the least value, which is replaced. */
static kf_voice *voice_of(const kf_node *n, size_t heard, size_t most,
                          uint64_t principal)
{
    kf_voice *least = n->voice;

    assert(most > 0);
    assert(most <= n->opt.confirm);
    assert(heard <= most);
    for (size_t i = 0; i < heard; i++) {
        if (n->voice[i].principal == principal)
            return &n->voice[i];
        if (n->voice[i].value < least->value)
            least = &n->voice[i];
    }
    return heard < most ? &n->voice[heard] : least;
}

uint64_t kf_peer_common(const kf_node *n,
                        uint64_t (*value)(const kf_other *o, const void *of),
                        const void *of)
{
    uint64_t common = UINT64_MAX;
    size_t heard = 0, enough = kf_node_confirmed_by(n);

    for (const kf_other *o = n->other; o != kf_end(n); o++) {
        uint64_t v = kf_live(n, o) ? value(o, of) : 0;
        kf_voice *voice = voice_of(n, heard, enough, o->principal);
        bool another = voice == &n->voice[heard] && heard < enough;

        if (v > 0 && (another || v > voice->value))
            *voice = (kf_voice){o->principal, v};
        heard += v > 0 && another;
    }
    assert(heard <= enough);
    for (size_t i = 0; i < heard; i++)
        common = n->voice[i].value < common ? n->voice[i].value : common;
    return heard < enough ? 0 : common;
}

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

/* ---- catching up --------------------------------------------------------- */

/* True if all partial products are here from which the next iterate is made. */
static bool makes_next(const kf_node *n)
{
    for (size_t g = 0; g < n->on->groups; g++)
        if (!kf_peer_complete(&n->cluster[g]))
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
    kofn_iterate_id child = kf_peer_child(n->epoch, n->at);

    if (idle && o->at.step == n->at.step && !kf_same_iterate(o->at, n->at) &&
        o->incarnation == n->epoch.proposer)
        return true;
    if (o->at.step > n->catch_up.agreed || o->at.step < n->at.step)
        return false;
    if (o->final && agreed_on(n, o->at, true) &&
        !(kf_node_hears_makers(n) && kf_same_iterate(o->at, child)))
        return true;
    if (kf_same_iterate(o->at, n->at))
        return false;
    if (o->at.step == n->at.step)
        return o->incarnation == n->epoch.proposer &&
               agreed_on(n, o->at, false);
    if (!kf_same_iterate(o->at, child))
        return !makes_next(n) &&
               (o->at.step > n->at.step + 1 || agreed_on(n, o->at, false));
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

    for (kf_other *o = n->other; o != kf_end(n); o++) {
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
    kofn_iterate_id child = kf_peer_child(n->epoch, n->at);
    bool ahead = false;

    n->catch_up.behind = false;
    for (const kf_other *o = n->other; o != kf_end(n); o++) {
        n->catch_up.behind |=
            o->at.step > n->at.step && !kf_same_iterate(o->at, child);
        ahead |= o->at.step > n->at.step ||
                 (o->at.step == n->at.step &&
                  (o->final || !kf_same_iterate(o->at, n->at)));
    }
    return ahead;
}

/* Returns a node with the iterate of the majority, if we have another, or with
 * a later one; or NULL.  Each call returns another one. */
static kf_other *pick_right(kf_node *n)
{
    for (size_t k = 0; k < n->others; k++) {
        kf_other *o = &n->other[(n->catch_up.tries + k) % n->others];

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
    if (n->final || !somebody_ahead(n))
        return NULL;
    n->catch_up.agreed = kf_peer_common(n, number_of_iterate, NULL);
    o = pick_among(n, false);
    /* also nodes that did not answer in time */
    return o ? o : pick_among(n, true);
}

bool kf_node_is_ahead(const kf_node *n, kofn_incarnation who, uint64_t t)
{
    for (const kf_other *o = n->other; o != kf_end(n); o++)
        if (o->incarnation == who && kf_live(n, o) && o->at.step >= t)
            return true;
    return false;
}

bool kf_peer_is_coming(kf_node *n, const kf_other *o, kofn_time since)
{
    return o && o->arriving != KF_LONG_AGO &&
           !kf_elapsed_or_wake(n, o->arriving, n->opt.hedge) &&
           !kf_elapsed_or_wake(n, since, KF_SLOWEST * n->opt.silence);
}

kofn_status kf_peer_catch_up(kf_node *n)
{
    kf_other *o = whom_to_ask(n), *was = kf_peer_find(n, n->catch_up.asked);

    if (!o) {
        n->catch_up.asked = 0;
        return KOFN_OK;
    }
    if (!n->votes.outvoted && o->final && kf_same_iterate(o->at, n->at))
        return kf_peer_advance(n, n->at, kf_peer_digest(n), true);
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
                        (kf_note){.type = KF_NOTE_ASK, .at = n->at});
}

static kofn_status adopt(kf_node *n, const kf_note *note, bool taken)
{
    kf_node_digest digest = note->digest;

    assert(note->at.step >= n->at.step);
    digest.taken = taken;
    n->ever.adopted++;
    TRY(kf_peer_take(n, note));
    kf_peer_forget_ballots(n);
    return kf_peer_advance(n, note->at, digest, note->final);
}

kofn_status kf_peer_restore(kf_node *n, const kf_note *note)
{
    if (!n->final && note->at.step > n->at.step)
        return adopt(n, note, false);
    return kf_drop(n);
}

/* Takes a later iterate even if the request is void, because this node has
 * asked another node, or makes the next iterate itself.  After that iterate it
 * would need the vector again, and a sender does not repeat the same answer
 * (too_soon in src/mesh/mail.c). */
kofn_status kf_peer_receive_vector(kf_node *n, kf_other *o, const kf_note *note)
{
    bool later = note->at.step > n->at.step;
    bool other = note->at.step == n->at.step &&
                 (n->votes.outvoted ||
                  (!kf_same_iterate(note->at, n->at) &&
                   (note->final || note->from == n->epoch.proposer)));

    assert(o->incarnation == note->from);
    o->slow = false;
    o->final |= note->final && kf_same_iterate(o->at, note->at);
    if ((!n->final || n->votes.outvoted) &&
        (later || (other && (n->catch_up.asked || whom_to_ask(n)))))
        return adopt(n, note, true);
    return kf_drop(n);
}
