/* decisions.c -- the member that decides a group of the iterate, and how a
 * leader tells its decisions to the others.
 *
 * Owns the lists of decisions: that of our iterate and that of the one before.
 * A decided group stays decided within its epoch.
 */
#include "node.h"

#include <assert.h>

void kf_peer_clear_decisions(kf_node *n)
{
    n->stage.decided = n->stage.done = n->pieces.local =
        n->pieces.decisions[0].groups = 0;
    for (size_t g = 0; g < KF_MAX_GROUPS; g++) {
        kf_cluster *c = &n->pieces.cluster[g];

        c->decoder = c->all = NULL;
        c->shown = c->need = 0;
        c->judged = false;
    }
    for (kf_other *o = n->table.other; o != kf_end(n); o++)
        o->asked.partials = o->asked.results = 0;
}

void kf_peer_clear_iterate(kf_node *n)
{
    kf_peer_clear_decisions(n);
    n->stage.made = 0;
    n->pieces.disagreed = false;
    for (size_t g = 0; g < KF_MAX_GROUPS; g++)
        n->pieces.cluster[g].count = 0;
    kf_peer_products_trim(n);
}

/* ---- deciders ------------------------------------------------------------ */

void kf_peer_set_deciders(kf_node *n)
{
    size_t prompt = 0, leader = kf_peer_rank_of(n, n->in.epoch.proposer);
    bool replicated = n->opt.decoding == KOFN_DECODE_REPLICATED;

    assert(n->on->groups > 0 && n->on->groups <= KF_MAX_GROUPS);
    for (size_t r = 0; r < n->in.members && !replicated; r++)
        prompt += n->in.member[r].prompt;
    for (size_t g = 0; g < n->on->groups; g++) {
        size_t nth = g * prompt / n->on->groups, r = 0;

        while (prompt && !(n->in.member[r].prompt && nth == 0))
            nth -= n->in.member[r++].prompt;
        assert(!prompt || r < n->in.members);
        n->pieces.decider[g] = prompt ? r : leader;
    }
    n->pieces.mine = n->in.rank == KF_NONE ? 0 : kf_peer_decides(n, n->in.rank);
}

uint64_t kf_peer_decides(const kf_node *n, size_t rank)
{
    uint64_t set = 0;

    assert(rank < n->in.members);
    for (size_t g = 0; g < n->on->groups; g++)
        if (n->pieces.decider[g] == rank)
            set |= kf_bit(g);
    return set;
}

/* ---- telling ------------------------------------------------------------- */

/* Lists the decisions: the groups, and the seats of each. */
static kofn_status list_decisions(kf_node *n)
{
    kf_decisions *t = &n->pieces.decisions[0];

    t->at = n->stage.at;
    t->epoch = n->in.epoch;
    t->groups = n->stage.decided;
    t->listed = 0;
    for (size_t g = 0; g < n->on->groups; g++) {
        const kf_cluster *c = &n->pieces.cluster[g];
        const kofn_decoder *d = kf_peer_checks(n) ? c->all : c->decoder;

        if (!(n->stage.decided & kf_bit(g)))
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
    for (const kf_other *o = n->table.other; o != kf_end(n); o++)
        if (o->rank != KF_NONE && o->heard != KF_LONG_AGO)
            TRY(tell(n, &n->pieces.decisions[0], o->incarnation));
    return KOFN_OK;
}

kofn_status kf_peer_tell_again(kf_node *n, const kf_other *o,
                               kofn_iterate_id at)
{
    for (size_t i = 0; i < 2 && kf_leads(n); i++)
        if (n->pieces.decisions[i].groups &&
            kf_same_iterate(at, n->pieces.decisions[i].at))
            TRY(tell(n, &n->pieces.decisions[i], o->incarnation));
    return KOFN_OK;
}

/* The other nodes may then stop making the remaining partial products. */
kofn_status kf_peer_tell_members(kf_node *n)
{
    size_t fresh = 0;

    assert(n->opt.decoding == KOFN_DECODE_REPLICATED);
    for (size_t g = 0; g < n->on->groups; g++)
        fresh += (n->stage.decided & ~n->pieces.decisions[0].groups &
                  kf_bit(g)) != 0;
    if (n->stage.decided != n->on->all && fresh < kf_ceil_div(n->on->groups, 4))
        return KOFN_OK;
    return kf_peer_tell_now(n);
}
