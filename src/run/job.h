/* job.h -- what the body of the coordinator has in hand.
 *
 * A job is made of structs, each of which one file alone writes: that named in its
 * comment.  job.c zeroes all of them at kofn_open_all and frees them at kofn_close;
 * others read them, and have them changed by functions of that file.
 *
 * The job owns everything here but operands, outputs and plans, which are
 * borrowed.  All is used on the thread of the job's owner.
 *
 * Files call those before them in this list: observe.c; lease.c, trial.c; open.c;
 * report.c, metrics.c; finish.c, pair.c; pace.c; act.c; loop.c; begin.c; window.c;
 * heal.c, scrub.c; put.c, change.c; job.c. */
#ifndef KF_RUN_JOB_H
#define KF_RUN_JOB_H

#include "fates.h"
#include "run.h"

#include "code/operation.h"

/* The tables that a report points to. */
typedef struct tables {
    size_t *rows, row_cap;
    kofn_worker_state *states;
    size_t state_cap;
    unsigned *located;
    size_t located_cap;
    double *weights; /* of the parts of a sum ... */
    unsigned *ages;  /* ... where a scheme remembers them */
} tables;

/* Stream: what is decoded while workers are at the next round. */
typedef struct kf_undecoded {
    kofn_action how; /* from strip lo on; type 0: there is nothing */
    kf_source *source;
    uint32_t *tasks;
    kofn_status status; /* of the product then                */
    unsigned round;     /* in which it was over               */
} kf_undecoded;

/* A product from kofn_put until kofn_take or kofn_cancel. */
typedef struct product {
    /* What it is of (open.c; pair.c of streams, window.c of the job's own). */
    uint32_t number;  /* as the caller has it; 0: it is the job's own, read into
                             a matrix of strips lo .. hi - 1 alone          */
    uint32_t operand; /* of which ...                               */
    kofn_use as;      /* ... and what of it                         */
    const kofn_plan *use; /* the plan for that                          */
    size_t lo, hi;        /* strips that it is limited to; hi == 0: all */
    unsigned count;       /* what events count                          */
    kf_messages messages; /* its input                                  */
    kf_measure measure;
    kofn_matrix out;
    kf_levels raised; /* rows and columns of what is coded with the blocks */
    kf_back back;     /* what is decoded is multiplied by         */
    bool room;        /* no answer of an honest worker is infinite */
    bool audited; /* a sum that is compared, for those that are not after it */
    kofn_plan shape; /* stream, or the job's own: the plan for its strips */
    /* It has begun (begin.c). */
    uint32_t core; /* as core and workers do, once it has begun  */
    bool begun;    /* the core knows of it */
    bool keyed; /* its output is tested by the key of its operand           */
    bool alike; /* as the event that it began with (kofn_event); after a test
                   that failed                                              */
    kofn_time began; /* ... since then; of an uncoded one, at first */
    kf_slots *tasks; /* once it has begun, until it is over   */
    /* What its workers were sent (pace.c). */
    const kf_buffer **fed; /* per worker: the input it was given last */
    size_t feds;
    size_t level; /* submessages that whoever is not late is sent for */
    /* What came of it (act.c, finish.c; report.c). */
    kofn_status ended;  /* KOFN_AGAIN while it is not over            */
    kofn_status odd;    /* the first thing wrong with what was decoded */
    char why[512];      /* ... or why it failed, in words             */
    char *failure;      /* what the worker said whose task failed first, ... */
    uint32_t failed_by; /* ... and which it was (loop.c)                     */
    kofn_report rep;    /* what is of this product alone; all count in it */
    tables tables;
    /* Of a stream (pair.c). */
    kf_held first;    /* its first operand                  */
    void *second;     /* ... and its second, where that is raised   */
    kf_block **block; /* of each row, while it may be sent */
    size_t blocks;
    kf_undecoded undecoded;
} product;

