/* settle.c -- decides whether a cell has enough results, and whether they are
 * accurate enough.
 *
 * A cell is decoded once it has results of enough rows and its predicted error
 * is within the tolerance.  The error is predicted from the coefficients alone.
 * Otherwise one more result is owed.  An inexact result is never delivered as
 * an exact one.
 *
 * Lists of survivors are in the pool of the step.  A cell is settled once only,
 * by a decoder that is accurate enough, or by a partial one if the product is
 * degraded. */
#include "state.h"

/* ---- survivor sets ------------------------------------------------------- */

/* Writes the tasks, and then their rows, in ascending order of row, to the end
 * of c->todo.pool.  Sorts them by scattering over the rows. */
static kofn_status survivors(kofn_core *c, const kf_product *p,
                             const uint32_t *have, size_t n, uint32_t **tasks,
                             uint32_t **rows)
{
    size_t found = 0;

    TRY(kf_core_room(c, 2 * n));
    TRY(kf_reach(&c->scratch.by_row, &c->scratch.by_row_cap, p->rows,
                 sizeof *c->scratch.by_row));
    *tasks = c->todo.pool + c->todo.pooled;
    *rows = *tasks + n;
    for (size_t i = 0; i < n; i++)
        c->scratch.by_row[p->task[have[i]].row] = have[i] + 1;
    for (size_t r = 0; r < p->rows; r++)
        if (c->scratch.by_row[r] > 0) {
            (*tasks)[found] = c->scratch.by_row[r] - 1;
            (*rows)[found++] = (uint32_t)r;
            c->scratch.by_row[r] = 0;
        }
    assert(found == n); /* a cell counts each row once */
    return KOFN_OK;
}

/* Replaces the n survivors at the end of the pool by the numbers of their
 * tasks, and keeps them there. */
static void keep_survivors(kofn_core *c, const kf_product *p, size_t n)
{
    assert(c->todo.pooled + n <= c->todo.pool_cap);
    for (size_t i = 0; i < n; i++)
        c->todo.pool[c->todo.pooled + i] =
            p->task[c->todo.pool[c->todo.pooled + i]].number;
    c->todo.pooled += n;
}

static bool same_history(const kf_cell *a, const kf_cell *b)
{
    size_t n = a->count + a->corrupt;

    return a->hi == b->lo && a->count == b->count && a->corrupt == b->corrupt &&
           a->extra == b->extra && a->disagreed == b->disagreed &&
           a->last == b->last && a->spent == b->spent && !b->settled &&
           !b->checking &&
           (n == 0 || memcmp(a->have, b->have, n * sizeof *a->have) == 0);
}

/* ---- deciding ------------------------------------------------------------ */

static bool is_open(const kf_cell *cell)
{
    return !cell->settled && !cell->checking;
}

static bool complete(const kf_product *p, size_t group, const kf_cell *cell)
{
    if (!is_open(cell))
        return false;
    if (p->degraded)
        return cell->pending + cell->slow == 0;
    if ((kf_layout(p)->everybody || p->all) && cell->pending)
        return false;
    if (p->late_too && cell->pending + cell->slow)
        return false;
    return cell->last ||
           kf_product_has(p, cell) >= kf_product_wanted(p, group, cell);
}

kofn_status kf_core_find_decoder(const kofn_core *c, kf_product *p,
                                 const uint32_t *rows, size_t n,
                                 const kofn_decoder **out)
{
    kf_answers a;
    kofn_status st;

    TRY(kf_answers_judge(p->use->cache, p->use->plan, rows, n, c->opt.max_error,
                         &a));
    *out = a.decoder;
    if (!a.decoder && a.refused > 0)
        p->error.refused = a.refused;
    if (a.decoder || !p->degraded)
        return KOFN_OK;
    st = kf_cache_get(p->use->cache, rows, n, true, out);
    if (st)
        *out = NULL;
    return st == KOFN_NOMEM ? st : KOFN_OK;
}

