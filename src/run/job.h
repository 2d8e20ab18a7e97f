/* job.h -- the state of the coordinator's body.
 *
 * A job consists of structs.  Only the file named in its comment writes a
 * struct.  job.c zeroes all of them at kofn_open_all and frees them at
 * kofn_close.  Other files read them, and change them through functions of that
 * file.
 *
 * The job owns everything here except operands, outputs and plans, which are
 * borrowed.  All of it is used on the thread of the job's owner.
 *
 * Each file calls only files before it in this order (observe.c; lease.c,
 * evidence.c; open.c; report.c, doing.c, metrics.c; finish.c, pair.c; pace.c;
 * act.c; loop.c; begin.c; window.c; rebuild.c, scrub.c; put.c, change.c;
 * job.c). */
#ifndef KF_RUN_JOB_H
#define KF_RUN_JOB_H

#include "run.h"
#include "task_outcomes.h"

#include "code/operation.h"

#include <assert.h>

/* The tables that a report points to. */
typedef struct tables {
    size_t *rows, row_cap;
    kofn_worker_state *states;
    size_t state_cap;
    unsigned *located;
    size_t located_cap;
    kofn_time *computed;
    size_t computed_cap;
    double *weights; /* of the parts of a sum */
    unsigned *ages;  /* if the scheme remembers them */
} tables;

/* Stream: strips that are decoded while workers are at the next round. */
typedef struct kf_undecoded {
    kofn_action how; /* from strip lo on; type 0: none */
    kf_source *source;
    uint32_t *tasks;
    kofn_status status; /* of the product when they are decoded */
    unsigned round;     /* in which the product was over */
} kf_undecoded;

/* What the coordinator does (phase.c). */
typedef enum kf_phase {
    KF_OUTSIDE, /* nothing: the caller is at work */
    KF_ENCODE,  /* makes blocks and messages from A and from inputs */
    KF_PLACE,   /* waits for workers that come or store their blocks */
    KF_SEND,    /* hands blocks and tasks to the port */
    KF_WAIT,    /* waits for answers */
    KF_RECEIVE, /* takes messages, and decides */
    KF_DECODE,
    KF_CHECK,
    KF_PHASES
} kf_phase;

typedef struct kf_phases {
    kf_phase phase;
    kofn_time since; /* when it began */
    kofn_time spent[KF_PHASES];
} kf_phases;

/* The account at a moment. */
typedef struct kf_mark {
    kofn_time at, spent[KF_PHASES];
} kf_mark;

/* The start of a product (begin.c). */
typedef struct product_start {
    /* Its start (begin.c). */
    uint32_t core;   /* its number in core and workers, from its start */
    bool begun;      /* the core knows it */
    bool keyed;      /* its output is tested by the key of its operand */
    bool alike;      /* as in the event that began it (kofn_event); set after a
                        failed test */
    kofn_time began; /* time of its first start; a restart does not change it */
    kf_mark from;    /* the account at that time */
    kf_slots *tasks; /* from its start until it is over */
} product_start;

/* The messages to the workers of a product (pace.c). */
typedef struct product_feed {
    /* The messages to its workers (pace.c). */
    const kf_buffer **fed; /* per worker: the input it was given last */
    size_t count;
    size_t level; /* number of submessages asked of each worker that is not
                     late */
} product_feed;

/* The result of a product (act.c, finish.c; report.c). */
typedef struct product_end {
    /* Its result (act.c, finish.c; report.c). */
    kofn_status ended;  /* KOFN_AGAIN while it is not over */
    kofn_status odd;    /* the first error in the decoded output */
    char why[512];      /* ... or its message of failure */
    char *failure;      /* message of the first worker that failed a task */
    uint32_t failed_by; /* number of that worker (loop.c) */
} product_end;

/* Operands and blocks of a product of a stream (pair.c). */
typedef struct product_pair {
    /* Operands and blocks of a stream (pair.c). */
    kf_held first;    /* its first operand */
    void *second;     /* a copy of its second operand if that is equilibrated,
                         else NULL */
    kf_block **block; /* per row, while it may be sent */
    size_t blocks;
    kf_undecoded undecoded;
} product_pair;

