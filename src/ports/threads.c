/* threads.c -- workers as threads of this process, the default of an embedded
 * job.
 *
 * Each worker and the coordinator have a mailbox, and messages are passed by
 * pointer. Blocks that are plain parts of A are views of it, not copies. Faults
 * of the model are real here: a slow worker sleeps, a leaving one ends its
 * thread, a faulty one changes its result.
 *
 * Owns the threads and their mailboxes. A message has one owner at a time. A
 * worker may access its own block and message, and nothing of the coordinator.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "post.h"

#include "base/clock.h"
#include "faults/faults.h"

#define UNRESPONSIVE (5 * KOFN_SECOND) /* eviction time at a cancelled task */

/* ---- mailboxes ----------------------------------------------------------- */

/* The sender unlocks before it signals. Otherwise the receiver would wake up
 * and wait for the lock. */

typedef struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    kf_inbox in;
} mailbox;

static void mailbox_init(mailbox *b)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->filled, &attr);
    pthread_condattr_destroy(&attr);
}

static void mailbox_destroy(mailbox *b)
{
    kf_inbox_free(&b->in);
    pthread_cond_destroy(&b->filled);
    pthread_mutex_destroy(&b->lock);
}

/* Takes the first work of the oldest round that waits; nothing overtakes a
 * change of the block. The caller holds the lock. */
static kf_msg take_oldest(kf_inbox *b)
{
    const kf_msg *queue = b->msg + b->first;
    size_t oldest = 0;

    assert(b->count > 0);
    for (size_t i = 0; i < b->count && queue[i].type == KF_MSG_WORK; i++)
        if (queue[i].round < queue[oldest].round)
            oldest = i;
    return kf_inbox_take(b, oldest);
}

/* ---- workers ------------------------------------------------------------- */

typedef struct port port;

typedef struct worker {
    port *port;
    uint32_t id;
    pthread_t thread;
    bool started;
    mailbox box;
    kf_block *block;
    uint32_t updates, flipped; /* counts of fault events */
    kofn_time until;           /* when the fault model ends it */

    /* Guarded by the lock of `box`. */
    bool working;
    uint32_t task;    /* the running task, if `working` */
    size_t missed;    /* tasks cancelled since the running one was */
    kofn_time since;  /* when the running one was cancelled */
    atomic_bool dead; /* also read without the lock */

    atomic_bool stop; /* stop the running task */
    /* Set by events of an events file. */
    atomic_bool wrong;
    _Atomic double factor;
    atomic_uint flips; /* bit flips still to be made */
} worker;

struct port {
    kofn_port base;
    kofn_faults faults;
    bool fair;
    int blas_threads; /* number of BLAS threads to be restored */
    kofn_time start;  /* value of kf_clock when the port was opened */
    mailbox box;
    bool lost; /* a message to the coordinator was lost: out of memory */
    worker **worker;
    size_t workers, worker_cap;
    kofn_time next_join;
    uint32_t joins;
    size_t unheard; /* HELLOs of the first workers that were not delivered */
};

static kofn_time port_now(kofn_port *base)
{
    return kf_clock() - ((port *)base)->start;
}

static struct timespec at_time(const port *p, kofn_time t)
{
    return kf_timespec(kf_later(p->start, t));
}

static bool stopped(void *ud)
{
    worker *w = ud;

    return atomic_load_explicit(&w->stop, memory_order_relaxed);
}

static void report(worker *w, kf_msg m)
{
    port *p = w->port;

    m.worker = w->id;
    pthread_mutex_lock(&p->box.lock);
    if (kf_inbox_put(&p->box.in, m))
        p->lost = true;
    pthread_mutex_unlock(&p->box.lock);
    pthread_cond_signal(&p->box.filled);
}

/* Sleeps, unless the task is cancelled or the worker is dismissed. */
static void sleep_for(void *ud, double seconds)
{
    worker *w = ud;
    struct timespec until = at_time(
        w->port, port_now(&w->port->base) + kf_faults_nanoseconds(seconds));

    pthread_mutex_lock(&w->box.lock);
    while (!stopped(w) && !w->dead &&
           pthread_cond_timedwait(&w->box.filled, &w->box.lock, &until) !=
               ETIMEDOUT)
        ;
    pthread_mutex_unlock(&w->box.lock);
}

