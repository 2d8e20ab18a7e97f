/* away_send.c -- inputs, tasks and blocks that are sent to remote workers.
 *
 * Owns the inputs that were sent to workers and may be needed again. It never
 * waits for a worker: what the transport does not take stays in the outbox. */
#include "away.h"

#include "base/hash.h"

#include "data/kernel.h"

#include <assert.h>

/* ---- inputs -------------------------------------------------------------- */

/* Packs only the strips of this task. */
static kofn_status pack_strips(const kf_msg *m, size_t components,
                               kf_buffer **out)
{
    const kofn_matrix *in = &m->in->m;
    bool left = kf_kernel_of(m->how)->left;
    size_t n = m->hi - m->lo;

    assert(m->lo < m->hi);
    assert(components > 0);
    TRY(kf_buffer_new(out, left ? in->rows * components : n * components,
                      left ? n : in->cols, in->dtype));
    kf_post_strips(in, m, components, (*out)->m.data, false);
    return KOFN_OK;
}

static kofn_status pack(kf_buffer *in, kf_buffer **out)
{
    char *to;

    if (in->m.ld == in->m.cols) {
        *out = kf_buffer_keep(in);
        return KOFN_OK;
    }
    TRY(kf_buffer_new(out, in->m.rows, in->m.cols, in->m.dtype));
    to = (*out)->m.data;
    kf_post_rows(&in->m, &to, false);
    return KOFN_OK;
}

/* Packs both operands of a task: its strips of all components of the block,
 * then the input. */
static kofn_status pack_pair(const kf_msg *m, kf_buffer **out)
{
    const kf_block *b = m->block;
    const kofn_matrix *in = &m->in->m;
    size_t strips = m->hi - m->lo, first, second;
    char *to;

    if (m->how != KF_HOW_ROWS || b->A || b->subset)
        return kf_fail(KOFN_UNSUITED,
                       "task %u brings a block that is not sent with the work",
                       m->task);
    if (!kf_mul(b->components * b->cols, strips, &first) ||
        !kf_mul(in->rows, in->cols, &second) || second > SIZE_MAX - first)
        return kf_nomem(SIZE_MAX);
    TRY(kf_buffer_new(out, 1, first + second, in->dtype));
    to = (*out)->m.data;
    kf_post_components(&to, b, m->lo, m->hi);
    kf_post_rows(in, &to, false);
    return KOFN_OK;
}

/* Forgets the inputs of products that are over. */
static void forget_inputs(port *p, uint32_t oldest)
{
    size_t kept = 0;

    if (p->in.oldest == oldest)
        return;
    for (size_t i = 0; i < p->in.count; i++)
        if (p->in.input[i].product < oldest)
            kf_buffer_drop(p->in.input[i].packed);
        else
            p->in.input[kept++] = p->in.input[i];
    p->in.count = kept;
    p->in.oldest = oldest;
}

/* Finds the product's input in the form in which it is sent, or makes it. */
static kofn_status find_input(port *p, const kf_msg *m, const input **out)
{
    input *x;

    forget_inputs(p, m->oldest);
    for (size_t i = p->in.count; i > 0; i--)
        if (p->in.input[i - 1].of == m->in &&
            p->in.input[i - 1].product == m->product) {
            *out = &p->in.input[i - 1];
            return KOFN_OK;
        }
    TRY(kf_grow(&p->in.input, &p->in.cap, p->in.count, sizeof *p->in.input));
    x = &p->in.input[p->in.count];
    TRY(pack(m->in, &x->packed));
    x->of = m->in;
    x->product = m->product;
    x->id = ++p->in.next;
    x->sum = kf_post_sum(p->t, p->job, x->packed->m.data,
                         kf_buffer_bytes(x->packed));
    p->in.count++;
    *out = x;
    return KOFN_OK;
}

/* ---- work ---------------------------------------------------------------- */

static kf_head work_head(const port *p, const kf_msg *m)
{
    const kofn_matrix *in = &m->in->m, *out = &m->result->m;
    const kf_block *b =
        kf_block_of(p->worker[m->worker]->held.block, m->operand);

    return (kf_head){.type = KF_WIRE_WORK,
                     .how = m->how,
                     .dtype = in->dtype,
                     .task = m->task,
                     .round = m->round,
                     .product = m->product,
                     .row = m->row,
                     .job = p->job,
                     .block = p->worker[m->worker]->held.block_id,
                     .updates = b ? b->updates : 0,
                     .operand = m->operand,
                     .state = (uint8_t)m->state,
                     .lo = m->lo,
                     .hi = m->hi,
                     .rows = in->rows,
                     .cols = in->cols,
                     .out_rows = out->rows,
                     .out_cols = out->cols};
}

