/* lives.c -- the other lives, and catching up with those who are ahead.
 *
 * There is one way to come by an iterate that one did not help to make,
 * whether one has just joined, was stopped for a while, is too slow, or was
 * on the side of a cut that lost: to ask somebody who has it.
 */
#include "node.h"

kf_other *kf_find(kofn_node *n, kofn_life life)
{
    for (size_t i = 0; i < n->others; i++)
        if (n->other[i].life == life)
            return &n->other[i];
    return NULL;
}

/* The place of somebody who will not be missed. */
static kf_other *reuse(kofn_node *n)
{
    for (size_t i = 0; i < n->others; i++) {
        kf_other *o = &n->other[i];

        if (o->rank == KF_NONE && !kf_live(n, o) &&
            (o->heard == KF_LONG_AGO ||
             (n->now - o->heard) / 16 > n->opt.silence))
            return o;
    }
    return NULL;
}

kofn_status kf_meet(kofn_node *n, kofn_life life, kf_other **out)
{
    kf_other *o = kf_find(n, life);

    if (!o)
        o = reuse(n);
    else {
        *out = o;
        return KOFN_OK;
    }
    *out = NULL;
    if (!o) {
        if (n->others == KF_MOST_LIVES)
            return KOFN_OK;
        TRY(kf_grow(&n->other, &n->other_cap, n->others, sizeof *n->other));
        o = &n->other[n->others++];
    }
    *o = (kf_other){.life = life,
                    .heard = KF_LONG_AGO,
                    .wish = KOFN_NO_SEAT,
                    .rank = KF_NONE,
                    .led = n->now};
    for (size_t r = 0; r < n->members; r++)
        if (n->member[r].life == life)
            o->rank = r;
    *out = o;
    return KOFN_OK;
}

size_t kf_count_live(const kofn_node *n)
{
    size_t live = 1;

    for (size_t i = 0; i < n->others; i++)
        live += kf_live(n, &n->other[i]);
    return live;
}

bool kf_have_quorum(const kofn_node *n)
{
    size_t there = 1;

    for (size_t i = 0; i < n->others; i++) {
        const kf_other *o = &n->other[i];

        there += kf_live(n, o) || o->final || o->ended;
    }
    return there >= n->opt.quorum;
}

/* ---- what enough of them say ------------------------------------------------- */

uint64_t kf_common(const kofn_node *n, uint64_t (*value)(const kf_other *o))
{
    uint64_t common = UINT64_MAX;
    size_t agree = 0;

    for (;;) {
        uint64_t next = 0;
        size_t more = 0;

        for (size_t i = 0; i < n->others; i++) {
            const kf_other *o = &n->other[i];
            uint64_t v = value(o);

            if (!kf_live(n, o) || (agree && v >= common) || v < next)
                continue;
            more = v > next ? 1 : more + 1;
            next = v;
        }
        if (more == 0)
            return 0;
        agree += more;
        common = next;
        if (agree >= n->opt.confirm)
            return common;
    }
}

static uint64_t number_of_iterate(const kf_other *o)
{
    return o->at.t;
}

/* Do enough of them stand at this iterate? */
static bool agreed_on(const kofn_node *n, kofn_mark at, bool final)
{
    size_t say = 0;

    for (size_t i = 0; i < n->others; i++) {
        const kf_other *o = &n->other[i];

        say += kf_live(n, o) && kf_same_mark(o->at, at) &&
               (o->final || !final);
    }
    return say >= n->opt.confirm;
}

/* ---- catching up ------------------------------------------------------------- */

/* Is there no way from our iterate to theirs, or not soon enough?  What fewer
 * say than must confirm it is no reason to stop working.  Who has nothing to do
 * tries the leader's, where that is ours on another way: they can be compared. */
