/* core.c -- the round coordinator: events in, actions out. */
#include "state.h"

#include "code/operation.h"

#define CACHE_BYTES ((size_t)256 << 20)

kofn_status kf_act(kofn_core *c, kofn_action a)
{
    TRY(kf_grow(&c->action, &c->action_cap, c->actions, sizeof *c->action));
    c->action[c->actions++] = a;
    return KOFN_OK;
}

bool kofn_core_next(kofn_core *c, kofn_action *out)
{
    if (c->next_action == c->actions)
        return false;
    *out = c->action[c->next_action++];
    if (out->type == KOFN_DO_DECODE || out->type == KOFN_DO_CHECK)
        out->tasks = c->pool + out->first; /* the pool may have moved since */
    return true;
}

kofn_time kofn_core_alarm(const kofn_core *c)
{
    return c->alarm;
}

kofn_status kf_deliver(kofn_core *c, kofn_status st)
{
    kf_late_learn(c);
    TRY(kf_drop_all(c));
    c->mutes = 0;
    c->state = KF_ROUND_IDLE;
    c->alarm = KOFN_NEVER;
    return kf_act(c, (kofn_action){.type = KOFN_DO_DELIVER,
                                   .status = st,
                                   .noise = c->noise,
                                   .predicted = c->predicted});
}

/* ---- events -------------------------------------------------------------- */

static kofn_status begin(kofn_core *c, const kofn_event *ev)
{
    const kf_use *use = &c->use[ev->left];
    size_t hi = ev->hi || !use->plan ? ev->hi : use->plan->span;

    if (c->state != KF_ROUND_IDLE || !use->plan || ev->lo >= hi ||
        hi > use->plan->span) {
        c->dropped++;
        return KOFN_OK;
    }
    c->plan = use->plan;
    c->lo = ev->lo;
    c->hi = hi;
    c->code = use->code;
    c->cache = use->cache;
    kf_cache_trim(c->cache);
    TRY(kf_quarantine(c));
    kf_late_round(c);
    c->round++;
    c->state = KF_ROUND_RUNNING;
    c->alarm = KOFN_NEVER;
    c->first_task += (uint32_t)c->tasks;
    c->tasks = 0;
    c->first_check += (uint32_t)c->checks;
    c->checks = c->evidences = c->corrupt = 0;
    c->noise = c->predicted = c->refused = 0;
    c->degraded = c->lost = c->disagree = c->unsure = false;
    for (size_t i = 0; i < c->workers; i++)
        c->rows[i] = 0;
    return kf_deal_round(c);
}

/* The task an event speaks of, if it is one that this worker was given.
 * Numbers of tasks begin again at 0 when there are no more. */
KF_WRAPS
static bool find_task(const kofn_core *c, const kofn_event *ev, size_t *index)
{
    uint32_t i = ev->task - c->first_task;

    *index = i;
    return i < c->tasks && c->task[i].worker == ev->worker;
}

/* The worker's own time where it tells: on a machine that is shared, time on
 * the wall would measure the share it was given and not its speed. */
static void measure_speed(kf_worker *w, size_t strips, kofn_time now,
                          kofn_time took)
{
    double seconds = (double)(took > 0 ? took : now - w->last) * 1e-9, speed;

    w->last = now;
    if (!(seconds > 0))
        return;
    speed = (double)strips / seconds;
    w->speed = w->speed > 0 ? 0.7 * w->speed + 0.3 * speed : speed;
}

static kofn_status result(kofn_core *c, const kofn_event *ev)
{
    kf_ledger *l;
    kf_task *t;
    size_t index, group, from;

    if (!find_task(c, ev, &index) || c->task[index].state == KF_TASK_DONE) {
        c->dropped++;
        return KOFN_OK;
    }
    t = &c->task[index];
    if (!kf_in_hand(t) || c->state == KF_ROUND_IDLE)
        return KOFN_OK; /* it was cancelled */
    kf_end_task(c, index, KF_TASK_DONE);
    measure_speed(&c->worker[t->worker], t->hi - t->lo, c->now, ev->took);
    if (c->worker[t->worker].out == 0)
        kf_late_ready(c, t->worker);
    group = kf_group(c->plan, t->seat);
    l = &c->ledger[group];
    from = kf_cells_find(l, t->lo);
    for (size_t i = from; i < l->count; i = kf_cells_next(l, i, t->lo, t->hi))
        if (!l->cell[i].settled)
            TRY(kf_cell_add(&l->cell[i], (uint32_t)index));
    if (t->hi > c->plan->span)
        return kf_settle(c, group, 0, l->count);
    return kf_settle(c, group, from, kf_cells_find(l, t->hi - 1) + 1);
}

