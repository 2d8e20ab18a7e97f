/* lists.c -- who is asked for which rows in a round of a stream.
 *
 * Of each open product everybody is asked for what the scheme says: the row
 * that it did not get done in the round before, or rows that nobody had.  Where
 * a due product would still be short, for workers came and went or answers were
 * refused, everybody is asked for more: the *net*, which within the model of a
 * scheme catches nothing (math/sequential.md 8).
 */
#include "state.h"

/* ---- the past ------------------------------------------------------------ */

static kofn_status make_room(kf_stream *s)
{
    size_t rows = s->memory + 1;

    if (!s->marked && !(s->marked = kf_new(rows, sizeof *s->marked)))
        return KOFN_NOMEM;
    if (s->mark_cap >= s->known)
        return KOFN_OK;
    kf_free(s->mark);
    s->mark_cap = 0;
    s->mark = kf_new(2 * s->known, rows);
    if (!s->mark)
        return KOFN_NOMEM;
    s->mark_cap = 2 * s->known;
    return KOFN_OK;
}

/* The table that hooks look at: with `now` as if the round in hand ended. */
static kofn_status look_back(kofn_core *c, bool now, kofn_past *out)
{
    kf_stream *s = &c->stream;
    size_t over = kf_min(s->round - 1, s->memory), row = now;

    TRY(make_room(s));
    if (now)
        over = kf_min(over, kf_max(s->memory, 1) - 1);
    *out = (kofn_past){over + now, s->known, s->marked, s->mark};
    memset(s->mark, 0, (over + now) * s->known);
    for (size_t w = 0; now && w < s->known; w++)
        s->mark[w] = c->fleet.worker[w].out > 0;
    s->marked[0] = c->fleet.busy;
    for (size_t i = 0; i < over; i++, row++) {
        memcpy(s->mark + row * s->known, s->past[i].mark, s->past[i].workers);
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

/* ---- rows ---------------------------------------------------------------- */

/* Has this row come, or is it on its way? */
static bool counted_on(const kf_product *p, uint32_t row)
{
    for (size_t t = 0; t < p->tasks; t++)
        if (p->task[t].row == row && p->task[t].state != KF_TASK_DROPPED)
            return true;
    return false;
}

/* One that nobody was asked for; where there are no more, one that nobody has
 * or holds; KF_NO_ROW: there is none. */
static uint32_t fresh_row(kf_round *r, bool plain)
{
    const kofn_layout *L = kf_layout(&r->p);
    uint32_t row = 0;

    if (plain && r->plain < L->plain)
        return (uint32_t)r->plain++;
    if (r->coded < L->max_seats && r->coded < KF_NO_ROW)
        return (uint32_t)r->coded++;
    if (r->plain < L->plain)
        return (uint32_t)r->plain++;
    while (row < L->max_seats && row < KF_NO_ROW && counted_on(&r->p, row))
        row++;
    return row < L->max_seats ? row : KF_NO_ROW;
}

/* ---- lists --------------------------------------------------------------- */

static kofn_status ask(kofn_core *c, kf_round *r, uint32_t worker, uint32_t row)
{
    kf_todo *list = &c->stream.list[worker];

    list->given++;
    list->done = KOFN_NEVER;
    return kf_round_ask(c, r, worker, 0, row, 0, r->shape.span);
}

static kofn_status ask_fresh(kofn_core *c, kf_round *r, uint32_t worker,
                             kofn_ask want, size_t *asked)
{
    for (size_t i = 0; i < want.rows; i++) {
        uint32_t row = fresh_row(r, want.plain);

        if (row == KF_NO_ROW)
            return KOFN_OK;
        TRY(ask(c, r, worker, row));
        ++*asked;
    }
    return KOFN_OK;
}

/* What the scheme says of one product. */
static kofn_status give(kofn_core *c, kf_round *r, const kofn_past *past)
{
    const kofn_layout *L = kf_layout(&r->p);
    const kofn_scheme *scheme = r->shape.scheme;
    const kf_cell *cell = &r->p.ledger[0].cell[0];
    kofn_pending x = {.age = kf_stream_age(c, r),
                      .got = cell->count,
                      .wanted = kf_product_wanted(&r->p, 0, cell),
                      .live = c->fleet.in_state[KOFN_WORKER_LIVE]};
    size_t asked = 0;

    for (uint32_t w = 0; w < c->fleet.workers; w++) {
        uint32_t again = r->load[w].again;
        kofn_ask want = {1, false};

        r->load[w].again = KF_NO_ROW;
        if (!kf_core_can_work(c, r, w))
            continue;
        if (L->repeats && again != KF_NO_ROW) {
            TRY(ask(c, r, w, again));
            continue;
        }
        x.plain_left = L->plain - r->plain;
        if (scheme->ask)
            scheme->ask(L, &x, past, w, &want);
        TRY(ask_fresh(c, r, w, want, &asked));
    }
    return KOFN_OK;
}

/* As much of everybody as makes up for what is short. */
static kofn_status cast_net(kofn_core *c, kf_round *r)
{
    const kf_cell *cell = &r->p.ledger[0].cell[0];
    size_t missing = kf_product_short(&r->p, 0, cell), able = 0;
    kofn_ask want = {0, false};

    for (uint32_t w = 0; missing && w < c->fleet.workers; w++)
        able += kf_core_can_work(c, r, w);
    if (!able)
        return KOFN_OK;
    want.rows = kf_ceil_div(missing, able);
    for (uint32_t w = 0; w < c->fleet.workers; w++)
        if (kf_core_can_work(c, r, w))
            TRY(ask_fresh(c, r, w, want, &c->stream.caught));
    return KOFN_OK;
}

static kofn_status give_of(kofn_core *c, kf_round *r, const kofn_past *past)
{
    if (!kf_is_open(r))
        return KOFN_OK;
    TRY(give(c, r, past));
    return kf_stream_due(c, r) ? cast_net(c, r) : KOFN_OK;
}

kofn_status kf_lists_make(kofn_core *c)
{
    kf_stream *s = &c->stream;
    bool due_first = c->use[0].plan->layout.due_first;
    kofn_past past;

    TRY(look_back(c, false, &past));
    for (size_t i = 0; i < c->rounds; i++)
        TRY(give_of(c, c->round[due_first ? i : c->rounds - 1 - i], &past));
    for (size_t w = 0; w < s->known; w++) {
        s->slots = kf_max(s->slots, s->list[w].given);
        s->lists += s->list[w].given > 0;
    }
    return KOFN_OK;
}

kofn_status kf_lists_short(kofn_core *c, kf_round *r, bool *all)
{
    const kf_cell *cell = &r->p.ledger[0].cell[0];
    size_t missing = kf_product_short(&r->p, 0, cell), asked = 0;

    for (; missing > 0; missing--) {
        uint32_t who = KF_NOBODY;

        for (uint32_t w = 0; w < c->fleet.workers; w++)
            if (kf_core_can_work(c, r, w) &&
                (who == KF_NOBODY ||
                 c->fleet.worker[w].out < c->fleet.worker[who].out))
                who = w;
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