#define KF_JOB_OPEN (KOFN_OPEN_MOST + 1) /* and one of its own */

/* Products (open.c). */
typedef struct kf_products {
    product *list[KF_JOB_OPEN]; /* put and not taken; numbers ascend */
    size_t count;
    product *idle[KF_JOB_OPEN]; /* taken, for their memory */
    size_t idles;
    uint32_t puts;  /* numbers given out */
    unsigned every; /* one sum of so many is checked; 0: as opt.audit says */
    unsigned sums;  /* that were put since that was set */
    size_t lo, hi;  /* strips that products are limited to; hi == 0: all */
    unsigned step;  /* what events count; 0: products */
    kofn_status broken; /* nothing works any more */
} kf_products;

/* What callers are told (report.c). */
typedef struct kf_told {
    kofn_report rest; /* what is of no product, since one was taken */
    kofn_report total;
    tables tables;  /* of the report that was given last               */
    char *failure;  /* of the product that was taken last              */
    uint64_t moved; /* bytes of the product that was over last */
    size_t dropped; /* messages that the core had dropped before this product */
} kf_told;

/* Workers, and the seats that they wait for a block of. */
typedef struct kf_waiters {
    uint32_t *worker;
    size_t *seat;
    size_t count, cap, seat_cap;
} kf_waiters;

/* Blocks (lease.c). */
typedef struct kf_lease {
    kf_waiters owed;    /* who was sent nothing yet                        */
    kf_waiters healing; /* who waits for what is made of blocks of others  */
    size_t storing;     /* workers with a block of A on its way ...        */
    kofn_time since;    /* ... as many as that, by the wall                */
    kofn_time look_at;  /* for who is long at its block; 0: at once        */
    kofn_time pace;     /* of half of those who were given theirs          */
} kf_lease;

/* The evidence that is known against a worker. */
typedef struct kf_trial {
    bool accused; /* it was located, and is asked again            */
    bool wrong;   /* what came of its block is ...                 */
    bool first;   /* ... and was when it was read before           */
    bool mending; /* another is on its way                         */
} kf_trial;

/* ... against all (trial.c). */
typedef struct kf_trials {
    kf_trial *worker;
    size_t workers;
    bool on;     /* some operands are due                             */
    bool second; /* they were read before, and somebody's came wrong  */
} kf_trials;

/* Rounds of a stream (pair.c). */
typedef struct kf_stream_rounds {
    unsigned rounds; /* that began        */
    bool in_round;   /* ... and are not over */
    double *load;    /* per worker: multiply-adds of its list */
    size_t loads;
    void (*on_round)(void *ud, const kofn_stream_round *round);
    void *ud;
} kf_stream_rounds;

/* A task that waits until its worker is sent it. */
typedef struct kf_turn {
    uint32_t product, task;
} kf_turn;

/* Submessages of one worker. */
typedef struct kf_gait {
    kf_turn *turn; /* those not sent for, from `first` up to `end` */
    size_t first, end, cap;
    size_t awaited;   /* sent for, and not come ... */
    kofn_time sent;   /* ... the first of them then */
    uint32_t product; /* of which it was sent for last */
    kofn_time last;   /* when one came, last           */
    kofn_time way;    /* the shortest time that one of this product was under
                         way                                            */
} kf_gait;

/* ... of all (pace.c). */
typedef struct kf_pace {
    kf_gait *gait; /* per worker */
    size_t workers;
    size_t held;      /* tasks that were not sent for yet               */
    bool due;         /* some may be sent for now ...           */
    kofn_time due_at; /* ... and others then, if nothing comes  */
    kofn_time newest; /* when the last answer came              */
    kofn_time *list;  /* to find the middle of                  */
    size_t list_cap;
} kf_pace;

/* The loop (loop.c). */
typedef struct kf_loop {
    kofn_action *todo; /* of the step in hand */
    size_t todo_cap;
    size_t greeted;    /* workers that said HELLO and may have a seat */
    size_t next_event; /* of opt.events */
} kf_loop;

