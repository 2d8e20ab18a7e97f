/* away.h -- what the coordinator's port over a transport has in hand, shared
 * by away.c (its life), away_line.c (the way to a worker), away_send.c,
 * away_receive.c and away_change.c.
 *
 * Workers, principals and outboxes are the port's.  All is used on the
 * coordinator's thread. */
#ifndef KF_PORTS_AWAY_H
#define KF_PORTS_AWAY_H

#include "post.h"

#define HELLO_TIME (10 * KOFN_SECOND)   /* to say who one is           */
#define UNITS_AT_ONCE ((size_t)4 << 20) /* bytes of a block asked for  */
#define NEEDS_MOST 16                   /* pieces asked for at once    */
#define PIECE_COST 65536                /* of any piece, in bytes      */
#define SLOWEST 1048576.0               /* bytes of a block a second   */
#define CANCELLED_MOST 64               /* tasks left without a word   */
#define REMEMBERED 1024                 /* of these; others never were */
#define NOBODY UINT32_MAX

/* Updates that a worker has not done: as many as this of each of its operands,
 * and more while they are less than this or than its blocks, but no more than the
 * last. */
#define BEHIND_LEAST 4
#define BEHIND_BYTES ((size_t)4 << 20)
#define BEHIND_MOST 1024

/* Workers that came and went and answered nothing: so many are borne at once,
 * and so many a second. */
#define FLEETING 64
#define FLEETING_RATE 8

/* A bucket of what is borne for a while: it runs out by itself. */
typedef struct kf_bucket {
    double level;
    kofn_time since;
} kf_bucket;

/* Asked of a worker. */
typedef struct errand {
    uint32_t product, task, row;
    size_t bytes;      /* of its result                           */
    kf_buffer *result; /* the room for it; NULL: it was cancelled */
    kofn_time since;
} errand;

/* A principal answers for some of the workers; its number in the core is one
 * more. */
typedef struct principal {
    char *name;
    size_t workers; /* that are there */
    kf_bucket short_lived;
} principal;

/* A piece of its block that a worker asks for. */
typedef struct need {
    uint64_t id, section, lo, hi;
} need;

typedef struct worker {
    kofn_peer peer;
    uint32_t principal; /* 0: it answers for itself */
    bool gone, useful;  /* useful: it has answered a task */
    bool noticed;       /* it will go                     */
    bool dismissed;     /* a dismissal has been sent, or it is gone */
    uint64_t process;   /* its number on its machine */
    kf_outbox outbox;
    kofn_time stuck; /* since when the outbox does not move; 0: it does */
    uint64_t behind; /* letters that were sent then                     */
    errand *errand;
    size_t errands, errand_cap;
    size_t cancelled; /* tasks that it was told to leave, and has not said so */
    kofn_time heard;  /* its last answer, or the first of these               */
    uint64_t known[2];  /* inputs that it has */
    kf_block *to_store; /* a block that waits, see port.stores */
    kf_block *block;    /* that it was sent                    */
    uint64_t block_id;
    uint64_t holds;        /* the block of this job that it came with, or 0 */
    need need[NEEDS_MOST]; /* a ring */
    size_t need_first, asked;
    uint64_t served;   /* bytes of its block, with what each piece costs */
    kofn_time storing; /* that it was at its block without us; see port.h ... */
    kofn_time alone;   /* ... before it had all that it asked for, at last    */
    kf_bucket strikes;
    bool stored;
    bool staged;         /* it may be slowed and spoiled                    */
    bool healing;        /* what others hold is still being sent            */
    uint64_t told, done; /* updates, since it was given its blocks          */
    uint64_t
        owes; /* answers to what it was sent before that, or is forgotten */
} worker;

/* An input of a product, as it is sent. */
typedef struct input {
    const kf_buffer *of;
    uint32_t product;
    kf_buffer *packed; /* contiguous */
    uint64_t id, sum;
} input;

typedef struct stranger {
    kofn_peer peer;
    bool refused;
    kofn_time since; /* of port.listened */
} stranger;

