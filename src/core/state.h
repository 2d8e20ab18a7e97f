/* state.h -- what the coordinator remembers: the fleet, the products that are
 * open, and for each of them a *round*: who works on it and how long that
 * takes.
 *
 * fleet.c and product.c know nothing of each other; the rest of this folder is
 * policies that give rows to workers (policy.h), and what they share.
 *
 * A step is flat: the event is applied, which leaves marks (news of strips,
 * what is owed, that the work was taken back, that something may be short of
 * workers), and then each round goes on until it has no marks: take back,
 * settle, deal, resolve what is short.  None of these calls another.
 *
 * All is owned by kofn_core.  What other rooms may see of it is in core.h and
 * <kofn/core.h>, and nothing here may be reached from elsewhere. */
#ifndef KF_CORE_STATE_H
#define KF_CORE_STATE_H

#include "policy.h"

#include <assert.h>

typedef enum kf_round_state {
    KF_ROUND_IDLE, /* it is over */
    KF_ROUND_RUNNING,
    KF_ROUND_STARVED /* waiting for joiners */
} kf_round_state;

/* A worker's part in one product. */
typedef struct kf_load {
    size_t out;      /* tasks in hand */
    size_t rows;     /* strips it was asked for */
    kofn_time since; /* it had nothing of older products any more; 0: always */
    bool failed, located;
    bool agrees;    /* what it said was compared, and is right */
    bool late;      /* adjoint: it is done without, as long as others suffice */
    uint32_t again; /* stream: 1 + the row that it did not get done in the last
                       round; 0: none */
    uint32_t came;  /* stream: results of it that are here */
    size_t said;    /* scratch of guard.c */
} kf_load;

/* An open product among the workers. */
struct kf_round {
    kf_product p;
    kf_round_state state;
    bool back;    /* marks: work is to be taken back and dealt again ... */
    bool resolve; /* ... and that there may be too few for some cell     */
    kofn_time starved, alarm;
    kofn_time began, pace; /* of this deal; what half of the workers took  */
    kofn_time slack;       /* after another is ready: nobody is late before */
    kofn_time late_at,
        lease_at;      /* when to look who is late; who is unresponsive  */
    size_t ready;      /* workers that have finished their share */
    size_t busy;       /* workers with tasks of it in hand       */
    bool half, hedged; /* half of all have; others were asked as well      */
    kf_load *load;     /* per worker, with room for more */
    size_t workers;
    char why[512]; /* it failed, in words */

    kofn_plan shape;     /* stream: the plan for its shape, ... */
    kf_use use;          /* ... and what it shares with others  */
    unsigned first;      /* round of the stream                 */
    size_t plain, coded; /* rows below are given out or plain; see lists.c */
    bool shared;         /* a row was given out again, or to several       */
};

/* A worker's list in a round of a stream. */
typedef struct kf_todo {
    size_t given, came; /* tasks */
    bool late;          /* it is not waited for any longer */
} kf_todo;

/* The workers that were marked in a round that is over. */
typedef struct kf_marks {
    uint8_t *mark; /* per worker, with room for more */
    size_t workers, marked;
} kf_marks;

/* The policy of streams.  A round is in hand from its BEGIN to its END. */
typedef struct kf_stream {
    bool running;
    kofn_stream_round
        is;          /* in hand, or the last; first is 0 until a list is done */
    uint32_t newest; /* product of all that began */
    kofn_time began;
    kofn_time task; /* what one took in the last list that was first */
    kofn_time alarm_at, late_at, lease_at;
    bool excuse;   /* who is late is not marked: the scheme does not admit it */
    size_t caught; /* rows that the net asked for, since the beginning */
    kf_todo *list; /* per worker */
    kofn_time *done; /* ... when it had done all; KOFN_NEVER: it has not */
    size_t known, list_cap, done_cap;
    kf_marks *past; /* the last round first, `memory` of them and the one that
                       may end now                                            */
    size_t memory;
    uint8_t *mark; /* scratch: the hooks' table, and their numbers */
    size_t *marked, mark_cap;
} kf_stream;

