/* feed.c -- places an operand that no process has as a whole: kofn_place_from.
 *
 * The caller's function reads it twice.  The first time, panel by panel, it is
 * measured (src/data/panels.c).  The second time, whole parts of some strips
 * are read at once, coded, and sent to all workers that wait.  Workers
 * begin with empty blocks, as joiners do after a change (rebuild.c).  From then
 * on A counts as changed once: later blocks are made from those of others.
 *
 * Memory: one window, its coded strips, and what slow workers have not taken.
 * The caller's function runs on the caller's thread. */
#include "job.h"

#include "base/clock.h"
#include "code/operation.h"

#include <assert.h>
#include <stdio.h>

#define PANEL ((size_t)64 << 20) /* bytes of A in memory, unless chosen */
#define REST (KOFN_SECOND / 500) /* between looks at a full outbox */
#define LOOK (KOFN_SECOND / 10)  /* longest wait without a question */

typedef struct feeding {
    kofn_job *job;
    kf_held *held;
    size_t operand;
    kofn_source from;
    kofn_time looked; /* when the caller was asked whether to go on */
    kofn_time since;  /* when too few workers were left; 0: there are enough */
} feeding;

/* ---- checks -------------------------------------------------------------- */

static kofn_status check_others(const kofn_job *j, size_t operand)
{
    for (size_t o = 0; o < j->operands; o++)
        if (o != operand && !j->held[o].placed)
            return kf_fail(
                KOFN_STATE,
                "operand %zu is not placed; call kofn_place_from for "
                "the last operand, because it sends all blocks",
                o);
    return KOFN_OK;
}

static kofn_status check(const kofn_job *j, size_t operand)
{
    const kofn_problem *pb;

    TRY(kf_job_check_whole(j));
    TRY(kf_job_check_operand(j, operand));
    pb = &j->held[operand].plan->layout.problem;
    TRY(kf_job_check_place(j, operand, pb->m, pb->n, false));
    TRY(check_others(j, operand));
    if (!kf_code_can_be_read(j->held[operand].plan))
        return kf_fail(
            KOFN_UNSUITED,
            "%s: blocks of this scheme in this operation need A as a "
            "whole; call kofn_place",
            j->held[operand].plan->spec);
    if (j->opt.errors == KOFN_ERRORS_KEYED)
        return kf_fail(KOFN_UNSUITED,
                       "errors = keyed needs A as a whole; call kofn_place, or "
                       "choose probabilistic or adversarial");
    if (j->port->kept)
        return kf_fail(
            KOFN_UNSUITED,
            "a job with a number needs A as a whole; call kofn_place, "
            "or open the port without a number "
            "(kofn_away_options.job)");
    return KOFN_OK;
}

/* ---- waiting ------------------------------------------------------------- */

/* Asks the caller's function whether to go on. */
static kofn_status ask(feeding *f)
{
    kofn_time now = kf_clock();
    kofn_status st;

    if (now - f->looked < LOOK)
        return KOFN_OK;
    f->looked = now;
    st = f->from.read(f->from.ud, 0, NULL);
    return st > 0 ? kf_fail(KOFN_INVAL, "the placing was stopped") : st;
}

/* Waits for one message, as kf_job_pass does. */
static kofn_status pass(feeding *f, kofn_time until, kofn_time atmost)
{
    kofn_status st;

    TRY(ask(f));
    TRY(kf_job_give_up(f->job, &atmost));
    st = kf_job_pass(f->job, until, atmost < LOOK ? atmost : LOOK);
    return st < 0 || st == KOFN_AGAIN ? st : KOFN_OK;
}

/* ---- the first reading --------------------------------------------------- */

/* Reads rows into `to`, which is part of a larger matrix. */
static kofn_status rows(const feeding *f, size_t at, const kofn_matrix *to)
{
    kofn_status st = f->from.read(f->from.ud, at, to);

    return st > 0
               ? kf_fail(KOFN_INVAL,
                         "reading rows %zu to %zu of A gave status %d, which "
                         "is neither 0 nor a failure",
                         at, at + to->rows - 1, (int)st)
               : st;
}

static kofn_status measure_all(feeding *f, kf_panels *p, const kofn_matrix *by)
{
    for (size_t at = 0; at < p->rows; at += by->rows) {
        kofn_matrix panel = *by;

        panel.rows = kf_min(by->rows, p->rows - at);
        TRY(rows(f, at, &panel));
        TRY(kf_panels_add(p, at, &panel));
    }
    return KOFN_OK;
}

