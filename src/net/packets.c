/* packets.c -- packets in memory: received ones until the owner takes them, and
 * packets to be sent, with lent bodies.
 *
 * The packets of a connection are in its tray, in order, with the arrival and
 * loss of its peer. All trays of a key form one account; without keys, all
 * trays of a host. Accounts take turns, and so do the trays of an account. The
 * waiting packets of an account are limited, for any number of connections that
 * it makes one after the other.
 *
 * Owns trays, accounts, departures and the buffers of bodies. A body is
 * received into the memory where it stays. Called with the lock. */
#include "inside.h"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>

#define SMALL ((size_t)64 << 10) /* longest buffer that is not kept */
#define FULL 4 /* connections of an account with full windows */
/* minimum of a window of any further connection, in bytes */
#define LEAST ((size_t)1 << 20)
#define ENDED 256 /* ended connections of an account that may wait */
#define HURRY 64  /* urgent packets in a row while bulk ones wait */

/* ---- buffers ------------------------------------------------------------- */

kf_arrival *kf_packets_new(kf_transport *t, size_t bytes)
{
    const size_t front = (sizeof(kf_arrival) + 63) / 64 * 64;
    kf_arrival *in = NULL;

    for (int i = 0; bytes > SMALL && i < KF_SPARE && !in; i++)
        if (t->traffic.kept[i] && t->traffic.kept[i]->room >= bytes &&
            t->traffic.kept[i]->room / 2 <= bytes) {
            in = t->traffic.kept[i];
            t->traffic.kept[i] = NULL;
        }
    if (!in) {
        in = bytes <= SIZE_MAX - front ? kf_new(front + bytes, 1) : NULL;
        t->starved += !in;
        if (!in)
            return NULL;
        in->room = bytes;
    }
    *in = (kf_arrival){.room = in->room};
    in->body = bytes ? (unsigned char *)in + front : NULL;
    return in;
}

void kf_packets_free(kf_transport *t, kf_arrival *in)
{
    if (in && in->mapped)
        munmap(in->body, in->mapped);
    for (int i = 0; in && in->room > SMALL && i < KF_SPARE; i++)
        if (!t->traffic.kept[i]) {
            t->traffic.kept[i] = in;
            return;
        }
    kf_free(in);
}

/* ---- turns --------------------------------------------------------------- */

static void line_up(kf_queue *all, kf_queued *one)
{
    if (one->waits)
        return;
    one->waits = true;
    one->next = NULL;
    if (!all->first)
        all->last = &all->first;
    *all->last = one;
    all->last = &one->next;
}

/* Removes the account or tray that is first in the queue and returns it, or
 * NULL. */
static void *take_turn(kf_queue *all)
{
    kf_queued *one = all->first;

    if (!one)
        return NULL;
    all->first = one->next;
    one->waits = false;
    return one->of;
}

/* ---- accounts ------------------------------------------------------------ */

/* All connections of a key; without keys, of a host or a user. */
struct kf_account {
    kf_account *next;
    kf_queued turn[KF_CHANNELS];
    kf_queue trays[KF_CHANNELS];
    size_t links, ended; /* trays of open and of ended connections */
    size_t left_over;    /* cost of the packets in ended trays */
    char name[KF_NAME];
};

/* The packets of one connection that wait to be taken, in order. */
struct kf_tray {
    kf_tray *before, *after; /* list of the transport's ended trays */
    kf_tray *then;           /* tray that waits until this one is empty */
    kf_account *account;
    kf_link *link; /* NULL: the connection is over */
    kf_queued turn[KF_CHANNELS];
    kf_arrivals line[KF_CHANNELS];
    kf_arrival *farewell; /* the report of its loss */
    size_t cost;          /* total cost of its waiting packets */
    kofn_peer peer;
    bool reported; /* its arrival was reported */
    bool held;     /* it waits for another tray */
    unsigned char node[KF_NODE];
};

static kf_account *account_named(kf_transport *t, const char *name)
{
    kf_account *a = t->traffic.accounts;

    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    if (a || !(a = kf_zero(1, sizeof *a)))
        return a;
    snprintf(a->name, sizeof a->name, "%s", name);
    a->turn[KF_BULK].of = a->turn[KF_URGENT].of = a;
    a->next = t->traffic.accounts;
    t->traffic.accounts = a;
    return a;
}

static kf_account *account_of(const kf_link *l)
{
    char name[KF_NAME];

    if (l->dial)
        snprintf(name, sizeof name, "%.*s", KF_NAME - 1, l->dial->address);
    else if (!l->secure.tls || !kf_keys_name(l, name))
        kf_place_principal(l->fd, name, sizeof name);
    return account_named(l->t, name);
}

