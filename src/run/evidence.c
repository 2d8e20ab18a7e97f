/* evidence.c -- the evidence against workers with blocks that may be wrong, and
 * the operands that have to be read to decide (scrub.c).
 *
 * It excludes no worker and carries out nothing. */
#include "job.h"

#include <assert.h>

void kf_evidence_ask(kofn_job *j, size_t operand)
{
    assert(operand < j->operands);
    j->held[operand].due = j->evidence.on = true;
}

static kofn_status accuse(kofn_job *j, const product *p, uint32_t worker)
{
    kf_all_evidence *s = &j->evidence;

    if (!p->measure.drifts && j->held[p->operand].changes == 0)
        return KOFN_OK;
    TRY(kf_reach(&s->worker, &s->workers, (size_t)worker + 1,
                 sizeof *s->worker));
    if (p->measure.drifts) {
        s->worker[worker].wrong = j->held[p->operand].odd = true;
        return KOFN_OK;
    }
    s->worker[worker].accused = true;
    kf_evidence_ask(j, p->operand);
    return KOFN_OK;
}

kofn_status kf_evidence_receive(kofn_job *j, const product *p,
                                const kofn_action *a)
{
    assert(j->guard.count > 0);
    const kofn_event *v = &j->guard.verdict[j->guard.count - 1].event;

    /* a located worker of the first reading need not be certain again */
    size_t n = v->bad_count -
               (p->measure.drifts && j->evidence.second ? 0 : v->doubted);

    assert(v->doubted <= v->bad_count);
    for (size_t i = 0; i < n; i++)
        TRY(accuse(j, p, kf_job_task(p, a->tasks[v->bad[i]])->worker));
    return KOFN_OK;
}

void kf_evidence_stored(kofn_job *j, uint32_t worker)
{
    kf_all_evidence *s = &j->evidence;

    if (worker >= s->workers || !s->worker[worker].mending)
        return;
    s->worker[worker].mending = false;
    kf_job_count(j, &(kofn_report){.rebuilt = 1});
}

/* Has operands with a wrong block read a second time, to decide whether the
 * block or its reading was wrong. */
static bool read_again(kofn_job *j)
{
    kf_all_evidence *s = &j->evidence;
    bool any = false;

    for (size_t o = 0; o < j->operands && !s->second; o++) {
        any |= j->held[o].due = j->held[o].odd;
        j->held[o].odd = false;
    }
    for (size_t i = 0; i < s->workers && any; i++) {
        s->worker[i].first = s->worker[i].wrong;
        s->worker[i].wrong = false;
    }
    s->second |= any;
    return any;
}

bool kf_evidence_goes_on(kofn_job *j, size_t operand)
{
    assert(operand < j->operands);
    j->held[operand].due = false;
    while (operand < j->operands && !j->held[operand].due)
        operand++;
    return operand < j->operands || read_again(j);
}

void kf_evidence_end(kofn_job *j)
{
    for (size_t o = 0; o < j->operands; o++)
        j->held[o].due = j->held[o].odd = false;
    j->evidence.on = j->evidence.second = false;
}

kf_block_evidence kf_evidence_forget(kofn_job *j, uint32_t worker)
{
    assert(worker < j->evidence.workers);
    kf_block_evidence *w = &j->evidence.worker[worker], was = *w;

    *w = (kf_block_evidence){.mending = was.mending};
    return was;
}

void kf_evidence_mend(kofn_job *j, uint32_t worker)
{
    assert(worker < j->evidence.workers);
    j->evidence.worker[worker].mending = true;
}
