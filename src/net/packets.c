/* packets.c -- packets in memory: those that came, until the owner takes them, and those
 * that it lends, until they are sent.
 *
 * Owns both, and the buffers of bodies; a body is received into the memory where it
 * stays.  The coming and going of peers is kept among what came, in order.  Called with
 * the lock.
 */
#include "inside.h"

#include <sys/mman.h>

#define SMALL ((size_t)64 << 10) /* buffers that are not kept */

/* ---- buffers ------------------------------------------------------------- */

kf_arrival *kf_packets_new(kf_transport *t, size_t bytes)
{
    const size_t front = (sizeof(kf_arrival) + 63) / 64 * 64;
    kf_arrival *in = NULL;

    for (int i = 0; bytes > SMALL && i < KF_SPARE && !in; i++)
        if (t->kept[i] && t->kept[i]->room >= bytes &&
            t->kept[i]->room / 2 <= bytes) {
            in = t->kept[i];
            t->kept[i] = NULL;
        }
    if (!in) {
        in = bytes <= SIZE_MAX - front ? kf_new(front + bytes, 1) : NULL;
        t->starved += !in;
        if (!in)
            return NULL;
        in->room = bytes;
    }
    *in = (kf_arrival){.room = in->room};
    in->body = bytes ? (unsigned char *)in + front : NULL;
    return in;
}

void kf_packets_free(kf_transport *t, kf_arrival *in)
{
    if (in && in->mapped)
        munmap(in->body, in->mapped);
    for (int i = 0; in && in->room > SMALL && i < KF_SPARE; i++)
        if (!t->kept[i]) {
            t->kept[i] = in;
            return;
        }
    kf_free(in);
}

/* ---- what has come ------------------------------------------------------- */

void kf_packets_append(kf_arrivals *line, kf_arrival *in)
{
    in->next = NULL;
    *line->last = in;
    line->last = &in->next;
}

static kf_arrival *take_first(kf_arrivals *line)
{
    kf_arrival *in = line->first;

    line->first = in->next;
    if (!line->first)
        line->last = &line->first;
    return in;
}

bool kf_packets_tell(kf_link *l, kofn_arrival what)
{
    kf_arrival *in = l->farewell;

    l->farewell = NULL;
    if (what == KOFN_CAME) {
        in = kf_packets_new(l->t, 0);
        l->farewell = in ? kf_packets_new(l->t, 0) : NULL;
        if (!l->farewell) {
            kf_free(in);
            return false;
        }
        in->from = l;
    }
    in->what = what;
    in->peer = l->number;
    kf_packets_append(&l->t->line, in);
    return true;
}

kf_arrival *kf_packets_next(kf_transport *t)
{
    if (t->urgent.first &&
        (!t->urgent.first->from || t->urgent.first->from->told))
        return take_first(&t->urgent);
    return t->line.first ? take_first(&t->line) : NULL;
}

/* ---- forgetting ---------------------------------------------------------- */

static void strip(kf_arrivals *line, kf_transport *t, const kf_link *from,
                  bool drop)
{
    kf_arrival **at = &line->first;

    while (*at) {
        kf_arrival *in = *at;

        if (in->from == from && drop) {
            *at = in->next;
            kf_packets_free(t, in);
            continue;
        }
        if (in->from == from)
            in->from = NULL;
        at = &in->next;
    }
    line->last = at;
}

void kf_packets_drop(kf_transport *t, const kf_link *from)
{
    strip(&t->line, t, from, true);
    strip(&t->urgent, t, from, true);
}

/* ---- what is sent -------------------------------------------------------- */

void kf_packets_sent(kf_transport *t, kf_channel *a)
{
    kf_departure *o = a->first, **list;

    a->first = o->next;
    if (!a->first)
        a->last = &a->first;
    a->queued -= o->body.bytes + KF_COST;
    list = o->share ? &t->lingering : &t->finished;
    o->next = *list;
    *list = o;
    t->room |= t->full;
}

void kf_packets_clear(kf_link *l)
{
    for (int i = 0; i < KF_CHANNELS; i++) {
        kf_channel *a = &l->channel[i];

        while (a->first)
            kf_packets_sent(l->t, a);
        kf_packets_free(l->t, a->coming);
        a->coming = NULL;
        l->t->asking -= a->asks;
        a->asks = false;
    }
    strip(&l->t->line, l->t, l, false);
    strip(&l->t->urgent, l->t, l, false);
    l->sending = -1;
    if (l->with && l->frame_at == 0)
        l->frame_bytes = 0; /* the descriptor has not been sent */
    l->with = NULL;
}
