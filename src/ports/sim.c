/* sim.c -- a simulated fleet: the same messages on a simulated clock.
 *
 * Events are entries of a heap, in order of time; entries of equal time keep
 * the order in which they were made. A worker's link carries its messages one
 * after the other. A result that is cancelled before its transfer starts is not
 * sent.
 *
 * On the modelled clock, the fault model's rate and the number of multiply-adds
 * give the time of a task. So a seed repeats a run exactly. On the measured
 * clock a task is computed at once and takes its processor time, as if every
 * worker had its own machine. Results are real on both clocks.
 *
 * On the measured clock the coordinator's work takes time too, and workers
 * continue meanwhile. So the time of an event may be before that of the clock.
 *
 * Owns the workers and all messages in transit; uses no threads. */
#include <assert.h>
#include <math.h>

#include "post.h"

#include "base/clock.h"
#include "base/heap.h"
#include "faults/faults.h"

enum { ARRIVE, FINISH, REPORT, SENT, LEAVE, JOIN };

/* A message in transit or at a worker. */
typedef struct buffer_slot {
    kf_msg m; /* type 0: the slot is free */
    bool cancelled;
} buffer_slot;

/* A list of slots, in order. */
typedef struct list {
    uint32_t *slot;
    size_t count, cap;
} list;

/* An input that a worker has. It is compared only; no reference is held. */
typedef struct input {
    const kf_buffer *of;
    uint32_t product;
} input;

typedef struct worker {
    kf_block *block;
    bool gone, wrong, busy;
    double factor, speed;
    list coming;             /* on their way to the worker */
    list queue;              /* arrived, waiting */
    uint32_t slot;           /* the running task, if busy */
    unsigned round;          /* round of the last task that it started */
    uint32_t updates, flips; /* counts of fault events */
    list held;               /* finished, to be sent together */
    list line;               /* to be sent when the link is free */
    bool sending;            /* the link is busy */
    input known[2];          /* inputs that need not be sent again */
    kofn_time heard;         /* when the last message sent to it arrives */
    kf_coming comes;         /* the last result that it started to send */
    kofn_time came;          /* when that result has arrived */
} worker;

typedef struct port {
    kofn_port base;
    kofn_faults faults;
    kofn_time clock; /* time of the coordinator */
    kofn_time at;    /* time of the current event */
    kf_heap heap;
    /* messages for the coordinator, which may be busy when they arrive */
    kf_inbox mail;
    kofn_status broken; /* failure, returned by the next wait */
    worker *worker;
    size_t workers, worker_cap;
    buffer_slot *slot;
    size_t slots, slot_cap;
    list unused;
    uint32_t joins;
    int blas_threads;
} port;

static kofn_time port_now(kofn_port *base)
{
    return ((port *)base)->clock;
}

/* ---- slots --------------------------------------------------------------- */

static kofn_status new_slot(port *p, const kf_msg *m, uint32_t *id)
{
    if (p->unused.count) {
        *id = p->unused.slot[--p->unused.count];
    } else {
        TRY(kf_grow(&p->slot, &p->slot_cap, p->slots, sizeof *p->slot));
        TRY(kf_grow(&p->unused.slot, &p->unused.cap, p->slots,
                    sizeof *p->unused.slot));
        *id = (uint32_t)p->slots++;
    }
    p->slot[*id] = (buffer_slot){.m = *m};
    return KOFN_OK;
}

/* Frees a slot after its payload has found another owner. new_slot made room
 * for every slot in `unused`. */
static void free_slot(port *p, uint32_t id)
{
    assert(p->unused.count < p->unused.cap);
    p->slot[id].m = (kf_msg){0};
    p->unused.slot[p->unused.count++] = id;
}

static void drop_slot(port *p, uint32_t id)
{
    kf_post_drop(&p->slot[id].m);
    free_slot(p, id);
}

static kofn_status append(list *l, uint32_t slot)
{
    TRY(kf_grow(&l->slot, &l->cap, l->count, sizeof *l->slot));
    l->slot[l->count++] = slot;
    return KOFN_OK;
}

static uint32_t take(list *l, size_t i)
{
    uint32_t slot = l->slot[i];

    assert(i < l->count);
    memmove(l->slot + i, l->slot + i + 1, (--l->count - i) * sizeof *l->slot);
    return slot;
}

static void drop_list(port *p, list *l)
{
    for (size_t i = 0; i < l->count; i++)
        drop_slot(p, l->slot[i]);
    kf_free(l->slot);
    *l = (list){0};
}

/* ---- time ---------------------------------------------------------------- */

