/* dial.c -- a connection to an address, made again after every loss; and what
 * sockets are made with.
 *
 * An incarnation of a dial is a pair of DEALER sockets.  ZeroMQ's own
 * reconnecting is off, since it would carry what was left in the queues over
 * into the next incarnation, under the same name.
 */
#include "inside.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>
#include <zmq.h>

#define PAUSE_MIN (50 * KF_MILLI)
#define PAUSE_MAX (5 * KOFN_SECOND)
#define PATIENCE (10 * KOFN_SECOND)  /* for a connection to be made ... */
#define PATIENCE_MAX (16 * PATIENCE) /* ... that was not made in time before */
#define BEAT_MAX (160 * KF_MILLI)
#define ANSWER (2 * KOFN_SECOND) /* for a system to answer another */
#define DESCRIPTORS 12           /* of an incarnation */
#define AHEAD 16                 /* packets that may be queued for sending */

/* ---- sockets ------------------------------------------------------------- */

kofn_status kf_zmq_random(void *into, size_t bytes)
{
    if (getrandom(into, bytes, 0) != (ssize_t)bytes)
        return kf_fail(KOFN_IO, "the system has no random numbers to give");
    return KOFN_OK;
}

void kf_zmq_socket_set(void *s, int option, int value)
{
    zmq_setsockopt(s, option, &value, sizeof value);
}

static int secure(void *s, const kf_set *set, int type, const char *server)
{
    const int yes = 1;
    int failed = zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, set->own.secret,
                                KF_KEY_TEXT + 1);

    if (type == ZMQ_ROUTER)
        return failed | zmq_setsockopt(s, ZMQ_CURVE_SERVER, &yes, sizeof yes);
    return failed |
           zmq_setsockopt(s, ZMQ_CURVE_PUBLICKEY, set->own.key[0].text,
                          KF_KEY_TEXT + 1) |
           zmq_setsockopt(s, ZMQ_CURVE_SERVERKEY, server, KF_KEY_TEXT + 1);
}

/* A connection whose other end is not there any more ends, although nothing is
 * being sent and before heartbeats have begun: the system asks the other end
 * after a silence and then every second, and ZMQ_TCP_MAXRT is how long it may
 * take to answer.  Whole seconds are all that can be said. */
static void keep_alive(void *s, const kf_set *set)
{
    kf_zmq_socket_set(s, ZMQ_TCP_KEEPALIVE, 1);
    kf_zmq_socket_set(s, ZMQ_TCP_KEEPALIVE_IDLE,
                      (int)((set->silence + KOFN_SECOND - 1) / KOFN_SECOND));
    kf_zmq_socket_set(s, ZMQ_TCP_KEEPALIVE_INTVL, 1);
}

kofn_status kf_zmq_socket(void **out, const kf_set *set, int type,
                          const char *address, const char *server, bool v6)
{
    void *s = zmq_socket(set->context, type);
    kofn_time answer = set->silence > ANSWER ? set->silence : ANSWER;
    const int64_t frame = (int64_t)(kf_address_whole(address, set) + KF_LEAD);

    if (!s)
        return kf_fail(KOFN_TRANSPORT, "no socket: %s; raise ulimit -n",
                       zmq_strerror(zmq_errno()));
    kf_zmq_socket_set(s, ZMQ_LINGER, 0);
    kf_zmq_socket_set(s, ZMQ_SNDHWM, AHEAD);
    kf_zmq_socket_set(s, ZMQ_RCVHWM, (int)kf_address_ahead(address, set));
    kf_zmq_socket_set(s, ZMQ_IPV6, v6);
    kf_zmq_socket_set(s, ZMQ_TCP_MAXRT, (int)(answer / KF_MILLI));
    keep_alive(s, set);
    kf_zmq_socket_set(s, ZMQ_BACKLOG, 1024);
    kf_zmq_socket_set(s, ZMQ_HANDSHAKE_IVL, (int)(PATIENCE / KF_MILLI));
    kf_zmq_socket_set(s, ZMQ_CONNECT_TIMEOUT, (int)(PATIENCE / KF_MILLI / 2));
    kf_zmq_socket_set(s, ZMQ_RECONNECT_IVL, -1);
    zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &frame, sizeof frame);
    if (set->own.count && secure(s, set, type, server)) {
        zmq_close(s);
        return kf_fail(KOFN_TRANSPORT, "this libzmq cannot encrypt: it was "
                                       "built without CURVE");
    }
    *out = s;
    return KOFN_OK;
}

