/* faulty.c -- finds wrong partial products, if errors are looked for.
 *
 * K + s partial products of a group are requested; s is the number that is
 * needed to identify the faulty nodes that may lie together (code/bounds.h).
 * The decider compares them.  If the right ones decode, it sends the list of
 * the partial products that it compared, the *evidence*, including the wrong
 * ones.  All other nodes fetch the same partial products, compare them with
 * weights of their own, and leave out what they find wrong themselves.  So the
 * decider is trusted only to say which partial products to compare.  Nodes that
 * got the same bytes find the same, and decode from the same partial products.
 *
 * A node gathers its own evidence if that of the decider does not suffice, or
 * does not come: it asks all others.  If even all partial products do not show
 * which are wrong, the iteration has failed, and no node continues from it.
 *
 * Evidence is part of the node.  These functions compare no partial products
 * themselves: CHECK is a task for the host, which returns its finding as an
 * event.
 */
#include "node.h"

#include <assert.h>

/* Waits, in multiples of the patience: for a decision of a leader at a later
 * iterate; for one of any other leader; for late partial products, which are
 * then left out. */
#define PAST_AFTER 4
#define OWN_AFTER 24
#define LAST_AFTER 32

bool kf_peer_checks(const kf_node *n)
{
    return n->opt.errors != KOFN_ERRORS_NONE;
}

/* ---- number of partial products requested -------------------------------- */

/* True if it is a member, and the first entry of that member.  Among
 * duplicates, one that is not known as faulty comes first. */
static bool has_a_say(const kf_node *n, const kf_other *o)
{
    for (const kf_other *x = n->other; o->duplicate && x != kf_end(n); x++)
        if (x->rank == o->rank &&
            (x->liar < o->liar || (x->liar == o->liar && x < o)))
            return false;
    return o->rank != KF_NONE;
}

/* Members that were never heard count as principals with one seat each, and so
 * does this node. */
kf_voices kf_peer_voices(const kf_node *n)
{
    kf_voices v = {.one = 1, .all = n->members};

    for (const kf_other *o = n->other; o != kf_end(n); o++) {
        size_t seats = 1;

        if (!has_a_say(n, o))
            continue;
        v.known += o->liar;
        for (const kf_other *x = n->other; x != o; x++)
            seats += x->principal == o->principal && has_a_say(n, x);
        v.one = kf_max(v.one, seats);
    }
    assert(v.known <= v.all);
    assert(v.one <= kf_max(v.all, 1));
    return v;
}

/* Returns the voices for a comparison of the partial products in `c`.  If some
 * seat may have a zero result, `silent` counts all seats. */
static kf_voices voices(const kf_node *n, const kf_cluster *c)
{
    kf_voices v = n->voices;

    assert(c->shown > 0);
    v.all = n->heads;
    v.here = c->shown;
    v.silent = n->on->silent ? kf_max(v.all, v.here) : 0;
    for (const kf_other *o = n->other; v.known && o != kf_end(n); o++)
        v.known -= o->liar && has_a_say(n, o) &&
                   kf_compares(c, n->member[o->rank].seat);
    return v;
}

/* True if it is no member, is the first of its principal, has no member of that
 * principal, and other nodes may still hear it. */
static bool is_left_out(const kf_node *n, const kf_other *o)
{
    if (o->rank != KF_NONE || !(o->liar || kf_peer_is_another(n, o, false)))
        return false;
    for (const kf_other *x = n->other; x != kf_end(n); x++)
        if (x->principal == o->principal && (x->rank != KF_NONE || x < o))
            return false;
    return true;
}

size_t kf_peer_heads(const kf_node *n)
{
    size_t heads = kf_max(n->members, 1);

    if (n->opt.errors != KOFN_ERRORS_ADVERSARIAL)
        return n->members;
    for (const kf_other *o = n->other; o != kf_end(n); o++)
        heads += is_left_out(n, o);
    return kf_max(n->members, kf_min(n->max_seats, heads));
}

/* Returns the number of partial products that identify the nodes that may be
 * faulty, in addition to the `known` ones. */
static size_t least(const kf_node *n, size_t known)
{
    const kf_bounds *p = &n->on->bounds;
    kf_voices v = n->voices;

    assert(known <= n->voices.known);
    v.all = n->heads;
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
    size_t known = n->voices.known, sound = 1;

    if (!kf_peer_checks(n))
        return n->on->bounds.enough;
    if (known == 0)
        return least(n, 0);
    for (const kf_other *o = n->other; o != kf_end(n); o++)
        sound += o->rank != KF_NONE && !o->liar && kf_live(n, o);
    return kf_min(least(n, 0), kf_max(least(n, known), sound));
}

/* If matrices change, no node makes an iterate alone.  So the number of
 * witnesses must not exceed the number of nodes that can make an iterate, or
 * nodes without it would stay behind for good.  As for partial products, f is
 * at most the number that may be faulty among all nodes that are there, without
 * the known ones. */
