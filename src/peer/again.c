/* again.c -- repeats an iterate if it cannot be decided which partial products
 * are wrong.
 *
 * After a repetition an accidental error is gone, and silent nodes may be back.
 * The leader gives its iterate another mark, so all partial products that were
 * made from it are void.  The others take the iterate from the leader, like one
 * of another lineage; its numbers are the same.  The leader repeats twice at
 * once, then after longer and longer delays.  If partial products still
 * disagree after the last repetition, the node fails.
 *
 * A node also fails if its iterate leads to no other although enough nodes are
 * there.  If matrices change, no node makes an iterate alone.  With errors, an
 * iterate is taken only if enough others have the same.  So a lost leader may
 * leave nodes at several iterates, each with too few nodes to be believed and
 * too few to make the next.  They have nothing left to do under any leader.
 * The same holds if too few nodes have blocks.
 *
 * The counts and times are part of the node.  These functions must not return
 * to an earlier iterate.
 */
#include "node.h"

#include <assert.h>

#define LONGEST 16 /* silences to wait until the leader repeats it */
/* silences, and multiples of the patience, for which all may be idle */
#define STILL 32

/* Returns the wait of a leader before its repetitions: 0, 0, 1, 2, 4
 * silences. */
static kofn_time wait(const kf_node *n)
{
    assert(n->unsettled.agains >= 1);
    assert(n->unsettled.agains <= KF_MOST_AGAINS);
    if (!kf_leads(n))
        return LONGEST * n->opt.silence;
    return n->unsettled.agains < 3
               ? 0
               : n->opt.silence << (n->unsettled.agains - 3);
}

static kofn_status begin_again(kf_node *n)
{
    kf_node_digest digest = kf_peer_digest(n);

    assert(kf_leads(n));
    assert(kf_node_is_stuck(n));
    n->stage.at.lineage = kf_mix64(kf_state64(n->stage.at.lineage, 2));
    n->ever.again++;
    n->stage.began = n->now;
    n->pieces.repeats = 0;
    n->in.lead.stalled = n->catch_up.ahead = n->alone.idled = KF_LONG_AGO;
    n->unsettled.stuck = KOFN_OK;
    kf_peer_clear_iterate(n);
    kf_peer_cast(n, digest);
    kf_peer_beat_soon(n);
    return kf_peer_ask_partials(n, false);
}

kofn_status kf_peer_tick_again(kf_node *n)
{
    if (!kf_node_is_stuck(n) || n->unsettled.failed ||
        !kf_elapsed_or_wake(n, n->unsettled.stuck_at, wait(n)))
        return KOFN_OK;
    return kf_leads(n) ? begin_again(n) : kf_peer_fail(n, n->unsettled.stuck);
}

/* ---- standing still ------------------------------------------------------ */

/* True if all nodes, this one included, have nothing left to do, or no blocks
 * for it. */
static bool all_idle(const kf_node *n)
{
    kf_node_task todo;

    kf_node_work(n, &todo);
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (kf_live(n, o) && o->rank != KF_NONE && !o->idle && !o->stranded &&
            o->wish == n->in.member[o->rank].seat)
            return false;
    return todo.type == KF_NODE_TASK_ENCODE || todo.type == KF_NODE_TASK_NONE;
}

/* True if our iterate can be one that leads to no other. */
static bool may_be_still(const kf_node *n)
{
    return n->opt.changes && kf_peer_checks(n) && !n->unsettled.failed &&
           !n->votes.outvoted && !kf_node_is_stuck(n) &&
           kf_peer_have_quorum(n) && !(n->stage.final && kf_node_is_agreed(n));
}

/* Returns a digest of the iterates of all live nodes. */
static uint64_t places(const kf_node *n)
{
    uint64_t sum = kf_mix64(n->stage.at.lineage ^ n->stage.at.step);

    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (kf_live(n, o))
            sum +=
                kf_mix64(kf_mix64(o->at.lineage ^ o->at.step) ^ o->incarnation);
    return sum;
}

/* Returns the number of nodes that have their blocks and have not failed.
 * KF_NONE if the missing ones may still come: fewer nodes are there than
 * founded the mesh, or a node is still making its blocks. */
static size_t count_whole(const kf_node *n)
{
    size_t whole = n->in.seat == n->blocks.holds;

    if (kf_peer_count(n, false) < n->opt.nodes || (!whole && !n->blocks.lacks))
        return KF_NONE;
    for (const kf_other *o = n->table.other; o != kf_end(n); o++) {
        if (!kf_live(n, o) || o->rank == KF_NONE || o->stranded)
            continue;
        assert(o->rank < n->in.members);
        if (o->wish != n->in.member[o->rank].seat)
            return KF_NONE;
        whole++;
    }
    return whole;
}

/* Returns for how long all may stay at their iterates with nothing to do.  The
 * time is longer at the first iterate: its inputs are sent for the first time,
 * and the duration of an iteration is not known. */
static kofn_time longest_still(const kf_node *n)
{
    kofn_time each = kf_peer_patience(n);
    size_t whole = count_whole(n);

    each = each > n->opt.silence ? each : n->opt.silence;
    if (whole < n->enough + kf_peer_checks(n))
        return KF_UNSETTLED * n->opt.silence;
    if (whole != KF_NONE && n->stage.took > 0)
        return KF_UNSETTLED * each;
    return STILL * each > n->opt.give_up ? STILL * each : n->opt.give_up;
}

/* Fails if all have stayed at their iterates for long, and were idle for the
 * last part of that time.  A new epoch makes nodes busy for a moment. */
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
