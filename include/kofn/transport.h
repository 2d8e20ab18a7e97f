/* transport.h -- interface to a network, with the coordinator's port and the
 * worker that use it.
 *
 * A transport moves packets between peers and reports their arrival and loss.
 * It knows nothing of codes, blocks or tasks.  kofn_port_away, kofn_serve and
 * the nodes of a mesh work over any transport.
 *
 * For authors of transports, which fill in a kofn_transport.  Also for programs
 * that are a coordinator of remote workers, or a remote worker.
 *
 * Guarantees of a transport:
 *   - A packet is a head of at most KOFN_HEAD_MAX bytes and a body.
 *   - A peer is one connection (kofn_peer): a process that connects again is
 *     another peer with another number.
 *   - Packets of a peer arrive complete and in the order of sending.  Urgent
 *     packets may overtake others.
 *   - If a packet does not arrive, the connection ends.  Nothing is sent again.
 *   - If the connection ends at one side it ends at the other, even if nothing
 *     more is sent.
 *   - Only one thread uses a transport, except for `release`.
 */
#ifndef KOFN_TRANSPORT_H
#define KOFN_TRANSPORT_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOFN_HEAD_MAX 256 /* bytes of a head */

/* Number of one incarnation of a peer, given by the transport from 0.  A peer
 * that returns after a disconnection has a new number.  No number is used
 * twice. */
typedef uint32_t kofn_peer;

/* What a transport reports. */
typedef enum kofn_arrival {
    KOFN_CAME = 1, /* a peer can be reached; its first packet comes later */
    KOFN_WENT,     /* a peer is lost for good                             */
    KOFN_PACKET    /* a packet has arrived                                */
} kofn_arrival;

/* An arrival at a transport: a packet, or a peer that came or went. */
typedef struct kofn_packet {
    kofn_arrival what;
    kofn_peer peer;
    size_t head_bytes;
    unsigned char head[KOFN_HEAD_MAX];
    /* The body, owned by the transport until `release`.  If it is NULL and
     * body_bytes > 0, the body is still on its way, and `fetch` receives it. */
    const void *body;
    size_t body_bytes;
    void *own; /* for the transport; argument of release */
} kofn_packet;

/* A packet that is still arriving. */
typedef struct kofn_arriving {
    size_t head_bytes;
    unsigned char head[KOFN_HEAD_MAX];
    size_t at, body_bytes; /* bytes of the body: arrived, total */
    kofn_time age;         /* since the head arrived            */
} kofn_arriving;

typedef struct kofn_transport kofn_transport;

/* A body that is lent to a transport until it calls done(ud), which may be on
 * another thread.  `done` may be NULL. */
typedef struct kofn_lent {
    const void *data;
    size_t bytes;
    void (*done)(void *ud);
    void *ud;
} kofn_lent;

/* An interface to a network.  Members are required, unless a comment allows
 * NULL. */
