/* guard.c -- results that are wrong without saying so.
 *
 * Any `enough` results give an answer; one more and they can be compared.
 * The core decides how many more are waited for and what a verdict means; the
 * comparing itself is arithmetic on matrices and done by the body.
 *
 * With s results beyond those that decode, any codeword that agrees with all
 * but e of n results is the true one as long as at most n - e - enough lies
 * are among those it agrees with.  So e = n - enough - s may be located where s
 * lies have to be survived, and one result more is asked for when that is not
 * enough (docs/errors.md).
 *
 * Who lies is a principal: a key or a host may have many workers, and what they
 * say may be one lie.  So s is never less than what one principal can say.
 *
 * Owns nothing: what is counted is of the round.  It compares nothing itself;
 * a check is an action, and its verdict comes back as an event.
 */
#include "state.h"

#include <assert.h>

/* ---- who says nothing ---------------------------------------------------- */

/* Counts a result that is zero from strip `lo` on, whatever was asked: it
 * agrees with everybody. */
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

/* ---- how many more ------------------------------------------------------- */

/* Where not every few of the seats decode, some are copies of others, and what is
 * wrong in all copies of a row conspires, by whatever accident.  So may what is
 * wrong alike where operands are smaller than half of the parts that they are cut
 * into (math/errors.md 6). */
static bool has_copies(const kf_product *p, size_t group)
{
    const kofn_layout *L = kf_layout(p);

    return L->enough == 1 || kf_product_surely(p) == 1 ||
           kf_product_surely(p) > kf_product_enough(p) ||
           kf_code_is_sparse_part(p->use->plan, group);
}

static bool may_conspire(const kf_product *p, size_t group)
{
    return p->use->errors == KOFN_ERRORS_ADVERSARIAL ||
           (p->use->errors == KOFN_ERRORS_PROBABILISTIC &&
            has_copies(p, group));
}

static kf_voices voices(kofn_core *c, kf_round *r, size_t group,
                        const uint32_t *tasks, size_t n)
{
    return r->p.use->errors == KOFN_ERRORS_NONE
               ? (kf_voices){0}
               : kf_policy_of(r)->voices(c, r, group, tasks, n);
}

/* Principals that do not conspire hardly ever agree on a wrong codeword: as many
 * results to spare as one of them can give show it.  Liars who conspire are
 * assumed to be as many as can be corrected with everybody's results, those of
 * workers among them who have left since. */
static size_t spare_of(kofn_core *c, kf_round *r, size_t group,
                       const kf_voices *v)
{
    size_t surely = kf_product_surely(&r->p), spare = kf_max(1, v->one);

    r->p.ledger[group].liars = 0;
    if (r->p.use->errors == KOFN_ERRORS_NONE)
        return 0;
    r->p.ledger[group].liars = 1;
    if (!may_conspire(&r->p, group))
        return spare;
    if (v->all > surely)
        spare = kf_max(spare, (v->all - surely) / 2);
    r->p.ledger[group].liars = kf_policy_of(r)->liars(&c->fleet, v, spare);
    return spare;
}

/* The same less those who are known to lie besides, but one. */
static size_t vouch(kofn_core *c, kf_round *r, size_t group, const kf_voices *v)
{
    size_t spare = spare_of(c, r, group, v);

    return spare - kf_min(v->known, spare - kf_min(spare, 1));
}

size_t kf_core_vouch(kofn_core *c, kf_round *r, size_t group,
                     const uint32_t *tasks, size_t n)
{
    kf_voices v = voices(c, r, group, tasks, n);

    return vouch(c, r, group, &v);
}

void kf_core_set_known(kofn_core *c, kf_round *r)
{
    for (size_t g = 0; g < r->p.groups; g++)
        r->p.ledger[g].known = voices(c, r, g, NULL, 0).known;
}

