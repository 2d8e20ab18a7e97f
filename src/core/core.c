/* core.c -- the coordinator: events in, actions out.
 *
 * Owns the coordinator and all its parts, from kofn_core_new_all to
 * kofn_core_free; borrows the plans.  It never waits, reads no clock, draws
 * no random number and sees no matrix.  A step depends on its event and the
 * former events alone. */
#include "state.h"

#include "base/options.h"
#include "code/operation.h"

#define CACHE_BYTES ((size_t)256 << 20)

bool kofn_core_next(kofn_core *c, kofn_action *out)
{
    kofn_action *a = &c->todo.action[c->todo.next];

    if (c->todo.next == c->todo.count)
        return false;
    c->todo.next++;
    if (a->type == KOFN_DO_DECODE || a->type == KOFN_DO_CHECK)
        a->tasks = c->todo.pool + a->first; /* the pool may have moved since */
    memcpy(out, a, kf_min(c->opt.action, sizeof *a));
    return true;
}

kofn_time kf_core_alarm(const kofn_core *c)
{
    const kf_stream *s = &c->stream;
    kofn_time first = s->alarm_at < s->lease_at ? s->alarm_at : s->lease_at;

    if (s->late_at < first)
        first = s->late_at;
    for (size_t i = 0; i < c->rounds; i++)
        if (c->round[i]->alarm < first)
            first = c->round[i]->alarm;
    return first;
}

/* ---- events -------------------------------------------------------------- */

/* Applies one event, which leaves marks but does not act on them.  The policy
 * of the event's product applies it if the product is known.  An event of an
 * unknown type is counted and dropped, like one that does not fit the state. */
static kofn_status apply(kofn_core *c, const kofn_event *ev)
{
    static kofn_status (*const of_worker[KOFN_EV_JUDGED + 1])(
        kofn_core *, const kofn_event *) = {
        [KOFN_EV_JOINED] = kf_core_join,
        [KOFN_EV_MOVED] = kf_core_moved,
        [KOFN_EV_STORED] = kf_core_stored,
        [KOFN_EV_LEAVING] = kf_core_leaving,
        [KOFN_EV_LEFT] = kf_core_left,
        [KOFN_EV_UNRESPONSIVE] = kf_core_left,
        [KOFN_EV_JUDGED] = kf_core_judged,
    };
    kf_round *r = kf_core_find_round(c, ev->product);
    const kf_policy *p = r ? kf_policy_of(r) : c->use[0].policy;

    if ((size_t)ev->type > KOFN_EV_JUDGED)
        return kf_core_drop(c);
    if (of_worker[ev->type])
        return of_worker[ev->type](c, ev);
    return p->on[ev->type] ? p->on[ev->type](c, r, ev) : kf_core_drop(c);
}

kofn_status kofn_core_step(kofn_core *c, const kofn_event *ev)
{
    kofn_event room;

    ev = kf_whole(&room, sizeof room, ev, c->opt.event);
    if (c->todo.next < c->todo.count)
        return kf_fail(KOFN_STATE,
                       "%zu actions of the last step are left; take them first",
                       c->todo.count - c->todo.next);
    c->todo.count = c->todo.next = c->todo.pooled = 0;
    if (ev->now > c->now)
        c->now = ev->now;
    TRY(apply(c, ev));
    TRY(c->use[0].policy->go_on(c));
    assert(!kf_core_assert_state(c));
    return KOFN_OK;
}

/* ---- life ---------------------------------------------------------------- */

static kofn_status make_use(kf_use *u, const kofn_plan *plan,
                            kofn_errors errors)
{
    if (!plan)
        return KOFN_OK;
    u->plan = plan;
    u->policy = plan->op->stream       ? &kf_stream_policy
                : plan->layout.adjoint ? &kf_rounds_adjoint
                                       : &kf_rounds;
    u->errors = errors;
    TRY(kf_code_new(&u->code, plan));
    if (errors != KOFN_ERRORS_NONE)
        kf_code_uneven(u->code);
    return kf_cache_new(&u->cache, u->code, CACHE_BYTES);
}

