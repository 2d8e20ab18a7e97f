/* outbox.c -- packets to one peer that wait until the transport takes them.
 *
 * A letter owns its bytes and holds its body until it is sent. */
#include "wire/outbox.h"

#include <assert.h>

kofn_status kf_outbox_room(void *p, size_t *first, size_t count, size_t *cap,
                           size_t size)
{
    char *queue;

    assert(*first + count <= *cap);
    if (*first + count == *cap && *first > *cap / 2) {
        memcpy(&queue, p, sizeof queue);
        memmove(queue, queue + *first * size, count * size);
        *first = 0;
    }
    return kf_grow(p, cap, *first + count, size);
}

kofn_status kf_outbox_add(kf_outbox *b, const kf_letter *l)
{
    if (kf_outbox_room(&b->letter, &b->first, b->count, &b->cap,
                       sizeof *b->letter)) {
        kf_give_back(&l->body);
        return KOFN_NOMEM;
    }
    b->letter[b->first + b->count++] = *l;
    return KOFN_OK;
}

kofn_status kf_outbox_flush(kf_outbox *b, kofn_transport *t, kofn_peer peer)
{
    while (b->count > 0) {
        kf_letter *l = &b->letter[b->first];
        kofn_status st =
            t->send(t, peer, l->head, sizeof l->head, &l->body, l->urgent);

        if (st == KOFN_AGAIN)
            return st;
        b->first++;
        b->count--;
        b->sent++;
        if (st == KOFN_NOMEM)
            return st;
    }
    b->first = 0;
    return KOFN_OK;
}

uint64_t kf_outbox_bytes(const kf_outbox *b)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < b->count; i++)
        bytes += b->letter[b->first + i].body.bytes;
    return bytes;
}

void kf_outbox_empty(kf_outbox *b)
{
    for (size_t i = 0; i < b->count; i++)
        kf_give_back(&b->letter[b->first + i].body);
    b->first = b->count = 0;
}

void kf_outbox_free(kf_outbox *b)
{
    kf_outbox_empty(b);
    kf_free(b->letter);
    *b = (kf_outbox){0};
}
