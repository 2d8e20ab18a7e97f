/* trial.c -- what is known against workers whose blocks may be wrong, and of which
 * operands that is to be found out (scrub.c).
 *
 * May not exclude anybody, and has nothing happen. */
#include "job.h"

kofn_status kf_trial_ask(kofn_job *j, size_t operand)
{
    kf_trials *s = &j->trials;

    if (!s->due)
        s->due = kf_zero(j->operands, sizeof *s->due);
    if (!s->odd)
        s->odd = kf_zero(j->operands, sizeof *s->odd);
    if (!s->due || !s->odd)
        return KOFN_NOMEM;
    s->due[operand] = s->on = true;
    return KOFN_OK;
}

static kofn_status accuse(kofn_job *j, const product *p, uint32_t worker)
{
    kf_trials *s = &j->trials;

    if (!p->measure.drifts && j->held[p->operand].changes == 0)
        return KOFN_OK;
    TRY(kf_reach(&s->worker, &s->workers, (size_t)worker + 1,
                 sizeof *s->worker));
    if (p->measure.drifts) {
        s->worker[worker].wrong = s->odd[p->operand] = true;
        return KOFN_OK;
    }
    s->worker[worker].accused = true;
    return kf_trial_ask(j, p->operand);
}

kofn_status kf_trial_receive(kofn_job *j, const product *p,
                             const kofn_action *a)
{
    const kf_verdict *v = &j->guard.verdict[j->guard.count - 1];

    /* who was located when it was read before need not be for certain again */
    size_t n =
        v->count - (p->measure.drifts && j->trials.second ? 0 : v->doubted);

    for (size_t i = 0; i < n; i++)
        TRY(accuse(j, p, kf_job_task(p, a->tasks[v->bad[i]])->worker));
    return KOFN_OK;
}

void kf_trial_stored(kofn_job *j, uint32_t worker)
{
    kf_trials *s = &j->trials;

    if (worker >= s->workers || !s->worker[worker].mending)
        return;
    s->worker[worker].mending = false;
    kf_job_count(j, &(kofn_report){.healed = 1});
}

/* Has operands of which a block came out wrong read once more, to tell whether
 * the block or the reading of it was wrong. */
static bool read_again(kofn_job *j)
{
    kf_trials *s = &j->trials;
    bool any = false;

    for (size_t o = 0; o < j->operands && !s->second; o++) {
        any |= s->due[o] = s->odd[o];
        s->odd[o] = false;
    }
    for (size_t i = 0; i < s->workers && any; i++) {
        s->worker[i].first = s->worker[i].wrong;
        s->worker[i].wrong = false;
    }
    s->second |= any;
    return any;
}

bool kf_trial_goes_on(kofn_job *j, size_t operand)
{
    kf_trials *s = &j->trials;

    s->due[operand] = false;
    while (operand < j->operands && !s->due[operand])
        operand++;
    return operand < j->operands || read_again(j);
}

void kf_trial_end(kofn_job *j)
{
    kf_trials *s = &j->trials;

    for (size_t o = 0; o < j->operands; o++)
        s->due[o] = s->odd[o] = false;
    s->on = s->second = false;
}

kf_trial kf_trial_forget(kofn_job *j, uint32_t worker)
{
    kf_trial *w = &j->trials.worker[worker], was = *w;

    *w = (kf_trial){.mending = was.mending};
    return was;
}

void kf_trial_mend(kofn_job *j, uint32_t worker)
{
    j->trials.worker[worker].mending = true;
}
