/* core.h -- the coordinator as a pure state machine: events in, actions out.
 *
 * For programs that replay a journal (docs/journal.md), as `kofn replay` does,
 * or study the coordinator with their own events.  A job (kofn_open) contains a
 * core and drives it.
 *
 * The core has no clock, thread, socket, file or random numbers, and never sees
 * a matrix.  It handles names (worker, seat, product, task, row) and the few
 * numbers that decide which results suffice.  A task is a row of the code that
 * one worker is to answer; the coordinator chooses the worker.  The same core
 * runs over threads, the simulator and every transport, and replays journals.
 *
 * The core stays consistent under any sequence of events: it ignores and counts
 * those that make no sense.  Only KOFN_NOMEM ends it.
 */
#ifndef KOFN_CORE_H
#define KOFN_CORE_H

#include <kofn/scheme.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of events.  The comments name the members of kofn_event that are
 * used. */
typedef enum kofn_event_type {
    /* worker, principal: the worker has joined. */
    KOFN_EV_JOINED = 1,
    /* worker: it holds the block of its seat. */
    KOFN_EV_STORED,
    /* worker: it will leave; give it no more work. */
    KOFN_EV_LEAVING,
    /* worker: it has left. */
    KOFN_EV_LEFT,
    /* product, use, lo, hi, all, late_too, alike: the product is to be
     * computed.  STREAM: product, m, n, p; a round begins, without a new
     * product if product is 0. */
    KOFN_EV_BEGIN,
    /* worker, product, task, row, took: the answer has arrived. */
    KOFN_EV_RESULT,
    /* worker, product, task, row: the worker could not compute it. */
    KOFN_EV_FAILED,
    /* Time has passed: the core looks for late and unresponsive workers, and
     * for ended waits.  Allowed at any time. */
    KOFN_EV_ALARM,
    /* product, task, status, bad, bad_count, doubted: the verdict of a
     * check. */
    KOFN_EV_VERDICT,
    /* worker, principal: a worker without a stored block has another principal
     * now. */
    KOFN_EV_MOVED,
    /* worker: it answers nothing and is evicted. */
    KOFN_EV_UNRESPONSIVE,
    /* product: it is cancelled, and delivered with KOFN_AGAIN. */
    KOFN_EV_CANCEL,
    /* worker: its block is wrong.  It must store another one, on the same seat,
     * before it gets work. */
    KOFN_EV_VOID,
    /* worker: its block was wrong, which counts against it like a wrong
     * product. */
    KOFN_EV_JUDGED
} kofn_event_type;

/* An event, which kofn_core_step processes. */
typedef struct kofn_event {
    kofn_event_type type;
    kofn_time now; /* the present time; it never decreases */
    uint32_t worker;
    /* Products have ascending numbers from 1, given by the caller.  The core
     * numbers tasks and checks. */
    uint32_t product, task, row;
    /* JOINED, MOVED: principal of the worker, a key or a host, which may have
     * other workers too.  Numbers from 1, without gaps.  0: the worker
     * itself. */
    uint32_t principal;
    kofn_time took; /* RESULT: time of the worker's own work; 0: unknown */
    uint32_t use;   /* BEGIN: KOFN_USES * operand + a kofn_use           */
    size_t lo, hi;  /* BEGIN: strips lo .. hi - 1 only; hi == 0: all     */
    /* BEGIN: all workers are asked, and those that are not late are compared.
     * Located workers are not counted as wrong; JUDGED does that. */
    bool all;
    /* BEGIN: every worker that is asked is waited for, late or not, unless it
     * leaves.  Later sums trust these workers. */
    bool late_too;
    /* BEGIN with errors, except adversarial: equally wrong results of
     * floor((n - k) / 2) workers must show in the comparison, because no other
     * test finds them. */
    bool alike;
    size_t m, n, p; /* BEGIN of a STREAM: the product is m x n times n x p */
    /* VERDICT on check number `task`: KOFN_OK if the results agree without
     * those in `bad`, otherwise KOFN_CORRUPT.  `bad` has indices into the tasks
     * of the check. */
    kofn_status status;
    const uint32_t *bad;
    size_t bad_count;
    /* The last `doubted` of bad are left out, but not located. */
    size_t doubted;
} kofn_event;

