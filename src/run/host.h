/* host.h -- the body of a node of a mesh: its vector, its block, the pieces
 * of others, and the packets they come in. */
#ifndef KF_RUN_HOST_H
#define KF_RUN_HOST_H

#include "note.h"

/* One piece of a group; seat KOFN_NO_SEAT: its result. */
typedef struct kf_piece {
    uint32_t seat;
    kofn_parcel *data;
} kf_piece;

typedef struct kf_pieces {
    kf_piece *piece;
    size_t count, cap;
} kf_pieces;

/* Whom a transport's peer turned out to be; 0: it has not said yet. */
typedef struct kf_route {
    kofn_life life;
    bool here;
} kf_route;

/* A packet for which the way was full. */
typedef struct kf_waiting {
    kofn_peer peer;
    unsigned char head[KF_NOTE_HEAD];
    kofn_parcel *body; /* or NULL */
    size_t bytes;
    bool urgent;
} kf_waiting;

typedef struct kf_host {
    kofn_transport *t;
    const kofn_plan *plan;
    kofn_iteration it;
    kofn_peer_options opt;
    uint64_t job;
    kofn_time (*clock)(void *ud);
    void *clock_ud;

    kofn_node *node;
    kf_resident resident;
    kf_code *code; /* what the node encodes with */
    kofn_block *block;
    uint32_t seat; /* whose it is */
    size_t groups;

    kofn_mark at;                 /* of v            */
    kofn_parcel *v, *next;        /* rows x 1        */
    double scalar[KOFN_SCALARS];
    kf_pieces *now, *before;      /* by group        */
    kofn_mark before_at;
    kf_scratch scratch;

    kf_route *route; /* by peer */
    size_t routes, route_cap;
    kf_waiting *waiting;
    size_t waits, wait_cap;
    kofn_time greeted;
    uint64_t foreign;   /* packets that were not notes of this job */
    kofn_status status; /* what went wrong while it was computing  */
    kofn_task task;     /* in hand                                 */
} kf_host;

kofn_status kf_host_new(kf_host **out, kofn_transport *t,
                        const kofn_plan *plan, const kofn_matrix *dense,
                        const kofn_sparse *sparse, const kofn_iteration *it,
                        const kofn_peer_options *opt, const kofn_matrix *v,
                        kofn_time (*clock)(void *), void *clock_ud);
void kf_host_free(kf_host *h);
/* Hears what has come, and does one task if there is one.  KOFN_AGAIN: `watch`
 * wants it to leave. */
kofn_status kf_host_turn(kf_host *h, bool *worked);

/* host.c */
kofn_status kf_host_step(kf_host *h, const kofn_node_event *ev);
size_t kf_host_strips(const kf_host *h, size_t group, size_t *lo);
/* NULL when it is not here. */
kofn_parcel *kf_host_piece(const kf_pieces *p, uint32_t seat);
kofn_status kf_host_keep(kf_host *h, size_t group, uint32_t seat,
                         kofn_parcel *data);
/* The vector is another one now: pieces of the old one are `before`. */
void kf_host_advance(kf_host *h, kofn_mark at);

/* mail.c */
kofn_status kf_mail_send(kf_host *h, kofn_life to, const kofn_note *note);
/* Hears everything that is there, waiting for it at most so long. */
kofn_status kf_mail_hear(kf_host *h, kofn_time atmost);
/* Says who it is to those who have not said it yet, now and then. */
kofn_status kf_mail_greet(kf_host *h);
void kf_mail_free(kf_host *h);

#endif
