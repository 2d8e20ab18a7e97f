/* shared_members.c -- the workers of a fleet, and to which job each packet
 * belongs.
 *
 * A peer is a member when it has said hello. Each job invites the members, and
 * a member says hello to each job that it takes part in. Its packets have the
 * job's number. A packet of a job that is over is dropped.
 *
 * Called with the fleet's lock. */
#include <assert.h>
#include <stdio.h>

#include "shared.h"

#include "base/clock.h"

#define STRANGERS 64 /* peers that have not said hello, besides `workers` */

static void tell(kofn_fleet *f, const char *what, const member *m)
{
    if (!f->opt.news)
        return;
    snprintf(f->words, sizeof f->words, "%s %s", m->badge.name, what);
    f->opt.news(f->opt.ud, f->words);
}

static void discard(kofn_fleet *f, kofn_packet *k)
{
    if (k->own)
        f->t->release(f->t, k->own);
    k->own = NULL;
}

/* ---- connections --------------------------------------------------------- */

static channel *channel_of(const kofn_fleet *f, uint64_t job)
{
    channel *c = f->channels;

    while (c && c->job != job)
        c = c->next;
    return c;
}

/* Passes a packet to the port of another job. */
static void pass(channel *c, kofn_packet *k)
{
    kofn_status st = kf_away_receive(c->port, k);

    if (st && !c->failed)
        c->failed = st;
    c->news = true;
}

/* Reports to the ports that a peer is gone. `own` learns it otherwise. */
static bool part(kofn_fleet *f, kofn_peer peer, const channel *own)
{
    member *m = &f->member[peer];
    bool reported = false;

    pthread_mutex_lock(&f->shape);
    m->here = false;
    pthread_mutex_unlock(&f->shape);
    kf_strangers_drop(&f->strangers, peer);
    if (m->known)
        tell(f, "left", m);
    for (channel *c = f->channels; c; c = c->next) {
        kofn_packet k = {.what = KOFN_WENT, .peer = peer};

        if (peer < c->invitations)
            c->invited[peer] = false;
        if (peer >= c->peers || !c->met[peer])
            continue;
        c->met[peer] = false;
        if (c == own)
            reported = true;
        else
            pass(c, &k);
    }
    return reported;
}

void kf_shared_forget(kofn_fleet *f, kofn_peer peer, const channel *own)
{
    if (peer >= f->members || !f->member[peer].here)
        return;
    f->t->forget(f->t, peer);
    part(f, peer, own);
}

static void meet(kofn_fleet *f, kofn_peer peer)
{
    kofn_status st;

    pthread_mutex_lock(&f->shape);
    st = kf_reach(&f->member, &f->members, (size_t)peer + 1, sizeof *f->member);
    if (!st)
        f->member[peer] = (member){.here = true};
    pthread_mutex_unlock(&f->shape);
    if (st) /* it will connect again */
        f->t->forget(f->t, peer);
    else if (kf_strangers_add(&f->strangers, peer, kf_clock()))
        kf_shared_forget(f, peer, NULL);
    else if (kf_strangers_surplus(&f->strangers, STRANGERS + f->opt.workers, 0,
                                  &peer))
        kf_shared_forget(f, peer, NULL);
}

/* ---- invitations --------------------------------------------------------- */

bool kf_shared_say(kofn_fleet *f, kofn_peer peer, const kf_head *h, bool urgent)
{
    unsigned char head[KF_HEAD];

    kf_head_write(head, h);
    return f->t->send(f->t, peer, head, sizeof head, NULL, urgent) !=
           KOFN_AGAIN;
}

void kf_shared_invite(channel *c)
{
    kofn_fleet *f = c->f;
    const kf_head h = {.type = KF_WIRE_INVITE,
                       .job = c->job,
                       .lo = (uint64_t)(c->weight * 1000)};

    c->waiting = 0;
    for (kofn_peer i = 0; i < f->members; i++) {
        const member *m = &f->member[i];

        if (!m->here || !m->known || m->draining)
            continue;
        if ((i < c->invitations && c->invited[i]) ||
            (i < c->peers && c->met[i]))
            continue;
        if (kf_reach(&c->met, &c->peers, (size_t)i + 1, sizeof *c->met) ||
            kf_reach(&c->invited, &c->invitations, (size_t)i + 1,
                     sizeof *c->invited) ||
            !kf_shared_say(f, i, &h, false))
            c->waiting++;
        else
            c->invited[i] = true;
    }
}

