/* link.c -- one connection: its start, its end, and what the loop waits for.
 *
 * A link owns its socket, its queues and its TLS state until libuv has released
 * it. Its maker sets the function that is called when it is ready. Called with
 * the lock; never blocks. */
#define _GNU_SOURCE /* struct tcp_info */
#include "inside.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define UNSENT (256 << 10) /* bytes that the system may hold unsent */
#define UNREAD (1 << 20)   /* and unread, within one machine */

/* ---- bytes --------------------------------------------------------------- */

/* Updates the watch if OpenSSL now waits for something else. */
static ssize_t rewatch(kf_link *l, unsigned waits, ssize_t n)
{
    if (l->secure.waits != waits) {
        kf_link_watch(l);
        errno = EAGAIN;
    }
    return n;
}

ssize_t kf_link_write(kf_link *l, struct iovec *part, int parts)
{
    struct msghdr m = {.msg_iov = part, .msg_iovlen = (size_t)parts};
    unsigned waits = l->secure.waits;
    kf_passing room;
    ssize_t n;

    assert(!l->secure.tls || parts == 2);
    if (l->secure.tls)
        return rewatch(l, waits, kf_tls_write(l, part));
    if (l->out.with && l->out.at == 0)
        kf_share_attach(&m, &room, l->out.with);
    n = TEMP_FAILURE_RETRY(sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT));
    if (n < 0 && errno == ETOOMANYREFS)
        errno = EAGAIN; /* the receiver must read others first */
    return n;
}

ssize_t kf_link_read(kf_link *l, struct iovec *part, int parts)
{
    struct msghdr m = {.msg_iov = part, .msg_iovlen = (size_t)parts};
    unsigned waits = l->secure.waits;
    kf_passing room;
    ssize_t n;

    if (l->secure.tls)
        return rewatch(l, waits, kf_tls_read(l, part, parts));
    if (l->flag.local) {
        m.msg_control = &room;
        m.msg_controllen = sizeof room;
    }
    n = TEMP_FAILURE_RETRY(recvmsg(l->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
    if (n > 0 && l->flag.local && !kf_share_detach(&m, &l->flag.passed)) {
        l->t->gate.refused.full += l->flag.passed < 0;
        errno = EPROTO;
        return -1;
    }
    return n;
}

/* ---- watching ------------------------------------------------------------ */

void kf_link_watch(kf_link *l)
{
    int read = l->secure.waits & KF_READS_WAIT ? UV_WRITABLE : UV_READABLE;
    int write = l->secure.waits & KF_WRITES_WAIT ? UV_READABLE : UV_WRITABLE;
    int events = (l->flag.deaf ? 0 : read) | (l->flag.blocked ? write : 0);

    if (l->state == KF_OVER)
        return;
    if (events)
        uv_poll_start(&l->poll, events, l->ready);
    else
        uv_poll_stop(&l->poll);
    l->t->dirty = true;
}

/* A thousand idle workers send thousands of beats a second, and each would wake
 * the loop. The system reports the time of the last one. Any other frame has a
 * header and is read at once. Under TLS a beat is a whole record, so this does
 * not apply. */
void kf_link_calm(kf_link *l, bool calm)
{
    const int least = calm ? KF_HEADER : 1;

    if (!l->secure.tls && !l->flag.unix_socket)
        l->life.calm = setsockopt(l->fd, SOL_SOCKET, SO_RCVLOWAT, &least,
                                  sizeof least) == 0 &&
                       calm;
}

void kf_link_listen(kf_link *l)
{
    struct tcp_info i;
    socklen_t bytes = sizeof i;
    kofn_time last;

    if (getsockopt(l->fd, IPPROTO_TCP, TCP_INFO, &i, &bytes))
        return;
    last = l->t->keep.awake - (kofn_time)i.tcpi_last_data_recv * KF_MILLI;
    if (last > l->life.heard)
        l->life.heard = last;
}

/* ---- beginning ----------------------------------------------------------- */

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage most;
} address;

static bool is_loopback(const address *at)
{
    if (at->any.sa_family == AF_INET)
        return ntohl(at->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (at->any.sa_family != AF_INET6)
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&at->v6.sin6_addr))
        return at->v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&at->v6.sin6_addr);
}

/* Sets the options of a socket. The system holds few unsent bytes, so that
 * urgent packets leave soon. On a Unix socket that would make both ends wait
 * too often. A congestion control that paces, as BBR does, would halve the
 * speed within a machine. Reno does not pace and is always allowed. */
