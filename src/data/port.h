/* port.h -- what reaches workers: the messages between one coordinator and its
 * workers, and what each of them is made of.
 *
 * A port carries whole messages and notices when workers come and go.  Sending
 * gives the payload away, waiting receives it: a payload has one owner at a
 * time. Every operation is called from the coordinator's thread.
 *
 * A port owns what it was sent until it hands it on.  No function of a port
 * may be called by a worker's thread.
 */
#ifndef KF_DATA_PORT_H
#define KF_DATA_PORT_H

#include <kofn.h>

/* The block that a seat stores, as the coordinator made it; references are
 * counted. */
typedef struct kf_block kf_block;
kf_block *kf_block_keep(kf_block *b);
void kf_block_drop(kf_block *b);
size_t kf_block_bytes(const kf_block *b);

/* Matrices on their way: contiguous, counted references. */
typedef struct kf_buffer kf_buffer;
kf_buffer *kf_buffer_keep(kf_buffer *p);
void kf_buffer_drop(kf_buffer *p);
kofn_matrix *kf_buffer_matrix(kf_buffer *p);
typedef enum kf_msg_type {
    /* worker to coordinator */
    KF_MSG_HELLO = 1, /* worker: here I am                       */
    KF_MSG_STORED,    /* worker holds the block                  */
    KF_MSG_NOTICE,    /* worker will go soon                     */
    KF_MSG_BYE,       /* worker is gone                          */
    KF_MSG_RESULT,    /* worker, product, task, row, result      */
    KF_MSG_FAILED,    /* likewise, status; result comes back     */
    KF_MSG_MOVED,     /* worker, principal: who answers for it, before it has
                           stored a block: its number was another's        */
    /* coordinator to worker */
    KF_MSG_STORE,  /* worker, block: keep it                        */
    KF_MSG_WORK,   /* worker, product, task, row, lo, hi, in, result to
                        be filled                                      */
    KF_MSG_CANCEL, /* worker, task                                  */
    KF_MSG_UPDATE, /* worker, operand, change, in, with: kofn_update of its
                        block, after all work that was sent before; there is
                        no answer, and who cannot is gone              */
    KF_MSG_PIECE,  /* worker, operand, velocity, lo, hi, block: those strips
                        of its block, likewise; without a block: all of its
                        blocks are whole now, and stored                */
    /* about one that is there and answers nothing */
    KF_MSG_UNRESPONSIVE, /* to the coordinator: worker is given up, as if gone
                          */
    KF_MSG_EVICT /* to the port: worker is given up; without a BYE     */
} kf_msg_type;

/* The operation of a worker on its block, whose lanes are matrices of one
 * shape, and strips [lo, hi). */
typedef enum kf_how {
    /* rows of each lane times `in`; the lanes' answers one below the other */
    KF_HOW_ROWS,
    /* rows of `in` times each lane, likewise */
    KF_HOW_LEFT_ROWS,
    /* columns of each lane times rows of `in`, where those of the lanes stand
     * below each other, added up */
    KF_HOW_INNER,
    /* columns of `in`, where those of the lanes stand side by side, times rows
     * of each lane, added up; in both strips beyond the last are the first ones
     * again */
    KF_HOW_LEFT_INNER,
    /* the transpose of each lane times the lane times `in` */
    KF_HOW_GRAM,
    /* one mixture of what f makes of the block's parts */
    KF_HOW_SUBMESSAGE,
    /* rows of each lane as they are, one lane below the other; `in` says
     * nothing */
    KF_HOW_READ,
    /* what f makes of the part that has the row's number */
    KF_HOW_PART
} kf_how;

