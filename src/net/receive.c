/* receive.c -- input of a connection: frames, and bodies directly into the
 * memory where they stay; also the actions when a descriptor is ready.
 *
 * Owns nothing: packets.c keeps what was received. A malformed frame ends the
 * link. Called with the lock, also by libuv; the link may be over afterwards.
 */
#include "inside.h"

#include <assert.h>
#include <errno.h>

#define TURN ((size_t)4 << 20) /* bytes of one connection in one turn */
#define DIRECT 1024   /* shortest rest of a body that is read into its place */
#define LOOKAHEAD 512 /* bytes read after it: a header and its head */
#define LEFTOVER (64 << 10) /* bytes that a refused stranger may still send */
#define LONG ((size_t)1 << 20) /* longer bodies are received only if wanted */

/* ---- received packets ---------------------------------------------------- */

static size_t cost(const kf_arrival *in)
{
    return KF_COST + (in->skipped ? 0 : in->bytes);
}

/* True if the body is wanted, or too short to ask. */
static bool is_wanted(kf_transport *t, const kf_arrival *in)
{
    return in->bytes <= LONG || in->asked || !t->base.wanted ||
           t->base.wanted(t->base.wanted_ud, in->peer, in->head, in->head_bytes,
                          in->bytes);
}

bool kf_net_receive_next(kf_transport *t, kofn_packet *p)
{
    kf_arrival *in = kf_packets_next(t);

    if (!in)
        return false;
    *p = (kofn_packet){.what = in->what, .peer = in->peer};
    if (in->what != KOFN_PACKET) {
        kf_free(in);
        return true;
    }
    if (in->from) { /* the other end may send more */
        in->from->channel[in->urgent].taken += cost(in);
        kf_net_send_on(in->from);
    }
    t->starved = 0;
    p->head_bytes = in->head_bytes;
    memcpy(p->head, in->head, in->head_bytes);
    if (in->body && is_wanted(t, in)) {
        p->body = in->body;
        p->body_bytes = in->bytes;
        p->own = in;
    } else { /* nothing to be released */
        kf_packets_free(t, in);
    }
    return true;
}

/* ---- frames -------------------------------------------------------------- */

static void arrived(kf_link *l, int channel)
{
    kf_channel *a = &l->channel[channel];
    kf_arrival *in = a->coming;

    assert(in);
    a->coming = NULL;
    if (l->state == KF_PARTING) { /* the owner takes nothing more */
        a->taken += cost(in);
        kf_packets_free(l->t, in);
    } else {
        kf_packets_append(l, in);
    }
}

/* Gives credit for the whole announced body, or has it skipped. */
static void answer(kf_link *l, int channel)
{
    kf_channel *a = &l->channel[channel];
    kf_arrival *in = a->coming;

    if (l->state == KF_PEER && is_wanted(l->t, in)) {
        in->asked = true;
        a->special = a->got + in->bytes;
        return;
    }
    in->skipped = true;
    l->out.skips |= 1u << channel;
    arrived(l, channel);
}

void kf_net_receive_ask(kf_transport *t)
{
    for (kf_link *l = t->in.links, *after; t->traffic.asking && l; l = after) {
        after = l->after;
        for (int i = 0; i < KF_CHANNELS; i++) {
            kf_channel *a = &l->channel[i];

            /* not before everything that came earlier is taken */
            if (!a->asks || a->taken + KF_COST != a->got)
                continue;
            a->asks = false;
            t->traffic.asking--;
            answer(l, i);
            kf_net_send_on(l);
            if (l->state == KF_OVER)
                break;
        }
    }
}

/* Allocates the body of an announced packet. */
static bool make_room(kf_link *l, int channel)
{
    kf_arrival *in = l->channel[channel].coming,
               *large = kf_packets_new(l->t, in->bytes);

    assert(!in->body);
    if (!large)
        return false;
    in->room = large->room;
    in->body = large->body;
    *large = *in;
    kf_free(in);
    l->channel[channel].coming = large;
    return true;
}

static bool packet(kf_link *l, int channel, size_t chunk, uint64_t bytes)
{
    kf_channel *a = &l->channel[channel];
    bool asks = bytes > a->window - KF_COST; /* it will never fit */
    kf_arrival *in;

    a->got += KF_COST;
    if (a->coming || bytes > l->t->base.body_max || chunk > bytes ||
        a->got > a->given || (asks && chunk))
        return false;
    in = kf_packets_new(l->t, chunk ? (size_t)bytes : 0);
    if (!in)
        return false;
    in->from = l;
    in->what = KOFN_PACKET;
    in->peer = l->number;
    in->urgent = channel == KF_URGENT;
    in->bytes = (size_t)bytes;
    in->head_bytes = kf_net_number(l->in.part + 2, 2);
    memcpy(in->head, l->in.part + KF_HEADER, in->head_bytes);
    in->since = kf_clock();
    a->coming = in;
    a->asks = asks;
    l->t->traffic.asking += asks;
    if (!bytes)
        arrived(l, channel);
    return true;
}

