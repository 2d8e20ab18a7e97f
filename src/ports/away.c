/* away.c -- port of the coordinator to workers on other machines, over any
 * transport. The coordinator's side of docs/wire.md.
 *
 * Nothing that a peer sends is trusted. A result counts only if its worker was
 * given that task and its shape, kind and checksum match. A damaged result ends
 * the connection; everything else is dropped and counted. A message waits in
 * the worker's outbox if the transport is full. A worker is lost if its outbox
 * does not move for `silence`: a transport does not notice that a peer has
 * stopped while its pipe is full.
 *
 * If a coordinator restarts, its workers may still hold blocks. A job that may
 * have such workers sends no blocks until all workers are there. Then it gives
 * each worker the number, and so the seat, of the block that it holds.
 *
 * Workers request their blocks, some rows at a time. A request is answered when
 * there is nothing else to do, or if no slice was sent for a while.
 *
 * Owns the table of workers and principals. The port owns the transport and
 * closes it. Only the coordinator's thread calls it, and it waits only in the
 * transport. */
#include <errno.h>
#include <sys/random.h>

#include "away.h"

#include "base/clock.h"

#define RETRY (KOFN_SECOND / 1000) /* a full outbox is tried again */
#define GRACE (2 * KOFN_SECOND)    /* for packets of a process that ended */
#define ASK (KOFN_SECOND / 10)     /* between looks whether workers ended */
#define PASS (KOFN_SECOND / 50)    /* longest wait of slices for packets */

/* ---- the port ------------------------------------------------------------ */

static kofn_time sooner(kofn_time a, kofn_time b)
{
    return a < b ? a : b;
}

/* Waits for a packet. Strangers are not charged for time spent elsewhere, since
 * their packets may have arrived meanwhile. */
static kofn_status listen(port *p, kofn_time atmost, kofn_packet *k)
{
    kofn_time from = kf_away_now(&p->base);
    kofn_status st = p->t->wait(p->t, atmost, k);
    kofn_time to = kf_away_now(&p->base);

    p->clock.listened += to - from + sooner(from - p->clock.turned, PASS);
    p->clock.turned = to;
    return st;
}

/* Handles one packet. Sends one slice of a block if there is no packet, or if
 * none was sent for a while. So a worker that floods the port with packets does
 * not hold blocks up. */
static kofn_status pass(port *p, kofn_time atmost)
{
    const char *news = p->t->news ? p->t->news(p->t) : NULL;
    kofn_packet k = {0};
    kofn_status st;
    uint32_t next;

    if (news)
        kf_away_news(p, "%s", news);
    TRY(kf_away_store(p));
    TRY(kf_away_flush(p));
    kf_away_send_away(p);
    next = kf_away_next(p);
    if (next != NOBODY && kf_away_now(&p->base) - p->serve.served > PASS)
        return kf_away_serve(p, next);
    if (next != NOBODY)
        atmost = 0;
    else if (p->waiting)
        atmost = sooner(atmost, RETRY);
    else if (p->crowd.count)
        atmost = sooner(atmost, KOFN_SECOND);
    st = listen(p, atmost, &k);
    if (st == KOFN_AGAIN) {
        next = kf_away_next(p); /* a fleet may have lost a worker meanwhile */
        return next == NOBODY ? KOFN_OK : kf_away_serve(p, next);
    }
    return st ? st : kf_away_receive(p, &k);
}

/* Expects fewer workers: `missing` more have ended before they connected. */
static kofn_status expect_fewer(port *p, size_t missing)
{
    p->clock.missed = 0;
    p->clock.never += missing;
    assert(p->clock.never <= p->opt.workers);
    if (p->clock.never == p->opt.workers)
        return kf_fail(KOFN_TOOFEW, "all %zu workers ended before they came",
                       p->opt.workers);
    p->base.workers = p->opt.workers - p->clock.never;
    kf_away_news(p, "%zu of %zu workers ended before they came", p->clock.never,
                 p->opt.workers);
    return KOFN_OK;
}

/* True if workers that were started here are still to come. */
static bool expects_own(const port *p)
{
    return p->opt.ended && p->workers + p->clock.never < p->opt.workers;
}

