/* job.h -- what the body of the coordinator has in hand, shared by job.c (its
 * life), open.c and put.c (its products), change.c and heal.c (operands that
 * change), loop.c (passes of its loop) and act.c (what the core has it do).
 *
 * The job owns everything here but operands, outputs and plans, which are
 * borrowed.  All is used on the thread of the job's owner. */
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
    kofn_action how; /* type 0: there is nothing */
    kf_source *source;
    uint32_t *tasks;
    size_t at;          /* strips before this one are decoded */
    kofn_status status; /* of the product then                */
    unsigned round;     /* in which it was over               */
} kf_undecoded;

/* A product from kofn_put until kofn_take or kofn_cancel. */
typedef struct product {
    uint32_t number;      /* as the caller has it; 0: it is the job's own */
    uint32_t core;        /* as core and workers do, once it has begun  */
    uint32_t operand;     /* of which ...                               */
    kofn_use as;          /* ... and what of it                         */
    const kofn_plan *use; /* the plan for that                          */
    size_t lo, hi;        /* strips that it is limited to; hi == 0: all */
    unsigned count;       /* what events count                          */
    kf_messages messages; /* its input                                  */
    kf_measure measure;
    kofn_matrix out;
    kf_levels raised; /* rows and columns of what is coded with the blocks */
    kf_back back;     /* what is decoded is multiplied by         */
    bool room;        /* no answer of an honest worker is infinite */
    kf_slots *tasks;  /* once it has begun, until it is over   */
    const kf_buffer **fed; /* per worker: the input it was given last */
    size_t feds, fed_cap;
    size_t level; /* submessages that whoever is not late is sent for */
    bool audited; /* a sum that is compared, for those that are not after it */
    bool begun;   /* the core knows of it */
    kofn_time began;
    kofn_status ended;  /* KOFN_AGAIN while it is not over            */
    kofn_status odd;    /* the first thing wrong with what was decoded */
    char why[512];      /* ... or why it failed, in words             */
    char *failure;      /* what the worker said whose task failed first, ... */
    uint32_t failed_by; /* ... and which it was                              */
    kofn_plan shape;    /* stream: the plan for its shape             */
    kf_held first;      /* stream: its first operand                  */
    void *second;       /* ... and its second, where that is raised   */
    kf_block **block;   /* stream: of each row, while it may be sent */
    size_t blocks;
    kf_undecoded undecoded;
    size_t window;   /* read into a matrix of strips lo .. hi - 1 alone, for
                           which `shape` is the plan: so many; 0: it is not  */
    bool velocity;   /* it is that which is read */
    bool scrubs;     /* blocks are compared      */
    bool again;      /* it began uncoded, and somebody was missing */
    kofn_report rep; /* what is of this product alone              */
    tables tables;
} product;

/* Strips of an operand that are read by the job itself (window.c). */
typedef struct kf_window {
    size_t operand, at; /* strips before `at` of that are done            */
    size_t to;          /* it reaches to there; 0: there is none           */
    bool velocity;      /* it is that which is read                        */
    bool scrubs;        /* blocks are compared                             */
    kofn_matrix into;   /* whole parts of as many strips                   */
    product *reading;   /* by this one; NULL: it is not                    */
} kf_window;

/* Blocks that are made of what others hold, for that is not A any more (heal.c). */
typedef struct kf_heal {
    uint32_t *worker; /* who waits for theirs, ... */
    size_t *seat;     /* ... on which seats         */
    size_t count, cap, seat_cap;
    size_t among; /* the first of them are who it is read for; the others
                     came later and are next                             */
    kf_window window;
    uint32_t last; /* product before which there was a window             */
} kf_heal;

/* The evidence that is known against a worker. */
typedef struct kf_trial {
    bool accused; /* it was located, and is asked again            */
    bool wrong;   /* what came of its block is ...                 */
    bool first;   /* ... and was when it was read before           */
    bool mending; /* another is on its way                         */
} kf_trial;

