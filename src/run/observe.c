/* observe.c -- what became of tasks, and telling those who watch.
 *
 * The fates of tasks are in their slots.  Observers are called in turn and may
 * not change anything. */
#include "job.h"

/* ---- tasks --------------------------------------------------------------- */

/* The time since when the worker was at this task, as far as is known here: a
 * worker has several in hand, of several products, and does one after the
 * other. */
static kofn_time since(const kofn_job *j, const slot *s)
{
    return s->worker < j->enders && j->ended[s->worker] > s->sent
               ? j->ended[s->worker]
               : s->sent;
}

static void end_task(kofn_job *j, slot *s, kf_fate fate)
{
    s->fate = fate;
    s->over = kf_job_now(j);
    if (!j->observers)
        return;
    s->since = since(j, s);
    while (j->enders <= s->worker) {
        if (kf_grow(&j->ended, &j->ended_cap, j->enders, sizeof *j->ended))
            return;
        j->ended[j->enders++] = 0;
    }
    j->ended[s->worker] = s->over;
}

void kf_job_over(kofn_job *j, product *p, uint32_t task, kf_fate fate)
{
    slot *s = kf_job_slot(p, task);

    if (s && s->fate == KF_FATE_OUT)
        end_task(j, s, fate);
}

/* A result may come after all of a task that was cancelled. */
static void came(kofn_job *j, const kofn_event *ev)
{
    const product *p = kf_job_find(j, ev->product);
    slot *s = p && kf_job_is_running(p) ? kf_job_slot(p, ev->task) : NULL;

    if (!s || s->worker != ev->worker ||
        (s->fate != KF_FATE_OUT && s->fate != KF_FATE_CANCELLED))
        return;
    s->took = ev->took;
    end_task(j, s, ev->type == KOFN_EV_RESULT ? KF_FATE_CAME : KF_FATE_FAILED);
}

static void lose(kofn_job *j, product *p, uint32_t worker, bool all)
{
    for (size_t i = 0; i < p->slots; i++) {
        slot *s = &p->slot[i];

        if (s->worker == worker && s->fate == KF_FATE_OUT)
            end_task(j, s, KF_FATE_LOST);
        else if (all && s->fate == KF_FATE_USED)
            s->fate = KF_FATE_CAME;
    }
}

/* With KOFN_IN_FLIGHT_ABORT nobody's work of a product is of use any more when
 * one of those who take part in it goes. */
void kf_job_lose(kofn_job *j, uint32_t worker)
{
    kofn_worker_state was = kf_core_worker(j->core, worker);
    bool all = j->opt.in_flight == KOFN_IN_FLIGHT_ABORT &&
               (was == KOFN_WORKER_LIVE || was == KOFN_WORKER_LEAVING);

    for (size_t i = 0; i < j->opens; i++)
        lose(j, j->open[i], worker, all);
}

void kf_job_record(kofn_job *j, const kofn_event *ev)
{
    switch (ev->type) {
    case KOFN_EV_JOINED:
        kf_run_tell_worker(j, KF_JOINED, ev->worker);
        break;
    case KOFN_EV_STORED:
        kf_run_tell_worker(j, KF_STORED, ev->worker);
        break;
    case KOFN_EV_LEAVING:
        kf_run_tell_worker(j, KF_LEAVING, ev->worker);
        break;
    case KOFN_EV_LEFT:
    case KOFN_EV_UNRESPONSIVE:
        kf_job_lose(j, ev->worker);
        kf_run_tell_worker(j, KF_LEFT, ev->worker);
        break;
    case KOFN_EV_RESULT:
    case KOFN_EV_FAILED:
        came(j, ev);
        break;
    case KOFN_EV_BEGIN:
    case KOFN_EV_ALARM:
    case KOFN_EV_VERDICT:
    case KOFN_EV_MOVED:
    case KOFN_EV_CANCEL:
    case KOFN_EV_VOID:
    case KOFN_EV_JUDGED:
        break;
    }
}

