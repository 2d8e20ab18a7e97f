/* act.c -- what the core has the body do: hand out blocks and work, mix,
 * check, decode, deliver.
 *
 * Takes actions of the core one after the other; results and buffers are the
 * product's.  It may not decide: what an action does not say is not done. */
#include "job.h"

#include "base/clock.h"
#include "base/report.h"
#include "code/operation.h"
#include "data/kernel.h"

#include <assert.h>

#define SENT_LATE 10000 /* ns: a task that is sent later is noted */

/* ---- the clock ----------------------------------------------------------- */

/* The coordinator's own work: on a simulated port it costs simulated time. */
typedef struct stopwatch {
    kofn_time start, cpu;
} stopwatch;

static stopwatch start_work(const kofn_job *j)
{
    return (stopwatch){kf_job_now(j), j->port->spend ? kf_cpu_time() : 0};
}

static kofn_time end_work(kofn_job *j, stopwatch w, const char *what)
{
    kofn_time now;

    if (j->port->spend)
        j->port->spend(j->port, kf_cpu_time() - w.cpu);
    now = kf_job_now(j);
    if (kf_job_is_watched(j))
        kf_job_note(j, &(kofn_note){.own = what, .now = now, .since = w.start});
    return now - w.start;
}

static void note_now(kofn_job *j, kofn_note n)
{
    if (!kf_job_is_watched(j))
        return;
    n.now = n.since = kf_job_now(j);
    kf_job_note(j, &n);
}

/* ---- actions ------------------------------------------------------------- */

static kofn_status do_store(kofn_job *j, const kofn_action *a)
{
    TRY(kf_grow(&j->owed, &j->owed_cap, j->owing, sizeof *j->owed));
    TRY(kf_grow(&j->owed_seat, &j->owed_seat_cap, j->owing,
                sizeof *j->owed_seat));
    j->owed[j->owing] = a->worker;
    j->owed_seat[j->owing++] = a->seat;
    return KOFN_OK;
}

static kofn_status send_blocks(kofn_job *j, kf_block **blocks)
{
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < j->owing; i++) {
        kf_msg m = {
            .type = KF_MSG_STORE, .worker = j->owed[i], .block = blocks[i]};

        if (st) {
            kf_block_drop(blocks[i]);
            continue;
        }
        j->rep.sent += kf_block_bytes(blocks[i]);
        note_now(j, (kofn_note){.own = "storing", .worker = m.worker});
        j->look_at = 0;
        if (!kf_block_whole(m.block))
            st = kf_heal_add(j, m.worker, j->owed_seat[i]);
        if (st)
            kf_block_drop(m.block);
        else
            st = j->port->send(j->port, &m);
    }
    return st;
}

/* Encodes the blocks of all operands for the seats that are owed one; those of
 * an operand follow those of the operands before it. */
static kofn_status encode_blocks(kofn_job *j, kf_block **blocks)
{
    kf_block **more = kf_new(j->owing, sizeof *more);
    kofn_status st = more ? KOFN_OK : KOFN_NOMEM;

    for (size_t i = 0; i < j->owing; i++)
        blocks[i] = NULL;
    for (size_t left = j->operands; !st && left > 0; left--) {
        size_t o = left - 1;

        st = (j->held[o].changes ? kf_data_empty_blocks : kf_data_encode)(
            &j->held[o].resident,
            kf_core_code(j->core, KOFN_USES * (uint32_t)o), j->owed_seat,
            j->owing, more);
        for (size_t i = 0; !st && i < j->owing; i++) {
            more[i]->next = blocks[i];
            blocks[i] = more[i];
        }
    }
    for (size_t i = 0; st && i < j->owing; i++)
        kf_block_drop(blocks[i]);
    kf_free(more);
    return st;
}

kofn_status kf_job_hand_out(kofn_job *j)
{
    kf_block **blocks = kf_new(j->owing, sizeof *blocks);
    stopwatch watch = start_work(j);
    kofn_status st = blocks ? encode_blocks(j, blocks) : KOFN_NOMEM;

    j->rep.encoding += end_work(j, watch, "encode");
    if (!st)
        st = send_blocks(j, blocks);
    kf_free(blocks);
    j->owing = 0;
    return st;
}

