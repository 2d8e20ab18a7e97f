/* change.c -- matrices that change: applies turns to the blocks of this node.
 *
 * The vector says how a turn changes the matrices (kofn_program), so each node
 * changes its own block.  A block belongs to the matrix of the other nodes'
 * blocks only if it went through the same changes.  So an iterate travels with
 * the marks of the iterates that its last turns made.  A node that takes an
 * iterate, and had the same mark at one of these turns, applies the turns that
 * it missed.
 *
 * Ways part if a leader is lost while some nodes have its last iterate and
 * others make that again.  A block that went a different way since the common
 * mark differs by the rounding of a decoding for each of these turns.  A node
 * without a common mark has blocks of another matrix, and drops them.
 *
 * Owns the marks of the turns that the blocks went through; blocks belong to
 * the operand.  A turn may change a block only once. */
#include "host.h"

#include "data/kernel.h"
#include "mat/mat.h"

#include <assert.h>

/* bytes; a window of this size is never too large */
#define SMALL ((size_t)1 << 20)

kofn_status kf_changing_new(kf_host *h)
{
    kf_changing *c = &h->blocks.changing;
    size_t recalls = h->blocks.changing.recalls, bytes = 0;

    assert(recalls >= 2);
    c->small = SMALL;
    c->line = kf_zero(recalls, 2 * sizeof *c->line);
    if (!c->line)
        return KOFN_NOMEM;
    for (size_t i = 0; i < h->blocks.operands; i++)
        bytes +=
            (1 + h->blocks.states) * kf_borrowed_whole(&h->blocks, (uint32_t)i);
    h->largest = kf_max(h->largest, bytes);
    return kf_mesh_norms_new(h);
}

void kf_changing_free(kf_mesh_blocks *blocks)
{
    kf_borrowed_forget(blocks);
    kf_free(blocks->changing.lent);
    kf_free(blocks->changing.line);
}

/* ---- a turn -------------------------------------------------------------- */

/* The change of one matrix. */
typedef struct step {
    const kf_mesh_operand *of;
    kf_turn_change asked;
    kf_update_factors sides;
} step;

/* Keeps, of each component of a mixed U, the columns for rows `lo` to `lo` +
 * `rows` of the block. */
static kofn_status narrow(const step *s, size_t lo, size_t rows, kf_buffer **in)
{
    const kofn_matrix *all = &(*in)->m;
    size_t whole = kf_extent_of(s->of->plan).rows,
           components = all->cols / whole;
    kf_buffer *out;

    assert(lo + rows <= whole);
    assert(all->cols % whole == 0);
    if (rows == whole)
        return KOFN_OK;
    TRY(kf_buffer_new(&out, all->rows, components * rows, all->dtype));
    for (size_t i = 0; i < all->rows; i++)
        for (size_t l = 0; l < components; l++)
            memcpy(kf_at(&out->m, i, l * rows), kf_at(all, i, l * whole + lo),
                   rows * kf_dtype_size(all->dtype));
    kf_buffer_drop(*in);
    *in = out;
    return KOFN_OK;
}

/* Changes a block, or the rows of one from `lo` on. */
static kofn_status change_block(step *s, kf_block *block, uint32_t seat,
                                size_t lo)
{
    kf_msg m = {.type = KF_MSG_UPDATE};
    kofn_status st;

    TRY(kf_update_factors_take(&s->sides, s->of->code, seat, &m));
    st = narrow(s, lo, block->rows, &m.in);
    if (!st)
        st = kf_block_change(block, &m);
    kf_buffer_drop(m.in);
    kf_buffer_drop(m.with);
    kf_buffer_drop(m.change);
    return st;
}

static kofn_status begin_step(const kf_host *h, step *s, uint64_t turn,
                              uint32_t operand)
{
    s->of = &h->blocks.operand[operand];
    TRY(kf_turn_change_ask(h, turn, operand, &s->asked));
    return kf_update_factors_new(&s->sides, &s->of->resident,
                                 &s->asked.to.change, &s->asked.to.U,
                                 &s->asked.to.V);
}

