/* shared.c -- a fleet: opened once, with jobs one after another and side by
 * side.
 *
 * Owns the transport. Ports and channels belong to the jobs. */
#include <assert.h>
#include <errno.h>
#include <kofn/net.h>
#include <sys/random.h>

#include "shared.h"

#include "base/clock.h"

#define WEIGHT_MOST 1e6
#define AT_ONCE 1024 /* arrivals that one call handles */
#define STRANGERS 1024
#define LONGEST                                                                \
    ((size_t)1 << 48) /* body; `wanted` refuses those that no job              \
                       * has asked for */

/* ---- jobs ---------------------------------------------------------------- */

static kofn_status number_of(const kofn_fleet *f, uint64_t given,
                             uint64_t *number)
{
    const channel *c = f->channels;

    *number = given;
    while (*number == 0)
        if (getrandom(number, sizeof *number, 0) != sizeof *number)
            return kf_fail(KOFN_IO, "the system gives no random number: %s",
                           strerror(errno));
    while (c && c->job != *number)
        c = c->next;
    return c ? kf_fail(KOFN_INVAL,
                       "this fleet has an open job with the number %llu; close "
                       "that, or choose another number",
                       (unsigned long long)given)
             : KOFN_OK;
}

static kofn_status begin(kofn_fleet *f, kofn_port **out, kofn_away_options *o)
{
    channel *c = NULL;
    uint64_t number;

    TRY(number_of(f, o->job, &number));
    TRY(kf_shared_channel(f, &c, number, o->weight ? o->weight : 1));
    kf_spawn_serve(c, o);
    kf_shared_serve(c, o);
    TRY(kf_away_open(&c->port, &c->base, o, number)); /* closes c if it fails */
    pthread_mutex_lock(&f->shape);
    c->next = f->channels;
    f->channels = c;
    pthread_mutex_unlock(&f->shape);
    TRY(kf_shared_guard(out, c));
    kf_shared_invite(c);
    return KOFN_OK;
}

kofn_status kofn_fleet_port(kofn_port **out, kofn_fleet *f,
                            const kofn_away_options *opt)
{
    kofn_away_options o = KOFN_AWAY_OPTIONS_INIT;
    kofn_status st;

    *out = NULL;
    o.workers = 0;
    TRY(kf_given(&o, sizeof o, opt, "KOFN_AWAY_OPTIONS_INIT"));
    if (!(o.weight >= 0 && o.weight <= WEIGHT_MOST))
        return kf_fail(KOFN_INVAL,
                       "a weight of %g; it must be above 0 and at most 1e6",
                       o.weight);
    if (!o.workers)
        o.workers = f->opt.workers;
    if (!f->t)
        return kofn_port_threads(out, o.workers, NULL);
    pthread_mutex_lock(&f->lock);
    st = begin(f, out, &o);
    pthread_mutex_unlock(&f->lock);
    return st;
}

/* ---- what users ask ------------------------------------------------------ */

kofn_status kofn_fleet_poll(kofn_fleet *f, kofn_time atmost)
{
    kofn_status st = KOFN_AGAIN;

    if (!f->t)
        return KOFN_OK;
    pthread_mutex_lock(&f->lock);
    f->news = true;
    for (int i = 0; i < AT_ONCE && f->news; i++) { /* the first may wait */
        kofn_packet k = {0};

        f->news = false;
        st = kf_shared_wait(f, NULL, i ? 0 : atmost, &k);
    }
    pthread_mutex_unlock(&f->lock);
    return st == KOFN_AGAIN ? KOFN_OK : st;
}

size_t kofn_fleet_workers(kofn_fleet *f)
{
    size_t n = 0;

    if (!f->t)
        return f->opt.workers;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->members; i++)
        n += f->member[i].here && f->member[i].known;
    pthread_mutex_unlock(&f->lock);
    return n;
}