/* Room for what comes of strips [lo, hi). */
static kofn_status take_result(kofn_job *j, const product *p,
                               const kf_kernel *k, const kf_msg *m,
                               kf_buffer **out)
{
    kf_extent block = kf_extent_of(p->use);
    kf_work w = {.in = &m->in->m, .lo = m->lo, .hi = m->hi};
    size_t rows, cols;

    if (!k->gives(&block, &w, &rows, &cols))
        return kf_nomem(SIZE_MAX);
    return kf_pool_take(&j->spare, rows, cols, p->use->layout.problem.dtype,
                        out);
}

/* As seats of all groups are numbered. */
static size_t row_in_plan(const product *p, size_t row, size_t group)
{
    return row * p->use->layout.groups + group;
}

/* The core's number of the oldest product that is running; there is one
 * whenever work is given out. */
static uint32_t oldest_running(const kofn_job *j)
{
    size_t i = 0;

    while (!kf_job_is_running(j->open[i]))
        i++;
    assert(i < j->opens);
    return j->open[i]->core;
}

/* Bytes that go with it: a worker is sent an input once, however many tasks it has of
 * it. */
static kofn_status count_input(product *p, uint32_t worker, const kf_buffer *in)
{
    while (p->feds <= worker) {
        TRY(kf_grow(&p->fed, &p->fed_cap, p->feds, sizeof *p->fed));
        p->fed[p->feds++] = NULL;
    }
    if (p->fed[worker] != in)
        p->rep.sent += kf_buffer_bytes(in);
    p->fed[worker] = in;
    return KOFN_OK;
}

/* A task counts as sent when the event came that it was given out for. */
static void note_sent(kofn_job *j, const product *p, const kf_slot *s)
{
    if (kf_job_is_watched(j) && kf_job_now(j) - s->sent > SENT_LATE)
        note_now(
            j, (kofn_note){.own = "sent", .product = p->core, .task = s->task});
}

kofn_status kf_job_send_task(kofn_job *j, product *p, kf_slot *s)
{
    const kf_kernel *kernel = kf_kernel_for(p->use);
    kf_msg m = {.type = KF_MSG_WORK,
                .worker = s->worker,
                .product = p->core,
                .task = s->task,
                .row = s->row,
                .oldest = oldest_running(j),
                .round = p->core,
                .operand = p->operand,
                .velocity = p->velocity,
                .how = kernel->how,
                .lo = s->lo,
                .hi = s->hi};
    kofn_status st;

    assert(s->lo < s->hi);
    note_sent(j, p, s);
    m.in = kf_messages_take(&p->messages, row_in_plan(p, s->row, s->group));
    st = count_input(p, s->worker, m.in);
    if (!st && kf_is_stream(j))
        st = kf_pair_given(j, p, &m);
    if (!st)
        st = take_result(j, p, kernel, &m, &m.result);
    if (st) {
        kf_buffer_drop(m.in);
        kf_block_drop(m.block);
        return st;
    }
    return j->port->send(j->port, &m);
}

static kofn_status do_work(kofn_job *j, product *p, const kofn_action *a)
{
    kf_slot *s = kf_job_task(p, a->task);
    bool hold;

    TRY(kf_pace_hold(j, p, s, &hold));
    return hold ? KOFN_OK : kf_job_send_task(j, p, s);
}

static kofn_status do_mix(kofn_job *j, product *p, const kofn_action *a)
{
    stopwatch watch = start_work(j);
    kofn_status st = kf_messages_mix(&p->messages, a->decoder, a->lo, a->hi);

    p->rep.encoding += end_work(j, watch, "mix");
    return st;
}

static kofn_status do_cancel(kofn_job *j, product *p, const kofn_action *a)
{
    kf_msg m = {.type = KF_MSG_CANCEL,
                .worker = a->worker,
                .product = a->product,
                .task = a->task};

    kf_slot *s = kf_job_task(p, a->task);

    return s && kf_pace_cancel(j, s) ? KOFN_OK : j->port->send(j->port, &m);
}

static kofn_status do_evict(kofn_job *j, const kofn_action *a)
{
    kf_msg m = {.type = KF_MSG_EVICT, .worker = a->worker};

    j->rep.left++;
    return j->port->send(j->port, &m);
}

/* The results of the tasks of an action. */
static kf_source *sources(const product *p, const kofn_action *a)
{
    kf_source *source = kf_new(a->count, sizeof *source);

    for (size_t i = 0; source && i < a->count; i++) {
        const kf_slot *s = kf_job_task(p, a->tasks[i]);

        assert(s && s->result);
        source[i] = (kf_source){&s->result->m, s->lo, s->hi};
    }
    return source;
}