/* Sends a task with the input that it needs. A task of a stream brings both
 * operands, a task of an adjoint code its strips. Otherwise the whole input is
 * sent, unless the worker has it: a worker keeps the last two inputs. */
static kofn_status post_work(port *p, const kf_msg *m)
{
    worker *w = p->worker[m->worker];
    kf_head h = work_head(p, m);
    kf_buffer *body = NULL;
    const kf_block *b;
    const input *x;
    kofn_lent lent;

    if (m->block) {
        h.block = h.updates = 0;
        h.input = ++p->in.next;
        h.lo = 0;
        h.hi = h.out_rows; /* the components were packed into one */
        TRY(pack_pair(m, &body));
    } else if (kf_kernel_of(m->how)->inner) {
        h.input = ++p->in.next;
        b = kf_block_of(w->held.block, m->operand);
        TRY(pack_strips(m, b ? b->components : 1, &body));
    } else {
        TRY(find_input(p, m, &x));
        h.input = x->id;
        if (w->tasks.known[0] != x->id && w->tasks.known[1] != x->id) {
            w->tasks.known[1] = w->tasks.known[0];
            w->tasks.known[0] = x->id;
            h.body_sum = x->sum;
            body = kf_buffer_keep(x->packed);
        }
    }
    if (body && p->base.longest && kf_buffer_bytes(body) > p->base.longest) {
        size_t bytes = kf_buffer_bytes(body);

        kf_buffer_drop(body);
        return kf_fail(KOFN_UNSUITED,
                       "the input of a task has %zu bytes, but a worker of "
                       "port %s receives at most %zu; give inputs with fewer "
                       "columns, or open the port for larger packets",
                       bytes, p->base.name, p->base.longest);
    }
    lent = kf_post_lend(body);
    return kf_away_post(p, m->worker, &h, &lent);
}

/* Records a task and sends it; takes over the buffer of the result. */
static kofn_status send_work(port *p, kf_msg *m)
{
    assert(m->worker < p->workers);
    assert(m->result);
    worker *w = p->worker[m->worker];
    kofn_status st = kf_grow(&w->tasks.pending, &w->tasks.cap, w->tasks.count,
                             sizeof *w->tasks.pending);

    if (!st) {
        w->tasks.pending[w->tasks.count++] =
            (pending_task){m->product, m->task,
                           m->row,     kf_buffer_bytes(m->result),
                           m->result,  kf_away_now(&p->base)};
        st = post_work(p, m);
        m->result = NULL;
    }
    return st;
}

static kofn_status be(port *p, uint32_t id, const worker *who)
{
    assert(id < p->workers);
    worker *w = p->worker[id];
    bool moved = w->principal != who->principal;

    w->peer = who->peer;
    w->process = who->process;
    w->held.holds = who->held.holds;
    w->staged = who->staged;
    w->principal = who->principal;
    p->of_peer[w->peer] = id + 1;
    kf_away_say(p, w->peer, KF_WIRE_WELCOME, id, NULL);
    return moved ? kf_inbox_put(&p->ready, (kf_msg){.type = KF_MSG_MOVED,
                                                    .worker = id,
                                                    .principal = w->principal})
                 : KOFN_OK;
}

/* Gives the block to the worker that holds it. Two workers that have no block
 * from this port exchange their numbers. No principal gains seats by this. */
static kofn_status take_seat(port *p, uint32_t id, uint64_t block)
{
    const worker w = *p->worker[id];

    for (uint32_t i = 0; i < p->workers && w.held.holds != block; i++) {
        const worker v = *p->worker[i];

        if (i == id || v.gone || v.held.block || v.held.holds != block ||
            (v.principal != w.principal && !v.held.to_store))
            continue;
        TRY(be(p, i, &w));
        return be(p, id, &v);
    }
    return KOFN_OK;
}

/* Sends the specification of the waiting block. Its digest is the name of the
 * block. The time allowed for storing it depends on the block's size. */
