/* job.c -- a job's life: opened, given its operand, looked at, closed. */
#include "job.h"

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
                           .open = KOFN_OPEN_MOST,
                           .mu = j->opt.mu};

    if (kf_is_stream(j) && j->port->away)
        return kf_fail(KOFN_UNSUITED,
                       "a stream's workers are threads or simulated, and those "
                       "of port %s are elsewhere; use threads or sim",
                       j->port->name);

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

    if (kf_is_stream(j))
        return kf_fail(KOFN_STATE, "nothing is resident in a stream: its "
                                   "products bring both operands; call "
                                   "kofn_put_pair");
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
    kf_job_free_products(j); /* results may be the port's */
    if (j->port)
        j->port->close(j->port);
    kf_journal_close(j->journal);
    kofn_core_free(j->core);
    kf_resident_free(&j->resident);
    kf_tally_free(&j->tally);
    kf_guard_free(&j->guard);
    kf_free(j->todo);
    kf_pool_free(&j->spare);
    kf_free(j->owed);
    kf_free(j->owed_seat);
    kf_free(j->load);
    kf_scratch_free(&j->scratch);
    kf_free(j);
}

/* ---- some strips only ---------------------------------------------------- */

size_t kofn_strips(const kofn_job *j)
{
    const kofn_layout *L = &j->plan->layout;

    return L->adjoint || L->whole || j->plan->op->left || kf_is_stream(j)
               ? 0
               : j->plan->span;
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
    if (j->round)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    j->lo = lo;
    j->hi = lo == 0 && hi == strips ? 0 : hi;
    return KOFN_OK;
}

kofn_status kofn_step(kofn_job *j, unsigned step)
{
    if (step == 0)
        return kf_fail(KOFN_INVAL, "step 0: steps count from 1");
    if (j->round)
        return kf_fail(KOFN_STATE, "a round is under way; call kofn_pump");
    j->step = step;
    return KOFN_OK;
}

void kofn_on_round(kofn_job *j,
                   void (*f)(void *ud, const kofn_stream_round *round),
                   void *ud)
{
    j->on_round = f;
    j->on_round_ud = ud;
}

/* ---- looking ------------------------------------------------------------- */

static size_t outstanding(const product *p)
{
    size_t strips = 0;

    for (size_t i = 0; i < p->slots; i++)
        if (p->slot[i].fate == KF_FATE_OUT)
            strips += p->slot[i].hi - p->slot[i].lo;
    return strips;
}

void kofn_job_progress(const kofn_job *j, kofn_progress *p)
{
    kofn_core_view v;
    kofn_report sum;

    kofn_core_look(j->core, &v);
    kf_job_sum(j, &sum);
    *p = (kofn_progress){.round = v.round,
                         .live = v.live,
                         .awaited = v.awaited,
                         .done = v.done,
                         .needed = v.needed,
                         .here = j->greeted,
                         .expected = j->port->workers,
                         .joined = sum.joined,
                         .left = sum.left,
                         .sent = sum.sent,
                         .received = sum.received};
    for (size_t i = 0; i < j->opens; i++)
        p->outstanding += outstanding(j->open[i]);
    for (uint32_t i = 0; v.standby > 0 && i < v.workers; i++)
        p->crowd += kofn_core_crowded(j->core, i);
}

const char *kofn_job_name(const kofn_job *j, size_t worker)
{
    return j->port->name_of && worker <= UINT32_MAX
               ? j->port->name_of(j->port, (uint32_t)worker)
               : "";
}

void kofn_job_totals(const kofn_job *j, kofn_report *rep)
{
    *rep = j->total;
}
