/* post.h -- what waits to go to a peer or has come from one, and how it is packed.
 *
 * An outbox is its peer's and owns the letters in it until they were sent or
 * taken back; an inbox owns its messages until they are taken.  Only whoever owns
 * a message may drop what is in it, once. */
#ifndef KF_PORTS_POST_H
#define KF_PORTS_POST_H

#include <kofn/transport.h>

#include "base/lent.h"
#include "data/kernel.h"
#include "wire/wire.h"

#define KF_WAITING 4096 /* tasks that a worker takes before it does the first */

/* On its way. */
typedef struct kf_letter {
    unsigned char head[KF_HEAD];
    kofn_lent body;
    uint32_t task;  /* that may be taken back ... */
    uint64_t input; /* ... and its input */
    bool work;
} kf_letter;

/* Letters to one peer, in order. */
typedef struct kf_outbox {
    kf_letter *letter;
    size_t first, count, cap;
    uint64_t sent; /* letters, ever */
} kf_outbox;

/* Messages that have come and wait to be taken, in order. */
typedef struct kf_inbox {
    kf_msg *msg; /* a queue */
    size_t first, count, cap;
} kf_inbox;

/* Send what waits, as far as the way takes it: KOFN_AGAIN when it is full.
 * What cannot reach anybody counts as sent. */
kofn_status kf_post_flush(kf_outbox *b, kofn_transport *t, kofn_peer peer);
/* Behind what waits; takes the body over, even on failure; NULL: none.  Its checksum
 * is found here unless the head has it.  KOFN_AGAIN: it waits. */
kofn_status kf_post(kf_outbox *b, kofn_transport *t, kofn_peer peer,
                    const kf_head *h, const kofn_lent *body);
/* The checksum that a body is sent with: 0 where the transport keeps bodies whole. */
uint64_t kf_post_sum(const kofn_transport *t, uint64_t job, const void *body,
                     size_t n);
/* KOFN_FORMAT when a body that came over `t` is not as it was sent. */
kofn_status kf_post_check(const kofn_transport *t, const kf_head *h,
                          const void *body, size_t n);
/* Take back a task that still waits; false when it cannot be.  An input that it
 * brings goes with the next task that counts on it; where none does it is not
 * sent, and *lost is its number (else 0). */
bool kf_post_take_back(kf_outbox *b, uint32_t task, uint64_t *lost);
void kf_post_empty(kf_outbox *b);
void kf_post_free(kf_outbox *b);

/* Room for one more behind what waits in a queue of `count` from `*first`. */
kofn_status kf_post_room(void *p, size_t *first, size_t count, size_t *cap,
                         size_t size);
/* What a message owns. */
void kf_post_drop(kf_msg *m);
/* Behind what waits; takes what the message owns over, even on failure. */
kofn_status kf_inbox_put(kf_inbox *b, kf_msg m);
/* The i-th of those that wait, which is there. */
kf_msg kf_inbox_take(kf_inbox *b, size_t i);
void kf_inbox_free(kf_inbox *b);
/* The buffer as a body, dropped when that is given back; NULL: no body. */
kofn_lent kf_post_lend(kf_buffer *b);
/* Rows of a matrix, one behind the other, to *packed, which goes on; or back. */
void kf_post_rows(const kofn_matrix *m, char **packed, bool back);
/* Strips [lo, hi) of each lane of a block; a lane beyond the edge of its operand is
 * zero. */
void kf_post_lanes(char **to, const kf_block *b, size_t lo, size_t hi);
/* The strips of a task of its input, which is summed over, lane after lane; strips
 * beyond the last are the first ones.  From the input, or back into it. */
void kf_post_strips(const kofn_matrix *in, const kf_msg *task, size_t lanes,
                    char *packed, bool back);
/* Replaces what cannot be printed by '?', but for newlines: others have said it. */
void kf_post_plain(char *words, size_t n);
/* The packet's body as words, in new memory: what cannot be printed is '?', newlines
 * stay.  NULL: there are none.  More than KF_WORDS are refused. */
kofn_status kf_post_take_words(kofn_transport *t, kofn_packet *k,
                               const kf_head *h, char **words);
/* The packet's body in *into, which has its shape: adopted where it lies well,
 * else copied or fetched.  The packet's body is given back in any case. */
kofn_status kf_post_take_body(kofn_transport *t, kofn_packet *k,
                              const kf_head *h, kf_buffer **into);

#endif
