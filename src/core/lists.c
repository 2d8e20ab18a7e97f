/* lists.c -- chooses the workers and rows for a round of a stream.
 *
 * Every worker is asked for the rows of each open product that the scheme
 * demands.  These are the row that it did not finish in the last round, or rows
 * that no worker had.  A due product may still lack results, because workers
 * came and went or results were refused.  Then every worker is asked for more:
 * the *net*.  Within the model of a scheme the net catches nothing
 * (math/sequential.md 8).
 *
 * The stream owns the table of the past.  Workers are asked only within a round
 * of the stream.  A row of a product is given to one worker at a time, unless
 * no other row is left. */
#include "state.h"

/* ---- the past ------------------------------------------------------------ */

/* Fills the table that the hooks of the scheme see.  `now`: as if the current
 * round ended. */
static kofn_status look_back(kofn_core *c, bool now, kofn_past *out)
{
    kf_stream *s = &c->stream;
    size_t over = kf_min(s->is.round - 1, s->memory), row = now;

    TRY(kf_reach(&s->mark, &s->mark_cap, (s->memory + 1) * s->known, 1));
    if (now)
        over = kf_min(over, kf_max(s->memory, 1) - 1);
    *out = (kofn_past){over + now, s->known, s->marked, s->mark};
    memset(s->mark, 0, (over + now) * s->known);
    s->marked[0] = 0;
    for (size_t w = 0; now && w < s->known; w++)
        s->marked[0] += s->mark[w] = kf_lists_marks(c, w);
    for (size_t i = 0; i < over; i++, row++) {
        for (size_t w = 0; w < kf_min(s->past[i].workers, s->known); w++)
            s->mark[row * s->known + w] = s->past[i].mark[w] == KOFN_MARKED;
        s->marked[row] = s->past[i].marked;
    }
    return KOFN_OK;
}

kofn_status kf_lists_admit(kofn_core *c, bool *yes)
{
    const kofn_plan *p = c->use[0].plan;
    kofn_past past;

    *yes = true;
    if (!p->scheme->admits)
        return KOFN_OK;
    TRY(look_back(c, true, &past));
    *yes = p->scheme->admits(&p->layout, &past);
    return KOFN_OK;
}

/* Returns the number of results of this worker that are here or outstanding. */
static size_t says(const kf_round *r, uint32_t worker)
{
    assert(worker < r->workers);
    return r->load[worker].came + r->load[worker].out;
}

/* Returns the largest useful number of results of one worker if results are
 * compared; SIZE_MAX if they are not.  To locate t liars among n workers
 * takes K / (n - 2 t) results of each.  Two workers can be compared if each
 * gives K. */
static size_t says_most(const kofn_core *c, const kf_round *r)
{
    size_t K = kf_layout(&r->p)->threshold, able = 0;

    if (c->opt.errors == KOFN_ERRORS_NONE)
        return SIZE_MAX;
    for (uint32_t w = 0; w < c->fleet.workers; w++)
        able += kf_core_can_work(c, r, w);
    return able > 3 ? (K + 1) / 2 + 2 : K + 2;
}

/* True if one more result of this worker helps.  More results of a worker that
 * was wrong do not. */
static bool can_say(const kofn_core *c, const kf_round *r, uint32_t worker,
                    size_t most)
{
    return kf_core_can_work(c, r, worker) && !r->load[worker].located &&
           says(r, worker) < most;
}

/* True if it is better to ask worker a than worker b. */
static bool before(const kofn_core *c, const kf_round *r, uint32_t a,
                   uint32_t b)
{
    size_t out_a = c->fleet.worker[a].out, out_b = c->fleet.worker[b].out;

    if (c->opt.errors != KOFN_ERRORS_NONE && says(r, a) != says(r, b))
        return says(r, a) < says(r, b);
    return out_a < out_b;
}

/* ---- rows ---------------------------------------------------------------- */

#define NO_ROW UINT32_MAX

/* True if this row has come or is outstanding; with `late`, unless it is
 * late. */