/* Stops waiting for workers that were started and ended before they connected.
 * A worker's end may be known before its last packets are here. */
static kofn_status check_coming(port *p)
{
    kofn_time now = kf_away_now(&p->base);
    size_t ended, gone = p->clock.never;

    if (!expects_own(p) || now - p->clock.asked < ASK)
        return KOFN_OK;
    p->clock.asked = now;
    ended = p->opt.ended(p->opt.ud);
    for (size_t i = 0; i < p->workers; i++)
        gone += p->worker[i]->gone;
    if (ended <= gone)
        p->clock.missed = 0;
    else if (p->clock.missed == 0)
        p->clock.missed = now;
    if (p->clock.missed == 0 || now - p->clock.missed < GRACE)
        return KOFN_OK;
    return expect_fewer(
        p, kf_min(ended - gone, p->opt.workers - p->workers - p->clock.never));
}

/* Returns how long to wait for a packet. The end of a process sends none. */
static kofn_time longest_wait(const port *p, kofn_time until, kofn_time now)
{
    kofn_time left = until == KOFN_NEVER ? KOFN_SECOND
                     : until > now       ? until - now
                                         : 0;

    return expects_own(p) ? sooner(left, ASK) : left;
}

static kofn_status port_wait(kofn_port *base, kofn_time until, kofn_time atmost,
                             kf_msg *m)
{
    port *p = (port *)base;
    kofn_time now = kf_away_now(base);
    size_t expected = base->workers;

    until = sooner(until, kf_later(now, atmost));
    do {
        if (p->ready.count) {
            *m = kf_inbox_take(&p->ready, 0);
            return KOFN_OK;
        }
        TRY(check_coming(p));
        if (base->workers < expected)
            return KOFN_AGAIN; /* those that came may be enough */
        TRY(pass(p, longest_wait(p, until, now)));
        now = kf_away_now(base);
        base->dropped += p->t->dropped - p->transport_dropped;
        p->transport_dropped = p->t->dropped;
    } while (p->ready.count || now < until);
    return KOFN_AGAIN;
}

/* Sends the dismissal, which overtakes everything. False if the transport is
 * full and it was not sent. */
static bool say_dismiss(port *p, kofn_peer peer)
{
    kf_head h = {.type = p->shared ? KF_WIRE_RELEASE : KF_WIRE_DISMISS,
                 .job = p->job,
                 .which = p->shared && p->opt.job,
                 .body_sum = kf_post_sum(p->t, p->job, NULL, 0)};
    unsigned char head[KF_HEAD];

    kf_head_write(head, &h);
    return p->t->send(p->t, peer, head, sizeof head, NULL, true) != KOFN_AGAIN;
}

/* Dismisses the workers that were not dismissed before, if there is room. */
static void dismiss_workers(port *p)
{
    for (size_t i = 0; i < p->workers; i++) {
        worker *w = p->worker[i];

        if (!w->gone && !w->dismissed)
            w->dismissed = say_dismiss(p, w->peer);
    }
}

/* Reports to the workers of a fleet that this job is over. */
static void release(port *p)
{
    kofn_time end = kf_away_now(&p->base) + KOFN_SECOND;
    bool all = false;

    while (!all && kf_away_now(&p->base) < end) {
        kofn_packet k = {0};
        kofn_status st;

        dismiss_workers(p);
        all = true;
        for (size_t i = 0; i < p->workers; i++)
            all = all && (p->worker[i]->gone || p->worker[i]->dismissed);
        st = all ? KOFN_AGAIN : p->t->wait(p->t, RETRY, &k);
        if (st && st != KOFN_AGAIN)
            return;
        if (st == KOFN_OK)
            kf_away_receive(p, &k);
    }
}

/* Dismisses all workers and waits until they go. If the transport ended first,
 * they would wait for another coordinator. A peer that has not said hello is
 * dismissed too. Otherwise a rank of MPI that starts late would only find that
 * all others are gone. */
