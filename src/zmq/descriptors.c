/* descriptors.c -- where descriptors run out, and where they are lost. */
#define _DEFAULT_SOURCE /* syscall */
#include "inside.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
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

/* ---- losses -------------------------------------------------------------- */

/* ZeroMQ 4.3.4 stops to read from a connection that brought more than its socket
 * may hold.  If the connection is lost then, and a heartbeat waits among what was
 * read before, ZeroMQ answers it when there is room again and ends the process
 * (stream_engine_base.cpp: out_event asserts !_io_error), whenever a peer likes.
 * It hears of the loss by EPOLLERR and EPOLLHUP, which epoll tells also where
 * nobody asked.  Without them it reads what is left when there is room, and finds
 * the end of the connection by reading, as it does of all others. */
KOFN_API int epoll_wait(int set, struct epoll_event *event, int most,
                        int timeout);

/* ZeroMQ names its threads so; those of others are told everything. */
static bool of_zmq(void)
{
    static _Thread_local int is; /* 0: not known yet */
    char name[16] = "";

    if (is == 0) {
        prctl(PR_GET_NAME, name, 0, 0, 0);
        is = strncmp(name, "ZMQbg/", 6) == 0 ? 1 : -1;
    }
    return is > 0;
}

/* How many are left. */
static int ask_for_no_losses(struct epoll_event *event, int n)
{
    int left = 0;

    for (int i = 0; i < n; i++) {
        event[i].events &= ~(uint32_t)(EPOLLERR | EPOLLHUP);
        if (event[i].events)
            event[left++] = event[i];
    }
    return left;
}

/* The function stands in for the C library's wherever a program is linked with
 * this library.  Where only losses are told, which epoll goes on to do, we look
 * again after a millisecond. */
int epoll_wait(int set, struct epoll_event *event, int most, int timeout)
{
    const struct timespec pause = {0, KF_MILLI};

    for (;;) {
        int n = epoll_pwait(set, event, most, timeout, NULL);
        int left = n > 0 && of_zmq() ? ask_for_no_losses(event, n) : n;

        if (n <= 0 || left > 0 || timeout == 0)
            return left;
        nanosleep(&pause, NULL);
        timeout -= timeout > 0;
    }
}