static kofn_status schedule(port *p, kofn_time after, uint32_t kind, uint32_t w,
                            uint32_t slot)
{
    assert(after >= 0);
    if (after >= KOFN_NEVER - p->at)
        return KOFN_OK; /* it never happens */
    return kf_heap_push(&p->heap, (kf_heap_entry){.time = p->at + after,
                                                  .kind = kind,
                                                  .worker = w,
                                                  .task = slot});
}

/* Returns the seconds that a transfer of `bytes` takes. */
static double transfer(const port *p, double bytes)
{
    return p->faults.bandwidth > 0 ? bytes / p->faults.bandwidth : 0;
}

static kofn_time travel(const port *p, double bytes)
{
    return kf_faults_nanoseconds(p->faults.latency + transfer(p, bytes));
}

/* ---- workers ------------------------------------------------------------- */

/* Returns the block of a task: the one that came with it, or the stored one. */
static const kf_block *block_of(const worker *w, const kf_msg *m)
{
    return m->block ? m->block : w->block;
}

static kofn_status compute(const port *p, uint32_t id, kf_msg *m)
{
    worker *w = &p->worker[id];
    const kf_block *b = block_of(w, m);
    kofn_status st;

    if (m->type != KF_MSG_WORK)
        return kf_faults_change(&p->faults, id, &w->updates, w->block, m);
    st = b ? kf_work_do(b, m, NULL, NULL)
           : kf_fail(KOFN_STATE, "no block is stored");
    if (st < 0)
        m->why = kf_strdup(kofn_errmsg());
    return st;
}

/* Starts the next waiting task. */
static kofn_status take_up(port *p, uint32_t id)
{
    worker *w = &p->worker[id];
    buffer_slot *s;
    double seconds = 0;

    if (w->busy || w->queue.count == 0)
        return KOFN_OK;
    w->slot = take(&w->queue, 0);
    w->busy = true;
    s = &p->slot[w->slot];
    if (p->faults.clock == KOFN_CLOCK_MEASURED) {
        kofn_time before = kf_cpu_time();

        s->m.status = compute(p, id, &s->m);
        seconds = (double)(kf_cpu_time() - before) * 1e-9;
    } else if (block_of(w, &s->m)) {
        seconds = s->m.type != KF_MSG_WORK
                      ? kf_block_change_size(w->block, &s->m)
                      : kf_work_size(block_of(w, &s->m), &s->m);
        seconds *= 1e-9 * (p->faults.work > 0 ? p->faults.work : 1);
    }
    seconds *= w->factor / w->speed;
    /* a change is applied also by a worker that never answers */
    if (s->m.type == KF_MSG_WORK) {
        seconds = kf_faults_stretch(&p->faults, id, s->m.round,
                                    w->round != s->m.round, seconds);
        w->round = s->m.round;
    }
    s->m.took = kf_faults_nanoseconds(seconds);
    return schedule(p, s->m.took, FINISH, id, w->slot);
}

/* Starts the transfer of the next result that waits for the link. */
static kofn_status send_next(port *p, uint32_t id)
{
    worker *w = &p->worker[id];
    uint32_t slot;
    double bytes;

    if (w->sending || w->line.count == 0)
        return KOFN_OK;
    slot = take(&w->line, 0);
    bytes = (double)kf_buffer_bytes(p->slot[slot].m.result);
    w->sending = transfer(p, bytes) > 0;
    w->comes.product = p->slot[slot].m.product;
    w->comes.since = p->at + travel(p, 0);
    w->came = p->at + travel(p, bytes);
    TRY(schedule(p, travel(p, bytes), REPORT, id, slot));
    return w->sending ? schedule(p, kf_faults_nanoseconds(transfer(p, bytes)),
                                 SENT, id, 0)
                      : KOFN_OK;
}

static kofn_status report(port *p, uint32_t id, uint32_t slot)
{
    TRY(append(&p->worker[id].line, slot));
    return send_next(p, id);
}

/* Sends held results when no work of their round is running. */
static kofn_status let_go(port *p, uint32_t id)
{
    worker *w = &p->worker[id];

    if (w->held.count == 0 ||
        (w->busy && w->round == p->slot[w->held.slot[0]].m.round))
        return KOFN_OK;
    for (size_t i = 0; i < w->held.count; i++)
        TRY(report(p, id, w->held.slot[i]));
    w->held.count = 0;
    return KOFN_OK;
}

/* Queues a message before those of later rounds. */
static kofn_status queue_up(const port *p, list *queue, uint32_t slot)
{
    size_t i = queue->count;
    uint32_t *at;

    TRY(append(queue, slot));
    at = queue->slot;
    for (; i > 0 && p->slot[at[i - 1]].m.round > p->slot[slot].m.round; i--)
        at[i] = at[i - 1];
    at[i] = slot;
    return KOFN_OK;
}

