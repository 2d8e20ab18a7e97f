/* settle.c -- is it enough, is it accurate enough, and what if it never is.
 *
 * A cell is decoded as soon as results of enough seats are there and the
 * error predicted from their coefficients alone is within the tolerance;
 * otherwise one more result is asked for.  An answer that cannot be exact is
 * never delivered as if it were.
 */
#include "state.h"

#include <math.h>

/* ---- survivor sets ------------------------------------------------------- */

/* The cell's tasks and their seats in ascending order of seat, one behind the
 * other at the end of c->pool.  Sorted by scattering over the seats. */
static kofn_status survivors(kofn_core *c, const kf_cell *cell,
                             uint32_t **tasks, uint32_t **seats)
{
    size_t n = cell->count, top = kf_local(c->plan, c->seats) + 1, found = 0;

    while (c->pool_cap <= c->pooled + 2 * n) /* there is a pool even for none */
        TRY(kf_grow(&c->pool, &c->pool_cap, c->pool_cap, sizeof *c->pool));
    while (c->by_seat_cap < top) {
        size_t had = c->by_seat_cap;

        TRY(kf_grow(&c->by_seat, &c->by_seat_cap, had, sizeof *c->by_seat));
        memset(c->by_seat + had, 0xff, (c->by_seat_cap - had) * 4);
    }
    *tasks = c->pool + c->pooled;
    *seats = *tasks + n;
    for (size_t i = 0; i < n; i++)
        c->by_seat[kf_local(c->plan, c->task[cell->have[i]].seat)] =
            cell->have[i];
    for (size_t s = 0; s < top; s++)
        if (c->by_seat[s] != UINT32_MAX) {
            (*tasks)[found] = c->by_seat[s];
            (*seats)[found++] = (uint32_t)s;
            c->by_seat[s] = UINT32_MAX;
        }
    return KOFN_OK;
}

static bool same_history(const kf_cell *a, const kf_cell *b)
{
    return a->hi == b->lo && a->count == b->count && a->extra == b->extra &&
           !b->settled &&
           (a->count == 0 ||
            memcmp(a->have, b->have, a->count * sizeof *a->have) == 0);
}

/* ---- deciding ------------------------------------------------------------ */

static bool complete(const kofn_core *c, const kf_cell *cell)
{
    if (cell->settled)
        return false;
    if (c->degraded)
        return cell->pending + cell->slow == 0;
    return cell->count >= c->plan->layout.enough + cell->extra;
}

/* A decoder that is accurate enough, or NULL. */
static kofn_status find_decoder(kofn_core *c, const uint32_t *seats, size_t n,
                                const kf_decoder **out)
{
    const kf_decoder *d = NULL;
    kofn_status st = KOFN_TOOFEW;

    *out = NULL;
    if (n >= c->plan->layout.enough)
        st = kf_cache_get(c->cache, seats, n, false, &d);
    if (st == KOFN_UNSTABLE) /* not to be solved at all */
        c->refused = HUGE_VAL;
    if (st == KOFN_OK && !(d->predicted <= c->opt.tolerance)) {
        c->refused = d->predicted;
        st = KOFN_UNSTABLE;
    }
    if (st && st != KOFN_NOMEM && c->degraded)
        st = kf_cache_get(c->cache, seats, n, true, &d);
    if (st == KOFN_NOMEM)
        return st;
    if (st == KOFN_OK)
        *out = d;
    return KOFN_OK;
}

/* Decode cells [from, to), which share their history, or want one more. */
static kofn_status settle_run(kofn_core *c, size_t group, size_t from,
                              size_t to)
{
    kf_cell *cell = c->ledger[group].cell;
    size_t n = cell[from].count;
    const kf_decoder *d;
    uint32_t *tasks, *seats;

    TRY(survivors(c, &cell[from], &tasks, &seats));
    TRY(find_decoder(c, seats, n, &d));
    if (!d) {
        for (size_t i = from; i < to; i++)
            cell[i].extra = n + 1 - c->plan->layout.enough;
        return KOFN_OK;
    }
    c->noise = fmax(c->noise, d->noise);
    c->predicted = fmax(c->predicted, d->predicted);
    c->lost |= !d->whole;
    for (size_t i = from; i < to; i++) {
        cell[i].settled = true;
        c->unsettled -= cell[i].hi - cell[i].lo;
    }
    TRY(kf_act(c, (kofn_action){.type = KOFN_DO_DECODE,
                                .group = group,
                                .lo = cell[from].lo,
                                .hi = cell[to - 1].hi,
                                .decoder = d,
                                .task = (uint32_t)c->pooled}));
    for (size_t i = 0; i < n; i++)
        tasks[i] += c->first_task;
    c->pooled += n;
    return KOFN_OK;
}

