/* net.c -- the transport over TCP and Unix sockets: its public functions.
 *
 * Owns the transport from opening to close. Functions that the owner calls take
 * the lock, here and in the other files. Internal functions are called with the
 * lock. */
#include "inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define BODY_MOST ((size_t)1 << 48)
#define PEER_LEAST ((size_t)4 << 10)
#define DESCRIPTORS 20 /* of a transport and a few connections */
#define NEWS                                                                   \
    (10 * KOFN_SECOND) /* between messages about refused connections           \
                        */

/* ---- packets ------------------------------------------------------------- */

static kofn_status net_send(kofn_transport *base, kofn_peer peer,
                            const void *head, size_t head_bytes,
                            const kofn_lent *body, bool urgent)
{
    kf_transport *t = (kf_transport *)base;
    kofn_status st = KOFN_NOMEM;
    kf_departure *o = NULL;
    kf_link *l;

    if (head_bytes > KOFN_HEAD_MAX)
        st = kf_fail(KOFN_INVAL, "a head of %zu bytes: %d at most", head_bytes,
                     KOFN_HEAD_MAX);
    else
        o = kf_new(1, sizeof *o);
    if (o) {
        *o = (kf_departure){.head_bytes = head_bytes};
        if (body)
            o->body = *body;
        if (head_bytes)
            memcpy(o->head, head, head_bytes);
        pthread_mutex_lock(&t->lock);
        l = kf_link_of(t, peer);
        st = l ? kf_net_send_packet(l, o, urgent)
               : kf_fail(KOFN_TRANSPORT, "peer %u is not there any more", peer);
        if (!st && t->dirty)
            kf_net_loop_pass(t);
        kf_net_loop_unlock(t);
    }
    if (st)
        kf_free(o);
    if (st < 0)
        kf_give_back(body);
    return st;
}

static void net_release(kofn_transport *base, void *own)
{
    kf_transport *t = (kf_transport *)base;

    if (!own)
        return;
    pthread_mutex_lock(&t->lock);
    kf_packets_free(t, own);
    pthread_mutex_unlock(&t->lock);
}

static bool net_arriving(kofn_transport *base, kofn_peer peer, kofn_arriving *a)
{
    kf_transport *t = (kf_transport *)base;
    const kf_arrival *in;
    const kf_link *l;

    pthread_mutex_lock(&t->lock);
    l = kf_link_of(t, peer);
    in = l ? l->channel[KF_BULK].coming : NULL;
    if (in) {
        *a = (kofn_arriving){.head_bytes = in->head_bytes,
                             .at = in->at,
                             .body_bytes = in->bytes,
                             .age = kf_clock() - in->since};
        memcpy(a->head, in->head, in->head_bytes);
    }
    kf_net_loop_unlock(t);
    return in != NULL;
}

/* ---- peers and news ------------------------------------------------------ */

static void net_forget(kofn_transport *base, kofn_peer peer)
{
    kf_transport *t = (kf_transport *)base;
    kf_link *l;

    pthread_mutex_lock(&t->lock);
    l = kf_link_of(t, peer);
    if (l)
        kf_join_forget(l);
    else
        kf_packets_drop(t, kf_packets_ended(t, peer));
    if (t->dirty)
        kf_net_loop_pass(t);
    kf_net_loop_unlock(t);
}

/* Returns the name of a peer. A mesh node without keys that connected to us has
 * the name of our dial that leads to the same node, if there is one. */
static const char *name_of(const kf_transport *t, const kf_link *l)
{
    for (size_t i = 0; t->mesh && !t->keys && !l->dial && i < t->out.count; i++)
        if (memcmp(t->out.dial[i]->node, l->node, KF_NODE) == 0)
            return t->out.dial[i]->address;
    return l->name;
}

/* Returns the peer's name, or that of its principal; valid until the next
 * call. */
static const char *words_about(kofn_transport *base, kofn_peer peer,
                               bool principal)
{
    kf_transport *t = (kf_transport *)base;
    const kf_link *l;

    pthread_mutex_lock(&t->lock);
    l = kf_link_of(t, peer);
    snprintf(t->text.words, sizeof t->text.words, "%s",
             !l          ? "a lost peer"
             : principal ? l->principal
                         : name_of(t, l));
    kf_net_loop_unlock(t);
    return t->text.words;
}

static const char *net_name_of(kofn_transport *base, kofn_peer peer)
{
    return words_about(base, peer, false);
}

static const char *net_principal_of(kofn_transport *base, kofn_peer peer)
{
    const char *words = words_about(base, peer, true);

    return words[0] ? words : NULL;
}

/* Reports one kind of connections that were ended since the last report, at
 * most every ten seconds. */
