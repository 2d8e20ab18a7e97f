/* zmq.c -- the transport over ZeroMQ: opening it, and the pass of the loop in
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

#define BATCH ((size_t)64 << 10) /* that ZeroMQ has read and not yet sorted */
#define BODY_MOST ((size_t)1 << 48)
#define NEWS (10 * KOFN_SECOND) /* between words about strangers */
#define DESCRIPTORS 22 /* of a context, its threads and a pair of sockets */
#define DYING                                                                  \
    (50 * KF_MILLI) /* the most that a loss is kept back for packets */

/* ---- waiting ------------------------------------------------------------- */

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

/* Every socket has just had nothing to be received.  False: a signal has come,
 * which may be what the caller waits for. */
static bool sleep_until(kf_transport *t, kofn_time until, kofn_time now)
{
    struct pollfd *item = t->item;
    kofn_time ms = until == KOFN_NEVER ? -1 : (until - now) / KF_MILLI + 1;
    char bytes[64];
    nfds_t n = 0;
    int ready;

    item[n++] = (struct pollfd){t->wake[0], POLLIN, 0};
    if (t->router)
        item[n++] = (struct pollfd){t->router_fd, POLLIN, 0};
    for (size_t i = 0; i < t->dials; i++)
        for (int k = 0; k < 4 && t->dial[i]->bulk; k++)
            item[n++] = (struct pollfd){t->dial[i]->fd[k], POLLIN, 0};
    ready = poll(item, n, ms > INT_MAX ? INT_MAX : (int)ms);
    if (ready < 0)
        return errno != EINTR;
    if (item[0].revents)
        while (read(t->wake[0], bytes, sizeof bytes) == sizeof bytes)
            ;
    return true;
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

/* One pass: what there is without waiting. */
static kofn_status pass(kf_transport *t, kofn_packet *p)
{
    kofn_time now;
    kofn_status st;

    if (t->pushing)
        kf_zmq_send_on(t);
    kf_meet_lost(t);
    if (kf_meet_news(t, p))
        return KOFN_OK;
    if (t->held)
        TRY(kf_meet_held(t));
    now = t->doors ? kf_clock() : 0;
    st = kf_zmq_arrive(t, p);
    if (st == KOFN_AGAIN && t->doors)
        kf_doors_listened(t->doors, now);
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
    bool room;

    for (;;) {
        do
            st = pass(t, p);
        while (st == KOFN_PARTIAL);
        base->dropped = t->dropped;
        if (t->doors)
            base->dropped += kf_doors_refused(t->doors).silent;
        if (st != KOFN_AGAIN)
            return st;
        if (nothing_left(t))
            return kf_fail(KOFN_TRANSPORT, "%s",
                           t->trouble[0] ? t->trouble : "nobody is reached");
        now = kf_clock();
        room = atomic_exchange(&t->room, false);
        if (now >= until || (room && t->full)) {
            t->full = false;
            return KOFN_AGAIN;
        }
        if (room) /* for what is on its way */
            continue;
        next = next_duty(t, now);
        if (!sleep_until(t, next < until ? next : until, now))
            return KOFN_AGAIN;
    }
}

/* ---- the rest of the interface ------------------------------------------- */

static const char *transport_name_of(kofn_transport *base, kofn_peer peer)
{
    const kf_peer *p = kf_peers_by_number(&((kf_transport *)base)->peers, peer);

    return p ? p->name : "who is gone";
}

/* Whom the doors have ended since it was told last, at most every ten
 * seconds. */
static const char *transport_news(kofn_transport *base)
{
    kf_transport *t = (kf_transport *)base;
    kofn_time now = kf_clock();
    kf_refused is;
    uint64_t n;

    if (!t->doors || (t->told_at && now - t->told_at < NEWS))
        return NULL;
    is = kf_doors_refused(t->doors);
    if ((n = is.full - t->known.full))
        snprintf(t->words, sizeof t->words,
                 "%llu connections were ended: file descriptors run out; "
                 "raise ulimit -n",
                 (unsigned long long)n);
    else if ((n = is.flood - t->known.flood))
        snprintf(t->words, sizeof t->words,
                 "%llu connections were ended: they sent more than a message "
                 "may have",
                 (unsigned long long)n);
    else if ((n = is.crowd - t->known.crowd))
        snprintf(t->words, sizeof t->words,
                 "%llu connections were ended: there were more than %zu of "
                 "strangers",
                 (unsigned long long)n, t->strangers);
    else if ((n = is.mute - t->known.mute))
        snprintf(t->words, sizeof t->words,
                 "%llu connections were ended: they did not say who they are",
                 (unsigned long long)n);
    else
        return NULL;
    t->known = is;
    t->told_at = now;
    return t->words;
}

static const char *transport_principal_of(kofn_transport *base, kofn_peer peer)
{
    const kf_peer *p = kf_peers_by_number(&((kf_transport *)base)->peers, peer);

    if (!p)
        return "who is gone";
    return p->principal[0] ? p->principal : NULL;
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

/* Bodies of which a part is ZeroMQ's already. */
static void finish_sending(kf_transport *t, kofn_time until)
{
    for (kf_zmq_send_on(t); t->pushing && kf_clock() < until; kf_zmq_send_on(t))
        poll(&(struct pollfd){t->wake[0], POLLIN, 0}, 1, 1);
}

/* Until everybody has all that was sent to it, and says so. */
static void take_leave(kf_transport *t, kofn_time until)
{
    kofn_packet p;
    kofn_status st = KOFN_OK;

    t->closing = true;
    for (size_t i = 0; i < t->dials; i++)
        t->dial[i]->over = true;
    if (!kf_meet_bid(t, NULL))
        return;
    while (st >= 0 && kf_clock() < until) {
        bool again;

        st = kf_zmq_arrive(t, &p);
        if (st == KOFN_OK)
            kf_zmq_arrival_release(&t->base, p.own);
        if (st != KOFN_AGAIN)
            continue;
        kf_meet_lost(t);
        st = kf_meet_bury(t);
        if (!st)
            st = kf_meet_dials(t);
        if (!kf_meet_bid(t, &again))
            return;
        if (again) /* and what came as we sent may not be told of any more */
            poll(&(struct pollfd){t->wake[0], POLLIN, 0}, 1, 1);
        else
            sleep_until(t, until, kf_clock());
    }
}

static void transport_close(kofn_transport *base, kofn_time linger)
{
    kf_transport *t = (kf_transport *)base;
    kofn_time ms = linger / KF_MILLI, now = kf_clock();
    kofn_time until = linger < KOFN_NEVER - now ? now + linger : KOFN_NEVER;
    int wait = ms > INT32_MAX ? -1 : (int)ms;

    finish_sending(t, until);
    if (!t->pushing && linger > 0)
        take_leave(t, until);
    for (size_t i = 0; i < t->peers.count; i++) {
        kf_zmq_way_clear(t, &t->peers.item[i]->bulk);
        kf_zmq_way_clear(t, &t->peers.item[i]->urgent);
    }
    for (size_t i = 0; i < t->dials; i++) {
        kf_dial_close(t->dial[i], wait);
        kf_free(t->dial[i]);
    }
    remove_file(t);
    if (t->router) {
        kf_zmq_socket_set(t->router, ZMQ_LINGER, wait);
        zmq_close(t->router);
    }
    if (t->set.context) {
        zmq_ctx_shutdown(t->set.context); /* which ends the gate's thread */
        kf_gate_close(t->gate);
        zmq_ctx_term(t->set.context);
    }
    kf_doors_free(t->doors);
    for (int i = 0; i < 2; i++)
        if (t->wake[i] >= 0)
            close(t->wake[i]);
    kf_keys_free(&t->set.own);
    kf_keys_free(&t->set.server);
    kf_list_free(t->set.allowed);
    kf_peers_free(&t->peers);
    kf_free(t->dial);
    kf_free(t->news);
    kf_free(t->item);
    kf_free(t);
}

/* ---- opening ------------------------------------------------------------- */

/* `key`: of who is there; NULL: the common one, if there are keys. */
static kofn_status add_dial(kf_transport *t, const char *address,
                            const kf_key *key)
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
    d->v6 = !kf_address_v4(address) && !kf_address_is_localhost(address);
    if (key)
        memcpy(d->who, key->name, sizeof d->who);
    if (t->set.own.count)
        memcpy(d->server, key ? key->text : t->set.server.key[0].text,
               sizeof d->server);
    st = kf_dial_open(d, &t->set, kf_clock());
    if (st) {
        kf_dial_close(d, 0);
        kf_free(d);
        return st;
    }
    t->dial[t->dials++] = d;
    return KOFN_OK;
}

/* NAME@ADDRESS: whose key is expected there.  *key: NULL without a name. */
static kofn_status read_name(const kf_transport *t, const char **address,
                             kf_key *room, const kf_key **key)
{
    const char *at = strchr(*address, '@'), *scheme = strstr(*address, "://");
    char name[KF_KEY_NAME];

    *key = NULL;
    if (!at || !scheme || at > scheme)
        return t->set.own.count && !t->set.server.count
                   ? kf_fail(KOFN_INVAL,
                             "%s: nodes have keys of their own: "
                             "say whose is expected there, NAME@%s, of "
                             "NAME.public",
                             *address, *address)
                   : KOFN_OK;
    snprintf(name, sizeof name, "%.*s",
             (int)kf_min((size_t)(at - *address), KF_KEY_NAME), *address);
    if (!t->set.allowed || !kf_list_key(t->set.allowed, name, room))
        return kf_fail(KOFN_INVAL,
                       "%s: there is no key %s.public among those "
                       "that come in",
                       *address, name);
    kf_list_find(t->set.allowed, room->bits, room->name); /* its first name */
    *key = room;
    *address = at + 1;
    return KOFN_OK;
}

static kofn_status transport_reach(kofn_transport *base, const char *address)
{
    kf_transport *t = (kf_transport *)base;
    const kf_key *key;
    kf_key room;

    TRY(read_name(t, &address, &room, &key));
    for (size_t i = 0; i < t->dials; i++)
        if (strcmp(t->dial[i]->address, address) == 0)
            return KOFN_OK;
    TRY(kf_address_check(address, false, &t->set));
    return add_dial(t, address, key);
}

/* ZeroMQ listens at numbers and at interfaces, and calls it ENODEV when a name
 * is none of these: then it is looked up. */
static kofn_status bind_router(kf_transport *t, const char *address)
{
    char numbers[KF_ADDRESS];
    int error = zmq_bind(t->router, address) ? zmq_errno() : 0;

    if (error == ENODEV && kf_address_is_name(address)) {
        TRY(kf_address_numbers(address, numbers));
        kf_zmq_socket_set(t->router, ZMQ_IPV6, !kf_address_v4(numbers));
        error = zmq_bind(t->router, numbers) ? zmq_errno() : 0;
    }
    return error ? kf_fail(error == EINVAL ? KOFN_INVAL : KOFN_TRANSPORT,
                           "cannot listen at %s: %s; %s", address,
                           zmq_strerror(error), kf_address_advice(error))
                 : KOFN_OK;
}

static kofn_status open_router(kf_transport *t, const char *address,
                               size_t strangers)
{
    size_t size = sizeof t->endpoint;
    size_t message = kf_address_whole(address, &t->set) + KF_LEAD + BATCH;
    struct stat s;

    TRY(kf_zmq_socket(&t->router, &t->set, ZMQ_ROUTER, address, NULL,
                      !kf_address_v4(address)));
    kf_zmq_socket_set(t->router, ZMQ_ROUTER_MANDATORY, 1);
    /* Else what comes under a name that is taken is never read, nor freed. */
    kf_zmq_socket_set(t->router, ZMQ_ROUTER_HANDOVER, 1);
    zmq_setsockopt(t->router, ZMQ_ZAP_DOMAIN, "kofn", 4);
    /* The doors end who does not say who he is, in time in which somebody
     * listened; ZeroMQ would end as well who waits for us. */
    kf_zmq_socket_set(t->router, ZMQ_HANDSHAKE_IVL, 0);
    t->strangers = strangers;
    TRY(kf_doors_new(&t->doors, strangers,
                     (kf_address_ahead(address, &t->set) + 1) * message,
                     message));
    TRY(kf_gate_open(&t->gate, t->set.context, t->router, t->set.allowed,
                     t->doors, t->wake[1]));
    t->router_fd = kf_zmq_socket_fd(t->router);
    TRY(kf_address_vacant(address));
    TRY(bind_router(t, address));
    zmq_getsockopt(t->router, ZMQ_LAST_ENDPOINT, t->endpoint, &size);
    if (our_file(t, &s)) {
        t->file = s.st_ino;
        if (chmod(t->endpoint + 6, 0600))
            return kf_fail(KOFN_TRANSPORT, "cannot keep others from %s: %s",
                           address, strerror(errno));
    }
    return KOFN_OK;
}

static kofn_status open_wake(kf_transport *t)
{
    if (pipe(t->wake))
        return kf_fail(KOFN_TRANSPORT, "no pipe: %s; raise ulimit -n",
                       strerror(errno));
    for (int i = 0; i < 2; i++) {
        fcntl(t->wake[i], F_SETFL, O_NONBLOCK);
        fcntl(t->wake[i], F_SETFD, FD_CLOEXEC);
    }
    return KOFN_OK;
}

static kofn_status make(kf_transport **out, const kofn_zmq_options *o)
{
    kf_transport *t = kf_zero(1, sizeof *t);

    if (!t)
        return KOFN_NOMEM;
    t->base = (kofn_transport){.name = "zmq",
                               .send = kf_zmq_packet_send,
                               .wait = transport_wait,
                               .release = kf_zmq_arrival_release,
                               .forget = kf_meet_forget,
                               .close = transport_close,
                               .name_of = transport_name_of,
                               .news = transport_news,
                               .principal_of = transport_principal_of};
    t->wake[0] = t->wake[1] = -1;
    t->base.body_max = o->body_max ? o->body_max : (size_t)64 << 20;
    t->set.body_max = t->base.body_max;
    t->set.peer_bytes = o->peer_bytes ? o->peer_bytes : (size_t)32 << 20;
    t->set.silence = o->silence ? o->silence : 800 * KF_MILLI;
    t->set.insecure = o->insecure;
    atomic_init(&t->refused, false);
    atomic_init(&t->room, false);
    *out = t;
    if (t->set.silence < 100 * KF_MILLI || t->set.silence > 3600 * KOFN_SECOND)
        return kf_fail(KOFN_INVAL, "silence of %g s: 0.1 s to an hour",
                       (double)t->set.silence / 1e9);
    if (t->set.body_max > BODY_MOST || t->set.peer_bytes > BODY_MOST)
        return kf_fail(KOFN_INVAL,
                       "bodies of %zu bytes, %zu of them ahead: 2^48 at most",
                       t->set.body_max, t->set.peer_bytes);
    TRY(open_wake(t));
    t->set.any = t->wake[0];
    TRY(kf_descriptors(t->set.any, DESCRIPTORS));
    t->set.context = zmq_ctx_new();
    if (!t->set.context)
        return kf_fail(KOFN_TRANSPORT, "no ZeroMQ context: %s",
                       zmq_strerror(zmq_errno()));
    zmq_ctx_set(t->set.context, ZMQ_MAX_SOCKETS, 65536);
    t->item = kf_new(2, sizeof *t->item);
    return t->item ? KOFN_OK : KOFN_NOMEM;
}

typedef enum role { LISTENS = 1, DIALS = 2, BOTH = 3 } role;

/* Nodes of a mesh have one in common, unless each has its own. */
static kofn_status read_server(kf_set *set, role r, const char *dir)
{
    char path[4096];

    if (r == DIALS)
        return kf_keys_public(&set->server, dir, "coordinator.public");
    if (snprintf(path, sizeof path, "%s/" KF_COMMON ".public", dir) >=
        (int)sizeof path)
        return kf_fail(KOFN_INVAL, "%.80s...: the path is too long", dir);
    return access(path, F_OK)
               ? KOFN_OK
               : kf_keys_public(&set->server, dir, KF_COMMON ".public");
}

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
        TRY(read_server(set, r, o->keys));
    return r == DIALS
               ? KOFN_OK
               : kf_list_open(&set->allowed, o->allow ? o->allow : o->keys);
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
        st = kf_zmq_random(t->set.node, KF_TOKEN);
    }
    if (!st && (r & LISTENS))
        st = open_router(t, address, o->strangers ? o->strangers : 1024);
    if (!st && r == DIALS) {
        snprintf(t->endpoint, sizeof t->endpoint, "%s", address);
        st = add_dial(t, address, NULL);
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

size_t kofn_zmq_listed(const kofn_transport *t)
{
    kf_list *l = ((const kf_transport *)t)->set.allowed;

    return l ? kf_list_count(l) : 0;
}

const char *kofn_zmq_trouble(const kofn_transport *t)
{
    return ((const kf_transport *)t)->trouble;
}