/* ---- hello --------------------------------------------------------------- */

/* Turns a peer away: another version of kofn, or another program. */
static void refuse(kofn_fleet *f, kofn_peer peer, const kf_head *h)
{
    kf_head no = {.type = KF_WIRE_REFUSED};
    unsigned char head[KF_HEAD];
    const char *why = kofn_errmsg();
    char *copy = h->version ? kf_strdup(why) : NULL;

    if (!copy) {
        kf_shared_forget(f, peer, NULL);
        return;
    }
    if (f->opt.news)
        f->opt.news(f->opt.ud, why);
    no.body_sum = kf_post_sum(f->t, 0, copy, strlen(copy));
    kf_head_write(head, &no);
    if (f->t->send(f->t, peer, head, sizeof head,
                   &(kofn_lent){copy, strlen(copy), kf_free, copy},
                   false) == KOFN_AGAIN)
        kf_free(copy);
    f->member[peer].refused = true;
}

/* Returns the number of members that are there. */
static size_t count_here(const kofn_fleet *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->members; i++)
        n += f->member[i].here && f->member[i].known;
    return n;
}

static void take_hello(kofn_fleet *f, const kf_head *h, kofn_packet *k)
{
    member *m = &f->member[k->peer];

    kf_badge_read(&m->badge, h, k);
    kf_strangers_drop(&f->strangers, k->peer);
    pthread_mutex_lock(&f->shape);
    m->known = true;
    pthread_mutex_unlock(&f->shape);
    f->most = kf_max(f->most, count_here(f));
    tell(f, "came", m);
    for (channel *c = f->channels; c; c = c->next)
        if (c->job != h->job) /* that job answers this hello */
            kf_shared_invite(c);
}

/* ---- what a job's port asks; with the fleet's lock ----------------------- */

/* Returns how many members are gone that no other has replaced.  At least one
 * is awaited: it may come back. */
static size_t lost(void *ud)
{
    const kofn_fleet *f = ((channel *)ud)->f;
    size_t here = count_here(f);

    assert(f->most >= here);
    return f->most - kf_max(here, kf_min(f->most, 1));
}

static void news(void *ud, const char *words)
{
    const channel *c = ud;

    if (c->tell)
        c->tell(c->tell_ud, words);
}

void kf_shared_serve(channel *c, kofn_away_options *o)
{
    if (o->start || o->kill || o->ended)
        return;
    c->tell = o->news;
    c->tell_ud = o->ud;
    o->news = news;
    o->ud = c;
    o->ended = lost;
}

/* ---- questions ----------------------------------------------------------- */

/* Each job compares the workers by its products; the slowest finding counts. */
kofn_fleet_worker kf_shared_describe(const kofn_fleet *f, kofn_peer peer)
{
    assert(peer < f->members);
    const member *m = &f->member[peer];
    kofn_fleet_worker w =
        kf_badge_describe(&m->badge, m->draining ? KOFN_FLEET_DRAINING
                                     : m->owed   ? KOFN_FLEET_BUSY
                                                 : KOFN_FLEET_FREE);

    for (const channel *c = f->channels; c; c = c->next) {
        uint32_t id = kf_away_worker(c->port, peer);

        if (id != NOBODY && c->port->worker[id]->badge.slow > w.slow)
            w.slow = c->port->worker[id]->badge.slow;
    }
    return w;
}

