/* serve.h -- what a worker has in hand, shared by serve.c (its life), serve_line.c
 * (its way to the coordinator), serve_block.c (its block), serve_change.c (changes
 * of that), serve_work.c (the operands of its tasks) and serve_own.c (its own way to
 * multiply).
 *
 * All is the server's, on its one thread.  Only the serve_ files may read it. */
#ifndef KF_PORTS_SERVE_H
#define KF_PORTS_SERVE_H

#include "post.h"

#include "data/kernel.h"
#include "faults/faults.h"

#define INPUTS 2 /* that tasks may refer to */

typedef struct input {
    uint64_t id;
    kf_buffer *buffer;
} input;

/* A task, and where its answer goes; or a change of a block. */
typedef struct errand {
    kf_msg msg;
    bool cancelled;
    uint64_t updates; /* of the operand's block: until then; UPDATE: then */
} errand;

/* The block in the making, section by section. */
typedef struct making {
    kf_block_spec block_spec;
    bool whole,
        changed; /* changed: it is not what its block specification says any more */
    uint64_t done;              /* updates, of all operands */
    size_t section, got, asked; /* units of this section */
    size_t ahead;               /* pieces on their way   */
    kofn_time last;             /* piece, or asking      */
} making;

typedef struct server {
    kofn_transport *t;
    kofn_serve_options opt;
    kofn_peer head;
    bool connected, welcome;
    kofn_time idle; /* that it waits for messages           */
    kofn_time lost; /* since when there is no coordinator */
    uint64_t job, block_id;
    making block;
    input input[INPUTS];
    errand *errand; /* a queue */
    size_t first, errands, cap;
    kf_outbox outbox;
    kf_exposed exposed;
    kf_own own;
    uint64_t version; /* of the blocks: how often they have become others */
    kofn_faults faults;
    uint32_t updates, flips;   /* so far */
    kofn_time vanish;          /* by the fault model; KOFN_NEVER: it stays */
    kofn_time looked, leaving; /* leaving: since when; 0: staying */
    bool over;
    kofn_status end;
} server;

/* ---- serve_line.c -------------------------------------------------------- */

void kf_serve_finish(server *s, kofn_status st);
void kf_serve_news(server *s, const char *words);
/* Something that came was of no use: the message is there. */
void kf_serve_fail(server *s, kofn_status st);
/* The line is not to be trusted any more: begin anew on another. */
void kf_serve_hang_up(server *s);
/* Takes the body over. */
void kf_serve_post(server *s, const kf_head *h, const kofn_lent *body);
/* The same of a head with words for its body. */
void kf_serve_post_words(server *s, kf_head *h, const char *words);
void kf_serve_say(server *s, kf_wire type);
/* Go, and tell the coordinator why: the message is there. */
void kf_serve_refuse(server *s, kofn_status st);
/* Behind what there is already, but before tasks of later rounds. */
void kf_serve_queue_up(server *s, errand e);
/* Tasks are of the block that there was. */
void kf_serve_drop_tasks(server *s);
void kf_serve_drop_block(server *s);
/* The coordinator is gone: what was of it is dropped, but for a block that has not
 * changed. */
void kf_serve_disconnected(server *s);

/* ---- serve_work.c -------------------------------------------------------- */

void kf_serve_forget_inputs(server *s);
kf_msg kf_serve_task_of(const kf_head *h);
/* Is it a task of what is here, or brings a block that there is memory for? */
kofn_status kf_serve_can_do(const server *s, const kf_head *h, const kf_msg *m);
/* The same of one with so long a body. */
bool kf_serve_is_wanted(const server *s, const kf_head *h, size_t bytes);
/* Finds the operands of a task that can be done; what it found is the task's
 * even on failure. */
kofn_status kf_serve_operands(server *s, const kf_head *h, kofn_packet *k,
                              kf_msg *m);
/* Bytes of what waits and has brought its operands. */
size_t kf_serve_carried(const server *s);

/* ---- serve_own.c --------------------------------------------------------- */

/* Products as opt.multiply makes them, if there is one. */
void kf_serve_own_begin(server *s);

/* ---- serve_change.c ------------------------------------------------------ */

/* UPDATE, STRIPS or WHOLE: it is done in its turn. */
void kf_serve_change(server *s, const kf_head *h, kofn_packet *k);
/* May it be, with so long a body? */
bool kf_serve_may_change(const server *s, const kf_head *h, size_t bytes);
/* Do it: it is the first of the queue. */
void kf_serve_do_change(server *s);

/* ---- serve_block.c ------------------------------------------------------- */

void kf_serve_store(server *s, const kf_head *h, kofn_packet *k);
/* Is it the next piece, as it was asked for? */
bool kf_serve_waits_for(const server *s, const kf_head *h, size_t body_bytes);
void kf_serve_piece(server *s, const kf_head *h, kofn_packet *k);
/* Ask for what comes next of it, after pieces that were asked for may have been lost. */
void kf_serve_ask_again(server *s);
/* Have all pieces come that are asked for? */
bool kf_serve_has_pieces(const server *s);
/* The block can be worked with: the coordinator is told. */
void kf_serve_block_is_whole(server *s);

#endif
