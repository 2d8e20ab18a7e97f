/* product.h -- what is being computed: an open product, its cells, the answers
 * it has, what was asked and what is being checked.
 *
 * For every group of the code a ledger of *cells*: runs of strips whose
 * results have the same history.  A cell is split wherever a task begins or
 * ends inside it, so that every task covers whole cells.  A cell is settled
 * when results of enough rows have come and the decoder made from them is
 * accurate enough; until then the ledger knows what is still short.
 *
 * A task names the row of the code that it answers.  Who computes it is not
 * the product's business: `worker` is a name that it keeps for others.
 *
 * A product owns its ledgers and tasks; pointers to cells and tasks hold until
 * something is asked for or split.  It asks nobody itself. */
#ifndef KF_CORE_PRODUCT_H
#define KF_CORE_PRODUCT_H

#include "core.h"

#include "code/promise.h"

#include <assert.h>

typedef enum kf_task_state {
    KF_TASK_OUT = 1, /* asked for                            */
    KF_TASK_LATE,    /* asked for, and others asked as well  */
    KF_TASK_DONE,    /* its result is here                   */
    KF_TASK_DROPPED  /* cancelled, failed, or its worker left */
} kf_task_state;

typedef struct kf_task {
    uint32_t number;     /* of all products; those of one ascend */
    uint32_t group, row; /* row of that group's code         */
    uint32_t worker;
    kf_task_state state;
    size_t lo, hi; /* of an adjoint code they may go on at the first strip */
} kf_task;

static inline bool kf_in_hand(const kf_task *t)
{
    return t->state == KF_TASK_OUT || t->state == KF_TASK_LATE;
}

typedef struct kf_cell {
    size_t lo, hi;
    uint32_t *have; /* tasks (indices): `count` whose results count, as they
                       came, then `corrupt` whose results were found wrong */
    size_t count, corrupt, cap;
    size_t extra;   /* results wanted beyond those that are always needed */
    size_t pending; /* tasks out that will each bring one more         */
    size_t slow;    /* ... and tasks that others were asked to replace */
    bool settled, checking; /* checking: a verdict is awaited */
    bool disagreed; /* some of its results do, of whomever; who is known to
                       be wrong elsewhere does not count in it any more */
    bool last;      /* nobody has a result to add: these have to do, or ... */
    bool spent;     /* ... did not                                      */
    bool tried;     /* stream: looked at without what is slow           */
} kf_cell;

/* Is it in hand for this cell of the group? */
static inline bool kf_task_brings(const kf_task *t, size_t group,
                                  const kf_cell *cell)
{
    return kf_in_hand(t) && t->group == group && t->lo <= cell->lo &&
           t->hi >= cell->hi;
}

/* The kind of work that is still to be asked for of a group. */
typedef enum kf_owed {
    KF_OWED_NOTHING,
    KF_OWED_SHORT, /* single results, where cells are short of them       */
    KF_OWED_MORE,  /* likewise; all of it, dealt, if nothing was asked yet */
    KF_OWED_AFRESH /* all that is open, dealt, if there are enough for it */
} kf_owed;

typedef struct kf_ledger {
    kf_cell *cell;
    size_t count, cap;
    kf_promise promise;
    size_t spare; /* results wanted of every strip beyond `enough` */
    size_t liars; /* principals that hold no more seats together   */
    size_t known; /* members who are known to be wrong             */
    size_t news_lo,
        news_hi; /* strips of which something is new: none if equal */
    kf_owed owed;
} kf_ledger;

/* A question that is out: do the results of these tasks agree? */
typedef struct kf_asked {
    uint32_t number; /* of all products; those of one ascend */
    size_t group, lo, hi;
    size_t first, count; /* its tasks in the product's evidence (indices) */
    size_t liars;        /* as many of them may lie as they like */
    bool open, again;    /* again: of results that disagreed before */
} kf_asked;

typedef struct kf_product {
    uint32_t number;
    const kf_use *use;
    size_t lo, hi;     /* strips that it is of         */
    size_t unsettled;  /* of them, over all groups     */
    kf_ledger *ledger; /* per group */
    size_t groups;
    kf_task *task;
    size_t tasks, task_cap;
    size_t rows;    /* all that were asked for are below */
    uint8_t *heard; /* scratch of heard.c, per row of a seat: is it there?    */
    uint32_t *whole; /* ... tasks of those that are compared                  */
    size_t *reached; /* ... per number of submessages: seats that gave it     */
    kf_asked *check;
    size_t checks, check_cap;
    uint32_t *evidence; /* tasks of the checks */
    size_t evidences, evidence_cap;
    double noise, predicted, refused; /* the last one that was too large */
    size_t mark_lo,
        mark_hi;    /* groups that may have news, or be owed something */
    bool all;       /* everybody is asked, and whoever is not late compared */
    bool late_too;  /* everybody who answers is waited for */
    bool degraded;  /* deliver what is plain */
    bool lost;      /* some wants are lost   */
    bool disagree;  /* some results did, and nobody could be located */
    bool unsure;    /* some agreed, but not enough to be sure      */
    size_t corrupt; /* results that were found wrong */
} kf_product;

