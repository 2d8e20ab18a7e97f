/* product.c -- an open product: tasks, results, and missing results; see
 * product.h.
 *
 * A product owns its ledgers, tasks and checks until kf_product_close.  Workers
 * are mere names here, and other files choose them. */
#include "product.h"

kofn_status kf_product_open(kf_product *p, size_t groups)
{
    p->groups = groups;
    if (!p->ledger)
        TRY_ZERO(p->ledger, groups);
    return KOFN_OK;
}

void kf_product_close(kf_product *p)
{
    for (size_t g = 0; p->ledger && g < p->groups; g++)
        kf_cells_free(&p->ledger[g]);
    kf_free(p->ledger);
    kf_free(p->task);
    kf_free(p->checked.check);
    kf_free(p->checked.evidence);
    kf_free(p->scratch.heard);
    kf_free(p->scratch.whole);
    kf_free(p->scratch.reached);
}

void kf_product_begin(kf_product *p, uint32_t number, const kf_use *use,
                      size_t lo, size_t hi, bool alike)
{
    assert(lo <= hi && hi <= use->plan->span);
    p->number = number;
    p->use = use;
    p->lo = lo;
    p->hi = hi;
    p->tasks = p->rows = p->checked.count = p->checked.evidences = p->came = 0;
    p->error.noise = p->error.predicted = p->error.refused = 0;
    for (size_t g = 0; g < p->groups; g++) {
        p->ledger[g].bounds = kf_bounds_of(use->plan, g, use->errors);
        p->ledger[g].bounds.alike = alike;
    }
    kf_product_no_news(p);
    p->all = p->late_too = p->degraded = p->lost = p->disagree = p->unsure =
        false;
    p->corrupt = 0;
}

kofn_status kf_product_reset(kf_product *p)
{
    TRY(kf_product_make_room(p));
    p->unsettled = p->groups * (p->hi - p->lo);
    p->came = 0;
    for (size_t g = 0; g < p->groups; g++)
        TRY(kf_cells_reset(&p->ledger[g], p->lo, p->hi, p->use->plan->span));
    return KOFN_OK;
}

void kf_product_forget_open(kf_product *p)
{
    p->came = 0;
    for (size_t g = 0; g < p->groups; g++) {
        kf_ledger *l = &p->ledger[g];

        kf_cells_forget(l);
        for (size_t i = 0; i < l->count; i++) {
            l->cell[i].counted = 0;
            if (l->cell[i].lo >= p->lo && l->cell[i].hi <= p->hi)
                kf_product_recount(p, &l->cell[i]);
        }
    }
}

/* ---- tasks --------------------------------------------------------------- */

static uint32_t number_of(const char *one)
{
    uint32_t number;

    memcpy(&number, one, sizeof number);
    return number;
}

KF_WRAPS void *kf_core_find(void *list, size_t n, size_t size, uint32_t number)
{
    uint32_t first, far;
    size_t lo = 0, hi;
    char *found;

    if (n == 0)
        return NULL;
    first = number_of(list);
    far = number - first;
    hi = kf_min(n - 1, far);
    found = (char *)list + hi * size;
    while (lo < hi && number_of(found) != number) {
        size_t mid = (lo + hi) / 2;

        found = (char *)list + mid * size;
        if ((uint32_t)(number_of(found) - first) < far)
            lo = mid + 1;
        else
            hi = mid;
    }
    return number_of(found) == number ? found : NULL;
}

/* Moves a task to another state in the counts of its cells. */
static void count(kf_product *p, kf_task *t, kf_task_state state)
{
    kf_ledger *l = &p->ledger[t->group];

    for (size_t i = kf_cells_find(l, t->lo); i < l->count;
         i = kf_cells_next(l, i, t->lo, t->hi)) {
        kf_cell *cell = &l->cell[i];

        assert(t->state != KF_TASK_OUT || cell->pending > 0);
        assert(t->state != KF_TASK_LATE || cell->slow > 0);
        cell->pending += state == KF_TASK_OUT;
        cell->pending -= t->state == KF_TASK_OUT;
        cell->slow += state == KF_TASK_LATE;
        cell->slow -= t->state == KF_TASK_LATE;
    }
    t->state = state;
}

kofn_status kf_product_ask(kf_product *p, kf_task task)
{
    assert(task.group < p->groups && task.lo < task.hi && !task.state);
    TRY(kf_grow(&p->task, &p->task_cap, p->tasks, sizeof *p->task));
    p->task[p->tasks] = task;
    count(p, &p->task[p->tasks++], KF_TASK_OUT);
    p->rows = kf_max(p->rows, task.row + 1);
    return KOFN_OK;
}