kofn_status kofn_fleet_at(kofn_fleet *f, size_t i, kofn_fleet_worker *w)
{
    kofn_fleet_worker it = KOFN_FLEET_WORKER_INIT;
    size_t before = 0;
    bool found = !f->t && i < f->opt.workers;

    it.name = it.host = "thread";
    pthread_mutex_lock(&f->lock);
    for (size_t m = 0; f->t && !found && m < f->members; m++) {
        found = f->member[m].here && f->member[m].known && before++ == i;
        if (found)
            it = kf_shared_describe(f, (kofn_peer)m);
    }
    pthread_mutex_unlock(&f->lock);
    if (!found)
        return kf_fail(KOFN_INVAL, "worker %zu of a fleet that has fewer", i);
    kf_give(w, &it, sizeof it);
    return KOFN_OK;
}

kofn_status kofn_fleet_drain(kofn_fleet *f, const char *name)
{
    const char *why;

    if (!f->t)
        return kf_fail(KOFN_INVAL, "threads cannot be drained");
    pthread_mutex_lock(&f->lock);
    why = kf_shared_drain(f, name, NULL);
    pthread_mutex_unlock(&f->lock);
    return why ? kf_fail(KOFN_INVAL, "%s: %s", name, why) : KOFN_OK;
}

/* ---- opening and closing ------------------------------------------------- */

void kofn_fleet_close(kofn_fleet *f)
{
    bool open;

    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    open = f->channels != NULL;
    pthread_mutex_unlock(&f->lock);
    if (!open)
        kf_shared_end(f);
}

static void make_locks(kofn_fleet *f)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->turn, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&f->lock, NULL);
    pthread_mutex_init(&f->shape, NULL);
    f->locks = true;
}

kofn_status kofn_fleet_open(kofn_fleet **out, kofn_transport *t,
                            const kofn_fleet_options *opt)
{
    kofn_fleet *f = kf_zero(1, sizeof *f);
    kofn_status st = f ? KOFN_OK : KOFN_NOMEM;

    *out = NULL;
    if (f) {
        f->opt = (kofn_fleet_options)KOFN_FLEET_OPTIONS_INIT;
        st = kf_given(&f->opt, sizeof f->opt, opt, "KOFN_FLEET_OPTIONS_INIT");
    }
    if (!st && t)
        st = kf_complete(t, sizeof *t, "kofn_transport");
    if (!st && f->opt.workers == 0)
        st = kf_fail(KOFN_INVAL, "a fleet of 0 workers; it needs 1 at least");
    if (st) {
        kf_free(f);
        if (t)
            t->close(t, 0);
        return st;
    }
    make_locks(f);
    f->t = t;
    if (t) {
        t->wanted = kf_shared_wanted;
        t->wanted_ud = f;
    }
    *out = f;
    return KOFN_OK;
}

/* Opens the fleet of processes that will be started. Takes over `s`. */
static kofn_status open_spawned(kofn_fleet **out, spawned *s,
                                const kofn_fleet_options *o)
{
    kofn_net_options net = KOFN_NET_OPTIONS_INIT;
    kofn_transport *t;
    kofn_status st;

    net.body_max = LONGEST;
    net.strangers = STRANGERS + 2 * kf_min(o->workers, (size_t)1 << 20);
    net.silence = 10 * KOFN_SECOND; /* a long silence means a loaded machine */
    st = kofn_net_listen(&t, kf_spawn_address(s), &net);
    if (!st)
        st = kofn_fleet_open(out, t, o);
    if (st)
        kf_spawn_end(s);
    else
        (*out)->spawned = s;
    return st;
}

kofn_status kofn_fleet_spawn(kofn_fleet **out, const kofn_fleet_options *opt)
{
    kofn_fleet_options o = KOFN_FLEET_OPTIONS_INIT;
    spawned *s;
    kofn_status st;

    *out = NULL;
    TRY(kf_given(&o, sizeof o, opt, "KOFN_FLEET_OPTIONS_INIT"));
    TRY(kf_spawn_begin(&s, o.program));
    TRY(open_spawned(out, s, &o));
    st = kf_spawn_start(s, o.workers);
    if (st) {
        kofn_fleet_close(*out);
        *out = NULL;
    }
    return st;
}
