/* job.c -- the body of the coordinator: one loop over any port.
 *
 * A message becomes an event, the event a step of the core, the step actions,
 * and the actions the large arithmetic: encoding, sending, decoding.  Small
 * numbers are decided in the core; matrices are handled here and only here.
 */
#include "run.h"

#include <time.h>

/* A task of this round and, once it has come, its result. */
typedef struct slot {
    kofn_parcel *result;
    uint32_t worker;
    size_t lo, hi;
} slot;

struct kofn_job {
    const kofn_plan *plan;
    kofn_port *port;
    kofn_core *core;
    kf_resident resident;
    kf_journal *journal;
    kofn_options opt;
    size_t next_event; /* of opt.events */
    bool placed;
    kofn_status broken; /* nothing works any more */

    kofn_parcel **input, *in; /* round inputs made so far; this round's */
    size_t inputs, input_cap;
    slot *slot; /* by task number - first_task */
    size_t slots, slot_cap;
    uint32_t first_task, next_task;
    kofn_parcel **spare; /* result parcels for reuse */
    size_t spares, spare_cap;
    kofn_matrix out;
    kf_scratch scratch;

    uint32_t *owed; /* workers to whom blocks are owed ... */
    size_t *owed_seat; /* ... and of which seats           */
    size_t owing, owed_cap, owed_seat_cap;
    size_t greeted; /* HELLOs so far */

    bool begun; /* the core knows of the round */
    kofn_time began;
    kofn_status ended; /* of the round; KOFN_AGAIN while it runs */
    kofn_report rep; /* since the end of the last round */
    kofn_report total;
    size_t *rows, row_cap, dropped_before;
    char *states;
    size_t state_cap;
    unsigned rounds;
};

/* ---- the clock ------------------------------------------------------------- */

static kofn_time now(const kofn_job *j)
{
    return j->port->now(j->port);
}

static kofn_time cpu_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (kofn_time)t.tv_sec * KOFN_SECOND + t.tv_nsec;
}

/* The coordinator's own work: on a simulated port it costs simulated time. */
typedef struct stopwatch {
    kofn_time start, cpu;
} stopwatch;

static stopwatch start_work(const kofn_job *j)
{
    return (stopwatch){now(j), j->port->spend ? cpu_time() : 0};
}

static kofn_time end_work(const kofn_job *j, stopwatch w)
{
    if (j->port->spend)
        j->port->spend(j->port, cpu_time() - w.cpu);
    return now(j) - w.start;
}

/* ---- parcels ----------------------------------------------------------------- */

static kofn_status take_spare(kofn_job *j, size_t rows, size_t cols,
                              kofn_dtype dtype, kofn_parcel **out)
{
    for (size_t i = j->spares; i-- > 0;)
        if (kf_parcel_reshape(j->spare[i], rows, cols, dtype)) {
            *out = j->spare[i];
            j->spare[i] = j->spare[--j->spares];
            return KOFN_OK;
        }
    return kf_parcel_new(out, rows, cols, dtype);
}

static void put_spare(kofn_job *j, kofn_parcel *p)
{
    if (!p)
        return;
    if (kf_grow(&j->spare, &j->spare_cap, j->spares, sizeof *j->spare))
        kofn_parcel_drop(p);
    else
        j->spare[j->spares++] = p;
}

/* A parcel for the round's input: one of a former round that no worker holds
 * any more, or a new one. */
static kofn_status take_input(kofn_job *j, const kofn_matrix *in)
{
    size_t size = kf_dtype_size(in->dtype);
    kofn_parcel *p = NULL;

    for (size_t i = 0; i < j->inputs && !p; i++)
        if (atomic_load(&j->input[i]->refs) == 1)
            p = j->input[i];
    if (!p) {
        TRY(kf_grow(&j->input, &j->input_cap, j->inputs, sizeof *j->input));
        TRY(kf_parcel_new(&p, in->rows, in->cols, in->dtype));
        j->input[j->inputs++] = p;
    }
    for (size_t i = 0; i < in->rows; i++)
        memcpy(kf_at(&p->m, i, 0), kf_at(in, i, 0), in->cols * size);
    j->in = p;
    return KOFN_OK;
}

/* ---- actions ------------------------------------------------------------------- */

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
        kofn_msg m = {.type = KOFN_MSG_STORE,
                      .worker = j->owed[i],
                      .block = blocks[i]};

        if (st)
            kofn_block_drop(blocks[i]);
        else
            st = j->port->send(j->port, &m);
    }
    return st;
}

