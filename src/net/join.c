/* join.c -- arrival and loss of peers: what greetings lead to.
 *
 * Two nodes of a mesh may connect to each other at once. The connection that
 * the lesser node made stays. So a lesser node admits a greater one only if
 * its own dials cannot lead to the same node. Otherwise it waits a moment.
 *
 * The transport owns the peers. Called with its lock. A peer is reported to the
 * owner only after its greeting was accepted. */
#include "inside.h"

#include <assert.h>

#define HOLD (500 * KF_MILLI) /* time that a mesh waits for its own dials */
#define GRACE KOFN_SECOND     /* to close after a refusal */
#define BEATS 3               /* beats in the time after which a peer is lost */
#define LEAST (10 * KF_MILLI) /* shortest time between beats */

/* ---- arrival ------------------------------------------------------------- */

static bool come(kf_link *l)
{
    kf_transport *t = l->t;
    bool room =
        !kf_grow(&t->in.peer, &t->in.cap, t->in.count, sizeof *t->in.peer);

    assert(l->state != KF_PEER);
    assert(l->dial || t->gate.strangers > 0);
    t->starved += !room;
    if (!room || t->in.next == UINT32_MAX)
        return false;
    l->number = t->in.next;
    if (!kf_packets_open(l)) {
        t->starved++;
        return false;
    }
    t->in.next++;
    t->in.peer[t->in.count++] = l;
    t->gate.strangers -= !l->dial;
    l->state = KF_PEER;
    return true;
}

/* Stores what the other end says about itself. */
static void learn(kf_link *l, const kf_greeting *g)
{
    kofn_time silence = (kofn_time)(kf_net_number(g->silence, 8) >> 1 << 1);

    memcpy(l->node, g->node, KF_NODE);
    l->life.beat = silence / BEATS > LEAST ? silence / BEATS : LEAST;
    l->channel[KF_BULK].may = kf_net_number(g->window, 8);
    l->channel[KF_URGENT].may = kf_net_number(g->urgent, 8);
    l->flag.shares =
        l->flag.local && kf_net_number(g->takes, 8) & KF_TAKES_FILES;
    if (l->t->mesh && !l->t->keys && !l->dial)
        kf_place_rename(l->name, sizeof l->name, l->flag.local, g->listens);
}

/* Returns the peer that is the same node, or NULL. A node with another key is
 * another node, even if it claims the same number. */
static kf_link *same_node(const kf_link *l)
{
    const kf_transport *t = l->t;

    for (size_t i = 0; i < t->in.count; i++)
        if (memcmp(t->in.peer[i]->node, l->node, KF_NODE) == 0 &&
            strcmp(t->in.peer[i]->principal, l->principal) == 0)
            return t->in.peer[i];
    return NULL;
}

/* True if one of our own dials may lead to a node that is connecting to us. */
static bool dialling(const kf_transport *t)
{
    for (size_t i = 0; i < t->out.count; i++)
        if ((t->out.dial[i]->link || t->out.dial[i]->looking ||
             t->out.dial[i]->at) &&
            !t->out.dial[i]->welcome)
            return true;
    return false;
}

static void send_away(kf_link *l)
{
    kf_net_send_word(l, KF_GO);
    kf_net_send_last(l, kf_clock() + GRACE);
}

static bool let_in(kf_link *l)
{
    kf_transport *t = l->t;

    assert(!l->dial);
    if (t->mesh && same_node(l)) {
        send_away(l);
        return true;
    }
    if (t->mesh && memcmp(t->node, l->node, KF_NODE) < 0 && dialling(t) &&
        t->keep.awake - l->life.since < HOLD) {
        l->state = KF_HELD;
        return true;
    }
    if (!come(l))
        return false;
    kf_net_send_word(l, KF_WELCOME);
    return true;
}

void kf_join_held(kf_transport *t)
{
    for (kf_link *l = t->in.links, *after; l; l = after) {
        after = l->after;
        if (l->state == KF_HELD && !let_in(l))
            kf_link_end(l);
    }
}

/* Handles the WELCOME at an end that connected. */
static bool welcomed(kf_link *l)
{
    kf_transport *t = l->t;
    kf_link *other = t->mesh ? same_node(l) : NULL;

    assert(l->dial);
    memcpy(l->dial->node, l->node, KF_NODE);
    if (t->mesh && memcmp(l->node, t->node, KF_NODE) == 0) {
        snprintf(t->text.trouble, sizeof t->text.trouble,
                 "%s is this node itself: it is not reached", l->dial->address);
        l->dial->over = true;
        return false;
    }
    if (other && memcmp(t->node, l->node, KF_NODE) > 0)
        return false; /* the other connection stays */
    if (other)
        kf_link_end(other);
    if (!come(l))
        return false;
    l->dial->welcome = l->dial->admitted = true;
    t->text.trouble[0] = '\0';
    kf_net_send_on(l);
    return true;
}

static void sent_away(kf_link *l)
{
    kf_transport *t = l->t;

    assert(l->dial);
    memcpy(l->dial->node, l->node, KF_NODE);
    if (!t->mesh || !same_node(l))
        snprintf(t->text.trouble, sizeof t->text.trouble,
                 "%s closed the connection", l->dial->address);
    kf_link_end(l);
}

bool kf_join_greeting(kf_link *l, kf_word word, const kf_greeting *g)
{
    if (memcmp(g->magic, KF_MAGIC, sizeof g->magic) != 0)
        return false;
    if (l->dial && l->state == KF_PEER && word == KF_GO) {
        sent_away(l);
        return true;
    }
    if (l->state != KF_STRANGE || (word == KF_HELLO) == (l->dial != NULL))
        return l->state == KF_PARTING;
    learn(l, g);
    if (!l->dial)
        return let_in(l);
    if (word == KF_GO)
        sent_away(l);
    else if (!welcomed(l))
        kf_link_end(l);
    return true;
}

/* ---- loss ---------------------------------------------------------------- */

/* Ends a peer and notifies it if possible. In the middle of a body, which is
 * lent and will be released, nothing can be sent. */
static void part(kf_link *l)
{
    assert(l->state == KF_PEER);
    assert(l->tray);
    kf_link_unlist(l);
    kf_packets_clear(l);
    kf_packets_close(l);
    l->flag.forgotten = true;
    l->state = KF_PARTING;
    if (!l->dial && l->out.body_bytes == 0)
        send_away(l);
    else
        kf_link_end(l);
}

void kf_join_look(uv_timer_t *timer)
{
    kf_transport *t = timer->data;

    if (!kf_keys_renew(t->keys))
        return;
    for (kf_link *l = t->in.links, *after; l; l = after) {
        after = l->after;
        if (!kf_keys_revoked(l))
            continue;
        if (l->state == KF_PEER)
            part(l);
        else
            kf_link_end(l);
    }
}

void kf_join_forget(kf_link *l)
{
    /* a worker connects again under a new incarnation */
    if (l->dial)
        l->dial->over = l->t->mesh;
    kf_packets_drop(l->t, l->tray);
    part(l);
}
