/* baseline_carry.c -- carries notes between the nodes of a baseline: all nodes
 * in turn on one thread, or one thread each with packets of a mesh. */
#include "dnn/baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- simulated ----------------------------------------------------------- */

static kofn_status hand_over(baseline_node *from, size_t to, baseline_note *m)
{
    baseline_node_receive(&from->all->node[to], from->number, m);
    return KOFN_OK;
}

static kofn_status nothing_comes(baseline_node *n)
{
    return papers_fail(KOFN_STATE, "node %zu waits for what no node has sent",
                       n->number);
}

static kofn_status run_in_turn(baseline_train *all)
{
    size_t P = all->code.nodes.P;

    while (!all->node[0].over) {
        for (size_t i = 0; i < P; i++)
            PAPERS_TRY(baseline_node_post(&all->node[i]));
        for (size_t i = 0; i < P; i++)
            PAPERS_TRY(baseline_node_take(&all->node[i]));
    }
    return KOFN_OK;
}

const baseline_carrier baseline_simulated = {run_in_turn, hand_over,
                                             nothing_comes};

/* ---- threads ------------------------------------------------------------- */

/* A packet names its sender; its body is the numbers of a note. */
typedef struct head {
    uint32_t node;
    bool hello;
} head;

#define LOOK                                                                   \
    (KOFN_SECOND / 10) /* interval of looking whether others have failed */
#define PATIENCE 600   /* looks until giving up */

static void give_up(baseline_train *all)
{
    atomic_store(&all->abandoned, true);
}

static kofn_status say(baseline_node *n, kofn_peer peer, bool hello,
                       const kofn_lent *body)
{
    const head h = {(uint32_t)n->number, hello};

    return n->net.t->send(n->net.t, peer, &h, sizeof h, body, false);
}

static kofn_status receive(baseline_node *n, const kofn_packet *p)
{
    baseline_note *m;
    head h;

    if (p->head_bytes != sizeof h)
        return papers_fail(KOFN_STATE, "node %zu: a packet of another kind",
                           n->number);
    memcpy(&h, p->head, sizeof h);
    n->net.peer[h.node] = p->peer;
    n->net.known[h.node] = true;
    if (h.hello)
        return KOFN_OK;
    m = baseline_note_new(p->body_bytes / sizeof *m->x);
    if (!m)
        return KOFN_NOMEM;
    memcpy(m->x, p->body, p->body_bytes);
    baseline_node_receive(n, h.node, m);
    return KOFN_OK;
}

static kofn_status take_in(baseline_node *n, const kofn_packet *p)
{
    if (atomic_load(&n->all->abandoned))
        return KOFN_TOOFEW;
    return p->what == KOFN_CAME     ? say(n, p->peer, true, NULL)
           : p->what == KOFN_PACKET ? receive(n, p)
                                    : KOFN_OK;
}

/* Takes the next packet, if one comes. */
static kofn_status wait(baseline_node *n)
{
    kofn_transport *t = n->net.t;
    kofn_packet p = {.what = KOFN_WENT};
    kofn_status st = t->wait(t, LOOK, &p);

    n->net.silent = st == KOFN_AGAIN ? n->net.silent + 1 : 0;
    if (n->net.silent > PATIENCE)
        return papers_fail(KOFN_LATE, "node %zu has heard nothing for a minute",
                           n->number);
    if (st && st != KOFN_AGAIN)
        return st;
    st = take_in(n, &p);
    if (p.own)
        t->release(t, p.own);
    return st;
}

static kofn_status send(baseline_node *from, size_t to, baseline_note *m)
{
    const kofn_lent body = {m->x, m->count * sizeof *m->x, free, m};
    kofn_status st;

    if (to == from->number) {
        baseline_node_receive(from, to, m);
        return KOFN_OK;
    }
    while ((st = say(from, from->net.peer[to], false, &body)) == KOFN_AGAIN) {
        st = wait(from);
        if (st) {
            free(m);
            return st;
        }
    }
    return st;
}

static kofn_status live_through(baseline_node *n)
{
    size_t P = n->all->code.nodes.P;

    n->net.known[n->number] = true;
    for (size_t i = 0; i < P;)
        if (n->net.known[i])
            i++;
        else
            PAPERS_TRY(wait(n));
    while (!n->over) {
        PAPERS_TRY(baseline_node_post(n));
        PAPERS_TRY(baseline_node_take(n));
    }
    return KOFN_OK;
}

static void live(void *ud, kofn_transport *t)
{
    baseline_node *n = ud;

    n->net.t = t;
    n->status = live_through(n);
    if (n->status == KOFN_OK)
        return;
    snprintf(n->why, sizeof n->why, "%s", kofn_errmsg());
    give_up(n->all);
}

/* Returns the failure of the node that made all others end. */
static kofn_status first_failure(const baseline_train *all)
{
    const baseline_node *n = all->node;

    for (size_t i = 0; i < all->code.nodes.P; i++, n++)
        if (n->status && n->status != KOFN_TOOFEW)
            return papers_fail(n->status, "%s", n->why);
    return KOFN_OK;
}

static kofn_status run_threads(baseline_train *all)
{
    kofn_mesh *mesh = NULL;
    kofn_status st = kofn_mesh_new(&mesh);

    for (size_t i = 0; i < all->code.nodes.P && !st; i++)
        st = kofn_mesh_start(mesh, live, &all->node[i]);
    if (st)
        give_up(all);
    kofn_mesh_free(mesh);
    return st ? st : first_failure(all);
}

const baseline_carrier baseline_threads = {run_threads, send, wait};
