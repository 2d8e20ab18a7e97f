/* vote.c -- nodes compare their iterates, because none believes its own alone.
 *
 * All nodes decode an iterate from the same bytes, so all have the same
 * (docs/masterless.md, "Wrong iterates").  Each sends the digest of the iterate
 * that it has, with its next requests.  If more than half have the same iterate
 * and a node has another, that node made a mistake after the comparison of the
 * partial products, and takes theirs.  No node ends with a result that the
 * majority does not have.  Voters are the nodes that can be reached and those
 * that sent a digest; each principal has one vote.
 *
 * Ballots are part of the node.  These functions compare nothing but digests,
 * and blame a node only for what it sent itself.
 */
#include "node.h"

#include <assert.h>
#include <float.h>

/* ---- ballots ------------------------------------------------------------- */

/* Returns the index of the ballot on iterate `at`, or KF_BALLOTS. */
static size_t find(const kf_ballot *of, kofn_iterate_id at)
{
    size_t i = 0;

    while (i < KF_BALLOTS &&
           !(of[i].digest.exact && kf_same_iterate(of[i].at, at)))
        i++;
    return i;
}

/* Returns the ballot on our iterate; NULL at the start. */
static const kf_ballot *local_ballot(const kf_node *n)
{
    size_t i = find(n->votes.ballot, n->stage.at);

    return i < KF_BALLOTS ? &n->votes.ballot[i] : NULL;
}

static const kf_node_digest *digest_at(const kf_other *o, kofn_iterate_id at)
{
    size_t i = find(o->ballot, at);

    return i < KF_BALLOTS ? &o->ballot[i].digest : NULL;
}

/* Returns the digest that the other node has of the iterate of `own`, or NULL.
 *
 * For the last iterate a digest under another mark counts, too, except for
 * rounding.  Nodes that reached it on different ways have it under different
 * marks, and no later iterate follows in which they could agree on one.  The
 * digests of nodes that have left count as well.  Otherwise a node with a wrong
 * result would be the majority when it is left alone. */
static const kf_node_digest *digest_of(const kf_node *n, const kf_other *o,
                                       const kf_ballot *local, bool *rounded)
{
    const kf_node_digest *d = digest_at(o, local->at);
    kofn_iterate_id result = o->final ? o->at : o->result;

    assert(local->digest.exact != 0);
    if (d || !n->stage.final || !(o->final || o->ended) ||
        !kf_same_iterate(local->at, n->stage.at) ||
        result.step != n->stage.at.step)
        return d;
    d = digest_at(o, result);
    *rounded |= d != NULL;
    return d;
}

/* Stores a digest.  Returns true if it is new. */
static bool put(kf_ballot *of, size_t *ever, kofn_iterate_id at,
                kf_node_digest digest)
{
    size_t i = find(of, at);

    assert(digest.exact != 0);
    if (i == KF_BALLOTS)
        i = (*ever)++ % KF_BALLOTS;
    else if (of[i].digest.exact == digest.exact)
        return false;
    of[i] = (kf_ballot){.at = at, .digest = digest};
    return true;
}

void kf_peer_cast(kf_node *n, kf_node_digest digest)
{
    if (kf_peer_checks(n) && digest.exact)
        n->votes.recount |=
            put(n->votes.ballot, &n->votes.ballots, n->stage.at, digest);
}

void kf_peer_forget_ballots(kf_node *n)
{
    memset(n->votes.ballot, 0, sizeof n->votes.ballot);
    n->votes.outvoted = n->votes.doubts = n->votes.spoilt = false;
    n->votes.unsure = KOFN_OK;
    n->votes.doubted = KF_LONG_AGO;
}

kf_node_digest kf_peer_digest(const kf_node *n)
{
    const kf_ballot *local = local_ballot(n);

    return local ? local->digest : (kf_node_digest){.exact = 0};
}

