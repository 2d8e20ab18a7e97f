/* observe.c -- who watches a running job: what the options ask for, told of
 * what fates.c makes of the run, and the journal of what only the job knows.
 *
 * May not change the job but for its observers. */
#include "job.h"

void kf_job_note(kofn_job *j, const kofn_note *n)
{
    if (j->journal)
        kf_journal_note(j->journal, n);
    kf_fates_note(&j->fates, n);
}

kofn_status kf_observe(kofn_job *j)
{
    kf_fates *f = &j->fates;

    f->core = j->core;
    f->abort = j->opt.in_flight == KOFN_IN_FLIGHT_ABORT;
    if (j->opt.metrics) {
        TRY(kf_metrics_new(&f->observer[f->observers], j, j->opt.metrics));
        f->observers++;
    }
    return kf_fates_watch(f, j->plan, j->port->name, j->opt.trace,
                          j->opt.record);
}

kofn_status kofn_finish(kofn_job *j)
{
    kofn_time now;

    if (!j->journal && !j->fates.observers)
        return KOFN_OK;
    now = kf_job_now(j);
    for (size_t i = 0; i < j->opens; i++)
        if (kf_job_is_running(j->open[i]))
            kf_job_note(j, &(kofn_note){.own = "over",
                                        .now = now,
                                        .since = j->open[i]->began,
                                        .status = KOFN_AGAIN,
                                        .round = j->open[i]->number,
                                        .product = j->open[i]->core});
    kf_job_note(j, &(kofn_note){.own = "finished", .now = now, .since = now});
    return kf_fates_end(&j->fates, true);
}
