/* connections.h -- the connections of a node, the packets that wait for them,
 * and the quarantine.
 *
 * The host owns all of it (kf_host.net). */

#ifndef KF_MESH_CONNECTIONS_H
#define KF_MESH_CONNECTIONS_H

#include "note.h"
#include "partials.h"

#include "base/blame.h"
#include "base/bucket.h"
#include "verify/sums.h"
#include "wire/outbox.h"

#define KF_PRINTS 16
#define KF_KEPT 4 /* latest announced checkpoints of a connection */
#define KF_MOST_QUARANTINED 64
#define KF_MOST_LIARS 16 /* that can be found in one iterate */

typedef struct kf_host kf_host; /* host.h */

/* The fingerprints that a connection and this node exchange. */
typedef struct kf_witness {
    uint64_t key;    /* key of the fingerprints that it makes for us */
    uint64_t remote; /* key of our fingerprints for it */
    unsigned more;   /* number of later iterates for which it still gets one */
    uint64_t asked_from; /* its iterate when it asked */
    struct {
        uint64_t t;
        bool final, taken;
        double value;
    } print[KF_PRINTS]; /* the fingerprints that came */
    size_t prints;      /* number ever stored */
    /* its fingerprint of the vector to be confirmed, as we compute it */
    struct {
        bool made;
        kf_weighed print;
    } expected;
    bool agrees; /* its fingerprint fits the iterate to be confirmed */
} kf_witness;

/* The sender of a note. */
typedef struct kf_sender {
    kofn_peer peer;
    uint64_t principal;
} kf_sender;

/* A connection.  It speaks for one incarnation, the first that it names, until
 * it ends; 0: it has named none.  Two connections may name the same
 * incarnation, one perhaps falsely.  So misbehaviour counts against the
 * connection and its principal, not against the incarnation. */
typedef struct kf_route {
    kofn_peer peer;
    kofn_incarnation incarnation;
    uint64_t principal;
    bool over; /* it left, or sent something corrupt */
    kf_witness witness;
    struct {
        kofn_iterate_id at;
        kofn_time when;
    } last_sent[2];       /* the last sent: our iterate, and its fingerprint */
    kf_outbox outbox;     /* what waits for it */
    kf_buffer *telling;   /* the iterate that is being sent to it, or NULL */
    kofn_iterate_id base; /* it has this, and needs later changes; or 0 */
    kf_bucket notes;      /* that it has sent */
    uint64_t t;           /* our iterate when they were last counted */
    kf_blame
        blame; /* an iterate with wrong partial products from it counts once */
    uint32_t wrong_seat;
    /* a partial product of this iterate was compared and was right; was wrong
     */
    bool right, errs;
    kofn_iterate_id kept[KF_KEPT]; /* iterates that it has on disk */
    size_t tells;
    unsigned attempt; /* attempt in which it is, or which it wants */
    bool met;         /* it has sent a note of this attempt */
    bool lends_none;  /* it has no blocks, or did not answer in time */
} kf_route;

/* A faulty principal or incarnation, and how often it was found. */
typedef struct kf_quarantine {
    uint64_t who; /* a principal that has a name, else an incarnation */
    bool named;
    unsigned times;
    kofn_time until; /* ignored until this time */
} kf_quarantine;

typedef struct kf_connections {
    kf_route *route;
    size_t routes, route_cap;
    kf_quarantine quarantine[KF_MOST_QUARANTINED];
    size_t quarantined;
    /* found faulty in this iterate, and excluded when it is complete */
    kofn_peer accused[KF_MOST_LIARS];
    size_t accusations;
    kofn_time greeted;
    kofn_time looked; /* when bodies that arrive were last examined */
    /* packets that were dropped: no note of the job, not for us, or too many */
    uint64_t foreign;
} kf_connections;

/* route.c */
/* Accuses a peer, which is excluded when the iterate is complete.  If there is
 * no room, it will be found at its next error. */