/* Queues a message that has no more than a type and a worker. */
static kofn_status tell(port *p, kf_msg_type type, uint32_t id)
{
    return kf_inbox_put(&p->mail, (kf_msg){.type = type, .worker = id});
}

static kofn_status arrive(port *p, uint32_t id, uint32_t slot)
{
    worker *w = &p->worker[id];
    buffer_slot *s = &p->slot[slot];

    if (!w->gone)
        take(&w->coming, 0); /* this slot: messages arrive in order */
    if (w->gone || s->cancelled) {
        drop_slot(p, slot);
        return KOFN_OK;
    }
    if (s->m.type == KF_MSG_STORE) {
        kf_block_drop(w->block);
        w->block = s->m.block;
        free_slot(p, slot);
        return kf_block_whole(w->block) ? tell(p, KF_MSG_STORED, id) : KOFN_OK;
    }
    TRY(queue_up(p, &w->queue, slot));
    return take_up(p, id);
}

/* Stops a worker and drops all that it holds. */
static void stop(port *p, uint32_t id)
{
    worker *w = &p->worker[id];

    w->gone = true;
    w->busy = false;
    kf_free(w->coming.slot); /* these messages are dropped when they arrive */
    w->coming = (list){0};
    drop_list(p, &w->queue);
    drop_list(p, &w->held);
    drop_list(p, &w->line);
    kf_block_drop(w->block);
    w->block = NULL;
}

/* Ends a change of a block. If it failed, the worker is lost. */
static kofn_status changed(port *p, uint32_t id, uint32_t slot)
{
    const kf_msg *m = &p->slot[slot].m;
    bool stored = m->type == KF_MSG_SLICE && !m->block;
    kofn_status st = m->status;

    drop_slot(p, slot);
    p->worker[id].busy = false;
    if (st)
        stop(p, id);
    if (st || stored)
        TRY(tell(p, st ? KF_MSG_UNRESPONSIVE : KF_MSG_STORED, id));
    TRY(take_up(p, id));
    return let_go(p, id);
}

static kofn_status finish(port *p, uint32_t id, uint32_t slot)
{
    worker *w = &p->worker[id];
    kf_msg *m = &p->slot[slot].m;

    assert(slot < p->slots);
    if (w->gone || p->slot[slot].cancelled) {
        drop_slot(p, slot);
        return KOFN_OK;
    }
    if (p->faults.clock == KOFN_CLOCK_MODELLED)
        m->status = compute(p, id, m);
    if (m->type != KF_MSG_WORK)
        return changed(p, id, slot);
    m->type = m->status ? KF_MSG_FAILED : KF_MSG_RESULT;
    if (!m->status && (w->wrong || kf_faults_corrupts(&p->faults, id, m->task)))
        kofn_faults_spoil(p->faults.seed, id, m->task, &m->result->m);
    w->busy = false;
    if (p->faults.whole &&
        (w->factor > 1 || kf_faults_slow(&p->faults, id, m->round)))
        TRY(append(&w->held, slot));
    else
        TRY(report(p, id, slot));
    TRY(take_up(p, id));
    return let_go(p, id);
}

/* ---- joining and leaving ------------------------------------------------- */

static kofn_status start(port *p, uint32_t *id)
{
    TRY(kf_grow(&p->worker, &p->worker_cap, p->workers, sizeof *p->worker));
    *id = (uint32_t)p->workers;
    p->worker[p->workers++] =
        (worker){.factor = 1, .speed = kf_faults_speed(&p->faults, *id)};
    return schedule(p, kf_faults_nanoseconds(kf_faults_leave(&p->faults, *id)),
                    LEAVE, *id, 0);
}

/* ---- events -------------------------------------------------------------- */

/* Delivers a result, unless its worker is gone. */
static kofn_status come(port *p, uint32_t slot)
{
    kf_msg m = p->slot[slot].m;

    if (p->worker[m.worker].gone) {
        drop_slot(p, slot);
        return KOFN_OK;
    }
    kf_buffer_drop(m.in);
    m.in = NULL;
    free_slot(p, slot);
    return kf_inbox_put(&p->mail, m);
}

