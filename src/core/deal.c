/* deal.c -- who works on which strips.
 *
 * The scheme deals over a compressed axis, the strips that are still open, in
 * order; here shares become tasks on cells.  After a change inside a round
 * the ledger is looked through for cells that are short, and only the missing
 * results are asked for, of the least loaded.
 */
#include "state.h"

#include <stdlib.h>

kofn_status kofn_deals_add(kofn_deals *d, size_t who, size_t lo, size_t hi)
{
    if (who >= d->members || hi > d->span || lo > hi)
        return kf_fail(KOFN_INVAL, "a scheme dealt strips %zu..%zu of %zu to "
                       "member %zu of %zu", lo, hi, d->span, who, d->members);
    if (lo == hi)
        return KOFN_OK;
    TRY(kf_grow(&d->deal, &d->cap, d->count, sizeof *d->deal));
    d->deal[d->count++] = (kofn_deal){who, lo, hi};
    return KOFN_OK;
}

/* ---- tasks --------------------------------------------------------------- */

static kofn_status ask_turn(kofn_core *c, size_t group, uint32_t worker,
                            uint32_t turn, size_t lo, size_t hi)
{
    kf_ledger *l = &c->ledger[group];
    kf_worker *w = &c->worker[worker];

    TRY(kf_grow(&c->task, &c->task_cap, c->tasks, sizeof *c->task));
    TRY(kf_act(c, (kofn_action){.type = KOFN_DO_WORK,
                                .worker = worker,
                                .task = c->first_task + (uint32_t)c->tasks,
                                .seat = w->seat,
                                .turn = turn,
                                .group = group,
                                .lo = lo,
                                .hi = hi}));
    c->task[c->tasks++] =
        (kf_task){worker, w->seat, turn, KF_TASK_OUT, lo, hi};
    if (w->out++ == 0) {
        c->busy++;
        w->last = c->now;
    }
    c->rows[worker] += hi - lo;
    for (size_t i = kf_cells_find(l, lo); i < l->count;
         i = kf_cells_next(l, i, lo, hi))
        l->cell[i].pending++;
    return KOFN_OK;
}

static kofn_status ask(kofn_core *c, size_t group, uint32_t worker, size_t lo,
                       size_t hi)
{
    for (uint32_t t = 0; t < c->plan->layout.turns; t++)
        TRY(ask_turn(c, group, worker, t, lo, hi));
    return KOFN_OK;
}

/* Take the task off the cells that counted on it. */
static void uncount(kofn_core *c, const kf_task *t)
{
    kf_ledger *l = &c->ledger[kf_group(c->plan, t->seat)];

    for (size_t i = kf_cells_find(l, t->lo); i < l->count;
         i = kf_cells_next(l, i, t->lo, t->hi))
        *(t->state == KF_TASK_LATE ? &l->cell[i].slow
                                   : &l->cell[i].pending) -= 1;
}

/* The task is over, one way or another. */
void kf_end_task(kofn_core *c, size_t index, kf_task_state state)
{
    kf_task *t = &c->task[index];

    uncount(c, t);
    t->state = state;
    c->busy -= --c->worker[t->worker].out == 0;
}

kofn_status kf_drop_task(kofn_core *c, size_t index, bool cancel)
{
    const kf_task *t = &c->task[index];

    if (!kf_in_hand(t))
        return KOFN_OK;
    kf_end_task(c, index, KF_TASK_DROPPED);
    if (!cancel)
        return KOFN_OK;
    return kf_act(c, (kofn_action){.type = KOFN_DO_CANCEL,
                                   .worker = t->worker,
                                   .task = c->first_task + (uint32_t)index});
}

/* Nobody counts on it any more, though it may still come. */
void kf_late_task(kofn_core *c, size_t index)
{
    kf_task *t = &c->task[index];
    kf_ledger *l = &c->ledger[kf_group(c->plan, t->seat)];

    if (t->state != KF_TASK_OUT)
        return;
    t->state = KF_TASK_LATE;
    for (size_t i = kf_cells_find(l, t->lo); i < l->count;
         i = kf_cells_next(l, i, t->lo, t->hi)) {
        l->cell[i].pending--;
        l->cell[i].slow++;
    }
}

kofn_status kf_drop_all(kofn_core *c)
{
    for (size_t i = 0; i < c->tasks; i++)
        TRY(kf_drop_task(c, i, true));
    return KOFN_OK;
}

/* ---- dealing what is open ------------------------------------------------ */

