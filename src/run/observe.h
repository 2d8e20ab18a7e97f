/* observe.h -- what a job shows to those who watch it: metrics.c, trace.c,
 * record.c.
 *
 * They see and do not touch: what fails in them is told by kofn_finish and
 * harms no round.  Without any of them a job does nothing for it but remember
 * when tasks were sent and came.
 *
 * What a moment points to is the job's and holds during the call. */
#ifndef KF_OBSERVE_H
#define KF_OBSERVE_H

#include "core/core.h"

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

typedef enum kf_moment_type {
    KF_PASS,    /* nothing, but time has passed             */
    KF_JOINED,  /* worker is here                           */
    KF_STORING, /* ... its block is on its way              */
    KF_STORED,  /* ... and there                            */
    KF_LEAVING, /* it will go                               */
    KF_LEFT,    /* it is gone                               */
    KF_SPENT,   /* from, to, what: the coordinator's own work */
    KF_TASK,    /* at the end of its round: all of the below  */
    KF_ROUND,   /* from, to, status; after its tasks          */
    KF_LISTS    /* a round of a stream is over: kf_core_round  */
} kf_moment_type;

typedef struct kf_moment {
    kf_moment_type type;
    kofn_time from, to; /* on the port's clock; of a moment both are the same */
    const char *what;
    kofn_status status;
    unsigned round;
    uint32_t worker, task;
    kf_fate fate;
    size_t group, row, lo, hi;
    kofn_time sent; /* TASK: `from` is when the worker could begin with it */
    kofn_time took; /* the worker's own work; 0: unknown */
} kf_moment;

typedef struct kf_observer kf_observer;
struct product;

/* First member of every observer. */
struct kf_observer {
    void (*see)(kf_observer *o, const kofn_job *j, const kf_moment *m);
    /* The last look; frees the observer.  Tells its first failure. */
    kofn_status (*end)(kf_observer *o, const kofn_job *j);
};

kofn_status kf_metrics_new(kf_observer **out, const kofn_job *j,
                           const char *path);
kofn_status kf_trace_new(kf_observer **out, const kofn_job *j,
                         const char *path);
kofn_status kf_record_new(kf_observer **out, const kofn_job *j,
                          const char *path);

/* ---- observe.c ----------------------------------------------------------- */

/* Opens the observers that the options ask for. */
kofn_status kf_observe(kofn_job *j);
void kf_run_tell(const kofn_job *j, const kf_moment *m);
void kf_run_tell_worker(const kofn_job *j, kf_moment_type type,
                        uint32_t worker);
/* The tasks of the product and the product, once. */
void kf_run_tell_product(kofn_job *j, struct product *p, kofn_status st);

/* An event has come: whom and what it concerns. */
void kf_job_record(kofn_job *j, const kofn_event *ev);
/* Nothing more comes of what this worker has in hand. */
void kf_job_lose(kofn_job *j, uint32_t worker);
/* A task that is out is so no more. */
void kf_job_over(kofn_job *j, struct product *p, uint32_t task, kf_fate fate);
/* The results of these tasks were used; those of a check, see who is corrupt. */
void kf_job_use(struct product *p, const kofn_action *a);
void kf_job_corrupt(kofn_job *j, struct product *p, const kofn_action *a);
/* How many of its results were not needed, whether or not they came. */
unsigned kf_job_late(const struct product *p);

#endif
