/* scrub.c -- compares blocks with each other and replaces wrong ones.
 *
 * Operands are read from all workers, one window of strips at a time, and the
 * strips are compared.  A block is taken for wrong if two readings find it
 * wrong, even if no product shows it.  All operands are compared if the caller
 * asks for it (kofn_scrub).  A changing operand is also compared when a worker
 * was located in a product of it.  This shows whether the worker has a right
 * block and answered wrongly once, or has a wrong block and would continue to
 * be wrong.
 *
 * A worker with a wrong block gets another one, like a joiner.  Both cases
 * count against the worker.  A worker that is wrong more often than chance
 * explains, compared with the others, gets no more work (src/base/blame.h).
 *
 * Owns the window that is read.  It excludes no worker: it reports to the core
 * what it found. */
#include "job.h"

#include <assert.h>

/* ---- verdicts ------------------------------------------------------------ */

/* Has the worker store another block.  Its wrong block counts against it, in
 * addition to a product that showed it. */
static kofn_status mend(kofn_job *j, uint32_t worker)
{
    TRY(kf_job_tell(j, KOFN_EV_JUDGED, worker));
    if (kf_core_worker(j->core, worker) != KOFN_WORKER_LIVE)
        return KOFN_OK;
    kf_evidence_mend(j, worker);
    return kf_job_tell(j, KOFN_EV_VOID, worker);
}

static kofn_status judge_all(kofn_job *j)
{
    for (uint32_t i = 0; i < j->evidence.workers; i++) {
        kf_block_evidence was = kf_evidence_forget(j, i);

        if (kf_core_worker(j->core, i) != KOFN_WORKER_LIVE)
            continue;
        kf_job_count(j, &(kofn_report){.again = was.accused || was.first});
        if (was.first && was.wrong)
            TRY(mend(j, i));
    }
    return KOFN_OK;
}

/* ---- windows ------------------------------------------------------------- */

/* Ends the comparison.  If it failed, no worker is judged by it. */
static void end(kofn_job *j, kofn_status st, const char *why)
{
    kf_scrub *s = &j->scrub;

    for (uint32_t i = 0; st && i < j->evidence.workers; i++)
        kf_evidence_forget(j, i);
    kf_evidence_end(j);
    kf_free(s->cols);
    s->cols = NULL;
    s->asked = false;
    s->window.operand = s->window.at = 0;
    s->status = st;
    snprintf(s->why, sizeof s->why, "%s", why);
}

/* Renews the norms of the operand by the strips that were read. */
static kofn_status renew(kofn_job *j)
{
    kf_window *w = &j->scrub.window;
    kf_held *h = &j->held[w->operand];
    kf_resident r;
    kofn_status st = kf_window_resident(j, w, h->plan, &r);

    assert(!w->reading);
    if (!st)
        st = kf_norms_renew_rows(&h->norms, &r, w->at, &j->scrub.cols);
    kf_resident_free(&r);
    return st;
}

static kofn_status next_operand(kofn_job *j)
{
    kf_scrub *s = &j->scrub;
    kf_window *w = &s->window;

    kf_norms_renew_cols(&j->held[w->operand].norms,
                        &j->held[w->operand].resident, &s->cols);
    w->at = 0;
    if (kf_evidence_goes_on(j, w->operand))
        return KOFN_OK;
    end(j, KOFN_OK, "");
    return judge_all(j);
}

static kofn_status take_window(kofn_job *j)
{
    assert(j->scrub.window.reading);
    kf_window *w = &j->scrub.window;
    kofn_status st = w->reading->end.ended;
    char why[512];

    snprintf(why, sizeof why, "%s", w->reading->end.why);
    kf_window_close(j, w);
    if (st == KOFN_NOMEM)
        return st;
    if (st) {
        end(j, st, why);
        return KOFN_OK;
    }
    if (w->state == 0)
        TRY(renew(j));
    if (w->state < j->held[w->operand].states) {
        w->state++;
        return kf_window_read(j, w);
    }
    w->at = w->to;
    return w->at < kf_window_strips(j, w) ? KOFN_OK : next_operand(j);
}

static kofn_status begin_window(kofn_job *j)
{
    kf_window *w = &j->scrub.window;

    assert(j->evidence.on);
    if (w->at == 0)
        for (w->operand = 0; !j->held[w->operand].due;)
            w->operand++;
    assert(w->operand < j->operands);
    kf_window_next(j, w);
    return kf_window_read(j, w);
}

