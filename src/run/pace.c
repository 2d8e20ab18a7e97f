/* pace.c -- decides when a worker is sent the tasks of its submessages.
 *
 * The core asks for all submessages of a seat at once, because the number that
 * it needs is not known before.  On a slow link they would all be on their way
 * before they can be stopped.  So a worker is first sent the number that
 * suffices if no live worker straggles.  Fewer never suffice.  Further ones are
 * sent one at a time, after the last one sent has come, while the product is
 * not over.  A task that is cancelled before it was sent costs nothing.
 *
 * Workers that do not straggle send equally many submessages.  The smallest
 * such number known is the product's *level*.  It rises by one when some worker
 * has sent that number and all workers that have not are late.  Then each
 * worker that has sent it, or will, is sent one more.  Raising it too early
 * costs most on a shared link, where unneeded results delay needed ones.
 *
 * No worker is late before a pause without an answer.  The pause is a quarter
 * of the time that a submessage takes.  The pace of a worker is the time that
 * one of its submessages takes.  A worker that is sending shows its pace by the
 * part of the result that has come.  Its rest is the time for all that it was
 * sent for.  A worker is late if its rest exceeds that of half of the workers
 * by more than one submessage, or if its pace is many times theirs.
 *
 * Tasks of a product wait behind those of older ones, because a worker keeps
 * the values of one product only.  It would have to compute them again.
 *
 * Owns the tasks that wait for their turn.  It delays tasks, but neither drops
 * nor makes any, so that the core's count of tasks stays true. */
#include "job.h"

#include "data/kernel.h"

#include <assert.h>
#include <stdlib.h>

#define SENT_LATE 10000 /* ns: a task that is sent later than this is noted */
#define PAUSE 4         /* the pause is this part of an answer's time */
#define SLOW 4 /* late: this multiple of the pace of half of the workers */
#define LOOK (KOFN_SECOND / 1000) /* shortest time between two looks */

static kofn_time longer(kofn_time a, kofn_time b)
{
    return a > b ? a : b;
}

/* ---- sent ---------------------------------------------------------------- */

/* Takes a buffer for the result of strips [lo, hi). */
static kofn_status take_result(kofn_job *j, const product *p,
                               const kf_kernel *k, const kf_msg *m,
                               kf_buffer **out)
{
    kf_extent block = kf_extent_of(p->use);
    kf_work w = {.in = &m->in->m, .lo = m->lo, .hi = m->hi};
    size_t rows, cols;

    if (!k->gives(&block, &w, &rows, &cols))
        return kf_nomem(SIZE_MAX);
    return kf_pool_take(&j->spare, rows, cols, p->use->layout.problem.dtype,
                        out);
}

/* Counts the bytes of the input.  A worker is sent an input once, for all of
 * its tasks. */
static kofn_status count_input(product *p, uint32_t worker, const kf_buffer *in)
{
    TRY(kf_reach(&p->feed.fed, &p->feed.count, (size_t)worker + 1,
                 sizeof *p->feed.fed));
    if (p->feed.fed[worker] != in)
        p->rep.sent += kf_buffer_bytes(in);
    p->feed.fed[worker] = in;
    return KOFN_OK;
}

static kofn_status send_task(kofn_job *j, product *p, kf_slot *s)
{
    const kf_kernel *kernel = kf_kernel_for(p->use);
    product *const *oldest = j->open.list; /* that is running: there is one */
    kf_msg m = {.type = KF_MSG_WORK,
                .worker = s->worker,
                .product = p->start.core,
                .task = s->task,
                .row = s->row,
                .round = p->start.core,
                .operand = p->operand,
                .state = p->measure.sides.state,
                .how = kernel->how,
                .lo = s->lo,
                .hi = s->hi};
    kofn_status st;

    assert(s->lo < s->hi && kf_job_is_running(p));
    while (!kf_job_is_running(*oldest))
        oldest++;
    m.oldest = (*oldest)->start.core;
    /* a task counts as sent at the event that gave it out */
    if (kf_job_is_watched(j) && kf_job_now(j) - s->sent > SENT_LATE)
        kf_job_note_now(j, (kofn_note){.own = "sent",
                                       .product = p->start.core,
                                       .task = s->task});
    m.in = kf_messages_take(&p->messages, kf_job_row(p, s->row, s->group));
    st = count_input(p, s->worker, m.in);
    if (!st && kf_is_stream(j))
        st = kf_pair_given(j, p, &m);
    if (!st)
        st = take_result(j, p, kernel, &m, &m.result);
    if (st) {
        kf_buffer_drop(m.in);
        kf_block_drop(m.block);
        return st;
    }
    return kf_job_send(j, &m);
}

/* ---- turns --------------------------------------------------------------- */

/* Returns the number of submessages of each live worker that may suffice.
 * Workers that have left are not waited for. */
static size_t first_ones(const kofn_job *j, const kofn_layout *L)
{
    size_t live = kf_core_live(j->core);

    return kf_ceil_div(L->enough, kf_max(1, live));
}