static kofn_status send_block(port *p, uint32_t id)
{
    assert(p->worker[id]->held.to_store);
    assert(p->stores > 0);
    worker *w = p->worker[id];
    kf_head h = {.type = KF_WIRE_STORE,
                 .row = (uint32_t)w->held.to_store->row,
                 .job = p->job};
    kf_bytes block_spec = {0};
    kofn_status st =
        kf_block_spec_write(w->held.to_store, p->source, &block_spec);

    h.block = st ? 0 : kf_hash(~p->job, block_spec.p, block_spec.n);
    if (!st && !w->held.block)
        st = take_seat(p, id, h.block);
    /* or the worker would keep its present block */
    else if (!st && h.block == w->held.block_id)
        h.block = kf_hash(p->job, block_spec.p, block_spec.n);
    if (st) {
        kf_bytes_free(&block_spec);
        return st;
    }
    kf_block_drop(w->held.block);
    w->held.block = w->held.to_store;
    w->held.to_store = NULL;
    p->stores--;
    w->held.stored = false;
    w->held.rebuilding = !kf_block_whole(w->held.block);
    w->tasks.owes += w->held.announced - w->held.done;
    w->held.announced = w->held.done = 0;
    w->held.served = 0;
    w->held.storing = -(kofn_time)((double)kf_block_bytes(w->held.block) /
                                   SLOWEST * (double)KOFN_SECOND);
    w->held.alone = kf_away_now(&p->base);
    w->held.block_id = h.block;
    return kf_away_post(
        p, id, &h,
        &(kofn_lent){block_spec.p, block_spec.n, kf_free, block_spec.p});
}

kofn_status kf_away_store(port *p)
{
    if (p->workers < p->opt.workers)
        return KOFN_OK;
    for (uint32_t i = 0; i < p->workers && p->stores; i++)
        if (p->worker[i]->held.to_store)
            TRY(send_block(p, i));
    return KOFN_OK;
}

/* Keeps a block to be sent. In a new job no worker holds a block, so it is sent
 * at once. */
static kofn_status store(port *p, kf_msg *m)
{
    worker *w = p->worker[m->worker];

    assert(m->block);
    p->stores += w->held.to_store == NULL;
    kf_block_drop(w->held.to_store);
    w->held.to_store = m->block;
    m->block = NULL;
    return p->opt.job ? KOFN_OK : send_block(p, m->worker);
}

pending_task *kf_away_pending(worker *w, uint32_t task)
{
    for (size_t i = 0; i < w->tasks.count; i++)
        if (w->tasks.pending[i].task == task)
            return &w->tasks.pending[i];
    return NULL;
}

kf_buffer *kf_away_end(worker *w, pending_task *e)
{
    kf_buffer *result = e->result;

    assert(e >= w->tasks.pending);
    assert(e < w->tasks.pending + w->tasks.count);
    *e = w->tasks.pending[--w->tasks.count];
    return result;
}

/* Counts a cancelled task. A worker that computes either confirms a cancel or
 * answers the task. One that does neither, for many tasks and a long time, is
 * evicted. */
static kofn_status leave_unanswered(port *p, uint32_t id)
{
    worker *w = p->worker[id];
    kofn_time now = kf_away_now(&p->base);
    size_t i = 0;

    if (w->tasks.cancelled++ == 0)
        w->tasks.heard = now;
    if (w->tasks.cancelled > REMEMBERED) {
        while (w->tasks.pending[i].result)
            i++;
        kf_away_end(w, &w->tasks.pending[i]);
        w->tasks.cancelled--;
        w->tasks.owes++; /* its confirmation may still come */
    }
    if (w->tasks.cancelled < CANCELLED_MOST ||
        now - w->tasks.heard < 6 * p->opt.silence)
        return KOFN_OK;
    kf_away_evict(p, id);
    return kf_inbox_put(&p->ready,
                        (kf_msg){.type = KF_MSG_UNRESPONSIVE, .worker = id});
}

/* Takes the task out of the outbox if it still waits there. Otherwise sends an
 * urgent cancel. */
static kofn_status send_cancel(port *p, const kf_msg *m)
{
    worker *w = p->worker[m->worker];
    kf_head h = {.type = KF_WIRE_CANCEL, .job = p->job, .task = m->task};
    unsigned char head[KF_HEAD];
    pending_task *e = kf_away_pending(w, m->task);
    uint64_t lost;

    if (!e)
        return KOFN_OK;
    if (kf_post_take_back(&w->line.outbox, m->task, &lost)) {
        if (lost && w->tasks.known[0] == lost) {
            w->tasks.known[0] = w->tasks.known[1];
            w->tasks.known[1] = 0; /* any older input there was forgotten */
        } else if (lost && w->tasks.known[1] == lost) {
            w->tasks.known[1] = 0;
        }
        kf_buffer_drop(kf_away_end(w, e));
        return KOFN_OK;
    }
    kf_buffer_drop(e->result); /* the pending task stays, without a buffer */
    e->result = NULL;
    kf_head_write(head, &h); /* it only saves time and may be lost */
    p->t->send(p->t, w->peer, head, sizeof head, NULL, true);
    return leave_unanswered(p, m->worker);
}