/* Receives the body of the current packet as a memory file. */
static bool file(kf_link *l, int channel, uint64_t bytes)
{
    kf_channel *a = &l->channel[channel];
    kf_arrival *in = a->coming;
    int fd = l->flag.passed;

    if (!in || a->asks || in->body || bytes != in->bytes || fd < 0 ||
        bytes > a->given - a->got)
        return false;
    a->got += bytes;
    l->flag.passed = -1;
    in->body = kf_share_map(fd, in->bytes);
    if (!in->body)
        return false;
    in->mapped = in->bytes;
    arrived(l, channel);
    return true;
}

static bool skip(kf_link *l, int channel)
{
    kf_departure *o = l->channel[channel].first;

    if (!o || !o->begun || o->at || !o->body.bytes || l->out.channel == channel)
        return false;
    kf_packets_sent(l->t, &l->channel[channel]);
    return true;
}

static bool credit(kf_link *l, int channel, uint64_t may)
{
    if (may < l->channel[channel].may)
        return false;
    l->channel[channel].may = may;
    return true;
}

/* Handles a complete header and head; false if the frame is not allowed now. */
static bool frame(kf_link *l)
{
    kf_word word = (kf_word)l->in.part[0];
    int channel = l->in.part[1];
    size_t chunk = kf_net_number(l->in.part + 4, 4);
    uint64_t number = kf_net_number(l->in.part + 8, 8);
    kf_channel *a = &l->channel[channel & 1];
    kf_greeting g;

    if (channel > 1 || (chunk && word != KF_PACKET && word != KF_DATA))
        return false;
    if (word == KF_HELLO || word == KF_WELCOME || word == KF_GO) {
        memcpy(&g, l->in.part + KF_HEADER, sizeof g);
        return kf_net_number(l->in.part + 2, 2) == sizeof g &&
               kf_join_greeting(l, word, &g);
    }
    if (l->state != KF_PEER && l->state != KF_PARTING)
        return false;
    if (word == KF_CREDIT)
        return credit(l, channel, number);
    if (word == KF_SKIP)
        return skip(l, channel);
    if (word == KF_FILE)
        return file(l, channel, number);
    if (word == KF_PACKET && !packet(l, channel, chunk, number))
        return false;
    if (word == KF_DATA && (!a->coming || a->asks || !chunk ||
                            (!a->coming->body && !make_room(l, channel))))
        return false;
    if (word != KF_PACKET && word != KF_DATA)
        return false;
    a->got += chunk;
    l->in.left = chunk;
    l->in.into = channel;
    return !chunk || (chunk <= a->coming->bytes - a->coming->at &&
                      chunk <= KF_CHUNK && a->got <= a->given);
}

/* ---- reading ------------------------------------------------------------- */

/* Reports that the process that was reached does not speak this protocol. */
static void is_no_kofn(kf_link *l)
{
    if (l->dial && l->state == KF_STRANGE && !l->secure.tls)
        snprintf(
            l->t->text.trouble, sizeof l->t->text.trouble,
            "%s: no TLS handshake: the coordinator may want --keys, have no "
            "descriptor left, or be another program",
            l->dial->address);
}

/* Handles the end of the input: the other end has closed, or is lost. */
static void closed(kf_link *l, bool orderly)
{
    if (orderly && l->state == KF_PARTING && !kf_net_send_idle(l)) {
        l->flag.deaf = true;
        kf_link_watch(l);
        return;
    }
    is_no_kofn(l);
    kf_link_end(l);
}

static void refuse(kf_link *l)
{
    is_no_kofn(l);
    l->t->gate.refused.flood++;
    kf_link_end(l);
}

static void chunk_came(kf_link *l, size_t n)
{
    kf_arrival *in = l->channel[l->in.into].coming;

    assert(n <= l->in.left);
    assert(in->at + n <= in->bytes);
    in->at += n;
    l->in.left -= n;
    if (l->in.left == 0 && in->at == in->bytes)
        arrived(l, l->in.into);
}

/* Completes a header and its head. Returns how many of the bytes they take. */
static size_t take_part(kf_link *l, const unsigned char *p, size_t n)
{
    size_t at = 0;

    for (;;) {
        size_t want = KF_HEADER;

        if (l->in.have >= KF_HEADER)
            want += kf_net_number(l->in.part + 2, 2);
        if (want > sizeof l->in.part) {
            refuse(l);
            return at;
        }
        if (l->in.have == want) {
            l->in.have = 0;
            if (!frame(l))
                refuse(l);
            return at;
        }
        if (at == n)
            return at;
        want = kf_min(want - l->in.have, n - at);
        memcpy(l->in.part + l->in.have, p + at, want);
        l->in.have += want;
        at += want;
    }
}

