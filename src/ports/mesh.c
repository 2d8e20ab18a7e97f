/* mesh.c -- a mesh of threads of this process. Packets are passed by pointer.
 *
 * One lock serves all ends and is held only while a packet is linked. Each end
 * has its own queue and condition variable. The number of a peer is the number
 * of its end.
 *
 * Owns the ends, their queues and threads until kofn_mesh_free. A packet has
 * one owner. The lock is not held during computation. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <kofn/peer.h>

#include "base/clock.h"
#include "base/lent.h"
#include "faults/faults.h"

#define MOST_QUEUED 65536

typedef struct letter {
    kofn_packet p;
    kofn_lent body;
    struct letter *next;
} letter;

typedef struct end {
    kofn_transport base;
    kofn_mesh *mesh;
    kofn_peer number;
    bool closed;
    pthread_cond_t bell;
    letter *first, *last;
    size_t queued;
    /* indexed by peer; written under the lock, which other ends hold to read
     * it */
    bool *forgotten;
    size_t forgotten_cap;
} end;

typedef struct runner {
    pthread_t thread;
    void (*live)(void *ud, kofn_transport *t);
    void *ud;
    kofn_transport *t;
    struct runner *next;
} runner;

struct kofn_mesh {
    pthread_mutex_t lock;
    end **end;
    size_t ends, cap;
    runner *running;  /* threads that kofn_mesh_free joins */
    int blas_threads; /* number of BLAS threads to be restored */
};

/* ---- queues; the caller holds the lock ----------------------------------- */

static void enqueue(end *e, letter *l)
{
    l->next = NULL;
    *(e->last ? &e->last->next : &e->first) = l;
    e->last = l;
    e->queued++;
    pthread_cond_signal(&e->bell);
}

static letter *dequeue(end *e)
{
    letter *l = e->first;

    if (!l)
        return NULL;
    e->first = l->next;
    if (!e->first)
        e->last = NULL;
    assert(e->queued > 0);
    e->queued--;
    return l;
}

static kofn_status announce(end *to, kofn_peer peer, kofn_arrival what)
{
    letter *l;

    TRY_ZERO(l, 1);
    l->p.what = what;
    l->p.peer = peer;
    enqueue(to, l);
    return KOFN_OK;
}

/* Frees a letter. Called without the lock, since `done` belongs to the
 * sender. */
static void burn(letter *l)
{
    kf_give_back(&l->body);
    kf_free(l);
}

static void burn_all(end *e)
{
    while (e->first)
        burn(dequeue(e));
}

/* ---- functions of the transport ------------------------------------------ */

/* Links a packet into the queue of the other end. Takes the body over, except
 * on KOFN_AGAIN. */
static kofn_status mesh_send(kofn_transport *t, kofn_peer peer,
                             const void *head, size_t head_bytes,
                             const kofn_lent *body, bool urgent)
{
    end *e = (end *)t, *to;
    kofn_mesh *m = e->mesh;
    kofn_status st = KOFN_OK;
    letter *l;

    (void)urgent; /* bulk packets never delay others here */
    if (head_bytes > KOFN_HEAD_MAX) {
        kf_give_back(body);
        return kf_fail(KOFN_INVAL, "a head of %zu bytes; at most %d",
                       head_bytes, KOFN_HEAD_MAX);
    }
    l = kf_zero(1, sizeof *l);
    if (!l) {
        kf_give_back(body);
        return KOFN_NOMEM;
    }
    l->p.what = KOFN_PACKET;
    l->p.peer = e->number;
    l->p.head_bytes = head_bytes;
    memcpy(l->p.head, head, head_bytes);
    if (body) {
        l->body = *body;
        l->p.body = body->data;
        l->p.body_bytes = body->bytes;
    }
    pthread_mutex_lock(&m->lock);
    to = peer < m->ends ? m->end[peer] : NULL;
    if (!to || to->closed)
        st = KOFN_TRANSPORT;
    else if (to->queued >= MOST_QUEUED)
        st = KOFN_AGAIN;
    else
        enqueue(to, l);
    pthread_mutex_unlock(&m->lock);
    if (st == KOFN_AGAIN)
        kf_free(l);
    else if (st)
        burn(l);
    return st == KOFN_TRANSPORT ? kf_fail(st, "node %u has left the mesh", peer)
                                : st;
}

static bool forgot(const end *e, kofn_peer peer)
{
    return peer < e->forgotten_cap && e->forgotten[peer];
}

static bool to_be_dropped(const end *e, const letter *l)
{
    return forgot(e, l->p.peer) || l->p.body_bytes > e->base.body_max;
}

/* True if most other ends have forgotten this end and each of the rest is gone.
 * A majority is needed because any single end may be faulty. The caller holds
 * the lock. */
static bool is_shut_out(const end *e)
{
    const kofn_mesh *m = e->mesh;
    size_t forgetting = 0, gone = 0;

    for (size_t i = 0; i < m->ends; i++)
        if (m->end[i] != e) {
            forgetting += forgot(m->end[i], e->number);
            gone += m->end[i]->closed && !forgot(m->end[i], e->number);
        }
    return forgetting + gone + 1 == m->ends && 2 * forgetting + 1 > m->ends;
}

/* Waits for the next packet of this end; the lock is free while it sleeps. A
 * packet without a body leaves nothing to release. */
