/* act.c -- what the core has the body do: hand out blocks and work, mix,
 * check, decode, deliver. */
#include "job.h"

#include "base/clock.h"
#include "code/operation.h"
#include "data/kernel.h"

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
    if (j->observers)
        kf_run_tell(
            j, &(kf_moment){
                   .type = KF_SPENT, .from = w.start, .to = now, .what = what});
    return now - w.start;
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

static kofn_status send_blocks(kofn_job *j, kofn_block **blocks)
{
    kofn_status st = KOFN_OK;

    for (size_t i = 0; i < j->owing; i++) {
        kofn_msg m = {
            .type = KOFN_MSG_STORE, .worker = j->owed[i], .block = blocks[i]};

        if (st) {
            kofn_block_drop(blocks[i]);
            continue;
        }
        j->rep.sent += kofn_block_bytes(blocks[i]);
        kf_run_tell_worker(j, KF_STORING, m.worker);
        j->look_at = 0;
        st = j->port->send(j->port, &m);
    }
    return st;
}

kofn_status kf_job_hand_out(kofn_job *j)
{
    kofn_block **blocks = kf_new(j->owing, sizeof *blocks);
    stopwatch watch = start_work(j);
    kofn_status st = KOFN_NOMEM;

    if (blocks)
        st = kf_data_encode(&j->resident, kofn_core_code(j->core, 0),
                            j->owed_seat, j->owing, blocks);
    j->rep.encoding += end_work(j, watch, "encode");
    if (!st)
        st = send_blocks(j, blocks);
    kf_free(blocks);
    j->owing = 0;
    return st;
}

/* Room for what comes of strips [lo, hi). */
static kofn_status take_result(kofn_job *j, const kf_kernel *k,
                               const kofn_msg *m, kofn_parcel **out)
{
    kf_extent block = kf_extent_of(j->use);
    kf_work w = {.in = &m->in->m, .lo = m->lo, .hi = m->hi};
    size_t rows, cols;

    if (!k->gives(&block, &w, &rows, &cols))
        return kf_nomem(SIZE_MAX);
    return kf_pool_take(&j->spare, rows, cols, j->use->layout.problem.dtype,
                        out);
}

/* As seats of all groups are numbered. */
static size_t row_in_plan(const kofn_job *j, const kofn_action *a)
{
    return a->row * j->use->layout.groups + a->group;
}

static kofn_status do_work(kofn_job *j, const kofn_action *a)
{
    const kf_kernel *kernel = kf_kernel_for(j->use);
    size_t index = a->task - j->first_task;
    kofn_msg m = {.type = KOFN_MSG_WORK,
                  .worker = a->worker,
                  .product = a->product,
                  .task = a->task,
                  .row = (uint32_t)a->row,
                  .round = j->rounds + 1,
                  .how = kernel->how,
                  .lo = a->lo,
                  .hi = a->hi};
    kofn_status st;

    j->next_task = a->task + 1;
    while (j->slots <= index) {
        TRY(kf_grow(&j->slot, &j->slot_cap, j->slots, sizeof *j->slot));
        j->slot[j->slots++] = (slot){.worker = a->worker,
                                     .lo = a->lo,
                                     .hi = a->hi,
                                     .group = a->group,
                                     .row = (uint32_t)a->row,
                                     .sent = kf_job_now(j)};
    }
    m.in = kf_messages_take(&j->messages, row_in_plan(j, a));
    st = take_result(j, kernel, &m, &m.result);
    if (st) {
        kofn_parcel_drop(m.in);
        return st;
    }
    j->rep.sent += kf_parcel_bytes(m.in);
    return j->port->send(j->port, &m);
}

static kofn_status do_mix(kofn_job *j, const kofn_action *a)
{
    stopwatch watch = start_work(j);
    kofn_status st = kf_messages_mix(&j->messages, a->decoder, a->lo, a->hi);

    j->rep.encoding += end_work(j, watch, "mix");
    return st;
}

