/* job.h -- what the body of the coordinator has in hand, shared by job.c (its
 * life and rounds), loop.c (passes of its loop) and act.c (what the core has it
 * do). */
#ifndef KF_RUN_JOB_H
#define KF_RUN_JOB_H

#include "observe.h"
#include "run.h"

/* A task of the product and, once it has come, its result. */
typedef struct slot {
    kofn_parcel *result;
    uint32_t worker, row;
    size_t group, lo, hi;
    kofn_time sent, over, took; /* over: when its fate was known; took: the
                                   worker's own work                        */
    kf_fate fate;
} slot;

struct kofn_job {
    const kofn_plan *plan;
    kofn_port *port;
    kofn_core *core;
    kf_resident resident;
    kf_journal *journal;
    kofn_options opt;
    size_t next_event; /* of opt.events */
    bool placed;
    kofn_status broken; /* nothing works any more */

    const kofn_plan *use; /* the plan, or its left product */
    kf_guard guard;
    kf_messages messages; /* the round's input             */
    kofn_action *todo;    /* of the step in hand */
    size_t todo_cap;
    slot *slot; /* by task number - first_task */
    size_t slots, slot_cap;
    uint32_t first_task, next_task;
    kf_pool spare; /* of parcels of results */
    kofn_matrix out;
    double back;       /* results are multiplied by it */
    kofn_status odd;   /* the first thing wrong with what was decoded ... */
    char why_odd[160]; /* ... in words                                  */
    kf_scratch scratch;
    kf_tally tally; /* KOFN_SUM */

    uint32_t *owed;    /* workers to whom blocks are owed ... */
    size_t *owed_seat; /* ... and of which seats           */
    size_t owing, owed_cap, owed_seat_cap;
    size_t greeted;          /* workers that said HELLO and may have a seat */
    size_t storing;          /* workers with a block on its way ...         */
    kofn_time storing_since; /* ... as many as that, by the wall   */
    kofn_time look_at;       /* for who is long at its block; 0: at once  */
    kofn_time pace;          /* of half of those who were given theirs    */
    kofn_time asked; /* when the first round was, on the wall; 0: it is not */
    bool started;    /* there were enough workers for it */

    size_t lo, hi; /* strips that rounds are limited to; hi == 0: all */
    bool begun;    /* the core knows of the round */
    kofn_time began;
    kofn_status ended; /* of the round; KOFN_AGAIN while it runs */
    kofn_report rep;   /* since the end of the last round */
    kofn_report total;
    size_t *rows, row_cap, dropped_before;
    kofn_worker_state *states;
    size_t state_cap;
    unsigned *located;
    size_t located_cap;
    unsigned rounds;
    unsigned step; /* what events count; 0: rounds */

    kf_observer *observer[2]; /* who watches; see observe.h */
    size_t observers;
    bool shown; /* the round, to them */
};

/* The number of the product that is under way or comes next. */
static inline uint32_t kf_job_product(const kofn_job *j)
{
    return j->rounds + 1;
}

/* What it uses the resident operand for, as kofn_event has it. */
static inline uint32_t kf_job_use_number(const kofn_job *j)
{
    return j->use != j->plan;
}

static inline kofn_time kf_job_now(const kofn_job *j)
{
    return j->port->now(j->port);
}

/* What events count of the round that is under way or comes next. */
static inline unsigned kf_job_count(const kofn_job *j)
{
    return j->step ? j->step : j->rounds + 1;
}

/* All rounds and what is of none yet. */
void kf_job_sum(const kofn_job *j, kofn_report *sum);

/* act.c */
kofn_status kf_job_act(kofn_job *j, const kofn_action *a);
/* The actions of the core's step in j->todo, with inputs made for all who are
 * given work in it. */
kofn_status kf_job_gather(kofn_job *j, size_t *n);
/* Encode the blocks that are owed, all in one pass over A, and send them. */
kofn_status kf_job_hand_out(kofn_job *j);

/* lease.c */
kofn_time kf_job_lease(const kofn_job *j);
/* A worker has stored its block. */
void kf_lease_stored(kofn_job *j, uint32_t worker);
/* Give up those who do not; *atmost: until it is time to look again. */
kofn_status kf_lease_look(kofn_job *j, kofn_time *atmost);

/* loop.c */
kofn_status kf_job_step(kofn_job *j, kofn_event *ev);
/* Wait for one message or the alarm.  KOFN_AGAIN: `atmost` has passed. */
kofn_status kf_job_pass(kofn_job *j, kofn_time atmost);
/* What is due once this share of the round has come. */
kofn_status kf_job_stage(kofn_job *j, unsigned count, double done);
kofn_status kf_job_stage_now(kofn_job *j);

#endif
