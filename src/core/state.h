/* state.h -- the state of the coordinator: the fleet, the open products, and a
 * *round* for each of them.  The round records which workers work on the
 * product and how long that takes.
 *
 * fleet.c and product.c do not know each other.  The rest of this folder is the
 * policies that give rows to workers (policy.h), and their shared code.
 *
 * A step is flat.  First the event is applied, which leaves marks: strips have
 * changed, work is owed, work was taken back, or workers may be too few.  Then
 * each round works until it has no marks: take back, settle, deal, resolve.
 * These four do not call each other.
 *
 * kofn_core owns all of it.  Other rooms use core.h and <kofn/core.h> only. */
#ifndef KF_CORE_STATE_H
#define KF_CORE_STATE_H

#include "policy.h"

#include <assert.h>

typedef enum kf_round_state {
    KF_ROUND_IDLE, /* the product is over */
    KF_ROUND_RUNNING,
    KF_ROUND_STARVED /* waiting for joiners */
} kf_round_state;

/* A worker's part in one product. */
typedef struct kf_load {
    size_t out;      /* outstanding tasks */
    size_t rows;     /* strips it was asked for */
    kofn_time since; /* time when it had finished all older products; 0:
                        always */
    bool failed, located;
    bool agrees;    /* its results were compared and are right */
    bool late;      /* adjoint: the round does without it while others
                       suffice */
    uint32_t again; /* stream: 1 + the row that it did not finish in the last
                       round; 0: none */
    uint32_t came;  /* stream: number of its results that are here */
    size_t said;    /* scratch of guard.c */
} kf_load;

/* An open product and the workers that compute it. */
struct kf_round {
    kf_product p;
    kf_round_state state;
    bool back;    /* mark: work has to be taken back and dealt again */
    bool resolve; /* mark: some cell may have too few workers */
    kofn_time starved, alarm;
    kofn_time began, pace; /* start of this deal; time that half of the workers
                              took */
    kofn_time slack;       /* no worker is late earlier than this after the last
                              one became ready */
    kofn_time late_at, lease_at; /* next time to look for late workers, and for
                                    unresponsive ones */
    size_t ready;                /* workers that have finished their share */
    size_t busy;                 /* workers with outstanding tasks of it */
    bool half, hedged; /* half: half of the workers are ready. hedged: others
                          were asked for late work */
    kf_load *load;     /* per worker, with room for more */
    size_t workers;
    char why[512]; /* message of the failure */

    kofn_plan shape;     /* stream: the plan for its shape ... */
    kf_use use;          /* ... and its shared use */
    unsigned first;      /* round of the stream in which it began */
    size_t plain, coded; /* next plain row, next coded row to give out; see
                            lists.c */
    bool shared;         /* a row was given out again, or to several workers */
};

/* A worker's list in a round of a stream. */
typedef struct kf_todo {
    size_t given, came; /* numbers of tasks */
    bool late;          /* the round no longer waits for it */
} kf_todo;

/* The workers that were marked in a round that is over. */
typedef struct kf_marks {
    uint8_t *mark; /* per worker, with room for more */
    size_t workers, marked;
} kf_marks;

/* The policy of streams.  A round runs from its BEGIN to its END. */
typedef struct kf_stream {
    bool running;
    kofn_stream_round is; /* the current round, or the last one; first is 0
                             until a list is done */
    uint32_t newest;      /* number of the last product that began */
    kofn_time began;
    kofn_time task; /* time per task of the last list that was the first to be
                       done */
    kofn_time alarm_at, late_at, lease_at;
    bool excuse;   /* late workers are not marked, because the scheme does not
                      admit it */
    size_t caught; /* rows that the net asked for (lists.c), since the start */
    kf_todo *list; /* per worker */
    kofn_time *done; /* per worker: time at which its list was done; KOFN_NEVER:
                        not done */
    size_t known, list_cap, done_cap;
    kf_marks *past; /* the latest round first: `memory` of them, and one more
                       for the round that may end now */
    size_t memory;
    uint8_t *mark; /* scratch: the table for the hooks of the scheme, and its
                      counts */
    size_t *marked, mark_cap;
} kf_stream;