/* What has begun (begin.c). */
typedef struct kf_start {
    uint32_t number; /* given out for the core, last                      */
    kofn_time asked; /* when the first round was, on the wall; 0: it is not */
    bool enough;     /* there were enough workers for it */
} kf_start;

/* Strips of an operand that the job itself reads: of heal.c or scrub.c, which has
 * window.c read them. */
typedef struct kf_window {
    size_t operand, at; /* strips before `at` of that are done            */
    size_t to;          /* it reaches to there                            */
    bool velocity;      /* it is that which is read                        */
    kofn_matrix into;   /* whole parts of as many strips                   */
    kofn_plan shape;    /* ... which have this plan, as an operand         */
    product *reading;   /* by this one; NULL: it is not                    */
} kf_window;

/* Blocks that are made of what others hold, for that is not A any more (heal.c). */
typedef struct kf_heal {
    size_t among; /* who it is read for: the first in line; others came later
                     and are next                                         */
    kf_window window;
    uint32_t last;  /* product before which windows were read last ...     */
    size_t windows; /* ... and how many                                    */
} kf_heal;

/* Blocks that are compared with each other (scrub.c). */
typedef struct kf_scrub {
    bool asked; /* by the caller, who wants to know: */
    kofn_status status;
    char why[512];
    kf_window window;
    double *cols; /* scales of the operand's columns so far             */
} kf_scrub;

struct kofn_job {
    /* What it was opened with, and what functions of other folders and of fates.c,
     * guard.c and journal.c change (job.c). */
    const kofn_plan *plan; /* of the first operand; all have its workers */
    kofn_port *port;
    kofn_core *core;
    kf_held *held; /* the operands */
    size_t operands;
    kofn_options opt; /* checked, with defaults; late, lease: 0 is never */
    kf_journal *journal;
    kf_fates fates; /* of tasks, and who watches */
    kf_guard guard;
    kf_pool spare; /* of buffers of results */
    kf_scratch scratch;
    kf_tally tally; /* KOFN_SUM */

    kf_products open;
    kf_told told;
    kf_lease lease;
    kf_trials trials;
    kf_stream_rounds stream;
    kf_pace paced;
    kf_loop loop;
    kf_start start;
    kf_heal heal;
    kf_scrub scrub;
};

/* The number of the operand's use that a product makes, as kofn_event has it. */
static inline uint32_t kf_job_use_number(const product *p)
{
    return KOFN_USES * p->operand + (uint32_t)p->as;
}

static inline kofn_time kf_job_now(const kofn_job *j)
{
    return j->port->now(j->port);
}

/* Is it with the workers? */
static inline bool kf_job_is_running(const product *p)
{
    return p->begun && p->ended == KOFN_AGAIN;
}

/* Is somebody sent what it is to know? */
static inline bool kf_job_is_watched(const kofn_job *j)
{
    return j->journal || j->fates.observers;
}

/* Has everybody come who is to be there at the start? */
static inline bool kf_job_all_came(const kofn_job *j)
{
    return j->loop.greeted >= j->port->workers;
}

static inline bool kf_is_stream(const kofn_job *j)
{
    return j->plan->op->stream;
}

/* Is the job itself reading? */
static inline bool kf_job_reads(const kofn_job *j)
{
    return j->heal.window.reading || j->scrub.window.reading;
}

/* Nobody was sent its input yet. */
static inline void kf_job_feed_again(product *p)
{
    for (size_t i = 0; i < p->feds; i++)
        p->fed[i] = NULL;
}

/* The product's row of the plan: as seats of all groups are numbered. */
static inline size_t kf_job_row(const product *p, size_t row, size_t group)
{
    return row * p->use->layout.groups + group;
}

