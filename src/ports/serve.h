/* serve.h -- what a worker has in hand, shared by serve.c (its life) and
 * serve_block.c (its block). */
#ifndef KF_PORTS_SERVE_H
#define KF_PORTS_SERVE_H

#include "post.h"
#include "weather/weather.h"

#define INPUTS 2 /* that tasks may refer to */

typedef struct input {
    uint64_t id;
    kofn_parcel *parcel;
} input;

/* A task, and where its answer goes. */
typedef struct errand {
    kofn_msg msg;
    bool cancelled;
} errand;

/* The block in the making, section by section. */
typedef struct making {
    kf_recipe recipe;
    bool whole;
    size_t section, got, asked; /* units of this section */
    size_t ahead;               /* pieces on their way   */
    kofn_time last;             /* piece, or asking      */
} making;

typedef struct server {
    kofn_transport *t;
    kofn_serve_options opt;
    kofn_peer head;
    bool connected, welcome;
    kofn_time greeted; /* said hello last         */
    kofn_time lost;    /* since when there is no coordinator */
    uint64_t job, block_id;
    making block;
    input input[INPUTS];
    errand *errand; /* a queue */
    size_t first, errands, cap;
    kf_outbox outbox;
    kf_exposed exposed;
    kofn_weather fair;
    kofn_time vanish;          /* by the weather; KOFN_NEVER: it stays */
    kofn_time looked, leaving; /* leaving: since when; 0: staying */
    bool over;
    kofn_status end;
} server;

/* ---- serve.c ------------------------------------------------------------- */

void kf_serve_finish(server *s, kofn_status st);
void kf_serve_news(server *s, const char *words);
/* Something that came was of no use: the message is there. */
void kf_serve_fail(server *s, kofn_status st);
/* The line is not to be trusted any more: begin anew on another. */
void kf_serve_hang_up(server *s);
/* Takes the body over. */
void kf_serve_post(server *s, const kf_head *h, const void *body, size_t bytes,
                   void (*done)(void *), void *ud);
void kf_serve_say(server *s, kf_wire type);
/* Go, and tell the coordinator why: the message is there. */
void kf_serve_refuse(server *s, kofn_status st);
/* Tasks are of the block that there was. */
void kf_serve_drop_tasks(server *s);

/* ---- serve_block.c ------------------------------------------------------- */

void kf_serve_store(server *s, const kf_head *h, kofn_packet *k);
/* Is it the next piece, as it was asked for? */
bool kf_serve_waits_for(const server *s, const kf_head *h, size_t body_bytes);
void kf_serve_piece(server *s, const kf_head *h, kofn_packet *k);
/* Ask for what comes next of it. */
void kf_serve_ask(server *s);
void kf_serve_drop_block(server *s);

#endif