void kf_core_set_spare(kofn_core *c, kf_round *r)
{
    for (size_t g = 0; g < r->p.groups; g++) {
        kf_voices v = voices(c, r, g, NULL, 0);

        r->p.ledger[g].spare = spare_of(c, r, g, &v);
        r->p.ledger[g].known = v.known;
    }
}

/* Liars that may be located among these results: all but what one principal can
 * say, or as many as may conspire. */
static size_t most(kofn_core *c, kf_round *r, size_t group,
                   const uint32_t *tasks, size_t n)
{
    const kofn_layout *L = kf_layout(&r->p);
    size_t worth = kf_product_worth(&r->p, tasks, n);
    size_t beyond = worth - kf_min(worth, kf_product_enough(&r->p));
    kf_voices v = voices(c, r, group, tasks, n);
    size_t spare = vouch(c, r, group, &v);

    if (r->p.use->errors == KOFN_ERRORS_DETECT || beyond < spare)
        return 0;
    if (r->p.use->errors == KOFN_ERRORS_PROBABILISTIC)
        spare = kf_max(1, v.one);
    /* single precision leaves too little between rounding and a lie to tell
     * more (docs/errors.md) */
    if (L->problem.dtype == KOFN_F32 && !c->opt.beyond)
        return kf_min(beyond - spare, beyond / 2);
    return beyond - spare;
}

/* Nobody is located who may be honest when so many are not, whatever they do:
 * half of the results that could come beyond those that decode.  That all but
 * one of those are wrong is promised where they do not conspire, not counting those
 * that say nothing.  To detect, one principal that is wrong is enough. */
static kofn_status set_promise(kofn_core *c, kf_round *r, const uint32_t *tasks,
                               kofn_action *a)
{
    size_t group = a->group, surely = kf_product_surely(&r->p), silent;
    kf_voices v = voices(c, r, group, tasks, a->count);
    size_t spare = spare_of(c, r, group, &v);
    size_t all = kf_max(v.all, kf_product_worth(&r->p, tasks, a->count));
    size_t beyond = all - kf_min(all, surely);

    TRY(kf_policy_of(r)->silent(&c->fleet, &r->p, a, tasks, &silent));
    a->liars = a->promised = r->p.use->errors == KOFN_ERRORS_DETECT
                                 ? spare
                                 : kf_max(spare, beyond / 2);
    if (!may_conspire(&r->p, group) && !has_copies(&r->p, group))
        a->promised = kf_max(a->promised, beyond - kf_min(beyond, silent + 1));
    a->liars -= kf_min(a->liars, v.known);
    a->promised -= kf_min(a->promised, v.known);
    return KOFN_OK;
}

KF_WRAPS kofn_status kf_core_ask_check(kofn_core *c, kf_round *r, kf_band b,
                                       const kofn_decoder *d, size_t n)
{
    const uint32_t *tasks = c->pool + c->pooled;
    const kf_ledger *l = &r->p.ledger[b.group];
    const kf_cell *cell = &l->cell[kf_cells_find(l, b.lo)];
    kf_asked asked = {.number = c->next_check,
                      .group = b.group,
                      .lo = b.lo,
                      .hi = b.hi,
                      .count = n,
                      .open = true,
                      .again = cell->disagreed};
    kofn_action ask = {.type = KOFN_DO_CHECK,
                       .product = r->p.number,
                       .task = c->next_check,
                       .group = b.group,
                       .lo = b.lo,
                       .hi = b.hi,
                       .decoder = d,
                       .first = c->pooled,
                       .count = n,
                       .last = cell->last,
                       .most = most(c, r, b.group, tasks, n)};

    assert(b.lo < b.hi && cell->lo == b.lo && !cell->settled);
    TRY(set_promise(c, r, tasks, &ask));
    asked.liars = ask.liars;
    TRY(kf_product_check(&r->p, asked, tasks));
    c->next_check++;
    return kf_act(c, ask);
}

/* ---- whose results do not count ------------------------------------------ */

bool kf_core_leave_out(const kofn_core *c, const kf_round *r, kf_cell *cell,
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
    return cell->count < had;
}
