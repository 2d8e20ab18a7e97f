/* block_comparison.c -- compares the windows of blocks that other nodes lend,
 * if errors are looked for.
 *
 * A block that is rebuilt from a wrong one is wrong, and makes wrong partial
 * products. So one window more than necessary is requested.  All that come are
 * compared in all states (verify/reading.c), and wrong ones are dropped.
 *
 * Owns nothing; the windows belong to the operand.  These functions may drop a
 * window.  Only the node's own counts may exclude a node. */
#include "host.h"

#include <assert.h>

static void drop_lent(kf_changing *c, uint32_t seat)
{
    for (size_t i = c->lents; i > 0; i--)
        if (c->lent[i - 1].from != KF_LOCAL && c->lent[i - 1].seat == seat)
            kf_borrowed_drop(c, i - 1);
}

/* Compares windows.  KOFN_AGAIN: some were wrong, and are dropped.  A doubtful
 * window is not held against its lender. */
static kofn_status judge(kf_host *h, uint32_t operand, kf_reading *r,
                         size_t state)
{
    kf_found found;
    kofn_status st =
        kf_comparison_read(h, &h->blocks.operand[operand], r, state, &found);

    if (st != KOFN_OK && st != KOFN_CORRUPT)
        return st;
    kf_comparison_strike_all(h, r, &found);
    for (size_t i = 0; i < found.count; i++)
        drop_lent(&h->blocks.changing, r->seat[found.bad[i]]);
    if (st == KOFN_OK)
        return found.count ? KOFN_AGAIN : KOFN_OK;
    for (size_t i = 0; i < r->n; i++) /* none of these can be used */
        drop_lent(&h->blocks.changing, r->seat[i]);
    return KOFN_TOOFEW;
}

static kf_read read_of(const kf_borrowed *l)
{
    kf_read of = {.from = l->from};

    for (size_t s = 0; s <= l->block->states; s++)
        of.state[s] = kf_block_state(l->block, s, 0).data;
    return of;
}

static kofn_status look(kf_host *h, uint32_t operand)
{
    const kf_changing *c = &h->blocks.changing;
    kf_reading r;
    kofn_status st =
        kf_reading_new(&r, h->blocks.operand[operand].plan, c->lents + 1);

    assert(operand == c->window.operand);
    assert(c->window.lo < c->window.hi);
    r.check.lo = c->window.lo;
    r.check.hi = c->window.hi;
    for (size_t i = 0; i < c->lents && !st; i++) {
        const kf_borrowed *l = &c->lent[i];

        if (kf_borrowed_serves(&h->blocks, l))
            kf_reading_add(&r, l->seat, read_of(l));
    }
    for (size_t s = 0; s <= r.states && !st; s++)
        st = judge(h, operand, &r, s);
    kf_reading_free(&r);
    return st;
}

kofn_status kf_borrowed_compare(kf_host *h, uint32_t operand)
{
    kofn_status st;

    if (h->opt.errors == KOFN_ERRORS_NONE)
        return KOFN_OK;
    do
        st = look(h, operand);
    while (st == KOFN_AGAIN);
    return st;
}
