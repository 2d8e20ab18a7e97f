/* shared_channel.c -- the transport that a job of a fleet sees.
 *
 * Peers have the numbers that the fleet's transport gives them. Bodies go to it
 * and come from it unchanged. Called with the fleet's lock, but for `release`
 * and `wanted`. */
#include <assert.h>

#include "shared.h"

#include "base/clock.h"

#define SLICE (KOFN_SECOND / 1000) /* a wait with the lock */

static kofn_status channel_send(kofn_transport *base, kofn_peer peer,
                                const void *head, size_t head_bytes,
                                const kofn_lent *body, bool urgent)
{
    channel *c = (channel *)base;
    kofn_transport *t = c->f->t;
    kofn_status st;
    size_t bytes;
    kf_head h;

    if (kf_head_read(&h, head, head_bytes) || h.type != KF_WIRE_WORK)
        return t->send(t, peer, head, head_bytes, body, urgent);
    if (kf_mul(h.out_rows, h.out_cols, &bytes) &&
        kf_mul(bytes, kf_dtype_size(h.dtype), &bytes) && bytes > c->largest) {
        pthread_mutex_lock(&c->f->shape);
        c->largest = bytes;
        pthread_mutex_unlock(&c->f->shape);
    }
    st = t->send(t, peer, head, head_bytes, body, urgent);
    if (!st && peer < c->f->members)
        c->f->member[peer].owed++;
    return st;
}

bool kf_shared_wanted(void *ud, kofn_peer peer, const void *head,
                      size_t head_bytes, size_t body_bytes)
{
    kofn_fleet *f = ud;
    bool wanted = false;
    kf_head h;

    if (kf_head_read(&h, head, head_bytes) || h.type != KF_WIRE_RESULT)
        return false;
    pthread_mutex_lock(&f->shape);
    if (peer < f->members && f->member[peer].here && f->member[peer].known)
        for (const channel *c = f->channels; c; c = c->next)
            wanted = wanted || (c->job == h.job && body_bytes <= c->largest);
    pthread_mutex_unlock(&f->shape);
    return wanted;
}

/* Waits on this thread, or until the thread that waits has something. */
static kofn_status wait_once(kofn_fleet *f, kofn_time until, kofn_packet *k)
{
    kofn_time left = until - kf_clock();
    kofn_transport *t = f->t;
    kofn_status st;

    if (f->waits) {
        struct timespec end = {until / KOFN_SECOND, until % KOFN_SECOND};

        f->sleepers++;
        pthread_cond_timedwait(&f->turn, &f->lock, &end);
        f->sleepers--;
        return KOFN_AGAIN;
    }
    left = left > 0 ? left : 0;
    if (!t->threads || left == 0) {
        st = t->wait(t, left < SLICE ? left : SLICE, k);
    } else {
        f->waits = true;
        pthread_mutex_unlock(&f->lock);
        st = t->wait(t, left, k);
        pthread_mutex_lock(&f->lock);
        f->waits = false;
    }
    f->transport_dropped = t->dropped;
    return st;
}

kofn_status kf_shared_wait(kofn_fleet *f, channel *c, kofn_time atmost,
                           kofn_packet *k)
{
    kofn_time until = kf_later(kf_clock(), atmost);
    bool others = f->waits; /* another thread waits: no turn for 0 */
    kofn_status st;

    if (others && atmost == 0)
        return KOFN_AGAIN;
    st = wait_once(f, until, k);
    f->news = f->news || !st;
    if (!st)
        st = kf_shared_arrived(f, k, c) ? KOFN_OK : KOFN_AGAIN;
    for (channel *each = f->channels; each; each = each->next)
        if (each->waiting)
            kf_shared_invite(each);
    if (f->sleepers)
        pthread_cond_broadcast(&f->turn);
    if (st == KOFN_AGAIN && c && c->failed)
        st = c->failed;
    return st;
}

static kofn_status channel_wait(kofn_transport *base, kofn_time atmost,
                                kofn_packet *k)
{
    channel *c = (channel *)base;
    kofn_status st;

    if (c->news) { /* the port looks at it first */
        c->news = false;
        atmost = 0;
    }
    st = kf_shared_wait(c->f, c, atmost, k);
    c->news = false;
    base->dropped = c->f->dropped + c->f->transport_dropped;
    return st;
}

static kofn_status channel_fetch(kofn_transport *base, kofn_packet *k,
                                 void *into)
{
    kofn_transport *t = ((channel *)base)->f->t;

    return t->fetch(t, k, into);
}

static void channel_release(kofn_transport *base, void *own)
{
    kofn_transport *t = ((channel *)base)->f->t;

    t->release(t, own);
}

static void channel_forget(kofn_transport *base, kofn_peer peer)
{
    channel *c = (channel *)base;

    kf_shared_forget(c->f, peer, c);
}

static const char *channel_name_of(kofn_transport *base, kofn_peer peer)
{
    const channel *c = (channel *)base;

    return peer < c->f->members ? c->f->member[peer].badge.name : "";
}

static const char *channel_news(kofn_transport *base)
{
    kofn_transport *t = ((channel *)base)->f->t;

    return t->news(t);
}

static const char *channel_principal_of(kofn_transport *base, kofn_peer peer)
{
    kofn_transport *t = ((channel *)base)->f->t;

    return t->principal_of(t, peer);
}

static bool channel_arriving(kofn_transport *base, kofn_peer peer,
                             kofn_arriving *a)
{
    kofn_transport *t = ((channel *)base)->f->t;

    return t->arriving(t, peer, a);
}

static void channel_close(kofn_transport *base, kofn_time linger)
{
    channel *c = (channel *)base, **at;
    kofn_fleet *f = c->f;

    (void)linger;
    pthread_mutex_lock(&f->shape);
    for (at = &f->channels; *at && *at != c; at = &(*at)->next)
        ;
    if (*at)
        *at = c->next;
    pthread_mutex_unlock(&f->shape);
    kf_free(c->met);
    kf_free(c->invited);
    kf_free(c);
}

kofn_status kf_shared_channel(kofn_fleet *f, channel **out, uint64_t job,
                              double weight)
{
    const kofn_transport *t = f->t;
    channel *c;

    TRY_ZERO(c, 1);
    *c = (channel){
        .base = {.size = sizeof(kofn_transport),
                 .name = t->name,
                 .send = channel_send,
                 .wait = channel_wait,
                 .fetch = t->fetch ? channel_fetch : NULL,
                 .release = channel_release,
                 .forget = channel_forget,
                 .close = channel_close,
                 .body_max = t->body_max,
                 .name_of = channel_name_of,
                 .news = t->news ? channel_news : NULL,
                 .principal_of = t->principal_of ? channel_principal_of : NULL,
                 .arriving = t->arriving ? channel_arriving : NULL,
                 .whole = t->whole,
                 .threads = t->threads},
        .f = f,
        .job = job,
        .weight = weight};
    *out = c;
    return KOFN_OK;
}
