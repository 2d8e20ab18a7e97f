/* serve_change.c -- changes of a worker's blocks, in place. A change is done in
 * the order of arrival, after the tasks that came before it.
 *
 * Changes the server's own blocks between tasks, never during one. A missed
 * change is reported, since no block may be wrong unnoticed. */
#include "serve.h"

#include <assert.h>
#include <string.h>

/* ---- checks -------------------------------------------------------------- */

/* Computes the bytes of an UPDATE of this block; false if the head does not
 * fit. */
static bool update_bytes(const kf_block *b, const kf_head *h, size_t *bytes)
{
    kofn_matrix U = {NULL, h->rows, h->cols, h->cols, h->dtype};
    kofn_matrix V = {NULL, h->rows, h->out_cols, h->out_cols, h->dtype};
    size_t wide;

    return h->rows && kf_block_takes(b, &U, &V) &&
           kf_add(h->cols, h->out_cols, &wide) &&
           kf_mul(h->rows, wide, bytes) &&
           kf_mul(*bytes, kf_dtype_size(h->dtype), bytes) &&
           kf_add(*bytes, KF_WIRE_CHANGE, bytes);
}

static bool strips_bytes(const kf_block *b, const kf_head *h, size_t *bytes)
{
    return b && b->changes && h->lo < h->hi && h->hi <= b->rows &&
           h->cols == b->cols && h->dtype == b->dtype &&
           h->rows == b->components * (h->hi - h->lo) &&
           kf_mul(h->rows, h->cols, bytes) &&
           kf_mul(*bytes, kf_dtype_size(h->dtype), bytes);
}

static const kf_block *block_of(const server *s, const kf_head *h)
{
    if (h->block != s->block_id)
        return NULL;
    return kf_block_of(s->block.block_spec.block, h->operand);
}

/* Returns the bytes of memory that may be used in addition to blocks and their
 * optimizer states. */
static size_t spare(const server *s)
{
    size_t left = s->w->opt.memory ? s->block.block_spec.spare : SIZE_MAX,
           bytes;

    for (const kf_block *b = s->block.block_spec.block; b; b = b->next)
        if (b->states > 0 && kf_block_state_bytes(b, &bytes))
            left -= kf_min(left, b->states * bytes);
    return left;
}

static size_t room(const server *s)
{
    size_t left = spare(s);

    return left - kf_min(left, kf_serve_carried(s));
}

/* True for an UPDATE or STRIPS that fits the block that is here. */
static bool fits(const server *s, const kf_head *h, size_t bytes)
{
    const kf_block *b = block_of(s, h);
    size_t want;

    return (h->type == KF_WIRE_UPDATE ? update_bytes(b, h, &want)
                                      : strips_bytes(b, h, &want)) &&
           bytes == want;
}

bool kf_serve_may_change(const server *s, const kf_head *h, size_t bytes)
{
    return fits(s, h, bytes) && bytes <= spare(s);
}

/* ---- received changes ---------------------------------------------------- */

static kofn_status no_memory(size_t bytes, const char *what)
{
    return kf_fail(KOFN_UNSUITED,
                   "%s needs %zu bytes, more than the memory limit of this "
                   "worker; raise the limit, or cut A into more parts",
                   what, bytes);
}

static kofn_status take_update(const kf_head *h, kf_buffer *all, kf_msg *m)
{
    size_t size = kf_dtype_size(h->dtype);
    char *at = all->m.data;
    kofn_matrix U = {at + KF_WIRE_CHANGE, h->rows, h->cols, h->cols, h->dtype};
    kofn_matrix V = {(char *)U.data + h->rows * h->cols * size, h->rows,
                     h->out_cols, h->out_cols, h->dtype};

    kofn_change c;

    assert(h->type == KF_WIRE_UPDATE);
    m->type = KF_MSG_UPDATE;
    TRY(kf_wire_read_change(&c, at));
    TRY(kf_states_change_new(&m->change, &c));
    TRY(kf_buffer_view(&m->in, all, &U));
    return kf_buffer_view(&m->with, all, &V);
}

/* Takes a body of the right length. */
static kofn_status take(server *s, const kf_head *h, kofn_packet *k, kf_msg *m)
{
    const kf_block *b = block_of(s, h);
    kf_buffer *all;
    kofn_status st;

    assert(b);
    TRY(kf_buffer_new(&all, 1, k->body_bytes / kf_dtype_size(h->dtype),
                      h->dtype));
    st = kf_post_take_body(s->w->t, k, h, &all);
    if (!st && h->type == KF_WIRE_UPDATE)
        st = take_update(h, all, m);
    else if (!st)
        st = kf_block_around(&m->block, all, b->components, h->hi - h->lo,
                             b->cols);
    kf_buffer_drop(all);
    return st;
}