struct kofn_core {
    kofn_core_options opt;
    kf_use *use; /* KOFN_USES of each operand */
    size_t uses;
    kf_stream stream;
    kf_fleet fleet;
    kf_round **round; /* open, or over since the last that began; they ascend */
    size_t rounds, round_cap;
    kf_round *spare; /* one that is over, for its memory */
    uint32_t next_task, next_check;
    kofn_time now;
    double
        hedge_factor; /* in (0, 1]: how much of the time that the late are waited for,
                     by experience */
    size_t generous;   /* rounds in which everybody is asked for everything */
    size_t generosity; /* ... and how many that were the last time          */
    unsigned mutes; /* workers given up since the last product was over ... */
    uint32_t
        unresponsive; /* ... and the last of them                            */
    size_t dropped;

    kofn_action *action;
    size_t actions, action_cap, next_action;
    uint32_t *pool; /* tasks of this step's actions */
    size_t pooled, pool_cap;
    uint32_t
        *by_row; /* scratch: 1 + the task of each row of a group; 0: none */
    size_t by_row_cap;
    kofn_live *live; /* scratch: live members of one group */
    size_t live_cap;
};

static inline bool kf_is_open(const kf_round *r)
{
    return r->state != KF_ROUND_IDLE;
}

static inline const kf_policy *kf_policy_of(const kf_round *r)
{
    return r->p.use->policy;
}

/* An event that makes no sense is counted, and no more. */
static inline kofn_status kf_core_drop(kofn_core *c)
{
    c->dropped++;
    return KOFN_OK;
}

/* The newest product, open or over. */
static inline kf_round *kf_newest(const kofn_core *c)
{
    assert(c->rounds > 0);
    return c->round[c->rounds - 1];
}

/* The row that a seat answers.  Rows could be given to seats otherwise; all
 * code that depends on the choice calls this. */
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
    TRY(kf_grow(&c->action, &c->action_cap, c->actions, sizeof *c->action));
    c->action[c->actions++] = a;
    return KOFN_OK;
}

/* Room for n tasks more in the pool; there is a pool even for none. */
static inline kofn_status kf_core_room(kofn_core *c, size_t n)
{
    return kf_reach(&c->pool, &c->pool_cap, c->pooled + n + 1, sizeof *c->pool);
}

/* ---- rounds.c ------------------------------------------------------------ */

/* Whose alarm is due?  Who is late, or given up, is seen then. */
kofn_status kf_rounds_rang(kofn_core *c, kf_round *r, const kofn_event *ev);

/* ---- stream.c ------------------------------------------------------------ */

void kf_stream_close(kf_stream *s);

static inline size_t kf_stream_age(const kofn_core *c, const kf_round *r)
{
    return c->stream.is.round - r->first;
}

/* Is it due, in this round or since an earlier one? */
static inline bool kf_stream_due(const kofn_core *c, const kf_round *r)
{
    return kf_is_open(r) && kf_stream_age(c, r) >= kf_layout(&r->p)->delay;
}

/* ---- lists.c ------------------------------------------------------------- */

/* Everybody's list of a round. */
kofn_status kf_lists_make(kofn_core *c);
/* Ask for what an open product is short of, first of the worker with the least
 * in hand, or where results are compared of the one that has said least; *all:
 * everything was asked for. */
kofn_status kf_lists_short(kofn_core *c, kf_round *r, bool *all);
/* May the round end with whoever has tasks in hand marked? */
kofn_status kf_lists_admit(kofn_core *c, bool *yes);

/* Would this worker be marked if the round ended now? */
static inline bool kf_lists_marks(const kofn_core *c, size_t worker)
{
    return c->fleet.worker[worker].out > 0 &&
           !(c->stream.excuse && c->stream.list[worker].late);
}

/* ---- round.c ------------------------------------------------------------- */

void kf_round_free(kf_round *r);
/* Make room for all workers. */
kofn_status kf_round_know(const kofn_core *c, kf_round *r);
bool kf_core_can_work(const kofn_core *c, const kf_round *r, uint32_t worker);
/* Can whoever sits there, if anybody does? */
bool kf_core_seat_works(const kofn_core *c, const kf_round *r, size_t seat);
size_t kf_core_count_live(const kofn_core *c, const kf_round *r, size_t group);
/* Fills c->live, which is scratch, with the group's members that can be asked; *n of
 * them. */