/* observe.c */
void kf_job_note_now(kofn_job *j, kofn_note n);
/* The product is over, or the run is before it; `round`: the number to be told. */
void kf_job_note_over(kofn_job *j, const product *p, kofn_time now,
                      unsigned round);
/* The coordinator's own work: on a simulated port it costs simulated time. */
typedef struct kf_stopwatch {
    kofn_time start, cpu;
} kf_stopwatch;
kf_stopwatch kf_job_start_work(const kofn_job *j);
kofn_time kf_job_end_work(kofn_job *j, kf_stopwatch w, const char *what);

/* lease.c */
/* KOFN_DO_STORE: it is owed a block. */
kofn_status kf_lease_owe(kofn_job *j, const kofn_action *a);
/* Encode the blocks that are owed, all in one pass over A, and send them; who is
 * sent empty blocks, of operands that have changed, waits to be healed. */
kofn_status kf_lease_hand_out(kofn_job *j);
/* To each of the first n its own of these blocks, which are given away, or pieces of
 * blocks; whose block has still to be healed waits for that. */
kofn_status kf_lease_send(kofn_job *j, kf_msg m, const kf_waiters *to, size_t n,
                          kf_block **blocks);
/* Those who have gone do not wait any more; how many of the first `among` do. */
size_t kf_lease_forget_gone(kofn_job *j, size_t among);
/* The first n of them have their blocks. */
void kf_lease_healed(kofn_job *j, size_t n);
/* The number of live workers of which any such set answers every operand's
 * products, and whether so many are live. */
size_t kf_job_enough(const kofn_job *j);
bool kf_job_has_enough(const kofn_job *j);
/* True while a worker that is given a block made here is waited for.  But where
 * the others are enough, nobody is waited for longer than the lease after any
 * of them had its own: a joiner that never stores would hold every round. */
bool kf_lease_await(kofn_job *j, kofn_time *atmost);
/* A worker has stored its block. */
void kf_lease_stored(kofn_job *j, uint32_t worker);
/* The first worker, of number `from` or more, that is too long at its block;
 * UINT32_MAX: there is none.  From 0 on it looks only when it is time to: when one that
 * was in time would not be any more. */
uint32_t kf_lease_late(kofn_job *j, uint32_t from, kofn_time now);

/* trial.c */
/* Have the workers that the last check located asked again. */
kofn_status kf_trial_receive(kofn_job *j, const product *p,
                             const kofn_action *a);
/* The worker has stored a block. */
void kf_trial_stored(kofn_job *j, uint32_t worker);
/* The operand is to be read. */
void kf_trial_ask(kofn_job *j, size_t operand);
/* The operand has been read; is another to be, or some once more? */
bool kf_trial_goes_on(kofn_job *j, size_t operand);
/* No operand is to be read. */
void kf_trial_end(kofn_job *j);
/* What was known against the worker. */
kf_trial kf_trial_forget(kofn_job *j, uint32_t worker);
/* Another block is on its way to it. */
void kf_trial_mend(kofn_job *j, uint32_t worker);

/* open.c */
/* The product that has begun and is not taken, by its number in the core, or
 * NULL. */
product *kf_job_find(const kofn_job *j, uint32_t number);

/* A task of it, which has begun and is not over, or NULL. */
static inline kf_slot *kf_job_task(const product *p, uint32_t task)
{
    return kf_fates_find(p->tasks, task);
}

kofn_status kf_job_check_operand(const kofn_job *j, size_t operand);
kofn_status kf_job_check_placed(const kofn_job *j);
kofn_status kf_job_check_whole(const kofn_job *j);
/* That a round has, and may be limited to some of; 0: it is whole. */
size_t kf_job_strips(const kofn_job *j);
kofn_status kf_job_check_room(const kofn_job *j);
/* If this is a failure the job has failed; returns it. */
kofn_status kf_job_break(kofn_job *j, kofn_status st);
/* The plan for that; NULL: it is not served. */
const kofn_plan *kf_job_plan(const kofn_job *j, uint32_t operand, kofn_use as);
/* A dense matrix is held, cut and raised as its plan has it. */
kofn_status kf_job_hold(const kofn_job *j, kf_held *h, const kofn_matrix *A,
                        const char *name);