/* True if it is the turn of this task. */
static bool may_go(const kofn_job *j, const product *p, const kf_send_window *g,
                   const kf_slot *s)
{
    const kofn_layout *L = &p->use->layout;
    size_t submessage = s->row % L->submessages;

    return submessage < first_ones(j, L) ||
           (g->awaited == 0 && submessage < p->feed.level);
}

static void goes(const kofn_job *j, const product *p, kf_send_window *g,
                 kf_slot *s)
{
    assert(!s->awaited);
    if (g->awaited == 0)
        g->sent = kf_job_now(j);
    if (g->product != p->start.core)
        g->way = KOFN_NEVER;
    g->product = p->start.core;
    s->awaited = true;
    g->awaited++;
}

kofn_status kf_pace_give(kofn_job *j, product *p, kf_slot *s)
{
    kf_send_window *g;

    assert(s);
    if (p->use->layout.submessages == 1)
        return send_task(j, p, s);
    TRY(kf_reach(&j->paced.window, &j->paced.workers, (size_t)s->worker + 1,
                 sizeof *j->paced.window));
    g = &j->paced.window[s->worker];
    if (g->first == g->end && may_go(j, p, g, s)) {
        goes(j, p, g, s);
        return send_task(j, p, s);
    }
    assert(g->first <= g->end);
    TRY(kf_grow(&g->waiting, &g->cap, g->end, sizeof *g->waiting));
    g->waiting[g->end++] = (kf_waiting_task){p->start.core, s->task};
    j->paced.held++;
    j->paced.due = true;
    return KOFN_OK;
}

/* Ends the wait for a task. */
static void over(kofn_job *j, kf_slot *s)
{
    kf_send_window *g;

    if (!s->awaited)
        return;
    g = &j->paced.window[s->worker];
    assert(g->awaited > 0);
    s->awaited = false;
    g->awaited--;
    j->paced.due |= j->paced.held > 0;
}

void kf_pace_came(kofn_job *j, kf_slot *s, kofn_time took)
{
    kofn_time now = kf_job_now(j), way;
    kf_send_window *g;

    if (!s->awaited)
        return;
    g = &j->paced.window[s->worker];
    way = now - longer(g->last, g->sent) - took;
    g->way = way < g->way ? way : g->way;
    g->last = j->paced.newest = now;
    over(j, s);
}

kofn_time kf_pace_alarm(const kofn_job *j)
{
    return j->paced.held > 0 ? j->paced.due_at : KOFN_NEVER;
}

bool kf_pace_cancel(kofn_job *j, kf_slot *s)
{
    kf_send_window *g =
        s->worker < j->paced.workers ? &j->paced.window[s->worker] : NULL;
    size_t i = g ? g->first : 0;

    over(j, s);
    while (g && i < g->end && g->waiting[i].task != s->task)
        i++;
    if (!g || i == g->end)
        return false;
    memmove(g->waiting + i, g->waiting + i + 1,
            (--g->end - i) * sizeof *g->waiting);
    assert(j->paced.held > 0);
    j->paced.held--;
    return true;
}

/* Returns the task of this turn; NULL if it is no longer needed. */
static kf_slot *find(const kofn_job *j, kf_waiting_task t, product **p)
{
    kf_slot *s;

    *p = kf_job_find(j, t.product);
    s = *p && kf_job_is_running(*p) ? kf_job_task(*p, t.task) : NULL;
    return s && s->outcome == KF_OUTCOME_OUT &&
                   kf_core_works(j->core, s->worker)
               ? s
               : NULL;
}

static kofn_status go_on(kofn_job *j, kf_send_window *g)
{
    while (g->first < g->end) {
        product *p;
        kf_slot *s = find(j, g->waiting[g->first], &p);

        if (s && !may_go(j, p, g, s))
            return KOFN_OK;
        g->first++;
        assert(j->paced.held > 0);
        j->paced.held--;
        if (s) {
            goes(j, p, g, s);
            TRY(send_task(j, p, s));
        }
    }
    g->first = g->end = 0;
    return KOFN_OK;
}

/* ---- late workers -------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    kofn_time x = *(const kofn_time *)a, y = *(const kofn_time *)b;

    return (x > y) - (x < y);
}

/* Returns the median; KOFN_NEVER if there are none. */
static kofn_time middle(kofn_time *time, size_t n)
{
    qsort(time, n, sizeof *time, by_time);
    return n ? time[n / 2] : KOFN_NEVER;
}

static kofn_time times(double n, kofn_time t)
{
    double all = n * (double)t;

    assert(n >= 0);
    return all < (double)(KOFN_NEVER / 2) ? (kofn_time)all : KOFN_NEVER / 2;
}

/* Times of a worker: for one submessage of this product, and for all that it
 * was sent for and owes. */
typedef struct strides {
    kofn_time pace, rest; /* KOFN_NEVER: it has sent nothing */
} strides;

