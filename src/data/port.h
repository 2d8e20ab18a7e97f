/* port.h -- the interface of ports: the messages between one coordinator and
 * its workers.
 *
 * A port carries whole messages and reports which workers come and go.  The
 * function `send` takes the payload over and `wait` returns it, so a payload
 * has one owner at a time.  Only the coordinator's thread calls a port, never a
 * worker's.
 *
 * A port owns a message until it passes it on. */
#ifndef KF_DATA_PORT_H
#define KF_DATA_PORT_H

#include <kofn.h>

/* The block of a seat, with counted references. */
typedef struct kf_block kf_block;
kf_block *kf_block_keep(kf_block *b);
void kf_block_drop(kf_block *b);
size_t kf_block_bytes(const kf_block *b);

/* Contiguous matrices with counted references. */
typedef struct kf_buffer kf_buffer;
kf_buffer *kf_buffer_keep(kf_buffer *p);
void kf_buffer_drop(kf_buffer *p);
kofn_matrix *kf_buffer_matrix(kf_buffer *p);
typedef enum kf_msg_type {
    /* worker to coordinator */
    KF_MSG_HELLO = 1, /* worker: has joined */
    KF_MSG_STORED,    /* worker holds the block                  */
    KF_MSG_NOTICE,    /* worker will leave soon */
    KF_MSG_BYE,       /* worker has left */
    KF_MSG_RESULT,    /* worker, product, task, row, result      */
    KF_MSG_FAILED,    /* the same, status; result is returned */
    KF_MSG_MOVED,     /* worker, principal: without a stored block, it now has
                       * another principal */
    /* coordinator to worker */
    KF_MSG_STORE,  /* worker, block: keep it */
    KF_MSG_WORK,   /* worker, product, task, row, lo, hi, in, result to be
                    * filled */
    KF_MSG_CANCEL, /* worker, task                                  */
    KF_MSG_UPDATE, /* worker, operand, change, in, with: kofn_update of its
                    * block, after all earlier work; without an answer; a worker
                    * that cannot do it leaves */
    KF_MSG_SLICE,  /* worker, operand, state, lo, hi, block: these strips of
                    * its block, also without an answer; without block: all its
                    * blocks are complete and stored */
    /* about a connected worker that does not answer */
    KF_MSG_UNRESPONSIVE, /* worker is evicted, as if it had left; to the
                          * coordinator */
    KF_MSG_EVICT         /* to the port: evict the worker; without a BYE */
} kf_msg_type;

/* The operation of a worker on its block.  The components of a block are
 * matrices of one shape; strips are [lo, hi). */
typedef enum kf_how {
    /* rows of each component times `in`; answers of the components one below
       the other */
    KF_HOW_ROWS,
    /* rows of `in` times each component; answers as above */
    KF_HOW_LEFT_ROWS,
    /* sum of the columns of each component times rows of `in`; there the rows
     * of the components are below each other */
    KF_HOW_INNER,
    /* sum of columns of `in` times rows of each component; in `in` the columns
     * of the components are side by side.  In both, strips beyond the last
     * continue with the first */
    KF_HOW_LEFT_INNER,
    /* the transpose of each component times the component times `in` */
    KF_HOW_GRAM,
    /* one mixture of the values of f for the block's parts */
    KF_HOW_SUBMESSAGE,
    /* the rows of each component, one component below the other; `in` is not
       used */
    KF_HOW_READ,
    /* the value of f for the part with the number of the row */
    KF_HOW_PART
} kf_how;

typedef struct kf_msg {
    kf_msg_type type;
    uint32_t worker;
    uint32_t product, task, row; /* as in kofn_event and kofn_action */
    unsigned round;   /* WORK: the product, or the round of a stream; older ones
                       * are done first, and each in the order of arrival */
    uint32_t operand; /* WORK: number of the stored operand, from 0 */
    size_t lo, hi;
    kf_how how;
    kf_block *block; /* STORE; WORK: use once; NULL: the stored block */
    kf_buffer *in, *result;
    kf_buffer *with;   /* UPDATE: mixtures of V; `in` has the mixtures of U */
    kf_buffer *change; /* UPDATE: a kofn_change (kf_states_change_of) */
    size_t state;      /* SLICE, WORK that reads: 0 is A; others are optimizer
                        * states */
    kofn_status status;
    kofn_time took;     /* RESULT: time of the worker's own work; 0: unknown */
    uint32_t principal; /* HELLO, MOVED: see kofn_event */
    uint32_t oldest;    /* WORK: all products before this one are over */
    char *why;          /* FAILED: the reason or NULL; free with kofn_free */
} kf_msg;