/* What it takes is given back. */
void kf_job_let_go(kf_held *h);
/* By what the input is to be multiplied, of which no element is larger than `most`;
 * what is decoded is then multiplied back. */
double kf_job_scale_input(const kf_resident *r, product *p,
                          const kofn_plan *use, const kofn_matrix *in,
                          double most);
/* A sum that would be of parts each from one worker is coded instead. */
void kf_job_code_it(const kofn_job *j, product *p);
/* A product that was taken, for its memory, or a new one; still not open. */
product *kf_job_last_idle(kofn_job *j);
void kf_job_reset(const kofn_job *j, product *p, const kofn_plan *use);
/* Open it; it is the newest now. */
kofn_status kf_job_open_product(kofn_job *j, uint32_t operand, kofn_use as,
                                const kofn_matrix *in, kofn_matrix *out);
/* The last idle one is open now, as the newest ... */
void kf_job_opened(kofn_job *j, product *p);
/* ... or, the job's own, before all that have not begun. */
void kf_job_opened_first(kofn_job *j);
/* Its memory is for others. */
void kf_job_close_product(kofn_job *j, product *p);

/* report.c */
/* What of no product comes on top. */
void kf_job_count(kofn_job *j, const kofn_report *more);
/* All products, and what is of none. */
void kf_job_sum(const kofn_job *j, kofn_report *sum);
/* KOFN_DO_DELIVER: p->rep is complete. */
kofn_status kf_job_report(kofn_job *j, product *p, const kofn_action *a);
/* What is told of a product, or so far where it is NULL. */
kofn_report kf_job_report_of(const kofn_job *j, const product *p);
/* It is over and taken: the tables that its report points to, and the words of its
 * failure, are kept until the next one is. */
void kf_job_close(kofn_job *j, product *p, const kofn_report *r);
/* Report the events of no product, since `began`, and the workers that are
 * there. */
kofn_status kf_job_report_rest(kofn_job *j, kofn_time began, kofn_report *out);

/* finish.c */
kofn_status kf_job_decode(kofn_job *j, product *p, const kofn_action *a,
                          const kf_source *source);
/* End the product, with what is known of it. */
void kf_job_finish_product(kofn_job *j, product *p, kofn_status st);
/* Did an answer come that is not finite, as those of honest workers may be, so that
 * answers cannot be told apart?  Says so in p->why. */
bool kf_job_overflows(product *p);
/* Begin a product again.  An uncoded one is coded then: a worker was missing, or
 * answered what is no number. */
void kf_job_begin_again(kofn_job *j, product *p);

/* pair.c: products of streams */
kofn_status kf_pair_open(kofn_job *j, const kofn_matrix *X,
                         const kofn_matrix *Y, kofn_matrix *out);
/* A round begins, ... */
kofn_status kf_pair_begin_round(kofn_job *j);
/* ... with this product. */
kofn_status kf_pair_begin(kofn_job *j, product *p, kofn_event *ev);
/* Blocks for these rows. */
kofn_status kf_pair_encode(kofn_job *j, product *p, const size_t *rows,
                           size_t n);
/* A task of it is given out: adds its block. */
kofn_status kf_pair_given(kofn_job *j, product *p, kf_msg *m);
/* KOFN_DO_END. */
void kf_pair_end_round(kofn_job *j);
/* To be decoded when there is time; `source` is given away. */
kofn_status kf_pair_decode_later(kofn_job *j, product *p, const kofn_action *a,
                                 kf_source *source);
