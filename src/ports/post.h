/* post.h -- queues of messages to and from a peer, and how bodies are packed.
 *
 * A letter can be taken back until it is sent. An inbox owns its messages until
 * they are taken. Only the owner of a message may free its contents, once. */
#ifndef KF_PORTS_POST_H
#define KF_PORTS_POST_H

#include <kofn/transport.h>

#include "base/lent.h"
#include "data/kernel.h"
#include "wire/outbox.h"
#include "wire/wire.h"

/* tasks that a worker accepts before it has done the first */
#define KF_WAITING 4096

/* Received messages that wait to be taken, in order. */
typedef struct kf_inbox {
    kf_msg *msg; /* a queue */
    size_t first, count, cap;
} kf_inbox;

/* Sends a packet after those that wait. Takes the body over, even on failure;
 * NULL: no body. Computes its checksum unless the head has one. KOFN_AGAIN: the
 * packet waits in the outbox. */
kofn_status kf_post(kf_outbox *b, kofn_transport *t, kofn_peer peer,
                    const kf_head *h, const kofn_lent *body);
/* Returns the checksum that a body is sent with: 0 if the transport guarantees
 * intact bodies. */
uint64_t kf_post_sum(const kofn_transport *t, uint64_t job, const void *body,
                     size_t n);
/* Fails with KOFN_FORMAT if a body that came over `t` does not match its
 * checksum. */
kofn_status kf_post_check(const kofn_transport *t, const kf_head *h,
                          const void *body, size_t n);
/* Takes back a task that still waits; false if it was sent. If its letter
 * carries an input, the next task with this input carries it. If there is no
 * such task, the input is not sent and *lost is its number. Otherwise *lost is
 * 0. */
bool kf_post_take_back(kf_outbox *b, uint32_t task, uint64_t *lost);
/* Frees what a message owns. */
void kf_post_drop(kf_msg *m);
/* Appends a message and takes over what it owns, even on failure. */
kofn_status kf_inbox_put(kf_inbox *b, kf_msg m);
/* Removes and returns message `i` of the queue; i < count. */
kf_msg kf_inbox_take(kf_inbox *b, size_t i);
void kf_inbox_free(kf_inbox *b);
/* Lends the buffer as a body. `done` drops the buffer; NULL: no body. */
kofn_lent kf_post_lend(kf_buffer *b);
/* Copies the rows of a matrix to *packed, without gaps, and advances *packed.
 * back: copies from *packed to the matrix. */
void kf_post_rows(const kofn_matrix *m, char **packed, bool back);
/* Copies strips [lo, hi) of each component of a block. A component beyond the
 * edge of its operand is zero. */
void kf_post_components(char **to, const kf_block *b, size_t lo, size_t hi);
/* Copies the strips of a task from its input, component after component; the
 * task sums over them. Strips beyond the last wrap around to the first. back:
 * copies into the input. */
void kf_post_strips(const kofn_matrix *in, const kf_msg *task,
                    size_t components, char *packed, bool back);
/* Replaces unprintable characters except newlines by '?', since the words come
 * from another machine. */
void kf_post_plain(char *words, size_t n);
/* Puts the packet's body into new memory as words, made printable by
 * kf_post_plain. *words is NULL if there is no body. Refuses more than KF_WORDS
 * bytes. */
kofn_status kf_post_take_words(kofn_transport *t, kofn_packet *k,
                               const kf_head *h, char **words);
/* Puts the packet's body into *into, which has its shape: adopts it if its
 * alignment allows, else copies or fetches it. The packet's body is released in
 * any case. */
kofn_status kf_post_take_body(kofn_transport *t, kofn_packet *k,
                              const kf_head *h, kf_buffer **into);

#endif
