/* port.h -- what a transport does.
 *
 * A port carries whole messages between one coordinator and its workers and
 * notices when workers come and go.  Sending gives the payload away, waiting
 * receives it: a payload has one owner at a time.  Every operation is called
 * from the coordinator's thread.
 */
#ifndef KOFN_PORT_H
#define KOFN_PORT_H

#include <kofn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a seat stores, as the coordinator made it; counted references. */
typedef struct kofn_block kofn_block;
KOFN_API kofn_block *kofn_block_keep(kofn_block *b);
KOFN_API void kofn_block_drop(kofn_block *b);
KOFN_API size_t kofn_block_bytes(const kofn_block *b);

/* Matrices on their way: contiguous, counted references. */
typedef struct kofn_parcel kofn_parcel;
KOFN_API kofn_parcel *kofn_parcel_keep(kofn_parcel *p);
KOFN_API void kofn_parcel_drop(kofn_parcel *p);
KOFN_API kofn_matrix *kofn_parcel_matrix(kofn_parcel *p);
typedef enum kofn_msg_type {
    /* worker to coordinator */
    KOFN_MSG_HELLO = 1, /* worker: here I am                       */
    KOFN_MSG_STORED,    /* worker holds the block                  */
    KOFN_MSG_NOTICE,    /* worker will go soon                     */
    KOFN_MSG_BYE,       /* worker is gone                          */
    KOFN_MSG_RESULT,    /* worker, product, task, row, result      */
    KOFN_MSG_FAILED,    /* likewise, status; result comes back     */
    KOFN_MSG_MOVED,     /* worker, principal: who answers for it, before it has
                           stored a block: its number was another's        */
    /* coordinator to worker */
    KOFN_MSG_STORE,  /* worker, block: keep it                        */
    KOFN_MSG_WORK,   /* worker, product, task, row, lo, hi, in, result to
                        be filled                                      */
    KOFN_MSG_CANCEL, /* worker, task                                  */
    KOFN_MSG_UPDATE, /* worker, operand, change, in, with: kofn_update of its
                        block, after all work that was sent before; there is
                        no answer, and who cannot is gone              */
    KOFN_MSG_PIECE,  /* worker, operand, velocity, lo, hi, block: those strips
                        of its block, likewise; without a block: all of its
                        blocks are whole now, and stored                */
    /* about one that is there and answers nothing */
    KOFN_MSG_MUTE,   /* to the coordinator: worker is given up, as if gone */
    KOFN_MSG_GIVE_UP /* to the port: worker is given up; without a BYE     */
} kofn_msg_type;

/* What a worker does with its block, whose lanes are matrices of one shape,
 * and strips [lo, hi). */
typedef enum kofn_how {
    /* rows of each lane times `in`; the lanes' answers one below the other */
    KOFN_HOW_ROWS,
    /* rows of `in` times each lane, likewise */
    KOFN_HOW_LEFT_ROWS,
    /* columns of each lane times rows of `in`, where those of the lanes stand
     * below each other, added up */
    KOFN_HOW_INNER,
    /* columns of `in`, where those of the lanes stand side by side, times rows
     * of each lane, added up; in both strips beyond the last are the first ones
     * again */
    KOFN_HOW_LEFT_INNER,
    /* the transpose of each lane times the lane times `in` */
    KOFN_HOW_GRAM,
    /* one mixture of what f makes of the block's parts */
    KOFN_HOW_SUBMESSAGE,
    /* rows of each lane as they are, one lane below the other; `in` says
     * nothing */
    KOFN_HOW_READ,
    /* what f makes of the part that has the row's number */
    KOFN_HOW_PART
} kofn_how;

typedef struct kofn_msg {
    kofn_msg_type type;
    uint32_t worker;
    uint32_t product, task, row; /* as kofn_event and kofn_action have them */
    unsigned round;   /* WORK: the product, or the round of a stream; workers do
                       what is of older ones first, and of one as it came  */
    uint32_t operand; /* WORK: of those that are stored, counted from 0 */
    size_t lo, hi;
    kofn_how how;
    kofn_block *block; /* STORE; WORK: to compute with, and then to forget;
                          NULL: with the one that is stored                 */
    kofn_parcel *in, *result;
    kofn_parcel *with; /* UPDATE: mixtures of V; `in` has those of U */
    kofn_change change;
    bool velocity; /* PIECE, WORK that reads: of that, not of A */
    kofn_status status;
    kofn_time took; /* RESULT: what the worker's own work took; 0: unknown */
    uint32_t principal; /* HELLO, MOVED: who answers for the worker; see
                           kofn_event                                     */
    uint32_t oldest;    /* WORK: no more comes of products before this one   */
    char *why; /* FAILED: in words, or NULL; the receiver's, to kofn_free */
} kofn_msg;

