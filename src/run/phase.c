/* phase.c -- the coordinator's time, by what it does.
 *
 * Each moment since kofn_open belongs to one phase. So the times of all phases
 * between two moments add up to the time between them, on every port's clock.
 *
 * Owns the account of the job. It decides nothing. */
#include "job.h"

#include <assert.h>

kf_phase kf_phase_turn_at(kofn_job *j, kf_phase to, kofn_time now)
{
    kf_phases *a = &j->phases;
    kf_phase before = a->phase;

    a->spent[before] += now - a->since;
    a->since = now;
    a->phase = to;
    return before;
}

kf_phase kf_phase_turn(kofn_job *j, kf_phase to)
{
    return kf_phase_turn_at(j, to, kf_job_now(j));
}

kofn_time kf_phase_mark(kofn_job *j, kf_mark *m)
{
    kf_phase_turn(j, j->phases.phase);
    memcpy(m->spent, j->phases.spent, sizeof m->spent);
    return m->at = j->phases.since;
}

static void fill(kofn_report *r, const kofn_time *spent)
{
    r->encoding = spent[KF_ENCODE];
    r->placing = spent[KF_PLACE];
    r->sending = spent[KF_SEND];
    r->waiting = spent[KF_WAIT];
    r->receiving = spent[KF_RECEIVE];
    r->decoding = spent[KF_DECODE];
    r->checking = spent[KF_CHECK];
    r->outside = spent[KF_OUTSIDE];
}

void kf_phase_since(kofn_job *j, const kf_mark *m, kofn_report *r)
{
    kofn_time spent[KF_PHASES];
    kf_mark now;

    r->took = kf_phase_mark(j, &now) - m->at;
    for (int i = 0; i < KF_PHASES; i++)
        spent[i] = now.spent[i] - m->spent[i];
    fill(r, spent);
}

void kf_phase_total(const kofn_job *j, kofn_report *r)
{
    kofn_time spent[KF_PHASES];

    memcpy(spent, j->phases.spent, sizeof spent);
    spent[j->phases.phase] += kf_job_now(j) - j->phases.since;
    fill(r, spent);
}

kofn_status kf_job_send(kofn_job *j, kf_msg *m)
{
    kf_phase before = kf_phase_turn(j, KF_SEND);
    kofn_status st = j->port->send(j->port, m);

    kf_phase_turn(j, before);
    return st;
}
