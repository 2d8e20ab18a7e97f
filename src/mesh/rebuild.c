/* rebuild.c -- rebuilds the blocks of a node that has none, if matrices change.
 *
 * The node requests a window, rows of one matrix, from all nodes that it
 * reaches.  It computes its own rows from all windows that come within a hedge.
 * Rebuilding from the minimum number of blocks would amplify rounding each
 * generation (math/training.md 8).  If too few windows came, the node asks for
 * the missing number, and asks other nodes if these do not answer.  Then it
 * requests the next window: of twice the rows if one turn was enough for this
 * one, else of half.  A small block is one window.
 *
 * No node stops for this.  A window comes as it is after some turn.  Turns
 * change borrowed windows, and the blocks that are being rebuilt, as they
 * change own blocks.  Rows that are still missing there are overwritten later.
 *
 * Owns the windows that others lent until its own rows are made from them, and
 * its blocks until they have all rows.  It requests and answers by notes, and
 * never waits. */
#include "host.h"

#include "data/kernel.h"

#include <assert.h>

#define LONGEST 5 /* times that the wait is doubled */
/* silences without a new window, after which no node can lend one */
#define IN_VAIN 4

/* ---- lending ------------------------------------------------------------- */

kofn_status kf_borrowed_give(kf_host *h, const kf_route *r,
                             const kf_note *asked)
{
    const kf_changing *c = &h->blocks.changing;
    kf_note n = {.type = KF_NOTE_BLOCK,
                 .from = h->opt.incarnation,
                 .at = h->it.at,
                 .seat = h->blocks.seat};

    if (!kf_borrowed_bytes(&h->blocks, asked->group, asked->rows.lo,
                           asked->rows.hi))
        return KOFN_OK;
    if (h->blocks.seat == KOFN_NO_SEAT) /* the peer need not wait for ours */
        return kf_mail_to(h, r->peer, &n);
    n.at = (kofn_iterate_id){kf_course_end(&h->work.course, c->turn),
                             c->line[c->turn % h->blocks.changing.recalls]};
    n.group = asked->group;
    n.rows.lo = asked->rows.lo;
    n.rows.hi = asked->rows.hi;
    return kf_mail_to(h, r->peer, &n);
}

/* Makes a block of the window's rows.  It uses the memory of the body, which
 * belongs to it from now on. */
static kofn_status block_of_rows(const kf_mesh_blocks *blocks, kf_buffer *body,
                                 kf_block **out)
{
    const kf_mesh_window *w = &blocks->changing.window;
    const kofn_plan *plan = blocks->operand[w->operand].plan;
    kf_extent e = kf_extent_of(plan);
    size_t rows = w->hi - w->lo;
    size_t each = kf_borrowed_bytes(blocks, w->operand, w->lo, w->hi);
    kofn_matrix of = {body->m.data, e.components * rows * e.cols, 1, 1,
                      plan->layout.problem.dtype};
    kf_buffer *numbers;
    kofn_status st;

    assert(w->lo < w->hi);
    assert(kf_buffer_bytes(body) >= each);
    TRY(kf_buffer_view(&numbers, body, &of));
    st = kf_block_around(out, numbers, e.components, rows, e.cols);
    kf_buffer_drop(numbers);
    TRY(st);
    (*out)->changes = true;
    for (size_t s = 1; s < kf_buffer_bytes(body) / each && !st; s++)
        st = kf_block_write(*out, s, 0, rows, (char *)body->m.data + s * each);
    if (st)
        kf_block_drop(*out);
    return st;
}

/* ---- borrowing ----------------------------------------------------------- */

static size_t count_lent(const kf_mesh_blocks *blocks)
{
    size_t n = 0;

    for (size_t i = 0; i < blocks->changing.lents; i++)
        n += kf_borrowed_serves(blocks, &blocks->changing.lent[i]);
    return n;
}

/* Returns the number of missing windows.  With errors, one more is needed for a
 * comparison. */
static size_t missing(const kf_host *h)
{
    const kofn_plan *p =
        h->blocks.operand[h->blocks.changing.window.operand].plan;
    size_t have = count_lent(&h->blocks);
    size_t enough = kf_ceil_div(p->parts, p->layout.components) +
                    (h->opt.errors != KOFN_ERRORS_NONE);

    return enough > have ? enough - have : 0;
}