/* What a worker's own way to multiply (kofn_serve_options.multiply) is asked
 * for: A B, both dense, of one type, float32 or float64, neither transposed;
 * rows lie ld numbers apart.  One of them is of what the worker stores: A, or B
 * where `left`.  It is the rows from `row` on and the columns from `col` on of
 * `whole`, which may be kept where products are fast, on a GPU say: while
 * `version` is the same, and not 0, so are the numbers at whole.data.  Under
 * another one what was kept is of no use any more; 0: they came with their task
 * and go with it. */
typedef struct kofn_factors {
    kofn_matrix A, B, whole;
    size_t row, col;
    bool left;
    uint64_t version;
} kofn_factors;
/* Writes all of `out`, A.rows x B.cols of the same type, whose rows lie one
 * behind the other, and nothing else.  It must be exact to the rounding of that
 * type: TF32 and the like are not. */
typedef kofn_status (*kofn_multiply_fn)(void *ctx, const kofn_factors *f,
                                        kofn_matrix *out);

/* The worker's whole work: fills the result of a KOFN_MSG_WORK.  `stopped` is
 * asked now and then and may be NULL; when it says so the answer is
 * KOFN_AGAIN. */
KOFN_API kofn_status kofn_work(const kofn_block *b, const kofn_msg *m,
                               bool (*stopped)(void *), void *ud);
/* Multiply-adds that it takes. */
KOFN_API double kofn_work_size(const kofn_block *b, const kofn_msg *m);
/* Are all blocks here with the STORE, so that they are stored?  Else those of
 * some operands are empty, and pieces follow. */
KOFN_API bool kofn_block_whole(const kofn_block *b);
/* A worker's whole work for a KOFN_MSG_UPDATE or _PIECE, and how much the former
 * is. */
KOFN_API kofn_status kofn_block_change(kofn_block *b, const kofn_msg *m);
KOFN_API double kofn_block_change_size(const kofn_block *b, const kofn_msg *m);

/* A result that is on its way. */
typedef struct kofn_coming {
    uint32_t product;
    double part;     /* of it that is here, more than 0 and less than 1 */
    kofn_time since; /* by the port's clock, when it began to come      */
} kofn_coming;

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
    kofn_status (*send)(kofn_port *p, kofn_msg *m);
    /* One message; or KOFN_AGAIN when `until` came first, or on a port with a
     * real clock when `atmost` of real time has passed; or KOFN_LATE when
     * nothing can ever come.  m's block, in and result become the caller's. */
    kofn_status (*wait)(kofn_port *p, kofn_time until, kofn_time atmost,
                        kofn_msg *m);
    kofn_time (*now)(kofn_port *p);
    void (*close)(kofn_port *p);

    /* The coordinator itself has worked this long; simulated ports only. */
    void (*spend)(kofn_port *p, kofn_time cpu);
    /* What an events file asks for. */
    kofn_status (*admit)(kofn_port *p, uint32_t *worker); /* without HELLO */
    kofn_status (*remove)(kofn_port *p, uint32_t worker); /* without BYE   */
    void (*slow)(kofn_port *p, uint32_t worker, double factor);
    void (*corrupt)(kofn_port *p, uint32_t worker, bool on);
    /* A bit of what it stores is another from now on. */
    kofn_status (*flip)(kofn_port *p, uint32_t worker);

    /* Who answers for a worker, for messages to people; "": nobody else. */
    const char *(*name_of)(kofn_port *p, uint32_t worker);
    /* How long it has been at its block, not counting what it waited for us and
     * what such a block may take; 0 and below: it is in time. */
    kofn_time (*storing)(kofn_port *p, uint32_t worker);
    /* What of a result of its that is waited for is here, although the rest is
     * not; false: nothing. */
    bool (*coming)(kofn_port *p, uint32_t worker, kofn_coming *c);
};

#ifdef __cplusplus
}
#endif
#endif
