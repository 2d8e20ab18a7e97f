/* receive.c -- packets on their way in.
 *
 * A body that comes in chunks is put together here.  Memory is asked for when
 * the first chunk comes with the head, and only if the transport's user wants
 * the body; else its chunks are dropped as they come.  So is a long body that
 * came whole.
 */
#include "inside.h"

#include <errno.h>
#include <zmq.h>

/* The body of a packet that was given away: a message, or put together. */
typedef struct body {
    zmq_msg_t message;
    char *room; /* NULL: it is the message */
} body;

/* ---- messages ------------------------------------------------------------ */

/* Again when a signal has interrupted it. */
static int receive_frame(zmq_msg_t *m, void *s)
{
    int n;

    do
        n = zmq_msg_recv(m, s, ZMQ_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

/* A message of at most `most` frames; how many it had, 0 if there is none. */
static size_t receive(void *s, zmq_msg_t *frame, size_t most)
{
    size_t n = 0;
    int more = 1;

    for (size_t i = 0; i < most; i++)
        zmq_msg_init(&frame[i]);
    while (more) {
        zmq_msg_t spare, *m = n < most ? &frame[n] : &spare;

        if (m == &spare)
            zmq_msg_init(m);
        if (receive_frame(m, s) < 0)
            break;
        more = zmq_msg_more(m);
        if (m == &spare)
            zmq_msg_close(m);
        n++;
    }
    return n;
}

static void close_all(zmq_msg_t *frame, size_t n)
{
    for (size_t i = 0; i < n; i++)
        zmq_msg_close(&frame[i]);
}

static bool is_note(zmq_msg_t *m)
{
    return zmq_msg_size(m) == sizeof(kf_greeting) &&
           memcmp(zmq_msg_data(m), KF_MAGIC, sizeof KF_MAGIC - 1) == 0;
}

/* ---- packets, each of these as kf_zmq_arrive
 * --------------------------------- */

static kofn_status useless(kf_transport *t)
{
    t->dropped++;
    return KOFN_PARTIAL;
}

static kofn_status give(const kf_peer *p, const kf_zmq_way *w,
                        zmq_msg_t *message, char *room, size_t bytes,
                        kofn_packet *out)
{
    body *own = bytes ? kf_new(1, sizeof *own) : NULL;

    if (bytes && !own)
        return KOFN_NOMEM;
    *out = (kofn_packet){.what = KOFN_PACKET,
                         .peer = p->number,
                         .head_bytes = w->in.head_bytes,
                         .body_bytes = bytes,
                         .own = own};
    memcpy(out->head, w->in.head, w->in.head_bytes);
    if (!own)
        return KOFN_OK;
    zmq_msg_init(&own->message);
    own->room = room;
    if (!room)
        zmq_msg_move(&own->message, message);
    out->body = room ? room : zmq_msg_data(&own->message);
    return KOFN_OK;
}

void kf_zmq_arrival_release(kofn_transport *base, void *own)
{
    body *b = own;

    (void)base;
    if (b) {
        zmq_msg_close(&b->message);
        kf_free(b->room);
        kf_free(b);
    }
}

static bool wanted(const kf_transport *t, const kf_peer *p, const kf_zmq_way *w,
                   size_t bytes)
{
    return !t->base.wanted ||
           t->base.wanted(t->base.wanted_ud, p->number, w->in.head,
                          w->in.head_bytes, bytes);
}

/* A body of more than one chunk begins. */
static kofn_status begin(kf_transport *t, const kf_peer *p, kf_zmq_way *w,
                         zmq_msg_t *chunk, size_t bytes, kofn_packet *out)
{
    size_t n = zmq_msg_size(chunk);

    w->in.left = bytes - n;
    w->in.at = n;
    w->in.room = NULL;
    if (bytes > t->base.body_max)
        return useless(t);
    if (!wanted(t, p, w, bytes))
        return give(p, w, NULL, NULL, 0, out);
    w->in.room = kf_new(bytes, 1);
    if (!w->in.room)
        return KOFN_NOMEM;
    memcpy(w->in.room, zmq_msg_data(chunk), n);
    return KOFN_PARTIAL;
}

static kofn_status go_on(kf_transport *t, const kf_peer *p, kf_zmq_way *w,
                         zmq_msg_t *chunk, kofn_packet *out)
{
    size_t n = zmq_msg_size(chunk);
    char *room = w->in.room;
    kofn_status st;

    if (n == 0 || n > w->in.left)
        return useless(t);
    if (room)
        memcpy(room + w->in.at, zmq_msg_data(chunk), n);
    w->in.at += n;
    w->in.left -= n;
    if (w->in.left || !room)
        return KOFN_PARTIAL;
    w->in.room = NULL;
    st = give(p, w, NULL, room, w->in.at, out);
    if (st)
        kf_free(room);
    return st;
}

static kofn_status packet(kf_transport *t, kf_peer *p, kf_zmq_way *w,
                          zmq_msg_t *f, kofn_packet *out)
{
    const unsigned char *lead = zmq_msg_data(&f[0]);
    size_t lead_bytes = zmq_msg_size(&f[0]), n = zmq_msg_size(&f[1]);
    uint64_t bytes = 0;

    if (lead_bytes == 0)
        return go_on(t, p, w, &f[1], out);
    if (w->in.left || lead_bytes < 8 || lead_bytes > KF_LEAD)
        return useless(t);
    for (int i = 8; i-- > 0;)
        bytes = bytes << 8 | lead[i];
    if (bytes > t->set.body_max) {
        if (p->dial)
            p->dial->spent = true;
        else
            kf_doors_end(t->doors, w->fd, w->number, 0);
        return useless(t);
    }
    if (n > bytes || (n == 0 && bytes))
        return useless(t);
    w->in.head_bytes = lead_bytes - 8;
    memcpy(w->in.head, lead + 8, w->in.head_bytes);
    if (bytes > n)
        return begin(t, p, w, &f[1], (size_t)bytes, out);
    if (bytes > t->base.body_max)
        return useless(t);
    if (n > KF_CHUNK && !wanted(t, p, w, n))
        return give(p, w, NULL, NULL, 0, out);
    return give(p, w, &f[1], NULL, n, out);
}

/* ---- where they come from ------------------------------------------------ */

static kofn_status from_router(kf_transport *t, kofn_packet *out)
{
    zmq_msg_t f[3];
    size_t n = receive(t->router, f, 3);
    const char *id = n ? zmq_msg_data(&f[0]) : NULL;
    kofn_status st = n ? KOFN_PARTIAL : KOFN_AGAIN;
    bool ours = n && zmq_msg_size(&f[0]) == KF_ID && id[0] == 'k' &&
                (id[1] == KF_BULK || id[1] == KF_URGENT);
    kf_peer *p =
        ours ? kf_peers_by_token(&t->peers, (const unsigned char *)id + 2)
             : NULL;

    if (ours && n == 2 && is_note(&f[1])) {
        kofn_status got = kf_meet_hello(t, id, &f[1]);

        st = got < 0 ? got : KOFN_PARTIAL;
    } else if (p && p->came && n == 3) {
        kf_zmq_way *w = id[1] == KF_BULK ? &p->bulk : &p->urgent;

        if (zmq_msg_get(&f[2], ZMQ_SRCFD) != w->fd) {
            kf_meet_taken(t, p);
        } else if (!p->forgotten) {
            kf_doors_heard(t->doors, w->fd);
            st = packet(t, p, w, &f[1], out);
        }
    } else if (n) {
        t->dropped += !p || !p->forgotten;
    }
    close_all(f, 3);
    return st;
}

static kofn_status from_dial(kf_transport *t, kf_dial *d, kofn_packet *out)
{
    void *order[2] = {d->urgent, d->bulk};
    kofn_status st = KOFN_AGAIN;

    for (int i = 0; i < 2 && d->bulk && st == KOFN_AGAIN; i++) {
        zmq_msg_t f[2];
        size_t n = receive(order[i], f, 2);
        kf_peer *p;

        if (n == 0)
            continue;
        st = KOFN_PARTIAL;
        if (n == 1 && is_note(&f[0])) {
            kofn_status got;
            kf_greeting note;

            memcpy(&note, zmq_msg_data(&f[0]), sizeof note);
            got = kf_meet_greeting(t, d, &note);
            st = got < 0 ? got : st;
        } else if (n == 2 && d->welcome &&
                   (p = kf_peers_by_number(&t->peers, d->peer))) {
            st = packet(t, p, i ? &p->bulk : &p->urgent, f, out);
        } else {
            t->dropped++;
        }
        close_all(f, 2);
    }
    return st;
}

/* Takes turns, so that nobody is heard more often than others. */
kofn_status kf_zmq_arrive(kf_transport *t, kofn_packet *p)
{
    size_t n = t->dials + 1;

    for (size_t k = 0; k < n; k++) {
        size_t i = (t->next_heard + k) % n;
        kofn_status st = KOFN_AGAIN;

        if (i < t->dials)
            st = from_dial(t, t->dial[i], p);
        else if (t->router)
            st = from_router(t, p);
        if (st != KOFN_AGAIN) {
            t->next_heard = i + 1;
            return st;
        }
    }
    return KOFN_AGAIN;
}
