/* serve_block.c -- a worker's block while it is made: from its specification
 * and the operand, or from slices that the coordinator sends.
 *
 * The server owns the block, also while it is incomplete. A slice that was not
 * requested is dropped. */
#include "serve.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

#define SLICE_BYTES ((size_t)4 << 20) /* requested at a time */
#define AHEAD 3 /* requested slices that are outstanding */

bool kf_serve_has_slices(const server *s)
{
    const making *b = &s->block;

    return b->block_spec.block && b->section == b->block_spec.sections;
}

void kf_serve_block_is_whole(server *s)
{
    assert(s->block.block_spec.block);
    s->block.whole = true;
    s->version++;
    kf_serve_say(s, KF_WIRE_STORED);
    kf_serve_news(s->w, "block stored");
}

/* Requests the next slices, AHEAD of them at most. */
static void ask_slices(server *s)
{
    making *b = &s->block;
    size_t units, bytes;

    while (!b->whole && b->section < b->block_spec.sections &&
           b->ahead < AHEAD) {
        kf_head h = {.type = KF_WIRE_NEED,
                     .job = s->job,
                     .block = s->block_id,
                     .which = b->section,
                     .lo = b->asked};

        kf_wire_section(b->block_spec.block, b->section, &units, &bytes);
        if (b->got == units) { /* sections may be empty */
            b->section++;
            b->got = b->asked = 0;
            continue;
        }
        if (b->asked == units)
            return;
        h.hi = kf_min(units, b->asked + kf_max(1, SLICE_BYTES / bytes));
        b->asked = h.hi;
        b->ahead++;
        b->last = kf_clock();
        kf_serve_post(s, &h, NULL);
    }
    if (kf_serve_has_slices(s) && !b->whole) {
        kofn_status st = kf_slices_check(b->block_spec.block);

        if (st) {
            kf_serve_fail(s, st);
            kf_serve_drop_block(s);
        } else if (kf_block_whole(b->block_spec.block)) {
            kf_serve_block_is_whole(s);
        }
    }
}

void kf_serve_ask_again(server *s)
{
    s->block.asked = s->block.got;
    s->block.ahead = 0;
    ask_slices(s);
}

/* True if the name cannot lead out of the folder of operands. */
static bool is_plain_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") &&
           strcmp(name, "..");
}

/* Makes the possible part of the block from the operand, if this machine can
 * read it. */
static void build_block(server *s)
{
    const kofn_matrix *A = NULL;
    const kofn_sparse *S = NULL;
    kf_block_spec *r = &s->block.block_spec;
    kofn_status st;

    if (!s->w->opt.operand || !is_plain_name(r->source))
        return;
    st = s->w->opt.operand(s->w->opt.ud, r->source, &A, &S);
    if (!st) {
        st = kf_block_spec_build(r, A, S);
        s->w->opt.operand_done(s->w->opt.ud);
    }
    if (!st)
        s->block.section = r->built;
    kf_serve_news(s->w, st ? kofn_errmsg() : "block made from a file here");
}

/* Sets the row of the seat in the blocks of all operands. */
static void answers_from(server *s, uint32_t row)
{
    for (kf_block *b = s->block.block_spec.block; b; b = b->next)
        b->row = row;
}

void kf_serve_store(server *s, const kf_head *h, kofn_packet *k)
{
    kofn_serve_options opt = s->w->opt;
    kofn_status st;

    if (h->block == s->block_id && s->block.block_spec.block &&
        !s->block.changed) { /* the block that is held already */
        if (s->block.block_spec.block->row != h->row)
            kf_serve_drop_tasks(s); /* they are for the former row */
        answers_from(s, h->row);
        if (s->block.whole)
            kf_serve_block_is_whole(s);
        else
            kf_serve_ask_again(s);
        return;
    }
    if (kf_post_check(s->w->t, h, k->body, k->body_bytes)) {
        kf_serve_hang_up(s->w);
        return;
    }
    kf_serve_drop_block(s);
    if (opt.memory)
        kf_serve_forget_kept(s->w);
    opt.memory = kf_serve_memory(s);
    st = kf_block_spec_read(&s->block.block_spec, k->body, k->body_bytes, &opt);
    if (st) { /* to reconnect would not help */
        kf_serve_refuse(s, st);
        return;
    }
    s->block_id = h->block;
    s->block.changed = !kf_block_whole(s->block.block_spec.block);
    answers_from(s, h->row);
    build_block(s);
    ask_slices(s);
}

/* True if requested slices of this block are outstanding. */
static bool is_making(const server *s, const kf_head *h)
{
    return s->block.ahead && !s->block.whole && h->block == s->block_id;
}

bool kf_serve_waits_for(const server *s, const kf_head *h, size_t body_bytes)
{
    const making *b = &s->block;
    size_t units, bytes;

    if (!is_making(s, h) || h->which != b->section)
        return false;
    kf_wire_section(b->block_spec.block, b->section, &units, &bytes);
    return h->lo == b->got && h->lo < h->hi && h->hi <= units &&
           body_bytes == (h->hi - h->lo) * bytes;
}

void kf_serve_slice(server *s, const kf_head *h, kofn_packet *k)
{
    making *b = &s->block;
    bool as_asked = kf_serve_waits_for(s, h, k->body_bytes);

    if (!is_making(s, h)) {
        s->w->t->dropped++;
        return;
    }
    b->ahead--;
    b->last = kf_clock();
    if (as_asked &&
        kf_post_check(s->w->t, h, k->body, k->body_bytes) == KOFN_OK) {
        memcpy(kf_slice_into(b->block_spec.block, b->section, h->lo), k->body,
               k->body_bytes);
        b->got = h->hi;
    } else {
        s->w->t->dropped++;
    }
    if (b->ahead == 0) /* some may have been lost or damaged */
        kf_serve_ask_again(s);
    else
        ask_slices(s);
}
