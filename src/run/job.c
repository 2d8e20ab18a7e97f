/* job.c -- a job's life and its rounds. */
#include "job.h"

#include "base/clock.h"
#include "base/report.h"
#include "code/operation.h"

/* ---- life ---------------------------------------------------------------- */

/* Workers that nobody here has started come and go by themselves. */
static kofn_status check_events(const kofn_job *j)
{
    for (size_t i = 0; i < j->opt.event_count; i++) {
        kofn_happening_kind kind = j->opt.events[i].kind;
        bool can = kind == KOFN_HAPPENING_JOIN ? j->port->admit != NULL
                   : kind == KOFN_HAPPENING_LEAVE
                       ? j->port->remove != NULL
                       : j->port->slow && j->port->corrupt;

        if (!can)
            return kf_fail(KOFN_UNSUITED,
                           "port %s has nobody %s in round %u as "
                           "the events say: its workers come and go by "
                           "themselves; start or end one",
                           j->port->name,
                           kind == KOFN_HAPPENING_JOIN ? "join" : "leave",
                           j->opt.events[i].round);
    }
    return KOFN_OK;
}

#define LATE 1.5 /* times as long as half of the others */
#define LATE_LEAST                                                             \
    (KOFN_SECOND / 1000) /* the noise of a machine's scheduling */

/* Codes that leave out who is late do so where it is asked for only. */
static double late(const kofn_job *j)
{
    if (j->opt.late != 0)
        return j->opt.late > 0 ? j->opt.late : 0;
    return j->plan->layout.everybody ? 0 : LATE;
}

static kofn_status open_parts(kofn_job *j)
{
    kofn_core_options o = {.in_flight = j->opt.in_flight,
                           .below = j->opt.below,
                           .patience = j->opt.patience,
                           .tolerance = j->opt.tolerance,
                           .late = late(j),
                           .late_least = j->port->simulated ? 0 : LATE_LEAST,
                           .lease = kf_job_lease(j),
                           .pieces = j->opt.pieces,
                           .errors = j->opt.errors,
                           .quarantine = j->opt.quarantine,
                           .beyond = j->opt.beyond,
                           .seats = j->opt.seats,
                           .open = 1};

    if (!(o.late == 0 || (o.late >= 1 && o.late <= 1e300)))
        return kf_fail(KOFN_INVAL,
                       "late = %g: give a factor of at least 1, 0 "
                       "for the default, or one below 0 for never",
                       o.late);
    TRY(check_events(j));
    TRY(kf_guard_init(&j->guard, j->port->simulated, j->plan->layout.seed,
                      j->opt.tolerance));
    TRY(kofn_core_new(&j->core, j->plan, &o));
    if (j->opt.journal)
        TRY(kf_journal_open(&j->journal, j->opt.journal, j->plan, &o));
    return kf_observe(j);
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
    j->plan = j->use = plan;
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
    if (j->plan->op->factors == 0)
        return kf_fail(KOFN_SHAPE, "the plan is for a sum of functions; call "
                                   "kofn_place_parts or kofn_place_rows");
    if (sparse != pb->sparse)
        return kf_fail(KOFN_SHAPE, "the plan is for a %s matrix",
                       pb->sparse ? "sparse" : "dense");
    if (rows != pb->m || cols != pb->n)
        return kf_fail(KOFN_SHAPE,
                       "A is %zu x %zu and the plan is for "
                       "%zu x %zu",
                       rows, cols, pb->m, pb->n);
    return KOFN_OK;
}

/* The operand is known: its parts can be handed out. */
static kofn_status placed(kofn_job *j)
{
    if (j->port->away)
        TRY(kf_resident_away(&j->resident));
    j->placed = true;
    return KOFN_OK;
}

kofn_status kofn_place(kofn_job *j, const kofn_matrix *A)
{
    double most;

    TRY(kf_mat_check_matrix(A, "A"));
    TRY(check_place(j, A->rows, A->cols, false));
    if (A->dtype != j->plan->layout.problem.dtype)
        return kf_fail(KOFN_SHAPE, "A is not of the type of the plan");
    TRY(kf_mat_check_range(A, "A", &most));
    TRY(kf_resident_dense(&j->resident, j->plan, A));
    j->resident.most = most;
    j->resident.by = kf_range_resident(most, 1, A->dtype);
    return placed(j);
}

static kofn_status check_sum(const kofn_job *j, bool there)
{
    if (!there)
        return kf_fail(KOFN_INVAL, "the function is missing");
    if (j->placed)
        return kf_fail(KOFN_STATE, "the job has its function already; open "
                                   "another job for another");
    if (j->plan->op->factors > 0)
        return kf_fail(KOFN_SHAPE, "the plan is for a matrix; call "
                                   "kofn_place");
    return KOFN_OK;
}

