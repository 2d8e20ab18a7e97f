/* gate.c -- the thread that lets connections in and sees them go.
 *
 * ZeroMQ asks before it lets anybody in (ZAP, RFC 27; here also where nothing
 * is encrypted), tells of lost connections by descriptor only, and gives a
 * descriptor to the next one at once.  So the gate numbers connections as it
 * lets them in, and keeps for each descriptor the number that was the newest
 * when a connection with it was lost (doors.c).  Connection `number` on fd is
 * lost if that is at least `number`: it was let in before, and nobody else can
 * have had fd since.  For this losses are read before anybody is let in.
 */
#include "inside.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include <zmq.h>

#define LOOK 1000            /* milliseconds */
#define REST (10 * KF_MILLI) /* between looks at the doors ... */
#define REST_FOR 16 /* ... or so many times as long as the last one took */

struct kf_gate {
    void *zap, *watch;
    int wake;
    kf_list *allowed;
    kf_doors *doors;
    pthread_t thread;
};

/* ---- losses -------------------------------------------------------------- */

static void drain(kf_gate *g)
{
    int event, value;

    while ((event = kf_zmq_socket_event(g->watch, &value)))
        if (kf_doors_event(g->doors, event == ZMQ_EVENT_ACCEPTED, value,
                           kf_clock()) &&
            write(g->wake, "", 1) < 0) {
            /* the pipe is full: it will wake up */
        }
}

/* ---- ZAP ----------------------------------------------------------------- */

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

static bool is(const request *r, size_t field, const char *text)
{
    return r->size[field] == strlen(text) &&
           memcmp(r->text[field], text, r->size[field]) == 0;
}

static bool welcome(const kf_gate *g, const request *r, char name[KF_KEY_NAME])
{
    if (!is(r, VERSION, "1.0"))
        return false;
    if (!g->allowed)
        return is(r, MECHANISM, "NULL");
    return is(r, MECHANISM, "CURVE") && r->size[KEY] == KF_KEY &&
           kf_list_find(g->allowed, r->text[KEY], name);
}

/* Who is let in is called by number, address, key and the key's name. */
static void decide(kf_gate *g, const request *r)
{
    char user[192], key[KF_KEY_TEXT + 1] = "-", name[KF_KEY_NAME] = "-";
    uint64_t number;

    if (!welcome(g, r, name)) {
        reply(g, r, "400", "not on the list", "");
        return;
    }
    number = kf_doors_let_in(g->doors);
    if (g->allowed)
        zmq_z85_encode(key, r->text[KEY], KF_KEY);
    snprintf(user, sizeof user, "%llu %.60s %s %s", (unsigned long long)number,
             r->size[ADDRESS] ? (const char *)r->text[ADDRESS] : "-", key,
             name);
    reply(g, r, "200", "", user);
}

/* Now and then at whose keys come in. */
static void look(kf_gate *g, kofn_time *looked)
{
    if (!g->allowed || kf_clock() - *looked < LOOK * KF_MILLI)
        return;
    if (kf_list_look(g->allowed) && write(g->wake, "", 1) < 0) {
        /* the pipe is full: it will wake up */
    }
    *looked = kf_clock();
}

/* Milliseconds that it may sleep. */
static long pause_of(const kf_gate *g, kofn_time next)
{
    if (next == KOFN_NEVER)
        return g->allowed ? LOOK : -1;
    return g->allowed && next > LOOK * KF_MILLI
               ? LOOK
               : (long)((next + KF_MILLI - 1) / KF_MILLI);
}

/* Not at every request and event: of those who come all at once there are as
 * many as there are doors.  How soon to look again; *due: not before then. */
static kofn_time look_at_doors(kf_gate *g, kofn_time *due)
{
    kofn_time now = kf_clock(), next, took;

    if (now < *due)
        return *due - now;
    next = kf_doors_look(g->doors, now);
    took = kf_clock() - now;
    *due = now + (REST_FOR * took > REST ? REST_FOR * took : REST);
    return next;
}

static void *keep(void *arg)
{
    kf_gate *g = arg;
    zmq_pollitem_t item[] = {{g->watch, 0, ZMQ_POLLIN, 0},
                             {g->zap, 0, ZMQ_POLLIN, 0}};
    kofn_time looked = kf_clock(), due = 0, next = KOFN_NEVER;
    request r;
    sigset_t all;

    sigfillset(&all); /* signals are for others: no call is interrupted here */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    /* Until the context is shut down. */
    while (zmq_poll(item, 2, pause_of(g, next)) >= 0) {
        drain(g);
        look(g, &looked);
        next = look_at_doors(g, &due);
        if (receive(g, &r)) {
            drain(g); /* what it had before the request was made */
            decide(g, &r);
        }
    }
    zmq_close(g->watch);
    zmq_close(g->zap);
    return NULL;
}

/* ---- the transport's side ------------------------------------------------ */

kofn_status kf_gate_open(kf_gate **out, void *context, void *router,
                         kf_list *allowed, kf_doors *doors, int wake)
{
    kf_gate *g = kf_zero(1, sizeof *g);

    if (!g)
        return KOFN_NOMEM;
    g->allowed = allowed;
    g->doors = doors;
    g->wake = wake;
    g->zap = zmq_socket(context, ZMQ_REP);
    g->watch = kf_zmq_socket_watch(context, router,
                                   ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_ACCEPTED);
    if (!g->zap || !g->watch || zmq_bind(g->zap, "inproc://zeromq.zap.01") ||
        pthread_create(&g->thread, NULL, keep, g)) {
        if (g->zap)
            zmq_close(g->zap);
        if (g->watch)
            zmq_close(g->watch);
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
    kf_free(g);
}