kofn_status kf_core_live_members(kofn_core *c, const kf_round *r, size_t group,
                                 size_t *n);
/* Who that one of them is. */
static inline uint32_t kf_core_member(const kofn_core *c, size_t group,
                                      size_t i)
{
    return c->fleet.seat[c->live[i].seat * c->fleet.groups + group];
}
/* Have this worker answer a row. */
kofn_status kf_round_ask(kofn_core *c, kf_round *r, uint32_t worker,
                         uint32_t row, kf_band b);
void kf_round_end(kofn_core *c, kf_round *r, size_t index, kf_task_state state);
/* The task of its worker that an event speaks of, and whose result has not come. */
bool kf_core_find_task(const kf_round *r, const kofn_event *ev, size_t *index);
/* The task of the event failed, and its worker gets no more of this product;
 * false: there is none in hand. */
bool kf_round_fail(kofn_core *c, kf_round *r, const kofn_event *ev);
kofn_status kf_round_drop(kofn_core *c, kf_round *r, size_t index, bool cancel);
kofn_status kf_round_drop_all(kofn_core *c, kf_round *r);
/* The product is over, with this status. */
kofn_status kf_core_deliver(kofn_core *c, kf_round *r, kofn_status st);
/* Of every group. */
void kf_round_owe(kf_round *r, kf_owed owed);
/* Everything from the beginning. */
kofn_status kf_round_restart(kofn_core *c, kf_round *r);
/* More is to be asked for: less may be wanted than before, and be here. */
void kf_round_more(kofn_core *c, kf_round *r);
kf_round *kf_core_find_round(const kofn_core *c, uint32_t product);
size_t kf_core_open_rounds(const kofn_core *c);
/* Forget the rounds that are over. */
void kf_core_forget_over(kofn_core *c);
/* The newest is a new round now. */
kofn_status kf_core_add_round(kofn_core *c);

/* ---- seats.c ------------------------------------------------------------- */

/* Events of a worker. */
kofn_status kf_core_join(kofn_core *c, const kofn_event *ev);
kofn_status kf_core_moved(kofn_core *c, const kofn_event *ev);
kofn_status kf_core_stored(kofn_core *c, const kofn_event *ev);
kofn_status kf_core_leaving(kofn_core *c, const kofn_event *ev);
kofn_status kf_core_left(kofn_core *c, const kofn_event *ev);
/* The worker goes, or does no more; its seat is for others. */
kofn_status kf_core_release_seat(kofn_core *c, uint32_t worker,
                                 kofn_worker_state state);
/* Take the worker's tasks off every product: they are not counted on any more,
 * and the worker is told if it is there. */
kofn_status kf_core_relieve(kofn_core *c, uint32_t worker, bool there);

/* ---- deal.c -------------------------------------------------------------- */

struct kofn_deals {
    kofn_deal *deal;
    size_t count, cap;
    size_t members, span;
};
kofn_status kf_deal(kofn_core *c, kf_round *r, size_t lo, size_t hi);
/* May all that is open be dealt afresh? */
bool kf_deal_can(const kofn_core *c, const kf_round *r, size_t group,
                 kf_owed owed);
/* Deal it, to all members or to as many as are wanted; the deals of *out are the
 * caller's. */
kofn_status kf_deal_afresh(kofn_core *c, kf_round *r, size_t group, bool all,
                           kofn_deals *out);
kofn_status kf_deal_rows(kofn_core *c, kf_round *r, size_t group, kf_owed owed);

/* ---- short.c ------------------------------------------------------------- */

/* All answers of this worker's seat. */
kofn_status kf_core_ask_seat(kofn_core *c, kf_round *r, uint32_t worker,
                             kf_band b);
/* Ask for what this group is short of. */
kofn_status kf_deal_short(kofn_core *c, kf_round *r, size_t group);

/* ---- settle.c ------------------------------------------------------------ */

kofn_status kf_settle(kofn_core *c, kf_round *r);
kofn_status kf_settle_checked(kofn_core *c, kf_round *r, const kf_asked *a,
                              size_t n, bool sure, size_t wanted);
kofn_status kf_settle_decode(kofn_core *c, kf_product *p, kf_band b,
                             const kofn_decoder *d, size_t n);
