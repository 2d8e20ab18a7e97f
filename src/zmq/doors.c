/* doors.c -- the connections that others have made to us, by descriptor: who
 * is lost, who is still a stranger, and who costs more than it may.
 *
 * ZeroMQ accepts whoever comes, and holds what a connection sends until a
 * message is whole, however many frames it has; a single connection it cannot
 * be told to end.  So the gate looks after them: it counts who is connected
 * and asks the system how much each has sent, and what is too much is shut
 * down under ZeroMQ, which takes it for a loss like any other.
 *
 * A connection is a stranger until it belongs to a peer.  What it has sent
 * since the last whole message is in memory, or may be.
 */
#include "inside.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define STRANGER_BYTES ((uint64_t)64 << 10) /* greeting and keys: 1 KiB */
#define STRANGER_WAITING 4096 /* ... of which so much may not be taken in */
#define STRANGER_TIME (10 * KOFN_SECOND) /* to say who one is        */
#define BEATS 1024   /* bytes a second that are no message: heartbeats  */
#define RESERVE 1024 /* descriptors for others than those who come      */
#define LOOK (10 * KF_MILLI)    /* while there are strangers */
#define GLANCE (100 * KF_MILLI) /* at peers                 */

typedef struct door {
    uint64_t lost; /* the newest that was let in when one was lost here */
    uint64_t peer; /* the number of the peer's connection, or 0         */
    bool open, ended, heard;
    uint64_t since_bytes; /* sent before the last whole message */
    kofn_time since, looked;
    kofn_time end; /* when it is to be shut down; KOFN_NEVER: not yet */
} door;

struct kf_doors {
    pthread_mutex_t lock;
    door *door; /* by descriptor */
    size_t count, opened, peers, strangers;
    size_t most; /* that may be open, for want of descriptors */
    size_t hand; /* who made room last                        */
    uint64_t peer_bytes, newest;
    kofn_time listened;
    kf_refused turned;
    bool news, oom;
};

kf_doors *kf_doors_new(size_t strangers, size_t peer_bytes)
{
    kf_doors *d = kf_zero(1, sizeof *d);

    if (!d)
        return NULL;
    d->strangers = strangers;
    d->most = SIZE_MAX;
    d->peer_bytes = peer_bytes;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void kf_doors_free(kf_doors *d)
{
    if (!d)
        return;
    pthread_mutex_destroy(&d->lock);
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

static void end_now(door *at, int fd, uint64_t *why)
{
    ++*why;
    at->ended = true;
    shutdown(fd, SHUT_RDWR);
}

/* Strangers make room for strangers: one of them goes, round and round, so that
 * who only sits there keeps nobody out.  Who has just come goes only where all
 * others are peers. */
static void make_room(kf_doors *d, int fd, uint64_t *why)
{
    for (size_t k = 0; k < d->count; k++) {
        door *at = &d->door[d->hand = (d->hand + 1) % d->count];

        if (at->open && !at->ended && !at->peer && (size_t)fd != d->hand) {
            end_now(at, (int)d->hand, why);
            return;
        }
    }
    end_now(&d->door[fd], fd, why);
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
    at->ended = at->heard = false;
    at->since_bytes = 0;
    at->since = at->looked = now;
    at->end = KOFN_NEVER;
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

/* Has it sent more than it may, since its last whole message? */
static bool floods(const kf_doors *d, door *at, int fd, kofn_time now)
{
    uint64_t beats = (uint64_t)((now - at->looked) / KF_MILLI * BEATS / 1000);
    uint64_t bytes;

    if (!received(fd, &bytes))
        return !at->peer && waiting(fd) > STRANGER_WAITING;
    if (at->heard || bytes - at->since_bytes < beats)
        at->since_bytes = bytes;
    else
        at->since_bytes += beats;
    at->heard = false;
    at->looked = now;
    return bytes - at->since_bytes >
           (at->peer ? d->peer_bytes : STRANGER_BYTES);
}

static void inspect(kf_doors *d, int fd, kofn_time now)
{
    door *at = &d->door[fd];

    if (now >= at->end)
        end_now(at, fd, &d->turned.away);
    else if (floods(d, at, fd, now))
        end_now(at, fd, &d->turned.flood);
    else if (!at->peer && d->listened - at->since > STRANGER_TIME)
        end_now(at, fd, &d->turned.mute);
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

void kf_doors_peer(kf_doors *d, int fd, uint64_t number)
{
    pthread_mutex_lock(&d->lock);
    if (!d->oom && room_for(d, (size_t)fd) && d->door[fd].lost < number) {
        d->peers += d->door[fd].peer == 0;
        d->door[fd].peer = number;
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
