/* net.h -- transport over TCP and Unix sockets, for machines that come and go.
 *
 * For coordinators (kofn_port_away), workers (kofn_serve) and nodes of a mesh
 * (<kofn/peer.h>) that run as separate processes or on separate machines.
 *
 * The coordinator listens, and workers connect to it; they reconnect
 * automatically after every loss.  In a mesh every node listens, and connects
 * to some of the others.  Addresses:
 *
 *     tcp://HOST:PORT   To listen, HOST may be *, which means every interface
 *                       with IPv6 and IPv4.  PORT may be * or 0, which means
 *                       any free port.  An IPv6 address is in brackets:
 *                       tcp://[::1]:5555.  A host name is looked up.  To
 *                       listen, IPv4 is preferred, and localhost means
 *                       127.0.0.1.  To connect, its addresses are tried in
 *                       turn.
 *     ipc://PATH        A Unix socket.
 *
 * A peer is one connection.  Bodies are sent in pieces, so urgent packets and
 * heartbeats pass between them.  No more is sent than the receiver has room for
 * (docs/wire.md).  With keys, connections use TLS 1.3, and only peers with a
 * listed key are admitted.  An address that others can reach needs keys, or the
 * option `insecure`.
 */
#ifndef KOFN_NET_H
#define KOFN_NET_H

#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of a transport.  0 and NULL mean the default. */
typedef struct kofn_net_options {
    size_t size; /* sizeof(kofn_net_options); set by KOFN_NET_OPTIONS_INIT */
    /* Longest body that is received, in bytes; at most 2^48, default 64 MiB.  A
     * peer that sends a longer one is disconnected before memory is allocated.
     * It is the initial kofn_transport.body_max, which may be lowered. */
    size_t body_max;
    /* Buffer of a peer, in bytes: at least 4 KiB, at most 2^48, default 32 MiB.
     * It limits the data that is received before the caller waits for it.  It
     * also limits the data that waits to be sent, where each packet counts 320
     * bytes besides its body.  Urgent packets have a quarter of it.  A longer
     * body is requested when the buffer is empty, and travels alone.  If a key
     * or host has many connections, later ones have smaller buffers. */
    size_t peer_bytes;
    /* A peer that is silent for this time is lost.  0.1 s .. 1 h, default
     * 0.8 s.  Time in which this process was suspended does not count. */
    kofn_time silence;
    /* Most open connections that have not become a peer; default 1024.  If
     * there are more, one of them is closed.  With keys, at most 160 of the
     * first 1024 are in the TLS handshake at a time; those beyond 1024 are not
     * limited.  A connection that has not identified itself within 10 s is
     * closed, too. */
    size_t strangers;
    /* Allows an address that other users or machines can reach without keys, so
     * that peers are not identified. */
    bool insecure;
    /* Folder of keys, as kofn_net_keygen makes it.  It enables encryption, and
     * only listed keys are admitted.  The coordinator reads coordinator.key and
     * coordinator.crt.  A worker reads worker.key, worker.crt and
     * coordinator.crt.  A node of a mesh reads worker.key and worker.crt, which
     * nodes share unless each has its own. */
    const char *keys;
    /* The admitted keys: a folder of files NAME.crt, or one file of
     * concatenated certificates, which contain the names.  It is read again
     * every second.  A peer that is no longer listed is disconnected.  Default:
     * the folder `keys` without coordinator.crt. */
    const char *allow;
    /* Alternative to `keys`: PEM files of another CA.  `tls_ca` has its
     * certificates.  `tls_cert` has the certificate of this process and the
     * intermediate ones.  `tls_key` has the secret key of this process.  Every
     * certificate of the CA is admitted.  Its name is the first DNS name or URI
     * in it, or else its CN.  A worker may name the certificate that it
     * expects, as NAME@ADDRESS.  Otherwise any certificate of the CA may be its
     * coordinator.  The files are read again every second; changes apply to new
     * connections. */
    const char *tls_ca, *tls_cert, *tls_key;
} kofn_net_options;
#define KOFN_NET_OPTIONS_INIT                                                  \
    {                                                                          \
        sizeof(kofn_net_options), 0, 0, 0, 0, false, NULL, NULL, NULL, NULL,   \
            NULL                                                               \
    }

/* Opens the coordinator's end, which listens at the address.  `o` may be NULL.
 * Close *out with its close function, unless kofn_port_away has taken it over;
 * it is NULL on failure.
 * KOFN_INVAL: the address is malformed or needs keys, or an option is out of
 * range.
 * KOFN_TRANSPORT: the address is not available, or file descriptors run out.
 * KOFN_IO: keys cannot be read, or the system has no random numbers.
 * KOFN_FORMAT: a file of keys or certificates is malformed.
 * KOFN_UNSUITED: the library was built without sockets. */
KOFN_API kofn_status kofn_net_listen(kofn_transport **out, const char *address,
                                     const kofn_net_options *o);
/* Opens a worker's end.  Its only peer is the coordinator at the address, with
 * a new peer number for each connection.  With a CA, the address may be
 * NAME@ADDRESS.  A missing coordinator is no failure (kofn_net_trouble).
 * Arguments are as for kofn_net_listen.
 * It returns the statuses of kofn_net_listen. */
KOFN_API kofn_status kofn_net_connect(kofn_transport **out, const char *address,
                                      const kofn_net_options *o);
/* Opens the end of a node of a mesh, which listens at the address.  Its `reach`
 * function connects to other nodes, and keeps trying.  Two nodes that connect
 * to each other are one peer, not two.  If each node has its own key, reach
 * NAME@ADDRESS, with NAME from a listed NAME.crt.  Arguments are as for
 * kofn_net_listen.
 * It returns the statuses of kofn_net_listen. */
KOFN_API kofn_status kofn_net_mesh(kofn_transport **out, const char *address,
                                   const kofn_net_options *o);

/* Makes keys in the folder `dir`, which is created for its owner alone if it
 * does not exist.  Existing keys are never overwritten.
 *
 * If `name` is NULL, it makes coordinator.key, coordinator.crt, worker.key and
 * worker.crt.  Otherwise it makes a key for one worker, or for several that
 * count as one principal.  It writes NAME.crt in `dir`, which lists the key,
 * and a folder `dir`/NAME for the worker.  The coordinator's keys are made if
 * there are none.  A name has 1 to 50 letters, digits and ._- and begins with a
 * letter or a digit.
 * KOFN_INVAL: the name is invalid.
 * KOFN_IO: such keys exist, or a file cannot be written.
 * KOFN_TRANSPORT: OpenSSL fails.
 * KOFN_UNSUITED: the library was built without sockets. */
KOFN_API kofn_status kofn_net_keygen(const char *dir, const char *name);

/* Returns the number of keys that are admitted at present.  0 if all
 * certificates of a CA or all peers are admitted, or if the transport does not
 * listen. */
KOFN_API size_t kofn_net_listed(const kofn_transport *t);
/* Returns the address at which it listens, with the actual port, such as
 * "tcp://127.0.0.1:40321", or to which it connects.  Owned by the transport. */
KOFN_API const char *kofn_net_endpoint(const kofn_transport *t);
/* Returns the reason why the last connection failed or ended; "" if all is
 * well.  Valid until the next call. */
KOFN_API const char *kofn_net_trouble(const kofn_transport *t);

#ifdef __cplusplus
}
#endif
#endif