static kofn_status decode(kofn_job *j, product *p, const kofn_action *a,
                          const kf_source *source)
{
    const kofn_plan *plan = p->window ? &p->shape : p->use;
    size_t from = p->window ? p->lo : 0;

    if (!a->decoder) {
        TRY(kf_data_add_up(source, a->count, &p->out));
        return kf_range_restore(&p->out, &p->back);
    }
    if (j->tally.age)
        return kf_tally_recall(&j->tally, p->use, a->decoder, source, &p->out,
                               &j->scratch);
    if (j->tally.parts)
        TRY(kf_tally_count(&j->tally,
                           kf_core_code(j->core, kf_job_use_number(p)),
                           a->decoder));
    TRY(kf_decode(plan, a->decoder, source,
                  (kf_band){a->group, a->lo - from, a->hi - from}, &p->out,
                  &j->scratch));
    return kf_data_restore(plan, a->decoder,
                           (kf_band){a->group, a->lo - from, a->hi - from},
                           &p->back, &p->out);
}

/* Notes that a result is no number, and whose answers it is from: this spoils
 * the product itself, not the next, and is said when the product is over. */
static void note_odd(product *p, const kofn_action *a, const kf_source *source)
{
    if (p->odd)
        return;
    p->odd = KOFN_NONFINITE;
    snprintf(p->why, sizeof p->why, "%s", kofn_errmsg());
    for (size_t i = 0; i < a->count; i++) {
        if (!kf_mat_check_finite(source[i].result, "an answer"))
            continue;
        if (p->room)
            p->odd = KOFN_CORRUPT;
        snprintf(p->why, sizeof p->why,
                 "worker %u answered NaN or infinity; %s",
                 kf_job_task(p, a->tasks[i])->worker,
                 p->room || p->use->op->factors == 0
                     ? "have wrong answers found (option errors)"
                     : "the product may have elements that its type cannot "
                       "hold: divide an operand by a power of two");
    }
}

kofn_status kf_job_decode(kofn_job *j, product *p, const kofn_action *a,
                          const kf_source *source)
{
    stopwatch watch = start_work(j);
    kofn_status st = decode(j, p, a, source);

    if (st == KOFN_NONFINITE) {
        note_odd(p, a, source);
        st = KOFN_OK;
    }
    p->rep.decoding += end_work(j, watch, "decode");
    return st;
}

/* Strips of a window are counted from its first. */
static void shift(const product *p, kf_source *source, size_t n)
{
    for (size_t i = 0; p->window && i < n; i++) {
        source[i].lo -= p->lo;
        source[i].hi -= p->lo;
    }
}

static kofn_status do_decode(kofn_job *j, product *p, const kofn_action *a)
{
    kf_source *source = sources(p, a);
    kofn_status st;

    if (!source)
        return KOFN_NOMEM;
    if (kf_is_stream(j))
        return kf_pair_decode_later(j, p, a, source);
    shift(p, source, a->count);
    st = kf_job_decode(j, p, a, source);
    kf_free(source);
    return st;
}

static kofn_status do_check(kofn_job *j, product *p, const kofn_action *a)
{
    kf_source *source = sources(p, a);
    stopwatch watch = start_work(j);
    uint32_t use = kf_job_use_number(p);
    kf_guard_code by = {kf_core_code(j->core, use),
                        kf_core_cache(j->core, use)};
    kofn_status st = KOFN_NOMEM;

    if (source)
        st = kf_guard_check(&j->guard, kf_job_held(j, p), &p->measure, by, a,
                            source);
    kf_free(source);
    p->rep.decoding += end_work(j, watch, "check");
    return st ? st : kf_scrub_receive(j, p, a);
}

/* ---- the end of a product ------------------------------------------------ */

/* Copies what the report points to, since the core's tables go on changing; of
 * a sum the weights of its parts as well. */
