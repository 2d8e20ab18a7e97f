/* zmq.h -- the transport for machines that come and go: ZeroMQ over TCP and
 * Unix sockets.  Library kofn-zmq.
 *
 * One side listens (the coordinator), the others connect to it (workers) and
 * connect again by themselves after every loss; or every node listens and
 * reaches some of the others (mesh).  Addresses are ZeroMQ's:
 *
 *     tcp://HOST:PORT   where one listens HOST may be *, every interface, and
 *                       PORT may be *, any that is free; tcp://[::1]:5555.  A
 *                       name is looked up: to listen, IPv4 first, localhost
 *                       being 127.0.0.1; to connect, IPv6 and IPv4 in turn
 *     ipc://PATH        a Unix socket
 *
 * A peer is reached over two connections: packets go over one, urgent ones
 * and heartbeats over the other, so that neither waits behind bulk data.  It
 * comes when both are there and goes when either is lost.
 *
 * On an address that others can reach, CurveZMQ (RFC 26) encrypts, and who
 * has no listed key never gets as far as sending a packet.
 */
#ifndef KOFN_ZMQ_H
#define KOFN_ZMQ_H

#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 and NULL mean the default everywhere. */
typedef struct kofn_zmq_options {
    /* The longest body that is received; who sends a longer one is
     * disconnected before memory is asked for.  Default 64 MiB, 2^48
     * bytes at most.  The transport's body_max starts there and may be lowered. */
    size_t body_max;
    /* What may come from one connection before it is waited for: as many
     * messages as fit if all are as long as can be, but at least 8, or 4 over
     * TCP if they may be longer than 8 MiB, and at most 1000.  They may have
     * 1 MiB over TCP with keys, and otherwise body_max or 1 MiB if that is more.
     * Default 32 MiB. */
    size_t peer_bytes;
    /* A peer that is silent for so long is lost; at least 0.1 s, default
     * 0.8 s.  Who is silent from the beginning, or after an urgent packet, is
     * missed up to 0.3 s later.  Not noticed: over a Unix socket, a process that
     * is stopped less than 0.2 s after it came or sent an urgent packet. */
    kofn_time silence;
    /* How many connections may be open that belong to no peer yet; more are
     * turned away.  Who sends more than 4 KiB before it is a peer, or is none
     * after 10 s, is turned away, too.  Default 1024. */
    size_t strangers;
    /* A folder as kofn_zmq_keygen makes it: everything is encrypted, and only
     * listed keys come in.  The coordinator reads coordinator.secret there; a
     * worker worker.secret and coordinator.public; a node of a mesh
     * worker.secret, and worker.public where all nodes have that one key. */
    const char *keys;
    /* Whose keys come in: a list, or a folder of NAME.public; looked at again
     * every second, and who is not listed any more is lost.  Default `keys`,
     * where coordinator.public does not count. */
    const char *allow;
    /* Go without encryption and without knowing who comes, where others than
     * this machine's users can reach the address. */
    bool insecure;
} kofn_zmq_options;

/* The coordinator's end.  KOFN_INVAL: the address is none, or not safe;
 * KOFN_TRANSPORT: it cannot be had. */
KOFN_API kofn_status kofn_zmq_listen(kofn_transport **out, const char *address,
                                     const kofn_zmq_options *o);
/* A worker's end: its only peer is whoever listens at the address, and comes
 * as often as a connection is made. */
KOFN_API kofn_status kofn_zmq_connect(kofn_transport **out, const char *address,
                                      const kofn_zmq_options *o);
/* A node among equals: listens at `address`, and reaches others with `reach`,
 * which keeps trying.  Two nodes that reach each other are one peer to each
 * other, not two.  Where each node has a key of its own, as kofn_zmq_keygen_worker
 * makes them, the one that is expected at an address is named: NAME@ADDRESS, of
 * a NAME.public that is listed. */
KOFN_API kofn_status kofn_zmq_mesh(kofn_transport **out, const char *address,
                                   const kofn_zmq_options *o);

/* Makes new keys in `dir`: coordinator.secret, coordinator.public,
 * worker.secret and worker.public.  The folder is made if need be, for its
 * owner alone.  KOFN_IO: there are keys already, which stay as they are, or it
 * cannot be written. */
KOFN_API kofn_status kofn_zmq_keygen(const char *dir);

/* A key for one worker, or for those who trust each other and are to count as
 * one: NAME.public in `dir`, which lists it, and a folder `dir`/NAME for the
 * worker.  The coordinator's keys are made if there are none.  A name is 1 to
 * 50 letters, digits and ._- and begins with a letter or a digit. */
KOFN_API kofn_status kofn_zmq_keygen_worker(const char *dir, const char *name);

/* How many keys may come in now; 0: anybody, or it does not listen. */
KOFN_API size_t kofn_zmq_listed(const kofn_transport *t);
/* Where it really listens ("tcp://127.0.0.1:40321"), or connects to. */
KOFN_API const char *kofn_zmq_endpoint(const kofn_transport *t);
/* Why the last connection was not made or not kept, in words; "" when nothing
 * is amiss. */
KOFN_API const char *kofn_zmq_trouble(const kofn_transport *t);

#ifdef __cplusplus
}
#endif
#endif