/* Encode what is owed, all in one pass over A, and send it. */
static kofn_status hand_out_blocks(kofn_job *j)
{
    kofn_block **blocks = kf_new(j->owing, sizeof *blocks);
    stopwatch watch = start_work(j);
    kofn_status st = KOFN_NOMEM;

    if (blocks)
        st = kf_encode(&j->resident, kofn_core_code(j->core), j->owed_seat,
                       j->owing, blocks);
    j->rep.encoding += end_work(j, watch);
    if (!st)
        st = send_blocks(j, blocks);
    kf_free(blocks);
    j->owing = 0;
    return st;
}

static kofn_status do_work(kofn_job *j, const kofn_action *a)
{
    const kofn_layout *L = &j->plan->layout;
    size_t index = a->task - j->first_task;
    kofn_msg m = {.type = KOFN_MSG_WORK,
                  .worker = a->worker,
                  .task = a->task,
                  .round = j->rounds + 1,
                  .lo = a->lo,
                  .hi = a->hi};

    j->next_task = a->task + 1;
    while (j->slots <= index) {
        TRY(kf_grow(&j->slot, &j->slot_cap, j->slots, sizeof *j->slot));
        j->slot[j->slots++] = (slot){NULL, a->worker, a->lo, a->hi};
    }
    TRY(take_spare(j, L->lanes * (a->hi - a->lo), j->in->m.cols,
                   L->problem.dtype, &m.result));
    m.in = kofn_parcel_keep(j->in);
    return j->port->send(j->port, &m);
}

static kofn_status do_cancel(kofn_job *j, const kofn_action *a)
{
    kofn_msg m = {
        .type = KOFN_MSG_CANCEL, .worker = a->worker, .task = a->task};

    return j->port->send(j->port, &m);
}

static kofn_status do_decode(kofn_job *j, const kofn_action *a)
{
    size_t n = a->decoder->seats;
    kf_source *source = kf_new(n, sizeof *source);
    stopwatch watch = start_work(j);
    kofn_status st;

    if (!source)
        return KOFN_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const slot *s = &j->slot[a->tasks[i] - j->first_task];

        source[i] = (kf_source){&s->result->m, s->lo, s->hi};
    }
    st = kf_decode(j->plan, a->decoder, source, a->group, a->lo, a->hi,
                   &j->out, &j->scratch);
    kf_free(source);
    j->rep.decoding += end_work(j, watch);
    return st;
}

/* The round is over: keep what the report wants and the parcels. */
static kofn_status do_deliver(kofn_job *j, const kofn_action *a)
{
    kofn_core_view v;

    kofn_core_look(j->core, &v);
    while (j->row_cap < v.workers)
        TRY(kf_grow(&j->rows, &j->row_cap, j->row_cap, sizeof *j->rows));
    while (j->state_cap < v.workers)
        TRY(kf_grow(&j->states, &j->state_cap, j->state_cap, 1));
    for (size_t i = 0; i < v.workers; i++) {
        j->rows[i] = v.rows[i] * j->plan->layout.lanes;
        j->states[i] = kofn_core_worker(j->core, (uint32_t)i);
    }
    j->rep.states = j->states;
    j->rep.took = now(j) - j->began;
    j->rep.noise = a->noise;
    j->rep.predicted = a->predicted;
    j->rep.live = (unsigned)v.live;
    j->rep.late = (unsigned)v.late;
    j->rep.dropped = (unsigned)(v.dropped - j->dropped_before);
    j->rep.rows = j->rows;
    j->rep.workers = v.workers;
    j->dropped_before = v.dropped;
    j->ended = a->status;
    for (size_t i = 0; i < j->slots; i++) {
        put_spare(j, j->slot[i].result);
        j->slot[i].result = NULL;
    }
    return KOFN_OK;
}

static kofn_status perform(kofn_job *j, const kofn_action *a)
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
    case KOFN_DO_CHECK:
        break;
    }
    return KOFN_OK;
}

/* ---- one turn of the loop -------------------------------------------------------- */

static kofn_status step(kofn_job *j, kofn_event *ev)
{
    kofn_action a;

    ev->now = now(j);
    if (j->journal)
        kf_journal_event(j->journal, ev);
    TRY(kofn_core_step(j->core, ev));
    while (kofn_core_next(j->core, &a)) {
        if (j->journal)
            kf_journal_action(j->journal, &a);
        TRY(perform(j, &a));
    }
    if (j->journal)
        TRY(kf_journal_step(j->journal));
    /* At the start blocks are handed out together, once everybody is there. */
    if (j->owing && j->greeted >= j->port->workers)
        TRY(hand_out_blocks(j));
    return KOFN_OK;
}