static const char *words_of(kf_transport *t)
{
    const kf_refused is = t->gate.refused, was = t->gate.known;
    char crowd[160];
    const struct {
        uint64_t n;
        const char *why;
    } of[] = {
        {is.full - was.full,
         "ended: file descriptors run out; raise ulimit -n"},
        {is.flood - was.flood, "ended: their messages were too long or "
                               "malformed"},
        {is.crowd - was.crowd, crowd},
        {is.keyless - was.keyless, NULL}, /* `keyless` has the words */
        {is.unresponsive - was.unresponsive,
         "ended: they sent no greeting in time"},
    };
    size_t i = 0, kinds = sizeof of / sizeof *of;

    while (i < kinds && of[i].n == 0)
        i++;
    if (i == kinds)
        return NULL;
    snprintf(crowd, sizeof crowd,
             "ended: there were more than %zu strangers, or more than %zu "
             "of them shook hands",
             t->gate.strangers_most, kf_shake_most(t));
    if (of[i].why)
        snprintf(t->text.words, sizeof t->text.words, "%llu connection%s %s",
                 (unsigned long long)of[i].n, of[i].n == 1 ? " was" : "s were",
                 of[i].why);
    else if (of[i].n == 1)
        snprintf(t->text.words, sizeof t->text.words, "%s", t->text.keyless);
    else
        snprintf(t->text.words, sizeof t->text.words,
                 "%.340s; %llu more were refused", t->text.keyless,
                 (unsigned long long)of[i].n - 1);
    t->gate.known = is;
    t->gate.reported_at = kf_clock();
    return t->text.words;
}

static const char *net_news(kofn_transport *base)
{
    kf_transport *t = (kf_transport *)base;
    const char *words = NULL;

    pthread_mutex_lock(&t->lock);
    if (kf_keys_news(t->keys, t->text.words, sizeof t->text.words))
        words = t->text.words;
    else if (!t->gate.reported_at || kf_clock() - t->gate.reported_at >= NEWS)
        words = words_of(t);
    kf_net_loop_unlock(t);
    return words;
}

static kofn_status net_reach(kofn_transport *base, const char *address)
{
    kf_transport *t = (kf_transport *)base;
    char who[KF_NAME];
    kofn_status st;

    pthread_mutex_lock(&t->lock);
    st = kf_keys_expect(t, &address, who);
    if (!st)
        st = kf_place_check(address, false, t->insecure || t->keys);
    if (!st)
        st = kf_dial_new(t, address, who);
    if (t->dirty)
        kf_net_loop_pass(t);
    kf_net_loop_unlock(t);
    return st;
}

/* ---- closing ------------------------------------------------------------- */

/* Ends all connections in order, and waits until the other ends have read
 * everything. */
static void take_leave(kf_transport *t, kofn_time linger)
{
    kofn_time until = kf_later(kf_clock(), linger);

    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->out.count; i++)
        t->out.dial[i]->over = true;
    kf_listen_end(t);
    for (kf_link *l = t->in.links, *after; l; l = after) {
        after = l->after;
        if (l->state != KF_PEER || linger <= 0) {
            kf_net_send_on(l); /* what the socket takes now */
            kf_link_end(l);
        } else {
            kf_net_send_last(l, until);
        }
    }
    kf_net_loop_linger(t, until);
}

static void net_close(kofn_transport *base, kofn_time linger)
{
    kf_transport *t = (kf_transport *)base;

    if (t->uv.looping)
        take_leave(t, linger);
    pthread_mutex_lock(&t->lock);
    while (t->in.links)
        kf_link_end(t->in.links);
    kf_net_loop_release(t);
    kf_net_loop_unlock(t);
    kf_net_loop_close(t);
    kf_keys_free(t->keys);
    kf_packets_end(t);
    for (size_t i = 0; i < t->out.count; i++)
        kf_dial_free(t->out.dial[i]);
    for (int i = 0; i < KF_SPARE; i++)
        kf_free(t->traffic.kept[i]);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->keep.wake);
    kf_free(t->out.dial);
    kf_free(t->in.peer);
    kf_free(t->bundle);
    kf_free(t);
}

/* ---- opening ------------------------------------------------------------- */

static kofn_status check(const kofn_net_options *o)
{
    if (o->silence &&
        (o->silence < 100 * KF_MILLI || o->silence > 3600 * KOFN_SECOND))
        return kf_fail(KOFN_INVAL, "silence of %g s: 0.1 s to an hour",
                       (double)o->silence / 1e9);
    if (o->body_max > BODY_MOST || o->peer_bytes > BODY_MOST)
        return kf_fail(KOFN_INVAL,
                       "bodies of %zu bytes, %zu of them ahead: 2^48 at most",
                       o->body_max, o->peer_bytes);
    if (o->peer_bytes && o->peer_bytes < PEER_LEAST)
        return kf_fail(KOFN_INVAL, "peer_bytes of %zu: %zu at least",
                       o->peer_bytes, PEER_LEAST);
    return KOFN_OK;
}

/* Checks that enough descriptors are left, so that opening does not fail
 * half-way. */
