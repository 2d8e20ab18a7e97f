/* pair.c -- products of streams: both operands come with each product.
 *
 * Blocks and messages are made for the rows that a step of the core gives out.
 * They are dropped when no worker can be asked for them again.  A product that
 * is over is decoded when the coordinator is idle, while workers are at the
 * next round.
 *
 * The product owns its blocks and messages while workers may be asked for them.
 * It is decoded in slices, so that messages are received in between. */
#include "job.h"

#include <assert.h>

/* bytes of results that are decoded at a time */
#define SLICE ((size_t)2 << 20)

/* ---- putting ------------------------------------------------------------- */

/* Refuses operands of a stream's product that do not fit each other, the output
 * or the plan's type. */
static kofn_status check_pair(const kofn_job *j, const kofn_matrix *X,
                              const kofn_matrix *Y, const kofn_matrix *out)
{
    kofn_dtype dtype = j->plan->layout.problem.dtype;

    if (!kf_is_stream(j))
        return kf_fail(KOFN_STATE,
                       "the plan is for %s, with a resident operand; call "
                       "kofn_put",
                       j->plan->op->name);
    TRY(kf_job_check_room(j));
    TRY(kf_mat_check_matrix(X, "X"));
    TRY(kf_mat_check_matrix(Y, "Y"));
    TRY(kf_mat_check_matrix(out, "the product's output"));
    if (X->cols != Y->rows)
        return kf_fail(KOFN_SHAPE, "X is %zu x %zu and Y is %zu x %zu", X->rows,
                       X->cols, Y->rows, Y->cols);
    if (out->rows != X->rows || out->cols != Y->cols)
        return kf_fail(KOFN_SHAPE,
                       "the product's output is %zu x %zu and must "
                       "be %zu x %zu",
                       out->rows, out->cols, X->rows, Y->cols);
    if (X->dtype != dtype || Y->dtype != dtype || out->dtype != dtype)
        return kf_fail(KOFN_SHAPE,
                       "X, Y and output must be of the plan's type");
    return KOFN_OK;
}

/* Cuts and scales the operands.  If Y is equilibrated, the product keeps a
 * copy. */
static kofn_status lend(const kofn_job *j, product *p, const kofn_matrix *X,
                        kofn_matrix Y)
{
    kf_held *first = &p->pair.first;
    double most;

    assert(!first->plan);
    first->plan = &p->shape;
    TRY(kf_job_hold(j, first, X, "X"));
    first->resident.lent = true;
    TRY(kf_mat_check_range(&Y, "Y", &most));
    TRY(kf_equilibrate_input(&first->levels, &p->shape, &p->scaled, &Y,
                             &p->pair.second));
    kf_equilibrate_back(&first->levels, &p->scaled, &p->shape, &p->back);
    if (p->pair.second)
        TRY(kf_mat_check_range(&Y, "Y, with what X is divided by", &most));
    return kf_messages_lend(
        &p->messages, &p->shape, &Y,
        kf_job_scale_input(&first->resident, p, &p->shape, &Y, most));
}

kofn_status kf_pair_open(kofn_job *j, const kofn_matrix *X,
                         const kofn_matrix *Y, kofn_matrix *out)
{
    kofn_status st;
    product *p;

    TRY(check_pair(j, X, Y, out));
    p = kf_job_last_idle(j);
    if (!p)
        return KOFN_NOMEM;
    TRY(kf_code_shape(&p->shape, j->plan, X->rows, X->cols, Y->cols));
    TRY(kf_job_check_longest(j, &p->shape));
    st = lend(j, p, X, *Y);
    if (st) {
        kf_pair_release(p);
        return st;
    }
    p->out = *out;
    kf_job_reset(j, p, &p->shape);
    kf_job_opened(j, p);
    return KOFN_OK;
}

void kf_pair_release(product *p)
{
    for (size_t i = 0; i < p->pair.blocks; i++) {
        kf_block_drop(p->pair.block[i]);
        p->pair.block[i] = NULL;
    }
    kf_free(p->pair.undecoded.source);
    kf_free(p->pair.undecoded.tasks);
    p->pair.undecoded = (kf_undecoded){.source = NULL};
    if (!p->pair.first.plan)
        return;
    kf_job_let_go(&p->pair.first);
    kf_free(p->pair.second);
    p->pair.second = NULL;
    p->pair.first = (kf_held){.plan = NULL};
    kf_messages_release(&p->messages);
}

/* ---- rounds -------------------------------------------------------------- */

kofn_status kf_pair_begin_round(kofn_job *j)
{
    kf_stream_rounds *s = &j->stream;

    assert(!s->in_round);
    for (size_t i = 0; i < j->open.count;
         i++) /* decoders do not live for ever */
        while (j->open.list[i]->pair.undecoded.how.type &&
               j->open.list[i]->pair.undecoded.round < s->rounds)
            TRY(kf_pair_decode_some(j, j->open.list[i]));
    s->in_round = true;
    s->rounds++;
    for (size_t i = 0; i < s->loads; i++)
        s->load[i] = 0;
    return KOFN_OK;
}

kofn_status kf_pair_begin(kofn_job *j, product *p, kofn_event *ev)
{
    const kofn_problem *pb = &p->shape.layout.problem;

    TRY(kf_pair_begin_round(j));
    p->rep.began = j->stream.rounds;
    ev->m = pb->m;
    ev->n = pb->n;
    ev->p = pb->p;
    return KOFN_OK;
}

