/* mesh_link.h -- a slow link of one node of the simulated mesh. All packets to
 * this node share a number of bytes a second. Senders take turns, and the
 * packets of one sender arrive in order. Urgent packets overtake all others
 * and take no time. */
#ifndef KF_TEST_MESH_LINK_H
#define KF_TEST_MESH_LINK_H

#include "mesh_sim_end.h"

enum {
    LINK_TURN = 512
}; /* bytes of one sender before the next sender's turn */

typedef struct sim_queued {
    sim_packet *p;
    kofn_lent body; /* until it is sent */
    size_t at;      /* bytes of head and body that have arrived */
    kofn_time since;
    struct sim_queued *next;
} sim_queued;

typedef struct sim_slow {
    size_t to;
    double rate;                  /* bytes a second */
    sim_queued *queue[SIM_NODES]; /* the first packet of each sender */
    size_t turn;
    bool busy;
    /* 1 + a sender with bodies that arrive one byte at a time and never whole,
     * or 0. Its notes without a body overtake them. */
    size_t crawls;
} sim_slow;

static inline size_t link_bytes(const sim_queued *l)
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
    sim_queued *l, **last = &k->queue[p->from];

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

/* Removes the first packet of this sender, which has arrived or is lost. */
static inline sim_packet *link_pop(sim_slow *k, size_t from)
{
    sim_queued *l = k->queue[from];
    sim_packet *p = l->p;

    k->queue[from] = l->next;
    kf_give_back(&l->body);
    kf_free(l);
    return p;
}

static inline void link_crawl(const sim *s)
{
    const sim_slow *k = s->slow;
    sim_queued *l = k->crawls ? k->queue[k->crawls - 1] : NULL;

    if (!l)
        return;
    if (l->at == 0) {
        l->since = s->now;
        l->at = l->p->p.head_bytes;
    }
    l->at += l->at + 1 < link_bytes(l);
}

/* Moves some bytes of the next sender, and one byte of the sender that crawls,
 * which takes no time. */
static inline void link_move(sim *s)
{
    sim_slow *k = s->slow;
    size_t bytes = LINK_TURN, from = SIM_NODES;
    sim_queued *l;

    link_crawl(s);
    k->busy = k->crawls && k->queue[k->crawls - 1];
    for (size_t i = 0; i < SIM_NODES && from == SIM_NODES; i++) {
        size_t next = k->turn++ % SIM_NODES;

        if (k->queue[next] && k->crawls != next + 1)
            from = next;
    }
    if (from < SIM_NODES) {
        k->busy = true;
        l = k->queue[from];
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
        while (s->slow->queue[i] && (i == id || s->slow->to == id))
            sim_free_packet(link_pop(s->slow, i));
}

static inline bool link_arriving(kofn_transport *t, kofn_peer peer,
                                 kofn_arriving *a)
{
    const sim_node *n = (sim_node *)t;
    const sim_slow *k = n->sim->slow;
    const sim_queued *l = k->queue[n->node_of[peer]];

    if (n->id != k->to || n->peer[n->node_of[peer]] != peer || !l ||
        l->at < l->p->p.head_bytes)
        return false;
    *a = (kofn_arriving){.head_bytes = l->p->p.head_bytes,
                         .at = l->at - l->p->p.head_bytes,
                         .body_bytes = l->p->p.body_bytes,
                         .age = n->sim->now - l->since};
    memcpy(a->head, l->p->p.head, l->p->p.head_bytes);
    return true;
}

/* Makes the link slow until the mesh ends. Nodes that start from now on know
 * what is arriving, unless `mute` is set. */
static inline void link_up(sim *s, sim_slow *k, bool mute)
{
    s->slow = k;
    s->carry = link_carry;
    s->move = link_move;
    s->sever = link_sever;
    s->arriving = mute ? NULL : link_arriving;
}

#endif
