/* zmq.c -- the transport over ZeroMQ: opening it, and the turn of the loop in
 * which packets arrive.
 *
 * A transport has a ROUTER that others connect to, or dials by which it
 * connects to others, or both (mesh).  What a lost peer had sent is told
 * before the loss, as far as it is here already.
 */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define DYING                                                                  \
    (50 * KF_MILLI) /* the most that a loss is kept back for packets */

/* ---- arriving -------------------------------------------------------- */

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

static bool is_note(zmq_msg_t *m)
{
    return zmq_msg_size(m) == sizeof(kf_note) &&
           memcmp(zmq_msg_data(m), KF_MAGIC, sizeof KF_MAGIC - 1) == 0;
}

/* KOFN_AGAIN: it was no good. */
static kofn_status packet(kf_transport *t, kofn_peer peer, zmq_msg_t *head,
                          zmq_msg_t *body, kofn_packet *p)
{
    zmq_msg_t *own = NULL;

    if (zmq_msg_size(head) > KOFN_HEAD_MAX ||
        zmq_msg_size(body) > t->base.body_max) {
        t->dropped++;
        return KOFN_AGAIN;
    }
    *p = (kofn_packet){.what = KOFN_PACKET,
                       .peer = peer,
                       .head_bytes = zmq_msg_size(head),
                       .body_bytes = zmq_msg_size(body)};
    memcpy(p->head, zmq_msg_data(head), p->head_bytes);
    if (p->body_bytes) {
        own = kf_new(1, sizeof *own);
        if (!own)
            return KOFN_NOMEM;
        zmq_msg_init(own);
        zmq_msg_move(own, body);
        p->body = zmq_msg_data(own);
    }
    p->own = own;
    return KOFN_OK;
}

static void close_all(zmq_msg_t *frame, size_t n)
{
    for (size_t i = 0; i < n; i++)
        zmq_msg_close(&frame[i]);
}

/* Each of these takes one message: KOFN_OK with a packet, KOFN_PARTIAL if it
 * was something else, KOFN_AGAIN if there is none. */
static kofn_status from_router(kf_transport *t, kofn_packet *out)
{
    zmq_msg_t f[3];
    size_t n = receive(t->router, f, 3);
    const char *id = n ? zmq_msg_data(&f[0]) : NULL;
    kofn_status st = n ? KOFN_PARTIAL : KOFN_AGAIN;
    bool ours = n && zmq_msg_size(&f[0]) == KF_ID && id[0] == 'k' &&
                (id[1] == KF_BULK || id[1] == KF_URGENT);

    if (ours && n == 2 && is_note(&f[1])) {
        kofn_status got = kf_meet_hello(t, id, &f[1]);

        st = got < 0 ? got : KOFN_PARTIAL;
    } else if (ours && n == 3) {
        kf_peer *p =
            kf_peers_by_token(&t->peers, (const unsigned char *)id + 2);

        if (!p || !p->came) {
            t->dropped += !p || !p->forgotten;
        } else if (!p->forgotten) {
            st = packet(t, p->number, &f[1], &f[2], out);
            st = st == KOFN_AGAIN ? KOFN_PARTIAL : st;
        }
    } else if (n) {
        t->dropped++;
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

        if (n == 0)
            continue;
        st = KOFN_PARTIAL;
        if (n == 1 && is_note(&f[0])) {
            kofn_status got;
            kf_note note;

            memcpy(&note, zmq_msg_data(&f[0]), sizeof note);
            got = kf_meet_note(t, d, &note);
            st = got < 0 ? got : st;
        } else if (n == 2 && d->welcome) {
            st = packet(t, d->peer, &f[0], &f[1], out);
            st = st == KOFN_AGAIN ? KOFN_PARTIAL : st;
        } else {
            t->dropped++;
        }
        close_all(f, 2);
    }
    return st;
}

/* Takes turns, so that nobody is heard more often than others. */
static kofn_status arrive(kf_transport *t, kofn_packet *p)
{
    size_t n = t->dials + 1;

    for (size_t k = 0; k < n; k++) {
        size_t i = (t->turn + k) % n;
        kofn_status st = KOFN_AGAIN;

        if (i < t->dials)
            st = from_dial(t, t->dial[i], p);
        else if (t->router)
            st = from_router(t, p);
        if (st != KOFN_AGAIN) {
            t->turn = i + 1;
            return st;
        }
    }
    return KOFN_AGAIN;
}

