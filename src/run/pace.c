/* pace.c -- when a worker is sent the tasks of its submessages.
 *
 * The core asks for all submessages of a seat at once, for nobody knows how many
 * it takes.  Where a link takes time they would all be under way before they can
 * be stopped.  So a worker is sent as many of them as it takes when nobody who is
 * there straggles, for fewer never do; and then one whenever the last that it was
 * sent has come and the product is not over.  What was not sent and is cancelled
 * costs nothing.
 *
 * Those who share a link do not end at one moment: whoever is first would be sent
 * for one more, which holds up the others, and nobody needs it when they have
 * come.  So it waits while answers come, until there was none for a quarter of the
 * time that one of its own was under way.
 *
 * Tasks of a product wait behind those of older ones: a worker keeps the values
 * of one product, and would have to compute them again.
 */
#include "job.h"

#define PAUSE 4 /* without an answer: this part of an answer's way */

/* A worker that is not heard of before has sent nothing. */
static kofn_status know(kf_pace *x, uint32_t worker)
{
    while (x->workers <= worker) {
        TRY(kf_grow(&x->gait, &x->cap, x->workers, sizeof *x->gait));
        x->gait[x->workers++] = (kf_gait){.awaited = 0};
    }
    return KOFN_OK;
}

/* So many submessages of each who is live are enough at the earliest: who is
 * gone has not to be waited for. */
static size_t first_ones(const kofn_job *j, const kofn_layout *L)
{
    size_t live = kofn_core_live(j->core);

    return kf_ceil_div(L->enough, kf_max(1, live));
}

/* Is it this one's turn?  If only time will make it so, the alarm is set. */
static bool may_go(kofn_job *j, const product *p, const kf_gait *g,
                   const slot *s)
{
    const kofn_layout *L = &p->use->layout;
    kofn_time turn;

    if (s->row % L->submessages < first_ones(j, L))
        return true;
    if (g->awaited > 0)
        return false;
    turn = j->paced.newest + g->way / PAUSE;
    if (kf_job_now(j) >= turn)
        return true;
    if (turn < j->paced.due_at)
        j->paced.due_at = turn;
    return false;
}

static void goes(const product *p, kf_gait *g, slot *s)
{
    if (s->row % p->use->layout.submessages == 0)
        g->way = KOFN_NEVER;
    s->awaited = true;
    g->awaited++;
}

kofn_status kf_pace_hold(kofn_job *j, product *p, slot *s, bool *hold)
{
    const kofn_layout *L = &p->use->layout;
    kf_gait *g;

    *hold = false;
    if (L->submessages == 1)
        return KOFN_OK;
    TRY(know(&j->paced, s->worker));
    g = &j->paced.gait[s->worker];
    if (g->first == g->end && may_go(j, p, g, s)) {
        goes(p, g, s);
        return KOFN_OK;
    }
    TRY(kf_grow(&g->turn, &g->cap, g->end, sizeof *g->turn));
    g->turn[g->end++] = (kf_turn){p->core, s->task};
    j->paced.held++;
    *hold = true;
    return KOFN_OK;
}

void kf_pace_over(kofn_job *j, slot *s)
{
    kf_gait *g;

    if (!s->awaited)
        return;
    g = &j->paced.gait[s->worker];
    s->awaited = false;
    g->awaited--;
    j->paced.due |= j->paced.held > 0;
}

void kf_pace_came(kofn_job *j, slot *s, kofn_time took)
{
    kofn_time now = kf_job_now(j), way;
    kf_gait *g;

    if (!s->awaited)
        return;
    g = &j->paced.gait[s->worker];
    way = now - (s->since > g->last ? s->since : g->last) - took;
    g->way = way < g->way ? way : g->way;
    g->last = j->paced.newest = now;
    kf_pace_over(j, s);
}

kofn_time kf_pace_alarm(const kofn_job *j)
{
    return j->paced.held > 0 ? j->paced.due_at : KOFN_NEVER;
}

bool kf_pace_cancel(kofn_job *j, slot *s)
{
    kf_gait *g =
        s->worker < j->paced.workers ? &j->paced.gait[s->worker] : NULL;
    size_t i = g ? g->first : 0;

    kf_pace_over(j, s);
    while (g && i < g->end && g->turn[i].task != s->task)
        i++;
    if (!g || i == g->end)
        return false;
    memmove(g->turn + i, g->turn + i + 1, (--g->end - i) * sizeof *g->turn);
    j->paced.held--;
    return true;
}

/* Does the core still count on what was asked of it? */
static bool counts(const kofn_job *j, uint32_t worker)
{
    kofn_worker_state st = kofn_core_worker(j->core, worker);

    return st == KOFN_WORKER_LIVE || st == KOFN_WORKER_LEAVING;
}

/* The task whose turn it is; NULL: it is not needed any more. */
static slot *find(const kofn_job *j, kf_turn t, product **p)
{
    slot *s;

    *p = kf_job_find(j, t.product);
    s = *p && kf_job_is_running(*p) ? kf_job_slot(*p, t.task) : NULL;
    return s && s->fate == KF_FATE_OUT && counts(j, s->worker) ? s : NULL;
}

static kofn_status go_on(kofn_job *j, kf_gait *g)
{
    while (g->first < g->end) {
        product *p;
        slot *s = find(j, g->turn[g->first], &p);

        if (s && !may_go(j, p, g, s))
            return KOFN_OK;
        g->first++;
        j->paced.held--;
        if (s) {
            goes(p, g, s);
            TRY(kf_job_send_task(j, p, s));
        }
    }
    g->first = g->end = 0;
    return KOFN_OK;
}

kofn_status kf_pace_go_on(kofn_job *j)
{
    j->paced.due = false;
    j->paced.due_at = KOFN_NEVER;
    for (size_t i = 0; i < j->paced.workers; i++)
        TRY(go_on(j, &j->paced.gait[i]));
    return KOFN_OK;
}

void kf_pace_free(kf_pace *x)
{
    for (size_t i = 0; i < x->workers; i++)
        kf_free(x->gait[i].turn);
    kf_free(x->gait);
}