static kofn_status measure(feeding *f)
{
    const kofn_problem *pb = &f->held->plan->layout.problem;
    unsigned kind = kf_equilibrate_kind(f->held->plan, f->job->opt.errors);
    size_t row = pb->n * kf_dtype_size(pb->dtype);
    kofn_matrix panel;
    kf_panels p;
    double most = 0;
    kofn_status st;

    TRY(kf_panels_new(&p, kind, pb->m, pb->n));
    st = kf_mat_new(&panel, kf_min(pb->m, kf_max(1, f->from.panel / row)),
                    pb->n, pb->dtype);
    if (!st)
        st = measure_all(f, &p, &panel);
    if (!st)
        st = kf_panels_end(&p, &f->held->levels, &most);
    kf_panels_free(&p);
    kf_free(panel.data);
    TRY(st);
    kf_resident_shape(&f->held->resident, f->held->plan);
    f->held->resident.most = most;
    f->held->resident.by = kf_range_resident(most, 1, pb->dtype);
    return KOFN_OK;
}

/* ---- windows ------------------------------------------------------------- */

/* Returns the end of the next window: at least one strip. */
static size_t window_end(const feeding *f, kf_window *w)
{
    size_t strips = f->held->resident.parts.rows, m, n, bytes;

    w->to = w->at + 1;
    kf_window_shape(f->job, w, &m, &n);
    bytes = m * n * kf_dtype_size(f->held->plan->layout.problem.dtype);
    return w->at + kf_min(strips - w->at, kf_max(1, f->from.panel / bytes));
}

/* Reads and scales the window's strips of one part row. */
static kofn_status fill_part(const feeding *f, const kf_window *w, size_t part)
{
    const kofn_problem *pb = &f->held->plan->layout.problem;
    const kf_scaling *l = &f->held->levels;
    size_t at = part * f->held->resident.parts.rows + w->at;
    kofn_matrix to = w->into;
    char name[80];
    double most;

    if (at >= pb->m)
        return KOFN_OK;
    to.data = kf_at(&w->into, part * (w->to - w->at), 0);
    to.rows = kf_min(w->to - w->at, pb->m - at);
    to.cols = pb->n;
    TRY(rows(f, at, &to));
    kf_scaling_multiply(&to, l->row ? l->row + at : NULL, l->col, 1);
    snprintf(name, sizeof name, "rows %zu to %zu of A, read again", at,
             at + to.rows - 1);
    TRY(kf_mat_check_range(&to, name, &most));
    most = kf_larger(most, f->held->resident.most);
    if (kf_range_resident(most, 1, pb->dtype) != f->held->resident.by)
        return kf_fail(KOFN_INVAL,
                       "rows %zu to %zu of A are larger than when they were "
                       "first read; they must not change meanwhile",
                       at, at + to.rows - 1);
    return KOFN_OK;
}

static kofn_status fill(const feeding *f, kf_window *w)
{
    const kofn_layout *L = &f->held->plan->layout;
    size_t m, n;

    w->to = window_end(f, w);
    kf_window_shape(f->job, w, &m, &n);
    kf_free(w->into.data);
    w->into = (kofn_matrix){kf_zero(m * n, kf_dtype_size(L->problem.dtype)), m,
                            n, n, L->problem.dtype};
    if (!w->into.data)
        return KOFN_NOMEM;
    for (size_t part = 0; part < L->groups * L->cut[0].rows; part++)
        TRY(fill_part(f, w, part));
    return KOFN_OK;
}

/* Updates the norms by which results are compared. */
static kofn_status know(feeding *f, kf_window *w, double **cols)
{
    kf_resident r = {.most = 0};
    kofn_status st;

    if (!f->held->norms.norm)
        return KOFN_OK;
    st = kf_window_resident(f->job, w, f->held->plan, &r);
    if (!st)
        st = kf_norms_renew_rows(&f->held->norms, &r, w->at, cols);
    kf_resident_free(&r);
    return st;
}

/* ---- sending ------------------------------------------------------------- */

/* True if strips wait for more of these workers than may be slow, or too many
 * strips. */
static bool is_full(const feeding *f)
{
    kofn_job *j = f->job;
    size_t among = j->rebuild.among, live = kf_core_live(j->core), waiting = 0;
    size_t needed = kf_job_enough(j) - kf_min(live, kf_job_enough(j));
    uint64_t bytes = 0;

    for (size_t i = 0; i < among; i++) {
        uint64_t own = j->port->backlog(j->port, j->lease.rebuilding.worker[i]);

        waiting += own > 0;
        bytes += own;
    }
    return waiting > 0 &&
           (waiting + kf_min(needed, among) > among || bytes > f->from.panel);
}

