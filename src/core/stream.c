/* stream.c -- products one after another, in rounds: math/sequential.md.
 *
 * A round begins with a list of tasks for every worker, for all open products
 * (lists.c).  It ends when its due products are over and one of two conditions
 * holds.  Either all lists are done.  Or (1 + mu) times the time of the first
 * done list has passed, and the scheme admits that the other workers are
 * *marked*.  The outstanding tasks of marked workers are cancelled; a result
 * that comes all the same counts.  If the scheme does not admit a set of marks,
 * the round waits.
 *
 * A worker is *late* if no other list was done for (late - 1) times the time of
 * the first.  The results that a due product lacks from late workers are asked
 * of the others as well.  If there is no fresh row they get the same one, and
 * the first answer counts.  If the scheme does not admit the marks, late
 * workers are not marked, and neither are workers that have left.
 *
 * No particular worker is needed.  The tasks of a worker that leaves are
 * dropped, and it is not marked.  Others are asked for what a due product then
 * lacks, during the round or in the lists of the next.
 *
 * The coordinator owns the state of the stream.  Products of streams have one
 * group and one cell, on which this file relies. */
#include "state.h"

#include "base/options.h"

#include <stdio.h>

/* beyond 2 `enough` + MANY results, more of them decode no better */
#define MANY 16

/* Allowance for the first list of a round while no list is done and some
 * workers have none: a multiple of `late` and of the expected time. */
#define FEW 10

/* ---- life ---------------------------------------------------------------- */

/* Refuses plans that cannot compare results.  A stream has any number of rows,
 * but one worker cannot be compared with another. */
static kofn_status check_errors(const kofn_plan *p)
{
    if (p->layout.max_seats <= p->layout.enough)
        return kf_fail(
            KOFN_UNSUITED,
            "scheme %s needs every answer and has no spare one to find "
            "errors with; use dip, idip or polynomial",
            p->scheme->name);
    if (p->workers == 1)
        return kf_fail(KOFN_INVAL,
                       "one worker cannot be compared with another; "
                       "use at least 2 workers");
    return KOFN_OK;
}

static kofn_status limits(const kofn_plan *p, const kofn_core_options *o)
{
    if (o->below == KOFN_BELOW_DEGRADE)
        return kf_fail(KOFN_UNSUITED,
                       "below=degrade does not serve streams, where one worker "
                       "is enough; use refuse or pause");
    if (o->errors != KOFN_ERRORS_NONE)
        TRY(check_errors(p));
    return kf_option_check(KF_OPTION_mu, &o->mu);
}

/* Makes a fleet with any number of seats. */
static kofn_status open(kofn_core *c)
{
    kf_stream *s = &c->stream;

    TRY(kf_fleet_open(&c->fleet, c->use[0].plan->layout.groups, SIZE_MAX,
                      c->opt.workers_per_principal));
    s->memory = c->use[0].plan->layout.memory;
    TRY_ZERO(s->past, s->memory + 1);
    TRY_ZERO(s->marked, s->memory + 1);
    return KOFN_OK;
}

void kf_stream_close(kf_stream *s)
{
    for (size_t i = 0; s->past && i <= s->memory; i++)
        kf_free(s->past[i].mark);
    kf_free(s->past);
    kf_free(s->list);
    kf_free(s->mark);
    kf_free(s->marked);
    kf_free(s->done);
}

/* Makes room for all workers. */
static kofn_status know(kofn_core *c)
{
    kf_stream *s = &c->stream;

    TRY(kf_reach(&s->list, &s->list_cap, c->fleet.workers, sizeof *s->list));
    TRY(kf_reach(&s->done, &s->done_cap, c->fleet.workers, sizeof *s->done));
    while (s->known < c->fleet.workers)
        s->done[s->known++] = KOFN_NEVER;
    return KOFN_OK;
}

/* ---- workers ------------------------------------------------------------- */

static kofn_status sit(kofn_core *c, uint32_t worker, size_t seat)
{
    TRY(kf_fleet_assign_seat(&c->fleet, worker, seat));
    kf_fleet_set(&c->fleet, worker, KOFN_WORKER_LIVE);
    return KOFN_OK;
}

/* Returns 1: any worker answers any row. */
static size_t needed(const kf_product *p)
{
    (void)p;
    return 1;
}

/* Lets no worker be late before `more` nanoseconds from now. */
static void none_late_before(kofn_core *c, double more)
{
    more = kf_larger(more, (double)c->opt.late_least);
    c->stream.late_at = kf_later(c->now, kf_times_of(more));
}

