/* self.c -- what a node knows by itself: its machine, how many
 * nodes may be wrong, and the options of its coordinator.
 *
 * Only the coordinator of the node is made here; host.c owns it.
 */
#include "host.h"

#include "base/entropy.h"

#include <assert.h>

uint64_t kf_host_machine(void)
{
    kofn_machine m = KOFN_MACHINE_INIT;
    uint64_t d;

    kofn_machine_info(&m);
    d = kf_hash(0, m.simd, strlen(m.simd));
    d = kf_hash(d, m.blas, strlen(m.blas));
    return kf_hash(d, &m.blas_threads, sizeof m.blas_threads);
}

size_t kf_host_most_wrong(const kf_host *h)
{
    size_t least = h->opt.nodes;

    for (size_t i = 0; i < h->program.products; i++)
        least = kf_min(least, h->program.product[i].plan->layout.enough);
    return kf_max(1, (h->opt.nodes - least) / 2);
}

/* ---- the coordinator ----------------------------------------------------- */

/* as for jobs (src/core/core.c) */
#define TOLERANCE_F32 1e-4

/* Returns the quorum.  If two parts of a divided network both continue, one
 * must later take vector and blocks of the other. */
static size_t quorum_of(const kf_host *h)
{
    const kofn_peer_options *o = &h->opt;

    return o->quorum || !h->blocks.changes ? o->quorum : o->nodes / 2 + 1;
}

kofn_status kf_host_node_new(kf_host *h)
{
    const kofn_peer_options *o = &h->opt;
    kf_node_options n = {.incarnation = o->incarnation,
                         .job = h->job,
                         .nodes = o->nodes,
                         .quorum = quorum_of(h),
                         .confirm = h->confirm,
                         .groups = kf_min(o->nodes, KF_MAX_GROUPS),
                         .decoding = o->decoding,
                         .errors = o->errors,
                         .turns = h->program.turns,
                         .after = h->program.after,
                         .changes = h->blocks.changes,
                         .wish = o->seat,
                         .tolerance = h->work.single ? TOLERANCE_F32 : 0,
                         .from = h->it.at,
                         .beat = o->beat,
                         .silence = o->silence,
                         .hedge = o->hedge,
                         .patience = o->patience,
                         .linger = o->linger,
                         .give_up = o->give_up};

    TRY(kf_entropy_number(&n.incarnation));
    h->opt.incarnation = n.incarnation;
    return kf_node_new(&h->node, h->program.product, h->program.products, &n,
                       kf_host_now(h));
}
