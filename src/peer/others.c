/* others.c -- the table of the other incarnations, and what they say of
 * themselves.
 *
 * Owns the table, which has at most KF_MOST_LIVES entries, whatever notes
 * come.
 */
#include "node.h"

#include <assert.h>

kf_other *kf_peer_find(kf_node *n, kofn_incarnation incarnation)
{
    kf_other *any = NULL;

    for (kf_other *o = n->table.other; o != kf_end(n); o++) {
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
    for (kf_other *o = n->table.other; o != kf_end(n); o++)
        if (o->incarnation == incarnation && o->principal == principal)
            return o;
    return NULL;
}

/* Returns an entry that can be replaced, or NULL.  With `liars`, entries of
 * faulty nodes count too. */
static kf_other *reuse(kf_node *n, bool liars)
{
    for (kf_other *o = n->table.other; o != kf_end(n); o++)
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
    for (kf_other *o = n->table.other; o != kf_end(n); o++)
        if (o != new && o->incarnation == new->incarnation)
            o->duplicate = new->duplicate = true;
    n->in.voices = kf_peer_voices(n);
}

kofn_status kf_peer_meet(kf_node *n, kofn_incarnation incarnation,
                         uint64_t principal, kf_other **out)
{
    kf_other *o = kf_peer_find_one(n, incarnation, principal);

    assert(incarnation != 0);
    *out = o;
    if (o)
        return KOFN_OK;
    o = reuse(n, n->table.count == KF_MOST_LIVES);
    if (!o) {
        if (n->table.count == KF_MOST_LIVES)
            return KOFN_OK;
        TRY(kf_grow(&n->table.other, &n->table.cap, n->table.count,
                    sizeof *n->table.other));
        o = &n->table.other[n->table.count++];
    }
    assert(n->table.count <= KF_MOST_LIVES &&
           o < n->table.other + n->table.count);
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
    assert(o >= n->table.other);
    assert(o < kf_end(n));
    for (const kf_other *x = n->table.other; o->duplicate && x != o; x++)
        if (x->incarnation == o->incarnation && is_there(n, x, or_ended))
            return false;
    return is_there(n, o, or_ended);
}

size_t kf_peer_count(const kf_node *n, bool or_ended)
{
    size_t count = 1;

    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        count += kf_peer_is_another(n, o, or_ended);
    return count;
}

bool kf_node_is_ahead(const kf_node *n, kofn_incarnation who, uint64_t t)
{
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (o->incarnation == who && kf_live(n, o) && o->at.step >= t)
            return true;
    return false;
}

/* ---- waiting for others -------------------------------------------------- */

kofn_time kf_peer_patience(const kf_node *n)
{
    kofn_time p = n->opt.patience;

    if (n->stage.took > p / 4)
        p = n->stage.took > KOFN_NEVER / 1024 ? KOFN_NEVER / 256
                                              : 4 * n->stage.took;
    return p;
}

bool kf_peer_is_coming(kf_node *n, const kf_other *o, kofn_time since)
{
    return o && o->arriving != KF_LONG_AGO &&
           !kf_elapsed_or_wake(n, o->arriving, n->opt.hedge) &&
           !kf_elapsed_or_wake(n, since, KF_SLOWEST * n->opt.silence);
}

/* ---- the leader ---------------------------------------------------------- */

void kf_peer_reset_leader_backoff(kf_node *n)
{
    kf_other *leader = kf_peer_find(n, n->in.epoch.proposer);

    n->in.lead.failed_terms = 0;
    if (leader)
        leader->failed_terms = 0;
}

/* True if the leader is at a later iterate and sent no decision for ours in
 * this epoch.  It will not send one later, and if iterates need several
 * witnesses, the iterate of the leader alone is not enough. */
bool kf_peer_leader_went_on(kf_node *n)
{
    const kf_other *leader = kf_peer_find(n, n->in.epoch.proposer);
    bool shown = false;

    for (size_t g = 0; g < n->on->groups; g++)
        shown |= n->pieces.cluster[g].shown > 0;
    return !shown && n->opt.confirm > 1 && leader &&
           leader->at.step > n->stage.at.step;
}
