/* settle.c -- is it enough, is it accurate enough, and what if it never is.
 *
 * A cell is decoded as soon as results of enough seats are there and the
 * error predicted from their coefficients alone is within the tolerance;
 * otherwise one more result is asked for.  An answer that cannot be exact is
 * never delivered as if it were.
 */
#include "state.h"

#include <math.h>
#include <stdio.h>

/* ---- survivor sets ------------------------------------------------------- */

/* The tasks and their seats in ascending order of seat, one behind the other
 * at the end of c->pool.  Sorted by scattering over the seats. */
static kofn_status survivors(kofn_core *c, const uint32_t *have, size_t n,
                             uint32_t **tasks, uint32_t **seats)
{
    size_t top = (kf_local(c->plan, c->seats) + 1) * c->plan->layout.turns;
    size_t found = 0;

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
        c->by_seat[kf_answer(c, &c->task[have[i]])] = have[i];
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
    size_t n = a->count + a->lied;

    return a->hi == b->lo && a->count == b->count && a->lied == b->lied &&
           a->extra == b->extra && !b->settled && !b->checking &&
           (n == 0 || memcmp(a->have, b->have, n * sizeof *a->have) == 0);
}

/* ---- deciding ------------------------------------------------------------ */

static bool complete(const kofn_core *c, size_t group, const kf_cell *cell)
{
    if (cell->settled || cell->checking)
        return false;
    if (c->degraded)
        return cell->pending + cell->slow == 0;
    if (c->plan->layout.everybody && cell->pending)
        return false;
    return cell->count >= kf_wanted(c, group, cell);
}

