/* fleet.h -- workers that stay while jobs come and go.
 *
 * A fleet is a transport and the workers that connect to it.  Jobs are opened
 * on it one after another and side by side: each has a port of its own, and
 * kofn_open takes that as it takes other ports.  A worker holds a block for
 * each open job, and its tasks take turns by the weights of the jobs.  When a
 * job is closed, its workers stay connected.
 *
 * Workers of this machine need no preparation (kofn_fleet_spawn).
 *
 * The fleet may be used on several threads, and each of its jobs on another
 * one. If the transport's `threads` is false, all of them use one thread.
 */
#ifndef KOFN_FLEET_H
#define KOFN_FLEET_H

#include <kofn/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A transport, the workers that connect to it, and the jobs that are open. */
typedef struct kofn_fleet kofn_fleet;

/* Options of a fleet. */
typedef struct kofn_fleet_options {
    size_t size;    /* sizeof(kofn_fleet_options)                          */
    size_t workers; /* number that the first round of a job waits for; 1 or
                     * more; default 1.  Without a transport: threads of a
                     * job.                                                */
    /* Receives messages about workers that come, leave or are refused, on the
     * thread that waits.  May be NULL. */
    void (*news)(void *ud, const char *words);
    void *ud; /* passed to news */
    /* For kofn_fleet_spawn: the command, as a path or as a name that is looked
     * up in PATH.  NULL means "kofn". */
    const char *program;
} kofn_fleet_options;
#define KOFN_FLEET_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(kofn_fleet_options), 1, NULL, NULL, NULL                        \
    }

/* What a worker of a fleet does. */
typedef enum kofn_fleet_state {
    KOFN_FLEET_FREE,    /* has no task                     */
    KOFN_FLEET_BUSY,    /* has tasks                       */
    KOFN_FLEET_DRAINING /* finishes its tasks, then leaves */
} kofn_fleet_state;

/* A worker of a fleet. */
typedef struct kofn_fleet_worker {
    size_t size;      /* sizeof(kofn_fleet_worker)                     */
    const char *name; /* as it was started with; else HOST:PROCESS     */
    const char *host; /* name of its machine                           */
    uint64_t process; /* process number there                          */
    size_t memory;    /* limit of its memory in bytes; 0: none         */
    kofn_fleet_state state;
    uint64_t tasks;  /* results that it has sent                      */
    double computed; /* seconds that it computed for these            */
    double bytes;    /* bytes of these                                */
    double slow; /* times as long as others take for the same work; 1: it is not
                  * slow; 0: not enough data */
    uint64_t late; /* rounds of a job that ended without a result that it was
                    * asked for; 0 of a worker of a fleet */
} kofn_fleet_worker;
#define KOFN_FLEET_WORKER_INIT                                                 \
    {                                                                          \
        sizeof(kofn_fleet_worker), NULL, NULL, 0, 0, KOFN_FLEET_FREE, 0, 0, 0, \
            0, 0                                                               \
    }

/* What a job of a coordinator is doing. */
typedef struct kofn_fleet_job {
    size_t size;           /* sizeof(kofn_fleet_job)                       */
    const char *name;      /* see kofn_job_label; "": it has none          */
    const char *scheme;    /* with all its arguments                       */
    const char *unit;      /* what `at` counts, as "round" or "iteration"  */
    uint64_t at, of;       /* the present one, from 1, and their number; 0:
                            * none has begun; it is not known              */
    size_t live, workers;  /* workers that are live; workers of the code   */
    double seconds;        /* since the job was opened                     */
    double sent, received; /* bytes since then                             */
} kofn_fleet_job;

/* Opens a fleet on a transport, which it takes over even on failure.  NULL: the
 * workers are threads of this process, new ones for each job.  `opt` may be
 * NULL.  The caller closes *out with kofn_fleet_close.
 * KOFN_INVAL: `t` is an older, smaller kofn_transport; or no workers. */
KOFN_API kofn_status kofn_fleet_open(kofn_fleet **out, kofn_transport *t,
                                     const kofn_fleet_options *opt);
