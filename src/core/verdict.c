/* verdict.c -- acts on the verdict of a check: leaves results out, locates
 * workers, and asks for more results.
 *
 * The product owns the evidence.  A worker that the verdict only doubts is
 * never located.  An excluded worker is not admitted again. */
#include "state.h"

static void name(kofn_core *c, kf_round *r, uint32_t task)
{
    kf_fleet *f = &c->fleet;
    uint32_t worker = r->p.task[task].worker;

    assert(task < r->p.tasks && worker < r->workers);
    r->p.corrupt++;
    if (r->load[worker].located)
        return;
    r->load[worker].located = true;
    f->located[worker]++;
    kf_core_set_known(c, r);
    kf_product_all_news(&r->p); /* its other results do not count either */
}

static void leave_out(kf_product *p, const kf_asked *a, uint32_t task)
{
    kf_ledger *l = &p->ledger[a->group];

    for (size_t i = kf_cells_find(l, a->lo);
         i < l->count && l->cell[i].lo < a->hi; i++) {
        kf_cell_corrupt(&l->cell[i], task);
        kf_product_recount(p, &l->cell[i]);
    }
}

/* Takes wrong results out of the evidence, and locates workers that are
 * certainly wrong.  Sets *n to the number of results left. */
static void take_out(kofn_core *c, kf_round *r, const kf_asked *a,
                     const kofn_event *ev, size_t *n)
{
    uint32_t *task = r->p.checked.evidence + a->first;

    assert(a->first + a->count <= r->p.checked.evidences);
    assert(ev->bad_count <= a->count);
    for (size_t i = 0; i < ev->bad_count; i++)
        if (ev->bad[i] < a->count && task[ev->bad[i]] != UINT32_MAX) {
            leave_out(&r->p, a, task[ev->bad[i]]);
            if (i + ev->doubted < ev->bad_count)
                name(c, r, task[ev->bad[i]]);
            task[ev->bad[i]] = UINT32_MAX;
        }
    *n = 0;
    for (size_t i = 0; i < a->count; i++) {
        if (task[i] == UINT32_MAX)
            continue;
        r->load[r->p.task[task[i]].worker].agrees |= ev->status == KOFN_OK;
        task[(*n)++] = task[i];
    }
}

/* Records that results disagree, and returns the number of results wanted.  To
 * locate a worker takes one result beyond those that decode and those that may
 * be wrong (math/errors.md 2.2).  So all of these are wanted at once, unless a
 * wrong worker is known already. */
static size_t disagree(const kofn_core *c, kf_round *r, const kf_asked *a,
                       size_t n)
{
    kf_ledger *l = &r->p.ledger[a->group];
    bool known = n < a->count;

    assert(n <= a->count);
    r->p.disagree = true;
    for (size_t i = kf_cells_find(l, a->lo);
         i < l->count && l->cell[i].lo < a->hi; i++)
        if (l->cell[i].checking) {
            l->cell[i].disagreed = true;
            known |= kf_core_leave_out(c, r, &l->cell[i], false);
        }
    return known ? 0 : kf_policy_of(r)->apart(&c->fleet, &r->p, a, n);
}

kofn_status kf_core_apply_verdict(kofn_core *c, kf_round *r,
                                  const kofn_event *ev)
{
    bool sure = ev->status == KOFN_OK, corrupt = ev->status == KOFN_CORRUPT;
    size_t n, wanted;
    kf_asked *a = NULL;

    if (r && kf_is_open(r))
        a = kf_core_find(r->p.checked.check, r->p.checked.count, sizeof *a,
                         ev->task);
    if (!a || !a->open || ev->bad_count > a->count)
        return kf_core_drop(c);
    a->open = false;
    if (a->again) /* cells that waited for this verdict, see settle.c */
        kf_product_all_news(&r->p);
    n = a->count;
    if (corrupt && c->opt.errors == KOFN_ERRORS_DETECT)
        return kf_core_corrupt_beyond(c, r);
    if (sure || corrupt)
        take_out(c, r, a, ev, &n);
    r->p.unsure |= !sure && !corrupt;
    wanted =
        corrupt
            ? disagree(c, r, a, n)
            : kf_product_worth(&r->p, r->p.checked.evidence + a->first, n) + 1;
    return kf_settle_checked(c, r, a, n, sure, wanted);
}

kofn_status kf_core_corrupt_beyond(kofn_core *c, kf_round *r)
{
    if (c->opt.errors == KOFN_ERRORS_DETECT)
        kf_fail(KOFN_CORRUPT,
                "results of different workers disagree; run with errors "
                "probabilistic or adversarial to find the wrong ones");
    else
        kf_fail(KOFN_CORRUPT,
                "results disagree, and the results of all workers do not show "
                "which are wrong; use more workers or a threshold below %zu",
                kf_product_enough(&r->p));
    return kf_core_deliver(c, r, KOFN_CORRUPT);
}

kofn_status kf_core_too_few_right(kofn_core *c, kf_round *r, size_t right)
{
    kf_fail(KOFN_CORRUPT,
            "%zu answers are right and %zu are needed; the others are wrong; "
            "start more workers",
            right, kf_product_enough(&r->p));
    return kf_core_deliver(c, r, KOFN_CORRUPT);
}

kofn_status kf_core_unsure(kofn_core *c, kf_round *r, size_t count)
{
    kf_fail(KOFN_TOOFEW,
            "%zu results agree, but are too few to rule out errors above the "
            "tolerance; start more workers or allow a larger max_error",
            count);
    return kf_core_deliver(c, r, KOFN_TOOFEW);
}

/* ---- quarantine ---------------------------------------------------------- */

/* Quarantines every worker if its principal was wrong too often, or the worker
 * itself without a principal.  Its seat is free for others. */
kofn_status kf_core_quarantine(kofn_core *c)
{
    for (uint32_t i = 0; i < c->fleet.workers; i++)
        if ((kf_fleet_seated(&c->fleet, i) ||
             c->fleet.worker[i].state == KOFN_WORKER_STANDBY) &&
            kf_core_banned(c, i))
            TRY(kf_core_release_seat(c, i, KOFN_WORKER_QUARANTINED));
    return KOFN_OK;
}

kofn_status kf_core_judged(kofn_core *c, const kofn_event *ev)
{
    if (kf_fleet_state(&c->fleet, ev->worker) == KOFN_WORKER_UNKNOWN)
        return kf_core_drop(c);
    kf_core_blame_one(c, ev->worker, true);
    return kf_core_quarantine(c);
}
