/* away.h -- data of the coordinator's port over a transport. Shared by away.c
 * (opening and closing), away_line.c (the connection to a worker), away_send.c,
 * away_receive.c and away_change.c.
 *
 * The port owns workers, principals and outboxes. Only the coordinator's thread
 * uses them. */
#ifndef KF_PORTS_AWAY_H
#define KF_PORTS_AWAY_H

#include "badge.h"
#include "post.h"
#include "strangers.h"

#include "base/bucket.h"

#define HELLO_TIME                                                             \
    (10 * KOFN_SECOND) /* timeout for the hello of a new peer                  \
                        */
/* limit of a request for a block, in bytes */
#define UNITS_AT_ONCE ((size_t)4 << 20)
#define NEEDS_MOST 16     /* outstanding requests of a worker */
#define SLICE_COST 65536  /* overhead of any slice, in bytes */
#define SLOWEST 1048576.0 /* bytes of a block per second */
#define CANCELLED_MOST 64 /* cancelled tasks without any reply */
#define REMEMBERED 1024   /* cancelled tasks kept; older ones are forgotten */
#define NOBODY UINT32_MAX

/* Limits of the updates that a worker has not confirmed. BEHIND_LEAST for each
 * of its operands are always allowed. More are allowed if they are smaller in
 * total than BEHIND_BYTES or than its blocks, but fewer than BEHIND_MOST. */
#define BEHIND_LEAST 4
#define BEHIND_BYTES ((size_t)4 << 20)
#define BEHIND_MOST 1024

/* Limits of workers that leave without having answered anything: a burst, and a
 * rate per second. */
#define FLEETING 64
#define SHORT_LIVED_RATE 8

/* A task that was sent to a worker. */
typedef struct pending_task {
    uint32_t product, task, row;
    size_t bytes;      /* size of its result */
    kf_buffer *result; /* buffer for it; NULL: the task was cancelled */
    kofn_time since;
} pending_task;

/* A principal is responsible for some of the workers. Its number in the core is
 * its index here plus 1. */
typedef struct principal {
    char *name;
    bool key;       /* it is a key, not a host */
    size_t workers; /* workers that are connected */
    kf_bucket short_lived;
} principal;

/* A slice of its block that a worker requests. */
typedef struct need {
    uint64_t id, section, lo, hi;
} need;

/* The outbox of a worker, and whether it moves. */
typedef struct line_state {
    kf_outbox outbox;
    kofn_time stuck; /* since when the outbox has not moved; 0: it moves */
    uint64_t behind; /* outbox.sent at that check */
} line_state;

/* The tasks of a worker. */
typedef struct worker_tasks {
    pending_task *pending;
    size_t count, cap;
    size_t cancelled;  /* cancelled tasks that it has not replied to */
    kofn_time heard;   /* its last answer, or the first open cancel */
    uint64_t known[2]; /* identifiers of the inputs that it keeps; 0: none */
    /* answers that may still come to messages sent before that, or to forgotten
     * tasks */
    uint64_t owes;
} worker_tasks;

/* The blocks of a worker. */
typedef struct worker_block {
    kf_block *to_store; /* next block, not sent; see port.stores */
    kf_block *block;    /* the block that it was sent */
    uint64_t block_id;
    /* digest of the block of this job that it came with; 0: none */
    uint64_t holds;
    need need[NEEDS_MOST]; /* a ring of `asked` requests */
    size_t need_first, asked;
    /* bytes of its block sent, plus SLICE_COST for each slice */
    uint64_t served;
    /* Time that it spent on its block without waiting for slices, less an
     * allowance for the block's size; see port.h. */
    kofn_time storing;
    /* when a slice, or the specification of the block, was last sent to it */
    kofn_time alone;
    bool stored;
    bool
        rebuilding; /* the blocks of other workers are still being sent to it */
    /* updates sent and updates confirmed, since it was given its blocks */
    uint64_t announced, done;
} worker_block;

typedef struct worker {
    kofn_peer peer;
    uint32_t principal; /* number of the principal; 0: none */
    bool gone, useful;  /* useful: it has answered a task */
    bool noticed;       /* it has announced that it will leave */
    bool dismissed;     /* a dismissal was sent, or it is gone */
    uint64_t process;   /* process number on its machine */
    kf_bucket strikes;
    kf_badge badge;
    bool staged; /* fault events may slow it and corrupt its results */
    line_state line;
    worker_tasks tasks;
    worker_block held;
} worker;

/* An input of a product, in the form in which it is sent. */
typedef struct input {
    const kf_buffer *of;
    uint32_t product;
    kf_buffer *packed; /* contiguous copy, or a reference to `of` */
    uint64_t id, sum;
} input;

/* Times of a port, by kf_clock. */
typedef struct port_clock {
    kofn_time start;  /* value of kf_clock when the port was opened */
    kofn_time missed; /* since when a started worker is missing; 0: none is */
    size_t never;     /* started workers that ended before they connected */
    kofn_time asked;  /* when that was last checked */
    /* listened: total time in which packets were awaited; turned: end of the
     * last wait */
    kofn_time listened, turned;
} port_clock;

/* The inputs that are sent, each in one form. */
typedef struct inputs {
    uint64_t next; /* identifier of the next */
    input *input;
    size_t count, cap;
    uint32_t oldest; /* lowest product that is not over */
} inputs;

/* Slices of blocks that workers wait for. */
typedef struct serving {
    size_t needs;     /* slices that workers wait for */
    uint32_t server;  /* worker that is served next */
    kofn_time served; /* when a slice was last sent */
    uint64_t placed;  /* bytes of all slices */
} serving;

/* The principals of the workers. */
typedef struct principals {
    principal *principal;
    size_t count, cap;
} principals;

