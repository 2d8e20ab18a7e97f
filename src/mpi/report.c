/* report.c -- events in the order in which they are reported.
 *
 * A channel's queue holds the events that came in it, complete or not. A
 * complete one at the front is reported. The loss of a peer is reported after
 * everything that it has sent.
 *
 * Owns events until they are reported. Sends and receives nothing. */
#include "peers.h"

static void append(queue *q, arrival *a)
{
    a->next = NULL;
    if (q->last)
        q->last->next = a;
    else
        q->first = a;
    q->last = a;
}

static arrival *take_first(queue *q)
{
    arrival *a = q->first;

    if (a) {
        q->first = a->next;
        if (!q->first)
            q->last = NULL;
    }
    return a;
}

void kf_mpi_discard(arrival *a)
{
    transport *t = a->peer->t;

    t->host->drop(a->p.own);
    t->host->drop(a);
}

/* Counts a packet that has left the channel, so there is room for another. */
static void taken(channel *l, const arrival *a)
{
    l->large -= a->large;
    l->taken += a->p.what == KOFN_PACKET;
}

static void tell(arrival *a)
{
    peer *q = a->peer;
    bool urgent = a->channel == &q->channel[URGENT];

    if (a->p.what == KOFN_WENT) {
        q->live = false;
        q->t->live--;
        urgent = false; /* after everything that it has sent */
    }
    append(&q->t->ready[urgent ? URGENT : BULK], a);
}

/* True if the event is to be reported. The end of one channel is not; the end
 * of both is. */
static bool to_be_told(arrival *a)
{
    peer *q = a->peer;

    if (!q->live || a->drop)
        return false;
    if (a->p.what != KOFN_WENT)
        return true;
    a->channel->over = true;
    return q->channel[URGENT].over && q->channel[BULK].over;
}

void kf_mpi_advance(channel *l)
{
    while (l->queue.first && !l->queue.first->missing) {
        arrival *a = take_first(&l->queue);

        if (to_be_told(a)) {
            tell(a);
        } else {
            taken(l, a);
            kf_mpi_discard(a);
        }
    }
}

arrival *kf_mpi_arrival(peer *q, channel *l, kofn_arrival what)
{
    arrival *a = q->t->host->make(1, sizeof *a);

    if (!a)
        return NULL;
    a->peer = q;
    a->channel = l;
    a->p.what = what;
    a->p.peer = (kofn_peer)(q - q->t->peer);
    if (l)
        append(&l->queue, a);
    return a;
}

void kf_mpi_lose(peer *q)
{
    arrival *a;

    if (q->lost)
        return;
    q->lost = q->t->broken = true;
    if (!q->live)
        return;
    a = kf_mpi_arrival(q, NULL, KOFN_WENT);
    if (a) {
        tell(a);
    } else {
        q->t->failure = KOFN_NOMEM;
        q->live = false;
        q->t->live--;
    }
    for (int l = 0; l < CHANNELS; l++)
        kf_mpi_advance(&q->channel[l]);
}

void kf_mpi_lose_by(peer *q, kofn_status st)
{
    if (st == KOFN_NOMEM)
        q->t->failure = st;
    kf_mpi_lose(q);
}

kofn_status kf_mpi_came(peer *q)
{
    arrival *a = kf_mpi_arrival(q, NULL, KOFN_CAME);

    if (!a)
        return KOFN_NOMEM;
    append(&q->t->ready[URGENT], a);
    return KOFN_OK;
}

arrival *kf_mpi_take(transport *t)
{
    arrival *a = take_first(&t->ready[URGENT]);

    if (!a)
        a = take_first(&t->ready[BULK]);
    if (a && a->channel)
        taken(a->channel, a);
    return a;
}
