/* partials.c -- the exchange of the partial products of one iterate: what is
 * sent to others, what comes, and which partial products decode.
 *
 * The leader decides a group (replicated decoding), or a member that is
 * assigned to it (distributed), from the first k partial products that it gets.
 * The first k differ between nodes.  If each node decoded from its own, the
 * iterates would differ in the last bits, and the code would amplify the
 * difference in every iteration.
 *
 * Owns the list of the partial products that are here, but not the partial
 * products.
 */
#include "node.h"

#include <assert.h>

/* ---- serving ------------------------------------------------------------- */

static kofn_status send_partials(kf_node *n, kofn_incarnation to,
                                 kf_note partial, uint64_t groups)
{
    for (; groups; partial.group++, groups >>= 1)
        if (groups & 1)
            TRY(kf_peer_send(n, to, partial));
    return KOFN_OK;
}

/* Sends the requested partial products that exist, and forgets these requests:
 * a partial product is sent again only if it is requested again. */
static kofn_status serve(kf_node *n, kf_other *o, kofn_iterate_id at,
                         kofn_epoch epoch, uint64_t partials, uint64_t results)
{
    kf_note partial = {.type = KF_NOTE_PARTIAL,
                       .at = at,
                       .epoch = epoch,
                       .seat = n->blocks.made_of};

    o->want.of.partials &= ~partials;
    o->want.of.results &= ~results;
    TRY(send_partials(n, o->incarnation, partial, partials));
    partial.seat = KOFN_NO_SEAT;
    return send_partials(n, o->incarnation, partial, results);
}

static kofn_status serve_now(kf_node *n, kf_other *o)
{
    uint64_t partials, results = 0;

    if (!kf_same_iterate(o->want.at, n->stage.at))
        return KOFN_OK;
    partials = o->want.of.partials & n->stage.made;
    if (kf_same_epoch(o->want.epoch, n->in.epoch))
        results = o->want.of.results & n->stage.done & n->pieces.mine;
    return serve(n, o, n->stage.at, n->in.epoch, partials, results);
}

static kofn_status serve_all(kf_node *n)
{
    for (kf_other *o = n->table.other; o != kf_end(n); o++)
        TRY(serve_now(n, o));
    return KOFN_OK;
}

/* Serves a request for the iterate before this one.  Its partial products are
 * kept, because a node that still makes it could get them nowhere else once all
 * others have continued. */
static kofn_status serve_before(kf_node *n, kf_other *o)
{
    uint64_t partials = o->want.of.partials & n->stage.made_before, results = 0;

    assert(kf_same_iterate(o->want.at, n->stage.before));
    if (n->opt.decoding == KOFN_DECODE_DISTRIBUTED &&
        kf_same_epoch(o->want.epoch, n->stage.before_epoch))
        results = o->want.of.results & n->stage.done_before;
    return serve(n, o, n->stage.before, n->stage.before_epoch, partials,
                 results);
}

/* Handles a request for the partial products of an iterate.  A node may reach
 * an iterate after the leader has decided something about it, if not all
 * partial products are needed.  The decision came too early for that node,
 * which had to drop it, so it is sent again.  If nodes may be hostile, it is
 * sent again with the next heartbeat. */
kofn_status kf_peer_receive_want(kf_node *n, kf_other *o, const kf_note *note)
{
    uint64_t all = kf_peer_product_of(n, note->at.step)->all;
    bool fresh = !kf_same_iterate(note->at, o->want.at);

    assert(o->incarnation == note->from);
    if (note->at.step < o->want.at.step)
        return KOFN_OK;
    if (fresh && !kf_wary(n))
        o->want.of.partials = o->want.of.results = 0;
    if (!kf_same_epoch(note->epoch, o->want.epoch)) {
        o->want.of.results = 0;
        fresh = true;
    }
    o->want.at = note->at;
    o->want.epoch = note->epoch;
    o->want.of.partials |= note->want.partials & all;
    o->want.of.results |= note->want.results & all;
    if (fresh && !kf_wary(n))
        TRY(kf_peer_tell_again(n, o, note->at));
    if (kf_same_iterate(o->want.at, n->stage.before) &&
        !kf_same_iterate(o->want.at, n->stage.at))
        return serve_before(n, o);
    return serve_now(n, o);
}

/* ---- deciding ------------------------------------------------------------ */

static kofn_status keep_seat(kf_cluster *c, uint32_t seat, kofn_incarnation by)
{
    size_t i = c->count;

    assert(seat != KOFN_NO_SEAT);
    assert(!kf_has(c, seat));
    assert(c->count <= c->cap && c->count <= c->by_cap);
    TRY(kf_grow(&c->have, &c->cap, c->count, sizeof *c->have));
    TRY(kf_grow(&c->by, &c->by_cap, c->count, sizeof *c->by));
    for (; i > 0 && c->have[i - 1] > seat; i--) {
        c->have[i] = c->have[i - 1];
        c->by[i] = c->by[i - 1];
    }
    c->have[i] = seat;
    c->by[i] = by;
    c->count++;
    return KOFN_OK;
}

void kf_peer_drop_former(kf_node *n)
{
    assert(n->opt.changes);
    for (size_t g = 0; g < n->on->groups; g++) {
        kf_cluster *c = &n->pieces.cluster[g];
        size_t kept = 0;

        for (size_t i = 0; i < c->count; i++) {
            if (kf_node_seat_of(n, c->by[i]) != c->have[i]) {
                if (c->by[i] == n->opt.incarnation)
                    n->stage.made &= ~kf_bit(g);
                continue;
            }
            c->have[kept] = c->have[i];
            c->by[kept++] = c->by[i];
        }
        c->count = kept;
    }
}