static void release_account(kf_transport *t, kf_account *a)
{
    kf_account **at = &t->traffic.accounts;

    if (a->links || a->ended || a->turn[KF_BULK].waits ||
        a->turn[KF_URGENT].waits)
        return;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    kf_free(a);
}

/* Sets smaller windows if an account has many connections. Up to 22 of them
 * have 6.9 times the full windows together. Each further one has LEAST bytes,
 * and a quarter of that for urgent packets. A Unix socket can be reached by its
 * own user only, and has full windows. */
static void set_windows(kf_link *l, size_t links)
{
    const kf_transport *t = l->t;
    size_t full = t->peer_bytes, own = full;

    assert(links > 0);
    if (links > FULL && !l->dial && !l->flag.local)
        own = full * FULL * FULL / (links * links);
    own = kf_max(own, kf_min(full, LEAST));
    for (int i = 0; i < KF_CHANNELS; i++)
        l->channel[i].window = l->channel[i].given = i ? own / 4 : own;
}

/* ---- trays --------------------------------------------------------------- */

static size_t cost(const kf_arrival *in)
{
    return KF_COST + (in->skipped ? 0 : in->bytes);
}

static void line_up_tray(kf_transport *t, kf_tray *b, int channel)
{
    kf_account *a = b->account;

    if (!b->line[channel].first || b->held || (channel && !b->reported))
        return;
    line_up(&a->trays[channel], &b->turn[channel]);
    line_up(&t->traffic.waiting[channel], &a->turn[channel]);
}

/* Frees the tray if its connection is over and it is empty. */
static void release_tray(kf_transport *t, kf_tray *b)
{
    kf_tray *then = b->then;

    if (b->link || b->held || b->line[KF_BULK].first ||
        b->line[KF_URGENT].first || b->turn[KF_BULK].waits ||
        b->turn[KF_URGENT].waits)
        return;
    *(b->before ? &b->before->after : &t->traffic.ended) = b->after;
    if (b->after)
        b->after->before = b->before;
    assert(b->account->ended > 0);
    b->account->ended--;
    release_account(t, b->account);
    kf_free(b->farewell);
    kf_free(b);
    if (!then)
        return;
    then->held = false;
    line_up_tray(t, then, KF_BULK);
    release_tray(t, then);
}

static void put(kf_transport *t, kf_tray *b, kf_arrival *in, int channel)
{
    kf_arrivals *line = &b->line[channel];

    in->next = NULL;
    if (!line->first)
        line->last = &line->first;
    *line->last = in;
    line->last = &in->next;
    b->cost += cost(in);
    line_up_tray(t, b, channel);
}

static kf_arrival *take_first(kf_tray *b, int channel)
{
    kf_arrival *in = b->line[channel].first;

    assert(in);
    assert(b->cost >= cost(in));
    assert(b->link || b->account->left_over >= cost(in));
    b->line[channel].first = in->next;
    b->cost -= cost(in);
    if (!b->link)
        b->account->left_over -= cost(in);
    in->from = b->link;
    return in;
}

static void drop_all(kf_transport *t, kf_tray *b)
{
    for (int i = 0; i < KF_CHANNELS; i++)
        while (b->line[i].first)
            kf_packets_free(t, take_first(b, i));
}

static kf_arrival *notice(const kf_tray *b, kofn_arrival what)
{
    kf_arrival *in = kf_zero(1, sizeof *in);

    if (in) {
        in->what = what;
        in->peer = b->peer;
    }
    return in;
}

/* Makes the tray wait until the loss of the same node's last connection was
 * reported. */
static void follow(kf_transport *t, kf_tray *b)
{
    for (kf_tray *was = t->traffic.ended; t->mesh && was; was = was->after)
        if (was->account == b->account && !was->then &&
            memcmp(was->node, b->node, KF_NODE) == 0) {
            was->then = b;
            b->held = true;
            return;
        }
}

bool kf_packets_open(kf_link *l)
{
    kf_transport *t = l->t;
    kf_tray *b = kf_zero(1, sizeof *b);
    kf_arrival *in = NULL;

    assert(!l->tray);
    if (b) {
        b->peer = l->number;
        b->account = account_of(l);
        b->farewell = notice(b, KOFN_WENT);
        in = notice(b, KOFN_CAME);
    }
    if (!b || !b->account || !b->farewell || !in) {
        if (b && b->account)
            release_account(t, b->account);
        if (b)
            kf_free(b->farewell);
        kf_free(b);
        kf_free(in);
        return false;
    }
    b->link = l;
    b->turn[KF_BULK].of = b->turn[KF_URGENT].of = b;
    memcpy(b->node, l->node, KF_NODE);
    set_windows(l, ++b->account->links);
    follow(t, b);
    l->tray = b;
    put(t, b, in, KF_BULK);
    return true;
}

