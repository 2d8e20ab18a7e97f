/* outbox.c -- packets of a node of a mesh that wait until their connection
 * takes them.
 *
 * Owns them.  Bodies are buffers, lent to the transport while they are sent.
 */
#include "host.h"

#include <assert.h>

#define MOST_WAITING 4096
/* waiting packets for one peer, which may ask without end */
#define MOST_FOR_ONE 512
/* bytes for one peer, in addition to vectors and partial products */
#define MOST_SMALL 65536

static void sent(void *buffer)
{
    kf_buffer_drop(buffer);
}

/* Sends a packet if the transport takes it.  The body is kept until it is
 * sent. */
static kofn_status try_send(kf_host *h, const kf_waiting *w)
{
    kofn_status st;

    assert(w->bytes == 0 || w->body);
    if (w->body)
        kf_buffer_keep(w->body);
    st = h->t->send(h->t, w->peer, w->head, sizeof w->head,
                    &(kofn_lent){w->body ? w->body->m.data : NULL, w->bytes,
                                 w->body ? sent : NULL, w->body},
                    w->urgent);
    if (st == KOFN_AGAIN)
        kf_buffer_drop(w->body);
    return st;
}

static size_t waits_for(const kf_host *h, kofn_peer peer, size_t before)
{
    size_t n = 0;

    for (size_t i = 0; i < before; i++)
        n += h->net.waiting[i].peer == peer;
    return n;
}

void kf_outbox_drop(kf_host *h, kofn_peer peer)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->net.waits; i++)
        if (h->net.waiting[i].peer != peer)
            h->net.waiting[kept++] = h->net.waiting[i];
        else
            kf_buffer_drop(h->net.waiting[i].body);
    h->net.waits = kept;
}

/* Sends each peer's packets in order, until the transport takes no more. */
void kf_outbox_send(kf_host *h)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->net.waits; i++) {
        kf_waiting *w = &h->net.waiting[i];

        if (waits_for(h, w->peer, kept) || try_send(h, w) == KOFN_AGAIN)
            h->net.waiting[kept++] = *w;
        else
            kf_buffer_drop(w->body);
    }
    h->net.waits = kept;
}

/* True if the new packet replaces one that waits.  Vectors, epochs and
 * heartbeats report a state, so the newest is enough.  Other notes replace only
 * equal ones. */
static bool replaces(const kf_waiting *w, const kf_waiting *old)
{
    if (w->peer != old->peer || w->type != old->type)
        return false;
    return w->type == KF_NOTE_VECTOR || w->type == KF_NOTE_EPOCH ||
           w->type == KF_NOTE_BEAT ||
           memcmp(w->head, old->head, sizeof w->head) == 0;
}

/* Sets *out to the waiting packet that this one replaces, or to a free place.
 * NULL: too much waits for this peer, which may ask without end or take
 * nothing.  The vector, and the coded and decoded partial products of two
 * iterates, are at most five times the largest of vectors and products. */
static kofn_status find_place(kf_host *h, const kf_waiting *w, kf_waiting **out)
{
    size_t letters = 0, bytes = w->bytes;

    *out = NULL;
    for (size_t i = 0; i < h->net.waits; i++) {
        kf_waiting *x = &h->net.waiting[i];

        if (replaces(w, x)) {
            *out = x;
        } else if (x->peer == w->peer) {
            letters++;
            bytes += x->bytes;
        }
    }
    if (letters >= MOST_FOR_ONE || bytes > 5 * h->largest + MOST_SMALL)
        *out = NULL;
    else if (!*out && h->net.waits < MOST_WAITING) {
        TRY(kf_grow(&h->net.waiting, &h->net.wait_cap, h->net.waits,
                    sizeof *h->net.waiting));
        *out = &h->net.waiting[h->net.waits++];
        (*out)->body = NULL;
    }
    return KOFN_OK;
}

/* Sends a packet or lets it wait; takes over the body.  A packet that cannot be
 * sent is lost: notes are repeated, and nodes repeat their requests. */
kofn_status kf_outbox_post(kf_host *h, kf_waiting w)
{
    kf_waiting *place = NULL;
    kofn_status st =
        waits_for(h, w.peer, h->net.waits) ? KOFN_AGAIN : try_send(h, &w);

    if (st == KOFN_AGAIN)
        st = find_place(h, &w, &place);
    else
        st = KOFN_OK;
    kf_buffer_drop(place ? place->body : w.body);
    if (place)
        *place = w;
    return st;
}
