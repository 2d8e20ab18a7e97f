/* cells.c -- the ledger: runs of strips with the same history.
 *
 * A ledger owns its cells, and each cell owns its list of tasks.  settle.c
 * decides when a cell is settled. */
#include "product.h"

void kf_cells_free(kf_ledger *l)
{
    for (size_t i = 0; i < l->count; i++)
        kf_free(l->cell[i].have);
    kf_free(l->cell);
    *l = (kf_ledger){0};
}

/* Returns the cell that holds `strip`; l->count if it is beyond the last. */
size_t kf_cells_find(const kf_ledger *l, size_t strip)
{
    size_t lo = 0, hi = l->count;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (l->cell[mid].hi <= strip)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Returns the cell after cell i among the cells of strips [lo, hi), or l->count
 * if there is none.  If hi is beyond the last strip, the cells continue at the
 * first. */
size_t kf_cells_next(const kf_ledger *l, size_t i, size_t lo, size_t hi)
{
    size_t span = l->cell[l->count - 1].hi;
    bool again = l->cell[i].lo < lo;

    assert(i < l->count && lo < hi);
    if (++i == l->count && hi > span && !again) {
        again = true;
        i = 0;
    }
    return i < l->count && l->cell[i].lo < (again ? hi - span : hi) ? i
                                                                    : l->count;
}

/* Makes `at` the boundary of two cells. */
kofn_status kf_cells_split(kf_ledger *l, size_t at)
{
    size_t i = kf_cells_find(l, at);
    kf_cell right;

    if (i == l->count || l->cell[i].lo == at)
        return KOFN_OK;
    assert(l->cell[i].lo < at && at < l->cell[i].hi);
    right = l->cell[i];
    right.lo = at;
    right.have = NULL;
    if (right.cap) {
        TRY_NEW(right.have, right.cap);
        memcpy(right.have, l->cell[i].have,
               (right.count + right.corrupt) * sizeof *right.have);
    }
    if (kf_grow(&l->cell, &l->cap, l->count, sizeof *l->cell)) {
        kf_free(right.have);
        return KOFN_NOMEM;
    }
    memmove(l->cell + i + 2, l->cell + i + 1,
            (l->count - i - 1) * sizeof *l->cell);
    l->cell[i].hi = at;
    l->cell[i + 1] = right;
    l->count++;
    return KOFN_OK;
}

/* Opens strips [lo, hi).  The other strips of `span` count as settled. */
kofn_status kf_cells_reset(kf_ledger *l, size_t lo, size_t hi, size_t span)
{
    assert(lo <= hi && hi <= span);
    for (size_t i = 0; i < l->count; i++)
        kf_free(l->cell[i].have);
    l->count = 0;
    TRY(kf_grow(&l->cell, &l->cap, 0, sizeof *l->cell));
    l->cell[0] = (kf_cell){.lo = 0, .hi = span};
    l->count = 1;
    TRY(kf_cells_split(l, lo));
    TRY(kf_cells_split(l, hi));
    for (size_t i = 0; i < l->count; i++)
        l->cell[i].settled = l->cell[i].hi <= lo || l->cell[i].lo >= hi;
    return KOFN_OK;
}

/* True if the cell is open, has no results and expects none. */
static bool is_blank(const kf_cell *cell)
{
    return !cell->settled && !cell->checking && cell->count == 0 &&
           cell->pending == 0 && cell->slow == 0;
}

void kf_cells_forget(kf_ledger *l)
{
    size_t kept = 0;

    for (size_t i = 0; i < l->count; i++) {
        kf_cell *cell = &l->cell[i];

        if (!cell->settled) {
            cell->count = cell->corrupt = cell->extra = 0;
            cell->disagreed = cell->last = cell->spent = false;
            cell->tried = false;
        }
        if (kept > 0 && is_blank(cell) && is_blank(&l->cell[kept - 1])) {
            l->cell[kept - 1].hi = cell->hi;
            kf_free(cell->have);
        } else {
            l->cell[kept++] = *cell;
        }
    }
    l->count = kept;
}

kofn_status kf_cell_add(kf_cell *cell, uint32_t task)
{
    size_t n = cell->count + cell->corrupt;

    assert(!cell->settled);
    TRY(kf_grow(&cell->have, &cell->cap, n, sizeof *cell->have));
    cell->have[n] = cell->have[cell->count];
    cell->have[cell->count++] = task;
    cell->last = cell->spent = cell->tried = false;
    return KOFN_OK;
}

/* Moves the result of this task from the results that count to the wrong
 * ones. */
void kf_cell_corrupt(kf_cell *cell, uint32_t task)
{
    size_t i = 0;

    while (i < cell->count && cell->have[i] != task)
        i++;
    if (i == cell->count)
        return;
    cell->count--;
    memmove(cell->have + i, cell->have + i + 1,
            (cell->count - i) * sizeof *cell->have);
    cell->have[cell->count] = task;
    cell->corrupt++;
    assert(cell->count + cell->corrupt <= cell->cap);
    cell->last = cell->spent = cell->tried = false;
}
