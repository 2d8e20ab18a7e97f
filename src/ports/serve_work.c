/* serve_work.c -- operands of a worker's tasks: resident, sent with the task,
 * or both.
 *
 * A task owns the operands that were sent with it, and they are dropped with
 * it. The server keeps inputs that later tasks may name. */
#include "serve.h"

#include "data/kernel.h"

#include <assert.h>
#include <string.h>

/* ---- inputs -------------------------------------------------------------- */

void kf_serve_forget_inputs(server *s)
{
    for (size_t i = 0; i < INPUTS; i++) {
        kf_buffer_drop(s->input[i].buffer);
        s->input[i] = (input){0};
    }
}

static kofn_status known_input(server *s, const kf_head *h, kf_buffer **in)
{
    for (size_t i = 0; i < INPUTS; i++) {
        kf_buffer *p = s->input[i].buffer;

        if (p && s->input[i].id == h->input && p->m.rows == h->rows &&
            p->m.cols == h->cols && p->m.dtype == h->dtype) {
            *in = kf_buffer_keep(p);
            return KOFN_OK;
        }
    }
    return kf_fail(KOFN_STATE, "the input of task %u is not here", h->task);
}

/* Finds the task's input or takes it from the packet. If the kernel sums over
 * the input, only the task's strips come, which match the block. */
static kofn_status find_input(server *s, const kf_head *h, kofn_packet *k,
                              kf_msg *m)
{
    const kf_block *b = kf_block_of(s->block.block_spec.block, h->operand);
    const kf_kernel *how = kf_kernel_of(h->how);
    size_t strips = how->inner ? (h->hi - h->lo) * b->components : 0, bytes;
    size_t rows = how->inner && !how->left ? strips : h->rows;
    size_t cols = how->inner && how->left ? strips : h->cols;

    if (k->body_bytes == 0)
        return known_input(s, h, &m->in);
    if (!kf_mul(rows, cols, &bytes) ||
        !kf_mul(bytes, kf_dtype_size(h->dtype), &bytes) ||
        bytes != k->body_bytes)
        return kf_fail(KOFN_FORMAT, "an input of %zu x %zu has %zu bytes", rows,
                       cols, k->body_bytes);
    if (how->inner)
        TRY(kf_post_check(s->w->t, h, k->body, k->body_bytes));
    TRY(kf_buffer_new(&m->in, h->rows, h->cols, h->dtype));
    if (how->inner) {
        kf_post_strips(&m->in->m, m, b->components, (char *)(uintptr_t)k->body,
                       true);
        return KOFN_OK;
    }
    TRY(kf_post_take_body(s->w->t, k, h, &m->in));
    kf_buffer_drop(s->input[INPUTS - 1].buffer);
    memmove(s->input + 1, s->input, (INPUTS - 1) * sizeof *s->input);
    s->input[0] = (input){h->input, kf_buffer_keep(m->in)};
    return KOFN_OK;
}

/* ---- checks of tasks ----------------------------------------------------- */

kf_msg kf_serve_task_of(const kf_head *h)
{
    return (kf_msg){.type = KF_MSG_WORK,
                    .task = h->task,
                    .round = h->round,
                    .product = h->product,
                    .row = h->row,
                    .operand = h->operand,
                    .state = h->state,
                    .how = h->how,
                    .lo = h->lo,
                    .hi = h->hi};
}

/* Computes the bytes of the operand pair that a task brings; false if the sizes
 * are impossible. */
static bool pair_bytes(const kf_head *h, size_t *bytes)
{
    size_t first, second;

    return h->rows && h->cols && kf_mul(h->out_rows, h->rows, &first) &&
           kf_mul(h->rows, h->cols, &second) && second <= SIZE_MAX - first &&
           kf_mul(first + second, kf_dtype_size(h->dtype), bytes);
}

/* Returns the bytes held by waiting tasks, without cancelled ones. */
size_t kf_serve_carried(const server *s)
{
    size_t sum = 0;

    for (size_t i = 0; i < s->pending_count; i++) {
        const pending_task *e = &s->pending[s->first + i];
        const kf_msg *m = &e->msg;

        if (m->with)
            sum += kf_buffer_bytes(m->in) + kf_buffer_bytes(m->with) +
                   KF_WIRE_CHANGE;
        else if (m->block && !e->cancelled)
            sum += kf_block_bytes(m->block) + kf_buffer_bytes(m->in) +
                   kf_buffer_bytes(m->result);
    }
    return sum;
}