typedef struct port {
    kofn_port base;
    kofn_transport *t;
    kofn_away_options opt;
    char *source;
    kofn_time start;  /* of kf_clock */
    kofn_time missed; /* since when somebody who was started is, or 0 */
    kofn_time asked;  /* ... and when it was looked at */
    kofn_time listened, turned; /* so long, for packets; and last when */
    uint64_t job, next_input;
    worker **worker;
    size_t workers, worker_cap;
    principal *principal;
    size_t principals, principal_cap;
    uint32_t *of_peer; /* worker of each peer, from 1; 0: nobody */
    size_t peers;
    stranger *stranger;
    size_t strangers, stranger_cap;
    input *input;
    size_t inputs, input_cap;
    uint32_t oldest;  /* product that is not over     */
    size_t needs;     /* pieces that workers wait for */
    uint32_t server;  /* who is served next           */
    kofn_time served; /* when somebody was            */
    kf_bucket short_lived;
    size_t stores;  /* blocks that wait until it is known who holds which */
    kf_inbox ready; /* to be told */
    size_t waiting; /* outboxes that were found full */
    uint64_t transport_dropped;
} port;

/* ---- away_line.c --------------------------------------------------------- */

kofn_time kf_away_now(kofn_port *base);
kofn_time kf_away_storing(kofn_port *base, uint32_t id);
/* For people: who was turned away or dropped. */
void kf_away_news(port *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The worker that a peer is, or NOBODY. */
uint32_t kf_away_worker(const port *p, kofn_peer peer);
/* Bury a worker that is not there any more: its memory; and tell the job that
 * it is lost. */
void kf_away_close_peer(port *p, worker *w);
kofn_status kf_away_lose(port *p, uint32_t id);
/* How full it is, when `rate` a second run out. */
double kf_away_level(port *p, kf_bucket *b, double rate);
/* Of short_lived workers of this principal, or of those who have none. */
kf_bucket *kf_away_fleeting(port *p, uint32_t who);
/* The worker is there and answers nothing: it is told that it is given up. */
void kf_away_evict(port *p, uint32_t id);

/* To a worker, behind what waits; takes the body over, even on failure. */
kofn_status kf_away_post(port *p, uint32_t id, const kf_head *h,
                         const kofn_lent *body);
/* Words for a peer who may not be a worker. */
void kf_away_say(port *p, kofn_peer peer, kf_wire type, uint32_t number,
                 const char *words);
kofn_status kf_away_flush(port *p); /* what waits in outboxes */
/* The worker has another number from now on, and no block. */
kofn_status kf_away_renew(port *p, uint32_t id);
/* The worker sent what nobody asked for, which is borne now and then. */
kofn_status kf_away_strike(port *p, uint32_t id);
/* Hangs up on a worker whose line is not to be trusted any more.  It will come
 * back on another, and what it owed is asked for again. */
kofn_status kf_away_hang_up(port *p, uint32_t id);
/* A worker like this one is there from now on. */
kofn_status kf_away_enrol(port *p, const worker *like);

/* ---- away_send.c --------------------------------------------------------- */

kofn_status kf_away_send(kofn_port *base, kf_msg *m);
/* Blocks that have waited, once all are there who are to be at the start. */
kofn_status kf_away_store(port *p);
errand *kf_away_errand(worker *w, uint32_t task);
kf_buffer *kf_away_end(worker *w, errand *e); /* the room for its result */
/* A worker asks for a piece of its block; it is sent when there is time. */
kofn_status kf_away_ask(port *p, uint32_t id, const kf_head *h);
/* The worker to be served next that has room on the way; NOBODY: there is
 * none. */
uint32_t kf_away_next(const port *p);
kofn_status kf_away_serve(port *p, uint32_t id);

/* ---- away_change.c ------------------------------------------------------- */

/* Sends a change. */
kofn_status kf_away_update(port *p, const kf_msg *m);
/* Sends strips of a block that is being healed, of what others hold; or, without
 * a block, that all have come. */
kofn_status kf_away_strips(port *p, const kf_msg *m);
/* A worker has done updates. */
kofn_status kf_away_changed(port *p, uint32_t id, const kf_head *h);

/* ---- away_receive.c ------------------------------------------------------ */

kofn_status kf_away_receive(port *p, kofn_packet *k);
/* Whether a long body is, before there is memory for it. */
bool kf_away_wanted(void *port, kofn_peer peer, const void *head,
                    size_t head_bytes, size_t body_bytes);
/* The part of a result that is waited for and is here. */
bool kf_away_coming(kofn_port *base, uint32_t id, kf_coming *c);
/* Sends away peers that connect and do not say who they are. */
void kf_away_send_away(port *p);

#endif
