/* share.c -- long bodies for several processes of one machine: memory files
 * instead of bytes.
 *
 * A long body may be lent for more than one Unix socket without keys at a time.
 * It is then written once into a file that exists in memory only (memfd). The
 * file is sealed: no process can change, shorten or extend it, not even its
 * writer. Its descriptor is sent, and the receiver maps the file and closes the
 * descriptor. So the content cannot change between check and use, and no page
 * can be missing.
 *
 * Bytes are sent if no file can be made. They are also sent if only one process
 * gets the body, since the pages of a new file take the time of a copy
 * through the socket.
 *
 * Owns the memory file of each body while it is lent, and the mapping while it
 * is used. */
#define _GNU_SOURCE /* memfd_create */
#include "inside.h"

#include "base/raise.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAST ((size_t)256 << 10) /* shorter bodies are sent as bytes */
#define MOST 64                   /* files at a time, each with a descriptor */

enum { NONE = -1, NONE_YET = -2 };

/* A body that is lent for at least one packet. */
typedef struct kf_share {
    kf_share *next;
    const void *body;
    size_t bytes, users;
    int fd; /* a descriptor, NONE or NONE_YET */
} kf_share;

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

bool kf_share_write(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t wrote = TEMP_FAILURE_RETRY(write(fd, bytes, n));

        if (wrote < 0)
            return false;
        bytes += wrote;
        n -= (size_t)wrote;
    }
    return true;
}

/* Makes the file of a body. NONE: it cannot be made. */
static int file_of(const void *body, size_t bytes)
{
    struct rlimit most;
    int fd = -1;

    /* the kernel sends a fatal signal to a process that exceeds RLIMIT_FSIZE */
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && bytes <= most.rlim_cur) {
        kf_low_begin();
        fd = kf_low_end(memfd_create("kofn", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    }
    if (fd >= 0 &&
        (!kf_share_write(fd, body, bytes) || fcntl(fd, F_ADD_SEALS, SEALS))) {
        close(fd);
        fd = NONE;
    }
    return fd;
}

void *kf_share_map(int fd, size_t bytes)
{
    const int needed = F_SEAL_WRITE | F_SEAL_SHRINK;
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat s;
    void *at = MAP_FAILED;

    assert(fd >= 0);
    if (seals >= 0 && (seals & needed) == needed && fstat(fd, &s) == 0 &&
        s.st_size >= 0 && (uint64_t)s.st_size == bytes)
        at = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    kf_low_discard(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* ---- lent bodies --------------------------------------------------------- */

kf_share *kf_share_join(kf_transport *t, const void *body, size_t bytes)
{
    kf_share *s = t->traffic.shares;

    if (bytes < LEAST)
        return NULL;
    while (s && !(s->body == body && s->bytes == bytes))
        s = s->next;
    if (!s && (s = kf_new(1, sizeof *s))) {
        *s = (kf_share){t->traffic.shares, body, bytes, 0, NONE_YET};
        t->traffic.shares = s;
    }
    if (s)
        s->users++;
    return s;
}

bool kf_share_filed(kf_transport *t, kf_share *s)
{
    size_t files = 0;

    assert(s->users > 0);
    if (s->fd == NONE_YET && s->users > 1) {
        for (const kf_share *k = t->traffic.shares; k; k = k->next)
            files += k->fd >= 0;
        s->fd = files < MOST ? file_of(s->body, s->bytes) : NONE;
    }
    return s->fd >= 0;
}

void kf_share_leave(kf_transport *t, kf_share *s)
{
    kf_share **at = &t->traffic.shares;

    assert(!s || s->users > 0);
    if (!s || --s->users > 0)
        return;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (s->fd >= 0)
        close(s->fd);
    kf_free(s);
}

/* ---- passed descriptors -------------------------------------------------- */

void kf_share_attach(struct msghdr *m, kf_passing *room, const kf_share *s)
{
    struct cmsghdr *c;

    assert(s->fd >= 0);
    memset(room, 0, CMSG_SPACE(sizeof s->fd));
    m->msg_control = room;
    m->msg_controllen = CMSG_SPACE(sizeof s->fd);
    c = CMSG_FIRSTHDR(m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof s->fd);
    memcpy(CMSG_DATA(c), &s->fd, sizeof s->fd);
}

bool kf_share_detach(struct msghdr *m, int *fd)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    bool good =
        !(m->msg_flags & MSG_CTRUNC); /* false: there was no room for one */
    int came;

    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return good;
    for (size_t at = CMSG_LEN(0); at + sizeof came <= c->cmsg_len;
         at += sizeof came) {
        memcpy(&came, (char *)c + at, sizeof came);
        came = kf_raise(came);
        if (came < 0) {
            good = false;
        } else if (*fd < 0) {
            *fd = came;
        } else { /* only one at a time is allowed */
            kf_low_discard(came);
            good = false;
        }
    }
    return good;
}

void kf_share_drain(int fd)
{
    char bytes[16 << 10];
    kf_passing room;
    int came;

    shutdown(fd, SHUT_RD); /* nothing more arrives */
    for (ssize_t n = 1; n > 0;) {
        struct iovec part = {bytes, sizeof bytes};
        struct msghdr m = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &room,
                           .msg_controllen = sizeof room};

        came = -1;
        n = TEMP_FAILURE_RETRY(
            recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
        if (n > 0)
            (void)kf_share_detach(&m, &came);
        if (came >= 0)
            kf_low_discard(came);
    }
}
