/* partials.c -- the exchange of the partial products of one iterate: what to
 * compute, what to request, and which partial products decode.
 *
 * All nodes pull, and none waits for a certain other node.  Member r of m makes
 * the groups from r g / m on, cyclically.  If all are equally fast, every group
 * has its k partial products when each member has made k g / m of them.  This
 * is the elastic share of math/elastic.md 14.  If some are slow, lost or
 * stopped, the others continue into their groups while these partial products
 * are wanted.
 *
 * The leader decides a group (replicated decoding), or a member that is
 * assigned to it (distributed), from the first k partial products that it gets.
 * The first k differ between nodes.  If each node decoded from its own, the
 * iterates would differ in the last bits, and the code would amplify the
 * difference in every iteration.
 *
 * Owns the list of the partial products that are here, but not the partial
 * products.  A decided group stays decided within its epoch.
 */
#include "node.h"

#include <assert.h>

void kf_peer_clear_decisions(kf_node *n)
{
    n->decided = n->done = n->local = n->decisions[0].groups = 0;
    for (size_t g = 0; g < KF_MAX_GROUPS; g++) {
        kf_cluster *c = &n->cluster[g];

        c->decoder = c->all = NULL;
        c->shown = c->need = 0;
        c->judged = false;
    }
    for (kf_other *o = n->other; o != kf_end(n); o++)
        o->asked.partials = o->asked.results = 0;
}

void kf_peer_clear_iterate(kf_node *n)
{
    kf_peer_clear_decisions(n);
    n->made = 0;
    n->disagreed = false;
    for (size_t g = 0; g < KF_MAX_GROUPS; g++)
        n->cluster[g].count = 0;
    kf_peer_products_trim(n);
}

/* ---- deciders and shares ------------------------------------------------- */

size_t kf_peer_rank_of(const kf_node *n, kofn_incarnation incarnation)
{
    for (size_t r = 0; r < n->members; r++)
        if (n->member[r].incarnation == incarnation)
            return r;
    return KF_NONE;
}

void kf_peer_set_deciders(kf_node *n)
{
    size_t prompt = 0, leader = kf_peer_rank_of(n, n->epoch.proposer);
    bool replicated = n->opt.decoding == KOFN_DECODE_REPLICATED;

    assert(n->on->groups > 0 && n->on->groups <= KF_MAX_GROUPS);
    for (size_t r = 0; r < n->members && !replicated; r++)
        prompt += n->member[r].prompt;
    for (size_t g = 0; g < n->on->groups; g++) {
        size_t nth = g * prompt / n->on->groups, r = 0;

        while (prompt && !(n->member[r].prompt && nth == 0))
            nth -= n->member[r++].prompt;
        assert(!prompt || r < n->members);
        n->decider[g] = prompt ? r : leader;
    }
    n->mine = n->rank == KF_NONE ? 0 : kf_peer_decides(n, n->rank);
}

uint64_t kf_peer_decides(const kf_node *n, size_t rank)
{
    uint64_t set = 0;

    assert(rank < n->members);
    for (size_t g = 0; g < n->on->groups; g++)
        if (n->decider[g] == rank)
            set |= kf_bit(g);
    return set;
}

/* Returns the groups that a member makes without a request. */
static uint64_t share(const kf_node *n, size_t rank)
{
    size_t g = n->on->groups, first = rank * g / n->members;
    size_t end = kf_ceil_div((rank + kf_peer_awaited(n)) * g, n->members);
    uint64_t set = 0;

    assert(rank < n->members);
    for (size_t i = first; i < end && i < first + g; i++)
        set |= kf_bit(i < g ? i : i - g);
    return set;
}

/* True if it is known which partial products of the group are used. */
static bool is_known(const kf_node *n, const kf_cluster *c)
{
    return kf_peer_checks(n) ? c->shown > 0 : c->decoder != NULL;
}

static bool decodes(const kofn_decoder *d, uint32_t seat)
{
    return kf_among(seat, d->seat, d->seats);
}

