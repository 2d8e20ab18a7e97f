/* state.h -- what the coordinator remembers: the fleet, the products that are
 * open, and for each of them a *round*: who works on it and how long that
 * takes.
 *
 * fleet.c and product.c know nothing of each other; the rest of this folder is
 * the policy that gives rows to workers.  Today's gives the worker on a seat
 * the rows of that seat, of each product as it begins; workers do what is of the
 * oldest first.
 *
 * A step is flat: the event is applied, which leaves marks (news of strips,
 * what is owed, that the work was taken back, that something may be short of
 * workers), and then each round goes on until it has no marks: take back,
 * settle, deal, resolve what is short.  None of these calls another. */
#ifndef KF_CORE_STATE_H
#define KF_CORE_STATE_H

#include "fleet.h"
#include "product.h"

#define KF_USES 2 /* the plan's own operation, the left product */

typedef enum kf_round_state {
    KF_ROUND_IDLE, /* it is over */
    KF_ROUND_RUNNING,
    KF_ROUND_STARVED /* waiting for joiners */
} kf_round_state;

/* What a worker has to do with a product. */
typedef struct kf_load {
    size_t out;      /* tasks in hand */
    kofn_time since; /* it had nothing of older products any more; 0: always */
    bool failed, located;
} kf_load;

/* An open product among the workers. */
typedef struct kf_round {
    kf_product p;
    kf_round_state state;
    bool back;    /* marks: work is to be taken back and dealt again ... */
    bool resolve; /* ... and that there may be too few for some cell     */
    kofn_time starved, alarm;
    kofn_time began, pace; /* of this deal; what half of the workers took  */
    kofn_time slack;       /* after another is ready: nobody is late before */
    kofn_time late_at, lease_at; /* when to look who is late; who is mute  */
    size_t ready;                /* workers that have finished their share */
    size_t busy;                 /* workers with tasks of it in hand       */
    bool half, hedged; /* half of all have; others were asked as well      */
    kf_load *load;     /* per worker */
    size_t *rows;      /* per worker: strips it was asked for */
    size_t workers, load_cap, row_cap;
    char why[512]; /* it failed, in words */
} kf_round;

struct kofn_core {
    kofn_core_options opt;
    kf_use use[KF_USES];
    kf_fleet fleet;
    kf_round **round; /* open, or over since the last that began; they ascend */
    size_t rounds, round_cap;
    kf_round *spare; /* one that is over, for its memory */
    uint32_t next_task, next_check;
    kofn_time now;
    double
        haste; /* in (0, 1]: how much of the time that the late are waited for,
                     by experience */
    size_t generous;   /* rounds in which everybody is asked for everything */
    size_t generosity; /* ... and how many that were the last time          */
    unsigned mutes; /* workers given up since the last product was over ... */
    uint32_t mute;  /* ... and the last of them                            */
    size_t dropped;

    kofn_action *action;
    size_t actions, action_cap, next_action;
    uint32_t *pool; /* tasks of this step's actions */
    size_t pooled, pool_cap;
    uint32_t *by_row; /* scratch: task of each row of a group */
    size_t by_row_cap;
    kofn_live *live;       /* scratch: live members of one group ... */
    uint32_t *live_worker; /* ... and who they are                 */
    size_t live_cap;
};

static inline bool kf_is_open(const kf_round *r)
{
    return r->state != KF_ROUND_IDLE;
}

/* The newest product, open or over. */
static inline kf_round *kf_newest(const kofn_core *c)
{
    return c->round[c->rounds - 1];
}

/* Which rows a worker answers is a choice; this is it. */
static inline uint32_t kf_row_of_seat(const kf_product *p, size_t seat,
                                      size_t submessage)
{
    return (uint32_t)(kf_local(p->use->plan, seat) * kf_layout(p)->submessages +
                      submessage);
}

static inline size_t kf_seat_of_row(const kf_product *p, size_t group,
                                    size_t row)
{
    return row / kf_layout(p)->submessages * p->groups + group;
}

/* ---- core.c -------------------------------------------------------------- */

static inline kofn_status kf_act(kofn_core *c, kofn_action a)
{
    TRY(kf_grow(&c->action, &c->action_cap, c->actions, sizeof *c->action));
    c->action[c->actions++] = a;
    return KOFN_OK;
}
kofn_status kf_core_deliver(kofn_core *c, kf_round *r, kofn_status st);

/* ---- round.c ------------------------------------------------------------- */

kofn_status kf_round_new(kf_round **out, size_t groups);
void kf_round_free(kf_round *r);
/* There are so many workers. */
kofn_status kf_round_know(kf_round *r, size_t workers);
bool kf_core_can_work(const kofn_core *c, const kf_round *r, uint32_t worker);
size_t kf_core_count_live(const kofn_core *c, const kf_round *r, size_t group);
/* Fills c->live with the group's members that can be asked; *n of them. */
kofn_status kf_core_live_members(kofn_core *c, const kf_round *r, size_t group,
                                 size_t *n);
/* Have this worker answer a row. */
kofn_status kf_round_ask(kofn_core *c, kf_round *r, uint32_t worker,
                         size_t group, uint32_t row, size_t lo, size_t hi);