static void take(kf_link *l, const unsigned char *p, size_t n)
{
    while (n > 0 && l->state != KF_OVER && !l->flag.forgotten) {
        size_t m;

        if (l->in.left > 0) {
            kf_arrival *in = l->channel[l->in.into].coming;

            m = kf_min(l->in.left, n);
            memcpy(in->body + in->at, p, m);
            chunk_came(l, m);
        } else if (l->in.have == 0 && *p == KF_BEAT && l->state >= KF_PEER) {
            m = 1;
        } else {
            l->life.busy = l->t->keep.awake;
            if (l->life.calm)
                kf_link_calm(l, false);
            m = take_part(l, p, n);
        }
        p += m;
        n -= m;
    }
}

/* True if the received descriptor belongs to a FILE frame. It comes with the
 * first byte of the frame, and nothing after that byte is read in the same
 * call. */
static bool announced(const kf_link *l)
{
    return l->in.have > 0 && l->in.part[0] == KF_FILE;
}

static void unannounced(kf_link *l)
{
    if (l->flag.forgotten) { /* its frames are not read */
        kf_low_discard(l->flag.passed);
        l->flag.passed = -1;
    } else {
        refuse(l);
    }
}

/* Returns the number of bytes that were read; 0: none. *all: there was room for
 * more. */
static size_t read_some(kf_link *l, bool *all)
{
    kf_transport *t = l->t;
    kf_arrival *in = l->in.left >= DIRECT && !l->flag.forgotten
                         ? l->channel[l->in.into].coming
                         : NULL;
    struct iovec part[2] = {
        {in ? in->body + in->at : NULL, in ? l->in.left : 0},
        {t->bytes.staging, in ? LOOKAHEAD : sizeof t->bytes.staging}};
    size_t direct = part[0].iov_len, got;
    ssize_t n = kf_link_read(l, part, 2);

    *all = n < (ssize_t)(direct + part[1].iov_len);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) {
        closed(l, n == 0);
        return 0;
    }
    got = kf_min((size_t)n, direct);
    if (got)
        chunk_came(l, got);
    take(l, t->bytes.staging, (size_t)n - got);
    if (l->state != KF_OVER && l->flag.passed >= 0 && !announced(l))
        unannounced(l);
    return (size_t)n;
}

static void receive(kf_link *l);

static void again(uv_idle_t *idle)
{
    kf_transport *t = idle->data;

    uv_idle_stop(idle);
    for (kf_link *l = t->in.links, *after; l; l = after) {
        after = l->after;
        if (!l->secure.again || l->state == KF_OVER)
            continue;
        l->secure.again = false;
        receive(l);
    }
}

void kf_net_receive_rest(kf_link *l)
{
    if (kf_tls_holds(l)) {
        l->secure.again = true;
        uv_idle_start(&l->t->uv.again, again);
    }
}

static void receive(kf_link *l)
{
    size_t got = 0, n;
    bool all = false;

    while (l->state != KF_OVER && !all && got < TURN) {
        n = read_some(l, &all);
        got += n;
        if (n == 0)
            break;
    }
    if (l->state == KF_OVER)
        return;
    l->t->keep.latest = l;
    if (got)
        l->life.heard = l->t->keep.awake;
    if (got >= TURN)
        kf_net_receive_rest(l);
    kf_net_send_on(l);
}

/* ---- readiness ----------------------------------------------------------- */

/* Reads and drops what a refused stranger sends. If a socket is closed with
 * unread bytes, the system resets the connection, and the other end may never
 * read the refusal. */
static void throw_away(kf_link *l)
{
    struct iovec all = {l->t->bytes.staging, sizeof l->t->bytes.staging};
    ssize_t n = kf_link_read(l, &all, 1);

    l->secure.shaken += n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN) || l->secure.shaken > LEFTOVER)
        kf_link_end(l);
}

void kf_net_ready(uv_poll_t *poll, int status, int events)
{
    kf_link *l = poll->data;

    if (l->state == KF_SHAKING || l->state == KF_REFUSED) {
        if (l->state == KF_SHAKING)
            kf_shake(l);
        else
            throw_away(l);
        /* libuv has stopped the watch; the link may still have to wait */
        if (status < 0)
            kf_link_watch(l);
        return;
    }
    if (l->secure.waits || status < 0)
        events = UV_READABLE | UV_WRITABLE;
    l->secure.waits = 0;
    if ((events & UV_READABLE) && !l->flag.deaf)
        receive(l);
    if (l->state != KF_OVER && (events & UV_WRITABLE)) {
        l->flag.blocked = false;
        kf_net_send_on(l);
        if (!l->flag.blocked)
            kf_link_watch(l);
    }
}