/* Does the work of a KF_MSG_WORK and fills its result.  Calls `stopped`, which
 * may be NULL, now and then; if it returns true, fails with KOFN_AGAIN. */
kofn_status kf_work_do(const kf_block *b, const kf_msg *m,
                       bool (*stopped)(void *), void *ud);
/* Returns its multiply-adds. */
double kf_work_size(const kf_block *b, const kf_msg *m);
/* True if the STORE has all blocks. Else some are empty, and slices follow. */
bool kf_block_whole(const kf_block *b);
/* Do the work of a KF_MSG_UPDATE or _PIECE; return the multiply-adds of an
 * update. */
kofn_status kf_block_change(kf_block *b, const kf_msg *m);
double kf_block_change_size(const kf_block *b, const kf_msg *m);

/* A result that is arriving. */
typedef struct kf_coming {
    uint32_t product;
    double part;     /* arrived fraction, more than 0 and less than 1 */
    kofn_time since; /* start of the arrival, by the port's clock */
} kf_coming;

/* What a job is doing, for those that ask the coordinator. */
typedef struct kf_doing {
    char name[64], unit[16]; /* see kofn_job_label */
    char scheme[128];
    uint64_t at, of;
    size_t live, workers;    /* workers that are live; of the code */
    uint64_t sent, received; /* bytes */
    kofn_time since;         /* value of kf_clock when the job was opened */
} kf_doing;

struct kofn_fleet_worker; /* <kofn/fleet.h> */

/* The first member of every port. Functions after `close` may be NULL. */
struct kofn_port {
    const char *name;
    bool simulated;   /* its clock is simulated */
    size_t workers;   /* workers that send HELLO at the start */
    bool away;        /* workers do not share this memory          */
    bool kept;        /* workers may hold this job's blocks from before it
                       * opened */
    size_t waiting;   /* most waiting tasks at a worker; 0: any number */
    size_t longest;   /* longest possible result in bytes; 0: any length */
    uint64_t dropped; /* number of invalid messages received */
    /* Takes over m's block, in and result, even if it fails. */
    kofn_status (*send)(kofn_port *p, kf_msg *m);
    /* Waits for one message.  Fails with KOFN_AGAIN at the time `until`, or
     * with a real clock after `atmost` of real time.  Fails with KOFN_LATE if
     * no message can ever come.  m's block, in and result become the caller's.
     */
    kofn_status (*wait)(kofn_port *p, kofn_time until, kofn_time atmost,
                        kf_msg *m);
    kofn_time (*now)(kofn_port *p);
    void (*close)(kofn_port *p);

    /* Adds the coordinator's own working time; simulated ports only. */
    void (*spend)(kofn_port *p, kofn_time cpu);
    /* Inject faults of an events file. */
    kofn_status (*admit)(kofn_port *p, uint32_t *worker); /* without HELLO */
    kofn_status (*remove)(kofn_port *p, uint32_t worker); /* without BYE   */
    void (*slow)(kofn_port *p, uint32_t worker, double factor);
    void (*corrupt)(kofn_port *p, uint32_t worker, bool on);
    /* Flips a stored bit. */
    kofn_status (*flip)(kofn_port *p, uint32_t worker);

    /* Returns the worker's name for messages; "" if it has none, see
     * kofn_job_name. */
    const char *(*name_of)(kofn_port *p, uint32_t worker);
    /* Returns the time by which a worker is late in storing its block; 0 or
     * less if it is in time.  It excludes its waits for the coordinator and the
     * time that such a block may take. */
    kofn_time (*storing)(kofn_port *p, uint32_t worker);
    /* Returns the bytes of blocks that were sent to workers, slice by slice.
     * NULL: blocks are not sent so. */
    uint64_t (*placed)(kofn_port *p);
    /* Returns the bytes for a worker that are not sent yet.  NULL: messages do
     * not wait. */
    uint64_t (*backlog)(kofn_port *p, uint32_t worker);
    /* Reports the arrived part of an awaited result; false if nothing has
     * arrived. */
    bool (*coming)(kofn_port *p, uint32_t worker, kf_coming *c);
    /* Fills in what the worker said of itself, and how slow it is. */
    void (*describe)(kofn_port *p, uint32_t worker,
                     struct kofn_fleet_worker *w);
    /* Keeps a copy of what the job is doing. */
    void (*doing)(kofn_port *p, const kf_doing *d);
};

#endif