void kf_round_end(kofn_core *c, kf_round *r, size_t index, kf_task_state state);
kofn_status kf_round_drop(kofn_core *c, kf_round *r, size_t index, bool cancel);
kofn_status kf_round_drop_all(kofn_core *c, kf_round *r);
/* Everything from the beginning. */
kofn_status kf_round_restart(kofn_core *c, kf_round *r);
/* More is to be asked for: less may be wanted than before, and be here. */
void kf_round_more(kofn_core *c, kf_round *r);
/* Somebody who worked on it does not any more. */
void kf_round_lost(kf_round *r);
/* Until there is nothing to do but wait. */
kofn_status kf_round_go_on(kofn_core *c, kf_round *r);

/* ---- seats.c ------------------------------------------------------------- */

kofn_status kf_core_join(kofn_core *c, uint32_t worker, uint32_t principal);
kofn_status kf_core_moved(kofn_core *c, uint32_t worker, uint32_t principal);
kofn_status kf_core_stored(kofn_core *c, uint32_t worker);
kofn_status kf_core_leaving(kofn_core *c, uint32_t worker);
kofn_status kf_core_left(kofn_core *c, uint32_t worker,
                         kofn_worker_state state);
/* It goes, or does no more; its seat is for others. */
kofn_status kf_core_vacate(kofn_core *c, uint32_t worker,
                           kofn_worker_state state);

/* ---- deal.c -------------------------------------------------------------- */

struct kofn_deals {
    kofn_deal *deal;
    size_t count, cap;
    size_t members, span;
};
kofn_status kf_deal(kofn_core *c, kf_round *r);

/* ---- short.c ------------------------------------------------------------- */

/* All answers of this worker's seat. */
kofn_status kf_core_ask_seat(kofn_core *c, kf_round *r, size_t group,
                             uint32_t worker, size_t lo, size_t hi);
/* Ask for what this group is short of. */
kofn_status kf_deal_short(kofn_core *c, kf_round *r, size_t group);

/* ---- settle.c ------------------------------------------------------------ */

kofn_status kf_settle(kofn_core *c, kf_round *r);
kofn_status kf_settle_checked(kofn_core *c, kf_round *r, const kf_asked *a,
                              size_t n, bool sure, size_t wanted);
/* A decoder that is accurate enough, or NULL. */
kofn_status kf_core_find_decoder(const kofn_core *c, kf_product *p,
                                 const uint32_t *rows, size_t n,
                                 const kf_decoder **out);

/* ---- resolve.c ----------------------------------------------------------- */

kofn_status kf_resolve(kofn_core *c, kf_round *r);
size_t kf_workers_needed(const kf_product *p); /* in each group */

/* ---- guard.c ------------------------------------------------------------- */

void kf_core_set_spare(kofn_core *c, kf_round *r);
/* The same where these tasks have come, whoever has left since. */
size_t kf_core_vouch(kofn_core *c, kf_round *r, size_t group,
                     const uint32_t *tasks, size_t n);
/* Results of this cell that say nothing. */
kofn_status kf_core_silent(const kf_product *p, size_t group,
                           const kf_cell *cell, size_t *silent);
kofn_status kf_core_ask_check(kofn_core *c, kf_round *r, size_t group,
                              size_t lo, size_t hi, const kf_decoder *d,
                              const uint32_t *tasks, size_t n);
/* Where results disagreed those of workers who were located in this round do not
 * count; false: there are none. */
bool kf_core_without_located(const kf_round *r, kf_cell *cell);
/* Nor those of workers who were located before. */
bool kf_core_without_suspects(const kofn_core *c, const kf_round *r,
                              kf_cell *cell);
bool kf_core_banned(const kofn_core *c, uint32_t worker);
kofn_status kf_core_hear(kofn_core *c, kf_round *r, const kofn_event *ev);
kofn_status kf_core_corrupt_beyond(kofn_core *c, kf_round *r);
kofn_status kf_core_unsure(kofn_core *c, kf_round *r, size_t count);
kofn_status kf_core_quarantine(kofn_core *c);

/* ---- late.c -------------------------------------------------------------- */

/* After `last` a new round begins. */
void kf_late_round(kofn_core *c, const kf_round *last);
void kf_late_learn(kofn_core *c, const kf_round *r);
void kf_late_begin(const kofn_core *c, kf_round *r);
void kf_late_alarm(kf_round *r);
void kf_late_put_off(const kofn_core *c, kf_round *r);
void kf_late_ready(const kofn_core *c, kf_round *r, uint32_t worker);
/* This worker has nothing of the product in hand any more. */
void kf_late_next(kofn_core *c, const kf_round *r, uint32_t worker);
kofn_status kf_late_rang(kofn_core *c, kf_round *r);

/* ---- adjoint.c ----------------------------------------------------------- */

kofn_status kf_adjoint_mix(kofn_core *c, kf_round *r, const kofn_deals *d);
kofn_status kf_adjoint_sum(kofn_core *c, kf_round *r);
void kf_adjoint_without_late(const kofn_core *c, kf_round *r);

/* ---- check.c ------------------------------------------------------------- */

/* What must hold between steps: NULL, or what does not. */
const char *kf_core_check(const kofn_core *c);

#endif