void kf_route_accuse(kf_connections *net, kofn_peer peer);
/* Returns NULL if there is no such connection. */
kf_route *kf_route_of(const kf_connections *net, kofn_peer peer);
/* Finds or adds the connection. */
kofn_status kf_route_add(kf_host *h, kofn_peer peer, kf_route **out);
/* True if this connection may speak for that incarnation. */
bool kf_route_is_of(const kf_host *h, kf_route *r,
                    kofn_incarnation incarnation);
/* True if an iterate is still being sent to it; another one would queue behind
 * it. */
bool kf_route_is_announced(kf_route *r);
/* Records that an iterate is sent to it.  *body becomes a separate reference,
 * which shows when the transport releases it. */
kofn_status kf_route_tell(kf_route *r, kf_buffer **body);
/* Releases the iterates that are no longer being sent. */
void kf_route_recall(kf_connections *net);
/* True if a body from it is arriving that will be complete within KF_SLOWEST
 * silences of its start, at its present rate. */
bool kf_route_is_arriving(const kf_host *h, const kf_route *r);
/* Quarantines a faulty connection: its principal is ignored for a while,
 * whatever connection it uses. */
void kf_route_quarantine(kf_host *h, const kf_route *r);
/* True if it is quarantined. */
bool kf_route_is_held(const kf_host *h, kofn_peer peer,
                      kofn_incarnation incarnation);
/* Counts one more packet from it.  True if the packet is read.  *floods: it
 * continues although it has sent far too many. */
bool kf_route_spend(kf_host *h, kf_route *r, bool *floods);

/* queue.c */
/* Returns the number of packets that wait for connections. */
size_t kf_mail_waits(const kf_connections *net);
/* Sends each peer's packets in order, until the transport takes no more. */
void kf_mail_flush(kf_host *h);
/* Sends a packet or lets it wait; takes over the body.  It is lost if too much
 * waits for this peer. */
kofn_status kf_mail_post(kf_host *h, kf_route *r, const kf_letter *l);

/* mail.c */
kofn_status kf_mail_to(kf_host *h, kofn_peer peer, const kf_note *note);
/* Sends the note to all peers that have named their incarnation. */
kofn_status kf_mail_to_all(kf_host *h, const kf_note *note);
/* Sends a heartbeat to all, as a node of that job. */
kofn_status kf_mail_announce(kf_host *h, uint64_t job);
/* Sends a heartbeat, from time to time, to each peer that has sent no note of
 * this attempt. */
kofn_status kf_mail_greet(kf_host *h);
void kf_mail_free(kf_connections *net);
/* Sends the heartbeat of this node to a peer. */
kofn_status kf_mail_hello(kf_host *h, kofn_peer peer);

/* lost.c */
/* Excludes the accused peers, when the iterate is complete. */
kofn_status kf_mail_exclude_accused(kf_host *h);
/* Quarantines a faulty peer and its principal for a while. */
kofn_status kf_mail_exclude(kf_host *h, kofn_peer peer);
/* Handles a connection that came, and greets its node. */
kofn_status kf_mail_came(kf_host *h, kofn_peer peer);
/* Handles a connection that is gone. */
kofn_status kf_mail_went(kf_host *h, kofn_peer peer);
/* Drops all peers: none is there, and none can come. */
kofn_status kf_mail_lose_all(kf_host *h);
/* Stops sending to the peer and receiving from it; with `forget` the transport
 * ends the connection. */
kofn_status kf_mail_part(kf_host *h, kf_route *r, bool forget,
                         kf_node_event_type how);

/* receive.c */
/* Receives all that has come, or waits for at most `atmost`. */
kofn_status kf_mail_receive(kf_host *h, kofn_time atmost);
/* Reports to the coordinator, from time to time, which nodes' bodies are
 * arriving. */
kofn_status kf_mail_look(kf_host *h);

#endif
