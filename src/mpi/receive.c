/* receive.c -- input from other ranks: frames, and bodies that follow them.
 *
 * A receive from a dead peer cannot be cancelled. Its memory is kept until it
 * ends, or for the life of the process.
 *
 * Owns frames and bodies that are being received. A body is passed to the
 * caller when it is complete, once. */
#include <stdio.h>

#include "peers.h"

#include "base/clock.h"

#define LARGE_MAX 4 /* incomplete or unreported long bodies of a channel */

/* Reports complete packets, and sends the number of taken ones if it has grown
 * by a quarter of the window. Then listens if there is room. */
static void go_on(channel *l)
{
    kf_mpi_advance(l);
    if (l->taken - l->told >= WINDOW / 4)
        kf_mpi_say(&l->peer->channel[URGENT], ALIVE);
    kf_mpi_listen(l);
}

static void part_came(kf_mpi_op *op, size_t bytes, bool ok)
{
    arrival *a = (arrival *)op;
    channel *l = a->channel;
    peer *q = a->peer;
    transport *t = q->t;

    if (t->ended)
        return;
    a->missing--;
    t->moving -= !a->missing;
    a->received += bytes;
    q->heard = t->listened;
    t->moved = t->polled;
    if (!ok || (!a->missing && !a->drop && a->received != a->p.body_bytes)) {
        a->drop = true;
        kf_mpi_lose(q); /* this may free `a` */
    }
    go_on(l);
}

/* Allocates the body. Without memory it is dropped, like a body that is too
 * long. */
static void make_room(arrival *a)
{
    transport *t = a->peer->t;

    if (a->drop || !a->p.body_bytes)
        return;
    a->p.body = a->p.own = t->host->room(a->p.body_bytes, 1);
    if (!a->p.own) {
        a->drop = true;
        t->base.dropped++;
        t->failure = KOFN_NOMEM;
    }
}

static kofn_status receive_apart(channel *l, arrival *a, int tag)
{
    size_t parts = kf_mpi_parts(a->p.body_bytes);

    if (kf_mpi_reserve(&l->peer->t->world, parts)) { /* no part will come */
        a->drop = true;
        return KOFN_NOMEM;
    }
    a->op.finish = part_came;
    a->missing = parts;
    a->large = true;
    l->large++;
    a->peer->t->moving++;
    a->peer->t->moved = kf_clock();
    return kf_mpi_receive(&l->peer->t->world,
                          (kf_mpi_place){l->peer->rank, tag}, a->p.own,
                          a->p.body_bytes, &a->op);
}

static kofn_status packet_came(channel *l, const frame *f)
{
    peer *q = l->peer;
    const unsigned char *head = l->in.bytes + sizeof *f;
    arrival *a = kf_mpi_arrival(q, l, KOFN_PACKET);

    if (!a)
        return KOFN_NOMEM;
    a->p.head_bytes = f->head_bytes;
    memcpy(a->p.head, head, f->head_bytes);
    a->p.body_bytes = (size_t)f->body_bytes;
    a->drop = !q->live || f->body_bytes > q->t->base.body_max;
    if (q->live && a->drop)
        q->t->base.dropped++;
    make_room(a);
    if (f->body_tag)
        return receive_apart(l, a, (int)f->body_tag);
    if (a->p.own)
        memcpy(a->p.own, head + f->head_bytes, a->p.body_bytes);
    return KOFN_OK;
}

static bool well_formed(const frame *f, size_t bytes)
{
    size_t with = sizeof *f + f->head_bytes;

    if (bytes < sizeof *f || f->magic != FRAME_MAGIC || f->kind < HELLO ||
        f->kind > BROKEN || f->head_bytes > KOFN_HEAD_MAX || bytes < with)
        return false;
    if (f->body_tag)
        return f->kind == PACKET && bytes == with &&
               f->body_bytes > SHORT_BODY && f->body_bytes <= SIZE_MAX / 2;
    return f->body_bytes == bytes - with;
}

/* Updates the count of taken packets. The count in a frame may be older than
 * one from the other channel. */
static void acknowledge(channel *l, uint32_t by_now)
{
    if (by_now - l->acked <= l->sent - l->acked)
        l->acked = by_now;
}

/* Handles a well-formed frame: first its counts of taken packets, then its
 * contents. */
static kofn_status understand(channel *l, const frame *f)
{
    peer *q = l->peer;

    for (int i = 0; i < CHANNELS; i++)
        acknowledge(&q->channel[i], f->taken[i]);
    switch (f->kind) {
    case HELLO:
        snprintf(q->name, sizeof q->name, "rank %d on %.*s", q->rank,
                 (int)f->head_bytes, (const char *)(f + 1));
        return KOFN_OK;
    case PACKET:
        return packet_came(l, f);
    case FORGOTTEN:
    case BYE:
    case BROKEN:
        q->byes += f->kind != FORGOTTEN;
        q->bye = q->byes >= CHANNELS;
        q->t->broken = q->t->broken || f->kind == BROKEN;
        return kf_mpi_arrival(q, l, KOFN_WENT) ? KOFN_OK : KOFN_NOMEM;
    default:
        return KOFN_OK;
    }
}

/* Notifies a peer that was lost and is alive after all. Nothing is sent to
 * silent lost peers, since Open MPI would try to connect to the dead for ever.
 */
static void disown(peer *q)
{
    q->bye = true;
    for (int l = 0; l < CHANNELS; l++)
        kf_mpi_post(&q->channel[l], BROKEN, NULL, 0, NULL);
}

/* Called when MPI has received a frame of a channel, or failed. A malformed
 * frame is dropped and counted, and the channel listens again. */
static void frame_came(kf_mpi_op *op, size_t bytes, bool ok)
{
    channel *l = (channel *)op;
    peer *q = l->peer;
    transport *t = q->t;
    kofn_status st;

    l->listening = false;
    if (t->ended)
        return;
    if (!ok) {
        kf_mpi_lose(q);
        return;
    }
    q->heard = t->listened;
    if (q->lost && !q->bye)
        disown(q);
    if (!well_formed(&l->in.frame, bytes)) {
        t->base.dropped++;
    } else if ((st = understand(l, &l->in.frame))) {
        kf_mpi_lose_by(q, st);
        return;
    }
    go_on(l);
}

void kf_mpi_channel(channel *l, peer *q, int tag)
{
    *l = (channel){.op.finish = frame_came, .peer = q, .tag = tag};
}

void kf_mpi_listen(channel *l)
{
    peer *q = l->peer;
    kofn_status st;

    if (l->listening || q->lost || l->large >= LARGE_MAX || q->t->ended)
        return;
    st = kf_mpi_reserve(&q->t->world, 1);
    if (!st)
        st = kf_mpi_receive(&q->t->world, (kf_mpi_place){q->rank, l->tag},
                            l->in.bytes, FRAME_MAX, &l->op);
    if (st)
        kf_mpi_lose_by(q, st);
    l->listening = !st;
}

/* ---- reports ------------------------------------------------------------- */

bool kf_mpi_next(transport *t, kofn_packet *p)
{
    arrival *a;

    while ((a = kf_mpi_take(t))) {
        if (a->channel)
            go_on(a->channel);
        if (!a->peer->forgotten) {
            *p = a->p;
            t->host->drop(a);
            return true;
        }
        kf_mpi_discard(a);
    }
    return false;
}

void kf_mpi_hush(peer *q)
{
    q->forgotten = true;
    q->t->live -= q->live;
    q->live = false;
    for (int l = 0; l < CHANNELS; l++)
        go_on(&q->channel[l]);
}