size_t kf_node_confirmed_by(const kf_node *n)
{
    kf_voices v = n->voices;
    size_t lie = 0;

    if (!n->opt.changes || !kf_peer_checks(n))
        return n->opt.confirm;
    v.all = kf_max(kf_max(n->heads, kf_peer_count(n, false)), n->opt.quorum);
    for (size_t i = 0; i < n->course.products; i++)
        lie = kf_max(lie, kf_bounds_vouch(&n->product[i].bounds, &v));
    return kf_min(n->opt.confirm, 1 + lie);
}

/* ---- evidence ------------------------------------------------------------ */

static bool have_evidence(const kf_cluster *c)
{
    size_t here = 0;

    for (size_t i = 0; i < c->count; i++)
        here += kf_compares(c, c->have[i]);
    assert(here <= c->shown);
    return c->shown > 0 && here == c->shown;
}

static kofn_status show(kf_cluster *c, const uint32_t *seat, size_t count,
                        const kofn_decoder *all)
{
    assert(count > 0);
    assert(all != NULL);
    assert(!c->decoder);
    TRY(kf_reach(&c->evidence, &c->evidence_cap, count, sizeof *c->evidence));
    memcpy(c->evidence, seat, count * sizeof *seat);
    c->shown = count;
    c->judged = false;
    c->all = all;
    return KOFN_OK;
}

static bool is_known_liar(const kf_node *n, size_t rank)
{
    assert(rank < n->members);
    for (const kf_other *o = n->other; n->voices.known && o != kf_end(n); o++)
        if (o->rank == rank && has_a_say(n, o))
            return o->liar;
    return false;
}

/* True if no member has another partial product, or will send one in time. */
static bool is_last(const kf_node *n, const kf_cluster *c)
{
    for (size_t r = 0; r < n->members; r++)
        if (!kf_has(c, n->member[r].seat) && !is_known_liar(n, r))
            return n->now - n->began > LAST_AFTER * kf_peer_patience(n);
    return true;
}

kofn_status kf_peer_gather(kf_node *n, size_t group)
{
    kf_cluster *c = &n->cluster[group];
    bool enough = c->count >= kf_max(c->need, kf_peer_awaited(n));
    bool by_itself = (n->mine | n->local) & kf_bit(group);
    kf_answers
        a; /* of all partial products, which decides how they are compared */

    assert(group < n->on->groups);
    assert(kf_peer_checks(n));
    if (c->decoder || n->final || n->failed_check || kf_node_is_stuck(n) ||
        !by_itself || (c->shown && !c->judged))
        return KOFN_OK;
    if (!enough && (c->count <= n->on->bounds.surely || !is_last(n, c)))
        return KOFN_OK;
    TRY(kf_peer_find_decoder(n, c->have, c->count, false, &a));
    if (!a.decoder) {
        c->need = c->count + 1;
        return is_last(n, c) ? kf_peer_fail(n, KOFN_TOOFEW) : KOFN_OK;
    }
    return show(c, c->have, c->count, a.decoder);
}

/* Stops serving our partial product of this iterate: no node needs it, or it
 * asks again. Requests for a later iterate stay. */
static void take_back(kf_node *n, size_t group)
{
    assert(group < n->on->groups);
    for (kf_other *o = n->other; o != kf_end(n); o++)
        if (kf_same_iterate(o->want, n->at))
            o->wants.partials &= ~kf_bit(group);
}

kofn_status kf_peer_shown(kf_node *n, size_t group, const uint32_t *seats,
                          size_t count, bool *sound)
{
    kf_cluster *c = &n->cluster[group];
    kf_answers a;

    assert(group < n->on->groups);
    assert(kf_peer_checks(n));
    assert(!c->decoder);
    *sound &= count >= least(n, n->voices.known);
    if (!*sound || c->shown || n->local & kf_bit(group))
        return KOFN_OK;
    TRY(kf_peer_find_decoder(n, seats, count, false, &a));
    *sound = a.decoder != NULL;
    if (!a.decoder)
        return KOFN_OK;
    TRY(show(c, seats, count, a.decoder));
    if (!kf_compares(c, n->made_of))
        take_back(n, group);
    return KOFN_OK;
}

/* ---- checks -------------------------------------------------------------- */

bool kf_peer_to_check(const kf_node *n, kf_node_task *out)
{
    for (size_t g = 0; g < n->on->groups && !n->final; g++) {
        const kf_cluster *c = &n->cluster[g];
        kf_voices v;

        if (c->decoder || c->judged || n->done & kf_bit(g) || !have_evidence(c))
            continue;
        out->type = KF_NODE_TASK_CHECK;
        out->group = (uint32_t)g;
        out->decoder = c->all;
        out->last = c->shown >= c->count && is_last(n, c);
        v = voices(n, c);
        out->verdicts = kf_bounds_verdicts(&n->on->bounds, &v);
        return true;
    }
    return false;
}