kofn_status kofn_place_parts(kofn_job *j, kofn_part_fn f, void *ctx)
{
    TRY(check_sum(j, f != NULL));
    TRY(kf_tally_new(&j->tally, j->plan));
    kf_resident_sum(&j->resident, j->plan);
    j->resident.f = f;
    j->resident.ctx = ctx;
    return placed(j);
}

kofn_status kofn_place_rows(kofn_job *j, const kofn_formula *formula,
                            const double arg[KOFN_FORMULA_ARGS],
                            const kofn_matrix *X, const double *y)
{
    kf_resident *r = &j->resident;
    size_t n;

    TRY(check_sum(j, formula && formula->name && formula->f));
    TRY(kf_mat_check_matrix(X, "X"));
    if (X->dtype != KOFN_F64 || j->plan->layout.problem.dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "sums over rows are of float64");
    if (!y || !arg || !kf_mul(X->rows, j->plan->parts, &n))
        return kf_fail(KOFN_INVAL,
                       "y or arg is missing, or X has too many "
                       "rows, %zu, for %zu parts",
                       X->rows, j->plan->parts);
    TRY(kf_mat_check_finite(X, "X"));
    n = kf_mat_first_odd(y, X->rows, KOFN_F64);
    if (n < X->rows)
        return kf_fail(KOFN_NONFINITE, "y: element %zu is NaN or infinite", n);
    TRY(kf_tally_new(&j->tally, j->plan));
    kf_resident_sum(r, j->plan);
    r->formula = formula;
    memcpy(r->arg, arg, sizeof r->arg);
    r->X = *X;
    r->y = y;
    return placed(j);
}

kofn_status kofn_parts_work(kofn_job *j, double work)
{
    if (!j->resident.f && !j->resident.formula)
        return kf_fail(KOFN_STATE, "no function was placed; call "
                                   "kofn_place_parts or kofn_place_rows");
    if (j->greeted)
        return kf_fail(KOFN_STATE, "the parts are with the workers; say what "
                                   "they take before the first round");
    if (!(work > 0 && work - work == 0))
        return kf_fail(KOFN_INVAL, "work = %g is not a number > 0", work);
    j->resident.work = work;
    return KOFN_OK;
}

kofn_status kofn_place_sparse(kofn_job *j, const kofn_sparse *A)
{
    TRY(kf_mat_check_sparse(A, "A"));
    TRY(check_place(j, A->rows, A->cols, true));
    if (j->plan->layout.problem.dtype != KOFN_F64)
        return kf_fail(KOFN_SHAPE, "sparse matrices are float64");
    TRY(kf_resident_sparse(&j->resident, j->plan, A));
    return placed(j);
}

void kofn_close(kofn_job *j)
{
    if (!j)
        return;
    kofn_finish(j);
    for (size_t i = 0; i < j->slots; i++) /* they may be the port's */
        kofn_parcel_drop(j->slot[i].result);
    if (j->port)
        j->port->close(j->port);
    kf_journal_close(j->journal);
    kofn_core_free(j->core);
    kf_resident_free(&j->resident);
    kf_tally_free(&j->tally);
    kf_messages_free(&j->messages);
    kf_guard_free(&j->guard);
    kf_free(j->todo);
    kf_free(j->slot);
    kf_pool_free(&j->spare);
    kf_free(j->owed);
    kf_free(j->owed_seat);
    kf_free(j->rows);
    kf_free(j->states);
    kf_free(j->located);
    kf_scratch_free(&j->scratch);
    kf_free(j);
}

/* ---- some strips only ---------------------------------------------------- */

size_t kofn_strips(const kofn_job *j)
{
    const kofn_layout *L = &j->plan->layout;

    return L->adjoint || L->whole || j->plan->op->left ? 0 : j->plan->span;
}

kofn_status kofn_limit(kofn_job *j, size_t lo, size_t hi)
{
    size_t strips = kofn_strips(j);

    if (strips == 0)
        return kf_fail(KOFN_UNSUITED,
                       "rounds of scheme %s in this operation "
                       "are of all rows or none",
                       j->plan->scheme->name);
    if (lo >= hi || hi > strips)
        return kf_fail(KOFN_INVAL,
                       "strips %zu..%zu of %zu: give at least one "
                       "of them",
                       lo, hi, strips);
    if (j->ended == KOFN_AGAIN)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    j->lo = lo;
    j->hi = lo == 0 && hi == strips ? 0 : hi;
    return KOFN_OK;
}

kofn_status kofn_step(kofn_job *j, unsigned step)
{
    if (step == 0)
        return kf_fail(KOFN_INVAL, "step 0: steps count from 1");
    if (j->ended == KOFN_AGAIN)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    j->step = step;
    return KOFN_OK;
}