/* Drops the blocks of rows that are not needed again.  Rows that may be asked
 * for again are kept; only the worker that had them has them. */
static void forget_rows(const kofn_job *j, product *p)
{
    for (size_t i = 0; i < p->start.tasks->count; i++) {
        const kf_slot *s = &p->start.tasks->task[i];

        if (s->row >= p->pair.blocks || !p->pair.block[s->row] ||
            (j->plan->layout.repeats && s->outcome == KF_OUTCOME_CANCELLED))
            continue;
        kf_block_drop(p->pair.block[s->row]);
        p->pair.block[s->row] = NULL;
        kf_messages_forget(&p->messages, s->row);
    }
}

void kf_pair_end_round(kofn_job *j)
{
    kofn_stream_round r;

    assert(j->stream.in_round);
    j->stream.in_round = false;
    for (size_t i = 0; i < j->open.count; i++)
        if (kf_job_is_running(j->open.list[i]))
            forget_rows(j, j->open.list[i]);
    if (!j->stream.on_round)
        return;
    kf_core_round(j->core, &r);
    for (size_t i = 0; i < j->stream.loads; i++)
        r.load = kf_larger(r.load, j->stream.load[i]);
    j->stream.on_round(j->stream.ud, &r);
}

void kofn_on_round(kofn_job *j,
                   void (*f)(void *ud, const kofn_stream_round *round),
                   void *ud)
{
    j->stream.on_round = f;
    j->stream.ud = ud;
}

/* ---- tasks --------------------------------------------------------------- */

kofn_status kf_pair_encode(kofn_job *j, product *p, const size_t *rows,
                           size_t n)
{
    size_t *fresh = kf_new(n, sizeof *fresh), count = 0;
    kf_block **made = kf_new(n, sizeof *made);
    kofn_status st = fresh && made ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; !st && i < n; i++) {
        st = kf_reach(&p->pair.block, &p->pair.blocks, rows[i] + 1,
                      sizeof *p->pair.block);
        if (!st && !p->pair.block[rows[i]])
            fresh[count++] = rows[i];
    }
    if (!st && count)
        st = kf_data_encode(&p->pair.first.resident,
                            kf_core_use(j->core, 0)->code, fresh, count, made);
    for (size_t i = 0; !st && i < count; i++)
        p->pair.block[fresh[i]] = made[i];
    kf_free(fresh);
    kf_free(made);
    return st;
}

kofn_status kf_pair_given(kofn_job *j, product *p, kf_msg *m)
{
    assert(m->row < p->pair.blocks);
    assert(p->pair.block[m->row]);
    TRY(kf_reach(&j->stream.load, &j->stream.loads, (size_t)m->worker + 1,
                 sizeof *j->stream.load));
    m->block = kf_block_keep(p->pair.block[m->row]);
    m->round = j->stream.rounds;
    j->stream.load[m->worker] += kf_work_size(m->block, m);
    p->rep.sent += kf_block_bytes(m->block);
    return KOFN_OK;
}

/* ---- decoding ------------------------------------------------------------ */

kofn_status kf_pair_decode_later(kofn_job *j, product *p, const kofn_action *a,
                                 kf_source *source)
{
    uint32_t *tasks = kf_new(a->count, sizeof *tasks);

    assert(!p->pair.undecoded.how.type);
    p->pair.undecoded = (kf_undecoded){
        .how = *a, .source = source, .tasks = tasks, .round = j->stream.rounds};
    if (!tasks)
        return KOFN_NOMEM;
    memcpy(tasks, a->tasks, a->count * sizeof *tasks);
    p->pair.undecoded.how.tasks = tasks;
    for (size_t i = 0; i < a->count; i++)
        ++*(kf_job_task(p, a->tasks[i])->row < p->shape.layout.plain
                ? &p->rep.plain
                : &p->rep.coded);
    return KOFN_OK;
}

static void finish(kofn_job *j, product *p, kofn_status st)
{
    kf_job_finish_product(j, p, st);
    kf_pair_release(p);
}

void kf_pair_over(kofn_job *j, product *p, kofn_status st)
{
    p->rep.ended = j->stream.rounds;
    if (st >= 0 && p->pair.undecoded.how.type)
        p->pair.undecoded.status = st;
    else
        finish(j, p, st);
}

product *kf_pair_undecoded(const kofn_job *j)
{
    for (size_t i = 0; i < j->open.count; i++)
        if (j->open.list[i]->pair.undecoded.how.type)
            return j->open.list[i];
    return NULL;
}

/* Returns the number of strips of a slice. */
static size_t stride(const product *p, const kofn_action *a)
{
    const kofn_layout *L = &p->shape.layout;
    size_t width = kf_ceil_div(p->out.cols, L->wants / L->grid_rows);
    size_t bytes = a->decoder->results * width * kf_dtype_size(p->out.dtype);

    return kf_max(1, SLICE / kf_max(1, bytes));
}

kofn_status kf_pair_decode_some(kofn_job *j, product *p)
{
    kofn_action slice = p->pair.undecoded.how;

    assert(slice.type);
    assert(slice.lo < slice.hi);
    slice.hi = kf_min(slice.hi, slice.lo + stride(p, &slice));
    TRY(kf_job_decode(j, p, &slice, p->pair.undecoded.source));
    p->pair.undecoded.how.lo = slice.hi;
    if (slice.hi == p->pair.undecoded.how.hi)
        finish(j, p, p->pair.undecoded.status);
    return KOFN_OK;
}
