/* task_outcomes.h -- the tasks of all open products and their outcomes; and the
 * observers of them: metrics.c, trace.c, record.c, page.c.
 *
 * All of it follows from three sources: the events that the coordinator
 * received, the actions that it returned, and the moments that only the body
 * knows (kf_task_outcomes_note).  The journal has the same three
 * (docs/journal.md), so that a running job and a replay give the same results.
 *
 * Observers change nothing.  A failure of an observer is reported when it ends,
 * and harms no round.  The pointers of a moment are valid during the call. */
#ifndef KF_FATES_H
#define KF_FATES_H

#include "core/core.h"
#include "data/data.h"

/* The outcome of a task. */
typedef enum kf_task_outcome {
    KF_OUTCOME_OUT,       /* outstanding */
    KF_OUTCOME_CAME,      /* its result came */
    KF_OUTCOME_USED,      /* its result came, and was decoded or compared */
    KF_OUTCOME_WRONG,     /* its result came, and was found wrong */
    KF_OUTCOME_CANCELLED, /* no longer needed, and not come before the end */
    KF_OUTCOME_FAILED,    /* the worker could not compute it */
    KF_OUTCOME_LOST,      /* the worker left */
    KF_OUTCOMES
} kf_task_outcome;

typedef struct kf_slot {
    uint32_t task, worker, row; /* number of the task */
    size_t group, lo, hi;
    kofn_time sent, since; /* since: when its worker could begin; for
                              observers */
    kofn_time over,
        took; /* when its outcome was known; the worker's own time */
    kf_task_outcome outcome;
    bool awaited; /* pace.c: a submessage that was sent for and has not come */
    kf_buffer *result; /* loop.c: NULL until it has come */
} kf_slot;

/* The tasks of one product, by ascending number. */
typedef struct kf_slots {
    uint32_t product; /* its number in the core */
    kofn_time began;
    kf_slot *task;
    size_t count, cap;
} kf_slots;

typedef enum kf_moment_type {
    KF_PASS,    /* none: time has passed */
    KF_JOINED,  /* a worker has joined */
    KF_STORED,  /* a worker has stored its block */
    KF_LEAVING, /* a worker will leave */
    KF_LEFT,    /* a worker has left */
    KF_TASK,    /* `task`, reported at the end of its product */
    KF_LISTS,   /* a round of a stream is over: `lists` */
    KF_STORING, /* a block was sent to a worker */
    KF_SPENT,   /* from, to, what: the coordinator's own work */
    KF_ROUND    /* from, to, status, round: it is over; follows its tasks */
} kf_moment_type;

typedef struct kf_moment {
    kf_moment_type type;
    kofn_time from, to; /* on the port's clock; equal if the moment has no
                           duration */
    const char *what;   /* "encode", "mix", "decode" or "check" */
    kofn_status status;
    unsigned round;
    uint32_t worker;
    const kf_slot *task;
    const kofn_stream_round *lists;
} kf_moment;

/* The first member of every observer. */
typedef struct kf_observer kf_observer;
struct kf_observer {
    kf_observer *next; /* the next one in the list */
    const char *name;
    kofn_status (*see)(kf_observer *o, const kf_moment *m);
    /* Writes its file, unless `keep` is false, and frees the observer. */
    kofn_status (*end)(kf_observer *o, bool keep);
    kofn_status
        failed; /* the first failure, and its message (task_outcomes.c) */
    char why[256];
};

/* Open an observer and put it at the front of the list. */
kofn_status kf_metrics_new(kf_observer **list, const kofn_job *j,
                           const char *path);
/* `port`: its name. */
kofn_status kf_trace_new(kf_observer **list, const kofn_plan *plan,
                         const char *port, const char *path);
kofn_status kf_record_new(kf_observer **list, const kofn_plan *plan,
                          const char *path);
/* `j`: NULL for the journal of a job, which `core` replays. */
kofn_status kf_page_new(kf_observer **list, const kofn_job *j,
                        const kofn_core *core, const kofn_plan *plan,
                        const char *port, const char *path);
/* Tell the page, if there is one among the observers, what only the body of the
 * job knew: the name of a worker; the totals, and the sentence about the
 * run. */
kofn_status kf_page_name(kf_observer *list, uint32_t worker, const char *name);
kofn_status kf_page_totals(kf_observer *list, const kofn_report *total,
                           const char *verdict);
/* Adds a line to the page, if there is one among the observers. */
kofn_status kf_page_caption(kf_observer *list, const char *name,
                            const char *words);

/* A check without a verdict. */
typedef struct kf_unjudged {
    uint32_t product, number, *tasks;
    size_t count;
} kf_unjudged;

typedef struct kf_task_outcomes {
    const kofn_core *core; /* receives the same events */
    bool abort;            /* in_flight is KOFN_IN_FLIGHT_ABORT */
    kofn_time now;         /* time of the last event */
    kf_slots **open;
    size_t opens, open_cap;
    kf_slots *spare; /* kept for its memory */
    kf_unjudged *asked;
    size_t asks, ask_cap;
    kofn_time *ended; /* per worker, for observers: when its last task ended */
    size_t enders;
    kf_observer *observers;
} kf_task_outcomes;

/* ---- task_outcomes.c ----------------------------------------------------- */

/* Begins the tasks of this product. */
kofn_status kf_task_outcomes_open(kf_task_outcomes *f, uint32_t product,
                                  kf_slots **out);
/* Forgets the product.  Its results belong to the caller. */
void kf_task_outcomes_close(kf_task_outcomes *f, uint32_t product);
/* Records an event; call it before the core's step. */
kofn_status kf_task_outcomes_event(kf_task_outcomes *f, const kofn_event *ev);
/* Records an action of that step; call it before the action is carried out. */
kofn_status kf_task_outcomes_action(kf_task_outcomes *f, const kofn_action *a);
void kf_task_outcomes_note(kf_task_outcomes *f, const kofn_note *n);
void kf_task_outcomes_tell(const kf_task_outcomes *f, const kf_moment *m);
/* Opens a trace and a record for a job with this plan and port.  A NULL path
 * means none. */
kofn_status kf_task_outcomes_watch(kf_task_outcomes *f, const kofn_plan *plan,
                                   const char *port, const char *trace,
                                   const char *record);
/* Returns the number of results that were not needed, whether or not they
 * came. */
unsigned kf_task_outcomes_late(const kf_slots *t);
/* Ends the observers.  Fails with the first failure of an observer. */
kofn_status kf_task_outcomes_end(kf_task_outcomes *f, bool keep);
/* Frees everything.  Observers that are still open write no file. */
void kf_task_outcomes_free(kf_task_outcomes *f);

/* Returns a task of the product; NULL if there is none. */
static inline kf_slot *kf_task_outcomes_find(const kf_slots *t, uint32_t task)
{
    return kf_core_find(t->task, t->count, sizeof *t->task, task);
}

#endif