/* Opens a fleet of `workers` processes of this machine.  It starts the command
 * of kofn as a worker for each one, over a socket in a private folder in TMPDIR
 * or /tmp.  A process that ends is a lost worker, and no other one is started.
 * The processes end with this process, even if it is killed.  kofn_fleet_close
 * waits for them, ends them after 2 s and removes the folder.
 *
 * It installs no signal handler, and waits only for its own processes.  A
 * program that reaps all children itself does no harm.  `opt` may be NULL. The
 * caller closes *out with kofn_fleet_close.
 * KOFN_INVAL: no workers.
 * KOFN_IO: the program cannot be started, or the folder cannot be made.
 * It also returns the statuses of kofn_net_listen. */
KOFN_API kofn_status kofn_fleet_spawn(kofn_fleet **out,
                                      const kofn_fleet_options *opt);
/* Makes a port for one job.  `opt` may be NULL; of it `workers` is the fleet's
 * if it is 0, and `weight` says how much of the workers' time this job has
 * besides others.  A job with a number (`job`) that was closed leaves its
 * blocks at the workers; they need not be sent again if it is opened again with
 * the same A.  The caller owns *out until kofn_open takes it over. KOFN_INVAL:
 * the fleet has an open job with that number; or a weight that is not positive.
 */
KOFN_API kofn_status kofn_fleet_port(kofn_port **out, kofn_fleet *f,
                                     const kofn_away_options *opt);
/* Receives what has arrived, and waits at most `atmost` nanoseconds for
 * something to arrive.  Jobs do that themselves while they wait.
 * KOFN_TRANSPORT: nothing can ever arrive any more. */
KOFN_API kofn_status kofn_fleet_poll(kofn_fleet *f, kofn_time atmost);
/* Returns the number of connected workers. */
KOFN_API size_t kofn_fleet_workers(kofn_fleet *f);
/* Describes connected worker i, from 0.  The text is valid until the next call
 * for this fleet.
 * KOFN_INVAL: there is no such worker. */
KOFN_API kofn_status kofn_fleet_at(kofn_fleet *f, size_t i,
                                   kofn_fleet_worker *w);
/* Lets the worker with that name finish its tasks and leave.
 * KOFN_INVAL: no connected worker has that name. */
KOFN_API kofn_status kofn_fleet_drain(kofn_fleet *f, const char *name);
/* Asks the coordinator behind a transport for its workers, and calls `each`
 * with every one of them.  With a name in `drain`, lets that worker finish its
 * tasks and leave instead.  Waits for an answer at most `atmost` nanoseconds,
 * and closes the transport in any case. KOFN_LATE: there was no answer.
 * KOFN_UNSUITED: no worker has that name; or, at a coordinator with keys, the
 * key of the caller is not that of "operator". */
KOFN_API kofn_status
kofn_fleet_ask(kofn_transport *t, const char *drain, kofn_time atmost,
               void (*each)(void *ud, const kofn_fleet_worker *w), void *ud);
/* Asks in the same way for the open jobs, and calls `job` with every one of
 * them, and then for the workers.  `job` and `each` may be NULL. */
KOFN_API kofn_status kofn_fleet_ask_jobs(
    kofn_transport *t, kofn_time atmost,
    void (*job)(void *ud, const kofn_fleet_job *j),
    void (*each)(void *ud, const kofn_fleet_worker *w), void *ud);
/* Sets what kofn_fleet_ask_jobs says of a job: its name, and that it is at the
 * at-th of `of` units, for example rounds or iterations.  An `at` of 0 stands
 * for the number of products that have begun, and an `of` of 0 is not known.
 * `name` is cut to 63 bytes and `unit` to 15.  Without this call a job has no
 * name, and its products are counted as rounds.
 * Allocates no memory. */
KOFN_API kofn_status kofn_job_label(kofn_job *job, const char *name,
                                    const char *unit, uint64_t at, uint64_t of);
/* Describes worker i of a job, from 0, also if it has left.  `state` is
 * draining or free.  Results are counted that reached the job.  Of workers in
 * this process the text is "".  The text is valid until the job is closed.
 * KOFN_INVAL: no worker has this number yet. */
KOFN_API kofn_status kofn_job_describe(const kofn_job *job, size_t i,
                                       kofn_fleet_worker *w);
/* Dismisses the workers and closes the transport.  If jobs are open, the last
 * one that is closed does so. */
KOFN_API void kofn_fleet_close(kofn_fleet *f);

#ifdef __cplusplus
}
#endif
#endif