/* The actions of a step, and their tasks. */
typedef struct kf_core_todo {
    kofn_action *action;
    size_t count, cap, next;
    uint32_t *pool; /* tasks of this step's actions */
    size_t pooled, pool_cap;
} kf_core_todo;

/* Scratch of the coordinator. */
typedef struct kf_core_scratch {
    uint32_t
        *by_row; /* scratch: 1 + the task of each row of a group; 0: none */
    size_t by_row_cap;
    kofn_live *live; /* scratch: live members of one group */
    size_t live_cap;
} kf_core_scratch;

struct kofn_core {
    kofn_core_options opt;
    kf_use *use; /* KOFN_USES for each operand */
    size_t uses;
    kf_stream stream;
    kf_fleet fleet;
    kf_round **round; /* open, or over since the last one began; numbers
                         ascend */
    size_t rounds, round_cap;
    kf_round *spare; /* a round that is over, kept for its memory */
    uint32_t next_task, next_check;
    kofn_time now;
    double hedge_factor;   /* in (0, 1]: share of the waiting time for late
                              workers, learnt by experience */
    size_t generous;       /* further rounds in which each worker is asked for
                              everything */
    size_t generosity;     /* length of the last such run of rounds, halved in
                              each later round without late workers; the next
                              run is twice as long, 4 to 64 rounds */
    unsigned mutes;        /* workers evicted since the last product was over */
    uint32_t unresponsive; /* the last of them */
    size_t dropped;
    kf_core_todo todo;
    kf_core_scratch scratch;
};

static inline bool kf_is_open(const kf_round *r)
{
    return r->state != KF_ROUND_IDLE;
}

static inline const kf_policy *kf_policy_of(const kf_round *r)
{
    return r->p.use->policy;
}

/* Counts an event that does not fit the state, and ignores it. */
static inline kofn_status kf_core_drop(kofn_core *c)
{
    c->dropped++;
    return KOFN_OK;
}

/* Returns the newest product, open or over. */
static inline kf_round *kf_newest(const kofn_core *c)
{
    assert(c->rounds > 0);
    return c->round[c->rounds - 1];
}

/* Returns the row that a seat answers.  All code that depends on this
 * assignment calls this function. */
static inline uint32_t kf_row_of_seat(const kf_product *p, size_t seat,
                                      size_t submessage)
{
    assert(submessage < kf_layout(p)->submessages);
    return (uint32_t)(kf_local(p->use->plan, seat) * kf_layout(p)->submessages +
                      submessage);
}

static inline size_t kf_seat_of_row(const kf_product *p, size_t group,
                                    size_t row)
{
    assert(group < p->groups);
    return row / kf_layout(p)->submessages * p->groups + group;
}

/* ---- actions ------------------------------------------------------------- */

static inline kofn_status kf_act(kofn_core *c, kofn_action a)
{
    TRY(kf_grow(&c->todo.action, &c->todo.cap, c->todo.count,
                sizeof *c->todo.action));
    c->todo.action[c->todo.count++] = a;
    return KOFN_OK;
}

/* Makes room for n more tasks in the pool.  The pool is never NULL afterwards,
 * even for n = 0. */
static inline kofn_status kf_core_room(kofn_core *c, size_t n)
{
    return kf_reach(&c->todo.pool, &c->todo.pool_cap, c->todo.pooled + n + 1,
                    sizeof *c->todo.pool);
}

/* ---- rounds.c ------------------------------------------------------------ */

/* Handles an alarm: acts for each round that is due on late and unresponsive
 * workers. */
kofn_status kf_rounds_alarm_fired(kofn_core *c, kf_round *r,
                                  const kofn_event *ev);

/* ---- stream.c ------------------------------------------------------------ */

void kf_stream_close(kf_stream *s);

