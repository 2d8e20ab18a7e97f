/* low.c -- file descriptors that need care.
 *
 * Descriptors 0, 1 and 2 belong to the program, even if it has closed them.
 * Descriptors that are opened here are moved above them. Descriptors that libuv
 * opens cannot be moved, so /dev/null fills the free ones while a loop is made.
 * A lock separates threads that move descriptors from threads that fill them.
 *
 * A descriptor that a peer passes may be of any kind, and its last close may
 * wait. A socket may linger, even inside the queue of another one, and a file
 * system may belong to the peer. A separate thread closes such a descriptor.
 *
 * Owns the descriptors that fill free numbers while a loop is made, and those
 * that wait to be closed. */
#define _GNU_SOURCE /* F_GET_SEALS */
#include "inside.h"

#include "base/raise.h"

#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define CLOSERS 16 /* threads that close descriptors at a time */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void kf_low_begin(void)
{
    pthread_mutex_lock(&lock);
}

int kf_low_end(int fd)
{
    int error;

    fd = kf_raise(fd);
    error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

void kf_low_fill(kf_low *low)
{
    int fd;

    kf_low_begin();
    low->count = 0;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 &&
           fd < KF_LOWEST && low->count < KF_LOWEST)
        low->fd[low->count++] = fd;
    if (fd >= 0)
        close(fd);
}

/* True if it is still /dev/null, and the program has not opened its own
 * there. */
static bool is_local(int fd)
{
    struct stat s, null;

    return fstat(fd, &s) == 0 && stat("/dev/null", &null) == 0 &&
           s.st_dev == null.st_dev && s.st_ino == null.st_ino;
}

void kf_low_empty(kf_low *low)
{
    for (int i = 0; i < low->count; i++)
        if (is_local(low->fd[i]))
            close(low->fd[i]);
    (void)kf_low_end(-1);
}

/* ---- passed descriptors -------------------------------------------------- */

static atomic_int closers;

static void *close_it(void *fd)
{
    close((int)(intptr_t)fd);
    atomic_fetch_sub(&closers, 1);
    return NULL;
}

/* Starts a thread that closes the descriptor; false if there is no thread. */
static bool close_elsewhere(int fd)
{
    pthread_attr_t alone;
    pthread_t thread;
    sigset_t all, was;
    bool begun;

    if (pthread_attr_init(&alone))
        return false;
    pthread_attr_setdetachstate(&alone, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    begun =
        pthread_create(&thread, &alone, close_it, (void *)(intptr_t)fd) == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    pthread_attr_destroy(&alone);
    return begun;
}

void kf_low_discard(int fd)
{
    const struct linger none = {0};

    assert(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    if (fcntl(fd, F_GET_SEALS) >= 0) { /* a memory file */
        close(fd);
        return;
    }
    if (atomic_fetch_add(&closers, 1) < CLOSERS && close_elsewhere(fd))
        return;
    atomic_fetch_sub(&closers, 1);
    close(fd);
}
