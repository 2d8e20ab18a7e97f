/* product.h -- an open product: its cells, its results, its tasks and its
 * checks.
 *
 * For every group of the code a product has a ledger of *cells*.  A cell is a
 * run of strips with the same history of results.  It is split at the first and
 * the last strip of every task, so that a task covers whole cells.  A cell is
 * settled when results of enough rows have come and their decoder is accurate
 * enough.  Until then the ledger knows how many results are missing.
 *
 * A task names the row of the code that it answers.  The product does not
 * choose the worker; it keeps `worker` as a name for other files.
 *
 * A product owns its ledgers and tasks.  Pointers to cells and tasks are valid
 * until the next task is added or the next cell is split.  A product sends no
 * requests itself. */
#ifndef KF_CORE_PRODUCT_H
#define KF_CORE_PRODUCT_H

#include "core.h"

#include "code/bounds.h"

#include <assert.h>

typedef enum kf_task_state {
    KF_TASK_OUT = 1, /* asked for */
    KF_TASK_LATE,    /* asked for, and others were asked as well */
    KF_TASK_DONE,    /* its result is here */
    KF_TASK_DROPPED  /* cancelled, failed, or its worker left */
} kf_task_state;

typedef struct kf_task {
    uint32_t number;     /* of all products; ascends in each product */
    uint32_t group, row; /* row of that group's code */
    uint32_t worker;
    kf_task_state state;
    size_t lo, hi; /* with an adjoint code, hi may exceed the last strip: the
                      task then continues at the first strip */
} kf_task;

static inline bool kf_in_hand(const kf_task *t)
{
    return t->state == KF_TASK_OUT || t->state == KF_TASK_LATE;
}

typedef struct kf_cell {
    size_t lo, hi;
    uint32_t *have; /* indices of tasks, in order of arrival: `count` results
                       that count, then `corrupt` results found wrong */
    size_t count, corrupt, cap;
    size_t extra;           /* results wanted beyond kf_product_least */
    size_t pending;         /* tasks out that will bring one more result each */
    size_t slow;            /* late tasks, which others were asked to replace */
    size_t counted;         /* results that kf_product.came has of it */
    bool settled, checking; /* checking: a verdict is outstanding */
    bool disagreed; /* some results disagree.  Workers that were proved wrong
                       elsewhere no longer count in this cell */
    bool last;      /* no more results will come: decide with these */
    bool spent;     /* `last` was tried and did not suffice */
    bool tried;     /* stream: tried without the late results */
} kf_cell;

/* True if the task is outstanding and covers this cell of the group. */
static inline bool kf_task_brings(const kf_task *t, size_t group,
                                  const kf_cell *cell)
{
    return kf_in_hand(t) && t->group == group && t->lo <= cell->lo &&
           t->hi >= cell->hi;
}

/* The kind of work that is still to be asked for in a group. */
typedef enum kf_owed {
    KF_OWED_NOTHING,
    KF_OWED_SHORT, /* single results for cells that lack some */
    KF_OWED_MORE,  /* the same; all work, dealt, if the group has no task */
    KF_OWED_AFRESH /* all open work, dealt, if enough workers are live */
} kf_owed;

typedef struct kf_ledger {
    kf_cell *cell;
    size_t count, cap;
    kf_bounds bounds;
    size_t spare; /* results wanted for every strip beyond `enough` */
    size_t liars; /* principals that may lie together (kf_policy.liars) */
    size_t known; /* members that are known to be wrong */
    size_t news_lo,
        news_hi; /* strips that have changed; none if both are equal */
    kf_owed owed;
} kf_ledger;

/* An outstanding check: do the results of these tasks agree? */
typedef struct kf_asked {
    uint32_t number; /* of all products; ascends in each product */
    size_t group, lo, hi;
    size_t first, count; /* its tasks: indices into the evidence */
    size_t liars;        /* number of results that may be wrong in any way */
    bool open, again;    /* again: the results disagreed before */
} kf_asked;

/* The checks of a product. */
typedef struct kf_checks {
    kf_asked *check;
    size_t count, cap;
    uint32_t *evidence; /* tasks of the checks */
    size_t evidences, evidence_cap;
} kf_checks;

/* Scratch of a product. */
typedef struct kf_product_scratch {
    uint8_t *heard; /* scratch of heard.c, per row of a seat: 1 if it is here */
    uint32_t *whole; /* scratch: tasks that are compared */
    size_t *reached; /* scratch, per number of submessages: seats that have sent
                        exactly that number */
} kf_product_scratch;

/* Predicted errors of a product. */
typedef struct kf_predicted {
    double noise, predicted, refused; /* refused: the last prediction that was
                                         above the tolerance */
} kf_predicted;