/* A product from kofn_put until kofn_take or kofn_cancel. */
typedef struct product {
    /* Its input and output (open.c; pair.c of streams, window.c of the job's
     * own). */
    uint32_t number;      /* the caller's number; 0: the job's own, read into a
                             matrix of strips lo .. hi - 1 only */
    uint32_t operand;     /* its operand */
    kofn_use as;          /* its use of the operand */
    const kofn_plan *use; /* the plan for that use */
    size_t lo, hi;        /* strips that it is limited to; hi == 0: all */
    unsigned count;       /* round number for events files */
    kf_messages messages; /* its input */
    kf_measure measure;
    kofn_matrix out;
    kf_scaling scaled; /* row and column equilibration of its input */
    kf_back back;      /* factors for the decoded output */
    bool room;         /* no answer of an honest worker is infinite */
    bool audited;    /* a sum that is compared, on behalf of later ones that are
                        not */
    kofn_plan shape; /* product of a stream or of its own width, or number
                        0: the plan for its shape */
    kofn_report rep; /* figures of this product alone; all count in it */
    tables tables;
    product_start start;
    product_feed feed;
    product_end end;
    product_pair pair;
} product;

#define KF_JOB_OPEN (KOFN_OPEN_MOST + 1) /* and one of the job's own */

/* Products (open.c). */
typedef struct kf_products {
    product *list[KF_JOB_OPEN]; /* put and not taken; numbers ascend */
    size_t count;
    product *idle[KF_JOB_OPEN]; /* taken; kept for their memory */
    size_t idles;
    uint32_t puts;      /* numbers given out */
    unsigned every;     /* one sum of every `every` is checked; 0: as opt.audit
                           says */
    unsigned sums;      /* sums put since `every` was set */
    size_t lo, hi;      /* strips that products are limited to; hi == 0: all */
    unsigned step;      /* current round number for events files; 0: they count
                           products */
    kofn_status broken; /* not KOFN_OK: the job has failed and does nothing
                           more */
} kf_products;

/* Reports to callers (report.c). */
typedef struct kf_reported {
    kofn_report rest; /* figures of no product, since the last product was
                         taken */
    kofn_report total;
    tables tables;  /* of the last report */
    char *failure;  /* of the product that was taken last */
    uint64_t moved; /* bytes moved for the product that was over last */
    size_t dropped; /* events that the core had dropped before this product */
    kofn_time calm; /* time of the products before a worker was lost */
    unsigned calm_rounds;
    bool lossy;         /* a worker was lost */
    bool failed;        /* a product failed ... */
    unsigned failed_at; /* ... with this number, the first */
} kf_reported;

/* Workers that wait for a block, and their seats. */
typedef struct kf_waiters {
    uint32_t *worker;
    size_t *seat;
    size_t count, cap, seat_cap;
} kf_waiters;

/* Blocks (lease.c). */
typedef struct kf_lease {
    kf_waiters owed;       /* workers to which no block was sent */
    kf_waiters rebuilding; /* workers that wait for blocks made from the blocks
                           of others */
    size_t storing;        /* workers that are storing a block */
    uint64_t bytes;        /* of all blocks that were given to the port */
    kofn_time since;       /* wall time since when `storing` has not changed */
    kofn_time look_at;     /* when to look for slow storing; 0: at once */
    kofn_time pace;        /* time that the first half of the workers took to
                              store */
} kf_lease;

/* The evidence against a worker. */
typedef struct kf_block_evidence {
    bool accused; /* it was located, and is asked again */
    bool wrong;   /* its block was read and found wrong */
    bool first;   /* it was found wrong in the first reading, too */
    bool mending; /* another block was sent to it */
} kf_block_evidence;

/* Evidence against all workers (evidence.c). */
typedef struct kf_all_evidence {
    kf_block_evidence *worker;
    size_t workers;
    bool on;     /* some operands have to be read */
    bool second; /* this is the second reading, after one found a wrong block */
} kf_all_evidence;

/* Rounds of a stream (pair.c). */
typedef struct kf_stream_rounds {
    unsigned rounds; /* that began */
    bool in_round;   /* the last one is not over */
    double *load;    /* per worker: multiply-adds of its list */
    size_t loads;
    void (*on_round)(void *ud, const kofn_stream_round *round);
    void *ud;
} kf_stream_rounds;

