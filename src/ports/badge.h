/* badge.h -- what a coordinator knows of its workers (names, results, which of
 * them are slow), and its answer to a peer that asks for them and the jobs.
 *
 * A kf_badge belongs to its worker. Nothing here is trusted: names and hosts
 * are what a worker says of itself. */
#ifndef KF_PORTS_BADGE_H
#define KF_PORTS_BADGE_H

#include "post.h"

#include <kofn/fleet.h>

#define KF_NAME_MOST 159 /* bytes of a name */

typedef struct kf_badge {
    uint64_t process;
    size_t memory;
    char host[128], name[160];
    bool named;             /* it was started with this name */
    uint64_t tasks;         /* results */
    double computed, bytes; /* seconds and bytes of these */
    double took, numbers;   /* of the product that is looked at */
    unsigned rounds;        /* products that were compared */
    unsigned slow_rounds;   /* the last of them, one after another */
    double slow;            /* see kofn_fleet_worker */
} kf_badge;

/* Reads what a worker says in its hello. */
void kf_badge_read(kf_badge *c, const kf_head *h, const kofn_packet *k);
/* Counts a result. */
void kf_badge_count(kf_badge *c, const kf_head *h, size_t bytes);
/* Compares the workers after a product, and begins the next. A worker is slow
 * if it took more than 1.15 times the median for each number in ten products,
 * one after another. */
void kf_badge_compare(kf_badge *const *badge, size_t n, double *scratch);
/* Describes a worker for a program. The text belongs to the badge. */
kofn_fleet_worker kf_badge_describe(const kf_badge *c, kofn_fleet_state state);
/* Sends a job to a peer that asks; nothing if the job has said nothing. False
 * if the peer does not read. */
bool kf_badge_tell_job(kofn_transport *t, kofn_peer peer, const kf_doing *d);
/* Sends a worker to a peer that asks; NULL: ends the answer, with words if it
 * is a refusal. False if the peer does not read. */
bool kf_badge_tell(kofn_transport *t, kofn_peer peer,
                   const kofn_fleet_worker *w, const char *words);
/* Returns NULL if a peer may drain a worker; else why it may not. Workers with
 * a key are drained by their own and by that of "operator". */
const char *kf_badge_may_drain(kofn_transport *t, kofn_peer asks,
                               kofn_peer worker);

#endif
