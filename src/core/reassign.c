/* reassign.c -- asks only for missing results.
 *
 * It walks through the cells of a ledger, and asks the least loaded workers for
 * the results that are missing.
 *
 * Owns its table of members during a call.  It asks no seat twice for the same
 * strips. */
#include "state.h"

kofn_status kf_core_ask_seat(kofn_core *c, kf_round *r, uint32_t worker,
                             kf_band b)
{
    size_t seat = c->fleet.worker[worker].seat;

    assert(seat < c->fleet.seats && c->fleet.seat[seat] == worker);
    assert(b.lo < b.hi && b.group == seat % c->fleet.groups);
    for (size_t t = 0; t < kf_layout(&r->p)->submessages; t++)
        TRY(kf_round_ask(c, r, worker, kf_row_of_seat(&r->p, seat, t), b));
    return KOFN_OK;
}

/* The state of one live member during a re-deal. */
typedef struct member {
    uint32_t worker;
    size_t load, lo, hi; /* strips given; the run to ask for */
    bool barred;         /* its seat has answered, or will */
    bool late;           /* it has a late task: a last resort */
} member;

typedef struct redeal {
    kofn_core *core;
    kf_round *round;
    size_t group;
    member *member; /* the live ones */
    size_t members;
} redeal;

/* Returns the member that is this worker; NULL if there is none. */
static member *find(const redeal *d, uint32_t worker)
{
    size_t i =
        worker == KF_NOBODY ? d->members : d->core->fleet.worker[worker].place;

    return i < d->members && d->member[i].worker == worker ? &d->member[i]
                                                           : NULL;
}

/* Bars the member on the seat of the row that this task answers. */
static void bar(const redeal *d, const kf_task *task)
{
    size_t seat = kf_seat_of_row(&d->round->p, task->group, task->row);
    const kf_fleet *f = &d->core->fleet;
    member *m = seat < f->seats ? find(d, f->seat[seat]) : NULL;

    if (m)
        m->barred = true;
}

/* Bars the members on seats that have answered for this cell, or will.  If its
 * results disagreed, bars located members too.  Marks the members that have a
 * late task. */
static void bar_seats(const redeal *d, const kf_cell *cell)
{
    const kf_product *p = &d->round->p;

    for (member *m = d->member; m < d->member + d->members; m++) {
        m->barred = cell->disagreed && d->round->load[m->worker].located;
        m->late = false;
    }
    for (size_t t = 0; t < p->tasks; t++) {
        const kf_task *task = &p->task[t];
        member *m = NULL;

        if (kf_task_brings(task, d->group, cell))
            bar(d, task);
        if (task->state == KF_TASK_LATE && task->group == d->group)
            m = find(d, task->worker);
        if (m)
            m->late = true;
    }
    for (size_t h = 0; h < cell->count + cell->corrupt; h++)
        bar(d, &p->task[cell->have[h]]);
}

/* Asks for the last run of cells given to the member. */
static kofn_status ask_run(const redeal *d, const member *m)
{
    kf_band run = {d->group, m->lo, m->hi};

    return m->hi > m->lo ? kf_core_ask_seat(d->core, d->round, m->worker, run)
                         : KOFN_OK;
}

static kofn_status give(const redeal *d, member *m, const kf_cell *cell)
{
    assert(!m->barred);
    m->barred = true;
    if (m->hi != cell->lo) {
        TRY(ask_run(d, m));
        m->lo = cell->lo;
    }
    m->hi = cell->hi;
    m->load += cell->hi - cell->lo;
    return KOFN_OK;
}

/* Returns the member with the least load; NULL if there is none. */
static member *least_loaded(const redeal *d, bool late)
{
    member *best = NULL;

    for (member *m = d->member; m < d->member + d->members; m++)
        if (!m->barred && m->late == late && (!best || m->load < best->load))
            best = m;
    return best;
}

/* Gives the missing results of each short cell to the least loaded members that
 * may answer.  Neighbouring cells of one member are asked for as one run. */