/* A task that waits to be sent to its worker. */
typedef struct kf_waiting_task {
    uint32_t product, task;
} kf_waiting_task;

/* The tasks of one worker in an agc round: those that wait to be sent, and the
 * number of unanswered ones. */
typedef struct kf_send_window {
    kf_waiting_task
        *waiting; /* tasks to be sent: waiting[first] to waiting[end - 1] */
    size_t first, end, cap;
    size_t awaited;   /* tasks sent and not answered */
    kofn_time sent;   /* when the first of them was sent */
    uint32_t product; /* product of the last task sent */
    kofn_time last;   /* when the last answer came */
    kofn_time way;    /* shortest time of an answer on the link in this product:
                         since the answer or the sending before it, less the
                         worker's own time */
} kf_send_window;

/* Submessages of all workers (pace.c). */
typedef struct kf_pace {
    kf_send_window *window; /* per worker */
    size_t workers;
    size_t held;      /* tasks to be sent, of all workers */
    bool due;         /* some may be sent now */
    kofn_time due_at; /* others may be sent then, if nothing comes */
    kofn_time newest; /* when the last answer came */
    kofn_time *list;  /* scratch for medians */
    size_t list_cap;
} kf_pace;

/* The loop (loop.c). */
typedef struct kf_loop {
    kofn_action *todo; /* of the current step */
    size_t todo_cap;
    size_t greeted;    /* workers that said HELLO and may have a seat */
    size_t next_event; /* index into opt.events */
} kf_loop;

/* Starts of products (begin.c). */
typedef struct kf_start {
    uint32_t number; /* last number given out for the core */
    kofn_time asked; /* wall time at which the first round was asked for; 0: not
                        asked for */
    bool enough;     /* there were enough workers for it */
} kf_start;

/* Strips of an operand that the job itself reads, by window.c for rebuild.c or
 * scrub.c. */
typedef struct kf_window {
    size_t operand, at; /* strips before `at` of `operand` are done */
    size_t to;          /* it reaches to this strip */
    size_t state;       /* it reads this state of the operand */
    kofn_matrix into;   /* whole parts of these strips */
    kofn_plan shape;    /* the plan of `into` as an operand */
    product *reading;   /* the product that reads it; NULL: none */
} kf_window;

/* Blocks made from the blocks of others, because the operand has changed
 * (rebuild.c). */
typedef struct kf_rebuild {
    size_t among; /* the first `among` waiting workers are rebuilt now; later
                     ones are next */
    kf_window window;
    uint32_t last;  /* product before which windows were read last */
    size_t windows; /* number of windows read before it */
} kf_rebuild;

/* Comparison of blocks (scrub.c). */
typedef struct kf_scrub {
    bool asked; /* the caller asked for it (kofn_scrub) */
    kofn_status status;
    char why[512];
    kf_window window;
    double *cols; /* scales of the operand's columns in the strips read */
} kf_scrub;

/* What a worker has done for the job (doing.c). */
typedef struct kf_done {
    uint64_t results, late;
    double seconds, bytes; /* of the results */
    uint32_t product;      /* the last one that it was late for */
} kf_done;

/* What the job says of itself to those that ask (doing.c). */
typedef struct kf_label {
    kf_doing doing; /* `at` is 0 if the number of the product counts */
    kofn_time due;  /* when it is passed to the port again */
    kf_done *done;  /* per worker */
    size_t workers;
} kf_label;

struct kofn_job {
    /* Set by kofn_open_all (job.c); also changed by other folders,
     * task_outcomes.c, guard.c and journal.c. */
    const kofn_plan *plan; /* of the first operand; all operands have its
                              workers */
    kofn_port *port;
    kofn_core *core;
    kf_held *held; /* the operands */
    size_t operands;
    kofn_options opt; /* checked, with defaults; late, lease: 0 is never */
    kf_journal *journal;
    kf_task_outcomes outcomes; /* of tasks, and their observers */
    kf_guard guard;
    kf_pool spare; /* buffers of results */
    kf_scratch scratch;
    kf_tally tally; /* of the parts of a sum (KOFN_SUM) */

