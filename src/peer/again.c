/* again.c -- an iterate of whose pieces it cannot be told which are wrong is made again.
 *
 * What was an accident is over then, and who was silent may be back.  The leader gives
 * its iterate another mark, so that all pieces that were made of it are void, and the
 * others take it from the leader as that of one who is on another way: the numbers are
 * the same.  The first two times at once, then after longer and longer; who is left with
 * a disagreement after that has failed.
 *
 * How often is the node's.  It may not go back to an earlier iterate.
 */
#include "node.h"

#define MOST 5     /* times that an iterate is made again */
#define LONGEST 16 /* silences to wait for the leader to do so */

bool kf_peer_is_stuck(const kf_node *n)
{
    return n->stuck != KOFN_OK;
}

kofn_status kf_peer_give_up(kf_node *n, kofn_status st)
{
    if (n->agains >= MOST || n->opt.errors == KOFN_ERRORS_DETECT)
        return kf_peer_fail(n, st);
    n->stuck = st;
    n->stuck_at = n->now;
    n->agains++;
    return kf_peer_beat_all(n);
}

/* Of those who lead: 0, 0, 1, 2, 4 silences. */
static kofn_time wait(const kf_node *n)
{
    if (!kf_leads(n))
        return LONGEST * n->opt.silence;
    return n->agains < 3 ? 0 : n->opt.silence << (n->agains - 3);
}

static kofn_status begin_again(kf_node *n)
{
    kf_node_digest digest = kf_peer_digest(n);

    n->at.line = kf_mix64(kf_state64(n->at.line, 2));
    n->again++;
    n->began = n->now;
    n->repeats = 0;
    n->stalled = n->ahead = n->idled = KF_LONG_AGO;
    kf_peer_unstick(n);
    kf_peer_clear_iterate(n);
    kf_peer_cast(n, digest);
    TRY(kf_peer_beat_all(n));
    return kf_peer_ask_pieces(n, false);
}

void kf_peer_unstick(kf_node *n)
{
    n->stuck = KOFN_OK;
}

kofn_status kf_peer_tick_again(kf_node *n)
{
    if (!kf_peer_is_stuck(n) || n->failed_check ||
        !kf_due(n, n->stuck_at, wait(n)))
        return KOFN_OK;
    return kf_leads(n) ? begin_again(n) : kf_peer_fail(n, n->stuck);
}

bool kf_node_is_stuck(const kf_node *n)
{
    return kf_peer_is_stuck(n);
}

uint64_t kf_node_agains(const kf_node *n)
{
    return n->again;
}