kofn_status kf_peer_fail(kf_node *n, kofn_status st)
{
    assert(st != KOFN_OK);
    n->failed_check = st;
    n->finished = n->now;
    return kf_peer_beat_all(n);
}

/* Repeats the iterate or fails.  Either all partial products were compared and
 * it is not clear which are wrong, or some disagree under KOFN_ERRORS_DETECT.
 */
static kofn_status give_up(kf_node *n, size_t group, kofn_status st)
{
    assert(group < n->on->groups);
    if (n->mine & kf_bit(group)) {
        n->decided |=
            kf_bit(group); /* so that all compare the same partial products */
        TRY(kf_peer_tell_now(n));
    }
    return kf_peer_give_up(n, st == KOFN_CORRUPT ? st : KOFN_TOOFEW);
}

/* Requests more partial products than were compared. */
static kofn_status widen(kf_node *n, size_t group, size_t wanted)
{
    kf_cluster *c = &n->cluster[group];

    assert(group < n->on->groups);
    assert(!c->decoder);
    c->need = kf_max(c->need, wanted);
    n->local |= kf_bit(group);
    TRY(kf_peer_ask_partials(n, true));
    return kf_peer_gather(n, group);
}

/* Decides the group from the evidence without the partial products that the
 * verdict excludes. */
static kofn_status settle(kf_node *n, size_t group, const kf_node_event *ev)
{
    kf_cluster *c = &n->cluster[group];
    uint32_t *good = kf_new(c->shown, sizeof *good);
    kf_answers a = {.decoder = NULL};
    size_t count = 0;
    kofn_status st;

    assert(ev->verdict == KOFN_OK);
    assert(ev->bad_count <= c->shown);
    assert(ev->doubted <= ev->bad_count);
    if (!good)
        return KOFN_NOMEM;
    for (size_t i = 0; i < c->shown; i++) {
        bool bad = false;

        for (size_t k = 0; k < ev->bad_count; k++)
            bad |= ev->bad[k] == i;
        if (!bad)
            good[count++] = c->evidence[i];
    }
    st = kf_peer_find_decoder(n, good, count, true, &a);
    kf_free(good);
    TRY(st);
    if (!a.decoder)
        return ev->task->last ? give_up(n, group, KOFN_TOOFEW)
                              : widen(n, group, c->shown + 1);
    n->ever.left_out += c->shown - count;
    c->decoder = a.decoder;
    n->decided |= kf_bit(group);
    return n->mine & kf_bit(group) ? kf_peer_tell_members(n) : KOFN_OK;
}

kofn_status kf_peer_judged(kf_node *n, const kf_node_event *ev)
{
    size_t group = ev->task->group;
    kf_cluster *c = &n->cluster[group];
    bool corrupt = ev->verdict == KOFN_CORRUPT;

    assert(ev->task->type == KF_NODE_TASK_CHECK);
    assert(group < n->on->groups);
    if (n->failed_check || kf_node_is_stuck(n) || c->decoder || c->judged ||
        !c->shown)
        return KOFN_OK;
    c->judged = true;
    if (ev->verdict == KOFN_OK)
        return settle(n, group, ev);
    n->disagreed |= corrupt;
    if (ev->task->last || (corrupt && n->opt.errors == KOFN_ERRORS_DETECT))
        return give_up(n, group, ev->verdict);
    return widen(n, group,
                 corrupt ? kf_bounds_apart(&n->on->bounds, c->shown,
                                           ev->task->verdicts.liars)
                         : c->shown + 1);
}

/* ---- timeouts ------------------------------------------------------------ */

kofn_status kf_peer_tick_checks(kf_node *n)
{
    kofn_time each;
    bool late;

    if (!kf_peer_checks(n) || n->final || n->failed_check || n->rank == KF_NONE)
        return KOFN_OK;
    each = kf_peer_patience(n);
    late = kf_elapsed_or_wake(n, n->began, OWN_AFTER * each) ||
           (kf_peer_leader_went_on(n) &&
            kf_elapsed_or_wake(n, n->began, PAST_AFTER * each));
    if (late && (n->local | n->done) != n->on->all) {
        n->local |= n->on->all & ~n->done;
        TRY(kf_peer_ask_partials(n, true));
    }
    if (late)
        kf_elapsed_or_wake(n, n->began, LAST_AFTER * each + 1);
    for (size_t g = 0; g < n->on->groups; g++) {
        if (late && !have_evidence(&n->cluster[g]) && !n->cluster[g].decoder)
            n->cluster[g].judged = true; /* it will not come */
        TRY(kf_peer_gather(n, g));
    }
    return KOFN_OK;
}

kf_cache *kf_node_cache(const kf_node *n)
{
    return n->on->cache;
}