    kf_phases phases;
    kf_products open;
    kf_reported reported;
    kf_lease lease;
    kf_all_evidence evidence;
    kf_stream_rounds stream;
    kf_pace paced;
    kf_loop loop;
    kf_label label;
    kf_start start;
    kf_rebuild rebuild;
    kf_scrub scrub;
};

/* Returns the number of the use that a product makes of its operand, as in
 * kofn_event. */
static inline uint32_t kf_job_use_number(const product *p)
{
    return KOFN_USES * p->operand + (uint32_t)p->as;
}

static inline kofn_time kf_job_now(const kofn_job *j)
{
    return j->port->now(j->port);
}

/* True if the product is with the workers. */
static inline bool kf_job_is_running(const product *p)
{
    return p->start.begun && p->end.ended == KOFN_AGAIN;
}

/* True if the job has a journal or an observer. */
static inline bool kf_job_is_watched(const kofn_job *j)
{
    return j->journal || j->outcomes.observers;
}

/* True if all workers expected at the start have come. */
static inline bool kf_job_all_came(const kofn_job *j)
{
    return j->loop.greeted >= j->port->workers;
}

static inline bool kf_is_stream(const kofn_job *j)
{
    return j->plan->op->stream;
}

/* True if the job itself is reading an operand. */
static inline bool kf_job_reads(const kofn_job *j)
{
    return j->rebuild.window.reading || j->scrub.window.reading;
}

/* Forgets which workers were sent the input. */
static inline void kf_job_feed_again(product *p)
{
    for (size_t i = 0; i < p->feed.count; i++)
        p->feed.fed[i] = NULL;
}

/* Returns the product's row of the plan, numbered like the seats of all
 * groups. */
static inline size_t kf_job_row(const product *p, size_t row, size_t group)
{
    assert(group < p->use->layout.groups);
    return row * p->use->layout.groups + group;
}

/* phase.c */
/* Begins another phase, and returns the one before. */
kf_phase kf_phase_turn(kofn_job *j, kf_phase to);
kf_phase kf_phase_turn_at(kofn_job *j, kf_phase to, kofn_time now);
/* Sets *m to the account of this moment, and returns the time. */
kofn_time kf_phase_mark(kofn_job *j, kf_mark *m);
/* Hands a message to the port. */
kofn_status kf_job_send(kofn_job *j, kf_msg *m);
/* Fills the times of the report: those since the mark, or since kofn_open. */
void kf_phase_since(kofn_job *j, const kf_mark *m, kofn_report *r);
void kf_phase_total(const kofn_job *j, kofn_report *r);

/* observe.c */
void kf_job_note_now(kofn_job *j, kofn_note n);
/* Notes that the product is over, or that the run ends before it.  `round`: the
 * number to report. */
void kf_job_note_over(kofn_job *j, const product *p, kofn_time now,
                      unsigned round);
/* Measures the coordinator's own work; on a simulated port it costs simulated
 * time. */
typedef struct kf_stopwatch {
    kofn_time start, cpu;
    kf_phase before;
} kf_stopwatch;
kf_stopwatch kf_job_start_work(kofn_job *j, kf_phase phase);
void kf_job_end_work(kofn_job *j, kf_stopwatch w, const char *what);

/* lease.c */
/* Carries out KOFN_DO_STORE: the worker is owed a block. */
kofn_status kf_lease_owe(kofn_job *j, const kofn_action *a);
/* Encodes the blocks that are owed, in one pass over A, and sends them.  Of
 * changed operands it sends empty blocks, which wait to be rebuilt. */
kofn_status kf_lease_hand_out(kofn_job *j);
/* Sends the first n workers their blocks, or pieces of blocks, and gives the
 * blocks away.  A worker with an incomplete block waits to be rebuilt. */
kofn_status kf_lease_send(kofn_job *j, kf_msg m, const kf_waiters *to, size_t n,
                          kf_block **blocks);
/* Removes the workers that have left.  Returns how many of the first `among`
 * remain. */
size_t kf_lease_forget_gone(kofn_job *j, size_t among);
/* Removes the first n workers, which have their blocks. */
void kf_lease_rebuilt(kofn_job *j, size_t n);
/* Return the number of live workers that suffices for the products of every
 * operand, whichever workers they are; and whether that number is live. */
