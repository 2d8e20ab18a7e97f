/* loop.c -- which thread runs the loop, and when; and what is done
 * periodically.
 *
 * The owner's thread runs the loop while it waits or sends. While it computes,
 * the keeper takes over. The keeper checks from time to time how long the owner
 * has been away; after a moment it waits in the owner's place. If the owner
 * waits for a long time, the keeper sleeps.
 *
 * A silent peer is lost. The time for that advances in steps, and each step is
 * at most a fraction of the allowed silence. This process may not run for a
 * while: it was stopped, the machine slept, or others had the processors. In
 * that case no peer is lost before there was time to hear all of them.
 *
 * Owns the loop and the keeper's thread. The thread that runs the loop holds
 * the lock, and releases it before it calls back. */
#include "inside.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#ifdef __linux__
#include <sys/epoll.h>
#endif

#define LOOK (2 * KF_MILLI) /* absence of the owner until the keeper acts */
#define CALM 8       /* checks without a change until the keeper sleeps */
#define GAP 4        /* the longest step is 1/GAP of the silence */
#define PASSES 4     /* of the loop at a time */
#define TICK_MAX 100 /* milliseconds */
#define TICK_MIN 10
#define STARVED 4 /* allocation failures until a dialling end fails */
/* timeout to connect and to send the greeting */
#define PATIENCE (10 * KOFN_SECOND)

/* ---- periodic work ------------------------------------------------------- */

static void look_after_peer(kf_link *l)
{
    kf_transport *t = l->t;
    kofn_time now = t->keep.awake;

    assert(l->state == KF_PEER);
    if (l->life.calm && now - l->life.heard > t->patience / 4 * 3)
        kf_link_listen(l);
    if (!l->life.calm && now - l->life.busy > t->patience && !l->in.have &&
        !l->in.left)
        kf_link_calm(l, true);
    if (now - l->life.heard > t->patience)
        kf_link_end(l);
    else if (now - l->life.spoke >= l->life.beat)
        kf_net_send_word(l, KF_BEAT);
}

/* Ends a link that has been in its stage for too long: a dial, a stranger
 * without a greeting, a silent peer, or a link that is parting. */
static void look_after(kf_link *l)
{
    kf_transport *t = l->t;

    if (l->state == KF_PEER) {
        look_after_peer(l);
    } else if (l->state == KF_PARTING) {
        if (t->keep.ticked > l->life.until)
            kf_link_end(l);
    } else if (t->keep.awake - l->life.since > PATIENCE) {
        t->gate.refused.unresponsive += !l->dial && l->state != KF_REFUSED;
        kf_link_end(l);
    }
}

static void tick(uv_timer_t *timer)
{
    kf_transport *t = timer->data;
    kofn_time now = kf_clock();

    assert(now >= t->keep.ticked);
    t->keep.awake += now - t->keep.ticked < t->silence / GAP
                         ? now - t->keep.ticked
                         : t->silence / GAP;
    t->keep.ticked = now;
    for (kf_link *l = t->in.links, *after; l; l = after) {
        after = l->after;
        look_after(l);
    }
    kf_dial_due(t, now);
    if (t->mesh)
        kf_join_held(t);
}

/* ---- passes -------------------------------------------------------------- */

void kf_net_loop_pass(kf_transport *t)
{
    int n = 0;

    t->shakes = 0;
    do {
        t->dirty = false;
        uv_run(&t->uv.loop, UV_RUN_NOWAIT);
        if (t->out.redial)
            kf_dial_again(t);
    } while (t->dirty && ++n < PASSES);
    t->keep.passed = kf_clock();
    t->keep.ready = -1;
}

void kf_net_loop_unlock(kf_transport *t)
{
    kf_departure *done = t->traffic.finished;

    for (kf_departure *o = done; o; o = o->next)
        kf_share_leave(t, o->share);
    t->traffic.finished = NULL;
    pthread_mutex_unlock(&t->lock);
    while (done) {
        kf_departure *o = done;

        done = o->next;
        kf_give_back(&o->body);
        kf_free(o);
    }
}

void kf_net_loop_release(kf_transport *t)
{
    while (t->traffic.lingering) {
        kf_departure *o = t->traffic.lingering;

        t->traffic.lingering = o->next;
        o->next = t->traffic.finished;
        t->traffic.finished = o;
    }
}

