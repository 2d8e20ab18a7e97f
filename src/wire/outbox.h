/* outbox.h -- packets to one peer that wait until the transport takes them.
 *
 * An outbox belongs to its peer and owns its letters until they are sent.  Each
 * body is given back once. */
#ifndef KF_WIRE_OUTBOX_H
#define KF_WIRE_OUTBOX_H

#include <kofn/transport.h>

#include "base/base.h"
#include "base/lent.h"
#include "fields.h"

/* A packet that waits to be sent. */
typedef struct kf_letter {
    unsigned char head[KF_HEAD];
    kofn_lent body;
    unsigned type;  /* of the packet, for its owner */
    uint32_t task;  /* task that may be taken back */
    uint64_t input; /* number of the task's input */
    bool urgent;
} kf_letter;

/* Letters to one peer, in order of sending. */
typedef struct kf_outbox {
    kf_letter *letter; /* a queue of `count` from `first` */
    size_t first, count, cap;
    uint64_t sent; /* letters sent in total */
} kf_outbox;

/* Appends a letter, and takes its body over, even on failure. */
kofn_status kf_outbox_add(kf_outbox *b, const kf_letter *l);
/* Sends waiting letters until the transport is full, then returns KOFN_AGAIN.
 * A letter to a lost peer counts as sent. */
kofn_status kf_outbox_flush(kf_outbox *b, kofn_transport *t, kofn_peer peer);
/* Returns the bytes of bodies that wait. */
uint64_t kf_outbox_bytes(const kf_outbox *b);
void kf_outbox_empty(kf_outbox *b);
void kf_outbox_free(kf_outbox *b);

/* Makes room for one more at the end of a queue of `count` from `*first`. */
kofn_status kf_outbox_room(void *p, size_t *first, size_t count, size_t *cap,
                           size_t size);

#endif