/* Takes messages that are here, and waits until the strips are on their way. */
static kofn_status settle(feeding *f)
{
    kofn_job *j = f->job;

    if (!j->port->backlog)
        return KOFN_OK;
    for (;;) {
        bool full = is_full(f);
        kofn_status st =
            full ? pass(f, KOFN_NEVER, REST) : pass(f, kf_job_now(j), 0);

        if (st < 0)
            return st;
        if (st == KOFN_AGAIN && !full)
            return KOFN_OK;
        j->rebuild.among = kf_lease_forget_gone(j, j->rebuild.among);
    }
}

/* Builds the blocks of all workers that wait now. */
static kofn_status feed_batch(feeding *f)
{
    kf_rebuild *h = &f->job->rebuild;
    double *cols = NULL;
    kofn_status st = KOFN_OK;

    kf_rebuild_open(f->job, f->operand);
    while (!st && h->among > 0) {
        st = fill(f, &h->window);
        if (!st)
            st = know(f, &h->window, &cols);
        if (!st)
            st = kf_rebuild_feed(f->job);
        if (!st && h->among > 0)
            st = settle(f);
    }
    if (!st)
        kf_norms_renew_cols(&f->held->norms, &f->held->resident, &cols);
    kf_free(cols);
    return st;
}

/* True if all workers wait that will have a block soon, and they are enough. */
static bool is_time(const kofn_job *j)
{
    size_t waiting = j->lease.rebuilding.count;

    return waiting > 0 && kf_core_storing(j->core) <= waiting &&
           kf_core_live(j->core) + waiting >= kf_job_enough(j);
}

/* Fails if too few workers are left and no other may come, or none has come
 * within the time that the options allow. */
static kofn_status check_left(feeding *f, kofn_time *atmost)
{
    const kofn_job *j = f->job;
    kofn_time most = j->opt.patience > 0 ? j->opt.patience : KOFN_NEVER;
    size_t left = kf_core_live(j->core) + kf_core_storing(j->core);
    kofn_time now = kf_clock();

    if (left >= kf_job_enough(j)) {
        f->since = 0;
        return KOFN_OK;
    }
    f->since = f->since ? f->since : now;
    if (j->opt.below == KOFN_BELOW_PAUSE && now - f->since < most) {
        if (most < KOFN_NEVER && f->since + most - now < *atmost)
            *atmost = f->since + most - now;
        return KOFN_OK;
    }
    return kf_fail(KOFN_TOOFEW,
                   "%zu worker%s left while A is placed, and %zu are needed; "
                   "start more workers",
                   left, left == 1 ? " is" : "s are", kf_job_enough(j));
}

/* Feeds workers until enough of them have their blocks. */
static kofn_status feed(feeding *f)
{
    kofn_job *j = f->job;

    while (!kf_job_all_came(j) || !kf_job_has_enough(j)) {
        kofn_time atmost = KOFN_NEVER;
        kofn_status st;

        kf_lease_forget_gone(j, j->lease.rebuilding.count);
        if (kf_job_all_came(j) && is_time(j)) {
            TRY(feed_batch(f));
            continue;
        }
        if (kf_job_all_came(j))
            TRY(check_left(f, &atmost));
        else
            TRY(kf_job_check_start(j, &atmost));
        st = pass(f, KOFN_NEVER, atmost);
        if (st < 0)
            return st;
    }
    return KOFN_OK;
}

/* ---- the call ------------------------------------------------------------ */

static kofn_status place(feeding *f)
{
    TRY(measure(f));
    if (f->job->opt.errors != KOFN_ERRORS_NONE)
        TRY(kf_norms_expect(&f->held->norms, &f->held->resident));
    f->held->changes = 1; /* blocks are made from blocks from now on */
    if (f->job->port->away)
        TRY(kf_resident_away(&f->held->resident));
    f->held->placed = true;
    return kf_job_break(f->job, feed(f));
}

kofn_status kofn_place_from(kofn_job *j, size_t operand,
                            const kofn_source *source)
{
    feeding f = {.job = j, .operand = operand, .from = KOFN_SOURCE_INIT};
    kf_phase before;
    kofn_status st;

    TRY(check(j, operand));
    if (!source || !source->read)
        return kf_fail(KOFN_INVAL, "the source is missing; begin with "
                                   "KOFN_SOURCE_INIT and set `read`");
    TRY(kf_given(&f.from, sizeof f.from, source, "KOFN_SOURCE_INIT"));
    f.from.panel = f.from.panel ? f.from.panel : PANEL;
    f.held = &j->held[operand];
    before = kf_phase_turn(j, KF_ENCODE);
    st = place(&f);
    kf_phase_turn(j, before);
    return st;
}