void kf_product_set(kf_product *p, size_t index, kf_task_state state)
{
    assert(index < p->tasks && kf_in_hand(&p->task[index]));
    count(p, &p->task[index], state);
}

void kf_product_all_late(kf_product *p)
{
    for (size_t i = 0; i < p->tasks; i++)
        if (p->task[i].state == KF_TASK_OUT)
            count(p, &p->task[i], KF_TASK_LATE);
}

bool kf_product_has_row(const kf_product *p, const kf_cell *cell, uint32_t row)
{
    for (size_t h = 0; h < cell->count + cell->corrupt; h++)
        if (p->task[cell->have[h]].row == row)
            return true;
    return false;
}

/* If another worker has answered the row before, the expected new result does
 * not come.  Then work is owed again. */
kofn_status kf_product_came(kf_product *p, size_t index)
{
    const kf_task *t = &p->task[index];
    kf_ledger *l = &p->ledger[t->group];

    assert(index < p->tasks && !kf_in_hand(t));
    for (size_t i = kf_cells_find(l, t->lo); i < l->count;
         i = kf_cells_next(l, i, t->lo, t->hi)) {
        if (l->cell[i].settled)
            continue;
        if (kf_product_has_row(p, &l->cell[i], t->row)) {
            kf_product_owe(p, t->group, KF_OWED_SHORT);
            continue;
        }
        TRY(kf_cell_add(&l->cell[i], (uint32_t)index));
        kf_product_recount(p, &l->cell[i]);
    }
    if (t->hi > p->use->plan->span)
        kf_product_news(p, t->group, 0, p->use->plan->span);
    else
        kf_product_news(p, t->group, t->lo, t->hi);
    return KOFN_OK;
}

/* ---- checks -------------------------------------------------------------- */

bool kf_product_weighs(const kf_product *p)
{
    for (size_t i = p->checked.count; i > 0; i--)
        if (p->checked.check[i - 1].open && p->checked.check[i - 1].again)
            return true;
    return false;
}

kofn_status kf_product_check(kf_product *p, const kofn_action *check,
                             const uint32_t *tasks, bool again)
{
    size_t first = p->checked.evidences, count = check->count;

    assert(check->group < p->groups && check->lo < check->hi);
    TRY(kf_grow(&p->checked.check, &p->checked.cap, p->checked.count,
                sizeof *p->checked.check));
    TRY(kf_reach(&p->checked.evidence, &p->checked.evidence_cap, first + count,
                 sizeof *p->checked.evidence));
    memcpy(p->checked.evidence + first, tasks, count * sizeof *tasks);
    p->checked.evidences += count;
    p->checked.check[p->checked.count++] =
        (kf_asked){check->task, check->group, check->lo, check->hi, first,
                   count,       check->liars, true,      again};
    return KOFN_OK;
}

/* ---- missing results ----------------------------------------------------- */

void kf_product_news(kf_product *p, size_t group, size_t lo, size_t hi)
{
    kf_ledger *l = &p->ledger[group];

    assert(group < p->groups && lo <= hi);
    kf_product_mark(p, group);
    if (l->news_lo == l->news_hi) {
        l->news_lo = lo;
        l->news_hi = hi;
    } else {
        l->news_lo = kf_min(l->news_lo, lo);
        l->news_hi = kf_max(l->news_hi, hi);
    }
}

void kf_product_all_news(kf_product *p)
{
    for (size_t g = 0; g < p->groups; g++)
        kf_product_news(p, g, 0, p->use->plan->span);
}

void kf_product_no_news(kf_product *p)
{
    for (size_t g = 0; g < p->groups; g++) {
        p->ledger[g].news_lo = p->ledger[g].news_hi = 0;
        p->ledger[g].owed = KF_OWED_NOTHING;
    }
    p->mark_lo = p->mark_hi = 0;
}

/* Workers that are known to be wrong do not count in a cell that disagrees.  So
 * fewer results can be wrong, and fewer are needed. */
size_t kf_product_least(const kf_product *p, size_t group, const kf_cell *cell)
{
    const kf_ledger *l = &p->ledger[group];
    size_t known = cell->disagreed ? l->known : 0;

    return kf_product_enough(p) + kf_bounds_besides(l->spare, known);
}

size_t kf_product_wanted(const kf_product *p, size_t group, const kf_cell *cell)
{
    return kf_product_least(p, group, cell) + cell->extra;
}