static void end_step(step *s)
{
    kf_update_factors_free(&s->sides);
    kf_turn_change_done(&s->asked);
}

/* True if this turn must change the window. */
static bool waits_for(const kf_borrowed *l, uint64_t turn)
{
    return l->local && l->turn + 1 == turn;
}

static bool any_waits_for(const kf_changing *c, uint64_t turn)
{
    for (size_t i = 0; i < c->lents; i++)
        if (waits_for(&c->lent[i], turn))
            return true;
    return false;
}

/* Changes our own block, if `seat` is given, and the borrowed windows. */
static kofn_status change_matrix(kf_host *h, uint64_t turn, uint32_t operand,
                                 uint32_t seat)
{
    kf_changing *c = &h->blocks.changing;
    step s = {0};
    kofn_status st = begin_step(h, &s, turn, operand);

    assert(turn > 0);
    assert(operand < h->blocks.operands);
    if (!st && seat != KOFN_NO_SEAT) {
        kf_block *block = h->blocks.operand[operand].block;
        assert(block);

        st = change_block(&s, block, seat, 0);
        if (!st)
            kf_host_fault(h, KOFN_FAULT_IN_UPDATE, h->it.at.step,
                          &block->component[0]);
    }
    for (size_t i = 0; i < c->lents && !st; i++) {
        const kf_borrowed *l = &c->lent[i];

        if (l->operand == operand && waits_for(l, turn))
            st = change_block(&s, l->block, l->seat, l->lo);
    }
    end_step(&s);
    return st;
}

/* ---- ways ---------------------------------------------------------------- */

bool kf_changing_recalls(const kf_mesh_blocks *blocks)
{
    return blocks->changing.turn < blocks->changing.recalls;
}

/* True if both have the same lineage of the iterate that this turn made.  Turn
 * 0 made the start of the job, which is always the same. */
static bool same_line(const kf_mesh_blocks *blocks, const uint64_t *a,
                      const uint64_t *b, uint64_t turn)
{
    return turn == 0 || a[turn % blocks->changing.recalls] ==
                            b[turn % blocks->changing.recalls];
}

bool kf_changing_knows(const kf_mesh_blocks *blocks, uint64_t turn,
                       uint64_t line)
{
    const kf_changing *c = &blocks->changing;
    uint64_t recalls = blocks->changing.recalls;

    return turn <= c->turn && c->turn - turn < recalls &&
           (turn == 0 || c->line[turn % recalls] == line);
}

/* Keeps the windows of turns that are over if they are from our lineage, and
 * drops the others. */
static void settle(kf_mesh_blocks *blocks)
{
    kf_changing *c = &blocks->changing;

    for (size_t i = c->lents; i > 0; i--) {
        kf_borrowed *l = &c->lent[i - 1];

        if (l->local || l->turn > c->turn)
            continue;
        l->local = kf_changing_knows(blocks, l->turn, l->line);
        if (!l->local)
            kf_borrowed_drop(c, i - 1);
    }
}

/* Brings all blocks to our iterate: the windows, and our own blocks, which are
 * for `seat` and at turn `own`. */
static kofn_status bring(kf_host *h, uint32_t seat, uint64_t owned)
{
    kf_changing *c = &h->blocks.changing;
    uint64_t recalls = h->blocks.changing.recalls;
    uint64_t turn = c->turn > recalls ? c->turn - recalls : 0;

    settle(&h->blocks);
    while (turn++ < c->turn) {
        uint32_t local = owned < turn ? seat : KOFN_NO_SEAT;

        if (local == KOFN_NO_SEAT && !any_waits_for(c, turn))
            continue;
        for (uint32_t i = 0; i < h->blocks.operands; i++)
            if (h->blocks.operand[i].plan)
                TRY(change_matrix(h, turn, i, local));
        if (local != KOFN_NO_SEAT)
            c->changed = h->it.at.step;
        for (size_t i = 0; i < c->lents; i++)
            c->lent[i].turn += waits_for(&c->lent[i], turn);
    }
    return KOFN_OK;
}