/* True if the partial product of this seat is one of these. */
static bool takes(const kf_node *n, const kf_cluster *c, uint32_t seat)
{
    assert(is_known(n, c));
    return kf_peer_checks(n) ? kf_compares(c, seat) : decodes(c->decoder, seat);
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
    uint64_t set = n->final ? 0 : n->mine | n->local | share(n, n->rank);
    uint64_t asked = n->local;

    assert(n->rank < n->members);
    for (const kf_other *o = n->other; o != kf_end(n); o++)
        if (kf_same_iterate(o->want, n->at) && kf_live(n, o))
            asked |= o->wants.partials;
    set |= asked;
    for (size_t g = 0; g < n->on->groups; g++) {
        const kf_cluster *c = &n->cluster[g];
        bool known = is_known(n, c);

        if (known && takes(n, c, n->made_of))
            set |= kf_bit(g);
        else if (known && !(kf_peer_checks(n) && asked & kf_bit(g)))
            set &= ~kf_bit(g);
    }
    return set & ~n->made;
}

bool kf_peer_wants(const kf_node *n, size_t group)
{
    assert(group < n->on->groups);
    return n->rank != KF_NONE && n->members > 0 && wanted(n) & kf_bit(group);
}

size_t kf_peer_next_group(const kf_node *n)
{
    size_t g = n->on->groups;
    uint64_t set;

    if (n->rank == KF_NONE || n->holds == KOFN_NO_SEAT)
        return KF_NONE;
    assert(n->rank < n->members);
    set = wanted(n);
    for (size_t q = 0; set && q < g; q++) {
        size_t group = (n->rank * g / n->members + q) % g;

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
    uint64_t expect = n->mine | (all ? share(n, o->rank) : 0), set = 0;
    uint32_t seat = n->member[o->rank].seat;

    assert(o->rank < n->members);
    for (size_t g = 0; g < n->on->groups; g++) {
        const kf_cluster *c = &n->cluster[g];
        bool want =
            is_known(n, c) ? takes(n, c, seat) : (expect & kf_bit(g)) != 0;

        if ((want || n->local & kf_bit(g)) && !(n->done & kf_bit(g)) &&
            !kf_has(c, seat))
            set |= kf_bit(g);
    }
    return set;
}

kofn_status kf_peer_ask_partials(kf_node *n, bool again)
{
    bool distributed = n->opt.decoding == KOFN_DECODE_DISTRIBUTED;

    if (again)
        n->wanted_at = n->now;
    if (n->rank == KF_NONE || n->final)
        return KOFN_OK;
    for (kf_other *o = n->other; o != kf_end(n); o++) {
        uint64_t partials, results;

        if (o->rank == KF_NONE || o->heard == KF_LONG_AGO ||
            (again && kf_peer_is_coming(n, o, n->began)))
            continue;
        partials = lacking(n, o) & ~(again ? 0 : o->asked.partials);
        results = distributed ? kf_peer_decides(n, o->rank) & ~n->done : 0;
        results &= ~(again ? 0 : o->asked.results);
        if (!(partials | results))
            continue;
        o->asked.partials |= partials;
        o->asked.results |= results;
        n->wanted_at = n->now;
        TRY(kf_peer_send(n, o->incarnation,
                         (kf_note){.type = KF_NOTE_WANT,
                                   .at = n->at,
                                   .want = {partials, results},
                                   .digest = kf_peer_digest(n)}));
    }
    return KOFN_OK;
}

/* Cancels the outstanding requests for partial products of a decided group. */
static kofn_status say_enough(kf_node *n, size_t group)
{
    assert(n->opt.decoding == KOFN_DECODE_DISTRIBUTED);
    assert(n->decided & kf_bit(group));
    for (kf_other *o = n->other; o != kf_end(n); o++) {
        if (o->rank == KF_NONE || !(o->asked.partials & kf_bit(group)) ||
            kf_has(&n->cluster[group], n->member[o->rank].seat))
            continue;
        o->asked.partials &= ~kf_bit(group);
        TRY(kf_peer_send(n, o->incarnation,
                         (kf_note){.type = KF_NOTE_ENOUGH,
                                   .at = n->at,
                                   .enough.groups = kf_bit(group)}));
    }
    return KOFN_OK;
}

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
    kf_note partial = {
        .type = KF_NOTE_PARTIAL, .at = at, .epoch = epoch, .seat = n->made_of};

    o->wants.partials &= ~partials;
    o->wants.results &= ~results;
    TRY(send_partials(n, o->incarnation, partial, partials));
    partial.seat = KOFN_NO_SEAT;
    return send_partials(n, o->incarnation, partial, results);
}

