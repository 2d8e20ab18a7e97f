/* transport.c -- the transport to the other ranks of an MPI job.
 *
 * MPI does not report dead ranks, so a rank that is silent for too long is
 * lost. Silence is measured on a clock that stops while this process does not
 * listen. After a loss MPI_Finalize may hang and is not called.
 *
 * Owns the peers. A process has one transport that starts and ends MPI, and any
 * number that are attached to communicators of the program. None waits in MPI.
 */
#include <sched.h>
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
#define SILENCE_ATTACHED (60 * KOFN_SECOND)
/* a worker waits this many times longer for the coordinator */
#define PATIENCE 12
#define POLLS 16 /* most polls without a look at the clock */
/* a body that MPI can move faster than sleeps allow moves within this time */
#define MOVING (10 * MILLISECOND)
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
    t->polls = 0;
    t->listened += gone < TICK ? gone : TICK;
    TRY(kf_mpi_poll(&t->world));
    if (at >= t->next_beat)
        beat(t, at);
    st = t->failure;
    t->failure = KOFN_OK;
    return st;
}

/* Sleeps, longer if nothing has come for long. MPI moves bodies only when it is
 * called, so the processor is only offered to others at first while they move,
 * and sleeps are short then. */
static void nap(transport *t, kofn_time idle, kofn_time atmost)
{
    kofn_time most = t->moving ? MILLISECOND / 50 : MILLISECOND;
    kofn_time ns = idle / 8 < most ? idle / 8 : most;
    struct timespec s = {0, (long)(ns < atmost ? ns : atmost)};

    if (idle <= MILLISECOND / 20 || atmost <= 0)
        return;
    if (t->moving && t->polled - t->moved < MOVING) {
        sched_yield();
        return;
    }
    nanosleep(&s, NULL);
    t->polls = POLLS;
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
    kofn_time began = 0, idle;

    t->returned = false;
    for (;;) {
        if (kf_mpi_next(t, p))
            return KOFN_OK;
        TRY(++t->polls < POLLS ? kf_mpi_poll(&t->world) : pass(t));
        if (kf_mpi_next(t, p))
            return KOFN_OK;
        if (!t->live) {
            t->base.over = all_said_goodbye(t);
            return t->host->fail(KOFN_TRANSPORT, "all other ranks are gone");
        }
        if (t->returned || atmost <= 0)
            return KOFN_AGAIN;
        if (t->polls)
            continue;
        began = began ? began : t->polled;
        idle = t->polled - began;
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
static void take_bodies_back(transport *t)
{
    for (outgoing *o = t->outs; o; o = o->next) {
        if (!o->body.done)
            continue;
        kf_give_back(&o->body);
        o->body.done = NULL;
        t->frozen = true;
    }
}

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
    take_bodies_back(t);
}

static bool all_gone(const transport *t)
{
    for (size_t i = 0; i < t->peers; i++)
        if (!t->peer[i].bye && !t->peer[i].lost)
            return false;
    return true;
}

/* Waits until all peers have closed too or are lost, and nothing is sent. */
static void see_off(transport *t)
{
    kofn_time began = kf_clock();

    while (!t->frozen && !(all_gone(t) && !sending(t)) && pass(t) >= 0)
        nap(t, kf_clock() - began, KOFN_NEVER);
}

static void free_transport(transport *t)
{
    t->host->drop(t->peer);
    t->host->drop(t);
}

/* Closes an attached transport, and leaves MPI to the program. After the loss
 * of a rank its memory is kept if MPI may still write there. */
static void mpi_detach(kofn_transport *base, kofn_time linger)
{
    transport *t = (transport *)base;

    (void)linger; /* a communicator is freed by all of its ranks */
    say_goodbye(t);
    see_off(t);
    take_bodies_back(t);
    t->ended = true;
    if (t->frozen || !kf_mpi_withdraw(&t->world))
        return;
    kf_mpi_leave(&t->world, t->broken || !all_gone(t));
    free_transport(t);
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
    if (!kf_mpi_withdraw(&t->world))
        return false;
    kf_mpi_finish(&t->world);
    alarm(0);
    free_transport(t);
    the_transport = NULL;
    return true;
}

static int mpi_end(int code)
{
    transport *t = the_transport;

    if (!t)
        return code;
    mpi_close(&t->base, KOFN_SECOND);
    see_off(t);
    fflush(NULL);
    t->ended = true;
    if (!t->broken && !t->frozen && all_gone(t) && finalize(t, code))
        return code;
    _exit(code);
}

/* An attached rank may do something else before it listens, and the program's
 * MPI itself notices most losses. */
static kofn_time silence_of(const transport *t, const kofn_mpi_options *opt)
{
    return opt->silence  ? opt->silence
           : t->attached ? SILENCE_ATTACHED
                         : SILENCE;
}

static kofn_time patience_of(const transport *t, const kofn_mpi_options *opt)
{
    return opt->patience ? opt->patience
           : t->attached ? KOFN_NEVER
                         : PATIENCE * silence_of(t, opt);
}

static void peer_init(transport *t, size_t i, const kofn_mpi_options *opt)
{
    int own = t->world.rank, root = (int)opt->root;
    peer *q = &t->peer[i];
    /* A node of a mesh has a number among its peers, but is no peer of
     * itself. */
    bool self = opt->mesh && (int)i == own;

    q->t = t;
    q->rank = opt->mesh     ? (int)i
              : own != root ? root
                            : (int)i + ((int)i >= root);
    q->patience =
        opt->mesh || own == root ? silence_of(t, opt) : patience_of(t, opt);
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

static transport *new_transport(const kf_mpi_host *host)
{
    transport *t = host->make(1, sizeof *t);

    if (!t)
        return NULL;
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
    return t;
}

/* Begins to exchange packets with the peers. */
static kofn_status meet(transport *t, const kofn_mpi_options *opt)
{
    bool all = opt->mesh || t->world.rank == (int)opt->root;
    kofn_time beat = silence_of(t, opt) / 10;

    t->beat = beat < KOFN_SECOND ? beat : KOFN_SECOND;
    t->polled = kf_clock();
    t->peers = !all ? 1 : (size_t)t->world.ranks - !opt->mesh;
    t->peer = t->host->make(t->peers, sizeof *t->peer);
    if (!t->peer) {
        t->peers = 0;
        return KOFN_NOMEM;
    }
    for (size_t i = 0; i < t->peers; i++)
        peer_init(t, i, opt);
    return greet(t);
}

static kofn_status mpi_open(const kf_mpi_host *host, kofn_transport **out,
                            const kofn_mpi_options *opt, kofn_mpi_info *info)
{
    transport *t = new_transport(host);
    kofn_status st;

    if (!t)
        return KOFN_NOMEM;
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
    if (!opt->mesh && opt->root >= info->ranks)
        return host->fail(KOFN_INVAL, "root %u is not one of %u ranks",
                          opt->root, info->ranks);
    TRY(meet(t, opt));
    *out = &t->base;
    return KOFN_OK;
}

static kofn_status mpi_attach(const kf_mpi_host *host, kofn_transport **out,
                              int comm, const kofn_mpi_options *opt)
{
    transport *t = new_transport(host);
    kofn_status st;

    if (!t)
        return KOFN_NOMEM;
    t->base.close = mpi_detach;
    t->attached = true;
    st = kf_mpi_join(host, comm, opt, &t->world);
    if (st) {
        host->drop(t);
        return st;
    }
    st = meet(t, opt);
    if (st)
        mpi_detach(&t->base, 0);
    else
        *out = &t->base;
    return st;
}

const kf_mpi_plugin kofn_mpi_plugin = {KF_MPI_VERSION, mpi_open, mpi_attach,
                                       mpi_end};