/* ---- a round begins ------------------------------------------------------ */

static bool can_begin(const kofn_core *c, const kofn_event *ev,
                      kofn_plan *shape)
{
    const kf_stream *s = &c->stream;

    if (s->running)
        return false;
    if (ev->product == 0)
        return kf_core_open_rounds(c) > 0;
    return ev->product > s->newest && kf_core_open_rounds(c) < c->opt.open &&
           kf_code_shape(shape, c->use[0].plan, ev->m, ev->n, ev->p) == KOFN_OK;
}

static kofn_status open_product(kofn_core *c, const kofn_event *ev,
                                const kofn_plan *shape)
{
    kf_round *r;

    assert(ev->product > c->stream.newest);
    TRY(kf_core_add_round(c));
    r = kf_newest(c);
    r->state = KF_ROUND_RUNNING;
    r->shape = *shape;
    r->use = c->use[0];
    r->use.plan = &r->shape;
    r->first = c->stream.is.round;
    r->plain = 0;
    r->coded = shape->layout.plain;
    r->shared = false;
    kf_product_begin(&r->p, ev->product, &r->use, 0, shape->span, ev->alike);
    c->stream.newest = ev->product;
    kf_core_set_spare(c, r);
    return kf_product_reset(&r->p);
}

static void begin_round(kofn_core *c, uint32_t product)
{
    kf_stream *s = &c->stream;

    assert(!s->running && s->known == c->fleet.workers);
    s->running = true;
    s->is = (kofn_stream_round){.round = s->is.round + 1, .product = product};
    s->began = c->now;
    s->alarm_at = s->late_at = KOFN_NEVER;
    s->excuse = false;
    s->lease_at = c->opt.lease > 0
                      ? kf_later(c->now, kf_core_lease(c, false, 0))
                      : KOFN_NEVER;
    for (size_t w = 0; w < s->known; w++) {
        s->list[w] = (kf_todo){.given = 0};
        s->done[w] = KOFN_NEVER;
    }
}

static kofn_status begin(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    kf_stream *s = &c->stream;
    kofn_plan shape;
    double few;

    (void)r;
    if (!can_begin(c, ev, &shape))
        return kf_core_drop(c);
    kf_cache_trim_idle(c->use[0].cache);
    TRY(kf_core_quarantine(c));
    kf_core_forget_over(c);
    begin_round(c, ev->product);
    if (ev->product)
        TRY(open_product(c, ev, &shape));
    s->is.open = c->rounds;
    for (size_t i = 0; i < c->rounds; i++)
        if (kf_stream_due(c, c->round[i])) /* it may have waited for that */
            kf_product_all_news(&c->round[i]->p);
    TRY(kf_lists_make(c));
    few = FEW * c->opt.late * (double)s->task * (double)s->is.slots;
    if (c->opt.late > 0 && s->task > 0)
        none_late_before(c, few);
    return KOFN_OK;
}

/* ---- late workers -------------------------------------------------------- */

/* Marks workers as late.  While no list is done all workers may be slow, so
 * this is skipped if every live worker has tasks. */
static void look_who_is_late(kofn_core *c)
{
    kf_stream *s = &c->stream;
    kofn_time past = c->now - s->began;

    s->late_at = kf_later(c->now, past > 0 ? past : 1);
    if (!s->is.first && c->fleet.busy >= c->fleet.in_state[KOFN_WORKER_LIVE])
        return;
    for (size_t w = 0; w < s->known; w++)
        s->list[w].late = c->fleet.worker[w].out > 0;
    for (size_t i = 0; i < c->rounds; i++)
        if (kf_stream_due(c, c->round[i]))
            kf_product_all_late(&c->round[i]->p);
}

/* ---- answers ------------------------------------------------------------- */

/* Records that the worker's list is done, if it is; called after its
 * outstanding tasks became fewer. */
static void update_list_done(kofn_core *c, uint32_t worker)
{
    kf_stream *s = &c->stream;
    kf_todo *list = &s->list[worker];

    assert(worker < s->known);
    if (!s->running || list->came == 0 || c->fleet.worker[worker].out > 0 ||
        s->done[worker] != KOFN_NEVER)
        return;
    s->done[worker] = c->now - s->began;
    list->late = false;
    if (!s->is.first) {
        s->is.first = s->done[worker] > 0 ? s->done[worker] : 1;
        s->task = s->is.first / (kofn_time)list->came;
        s->alarm_at = kf_later(
            s->began, kf_times_of((double)s->is.first * (1 + c->opt.mu)));
        if (c->opt.lease > 0)
            s->lease_at = kf_later(c->now, kf_core_lease(c, true, s->is.first));
    }
    if (c->opt.late > 0)
        none_late_before(c, (c->opt.late - 1) * (double)s->is.first);
}

