/* attempt.c -- the attempts of a run: their jobs, and the nodes that want
 * another.
 *
 * back.c returns to a checkpoint.
 */
#include "host.h"

#include <assert.h>

uint64_t kf_attempt_job(const kf_mesh_disk *disk, unsigned attempt)
{
    uint64_t number = attempt;

    assert(attempt <= KF_MOST_ATTEMPTS);
    return attempt ? kf_hash(disk->back.job, &number, sizeof number)
                   : disk->back.job;
}

void kf_attempt_hear(kf_host *h, kofn_peer peer, const kofn_packet *p)
{
    kf_route *r = kf_route_of(&h->net, peer);
    kf_note note;

    if (!h->disk.back.start || !r)
        return;
    for (unsigned a = 0; a <= KF_MOST_ATTEMPTS; a++)
        if (!kf_note_read(&note, p->head, p->head_bytes,
                          kf_attempt_job(&h->disk, a)) &&
            kf_route_is_of(h, r, note.from))
            r->attempt = a;
}

/* True if the leader wants another attempt, not only a repetition. */
static bool leader_wants(const kf_host *h)
{
    kofn_node_view view;
    kofn_incarnation leader;

    kf_node_look(h->node, &view);
    leader = view.epoch.proposer;
    for (size_t i = 0; i < h->net.routes; i++)
        if (h->net.route[i].incarnation == leader && !h->net.route[i].over)
            return h->net.route[i].attempt > h->disk.back.attempt;
    return false;
}

/* True if another attempt is possible. */
bool kf_attempt_can_go(const kf_mesh_disk *disk)
{
    return disk->back.start && disk->back.vain < KF_MOST_VAIN &&
           disk->back.attempt < KF_MOST_ATTEMPTS;
}

/* True if this node cannot continue in this attempt. */
bool kf_attempt_has_failed(const kf_host *h)
{
    return kf_attempt_can_go(&h->disk) &&
           (kf_node_failed(h->node) ||
            (kf_node_is_stuck(h->node) && leader_wants(h)));
}

kofn_time kf_attempt_patience(const kf_host *h)
{
    return h->opt.give_up +
           (kf_attempt_can_go(&h->disk) ? KF_WANTS * kf_host_silence(h) : 0);
}

bool kf_attempt_waits(const kf_host *h)
{
    return kf_attempt_has_failed(h) && h->disk.back.since &&
           kf_host_now(h) - h->disk.back.since < kf_attempt_patience(h);
}

kofn_iterate_id kf_attempt_iterate(const kf_host *h, kofn_iterate_id kept)
{
    if (h->disk.back.attempt > 0 && kept.step > 0)
        kept.lineage = kf_mix64(kf_state64(kept.lineage ^ h->job, 3));
    return kept;
}