/* ---- rounds -------------------------------------------------------------- */

static kofn_status check_state(const kofn_job *j, const kofn_plan *use)
{
    if (j->broken)
        return kf_fail(KOFN_STATE,
                       "the job has failed before (%s); open "
                       "another",
                       kofn_strerror(j->broken));
    if (!j->placed)
        return kf_fail(KOFN_STATE, "no matrix was placed; call kofn_place");
    if (j->ended == KOFN_AGAIN)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    if (!use)
        return kf_fail(KOFN_STATE,
                       "the plan does not serve left products; "
                       "call kofn_plan_serve_left before kofn_open");
    return KOFN_OK;
}

static kofn_status check_round(const kofn_plan *use, const kofn_matrix *in,
                               const kofn_matrix *out, double *most)
{
    const kofn_problem *pb = &use->layout.problem;
    const kf_operation *op = use->op;
    size_t in_rows = kf_size_of(pb, op->in.rows);
    size_t in_cols = kf_size_of(pb, op->in.cols);
    size_t out_rows = kf_size_of(pb, op->out.rows);
    size_t out_cols = kf_size_of(pb, op->out.cols);

    TRY(kf_mat_check_matrix(in, "the round's input"));
    TRY(kf_mat_check_matrix(out, "the round's output"));
    if (in->rows != in_rows || in->cols != in_cols)
        return kf_fail(KOFN_SHAPE,
                       "the round's input is %zu x %zu and A, "
                       "%zu x %zu, takes %zu x %zu",
                       in->rows, in->cols, pb->m, pb->n, in_rows, in_cols);
    if (out->rows != out_rows || out->cols != out_cols)
        return kf_fail(KOFN_SHAPE,
                       "the round's output is %zu x %zu and must "
                       "be %zu x %zu",
                       out->rows, out->cols, out_rows, out_cols);
    if (in->dtype != pb->dtype || out->dtype != pb->dtype)
        return kf_fail(KOFN_SHAPE, "input and output must be of A's type");
    return kf_mat_check_range(in, "the round's input", most);
}

static kofn_status begin(kofn_job *j, const kofn_plan *use,
                         const kofn_matrix *in, kofn_matrix *out)
{
    double most, by;

    TRY(check_state(j, use));
    TRY(check_round(use, in, out, &most));
    by = kf_range_input(use, &j->resident, most);
    if (by != 1) /* it may be much smaller: what is tiny should not vanish */
        by = kf_range_input(use, &j->resident, kf_mat_most(in));
    TRY(kf_messages_begin(&j->messages, use, in, by));
    j->back = kf_range_back(use, &j->resident, by);
    j->odd = KOFN_OK;
    kf_guard_round(&j->guard);
    j->use = use;
    j->out = *out;
    j->ended = KOFN_AGAIN;
    j->begun = false;
    return KOFN_OK;
}

kofn_status kofn_begin(kofn_job *j, const kofn_matrix *in, kofn_matrix *out)
{
    return begin(j, j->plan, in, out);
}

kofn_status kofn_begin_left(kofn_job *j, const kofn_matrix *in,
                            kofn_matrix *out)
{
    return begin(j, j->plan->op->left ? j->plan : j->plan->left, in, out);
}

/* So many answers of the workers at the start that any such set is enough. */
static size_t enough(const kofn_plan *p)
{
    const kofn_layout *L = &p->layout;
    size_t seats = kf_ceil_div(L->threshold, L->submessages);

    return p->workers - (p->workers / L->groups - seats);
}

/* Who is given a block is waited for.  But where the others are enough, nobody
 * is for longer than the lease after any of them had its own: a joiner that
 * never stores would hold every round. */
static bool wait_for_blocks(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), most = kf_job_lease(j), left;
    size_t storing = kofn_core_storing(j->core);

    if (j->storing != storing) {
        j->storing = storing;
        j->storing_since = now;
    }
    if (storing == 0 || most == 0 || kofn_core_live(j->core) < enough(j->plan))
        return storing > 0;
    left = j->storing_since + most - now;
    *atmost = *atmost < left ? *atmost : left;
    return left > 0;
}

/* One step towards the beginning: everybody who is to come at the start says
 * hello and gets a block, what is to happen before the round happens, and
 * those who come by that are served as well. */