static kofn_status fill_tables(const kofn_job *j, tables *t, size_t lanes,
                               const kf_core_view *v)
{
    while (t->row_cap < v->workers)
        TRY(kf_grow(&t->rows, &t->row_cap, t->row_cap, sizeof *t->rows));
    while (t->located_cap < v->workers)
        TRY(kf_grow(&t->located, &t->located_cap, t->located_cap,
                    sizeof *t->located));
    while (t->state_cap < v->workers)
        TRY(kf_grow(&t->states, &t->state_cap, t->state_cap,
                    sizeof *t->states));
    for (size_t i = 0; i < v->workers; i++) {
        t->rows[i] = v->rows[i] * lanes;
        t->located[i] = v->located[i];
        t->states[i] = kf_core_worker(j->core, (uint32_t)i);
    }
    if (!j->tally.parts)
        return KOFN_OK;
    /* a sum is decoded in the step that ends it: the tally is of this one */
    if (!t->weights)
        t->weights = kf_new(j->tally.parts, sizeof *t->weights);
    if (!t->ages)
        t->ages = kf_zero(j->tally.parts, sizeof *t->ages);
    if (!t->weights || !t->ages)
        return KOFN_NOMEM;
    memcpy(t->weights, j->tally.weight, j->tally.parts * sizeof *t->weights);
    if (j->tally.age)
        memcpy(t->ages, j->tally.age, j->tally.parts * sizeof *t->ages);
    return KOFN_OK;
}

static void report(kofn_job *j, product *p, const kofn_action *a,
                   const kf_core_view *v)
{
    kofn_report *r = &p->rep;

    r->noise = a->noise;
    r->predicted = a->predicted + p->measure.error;
    r->live = (unsigned)v->live;
    r->late = kf_fates_late(p->tasks);
    r->dropped = (unsigned)(v->dropped - j->dropped_before);
    r->rows = p->tables.rows;
    r->located = p->tables.located;
    r->states = p->tables.states;
    r->workers = v->workers;
    r->corrupt = (unsigned)v->corrupt;
    r->liars = v->liars;
    r->floor = p->measure.floor;
    r->drift = p->measure.drift;
    r->healing = (unsigned)j->heal.count;
    r->parts = j->tally.parts;
    r->weights = p->tables.weights;
    r->ages = j->tally.age ? p->tables.ages : NULL;
    j->dropped_before = v->dropped;
}

kofn_status kf_job_report_rest(kofn_job *j, kofn_time began, kofn_report *out)
{
    kofn_report r = j->rep;
    kf_core_view v;

    kf_core_look(j->core, &v);
    TRY(fill_tables(j, &j->tables, j->plan->layout.lanes, &v));
    r.took = kf_job_now(j) - began;
    r.live = (unsigned)v.live;
    r.healing = (unsigned)j->heal.count;
    r.rows = j->tables.rows;
    r.states = j->tables.states;
    r.located = j->tables.located;
    r.workers = v.workers;
    r.liars = v.liars;
    kf_report_add(&j->total, &r);
    j->rep = (kofn_report)KOFN_REPORT_INIT;
    *out = r;
    return KOFN_OK;
}

/* Nothing more is to come of its tasks; `round`: the number to be told. */
static void close_tasks(kofn_job *j, product *p, unsigned round)
{
    for (size_t i = 0; i < p->tasks->count; i++) {
        kf_buffer *came = p->tasks->task[i].result;

        p->rep.messages += came != NULL;
        p->rep.scalars += came ? came->m.rows * came->m.cols : 0;
        kf_pool_give(&j->spare, came);
    }
    if (kf_job_is_watched(j))
        kf_job_note(j, &(kofn_note){.own = "over",
                                    .since = p->began,
                                    .now = p->began + p->rep.took,
                                    .status = p->ended,
                                    .round = round,
                                    .product = p->core});
    kf_fates_close(&j->fates, p->core);
    p->tasks = NULL;
}

void kf_job_finish_product(kofn_job *j, product *p, kofn_status st)
{
    p->rep.took = kf_job_now(j) - p->began;
    p->ended = st >= 0 && p->odd ? p->odd : st;
    p->rep.unchecked = p->as == KOFN_USE_PARTS;
    close_tasks(j, p, p->number);
}

/* Begins an uncoded product again, coded: a worker was missing, or answered
 * what is no number. */
static void begin_again(kofn_job *j, product *p)
{
    close_tasks(j, p, 0);
    kf_job_code_it(j, p);
    p->odd = KOFN_OK;
    p->why[0] = 0;
    p->feds = 0;
    p->begun = false;
    p->again = true;
}

/* Refuses an answer that may be less exact than the caller tolerates; where
 * results were compared, lies below the floor are counted. */
static void refuse_inexact(const kofn_job *j, product *p)
{
    const kofn_report *r = &p->rep;

    if (j->opt.tolerance <= 0 || r->predicted <= j->opt.tolerance || p->odd ||
        p->scrubs)
        return;
    p->odd = KOFN_UNSTABLE;
    snprintf(
        p->why, sizeof p->why,
        "predicted relative error %.1e exceeds the tolerance %.1e: rounding "
        "comes to %.1e, and wrong results that are not seen may come to "
        "%.1e; use more workers, another basis or a larger tolerance",
        r->predicted, j->opt.tolerance, r->predicted - p->measure.error,
        p->measure.error);
}