size_t kf_job_enough(const kofn_job *j);
bool kf_job_has_enough(const kofn_job *j);
/* True while a storing worker is to be waited for.  If the live workers are
 * enough, the wait ends one lease after the number of storing workers last
 * changed.  Otherwise a joiner that never stores would hold up every round. */
bool kf_lease_await(kofn_job *j, kofn_time *atmost);
/* Records that a worker has stored its block. */
void kf_lease_stored(kofn_job *j, uint32_t worker);
/* Returns the first worker, of number `from` or more, that takes too long to
 * store; UINT32_MAX if there is none.  With from == 0 it looks only from the
 * time on at which a worker can become late. */
uint32_t kf_lease_late(kofn_job *j, uint32_t from, kofn_time now);

/* evidence.c */
/* Has the workers that the last check located asked again. */
kofn_status kf_evidence_receive(kofn_job *j, const product *p,
                                const kofn_action *a);
/* Records that the worker has stored a block. */
void kf_evidence_stored(kofn_job *j, uint32_t worker);
/* Marks the operand to be read. */
void kf_evidence_ask(kofn_job *j, size_t operand);
/* Records that the operand has been read.  True if more is to be read: another
 * operand, or some a second time. */
bool kf_evidence_goes_on(kofn_job *j, size_t operand);
/* Ends the reading of operands. */
void kf_evidence_end(kofn_job *j);
/* Clears and returns the evidence against the worker. */
kf_block_evidence kf_evidence_forget(kofn_job *j, uint32_t worker);
/* Records that another block was sent to the worker. */
void kf_evidence_mend(kofn_job *j, uint32_t worker);

/* open.c */
/* Returns the begun product with this number in the core, if it is not taken;
 * else NULL. */
product *kf_job_find(const kofn_job *j, uint32_t number);

/* Returns a task of a running product; NULL if there is none. */
static inline kf_slot *kf_job_task(const product *p, uint32_t task)
{
    return kf_task_outcomes_find(p->start.tasks, task);
}

kofn_status kf_job_check_operand(const kofn_job *j, size_t operand);
kofn_status kf_job_check_placed(const kofn_job *j);
kofn_status kf_job_check_whole(const kofn_job *j);
/* Returns the number of strips to which rounds may be limited; 0 if they cannot
 * be limited. */
size_t kf_job_strips(const kofn_job *j);
kofn_status kf_job_check_room(const kofn_job *j);
/* Marks the job as failed if `st` is a failure; returns `st`. */
kofn_status kf_job_break(kofn_job *j, kofn_status st);
/* Returns the plan for this use of the operand; NULL if it does not serve
 * it. */
const kofn_plan *kf_job_plan(const kofn_job *j, uint32_t operand, kofn_use as);
/* Holds a dense matrix: equilibrates and cuts it as its plan demands. */
kofn_status kf_job_hold(const kofn_job *j, kf_held *h, const kofn_matrix *A,
                        const char *name);
/* Frees the memory that the operand takes. */
void kf_job_let_go(kf_held *h);
/* Returns the factor by which to multiply an input with elements up to `most`;
 * sets the inverse for the decoded output. */
double kf_job_scale_input(const kf_resident *r, product *p,
                          const kofn_plan *use, const kofn_matrix *in,
                          double most);
/* Makes a sum coded that would have each part from one worker. */
void kf_job_code_it(const kofn_job *j, product *p);
/* Returns a product that was taken, for its memory, or a new one.  It is not
 * open. */
product *kf_job_last_idle(kofn_job *j);
void kf_job_reset(const kofn_job *j, product *p, const kofn_plan *use);
/* Fails if an answer of a product of this shape is too long for the port. */
kofn_status kf_job_check_longest(const kofn_job *j, const kofn_plan *shape);
/* Opens a product; it is then the newest. */
kofn_status kf_job_open_product(kofn_job *j, uint32_t operand, kofn_use as,
                                const kofn_matrix *in, kofn_matrix *out);
/* Opens the last idle product, as the newest. */
void kf_job_opened(kofn_job *j, product *p);
/* Opens the last idle product as one of the job's own, before all that have not
 * begun. */
