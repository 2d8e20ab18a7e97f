/* telling.c -- gathers from the moments of a run what the sentence about it
 * needs.  The page of a journal without a last line has it from here.
 *
 * Owns the sums and the names. */
#include "sentence.h"

#include "base/base.h"

#include <string.h>

/* Makes room for this worker. */
static kofn_status know(kf_telling *a, uint32_t worker)
{
    while (a->sum.workers <= worker) {
        TRY(kf_grow(&a->sum.worker, &a->worker_cap, a->sum.workers,
                    sizeof *a->sum.worker));
        a->sum.worker[a->sum.workers++] = (kf_sentence_worker){.lost = false};
    }
    return KOFN_OK;
}

static kofn_status note_task(kf_telling *a, const kf_moment *m)
{
    const kf_slot *t = m->task;
    kf_sentence_worker *w;

    TRY(know(a, m->worker));
    w = &a->sum.worker[m->worker];
    if (t->outcome == KF_OUTCOME_WRONG) {
        w->located = true;
        a->sum.wrong++;
    }
    if (t->took > 0) {
        w->results++;
        w->seconds += (double)t->took * 1e-9;
        w->size += (double)(t->hi > t->lo ? t->hi - t->lo : 1);
    }
    return KOFN_OK;
}

/* Counts workers that come and go.  The first ones are expected. */
static kofn_status note_worker(kf_telling *a, const kf_moment *m)
{
    bool joined = m->type == KF_JOINED;

    TRY(know(a, m->worker));
    a->sum.worker[m->worker].lost = !joined;
    if (!joined)
        a->sum.left++;
    else if (a->sum.rounds || m->worker >= a->sum.plan->workers)
        a->sum.joined++;
    return KOFN_OK;
}

static void note_round(kf_telling *a, const kf_moment *m)
{
    kf_sentence *s = &a->sum;
    double took = (double)(m->to - m->from) * 1e-9;

    s->rounds++;
    s->took += took;
    if (!s->left) {
        s->calm += took;
        s->calm_rounds++;
    }
    if (m->status < 0 && !s->failed) {
        s->failed = true;
        s->failed_at = m->round;
    }
    if (m->status == KOFN_AGAIN && !s->cut) {
        s->cut = true;
        s->at = m->round;
    }
}

kofn_status kf_telling_see(kf_telling *a, const kf_moment *m)
{
    switch (m->type) {
    case KF_TASK:
        return note_task(a, m);
    case KF_JOINED:
    case KF_LEFT:
        return note_worker(a, m);
    case KF_ROUND:
        note_round(a, m);
        break;
    default:
        break;
    }
    return KOFN_OK;
}

kofn_status kf_telling_name(kf_telling *a, uint32_t worker, const char *name)
{
    while (a->names <= worker) {
        TRY(kf_grow(&a->name, &a->name_cap, a->names, sizeof *a->name));
        a->name[a->names++] = NULL;
    }
    kf_free(a->name[worker]);
    a->name[worker] = kf_strdup(name);
    return a->name[worker] ? KOFN_OK : KOFN_NOMEM;
}

const char *kf_telling_name_of(const kf_telling *a, size_t worker)
{
    return worker < a->names && a->name[worker] ? a->name[worker] : "";
}

static const char *name_of(const void *ud, size_t worker)
{
    return kf_telling_name_of(ud, worker);
}

void kf_telling_write(kf_telling *a, char *out, size_t room)
{
    for (size_t i = 0; i < a->sum.workers; i++)
        a->sum.worker[i].excluded =
            kf_core_worker(a->core, (uint32_t)i) == KOFN_WORKER_QUARANTINED;
    a->sum.name = name_of;
    a->sum.ud = a;
    kf_sentence_write(&a->sum, out, room);
}

void kf_telling_free(kf_telling *a)
{
    for (size_t i = 0; i < a->names; i++)
        kf_free(a->name[i]);
    kf_free(a->name);
    kf_free(a->sum.worker);
}
