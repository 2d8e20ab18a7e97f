/* mesh_sim_end.h -- runs the simulated mesh until all nodes have the result,
 * and prints the nodes if they do not get it in time. mesh_sim.h includes it.
 */
#ifndef KF_TEST_MESH_SIM_END_H
#define KF_TEST_MESH_SIM_END_H

#include "mesh_sim.h"

static inline void sim_rebuil(sim *s)
{
    memset(s->cut, 0, sizeof s->cut);
}

static inline void sim_print(const sim *s)
{
    for (size_t i = 0; i < s->nodes; i++) {
        const sim_node *n = &s->node[i];
        kofn_node_view v;

        if (!n->host) {
            fprintf(stderr, "  node %zu: down\n", i);
            continue;
        }
        kf_node_look(n->host->node, &v);
        fprintf(stderr,
                "  node %zu: t %llu lineage %04llx epoch %llu/%04llx seat %d "
                "members %zu live %zu%s%s%s adopted %llu dropped %llu\n",
                i, (unsigned long long)v.at.step,
                (unsigned long long)v.at.lineage & 0xffff,
                (unsigned long long)v.epoch.number,
                (unsigned long long)v.epoch.proposer & 0xffff, (int)v.seat,
                v.members, v.live, v.leader ? " LEADER" : "",
                v.final ? " final" : "", n->over ? " over" : "",
                (unsigned long long)v.adopted, (unsigned long long)v.dropped);
    }
}

/* Fails unless every node that is up has the result by this time. */
static inline void sim_finish(sim *s, kofn_time by,
                              void (*fault)(sim *, size_t), const char *what,
                              uint64_t seed)
{
    for (;;) {
        bool all = true;

        for (size_t i = 0; i < s->nodes; i++)
            if (s->node[i].host && !s->node[i].turncoat) {
                kofn_node_view v;

                if (s->node[i].status)
                    fail_msg("%s, seed %llu: node %zu: %s", what,
                             (unsigned long long)seed, i, kofn_errmsg());
                kf_node_look(s->node[i].host->node, &v);
                all &= v.final;
            }
        if (all)
            return;
        if (s->now >= by) {
            sim_print(s);
            fail_msg("%s, seed %llu: a node has no result after "
                     "%.3g s",
                     what, (unsigned long long)seed, (double)s->now * 1e-9);
        }
        sim_run(s, s->now + MS, fault);
    }
}

#endif
