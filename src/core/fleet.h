/* fleet.h -- the workers, their seats, speeds and principals.  The fleet knows
 * nothing of the computation.
 *
 * The fleet owns its tables.  Only files of this folder may read them.  Only
 * fleet.c may write the counts. */
#ifndef KF_CORE_FLEET_H
#define KF_CORE_FLEET_H

#include "core.h"

#include "base/base.h"
#include "base/blame.h"

#define KF_NOBODY UINT32_MAX

/* A principal, such as a key or a host, answers for one or several workers.
 * Wrong answers of these workers may conspire. */
typedef struct kf_principal {
    kf_blame blame; /* a product in which several of its workers were located
                       counts once */
    size_t seats;   /* scratch */
} kf_principal;

typedef struct kf_worker {
    kofn_worker_state state;
    uint32_t seat;
    uint32_t principal; /* 0: the worker answers for itself */
    uint32_t place;     /* index among the live members of its group, if it is
                           listed there */
    uint32_t from;      /* number of the first product it takes part in */
    kf_blame blame;     /* its own, if it has no principal */
    size_t out;         /* outstanding tasks */
    double speed;       /* strips per second, smoothed; 0: unknown */
    kofn_time last;     /* time of its last result, or of the first task given
                           while it was idle */
} kf_worker;

/* The seats of one group of the code. */
typedef struct kf_bench {
    size_t members; /* number of taken seats */
    size_t taken;   /* all seats of the group before this one are taken */
} kf_bench;

typedef struct kf_fleet {
    size_t groups, most; /* groups of the code; seats that a group may have */
    kf_worker *worker;
    unsigned *located; /* per worker: the number of products it was located
                          in */
    size_t workers, worker_cap, located_cap;
    kf_blame blame;                      /* counts of all workers that are not
                                            excluded */
    size_t in_state[KOFN_WORKER_STATES]; /* number of workers in each state */
    kf_principal *principal;             /* by number; number 0 is unused */
    size_t principals, principal_cap;
    size_t allowed; /* seats that a principal may have; 0: no limit */
    uint32_t *seat; /* worker on each seat, or KF_NOBODY */
    size_t seats, seat_cap;
    kf_bench *bench;       /* per group */
    size_t fewest, fuller; /* no group has fewer members than `fewest`, and the
                              groups before `fuller` have more */
    size_t looked;         /* groups and seats examined in searches for empty
                              seats */
    size_t busy;           /* workers with outstanding tasks */
} kf_fleet;

kofn_status kf_fleet_open(kf_fleet *f, size_t groups, size_t most,
                          size_t allowed);
void kf_fleet_close(kf_fleet *f);
/* Make room for a worker and a principal that are new.  Numbers are given out
 * in order.  So kf_fleet_plausible returns false if one is far beyond the known
 * numbers. */
bool kf_fleet_plausible(const kf_fleet *f, uint32_t worker, uint32_t principal);
kofn_status kf_fleet_know(kf_fleet *f, uint32_t worker, uint32_t principal);
void kf_fleet_set(kf_fleet *f, uint32_t worker, kofn_worker_state state);
static inline kofn_worker_state kf_fleet_state(const kf_fleet *f,
                                               uint32_t worker)
{
    return worker < f->workers ? f->worker[worker].state : KOFN_WORKER_UNKNOWN;
}

/* True if the worker may answer. */
static inline bool kf_fleet_works(const kf_fleet *f, uint32_t worker)
{
    kofn_worker_state state = kf_fleet_state(f, worker);

    return state == KOFN_WORKER_LIVE || state == KOFN_WORKER_LEAVING;
}

/* True if the worker has a seat. */
static inline bool kf_fleet_seated(const kf_fleet *f, uint32_t worker)
{
    return kf_fleet_works(f, worker) ||
           kf_fleet_state(f, worker) == KOFN_WORKER_STORING;
}

/* True if this principal has all the seats that it may have. */
bool kf_fleet_crowded(const kf_fleet *f, uint32_t principal);
/* Finds the lowest empty seat of a group with the fewest members, or the next
 * new seat.  Seats for which `spent` is true are taken last.  Returns false if
 * no seat is left. */
bool kf_fleet_choose(kf_fleet *f, bool (*spent)(const void *ud, size_t seat),
                     const void *ud, size_t *seat);
kofn_status kf_fleet_assign_seat(kf_fleet *f, uint32_t worker, size_t seat);
void kf_fleet_release_seat(kf_fleet *f, uint32_t worker);
/* Count one outstanding task more, or less, of the worker. */
void kf_fleet_ask(kf_fleet *f, uint32_t worker, kofn_time now);
void kf_fleet_unask(kf_fleet *f, uint32_t worker);
/* Updates the worker's speed after it computed `strips` strips.  `took` is the
 * worker's own time; if it is 0, the time since `last` counts. */
void kf_fleet_measure(kf_fleet *f, uint32_t worker, size_t strips,
                      kofn_time now, kofn_time took);
/* Returns NULL, or the invariant that does not hold. */
const char *kf_fleet_check(const kf_fleet *f);

#endif
