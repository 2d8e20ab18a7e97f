/* heard.c -- the number of useful results if seats send submessages and results
 * are compared.
 *
 * Without a search for errors any submessages count.  With it, a seat is right
 * or wrong in all that it sent.  For a number r, the first r submessages of all
 * seats that have sent r or more are compared.  Any kf_code_seats(r) of these
 * seats decode, and the others are spare (math/errors.md 10).  The r with the
 * most spare seats is taken.
 *
 * The number of useful results is kf_product_enough, the seats that decode with
 * all submessages, plus the spare seats, whatever r is.  So counting is the
 * same for all codes.  If no r has enough seats, it is the number of seats that
 * have sent their first submessage, at most kf_product_enough - 1.
 *
 * The product owns the scratch used here; it is valid until the next call.
 * This file counts answers, and does not decide which to ask for. */
#include "product.h"

size_t kf_product_enough(const kf_product *p)
{
    return kf_code_enough(p->use->plan, p->use->errors != KOFN_ERRORS_NONE);
}

kofn_status kf_product_make_room(kf_product *p)
{
    const kofn_layout *L = kf_layout(p);

    if (!kf_product_by_seats(p))
        return KOFN_OK;
    kf_free(p->scratch.heard);
    kf_free(p->scratch.whole);
    kf_free(p->scratch.reached);
    p->scratch.heard = kf_new(L->max_seats, L->submessages);
    p->scratch.whole =
        kf_new(L->max_seats, L->submessages * sizeof *p->scratch.whole);
    p->scratch.reached = kf_new(L->submessages + 1, sizeof *p->scratch.reached);
    return p->scratch.heard && p->scratch.whole && p->scratch.reached
               ? KOFN_OK
               : KOFN_NOMEM;
}

static void hear(const kf_product *p, size_t group, const kf_cell *cell,
                 bool coming)
{
    const kofn_layout *L = kf_layout(p);

    memset(p->scratch.heard, 0, L->max_seats * L->submessages);
    for (size_t i = 0; i < cell->count; i++)
        p->scratch.heard[p->task[cell->have[i]].row] = 1;
    for (size_t t = 0; t < p->tasks && coming; t++)
        if (kf_task_brings(&p->task[t], group, cell))
            p->scratch.heard[p->task[t].row] = 1;
}

/* Returns the number of submessages of a seat before the first gap. */
static size_t prefix(const kf_product *p, size_t seat)
{
    size_t submessages = kf_layout(p)->submessages, t = 0;

    while (t < submessages && p->scratch.heard[seat * submessages + t])
        t++;
    return t;
}

/* Returns the number of submessages with the most spare seats, the smallest if
 * several are equal; 0 if no number suffices.  Sets *worth to the number of
 * useful results. */
static size_t weigh(const kf_product *p, size_t *worth)
{
    const kofn_layout *L = kf_layout(p);
    size_t enough = kf_product_enough(p), best = 0, seats = 0, started;

    memset(p->scratch.reached, 0,
           (L->submessages + 1) * sizeof *p->scratch.reached);
    for (size_t s = 0; s < L->max_seats; s++)
        p->scratch.reached[prefix(p, s)]++;
    started = L->max_seats - p->scratch.reached[0];
    *worth = kf_min(started, enough - 1);
    for (size_t r = L->submessages; r > 0; r--) {
        size_t least = kf_code_seats(L, r);

        seats += p->scratch.reached[r];
        if (seats >= least && enough + seats - least >= *worth) {
            *worth = enough + seats - least;
            best = r;
        }
    }
    return best;
}

/* Returns the number of useful results.  `coming`: after all outstanding tasks
 * are done. */
static size_t has(const kf_product *p, size_t group, const kf_cell *cell,
                  bool coming)
{
    size_t worth;

    if (!kf_product_by_seats(p))
        return cell->count + (coming ? cell->pending + cell->slow : 0);
    hear(p, group, cell, coming);
    weigh(p, &worth);
    return worth;
}

size_t kf_product_has(const kf_product *p, const kf_cell *cell)
{
    return has(p, 0, cell, false);
}

size_t kf_product_may_have(const kf_product *p, size_t group,
                           const kf_cell *cell)
{
    return has(p, group, cell, true);
}

const uint32_t *kf_product_compared(const kf_product *p, const kf_cell *cell,
                                    size_t *n)
{
    size_t submessages = kf_layout(p)->submessages, each, worth;

    *n = cell->count;
    if (!kf_product_by_seats(p))
        return cell->have;
    hear(p, 0, cell, false);
    each = weigh(p, &worth);
    *n = 0;
    for (size_t i = 0; i < cell->count; i++) {
        size_t row = p->task[cell->have[i]].row;

        if (row % submessages < each && prefix(p, row / submessages) >= each)
            p->scratch.whole[(*n)++] = cell->have[i];
    }
    return p->scratch.whole;
}

size_t kf_product_worth(const kf_product *p, const uint32_t *tasks, size_t n)
{
    const kofn_layout *L = kf_layout(p);
    size_t each = 1, have;

    if (!kf_product_by_seats(p) || n == 0)
        return n;
    while (each < n && p->task[tasks[each]].row / L->submessages ==
                           p->task[tasks[0]].row / L->submessages)
        each++;
    have = n / each + kf_product_enough(p);
    return have - kf_min(have, kf_code_seats(L, each));
}