/* Types of actions.  The comments name the members of kofn_action that are
 * set. */
typedef enum kofn_action_type {
    /* worker, seat: send the block of this seat to the worker. */
    KOFN_DO_STORE = 1,
    /* worker, product, task, group, row, lo, hi: have the worker compute this
     * row. */
    KOFN_DO_WORK,
    /* worker, product, task: cancel the task. */
    KOFN_DO_CANCEL,
    /* product, group, lo, hi, decoder, tasks: decode these strips of the
     * output.  Adjoint codes, without a decoder: add these results up. */
    KOFN_DO_DECODE,
    /* product, status, noise, predicted: the product is over. */
    KOFN_DO_DELIVER,
    /* product, group, lo, hi, decoder: adjoint codes; compute the mixtures of
     * these strips of the input for the rows of the decoder. */
    KOFN_DO_MIX,
    /* product, task, group, lo, hi, decoder, tasks, most, liars, independent,
     * last: compare these results.  Answer with KOFN_EV_VERDICT of the same
     * numbers before any other event. */
    KOFN_DO_CHECK,
    /* worker: it answers nothing; disconnect it. */
    KOFN_DO_EVICT,
    /* STREAM: round number `product` is over.  lo: tasks in its longest list;
     * hi: number of marked workers. */
    KOFN_DO_END
} kofn_action_type;

/* A decoder: the weights that combine results into the wanted parts. */
typedef struct kofn_decoder kofn_decoder;

/* An action, which kofn_core_next returns. */
typedef struct kofn_action {
    kofn_action_type type;
    uint32_t worker, product, task;
    size_t seat;               /* STORE: seat of the plan             */
    size_t group, row, lo, hi; /* row: in the code of the group       */
    /* Valid until another product begins; STREAM: until the second round after
     * this one. */
    const kofn_decoder *decoder;
    /* A task for each row of the decoder, `count` in all.  Valid until the next
     * step.  `first` is for the core's own use. */
    const uint32_t *tasks;
    size_t first, count;
    kofn_status status;
    const char *why; /* DELIVER: message of a failure; until another begins */
    double noise, predicted; /* DELIVER: as in kofn_report */
    bool last;               /* CHECK: no further results can be checked      */
    size_t most;             /* CHECK: most results that may be left out      */
    /* CHECK: a worker is located only if `liars` conspiring others cannot make
     * it look faulty ... */
    size_t liars;
    /* ... and `independent` others that do not conspire can do so only by
     * chance. */
    size_t independent;
} kofn_action;

/* Computations that a product can make with an operand. */
typedef enum kofn_use {
    KOFN_USE_OWN,  /* the operation of its plan            */
    KOFN_USE_LEFT, /* the left product                     */
    KOFN_USE_READ, /* its present value, read from blocks  */
    KOFN_USES,     /* the number of uses of an operand     */
    /* KOFN_SUM, which has one operand: each part of the sum once, from one
     * worker, without a check. */
    KOFN_USE_PARTS = KOFN_USES
} kofn_use;

/* Version of the format of journals (docs/journal.md). */
#define KOFN_JOURNAL_VERSION 4

/* Returns the running digest of actions, continued with *a.  Start with h = 0,
 * and call it for each action in order.  Equal digests mean equal actions. */
KOFN_API uint64_t kofn_action_digest(uint64_t h, const kofn_action *a);

/* The coordinator as a state machine. */
typedef struct kofn_core kofn_core;

/* The options on which decisions depend, with the names and meanings of
 * kofn_options.  There are two exceptions: in `late` and `lease`, 0 means
 * never. */
typedef struct kofn_core_options {
    size_t size; /* sizeof(kofn_core_options) */
    /* sizeof(kofn_event) and sizeof(kofn_action) in the caller of this core.
     * 0: those of the library. */
    size_t event, action;
#define X(type, name, ...) type name;
    KOFN_OPTIONS_OF_CORE(X)
#undef X
    kofn_time late_least; /* shortest wait before a worker is late  */
    unsigned open;        /* most products open at once; 0 means 1  */
} kofn_core_options;
#define KOFN_OPTION_ZERO_(type, ...) (type)0,
#define KOFN_CORE_OPTIONS_INIT                                                 \
    {                                                                          \
        sizeof(kofn_core_options), sizeof(kofn_event), sizeof(kofn_action),    \
            KOFN_OPTIONS_OF_CORE(KOFN_OPTION_ZERO_) 0, 0                       \
    }

