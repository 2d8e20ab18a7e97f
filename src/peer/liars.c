/* liars.c -- pieces that are wrong without saying so, where errors are looked
 * for.
 *
 * K + s pieces of a group are awaited, s as many as may lie together and be
 * told (code/promise.h).  Who decides compares them and, if those that are
 * right decode, tells which it compared: its *evidence*, with the wrong ones in
 * it.  Everybody else gets the same pieces, compares them with weights of its
 * own and leaves out what it finds itself.  So a decider is trusted for nothing
 * but saying which pieces to look at, all who were sent the same bytes find the
 * same, and they decode from the same.
 *
 * Where the evidence of others does not suffice, or does not come, a node goes
 * by its own: it asks everybody.  Where not even all pieces tell whose are
 * wrong the iteration has failed, and nobody goes on from it.
 *
 * Evidence is the node's.  It compares nothing itself: CHECK is work for the
 * host, whose finding comes back as an event.
 */
#include "node.h"

/* Times its patience a node waits for a decision of who has gone on already,
 * for one of anybody else, and for pieces that it then has to do without. */
#define PAST_AFTER 4
#define OWN_AFTER 24
#define LAST_AFTER 32

bool kf_peer_checks(const kf_node *n)
{
    return n->opt.errors != KOFN_ERRORS_NONE;
}

/* ---- how many are awaited ------------------------------------------------ */

/* Is it a member, and the first that is known as that one?  Who comes by the
 * number of a liar is in its place. */
static bool has_a_say(const kf_node *n, const kf_other *o)
{
    for (const kf_other *x = n->other; o->duplicate && x != kf_end(n); x++)
        if (x->rank == o->rank &&
            (x->liar < o->liar || (x->liar == o->liar && x < o)))
            return false;
    return o->rank != KF_NONE;
}

/* A member that was not heard yet, and this node, answer for themselves
 * alone. */
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
    return v;
}

/* Where these pieces are compared.  None but what is known of all seats is said
 * to say nothing. */
static kf_voices voices(const kf_node *n, const kf_cluster *c)
{
    kf_voices v = n->voices;

    v.all = n->heads;
    v.here = c->shown;
    v.silent = n->on->silent ? kf_max(v.all, v.here) : 0;
    for (const kf_other *o = n->other; v.known && o != kf_end(n); o++)
        v.known -= o->liar && has_a_say(n, o) &&
                   kf_compares(c, n->member[o->rank].seat);
    return v;
}

/* Is it one who is no member, by itself or as the first of those of one
 * principal, and may others still hear it? */
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

/* Pieces by which those who may lie are told, besides so many who are known
 * to. */
static size_t least(const kf_node *n, size_t known)
{
    const kf_promise *p = &n->on->promise;
    kf_voices v = n->voices;

    v.all = n->heads;
    v.known = known;
    return p->surely + kf_promise_vouch(p, &v);
}

/* Others may not know a liar yet, and whoever goes on with fewer than these
 * await leaves them behind for good: they are too few to be believed.  So as
 * many are awaited as if none was known, where so many are there. */
size_t kf_peer_awaited(const kf_node *n)
{
    size_t known = n->voices.known, sound = 1;

    if (!kf_peer_checks(n))
        return n->on->promise.enough;
    if (known == 0)
        return least(n, 0);
    for (const kf_other *o = n->other; o != kf_end(n); o++)
        sound += o->rank != KF_NONE && !o->liar && kf_live(n, o);
    return kf_min(least(n, 0), kf_max(least(n, known), sound));
}

/* Where matrices change nobody makes an iterate alone.  So it has to be
 * believed of as few as can make it, or those who do not have it stay behind
 * for good: as with pieces, f are at most those who may lie of all who are
 * there, without those who are known. */
size_t kf_node_confirmed_by(const kf_node *n)
{
    kf_voices v = n->voices;
    size_t lie = 0;

    if (!n->opt.changes || !kf_peer_checks(n))
        return n->opt.confirm;
    v.all = kf_max(kf_max(n->heads, kf_peer_count(n, false)), n->opt.quorum);
    for (size_t i = 0; i < n->course.stages; i++)
        lie = kf_max(lie, kf_promise_vouch(&n->stage[i].promise, &v));
    return kf_min(n->opt.confirm, 1 + lie);
}

/* ---- evidence ------------------------------------------------------------ */

static bool have_evidence(const kf_cluster *c)
{
    size_t here = 0;

    for (size_t i = 0; i < c->count; i++)
        here += kf_compares(c, c->have[i]);
    return c->shown > 0 && here == c->shown;
}