static void work(worker *w, kf_exposed *x, kf_msg *m)
{
    m->status = kf_emulate(x, m->block ? m->block : w->block, m, &m->took);
    m->type = m->status ? KF_MSG_FAILED : KF_MSG_RESULT;
    if (m->status < 0)
        m->why = kf_strdup(kofn_errmsg());
    kf_buffer_drop(m->in);
    kf_block_drop(m->block);
    m->in = NULL;
    m->block = NULL;
    if (m->status == KOFN_AGAIN) /* the task was cancelled */
        kf_buffer_drop(m->result);
    else
        report(w, *m);
}

/* Waits for the next message; false if the worker is dismissed. */
static bool receive(worker *w, kf_msg *m, kf_exposed *x)
{
    pthread_mutex_lock(&w->box.lock);
    w->working = false;
    w->missed = 0;
    while (!w->dead && w->box.in.count == 0)
        pthread_cond_wait(&w->box.filled, &w->box.lock);
    if (w->dead) {
        pthread_mutex_unlock(&w->box.lock);
        return false;
    }
    *m = take_oldest(&w->box.in);
    if (m->type == KF_MSG_WORK) {
        w->working = true;
        w->task = m->task;
        atomic_store(&w->stop, false);
    }
    pthread_mutex_unlock(&w->box.lock);
    x->factor = w->factor;
    x->wrong = w->wrong;
    x->flips = atomic_exchange(&w->flips, 0);
    return true;
}

/* Dismisses a worker. Its thread ends when it next looks, and is joined when
 * the port closes. */
static void dismiss(worker *w)
{
    pthread_mutex_lock(&w->box.lock);
    w->dead = true;
    w->until = KOFN_NEVER;
    atomic_store(&w->stop, true);
    pthread_cond_signal(&w->box.filled);
    pthread_mutex_unlock(&w->box.lock);
}

static void give_up(worker *w)
{
    dismiss(w);
    report(w, (kf_msg){.type = KF_MSG_UNRESPONSIVE});
}

/* Changes a worker's block. If that fails, the block is unusable and the worker
 * is lost. */
static void change(worker *w, kf_msg *m)
{
    if (kf_faults_change(&w->port->faults, w->id, &w->updates, w->block, m))
        give_up(w);
    else if (m->type == KF_MSG_SLICE && !m->block)
        report(w, (kf_msg){.type = KF_MSG_STORED});
    kf_post_drop(m);
}

static void flip(worker *w, unsigned times)
{
    kofn_status st = KOFN_OK;

    for (; times > 0 && w->block && !st; times--)
        st = kf_faults_flip(&w->port->faults, w->id, &w->flipped, w->block);
    if (st) /* no memory for a copy of the block */
        give_up(w);
}

static void *live(void *ud)
{
    worker *w = ud;
    kf_exposed x = {.faults = &w->port->faults,
                    .worker = w->id,
                    .sleep_for = sleep_for,
                    .stopped = stopped,
                    .ud = w};
    kf_msg m;

    kf_blas_single();
    while (receive(w, &m, &x)) {
        flip(w, x.flips);
        if (m.type == KF_MSG_STORE) {
            kf_block_drop(w->block);
            w->block = m.block;
            if (kf_block_whole(w->block))
                report(w, (kf_msg){.type = KF_MSG_STORED});
        } else if (m.type == KF_MSG_WORK) {
            work(w, &x, &m);
        } else {
            change(w, &m);
        }
    }
    kf_block_drop(w->block); /* free it before the port is closed */
    w->block = NULL;
    return NULL;
}

/* ---- joining and leaving ------------------------------------------------- */

static kofn_status start(port *p, uint32_t *id)
{
    worker *w;
    int error;

    TRY(kf_grow(&p->worker, &p->worker_cap, p->workers, sizeof *p->worker));
    TRY_ZERO(w, 1);
    w->port = p;
    w->id = (uint32_t)p->workers;
    w->factor = 1;
    atomic_init(&w->stop, false);
    mailbox_init(&w->box);
    w->until =
        kf_later(port_now(&p->base),
                 kf_faults_nanoseconds(kf_faults_leave(&p->faults, w->id)));
    p->worker[p->workers++] = w;
    *id = w->id;
    error = pthread_create(&w->thread, NULL, live, w);
    if (error)
        return kf_fail(KOFN_TRANSPORT,
                       "worker %u: no thread: %s; ask for fewer workers", w->id,
                       strerror(error));
    w->started = true;
    return KOFN_OK;
}

