/* transport.h -- what a network must offer so that workers on other machines
 * can be reached.
 *
 * A transport moves packets between *peers* and tells who comes and goes; it
 * knows nothing of codes, blocks or tasks.  The coordinator's port over a
 * transport (kofn_port_far), a worker's whole life (kofn_serve) and a node of
 * a masterless run stand on it, each once for all networks.
 *
 * A packet is a head of at most KOFN_HEAD_MAX bytes and a body.  Within one
 * peer's life packets that were not sent as urgent arrive in the order in
 * which they were sent, whole or not at all; urgent ones may overtake.
 * A transport is used by one thread.
 */
#ifndef KOFN_TRANSPORT_H
#define KOFN_TRANSPORT_H

#include <kofn/port.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KOFN_HEAD_MAX 256

/* Peers are numbered by the transport from 0.  A number names one life: who
 * comes back after a disconnection has a new one, and no number is used
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

typedef struct kofn_transport kofn_transport;

struct kofn_transport {
    const char *name;
    /* Sends head and body.  The body is borrowed until `done(ud)`, which is
     * called exactly once whatever the answer, perhaps on another thread, and
     * may be NULL.  Never waits: KOFN_AGAIN when the way to this peer is full
     * (nothing was sent; try again later), KOFN_TRANSPORT when the peer is
     * not there any more.  On KOFN_AGAIN `done` is not called: the body is
     * still the caller's. */
    kofn_status (*send)(kofn_transport *t, kofn_peer peer, const void *head,
                        size_t head_bytes, const void *body, size_t body_bytes,
                        bool urgent, void (*done)(void *ud), void *ud);
    /* The next arrival, or KOFN_AGAIN after `atmost` nanoseconds (0: only
     * what is there already), or KOFN_TRANSPORT when nothing can ever come
     * again.  Comings and goings are told before packets that arrived with
     * them, and nothing is told of a peer after KOFN_WENT.  Packets whose
     * head or body is longer than allowed are dropped and counted. */
    kofn_status (*wait)(kofn_transport *t, kofn_time atmost, kofn_packet *p);
    /* Bodies that were not delivered with their packet: receive it into
     * `into` (body_bytes long).  NULL where bodies always come along. */
    kofn_status (*fetch)(kofn_transport *t, kofn_packet *p, void *into);
    /* Give a packet's body back, fetched or not; on any thread. */
    void (*release)(kofn_transport *t, void *own);
    /* Have no more to do with this peer: whatever it sends is dropped. */
    void (*forget)(kofn_transport *t, kofn_peer peer);
    /* Sends what is under way, for at most `linger` nanoseconds, and ends. */
    void (*close)(kofn_transport *t, kofn_time linger);
    /* The longest body that is received; larger ones are dropped.  Adjusted
     * by the users of the transport. */
    size_t body_max;
    uint64_t dropped; /* packets, so far: too long, foreign, malformed */
    /* May be NULL: reach one more peer (meshes only), which then comes. */
    kofn_status (*reach)(kofn_transport *t, const char *address);
    /* May be NULL: who a peer is, for messages to people; valid until the
     * next call. */
    const char *(*name_of)(kofn_transport *t, kofn_peer peer);
};

#ifdef __cplusplus
}
#endif
#endif
