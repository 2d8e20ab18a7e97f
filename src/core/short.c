/* short.c -- asking only for what is short.
 *
 * The ledger is looked through for cells that are short, and only the missing
 * results are asked for, of the least loaded.
 *
 * Owns its table of members within a call.  It asks no seat twice for the same
 * strips.
 */
#include "state.h"

#include <assert.h>

/* All answers of this worker's seat. */
kofn_status kf_core_ask_seat(kofn_core *c, kf_round *r, size_t group,
                             uint32_t worker, size_t lo, size_t hi)
{
    size_t seat = c->fleet.worker[worker].seat;

    assert(seat < c->fleet.seats && c->fleet.seat[seat] == worker);
    assert(lo < hi);
    for (size_t t = 0; t < kf_layout(&r->p)->submessages; t++)
        TRY(kf_round_ask(c, r,
                         (kf_task){.worker = worker,
                                   .group = (uint32_t)group,
                                   .row = kf_row_of_seat(&r->p, seat, t),
                                   .lo = lo,
                                   .hi = hi}));
    return KOFN_OK;
}

/* The knowledge of a re-deal in progress about one live member. */
typedef struct member {
    size_t load, lo, hi; /* strips given; the run not yet asked for */
    bool barred;         /* its seat has answered, or will          */
    bool late;           /* with a task: a last resort              */
} member;

/* The worker's place among the n live members; n when it is none of them. */
static size_t place_of(const kofn_core *c, uint32_t worker, size_t n)
{
    size_t i = worker == KF_NOBODY ? n : c->fleet.worker[worker].place;

    assert(worker == KF_NOBODY || worker < c->fleet.workers);
    assert(n <= c->live_cap);
    return i < n && c->live_worker[i] == worker ? i : n;
}

/* The worker on the seat whose row this task answers. */
static size_t holder_of(const kofn_core *c, const kf_product *p,
                        const kf_task *task, size_t n)
{
    size_t seat = kf_seat_of_row(p, task->group, task->row);

    return seat < c->fleet.seats ? place_of(c, c->fleet.seat[seat], n) : n;
}

/* Bars the members whose seat has answered for this cell or will, and those
 * located where results disagreed; marks those that are late with a task. */
static void bar_seats(const kofn_core *c, const kf_round *r, size_t group,
                      const kf_cell *cell, member *m, size_t n)
{
    const kf_product *p = &r->p;

    for (size_t i = 0; i < n; i++) {
        m[i].barred = cell->disagreed && r->load[c->live_worker[i]].located;
        m[i].late = false;
    }
    for (size_t t = 0; t < p->tasks; t++) {
        const kf_task *task = &p->task[t];
        size_t i = n;

        if (!kf_in_hand(task) || task->group != group)
            continue;
        if (task->lo <= cell->lo && task->hi >= cell->hi)
            i = holder_of(c, p, task, n);
        if (i < n)
            m[i].barred = true;
        i = task->state == KF_TASK_LATE ? place_of(c, task->worker, n) : n;
        if (i < n)
            m[i].late = true;
    }
    for (size_t h = 0; h < cell->count + cell->corrupt; h++) {
        size_t i = holder_of(c, p, &p->task[cell->have[h]], n);

        if (i < n)
            m[i].barred = true;
    }
}

static kofn_status give(kofn_core *c, kf_round *r, size_t group, member *m,
                        size_t who, const kf_cell *cell)
{
    kofn_status st = KOFN_OK;

    if (m[who].hi != cell->lo) {
        if (m[who].hi > m[who].lo)
            st = kf_core_ask_seat(c, r, group, c->live_worker[who], m[who].lo,
                                  m[who].hi);
        m[who].lo = cell->lo;
    }
    m[who].hi = cell->hi;
    m[who].load += cell->hi - cell->lo;
    return st;
}

/* n when there is none. */
static size_t least_loaded(const member *m, size_t n, bool late)
{
    size_t best = n;

    for (size_t k = 0; k < n; k++)
        if (!m[k].barred && m[k].late == late &&
            (best == n || m[k].load < m[best].load))
            best = k;
    return best;
}