static inline size_t kf_stream_age(const kofn_core *c, const kf_round *r)
{
    return c->stream.is.round - r->first;
}

/* True if the product is due in this round, or was in an earlier one. */
static inline bool kf_stream_due(const kofn_core *c, const kf_round *r)
{
    return kf_is_open(r) && kf_stream_age(c, r) >= kf_layout(&r->p)->delay;
}

/* ---- lists.c ------------------------------------------------------------- */

/* Makes the lists of all workers for a round. */
kofn_status kf_lists_make(kofn_core *c);
/* Asks for the results that an open product lacks.  The worker with the fewest
 * outstanding tasks is asked first; if results are compared, the worker with
 * the fewest results.  Sets *all if everything was asked for. */
kofn_status kf_lists_short(kofn_core *c, kf_round *r, bool *all);
/* Sets *yes if the scheme lets the round end with all workers that have
 * outstanding tasks marked. */
kofn_status kf_lists_admit(kofn_core *c, bool *yes);

/* True if this worker would be marked if the round ended now. */
static inline bool kf_lists_marks(const kofn_core *c, size_t worker)
{
    return c->fleet.worker[worker].out > 0 &&
           !(c->stream.excuse && c->stream.list[worker].late);
}

/* ---- round.c ------------------------------------------------------------- */

void kf_round_free(kf_round *r);
/* Makes room for all workers. */
kofn_status kf_round_know(const kofn_core *c, kf_round *r);
bool kf_core_can_work(const kofn_core *c, const kf_round *r, uint32_t worker);
/* True if the seat is taken and its worker can work on this round. */
bool kf_core_seat_works(const kofn_core *c, const kf_round *r, size_t seat);
size_t kf_core_count_live(const kofn_core *c, const kf_round *r, size_t group);
/* Fills c->scratch.live, which is scratch, with the *n members of the group
 * that can be asked. */
kofn_status kf_core_live_members(kofn_core *c, const kf_round *r, size_t group,
                                 size_t *n);
/* Returns the worker that is member i of c->scratch.live. */
static inline uint32_t kf_core_member(const kofn_core *c, size_t group,
                                      size_t i)
{
    return c->fleet.seat[c->scratch.live[i].seat * c->fleet.groups + group];
}
/* Asks this worker for a row. */
kofn_status kf_round_ask(kofn_core *c, kf_round *r, uint32_t worker,
                         uint32_t row, kf_band b);
void kf_round_end(kofn_core *c, kf_round *r, size_t index, kf_task_state state);
/* Finds the task that an event names, if it is of the event's worker and its
 * result has not come. */
bool kf_core_find_task(const kf_round *r, const kofn_event *ev, size_t *index);
/* Ends the task of the event as failed; its worker gets no more tasks of this
 * product.  Returns false if the task is not outstanding. */
bool kf_round_fail(kofn_core *c, kf_round *r, const kofn_event *ev);
kofn_status kf_round_drop(kofn_core *c, kf_round *r, size_t index, bool cancel);
kofn_status kf_round_drop_all(kofn_core *c, kf_round *r);
/* Ends the product with this status. */
kofn_status kf_core_deliver(kofn_core *c, kf_round *r, kofn_status st);
/* Marks the same work as owed in every group. */
void kf_round_owe(kf_round *r, kf_owed owed);
/* Restarts the product from the beginning. */
kofn_status kf_round_restart(kofn_core *c, kf_round *r);
/* Marks work as owed and cells as changed.  Fewer results may be wanted now, so
 * that those here may suffice. */
void kf_round_more(kofn_core *c, kf_round *r);
kf_round *kf_core_find_round(const kofn_core *c, uint32_t product);
size_t kf_core_open_rounds(const kofn_core *c);
/* Forgets the rounds that are over. */
void kf_core_forget_over(kofn_core *c);
/* Adds a new round as the newest. */
kofn_status kf_core_add_round(kofn_core *c);

/* ---- seats.c ------------------------------------------------------------- */

