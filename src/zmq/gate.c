/* gate.c -- the thread that lets connections in and sees them go.
 *
 * ZeroMQ asks before it lets anybody in (ZAP, RFC 27; here also where nothing
 * is encrypted), tells of lost connections by descriptor only, and gives a
 * descriptor to the next one at once.  So the gate numbers connections as it
 * lets them in, and keeps for each descriptor the number that was the newest
 * when a connection with it was lost.  Connection `number` on fd is lost if
 * that is at least `number`: it was let in before, and nobody else can have
 * had fd since.  For this losses are read before anybody is let in.
 */
#include "inside.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <zmq.h>

struct kf_gate {
    void *zap, *watch;
    int wake;
    const kf_keys *allowed;
    size_t strangers;
    pthread_t thread;

    pthread_mutex_t lock;
    uint64_t *lost;  /* by descriptor */
    uint64_t *spoke; /* by descriptor: who said HELLO there, or 0 */
    bool *open;
    size_t fds, opened, known; /* how many are open, and have spoken */
    uint64_t newest, heard;    /* let in; of those, have spoken */
    uint64_t silent;           /* lost before they did */
    bool news, oom;
};

/* ---- losses ---------------------------------------------------------- */

static bool grow(void *p, size_t was, size_t is, size_t size)
{
    void *old, *now = kf_zero(is, size);

    if (!now)
        return false;
    memcpy(&old, p, sizeof old);
    if (was)
        memcpy(now, old, was * size);
    kf_free(old);
    memcpy(p, &now, sizeof now);
    return true;
}

static bool room_for(kf_gate *g, size_t fd)
{
    size_t fds = g->fds ? g->fds : 64;

    if (fd < g->fds)
        return true;
    while (fds <= fd)
        fds *= 2;
    if (!grow(&g->lost, g->fds, fds, sizeof *g->lost) ||
        !grow(&g->spoke, g->fds, fds, sizeof *g->spoke) ||
        !grow(&g->open, g->fds, fds, sizeof *g->open))
        return false;
    g->fds = fds;
    return true;
}

static void opens(kf_gate *g, size_t fd)
{
    g->opened += !g->open[fd];
    g->open[fd] = true;
}

static void closes(kf_gate *g, size_t fd)
{
    g->opened -= g->open[fd];
    g->open[fd] = false;
    if (g->spoke[fd])
        g->known--;
    else
        g->silent++;
    g->spoke[fd] = 0;
    g->lost[fd] = g->newest;
}

static void note(kf_gate *g, int event, int value)
{
    size_t fd = (size_t)value;

    if (value < 0)
        return;
    if (!room_for(g, fd))
        g->oom = true; /* everybody is as good as lost */
    else if (event == ZMQ_EVENT_ACCEPTED)
        opens(g, fd);
    else
        closes(g, fd);
    if (event == ZMQ_EVENT_ACCEPTED && !g->oom)
        return;
    if (!g->news && write(g->wake, "", 1) < 0) {
        /* the pipe is full: it will wake up */
    }
    g->news = true;
}

static void drain(kf_gate *g)
{
    int event, value;

    while ((event = kf_socket_event(g->watch, &value))) {
        pthread_mutex_lock(&g->lock);
        note(g, event, value);
        pthread_mutex_unlock(&g->lock);
    }
}

/* ---- ZAP ------------------------------------------------------------- */

enum { VERSION, REQUEST, DOMAIN, ADDRESS, ROUTING_ID, MECHANISM, KEY, FIELDS };

typedef struct request {
    unsigned char text[FIELDS][256];
    size_t size[FIELDS];
    size_t fields;
} request;

/* Frames that are too long or too many are left out: nobody is let in. */
static bool receive(kf_gate *g, request *r)
{
    int more = 1;

    *r = (request){0};
    while (more) {
        zmq_msg_t m;
        size_t n;

        zmq_msg_init(&m);
        if (zmq_msg_recv(&m, g->zap, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&m);
            return false;
        }
        n = zmq_msg_size(&m);
        if (r->fields < FIELDS && n < sizeof r->text[0]) {
            memcpy(r->text[r->fields], zmq_msg_data(&m), n);
            r->size[r->fields] = n;
        }
        r->fields++;
        more = zmq_msg_more(&m);
        zmq_msg_close(&m);
    }
    return true;
}