static kofn_status tell(kofn_job *j, kofn_event_type type, uint32_t worker)
{
    kofn_event ev = {.type = type, .worker = worker};

    return step(j, &ev);
}

/* Only results of this round are kept; the core tells whether they count. */
static void file_result(kofn_job *j, const kofn_msg *m)
{
    uint32_t index = m->task - j->first_task;

    if (m->type == KOFN_MSG_RESULT && j->begun && j->ended == KOFN_AGAIN &&
        index < j->slots && j->slot[index].worker == m->worker &&
        !j->slot[index].result)
        j->slot[index].result = m->result;
    else
        put_spare(j, m->result);
}

static kofn_status handle(kofn_job *j, kofn_msg *m)
{
    kofn_event ev = {
        .worker = m->worker, .task = m->task, .took = m->took};
    bool late_comer = j->greeted >= j->port->workers;

    switch (m->type) {
    case KOFN_MSG_HELLO:
        ev.type = KOFN_EV_JOINED;
        j->rep.joined += late_comer;
        j->greeted++;
        break;
    case KOFN_MSG_STORED:
        ev.type = KOFN_EV_STORED;
        break;
    case KOFN_MSG_NOTICE:
        ev.type = KOFN_EV_LEAVING;
        break;
    case KOFN_MSG_BYE:
        ev.type = KOFN_EV_LEFT;
        j->rep.left++;
        break;
    case KOFN_MSG_RESULT:
    case KOFN_MSG_FAILED:
        ev.type = m->type == KOFN_MSG_RESULT ? KOFN_EV_RESULT : KOFN_EV_FAILED;
        file_result(j, m);
        break;
    case KOFN_MSG_STORE:
    case KOFN_MSG_WORK:
    case KOFN_MSG_CANCEL:
        return kf_fail(KOFN_TRANSPORT, "port %s delivered a message that only "
                       "workers receive", j->port->name);
    }
    kofn_parcel_drop(m->in);
    kofn_block_drop(m->block);
    return step(j, &ev);
}

/* Wait for one message or the alarm.  KOFN_AGAIN: `atmost` has passed. */
static kofn_status turn(kofn_job *j, kofn_time atmost)
{
    kofn_time alarm = kofn_core_alarm(j->core), before = now(j);
    kofn_msg m = {0};
    kofn_status st = j->port->wait(j->port, alarm, atmost, &m);

    j->rep.waiting += now(j) - before;
    if (st == KOFN_OK)
        return handle(j, &m);
    if (st == KOFN_AGAIN && now(j) >= alarm)
        return tell(j, KOFN_EV_ALARM, 0);
    if (st == KOFN_LATE)
        return kf_fail(KOFN_LATE, "nothing can come any more, and too few "
                       "workers are left; start more workers");
    return st;
}

/* ---- events files ------------------------------------------------------------------ */

static kofn_status happen(kofn_job *j, const kofn_happening *h)
{
    kofn_port *p = j->port;
    uint32_t worker = h->worker;

    switch (h->kind) {
    case KOFN_EVENT_LEAVE:
        TRY(p->remove(p, worker));
        j->rep.left++;
        return tell(j, KOFN_EV_LEFT, worker);
    case KOFN_EVENT_JOIN:
        TRY(p->admit(p, &worker));
        j->rep.joined++;
        return tell(j, KOFN_EV_JOINED, worker);
    case KOFN_EVENT_SLOW:
        p->slow(p, worker, h->factor);
        break;
    case KOFN_EVENT_NORMAL:
        p->slow(p, worker, 1);
        p->corrupt(p, worker, false);
        break;
    case KOFN_EVENT_CORRUPT:
        p->corrupt(p, worker, true);
        break;
    }
    return KOFN_OK;
}

/* What is due once this share of the round has come. */
static kofn_status let_happen(kofn_job *j, unsigned round, double done)
{
    while (j->next_event < j->opt.event_count) {
        const kofn_happening *h = &j->opt.events[j->next_event];

        if (h->round > round || (h->round == round && h->fraction > done))
            break;
        j->next_event++;
        TRY(happen(j, h));
    }
    return KOFN_OK;
}

static kofn_status let_happen_now(kofn_job *j)
{
    kofn_core_view v;

    if (j->next_event == j->opt.event_count ||
        j->opt.events[j->next_event].round > j->rounds + 1)
        return KOFN_OK;
    kofn_core_look(j->core, &v);
    return let_happen(j, j->rounds + 1, v.done);
}

/* ---- life -------------------------------------------------------------------------- */

