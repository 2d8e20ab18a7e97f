/* observe.c -- reports the moments that only the job knows, and the time that
 * its work takes, to observers and to the journal.
 *
 * Changes nothing in the job except its observers. */
#include "job.h"

#include "base/clock.h"

static void note(kofn_job *j, const kofn_note *n)
{
    if (j->journal)
        kf_journal_note(j->journal, n);
    kf_task_outcomes_note(&j->outcomes, n);
}

void kf_job_note_now(kofn_job *j, kofn_note n)
{
    if (!kf_job_is_watched(j))
        return;
    n.now = n.since = kf_job_now(j);
    note(j, &n);
}

void kf_job_note_over(kofn_job *j, const product *p, kofn_time now,
                      unsigned round)
{
    if (kf_job_is_watched(j))
        note(j, &(kofn_note){.own = "over",
                             .now = now,
                             .since = p->start.began,
                             .status = p->end.ended,
                             .round = round,
                             .product = p->start.core});
}

kf_stopwatch kf_job_start_work(kofn_job *j, kf_phase phase)
{
    kf_stopwatch w = {.start = kf_job_now(j),
                      .cpu = j->port->spend ? kf_cpu_time() : 0};

    w.before = kf_phase_turn_at(j, phase, w.start);
    return w;
}

void kf_job_end_work(kofn_job *j, kf_stopwatch w, const char *what)
{
    kofn_time now;

    if (j->port->spend)
        j->port->spend(j->port, kf_cpu_time() - w.cpu);
    now = kf_job_now(j);
    kf_phase_turn_at(j, w.before, now);
    if (kf_job_is_watched(j))
        note(j, &(kofn_note){.own = what, .now = now, .since = w.start});
}

/* Reports the end to the journal, which then has the totals, and to the
 * observers. */
static kofn_status note_finish(kofn_job *j, kofn_time now)
{
    kofn_note n = {.own = "finished", .now = now, .since = now};
    kofn_report total = KOFN_REPORT_INIT;
    char verdict[KOFN_VERDICT];

    if (j->journal) {
        TRY(kofn_job_totals(j, &total));
        TRY(kofn_job_verdict(j, verdict, sizeof verdict));
        kf_journal_finish(j->journal, now, &total, verdict);
    }
    kf_task_outcomes_note(&j->outcomes, &n);
    return KOFN_OK;
}

kofn_status kofn_finish(kofn_job *j)
{
    kofn_time now;
    kofn_status st;

    if (!kf_job_is_watched(j))
        return KOFN_OK;
    now = kf_job_now(j);
    for (size_t i = 0; i < j->open.count; i++)
        if (kf_job_is_running(j->open.list[i]))
            kf_job_note_over(j, j->open.list[i], now, j->open.list[i]->number);
    st = note_finish(j, now);
    TRY(kf_task_outcomes_end(&j->outcomes, true));
    return st;
}
