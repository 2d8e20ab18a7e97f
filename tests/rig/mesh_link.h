/* mesh_link.h -- a slow link of a node of the simulated mesh: all that is sent
 * to it shares so many bytes a second.  The senders have turns, and of each one
 * packet comes after the other; what is urgent overtakes all of it, and takes
 * no time. */
#ifndef KF_TEST_MESH_LINK_H
#define KF_TEST_MESH_LINK_H

#include "mesh_sim.h"

enum { LINK_TURN = 512 }; /* bytes of one sender before another has its turn */

typedef struct sim_letter {
    sim_packet *p;
    kofn_lent body; /* until it is sent                            */
    size_t at;      /* so many bytes of head and body have come ... */
    kofn_time since;
    struct sim_letter *next;
} sim_letter;

typedef struct sim_slow {
    size_t to;
    double rate;                /* bytes a second            */
    sim_letter *way[SIM_NODES]; /* of each sender, the first */
    size_t turn;
    bool busy;
    size_t
        crawls; /* 1 + a sender whose bodies come a byte at a time and are never
                      whole, or 0: its notes without a body overtake them */
} sim_slow;

static inline size_t link_bytes(const sim_letter *l)
{
    return l->p->p.head_bytes + l->p->p.body_bytes;
}

static inline void link_schedule(sim *s, size_t bytes)
{
    sim_at(s, s->now + (kofn_time)((double)bytes / s->slow->rate * 1e9),
           SIM_LINK, s->slow->to, 0);
}

static inline bool link_carry(sim *s, sim_packet *p, const kofn_lent *body,
                              bool urgent)
{
    sim_slow *k = s->slow;
    sim_letter *l, **last = &k->way[p->from];

    if (p->to != k->to || urgent ||
        (p->p.body_bytes == 0 && k->crawls == p->from + 1))
        return false;
    l = numbers(1, sizeof *l);
    l->p = p;
    l->body = body ? *body : (kofn_lent){0};
    while (*last)
        last = &(*last)->next;
    *last = l;
    if (!k->busy)
        link_schedule(s, 0);
    k->busy = true;
    return true;
}

/* The first letter of this sender is through, or lost. */
static inline sim_packet *link_pop(sim_slow *k, size_t from)
{
    sim_letter *l = k->way[from];
    sim_packet *p = l->p;

    k->way[from] = l->next;
    kf_give_back(&l->body);
    kf_free(l);
    return p;
}

static inline void link_crawl(const sim *s)
{
    const sim_slow *k = s->slow;
    sim_letter *l = k->crawls ? k->way[k->crawls - 1] : NULL;

    if (!l)
        return;
    if (l->at == 0) {
        l->since = s->now;
        l->at = l->p->p.head_bytes;
    }
    l->at += l->at + 1 < link_bytes(l);
}

/* Some bytes of the next sender's, and one of who crawls, which takes no
 * time. */
static inline void link_move(sim *s)
{
    sim_slow *k = s->slow;
    size_t bytes = LINK_TURN, from = SIM_NODES;
    sim_letter *l;

    link_crawl(s);
    k->busy = k->crawls && k->way[k->crawls - 1];
    for (size_t i = 0; i < SIM_NODES && from == SIM_NODES; i++) {
        size_t next = k->turn++ % SIM_NODES;

        if (k->way[next] && k->crawls != next + 1)
            from = next;
    }
    if (from < SIM_NODES) {
        k->busy = true;
        l = k->way[from];
        if (l->at == 0)
            l->since = s->now;
        bytes = kf_min(bytes, link_bytes(l) - l->at);
        l->at += bytes;
        if (l->at == link_bytes(l))
            sim_put(s, link_pop(k, from), s->latency);
    }
    if (k->busy)
        link_schedule(s, bytes);
}

static inline void link_sever(sim *s, size_t id)
{
    for (size_t i = 0; i < SIM_NODES; i++)
        while (s->slow->way[i] && (i == id || s->slow->to == id))
            sim_free_packet(link_pop(s->slow, i));
}

static inline bool link_arriving(kofn_transport *t, kofn_peer peer,
                                 kofn_arriving *a)
{
    const sim_node *n = (sim_node *)t;
    const sim_slow *k = n->sim->slow;
    const sim_letter *l = k->way[n->who[peer]];

    if (n->id != k->to || n->peer[n->who[peer]] != peer || !l ||
        l->at < l->p->p.head_bytes)
        return false;
    *a = (kofn_arriving){.head_bytes = l->p->p.head_bytes,
                         .at = l->at - l->p->p.head_bytes,
                         .body_bytes = l->p->p.body_bytes,
                         .age = n->sim->now - l->since};
    memcpy(a->head, l->p->p.head, l->p->p.head_bytes);
    return true;
}

/* Until the mesh is down.  Nodes that are started from now on are told what is
 * coming in, unless it is mute. */
static inline void link_up(sim *s, sim_slow *k, bool mute)
{
    s->slow = k;
    s->carry = link_carry;
    s->move = link_move;
    s->sever = link_sever;
    s->arriving = mute ? NULL : link_arriving;
}

#endif
