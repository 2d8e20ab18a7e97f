/* deal.c -- assigns strips to workers.
 *
 * The scheme deals over a compressed axis: the open strips, in order.  This
 * file turns shares into tasks on cells; a worker answers the rows of its seat.
 * After a change during a round, only the missing results are asked for
 * (reassign.c).
 *
 * Owns the deals during a call.  It asks only for strips that are not settled,
 * and only workers that kf_core_can_work. */
#include "state.h"

#include "code/operation.h"

#include <stdlib.h>

kofn_status kofn_deals_add(kofn_deals *d, size_t who, size_t lo, size_t hi)
{
    if (who >= d->members || hi > d->span || lo > hi)
        return kf_fail(
            KOFN_INVAL,
            "the deal of a scheme is out of range: strips [%zu, %zu) "
            "of %zu for member %zu of %zu",
            lo, hi, d->span, who, d->members);
    if (lo == hi)
        return KOFN_OK;
    TRY(kf_grow(&d->deal, &d->cap, d->count, sizeof *d->deal));
    d->deal[d->count++] = (kofn_deal){who, lo, hi};
    return KOFN_OK;
}

/* ---- dealing what is open ------------------------------------------------ */

static kofn_status collect(const kofn_core *c, const kf_round *r, size_t group,
                           bool all, kofn_deals *d)
{
    const kofn_plan *p = r->p.use->plan;
    size_t cover = kf_product_enough(&r->p) + r->p.ledger[group].spare;
    size_t n = d->members;

    if (p->scheme->deal)
        return p->scheme->deal(&p->layout, c->scratch.live, n,
                               all ? n : kf_min(cover, n), d->span, d);
    for (size_t i = 0; i < n; i++)
        TRY(kofn_deals_add(d, i, 0, d->span));
    return KOFN_OK;
}

/* Translates shares of the compressed axis into runs of real strips. */
static kofn_status expand(const kf_ledger *l, const kofn_deals *d,
                          kofn_deals *real)
{
    for (size_t k = 0; k < d->count; k++) {
        size_t at = 0;

        for (size_t i = 0; i < l->count && at < d->deal[k].hi; i++) {
            const kf_cell *cell = &l->cell[i];
            size_t length = cell->hi - cell->lo, lo, hi;

            if (cell->settled)
                continue;
            lo = kf_max(at, d->deal[k].lo);
            hi = kf_min(at + length, d->deal[k].hi);
            if (lo < hi)
                TRY(kofn_deals_add(real, d->deal[k].who, cell->lo + lo - at,
                                   cell->lo + hi - at));
            at += length;
        }
    }
    return KOFN_OK;
}