/* Records which lists are done after tasks were taken off lists. */
static void over(kofn_core *c)
{
    for (uint32_t w = 0; w < c->stream.known; w++)
        update_list_done(c, w);
}

/* Records that a row of this worker has come, so that no worker repeats it or
 * is asked for it. */
static kofn_status no_repeat(kofn_core *c, kf_round *r, uint32_t worker,
                             uint32_t row)
{
    bool look = r->shared || r->load[worker].out > 0;

    for (size_t w = 0; r->shared && w < r->workers; w++)
        if (r->load[w].again == row + 1)
            r->load[w].again = 0;
    if (r->load[worker].again == row + 1)
        r->load[worker].again = 0;
    for (size_t i = 0; look && i < r->p.tasks; i++)
        if (r->p.task[i].row == row &&
            (r->shared || r->p.task[i].worker == worker))
            TRY(kf_round_drop(c, r, i, true));
    if (r->shared)
        over(c);
    return KOFN_OK;
}

static kofn_status result(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    size_t index;
    kf_task *t;

    if (!kf_core_find_task(r, ev, &index))
        return kf_core_drop(c);
    if (!kf_is_open(r) || !kf_fleet_works(&c->fleet, ev->worker))
        return KOFN_OK;
    t = &r->p.task[index];
    if (kf_in_hand(t)) {
        kf_round_end(c, r, index, KF_TASK_DONE);
        c->stream.list[ev->worker].came++;
    } else {
        t->state = KF_TASK_DONE; /* after its round */
    }
    r->load[ev->worker].came++;
    kf_fleet_measure(&c->fleet, ev->worker, t->hi - t->lo, c->now, ev->took);
    TRY(no_repeat(c, r, ev->worker, ev->row));
    update_list_done(c, ev->worker);
    if (c->stream.is.first && c->stream.alarm_at == KOFN_NEVER)
        c->stream.alarm_at = c->now; /* look first at other results that have
                                        come */
    return kf_product_came(&r->p, index);
}

static kofn_status failed(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    if (kf_round_fail(c, r, ev))
        update_list_done(c, ev->worker);
    return KOFN_OK;
}

static kofn_status alarm_fired(kofn_core *c, kf_round *r, const kofn_event *ev)
{
    kf_stream *s = &c->stream;

    TRY(kf_rounds_alarm_fired(c, r, ev));
    if (c->now >= s->alarm_at)
        s->alarm_at = KOFN_NEVER; /* workers that are not done now may be
                                     marked */
    if (s->running && c->now >= s->late_at)
        look_who_is_late(c);
    if (s->running && c->now >= s->lease_at)
        return kf_late_evict(
            c, NULL, kf_core_lease(c, s->is.first, s->is.first), &s->lease_at);
    return KOFN_OK;
}

/* ---- products ------------------------------------------------------------ */

/* Ends or pauses a due product that lacks results if no worker can be asked for
 * more. */
static kofn_status fail_no_workers(kofn_core *c, kf_round *r)
{
    if (c->opt.errors != KOFN_ERRORS_NONE) {
        TRY(kf_resolve(c, r));
        if (r->state == KF_ROUND_RUNNING) /* it makes do with the results that
                                             are here */
            r->alarm = KOFN_NEVER;
        return KOFN_OK;
    }
    if (r->p.error.refused > 0 && c->fleet.in_state[KOFN_WORKER_LIVE] > 0)
        return kf_core_unstable(c, r, r->p.ledger[0].cell[0].count);
    if (c->opt.below == KOFN_BELOW_PAUSE) {
        kf_core_pause(c, r);
        return KOFN_OK;
    }
    kf_fail(KOFN_TOOFEW,
            "product %u is due with %zu of the %zu answers that it needs, and "
            "no worker is left to give more%s; start more workers",
            r->p.number, r->p.ledger[0].cell[0].count, kf_layout(&r->p)->enough,
            c->mutes ? ", because some did not answer and were evicted" : "");
    return kf_core_deliver(c, r, KOFN_TOOFEW);
}

/* Tries once, before it waits for late results, whether the results that are
 * here suffice to find the wrong ones, although more were wanted. */