static kofn_status serve_now(kf_node *n, kf_other *o)
{
    uint64_t partials, results = 0;

    if (!kf_same_iterate(o->want, n->at))
        return KOFN_OK;
    partials = o->wants.partials & n->made;
    if (kf_same_epoch(o->want_epoch, n->epoch))
        results = o->wants.results & n->done & n->mine;
    return serve(n, o, n->at, n->epoch, partials, results);
}

static kofn_status serve_all(kf_node *n)
{
    for (kf_other *o = n->other; o != kf_end(n); o++)
        TRY(serve_now(n, o));
    return KOFN_OK;
}

/* Serves a request for the iterate before this one.  Its partial products are
 * kept, because a node that still makes it could get them nowhere else once all
 * others have continued. */
static kofn_status serve_before(kf_node *n, kf_other *o)
{
    uint64_t partials = o->wants.partials & n->made_before, results = 0;

    assert(kf_same_iterate(o->want, n->before));
    if (n->opt.decoding == KOFN_DECODE_DISTRIBUTED &&
        kf_same_epoch(o->want_epoch, n->before_epoch))
        results = o->wants.results & n->done_before;
    return serve(n, o, n->before, n->before_epoch, partials, results);
}

/* Handles a request for the partial products of an iterate.  A node may reach
 * an iterate after the leader has decided something about it, if not all
 * partial products are needed.  The decision came too early for that node,
 * which had to drop it, so it is sent again.  If nodes may be hostile, it is
 * sent again with the next heartbeat. */
kofn_status kf_peer_receive_want(kf_node *n, kf_other *o, const kf_note *note)
{
    uint64_t all = kf_peer_product_of(n, note->at.step)->all;
    bool fresh = !kf_same_iterate(note->at, o->want);

    assert(o->incarnation == note->from);
    if (note->at.step < o->want.step)
        return KOFN_OK;
    if (fresh && !kf_wary(n))
        o->wants.partials = o->wants.results = 0;
    if (!kf_same_epoch(note->epoch, o->want_epoch)) {
        o->wants.results = 0;
        fresh = true;
    }
    o->want = note->at;
    o->want_epoch = note->epoch;
    o->wants.partials |= note->want.partials & all;
    o->wants.results |= note->want.results & all;
    if (fresh && !kf_wary(n))
        TRY(kf_peer_tell_again(n, o, note->at));
    if (kf_same_iterate(o->want, n->before) && !kf_same_iterate(o->want, n->at))
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
        kf_cluster *c = &n->cluster[g];
        size_t kept = 0;

        for (size_t i = 0; i < c->count; i++) {
            if (kf_node_seat_of(n, c->by[i]) != c->have[i]) {
                if (c->by[i] == n->opt.incarnation)
                    n->made &= ~kf_bit(g);
                continue;
            }
            c->have[kept] = c->have[i];
            c->by[kept++] = c->by[i];
        }
        c->count = kept;
    }
}

/* Lists the decisions: the groups, and the seats of each. */
static kofn_status list_decisions(kf_node *n)
{
    kf_decisions *t = &n->decisions[0];

    t->at = n->at;
    t->epoch = n->epoch;
    t->groups = n->decided;
    t->listed = 0;
    for (size_t g = 0; g < n->on->groups; g++) {
        const kf_cluster *c = &n->cluster[g];
        const kofn_decoder *d = kf_peer_checks(n) ? c->all : c->decoder;

        if (!(n->decided & kf_bit(g)))
            continue;
        assert(d);
        TRY(kf_reach(&t->list, &t->cap, t->listed + d->seats + 1,
                     sizeof *t->list));
        t->list[t->listed++] = (uint32_t)d->seats;
        memcpy(t->list + t->listed, d->seat, d->seats * sizeof *t->list);
        t->listed += d->seats;
    }
    return KOFN_OK;
}

static kofn_status tell(kf_node *n, const kf_decisions *of, kofn_incarnation to)
{
    assert(of->groups != 0);
    return kf_peer_send(n, to, (kf_note){.type = KF_NOTE_DECIDE, .at = of->at});
}

