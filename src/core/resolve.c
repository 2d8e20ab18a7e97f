/* resolve.c -- decides about a cell that lacks results if no worker can give
 * more.
 *
 * It calls workers that came since the product began, waits for joiners,
 * delivers the plain parts, or ends the product with an error.
 *
 * Owns nothing.  It is the last resort of a round: it may end or pause the
 * round, or ask for less.  It never delivers an inexact result without saying
 * so. */
#include "state.h"

#include <stdio.h>

/* True if all outstanding tasks together cannot complete this cell. */
static bool starves(const kf_product *p, size_t group, const kf_cell *cell)
{
    return !cell->settled && !cell->checking && !cell->last &&
           kf_product_may_have(p, group, cell) <
               kf_product_wanted(p, group, cell);
}

static const kf_cell *starving_cell(const kf_product *p)
{
    for (size_t g = 0; g < p->groups; g++)
        for (size_t i = 0; i < p->ledger[g].count; i++)
            if (starves(p, g, &p->ledger[g].cell[i]))
                return &p->ledger[g].cell[i];
    return NULL;
}

/* Lowers the demand of cells that want more results than can come.  They are
 * decided from the results that are here or outstanding, if these suffice for a
 * check.  Returns false if all such cells were tried. */
static bool make_do(kf_product *p)
{
    bool any = false;

    for (size_t g = 0; g < p->groups; g++)
        for (size_t i = 0; i < p->ledger[g].count; i++) {
            kf_cell *cell = &p->ledger[g].cell[i];
            size_t least = kf_product_least(p, g, cell);
            size_t coming = cell->pending + cell->slow;
            size_t may = kf_product_may_have(p, g, cell);
            /* answers that complete no seat do not count */
            bool none = coming == 0 || may == kf_product_has(p, cell);

            if (!starves(p, g, cell) || cell->spent || may < least)
                continue;
            any = true;
            cell->last = none;
            if (!none)
                cell->extra = may - least;
            if (none || kf_product_by_seats(p))
                kf_product_news(p, g, cell->lo, cell->hi);
        }
    return any;
}

/* Leaves out suspects.  If results disagree and the wrong ones cannot be
 * identified, a worker that was wrong in an earlier round may be wrong again.
 * The results of the others may agree. */
static bool do_without_suspects(const kofn_core *c, kf_round *r)
{
    kf_product *p = &r->p;
    bool any = false;

    for (size_t g = 0; g < p->groups; g++)
        for (size_t i = 0; i < p->ledger[g].count; i++) {
            kf_cell *cell = &p->ledger[g].cell[i];

            if (!starves(p, g, cell) || !kf_core_leave_out(c, r, cell, true))
                continue;
            any = true;
            cell->extra = 0;
            kf_product_owe(p, g, KF_OWED_SHORT);
            kf_product_news(p, g, cell->lo, cell->hi);
        }
    r->resolve |= any;
    return any;
}

/* Asks all remaining workers for everything that is open.  The plain parts of
 * that are delivered; the rest is marked as lost. */
static kofn_status degrade(kofn_core *c, kf_round *r)
{
    r->p.degraded = true;
    r->state = KF_ROUND_RUNNING; /* it may have waited for workers */
    for (size_t g = 0; g < r->p.groups; g++) {
        kf_ledger *l = &r->p.ledger[g];

        for (size_t i = 0; i < l->count; i++)
            l->cell[i].extra = c->fleet.seats;
        TRY(kf_reassign(c, r, g));
    }
    kf_product_all_news(&r->p);
    return KOFN_OK;
}

/* Calls workers that came after the product began.  They take part only if it
 * cannot be finished without them. */
static bool call_reserves(kofn_core *c, const kf_round *r)
{
    kf_fleet *f = &c->fleet;
    bool any = false;

    for (size_t i = 0; i < f->workers; i++)
        if (f->worker[i].state == KOFN_WORKER_LIVE &&
            f->worker[i].from > r->p.number) {
            f->worker[i].from = r->p.number;
            any = true;
        }
    return any;
}

void kf_core_pause(const kofn_core *c, kf_round *r)
{
    if (r->state != KF_ROUND_STARVED)
        r->starved = c->now;
    r->state = KF_ROUND_STARVED;
    r->alarm = KOFN_NEVER;
    if (c->opt.below == KOFN_BELOW_PAUSE && c->opt.patience > 0)
        r->alarm = kf_later(r->starved, c->opt.patience);
}

/* ---- errors -------------------------------------------------------------- */