/* Applies an entry of the heap; messages that result from it go to `mail`. */
static kofn_status happen(port *p, const kf_heap_entry *e)
{
    uint32_t id;

    p->at = e->time;
    switch (e->kind) {
    case ARRIVE:
        return arrive(p, e->worker, e->task);
    case FINISH:
        return finish(p, e->worker, e->task);
    case REPORT:
        return come(p, e->task);
    case SENT:
        p->worker[e->worker].sending = false;
        return send_next(p, e->worker);
    case LEAVE:
        if (p->worker[e->worker].gone)
            return KOFN_OK;
        stop(p, e->worker);
        return tell(p, KF_MSG_BYE, e->worker);
    default:
        TRY(start(p, &id));
        TRY(tell(p, KF_MSG_HELLO, id));
        return schedule(
            p, kf_faults_nanoseconds(kf_faults_gap(&p->faults, ++p->joins)),
            JOIN, 0, 0);
    }
}

/* Applies the next entry of the heap, which is not empty. */
static void go_on(port *p)
{
    kf_heap_entry e = kf_heap_pop(&p->heap);

    if (p->clock < e.time)
        p->clock = e.time;
    p->broken = happen(p, &e);
}

/* Applies all entries before the clock, which the coordinator's work has
 * advanced. Called before any action of the coordinator, since workers did not
 * wait for it. */
static void catch_up(port *p)
{
    while (!p->broken && p->heap.count && p->heap.entry[0].time < p->clock)
        go_on(p);
    p->at = p->clock;
}

/* Drops all messages of this worker to the coordinator. */
static void burn_mail(port *p, uint32_t id)
{
    for (size_t i = p->mail.count; i > 0; i--)
        if (p->mail.msg[p->mail.first + i - 1].worker == id) {
            kf_msg m = kf_inbox_take(&p->mail, i - 1);

            kf_post_drop(&m);
        }
}

/* ---- actions of the coordinator ------------------------------------------ */

static kofn_status port_admit(kofn_port *base, uint32_t *id)
{
    port *p = (port *)base;

    catch_up(p);
    return start(p, id);
}

static kofn_status port_remove(kofn_port *base, uint32_t id)
{
    port *p = (port *)base;

    catch_up(p);
    if (id < p->workers && !p->worker[id].gone)
        stop(p, id);
    burn_mail(p, id);
    return KOFN_OK;
}

/* Returns the worker in its present state, or NULL. */
static worker *worker_now(kofn_port *base, uint32_t id)
{
    port *p = (port *)base;

    catch_up(p);
    return id < p->workers ? &p->worker[id] : NULL;
}

static void port_slow(kofn_port *base, uint32_t id, double factor)
{
    worker *w = worker_now(base, id);

    if (w)
        w->factor = factor;
}

static void port_corrupt(kofn_port *base, uint32_t id, bool on)
{
    worker *w = worker_now(base, id);

    if (w)
        w->wrong = on;
}

static kofn_status port_flip(kofn_port *base, uint32_t id)
{
    const kofn_faults *f = &((port *)base)->faults;
    worker *w = worker_now(base, id);

    return w && w->block ? kf_faults_flip(f, id, &w->flips, w->block) : KOFN_OK;
}

/* ---- the port ------------------------------------------------------------ */

/* Drops the task if this list has it, and returns true if so.  Changes of
 * blocks have no task number, and a held task is a result already. */
static bool drop_task(port *p, list *l, uint32_t task)
{
    for (size_t i = 0; i < l->count; i++) {
        const kf_msg *m = &p->slot[l->slot[i]].m;

        if (m->task == task && m->type != KF_MSG_UPDATE &&
            m->type != KF_MSG_SLICE) {
            drop_slot(p, take(l, i));
            return true;
        }
    }
    return false;
}

static kofn_status cancel(port *p, uint32_t id, uint32_t task)
{
    worker *w = &p->worker[id];

    if (drop_task(p, &w->queue, task) || drop_task(p, &w->held, task) ||
        drop_task(p, &w->line, task))
        return KOFN_OK;
    if (w->busy && p->slot[w->slot].m.type == KF_MSG_WORK &&
        p->slot[w->slot].m.task == task) {
        p->slot[w->slot].cancelled = true;
        w->busy = false;
        if (p->slot[w->slot].m.took == KOFN_NEVER)
            drop_slot(p, w->slot); /* its end never comes */
        TRY(take_up(p, id));
        return let_go(p, id);
    }
    /* It is in transit, and may carry an input that the worker then lacks. */
    memset(w->known, 0, sizeof w->known);
    for (size_t i = 0; i < w->coming.count; i++) {
        buffer_slot *s = &p->slot[w->coming.slot[i]];

        s->cancelled |= s->m.task == task && s->m.type == KF_MSG_WORK;
    }
    return KOFN_OK;
}