struct kofn_transport {
    size_t size; /* sizeof(kofn_transport); a smaller one is refused */
    const char *name;
    /* Sends a head and a body; `body` may be NULL.  It never waits.  An
     * `urgent` packet overtakes those that are not urgent.  The transport calls
     * body->done exactly once, with every status except KOFN_AGAIN.
     * KOFN_AGAIN: the buffer of this peer is full; nothing was sent.  Try again
     * later; the body still belongs to the caller.
     * KOFN_TRANSPORT: the peer is lost. */
    kofn_status (*send)(kofn_transport *t, kofn_peer peer, const void *head,
                        size_t head_bytes, const kofn_lent *body, bool urgent);
    /* Waits for the next arrival, at most `atmost` nanoseconds; 0 does not
     * wait.  KOFN_CAME comes before all packets of a peer.  KOFN_WENT comes
     * after all of them, and nothing follows it.  Packets with a head or body
     * longer than allowed are dropped and counted.
     * KOFN_AGAIN: no arrival in that time.  It may also return early because a
     * full buffer has room again, a body was given back, or because of a
     * signal.
     * KOFN_TRANSPORT: nothing can ever arrive any more. */
    kofn_status (*wait)(kofn_transport *t, kofn_time atmost, kofn_packet *p);
    /* Receives a body that did not come with its packet into `into`, which has
     * body_bytes bytes.  NULL if bodies always come with their packets. */
    kofn_status (*fetch)(kofn_transport *t, kofn_packet *p, void *into);
    /* Releases a packet's body, whether it was fetched or not.  Called on any
     * thread. */
    void (*release)(kofn_transport *t, void *own);
    /* Ends the connection with a peer and drops all that it sends.  The peer is
     * notified if possible, and may return under another number.  If a worker
     * forgets the coordinator, it connects again under another number. */
    void (*forget)(kofn_transport *t, kofn_peer peer);
    /* Sends what is buffered, for at most `linger` nanoseconds, and frees the
     * transport. */
    void (*close)(kofn_transport *t, kofn_time linger);
    /* Longest body that is received; packets with longer ones are dropped.  The
     * user of the transport may lower it, not raise it. */
    size_t body_max;
    uint64_t dropped; /* packets that were too long, foreign or malformed */
    /* Meshes only: connects to one more peer, which is then reported with
     * KOFN_CAME.  May be NULL. */
    kofn_status (*reach)(kofn_transport *t, const char *address);
    /* Returns a name of the peer for messages, valid until the next call.  May
     * be NULL. */
    const char *(*name_of)(kofn_transport *t, kofn_peer peer);
    /* Returns a message about peers that the transport refused or dropped since
     * the last call, with the reason; NULL if there is none.  Valid until the
     * next call.  May be NULL. */
    const char *(*news)(kofn_transport *t);
    /* Set by the user of the transport, or NULL.  Returns whether a long body
     * is wanted, before memory is allocated for it.  If not, the packet arrives
     * without a body. */
    bool (*wanted)(void *ud, kofn_peer peer, const void *head,
                   size_t head_bytes, size_t body_bytes);
    void *wanted_ud; /* passed to wanted */
    /* Returns the principal of a peer: its key or, without keys, its host.
     * Valid until the next call.  All peers of one principal may be one
     * attacker.  May be NULL, or return NULL: the peer is its own principal. */
    const char *(*principal_of)(kofn_transport *t, kofn_peer peer);
    /* Describes the packet, not urgent, that is arriving from a peer.  Returns
     * false if there is none.  May be NULL. */
    bool (*arriving)(kofn_transport *t, kofn_peer peer, kofn_arriving *a);
    /* True if bodies cannot be altered on the way without detection: they stay
     * in the memory of this machine, or are authenticated.  They are then sent
     * without a checksum.  Both ends of a connection must agree. */
    bool whole;
    /* Set by the transport before `wait` returns KOFN_TRANSPORT: true if every
     * peer has ended in order, so that nothing has failed.  A worker then ends
     * as if it were dismissed. */
    bool over;
    /* True if other threads may call the functions but `wait` and `close` while
     * one thread waits. */
    bool threads;
};

/* ---- the coordinator's port ---------------------------------------------- */

/* Options of the port to workers over a transport. */
typedef struct kofn_away_options {
    size_t size;    /* sizeof(kofn_away_options)                        */
    size_t workers; /* number that the first round waits for; default 1 */
    /* Number of the job.  Workers that hold blocks of this job keep them if the
     * coordinator restarts.  0: a new job. */
    uint64_t job;
    /* Name of the file of A, for workers that can read it themselves; or NULL.
     * Copied. */
    const char *source;
    /* A worker that accepts nothing of the data waiting for it for this time is
     * lost.  A worker that answers nothing for 6 times this time, while 64 of
     * its tasks were cancelled, is evicted.  0 means 5 s. */
    kofn_time silence;
    /* Most peers that have not identified themselves.  0 means 64, or `workers`
     * if that is more. */
    size_t strangers;
    /* Most workers of one principal at a time; others are disconnected.  0: no
     * limit. */
    size_t crowd;
    /* Name of the port; must stay valid until it is closed.  NULL: the
     * transport's. */
    const char *name;
    /* True: every worker is its own principal, whatever key or host it has. */
    bool alone;
    /* For events files: start() starts a worker, kill() kills the one with this
     * process number.  start() returns 0 on success.  NULL: such events are
     * refused. */
    int (*start)(void *ud);
    int (*kill)(void *ud, uint64_t process);
    void *ud; /* passed to start, kill, news and ended */
    /* Receives messages about workers that were refused, dropped or evicted,
     * with the reason.  May be NULL. */
    void (*news)(void *ud, const char *words);
    /* Returns how many of the started workers have ended.  The port does not
     * wait for workers that ended before they connected.  NULL: workers are not
     * started here. */
    size_t (*ended)(void *ud);
    /* For a job of a fleet: its share of the workers' time is its weight
     * divided by those of all jobs that have tasks.  0 means 1; at most 1e6. */
    double weight;
} kofn_away_options;
#define KOFN_AWAY_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(kofn_away_options), 1, 0, NULL, 0, 0, 0, NULL, false, NULL,     \
            NULL, NULL, NULL, NULL, 0                                          \
    }
/* Makes a port to workers over a transport.  Takes the transport over, even on
 * failure.  A block is encoded while it is sent, some rows at a time.  `opt`
 * may be NULL; it is copied.  The caller owns *out until kofn_open takes it
 * over.
 * KOFN_INVAL: `t` is an older, smaller kofn_transport.
 * KOFN_IO: the system has no random numbers. */