/* Apply the events of a worker. */
kofn_status kf_core_join(kofn_core *c, const kofn_event *ev);
kofn_status kf_core_moved(kofn_core *c, const kofn_event *ev);
kofn_status kf_core_stored(kofn_core *c, const kofn_event *ev);
kofn_status kf_core_leaving(kofn_core *c, const kofn_event *ev);
kofn_status kf_core_left(kofn_core *c, const kofn_event *ev);
/* Takes the worker's tasks back, sets its state and frees its seat for
 * others. */
kofn_status kf_core_release_seat(kofn_core *c, uint32_t worker,
                                 kofn_worker_state state);
/* Takes the worker's tasks back in every product.  They are cancelled by an
 * action if the worker is still `there`. */
kofn_status kf_core_relieve(kofn_core *c, uint32_t worker, bool there);

/* ---- deal.c -------------------------------------------------------------- */

struct kofn_deals {
    kofn_deal *deal;
    size_t count, cap;
    size_t members, span;
};
kofn_status kf_deal(kofn_core *c, kf_round *r, size_t lo, size_t hi);
/* True if all open work can be dealt afresh. */
bool kf_deal_can(const kofn_core *c, const kf_round *r, size_t group,
                 kf_owed owed);
/* Deals all open work to all members, or to the number wanted.  The caller
 * frees the deals of *out. */
kofn_status kf_deal_afresh(kofn_core *c, kf_round *r, size_t group, bool all,
                           kofn_deals *out);
kofn_status kf_deal_rows(kofn_core *c, kf_round *r, size_t group, kf_owed owed);

/* ---- reassign.c ---------------------------------------------------------- */

/* Asks for all answers of this worker's seat. */
kofn_status kf_core_ask_seat(kofn_core *c, kf_round *r, uint32_t worker,
                             kf_band b);
/* Asks for the results that this group lacks. */
kofn_status kf_reassign(kofn_core *c, kf_round *r, size_t group);

/* ---- settle.c ------------------------------------------------------------ */

kofn_status kf_settle(kofn_core *c, kf_round *r);
kofn_status kf_settle_checked(kofn_core *c, kf_round *r, const kf_asked *a,
                              size_t n, bool sure, size_t wanted);
kofn_status kf_settle_decode(kofn_core *c, kf_product *p, kf_band b,
                             const kofn_decoder *d, size_t n);
/* Finds a decoder that is accurate enough or, if the product is degraded, a
 * partial one.  NULL if there is none. */
kofn_status kf_core_find_decoder(const kofn_core *c, kf_product *p,
                                 const uint32_t *rows, size_t n,
                                 const kofn_decoder **out);

/* ---- resolve.c ----------------------------------------------------------- */

kofn_status kf_resolve(kofn_core *c, kf_round *r);
size_t kf_workers_needed(const kf_product *p); /* in each group */
/* Pauses the round until joiners come. */
void kf_core_pause(const kofn_core *c, kf_round *r);
/* Ends the product with KOFN_UNSTABLE.  `results` is the number of results, all
 * that can be had. */
kofn_status kf_core_unstable(kofn_core *c, kf_round *r, size_t results);

/* ---- guard.c ------------------------------------------------------------- */

void kf_core_set_spare(kofn_core *c, kf_round *r);
/* Returns the number of results to wait for beyond `enough` after these tasks
 * have come, including those of workers that have left since. */
size_t kf_core_vouch(kofn_core *c, kf_round *r, size_t group,
                     const uint32_t *tasks, size_t n);
/* Updates the counts after another worker was located in this round. */
void kf_core_set_known(kofn_core *c, kf_round *r);
/* Count the results of these n tasks that are zero from strip `lo` on whatever
 * the input.  The second adds one to *silent if the result of a seat's row
 * would be. */
kofn_status kf_core_zero_results(const kf_product *p, size_t group, size_t lo,
                                 const uint32_t *tasks, size_t n,
                                 size_t *silent);
kofn_status kf_core_add_zero_result(const kf_product *p, size_t group,
                                    size_t lo, size_t row, size_t *silent);