static void reply(kf_gate *g, const request *r, const char *status,
                  const char *text, const char *user)
{
    zmq_send(g->zap, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(g->zap, r->text[REQUEST], r->size[REQUEST], ZMQ_SNDMORE);
    zmq_send(g->zap, status, 3, ZMQ_SNDMORE);
    zmq_send(g->zap, text, strlen(text), ZMQ_SNDMORE);
    zmq_send(g->zap, user, strlen(user), ZMQ_SNDMORE);
    zmq_send(g->zap, "", 0, 0);
}

/* How many were let in and are still silent is not told, but these are two
 * bounds of it: of those who are connected, and of those who were let in. */
static bool crowded(kf_gate *g)
{
    bool yes;

    pthread_mutex_lock(&g->lock);
    yes = g->opened >= g->strangers + g->known &&
          g->newest >= g->strangers + g->heard;
    pthread_mutex_unlock(&g->lock);
    return yes;
}

static bool is(const request *r, size_t field, const char *text)
{
    return r->size[field] == strlen(text) &&
           memcmp(r->text[field], text, r->size[field]) == 0;
}

static bool welcome(const kf_gate *g, const request *r)
{
    if (!is(r, VERSION, "1.0"))
        return false;
    if (!g->allowed)
        return is(r, MECHANISM, "NULL");
    return is(r, MECHANISM, "CURVE") && r->size[KEY] == KF_KEY &&
           kf_keys_have(g->allowed, r->text[KEY]);
}

/* Who is let in is called by number, address and key. */
static void decide(kf_gate *g, const request *r)
{
    char user[192], key[KF_KEY_TEXT + 1] = "";
    uint64_t number;

    if (!welcome(g, r)) {
        reply(g, r, "400", "not on the list", "");
        return;
    }
    if (crowded(g)) {
        reply(g, r, "300", "too many strangers", "");
        return;
    }
    pthread_mutex_lock(&g->lock);
    number = ++g->newest;
    pthread_mutex_unlock(&g->lock);
    if (g->allowed)
        zmq_z85_encode(key, r->text[KEY], KF_KEY);
    snprintf(user, sizeof user, "%llu %.60s%s%s", (unsigned long long)number,
             r->size[ADDRESS] ? (const char *)r->text[ADDRESS] : "ipc",
             g->allowed ? ", key " : "", key);
    reply(g, r, "200", "", user);
}

static void *keep(void *arg)
{
    kf_gate *g = arg;
    zmq_pollitem_t item[] = {{g->watch, 0, ZMQ_POLLIN, 0},
                             {g->zap, 0, ZMQ_POLLIN, 0}};
    request r;
    sigset_t all;

    sigfillset(&all); /* signals are for others: no call is interrupted here */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (zmq_poll(item, 2, -1) >= 0) { /* until the context is shut down */
        drain(g);
        if (receive(g, &r)) {
            drain(g); /* what it had before the request was made */
            decide(g, &r);
        }
    }
    zmq_close(g->watch);
    zmq_close(g->zap);
    return NULL;
}

/* ---- the transport's side -------------------------------------------- */

kofn_status kf_gate_open(kf_gate **out, void *context, void *router,
                         const kf_keys *allowed, size_t strangers, int wake)
{
    kf_gate *g = kf_zero(1, sizeof *g);

    if (!g)
        return KOFN_NOMEM;
    g->allowed = allowed;
    g->strangers = strangers;
    g->wake = wake;
    g->zap = zmq_socket(context, ZMQ_REP);
    g->watch = kf_socket_watch(context, router,
                               ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_ACCEPTED);
    pthread_mutex_init(&g->lock, NULL);
    if (!g->zap || !g->watch || zmq_bind(g->zap, "inproc://zeromq.zap.01") ||
        pthread_create(&g->thread, NULL, keep, g)) {
        if (g->zap)
            zmq_close(g->zap);
        if (g->watch)
            zmq_close(g->watch);
        pthread_mutex_destroy(&g->lock);
        kf_free(g);
        return kf_fail(KOFN_TRANSPORT, "no thread or socket to watch over "
                                       "connections; raise ulimit -n and -u");
    }
    *out = g;
    return KOFN_OK;
}

void kf_gate_close(kf_gate *g)
{
    if (!g)
        return;
    pthread_join(g->thread, NULL);
    pthread_mutex_destroy(&g->lock);
    kf_free(g->lost);
    kf_free(g->spoke);
    kf_free(g->open);
    kf_free(g);
}

bool kf_gate_lost(kf_gate *g, int fd, uint64_t number)
{
    bool lost;

    pthread_mutex_lock(&g->lock);
    lost = g->oom || ((size_t)fd < g->fds && g->lost[fd] >= number);
    pthread_mutex_unlock(&g->lock);
    return lost;
}

bool kf_gate_news(kf_gate *g)
{
    bool news;

    pthread_mutex_lock(&g->lock);
    news = g->news;
    g->news = false;
    pthread_mutex_unlock(&g->lock);
    return news;
}

bool kf_gate_heard(kf_gate *g, int fd, uint64_t number)
{
    bool there = false;

    pthread_mutex_lock(&g->lock);
    if (!g->oom && room_for(g, (size_t)fd) && g->lost[fd] < number) {
        g->known += !g->spoke[fd];
        g->heard += !g->spoke[fd];
        g->spoke[fd] = number;
        there = true;
    }
    pthread_mutex_unlock(&g->lock);
    return there;
}

uint64_t kf_gate_silent(kf_gate *g)
{
    uint64_t n;

    pthread_mutex_lock(&g->lock);
    n = g->silent;
    pthread_mutex_unlock(&g->lock);
    return n;
}