typedef struct kf_msg {
    kf_msg_type type;
    uint32_t worker;
    uint32_t product, task, row; /* as kofn_event and kofn_action have them */
    unsigned round;   /* WORK: the product, or the round of a stream; workers do
                       what is of older ones first, and of one as it came  */
    uint32_t operand; /* WORK: of those that are stored, counted from 0 */
    size_t lo, hi;
    kf_how how;
    kf_block *block; /* STORE; WORK: to compute with, and then to forget;
                          NULL: with the one that is stored                 */
    kf_buffer *in, *result;
    kf_buffer *with; /* UPDATE: mixtures of V; `in` has those of U */
    kofn_change change;
    bool velocity; /* PIECE, WORK that reads: of that, not of A */
    kofn_status status;
    kofn_time took; /* RESULT: what the worker's own work took; 0: unknown */
    uint32_t principal; /* HELLO, MOVED: who answers for the worker; see
                           kofn_event                                     */
    uint32_t oldest;    /* WORK: no more comes of products before this one   */
    char *why; /* FAILED: in words, or NULL; the receiver's, to kofn_free */
} kf_msg;

/* The worker's whole work: fills the result of a KF_MSG_WORK.  `stopped` is
 * asked now and then and may be NULL; when it says so the answer is
 * KOFN_AGAIN. */
kofn_status kf_work_do(const kf_block *b, const kf_msg *m,
                       bool (*stopped)(void *), void *ud);
/* Multiply-adds that it takes. */
double kf_work_size(const kf_block *b, const kf_msg *m);
/* Are all blocks here with the STORE, so that they are stored?  Else those of
 * some operands are empty, and pieces follow. */
bool kf_block_whole(const kf_block *b);
/* A worker's whole work for a KF_MSG_UPDATE or _PIECE, and how much the former
 * is. */
kofn_status kf_block_change(kf_block *b, const kf_msg *m);
double kf_block_change_size(const kf_block *b, const kf_msg *m);

/* A result that is on its way. */
typedef struct kf_coming {
    uint32_t product;
    double part;     /* of it that is here, more than 0 and less than 1 */
    kofn_time since; /* by the port's clock, when it began to come      */
} kf_coming;

/* First member of every port.  Entries after `close` may be NULL. */
struct kofn_port {
    const char *name;
    bool simulated;   /* its clock is not the wall's            */
    size_t workers;   /* that say HELLO of themselves at the start */
    bool away;        /* workers do not share this memory          */
    bool kept;        /* they may hold blocks of this job from before it
                         was opened                                 */
    size_t waiting;   /* tasks that may wait at a worker; 0: any number */
    size_t longest;   /* result that can come, in bytes; 0: any length  */
    uint64_t dropped; /* messages that made no sense, so far     */
    /* Takes m's block, in and result over, even on failure. */
    kofn_status (*send)(kofn_port *p, kf_msg *m);
    /* Waits for one message; or KOFN_AGAIN when `until` came first, or on a
     * port with a real clock when `atmost` of real time has passed; or
     * KOFN_LATE when nothing can ever come. m's block, in and result become the
     * caller's. */
    kofn_status (*wait)(kofn_port *p, kofn_time until, kofn_time atmost,
                        kf_msg *m);
    kofn_time (*now)(kofn_port *p);
    void (*close)(kofn_port *p);

    /* The coordinator itself has worked this long; simulated ports only. */
    void (*spend)(kofn_port *p, kofn_time cpu);
    /* Faults that an events file asks for. */
    kofn_status (*admit)(kofn_port *p, uint32_t *worker); /* without HELLO */
    kofn_status (*remove)(kofn_port *p, uint32_t worker); /* without BYE   */
    void (*slow)(kofn_port *p, uint32_t worker, double factor);
    void (*corrupt)(kofn_port *p, uint32_t worker, bool on);
    /* A bit of what it stores is another from now on. */
    kofn_status (*flip)(kofn_port *p, uint32_t worker);

    /* The name of whoever answers for a worker, for messages to people; "":
     * nobody else. */
    const char *(*name_of)(kofn_port *p, uint32_t worker);
    /* How long it has been at its block, not counting what it waited for us and
     * what such a block may take; 0 and below: it is in time. */
    kofn_time (*storing)(kofn_port *p, uint32_t worker);
    /* The part of an awaited result that is here, although the rest is not;
     * false: nothing. */
    bool (*coming)(kofn_port *p, uint32_t worker, kf_coming *c);
};

#endif
