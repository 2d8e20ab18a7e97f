/* rounds.c -- the policy of rounds: the worker on a seat stores a block, and
 * answers the rows of its seat when a product begins.
 *
 * After each event the marks that it left are worked off: take back, settle,
 * deal, resolve, until no mark is left.
 *
 * Owns nothing.  Only this file calls the settling, dealing and resolving of
 * rounds, so that these do not call each other. */
#include "state.h"

#include "code/operation.h"

/* ---- life ---------------------------------------------------------------- */

static kofn_status limits(const kofn_plan *p, const kofn_core_options *o)
{
    const kofn_layout *L = &p->layout;
    size_t each = p->workers / L->groups, enough = kf_code_enough(p, true);

    if (o->below == KOFN_BELOW_DEGRADE &&
        (kf_code_adds_up(p) || !p->mixes_parts || p->left))
        return kf_fail(
            KOFN_UNSUITED,
            "below=degrade cannot serve scheme %s: none of its blocks "
            "is a plain part of the answer",
            p->scheme->name);
    if (o->errors == KOFN_ERRORS_NONE)
        return KOFN_OK;
    if (!p->op->checked)
        return kf_fail(
            KOFN_UNSUITED,
            "errors cannot be distinguished from rounding in %s; use "
            "errors=none",
            p->op->name);
    if (L->everybody || L->remembers)
        return kf_fail(
            KOFN_UNSUITED,
            "scheme %s uses every answer and has no spare one to find "
            "errors with; use gc or cgc",
            p->scheme->name);
    if (o->below == KOFN_BELOW_DEGRADE)
        return kf_fail(
            KOFN_UNSUITED,
            "below=degrade delivers unchecked blocks; to find errors "
            "use below=refuse or below=pause");
    if (kf_code_adds_up(p))
        return kf_fail(
            KOFN_UNSUITED,
            "sums over a cut (cut=columns, left products) need "
            "every answer and leave none to find errors with; use "
            "another scheme (for regression pcr, gc, cgc or agc), or "
            "errors=none");
    if (each > enough || o->errors == KOFN_ERRORS_KEYED)
        return KOFN_OK;
    if (each == 1)
        return kf_fail(KOFN_INVAL,
                       "one worker%s cannot be compared with another; use at "
                       "least %zu workers",
                       L->groups > 1 ? " a group" : "", 2 * L->groups);
    return kf_fail(KOFN_INVAL,
                   "%zu workers%s and a threshold of %zu leave no "
                   "redundancy to find errors with; use at least %zu workers "
                   "or a threshold of at most %zu",
                   each, L->groups > 1 ? " a group" : "", enough,
                   (enough + 1) * L->groups, (each - 1) * L->groups);
}

static kofn_status open(kofn_core *c)
{
    const kofn_layout *L = &c->use[0].plan->layout;

    return kf_fleet_open(&c->fleet, L->groups, L->max_seats,
                         c->opt.workers_per_principal);
}

static const char *wrong(const kofn_core *c)
{
    for (size_t i = 0; i < c->rounds; i++) {
        const kf_round *r = c->round[i];

        if (r->state == KF_ROUND_RUNNING && r->busy == 0 && !r->p.checked.count)
            return "a round has nothing to wait for";
    }
    return NULL;
}

/* Counts the workers of all groups: each group needs its own. */
static size_t needed(const kf_product *p)
{
    return kf_workers_needed(p) * p->groups;
}

/* ---- workers ------------------------------------------------------------- */

static kofn_status store(kofn_core *c, uint32_t worker)
{
    kf_fleet_set(&c->fleet, worker, KOFN_WORKER_STORING);
    return kf_act(c, (kofn_action){.type = KOFN_DO_STORE,
                                   .worker = worker,
                                   .seat = c->fleet.worker[worker].seat});
}

/* Makes the rows of the seat before the seat is taken, so that a failure
 * changes nothing. */
static kofn_status sit(kofn_core *c, uint32_t worker, size_t seat)
{
    const kf_seat *rows;

    for (size_t u = 0; u + KOFN_USES <= c->uses; u += KOFN_USES)
        TRY(kf_code_seat(c->use[u].code, seat / c->fleet.groups, &rows));
    TRY(kf_fleet_assign_seat(&c->fleet, worker, seat));
    return store(c, worker);
}

/* Keeps the worker on its seat, and has it store another block. */
static kofn_status void_block(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    (void)r;
    if (kf_fleet_state(&c->fleet, ev->worker) != KOFN_WORKER_LIVE)
        return kf_core_drop(c);
    TRY(kf_core_relieve(c, ev->worker, true));
    return store(c, ev->worker);
}

static bool misses(const kofn_core *c, const kf_round *r, uint32_t worker)
{
    return kf_fleet_works(&c->fleet, worker) &&
           c->fleet.worker[worker].from <= r->p.number;
}

/* Keeps or drops outstanding work and results as in_flight of the options
 * says. */