/* The core is done with it. */
void kf_pair_over(kofn_job *j, product *p, kofn_status st);
/* The oldest that waits for that, or NULL. */
product *kf_pair_undecoded(const kofn_job *j);
/* Decode some of it. */
kofn_status kf_pair_decode_some(kofn_job *j, product *p);
/* Nothing of its operands is looked at any more. */
void kf_pair_release(product *p);

/* pace.c */
/* A task is given out: sent, now or when its turn comes. */
kofn_status kf_pace_give(kofn_job *j, product *p, kf_slot *s);
/* The task has been answered, in whatever way. */
void kf_pace_came(kofn_job *j, kf_slot *s, kofn_time took);
/* By when some may be sent for; KOFN_NEVER: by nothing but an answer. */
kofn_time kf_pace_alarm(const kofn_job *j);
/* The task is cancelled; true: it was never sent. */
bool kf_pace_cancel(kofn_job *j, kf_slot *s);
/* Send those whose turn it is. */
kofn_status kf_pace_go_on(kofn_job *j);

/* act.c */
kofn_status kf_job_act(kofn_job *j, const kofn_action *a);
kofn_status kf_job_evict(kofn_job *j, uint32_t worker);
/* Inputs for all who are given work in these actions. */
kofn_status kf_job_encode_inputs(kofn_job *j, const kofn_action *todo,
                                 size_t n);

/* loop.c */
kofn_status kf_job_step(kofn_job *j, kofn_event *ev);
/* ... of a worker. */
kofn_status kf_job_tell(kofn_job *j, kofn_event_type type, uint32_t worker);
/* Wait for one message or the alarm, until then by the port's clock and so long at
 * most by the wall.  KOFN_AGAIN: nothing came. */
kofn_status kf_job_pass(kofn_job *j, kofn_time until, kofn_time atmost);
/* Give up workers that are too long at their blocks; *atmost: until it is time to
 * look again. */
kofn_status kf_job_give_up(kofn_job *j, kofn_time *atmost);
/* Is something to happen before this product begins? */
bool kf_job_is_due(const kofn_job *j, const product *p);
/* Have happen what is due once this share of the product has come. */
kofn_status kf_job_stage(kofn_job *j, const product *p, double done);
/* ... of the newest that has begun. */
kofn_status kf_job_stage_now(kofn_job *j);

/* begin.c */
kofn_status kf_job_begin(kofn_job *j, product *p);
/* Until there are enough for the first round: no longer than is allowed, and
 * what is left of it in *atmost. */
kofn_status kf_job_check_start(kofn_job *j, kofn_time *atmost);
/* Everybody who is to come before the first round has come. */
kofn_status kf_job_await_start(kofn_job *j);
/* Does it wait for more workers than are live? */
bool kf_job_starves(const kofn_job *j, const product *p);

/* window.c */
size_t kf_window_strips(const kofn_job *j, const kf_window *w); /* in all */
/* How far it reaches. */
void kf_window_next(const kofn_job *j, kf_window *w);
/* Begin to read it. */
kofn_status kf_window_read(kofn_job *j, kf_window *w);
/* It was read; what that cost is told with the product that is taken next. */
void kf_window_close(kofn_job *j, kf_window *w);
/* The strips that were read, as an operand of that plan by itself, to be freed in any
 * case before the window is read again. */
kofn_status kf_window_resident(const kofn_job *j, kf_window *w,
                               const kofn_plan *plan, kf_resident *out);

/* heal.c */
/* What was read is passed on, if it has come. */
kofn_status kf_heal_take(kofn_job *j);
/* Begin to read for the workers to be healed, if there are any and it is time. */
kofn_status kf_heal_begin(kofn_job *j, const product *next);

/* scrub.c */
/* Do one thing for blocks that are to be healed or compared; *busy: wait until
 * what is read has come, and nothing else is to begin before. */
kofn_status kf_scrub_go_on(kofn_job *j, const product *next, bool *busy);
/* Until nothing is being read. */
kofn_status kf_scrub_rest(kofn_job *j);

#endif
