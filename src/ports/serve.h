/* serve.h -- data of a worker. Shared by serve.c (the loop), serve_jobs.c
 * (which jobs it serves), serve_line.c (the connection to the coordinator),
 * serve_block.c (the block), serve_change.c (changes of the block),
 * serve_work.c (operands of tasks) and serve_user.c (multiplication by the
 * program's own function).
 *
 * The visit owns everything, on one thread. Only the serve_ files may read it.
 */
#ifndef KF_PORTS_SERVE_H
#define KF_PORTS_SERVE_H

#include "post.h"

#include "data/kernel.h"
#include "faults/faults.h"

#define INPUTS 2 /* inputs kept, which tasks may refer to */

typedef struct input {
    uint64_t id;
    kf_buffer *buffer;
} input;

/* A task and the buffer for its result, or a change of a block. */
typedef struct pending_task {
    kf_msg msg;
    bool cancelled;
    /* Updates of the operand's block: for a task, those that must be done
     * before it; for an UPDATE, its own number. */
    uint64_t updates;
} pending_task;

/* The block, received section by section. */
typedef struct making {
    kf_block_spec block_spec;
    bool whole,
        changed;   /* changed: it no longer matches its block specification */
    uint64_t done; /* updates done, of all operands */
    size_t section, got, asked; /* got, asked: units of this section */
    size_t ahead;               /* requested slices that have not arrived */
    kofn_time last; /* when the last slice arrived or was requested */
} making;

/* The connection of a worker to its coordinator, and the jobs that it serves
 * there. */
typedef struct visit {
    kofn_transport *t;
    kofn_serve_options opt;
    kofn_peer head;
    bool connected;
    bool shared;    /* the coordinator has invited this worker to jobs */
    kofn_time idle; /* next time to wait for messages if none come */
    kofn_time lost; /* since when there is no coordinator */
    kf_outbox outbox;
    kofn_faults faults;
    kofn_time vanish; /* when the fault model ends it; KOFN_NEVER: never */
    kofn_time looked, leaving; /* leaving: since when; 0: it stays */
    kf_exposed emulate;        /* how a server begins */
    struct server **server;    /* the one that was used last comes first */
    size_t servers, cap;
    bool drained; /* the coordinator lets it leave */
    kofn_serve_counts counts;
    bool over;
    kofn_status end;
} visit;

/* What a worker holds for one job. */
typedef struct server {
    visit *w;
    bool welcome;
    bool kept; /* the job is closed, and its block waits for another job of this
                * number */
    uint64_t job, block_id;
    making block;
    input input[INPUTS];
    pending_task *pending; /* a queue */
    size_t first, pending_count, cap;
    kf_exposed exposed;
    kf_user_multiply user;
    uint64_t version;        /* number of changes of the blocks */
    uint32_t updates, flips; /* counts of fault events */
    double weight;           /* share of the computing time; above 0 */
    double computed;         /* seconds of computing, divided by `weight` */
    bool over;
    kofn_status end;
} server;

/* ---- serve_jobs.c -------------------------------------------------------- */

/* Returns what is held for this job, or NULL. */
server *kf_serve_of(const visit *w, uint64_t job);
/* Makes the job the one that was used last, and begins it if it is new. Without
 * invitations there is one job, and others are dropped. NULL: there are too
 * many; or there is no memory, and the worker ends. */
server *kf_serve_begin(visit *w, uint64_t job);
/* Greets the coordinator for this job, or for none if s is NULL. */
void kf_serve_hello(visit *w, const server *s);
/* Handles an invitation to a job. */
void kf_serve_invited(visit *w, const kf_head *h);
/* Handles the end of a job of several. Its block may stay for another job of
 * this number. */
void kf_serve_release(server *s, const kf_head *h);
/* Frees the blocks that stay for later jobs. */
void kf_serve_forget_kept(visit *w);
/* Frees the jobs that are over, which may end the worker. */
void kf_serve_reap(visit *w);
/* Frees server i. */
void kf_serve_drop(visit *w, size_t i);

/* ---- serve_line.c -------------------------------------------------------- */

/* Ends what is held for this job, with that result. */
void kf_serve_finish(server *s, kofn_status st);
/* Ends the worker. */
void kf_serve_end(visit *w, kofn_status st);
void kf_serve_news(visit *w, const char *words);
/* Reports a failure that a received message caused; kofn_errmsg() has the
 * text. */
void kf_serve_fail(server *s, kofn_status st);
/* Closes a connection that sent damaged data and starts over on a new one. */
void kf_serve_hang_up(visit *w);
/* Sends a packet. Takes the body over. */
void kf_serve_post(server *s, const kf_head *h, const kofn_lent *body);
/* Sends a head with words as its body. */
void kf_serve_post_words(server *s, kf_head *h, const char *words);
void kf_serve_say(server *s, kf_wire type);
/* Leaves and sends the coordinator the reason, which is kofn_errmsg(). */
void kf_serve_refuse(server *s, kofn_status st);
/* Queues a task after those of its round and of earlier rounds. */
void kf_serve_queue_up(server *s, pending_task e);
/* Drops all tasks, which belong to the former block. */
void kf_serve_drop_tasks(server *s);
void kf_serve_drop_block(server *s);
/* Handles the loss of the coordinator: drops all of its data, except blocks
 * that have not changed. */
void kf_serve_disconnected(visit *w);

/* ---- serve_work.c -------------------------------------------------------- */

void kf_serve_forget_inputs(server *s);
kf_msg kf_serve_task_of(const kf_head *h);
/* Checks that a task can be done: it is for the block that is held, or brings a
 * block that fits into memory. */
kofn_status kf_serve_can_do(const server *s, const kf_head *h, const kf_msg *m);
/* True if the task can be done and its body has the right length. */
bool kf_serve_is_wanted(const server *s, const kf_head *h, size_t bytes);
/* Finds the operands of a task that can be done. Operands that were found
 * belong to the task, even on failure. */
kofn_status kf_serve_operands(server *s, const kf_head *h, kofn_packet *k,
                              kf_msg *m);
/* Returns the limit of the memory for this job: that of the worker less what
 * other jobs hold, at least 1; 0: no limit. */
size_t kf_serve_memory(const server *s);
/* Returns the bytes of operands that came with waiting tasks. */
size_t kf_serve_carried(const server *s);

/* ---- serve_user.c -------------------------------------------------------- */

/* Uses opt.multiply for products, if there is one. */
void kf_serve_own_begin(server *s);

/* ---- serve_change.c ------------------------------------------------------ */

/* Queues an UPDATE, STRIPS or WHOLE, to be done in its turn. */
void kf_serve_change(server *s, const kf_head *h, kofn_packet *k);
/* True if the change is valid and its body has the right length. */
bool kf_serve_may_change(const server *s, const kf_head *h, size_t bytes);
/* Does the change that is first in the queue. */
void kf_serve_do_change(server *s);

/* ---- serve_block.c ------------------------------------------------------- */

void kf_serve_store(server *s, const kf_head *h, kofn_packet *k);
/* True if this is the next slice, as it was requested. */
bool kf_serve_waits_for(const server *s, const kf_head *h, size_t body_bytes);
void kf_serve_slice(server *s, const kf_head *h, kofn_packet *k);
/* Requests the missing slices again, since requested ones may have been
 * lost. */
void kf_serve_ask_again(server *s);
/* True if no requested slice is missing. */
bool kf_serve_has_slices(const server *s);
/* Marks the block as complete and reports that to the coordinator. */
void kf_serve_block_is_whole(server *s);

#endif