/* Like poll, waits until something is ready. On Linux *what is the descriptor
 * if it alone is ready to be read; otherwise it is -1. */
static int sleep_on(int loop, int timeout, int *what)
{
#ifdef __linux__
    struct epoll_event ready = {0};
    int n = epoll_wait(loop, &ready, 1, timeout);

    *what = n == 1 && ready.events == EPOLLIN ? ready.data.fd : -1;
    return n;
#else
    struct pollfd on = {loop, POLLIN, 0};

    *what = -1;
    return poll(&on, 1, timeout);
#endif
}

/* Sleeps without the lock until something is ready, at most for `atmost`.
 * False: a signal came. */
static bool sleep_without(kf_transport *t, kofn_time atmost)
{
    kofn_time ms = atmost / KF_MILLI + 1;
    int timeout = uv_backend_timeout(&t->uv.loop), n, what;

    if (t->dirty)
        timeout = 0;
    if (ms <= INT32_MAX && (timeout < 0 || ms < timeout))
        timeout = (int)ms;
    kf_net_loop_unlock(t);
    n = sleep_on(uv_backend_fd(&t->uv.loop), timeout, &what);
    n = n < 0 && errno == EINTR;
    pthread_mutex_lock(&t->lock);
    t->keep.ready = what;
    return !n;
}

/* ---- the owner ----------------------------------------------------------- */

static bool nothing_left(const kf_transport *t)
{
    if (t->uv.open)
        return false;
    for (size_t i = 0; i < t->out.count; i++)
        if (!t->out.dial[i]->over)
            return false;
    return true;
}

/* Receives without libuv if only the peer that was heard last is ready. A check
 * by libuv would take a tenth of a short packet's time. */
static bool hear_again(kf_transport *t)
{
    kf_link *l = t->keep.latest;
    int ready = t->keep.ready;

    t->keep.ready = -1;
    if (!l || l->fd != ready || l->state != KF_PEER || l->secure.waits ||
        t->dirty)
        return false;
    kf_net_ready(&l->poll, 0, UV_READABLE);
    return true;
}

/* Waits on the owner's thread until a packet is here, time is up or the
 * transport has ended. The caller holds the lock; it is free while the loop
 * sleeps. */
static kofn_status wait_here(kf_transport *t, kofn_time until, kofn_packet *p)
{
    assert(t->keep.here);
    for (bool first = true;; first = false) {
        kofn_time now = kf_clock();
        bool lately = now - t->keep.passed < KF_MILLI;

        /* take packets that are here before the loop runs */
        if (first && lately && kf_net_receive_next(t, p))
            return KOFN_OK;
        /* run the loop, unless it just ran or a direct read was enough */
        if (!(lately && hear_again(t)) &&
            (!first || !lately || t->traffic.asking || now >= until))
            kf_net_loop_pass(t);
        if (t->traffic.asking)
            kf_net_receive_ask(t);
        if (kf_net_receive_next(t, p))
            return KOFN_OK;
        if (t->starved >= STARVED && !t->uv.open)
            return kf_fail(KOFN_NOMEM,
                           "there is no memory for a connection to %s",
                           t->text.endpoint);
        if (nothing_left(t))
            return kf_fail(KOFN_TRANSPORT, "%s",
                           t->text.trouble[0] ? t->text.trouble
                                              : "no peer can be reached");
        now = kf_clock();
        if (now >= until || t->room) {
            t->room = t->full = false;
            return KOFN_AGAIN;
        }
        if (!sleep_without(t, until - now))
            return KOFN_AGAIN;
    }
}

kofn_status kf_net_loop_wait(kofn_transport *base, kofn_time atmost,
                             kofn_packet *p)
{
    kf_transport *t = (kf_transport *)base;
    kofn_time until = kf_later(kf_clock(), atmost);
    kofn_status st;

    pthread_mutex_lock(&t->lock);
    kf_net_loop_release(t);
    t->keep.here = true;
    st = wait_here(t, until, p);
    t->keep.here = false;
    t->keep.turns++;
    t->keep.left = kf_clock();
    t->base.dropped = t->gate.refused.strange + t->gate.refused.flood;
    if (t->keep.asleep)
        pthread_cond_signal(&t->keep.wake);
    kf_net_loop_unlock(t);
    return st;
}