static kofn_status do_cancel(kofn_job *j, const kofn_action *a)
{
    kofn_msg m = {.type = KOFN_MSG_CANCEL,
                  .worker = a->worker,
                  .product = a->product,
                  .task = a->task};

    kf_job_over(j, a->task, KF_FATE_CANCELLED);
    return j->port->send(j->port, &m);
}

static kofn_status do_give_up(kofn_job *j, const kofn_action *a)
{
    kofn_msg m = {.type = KOFN_MSG_GIVE_UP, .worker = a->worker};

    kf_job_lose(j, a->worker);
    j->rep.left++;
    return j->port->send(j->port, &m);
}

/* The results of the tasks of an action. */
static kf_source *sources(const kofn_job *j, const kofn_action *a)
{
    kf_source *source = kf_new(a->count, sizeof *source);

    for (size_t i = 0; source && i < a->count; i++) {
        const slot *s = &j->slot[a->tasks[i] - j->first_task];

        source[i] = (kf_source){&s->result->m, s->lo, s->hi};
    }
    return source;
}

static kofn_status decode(kofn_job *j, const kofn_action *a,
                          const kf_source *source)
{
    if (!a->decoder) {
        TRY(kf_data_add_up(source, a->count, &j->out));
        return kf_range_restore(&j->out, j->back);
    }
    if (j->tally.age)
        return kf_tally_recall(&j->tally, j->use, a->decoder, source, &j->out,
                               &j->scratch);
    if (j->tally.parts)
        TRY(kf_tally_count(&j->tally,
                           kofn_core_code(j->core, kf_job_use_number(j)),
                           a->decoder));
    TRY(kf_decode(j->use, a->decoder, source, a->group, a->lo, a->hi, &j->out,
                  &j->scratch));
    return kf_data_restore(j->use, a->decoder, a->group, a->lo, a->hi, j->back,
                           &j->out);
}

/* What is no number spoils this round, not the next: say it when the round is
 * over, and whose answers it is from. */
static void note_odd(kofn_job *j, const kofn_action *a, const kf_source *source)
{
    if (j->odd)
        return;
    j->odd = KOFN_NONFINITE;
    snprintf(j->why_odd, sizeof j->why_odd, "%s", kofn_errmsg());
    for (size_t i = 0; i < a->count; i++) {
        if (!kf_mat_check_finite(source[i].result, "an answer"))
            continue;
        if (j->plan->op->factors > 0) /* products have room */
            j->odd = KOFN_CORRUPT;
        snprintf(j->why_odd, sizeof j->why_odd,
                 "worker %u answered NaN or "
                 "infinity; have wrong answers found (option errors)",
                 j->slot[a->tasks[i] - j->first_task].worker);
    }
}

static kofn_status do_decode(kofn_job *j, const kofn_action *a)
{
    kf_source *source = sources(j, a);
    stopwatch watch = start_work(j);
    kofn_status st = KOFN_NOMEM;

    kf_job_use(j, a);
    if (source)
        st = decode(j, a, source);
    if (st == KOFN_NONFINITE) {
        note_odd(j, a, source);
        st = KOFN_OK;
    }
    kf_free(source);
    j->rep.decoding += end_work(j, watch, "decode");
    return st;
}

static kofn_status do_check(kofn_job *j, const kofn_action *a)
{
    kf_source *source = sources(j, a);
    stopwatch watch = start_work(j);
    kofn_status st = KOFN_NOMEM;

    kf_job_use(j, a);
    if (source)
        st = kf_guard_check(&j->guard, &j->resident, &j->messages, j->core,
                            kf_job_use_number(j), a, source);
    kf_free(source);
    j->rep.decoding += end_work(j, watch, "check");
    if (!st)
        kf_job_blame(j, a);
    return st;
}