/* Takes over the block, also if it fails. */
static kofn_status new_lent(kf_changing *c, const kf_borrowed *l)
{
    size_t at = c->lents;
    kofn_status st = kf_grow(&c->lent, &c->lent_cap, at, sizeof *c->lent);

    assert(l->block);
    if (st) {
        kf_block_drop(l->block);
        return st;
    }
    for (; at > 0 && c->lent[at - 1].seat > l->seat; at--)
        c->lent[at] = c->lent[at - 1];
    c->lent[at] = *l;
    c->lents++;
    return KOFN_OK;
}

/* Drops former windows of that seat or lender.  A lender has one window, so the
 * number of windows is at most that of connections. */
static void drop_former(kf_changing *c, uint32_t seat, kofn_peer from)
{
    for (size_t i = c->lents; i > 0; i--) {
        const kf_borrowed *l = &c->lent[i - 1];

        if (l->from != KF_LOCAL && (l->seat == seat || l->from == from))
            kf_borrowed_drop(c, i - 1);
    }
}

/* True if it was requested last. */
static bool is_awaited(const kf_host *h, const kf_note *note, uint64_t turn)
{
    const kf_changing *c = &h->blocks.changing;
    const kf_mesh_window *w = &c->window;

    return c->asked && note->group == w->operand && note->rows.lo == w->lo &&
           note->rows.hi == w->hi &&
           kf_course_end(&h->work.course, turn) == note->at.step &&
           note->seat < h->blocks.operand[w->operand].plan->layout.max_seats;
}

kofn_status kf_borrowed_take(kf_host *h, kf_route *r, const kf_note *note,
                             kf_buffer *body)
{
    kf_changing *c = &h->blocks.changing;
    kf_borrowed l = {.operand = note->group,
                     .seat = note->seat,
                     .from = r->peer,
                     .turn = kf_course_turn(&h->work.course, note->at.step),
                     .line = note->at.lineage,
                     .lo = c->window.lo};
    size_t was;

    assert(r->incarnation == note->from);
    if (note->seat == KOFN_NO_SEAT) {
        r->lends_none = true;
        return KOFN_OK;
    }
    if (!body || !is_awaited(h, note, l.turn)) {
        h->net.foreign++;
        return KOFN_OK;
    }
    was = missing(h);
    TRY(block_of_rows(&h->blocks, body, &l.block));
    drop_former(c, l.seat, l.from);
    TRY(new_lent(c, &l));
    TRY(kf_changing_settle(h));
    if (missing(h) < was) /* else it is useless, and so may all of them be */
        c->since = kf_host_now(h);
    /* If this number was missing before, windows were found to disagree. */
    if (missing(h) < c->fewest) {
        c->fewest = missing(h);
        c->gained = c->since;
    }
    return KOFN_OK;
}

/* ---- asking -------------------------------------------------------------- */

static bool lends(const kf_mesh_blocks *blocks, kofn_peer peer)
{
    for (size_t i = 0; i < blocks->changing.lents; i++)
        if (blocks->changing.lent[i].from == peer &&
            kf_borrowed_serves(blocks, &blocks->changing.lent[i]))
            return true;
    return false;
}

/* True if a window may still come from a node that was asked together with all
 * others, and has not been late before. */
static bool may_come(const kf_host *h, kofn_time wait)
{
    const kf_changing *c = &h->blocks.changing;

    if ((c->asks > 0 && !c->disagreed) || kf_host_now(h) - c->asked >= wait)
        return false;
    for (size_t i = 0; i < h->net.routes; i++)
        if (h->net.route[i].incarnation && !h->net.route[i].over &&
            !h->net.route[i].lends_none &&
            !lends(&h->blocks, h->net.route[i].peer))
            return true;
    return false;
}

static kofn_time longer(const kf_host *h)
{
    return kf_host_hedge(h) << kf_min(h->blocks.changing.asks, LONGEST);
}

/* Asks *blocks of the nodes that lend, or of the others.  Each call asks
 * different nodes, if there are others.  It skips a node if its answer is
 * arriving. */
