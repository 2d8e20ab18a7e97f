/* report.c -- reports to callers: of products, of all together, and of the
 * progress of a job.
 *
 * Owns the sums, and the tables that the last report points to. */
#include "job.h"

#include "base/report.h"

#include <assert.h>

void kf_job_count(kofn_job *j, const kofn_report *more)
{
    kf_report_add(&j->reported.rest, more);
}

void kf_job_sum(const kofn_job *j, kofn_report *sum)
{
    *sum = j->reported.total;
    kf_report_add(sum, &j->reported.rest);
    for (size_t i = 0; i < j->open.count; i++)
        kf_report_add(sum, &j->open.list[i]->rep);
    sum->rounds = j->reported.total.rounds; /* only those that are over */
    kf_phase_total(j, sum);
}

kofn_status kofn_job_progress(const kofn_job *j, kofn_progress *p)
{
    kf_core_view v;
    kofn_report sum = KOFN_REPORT_INIT;
    kofn_progress now;

    TRY(kf_begun(p, "KOFN_PROGRESS_INIT"));
    kf_core_look(j->core, 0, &v);
    kf_job_sum(j, &sum);
    now = (kofn_progress){.round = v.round,
                          .live = v.live,
                          .awaited = v.awaited,
                          .done = v.done,
                          .needed = v.needed,
                          .here = j->loop.greeted,
                          .expected = j->port->workers,
                          .joined = sum.joined,
                          .left = sum.left,
                          .sent = sum.sent,
                          .received = sum.received,
                          .rebuilding = j->lease.rebuilding.count,
                          .corrupt = sum.corrupt,
                          .strips = kf_job_strips(j),
                          .storing = kf_core_storing(j->core),
                          .blocks = j->lease.bytes};
    if (j->port->placed)
        now.placed = j->port->placed(j->port);
    for (size_t i = 0; i < j->open.count; i++) {
        const kf_slots *t = j->open.list[i]->start.tasks;

        for (size_t k = 0; t && k < t->count; k++)
            if (t->task[k].outcome == KF_OUTCOME_OUT)
                now.outstanding += t->task[k].hi - t->task[k].lo;
    }
    for (uint32_t i = 0; v.standby > 0 && i < v.workers; i++)
        now.crowd += kf_core_crowded(j->core, i);
    kf_give(p, &now, sizeof now);
    return KOFN_OK;
}

const kofn_plan *kofn_job_plan(const kofn_job *j)
{
    return j->plan;
}

const char *kofn_job_name(const kofn_job *j, size_t worker)
{
    return j->port->name_of && worker <= UINT32_MAX
               ? j->port->name_of(j->port, (uint32_t)worker)
               : "";
}

kofn_worker_state kofn_job_worker(const kofn_job *j, size_t worker)
{
    return worker < kf_core_known(j->core)
               ? kf_core_worker(j->core, (uint32_t)worker)
               : KOFN_WORKER_UNKNOWN;
}

const char *kofn_job_failure(const kofn_job *j)
{
    return j->reported.failure ? j->reported.failure : "";
}

kofn_status kofn_job_totals(const kofn_job *j, kofn_report *rep)
{
    kofn_report all = j->reported.total;

    TRY(kf_begun(rep, "KOFN_REPORT_INIT"));
    kf_phase_total(j, &all);
    kf_give(rep, &all, sizeof all);
    return KOFN_OK;
}

/* ---- of a product -------------------------------------------------------- */

/* Copies what the report points to, because the core's tables change later.
 * For a sum it also copies the weights of its parts. */
static kofn_status fill_tables(const kofn_job *j, tables *t, size_t components,
                               const kf_core_view *v, kofn_report *r)
{
    TRY(kf_reach(&t->rows, &t->row_cap, v->workers, sizeof *t->rows));
    TRY(kf_reach(&t->located, &t->located_cap, v->workers, sizeof *t->located));
    TRY(kf_reach(&t->states, &t->state_cap, v->workers, sizeof *t->states));
    TRY(kf_reach(&t->computed, &t->computed_cap, v->workers,
                 sizeof *t->computed));
    for (size_t i = 0; i < v->workers; i++) {
        t->rows[i] = kf_core_rows(j->core, v->round, (uint32_t)i) * components;
        t->located[i] = v->located[i];
        t->states[i] = kf_core_worker(j->core, (uint32_t)i);
        t->computed[i] = 0;
    }
    r->live = (unsigned)v->live;
    r->rebuilding = (unsigned)j->lease.rebuilding.count;
    r->rows = t->rows;
    r->located = t->located;
    r->states = t->states;
    r->computed = t->computed;
    r->workers = v->workers;
    r->liars = v->liars;
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

kofn_status kf_job_report(kofn_job *j, product *p, const kofn_action *a)
{
    kofn_report *r = &p->rep;
    kf_core_view v;

    assert(p->start.tasks);
    kf_core_look(j->core, p->start.core, &v);
    TRY(fill_tables(j, &p->tables, p->use->layout.components, &v, r));
    for (size_t i = 0; i < p->start.tasks->count; i++)
        if (p->start.tasks->task[i].worker < v.workers)
            p->tables.computed[p->start.tasks->task[i].worker] +=
                p->start.tasks->task[i].took;
    r->noise = a->noise;
    r->predicted = a->predicted + p->measure.error;
    r->late = kf_task_outcomes_late(p->start.tasks);
    r->dropped = (unsigned)(v.dropped - j->reported.dropped);
    r->corrupt = (unsigned)v.corrupt;
    r->floor = p->measure.floor;
    r->drift = p->measure.drift;
    r->parts = j->tally.parts;
    r->weights = p->tables.weights;
    r->ages = j->tally.age ? p->tables.ages : NULL;
    j->reported.dropped = v.dropped;
    return KOFN_OK;
}

kofn_report kf_job_report_of(const kofn_job *j, const product *p)
{
    kofn_report r = j->reported.rest;

    if (p)
        kf_report_add(&r, &p->rep);
    r.number = p ? p->number : 0;
    return r;
}

/* Keeps what the sentence about the run says of single products. */
static void note_end(kf_reported *x, const product *p, const kofn_report *r)
{
    x->lossy |= r->left > 0;
    if (!x->lossy) {
        x->calm += r->took;
        x->calm_rounds++;
    }
    if (p->end.ended < 0 && !x->failed) {
        x->failed = true;
        x->failed_at = p->number;
    }
}

void kf_job_close(kofn_job *j, product *p, const kofn_report *r)
{
    tables mine = j->reported.tables;

    kf_report_add(&j->reported.total, r);
    note_end(&j->reported, p, r);
    j->reported.tables = p->tables;
    p->tables = mine;
    kf_free(j->reported.failure);
    j->reported.failure = p->end.failure;
    p->end.failure = NULL;
    j->reported.moved = p->rep.sent + p->rep.received;
    j->reported.rest = (kofn_report)KOFN_REPORT_INIT;
    kf_job_close_product(j, p);
}

kofn_status kf_job_report_rest(kofn_job *j, const kf_mark *from,
                               kofn_report *out)
{
    kf_core_view v;

    *out = j->reported.rest;
    kf_core_look(j->core, 0, &v);
    TRY(fill_tables(j, &j->reported.tables, j->plan->layout.components, &v,
                    out));
    kf_phase_since(j, from, out);
    kf_report_add(&j->reported.total, out);
    j->reported.rest = (kofn_report)KOFN_REPORT_INIT;
    return KOFN_OK;
}