/* A decoder that is accurate enough, or NULL. */
kofn_status kf_find_decoder(kofn_core *c, const uint32_t *seats, size_t n,
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

/* One result more than the n that there are. */
static void want_more(const kofn_core *c, size_t group, kf_cell *cell,
                      size_t n)
{
    cell->extra = n + 1 - c->plan->layout.enough - kf_spare(c, group);
}

/* These strips are decided: have them decoded from n tasks of the pool. */
static kofn_status finish(kofn_core *c, size_t group, size_t from, size_t to,
                          const kf_decoder *d, uint32_t *tasks, size_t n)
{
    kf_cell *cell = c->ledger[group].cell;

    c->noise = kf_larger(c->noise, d->noise);
    c->predicted = kf_larger(c->predicted, d->predicted);
    c->lost |= !d->whole;
    for (size_t i = from; i < to; i++) {
        cell[i].settled = true;
        c->unsettled -= cell[i].hi - cell[i].lo;
    }
    if (c->plan->layout.adjoint) /* added up when all is there */
        return KOFN_OK;
    TRY(kf_act(c, (kofn_action){.type = KOFN_DO_DECODE,
                                .group = group,
                                .lo = cell[from].lo,
                                .hi = cell[to - 1].hi,
                                .decoder = d,
                                .first = c->pooled,
                                .count = n}));
    for (size_t i = 0; i < n; i++)
        tasks[i] += c->first_task;
    c->pooled += n;
    return KOFN_OK;
}

static kofn_status have_checked(kofn_core *c, size_t group, size_t from,
                                size_t to, const kf_decoder *d,
                                uint32_t *tasks, size_t n)
{
    kf_cell *cell = c->ledger[group].cell;

    for (size_t i = from; i < to; i++)
        cell[i].checking = true;
    TRY(kf_ask_check(c, group, cell[from].lo, cell[to - 1].hi, d, tasks, n));
    for (size_t i = 0; i < n; i++)
        tasks[i] += c->first_task;
    c->pooled += n;
    return KOFN_OK;
}

/* Decide on cells [from, to), which share their history, or want one more. */
static kofn_status settle_run(kofn_core *c, size_t group, size_t from,
                              size_t to)
{
    kf_cell *cell = c->ledger[group].cell;
    size_t n = cell[from].count;
    const kf_decoder *d;
    uint32_t *tasks, *seats;

    TRY(survivors(c, cell[from].have, n, &tasks, &seats));
    TRY(kf_find_decoder(c, seats, n, &d));
    if (d && c->opt.errors == KOFN_ERRORS_NONE)
        return finish(c, group, from, to, d, tasks, n);
    if (d && n >= c->plan->layout.enough +
                      kf_vouch(c, group, cell[from].have, n))
        return have_checked(c, group, from, to, d, tasks, n);
    c->unsure |= d != NULL;
    for (size_t i = from; i < to; i++)
        want_more(c, group, &cell[i], n);
    return KOFN_OK;
}

/* After news of some cells: the round may be over, or short of something. */
static kofn_status go_on(kofn_core *c, size_t group, bool need_more)
{
    if (c->unsettled == 0) {
        if (c->plan->layout.adjoint)
            TRY(kf_adjoint_sum(c));
        return kf_deliver(c, c->lost ? KOFN_PARTIAL : KOFN_OK);
    }
    if (!need_more)
        return KOFN_OK;
    TRY(kf_deal_short(c, group));
    return kf_starve_if_short(c);
}

/* Cells [from, to) have news. */
kofn_status kf_settle(kofn_core *c, size_t group, size_t from, size_t to)
{
    const kf_cell *cell = c->ledger[group].cell;
    bool need_more = false;

    for (size_t i = from; i < to;) {
        size_t end = i + 1;

        if (!complete(c, group, &cell[i])) {
            i++;
            continue;
        }
        while (end < to && same_history(&cell[end - 1], &cell[end]))
            end++;
        TRY(settle_run(c, group, i, end));
        need_more |= !cell[i].settled && !cell[i].checking;
        i = end;
    }
    return go_on(c, group, need_more);
}

/* The verdict on a check is here: the n tasks left as its evidence agree, or,
 * unless `sure`, do not. */
kofn_status kf_settle_checked(kofn_core *c, kf_asked a, size_t n, bool sure)
{
    kf_ledger *l = &c->ledger[a.group];
    const kf_decoder *d = NULL;
    uint32_t *tasks, *seats;
    bool need_more = false;

    TRY(survivors(c, c->evidence + a.first, n, &tasks, &seats));
    if (sure)
        TRY(kf_find_decoder(c, seats, n, &d));
    for (size_t i = kf_cells_find(l, a.lo), end;
         i < l->count && l->cell[i].lo < a.hi; i = end) {
        for (end = i; end < l->count && l->cell[end].lo < a.hi &&
                      l->cell[end].checking;
             end++) {
            l->cell[end].checking = false;
            if (!d)
                want_more(c, a.group, &l->cell[end], n);
        }
        if (d && end > i) {
            TRY(finish(c, a.group, i, end, d, tasks, n));
            TRY(survivors(c, c->evidence + a.first, n, &tasks, &seats));
        }
        need_more |= !d && end > i;
        end += end == i; /* begun afresh meanwhile */
    }
    if (need_more) /* what came meanwhile may be enough */
        TRY(kf_settle(c, a.group, kf_cells_find(l, a.lo),
                      kf_cells_find(l, a.hi - 1) + 1));
    return c->state == KF_ROUND_IDLE ? KOFN_OK : go_on(c, a.group, need_more);
}

/* ---- when there are too few ---------------------------------------------- */

/* A cell that not even everything in hand will complete. */
static const kf_cell *starving_cell(const kofn_core *c)
{
    for (size_t g = 0; g < c->plan->layout.groups; g++)
        for (size_t i = 0; i < c->ledger[g].count; i++) {
            const kf_cell *cell = &c->ledger[g].cell[i];

            if (!cell->settled && !cell->checking &&
                cell->count + cell->pending + cell->slow <
                    kf_wanted(c, g, cell))
                return cell;
        }
    return NULL;
}

kofn_status kf_settle_all(kofn_core *c)
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
    return kf_settle_all(c);
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

static size_t most_spare(const kofn_core *c)
{
    size_t spare = 0;

    for (size_t g = 0; g < c->plan->layout.groups; g++)
        spare = kf_max(spare, kf_spare(c, g));
    return spare;
}

static size_t fewest_live(const kofn_core *c)
{
    size_t fewest = SIZE_MAX;

    for (size_t g = 0; g < c->plan->layout.groups; g++)
        fewest = kf_min(fewest, kf_live_count(c, g));
    return fewest;
}

static void say_too_few(const kofn_core *c, size_t spare)
{
    const kofn_layout *L = &c->plan->layout;
    size_t answers = L->whole ? L->threshold : L->enough + spare;
    size_t needed = kf_ceil_div(answers, L->turns);
    char mute[100] = "";

    if (c->mutes > 1)
        snprintf(mute, sizeof mute, "; worker %u and %u more were given up, for "
                 "they answered nothing", c->mute, c->mutes - 1);
    else if (c->mutes)
        snprintf(mute, sizeof mute, "; worker %u was given up, for it answered "
                 "nothing", c->mute);
    kf_fail(KOFN_TOOFEW, "%zu workers are left%s and the answers of %zu are "
            "needed%s%s; start more workers", fewest_live(c),
            c->plan->layout.groups > 1 ? " for a group of the code" : "",
            needed, spare ? " to find errors" : "", mute);
}

kofn_status kf_starve_if_short(kofn_core *c)
{
    const kf_cell *cell = starving_cell(c);
    size_t spare = most_spare(c);

    if (c->state == KF_ROUND_IDLE)
        return KOFN_OK;
    if (c->degraded)
        return kf_settle_all(c);
    if (!cell) {
        c->state = KF_ROUND_RUNNING;
        kf_late_alarm(c);
        return KOFN_OK;
    }
    if (call_reserves(c))
        return kf_deal_more(c);
    /* Once every seat there can be has answered, nobody can add to it. */
    if ((cell->count + cell->lied) / c->plan->layout.turns <
            c->plan->layout.max_seats &&
        (c->in_state[KF_WORKER_STORING] > 0 || c->opt.below == KOFN_BELOW_PAUSE))
        return pause(c);
    if (c->opt.below == KOFN_BELOW_DEGRADE)
        return degrade(c);
    if (c->disagree)
        return kf_corrupt_beyond(c);
    if (cell->count >= c->plan->layout.enough + spare && c->refused > 0) {
        kf_fail(KOFN_UNSTABLE,
                "predicted relative error %.1e exceeds the tolerance %.1e with "
                "all %zu results that can be had; use more workers, another "
                "basis or a larger tolerance", c->refused, c->opt.tolerance,
                cell->count);
        return kf_deliver(c, KOFN_UNSTABLE);
    }
    if (c->unsure)
        return kf_unsure(c, cell->count);
    if (cell->count >= c->plan->layout.enough + spare) {
        kf_fail(KOFN_TOOFEW, "%zu results do not determine the answer, for "
                "some repeat others; any %zu would; start more workers",
                cell->count, c->plan->layout.threshold);
        return kf_deliver(c, KOFN_TOOFEW);
    }
    say_too_few(c, spare);
    return kf_deliver(c, KOFN_TOOFEW);
}