static kofn_status ask_some(kf_host *h, bool lenders, size_t *blocks)
{
    kf_changing *c = &h->blocks.changing;
    bool again = c->asked != 0;

    for (size_t i = 0; i<h->net.routes && * blocks> 0; i++) {
        kf_route *r = &h->net.route[c->next++ % h->net.routes];

        if (r->incarnation == 0 || r->over || r->lends_none == lenders ||
            lends(&h->blocks, r->peer) || (again && kf_route_is_arriving(h, r)))
            continue;
        --*blocks;
        TRY(kf_mail_to(h, r->peer,
                       &(kf_note){.type = KF_NOTE_READ,
                                  .from = h->opt.incarnation,
                                  .at = h->it.at,
                                  .group = c->window.operand,
                                  .rows.lo = c->window.lo,
                                  .rows.hi = c->window.hi}));
    }
    return KOFN_OK;
}

static kofn_status ask(kf_host *h, size_t blocks)
{
    kf_changing *c = &h->blocks.changing;
    bool again = c->asked != 0;
    size_t left = blocks;
    kofn_time now = kf_host_now(h);

    assert(blocks > 0);
    if (c->asked && now - c->asked < longer(h))
        return KOFN_AGAIN;
    if (c->since == 0)
        c->since = now;
    if (h->opt.give_up > 0 && now - c->since >= kf_attempt_patience(h))
        return kf_fail(KOFN_TOOFEW,
                       "no node could lend blocks of step %llu in %.3g s, and "
                       "%zu more are needed: too few nodes are left that have "
                       "this step; start the run again, or resume without the "
                       "files of steps that too few nodes have kept",
                       (unsigned long long)c->turn,
                       (double)kf_attempt_patience(h) * 1e-9, blocks);
    TRY(ask_some(h, true, &left));
    TRY(ask_some(h, false, &left));
    c->asked = now;
    c->asks += again && left < blocks;
    return KOFN_AGAIN;
}

/* ---- our own ------------------------------------------------------------- */

/* Computes the window of our block.  KOFN_TOOFEW: more are needed. */
static kofn_status make_rows(const kf_mesh_blocks *blocks,
                             const kf_borrowed *local)
{
    const kf_changing *c = &blocks->changing;
    kf_others o = {.seat = kf_new(c->lents, sizeof *o.seat),
                   .block = kf_new(c->lents, sizeof *o.block)};
    kofn_status st = o.seat && o.block ? KOFN_OK : KOFN_NOMEM;

    assert(local->from == KF_LOCAL);
    for (size_t i = 0; i < c->lents && !st; i++)
        if (kf_borrowed_serves(blocks, &c->lent[i])) {
            o.seat[o.n] = c->lent[i].seat;
            o.block[o.n++] = c->lent[i].block;
        }
    if (!st)
        st = kf_block_regenerate(local->block,
                                 blocks->operand[local->operand].code,
                                 local->seat, c->window.lo, &o);
    kf_free(o.seat);
    kf_free((void *)(uintptr_t)o.block);
    return st;
}

/* Returns our block of that matrix while it is being rebuilt, or NULL. */
static kf_borrowed *being_made(const kf_changing *c, uint32_t operand)
{
    for (size_t i = 0; i < c->lents; i++)
        if (c->lent[i].from == KF_LOCAL && c->lent[i].operand == operand)
            return &c->lent[i];
    return NULL;
}

/* ---- windows ------------------------------------------------------------- */

/* Returns the first matrix from `operand` on that changes. */
static uint32_t next_operand(const kf_mesh_blocks *blocks, uint32_t operand)
{
    while (operand < blocks->operands && !kf_borrowed_changes(blocks, operand))
        operand++;
    return operand;
}

/* Sets the window.  The windows of all seats together are not larger than a
 * block, unless the block is small. */
static void open_window(kf_host *h, uint32_t operand, size_t lo)
{
    kf_changing *c = &h->blocks.changing;
    const kofn_plan *p = h->blocks.operand[operand].plan;
    size_t rows = kf_extent_of(p).rows - lo;
    size_t most = kf_borrowed_whole(&h->blocks, operand) / p->layout.max_seats;

    assert(operand < h->blocks.operands);
    assert(lo < kf_extent_of(p).rows);
    c->bytes = kf_min(c->bytes, kf_max(most, c->small));
    rows = kf_min(rows,
                  kf_max(c->bytes / kf_borrowed_row(&h->blocks, operand), 1));
    c->window = (kf_mesh_window){operand, lo, lo + rows, c->turn};
    c->since = c->asked = 0;
    c->asks = 0;
    c->gained = kf_host_now(h);
    c->fewest = SIZE_MAX;
    c->disagreed = false;
}

