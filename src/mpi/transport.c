/* transport.c -- the transport to the other ranks of an MPI job.
 *
 * MPI does not report dead ranks, so a rank that is silent for too long is
 * lost. Silence is measured on a clock that stops while this process does not
 * listen. After a loss MPI_Finalize may hang and is not called.
 *
 * Owns the peers. A process has one such transport, which may not wait in MPI.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "peers.h"

#include "base/clock.h"
#include "base/lent.h"

#define TICK (KOFN_SECOND / 100)
#define MILLISECOND (KOFN_SECOND / 1000)
#define SILENCE (5 * KOFN_SECOND)
/* a worker waits this many times longer for the coordinator */
#define PATIENCE 12
#define FINALIZE_MAX 10 /* seconds */

/* MPI exists once in a process and can be started once. */
static transport *the_transport;

/* ---- time ---------------------------------------------------------------- */

/* Sends a sign of life to peers that were sent nothing for a while, unless they
 * seem dead. Loses peers that were silent for too long. */
static void beat(transport *t, kofn_time at)
{
    for (size_t i = 0; i < t->peers; i++) {
        peer *q = &t->peer[i];

        kofn_time silent = t->listened - q->heard;

        if (at - q->spoken >= t->beat && silent <= 3 * t->beat)
            kf_mpi_say(&q->channel[URGENT], ALIVE);
        if (silent > q->patience && (q->live || !q->bye))
            kf_mpi_lose(q);
    }
    t->next_beat = at + t->beat / 4;
}

static kofn_status pass(transport *t)
{
    kofn_time at = kf_clock(), gone = at - t->polled;
    kofn_status st;

    t->polled = at;
    t->listened += gone < TICK ? gone : TICK;
    TRY(kf_mpi_poll());
    if (at >= t->next_beat)
        beat(t, at);
    st = t->failure;
    t->failure = KOFN_OK;
    return st;
}

/* Sleeps, longer if nothing has come for long. Sleeps are short while bodies
 * move, since MPI moves them only when it is called. */
static void nap(const transport *t, kofn_time idle, kofn_time atmost)
{
    kofn_time most = t->moving ? MILLISECOND / 50 : MILLISECOND;
    kofn_time ns = idle / 8 < most ? idle / 8 : most;
    struct timespec s = {0, (long)(ns < atmost ? ns : atmost)};

    if (idle > MILLISECOND / 20 && atmost > 0)
        nanosleep(&s, NULL);
}

/* ---- the transport ------------------------------------------------------- */

static kofn_status no_peer(transport *t, kofn_peer id)
{
    if (id >= t->peers)
        return t->host->fail(KOFN_TRANSPORT, "there is no peer %u among %zu",
                             (unsigned)id, t->peers);
    return t->host->fail(KOFN_TRANSPORT, "%s is not there any more",
                         t->peer[id].name);
}

static kofn_status mpi_send(kofn_transport *base, kofn_peer id,
                            const void *head, size_t head_bytes,
                            const kofn_lent *body, bool urgent)
{
    transport *t = (transport *)base;
    kofn_status st;
    channel *l;

    if (id >= t->peers || !t->peer[id].live) {
        st = no_peer(t, id);
    } else if (head_bytes > KOFN_HEAD_MAX) {
        st = t->host->fail(KOFN_INVAL, "a head of %zu bytes exceeds %d",
                           head_bytes, KOFN_HEAD_MAX);
    } else {
        l = &t->peer[id].channel[urgent ? URGENT : BULK];
        if (l->sent - l->acked >= WINDOW)
            return KOFN_AGAIN;
        st = kf_mpi_post(l, PACKET, head, head_bytes, body);
        if (!st) {
            l->sent++;
            return KOFN_OK;
        }
    }
    kf_give_back(body);
    return st;
}

static bool all_said_goodbye(const transport *t)
{
    for (size_t i = 0; i < t->peers; i++)
        if (!t->peer[i].bye || t->peer[i].lost)
            return false;
    return !t->broken;
}

static kofn_status mpi_wait(kofn_transport *base, kofn_time atmost,
                            kofn_packet *p)
{
    transport *t = (transport *)base;
    kofn_time began = kf_clock(), idle = 0;

    for (;;) {
        if (kf_mpi_next(t, p))
            return KOFN_OK;
        TRY(pass(t));
        if (kf_mpi_next(t, p))
            return KOFN_OK;
        if (!t->live) {
            t->base.over = all_said_goodbye(t);
            return t->host->fail(KOFN_TRANSPORT, "all other ranks are gone");
        }
        idle = kf_clock() - began;
        if (idle >= atmost)
            return KOFN_AGAIN;
        nap(t, idle, atmost - idle);
    }
}

static void mpi_release(kofn_transport *base, void *own)
{
    ((transport *)base)->host->drop(own);
}

static void mpi_forget(kofn_transport *base, kofn_peer id)
{
    transport *t = (transport *)base;
    peer *q;

    if (id >= t->peers || t->peer[id].forgotten)
        return;
    q = &t->peer[id];
    kf_mpi_say_last(q, FORGOTTEN);
    kf_mpi_hush(q);
}

static const char *mpi_name_of(kofn_transport *base, kofn_peer id)
{
    transport *t = (transport *)base;

    return id < t->peers ? t->peer[id].name : "no peer";
}

/* ---- start and end ------------------------------------------------------- */

static bool sending(const transport *t)
{
    for (const outgoing *o = t->outs; o; o = o->next)
        if (!o->peer->lost)
            return true;
    return false;
}