static kofn_status collect(kofn_core *c, size_t group, size_t n,
                           kofn_deals *d)
{
    const kofn_plan *p = c->plan;
    size_t cover = c->generous > 0 && !p->layout.adjoint
                       ? n
                       : p->layout.enough + kf_spare(c, group);

    d->members = n;
    if (p->scheme->deal)
        return p->scheme->deal(&p->layout, c->live, n, kf_min(cover, n),
                               d->span, d);
    for (size_t i = 0; i < n; i++)
        TRY(kofn_deals_add(d, i, 0, d->span));
    return KOFN_OK;
}

/* Replace shares of the compressed axis by runs of real strips. */
static kofn_status expand(const kf_ledger *l, const kofn_deals *d,
                          kofn_deals *real)
{
    for (size_t k = 0; k < d->count; k++) {
        size_t at = 0;

        for (size_t i = 0; i < l->count && at < d->deal[k].hi; i++) {
            const kf_cell *cell = &l->cell[i];
            size_t length = cell->hi - cell->lo, lo, hi;

            if (cell->settled)
                continue;
            lo = kf_max(at, d->deal[k].lo);
            hi = kf_min(at + length, d->deal[k].hi);
            if (lo < hi)
                TRY(kofn_deals_add(real, d->deal[k].who, cell->lo + lo - at,
                                   cell->lo + hi - at));
            at += length;
        }
    }
    return KOFN_OK;
}