typedef struct kf_product {
    uint32_t number;
    const kf_use *use;
    size_t lo, hi;    /* its strips */
    size_t unsettled; /* open strips over all groups */
    size_t came; /* strips of results that are here, as kf_product_done counts
                    them */
    kf_ledger *ledger; /* per group */
    size_t groups;
    kf_task *task;
    size_t tasks, task_cap;
    size_t rows;             /* one more than the largest row asked for */
    size_t mark_lo, mark_hi; /* groups that may have changed or be owed work */
    bool all;       /* ask all workers, and compare all that are not late */
    bool late_too;  /* wait for all workers that answer, late ones too */
    bool degraded;  /* deliver the plain parts */
    bool lost;      /* some wants are lost */
    bool disagree;  /* results disagreed, and no worker could be located */
    bool unsure;    /* results agreed, but were too few to be sure */
    size_t corrupt; /* results found wrong */
    kf_checks checked;
    kf_product_scratch scratch;
    kf_predicted error;
} kf_product;

static inline const kofn_layout *kf_layout(const kf_product *p)
{
    return &p->use->plan->layout;
}

/* ---- product.c ----------------------------------------------------------- */

kofn_status kf_product_open(kf_product *p, size_t groups);
void kf_product_close(kf_product *p);
/* Begins a product of strips [lo, hi) in the memory of the last one.  `alike`
 * is that of kofn_event. */
void kf_product_begin(kf_product *p, uint32_t number, const kf_use *use,
                      size_t lo, size_t hi, bool alike);
/* Drops all results and opens all strips. */
kofn_status kf_product_reset(kf_product *p);
/* Drops the results that have come for cells that are not settled. */
void kf_product_forget_open(kf_product *p);

kofn_status kf_product_ask(kf_product *p, kf_task task);
/* Changes the state of an outstanding task. */
void kf_product_set(kf_product *p, size_t index, kf_task_state state);
/* Marks all outstanding tasks as late.  Their results may still come. */
void kf_product_all_late(kf_product *p);
/* True if this row has come for the cell, right or wrong. */
bool kf_product_has_row(const kf_product *p, const kf_cell *cell, uint32_t row);
/* Adds the result of the task to its cells. */
kofn_status kf_product_came(kf_product *p, size_t index);

/* True if results that disagreed before are being checked. */
bool kf_product_weighs(const kf_product *p);
/* Records a check of these tasks.  `again`: their results disagreed before. */
kofn_status kf_product_check(kf_product *p, const kofn_action *check,
                             const uint32_t *tasks, bool again);

/* Marks a group as changed.  The groups between two marked ones are looked at
 * too; usually one group is marked. */
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

/* Records the kind of work that is to be asked for in a group. */
static inline void kf_product_owe(kf_product *p, size_t group, kf_owed owed)
{
    p->ledger[group].owed = owed;
    kf_product_mark(p, group);
}

/* Mark strips of a group, or all strips, as changed. */
void kf_product_news(kf_product *p, size_t group, size_t lo, size_t hi);
void kf_product_all_news(kf_product *p);
/* Clears all changes and all owed work. */
void kf_product_no_news(kf_product *p);
/* Returns the least number of results that may decode (kf_code_enough); it may
 * be larger if results are compared. */
size_t kf_product_enough(const kf_product *p);
/* Return the number of useful results of this cell: those that are here, and
 * those that will be when all outstanding tasks are done.  The unit is that of
 * kf_product_enough. */
size_t kf_product_has(const kf_product *p, const kf_cell *cell);
size_t kf_product_may_have(const kf_product *p, size_t group,
                           const kf_cell *cell);
/* Return the number of results that every such cell needs, and that this cell
 * needs. */
size_t kf_product_least(const kf_product *p, size_t group, const kf_cell *cell);
size_t kf_product_wanted(const kf_product *p, size_t group,
                         const kf_cell *cell);
/* Returns the number of wanted results that have not been asked for. */
size_t kf_product_short(const kf_product *p, size_t group, const kf_cell *cell);
size_t kf_product_open_strips(const kf_product *p, size_t group);
/* True if the group has one open cell and no task for it. */
bool kf_product_untouched(const kf_product *p, size_t group);
/* Returns the share of its results that has come, 0 to 1. */
double kf_product_done(const kf_product *p);
/* Counts the cell's results again for kf_product_done. */
void kf_product_recount(kf_product *p, kf_cell *cell);
/* Returns NULL, or the invariant that does not hold. */
const char *kf_product_wrong(const kf_product *p);

/* ---- heard.c ------------------------------------------------------------- */

/* True if results are compared seat by seat: the code has submessages and
 * errors are searched for. */
static inline bool kf_product_by_seats(const kf_product *p)
{
    return kf_layout(p)->submessages > 1 && p->use->errors != KOFN_ERRORS_NONE;
}

kofn_status kf_product_make_room(kf_product *p);
/* Returns the tasks of this cell that are compared with each other, or
 * decoded. */
const uint32_t *kf_product_compared(const kf_product *p, const kf_cell *cell,
                                    size_t *n);
/* Returns the number of useful results among these tasks.  They were compared,
 * and some may have been left out. */
size_t kf_product_worth(const kf_product *p, const uint32_t *tasks, size_t n);
/* True if the task is the first one of its seat. */
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
/* Drops the results of open cells, and joins blank neighbours. */
void kf_cells_forget(kf_ledger *l);
void kf_cells_free(kf_ledger *l);

#endif