static strides strides_of(kofn_job *j, const product *p, uint32_t worker)
{
    const kf_send_window *g = &j->paced.window[worker];
    kofn_time now = kf_job_now(j);
    kf_coming c = {.part = 0};
    strides s = {g->way, KOFN_NEVER};

    assert(worker < j->paced.workers);
    if (g->awaited == 0)
        return (strides){g->way, 0};
    if (j->port->coming && j->port->coming(j->port, worker, &c) &&
        c.product == p->start.core)
        s.pace = times(1 / c.part, now - c.since);
    else if (g->way != KOFN_NEVER)
        s.pace = longer(g->way, now - longer(g->last, g->sent));
    if (s.pace != KOFN_NEVER)
        s.rest = times((double)g->awaited - c.part, s.pace);
    return s;
}

static bool takes_part(const kofn_job *j, const product *p, uint32_t worker)
{
    return j->paced.window[worker].product == p->start.core &&
           kf_core_works(j->core, worker);
}

/* Returns the median time of a submessage, over workers that have answered. */
static kofn_time way_of(const kofn_job *j, const product *p, kofn_time *list)
{
    size_t n = 0;

    for (uint32_t i = 0; i < j->paced.workers; i++)
        if (takes_part(j, p, i) && j->paced.window[i].way != KOFN_NEVER)
            list[n++] = j->paced.window[i].way;
    return middle(list, n);
}

/* True if all outstanding submessages are late.  The lists have room for every
 * worker. */
static bool are_late(kofn_job *j, const product *p, kofn_time *pace,
                     kofn_time *rest)
{
    size_t n = 0, known = 0;
    kofn_time one, all;

    for (uint32_t i = 0; i < j->paced.workers; i++)
        if (takes_part(j, p, i)) {
            strides s = strides_of(j, p, i);

            rest[n++] = s.rest;
            if (s.pace != KOFN_NEVER)
                pace[known++] = s.pace;
        }
    one = middle(pace, known);
    all = middle(rest, n);
    for (uint32_t i = 0; i < j->paced.workers; i++) {
        strides s = {KOFN_NEVER, KOFN_NEVER};

        if (takes_part(j, p, i) && j->paced.window[i].awaited > 0)
            s = strides_of(j, p, i);
        if (s.pace != KOFN_NEVER && s.pace / SLOW < one && s.rest - one <= all)
            return false;
    }
    return true;
}

/* Returns the first submessage that waits although its worker has sent all that
 * it was asked for; SIZE_MAX if none waits. */
static size_t first_waiting(const kofn_job *j, const product *p)
{
    size_t first = SIZE_MAX;

    for (size_t i = 0; i < j->paced.workers; i++) {
        const kf_send_window *g = &j->paced.window[i];
        product *of;
        kf_slot *s = NULL;

        if (g->first < g->end && g->awaited == 0)
            s = find(j, g->waiting[g->first], &of);
        if (s && of == p)
            first = kf_min(first, s->row % p->use->layout.submessages);
    }
    return first;
}

/* Raises the level if all that have not sent it are late.  Sets the alarm if
 * time may make them late.
 *
 * A worker may have been sent more than the level: first_ones fell since,
 * because others have joined.  So the level rises to what waits.  By one it
 * might let no task go, and with no task awaited nothing would call this
 * again. */
static kofn_status rise(kofn_job *j, product *p)
{
    kofn_time now = kf_job_now(j), turn, pause, *list;
    size_t waiting = first_waiting(j, p);

    p->feed.level = kf_max(p->feed.level, first_ones(j, &p->use->layout));
    if (waiting == SIZE_MAX || waiting < p->feed.level)
        return KOFN_OK;
    TRY(kf_reach(&j->paced.list, &j->paced.list_cap, 2 * j->paced.workers,
                 sizeof *j->paced.list));
    list = j->paced.list;
    pause = way_of(j, p, list) / PAUSE;
    turn = pause < KOFN_NEVER - j->paced.newest ? j->paced.newest + pause : now;
    if (now >= turn) {
        if (are_late(j, p, list, list + j->paced.workers)) {
            p->feed.level = waiting + 1;
            return KOFN_OK;
        }
        turn = now + longer(pause, LOOK);
    }
    if (turn < j->paced.due_at)
        j->paced.due_at = turn;
    return KOFN_OK;
}

kofn_status kf_pace_go_on(kofn_job *j)
{
    j->paced.due = false;
    j->paced.due_at = KOFN_NEVER;
    for (size_t i = 0; i < j->paced.workers; i++)
        TRY(go_on(j, &j->paced.window[i]));
    for (size_t i = 0; i < j->open.count && j->paced.held > 0; i++)
        if (kf_job_is_running(j->open.list[i]) &&
            j->open.list[i]->use->layout.submessages > 1)
            TRY(rise(j, j->open.list[i]));
    for (size_t i = 0; i < j->paced.workers; i++)
        TRY(go_on(j, &j->paced.window[i]));
    return KOFN_OK;
}
