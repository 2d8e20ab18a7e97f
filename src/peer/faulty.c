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

/* Returns the voices for a comparison of the partial products in `c`.  If some
 * seat may have a zero result, `silent` counts all seats. */
static kf_voices voices(const kf_node *n, const kf_cluster *c)
{
    kf_voices v = n->in.voices;

    assert(c->shown > 0);
    v.all = n->in.heads;
    v.here = c->shown;
    v.silent = n->on->silent ? kf_max(v.all, v.here) : 0;
    for (const kf_other *o = n->table.other; v.known && o != kf_end(n); o++)
        v.known -= o->liar && kf_peer_has_a_say(n, o) &&
                   kf_compares(c, n->in.member[o->rank].seat);
    return v;
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
    assert(rank < n->in.members);
    for (const kf_other *o = n->table.other;
         n->in.voices.known && o != kf_end(n); o++)
        if (o->rank == rank && kf_peer_has_a_say(n, o))
            return o->liar;
    return false;
}

/* True if no member has another partial product, or will send one in time. */
static bool is_last(const kf_node *n, const kf_cluster *c)
{
    for (size_t r = 0; r < n->in.members; r++)
        if (!kf_has(c, n->in.member[r].seat) && !is_known_liar(n, r))
            return n->now - n->stage.began > LAST_AFTER * kf_peer_patience(n);
    return true;
}

kofn_status kf_peer_gather(kf_node *n, size_t group)
{
    kf_cluster *c = &n->pieces.cluster[group];
    bool enough = c->count >= kf_max(c->need, kf_peer_awaited(n));
    bool by_itself = (n->pieces.mine | n->pieces.local) & kf_bit(group);
    kf_answers
        a; /* of all partial products, which decides how they are compared */

    assert(group < n->on->groups);
    assert(kf_peer_checks(n));
    if (c->decoder || n->stage.final || n->unsettled.failed ||
        kf_node_is_stuck(n) || !by_itself || (c->shown && !c->judged))
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
    for (kf_other *o = n->table.other; o != kf_end(n); o++)
        if (kf_same_iterate(o->want.at, n->stage.at))
            o->want.of.partials &= ~kf_bit(group);
}

kofn_status kf_peer_shown(kf_node *n, size_t group, const uint32_t *seats,
                          size_t count, bool *sound)
{
    kf_cluster *c = &n->pieces.cluster[group];
    kf_answers a;

    assert(group < n->on->groups);
    assert(kf_peer_checks(n));
    assert(!c->decoder);
    *sound &= count >= kf_peer_least(n, n->in.voices.known);
    if (!*sound || c->shown || n->pieces.local & kf_bit(group))
        return KOFN_OK;
    TRY(kf_peer_find_decoder(n, seats, count, false, &a));
    *sound = a.decoder != NULL;
    if (!a.decoder)
        return KOFN_OK;
    TRY(show(c, seats, count, a.decoder));
    if (!kf_compares(c, n->blocks.made_of))
        take_back(n, group);
    return KOFN_OK;
}

/* ---- checks -------------------------------------------------------------- */

bool kf_peer_to_check(const kf_node *n, kf_node_task *out)
{
    for (size_t g = 0; g < n->on->groups && !n->stage.final; g++) {
        const kf_cluster *c = &n->pieces.cluster[g];
        kf_voices v;

        if (c->decoder || c->judged || n->stage.done & kf_bit(g) ||
            !have_evidence(c))
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

/* Repeats the iterate or fails.  Either all partial products were compared and
 * it is not clear which are wrong, or some disagree under KOFN_ERRORS_DETECT.
 */
static kofn_status give_up(kf_node *n, size_t group, kofn_status st)
{
    assert(group < n->on->groups);
    if (n->pieces.mine & kf_bit(group)) {
        n->stage.decided |=
            kf_bit(group); /* so that all compare the same partial products */
        TRY(kf_peer_tell_now(n));
    }
    return kf_peer_give_up(n, st == KOFN_CORRUPT ? st : KOFN_TOOFEW);
}

/* Requests more partial products than were compared. */
static kofn_status widen(kf_node *n, size_t group, size_t wanted)
{
    kf_cluster *c = &n->pieces.cluster[group];

    assert(group < n->on->groups);
    assert(!c->decoder);
    c->need = kf_max(c->need, wanted);
    n->pieces.local |= kf_bit(group);
    TRY(kf_peer_ask_partials(n, true));
    return kf_peer_gather(n, group);
}

/* Decides the group from the evidence without the partial products that the
 * verdict excludes. */
static kofn_status settle(kf_node *n, size_t group, const kf_node_event *ev)
{
    kf_cluster *c = &n->pieces.cluster[group];
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
    n->stage.decided |= kf_bit(group);
    return n->pieces.mine & kf_bit(group) ? kf_peer_tell_members(n) : KOFN_OK;
}

kofn_status kf_peer_judged(kf_node *n, const kf_node_event *ev)
{
    size_t group = ev->task->group;
    kf_cluster *c = &n->pieces.cluster[group];
    bool corrupt = ev->verdict == KOFN_CORRUPT;

    assert(ev->task->type == KF_NODE_TASK_CHECK);
    assert(group < n->on->groups);
    if (n->unsettled.failed || kf_node_is_stuck(n) || c->decoder || c->judged ||
        !c->shown)
        return KOFN_OK;
    c->judged = true;
    if (ev->verdict == KOFN_OK)
        return settle(n, group, ev);
    n->pieces.disagreed |= corrupt;
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

    if (!kf_peer_checks(n) || n->stage.final || n->unsettled.failed ||
        n->in.rank == KF_NONE)
        return KOFN_OK;
    each = kf_peer_patience(n);
    late = kf_elapsed_or_wake(n, n->stage.began, OWN_AFTER * each) ||
           (kf_peer_leader_went_on(n) &&
            kf_elapsed_or_wake(n, n->stage.began, PAST_AFTER * each));
    if (late && (n->pieces.local | n->stage.done) != n->on->all) {
        n->pieces.local |= n->on->all & ~n->stage.done;
        TRY(kf_peer_ask_partials(n, true));
    }
    if (late)
        kf_elapsed_or_wake(n, n->stage.began, LAST_AFTER * each + 1);
    for (size_t g = 0; g < n->on->groups; g++) {
        if (late && !have_evidence(&n->pieces.cluster[g]) &&
            !n->pieces.cluster[g].decoder)
            n->pieces.cluster[g].judged = true; /* it will not come */
        TRY(kf_peer_gather(n, g));
    }
    return KOFN_OK;
}