/* ---- waiting --------------------------------------------------------- */

/* When something has to be done even if nothing arrives. */
static kofn_time next_duty(const kf_transport *t, kofn_time now)
{
    kofn_time next = KOFN_NEVER;

    for (size_t i = 0; i < t->dials; i++) {
        kofn_time due = kf_dial_due(t->dial[i]);

        next = due < next ? due : next;
    }
    if (t->held && now + KF_MILLI < next)
        next = now + KF_MILLI;
    return next;
}

/* Every socket has just had nothing to be received. */
static void sleep_until(kf_transport *t, kofn_time until, kofn_time now)
{
    struct pollfd *item = t->item;
    kofn_time ms = until == KOFN_NEVER ? -1 : (until - now) / KF_MILLI + 1;
    char bytes[64];
    nfds_t n = 0;

    item[n++] = (struct pollfd){t->wake[0], POLLIN, 0};
    if (t->router)
        item[n++] = (struct pollfd){t->router_fd, POLLIN, 0};
    for (size_t i = 0; i < t->dials; i++)
        for (int k = 0; k < 4 && t->dial[i]->bulk; k++)
            item[n++] = (struct pollfd){t->dial[i]->fd[k], POLLIN, 0};
    poll(item, n, ms > INT_MAX ? INT_MAX : (int)ms);
    if (item[0].revents)
        while (read(t->wake[0], bytes, sizeof bytes) == sizeof bytes)
            ;
}

static bool nothing_left(const kf_transport *t)
{
    if (t->router)
        return false;
    for (size_t i = 0; i < t->dials; i++)
        if (!t->dial[i]->over)
            return false;
    return true;
}

/* One turn: what there is without waiting. */
static kofn_status turn(kf_transport *t, kofn_packet *p)
{
    kofn_status st;

    kf_meet_lost(t);
    if (kf_meet_news(t, p))
        return KOFN_OK;
    if (t->held)
        TRY(kf_meet_held(t));
    st = arrive(t, p);
    if (t->dying && (st == KOFN_AGAIN || kf_clock() - t->dying_since > DYING))
        TRY(kf_meet_bury(t));
    if (st != KOFN_AGAIN)
        return st;
    st = kf_meet_dials(t);
    if (st == KOFN_OK && t->told == t->news_count)
        st = KOFN_AGAIN;
    return st == KOFN_OK ? KOFN_PARTIAL : st;
}

static kofn_status transport_wait(kofn_transport *base, kofn_time atmost,
                                  kofn_packet *p)
{
    kf_transport *t = (kf_transport *)base;
    kofn_time now = kf_clock(), next;
    kofn_time until = atmost < KOFN_NEVER - now ? now + atmost : KOFN_NEVER;
    kofn_status st;

    for (;;) {
        do
            st = turn(t, p);
        while (st == KOFN_PARTIAL);
        base->dropped = t->dropped + (t->gate ? kf_gate_silent(t->gate) : 0);
        if (st != KOFN_AGAIN)
            return st;
        if (nothing_left(t))
            return kf_fail(KOFN_TRANSPORT, "%s",
                           t->trouble[0] ? t->trouble : "nobody is reached");
        now = kf_clock();
        if (now >= until || atomic_exchange(&t->room, false))
            return KOFN_AGAIN;
        next = next_duty(t, now);
        sleep_until(t, next < until ? next : until, now);
    }
}

/* ---- the rest of the interface --------------------------------------- */

static void transport_release(kofn_transport *base, void *own)
{
    (void)base;
    if (own) {
        zmq_msg_close(own);
        kf_free(own);
    }
}

static const char *transport_name_of(kofn_transport *base, kofn_peer peer)
{
    const kf_peer *p = kf_peers_by_number(&((kf_transport *)base)->peers, peer);

    return p ? p->name : "who is gone";
}

/* ZeroMQ leaves the file of a Unix socket behind.  It may be another's by
 * now, if ours was removed. */
static bool our_file(const kf_transport *t, struct stat *s)
{
    return strncmp(t->endpoint, "ipc:///", 7) == 0 &&
           lstat(t->endpoint + 6, s) == 0 && S_ISSOCK(s->st_mode);
}

static void remove_file(const kf_transport *t)
{
    struct stat s;

    if (t->router && our_file(t, &s) && s.st_ino == t->file)
        unlink(t->endpoint + 6);
}