/* Sets the number of results that the cell wants, unless it always needs
 * more. */
static void want(kf_round *r, size_t group, kf_cell *cell, size_t results)
{
    size_t least = kf_product_least(&r->p, group, cell);

    cell->extra = results - kf_min(results, least);
    cell->spent |= cell->last;
    cell->last = false;
    kf_product_owe(&r->p, group, KF_OWED_SHORT);
    r->resolve = true;
}

/* Cells from .. to-1 of a group, with the same history. */
typedef struct run {
    size_t group, from, to;
} run;

kofn_status kf_settle_decode(kofn_core *c, kf_product *p, kf_band b,
                             const kofn_decoder *d, size_t n)
{
    TRY(kf_act(c, (kofn_action){.type = KOFN_DO_DECODE,
                                .product = p->number,
                                .group = b.group,
                                .lo = b.lo,
                                .hi = b.hi,
                                .decoder = d,
                                .first = c->todo.pooled,
                                .count = n}));
    keep_survivors(c, p, n);
    return KOFN_OK;
}

/* Settles these strips by the n tasks at the end of the pool. */
static kofn_status finish(kofn_core *c, kf_product *p, run u,
                          const kofn_decoder *d, size_t n)
{
    kf_cell *cell = p->ledger[u.group].cell;

    assert(u.from < u.to && u.to <= p->ledger[u.group].count);
    p->error.noise = kf_larger(p->error.noise, d->noise);
    p->error.predicted = kf_larger(
        p->error.predicted,
        kf_code_predicted(d, kf_cache_plan(p->use->cache), p->use->plan));
    p->lost |= !d->whole;
    for (size_t i = u.from; i < u.to; i++) {
        assert(!cell[i].settled && p->unsettled >= cell[i].hi - cell[i].lo);
        cell[i].settled = true;
        p->unsettled -= cell[i].hi - cell[i].lo;
        kf_product_recount(p, &cell[i]);
    }
    return p->use->policy->decode(
        c, p, (kf_band){u.group, cell[u.from].lo, cell[u.to - 1].hi}, d, n);
}

static kofn_status have_checked(kofn_core *c, kf_round *r, run u,
                                const kofn_decoder *d, size_t n)
{
    kf_cell *cell = r->p.ledger[u.group].cell;
    kf_band strips = {u.group, cell[u.from].lo, cell[u.to - 1].hi};

    for (size_t i = u.from; i < u.to; i++) {
        assert(is_open(&cell[i]));
        cell[i].checking = true;
    }
    TRY(kf_core_ask_check(c, r, strips, d, n));
    keep_survivors(c, &r->p, n);
    return KOFN_OK;
}

/* Sets *n to the number of results of this cell that suffice for a check.
 * Results that are zero whatever the input do not count while more may come. */
static kofn_status results_to_check(kofn_core *c, kf_round *r, run u,
                                    const uint32_t *have, size_t count,
                                    size_t *n)
{
    const kf_cell *cell = &r->p.ledger[u.group].cell[u.from];
    size_t silent = 0;

    if (r->p.use->errors != KOFN_ERRORS_NONE &&
        r->p.use->errors != KOFN_ERRORS_KEYED && !cell->last)
        TRY(kf_core_zero_results(&r->p, u.group, cell->lo, cell->have,
                                 cell->count, &silent));
    *n = kf_product_enough(&r->p) + silent +
         kf_core_vouch(c, r, u.group, have, count);
    return KOFN_OK;
}