kofn_status kf_away_send(kofn_port *base, kf_msg *m)
{
    port *p = (port *)base;
    kofn_status st = KOFN_OK;

    if (m->worker < p->workers && !p->worker[m->worker]->gone)
        switch (m->type) {
        case KF_MSG_STORE:
            st = store(p, m);
            break;
        case KF_MSG_WORK:
            st = send_work(p, m);
            break;
        case KF_MSG_CANCEL:
            st = send_cancel(p, m);
            break;
        case KF_MSG_UPDATE:
            st = kf_away_update(p, m);
            break;
        case KF_MSG_SLICE:
            st = kf_away_strips(p, m);
            break;
        case KF_MSG_EVICT:
            kf_away_evict(p, m->worker);
            break;
        default:
            break;
        }
    kf_post_drop(m);
    return st;
}

/* ---- slices of blocks ---------------------------------------------------- */

/* Returns the limit of bytes that a worker may be sent for its block: several
 * times its size. */
static uint64_t enough(const kf_block *b)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < kf_wire_sections(b); i++) {
        size_t units, bytes;

        kf_wire_section(b, i, &units, &bytes);
        sum += (uint64_t)units * bytes;
    }
    return 4 * sum + 1024 * SLICE_COST;
}

/* True if this is a slice of the block that the worker was sent. */
static bool is_slice(const worker *w, const need *n)
{
    size_t units, bytes;

    if (!w->held.block || w->held.block_id != n->id ||
        n->section >= kf_wire_sections(w->held.block))
        return false;
    kf_wire_section(w->held.block, n->section, &units, &bytes);
    return n->lo < n->hi && n->hi <= units &&
           (n->hi - n->lo == 1 || n->hi - n->lo <= UNITS_AT_ONCE / bytes);
}

kofn_status kf_away_ask(port *p, uint32_t id, const kf_head *h)
{
    worker *w = p->worker[id];
    const need n = {h->block, h->which, h->lo, h->hi};

    assert(w->held.asked <= NEEDS_MOST);
    /* it will request it again */
    if (w->held.asked == NEEDS_MOST || !is_slice(w, &n))
        return kf_away_strike(p, id);
    w->held.need[(w->held.need_first + w->held.asked) % NEEDS_MOST] = n;
    if (w->held.asked++ == 0)
        w->held.storing += kf_away_now(&p->base) - w->held.alone;
    p->serve.needs++;
    return KOFN_OK;
}

/* Answers a request for rows of a block. A request beyond the limit of bytes is
 * a strike. */
static kofn_status post_slice(port *p, uint32_t id, const need *n)
{
    worker *w = p->worker[id];
    kf_head h = {.type = KF_WIRE_SLICE,
                 .job = p->job,
                 .block = n->id,
                 .which = n->section,
                 .lo = n->lo,
                 .hi = n->hi};
    kf_bytes made = {0};
    size_t units, bytes;
    const void *at;
    kofn_status st;

    assert(n->lo < n->hi);
    kf_wire_section(w->held.block, n->section, &units, &bytes);
    bytes *= n->hi - n->lo;
    w->held.served += bytes + SLICE_COST;
    p->serve.placed += bytes;
    if (w->held.served > enough(w->held.block))
        return kf_away_strike(p, id);
    st = kf_slice_from(w->held.block, n->section, n->lo, n->hi, &made, &at);
    if (st || at != made.p) /* it is in A, which outlives the port's use */
        kf_bytes_free(&made);
    return st ? st
              : kf_away_post(p, id, &h,
                             &(kofn_lent){at, bytes, kf_free, made.p});
}

/* Workers take turns. A worker gets a slice only when its outbox is empty. So a
 * worker that does not read has at most one slice in its outbox, for any number
 * of requests. */
uint32_t kf_away_next(const port *p)
{
    for (size_t k = 0; k < p->workers && p->serve.needs; k++) {
        uint32_t id = (uint32_t)((p->serve.server + k) % p->workers);
        const worker *w = p->worker[id];

        if (!w->gone && w->held.asked && w->line.outbox.count == 0)
            return id;
    }
    return NOBODY;
}

kofn_status kf_away_serve(port *p, uint32_t id)
{
    assert(id < p->workers);
    assert(p->worker[id]->held.asked > 0);
    assert(p->serve.needs > 0);
    worker *w = p->worker[id];
    need n = w->held.need[w->held.need_first];

    w->held.need_first = (w->held.need_first + 1) % NEEDS_MOST;
    w->held.asked--;
    p->serve.needs--;
    p->serve.server = id + 1;
    p->serve.served = w->held.alone = kf_away_now(&p->base);
    /* The worker may have been given another block since. */
    return is_slice(w, &n) ? post_slice(p, id, &n) : KOFN_OK;
}