/* Names as they were last asked for. */
typedef struct port_text {
    char name[256];  /* see kf_away_name */
    char title[300]; /* see kf_away_title */
} port_text;

typedef struct port {
    kofn_port base;
    kofn_transport *t;
    kofn_away_options opt;
    char *source;
    uint64_t job;
    worker **worker;
    size_t workers, worker_cap;
    uint32_t *of_peer; /* worker of each peer, plus 1; 0: none */
    size_t peers;
    kf_bucket short_lived;
    /* blocks that wait until all workers of the start are there */
    size_t stores;
    kf_inbox ready; /* messages for the job */
    size_t waiting; /* outboxes that were found full */
    uint64_t transport_dropped;
    bool shared;       /* the transport and its peers are those of a fleet */
    uint32_t compared; /* its results are counted for the next comparison */
    kf_doing doing;    /* what the job has said last; since 0: nothing yet */
    port_clock clock;
    inputs in;
    serving serve;
    principals who;
    kf_strangers crowd; /* times by clock.listened */
    port_text text;
} port;

/* ---- away.c -------------------------------------------------------------- */

/* Makes the port of kofn_port_away. job: the number of a job of a fleet. Then
 * peers stay when the port is closed. 0: there is no fleet. */
kofn_status kf_away_open(port **out, kofn_transport *t,
                         const kofn_away_options *opt, uint64_t job);

/* ---- away_line.c --------------------------------------------------------- */

kofn_time kf_away_now(kofn_port *base);
kofn_time kf_away_storing(kofn_port *base, uint32_t id);
/* Passes news for people to opt.news: workers that were refused, dropped or
 * evicted. */
void kf_away_news(port *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns the name of a worker: the one that it was started with, or else that
 * of its principal; KEY/NAME if it has a key of another name, since a worker
 * may claim any name. "" if it has none. Valid until the next call. */
const char *kf_away_name(port *p, uint32_t id);
/* Returns "worker 5 (node7)" for messages, or "worker 5" without a name. Valid
 * until the next call. */
const char *kf_away_title(port *p, uint32_t id);
/* Returns the worker of a peer, or NOBODY. */
uint32_t kf_away_worker(const port *p, kofn_peer peer);
/* kf_away_close_peer frees the memory of a worker that is gone. kf_away_lose
 * also reports the loss to the job. */
void kf_away_close_peer(port *p, worker *w);
kofn_status kf_away_lose(port *p, uint32_t id);
/* Returns the bucket of short-lived workers of a principal; 0: the bucket of
 * all workers without a principal. */
kf_bucket *kf_away_short_lived(port *p, uint32_t who);
/* Evicts a worker that is connected and answers nothing, and sends it the
 * reason. */
void kf_away_evict(port *p, uint32_t id);

/* Sends to a worker, after what waits in its outbox. Takes the body over, even
 * on failure. */
kofn_status kf_away_post(port *p, uint32_t id, const kf_head *h,
                         const kofn_lent *body);
/* Sends words to a peer that may not be a worker. */
void kf_away_say(port *p, kofn_peer peer, kf_wire type, uint32_t number,
                 const char *words);
kofn_status kf_away_flush(port *p); /* Sends what waits in outboxes. */
/* Gives the worker a new number and no block. */
kofn_status kf_away_renew(port *p, uint32_t id);
/* Counts an unexpected packet of the worker. A few are tolerated; after that
 * the worker is disconnected. */
kofn_status kf_away_strike(port *p, uint32_t id);
/* Closes the connection of a worker that sent damaged data. The worker will
 * connect again, and its outstanding tasks are reassigned. */
kofn_status kf_away_hang_up(port *p, uint32_t id);
/* Adds a worker with the peer and the properties of `like`. */
kofn_status kf_away_enrol(port *p, const worker *like);

/* ---- away_send.c --------------------------------------------------------- */

kofn_status kf_away_send(kofn_port *base, kf_msg *m);
/* Sends the blocks that have waited, once all workers of the start are
 * there. */
kofn_status kf_away_store(port *p);
pending_task *kf_away_pending(worker *w, uint32_t task);
/* Ends a task; returns the buffer for its result. */
kf_buffer *kf_away_end(worker *w, pending_task *e);
/* Queues a worker's request for a slice of its block. It is answered when there
 * is time. */
kofn_status kf_away_ask(port *p, uint32_t id, const kf_head *h);
/* Returns the next worker to be sent a slice, or NOBODY. Its outbox is
 * empty. */
uint32_t kf_away_next(const port *p);
kofn_status kf_away_serve(port *p, uint32_t id);

/* ---- away_change.c ------------------------------------------------------- */

/* Sends an update of a block. */
kofn_status kf_away_update(port *p, const kf_msg *m);
/* Sends strips of a block that is rebuilt from blocks of other workers. Without
 * a block it reports that all strips were sent. */
kofn_status kf_away_strips(port *p, const kf_msg *m);
/* Handles a worker's confirmation of an update. */
kofn_status kf_away_changed(port *p, uint32_t id, const kf_head *h);

/* ---- away_receive.c ------------------------------------------------------ */

kofn_status kf_away_receive(port *p, kofn_packet *k);
/* Answers a peer that asks for the workers, or drains one. */
void kf_away_tell(port *p, kofn_packet *k);
/* True if a long body is wanted, before there is memory for it. */
bool kf_away_wanted(void *port, kofn_peer peer, const void *head,
                    size_t head_bytes, size_t body_bytes);
/* Reports how much of an outstanding result has arrived. False if no result is
 * arriving. */
bool kf_away_coming(kofn_port *base, uint32_t id, kf_coming *c);
/* Disconnects peers that did not say hello within HELLO_TIME. */
void kf_away_send_away(port *p);

#endif