static kofn_status show(kf_cluster *c, const uint32_t *seat, size_t count,
                        const kofn_decoder *all)
{
    TRY(kf_reach(&c->evidence, &c->evidence_cap, count, sizeof *c->evidence));
    memcpy(c->evidence, seat, count * sizeof *seat);
    c->shown = count;
    c->judged = false;
    c->all = all;
    return KOFN_OK;
}

static bool is_known_liar(const kf_node *n, size_t rank)
{
    for (const kf_other *o = n->other; n->voices.known && o != kf_end(n); o++)
        if (o->rank == rank && has_a_say(n, o))
            return o->liar;
    return false;
}

/* No member has another piece to give, or will in good time. */
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
    bool by_itself = (n->mine | n->own) & kf_bit(group);
    kf_answers a; /* of all pieces, by which they are compared */

    if (c->decoder || n->final || n->failed_check || kf_node_is_stuck(n) ||
        !by_itself || (c->shown && !c->judged))
        return KOFN_OK;
    if (!enough && (c->count <= n->on->promise.surely || !is_last(n, c)))
        return KOFN_OK;
    TRY(kf_peer_find_decoder(n, c->have, c->count, false, &a));
    if (!a.decoder) {
        c->need = c->count + 1;
        return is_last(n, c) ? kf_peer_fail(n, KOFN_TOOFEW) : KOFN_OK;
    }
    return show(c, c->have, c->count, a.decoder);
}

/* Of this iterate nobody needs our piece; who does asks again.  Others may want
 * one of a later iterate by now. */
static void take_back(kf_node *n, size_t group)
{
    for (kf_other *o = n->other; o != kf_end(n); o++)
        if (kf_same_iterate(o->want, n->at))
            o->coded &= ~kf_bit(group);
}

kofn_status kf_peer_shown(kf_node *n, size_t group, const uint32_t *seats,
                          size_t count, bool *sound)
{
    kf_cluster *c = &n->cluster[group];
    kf_answers a;

    *sound &= count >= least(n, n->voices.known);
    if (!*sound || c->shown || n->own & kf_bit(group))
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
        out->verdicts = kf_promise_verdicts(&n->on->promise, &v);
        return true;
    }
    return false;
}

kofn_status kf_peer_fail(kf_node *n, kofn_status st)
{
    n->failed_check = st;
    n->finished = n->now;
    return kf_peer_beat_all(n);
}

/* All there is was looked at, and it cannot be told. */
static kofn_status give_up(kf_node *n, size_t group, kofn_status st)
{
    if (n->mine & kf_bit(group)) {
        n->decided |= kf_bit(group); /* so that all look at the same */
        TRY(kf_peer_tell_now(n));
    }
    return kf_peer_give_up(n, st == KOFN_CORRUPT ? st : KOFN_TOOFEW);
}

/* More pieces are wanted than were looked at. */
static kofn_status widen(kf_node *n, size_t group, size_t wanted)
{
    kf_cluster *c = &n->cluster[group];

    c->need = kf_max(c->need, wanted);
    n->own |= kf_bit(group);
    TRY(kf_peer_ask_pieces(n, true));
    return kf_peer_gather(n, group);
}

/* The evidence without those of whom it is said that they are wrong. */
static kofn_status settle(kf_node *n, size_t group, const kf_node_event *ev)
{
    kf_cluster *c = &n->cluster[group];
    uint32_t *good = kf_new(c->shown, sizeof *good);
    kf_answers a = {.decoder = NULL};
    size_t count = 0;
    kofn_status st;

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
                 corrupt ? kf_promise_apart(&n->on->promise, c->shown,
                                            ev->task->verdicts.liars)
                         : c->shown + 1);
}

/* ---- what time brings ---------------------------------------------------- */

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
    if (late && (n->own | n->done) != n->on->all) {
        n->own |= n->on->all & ~n->done;
        TRY(kf_peer_ask_pieces(n, true));
    }
    if (late)
        kf_elapsed_or_wake(n, n->began, LAST_AFTER * each + 1);
    for (size_t g = 0; g < n->on->groups; g++) {
        if (late && !have_evidence(&n->cluster[g]) && !n->cluster[g].decoder)
            n->cluster[g].judged = true; /* it does not come */
        TRY(kf_peer_gather(n, g));
    }
    return KOFN_OK;
}

kf_cache *kf_node_cache(const kf_node *n)
{
    return n->on->cache;
}
