/* fleet.h -- who is there: workers, their seats, their speeds, who answers for
 * them.  Nothing in here knows what is being computed.
 *
 * The fleet owns its tables.  Only files of this folder may read them, and
 * only fleet.c may write the counts. */
#ifndef KF_CORE_FLEET_H
#define KF_CORE_FLEET_H

#include "core.h"

#include "base/base.h"
#include "base/blame.h"

#define KF_NOBODY UINT32_MAX

/* A principal answers for one worker or for several: what they say may be one
 * lie. */
typedef struct kf_principal {
    kf_blame blame; /* a product in which one of them was located counts once */
    size_t seats;   /* scratch */
} kf_principal;

typedef struct kf_worker {
    kofn_worker_state state;
    uint32_t seat;
    uint32_t principal; /* 0: its own */
    uint32_t place;     /* among the live members of its group, where listed */
    uint32_t from;      /* the first product it takes part in */
    kf_blame blame;     /* by itself, if nobody answers for it */
    size_t out;         /* tasks in hand                      */
    double speed;       /* strips per second, smoothed; 0 unknown */
    kofn_time last;     /* result, or being asked when it was idle */
} kf_worker;

/* The seats of one group of the code. */
typedef struct kf_bench {
    size_t members; /* seats that are taken           */
    size_t taken;   /* all before this local one are  */
} kf_bench;

typedef struct kf_fleet {
    size_t groups, most; /* of the code; seats that a group may have */
    kf_worker *worker;
    unsigned *located; /* per worker: products it was located in */
    size_t workers, worker_cap, located_cap;
    kf_blame blame;                      /* of all who are not excluded */
    size_t in_state[KOFN_WORKER_STATES]; /* how many workers */
    kf_principal *principal;             /* by number; the first is nobody */
    size_t principals, principal_cap;
    size_t allowed; /* seats that a principal may have; 0: no limit */
    uint32_t *seat; /* worker on each seat, or KF_NOBODY */
    size_t seats, seat_cap;
    kf_bench *bench;       /* per group */
    size_t fewest, fuller; /* no group has fewer members; groups before this
                              one have more */
    size_t looked;         /* groups and seats looked at to find empty seats */
    size_t busy;           /* workers with tasks in hand */
} kf_fleet;

kofn_status kf_fleet_open(kf_fleet *f, size_t groups, size_t most,
                          size_t allowed);
void kf_fleet_close(kf_fleet *f);
/* Make room for a worker and a principal that were not heard of before; false:
 * numbers are given out in order, and these are not the next ones. */
bool kf_fleet_plausible(const kf_fleet *f, uint32_t worker, uint32_t principal);
kofn_status kf_fleet_know(kf_fleet *f, uint32_t worker, uint32_t principal);
void kf_fleet_set(kf_fleet *f, uint32_t worker, kofn_worker_state state);
static inline kofn_worker_state kf_fleet_state(const kf_fleet *f,
                                               uint32_t worker)
{
    return worker < f->workers ? f->worker[worker].state : KOFN_WORKER_UNKNOWN;
}

/* May it answer? */
static inline bool kf_fleet_works(const kf_fleet *f, uint32_t worker)
{
    kofn_worker_state state = kf_fleet_state(f, worker);

    return state == KOFN_WORKER_LIVE || state == KOFN_WORKER_LEAVING;
}

/* Has it a seat? */
static inline bool kf_fleet_seated(const kf_fleet *f, uint32_t worker)
{
    return kf_fleet_works(f, worker) ||
           kf_fleet_state(f, worker) == KOFN_WORKER_STORING;
}

/* Does this principal have all the seats that it may have? */
bool kf_fleet_crowded(const kf_fleet *f, uint32_t principal);
/* The lowest empty seat of a group with the fewest members, or the next fresh
 * one; seats that are `spent` are taken last.  False: there is none. */
bool kf_fleet_choose(kf_fleet *f, bool (*spent)(const void *ud, size_t seat),
                     const void *ud, size_t *seat);
kofn_status kf_fleet_assign_seat(kf_fleet *f, uint32_t worker, size_t seat);
void kf_fleet_release_seat(kf_fleet *f, uint32_t worker);
/* Count one task more, or one less, in the worker's hands. */
void kf_fleet_ask(kf_fleet *f, uint32_t worker, kofn_time now);
void kf_fleet_unask(kf_fleet *f, uint32_t worker);
/* The worker did this number of strips; `took` is its own time, or 0. */
void kf_fleet_measure(kf_fleet *f, uint32_t worker, size_t strips,
                      kofn_time now, kofn_time took);
/* NULL, or what is wrong with it. */
const char *kf_fleet_check(const kf_fleet *f);

#endif
