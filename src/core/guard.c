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
 * In streams nobody has a seat, and everybody answers rows of a product round by
 * round: what one principal can say is what it has said.
 *
 * Owns nothing: what is counted is of the round.  It compares nothing itself;
 * a check is an action, and its verdict comes back as an event.
 */
#include "state.h"

#include <assert.h>

/* ---- principals ---------------------------------------------------------- */

/* Counts one seat more of this worker's principal; returns 1 if the worker
 * answers for itself alone. */
static size_t add_share(kf_fleet *f, uint32_t worker)
{
    uint32_t principal = f->worker[worker].principal;

    assert(worker < f->workers && (!principal || principal < f->principals));
    if (principal)
        f->principal[principal].seats++;
    return principal == 0;
}

/* Counts the seats of every principal: of the workers that may answer in this
 * group, and of those that have answered and may not any more.  Returns the
 * workers that answer for themselves alone. */
static size_t share_all(kofn_core *c, const kf_round *r, size_t group,
                        const uint32_t *tasks, size_t n, size_t *seats)
{
    kf_fleet *f = &c->fleet;
    size_t alone = 0;

    *seats = 0;
    for (size_t p = 0; p < f->principals; p++)
        f->principal[p].seats = 0;
    for (size_t s = group; s < f->seats; s += f->groups)
        if (f->seat[s] != KF_NOBODY && kf_core_can_work(c, r, f->seat[s])) {
            alone += add_share(f, f->seat[s]);
            ++*seats;
        }
    for (size_t i = 0; i < n; i++) {
        uint32_t worker = r->p.task[tasks[i]].worker;

        if (kf_product_leads(&r->p, tasks[i]) &&
            !kf_core_can_work(c, r, worker)) {
            alone += add_share(f, worker);
            ++*seats;
        }
    }
    return alone;
}

static size_t largest_share(const kf_fleet *f, size_t alone)
{
    size_t most = alone > 0;

    for (size_t p = 0; p < f->principals; p++)
        most = kf_max(most, f->principal[p].seats);
    return most;
}

/* The number of principals that, whichever they are, have at most `seats` seats
 * together. */
static size_t principals_within(const kf_fleet *f, size_t alone, size_t seats)
{
    size_t who = 0;

    for (size_t each = largest_share(f, alone); each > 0; each--) {
        size_t n = each == 1 ? alone : 0, fit = seats / each;

        for (size_t p = 0; p < f->principals; p++)
            n += f->principal[p].seats == each;
        who += kf_min(n, fit);
        if (fit < n)
            break;
        seats -= n * each;
    }
    return who;
}

/* ---- principals of a stream ---------------------------------------------- */

/* Results of whoever gave this one. */
static size_t *said(kofn_core *c, kf_round *r, uint32_t task)
{
    uint32_t worker = r->p.task[task].worker;
    uint32_t principal = c->fleet.worker[worker].principal;

    return principal ? &c->fleet.principal[principal].seats
                     : &r->load[worker].said;
}

/* The most that are one principal's of these n. */
static size_t most_said(kofn_core *c, kf_round *r, const uint32_t *tasks,
                        size_t n)
{
    size_t most = 0;

    for (size_t i = 0; i < n; i++)
        *said(c, r, tasks[i]) = 0;
    for (size_t i = 0; i < n; i++)
        most = kf_max(most, ++*said(c, r, tasks[i]));
    return most;
}

/* ---- who says nothing ---------------------------------------------------- */

/* Counts a result that is zero from strip `lo` on, whatever was asked: it
 * agrees with everybody. */
static kofn_status add_zero_result(const kf_product *p, size_t group, size_t lo,
                                   size_t row, size_t *silent)
{
    const kf_seat *seat;

    TRY(kf_code_seat(p->use->code, row, &seat));
    *silent += kf_code_is_zero_result(p->use->plan, seat, group, lo);
    return KOFN_OK;
}

kofn_status kf_core_zero_results(const kf_product *p, size_t group,
                                 const kf_cell *cell, size_t *silent)
{
    *silent = 0;
    if (kf_code_has_no_zero_result(p->use->plan, group, cell->lo))
        return KOFN_OK;
    for (size_t i = 0; i < cell->count; i++)
        TRY(add_zero_result(p, group, cell->lo, p->task[cell->have[i]].row,
                            silent));
    return KOFN_OK;
}