/* True if it is rebuilding the blocks of that seat. */
static bool is_begun(const kf_mesh_blocks *blocks, uint32_t seat)
{
    const kf_borrowed *local =
        being_made(&blocks->changing, next_operand(blocks, 0));

    return local && local->seat == seat && local->turn == blocks->changing.turn;
}

static kofn_status begin(kf_host *h, uint32_t seat)
{
    kf_changing *c = &h->blocks.changing;
    size_t which = seat;

    assert(seat != KOFN_NO_SEAT);
    kf_borrowed_forget(&h->blocks);
    for (size_t i = 0; i < h->net.routes; i++)
        h->net.route[i].lends_none = false;
    for (uint32_t i = next_operand(&h->blocks, 0); i < h->blocks.operands;
         i = next_operand(&h->blocks, i + 1)) {
        const kf_mesh_operand *o = &h->blocks.operand[i];
        kf_borrowed local = {.operand = i,
                             .seat = seat,
                             .from = KF_LOCAL,
                             .turn = c->turn,
                             .local = true};

        TRY(kf_data_empty_blocks(&o->resident, o->code, &which, 1,
                                 &local.block));
        TRY(new_lent(c, &local));
    }
    c->bytes = c->small;
    open_window(h, next_operand(&h->blocks, 0), 0);
    return KOFN_OK;
}

/* Ends a window: our rows are made.  The next window does not wait for nodes
 * that have lent none. */
static void close_window(kf_host *h)
{
    kf_changing *c = &h->blocks.changing;

    assert(c->turn >= c->window.turn);
    for (size_t i = 0; i < h->net.routes; i++)
        h->net.route[i].lends_none = !lends(&h->blocks, h->net.route[i].peer);
    for (size_t i = c->lents; i > 0; i--)
        if (c->lent[i - 1].from != KF_LOCAL)
            kf_borrowed_drop(c, i - 1);
    c->bytes = c->turn - c->window.turn <= 1 ? 2 * c->bytes
                                             : kf_max(c->bytes / 2, c->small);
}

/* Opens the next window.  Returns false if there is none. */
static bool next_window(kf_host *h)
{
    kf_mesh_window *w = &h->blocks.changing.window;
    bool more = w->hi < kf_extent_of(h->blocks.operand[w->operand].plan).rows;
    uint32_t operand =
        more ? w->operand : next_operand(&h->blocks, w->operand + 1);

    if (operand < h->blocks.operands)
        open_window(h, operand, more ? w->hi : 0);
    return operand < h->blocks.operands;
}

static kofn_status finish(kf_host *h, uint32_t seat)
{
    kf_changing *c = &h->blocks.changing;

    for (size_t i = 0; i < c->lents; i++) {
        kf_mesh_operand *o = &h->blocks.operand[c->lent[i].operand];
        assert(c->lent[i].from == KF_LOCAL);

        c->lent[i].block->empty = false;
        kf_block_drop(o->block);
        o->block = c->lent[i].block;
        c->lent[i].block = NULL;
    }
    kf_borrowed_forget(&h->blocks);
    c->rebuilt++;
    c->changed =
        h->it.at.step; /* the turns that changed the windows changed it */
    h->blocks.seat = seat;
    return KOFN_OK;
}

kofn_status kf_borrowed_make(kf_host *h, uint32_t seat)
{
    kf_changing *c = &h->blocks.changing;
    size_t more;
    kofn_status st;

    assert(h->blocks.changes);
    if (!is_begun(&h->blocks, seat))
        TRY(begin(h, seat));
    if (c->asked == 0)
        return ask(h, SIZE_MAX);
    more = missing(h);
    if (more > 0)
        return ask(h, c->disagreed ? SIZE_MAX : more);
    if (may_come(h, longer(h)))
        return KOFN_AGAIN;
    st = kf_borrowed_compare(h, c->window.operand);
    if (!st)
        st = make_rows(&h->blocks, being_made(c, c->window.operand));
    if (st == KOFN_TOOFEW) { /* the number suffices, but not these */
        c->disagreed = true;
        return ask(h, SIZE_MAX);
    }
    TRY(st);
    close_window(h);
    return next_window(h) ? ask(h, SIZE_MAX) : finish(h, seat);
}
