/* queue.c -- what waits for a connection of a mesh: at most so much, and of
 * notes that report a state only the newest.
 *
 * The outbox of each connection owns its letters.  Bodies are buffers, lent to
 * the transport while they are sent. */
#include "host.h"

#include <assert.h>

#define MOST_WAITING 4096 /* of all connections */
/* waiting packets for one peer, which may ask without end */
#define MOST_FOR_ONE 512
/* bytes for one peer, in addition to vectors and partial products */
#define MOST_SMALL 65536

size_t kf_mail_waits(const kf_connections *net)
{
    size_t n = 0;

    for (size_t i = 0; i < net->routes; i++)
        n += net->route[i].outbox.count;
    return n;
}

/* A packet that fails is lost: notes are repeated, and nodes repeat their
 * requests. */
void kf_mail_flush(kf_host *h)
{
    for (size_t i = 0; i < h->net.routes; i++)
        (void)kf_outbox_flush(&h->net.route[i].outbox, h->t,
                              h->net.route[i].peer);
}

/* True if the new packet replaces one that waits.  Of notes that report a state
 * the newest is enough.  Other notes replace only equal ones. */
static bool replaces(const kf_letter *l, const kf_letter *old)
{
    if (l->type != old->type)
        return false;
    return kf_note_kind_of((kf_note_type)l->type).state ||
           memcmp(l->head, old->head, sizeof l->head) == 0;
}

/* Returns the waiting letter that this one replaces, or NULL. */
static kf_letter *replaced_by(const kf_outbox *b, const kf_letter *l)
{
    for (size_t i = 0; i < b->count; i++)
        if (replaces(l, &b->letter[b->first + i]))
            return &b->letter[b->first + i];
    return NULL;
}

/* True if there is room for the letter, in place of `old` unless that is NULL.
 * A peer may ask without end, or take nothing.  The vector, and the coded and
 * decoded partial products of two iterates, are at most five times the largest
 * of vectors and products. */
static bool has_room(const kf_host *h, const kf_outbox *b, const kf_letter *l,
                     const kf_letter *old)
{
    uint64_t bytes = kf_outbox_bytes(b) + l->body.bytes;
    size_t others = b->count - (old != NULL);

    if (old)
        bytes -= old->body.bytes;
    return others < MOST_FOR_ONE && bytes <= 5 * h->largest + MOST_SMALL &&
           (old || kf_mail_waits(&h->net) < MOST_WAITING);
}

kofn_status kf_mail_post(kf_host *h, kf_route *r, const kf_letter *l)
{
    kf_outbox *b = &r->outbox;
    kf_letter *old;
    kofn_status st;

    if (b->count == 0) {
        TRY(kf_outbox_add(b, l));
        st = kf_outbox_flush(b, h->t, r->peer);
        return st == KOFN_NOMEM ? st : KOFN_OK;
    }
    old = replaced_by(b, l);
    if (!has_room(h, b, l, old)) {
        kf_give_back(&l->body);
        return KOFN_OK;
    }
    if (!old)
        return kf_outbox_add(b, l);
    kf_give_back(&old->body);
    *old = *l;
    return KOFN_OK;
}
