/* doors.c -- the connections that others have made to us, by descriptor: who
 * is lost, who is still a stranger, and who costs more than it may.
 *
 * ZeroMQ accepts whoever comes, and holds what a connection sends until a
 * message is whole, however many frames it has; a single connection it cannot
 * be told to end.  So the gate looks after them: it counts who is connected
 * and asks the system how much each has sent, and what is too much is shut
 * down under ZeroMQ, which takes it for a loss like any other.
 *
 * ZeroMQ gives a descriptor to the next one before we hear that the last one is
 * gone, so nobody is ended who is not the one that came.
 *
 * A connection is a stranger until it belongs to a peer.  What it has sent
 * since the last whole message is in memory, or may be.
 */
#define _GNU_SOURCE /* dup3 */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRANGER_BYTES 4096              /* greeting and keys: 1 KiB */
#define STRANGER_TIME (10 * KOFN_SECOND) /* to say who one is        */
#define BEATS 1024   /* bytes a second that are no message: heartbeats  */
#define RESERVE 1024 /* descriptors for others than those who come      */
#define LOOK (10 * KF_MILLI)    /* while there are strangers */
#define GLANCE (100 * KF_MILLI) /* at peers                 */

typedef struct door {
    ino_t socket;  /* that came, whatever has its descriptor now         */
    uint64_t lost; /* the newest that was let in when one was lost here */
    uint64_t peer; /* the number of the peer's connection, or 0         */
    bool open, ended, heard;
    uint64_t since_bytes; /* sent before the last whole message     */
    uint64_t had;         /* sent since then, at the last look      */
    uint64_t bytes;       /* sent when it was last known to be alive, ... */
    kofn_time alive;      /* ... which was then; 0: not known yet         */
    kofn_time silence;    /* that is the end of it; KOFN_NEVER: none      */
    kofn_time since, looked;
    kofn_time end; /* when it is to be shut down; KOFN_NEVER: not yet */
} door;

struct kf_doors {
    pthread_mutex_t lock;
    door *door; /* by descriptor */
    size_t count, opened, peers, strangers;
    size_t most; /* that may be open, for want of descriptors */
    size_t hand; /* who made room last                        */
    int hold[2]; /* the first holds who is ended, and then the second */
    uint64_t ahead_bytes, message_bytes, newest;
    kofn_time listened;
    kf_refused turned;
    bool news, oom;
};

kofn_status kf_doors_new(kf_doors **out, size_t strangers, size_t ahead_bytes,
                         size_t message_bytes)
{
    kf_doors *d = kf_zero(1, sizeof *d);

    if (!d)
        return KOFN_NOMEM;
    d->strangers = strangers;
    d->most = SIZE_MAX;
    d->ahead_bytes = ahead_bytes;
    d->message_bytes = message_bytes;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, d->hold)) {
        int error = errno;

        kf_free(d);
        return kf_fail(KOFN_TRANSPORT,
                       "no sockets to watch over connections: %s; raise "
                       "ulimit -n",
                       strerror(error));
    }
    pthread_mutex_init(&d->lock, NULL);
    *out = d;
    return KOFN_OK;
}

void kf_doors_free(kf_doors *d)
{
    if (!d)
        return;
    pthread_mutex_destroy(&d->lock);
    close(d->hold[0]);
    close(d->hold[1]);
    kf_free(d->door);
    kf_free(d);
}

/* ---- comings and goings, as the gate hears of them ----------------------- */

static bool room_for(kf_doors *d, size_t fd)
{
    size_t count = d->count ? d->count : 64;
    door *now;

    if (fd < d->count)
        return true;
    while (count <= fd)
        count *= 2;
    now = kf_zero(count, sizeof *now);
    if (!now)
        return false;
    if (d->count)
        memcpy(now, d->door, d->count * sizeof *now);
    kf_free(d->door);
    d->door = now;
    d->count = count;
    return true;
}

/* The lowest free descriptor is what the system gives: one so high means that
 * those below are taken.  The rest is for files, and for those whom ZeroMQ
 * accepts before we hear of them.  More connections than there were then are
 * too many, until half of them are gone. */
static bool too_many(kf_doors *d, int fd)
{
    struct rlimit files;
    rlim_t keep;

    if (d->opened <= d->most / 2)
        d->most = SIZE_MAX;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        keep = files.rlim_cur / 2 < RESERVE ? files.rlim_cur / 2 : RESERVE;
        if ((rlim_t)fd >= files.rlim_cur - keep)
            d->most = kf_min(d->most, d->opened - 1);
    }
    return d->opened > d->most;
}