/* Orders a check of the n tasks at the end of the pool. */
kofn_status kf_core_ask_check(kofn_core *c, kf_round *r, kf_band b,
                              const kofn_decoder *d, size_t n);
/* Leaves out of a disagreeing cell the results of workers that were located in
 * this round, or `before`.  Returns false if there are none. */
bool kf_core_leave_out(const kofn_core *c, kf_round *r, kf_cell *cell,
                       bool before);

/* ---- blame.c ------------------------------------------------------------- */

/* True if the worker was wrong too often. */
bool kf_core_banned(const kofn_core *c, uint32_t worker);
/* Counts a comparison of this worker. */
void kf_core_blame_one(kofn_core *c, uint32_t worker, bool wrong);
/* Counts the comparisons of a product that is over: for each worker, whether it
 * was right or wrong. */
void kf_core_blame(kofn_core *c, const kf_round *r);

/* ---- verdict.c ----------------------------------------------------------- */

kofn_status kf_core_apply_verdict(kofn_core *c, kf_round *r,
                                  const kofn_event *ev);
kofn_status kf_core_corrupt_beyond(kofn_core *c, kf_round *r);
kofn_status kf_core_unsure(kofn_core *c, kf_round *r, size_t count);
/* Ends the product with KOFN_CORRUPT if each answer is tested alone and too few
 * are right. */
kofn_status kf_core_too_few_right(kofn_core *c, kf_round *r, size_t right);
kofn_status kf_core_quarantine(kofn_core *c);
/* Counts an event JUDGED as wrong against the worker, and excludes it if it was
 * wrong too often. */
kofn_status kf_core_judged(kofn_core *c, const kofn_event *ev);

/* ---- times.c ------------------------------------------------------------- */

void kf_times_learn(kofn_core *c, const kf_round *r);
void kf_times_begin(const kofn_core *c, kf_round *r);
void kf_times_alarm(kf_round *r);
void kf_times_put_off(const kofn_core *c, kf_round *r);
void kf_times_ready(const kofn_core *c, kf_round *r, uint32_t worker);
/* Records that the worker has no outstanding task of the product any more. */
void kf_times_next(kofn_core *c, const kf_round *r, uint32_t worker);
/* Converts nanoseconds; returns KOFN_NEVER if they exceed the range of
 * kofn_time. */
kofn_time kf_times_of(double t);

/* ---- late.c -------------------------------------------------------------- */

/* Updates the rounds of generosity as a new round begins after `last`. */
void kf_late_round(kofn_core *c, const kf_round *last);
void kf_late_ask_others(kofn_core *c, kf_round *r);
/* Treats the workers that are still at work as late. */
void kf_late_hedge(kofn_core *c, kf_round *r);
/* Evicts the workers that have owed an answer for `enough`.  Sets *next to the
 * time to look again. */
kofn_status kf_late_evict(kofn_core *c, const kf_round *r, kofn_time enough,
                          kofn_time *next);

/* ---- adjoint.c ----------------------------------------------------------- */

/* Functions of the policy. */
kofn_status kf_adjoint_failed(kofn_core *c, kf_round *r, const kofn_event *ev);
bool kf_adjoint_misses(const kofn_core *c, const kf_round *r, uint32_t worker);
kofn_status kf_adjoint_back(kofn_core *c, kf_round *r);
kofn_status kf_adjoint_deal(kofn_core *c, kf_round *r, size_t group,
                            kf_owed owed);
void kf_adjoint_late(kofn_core *c, kf_round *r);
kofn_status kf_adjoint_decode(kofn_core *c, kf_product *p, kf_band b,
                              const kofn_decoder *d, size_t n);
/* Counts on late workers again and restarts the round; false if there are
 * none. */
bool kf_adjoint_with_late(kf_round *r);

/* ---- assert_state.c ------------------------------------------------------ */

/* Returns NULL, or an invariant that does not hold between steps. */
const char *kf_core_assert_state(const kofn_core *c);

#endif