static bool counted_on(const kf_product *p, uint32_t row, bool late)
{
    for (size_t t = 0; t < p->tasks; t++)
        if (p->task[t].row == row && p->task[t].state != KF_TASK_DROPPED &&
            !(late && p->task[t].state == KF_TASK_LATE))
            return true;
    return false;
}

/* Returns the first row that no worker has answered or holds; with `late`, a
 * row that only late workers hold may do. */
static uint32_t used_row(kf_round *r, bool late)
{
    const kofn_layout *L = kf_layout(&r->p);
    uint32_t row = 0;

    while (row < L->max_seats && row < NO_ROW && counted_on(&r->p, row, late))
        row++;
    if (row >= kf_min(L->max_seats, NO_ROW))
        return NO_ROW;
    r->shared = true;
    return row;
}

/* True if two rows are left that no worker has answered or holds. */
static bool two_left(const kf_round *r)
{
    const kofn_layout *L = kf_layout(&r->p);
    size_t left = L->plain - r->plain + L->max_seats - r->coded;

    for (uint32_t row = 0; left < 2 && row < L->max_seats; row++)
        if (row < L->plain ? row < r->plain : row < r->coded)
            left += !counted_on(&r->p, row, false);
    return left > 1;
}

/* True if results are compared, rows are few, and no worker gives more results
 * than this one.  One more result of this worker then raises the number that
 * may be wrong together. */
static bool says_most_of_all(const kofn_core *c, const kf_round *r,
                             uint32_t worker)
{
    if (c->opt.errors == KOFN_ERRORS_NONE ||
        kf_layout(&r->p)->max_seats == SIZE_MAX)
        return false;
    for (uint32_t w = 0; w < c->fleet.workers; w++)
        if (!r->load[w].located && says(r, w) > says(r, worker))
            return false;
    return true;
}

/* Chooses a row that no worker was asked for.  If there is none, chooses one
 * that no worker has answered or holds, or one that a late worker holds and
 * this worker does not.  Returns NO_ROW if there is no such row.
 *
 * One more row of the worker with the most results helps only if another worker
 * has one more as well.  A late result, if it comes, is better than that. */
static uint32_t fresh_row(const kofn_core *c, kf_round *r, uint32_t worker,
                          bool plain)
{
    const kofn_layout *L = kf_layout(&r->p);
    bool most = says_most_of_all(c, r, worker);
    uint32_t row;

    assert(r->plain <= L->plain && r->coded >= L->plain);
    if (most && !two_left(r))
        return NO_ROW;
    if (plain && r->plain < L->plain)
        return (uint32_t)r->plain++;
    if (r->coded < L->max_seats && r->coded < NO_ROW)
        return (uint32_t)r->coded++;
    if (r->plain < L->plain)
        return (uint32_t)r->plain++;
    row = used_row(r, false);
    if (row == NO_ROW && !most && !c->stream.list[worker].late)
        row = used_row(r, true);
    return row;
}

/* ---- lists --------------------------------------------------------------- */

static kofn_status ask(kofn_core *c, kf_round *r, uint32_t worker, uint32_t row)
{
    kf_todo *list = &c->stream.list[worker];

    assert(c->stream.running && worker < c->stream.known);
    list->given++;
    c->stream.done[worker] = KOFN_NEVER;
    return kf_round_ask(c, r, worker, row, (kf_band){0, 0, r->shape.span});
}

static kofn_status ask_fresh(kofn_core *c, kf_round *r, uint32_t worker,
                             kofn_ask want, size_t *asked)
{
    for (size_t i = 0; i < want.rows; i++) {
        uint32_t row = fresh_row(c, r, worker, want.plain);

        if (row == NO_ROW)
            return KOFN_OK;
        TRY(ask(c, r, worker, row));
        ++*asked;
    }
    return KOFN_OK;
}

/* Gives the rows of one product that the scheme demands to every worker that
 * may give more. */