const char *kf_shared_drain(kofn_fleet *f, const char *name,
                            const kofn_peer *asks)
{
    const kf_head h = {.type = KF_WIRE_DRAIN};
    const char *why = "no connected worker has that name";

    for (kofn_peer i = 0; i < f->members; i++) {
        member *m = &f->member[i];

        if (!m->here || !m->known || strcmp(m->badge.name, name) != 0)
            continue;
        why = asks ? kf_badge_may_drain(f->t, *asks, i) : NULL;
        if (!why)
            m->draining = kf_shared_say(f, i, &h, true) || m->draining;
    }
    return why;
}

/* Answers a peer that asks for the jobs and workers, or drains a worker. A
 * transport never waits in `send`, so the lock is free again soon. */
static void answer(kofn_fleet *f, const kofn_packet *k)
{
    char name[KF_NAME_MOST + 1] = "";
    size_t n = k->body ? kf_min(k->body_bytes, KF_NAME_MOST) : 0;
    bool reads = true;

    if (n)
        memcpy(name, k->body, n);
    for (const channel *c = f->channels; reads && !n && c; c = c->next)
        reads = kf_badge_tell_job(f->t, k->peer, &c->port->doing);
    for (size_t i = 0; reads && !n && i < f->members; i++)
        if (f->member[i].here && f->member[i].known) {
            kofn_fleet_worker w = kf_shared_describe(f, (kofn_peer)i);

            reads = kf_badge_tell(f->t, k->peer, &w, NULL);
        }
    if (reads)
        kf_badge_tell(f->t, k->peer, NULL,
                      n ? kf_shared_drain(f, name, &k->peer) : NULL);
}

/* ---- packets ------------------------------------------------------------- */

static void count(member *m, const kf_head *h, const kofn_packet *k)
{
    if (h->type == KF_WIRE_RESULT || h->type == KF_WIRE_FAILED)
        m->owed -= m->owed > 0;
    kf_badge_count(&m->badge, h, k->body_bytes);
}

/* Reports the peer to the port before its first packet. */
static void introduce_to(channel *c, kofn_packet *k)
{
    kofn_packet came = {.what = KOFN_CAME, .peer = k->peer};
    kofn_status st =
        kf_reach(&c->met, &c->peers, (size_t)k->peer + 1, sizeof *c->met);

    if (!st)
        st = kf_reach(&c->invited, &c->invitations, (size_t)k->peer + 1,
                      sizeof *c->invited);
    if (!st)
        st = kf_away_receive(c->port, &came);
    if (st)
        c->failed = st;
    else
        c->met[k->peer] = true;
}

/* Handles a packet of a connected peer. */
static bool from_member(kofn_fleet *f, kofn_packet *k, const channel *own)
{
    member *m = &f->member[k->peer];
    kofn_status st;
    kf_head h;
    channel *c;

    st = kf_head_read(&h, k->head, k->head_bytes);
    if (!st && !m->known && h.type == KF_WIRE_ASK) {
        answer(f, k);
        discard(f, k);
        return false;
    }
    if (st || (!m->known && h.type != KF_WIRE_HELLO)) {
        discard(f, k);
        f->dropped++;
        if (st && h.version && !m->known)
            refuse(f, k->peer, &h);
        else
            kf_shared_forget(f, k->peer, NULL);
        return false;
    }
    if (!m->known)
        take_hello(f, &h, k);
    count(m, &h, k);
    c = channel_of(f, h.job);
    if (c && h.type == KF_WIRE_HELLO &&
        (k->peer >= c->peers || !c->met[k->peer]))
        introduce_to(c, k);
    if (!c || k->peer >= c->peers || !c->met[k->peer]) {
        discard(f, k); /* of a job that is over */
        return false;
    }
    if (c == own)
        return true;
    pass(c, k);
    return false;
}

bool kf_shared_arrived(kofn_fleet *f, kofn_packet *k, const channel *own)
{
    if (k->what == KOFN_CAME) {
        meet(f, k->peer);
        return false;
    }
    if (k->peer >= f->members || !f->member[k->peer].here) {
        discard(f, k);
        return false;
    }
    if (k->what == KOFN_WENT)
        return part(f, k->peer, own);
    if (f->member[k->peer].refused) {
        discard(f, k);
        return false;
    }
    return from_member(f, k, own);
}