void kf_job_opened_first(kofn_job *j);
/* Closes the product and keeps its memory for others. */
void kf_job_close_product(kofn_job *j, product *p);

/* report.c */
/* Adds figures that belong to no product. */
void kf_job_count(kofn_job *j, const kofn_report *more);
/* Sums the figures of all products and of none. */
void kf_job_sum(const kofn_job *j, kofn_report *sum);
/* Completes p->rep for KOFN_DO_DELIVER. */
kofn_status kf_job_report(kofn_job *j, product *p, const kofn_action *a);
/* Returns the report of a product; if p is NULL, of no product. */
kofn_report kf_job_report_of(const kofn_job *j, const product *p);
/* Closes a product that is over and taken.  The tables of its report and its
 * failure message stay valid until the next one is closed. */
void kf_job_close(kofn_job *j, product *p, const kofn_report *r);
/* Reports figures of no product since that mark, and the live workers. */
kofn_status kf_job_report_rest(kofn_job *j, const kf_mark *from,
                               kofn_report *out);

/* finish.c */
kofn_status kf_job_decode(kofn_job *j, product *p, const kofn_action *a,
                          const kf_source *source);
/* Ends the product with this status. */
void kf_job_finish_product(kofn_job *j, product *p, kofn_status st);
/* True if an honest worker may have given an answer that is not finite, so that
 * answers cannot be compared.  Writes the message to p->end.why. */
bool kf_job_overflows(const kofn_job *j, product *p);
/* Restarts a product.  An uncoded one is coded then, because a worker was
 * missing or its answer was not finite. */
void kf_job_begin_again(kofn_job *j, product *p);

/* pair.c: products of streams */
kofn_status kf_pair_open(kofn_job *j, const kofn_matrix *X,
                         const kofn_matrix *Y, kofn_matrix *out);
/* Begins a round. */
kofn_status kf_pair_begin_round(kofn_job *j);
/* Begins a round with this product. */
kofn_status kf_pair_begin(kofn_job *j, product *p, kofn_event *ev);
/* Makes the blocks for these rows. */
kofn_status kf_pair_encode(kofn_job *j, product *p, const size_t *rows,
                           size_t n);
/* Adds the block to the message of a task that is given out. */
kofn_status kf_pair_given(kofn_job *j, product *p, kf_msg *m);
/* Carries out KOFN_DO_END. */
void kf_pair_end_round(kofn_job *j);
/* Keeps strips to be decoded when the coordinator is idle.  Takes `source`
 * over. */
kofn_status kf_pair_decode_later(kofn_job *j, product *p, const kofn_action *a,
                                 kf_source *source);
/* Ends a product of a stream, or waits with that until it is decoded. */
void kf_pair_over(kofn_job *j, product *p, kofn_status st);
/* Returns the oldest product that waits to be decoded; NULL if there is
 * none. */
product *kf_pair_undecoded(const kofn_job *j);
/* Decodes a slice of it. */
kofn_status kf_pair_decode_some(kofn_job *j, product *p);
/* Frees the product's operands, blocks and messages. */
void kf_pair_release(product *p);

/* pace.c */
/* Sends a task, now or in its turn. */
kofn_status kf_pace_give(kofn_job *j, product *p, kf_slot *s);
/* Records that the task was answered, with a result or a failure. */
void kf_pace_came(kofn_job *j, kf_slot *s, kofn_time took);
/* Returns the time at which tasks may be sent; KOFN_NEVER if only an answer
 * allows it. */
kofn_time kf_pace_alarm(const kofn_job *j);
/* Cancels the task; true if it was never sent. */
bool kf_pace_cancel(kofn_job *j, kf_slot *s);
/* Sends the tasks for which it is time. */
kofn_status kf_pace_go_on(kofn_job *j);

/* act.c */
kofn_status kf_job_act(kofn_job *j, const kofn_action *a);
kofn_status kf_job_evict(kofn_job *j, uint32_t worker);
/* Encodes the inputs for all work in these actions. */
kofn_status kf_job_encode_inputs(kofn_job *j, const kofn_action *todo,
                                 size_t n);

/* doing.c */
#define KF_TITLE 300
/* Writes "worker 5 (node7)", or "worker 5" without a name. Returns `out`. */
const char *kf_job_title(const kofn_job *j, uint32_t worker,
                         char out[KF_TITLE]);