static kofn_status open_parts(kofn_job *j)
{
    kofn_core_options o = {.in_flight = j->opt.in_flight,
                           .below = j->opt.below,
                           .patience = j->opt.patience,
                           .tolerance = j->opt.tolerance,
                           .late = j->opt.late,
                           .pieces = j->opt.pieces};

    if (!(o.late == 0 || o.late >= 1))
        return kf_fail(KOFN_INVAL, "late = %g is neither 0 nor >= 1", o.late);
    if (j->opt.event_count && !j->port->admit)
        return kf_fail(KOFN_UNSUITED, "port %s cannot stage events",
                       j->port->name);
    TRY(kofn_core_new(&j->core, j->plan, &o));
    return j->opt.journal ? kf_journal_open(&j->journal, j->opt.journal,
                                            j->plan, &o)
                          : KOFN_OK;
}

kofn_status kofn_open(kofn_job **out, const kofn_plan *plan, kofn_port *port,
                      const kofn_options *opt)
{
    kofn_job *j = kf_zero(1, sizeof *j);
    kofn_status st;

    *out = NULL;
    if (!j) {
        port->close(port);
        return KOFN_NOMEM;
    }
    j->plan = plan;
    j->port = port;
    j->opt = (kofn_options)KOFN_OPTIONS_INIT;
    if (opt)
        memcpy(&j->opt, opt, kf_min(opt->size, sizeof j->opt));
    st = open_parts(j);
    if (st) {
        kofn_close(j);
        return st;
    }
    *out = j;
    return KOFN_OK;
}

static kofn_status check_place(const kofn_job *j, size_t rows, size_t cols,
                               bool sparse)
{
    const kofn_problem *pb = &j->plan->layout.problem;

    if (j->placed)
        return kf_fail(KOFN_STATE, "the job holds a matrix already; open "
                       "another job for another matrix");
    if (sparse != pb->sparse)
        return kf_fail(KOFN_SHAPE, "the plan is for a %s matrix",
                       pb->sparse ? "sparse" : "dense");
    if (rows != pb->m || cols != pb->n)
        return kf_fail(KOFN_SHAPE, "A is %zu x %zu and the plan is for "
                       "%zu x %zu", rows, cols, pb->m, pb->n);
    return KOFN_OK;
}

kofn_status kofn_place(kofn_job *j, const kofn_matrix *A)
{
    TRY(kf_check_matrix(A, "A"));
    TRY(check_place(j, A->rows, A->cols, false));
    if (A->dtype != j->plan->layout.problem.dtype)
        return kf_fail(KOFN_SHAPE, "A is not of the type of the plan");
    TRY(kf_check_finite(A, "A"));
    TRY(kf_resident_dense(&j->resident, j->plan, A));
    j->placed = true;
    return KOFN_OK;
}

kofn_status kofn_place_sparse(kofn_job *j, const kofn_sparse *A)
{
    TRY(kf_check_sparse(A, "A"));
    TRY(check_place(j, A->rows, A->cols, true));
    if (j->plan->layout.problem.dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "sparse matrices are float64");
    TRY(kf_resident_sparse(&j->resident, j->plan, A));
    j->placed = true;
    return KOFN_OK;
}

void kofn_close(kofn_job *j)
{
    if (!j)
        return;
    if (j->port)
        j->port->close(j->port);
    kf_journal_close(j->journal);
    kofn_core_free(j->core);
    kf_resident_free(&j->resident);
    for (size_t i = 0; i < j->slots; i++)
        kofn_parcel_drop(j->slot[i].result);
    for (size_t i = 0; i < j->spares; i++)
        kofn_parcel_drop(j->spare[i]);
    for (size_t i = 0; i < j->inputs; i++)
        kofn_parcel_drop(j->input[i]);
    kf_free(j->slot);
    kf_free(j->spare);
    kf_free(j->input);
    kf_free(j->owed);
    kf_free(j->owed_seat);
    kf_free(j->rows);
    kf_free(j->states);
    kf_scratch_free(&j->scratch);
    kf_free(j);
}

/* ---- rounds ------------------------------------------------------------------------ */