static kofn_status make_pending(server *s, const kf_head *h, kofn_packet *k,
                                kf_msg *m)
{
    if (s->pending_count >= KF_WAITING)
        return kf_fail(KOFN_STATE, "%zu tasks wait already", s->pending_count);
    TRY(kf_outbox_room(&s->pending, &s->first, s->pending_count, &s->cap,
                       sizeof *s->pending));
    if (h->type == KF_WIRE_WHOLE)
        return block_of(s, h) ? KOFN_OK
                              : kf_fail(KOFN_STATE, "there is no block");
    if (!kf_serve_may_change(s, h, k->body_bytes))
        return kf_fail(KOFN_FORMAT,
                       "a change of operand %u does not fit the block that is "
                       "here",
                       h->operand);
    if (k->body_bytes > room(s))
        return kf_fail(KOFN_STATE, "too many changes wait for their turn");
    return take(s, h, k, m);
}

void kf_serve_change(server *s, const kf_head *h, kofn_packet *k)
{
    kf_msg m = {.type = KF_MSG_SLICE,
                .operand = h->operand,
                .state = h->state,
                .round = h->round,
                .lo = h->lo,
                .hi = h->hi};
    kofn_status st;

    if (h->type != KF_WIRE_WHOLE && fits(s, h, k->body_bytes) &&
        k->body_bytes > spare(s)) { /* it would not fit even alone */
        kf_serve_refuse(s, no_memory(k->body_bytes, "a change of a block"));
        return;
    }
    s->block.changed = true;
    st = make_pending(s, h, k, &m);
    if (!st) {
        kf_serve_queue_up(s, (pending_task){m, false, h->updates});
        return;
    }
    kf_post_drop(&m);
    kf_serve_fail(s, st);
    if (!s->over) /* its block is invalid from now on */
        kf_serve_hang_up(s->w);
}

/* ---- doing changes ------------------------------------------------------- */

/* Checks that there is memory for the states that a change may create. */
static kofn_status has_room(const server *s, const kf_block *b, const kf_msg *m)
{
    size_t states =
        m->change ? kf_states_change_of(m->change)->states : m->state;
    size_t bytes;

    if (states <= b->states || !s->w->opt.memory)
        return KOFN_OK;
    if (!kf_block_state_bytes(b, &bytes) ||
        !kf_mul(bytes, states - b->states, &bytes))
        return kf_nomem(SIZE_MAX);
    return bytes <= room(s)
               ? KOFN_OK
               : no_memory(bytes, "the optimizer states of a block");
}

/* Checks that all updates before this change were done. */
static kofn_status is_in_order(const pending_task *e, const kf_block *b)
{
    uint64_t then = b->updates + (e->msg.type == KF_MSG_UPDATE);

    assert(b);
    if ((!e->msg.block && e->msg.type == KF_MSG_SLICE) || e->updates == then)
        return KOFN_OK;
    return kf_fail(KOFN_STATE,
                   "a change is of a block after %zu updates, and that here "
                   "has had %zu",
                   (size_t)e->updates, (size_t)b->updates);
}

void kf_serve_do_change(server *s)
{
    assert(s->pending_count > 0);
    assert(s->pending[s->first].msg.type != KF_MSG_WORK);
    pending_task e = s->pending[s->first];
    kf_block *blocks = s->block.block_spec.block;
    const kf_block *b = kf_block_of(blocks, e.msg.operand);
    kofn_status st = is_in_order(&e, b);

    if (!st)
        st = has_room(s, b, &e.msg);
    s->first++;
    s->pending_count--;
    s->version++;
    /* there will be no room after it reconnects either */
    if (st == KOFN_UNSUITED) {
        kf_post_drop(&e.msg);
        kf_serve_refuse(s, st);
        return;
    }
    if (!st)
        st = kf_faults_change(s->exposed.faults, s->exposed.worker, &s->updates,
                              blocks, &e.msg);
    if (!st && e.msg.type == KF_MSG_UPDATE)
        kf_serve_post(s,
                      &(kf_head){.type = KF_WIRE_CHANGED,
                                 .job = s->job,
                                 .block = s->block_id,
                                 .updates = ++s->block.done},
                      NULL);
    else if (!st && !e.msg.block)
        kf_serve_block_is_whole(s);
    kf_post_drop(&e.msg);
    kf_serve_fail(s, st);
    if (st && !s->over)
        kf_serve_hang_up(s->w);
}
