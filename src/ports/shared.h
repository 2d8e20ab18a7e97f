/* shared.h -- a fleet's data. Shared by shared.c (opening, closing and what
 * users ask), shared_members.c (workers and their packets), shared_channel.c
 * (the transport that a job sees), shared_port.c (the port that a job sees) and
 * spawn.c (workers that are processes of this machine).
 *
 * `lock` guards everything except what `shape` guards. A thread holds it in all
 * functions of the ports, and not while it waits for packets. One thread at a
 * time waits: it passes packets of other jobs to their ports, which are then
 * not in use. `shape` is for `wanted`, which the transport calls while it has a
 * lock of its own; nothing is called with `shape`. */
#ifndef KF_PORTS_SHARED_H
#define KF_PORTS_SHARED_H

#include "away.h"

#include <kofn/fleet.h>
#include <pthread.h>

/* A peer of the transport. */
typedef struct member {
    bool here, known; /* known: it has said hello */
    bool refused, draining;
    uint64_t owed; /* tasks that it has not answered */
    kf_badge badge;
} member;

/* The transport that a job's port has, over that of the fleet. */
typedef struct channel {
    kofn_transport base;
    kofn_fleet *f;
    port *port;
    struct channel *next;
    uint64_t job;
    double weight;
    bool *met, *invited; /* of each peer: reported to the port; invited */
    size_t peers, invitations;
    size_t waiting;     /* members that are still to be invited */
    bool news;          /* something was passed to the port while it waited */
    kofn_status failed; /* of a packet that was passed to the port */
    size_t largest;     /* bytes of the largest result that was asked for */
    /* where the news of the job go */
    void (*tell)(void *ud, const char *words);
    void *tell_ud;
} channel;

/* Processes that a fleet has started (spawn.c). */
typedef struct spawned spawned;

struct kofn_fleet {
    kofn_transport *t;
    kofn_fleet_options opt;
    pthread_mutex_t lock, shape;
    pthread_cond_t turn;
    bool locks;         /* the three above are there */
    bool waits;         /* a thread waits for packets */
    size_t sleepers;    /* threads that wait for that thread */
    bool closing, news; /* news: something arrived */
    channel *channels;
    spawned *spawned; /* NULL: it has started none */
    member *member;   /* by peer */
    kf_strangers strangers;
    size_t members;
    size_t most; /* members that were there at once, at most */
    uint64_t dropped, transport_dropped;
    char words[400];
};

/* ---- shared_members.c -----------------------------------------------------
 */

/* Handles what arrived. True if it is for this channel, which may be NULL; the
 * packet then belongs to the caller. */
bool kf_shared_arrived(kofn_fleet *f, kofn_packet *k, const channel *own);
/* Lets a job stop waiting for members that are gone, and have its news sent to
 * the job's owner. */
void kf_shared_serve(channel *c, kofn_away_options *o);
/* Invites the members that can be invited now. */
void kf_shared_invite(channel *c);
/* Sends a packet without a body. False if the member's buffer is full. */
bool kf_shared_say(kofn_fleet *f, kofn_peer peer, const kf_head *h,
                   bool urgent);
/* Describes a member. */
kofn_fleet_worker kf_shared_describe(const kofn_fleet *f, kofn_peer peer);
/* Lets the members of that name leave. Returns NULL, or why they do not. `asks`
 * is the peer that asks, or NULL for the program itself. */
const char *kf_shared_drain(kofn_fleet *f, const char *name,
                            const kofn_peer *asks);
/* Ends the connection of a member; the ports of the other jobs are informed. */
void kf_shared_forget(kofn_fleet *f, kofn_peer peer, const channel *own);

/* ---- shared_channel.c -----------------------------------------------------
 */

/* True for results of a size that a job has asked for, from a member. Takes
 * only `shape`. */
bool kf_shared_wanted(void *f, kofn_peer peer, const void *head,
                      size_t head_bytes, size_t body_bytes);
/* Makes the channel of a job. */
kofn_status kf_shared_channel(kofn_fleet *f, channel **out, uint64_t job,
                              double weight);
/* Waits for an arrival, at most `atmost`; with the lock, which is free
 * meanwhile. KOFN_OK: *k is for channel c. */
kofn_status kf_shared_wait(kofn_fleet *f, channel *c, kofn_time atmost,
                           kofn_packet *k);

/* ---- shared_port.c --------------------------------------------------------
 */

/* Makes the port that a job uses of the channel's. Takes over `c` and its
 * port. */
kofn_status kf_shared_guard(kofn_port **out, channel *c);
/* Dismisses the workers of a fleet without jobs, and frees it. */
void kf_shared_end(kofn_fleet *f);

/* ---- spawn.c --------------------------------------------------------------
 */

/* Makes the folder of processes that run `program`, or "kofn" for NULL. */
kofn_status kf_spawn_begin(spawned **out, const char *program);
/* Returns the address at which they expect their coordinator. */
const char *kf_spawn_address(const spawned *s);
/* Starts this number of workers. */
kofn_status kf_spawn_start(spawned *s, size_t workers);
/* Lets a job's port know when spawned workers end, and start and kill them.
 * Leaves the options as they are if the caller starts workers itself. */
void kf_spawn_serve(channel *c, kofn_away_options *o);
/* Waits for the processes of a fleet, ends them, and removes their folder. The
 * transport must be closed before. `s` may be NULL. */
void kf_spawn_end(spawned *s);

#endif
