/* machines.h -- the state of a dry job, and the machines of its workers.
 *
 * dry.c owns the state.  machines.c changes what belongs to workers. */
#ifndef KF_FORECAST_MACHINES_H
#define KF_FORECAST_MACHINES_H

#include "dry.h"

#include "base/heap.h"
#include "core/core.h"
#include "faults/faults.h"

/* Seconds of simulated time after which a job counts as stuck. */
#define FOR_EVER 1e8
enum { STORED, ARRIVE, SLICED, COMPUTED, REPORT, LEAVE, JOIN };

typedef struct task {
    uint32_t number; /* the first member: kf_core_find looks for it */
    uint32_t worker, product, row;
    uint32_t round; /* for the fault model: of a stream, else the product */
    size_t lo, hi;
    double seconds; /* of computing, if it waits for no core */
    double left;    /* of them */
    kofn_time since, took;
    bool cancelled;
} task;

typedef struct worker {
    bool gone, busy;
    bool on_core;     /* it computes now */
    bool waits;       /* it waits for a core */
    bool woke;        /* it has slept: it gets the next free core */
    double used;      /* seconds on the core since it waited for one */
    kofn_time until;  /* when it gives the core back, if it has one */
    uint32_t at;      /* index of the task, if busy */
    uint32_t product; /* whose input it has */
    uint32_t began;   /* round of the last task that it began */
    uint32_t *queue;  /* indices of tasks, from `first` on */
    size_t first, count, cap;
} worker;

/* The workers that wait for a core. */
typedef struct dry_turns {
    uint32_t *worker; /* workers that wait for one, from `next` on; some wait no
                       * more */
    size_t next, count, cap;
} dry_turns;

/* The tasks. */
typedef struct dry_tasks {
    task *task;
    size_t count, cap;
} dry_tasks;

/* Checks without a verdict. */
typedef struct dry_checks {
    uint32_t *check; /* numbers of checks without a verdict, and products */
    size_t count, cap;
} dry_checks;

/* When the coordinator and its link are free. */
typedef struct dry_link {
    kofn_time free;    /* when the coordinator has done what it was asked for */
    kofn_time out, in; /* when its link is free */
} dry_link;

typedef struct dry {
    const kofn_plan *plan;
    const kofn_forecast_options *opt;
    const kofn_costs *costs;
    kofn_core *core;
    kofn_faults faults;
    kf_heap heap;
    size_t computing; /* workers on a core */
    double lost;      /* seconds of a core that the coordinator took from the
                       * next worker */
    double each;      /* seconds of a worker for a multiply-add */
    double stride;    /* seconds after which it sees that it is cancelled; 0:
                       * at once */
    kofn_time now;    /* present time */
    worker *worker;
    size_t workers, cap;
    uint32_t joins;
    bool over;          /* the product or, in a stream, the round has ended */
    unsigned delivered; /* products */
    uint32_t rounds;    /* that began */
    kofn_status ended;
    kf_dry_times *times;
    dry_turns turn;
    dry_tasks task;
    dry_checks check;
    dry_link link;
} dry;

static inline kofn_time seconds(double s)
{
    return kf_faults_nanoseconds(s);
}

static inline kofn_status schedule(dry *d, kofn_time at, uint32_t kind,
                                   uint32_t w, uint32_t index)
{
    if (at >= KOFN_NEVER)
        return KOFN_OK; /* it never happens */
    return kf_heap_push(
        &d->heap,
        (kf_heap_entry){.time = at, .kind = kind, .worker = w, .task = index});
}

/* Returns the seconds that the coordinator's link takes for these bytes.  If
 * workers are processes of this machine, each end takes a core for as long. */
static inline double kf_dry_moving(const dry *d, double bytes)
{
    double width = d->costs->bandwidth;

    return width > 0 ? bytes / width : 0;
}

static inline void wait_for(dry *d, kofn_time t)
{
    if (d->now < t)
        d->now = t;
}

/* Adds a worker, and schedules its departure. */
kofn_status kf_machine_add(dry *d, uint32_t *id);
/* Queues a task before those of later rounds, as workers do. */
kofn_status kf_machine_arrive(dry *d, uint32_t id, uint32_t at);
/* Ends a worker's turn on a core; ends the sleep after a task. */
kofn_status kf_machine_sliced(dry *d, const kf_heap_entry *e);
kofn_status kf_machine_wake(dry *d, uint32_t id, uint32_t at);
/* Stops the task that the worker computes, once it sees that, and starts the
 * next. */
kofn_status kf_machine_drop(dry *d, uint32_t id);
/* Stops a worker for good. */
void kf_machine_stop(dry *d, uint32_t id);

#endif
