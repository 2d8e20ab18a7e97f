/* loop_transport.h -- a network inside the test. Packets pass through memory,
 * and faults are drawn from a seed. There are one hub and any number of
 * spokes, each on a separate thread. */
#ifndef KF_TEST_LOOP_TRANSPORT_H
#define KF_TEST_LOOP_TRANSPORT_H

#include "rig.h"

#include <kofn/transport.h>

#include <pthread.h>

#include "base/clock.h"
#include "base/lent.h"

/* The chances of faults, for each packet. */
typedef struct loop_faults {
    double twice;    /* it comes once more */
    double damage;   /* a bit of it is flipped */
    double truncate; /* its end is missing */
    double cut;      /* the connection breaks */
    uint64_t seed;
    size_t room; /* bytes under way to one end before it is full; 0: no limit */
    bool fetching; /* bodies are fetched separately */
    bool babble;   /* junk of an unknown peer comes to the hub whenever nothing
                      else does */
} loop_faults;

typedef struct loop_item {
    struct loop_item *next;
    kofn_arrival what;
    kofn_peer peer;
    size_t head_bytes, body_bytes;
    unsigned char head[KOFN_HEAD_MAX], *body;
} loop_item;

typedef struct loop_end {
    kofn_transport base;
    struct loop_net *net;
    loop_item *first, **last;
    pthread_cond_t filled;
    kofn_peer hub_peer; /* spokes: their number at the hub ... */
    kofn_peer lives;    /* ... and the hub's number here */
    bool open, is_hub, gone;
    size_t under_way;
} loop_end;

typedef struct loop_net {
    pthread_mutex_t lock;
    loop_faults faults;
    kf_rng r;
    loop_end *hub, *spoke[600]; /* the spoke of each peer of the hub */
    kofn_peer peers;
    bool down;   /* no spoke can connect */
    bool banish; /* the next spoke that the hub forgets does not return */
    size_t sent[64],
        bytes[64]; /* packets of each type, and the bytes of their bodies */
    size_t cut_type,
        cut_at; /* the connection breaks behind packet cut_at of this type */
} loop_net;

static inline void loop_put(loop_end *to, loop_item *item, bool front)
{
    if (front) {
        item->next = to->first;
        if (!to->first)
            to->last = &item->next;
        to->first = item;
    } else {
        item->next = NULL;
        *to->last = item;
        to->last = &item->next;
    }
    to->under_way += item->body_bytes;
    pthread_cond_signal(&to->filled);
}

static inline loop_item *loop_item_new(kofn_arrival what, kofn_peer peer,
                                       const void *head, size_t head_bytes,
                                       const void *body, size_t body_bytes)
{
    loop_item *item = calloc(1, sizeof *item);

    assert_non_null(item);
    item->what = what;
    item->peer = peer;
    item->head_bytes = head_bytes;
    item->body_bytes = body_bytes;
    if (head_bytes)
        memcpy(item->head, head, head_bytes);
    if (body_bytes) {
        item->body = aligned_alloc(64, (body_bytes + 63) / 64 * 64);
        assert_non_null(item->body);
        memcpy(item->body, body, body_bytes);
    }
    return item;
}

/* Breaks the connection of a spoke, which may then find another. The lock is
 * held. */
static inline void loop_break(loop_net *net, loop_end *spoke)
{
    if (!spoke->open)
        return;
    spoke->open = false;
    if (net->hub)
        loop_put(net->hub,
                 loop_item_new(KOFN_WENT, spoke->hub_peer, NULL, 0, NULL, 0),
                 false);
    loop_put(spoke, loop_item_new(KOFN_WENT, spoke->lives, NULL, 0, NULL, 0),
             false);
}

static inline void loop_join(loop_net *net, loop_end *spoke)
{
    if (spoke->open || !net->hub || spoke->gone || net->down)
        return;
    assert_true(net->peers < 600);
    spoke->open = true;
    spoke->hub_peer = net->peers++;
    spoke->lives++;
    net->spoke[spoke->hub_peer] = spoke;
    loop_put(net->hub,
             loop_item_new(KOFN_CAME, spoke->hub_peer, NULL, 0, NULL, 0),
             false);
    loop_put(spoke, loop_item_new(KOFN_CAME, spoke->lives, NULL, 0, NULL, 0),
             false);
}