size_t kf_serve_memory(const server *s)
{
    size_t held = 0, most = s->w->opt.memory;

    if (!most)
        return 0;
    for (size_t i = 0; i < s->w->servers; i++) {
        const server *other = s->w->server[i];
        const kf_block *b = other->block.block_spec.block;

        if (other != s && !other->over)
            held += kf_serve_carried(other);
        for (; b && other != s && !other->over; b = b->next)
            held += kf_block_bytes(b);
    }
    return held < most ? most - held : 1;
}

/* Checks a task that brings its block. Such a block has one component, and its
 * size follows from the input and the result. */
static kofn_status pair_fits(const server *s, const kf_head *h, const kf_msg *m,
                             const kofn_matrix *in, const kofn_matrix *out)
{
    kf_block b = {.components = 1,
                  .rows = h->out_rows,
                  .cols = h->rows,
                  .dtype = h->dtype,
                  .row = h->row};
    size_t most = s->w->opt.memory ? kf_serve_memory(s) : SIZE_MAX;
    size_t held = kf_serve_carried(s), bytes, result;

    if (h->how != KF_HOW_ROWS || h->updates != 0 || h->operand != 0 ||
        !pair_bytes(h, &bytes) || !kf_mul(h->out_rows, h->out_cols, &result) ||
        !kf_mul(result, kf_dtype_size(h->dtype), &result) ||
        result > SIZE_MAX - bytes)
        return kf_fail(KOFN_SHAPE,
                       "the sizes of the operands of task %u are not valid",
                       h->task);
    TRY(kf_work_fits(&b, m, in, out));
    if (held > most || bytes + result > most - held)
        return kf_fail(
            KOFN_UNSUITED,
            "task %u needs %zu bytes, and %zu bytes of the memory limit of this "
            "worker are free; raise the limit, or cut products into more parts",
            h->task, bytes + result, held > most ? 0 : most - held);
    return KOFN_OK;
}

kofn_status kf_serve_can_do(const server *s, const kf_head *h, const kf_msg *m)
{
    kofn_matrix in = {NULL, h->rows, h->cols, h->cols, h->dtype};
    kofn_matrix out = {NULL, h->out_rows, h->out_cols, h->out_cols, h->dtype};
    const kf_block *b = kf_block_of(s->block.block_spec.block, h->operand);

    if (s->pending_count >= KF_WAITING)
        return kf_fail(KOFN_STATE, "%zu tasks wait already", s->pending_count);
    if (!h->block)
        return pair_fits(s, h, m, &in, &out);
    if (!s->block.whole)
        return kf_fail(KOFN_STATE, "there is no block to work on");
    if (h->block != s->block_id || !b)
        return kf_fail(KOFN_STATE,
                       "task %u is of another block than the one that is here",
                       h->task);
    return kf_work_fits(b, m, &in, &out);
}

bool kf_serve_is_wanted(const server *s, const kf_head *h, size_t bytes)
{
    kf_msg m = kf_serve_task_of(h);
    size_t numbers, most;

    if (kf_serve_can_do(s, h, &m))
        return false;
    if (!h->block)
        return pair_bytes(h, &most) && bytes == most;
    return kf_mul(h->rows, h->cols, &numbers) &&
           bytes / kf_dtype_size(h->dtype) <= numbers;
}

/* ---- pairs --------------------------------------------------------------- */

/* Splits the received pair into a block and an input, which are views of it. */
static kofn_status take_pair(server *s, const kf_head *h, kofn_packet *k,
                             kf_msg *m)
{
    size_t bytes = 0, size = kf_dtype_size(h->dtype);
    kofn_matrix in = {NULL, h->rows, h->cols, h->cols, h->dtype};
    kf_buffer *both;
    kofn_status st;

    assert(!h->block);
    if (!pair_bytes(h, &bytes) || bytes != k->body_bytes)
        return kf_fail(KOFN_FORMAT,
                       "the operands of task %u have %zu bytes, not %zu",
                       h->task, k->body_bytes, bytes);
    TRY(kf_buffer_new(&both, 1, bytes / size, h->dtype));
    st = kf_post_take_body(s->w->t, k, h, &both);
    in.data = (char *)both->m.data + h->out_rows * h->rows * size;
    if (!st)
        st = kf_buffer_view(&m->in, both, &in);
    if (!st)
        st = kf_block_around(&m->block, both, 1, h->out_rows, h->rows);
    if (!st)
        m->block->row = h->row;
    kf_buffer_drop(both);
    return st;
}

kofn_status kf_serve_operands(server *s, const kf_head *h, kofn_packet *k,
                              kf_msg *m)
{
    return h->block ? find_input(s, h, k, m) : take_pair(s, h, k, m);
}
