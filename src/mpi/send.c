/* send.c -- frames and bodies that are sent to other ranks.
 *
 * A send to a rank that is dead or stopped may never end, and cannot be
 * cancelled. Its memory is kept until it ends or the transport is closed.
 *
 * Owns frames until MPI has sent them. Bodies are lent, and released then. */
#include "peers.h"

#include "base/clock.h"
#include "base/lent.h"

static void sent(kf_mpi_op *op, size_t bytes, bool ok)
{
    outgoing *o = (outgoing *)op;
    transport *t = o->peer->t;

    (void)bytes;
    if (!ok)
        kf_mpi_lose(o->peer);
    if (--o->left)
        return;
    t->moving -= o->apart;
    t->returned = t->returned || o->apart;
    if (o->prev)
        o->prev->next = o->next;
    else
        t->outs = o->next;
    if (o->next)
        o->next->prev = o->prev;
    kf_give_back(&o->body);
    t->host->drop(o);
}

static frame frame_of(peer *q, kind k, size_t head_bytes, size_t body_bytes)
{
    frame f = {.magic = FRAME_MAGIC,
               .kind = (uint16_t)k,
               .head_bytes = (uint16_t)head_bytes,
               .body_bytes = body_bytes};

    for (int l = 0; l < CHANNELS; l++)
        f.taken[l] = q->channel[l].told = q->channel[l].taken;
    if (body_bytes > SHORT_BODY)
        f.body_tag =
            (uint32_t)TAG_BODY +
            q->bodies++ % (uint32_t)(q->t->world.top_tag - TAG_BODY + 1);
    return f;
}

kofn_status kf_mpi_post(channel *l, kind k, const void *head, size_t head_bytes,
                        const kofn_lent *body)
{
    peer *q = l->peer;
    transport *t = q->t;
    size_t body_bytes = body ? body->bytes : 0;
    bool apart = body_bytes > SHORT_BODY;
    size_t with = apart ? 0 : body_bytes;
    size_t bytes = sizeof(frame) + head_bytes + with;
    size_t parts = apart ? kf_mpi_parts(body_bytes) : 0;
    unsigned char *at;
    kofn_status st;
    frame f;
    outgoing *o;

    TRY(kf_mpi_reserve(&t->world, 1 + parts));
    o = t->host->room(1, sizeof *o + bytes);
    if (!o)
        return KOFN_NOMEM;
    f = frame_of(q, k, head_bytes, body_bytes);
    *o = (outgoing){
        .op.finish = sent, .next = t->outs, .peer = q, .left = 1 + parts};
    at = (unsigned char *)(o + 1);
    memcpy(at, &f, sizeof f);
    if (head_bytes)
        memcpy(at + sizeof f, head, head_bytes);
    if (with)
        memcpy(at + sizeof f + head_bytes, body->data, with);
    st = kf_mpi_send(&t->world, (kf_mpi_place){q->rank, l->tag}, at, bytes,
                     &o->op);
    if (st) {
        t->host->drop(o);
        kf_mpi_lose(q);
        return st;
    }
    if (t->outs)
        t->outs->prev = o;
    t->outs = o;
    q->spoken = t->polled;
    if (apart) {
        o->apart = true;
        t->moving++;
        t->moved = kf_clock();
        o->body = *body;
        if (kf_mpi_send(&t->world, (kf_mpi_place){q->rank, (int)f.body_tag},
                        body->data, body_bytes, &o->op))
            kf_mpi_lose(q); /* parts that were started may still be sent */
    } else {
        kf_give_back(body);
    }
    return KOFN_OK;
}

void kf_mpi_say(channel *l, kind k)
{
    transport *t = l->peer->t;
    const char *machine = t->world.machine;
    kofn_status st;

    if (l->peer->lost || (k == ALIVE && t->closed))
        return; /* the last frame of a channel is its goodbye */
    st = kf_mpi_post(l, k, machine, k == HELLO ? strlen(machine) : 0, NULL);
    if (st)
        kf_mpi_lose_by(l->peer, st);
}

void kf_mpi_say_last(peer *q, kind k)
{
    for (int l = 0; l < CHANNELS; l++)
        kf_mpi_say(&q->channel[l], k);
}