static inline const kofn_layout *kf_layout(const kf_product *p)
{
    return &p->use->plan->layout;
}

/* ---- product.c ----------------------------------------------------------- */

kofn_status kf_product_open(kf_product *p, size_t groups);
void kf_product_close(kf_product *p);
/* Another one, of strips [lo, hi), in the memory of the last; `alike` as in
 * kofn_event. */
void kf_product_begin(kf_product *p, uint32_t number, const kf_use *use,
                      size_t lo, size_t hi, bool alike);
/* Nothing has come, everything is open. */
kofn_status kf_product_reset(kf_product *p);
/* Drop the results that have come for cells that are not settled. */
void kf_product_forget_open(kf_product *p);

kofn_status kf_product_ask(kf_product *p, kf_task task);
/* What is in hand is now in another state. */
void kf_product_set(kf_product *p, size_t index, kf_task_state state);
/* Nobody counts on what is in hand any more, though it may still come. */
void kf_product_all_late(kf_product *p);
/* Has this row come for the cell, right or wrong? */
bool kf_product_has_row(const kf_product *p, const kf_cell *cell, uint32_t row);
/* The result of the task has come. */
kofn_status kf_product_came(kf_product *p, size_t index);

/* Results that disagreed before are being checked. */
bool kf_product_weighs(const kf_product *p);
/* These tasks are being compared; `again`: their results disagreed before. */
kofn_status kf_product_check(kf_product *p, const kofn_action *check,
                             const uint32_t *tasks, bool again);

/* Something is to be done for this group.  Groups between marked ones are looked
 * at as well, for most often there is one. */
static inline void kf_product_mark(kf_product *p, size_t group)
{
    bool none = p->mark_lo == p->mark_hi;

    assert(group < p->groups);
    p->mark_lo = none ? group : kf_min(p->mark_lo, group);
    p->mark_hi = none ? group + 1 : kf_max(p->mark_hi, group + 1);
}

static inline bool kf_product_marked(const kf_product *p)
{
    return p->mark_lo != p->mark_hi;
}

/* Record what is to be asked for of a group. */
static inline void kf_product_owe(kf_product *p, size_t group, kf_owed owed)
{
    p->ledger[group].owed = owed;
    kf_product_mark(p, group);
}

/* Something is new of these strips. */
void kf_product_news(kf_product *p, size_t group, size_t lo, size_t hi);
void kf_product_all_news(kf_product *p);
/* Nothing is new of any, or owed. */
void kf_product_no_news(kf_product *p);
/* The number of results that make an answer, or that may make one where results
 * are compared. */
size_t kf_product_enough(const kf_product *p);
/* Results of this cell that are worth something, in the units of the above;
 * those that will be when all is here that is in hand. */
size_t kf_product_has(const kf_product *p, const kf_cell *cell);
size_t kf_product_may_have(const kf_product *p, size_t group,
                           const kf_cell *cell);
/* Results that a cell like this always has to have, and this one. */
size_t kf_product_least(const kf_product *p, size_t group, const kf_cell *cell);
size_t kf_product_wanted(const kf_product *p, size_t group,
                         const kf_cell *cell);
/* ... of which so many have not been asked for. */
size_t kf_product_short(const kf_product *p, size_t group, const kf_cell *cell);
size_t kf_product_open_strips(const kf_product *p, size_t group);
/* True if a cell of the group is open and nothing was asked of it. */
bool kf_product_untouched(const kf_product *p, size_t group);
/* The share of its results that has come. */
double kf_product_done(const kf_product *p);
/* NULL, or what is wrong with it. */
const char *kf_product_wrong(const kf_product *p);

/* ---- heard.c ------------------------------------------------------------- */

/* Are seats compared that answer in submessages? */
static inline bool kf_product_by_seats(const kf_product *p)
{
    return kf_layout(p)->submessages > 1 && p->use->errors != KOFN_ERRORS_NONE;
}

kofn_status kf_product_make_room(kf_product *p);
/* The tasks of this cell that are compared with each other, or decoded. */
const uint32_t *kf_product_compared(const kf_product *p, const kf_cell *cell,
                                    size_t *n);
/* The worth of these tasks, which were compared and some of which may have been
 * left out. */
size_t kf_product_worth(const kf_product *p, const uint32_t *tasks, size_t n);
/* Is it the first of those of its seat? */
static inline bool kf_product_leads(const kf_product *p, uint32_t task)
{
    return !kf_product_by_seats(p) ||
           p->task[task].row % kf_layout(p)->submessages == 0;
}

/* ---- cells.c ------------------------------------------------------------- */

kofn_status kf_cells_reset(kf_ledger *l, size_t lo, size_t hi, size_t span);
kofn_status kf_cells_split(kf_ledger *l, size_t at);
size_t kf_cells_find(const kf_ledger *l, size_t strip);
size_t kf_cells_next(const kf_ledger *l, size_t i, size_t lo, size_t hi);
kofn_status kf_cell_add(kf_cell *cell, uint32_t task);
void kf_cell_corrupt(kf_cell *cell, uint32_t task);
/* Of open cells what has come; neighbours have one history again. */
void kf_cells_forget(kf_ledger *l);
void kf_cells_free(kf_ledger *l);

#endif