static kofn_status get_ready(kofn_job *j, kofn_time atmost)
{
    unsigned count = kf_job_count(j);
    kofn_event ev = {.type = KOFN_EV_BEGIN};

    if (wait_for_blocks(j, &atmost) || j->greeted < j->port->workers)
        return kf_job_pass(j, atmost);
    if (j->next_event < j->opt.event_count &&
        (j->opt.events[j->next_event].round < count ||
         (j->opt.events[j->next_event].round == count &&
          j->opt.events[j->next_event].fraction <= 0)))
        return kf_job_stage(j, count, 0);
    j->slots = 0;
    j->first_task = j->next_task;
    j->began = kf_job_now(j);
    j->rep.waiting = j->rep.decoding = 0;
    j->begun = true;
    j->shown = false;
    ev.product = kf_job_product(j);
    ev.use = kf_job_use_number(j);
    if (kofn_strips(j) && (!ev.use || j->use->layout.adjoint)) {
        ev.lo = j->lo;
        ev.hi = j->hi;
    }
    return kf_job_step(j, &ev);
}

/* Until there are enough for the first round: no longer than is allowed, and
 * what is left of it in *atmost. */
static kofn_status check_start(kofn_job *j, kofn_time *atmost)
{
    kofn_time now = kf_clock(), left;
    kofn_progress p;

    if (j->started || j->opt.start_within <= 0)
        return KOFN_OK;
    kofn_job_progress(j, &p);
    j->started = j->begun && p.needed == 0;
    j->asked = j->asked ? j->asked : now;
    left = j->opt.start_within - (now - j->asked);
    *atmost = left < *atmost ? left : *atmost;
    if (j->started || left > 0)
        return KOFN_OK;
    if (j->begun)
        return kf_fail(KOFN_LATE,
                       "%zu worker%s live after %.3g s and %zu are needed; "
                       "start more workers",
                       p.live, p.live == 1 ? " is" : "s are",
                       (double)(now - j->asked) * 1e-9, p.needed);
    return kf_fail(KOFN_LATE,
                   "%zu of %zu workers came within %.3g s; start "
                   "more workers",
                   p.here, p.expected, (double)(now - j->asked) * 1e-9);
}

static kofn_status pump(kofn_job *j, kofn_time atmost)
{
    kofn_time start = kf_clock();

    while (j->ended == KOFN_AGAIN) {
        kofn_time most = atmost;
        kofn_status st = KOFN_OK;

        if (kf_clock() - start >= atmost)
            return KOFN_AGAIN;
        TRY(check_start(j, &most));
        TRY(kf_lease_look(j, &most));
        if (j->ended != KOFN_AGAIN) /* it waited for who was given up */
            break;
        if (!j->begun)
            st = get_ready(j, most);
        else
            TRY(kf_job_stage_now(j));
        if (!st && j->begun && j->ended == KOFN_AGAIN)
            st = kf_job_pass(j, most);
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
    j->rep.rounds = j->ended >= 0;
    kf_report_add(&j->total, &j->rep);
    j->rep = (kofn_report){0};
    return j->ended;
}

kofn_status kofn_round(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                       kofn_report *rep)
{
    TRY(kofn_begin(j, in, out));
    return kofn_pump(j, KOFN_NEVER, rep);
}

kofn_status kofn_left(kofn_job *j, const kofn_matrix *in, kofn_matrix *out,
                      kofn_report *rep)
{
    TRY(kofn_begin_left(j, in, out));
    return kofn_pump(j, KOFN_NEVER, rep);
}

/* ---- looking ------------------------------------------------------------- */

void kofn_job_progress(const kofn_job *j, kofn_progress *p)
{
    kofn_core_view v;

    kofn_core_look(j->core, &v);
    *p = (kofn_progress){.round = v.round,
                         .live = v.live,
                         .awaited = v.awaited,
                         .done = v.done,
                         .needed = v.needed,
                         .here = j->greeted,
                         .expected = j->port->workers,
                         .joined = j->total.joined + j->rep.joined,
                         .left = j->total.left + j->rep.left,
                         .sent = j->total.sent + j->rep.sent,
                         .received = j->total.received + j->rep.received};
    for (size_t i = 0; i < j->slots; i++)
        if (j->slot[i].fate == KF_FATE_OUT)
            p->outstanding += j->slot[i].hi - j->slot[i].lo;
    for (uint32_t i = 0; v.standby > 0 && i < v.workers; i++)
        p->crowd += kofn_core_crowded(j->core, i);
}

const char *kofn_job_name(const kofn_job *j, size_t worker)
{
    return j->port->name_of && worker <= UINT32_MAX
               ? j->port->name_of(j->port, (uint32_t)worker)
               : "";
}

void kf_job_sum(const kofn_job *j, kofn_report *sum)
{
    *sum = j->total;
    kf_report_add(sum, &j->rep);
    sum->rounds = j->total.rounds; /* that are over */
}

void kofn_job_totals(const kofn_job *j, kofn_report *rep)
{
    *rep = j->total;
}