void kf_peer_receive_digest(kf_node *n, kf_other *o, const kf_note *note)
{
    if (note->digest.exact && kf_peer_checks(n))
        n->votes.recount |= put(o->ballot, &o->ballots, note->at, note->digest);
}

/* ---- counting ------------------------------------------------------------ */

/* The votes on one of our iterates. */
typedef struct tally {
    const kf_ballot *local;
    const kf_node_digest *of[KF_MOST_LIVES];
    size_t known;
    /* the nodes that sent a digest, those that may still, and this one */
    size_t voters;
    size_t mine;  /* 0 if this node has no vote, else 1 */
    bool rounded; /* like machines may differ by rounding, too */
} tally;

/* True if the sums differ by at most `room`.  Nothing is near an iterate that
 * is not finite; its room is not finite, either. */
static bool within_room(const kf_node_digest *a, const kf_node_digest *b,
                        double room)
{
    double apart = a->sum > b->sum ? a->sum - b->sum : b->sum - a->sum;

    return apart <= room && room <= DBL_MAX;
}

/* True if both are the same iterate.  The limits are ours, since other nodes
 * may claim any. */
static bool alike(const tally *t, const kf_node_digest *a,
                  const kf_node_digest *b)
{
    const kf_node_digest *local = &t->local->digest;
    bool unlike = t->rounded || a->machine != b->machine;

    return a->exact == b->exact || (unlike && within_room(a, b, local->room)) ||
           (a->way != b->way && within_room(a, b, local->tight));
}

bool kf_node_hears_makers(const kf_node *n)
{
    return n->opt.changes && n->opt.confirm > 1 && kf_peer_checks(n) &&
           n->opt.errors != KOFN_ERRORS_ADVERSARIAL;
}

/* True if the digest is no evidence, because its sender took the iterate from
 * the nodes that made it. */
static bool follows(const kf_node *n, const kf_ballot *local,
                    const kf_node_digest *d)
{
    return d && d->taken && n->stage.final &&
           kf_same_iterate(local->at, n->stage.at) && kf_node_hears_makers(n);
}

/* Begins a tally with the vote of this node.  The array `of` is large and is
 * not cleared. */
static void begin(const kf_node *n, tally *t, const kf_ballot *local)
{
    assert(local->digest.exact != 0);
    t->local = local;
    t->known = 0;
    t->mine = t->voters = !follows(n, local, &local->digest);
    t->rounded = local->rounded;
}

/* True if a node that sent no digest counts as a voter.  If this node is no
 * member, or no epoch exists, all nodes that are heard vote; otherwise this
 * node alone would be the majority. */
static bool has_a_vote(const kf_node *n, const kf_other *o)
{
    return kf_live(n, o) && (o->rank != KF_NONE || n->in.rank == KF_NONE);
}

/* Collects the votes.  Of each principal the first voter counts. */
static void gather(const kf_node *n, const kf_ballot *local, tally *t)
{
    uint64_t voter[KF_MOST_LIVES];

    begin(n, t, local);
    for (const kf_other *o = n->table.other; o != kf_end(n); o++) {
        const kf_node_digest *d = digest_of(n, o, local, &t->rounded);
        bool again = false;

        if (o->liar || follows(n, local, d) || !(d || has_a_vote(n, o)))
            continue;
        for (size_t j = t->mine; j < t->voters; j++)
            again |= voter[j - t->mine] == o->principal;
        if (again)
            continue;
        assert(t->voters - t->mine < KF_MOST_LIVES);
        voter[t->voters++ - t->mine] = o->principal;
        if (d)
            t->of[t->known++] = d;
    }
}

static bool is_most(const tally *t, const kf_node_digest *of)
{
    size_t same = t->mine && alike(t, &t->local->digest, of);

    assert(t->known + t->mine <= t->voters);
    for (size_t i = 0; i < t->known; i++)
        same += alike(t, t->of[i], of);
    return 2 * same > t->voters;
}