int kf_zmq_socket_fd(void *s)
{
    int fd = -1;
    size_t size = sizeof fd;

    zmq_getsockopt(s, ZMQ_FD, &fd, &size);
    return fd;
}

void *kf_zmq_socket_watch(void *context, void *s, int events)
{
    static atomic_uint made;
    char name[40];
    void *watch = zmq_socket(context, ZMQ_PAIR);

    if (!watch)
        return NULL;
    snprintf(name, sizeof name, "inproc://watch-%u",
             atomic_fetch_add(&made, 1));
    kf_zmq_socket_set(watch, ZMQ_LINGER, 0);
    kf_zmq_socket_set(watch, ZMQ_RCVHWM, 0);
    if (zmq_socket_monitor(s, name, events) || zmq_connect(watch, name)) {
        zmq_close(watch);
        return NULL;
    }
    return watch;
}

int kf_zmq_socket_send(void *s, const void *frame, size_t bytes, int flags)
{
    int n;

    do
        n = zmq_send(s, frame, bytes, flags | ZMQ_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

int kf_zmq_socket_receive(void *s, void *frame, size_t room)
{
    int n;

    do
        n = zmq_recv(s, frame, room, ZMQ_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Two frames: event and value in the machine's byte order, and an address. */
int kf_zmq_socket_event(void *watch, int *value)
{
    unsigned char frame[6];
    uint16_t event = 0;
    uint32_t v = 0;

    if (kf_zmq_socket_receive(watch, frame, sizeof frame) == sizeof frame) {
        memcpy(&event, frame, sizeof event);
        memcpy(&v, frame + sizeof event, sizeof v);
        kf_zmq_socket_receive(watch, NULL, 0);
    }
    *value = (int)v;
    return event;
}

/* ---- dials --------------------------------------------------------------- */

static kofn_time beat(const kf_set *set)
{
    return set->silence < 5 * BEAT_MAX ? set->silence / 5 : BEAT_MAX;
}

static kofn_status open_one(const kf_dial *d, const kf_set *set, char channel,
                            void **out, void **watch)
{
    char id[KF_ID] = {'k', channel};
    const kf_greeting hello = kf_address_greeting(d->address, set, KF_HELLO);
    int ms = (int)(set->silence / KF_MILLI);

    TRY(kf_zmq_socket(out, set, ZMQ_DEALER, d->address, d->server, d->v6));
    kf_zmq_socket_set(*out, ZMQ_HANDSHAKE_IVL, (int)(d->patience / KF_MILLI));
    memcpy(id + 2, d->token, KF_TOKEN);
    zmq_setsockopt(*out, ZMQ_ROUTING_ID, id, sizeof id);
    if (channel == KF_URGENT) {
        /* Both ends notice silence by these.  Over the bulk connection they
         * would wait behind data, and that of a peer who just does not take
         * any would look dead. */
        kf_zmq_socket_set(*out, ZMQ_HEARTBEAT_IVL, (int)(beat(set) / KF_MILLI));
        kf_zmq_socket_set(*out, ZMQ_HEARTBEAT_TIMEOUT, ms);
        kf_zmq_socket_set(*out, ZMQ_HEARTBEAT_TTL, ms);
        /* ZeroMQ 4.3.4 ends the process when a heartbeat is due on a connection
         * that was lost while it had no room for what it received, and without
         * room hears no heartbeats either. */
        kf_zmq_socket_set(*out, ZMQ_RCVHWM, 0);
    }
    *watch = kf_zmq_socket_watch(set->context, *out,
                                 ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED |
                                     ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                                     ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                                     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                     ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    if (!*watch)
        return kf_fail(KOFN_TRANSPORT, "no socket to watch a connection");
    if (zmq_connect(*out, d->address))
        return kf_fail(KOFN_INVAL,
                       "cannot connect to %s: %s; addresses are "
                       "tcp://HOST:PORT or ipc://PATH",
                       d->address, zmq_strerror(zmq_errno()));
    kf_zmq_socket_send(*out, &hello, sizeof hello, 0);
    return KOFN_OK;
}

kofn_status kf_dial_open(kf_dial *d, const kf_set *set, kofn_time now)
{
    kofn_status st = kf_descriptors(set->any, DESCRIPTORS);

    if (!st)
        st = kf_zmq_random(d->token, KF_TOKEN);
    d->shaken = 0;
    d->welcome = d->spent = false;
    if (!d->patience)
        d->patience = PATIENCE;
    d->until = now + d->patience;
    if (!st)
        st = open_one(d, set, KF_BULK, &d->bulk, &d->bulk_watch);
    if (!st)
        st = open_one(d, set, KF_URGENT, &d->urgent, &d->urgent_watch);
    if (st) {
        kf_dial_end(d, now, 0);
        return st;
    }
    d->fd[0] = kf_zmq_socket_fd(d->bulk);
    d->fd[1] = kf_zmq_socket_fd(d->urgent);
    d->fd[2] = kf_zmq_socket_fd(d->bulk_watch);
    d->fd[3] = kf_zmq_socket_fd(d->urgent_watch);
    return KOFN_OK;
}

static bool bad_news(kf_dial *d, void *watch, char *why, size_t room)
{
    int event, value;

    while ((event = kf_zmq_socket_event(watch, &value))) {
        switch (event) {
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
            d->shaken++;
            continue;
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
            snprintf(why, room, "%s refuses this key: it is not on its list",
                     d->address);
            return true;
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
            snprintf(why, room,
                     "%s does not shake hands: it is no kofn, has "
                     "other keys, or no descriptor left",
                     d->address);
            return true;
        case ZMQ_EVENT_CLOSED:
            snprintf(why, room, "nobody answers at %s", d->address);
            return true;
        default:
            snprintf(why, room, "the connection to %s was lost", d->address);
            return true;
        }
    }
    return false;
}

bool kf_dial_lost(kf_dial *d, kofn_time now, char *why, size_t room)
{
    if (bad_news(d, d->urgent_watch, why, room) ||
        bad_news(d, d->bulk_watch, why, room))
        return true;
    if (d->spent) {
        snprintf(why, room, "%s sent a body that is longer than allowed",
                 d->address);
        return true;
    }
    if (d->shaken < 2 && now >= d->until) {
        /* It may have much to do: who begins anew too soon never comes in. */
        if (d->patience < PATIENCE_MAX)
            d->patience *= 2;
        snprintf(why, room, "nobody answers at %s", d->address);
        return true;
    }
    return false;
}

kofn_time kf_dial_due(const kf_dial *d)
{
    if (d->over || (d->bulk && d->shaken >= 2))
        return KOFN_NEVER;
    return d->bulk ? d->until : d->next;
}

static void end_socket(void **s, void **watch, int linger)
{
    if (*s) {
        zmq_socket_monitor(*s, NULL, 0);
        kf_zmq_socket_set(*s, ZMQ_LINGER, linger);
        zmq_close(*s);
    }
    if (*watch)
        zmq_close(*watch);
    *s = *watch = NULL;
}

/* Of a name's addresses ZeroMQ tries one of IPv6, if there is any, or one of
 * IPv4, as it is told; where nobody listens there, the next time it is told the
 * other.  Pauses double, and are spread so that a fleet does not come all at once. */
void kf_dial_end(kf_dial *d, kofn_time now, int linger)
{
    uint32_t spread = 0;

    end_socket(&d->bulk, &d->bulk_watch, linger);
    end_socket(&d->urgent, &d->urgent_watch, 0);
    d->pause = d->welcome || !d->pause ? PAUSE_MIN : 2 * d->pause;
    if (d->welcome)
        d->patience = PATIENCE;
    else if (kf_address_is_name(d->address))
        d->v6 = !d->v6;
    if (d->pause > PAUSE_MAX)
        d->pause = PAUSE_MAX;
    d->welcome = false;
    (void)kf_zmq_random(&spread, sizeof spread);
    d->next = now + d->pause / 2 + (kofn_time)(spread % (uint64_t)d->pause);
}

void kf_dial_close(kf_dial *d, int linger)
{
    end_socket(&d->bulk, &d->bulk_watch, linger);
    end_socket(&d->urgent, &d->urgent_watch, linger);
    kf_free(d->address);
    d->address = NULL;
}
