/* state.h -- what the round coordinator remembers.
 *
 * For every group of the code a ledger of *cells*: runs of strips whose
 * results have the same history.  A cell is split wherever a task begins or
 * ends inside it, so that every task covers whole cells.  A cell is settled
 * when results of enough seats have come and the decoder made from them is
 * accurate enough; until then the ledger knows what is still short.
 */
#ifndef KF_CORE_STATE_H
#define KF_CORE_STATE_H

#include <kofn/core.h>

#include "code/code.h"

#define KF_NOBODY UINT32_MAX

typedef enum kf_task_state {
    KF_TASK_OUT = 1, /* asked for                            */
    KF_TASK_LATE,    /* asked for, and others asked as well  */
    KF_TASK_DONE,    /* its result is here                   */
    KF_TASK_DROPPED  /* cancelled, failed, or its worker left */
} kf_task_state;

typedef struct kf_task {
    uint32_t worker, seat; /* seat of the plan */
    uint32_t turn;
    kf_task_state state;
    size_t lo, hi; /* of an adjoint code they may go on at the first strip */
} kf_task;

typedef struct kf_cell {
    size_t lo, hi;
    uint32_t *have; /* tasks (indices): `count` whose results count, as they
                       came, then `lied` whose results were found wrong */
    size_t count, lied, cap;
    size_t extra; /* results wanted beyond those that are always needed */
    size_t pending; /* tasks out that will each bring one more         */
    size_t slow;    /* ... and tasks that others were asked to replace */
    bool settled, checking; /* checking: a verdict is awaited */
} kf_cell;

typedef struct kf_ledger {
    kf_cell *cell;
    size_t count, cap;
    size_t spare; /* results wanted of every strip beyond `enough` */
    size_t liars; /* principals that hold no more seats together   */
    size_t members; /* seats that are taken                        */
    size_t taken;   /* of the group's seats, all before this local one are */
} kf_ledger;

typedef enum kf_worker_state {
    KF_WORKER_UNKNOWN,
    KF_WORKER_STANDBY, /* here, but no seat is free */
    KF_WORKER_STORING, /* on its way to a seat      */
    KF_WORKER_LIVE,
    KF_WORKER_LEAVING,
    KF_WORKER_GONE,
    KF_WORKER_QUARANTINED,
    KF_WORKER_MUTE, /* given up, for it left its tasks unanswered */
    KF_WORKER_STATES
} kf_worker_state;

/* Who answers for one worker or for several: what they say may be one lie. */
typedef struct kf_principal {
    unsigned named, lies; /* the last round in which one was; rounds */
    size_t seats;         /* scratch */
} kf_principal;

typedef struct kf_worker {
    kf_worker_state state;
    uint32_t seat;
    uint32_t principal; /* 0: its own */
    uint32_t place; /* among c->live_worker, where that is it  */
    unsigned from; /* the first round it takes part in       */
    unsigned failed; /* the last round it failed in          */
    unsigned named;  /* the last round it was found to lie in */
    size_t out;    /* tasks in hand                          */
    double speed;  /* strips per second, smoothed; 0 unknown */
    kofn_time last; /* result, or being asked when it was idle */
} kf_worker;

typedef enum kf_round_state {
    KF_ROUND_IDLE,
    KF_ROUND_RUNNING,
    KF_ROUND_STARVED /* waiting for joiners */
} kf_round_state;

/* What a plan is used for: its own operation, or the left product. */
typedef struct kf_use {
    const kofn_plan *plan;
    kf_code *code;
    kf_cache *cache;
} kf_use;

/* A question that is out: do the results of these tasks agree? */
typedef struct kf_asked {
    size_t group, lo, hi;
    size_t first, count; /* its tasks in c->evidence (indices) */
    bool open;
} kf_asked;

struct kofn_core {
    const kofn_plan *plan; /* of the round's use, as are code and cache */
    kofn_core_options opt;
    kf_code *code;
    kf_cache *cache;
    kf_use use[2];

    kf_worker *worker;
    size_t workers, worker_cap;
    size_t in_state[KF_WORKER_STATES]; /* how many workers */
    kf_principal *principal; /* by number; the first is nobody */
    size_t principals, principal_cap;
    uint32_t *seat; /* worker on each seat of the plan, or KF_NOBODY */
    size_t seats, seat_cap;
    size_t fewest, fuller; /* no group has fewer members; groups before this
                              one have more */
    size_t looked; /* groups and seats looked at to find empty seats */

    unsigned round;
    kf_round_state state;
    bool degraded; /* deliver what is plain */
    bool lost;     /* some wants are lost   */
    kofn_time now, starved, alarm;
    kofn_time began, pace; /* of this deal; what half of the workers took  */
    kofn_time slack;       /* after another is ready: nobody is late before */
    kofn_time late_at, lease_at; /* when to look who is late; who is mute  */
    size_t ready;                /* workers that have finished their share */
    double haste;          /* in (0, 1]: how much of that, by experience */
    bool half, hedged; /* half of all have; others were asked as well      */
    size_t generous;   /* rounds in which everybody is asked for everything */
    size_t generosity; /* ... and how many that were the last time          */
    unsigned mutes;    /* workers given up since the last one was over ... */
    uint32_t mute;     /* ... and the last of them                         */
    kf_ledger *ledger; /* per group */
    kf_task *task;     /* of this round */
    size_t tasks, task_cap;
    uint32_t first_task; /* its number */
    size_t busy;         /* workers with tasks in hand   */
    size_t lo, hi;       /* strips that the round is of  */
    size_t unsettled;    /* of them, over all groups     */
    double noise, predicted, refused; /* the last one that was too large */
    size_t *rows;   /* per worker                            */
    unsigned *lies; /* per worker: rounds it was named in    */
    size_t row_cap, lies_cap, dropped, corrupt;

