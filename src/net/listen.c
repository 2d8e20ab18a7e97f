/* listen.c -- accepts connections and limits the number of strangers.
 *
 * Owns the listening sockets and the files of Unix sockets, which it removes.
 */
#define _GNU_SOURCE /* accept4 */
#include "inside.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define AT_ONCE 64 /* accepted before others have their turn */
#define RESERVE 64 /* descriptors kept for other uses */

/* ---- coming -------------------------------------------------------------- */

/* True if too few descriptors are left. The system returns the lowest free one,
 * so all below `fd` are taken. The upper ones, RESERVE at most, are kept for
 * files. If connections occupy some of these, the same number must be free
 * below; otherwise there are too many. */
static bool too_many(int fd)
{
    struct rlimit files;
    rlim_t keep;
    int top, high, taken = 0;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > INT_MAX)
        return false;
    keep = files.rlim_cur / 4 < RESERVE ? files.rlim_cur / 4 : RESERVE;
    top = (int)files.rlim_cur;
    high = top - (int)keep;
    if (fd >= high)
        return true;
    for (int i = high; i < top; i++)
        taken += fcntl(i, F_GETFD) >= 0;
    for (int i = fd + 1; i < high && taken > 0; i++)
        taken -= fcntl(i, F_GETFD) < 0;
    return taken > 0;
}

static void comes(kf_transport *t, int fd, const struct sockaddr_storage *from)
{
    kf_link *l;

    if (too_many(fd)) {
        if (t->gate.strangers == 0) { /* all others are peers */
            t->gate.refused.full++;
            close(fd);
            return;
        }
        kf_link_make_room(t, false, 1, &t->gate.refused.full);
    }
    if (t->gate.strangers >= t->gate.strangers_most)
        kf_link_make_room(t, false, 1, &t->gate.refused.crowd);
    if (kf_link_new(&l, t, fd, t->keys ? KF_SHAKING : KF_STRANGE, kf_net_ready))
        return;
    t->gate.strangers++;
    kf_place_principal(fd, l->principal, sizeof l->principal);
    kf_place_text((const struct sockaddr *)from, l->name, sizeof l->name);
    if (from->ss_family == AF_UNIX)
        snprintf(l->name, sizeof l->name, "%s", l->principal);
    if (t->mesh)
        l->principal[0] = '\0'; /* a node is responsible for itself */
}

static int open_spare(void)
{
    kf_low_begin();
    return kf_low_end(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/* Refuses a connection when no descriptor is left. The spare one is closed so
 * that the connection can be accepted and closed. */
static void turn_away(kf_transport *t)
{
    int fd;

    assert(t->gate.listening >= 0);
    kf_low_begin();
    close(t->gate.spare);
    fd = accept4(t->gate.listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    (void)kf_low_end(-1);
    t->gate.spare = open_spare();
    kf_link_make_room(t, false, 1, &t->gate.refused.full);
}

static void knocks(uv_poll_t *poll, int status, int events)
{
    kf_transport *t = poll->data;

    (void)events;
    for (int i = 0; i < AT_ONCE && status >= 0; i++) {
        struct sockaddr_storage from = {0};
        socklen_t bytes = sizeof from;
        int fd;

        kf_low_begin();
        fd = kf_low_end(accept4(t->gate.listening, (struct sockaddr *)&from,
                                &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd >= 0)
            comes(t, fd, &from);
        else if (errno == EMFILE || errno == ENFILE)
            turn_away(t);
        else if (errno == EAGAIN)
            return;
    }
}

/* ---- opening ------------------------------------------------------------- */

static kofn_status cannot(const char *address, int error)
{
    return kf_fail(KOFN_TRANSPORT, "cannot listen at %s: %s; %s", address,
                   strerror(error), kf_place_advice(error));
}

static void say_where(kf_transport *t, const char *address)
{
    struct sockaddr_storage at = {0};
    socklen_t bytes = sizeof at;
    char text[120];
    struct stat s;

    snprintf(t->text.endpoint, sizeof t->text.endpoint, "%s", address);
    if (getsockname(t->gate.listening, (struct sockaddr *)&at, &bytes))
        return;
    if (at.ss_family != AF_UNIX) {
        kf_place_text((const struct sockaddr *)&at, text, sizeof text);
        snprintf(t->text.endpoint, sizeof t->text.endpoint, "tcp://%s", text);
    } else if (lstat(address + 6, &s) == 0) {
        t->gate.file = s.st_ino;
    }
}

/* Returns a socket that listens there, or -1, with errno. For all interfaces it
 * serves both IPv6 and IPv4. */
static int listens_at(const kf_place *at)
{
    const int yes = 1, no = 0;
    int family = at->at.ss_family, fd, error;

    kf_low_begin();
    fd = kf_low_end(
        socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (family == AF_UNIX) /* only its owner may connect */
        fchmod(fd, S_IRUSR | S_IWUSR);
    if (bind(fd, (const struct sockaddr *)&at->at, at->bytes) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Listens. An address for all interfaces means IPv6 and IPv4, or IPv4 only if
 * the machine has no IPv6. */
static kofn_status listen_there(kf_transport *t, const char *address)
{
    kf_place place;

    if (kf_place_everywhere(address)) {
        TRY(kf_place_here(address, true, &place));
        t->gate.listening = listens_at(&place);
        if (t->gate.listening >= 0 ||
            (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL))
            return KOFN_OK;
    }
    TRY(kf_place_here(address, false, &place));
    if (place.at.ss_family == AF_UNIX && address[6] != '@')
        unlink(address + 6); /* left by a process that is gone */
    t->gate.listening = listens_at(&place);
    return KOFN_OK;
}

kofn_status kf_listen(kf_transport *t, const char *address)
{
    int error;

    assert(!t->uv.open);
    TRY(kf_place_vacant(address));
    TRY(listen_there(t, address));
    error = errno;
    t->gate.spare = open_spare();
    if (t->gate.listening < 0 || t->gate.spare < 0)
        return cannot(address, t->gate.listening < 0 ? error : errno);
    say_where(t, address);
    t->uv.door.data = t;
    if (uv_poll_init(&t->uv.loop, &t->uv.door, t->gate.listening))
        return kf_fail(KOFN_TRANSPORT, "%s cannot be watched", address);
    t->uv.open = true;
    uv_poll_start(&t->uv.door, UV_READABLE, knocks);
    t->dirty = true;
    return KOFN_OK;
}

/* Stops listening. The file is removed only if it is still ours; if it was
 * removed, another process may have made its own. */
void kf_listen_end(kf_transport *t)
{
    const char *path = t->text.endpoint + 6;
    struct stat s;

    if (t->uv.open)
        uv_close((uv_handle_t *)&t->uv.door, NULL);
    if (t->uv.open && strncmp(t->text.endpoint, "ipc://", 6) == 0 &&
        *path != '@' && lstat(path, &s) == 0 && S_ISSOCK(s.st_mode) &&
        s.st_ino == t->gate.file)
        unlink(path);
    t->uv.open = false;
    if (t->gate.listening >= 0)
        close(t->gate.listening);
    if (t->gate.spare >= 0)
        close(t->gate.spare);
    t->gate.listening = t->gate.spare = -1;
}