static kofn_status mesh_wait(kofn_transport *t, kofn_time atmost,
                             kofn_packet *p)
{
    end *e = (end *)t;
    struct timespec until = kf_timespec(kf_later(kf_clock(), atmost));
    bool out = false;
    letter *l;
    int late = 0;

    for (;;) {
        pthread_mutex_lock(&e->mesh->lock);
        while (!e->first && atmost > 0 && late != ETIMEDOUT)
            late = pthread_cond_timedwait(&e->bell, &e->mesh->lock, &until);
        l = dequeue(e);
        out = !l && is_shut_out(e);
        pthread_mutex_unlock(&e->mesh->lock);
        if (out)
            return kf_fail(KOFN_TRANSPORT,
                           "the other nodes have excluded node %u, since it "
                           "sent wrong data; use another machine",
                           e->number);
        if (!l)
            return KOFN_AGAIN;
        if (!to_be_dropped(e, l))
            break;
        e->base.dropped++;
        burn(l);
    }
    *p = l->p;
    p->own = NULL;
    if (l->p.body_bytes)
        p->own = l;
    else
        burn(l);
    return KOFN_OK;
}

static void mesh_release(kofn_transport *t, void *own)
{
    (void)t;
    burn(own);
}

static void mesh_forget(kofn_transport *t, kofn_peer peer)
{
    end *e = (end *)t, *other;
    kofn_mesh *m = e->mesh;

    pthread_mutex_lock(&m->lock);
    other = peer < m->ends ? m->end[peer] : NULL;
    if (other && !forgot(e, peer) &&
        !kf_reach(&e->forgotten, &e->forgotten_cap, (size_t)peer + 1,
                  sizeof *e->forgotten)) {
        e->forgotten[peer] = true;
        if (!other->closed)
            (void)announce(other, e->number, KOFN_WENT);
    }
    pthread_mutex_unlock(&m->lock);
}

static void mesh_close(kofn_transport *t, kofn_time linger)
{
    end *e = (end *)t;
    kofn_mesh *m = e->mesh;

    (void)linger; /* packets are delivered at once */
    pthread_mutex_lock(&m->lock);
    e->closed = true;
    for (size_t i = 0; i < m->ends; i++)
        if (!m->end[i]->closed)
            (void)announce(m->end[i], e->number, KOFN_WENT);
    pthread_mutex_unlock(&m->lock);
    burn_all(e); /* nothing arrives any more */
}

/* ---- the mesh ------------------------------------------------------------ */

kofn_status kofn_mesh_new(kofn_mesh **out)
{
    kofn_mesh *m;

    *out = NULL;
    TRY_ZERO(m, 1);
    *out = m;
    pthread_mutex_init(&m->lock, NULL);
    m->blas_threads = kf_blas_single();
    return KOFN_OK;
}

static kofn_status introduce(kofn_mesh *m, end *e)
{
    assert(e->number == m->ends);
    TRY(kf_grow(&m->end, &m->cap, m->ends, sizeof *m->end));
    for (size_t i = 0; i < m->ends; i++)
        if (!m->end[i]->closed) {
            TRY(announce(e, m->end[i]->number, KOFN_CAME));
            TRY(announce(m->end[i], e->number, KOFN_CAME));
        }
    m->end[m->ends++] = e;
    return KOFN_OK;
}

static void end_free(end *e)
{
    burn_all(e);
    pthread_cond_destroy(&e->bell);
    kf_free(e->forgotten);
    kf_free(e);
}

kofn_status kofn_mesh_join(kofn_mesh *m, kofn_transport **out)
{
    pthread_condattr_t attr;
    kofn_status st;
    end *e;

    *out = NULL;
    TRY_ZERO(e, 1);
    e->base = (kofn_transport){.size = sizeof(kofn_transport),
                               .name = "threads",
                               .send = mesh_send,
                               .wait = mesh_wait,
                               .release = mesh_release,
                               .forget = mesh_forget,
                               .close = mesh_close,
                               .body_max = SIZE_MAX,
                               .whole = true};
    e->mesh = m;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&e->bell, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_lock(&m->lock);
    e->number = (kofn_peer)m->ends;
    st = introduce(m, e);
    pthread_mutex_unlock(&m->lock);
    if (st) {
        end_free(e);
        return st;
    }
    *out = &e->base;
    return KOFN_OK;
}

static void *run(void *ud)
{
    runner *r = ud;

    kf_blas_single();
    r->live(r->ud, r->t);
    r->t->close(r->t, 0);
    return NULL;
}

kofn_status kofn_mesh_start(kofn_mesh *m,
                            void (*live)(void *ud, kofn_transport *t), void *ud)
{
    kofn_status st;
    runner *r;
    int error;

    TRY_NEW(r, 1);
    *r = (runner){.live = live, .ud = ud};
    st = kofn_mesh_join(m, &r->t);
    if (st) {
        kf_free(r);
        return st;
    }
    pthread_mutex_lock(&m->lock);
    error = pthread_create(&r->thread, NULL, run, r);
    if (!error) {
        r->next = m->running;
        m->running = r;
    }
    pthread_mutex_unlock(&m->lock);
    if (!error)
        return KOFN_OK;
    r->t->close(r->t, 0);
    kf_free(r);
    return kf_fail(KOFN_TRANSPORT, "cannot start a thread: %s",
                   strerror(error));
}

static void wait_for_all(kofn_mesh *m)
{
    for (;;) {
        runner *r;

        pthread_mutex_lock(&m->lock);
        r = m->running;
        if (r)
            m->running = r->next;
        pthread_mutex_unlock(&m->lock);
        if (!r)
            return;
        pthread_join(r->thread, NULL);
        kf_free(r);
    }
}

void kofn_mesh_free(kofn_mesh *m)
{
    if (!m)
        return;
    wait_for_all(m);
    kf_blas_restore(m->blas_threads);
    for (size_t i = 0; i < m->ends; i++)
        end_free(m->end[i]);
    kf_free(m->end);
    pthread_mutex_destroy(&m->lock);
    kf_free(m);
}
