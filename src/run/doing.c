/* doing.c -- what a job says of itself to those that ask: its name and where it
 * is, and what each of its workers has done.
 *
 * The port gets a copy ten times a second and at the end of a product, so that
 * a question takes no time of the job. */
#include "job.h"

#include "base/clock.h"

#include <kofn/fleet.h>

#include <assert.h>

#define AGAIN (KOFN_SECOND / 10)

/* ---- the job ------------------------------------------------------------- */

kofn_status kofn_job_label(kofn_job *j, const char *name, const char *unit,
                           uint64_t at, uint64_t of)
{
    kf_doing *d = &j->label.doing;

    snprintf(d->name, sizeof d->name, "%s", name);
    snprintf(d->unit, sizeof d->unit, "%s", unit);
    d->at = at;
    d->of = of;
    j->label.due = 0;
    return KOFN_OK;
}

/* Adds the present figures to the label, and returns both. */
static kf_doing now_doing(const kofn_job *j)
{
    kf_doing d = j->label.doing;
    kofn_report sum = KOFN_REPORT_INIT;
    kf_core_view v;

    kf_core_look(j->core, 0, &v);
    kf_job_sum(j, &sum);
    if (!*d.unit)
        snprintf(d.unit, sizeof d.unit, "round");
    snprintf(d.scheme, sizeof d.scheme, "%.*s", (int)sizeof d.scheme - 1,
             j->plan->spec);
    d.at = d.at ? d.at : v.round;
    d.live = v.live;
    d.workers = j->plan->workers;
    d.sent = sum.sent;
    d.received = sum.received;
    return d;
}

void kf_job_tell_doing(kofn_job *j, bool now)
{
    kofn_time clock;
    kf_doing d;

    if (!j->port->doing)
        return;
    clock = kf_clock();
    if (!now && clock < j->label.due)
        return;
    j->label.due = clock + AGAIN;
    d = now_doing(j);
    j->port->doing(j->port, &d);
}

/* ---- names --------------------------------------------------------------- */

const char *kf_job_title(const kofn_job *j, uint32_t worker, char out[KF_TITLE])
{
    const char *name = kofn_job_name(j, worker);

    snprintf(out, KF_TITLE, "worker %u%s%.256s%s", worker, *name ? " (" : "",
             name, *name ? ")" : "");
    return out;
}

/* ---- its workers --------------------------------------------------------- */

/* Returns the counts of a worker; NULL without memory, so that they lack
 * something. */
static kf_done *done_of(kofn_job *j, uint32_t worker)
{
    return kf_reach(&j->label.done, &j->label.workers, (size_t)worker + 1,
                    sizeof *j->label.done) == KOFN_OK
               ? &j->label.done[worker]
               : NULL;
}

void kf_job_count_result(kofn_job *j, uint32_t worker, kofn_time took,
                         size_t bytes)
{
    kf_done *d = done_of(j, worker);

    if (!d)
        return;
    d->results++;
    d->seconds += (double)took * 1e-9;
    d->bytes += (double)bytes;
}

void kf_job_count_late(kofn_job *j, const product *p)
{
    for (size_t i = 0; i < p->start.tasks->count; i++) {
        const kf_slot *t = &p->start.tasks->task[i];
        kf_done *d =
            t->outcome == KF_OUTCOME_CANCELLED ? done_of(j, t->worker) : NULL;

        if (d && d->product != p->start.core) {
            d->late++;
            d->product = p->start.core;
        }
    }
}

kofn_status kofn_job_describe(const kofn_job *j, size_t i, kofn_fleet_worker *w)
{
    kofn_fleet_worker it = KOFN_FLEET_WORKER_INIT;
    uint32_t worker = (uint32_t)i;

    if (i >= kf_core_known(j->core))
        return kf_fail(KOFN_INVAL, "worker %zu of a job that has fewer", i);
    it.name = it.host = "";
    if (j->port->describe)
        j->port->describe(j->port, worker, &it);
    it.tasks = it.late = 0;
    it.computed = it.bytes = 0;
    if (i < j->label.workers) {
        it.tasks = j->label.done[i].results;
        it.late = j->label.done[i].late;
        it.computed = j->label.done[i].seconds;
        it.bytes = j->label.done[i].bytes;
    }
    it.state = kf_core_worker(j->core, worker) == KOFN_WORKER_LEAVING
                   ? KOFN_FLEET_DRAINING
                   : KOFN_FLEET_FREE;
    kf_give(w, &it, sizeof it);
    return KOFN_OK;
}