/* True if a majority has an iterate that this node has not.  Equal digests are
 * examined once. */
static bool others_agree(const tally *t)
{
    for (size_t i = 0; i < t->known; i++) {
        bool again = alike(t, &t->local->digest, t->of[i]);

        for (size_t j = 0; j < i && !again; j++)
            again = alike(t, t->of[j], t->of[i]);
        if (!again && is_most(t, t->of[i]))
            return true;
    }
    return false;
}

/* ---- consequences -------------------------------------------------------- */

/* Reports the nodes with another iterate than the majority, beyond rounding. */
static kofn_status tell_erred(kf_node *n, tally *t)
{
    assert(t->local->agreed);
    t->rounded = true;
    for (kf_other *o = n->table.other; o != kf_end(n); o++) {
        size_t k = find(o->ballot, t->local->at);
        kf_ballot *b = &o->ballot[k];

        if (k == KF_BALLOTS || b->erred || o->liar ||
            follows(n, t->local, &b->digest) ||
            alike(t, &t->local->digest, &b->digest))
            continue;
        b->erred = true;
        TRY(kf_peer_erred(n, o));
    }
    return KOFN_OK;
}

/* Marks this node as outvoted.  All its iterates that the majority has not
 * confirmed are in doubt. */
static void outvote(kf_node *n)
{
    n->ever.outvoted++;
    n->votes.outvoted = true;
    n->votes.doubted_from = n->stage.at.step;
    for (size_t i = 0; i < KF_BALLOTS; i++) {
        const kf_ballot *b = &n->votes.ballot[i];

        if (b->digest.exact && !b->agreed && b->at.step < n->votes.doubted_from)
            n->votes.doubted_from = b->at.step;
    }
}

void kf_peer_doubt(kf_node *n)
{
    if (n->stage.final)
        return;
    n->votes.doubts = true;
    outvote(n);
}

/* This also holds for the last iterate, and until another vector is here. */
void kf_peer_spoil(kf_node *n, kf_node_digest digest)
{
    kf_peer_cast(n, digest);
    n->votes.spoilt = n->votes.doubts = true;
    outvote(n);
}

/* True if this node decoded the result from the partial products of others and
 * no other node is left or sent a digest.  Its own vote alone is not enough. */
static bool is_alone(const kf_node *n, const kf_ballot *local, const tally *t)
{
    assert(t->voters >= t->mine);
    return t->voters == t->mine && n->opt.nodes > 1 && n->stage.final &&
           n->alone.single == 0 && kf_same_iterate(local->at, n->stage.at);
}

/* Decides a ballot.  If a node leaves out partial products that another does
 * not, even like machines differ by rounding.  So rounding is allowed for if no
 * majority agrees to the bit.
 */
static void settle(kf_node *n, kf_ballot *local, tally *t)
{
    assert(!local->agreed);
    if (is_alone(n, local, t)) {
        n->votes.unsure = KOFN_TOOFEW;
        return;
    }
    local->agreed = is_most(t, &local->digest);
    if (local->agreed)
        return;
    if (others_agree(t)) {
        outvote(n);
        return;
    }
    if (t->known + t->mine < t->voters)
        return;
    t->rounded = local->rounded = true;
    local->agreed = is_most(t, &local->digest);
    if (!local->agreed && kf_same_iterate(local->at, n->stage.at))
        n->votes.unsure = KOFN_CORRUPT;
}

static kofn_status count(kf_node *n, kf_ballot *local)
{
    tally t;

    assert(local->digest.exact != 0);
    gather(n, local, &t);
    if (!local->agreed)
        settle(n, local, &t);
    return local->agreed ? tell_erred(n, &t) : KOFN_OK;
}

/* Accepts our iterates if they equal those of the majority within rounding,
 * once all nodes that have theirs have left. */
