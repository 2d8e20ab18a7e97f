/* transport.h -- what a network must offer so that workers on other machines
 * can be reached.
 *
 * A transport moves packets between *peers* and tells who comes and goes; it
 * knows nothing of codes, blocks or tasks.  The coordinator's port over a
 * transport (kofn_port_away), a worker's whole life (kofn_serve) and a node of
 * a masterless run stand on it, each once for all networks.
 *
 * For authors of transports, who fill in a kofn_transport, and for programs that
 * are a coordinator of workers elsewhere, or such a worker.
 *
 * A packet is a head of at most KOFN_HEAD_MAX bytes and a body.  Within one
 * peer's incarnation packets that were not sent as urgent arrive in the order
 * in which they were sent, whole or not at all; urgent ones may overtake. Where
 * one does not arrive the incarnation ends, and one that ends at one side ends
 * at the other, even if nothing more is sent: nobody asks again for what is
 * lost. A transport is used by one thread.
 */
#ifndef KOFN_TRANSPORT_H
#define KOFN_TRANSPORT_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOFN_HEAD_MAX 256

/* Peers are numbered by the transport from 0.  A number names one incarnation:
 * who comes back after a disconnection has a new one, and no number is used
 * twice. */
typedef uint32_t kofn_peer;

typedef enum kofn_arrival {
    KOFN_CAME = 1, /* a peer can be reached; its first packet comes later */
    KOFN_WENT,     /* a peer is lost for good                             */
    KOFN_PACKET
} kofn_arrival;

typedef struct kofn_packet {
    kofn_arrival what;
    kofn_peer peer;
    size_t head_bytes;
    unsigned char head[KOFN_HEAD_MAX];
    /* The body lies at `body`, owned by the transport until `release`; or it
     * is still on its way (`body` NULL while body_bytes > 0) and `fetch` puts
     * it where it belongs. */
    const void *body;
    size_t body_bytes;
    void *own; /* the transport's */
} kofn_packet;

/* A packet that is on its way from a peer and not whole yet. */
typedef struct kofn_arriving {
    size_t head_bytes;
    unsigned char head[KOFN_HEAD_MAX];
    size_t at, body_bytes; /* so much of the body is here   */
    kofn_time age;         /* since the head came           */
} kofn_arriving;

typedef struct kofn_transport kofn_transport;

/* A body that is lent to a transport until it calls `done(ud)`, perhaps on another
 * thread; `done` may be NULL. */
typedef struct kofn_lent {
    const void *data;
    size_t bytes;
    void (*done)(void *ud);
    void *ud;
} kofn_lent;

struct kofn_transport {
    size_t size; /* of this struct: an older one is refused */
    const char *name;
    /* Sends a head of at most KOFN_HEAD_MAX bytes and a body, NULL: none, which
     * is given back exactly once whatever the answer.  Never waits: KOFN_AGAIN
     * when the way to this peer is full (nothing was sent, try again later; the
     * body is still the caller's and `done` is not called), KOFN_TRANSPORT when
     * the peer is not there any more.  `urgent` overtakes what is not. */
    kofn_status (*send)(kofn_transport *t, kofn_peer peer, const void *head,
                        size_t head_bytes, const kofn_lent *body, bool urgent);
    /* The next arrival, or KOFN_AGAIN after `atmost` nanoseconds (0: only
     * what is there already) or earlier where a way that was full has room
     * again or a signal has come, or KOFN_TRANSPORT when nothing can ever come again.  A peer's
     * coming is told before its packets, and nothing of it after KOFN_WENT,
     * which comes after what it had sent.  Packets whose head or body is
     * longer than allowed are dropped and counted. */
    kofn_status (*wait)(kofn_transport *t, kofn_time atmost, kofn_packet *p);
    /* Bodies that were not delivered with their packet: receive it into
     * `into` (body_bytes long).  NULL where bodies always come along. */
    kofn_status (*fetch)(kofn_transport *t, kofn_packet *p, void *into);
    /* Give a packet's body back, fetched or not; on any thread. */
    void (*release)(kofn_transport *t, void *own);
    /* Have no more to do with this peer: whatever it sends is dropped.  It
     * learns of it where it can, and may come back as another.  A worker that
     * forgets the coordinator connects again, as another. */
    void (*forget)(kofn_transport *t, kofn_peer peer);
    /* Sends what is under way, for at most `linger` nanoseconds, and ends. */
    void (*close)(kofn_transport *t, kofn_time linger);
    /* The longest body that is received; larger ones are dropped.  May be
     * lowered by the transport's user, not raised. */
    size_t body_max;
    uint64_t dropped; /* packets, so far: too long, foreign, malformed */
    /* May be NULL: reach one more peer (meshes only), which then comes. */
    kofn_status (*reach)(kofn_transport *t, const char *address);
    /* May be NULL: who a peer is, for messages to people; valid until the
     * next call. */
    const char *(*name_of)(kofn_transport *t, kofn_peer peer);
    /* May be NULL: whom the transport itself turned away or dropped since the
     * last call, and why, in words, or NULL; valid until the next call. */
    const char *(*news)(kofn_transport *t);
    /* Set by the transport's user, or NULL: is a long body wanted?  Asked
     * before memory is; where it is not the packet comes without its body. */
    bool (*wanted)(void *ud, kofn_peer peer, const void *head,
                   size_t head_bytes, size_t body_bytes);
    void *wanted_ud;
    /* May be NULL: who answers for a peer, a key or, where there are none, a
     * host; valid until the next call.  All peers of one name may be one
     * enemy.  NULL, also as the answer: the peer answers for itself. */
    const char *(*principal_of)(kofn_transport *t, kofn_peer peer);
    /* May be NULL: what is on its way from a peer, not as urgent; false: nothing
     * that has begun. */
    bool (*arriving)(kofn_transport *t, kofn_peer peer, kofn_arriving *a);
    /* Bodies arrive as they were sent: they never leave the memory of this machine,
     * or whoever changes them is found out.  So they are sent without a checksum;
     * both ends of a connection have to say the same. */
    bool whole;
    /* Set by the transport before `wait` returns KOFN_TRANSPORT: true if every peer has
     * ended in order, so that nothing has failed.  A worker then ends as if it were
     * dismissed. */
    bool over;
};