static kofn_status port_admit(kofn_port *base, uint32_t *id)
{
    return start((port *)base, id);
}

static kofn_status port_remove(kofn_port *base, uint32_t id)
{
    port *p = (port *)base;

    if (id < p->workers)
        dismiss(p->worker[id]);
    return KOFN_OK;
}

/* Counts the slices that a worker has not put into its block. */
static uint64_t port_backlog(kofn_port *base, uint32_t id)
{
    const port *p = (const port *)base;
    uint64_t bytes = 0;
    worker *w;

    if (id >= p->workers)
        return 0;
    w = p->worker[id];
    pthread_mutex_lock(&w->box.lock);
    for (size_t i = 0; i < w->box.in.count && !w->dead; i++) {
        const kf_msg *m = &w->box.in.msg[w->box.in.first + i];

        bytes += m->block ? kf_block_bytes(m->block) : 0;
    }
    pthread_mutex_unlock(&w->box.lock);
    return bytes;
}

static void port_slow(kofn_port *base, uint32_t id, double factor)
{
    port *p = (port *)base;

    if (id < p->workers)
        p->worker[id]->factor = factor;
}

static void port_corrupt(kofn_port *base, uint32_t id, bool on)
{
    port *p = (port *)base;

    if (id < p->workers)
        p->worker[id]->wrong = on;
}

static kofn_status port_flip(kofn_port *base, uint32_t id)
{
    port *p = (port *)base;

    if (id < p->workers)
        p->worker[id]->flips++;
    return KOFN_OK;
}

/* Returns the time of the fault model's next join or departure. */
static kofn_time next_change(const port *p)
{
    kofn_time t = p->next_join;

    if (p->faults.leave > 0)
        for (size_t i = 0; i < p->workers; i++)
            if (p->worker[i]->until < t)
                t = p->worker[i]->until;
    return t;
}

static kofn_status turn(port *p, kf_msg *m)
{
    kofn_time t = port_now(&p->base);

    for (size_t i = 0; i < p->workers; i++)
        if (p->worker[i]->until <= t) {
            dismiss(p->worker[i]);
            *m = (kf_msg){.type = KF_MSG_BYE, .worker = (uint32_t)i};
            return KOFN_OK;
        }
    *m = (kf_msg){.type = KF_MSG_HELLO};
    p->next_join =
        t + kf_faults_nanoseconds(kf_faults_gap(&p->faults, ++p->joins));
    return start(p, &m->worker);
}

/* ---- the port ------------------------------------------------------------ */

/* True if the worker still computes a task that was cancelled long ago, with
 * many tasks cancelled since. Called at a cancel; the caller holds the lock. */
static bool left_long_ago(worker *w)
{
    kofn_time now = port_now(&w->port->base);

    if (!stopped(w) || !w->working)
        return false;
    if (w->missed++ == 0)
        w->since = now;
    return w->missed >= 64 && now - w->since >= UNRESPONSIVE;
}

/* Takes a task out of the worker's mailbox, or stops it if it is running. */
static kofn_status cancel(worker *w, uint32_t task)
{
    kf_inbox *b = &w->box.in;
    bool unresponsive;
    size_t i = 0;
    kf_msg m;

    pthread_mutex_lock(&w->box.lock);
    while (i < b->count && !(b->msg[b->first + i].type == KF_MSG_WORK &&
                             b->msg[b->first + i].task == task))
        i++;
    if (i < b->count) {
        m = kf_inbox_take(b, i);
        kf_post_drop(&m);
    }
    if (w->working && w->task == task) {
        atomic_store(&w->stop, true);
        pthread_cond_signal(&w->box.filled); /* it may be asleep */
    }
    unresponsive = left_long_ago(w);
    pthread_mutex_unlock(&w->box.lock);
    if (unresponsive)
        give_up(w);
    return KOFN_OK;
}

static kofn_status port_send(kofn_port *base, kf_msg *m)
{
    port *p = (port *)base;
    kofn_status st = KOFN_OK;
    worker *w;

    if (m->worker >= p->workers) {
        kf_post_drop(m);
        return KOFN_OK; /* a lost worker receives nothing */
    }
    w = p->worker[m->worker];
    if (m->type == KF_MSG_EVICT)
        return port_remove(base, m->worker);
    if (m->type == KF_MSG_CANCEL)
        return cancel(w, m->task);
    pthread_mutex_lock(&w->box.lock);
    if (w->dead)
        kf_post_drop(m);
    else
        st = kf_inbox_put(&w->box.in, *m);
    pthread_mutex_unlock(&w->box.lock);
    pthread_cond_signal(&w->box.filled);
    return st;
}

