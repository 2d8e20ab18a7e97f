/* net.h -- the transport for machines that come and go: TCP and Unix sockets.
 *
 * For coordinators (kofn_port_away), workers (kofn_serve) and nodes of a mesh
 * (<kofn/peer.h>) that are processes or machines of their own.
 *
 * One side listens (the coordinator), the others connect to it (workers) and
 * connect again by themselves after every loss; or every node listens and
 * reaches some of the others (mesh).  Addresses:
 *
 *     tcp://HOST:PORT   where one listens HOST may be *, every interface, of IPv6
 *                       and IPv4, and PORT may be * or 0, any that is free;
 *                       tcp://[::1]:5555.
 *                       A name is looked up: to listen, IPv4 first, localhost
 *                       being 127.0.0.1; to connect, its addresses in turn
 *     ipc://PATH        a Unix socket
 *
 * A peer is one connection.  Bodies go in pieces, between which urgent packets
 * and heartbeats pass, and never more of them than the other end has said it
 * has room for (docs/wire.md).  On an address that others can reach, TLS 1.3
 * encrypts, and who has no listed key gets no packet through.
 */
#ifndef KOFN_NET_H
#define KOFN_NET_H

#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 and NULL mean the default everywhere. */
typedef struct kofn_net_options {
    size_t size; /* of this struct: KOFN_NET_OPTIONS_INIT */
    /* The longest body that is received; who sends a longer one is
     * disconnected before memory is asked for.  Default 64 MiB, 2^48
     * bytes at most.  The transport's body_max starts there and may be lowered. */
    size_t body_max;
    /* Bytes that may come from one peer before they are waited for, and bytes
     * that may wait to be sent to it, counting 320 for each packet besides its
     * body; for urgent packets a quarter.  A longer body is asked for when
     * nothing else is there, and goes alone.  Default 32 MiB, at least 4 KiB.
     * Where a key or a host has many connections, later ones have less each. */
    size_t peer_bytes;
    /* A peer that is silent for so long is lost; at least 0.1 s, at most an hour,
     * default 0.8 s.  Time in which this process did not run does not count. */
    kofn_time silence;
    /* How many connections may be open that belong to no peer yet; one of them is
     * ended when more come.  With keys 160 of the first 1024 may shake hands at a
     * time, and all others.  Who has not said who it is after 10 s is ended, too.
     * Default 1024. */
    size_t strangers;
    /* Go without knowing who comes, where others than this machine's users can
     * reach the address. */
    bool insecure;
    /* A folder as kofn_net_keygen makes it: everything is encrypted, and only
     * listed keys come in.  The coordinator reads coordinator.key and
     * coordinator.crt there; a worker worker.key, worker.crt and
     * coordinator.crt; a node of a mesh worker.key and worker.crt, which all
     * nodes have unless each has its own, as kofn_net_keygen makes it too. */
    const char *keys;
    /* The keys that are let in: a folder of NAME.crt, or a file of certificates
     * one behind the other, whose names are within; it is looked at again every
     * second, and a peer that is not listed any more is lost.  Default `keys`,
     * where coordinator.crt does not count. */
    const char *allow;
    /* Instead of `keys`, files of another CA (PEM): its certificates, ours with
     * those between, and the secret key of ours.  Whoever has a certificate of that
     * CA comes in; its name is the first DNS name or URI in it, or else its CN.  A
     * worker may say whose certificate it expects: NAME@ADDRESS; otherwise whoever
     * has one may be its coordinator.  The files are looked at every second, and
     * when they change, connections that are made from then on use the new ones. */
    const char *tls_ca, *tls_cert, *tls_key;
} kofn_net_options;
#define KOFN_NET_OPTIONS_INIT                                                  \
    {                                                                          \
        sizeof(kofn_net_options), 0, 0, 0, 0, false, NULL, NULL, NULL, NULL,   \
            NULL                                                               \
    }

/* The coordinator's end.  KOFN_INVAL: the address is none, or not safe;
 * KOFN_TRANSPORT: it cannot be had. */
KOFN_API kofn_status kofn_net_listen(kofn_transport **out, const char *address,
                                     const kofn_net_options *o);
/* A worker's end: its only peer is whoever listens at the address, and comes
 * as often as a connection is made. */
KOFN_API kofn_status kofn_net_connect(kofn_transport **out, const char *address,
                                      const kofn_net_options *o);
/* A node among equals: listens at `address`, and reaches others with `reach`,
 * which keeps trying.  Two nodes that reach each other are one peer to each
 * other, not two.  Where each node has a key of its own, the one that is expected
 * at an address is named: NAME@ADDRESS, of a NAME.crt that is listed. */
KOFN_API kofn_status kofn_net_mesh(kofn_transport **out, const char *address,
                                   const kofn_net_options *o);

/* `name` NULL: makes new keys in `dir`: coordinator.key, coordinator.crt, worker.key and
 * worker.crt.  The folder is made if need be, for its owner alone.  KOFN_IO: there
 * are keys already, which stay as they are, or it cannot be written.
 *
 * Else a key for one worker, or for those who trust each other and are to count as
 * one: NAME.crt in `dir`, which lists it, and a folder `dir`/NAME for the worker.
 * The coordinator's keys are made if there are none.  A name is 1 to 50 letters,
 * digits and ._- and begins with a letter or a digit. */
KOFN_API kofn_status kofn_net_keygen(const char *dir, const char *name);

/* How many keys may come in now; 0: anybody (of a CA), or it does not listen. */
KOFN_API size_t kofn_net_listed(const kofn_transport *t);
/* Where it really listens ("tcp://127.0.0.1:40321"), or connects to. */
KOFN_API const char *kofn_net_endpoint(const kofn_transport *t);
/* Why the last connection was not made or not kept, in words; "" when nothing
 * is amiss. */
KOFN_API const char *kofn_net_trouble(const kofn_transport *t);

#ifdef __cplusplus
}
#endif
#endif
