/* again.c -- an iterate of whose pieces it cannot be told which are wrong is
 * made again.
 *
 * What was an accident is over then, and who was silent may be back.  The
 * leader gives its iterate another mark, so that all pieces that were made of
 * it are void, and the others take it from the leader as that of one who is on
 * another way: the numbers are the same.  The first two times at once, then
 * after longer and longer; who is left with a disagreement after that has
 * failed.
 *
 * One from which nothing goes on although enough nodes are there has failed,
 * too.  Where matrices change nobody makes an iterate alone, and with errors
 * one is taken only when enough others have the same: so nodes that a leader
 * left at several iterates, at none of them enough to be believed and at none
 * enough to make the next, have nothing to do any more, whoever leads; nor have
 * those of whom too few have blocks.
 *
 * How often, and since when, is the node's.  It may not go back to an earlier
 * iterate.
 */
#include "node.h"

#define MOST 5     /* times that an iterate is made again */
#define LONGEST 16 /* silences to wait for the leader to do so */
#define STILL 32   /* silences, and times its patience, that all may be idle */

bool kf_node_is_stuck(const kf_node *n)
{
    return n->unsettled.stuck != KOFN_OK;
}

kofn_status kf_peer_give_up(kf_node *n, kofn_status st)
{
    if (n->unsettled.agains >= MOST || n->opt.errors == KOFN_ERRORS_DETECT)
        return kf_peer_fail(n, st);
    n->unsettled.stuck = st;
    n->unsettled.stuck_at = n->now;
    n->unsettled.agains++;
    return kf_peer_beat_all(n);
}

/* Of those who lead: 0, 0, 1, 2, 4 silences. */
static kofn_time wait(const kf_node *n)
{
    if (!kf_leads(n))
        return LONGEST * n->opt.silence;
    return n->unsettled.agains < 3
               ? 0
               : n->opt.silence << (n->unsettled.agains - 3);
}

static kofn_status begin_again(kf_node *n)
{
    kf_node_digest digest = kf_peer_digest(n);

    n->at.lineage = kf_mix64(kf_state64(n->at.lineage, 2));
    n->ever.again++;
    n->began = n->now;
    n->repeats = 0;
    n->lead.stalled = n->catch_up.ahead = n->idled = KF_LONG_AGO;
    n->unsettled.stuck = KOFN_OK;
    kf_peer_clear_iterate(n);
    kf_peer_cast(n, digest);
    TRY(kf_peer_beat_all(n));
    return kf_peer_ask_pieces(n, false);
}

kofn_status kf_peer_tick_again(kf_node *n)
{
    if (!kf_node_is_stuck(n) || n->failed_check ||
        !kf_elapsed_or_wake(n, n->unsettled.stuck_at, wait(n)))
        return KOFN_OK;
    return kf_leads(n) ? begin_again(n) : kf_peer_fail(n, n->unsettled.stuck);
}

uint64_t kf_node_agains(const kf_node *n)
{
    return n->ever.again;
}

/* ---- standing still ------------------------------------------------------ */

/* Have all, this node among them, nothing left to do, or no blocks to do it
 * with? */
static bool all_idle(const kf_node *n)
{
    kf_node_task todo;

    kf_node_work(n, &todo);
    for (const kf_other *o = n->other; o != kf_end(n); o++)
        if (kf_live(n, o) && o->rank != KF_NONE && !o->idle && !o->stranded &&
            o->wish == n->member[o->rank].seat)
            return false;
    return todo.type == KF_NODE_TASK_ENCODE || todo.type == KF_NODE_TASK_NONE;
}

/* May it be that nothing ever comes of our iterate? */
static bool may_be_still(const kf_node *n)
{
    return n->opt.changes && kf_peer_checks(n) && !n->failed_check &&
           !n->votes.outvoted && !kf_node_is_stuck(n) &&
           kf_peer_have_quorum(n) && !(n->final && kf_node_is_agreed(n));
}

/* Where they all stand. */
static uint64_t places(const kf_node *n)
{
    uint64_t sum = kf_mix64(n->at.lineage ^ n->at.step);

    for (const kf_other *o = n->other; o != kf_end(n); o++)
        if (kf_live(n, o))
            sum +=
                kf_mix64(kf_mix64(o->at.lineage ^ o->at.step) ^ o->incarnation);
    return sum;
}

/* Those who have their blocks and have not failed.  KF_NONE: somebody may come
 * yet who brings what is missing, for fewer are there than founded the mesh, or
 * one has yet to make his blocks. */
static size_t count_whole(const kf_node *n)
{
    size_t whole = n->seat == n->holds;

    if (kf_peer_count(n, false) < n->opt.nodes || (!whole && !n->lacks))
        return KF_NONE;
    for (const kf_other *o = n->other; o != kf_end(n); o++) {
        if (!kf_live(n, o) || o->rank == KF_NONE || o->stranded)
            continue;
        if (o->wish != n->member[o->rank].seat)
            return KF_NONE;
        whole++;
    }
    return whole;
}

/* For how long all may have nothing to do where they stand.  The first iterate
 * is made of what is sent for the first time, and nobody knows yet how long
 * that takes. */
static kofn_time longest_still(const kf_node *n)
{
    kofn_time each = kf_peer_patience(n);
    size_t whole = count_whole(n);

    each = each > n->opt.silence ? each : n->opt.silence;
    if (whole < n->enough + kf_peer_checks(n))
        return KF_UNSETTLED * n->opt.silence;
    if (whole != KF_NONE && n->took > 0)
        return KF_UNSETTLED * each;
    return STILL * each > n->opt.give_up ? STILL * each : n->opt.give_up;
}

/* All stand where they did for long, and for some time have had nothing to do:
 * an epoch that begins gives them something for a moment. */
kofn_status kf_peer_tick_still(kf_node *n)
{
    uint64_t now = may_be_still(n) ? places(n) : 0;

    if (now != n->unsettled.places)
        n->unsettled.still = KF_LONG_AGO;
    n->unsettled.places = now;
    kf_track_since(n, &n->unsettled.still, now != 0);
    if (!kf_track_since(n, &n->unsettled.quiet, now != 0 && all_idle(n)))
        return KOFN_OK;
    if (!kf_elapsed_or_wake(n, n->unsettled.still, longest_still(n)) ||
        !kf_elapsed_or_wake(n, n->unsettled.quiet,
                            KF_UNSETTLED * n->opt.silence))
        return KOFN_OK;
    return kf_peer_fail(n, KOFN_TOOFEW);
}