static kofn_status fill_short(const redeal *d)
{
    const kf_product *p = &d->round->p;
    const kf_ledger *l = &p->ledger[d->group];

    /* Asking does not split cells, so indices stay valid.  But a cell counts
     * a result as pending only after the call, so the shortage is computed
     * first. */
    for (size_t i = 0; i < l->count; i++) {
        const kf_cell *cell = &l->cell[i];
        size_t missing = kf_product_short(p, d->group, cell);

        if (missing)
            bar_seats(d, cell);
        for (; missing > 0; missing--) {
            member *best = least_loaded(d, false);

            /* a late result may still come; if these do not suffice, late
             * members are asked */
            if (!best && missing > cell->slow)
                best = least_loaded(d, true);
            if (!best)
                break;
            TRY(give(d, best, cell));
        }
    }
    for (size_t k = 0; k < d->members; k++)
        TRY(ask_run(d, &d->member[k]));
    return KOFN_OK;
}

/* Splits short cells so that all members can share the missing strips: no cell
 * is longer than an equal share of them. */
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

/* Sets c->scratch.by_row of the rows that have come for this cell, or are
 * outstanding.
 */
static void set_rows(const kofn_core *c, const kf_product *p, size_t group,
                     const kf_cell *cell, uint32_t to)
{
    for (size_t h = 0; h < cell->count + cell->corrupt; h++)
        c->scratch.by_row[p->task[cell->have[h]].row] = to;
    for (size_t t = 0; t < p->tasks; t++)
        if (kf_task_brings(&p->task[t], group, cell))
            c->scratch.by_row[p->task[t].row] = to;
}

/* Asks the first n members for the rows of this cell that are neither here nor
 * outstanding. */
static kofn_status ask_absent(kofn_core *c, kf_round *r, kf_band b, size_t n)
{
    for (size_t k = 0; k < n; k++)
        for (size_t t = 0; t < kf_layout(&r->p)->submessages; t++) {
            uint32_t who = kf_core_member(c, b.group, k);
            uint32_t row = kf_row_of_seat(&r->p, c->fleet.worker[who].seat, t);

            if (c->scratch.by_row[row] == 0)
                TRY(kf_round_ask(c, r, who, row, b));
        }
    return KOFN_OK;
}

/* Asks workers that got their seat during the round.  If answers are whole, the
 * others were asked for all of their rows at the beginning. */
static kofn_status ask_newcomers(kofn_core *c, kf_round *r, size_t group,
                                 size_t n)
{
    const kf_ledger *l = &r->p.ledger[group];
    size_t rows = kf_row_of_seat(&r->p, c->fleet.seats + r->p.groups, 0);

    TRY(kf_reach(&c->scratch.by_row, &c->scratch.by_row_cap, rows,
                 sizeof *c->scratch.by_row));
    for (size_t i = 0; i < l->count; i++) {
        const kf_cell *cell = &l->cell[i];
        size_t lo = cell->lo, hi = cell->hi;
        kofn_status st;

        if (cell->settled)
            continue;
        set_rows(c, &r->p, group, cell, 1);
        st = ask_absent(c, r, (kf_band){group, lo, hi}, n);
        set_rows(c, &r->p, group, cell, 0);
        TRY(st);
    }
    return KOFN_OK;
}

kofn_status kf_reassign(kofn_core *c, kf_round *r, size_t group)
{
    redeal d = {.core = c, .round = r, .group = group};
    kofn_status st;

    TRY(kf_core_live_members(c, r, group, &d.members));
    if (d.members == 0)
        return KOFN_OK;
    if (kf_layout(&r->p)->whole && !kf_product_untouched(&r->p, group))
        return ask_newcomers(c, r, group, d.members);
    TRY(split_short(&r->p, group, d.members));
    TRY_ZERO(d.member, d.members);
    for (size_t i = 0; i < d.members; i++)
        d.member[i].worker = kf_core_member(c, group, i);
    st = fill_short(&d);
    kf_free(d.member);
    return st;
}