static kofn_status try_decide(kf_node *n, size_t group)
{
    kf_cluster *c = &n->pieces.cluster[group];
    bool checks = kf_peer_checks(n);
    kf_answers a;

    assert(group < n->on->groups);
    if (!checks && (c->decoder || c->count < n->on->plan->layout.enough ||
                    !(n->pieces.mine & kf_bit(group)) || n->stage.final))
        return KOFN_OK;
    if (kf_peer_count(n, false) < n->opt.quorum)
        return KOFN_OK;
    if (checks)
        return kf_peer_gather(n, group);
    TRY(kf_peer_find_decoder(n, c->have, c->count, true, &a));
    c->decoder = a.decoder;
    if (a.hopeless && !c->decoder)
        return kf_fail(
            KOFN_UNSTABLE,
            "the partial products of all %zu seats do not decode within %g; "
            "choose another basis or a larger max_error",
            c->count, n->opt.tolerance);
    if (!c->decoder)
        return KOFN_OK;
    n->stage.decided |= kf_bit(group);
    if (n->opt.decoding == KOFN_DECODE_REPLICATED)
        return kf_peer_tell_members(n);
    return kf_peer_say_enough(n, group);
}

kofn_status kf_peer_decide_all(kf_node *n)
{
    for (size_t g = 0; g < n->on->groups; g++)
        TRY(try_decide(n, g));
    return KOFN_OK;
}

/* ---- arrivals ------------------------------------------------------------ */

kofn_status kf_peer_made(kf_node *n, size_t group)
{
    assert(group < n->on->groups);
    assert(n->blocks.holds != KOFN_NO_SEAT);
    n->stage.made |= kf_bit(group);
    if (!kf_has(&n->pieces.cluster[group], n->blocks.holds))
        TRY(keep_seat(&n->pieces.cluster[group], n->blocks.holds,
                      n->opt.incarnation));
    TRY(serve_all(n));
    return try_decide(n, group);
}

kofn_status kf_peer_decoded(kf_node *n, size_t group)
{
    assert(group < n->on->groups);
    assert(!n->stage.final);
    n->stage.done |= kf_bit(group);
    return serve_all(n);
}

/* True if the sender may send this: partial products come from the node with
 * the seat, results from the decider. */
static bool is_theirs(const kf_node *n, const kf_note *note)
{
    size_t r = n->pieces.decider[note->group];

    assert(note->group < n->on->groups);
    if (note->seat == KOFN_NO_SEAT)
        return n->opt.decoding == KOFN_DECODE_DISTRIBUTED &&
               kf_same_epoch(note->epoch, n->in.epoch) && r < n->in.members &&
               n->in.member[r].incarnation == note->from;
    return kf_node_seat_of(n, note->from) == note->seat;
}

kofn_status kf_peer_receive_partial(kf_node *n, const kf_note *note)
{
    kf_cluster *c;

    if (!kf_same_iterate(note->at, n->stage.at) || n->stage.final ||
        note->group >= n->on->groups || n->stage.done & kf_bit(note->group) ||
        !is_theirs(n, note))
        return kf_drop(n);
    c = &n->pieces.cluster[note->group];
    if (note->seat == KOFN_NO_SEAT) {
        n->stage.done |= kf_bit(note->group);
        return kf_peer_take(n, note);
    }
    if (kf_has(c, note->seat) ||
        (c->decoder &&
         (kf_peer_checks(n) || !kf_decodes(c->decoder, note->seat))))
        return kf_drop(n);
    TRY(keep_seat(c, note->seat, note->from));
    TRY(kf_peer_take(n, note));
    return try_decide(n, note->group);
}

/* Follows the decision about one group's seats.  *sound becomes false if the
 * seats are invalid. */
static kofn_status follow(kf_node *n, size_t group, const uint32_t *seats,
                          size_t count, bool *sound)
{
    kf_cluster *c = &n->pieces.cluster[group];
    kf_answers a;

    assert(n->opt.decoding == KOFN_DECODE_REPLICATED);
    assert(count >= n->on->plan->layout.enough);
    for (size_t i = 0; i < count; i++)
        *sound &=
            seats[i] < n->max_seats && (i == 0 || seats[i] > seats[i - 1]);
    if (!*sound || c->decoder)
        return KOFN_OK;
    if (kf_peer_checks(n))
        return kf_peer_shown(n, group, seats, count, sound);
    TRY(kf_peer_find_decoder(n, seats, count, true, &a));
    c->decoder = a.decoder;
    *sound = c->decoder != NULL;
    if (c->decoder)
        n->stage.decided |= kf_bit(group);
    return KOFN_OK;
}

kofn_status kf_peer_receive_decide(kf_node *n, const kf_note *note)
{
    /* Pieces may be of former members.  A list that is much longer is
     * invalid. */
    size_t at = 0, most = 2 * (n->in.members + n->on->plan->layout.enough);
    bool sound = true;

    if (!kf_same_epoch(note->epoch, n->in.epoch) ||
        note->from != n->in.epoch.proposer ||
        !kf_same_iterate(note->at, n->stage.at) || n->stage.final ||
        n->opt.decoding != KOFN_DECODE_REPLICATED)
        return kf_drop(n);
    for (size_t g = 0; g < n->on->groups && sound; g++) {
        size_t count;

        if (!(note->decide.groups & kf_bit(g)))
            continue;
        count = at < note->listed ? note->list[at++] : 0;
        sound = count >= n->on->plan->layout.enough && count <= most &&
                count <= note->listed - at;
        if (sound)
            TRY(follow(n, g, note->list + at, count, &sound));
        at += count;
    }
    n->ever.dropped += !sound;
    return kf_peer_ask_partials(n, false);
}