/* 0: there is none. */
static ino_t socket_at(int fd)
{
    struct stat s;

    return fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode) ? s.st_ino : 0;
}

/* It may be gone, and fd another's of whom we have not heard yet.  While we hold
 * it with a descriptor of our own it stays what it is; we have that already, for
 * there may be none left to be had. */
static void end_now(kf_doors *d, int fd, uint64_t *why)
{
    door *at = &d->door[fd];

    at->ended = true;
    if (dup3(fd, d->hold[0], O_CLOEXEC) < 0)
        return;
    if (at->socket && socket_at(d->hold[0]) == at->socket) {
        ++*why;
        shutdown(d->hold[0], SHUT_RDWR);
    }
    dup3(d->hold[1], d->hold[0], O_CLOEXEC);
}

/* Strangers make room for strangers: one of them goes, round and round, so that
 * who only sits there keeps nobody out.  Who has just come goes only where all
 * others are peers. */
static void make_room(kf_doors *d, int fd, uint64_t *why)
{
    for (size_t k = 0; k < d->count; k++) {
        door *at = &d->door[d->hand = (d->hand + 1) % d->count];

        if (at->open && !at->ended && !at->peer && (size_t)fd != d->hand) {
            end_now(d, (int)d->hand, why);
            return;
        }
    }
    end_now(d, fd, why);
}

/* Are there?  Those who were ended but are not gone yet do not count: ZeroMQ
 * keeps a connection from which it still had something to take when another
 * came under its name, until the socket is closed. */
static bool too_many_strangers(const kf_doors *d)
{
    size_t n = 0;

    if (d->opened <= d->strangers + d->peers)
        return false;
    for (size_t fd = 0; fd < d->count; fd++)
        n += d->door[fd].open && !d->door[fd].ended && !d->door[fd].peer;
    return n > d->strangers;
}

static void opens(kf_doors *d, int fd, kofn_time now)
{
    door *at = &d->door[fd];

    d->opened += !at->open;
    at->open = true;
    at->socket = socket_at(fd);
    at->ended = at->heard = false;
    at->since_bytes = at->had = 0;
    at->since = at->looked = now;
    at->alive = 0;
    at->end = at->silence = KOFN_NEVER;
    if (too_many(d, fd))
        make_room(d, fd, &d->turned.full);
    else if (too_many_strangers(d))
        make_room(d, fd, &d->turned.crowd);
}

static void closes(kf_doors *d, int fd)
{
    door *at = &d->door[fd];

    d->opened -= at->open;
    d->peers -= at->peer != 0;
    d->turned.silent += at->peer == 0;
    at->open = false;
    at->peer = 0;
    at->lost = d->newest;
}

bool kf_doors_event(kf_doors *d, bool accepted, int fd, kofn_time now)
{
    bool first;

    if (fd < 0)
        return false;
    pthread_mutex_lock(&d->lock);
    first = !d->news;
    if (!room_for(d, (size_t)fd))
        d->oom = true; /* everybody is as good as lost */
    else if (accepted)
        opens(d, fd, now);
    else
        closes(d, fd);
    d->news |= !accepted || d->oom;
    first = first && d->news;
    pthread_mutex_unlock(&d->lock);
    return first;
}

uint64_t kf_doors_let_in(kf_doors *d)
{
    uint64_t number;

    pthread_mutex_lock(&d->lock);
    number = ++d->newest;
    pthread_mutex_unlock(&d->lock);
    return number;
}

/* ---- what they send ------------------------------------------------------ */

/* Bytes that have come over it so far; false where the system does not count
 * them, which is so of Unix sockets. */
static bool received(int fd, uint64_t *bytes)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
        return false;
    *bytes = info.tcpi_bytes_received;
    return true;
}