static int ascending(const void *a, const void *b)
{
    size_t x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Boundaries in ascending order, so that each split is at the end. */
static kofn_status split_at_deals(kf_ledger *l, const kofn_deals *d)
{
    size_t *at = kf_new(d->count, 2 * sizeof *at), n = 0;
    kofn_status st = KOFN_OK;

    if (!at)
        return KOFN_NOMEM;
    for (size_t k = 0; k < d->count; k++) {
        at[n++] = d->deal[k].lo;
        at[n++] = d->deal[k].hi;
    }
    qsort(at, n, sizeof *at, ascending);
    for (size_t i = 0; i < n && !st; i++)
        if (i == 0 || at[i] != at[i - 1])
            st = kf_cells_split(l, at[i]);
    kf_free(at);
    return st;
}

/* Where dealing made fewer open cells than a share has pieces, make more:
 * what a straggler has done of its share then counts. */
static kofn_status split_evenly(kofn_core *c, kf_ledger *l)
{
    size_t open = 0, total = 0, each;

    for (size_t i = 0; i < l->count; i++)
        if (!l->cell[i].settled) {
            open++;
            total += l->cell[i].hi - l->cell[i].lo;
        }
    if (open >= c->opt.pieces)
        return KOFN_OK;
    each = kf_ceil_div(total, c->opt.pieces);
    for (size_t i = 0; i < l->count; i++)
        if (!l->cell[i].settled && l->cell[i].hi - l->cell[i].lo > each)
            TRY(kf_cells_split(l, l->cell[i].lo + each));
    return KOFN_OK;
}

/* Tasks of about `piece` strips, made of whole cells. */
static kofn_status ask_in_pieces(kofn_core *c, size_t group, uint32_t worker,
                                 size_t lo, size_t hi, size_t piece)
{
    const kf_ledger *l = &c->ledger[group];
    size_t from = lo;

    for (size_t i = kf_cells_find(l, lo); i < l->count && l->cell[i].lo < hi;
         i++) {
        size_t to = l->cell[i].hi;

        if (to - from >= piece || to >= hi) {
            TRY(ask(c, group, worker, from, to));
            from = to;
        }
    }
    return KOFN_OK;
}

/* Answers of an adjoint code are sums, as large for some strips as for all: one
 * for each member, whose strips may be those at the end and at the beginning. */
static kofn_status ask_for_sums(kofn_core *c, const kofn_deals *d)
{
    for (size_t k = 0; k < d->count; k++) {
        kofn_deal one = d->deal[k];
        const kofn_deal *next = &d->deal[k + 1];

        if (k + 1 < d->count && next->who == one.who && next->lo == 0 &&
            one.hi == c->plan->span) {
            one.hi += next->hi;
            k++;
        }
        TRY(ask(c, 0, c->live_worker[one.who], one.lo, one.hi));
    }
    return KOFN_OK;
}

static kofn_status ask_deals(kofn_core *c, size_t group, const kofn_deals *d)
{
    size_t pieces = c->plan->layout.whole ? 1 : c->opt.pieces;

    for (size_t k = 0; k < d->count;) {
        size_t who = d->deal[k].who, share = 0, end = k;

        while (end < d->count && d->deal[end].who == who) {
            share += d->deal[end].hi - d->deal[end].lo;
            end++;
        }
        for (; k < end; k++)
            TRY(ask_in_pieces(c, group, c->live_worker[who], d->deal[k].lo,
                              d->deal[k].hi,
                              kf_ceil_div(share, pieces)));
    }
    return KOFN_OK;
}

static size_t open_strips(const kf_ledger *l)
{
    size_t open = 0;

    for (size_t i = 0; i < l->count; i++)
        open += l->cell[i].settled ? 0 : l->cell[i].hi - l->cell[i].lo;
    return open;
}

/* Deal everything that is not settled afresh. */
kofn_status kf_deal_open(kofn_core *c, size_t group)
{
    kf_ledger *l = &c->ledger[group];
    kofn_deals d = {.span = open_strips(l)}, real = {0};
    kofn_status st;
    size_t n;

    if (d.span == 0)
        return KOFN_OK;
    TRY(kf_live_members(c, group, &n));
    st = collect(c, group, n, &d);
    real.members = n;
    real.span = c->plan->span;
    if (!st)
        st = expand(l, &d, &real);
    if (!st)
        st = split_at_deals(l, &real);
    if (!st && c->plan->layout.adjoint)
        st = kf_adjoint_mix(c, &real);
    else if (!st && !c->plan->layout.whole)
        st = split_evenly(c, l);
    if (!st && c->state != KF_ROUND_IDLE)
        st = c->plan->layout.adjoint ? ask_for_sums(c, &real)
                                     : ask_deals(c, group, &real);
    kf_free(d.deal);
    kf_free(real.deal);
    return st;
}

/* Begin: nothing has come, everything is open. */
kofn_status kf_deal_round(kofn_core *c)
{
    size_t groups = c->plan->layout.groups;

    kf_late_begin(c);
    c->unsettled = groups * (c->hi - c->lo);
    for (size_t g = 0; g < groups; g++)
        TRY(kf_cells_reset(&c->ledger[g], c->lo, c->hi, c->plan->span));
    kf_set_spare(c);
    return kf_deal_more(c);
}

/* ---- asking only for what is short --------------------------------------- */

size_t kf_wanted(const kofn_core *c, size_t group, const kf_cell *cell)
{
    return c->plan->layout.enough + kf_spare(c, group) + cell->extra;
}

static size_t shortage(const kofn_core *c, size_t group, const kf_cell *cell)
{
    size_t sure = cell->count + cell->pending;
    size_t want = kf_wanted(c, group, cell);

    return cell->settled || sure >= want ? 0 : want - sure;
}

/* What a re-deal in progress knows of each live member. */
typedef struct member {
    size_t load, lo, hi; /* strips given; the run not yet asked for */
    bool barred;         /* its seat has answered, or will          */
    bool late;           /* with a task: a last resort              */
} member;

/* Which of the n it is; n when it is none of them. */
static size_t place_of(const kofn_core *c, uint32_t worker, size_t n)
{
    size_t i = worker == KF_NOBODY ? n : c->worker[worker].place;

    return i < n && c->live_worker[i] == worker ? i : n;
}

static void bar_seats(const kofn_core *c, const kf_cell *cell, member *m,
                      size_t n)
{
    for (size_t i = 0; i < n; i++)
        m[i].barred = m[i].late = false;
    for (size_t t = 0; t < c->tasks; t++) {
        const kf_task *task = &c->task[t];
        size_t i = kf_in_hand(task) ? place_of(c, task->worker, n) : n;

        if (i == n)
            continue;
        m[i].barred |= task->lo <= cell->lo && task->hi >= cell->hi;
        m[i].late |= task->state == KF_TASK_LATE;
    }
    for (size_t h = 0; h < cell->count + cell->lied; h++) {
        uint32_t seat = c->task[cell->have[h]].seat;
        size_t i = place_of(c, c->seat[seat], n);

        if (i < n)
            m[i].barred = true;
    }
}

static kofn_status give(kofn_core *c, size_t group, member *m, size_t who,
                        const kf_cell *cell)
{
    kofn_status st = KOFN_OK;

    if (m[who].hi != cell->lo) {
        if (m[who].hi > m[who].lo)
            st = ask(c, group, c->live_worker[who], m[who].lo, m[who].hi);
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

static kofn_status fill_short(kofn_core *c, size_t group, member *m, size_t n)
{
    kf_ledger *l = &c->ledger[group];

    /* ask() does not split cells, so indices hold; but it counts a cell as
     * pending only when it is called, hence the shortage is taken first. */
    for (size_t i = 0; i < l->count; i++) {
        const kf_cell *cell = &l->cell[i];
        size_t missing = shortage(c, group, cell);

        if (missing)
            bar_seats(c, cell, m, n);
        for (; missing > 0; missing--) {
            size_t best = least_loaded(m, n, false);

            /* what is late may come yet; where it is not enough the late are
             * better than nobody */
            if (best == n && missing > cell->slow)
                best = least_loaded(m, n, true);
            if (best == n)
                break;
            m[best].barred = true;
            TRY(give(c, group, m, best, cell));
        }
    }
    for (size_t k = 0; k < n; k++)
        if (m[k].hi > m[k].lo)
            TRY(ask(c, group, c->live_worker[k], m[k].lo, m[k].hi));
    return KOFN_OK;
}

/* So that the missing strips can be shared by all, no cell is longer than an
 * equal share of them. */
static kofn_status split_short(kofn_core *c, size_t group, size_t n)
{
    kf_ledger *l = &c->ledger[group];
    size_t total = 0, each;

    for (size_t i = 0; i < l->count; i++)
        total += shortage(c, group, &l->cell[i]) *
                 (l->cell[i].hi - l->cell[i].lo);
    each = kf_max(1, kf_ceil_div(total, n));
    for (size_t i = 0; total && i < l->count; i++)
        if (shortage(c, group, &l->cell[i]) && l->cell[i].hi - l->cell[i].lo > each)
            TRY(kf_cells_split(l, l->cell[i].lo + each));
    return KOFN_OK;
}

/* One cell is open and nothing was asked of it. */
static bool untouched(const kf_ledger *l)
{
    size_t open = 0, asked = 0;

    for (size_t i = 0; i < l->count; i++) {
        const kf_cell *cell = &l->cell[i];

        open += !cell->settled;
        asked += cell->count + cell->pending + cell->slow;
    }
    return open == 1 && asked == 0;
}

/* Has this answer of the seat come, or is it on its way? */
static bool counted_on(const kofn_core *c, const kf_cell *cell, size_t seat,
                       uint32_t turn)
{
    for (size_t h = 0; h < cell->count + cell->lied; h++) {
        const kf_task *task = &c->task[cell->have[h]];

        if (task->seat == seat && task->turn == turn)
            return true;
    }
    for (size_t t = 0; t < c->tasks; t++) {
        const kf_task *task = &c->task[t];

        if (kf_in_hand(task) && task->seat == seat && task->turn == turn &&
            task->lo <= cell->lo && task->hi >= cell->hi)
            return true;
    }
    return false;
}

/* Where answers are whole all were asked for all there is, but for those who
 * took the seats of others since. */
static kofn_status ask_newcomers(kofn_core *c, size_t group, size_t n)
{
    const kf_ledger *l = &c->ledger[group];

    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < n && !l->cell[i].settled; k++)
            for (uint32_t t = 0; t < c->plan->layout.turns; t++) {
                uint32_t who = c->live_worker[k];

                if (!counted_on(c, &l->cell[i], c->worker[who].seat, t))
                    TRY(ask_turn(c, group, who, t, l->cell[i].lo,
                                 l->cell[i].hi));
            }
    return KOFN_OK;
}

kofn_status kf_deal_short(kofn_core *c, size_t group)
{
    member *m;
    kofn_status st;
    size_t n;

    TRY(kf_live_members(c, group, &n));
    if (n == 0)
        return KOFN_OK;
    if (c->plan->layout.whole && !untouched(&c->ledger[group]))
        return ask_newcomers(c, group, n);
    TRY(split_short(c, group, n));
    m = kf_zero(n, sizeof *m);
    if (!m)
        return KOFN_NOMEM;
    st = fill_short(c, group, m, n);
    kf_free(m);
    return st;
}

/* Less may be wanted than before, and be here.  Ask for whatever is missing: by
 * the scheme's deal where nothing has been asked for yet, else for single
 * results. */
kofn_status kf_deal_more(kofn_core *c)
{
    TRY(kf_settle_all(c));
    if (c->state == KF_ROUND_IDLE)
        return KOFN_OK;
    kf_late_put_off(c);
    for (size_t g = 0; g < c->plan->layout.groups; g++) {
        bool plenty = kf_live_count(c, g) * c->plan->layout.turns >=
                      c->plan->layout.enough + kf_spare(c, g);

        if (plenty && untouched(&c->ledger[g]))
            TRY(kf_deal_open(c, g));
        else if (!c->plan->layout.adjoint)
            TRY(kf_deal_short(c, g));
    }
    return kf_starve_if_short(c);
}
