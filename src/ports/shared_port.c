/* shared_port.c -- the port that a job of a fleet has: that over its channel,
 * with the fleet's lock around each function.
 *
 * Owns the port over the channel. */
#include <assert.h>

#include "shared.h"

#include "base/clock.h"

typedef struct guarded {
    kofn_port base;
    kofn_port *of;
    kofn_fleet *f;
} guarded;

/* Takes over what the inner port may have changed. */
static void leave(guarded *g)
{
    g->base.workers = g->of->workers;
    g->base.dropped = g->of->dropped;
    pthread_mutex_unlock(&g->f->lock);
}

static kofn_port *enter(kofn_port *base)
{
    guarded *g = (guarded *)base;

    pthread_mutex_lock(&g->f->lock);
    return g->of;
}

#define WITHIN(type, call)                                                     \
    kofn_port *p = enter(base);                                                \
    type result = call;                                                        \
                                                                               \
    leave((guarded *)base);                                                    \
    return result

static kofn_status guarded_send(kofn_port *base, kf_msg *m)
{
    WITHIN(kofn_status, p->send(p, m));
}

static kofn_status guarded_wait(kofn_port *base, kofn_time until,
                                kofn_time atmost, kf_msg *m)
{
    WITHIN(kofn_status, p->wait(p, until, atmost, m));
}

static kofn_time guarded_now(kofn_port *base)
{
    kofn_port *p = ((guarded *)base)->of;

    return p->now(p); /* reads a clock and a constant */
}

static kofn_status guarded_admit(kofn_port *base, uint32_t *id)
{
    WITHIN(kofn_status, p->admit(p, id));
}

static kofn_status guarded_remove(kofn_port *base, uint32_t id)
{
    WITHIN(kofn_status, p->remove(p, id));
}

static void guarded_slow(kofn_port *base, uint32_t id, double factor)
{
    kofn_port *p = enter(base);

    p->slow(p, id, factor);
    leave((guarded *)base);
}

static void guarded_corrupt(kofn_port *base, uint32_t id, bool on)
{
    kofn_port *p = enter(base);

    p->corrupt(p, id, on);
    leave((guarded *)base);
}

static kofn_status guarded_flip(kofn_port *base, uint32_t id)
{
    WITHIN(kofn_status, p->flip(p, id));
}

static const char *guarded_name_of(kofn_port *base, uint32_t id)
{
    WITHIN(const char *, p->name_of(p, id));
}

static kofn_time guarded_storing(kofn_port *base, uint32_t id)
{
    WITHIN(kofn_time, p->storing(p, id));
}

static uint64_t guarded_placed(kofn_port *base)
{
    WITHIN(uint64_t, p->placed(p));
}

static uint64_t guarded_backlog(kofn_port *base, uint32_t id)
{
    WITHIN(uint64_t, p->backlog(p, id));
}

static bool guarded_coming(kofn_port *base, uint32_t id, kf_coming *c)
{
    WITHIN(bool, p->coming(p, id, c));
}

static void guarded_describe(kofn_port *base, uint32_t id, kofn_fleet_worker *w)
{
    kofn_port *p = enter(base);

    p->describe(p, id, w);
    leave((guarded *)base);
}

static void guarded_doing(kofn_port *base, const kf_doing *d)
{
    kofn_port *p = enter(base);

    p->doing(p, d);
    leave((guarded *)base);
}

/* ---- closing ------------------------------------------------------------- */

/* Dismisses the workers and waits until they go, for at most a second. */
static void dismiss(kofn_fleet *f)
{
    const kf_head h = {.type = KF_WIRE_DISMISS, .which = 1};
    kofn_time end = kf_clock() + KOFN_SECOND, now;
    size_t there = 0;

    for (size_t i = 0; i < f->members; i++)
        if (f->member[i].here && f->member[i].known)
            there += kf_shared_say(f, (kofn_peer)i, &h, true);
    while (there && (now = kf_clock()) < end) {
        kofn_packet k = {0};
        kofn_status st = f->t->wait(f->t, end - now, &k);

        if (st && st != KOFN_AGAIN)
            return;
        if (st == KOFN_OK && k.what == KOFN_WENT && k.peer < f->members)
            there -= f->member[k.peer].here && f->member[k.peer].known;
        if (st == KOFN_OK && k.own)
            f->t->release(f->t, k.own);
    }
}

void kf_shared_end(kofn_fleet *f)
{
    assert(!f->channels);
    if (f->t) {
        dismiss(f);
        f->t->close(f->t, KOFN_SECOND);
    }
    kf_spawn_end(f->spawned);
    if (f->locks) {
        pthread_mutex_destroy(&f->lock);
        pthread_mutex_destroy(&f->shape);
        pthread_cond_destroy(&f->turn);
    }
    kf_free(f->member);
    kf_free(f->strangers.stranger);
    kf_free(f);
}

/* Closes the port, and the fleet if it was closed before and this was its last
 * job. */
static void guarded_close(kofn_port *base)
{
    kofn_port *p = enter(base);
    kofn_fleet *f = ((guarded *)base)->f;
    bool last;

    p->close(p);
    last = f->closing && !f->channels;
    pthread_mutex_unlock(&f->lock);
    kf_free(base);
    if (last)
        kf_shared_end(f);
}

kofn_status kf_shared_guard(kofn_port **out, channel *c)
{
    kofn_port *of = &c->port->base;
    guarded *g = kf_zero(1, sizeof *g);

    if (!g) {
        of->close(of);
        return KOFN_NOMEM;
    }
    *g = (guarded){.base = *of, .of = of, .f = c->f};
    g->base.send = guarded_send;
    g->base.wait = guarded_wait;
    g->base.now = guarded_now;
    g->base.close = guarded_close;
    g->base.admit = of->admit ? guarded_admit : NULL;
    g->base.remove = of->remove ? guarded_remove : NULL;
    g->base.slow = guarded_slow;
    g->base.corrupt = guarded_corrupt;
    g->base.flip = guarded_flip;
    g->base.name_of = guarded_name_of;
    g->base.storing = guarded_storing;
    g->base.placed = guarded_placed;
    g->base.backlog = guarded_backlog;
    g->base.coming = guarded_coming;
    g->base.describe = guarded_describe;
    g->base.doing = guarded_doing;
    *out = &g->base;
    return KOFN_OK;
}