/* Ends the comparison, because there are too few workers to compare. */
static kofn_status give_up(kofn_job *j)
{
    kf_window *w = &j->scrub.window;
    kofn_event ev = {.type = KOFN_EV_CANCEL};

    if (w->reading) {
        ev.product = w->reading->start.core;
        TRY(kf_job_step(j, &ev));
        kf_window_close(j, w);
    }
    end(j, KOFN_TOOFEW,
        "too few workers are left to compare their blocks; start more workers");
    return KOFN_OK;
}

static kofn_status go_on(kofn_job *j, bool *busy)
{
    kf_window *w = &j->scrub.window;

    *busy = false;
    if (w->reading && w->reading->end.ended != KOFN_AGAIN)
        TRY(take_window(j));
    else if (w->reading && kf_job_starves(j, w->reading))
        TRY(give_up(j));
    /* if the caller asked, first wait for blocks that are made here */
    if (!w->reading && j->evidence.on &&
        !(j->scrub.asked &&
          kf_core_storing(j->core) > j->lease.rebuilding.count)) {
        if (kf_job_has_enough(j))
            TRY(begin_window(j));
        else if (j->scrub.asked && kf_core_storing(j->core) == 0)
            TRY(give_up(j));
    }
    *busy = w->reading != NULL;
    return KOFN_OK;
}

/* ---- steps --------------------------------------------------------------- */

kofn_status kf_scrub_go_on(kofn_job *j, const product *next, bool *busy)
{
    *busy = false;
    TRY(kf_rebuild_take(j));
    if (!j->rebuild.window.reading) {
        TRY(go_on(j, busy));
        if (*busy)
            return KOFN_OK;
        TRY(kf_rebuild_begin(j, next));
        if (!j->rebuild.window.reading)
            return KOFN_OK;
    }
    *busy = next != NULL;
    return KOFN_OK;
}

kofn_status kf_scrub_rest(kofn_job *j)
{
    bool busy;

    for (;;) {
        kofn_status st;

        TRY(kf_scrub_go_on(j, NULL, &busy));
        if (!kf_job_reads(j))
            return KOFN_OK;
        st = kf_job_pass(j, KOFN_NEVER, KOFN_NEVER);
        if (st < 0)
            return st;
    }
}

/* ---- kofn_scrub ---------------------------------------------------------- */

static kofn_status check_job(const kofn_job *j)
{
    TRY(kf_job_check_whole(j));
    TRY(kf_job_check_placed(j));
    if (j->opt.errors == KOFN_ERRORS_NONE)
        return kf_fail(KOFN_UNSUITED,
                       "blocks are compared only in jobs that search for "
                       "wrong results; open the job with errors adversarial "
                       "or probabilistic");
    for (size_t o = 0; o < j->operands; o++)
        if (!kf_job_plan(j, (uint32_t)o, KOFN_USE_READ))
            return kf_fail(KOFN_UNSUITED,
                           "blocks of scheme %s in this operation cannot be "
                           "compared: that needs a dense A and one product "
                           "of it (basis=circle)",
                           j->held[o].plan->scheme->name);
    return KOFN_OK;
}

static kofn_status scrub(kofn_job *j)
{
    bool busy;

    TRY(kf_job_await_start(j));
    TRY(kf_scrub_rest(j));
    for (size_t o = 0; o < j->operands; o++)
        kf_evidence_ask(j, o);
    j->scrub.asked = true;
    while (j->scrub.asked) {
        kofn_time atmost = KOFN_NEVER;
        kofn_status st;

        TRY(kf_job_give_up(j, &atmost));
        TRY(kf_scrub_go_on(j, NULL, &busy));
        if (!j->scrub.asked)
            break;
        st = kf_job_pass(j, KOFN_NEVER, atmost);
        if (st < 0)
            return st;
    }
    return KOFN_OK;
}

kofn_status kofn_scrub(kofn_job *j, kofn_report *rep)
{
    kf_phase phase;
    kofn_status st;
    kf_mark from;
    kofn_report r;

    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    TRY(check_job(j));
    kf_phase_mark(j, &from);
    phase = kf_phase_turn(j, KF_RECEIVE);
    st = kf_job_break(j, scrub(j));
    kf_phase_turn(j, phase);
    TRY(st);
    TRY(kf_job_report_rest(j, &from, &r));
    kf_give(rep, &r, sizeof r);
    return j->scrub.status ? kf_fail(j->scrub.status, "%s", j->scrub.why)
                           : KOFN_OK;
}