/* Bytes that it has sent and nobody has taken in. */
static uint64_t waiting(int fd)
{
    int bytes = 0;

    return ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

/* Bytes that the system holds of it until they are taken in. */
static uint64_t room(int fd)
{
    int bytes = 0;
    socklen_t size = sizeof bytes;

    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Has it sent more than it may, since its last whole message?  Of a peer whole
 * messages may wait to be received, but only while nobody listens: what had come
 * by the last look, and was not a message when all that were had been received,
 * is the beginning of one that is too long, or still with the system. */
static bool floods(const kf_doors *d, door *at, int fd, kofn_time now)
{
    uint64_t beats = (uint64_t)((now - at->looked) / KF_MILLI * BEATS / 1000);
    bool listened = !at->heard && d->listened > at->looked;
    uint64_t had = at->had, bytes, most = STRANGER_BYTES;

    if (!received(fd, &bytes))
        return !at->peer && waiting(fd) > STRANGER_BYTES;
    if (at->heard || bytes - at->since_bytes < beats)
        at->since_bytes = bytes;
    else
        at->since_bytes += beats;
    at->had = bytes - at->since_bytes;
    at->heard = false;
    at->looked = now;
    if (at->peer) {
        most = room(fd) + d->ahead_bytes;
        if (listened && had > room(fd) + d->message_bytes)
            return true;
    }
    return at->had > most;
}

/* Has it sent nothing for too long?  ZeroMQ, which is told by each heartbeat how
 * soon there must be another, forgets that at whatever comes before: a process
 * that is stopped just after its HELLO it would wait for without end.  What is
 * noticed there is noticed first. */
static bool is_silent(door *at, int fd, kofn_time now)
{
    uint64_t bytes;

    if (at->silence == KOFN_NEVER || !received(fd, &bytes))
        return false;
    if (!at->alive || bytes != at->bytes)
        at->alive = now;
    at->bytes = bytes;
    return now - at->alive - GLANCE > at->silence;
}

static void inspect(kf_doors *d, int fd, kofn_time now)
{
    door *at = &d->door[fd];

    if (now >= at->end)
        end_now(d, fd, &d->turned.away);
    else if (floods(d, at, fd, now))
        end_now(d, fd, &d->turned.flood);
    else if (is_silent(at, fd, now))
        end_now(d, fd, &d->turned.dead);
    else if (!at->peer && d->listened - at->since > STRANGER_TIME)
        end_now(d, fd, &d->turned.mute);
}

kofn_time kf_doors_look(kf_doors *d, kofn_time now)
{
    kofn_time next;

    pthread_mutex_lock(&d->lock);
    for (size_t fd = 0; fd < d->count; fd++) {
        const door *at = &d->door[fd];

        if (at->open && !at->ended && (!at->peer || now - at->looked >= GLANCE))
            inspect(d, (int)fd, now);
    }
    next = d->opened > d->peers ? LOOK : d->opened ? GLANCE : KOFN_NEVER;
    pthread_mutex_unlock(&d->lock);
    return next;
}

/* ---- the transport's side ------------------------------------------------ */

bool kf_doors_lost(kf_doors *d, int fd, uint64_t number)
{
    bool lost;

    pthread_mutex_lock(&d->lock);
    lost = d->oom || ((size_t)fd < d->count && d->door[fd].lost >= number);
    pthread_mutex_unlock(&d->lock);
    return lost;
}

bool kf_doors_news(kf_doors *d)
{
    bool news;

    pthread_mutex_lock(&d->lock);
    news = d->news;
    d->news = false;
    pthread_mutex_unlock(&d->lock);
    return news;
}

void kf_doors_peer(kf_doors *d, int fd, uint64_t number, kofn_time silence)
{
    pthread_mutex_lock(&d->lock);
    if (!d->oom && room_for(d, (size_t)fd) && d->door[fd].lost < number) {
        d->peers += d->door[fd].peer == 0;
        d->door[fd].peer = number;
        d->door[fd].silence = silence;
    }
    pthread_mutex_unlock(&d->lock);
}

void kf_doors_heard(kf_doors *d, int fd)
{
    pthread_mutex_lock(&d->lock);
    if ((size_t)fd < d->count)
        d->door[fd].heard = true;
    pthread_mutex_unlock(&d->lock);
}

void kf_doors_listened(kf_doors *d, kofn_time now)
{
    pthread_mutex_lock(&d->lock);
    d->listened = now;
    pthread_mutex_unlock(&d->lock);
}

void kf_doors_end(kf_doors *d, int fd, uint64_t number, kofn_time when)
{
    pthread_mutex_lock(&d->lock);
    if ((size_t)fd < d->count && d->door[fd].lost < number &&
        when < d->door[fd].end)
        d->door[fd].end = when;
    pthread_mutex_unlock(&d->lock);
}

kf_refused kf_doors_refused(kf_doors *d)
{
    kf_refused turned;

    pthread_mutex_lock(&d->lock);
    turned = d->turned;
    pthread_mutex_unlock(&d->lock);
    return turned;
}