/* Of all seats of the group, or in a stream of the results that are checked. */
static kofn_status zero_result_seats(const kofn_core *c, const kf_product *p,
                                     const kofn_action *check,
                                     const uint32_t *tasks, size_t *silent)
{
    size_t group = check->group, lo = check->lo;

    *silent = 0;
    if (kf_code_has_no_zero_result(p->use->plan, group, lo))
        return KOFN_OK;
    for (size_t i = 0; c->stream.on && i < check->count; i++)
        TRY(add_zero_result(p, group, lo, p->task[tasks[i]].row, silent));
    for (size_t s = group; !c->stream.on && s < c->fleet.seats;
         s += c->fleet.groups)
        TRY(add_zero_result(p, group, lo, kf_local(p->use->plan, s), silent));
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

/* Members of the group who were located in this round and have no part in this:
 * so many lie besides those who may among these.  In a stream they could have
 * said any number of things, and none is counted on. */
size_t kf_core_known_besides(const kofn_core *c, const kf_round *r,
                             size_t group, const uint32_t *tasks, size_t n)
{
    const kf_fleet *f = &c->fleet;
    size_t known = 0;

    if (c->stream.on)
        return 0;
    for (size_t s = group; s < f->seats; s += f->groups)
        known += f->seat[s] != KF_NOBODY && r->load[f->seat[s]].located &&
                 kf_core_can_work(c, r, f->seat[s]);
    for (size_t i = 0; i < n; i++) {
        uint32_t worker = r->p.task[tasks[i]].worker;

        assert(worker < r->workers);
        known -= kf_product_leads(&r->p, tasks[i]) && r->load[worker].located &&
                 kf_core_can_work(c, r, worker);
    }
    return known;
}

/* The most results that one principal can give, or has given; *all: those of
 * the whole group, which a scheme of streams asks everybody for while a product
 * is not late. */
static size_t share_of_one(kofn_core *c, kf_round *r, size_t group,
                           const uint32_t *tasks, size_t n, size_t *all)
{
    size_t live = c->fleet.in_state[KOFN_WORKER_LIVE];

    if (!c->stream.on)
        return largest_share(&c->fleet, share_all(c, r, group, tasks, n, all));
    *all = kf_max(n, live * (kf_layout(&r->p)->delay + 1));
    return most_said(c, r, tasks, n);
}

/* The number of principals that may lie when `spare` results may be wrong. */
static size_t liars_within(kofn_core *c, kf_round *r, size_t group,
                           const uint32_t *tasks, size_t n, size_t spare)
{
    size_t seats;

    if (c->stream.on)
        return n ? spare / most_said(c, r, tasks, n) : 1;
    return principals_within(&c->fleet,
                             share_all(c, r, group, tasks, n, &seats), spare);
}

/* Principals that do not conspire hardly ever agree on a wrong codeword: as many
 * results to spare as one of them can give show it.  Liars who conspire are
 * assumed to be as many as can be corrected with everybody's results, those of
 * the n tasks among them whose workers have left since. */
static size_t spare_of(kofn_core *c, kf_round *r, size_t group,
                       const uint32_t *tasks, size_t n)
{
    size_t surely = kf_product_surely(&r->p), seats, spare;

    r->p.ledger[group].liars = 0;
    if (r->p.use->errors == KOFN_ERRORS_NONE)
        return 0;
    spare = kf_max(1, share_of_one(c, r, group, tasks, n, &seats));
    r->p.ledger[group].liars = 1;
    if (!may_conspire(&r->p, group))
        return spare;
    if (seats > surely)
        spare = kf_max(spare, (seats - surely) / 2);
    r->p.ledger[group].liars = liars_within(c, r, group, tasks, n, spare);
    return spare;
}

size_t kf_core_vouch(kofn_core *c, kf_round *r, size_t group,
                     const uint32_t *tasks, size_t n)
{
    size_t spare = spare_of(c, r, group, tasks, n);
    size_t known = kf_core_known_besides(c, r, group, tasks, n);

    return spare - kf_min(known, spare - kf_min(spare, 1));
}

void kf_core_set_spare(kofn_core *c, kf_round *r)
{
    for (size_t g = 0; g < r->p.groups; g++) {
        r->p.ledger[g].spare = spare_of(c, r, g, NULL, 0);
        r->p.ledger[g].known = kf_core_known_besides(c, r, g, NULL, 0);
    }
}

/* Liars that may be located among these results: all but what one principal can
 * say, or as many as may conspire. */
static size_t most(kofn_core *c, kf_round *r, size_t group,
                   const uint32_t *tasks, size_t n)
{
    const kofn_layout *L = kf_layout(&r->p);
    size_t worth = kf_product_worth(&r->p, tasks, n), seats;
    size_t beyond = worth - kf_min(worth, kf_product_enough(&r->p));
    size_t spare = kf_core_vouch(c, r, group, tasks, n);

    if (r->p.use->errors == KOFN_ERRORS_DETECT || beyond < spare)
        return 0;
    if (r->p.use->errors == KOFN_ERRORS_PROBABILISTIC)
        spare = kf_max(1, share_of_one(c, r, group, tasks, n, &seats));
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
    size_t group = a->group, n = a->count;
    size_t spare = spare_of(c, r, group, tasks, n), seats, beyond;
    size_t known = kf_core_known_besides(c, r, group, tasks, n), silent;

    TRY(zero_result_seats(c, &r->p, a, tasks, &silent));
    share_of_one(c, r, group, tasks, n, &seats);
    seats = kf_max(seats, kf_product_worth(&r->p, tasks, n));
    beyond = seats - kf_min(seats, kf_product_surely(&r->p));
    a->liars = a->promised = r->p.use->errors == KOFN_ERRORS_DETECT
                                 ? spare
                                 : kf_max(spare, beyond / 2);
    if (!may_conspire(&r->p, group) && !has_copies(&r->p, group))
        a->promised = kf_max(a->promised, beyond - kf_min(beyond, silent + 1));
    a->liars -= kf_min(a->liars, known);
    a->promised -= kf_min(a->promised, known);
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

bool kf_core_without_located(const kf_round *r, kf_cell *cell)
{
    size_t had = cell->count;

    for (size_t i = 0; cell->disagreed && i < cell->count;)
        if (r->load[r->p.task[cell->have[i]].worker].located)
            kf_cell_corrupt(cell, cell->have[i]);
        else
            i++;
    return cell->count < had;
}

bool kf_core_without_suspects(const kofn_core *c, const kf_round *r,
                              kf_cell *cell)
{
    size_t had = cell->count;

    for (size_t i = 0; cell->disagreed && i < cell->count;)
        if (c->fleet.located[r->p.task[cell->have[i]].worker])
            kf_cell_corrupt(cell, cell->have[i]);
        else
            i++;
    return cell->count < had;
}