static void set_up(kf_link *l, bool dialled)
{
    const int yes = 1, unsent = UNSENT, unread = UNREAD;
    const unsigned lost = (unsigned)(l->t->silence / KF_MILLI);
    address at = {0};
    socklen_t bytes = sizeof at;

    (void)getsockname(l->fd, &at.any, &bytes);
    l->flag.unix_socket = at.any.sa_family == AF_UNIX;
    if (l->flag.unix_socket) {
        setsockopt(l->fd, SOL_SOCKET, SO_SNDBUF, &unread, sizeof unread);
        return;
    }
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(l->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (dialled)
        setsockopt(l->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost, sizeof lost);
    if (is_loopback(&at))
        setsockopt(l->fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

kofn_status kf_link_new(kf_link **out, kf_transport *t, int fd,
                        kf_link_state state, uv_poll_cb ready)
{
    kf_link *l = kf_zero(1, sizeof *l);

    assert(fd >= 0);
    t->starved += !l;
    if (!l || uv_poll_init(&t->uv.loop, &l->poll, fd)) {
        kf_free(l);
        close(fd);
        return l ? kf_fail(KOFN_TRANSPORT, "a connection cannot be watched")
                 : KOFN_NOMEM;
    }
    l->poll.data = l;
    l->t = t;
    l->fd = fd;
    l->state = state;
    l->ready = ready;
    l->out.channel = l->flag.passed = -1;
    set_up(l, state == KF_DIALLING);
    l->flag.local = !t->keys && l->flag.unix_socket;
    l->life.since = l->life.heard = l->life.spoke = l->life.busy =
        t->keep.awake;
    l->life.beat = KOFN_NEVER;
    for (int i = 0; i < KF_CHANNELS; i++) {
        l->channel[i].last = &l->channel[i].first;
        l->channel[i].window = i ? t->peer_bytes / 4 : t->peer_bytes;
        l->channel[i].given = l->channel[i].window;
    }
    l->after = t->in.links;
    if (t->in.links)
        t->in.links->before = l;
    t->in.links = l;
    l->flag.blocked = state == KF_DIALLING;
    kf_link_watch(l);
    *out = l;
    return KOFN_OK;
}

/* ---- ending -------------------------------------------------------------- */

static void closed(uv_handle_t *h)
{
    kf_free(h->data);
}

void kf_link_end(kf_link *l)
{
    kf_transport *t = l->t;
    kf_link_state was = l->state;

    if (was == KF_OVER)
        return;
    l->state = KF_OVER;
    *(l->before ? &l->before->after : &t->in.links) = l->after;
    if (l->after)
        l->after->before = l->before;
    kf_packets_clear(l);
    if (t->keep.latest == l)
        t->keep.latest = NULL;
    if (was == KF_PEER)
        kf_link_unlist(l);
    if (l->tray)
        kf_packets_close(l);
    if (l->dial) {
        l->dial->link = NULL;
        l->dial->lost = t->out.redial = true;
        l->dial = NULL;
    } else if (was >= KF_REFUSED && was <= KF_HELD) {
        assert(t->gate.strangers > 0);
        t->gate.strangers--;
        t->gate.refused.strange++;
    }
    kf_tls_free(l);
    uv_close((uv_handle_t *)&l->poll, closed);
    if (l->flag.local)
        kf_share_drain(l->fd);
    close(l->fd);
    if (l->flag.passed >= 0)
        kf_low_discard(l->flag.passed);
    t->dirty = true;
}

void kf_link_make_room(kf_transport *t, bool shake, size_t most, uint64_t *why)
{
    kf_link *oldest = NULL;
    size_t n = 0;

    for (kf_link *l = t->in.links; l; l = l->after) {
        if (l->dial || l->state < KF_REFUSED || l->state > KF_HELD ||
            (shake && (l->state != KF_SHAKING || !l->secure.tls)))
            continue;
        oldest = l; /* the newest is first in the list */
        n++;
    }
    if (!oldest || n < most)
        return;
    ++*why;
    kf_link_end(oldest);
}

void kf_link_refuse(kf_link *l)
{
    assert(l->state == KF_SHAKING);
    kf_tls_free(l);
    shutdown(l->fd, SHUT_WR);
    l->state = KF_REFUSED;
    l->secure.shaken = 0;
    l->secure.waits = 0;
    kf_link_watch(l);
}

/* Returns the index of a peer in the list, or the index at which it belongs. */
static size_t place_of(const kf_transport *t, kofn_peer number)
{
    size_t lo = 0, hi = t->in.count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (t->in.peer[mid]->number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

kf_link *kf_link_of(const kf_transport *t, kofn_peer number)
{
    size_t i = place_of(t, number);

    return i < t->in.count && t->in.peer[i]->number == number ? t->in.peer[i]
                                                              : NULL;
}

void kf_link_unlist(kf_link *l)
{
    kf_transport *t = l->t;
    size_t i = place_of(t, l->number);

    if (i < t->in.count && t->in.peer[i] == l)
        memmove(t->in.peer + i, t->in.peer + i + 1,
                (--t->in.count - i) * sizeof *t->in.peer);
}