/* Blocks that are compared with each other (scrub.c). */
typedef struct kf_scrub {
    kf_trial *worker;
    size_t workers, cap;
    bool *due;   /* per operand: it is to be read                     */
    bool *odd;   /* ... and somebody's block of it came wrong         */
    bool on;     /* some are due                                      */
    bool second; /* they were read before, and somebody's came wrong  */
    bool asked;  /* by the caller, who wants to know: */
    kofn_status status;
    char why[512];
    kofn_report sum;
    kf_window window;
    double *cols[2]; /* scales of columns so far, of A and of its velocity */
} kf_scrub;

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
    size_t workers, cap;
    size_t held;      /* tasks that were not sent for yet               */
    bool due;         /* some may be sent for now ...           */
    kofn_time due_at; /* ... and others then, if nothing comes  */
    kofn_time newest; /* when the last answer came              */
    kofn_time *list;  /* to find the middle of                  */
    size_t list_cap;
} kf_pace;

#define KF_JOB_OPEN (KOFN_OPEN_MOST + 1) /* and one of its own */

struct kofn_job {
    const kofn_plan *plan; /* of the first operand; all have its workers */
    kofn_port *port;
    kofn_core *core;
    kf_held *held; /* the operands */
    size_t operands;
    kf_journal *journal;
    kofn_options opt;   /* checked, with defaults filled in; late, lease: 0 is
                         never */
    size_t next_event;  /* of opt.events */
    kofn_status broken; /* nothing works any more */

    product *open[KF_JOB_OPEN]; /* put and not taken; numbers ascend */
    size_t opens;
    product *idle[KF_JOB_OPEN]; /* taken, for their memory */
    size_t idles;
    uint32_t puts;  /* numbers given out ...                           */
    uint32_t begun; /* ... and for the core                            */
    uint32_t round; /* the product of kofn_begin; 0: there is none      */
    tables tables;  /* of the report that was given last               */
    char *failure;  /* of the product that was taken last              */

    unsigned rounds; /* stream: that began    */
    bool in_round;   /* ... and are not over  */
    double *load;    /* per worker: multiply-adds of its list */
    size_t loads, load_cap;
    void (*on_round)(void *ud, const kofn_stream_round *round);
    void *on_round_ud;

    kf_guard guard;
    kofn_action *todo; /* of the step in hand */
    size_t todo_cap;
    kf_pool spare; /* of buffers of results */
    kf_scratch scratch;
    kf_tally tally; /* KOFN_SUM */

    uint64_t moved; /* bytes of the product that was over last */
    kf_heal heal;
    kf_scrub scrub;
    kf_pace paced;
    uint32_t *owed;    /* workers to whom blocks are owed ... */
    size_t *owed_seat; /* ... and of which seats           */
    size_t owing, owed_cap, owed_seat_cap;
    size_t greeted;          /* workers that said HELLO and may have a seat */
    size_t storing;          /* workers with a block on its way ...         */
    kofn_time storing_since; /* ... as many as that, by the wall   */
    kofn_time look_at;       /* for who is long at its block; 0: at once  */
    kofn_time pace;          /* of half of those who were given theirs    */
    kofn_time asked; /* when the first round was, on the wall; 0: it is not */
    bool started;    /* there were enough workers for it */
    unsigned sums;   /* that were put; see opt.audit     */

    size_t lo, hi;   /* strips that products are limited to; hi == 0: all */
    kofn_report rep; /* what is of no product, since one was taken */
    kofn_report total;
    size_t dropped_before;
    unsigned step; /* what events count; 0: products */

    kf_fates fates; /* of tasks, and who watches */
};

/* The number of the operand's use that a product makes, as kofn_event has it. */
static inline uint32_t kf_job_use_number(const product *p)
{
    return KOFN_USES * p->operand + (uint32_t)p->as;
}