static bool try_without_late(const kofn_core *c, kf_product *p)
{
    kf_cell *cell = &p->ledger[0].cell[0];
    size_t least = kf_product_least(p, 0, cell);

    if (c->opt.errors == KOFN_ERRORS_NONE || cell->checking || cell->tried ||
        cell->pending || !cell->slow || cell->count < least)
        return false;
    cell->tried = true;
    cell->extra = cell->count - least;
    kf_product_news(p, 0, cell->lo, cell->hi);
    return true;
}

/* Makes sure that a due product has enough outstanding tasks.  If no worker is
 * left to ask, decides how it ends. */
static kofn_status ensure_due(kofn_core *c, kf_round *r)
{
    const kf_cell *cell = &r->p.ledger[0].cell[0];
    bool all = true;

    if (cell->count > 2 * kf_layout(&r->p)->enough + MANY &&
        r->p.error.refused > 0)
        return kf_core_unstable(c, r, cell->count);
    if (kf_product_short(&r->p, 0, cell))
        TRY(kf_lists_short(c, r, &all));
    if (!all && try_without_late(c, &r->p))
        return KOFN_OK;
    if (!all && cell->pending + cell->slow == 0)
        return fail_no_workers(c, r);
    if (r->state == KF_ROUND_STARVED) {
        r->state = KF_ROUND_RUNNING;
        r->alarm = KOFN_NEVER;
    }
    return KOFN_OK;
}

/* Settles the product if its results suffice now. */
static kofn_status settle(kofn_core *c, kf_round *r)
{
    if (!kf_layout(&r->p)->keeps || kf_stream_due(c, r))
        TRY(kf_settle(c, r));
    kf_product_no_news(&r->p);
    r->resolve = false;
    if (r->p.unsettled > 0)
        return KOFN_OK;
    return kf_core_deliver(c, r, KOFN_OK);
}

/* ---- a round ends -------------------------------------------------------- */

static bool awaits_due(const kofn_core *c)
{
    for (size_t i = 0; i < c->rounds; i++)
        if (kf_stream_due(c, c->round[i]))
            return true;
    return false;
}

/* Sets *yes if the round may end with all workers that have outstanding tasks
 * marked, or with all of them but the late ones. */
static kofn_status may_end(kofn_core *c, bool *yes)
{
    kf_stream *s = &c->stream;

    *yes = s->running && !awaits_due(c);
    if (!*yes || c->fleet.busy == 0)
        return KOFN_OK;
    *yes = false;
    if (!s->is.first || s->alarm_at != KOFN_NEVER)
        return KOFN_OK;
    for (int late = 0; !*yes && late < 2; late++) {
        s->excuse = late;
        TRY(kf_lists_admit(c, yes));
    }
    return KOFN_OK;
}

/* Marks the workers that have outstanding tasks now. */
static kofn_status mark_all(kofn_core *c)
{
    kf_stream *s = &c->stream;
    kf_marks now = s->past[s->memory];

    memmove(s->past + 1, s->past, s->memory * sizeof *s->past);
    s->past[0] = now;
    TRY(kf_reach(&s->past[0].mark, &s->past[0].workers, s->known, 1));
    s->past[0].marked = 0;
    for (size_t w = 0; w < s->known; w++) {
        bool marked = kf_lists_marks(c, w);

        s->past[0].mark[w] = marked                       ? KOFN_MARKED
                             : c->fleet.worker[w].out > 0 ? KOFN_EXCUSED
                                                          : 0;
        s->past[0].marked += marked;
    }
    return KOFN_OK;
}

static kofn_status take_back(kofn_core *c, kf_round *r)
{
    for (size_t i = 0; i < r->p.tasks; i++) {
        const kf_task *t = &r->p.task[i];

        if (!kf_in_hand(t))
            continue;
        assert(t->worker < r->workers);
        if (!r->load[t->worker].again)
            r->load[t->worker].again = t->row + 1;
        TRY(kf_round_drop(c, r, i, true));
    }
    return KOFN_OK;
}

static kofn_status end_round(kofn_core *c)
{
    kf_stream *s = &c->stream;

    assert(s->running);
    TRY(mark_all(c));
    for (size_t i = 0; i < c->rounds; i++)
        if (kf_is_open(c->round[i]))
            TRY(take_back(c, c->round[i]));
    assert(c->fleet.busy == 0); /* all outstanding tasks are taken back */
    s->running = false;
    s->is.took = c->now - s->began;
    s->alarm_at = s->late_at = s->lease_at = KOFN_NEVER;
    return kf_act(c, (kofn_action){.type = KOFN_DO_END,
                                   .product = s->is.round,
                                   .lo = s->is.slots,
                                   .hi = s->past[0].marked});
}

/* Settles and resolves until no mark is left.  Making do with the results that
 * are here may leave new ones. */