static bool out_of_reach(kofn_node *n, const kf_other *o, bool idle)
{
    kofn_mark child = kf_child(n->epoch, n->at);

    if (idle && o->at.t == n->at.t && !kf_same_mark(o->at, n->at) &&
        o->life == n->epoch.proposer)
        return true;
    if (o->at.t > n->agreed || o->at.t < n->at.t)
        return false;
    if (kf_same_mark(o->at, n->at))
        return o->final && agreed_on(n, o->at, true);
    if (o->final && agreed_on(n, o->at, true))
        return true;
    if (o->at.t == n->at.t)
        return o->life == n->epoch.proposer && agreed_on(n, o->at, false);
    if (!kf_same_mark(o->at, child))
        return o->at.t > n->at.t + 1 || agreed_on(n, o->at, false);
    /* ours to be, once the pieces that others had have come here */
    if (n->ahead == KF_LONG_AGO)
        n->ahead = n->now;
    return kf_due(n, n->ahead, n->opt.hedge);
}

/* Of those who are farthest one after the other, beginning anywhere, so that
 * not everybody asks the same. */
static kf_other *whom_to_ask(kofn_node *n)
{
    bool idle = kf_idle(n);
    size_t ahead = 0, skip;
    uint64_t t = 0;

    for (size_t i = 0; i < n->others; i++) {
        const kf_other *o = &n->other[i];

        if (!kf_live(n, o) || !out_of_reach(n, o, idle) || o->at.t < t)
            continue;
        if (o->at.t > t)
            ahead = 0;
        t = o->at.t;
        ahead++;
    }
    if (ahead == 0)
        return NULL;
    skip = (n->opt.life + n->tries) % ahead;
    for (size_t i = 0; i < n->others; i++) {
        kf_other *o = &n->other[i];

        if (!kf_live(n, o) || o->at.t != t || !out_of_reach(n, o, idle))
            continue;
        if (skip == 0)
            return o;
        skip--;
    }
    return NULL;
}

/* Most of the time nobody is, and there is nothing to be counted. */
static bool somebody_ahead(kofn_node *n)
{
    kofn_mark child = kf_child(n->epoch, n->at);
    bool ahead = false;

    n->behind = false;
    for (size_t i = 0; i < n->others; i++) {
        const kf_other *o = &n->other[i];

        n->behind |= o->at.t > n->at.t && !kf_same_mark(o->at, child);
        ahead |= o->at.t > n->at.t ||
                 (o->at.t == n->at.t &&
                  (o->final || !kf_same_mark(o->at, n->at)));
    }
    return ahead;
}

kofn_status kf_catch_up(kofn_node *n)
{
    kf_other *o = NULL;

    if (!n->final && somebody_ahead(n)) {
        n->agreed = kf_common(n, number_of_iterate);
        o = whom_to_ask(n);
    }
    if (!o) {
        n->asked = 0;
        return KOFN_OK;
    }
    if (o->final && kf_same_mark(o->at, n->at))
        return kf_advance(n, n->at, true);
    if (n->asked &&
        !kf_due(n, n->asked_at, kf_longer(n->opt.hedge, n->tries - 1)))
        return KOFN_OK;
    n->asked = o->life;
    n->asked_at = n->now;
    n->tries++;
    kf_due(n, n->asked_at, kf_longer(n->opt.hedge, n->tries - 1));
    return kf_send(n, o->life,
                   (kofn_note){.type = KOFN_NOTE_ASK, .at = n->at});
}

kofn_status kf_hear_vector(kofn_node *n, kf_other *o, const kofn_note *note)
{
    bool newer = note->at.t > n->at.t ||
                 (note->at.t == n->at.t && !kf_same_mark(note->at, n->at) &&
                  (note->final || note->from == n->epoch.proposer));

    if (n->final || !n->asked || !newer) {
        n->dropped++;
        return KOFN_OK;
    }
    o->final |= note->final;
    n->adopted++;
    TRY(kf_take(n, note));
    return kf_advance(n, note->at, note->final);
}