static kofn_status check_round(const kofn_job *j, const kofn_matrix *in,
                               const kofn_matrix *out)
{
    const kofn_problem *pb = &j->plan->layout.problem;

    if (j->broken)
        return kf_fail(KOFN_STATE, "the job has failed before (%s); open "
                       "another", kofn_strerror(j->broken));
    if (!j->placed)
        return kf_fail(KOFN_STATE, "no matrix was placed; call kofn_place");
    if (j->ended == KOFN_AGAIN)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    TRY(kf_check_matrix(in, "the round's input"));
    TRY(kf_check_matrix(out, "the round's output"));
    if (in->rows != pb->n || in->cols != pb->p)
        return kf_fail(KOFN_SHAPE, "the round's input is %zu x %zu and A, "
                       "%zu x %zu, takes %zu x %zu", in->rows, in->cols, pb->m,
                       pb->n, pb->n, pb->p);
    if (out->rows != pb->m || out->cols != pb->p)
        return kf_fail(KOFN_SHAPE, "the round's output is %zu x %zu and must "
                       "be %zu x %zu", out->rows, out->cols, pb->m, pb->p);
    if (in->dtype != pb->dtype || out->dtype != pb->dtype)
        return kf_fail(KOFN_SHAPE, "input and output must be of A's type");
    return kf_check_finite(in, "the round's input");
}

kofn_status kofn_begin(kofn_job *j, const kofn_matrix *in, kofn_matrix *out)
{
    TRY(check_round(j, in, out));
    TRY(take_input(j, in));
    j->out = *out;
    j->ended = KOFN_AGAIN;
    j->begun = false;
    return KOFN_OK;
}

static void add_to_total(kofn_job *j)
{
    kofn_report *t = &j->total;
    const kofn_report *r = &j->rep;

    t->rounds++;
    t->took += r->took;
    t->encoding += r->encoding;
    t->waiting += r->waiting;
    t->decoding += r->decoding;
    t->noise = t->noise > r->noise ? t->noise : r->noise;
    t->predicted = t->predicted > r->predicted ? t->predicted : r->predicted;
    t->live = r->live;
    t->joined += r->joined;
    t->left += r->left;
    t->late += r->late;
    t->dropped += r->dropped;
}

/* One step towards the beginning: everybody who is to come at the start says
 * hello and gets a block, what is to happen before the round happens, and
 * those who come by that are served as well. */
static kofn_status get_ready(kofn_job *j, kofn_time atmost)
{
    unsigned round = j->rounds + 1;
    kofn_core_view v;

    kofn_core_look(j->core, &v);
    if (j->greeted < j->port->workers || v.storing > 0)
        return turn(j, atmost);
    if (j->next_event < j->opt.event_count &&
        (j->opt.events[j->next_event].round < round ||
         (j->opt.events[j->next_event].round == round &&
          j->opt.events[j->next_event].fraction <= 0)))
        return let_happen(j, round, 0);
    j->slots = 0;
    j->first_task = j->next_task;
    j->began = now(j);
    j->rep.waiting = j->rep.decoding = 0;
    j->begun = true;
    return tell(j, KOFN_EV_BEGIN, 0);
}

/* Real time, whatever clock the port keeps. */
static kofn_time wall(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (kofn_time)t.tv_sec * KOFN_SECOND + t.tv_nsec;
}

static kofn_status pump(kofn_job *j, kofn_time atmost)
{
    kofn_time start = wall();

    while (j->ended == KOFN_AGAIN) {
        kofn_status st = KOFN_OK;

        if (wall() - start >= atmost)
            return KOFN_AGAIN;

        if (!j->begun)
            st = get_ready(j, atmost);
        else
            TRY(let_happen_now(j));
        if (!st && j->begun && j->ended == KOFN_AGAIN)
            st = turn(j, atmost);
        if (st < 0)
            return st;
    }
    return KOFN_OK;
}

kofn_status kofn_pump(kofn_job *j, kofn_time atmost, kofn_report *rep)
{
    kofn_status st;

    if (j->ended != KOFN_AGAIN)
        return kf_fail(KOFN_STATE, "no round is under way; call kofn_begin");
    j->rep.rounds = 1;
    st = pump(j, atmost);
    if (rep)
        *rep = j->rep;
    if (st < 0)
        j->broken = j->ended = st;
    if (st)
        return st;
    j->rounds++;
    add_to_total(j);
    j->rep = (kofn_report){0};
    return j->ended;
}

kofn_status kofn_round(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                       kofn_report *rep)
{
    TRY(kofn_begin(j, in, out));
    return kofn_pump(j, KOFN_NEVER, rep);
}

/* ---- looking ------------------------------------------------------------------------ */

void kofn_job_progress(const kofn_job *j, kofn_progress *p)
{
    kofn_core_view v;

    kofn_core_look(j->core, &v);
    *p = (kofn_progress){v.round, v.live, v.awaited, v.done};
}

void kofn_job_totals(const kofn_job *j, kofn_report *rep)
{
    *rep = j->total;
}