static void transport_close(kofn_transport *base, kofn_time linger)
{
    kf_transport *t = (kf_transport *)base;
    kofn_time ms = linger / KF_MILLI;
    int wait = ms > INT32_MAX ? -1 : (int)ms;

    for (size_t i = 0; i < t->dials; i++) {
        kf_dial_close(t->dial[i], wait);
        kf_free(t->dial[i]);
    }
    remove_file(t);
    if (t->router) {
        kf_socket_set(t->router, ZMQ_LINGER, wait);
        zmq_close(t->router);
    }
    if (t->set.context) {
        zmq_ctx_shutdown(t->set.context); /* which ends the gate's thread */
        kf_gate_close(t->gate);
        zmq_ctx_term(t->set.context);
    }
    for (int i = 0; i < 2; i++)
        if (t->wake[i] >= 0)
            close(t->wake[i]);
    kf_keys_free(&t->set.own);
    kf_keys_free(&t->set.server);
    kf_keys_free(&t->set.allowed);
    kf_peers_free(&t->peers);
    kf_free(t->dial);
    kf_free(t->news);
    kf_free(t->item);
    kf_free(t);
}

/* ---- opening --------------------------------------------------------- */

static kofn_status add_dial(kf_transport *t, const char *address)
{
    struct pollfd *item;
    kf_dial *d;
    kofn_status st;

    TRY(kf_grow(&t->dial, &t->dials_cap, t->dials, sizeof *t->dial));
    item = kf_new(2 + 4 * (t->dials + 1), sizeof *item);
    if (!item)
        return KOFN_NOMEM;
    kf_free(t->item);
    t->item = item;
    d = kf_zero(1, sizeof *d);
    if (!d || !(d->address = kf_strdup(address))) {
        kf_free(d);
        return KOFN_NOMEM;
    }
    st = kf_dial_open(d, &t->set, kf_clock());
    if (st) {
        kf_dial_close(d, 0);
        kf_free(d);
        return st;
    }
    t->dial[t->dials++] = d;
    return KOFN_OK;
}

static kofn_status transport_reach(kofn_transport *base, const char *address)
{
    kf_transport *t = (kf_transport *)base;

    for (size_t i = 0; i < t->dials; i++)
        if (strcmp(t->dial[i]->address, address) == 0)
            return KOFN_OK;
    TRY(kf_address_check(address, false, &t->set));
    return add_dial(t, address);
}

static kofn_status open_router(kf_transport *t, const char *address,
                               size_t strangers)
{
    size_t size = sizeof t->endpoint;
    struct stat s;

    TRY(kf_socket(&t->router, &t->set, ZMQ_ROUTER, address));
    kf_socket_set(t->router, ZMQ_ROUTER_MANDATORY, 1);
    zmq_setsockopt(t->router, ZMQ_ZAP_DOMAIN, "kofn", 4);
    TRY(kf_gate_open(&t->gate, t->set.context, t->router,
                     t->set.own.count ? &t->set.allowed : NULL, strangers,
                     t->wake[1]));
    t->router_fd = kf_socket_fd(t->router);
    TRY(kf_address_vacant(address));
    if (zmq_bind(t->router, address)) {
        int error = zmq_errno();

        return kf_fail(error == EINVAL ? KOFN_INVAL : KOFN_TRANSPORT,
                       "cannot listen at %s: %s; %s", address,
                       zmq_strerror(error), kf_address_advice(error));
    }
    zmq_getsockopt(t->router, ZMQ_LAST_ENDPOINT, t->endpoint, &size);
    if (our_file(t, &s))
        t->file = s.st_ino;
    return KOFN_OK;
}

static kofn_status open_wake(kf_transport *t)
{
    if (pipe(t->wake))
        return kf_fail(KOFN_TRANSPORT, "no pipe: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(t->wake[i], F_SETFL, O_NONBLOCK);
        fcntl(t->wake[i], F_SETFD, FD_CLOEXEC);
    }
    return KOFN_OK;
}