/* Takes one message from the mailbox; KOFN_AGAIN if none came until `until`. */
static kofn_status receive_until(port *p, kofn_time until, kf_msg *m)
{
    struct timespec at = at_time(p, until);
    int error = until > port_now(&p->base) ? 0 : ETIMEDOUT;
    bool got, lost;

    pthread_mutex_lock(&p->box.lock);
    while (p->box.in.count == 0 && !p->lost && error != ETIMEDOUT) {
        if (until == KOFN_NEVER)
            pthread_cond_wait(&p->box.filled, &p->box.lock);
        else
            error = pthread_cond_timedwait(&p->box.filled, &p->box.lock, &at);
    }
    got = p->box.in.count > 0;
    lost = p->lost;
    if (got)
        *m = kf_inbox_take(&p->box.in, 0);
    pthread_mutex_unlock(&p->box.lock);
    if (lost) {
        if (got)
            kf_post_drop(m);
        return kf_fail(KOFN_NOMEM, "out of memory: a worker's message is lost");
    }
    return got ? KOFN_OK : KOFN_AGAIN;
}

static kofn_status port_wait(kofn_port *base, kofn_time until, kofn_time atmost,
                             kf_msg *m)
{
    port *p = (port *)base;
    kofn_time begin = port_now(base), next;
    kofn_status st;

    if (kf_later(begin, atmost) < until)
        until = kf_later(begin, atmost);
    for (;;) {
        /* No worker leaves before its HELLO was delivered. */
        next = p->fair || p->unheard ? KOFN_NEVER : next_change(p);
        if (next <= port_now(base))
            return turn(p, m);
        st = receive_until(p, next < until ? next : until, m);
        if (st == KOFN_OK && m->type == KF_MSG_HELLO) {
            assert(p->unheard > 0);
            p->unheard--;
        } else if (st == KOFN_OK && m->type != KF_MSG_UNRESPONSIVE &&
                   p->worker[m->worker]->dead) {
            kf_post_drop(m);
            continue;
        }
        if (st != KOFN_AGAIN || port_now(base) >= until)
            return st;
    }
}

static void port_close(kofn_port *base)
{
    port *p = (port *)base;

    for (size_t i = 0; i < p->workers; i++)
        dismiss(p->worker[i]);
    for (size_t i = 0; i < p->workers; i++) {
        worker *w = p->worker[i];

        if (w->started)
            pthread_join(w->thread, NULL);
        mailbox_destroy(&w->box);
        kf_block_drop(w->block);
        kf_free(w);
    }
    mailbox_destroy(&p->box);
    kf_free(p->worker);
    kf_blas_restore(p->blas_threads);
    kf_free(p);
}

kofn_status kofn_port_threads(kofn_port **out, size_t workers,
                              const kofn_faults *faults)
{
    kofn_status st;
    uint32_t id;
    port *p;

    *out = NULL;
    TRY_ZERO(p, 1);
    p->base = (kofn_port){.name = "threads",
                          .workers = workers,
                          .send = port_send,
                          .wait = port_wait,
                          .now = port_now,
                          .close = port_close,
                          .admit = port_admit,
                          .remove = port_remove,
                          .backlog = port_backlog,
                          .slow = port_slow,
                          .corrupt = port_corrupt,
                          .flip = port_flip};
    st = kf_given(&p->faults, sizeof p->faults, faults, "KOFN_FAULTS_INIT");
    p->fair = kf_faults_fair(&p->faults);
    p->start = kf_clock();
    mailbox_init(&p->box);
    p->blas_threads = kf_blas_single();
    p->next_join = kf_faults_nanoseconds(kf_faults_gap(&p->faults, 0));
    for (size_t i = 0; i < workers && !st; i++) {
        st = start(p, &id);
        if (!st) {
            report(p->worker[id], (kf_msg){.type = KF_MSG_HELLO});
            p->unheard++;
        }
    }
    if (st) {
        port_close(&p->base);
        return st;
    }
    *out = &p->base;
    return KOFN_OK;
}

void kofn_port_close(kofn_port *p)
{
    if (p)
        p->close(p);
}
