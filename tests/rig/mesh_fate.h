/* mesh_fate.h -- what befalls nodes of the simulated mesh and its network,
 * drawn from a seed. */
#ifndef KF_TEST_MESH_FATE_H
#define KF_TEST_MESH_FATE_H

#include "mesh_sim.h"

static inline size_t fate_count_up(const sim *s)
{
    size_t up = 0;

    for (size_t i = 0; i < s->nodes; i++)
        up += s->node[i].up;
    return up;
}

static inline size_t fate_picks(sim *s, bool up)
{
    size_t i = kf_rng_below(&s->rng, s->nodes);

    for (size_t q = 0; q < s->nodes; q++, i = (i + 1) % s->nodes)
        if (s->node[i].up == up)
            return i;
    return s->nodes;
}

static inline void fate_cuts(sim *s)
{
    bool side[SIM_NODES];

    for (size_t i = 0; i < s->nodes; i++)
        side[i] = sim_draw(s) < 0.5;
    for (size_t i = 0; i < s->nodes; i++)
        for (size_t j = 0; j < s->nodes; j++)
            s->cut[i][j] = side[i] != side[j];
}

/* One way only, or between two only: what suspects wrongly for long. */
static inline void fate_cuts_link(sim *s)
{
    size_t a = kf_rng_below(&s->rng, s->nodes);
    size_t b = kf_rng_below(&s->rng, s->nodes);

    s->cut[a][b] = true;
    if (sim_draw(s) < 0.5)
        s->cut[b][a] = true;
}

static inline void fate_breaks(sim *s, size_t a, size_t b)
{
    sim_link(s, a, b, KOFN_WENT);
    sim_link(s, b, a, KOFN_WENT);
    sim_link(s, a, b, KOFN_CAME);
    sim_link(s, b, a, KOFN_CAME);
}

/* The connection breaks and comes again while both live. */
static inline void fate_flaps(sim *s)
{
    size_t a = fate_picks(s, true), b = kf_rng_below(&s->rng, s->nodes);

    if (a != b && s->node[b].up)
        fate_breaks(s, a, b);
}

static size_t fate_struck; /* misfortunes so far */

/* One of eight, of which the first is a death and the first two are gentle; not
 * one of the first so many. */
static inline void fate_strikes_from(sim *s, size_t first, size_t gentle)
{
    kofn_time length = (kofn_time)((double)(400 * MS) * sim_draw(s));
    size_t i = fate_picks(s, true);

    fate_struck++;

    switch (first + kf_rng_below(&s->rng, (gentle ? 2 : 8) - first)) {
    case 0:
        if (fate_count_up(s) > 1)
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
        i = fate_picks(s, false);
        if (i < s->nodes)
            sim_start(s, i, sim_draw(s) < 0.5);
        break;
    case 5:
        if (sim_draw(s) < 0.5)
            fate_cuts(s);
        else
            fate_cuts_link(s);
        break;
    case 6:
        sim_heal(s);
        break;
    default:
        fate_flaps(s);
    }
}

static inline void fate_strikes(sim *s, size_t gentle)
{
    fate_strikes_from(s, 0, gentle);
}

/* A network that loses, delays and reorders more or less. */
static inline void fate_draws(sim *s, kf_rng *r)
{
    if (kf_rng_below(r, 3) == 0) {
        s->lose = 0.05 * kf_rng_uniform(r);
        s->repeat = 0.05 * kf_rng_uniform(r);
        s->reorder = 0.05 * kf_rng_uniform(r);
    }
    s->tell = kf_rng_below(r, 2);
    s->latency = 1 + (kofn_time)(kf_rng_uniform(r) * 5 * (double)MS);
    s->compute = (kofn_time)(kf_rng_uniform(r) * 5 * (double)MS);
}

/* From here on the network is well, and as many nodes as are needed are there.
 * The time by which they have the result. */
static inline kofn_time fate_relents(sim *s, size_t needs)
{
    sim_heal(s);
    s->lose = s->repeat = s->reorder = 0;
    for (size_t i = 0; i < s->nodes; i++) {
        s->node[i].stopped = 0;
        s->node[i].slow = fmin(s->node[i].slow, 3);
        if (!s->node[i].up && fate_count_up(s) < needs)
            sim_start(s, i, false);
        if (s->node[i].up)
            sim_wake(s, i, s->now);
    }
    return s->now + 2 * KOFN_SECOND +
           (kofn_time)s->steps *
               (10 * s->latency + 8 * (kofn_time)s->nodes * s->compute);
}

#endif
