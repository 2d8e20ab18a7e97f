/* peers.h -- the other ranks, as the transport sees them.
 *
 * A packet is a frame, which holds its head and a short body. A long body
 * follows under its own tag, and is received directly into the memory where it
 * stays. Each peer has two channels, urgent and bulk, and one receive in each
 * for the next frame. The packets of a channel are delivered in order. Its
 * frames are read while bodies of earlier packets are still arriving.
 *
 * MPI accepts messages for a process that does not receive. So a channel
 * carries at most WINDOW packets that the other side has not taken. Every frame
 * reports how many its sender has taken.
 *
 * The transport owns peers, channels and frames. One thread uses them all; it
 * may not wait in MPI. */
#ifndef KF_MPI_PEERS_H
#define KF_MPI_PEERS_H

#include "requests.h"

#define WINDOW 32 /* packets in a channel that were not taken */
/* shorter than any MPI's limit for sending before the receiver asks */
#define FRAME_MAX 4000
#define FRAME_MAGIC 0x316d666bu /* "kfm1" */

enum { URGENT, BULK, CHANNELS };
enum { TAG_CHANNEL = 1, TAG_BODY = TAG_CHANNEL + CHANNELS };

typedef enum kind {
    HELLO = 1, /* its head names the machine */
    ALIVE,
    PACKET,
    FORGOTTEN, /* the sender neither sends packets nor reads any from now on */
    BYE,       /* as FORGOTTEN, and the last frame; MPI_Finalize is safe */
    /* as BYE, but MPI_Finalize is not: a rank, perhaps the receiver, was
     * lost */
    BROKEN
} kind;

typedef struct frame {
    uint32_t magic;
    uint16_t kind, head_bytes;
    /* packets taken by the sender of the frame, for each channel */
    uint32_t taken[CHANNELS];
    uint32_t body_tag; /* 0: the body is in this frame, after the head */
    uint32_t unused;
    uint64_t body_bytes;
} frame;

typedef struct transport transport;
typedef struct peer peer;
typedef struct channel channel;

/* An event to be reported; its body may be incomplete. */
typedef struct arrival {
    kf_mpi_op op; /* receives of the body's parts */
    struct arrival *next;
    peer *peer;
    channel *channel; /* NULL: CAME, or WENT by silence */
    size_t missing;   /* parts that have not come */
    size_t received;  /* bytes that have come */
    bool large, drop;
    kofn_packet p;
} arrival;

typedef struct queue {
    arrival *first, *last;
} queue;

struct channel {
    kf_mpi_op op; /* receive of the next frame */
    peer *peer;
    int tag;
    bool listening;
    bool over; /* it has reported its end */
    size_t large;
    queue queue;
    /* packets sent to the peer; packets that the peer has taken */
    uint32_t sent, acked;
    /* packets from the peer that were taken; the count last sent to it */
    uint32_t taken, told;
    union {
        frame frame;
        unsigned char bytes[FRAME_MAX];
    } in;
};

struct peer {
    transport *t;
    int rank;
    bool live;       /* packets are exchanged with it */
    bool forgotten;  /* its events are not reported any more */
    bool bye;        /* it has closed, and nothing more will come */
    unsigned byes;   /* number of channels that have closed */
    bool lost;       /* it is silent, or MPI failed */
    kofn_time heard; /* by the clock of t->listened */
    kofn_time spoken;
    kofn_time patience;
    uint32_t bodies;
    channel channel[CHANNELS];
    char name[80];
};

/* A packet that is being sent. */
typedef struct outgoing {
    kf_mpi_op op;
    struct outgoing *prev, *next;
    peer *peer;
    size_t left; /* requests that have not ended */
    bool apart;
    kofn_lent body;
} outgoing;

struct transport {
    kofn_transport base;
    const kf_mpi_host *host;
    kf_mpi_world world;
    bool broken; /* a rank was lost: MPI_Finalize may hang */
    bool frozen; /* MPI may no longer be called */
    bool closed, ended;
    bool attached;  /* the program owns MPI */
    bool returned;  /* a lent body was given back since wait began */
    unsigned polls; /* since the clock was read */
    size_t peers, live;
    peer *peer;
    queue ready[CHANNELS];
    outgoing *outs;
    size_t moving; /* bodies under their own tags, sent or received */
    kofn_time listened, polled, beat, next_beat;
    kofn_time moved;     /* when a request ended last */
    kofn_status failure; /* failure found in a function that cannot return it */
};

/* ---- report.c ------------------------------------------------------------ */

/* Makes an event: one that came in the channel or, if `l` is NULL, one about
 * the peer. NULL: out of memory. */
arrival *kf_mpi_arrival(peer *q, channel *l, kofn_arrival what);
/* Reports or drops complete events at the front of the channel's queue. */
void kf_mpi_advance(channel *l);
/* Queues the report that the peer came. */
kofn_status kf_mpi_came(peer *q);
/* Handle a silent peer, or one for which an operation failed. */
void kf_mpi_lose(peer *q);
void kf_mpi_lose_by(peer *q, kofn_status st);
/* Removes the next event and gives it to the caller; NULL: there is none. */
arrival *kf_mpi_take(transport *t);
void kf_mpi_discard(arrival *a);

/* ---- send.c -------------------------------------------------------------- */

#define SHORT_BODY (FRAME_MAX - sizeof(frame) - KOFN_HEAD_MAX)

/* Sends a frame, and its body under its own tag if it is long. On failure
 * nothing was sent, and `done` was not called. */
kofn_status kf_mpi_post(channel *l, kind k, const void *head, size_t head_bytes,
                        const kofn_lent *body);
/* Sends a frame without a packet, unless the peer is lost. */
void kf_mpi_say(channel *l, kind k);
/* Sends it in all channels, so that it comes after everything that was sent. */
void kf_mpi_say_last(peer *q, kind k);

/* ---- receive.c ----------------------------------------------------------- */

void kf_mpi_channel(channel *l, peer *q, int tag);
/* Receives the channel's next frame, unless too many of its long bodies are
 * incomplete or unreported. */
void kf_mpi_listen(channel *l);
/* Fills in the next event to be reported; false: there is none. */
bool kf_mpi_next(transport *t, kofn_packet *p);
/* Stops all reports about the peer. */
void kf_mpi_hush(peer *q);

#endif
