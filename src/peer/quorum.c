/* quorum.c -- how many nodes are enough: to go on, to confirm an iterate, and
 * to show which partial products are wrong.
 *
 * Reads the table of others and the members.  It writes nothing but the room
 * for votes (n->table.voice).
 */
#include "node.h"

#include <assert.h>

/* A quorum alone is not enough: some codes do not decode from every quorum of
 * seats. */
bool kf_peer_are_too_few(const kf_node *n)
{
    return kf_peer_count(n, false) < n->opt.quorum || n->in.falls_short;
}

/* Nodes that have ended count if the rest can be computed without them. */
bool kf_peer_have_quorum(const kf_node *n)
{
    size_t live = kf_peer_count(n, false);
    size_t all = n->opt.changes ? live : kf_peer_count(n, true);

    return all >= n->opt.quorum && (!n->in.falls_short || all > live);
}

/* ---- number of partial products requested -------------------------------- */

/* True if it is no member, is the first of its principal, has no member of that
 * principal, and other nodes may still hear it. */
static bool is_left_out(const kf_node *n, const kf_other *o)
{
    if (o->rank != KF_NONE || !(o->liar || kf_peer_is_another(n, o, false)))
        return false;
    for (const kf_other *x = n->table.other; x != kf_end(n); x++)
        if (x->principal == o->principal && (x->rank != KF_NONE || x < o))
            return false;
    return true;
}

size_t kf_peer_heads(const kf_node *n)
{
    size_t heads = kf_max(n->in.members, 1);

    if (n->opt.errors != KOFN_ERRORS_ADVERSARIAL)
        return n->in.members;
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        heads += is_left_out(n, o);
    return kf_max(n->in.members, kf_min(n->max_seats, heads));
}

size_t kf_peer_least(const kf_node *n, size_t known)
{
    const kf_bounds *p = &n->on->bounds;
    kf_voices v = n->in.voices;

    assert(known <= n->in.voices.known);
    v.all = n->in.heads;
    v.known = known;
    return p->surely + kf_bounds_vouch(p, &v);
}

/* Other nodes may not know a faulty node that this one knows.  If this node
 * continued with fewer partial products than they request, it would leave them
 * behind for good, because its iterate would have too few witnesses.  So it
 * requests the number for no known faulty node, if that many nodes are there.
 */
size_t kf_peer_awaited(const kf_node *n)
{
    size_t known = n->in.voices.known, sound = 1;

    if (!kf_peer_checks(n))
        return n->on->bounds.enough;
    if (known == 0)
        return kf_peer_least(n, 0);
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        sound += o->rank != KF_NONE && !o->liar && kf_live(n, o);
    return kf_min(kf_peer_least(n, 0), kf_max(kf_peer_least(n, known), sound));
}

/* If matrices change, no node makes an iterate alone.  So the number of
 * witnesses must not exceed the number of nodes that can make an iterate, or
 * nodes without it would stay behind for good.  As for partial products, f is
 * at most the number that may be faulty among all nodes that are there, without
 * the known ones. */
size_t kf_node_confirmed_by(const kf_node *n)
{
    kf_voices v = n->in.voices;
    size_t lie = 0;

    if (!n->opt.changes || !kf_peer_checks(n))
        return n->opt.confirm;
    v.all = kf_max(kf_max(n->in.heads, kf_peer_count(n, false)), n->opt.quorum);
    for (size_t i = 0; i < n->course.products; i++)
        lie = kf_max(lie, kf_bounds_vouch(&n->product[i].bounds, &v));
    return kf_min(n->opt.confirm, 1 + lie);
}

/* ---- votes of principals ------------------------------------------------- */

/* Returns the entry for what this principal says: its own if it has one, else a
 * free one, else the entry with the least value, which is replaced. */
static kf_voice *voice_of(const kf_node *n, size_t heard, size_t most,
                          uint64_t principal)
{
    kf_voice *least = n->table.voice;

    assert(most > 0);
    assert(most <= n->opt.confirm);
    assert(heard <= most);
    for (size_t i = 0; i < heard; i++) {
        if (n->table.voice[i].principal == principal)
            return &n->table.voice[i];
        if (n->table.voice[i].value < least->value)
            least = &n->table.voice[i];
    }
    return heard < most ? &n->table.voice[heard] : least;
}

uint64_t kf_peer_common(const kf_node *n,
                        uint64_t (*value)(const kf_other *o, const void *of),
                        const void *of)
{
    uint64_t common = UINT64_MAX;
    size_t heard = 0, enough = kf_node_confirmed_by(n);

    for (const kf_other *o = n->table.other; o != kf_end(n); o++) {
        uint64_t v = kf_live(n, o) ? value(o, of) : 0;
        kf_voice *voice = voice_of(n, heard, enough, o->principal);
        bool another = voice == &n->table.voice[heard] && heard < enough;

        if (v > 0 && (another || v > voice->value))
            *voice = (kf_voice){o->principal, v};
        heard += v > 0 && another;
    }
    assert(heard <= enough);
    for (size_t i = 0; i < heard; i++)
        common =
            n->table.voice[i].value < common ? n->table.voice[i].value : common;
    return heard < enough ? 0 : common;
}