    kf_asked *check; /* of this round */
    size_t checks, check_cap;
    uint32_t first_check; /* its number */
    uint32_t *evidence; /* their tasks */
    size_t evidences, evidence_cap;
    bool disagree;   /* some results did, and nobody could be named */
    bool unsure;     /* some agreed, but not enough to be sure       */

    kofn_action *action;
    size_t actions, action_cap, next_action;
    uint32_t *pool; /* tasks of this step's decode actions */
    size_t pooled, pool_cap;
    uint32_t *by_seat; /* scratch: task of each seat of a group */
    size_t by_seat_cap;
    kofn_live *live;     /* scratch: live members of one group ... */
    uint32_t *live_worker; /* ... and who they are                 */
    size_t live_cap;
};

/* core.c */
kofn_status kf_act(kofn_core *c, kofn_action a);
kofn_status kf_deliver(kofn_core *c, kofn_status st);

/* guard.c */
/* Results wanted of every strip beyond those that decode it. */
size_t kf_spare(const kofn_core *c, size_t group);
void kf_set_spare(kofn_core *c);
/* The same where these tasks have come, whoever has left since. */
size_t kf_vouch(kofn_core *c, size_t group, const uint32_t *tasks, size_t n);
kofn_status kf_ask_check(kofn_core *c, size_t group, size_t lo, size_t hi,
                         const kf_decoder *d, const uint32_t *tasks, size_t n);
bool kf_banned(const kofn_core *c, uint32_t worker);
kofn_status kf_hear(kofn_core *c, const kofn_event *ev);
kofn_status kf_quarantine(kofn_core *c);
kofn_status kf_corrupt_beyond(kofn_core *c);
kofn_status kf_unsure(kofn_core *c, size_t count);

/* late.c */
void kf_late_round(kofn_core *c);
void kf_late_learn(kofn_core *c);
void kf_late_begin(kofn_core *c);
void kf_late_ready(kofn_core *c, uint32_t worker);
void kf_late_put_off(kofn_core *c);
void kf_late_alarm(kofn_core *c);
kofn_status kf_alarm_rang(kofn_core *c);

/* adjoint.c */
kofn_status kf_adjoint_mix(kofn_core *c, const kofn_deals *d);
kofn_status kf_adjoint_sum(kofn_core *c);
kofn_status kf_adjoint_restart(kofn_core *c);
kofn_status kf_adjoint_without_late(kofn_core *c);

/* seats.c */
kofn_status kf_join(kofn_core *c, uint32_t worker, uint32_t principal);
kofn_status kf_moved(kofn_core *c, uint32_t worker, uint32_t principal);
kofn_status kf_stored(kofn_core *c, uint32_t worker);
kofn_status kf_leaving(kofn_core *c, uint32_t worker);
kofn_status kf_left(kofn_core *c, uint32_t worker, kf_worker_state state);
kofn_status kf_lost(kofn_core *c);
/* Fills c->live with the group's members that can be asked; *n of them. */
kofn_status kf_live_members(kofn_core *c, size_t group, size_t *n);
size_t kf_live_count(const kofn_core *c, size_t group);
bool kf_can_work(const kofn_core *c, const kf_worker *w);
kofn_status kf_vacate(kofn_core *c, uint32_t worker, kf_worker_state state);

/* cells.c */
kofn_status kf_cells_reset(kf_ledger *l, size_t lo, size_t hi, size_t span);
kofn_status kf_cells_split(kf_ledger *l, size_t at);
size_t kf_cells_find(const kf_ledger *l, size_t strip);
size_t kf_cells_next(const kf_ledger *l, size_t i, size_t lo, size_t hi);
kofn_status kf_cell_add(kf_cell *cell, uint32_t task);
void kf_cell_blame(kf_cell *cell, uint32_t task);
void kf_cells_free(kf_ledger *l);

/* Where the rows of a task's answer are in its group's code. */
static inline size_t kf_answer(const kofn_core *c, const kf_task *t)
{
    return kf_local(c->plan, t->seat) * c->plan->layout.turns + t->turn;
}

/* deal.c */
struct kofn_deals {
    kofn_deal *deal;
    size_t count, cap;
    size_t members, span;
};
size_t kf_wanted(const kofn_core *c, size_t group, const kf_cell *cell);
kofn_status kf_deal_round(kofn_core *c);
kofn_status kf_deal_more(kofn_core *c);
kofn_status kf_deal_open(kofn_core *c, size_t group);
kofn_status kf_deal_short(kofn_core *c, size_t group);
static inline bool kf_in_hand(const kf_task *t)
{
    return t->state == KF_TASK_OUT || t->state == KF_TASK_LATE;
}
void kf_end_task(kofn_core *c, size_t index, kf_task_state state);
void kf_late_task(kofn_core *c, size_t index);
kofn_status kf_drop_task(kofn_core *c, size_t index, bool cancel);
kofn_status kf_drop_all(kofn_core *c);

/* settle.c */
kofn_status kf_settle_checked(kofn_core *c, kf_asked a, size_t n, bool sure);
kofn_status kf_find_decoder(kofn_core *c, const uint32_t *seats, size_t n,
                            const kf_decoder **out);
kofn_status kf_settle(kofn_core *c, size_t group, size_t from, size_t to);
kofn_status kf_settle_all(kofn_core *c);
kofn_status kf_starve_if_short(kofn_core *c);

#endif