static int ascending(const void *a, const void *b)
{
    const size_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Splits the cells at the ends of the deals, in ascending order, so that each
 * split moves few cells. */
static kofn_status split_at_deals(kf_ledger *l, const kofn_deals *d)
{
    size_t *at, n = 0;
    kofn_status st = KOFN_OK;

    TRY_NEW(at, 2 * d->count);
    for (size_t k = 0; k < d->count; k++) {
        at[n++] = d->deal[k].lo;
        at[n++] = d->deal[k].hi;
    }
    qsort(at, n, sizeof *at, ascending);
    for (size_t i = 0; i < n && !st; i++)
        st = kf_cells_split(l, at[i]);
    kf_free(at);
    return st;
}

static size_t pieces_of(const kofn_core *c, const kf_product *p)
{
    return c->opt.pieces ? c->opt.pieces : kf_operation_pieces(kf_layout(p));
}

/* Splits the open cells if there are fewer than the pieces of a share.  So the
 * part that a straggler has finished counts. */
static kofn_status split_evenly(kf_product *p, size_t group, size_t pieces)
{
    kf_ledger *l = &p->ledger[group];
    size_t open = 0;
    size_t each = kf_ceil_div(kf_product_open_strips(p, group), pieces);

    for (size_t i = 0; i < l->count; i++)
        open += !l->cell[i].settled;
    if (open >= pieces)
        return KOFN_OK;
    for (size_t i = 0; i < l->count; i++)
        if (!l->cell[i].settled && l->cell[i].hi - l->cell[i].lo > each)
            TRY(kf_cells_split(l, l->cell[i].lo + each));
    return KOFN_OK;
}

/* Asks for tasks of about `piece` strips, made of whole cells. */
static kofn_status ask_in_pieces(kofn_core *c, kf_round *r, kf_band b,
                                 uint32_t worker, size_t piece)
{
    const kf_ledger *l = &r->p.ledger[b.group];
    size_t from = b.lo;

    for (size_t i = kf_cells_find(l, b.lo);
         i < l->count && l->cell[i].lo < b.hi; i++) {
        size_t to = l->cell[i].hi;

        if (to - from >= piece || to >= b.hi) {
            assert(from < to);
            TRY(kf_core_ask_seat(c, r, worker, (kf_band){b.group, from, to}));
            from = to;
        }
    }
    return KOFN_OK;
}

static kofn_status ask_deals(kofn_core *c, kf_round *r, size_t group,
                             const kofn_deals *d)
{
    size_t pieces = pieces_of(c, &r->p);

    for (size_t k = 0; k < d->count;) {
        size_t who = d->deal[k].who, share = 0, end = k;

        while (end < d->count && d->deal[end].who == who) {
            assert(d->deal[end].lo < d->deal[end].hi);
            share += d->deal[end].hi - d->deal[end].lo;
            end++;
        }
        assert(k < end && who < c->scratch.live_cap);
        for (; k < end; k++)
            TRY(ask_in_pieces(
                c, r, (kf_band){group, d->deal[k].lo, d->deal[k].hi},
                kf_core_member(c, group, who), kf_ceil_div(share, pieces)));
    }
    return KOFN_OK;
}

kofn_status kf_deal_afresh(kofn_core *c, kf_round *r, size_t group, bool all,
                           kofn_deals *out)
{
    kf_ledger *l = &r->p.ledger[group];
    kofn_deals d = {.span = kf_product_open_strips(&r->p, group)};
    kofn_status st;

    *out = (kofn_deals){.span = r->p.use->plan->span};
    if (d.span == 0)
        return KOFN_OK;
    TRY(kf_core_live_members(c, r, group, &d.members));
    out->members = d.members;
    assert(d.span <= out->span);
    st = collect(c, r, group, all, &d);
    if (!st)
        st = expand(l, &d, out);
    if (!st)
        st = split_at_deals(l, out);
    kf_free(d.deal);
    return st;
}

/* ---- owed work ----------------------------------------------------------- */

bool kf_deal_can(const kofn_core *c, const kf_round *r, size_t group,
                 kf_owed owed)
{
    size_t each =
        kf_product_by_seats(&r->p) ? 1 : kf_layout(&r->p)->submessages;
    size_t enough = kf_product_enough(&r->p) + r->p.ledger[group].spare;

    return owed != KF_OWED_SHORT &&
           kf_core_count_live(c, r, group) * each >= enough &&
           (owed == KF_OWED_AFRESH || kf_product_untouched(&r->p, group));
}

/* Uses the scheme's deal if the group has no task.  Otherwise asks for
 * single results. */
kofn_status kf_deal_rows(kofn_core *c, kf_round *r, size_t group, kf_owed owed)
{
    kofn_deals d;
    kofn_status st;

    if (!kf_deal_can(c, r, group, owed))
        return owed == KF_OWED_AFRESH ? KOFN_OK : kf_reassign(c, r, group);
    st = kf_deal_afresh(c, r, group, c->generous > 0 || r->p.all, &d);
    if (!st && !kf_layout(&r->p)->whole)
        st = split_evenly(&r->p, group, pieces_of(c, &r->p));
    if (!st)
        st = ask_deals(c, r, group, &d);
    kf_free(d.deal);
    return st;
}

/* Asks for the work owed to groups [lo, hi). */
kofn_status kf_deal(kofn_core *c, kf_round *r, size_t lo, size_t hi)
{
    assert(lo <= hi && hi <= r->p.groups);
    for (size_t g = lo; g < hi; g++) {
        kf_owed owed = r->p.ledger[g].owed;

        r->p.ledger[g].owed = KF_OWED_NOTHING;
        if (owed == KF_OWED_NOTHING)
            continue;
        TRY(kf_policy_of(r)->deal(c, r, g, owed));
        if (!kf_is_open(r))
            return KOFN_OK;
    }
    return KOFN_OK;
}