/* Passes what the job is doing to its port: `now`, or ten times a second. */
void kf_job_tell_doing(kofn_job *j, bool now);
/* Counts a result of a worker. */
void kf_job_count_result(kofn_job *j, uint32_t worker, kofn_time took,
                         size_t bytes);
/* Counts the workers whose results of a product that is over did not come. */
void kf_job_count_late(kofn_job *j, const product *p);

/* loop.c */
kofn_status kf_job_step(kofn_job *j, kofn_event *ev);
/* Makes a step with an event of a worker. */
kofn_status kf_job_tell(kofn_job *j, kofn_event_type type, uint32_t worker);
/* Waits for one message or the alarm: until `until` by the port's clock, and at
 * most `atmost` by the wall.  Returns KOFN_AGAIN if nothing came. */
kofn_status kf_job_pass(kofn_job *j, kofn_time until, kofn_time atmost);
/* Evicts workers that take too long to store.  Shortens *atmost to the time
 * until the next look. */
kofn_status kf_job_give_up(kofn_job *j, kofn_time *atmost);
/* True if an event of the events file is due before this product begins. */
bool kf_job_is_due(const kofn_job *j, const product *p);
/* Carries out the events that are due once this share of the product has
 * come. */
kofn_status kf_job_stage(kofn_job *j, const product *p, double done);
/* Does the same for the newest product that has begun. */
kofn_status kf_job_stage_now(kofn_job *j);

/* begin.c */
kofn_status kf_job_begin(kofn_job *j, product *p);
/* Fails with KOFN_LATE if there are too few workers for the first round when
 * the allowed time is over; else shortens *atmost to the time left. */
kofn_status kf_job_check_start(kofn_job *j, kofn_time *atmost);
/* Waits until all workers expected at the start have come. */
kofn_status kf_job_await_start(kofn_job *j);
/* True if the product waits for more workers than are live. */
bool kf_job_starves(const kofn_job *j, const product *p);

/* place.c */
/* Fails unless an operand of this kind and shape may be placed. */
kofn_status kf_job_check_place(const kofn_job *j, size_t operand, size_t rows,
                               size_t cols, bool sparse);
/* Completes an operand that is known: its parts can now be sent. */
kofn_status kf_job_placed(kofn_job *j, kf_held *h);

/* window.c */
size_t kf_window_strips(const kofn_job *j, const kf_window *w); /* in all */
/* Returns the shape of whole parts of the window's strips. */
void kf_window_shape(const kofn_job *j, const kf_window *w, size_t *rows,
                     size_t *cols);
/* Sets the end of the next window. */
void kf_window_next(const kofn_job *j, kf_window *w);
/* Begins to read it. */
kofn_status kf_window_read(kofn_job *j, kf_window *w);
/* Closes a window that was read.  Its cost is reported with the next product
 * taken. */
void kf_window_close(kofn_job *j, kf_window *w);
/* Makes an operand with that plan of the strips that were read.  The caller
 * frees it before the window is read again, also on failure. */
kofn_status kf_window_resident(const kofn_job *j, kf_window *w,
                               const kofn_plan *plan, kf_resident *out);

/* rebuild.c */
/* Passes on the window that was read, if it has come. */
kofn_status kf_rebuild_take(kofn_job *j);
/* Begins to read for workers to be rebuilt, if there are any and it is time. */
kofn_status kf_rebuild_begin(kofn_job *j, const product *next);
/* Begins to build blocks of an operand from strips of the caller, for all
 * workers that wait now.  The strips are handed over window by window. */
void kf_rebuild_open(kofn_job *j, size_t operand);
/* Sends the strips of the window to the workers that still wait.  After the
 * last window none waits. */
kofn_status kf_rebuild_feed(kofn_job *j);

/* scrub.c */
/* Takes one step in rebuilding or comparing blocks.  Sets *busy if nothing else
 * may begin until the strips that are being read have come. */
kofn_status kf_scrub_go_on(kofn_job *j, const product *next, bool *busy);
/* Waits until nothing is being read. */
kofn_status kf_scrub_rest(kofn_job *j);

#endif
