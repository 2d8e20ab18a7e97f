/* mesh_faults.h -- faults of nodes and of the network of the simulated mesh,
 * drawn from a seed. */
#ifndef KF_TEST_MESH_FAULTS_H
#define KF_TEST_MESH_FAULTS_H

#include "mesh_sim_end.h"

static inline size_t sim_count_up(const sim *s)
{
    size_t up = 0;

    for (size_t i = 0; i < s->nodes; i++)
        up += s->node[i].up;
    return up;
}

static inline size_t faults_pick(sim *s, bool up)
{
    size_t i = kf_rng_below(&s->rng, s->nodes);

    for (size_t q = 0; q < s->nodes; q++, i = (i + 1) % s->nodes)
        if (s->node[i].up == up)
            return i;
    return s->nodes;
}

static inline void faults_divide(sim *s)
{
    bool side[SIM_NODES];

    for (size_t i = 0; i < s->nodes; i++)
        side[i] = sim_draw(s) < 0.5;
    for (size_t i = 0; i < s->nodes; i++)
        for (size_t j = 0; j < s->nodes; j++)
            s->cut[i][j] = side[i] != side[j];
}

/* Cuts a link, half of the time in one direction only. This causes false
 * suspicions that last. */
static inline void faults_cut_link(sim *s)
{
    size_t a = kf_rng_below(&s->rng, s->nodes);
    size_t b = kf_rng_below(&s->rng, s->nodes);

    s->cut[a][b] = true;
    if (sim_draw(s) < 0.5)
        s->cut[b][a] = true;
}

static inline void faults_break(sim *s, size_t a, size_t b)
{
    sim_link(s, a, b, KOFN_WENT);
    sim_link(s, b, a, KOFN_WENT);
    sim_link(s, a, b, KOFN_CAME);
    sim_link(s, b, a, KOFN_CAME);
}

/* Breaks a connection and restores it while both nodes are up. */
static inline void faults_flap(sim *s)
{
    size_t a = faults_pick(s, true), b = kf_rng_below(&s->rng, s->nodes);

    if (a != b && s->node[b].up)
        faults_break(s, a, b);
}

static size_t faults_injected; /* faults injected until now */

/* Injects one of the faults from number `first` on. The first kind is a death.
 * If `gentle` is set only the first two kinds are drawn. */
static inline void faults_inject_from(sim *s, size_t first, size_t gentle)
{
    kofn_time length = (kofn_time)((double)(400 * MS) * sim_draw(s));
    size_t i = faults_pick(s, true);

    faults_injected++;

    switch (first + kf_rng_below(&s->rng, (gentle ? 2 : 8) - first)) {
    case 0:
        if (sim_count_up(s) > 1)
            sim_stop(s, i);
        break;
    case 1:
        s->node[i].slow = sim_draw(s) < 0.3 ? 1 : 1 + 30 * sim_draw(s);
        break;
    case 2:
    case 3:
        s->node[i].stopped = s->now + length;
        break;
    case 4:
        i = faults_pick(s, false);
        if (i < s->nodes)
            sim_start(s, i, sim_draw(s) < 0.5);
        break;
    case 5:
        if (sim_draw(s) < 0.5)
            faults_divide(s);
        else
            faults_cut_link(s);
        break;
    case 6:
        sim_rebuil(s);
        break;
    default:
        faults_flap(s);
    }
}

static inline void faults_inject(sim *s, size_t gentle)
{
    faults_inject_from(s, 0, gentle);
}

/* Draws loss, repetition, reordering, latency and speed. */
static inline void faults_draw(sim *s, kf_rng *r)
{
    if (kf_rng_below(r, 3) == 0) {
        s->lose = 0.05 * kf_rng_uniform(r);
        s->repeat = 0.05 * kf_rng_uniform(r);
        s->reorder = 0.05 * kf_rng_uniform(r);
    }
    s->report_deaths = kf_rng_below(r, 2);
    s->latency = 1 + (kofn_time)(kf_rng_uniform(r) * 5 * (double)MS);
    s->compute = (kofn_time)(kf_rng_uniform(r) * 5 * (double)MS);
}

/* Ends all faults, and starts nodes until `needs` are up. Returns the time by
 * which they have the result. */
static inline kofn_time faults_end(sim *s, size_t needs)
{
    sim_rebuil(s);
    s->lose = s->repeat = s->reorder = 0;
    for (size_t i = 0; i < s->nodes; i++) {
        s->node[i].stopped = 0;
        s->node[i].slow = fmin(s->node[i].slow, 3);
        if (!s->node[i].up && sim_count_up(s) < needs)
            sim_start(s, i, false);
        if (s->node[i].up)
            sim_wake(s, i, s->now);
    }
    return s->now + 2 * KOFN_SECOND +
           (kofn_time)s->steps *
               (10 * s->latency + 8 * (kofn_time)s->nodes * s->compute);
}

#endif