/* Makes the fleet and the first round, which is over.  So a newest round always
 * exists. */
static kofn_status make_fleet(kofn_core *c)
{
    TRY(c->use[0].policy->open(c));
    TRY(kf_core_add_round(c));
    kf_product_begin(&kf_newest(c)->p, 0, &c->use[0], 0, c->use[0].plan->span,
                     false);
    return KOFN_OK;
}

/* Fails with KOFN_UNSUITED if the plans of several operands differ in workers,
 * seats, groups or type: a seat stores a block of every operand. */
static kofn_status check_operands(const kofn_plan *const *plan, size_t n)
{
    const kofn_layout *L = &plan[0]->layout;

    if (n > 1 && !kf_operation_is_resident(plan[0]->op))
        return kf_fail(KOFN_UNSUITED,
                       "several operands need an operation on resident "
                       "matrices; %s is not one",
                       plan[0]->op->name);
    for (size_t o = 1; o < n; o++) {
        const kofn_layout *M = &plan[o]->layout;

        if (!kf_operation_is_resident(plan[o]->op) ||
            plan[o]->workers != plan[0]->workers || M->groups != L->groups ||
            M->max_seats != L->max_seats ||
            M->problem.dtype != L->problem.dtype)
            return kf_fail(
                KOFN_UNSUITED,
                "operand %zu (%s, %zu workers) and operand 0 (%s, %zu workers) "
                "differ in workers, groups, seats or type; make their plans "
                "alike",
                o, plan[o]->spec, plan[o]->workers, plan[0]->spec,
                plan[0]->workers);
    }
    return KOFN_OK;
}

static kofn_status make_uses(kofn_core *c, const kofn_plan *const *plan,
                             size_t operands)
{
    kf_use *alone;

    TRY_ZERO(c->use, operands * (KOFN_USES + 1));
    c->uses = operands * KOFN_USES;
    for (size_t o = 0; o < operands; o++) {
        kf_use *use = &c->use[KOFN_USES * o];

        TRY(make_use(&use[KOFN_USE_OWN], plan[o], c->opt.errors));
        TRY(use[KOFN_USE_OWN].policy->limits(plan[o], &c->opt));
        TRY(make_use(&use[KOFN_USE_LEFT], plan[o]->left, c->opt.errors));
        if (!kf_code_can_be_read(plan[o]))
            continue;
        TRY(kf_code_reader(&use[KOFN_USE_READ].owned, plan[o]));
        TRY(make_use(&use[KOFN_USE_READ], use[KOFN_USE_READ].owned,
                     c->opt.errors));
    }
    if (!kf_code_can_be_alone(plan[0]))
        return KOFN_OK;
    c->uses++; /* use of a sum, which has one operand */
    alone = &c->use[KOFN_USE_PARTS];
    alone->alone = true;
    TRY(kf_code_alone(&alone->owned, plan[0]));
    return make_use(alone, alone->owned, KOFN_ERRORS_NONE);
}

kofn_status kofn_core_new_all(kofn_core **out, const kofn_plan *const *plan,
                              size_t operands, const kofn_core_options *opt)
{
    kofn_core_options all = KOFN_CORE_OPTIONS_INIT;
    kofn_core *c;
    kofn_status st;

    *out = NULL;
    TRY(kf_given(&all, sizeof all, opt, "KOFN_CORE_OPTIONS_INIT"));
    if (operands == 0 || operands > KOFN_OPERANDS_MOST)
        return kf_fail(KOFN_INVAL, "%zu operands: a job has from 1 to %d",
                       operands, KOFN_OPERANDS_MOST);
    TRY_ZERO(c, 1);
    c->hedge_factor = 1;
    c->stream.alarm_at = c->stream.late_at = c->stream.lease_at = KOFN_NEVER;
    c->opt = all;
    if (c->opt.action == 0)
        c->opt.action = sizeof(kofn_action);
    if (c->opt.open == 0)
        c->opt.open = 1;
    if (c->opt.quarantine == 0)
        c->opt.quarantine =
            (unsigned)kofn_option_at(KF_OPTION_quarantine)->zero;
    if (!(c->opt.max_error > 0))
        c->opt.max_error =
            plan[0]->layout.problem.dtype == KOFN_F64 ? 1e-9 : 1e-4;
    st = check_operands(plan, operands);
    if (!st)
        st = make_uses(c, plan, operands);
    if (!st)
        st = make_fleet(c);
    if (st) {
        kofn_core_free(c);
        return st;
    }
    *out = c;
    return KOFN_OK;
}