/* The round is over: keep what the report wants and the parcels. */
static kofn_status do_deliver(kofn_job *j, const kofn_action *a)
{
    kofn_core_view v;

    kofn_core_look(j->core, &v);
    while (j->row_cap < v.workers)
        TRY(kf_grow(&j->rows, &j->row_cap, j->row_cap, sizeof *j->rows));
    while (j->located_cap < v.workers)
        TRY(kf_grow(&j->located, &j->located_cap, j->located_cap,
                    sizeof *j->located));
    while (j->state_cap < v.workers)
        TRY(kf_grow(&j->states, &j->state_cap, j->state_cap,
                    sizeof *j->states));
    for (size_t i = 0; i < v.workers; i++) {
        j->rows[i] = v.rows[i] * j->use->layout.lanes;
        j->located[i] = v.located[i];
        j->states[i] = kofn_core_worker(j->core, (uint32_t)i);
    }
    j->rep.states = j->states;
    j->rep.took = kf_job_now(j) - j->began;
    j->rep.noise = a->noise;
    j->rep.predicted = a->predicted + j->guard.error;
    j->rep.live = (unsigned)v.live;
    j->rep.late = kf_job_late(j);
    j->rep.dropped = (unsigned)(v.dropped - j->dropped_before);
    j->rep.rows = j->rows;
    j->rep.located = j->located;
    j->rep.corrupt = (unsigned)v.corrupt;
    j->rep.liars = v.liars;
    j->rep.floor = j->guard.floor;
    j->rep.weights = j->tally.weight;
    j->rep.ages = j->tally.age;
    j->rep.parts = j->tally.parts;
    j->rep.workers = v.workers;
    j->dropped_before = v.dropped;
    j->ended = a->status >= 0 && j->odd ? kf_fail(j->odd, "%s", j->why_odd)
                                        : a->status;
    kf_run_tell_round(j, j->ended);
    j->rep.messages = 0;
    j->rep.scalars = 0;
    for (size_t i = 0; i < j->slots; i++) {
        const kofn_parcel *p = j->slot[i].result;

        j->rep.messages += p != NULL;
        j->rep.scalars += p ? p->m.rows * p->m.cols : 0;
        kf_pool_give(&j->spare, j->slot[i].result);
        j->slot[i].result = NULL;
    }
    return KOFN_OK;
}

kofn_status kf_job_act(kofn_job *j, const kofn_action *a)
{
    switch (a->type) {
    case KOFN_DO_STORE:
        return do_store(j, a);
    case KOFN_DO_WORK:
        return do_work(j, a);
    case KOFN_DO_CANCEL:
        return do_cancel(j, a);
    case KOFN_DO_DECODE:
        return do_decode(j, a);
    case KOFN_DO_DELIVER:
        return do_deliver(j, a);
    case KOFN_DO_MIX:
        return do_mix(j, a);
    case KOFN_DO_CHECK:
        return do_check(j, a);
    case KOFN_DO_GIVE_UP:
        return do_give_up(j, a);
    }
    return KOFN_OK;
}

/* ---- a step's actions ---------------------------------------------------- */

kofn_status kf_job_gather(kofn_job *j, size_t *n)
{
    size_t *rows = NULL, count = 0;
    stopwatch watch;
    kofn_status st;

    *n = 0;
    do
        TRY(kf_grow(&j->todo, &j->todo_cap, *n, sizeof *j->todo));
    while (kofn_core_next(j->core, &j->todo[*n]) && ++*n);
    if (*n == 0 || j->use->parts1 <= 1)
        return KOFN_OK;
    rows = kf_new(*n, sizeof *rows);
    if (!rows)
        return KOFN_NOMEM;
    for (size_t i = 0; i < *n; i++)
        if (j->todo[i].type == KOFN_DO_WORK)
            rows[count++] = row_in_plan(j, &j->todo[i]);
    watch = start_work(j);
    st = kf_messages_encode(&j->messages,
                            kofn_core_code(j->core, kf_job_use_number(j)), rows,
                            count);
    j->rep.encoding += end_work(j, watch, "encode");
    kf_free(rows);
    return st;
}
