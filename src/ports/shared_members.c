/* shared_members.c -- the workers of a fleet, and to which job each packet
 * belongs. packet belongs.
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
    snprintf(f->words, sizeof f->words, "%s %s", m->name, what);
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

/* Ends the connection of the peer that has been silent for the longest time, if
 * there are too many. */
static void limit_strangers(kofn_fleet *f)
{
    size_t n = 0;
    kofn_peer first = 0;

    for (size_t i = 0; i < f->members; i++)
        if (f->member[i].here && !f->member[i].known && n++ == 0)
            first = (kofn_peer)i;
    if (n > STRANGERS + f->opt.workers)
        kf_shared_forget(f, first, NULL);
}

static void meet(kofn_fleet *f, kofn_peer peer)
{
    kofn_status st;

    pthread_mutex_lock(&f->shape);
    st = kf_reach(&f->member, &f->members, (size_t)peer + 1, sizeof *f->member);
    if (!st)
        f->member[peer] = (member){.here = true, .since = kf_clock()};
    pthread_mutex_unlock(&f->shape);
    if (st) /* it will connect again */
        f->t->forget(f->t, peer);
    else
        limit_strangers(f);
}

/* ---- invitations --------------------------------------------------------- */

bool kf_shared_say(kofn_fleet *f, kofn_peer peer, const kf_head *h, bool urgent)
{
    unsigned char head[KF_HEAD];
    kf_head with = *h;

    with.body_sum = kf_post_sum(f->t, h->job, NULL, 0);
    kf_head_write(head, &with);
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

/* Keeps what a worker says of itself: "kofn V, process P on HOST as NAME". */
static void introduce(kofn_fleet *f, member *m, const kf_head *h,
                      kofn_packet *k)
{
    char *words = NULL, *host, *name;
    kofn_packet copy = *k;

    m->process = h->lo;
    m->memory = h->hi;
    copy.own = NULL; /* the packet may be passed on */
    if (k->body && !kf_post_take_words(f->t, &copy, h, &words) && words) {
        host = strstr(words, " on ");
        host = host ? host + 4 : words;
        name = strstr(host, " as ");
        snprintf(m->host, sizeof m->host, "%.*s",
                 (int)(name ? name - host : (long)strcspn(host, "\n")), host);
        if (name)
            snprintf(m->name, sizeof m->name, "%.64s", name + 4);
    }
    if (!*m->name)
        snprintf(m->name, sizeof m->name, "%s:%llu", m->host,
                 (unsigned long long)m->process);
    kf_free(words);
}

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

static void take_hello(kofn_fleet *f, const kf_head *h, kofn_packet *k)
{
    member *m = &f->member[k->peer];

    introduce(f, m, h, k);
    pthread_mutex_lock(&f->shape);
    m->known = true;
    pthread_mutex_unlock(&f->shape);
    tell(f, "came", m);
    for (channel *c = f->channels; c; c = c->next)
        if (c->job != h->job) /* that job answers this hello */
            kf_shared_invite(c);
}

/* ---- packets ------------------------------------------------------------- */

static void count(member *m, const kf_head *h, const kofn_packet *k)
{
    if (h->type != KF_WIRE_RESULT && h->type != KF_WIRE_FAILED)
        return;
    m->owed -= m->owed > 0;
    if (h->type != KF_WIRE_RESULT)
        return;
    m->tasks++;
    m->computed += (double)h->took * 1e-9;
    m->bytes += (double)k->body_bytes;
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