size_t kf_product_short(const kf_product *p, size_t group, const kf_cell *cell)
{
    size_t sure = kf_product_by_seats(p) ? kf_product_may_have(p, group, cell)
                                         : cell->count + cell->pending;
    size_t want = kf_product_wanted(p, group, cell);

    return cell->settled || sure >= want ? 0 : want - sure;
}

size_t kf_product_open_strips(const kf_product *p, size_t group)
{
    const kf_ledger *l = &p->ledger[group];
    size_t open = 0;

    assert(group < p->groups);
    for (size_t i = 0; i < l->count; i++)
        open += l->cell[i].settled ? 0 : l->cell[i].hi - l->cell[i].lo;
    return open;
}

bool kf_product_untouched(const kf_product *p, size_t group)
{
    const kf_ledger *l = &p->ledger[group];
    size_t open = 0, asked = 0;

    for (size_t i = 0; i < l->count; i++) {
        const kf_cell *cell = &l->cell[i];

        open += !cell->settled;
        asked += cell->count + cell->pending + cell->slow;
    }
    return open == 1 && asked == 0;
}

/* Returns the results of this cell that count: at most as many as it needs. */
static size_t counts(const kf_product *p, const kf_cell *cell)
{
    size_t enough = kf_product_enough(p);

    return cell->settled ? enough : kf_min(kf_product_has(p, cell), enough);
}

void kf_product_recount(kf_product *p, kf_cell *cell)
{
    size_t n = counts(p, cell), length = cell->hi - cell->lo;

    assert(cell->lo >= p->lo && cell->hi <= p->hi);
    assert(p->came >= cell->counted * length);
    p->came += n * length - cell->counted * length;
    cell->counted = n;
}

double kf_product_done(const kf_product *p)
{
    size_t enough = kf_product_enough(p);
    double all = (double)(p->hi - p->lo) * (double)enough * (double)p->groups;

    return (double)p->came / all;
}

/* ---- invariants ---------------------------------------------------------- */

/* Recounts the outstanding tasks of one cell and checks that its rows differ.
 * Slow: for kf_product_wrong alone. */
static const char *check_cell(const kf_product *p, size_t group,
                              const kf_cell *cell)
{
    size_t pending = 0, slow = 0, span = p->use->plan->span;

    for (size_t t = 0; t < p->tasks; t++) {
        const kf_task *x = &p->task[t];
        size_t again = x->hi > span ? x->hi - span : 0;
        bool on = kf_in_hand(x) && x->group == group &&
                  ((x->lo < cell->hi && x->hi > cell->lo) || again > cell->lo);
        bool whole =
            (x->lo <= cell->lo && x->hi >= cell->hi) || again >= cell->hi;

        if (on && !whole)
            return "a task covers a part of a cell";
        pending += on && x->state == KF_TASK_OUT;
        slow += on && x->state == KF_TASK_LATE;
    }
    if (cell->pending != pending || cell->slow != slow)
        return "outstanding tasks of a cell are miscounted";
    for (size_t h = 0; h < cell->count; h++) {
        if (cell->have[h] >= p->tasks || p->task[cell->have[h]].group != group)
            return "a cell has a result that it was not asked for";
        for (size_t k = 0; k < h; k++)
            if (p->task[cell->have[h]].row == p->task[cell->have[k]].row)
                return "a cell counts one row twice";
    }
    return NULL;
}

KF_WRAPS const char *kf_product_wrong(const kf_product *p)
{
    size_t open = 0, came = 0;

    for (size_t g = 0; g < p->groups; g++) {
        const kf_ledger *l = &p->ledger[g];
        size_t at = 0;

        for (size_t i = 0; i < l->count; i++) {
            const char *wrong = check_cell(p, g, &l->cell[i]);

            if (wrong)
                return wrong;
            if (l->cell[i].lo != at || l->cell[i].hi <= at)
                return "cells overlap or leave a gap";
            at = l->cell[i].hi;
            if (l->cell[i].lo >= p->lo && at <= p->hi)
                came += counts(p, &l->cell[i]) * (at - l->cell[i].lo);
        }
        if (at != p->use->plan->span)
            return "cells do not cover all strips";
        if (l->owed != KF_OWED_NOTHING || l->news_lo != l->news_hi)
            return "a product has work left to do";
        open += kf_product_open_strips(p, g);
    }
    for (size_t t = 1; t < p->tasks; t++)
        if ((int32_t)(p->task[t].number - p->task[t - 1].number) <= 0)
            return "numbers of tasks do not ascend";
    if (came != p->came)
        return "results that came are miscounted";
    return open != p->unsettled ? "open strips are miscounted" : NULL;
}
