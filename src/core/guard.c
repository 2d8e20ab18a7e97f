/* guard.c -- the number of results to compare, so that wrong results are found.
 *
 * Any `enough` results give an answer; with one more they can be compared.  The
 * core decides how many more to wait for, and what a verdict means.  The body
 * does the comparison itself, which is arithmetic on matrices.
 *
 * code/bounds.h decides how many results are awaited and which verdicts are
 * believed.  This file counts the principals that have a say.
 *
 * Owns nothing: the counts belong to the round.  A check is an action, and its
 * verdict comes back as an event. */
#include "state.h"

/* ---- results that are always zero ---------------------------------------- */

/* Counts a result that is zero from strip `lo` on whatever the input: it agrees
 * with every other result. */
kofn_status kf_core_add_zero_result(const kf_product *p, size_t group,
                                    size_t lo, size_t row, size_t *silent)
{
    const kf_seat *seat;

    TRY(kf_code_seat(p->use->code, row, &seat));
    *silent += kf_code_is_zero_result(p->use->plan, seat, group, lo);
    return KOFN_OK;
}

kofn_status kf_core_zero_results(const kf_product *p, size_t group, size_t lo,
                                 const uint32_t *tasks, size_t n,
                                 size_t *silent)
{
    *silent = 0;
    if (kf_code_has_no_zero_result(p->use->plan, group, lo))
        return KOFN_OK;
    for (size_t i = 0; i < n; i++)
        TRY(kf_core_add_zero_result(p, group, lo, p->task[tasks[i]].row,
                                    silent));
    return KOFN_OK;
}

/* ---- the number of results ----------------------------------------------- */

static kf_voices voices(kofn_core *c, kf_round *r, size_t group,
                        const uint32_t *tasks, size_t n)
{
    kf_voices v = {0};

    if (r->p.use->errors != KOFN_ERRORS_NONE)
        v = kf_policy_of(r)->voices(c, r, group, tasks, n);
    v.here = kf_product_worth(&r->p, tasks, n);
    return v;
}

/* Counts voices, and updates the number of principals that may lie.  Results of
 * workers that have left since count among those that may conspire. */
static kf_voices hear(kofn_core *c, kf_round *r, size_t group,
                      const uint32_t *tasks, size_t n)
{
    kf_voices v = voices(c, r, group, tasks, n);
    kf_ledger *l = &r->p.ledger[group];

    l->liars = l->bounds.errors != KOFN_ERRORS_NONE;
    if (kf_bounds_allow_collusion(&l->bounds))
        l->liars = kf_policy_of(r)->liars(&c->fleet, &v,
                                          kf_bounds_spare(&l->bounds, &v));
    return v;
}

size_t kf_core_vouch(kofn_core *c, kf_round *r, size_t group,
                     const uint32_t *tasks, size_t n)
{
    kf_voices v = hear(c, r, group, tasks, n);

    return kf_bounds_vouch(&r->p.ledger[group].bounds, &v);
}

void kf_core_set_known(kofn_core *c, kf_round *r)
{
    for (size_t g = 0; g < r->p.groups; g++)
        r->p.ledger[g].known = voices(c, r, g, NULL, 0).known;
}

void kf_core_set_spare(kofn_core *c, kf_round *r)
{
    for (size_t g = 0; g < r->p.groups; g++) {
        kf_voices v = hear(c, r, g, NULL, 0);

        r->p.ledger[g].spare = kf_bounds_spare(&r->p.ledger[g].bounds, &v);
        r->p.ledger[g].known = v.known;
    }
}

static kofn_status set_promise(kofn_core *c, kf_round *r, const uint32_t *tasks,
                               kofn_action *a)
{
    kf_bounds p = r->p.ledger[a->group].bounds;
    kf_voices v = hear(c, r, a->group, tasks, a->count);
    kf_verdicts to;

    TRY(kf_policy_of(r)->silent(&c->fleet, &r->p, a, tasks, &v.silent));
    p.half = kf_layout(&r->p)->problem.dtype == KOFN_F32 && !c->opt.beyond;
    to = kf_bounds_verdicts(&p, &v);
    a->most = to.most;
    a->liars = to.liars;
    a->independent = to.independent;
    return KOFN_OK;
}

KF_WRAPS kofn_status kf_core_ask_check(kofn_core *c, kf_round *r, kf_band b,
                                       const kofn_decoder *d, size_t n)
{
    const uint32_t *tasks = c->todo.pool + c->todo.pooled;
    const kf_ledger *l = &r->p.ledger[b.group];
    const kf_cell *cell = &l->cell[kf_cells_find(l, b.lo)];
    kofn_action ask = {.type = KOFN_DO_CHECK,
                       .product = r->p.number,
                       .task = c->next_check,
                       .group = b.group,
                       .lo = b.lo,
                       .hi = b.hi,
                       .decoder = d,
                       .first = c->todo.pooled,
                       .count = n,
                       .last = cell->last};

    assert(b.lo < b.hi && cell->lo == b.lo && !cell->settled);
    TRY(set_promise(c, r, tasks, &ask));
    TRY(kf_product_check(&r->p, &ask, tasks, cell->disagreed));
    c->next_check++;
    return kf_act(c, ask);
}

/* ---- results that do not count ------------------------------------------- */

bool kf_core_leave_out(const kofn_core *c, kf_round *r, kf_cell *cell,
                       bool before)
{
    size_t had = cell->count;

    for (size_t i = 0; cell->disagreed && i < cell->count;) {
        uint32_t worker = r->p.task[cell->have[i]].worker;

        if (before ? c->fleet.located[worker] > 0 : r->load[worker].located)
            kf_cell_corrupt(cell, cell->have[i]);
        else
            i++;
    }
    if (cell->count < had)
        kf_product_recount(&r->p, cell);
    return cell->count < had;
}