static kofn_status descriptors_left(void)
{
    struct rlimit files = {0};
    int fd[DESCRIPTORS], n = 0;

    kf_low_begin();
    while (n < DESCRIPTORS && (fd[n] = open("/dev/null", O_CLOEXEC)) >= 0)
        n++;
    for (int i = 0; i < n; i++)
        close(fd[i]);
    (void)kf_low_end(-1);
    getrlimit(RLIMIT_NOFILE, &files);
    return n == DESCRIPTORS
               ? KOFN_OK
               : kf_fail(KOFN_TRANSPORT,
                         "%d of %llu file descriptors are left, and %d are "
                         "needed; raise ulimit -n",
                         n, (unsigned long long)files.rlim_cur, DESCRIPTORS);
}

static kofn_status make(kf_transport **out, const kofn_net_options *o)
{
    kf_transport *t;

    TRY_ZERO(t, 1);
    t->base = (kofn_transport){.size = sizeof(kofn_transport),
                               .name = "net",
                               .send = net_send,
                               .wait = kf_net_loop_wait,
                               .release = net_release,
                               .forget = net_forget,
                               .close = net_close,
                               .name_of = net_name_of,
                               .news = net_news,
                               .principal_of = net_principal_of,
                               .arriving = net_arriving,
                               .threads = true};
    t->gate.listening = t->gate.spare = -1;
    t->base.body_max = o->body_max ? o->body_max : (size_t)64 << 20;
    t->peer_bytes = o->peer_bytes ? o->peer_bytes : (size_t)32 << 20;
    t->silence = o->silence ? o->silence : 800 * KF_MILLI;
    t->gate.strangers_most = o->strangers ? o->strangers : 1024;
    t->insecure = o->insecure;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->keep.wake, NULL);
    *out = t;
    return kf_net_loop_open(t);
}

typedef enum role { LISTENS = 1, DIALS = 2, BOTH = 3 } role;

static kofn_status begin(kf_transport *t, role r, const char *address,
                         const kofn_net_options *o)
{
    kofn_status st;
    char who[KF_NAME] = "";

    t->mesh = r == BOTH;
    /* The system ends a connection if its bytes are not acknowledged. So the
     * listener may send signs of life less often. */
    t->patience = r == DIALS ? 8 * t->silence : t->silence;
    TRY(kf_keys_open(t, r & LISTENS, r & DIALS, o));
    if (kf_keys_may_change(t->keys))
        uv_timer_start(&t->uv.look, kf_join_look, 1000, 1000);
    if (r == DIALS)
        TRY(kf_keys_expect(t, &address, who));
    TRY(kf_place_check(address, r & LISTENS, t->insecure || t->keys));
    /* TLS and Unix sockets change no byte unnoticed. */
    t->base.whole = t->keys || (!t->mesh && strncmp(address, "ipc://", 6) == 0);
    if (t->mesh && getrandom(t->node, KF_NODE, 0) != KF_NODE)
        return kf_fail(KOFN_IO, "the system has no random numbers to give");
    if (t->mesh)
        t->base.reach = net_reach;
    pthread_mutex_lock(&t->lock);
    if (r & LISTENS) {
        st = kf_listen(t, address);
    } else {
        snprintf(t->text.endpoint, sizeof t->text.endpoint, "%s", address);
        st = kf_dial_new(t, address, who);
    }
    kf_net_loop_pass(t);
    kf_net_loop_unlock(t);
    return st;
}

static kofn_status open_as(kofn_transport **out, role r, const char *address,
                           const kofn_net_options *given)
{
    kofn_net_options o = KOFN_NET_OPTIONS_INIT;
    kf_transport *t = NULL;
    kofn_status st;

    *out = NULL;
    TRY(kf_given(&o, sizeof o, given, "KOFN_NET_OPTIONS_INIT"));
    TRY(check(&o));
    TRY(descriptors_left());
    st = make(&t, &o);
    if (!st)
        st = begin(t, r, address, &o);
    if (!st)
        st = kf_net_loop_keep(t);
    if (!st)
        *out = &t->base;
    else if (t)
        net_close(&t->base, 0);
    return st;
}

kofn_status kofn_net_listen(kofn_transport **out, const char *address,
                            const kofn_net_options *o)
{
    return open_as(out, LISTENS, address, o);
}

kofn_status kofn_net_connect(kofn_transport **out, const char *address,
                             const kofn_net_options *o)
{
    return open_as(out, DIALS, address, o);
}

kofn_status kofn_net_mesh(kofn_transport **out, const char *address,
                          const kofn_net_options *o)
{
    return open_as(out, BOTH, address, o);
}

const char *kofn_net_endpoint(const kofn_transport *t)
{
    return ((const kf_transport *)t)->text.endpoint;
}

const char *kofn_net_trouble(const kofn_transport *base)
{
    kf_transport *t = (kf_transport *)(uintptr_t)base;

    pthread_mutex_lock(&t->lock);
    memcpy(t->text.asked, t->text.trouble, sizeof t->text.asked);
    pthread_mutex_unlock(&t->lock);
    return t->text.asked;
}