/* Gives the missing results of each short cell to the least loaded members
 * that may answer; neighbouring cells of one member are asked for as one
 * run. */
static kofn_status fill_short(kofn_core *c, kf_round *r, size_t group,
                              member *m, size_t n)
{
    const kf_ledger *l = &r->p.ledger[group];

    /* Asking does not split cells, so indices hold; but it counts a cell as
     * pending only when it is called, hence the shortage is taken first. */
    for (size_t i = 0; i < l->count; i++) {
        const kf_cell *cell = &l->cell[i];
        size_t missing = kf_product_short(&r->p, group, cell);

        if (missing)
            bar_seats(c, r, group, cell, m, n);
        for (; missing > 0; missing--) {
            size_t best = least_loaded(m, n, false);

            /* what is late may come yet; where it is not enough the late are
             * better than nobody */
            if (best == n && missing > cell->slow)
                best = least_loaded(m, n, true);
            if (best == n)
                break;
            assert(best < n && !m[best].barred);
            m[best].barred = true;
            TRY(give(c, r, group, m, best, cell));
        }
    }
    for (size_t k = 0; k < n; k++)
        if (m[k].hi > m[k].lo)
            TRY(kf_core_ask_seat(c, r, group, c->live_worker[k], m[k].lo,
                                 m[k].hi));
    return KOFN_OK;
}

/* Splits short cells so that all can share the missing strips: no cell is
 * longer than an equal share of them. */
static kofn_status split_short(kf_product *p, size_t group, size_t n)
{
    kf_ledger *l = &p->ledger[group];
    size_t total = 0, each;

    assert(n > 0);
    for (size_t i = 0; i < l->count; i++)
        total += kf_product_short(p, group, &l->cell[i]) *
                 (l->cell[i].hi - l->cell[i].lo);
    each = kf_max(1, kf_ceil_div(total, n));
    for (size_t i = 0; total && i < l->count; i++)
        if (kf_product_short(p, group, &l->cell[i]) &&
            l->cell[i].hi - l->cell[i].lo > each)
            TRY(kf_cells_split(l, l->cell[i].lo + each));
    return KOFN_OK;
}

/* Has this row come, or is it on its way? */
static bool counted_on(const kf_product *p, size_t group, const kf_cell *cell,
                       uint32_t row)
{
    for (size_t h = 0; h < cell->count + cell->corrupt; h++)
        if (p->task[cell->have[h]].row == row)
            return true;
    for (size_t t = 0; t < p->tasks; t++) {
        const kf_task *task = &p->task[t];

        if (kf_in_hand(task) && task->group == group && task->row == row &&
            task->lo <= cell->lo && task->hi >= cell->hi)
            return true;
    }
    return false;
}

/* Where answers are whole each worker was asked for all of its rows at the
 * beginning; only those that came to a seat since then have rows to be asked
 * for. */
static kofn_status ask_newcomers(kofn_core *c, kf_round *r, size_t group,
                                 size_t n)
{
    const kf_ledger *l = &r->p.ledger[group];

    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < n && !l->cell[i].settled; k++)
            for (size_t t = 0; t < kf_layout(&r->p)->submessages; t++) {
                uint32_t who = c->live_worker[k];
                uint32_t row =
                    kf_row_of_seat(&r->p, c->fleet.worker[who].seat, t);

                if (!counted_on(&r->p, group, &l->cell[i], row))
                    TRY(kf_round_ask(c, r,
                                     (kf_task){.worker = who,
                                               .group = (uint32_t)group,
                                               .row = row,
                                               .lo = l->cell[i].lo,
                                               .hi = l->cell[i].hi}));
            }
    return KOFN_OK;
}

kofn_status kf_deal_short(kofn_core *c, kf_round *r, size_t group)
{
    member *m;
    kofn_status st;
    size_t n;

    TRY(kf_core_live_members(c, r, group, &n));
    if (n == 0)
        return KOFN_OK;
    if (kf_layout(&r->p)->whole && !kf_product_untouched(&r->p, group))
        return ask_newcomers(c, r, group, n);
    TRY(split_short(&r->p, group, n));
    TRY_ZERO(m, n);
    st = fill_short(c, r, group, m, n);
    kf_free(m);
    return st;
}