void kf_packets_append(kf_link *l, kf_arrival *in)
{
    assert(l->tray);
    put(l->t, l->tray, in, in->urgent ? KF_URGENT : KF_BULK);
}

void kf_packets_close(kf_link *l)
{
    assert(l->tray);
    kf_transport *t = l->t;
    kf_tray *b = l->tray;
    kf_account *a = b->account;
    size_t most = t->peer_bytes + t->peer_bytes / 4;

    assert(a->links > 0);
    l->tray = NULL;
    a->links--;
    a->ended++;
    /* a body that was requested may be longer than all windows */
    if ((a->left_over > most / 4 &&
         b->cost > most - kf_min(most, a->left_over)) ||
        a->ended > ENDED) {
        drop_all(t, b);
        if (!b->reported) { /* its arrival was never reported */
            kf_free(b->farewell);
            b->farewell = NULL;
        }
    }
    b->link = NULL;
    b->after = t->traffic.ended;
    if (t->traffic.ended)
        t->traffic.ended->before = b;
    t->traffic.ended = b;
    a->left_over += b->cost;
    if (b->farewell) {
        a->left_over += cost(b->farewell);
        put(t, b, b->farewell, KF_BULK);
        b->farewell = NULL;
    }
    release_tray(t, b);
}

/* Returns the next packet of the channel, and moves its tray to the end of the
 * queue. */
static kf_arrival *next_of(kf_transport *t, int channel)
{
    kf_arrival *in = NULL;
    kf_account *a;
    kf_tray *b;

    while (!in && (a = take_turn(&t->traffic.waiting[channel]))) {
        a->links++; /* so that it is not freed */
        while (!in && (b = take_turn(&a->trays[channel]))) {
            int from = channel;

            if (b->line[KF_BULK].first && b->line[KF_URGENT].first &&
                b->reported && b->line[KF_BULK].first->what == KOFN_WENT)
                from = KF_URGENT; /* its loss is reported last */
            if (b->line[from].first)
                in = take_first(b, from);
            b->reported |= in && in->what == KOFN_CAME;
            for (int i = 0; i < KF_CHANNELS; i++)
                line_up_tray(t, b, i);
            release_tray(t, b);
        }
        a->links--;
        if (a->trays[channel].first)
            line_up(&t->traffic.waiting[channel], &a->turn[channel]);
        release_account(t, a);
    }
    return in;
}

kf_arrival *kf_packets_next(kf_transport *t)
{
    bool urgent = t->traffic.waiting[KF_URGENT].first != NULL;
    kf_arrival *in = NULL;

    if (urgent && t->traffic.hurry < HURRY)
        in = next_of(t, KF_URGENT);
    t->traffic.hurry = in ? t->traffic.hurry + 1 : 0;
    if (!in)
        in = next_of(t, KF_BULK);
    return in || !urgent ? in : next_of(t, KF_URGENT);
}

kf_tray *kf_packets_ended(const kf_transport *t, kofn_peer peer)
{
    kf_tray *b = t->traffic.ended;

    while (b && b->peer != peer)
        b = b->after;
    return b;
}

void kf_packets_drop(kf_transport *t, kf_tray *b)
{
    if (!b)
        return;
    drop_all(t, b);
    kf_free(b->farewell);
    b->farewell = NULL;
    release_tray(t, b);
}

void kf_packets_end(kf_transport *t)
{
    kf_arrival *in;

    while ((in = kf_packets_next(t)))
        kf_packets_free(t, in);
}

/* ---- sent packets -------------------------------------------------------- */

void kf_packets_sent(kf_transport *t, kf_channel *a)
{
    kf_departure *o = a->first, **list;

    assert(o);
    assert(a->queued >= o->body.bytes + KF_COST);
    a->first = o->next;
    if (!a->first)
        a->last = &a->first;
    a->queued -= o->body.bytes + KF_COST;
    list = o->share ? &t->traffic.lingering : &t->traffic.finished;
    o->next = *list;
    *list = o;
    t->room |= t->full;
}

void kf_packets_clear(kf_link *l)
{
    for (int i = 0; i < KF_CHANNELS; i++) {
        kf_channel *a = &l->channel[i];

        while (a->first)
            kf_packets_sent(l->t, a);
        kf_packets_free(l->t, a->coming);
        a->coming = NULL;
        assert(!a->asks || l->t->traffic.asking > 0);
        l->t->traffic.asking -= a->asks;
        a->asks = false;
    }
    l->out.channel = -1;
    if (l->out.with && l->out.at == 0)
        l->out.bytes = 0; /* nothing of the frame was sent, nor the file
                               descriptor that goes with it */
    l->out.with = NULL;
}