/* ---- the coordinator's port ---------------------------------------------- */

typedef struct kofn_away_options {
    size_t size;
    size_t workers; /* that must be there before the first round begins      */
    uint64_t job;   /* workers that hold blocks of this job keep them over a
                       restart of the coordinator; 0: a new job              */
    const char *source; /* name of A's file, for workers that can read it
                           themselves, or NULL                               */
    kofn_time silence;  /* who takes nothing of what is waiting for it for so
                           long is lost, and who answers nothing for six times
                           as long, while 64 tasks were cancelled, is given
                           up; 0: 5 s                                        */
    size_t strangers;   /* peers that have not said who they are; 0: 64, and
                           as many as `workers` where these are more         */
    size_t crowd;       /* workers that one principal may have at a time; more
                           are sent away; 0: no limit                        */
    const char *name;   /* that the port goes by, until it is closed; NULL: the
                           transport's                                       */
    bool alone;         /* every worker answers for itself, whoever it is of */
    /* Events files: start a worker, or kill the one with this process number;
     * NULL: events cannot be staged. */
    int (*start)(void *ud);
    int (*kill)(void *ud, uint64_t process);
    void *ud;
    /* Told who was turned away, dropped or given up, and why; or NULL. */
    void (*news)(void *ud, const char *words);
    /* How many of the workers that were started have ended, or NULL: anybody
     * may come.  Whoever ended before it came is not waited for. */
    size_t (*ended)(void *ud);
} kofn_away_options;
#define KOFN_AWAY_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(kofn_away_options), 1, 0, NULL, 0, 0, 0, NULL, false, NULL,     \
            NULL, NULL, NULL, NULL                                             \
    }
/* Workers reached over a transport, which the port takes over even on
 * failure.  A block is encoded while it is sent, some rows at a time. */
KOFN_API kofn_status kofn_port_away(kofn_port **out, kofn_transport *t,
                                    const kofn_away_options *opt);

/* ---- a worker's life ----------------------------------------------------- */

/* The answers of kofn_serve_options.watch. */
typedef enum kofn_leave {
    KOFN_STAY,
    KOFN_LEAVE_SOON, /* finish what is in hand, then go */
    KOFN_LEAVE_NOW
} kofn_leave;

typedef struct kofn_serve_options {
    size_t size;
    /* For sums of a function, with its context.  The parts, `in` and the length
     * of `out` are what came: f checks them. */
    kofn_part_fn f;
    void *ctx;
    /* The operand of that name, where this machine can read it: its block is
     * then made here and only coefficients have travelled.  A name that is not
     * one of a file, such as "../A.npy", is not asked for.  Fills one of both,
     * which is given back to operand_done; any failure, and the block is sent
     * instead.  NULL: nothing can be read here. */
    kofn_status (*operand)(void *ud, const char *name, const kofn_matrix **A,
                           const kofn_sparse **S);
    void (*operand_done)(void *ud);
    size_t memory;             /* bytes that a block may take, and as many again
                           that tasks which bring theirs may; 0: no limit */
    kofn_time patience;        /* give up when there is no coordinator for so
                              long; 0: never                             */
    kofn_time grace;           /* after KOFN_LEAVE_SOON at most so long       */
    const kofn_faults *faults; /* NULL: fair                           */
    /* Asked every millisecond or so, three times a second while there is nothing
     * to do, and when a signal has come; told what happens in words (NULL
     * otherwise). */
    kofn_leave (*watch)(void *ud, const char *news);
    void *ud;
    bool staged; /* let the coordinator slow and spoil this worker: tests */
    const kofn_formula
        *formulas; /* for sums over rows; ends with a NULL name */
    /* Another way to multiply dense blocks than BLAS, with its context; NULL:
     * BLAS.  Called on the thread of kofn_serve, and for as much at a time as
     * takes it some milliseconds, so that what is cancelled ends soon; lanes of
     * a block one after the other.  A status that is not KOFN_OK fails the
     * task, and another worker is asked.  Sparse blocks, and sums, are not
     * computed with it. */
    kofn_multiply_fn multiply;
    void *multiply_ctx;
} kofn_serve_options;
#define KOFN_SERVE_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(kofn_serve_options), NULL, NULL, NULL, NULL, 0, 0, 0, NULL,     \
            NULL, NULL, false, kofn_formulas, NULL, NULL                       \
    }
/* Serves until dismissed (KOFN_OK), asked to leave (KOFN_AGAIN), refused
 * (KOFN_UNSUITED) or out of patience (KOFN_LATE).  The transport is ended.
 * One thread computes and listens: while it computes it looks for messages
 * every millisecond or so. */
KOFN_API kofn_status kofn_serve(kofn_transport *t,
                                const kofn_serve_options *opt);

#ifdef __cplusplus
}
#endif
#endif
