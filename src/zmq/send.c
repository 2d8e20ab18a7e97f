/* send.c -- packets on their way out; bodies are lent, never copied. */
#include "inside.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>
#include <zmq.h>

/* A body that is lent; it is given back when nobody holds any of it. */
struct kf_loan {
    kf_transport *t;       /* NULL: it was not sent */
    atomic_size_t holders; /* chunks under way, and who sends them */
    zmq_msg_t chunk;       /* the next one ... */
    bool cut;              /* ... if it is made */
    void (*done)(void *ud);
    void *ud;
};

static void let_go(kf_loan *l)
{
    if (atomic_fetch_sub(&l->holders, 1) > 1)
        return;
    if (l->done)
        l->done(l->ud);
    kf_free(l);
}

/* On an I/O thread, or wherever the message ends. */
static void give_back(void *data, void *hint)
{
    kf_loan *l = hint;
    kf_transport *t = l->t;

    (void)data;
    let_go(l);
    if (t && atomic_exchange(&t->refused, false)) {
        atomic_store(&t->room, true);
        if (write(t->wake[1], "", 1) < 0) {
            /* the pipe is full: it will wake up */
        }
    }
}

static kofn_status cut(kf_loan *l, const char *body, size_t bytes)
{
    void *data;

    if (l->cut)
        return KOFN_OK;
    memcpy(&data, &body, sizeof data); /* it is only read */
    if (zmq_msg_init_data(&l->chunk, data, bytes, give_back, l))
        return kf_nomem(bytes);
    atomic_fetch_add(&l->holders, 1);
    l->cut = true;
    return KOFN_OK;
}

/* Who sends it has no more of it to send. */
static void end_loan(kf_loan *l)
{
    if (l->cut)
        zmq_msg_close(&l->chunk);
    let_go(l);
}

/* The first frame decides; KOFN_AGAIN when the way is full.  ZeroMQ hears that
 * there is room again only now and then as it sends, but always when it is
 * asked for events. */
static kofn_status begin(kf_transport *t, void *s, const void *frame,
                         size_t bytes)
{
    for (int i = 0; i < 2; i++) {
        int events;
        size_t size = sizeof events;

        if (i)
            zmq_getsockopt(s, ZMQ_EVENTS, &events, &size);
        if (kf_zmq_socket_send(s, frame, bytes, ZMQ_SNDMORE) >= 0)
            return KOFN_OK;
        if (errno != EAGAIN)
            return KOFN_TRANSPORT;
        /* Who makes room between this and the next try wakes us up. */
        atomic_store(&t->refused, true);
    }
    return KOFN_AGAIN;
}

