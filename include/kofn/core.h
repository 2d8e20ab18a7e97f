/* core.h -- the coordinator as a pure state machine: events in, actions out.
 *
 * For whoever replays a journal (docs/journal.md), as `kofn replay` does, or studies
 * what the coordinator does with events of his own; a job (kofn_open) drives one by
 * itself.
 *
 * No clock, no thread, no socket, no file, no randomness, and never a matrix:
 * it handles names (worker, seat, product, task, row) and the few numbers
 * needed to decide what is enough.  A task is a row of the code that some
 * worker is to answer; which worker that is, is the coordinator's choice.  The
 * same core runs over threads, the simulator and every transport, and re-runs a
 * journal.
 *
 * Whatever event comes, in whatever order, the core stays consistent: what
 * does not fit is dropped and counted.  Only KOFN_NOMEM ends it.
 */
#ifndef KOFN_CORE_H
#define KOFN_CORE_H

#include <kofn/scheme.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kofn_event_type {
    KOFN_EV_JOINED = 1,   /* worker is here                                 */
    KOFN_EV_STORED,       /* worker holds the block of its seat             */
    KOFN_EV_LEAVING,      /* worker will go: give it nothing more           */
    KOFN_EV_LEFT,         /* worker is gone                                 */
    KOFN_EV_BEGIN,        /* product, use: it is wanted.  STREAM: product, m, n,
                           p; a round begins, with none if product is 0   */
    KOFN_EV_RESULT,       /* worker, product, task, row: its answer is here */
    KOFN_EV_FAILED,       /* likewise: the worker could not compute it      */
    KOFN_EV_ALARM,        /* time has passed: who is late, owes an answer for
                           too long or is waited for in vain?  At any time */
    KOFN_EV_VERDICT,      /* product, task, status, bad: what a check found */
    KOFN_EV_MOVED,        /* worker, principal: who answers for it, before it
                           has stored a block                             */
    KOFN_EV_UNRESPONSIVE, /* worker answers nothing: it is given up         */
    KOFN_EV_CANCEL,       /* product: it is not wanted any more, and over,
                           delivered with KOFN_AGAIN                      */
    KOFN_EV_VOID,         /* worker: its block is wrong; it is to store another,
                           on its seat, before it does anything           */
    KOFN_EV_JUDGED        /* worker: its block was wrong, which counts against
                           it as a product does                           */
} kofn_event_type;

typedef struct kofn_event {
    kofn_event_type type;
    kofn_time now;
    uint32_t worker;
    /* Products have numbers from 1 that ascend, given by whoever begins them;
     * tasks and checks are numbered by the core. */
    uint32_t product, task, row;
    /* JOINED, MOVED: who answers for this worker, a key or a host, and perhaps for
     * others too: numbers from 1, given out in order; 0: nobody but itself. */
    uint32_t principal;
    kofn_time took; /* RESULT: the worker's own work; 0: it does not say */
    uint32_t use;   /* BEGIN: KOFN_USES o + a kofn_use, of operand o */
    size_t lo, hi;  /* BEGIN: of these strips only; hi == 0: of all      */
    bool all; /* BEGIN: everybody is asked, and whoever is not late compared; no
                 name counts against its worker, see JUDGED              */
    bool late_too; /* BEGIN: everybody who is asked is waited for, late or not,
                      as long as it is there: it is believed afterwards */
    bool alike;    /* BEGIN with errors, but adversarial: results of any half of
                      the workers beyond k that are wrong alike have to show,
                      for nothing but the comparison finds them          */
    size_t m, n, p; /* BEGIN of a STREAM: the product is m x n times n x p  */
    /* VERDICT on check number `task`: KOFN_OK when without the results in bad
     * (indices into the check's tasks) the rest agrees, else KOFN_CORRUPT. */
    kofn_status status;
    const uint32_t *bad;
    size_t bad_count;
    size_t doubted; /* so many of the last of bad are left out only: that they
                       are corrupt is not certain */
} kofn_event;

typedef enum kofn_action_type {
    KOFN_DO_STORE = 1, /* worker, seat: hand that block to it             */
    KOFN_DO_WORK,      /* worker, product, task, group, row, lo, hi: have
                          that row computed                               */
    KOFN_DO_CANCEL,    /* worker, product, task: not needed any more      */
    KOFN_DO_DECODE,    /* product, group, lo, hi, decoder, tasks: write these
                          strips; adjoint codes, no decoder: add these
                          results up                                      */
    KOFN_DO_DELIVER,   /* product, status, noise, predicted: it is over   */
    KOFN_DO_MIX,       /* product, group, lo, hi, decoder: adjoint codes, what
                          these strips of the input become for these rows */
    KOFN_DO_CHECK,     /* product, task, group, lo, hi, decoder, tasks, most:
                          do these results agree; answer with
                          KOFN_EV_VERDICT of the same numbers before anything
                          else                                            */
    KOFN_DO_EVICT,     /* worker: it answers nothing; have no more of it  */
    KOFN_DO_END        /* STREAM: the round with the number `product` is over;
                          lo: tasks of its longest list; hi: marked workers */
} kofn_action_type;

/* A decoder: it says which results make which wants. */
typedef struct kofn_decoder kofn_decoder;