static inline kf_held *kf_job_held(const kofn_job *j, product *p)
{
    return p->first.plan ? &p->first : &j->held[p->operand];
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

/* put.c */
product *kf_job_search(const kofn_job *j, uint32_t number);
void kf_job_free_products(kofn_job *j);
/* All products, and what is of none. */
void kf_job_sum(const kofn_job *j, kofn_report *sum);

/* The product that has begun and is not taken, by its number in the core, or
 * NULL.  Most often there is one. */
static inline product *kf_job_find(const kofn_job *j, uint32_t number)
{
    return j->opens && j->open[0]->core == number ? j->open[0]
                                                  : kf_job_search(j, number);
}

/* A task of it, which has begun and is not over, or NULL. */
static inline kf_slot *kf_job_task(const product *p, uint32_t task)
{
    return kf_fates_find(p->tasks, task);
}

/* A product that was taken, for its memory, or a new one; still not open. */
product *kf_job_last_idle(kofn_job *j);
void kf_job_reset(const kofn_job *j, product *p, const kofn_plan *use);
kofn_status kf_job_check_operand(const kofn_job *j, size_t operand);
kofn_status kf_job_check_placed(const kofn_job *j);
kofn_status kf_job_check_whole(const kofn_job *j);
/* Everybody who is to come before the first round has come. */
kofn_status kf_job_await_start(kofn_job *j);
/* True if so many workers are live that any such set answers every operand's
 * products. */
bool kf_job_has_enough(const kofn_job *j);
/* Begin to read a window, of which `shape` is the plan. */
kofn_status kf_job_read(kofn_job *j, kf_window *w, const kofn_plan *shape);
/* The read of the window is over and has no report of its own. */
void kf_job_close_read(kofn_job *j, kf_window *w);
/* Is the job itself reading? */
static inline bool kf_job_reads(const kofn_job *j)
{
    return j->heal.window.reading || j->scrub.window.reading;
}
/* Does it wait for more workers than are live? */
bool kf_job_starves(const kofn_job *j, const product *p);
/* The plan for that; NULL: it is not served. */
const kofn_plan *kf_job_plan(const kofn_job *j, uint32_t operand, kofn_use as);
kofn_status kf_job_check_room(const kofn_job *j);
/* By what the input is to be multiplied, of which no element is larger than `most`;
 * what is decoded is then multiplied back. */
double kf_job_scale_input(const kf_resident *r, product *p,
                          const kofn_plan *use, const kofn_matrix *in,
                          double most);
/* A sum that would be of parts each from one worker is coded instead. */
void kf_job_code_it(const kofn_job *j, product *p);
/* Open it; it is the newest now. */
kofn_status kf_job_open_product(kofn_job *j, uint32_t operand, kofn_use as,
                                const kofn_matrix *in, kofn_matrix *out);
void kf_job_opened(kofn_job *j, product *p);
/* Begin the product that was put last, where nothing is in its way. */
kofn_status kf_job_begin_now(kofn_job *j);

/* pair.c: products of streams. */
static inline bool kf_is_stream(const kofn_job *j)
{
    return j->plan->op->stream;
}
/* Blocks for these rows. */
kofn_status kf_pair_encode(kofn_job *j, product *p, const size_t *rows,
                           size_t n);
kofn_status kf_pair_begin(kofn_job *j, product *p);
/* Begin a round without a product, for those that are open. */
kofn_status kf_pair_go_on(kofn_job *j);
/* A task of it is given out: adds its block. */
kofn_status kf_pair_given(kofn_job *j, product *p, kf_msg *m);
/* KOFN_DO_END. */
void kf_pair_end_round(kofn_job *j);
/* To be decoded when there is time; `source` is given away. */
kofn_status kf_pair_decode_later(kofn_job *j, product *p, const kofn_action *a,
                                 kf_source *source);
/* The core is done with it. */
void kf_pair_over(kofn_job *j, product *p, kofn_status st);
/* Decode some of what waits for it, first of p, or NULL. */
kofn_status kf_pair_decode_some(kofn_job *j, product *p);
bool kf_pair_has_undecoded(const kofn_job *j);
/* Nothing of its operands is looked at any more. */
void kf_pair_release(product *p);

/* observe.c */
/* Opens the observers that the options ask for. */
kofn_status kf_observe(kofn_job *j);
/* Is there somebody whom what only the job knows is to be noted for? */
static inline bool kf_job_is_watched(const kofn_job *j)
{
    return j->journal || j->fates.observers;
}
void kf_job_note(kofn_job *j, const kofn_note *n);

/* act.c */
kofn_status kf_job_decode(kofn_job *j, product *p, const kofn_action *a,
                          const kf_source *source);
/* End the product, with what is known of it. */
void kf_job_finish_product(kofn_job *j, product *p, kofn_status st);
kofn_status kf_job_act(kofn_job *j, const kofn_action *a);
/* Report the events of no product, since `began`, and the workers that are
 * there. */
kofn_status kf_job_report_rest(kofn_job *j, kofn_time began, kofn_report *out);
/* The actions of the core's step in j->todo. */
kofn_status kf_job_gather(kofn_job *j, size_t *n);
/* Inputs for all who are given work in it. */
kofn_status kf_job_encode_inputs(kofn_job *j, size_t n);
/* Encode the blocks that are owed, all in one pass over A, and send them. */
kofn_status kf_job_hand_out(kofn_job *j);

/* The worker is sent the task. */
kofn_status kf_job_send_task(kofn_job *j, product *p, kf_slot *s);

/* pace.c */
/* A task is given out; *hold: its turn comes later, and it is sent then. */
kofn_status kf_pace_hold(kofn_job *j, product *p, kf_slot *s, bool *hold);
/* The task has been answered, in whatever way. */
void kf_pace_came(kofn_job *j, kf_slot *s, kofn_time took);
/* The task is not waited for. */
void kf_pace_over(kofn_job *j, kf_slot *s);
/* By when some may be sent for; KOFN_NEVER: by nothing but an answer. */
kofn_time kf_pace_alarm(const kofn_job *j);
/* The task is cancelled; true: it was never sent. */
bool kf_pace_cancel(kofn_job *j, kf_slot *s);
/* Send those whose turn it is. */
kofn_status kf_pace_go_on(kofn_job *j);
void kf_pace_free(kf_pace *x);

/* window.c */
/* For whole parts of its strips, as if A had no others. */
kofn_plan kf_window_plan(const kf_window *w, const kofn_plan *p);
size_t kf_window_strips(const kofn_job *j, const kf_window *w); /* in all */
/* How far it reaches. */
void kf_window_next(const kofn_job *j, kf_window *w);
kofn_status kf_window_read(kofn_job *j, kf_window *w);
/* The strips that were read, as an operand by itself, to be freed in any case. */
kofn_status kf_window_resident(const kofn_job *j, const kf_window *w,
                               const kofn_plan *shape, kf_resident *out);

/* scrub.c */
/* Have the workers that the last check located asked again. */
kofn_status kf_scrub_receive(kofn_job *j, const product *p,
                             const kofn_action *a);
/* The worker has stored a block. */
void kf_scrub_stored(kofn_job *j, uint32_t worker);
/* Do one thing; *busy: something is being read, and nothing else is to begin. */
kofn_status kf_scrub_go_on(kofn_job *j, bool *busy);
void kf_scrub_free(kofn_job *j);

/* heal.c */
/* The worker has been sent empty blocks of operands that have changed. */
kofn_status kf_heal_add(kofn_job *j, uint32_t worker, size_t seat);
/* Do one thing for the workers to be healed, if there is any; *busy: wait until
 * what is read has come, and nothing else is to begin before. */
kofn_status kf_heal_go_on(kofn_job *j, const product *next, bool *busy);
/* Until nothing is being read. */
kofn_status kf_heal_rest(kofn_job *j);
void kf_heal_free(kofn_job *j);

/* lease.c */
/* A worker has stored its block. */
void kf_lease_stored(kofn_job *j, uint32_t worker);
/* Give up those who do not; *atmost: until it is time to look again. */
kofn_status kf_lease_look(kofn_job *j, kofn_time *atmost);

/* loop.c */
kofn_status kf_job_step(kofn_job *j, kofn_event *ev);
/* Wait for one message or the alarm.  KOFN_AGAIN: `atmost` has passed. */
kofn_status kf_job_pass(kofn_job *j, kofn_time atmost);
/* The same of what is there already; KOFN_AGAIN: nothing. */
kofn_status kf_job_poll(kofn_job *j);
/* Is something to happen before this product begins? */
bool kf_job_is_due(const kofn_job *j, const product *p);
/* Have happen what is due once this share of the product has come. */
kofn_status kf_job_stage(kofn_job *j, const product *p, double done);
/* ... of the newest that has begun. */
kofn_status kf_job_stage_now(kofn_job *j);

#endif