void kf_job_use(product *p, const kofn_action *a)
{
    for (size_t i = 0; i < a->count; i++) {
        slot *s = kf_job_slot(p, a->tasks[i]);

        if (s && s->fate == KF_FATE_CAME)
            s->fate = KF_FATE_USED;
    }
}

/* The verdict on this check is the newest. */
void kf_job_corrupt(kofn_job *j, product *p, const kofn_action *a)
{
    const kf_verdict *v = &j->guard.verdict[j->guard.count - 1];

    for (size_t i = 0; i + v->doubted < v->count; i++) {
        slot *s = kf_job_slot(p, a->tasks[v->bad[i]]);

        if (s)
            s->fate = KF_FATE_WRONG;
    }
}

unsigned kf_job_late(const product *p)
{
    unsigned n = 0;

    for (size_t i = 0; i < p->slots; i++)
        n += p->slot[i].fate == KF_FATE_CAME ||
             p->slot[i].fate == KF_FATE_CANCELLED;
    return n;
}

/* ---- telling ------------------------------------------------------------- */

void kf_run_tell(const kofn_job *j, const kf_moment *m)
{
    for (size_t i = 0; i < j->observers; i++)
        j->observer[i]->see(j->observer[i], j, m);
}

void kf_run_tell_worker(const kofn_job *j, kf_moment_type type, uint32_t worker)
{
    kofn_time now;

    if (!j->observers)
        return;
    now = kf_job_now(j);
    kf_run_tell(j, &(kf_moment){
                       .type = type, .from = now, .to = now, .worker = worker});
}

void kf_run_tell_product(kofn_job *j, product *p, kofn_status st)
{
    kofn_time now;

    if (!j->observers || !p->begun || p->shown)
        return;
    p->shown = true;
    now = st == KOFN_AGAIN ? kf_job_now(j) : p->began + p->rep.took;
    for (size_t i = 0; i < p->slots; i++) {
        const slot *s = &p->slot[i];

        kf_run_tell(j,
                    &(kf_moment){.type = KF_TASK,
                                 .sent = s->sent,
                                 .from = s->fate == KF_FATE_OUT ? since(j, s)
                                                                : s->since,
                                 .to = s->fate == KF_FATE_OUT ? now : s->over,
                                 .round = p->number,
                                 .worker = s->worker,
                                 .task = s->task,
                                 .fate = s->fate,
                                 .group = s->group,
                                 .row = s->row,
                                 .lo = s->lo,
                                 .hi = s->hi,
                                 .took = s->took});
    }
    kf_run_tell(j, &(kf_moment){.type = KF_ROUND,
                                .from = p->began,
                                .to = now,
                                .status = st,
                                .round = p->number});
}

/* ---- life ---------------------------------------------------------------- */

static kofn_status watch(kofn_job *j, const char *path,
                         kofn_status (*make)(kf_observer **, const kofn_job *,
                                             const char *))
{
    if (!path)
        return KOFN_OK;
    TRY(make(&j->observer[j->observers], j, path));
    j->observers++;
    return KOFN_OK;
}

kofn_status kf_observe(kofn_job *j)
{
    TRY(watch(j, j->opt.metrics, kf_metrics_new));
    TRY(watch(j, j->opt.trace, kf_trace_new));
    return watch(j, j->opt.record, kf_record_new);
}

kofn_status kofn_finish(kofn_job *j)
{
    char first[256] = "";
    kofn_status bad = KOFN_OK;

    for (size_t i = 0; i < j->opens; i++)
        kf_run_tell_product(j, j->open[i], KOFN_AGAIN);
    for (size_t i = 0; i < j->observers; i++) {
        kofn_status st = j->observer[i]->end(j->observer[i], j);

        if (st && !bad) {
            bad = st;
            strncpy(first, kofn_errmsg(), sizeof first - 1);
        }
    }
    j->observers = 0;
    return bad ? kf_fail(bad, "%s", first) : KOFN_OK;
}