void kf_net_loop_linger(kf_transport *t, kofn_time until)
{
    kofn_time now;

    t->keep.here = true;
    kf_net_loop_release(t);
    for (kf_net_loop_pass(t); t->in.links && (now = kf_clock()) < until;
         kf_net_loop_pass(t))
        sleep_without(t, until - now);
    t->keep.here = false;
    kf_net_loop_unlock(t);
}

/* ---- the keeper ---------------------------------------------------------- */

/* Thread of the keeper. It runs the loop while the owner is away, naps while
 * the owner comes and goes, and sleeps while the owner stays. */
static void *keep(void *ud)
{
    const struct timespec look = {0, LOOK};
    kf_transport *t = ud;
    uint64_t turns = 0;
    int calm = 0;

    pthread_mutex_lock(&t->lock);
    while (!t->keep.ending) {
        if (!t->keep.here && kf_clock() - t->keep.left >= LOOK) {
            kf_net_loop_pass(t);
            if (!t->keep.ending)
                sleep_without(t, KOFN_NEVER);
            continue;
        }
        calm = t->keep.turns == turns ? calm + 1 : 0;
        turns = t->keep.turns;
        if (!t->keep.here || calm < CALM) {
            kf_net_loop_unlock(t);
            nanosleep(&look, NULL);
            pthread_mutex_lock(&t->lock);
            continue;
        }
        t->keep.asleep = true;
        while (t->keep.here && !t->keep.ending)
            pthread_cond_wait(&t->keep.wake, &t->lock);
        t->keep.asleep = false;
    }
    kf_net_loop_unlock(t);
    return NULL;
}

/* ---- opening ------------------------------------------------------------- */

/* Starts the keeper with all signals blocked, since they belong to the
 * program. */
kofn_status kf_net_loop_keep(kf_transport *t)
{
    sigset_t all, was;
    int error;

    assert(!t->keep.started);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    error = pthread_create(&t->keep.thread, NULL, keep, t);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    t->keep.started = !error;
    return error ? kf_fail(KOFN_NOMEM, "no thread for connections: %s",
                           strerror(error))
                 : KOFN_OK;
}

kofn_status kf_net_loop_open(kf_transport *t)
{
    kofn_time ms = t->silence / KF_MILLI / 8;
    kf_low low;
    int error;

    assert(!t->uv.looping);
    kf_low_fill(&low);
    error = uv_loop_init(&t->uv.loop);
    if (!error) /* this may open a pipe */
        uv_async_init(&t->uv.loop, &t->uv.kick, NULL);
    kf_low_empty(&low);
    if (error)
        return kf_fail(KOFN_TRANSPORT, "no event loop: are there descriptors "
                                       "left? raise ulimit -n");
    t->uv.looping = true;
    t->keep.left = t->keep.ticked = kf_clock();
    uv_timer_init(&t->uv.loop, &t->uv.tick);
    t->uv.tick.data = t;
    ms = ms < TICK_MIN ? TICK_MIN : ms > TICK_MAX ? TICK_MAX : ms;
    uv_timer_init(&t->uv.loop, &t->uv.look);
    uv_timer_init(&t->uv.loop, &t->uv.dialing);
    t->uv.dialing.data = t;
    uv_idle_init(&t->uv.loop, &t->uv.again);
    t->uv.look.data = t->uv.again.data = t;
    uv_timer_start(&t->uv.tick, tick, (uint64_t)ms, (uint64_t)ms);
    return KOFN_OK;
}

/* Closes the loop. It is empty when all close callbacks have run. */
void kf_net_loop_close(kf_transport *t)
{
    if (t->keep.started) {
        pthread_mutex_lock(&t->lock);
        t->keep.ending = true;
        pthread_cond_signal(&t->keep.wake);
        uv_async_send(&t->uv.kick);
        kf_net_loop_unlock(t);
        pthread_join(t->keep.thread, NULL);
    }
    if (t->uv.looping) {
        uv_close((uv_handle_t *)&t->uv.tick, NULL);
        uv_close((uv_handle_t *)&t->uv.look, NULL);
        uv_close((uv_handle_t *)&t->uv.dialing, NULL);
        uv_close((uv_handle_t *)&t->uv.again, NULL);
        uv_close((uv_handle_t *)&t->uv.kick, NULL);
        while (uv_run(&t->uv.loop, UV_RUN_DEFAULT))
            ;
        uv_loop_close(&t->uv.loop);
    }
}
