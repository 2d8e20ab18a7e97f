/* send.c -- output of a connection: frames, urgent ones first, and bodies from
 * the memory of the caller.
 *
 * Owns nothing: packets.c keeps the packets of the queues. Called with the
 * lock; never blocks. */
#include "inside.h"

#include <assert.h>
#include <errno.h>

#define TURN ((size_t)4 << 20) /* bytes of one connection in one turn */

/* ---- numbers ------------------------------------------------------------- */

void kf_net_put_number(unsigned char *at, uint64_t n, int bytes)
{
    assert(bytes <= 8);
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(n >> 8 * i);
}

uint64_t kf_net_number(const unsigned char *at, int bytes)
{
    uint64_t n = 0;

    assert(bytes <= 8);
    for (int i = bytes; i-- > 0;)
        n = n << 8 | at[i];
    return n;
}

kf_greeting kf_net_send_greeting(const kf_transport *t)
{
    kf_greeting g = {.magic = KF_MAGIC};

    memcpy(g.node, t->node, sizeof g.node);
    kf_net_put_number(g.silence, (uint64_t)t->patience, 8);
    kf_net_put_number(g.window, t->peer_bytes, 8);
    kf_net_put_number(g.urgent, t->peer_bytes / 4, 8);
    kf_net_put_number(g.takes, KF_TAKES_FILES, 8);
    if (t->mesh)
        kf_place_listens(t->text.endpoint, g.listens);
    return g;
}

/* ---- frames -------------------------------------------------------------- */

static void frame(kf_link *l, kf_word word, int channel, size_t chunk,
                  uint64_t number)
{
    assert(l->out.at == l->out.bytes);
    assert(l->out.body_bytes == 0);
    memset(l->out.frame, 0, KF_HEADER);
    l->out.frame[0] = (unsigned char)word;
    l->out.frame[1] = (unsigned char)channel;
    kf_net_put_number(l->out.frame + 4, chunk, 4);
    kf_net_put_number(l->out.frame + 8, number, 8);
    l->out.bytes = KF_HEADER;
    l->out.at = 0;
    l->out.body_bytes = chunk;
    l->out.channel = -1;
    l->out.with = NULL;
}

static void frame_head(kf_link *l, const void *head, size_t bytes)
{
    assert(l->out.bytes + bytes <= sizeof l->out.frame);
    kf_net_put_number(l->out.frame + 2, bytes, 2);
    if (bytes)
        memcpy(l->out.frame + KF_HEADER, head, bytes);
    l->out.bytes += bytes;
}

/* Words in the order in which they are sent. */
static const char words[] = {KF_HELLO, KF_WELCOME, KF_GO, KF_BEAT};

/* Makes the frame of the next greeting or beat; false if there is none. */
static bool next_word(kf_link *l)
{
    int i = l->out.words ? __builtin_ctz(l->out.words) : 0;

    if (!l->out.words)
        return false;
    l->out.words &= l->out.words - 1;
    frame(l, (kf_word)words[i], 0, 0, 0);
    if (words[i] == KF_BEAT) {
        l->out.bytes = 1;
    } else {
        kf_greeting g = kf_net_send_greeting(l->t);

        kf_net_put_number(g.window, l->channel[KF_BULK].window, 8);
        kf_net_put_number(g.urgent, l->channel[KF_URGENT].window, 8);
        frame_head(l, &g, sizeof g);
    }
    return true;
}

static bool next_skip(kf_link *l)
{
    int channel = l->out.skips & 1 ? KF_BULK : KF_URGENT;

    if (!l->out.skips)
        return false;
    l->out.skips &= ~(1u << channel);
    frame(l, KF_SKIP, channel, 0, 0);
    return true;
}

/* True if a body is announced that fits in the window: the other end waits for
 * credit for all of it, and asks for none. */
static bool is_announced(const kf_channel *a)
{
    return a->coming && !a->coming->body && !a->asks;
}

/* Makes a CREDIT if the other end may send a quarter of its window more, or
 * waits for any. */
static bool next_credit(kf_link *l)
{
    for (int i = 0; i < KF_CHANNELS; i++) {
        kf_channel *a = &l->channel[i];
        uint64_t now = a->taken + a->window;

        if (now < a->given + a->window / 4 && !is_announced(a))
            now = 0;
        now = now > a->special ? now : a->special;
        if (now <= a->given)
            continue;
        a->given = now;
        frame(l, KF_CREDIT, i, 0, now);
        return true;
    }
    return false;
}

/* Makes a frame of the next chunk of the channel's first packet, if there is
 * credit. */
static bool next_chunk(kf_link *l, int channel)
{
    kf_channel *a = &l->channel[channel];
    kf_departure *o = a->first;
    uint64_t credit = a->may > a->sent ? a->may - a->sent : 0;
    size_t chunk;
    bool fits, filed;

    if (!o || l->state == KF_STRANGE || l->state == KF_HELD)
        return false;
    if (!o->begun) {
        if (credit < KF_COST)
            return false;
        credit -= KF_COST;
    }
    fits = o->at > 0 || credit >= o->body.bytes;
    filed = o->at == 0 && fits && o->share && kf_share_filed(l->t, o->share);
    if (o->begun && filed) { /* the whole body, which was announced */
        frame(l, KF_FILE, channel, 0, o->body.bytes);
        a->sent += o->body.bytes;
        l->out.with = o->share;
        l->out.channel = channel;
        return true;
    }
    assert(o->at <= o->body.bytes);
    chunk = kf_min(o->body.bytes - o->at, KF_CHUNK);
    if (filed || !fits)
        chunk = 0; /* announce the body only */
    if (o->begun && chunk == 0)
        return false;
    frame(l, o->begun ? KF_DATA : KF_PACKET, channel, chunk,
          o->begun ? 0 : o->body.bytes);
    if (!o->begun) {
        frame_head(l, o->head, o->head_bytes);
        a->sent += KF_COST;
    }
    a->sent += chunk;
    l->out.body = o->body.data ? (const char *)o->body.data + o->at : NULL;
    l->out.channel = channel;
    o->begun = true;
    return true;
}

