/* send.c -- packets on their way out; bodies are lent, never copied. */
#include "inside.h"

#include <errno.h>
#include <unistd.h>
#include <zmq.h>

/* A body on its way. */
typedef struct loan {
    kf_transport *t;
    void (*done)(void *ud);
    void *ud;
} loan;

/* On an I/O thread, or wherever the message ends. */
static void give_back(void *data, void *hint)
{
    loan l = *(loan *)hint;

    (void)data;
    kf_free(hint);
    if (l.done)
        l.done(l.ud);
    if (l.t && atomic_exchange(&l.t->refused, false)) {
        atomic_store(&l.t->room, true);
        if (write(l.t->wake[1], "", 1) < 0) {
            /* the pipe is full: it will wake up */
        }
    }
}

static kofn_status lend(zmq_msg_t *m, loan **out, const void *body,
                        size_t bytes)
{
    loan *l = kf_zero(1, sizeof *l);
    void *data;

    if (!l)
        return KOFN_NOMEM;
    memcpy(&data, &body, sizeof data); /* it is only read */
    if (zmq_msg_init_data(m, data, bytes, give_back, l)) {
        kf_free(l);
        return kf_nomem(bytes);
    }
    *out = l;
    return KOFN_OK;
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
        if (kf_socket_send(s, frame, bytes, ZMQ_SNDMORE) >= 0)
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
                               const void *head, size_t head_bytes,
                               zmq_msg_t *body, bool urgent)
{
    void *s = t->router;
    kofn_status st;

    if (p->dial) {
        s = urgent ? p->dial->urgent : p->dial->bulk;
        st = begin(t, s, head, head_bytes);
    } else {
        char id[KF_ID];

        kf_route_id(id, p, urgent ? KF_URGENT : KF_BULK);
        st = begin(t, s, id, sizeof id);
        if (!st && kf_socket_send(s, head, head_bytes, ZMQ_SNDMORE) < 0)
            st = KOFN_TRANSPORT;
    }
    if (!st && send_body(body, s) < 0)
        st = KOFN_TRANSPORT;
    return st;
}

kofn_status kf_send(kofn_transport *base, kofn_peer peer, const void *head,
                    size_t head_bytes, const void *body, size_t body_bytes,
                    bool urgent, void (*done)(void *ud), void *ud)
{
    kf_transport *t = (kf_transport *)base;
    const kf_peer *p = kf_peers_by_number(&t->peers, peer);
    kofn_status st = KOFN_OK;
    zmq_msg_t m;
    loan *l = NULL;

    if (head_bytes > KOFN_HEAD_MAX)
        st = kf_fail(KOFN_INVAL, "a head of %zu bytes: at most %d", head_bytes,
                     KOFN_HEAD_MAX);
    else if (!p || p->dying || p->forgotten)
        st = kf_fail(KOFN_TRANSPORT, "peer %u is not there any more", peer);
    else
        st = lend(&m, &l, body, body_bytes);
    if (st) {
        if (done)
            done(ud);
        return st;
    }
    l->done = done;
    l->ud = ud;
    l->t = t;
    st = send_frames(t, p, head, head_bytes, &m, urgent);
    if (st == KOFN_AGAIN) { /* the body stays the caller's */
        l->done = NULL;
        l->t = NULL;
    }
    if (st) {
        zmq_msg_close(&m);
        if (st < 0)
            kf_fail(st, "peer %u (%s) is not there any more", peer, p->name);
    }
    return st;
}