typedef struct kofn_action {
    kofn_action_type type;
    uint32_t worker, product, task;
    size_t seat;                 /* STORE: of the plan */
    size_t group, row, lo, hi;   /* row: of that group's code */
    const kofn_decoder *decoder; /* until another product begins; STREAM:
                                         until the second round after this  */
    const uint32_t *tasks; /* one per row of the decoder, until the next step */
    size_t first, count;   /* tasks: how many; first is the core's own        */
    kofn_status status;
    const char *why; /* DELIVER: of a failure, in words; until another begins */
    double noise, predicted;
    bool last;       /* CHECK: there will be no more results to check       */
    size_t most;     /* CHECK: results that may be left out as wrong        */
    size_t liars;    /* CHECK: nobody is located whom so many could have made
                     look corrupt ... */
    size_t promised; /* ... nor, but by accident, whom so many could that do
                        not conspire                                         */
} kofn_action;

/* The uses that an operand may have. */
typedef enum kofn_use {
    KOFN_USE_OWN,  /* the operation of its plan            */
    KOFN_USE_LEFT, /* the left product                     */
    KOFN_USE_READ, /* what it is now, from its coded blocks */
    KOFN_USES,
    KOFN_USE_PARTS = KOFN_USES /* of the function of a sum, which is the only
                                  operand: each part from one worker, and nothing
                                  is looked for */
} kofn_use;

/* Of the format of journals (docs/journal.md). */
#define KOFN_JOURNAL_VERSION 4

/* A running digest of actions, from h = 0: equal digests, equal actions.  Call
 * it for each action as it is taken. */
KOFN_API uint64_t kofn_action_digest(uint64_t h, const kofn_action *a);

typedef struct kofn_core kofn_core;

/* Those of kofn_options that decisions rest on, under their names.  They are the
 * same here, but in `late` and in `lease` 0 is never. */
typedef struct kofn_core_options {
    size_t size; /* sizeof(kofn_core_options), so that it may grow */
    /* sizeof(kofn_event) and sizeof(kofn_action), of whoever gives these events and
     * reads these actions: told once, for all of this core.  0: the library's */
    size_t event, action;
#define X(type, name, ...) type name;
    KOFN_OPTIONS_OF_CORE(X)
#undef X
    kofn_time late_least; /* nobody is late before so long after others */
    unsigned open;        /* products at once; 0: 1                     */
} kofn_core_options;
#define KOFN_CORE_OPTIONS_INIT                                                 \
    {                                                                          \
        .size = sizeof(kofn_core_options), .event = sizeof(kofn_event),        \
        .action = sizeof(kofn_action)                                          \
    }

/* For several operands, a plan each, of the same workers, seats and groups: a
 * seat is one of all of them.  Borrows the plans. */
KOFN_API kofn_status kofn_core_new_all(kofn_core **out,
                                       const kofn_plan *const *plan,
                                       size_t operands,
                                       const kofn_core_options *opt);
KOFN_API kofn_status kofn_core_step(kofn_core *c, const kofn_event *ev);
/* The next action of the last step; drain them all before the next step. */
KOFN_API bool kofn_core_next(kofn_core *c, kofn_action *out);
KOFN_API void kofn_core_free(kofn_core *c);
/* Where the products that are open stand, in lines of words for people. */
KOFN_API void kofn_core_tell(const kofn_core *c,
                             void (*line)(void *ud, const char *words),
                             void *ud);

/* ---- a run that is over --------------------------------------------------- */

/* What the body of a coordinator knows of itself, as journals have it in lines
 * with the key `own` (docs/journal.md, which says what each has). */
typedef struct kofn_note {
    const char *own;
    kofn_time now, since; /* without a key `since`: both are now */
    uint32_t worker, product, task;
    unsigned round;
    kofn_status status;
} kofn_note;

/* The files that a run with these options of kofn_options would have written. */
typedef struct kofn_drawing_options {
    size_t size; /* sizeof(kofn_drawing_options), so that it may grow */
    const char *trace, *record; /* NULL: not wanted                */
    const char *port;           /* its name, as in the journal     */
    kofn_in_flight in_flight;   /* as the core was told            */
} kofn_drawing_options;
#define KOFN_DRAWING_OPTIONS_INIT                                              \
    {                                                                          \
        .size = sizeof(kofn_drawing_options), .port = ""                       \
    }

/* Makes a trace and a record of the journal that the core replays: call it for
 * each event before the step, for each action as it is taken, and for each note.
 * Borrows the core and the plan, which is of its first operand. */
typedef struct kofn_drawing kofn_drawing;
KOFN_API kofn_status kofn_drawing_new(kofn_drawing **out, const kofn_core *core,
                                      const kofn_plan *plan,
                                      const kofn_drawing_options *opt);
KOFN_API kofn_status kofn_drawing_event(kofn_drawing *d, const kofn_event *ev);
KOFN_API kofn_status kofn_drawing_action(kofn_drawing *d, const kofn_action *a);
KOFN_API void kofn_drawing_note(kofn_drawing *d, const kofn_note *n);
/* Frees it, before the core; without `keep` no file is written.  KOFN_IO when one
 * could not be. */
KOFN_API kofn_status kofn_drawing_end(kofn_drawing *d, bool keep);

#ifdef __cplusplus
}
#endif
#endif