/* Again when a signal has interrupted it. */
static int send_body(zmq_msg_t *body, void *s)
{
    int n;

    do
        n = zmq_msg_send(body, s, ZMQ_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

static kofn_status send_frames(kf_transport *t, const kf_peer *p,
                               const void *lead, size_t lead_bytes,
                               zmq_msg_t *chunk, bool urgent)
{
    void *s = t->router;
    kofn_status st;

    if (p->dial) {
        s = urgent ? p->dial->urgent : p->dial->bulk;
        st = begin(t, s, lead, lead_bytes);
    } else {
        char id[KF_ID];

        kf_zmq_route_id(id, p, urgent ? KF_URGENT : KF_BULK);
        st = begin(t, s, id, sizeof id);
        if (!st && kf_zmq_socket_send(s, lead, lead_bytes, ZMQ_SNDMORE) < 0)
            st = KOFN_TRANSPORT;
    }
    if (!st && send_body(chunk, s) < 0)
        st = KOFN_TRANSPORT;
    return st;
}

/* The next chunk of what is on its way there. */
static kofn_status send_chunk(kf_transport *t, const kf_peer *p, kf_zmq_way *w,
                              const void *lead, size_t lead_bytes)
{
    size_t n = w->out.bytes <= p->whole
                   ? w->out.bytes
                   : kf_min(w->out.bytes - w->out.at, KF_CHUNK);
    kf_loan *l = w->out.loan;
    kofn_status st;

    TRY(cut(l, w->out.body + w->out.at, n));
    st = send_frames(t, p, lead, lead_bytes, &l->chunk, w == &p->urgent);
    if (!st) {
        w->out.at += n;
        l->cut = false; /* it is ZeroMQ's */
    }
    return st;
}

static void is_sent(kf_transport *t, kf_zmq_way *w)
{
    end_loan(w->out.loan);
    w->out.loan = NULL;
    t->pushing--;
}

void kf_zmq_way_clear(kf_transport *t, kf_zmq_way *w)
{
    if (w->out.loan)
        is_sent(t, w);
    kf_free(w->in.room);
    w->in.room = NULL;
    w->in.left = 0;
}

/* What is lost on its way goes with its peer, who is told of in time. */
static void push(kf_transport *t, const kf_peer *p, kf_zmq_way *w)
{
    kofn_status st = KOFN_OK;

    while (!st && w->out.at < w->out.bytes)
        st = send_chunk(t, p, w, "", 0);
    if (st != KOFN_AGAIN)
        is_sent(t, w);
}

void kf_zmq_send_on(kf_transport *t)
{
    for (size_t i = 0; i < t->peers.count && t->pushing; i++) {
        kf_peer *p = t->peers.item[i];

        if (p->bulk.out.loan)
            push(t, p, &p->bulk);
        if (p->urgent.out.loan)
            push(t, p, &p->urgent);
    }
}

/* The first chunk decides. */
static kofn_status send_first(kf_transport *t, const kf_peer *p, kf_zmq_way *w,
                              const void *head, size_t head_bytes)
{
    unsigned char lead[KF_LEAD];

    for (int i = 0; i < 8; i++)
        lead[i] = (unsigned char)((uint64_t)w->out.bytes >> 8 * i);
    if (head_bytes)
        memcpy(lead + 8, head, head_bytes);
    return send_chunk(t, p, w, lead, 8 + head_bytes);
}

static kofn_status refuse(kofn_status st, void (*done)(void *ud), void *ud)
{
    if (done)
        done(ud);
    return st;
}

kofn_status kf_zmq_packet_send(kofn_transport *base, kofn_peer peer,
                               const void *head, size_t head_bytes,
                               const void *body, size_t body_bytes, bool urgent,
                               void (*done)(void *ud), void *ud)
{
    kf_transport *t = (kf_transport *)base;
    kf_peer *p = kf_peers_by_number(&t->peers, peer);
    kofn_status st;
    kf_loan *l;
    kf_zmq_way *w;

    if (head_bytes > KOFN_HEAD_MAX)
        return refuse(kf_fail(KOFN_INVAL, "a head of %zu bytes: at most %d",
                              head_bytes, KOFN_HEAD_MAX),
                      done, ud);
    if (!p || p->dying || p->forgotten)
        return refuse(
            kf_fail(KOFN_TRANSPORT, "peer %u is not there any more", peer),
            done, ud);
    w = urgent ? &p->urgent : &p->bulk;
    if (w->out.loan)
        push(t, p, w);
    if (w->out.loan) {
        t->full = true;
        return KOFN_AGAIN;
    }
    l = kf_zero(1, sizeof *l);
    if (!l)
        return refuse(KOFN_NOMEM, done, ud);
    l->t = t;
    atomic_init(&l->holders, 1);
    w->out.loan = l;
    w->out.body = body;
    w->out.at = 0;
    w->out.bytes = body_bytes;
    t->pushing++;
    st = send_first(t, p, w, head, head_bytes);
    t->full |= st == KOFN_AGAIN;
    if (st == KOFN_AGAIN) { /* the body stays the caller's */
        l->t = NULL;
    } else {
        l->done = done;
        l->ud = ud;
    }
    if (st)
        is_sent(t, w);
    else
        push(t, p, w);
    return st < 0 && st != KOFN_NOMEM
               ? kf_fail(st, "peer %u (%s) is not there any more", peer,
                         p->name)
               : st;
}
