/* away_change.c -- updates of blocks that remote workers hold.
 *
 * Both ends count the updates of an operand's block. So a missed or repeated
 * update is noticed, and its worker reconnects as a new one. A worker that
 * falls behind with updates is not sent more of them. It gets a new number and
 * empty blocks, which are filled from the blocks of other workers.
 *
 * Changes wait in the worker's outbox. This port does not know the contents of
 * a worker's block, only the number of its updates. */
#include "away.h"

#include <assert.h>

/* ---- updates ------------------------------------------------------------- */

/* Packs the change with U and V. */
static kofn_status pack_update(const kf_msg *m, kf_buffer **out)
{
    const kofn_matrix *U = &m->in->m, *V = &m->with->m;
    size_t numbers = KF_WIRE_CHANGE / kf_dtype_size(U->dtype), u, v;
    char *to;

    assert(U->rows == V->rows);
    assert(U->dtype == V->dtype);
    if (!kf_mul(U->rows, U->cols, &u) || !kf_mul(V->rows, V->cols, &v) ||
        !kf_add(u, v, &u) || !kf_add(u, numbers, &numbers))
        return kf_nomem(SIZE_MAX);
    TRY(kf_buffer_new(out, 1, numbers, U->dtype));
    to = (*out)->m.data;
    kf_wire_write_change(to, kf_states_change_of(m->change));
    to += KF_WIRE_CHANGE;
    kf_post_rows(U, &to, false);
    kf_post_rows(V, &to, false);
    return KOFN_OK;
}

static bool too_far_behind(const worker *w, size_t bytes)
{
    uint64_t behind = w->held.announced - w->held.done, least = 0;

    assert(w->held.done <= w->held.announced);
    for (const kf_block *b = w->held.block; b; b = b->next)
        least += BEHIND_LEAST;
    if (behind < least)
        return false;
    return behind >= BEHIND_MOST ||
           bytes > kf_max(BEHIND_BYTES, kf_block_bytes(w->held.block)) / behind;
}

/* Sends an update. A worker that is too far behind is given new blocks instead,
 * since its queue of updates would only grow. */
kofn_status kf_away_update(port *p, const kf_msg *m)
{
    assert(m->worker < p->workers);
    assert(!p->worker[m->worker]->gone);
    worker *w = p->worker[m->worker];
    kf_block *b = w->held.block;
    kf_head h = {.type = KF_WIRE_UPDATE,
                 .dtype = m->in->m.dtype,
                 .round = m->round,
                 .job = p->job,
                 .block = w->held.block_id,
                 .operand = m->operand,
                 .rows = m->in->m.rows,
                 .cols = m->in->m.cols,
                 .out_cols = m->with->m.cols};
    kf_buffer *body;
    kofn_lent lent;

    for (uint32_t i = 0; b && i < m->operand; i++)
        b = b->next;
    if (!b) /* a block that still waits would be sent in its old state */
        return kf_away_renew(p, m->worker);
    if (too_far_behind(w, kf_buffer_bytes(m->in) + kf_buffer_bytes(m->with))) {
        kf_away_news(p,
                     "%s is given new blocks: %zu updates of its blocks are "
                     "outstanding",
                     kf_away_title(p, m->worker),
                     (size_t)(w->held.announced - w->held.done));
        return kf_away_renew(p, m->worker);
    }
    TRY(pack_update(m, &body));
    w->held.announced++;
    h.updates = ++b->updates;
    lent = kf_post_lend(body);
    return kf_away_post(p, m->worker, &h, &lent);
}

kofn_status kf_away_changed(port *p, uint32_t id, const kf_head *h)
{
    assert(id < p->workers);
    worker *w = p->worker[id];

    if (h->block == w->held.block_id && h->updates == w->held.done + 1 &&
        h->updates <= w->held.announced) {
        w->held.done++;
        return KOFN_OK;
    }
    if (w->tasks.owes == 0)
        return kf_away_strike(p, id);
    w->tasks.owes--;
    return KOFN_OK;
}

/* ---- strips from other workers ------------------------------------------- */

/* Sends strips in the state after the updates that were already sent. */
kofn_status kf_away_strips(port *p, const kf_msg *m)
{
    assert(m->worker < p->workers);
    worker *w = p->worker[m->worker];
    const kf_block *b = kf_block_of(w->held.block, m->operand), *of = m->block;
    kf_head h = {.type = of ? KF_WIRE_STRIPS : KF_WIRE_WHOLE,
                 .round = m->round,
                 .job = p->job,
                 .block = w->held.block_id,
                 .operand = m->operand,
                 .state = (uint8_t)m->state,
                 .lo = m->lo,
                 .hi = m->hi};
    kf_buffer *body;
    kofn_lent lent;
    size_t rows;
    char *to;

    if (!b)
        return KOFN_OK;
    if (!of) {
        w->held.rebuilding = false;
        w->held.alone = kf_away_now(&p->base);
        return kf_away_post(p, m->worker, &h, NULL);
    }
    if (!kf_mul(of->components, of->rows, &rows))
        return kf_nomem(SIZE_MAX);
    TRY(kf_buffer_new(&body, rows, of->cols, of->dtype));
    to = body->m.data;
    p->serve.placed += kf_buffer_bytes(body);
    kf_post_components(&to, of, 0, of->rows);
    h.updates = b->updates;
    h.dtype = of->dtype;
    h.rows = rows;
    h.cols = of->cols;
    lent = kf_post_lend(body);
    return kf_away_post(p, m->worker, &h, &lent);
}