kofn_status kf_peer_tell_now(kf_node *n)
{
    TRY(list_decisions(n));
    for (const kf_other *o = n->other; o != kf_end(n); o++)
        if (o->rank != KF_NONE && o->heard != KF_LONG_AGO)
            TRY(tell(n, &n->decisions[0], o->incarnation));
    return KOFN_OK;
}

kofn_status kf_peer_tell_again(kf_node *n, const kf_other *o,
                               kofn_iterate_id at)
{
    for (size_t i = 0; i < 2 && kf_leads(n); i++)
        if (n->decisions[i].groups && kf_same_iterate(at, n->decisions[i].at))
            TRY(tell(n, &n->decisions[i], o->incarnation));
    return KOFN_OK;
}

/* The other nodes may then stop making the remaining partial products. */
kofn_status kf_peer_tell_members(kf_node *n)
{
    size_t fresh = 0;

    assert(n->opt.decoding == KOFN_DECODE_REPLICATED);
    for (size_t g = 0; g < n->on->groups; g++)
        fresh += (n->decided & ~n->decisions[0].groups & kf_bit(g)) != 0;
    if (n->decided != n->on->all && fresh < kf_ceil_div(n->on->groups, 4))
        return KOFN_OK;
    return kf_peer_tell_now(n);
}

static kofn_status try_decide(kf_node *n, size_t group)
{
    kf_cluster *c = &n->cluster[group];
    bool checks = kf_peer_checks(n);
    kf_answers a;

    assert(group < n->on->groups);
    if (!checks && (c->decoder || c->count < n->on->plan->layout.enough ||
                    !(n->mine & kf_bit(group)) || n->final))
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
    n->decided |= kf_bit(group);
    if (n->opt.decoding == KOFN_DECODE_REPLICATED)
        return kf_peer_tell_members(n);
    return say_enough(n, group);
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
    assert(n->holds != KOFN_NO_SEAT);
    n->made |= kf_bit(group);
    if (!kf_has(&n->cluster[group], n->holds))
        TRY(keep_seat(&n->cluster[group], n->holds, n->opt.incarnation));
    TRY(serve_all(n));
    return try_decide(n, group);
}

kofn_status kf_peer_decoded(kf_node *n, size_t group)
{
    assert(group < n->on->groups);
    assert(!n->final);
    n->done |= kf_bit(group);
    return serve_all(n);
}

/* True if the sender may send this: partial products come from the node with
 * the seat, results from the decider. */
static bool is_theirs(const kf_node *n, const kf_note *note)
{
    size_t r = n->decider[note->group];

    assert(note->group < n->on->groups);
    if (note->seat == KOFN_NO_SEAT)
        return n->opt.decoding == KOFN_DECODE_DISTRIBUTED &&
               kf_same_epoch(note->epoch, n->epoch) && r < n->members &&
               n->member[r].incarnation == note->from;
    return kf_node_seat_of(n, note->from) == note->seat;
}

kofn_status kf_peer_receive_partial(kf_node *n, const kf_note *note)
{
    kf_cluster *c;

    if (!kf_same_iterate(note->at, n->at) || n->final ||
        note->group >= n->on->groups || n->done & kf_bit(note->group) ||
        !is_theirs(n, note))
        return kf_drop(n);
    c = &n->cluster[note->group];
    if (note->seat == KOFN_NO_SEAT) {
        n->done |= kf_bit(note->group);
        return kf_peer_take(n, note);
    }
    if (kf_has(c, note->seat) ||
        (c->decoder && (kf_peer_checks(n) || !decodes(c->decoder, note->seat))))
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
    kf_cluster *c = &n->cluster[group];
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
        n->decided |= kf_bit(group);
    return KOFN_OK;
}

kofn_status kf_peer_receive_decide(kf_node *n, const kf_note *note)
{
    /* Pieces may be of former members.  A list that is much longer is
     * invalid. */
    size_t at = 0, most = 2 * (n->members + n->on->plan->layout.enough);
    bool sound = true;

    if (!kf_same_epoch(note->epoch, n->epoch) ||
        note->from != n->epoch.proposer || !kf_same_iterate(note->at, n->at) ||
        n->final || n->opt.decoding != KOFN_DECODE_REPLICATED)
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