kofn_status kf_core_new(kofn_core **out, const kofn_plan *plan,
                        const kofn_core_options *opt)
{
    return kofn_core_new_all(out, &plan, 1, opt);
}

void kofn_core_free(kofn_core *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->rounds; i++)
        kf_round_free(c->round[i]);
    kf_round_free(c->spare);
    kf_free(c->round);
    kf_fleet_close(&c->fleet);
    kf_stream_close(&c->stream);
    for (size_t u = 0; u < c->uses; u++) {
        kf_cache_free(c->use[u].cache);
        kf_code_free(c->use[u].code);
        kofn_plan_free(c->use[u].owned);
    }
    kf_free(c->use);
    kf_free(c->todo.action);
    kf_free(c->todo.pool);
    kf_free(c->scratch.by_row);
    kf_free(c->scratch.live);
    kf_free(c);
}

const kf_use *kf_core_use(const kofn_core *c, uint32_t use)
{
    assert(use < c->uses);
    return &c->use[use];
}

const kofn_core_options *kf_core_options(const kofn_core *c)
{
    return &c->opt;
}

/* ---- queries ------------------------------------------------------------- */

kofn_worker_state kf_core_worker(const kofn_core *c, uint32_t worker)
{
    return kf_fleet_state(&c->fleet, worker);
}

size_t kf_core_seat(const kofn_core *c, uint32_t worker)
{
    return kf_fleet_seated(&c->fleet, worker) ? c->fleet.worker[worker].seat
                                              : SIZE_MAX;
}

bool kf_core_works(const kofn_core *c, uint32_t worker)
{
    return kf_fleet_works(&c->fleet, worker);
}

size_t kf_core_rows(const kofn_core *c, uint32_t product, uint32_t worker)
{
    const kf_round *r = kf_core_find_round(c, product);

    return r && worker < r->workers ? r->load[worker].rows : 0;
}

size_t kf_core_live(const kofn_core *c)
{
    return c->fleet.in_state[KOFN_WORKER_LIVE] +
           c->fleet.in_state[KOFN_WORKER_LEAVING];
}

size_t kf_core_storing(const kofn_core *c)
{
    return c->fleet.in_state[KOFN_WORKER_STORING];
}

size_t kf_core_known(const kofn_core *c)
{
    return c->fleet.workers;
}

/* Returns the round of this product, else the newest. */
static const kf_round *round_of(const kofn_core *c, uint32_t product)
{
    const kf_round *found = kf_core_find_round(c, product);

    return found ? found : kf_newest(c);
}

double kf_core_done(const kofn_core *c, uint32_t product)
{
    const kf_product *p = &round_of(c, product)->p;

    return p->number ? kf_product_done(p) : 0;
}

void kf_core_look(const kofn_core *c, uint32_t product, kf_core_view *v)
{
    const kf_round *r = round_of(c, product);

    *v = (kf_core_view){.round = r->p.number,
                        .running = kf_is_open(r),
                        .needed = r->state == KF_ROUND_STARVED
                                      ? kf_policy_of(r)->needed(&r->p)
                                      : 0,
                        .liars = SIZE_MAX,
                        .awaited = c->fleet.busy,
                        .done = kf_core_done(c, product),
                        .dropped = c->dropped,
                        .live = kf_core_live(c),
                        .storing = kf_core_storing(c),
                        .standby = c->fleet.in_state[KOFN_WORKER_STANDBY],
                        .located = c->fleet.located,
                        .corrupt = r->p.corrupt,
                        .workers = c->fleet.workers};
    for (size_t g = 0; g < r->p.groups; g++)
        v->liars = kf_min(v->liars, r->p.ledger[g].liars);
}
