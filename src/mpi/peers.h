/* peers.h -- the other ranks as the transport sees them.
 *
 * A packet is a frame, which holds the head and a body that is short, and
 * else is followed by the body under a tag of its own, which is received
 * straight into the memory that it stays in.  Every peer has two channels,
 * urgent and bulk, with one receive each for the next frame; a channel is read
 * in order, and on while bodies of it are on their way.
 *
 * MPI takes whatever is sent to somebody who does not listen.  So a channel
 * carries at most WINDOW packets that the other side has not taken, and every
 * frame says how many its sender has.
 *
 * Peers, channels and frames are the transport's.  All is used on one thread,
 * which may not wait in MPI.
 */
#ifndef KF_MPI_PEERS_H
#define KF_MPI_PEERS_H

#include "requests.h"

#define WINDOW 32      /* packets in a channel that are not taken yet      */
#define FRAME_MAX 4000 /* shorter than what any MPI asks before sending */
#define FRAME_MAGIC 0x316d666bu /* "kfm1" */

enum { URGENT, BULK, CHANNELS };
enum { TAG_CHANNEL = 1, TAG_BODY = TAG_CHANNEL + CHANNELS };

typedef enum kind {
    HELLO = 1, /* the head names the machine */
    ALIVE,
    PACKET,
    FORGOTTEN, /* no packets will follow, nor be read                    */
    BYE,       /* likewise, and nothing else: MPI may be ended           */
    BROKEN     /* likewise, but it must not: somebody was lost, or you   */
} kind;

typedef struct frame {
    uint32_t magic;
    uint16_t kind, head_bytes;
    uint32_t taken[CHANNELS]; /* packets, by who sends this */
    uint32_t body_tag;        /* 0: the body follows the head in this frame */
    uint32_t unused;
    uint64_t body_bytes;
} frame;

typedef struct transport transport;
typedef struct peer peer;
typedef struct channel channel;

/* Something to be told, perhaps not whole yet. */
typedef struct arrival {
    kf_mpi_op op; /* the body's parts */
    struct arrival *next;
    peer *peer;
    channel *channel; /* NULL: CAME, and WENT by silence */
    size_t missing;   /* parts */
    size_t received;  /* bytes */
    bool large, drop;
    kofn_packet p;
} arrival;

typedef struct queue {
    arrival *first, *last;
} queue;

struct channel {
    kf_mpi_op op; /* the next frame */
    peer *peer;
    int tag;
    bool listening;
    bool over; /* nothing more will be told of it */
    size_t large;
    queue queue;
    uint32_t sent, acked; /* packets to the peer: ours, and taken by it */
    uint32_t taken, told; /* packets from the peer: by us, and it knows */
    union {
        frame frame;
        unsigned char bytes[FRAME_MAX];
    } in;
};

struct peer {
    transport *t;
    int rank;
    bool live;       /* packets go to and fro */
    bool forgotten;  /* nothing of it is told any more */
    bool bye;        /* it has closed, and nothing more can come */
    unsigned byes;   /* channels that say so */
    bool lost;       /* it is silent, or MPI failed */
    kofn_time heard; /* by the clock of t->listened */
    kofn_time spoken;
    kofn_time patience;
    uint32_t bodies;
    channel channel[CHANNELS];
    char name[80];
};

/* A packet being sent. */
typedef struct outgoing {
    kf_mpi_op op;
    struct outgoing *prev, *next;
    peer *peer;
    size_t left; /* requests */
    bool apart;
    kofn_lent body;
} outgoing;

struct transport {
    kofn_transport base;
    const kf_mpi_host *host;
    kf_mpi_world world;
    bool broken; /* somebody was lost: MPI_Finalize may hang */
    bool frozen; /* MPI may no longer be called              */
    bool closed, ended;
    size_t peers, live;
    peer *peer;
    queue ready[CHANNELS];
    outgoing *outs;
    size_t moving; /* bodies apart from their frames, in and out */
    kofn_time listened, polled, beat, next_beat;
    kofn_status failure; /* found where it cannot be returned */
};

/* ---- told.c -------------------------------------------------------------- */

/* Something that came in the channel, or, without one, is told of the peer; NULL:
 * there is no memory. */
arrival *kf_mpi_arrival(peer *q, channel *l, kofn_arrival what);
/* What is whole at the channel's front is to be told, or is of no interest. */
void kf_mpi_advance(channel *l);
/* Have it told that the peer came. */
kofn_status kf_mpi_came(peer *q);
/* The peer is silent, or something has failed. */
void kf_mpi_lose(peer *q);
void kf_mpi_lose_by(peer *q, kofn_status st);
/* The next that is to be told, which becomes the caller's, or NULL. */
arrival *kf_mpi_take(transport *t);
void kf_mpi_discard(arrival *a);

/* ---- send.c -------------------------------------------------------------- */

#define SHORT_BODY (FRAME_MAX - sizeof(frame) - KOFN_HEAD_MAX)

/* A frame, and its body where that is not short.  On failure nothing was
 * sent, nor is `done` called. */
kofn_status kf_mpi_post(channel *l, kind k, const void *head, size_t head_bytes,
                        const kofn_lent *body);
/* A frame without a packet, unless the peer is lost. */
void kf_mpi_say(channel *l, kind k);
/* The same in all channels, so that it comes after whatever was sent. */
void kf_mpi_say_last(peer *q, kind k);

/* ---- receive.c ----------------------------------------------------------- */

void kf_mpi_channel(channel *l, peer *q, int tag);
/* Receive the channel's next frame, unless it owes us too much already. */
void kf_mpi_listen(channel *l);
/* The next that is to be told and of interest. */
bool kf_mpi_next(transport *t, kofn_packet *p);
/* Nothing of the peer is told from now on. */
void kf_mpi_hush(peer *q);

#endif