/* Makes a core for one or more operands, each with its own plan.  A seat is one
 * of all plans, so they need the same workers, seats, groups and type.  Borrows
 * the plans until kofn_core_free.  `opt` may be NULL.
 * KOFN_INVAL, KOFN_UNSUITED: as in kofn_open_all. */
KOFN_API kofn_status kofn_core_new_all(kofn_core **out,
                                       const kofn_plan *const *plan,
                                       size_t operands,
                                       const kofn_core_options *opt);
/* Processes one event.
 * KOFN_STATE: actions of the last step were not taken. */
KOFN_API kofn_status kofn_core_step(kofn_core *c, const kofn_event *ev);
/* Takes the next action of the last step.  Returns false if there is none left.
 * Take all of them before the next step. */
KOFN_API bool kofn_core_next(kofn_core *c, kofn_action *out);
/* Frees the core; NULL is allowed. */
KOFN_API void kofn_core_free(kofn_core *c);
/* Describes the state of all open products: calls line(ud, words) for each line
 * of text. */
KOFN_API void kofn_core_tell(const kofn_core *c,
                             void (*line)(void *ud, const char *words),
                             void *ud);

/* ---- a run that is over -------------------------------------------------- */

/* A record of facts outside the core, such as the time of the coordinator's own
 * work.  In a journal it is a line with the key `own`; docs/journal.md lists
 * the values and their members. */
typedef struct kofn_note {
    const char *own;
    kofn_time now, since; /* without a key `since`, both are `now` */
    uint32_t worker, product, task;
    unsigned round;
    kofn_status status;
} kofn_note;

/* The files to make from a journal, as the run would have written them with
 * these options of kofn_options. */
typedef struct kofn_drawing_options {
    size_t size;                /* sizeof(kofn_drawing_options)      */
    const char *trace, *record; /* file names; NULL: none            */
    const char *port;           /* its name, as in the journal       */
    kofn_in_flight in_flight;   /* as in the options of the core     */
    const char *report;         /* file name; NULL: none             */
    const char *label;          /* the run's name in it; NULL: none  */
} kofn_drawing_options;
#define KOFN_DRAWING_OPTIONS_INIT                                              \
    {                                                                          \
        sizeof(kofn_drawing_options), NULL, NULL, "", KOFN_IN_FLIGHT_LEDGER,   \
            NULL, NULL                                                         \
    }

/* A trace, a record and a report that are made from a journal. */
typedef struct kofn_drawing kofn_drawing;
/* Makes the files from the journal that a core replays.  Borrows the core and
 * the plan, which is that of operand 0, until kofn_drawing_end.
 * KOFN_IO: the trace or the report cannot be opened.  KOFN_INVAL: `record` is
 * not .npy or .csv. */
KOFN_API kofn_status kofn_drawing_new(kofn_drawing **out, const kofn_core *core,
                                      const kofn_plan *plan,
                                      const kofn_drawing_options *opt);
/* Adds an event.  Call it before the step of the core. */
KOFN_API kofn_status kofn_drawing_event(kofn_drawing *d, const kofn_event *ev);
/* Adds an action, as it is taken. */
KOFN_API kofn_status kofn_drawing_action(kofn_drawing *d, const kofn_action *a);
/* Adds a note. */
KOFN_API void kofn_drawing_note(kofn_drawing *d, const kofn_note *n);
/* Adds the name of a worker: that in the line of its arrival. */
KOFN_API kofn_status kofn_drawing_name(kofn_drawing *d, uint32_t worker,
                                       const char *name);
/* Adds the totals of the run and the sentence about it: those of the last line
 * of a journal.  The lists of the report are not used. */
KOFN_API kofn_status kofn_drawing_totals(kofn_drawing *d,
                                         const kofn_report *total,
                                         const char *verdict);
/* Writes the files if `keep` is true, and frees the drawing.  Call it before
 * kofn_core_free.
 * KOFN_IO: a file cannot be written.  KOFN_STATE: `record` is set and there was
 * no round. */
KOFN_API kofn_status kofn_drawing_end(kofn_drawing *d, bool keep);

#ifdef __cplusplus
}
#endif
#endif
