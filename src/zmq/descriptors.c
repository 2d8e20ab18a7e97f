/* descriptors.c -- where descriptors run out. */
#define _DEFAULT_SOURCE /* syscall */
#include "inside.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

kofn_status kf_descriptors(int like, size_t need)
{
    struct rlimit files = {0};
    int fd[64];
    size_t n = 0;

    while (n < kf_min(need, 64) && (fd[n] = dup(like)) >= 0)
        n++;
    for (size_t i = 0; i < n; i++)
        close(fd[i]);
    if (n >= need)
        return KOFN_OK;
    getrlimit(RLIMIT_NOFILE, &files);
    return kf_fail(KOFN_TRANSPORT,
                   "%zu of %llu file descriptors are left, and ZeroMQ needs "
                   "%zu; raise ulimit -n",
                   n, (unsigned long long)files.rlim_cur, need);
}

/* ---- connections --------------------------------------------------------- */

KOFN_API int accept4(int listener, struct sockaddr *from, socklen_t *bytes,
                     int flags);

/* On a TCP socket ZeroMQ 4.3.4 leaves a connection waiting for which it gets no
 * descriptor, until the doors have ended somebody; on a Unix socket it ends the
 * process (ipc_listener.cpp), unless the whole system has none left.  So that is
 * what it is told.  The function stands in for the C library's wherever a program
 * is linked with this library; nothing else is different. */
int accept4(int listener, struct sockaddr *from, socklen_t *bytes, int flags)
{
    int fd = (int)syscall(SYS_accept4, listener, from, bytes, flags);
    int error = errno, domain = AF_UNSPEC;
    socklen_t size = sizeof domain;

    if (fd < 0 && (error == EMFILE || error == ENOMEM || error == ENOBUFS)) {
        getsockopt(listener, SOL_SOCKET, SO_DOMAIN, &domain, &size);
        error = domain == AF_UNIX ? ENFILE : error;
    }
    errno = error;
    return fd;
}