static kofn_status make(kf_transport **out, const kofn_zmq_options *o)
{
    kf_transport *t = kf_zero(1, sizeof *t);
    size_t peer_bytes = o->peer_bytes ? o->peer_bytes : (size_t)512 << 20;

    if (!t)
        return KOFN_NOMEM;
    t->base = (kofn_transport){.name = "zmq",
                               .send = kf_send,
                               .wait = transport_wait,
                               .release = transport_release,
                               .forget = kf_meet_forget,
                               .close = transport_close,
                               .name_of = transport_name_of};
    t->wake[0] = t->wake[1] = -1;
    t->base.body_max = o->body_max ? o->body_max : (size_t)64 << 20;
    t->set.body_max = t->base.body_max;
    t->set.ahead = kf_max(4, kf_min(1000, peer_bytes / t->set.body_max));
    t->set.silence = o->silence ? o->silence : 800 * KF_MILLI;
    t->set.insecure = o->insecure;
    atomic_init(&t->refused, false);
    atomic_init(&t->room, false);
    *out = t;
    if (t->set.silence < 100 * KF_MILLI || t->set.silence > 3600 * KOFN_SECOND)
        return kf_fail(KOFN_INVAL, "silence of %g s: 0.1 s to an hour",
                       (double)t->set.silence / 1e9);
    t->set.context = zmq_ctx_new();
    if (!t->set.context)
        return kf_fail(KOFN_TRANSPORT, "no ZeroMQ context: %s",
                       zmq_strerror(zmq_errno()));
    zmq_ctx_set(t->set.context, ZMQ_MAX_SOCKETS, 65536);
    t->item = kf_new(2, sizeof *t->item);
    if (!t->item)
        return KOFN_NOMEM;
    return open_wake(t);
}

typedef enum role { LISTENS = 1, DIALS = 2, BOTH = 3 } role;

static kofn_status read_keys(kf_set *set, role r, const kofn_zmq_options *o)
{
    if (!o->keys)
        return o->allow ? kf_fail(KOFN_INVAL,
                                  "a list of keys that may come "
                                  "(%s), but no keys to be recognised by",
                                  o->allow)
                        : KOFN_OK;
    if (o->insecure)
        return kf_fail(KOFN_INVAL, "keys (%s) and insecure: say one of them",
                       o->keys);
    TRY(kf_keys_secret(&set->own, o->keys,
                       r == LISTENS ? "coordinator.secret" : "worker.secret"));
    if (r != LISTENS)
        TRY(kf_keys_public(&set->server, o->keys,
                           r == BOTH ? "worker.public" : "coordinator.public"));
    if (r == DIALS)
        return KOFN_OK;
    return o->allow ? kf_keys_listed(&set->allowed, o->allow)
                    : kf_keys_public(&set->allowed, o->keys, "worker.public");
}

static kofn_status open_as(kofn_transport **out, role r, const char *address,
                           const kofn_zmq_options *o)
{
    const kofn_zmq_options usual = {0};
    kf_transport *t = NULL;
    kofn_status st;

    *out = NULL;
    o = o ? o : &usual;
    st = make(&t, o);
    if (!st)
        st = read_keys(&t->set, r, o);
    if (!st)
        st = kf_address_check(address, r & LISTENS, &t->set);
    if (!st && r == BOTH) {
        t->mesh = true;
        t->base.reach = transport_reach;
        st = kf_random(t->set.node, KF_TOKEN);
    }
    if (!st && (r & LISTENS))
        st = open_router(t, address, o->strangers ? o->strangers : 1024);
    if (!st && r == DIALS) {
        snprintf(t->endpoint, sizeof t->endpoint, "%s", address);
        st = add_dial(t, address);
    }
    if (st) {
        if (t)
            transport_close(&t->base, 0);
        return st;
    }
    *out = &t->base;
    return KOFN_OK;
}

kofn_status kofn_zmq_listen(kofn_transport **out, const char *address,
                            const kofn_zmq_options *o)
{
    return open_as(out, LISTENS, address, o);
}

kofn_status kofn_zmq_connect(kofn_transport **out, const char *address,
                             const kofn_zmq_options *o)
{
    return open_as(out, DIALS, address, o);
}

kofn_status kofn_zmq_mesh(kofn_transport **out, const char *address,
                          const kofn_zmq_options *o)
{
    return open_as(out, BOTH, address, o);
}

const char *kofn_zmq_endpoint(const kofn_transport *t)
{
    return ((const kf_transport *)t)->endpoint;
}

const char *kofn_zmq_trouble(const kofn_transport *t)
{
    return ((const kf_transport *)t)->trouble;
}