static kofn_status give(kofn_core *c, kf_round *r, const kofn_past *past)
{
    const kofn_layout *L = kf_layout(&r->p);
    const kofn_scheme *scheme = r->shape.scheme;
    const kf_cell *cell = &r->p.ledger[0].cell[0];
    kofn_pending x = {.age = kf_stream_age(c, r),
                      .got = cell->count,
                      .wanted = kf_product_wanted(&r->p, 0, cell),
                      .live = c->fleet.in_state[KOFN_WORKER_LIVE]};
    size_t asked = 0, most = says_most(c, r);

    for (uint32_t w = 0; w < c->fleet.workers; w++) {
        uint32_t again = r->load[w].again;
        kofn_ask want = {1, false};

        r->load[w].again = 0;
        if (!can_say(c, r, w, most))
            continue;
        if (L->repeats && again) {
            TRY(ask(c, r, w, again - 1));
            continue;
        }
        x.plain_left = L->plain - r->plain;
        if (scheme->ask)
            scheme->ask(L, &x, past, w, &want);
        TRY(ask_fresh(c, r, w, want, &asked));
    }
    return KOFN_OK;
}

/* Asks every worker for an equal share of the missing results. */
static kofn_status request_shortfall(kofn_core *c, kf_round *r)
{
    const kf_cell *cell = &r->p.ledger[0].cell[0];
    size_t missing = kf_product_short(&r->p, 0, cell), able = 0;
    size_t most = says_most(c, r);
    kofn_ask want = {0, false};

    for (uint32_t w = 0; missing && w < c->fleet.workers; w++)
        able += can_say(c, r, w, most);
    if (!able)
        return KOFN_OK;
    want.rows = kf_ceil_div(missing, able);
    for (uint32_t w = 0; w < c->fleet.workers; w++)
        if (can_say(c, r, w, most))
            TRY(ask_fresh(c, r, w, want, &c->stream.caught));
    return KOFN_OK;
}

kofn_status kf_lists_make(kofn_core *c)
{
    kf_stream *s = &c->stream;
    bool due_first = c->use[0].plan->layout.due_first;
    kofn_past past;

    TRY(look_back(c, false, &past));
    for (size_t i = 0; i < c->rounds; i++) {
        kf_round *r = c->round[due_first ? i : c->rounds - 1 - i];

        if (kf_is_open(r))
            TRY(give(c, r, &past));
        if (kf_stream_due(c, r))
            TRY(request_shortfall(c, r));
    }
    for (size_t w = 0; w < s->known; w++) {
        s->is.slots = kf_max(s->is.slots, s->list[w].given);
        s->is.live += s->list[w].given > 0;
    }
    return KOFN_OK;
}

/* Returns the worker to ask for one more row; KF_NOBODY if there is none. */
static uint32_t choose(const kofn_core *c, const kf_round *r, size_t most,
                       bool late)
{
    uint32_t who = KF_NOBODY;

    for (uint32_t w = 0; w < c->fleet.workers; w++)
        if (c->stream.list[w].late == late && can_say(c, r, w, most) &&
            (who == KF_NOBODY || before(c, r, w, who)))
            who = w;
    return who;
}

/* A late result may still come, and is counted.  Late workers are asked only if
 * that does not suffice. */
kofn_status kf_lists_short(kofn_core *c, kf_round *r, bool *all)
{
    const kf_cell *cell = &r->p.ledger[0].cell[0];
    size_t missing = kf_product_short(&r->p, 0, cell), asked = 0;
    size_t most = says_most(c, r);

    for (; missing > 0; missing--) {
        uint32_t who = choose(c, r, most, false);

        if (who == KF_NOBODY && missing > cell->slow)
            who = choose(c, r, most, true);
        if (who != KF_NOBODY)
            TRY(ask_fresh(c, r, who, (kofn_ask){1, false}, &asked));
        if (who == KF_NOBODY || asked == 0)
            break;
        c->stream.caught += asked;
        asked = 0;
    }
    *all = missing == 0;
    return KOFN_OK;
}