static void dismiss(port *p)
{
    kofn_time end = kf_away_now(&p->base) + KOFN_SECOND, now;
    size_t there = 0;

    for (size_t i = 0; i < p->workers; i++)
        if (!p->worker[i]->gone) {
            kf_outbox_empty(&p->worker[i]->line.outbox);
            there++;
        }
    for (size_t i = 0; i < p->crowd.count; i++)
        say_dismiss(p, p->crowd.stranger[i].peer);
    for (dismiss_workers(p); there && (now = kf_away_now(&p->base)) < end;
         dismiss_workers(p)) {
        kofn_packet k = {0};
        kofn_status st = p->t->wait(p->t, end - now, &k);

        if (st && st != KOFN_AGAIN)
            return;
        if (st == KOFN_OK && k.what == KOFN_WENT) {
            uint32_t id = kf_away_worker(p, k.peer);

            there -= id != NOBODY;
            if (id != NOBODY)
                p->worker[id]->dismissed = true;
        }
        if (st == KOFN_OK && k.own)
            p->t->release(p->t, k.own);
    }
}

/* Dismisses the workers, closes the transport and frees all that the port
 * owns.  Messages that were not taken are dropped. */
static void port_close(kofn_port *base)
{
    port *p = (port *)base;

    if (p->t && p->shared)
        release(p);
    else if (p->t)
        dismiss(p);
    kf_inbox_free(&p->ready);
    for (size_t i = 0; i < p->workers; i++) {
        if (!p->worker[i]->gone)
            kf_away_close_peer(p, p->worker[i]);
        kf_outbox_free(&p->worker[i]->line.outbox);
        kf_free(p->worker[i]->tasks.pending);
        kf_free(p->worker[i]);
    }
    for (size_t i = 0; i < p->in.count; i++)
        kf_buffer_drop(p->in.input[i].packed);
    if (p->t)
        p->t->close(p->t, KOFN_SECOND);
    kf_free(p->worker);
    for (size_t i = 0; i < p->who.count; i++)
        kf_free(p->who.principal[i].name);
    kf_free(p->who.principal);
    kf_free(p->of_peer);
    kf_free(p->crowd.stranger);
    kf_free(p->in.input);
    kf_free(p->source);
    kf_free(p);
}

static const char *port_name_of(kofn_port *base, uint32_t id)
{
    return kf_away_name((port *)base, id);
}

static void port_describe(kofn_port *base, uint32_t id, kofn_fleet_worker *w)
{
    const port *p = (const port *)base;

    if (id < p->workers)
        *w = kf_badge_describe(&p->worker[id]->badge, KOFN_FLEET_FREE);
}

static uint64_t port_placed(kofn_port *base)
{
    return ((const port *)base)->serve.placed;
}

static uint64_t port_backlog(kofn_port *base, uint32_t id)
{
    const port *p = (const port *)base;

    return id < p->workers && !p->worker[id]->gone
               ? kf_outbox_bytes(&p->worker[id]->line.outbox)
               : 0;
}

static void port_doing(kofn_port *base, const kf_doing *d)
{
    ((port *)base)->doing = *d;
}

/* ---- what an events file asks for ---------------------------------------- */

/* Starts a worker. Fails with KOFN_LATE if it does not say hello within ten
 * seconds. */
static kofn_status port_admit(kofn_port *base, uint32_t *id)
{
    port *p = (port *)base;
    kofn_time end = kf_away_now(base) + HELLO_TIME;
    size_t had = p->workers;

    if (p->opt.start(p->opt.ud))
        return kf_fail(KOFN_TRANSPORT, "a worker could not be started");
    while (p->workers == had) {
        if (kf_away_now(base) > end)
            return kf_fail(KOFN_LATE, "a worker was started and did not say "
                                      "hello within ten seconds");
        TRY(pass(p, KOFN_SECOND / 100));
    }
    *id = (uint32_t)had;
    /* the job knows this worker already */
    for (size_t i = p->ready.count; i > 0; i--) {
        const kf_msg *m = &p->ready.msg[p->ready.first + i - 1];

        if (m->type == KF_MSG_HELLO && m->worker == had)
            kf_inbox_take(&p->ready, i - 1);
    }
    return KOFN_OK;
}

static kofn_status port_remove(kofn_port *base, uint32_t id)
{
    port *p = (port *)base;
    worker *w;

    if (id >= p->workers || p->worker[id]->gone)
        return KOFN_OK;
    w = p->worker[id];
    p->opt.kill(p->opt.ud, w->process);
    p->t->forget(p->t, w->peer);
    kf_away_close_peer(p, w);
    return KOFN_OK;
}