static kofn_status failed(kofn_core *c, const kofn_event *ev)
{
    size_t index;

    if (!find_task(c, ev, &index) || !kf_in_hand(&c->task[index])) {
        c->dropped++;
        return KOFN_OK;
    }
    c->worker[ev->worker].failed = c->round;
    kf_end_task(c, index, KF_TASK_DROPPED);
    return c->plan->layout.adjoint ? kf_adjoint_restart(c) : kf_deal_more(c);
}

static kofn_status dispatch(kofn_core *c, const kofn_event *ev)
{
    switch (ev->type) {
    case KOFN_EV_JOINED:
        return kf_join(c, ev->worker, ev->principal);
    case KOFN_EV_MOVED:
        return kf_moved(c, ev->worker, ev->principal);
    case KOFN_EV_STORED:
        return kf_stored(c, ev->worker);
    case KOFN_EV_LEAVING:
        return kf_leaving(c, ev->worker);
    case KOFN_EV_LEFT:
        return kf_left(c, ev->worker, KF_WORKER_GONE);
    case KOFN_EV_MUTE:
        return kf_left(c, ev->worker, KF_WORKER_MUTE);
    case KOFN_EV_BEGIN:
        return begin(c, ev);
    case KOFN_EV_RESULT:
        return result(c, ev);
    case KOFN_EV_FAILED:
        return failed(c, ev);
    case KOFN_EV_ALARM:
        return kf_alarm_rang(c);
    case KOFN_EV_VERDICT:
        return kf_hear(c, ev);
    }
    c->dropped++;
    return KOFN_OK;
}

kofn_status kofn_core_step(kofn_core *c, const kofn_event *ev)
{
    if (c->next_action < c->actions)
        return kf_fail(KOFN_STATE, "%zu actions of the last step were not "
                       "taken", c->actions - c->next_action);
    c->actions = c->next_action = c->pooled = 0;
    if (ev->now > c->now)
        c->now = ev->now;
    return dispatch(c, ev);
}

/* ---- life ---------------------------------------------------------------- */

/* What cannot be had of this plan. */
static kofn_status check_options(const kofn_plan *p,
                                 const kofn_core_options *o)
{
    const kofn_layout *L = &p->layout;
    size_t each = p->workers / L->groups;

    if (o->below == KOFN_BELOW_DEGRADE &&
        (L->adjoint || !p->mixes_parts || p->left))
        return kf_fail(KOFN_UNSUITED, "no block of scheme %s is a part of the "
                       "answer as it stands; below=degrade cannot serve it",
                       p->scheme->name);
    if (o->errors == KOFN_ERRORS_NONE)
        return KOFN_OK;
    if (L->whole || !p->op->checked)
        return kf_fail(KOFN_UNSUITED, "errors cannot be told from rounding in "
                       "%s", p->op->name);
    if (o->below == KOFN_BELOW_DEGRADE)
        return kf_fail(KOFN_UNSUITED, "below=degrade delivers blocks that "
                       "nothing checks; with errors use refuse or pause");
    if (L->adjoint || (p->left && p->left->layout.adjoint))
        return kf_fail(KOFN_UNSUITED, "an adjoint code waits for every answer "
                       "and has none to spare; errors cannot be found");
    if (each > L->enough)
        return KOFN_OK;
    if (each == 1)
        return kf_fail(KOFN_INVAL, "one worker%s has nobody to be compared "
                       "with; use at least %zu workers",
                       L->groups > 1 ? " a group" : "", 2 * L->groups);
    return kf_fail(KOFN_INVAL, "%zu workers%s and a threshold of %zu leave no "
                   "redundancy to find errors with; use at least %zu workers "
                   "or a threshold of at most %zu", each,
                   L->groups > 1 ? " a group" : "", L->enough,
                   (L->enough + 1) * L->groups, (each - 1) * L->groups);
}

static kofn_status make_use(kf_use *u, const kofn_plan *plan,
                            kofn_errors errors)
{
    u->plan = plan;
    if (!plan)
        return KOFN_OK;
    TRY(kf_code_new(&u->code, plan));
    if (errors != KOFN_ERRORS_NONE)
        kf_code_uneven(u->code);
    return kf_cache_new(&u->cache, u->code, CACHE_BYTES);
}

