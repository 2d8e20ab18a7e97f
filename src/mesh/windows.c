/* windows.c -- rows of blocks of matrices that change: their bytes, and the
 * windows that other nodes lent.
 *
 * Owns the list of windows (h->blocks.changing.lent).
 */
#include "host.h"

#include "data/kernel.h"

#include <assert.h>

/* silences without a new window, after which no node can lend one */
#define IN_VAIN 4

bool kf_borrowed_changes(const kf_mesh_blocks *blocks, uint32_t operand)
{
    return blocks->changes && operand < blocks->operands &&
           blocks->operand[operand].plan;
}

size_t kf_borrowed_row(const kf_mesh_blocks *blocks, uint32_t operand)
{
    kf_extent e = kf_extent_of(blocks->operand[operand].plan);

    assert(kf_borrowed_changes(blocks, operand));
    return e.components * e.cols *
           kf_dtype_size(blocks->operand[operand].plan->layout.problem.dtype);
}

size_t kf_borrowed_bytes(const kf_mesh_blocks *blocks, uint32_t operand,
                         size_t lo, size_t hi)
{
    if (!kf_borrowed_changes(blocks, operand) || lo >= hi ||
        hi > kf_extent_of(blocks->operand[operand].plan).rows)
        return 0;
    return kf_ceil_div((hi - lo) * kf_borrowed_row(blocks, operand), 8) * 8;
}

size_t kf_borrowed_whole(const kf_mesh_blocks *blocks, uint32_t operand)
{
    return kf_borrowed_changes(blocks, operand)
               ? kf_borrowed_bytes(
                     blocks, operand, 0,
                     kf_extent_of(blocks->operand[operand].plan).rows)
               : 0;
}

kofn_status kf_borrowed_body(const kf_mesh_blocks *blocks, uint32_t operand,
                             size_t lo, size_t hi, kf_buffer **body,
                             size_t *bytes)
{
    const kf_block *b = blocks->operand[operand].block;
    size_t each = kf_borrowed_bytes(blocks, operand, lo, hi);
    char *at;

    assert(b);
    assert(each > 0);
    *bytes = (1 + b->states) * each;
    TRY(kf_buffer_new(body, *bytes / 8, 1, KOFN_F64));
    at = (*body)->m.data;
    memset(at, 0, *bytes);
    for (size_t s = 0; s <= b->states; s++)
        kf_block_read(b, s, lo, hi, at + s * each);
    return KOFN_OK;
}

/* ---- what was lent ------------------------------------------------------- */

void kf_borrowed_drop(kf_changing *c, size_t i)
{
    assert(i < c->lents);
    kf_block_drop(c->lent[i].block);
    for (c->lents--; i < c->lents; i++)
        c->lent[i] = c->lent[i + 1];
}

void kf_borrowed_forget(kf_mesh_blocks *blocks)
{
    kf_changing *c = &blocks->changing;

    while (c->lents > 0)
        kf_borrowed_drop(c, c->lents - 1);
    c->since = c->asked = 0;
    c->asks = 0;
}

/* True if it is from another node, and for our iterate. */
bool kf_borrowed_serves(const kf_mesh_blocks *blocks, const kf_borrowed *l)
{
    return l->from != KF_LOCAL && l->local && l->turn == blocks->changing.turn;
}

bool kf_borrowed_lacks(const kf_host *h)
{
    const kf_changing *c = &h->blocks.changing;

    return c->asked &&
           kf_host_now(h) - c->gained >= IN_VAIN * kf_host_silence(h);
}