static void settle_alone(kf_node *n)
{
    bool all = true;

    assert(n->votes.outvoted);
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (kf_live(n, o) && kf_peer_has_right(n, o))
            return;
    for (size_t i = 0; i < KF_BALLOTS; i++) {
        kf_ballot *local = &n->votes.ballot[i];
        tally t;

        if (!local->digest.exact || local->agreed)
            continue;
        gather(n, local, &t);
        t.rounded = local->rounded = true;
        local->agreed = is_most(&t, &local->digest);
        all &= local->agreed;
    }
    n->votes.outvoted = !all || n->votes.spoilt;
}

/* Fails after a while if the vote cannot be settled.  Then no node is left with
 * the iterate of the majority, no majority has the same result, or no other
 * node sends a digest. */
static kofn_status consider_failing(kf_node *n)
{
    kofn_time wait = KF_UNSETTLED * n->opt.silence;

    if (!n->votes.outvoted && !(n->stage.final && n->votes.unsure)) {
        n->votes.doubted = KF_LONG_AGO;
        return KOFN_OK;
    }
    if (n->votes.doubted == KF_LONG_AGO)
        n->votes.doubted = n->now;
    if (!kf_elapsed_or_wake(n, n->votes.doubted,
                            n->opt.give_up > wait ? n->opt.give_up : wait))
        return KOFN_OK;
    return kf_peer_fail(n, n->votes.outvoted ? KOFN_CORRUPT : n->votes.unsure);
}

kofn_status kf_peer_count_votes(kf_node *n)
{
    bool late =
        kf_elapsed_or_wake(n, n->beat_at, n->opt.beat); /* some may have gone */

    if (!kf_peer_checks(n) || n->unsettled.failed)
        return KOFN_OK;
    if (n->votes.recount || late) {
        n->votes.recount = false;
        n->votes.unsure = KOFN_OK;
        for (size_t i = 0; i < KF_BALLOTS && !n->votes.outvoted; i++)
            if (n->votes.ballot[i].digest.exact)
                TRY(count(n, &n->votes.ballot[i]));
        if (n->votes.outvoted)
            settle_alone(n);
    }
    return consider_failing(n);
}

bool kf_node_is_agreed(const kf_node *n)
{
    const kf_ballot *local = local_ballot(n);

    if (n->votes.spoilt)
        return false;
    return !kf_peer_checks(n) || n->alone.single > 0 || !local || local->agreed;
}

bool kf_peer_has_local(const kf_node *n, const kf_other *o)
{
    const kf_ballot *local = local_ballot(n);
    const kf_node_digest *d;
    tally t;

    if (!local)
        return true;
    begin(n, &t, local);
    d = digest_of(n, o, local, &t.rounded);
    return d && alike(&t, &local->digest, d);
}

/* True if the other node has the iterate of the majority, and we have
 * another. */
static bool is_right(const kf_node *n, const kf_other *o)
{
    for (size_t i = 0; i < KF_BALLOTS; i++) {
        const kf_ballot *local = &n->votes.ballot[i];
        const kf_node_digest *d;
        bool rounded = false;
        tally t;

        if (!local->digest.exact || local->agreed)
            continue;
        d = digest_of(n, o, local, &rounded);
        if (!d)
            continue;
        gather(n, local, &t);
        if (!alike(&t, &local->digest, d) && is_most(&t, d))
            return true;
    }
    return false;
}

bool kf_peer_has_right(const kf_node *n, const kf_other *o)
{
    return o->at.step > n->stage.at.step ||
           (o->at.step == n->stage.at.step &&
            (n->votes.doubts || is_right(n, o)));
}

bool kf_peer_is_odd(const kf_node *n)
{
    const kf_node_digest local = kf_peer_digest(n);

    return local.exact && !(local.sum - local.sum == 0) &&
           !kf_node_is_agreed(n);
}

uint64_t kf_node_doubted(const kf_node *n)
{
    return n->votes.doubted_from;
}