/* Cells [from, to) have news. */
kofn_status kf_settle(kofn_core *c, size_t group, size_t from, size_t to)
{
    const kf_cell *cell = c->ledger[group].cell;
    bool need_more = false;

    for (size_t i = from; i < to;) {
        size_t end = i + 1;

        if (!complete(c, &cell[i])) {
            i++;
            continue;
        }
        while (end < to && same_history(&cell[end - 1], &cell[end]))
            end++;
        TRY(settle_run(c, group, i, end));
        need_more |= !cell[i].settled;
        i = end;
    }
    if (c->unsettled == 0)
        return kf_deliver(c, c->lost ? KOFN_PARTIAL : KOFN_OK);
    if (!need_more)
        return KOFN_OK;
    TRY(kf_deal_short(c, group));
    return kf_starve_if_short(c);
}

/* ---- when there are too few ---------------------------------------------- */

/* A cell that not even everything in hand will complete. */
static const kf_cell *starving_cell(const kofn_core *c)
{
    for (size_t g = 0; g < c->plan->layout.groups; g++)
        for (size_t i = 0; i < c->ledger[g].count; i++) {
            const kf_cell *cell = &c->ledger[g].cell[i];

            if (!cell->settled && cell->count + cell->pending + cell->slow <
                                      c->plan->layout.enough + cell->extra)
                return cell;
        }
    return NULL;
}

static bool somebody_comes(const kofn_core *c)
{
    for (size_t i = 0; i < c->workers; i++)
        if (c->worker[i].state == KF_WORKER_STORING)
            return true;
    return false;
}

static kofn_status settle_all(kofn_core *c)
{
    for (size_t g = 0; g < c->plan->layout.groups; g++)
        if (c->state != KF_ROUND_IDLE)
            TRY(kf_settle(c, g, 0, c->ledger[g].count));
    return KOFN_OK;
}

/* Everybody left computes everything that is open; what is plain in that is
 * delivered, the rest marked as lost. */
static kofn_status degrade(kofn_core *c)
{
    c->degraded = true;
    c->state = KF_ROUND_RUNNING; /* it may have waited for somebody */
    for (size_t g = 0; g < c->plan->layout.groups; g++) {
        kf_ledger *l = &c->ledger[g];

        for (size_t i = 0; i < l->count; i++)
            l->cell[i].extra = c->seats;
        TRY(kf_deal_short(c, g));
    }
    return settle_all(c);
}

/* Those who came during the round sit it out, unless they are needed. */
static bool call_reserves(kofn_core *c)
{
    bool any = false;

    for (size_t i = 0; i < c->workers; i++)
        if (c->worker[i].state == KF_WORKER_LIVE &&
            c->worker[i].from > c->round) {
            c->worker[i].from = c->round;
            any = true;
        }
    return any;
}

static kofn_status pause(kofn_core *c)
{
    if (c->state != KF_ROUND_STARVED)
        c->starved = c->now;
    c->state = KF_ROUND_STARVED;
    c->alarm = KOFN_NEVER;
    if (c->opt.below == KOFN_BELOW_PAUSE && c->opt.patience > 0 &&
        c->opt.patience < KOFN_NEVER - c->starved)
        c->alarm = c->starved + c->opt.patience;
    return KOFN_OK;
}

static size_t fewest_live(const kofn_core *c)
{
    size_t fewest = SIZE_MAX;

    for (size_t g = 0; g < c->plan->layout.groups; g++)
        fewest = kf_min(fewest, kf_live_count(c, g));
    return fewest;
}

kofn_status kf_starve_if_short(kofn_core *c)
{
    const kf_cell *cell = starving_cell(c);

    if (c->state == KF_ROUND_IDLE)
        return KOFN_OK;
    if (c->degraded)
        return settle_all(c);
    if (!cell) {
        if (c->state == KF_ROUND_STARVED)
            c->alarm = KOFN_NEVER;
        c->state = KF_ROUND_RUNNING;
        return KOFN_OK;
    }
    if (call_reserves(c))
        return kf_deal_more(c);
    /* Once every seat there can be has answered, nobody can add to it. */
    if (cell->count < c->plan->layout.max_seats &&
        (somebody_comes(c) || c->opt.below == KOFN_BELOW_PAUSE))
        return pause(c);
    if (c->opt.below == KOFN_BELOW_DEGRADE)
        return degrade(c);
    if (cell->count >= c->plan->layout.enough) {
        kf_fail(KOFN_UNSTABLE,
                "predicted relative error %.1e exceeds the tolerance %.1e with "
                "all %zu results that can be had; use more workers, another "
                "basis or a larger tolerance", c->refused, c->opt.tolerance,
                cell->count);
        return kf_deliver(c, KOFN_UNSTABLE);
    }
    kf_fail(KOFN_TOOFEW, "%zu workers are live%s and %zu are needed; "
            "start more workers", fewest_live(c),
            c->plan->layout.groups > 1 ? " in the smallest group" : "",
            c->plan->layout.enough);
    return kf_deliver(c, KOFN_TOOFEW);
}