static kofn_status go_on_with(kofn_core *c, kf_round *r)
{
    do {
        if (kf_is_open(r) && (kf_product_marked(&r->p) || !r->p.unsettled))
            TRY(settle(c, r));
        if (c->stream.running && kf_stream_due(c, r))
            TRY(ensure_due(c, r));
    } while (kf_is_open(r) && kf_product_marked(&r->p));
    r->resolve = false;
    return KOFN_OK;
}

static kofn_status go_on(kofn_core *c)
{
    bool end;

    TRY(know(c));
    for (size_t i = 0; i < c->rounds; i++)
        TRY(go_on_with(c, c->round[i]));
    TRY(may_end(c, &end));
    return end ? end_round(c) : KOFN_OK;
}

/* ---- queries ------------------------------------------------------------- */

void kf_core_round(const kofn_core *c, kofn_stream_round *out)
{
    const kf_stream *s = &c->stream;
    double most = (double)s->is.first * (1 + c->opt.mu);

    *out = s->is;
    out->mark = s->past[0].mark;
    out->times = s->done;
    out->workers = kf_min(s->past[0].workers, s->known);
    if (s->is.first && (double)s->is.took > most)
        out->waited = s->is.took - (kofn_time)most;
}

static const char *wrong(const kofn_core *c)
{
    const kf_stream *s = &c->stream;

    if (s->known != c->fleet.workers)
        return "a stream does not know all workers";
    for (size_t w = 0; w < s->known; w++)
        if (s->running && s->list[w].given < s->list[w].came)
            return "a worker has done more than its list";
    if (!s->running && c->fleet.busy)
        return "tasks are outstanding between rounds";
    if (s->running && c->fleet.busy == 0 && !awaits_due(c))
        return "a round with nothing to wait for is not over";
    return NULL;
}

/* ---- comparing results --------------------------------------------------- */

/* Returns the counter of results for the worker, or its principal, that gave
 * this one. */
static size_t *said(kofn_core *c, kf_round *r, uint32_t task)
{
    uint32_t worker = r->p.task[task].worker;
    uint32_t principal = c->fleet.worker[worker].principal;

    return principal ? &c->fleet.principal[principal].seats
                     : &r->load[worker].said;
}

/* Returns the largest number of these n results that one principal gave. */
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

/* A scheme asks every worker in each round until the product is due.  So `all`
 * counts live workers times rounds.  `known` stays 0, because a located worker
 * could have given any number of results. */
static kf_voices voices(kofn_core *c, kf_round *r, size_t group,
                        const uint32_t *tasks, size_t n)
{
    size_t live = c->fleet.in_state[KOFN_WORKER_LIVE];

    (void)group;
    return (kf_voices){.one = most_said(c, r, tasks, n),
                       .all = kf_max(n, live * (kf_layout(&r->p)->delay + 1))};
}

static size_t liars(const kf_fleet *f, const kf_voices *v, size_t spare)
{
    (void)f;
    return v->one ? spare / v->one : 1;
}

/* Counts among the checked results. */
static kofn_status silent(const kf_fleet *f, const kf_product *p,
                          const kofn_action *check, const uint32_t *tasks,
                          size_t *silent)
{
    (void)f;
    return kf_core_zero_results(p, check->group, check->lo, tasks, check->count,
                                silent);
}

/* Returns the number of results at which one of n principals can be located:
 * the others, without one more, have to decode.  If results of that number
 * disagreed, returns one more for each principal. */
static size_t apart(const kf_fleet *f, const kf_product *p, const kf_asked *a,
                    size_t results)
{
    size_t K = kf_layout(p)->threshold;
    size_t n = kf_max(f->in_state[KOFN_WORKER_LIVE], 1);

    (void)a;
    return kf_max(results + n, n * (n > 2 ? kf_ceil_div(K, n - 2) : K));
}

/* ---- the policy ---------------------------------------------------------- */

const kf_policy kf_stream_policy = {
    .limits = limits,
    .open = open,
    .sit = sit,
    .on[KOFN_EV_BEGIN] = begin,
    .on[KOFN_EV_RESULT] = result,
    .on[KOFN_EV_FAILED] = failed,
    .on[KOFN_EV_VERDICT] = kf_core_apply_verdict,
    .on[KOFN_EV_ALARM] = alarm_fired,
    .go_on = go_on,
    .wrong = wrong,
    .decode = kf_settle_decode,
    .over = over,
    .needed = needed,
    .voices = voices,
    .liars = liars,
    .silent = silent,
    .apart = apart,
};