static bool next_frame(kf_link *l)
{
    if (next_word(l))
        return true;
    if (l->state != KF_PEER && l->state != KF_PARTING)
        return false;
    return next_credit(l) || next_skip(l) || next_chunk(l, KF_URGENT) ||
           next_chunk(l, KF_BULK);
}

/* ---- ended frames -------------------------------------------------------- */

static void frame_sent(kf_link *l)
{
    kf_channel *a;

    if (l->out.channel < 0)
        return;
    a = &l->channel[l->out.channel];
    l->out.channel = -1;
    if (!a->first)
        return; /* it was dropped meanwhile */
    if (l->out.with)
        a->first->at = a->first->body.bytes;
    else if (a->first->body.bytes)
        a->first->at =
            (size_t)(l->out.body - (const char *)a->first->body.data);
    if (a->first->at == a->first->body.bytes)
        kf_packets_sent(l->t, a);
}

bool kf_net_send_idle(const kf_link *l)
{
    return l->out.at == l->out.bytes && l->out.body_bytes == 0 &&
           !l->out.words && !l->secure.bundle && !l->channel[KF_BULK].first &&
           !l->channel[KF_URGENT].first;
}

/* ---- writing ------------------------------------------------------------- */

/* Writes a part of the frame; false if the socket takes no more now. */
static bool write_some(kf_link *l, size_t *written)
{
    struct iovec part[2] = {
        {l->out.frame + l->out.at, l->out.bytes - l->out.at},
        {NULL, l->out.body_bytes}};
    ssize_t n;
    size_t of_frame;

    assert(l->out.at <= l->out.bytes);
    memcpy(&part[1].iov_base, &l->out.body,
           sizeof l->out.body); /* it is not changed */
    n = kf_link_write(l, part, 2);
    if (n < 0) {
        l->flag.blocked = true;
        if (errno != EAGAIN)
            kf_link_end(l);
        return false;
    }
    *written += (size_t)n;
    of_frame = kf_min((size_t)n, part[0].iov_len);
    l->out.at += of_frame;
    n -= (ssize_t)of_frame;
    l->out.body_bytes -= (size_t)n;
    if (n)
        l->out.body += n;
    return true;
}

/* Closes the output when all has been sent. The other end closes when it has
 * read it. */
static void say_no_more(kf_link *l)
{
    if (l->state != KF_PARTING || !kf_net_send_idle(l) || l->flag.mum)
        return;
    kf_tls_bye(l);
    shutdown(l->fd, SHUT_WR);
    l->flag.mum = true;
    if (l->flag.deaf)
        kf_link_end(l);
}

void kf_net_send_on(kf_link *l)
{
    bool blocked = l->flag.blocked;
    size_t written = 0;

    if (l->state == KF_OVER || l->state <= KF_SHAKING || l->flag.blocked ||
        l->flag.mum)
        return;
    while (written < TURN) {
        if (l->out.at == l->out.bytes && l->out.body_bytes == 0) {
            frame_sent(l);
            if (!next_frame(l))
                break;
        }
        if (!write_some(l, &written))
            break;
    }
    if (!l->flag.blocked && l->state != KF_OVER && !kf_tls_flush(l)) {
        l->flag.blocked = true;
        if (errno != EAGAIN)
            kf_link_end(l);
    }
    if (written)
        l->life.spoke = l->t->keep.awake;
    if (l->state == KF_OVER)
        return;
    l->flag.blocked |=
        written >= TURN; /* resume after other links had their turn */
    say_no_more(l);
    if (l->flag.blocked != blocked)
        kf_link_watch(l);
}

void kf_net_send_word(kf_link *l, kf_word word)
{
    for (unsigned i = 0; i < sizeof words; i++)
        l->out.words |= (unsigned)(words[i] == (char)word) << i;
    kf_net_send_on(l);
}

void kf_net_send_last(kf_link *l, kofn_time until)
{
    if (l->state == KF_OVER)
        return;
    l->state = KF_PARTING;
    l->life.until = until;
    kf_net_send_on(l);
}

kofn_status kf_net_send_packet(kf_link *l, kf_departure *o, bool urgent)
{
    kf_transport *t = l->t;
    kf_channel *a = &l->channel[urgent];
    size_t most = urgent ? t->peer_bytes / 4 : t->peer_bytes;

    assert(l->state == KF_PEER);
    assert(o->head_bytes <= KOFN_HEAD_MAX);
    assert(!o->begun);
    if (a->first && a->queued + o->body.bytes + KF_COST > most) {
        t->full = true;
        return KOFN_AGAIN;
    }
    if (l->flag.shares && t->in.count > 1)
        o->share = kf_share_join(t, o->body.data, o->body.bytes);
    a->queued += o->body.bytes + KF_COST;
    *a->last = o;
    a->last = &o->next;
    kf_net_send_on(l);
    return KOFN_OK;
}