static inline bool loop_chance(loop_net *net, double p)
{
    return p > 0 && kf_rng_uniform(&net->r) < p;
}

static inline void loop_flip(loop_net *net, unsigned char *p, size_t n)
{
    size_t bit = (size_t)kf_rng_below(&net->r, 8 * n);

    p[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

static inline kofn_status loop_send(kofn_transport *t, kofn_peer peer,
                                    const void *head, size_t head_bytes,
                                    const kofn_lent *body, bool urgent)
{
    loop_end *from = (loop_end *)t, *spoke, *to;
    loop_net *net = from->net;
    const void *data = body ? body->data : NULL;
    size_t bytes = body ? body->bytes : 0;
    kofn_status st = KOFN_OK;
    size_t copies;

    pthread_mutex_lock(&net->lock);
    spoke = from->is_hub ? peer < net->peers ? net->spoke[peer] : NULL : from;
    if (!spoke || !spoke->open ||
        peer != (from->is_hub ? spoke->hub_peer : spoke->lives)) {
        st = KOFN_TRANSPORT;
    } else {
        to = from->is_hub ? spoke : net->hub;
        if (net->faults.room && to->under_way > net->faults.room && !urgent)
            st = KOFN_AGAIN;
        if (!st && head_bytes > 6) {
            net->sent[((const unsigned char *)head)[6] % 64]++;
            net->bytes[((const unsigned char *)head)[6] % 64] += bytes;
        }
        copies = st ? 0 : 1 + loop_chance(net, net->faults.twice);
        for (size_t i = 0; i < copies; i++) {
            loop_item *item = loop_item_new(
                KOFN_PACKET, from->is_hub ? spoke->lives : spoke->hub_peer,
                head, head_bytes, data, bytes);

            if (loop_chance(net, net->faults.damage)) {
                if (item->body_bytes && kf_rng_below(&net->r, 2))
                    loop_flip(net, item->body, item->body_bytes);
                else
                    loop_flip(net, item->head, item->head_bytes);
            }
            if (loop_chance(net, net->faults.truncate)) {
                if (item->body_bytes && kf_rng_below(&net->r, 2))
                    item->body_bytes =
                        (size_t)kf_rng_below(&net->r, item->body_bytes);
                else
                    item->head_bytes =
                        (size_t)kf_rng_below(&net->r, item->head_bytes);
            }
            loop_put(to, item, urgent);
        }
        if (!st && (loop_chance(net, net->faults.cut) ||
                    (net->cut_at && head_bytes > 6 &&
                     ((const unsigned char *)head)[6] == net->cut_type &&
                     net->sent[net->cut_type] == net->cut_at))) {
            loop_break(net, spoke);
            loop_join(net, spoke);
        }
    }
    pthread_mutex_unlock(&net->lock);
    if (st != KOFN_AGAIN)
        kf_give_back(body);
    return st;
}

static inline kofn_status loop_wait(kofn_transport *t, kofn_time atmost,
                                    kofn_packet *k)
{
    loop_end *end = (loop_end *)t;
    kofn_time most = KOFN_NEVER / 2;
    struct timespec until =
        kf_timespec(kf_clock() + (atmost < most ? atmost : most));
    loop_item *item;
    int error = 0;

    pthread_mutex_lock(&end->net->lock);
    if (!end->first && end->is_hub && end->net->faults.babble) {
        pthread_mutex_unlock(&end->net->lock);
        *k = (kofn_packet){.what = KOFN_PACKET, .peer = UINT32_MAX - 1};
        return KOFN_OK;
    }
    while (!end->first && !error && atmost > 0)
        error = pthread_cond_timedwait(&end->filled, &end->net->lock, &until);
    item = end->first;
    if (item) {
        end->first = item->next;
        if (!end->first)
            end->last = &end->first;
        end->under_way -= item->body_bytes;
    }
    pthread_mutex_unlock(&end->net->lock);
    if (!item)
        return KOFN_AGAIN;
    *k = (kofn_packet){.what = item->what,
                       .peer = item->peer,
                       .head_bytes = item->head_bytes,
                       .body = end->net->faults.fetching ? NULL : item->body,
                       .body_bytes = item->body_bytes,
                       .own = item};
    memcpy(k->head, item->head, sizeof k->head);
    if (item->what != KOFN_PACKET) {
        free(item);
        k->own = NULL;
    }
    return KOFN_OK;
}

static inline kofn_status loop_fetch(kofn_transport *t, kofn_packet *k,
                                     void *into)
{
    const loop_item *item = k->own;

    (void)t;
    memcpy(into, item->body, item->body_bytes);
    return KOFN_OK;
}

static inline void loop_release(kofn_transport *t, void *own)
{
    loop_item *item = own;

    (void)t;
    free(item->body);
    free(item);
}

/* Discards the packets of that peer that no call has taken. The lock is held.
 */
static inline void loop_discard(loop_end *end, kofn_peer peer)
{
    loop_item **at = &end->first;

    while (*at) {
        loop_item *item = *at;

        if (item->what == KOFN_PACKET && item->peer == peer) {
            *at = item->next;
            end->under_way -= item->body_bytes;
            free(item->body);
            free(item);
        } else {
            at = &item->next;
        }
    }
    end->last = at;
}

static inline void loop_forget(kofn_transport *t, kofn_peer peer)
{
    loop_end *end = (loop_end *)t, *spoke;
    loop_net *net = end->net;

    pthread_mutex_lock(&net->lock);
    loop_discard(end, peer);
    spoke = end->is_hub ? peer < net->peers ? net->spoke[peer] : NULL : end;
    if (spoke && peer == (end->is_hub ? spoke->hub_peer : spoke->lives)) {
        loop_break(net, spoke);
        spoke->gone |= end->is_hub && net->banish;
        loop_join(net, spoke);
    }
    net->banish = net->banish && !end->is_hub;
    pthread_mutex_unlock(&net->lock);
}

static inline void loop_drain(loop_end *end)
{
    while (end->first) {
        loop_item *item = end->first;

        end->first = item->next;
        free(item->body);
        free(item);
    }
    end->last = &end->first;
    end->under_way = 0;
}

static inline void loop_close(kofn_transport *t, kofn_time linger)
{
    loop_end *end = (loop_end *)t;
    loop_net *net = end->net;

    (void)linger;
    pthread_mutex_lock(&net->lock);
    if (end->is_hub) {
        for (kofn_peer i = 0; i < net->peers; i++)
            if (net->spoke[i] && net->spoke[i]->hub_peer == i)
                loop_break(net, net->spoke[i]);
        net->hub = NULL;
    } else {
        end->gone = true;
        loop_break(net, end);
        for (kofn_peer i = 0; i < net->peers; i++)
            if (net->spoke[i] == end)
                net->spoke[i] = NULL;
    }
    loop_drain(end);
    pthread_mutex_unlock(&net->lock);
    pthread_cond_destroy(&end->filled);
    free(end);
}

static inline loop_end *loop_end_new(loop_net *net, bool is_hub)
{
    loop_end *end = calloc(1, sizeof *end);
    pthread_condattr_t attr;

    assert_non_null(end);
    end->base = (kofn_transport){.size = sizeof(kofn_transport),
                                 .name = "loop",
                                 .send = loop_send,
                                 .wait = loop_wait,
                                 .fetch = loop_fetch,
                                 .release = loop_release,
                                 .forget = loop_forget,
                                 .close = loop_close};
    end->net = net;
    end->last = &end->first;
    end->is_hub = is_hub;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&end->filled, &attr);
    pthread_condattr_destroy(&attr);
    return end;
}

static inline void loop_net_init(loop_net *net, const loop_faults *faults)
{
    *net = (loop_net){0};
    if (faults)
        net->faults = *faults;
    net->r = kf_rng_stream(net->faults.seed, KF_FOR_DATA, 9, 9);
    pthread_mutex_init(&net->lock, NULL);
}

static inline kofn_transport *loop_hub(loop_net *net)
{
    net->hub = loop_end_new(net, true);
    return &net->hub->base;
}

static inline kofn_transport *loop_spoke(loop_net *net)
{
    loop_end *end = loop_end_new(net, false);

    pthread_mutex_lock(&net->lock);
    loop_join(net, end);
    pthread_mutex_unlock(&net->lock);
    return &end->base;
}

#endif