/* Too few answered in time, and of one it is known why: by the last line of what it
 * said, which of a traceback is what was raised. */
static void tell_failure(product *p, kofn_status st)
{
    const char *from = p->failure, *to, *line;
    size_t n = strlen(p->why);

    if (!from || (st != KOFN_TOOFEW && st != KOFN_LATE))
        return;
    for (to = from + strlen(from); to > from && to[-1] == '\n';)
        to--;
    for (line = to; line > from && line[-1] != '\n';)
        line--;
    snprintf(p->why + n, sizeof p->why - n, "; worker %u failed: %.*s",
             p->failed_by, (int)(to - line), line);
}

/* The product is over: keep what the report wants. */
static kofn_status do_deliver(kofn_job *j, product *p, const kofn_action *a)
{
    kf_core_view v;

    kf_core_look_at(j->core, p->core, &v);
    TRY(fill_tables(j, &p->tables, p->use->layout.lanes, &v));
    report(j, p, a, &v);
    if (a->status >= 0)
        refuse_inexact(j, p);
    if (a->status < 0) {
        snprintf(p->why, sizeof p->why, "%s", a->why);
        tell_failure(p, a->status);
    }
    if (kf_is_stream(j))
        kf_pair_over(j, p, a->status);
    else if (p->as == KOFN_USE_PARTS && (a->status < 0 || p->odd))
        begin_again(j, p);
    else
        kf_job_finish_product(j, p, a->status);
    return KOFN_OK;
}

static kofn_status act_on_product(kofn_job *j, product *p, const kofn_action *a)
{
    switch (a->type) {
    case KOFN_DO_WORK:
        return do_work(j, p, a);
    case KOFN_DO_CANCEL:
        return do_cancel(j, p, a);
    case KOFN_DO_DECODE:
        return do_decode(j, p, a);
    case KOFN_DO_DELIVER:
        return do_deliver(j, p, a);
    case KOFN_DO_MIX:
        return do_mix(j, p, a);
    case KOFN_DO_CHECK:
        return do_check(j, p, a);
    case KOFN_DO_STORE:
    case KOFN_DO_EVICT:
    case KOFN_DO_END:
        break;
    }
    return KOFN_OK;
}

kofn_status kf_job_act(kofn_job *j, const kofn_action *a)
{
    if (a->type == KOFN_DO_STORE)
        return do_store(j, a);
    if (a->type == KOFN_DO_EVICT)
        return do_evict(j, a);
    if (a->type == KOFN_DO_END) {
        kf_pair_end_round(j);
        return KOFN_OK;
    }
    return act_on_product(j, kf_job_find(j, a->product), a);
}

/* ---- a step's actions ---------------------------------------------------- */

/* The inputs of all who are given work on this product in the step. */
static kofn_status encode_inputs(kofn_job *j, product *p, size_t n)
{
    size_t *rows, count = 0;
    stopwatch watch;
    kofn_status st = KOFN_OK;

    if (p->use->parts1 <= 1 && !kf_is_stream(j))
        return KOFN_OK;
    TRY_NEW(rows, n);
    for (size_t i = 0; i < n; i++)
        if (j->todo[i].type == KOFN_DO_WORK && j->todo[i].product == p->core)
            rows[count++] = row_in_plan(p, j->todo[i].row, j->todo[i].group);
    if (count > 0) {
        watch = start_work(j);
        st = kf_messages_encode(&p->messages,
                                kf_core_code(j->core, kf_job_use_number(p)),
                                rows, count);
        if (!st && kf_is_stream(j))
            st = kf_pair_encode(j, p, rows, count);
        p->rep.encoding += end_work(j, watch, "encode");
    }
    kf_free(rows);
    return st;
}

kofn_status kf_job_gather(kofn_job *j, size_t *n)
{
    *n = 0;
    do
        TRY(kf_grow(&j->todo, &j->todo_cap, *n, sizeof *j->todo));
    while (kofn_core_next(j->core, &j->todo[*n]) && ++*n);
    return KOFN_OK;
}

kofn_status kf_job_encode_inputs(kofn_job *j, size_t n)
{
    for (size_t i = 0; n > 0 && i < j->opens; i++)
        if (kf_job_is_running(j->open[i]))
            TRY(encode_inputs(j, j->open[i], n));
    return KOFN_OK;
}