static bool knows(worker *w, const kf_msg *m)
{
    for (size_t i = 0; i < 2; i++)
        if (w->known[i].of == m->in && w->known[i].product == m->product)
            return true;
    w->known[1] = w->known[0];
    w->known[0] = (input){m->in, m->product};
    return false;
}

/* Returns the bytes of a message, as docs/wire.md has it sent. A task that
 * brings its block always brings its input too. */
static double bytes_of(worker *w, const kf_msg *m)
{
    size_t bytes = kf_buffer_bytes(m->with) + kf_block_bytes(m->block);
    bool again = m->type == KF_MSG_WORK && !m->block && knows(w, m);

    return (double)(again ? bytes : bytes + kf_buffer_bytes(m->in));
}

static kofn_status port_send(kofn_port *base, kf_msg *m)
{
    port *p = (port *)base;
    kofn_time takes;
    worker *w;
    uint32_t slot;

    catch_up(p);
    if (m->worker >= p->workers || p->worker[m->worker].gone) {
        kf_post_drop(m);
        return KOFN_OK;
    }
    if (m->type == KF_MSG_EVICT)
        return port_remove(base, m->worker);
    if (m->type == KF_MSG_CANCEL)
        return cancel(p, m->worker, m->task);
    w = &p->worker[m->worker];
    if (new_slot(p, m, &slot)) {
        kf_post_drop(m);
        return KOFN_NOMEM;
    }
    TRY(append(&w->coming, slot));
    takes = travel(p, bytes_of(w, m));
    if (takes < w->heard - p->at) /* messages arrive in order */
        takes = w->heard - p->at;
    w->heard = kf_later(p->at, takes);
    return schedule(p, takes, ARRIVE, m->worker, slot);
}

static kofn_status port_wait(kofn_port *base, kofn_time until, kofn_time atmost,
                             kf_msg *m)
{
    port *p = (port *)base;

    (void)atmost; /* simulated time does not pass during a wait */
    catch_up(p);
    while (!p->broken && !p->mail.count && p->heap.count &&
           p->heap.entry[0].time <= until)
        go_on(p);
    TRY(p->broken);
    if (p->mail.count) {
        *m = kf_inbox_take(&p->mail, 0);
        return KOFN_OK;
    }
    if (until == KOFN_NEVER)
        return KOFN_LATE;
    if (p->clock < until)
        p->clock = until;
    return KOFN_AGAIN;
}

static bool port_coming(kofn_port *base, uint32_t id, kf_coming *c)
{
    const port *p = (const port *)base;
    const worker *w = &p->worker[id];

    *c = w->comes;
    if (p->clock <= c->since || p->clock >= w->came)
        return false;
    c->part = (double)(p->clock - c->since) / (double)(w->came - c->since);
    return true;
}

static void port_spend(kofn_port *base, kofn_time cpu)
{
    port *p = (port *)base;

    if (p->faults.clock == KOFN_CLOCK_MEASURED)
        p->clock += cpu;
}

static void port_close(kofn_port *base)
{
    port *p = (port *)base;

    for (uint32_t i = 0; i < p->workers; i++)
        stop(p, i);
    for (size_t i = 0; i < p->slots; i++)
        kf_post_drop(&p->slot[i].m);
    kf_inbox_free(&p->mail);
    kf_free(p->slot);
    kf_free(p->unused.slot);
    kf_free(p->worker);
    kf_free(p->heap.entry);
    kf_blas_restore(p->blas_threads);
    kf_free(p);
}

kofn_status kofn_port_sim(kofn_port **out, size_t workers,
                          const kofn_faults *faults)
{
    kofn_status st;
    port *p;

    *out = NULL;
    TRY_ZERO(p, 1);
    p->base = (kofn_port){.name = "sim",
                          .simulated = true,
                          .workers = workers,
                          .send = port_send,
                          .wait = port_wait,
                          .now = port_now,
                          .close = port_close,
                          .spend = port_spend,
                          .admit = port_admit,
                          .remove = port_remove,
                          .slow = port_slow,
                          .corrupt = port_corrupt,
                          .flip = port_flip,
                          .coming = port_coming};
    p->blas_threads = kf_blas_single();
    st = kf_given(&p->faults, sizeof p->faults, faults, "KOFN_FAULTS_INIT");
    for (uint32_t id = 0; id < workers && !st; id++) {
        st = start(p, &id);
        if (!st)
            st = tell(p, KF_MSG_HELLO, id);
    }
    if (!st)
        st = schedule(p, kf_faults_nanoseconds(kf_faults_gap(&p->faults, 0)),
                      JOIN, 0, 0);
    if (st) {
        port_close(&p->base);
        return st;
    }
    *out = &p->base;
    return KOFN_OK;
}