KOFN_API kofn_status kofn_port_away(kofn_port **out, kofn_transport *t,
                                    const kofn_away_options *opt);

/* ---- a worker's life ----------------------------------------------------- */

/* Values that kofn_serve_options.watch returns. */
typedef enum kofn_leave {
    KOFN_STAY,
    KOFN_LEAVE_SOON, /* finish the tasks that are here, then leave */
    KOFN_LEAVE_NOW
} kofn_leave;

/* What a worker has done since kofn_serve began. */
typedef struct kofn_serve_counts {
    size_t size;       /* sizeof(kofn_serve_counts)                  */
    bool connected;    /* to a coordinator                           */
    size_t waiting;    /* tasks that it has                          */
    uint64_t results;  /* that it has sent                           */
    uint64_t failures; /* tasks that failed; cancelled ones are none */
    double computed;   /* seconds that it computed for the results   */
    double bytes;      /* bytes of the results                       */
} kofn_serve_counts;
#define KOFN_SERVE_COUNTS_INIT                                                 \
    {                                                                          \
        sizeof(kofn_serve_counts), false, 0, 0, 0, 0, 0                        \
    }

/* Options of a worker. */
typedef struct kofn_serve_options {
    size_t size; /* sizeof(kofn_serve_options) */
    /* Function for a KOFN_SUM, with its context.  NULL: none.  The parts, `in`
     * and the length of `out` come from the network; f must validate them. */
    kofn_part_fn f;
    void *ctx;
    /* Opens the operand of this file name, if this machine can read it.  The
     * worker then makes its block itself, and only coefficients are sent.  It
     * is not called with names that are not plain file names, such as
     * "../A.npy".  It sets *A or *S, which stays valid until operand_done.  If
     * it fails, the coordinator sends the block.  NULL: no files can be
     * read. */
    kofn_status (*operand)(void *ud, const char *name, const kofn_matrix **A,
                           const kofn_sparse **S);
    void (*operand_done)(void *ud);
    /* Limit of the memory of a block, in bytes.  The same limit applies to
     * tasks that bring their own block.  0: no limit. */
    size_t memory;
    /* Longest time without a coordinator; kofn_serve then returns KOFN_LATE.
     * 0: no limit. */
    kofn_time patience;
    /* Longest time between KOFN_LEAVE_SOON and leaving. */
    kofn_time grace;
    const kofn_faults *faults; /* simulated faults; NULL: none */
    /* Returns whether to stay.  Called about every millisecond, at least three
     * times a second if there is nothing to do, and after a signal.  `news` is
     * a message about an event, or NULL.  May be NULL: stay. */
    kofn_leave (*watch)(void *ud, const char *news);
    void *ud; /* passed to operand, operand_done and watch */
    /* For tests: the coordinator may make this worker slow or faulty. */
    bool staged;
    /* Formulas for sums over rows, ended by a NULL name; default
     * kofn_formulas. */
    const kofn_formula *formulas;
    /* Multiplies dense blocks instead of BLAS, with its context.  NULL: BLAS.
     *
     * It is called on the thread of kofn_serve, for some milliseconds of work
     * at a time, so that cancelled tasks end soon.  The components of a block
     * come one after the other.  If it fails, the task fails and is given to
     * another worker.  It is not used for sparse blocks and sums. */
    kofn_multiply_fn multiply;
    void *multiply_ctx;
    /* Stays when a job is over, and serves the next one of this or another
     * coordinator, until a fleet dismisses its workers or `patience` is over.
     * false: the end of the job ends the worker. */
    bool stay;
    const char *name; /* for people, at most 64 characters; NULL: none */
    /* Filled in before `watch` is called without news.  NULL: not wanted. */
    kofn_serve_counts *counts;
} kofn_serve_options;
#define KOFN_SERVE_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(kofn_serve_options), NULL, NULL, NULL, NULL, 0, 0, 0, NULL,     \
            NULL, NULL, false, kofn_formulas, NULL, NULL, false, NULL, NULL    \
    }
/* Runs a worker until it is dismissed, and closes the transport in any case.
 * It uses this thread for computing and for messages; during a computation it
 * looks for messages about every millisecond.  `opt` may be NULL.
 *
 * KOFN_OK: the coordinator dismissed the worker.
 * KOFN_AGAIN: `watch` ended it.
 * KOFN_UNSUITED: the coordinator refused it, or is another version of kofn.
 * KOFN_LATE: there was no coordinator for `patience`.
 * KOFN_TRANSPORT: the transport failed.
 * KOFN_INVAL: `t` is an older, smaller kofn_transport. */
KOFN_API kofn_status kofn_serve(kofn_transport *t,
                                const kofn_serve_options *opt);

#ifdef __cplusplus
}
#endif
#endif