kofn_status kofn_core_new(kofn_core **out, const kofn_plan *plan,
                          const kofn_core_options *opt)
{
    kofn_core *c = kf_zero(1, sizeof *c);
    kofn_status st;

    *out = NULL;
    if (!c)
        return KOFN_NOMEM;
    c->alarm = KOFN_NEVER;
    c->haste = 1;
    if (opt)
        c->opt = *opt;
    if (c->opt.pieces == 0)
        c->opt.pieces = 4;
    if (c->opt.quarantine == 0)
        c->opt.quarantine = 3;
    if (!(c->opt.tolerance > 0))
        c->opt.tolerance = plan->layout.problem.dtype == KOFN_F64 ? 1e-9 : 1e-4;
    st = check_options(plan, &c->opt);
    if (!st)
        st = make_use(&c->use[0], plan, c->opt.errors);
    if (!st)
        st = make_use(&c->use[1], plan->left, c->opt.errors);
    c->plan = plan;
    c->code = c->use[0].code;
    c->cache = c->use[0].cache;
    if (!st && !(c->ledger = kf_zero(plan->layout.groups, sizeof *c->ledger)))
        st = KOFN_NOMEM;
    if (st) {
        kofn_core_free(c);
        return st;
    }
    *out = c;
    return KOFN_OK;
}

void kofn_core_free(kofn_core *c)
{
    if (!c)
        return;
    for (size_t g = 0; c->ledger && g < c->plan->layout.groups; g++)
        kf_cells_free(&c->ledger[g]);
    kf_free(c->ledger);
    for (size_t u = 0; u < 2; u++) {
        kf_cache_free(c->use[u].cache);
        kf_code_free(c->use[u].code);
    }
    kf_free(c->worker);
    kf_free(c->principal);
    kf_free(c->seat);
    kf_free(c->task);
    kf_free(c->rows);
    kf_free(c->lies);
    kf_free(c->check);
    kf_free(c->evidence);
    kf_free(c->action);
    kf_free(c->pool);
    kf_free(c->by_seat);
    kf_free(c->live);
    kf_free(c->live_worker);
    kf_free(c);
}

kf_code *kofn_core_code(kofn_core *c)
{
    return c->code;
}

kf_cache *kofn_core_cache(kofn_core *c)
{
    return c->cache;
}

/* ---- looking ------------------------------------------------------------- */

static double share_done(const kofn_core *c)
{
    size_t enough = c->plan->layout.enough;
    double came = 0, all = (double)(c->hi - c->lo) * (double)enough *
                           (double)c->plan->layout.groups;

    if (c->round == 0)
        return 0;
    for (size_t g = 0; g < c->plan->layout.groups; g++)
        for (size_t i = 0; i < c->ledger[g].count; i++) {
            const kf_cell *cell = &c->ledger[g].cell[i];
            size_t n = cell->settled ? enough : kf_min(cell->count, enough);

            if (cell->lo < c->lo || cell->hi > c->hi)
                continue;
            came += (double)n * (double)(cell->hi - cell->lo);
        }
    return came / all;
}

char kofn_core_worker(const kofn_core *c, uint32_t worker)
{
    return worker < c->workers ? "?bslngqm"[c->worker[worker].state] : '?';
}

size_t kofn_core_live(const kofn_core *c)
{
    return c->in_state[KF_WORKER_LIVE] + c->in_state[KF_WORKER_LEAVING];
}

size_t kofn_core_storing(const kofn_core *c)
{
    return c->in_state[KF_WORKER_STORING];
}

size_t kofn_core_known(const kofn_core *c)
{
    return c->workers;
}

static size_t needed(const kofn_core *c)
{
    size_t spare = 0;

    if (c->state != KF_ROUND_STARVED)
        return 0;
    for (size_t g = 0; g < c->plan->layout.groups; g++)
        spare = kf_max(spare, kf_spare(c, g));
    return (c->plan->layout.enough + spare) * c->plan->layout.groups;
}

static size_t fewest_liars(const kofn_core *c)
{
    size_t fewest = SIZE_MAX;

    for (size_t g = 0; g < c->plan->layout.groups; g++)
        fewest = kf_min(fewest, c->ledger[g].liars);
    return fewest;
}

void kofn_core_look(const kofn_core *c, kofn_core_view *v)
{
    *v = (kofn_core_view){.round = c->round,
                          .running = c->state != KF_ROUND_IDLE,
                          .needed = needed(c),
                          .liars = fewest_liars(c),
                          .awaited = c->busy,
                          .done = share_done(c),
                          .dropped = c->dropped,
                          .rows = c->rows,
                          .live = kofn_core_live(c),
                          .storing = kofn_core_storing(c),
                          .standby = c->in_state[KF_WORKER_STANDBY],
                          .lies = c->lies,
                          .corrupt = c->corrupt,
                          .workers = c->workers};
}