/* Settles these cells, checks them, or wants one more result for each. */
static kofn_status settle_run(kofn_core *c, kf_round *r, run u)
{
    kf_product *p = &r->p;
    kf_cell *cell = p->ledger[u.group].cell;
    size_t n, worth = kf_product_has(p, &cell[u.from]), enough;
    const uint32_t *have = kf_product_compared(p, &cell[u.from], &n);
    const kofn_decoder *d;
    uint32_t *tasks, *rows;

    TRY(survivors(c, p, have, n, &tasks, &rows));
    TRY(kf_core_find_decoder(c, p, rows, n, &d));
    if (d && p->use->errors == KOFN_ERRORS_NONE)
        return finish(c, p, u, d, n);
    TRY(results_to_check(c, r, u, have, n, &enough));
    if (d && worth >= enough)
        return have_checked(c, r, u, d, n);
    p->unsure |= d != NULL;
    for (size_t i = u.from; i < u.to; i++)
        want(r, u.group, &cell[i], kf_max(worth + 1, d ? enough : 0));
    return KOFN_OK;
}

/* ---- changed cells ------------------------------------------------------- */

static kofn_status settle_group(kofn_core *c, kf_round *r, size_t group)
{
    kf_ledger *l = &r->p.ledger[group];
    size_t hi = l->news_hi, i = kf_cells_find(l, l->news_lo), end;

    assert(l->news_lo <= hi);
    l->news_lo = l->news_hi = 0;
    for (; i < l->count && l->cell[i].lo < hi; i = end) {
        end = i + 1;
        if (is_open(&l->cell[i]) && kf_core_leave_out(c, r, &l->cell[i], false))
            want(r, group, &l->cell[i], 0);
        /* If results of this cell disagreed, it waits for an outstanding check
         * of other results that did.  The same workers may be wrong here, and a
         * check takes long, so it is done once. */
        if (!complete(&r->p, group, &l->cell[i]) ||
            (l->cell[i].disagreed && kf_product_weighs(&r->p)))
            continue;
        while (end < l->count && l->cell[end].lo < hi &&
               same_history(&l->cell[end - 1], &l->cell[end]))
            end++;
        TRY(settle_run(c, r, (run){group, i, end}));
    }
    return KOFN_OK;
}

/* Decides about the cells that have changed. */
kofn_status kf_settle(kofn_core *c, kf_round *r)
{
    assert(r->p.mark_lo <= r->p.mark_hi && r->p.mark_hi <= r->p.groups);
    for (size_t g = r->p.mark_lo; g < r->p.mark_hi; g++)
        if (r->p.ledger[g].news_lo != r->p.ledger[g].news_hi)
            TRY(settle_group(c, r, g));
    return KOFN_OK;
}

/* Acts on the verdict of a check.  If `sure`, the n tasks left as its evidence
 * agree.  Otherwise `wanted` results are wanted. */
kofn_status kf_settle_checked(kofn_core *c, kf_round *r, const kf_asked *a,
                              size_t n, bool sure, size_t wanted)
{
    kf_product *p = &r->p;
    kf_ledger *l = &p->ledger[a->group];
    size_t worth = kf_product_worth(p, p->checked.evidence + a->first, n);
    const kofn_decoder *d = NULL;
    uint32_t *tasks, *rows;

    assert(a->first + n <= p->checked.evidences);
    TRY(survivors(c, p, p->checked.evidence + a->first, n, &tasks, &rows));
    if (sure)
        TRY(kf_core_find_decoder(c, p, rows, n, &d));
    for (size_t i = kf_cells_find(l, a->lo), end;
         i < l->count && l->cell[i].lo < a->hi; i = end) {
        for (end = i;
             end < l->count && l->cell[end].lo < a->hi && l->cell[end].checking;
             end++) {
            l->cell[end].checking = false;
            if (!d)
                want(r, a->group, &l->cell[end], sure ? worth + 1 : wanted);
        }
        if (d && end > i) {
            TRY(finish(c, p, (run){a->group, i, end}, d, n));
            TRY(survivors(c, p, p->checked.evidence + a->first, n, &tasks,
                          &rows));
        }
        end += end == i; /* the round was restarted, so this cell no
                              longer waits for the check */
    }
    if (!d) /* results that came meanwhile may be enough */
        kf_product_news(p, a->group, a->lo, a->hi);
    return KOFN_OK;
}