static void inject(port *p, uint32_t id, kf_injection what, double value)
{
    kf_head h = {.type = KF_WIRE_INJECT,
                 .job = p->job,
                 .which = what,
                 .lo = (uint64_t)(value * 1000)};

    if (id >= p->workers || p->worker[id]->gone)
        return;
    if (!p->worker[id]->staged)
        kf_away_news(p,
                     "%s ignores the fault events of this run: it was "
                     "started without --staged",
                     kf_away_title(p, id));
    else
        kf_away_post(p, id, &h, NULL);
}

static void port_slow(kofn_port *base, uint32_t id, double factor)
{
    inject((port *)base, id, KF_INJECT_SLOW, factor);
}

static void port_corrupt(kofn_port *base, uint32_t id, bool on)
{
    inject((port *)base, id, KF_INJECT_CORRUPT, on);
}

static kofn_status port_flip(kofn_port *base, uint32_t id)
{
    inject((port *)base, id, KF_INJECT_FLIP, 1);
    return KOFN_OK;
}

/* ---- opening ------------------------------------------------------------- */

/* Returns the functions of the port, with the constants of its transport. */
static kofn_port base_of(const kofn_transport *t, const kofn_away_options *opt)
{
    return (kofn_port){.name = opt->name ? opt->name : t->name,
                       .workers = opt->workers,
                       .away = true,
                       .kept = opt->job != 0,
                       .waiting = KF_WAITING,
                       .longest = t->body_max,
                       .send = kf_away_send,
                       .wait = port_wait,
                       .now = kf_away_now,
                       .close = port_close,
                       .slow = port_slow,
                       .corrupt = port_corrupt,
                       .flip = port_flip,
                       .name_of = port_name_of,
                       .storing = kf_away_storing,
                       .placed = port_placed,
                       .backlog = port_backlog,
                       .coming = kf_away_coming,
                       .describe = port_describe,
                       .doing = port_doing};
}

static kofn_status draw_job(port *p)
{
    p->job = p->opt.job;
    while (p->job == 0)
        if (getrandom(&p->job, sizeof p->job, 0) != sizeof p->job)
            return kf_fail(KOFN_IO, "the system gives no random number: %s",
                           strerror(errno));
    return KOFN_OK;
}

kofn_status kf_away_open(port **out, kofn_transport *t,
                         const kofn_away_options *opt, uint64_t job)
{
    port *p = kf_zero(1, sizeof *p);
    kofn_status st = KOFN_OK;

    *out = NULL;
    if (!p) {
        t->close(t, 0);
        return KOFN_NOMEM;
    }
    p->opt = (kofn_away_options)KOFN_AWAY_OPTIONS_INIT;
    st = kf_given(&p->opt, sizeof p->opt, opt, "KOFN_AWAY_OPTIONS_INIT");
    if (!st)
        st = kf_complete(t, sizeof *t, "kofn_transport");
    if (st) {
        kf_free(p);
        t->close(t, 0);
        return st;
    }
    if (p->opt.silence <= 0)
        p->opt.silence = 5 * KOFN_SECOND;
    if (p->opt.strangers == 0) /* all workers may connect at once */
        p->opt.strangers = kf_max(64, p->opt.workers);
    p->t = t;
    t->wanted = kf_away_wanted;
    t->wanted_ud = p;
    p->base = base_of(t, &p->opt);
    if (p->opt.start && p->opt.kill) {
        p->base.admit = port_admit;
        p->base.remove = port_remove;
    }
    p->clock.start = kf_clock();
    if (p->opt.source && !(p->source = kf_strdup(p->opt.source)))
        st = KOFN_NOMEM;
    p->shared = job != 0;
    p->job = job;
    if (!st && !job)
        st = draw_job(p);
    if (st) {
        port_close(&p->base);
        return st;
    }
    *out = p;
    return KOFN_OK;
}

kofn_status kofn_port_away(kofn_port **out, kofn_transport *t,
                           const kofn_away_options *opt)
{
    port *p;

    *out = NULL;
    TRY(kf_away_open(&p, t, opt, 0));
    *out = &p->base;
    return KOFN_OK;
}