void kf_changing_lose(kf_host *h)
{
    kf_borrowed_forget(&h->blocks);
    if (h->blocks.seat == KOFN_NO_SEAT)
        return;
    h->blocks.sketches.right = 0;
    h->blocks.seat = KOFN_NO_SEAT;
    h->told.lost = true;
}

/* Drops the blocks if a change was not finite: some have it, and others not. */
static kofn_status lose_halfway(kf_host *h, kofn_status st)
{
    if (st == KOFN_NONFINITE)
        kf_changing_lose(h);
    return st;
}

kofn_status kf_changing_settle(kf_host *h)
{
    return lose_halfway(h, bring(h, KOFN_NO_SEAT, 0));
}

/* Sets the turn of our iterate.  After the first turn no line is certainly
 * zero. */
static void begin_turn(kf_mesh_blocks *blocks, uint64_t turn)
{
    blocks->changing.turn = turn;
    for (size_t i = 0; turn > 0 && i < blocks->operands; i++)
        if (blocks->operand[i].plan)
            kf_equilibrate_await(&blocks->operand[i].scaling,
                                 blocks->operand[i].dense.rows,
                                 blocks->operand[i].dense.cols);
}

static kofn_status make_turn(kf_host *h, uint64_t turn, uint64_t was)
{
    TRY(kf_mesh_norms_turn(h, turn));
    return bring(h, h->blocks.seat, was);
}

kofn_status kf_changing_turn(kf_host *h)
{
    kf_changing *c = &h->blocks.changing;
    uint64_t turn = kf_course_turn(&h->work.course, h->it.at.step),
             was = c->turn;

    assert(turn >= was);
    if (turn == was)
        return KOFN_OK;
    begin_turn(&h->blocks, turn);
    c->line[turn % h->blocks.changing.recalls] = h->it.at.lineage;
    TRY(lose_halfway(h, make_turn(h, turn, was)));
    for (size_t i = 0; h->blocks.seat != KOFN_NO_SEAT && i < h->blocks.operands;
         i++)
        if (h->blocks.operand[i].plan)
            kf_host_fault(h, KOFN_FAULT_IN_MEMORY, h->it.at.step,
                          &h->blocks.operand[i].block->component[0]);
    return KOFN_OK;
}

kofn_status kf_changing_fresh(kf_host *h, uint32_t seat, uint64_t turn)
{
    assert(seat != KOFN_NO_SEAT);
    assert(turn <= h->blocks.changing.turn);
    kf_borrowed_forget(&h->blocks);
    /* they were made from the vector */
    h->blocks.changing.unsure = h->blocks.changing.turn > 0;
    return lose_halfway(h, bring(h, seat, turn));
}

void kf_changing_wrong(kf_host *h)
{
    h->blocks.changing.wrong++;
    h->told.doubt |= h->blocks.changing.suspect;
    h->blocks.changing.suspect = true;
    kf_changing_lose(h);
}

kofn_status kf_changing_adopt(kf_host *h, const void *lines)
{
    kf_changing *c = &h->blocks.changing;
    uint64_t recalls = h->blocks.changing.recalls, was = c->turn, last;
    uint64_t *remote = c->line + recalls; /* scratch */
    bool met = false;

    assert(h->blocks.changes);
    memcpy(remote, lines, recalls * sizeof *remote);
    begin_turn(&h->blocks, kf_course_turn(&h->work.course, h->it.at.step));
    last = c->turn < was ? c->turn : was;
    /* both have the lineages of `recalls` turns, up to their last */
    for (uint64_t i = 0; i <= last && !met; i++) {
        if ((c->turn > was ? c->turn : was) - (last - i) >= recalls)
            break;
        met = same_line(&h->blocks, c->line, remote, last - i);
    }
    memcpy(c->line, remote, recalls * sizeof *remote);
    kf_mesh_norms_take(&h->blocks,
                       (const char *)lines + recalls * sizeof *remote);
    if (met)
        return lose_halfway(h, bring(h, h->blocks.seat, was));
    kf_changing_lose(h);
    return KOFN_OK;
}