/* Counts workers: each gives `submessages` answers. */
size_t kf_workers_needed(const kf_product *p)
{
    const kofn_layout *L = kf_layout(p);
    size_t answers = L->whole ? p->ledger[0].bounds.surely : 0;

    for (size_t g = 0; g < p->groups; g++)
        for (size_t i = 0; i < p->ledger[g].count; i++)
            if (!p->ledger[g].cell[i].settled)
                answers = kf_max(
                    answers, kf_product_wanted(p, g, &p->ledger[g].cell[i]));
    return kf_product_by_seats(p) ? answers
                                  : kf_ceil_div(answers, L->submessages);
}

/* Ends the round with KOFN_TOOFEW.  The message has the number of workers left,
 * the number needed, and the evicted ones. */
static kofn_status too_few(kofn_core *c, kf_round *r, size_t spare)
{
    const kofn_layout *L = kf_layout(&r->p);
    size_t fewest = SIZE_MAX;
    char unresponsive[100] = "";

    for (size_t g = 0; g < r->p.groups; g++)
        fewest = kf_min(fewest, kf_core_count_live(c, r, g));
    if (c->mutes > 1)
        snprintf(unresponsive, sizeof unresponsive,
                 "; worker %u and %u more did not answer and were evicted",
                 c->unresponsive, c->mutes - 1);
    else if (c->mutes)
        snprintf(unresponsive, sizeof unresponsive,
                 "; worker %u did not answer and was evicted", c->unresponsive);
    kf_fail(KOFN_TOOFEW,
            "%zu worker%s left%s and the answers of %zu are "
            "needed%s%s; start more workers",
            fewest, fewest == 1 ? " is" : "s are",
            L->groups > 1 ? " for a group of the code" : "",
            kf_workers_needed(&r->p), spare ? " to find errors" : "",
            unresponsive);
    return kf_core_deliver(c, r, KOFN_TOOFEW);
}

kofn_status kf_core_unstable(kofn_core *c, kf_round *r, size_t results)
{
    kf_fail(KOFN_UNSTABLE,
            "predicted relative error %.1e exceeds max_error %.1e with "
            "all %zu available results; use more workers, another "
            "basis or a larger max_error",
            r->p.error.refused, c->opt.max_error, results);
    return kf_core_deliver(c, r, KOFN_UNSTABLE);
}

static kofn_status undetermined(kofn_core *c, kf_round *r, size_t results)
{
    kf_fail(KOFN_TOOFEW,
            "%zu results do not determine the answer, because some repeat "
            "others; any %zu determine it; start more workers",
            results, kf_layout(&r->p)->threshold);
    return kf_core_deliver(c, r, KOFN_TOOFEW);
}

/* Ends the product with the error that fits, because no further worker can help
 * this cell. */
static kofn_status end(kofn_core *c, kf_round *r, const kf_cell *cell)
{
    size_t spare = 0;
    bool enough;

    for (size_t g = 0; g < r->p.groups; g++)
        spare = kf_max(spare, r->p.ledger[g].spare);
    enough = kf_product_has(&r->p, cell) >= kf_product_enough(&r->p) + spare;
    if (r->p.disagree)
        return kf_core_corrupt_beyond(c, r);
    if (r->p.corrupt > 0 && r->p.use->errors == KOFN_ERRORS_KEYED)
        return kf_core_too_few_right(c, r, cell->count);
    if (enough && r->p.error.refused > 0)
        return kf_core_unstable(c, r, cell->count);
    if (r->p.unsure)
        return kf_core_unsure(c, r, cell->count);
    if (enough)
        return undetermined(c, r, cell->count);
    return too_few(c, r, spare);
}

kofn_status kf_resolve(kofn_core *c, kf_round *r)
{
    const kf_cell *cell = starving_cell(&r->p);

    r->resolve = false;
    if (r->p.degraded) {
        kf_product_all_news(&r->p);
        return KOFN_OK;
    }
    if (cell && r->p.use->errors != KOFN_ERRORS_NONE && make_do(&r->p))
        cell = starving_cell(&r->p);
    if (!cell) {
        r->state = KF_ROUND_RUNNING;
        kf_times_alarm(r);
        return KOFN_OK;
    }
    if (kf_adjoint_with_late(r))
        return KOFN_OK;
    if (call_reserves(c, r)) {
        kf_round_more(c, r);
        return KOFN_OK;
    }
    if (do_without_suspects(c, r))
        return KOFN_OK;
    if (r->p.use->alone)
        return end(c, r, cell);
    if (!kf_answers_all(r->p.use->plan, cell->count + cell->corrupt) &&
        (c->fleet.in_state[KOFN_WORKER_STORING] > 0 ||
         c->opt.below == KOFN_BELOW_PAUSE)) {
        kf_core_pause(c, r);
        return KOFN_OK;
    }
    if (c->opt.below == KOFN_BELOW_DEGRADE)
        return degrade(c, r);
    return end(c, r, cell);
}
