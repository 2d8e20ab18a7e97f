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
#include <stdio.h>
#include <unistd.h>
#include <zmq.h>

struct kf_gate {
    void *zap, *watch;
    int wake;
    size_t strangers;
    pthread_t thread;

    pthread_mutex_t lock;
    uint64_t *lost; /* by descriptor */
    bool *open;
    size_t fds, opened; /* how many are open */
    uint64_t newest, failed;
    uint64_t known, heard; /* of those that are open; of all there were */
    bool news, oom;
};

/* ---- losses ---------------------------------------------------------- */

static bool room_for(kf_gate *g, size_t fd)
{
    size_t fds = g->fds ? g->fds : 64;
    uint64_t *lost;
    bool *open;

    if (fd < g->fds)
        return true;
    while (fds <= fd)
        fds *= 2;
    lost = kf_zero(fds, sizeof *lost);
    open = kf_zero(fds, sizeof *open);
    if (!lost || !open) {
        kf_free(lost);
        kf_free(open);
        return false;
    }
    if (g->fds) {
        memcpy(lost, g->lost, g->fds * sizeof *lost);
        memcpy(open, g->open, g->fds * sizeof *open);
    }
    kf_free(g->lost);
    kf_free(g->open);
    g->lost = lost;
    g->open = open;
    g->fds = fds;
    return true;
}

static void note(kf_gate *g, int event, int value)
{
    size_t fd = (size_t)value;

    if (event != ZMQ_EVENT_DISCONNECTED && event != ZMQ_EVENT_ACCEPTED) {
        g->failed++;
        return;
    }
    if (value < 0)
        return;
    if (!room_for(g, fd)) {
        g->oom = true; /* everybody is as good as lost */
    } else {
        bool opens = event == ZMQ_EVENT_ACCEPTED;

        g->opened += (size_t)opens - (size_t)g->open[fd];
        g->open[fd] = opens;
        if (opens)
            return;
        g->lost[fd] = g->newest;
    }
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

static void decide(kf_gate *g, const request *r)
{
    char user[192];
    uint64_t number;

    if (crowded(g)) {
        reply(g, r, "300", "too many strangers", "");
        return;
    }
    pthread_mutex_lock(&g->lock);
    number = ++g->newest;
    pthread_mutex_unlock(&g->lock);
    snprintf(user, sizeof user, "%llu %.100s", (unsigned long long)number,
             r->size[ADDRESS] ? (const char *)r->text[ADDRESS] : "ipc");
    reply(g, r, "200", "", user);
}

static void *keep(void *arg)
{
    kf_gate *g = arg;
    zmq_pollitem_t item[] = {{g->watch, 0, ZMQ_POLLIN, 0},
                             {g->zap, 0, ZMQ_POLLIN, 0}};
    request r;

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
                         size_t strangers, int wake)
{
    kf_gate *g = kf_zero(1, sizeof *g);

    if (!g)
        return KOFN_NOMEM;
    g->strangers = strangers;
    g->wake = wake;
    g->zap = zmq_socket(context, ZMQ_REP);
    g->watch = kf_socket_watch(context, router,
                               ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_ACCEPTED |
                                   ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                                   ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                   ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
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

uint64_t kf_gate_failed(kf_gate *g)
{
    uint64_t n;

    pthread_mutex_lock(&g->lock);
    n = g->failed;
    pthread_mutex_unlock(&g->lock);
    return n;
}

void kf_gate_known(kf_gate *g, uint64_t known, uint64_t heard)
{
    pthread_mutex_lock(&g->lock);
    g->known = known;
    g->heard = heard;
    pthread_mutex_unlock(&g->lock);
}