static void say_goodbye(transport *t)
{
    kofn_packet none;

    t->closed = true;
    for (size_t i = 0; i < t->peers; i++) {
        kf_mpi_say_last(&t->peer[i], t->broken ? BROKEN : BYE);
        kf_mpi_hush(&t->peer[i]);
    }
    while (kf_mpi_next(t, &none))
        ; /* drops everything, since all peers are forgotten */
}

/* Closes the transport. Bodies are returned to the caller, even if a lost or
 * very slow rank may still read them. Such a rank was reported as lost, or is
 * notified that it counts as lost. MPI is not called again in that case. */
static void mpi_close(kofn_transport *base, kofn_time linger)
{
    transport *t = (transport *)base;
    kofn_time began = kf_clock(), idle = 0;

    if (t->closed)
        return;
    say_goodbye(t);
    while (sending(t) && idle < linger && pass(t) >= 0) {
        idle = kf_clock() - began;
        nap(t, idle, linger - idle);
    }
    for (outgoing *o = t->outs; o; o = o->next) {
        if (!o->body.done)
            continue;
        kf_give_back(&o->body);
        o->body.done = NULL;
        t->frozen = true;
    }
}

static bool all_gone(const transport *t)
{
    for (size_t i = 0; i < t->peers; i++)
        if (!t->peer[i].bye && !t->peer[i].lost)
            return false;
    return true;
}

static volatile sig_atomic_t exit_code;

static void leave(int signal)
{
    (void)signal;
    _exit(exit_code);
}

static bool finalize(transport *t, int code)
{
    struct sigaction act = {.sa_handler = leave};

    exit_code = code;
    sigaction(SIGALRM, &act, NULL);
    alarm(FINALIZE_MAX);
    if (!kf_mpi_withdraw())
        return false;
    kf_mpi_finish();
    alarm(0);
    t->host->drop(t->peer);
    t->host->drop(t);
    the_transport = NULL;
    return true;
}

static int mpi_end(int code)
{
    transport *t = the_transport;
    kofn_time began = kf_clock();

    if (!t)
        return code;
    mpi_close(&t->base, KOFN_SECOND);
    while (!t->frozen && !(all_gone(t) && !sending(t)) && pass(t) >= 0)
        nap(t, kf_clock() - began, KOFN_NEVER);
    fflush(NULL);
    t->ended = true;
    if (!t->broken && !t->frozen && all_gone(t) && finalize(t, code))
        return code;
    _exit(code);
}

static void peer_init(transport *t, size_t i, const kofn_mpi_options *opt)
{
    kofn_time silence = opt->silence ? opt->silence : SILENCE;
    int own = t->world.rank;
    peer *q = &t->peer[i];
    /* A node of a mesh has a number among its peers, but is no peer of
     * itself. */
    bool self = opt->mesh && (int)i == own;

    q->t = t;
    q->rank = opt->mesh ? (int)i : own ? 0 : (int)i + 1;
    q->patience = silence;
    if (!opt->mesh && own)
        q->patience = opt->patience ? opt->patience : PATIENCE * silence;
    q->live = !self;
    q->forgotten = q->bye = q->lost = self;
    snprintf(q->name, sizeof q->name, "rank %d", q->rank);
    for (int l = 0; l < CHANNELS; l++)
        kf_mpi_channel(&q->channel[l], q, TAG_CHANNEL + l);
}

static kofn_status greet(transport *t)
{
    for (size_t i = 0; i < t->peers; i++) {
        peer *q = &t->peer[i];

        if (!q->live)
            continue;
        t->live++;
        TRY(kf_mpi_came(q));
        for (int l = 0; l < CHANNELS; l++)
            kf_mpi_listen(&q->channel[l]);
        kf_mpi_say(&q->channel[URGENT], HELLO);
    }
    return t->failure;
}

static kofn_status mpi_open(const kf_mpi_host *host, kofn_transport **out,
                            const kofn_mpi_options *opt, kofn_mpi_info *info)
{
    kofn_time silence = opt->silence ? opt->silence : SILENCE;
    transport *t = host->make(1, sizeof *t);
    kofn_status st;

    if (!t)
        return KOFN_NOMEM;
    t->host = host;
    t->base = (kofn_transport){.size = sizeof(kofn_transport),
                               .name = "mpi",
                               .send = mpi_send,
                               .wait = mpi_wait,
                               .release = mpi_release,
                               .forget = mpi_forget,
                               .close = mpi_close,
                               .name_of = mpi_name_of,
                               .body_max = SIZE_MAX / 2};
    st = kf_mpi_begin(host, &t->world);
    if (st) {
        host->drop(t);
        return st;
    }
    the_transport = t;
    info->rank = (unsigned)t->world.rank;
    info->ranks = (unsigned)t->world.ranks;
    snprintf(info->library, sizeof info->library, "%s", t->world.library);
    if (t->world.ranks < 2)
        return host->fail(KOFN_INVAL, "this job has one rank; start at least "
                                      "two, as with mpirun -n 2");
    t->beat = silence / 10 < KOFN_SECOND ? silence / 10 : KOFN_SECOND;
    t->polled = kf_clock();
    t->peers = opt->mesh || !t->world.rank ? (size_t)t->world.ranks : 1;
    t->peers -= !opt->mesh && !t->world.rank;
    t->peer = host->make(t->peers, sizeof *t->peer);
    if (!t->peer) {
        t->peers = 0;
        return KOFN_NOMEM;
    }
    for (size_t i = 0; i < t->peers; i++)
        peer_init(t, i, opt);
    TRY(greet(t));
    *out = &t->base;
    return KOFN_OK;
}

const kf_mpi_plugin kofn_mpi_plugin = {KF_MPI_VERSION, mpi_open, mpi_end};
