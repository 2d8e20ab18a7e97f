/* sketches.c -- the sketches of blocks that are here: ours and those that came.
 *
 * Owns them: per matrix and connection those of the present comparison, and at
 * most the two newest others.  sketch.c makes and compares them.
 */
#include "host.h"

#include "data/kernel.h"

#include <assert.h>

void kf_sketch_drop(kf_sketches *s, size_t i)
{
    assert(i < s->sketches);
    kf_buffer_drop(s->sketch[i].data);
    s->sketch[i] = s->sketch[--s->sketches];
}

void kf_sketch_forget(kf_mesh_blocks *blocks)
{
    kf_sketches *s = &blocks->sketches;

    while (s->sketches > 0)
        kf_sketch_drop(s, 0);
    kf_free(s->sketch);
    *s = (kf_sketches){.done = s->done, .drift = s->drift};
}

bool kf_sketch_is_of(const kf_sketch *k, const kf_sketched *of)
{
    return k->turn == of->turn && k->line == of->line;
}

bool kf_sketch_are_compared(const kf_host *h)
{
    return h->blocks.changes && h->opt.errors != KOFN_ERRORS_NONE;
}

bool kf_sketch_vouches(const kf_host *h)
{
    return !kf_sketch_are_compared(h) ||
           h->blocks.sketches.right == h->blocks.changing.turn;
}

/* Returns the sketch that `k` replaces, or NULL.  It is one of the same turn,
 * or the oldest if there is more than one that is not being compared. */
static kf_sketch *replaced_by(const kf_sketches *s, const kf_sketch *k)
{
    kf_sketch *oldest = NULL;
    size_t others = 0;

    for (size_t i = 0; i < s->sketches; i++) {
        kf_sketch *x = &s->sketch[i];

        if (x->operand != k->operand || x->from != k->from)
            continue;
        if (x->turn == k->turn)
            return x;
        if (s->on && kf_sketch_is_of(x, &s->of))
            continue;
        others++;
        if (!oldest || x->turn < oldest->turn)
            oldest = x;
    }
    return others > 1 ? oldest : NULL;
}

kofn_status kf_sketch_put(kf_mesh_blocks *blocks, kf_sketch k)
{
    kf_sketches *s = &blocks->sketches;
    kf_sketch *was = replaced_by(s, &k);
    kofn_status st;

    assert(k.data);
    if (was) {
        kf_buffer_drop(was->data);
        *was = k;
        return KOFN_OK;
    }
    st = kf_grow(&s->sketch, &s->cap, s->sketches, sizeof *s->sketch);
    if (st)
        kf_buffer_drop(k.data);
    else
        s->sketch[s->sketches++] = k;
    return st;
}

/* ---- bodies -------------------------------------------------------------- */

size_t kf_sketch_bytes(const kf_mesh_blocks *blocks, uint32_t operand)
{
    kf_extent e;

    /* it does not exist, or does not change */
    if (kf_borrowed_whole(blocks, operand) == 0)
        return 0;
    e = kf_extent_of(blocks->operand[operand].plan);
    return e.components * e.rows * sizeof(double);
}

kf_buffer *kf_sketch_body(const kf_host *h, const kf_note *note)
{
    const kf_sketches *s = &h->blocks.sketches;
    uint64_t turn = kf_course_turn(&h->work.course, note->at.step);

    for (size_t i = 0; i < s->sketches; i++) {
        const kf_sketch *k = &s->sketch[i];

        if (k->operand == note->group && k->from == KF_LOCAL &&
            k->turn == turn && k->line == note->at.lineage)
            return kf_buffer_keep(k->data);
    }
    return NULL;
}
