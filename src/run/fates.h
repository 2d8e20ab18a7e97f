/* fates.h -- the tasks of all open products and what became of them, and who
 * watches that: metrics.c, trace.c, record.c.
 *
 * All of it follows from the events that the coordinator was told, the actions
 * that it returned, and a few moments besides that the body of the coordinator
 * knows alone: kf_fates_note.  The journal has the same three
 * (docs/journal.md), so that a running job and a replay tell the same.
 *
 * Observers see and do not touch: what fails in them is told when they end and
 * harms no round.  What a moment points to holds during the call. */
#ifndef KF_FATES_H
#define KF_FATES_H

#include "core/core.h"
#include "data/data.h"

/* The fate of a task. */
typedef enum kf_fate {
    KF_FATE_OUT,       /* nothing yet                                      */
    KF_FATE_CAME,      /* its result did ...                               */
    KF_FATE_USED,      /* ... and was decoded or compared with others      */
    KF_FATE_WRONG,     /* ... and was found wrong                          */
    KF_FATE_CANCELLED, /* not needed any more, and not come before the end */
    KF_FATE_FAILED,    /* the worker could not                             */
    KF_FATE_LOST,      /* the worker went                                  */
    KF_FATES
} kf_fate;

typedef struct kf_slot {
    uint32_t task, worker, row; /* task: its number */
    size_t group, lo, hi;
    kofn_time sent, since; /* since: when its worker could begin, for those who
                              watch */
    kofn_time over, took;  /* its fate was known; the worker's own work */
    kf_fate fate;
    bool awaited; /* pace.c: a submessage that was sent for and has not come */
    kf_buffer *result; /* loop.c: once it has come */
} kf_slot;

/* Of one product, in the order of their numbers. */
typedef struct kf_slots {
    uint32_t product; /* its number in the core */
    kofn_time began;
    kf_slot *task;
    size_t count, cap;
} kf_slots;

typedef enum kf_moment_type {
    KF_PASS,    /* nothing, but time has passed                */
    KF_JOINED,  /* worker is here                              */
    KF_STORED,  /* ... and has its block                       */
    KF_LEAVING, /* it will go                                  */
    KF_LEFT,    /* it is gone                                  */
    KF_TASK,    /* `task`, at the end of its product           */
    KF_LISTS,   /* a round of a stream is over: `lists`        */
    KF_STORING, /* the block of worker is on its way           */
    KF_SPENT,   /* from, to, what: the coordinator's own work  */
    KF_ROUND    /* from, to, status, round: it is over; after its tasks */
} kf_moment_type;

typedef struct kf_moment {
    kf_moment_type type;
    kofn_time from, to; /* on the port's clock; of a moment both are the same */
    const char *what;   /* "encode", "mix", "decode" or "check" */
    kofn_status status;
    unsigned round;
    uint32_t worker;
    const kf_slot *task;
    const kofn_stream_round *lists;
} kf_moment;

/* First member of every observer. */
typedef struct kf_observer kf_observer;
struct kf_observer {
    kf_observer *next; /* of the list that it was made for: the one before it */
    const char *name;
    kofn_status (*see)(kf_observer *o, const kf_moment *m);
    /* The last look; frees the observer.  Without `keep` its file is not
     * written. */
    kofn_status (*end)(kf_observer *o, bool keep);
    kofn_status failed; /* first, and why (fates.c) */
    char why[256];
};

/* Each is the first of the list then. */
kofn_status kf_metrics_new(kf_observer **list, const kofn_job *j,
                           const char *path);
/* `port`: the name of it. */
kofn_status kf_trace_new(kf_observer **list, const kofn_plan *plan,
                         const char *port, const char *path);
kofn_status kf_record_new(kf_observer **list, const kofn_plan *plan,
                          const char *path);

/* A check that was asked for, until its verdict. */
typedef struct kf_unjudged {
    uint32_t product, number, *tasks;
    size_t count;
} kf_unjudged;

typedef struct kf_fates {
    const kofn_core *core; /* that is told the same events */
    bool abort;            /* KOFN_IN_FLIGHT_ABORT         */
    kofn_time now;         /* of the last event            */
    kf_slots **open;
    size_t opens, open_cap;
    kf_slots *spare; /* for its memory */
    kf_unjudged *asked;
    size_t asks, ask_cap;
    kofn_time *ended; /* per worker, for those who watch: its last task */
    size_t enders;
    kf_observer *observers;
} kf_fates;

/* ---- fates.c ------------------------------------------------------------- */

/* The tasks of this product, which begins. */
kofn_status kf_fates_open(kf_fates *f, uint32_t product, kf_slots **out);
/* Forgets the product; its results are somebody else's. */
void kf_fates_close(kf_fates *f, uint32_t product);
/* An event, before the core is told of it. */
kofn_status kf_fates_event(kf_fates *f, const kofn_event *ev);
/* An action that it led to, before it is carried out. */
kofn_status kf_fates_action(kf_fates *f, const kofn_action *a);
void kf_fates_note(kf_fates *f, const kofn_note *n);
void kf_fates_tell(const kf_fates *f, const kf_moment *m);
/* Has them told to a trace and a record, of a job with this plan and port; a
 * path that is NULL is not wanted. */
kofn_status kf_fates_watch(kf_fates *f, const kofn_plan *plan, const char *port,
                           const char *trace, const char *record);
/* Results that were not needed, whether or not they came. */
unsigned kf_fates_late(const kf_slots *t);
/* Ends the observers; tells the first failure. */
kofn_status kf_fates_end(kf_fates *f, bool keep);
/* Ends them where they are not at their end. */
void kf_fates_free(kf_fates *f);

/* A task of it, or NULL. */
static inline kf_slot *kf_fates_find(const kf_slots *t, uint32_t task)
{
    return kf_core_find(t->task, t->count, sizeof *t->task, task);
}

#endif