static kofn_status back(kofn_core *c, kf_round *r)
{
    kf_core_set_spare(c, r);
    if (!r->p.degraded && c->opt.in_flight == KOFN_IN_FLIGHT_ABORT) {
        TRY(kf_round_drop_all(c, r));
        return kf_round_restart(c, r);
    }
    if (!r->p.degraded && c->opt.in_flight == KOFN_IN_FLIGHT_KEEP) {
        TRY(kf_round_drop_all(c, r));
        kf_product_forget_open(&r->p);
        kf_round_owe(r, KF_OWED_AFRESH);
        return KOFN_OK;
    }
    /* degraded: the remaining workers were asked for everything */
    kf_round_more(c, r);
    return KOFN_OK;
}

/* ---- products ------------------------------------------------------------ */

static bool can_begin(const kofn_core *c, const kofn_event *ev)
{
    const kf_use *use = ev->use < c->uses ? &c->use[ev->use] : NULL;

    return use && use->plan && ev->product > kf_newest(c)->p.number &&
           kf_core_open_rounds(c) < c->opt.open &&
           ev->lo < (ev->hi ? ev->hi : use->plan->span) &&
           ev->hi <= use->plan->span;
}

static kofn_status begin(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    const kf_use *use = &c->use[ev->use];

    if (!can_begin(c, ev))
        return kf_core_drop(c);
    kf_cache_trim(use->cache); /* no decoder is used any more */
    TRY(kf_core_quarantine(c));
    kf_late_round(c, kf_newest(c));
    kf_core_forget_over(c);
    TRY(kf_core_add_round(c));
    r = kf_newest(c);
    r->state = KF_ROUND_RUNNING;
    kf_product_begin(&r->p, ev->product, use, ev->lo,
                     ev->hi ? ev->hi : use->plan->span, ev->alike);
    r->p.all = ev->all;
    r->p.late_too = ev->late_too;
    return kf_round_restart(c, r);
}

static kofn_status cancel(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    (void)ev;
    return r && kf_is_open(r) ? kf_core_deliver(c, r, KOFN_AGAIN)
                              : kf_core_drop(c);
}

/* ---- answers ------------------------------------------------------------- */

static kofn_status result(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    const kf_task *t;
    size_t index;

    if (!kf_core_find_task(r, ev, &index))
        return kf_core_drop(c);
    t = &r->p.task[index];
    if (!kf_in_hand(t) || !kf_is_open(r))
        return KOFN_OK; /* it was cancelled */
    kf_round_end(c, r, index, KF_TASK_DONE);
    kf_fleet_measure(&c->fleet, t->worker, t->hi - t->lo, c->now, ev->took);
    if (r->load[t->worker].out == 0)
        kf_times_ready(c, r, t->worker);
    TRY(kf_product_came(&r->p, index));
    r->resolve |= r->p.ledger[t->group].owed != KF_OWED_NOTHING;
    return KOFN_OK;
}

static kofn_status failed(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    if (kf_round_fail(c, r, ev))
        kf_round_more(c, r);
    return KOFN_OK;
}

/* ---- the step ------------------------------------------------------------ */

static kofn_status go_on_with(kofn_core *c, kf_round *r)
{
    while (kf_is_open(r) && (kf_product_marked(&r->p) || r->back ||
                             r->resolve || r->p.unsettled == 0)) {
        size_t lo, hi;

        if (r->back) {
            r->back = false;
            TRY(kf_policy_of(r)->back(c, r));
        }
        assert(!r->back);
        TRY(kf_settle(c, r));
        if (r->p.unsettled == 0)
            return kf_core_deliver(c, r, r->p.lost ? KOFN_PARTIAL : KOFN_OK);
        lo = r->p.mark_lo;
        hi = r->p.mark_hi;
        assert(lo <= hi && hi <= r->p.groups);
        r->p.mark_lo = r->p.mark_hi = 0;
        TRY(kf_deal(c, r, lo, hi));
        if (kf_is_open(r) && r->resolve)
            TRY(kf_resolve(c, r));
    }
    return KOFN_OK;
}

static kofn_status go_on(kofn_core *c)
{
    for (size_t i = 0; i < c->rounds; i++)
        TRY(go_on_with(c, c->round[i]));
    return KOFN_OK;
}

/* ---- the alarm ----------------------------------------------------------- */

static kofn_status alarm_fired(kofn_core *c, kf_round *r)
{
    if (c->now < r->alarm || !kf_is_open(r))
        return KOFN_OK;
    r->alarm = KOFN_NEVER;
    if (r->state == KF_ROUND_STARVED) {
        kf_fail(KOFN_LATE,
                "patience ran out after %.3g s with too few workers; "
                "start more workers",
                (double)(c->now - r->starved) * 1e-9);
        return kf_core_deliver(c, r, KOFN_LATE);
    }
    if (c->now >= r->late_at)
        kf_late_hedge(c, r);
    TRY(go_on_with(c, r));
    /* workers that are asked only now are not unresponsive */
    if (r->state == KF_ROUND_RUNNING && c->now >= r->lease_at)
        TRY(kf_late_evict(c, r, kf_core_lease(c, r->half, r->pace),
                          &r->lease_at));
    kf_times_alarm(r);
    return KOFN_OK;
}