/* A decoder that is accurate enough, or NULL. */
kofn_status kf_core_find_decoder(const kofn_core *c, kf_product *p,
                                 const uint32_t *rows, size_t n,
                                 const kofn_decoder **out);

/* ---- resolve.c ----------------------------------------------------------- */

kofn_status kf_resolve(kofn_core *c, kf_round *r);
size_t kf_workers_needed(const kf_product *p); /* in each group */
/* Wait for joiners. */
void kf_core_pause(const kofn_core *c, kf_round *r);
/* With so many results, all that can be had. */
kofn_status kf_core_unstable(kofn_core *c, kf_round *r, size_t results);

/* ---- guard.c ------------------------------------------------------------- */

void kf_core_set_spare(kofn_core *c, kf_round *r);
/* The same where these tasks have come, whoever has left since. */
size_t kf_core_vouch(kofn_core *c, kf_round *r, size_t group,
                     const uint32_t *tasks, size_t n);
/* Another worker was located in this round. */
void kf_core_set_known(kofn_core *c, kf_round *r);
/* How many of these n tasks have results that say nothing from strip `lo` on;
 * count one more if that of a row of a seat would. */
kofn_status kf_core_zero_results(const kf_product *p, size_t group, size_t lo,
                                 const uint32_t *tasks, size_t n,
                                 size_t *silent);
kofn_status kf_core_add_zero_result(const kf_product *p, size_t group,
                                    size_t lo, size_t row, size_t *silent);
/* Of the n tasks at the end of the pool. */
kofn_status kf_core_ask_check(kofn_core *c, kf_round *r, kf_band b,
                              const kofn_decoder *d, size_t n);
/* Where results disagreed those of workers who were located in this round, or
 * `before`, do not count; false: there are none. */
bool kf_core_leave_out(const kofn_core *c, const kf_round *r, kf_cell *cell,
                       bool before);

/* ---- blame.c ------------------------------------------------------------- */

/* Was the worker wrong too often? */
bool kf_core_banned(const kofn_core *c, uint32_t worker);
/* Counts a comparison of this worker. */
void kf_core_blame_one(kofn_core *c, uint32_t worker, bool wrong);
/* The product is over: who was compared in it was right, or wrong. */
void kf_core_blame(kofn_core *c, const kf_round *r);

/* ---- verdict.c ----------------------------------------------------------- */

kofn_status kf_core_apply_verdict(kofn_core *c, kf_round *r,
                                  const kofn_event *ev);
kofn_status kf_core_corrupt_beyond(kofn_core *c, kf_round *r);
kofn_status kf_core_unsure(kofn_core *c, kf_round *r, size_t count);
/* Where answers are tested each by itself. */
kofn_status kf_core_too_few_right(kofn_core *c, kf_round *r, size_t right);
kofn_status kf_core_quarantine(kofn_core *c);
/* Count against the worker this number of the products in which it was
 * located. */
kofn_status kf_core_judged(kofn_core *c, const kofn_event *ev);

/* ---- times.c ------------------------------------------------------------- */

void kf_times_learn(kofn_core *c, const kf_round *r);
void kf_times_begin(const kofn_core *c, kf_round *r);
void kf_times_alarm(kf_round *r);
void kf_times_put_off(const kofn_core *c, kf_round *r);
void kf_times_ready(const kofn_core *c, kf_round *r, uint32_t worker);
/* The worker has nothing of the product in hand any more. */
void kf_times_next(kofn_core *c, const kf_round *r, uint32_t worker);
/* Of so many nanoseconds; KOFN_NEVER: that is beyond all times. */
kofn_time kf_times_of(double t);

/* ---- late.c -------------------------------------------------------------- */

/* After `last` a new round begins. */
void kf_late_round(kofn_core *c, const kf_round *last);
void kf_late_ask_others(kofn_core *c, kf_round *r);
/* Who is at work is late. */
void kf_late_hedge(kofn_core *c, kf_round *r);
/* Give up those who have owed an answer for so long; *next: when to look again. */
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
/* True when there are some, and the round begins again with them. */
bool kf_adjoint_with_late(kf_round *r);

/* ---- check.c ------------------------------------------------------------- */

/* Checks what must hold between steps: NULL, or what does not hold. */
const char *kf_core_check(const kofn_core *c);

#endif