kofn_status kf_rounds_alarm_fired(kofn_core *c, kf_round *r,
                                  const kofn_event *ev)
{
    (void)r;
    (void)ev;
    for (size_t i = 0; i < c->rounds; i++)
        TRY(alarm_fired(c, c->round[i]));
    return KOFN_OK;
}

/* ---- comparing results --------------------------------------------------- */

/* Counts one more seat of this worker's principal.  Returns 1 if the worker has
 * no principal, else 0. */
static size_t add_share(kf_fleet *f, uint32_t worker)
{
    uint32_t principal = f->worker[worker].principal;

    assert(worker < f->workers && (!principal || principal < f->principals));
    if (principal)
        f->principal[principal].seats++;
    return principal == 0;
}

/* Counts the seats of workers that may answer in this group, and of workers
 * that have answered but can no longer work. */
static kf_voices voices(kofn_core *c, kf_round *r, size_t group,
                        const uint32_t *tasks, size_t n)
{
    kf_fleet *f = &c->fleet;
    kf_voices v = {0};

    for (size_t p = 0; p < f->principals; p++)
        f->principal[p].seats = 0;
    for (size_t s = group; s < f->seats; s += f->groups)
        if (kf_core_seat_works(c, r, s)) {
            v.alone += add_share(f, f->seat[s]);
            v.known += r->load[f->seat[s]].located;
            v.all++;
        }
    for (size_t i = 0; i < n; i++) {
        uint32_t worker = r->p.task[tasks[i]].worker;

        if (!kf_product_leads(&r->p, tasks[i]))
            continue;
        if (kf_core_can_work(c, r, worker)) {
            v.known -= r->load[worker].located;
        } else {
            v.alone += add_share(f, worker);
            v.all++;
        }
    }
    v.one = v.alone > 0;
    for (size_t p = 0; p < f->principals; p++)
        v.one = kf_max(v.one, f->principal[p].seats);
    return v;
}

/* Returns the largest number of principals that together have at most `seats`
 * seats, whichever principals they are. */
static size_t liars(const kf_fleet *f, const kf_voices *v, size_t seats)
{
    size_t who = 0;

    for (size_t each = v->one; each > 0; each--) {
        size_t n = each == 1 ? v->alone : 0, fit = seats / each;

        for (size_t p = 0; p < f->principals; p++)
            n += f->principal[p].seats == each;
        who += kf_min(n, fit);
        if (fit < n)
            break;
        seats -= n * each;
    }
    return who;
}

/* Counts among all seats of the group. */
static kofn_status silent(const kf_fleet *f, const kf_product *p,
                          const kofn_action *check, const uint32_t *tasks,
                          size_t *silent)
{
    (void)tasks;
    *silent = 0;
    if (kf_code_has_no_zero_result(p->use->plan, check->group, check->lo))
        return KOFN_OK;
    for (size_t s = check->group; s < f->seats; s += f->groups)
        TRY(kf_core_add_zero_result(p, check->group, check->lo,
                                    kf_local(p->use->plan, s), silent));
    return KOFN_OK;
}

static size_t apart(const kf_fleet *f, const kf_product *p, const kf_asked *a,
                    size_t n)
{
    size_t worth = kf_product_worth(p, p->checked.evidence + a->first, n);

    (void)f;
    return kf_bounds_apart(&p->ledger[a->group].bounds, worth, a->liars);
}

/* ---- the policies -------------------------------------------------------- */

/* The functions that adjoint and other rounds share. */
#define ALL_ROUNDS                                                             \
    .limits = limits, .open = open, .sit = sit, .on[KOFN_EV_BEGIN] = begin,    \
    .on[KOFN_EV_CANCEL] = cancel, .on[KOFN_EV_RESULT] = result,                \
    .on[KOFN_EV_VERDICT] = kf_core_apply_verdict,                              \
    .on[KOFN_EV_ALARM] = kf_rounds_alarm_fired,                                \
    .on[KOFN_EV_VOID] = void_block, .go_on = go_on, .wrong = wrong,            \
    .needed = needed, .voices = voices, .liars = liars, .silent = silent,      \
    .apart = apart

const kf_policy kf_rounds = {
    ALL_ROUNDS,
    .on[KOFN_EV_FAILED] = failed,
    .misses = misses,
    .back = back,
    .deal = kf_deal_rows,
    .late = kf_late_ask_others,
    .decode = kf_settle_decode,
};

const kf_policy kf_rounds_adjoint = {
    ALL_ROUNDS,
    .on[KOFN_EV_FAILED] = kf_adjoint_failed,
    .misses = kf_adjoint_misses,
    .back = kf_adjoint_back,
    .deal = kf_adjoint_deal,
    .late = kf_adjoint_late,
    .decode = kf_adjoint_decode,
};
